/* hogwild: defines lock-free training. Both backends compile this and give every key the same meaning.
 *
 * Workers (a thread; on a GPU a warp) take examples in their order and train the blocks of each, one block after the other, on
 * rows that other workers change meanwhile. Training a block of T targets and C contexts:
 *
 *   coefficient(t, c)   sigmoid(dot(row of t, row of c)) - y                        (sgns.h)
 *   gradient of t       sum over c of coefficient(t, c) x row of c
 *   gradient of c       sum over t of coefficient(t, c) x row of t
 *   updates             each place of the block is one update by the rule (optimizers.h): its own gradient, applied to the row
 *                       and the state as they are by then; contexts first, then targets
 *
 * Pooled targets (example_pool) are one vector, the weighted sum of their rows as they were read; each row then moves by its
 * weight's part of that vector's gradient, or by all of it.
 *
 * A row that comes twice in a block (a negative drawn twice, a word twice in a window) is updated twice, as in word2vec.c; only
 * another worker's race can lose an update. Gradients are those of the rows as the worker read them, at the block's beginning or
 * later. A backend may choose when: sgd may therefore add up what a row gains in parts, and a GPU reads a few pairs of a window,
 * or two windows at once, before it moves any of their rows.
 *
 *   learning rate       example i of the request has a rate on the straight line from lr_first to lr_last
 *   weight_decay        in every update, of the row as it is then
 *   lr_decay            adagrad: the rate is divided by 1 + n x lr_decay. n counts the updates before: the row's own
 *                       (places, not blocks), or where rows do not count (bias_correction = global) the run's examples
 *   loss                of one example in HOGWILD_LOSS_EVERY
 *
 * Keys that have no meaning here are refused, never ignored: momentum, optimizer.clip and train.reduction = mean belong to a
 * batch or to a row's every step; rules other than sgd and adagrad have state that a race would tear.
 */
#ifndef SPTX_HOGWILD_H
#define SPTX_HOGWILD_H

#include "backend.h"

enum {
    HOGWILD_LOSS_EVERY = 64,     /* one example in so many has its loss taken; a power of two */
    HOGWILD_LOSS_OF_ALL = 16384, /* in a request of fewer examples, all have their loss taken */
};

/* Returns how much the learning rate rises from an example to the next. */
FN float hogwild_slope(const struct hogwild_request *r) {
    return r->count ? (float)((r->lr_last - r->lr_first) / (double)r->count) : 0.0f;
}

/* Returns the learning rate of example `i` of a request. */
FN float hogwild_rate(float lr_first, float slope, uint64_t i) {
    return fmaf(slope, (float)i, lr_first);
}

/* Returns a mask: the loss is taken of examples whose number in the request has none of these bits. */
FN uint32_t hogwild_loss_mask(uint64_t count) {
    return count < HOGWILD_LOSS_OF_ALL ? 0 : HOGWILD_LOSS_EVERY - 1;
}

/* Returns 1 where rows are moved by coefficient x row alone, so that a row's updates add up in any order. */
FN int hogwild_is_linear(const struct rule_options *rule) {
    return rule->rule == RULE_SGD && rule->weight_decay == 0;
}

/* Adds the result of one share of a request to that of others. */
void hogwild_add(struct hogwild_result *sum, const struct hogwild_result *one);

/* Returns 0 where both backends can do what is asked; -1 after fail(). */
int hogwild_check(const struct hogwild_request *request);

#endif
