/* principal: the directions along which rows vary most (PCA): two by power iteration, or all by eigenvectors. */
#ifndef SPTX_PRINCIPAL_H
#define SPTX_PRINCIPAL_H

#include "base/pool.h"

#include <stdint.h>

/* Fills xy [count x 2] with the coordinates of the rows [count x dim] along the two directions; the mean is at 0, 0. Equal rows
 * give equal bits. Returns 0, or -1 after fail(). */
int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim);

/* Computes all principal axes [dim x dim] of the rows [count x dim] about 0, one a row, that of largest variance first: the
 * eigenvectors of the sum of the rows' outer products. Same bits with any number of threads. Returns 0, or -1 after fail(). */
int principal_axes(double *axes, const float *rows, uint64_t count, uint32_t dim, struct pool *pool);

#endif
