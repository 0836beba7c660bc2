#include "vectors/numeric.h"

#include "tests/testing.h"

static void are_equal(const uint32_t *found, const uint32_t *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) assert_int_equal(found[i], wanted[i]);
}

/* NumPy 2.0: r = default_rng(7); r.integers(0, 10, 12), r.integers(0, 2708, 5), r.permutation(12) */
static void one_draw_after_another(void **state) {
    static const uint32_t below_10[] = {9, 6, 6, 8, 5, 7, 8, 2, 0, 3, 2, 8}, below_2708[] = {2471, 14, 1353, 2223, 355},
                          order_of_12[] = {4, 10, 6, 3, 0, 11, 5, 2, 8, 7, 1, 9};
    struct numpy_draws draws = numpy_draws_make(7);
    uint32_t found[12];
    for (int i = 0; i < 12; i++) found[i] = numpy_draws_below(&draws, 10);
    are_equal(found, below_10, 12);
    for (int i = 0; i < 5; i++) found[i] = numpy_draws_below(&draws, 2708);
    are_equal(found, below_2708, 5);
    numpy_draws_permutation(&draws, found, 12);
    are_equal(found, order_of_12, 12);
}

/* default_rng(0).permutation(9); r = default_rng(3); r.integers(0, 3000000000, 4), r.choice(12000, 500, replace=False)
 */
static void seeds_numbers_past_31_bits_and_choices(void **state) {
    static const uint32_t order_of_9[] = {4, 5, 2, 6, 3, 8, 7, 0, 1},
                          large[] = {2434513622u, 256947500, 538322202, 710431519},
                          chosen[] = {8020, 3036, 6642, 8508, 7502, 8970};
    uint32_t found[500];
    struct numpy_draws draws = numpy_draws_make(0);
    numpy_draws_permutation(&draws, found, 9);
    are_equal(found, order_of_9, 9);
    draws = numpy_draws_make(3);
    for (int i = 0; i < 4; i++) found[i] = numpy_draws_below(&draws, 3000000000u);
    are_equal(found, large, 4);
    assert_int_equal(numpy_draws_choice(&draws, found, 500, 12000), 0);
    are_equal(found, chosen, 6);
}

/* A range with a single number needs no draw. Every permutation contains each number once. */
static void small_ranges(void **state) {
    struct numpy_draws draws = numpy_draws_make(1), same = draws;
    uint32_t order[100], seen[100] = {0};
    assert_int_equal(numpy_draws_below(&draws, 1), 0);
    assert_int_equal(numpy_draws_below(&draws, (uint64_t)1 << 32), numpy_draws_below(&same, (uint64_t)1 << 32));
    for (uint64_t n = 0; n <= 100; n++) {
        numpy_draws_permutation(&draws, order, n);
        for (uint64_t i = 0; i < n; i++) seen[order[i]]++;
    }
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(seen[i], 100 - i);
    assert_int_equal(numpy_draws_choice(&draws, order, 100, 100), 0);
    for (uint32_t i = 0; i < 100; i++) seen[order[i]] = 0;
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(seen[i], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_draw_after_another),
        cmocka_unit_test(seeds_numbers_past_31_bits_and_choices),
        cmocka_unit_test(small_ranges),
    };
    return cmocka_run_group_tests_name("numpy_draws", tests, NULL, NULL);
}
