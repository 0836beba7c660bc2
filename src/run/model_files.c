#include "model_files.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/report.h"
#include "checkpoint.h"
#include "config/config.h"
#include "kernels/rounding.h"
#include "rows/values.h"
#include "rows/vectors_file.h"
#include "run_directory.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { HEADER_MOST = 4096 };

/* Allocates a table's bit map of frozen rows. all = 1: every row is frozen; 0: none is. */
static int open_side(struct frozen *frozen, enum table_side side, int all) {
    uint64_t words = table_frozen_words(frozen->rows);
    frozen->bits[side] = mem_zalloc(words, sizeof(uint32_t), "which rows are frozen");
    if (frozen->bits[side] && all) memset(frozen->bits[side], 0xFF, words * sizeof(uint32_t));
    return frozen->bits[side] ? 0 : -1;
}

int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows) {
    *frozen = (struct frozen){.rows = rows, .known = config->train_freeze == FREEZE_KNOWN};
    switch (config->train_freeze) {
    case FREEZE_TARGET:
        return open_side(frozen, TABLE_TARGET, 1);
    case FREEZE_CONTEXT:
        return open_side(frozen, TABLE_CONTEXT, 1);
    case FREEZE_KNOWN:
        return open_side(frozen, TABLE_TARGET, 0) || open_side(frozen, TABLE_CONTEXT, 0) ? -1 : 0;
    default:
        return 0;
    }
}

void frozen_release(struct frozen *frozen) {
    mem_free(frozen->bits[TABLE_TARGET], frozen->bits[TABLE_CONTEXT]);
    *frozen = (struct frozen){0};
}

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row) {
    frozen->bits[side][row / 32] |= 1u << row % 32;
}

uint64_t frozen_bytes(const struct frozen *frozen) {
    return frozen->known ? HEADER_MOST + 2 * sizeof(uint32_t) * table_frozen_words(frozen->rows) : 0;
}

/* ---- known.npy ---- */

/* Describes known.npy: its fields and rows. */
static struct npy describe(const struct frozen *frozen) {
    struct npy npy = {.rows = table_frozen_words(frozen->rows), .fields = 2};
    for (int side = 0; side < 2; side++) {
        strcpy(npy.field[side].name, table_side_name((enum table_side)side));
        npy.field[side].columns = 1;
        npy.field[side].kind = 'u';
    }
    return npy;
}

int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum) {
    struct npy npy = describe(frozen);
    struct file_writer writer = {.fd = -1};
    XXH64_state_t *hash = XXH64_createState();
    OWNED uint32_t *records = mem_alloc(npy.rows, 2 * sizeof *records, "which rows are frozen"); /* of both tables, interleaved */
    int result = !records ? -1 : !hash ? fail("not enough memory for a checksum") : file_writer_open(&writer, path);
    for (uint64_t i = 0; records && i < 2 * npy.rows; i++) records[i] = frozen->bits[i % 2][i / 2];
    if (!result) result = npy_write_header(&npy, &writer);
    if (!result) {
        XXH64_reset(hash, 0);
        XXH64_update(hash, writer.buffer, writer.used); /* the header is far smaller than the buffer, and so still in it */
        XXH64_update(hash, records, npy.rows * 2 * sizeof *records);
        result = file_write(&writer, records, npy.rows * 2 * sizeof *records);
        *checksum = XXH64_digest(hash);
    }
    if (!result) result = file_commit(&writer);
    else file_abandon(&writer);
    XXH64_freeState(hash);
    return result;
}

