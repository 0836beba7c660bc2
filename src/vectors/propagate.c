#include "propagate.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 16,    /* of one pass of the filter: a row of them is a cache line */
    TERMS = 10,      /* of the Chebyshev series */
    GRAIN = 1 << 10, /* nodes that a worker takes at once */
    AHEAD = 16,      /* arcs between the one that is added and the one whose row is fetched */
    ROWS = 8,        /* rows that are multiplied at once */
    SPANS = 64       /* of rows, at most, whose products are summed apart */
};
enum { SPANS_BYTES = 1 << 29 }; /* of the spans' sums, at most, where a few would do */
static const double mu = 0.2, theta = 0.5;
static const double wanted_length = 2;
static const double least = 1e-13; /* of the largest eigenvalue: smaller ones are rounding */

typedef float lanes[COLUMNS];

/* ---- the filter ---- */

struct filter {
    const struct graph *graph;
    float *x;                          /* [nodes x dim] */
    uint32_t dim, first, columns;      /* the columns that pass now */
    lanes *older, *newer, *half, *sum; /* [nodes] T_i-2 and T_i-1; M T_i-1; the sum of the series */
    int term;
    double factor; /* of the term: (-1)^i c_i */
    void (*work)(struct filter *f, uint64_t node);
    _Atomic uint64_t next; /* the first node that no worker has taken yet */
};

/* Returns the modified Bessel function of the first kind. */
static double bessel(int order, double x) {
    double term = 1, sum = 0;
    for (int i = 1; i <= order; i++) term *= x / 2 / i;
    for (int i = 1; i <= 30; i++) {
        sum += term;
        term *= x * x / 4 / i / (i + order);
    }
    return sum;
}

static float weight_of(const struct filter *f, uint64_t arc) {
    return f->graph->weights ? f->graph->weights[arc] : 1;
}

/* Computes a node's row of A times `in`. Returns the sum of A's row. Rows lie anywhere in memory, so those of the arcs to come, the
 * next nodes' too, are asked for ahead. */
static float gather(const struct filter *f, const lanes *in, uint64_t node, lanes out) {
    const struct graph *graph = f->graph;
    float all = 1;
    memcpy(out, in[node], sizeof(lanes));
    for (uint64_t arc = graph->starts[node]; arc < graph->starts[node + 1]; arc++) {
        const float *row = in[graph->neighbours[arc]], weight = weight_of(f, arc);
        if (arc + AHEAD < graph->arcs) __builtin_prefetch(in[graph->neighbours[arc + AHEAD]]);
        for (int i = 0; i < COLUMNS; i++) out[i] += weight * row[i];
        all += weight;
    }
    return all;
}

/* Computes a node's row of M times `in`. */
static void multiply(const struct filter *f, const lanes *in, uint64_t node, lanes out) {
    float all = gather(f, in, node, out);
    for (int i = 0; i < COLUMNS; i++) out[i] = (float)(1 - mu) * in[node][i] - out[i] / all;
}

static void take_columns(struct filter *f, uint64_t node) {
    memset(f->older[node], 0, sizeof(lanes));
    memcpy(f->older[node], f->x + node * f->dim + f->first, f->columns * sizeof(float));
    for (int i = 0; i < COLUMNS; i++) f->sum[node][i] = (float)f->factor * f->older[node][i];
}

static void halve_first(struct filter *f, uint64_t node) {
    multiply(f, f->older, node, f->half[node]);
}

static void find_first(struct filter *f, uint64_t node) {
    multiply(f, f->half, node, f->newer[node]);
    for (int i = 0; i < COLUMNS; i++) {
        f->newer[node][i] = f->newer[node][i] / 2 - f->older[node][i];
        f->sum[node][i] += (float)f->factor * f->newer[node][i];
    }
}

static void halve_next(struct filter *f, uint64_t node) {
    multiply(f, f->newer, node, f->half[node]);
}

