#include "tests/testing.h"

#include "corpus/generate.h"

/* The result for k is the lowest e whose power, rounded down, is at least k. */
static void the_logarithm_is_the_lowest_that_reaches(void **state) {
    static const uint64_t numbers[] = {2, 3, 4, 5, 7, 8, 513, 2048, 4097, 65536, 999999937, 4294967295, (uint64_t)1 << 33};
    struct powers powers;
    powers_init(&powers);
    assert_int_equal(powers_log(&powers, 1), 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t e = powers_log(&powers, numbers[i]);
        assert_int_equal(powers_floor(&powers, e), numbers[i]);
        assert_int_equal(powers_floor(&powers, e - 1), numbers[i] - 1);
        assert_true(fabs(ldexp((double)e, -POWERS_POINT) - log2((double)numbers[i])) < 1e-6);
    }
}

static void powers_never_fall(void **state) {
    struct powers powers;
    powers_init(&powers);
    uint64_t end = powers_log(&powers, 100), last = 0;
    for (uint64_t e = 0; e < end; e += end / 100000) {
        uint64_t power = powers_floor(&powers, e);
        assert_true(power >= last && power < 100);
        last = power;
    }
    assert_int_equal(last, 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_is_the_lowest_that_reaches),
        cmocka_unit_test(powers_never_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
