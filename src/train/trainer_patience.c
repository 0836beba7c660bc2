/* trainer_patience: the held-out score of a run. With train.patience, a checkpoint is written after each epoch and scored. The run
 * ends when the score has not improved for that many epochs, and its best checkpoint is the result.
 *
 * The state.ini of each checkpoint has the scores so far, so that a resumed run makes the same decisions as a run that was not
 * killed.
 */
#include "trainer_inner.h"

#include "base/report.h"
#include "base/text.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

int trainer_is_judged(const struct trainer *t) {
    return t->config->train_patience > 0;
}

/* ---- the score ---- */

struct judging {
    struct trainer *t;
    struct trainer_score score;
};

/* Asks the caller of the trainer (options->judge) for the score of the checkpoint that was just written. */
static int judge_checkpoint(void *user) {
    struct judging *j = user;
    const struct trainer *t = j->t;
    char name[CHECKPOINT_NAME];
    checkpoint_name(name, t->steps.state.step, CHECKPOINT_IN_PLACE);
    char *path = file_join(t->run->place, name);
    int result = path ? t->options->judge(&j->score.score, &j->score.lists, path, &t->session.held_out, t->config) : -1;
    free(path);
    return result;
}

/* Finds the held-out score, on all ranks. If items are held out, the first rank computes it. */
static int find_score(struct trainer *t, struct trainer_score *score) {
    int items = t->session.held_out.lists > 0, losses = t->metrics.held_out_times > 0;
    struct judging judging = {t, {losses ? -t->metrics.held_out.pair : NAN, 0}};
    if (items && ranks_do(t->ranks, trainer_writes(t) ? judge_checkpoint : NULL, &judging)) return -1;
    ranks_share(t->ranks, &judging.score, sizeof judging.score);
    struct standing now = trainer_standing(t, 0);
    if (items) metrics_recall(&t->metrics, judging.score.score, judging.score.lists, &now);
    *score = judging.score;
    return 0;
}

static void tell_score(const struct trainer *t, struct trainer_score score) {
    if (t->options->score) *t->options->score = score;
}

int trainer_judge_end(struct trainer *t) {
    struct trainer_score score;
    if (find_score(t, &score)) return -1;
    tell_score(t, score);
    return 0;
}

/* ---- patience ---- */

/* Compares an epoch's score with the best one so far. */
static void take_score(struct progress_state *state, double score) {
    int better = !state->best_step || score > state->best;
    state->judged_step = state->step;
    state->worse_epochs = better ? 0 : state->worse_epochs + 1;
    if (!better) return;
    state->best = score;
    state->best_step = state->step;
}

static int amend(void *user) {
    struct trainer *t = user;
    return checkpoint_amend(t->run->place, &t->steps.state);
}

static void look_at_patience(struct trainer *t) {
    t->impatient = t->steps.state.worse_epochs >= t->config->train_patience;
}

/* A lock-free epoch over little text may end at the same step as the epoch before; it then has no checkpoint of its own and is
 * not scored. */
int trainer_judge_epoch(struct trainer *t) {
    struct trainer_score score;
    if (t->steps.state.step == t->steps.state.judged_step) return 0;
    int written = trainer_write_checkpoint(t);
    if (written) return written < 0 ? -1 : 0; /* an epoch without a checkpoint is not scored */
    if (find_score(t, &score)) return -1;
    if (isnan(score.score))
        return fail("train.patience = %" PRIu64 " found nothing that is held out after epoch %" PRIu64 "; raise train.held_out",
                    t->config->train_patience, t->steps.state.epoch);
    take_score(&t->steps.state, score.score);
    look_at_patience(t);
    return ranks_do(t->ranks, trainer_writes(t) ? amend : NULL, t);
}

int trainer_judge_left(struct trainer *t) {
    const struct progress_state *state = &t->steps.state;
    if (!trainer_is_judged(t) || !state->step) return 0;
    look_at_patience(t);
    if (state->position || state->judged_step == state->step) return 0;
    return trainer_measure_held_out(t) || trainer_judge_epoch(t) ? -1 : 0;
}

static int end_at_best(void *user) {
    struct trainer *t = user;
    const struct progress_state *state = &t->steps.state;
    int over = t->impatient || state->best_step != state->step; /* 0: the last epoch was the best, so more epochs may be added
                                                                 * later */
    return checkpoint_end_at(t->run->place, state->best_step, over ? state->step : 0);
}

int trainer_end_at_best(struct trainer *t) {
    const struct progress_state *state = &t->steps.state;
    int items = t->session.held_out.lists > 0;
    if (trainer_end_checkpoint(t)) return -1;
    if (!state->best_step) return trainer_write_last(t); /* too few examples for a step, or no checkpoint could be written */
    note("best       checkpoint-%" PRIu64 " of the %" PRIu64 " step%s: held-out %s %.4f", state->best_step, state->step,
         text_plural(state->step), items ? "recall@20" : "loss a pair", items ? state->best : -state->best);
    tell_score(t, (struct trainer_score){state->best, (uint64_t)items});
    return ranks_do(t->ranks, trainer_writes(t) ? end_at_best : NULL, t);
}
