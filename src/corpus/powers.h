/* powers: computes 2^e in integers, so that draws by Zipf's law are the same on every machine.
 *
 * e is a fixed-point number. A table has 2^(t / 1024) for t = 0..1024; between two entries, 2^e is interpolated linearly. If e is
 * uniform in [0, log2 n), the floor of 2^e is k with probability log2(1 + 1/k) / log2 n, which is Zipf's law with exponent 1.
 */
#ifndef SPTX_POWERS_H
#define SPTX_POWERS_H

#include <stdint.h>

enum {
    POWERS_TABLE = 1024,
    POWERS_POINT = 40 /* e has 40 bits after its point; the first 10 of them choose the entry */
};

struct powers {
    uint64_t of[POWERS_TABLE + 1]; /* 2^(t / 1024), with 31 bits after the point */
};

void powers_init(struct powers *powers);
/* Returns the smallest e for which powers_floor() is at least k, for k up to 2^33. */
uint64_t powers_log(const struct powers *powers, uint64_t k);

/* Returns the integer part of 2^e. */
static inline uint64_t powers_floor(const struct powers *powers, uint64_t e) {
    unsigned whole = (unsigned)(e >> POWERS_POINT), t = (unsigned)(e >> 30) & (POWERS_TABLE - 1);
    uint64_t between = e & (((uint64_t)1 << 30) - 1);
    uint64_t value = (powers->of[t] << 30) + (powers->of[t + 1] - powers->of[t]) * between; /* 61 bits after the point */
    return value >> (61 - whole);
}

#endif
