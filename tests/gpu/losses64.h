/* losses64: the losses of kernels/losses.h in float64, written from their formulas only. */
#ifndef SPTX_TESTS_GPU_LOSSES64_H
#define SPTX_TESTS_GPU_LOSSES64_H

#include "kernels/losses.h"

/* Returns the loss of a vector's scores, positives first, and writes `scale` x d loss / d score to coefficients[count]. weights:
 * [positives] factors for a weighted loss, or NULL. */
double losses64(const struct loss_options *loss, const double *scores, double *coefficients, uint64_t count, uint64_t positives,
                const float *weights, double scale);

#endif
