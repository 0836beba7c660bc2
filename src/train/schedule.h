/* schedule: how long a run is, and the learning rate over it. */
#ifndef SPTX_SCHEDULE_H
#define SPTX_SCHEDULE_H

#include "config.h"

/* The rate when a share `done` (0..1) of the run is done. linear: lr (1 - done), not below lr x min_lr_ratio, as word2vec;
 * cosine: half a cosine between the two; warmup: times done / warmup before it. */
double schedule_rate(const struct config *config, double done);

/* How many examples a run has: epochs and steps, whichever ends first. An epoch's last batch may be short. -1 after fail(). */
int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total);

#endif
