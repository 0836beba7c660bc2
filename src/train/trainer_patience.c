/* trainer_patience: the held-out score of a run. With train.patience it is found after each epoch, on a checkpoint of
 * its own; the run ends when it has not become better for so many epochs, and its best checkpoint is what it leaves.
 *
 * A checkpoint's state.ini says what the score was up to there, so that a run that goes on decides as it would have
 * without a kill.
 */
#include "trainer_inner.h"

#include "base/report.h"
#include "run/checkpoint.h"
#include "run/checkpoints.h"

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

/* Asks whoever stands above for the score of the checkpoint that has just been written. */
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

/* Finds the score, by all ranks: of held-out items the first one asks for it. */
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

/* Compares an epoch's score with the best one so far. A score that is not a number (nothing was measured) does not count. */
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

/* Some epochs of lock-free runs over little text end at the step of the one before, and have no checkpoint of their
 * own. */
int trainer_judge_epoch(struct trainer *t) {
    struct trainer_score score;
    if (t->steps.state.step == t->steps.state.judged_step) return 0;
    if (trainer_write_checkpoint(t) || find_score(t, &score)) return -1;
    if (isnan(score.score))
        return fail("train.patience = %" PRIu64 " found nothing that is held out after epoch %" PRIu64
                    "; raise train.held_out",
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
    int over = t->impatient || state->best_step != state->step; /* otherwise more epochs may be asked for later */
    return checkpoint_end_at(t->run->place, state->best_step, over ? state->step : 0);
}

int trainer_end_at_best(struct trainer *t) {
    const struct progress_state *state = &t->steps.state;
    int items = t->session.held_out.lists > 0;
    if (!state->best_step) return trainer_write_checkpoint(t); /* too few examples for a step */
    note("best       checkpoint-%" PRIu64 " of the %" PRIu64 " steps: held-out %s %.4f", state->best_step, state->step,
         items ? "recall@20" : "loss a pair", items ? state->best : -state->best);
    tell_score(t, (struct trainer_score){state->best, (uint64_t)items});
    return ranks_do(t->ranks, trainer_writes(t) ? end_at_best : NULL, t);
}
