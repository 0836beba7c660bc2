/* eigen: the eigenvectors of a symmetric matrix, by Jacobi's rotations. */
#ifndef SPTX_EIGEN_H
#define SPTX_EIGEN_H

#include <stdint.h>

/* Computes the eigenvalues [n] and eigenvectors [n x n], a vector a row, of the symmetric matrix [n x n], which is overwritten.
 * The largest value is the first; a vector's component with the largest magnitude is positive. */
void eigen_symmetric(double *matrix, uint32_t n, double *values, double *vectors);

#endif
