#include "gpus.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "kernels/hogwild.h"
#include "kernels/optimizers.h"
#include "session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct copies {
    const struct backend_ops *ops;
    unsigned count, faster; /* faster: factor of the learning rate */
    uint64_t round;                                  /* number of examples that each copy trains before copies are merged */
    struct backend *backends[COPIES_MOST];           /* the first is the session's */
    struct backend_table *tables[2][COPIES_MOST];    /* [table_side][copy]; the first copy's are the session's tables */
    struct backend_copies *merged[2];
    struct pool *pool; /* one thread for each copy, since a call of a backend waits for its GPU */
    const struct hogwild_request *request;
    struct hogwild_result results[COPIES_MOST];
};

/* ---- opening ---- */

/* MERGES: fewest merges in a run; with fewer, copies would differ too much. rows: number of rows of the larger table. If a GPU trains fewer than
 * max(LEAST, LEAST_A_ROW x rows) examples between two merges, merging takes as long as training; with more than max(MOST, MOST_A_ROW x rows) training
 * becomes no faster (scripts/results/gpus.md). */
enum { MERGES = 40, LEAST = 1 << 18, LEAST_A_ROW = 4, MOST = 1 << 22, MOST_A_ROW = 16 };

/* Returns how many examples each of `count` GPUs trains between two merges: train.merge_every or, if that is auto, so many that merging takes a
 * small part of the time. Returns 0 if the run is too short for copies and device.share is auto. */
static uint64_t copies_round_of(const struct session *s, unsigned count) {
    uint64_t rows = s->plan.rows > s->plan.items ? s->plan.rows : s->plan.items;
    uint64_t least = rows * LEAST_A_ROW > LEAST ? rows * LEAST_A_ROW : LEAST, most = rows * MOST_A_ROW > MOST ? rows * MOST_A_ROW : MOST;
    double examples = (double)example_count(&s->examples.source) * (double)s->config->train_epochs / count / MERGES;
    if (s->config->train_merge_every != COUNT_AUTO) return s->config->train_merge_every;
    if (examples < (double)least) return s->config->device_share == SHARE_COPIES ? LEAST : 0;
    return examples < (double)most ? (uint64_t)examples : most;
}

/* Highest learning rate of a copy: on a GPU wiki16 trains well at 0.05, and diverges at 0.1. */
static const double RATE_MOST = 0.05;

/* Returns how many copies, at least 1, may each train with the learning rate times their number: above some rate lock-free training on a GPU
 * diverges. */
static unsigned copies_most(const struct config *config) {
    double most = floor(RATE_MOST / config->optimizer_lr + 1e-6);
    return most < 1 ? 1 : most < COPIES_MOST ? (unsigned)most : COPIES_MOST;
}

int copies_open(struct copies **out, struct session *s) {
    *out = NULL;
    if (s->config->copies < 2) return 0;
    struct copies *c = mem_zalloc(1, sizeof *c, "copies of the tables");
    if (!c) return -1;
    c->count = s->config->copies < COPIES_MOST ? s->config->copies : COPIES_MOST;
    c->faster = c->count < copies_most(s->config) ? c->count : copies_most(s->config);
    c->round = copies_round_of(s, c->count);
    int result = 0;
    c->ops = s->ops;
    c->backends[0] = s->backend;
    c->tables[TABLE_TARGET][0] = s->target.store;
    c->tables[TABLE_CONTEXT][0] = s->context.store;
    for (unsigned i = 1; i < c->count && !result; i++) {
        struct backend_options options = {.threads = 1,
                                          .index = (unsigned)s->config->device_index + i,
                                          .depth = 1,
                                          .gpu_budget = s->config->memory_gpu_budget};
        result = c->ops->open(&c->backends[i], &options) || c->ops->source(c->backends[i], &s->examples.source) ||
                         c->ops->table_open(c->backends[i], &s->target.spec, &c->tables[TABLE_TARGET][i]) ||
                         c->ops->table_open(c->backends[i], &s->context.spec, &c->tables[TABLE_CONTEXT][i]) ? -1 : 0;
    }
    for (int side = 0; side < 2 && !result; side++) /* 1: the GPUs cannot read and write each other's memory */
        result = c->ops->copies_open(c->backends, c->tables[side], c->count, &c->merged[side]);
    if (!result && !(c->pool = pool_open(c->count))) result = -1;
    if (result) copies_close(c);
    else *out = c;
    if (result > 0) note("copies     none: the GPUs cannot address one another's memory, so one of them trains the run");
    return result < 0 ? -1 : 0;
}

