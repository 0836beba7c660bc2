/* schedule: the learning rate over a run. */
#ifndef SPTX_SCHEDULE_H
#define SPTX_SCHEDULE_H

#include "config.h"

/* The rate when a share `done` (0..1) of the run is done. linear: lr (1 - done), not below lr x min_lr_ratio, as word2vec;
 * cosine: half a cosine between the two; warmup: times done / warmup before it. */
double schedule_rate(const struct config *config, double done);

#endif
