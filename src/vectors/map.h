/* map: places rows in the plane so that rows near each other by cosine lie near each other (t-SNE, van der Maaten and Hinton
 * 2008). It begins from their two principal directions.
 *
 *   near rows of each  ->  how strongly each pair is drawn together     once
 *   all pairs          ->  how strongly they push each other away       each round, exactly
 *
 * One thread sums a row's forces in a fixed order, so the number of threads changes nothing. A round takes count^2 terms: 5,000
 * rows take seconds, 20,000 a minute on two cores.
 */
#ifndef SPTX_MAP_H
#define SPTX_MAP_H

#include "base/pool.h"

enum {
    MAP_PERPLEXITY = 30, /* the number of neighbours that count, smoothly */
    MAP_NEAR = 90,       /* neighbours that are looked at: three times MAP_PERPLEXITY */
    MAP_ROWS = 20000     /* more would take minutes */
};

struct map_request {
    const float *rows; /* [count x dim], unit rows */
    uint64_t count;
    uint32_t dim;
    const uint32_t *near; /* [count x k] the other rows nearest to each row, best first */
    const float *cosines; /* [count x k] their cosines */
    uint32_t k;           /* at most MAP_NEAR; 0 where there is no other row */
};

/* Fills xy [count x 2]. Returns 0, or -1 after fail(), also where a signal asked to stop. */
int map_make(float *xy, const struct map_request *request, struct pool *pool);

#endif
