#include "vectors/numeric.h"

#include "tests/testing.h"

enum { COUNT = 90, DIM = 5 };

/* Makes rows of unit length around five directions, row i around direction i % 5. */
static void make_rows(float *rows) {
    uint32_t noise = 3;
    for (int row = 0; row < COUNT; row++) {
        double squares = 0;
        for (int i = 0; i < DIM; i++) {
            noise = noise * 1664525u + 1013904223u;
            double value = (i == row * 2 % DIM) + 0.3 * ((double)noise / 4294967296 - 0.5);
            rows[row * DIM + i] = (float)value;
            squares += value * value;
        }
        for (int i = 0; i < DIM; i++) rows[row * DIM + i] /= (float)sqrt(squares);
    }
}

static struct pool *pool;

static int find(uint32_t *cluster, uint32_t *found, const float *rows, uint64_t count, uint32_t most) {
    return clusters_find(cluster, found, &(struct clusters_request){rows, count, DIM, most, 4, 30, pool});
}

static void directions_are_found(void **state) {
    float rows[COUNT * DIM];
    uint32_t cluster[COUNT], again[COUNT];
    uint32_t found;
    make_rows(rows);
    assert_int_equal(find(cluster, &found, rows, COUNT, DIM), 0);
    assert_int_equal(found, DIM);
    for (int row = 0; row < COUNT; row++) assert_int_equal(cluster[row], row % DIM); /* clusters are numbered in the order of
                                                                                      * their first rows */
    assert_int_equal(find(again, &found, rows, COUNT, DIM), 0);
    assert_memory_equal(cluster, again, sizeof cluster);
    pool = pool_open(3);
    assert_int_equal(find(again, &found, rows, COUNT, DIM), 0);
    assert_memory_equal(cluster, again, sizeof cluster);
    pool_close(pool);
    pool = NULL;
}

/* Tries rows that are all equal, rows of zeros, and fewer rows than clusters. */
static void rows_without_directions(void **state) {
    float rows[COUNT * DIM] = {0};
    uint32_t cluster[COUNT];
    uint32_t found;
    assert_int_equal(find(cluster, &found, rows, COUNT, 4), 0);
    assert_int_equal(found, 1);
    for (int row = 0; row < COUNT; row++) rows[row * DIM + 1] = 1;
    assert_int_equal(find(cluster, &found, rows, COUNT, 4), 0);
    assert_int_equal(found, 1);
    make_rows(rows);
    assert_int_equal(find(cluster, &found, rows, 2, 4), 0);
    assert_int_equal(found, 2);
    assert_int_equal(cluster[1], 1);
    assert_int_equal(find(cluster, &found, rows, 1, 1), 0);
    assert_int_equal(found, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions_are_found),
        cmocka_unit_test(rows_without_directions),
    };
    return cmocka_run_group_tests_name("clusters", tests, NULL, NULL);
}
