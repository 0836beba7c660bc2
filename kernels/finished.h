/* finished: what both backends compute from trained rows: the exact score of a nearest row (search), rows of nodes spread over their graph (filter),
 * a row for a new list (fold_in). Nothing here changes a trained row. */
#ifndef SPTX_FINISHED_H
#define SPTX_FINISHED_H

#include "losses.h"
#include "portable.h"

#include <stdint.h>

/* ==== search ====
 *
 * The score of a row, defined so that the exact nearest rows are the same, to the bit, on every machine.
 *
 * The order in which a matrix product is added up depends on its shape: on the number of threads, slices and queries. So products only preselect: a
 * row is skipped if its product shows that it is not an answer, and all others are scored by search_score(), which always adds in the same order. The
 * answers are as if every row were scored that way.
 *
 *   |product - sum| <= search_margin(..)      of float32 products in any order
 */

enum { SEARCH_LANES = 32 }; /* sums that are added in parallel, one in each lane of a GPU's warp: lane i adds every 32nd column */

/* Returns the sum of a[i] x b[i] in float64: each lane adds its columns in order, then the lanes' sums are added pairwise. A product of two
 * float32 is exact in float64, so fused multiply-adds change nothing. */
FN double search_sum(const float *a, const float *b, uint32_t dim) {
    double sum[SEARCH_LANES] = {0};
    uint32_t i = 0;
    for (; i + SEARCH_LANES <= dim; i += SEARCH_LANES)
        for (uint32_t lane = 0; lane < SEARCH_LANES; lane++) sum[lane] += (double)a[i + lane] * (double)b[i + lane];
    for (uint32_t lane = 0; i + lane < dim; lane++) sum[lane] += (double)a[i + lane] * (double)b[i + lane];
    for (uint32_t half = SEARCH_LANES / 2; half; half /= 2)
        for (uint32_t lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];
    return sum[0];
}

FN float search_score(const float *query, const float *row, uint32_t dim) {
    return (float)search_sum(query, row, dim);
}

/* Returns an upper bound of the difference between a row's score and its float32 product with a query: a rounding error for each column, doubled,
 * plus what may be lost below the smallest float32. query_squares: squared length of the query; row_squares: squared length of the row, or an
 * upper bound of it. Infinity if a product could overflow. */
FN float search_margin(uint32_t dim, double query_squares, float row_squares) {
    double lengths = sqrt(query_squares) * sqrt((double)row_squares + 1e-30), columns = (double)dim + 8;
    if (!(lengths < 1e36)) return INFINITY;
    return (float)(columns * (lengths * (2.0 / 16777216) + 2e-38));
}

/* ==== filter ====
 *
 * Spreads rows of nodes over their graph by a series of products with its arcs (ProNE's filter: Zhang et al.
 * 2019, "ProNE: Fast and Scalable Network Representation Learning").
 *
 *   A            the graph's arcs, plus an arc of weight `loop` from each node to itself
 *   M            (1 - mu) I - D^-1 A,   D = diag(sums of A's rows);   mu = 0.2
 *   T_0, T_1, .. X,  M M X / 2 - X,  then T_i = M M T_i-1 - 2 T_i-1 - T_i-2;   ten terms
 *   result       A (X - sum over i of (-1)^i c_i T_i),   c_0 = I_0(theta), c_i = 2 I_i(theta) (Bessel's);   theta = 0.5
 *
 * Columns are independent: a backend computes as many at once as suit its memory.
 */

enum { FILTER_TERMS = 10 };

/* A graph, and the rows to spread over it. The caller owns the arrays, which are on the host. */
struct filter_request {
    const uint64_t *starts;     /* [nodes + 1] node v has arcs starts[v] .. starts[v + 1] - 1 */
    const uint32_t *neighbours; /* [arcs] */
    const float *weights;       /* [arcs]; NULL: all are 1 */
    float loop;                 /* weight of the added arc from each node to itself: 1, or the factor by which the caller has scaled the weights */
    uint64_t nodes, arcs;
    float *x; /* [nodes x dim] replaced by the result */
    uint32_t dim;
};

/* Returns (-1)^i c_i for term i. */
double filter_coefficient(int term);

/* Returns one value of M X. x: the value of X; spread: of A X; all: sum of the node's row of A. */
FN float filter_product(float x, float spread, float all) {
    return 0.8f * x - spread / all;
}

/* ==== fold_in ====
 *
 * Computes a row for a new list: the one that minimizes the loss of losses.h while the items' rows stay as they are.
 *
 *   start       the sum of the rows of the list's items, scaled to unit length
 *   a score     `length` x (the list's direction . an item's row)
 *   a step      direction <- unit(direction - 2 gradient / (sum of |coefficients| x item_length))
 *
 * Positives are the list's items, each as often as the list names it. Negatives are the same items for all lists. Division by the
 * sum of coefficients makes the step's size independent of the loss, its temperature and the list's length.
 *
 * Sums are always added in the same order, so on one backend a list's direction does not depend on the other lists that are solved with it.
 */

/* most distinct items of the lists of one call; a single list with more items is solved in its own call */
enum { FOLD_ITEMS = 1 << 16 };

/* The part of the problem that is the same for all lists. The backend copies the arrays. For cosines, rows have length 1. */
struct fold_problem {
    const float *negatives; /* [count x dim] */
    const uint32_t *ids;    /* [count] which item each negative is, rising */
    uint32_t count, dim, steps;
    struct loss_options loss;
    int exclude;        /* 1: negatives that are items of a list are left out of its loss */
    float per_negative; /* factor of the negatives' coefficients */
    float length;       /* length of a list's final row (the directions computed here have length 1) */
    float item_length;  /* typical length of an item's row */
};

/* The lists of one call. */
struct fold_lists {
    const float *items;      /* [item_count x dim] rows of the lists' distinct items */
    const uint32_t *item_ids; /* [item_count] the item of each row */
    uint64_t item_count;
    const uint64_t *starts;   /* [count + 1] items of list i: places[starts[i]] .. places[starts[i + 1] - 1] */
    const uint32_t *places;   /* index in `items` of the row of each item of each list */
    uint64_t count;
    float *directions; /* result [count x dim]; zeros for a list without items, or whose items' rows add up to zeros */
};

/* Returns the index of the first of the sorted ids[count] that is at least `id`; `count` if there is none. */
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
