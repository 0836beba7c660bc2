/* rounding: values of two bytes, and codes of one. A bfloat16 is the upper half of a float32: the same sign and exponent, and 7 bits of
 * fraction. All arithmetic is float32; a value becomes a bfloat16, or a code, only when it is written to a table.
 *
 * Rounding to nearest would lose every change below 1/512 of a value. So writing rounds stochastically, up or down with
 * chances that make the mean right: 16 random bits are added below the bits that are kept. They depend only on the seed, the step
 * and the value's position, so results are the same with any threads, depth or ranks, and after a kill and a resume. (Of complex numbers, whose
 * two parts are on one rank, the position depends on the number of ranks.)
 *
 *   key of a step   a mix of (seed, ROUND_* of draws.h, table, global step)
 *   key of a row    a mix of the step's key and the row
 *   words           four, mixed from the row's key and an index: column / 8 | slot << 16; columns are counted from the first rank on
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

enum { ROUND_GROUP = 8 }; /* number of columns for which random bits are made at a time; in a table they occupy 16 bytes */

/* The numbers that decide the random bits for all rows of a table. */
struct rounding {
    uint32_t seed;
    uint32_t table;  /* 0: target table, or a table that is not part of a run; 1: context table */
    uint32_t column; /* number of columns of the ranks before this one: a multiple of ROUND_GROUP */
    const uint32_t *rows; /* [rows] the number from which each row's random bits are mixed. A table by key has a hash of the row's key here,
                           * so that the bits do not depend on which row the key has. NULL: the row's own number */
};

/* Returns the number by which a row is known to the random bits. */
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

/* Bits of a float32 whose upper half is the largest finite bfloat16. Larger finite numbers become this one, since they could not be rounded up to
 * a finite value. Infinity stays infinity, and a NaN stays a NaN, because a bit of its fraction is set. */
#define BFLOAT16_LARGEST 0x7F7F0000u
#define BFLOAT16_NAN     0x00400000u

/* Returns x rounded stochastically, by 16 random bits. Values that are already bfloat16 do not change. */
FN uint16_t bfloat16_round(float x, uint32_t random16) {
    uint32_t bits = bits_of_float(x), size = bits & 0x7FFFFFFFu;
    if (size < BFLOAT16_LARGEST) bits += random16;
    else if (size > 0x7F800000u) bits |= BFLOAT16_NAN;
    return (uint16_t)(bits >> 16);
}

/* Returns x rounded to the nearest bfloat16, of two equally near ones to the even one; for values that are written once, such as first values and
 * exports. The largest finite numbers stay finite. */
FN uint16_t bfloat16_nearest(float x) {
    uint32_t bits = bits_of_float(x);
    return bfloat16_round(x, 0x7FFFu + (bits >> 16 & 1));
}

/* ---- codes: values of one byte, with a scale a row ----
 *
 *   type     values of a code                                         largest
 *   int8     -127 .. 127 (-128 is never written)                      127
 *   float8   OCP E4M3FN: sign, 4 bits of exponent (bias 7), 3 of      448
 *            fraction; denormal numbers in steps of 2^-9
 *
 * A weight is value x scale, with scale = (largest size of the row's weights) / (largest of the type), so no code saturates. Only exactly
 * rounded operations are used: the CPU and the GPU get the same bytes.
 *
 *   row                                      scale     codes
 *   largest size below CODE_TINY (8e-31)     0         0: a row of zeros is all zero bytes
 *   a NaN or an infinity among the weights   NaN       0: every weight of the row is read as NaN until the row is stored again
 *
 * A weight / scale within CODE_CLOSE steps of a code gets this code, whatever the draw. So a row that is fetched and stored has the
 * same bytes again, although the quotient may be wrong by 3 ulp (2.3e-5 steps for a code of 127; the scale is the same to the bit:
 * fl(fl(fl(m / 127) x 127) / 127) = fl(m / 127) for all 2^23 fractions of m, and so for 448). The change that this loses is
 * 2^-22 of the row's largest weight, about what float32 loses. */

#define CODE_TINY  0x0D800000u /* bits of 2^-100: a scale that is not 0 is then no denormal number */
#define CODE_NAN   0x7FC00000u
#define CODE_CLOSE 0.000030517578125f /* 2^-15 */

