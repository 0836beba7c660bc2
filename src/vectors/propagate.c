#include "list_scores.h"

#include "base/checks.h"
#include "base/memory.h"
#include "base/report.h"
#include "numeric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRAIN = 1 << 10, /* number of nodes that a worker handles before it asks for more */
    ROWS = 8,        /* number of rows that are multiplied together */
    SPANS = 64       /* most spans into which rows are divided; products of columns are summed for each span */
};
enum { SPANS_BYTES = 1 << 29 }; /* most bytes of all spans' sums */
static const double wanted_length = 2;
static const double least = 1e-13; /* eigenvalues below this share of the largest one are rounding errors */

/* ---- the singular value decomposition ---- */

struct turning {
    float *x; /* [nodes x dim] the rows, changed in place */
    uint64_t nodes, spans;
    uint32_t dim;
    double *products; /* [spans x dim x dim] sums of the products of columns, upper triangles; in the end the first one is the sum over all spans */
    float *turn;      /* [dim x dim] V sqrt(S) / S */
    _Atomic uint64_t next;
};

/* Adds the products of all pairs of columns, over ROWS rows, to `out`. */
static void add_products(const float *x, uint32_t dim, double *out) {
    for (uint32_t i = 0; i < dim; i++, out += dim)
        for (uint32_t j = i; j < dim; j++) {
            float sum = 0;
            for (int row = 0; row < ROWS; row++) sum += x[row * dim + i] * x[row * dim + j];
            out[j] += (double)sum;
        }
}

/* Computes the sums of a worker's spans. The last rows of a span are padded with zeros to ROWS rows. */
static int multiply_spans(void *context, unsigned worker) {
    struct turning *t = context;
    OWNED float *last = mem_zalloc(ROWS, t->dim * sizeof *last, "products of columns");
    uint64_t span, stop, first, end;
    while (last && pool_take(&t->next, t->spans, 1, &span, &stop)) {
        double *out = t->products + span * t->dim * t->dim;
        pool_share(t->nodes, (unsigned)span, (unsigned)t->spans, &first, &end);
        for (; first + ROWS <= end; first += ROWS) add_products(t->x + first * t->dim, t->dim, out);
        memset(last, 0, ROWS * t->dim * sizeof *last);
        memcpy(last, t->x + first * t->dim, (end - first) * t->dim * sizeof *last);
        add_products(last, t->dim, out);
    }
    return last ? 0 : -1;
}

/* Computes `turn`, by which rows are multiplied. The eigenvalues of X^T X are the squares of the singular values, so U sqrt(S) = X V sqrt(S) / S. */
static int find_turn(struct turning *t) {
    uint32_t dim = t->dim;
    OWNED double *values = mem_alloc(dim, sizeof *values, "singular values");
    OWNED double *vectors = mem_alloc((uint64_t)dim * dim, sizeof *vectors, "singular vectors");
    int result = values && vectors ? 0 : -1;
    if (!result) eigen_symmetric(t->products, dim, values, vectors);
    for (uint32_t i = 0; !result && i < dim; i++) {
        double factor = values[i] > least * values[0] ? pow(values[i], -0.25) : 0;
        for (uint32_t j = 0; j < dim; j++) t->turn[(uint64_t)j * dim + i] = (float)(factor * vectors[(uint64_t)i * dim + j]);
    }
    return result;
}

/* Multiplies a row by `turn`. The row is first scaled by a power of two so that its largest value is between 1/2 and 1, since squares of very
 * small or large values would become 0 or infinite. Only its direction matters. */
static void turn_row(const struct turning *t, float *row, float *out) {
    double squares = 0;
    float most = 0;
    int exponent;
    for (uint32_t i = 0; i < t->dim; i++) most = fmaxf(most, fabsf(row[i]));
    frexpf(most, &exponent);
    for (uint32_t i = 0; i < t->dim; i++) row[i] = ldexpf(row[i], -exponent);
    memset(out, 0, t->dim * sizeof *out);
    for (uint32_t i = 0; i < t->dim; i++)
        for (uint32_t j = 0; j < t->dim; j++) out[j] += row[i] * t->turn[(uint64_t)i * t->dim + j];
    for (uint32_t j = 0; j < t->dim; j++) squares += (double)out[j] * (double)out[j];
    float length = (float)(sqrt(squares) / wanted_length);
    for (uint32_t j = 0; j < t->dim; j++) row[j] = length > 0 ? out[j] / length : 0;
}

