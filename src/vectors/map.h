/* map: places rows in the plane such that those which are near by cosine lie near each other (t-SNE, van der Maaten and
 * Hinton 2008), beginning from their two principal directions.
 *
 *   near rows of each  ->  how strongly each pair is drawn together     once
 *   all pairs          ->  how strongly they push each other away       each round, exactly
 *
 * A row's forces are summed by one thread in one order: the threads change nothing. A round takes count^2 terms: 5,000
 * rows take seconds, 20,000 a minute on two cores.
 */
#ifndef SPTX_MAP_H
#define SPTX_MAP_H

#include "base/pool.h"

enum {
    MAP_PERPLEXITY = 30, /* neighbours that count, as a smooth number */
    MAP_NEAR = 90,       /* neighbours that are looked at: three times that */
    MAP_ROWS = 20000     /* more would take minutes */
};

struct map_request {
    const float *rows; /* [count x dim], unit rows */
    uint64_t count;
    uint32_t dim;
    const uint32_t *near; /* [count x k] the other rows nearest to each, the best first */
    const float *cosines; /* [count x k] of them */
    uint32_t k;           /* at most MAP_NEAR; 0 where there is no other row */
};

/* xy [count x 2]. 0, or -1 after fail(): also where a signal asked to stop. */
int map_make(float *xy, const struct map_request *request, struct pool *pool);

#endif
