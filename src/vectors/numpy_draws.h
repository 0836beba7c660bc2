/* numpy_draws: the random numbers of NumPy's default_rng(seed). Scores that depend on draws (which nodes are trained
 * on, which pairs of nodes are no links) are then the same, split by split, as those of people's own scripts.
 *
 * The generator is PCG64 (O'Neill 2014; PCG XSL RR 128/64), seeded by NumPy's SeedSequence. Numbers come from 32-bit
 * halves of its output, the lower half first: by Lemire's method with rejection (2019), or, in permutations, by
 * rejected bits.
 */
#ifndef SPTX_NUMPY_DRAWS_H
#define SPTX_NUMPY_DRAWS_H

#include <stdint.h>

struct numpy_draws {
    unsigned __int128 state, increment;
    uint32_t half; /* the upper half of the last output, */
    int has_half;  /* 1 while it has not been used */
};

/* Does what numpy.random.default_rng(seed) does. */
struct numpy_draws numpy_draws_make(uint32_t seed);

/* Returns a number of 0..n-1, as integers(0, n) draws each of its numbers; n is at most 2^32. One number alone takes no
 * draw. */
uint32_t numpy_draws_below(struct numpy_draws *draws, uint64_t n);

/* Fills order[n] with permutation(n). */
void numpy_draws_permutation(struct numpy_draws *draws, uint32_t *order, uint64_t n);

/* Fills out[count] with choice(n, count, replace=False); count is at most n. Returns 0, or -1 after fail(). */
int numpy_draws_choice(struct numpy_draws *draws, uint32_t *out, uint64_t count, uint64_t n);

#endif
