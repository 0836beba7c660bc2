/* rates: bytes a second of plain copies between this machine and its GPU, measured in a second and kept in the user's cache
 * directory ($XDG_CACHE_HOME/sptx-w2v, otherwise ~/.cache/sptx-w2v), a small file for each GPU with its driver, its link and
 * the machine's processor.
 *
 * Nothing here fails or says anything: where nothing can be kept it is measured again, and where nothing can be measured
 * the rates are not known.
 */
#ifndef SPTX_RATES_H
#define SPTX_RATES_H

#include "kernels/bench.h"

/* What is kept for this GPU: 1 with *rates; 0 with zeros where there is nothing, or it is damaged. */
int rates_find(const struct backend_info *info, struct bench_limits *rates);

/* Keeps what was measured, or, rate by rate, what is there already where it is larger: a copy beside other work is slow. */
void rates_keep(const struct backend_info *info, const struct bench_limits *rates);

/* What is kept, otherwise what `measure` finds, which is kept then. While another process measures this one waits a few
 * seconds: two at once would find half of it each. Zeros where nothing is known. */
typedef int rates_measure(struct backend *backend, struct bench_limits *limits); /* of backend_ops */
void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates);

#endif
