/* draws: every random choice of a run, as a function of (seed, purpose, epoch, position). No state is kept, so
 * draws are the same with any number of threads, batch size or backend, and after a kill and a resume.
 *
 * Philox4x32-10 (Salmon et al., SC'11): key = (seed, purpose), counter = (position low, position high, epoch, index).
 *
 *   purpose         position of the counter     index
 *   SUBSAMPLE       corpus position / 4         0; word = position % 4
 *   WINDOW          corpus position / 4         0; word = position % 4
 *   TARGET          list                        0
 *   POSITIVE        example                     slot / 2
 *   NEGATIVE        example (per_batch: the     slot / 2 + attempt << 20; two words a slot
 *                   batch's first place)
 *   SHUFFLE         (keys of a permutation)     what it permutes
 *   ITEMS           sentence                    (keys of the permutation of its items)
 *   HELD_OUT        example / 4                 0; epoch 0 always, so that an example stays held out
 *                   list                        epoch 1: how many of its items are held out (0), and which (1)
 *   INIT_*          row                         column / 4
 *   WALK            walk                        a running number (walks.h)
 *   TUNE            trial                       key; epoch counts the attempts at a new trial
 */
#ifndef SPTX_DRAWS_H
#define SPTX_DRAWS_H

#include "portable.h"

enum draw_purpose {
    DRAW_SUBSAMPLE = 1,
    DRAW_WINDOW,
    DRAW_TARGET,
    DRAW_POSITIVE,
    DRAW_NEGATIVE,
    DRAW_SHUFFLE,
    DRAW_ITEMS,
    DRAW_HELD_OUT,
    DRAW_INIT_TARGET,
    DRAW_INIT_CONTEXT,
    DRAW_GENERATE, /* synthetic corpora */
    DRAW_WALK,
    DRAW_ROUND_WEIGHTS, /* the random bits of this purpose and the next two are made in rounding.h, not by Philox. This one: weights that a step or
                         * an update by id changes */
    DRAW_ROUND_STATE,
    DRAW_ROUND_STORE,   /* rows that a caller stores by id */
    DRAW_TUNE           /* the values of keys in a trial of `tune` */
};

enum { DRAW_ATTEMPTS = 256 }; /* most attempts to draw an allowed negative for a slot; after them it stays empty */
#define DRAW_NONE 0xFFFFFFFFu /* an empty slot: no row has this id */

FN struct draw4 draw_at(uint32_t seed, uint32_t purpose, uint64_t position, uint32_t epoch, uint32_t index) {
    return portable_philox(seed, purpose, (uint32_t)position, (uint32_t)(position >> 32), epoch, index);
}

/* Returns the word of one position in a draw; four consecutive positions share a draw. */
FN uint32_t draw_word_of(struct draw4 drawn, uint64_t position) {
    uint32_t even = position & 2 ? drawn.word[2] : drawn.word[0], odd = position & 2 ? drawn.word[3] : drawn.word[1];
    return position & 1 ? odd : even;
}
FN uint32_t draw_word(uint32_t seed, uint32_t purpose, uint64_t position, uint32_t epoch) {
    return draw_word_of(draw_at(seed, purpose, position >> 2, epoch, 0), position);
}

FN uint64_t draw_pair(struct draw4 drawn, unsigned half) {
    return (uint64_t)drawn.word[2 * half] << 32 | drawn.word[2 * half + 1];
}

/* Returns the 64 bits of one slot in a draw; two neighbouring slots share a draw: slot s uses half s % 2. */
FN uint64_t draw_half(struct draw4 drawn, uint32_t slot) {
    return slot & 1 ? draw_pair(drawn, 1) : draw_pair(drawn, 0);
}

/* Returns the index of the draw for a slot's negative at an attempt; the slot uses half slot % 2 of it. */
FN uint32_t draw_negative_index(uint32_t slot, uint32_t attempt) {
    return slot / 2 + (attempt << 20);
}

/* Returns a uniform number in 0 .. n - 1 from 64 random bits (Lemire 2019, without rejection: biased by less than n / 2^64). */
FN uint64_t draw_below(uint64_t bits, uint64_t n) {
    return portable_mul_high(bits, n);
}

/* Returns a uniform number in 1 .. window, made from 32 random bits. */
FN uint32_t draw_window(uint32_t bits, uint32_t window) {
    return 1 + (uint32_t)((uint64_t)bits * window >> 32);
}

/* A column of Vose's alias table, which stands for two rows: a random number of at most `threshold` chooses the row with the column's number, a
 * larger one the row `other`. */
struct alias {
    uint32_t threshold; /* in units of 2^-32; 0xFFFFFFFF if the column has only one row, which is then also `other` */
    uint32_t other;
};

/* Returns a row, drawn with probability proportional to count ^ negatives.power. The high part of bits x rows chooses a column of the table, the
 * low part one of its two rows. A mask does this without a branch, since a mispredicted branch would take longer than the whole draw. */
FN uint32_t draw_alias(uint64_t bits, const struct alias *table, uint64_t rows) {
    uint64_t column = portable_mul_high(bits, rows);
    uint32_t coin = (uint32_t)(bits * rows >> 32);
    struct alias at = table[column];
    uint32_t own = -(uint32_t)(coin <= at.threshold);
    return ((uint32_t)column & own) | (at.other & ~own);
}