int frozen_read(struct frozen *frozen, const char *path) {
    struct npy npy, wanted = describe(frozen);
    if (npy_open(&npy, path)) return -1;
    const struct npy_field *fields[2] = {npy_find(&npy, "target"), npy_find(&npy, "context")};
    int result = fields[0] && fields[1] && npy.fields == 2 && npy.rows == wanted.rows && npy.record == 2 * sizeof(uint32_t)
                     ? 0 : fail("'%s' does not say of %" PRIu64 " rows which came from train.from", path, frozen->rows);
    for (int side = 0; side < 2 && !result; side++)
        for (uint64_t i = 0; i < npy.rows; i++) memcpy(&frozen->bits[side][i], npy_row(&npy, fields[side], i), sizeof(uint32_t));
    npy_close(&npy);
    return result;
}

struct reading {
    struct frozen *frozen;
    const char *checkpoint;
};

static int read_known(void *user) {
    const struct reading *reading = user;
    OWNED char *path = file_join(reading->checkpoint, "known.npy");
    return path ? frozen_read(reading->frozen, path) : -1;
}

int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks) {
    struct reading reading = {frozen, checkpoint};
    uint64_t rows = frozen->rows;
    if (ranks_count(ranks) > 1) ranks_share(ranks, &rows, sizeof rows);
    if (ranks_agree(ranks, rows == frozen->rows ? 0 : fail("its corpus has other words than that of rank 0"))) return -1;
    if (ranks_do(ranks, ranks_first(ranks) ? read_known : NULL, &reading)) return -1;
    for (int side = 0; side < 2 && ranks_count(ranks) > 1; side++)
        ranks_share(ranks, frozen->bits[side], table_frozen_words(frozen->rows) * sizeof(uint32_t));
    return 0;
}

struct rule_options tables_rule(const struct config *config) {
    struct rule_options rule = {
        .rule = config->optimizer_rule,
#define NUMBER(name, fallback, lowest, highest, rules, help)  .name = config->optimizer_##name,
#define BY_RULE(name, fallback, lowest, highest, rules, help) .name = config->optimizer_##name,
#define FLAG(name, rules, help)                               .name = config->optimizer_##name,
#include "kernels/optimizers.def"
        .precision = config->model_precision,
        .state_precision = config->model_state_precision,
        .lr = config->optimizer_lr,
        .clip = config->optimizer_clip,
    };
    rule.count_rows = config->optimizer_bias_correction == COUNT_ROW && rule_counts(&rule);
    return rule;
}

/* Parses `text`, the value of model.ROWS_init. Returns 0, or -1 after fail(). */
static int read_init(struct init_values *out, const char *rows, const char *text, const struct config *config, enum table_side side) {
    if (table_init_values(out, text, side, (uint32_t)config->model_dim))
        return fail("model.%s_init = '%s' is none of: zeros; uniform LO HI; normal MEAN SD; word2vec; notebook M", rows, text);
    if (!(table_init_reach(out) <= FLT_MAX))
        return fail("model.%s_init = '%s' draws numbers up to %.3g, and float32 ends at %.3g", rows, text, table_init_reach(out),
                    (double)FLT_MAX);
    return 0;
}

/* Sets how a table's first weights are drawn. entities: number of rows of entities; rows of relations follow. Returns 0, or -1 after fail(). */
static int tables_first_values(struct first_values *out, const struct config *config, enum table_side side, uint64_t entities) {
    int targets = side == TABLE_TARGET, relations = targets && config->examples_mode == MODE_TRIPLE;
    out->later_from = relations ? entities : 0;
    if (relations && read_init(&out->later, "relation", config->model_relation_init, config, side)) return -1;
    return read_init(&out->rows, table_side_name(side), targets ? config->model_target_init : config->model_context_init, config, side);
}

int tables_check_init(const struct config *config) {
    struct first_values target, context;
    return tables_first_values(&target, config, TABLE_TARGET, 0) || tables_first_values(&context, config, TABLE_CONTEXT, 0) ? -1 : 0;
}

