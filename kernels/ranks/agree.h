/* agree: lets ranks come to the same decision, so that none waits for ever. Used by ranks.c and join.c. */
#ifndef SPTX_RANKS_AGREE_H
#define SPTX_RANKS_AGREE_H

#include "kernels/ranks.h"

enum { PATIENCE = 3 }; /* seconds that a failing rank waits for the others to agree */

static inline int is_alone(const struct ranks *ranks) {
    return ranks_count(ranks) == 1;
}

/* If `late` is 1, a call took longer than ranks->patience, and nothing can continue: ends all ranks. The message names the rank
 * that did not answer, and `what` it should have sent. */
void agree_in_time(struct ranks *ranks, int late, const char *what);

/* Makes every rank fail with the error message of rank `from`, which has failed. Returns -1. */
int agree_on_failure(struct ranks *ranks, unsigned from);

/* Ends all ranks with this rank's error message: it has failed, and the others do not answer. */
void agree_on_nothing(const struct ranks *ranks, int code);

#endif
