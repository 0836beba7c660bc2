#include "step64.h"
#include "common.h"
#include "rules64.h"

struct table64 table64_of(const struct record_layout *layout, uint64_t rows, const char *records) {
    struct table64 t = {.layout = *layout, .rows = rows};
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim;
    t.values = need(rows * floats * sizeof *t.values);
    t.updates = need(rows * sizeof *t.updates);
    t.gradients = need(rows * layout->dim * sizeof *t.gradients);
    t.places = need(rows * sizeof *t.places);
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t i = 0; i < floats; i++)
            t.values[row * floats + i] = (double)((const float *)(records + row * layout->packed))[i];
        if (layout->counted) memcpy(&t.updates[row], records + (row + 1) * layout->packed - 4, 4);
    }
    return t;
}

void table64_free(struct table64 *t) {
    free(t->values);
    free(t->updates);
    free(t->gradients);
    free(t->places);
}

uint64_t table64_other_updates(const struct table64 *table, const char *records) {
    uint64_t row = table->layout.counted ? 0 : table->rows;
    while (row < table->rows && !memcmp(&table->updates[row], records + (row + 1) * table->layout.packed - 4, 4)) row++;
    return row;
}

static double *row_of(const struct table64 *t, uint64_t row) {
    return t->values + row * (1 + t->layout.slots) * t->layout.dim;
}

static void add(double *to, double factor, const double *from, uint64_t dim) {
    for (uint64_t i = 0; i < dim; i++) to[i] += factor * from[i];
}

/* In four sums, so that one addition does not wait for the one before. */
static double dot(const double *x, const double *y, uint64_t dim) {
    double sum[4] = {0};
    uint64_t i = 0;
    for (; i + 4 <= dim; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < dim; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Leaves the gradients zero, for the next step. */
static void update_side(struct table64 *t, const struct step_request *request) {
    uint64_t dim = t->layout.dim;
    for (uint64_t row = 0; row < t->rows; row++) {
        double *w = row_of(t, row), *g = t->gradients + row * dim;
        uint64_t updates = t->layout.counted ? t->updates[row] : request->global_step;
        if (!t->places[row]) continue;
        if (!request->loss_only) {
            rules64_update(request->rule, request->lr, updates, t->places[row], dim, g, w, w + dim);
            t->updates[row]++;
        }
        memset(g, 0, dim * sizeof *g);
        t->places[row] = 0;
    }
}

double step64(struct table64 *target, struct table64 *context, const struct batch_view *view,
              const struct step_request *request) {
    uint64_t dim = target->layout.dim;
    double loss = 0, scale = request->mean ? 1.0 / (double)view->blocks : 1;
    for (uint64_t t = 0; t < view->target_starts[view->blocks]; t++) target->places[view->target_ids[t]]++;
    for (uint64_t c = 0; c < view->context_starts[view->blocks]; c++) context->places[view->context_ids[c]]++;
    for (uint64_t block = 0; block < view->blocks; block++)
        for (uint64_t t = view->target_starts[block]; t < view->target_starts[block + 1]; t++)
            for (uint64_t c = view->context_starts[block]; c < view->context_starts[block + 1]; c++) {
                uint64_t u = view->target_ids[t], v = view->context_ids[c];
                const double *x = row_of(target, u), *y = row_of(context, v);
                double logit = dot(x, y, dim), positive = c - view->context_starts[block] < view->positives[block];
                double coefficient = (1 / (1 + exp(-logit)) - positive) * scale;
                loss += log1p(exp(-fabs(logit))) + fmax(logit, 0) - positive * logit;
                if (request->loss_only) continue;
                add(target->gradients + u * dim, coefficient, y, dim);
                add(context->gradients + v * dim, coefficient, x, dim);
            }
    update_side(target, request);
    update_side(context, request);
    return loss;
}
