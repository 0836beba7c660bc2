/* principal: the two directions along which rows vary most (PCA), found by power iteration. */
#ifndef SPTX_PRINCIPAL_H
#define SPTX_PRINCIPAL_H

#include <stdint.h>

/* Fills xy [count x 2] with the coordinates of the rows [count x dim] along the two directions; the mean is at 0, 0. Equal rows
 * give equal bits. Returns 0, or -1 after fail(). */
int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim);

#endif
