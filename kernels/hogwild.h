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
 *   bfloat16 rows       move in whole steps: what a row gains is added to it as it is then, and the sum is rounded at random
 *
 * Paths in a tree (example_paths): every window names the root, and about half of them each of the two nodes below. On a GPU all
 * workers would move such a row at once, each by differences of the same old row, and overshoot. There sgd moves it by a share of what
 * it gains (hogwild_node_share), as if no more than HOGWILD_NODE_AT_ONCE workers had it. Where every change comes D windows late
 * (word2vec.c changed so, 2 M words), training diverges at D = 128 without shares, and at 256 with 16 at once; 4 at once reach a loss
 * of 8.57 a pair, D = 1 reaches 8.45.
 *
 * Keys that have no meaning here are refused, never ignored: hogwild_refuses() has all of them.
 */
#ifndef SPTX_HOGWILD_H
#define SPTX_HOGWILD_H

#include "backend.h"

enum {
    HOGWILD_LOSS_EVERY = 64,     /* the loss of one example in this number is computed; a power of two */
    HOGWILD_LOSS_OF_ALL = 16384, /* in a request of fewer examples, all have their loss taken */
    HOGWILD_NODE_AT_ONCE = 4,    /* workers of a GPU that may move a node of a tree at once by all that it gains */
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

/* Returns the share of its gain by which a node of a tree moves. Frequent nodes have low ids: about one window in id + 1 names
 * the node. `limit`: HOGWILD_NODE_AT_ONCE / workers. */
FN float hogwild_node_share(float limit, uint32_t node) {
    return fminf(1.0f, limit * ((float)node + 1.0f));
}

/* Adds the result of one share of a request to the results of other shares. */
void hogwild_add(struct hogwild_result *sum, const struct hogwild_result *one);

/* ---- what it refuses ---- */

/* Parts of the two tables, as the keys memory.* name them. */
enum hogwild_part { HOGWILD_TARGET, HOGWILD_TARGET_STATE, HOGWILD_CONTEXT, HOGWILD_CONTEXT_STATE, HOGWILD_PARTS };

/* A caller's demands on lock-free training, as far as it knows them. Zeros demand nothing that could be refused. */
struct hogwild_asked {
    struct rule_options rule; /* only the rule, its momentum and its clip count */
    const char *rule_name;    /* as optimizer.rule has it, for the sentence; NULL: not known */
    struct loss_options loss;
    const char *loss_name, *score_name; /* as train.loss and train.score have them */
    int mean;           /* 1: gradients are averaged over a batch */
    unsigned ranks;     /* ranks that train together; 0 or 1: only this process */
    int gpu;            /* 1: it is to run on a GPU */
    int frozen;         /* 1: the tables have frozen rows */
    unsigned in_file;   /* bit 1 << part: rows of that part are in a file */
};

enum { HOGWILD_WHY = 512 }; /* bytes of the longest sentence */

/* The one place that says what lock-free training does not do. Returns 1 with a sentence in `why`, which has the reason
 * and what to set instead; 0 where it does all that is asked. */
int hogwild_refuses(const struct hogwild_asked *asked, char why[HOGWILD_WHY]);

#endif
