/* filter: spreads rows of nodes over their graph by a series of products with its arcs (ProNE's filter: Zhang et al.
 * 2019, "ProNE: Fast and Scalable Network Representation Learning").
 *
 *   A            the graph's arcs, plus an arc of weight `loop` from each node to itself
 *   M            (1 - mu) I - D^-1 A,   D = diag(sums of A's rows);   mu = 0.2
 *   T_0, T_1, .. X,  M M X / 2 - X,  then T_i = M M T_i-1 - 2 T_i-1 - T_i-2;   ten terms
 *   result       A (X - sum over i of (-1)^i c_i T_i),   c_0 = I_0(theta), c_i = 2 I_i(theta) (Bessel's);   theta = 0.5
 *
 * Columns are independent: a backend computes as many at once as suit its memory.
 */
#ifndef SPTX_KERNELS_FILTER_H
#define SPTX_KERNELS_FILTER_H

#include "portable.h"

enum { FILTER_TERMS = 10 };

/* A graph, and the rows to spread over it. The arrays are the caller's, on the host. */
struct filter_request {
    const uint64_t *starts;     /* [nodes + 1] node v has arcs starts[v] .. starts[v + 1] - 1 */
    const uint32_t *neighbours; /* [arcs] */
    const float *weights;       /* [arcs]; NULL: all are 1 */
    float loop;                 /* weight of each node's arc to itself: 1, or the factor by which the caller scaled the weights */
    uint64_t nodes, arcs;
    float *x; /* [nodes x dim] replaced by the result */
    uint32_t dim;
};

/* Returns (-1)^i c_i for term i. */
double filter_coefficient(int term);

/* Returns one value of M X. x: of X; spread: of A X; all: the sum of the node's row of A. */
FN float filter_product(float x, float spread, float all) {
    return 0.8f * x - spread / all;
}

#endif
