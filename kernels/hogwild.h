/* hogwild: defines lock-free training. Both backends compile this and give every key the same meaning.
 *
 * Workers (a thread; on a GPU a warp) take examples in their order and train the blocks of each, one block after the other, on
 * rows that other workers change meanwhile. Training a block of T targets and C contexts:
 *
 *   coefficient(t, c)   sigmoid(dot(row of t, row of c)) - y                        (losses.h)
 *   gradient of t       sum over c of coefficient(t, c) x row of c
 *   gradient of c       sum over t of coefficient(t, c) x row of t
 *   updates             each place of the block is one update by the rule (optimizers.h): its own gradient, applied to the row
 *                       and the state as they are at that moment; contexts first, then targets
 *
 * LOSS_GLOVE (losses.h) has one target a block, and coefficients of its own. The block's contexts are trained one after the other, and
 * the target moves with each of them: a backend may do so only where both tables are float32, and the sums are far from 0; otherwise the
 * lines above hold.
 *
 * Pooled targets (example_pool) are one vector, the weighted sum of the target rows as read. Each of these rows then moves by its
 * factor (example_pool_share) of that vector's gradient.
 *
 * A row that occurs twice in a block (a negative drawn twice, a word twice in a window) is updated twice, as in word2vec.c; only
 * another worker's race can lose an update. Gradients are those of the rows as the worker read them, at the block's beginning or
 * later. A backend may choose when: so sgd may add a row's gradient in several parts, and a GPU reads a few pairs of a window,
 * or two windows at once, before it moves any of their rows.
 *
 *   learning rate       example i of the request has a rate on the straight line from lr_first to lr_last
 *   weight_decay        in every update, of the row as it is then
 *   lr_decay            adagrad: the rate is divided by 1 + n x lr_decay. n is the number of earlier updates of the row
 *                       (places, not blocks), or with bias_correction = global that of earlier examples of the run
 *   loss                of one example in HOGWILD_LOSS_EVERY
 *   bfloat16 rows       receive a whole gradient at once: it is added to the current row, and the sum is rounded at random
 *
 * Paths in a tree (example_paths): the root is a context in every window, and each of the two nodes below it in about half of the
 * windows. On a GPU all workers would move such a row at once, each by a gradient of the same old row, and together overshoot.
 * There sgd moves it by a share of its gradient (hogwild_node_share), as if at most HOGWILD_NODE_AT_ONCE workers moved it. With a
 * word2vec.c in which every change arrives D windows late (2 M words): training diverges at D = 128 without shares, and at 256 with
 * 16 at once; 4 at once reach a loss of 8.57 a pair, D = 1 reaches 8.45.
 *
 * A key that has no meaning in lock-free training is refused, never ignored: hogwild_refuses() lists all of them.
 */
#ifndef SPTX_HOGWILD_H
#define SPTX_HOGWILD_H

#include "backend.h"
#include "portable.h"

enum {
    HOGWILD_LOSS_EVERY = 64,     /* one example in this many is chosen to compute its loss; a power of two */
    HOGWILD_LOSS_OF_ALL = 16384, /* requests of fewer examples compute every example's loss */
    HOGWILD_NODE_AT_ONCE = 4,    /* how many of a GPU's workers may change a tree's node at the same time by its whole gradient */
};

/* Returns by how much the learning rate changes from one example to the next. */
FN float hogwild_slope(const struct hogwild_request *r) {
    return r->count ? (float)((r->lr_last - r->lr_first) / (double)r->count) : 0.0f;
}

/* Returns the learning rate of example `i` of a request. */
FN float hogwild_rate(float lr_first, float slope, uint64_t i) {
    return fmaf(slope, (float)i, lr_first);
}

/* Returns a bit mask: the loss of an example is computed if its number in the request has none of these bits set. */
FN uint32_t hogwild_loss_mask(uint64_t count) {
    return count < HOGWILD_LOSS_OF_ALL ? 0 : HOGWILD_LOSS_EVERY - 1;
}

