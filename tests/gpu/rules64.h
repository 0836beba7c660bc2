/* rules64: kernels/optimizers.h compiled in double. */
#ifndef SPTX_TESTS_GPU_RULES64_H
#define SPTX_TESTS_GPU_RULES64_H

#include <stdint.h>

struct rule_options;
/* One row that stands in `places` of the batch: g, their summed gradient, and w of dim columns; the record's slots one
 * behind the other in `slots`. */
void rules64_update(const struct rule_options *options, double lr, uint64_t before, uint64_t places, uint64_t dim,
                    const double *g, double *w, double *slots);

#endif
