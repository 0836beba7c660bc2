#include "model_files.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "checkpoint.h"
#include "config/config.h"
#include "kernels/rounding.h"
#include "rows/values.h"
#include "rows/vectors_file.h"
#include "tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Maps DIRECTORY/NAME, and checks that its size fits the model. The table has `part` rows or, in older runs, one row for each
 * word. */
static int open_table(struct npy *npy, const struct model *model, const char *directory, const char *name, uint64_t part) {
    char *path = file_join(directory, name);
    int result = path ? npy_open(npy, path) : -1;
    const struct npy_field *weights = result ? NULL : npy_find(npy, "weights");
    int shared = model->vocab.subwords.rows && part > model->rows; /* every table has the rows of n-grams */
    if (!result && (!weights || weights->kind == 'u')) result = fail("'%s' has no field 'weights' of float32 or bfloat16", path);
    if (!result && npy->rows != part && (shared || npy->rows != model->rows))
        result = fail("'%s' has %" PRIu64 " rows, but '%s/vocab.tsv' has %" PRIu64 " words%s", path, npy->rows,
                       model->directory, model->rows, shared ? ", whose n-grams have others than that (examples.subwords)" : "");
    if (!result && model->dim && weights->columns != model->dim)
        result = fail("'%s' has %u columns, but target.npy has %u", path, weights->columns, model->dim);
    free(path);
    return result;
}

static int read_vocab(struct vocab *vocab, const char *directory) {
    char *path = file_join(directory, "vocab.tsv");
    int result = path ? vocab_read(vocab, path) : -1;
    free(path);
    return result;
}

static int read_words(struct model *model) {
    int result = read_vocab(&model->vocab, model->directory);
    model->rows = model->vocab.size;
    if (result || strcmp(vocab_prefix(&model->vocab), VOCAB_RELATION)) return result;
    model->reciprocal = vocab_is_reciprocal(&model->vocab);
    model->relations = model->vocab.lists / (model->reciprocal ? 2 : 1);
    return 0;
}

