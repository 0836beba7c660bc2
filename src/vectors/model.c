#include "model.h"

#include "base/floats.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_length = 1e-12; /* rows shorter than this are not made longer: zeros stay zeros */

/* ---- rows ---- */

/* |row|, its squares summed in double. */
static float length_of(const float *row, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)row[i] * row[i];
    return (float)fmax(sqrt(squares), least_length);
}

static void make_unit(float *row, uint32_t dim) {
    float length = length_of(row, dim);
    for (uint32_t i = 0; i < dim; i++) row[i] /= length;
}

static void sum_row(float *out, const float *target, const float *context, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++) out[i] = target[i] + context[i];
}

static void normsum_row(float *out, const float *target, const float *context, uint32_t dim) {
    float u = length_of(target, dim), v = length_of(context, dim);
    for (uint32_t i = 0; i < dim; i++) out[i] = target[i] / u + context[i] / v;
}

void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out) {
    const struct npy_field *targets = npy_find(&model->target, "weights"),
                           *contexts = npy_find(&model->context, "weights");
    for (uint64_t row = first; row < first + count; row++, out += model->dim) {
        const float *target = npy_row(&model->target, targets, row), *context = npy_row(&model->context, contexts, row);
        int list = row >= model->rows - model->vocab.lists;
        if (list) context = target;
        else if (model->vocab.lists && model->own == 1) target = context;
        switch (view) {
        case VIEW_TARGET:
            memcpy(out, target, model->dim * sizeof *out);
            break;
        case VIEW_CONTEXT:
            memcpy(out, context, model->dim * sizeof *out);
            break;
        case VIEW_SUM:
            sum_row(out, target, context, model->dim);
            break;
        case VIEW_NORMSUM:
            normsum_row(out, target, context, model->dim);
            break;
        }
    }
}

int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out) {
    model_rows(model, view, row, 1, out);
    if (!floats_finite(out, model->dim))
        return fail("the vector of '%s' in '%s' holds NaN or infinity", vocab_word(&model->vocab, row, NULL),
                    model->directory);
    if (unit) make_unit(out, model->dim);
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

uint64_t model_view_rows(const struct model *model, enum model_view view) {
    return model->rows - (view == VIEW_CONTEXT || model->own == 0 ? model->vocab.lists : 0);
}

int model_check_row(const struct model *model, uint64_t row) {
    if (row < model_view_rows(model, VIEW_TARGET)) return 0;
    return fail("'%.100s' has no row in '%s': its lists are the mean of their items alone (examples.own = 0), which recommend "
                "and evaluate take of files of lists",
                vocab_word(&model->vocab, row, NULL), model->directory);
}

int64_t model_find(const struct model *model, const char *word) {
    int64_t row = vocab_find(&model->vocab, word, strlen(word));
    if (row >= 0) return model_check_row(model, (uint64_t)row) ? -1 : row;
    const char *near = vocab_near(&model->vocab, word);
    if (near) return fail("'%.100s' is not in the vocabulary of '%s'; did you mean '%s'?", word, model->directory, near);
    return fail("'%.100s' is not in the vocabulary of '%s'", word, model->directory);
}

static const char *const view_names[] = {"target", "context", "sum", "normsum"};

const char *model_view_name(enum model_view view) {
    return view_names[view];
}

int model_view_named(const char *name) {
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, view_names[i])) return i;
    return fail_usage("'%s' is not a table; wanted target, context, sum or normsum", name);
}
