/* clusters: groups of rows that lie in one direction (k-means of unit rows, "spherical k-means", Dhillon and Modha
 * 2001). */
#ifndef SPTX_CLUSTERS_H
#define SPTX_CLUSTERS_H

#include "base/pool.h"

#include <stdint.h>

struct clusters_request {
    const float *rows; /* [count x dim], each of unit length or zeros */
    uint64_t count;
    uint32_t dim;
    uint32_t most;          /* clusters at most */
    unsigned tries, rounds; /* best of this number of tries, each of at most this number of rounds */
    struct pool *pool;      /* NULL: this thread alone; the clusters are the same */
};

/* Fills cluster [count] with the number of each row's cluster, 0 .. *found - 1, numbered in the order of their first rows. The
 * same rows make the same clusters. Returns 0, or -1 after fail(). */
int clusters_find(uint32_t *cluster, uint32_t *found, const struct clusters_request *request);

#endif
