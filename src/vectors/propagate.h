/* propagate: spreads the rows of nodes over their graph, as ProNE does (Zhang et al. 2019, "ProNE: Fast and Scalable
 * Network Representation Learning", its second half).
 *
 *   F         the rows after the filter of kernels/filter.h
 *   result    U sqrt(S) of F = U S V^T, each row of length 2
 *
 * ProNE makes rows of length 1. A row of normsum is up to 2 long, and a logistic regression, whose penalty is on its weights, is
 * held back more by shorter rows: on cora by one and a half to two points of micro-F1. Cosines are the same with any length.
 *
 * S and V are found from F^T F in float64 by Jacobi's rotations: seconds for 512 columns, a minute or two for 1,024.
 */
#ifndef SPTX_PROPAGATE_H
#define SPTX_PROPAGATE_H

#include "base/pool.h"
#include "corpus/graph.h"
#include "kernels/backend.h"

/* Replaces the rows x [graph->nodes x dim]. The filter is that of `ops`, or the processor's where the GPU has not the memory for
 * it; all else is done by the pool. The same rows, graph and backend make the same numbers with any number of threads.
 * Returns 0, or -1 after fail(). */
int propagate(float *x, uint32_t dim, const struct graph *graph, const struct backend_ops *ops, struct pool *pool);

#endif
