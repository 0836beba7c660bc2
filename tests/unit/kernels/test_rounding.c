/* Tests rounding to bfloat16 and to codes: the result for each kind of value, the mean of random results, and the independence of the
 * random bits. */
#include "kernels/rounding.h"

#include "tests/testing.h"

static const uint32_t edges[] = {0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF};
enum { EDGES = sizeof edges / sizeof *edges };

/* A value that bfloat16 can represent is not changed by any random bits. A NaN stays a NaN of the same sign. */
static void kept_values_stay(void **state) {
    for (uint32_t kept = 0; kept < 65536; kept++)
        for (int e = 0; e < EDGES; e++) {
            uint32_t got = bfloat16_round(bfloat16_value((uint16_t)kept), edges[e]);
            uint32_t nan = (kept & 0x7FFF) > 0x7F80 ? 0x40 : 0;
            assert_int_equal(got, kept | nan);
            assert_int_equal(bfloat16_nearest(bfloat16_value((uint16_t)kept)), kept | nan);
        }
}

static void the_ends_of_the_numbers(void **state) {
    for (int e = 0; e < EDGES; e++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t minus = sign << 31, high = sign << 15;
            assert_int_equal(bfloat16_round(float_of_bits(minus), edges[e]), high);                      /* 0 and -0 */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x7F800000), edges[e]), high | 0x7F80); /* infinity */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x7F7FFFFF), edges[e]), high | 0x7F7F); /* the largest number */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x7FFFFFFF), edges[e]), high | 0x7FFF); /* NaNs */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x7F800001), edges[e]), high | 0x7FC0);
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x7F7E8000), edges[e]),
                             high | (edges[e] >= 0x8000 ? 0x7F7F : 0x7F7E)); /* between the two largest numbers */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 1), edges[e]), high | (edges[e] == 0xFFFF)); /* subnormals */
            assert_int_equal(bfloat16_round(float_of_bits(minus | 0x007FFFFF), edges[e]), high | (edges[e] ? 0x80 : 0x7F));
        }
}

static void nearest_goes_to_even(void **state) {
    assert_int_equal(bfloat16_nearest(float_of_bits(0x3F808000)), 0x3F80);
    assert_int_equal(bfloat16_nearest(float_of_bits(0x3F808001)), 0x3F81);
    assert_int_equal(bfloat16_nearest(float_of_bits(0x3F818000)), 0x3F82);
    assert_int_equal(bfloat16_nearest(float_of_bits(0x7F7FFFFF)), 0x7F7F);
}

/* If all 65,536 random bits are tried, the share of results that are rounded up equals the part of the value that bfloat16 cuts
 * off. */
static void all_bits_have_the_exact_mean(void **state) {
    const uint32_t values[] = {0x3DCCCCCD, 0xBE2AAAAB, 0x00000123, 0x7F7EFFFF, 0xC2F6E979};
    for (unsigned v = 0; v < sizeof values / sizeof *values; v++) {
        uint32_t up = 0;
        for (uint32_t random = 0; random < 65536; random++)
            up += bfloat16_round(float_of_bits(values[v]), random) != values[v] >> 16;
        assert_int_equal(up, values[v] & 0xFFFF);
    }
}

/* ---- codes ---- */

