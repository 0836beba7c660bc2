#include "gpus.h"

#include "copies.h"
#include "session.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "kernels/optimizers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- runs that only one process trains ---- */

/* How many times as fast one H100 trained the configs of text and graphs lock-free as 2 or 4 GPUs trained them in exact steps
 * (scripts/results/gpus.md). */
struct lock_free_gain {
    enum config_mode mode;
    double of_two, of_four;
};
static const struct lock_free_gain LOCK_FREE[] = {{MODE_WALK, 4.1, 4.1}, {MODE_WINDOW, 5.5, 9.2}};

static double lock_free_gain(const struct config *c, uint64_t gpus) {
    const struct lock_free_gain *gain = &LOCK_FREE[c->examples_mode != MODE_WALK];
    return gpus < 4 ? gain->of_two : gain->of_four;
}

/* Returns 1, with the reason, if the run is of a kind that only one process trains. */
static int needs_one_process(const struct config *c, char why[GPUS_WHY]) {
    uint64_t gpus = c->device_gpus;
    if (c->train_update == UPDATE_HOGWILD)
        snprintf(why, GPUS_WHY, "trained lock-free, which is about %.1f times as fast on one GPU as exact steps on %" PRIu64,
                 lock_free_gain(c, gpus), gpus);
    else if (c->negatives_per == PER_BATCH)
        snprintf(why, GPUS_WHY, "batches share their negatives (negatives.per = batch), which only one GPU can train");
    else if (RULE_BY_ROW(c->optimizer_rule))
        snprintf(why, GPUS_WHY, "optimizer.rule = rowwise-adagrad needs all columns of a row on one GPU");
    else if (!strcmp(c->corpus_path, CORPUS_INPUT))
        snprintf(why, GPUS_WHY, "standard input is read by one process");
    else
        return 0;
    return 1;
}

/* ---- exact steps ---- */

/* Fitted to `bench ranks` of 14 configs on one, two and four H100 of one machine (scripts/results/gpus.md). A step takes longer than
 * plain copies of its rows: OF_WINDOWS times for words and walks, OF_ROWS times for all else. On G GPUs it also waits for the others:
 * G x WAIT seconds. */
static const double OF_WINDOWS = 3.5, OF_ROWS = 1.6, WAIT = 80e-6;

int gpus_seconds(const struct plan *plan, int windows, uint64_t gpus, double *seconds) {
    if (!(plan->floor_pairs > 0)) return -1;
    double one = (windows ? OF_WINDOWS : OF_ROWS) * plan->batch_pairs / plan->floor_pairs;
    *seconds = one / (double)gpus + (gpus > 1 ? (double)gpus * WAIT : 0);
    return 0;
}

/* Returns the number of GPUs, from 1 to `most`, that is expected to train the plan's steps fastest. */
static uint64_t fastest(const struct plan *plan, int windows, uint64_t most, char why[GPUS_WHY]) {
    char a[TEXT_BYTES], b[TEXT_BYTES];
    double one, best, all, seconds;
    uint64_t chosen = 1;
    if (gpus_seconds(plan, windows, 1, &one)) {
        snprintf(why, GPUS_WHY, "the speed of one GPU is unknown: it was not measured how fast it copies");
        return most;
    }
    best = one;
    for (uint64_t n = 2; n <= most && n <= plan->dim; n++)
        if (!gpus_seconds(plan, windows, n, &seconds) && seconds < best) best = seconds, chosen = n;
    gpus_seconds(plan, windows, most, &all);
    snprintf(why, GPUS_WHY, "expected are %s pairs/s on one, %s on %" PRIu64, text_of_rate(a, plan->batch_pairs / one),
             text_of_rate(b, plan->batch_pairs / (chosen > 1 ? best : all)), chosen > 1 ? chosen : most);
    return chosen;
}

/* ---- copies ---- */

/* Returns the number of GPUs that train copies of the tables lock-free; 0, with the reason, if copies are not possible or the run
 * is too short for a gain. */
static unsigned copies_that_gain(const struct session *s, unsigned gpus, char why[GPUS_WHY]) {
    const struct config *c = s->config;
    const struct plan *plan = &s->plan;
    int on_gpu = (plan->target == PLACE_GPU || plan->hot_rows >= plan->rows) && (plan->context == PLACE_GPU || plan->hot_rows >= plan->items);
    unsigned most = copies_most(c), count = c->device_share == SHARE_COPIES || gpus < most ? gpus : most;
    uint64_t more = (plan->target_bytes + plan->context_bytes) / gpus;
    if (!s->ops->has_gpu) {
        if (c->device_share == SHARE_COPIES) snprintf(why, GPUS_WHY, "copies are trained by GPUs, and %s has none", s->ops->name);
        return 0;
    }
    size_t end = strlen(why); /* the reason follows that for lock-free training */
    if (c->optimizer_rule != RULE_SGD) text_add(why, GPUS_WHY, end, "; copies of the tables are trained with optimizer.rule = sgd only");
    else if (!on_gpu || plan->gpu_needed + more > plan->gpu_available)
        text_add(why, GPUS_WHY, end, "; the tables do not fit a GPU, as copies of them must");
    else if (count < 2)
        text_add(why, GPUS_WHY, end, "; at optimizer.lr = %g, copies on several GPUs would need a higher rate, and diverge", c->optimizer_lr);
    else if (c->device_share == SHARE_AUTO && !copies_round_of(s, count))
        text_add(why, GPUS_WHY, end, "; the run is too short for copies of the tables on several GPUs");
    else
        return count;
    return 0;
}

/* ---- the choice ---- */

/* Writes "GPUs 1 of 4: .." before the reason. */
static void complete(char why[GPUS_WHY], uint64_t chosen, uint64_t gpus) {
    char reason[GPUS_WHY];
    snprintf(reason, sizeof reason, "%s", why);
    snprintf(why, GPUS_WHY, "%" PRIu64 " of %" PRIu64 ": %.*s", chosen, gpus, GPUS_WHY / 2, reason);
}

int64_t gpus_choose(struct config *alone, char why[GPUS_WHY]) {
    uint64_t gpus = alone->device_gpus, chosen = gpus;
    struct session session;
    if (!strcmp(alone->corpus_path, CORPUS_INPUT)) {
        needs_one_process(alone, why);
        complete(why, 1, gpus);
        return 1;
    }
    int result = session_plan(&session, alone, NULL), one = !result && needs_one_process(alone, why);
    unsigned copies = one && alone->train_update == UPDATE_HOGWILD ? copies_that_gain(&session, (unsigned)gpus, why) : 0;
    if (copies) {
        alone->copies = copies;
        snprintf(why, GPUS_WHY, "trained lock-free, on a copy of the tables each; merged every %" PRIu64 " examples of a GPU",
                 copies_round_of(&session, copies));
    } else if (alone->device_share == SHARE_COPIES) {
        result = result ? result : fail("device.share = copies: %s", one ? why : "only lock-free training has copies, and train.update is batch");
    }
    if (copies) chosen = copies;
    else if (!result && one && session.plan.fits) chosen = 1;
    else if (!result && !session.plan.fits) snprintf(why, GPUS_WHY, "the run does not fit one GPU");
    else if (!result) chosen = fastest(&session.plan, config_is_window(alone), gpus, why);
    session_close(&session);
    if (!result) complete(why, chosen, gpus);
    return result ? -1 : (int64_t)chosen;
}
