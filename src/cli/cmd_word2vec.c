/* word2vec, word2phrase, distance, word-analogy and compute-accuracy: the programs of word2vec.c, with their flags and files. */
#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "config/config.h"
#include "corpus/vocab.h"
#include "programs.h"
#include "run/run_directory.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"
#include "vectors/export.h"
#include "vectors/list_scores.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- word2vec and word2phrase ---- */

enum { MOST_CLASSES = 1000000 };

static const struct directory_mark mark = {"word2vec", "sptx-w2v word2vec trains its run in this directory, and removes it\n"};

/* A call of word2vec: the values of its flags. */
struct call {
    struct program_flag flags[PROGRAM_FLAGS];
    char *place; /* directory with the mark, in which the run is trained; owned; NULL: nothing is trained */
    uint64_t hs, threads, classes, binary, cbow;
    const char *text, *output, *save, *read; /* paths; "": the flag is not given */
    int words;                               /* descriptor of a nameless file with the words of -read-vocab; -1: none */
};

static const char *flag(const struct call *call, const char *name) {
    return program_flag(call->flags, WORD2VEC, name);
}

static int read_counts(struct call *call) {
    const struct {
        const char *name;
        uint64_t most, *count;
    } counts[] = {{"-hs", 1, &call->hs}, {"-threads", 4096, &call->threads}, {"-classes", MOST_CLASSES, &call->classes},
                  {"-binary", 1, &call->binary}, {"-cbow", 1, &call->cbow}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (program_flag_count(call->flags, WORD2VEC, counts[i].name, counts[i].most, counts[i].count)) return -1;
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
        return fail("word2vec: -hs 1 with negatives trains two tables of contexts, and this program trains one; add -negative 0, or take -hs 0");
    if (call->hs && command_set_key(config, "train.loss", "hierarchical")) return -1;
    return program_set_path(config, "corpus.path", call->text, "") ||
                   (*call->output && program_set_path(config, "run.dir", call->output, ".run")) ? -1 : 0;
}

/* ---- what would be lost ---- */

/* Checks in advance that the outputs can be written, and that they overwrite no file of the user's. */
static int check_outputs(const struct call *call, const char *run) {
    const char *const files[][2] = {{"-train", call->text}, {"-read-vocab", call->read}, {"--run.dir", *call->output ? run : ""},
                                    {"-output", call->output}, {"-save-vocab", call->save}};
    for (int output = 3; output < 5; output++) {
        const char *name = files[output][0], *path = files[output][1];
        for (int other = 0; other < output; other++) {
            const char *other_path = files[other][1];
            int same = *path && *other_path && strcmp(other_path, CORPUS_INPUT) ? file_is_same(path, other_path) : 0;
            if (same == 1) return fail_usage("word2vec: %s and %s are the same file, '%s'; choose another", name, files[other][0], path);
            if (same) return -1;
        }
        if (*path && (run_owns_refuse(path, name) || file_check_place(path))) return -1;
    }
    return 0;
}

/* ---- vocabularies: lines of word, blank, count ---- */

static int save_vocabulary(const struct call *call, const struct vocab *vocab) {
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    int result = file_writer_open_given(&writer, call->save) || file_print(&writer, "</s> 0\n") ? -1 : 0;
    for (uint64_t id = 0; id < vocab->size && !result; id++)
        result = file_print(&writer, "%s %" PRIu64 "\n", vocab_word(vocab, id, NULL), vocab_count(vocab, id));
    return result ? -1 : file_commit(&writer);
}

/* Only counts the text's words, since there is no -output. */
static int count_words(const struct call *call, const struct config *config) {
    const struct corpus_options options = config_corpus(config);
    ENDED_BY(vocab_release) struct vocab vocab = {0};
    ENDED_BY(pool_end) struct pool *pool = pool_open((unsigned)config->device_threads);
    ENDED_BY(corpus_end) struct corpus *corpus = pool ? corpus_open((char *const *)&call->text, 1) : NULL;
    return !corpus || vocab_build(&vocab, corpus, &options, pool) || save_vocabulary(call, &vocab) ? -1 : 0;
}

/* ---- vectors or classes ---- */

static int write_output(const struct call *call, const struct config *config) {
    ENDED_BY(model_close) struct model model = {0};
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
    return result || run_directory_remove(config->run_dir) ? -1 : 0;
}

static int train_and_write(struct call *call, struct config *config) {
    const struct trainer_options how = {.overwrite = 1, .judge = judge_checkpoint};
    if (*call->read && program_read_words(call->read, config->corpus_min_count, "</s>", config, &call->words)) return -1;
    if (config_resolve(config) || check_outputs(call, config->run_dir)) return -1;
    if (config_ranks(config) > 1)
        return fail_usage("word2vec trains in one process; 'sptx-w2v train' takes device.gpus and device.ranks");
    if (!*call->output) return count_words(call, config);
    if (program_make_place(config, &mark, &call->place)) return -1;
    int result = trainer_run(config, &how) ? -1 : write_output(call, config);
    return program_leave_place(call->place, &mark) || result ? -1 : 0;
}

/* sptx-w2v word2vec -train FILE -output FILE [-flag value ...] [--section.key=value ...] */
int cmd_word2vec(int argc, char **argv) {
    struct call call = {.words = -1};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    int result = program_flags_read(call.flags, &config, WORD2VEC, argc, argv) || read_counts(&call) || set_keys(&config, &call) ? -1 : 0;
    for (int i = 1; i < argc && !result; i++)
        if (!strncmp(argv[i], "--", 2)) result = config_argument(&config, argv[i], "command line");
    if (!result) result = train_and_write(&call, &config);
    if (call.words >= 0) close(call.words);
    free(call.place);
    return result;
}

/* sptx-w2v word2phrase -train FILE -output FILE [-min-count 5] [-threshold 100] [-debug 2] */
int cmd_word2phrase(int argc, char **argv) {
    struct program_flag flags[PROGRAM_FLAGS];
    ENDED_BY(config_release) struct config config = {.name = NULL};
    if (program_flags_read(flags, &config, WORD2PHRASE, argc, argv)) return -1;
    const char *text = program_flag(flags, WORD2PHRASE, "-train"), *output = program_flag(flags, WORD2PHRASE, "-output");
    if (!*text || !*output) return fail_usage("word2phrase wants -train FILE and -output FILE; see 'sptx-w2v help word2phrase'");
    return config_resolve(&config) ? -1 : command_join_words(&config, &text, 1, output, 1);
}

/* ---- programs that answer questions from a file of vectors ---- */

enum { ANSWERS = 40, SEMANTIC_SECTIONS = 5 };

/* Reads a command's arguments: at least a file, at most `most` in all. */
static int read_file_argument(struct arguments *arguments, struct config *config, int argc, char **argv, int most) {
    const struct option options[] = {{0}};
    if (arguments_read(arguments, argv[0], argc, argv, options, "device, memory")) return -1;
    if (arguments->count < 1 || arguments->count > most)
        return fail_usage("%s wants a file of vectors, %d arguments given; see 'sptx-w2v help %s'", argv[0], arguments->count,
                          argv[0]);
    return arguments_config(config, 0, NULL, arguments);
}

static int ask_words(int argc, char **argv, int analogy) {
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    return read_file_argument(&arguments, &config, argc, argv, 1) ? -1 : command_prompt(arguments.given[0], analogy, 0, ANSWERS, &config);
}

/* sptx-w2v distance FILE */
int cmd_distance(int argc, char **argv) {
    return ask_words(argc, argv, 0);
}

/* sptx-w2v word-analogy FILE */
int cmd_word_analogy(int argc, char **argv) {
    return ask_words(argc, argv, 1);
}

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_sections(const struct analogies_section *sections, uint64_t count) {
    uint64_t asked[2] = {0, 0}, right[2] = {0, 0}, total = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct analogies_section *section = &sections[i];
        int syntactic = i > SEMANTIC_SECTIONS;
        total += section->total;
        asked[syntactic] += section->covered;
        right[syntactic] += section->right;
        if (!i) continue; /* like compute-accuracy.c, prints nothing for questions before the first section */
        terminal_print_name(section->name);
        printf(":\nACCURACY TOP1: %.2f %%  (%" PRIu64 " / %" PRIu64 ")\n", percent(section->right, section->covered),
               section->right, section->covered ? section->covered : 1);
        printf("Total accuracy: %.2f %%   Semantic accuracy: %.2f %%   Syntactic accuracy: %.2f %% \n",
               percent(right[0] + right[1], asked[0] + asked[1]), percent(right[0], asked[0]), percent(right[1], asked[1]));
    }
    printf("Questions seen / total: %" PRIu64 " %" PRIu64 "   %.2f %% \n", asked[0] + asked[1], total,
           percent(asked[0] + asked[1], total));
}

/* sptx-w2v compute-accuracy FILE [THRESHOLD] < QUESTIONS */
int cmd_compute_accuracy(int argc, char **argv) {
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    ENDED_BY(model_close) struct model model = {.rows = 0};
    struct analogies_section *sections = NULL;
    uint64_t most = 0, count = 0;
    if (read_file_argument(&arguments, &config, argc, argv, 2)) return -1;
    if (arguments.count == 2 && text_count(arguments.given[1], &most))
        return fail_usage("compute-accuracy: THRESHOLD = '%.100s' is not a whole number", arguments.given[1]);
    int view = model_open(&model, arguments.given[0]) ? -1 : answers_view_named(&model, NULL, (unsigned)config.device_threads);
    if (view < 0) return -1;
    int result = evaluate_analogies_sections(&sections, &count, &model, (enum model_view)view, "/dev/stdin", most, &config);
    if (!result) print_sections(sections, count);
    analogies_sections_free(sections, count);
    return result;
}