static double value64(int float8, uint32_t code) {
    if (!float8) return (int8_t)code;
    uint32_t exponent = code >> 3 & 15, fraction = code & 7;
    double size = exponent ? ldexp(8 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
    return code & 128 ? -size : size;
}

static uint32_t code_of(int float8, float x, float chance) {
    return float8 ? float8_code(x, chance) : int8_code(x, chance);
}

/* A value that a code represents, also after rounding errors of a division by the scale, gives that code again. A value between two codes gives
 * one of the two; the mean over all random bits is right to 1/65,536 of the distance. */
static void codes_and_what_is_between_them(void **state) {
    for (int float8 = 0; float8 < 2; float8++)
        for (uint32_t code = 0; code < 127; code++) {
            double value = value64(float8, code), next = value64(float8, code + 1), step = next - value;
            assert_true((float8 ? float8_value((uint8_t)code) : int8_value((uint8_t)code)) == value);
            for (int ulp = -3; ulp <= 3; ulp++)
                for (int e = 0; e < EDGES && code; e++) {
                    float near = float_of_bits(bits_of_float((float)value) + (uint32_t)ulp);
                    assert_int_equal(code_of(float8, near, code_chance(edges[e])), code);
                    assert_int_equal(code_of(float8, -near, code_chance(edges[e])), float8 ? code | 128 : (uint8_t)-code);
                }
            if (code == 126 && float8) continue; /* the next code is a NaN */
            for (int part = 1; part < 8; part += 2) {
                float between = (float)(value + step * part / 8);
                uint64_t up = 0;
                for (uint32_t random = 0; random < 65536; random += 1 + 6 * (code % 5 != 0)) {
                    uint32_t got = code_of(float8, between, code_chance(random));
                    assert_true(got == code || got == code + 1);
                    up += got == code + 1;
                }
                if (code % 5 == 0) assert_true(fabs((double)up - part * 8192.0) <= 1);
                assert_int_equal(code_of(float8, between, 0.5f), code + (part > 4));
            }
        }
}

static void scales_and_their_ends(void **state) {
    for (int float8 = 0; float8 < 2; float8++) {
        float most = float8 ? 448 : 127;
        assert_true(code_scale(bits_of_float(most), float8) == 1 && code_scale(0, float8) == 0);
        assert_true(code_scale(CODE_TINY - 1, float8) == 0 && code_scale(CODE_TINY, float8) > 1e-33f);
        assert_true(isfinite(code_scale(0x7F7FFFFF, float8) * most));
        assert_int_equal(bits_of_float(code_scale(0x7F800000, float8)), CODE_NAN);
        assert_int_equal(bits_of_float(code_scale(0x7F800001, float8)), CODE_NAN);
        assert_int_equal(code_of(float8, 1000, 0.5f), float8 ? 126 : 127); /* saturates */
        assert_int_equal(code_of(float8, -1000, 0.5f), float8 ? 254 : (uint8_t)-127);
        for (uint32_t bits = 0x3F800000; bits < 0x40000000; bits += 7) { /* a row whose largest value is the largest code x a scale has this scale
                                                                          * again */
            float scale = code_scale(bits, float8), again = code_scale(bits_of_float(scale * most), float8);
            if (scale != again) fail_msg("%08X", bits);
        }
    }
}

/* ---- the bits ---- */

enum { ROWS = 1 << 12, STEPS = 1 << 6, COLUMNS = 64 };

static uint32_t exact_bits(uint32_t row, uint64_t step, uint32_t column) {
    const struct rounding r = {.seed = 7};
    uint32_t key = round_row_key(round_step_key(&r, DRAW_ROUND_WEIGHTS, step), row);
    return round_bits(round_words(key, round_index(&r, column, 0)), column);
}
static uint32_t cheap_bits(uint32_t row, uint64_t step, uint32_t column) {
    const struct rounding r = {.seed = 7};
    uint32_t pair = round_pair(round_row_key(round_step_key(&r, DRAW_ROUND_WEIGHTS, step), row), column / 2);
    return column & 1 ? pair >> 16 : pair & 0xFFFF;
}
/* Returns the random bits as the GPU makes them in lock-free training: two words, the second made of the first, give the bits of
 * four columns. */
static uint32_t quad_bits(uint32_t row, uint64_t step, uint32_t column) {
    const struct rounding r = {.seed = 7};
    uint32_t pair = round_pair(round_row_key(round_step_key(&r, DRAW_ROUND_WEIGHTS, step), row), column / 4);
    if (column & 2) pair = round_more(pair, ROUND_SECOND);
    return column & 1 ? pair >> 16 : pair & 0xFFFF;
}

typedef uint32_t bits_at(uint32_t row, uint64_t step, uint32_t column);

/* Maps bits to a number in [-1/2, 1/2). The mean of such numbers is 0, and so is the mean of the product of two independent
 * ones. */
static double centred(uint32_t bits) {
    return (bits + 0.5) / 65536 - 0.5;
}

/* Checks that the mean of n numbers, and of n products, is within 3.5 standard deviations of 0. One number has sqrt(1 / 12), one
 * product 1 / 12. */
static void check_laws(bits_at *bits) {
    double sum = 0, by_column = 0, by_next = 0, by_fourth = 0, by_row = 0, by_step = 0, n = (double)ROWS * STEPS * COLUMNS;
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t step = 0; step < STEPS; step++)
            for (uint32_t column = 0; column < COLUMNS; column++) {
                double here = centred(bits(row, step, column));
                sum += here;
                by_column += here * centred(bits(row, step, column + 1));
                by_next += here * centred(bits(row, step, column + 2));
                by_fourth += here * centred(bits(row, step, column + 4));
                by_row += here * centred(bits(row + 1, step, column));
                by_step += here * centred(bits(row, step + 1, column));
            }
    double bound = 3.5 / sqrt(n);
    assert_true(fabs(sum / n) < bound * sqrt(1.0 / 12));
    assert_true(fabs(by_column / n) < bound / 12);
    assert_true(fabs(by_next / n) < bound / 12);
    assert_true(fabs(by_fourth / n) < bound / 12);
    assert_true(fabs(by_row / n) < bound / 12);
    assert_true(fabs(by_step / n) < bound / 12);
}

