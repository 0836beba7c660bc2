/* ranks_alike: what all ranks must have alike, lest each of them trains another run: the keys that change the numbers, what it
 * trains on, the encoded corpus, the batch. Everyone compares its own with the first rank's. By all ranks together: 0, or -1
 * after fail() on each.
 */
#ifndef SPTX_RANKS_ALIKE_H
#define SPTX_RANKS_ALIKE_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "state.h"

int ranks_alike_config(const struct config *config, struct ranks *ranks);

/* The first rank's text becomes everyone's, in memory that the caller frees; NULL stays NULL. */
int ranks_alike_text(char **text, struct ranks *ranks);

/* device.exchange must be alike, since all ranks sum parts in the same way, and so must `gpu`: 1 where this rank trains on one. */
int ranks_alike_device(const struct config *config, int gpu, struct ranks *ranks);

int ranks_alike_corpus(const struct corpus_identity *corpus, uint64_t examples_per_epoch, uint64_t batch, struct ranks *ranks);

#endif
