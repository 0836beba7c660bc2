/* schedule: how long a run is, and the learning rate over it. */
#ifndef SPTX_SCHEDULE_H
#define SPTX_SCHEDULE_H

#include "config/config.h"

/* Returns the rate when a share `done` (0..1) of the run is done. It rises in a straight line from 0 to lr while `done`
 * is below warmup. Over the rest of the run it falls from lr to lr x min_lr_ratio: in a straight line for `linear`,
 * along half a cosine for `cosine`. */
double schedule_rate(const struct config *config, double done);

/* Computes how many examples a run has: epochs and steps, whichever ends first. An epoch's last batch may be short.
 * Returns -1 after fail(). */
int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total);

#endif
