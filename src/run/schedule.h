/* schedule: the length of a run, and the learning rate over it. */
#ifndef SPTX_SCHEDULE_H
#define SPTX_SCHEDULE_H

#include "config/config.h"

/* Returns the learning rate when the share `done` (0..1) of the run is done. While `done` is below optimizer.warmup it rises
 * linearly from 0 to lr. Over the rest of the run it falls from lr to lr x min_lr_ratio: linearly for `linear`, along half a
 * cosine for `cosine`. */
double schedule_rate(const struct config *config, double done);

/* Sets *total to the run's number of examples: of train.epochs epochs or of train.steps steps, whichever is fewer. The last
 * batch of an epoch may be smaller. Returns 0, or -1 after fail(). */
int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total);

#endif
