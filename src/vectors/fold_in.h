/* fold_in: computes a row for a list that was never trained, by the run's loss (kernels/fold_in.h).
 *
 *   negatives   the same FOLD_NEGATIVES items for all lists, chosen by the weights of negatives.law; if negatives.exclude is set, a
 *               list's own items are left out
 *   steps       FOLD_STEPS, or twice as many for few negatives
 *   length      1 if scores are cosines; otherwise the root mean square length of the run's trained lists
 *
 * Lists that were not in training score as well as trained lists; configs/notes/items.md has the
 * figures. A list's row has the same bits whatever other lists are solved in the same call, and for any number of threads.
 */
#ifndef SPTX_FOLD_IN_H
#define SPTX_FOLD_IN_H

#include "model.h"
#include "base/pool.h"
#include "kernels/backend.h"

enum {
    FOLD_NEGATIVES = 8192, /* gowalla, NDCG@20 of new lists: 1,024 give 0.149, 4,096 0.154, 8,192 0.156, all 40,980 0.159; trained
                              lists have 0.1596 */
    FOLD_NEGATIVES_BPR = 1024, /* fewer than FOLD_NEGATIVES, since bpr compares each positive with each negative */
    FOLD_STEPS = 4 /* gowalla with all items as negatives: 3 steps give 0.1573, 4 0.1589, 6 0.1590, 10 0.1593. Twice as many steps
                      for FOLD_NEGATIVES / 2 or fewer (100 items, NDCG@5 of trained lists 0.442: 4 steps give 0.384, 8 0.446) */
};

struct fold_in {
    const struct model *model;
    const struct backend_ops *ops;
    struct backend *own;         /* the CPU backend, opened if the caller's GPU lacks the memory; else NULL */
    struct backend_fold *solver; /* solver of `own`, or of the caller's backend */
    struct pool *pool;           /* threads that read the rows of items */
    struct fold_problem problem; /* its array of negatives' rows is freed after opening: the solver has a copy */
    uint32_t *ids;               /* [problem.count] item of each negative, rising */
    uint32_t *places;            /* [items] 1 + index of the item's row in the current call; 0: the item is not in the call */
};

/* Returns 1 if new lists can be folded in: the run's lists have rows (examples.mode = user, examples.own above 0), and it was
 * trained with negatives. */
int fold_in_is_for(const struct model *model);

/* Chooses the negatives and reads their rows. Uses the caller's backend until fold_in_close(). threads: 0: one a core. Returns
 * 0, or -1 after fail(). */
int fold_in_open(struct fold_in *fold, const struct model *model, const struct backend_ops *ops, struct backend *backend,
                 unsigned threads);
void fold_in_close(struct fold_in *fold); /* harmless on a zeroed one */

/* A list whose row is to be computed. */
struct fold_list {
    const uint64_t *codes; /* [count] rows of its items; numbers that are no item of the model are ignored */
    uint64_t count;
    float *row; /* [dim] the result; zeros if the list has no known item, or only items whose rows are zeros */
};
/* Computes the row of each list. Returns 0, or -1 after fail(). */
int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count);

#endif
