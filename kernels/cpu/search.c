/* search: exact top-k, and exact ranks, by matrix products over slices of the base rows. A slice's products fit the cache, and one
 * comparison with the worst score that a query still keeps rejects nearly all of them. The other rows are scored again with a fixed
 * order of summation (kernels/search.h), so that a query's answer depends neither on the number of threads nor on other queries. */
#include "search.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/search.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLICE_ROWS = 1024,    /* number of base rows of one product */
    CHUNK_QUERIES = 256,  /* most queries of one product: 1 MiB */
    KEPT_BYTES = 8 << 20, /* most bytes of candidates that a worker keeps; a chunk of one query may need more */
    SCAN = 32,            /* number of products that are compared together */
    FEW_QUERIES = 4       /* with fewer queries, copying rows into panels would take longer than it saves */
};

struct candidate {
    float score;
    uint32_t id;
};

struct search_job {
    const struct topk_request *request;
    const struct cpu_rows *rows;
    uint64_t k;                /* the request's k, but at most the number of base rows */
    uint64_t chunk, chunks;    /* number of queries of a chunk, and number of chunks */
    uint64_t parts;            /* number of parts into which the base rows are divided */
    struct candidate *partial; /* if parts > 1: [query_rows x parts x k] the candidates of each part, best first */
    uint64_t *partial_counts;  /* [query_rows x parts] */
    _Atomic uint64_t next;
};

/* The k best answers to a query so far, as a heap whose first entry is the worst of them. */
struct kept {
    struct candidate *heap; /* [k] */
    uint64_t count;
    float worst;    /* the score that a new answer must exceed; -infinity while there are fewer than k answers */
    double squares; /* squared length of the query */
};

/* Returns 1 if a is a worse answer than b: a lower score, or the same score and a higher id. */
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
    if (kept->count < k) {
        uint64_t at = kept->count++;
        for (; at && worse(found, kept->heap[(at - 1) / 2]); at = (at - 1) / 2)
            kept->heap[at] = kept->heap[(at - 1) / 2];
        kept->heap[at] = found;
    } else {
        kept->heap[0] = found;
        sift_down(kept->heap, k, 0);
    }
    if (kept->count == k) kept->worst = kept->heap[0].score;
}

/* ---- a slice ---- */

/* Consecutive base rows that are multiplied by one product. */
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
        if (squares > slice.squares) slice.squares = squares; /* a row with NaN is left out: it is never found */
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

/* Copies rows into a panel, and pads it with rows of zeros. It copies a few columns of every row at a time, so that the written
 * part stays in the cache. */
static void fill_panel(float *panel, const float *rows, uint64_t count, uint32_t dim) {
    enum { PIECE = 8 };
    for (uint32_t first = 0; first < dim; first += PIECE) {
        uint32_t end = dim - first < PIECE ? dim : first + PIECE;
        for (uint64_t row = 0; row < CPU_PANEL; row++)
            for (uint32_t j = first; j < end; j++)
                panel[(uint64_t)j * CPU_PANEL + row] = row < count ? rows[row * dim + j] : 0;
    }
}

static void multiply_few(const struct search_job *job, struct desk *desk, uint64_t queries, const struct slice *slice) {
    uint32_t dim = job->request->dim;
    for (uint64_t row = 0; row < slice->count; row++) desk->slice_rows[row] = slice->rows + row * dim;
    job->rows->dots(desk->queries, (uint32_t)queries, desk->slice_rows, (uint32_t)slice->count, dim, desk->products,
                    SLICE_ROWS);
}

/* Multiplies a chunk's queries with a slice's rows. */
static void multiply(const struct search_job *job, struct desk *desk, uint64_t queries, const struct slice *slice) {
    uint32_t dim = job->request->dim;
    if (queries < FEW_QUERIES) {
        multiply_few(job, desk, queries, slice);
        return;
    }
    for (uint64_t row = 0; row < slice->count; row += CPU_PANEL) {
        uint64_t left = slice->count - row;
        fill_panel(desk->panel, slice->rows + row * dim, left < CPU_PANEL ? left : CPU_PANEL, dim);
        job->rows->products(desk->queries, (uint32_t)queries, desk->panel, dim, desk->products + row, SLICE_ROWS, 0);
    }
}