/* Returns the scale of a row. largest_bits: the greatest of its weights' bits without signs. */
FN float code_scale(uint32_t largest_bits, int float8) {
    const uint32_t most = 0x7F7FFFF0u; /* a little below the largest float32, so that no value x scale is infinite */
    if (largest_bits >= 0x7F800000u) return float_of_bits(CODE_NAN);
    if (largest_bits < CODE_TINY) return 0;
    return float_of_bits(largest_bits < most ? largest_bits : most) / (float8 ? 448.0f : 127.0f);
}

/* Returns the draw as a number between 0 and 1. 0.5 instead rounds to nearest, and of two equally near codes to the larger one. */
FN float code_chance(uint32_t random16) {
    return (float)(2 * random16 + 1) * 0x1p-17f;
}

/* Returns `size`, a number of steps from 0 on, rounded up or down. */
FN uint32_t code_steps(float size, float chance) {
    uint32_t whole = (uint32_t)(int32_t)size;
    float rest = size - (float)(int32_t)whole;
    return whole + (rest > 1 - CODE_CLOSE || (rest > CODE_CLOSE && rest >= chance));
}

/* int8_code() and float8_code() return the code of a weight / scale; int8_value() and float8_value() return a code's value. */
FN uint8_t int8_code(float x, float chance) {
    uint32_t steps = code_steps(fabsf(x), chance);
    steps = steps < 127 ? steps : 127;
    return (uint8_t)(x < 0 ? 0u - steps : steps);
}
FN float int8_value(uint8_t code) {
    return (float)(int8_t)code;
}
FN uint8_t float8_code(float x, float chance) {
    uint32_t bits = bits_of_float(x), exponent = bits >> 23 & 255, least = 127 - 6;
    exponent = exponent > least ? exponent : least;
    uint32_t steps = ((exponent - least) << 3) + code_steps(fabsf(x) * float_of_bits((127 + 127 + 3 - exponent) << 23), chance);
    steps = steps < 126 ? steps : 126; /* 127 would be a NaN */
    return (uint8_t)(steps | (bits >> 24 & 128));
}
FN float float8_value(uint8_t code) {
    uint32_t exponent = code >> 3 & 15, fraction = code & 7;
    float size = exponent ? float_of_bits((exponent + 120) << 23 | fraction << 20) : (float)(int32_t)fraction * 0x1p-9f;
    return code & 128 ? -size : size;
}

/* ---- bits ---- */

FN uint32_t round_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

/* Return the key of a step, made from (seed, purpose, table, global step), and the key of a row in that step. */
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

/* Returns the index of the group of eight columns that begins at `column`, counted from this process's first column. */
FN uint32_t round_index(const struct rounding *r, uint32_t column, uint32_t slot) {
    return (r->column + column) / ROUND_GROUP | slot << 16;
}

/* Returns 128 random bits, as four numbers, with which the eight columns of group `index` (round_index()) of the row with this key are rounded. */
FN struct draw4 round_words(uint32_t row_key, uint32_t index) {
    struct draw4 words;
    words.word[0] = round_mix(row_key + index * ROUND_STEP);
    words.word[1] = round_more(words.word[0], ROUND_SECOND);
    words.word[2] = round_more(words.word[0], ROUND_THIRD);
    words.word[3] = round_more(words.word[0], ROUND_FOURTH);
    return words;
}

/* Returns the 16 random bits for column `column` from the words of its group. */
FN uint32_t round_bits(struct draw4 words, uint32_t column) {
    uint32_t pair = column % ROUND_GROUP / 2, low = pair & 1 ? words.word[1] : words.word[0],
             high = pair & 1 ? words.word[3] : words.word[2], word = pair & 2 ? high : low;
    return column & 1 ? word >> 16 : word & 0xFFFFu;
}

/* ---- bits for lock-free training, which rounds two or four columns at a time ---- */

/* Returns the random bits for columns 2 x pair (lower half) and 2 x pair + 1 (upper half) of the row with this key. */
FN uint32_t round_pair(uint32_t row_key, uint32_t pair) {
    uint32_t x = row_key + pair * ROUND_STEP;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    x *= 0x297A2D39u;
    return x ^ x >> 15;
}

#endif
