/* rows_kept: fields of bfloat16 (kernels/rounding.h). It is a part of rows.c, which is compiled once a level, and the
 * only place of the CPU backend that knows how such a field is read and written. Loops are plain C, for the compiler to
 * make vectors of; bits of a draw lie in memory in the order of its columns, on processors that store the lower byte
 * first.
 */
#ifndef SPTX_CPU_ROWS_KEPT_H
#define SPTX_CPU_ROWS_KEPT_H

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half of a word is the first column's");

enum { DRAWN = 16, DRAWN_COLUMNS = DRAWN * ROUND_GROUP }; /* groups of columns whose bits are drawn at once */

static void widen(const uint16_t *restrict kept, uint32_t columns, float *restrict out) {
    for (uint32_t j = 0; j < columns; j++) out[j] = bfloat16_value(kept[j]);
}

/* ---- bits ---- */

INLINE uint32_t high_of(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* Philox4x32-10 of DRAWN counters that differ in their last word: the same as draw_at(). The loops over counters must
 * not be unrolled before the compiler looks for vectors in them. */
INLINE void philox(const struct cpu_draws *of, uint32_t index, uint32_t *restrict words) {
    uint32_t a[DRAWN], b[DRAWN], c[DRAWN], d[DRAWN], key0 = of->of->seed, key1 = of->purpose;
    uint32_t low = (uint32_t)of->global_step, high = (uint32_t)(of->global_step >> 32);
    _Pragma("GCC unroll 1") for (uint32_t i = 0; i < DRAWN; i++) a[i] = low, b[i] = high, c[i] = of->row,
                                                                 d[i] = index + i;
    for (int round = 0; round < 10; round++, key0 += PHILOX_W32_0, key1 += PHILOX_W32_1) {
        _Pragma("GCC unroll 1") for (uint32_t i = 0; i < DRAWN; i++) {
            uint32_t next_a = high_of(c[i], PHILOX_M4x32_1) ^ b[i] ^ key0,
                     next_c = high_of(a[i], PHILOX_M4x32_0) ^ d[i] ^ key1;
            b[i] = c[i] * PHILOX_M4x32_1, d[i] = a[i] * PHILOX_M4x32_0;
            a[i] = next_a, c[i] = next_c;
        }
    }
    for (uint32_t i = 0; i < DRAWN; i++)
        words[4 * i] = a[i], words[4 * i + 1] = b[i], words[4 * i + 2] = c[i], words[4 * i + 3] = d[i];
}

/* ---- writing ---- */

typedef uint32_t vec_bits __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_signed __attribute__((vector_size(4 * LANES)));
typedef uint16_t vec_kept __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

INLINE vec load_kept(const uint16_t *from) {
    return (vec)(__builtin_convertvector(*(const vec_kept *)from, vec_bits) << 16);
}

/* bfloat16_round() of a vector. */
INLINE void round_vector(uint16_t *kept, vec values, const uint16_t *random) {
    vec_bits bits = (vec_bits)values;
    vec_signed size = (vec_signed)(bits & 0x7FFFFFFFu);
    bits += __builtin_convertvector(*(const vec_kept *)random, vec_bits) & (vec_bits)(size < (int32_t)BFLOAT16_LARGEST);
    bits |= BFLOAT16_NAN & (vec_bits)(size > 0x7F800000);
    *(vec_kept *)kept = __builtin_convertvector(bits >> 16, vec_kept);
}

/* The bits of a tile of columns, as words of draws and as columns. */
union tile_bits {
    uint32_t word[DRAWN_COLUMNS / 2];
    uint16_t column[DRAWN_COLUMNS];
};

static void write_kept(uint16_t *kept, const float *values, uint32_t columns, const struct cpu_draws *draws) {
    union tile_bits bits;
    for (uint32_t at = 0; at < columns; at += DRAWN_COLUMNS) {
        uint32_t end = columns - at < DRAWN_COLUMNS ? columns : at + DRAWN_COLUMNS, j = at;
        philox(draws, round_index(draws->of, at, draws->slot), bits.word);
        for (; j + LANES <= end; j += LANES) round_vector(kept + j, load(values + j), bits.column + (j - at));
        for (; j < end; j++) kept[j] = bfloat16_round(values[j], bits.column[j - at]);
    }
}

static void add_kept(uint16_t *kept, const float *gain, uint32_t columns, uint32_t row_key) {
    union tile_bits bits;
    for (uint32_t at = 0; at < columns; at += DRAWN_COLUMNS) {
        uint32_t end = columns - at < DRAWN_COLUMNS ? columns : at + DRAWN_COLUMNS, j = at;
        for (uint32_t i = 0; i < (end - at + 1) / 2; i++) bits.word[i] = round_pair(row_key, at / 2 + i);
        for (; j + LANES <= end; j += LANES)
            round_vector(kept + j, load_kept(kept + j) + load(gain + j), bits.column + (j - at));
        for (; j < end; j++) kept[j] = bfloat16_round(bfloat16_value(kept[j]) + gain[j], bits.column[j - at]);
    }
}

/* ---- sums ---- */

INLINE void combine_some(float *restrict sum, const float *factors, uint64_t stride, const uint16_t *const *rows,
                         const int count, uint32_t dim) {
    const uint16_t *restrict row[4];
    float factor[4];
    for (int i = 0; i < count; i++) row[i] = rows[i], factor[i] = factors[(uint64_t)i * stride];
    for (uint32_t j = 0; j < dim; j++) {
        float all = sum[j];
        _Pragma("GCC unroll 4") for (int i = 0; i < count; i++) all += factor[i] * bfloat16_value(row[i][j]);
        sum[j] = all;
    }
}

static void combine_kept(float *sum, const float *factors, uint64_t stride, const uint16_t *const *rows, uint64_t count,
                         uint32_t dim) {
    for (; count >= 4; count -= 4, rows += 4, factors += 4 * stride) combine_some(sum, factors, stride, rows, 4, dim);
    if (count == 3) combine_some(sum, factors, stride, rows, 3, dim);
    if (count == 2) combine_some(sum, factors, stride, rows, 2, dim);
    if (count == 1) combine_some(sum, factors, stride, rows, 1, dim);
}

#endif