/* Returns 1 if every update only adds coefficient x the other row of a pair, so that a row's updates may be added in any order. */
FN int hogwild_is_linear(const struct rule_options *rule) {
    return rule->rule == RULE_SGD && rule->weight_decay == 0;
}

/* Returns the share of its gradient by which a tree's node changes. Frequent nodes have low ids: about one window in id + 1 contains the node.
 * limit: HOGWILD_NODE_AT_ONCE / number of workers. */
FN float hogwild_node_share(float limit, uint32_t node) {
    return fminf(1.0f, limit * ((float)node + 1.0f));
}

/* Adds one worker's result to `sum`. */
void hogwild_add(struct hogwild_result *sum, const struct hogwild_result *one);

/* ---- what it refuses ---- */

/* Parts of the two tables; for each a key of [memory] says where it is stored. */
enum hogwild_part { HOGWILD_TARGET, HOGWILD_TARGET_STATE, HOGWILD_CONTEXT, HOGWILD_CONTEXT_STATE, HOGWILD_PARTS };

/* Options that a caller asks of lock-free training; hogwild_refuses() reads them. A field that is 0 is never a reason to refuse. */
struct hogwild_asked {
    struct rule_options rule; /* only the rule, momentum, clip, weight_decay and lr_decay are read */
    const char *rule_name;    /* value of optimizer.rule, for the message; NULL: unknown */
    struct loss_options loss;
    const char *loss_name, *score_name; /* the values of train.loss and train.score */
    uint32_t columns;   /* columns of both tables' rows; for LOSS_GLOVE including the two of the biases */
    int halves;         /* 1: weights or state are bfloat16 */
    int mean;           /* 1: gradients shall be averaged over a batch */
    unsigned ranks;     /* number of ranks; 0 or 1: only this process */
    int gpu;            /* 1: on a GPU */
    int frozen;         /* 1: a table has frozen rows */
    unsigned in_file;   /* bit p is 1 if part p (enum hogwild_part) has rows in a file */
};

enum { HOGWILD_FIT_COLUMNS = 512 }; /* most columns for LOSS_GLOVE lock-free on a GPU, since a warp holds the target's row in registers */

enum { HOGWILD_WHY = 512 }; /* bytes of the longest message */

/* Returns 1 if lock-free training does not support the request, and writes a sentence with the reason, and what to set instead, to `why`; otherwise
 * 0. All limits of lock-free training are here. */
int hogwild_refuses(const struct hogwild_asked *asked, char why[HOGWILD_WHY]);

/* ==== copies ====
 *
 * How several GPUs of one process train a model lock-free. Each has a copy of both tables, on which it trains its own examples. From time to time the
 * copies are merged, so that all have the same rows again.
 *
 *   base        a row as it was after the last merge
 *   change      row of a copy - base
 *   merged row  base + (sum of the changes, copy after copy) / (number of copies that changed it)
 *
 * Each group of four columns is merged on its own. Averaging divides the progress by the number of copies, so each copy trains with that many times
 * the learning rate. The tables have no optimizer state (sgd), and all rows are on the GPUs.
 */

enum { COPIES_MOST = 16, COPIES_GROUP = 4 };

/* Merges a group of columns. rows: [count x COPIES_GROUP] its values in each copy. base: its values after the last merge, replaced by the merged
 * ones. */
FN void copies_merge_group(float base[COPIES_GROUP], const float *rows, unsigned count) {
    float sum[COPIES_GROUP] = {0};
    unsigned changed = 0;
    for (unsigned r = 0; r < count; r++) {
        const float *row = rows + r * COPIES_GROUP;
        int differs = 0;
        for (int j = 0; j < COPIES_GROUP; j++) differs |= row[j] != base[j];
        if (!differs) continue;
        changed++;
        for (int j = 0; j < COPIES_GROUP; j++) sum[j] += row[j] - base[j];
    }
    for (int j = 0; changed && j < COPIES_GROUP; j++) base[j] += sum[j] / (float)changed;
}

#endif
