/* agree: how ranks come to the same decision, and how none waits for ever: what ranks.c and join.c have in common. */
#ifndef SPTX_RANKS_AGREE_H
#define SPTX_RANKS_AGREE_H

#include "kernels/ranks.h"

enum { PATIENCE = 3 }; /* seconds that a rank which fails waits for the others to agree */

static inline int is_alone(const struct ranks *ranks) {
    return ranks_count(ranks) == 1;
}

/* late: a call took longer than ranks->patience. There is nothing to go on with: all are ended, and the rank that did not come
 * is named, with `what` it was to bring. */
void agree_in_time(struct ranks *ranks, int late, const char *what);

/* The sentence of rank `from`, which has failed, becomes everyone's: -1. */
int agree_on_failure(struct ranks *ranks, unsigned from);

/* This rank fails where the others do not come: it says so itself, and ends all. */
void agree_on_nothing(const struct ranks *ranks, int code);

#endif
