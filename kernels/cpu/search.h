/* search: exact nearest rows on the CPU, for backend_cpu's topk(). */
#ifndef SPTX_CPU_SEARCH_H
#define SPTX_CPU_SEARCH_H

#include "base/pool.h"
#include "kernels/backend.h"

/* See struct topk_request. Where fewer than k rows may be found, the answer is filled up with DRAW_NONE at -infinity; a
 * score of NaN is never found. */
int cpu_topk(struct pool *pool, const struct topk_request *request);

#endif
