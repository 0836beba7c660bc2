#include "model.h"

#include "base/checks.h"
#include "base/memory.h"
#include "base/report.h"
#include "config/config.h"
#include "names.h"
#include "rows/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_length = 1e-12; /* shorter rows are not scaled to length 1, so zeros stay zeros */

/* ---- rows ---- */

/* Returns |row|; the squares are summed in double. */
static float length_of(const float *row, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)row[i] * row[i];
    return (float)fmax(sqrt(squares), least_length);
}

void model_make_unit(float *row, uint32_t dim) {
    float length = length_of(row, dim);
    for (uint32_t i = 0; i < dim; i++) row[i] /= length;
}

/* A row's vectors in both tables: pointers into the mapped files, or into `copy` if a row is bfloat16 or not aligned. */
struct vectors {
    const float *target, *context;
    float copy[2][COLUMNS_MOST];
};

static int is_list(const struct model *model, uint64_t row) {
    return row >= model_items(model) && row < model->rows;
}

/* Reads a row of a table that is being trained into `room`. If that fails, fills `room` with NaN, which callers refuse. */
static const float *live_floats(const struct table *table, uint64_t row, float *room) {
    const struct record_field *weights = &table->spec.layout.field[RECORD_WEIGHTS];
    const struct npy_field field = {.kind = values_kind(weights->type)};
    OWNED char *packed = mem_alloc(table->spec.layout.packed, 1, "a row");
    if (packed && !table->ops->table_read(table->backend, table->store, row, 1, packed))
        values_of_file(&field, packed + weights->packed, 0, weights->columns, room);
    else
        for (uint32_t i = 0; i < weights->columns; i++) room[i] = NAN;
    return room;
}

const float *model_table_floats(const struct model *model, enum table_side side, uint64_t row, float room[COLUMNS_MOST]) {
    const struct table *live = model->live[side];
    if (live) return row < live->spec.first_row || row >= live->spec.rows ? NULL : live_floats(live, row, room);
    const struct npy_field *weights = npy_find(side == TABLE_TARGET ? &model->target : &model->context, "weights");
    if (weights->kind != 'f') return model_weights(model, side, row, 0, model->dim, room) ? room : NULL;
    const void *found = model_table_row(model, side, weights, row);
    if ((uintptr_t)found % sizeof *room == 0) return found;
    return memcpy(room, found, model->dim * sizeof *room);
}

/* Computes the mean of target rows, to the same bits as fastText. A missing row counts as zeros. */
static void mean_of_rows(const struct model *model, const uint32_t *rows, uint64_t count, float *out) {
    float share = (float)(1.0 / (double)count), room[COLUMNS_MOST];
    memset(out, 0, model->dim * sizeof *out);
    for (uint64_t i = 0; i < count; i++) {
        const float *row = rows[i] == WORDS_ABSENT ? NULL : model_table_floats(model, TABLE_TARGET, rows[i], room);
        for (uint32_t j = 0; row && j < model->dim; j++) out[j] += row[j];
    }
    for (uint32_t j = 0; j < model->dim; j++) out[j] *= share;
}

static void find_vectors(const struct model *model, uint64_t row, struct vectors *of) {
    const struct subwords *subwords = &model->vocab.subwords;
    of->target = subwords->starts ? of->copy[0] : model_table_floats(model, TABLE_TARGET, row, of->copy[0]);
    if (subwords->starts)
        mean_of_rows(model, subwords->row + subwords->starts[row], subwords->starts[row + 1] - subwords->starts[row], of->copy[0]);
    of->context = of->target;
    if (is_list(model, row) || model->tree) return;
    of->context = model_table_floats(model, TABLE_CONTEXT, row, of->copy[1]);
    if (model->vocab.lists && !model->item_targets) of->target = of->context;
}

static void add(float *out, const float *row, float length, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++) out[i] += row[i] / length;
}

/* Returns 1 if the vector of this table is part of the row's sums. A paper that cites no paper, or is cited by none, was trained in one table
 * only; in the other one it still has its random first values. */
static int adds(const struct model *model, enum table_side side, uint64_t row) {
    if (model->tree) return side == TABLE_TARGET;
    return model->mode != MODE_ADJACENCY || model_is_trained(model, side, row);
}

