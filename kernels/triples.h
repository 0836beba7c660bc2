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
 * Combines a triple's rows, column by column (examples.h: enum example_product): head a and relation b predict the tail c, and with
 * train.relations head and tail predict the relation. Computes the gradients of both, and the penalty of cubes. Both compilers compile this file.
 *
 * With COMPLEX and ROTATION each column has a partner: the partner of a real part is the imaginary part of the same number, and the partner of
 * an imaginary part is the real part. Functions take a column's own value and that of its partner; otherwise the partner's value is 0,
 * and no column is imaginary. With ROTATION b is a relation's row after product_unit() has given its numbers length 1.
 *
 *                        REAL, COMPLEX, ROTATION    TRANSLATION
 *   product_value        u = a x b                  a + b          compared with c: by dot product, or by distance (losses.h)
 *   product_gradient     g x conj(b)                g              gradient of a, where g is the gradient of u; for that of b, exchange a and b
 *   product_pair         w = c x conj(a)            c - a          compared with each relation b in the same way
 *   product_pair_tail    a x g                      g              gradient of c, where g is the gradient of w
 *   product_pair_head    c x conj(g)                -g             gradient of a
 *
 *   cubes x sum |x|^3    the penalty of a row; |x| is the length of a complex number, or of a column. Its gradient is
 *                        3 x cubes x |x| x (Lacroix et al., "Canonical Tensor Decomposition for Knowledge Base Completion",
 *                        ICML 2018: the nuclear 3-norm)
 *
 * The length of a x b is that of a if b is a rotation, so |a x b - c|^2 = |a|^2 + |c|^2 - 2 b.w: for relations the first two terms stand for the
 * squares of w, and those of b are 0.
 */

/* A column's own value and the value of its partner. */
struct product_number {
    float own, partner;
};

FN int product_is_complex(enum example_product product) {
    return product == PRODUCT_COMPLEX || product == PRODUCT_ROTATION;
}
/* Returns 1 if tails are compared by distance, 0 if by dot product. */
FN int product_is_distance(enum example_product product) {
    return product == PRODUCT_ROTATION || product == PRODUCT_TRANSLATION;
}
FN int product_is_imaginary(enum example_product product, uint32_t dim, uint32_t column) {
    return product_is_complex(product) && column >= dim / 2;
}
/* Returns the partner of a column; the column itself if numbers are real. */
FN uint32_t product_partner(enum example_product product, uint32_t dim, uint32_t column) {
    if (!product_is_complex(product)) return column;
    return column < dim / 2 ? column + dim / 2 : column - dim / 2;
}

FN struct product_number product_at(enum example_product product, uint32_t dim, const float *row, uint32_t column) {
    struct product_number number;
    number.own = row[column];
    number.partner = product_is_complex(product) ? row[product_partner(product, dim, column)] : 0;
    return number;
}

/* Returns 1 / |b|, for a complex number of a relation's row; 0 for a number without a direction, which is then 0 and has no gradient. */
FN float product_inverse(struct product_number b) {
    float squares = b.own * b.own + b.partner * b.partner;
    return squares > 1e-24f ? 1.0f / sqrtf(squares) : 0.0f;
}
FN struct product_number product_unit(enum example_product product, struct product_number b) {
    if (product != PRODUCT_ROTATION) return b;
    float inverse = product_inverse(b);
    b.own *= inverse, b.partner *= inverse;
    return b;
}
/* Returns the gradient of a column of the row itself, from g, the gradient of b / |b|: what g has along b changes nothing. */
FN float product_unit_gradient(struct product_number g, struct product_number b) {
    float inverse = product_inverse(b), along = (g.own * b.own + g.partner * b.partner) * inverse * inverse;
    return (g.own - along * b.own) * inverse;
}

FN float product_value(enum example_product product, int imaginary, struct product_number a, struct product_number b) {
    if (product == PRODUCT_TRANSLATION) return a.own + b.own;
    return imaginary ? a.own * b.partner + a.partner * b.own : a.own * b.own - a.partner * b.partner;
}
FN float product_gradient(enum example_product product, int imaginary, struct product_number g, struct product_number b) {
    if (product == PRODUCT_TRANSLATION) return g.own;
    return imaginary ? g.own * b.partner - g.partner * b.own : g.own * b.own + g.partner * b.partner;
}
FN float product_pair(enum example_product product, int imaginary, struct product_number a, struct product_number c) {
    return product == PRODUCT_TRANSLATION ? c.own - a.own : product_gradient(product, imaginary, c, a);
}
FN float product_pair_tail(enum example_product product, int imaginary, struct product_number a, struct product_number g) {
    return product == PRODUCT_TRANSLATION ? g.own : product_value(product, imaginary, a, g);
}
FN float product_pair_head(enum example_product product, int imaginary, struct product_number c, struct product_number g) {
    return product == PRODUCT_TRANSLATION ? -g.own : product_gradient(product, imaginary, c, g);
}
FN float product_cube_gradient(struct product_number x) {
    return 3.0f * sqrtf(x.own * x.own + x.partner * x.partner) * x.own;
}

#endif
