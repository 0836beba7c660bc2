/* logistic: logistic regression with an L2 penalty, as LIBLINEAR poses it.
 *
 *   least over w of   |w|^2 / 2  +  C sum over samples i of log(1 + exp(-s_i z_i)),   C = 1
 *   z_i = w_0 + w_1.. x_i;   s_i = 1 where the sample is of the class, -1 where not
 *
 * The intercept w_0 is penalised, too. The problem is convex, so every solver that goes on long enough finds the same
 * w. This one is Newton's method with conjugate gradients (Lin, Weng and Keerthi 2008), until the gradient is a
 * thousandth of the first one.
 */
#ifndef SPTX_LOGISTIC_H
#define SPTX_LOGISTIC_H

#include <stdint.h>

struct logistic_samples {
    const float *x;          /* [.. x dim] */
    const uint32_t *rows;    /* [count] the rows of x that the samples are; NULL: the first ones */
    const uint8_t *of_class; /* [count] 1 or 0 */
    uint64_t count;
    uint32_t dim;
};

/* Fills w [1 + dim], the intercept first. The same samples make the same numbers. Returns 0, or -1 after fail(). */
int logistic_fit(float *w, const struct logistic_samples *samples);

/* Returns z of one row. */
float logistic_score(const float *w, const float *x, uint32_t dim);

#endif
