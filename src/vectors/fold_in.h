/* fold_in: computes a row for a list that was never trained, by the run's loss (kernels/finished.h).
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
    FOLD_NEGATIVES = 8192, /* number of negatives. NDCG@20 of new lists of gowalla: 0.149 with 1,024, 0.154 with 4,096, 0.156
                            * with 8,192, 0.159 with all 40,980; trained lists have 0.1596 */
    FOLD_NEGATIVES_BPR = 1024, /* number of negatives for bpr; fewer, since bpr compares each positive with each negative */
    FOLD_STEPS = 4 /* number of steps. Gowalla with all items as negatives: 3 steps give 0.1573, 4 give 0.1589, 6 give 0.1590, 10
                    * give 0.1593. With FOLD_NEGATIVES / 2 negatives or fewer, twice as many steps (100 items, NDCG@5 of trained
                    * lists 0.442: 4 steps give 0.384, 8 give 0.446) */
};

struct fold_in {
    const struct model *model;
    const struct backend_ops *ops;
    struct backend *own;         /* a CPU backend, which is opened if the caller's GPU does not have enough memory; otherwise
                                  * NULL */
    struct backend_fold *solver; /* the solver that `own` or the caller's backend has opened */
    struct pool *pool;           /* threads that read the rows of items */
    struct fold_problem problem; /* its rows of negatives are freed after opening, since the solver has a copy */
    uint32_t *ids;               /* [problem.count] the item that each negative is; rising */
    uint32_t *places;            /* [items] 1 + index of the item's row in the current call; 0: no list of the call has the item */
};

/* Returns 1 if new lists can be folded in: lists of the run have rows (examples.mode = user, examples.own above 0), and the run
 * was trained with negatives. */
int fold_in_is_for(const struct model *model);

/* Chooses the negatives and reads their rows. Uses the caller's backend until fold_in_close(). threads: number of threads; 0:
 * one a core. Returns 0, or -1 after fail(). */
int fold_in_open(struct fold_in *fold, const struct model *model, const struct backend_ops *ops, struct backend *backend,
                 unsigned threads);
void fold_in_close(struct fold_in *fold); /* may be called on a struct of zeros */

/* A list whose row is to be computed. */
struct fold_list {
    const uint64_t *codes; /* [count] rows of its items; numbers that are no row of an item are ignored */
    uint64_t count;
    float *row; /* result: [dim]; zeros if the list has no known item, or if all its items' rows are zeros */
};
/* Computes the row of each list. Returns 0, or -1 after fail(). */
int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count);

#endif
