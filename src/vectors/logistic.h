/* logistic: logistic regression with an L2 penalty, as LIBLINEAR poses it.
 *
 *   minimum over w of   |w|^2 / 2  +  C sum over samples i of log(1 + exp(-s_i z_i)),   C = 1
 *   z_i = w_0 + w_1.. x_i;   s_i = 1 if sample i is in the class, -1 if not
 *
 * The intercept w_0 is penalised, too. The problem is convex, so every solver converges to the same w. This one is Newton's
 * method with conjugate gradients (Lin, Weng and Keerthi 2008). It stops when the gradient is a thousandth as long as at the
 * start.
 */
#ifndef SPTX_LOGISTIC_H
#define SPTX_LOGISTIC_H

#include <stdint.h>

struct logistic_samples {
    const float *x;          /* rows of `dim` numbers each */
    const uint32_t *rows;    /* [count] indexes of the rows of x that are the samples; NULL: the first `count` rows */
    const uint8_t *of_class; /* [count] 1: the sample is in the class; 0: it is not */
    uint64_t count;
    uint32_t dim;
};

/* Fits w [1 + dim], the intercept first. Equal samples give equal bits. Returns 0, or -1 after fail(). */
int logistic_fit(float *w, const struct logistic_samples *samples);

/* Returns z = w_0 + w_1.. x of one row x. */
float logistic_score(const float *w, const float *x, uint32_t dim);

#endif
