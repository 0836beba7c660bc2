/* diverged: what is said of a run whose weights have left all bounds. */
#ifndef SPTX_DIVERGED_H
#define SPTX_DIVERGED_H

#include "config.h"

/* `what` was seen ("the loss is infinite") at this step: that the weights have diverged, what to change, and where the last good
 * ones are. Takes the place of a sentence that waits. -1 after fail(). */
int diverged_say(const struct config *config, const char *run, uint64_t step, const char *what);

#endif
