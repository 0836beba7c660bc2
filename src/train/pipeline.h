/* pipeline: passes batches through the backend's stages, with up to `depth` batches in flight. The depth changes the speed, but
 * never the result. */
#ifndef SPTX_PIPELINE_H
#define SPTX_PIPELINE_H

#include "kernels/backend.h"

/* The state of the stages of a backend. */
struct pipeline {
    const struct backend_ops *ops;
    struct backend *backend;
    unsigned depth, in_flight, next; /* next: the stage that the next batch will use */
};

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth);
/* Starts a batch. If all stages are busy, first waits for the oldest batch, stores its result in *oldest and sets *came to 1;
 * otherwise sets *came to 0. Returns 0; BATCH_STOPPED if make_batch() gave up the new batch; -1 after fail(). */
int pipeline_submit(struct pipeline *pipeline, const struct batch_request *batch, const struct step_request *step,
                    struct step_result *oldest, int *came);
/* Waits for the oldest batch in flight. Returns 1 with its result, 0 if no batch is in flight, -1 after fail(). */
int pipeline_next(struct pipeline *pipeline, struct step_result *oldest);

#endif
