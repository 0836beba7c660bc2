/* principal: the two directions along which rows differ most (PCA), found by repeated multiplication. */
#ifndef SPTX_PRINCIPAL_H
#define SPTX_PRINCIPAL_H

#include <stdint.h>

/* xy [count x 2]: where each of the rows [count x dim] lies along the two directions, the mean being at 0. The same
 * rows make the same numbers. 0, or -1 after fail(). */
int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim);

#endif