void copies_close(struct copies *c) {
    if (!c) return;
    for (int side = 0; side < 2; side++) c->ops->copies_close(c->merged[side]);
    for (unsigned i = 1; i < c->count; i++) {
        for (int side = 0; side < 2; side++)
            if (c->tables[side][i]) c->ops->table_close(c->backends[i], c->tables[side][i]);
        if (c->backends[i]) c->ops->close(c->backends[i]);
    }
    pool_close(c->pool);
    free(c);
}

uint64_t copies_round(const struct copies *c) {
    return c->round * c->count;
}

/* ---- training ---- */

static int train_share(void *context, unsigned worker) {
    struct copies *c = context;
    struct hogwild_request own = *c->request;
    double slope = (own.lr_last - own.lr_first) / (double)own.count;
    uint64_t first, end;
    pool_share(own.count, worker, c->count, &first, &end);
    own.target = c->tables[TABLE_TARGET][worker];
    own.context = c->tables[TABLE_CONTEXT][worker];
    own.first += first;
    own.global_step += first;
    own.count = end - first;
    own.lr_first = c->faster * (c->request->lr_first + slope * (double)first);
    own.lr_last = c->faster * (c->request->lr_first + slope * (double)end);
    return c->ops->hogwild(c->backends[worker], &own, &c->results[worker]);
}

int copies_train(struct copies *c, const struct hogwild_request *request, struct hogwild_result *result) {
    c->request = request;
    *result = (struct hogwild_result){.done = 0};
    if (pool_run(c->pool, train_share, c)) return -1;
    for (unsigned i = 0; i < c->count; i++) {
        hogwild_add(result, &c->results[i]);
        result->done += c->results[i].done;
    }
    return c->ops->copies_merge(c->merged[TABLE_TARGET]) || c->ops->copies_merge(c->merged[TABLE_CONTEXT]) ? -1 : 0;
}

/* ---- runs that one process trains ---- */

/* How many times as fast one H100 trained lock-free as it, or 2 or 4, trained in exact steps, for texts and graphs (scripts/results/gpus.md). */
static const double GAIN_OF_WALKS = 4.1, GAIN_OF_TWO = 5.5, GAIN_OF_FOUR = 9.2;

/* Returns 1, and writes the reason, if only one process can train this kind of run, or if one GPU is expected to train it faster than several. */
static int needs_one_process(const struct config *c, char why[GPUS_WHY]) {
    uint64_t gpus = c->device_gpus;
    if (c->train_update == UPDATE_HOGWILD)
        snprintf(why, GPUS_WHY, "trained lock-free, which is about %.1f times as fast on one GPU as exact steps on %" PRIu64,
                 c->examples_mode == MODE_WALK ? GAIN_OF_WALKS : gpus < 4 ? GAIN_OF_TWO : GAIN_OF_FOUR, gpus);
    else if (c->negatives_per == PER_BATCH)
        snprintf(why, GPUS_WHY,
                 "batches share their negatives (negatives.per = batch), and several GPUs would send each other all scores of a batch");
    else if (RULE_BY_ROW(c->optimizer_rule))
        snprintf(why, GPUS_WHY, "optimizer.rule = %s needs all columns of a row on one GPU",
                 config_choice_name("optimizer", "rule", c->optimizer_rule));
    else if (!strcmp(c->corpus_path, CORPUS_INPUT))
        snprintf(why, GPUS_WHY, "standard input is read by one process");
    else
        return 0;
    return 1;
}

/* ---- exact steps ---- */

/* Fitted to `bench ranks` of 14 configs on one, two and four H100 of one machine (scripts/results/gpus.md). A step takes OF_WINDOWS (words and
 * walks) or OF_ROWS (all else) times as long as plain copies of its rows; with G GPUs it also waits G x WAIT seconds for the others. */
static const double OF_WINDOWS = 3.5, OF_ROWS = 1.6, WAIT = 80e-6;

int gpus_seconds(const struct plan *plan, int windows, uint64_t gpus, double *seconds) {
    if (!(plan->floor_pairs > 0)) return -1;
    double one = (windows ? OF_WINDOWS : OF_ROWS) * plan->batch_pairs / plan->floor_pairs;
    *seconds = one / (double)gpus + (gpus > 1 ? (double)gpus * WAIT : 0);
    return 0;
}

/* Returns the number of GPUs, from 1 to `most`, on which the plan's steps are expected to be fastest. */
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
    INVARIANT(chosen >= 1 && chosen <= most);
    snprintf(why, GPUS_WHY, "expected are %s pairs/s on one, %s on %" PRIu64, text_of_rate(a, plan->batch_pairs / one),
             text_of_rate(b, plan->batch_pairs / (chosen > 1 ? best : all)), chosen > 1 ? chosen : most);
    return chosen;
}

/* ---- copies ---- */

/* Returns how many GPUs should train copies of the tables lock-free; 0, and the reason, if copies are impossible or the run is too short. */
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