int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend) {
    struct table_options options = *own;
    options.dim = config_columns(config);
    options.biases = config_has_counts(config);
    options.complex = config_has_complex(config);
    options.rule = tables_rule(config);
    options.seed = (uint32_t)config->train_seed;
    options.directory = config->run_dir;
    *table = (struct table){0};
    options.weights = (enum place)(side == TABLE_TARGET ? config->memory_target : config->memory_context);
    options.state = (enum place)(side == TABLE_TARGET ? config->memory_target_state : config->memory_context_state);
    if ((int)options.weights == PLACE_AUTO || (int)options.state == PLACE_AUTO)
        return fail("memory.%s%s is still 'auto': no plan settled it", table_side_name(side), (int)options.weights == PLACE_AUTO ? "" : "_state");
    if (tables_first_values(&options.init, config, side, own->init.later_from)) return -1;
    return table_init(table, side, &options, ops, backend);
}

/* Maps DIRECTORY/NAME, and checks that its size fits the model: `part` rows or, in older runs, one row for each word. */
static int open_table(struct npy *npy, const struct model *model, const char *directory, const char *name, uint64_t part) {
    OWNED char *path = file_join(directory, name);
    int result = path ? npy_open(npy, path) : -1;
    const struct npy_field *weights = result ? NULL : npy_find(npy, "weights");
    int shared = model->vocab.subwords.rows && part > model->rows; /* every table has the rows of n-grams */
    if (!result && (!weights || (weights->kind != 'f' && weights->kind != 'h')))
        result = fail("'%s' has no field 'weights' of float32 or bfloat16", path);
    if (!result && npy->rows != part && (shared || npy->rows != model->rows))
        result = fail("'%s' has %" PRIu64 " rows, but '%s/vocab.tsv' has %" PRIu64 " words%s", path, npy->rows,
                       model->directory, model->rows, shared ? ", whose n-grams have others than that (examples.subwords)" : "");
    if (!result && model->dim && weights->columns != model->dim + model->biases)
        result = fail("'%s' has %u columns, but target.npy has %u", path, weights->columns, model->dim + model->biases);
    return result;
}

