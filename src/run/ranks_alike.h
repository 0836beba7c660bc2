/* ranks_alike: checks that all ranks have the same values of keys that change the numbers, the same encoded corpus and the same
 * batch. If they differed, each rank would train another run. Each rank compares its values with the first rank's. All ranks
 * call these functions together; each gets 0, or -1 after fail(). */
#ifndef SPTX_RANKS_ALIKE_H
#define SPTX_RANKS_ALIKE_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "state.h"

int ranks_alike_config(const struct config *config, struct ranks *ranks);

/* Copies the first rank's text to all ranks, for the caller to free; NULL stays NULL. */
int ranks_alike_text(char **text, struct ranks *ranks);

/* Checks that all ranks have the same device.exchange, since they must sum dot products in one way, and the same `gpu` (1: this
 * rank trains on a GPU). */
int ranks_alike_device(const struct config *config, int gpu, struct ranks *ranks);

int ranks_alike_corpus(const struct corpus_identity *corpus, uint64_t examples_per_epoch, uint64_t batch, struct ranks *ranks);

#endif
