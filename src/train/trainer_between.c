/* trainer_between: the work between a run's steps and after them: reports, checkpoints, held-out losses. */
#include "trainer_inner.h"

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "health.h"
#include "run/checkpoint.h"
#include "run/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    HELD_OUT_EXAMPLES = 1 << 21, /* most examples of an epoch in which held-out ones are looked for, to measure their loss */
    RETRY_SECONDS = 60,          /* seconds between two attempts to write the last checkpoint, if the disk gets no space meanwhile */
    LOOK_NANOSECONDS = 200000000,
    MISSING_BYTES = 64 /* bytes of the text of missing_text() */
};

int trainer_writes(const struct trainer *t) {
    return ranks_first(t->ranks);
}

/* ---- time ---- */

static double seconds_trained(const struct trainer *t) {
    return t->seconds_before + (progress_now() - t->began_training) - t->beside;
}

/* Does work that is not training, and does not count its time as training time. */
static int do_beside(struct trainer *t, int (*work)(struct trainer *)) {
    double began = progress_now();
    int result = work(t);
    double spent = progress_now() - began;
    t->beside += spent;
    metrics_leave_out(&t->metrics, spent);
    return result;
}

/* ---- reports ---- */

struct standing trainer_standing(const struct trainer *t, double lr) {
    return (struct standing){.state = &t->steps.state, .done = steps_share(&t->steps), .seconds = seconds_trained(t), .lr = lr};
}

int trainer_follow(struct trainer *t) {
    int moved = trainer_writes(t) ? run_directory_follow(t->run) : 0;
    if (moved < 0) return -1;
    return moved ? metrics_move(&t->metrics, t->run->place) : 0;
}

/* Passes the progress to the caller in this process (options->hear), who may ask to stop. */
static void tell(struct trainer *t, double lr) {
    const struct metrics *m = &t->metrics;
    struct sptx_progress told = {.size = sizeof told,
                                 .step = t->steps.state.step,
                                 .epoch = t->steps.state.epoch,
                                 .done = steps_share(&t->steps),
                                 .loss = m->last.example,
                                 .lr = lr,
                                 .words_per_second = m->words_per_second,
                                 .pairs_per_second = m->pairs_per_second,
                                 .seconds = seconds_trained(t),
                                  .line = m->line};
    if (t->options->hear && t->options->hear(t->options->user, &told)) t->heard_stop = 1;
}

static void report_now(struct trainer *t, double lr) {
    struct standing now = trainer_standing(t, lr);
    uint64_t before = t->metrics.reports;
    if (trainer_follow(t)) {
        t->heard_stop = 1; /* the checkpoint that is then written tells why */
        return;
    }
    metrics_report(&t->metrics, &now);
    if (t->metrics.reports != before) tell(t, lr);
}

static void report(void *user, double lr, int last) {
    struct trainer *t = user;
    if (last || metrics_due(&t->metrics)) report_now(t, lr);
}

/* Reports the loss of the untrained model, which is the loss of the first batch before any update. */
static void report_untrained(struct trainer *t, const struct step_result *first) {
    struct progress_state none = {0};
    struct standing start = {.state = &none, .seconds = seconds_trained(t), .lr = schedule_rate(t->config, 0)};
    metrics_untrained(&t->metrics, first, &start);
}

/* Names the last good checkpoint, which may be the one that is being written. */
static int say_diverged(struct trainer *t, const char *what) {
    trainer_leave_checkpoint(t);
    return diverged_say(t->config, t->ranks, t->run->place, t->steps.state.step, what);
}

static int check_loss(struct trainer *t, double loss, uint64_t terms) {
    char text[METRICS_BYTES];
    const char *wrong = metrics_diverged(&t->metrics, loss, terms, text);
    return wrong ? say_diverged(t, wrong) : 0;
}

/* ---- what a step came to ---- */

static int take_batch(void *user, const struct step_result *r) {
    struct trainer *t = user;
    metrics_add_step(&t->metrics, r);
    if (!t->steps.state.pairs && r->pairs) report_untrained(t, r);
    t->steps.state.words += r->words;
    t->steps.state.pairs += r->pairs;
    return check_loss(t, r->loss, r->terms);
}

static int take_piece(void *user, const struct hogwild_result *r, double seconds) {
    struct trainer *t = user;
    metrics_add_piece(&t->metrics, r);
    t->steps.state.words += r->words;
    t->steps.state.pairs += r->pairs;
    return check_loss(t, r->loss, r->sampled_terms);
}

