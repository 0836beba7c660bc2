/* checks: fast checks of arrays of numbers that callers pass. */
#ifndef SPTX_CHECKS_H
#define SPTX_CHECKS_H

#include <stdint.h>
#include <string.h>

/* Converts a caller's integers to 32-bit ids, and checks them in the same loop: copies from[count], integers of `bits` bits, to to[count]. Returns
 * 1 if any is outside 0 .. rows - 1, otherwise 0; rows is at least 1. An integer is outside if its highest bit is set, or that of (rows - 1) minus
 * the integer; this needs no branch, so the compiler can check several ids at once. */
static inline int ids_take(const void *from, unsigned bits, uint64_t count, uint64_t rows, uint32_t *restrict to) {
    const uint64_t *wide = (const uint64_t *)from;
    const uint32_t *narrow = (const uint32_t *)from;
    uint64_t last = rows - 1, seen = 0;
    uint32_t narrow_last = last < INT32_MAX ? (uint32_t)last : INT32_MAX, narrow_seen = 0;
    if (bits == 64)
        for (uint64_t i = 0; i < count; i++) {
            seen |= wide[i] | (last - wide[i]);
            to[i] = (uint32_t)wide[i];
        }
    else
        for (uint64_t i = 0; i < count; i++) {
            narrow_seen |= narrow[i] | (narrow_last - narrow[i]);
            to[i] = narrow[i];
        }
    return (seen >> 63 | narrow_seen >> 31) != 0;
}

/* Returns 1 if all values are finite: of all floats, only infinity and NaN have exponent bits that are all 1. */
static inline int floats_finite(const float *values, uint64_t count) {
    uint32_t bits, bad = 0;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bits, values + i, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return !bad;
}

#endif
