/* map: computes a two-dimensional map on which rows that are similar by cosine are near each other (t-SNE, van der Maaten and
 * Hinton 2008). The map starts from the rows' two principal directions.
 *
 *   attraction   between each row and its nearest rows; its strengths are computed once
 *   repulsion    between all pairs of rows; computed exactly in each round
 *
 * One thread sums a row's forces in a fixed order, so the result is the same for any number of threads. A round computes count^2
 * terms: on two cores 5,000 rows need seconds, 20,000 rows a minute.
 */
#ifndef SPTX_MAP_H
#define SPTX_MAP_H

#include "base/pool.h"

#include <stdint.h>

enum {
    MAP_PERPLEXITY = 30, /* effective number of neighbours of a row (t-SNE's perplexity) */
    MAP_NEAR = 90,       /* number of neighbours that attract a row: three times MAP_PERPLEXITY */
    MAP_ROWS = 20000     /* most rows of a map; more would take minutes */
};

struct map_request {
    const float *rows; /* [count x dim] rows of length 1 */
    uint64_t count;
    uint32_t dim;
    const uint32_t *near; /* [count x k] the nearest other rows of each row, best first */
    const float *cosines; /* [count x k] cosines of these rows */
    uint32_t k;           /* number of nearest rows of each row, at most MAP_NEAR; 0 if there is only one row */
};

/* Computes the coordinates xy [count x 2]. Returns 0, or -1 after fail(), also if a signal asked to stop. */
int map_make(float *xy, const struct map_request *request, struct pool *pool);

/* clusters: groups of rows that point in similar directions (k-means of unit rows, "spherical k-means", Dhillon and Modha 2001). */

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
