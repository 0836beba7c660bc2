#include "rows/values.h"

#include "tests/testing.h"

static const double pi = 3.14159265358979323846;

/* Compares the pair made of two random words with the same formula by the C library's functions. */
static void check_pair(uint32_t x, uint32_t y) {
    uint32_t words[2] = {x, y};
    double got[2], radius = sqrt(-2 * log((x + 1.0) / 4294967296.0)), angle = 2 * pi * (y / 4294967296.0);
    normal_values(words, 2, got);
    if (!(fabs(got[0] - radius * cos(angle)) <= 1e-11 && fabs(got[1] - radius * sin(angle)) <= 1e-11))
        fail_msg("words %u, %u: %.17g, %.17g; wanted %.17g, %.17g", x, y, got[0], got[1], radius * cos(angle),
                 radius * sin(angle));
}

/* Tests the words at which the computation changes: powers of two, half of the mantissa, a quarter of a turn, and the first and last words. */
static void ends(void **state) {
    static const uint32_t words[] = {0,          1,          2,          3,          0x3FFFFFFF, 0x40000000, 0x40000001,
                                     0x5A827999, 0x5A82799A, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xB504F332, 0xB504F333,
                                     0xB504F334, 0xBFFFFFFF, 0xC0000000, 0xC0000001, 0xFFFFFFFE, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) check_pair(words[i], words[j]);
}

static void everywhere(void **state) {
    uint32_t x = 1;
    for (int i = 0; i < 500000; i++) {
        uint32_t y = x * 1664525u + 1013904223u;
        check_pair(x >> (i % 31), y); /* small words make large values */
        x = y * 1664525u + 1013904223u;
    }
}

/* A pair must not depend on how many pairs a call makes. */
static void counts(void **state) {
    uint32_t words[130];
    double all[130], two[2];
    for (uint32_t i = 0; i < 130; i++) words[i] = i * 2654435769u;
    for (uint32_t count = 0; count <= 130; count += 2) {
        for (uint32_t i = 0; i < 130; i++) all[i] = -1000;
        normal_values(words, count, all);
        for (uint32_t i = 0; i < count; i += 2) {
            normal_values(words + i, 2, two);
            assert_true(all[i] == two[0] && all[i + 1] == two[1]);
        }
        for (uint32_t i = count; i < 130; i++) assert_true(all[i] == -1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),
        cmocka_unit_test(everywhere),
        cmocka_unit_test(counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
