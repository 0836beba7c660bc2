/* triples: which rows make an example of a triple (EXAMPLE_TRIPLE). Both compilers compile it.
 *
 * The source's ids are head, relation and tail of each triple; it has no starts. Heads and tails are entities, whose rows may be
 * contexts; relations are the rows after them, which are only targets. With `reciprocal`, the second half of the relations' rows
 * are their reciprocals, for triples from tail to head. Example e is triple e / directions:
 *
 *   e % directions   head   relation                             tail
 *   0                head   relation                             tail
 *   1                tail   relation + number of relations       head
 *
 *   pool.tied        targets          contexts
 *   0                head, relation   tail
 *   1                relation         tail, head
 *
 * The tail is the only positive. A head that is a context has no score: it is a context only because its row is in the context table.
 */
#ifndef SPTX_KERNELS_TRIPLES_H
#define SPTX_KERNELS_TRIPLES_H

#include "examples.h"

#include <math.h>

struct example_triple {
    uint32_t head, relation, tail;
};

FN struct example_triple example_triple(const struct example_source *s, uint64_t example) {
    uint64_t directions = example_directions(s), first = 3 * (example / directions);
    int backwards = example % directions != 0;
    struct example_triple triple;
    triple.head = portable_load32_at(s->ids, first + (backwards ? 2 : 0));
    triple.relation = portable_load32_at(s->ids, first + 1) + (backwards ? (uint32_t)(s->target_only / 2) : 0);
    triple.tail = portable_load32_at(s->ids, first + (backwards ? 0 : 2));
    return triple;
}

/* Writes the targets and the contexts of a triple. */
FN void example_put_triple(const struct example_source *s, uint64_t example, uint32_t *targets, uint32_t *contexts) {
    const struct example_triple triple = example_triple(s, example);
    contexts[0] = triple.tail;
    *(s->pool.tied ? contexts + 1 : targets) = triple.head;
    targets[!s->pool.tied] = triple.relation;
}

/* ==== products ====
 *
 * Multiplies a triple's head row and relation row, column by column (examples.h: enum example_product); computes the
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
