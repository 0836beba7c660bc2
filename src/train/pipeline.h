/* pipeline: batches through their stages, `depth` in flight. Depth changes speed and nothing else. */
#ifndef SPTX_PIPELINE_H
#define SPTX_PIPELINE_H

#include "kernels/backend.h"

struct pipeline {
    const struct backend_ops *ops;
    struct backend *backend;
    unsigned depth, in_flight, next; /* next: the stage that takes the next batch */
};

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth);
/* Starts a batch. Where all stages are busy, the oldest one's result is waited for first and put into *oldest, and
 * *came is 1. Returns 0; BATCH_STOPPED if make_batch() gave up this batch; -1 after fail(). */
int pipeline_submit(struct pipeline *pipeline, const struct batch_request *batch, const struct step_request *step,
                    struct step_result *oldest, int *came);
/* Waits for the oldest batch in flight: 1 with its result, 0 when none is left, -1 after fail(). */
int pipeline_next(struct pipeline *pipeline, struct step_result *oldest);

#endif
