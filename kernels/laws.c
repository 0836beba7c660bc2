/* laws: functions of this folder's headers that only the host calls: is an example's size allowed (examples.h), thresholds of biased walks
 * (walks.h), coefficients of the filter (finished.h), what lock-free training refuses (hogwild.h). They neither read nor change rows. */
#include "backend.h"
#include "examples.h"
#include "finished.h"
#include "hogwild.h"
#include "triples.h"
#include "walks.h"

#include "base/report.h"
#include "base/text.h"

int example_check_row(const struct example_row *row) {
    if (example_row_fits(row)) return 0;
    if (row->wanted > EXAMPLE_MOST_POSITIVES || row->pooled > EXAMPLE_MOST_POSITIVES)
        return fail("a list of %llu items is too long for one example; set examples.positives", (unsigned long long)row->count);
    return fail("an example with %llu positives would draw %llu negatives, more than 2,097,152; set examples.positives or negatives.per = example",
                (unsigned long long)row->wanted, (unsigned long long)row->negatives);
}

static int has_form(const struct batch_view *v) {
    uint64_t targets = example_shared_targets(&v->pool), contexts = example_shared_contexts(&v->pool);
    if (v->pool.on != (v->pool.product != PRODUCT_NONE) || v->blocks < 2) return 0;
    uint64_t first = v->shared.relations;
    if (v->target_starts[1] != first || v->context_starts[1] != v->shared.count || v->positives[0] || (first && !v->pool.product)) return 0;
    for (uint64_t i = 1; i < first; i++)
        if (v->target_ids[i] != v->target_ids[0] + i) return 0;
    for (uint64_t i = 1; i < v->blocks; i++)
        if (v->target_starts[i + 1] != first + targets * i || v->context_starts[i + 1] != v->shared.count + contexts * i || v->positives[i] != 1)
            return 0;
    for (uint64_t i = 1; i < v->blocks && first; i++) /* a block's last target is its triple's relation: is that among the first block's targets? */
        if (v->target_ids[v->target_starts[i + 1] - 1] - v->target_ids[0] >= first) return 0;
    return 1;
}

int shared_negatives_check(const struct batch_view *view) {
    if (!view->shared.count && view->pool.product) return fail("a batch whose targets are multiplied must share its negatives");
    if (!view->shared.count || has_form(view)) return 0;
    return fail("a batch of shared negatives has one block of them (and of all relations, if these are predicted), then a block for each item or "
                "triple");
}

int shared_product_check(const struct example_pool *pool, const struct loss_options *loss, uint32_t dim, int parted) {
    if (loss->kind != LOSS_SOFTMAX && loss->kind != LOSS_LOGISTIC) return fail("shared negatives are trained by the softmax or the logistic loss");
    if (parted && loss->score == SCORE_COSINE) return fail("cosines with shared negatives need all columns of a row in one process");
    if (product_is_complex(pool->product) && dim % 2) return fail("complex numbers need an even number of columns, and the tables have %u", dim);
    if ((loss->score == SCORE_DISTANCE) != product_is_distance(pool->product))
        return fail("rotations and translations of triples are compared by distance, and all others are not");
    if (product_is_distance(pool->product) && loss->cubes > 0) return fail("the penalty of cubes is for products, not for rotations or translations");
    if (loss->relations > 0 && loss->score == SCORE_COSINE) return fail("relations are predicted by dot products or by distances, not by cosines");
    return 0;
}

/* Returns the threshold that a random 32-bit number does not exceed with probability `chance`. */
static uint32_t threshold(double chance) {
    double drawn = chance * 4294967296.0 - 1;
    return drawn >= 4294967295.0 ? UINT32_MAX : drawn <= 0 ? 0 : (uint32_t)drawn;
}

void walks_set_biases(struct walks *walks, double p, double q, int directed) {
    double back = 1 / p, away = 1 / q, others = away > 1 ? away : 1;
    int apart = !directed && !walks->alias && !walks->labels && back > others;
    double most = apart || back < others ? others : back;
    walks->steps = walks->labels ? walks->length / 2 : walks->length - 1;
    walks->biased = p != 1 || q != 1;
    walks->mutual = !directed;
    walks->aside = apart ? (float)((back - others) / others) : 0;
    walks->back = threshold(apart ? 1 : back / most);
    walks->near_ = threshold(1 / most);
    walks->away = threshold(away / most);
}

