#include "search.h"

#include "base/memory.h"
#include "base/report.h"
#include "config/config.h"

#include <math.h>
#include <stdlib.h>

enum {
    BLOCK_BYTES = 4 << 20,  /* most bytes of the queries and answers of one search */
    BLOCK_BANNED = 1 << 20, /* most banned rows of one search */
    COUNT_BYTES = 64 << 20, /* most bytes of a search that only counts rows */
    COUNT_BANNED = 16 << 20 /* most banned rows of a search that only counts rows */
};

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

/* Returns 1 if each query's scores are in falling order, as a backend must return them. */
static int scores_fall(const float *scores, uint64_t queries, uint32_t k) {
    for (uint64_t i = 1; i < queries * k; i++)
        if (i % k && scores[i - 1] < scores[i]) return 0;
    return 1;
}

int search_top(struct search *search, const float *queries, uint64_t query_rows, uint32_t k,
               const uint64_t *banned_starts, const uint32_t *banned, uint32_t *ids, float *scores) {
    uint64_t first = search->first;
    uint64_t count = first && banned ? banned_starts[query_rows] : 0;
    uint32_t *shifted = first && banned ? mem_alloc(count + 1, sizeof *shifted, "queries") : NULL;
    for (uint64_t i = 0; shifted && i < count; i++) shifted[i] = banned[i] - (uint32_t)first; /* a banned row before `first` wraps to a number that
                                                                                               * no row has */
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
    for (uint64_t row = 0; search->metric == METRIC_COSINE && row < query_rows; row++) {
        const float *query = queries + row * search->dim;
        double squares = 0;
        for (uint32_t i = 0; i < search->dim; i++) squares += (double)query[i] * query[i];
        float length = (float)sqrt(squares); /* scores divided by it are cosines, since base rows have length 1 */
        for (uint32_t i = 0; length > 0 && i < k; i++) scores[row * k + i] /= length;
    }
    return 0;
}

uint64_t search_block_rows(uint32_t dim, uint32_t k) {
    return (k ? BLOCK_BYTES : COUNT_BYTES) / (dim * sizeof(float) + k * (sizeof(uint32_t) + sizeof(float))) + 1;
}

static int open_block(struct search_block *block, uint32_t dim, uint32_t k, uint64_t wanted) {
    uint64_t most = search_block_rows(dim, k), rows = most < wanted ? most : wanted;
    *block = (struct search_block){.rows = rows,
                                   .queries = mem_aligned(rows, dim * sizeof(float), "queries"),
                                   .banned_starts = mem_zalloc(rows + 1, sizeof(uint64_t), "queries"),
                                   .than = k ? NULL : mem_alloc(rows, sizeof(float), "queries"),
                                   .ids = k ? mem_alloc(rows, k * sizeof(uint32_t), "answers") : NULL,
                                   .scores = k ? mem_alloc(rows, k * sizeof(float), "answers") : NULL,
                                   .above = k ? NULL : mem_alloc(rows, sizeof(uint64_t), "ranks"),
                                   .level = k ? NULL : mem_alloc(rows, sizeof(uint64_t), "ranks")};
    int answers = k ? block->ids && block->scores : block->than && block->above && block->level;
    return block->queries && block->banned_starts && answers ? 0 : -1;
}

int search_ban(struct search_block *block, const uint32_t *rows, uint64_t count) {
    uint64_t *end = &block->banned_starts[block->filled + 1];
    if (mem_grow(&block->banned, &block->banned_capacity, *end + count, sizeof *block->banned, "queries")) return -1;
    if (count) memcpy(block->banned + *end, rows, count * sizeof *rows);
    *end += count;
    return 0;
}

/* Answers the block's questions. */
static int ask_block(struct search *search, struct search_block *block, uint32_t k) {
    const uint64_t *banned_starts = block->banned ? block->banned_starts : NULL;
    if (k) return search_top(search, block->queries, block->filled, k, banned_starts, block->banned, block->ids, block->scores);
    struct topk_request request = {.base = search->base,
                                   .base_rows = search->rows,
                                   .queries = block->queries,
                                   .query_rows = block->filled,
                                   .dim = search->dim,
                                   .banned_starts = banned_starts,
                                   .banned = block->banned,
                                   .than = block->than,
                                   .above = block->above,
                                   .level = block->level};
    return search->ops->topk(search->backend, &request) ? -1 : 0;
}

int search_each(struct search *search, uint64_t count, uint32_t k, const struct search_calls *calls, void *user) {
    struct search_block block;
    const uint64_t *starts = NULL, most = k ? BLOCK_BANNED : COUNT_BANNED;
    int result = open_block(&block, search->dim, k, count);
    starts = block.banned_starts;
    for (uint64_t first = 0; !result && first < count; first += block.filled) {
        for (block.filled = 0; !result && block.filled < block.rows && first + block.filled < count && starts[block.filled] < most;) {
            block.banned_starts[block.filled + 1] = starts[block.filled];
            result = calls->fill(user, first + block.filled, block.queries + block.filled * search->dim, &block);
            if (!result) block.filled++;
        }
        if (!result && calls->ready) result = calls->ready(user, first, block.filled);
        if (!result) result = ask_block(search, &block, k);
        if (!result && calls->answered) result = calls->answered(user, first, &block);
        for (uint64_t i = 0; i < block.filled && !result; i++) {
            struct search_found found = {.banned_count = starts[i + 1] - starts[i]};
            if (found.banned_count) found.banned = block.banned + starts[i];
            if (k)
                found.ids = block.ids + i * k, found.scores = block.scores + i * k;
            else
                found.above = block.above[i], found.level = block.level[i];
            result = calls->take(user, first + i, &found);
        }
    }
    mem_free(block.queries, block.banned_starts, block.banned, block.than, block.ids, block.scores, block.above, block.level);
    return result;
}

uint64_t search_distinct(uint32_t *ids, uint64_t count) {
    uint64_t kept = 0;
    if (count) qsort(ids, count, sizeof *ids, mem_by_id);
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