/* The next term takes the place of the one before the last. */
static void find_next(struct filter *f, uint64_t node) {
    lanes twice;
    multiply(f, f->half, node, twice);
    for (int i = 0; i < COLUMNS; i++) {
        float next = twice[i] - 2 * f->newer[node][i] - f->older[node][i];
        f->older[node][i] = next;
        f->sum[node][i] += (float)f->factor * next;
    }
}

static void find_rest(struct filter *f, uint64_t node) {
    for (uint32_t i = 0; i < f->columns; i++) f->half[node][i] = f->x[node * f->dim + f->first + i] - f->sum[node][i];
}

static void give_columns(struct filter *f, uint64_t node) {
    lanes out;
    gather(f, f->half, node, out);
    memcpy(f->x + node * f->dim + f->first, out, f->columns * sizeof(float));
}

static int each_node(void *context, unsigned worker) {
    struct filter *f = context;
    uint64_t first, end;
    (void)worker;
    while (pool_take(&f->next, f->graph->nodes, GRAIN, &first, &end)) {
        if (interrupt_check()) return -1;
        for (uint64_t node = first; node < end; node++) f->work(f, node);
    }
    return 0;
}

static int do_each(struct filter *f, void (*work)(struct filter *f, uint64_t node), int term, struct pool *pool) {
    f->work = work;
    f->factor = (term % 2 ? -1 : 1) * (term ? 2 : 1) * bessel(term, theta);
    f->next = 0;
    return pool_run(pool, each_node, f);
}

static int pass_columns(struct filter *f, struct pool *pool) {
    if (do_each(f, take_columns, 0, pool) || do_each(f, halve_first, 1, pool) || do_each(f, find_first, 1, pool))
        return -1;
    for (int term = 2; term < TERMS; term++) {
        if (do_each(f, halve_next, term, pool) || do_each(f, find_next, term, pool)) return -1;
        lanes *next = f->older;
        f->older = f->newer;
        f->newer = next;
    }
    return do_each(f, find_rest, 0, pool) || do_each(f, give_columns, 0, pool) ? -1 : 0;
}

static int pass(float *x, uint32_t dim, const struct graph *graph, struct pool *pool) {
    lanes *memory = mem_aligned(4 * graph->nodes, sizeof *memory, "the rows that are propagated");
    struct filter f = {.graph = graph, .x = x, .dim = dim, .older = memory};
    int result = memory ? 0 : -1;
    if (!result) f.newer = memory + graph->nodes, f.half = f.newer + graph->nodes, f.sum = f.half + graph->nodes;
    for (; !result && f.first < dim; f.first += COLUMNS) {
        f.columns = dim - f.first < COLUMNS ? dim - f.first : COLUMNS;
        result = pass_columns(&f, pool);
    }
    free(memory);
    return result;
}

/* ---- the singular value decomposition ---- */

struct turning {
    float *x; /* [nodes x dim] */
    uint64_t nodes, spans;
    uint32_t dim;
    double *products; /* [spans x dim x dim] sums of products of columns, right of the diagonal; then the whole in the
                         first */
    float *turn;      /* [dim x dim] V sqrt(S) / S */
    _Atomic uint64_t next;
};

/* Adds the products of columns of ROWS rows. */
static void add_products(const float *x, uint32_t dim, double *out) {
    for (uint32_t i = 0; i < dim; i++, out += dim)
        for (uint32_t j = i; j < dim; j++) {
            float sum = 0;
            for (int row = 0; row < ROWS; row++) sum += x[row * dim + i] * x[row * dim + j];
            out[j] += (double)sum;
        }
}

static void span_of(const struct turning *t, uint64_t span, uint64_t *first, uint64_t *end) {
    pool_share(t->nodes, (unsigned)span, (unsigned)t->spans, first, end);
}

/* The last rows of a span are filled up with zeros. */
static int multiply_spans(void *context, unsigned worker) {
    struct turning *t = context;
    float *last = mem_zalloc(ROWS, t->dim * sizeof *last, "products of columns");
    uint64_t span, stop, first, end;
    (void)worker;
    while (last && pool_take(&t->next, t->spans, 1, &span, &stop)) {
        double *out = t->products + span * t->dim * t->dim;
        span_of(t, span, &first, &end);
        for (; first + ROWS <= end; first += ROWS) add_products(t->x + first * t->dim, t->dim, out);
        memset(last, 0, ROWS * t->dim * sizeof *last);
        memcpy(last, t->x + first * t->dim, (end - first) * t->dim * sizeof *last);
        add_products(last, t->dim, out);
    }
    free(last);
    return last ? 0 : -1;
}