/* ---- checkpoints ---- */

uint64_t trainer_checkpoint_bytes(const struct trainer *t) {
    return table_file_bytes(t->steps.target) + table_file_bytes(t->steps.context) + frozen_bytes(&t->session.frozen);
}

static int follow_run(void *user) {
    return trainer_follow(user);
}

static int settle_run(void *user) {
    struct trainer *t = user;
    return run_directory_settle(t->run) || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

int trainer_settle(struct trainer *t) {
    return ranks_do(t->ranks, trainer_writes(t) ? settle_run : NULL, t);
}

int trainer_ready_checkpoint(struct trainer *t) {
    t->steps.state.seconds = seconds_trained(t);
    return t->steps.ops->drain(t->steps.backend) || ranks_do(t->ranks, trainer_writes(t) ? follow_run : NULL, t) ? -1 : 0;
}

int trainer_forgive(struct trainer *t) {
    snprintf(t->unwritten, sizeof t->unwritten, "%s", report_sentence());
    report_clear();
    ranks_forgive(t->ranks);
    return NOT_WRITTEN;
}

/* Writes a checkpoint of this step. All ranks write the tables; only the first rank changes directories. Returns 0; NOT_WRITTEN, with
 * the reason in t->unwritten; -1 after fail(). */
static int try_checkpoint(struct trainer *t) {
    double began = progress_now();
    if (trainer_ready_checkpoint(t)) return -1;
    struct checkpoint what = {t->steps.target, t->steps.context, t->steps.state, t->corpus, &t->session.frozen};
    int result = checkpoint_write(t->run->place, &what, t->config->run_keep);
    if (result == TABLE_NOT_FINITE) return say_diverged(t, report_sentence());
    if (ranks_agree(t->ranks, result)) return trainer_forgive(t);
    if (trainer_settle(t)) return -1; /* a run that is half replaced is made whole by the next process, not by this one */
    checkpoint_due_written(&t->due, t->steps.state.step, progress_now() - began, progress_now());
    return 0;
}

/* Writes "; 1.2 GiB are missing" if the disk has too little space for a checkpoint, otherwise "". */
static char *missing_text(const struct trainer *t, char text[MISSING_BYTES]) {
    char missing[TEXT_BYTES];
    uint64_t space = UINT64_MAX, wanted = trainer_checkpoint_bytes(t) + BESIDE_BYTES;
    *text = 0;
    if (directory_space(t->run->path, &space)) report_clear();
    if (space < wanted) snprintf(text, MISSING_BYTES, "; %s are missing", text_of_bytes(missing, wanted - space));
    return text;
}

int trainer_pass_over(struct trainer *t, uint64_t step) {
    char missing[MISSING_BYTES];
    warn("checkpoint-%" PRIu64 " is not written: %s%s; the older one stays, and training goes on", step, t->unwritten,
         missing_text(t, missing));
    checkpoint_due_begun(&t->due, t->steps.state.step, progress_now());
    return NOT_WRITTEN;
}

int trainer_write_checkpoint(struct trainer *t) {
    if (trainer_end_checkpoint(t)) return -1;
    int result = try_checkpoint(t);
    return result == NOT_WRITTEN ? trainer_pass_over(t, t->steps.state.step) : result;
}

/* ---- the last checkpoint ---- */

/* The wait for a disk that has space again. */
struct awaiting {
    struct trainer *t;
    double until;     /* time of progress_now() at which the last checkpoint is given up */
    int asked_before; /* 1: a signal had stopped the run already; a second one then ends the process at once */
};

/* Waits until the last checkpoint may be tried again: the disk has more space, or a minute has passed. Returns 0, or 1 if it is given
 * up. */
static int await_disk(void *user) {
    const struct awaiting *w = user;
    const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
    char missing[MISSING_BYTES], left[TEXT_BYTES];
    uint64_t before = UINT64_MAX, space, wanted = trainer_checkpoint_bytes(w->t) + BESIDE_BYTES;
    double began = progress_now(), next = began + RETRY_SECONDS < w->until ? began + RETRY_SECONDS : w->until;
    if (began >= w->until) return 1;
    warn("the last checkpoint is not written: %s%s; it is tried again for %s, or until Ctrl-C", w->t->unwritten, missing_text(w->t, missing),
         text_of_time(left, w->until - began));
    if (directory_space(w->t->run->path, &before)) report_clear();
    while (progress_now() < next) {
        if (interrupt_asked() && (!w->asked_before || interrupt_used())) return 1;
        if (!directory_space(w->t->run->path, &space) && space > before && space >= wanted) return 0;
        nanosleep(&pause, NULL);
    }
    report_clear();
    return 0;
}

int trainer_write_last(struct trainer *t) {
    if (trainer_end_checkpoint(t)) return -1;
    struct awaiting waiting = {t, progress_now() + t->config->run_retry_seconds, interrupt_asked()};
    int result = try_checkpoint(t);
    while (result == NOT_WRITTEN) {
        int given_up = ranks_do(t->ranks, trainer_writes(t) ? await_disk : NULL, &waiting);
        if (given_up) return given_up < 0 ? -1 : fail("%s", t->unwritten);
        result = try_checkpoint(t);
    }
    return result;
}

int trainer_start_due(struct trainer *t) {
    checkpoint_due_start(&t->due, t->config, t->run->path, t->steps.state.step, t->began_training);
    t->due.bytes = trainer_checkpoint_bytes(t);
    return trainer_writes(t) ? checkpoint_count(t->run->place, &t->due.present) : 0;
}

static int is_to_stop(struct trainer *t) {
    int asked = interrupt_asked();
    if (asked && t->options->keep_signals) t->heard_stop = 1;
    return t->heard_stop || asked;
}

/* Work to do after a step, as bits. If one rank wants it, all ranks do it, after the same step. */
enum wish { WISH_STOP = 1, WISH_CHECKPOINT = 2, WISH_WRITTEN = 4 };

static unsigned wishes(void *user, int epoch_ended) {
    struct trainer *t = user;
    unsigned own = is_to_stop(t) ? WISH_STOP : 0;
    if (trainer_is_writing(t)) {
        if (behind_is_done(&t->behind.work)) own |= WISH_WRITTEN;
        else checkpoint_due_busy(&t->due, progress_now());
    }
    /* Only the clock of the rank that writes decides. */
    if (trainer_writes(t) && checkpoint_due_now(&t->due, t->steps.state.step, epoch_ended, progress_now())) own |= WISH_CHECKPOINT;
    return ranks_any(t->ranks, own);
}

/* ---- held-out loss ---- */

int trainer_measure_held_out(struct trainer *t) {
    uint64_t most = t->steps.per_epoch < HELD_OUT_EXAMPLES ? t->steps.per_epoch : HELD_OUT_EXAMPLES;
    struct step_request request = {.target = t->steps.target->store,
                                   .context = t->steps.context->store,
                                   .rule = &t->steps.target->rule,
                                   .loss = config_loss(t->config),
                                   .loss_only = 1};
    struct step_result sum = {0}, got;
    if (!t->session.examples.source.held_out) return 0;
    for (uint64_t first = 0; first < most; first += t->steps.batch) {
        struct batch_request batch = {0, first, most - first < t->steps.batch ? most - first : t->steps.batch, 1};
        if (t->steps.ops->make_batch(t->steps.backend, 0, &batch) || t->steps.ops->step(t->steps.backend, 0, &request) ||
            t->steps.ops->result(t->steps.backend, 0, &got))
            return -1;
        sum.loss += got.loss;
        sum.examples += got.examples;
        sum.pairs += got.pairs;
        sum.terms += got.terms;
    }
    if (!sum.examples) return 0;
    struct standing now = trainer_standing(t, 0);
    if (trainer_follow(t)) return -1;
    metrics_held_out(&t->metrics, &sum, &now);
    return 0;
}

/* Does the work that is due at the end of an epoch, and the work that a signal or the caller has asked for. */
static int between(void *user, int epoch_ended, unsigned wished) {
    struct trainer *t = user;
    int finished = steps_done(&t->steps) >= t->steps.run;
    if ((wished & WISH_WRITTEN) && do_beside(t, trainer_end_checkpoint)) return -1;
    if (epoch_ended || finished) {
        if (t->steps.ops->drain(t->steps.backend) || do_beside(t, trainer_measure_held_out)) return -1;
    }
    if (trainer_is_judged(t) && (epoch_ended || finished) && do_beside(t, trainer_judge_epoch)) return -1;
    if (t->impatient) return 1;
    if (finished) return 0;
    if (wished & WISH_STOP) return 1;
    return wished & WISH_CHECKPOINT && do_beside(t, trainer_begin_checkpoint) < 0 ? -1 : 0;
}

struct steps_watch trainer_watch(struct trainer *t) {
    return (struct steps_watch){
        .user = t, .took_batch = take_batch, .took_piece = take_piece, .wishes = wishes, .between = between, .report = report};
}
