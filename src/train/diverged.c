#include "diverged.h"

#include "base/report.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns advice for keys other than the learning rate: those against divergence that this run has not set. */
static const char *other_ways(const struct config *c) {
    int summed = c->train_update == UPDATE_BATCH && c->train_reduction == REDUCTION_SUM;
    char why[HOGWILD_WHY];
    struct hogwild_asked asked = config_hogwild(c);
    if (!summed) return "";
    if (c->optimizer_clip > 0) return " or train.batch, whose gradients are summed, or optimizer.clip";
    return hogwild_refuses(&asked, why)
               ? " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try)"
               : " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try), or "
                 "train.update = hogwild, which adds them one by one";
}

/* The arguments of diverged_say(). */
struct diverging {
    const struct config *config;
    const char *run;
    uint64_t step;
    const char *what;
};

static int say(void *user) {
    const struct diverging *d = user;
    char seen[256];
    snprintf(seen, sizeof seen, "%s", d->what);
    report_clear();
    char *kept = checkpoint_newest(d->run, NULL, &(int){0});
    report_clear();
    fail("%s at step %" PRIu64 ": the weights have diverged; lower optimizer.lr (now %g)%s; %s%s%s", seen, d->step,
         d->config->optimizer_lr, other_ways(d->config),
         kept ? "the last good checkpoint is '" : "no checkpoint had been written", kept ? kept : "", kept ? "'" : "");
    free(kept);
    return -1;
}

int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what) {
    struct diverging diverging = {config, run, step, what};
    return ranks_do(ranks, ranks_first(ranks) ? say : NULL, &diverging);
}
