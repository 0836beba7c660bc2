/* dot: dot products of float32 rows at any address. */
#ifndef SPTX_DOT_H
#define SPTX_DOT_H

#include <stdint.h>

enum { DOT_LANES = 8 };

/* Prefetches a row that will be needed soon. Without prefetching, products of rows in random order would wait for memory most of
 * the time. */
static inline void dot_fetch(const float *row, uint32_t dim) {
    enum { LINE = 16 }; /* number of floats of a cache line */
    for (uint32_t i = 0; i < dim; i += LINE) __builtin_prefetch(row + i);
}

/* Returns the dot product. It sums in eight lanes, which compilers keep in vector registers. */
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
