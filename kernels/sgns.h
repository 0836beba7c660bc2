/* sgns: the skip-gram loss with negative sampling, of one logit at a time.
 *
 *   s = dot(target row, context row);  y = 1 for a positive, 0 for a negative
 *   loss(s, y) = softplus(s) - y s      (Mikolov et al. 2013, eq. 4, as binary cross-entropy with logits)
 *   d loss / d s = sigmoid(s) - y       the pair's coefficient
 */
#ifndef SPTX_SGNS_H
#define SPTX_SGNS_H

#include "portable.h"

/* Returns e^x to 2 ulp, with x limited to [-87, 88]. It has no branches or calls, so compilers vectorize a loop over it. The
 * method is that of Cephes' expf: x = n ln 2 + r; a polynomial gives e^r, and n is added to the exponent bits. */
FN float sgns_exp(float x) {
    const float round = 12582912.0f; /* 1.5 x 2^23: adding it leaves the nearest integer in the low bits */
    union {
        uint32_t i;
        float f;
    } power;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = x * 1.44269504088896341f + round;
    n -= round;
    float r = x - n * 0.693359375f;
    r += n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    power.i = (uint32_t)((int32_t)n + 127) << 23; /* any value will do if x is NaN: p is then NaN */
    return p * power.f;
}

/* Returns sigmoid(s) - y, computed from e^-|s| so that neither tail loses its digits. */
FN float sgns_coefficient(float s, float y) {
    float a = s < 0 ? s : -s, e = sgns_exp(a);
    float top = s < 0 ? e : 1.0f;
    return top / (1.0f + e) - y;
}

/* These two give the loss softplus(s) - y s = linear + log(1 + tail). Callers multiply the factors (1 + tail) of many pairs in a
 * double and take one logarithm: each factor is at most 2, so 512 of them cannot overflow. */
FN float sgns_loss_linear(float s, float y) {
    return (s > 0 ? s : 0) - y * s;
}
FN float sgns_loss_tail(float s) {
    return sgns_exp(s < 0 ? s : -s);
}

#endif
