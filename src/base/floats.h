/* floats: quick checks of arrays of numbers. */
#ifndef SPTX_FLOATS_H
#define SPTX_FLOATS_H

#include <stdint.h>
#include <string.h>

/* Returns 1 if all values are finite. Infinity and NaN are the only floats whose exponent bits are all 1. */
static inline int floats_finite(const float *values, uint64_t count) {
    uint32_t bits, bad = 0;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bits, values + i, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return !bad;
}

#endif