static void bits_know_nothing_of_their_neighbours(void **state) {
    check_laws(exact_bits);
    check_laws(cheap_bits);
    check_laws(quad_bits);
}

/* The bits depend on the number of the column in the whole row, so that several ranks round as one process does. */
static void ranks_have_the_bits_of_their_own_columns(void **state) {
    const struct rounding whole = {.seed = 3, .table = 1}, part = {.seed = 3, .table = 1, .column = 16};
    assert_int_equal(round_step_key(&whole, DRAW_ROUND_STATE, 5), round_step_key(&part, DRAW_ROUND_STATE, 5));
    assert_int_equal(round_index(&whole, 24, 2), round_index(&part, 8, 2));
    assert_int_not_equal(round_index(&whole, 24, 2), round_index(&part, 8, 1));
}

/* Two roundings have different keys if their seed, table, step or purpose differs. */
static void what_is_rounded_has_its_own_bits(void **state) {
    const struct rounding targets = {.seed = 3}, contexts = {.seed = 3, .table = 1}, other = {.seed = 4};
    uint32_t keys[] = {round_step_key(&targets, DRAW_ROUND_WEIGHTS, 5),  round_step_key(&contexts, DRAW_ROUND_WEIGHTS, 5),
                       round_step_key(&other, DRAW_ROUND_WEIGHTS, 5),    round_step_key(&targets, DRAW_ROUND_STATE, 5),
                       round_step_key(&targets, DRAW_ROUND_STORE, 5),    round_step_key(&targets, DRAW_ROUND_WEIGHTS, 6),
                       round_step_key(&targets, DRAW_ROUND_WEIGHTS, 5 + (UINT64_C(1) << 32))};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t j = 0; j < i; j++) assert_int_not_equal(keys[i], keys[j]);
}

static void bits_are_the_halves_of_their_words_in_order(void **state) {
    struct draw4 words = {{0x00010000, 0x00030002, 0x00050004, 0x00070006}};
    for (uint32_t column = 0; column < 16; column++) assert_int_equal(round_bits(words, column), column % 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_values_stay),
        cmocka_unit_test(the_ends_of_the_numbers),
        cmocka_unit_test(nearest_goes_to_even),
        cmocka_unit_test(all_bits_have_the_exact_mean),
        cmocka_unit_test(codes_and_what_is_between_them),
        cmocka_unit_test(scales_and_their_ends),
        cmocka_unit_test(bits_know_nothing_of_their_neighbours),
        cmocka_unit_test(ranks_have_the_bits_of_their_own_columns),
        cmocka_unit_test(what_is_rounded_has_its_own_bits),
        cmocka_unit_test(bits_are_the_halves_of_their_words_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
