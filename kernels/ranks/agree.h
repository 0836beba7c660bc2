/* agree: how ranks come to the same decision, so that none waits for ever. ranks.c and join.c share it. */
#ifndef SPTX_RANKS_AGREE_H
#define SPTX_RANKS_AGREE_H

#include "kernels/ranks.h"

enum { PATIENCE = 3 }; /* seconds that a rank which fails waits for the others to agree */

static inline int is_alone(const struct ranks *ranks) {
    return ranks_count(ranks) == 1;
}

/* Ends all ranks where `late` is 1: a call took longer than ranks->patience, and nothing can go on. The rank that did
 * not come is named, with `what` it was to bring. */
void agree_in_time(struct ranks *ranks, int late, const char *what);

/* Makes the sentence of rank `from`, which has failed, everyone's. Returns -1. */
int agree_on_failure(struct ranks *ranks, unsigned from);

/* Ends all ranks with this rank's own sentence: it fails, and the others do not come to agree. */
void agree_on_nothing(const struct ranks *ranks, int code);

#endif
