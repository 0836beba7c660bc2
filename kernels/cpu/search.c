/* search: exact top-k, and exact ranks, by matrix products over slices of the base rows. A slice's products fit into the cache, and comparing them
 * with the worst score that a query still keeps excludes nearly all rows. The others get the exact score of kernels/finished.h, so that a query's
 * answer depends neither on the number of threads nor on other queries. */
#include "cpu.h"
#include "rows.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "kernels/finished.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE_ROWS = 1024,    /* number of base rows of one product */
    CHUNK_QUERIES = 256,  /* most queries of one product: 1 MiB */
    KEPT_BYTES = 8 << 20, /* most bytes of candidates that a worker keeps; exceeded only by a chunk of one query */
    SCAN = 32,            /* number of products that are compared together */
    FEW_QUERIES = 4       /* with fewer queries it is not worth the time to copy rows into panels */
};

struct candidate {
    float score;
    uint32_t id;
};

struct search_job {
    const struct topk_request *request;
    const struct cpu_rows *rows;
    uint64_t k;                /* the request's k, or the number of base rows if that is less */
    uint64_t chunk, chunks;    /* chunk: queries of a chunk; chunks: number of chunks */
    uint64_t parts;            /* number of parts into which the base rows are divided for threads */
    struct candidate *partial; /* if parts > 1: [query_rows x parts x k] candidates of each part, best first */
    uint64_t *partial_counts;  /* [query_rows x parts] */
    _Atomic uint64_t next;
};

/* The k best answers to a query so far: a heap whose first entry is the worst of them. */
struct kept {
    struct candidate *heap; /* [k] */
    uint64_t count;
    float worst;    /* a new answer must have a higher score; -infinity while there are fewer than k answers */
    double squares; /* squared length of the query */
};

/* Returns 1 if a is a worse answer than b: its score is lower, or equal with a higher id. */
static int worse(struct candidate a, struct candidate b) {
    return a.score < b.score || (a.score == b.score && a.id > b.id);
}