/* Returns the modified Bessel function of the first kind. */
static double bessel(int order, double x) {
    double term = 1, sum = 0;
    for (int i = 1; i <= order; i++) term *= x / 2 / i;
    for (int i = 1; i <= 30; i++) {
        sum += term;
        term *= x * x / 4 / i / (i + order);
    }
    return sum;
}

double filter_coefficient(int term) {
    static const double theta = 0.5;
    return (term % 2 ? -1 : 1) * (term ? 2 : 1) * bessel(term, theta);
}

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

/* Each rank has some columns of all rows, so a dot product needs all ranks at the same time, which only exact steps provide. */
static int refuses_ranks(const struct hogwild_asked *a, char *why) {
    if (a->ranks < 2) return 0;
    REFUSE("train.update = hogwild trains in one process, and this run has %u ranks, which train exact steps together; set "
           "train.update = batch, or begin it without them",
           a->ranks);
}

/* Only sgd and adagrad may train lock-free, since races would damage the state of other rules. Momentum is refused since it changes rows in every
 * step, and lock-free training has no steps. */
static int refuses_rule(const struct hogwild_asked *a, char *why) {
    if (a->rule.rule != RULE_SGD && a->rule.rule != RULE_ADAGRAD)
        REFUSE("train.update = hogwild works with optimizer.rule = sgd or adagrad, and it is %s; set train.update = batch",
               a->rule_name ? a->rule_name : "another");
    if (a->rule.rule == RULE_SGD && a->rule.momentum != 0)
        REFUSE("train.update = hogwild works without momentum, and optimizer.momentum is %g; set train.update = batch", a->rule.momentum);
    return 0;
}

/* Refuses keys that belong to a batch. */
static int refuses_batch(const struct hogwild_asked *a, char *why) {
    if (a->rule.clip != 0)
        REFUSE("optimizer.clip = %g bounds what a row's places in a batch sum up to, and train.update = hogwild has no "
               "batch; set it to 0, or train.update = batch",
               a->rule.clip);
    if (a->mean) REFUSE("train.update = hogwild has no batch to average over; set train.reduction = sum, or train.update = batch");
    return 0;
}

static int refuses_loss(const struct hogwild_asked *a, char *why) {
    if (a->loss.kind == LOSS_GLOVE) return 0;
    if (a->loss.weighted)
        REFUSE("train.update = hogwild trains all pairs alike, and corpus.weights weighs them; set train.update = batch, or corpus.weights = none");
    if (loss_is_plain(&a->loss)) return 0;
    REFUSE("train.update = hogwild has the logistic loss of dot products alone, and train.loss is %s of %s at temperature "
           "%g; set train.update = batch",
           a->loss_name ? a->loss_name : "another", a->score_name ? a->score_name : "other scores", 1 / loss_inverse_temperature(&a->loss));
}

/* Writes to `keys` the settings that store these parts in pinned memory instead of files. */
static void add_places(unsigned in_file, char keys[128]) {
    static const char *const names[HOGWILD_PARTS] = {"target", "target_state", "context", "context_state"};
    size_t used = 0;
    for (int part = 0; part < HOGWILD_PARTS; part++)
        if (in_file >> part & 1) used = text_add(keys, 128, used, "%smemory.%s = pinned", used ? ", " : "", names[part]);
}

/* The GPU's kernels must be able to read and write every row at any time. */
static int refuses_gpu(const struct hogwild_asked *a, char *why) {
    char keys[128];
    if (!a->gpu) return 0;
    if (a->frozen)
        REFUSE("train.update = hogwild on a GPU moves every row, and some are frozen (train.freeze); set train.update = batch, "
               "or device.backend = cpu");
    if (a->loss.kind == LOSS_GLOVE &&
        (a->rule.rule != RULE_ADAGRAD || a->columns > HOGWILD_FIT_COLUMNS || a->halves || a->rule.weight_decay != 0 || a->rule.lr_decay != 0))
        REFUSE("train.update = hogwild with train.loss = glove on a GPU is for adagrad without decay, float32, and at most %d dimensions; "
               "set train.update = batch, or device.backend = cpu",
               HOGWILD_FIT_COLUMNS - LOSS_GLOVE_BIASES);
    if (!a->in_file) return 0;
    add_places(a->in_file, keys);
    REFUSE("train.update = hogwild on a GPU reaches every row at any time, so none can stay in a file; set %s, or train.update = batch",
           keys);
}

int hogwild_refuses(const struct hogwild_asked *a, char why[HOGWILD_WHY]) {
    *why = 0;
    return refuses_ranks(a, why) || refuses_rule(a, why) || refuses_batch(a, why) || refuses_loss(a, why) || refuses_gpu(a, why);
}