void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out) {
    if (view == VIEW_PROPAGATED) {
        memcpy(out, model->propagated + first * model->dim, count * model->dim * sizeof *out);
        return;
    }
    struct vectors of;
    uint32_t dim = model->dim;
    for (uint64_t row = first; row < first + count; row++, out += model->dim) {
        if (row >= model->rows) {
            const struct model_extra *extra = row < model_end(model) ? &model->added : &model->added_lists;
            memcpy(out, extra->rows + (row - (row < model_end(model) ? model->rows : model_end(model))) * dim, dim * sizeof *out);
            continue;
        }
        find_vectors(model, row, &of);
        if (view == VIEW_TARGET || view == VIEW_CONTEXT) {
            memcpy(out, view == VIEW_TARGET ? of.target : of.context, dim * sizeof *out);
            continue;
        }
        memset(out, 0, dim * sizeof *out);
        if (adds(model, TABLE_TARGET, row)) add(out, of.target, view == VIEW_NORMSUM ? length_of(of.target, dim) : 1, dim);
        if (adds(model, TABLE_CONTEXT, row)) add(out, of.context, view == VIEW_NORMSUM ? length_of(of.context, dim) : 1, dim);
    }
}

int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out) {
    model_rows(model, view, row, 1, out);
    if (!floats_finite(out, model->dim))
        return fail("the vector of '%s' in '%s' holds NaN or infinity", row < model_end(model) ? model_name(model, row, NULL) : "a new list",
                    model->directory);
    if (unit && row < model->rows) model_make_unit(out, model->dim); /* new items keep their lengths (features.h) */
    return 0;
}

float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit) {
    return model_matrix_of(model, view, NULL, rows && rows < model->rows ? rows : model->rows, unit);
}

float *model_matrix_of(const struct model *model, enum model_view view, const uint32_t *rows, uint64_t count, int unit) {
    uint64_t capacity;
    if (__builtin_mul_overflow(count, (uint64_t)model->dim, &capacity)) capacity = UINT64_MAX;
    float *matrix = mem_aligned(capacity, sizeof *matrix, "the rows of a model");
    for (uint64_t i = 0; matrix && i < count; i++)
        if (model_row(model, view, rows ? rows[i] : i, unit, matrix + i * model->dim)) {
            free(matrix);
            matrix = NULL;
        }
    return matrix;
}

int model_unseen(const struct model *model, enum model_view view, const char *word, uint64_t length, float *out) {
    const struct subwords *subwords = &model->vocab.subwords;
    uint32_t *rows = NULL;
    uint64_t capacity = 0;
    int has_target = view == VIEW_TARGET || view == VIEW_NORMSUM || view == VIEW_SUM;
    for (int i = 0; i < 2; i++) {
        const struct model_extra *extra = i ? &model->added : &model->features;
        int64_t number = extra->names.size ? words_find(&extra->names, words_hash(word, length), word, length) : -1;
        if (number < 0) continue;
        memcpy(out, extra->rows + (uint64_t)number * model->dim, model->dim * sizeof *out);
        return 1;
    }
    if (!subwords->starts || !has_target) return 0;
    int64_t count = subwords_of(subwords, word, length, &rows, &capacity);
    if (count > 0) mean_of_rows(model, rows, (uint64_t)count, out);
    free(rows);
    if (count > 0 && view == VIEW_NORMSUM) model_make_unit(out, model->dim);
    if (count > 0 && !floats_finite(out, model->dim))
        return fail("the vector of the n-grams of '%.100s' in '%s' holds NaN or infinity", word, model->directory);
    return count < 0 ? -1 : count > 0;
}

int model_copy_keys(struct config *copy, const struct model *model) {
    if (model->mode != MODE_AUTO) return config_copy(copy, &model->keys);
    *copy = (struct config){.name = NULL};
    return fail("'%s/config.ini' is not there: it says how the run's data was read", model->directory);
}

/* Returns 1 if words that begin with VOCAB_RELATION are relations: the run walked over triples, and its walks have relations, or it keeps words of an
 * older run, which may have them. */
static int has_relation_words(const struct model *model) {
    return config_walks_triples(&model->keys) && (model->keys.walks_relations || *model->keys.train_from);
}

uint64_t model_end(const struct model *model) {
    return model->rows + model->added.names.size;
}

