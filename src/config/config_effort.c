/* config_effort: train.effort, which changes the defaults of other keys so that a run on lists, a graph or triples is quick or thorough.
 * The defaults for lists are set here; defaults_by_size.def has the defaults for graphs and triples. */
#include "config_keys.h"

#include "base/report.h"
#include "kernels/backend.h"

/* These values were found by experiment: configs/notes/gowalla.md. */
static const struct effort efforts[] = {
    [EFFORT_QUICK] = {.dim = 128, .epochs = 20, .negatives = 1000, .lr = 0.002, .temperature = 0.1, .shared = 0},
    [EFFORT_THOROUGH] = {.dim = 256, .epochs = 60, .negatives = 4000, .lr = 0.001, .temperature = 0.09, .shared = 1},
};

const struct effort *config_effort(const struct config *config) {
    return &efforts[config->train_effort];
}

/* Returns the effort for this machine: a GPU does in a minute what takes a CPU hours. */
static int effort_of_machine(const struct config *c) {
    const struct backend_ops *named = config_named_backend(c), *ops = named ? named : backend_best();
    return ops->has_gpu ? EFFORT_THOROUGH : EFFORT_QUICK;
}

int config_resolve_effort(struct config *c) {
    int has_effort = config_has_lists(c) || c->examples_mode == MODE_WALK || c->examples_mode == MODE_TRIPLE;
    if (c->train_effort == EFFORT_THOROUGH && !has_effort)
        return fail(
            "train.effort = thorough is for examples.mode = user, walk and triple, whose defaults it changes, and the mode is %s; leave "
            "it out",
            config_choice_name("examples", "mode", c->examples_mode));
    if (c->train_effort == EFFORT_AUTO) c->train_effort = has_effort ? effort_of_machine(c) : EFFORT_QUICK;
    return 0;
}

/* Copies from `before` the listed keys that the user has not set. */
static void keep_value(struct config *config, const struct config *before, const char *const (*keys)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!config_is_given(config, keys[i][0], keys[i][1]))
            config_copy_number(config, before, config_find_key(keys[i][0], keys[i][1]));
}

/* Returns 1 if `before` is the config of a version that had no train.effort. Later versions write this key into every
 * config.ini. */
static int is_older(const struct config *before) {
    return !config_is_given(before, "train", "effort");
}

void config_fill_older(struct config *before) {
    if (!is_older(before)) return;
    before->train_effort = EFFORT_QUICK;
    if (!config_is_given(before, "train", "negative_power")) before->train_negative_power = 0;
}

void config_keep_effort(struct config *config, const struct config *before) {
    static const char *const of_effort[][2] = {
        {"model", "dim"}, {"train", "epochs"}, {"train", "temperature"}, {"train", "effort"}};
    static const char *const of_sharing[][2] = {
        {"examples", "targets"}, {"examples", "positives"}, {"negatives", "per"}, {"negatives", "count"}, {"optimizer", "lr"}};
    static const char *const of_version[][2] = {{"train", "negative_power"}};
    int user = config->examples_mode == MODE_USER && before->examples_mode == MODE_USER;
    int other_effort = config->train_effort != before->train_effort;
    int other_sharing = user && config->per_auto && config->negatives_per != before->negatives_per; /* by other ranks, too */
    if (user && is_older(before)) keep_value(config, before, of_version, 1);
    if (other_effort && config_is_given(config, "train", "effort")) return;
    if (other_effort) keep_value(config, before, of_effort, sizeof of_effort / sizeof *of_effort);
    if (other_effort || other_sharing) keep_value(config, before, of_sharing, sizeof of_sharing / sizeof *of_sharing);
}