static int32_t bounded(uint64_t value, int32_t fallback) {
    return value == COUNT_AUTO ? fallback : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static struct fasttext_args args_of(const struct config *config, const struct subword_form *form) {
    int cbow = config->examples_mode == MODE_CBOW, words = cbow || config->examples_mode == MODE_WINDOW;
    return (struct fasttext_args){.dim = (int32_t)config->model_dim,
                                  .window = bounded(config->examples_window, 5),
                                  .epochs = bounded(config->train_epochs, 5),
                                  .min_count = bounded(config->corpus_min_count, 5),
                                  .negatives = bounded(config->negatives_count, 5),
                                  .word_ngrams = 1,
                                  .loss = FASTTEXT_NEGATIVES,
                                  .model = !words ? 0 : cbow ? FASTTEXT_CBOW : FASTTEXT_SKIPGRAM,
                                  .buckets = form->max ? (int32_t)form->buckets : 0,
                                  .min = (int32_t)form->min,
                                  .max = (int32_t)form->max,
                                  .update_rate = 100, /* fastText's default: how often its threads report progress */
                                  .subsample = config->examples_subsample};
}

static int take_keys(struct model *model, const struct config *config) {
    model->mode = config->examples_mode;
    model->tree = config_has_tree(config);
    model->cosine = config->train_score == SCORE_COSINE;
    model->own = config->examples_own;
    model->documents = config_has_documents(config);
    model->product = config->train_product == TRAIN_REAL ? PRODUCT_REAL : PRODUCT_COMPLEX;
    model->loss = config_loss(config);
    if (model->reciprocal && !config->triples_reciprocal) { /* the data itself has relations r and r^-1 */
        model->reciprocal = 0;
        model->relations = model->vocab.lists;
    }
    model->negatives = (struct model_negatives){.count = config->negatives_count,
                                                .law = config->negatives_law,
                                                .exclude = config->negatives_exclude,
                                                .power = config->negatives_power};
    model->seed = (uint32_t)config->train_seed;
    const struct subword_form form = config_subwords(config);
    if (subwords_make(&model->vocab.subwords, &form, &model->vocab)) return -1;
    model->trained = args_of(config, &form);
    if (model->mode == MODE_AUTO) return 0; /* without config.ini the first values are unknown */
    return tables_first_values(&model->first[TABLE_TARGET], config, TABLE_TARGET) ||
                   tables_first_values(&model->first[TABLE_CONTEXT], config, TABLE_CONTEXT) ? -1 : 0;
}

/* Reads the keys with which the rows were trained. If config.ini is lost, the keys have their defaults. */
static int read_keys(struct model *model) {
    struct config config;
    char *path = file_join(model->directory, "config.ini");
    int result = config_init(&config) || !path || (file_exists(path) && config_read(&config, path)) ? -1 : 0;
    if (!result) result = take_keys(model, &config);
    config_release(&config);
    free(path);
    return result;
}

/* Verifies the tables by the checksums in state.ini, and that the vocabulary is the one that they were trained with. */
static int verify(struct model *model, const char *checkpoint) {
    if (checkpoint_verify(checkpoint, &model->state)) return -1;
    if (model->state.corpus.vocab != vocab_fingerprint(&model->vocab))
        return fail("'%s/vocab.tsv' is not the vocabulary that '%s' was trained with", model->directory, checkpoint);
    uint64_t rows = vocab_targets(&model->vocab);
    if (model->state.target_first != rows - model->target.rows)
        return fail("'%s/state.ini' says that target.npy begins with row %" PRIu64 ", but its %" PRIu64 " rows of %" PRIu64
                    " words begin with %" PRIu64,
                    checkpoint, model->state.target_first, model->target.rows, rows, rows - model->target.rows);
    model->tree = model->state.corpus.tree != 0;
    if (model->state.target_first) model->own = 1; /* state.ini decides, since config.ini may have been changed or lost */
    model->item_targets = model->documents || model->relations ? !model->state.target_first : model->own < 1;
    return 0;
}

static int open_tables(struct model *model, const char *checkpoint) {
    uint64_t lists = model->vocab.lists;
    if (open_table(&model->target, model, checkpoint, "target.npy", lists ? lists : vocab_targets(&model->vocab))) return -1;
    model->dim = npy_find(&model->target, "weights")->columns;
    return open_table(&model->context, model, checkpoint, "context.npy", model->rows - lists - (uint64_t)model->tree);
}

/* Returns a table of weights whose rows are a matrix in a mapped file of fastText. */
static struct npy matrix_of(const struct fasttext_file *file, uint64_t data, uint64_t rows) {
    uint32_t dim = (uint32_t)file->args.dim;
    return (struct npy){.rows = rows,
                        .record = dim * sizeof(float),
                        .data = data,
                        .fields = 1,
                        .field[0] = {.columns = dim, .kind = 'f'},
                        .map = file->map};
}

/* Opens a model of fastText. All its words count as trained, and its mode is unknown, as if config.ini were lost. */
static int open_fasttext(struct model *model, const char *path) {
    struct fasttext_file file;
    if (fasttext_file_open(&file, &model->vocab, path)) return -1;
    model->rows = model->vocab.size;
    model->dim = (uint32_t)file.args.dim;
    model->target = matrix_of(&file, file.input, vocab_targets(&model->vocab));
    model->context = matrix_of(&file, file.output, file.words); /* both tables are in one mapping, which model_close() unmaps
                                                                 * once */
    model->mode = MODE_AUTO;
    model->own = 1;
    model->trained = file.args;
    model->directory = mem_text(path, strlen(path), "a path");
    return model->directory ? 0 : -1;
}

/* Moves the words of a file of vectors into the model. The file has no counts; they are set to 0. */
static int take_words(struct model *model, struct vectors_file *file) {
    struct vocab *vocab = &model->vocab;
    vocab->counts = mem_zalloc(file->rows, sizeof *vocab->counts, "the words' counts");
    vocab->words = file->words;
    vocab->size = vocab->distinct = model->rows = file->rows;
    file->words = (struct words){0};
    return vocab->counts ? 0 : -1;
}

/* Reads all rows of a file of vectors into memory, as a table of weights. */
static int read_vectors(struct npy *npy, const struct vectors_file *file) {
    struct npy_field weights = {.columns = file->dim, .kind = 'f'};
    *npy = (struct npy){.rows = file->rows, .record = file->dim * sizeof(float), .fields = 1, .field[0] = weights};
    float *rows = (float *)file_map_memory(&npy->map, npy->rows * npy->record, "the vectors of a file");
    int result = rows ? 0 : -1;
    for (uint64_t row = 0; row < file->rows && !result; row++)
        result = vectors_file_row(file, row, 0, file->dim, rows + row * file->dim);
    return result;
}

/* Opens a file of vectors (word2vec's binary and text forms, GloVe's text). Its one table serves as target and as context table. */
static int open_vectors(struct model *model, const char *path) {
    struct vectors_file file;
    if (vectors_file_open(&file, path, NULL)) return -1;
    int result = take_words(model, &file) || read_vectors(&model->target, &file) ? -1 : 0;
    model->dim = file.dim;
    model->context = model->target; /* the same mapping; model_close() unmaps it once */
    model->mode = MODE_AUTO;
    model->own = 1;
    vectors_file_close(&file);
    if (!result) model->directory = mem_text(path, strlen(path), "a path");
    return model->directory ? 0 : -1;
}

/* Opens a file of vectors: fastText's .bin, or any other format that vectors_file.h reads. */
static int open_file(struct model *model, const char *path) {
    int fasttext = fasttext_file_is(path);
    return fasttext < 0 ? -1 : fasttext ? open_fasttext(model, path) : open_vectors(model, path);
}

static int open_run(struct model *model, const char *run) {
    char *checkpoint = NULL;
    int result = -1;
    if (checkpoint_locate(run, &checkpoint, &model->directory) || read_words(model) || read_keys(model)) goto out;
    if (open_tables(model, checkpoint) || verify(model, checkpoint)) goto out;
    result = 0;
out:
    free(checkpoint);
    return result;
}

int model_open(struct model *model, const char *run) {
    *model = (struct model){.rows = 0};
    int directory = directory_exists(run), file = directory == 0 ? file_exists(run) : 0;
    int result = directory < 0 || file < 0 ? -1 : file ? open_file(model, run) : open_run(model, run);
    if (result) model_close(model);
    return result;
}

int model_read_vocab(struct vocab *vocab, const char *run) {
    struct fasttext_file file;
    char *checkpoint = NULL, *directory = NULL;
    int fasttext = fasttext_file_is(run);
    if (fasttext < 0) return -1;
    if (fasttext) {
        if (fasttext_file_open(&file, vocab, run)) return -1;
        file_map_close(&file.map);
        return 0;
    }
    int result = checkpoint_locate(run, &checkpoint, &directory) || read_vocab(vocab, directory) ? -1 : 0;
    free(checkpoint);
    free(directory);
    return result;
}

void model_close(struct model *model) {
    if (model->context.map.data == model->target.map.data) model->context.map = (struct file_map){NULL, 0};
    npy_close(&model->target);
    npy_close(&model->context);
    vocab_release(&model->vocab);
    free(model->propagated);
    free(model->directory);
    *model = (struct model){.rows = 0};
}

const void *model_table_row(const struct model *model, enum table_side side, const struct npy_field *field, uint64_t row) {
    const struct npy *table = side == TABLE_TARGET ? &model->target : &model->context;
    uint64_t first = side == TABLE_TARGET ? model->state.target_first : 0;
    return row < first || row - first >= table->rows ? NULL : npy_row(table, field, row - first);
}

enum { FIRST_COLUMNS = 4 }; /* number of columns that are compared first: as many as one draw gives */

int model_weights(const struct model *model, enum table_side side, uint64_t row, uint32_t first, uint32_t count, float *out) {
    const struct npy_field *weights = npy_find(side == TABLE_TARGET ? &model->target : &model->context, "weights");
    const void *at = model_table_row(model, side, weights, row);
    if (at) values_of_file(weights, at, first, count, out);
    return at != NULL;
}

/* Rounds first weights to the table's type, as filling the table did. */
static void keep_as(const struct npy_field *weights, float *values, uint32_t count) {
    for (uint32_t i = 0; weights->kind == 'h' && i < count; i++) values[i] = bfloat16_value(bfloat16_nearest(values[i]));
}

int model_is_trained(const struct model *model, enum table_side side, uint64_t row) {
    const struct npy *table = side == TABLE_TARGET ? &model->target : &model->context;
    const struct npy_field *weights = npy_find(table, "weights");
    float first[FIRST_COLUMNS], now[FIRST_COLUMNS];
    if (!model_table_row(model, side, weights, row)) return 0;
    if (model->mode == MODE_AUTO) return 1;
    for (uint32_t column = 0; column < model->dim; column += FIRST_COLUMNS) {
        uint32_t left = model->dim - column, count = left < FIRST_COLUMNS ? left : FIRST_COLUMNS;
        table_first_weights(&model->first[side], model->seed, side, row, (struct columns){column, count}, first);
        keep_as(weights, first, count);
        model_weights(model, side, row, column, count, now);
        if (memcmp(now, first, count * sizeof *first)) return 1;
    }
    return 0;
}
