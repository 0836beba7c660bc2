#include "page_rows.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "map.h"
#include "search.h"

#include <stdlib.h>

enum { QUERIES = 256 }; /* number of queries in one search: few, so that a signal is noticed soon */

void page_rows_release(struct page_rows *rows) {
    free(rows->rows);
    free(rows->near);
    free(rows->scores);
    free(rows->xy);
    page_groups_release(&rows->groups);
    *rows = (struct page_rows){.count = 0};
}

/* ---- which rows ---- */

struct counted {
    uint64_t count;
    uint32_t row;
};

static int by_count(const void *a, const void *b) {
    const struct counted *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->row < y->row ? -1 : x->row > y->row;
}

struct page_rows page_rows_of(enum model_view view, uint64_t all, uint64_t top, uint64_t listed, const char *labels) {
    if (listed < top) listed = top;
    return (struct page_rows){.view = view,
                              .all = all,
                              .count = listed < all ? listed : all,
                              .top = top < all ? top : all,
                              .labels = labels,
                              .k = all > PAGE_NEAREST ? PAGE_NEAREST : (uint32_t)(all - (all > 0))};
}

/* Returns 1 if counts never rise with the id (corpus.order = frequency): then millions of rows need no sorting. */
static int is_in_order(const struct vocab *vocab, uint64_t size) {
    for (uint64_t row = 1; row < size; row++)
        if (vocab_count(vocab, row) > vocab_count(vocab, row - 1)) return 0;
    return 1;
}

static int choose_by_count(struct page_rows *rows, const struct vocab *vocab, uint64_t size) {
    struct counted *all = mem_alloc(size, sizeof *all, "the most frequent rows");
    if (!all) return -1;
    for (uint64_t row = 0; row < size; row++) all[row] = (struct counted){vocab_count(vocab, row), (uint32_t)row};
    qsort(all, size, sizeof *all, by_count);
    for (uint64_t i = 0; i < rows->count; i++) rows->rows[i] = all[i].row;
    free(all);
    return 0;
}

static int choose(struct page_rows *rows, const struct model *model) {
    rows->rows = mem_alloc(rows->count, sizeof *rows->rows, "the most frequent rows");
    if (!rows->rows) return -1;
    if (!is_in_order(&model->vocab, rows->all)) return choose_by_count(rows, &model->vocab, rows->all);
    for (uint64_t i = 0; i < rows->count; i++) rows->rows[i] = (uint32_t)i;
    return 0;
}

/* ---- nearest rows ---- */

/* A search for the k nearest rows of each of `count` rows. A row is not found for itself. */
struct asking {
    const char *what;     /* name of the search in the live line */
    const float *queries; /* [count x dim] */
    const uint32_t *own;  /* [count] the row of each query, which is not found */
    uint64_t count;
    uint32_t k;
    uint32_t *ids; /* [count x k] the rows that were found */
    float *scores; /* [count x k] their scores */
};

static int ask_nearest(struct search *search, const struct asking *asking) {
    uint64_t starts[QUERIES + 1];
    struct progress progress;
    int result = 0;
    for (uint64_t i = 0; i <= QUERIES; i++) starts[i] = i;
    progress_start(&progress, asking->what, 1);
    for (uint64_t first = 0, k = asking->k; !result && first < asking->count; first += QUERIES) {
        uint64_t left = asking->count - first, count = left < QUERIES ? left : QUERIES;
        result = search_top(search, asking->queries + first * search->dim, count, asking->k, starts,
                            asking->own + first, asking->ids + first * k, asking->scores + first * k);
        if (!result && interrupt_asked()) result = fail("stopped by a signal: nothing was written");
        progress_show(&progress, first + count, asking->count, "rows");
    }
    progress_end(&progress);
    return result;
}

/* Finds the nearest rows of each row shown, exactly as `nearest` does. */
static int find_nearest(struct page_rows *rows, const struct model *model, const struct config *config) {
    struct search search = {.rows = 0};
    float *queries = model_matrix_of(model, rows->view, rows->rows, rows->count, 0);
    rows->near = mem_alloc(rows->count, (rows->k + 1) * sizeof *rows->near, "nearest rows");
    rows->scores = mem_alloc(rows->count, (rows->k + 1) * sizeof *rows->scores, "nearest rows");
    int result = queries && rows->near && rows->scores ? 0 : -1;
    if (!result && rows->k) result = search_open(&search, model, rows->view, METRIC_COSINE, rows->all, config);
    struct asking asking = {"nearest rows", queries, rows->rows, rows->count, rows->k, rows->near, rows->scores};
    if (!result && rows->k) result = ask_nearest(&search, &asking);
    search_close(&search);
    free(queries);
    return result;
}

/* ---- the map ---- */

/* Computes the map. A row's neighbours on it are searched among the map's rows, scaled to length 1. */
static int place(struct page_rows *rows, const struct model *model, const struct config *config) {
    uint64_t count = rows->top;
    uint32_t k = count > MAP_NEAR ? MAP_NEAR : (uint32_t)count - 1, *own = mem_alloc(count, sizeof *own, "the map");
    uint32_t *near = mem_alloc(count, (k + 1) * sizeof *near, "the map");
    float *cosines = mem_alloc(count, (k + 1) * sizeof *cosines, "the map");
    struct search search = {.rows = 0};
    struct pool *pool = NULL;
    int result = -1;
    rows->xy = mem_alloc(count, 2 * sizeof *rows->xy, "the map");
    if (!own || !near || !cosines || !rows->xy) goto out;
    float *unit = model_matrix_of(model, rows->view, rows->rows, count, 1);
    if (search_over(&search, unit, count, model->dim, METRIC_COSINE, config)) goto out;
    for (uint64_t i = 0; i < count; i++) own[i] = (uint32_t)i;
    struct asking asking = {"neighbours on the map", unit, own, count, k, near, cosines};
    if ((k && ask_nearest(&search, &asking)) || !(pool = pool_open((unsigned)config->device_threads))) goto out;
    struct map_request request = {unit, count, model->dim, near, cosines, k};
    result = map_make(rows->xy, &request, pool);
out:
    if (pool) pool_close(pool);
    search_close(&search);
    free(own);
    free(near);
    free(cosines);
    return result;
}

int page_rows_find(struct page_rows *rows, const struct model *model, const struct config *config) {
    return choose(rows, model) || page_groups_find(&rows->groups, model, rows->view, rows->rows, rows->top, rows->labels) ||
                   find_nearest(rows, model, config) || place(rows, model, config) ? -1 : 0;
}
