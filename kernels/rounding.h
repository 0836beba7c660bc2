/* rounding: values of two bytes. A bfloat16 is the upper half of a float32: the same sign and exponent, and 7 bits of
 * fraction. All arithmetic is float32; a value becomes a bfloat16 only when it is written to a table.
 *
 * Rounding to nearest would lose every change below 1/512 of a value. So writing rounds stochastically: up or down with the
 * chances that make the mean right, by 16 random bits that are added below the bits that are kept. These bits are the same for the
 * same place, so that threads, depth, ranks, a kill and a resume change no byte.
 *
 *   key of a step   a mix of (seed, ROUND_* of draws.h, table, global step)
 *   key of a row    a mix of that and the row
 *   words           four of a mix of that and an index: column / 8 | slot << 16, where column is that of the whole row
 *   columns          0        1        2        3        4        5        6        7     of a group of eight
 *   bits            [word 0 low, high | word 1 low, high | word 2 low, high | word 3 low, high]
 *
 * Philox (draws.h) would do as well. The mix obeys the same laws as far as they matter here (tests/unit/kernels/test_rounding.c)
 * with half of the instructions, and rounding is a third of what a step of bfloat16 rows makes a GPU do.
 */
#ifndef SPTX_ROUNDING_H
#define SPTX_ROUNDING_H

#include "draws.h"

#include <string.h>

enum { ROUND_GROUP = 8 }; /* columns whose bits are made together, and of 16 bytes */

/* The parts of a key that all rows of a table have in common. */
struct rounding {
    uint32_t seed;
    uint32_t table;  /* 0: targets, or a table by itself; 1: contexts */
    uint32_t column; /* the column of the whole row that is this process's first one: a multiple of ROUND_GROUP */
};

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

/* The largest finite bfloat16, as the upper half of these bits. Numbers from here on are cut, since there is no finite
 * value above it to round to; infinity stays what it is, and a NaN stays one by a bit that is set in its fraction. */
#define BFLOAT16_LARGEST 0x7F7F0000u
#define BFLOAT16_NAN     0x00400000u

/* Rounds by 16 random bits. A value that bfloat16 has is never changed. */
FN uint16_t bfloat16_round(float x, uint32_t random16) {
    uint32_t bits = bits_of_float(x), size = bits & 0x7FFFFFFFu;
    if (size < BFLOAT16_LARGEST) bits += random16;
    else if (size > 0x7F800000u) bits |= BFLOAT16_NAN;
    return (uint16_t)(bits >> 16);
}

/* Rounds to the nearest value, of two equally near ones to the even one: for values that are written once, as first values
 * and exports are. The largest finite numbers stay finite. */
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

/* Makes a key of (seed, purpose, table, global step), and one of that and a row. */
FN uint32_t round_step_key(const struct rounding *r, uint32_t purpose, uint64_t global_step) {
    uint32_t key = round_mix(r->seed ^ (purpose << 8 | r->table));
    return round_mix(round_mix(key + (uint32_t)global_step) + (uint32_t)(global_step >> 32));
}
FN uint32_t round_row_key(uint32_t step_key, uint32_t row) {
    return round_mix(step_key ^ row);
}

/* Returns a second word of random bits, made of a first one by less work; several by different odd factors. */
FN uint32_t round_more(uint32_t word, uint32_t factor) {
    word *= factor;
    return word ^ word >> 16;
}

#define ROUND_STEP   0x9E3779B9u /* between the mixes of neighbours */
#define ROUND_SECOND 0x85EBCA77u
#define ROUND_THIRD  0xC2B2AE3Du
#define ROUND_FOURTH 0x27D4EB2Fu

/* Returns the index of the eight columns of which `column`, counted from this process's first one, is the first. */
FN uint32_t round_index(const struct rounding *r, uint32_t column, uint32_t slot) {
    return (r->column + column) / ROUND_GROUP | slot << 16;
}

/* Returns the words of eight columns of a row with that key. */
FN struct draw4 round_words(uint32_t row_key, uint32_t index) {
    struct draw4 words;
    words.word[0] = round_mix(row_key + index * ROUND_STEP);
    words.word[1] = round_more(words.word[0], ROUND_SECOND);
    words.word[2] = round_more(words.word[0], ROUND_THIRD);
    words.word[3] = round_more(words.word[0], ROUND_FOURTH);
    return words;
}

/* Returns the 16 random bits of column `column` % 8 of these words. */
FN uint32_t round_bits(struct draw4 words, uint32_t column) {
    uint32_t pair = column % ROUND_GROUP / 2, low = pair & 1 ? words.word[1] : words.word[0],
             high = pair & 1 ? words.word[3] : words.word[2], word = pair & 2 ? high : low;
    return column & 1 ? word >> 16 : word & 0xFFFFu;
}

/* ---- bits for lock-free training, which has two or four columns at hand ---- */

/* Returns the bits of columns 2 x pair (the lower half) and 2 x pair + 1 of a row with that key. */
FN uint32_t round_pair(uint32_t row_key, uint32_t pair) {
    uint32_t x = row_key + pair * ROUND_STEP;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    x *= 0x297A2D39u;
    return x ^ x >> 15;
}

#endif
