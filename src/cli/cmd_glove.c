/* vocab_count, cooccur, shuffle and glove: the programs of GloVe (Pennington et al., 2014), with their flags and files.
 *
 *   text --vocab_count--> lines of word, count --cooccur (and the text)--> records --shuffle--> records --glove--> vectors
 *
 * A record is GloVe's struct: the numbers of two words, from 1, and their count. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "corpus/cooccur.h"
#include "corpus/counts.h"
#include "programs.h"
#include "run/run_directory.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct glove_record {
    int32_t row, column;
    double count;
};
_Static_assert(sizeof(struct glove_record) == 16, "a record of GloVe's files");

static const char output_path[] = "/dev/stdout";

/* ---- vocab_count ---- */

static const struct vocab *sorted; /* the vocabulary whose ids are being sorted */

static int by_count_and_word(const void *a, const void *b) {
    uint64_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (vocab_count(sorted, x) != vocab_count(sorted, y)) return vocab_count(sorted, x) < vocab_count(sorted, y) ? 1 : -1;
    return strcmp(vocab_word(sorted, x, NULL), vocab_word(sorted, y, NULL));
}

static int print_words(const struct vocab *vocab) {
    ENDED_BY(file_abandon) struct file_writer out = {.fd = -1};
    OWNED uint32_t *ids = mem_alloc(vocab->size, sizeof *ids, "sorting words");
    if (!ids || file_writer_open_given(&out, output_path)) return -1;
    for (uint64_t i = 0; i < vocab->size; i++) ids[i] = (uint32_t)i;
    sorted = vocab;
    qsort(ids, vocab->size, sizeof *ids, by_count_and_word);
    int result = 0;
    for (uint64_t i = 0; i < vocab->size && !result; i++)
        result = file_print(&out, "%s %" PRIu64 "\n", vocab_word(vocab, ids[i], NULL), vocab_count(vocab, ids[i]));
    return result ? -1 : file_commit(&out);
}

/* sptx-w2v vocab_count [-verbose 2] [-max-vocab 0] [-min-count 1] < TEXT > VOCAB */
int cmd_vocab_count(int argc, char **argv) {
    struct program_flag flags[PROGRAM_FLAGS];
    ENDED_BY(config_release) struct config config = {.name = NULL};
    ENDED_BY(vocab_release) struct vocab vocab = {0};
    char *const input = CORPUS_INPUT;
    int result = program_flags_read(flags, &config, VOCAB_COUNT, argc, argv) || config_resolve(&config) ? -1 : 0;
    ENDED_BY(pool_end) struct pool *pool = result ? NULL : pool_open((unsigned)config.device_threads);
    ENDED_BY(corpus_end) struct corpus *corpus = pool ? corpus_open(&input, 1) : NULL;
    const struct corpus_options options = config_corpus(&config);
    return !corpus || vocab_build(&vocab, corpus, &options, pool) || print_words(&vocab) ? -1 : 0;
}

/* ---- cooccur ---- */

/* A text as the ids of its words, without the words that the vocabulary does not contain; owned. */
struct read_text {
    uint32_t *ids;
    uint64_t *starts, tokens, sentences, id_capacity, start_capacity;
};

static int end_line(struct read_text *text) {
    if (text->tokens == text->starts[text->sentences]) return 0;
    if (mem_grow(&text->starts, &text->start_capacity, text->sentences + 2, sizeof *text->starts, "a text's lines")) return -1;
    text->starts[++text->sentences] = text->tokens;
    return 0;
}

