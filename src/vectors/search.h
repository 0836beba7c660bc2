/* search: finds the exact nearest rows of a model, slice by slice, on the backend that is there. */
#ifndef SPTX_SEARCH_H
#define SPTX_SEARCH_H

#include "kernels/backend.h"
#include "model.h"
#include "config/config.h"

enum search_metric { METRIC_COSINE, METRIC_DOT };

/* Returns the metric "cosine" or "dot"; -1 after fail_usage(). */
int search_metric_named(const char *name);

struct search {
    const struct backend_ops *ops;
    struct backend *backend;
    float *base; /* [rows x dim], unit rows for cosine */
    uint64_t rows;
    uint32_t dim;
    enum search_metric metric;
};

/* Searches the first `rows` rows of a view. Opens a backend by device.* of `config` (NULL: defaults). */
int search_open(struct search *search, const struct model *model, enum model_view among, enum search_metric metric,
                uint64_t rows, const struct config *config);
/* Searches rows in memory (unit rows for cosine), which the search owns from now on. NULL is a failure. */
int search_over(struct search *search, float *base, uint64_t rows, uint32_t dim, enum search_metric metric,
                const struct config *config);
void search_close(struct search *search); /* harmless on a zeroed one */

/* Finds the k best rows for each query (query_rows x dim, any length), without the banned ones; see struct
 * topk_request. */
int search_top(struct search *search, const float *queries, uint64_t query_rows, uint32_t k, const uint64_t *banned_starts,
               const uint32_t *banned, uint32_t *ids, float *scores);

/* The arrays of one search, with space for `rows` queries. */
struct search_block {
    float *queries;          /* [rows x dim] */
    uint64_t *banned_starts; /* [rows + 1] into banned */
    uint32_t *banned;        /* the caller grows it */
    uint64_t banned_capacity;
    uint32_t *ids; /* [rows x k] */
    float *scores; /* [rows x k] */
    uint64_t rows;
};
/* Makes space for as many of the `wanted` queries as fill one search; the caller releases in any case. */
int search_block_init(struct search_block *block, uint32_t dim, uint32_t k, uint64_t wanted);
void search_block_release(struct search_block *block); /* harmless on a zeroed one */

/* Sorts ids and removes repeats, as `banned` needs. Returns how many are left. */
uint64_t search_distinct(uint32_t *ids, uint64_t count);

/* Makes the query for "row 0 is to row 1 as row 2 is to ?": row 1 - row 0 + row 2 of the base rows. The three rows must
 * not answer: they go into `banned`, sorted. unseen: [3 x dim] where a word that has no row (DRAW_NONE) has its unit vector; NULL:
 * all have rows. Returns how many are banned, or -1 after fail() for a row that is not searched (a list's own). */
int64_t search_analogy(const struct search *search, const uint32_t rows[3], const float *unseen, float *query, uint32_t banned[3]);

#endif
