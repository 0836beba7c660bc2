#include "hogwild.h"

#include "base/text.h"

void hogwild_add(struct hogwild_result *sum, const struct hogwild_result *one) {
    sum->words += one->words;
    sum->examples += one->examples;
    sum->pairs += one->pairs;
    sum->loss += one->loss;
    sum->sampled_examples += one->sampled_examples;
    sum->sampled_pairs += one->sampled_pairs;
    sum->sampled_terms += one->sampled_terms;
    sum->link_bytes += one->link_bytes;
}

/* ---- what it refuses ---- */

#define REFUSE(...) return text_add(why, HOGWILD_WHY, 0, __VA_ARGS__) > 0

/* Each rank has some columns of all rows, so a dot product needs all ranks at once: only exact steps do that. */
static int refuses_ranks(const struct hogwild_asked *a, char *why) {
    if (a->ranks < 2) return 0;
    REFUSE("train.update = hogwild trains in one process, and this run has %u ranks, which train exact steps together; set "
           "train.update = batch, or begin it without them",
           a->ranks);
}

/* Only sgd and adagrad may train lock-free: a race would tear the state of other rules. Momentum is refused, since it moves a
 * row in every step, and lock-free training has no steps. */
static int refuses_rule(const struct hogwild_asked *a, char *why) {
    if (a->rule.rule != RULE_SGD && a->rule.rule != RULE_ADAGRAD)
        REFUSE("train.update = hogwild works with optimizer.rule = sgd or adagrad, and it is %s; set train.update = batch",
               a->rule_name ? a->rule_name : "another");
    if (a->rule.rule == RULE_SGD && a->rule.momentum != 0)
        REFUSE("train.update = hogwild works without momentum, and optimizer.momentum is %g; set train.update = batch",
               a->rule.momentum);
    return 0;
}

/* Refuses keys that belong to a batch. */
static int refuses_batch(const struct hogwild_asked *a, char *why) {
    if (a->rule.clip != 0)
        REFUSE("optimizer.clip = %g bounds what a row's places in a batch sum up to, and train.update = hogwild has no "
               "batch; set it to 0, or train.update = batch",
               a->rule.clip);
    if (a->mean)
        REFUSE("train.update = hogwild has no batch to average over; set train.reduction = sum, or train.update = batch");
    return 0;
}

static int refuses_loss(const struct hogwild_asked *a, char *why) {
    if (a->loss.weighted)
        REFUSE("train.update = hogwild trains all pairs alike, and corpus.weights weighs them; set train.update = batch, or "
               "corpus.weights = none");
    if (loss_is_plain(&a->loss)) return 0;
    REFUSE("train.update = hogwild has the logistic loss of dot products alone, and train.loss is %s of %s at temperature "
           "%g; set train.update = batch",
           a->loss_name ? a->loss_name : "another", a->score_name ? a->score_name : "other scores",
           1 / loss_inverse_temperature(&a->loss));
}

/* Writes to `keys` the settings that move these parts from their files to pinned memory. */
static void add_places(unsigned in_file, char keys[128]) {
    static const char *const names[HOGWILD_PARTS] = {"target", "target_state", "context", "context_state"};
    size_t used = 0;
    for (int part = 0; part < HOGWILD_PARTS; part++)
        if (in_file >> part & 1) used = text_add(keys, 128, used, "%smemory.%s = pinned", used ? ", " : "", names[part]);
}

/* The GPU's kernels must be able to read and write every row at any time, in whichever memory it is. */
static int refuses_gpu(const struct hogwild_asked *a, char *why) {
    char keys[128];
    if (!a->gpu) return 0;
    if (a->frozen)
        REFUSE("train.update = hogwild on a GPU moves every row, and some are frozen (train.freeze); set train.update = batch, "
               "or device.backend = cpu");
    if (!a->in_file) return 0;
    add_places(a->in_file, keys);
    REFUSE("train.update = hogwild on a GPU reaches every row at any time, so none can stay in a file; set %s, or "
           "train.update = batch",
           keys);
}

int hogwild_refuses(const struct hogwild_asked *a, char why[HOGWILD_WHY]) {
    *why = 0;
    return refuses_ranks(a, why) || refuses_rule(a, why) || refuses_batch(a, why) || refuses_loss(a, why) || refuses_gpu(a, why);
}