static void sift_down(struct candidate *heap, uint64_t count, uint64_t at) {
    struct candidate moved = heap[at];
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && worse(heap[child + 1], heap[child])) child++;
        if (!worse(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void keep(struct kept *kept, uint64_t k, float score, uint32_t id) {
    struct candidate found = {score, id};
    INVARIANT(kept->count <= k && (kept->count < k || score >= kept->worst)); /* a full heap is only given answers that are better than its worst
                                                                               * one */
    if (kept->count < k) {
        uint64_t at = kept->count++;
        for (; at && worse(found, kept->heap[(at - 1) / 2]); at = (at - 1) / 2) kept->heap[at] = kept->heap[(at - 1) / 2];
        kept->heap[at] = found;
    } else {
        kept->heap[0] = found;
        sift_down(kept->heap, k, 0);
    }
    if (kept->count == k) kept->worst = kept->heap[0].score;
}

/* ---- a slice ---- */

/* Consecutive base rows whose products are computed together. */
struct slice {
    const float *rows; /* [count x dim] */
    uint64_t first, count;
    float squares; /* squared length of the longest of these rows */
};

static struct slice open_slice(const struct search_job *job, uint64_t first, uint64_t end) {
    const struct topk_request *r = job->request;
    struct slice slice = {r->base + first * r->dim, first, end - first < SLICE_ROWS ? end - first : SLICE_ROWS, 0};
    for (uint64_t row = 0; row < slice.count; row++) {
        const float *at = slice.rows + row * r->dim;
        float squares;
        job->rows->dots(&at, 1, &at, 1, r->dim, &squares, 1);
        if (squares > slice.squares) slice.squares = squares; /* rows with NaN are ignored: they are never answers */
    }
    return slice;
}

/* A worker's arrays for products. */
struct desk {
    float *products;                     /* [chunk x SLICE_ROWS] */
    float *panel;                        /* [dim x CPU_PANEL] */
    const float *queries[CHUNK_QUERIES]; /* the chunk's queries */
    const float *slice_rows[SLICE_ROWS];
};

/* Copies rows into a panel, padded with rows of zeros. Copies a few columns of all rows at a time, so that the part that is written stays in the
 * cache. */
static void fill_panel(float *panel, const float *rows, uint64_t count, uint32_t dim) {
    enum { PIECE = 8 };
    for (uint32_t first = 0; first < dim; first += PIECE) {
        uint32_t end = dim - first < PIECE ? dim : first + PIECE;
        for (uint64_t row = 0; row < CPU_PANEL; row++)
            for (uint32_t j = first; j < end; j++) panel[(uint64_t)j * CPU_PANEL + row] = row < count ? rows[row * dim + j] : 0;
    }
}

/* Multiplies a chunk's queries with a slice's rows. */
static void multiply(const struct search_job *job, struct desk *desk, uint64_t queries, const struct slice *slice) {
    uint32_t dim = job->request->dim;
    if (queries < FEW_QUERIES) {
        for (uint64_t row = 0; row < slice->count; row++) desk->slice_rows[row] = slice->rows + row * dim;
        job->rows->dots(desk->queries, (uint32_t)queries, desk->slice_rows, (uint32_t)slice->count, dim, desk->products, SLICE_ROWS);
        return;
    }
    for (uint64_t row = 0; row < slice->count; row += CPU_PANEL) {
        uint64_t left = slice->count - row;
        fill_panel(desk->panel, slice->rows + row * dim, left < CPU_PANEL ? left : CPU_PANEL, dim);
        job->rows->products(desk->queries, (uint32_t)queries, desk->panel, dim, desk->products + row, SLICE_ROWS, 0);
    }
}

static int is_banned(const struct topk_request *r, uint64_t query, uint32_t id) {
    uint64_t low = r->banned_starts ? r->banned_starts[query] : 0, high = r->banned_starts ? r->banned_starts[query + 1] : 0;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (r->banned[middle] == id) return 1;
        if (r->banned[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* Computes a row's exact score, and keeps the row if it beats the worst kept one. Ids rise within a part, so of equal scores the lower id is kept. */
static void score_row(const struct search_job *job, const struct slice *slice, uint64_t query, uint64_t row, struct kept *kept) {
    const struct topk_request *r = job->request;
    uint32_t id = (uint32_t)(slice->first + row);
    if (is_banned(r, query, id)) return;
    float score = search_score(r->queries + query * r->dim, slice->rows + row * r->dim, r->dim);
    if (score > kept->worst) keep(kept, job->k, score, id);
}

/* Computes the exact scores of those rows of a slice that their products do not exclude; a product of NaN excludes no row. */
static void scan(const struct search_job *job, const struct slice *slice, uint64_t query, const float *products, struct kept *kept) {
    float margin = search_margin(job->request->dim, kept->squares, slice->squares);
    for (uint64_t i = 0; i < slice->count; i += SCAN) {
        uint64_t n = slice->count - i < SCAN ? slice->count - i : SCAN;
        float least = kept->worst - margin;
        if (n == SCAN) {
            int above = 0;
            for (int j = 0; j < SCAN; j++) above += !(products[i + (uint64_t)j] < least);
            if (!above) continue;
        }
        for (uint64_t j = i; j < i + n; j++)
            if (!(products[j] < kept->worst - margin)) score_row(job, slice, query, j, kept);
    }
}

/* ---- counting ---- */

/* How many scores are above topk_request.than, and how many are equal to it. */
struct count {
    uint64_t above, level;
};

/* Counts a row by its product, or, if that is within the margin of `than`, by its exact score. */
static inline void count_row(const struct search_job *job, const struct slice *slice, uint64_t query, uint64_t row, float product,
                             float margin, struct count *count) {
    const struct topk_request *r = job->request;
    float than = r->than[query];
    if (product < than - margin) return;
    float score = product > than + margin ? HUGE_VALF : search_score(r->queries + query * r->dim, slice->rows + row * r->dim, r->dim);
    count->above += score > than;
    count->level += score == than;
}

/* Counts the rows of a slice for a query, except banned ones. Workers may do this at the same time for different slices. */
static void count_slice(const struct search_job *job, const struct slice *slice, uint64_t query, const float *products, double squares) {
    const struct topk_request *r = job->request;
    float margin = search_margin(r->dim, squares, slice->squares), least = r->than[query] - margin;
    struct count all = {0, 0}, banned = {0, 0};
    for (uint64_t i = 0; i < slice->count; i += SCAN) {
        uint64_t n = slice->count - i < SCAN ? slice->count - i : SCAN;
        int may = n < SCAN;
        for (int j = 0; j < SCAN && n == SCAN; j++) may |= !(products[i + (uint64_t)j] < least);
        for (uint64_t j = i; may && j < i + n; j++) count_row(job, slice, query, j, products[j], margin, &all);
    }
    for (uint64_t i = r->banned_starts ? r->banned_starts[query] : 0; r->banned_starts && i < r->banned_starts[query + 1]; i++) {
        uint64_t row = r->banned[i] - slice->first; /* a row of an earlier slice wraps to a large number */
        if (row < slice->count) count_row(job, slice, query, row, products[row], margin, &banned);
    }
    __atomic_fetch_add(&r->above[query], all.above - banned.above, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->level[query], all.level - banned.level, __ATOMIC_RELAXED);
}

/* ---- answers ---- */

static int best_first(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return worse(*x, *y) ? 1 : worse(*y, *x) ? -1 : 0;
}

static void write_answer(const struct topk_request *request, uint64_t query, const struct candidate *best, uint64_t count) {
    uint32_t *ids = request->ids + query * request->k;
    float *scores = request->scores + query * request->k;
    for (uint64_t i = 0; i < request->k; i++) {
        ids[i] = i < count ? best[i].id : DRAW_NONE;
        scores[i] = i < count ? best[i].score : -HUGE_VALF;
    }
}

/* Writes the candidates kept for a query to the answer or, if the base rows have several parts, to `partial`. */
static void hand_over(struct search_job *job, struct kept *kept, uint64_t query, uint64_t part) {
    qsort(kept->heap, kept->count, sizeof *kept->heap, best_first);
    if (job->parts == 1) {
        write_answer(job->request, query, kept->heap, kept->count);
        return;
    }
    uint64_t at = query * job->parts + part;
    memcpy(job->partial + at * job->k, kept->heap, kept->count * sizeof *kept->heap);
    job->partial_counts[at] = kept->count;
}

static void search_unit(struct search_job *job, uint64_t unit, struct desk *desk, struct candidate *heaps, struct kept *kept) {
    const struct topk_request *r = job->request;
    uint64_t part = unit % job->parts, query = unit / job->parts * job->chunk, first, end;
    uint64_t queries = r->query_rows - query < job->chunk ? r->query_rows - query : job->chunk;
    pool_share(r->base_rows, (unsigned)part, (unsigned)job->parts, &first, &end);
    for (uint64_t q = 0; q < queries; q++) {
        const float *asked = desk->queries[q] = r->queries + (query + q) * r->dim;
        kept[q] = (struct kept){heaps + q * job->k, 0, -HUGE_VALF, search_sum(asked, asked, r->dim)};
    }
    for (uint64_t row = first; row < end; row += SLICE_ROWS) {
        struct slice slice = open_slice(job, row, end);
        multiply(job, desk, queries, &slice);
        for (uint64_t q = 0; q < queries; q++) {
            const float *products = desk->products + q * SLICE_ROWS;
            if (r->than) count_slice(job, &slice, query + q, products, kept[q].squares);
            else scan(job, &slice, query + q, products, &kept[q]);
        }
    }
    for (uint64_t q = 0; q < queries && !r->than; q++) hand_over(job, &kept[q], query + q, part);
}

static int search_work(void *context, unsigned worker) {
    struct search_job *job = context;
    OWNED struct desk *desk = mem_zalloc(1, sizeof *desk, "a search");
    OWNED float *products = mem_aligned(job->chunk * SLICE_ROWS, sizeof *products, "a slice of products");
    float *panel = mem_aligned(job->request->dim, CPU_PANEL * sizeof *panel, "a panel of rows");
    OWNED struct candidate *heaps = mem_alloc(job->chunk * job->k, sizeof *heaps, "the best rows of a search");
    OWNED struct kept *kept = mem_alloc(job->chunk, sizeof *kept, "the best rows of a search");
    int result = desk && products && panel && heaps && kept ? 0 : -1;
    uint64_t unit, end;
    if (!result) desk->products = products, desk->panel = panel;
    while (!result && pool_take(&job->next, job->chunks * job->parts, 1, &unit, &end)) search_unit(job, unit, desk, heaps, kept);
    free(panel);
    return result;
}

/* Merges the parts' answers to each query; there are several parts only if queries are fewer than threads. */
static int merge_parts(struct search_job *job) {
    uint64_t capacity = job->parts * job->k;
    OWNED struct candidate *all = mem_alloc(capacity, sizeof *all, "the best rows of a search");
    if (!all) return -1;
    for (uint64_t query = 0; query < job->request->query_rows; query++) {
        uint64_t count = 0;
        for (uint64_t part = 0; part < job->parts; part++) {
            uint64_t at = query * job->parts + part;
            memcpy(all + count, job->partial + at * job->k, job->partial_counts[at] * sizeof *all);
            count += job->partial_counts[at];
        }
        qsort(all, count, sizeof *all, best_first);
        write_answer(job->request, query, all, count < job->k ? count : job->k);
    }
    return 0;
}

/* Divides the work so that every thread has some: into chunks of queries and, if queries are fewer than threads, into parts of the base rows. */
static void divide(struct search_job *job, unsigned workers) {
    const struct topk_request *r = job->request;
    uint64_t capacity = KEPT_BYTES / (job->k * sizeof(struct candidate)), each = (r->query_rows + workers - 1) / workers;
    job->chunk = each < CHUNK_QUERIES ? each : CHUNK_QUERIES;
    if (job->chunk > capacity) job->chunk = capacity ? capacity : 1;
    job->chunks = (r->query_rows + job->chunk - 1) / job->chunk;
    uint64_t slices = (r->base_rows + SLICE_ROWS - 1) / SLICE_ROWS;
    job->parts = r->query_rows < workers ? (workers + r->query_rows - 1) / r->query_rows : 1;
    if (job->parts > slices) job->parts = slices;
}

int cpu_topk(struct pool *pool, const struct topk_request *request) {
    struct search_job job = {.request = request, .rows = cpu_rows_best()};
    int result = 0;
    if (!request->query_rows || (!request->k && !request->than)) return 0;
    if (!request->dim || request->dim > INT32_MAX || request->base_rows > DRAW_NONE)
        return fail("a search over %llu rows of %u columns is more than row numbers of 32 bits allow",
                    (unsigned long long)request->base_rows, request->dim);
    job.k = request->than ? 1 : request->k < request->base_rows ? request->k : request->base_rows;
    if (request->than) {
        memset(request->above, 0, request->query_rows * sizeof *request->above);
        memset(request->level, 0, request->query_rows * sizeof *request->level);
        if (!request->base_rows) return 0;
    }
    if (!job.k) {
        for (uint64_t query = 0; query < request->query_rows; query++) write_answer(request, query, NULL, 0);
        return 0;
    }
    divide(&job, pool_threads(pool));
    int merged = job.parts > 1 && !request->than;
    if (merged) {
        job.partial = mem_alloc(request->query_rows * job.parts, job.k * sizeof *job.partial, "the best rows of a search");
        job.partial_counts = mem_zalloc(request->query_rows * job.parts, sizeof *job.partial_counts, "a search");
        result = job.partial && job.partial_counts ? 0 : -1;
    }
    if (!result) result = pool_run(pool, search_work, &job);
    if (!result && merged) result = merge_parts(&job);
    mem_free(job.partial, job.partial_counts);
    return result;
}

/* ==== rows spread over a graph ====
 *
 * Spreads rows over a graph (kernels/finished.h), sixteen columns at a time, since sixteen floats are one cache line. Needs 256 bytes for each
 * node besides the rows. The result does not depend on the number of threads. */

enum {
    COLUMNS = 16,    /* number of columns that are computed at a time */
    GRAIN = 1 << 10, /* number of nodes that a worker computes before it asks for more */
    AHEAD = 16       /* how many arcs ahead a neighbour's row is prefetched */
};

typedef float lanes[COLUMNS];

struct filter {
    const struct filter_request *graph;
    uint32_t first, columns;           /* the columns that are computed now: first .. first + columns - 1 */
    lanes *older, *newer, *half, *sum; /* [nodes] each: terms T_(i-2) and T_(i-1) of the series, M T_(i-1), and the sum of the series so far */
    int term;
    double factor; /* factor of the current term: (-1)^i c_i */
    void (*work)(struct filter *f, uint64_t node);
    _Atomic uint64_t next; /* the next node for a worker */
};

static float weight_of(const struct filter *f, uint64_t arc) {
    return f->graph->weights ? f->graph->weights[arc] : 1;
}

/* Computes a node's row of A times `in`, and returns the sum of A's row. Neighbours' rows are at random addresses, so they are prefetched some
 * arcs ahead, even those of the next nodes. */
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
static void multiply_columns(const struct filter *f, const lanes *in, uint64_t node, lanes out) {
    float all = gather(f, in, node, out);
    for (int i = 0; i < COLUMNS; i++) out[i] = filter_product(in[node][i], out[i], all);
}

/* Returns where the current columns of a node's row are. */
static float *row_of(const struct filter *f, uint64_t node) {
    return f->graph->x + node * f->graph->dim + f->first;
}

static void take_columns(struct filter *f, uint64_t node) {
    memset(f->older[node], 0, sizeof(lanes));
    memcpy(f->older[node], row_of(f, node), f->columns * sizeof(float));
    for (int i = 0; i < COLUMNS; i++) f->sum[node][i] = (float)f->factor * f->older[node][i];
}

static void halve_first(struct filter *f, uint64_t node) {
    multiply_columns(f, f->older, node, f->half[node]);
}

static void find_first(struct filter *f, uint64_t node) {
    multiply_columns(f, f->half, node, f->newer[node]);
    for (int i = 0; i < COLUMNS; i++) {
        f->newer[node][i] = f->newer[node][i] / 2 - f->older[node][i];
        f->sum[node][i] += (float)f->factor * f->newer[node][i];
    }
}

static void halve_next(struct filter *f, uint64_t node) {
    multiply_columns(f, f->newer, node, f->half[node]);
}

/* Computes a node's next term of the series, in place of the term before the last one. */
static void find_next(struct filter *f, uint64_t node) {
    lanes twice;
    multiply_columns(f, f->half, node, twice);
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
    if (do_each(f, take_columns, 0, pool) || do_each(f, halve_first, 1, pool) || do_each(f, find_first, 1, pool)) return -1;
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

/* ==== rows of new lists ====
 *
 * The CPU's part of kernels/finished.h. A worker solves several lists (a block) together, and reads a negative's row once for all of them. Scores and
 * gradients are matrix products, for which the negatives are stored twice, in panels:
 *
 *   by_row      [padded / CPU_PANEL][dim x CPU_PANEL]       scores: panels of CPU_PANEL negatives
 *   by_column   [columns / CPU_PANEL][padded x CPU_PANEL]   gradients: panels of CPU_PANEL columns
 */

enum {
    BLOCK_LISTS = 16,
    CHUNK = 256 /* number of negatives in one product for gradients: their part of a panel, 32 KiB, fits into a first-level cache */
};

struct backend_fold {
    struct backend *backend;
    struct fold_problem problem; /* after opening, only its array `ids` is used */
    uint32_t *ids;
    uint32_t padded, columns; /* padded: number of negatives, columns: number of columns, both rounded up to whole panels */
    float *by_row, *by_column;
};

static uint32_t whole_panels(uint32_t count) {
    return (count + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

int cpu_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **out) {
    struct backend_fold *fold = *out = mem_zalloc(1, sizeof *fold, "negatives of new lists");
    if (!fold) return -1;
    *fold = (struct backend_fold){.backend = backend, .problem = *problem};
    fold->padded = whole_panels(problem->count);
    fold->columns = whole_panels(problem->dim);
    uint64_t row_bytes = fold->padded * sizeof(float);
    fold->ids = mem_alloc(problem->count, sizeof *fold->ids, "negatives of new lists");
    fold->by_row = mem_aligned(problem->dim, row_bytes, "negatives of new lists");
    fold->by_column = mem_aligned(fold->columns, row_bytes, "negatives of new lists");
    if (!fold->ids || !fold->by_row || !fold->by_column) {
        cpu_fold_close(fold);
        *out = NULL;
        return -1;
    }
    memcpy(fold->ids, problem->ids, problem->count * sizeof *fold->ids);
    memset(fold->by_row, 0, problem->dim * row_bytes);
    memset(fold->by_column, 0, fold->columns * row_bytes);
    const struct fold_problem *p = &fold->problem;
    for (uint64_t row = 0; row < p->count; row++)
        for (uint64_t i = 0; i < p->dim; i++) {
            float value = p->negatives[row * p->dim + i];
            fold->by_row[(row / CPU_PANEL * p->dim + i) * CPU_PANEL + row % CPU_PANEL] = value;
            fold->by_column[(i / CPU_PANEL * fold->padded + row) * CPU_PANEL + i % CPU_PANEL] = value;
        }
    return 0;
}

void cpu_fold_close(struct backend_fold *fold) {
    mem_free(fold->ids, fold->by_row, fold->by_column, fold);
}

/* ---- a block of lists ---- */

/* A worker's arrays for the lists that it solves together. */
struct block {
    const struct backend_fold *fold;
    const struct fold_lists *lists;
    const struct cpu_rows *rows;
    uint64_t first;       /* number of the block's first list */
    uint32_t count;       /* number of lists in the block */
    float *scores;        /* [BLOCK_LISTS x padded] the scores of the negatives for each list, later their coefficients */
    uint8_t *excluded;    /* [BLOCK_LISTS x padded] 1: the negative is an item of the list, and left out */
    float *directions;    /* [BLOCK_LISTS x columns] */
    float *gains;         /* [BLOCK_LISTS x columns] gradient of each list's row: sum of coefficient x item's row */
    float *line, *spare;  /* line: [positives + negatives] one list's scores, then coefficients; spare: scratch twice as long */
    const float **items;  /* [positives] pointers to the rows of a list's items */
    uint64_t line_capacity, spare_capacity, items_capacity;
};

static uint32_t positives_of(const struct block *b, uint32_t list) {
    const uint64_t *start = b->lists->starts + b->first + list;
    return (uint32_t)(start[1] - start[0]);
}

/* Lists pointers to the rows of a list's items in b->items. */
static void point_at_items(struct block *b, uint32_t list) {
    const uint32_t *places = b->lists->places + b->lists->starts[b->first + list];
    for (uint32_t i = 0; i < positives_of(b, list); i++) b->items[i] = b->lists->items + (uint64_t)places[i] * b->fold->problem.dim;
}

/* Scales a direction to length 1; zeros stay zeros. */
static void make_unit(float *direction, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)direction[i] * (double)direction[i];
    float inverse = loss_inverse_length((float)squares);
    for (uint32_t i = 0; i < dim; i++) direction[i] *= inverse;
}

static int is_directed(const float *direction, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++)
        if (direction[i] != 0) return 1;
    return 0;
}

static void exclude_items(struct block *b, uint32_t list) {
    const struct fold_problem *p = &b->fold->problem;
    const uint64_t *start = b->lists->starts + b->first + list;
    uint8_t *excluded = b->excluded + (uint64_t)list * b->fold->padded;
    memset(excluded, 0, p->count);
    for (uint64_t i = start[0]; p->exclude && i < start[1]; i++) {
        uint32_t id = b->lists->item_ids[b->lists->places[i]];
        for (uint32_t at = fold_first_place(b->fold->ids, p->count, id); at < p->count && b->fold->ids[at] == id; at++) excluded[at] = 1;
    }
}

static int begin(struct block *b, uint32_t list) {
    uint32_t positives = positives_of(b, list), dim = b->fold->problem.dim;
    uint64_t line = (uint64_t)positives + b->fold->problem.count;
    float *direction = b->directions + (uint64_t)list * b->fold->columns;
    if (mem_grow(&b->line, &b->line_capacity, line, sizeof *b->line, "scores of a new list") ||
        mem_grow(&b->spare, &b->spare_capacity, 2 * line, sizeof *b->spare, "scores of a new list") ||
        mem_grow(&b->items, &b->items_capacity, (uint64_t)positives + 1, sizeof *b->items, "items of a new list"))
        return -1;
    point_at_items(b, list);
    exclude_items(b, list);
    memset(direction, 0, dim * sizeof *direction);
    for (uint32_t i = 0; i < positives; i++) b->rows->combine(direction, &(float){1}, 1, b->items + i, 1, dim);
    make_unit(direction, dim);
    return 0;
}

/* ---- a step ---- */

static void rows_of(const struct block *b, const float *from, uint64_t stride, uint64_t first, const float *rows[BLOCK_LISTS]) {
    for (uint32_t list = 0; list < b->count; list++) rows[list] = from + list * stride + first;
}

static void score_negatives(struct block *b) {
    const struct backend_fold *fold = b->fold;
    const float *directions[BLOCK_LISTS];
    uint32_t dim = fold->problem.dim;
    rows_of(b, b->directions, fold->columns, 0, directions);
    for (uint32_t first = 0; first < fold->padded; first += CPU_PANEL)
        b->rows->products(directions, b->count, fold->by_row + (uint64_t)first * dim, dim, b->scores + first, fold->padded, 0);
}

/* Adds coefficient x row, summed over the negatives, to each list's gradient. */
static void gain_from_negatives(struct block *b) {
    const struct backend_fold *fold = b->fold;
    const float *coefficients[BLOCK_LISTS];
    for (uint32_t column = 0; column < fold->columns; column += CPU_PANEL)
        for (uint32_t first = 0; first < fold->padded; first += CHUNK) {
            uint32_t left = fold->padded - first;
            rows_of(b, b->scores, fold->padded, first, coefficients);
            b->rows->products(coefficients, b->count, fold->by_column + (uint64_t)column * fold->padded + (uint64_t)first * CPU_PANEL,
                              left < CHUNK ? left : CHUNK, b->gains + column, fold->columns, 1);
        }
}

/* Replaces the scores of a list's negatives by coefficients, and sets its gradient to the positives' part. Returns the sum of the absolute values
 * of all coefficients. */
static float coefficients(struct block *b, uint32_t list) {
    const struct fold_problem *p = &b->fold->problem;
    uint32_t positives = positives_of(b, list), kept = positives;
    const uint8_t *excluded = b->excluded + (uint64_t)list * b->fold->padded;
    const float *direction = b->directions + (uint64_t)list * b->fold->columns;
    float *scores = b->scores + (uint64_t)list * b->fold->padded, *gain = b->gains + (uint64_t)list * b->fold->columns, sum = 0;
    point_at_items(b, list);
    b->rows->dots(&direction, 1, b->items, positives, p->dim, b->line, positives);
    for (uint32_t i = 0; i < p->count; i++)
        if (!excluded[i]) b->line[kept++] = scores[i];
    for (uint32_t i = 0; i < kept; i++) b->line[i] *= p->length;
    b->rows->learn(&p->loss, b->line, 1, kept, positives, NULL, 1, b->spare);
    memset(gain, 0, b->fold->columns * sizeof *gain);
    b->rows->combine(gain, b->line, 1, b->items, positives, p->dim);
    for (uint32_t i = 0; i < positives; i++) sum += fabsf(b->line[i]);
    kept = positives;
    for (uint32_t i = 0; i < p->count; i++) {
        scores[i] = excluded[i] ? 0 : p->per_negative * b->line[kept++];
        sum += fabsf(scores[i]);
    }
    return sum;
}

static void step(struct block *b) {
    const struct backend_fold *fold = b->fold;
    float sums[BLOCK_LISTS];
    score_negatives(b);
    for (uint32_t list = 0; list < b->count; list++) sums[list] = coefficients(b, list);
    gain_from_negatives(b);
    for (uint32_t list = 0; list < b->count; list++) {
        float *direction = b->directions + (uint64_t)list * fold->columns, whole = sums[list] * fold->problem.item_length;
        const float *gain = b->gains + (uint64_t)list * fold->columns;
        if (!(whole > 0) || !is_directed(direction, fold->problem.dim)) continue;
        b->rows->combine(direction, &(float){-2 / whole}, 1, &gain, 1, fold->problem.dim);
        make_unit(direction, fold->problem.dim);
    }
}

static int solve_block(struct block *b) {
    const struct fold_problem *p = &b->fold->problem;
    for (uint32_t list = 0; list < b->count; list++)
        if (begin(b, list)) return -1;
    for (uint32_t i = 0; i < p->steps; i++) step(b);
    for (uint32_t list = 0; list < b->count; list++)
        memcpy(b->lists->directions + (b->first + list) * p->dim, b->directions + (uint64_t)list * b->fold->columns, p->dim * sizeof(float));
    return 0;
}

/* ---- all lists ---- */

struct solving {
    const struct backend_fold *fold;
    const struct fold_lists *lists;
    uint64_t grain; /* number of lists of a block */
    _Atomic uint64_t taken;
};

static int block_init(struct block *b, const struct solving *solving) {
    const struct backend_fold *fold = solving->fold;
    *b = (struct block){.fold = fold, .lists = solving->lists, .rows = fold->backend->rows};
    b->scores = mem_aligned(BLOCK_LISTS, fold->padded * sizeof *b->scores, "scores of new lists");
    b->excluded = mem_alloc(BLOCK_LISTS, fold->padded, "negatives of new lists");
    b->directions = mem_aligned(BLOCK_LISTS, fold->columns * sizeof *b->directions, "rows of new lists");
    b->gains = mem_aligned(BLOCK_LISTS, fold->columns * sizeof *b->gains, "rows of new lists");
    return b->scores && b->excluded && b->directions && b->gains ? 0 : -1;
}

static int solve_some(void *context, unsigned worker) {
    struct solving *solving = context;
    struct block b;
    uint64_t end;
    int result = block_init(&b, solving);
    while (!result && pool_take(&solving->taken, solving->lists->count, solving->grain, &b.first, &end)) {
        b.count = (uint32_t)(end - b.first);
        result = solve_block(&b);
    }
    mem_free(b.scores, b.excluded, b.directions, b.gains, b.line, b.spare, b.items);
    return result;
}

int cpu_fold_solve(struct backend_fold *fold, const struct fold_lists *lists) {
    struct solving solving = {.fold = fold, .lists = lists};
    uint64_t each = lists->count / pool_threads(fold->backend->pool) + 1; /* with few lists, blocks are smaller, so that every thread has some */
    solving.grain = each < BLOCK_LISTS ? each : BLOCK_LISTS;
    return lists->count ? pool_run(fold->backend->pool, solve_some, &solving) : 0;
}
