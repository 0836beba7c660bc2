#include "schedule.h"

#include "base/report.h"

#include <inttypes.h>
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

int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total) {
    uint64_t steps_per_epoch = (per_epoch + batch - 1) / batch, by_epochs = UINT64_MAX, by_steps = UINT64_MAX;
    if (config->train_epochs && __builtin_mul_overflow(config->train_epochs, per_epoch, &by_epochs))
        return fail("train.epochs = %" PRIu64 " makes more examples than 2^64", config->train_epochs);
    if (config->train_steps) {
        uint64_t epochs = config->train_steps / steps_per_epoch, left = config->train_steps % steps_per_epoch;
        if (__builtin_mul_overflow(epochs, per_epoch, &by_steps)) by_steps = UINT64_MAX;
        else by_steps += left * batch;
    }
    *total = by_epochs < by_steps ? by_epochs : by_steps;
    return 0;
}
