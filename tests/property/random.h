/* random: a xorshift generator for random shapes. */
#ifndef SPTX_RANDOM_H
#define SPTX_RANDOM_H

#include <stdint.h>

static uint64_t state_of_random = 88172645463325252ull;
static uint64_t bits(void) {
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    return state_of_random ^= state_of_random << 17;
}
static uint64_t below(uint64_t n) {
    return (bits() >> 11) % n;
}

#endif
