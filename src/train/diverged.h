/* diverged: makes the sentence about a run whose weights have left all bounds. */
#ifndef SPTX_DIVERGED_H
#define SPTX_DIVERGED_H

#include "config/config.h"
#include "kernels/ranks.h"

/* `what` was seen ("the loss is infinite") at this step: that the weights have diverged, what to change, and where the last good
 * ones are. Takes the place of a sentence that waits. By all ranks: the first one looks for checkpoints, however long that takes.
 * -1 after fail(). */
int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what);

#endif
