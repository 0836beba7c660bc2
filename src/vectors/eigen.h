/* eigen: the eigenvectors of a symmetric matrix, by Jacobi's rotations. */
#ifndef SPTX_EIGEN_H
#define SPTX_EIGEN_H

#include <stdint.h>

/* Fills values [n] and vectors [n x n], a vector a row, with those of the symmetric matrix [n x n], which is lost. The
 * largest value comes first; a vector's largest part is positive. */
void eigen_symmetric(double *matrix, uint32_t n, double *values, double *vectors);

#endif
