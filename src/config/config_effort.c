/* config_effort: train.effort, the time that a run of lists may take where no key says how it is trained. */
#include "config_keys.h"

#include "base/report.h"
#include "kernels/backend.h"

#include <string.h>

/* Experiments chose these values: configs/README.md, "How far gowalla goes". */
static const struct effort efforts[] = {
    [EFFORT_QUICK] = {.dim = 128, .epochs = 20, .negatives = 1000, .lr = 0.002, .temperature = 0.1, .shared = 0},
    [EFFORT_THOROUGH] = {.dim = 256, .epochs = 60, .negatives = 4000, .lr = 0.001, .temperature = 0.09, .shared = 1},
};

const struct effort *config_effort(const struct config *config) {
    return &efforts[config->train_effort];
}

/* A GPU does in a minute what takes a processor hours. */
static int effort_of_machine(const struct config *c) {
    const struct backend_ops *named = config_named_backend(c), *ops = named ? named : backend_best();
    return ops->has_gpu ? EFFORT_THOROUGH : EFFORT_QUICK;
}

int config_resolve_effort(struct config *c) {
    int user = c->examples_mode == MODE_USER;
    if (c->train_effort == EFFORT_THOROUGH && !user)
        return fail("train.effort = thorough is for examples.mode = user, whose defaults it changes, and the mode is %s; leave it "
                    "out",
                    config_choice_name("examples", "mode", c->examples_mode));
    if (c->train_effort == EFFORT_AUTO) c->train_effort = user ? effort_of_machine(c) : EFFORT_QUICK;
    return 0;
}

void config_keep_effort(struct config *config, const struct config *before) {
    static const char *const keys[][2] = {
        {"model", "dim"},    {"examples", "targets"},   {"examples", "positives"}, {"negatives", "per"}, {"negatives", "count"},
        {"train", "epochs"}, {"train", "temperature"}, {"optimizer", "lr"}, {"train", "effort"},
    };
    if (config_is_given(config, "train", "effort") || config->train_effort == before->train_effort) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!config_is_given(config, keys[i][0], keys[i][1]))
            config_copy_number(config, before, config_find_key(keys[i][0], keys[i][1]));
}
