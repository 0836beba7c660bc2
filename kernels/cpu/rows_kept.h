/* rows_kept: bfloat16 fields (kernels/rounding.h). Part of rows.c, which is compiled once for each level; the only code of the
 * CPU backend that knows how such a field is stored. Loops are plain C, which the compiler vectorizes. Random bits are stored in
 * the order of their columns; this needs a processor that stores the lower byte first. */
#ifndef SPTX_CPU_ROWS_KEPT_H
#define SPTX_CPU_ROWS_KEPT_H

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half of a word is the first column's");

enum { DRAWN = 16, DRAWN_COLUMNS = DRAWN * ROUND_GROUP }; /* groups of columns whose random bits are made together */

static void widen(const uint16_t *restrict kept, uint32_t columns, float *restrict out) {
    for (uint32_t j = 0; j < columns; j++) out[j] = bfloat16_value(kept[j]);
}

/* ---- bits ---- */

/* Computes round_words() for DRAWN indices from `index` on. The loop must not be unrolled before the compiler vectorizes it. */
INLINE void words_from(uint32_t row_key, uint32_t index, uint32_t *restrict words) {
    _Pragma("GCC unroll 1") for (uint32_t i = 0; i < DRAWN; i++) {
        struct draw4 own = round_words(row_key, index + i);
        for (int word = 0; word < 4; word++) words[4 * i + word] = own.word[word];
    }
}

/* ---- writing ---- */

typedef uint32_t vec_bits __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_signed __attribute__((vector_size(4 * LANES)));
typedef uint16_t vec_kept __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* Does bfloat16_round() for a vector. */
INLINE void round_vector(uint16_t *kept, vec values, const uint16_t *random) {
    vec_bits bits = (vec_bits)values;
    vec_signed size = (vec_signed)(bits & 0x7FFFFFFFu);
    bits += __builtin_convertvector(*(const vec_kept *)random, vec_bits) & (vec_bits)(size < (int32_t)BFLOAT16_LARGEST);
    bits |= BFLOAT16_NAN & (vec_bits)(size > 0x7F800000);
    *(vec_kept *)kept = __builtin_convertvector(bits >> 16, vec_kept);
}

/* Random bits for a tile of columns, seen as 32-bit words or as 16 bits a column. */
union tile_bits {
    uint32_t word[DRAWN_COLUMNS / 2];
    uint16_t column[DRAWN_COLUMNS];
};

static void write_kept(uint16_t *kept, const float *values, uint32_t columns, const struct cpu_draws *draws) {
    union tile_bits bits;
    uint32_t row_key = round_row_key(round_step_key(draws->of, draws->purpose, draws->global_step), draws->row);
    for (uint32_t at = 0; at < columns; at += DRAWN_COLUMNS) {
        uint32_t end = columns - at < DRAWN_COLUMNS ? columns : at + DRAWN_COLUMNS, j = at;
        words_from(row_key, round_index(draws->of, at, draws->slot), bits.word);
        for (; j + LANES <= end; j += LANES) round_vector(kept + j, load(values + j), bits.column + (j - at));
        for (; j < end; j++) kept[j] = bfloat16_round(values[j], bits.column[j - at]);
    }
}

/* ---- lock-free ---- */

/* PAIRS: pairs of neighbouring columns that are read or rounded together; PAIRED: number of their columns. */
enum { PAIRS = LANES, PAIRED = 2 * LANES };
typedef uint32_t vec_pairs __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

/* Reads PAIRED columns, as one vector of even and one of odd columns. A pair of columns is one 32-bit lane, so nothing moves
 * between lanes. */
INLINE void read_pairs(const uint16_t *kept, vec_bits *even, vec_bits *odd) {
    vec_bits pairs = *(const vec_pairs *)kept;
    *even = pairs << 16;
    *odd = pairs & 0xFFFF0000u;
}

INLINE void store_pairs(uint16_t *kept, vec_bits even, vec_bits odd) {
    *(vec_pairs *)kept = even >> 16 | (odd & 0xFFFF0000u);
}

INLINE int any_lane(vec_signed lanes) {
    union {
        vec_signed all;
        uint64_t part[LANES / 2];
    } of = {lanes};
    uint64_t some = 0;
#pragma GCC unroll 8
    for (int i = 0; i < LANES / 2; i++) some |= of.part[i];
    return some != 0;
}

/* Adds the random bits. If no value is near the largest bfloat16, which is nearly always so, it skips the checks of each lane. */
INLINE void round_pairs(vec_bits *even, vec_bits *odd, vec_bits random) {
    vec_bits low = random & 0xFFFFu, high = random >> 16;
    vec_signed one = (vec_signed)(*even & 0x7FFFFFFFu), other = (vec_signed)(*odd & 0x7FFFFFFFu);
    vec_signed far = (one >= (int32_t)BFLOAT16_LARGEST) | (other >= (int32_t)BFLOAT16_LARGEST);
    if (__builtin_expect(any_lane(far), 0)) {
        low &= (vec_bits)(one < (int32_t)BFLOAT16_LARGEST), high &= (vec_bits)(other < (int32_t)BFLOAT16_LARGEST);
        *even |= BFLOAT16_NAN & (vec_bits)(one > 0x7F800000), *odd |= BFLOAT16_NAN & (vec_bits)(other > 0x7F800000);
    }
    *even += low, *odd += high;
}

/* Computes round_pair() for pairs from `first` on. */
INLINE vec_bits draw_pairs(uint32_t row_key, uint32_t first) {
    vec_bits x;
#pragma GCC unroll 16
    for (uint32_t i = 0; i < PAIRS; i++) x[i] = i * ROUND_STEP;
    x += row_key + first * ROUND_STEP;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    x *= 0x297A2D39u;
    return x ^ x >> 15;
}

INLINE void read_apart(const uint16_t *kept, float *out) {
    vec_bits even, odd;
    for (uint32_t j = 0; j < CPU_APART; j += PAIRED) {
        read_pairs(kept + j, &even, &odd);
        store(out + j, (vec)even);
        store(out + j + PAIRS, (vec)odd);
    }
}

INLINE void add_some(uint16_t *kept, const float *gain, uint32_t row_key, uint32_t pair) {
    vec_bits even, odd;
    for (uint32_t j = 0; j < CPU_APART; j += PAIRED) {
        read_pairs(kept + j, &even, &odd);
        even = (vec_bits)((vec)even + load(gain + j)), odd = (vec_bits)((vec)odd + load(gain + j + PAIRS));
        round_pairs(&even, &odd, draw_pairs(row_key, pair + j / 2));
        store_pairs(kept + j, even, odd);
    }
}

/* The last columns may be fewer than CPU_APART; they are first copied to an array padded with zeros. */
static void widen_apart(const uint16_t *kept, uint32_t columns, float *out) {
    uint16_t last[CPU_APART] = {0};
    uint32_t j = 0;
    for (; j + CPU_APART <= columns; j += CPU_APART) read_apart(kept + j, out + j);
    if (j == columns) return;
    memcpy(last, kept + j, (columns - j) * sizeof *last);
    read_apart(last, out + j);
}

static void add_apart(uint16_t *kept, const float *gain, uint32_t columns, uint32_t row_key) {
    uint16_t last[CPU_APART] = {0};
    uint32_t j = 0;
    for (; j + CPU_APART <= columns; j += CPU_APART) add_some(kept + j, gain + j, row_key, j / 2);
    if (j == columns) return;
    memcpy(last, kept + j, (columns - j) * sizeof *last);
    add_some(last, gain + j, row_key, j / 2);
    memcpy(kept + j, last, (columns - j) * sizeof *last);
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
