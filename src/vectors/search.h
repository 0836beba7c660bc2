/* search: finds the rows of a model that are nearest to queries, exactly, on the GPU or the CPU. */
#ifndef SPTX_SEARCH_H
#define SPTX_SEARCH_H

#include "kernels/backend.h"
#include "model.h"
#include "config/config.h"

enum search_metric { METRIC_COSINE, METRIC_DOT };

/* Returns the enum search_metric of "cosine" or "dot"; -1 after fail_usage(). */
int search_metric_named(const char *name);

struct search {
    const struct backend_ops *ops;
    struct backend *backend;
    float *base; /* [rows x dim] the rows that are searched, owned; scaled to length 1 if the metric is cosine */
    uint64_t rows, first; /* answers are rows first .. rows - 1; `first` is 0 unless the caller sets it */
    uint32_t dim;
    enum search_metric metric;
};

/* Opens a search among the first `rows` rows of a view, on the device that device.* of `config` chooses (NULL: the CPU). Returns 0, or -1 after
 * fail(). */
int search_open(struct search *search, const struct model *model, enum model_view among, enum search_metric metric,
                uint64_t rows, const struct config *config);
/* Opens a search among rows in memory, which are scaled to length 1 if the metric is cosine. The search frees `base`, also after a failure. Fails
 * if `base` is NULL. */
int search_over(struct search *search, float *base, uint64_t rows, uint32_t dim, enum search_metric metric,
                const struct config *config);
void search_close(struct search *search); /* may be called on a struct of zeros */

/* Finds the k best rows for each query [query_rows x dim]; queries may have any length. Banned rows are never answers (struct topk_request). If
 * `first` is above 0, each query may ban only one row. */
int search_top(struct search *search, const float *queries, uint64_t query_rows, uint32_t k, const uint64_t *banned_starts,
               const uint32_t *banned, uint32_t *ids, float *scores);

/* ---- many questions, asked block by block ---- */

/* A block of questions, which `fill` of search_each() fills in. */
struct search_block {
    uint64_t rows, filled;   /* number of questions for which there is memory; number of questions in the block */
    float *queries;          /* [rows x dim] */
    float *than;             /* [rows] if k = 0: the score with which rows are compared */
    uint64_t *banned_starts; /* [rows + 1] rows banned for question i: banned[banned_starts[i]] .. banned[banned_starts[i + 1] - 1] */
    uint32_t *banned;
    uint64_t banned_capacity;
    uint32_t *ids;           /* [rows x k] the found rows, and their scores */
    float *scores;
    uint64_t *above, *level; /* [rows] if k = 0: number of rows whose score is above `than`, and equal to it */
};
/* Bans rows from the answer to the question that is being filled in; they may be in any order. */
int search_ban(struct search_block *block, const uint32_t *rows, uint64_t count);

/* The answer to a question. */
struct search_found {
    const uint32_t *ids;    /* [k] rows, best first; DRAW_NONE after the last one if fewer than k are found */
    const float *scores;    /* [k] */
    const uint32_t *banned; /* [banned_count] rising: the rows that `fill` banned */
    uint64_t banned_count, above, level;
};
/* Callbacks, which return 0, or -1 after fail(). */
struct search_calls {
    int (*fill)(void *user, uint64_t i, float *query, struct search_block *block); /* writes question i's query, and bans rows */
    int (*ready)(void *user, uint64_t first, uint64_t count); /* called when a block has been filled in; NULL: nothing more to do */
    int (*answered)(void *user, uint64_t first, const struct search_block *block); /* called when a block has its answers; NULL: as `ready` */
    int (*take)(void *user, uint64_t i, const struct search_found *found);
};
/* Answers `count` questions: the k best rows, or, with k = 0, the number of rows that score higher than block->than. Returns 0, or -1 as soon as
 * something fails. */
int search_each(struct search *search, uint64_t count, uint32_t k, const struct search_calls *calls, void *user);
uint64_t search_block_rows(uint32_t dim, uint32_t k); /* the most questions of one block */

/* Compares two ids, uint32_t, for qsort() and bsearch(). */
int mem_by_id(const void *a, const void *b);
/* Sorts ids and removes repetitions, as the array `banned` requires. Returns how many are left. */
uint64_t search_distinct(uint32_t *ids, uint64_t count);

/* Makes the query for "rows[0] is to rows[1] as rows[2] is to ?": rows[1] - rows[0] + rows[2]. Writes the three rows, sorted, to `banned`, since
 * they must not be answers. unseen: [3 x dim] unit vectors of words without a row (DRAW_NONE in `rows`); NULL: all words have rows. Returns the
 * number of banned rows, or -1 after fail() for a row that is not searched (a list's row). */
int64_t search_analogy(const struct search *search, const uint32_t rows[3], const float *unseen, float *query, uint32_t banned[3]);

#endif
