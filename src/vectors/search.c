#include "search.h"

#include "base/memory.h"
#include "base/report.h"
#include "config/config.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 4 << 20 }; /* most bytes of queries and answers of one search */

int search_metric_named(const char *name) {
    if (!strcmp(name, "cosine")) return METRIC_COSINE;
    if (!strcmp(name, "dot")) return METRIC_DOT;
    return fail_usage("'%s' is not a metric; wanted cosine or dot", name);
}

int search_open(struct search *search, const struct model *model, enum model_view among, enum search_metric metric,
                uint64_t rows, const struct config *config) {
    float *base = model_matrix(model, among, rows, metric == METRIC_COSINE);
    return search_over(search, base, rows, model->dim, metric, config);
}

int search_over(struct search *search, float *base, uint64_t rows, uint32_t dim, enum search_metric metric,
                const struct config *config) {
    struct backend_options options = {.depth = 1, .gpu_budget = UINT64_MAX};
    *search = (struct search){.ops = backend_without_gpu(), .base = base, .rows = rows, .dim = dim, .metric = metric};
    if (config) {
        options.threads = (unsigned)config->device_threads;
        options.index = (unsigned)config->device_index;
        options.gpu_budget = config->memory_gpu_budget;
    }
    if (!base || (config && config_backend(config, &search->ops)) || search->ops->open(&search->backend, &options)) {
        search->backend = NULL;
        search_close(search);
        return -1;
    }
    return 0;
}

void search_close(struct search *search) {
    if (search->backend) search->ops->close(search->backend);
    free(search->base);
    *search = (struct search){.rows = 0};
}

/* Divides scores by the query's length, which makes them cosines: the base rows have length 1. */
static void make_cosines(float *scores, uint32_t k, const float *query, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)query[i] * query[i];
    float length = (float)sqrt(squares);
    for (uint32_t i = 0; length > 0 && i < k; i++) scores[i] /= length;
}

/* Returns 1 if each query's scores are in falling order, as a backend must give them. */
static int scores_fall(const float *scores, uint64_t queries, uint32_t k) {
    for (uint64_t i = 1; i < queries * k; i++)
        if (i % k && scores[i - 1] < scores[i]) return 0;
    return 1;
}

/* Returns banned[count] counted from row `first`; a row before it becomes a number that no row has. NULL after fail(). */
static uint32_t *banned_from(uint64_t first, const uint32_t *banned, uint64_t count) {
    uint32_t *shifted = mem_alloc(count + 1, sizeof *shifted, "queries");
    for (uint64_t i = 0; shifted && i < count; i++) shifted[i] = banned[i] - (uint32_t)first;
    return shifted;
}

int search_top(struct search *search, const float *queries, uint64_t query_rows, uint32_t k,
               const uint64_t *banned_starts, const uint32_t *banned, uint32_t *ids, float *scores) {
    uint64_t first = search->first;
    uint32_t *shifted = first && banned ? banned_from(first, banned, banned_starts[query_rows]) : NULL;
    struct topk_request request = {.base = search->base + first * search->dim,
                                   .base_rows = search->rows - first,
                                   .queries = queries,
                                   .query_rows = query_rows,
                                   .dim = search->dim,
                                   .k = k,
                                   .banned_starts = banned_starts,
                                   .banned = shifted ? shifted : banned,
                                   .ids = ids,
                                   .scores = scores};
    int result = (first && banned && !shifted) || search->ops->topk(search->backend, &request) ? -1 : 0;
    free(shifted);
    if (result) return -1;
    for (uint64_t i = 0; first && i < query_rows * k; i++)
        if (ids[i] != DRAW_NONE) ids[i] += (uint32_t)first;
    INVARIANT(scores_fall(scores, query_rows, k));
    for (uint64_t row = 0; search->metric == METRIC_COSINE && row < query_rows; row++)
        make_cosines(scores + row * k, k, queries + row * search->dim, search->dim);
    return 0;
}

int search_block_init(struct search_block *block, uint32_t dim, uint32_t k, uint64_t wanted) {
    uint64_t rows = BLOCK_BYTES / (dim * sizeof(float) + k * (sizeof(uint32_t) + sizeof(float))) + 1;
    if (rows > wanted) rows = wanted;
    *block = (struct search_block){.rows = rows};
    block->queries = mem_aligned(rows, dim * sizeof(float), "queries");
    block->banned_starts = mem_alloc(rows + 1, sizeof *block->banned_starts, "queries");
    block->ids = mem_alloc(rows, k * sizeof *block->ids, "answers");
    block->scores = mem_alloc(rows, k * sizeof *block->scores, "answers");
    return block->queries && block->banned_starts && block->ids && block->scores ? 0 : -1;
}

void search_block_release(struct search_block *block) {
    free(block->queries);
    free(block->banned_starts);
    free(block->banned);
    free(block->ids);
    free(block->scores);
    *block = (struct search_block){.rows = 0};
}

int search_by_id(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int search_by_place(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t search_distinct(uint32_t *ids, uint64_t count) {
    uint64_t kept = 0;
    if (count) qsort(ids, count, sizeof *ids, search_by_id);
    for (uint64_t i = 0; i < count; i++)
        if (!kept || ids[kept - 1] != ids[i]) ids[kept++] = ids[i];
    return kept;
}

int64_t search_analogy(const struct search *search, const uint32_t rows[3], const float *unseen, float *query, uint32_t banned[3]) {
    const float *row[3];
    uint64_t count = 0;
    for (int i = 0; i < 3; i++) {
        if (unseen && rows[i] == DRAW_NONE) {
            row[i] = unseen + (uint64_t)i * search->dim;
            continue;
        }
        if (rows[i] >= search->rows)
            return fail("an analogy is asked of words or items; row %u is that of a list, and the first list's is %llu",
                        rows[i], (unsigned long long)search->rows);
        row[i] = search->base + (uint64_t)rows[i] * search->dim;
        banned[count++] = rows[i];
    }
    for (uint32_t column = 0; column < search->dim; column++) query[column] = row[1][column] - row[0][column] + row[2][column];
    return (int64_t)search_distinct(banned, count);
}
