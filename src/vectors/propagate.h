/* propagate: spreads the rows of nodes over their graph, as ProNE does (Zhang et al. 2019, "ProNE: Fast and Scalable
 * Network Representation Learning", its second half).
 *
 *   F         the rows after the filter of kernels/finished.h
 *   result    U sqrt(S) of F = U S V^T, each row of length 2
 *
 * ProNE scales rows to length 1. They get length 2 here, since normsum rows are up to 2 long and a logistic regression, whose
 * penalty is on its weights, fits shorter rows worse: on cora by one and a half to two points of micro-F1. Cosines do not depend
 * on the length.
 *
 * S and V are computed from F^T F in float64 by Jacobi rotations: seconds for 512 columns, a minute or two for 1,024.
 */
#ifndef SPTX_PROPAGATE_H
#define SPTX_PROPAGATE_H

#include "base/pool.h"
#include "corpus/graph.h"
#include "kernels/backend.h"

/* Replaces the rows x [graph->nodes x dim] by their spread rows. The filter runs on the backend `ops`, or on the CPU if the GPU
 * lacks memory for it; the pool does everything else. Equal rows, graph and backend give equal bits for any number of threads.
 * Returns 0, or -1 after fail(). */
int propagate(float *x, uint32_t dim, const struct graph *graph, const struct backend_ops *ops, struct pool *pool);

#endif
