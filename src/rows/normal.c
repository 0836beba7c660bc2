/* normal: see normal.h. Logarithm, cosine and sine are polynomials without branches, for which compilers use vector
 * instructions. For tables of billions of values this takes a third of the time of the C library. */
#include "normal.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846, ln2 = 0.69314718055994530942;

/* Returns -ln((word + 1) / 2^32). The 1 keeps it from being the logarithm of 0. */
static inline double minus_log(uint32_t word) {
    double n = (double)(int32_t)(word ^ 0x80000000u) + 2147483649.0, power; /* word + 1: vector instructions convert only signed
                                                                             * integers */
    uint64_t bits, half, biased;
    memcpy(&bits, &n, 8);
    /* n = m x 2^e with m from 1/sqrt 2 to sqrt 2. half: 1 if the mantissa is above sqrt 2; then e is one more. */
    half = ((bits & 0xFFFFFFFFFFFFFu) + 0x95F619980C433u) >> 52;
    biased = ((bits >> 52) + half) | 0x4330000000000000u; /* read as a double, this is 2^52 + the exponent */
    memcpy(&power, &biased, 8);
    bits = (bits & 0xFFFFFFFFFFFFFu) | (0x3FF0000000000000u - (half << 52));
    memcpy(&n, &bits, 8);
    double s = (n - 1) / (n + 1), q = s * s; /* ln m = 2 atanh s */
    double series = 1 + q * (1 / 3. + q * (1 / 5. + q * (1 / 7. + q * (1 / 9. + q * (1 / 11. + q * (1 / 13.))))));
    return (4503599627370496.0 + 1023 + 32 - power) * ln2 - 2 * s * series;
}

/* Computes cosine and sine of the angle 2 pi x turn / 2^32: first of a quarter of the angle, which it then doubles twice. */
static inline void turned(int32_t turn, double *cosine, double *sine) {
    double a = turn * (pi / 2 / 4294967296.0), q = a * a;
    double c = 1 - q * (1 / 2. - q * (1 / 24. - q * (1 / 720. - q * (1 / 40320. - q * (1 / 3628800. - q / 479001600)))));
    double s = a * (1 - q * (1 / 6. - q * (1 / 120. - q * (1 / 5040. - q * (1 / 362880. - q * (1 / 39916800. - q / 6227020800))))));
    double c2 = c * c - s * s, s2 = 2 * c * s;
    *cosine = c2 * c2 - s2 * s2;
    *sine = 2 * c2 * s2;
}

void normal_values(const uint32_t *words, uint32_t count, double *out) {
    for (uint32_t i = 0; i < count / 2; i++) {
        double radius = sqrt(2 * minus_log(words[2 * i])), cosine, sine;
        turned((int32_t)words[2 * i + 1], &cosine, &sine);
        out[2 * i] = radius * cosine;
        out[2 * i + 1] = radius * sine;
    }
}
