/* dot: dot products of float32 rows at any address. */
#ifndef SPTX_DOT_H
#define SPTX_DOT_H

#include <stdint.h>

enum { DOT_LANES = 8 };

/* Prefetches a row that is needed soon. Without this, products of rows in random order spend most of their time waiting for
 * memory. */
static inline void dot_fetch(const float *row, uint32_t dim) {
    enum { LINE = 16 }; /* floats of a cache line */
    for (uint32_t i = 0; i < dim; i += LINE) __builtin_prefetch(row + i);
}

/* Sums in eight lanes, which compilers keep in vector registers. */
static inline float dot(const float *a, const float *b, uint32_t dim) {
    float lanes[DOT_LANES] = {0}, sum = 0;
    uint32_t whole = dim / DOT_LANES * DOT_LANES;
    for (uint32_t i = 0; i < whole; i += DOT_LANES)
        for (uint32_t lane = 0; lane < DOT_LANES; lane++) lanes[lane] += a[i + lane] * b[i + lane];
    for (uint32_t i = whole; i < dim; i++) sum += a[i] * b[i];
    for (uint32_t lane = 0; lane < DOT_LANES; lane++) sum += lanes[lane];
    return sum;
}

#endif
