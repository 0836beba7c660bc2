/* config_about: what a config comes to, for those who ask no key by its name. */
#include "config.h"

#include <stddef.h>

const char *config_lines(const struct config *c) {
    return corpus_formats[c->corpus_format].lines;
}

int config_is_window(const struct config *c) {
    return c->examples_mode == MODE_WINDOW || c->examples_mode == MODE_CBOW;
}

unsigned config_ranks(const struct config *c) {
    if (c->ranks) return c->ranks;
    return c->device_ranks ? (unsigned)c->device_ranks : c->device_gpus ? (unsigned)c->device_gpus : 1;
}

unsigned config_replicas(const struct config *c) {
    return c->train_update == UPDATE_HOGWILD ? config_ranks(c) : 1;
}

const char *config_cpu_alone(const struct config *c) {
    if (c->train_update == UPDATE_HOGWILD && c->train_freeze != FREEZE_NONE)
        return "frozen rows (train.freeze) with train.update = hogwild";
    return NULL;
}