static int turn_rows(void *context, unsigned worker) {
    struct turning *t = context;
    OWNED float *out = mem_aligned(t->dim, sizeof *out, "a row");
    uint64_t first, end;
    while (out && pool_take(&t->next, t->nodes, GRAIN, &first, &end))
        for (uint64_t node = first; node < end; node++) turn_row(t, t->x + node * t->dim, out);
    return out ? 0 : -1;
}

/* Replaces the rows X by U sqrt(S), each scaled to wanted_length. */
static int decompose(float *x, uint32_t dim, uint64_t nodes, struct pool *pool) {
    struct turning t = {.x = x, .nodes = nodes, .spans = SPANS_BYTES / ((uint64_t)dim * dim * sizeof(double)), .dim = dim};
    t.spans = t.spans < 4 ? 4 : t.spans > SPANS ? SPANS : t.spans;
    t.products = mem_zalloc(t.spans, (uint64_t)dim * dim * sizeof *t.products, "products of columns");
    t.turn = mem_aligned((uint64_t)dim * dim, sizeof *t.turn, "singular vectors");
    int result = t.products && t.turn ? pool_run(pool, multiply_spans, &t) : -1;
    uint64_t size = (uint64_t)dim * dim;
    for (uint64_t span = 1; !result && span < t.spans; span++)
        for (uint64_t i = 0; i < size; i++) t.products[i] += t.products[span * size + i];
    for (uint64_t i = 0; !result && i < size; i++)
        if (i / dim > i % dim) t.products[i] = t.products[i % dim * dim + i / dim];
    if (!result) result = find_turn(&t);
    t.next = 0;
    if (!result) result = pool_run(pool, turn_rows, &t);
    mem_free(t.products, t.turn);
    return result;
}

static int filter_by(const struct backend_ops *ops, unsigned threads, const struct filter_request *request) {
    struct backend_options options = {.threads = threads, .depth = 1, .gpu_budget = UINT64_MAX};
    struct backend *backend;
    if (ops->open(&backend, &options)) return -1;
    int result = ops->filter(backend, request);
    ops->close(backend);
    return result;
}

/* ---- large weights ---- */

/* Returns the power of two by which weights are multiplied so that no sum of the filter overflows a float; 1 unless some node's weights add up to
 * 2^40 or more. The filter's result becomes smaller by that factor, which does not matter, since rows are scaled to a fixed length later. */
static float unit_of(const struct graph *graph) {
    enum { LARGEST = 40 };
    double most = 0;
    int exponent;
    for (uint64_t node = 0; graph->weights && node < graph->nodes; node++) {
        double sum = 0;
        for (uint64_t arc = graph->starts[node]; arc < graph->starts[node + 1]; arc++) sum += (double)graph->weights[arc];
        most = fmax(most, sum);
    }
    frexp(most, &exponent);
    return exponent > LARGEST ? ldexpf(1, LARGEST - exponent) : 1;
}

int propagate(float *x, uint32_t dim, const struct graph *graph, const struct backend_ops *ops, struct pool *pool) {
    struct filter_request request = {.starts = graph->starts,
                                     .neighbours = graph->neighbours,
                                     .weights = graph->weights,
                                     .loop = 1,
                                     .nodes = graph->nodes,
                                     .arcs = graph->arcs,
                                     .x = x,
                                     .dim = dim};
    float unit = unit_of(graph), *weights = unit != 1 ? mem_alloc(request.arcs, sizeof *weights, "the weights of a graph") : NULL;
    if (unit != 1 && !weights) return -1;
    for (uint64_t arc = 0; weights && arc < request.arcs; arc++) weights[arc] = unit * request.weights[arc];
    if (weights) request.weights = weights, request.loop = unit;
    int result = filter_by(ops, pool_threads(pool), &request);
    if (result > 0) result = filter_by(backend_without_gpu(), pool_threads(pool), &request);
    free(weights);
    if (result || decompose(x, dim, graph->nodes, pool)) return -1;
    return floats_finite(x, graph->nodes * dim) ? 0 : fail("the rows of the graph's nodes, or their products, hold NaN or infinity");
}