static int is_banned(const struct topk_request *r, uint64_t query, uint32_t id) {
    uint64_t low = r->banned_starts ? r->banned_starts[query] : 0,
             high = r->banned_starts ? r->banned_starts[query + 1] : 0;
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

/* Scores a row, and keeps it if its score is above the worst kept one. Ids rise within a part, so of two rows with equal scores
 * the one with the lower id is kept. */
static void score_row(const struct search_job *job, const struct slice *slice, uint64_t query, uint64_t row,
                      struct kept *kept) {
    const struct topk_request *r = job->request;
    uint32_t id = (uint32_t)(slice->first + row);
    if (is_banned(r, query, id)) return;
    float score = search_score(r->queries + query * r->dim, slice->rows + row * r->dim, r->dim);
    if (score > kept->worst) keep(kept, job->k, score, id);
}

/* Scores the rows of a slice whose products do not rule them out. A product that is NaN does not rule out its row. */
static void scan(const struct search_job *job, const struct slice *slice, uint64_t query, const float *products,
                 struct kept *kept) {
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

/* Number of scores above topk_request.than, and number of scores equal to it. */
struct count {
    uint64_t above, level;
};

/* Counts a row. If its product differs from `than` by at most the margin, its exact score decides. */
static inline void count_row(const struct search_job *job, const struct slice *slice, uint64_t query, uint64_t row, float product,
                             float margin, struct count *count) {
    const struct topk_request *r = job->request;
    float than = r->than[query];
    if (product < than - margin) return;
    float score = product > than + margin ? HUGE_VALF : search_score(r->queries + query * r->dim, slice->rows + row * r->dim, r->dim);
    count->above += score > than;
    count->level += score == than;
}

/* Counts the rows of a slice, except banned ones, for a query. Workers may count different slices for the same query at the same
 * time. */
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
        uint64_t row = r->banned[i] - slice->first; /* wraps to a large number if the row is in an earlier slice */
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

static void write_answer(const struct topk_request *request, uint64_t query, const struct candidate *best,
                         uint64_t count) {
    uint32_t *ids = request->ids + query * request->k;
    float *scores = request->scores + query * request->k;
    for (uint64_t i = 0; i < request->k; i++) {
        ids[i] = i < count ? best[i].id : DRAW_NONE;
        scores[i] = i < count ? best[i].score : -HUGE_VALF;
    }
}

/* Writes the candidates that were kept for one query of a chunk to the answer or, if the base rows have several parts, to
 * `partial`. */
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

static void search_unit(struct search_job *job, uint64_t unit, struct desk *desk, struct candidate *heaps,
                        struct kept *kept) {
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
    struct desk *desk = mem_zalloc(1, sizeof *desk, "a search");
    float *products = mem_aligned(job->chunk * SLICE_ROWS, sizeof *products, "a slice of products");
    float *panel = mem_aligned(job->request->dim, CPU_PANEL * sizeof *panel, "a panel of rows");
    struct candidate *heaps = mem_alloc(job->chunk * job->k, sizeof *heaps, "the best rows of a search");
    struct kept *kept = mem_alloc(job->chunk, sizeof *kept, "the best rows of a search");
    int result = desk && products && panel && heaps && kept ? 0 : -1;
    uint64_t unit, end;
    if (!result) desk->products = products, desk->panel = panel;
    while (!result && pool_take(&job->next, job->chunks * job->parts, 1, &unit, &end))
        search_unit(job, unit, desk, heaps, kept);
    free(desk);
    free(products);
    free(panel);
    free(heaps);
    free(kept);
    return result;
}

/* Merges the parts' answers to each query. There are several parts only if there are fewer queries than threads. */
static int merge_parts(struct search_job *job) {
    uint64_t capacity = job->parts * job->k;
    struct candidate *all = mem_alloc(capacity, sizeof *all, "the best rows of a search");
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
    free(all);
    return 0;
}

/* Divides the work into chunks of queries, so that every thread gets one, and into parts of the base rows if there are fewer
 * queries than threads. */
static void divide(struct search_job *job, unsigned workers) {
    const struct topk_request *r = job->request;
    uint64_t capacity = KEPT_BYTES / (job->k * sizeof(struct candidate)),
             each = (r->query_rows + workers - 1) / workers;
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
        job.partial =
            mem_alloc(request->query_rows * job.parts, job.k * sizeof *job.partial, "the best rows of a search");
        job.partial_counts = mem_zalloc(request->query_rows * job.parts, sizeof *job.partial_counts, "a search");
        result = job.partial && job.partial_counts ? 0 : -1;
    }
    if (!result) result = pool_run(pool, search_work, &job);
    if (!result && merged) result = merge_parts(&job);
    free(job.partial);
    free(job.partial_counts);
    return result;
}
