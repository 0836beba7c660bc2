#include "numpy_draws.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- the seed (O'Neill's seed_seq_fe128, as NumPy's SeedSequence has it) ---- */

enum { POOL = 4, WORDS = 8 };

static uint32_t mix_in(uint32_t value, uint32_t *constant, uint32_t factor) {
    value ^= *constant;
    *constant *= factor;
    value *= *constant;
    return value ^ value >> 16;
}

static void stir(uint32_t pool[POOL], uint32_t seed) {
    uint32_t constant = 0x43b0d7e5, factor = 0x931e8875;
    for (int i = 0; i < POOL; i++) pool[i] = mix_in(i ? 0 : seed, &constant, factor);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++) {
            if (from == to) continue;
            uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * mix_in(pool[from], &constant, factor);
            pool[to] = mixed ^ mixed >> 16;
        }
}

static unsigned __int128 two_words(const uint32_t *words) {
    uint64_t high = (uint64_t)words[1] << 32 | words[0], low = (uint64_t)words[3] << 32 | words[2];
    return (unsigned __int128)high << 64 | low;
}

/* ---- the generator ---- */

static void step(struct numpy_draws *draws) {
    const unsigned __int128 factor = (unsigned __int128)2549297995355413924u << 64 | 4865540595714422341u;
    draws->state = draws->state * factor + draws->increment;
}

struct numpy_draws numpy_draws_make(uint32_t seed) {
    uint32_t pool[POOL], words[WORDS], constant = 0x8b51f9dd;
    stir(pool, seed);
    for (int i = 0; i < WORDS; i++) words[i] = mix_in(pool[i % POOL], &constant, 0x58f38ded);
    struct numpy_draws draws = {.increment = two_words(words + 4) << 1 | 1};
    step(&draws);
    draws.state += two_words(words);
    step(&draws);
    return draws;
}

static uint64_t next_64(struct numpy_draws *draws) {
    step(draws);
    uint64_t folded = (uint64_t)(draws->state >> 64) ^ (uint64_t)draws->state;
    unsigned turn = (unsigned)(draws->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next_32(struct numpy_draws *draws) {
    draws->has_half = !draws->has_half;
    if (!draws->has_half) return draws->half;
    uint64_t bits = next_64(draws);
    draws->half = (uint32_t)(bits >> 32);
    return (uint32_t)bits;
}

/* ---- whole numbers ---- */

uint32_t numpy_draws_below(struct numpy_draws *draws, uint64_t n) {
    if (n <= 1) return 0;
    uint64_t product;
    do product = next_32(draws) * n;
    while ((uint32_t)product < n && (uint32_t)product < (((uint64_t)1 << 32) - n) % n);
    return (uint32_t)(product >> 32);
}

static void exchange(uint32_t *order, uint64_t a, uint64_t b) {
    uint32_t value = order[a];
    order[a] = order[b];
    order[b] = value;
}

/* Returns a random number 0..highest: draws as many bits as `highest` has, until the number is not above it. NumPy's
 * permutation() does so. */
static uint32_t below_by_bits(struct numpy_draws *draws, uint32_t highest) {
    uint32_t bits = UINT32_MAX >> __builtin_clz(highest | 1), value;
    do value = next_32(draws) & bits;
    while (value > highest);
    return value;
}

void numpy_draws_permutation(struct numpy_draws *draws, uint32_t *order, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (uint64_t i = n; i-- > 1;) exchange(order, i, below_by_bits(draws, (uint32_t)i));
}

/* Exchanges only the last `count` elements, as NumPy does for most sizes. For a population above 10,000 of which less than a
 * fiftieth is chosen, NumPy draws in another way: this function then chooses other elements, equally at random. */
int numpy_draws_choice(struct numpy_draws *draws, uint32_t *out, uint64_t count, uint64_t n) {
    uint32_t *order = mem_alloc(n, sizeof *order, "a choice");
    if (!order) return -1;
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (uint64_t i = n, first = n > count ? n - count : 1; i-- > first;) exchange(order, i, numpy_draws_below(draws, i + 1));
    memcpy(out, order + (n - count), count * sizeof *out);
    free(order);
    return 0;
}
