/* diverged: the error message of a run whose weights have diverged. */
#ifndef SPTX_DIVERGED_H
#define SPTX_DIVERGED_H

#include "config/config.h"
#include "kernels/ranks.h"

/* Calls fail() with a message that says that the weights have diverged at `step`, how that was seen (`what`: "the loss is
 * infinite"), which keys to change, and which checkpoint is the last good one. It replaces a message that is already set. All
 * ranks call it together, since the first rank may need long to look for checkpoints. Returns -1. */
int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what);

#endif
