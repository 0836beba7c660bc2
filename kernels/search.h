/* search: the score of a row, defined so that the exact nearest rows are the same, to the bit, on every machine.
 *
 * A matrix product adds up in an order that depends on its shape: on the threads that share a search, on slices, on how many
 * queries are asked at once. Products therefore only preselect: a row is skipped if its product shows that it is no answer, and all
 * other rows are scored by search_score(), which adds in one order. The answers are as if every row were scored that way.
 *
 *   |product - sum| <= search_margin(..)      of float32 products in any order
 */
#ifndef SPTX_KERNELS_SEARCH_H
#define SPTX_KERNELS_SEARCH_H

#include "portable.h"

enum { SEARCH_LANES = 32 }; /* number of sums that are added side by side, one for each lane of a GPU's warp; lane i adds every
                             * 32nd column */

/* Returns the sum of a[i] x b[i] in float64: each lane adds its columns in order, then lanes are added by halves. A product of
 * two float32 is exact in float64, so fused multiply-adds give the same sum. */
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

/* Returns an upper bound of the difference between a float32 product of a query with a row and that row's score. The bound has
 * two terms: a rounding error for each column, doubled; and what may be lost in numbers below the smallest float32.
 * query_squares: the query's squared length. row_squares: the row's squared length or a larger number; it may be a float32 sum.
 * Returns infinity if a product could overflow. */
FN float search_margin(uint32_t dim, double query_squares, float row_squares) {
    double lengths = sqrt(query_squares) * sqrt((double)row_squares + 1e-30), columns = (double)dim + 8;
    if (!(lengths < 1e36)) return INFINITY;
    return (float)(columns * (lengths * (2.0 / 16777216) + 2e-38));
}

#endif
