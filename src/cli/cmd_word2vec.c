#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/path.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "commands.h"
#include "corpus/vocab.h"
#include "run/run_directory.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"
#include "vectors/export.h"
#include "vectors/names.h"
#include "word2vec_flags.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CLASSES = 1000000 };

static const struct directory_mark mark = {"word2vec", "sptx-w2v word2vec trains its run in this directory, and removes it\n"};

/* A call of word2vec: the values of its flags. */
struct call {
    struct word2vec_flag flags[WORD2VEC_FLAGS];
    char *place; /* the directory that has the mark, in which the run is trained; owned; NULL: nothing is trained */
    uint64_t hs, threads, classes, debug, binary, cbow;
    const char *text, *output, *save, *read; /* paths; "": the flag is not given */
    int words;                               /* descriptor of an unnamed temporary file with the words of -read-vocab; -1: none */
};

static const char *flag(const struct call *call, const char *name) {
    return word2vec_flag(call->flags, WORD2VEC, name);
}

static int read_counts(struct call *call) {
    const struct {
        const char *name;
        uint64_t most, *count;
    } counts[] = {{"-hs", 1, &call->hs},       {"-threads", 4096, &call->threads}, {"-classes", MOST_CLASSES, &call->classes},
                  {"-debug", 9, &call->debug}, {"-binary", 1, &call->binary},      {"-cbow", 1, &call->cbow}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (word2vec_flag_count(call->flags, WORD2VEC, counts[i].name, counts[i].most, counts[i].count)) return -1;
    call->text = flag(call, "-train");
    call->output = flag(call, "-output");
    call->save = flag(call, "-save-vocab");
    call->read = flag(call, "-read-vocab");
    if (!*call->text) return fail_usage("word2vec wants -train FILE; see 'sptx-w2v help word2vec'");
    if (!*call->output && !*call->save)
        return fail_usage("word2vec wants -output FILE, or -save-vocab FILE; see 'sptx-w2v help word2vec'");
    return 0;
}

/* ---- keys ---- */

static int set_text_key(struct config *config, const char *key, const char *value, const char *ending) {
    char quoted[4096];
    if ((size_t)snprintf(quoted, sizeof quoted, "\"%s%s\"", value, ending) >= sizeof quoted)
        return fail_usage("a path is longer than %zu bytes", sizeof quoted);
    return command_set_key(config, key, quoted);
}

static int set_keys(struct config *config, const struct call *call) {
    char threads[TEXT_BYTES];
    unsigned cores = pool_cores();
    snprintf(threads, sizeof threads, "%" PRIu64, call->threads && call->threads < cores ? call->threads : cores);
    const char *alpha = flag(call, "-alpha");
    const char *const keys[][2] = {{"examples.mode", call->cbow ? "cbow" : "window"},
                                   {"optimizer.lr", *alpha       ? alpha
                                                    : call->cbow ? "0.05"
                                                                 : "0.025"},
                                   {"device.threads", threads},
                                   {"run.checkpoint_every", "end"},
                                   {"run.keep", "1"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (command_set_key(config, keys[i][0], keys[i][1])) return -1;
    if (call->hs && strcmp(flag(call, "-negative"), "0"))
        return fail("word2vec: -hs 1 with negatives trains two tables of contexts, and this program trains one; add -negative 0, "
                    "or take -hs 0");
    if (call->hs && command_set_key(config, "train.loss", "hierarchical")) return -1;
    return set_text_key(config, "corpus.path", call->text, "") ||
                   (*call->output && set_text_key(config, "run.dir", call->output, ".run")) ? -1 : 0;
}

/* ---- what would be lost ---- */

/* Refuses an output that is the same file as another file of the call. */
static int refuse_same(const char *output, const char *path, const char *other, const char *other_path) {
    int same = *path && *other_path && strcmp(other_path, CORPUS_INPUT) ? file_is_same(path, other_path) : 0;
    return same == 1 ? fail_usage("word2vec: %s and %s are the same file, '%s'; choose another", output, other, path) : same;
}

/* Checks before any work that the outputs can be written, and that no file of the user's is lost for them. */
static int check_outputs(const struct call *call, const char *run) {
    const char *const files[][2] = {{"-train", call->text}, {"-read-vocab", call->read}, {"--run.dir", *call->output ? run : ""},
                                    {"-output", call->output}, {"-save-vocab", call->save}};
    for (int output = 3; output < 5; output++) {
        const char *name = files[output][0], *path = files[output][1];
        for (int other = 0; other < output; other++)
            if (refuse_same(name, path, files[other][0], files[other][1])) return -1;
        if (*path && (run_owns_refuse(path, name) || file_check_place(path))) return -1;
    }
    return 0;
}

/* Makes the directory in which the run is trained and which is removed at the end: run.dir, with a mark, unless an earlier word2vec
 * that was stopped has left it. Sets run.dir to a directory in it. */
static int make_place(struct call *call, struct config *config) {
    char *place = path_resolve(config->run_dir), *parent = place ? path_parent(place) : NULL, *run = place ? file_join(place, "run") : NULL;
    int there = run ? file_exists(place) : -1, own = there == 1 ? directory_mark_is_there(place, &mark) : there;
    if (there == 1 && !own)
        own = fail("'%s' is there, and word2vec, which would remove it at the end, has not made it: move it away, or name another "
                   "directory by --run.dir", config->run_dir);
    if (!there && (!parent || directory_make(parent) || directory_mark_make(place, &mark))) own = -1;
    free(parent);
    if (own < 0) {
        free(place);
        free(run);
        return -1;
    }
    call->place = place;
    free(config->run_dir);
    config->run_dir = run;
    return 0;
}

/* ---- vocabularies: lines of word, blank, count ---- */

/* Writes the words that are frequent enough in the format of corpus.vocab. */
static int copy_words(struct call *call, struct lines *lines, uint64_t least) {
    struct token word, number;
    uint64_t count, written = 0;
    while (lines_next(lines)) {
        char line[4096], text[TEXT_BYTES] = "";
        if (!lines_token(lines, &word)) continue;
        if (!lines_token(lines, &number) || number.length >= sizeof text ||
            (memcpy(text, number.text, number.length), text_count(text, &count)))
            return fail("'%s' line %" PRIu64 ": wanted a word and its count", call->read, lines->number);
        if (count < least || (word.length == 4 && !memcmp(word.text, "</s>", 4))) continue;
        int length = snprintf(line, sizeof line, "%.*s\t%" PRIu64 "\n", (int)word.length, word.text, count);
        if (length >= (int)sizeof line)
            return fail("'%s' line %" PRIu64 ": the word has more than 4,000 bytes", call->read, lines->number);
        if (retry_write_at(call->words, line, (uint64_t)length, written)) return fail_system("write in", spool_directory());
        written += (uint64_t)length;
    }
    return 0;
}

static int read_vocabulary(struct call *call, struct config *config) {
    struct lines lines;
    char path[64], *text = lines_open(&lines, call->read);
    call->words = text ? spool_open() : -1;
    int result = call->words < 0 ? -1 : copy_words(call, &lines, config->corpus_min_count);
    free(text);
    snprintf(path, sizeof path, "/proc/self/fd/%d", call->words);
    return result ? -1 : command_set_key(config, "corpus.vocab", path);
}

static int save_vocabulary(const struct call *call, const struct vocab *vocab) {
    struct file_writer writer;
    if (file_writer_open_given(&writer, call->save)) return -1;
    int result = file_print(&writer, "</s> 0\n");
    for (uint64_t id = 0; id < vocab->size && !result; id++)
        result = file_print(&writer, "%s %" PRIu64 "\n", vocab_word(vocab, id, NULL), vocab_count(vocab, id));
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

/* Counts the text's words without training, since there is no -output. */
static int count_words(const struct call *call, const struct config *config) {
    const struct corpus_options options = config_corpus(config);
    struct vocab vocab = {0};
    struct pool *pool = pool_open((unsigned)config->device_threads);
    struct corpus *corpus = pool ? corpus_open((char *const *)&call->text, 1) : NULL;
    int result = !corpus || vocab_build(&vocab, corpus, &options, pool) || save_vocabulary(call, &vocab) ? -1 : 0;
    vocab_release(&vocab);
    corpus_close(corpus);
    if (pool) pool_close(pool);
    return result;
}

/* ---- vectors or classes ---- */

static int write_output(const struct call *call, const struct config *config) {
    struct model model;
    struct interrupt watch;
    char words[TEXT_BYTES];
    if (model_open(&model, config->run_dir)) return -1;
    struct export export = {.model = &model,
                            .view = VIEW_TARGET,
                            .rows = model.vocab.size,
                            .classes = (uint32_t)call->classes,
                            .threads = (unsigned)config->device_threads};
    enum export_format format = call->classes ? EXPORT_CLASSES : call->binary ? EXPORT_WORD2VEC_BIN : EXPORT_WORD2VEC_TEXT;
    interrupt_watch(&watch);
    int result = (*call->save && save_vocabulary(call, &model.vocab)) || export_write(&export, format, call->output) ? -1 : 0;
    interrupt_end(&watch);
    if (!result)
        note("wrote '%s': %s of %s words", call->output, call->classes ? "classes" : "vectors",
             text_of_count(words, model.vocab.size));
    model_close(&model);
    return result || run_directory_remove(config->run_dir) ? -1 : 0;
}

/* Removes the directory of the run, unless something is left in it: the run of a call that was stopped, or the encoded corpus. */
static int leave_place(const struct call *call) {
    char *run = file_join(call->place, "run");
    int there = run ? file_exists(run) : -1;
    free(run);
    return there ? there < 0 ? -1 : 0 : directory_mark_remove(call->place, &mark);
}

static int train_and_write(struct call *call, struct config *config) {
    const struct trainer_options how = {.overwrite = 1, .judge = judge_checkpoint};
    if (*call->read && read_vocabulary(call, config)) return -1;
    if (config_resolve(config) || check_outputs(call, config->run_dir)) return -1;
    if (config_ranks(config) > 1)
        return fail_usage("word2vec trains in one process; 'sptx-w2v train' takes device.gpus and device.ranks");
    if (!*call->output) return count_words(call, config);
    if (make_place(call, config)) return -1;
    int result = trainer_run(config, &how) ? -1 : write_output(call, config);
    return leave_place(call) || result ? -1 : 0;
}

/* sptx-w2v word2vec -train FILE -output FILE [-flag value ...] [--section.key=value ...] */
int cmd_word2vec(int argc, char **argv) {
    struct call call = {.words = -1};
    struct config config = {.name = NULL};
    int result =
        config_init(&config) || word2vec_flags_read(call.flags, &config, WORD2VEC, argc, argv) || read_counts(&call) ? -1 : 0;
    if (!result && !call.debug) report_quiet(1);
    if (!result) result = set_keys(&config, &call);
    for (int i = 1; i < argc && !result; i++)
        if (!strncmp(argv[i], "--", 2)) result = config_argument(&config, argv[i]);
    if (!result) result = train_and_write(&call, &config);
    if (call.words >= 0) close(call.words);
    free(call.place);
    config_release(&config);
    return result;
}

/* sptx-w2v word2phrase -train FILE -output FILE [-min-count 5] [-threshold 100] [-debug 2] */
int cmd_word2phrase(int argc, char **argv) {
    struct word2vec_flag flags[WORD2VEC_FLAGS];
    struct config config = {.name = NULL};
    uint64_t debug = 0;
    int result = config_init(&config) || word2vec_flags_read(flags, &config, WORD2PHRASE, argc, argv) ||
                         word2vec_flag_count(flags, WORD2PHRASE, "-debug", 9, &debug) ? -1 : 0;
    const char *text = result ? "" : word2vec_flag(flags, WORD2PHRASE, "-train"),
               *output = result ? "" : word2vec_flag(flags, WORD2PHRASE, "-output");
    if (!result && !debug) report_quiet(1);
    if (!result && (!*text || !*output))
        result = fail_usage("word2phrase wants -train FILE and -output FILE; see 'sptx-w2v help word2phrase'");
    if (!result) result = config_resolve(&config);
    if (!result) result = command_join_words(&config, &text, 1, output, 1);
    config_release(&config);
    return result;
}
