/* search: exact nearest rows on the CPU, for backend_cpu's topk(). */
#ifndef SPTX_CPU_SEARCH_H
#define SPTX_CPU_SEARCH_H

#include "base/pool.h"
#include "kernels/backend.h"

/* Answers a topk_request. If a query may find fewer than k rows, the answer is padded with DRAW_NONE at -infinity. A row whose
 * score is NaN is never found, and never counted. */
int cpu_topk(struct pool *pool, const struct topk_request *request);

#endif
