/* clusters: groups of rows that point in similar directions (k-means of unit rows, "spherical k-means", Dhillon and Modha 2001). */
#ifndef SPTX_CLUSTERS_H
#define SPTX_CLUSTERS_H

#include "base/pool.h"

#include <stdint.h>

struct clusters_request {
    const float *rows; /* [count x dim]; each row has length 1 or is all zeros */
    uint64_t count;
    uint32_t dim;
    uint32_t most;          /* most clusters */
    unsigned tries, rounds; /* tries: number of runs, the best of which is kept; rounds: most rounds of a run */
    struct pool *pool;      /* threads to use; NULL: the calling thread alone, with the same result */
};

/* Sets cluster[count] to the number of each row's cluster, 0 .. *found - 1. The cluster of the first row is cluster 0, and so
 * on. Equal rows as input give equal clusters. Returns 0, or -1 after fail(). */
int clusters_find(uint32_t *cluster, uint32_t *found, const struct clusters_request *request);

#endif
