#include "values.h"

#include "kernels/rounding.h"

#include <math.h>
#include <string.h>

char values_kind(enum value_type type) {
    switch (type) {
    case VALUE_FLOAT32:
        return 'f';
    case VALUE_UINT32:
        return 'u';
    case VALUE_BFLOAT16:
        return 'h';
    case VALUE_INT8:
        return 'b';
    case VALUE_FLOAT8:
        return 'B';
    }
    return 0;
}

static float widened(const char *at) {
    uint16_t kept;
    memcpy(&kept, at, sizeof kept);
    return bfloat16_value(kept);
}

void values_of_file(const struct npy_field *field, const void *at, uint32_t first, uint32_t count, float *out) {
    const char *from = at;
    if (field->kind == 'f') memcpy(out, from + first * sizeof *out, count * sizeof *out);
    for (uint32_t i = 0; field->kind == 'h' && i < count; i++) out[i] = widened(from + (first + i) * sizeof(uint16_t));
}

void values_write(const struct record_layout *layout, const struct record_field *field, char *record, const float *values, uint32_t count) {
    char *to = record + field->packed;
    uint32_t largest = 0;
    if (field->type == VALUE_FLOAT32) memcpy(to, values, count * sizeof *values);
    for (uint32_t i = 0; field->type == VALUE_BFLOAT16 && i < count; i++) {
        uint16_t kept = bfloat16_nearest(values[i]);
        memcpy(to + i * sizeof kept, &kept, sizeof kept);
    }
    if (!value_is_code(field->type)) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = bits_of_float(values[i]) & 0x7FFFFFFFu;
        largest = size > largest ? size : largest;
    }
    int float8 = field->type == VALUE_FLOAT8;
    float scale = code_scale(largest, float8);
    memcpy(record + record_scale(layout)->packed, &scale, sizeof scale);
    memset(to, 0, count);
    for (uint32_t i = 0; scale > 0 && i < count; i++)
        to[i] = (char)(float8 ? float8_code(values[i] / scale, 0.5f) : int8_code(values[i] / scale, 0.5f));
}

/* float32 and bfloat16: infinity and NaN have exponent bits that are all 1. float8: in a NaN all bits except the sign are 1. */
int values_finite(const struct record_field *field, const void *at) {
    const char *from = at;
    int bad = 0;
    for (uint32_t i = 0; field->type == VALUE_FLOAT32 && i < field->columns; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    for (uint32_t i = 0; field->type == VALUE_BFLOAT16 && i < field->columns; i++) {
        uint16_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        bad |= (bits & 0x7F80u) == 0x7F80u;
    }
    for (uint32_t i = 0; field->type == VALUE_FLOAT8 && i < field->columns; i++) bad |= (from[i] & 0x7F) == 0x7F;
    return !bad;
}

/* ---- normal values ----
 *
 * Logarithm, cosine and sine are polynomials without branches, for which compilers use vector instructions: a third of the C library's time, for
 * tables of billions of values. */

static const double pi = 3.14159265358979323846, ln2 = 0.69314718055994530942;

/* Returns -ln((word + 1) / 2^32). The 1 avoids the logarithm of 0. */
static inline double minus_log(uint32_t word) {
    double n = (double)(int32_t)(word ^ 0x80000000u) + 2147483649.0, power; /* word + 1 as a double, since vector instructions convert only signed
                                                                             * integers */
    uint64_t bits, half, biased;
    memcpy(&bits, &n, 8);
    /* n = m x 2^e, with m from 1/sqrt 2 to sqrt 2. half: 1 if the mantissa is above sqrt 2, so that e is one more. */
    half = ((bits & 0xFFFFFFFFFFFFFu) + 0x95F619980C433u) >> 52;
    biased = ((bits >> 52) + half) | 0x4330000000000000u; /* read as a double, this is 2^52 + the exponent */
    memcpy(&power, &biased, 8);
    bits = (bits & 0xFFFFFFFFFFFFFu) | (0x3FF0000000000000u - (half << 52));
    memcpy(&n, &bits, 8);
    double s = (n - 1) / (n + 1), q = s * s; /* ln m = 2 atanh s */
    double series = 1 + q * (1 / 3. + q * (1 / 5. + q * (1 / 7. + q * (1 / 9. + q * (1 / 11. + q * (1 / 13.))))));
    return (4503599627370496.0 + 1023 + 32 - power) * ln2 - 2 * s * series;
}

/* Computes cosine and sine of the angle 2 pi x turn / 2^32: of a quarter of it, which is then doubled twice. */
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
