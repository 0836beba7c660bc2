/* search: exact nearest rows of a model, in slices, on the backend that is there. */
#ifndef SPTX_SEARCH_H
#define SPTX_SEARCH_H

#include "kernels/backend.h"
#include "model.h"
#include "train/config.h"

enum search_metric { METRIC_COSINE, METRIC_DOT };

struct search {
    const struct backend_ops *ops;
    struct backend *backend;
    float *base; /* [rows x dim], unit rows for cosine */
    uint64_t rows;
    uint32_t dim;
    enum search_metric metric;
};

/* Among the first `restrict_rows` rows of a view (0: all). Opens a backend by device.* of `config` (NULL: defaults). */
int search_open(struct search *search, const struct model *model, enum model_view among, enum search_metric metric,
                uint64_t restrict_rows, const struct config *config);
void search_close(struct search *search); /* harmless on a zeroed one */

/* The k best rows for each query (query_rows x dim, any length), the banned ones left out; see struct topk_request. */
int search_top(struct search *search, const float *queries, uint64_t query_rows, uint32_t k, const uint64_t *banned_starts,
               const uint32_t *banned, uint32_t *ids, float *scores);

/* Sorts ids and takes repeats out, as `banned` wants them; how many are left. */
uint64_t search_distinct(uint32_t *ids, uint64_t count);

#endif