/* Returns 2^x, for 0 <= x < 64, by fused multiply-adds only, so that host and device compute the same bits. */
FN double draw_exp2(double x) {
    /* 1 / 20! .. 1 / 0!: coefficients of the exponential series, for Horner's scheme */
    const double factors[] = {
        4.110317623312165e-19, 8.22063524662433e-18, 1.5619206968586225e-16, 2.8114572543455206e-15,
        4.779477332387385e-14, 7.647163731819816e-13, 1.1470745597729725e-11, 1.6059043836821613e-10,
        2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06,
        2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889, 0.008333333333333333,
        0.041666666666666664, 0.16666666666666666, 0.5, 1.0, 1.0};
    int whole = (int)x;
    double y = (x - whole) * 0.69314718055994530942, sum = factors[0];
    for (int i = 1; i <= 20; i++) sum = fma(sum, y, factors[i]);
    return sum * (double)((uint64_t)1 << whole);
}

/* Returns k in 1 .. rows - 1 with probability ln(1 + 1/k) / ln rows: the floor of rows^u, where u is uniform in [0, 1). */
FN uint32_t draw_log_uniform(uint64_t bits, uint64_t rows, double log2_rows) {
    double u = (double)(bits >> 11) * (1.0 / 9007199254740992.0);
    uint64_t k = (uint64_t)draw_exp2(portable_mul(u, log2_rows));
    return (uint32_t)(k < 1 ? 1 : k > rows - 1 ? rows - 1 : k);
}

/* ---- permutations ---- */

/* A pseudo-random permutation of 0 .. n - 1 that needs no table: a Feistel network over the next power of four, applied again
 * and again until the result is below n (Black and Rogaway, CT-RSA 2002). */
struct shuffle {
    uint64_t n;
    uint32_t bits; /* bits of one half of the network's numbers */
    uint32_t key[4];
};

FN struct shuffle shuffle_make(uint64_t n, struct draw4 keys) {
    struct shuffle s;
    s.n = n;
    s.bits = 1;
    while (s.bits < 32 && ((uint64_t)1 << (2 * s.bits)) < n) s.bits++;
    for (int i = 0; i < 4; i++) s.key[i] = keys.word[i];
    return s;
}

FN uint32_t shuffle_mix(uint32_t x, uint32_t key) {
    x = (x ^ key) * 0x85EBCA6Bu; /* murmur3's finalizer */
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ x >> 16;
}

/* Returns the place of item i in the permutation; i itself if i is not below n, since the network might never give a number below n then. There
 * are eight rounds: with four rounds, neighbours in a list of 16 ended up at some distances 10% more often than at others. */
FN uint64_t shuffle_at(const struct shuffle *s, uint64_t i) {
    if (i >= s->n) return i;
    uint32_t mask = (uint32_t)(((uint64_t)1 << s->bits) - 1);
    do {
        uint32_t left = (uint32_t)(i >> s->bits), right = (uint32_t)i & mask;
        for (uint32_t round = 0; round < 8; round++) {
            uint32_t next = (left ^ shuffle_mix(right, s->key[round & 3] + (round >> 2) * 0x9E3779B9u)) & mask;
            left = right;
            right = next;
        }
        i = (uint64_t)left << s->bits | right;
    } while (i >= s->n);
    return i;
}

/* ---- initial weights ---- */

/* Returns a uniform number in [0, 1), a multiple of 2^-24. */
/* The law by which hashed n-grams name rows of a table; sptx.h explains it (struct sptx_ngram_law). */
enum { NGRAM_ORDERS = 32 }; /* most orders */
struct ngram_law {
    uint64_t seed, part_rows; /* part_rows: rows for each order and head */
    uint32_t heads, parts, longest, order[NGRAM_ORDERS];
};
struct ngram_tokens {
    const void *tokens; /* [batch x length] numbers of `bits` bits */
    uint64_t batch, length, skip; /* the n-grams that end at the first `skip` tokens of each sequence name no rows */
    uint32_t bits;
};

/* Returns row number `i` of the result, which is [batch x (length - skip) x parts]. */
FN uint64_t ngram_row(const struct ngram_law *law, const struct ngram_tokens *of, uint64_t i) {
    uint64_t golden = 0x9E3779B97F4A7C15u, named = i / law->parts, time = of->length - of->skip, x = 0;
    uint64_t last = named % time + of->skip, place = named / time * of->length + last;
    uint32_t part = (uint32_t)(i % law->parts), order = law->order[part / law->heads];
    for (uint32_t back = 0; back < order && back <= last; back++) {
        int64_t token = of->bits == 64 ? ((const int64_t *)of->tokens)[place - back] : ((const int32_t *)of->tokens)[place - back];
        uint64_t drawn = law->seed + (part * (uint64_t)law->longest + back + 1) * golden; /* SplitMix64 (Steele et al. 2014) */
        drawn = (drawn ^ drawn >> 30) * 0xBF58476D1CE4E5B9u;
        drawn = (drawn ^ drawn >> 27) * 0x94D049BB133111EBu;
        x += ((uint64_t)token + 1) * ((drawn ^ drawn >> 31) | 1);
    }
    return part * law->part_rows + (((x ^ x >> 32) * golden >> 33) * law->part_rows >> 31);
}

FN float draw_unit(uint32_t bits) {
    return (float)(bits >> 8) * (1.0f / 16777216.0f);
}

#endif
