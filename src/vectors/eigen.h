/* eigen: the eigenvalues and eigenvectors of a symmetric matrix, by Jacobi rotations. */
#ifndef SPTX_EIGEN_H
#define SPTX_EIGEN_H

#include <stdint.h>

/* Computes the eigenvalues [n], largest first, and the eigenvectors [n x n], one a row, of the symmetric matrix [n x n], which
 * is overwritten. Each eigenvector's component of largest magnitude is positive. */
void eigen_symmetric(double *matrix, uint32_t n, double *values, double *vectors);

#endif
