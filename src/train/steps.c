#include "steps.h"

#include "base/progress.h"
#include "base/report.h"
#include "gpus.h"
#include "run/state.h"

#include <inttypes.h>

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth) {
    unsigned stages = depth < 1 ? 1 : depth > BACKEND_STAGES ? BACKEND_STAGES : depth;
    *pipeline = (struct pipeline){.ops = ops, .backend = backend, .depth = stages};
}

int pipeline_next(struct pipeline *pipeline, struct step_result *oldest) {
    if (pipeline->in_flight == 0) return 0;
    unsigned stage = (pipeline->next + pipeline->depth - pipeline->in_flight) % pipeline->depth;
    INVARIANT(pipeline->in_flight <= pipeline->depth && stage < pipeline->depth);
    pipeline->in_flight--; /* even if waiting fails: a stage must not be waited for twice */
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

/* Lock-free training works in spans of examples that take about piece_seconds each; between two spans signals and clocks are checked. PIECE_FIRST:
 * examples of the first span; PIECE_LEAST: fewest of any span. */
enum { PIECE_FIRST = 65536, PIECE_LEAST = 16384 };
static const double piece_seconds = 0.25;

/* ---- where the run stands ---- */

uint64_t steps_done(const struct steps *s) {
    return s->state.epoch * s->per_epoch + s->state.position;
}

/* Returns which share of the run is done after `done` examples. */
static double share_at(const struct steps *s, uint64_t done) {
    return done < s->run ? (double)done / (double)s->run : 1;
}

double steps_share(const struct steps *s) {
    return share_at(s, steps_done(s));
}

struct batch_request steps_batch(const struct steps *s, uint64_t most) {
    uint64_t of_epoch = s->per_epoch - s->state.position, left = s->end - steps_done(s);
    if (of_epoch < left) left = of_epoch;
    return (struct batch_request){.epoch = (uint32_t)s->state.epoch,
                                  .first = s->state.position,
                                  .count = most < left ? most : left};
}

struct step_request steps_request(const struct steps *s) {
    return (struct step_request){.target = s->target->store,
                                 .context = s->context->store,
                                 .rule = &s->target->rule,
                                 .loss = schedule_loss(s->config, steps_share(s)),
                                 .lr = schedule_rate(s->config, steps_share(s)),
                                 .global_step = s->state.step,
                                 .mean = s->config->train_reduction == REDUCTION_MEAN};
}

int steps_move(struct steps *s, uint64_t count) {
    s->state.position += count;
    if (s->state.position < s->per_epoch) return 0;
    s->state.position = 0;
    s->state.epoch++;
    return 1;
}

/* ---- update = batch ---- */

static int empty_pipeline(struct pipeline *pipeline, const struct steps_watch *watch) {
    struct step_result result;
    int more;
    while ((more = pipeline_next(pipeline, &result)) > 0)
        if (watch->took_batch(watch->user, &result)) return -1;
    return more;
}

/* Starts a batch. If all stages are busy, waits for the oldest batch first. Returns 0; BATCH_STOPPED if the new batch was given up; -1 after
 * fail(). */
static int begin_batch(struct steps *s, const struct steps_watch *watch, struct pipeline *pipeline,
                       const struct batch_request *batch, const struct step_request *step) {
    struct step_result oldest;
    int came, result = pipeline_submit(pipeline, batch, step, &oldest, &came);
    if (result < 0 || (came && watch->took_batch(watch->user, &oldest))) return -1;
    s->state.step += result != BATCH_STOPPED;
    return result;
}

static int train_batches(struct steps *s, const struct steps_watch *watch) {
    struct pipeline pipeline;
    int stop = 0;
    double lr = 0;
    pipeline_init(&pipeline, s->ops, s->backend, (unsigned)s->config->memory_depth);
    while (!stop && steps_done(s) < s->end) {
        struct batch_request batch = steps_batch(s, s->batch);
        struct step_request step = steps_request(s);
        int begun = begin_batch(s, watch, &pipeline, &batch, &step);
        if (begun < 0) return -1;
        lr = step.lr;
        int epoch_ended = begun == BATCH_STOPPED ? 0 : steps_move(s, batch.count);
        unsigned wished = watch->wishes(watch->user, epoch_ended);
        if (epoch_ended || wished || steps_done(s) >= s->end) {
            if (empty_pipeline(&pipeline, watch)) return -1;
            stop = watch->between(watch->user, epoch_ended, wished);
            if (stop < 0) return -1;
        }
        watch->report(watch->user, lr, 0);
    }
    if (empty_pipeline(&pipeline, watch)) return -1;
    watch->report(watch->user, lr, 1);
    return stop;
}

/* ---- update = hogwild ---- */

/* Trains the next `count` examples, or fewer if asked to stop. *trained: how many were trained. */
static int train_piece(struct steps *s, const struct steps_watch *watch, uint64_t count, uint64_t *trained, double *seconds,
                       double *lr) {
    uint64_t done = steps_done(s);
    struct hogwild_result result;
    struct hogwild_request request = {.target = s->target->store,
                                      .context = s->context->store,
                                      .rule = &s->target->rule,
                                      .loss = config_loss(s->config),
                                      .epoch = (uint32_t)s->state.epoch,
                                      .first = s->state.position,
                                      .count = count,
                                      .lr_first = schedule_rate(s->config, share_at(s, done)),
                                      .lr_last = schedule_rate(s->config, share_at(s, done + count)),
                                      .global_step = done};
    double began = progress_now();
    *lr = request.lr_last;
    if (s->copies ? copies_train(s->copies, &request, &result) : s->ops->hogwild(s->backend, &request, &result)) return -1;
    *seconds = progress_now() - began;
    *trained = result.done;
    trace("lock-free: trained %" PRIu64 " examples from %" PRIu64 " of epoch %" PRIu64 " in %.6f s", result.done, s->state.position,
          (uint64_t)s->state.epoch, *seconds);
    return watch->took_piece(watch->user, &result, *seconds);
}

/* Returns the number of examples for the next span, if `piece` examples took `seconds`. */
static uint64_t next_piece(uint64_t piece, double seconds) {
    if (seconds > 2 * piece_seconds && piece > PIECE_LEAST) return piece / 2;
    return seconds < piece_seconds ? piece * 2 : piece;
}

static int train_pieces(struct steps *s, const struct steps_watch *watch) {
    int stop = 0;
    uint64_t piece = s->copies ? copies_round(s->copies) : PIECE_FIRST;
    double lr = 0, seconds;
    uint64_t trained;
    while (!stop && steps_done(s) < s->end) {
        uint64_t count = steps_batch(s, piece).count;
        if (train_piece(s, watch, count, &trained, &seconds, &lr)) return -1;
        if (count == piece && !s->copies) piece = next_piece(piece, seconds);
        int epoch_ended = steps_move(s, trained);
        s->state.step = s->state.epoch * schedule_epoch_steps(s->per_epoch, s->batch) + s->state.position / s->batch;
        stop = watch->between(watch->user, epoch_ended, watch->wishes(watch->user, epoch_ended));
        if (stop < 0) return -1;
        watch->report(watch->user, lr, 0);
    }
    watch->report(watch->user, lr, 1);
    return stop;
}

int steps_train(struct steps *s, const struct steps_watch *watch) {
    return s->config->train_update == UPDATE_HOGWILD ? train_pieces(s, watch) : train_batches(s, watch);
}
