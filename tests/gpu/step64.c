#include "step64.h"
#include "common.h"
#include "rules64.h"

struct table64 table64_of(const struct record_layout *layout, uint64_t rows, const char *records) {
    struct table64 t = {.layout = *layout, .rows = rows};
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim;
    t.values = need(rows * floats * sizeof *t.values);
    t.updates = need(rows * sizeof *t.updates);
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = 0; i < floats; i++)
            t.values[row * floats + i] = (double)((const float *)(records + row * layout->packed))[i];
    return t;
}

void table64_free(struct table64 *t) {
    free(t->values);
    free(t->updates);
}

static double *row_of(const struct table64 *t, uint64_t row) {
    return t->values + row * (1 + t->layout.slots) * t->layout.dim;
}

static void add(double *to, double factor, const double *from, uint64_t dim) {
    for (uint64_t i = 0; i < dim; i++) to[i] += factor * from[i];
}

/* Gradients of a side: their sums by row, and in how many places of the batch a row stands. */
struct gradients {
    double *sum;
    uint64_t *places;
};

static struct gradients gradients_of(const struct table64 *t) {
    return (struct gradients){need(t->rows * t->layout.dim * 8), need(t->rows * 8)};
}

static void update_side(struct table64 *t, const struct gradients *g, const struct step_request *request) {
    uint64_t dim = t->layout.dim;
    for (uint64_t row = 0; row < t->rows; row++) {
        double *w = row_of(t, row);
        uint64_t behind = t->layout.counted ? t->updates[row] : request->behind;
        if (!g->places[row]) continue;
        rules64_update(request->rule, request->lr, behind, g->places[row], dim, g->sum + row * dim, w, w + dim);
        t->updates[row]++;
    }
}

double step64(struct table64 *target, struct table64 *context, const struct batch_view *view,
              const struct step_request *request) {
    uint64_t dim = target->layout.dim;
    struct gradients g[2] = {gradients_of(target), gradients_of(context)};
    double loss = 0, scale = request->mean ? 1.0 / (double)view->blocks : 1;
    for (uint64_t t = 0; t < view->target_starts[view->blocks]; t++) g[0].places[view->target_ids[t]]++;
    for (uint64_t c = 0; c < view->context_starts[view->blocks]; c++) g[1].places[view->context_ids[c]]++;
    for (uint64_t block = 0; block < view->blocks; block++)
        for (uint64_t t = view->target_starts[block]; t < view->target_starts[block + 1]; t++)
            for (uint64_t c = view->context_starts[block]; c < view->context_starts[block + 1]; c++) {
                uint64_t u = view->target_ids[t], v = view->context_ids[c];
                const double *x = row_of(target, u), *y = row_of(context, v);
                double logit = 0, positive = c - view->context_starts[block] < view->positives[block];
                for (uint64_t i = 0; i < dim; i++) logit += x[i] * y[i];
                double coefficient = (1 / (1 + exp(-logit)) - positive) * scale;
                loss += log1p(exp(-fabs(logit))) + fmax(logit, 0) - positive * logit;
                add(g[0].sum + u * dim, coefficient, y, dim);
                add(g[1].sum + v * dim, coefficient, x, dim);
            }
    if (!request->loss_only) {
        update_side(target, &g[0], request);
        update_side(context, &g[1], request);
    }
    for (int side = 0; side < 2; side++) {
        free(g[side].sum);
        free(g[side].places);
    }
    return loss;
}
