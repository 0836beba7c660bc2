/* floats: many numbers looked at at once. */
#ifndef SPTX_FLOATS_H
#define SPTX_FLOATS_H

#include <stdint.h>
#include <string.h>

/* Whether none of them is infinite or NaN: both have an exponent of ones, and no number does. */
static inline int floats_finite(const float *values, uint64_t count) {
    uint32_t bits, bad = 0;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bits, values + i, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return !bad;
}

#endif