static int read_words(struct read_text *text, struct corpus *corpus, const struct vocab *vocab) {
    ENDED_BY(corpus_block_release) struct corpus_block block = {0};
    struct corpus_cursor cursor;
    const char *word;
    uint64_t length;
    int more = mem_grow(&text->starts, &text->start_capacity, 1, sizeof *text->starts, "a text's lines") ? -1 : 1, kind;
    if (more > 0) text->starts[0] = 0;
    while (more > 0 && !interrupt_check() && (more = corpus_next(corpus, &block)) > 0) {
        corpus_cursor_start(&cursor, &block);
        while (more > 0 && (kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
            int64_t id = kind == TOKEN_WORD ? vocab_find(vocab, word, length) : -1;
            if (kind == TOKEN_NEWLINE ? end_line(text)
                                      : id >= 0 && mem_grow(&text->ids, &text->id_capacity, text->tokens + 1, sizeof *text->ids, "a text"))
                more = -1;
            else if (id >= 0)
                text->ids[text->tokens++] = (uint32_t)id;
        }
    }
    return more || end_line(text) ? -1 : 0;
}

static int write_records(struct cooccur *cooccur) {
    ENDED_BY(file_abandon) struct file_writer out = {.fd = -1};
    struct cooccur_pair pair;
    char text[TEXT_BYTES];
    uint64_t records = 0;
    int more = 1;
    if (file_writer_open_given(&out, output_path)) return -1;
    while ((more = cooccur_next(cooccur, &pair)) > 0) {
        struct glove_record record = {(int32_t)pair.row + 1, (int32_t)pair.column + 1, (double)pair.units / (double)cooccur_unit(cooccur)};
        records++;
        if (file_write(&out, &record, sizeof record)) break;
    }
    int result = more || file_commit(&out) ? -1 : 0;
    if (!result) note("cooccur    %s records", text_of_count(text, records));
    return result;
}

/* Counts the pairs of words in standard input that the vocabulary contains. */
static int count_input(const struct program_flag *flags, struct config *config) {
    struct cooccur_wanted wanted = {.path = "./overflow"};
    struct read_text text = {NULL};
    ENDED_BY(vocab_release) struct vocab vocab = {0};
    uint64_t window, symmetric, weighting;
    double memory;
    int words = -1;
    char *const input = CORPUS_INPUT;
    if (program_flag_count(flags, COOCCUR, "-window-size", 4096, &window) || program_flag_count(flags, COOCCUR, "-symmetric", 1, &symmetric) ||
        program_flag_count(flags, COOCCUR, "-distance-weighting", 1, &weighting))
        return -1;
    if (text_real(program_flag(flags, COOCCUR, "-memory"), &memory) || !(memory > 0) || memory > 1e9)
        return fail_usage("cooccur: -memory = '%.100s' is not a number of GB above 0", program_flag(flags, COOCCUR, "-memory"));
    if (!window) return fail_usage("cooccur: -window-size = 0 has no words; wanted 1 to 4096");
    wanted.window = (uint32_t)window, wanted.one_sided = !symmetric, wanted.flat = !weighting, wanted.memory = (uint64_t)(memory * 1e9);
    if (program_read_words(program_flag(flags, COOCCUR, "-vocab-file"), 0, NULL, config, &words)) return -1;
    ENDED_BY(pool_end) struct pool *pool = vocab_read(&vocab, config->corpus_vocab) ? NULL : pool_open((unsigned)config->device_threads);
    ENDED_BY(corpus_end) struct corpus *corpus = pool ? corpus_open(&input, 1) : NULL;
    int result = !corpus ? -1
                 : vocab.size > INT32_MAX ? fail("a vocabulary of %" PRIu64 " words has numbers beyond the 31 bits of GloVe's records", vocab.size)
                                          : read_words(&text, corpus, &vocab);
    struct cooccur_text counted = {text.ids, text.starts, text.tokens, text.sentences, vocab.size};
    struct cooccur *cooccur = result ? NULL : cooccur_open(&counted, &wanted, pool);
    result = cooccur ? write_records(cooccur) : -1;
    cooccur_close(cooccur);
    mem_free(text.ids, text.starts);
    if (words >= 0) close(words);
    return result;
}

/* sptx-w2v cooccur [-window-size 15] [-vocab-file vocab.txt] [-memory 4.0] .. < TEXT > RECORDS */
int cmd_cooccur(int argc, char **argv) {
    struct program_flag flags[PROGRAM_FLAGS];
    ENDED_BY(config_release) struct config config = {.name = NULL};
    return program_flags_read(flags, &config, COOCCUR, argc, argv) || count_input(flags, &config) ? -1 : 0;
}

/* ---- shuffle ---- */

/* sptx-w2v shuffle [-memory 4.0] .. < RECORDS > RECORDS */
int cmd_shuffle(int argc, char **argv) {
    struct program_flag flags[PROGRAM_FLAGS];
    ENDED_BY(config_release) struct config config = {.name = NULL};
    ENDED_BY(file_abandon) struct file_writer out = {.fd = -1};
    char bytes[1 << 16];
    int result = program_flags_read(flags, &config, SHUFFLE, argc, argv) || file_writer_open_given(&out, output_path) ? -1 : 0;
    for (ssize_t count; !result && (count = read(STDIN_FILENO, bytes, sizeof bytes)) != 0;)
        result = count < 0 ? fail_system("read", "standard input") : file_write(&out, bytes, (uint64_t)count) || interrupt_check() ? -1 : 0;
    if (!result) result = file_commit(&out);
    if (!result) note("shuffle    copied the records as they are: glove draws their order anew in each epoch");
    return result;
}

/* ---- glove ---- */

static const struct directory_mark mark = {"glove", "sptx-w2v glove trains its run in this directory, and removes it\n"};

/* A call of glove. */
struct glove_call {
    struct program_flag flags[PROGRAM_FLAGS];
    uint64_t binary, model, header, threads;
    char *place, *records; /* place: directory with the mark; records: file of counts in it. Owned */
    int words;             /* descriptor of the nameless file of words; -1: none */
};

static int read_glove_flags(struct glove_call *call, struct config *config) {
    const struct {
        const char *name;
        uint64_t most, *count;
    } counts[] = {{"-binary", 2, &call->binary},
                  {"-model", 3, &call->model},
                  {"-write-header", 1, &call->header},
                  {"-threads", 4096, &call->threads}};
    static const char *const zeros[] = {"-save-gradsq", "-checkpoint-every", "-load-init-param", "-save-init-param", "-load-init-gradsq"};
    char text[TEXT_BYTES], threads[TEXT_BYTES];
    double eta;
    unsigned cores = pool_cores();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (program_flag_count(call->flags, GLOVE, counts[i].name, counts[i].most, counts[i].count)) return -1;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        if (strcmp(program_flag(call->flags, GLOVE, zeros[i]), "0"))
            return fail("glove: %s is not done here: 'sptx-w2v train --train.loss=glove' has checkpoints with all parameters and sums, and goes on "
                        "from them (--resume, train.from)", zeros[i]);
    if (strcmp(program_flag(call->flags, GLOVE, "-grad-clip"), "100") && strcmp(program_flag(call->flags, GLOVE, "-grad-clip"), "100.0"))
        return fail("glove: -grad-clip is 100 here, and cannot be %.100s; leave it out", program_flag(call->flags, GLOVE, "-grad-clip"));
    if (text_real(program_flag(call->flags, GLOVE, "-eta"), &eta) || !(eta >= 1e-3) || eta > 30)
        return fail_usage("glove: -eta = '%.100s' is not a number from 0.001 to 30", program_flag(call->flags, GLOVE, "-eta"));
    snprintf(text, sizeof text, "%.9g", 1 / (eta * eta));
    snprintf(threads, sizeof threads, "%" PRIu64, call->threads && call->threads < cores ? call->threads : cores);
    const char *const keys[][2] = {{"train.loss", "glove"}, {"optimizer.lr", "1"}, {"optimizer.initial_accumulator", text},
                                   {"device.threads", threads},
                                   {"run.checkpoint_every", "end"}, {"run.keep", "1"},     {"corpus.min_count", "0"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (command_set_key(config, keys[i][0], keys[i][1])) return -1;
    return program_set_path(config, "run.dir", program_flag(call->flags, GLOVE, "-save-file"), ".run");
}

/* Sorts the records by their first word, and writes them as a stream of counts (corpus/counts.h). */
static int sort_records(const struct glove_call *call, const struct vocab *vocab, const struct config *config, const struct glove_record *records,
                        uint64_t count, const char *path) {
    struct counts_writer writer;
    const char *input = program_flag(call->flags, GLOVE, "-input-file");
    uint64_t words = vocab->size, *starts = mem_zalloc(words + 2, sizeof *starts, "the records' words");
    struct entry {
        uint32_t column;
        float count;
    } *entries = mem_alloc(count, sizeof *entries, "the records");
    int result = starts && entries ? 0 : -1;
    for (uint64_t i = 0; i < count && !result; i++) {
        const struct glove_record *r = &records[i];
        if (r->row < 1 || (uint64_t)r->row > words || r->column < 1 || (uint64_t)r->column > words)
            result = fail("'%s': record %" PRIu64 " has the words %d and %d; wanted numbers from 1 to %" PRIu64 ", the lines of '%s'",
                          input, i + 1, r->row, r->column, words, program_flag(call->flags, GLOVE, "-vocab-file"));
        else if (!(r->count > 0) || !(r->count < 3e38))
            result = fail("'%s': record %" PRIu64 " counts %g; wanted a number above 0", input, i + 1, r->count);
        else
            starts[r->row + 1]++;
    }
    for (uint64_t w = 0; w < words && !result; w++) starts[w + 1] += starts[w];
    for (uint64_t i = 0; i < count && !result; i++)
        entries[starts[records[i].row]++] = (struct entry){(uint32_t)records[i].column - 1, (float)records[i].count};
    if (!result) result = counts_writer_open(&writer, path, (uint32_t)config->examples_positives);
    else writer = (struct counts_writer){.fd = -1, .out.file.fd = -1};
    for (uint64_t w = 0, i = 0; w < words && !result; w++)
        for (; i < starts[w + 1] && !result; i++) result = counts_writer_put(&writer, (uint32_t)w, entries[i].column, entries[i].count);
    if (!result) result = counts_writer_commit(&writer, vocab_fingerprint(vocab));
    counts_writer_abandon(&writer);
    mem_free(starts, entries);
    return result;
}

static int read_records(struct glove_call *call, const struct config *config) {
    const char *path = program_flag(call->flags, GLOVE, "-input-file");
    ENDED_BY(vocab_release) struct vocab vocab = {0};
    ENDED_BY(file_map_close) struct file_map map = {NULL, 0};
    int result = vocab_read(&vocab, config->corpus_vocab) || file_map_open(&map, path) ? -1 : 0;
    if (!result && (!map.size || map.size % sizeof(struct glove_record)))
        result = fail("'%s' has %" PRIu64 " bytes, which are no records of 16 bytes each, as cooccur writes them", path, map.size);
    if (!result)
        result = sort_records(call, &vocab, config, (const struct glove_record *)(const void *)map.data,
                              map.size / sizeof(struct glove_record), call->records);
    return result;
}

/* ---- its output ---- */

enum { RARE = 100 }; /* words of which the vector of <unk> is the mean */

/* Adds `share` x a row's parameters to out[2 x (dim + 1)]: vector and bias of the word, then of the context. */
static void add_parameters(const struct model *model, uint64_t row, double share, double *out) {
    float values[COLUMNS_MOST];
    uint32_t dim = model->dim;
    for (int side = TABLE_TARGET; side <= TABLE_CONTEXT; side++) {
        model_weights(model, (enum table_side)side, row, 0, dim + model->biases, values);
        for (uint32_t j = 0; j < dim; j++) out[j] += share * (double)values[j];
        out[dim] += share * (double)values[side == TABLE_TARGET ? dim : dim + 1];
        out += dim + 1;
    }
}

/* Prints SAVE.txt; -model says which parameters a line contains. */
static int print_text(const struct glove_call *call, const struct model *model, const char *path) {
    ENDED_BY(file_abandon) struct file_writer out = {.fd = -1};
    double values[2 * COLUMNS_MOST];
    uint64_t rare = model->rows < RARE ? model->rows : RARE;
    int result = file_writer_open_given(&out, path);
    if (!result && call->header) result = file_print(&out, "%" PRIu64 " %" PRIu32 "\n", model->rows, model->dim);
    for (uint64_t row = 0; row <= model->rows && !result; row++) {
        memset(values, 0, sizeof values);
        if (row < model->rows) add_parameters(model, row, 1, values);
        else for (uint64_t i = model->rows - rare; i < model->rows; i++) add_parameters(model, i, 1 / (double)rare, values);
        result = file_print(&out, "%s", row < model->rows ? vocab_word(&model->vocab, row, NULL) : "<unk>");
        for (uint32_t side = 0; side < (call->model == 0 || call->model == 3 ? 2u : 1u); side++)
            for (uint32_t j = 0; j < model->dim + (call->model == 0) && !result; j++)
                result = file_print(&out, " %f", values[side * (model->dim + 1) + j] + (call->model == 2 ? values[model->dim + 1 + j] : 0));
        if (!result) result = file_print(&out, "\n");
    }
    return result ? -1 : file_commit(&out);
}

static int write_doubles(const struct model *model, const char *path) {
    ENDED_BY(file_abandon) struct file_writer out = {.fd = -1};
    double values[2 * COLUMNS_MOST];
    int result = file_writer_open_given(&out, path);
    for (int side = 0; side < 2; side++)
        for (uint64_t row = 0; row < model->rows && !result; row++) {
            memset(values, 0, sizeof values);
            add_parameters(model, row, 1, values);
            result = file_write(&out, values + (uint64_t)side * (model->dim + 1), (model->dim + 1) * sizeof *values);
        }
    return result ? -1 : file_commit(&out);
}

static int write_output(const struct glove_call *call, const struct config *config) {
    const char *save = program_flag(call->flags, GLOVE, "-save-file");
    char path[4096], words[TEXT_BYTES];
    ENDED_BY(model_close) struct model model = {0};
    struct interrupt watch;
    if (model_open(&model, config->run_dir)) return -1;
    interrupt_watch(&watch);
    int result = 0;
    for (uint64_t kind = 0; kind < 2 && !result; kind++) {
        if (call->binary == 1 - kind) continue; /* 0: only the text; 1: only the doubles */
        snprintf(path, sizeof path, "%s.%s", save, kind ? "bin" : "txt");
        result = kind ? write_doubles(&model, path) : print_text(call, &model, path);
        if (!result) note("wrote '%s': vectors of %s words", path, text_of_count(words, model.vocab.size));
    }
    interrupt_end(&watch);
    return result || run_directory_remove(config->run_dir) ? -1 : 0;
}

/* Refuses to overwrite a file that this call reads, or a file of another run. */
static int check_outputs(const struct glove_call *call) {
    static const char *const endings[] = {"txt", "bin"};
    char path[4096];
    for (uint64_t kind = 0; kind < 2; kind++) {
        if (call->binary == 1 - kind) continue;
        if ((size_t)snprintf(path, sizeof path, "%s.%s", program_flag(call->flags, GLOVE, "-save-file"), endings[kind]) >= sizeof path)
            return fail_usage("a path is longer than %zu bytes", sizeof path);
        for (int i = 0; i < 2; i++) {
            const char *flag = i ? "-input-file" : "-vocab-file";
            int same = file_is_same(path, program_flag(call->flags, GLOVE, flag));
            if (same) return same < 0 ? -1 : fail_usage("glove: -save-file would write '%s', which is %s; choose another", path, flag);
        }
        if (run_owns_refuse(path, "-save-file") || file_check_place(path)) return -1;
    }
    return 0;
}

static int train_and_write(struct glove_call *call, struct config *config) {
    const struct trainer_options how = {.overwrite = 1, .judge = judge_checkpoint};
    const char *input = program_flag(call->flags, GLOVE, "-input-file");
    if (file_exists(input) != 1) return fail("'%s' does not exist; -input-file names the records that cooccur wrote", input);
    if (program_read_words(program_flag(call->flags, GLOVE, "-vocab-file"), 0, NULL, config, &call->words) || config_resolve(config) ||
        check_outputs(call) ||
        program_make_place(config, &mark, &call->place) || !(call->records = file_join(call->place, "records.ids")))
        return -1;
    int result = read_records(call, config) || program_set_path(config, "corpus.path", call->records, "") || trainer_run(config, &how)
                     ? -1 : write_output(call, config);
    file_remove(call->records);
    return program_leave_place(call->place, &mark) || result ? -1 : 0;
}

/* sptx-w2v glove -input-file RECORDS -vocab-file VOCAB -save-file SAVE [-flag value ...] [--section.key=value ...] */
int cmd_glove(int argc, char **argv) {
    struct glove_call call = {.words = -1};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    int result = program_flags_read(call.flags, &config, GLOVE, argc, argv) || read_glove_flags(&call, &config) ? -1 : 0;
    for (int i = 1; i < argc && !result; i++)
        if (!strncmp(argv[i], "--", 2)) result = config_argument(&config, argv[i], "command line");
    if (!result) result = train_and_write(&call, &config);
    if (call.words >= 0) close(call.words);
    mem_free(call.records, call.place);
    return result;
}
