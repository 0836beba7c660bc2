#include "schedule.h"

#include "base/report.h"

#include <inttypes.h>
#include <math.h>

/* Returns how far the learning rate has fallen from lr to lr x min_lr_ratio: 0: not yet; 1: completely. */
static double fallen(int schedule, double done) {
    if (schedule == SCHEDULE_LINEAR) return done;
    if (schedule == SCHEDULE_COSINE) return 0.5 * (1 - cos(acos(-1.0) * done));
    return 0;
}

double schedule_rate(const struct config *config, double done) {
    double lr = config->optimizer_lr, warmup = config->optimizer_warmup;
    done = fmin(fmax(done, 0), 1);
    if (done < warmup) return lr * done / warmup;
    double after = warmup < 1 ? (done - warmup) / (1 - warmup) : 0;
    return lr - lr * (1 - config->optimizer_min_lr_ratio) * fallen(config->optimizer_schedule, after);
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
