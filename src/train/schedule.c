#include "schedule.h"

#include <math.h>

/* 1 at the start, 0 at the end. */
static double falling(int schedule, double done) {
    if (schedule == SCHEDULE_LINEAR) return 1 - done;
    if (schedule == SCHEDULE_COSINE) return 0.5 * (1 + cos(acos(-1.0) * done));
    return 1;
}

double schedule_rate(const struct config *config, double done) {
    double at = done < 0   ? 0
                : done > 1 ? 1
                           : done,
           lr = config->optimizer_lr, least = lr * config->optimizer_min_lr_ratio;
    double rate = lr * falling(config->optimizer_schedule, at);
    if (config->optimizer_schedule == SCHEDULE_COSINE) rate = least + (lr - least) * falling(SCHEDULE_COSINE, at);
    if (rate < least) rate = least;
    return at < config->optimizer_warmup ? rate * at / config->optimizer_warmup : rate;
}
