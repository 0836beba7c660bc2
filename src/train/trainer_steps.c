/* trainer_steps: the two ways to train: exact steps with batches in flight, and lock-free pieces. */
#include "trainer_inner.h"

#include "pipeline.h"
#include "base/progress.h"
#include "run/schedule.h"

/* Positions of a lock-free piece between two looks at signals and clocks: as many as take so many seconds. */
enum { PIECE_FIRST = 65536, PIECE_LEAST = 16384 };
static const double piece_seconds = 0.25;

/* Moves the run's state past `count` examples; 1 where that ended an epoch. */
static int move_on(struct trainer *t, uint64_t count) {
    t->state.position += count;
    if (t->state.position < t->examples_per_epoch) return 0;
    t->state.position = 0;
    t->state.epoch++;
    return 1;
}

/* ---- update = batch ---- */

static int take_result(struct trainer *t, const struct step_result *r) {
    metrics_add_step(&t->metrics, r);
    if (!t->state.pairs && r->pairs) trainer_report_untrained(t, r);
    t->state.words += r->words;
    t->state.pairs += r->pairs;
    return trainer_check_loss(t, r->loss, r->terms);
}

static int empty_pipeline(struct trainer *t, struct pipeline *pipeline) {
    struct step_result result;
    int more;
    while ((more = pipeline_next(pipeline, &result)) > 0)
        if (take_result(t, &result)) return -1;
    return more;
}

int trainer_batches(struct trainer *t) {
    struct pipeline pipeline;
    struct step_result oldest;
    int came, stop = 0;
    double lr = 0;
    pipeline_init(&pipeline, t->ops, t->backend, (unsigned)t->config->memory_depth);
    while (!stop && trainer_done(t) < t->total) {
        uint64_t left = t->examples_per_epoch - t->state.position, of_run = t->total - trainer_done(t);
        struct batch_request batch = {(uint32_t)t->state.epoch, t->state.position, t->batch, 0, t->context->store};
        if (batch.count > left) batch.count = left;
        if (batch.count > of_run) batch.count = of_run;
        lr = schedule_rate(t->config, trainer_share(t));
        struct step_request step = {.target = t->target->store,
                                    .context = t->context->store,
                                    .rule = &t->target->rule,
                                    .loss = config_loss(t->config),
                                    .lr = lr,
                                    .global_step = t->state.step,
                                    .mean = t->config->train_reduction == REDUCTION_MEAN};
        if (pipeline_submit(&pipeline, &batch, &step, &oldest, &came) || (came && take_result(t, &oldest))) return -1;
        t->state.step++;
        int epoch_ended = move_on(t, batch.count);
        unsigned wished = trainer_wishes(t, epoch_ended);
        if (epoch_ended || wished || trainer_done(t) >= t->total) {
            if (empty_pipeline(t, &pipeline)) return -1;
            stop = trainer_between(t, epoch_ended, wished);
            if (stop < 0) return -1;
        }
        trainer_report_when_due(t, lr);
    }
    if (empty_pipeline(t, &pipeline)) return -1;
    trainer_report_now(t, lr);
    return stop;
}

/* ---- update = hogwild ---- */

static int train_piece(struct trainer *t, uint64_t count, double *lr) {
    struct hogwild_request request = {.target = t->target->store,
                                      .context = t->context->store,
                                      .rule = &t->target->rule,
                                      .epoch = (uint32_t)t->state.epoch,
                                      .first = t->state.position,
                                      .count = count};
    struct hogwild_result r;
    uint64_t done = trainer_done(t);
    request.global_step = done;
    request.lr_first = schedule_rate(t->config, (double)done / (double)t->total);
    request.lr_last = *lr = schedule_rate(t->config, (double)(done + count) / (double)t->total);
    if (t->ops->hogwild(t->backend, &request, &r)) return -1;
    metrics_add_piece(&t->metrics, &r);
    t->state.words += r.words;
    t->state.pairs += r.pairs;
    return trainer_check_loss(t, r.loss, r.sampled_terms);
}

int trainer_hogwild(struct trainer *t) {
    int stop = 0;
    uint64_t piece = PIECE_FIRST;
    double lr = 0;
    while (!stop && trainer_done(t) < t->total) {
        uint64_t count = t->examples_per_epoch - t->state.position, of_run = t->total - trainer_done(t);
        if (count > piece) count = piece;
        if (count > of_run) count = of_run;
        double started = progress_now();
        if (train_piece(t, count, &lr)) return -1;
        double took = progress_now() - started;
        if (count == piece)
            piece = took > 2 * piece_seconds && piece > PIECE_LEAST ? piece / 2 : took < piece_seconds ? piece * 2 : piece;
        int epoch_ended = move_on(t, count);
        t->state.step = trainer_done(t) / t->batch;
        unsigned wished = trainer_wishes(t, epoch_ended);
        stop = trainer_between(t, epoch_ended, wished);
        if (stop < 0) return -1;
        trainer_report_when_due(t, lr);
    }
    trainer_report_now(t, lr);
    return stop;
}
