/* Checks how copies of a row are merged (kernels/hogwild.h): a group of columns that no copy has changed keeps its values; to any other
 * group the mean change of the copies that changed it is added. tests/gpu/copies.c merges tables. */
#include "tests/testing.h"

#include "kernels/hogwild.h"

#include <math.h>

static float any(void) {
    return (float)rand() / (float)RAND_MAX - 0.5f;
}

static void merged_by_those_that_changed(void **state) {
    float base[COPIES_GROUP], merged[COPIES_GROUP], copies[COPIES_MOST][COPIES_GROUP];
    srand(11);
    for (int round = 0; round < 20000; round++) {
        unsigned count = 1 + (unsigned)rand() % COPIES_MOST, changed = 0;
        double sum[COPIES_GROUP] = {0};
        for (int j = 0; j < COPIES_GROUP; j++) merged[j] = base[j] = any();
        for (unsigned copy = 0; copy < count; copy++) {
            memcpy(copies[copy], base, sizeof base);
            for (int j = 0; j < COPIES_GROUP; j++)
                if (rand() % 5 == 0) copies[copy][j] += any();
            changed += memcmp(copies[copy], base, sizeof base) != 0;
            for (int j = 0; j < COPIES_GROUP; j++) sum[j] += (double)copies[copy][j] - (double)base[j];
        }
        copies_merge_group(merged, copies[0], count);
        if (!changed) assert_memory_equal(merged, base, sizeof base);
        for (int j = 0; j < COPIES_GROUP; j++)
            assert_true(fabs((double)merged[j] - (double)base[j] - (changed ? sum[j] / changed : 0)) <= 1e-6 * (fabs((double)base[j]) + 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(merged_by_those_that_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
