/* principal: the two directions along which rows differ most (PCA), found by repeated multiplication. */
#ifndef SPTX_PRINCIPAL_H
#define SPTX_PRINCIPAL_H

#include <stdint.h>

/* Fills xy [count x 2] with the place of each of the rows [count x dim] along the two directions, where the mean is 0.
 * The same rows make the same numbers. Returns 0, or -1 after fail(). */
int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim);

#endif
