/* search: exact nearest rows on the CPU; what backend_cpu's topk() is. */
#ifndef SPTX_CPU_SEARCH_H
#define SPTX_CPU_SEARCH_H

#include "base/pool.h"
#include "kernels/backend.h"

/* See struct topk_request. Where fewer than k rows may be found, the rest of the query's answer is DRAW_NONE at
 * -infinity; a score that is not a number is never found. */
int cpu_topk(struct pool *pool, const struct topk_request *request);

#endif
