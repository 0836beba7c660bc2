/* propagate: spreads the rows of nodes over their graph, as ProNE does (Zhang et al. 2019, "ProNE: Fast and Scalable
 * Network Representation Learning", its second half).
 *
 *   A            arcs, and one of weight 1 from each node to itself
 *   M            (1 - mu) I - D^-1 A,   D = diag(sums of A's rows);   mu = 0.2
 *   T_0, T_1, .. X,  M M X / 2 - X,  then T_i = M M T_i-1 - 2 T_i-1 - T_i-2;   ten terms
 *   F            A (X - sum over i of (-1)^i c_i T_i),   c_0 = I_0(theta), c_i = 2 I_i(theta) (Bessel's);   theta = 0.5
 *   result       U sqrt(S) of F = U S V^T, each row of length 2
 *
 * ProNE makes rows of length 1. A row of normsum is up to 2 long, and a logistic regression, whose penalty is on its weights, is
 * held back more by shorter rows: on cora, half a point to three points of micro-F1. Cosines are the same with any length.
 *
 * Columns pass the filter sixteen at a time, so that a row of theirs is one cache line; memory is 256 bytes a node beside the rows.
 * S and V are found from F^T F in float64 by Jacobi's rotations: seconds for 512 columns, a minute or two for 1,024.
 */
#ifndef SPTX_PROPAGATE_H
#define SPTX_PROPAGATE_H

#include "base/pool.h"
#include "corpus/graph.h"

/* Replaces the rows x [graph->nodes x dim]. The same rows and graph make the same numbers with any number of threads.
 * Returns 0, or -1 after fail(). */
int propagate(float *x, uint32_t dim, const struct graph *graph, struct pool *pool);

#endif
