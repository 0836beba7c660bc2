/* filter: spreads rows over a graph (kernels/filter.h), sixteen columns at a time, because sixteen floats are one cache line. It
 * needs 256 bytes a node besides the rows. The result is the same with any number of threads. */
#include "cpu.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "kernels/filter.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 16,    /* number of columns that are computed at a time */
    GRAIN = 1 << 10, /* number of nodes that a worker takes at a time */
    AHEAD = 16       /* the row of an arc's neighbour is prefetched this many arcs before it is read */
};

typedef float lanes[COLUMNS];

struct filter {
    const struct filter_request *graph;
    uint32_t first, columns;           /* columns first .. first + columns - 1 are computed now */
    lanes *older, *newer, *half, *sum; /* [nodes] each: terms T_(i-2) and T_(i-1) of the series; M T_(i-1); the sum of the series */
    int term;
    double factor; /* factor of the current term: (-1)^i c_i */
    void (*work)(struct filter *f, uint64_t node);
    _Atomic uint64_t next; /* the first node that no worker has taken yet */
};

static float weight_of(const struct filter *f, uint64_t arc) {
    return f->graph->weights ? f->graph->weights[arc] : 1;
}

/* Computes a node's row of A times `in`, and returns the sum of A's row. The neighbours' rows are at random addresses, so the
 * rows of later arcs are prefetched, also those of the next nodes' arcs. */
static float gather(const struct filter *f, const lanes *in, uint64_t node, lanes out) {
    const struct filter_request *graph = f->graph;
    float all = graph->loop;
    for (int i = 0; i < COLUMNS; i++) out[i] = graph->loop * in[node][i];
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
    for (int i = 0; i < COLUMNS; i++) out[i] = filter_product(in[node][i], out[i], all);
}

/* Returns the address of the current columns in a node's row. */
static float *row_of(const struct filter *f, uint64_t node) {
    return f->graph->x + node * f->graph->dim + f->first;
}

static void take_columns(struct filter *f, uint64_t node) {
    memset(f->older[node], 0, sizeof(lanes));
    memcpy(f->older[node], row_of(f, node), f->columns * sizeof(float));
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

/* Computes a node's next term of the series. It overwrites the term before the last one. */
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
    for (uint32_t i = 0; i < f->columns; i++) f->half[node][i] = row_of(f, node)[i] - f->sum[node][i];
}

static void give_columns(struct filter *f, uint64_t node) {
    lanes out;
    gather(f, f->half, node, out);
    memcpy(row_of(f, node), out, f->columns * sizeof(float));
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
    f->factor = filter_coefficient(term);
    f->next = 0;
    return pool_run(pool, each_node, f);
}

static int pass_columns(struct filter *f, struct pool *pool) {
    if (do_each(f, take_columns, 0, pool) || do_each(f, halve_first, 1, pool) || do_each(f, find_first, 1, pool))
        return -1;
    for (int term = 2; term < FILTER_TERMS; term++) {
        if (do_each(f, halve_next, term, pool) || do_each(f, find_next, term, pool)) return -1;
        lanes *next = f->older;
        f->older = f->newer;
        f->newer = next;
    }
    return do_each(f, find_rest, 0, pool) || do_each(f, give_columns, 0, pool) ? -1 : 0;
}

int cpu_filter(struct backend *backend, const struct filter_request *request) {
    lanes *memory = mem_aligned(4 * request->nodes, sizeof *memory, "the rows that are spread");
    struct filter f = {.graph = request, .older = memory};
    int result = memory ? 0 : -1;
    if (!result) f.newer = memory + request->nodes, f.half = f.newer + request->nodes, f.sum = f.half + request->nodes;
    for (; !result && f.first < request->dim; f.first += COLUMNS) {
        f.columns = request->dim - f.first < COLUMNS ? request->dim - f.first : COLUMNS;
        result = pass_columns(&f, backend->pool);
    }
    free(memory);
    return result;
}
