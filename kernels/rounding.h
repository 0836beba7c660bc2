/* rounding: values of two bytes. A bfloat16 is the upper half of a float32: the same sign and exponent, and 7 bits of
 * fraction. All arithmetic is float32; a value becomes a bfloat16 only when it is written to a table.
 *
 * Rounding to nearest would lose every change below 1/512 of a value. So writing rounds stochastically, up or down with
 * chances that make the mean right: 16 random bits are added below the bits that are kept. They depend only on the seed, the step
 * and the value's position, so results are the same with any threads, depth or ranks, and after a kill and a resume.
 *
 *   key of a step   a mix of (seed, ROUND_* of draws.h, table, global step)
 *   key of a row    a mix of the step's key and the row
 *   words           four, mixed from the row's key and an index: column / 8 | slot << 16; column is counted in the whole row
 *   columns          0        1        2        3        4        5        6        7     of a group of eight
 *   bits            [word 0 low, high | word 1 low, high | word 2 low, high | word 3 low, high]
 *
 * Philox (draws.h) would do as well. The mix is as random as is needed here (tests/unit/kernels/test_rounding.c) with half of the
 * instructions, and rounding is a third of a GPU's work in a step of bfloat16 rows.
 */
#ifndef SPTX_ROUNDING_H
#define SPTX_ROUNDING_H

#include "draws.h"

#include <string.h>

enum { ROUND_GROUP = 8 }; /* number of columns whose random bits are made together; in a table they occupy 16 bytes */

/* The values that determine the random bits for all rows of a table. */
struct rounding {
    uint32_t seed;
    uint32_t table;  /* 0: target table, or a table that is not part of a run; 1: context table */
    uint32_t column; /* number, in the whole row, of the first column that this process has: a multiple of ROUND_GROUP */
    const uint32_t *rows; /* [rows] the number that stands for each row: of a table by key a hash of the row's key, so that where a key's
                           * row is changes no bit. NULL: its own number. A GPU uses its own number in any case */
};

/* Returns the number that stands for a row. */
FN uint32_t round_row(const struct rounding *r, uint32_t row) {
    return r->rows ? r->rows[row] : row;
}

/* ---- one value ---- */

FN uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
FN float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FN float bfloat16_value(uint16_t kept) {
    return float_of_bits((uint32_t)kept << 16);
}

/* Bits of a float32 whose upper half is the largest finite bfloat16. Larger finite numbers are cut off to it, since they could
 * not be rounded to a finite value above. Infinity stays infinity, and a NaN stays a NaN, because a bit of its fraction is set. */
#define BFLOAT16_LARGEST 0x7F7F0000u
#define BFLOAT16_NAN     0x00400000u

/* Returns x rounded stochastically by 16 random bits. A value that is already a bfloat16 does not change. */
FN uint16_t bfloat16_round(float x, uint32_t random16) {
    uint32_t bits = bits_of_float(x), size = bits & 0x7FFFFFFFu;
    if (size < BFLOAT16_LARGEST) bits += random16;
    else if (size > 0x7F800000u) bits |= BFLOAT16_NAN;
    return (uint16_t)(bits >> 16);
}

/* Returns x rounded to the nearest bfloat16; of two equally near ones, to the even one. For values that are written once, such
 * as first values and exports. The largest finite numbers stay finite. */
FN uint16_t bfloat16_nearest(float x) {
    uint32_t bits = bits_of_float(x);
    return bfloat16_round(x, 0x7FFFu + (bits >> 16 & 1));
}

/* ---- bits ---- */

FN uint32_t round_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

/* The first function returns the key of a step, made of (seed, purpose, table, global step); the second returns the key of a row in that step. */
FN uint32_t round_step_key(const struct rounding *r, uint32_t purpose, uint64_t global_step) {
    uint32_t key = round_mix(r->seed ^ (purpose << 8 | r->table));
    return round_mix(round_mix(key + (uint32_t)global_step) + (uint32_t)(global_step >> 32));
}
FN uint32_t round_row_key(uint32_t step_key, uint32_t row) {
    return round_mix(step_key ^ row);
}

/* Returns another random word made from `word`, with less work than round_mix(). Different odd factors give different words. */
FN uint32_t round_more(uint32_t word, uint32_t factor) {
    word *= factor;
    return word ^ word >> 16;
}

#define ROUND_STEP   0x9E3779B9u /* added for each index before mixing */
#define ROUND_SECOND 0x85EBCA77u
#define ROUND_THIRD  0xC2B2AE3Du
#define ROUND_FOURTH 0x27D4EB2Fu

/* Returns the index of the group of eight columns whose first is `column`, counted from this process's first column. */
FN uint32_t round_index(const struct rounding *r, uint32_t column, uint32_t slot) {
    return (r->column + column) / ROUND_GROUP | slot << 16;
}

/* Returns the random words of group `index` of a row, whose key is row_key. */
FN struct draw4 round_words(uint32_t row_key, uint32_t index) {
    struct draw4 words;
    words.word[0] = round_mix(row_key + index * ROUND_STEP);
    words.word[1] = round_more(words.word[0], ROUND_SECOND);
    words.word[2] = round_more(words.word[0], ROUND_THIRD);
    words.word[3] = round_more(words.word[0], ROUND_FOURTH);
    return words;
}

/* Returns the 16 random bits of column `column` from the words of its group. */
FN uint32_t round_bits(struct draw4 words, uint32_t column) {
    uint32_t pair = column % ROUND_GROUP / 2, low = pair & 1 ? words.word[1] : words.word[0],
             high = pair & 1 ? words.word[3] : words.word[2], word = pair & 2 ? high : low;
    return column & 1 ? word >> 16 : word & 0xFFFFu;
}

/* ---- bits for lock-free training, which rounds two or four columns at a time ---- */

/* Returns the random bits of columns 2 x pair (lower half) and 2 x pair + 1 (upper half) of a row, whose key is row_key. */
FN uint32_t round_pair(uint32_t row_key, uint32_t pair) {
    uint32_t x = row_key + pair * ROUND_STEP;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    x *= 0x297A2D39u;
    return x ^ x >> 15;
}

#endif
