/* rules64: kernels/optimizers.h compiled in double. */
#ifndef SPTX_TESTS_GPU_RULES64_H
#define SPTX_TESTS_GPU_RULES64_H

#include <stdint.h>

struct rule_options;
/* Updates a row that occurs `places` times in the batch. g: [dim] sum of its gradients; w: [dim] weights; slots: the record's
 * slots, one after the other. */
void rules64_update(const struct rule_options *options, double lr, uint64_t before, uint64_t places, uint64_t dim,
                    const double *g, double *w, double *slots);

#endif
