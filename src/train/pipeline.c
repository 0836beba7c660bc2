#include "pipeline.h"

#include "base/report.h"

#include <inttypes.h>

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth) {
    unsigned stages = depth < 1 ? 1 : depth > BACKEND_STAGES ? BACKEND_STAGES : depth;
    *pipeline = (struct pipeline){.ops = ops, .backend = backend, .depth = stages};
}

int pipeline_next(struct pipeline *pipeline, struct step_result *oldest) {
    if (pipeline->in_flight == 0) return 0;
    unsigned stage = (pipeline->next + pipeline->depth - pipeline->in_flight) % pipeline->depth;
    INVARIANT(pipeline->in_flight <= pipeline->depth && stage < pipeline->depth);
    pipeline->in_flight--; /* also if waiting fails: a stage must not be waited for twice */
    if (pipeline->ops->result(pipeline->backend, stage, oldest)) return -1;
    trace("stage %u: its rows are home; loss %.6g of %" PRIu64 " pairs", stage, oldest->loss, oldest->pairs);
    return 1;
}

int pipeline_submit(struct pipeline *pipeline, const struct batch_request *batch, const struct step_request *step,
                    struct step_result *oldest, int *came) {
    const struct backend_ops *ops = pipeline->ops;
    struct backend *backend = pipeline->backend;
    unsigned stage = pipeline->next;
    *came = 0;
    if (pipeline->in_flight == pipeline->depth) {
        if (pipeline_next(pipeline, oldest) < 0) return -1;
        *came = 1;
    }
    int made = ops->make_batch(backend, stage, batch);
    if (made) return made;
    trace("stage %u: made the batch of examples %" PRIu64 " to %" PRIu64 " of epoch %" PRIu32, stage, batch->first,
          batch->first + batch->count, batch->epoch);
    if (ops->step(backend, stage, step)) return -1;
    trace("stage %u: began step %" PRIu64 " at the rate %.6g, %u batches in flight", stage, step->global_step, step->lr,
          pipeline->in_flight + 1);
    pipeline->next = (stage + 1) % pipeline->depth;
    pipeline->in_flight++;
    return 0;
}