static void add_spans(struct turning *t) {
    uint64_t size = (uint64_t)t->dim * t->dim;
    for (uint64_t span = 1; span < t->spans; span++)
        for (uint64_t i = 0; i < size; i++) t->products[i] += t->products[span * size + i];
    for (uint32_t i = 0; i < t->dim; i++)
        for (uint32_t j = 0; j < i; j++) t->products[(uint64_t)i * t->dim + j] = t->products[(uint64_t)j * t->dim + i];
}

/* Eigenvalues of X^T X are squares of singular values: U sqrt(S) = X V sqrt(S) / S. */
static int find_turn(struct turning *t) {
    uint32_t dim = t->dim;
    double *values = mem_alloc(dim, sizeof *values, "singular values");
    double *vectors = mem_alloc((uint64_t)dim * dim, sizeof *vectors, "singular vectors");
    int result = values && vectors ? 0 : -1;
    if (!result) eigen_symmetric(t->products, dim, values, vectors);
    for (uint32_t i = 0; !result && i < dim; i++) {
        double factor = values[i] > least * values[0] ? pow(values[i], -0.25) : 0;
        for (uint32_t j = 0; j < dim; j++)
            t->turn[(uint64_t)j * dim + i] = (float)(factor * vectors[(uint64_t)i * dim + j]);
    }
    free(values);
    free(vectors);
    return result;
}

static void turn_row(const struct turning *t, float *row, float *out) {
    double squares = 0;
    memset(out, 0, t->dim * sizeof *out);
    for (uint32_t i = 0; i < t->dim; i++)
        for (uint32_t j = 0; j < t->dim; j++) out[j] += row[i] * t->turn[(uint64_t)i * t->dim + j];
    for (uint32_t j = 0; j < t->dim; j++) squares += (double)out[j] * (double)out[j];
    float length = (float)(fmax(sqrt(squares), 1e-12) / wanted_length);
    for (uint32_t j = 0; j < t->dim; j++) row[j] = out[j] / length;
}

static int turn_rows(void *context, unsigned worker) {
    struct turning *t = context;
    float *out = mem_aligned(t->dim, sizeof *out, "a row");
    uint64_t first, end;
    (void)worker;
    while (out && pool_take(&t->next, t->nodes, GRAIN, &first, &end))
        for (uint64_t node = first; node < end; node++) turn_row(t, t->x + node * t->dim, out);
    free(out);
    return out ? 0 : -1;
}

/* Replaces X by U sqrt(S), and gives each row its length. */
static int decompose(float *x, uint32_t dim, uint64_t nodes, struct pool *pool) {
    struct turning t = {
        .x = x, .nodes = nodes, .spans = SPANS_BYTES / ((uint64_t)dim * dim * sizeof(double)), .dim = dim};
    t.spans = t.spans < 4 ? 4 : t.spans > SPANS ? SPANS : t.spans;
    t.products = mem_zalloc(t.spans, (uint64_t)dim * dim * sizeof *t.products, "products of columns");
    t.turn = mem_aligned((uint64_t)dim * dim, sizeof *t.turn, "singular vectors");
    int result = t.products && t.turn ? pool_run(pool, multiply_spans, &t) : -1;
    if (!result) {
        add_spans(&t);
        result = find_turn(&t);
    }
    t.next = 0;
    if (!result) result = pool_run(pool, turn_rows, &t);
    free(t.products);
    free(t.turn);
    return result;
}

int propagate(float *x, uint32_t dim, const struct graph *graph, struct pool *pool) {
    return pass(x, dim, graph, pool) || decompose(x, dim, graph->nodes, pool) ? -1 : 0;
}
