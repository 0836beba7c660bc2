/* numpy_draws: the random numbers of NumPy's default_rng(seed). Scores depend on random splits (which nodes are trained on, which
 * unlinked pairs of nodes are drawn). With these numbers a script that uses NumPy gets the same splits.
 *
 * The generator is PCG64 (O'Neill 2014; PCG XSL RR 128/64), seeded by NumPy's SeedSequence. Each 64-bit output gives two 32-bit
 * numbers, the lower half first. A number below n is made by Lemire's method with rejection (2019); in permutations by masking
 * bits and rejecting numbers that are too large.
 */
#ifndef SPTX_NUMPY_DRAWS_H
#define SPTX_NUMPY_DRAWS_H

#include <stdint.h>

struct numpy_draws {
    unsigned __int128 state, increment;
    uint32_t half; /* upper half of the generator's last output */
    int has_half;  /* 1: `half` has not been used yet */
};

/* Returns the generator that numpy.random.default_rng(seed) makes. */
struct numpy_draws numpy_draws_make(uint32_t seed);

/* Returns a random number 0 .. n - 1, as NumPy's integers(0, n) does; n is at most 2^32. For n = 1 it returns 0, and draws
 * nothing. */
uint32_t numpy_draws_below(struct numpy_draws *draws, uint64_t n);

/* Fills order[n] as NumPy's permutation(n) does. */
void numpy_draws_permutation(struct numpy_draws *draws, uint32_t *order, uint64_t n);

/* Fills out[count] with different numbers 0 .. n - 1, as NumPy's choice(n, count, replace=False) does; count is at most n.
 * Returns 0, or -1 after fail(). */
int numpy_draws_choice(struct numpy_draws *draws, uint32_t *out, uint64_t count, uint64_t n);

#endif