const char *model_name(const struct model *model, uint64_t row, uint64_t *length) {
    return row < model->rows ? vocab_word(&model->vocab, row, length) : words_get(&model->added.names, row - model->rows, length);
}

int64_t model_named(const struct model *model, const char *name, uint64_t length) {
    int64_t row = vocab_find(&model->vocab, name, length);
    if (row < 0 && (model->relations || has_relation_words(model))) row = vocab_find_prefixed(&model->vocab, VOCAB_RELATION, name, length);
    if (row >= 0 || !model->added.names.size) return row;
    int64_t number = words_find(&model->added.names, words_hash(name, length), name, length);
    return number < 0 ? -1 : (int64_t)model->rows + number;
}

uint64_t model_items(const struct model *model) {
    return model->rows - model->vocab.lists;
}

int model_is_item(const struct model *model, uint64_t row) {
    if (row >= model_items(model)) return row >= model->rows && row < model_end(model);
    return !has_relation_words(model) || strncmp(vocab_word(&model->vocab, row, NULL), VOCAB_RELATION, strlen(VOCAB_RELATION));
}

int model_check_list(const struct model *model, uint64_t row) {
    if (!is_list(model, row) || model->own > 0) return 0;
    return fail("'%.100s' has no row in '%s': its lists are the mean of their items alone (examples.own = 0), which recommend "
                "and evaluate take of files of lists",
                vocab_word(&model->vocab, row, NULL), model->directory);
}

/* Called for a row that was not trained in the view; `trained` names the only table in which it was, or is NULL. Fails in a run of citations,
 * since the user can ask the other table. Warns in other runs, where an untrained row means that the run was hardly trained at all. */
static int refuse_row(const struct model *model, enum model_view view, uint64_t row, const char *trained) {
    const char *word = vocab_word(&model->vocab, row, NULL);
    if (model->mode != MODE_ADJACENCY) {
        warn("'%.100s' was never trained in '%s': its row is what it began as", word, model->directory);
        return 0;
    }
    if (!trained) return fail("'%.100s' was never trained in '%s': no example that was trained has it", word, model->directory);
    return fail("'%.100s' was never trained as a %s in '%s': its row there is what it began as; ask the table %s, or sum", word,
                model_view_name(view), model->directory, trained);
}

int model_check_row(const struct model *model, enum model_view view, uint64_t row) {
    int target = model_is_trained(model, TABLE_TARGET, row), context = model_is_trained(model, TABLE_CONTEXT, row);
    if (model_check_list(model, row)) return -1;
    if (is_list(model, row) || model->tree)
        context = target;
    else if (model->vocab.lists && !model->item_targets)
        target = context;
    if (view == VIEW_TARGET ? target : view == VIEW_CONTEXT ? context : target || context) return 0;
    return refuse_row(model, view, row, target ? "target" : context ? "context" : NULL);
}

int64_t model_find(const struct model *model, enum model_view view, const char *word) {
    int64_t row = model_named(model, word, strlen(word));
    if (row >= 0) return model_check_row(model, view, (uint64_t)row) ? -1 : row;
    if (model->vocab.lists && vocab_find_list(&model->vocab, word, strlen(word)) >= 0)
        return fail("'%.100s' names a list of '%s' (a document, a person, a relation) and not a word; nearest finds it with --lists", word,
                    model->directory);
    const char *near = vocab_near(&model->vocab, word);
    if (!near && model->features.names.size) near = names_near(&model->features.names, 0, model->features.names.size, 0, word);
    return fail("'%.100s' is not in the vocabulary of '%s'%s%s%s", word, model->directory, DID_YOU_MEAN(near));
}

int64_t model_find_or_make(const struct model *model, enum model_view view, const char *word, float *out) {
    uint64_t length = strlen(word);
    int made = vocab_find(&model->vocab, word, length) < 0 ? model_unseen(model, view, word, length, out) : 0;
    return made < 0 ? -1 : made ? (int64_t)DRAW_NONE : model_find(model, view, word);
}

static const char *const view_names[VIEWS] = {"target", "context", "sum", "normsum", "propagated"};

const char *model_view_name(enum model_view view) {
    return view_names[view];
}

int model_view_named(const char *name) {
    for (int i = 0; i < VIEWS; i++)
        if (!strcmp(name, view_names[i])) return i;
    return fail_usage("'%s' is not a table; wanted target, context, sum, normsum or propagated", name);
}