static int read_vocab(struct vocab *vocab, const char *directory) {
    OWNED char *path = file_join(directory, "vocab.tsv");
    return path ? vocab_read(vocab, path) : -1;
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

static int take_keys(struct model *model) {
    const struct config *config = &model->keys;
    model->mode = config->examples_mode;
    model->tree = config_has_tree(config);
    model->biases = config_has_counts(config) ? LOSS_GLOVE_BIASES : 0;
    model->cosine = config->train_score == SCORE_COSINE;
    model->own = config->examples_own;
    model->documents = config_has_documents(config);
    model->product = config_product(config);
    model->loss = config_loss(config);
    if (model->reciprocal && !config->triples_reciprocal) { /* the data itself contains relations r and r^-1 */
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
    return tables_first_values(&model->first[TABLE_TARGET], config, TABLE_TARGET, model->rows - model->vocab.lists) ||
                   tables_first_values(&model->first[TABLE_CONTEXT], config, TABLE_CONTEXT, 0) ? -1 : 0;
}

/* Reads the keys with which the rows were trained; the defaults if config.ini is missing. */
static int read_keys(struct model *model) {
    OWNED char *path = file_join(model->directory, "config.ini");
    return !path || (file_exists(path) && config_read(&model->keys, path)) || take_keys(model) ? -1 : 0;
}

/* Checks the tables by the checksums in state.ini, and that they were trained with this vocabulary. */
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
    if (model->state.target_first) model->own = 1; /* state.ini decides, since config.ini may have been changed or removed */
    model->item_targets = model->documents || model->relations ? !model->state.target_first : model->own < 1;
    return 0;
}

static int open_tables(struct model *model, const char *checkpoint) {
    uint64_t lists = model->vocab.lists;
    if (open_table(&model->target, model, checkpoint, "target.npy", lists ? lists : vocab_targets(&model->vocab))) return -1;
    model->dim = npy_find(&model->target, "weights")->columns;
    if (model->dim <= model->biases) return fail("'%s/target.npy' has %u columns, fewer than train.loss = glove needs", checkpoint, model->dim);
    model->dim -= model->biases;
    return open_table(&model->context, model, checkpoint, "context.npy", model->rows - lists - (uint64_t)model->tree);
}

/* Returns a table of weights whose rows are a matrix in a mapped fastText file. */
static struct npy matrix_of(const struct fasttext_file *file, uint64_t data, uint64_t rows) {
    uint32_t dim = (uint32_t)file->args.dim;
    return (struct npy){.rows = rows,
                        .record = dim * sizeof(float),
                        .data = data,
                        .fields = 1,
                        .field[0] = {.columns = dim, .kind = 'f'},
                        .map = file->map};
}

/* Opens a fastText model. All its words count as trained, and its mode is unknown, as if config.ini were missing. */
static int open_fasttext(struct model *model, const char *path) {
    struct fasttext_file file;
    if (fasttext_file_open(&file, &model->vocab, path)) return -1;
    model->rows = model->vocab.size;
    model->dim = (uint32_t)file.args.dim;
    model->target = matrix_of(&file, file.input, vocab_targets(&model->vocab));
    model->context = matrix_of(&file, file.output, file.words); /* both tables are in one mapping, which model_close() unmaps once */
    model->mode = MODE_AUTO;
    model->own = 1;
    model->trained = file.args;
    model->directory = mem_text(path, strlen(path), "a path");
    return model->directory ? 0 : -1;
}

/* Opens a file of vectors (word2vec's binary and text formats, GloVe's text). Its one table is used as target and as context table. */
static int open_vectors(struct model *model, const char *path) {
    struct vectors_file file;
    if (vectors_file_open(&file, path, NULL)) return -1;
    struct vocab *vocab = &model->vocab;
    struct npy *npy = &model->target;
    vocab->counts = mem_zalloc(file.rows, sizeof *vocab->counts, "the words' counts"); /* the file has none */
    vocab->words = file.words;
    vocab->size = vocab->distinct = model->rows = file.rows;
    file.words = (struct words){0};
    *npy = (struct npy){
        .rows = file.rows, .record = file.dim * sizeof(float), .fields = 1, .field[0] = {.columns = file.dim, .kind = 'f'}};
    float *rows = vocab->counts ? (float *)file_map_memory(&npy->map, npy->rows * npy->record, "the vectors of a file") : NULL;
    int result = rows ? 0 : -1;
    for (uint64_t row = 0; row < file.rows && !result; row++) result = vectors_file_row(&file, row, 0, file.dim, rows + row * file.dim);
    model->dim = file.dim;
    model->context = model->target; /* the same mapping; model_close() unmaps it once */
    model->mode = MODE_AUTO;
    model->own = 1;
    vectors_file_close(&file);
    if (!result) model->directory = mem_text(path, strlen(path), "a path");
    return model->directory ? 0 : -1;
}

static void count_rows(struct model *model) {
    const struct vocab *vocab = &model->vocab;
    model->rows = vocab->size;
    if (strcmp(vocab_prefix(vocab), VOCAB_RELATION)) return;
    model->reciprocal = vocab_is_reciprocal(vocab);
    model->relations = vocab->lists / (model->reciprocal ? 2 : 1);
}

int model_live(struct model *model, const struct config *config, const struct vocab *vocab, const struct table *target, const struct table *context,
               uint64_t stream) {
    *model = (struct model){.vocab = *vocab, .keys = *config, .dim = (uint32_t)config->model_dim, .live = {target, context},
                            .directory = config->run_dir};
    model->state.corpus.stream = stream;
    model->state.target_first = target->spec.first_row;
    count_rows(model);
    if (take_keys(model)) return -1;
    model->item_targets = !model->state.target_first;
    return 0;
}

static int open_run(struct model *model, const char *run) {
    struct vocab *vocab = &model->vocab;
    OWNED char *checkpoint = NULL;
    int result = checkpoint_locate(run, &checkpoint, &model->directory) || read_vocab(vocab, model->directory) ? -1 : 0;
    if (!result) count_rows(model);
    if (!result) result = read_keys(model) || open_tables(model, checkpoint) || verify(model, checkpoint) ? -1 : 0;
    return result;
}

int model_open(struct model *model, const char *run) {
    *model = (struct model){.rows = 0};
    int directory = directory_exists(run), file = directory == 0 ? file_exists(run) : 0;
    int fasttext = file > 0 ? fasttext_file_is(run) : 0;
    int result = directory < 0 || file < 0 || fasttext < 0 || config_init(&model->keys) ? -1
                 : fasttext                                                             ? open_fasttext(model, run)
                 : file                                                                 ? open_vectors(model, run)
                                                                                        : open_run(model, run);
    if (result) model_close(model);
    return result;
}

int model_read_vocab(struct vocab *vocab, const char *run) {
    struct fasttext_file file;
    OWNED char *checkpoint = NULL, *directory = NULL;
    int fasttext = fasttext_file_is(run);
    if (fasttext < 0) return -1;
    if (fasttext) {
        if (fasttext_file_open(&file, vocab, run)) return -1;
        file_map_close(&file.map);
        return 0;
    }
    return checkpoint_locate(run, &checkpoint, &directory) || read_vocab(vocab, directory) || run_ages_read(directory, vocab) ? -1 : 0;
}

void model_close(struct model *model) {
    if (model->context.map.data == model->target.map.data) model->context.map = (struct file_map){NULL, 0};
    npy_close(&model->target);
    npy_close(&model->context);
    vocab_release(&model->vocab);
    config_release(&model->keys);
    words_release(&model->added.names);
    words_release(&model->added_lists.names);
    words_release(&model->features.names);
    mem_free(model->added.rows, model->added_lists.rows, model->features.rows, model->propagated, model->directory, model->content.starts,
             model->content.of, model->content.part);
    *model = (struct model){.rows = 0};
}

const void *model_table_row(const struct model *model, enum table_side side, const struct npy_field *field, uint64_t row) {
    const struct npy *table = side == TABLE_TARGET ? &model->target : &model->context;
    uint64_t first = side == TABLE_TARGET ? model->state.target_first : 0;
    return row < first || row - first >= table->rows ? NULL : npy_row(table, field, row - first);
}

enum { FIRST_COLUMNS = 4 }; /* number of columns that are compared first: one draw makes this many values */

int model_weights(const struct model *model, enum table_side side, uint64_t row, uint32_t first, uint32_t count, float *out) {
    const struct npy_field *weights = npy_find(side == TABLE_TARGET ? &model->target : &model->context, "weights");
    const void *at = model_table_row(model, side, weights, row);
    if (at) values_of_file(weights, at, first, count, out);
    return at != NULL;
}

int model_is_trained(const struct model *model, enum table_side side, uint64_t row) {
    const struct npy *table = side == TABLE_TARGET ? &model->target : &model->context;
    const struct npy_field *weights = npy_find(table, "weights");
    float first[FIRST_COLUMNS], now[FIRST_COLUMNS];
    if (!model_table_row(model, side, weights, row)) return 0;
    if (model->mode == MODE_AUTO) return 1;
    for (uint32_t column = 0; column < model->dim; column += FIRST_COLUMNS) {
        uint32_t left = model->dim - column, count = left < FIRST_COLUMNS ? left : FIRST_COLUMNS;
        table_first_weights(first_values_of(&model->first[side], row), model->seed, side, row, (struct columns){column, count, 0}, first);
        for (uint32_t i = 0; weights->kind == 'h' && i < count; i++) first[i] = bfloat16_value(bfloat16_nearest(first[i])); /* as filling did */
        model_weights(model, side, row, column, count, now);
        if (memcmp(now, first, count * sizeof *first)) return 1;
    }
    return 0;
}
