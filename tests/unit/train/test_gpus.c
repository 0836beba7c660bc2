/* Tests the choice of the number of GPUs: for the shapes in scripts/results/gpus.md it must be the number measured as fastest, or one of nearly
 * that speed. */
#include "train/gpus.h"
#include "train/planner.h"

#include "tests/testing.h"

#include <math.h>

/* Returns the number of GPUs, of one, two and four, with the shortest step. */
static uint64_t best_of(double batch_pairs, double floor_pairs, int windows) {
    struct plan plan = {.batch_pairs = batch_pairs, .floor_pairs = floor_pairs};
    double least = INFINITY, seconds;
    uint64_t best = 0;
    for (uint64_t gpus = 1; gpus <= 4; gpus *= 2) {
        assert_int_equal(gpus_seconds(&plan, windows, gpus, &seconds), 0);
        if (seconds < least) least = seconds, best = gpus;
    }
    return best;
}

static void measured_shapes(void **state) {
    assert_int_equal(best_of(65536, 25.1e6, 0), 4);   /* 400 columns, adamax: 17.7, 31.0, 49.5 M pairs/s */
    assert_int_equal(best_of(131072, 125.9e6, 0), 4); /* 188 columns, sgd: 75, 118, 154 */
    assert_int_equal(best_of(131072, 376e6, 0), 2);   /* 64 columns, sgd: 166, 198, 181 */
    assert_int_equal(best_of(191003, 2.54e9, 0), 1);  /* hep-th: 522, 383, 362 */
    assert_int_equal(best_of(26365, 2.17e9, 1), 1);   /* text, steps of 8,192: 372, 360, 351 */
    assert_int_equal(best_of(210924, 624e6, 1), 4);   /* text, 512 columns: 170, 321, 479 */
    assert_int_equal(best_of(648806, 4.2e9, 1), 2);   /* a graph: 1166, 1359, 1465 */
}

static void unknown_speed(void **state) {
    struct plan plan = {.batch_pairs = 1000};
    double seconds;
    assert_int_equal(gpus_seconds(&plan, 0, 2, &seconds), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(measured_shapes), cmocka_unit_test(unknown_speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
