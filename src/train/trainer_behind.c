/* trainer_behind: writes a checkpoint while training goes on. The checkpoint has the rows (table_snapshot) and the state.ini of the
 * step at which it began, so its files have the same bytes as if training had waited. Only one checkpoint is written at a time.
 */
#include "trainer_inner.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "health.h"

#include <stdlib.h>
#include <string.h>

static int write_snapshots(void *user) {
    struct trainer_behind *w = user;
    int result = checkpoint_write(w->place, &w->what, w->keep);
    w->target.ops->snapshot_stop(w->target.store);
    w->context.ops->snapshot_stop(w->context.store);
    return result;
}

static void end_snapshot(const struct table *snapshot) {
    if (snapshot->ops) snapshot->ops->snapshot_end(snapshot->backend, snapshot->store);
}

static void drop_behind(struct trainer_behind *w) {
    behind_close(&w->work);
    end_snapshot(&w->target);
    end_snapshot(&w->context);
    free(w->place);
    *w = (struct trainer_behind){.place = NULL};
}

static int take_snapshots(struct trainer *t) {
    struct trainer_behind *w = &t->behind;
    if (table_snapshot(t->steps.target, 0, &w->target) || table_snapshot(t->steps.context, 0, &w->context)) return -1;
    w->what = (struct checkpoint){&w->target, &w->context, t->steps.state, t->corpus, &t->session.frozen};
    w->keep = t->config->run_keep;
    w->place = mem_text(t->run->place, strlen(t->run->place), "a path");
    w->began = progress_now();
    return w->place ? behind_begin(&w->work, write_snapshots, w) : -1;
}

int trainer_is_writing(const struct trainer *t) {
    return t->behind.place != NULL;
}

int trainer_begin_checkpoint(struct trainer *t) {
    if (!t->session.plan.snapshot_bytes) return trainer_write_checkpoint(t);
    if (trainer_end_checkpoint(t) || trainer_ready_checkpoint(t)) return -1;
    if (take_snapshots(t)) {
        drop_behind(&t->behind);
        warn("training waits for this checkpoint: %s", report_sentence());
        report_clear();
        return trainer_write_checkpoint(t);
    }
    checkpoint_due_begun(&t->due, t->steps.state.step, t->behind.began);
    return 0;
}

/* Returns 1 if the run's directory was moved after the checkpoint began. */
static int has_moved(struct trainer *t) {
    return trainer_follow(t) || strcmp(t->behind.place, t->run->place) != 0;
}

int trainer_end_checkpoint(struct trainer *t) {
    struct trainer_behind *w = &t->behind;
    if (!trainer_is_writing(t)) return 0;
    behind_wait(&w->work);
    double took = progress_now() - w->began;
    uint64_t step = w->what.progress.step;
    int moved = w->work.result < 0 && has_moved(t);
    int result = moved ? 0 : behind_end(&w->work);
    drop_behind(w);
    if (result == TABLE_NOT_FINITE) return diverged_say(t->config, t->ranks, t->run->place, step, report_sentence());
    if (moved) return report_exit_code() || trainer_write_checkpoint(t) < 0 ? -1 : 0;
    if (result) {
        trainer_forgive(t);
        trainer_pass_over(t, step);
        return 0;
    }
    if (trainer_settle(t)) return -1;
    checkpoint_due_written(&t->due, step, took, progress_now());
    return 0;
}

void trainer_leave_checkpoint(struct trainer *t) {
    if (trainer_is_writing(t)) drop_behind(&t->behind);
}
