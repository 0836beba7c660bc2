/* fold_in: a row for a list that training never saw: minimizes the loss of losses.h by that row alone, with items' rows fixed.
 *
 *   start       the sum of the rows of the list's items, scaled to unit length
 *   a score     `length` x (the list's direction . an item's row)
 *   a step      direction <- unit(direction - 2 gradient / (sum of |coefficients| x item_length))
 *
 * Positives are the list's items, each as often as the list names it. Negatives are the same items for all lists. Division by the
 * sum of coefficients makes the step's size independent of the loss, its temperature and the list's length.
 *
 * Every sum has one order. So on one backend a list's direction is the same to the bit whatever other lists are solved with it.
 */
#ifndef SPTX_KERNELS_FOLD_IN_H
#define SPTX_KERNELS_FOLD_IN_H

#include "losses.h"

#include <stdint.h>

/* most distinct items in the lists of one call; a single list with more items has a call of its own */
enum { FOLD_ITEMS = 1 << 16 };

/* The problem that is the same for all lists. The backend copies the arrays. If scores are cosines, rows have length 1. */
struct fold_problem {
    const float *negatives; /* [count x dim] */
    const uint32_t *ids;    /* [count] the item that each negative is; rising */
    uint32_t count, dim, steps;
    struct loss_options loss;
    int exclude;        /* 1: a list's loss leaves out negatives that are items of the list */
    float per_negative; /* factor by which the coefficients of negatives are multiplied */
    float length;       /* length that a list's final row will have; the directions computed here have length 1 */
    float item_length;  /* typical length of an item's row */
};

/* The lists of one call. */
struct fold_lists {
    const float *items;      /* [item_count x dim] rows of the lists' distinct items */
    const uint32_t *item_ids; /* [item_count] the item of each row */
    uint64_t item_count;
    const uint64_t *starts;   /* [count + 1] items of list i: places[starts[i]] .. places[starts[i + 1] - 1] */
    const uint32_t *places;   /* for each item of each list: the index of its row in `items` */
    uint64_t count;
    float *directions; /* result: [count x dim]; zeros for a list without items, and for a list whose items' rows add up to zeros */
};

/* Returns the first place in ids[count], which are sorted, whose id is at least `id`; `count` if all ids are lower. */
FN uint32_t fold_first_place(const uint32_t *ids, uint32_t count, uint32_t id) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

#endif
