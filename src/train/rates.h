/* rates: how many bytes a second plain copies move between this machine and its GPU. Measuring takes a second, so the result is
 * stored in the user's cache directory ($XDG_CACHE_HOME/sptx-w2v, otherwise ~/.cache/sptx-w2v), in one small file for each
 * combination of GPU, driver, link and processor.
 *
 * No function here fails or prints. If rates cannot be stored, they are measured each time; if they cannot be measured, they are
 * unknown (zeros).
 */
#ifndef SPTX_RATES_H
#define SPTX_RATES_H

#include "kernels/backend.h"

/* Finds the stored rates of this GPU. Returns 1 with *rates; 0 with zeros if none are stored, or if the file is damaged. */
int rates_find(const struct backend_info *info, struct bench_limits *rates);

/* Stores measured rates. If a stored rate is higher than the measured one, the stored rate is kept, since a copy is slow while
 * the machine does other work. */
void rates_keep(const struct backend_info *info, const struct bench_limits *rates);

/* Sets *rates to the stored rates. If none are stored, calls `measure` and stores its result. If another process is measuring,
 * waits a few seconds for it: two processes that measure at once would each find half the rate. Zeros if nothing is known. */
typedef int rates_measure(struct backend *backend, struct bench_limits *limits); /* type of backend_ops.bench_limits */
void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates);

#endif
