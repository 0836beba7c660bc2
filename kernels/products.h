/* products: multiplies a triple's head row and relation row, column by column (examples.h: enum example_product); computes the
 * gradients of this product, and the penalty of cubes. Both compilers compile this file.
 *
 * With COMPLEX each column has a partner: the partner of a real part is the imaginary part of the same number, and the partner of
 * an imaginary part is the real part. Functions take the values of a column and of its partner; with REAL the partner's value is 0,
 * and no column is imaginary.
 *
 *   u = a x b            the product
 *   g x conj(b)          the gradient of a, where g is the gradient of u; for that of b, exchange a and b
 *   cubes x sum |x|^3    the penalty of a row; |x| is the length of a complex number, or of a column. Its gradient is
 *                        3 x cubes x |x| x (Lacroix et al., "Canonical Tensor Decomposition for Knowledge Base Completion",
 *                        ICML 2018: the nuclear 3-norm)
 */
#ifndef SPTX_PRODUCTS_H
#define SPTX_PRODUCTS_H

#include "examples.h"

#include <math.h>

FN int product_is_imaginary(enum example_product product, uint32_t dim, uint32_t column) {
    return product == PRODUCT_COMPLEX && column >= dim / 2;
}
/* Returns the partner of a column; the column itself with REAL. */
FN uint32_t product_partner(enum example_product product, uint32_t dim, uint32_t column) {
    if (product != PRODUCT_COMPLEX) return column;
    return column < dim / 2 ? column + dim / 2 : column - dim / 2;
}

FN float product_value(int imaginary, float a, float a_partner, float b, float b_partner) {
    return imaginary ? a * b_partner + a_partner * b : a * b - a_partner * b_partner;
}
FN float product_gradient(int imaginary, float g, float g_partner, float b, float b_partner) {
    return imaginary ? g * b_partner - g_partner * b : g * b + g_partner * b_partner;
}
FN float product_cube_gradient(float x, float partner) {
    return 3.0f * sqrtf(x * x + partner * partner) * x;
}

#endif
