/* fold_in: gives a list that was never trained a row, by the loss of its run, while the rows of items stay as they are.
 *
 *   positives   the items of the list, each as often as the list names it
 *   negatives   FOLD_NEGATIVES items for all lists, spread over the items by negatives.law; where the run excludes a list's own items
 *               from its negatives, they are left out here, too
 *   start       the mean of the items' rows (of unit length where scores are cosines)
 *   a step      direction <- unit(direction - 2 gradient / (sum of |coefficients| x length of items' rows)), FOLD_STEPS times or twice that
 *   length      1 where scores are cosines; otherwise that of the run's own lists (root mean square)
 *
 * Readers that training never saw reach what trained readers reach; configs/README.md, "Lists that were never trained", has the
 * figures. The sum of coefficients makes the step independent of the loss, its temperature and the list's length.
 *
 * A row is the same to the bit whatever lists are solved beside it, and by however many threads: each sum of a list has one order.
 */
#ifndef SPTX_FOLD_IN_H
#define SPTX_FOLD_IN_H

#include "model.h"
#include "base/pool.h"

enum {
    FOLD_NEGATIVES = 8192, /* gowalla, NDCG@20 of trained lists 0.1596: 1,024 give 0.149, 4,096 0.154, 8,192 0.156, all 40,980 0.159 */
    FOLD_NEGATIVES_BPR = 1024, /* bpr sets each positive against each negative: that many times the work */
    FOLD_STEPS = 4 /* by all items: 3 steps give 0.1573, 4 0.1589, 6 0.1590, 10 0.1593; twice as many for half of the negatives or
                      fewer (100 items, NDCG@5 of trained lists 0.442: 4 steps give 0.384, 8 0.446) */
};

struct fold_in {
    const struct model *model;
    struct pool *pool;
    struct loss_options loss;
    float *negatives;    /* [padded x dim] rows of the negatives, of unit length where scores are cosines; zeros behind `count` */
    uint32_t *ids;       /* [count] their items, rising */
    uint32_t count, padded, steps;
    float per_negative;  /* logistic: negatives of training that one of these stands for; 1 for other losses, which take means */
    float length;        /* of a list's row */
    float item_length;   /* root mean square of the negatives' lengths */
};

/* Returns 1 for a run whose lists have rows of their own (examples.mode = user with examples.own above 0) and whose loss is known. */
int fold_in_is_for(const struct model *model);

/* threads: 0 means one a core. Returns -1 after fail(). */
int fold_in_open(struct fold_in *fold, const struct model *model, unsigned threads);
void fold_in_close(struct fold_in *fold); /* harmless on a zeroed one */

/* A list to be solved. */
struct fold_list {
    const uint64_t *codes; /* [count] its items; numbers from the model's item count on are passed over */
    uint64_t count;
    float *row; /* [dim] the answer; zeros for a list without a known item, or whose items' rows are all zeros */
};
/* Returns 0, or -1 after fail(). */
int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count);

#endif
