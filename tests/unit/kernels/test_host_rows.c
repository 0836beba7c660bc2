/* Moves rows between random places by the host's threads, and compares the result with memcpy(). Rows are shorter and longer
 * than the longest row that is prefetched (1,024 bytes), and threads have fewer and more rows than are prefetched at once (4). */
#include "tests/testing.h"

#include "kernels/backend.h"

enum { HOME_ROWS = 1024, MOST_ROWS = 600, MOST_STRIDE = 4800 };
static unsigned char drawn[3][HOME_ROWS * MOST_STRIDE]; /* what home and the rows begin with */

static const uint64_t strides[] = {16, 752, 1008, 1024, 1040, MOST_STRIDE};
static const unsigned threads[] = {1, 3, 8, 16, 32};
static const uint64_t counts[] = {0, 1, 4, 5, 16, 79, 80, 81, MOST_ROWS};

static void draw(void) {
    for (uint32_t which = 0; which < 3; which++) {
        uint32_t x = (which + 1) * 2654435761u + 1;
        for (uint64_t i = 0; i < sizeof drawn[which]; i++)
            drawn[which][i] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
    }
}

/* Chooses ascending distinct ids, as a batch's row set has them. The table's last row is one of them. */
static void choose(uint32_t *ids, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) ids[i] = (uint32_t)((i + 1) * HOME_ROWS / count - 1);
}

static void check(struct pool *pool, uint64_t stride, uint64_t count) {
    uint64_t home_bytes = HOME_ROWS * stride, row_bytes = MOST_ROWS * stride;
    unsigned char *home = malloc(home_bytes), *wanted = malloc(home_bytes), *rows = malloc(row_bytes), *back = malloc(row_bytes);
    uint32_t ids[MOST_ROWS];
    memcpy(home, drawn[0], home_bytes), memcpy(rows, drawn[1], row_bytes), memcpy(back, drawn[2], row_bytes);
    memcpy(wanted, home, home_bytes);
    choose(ids, count);
    for (uint64_t i = 0; i < count; i++) memcpy(wanted + ids[i] * stride, rows + i * stride, stride);
    assert_int_equal(host_scatter(pool, (char *)home, (char *)rows, ids, count, stride), 0);
    assert_memory_equal(home, wanted, home_bytes);
    unsigned char *untouched = back + count * stride;
    assert_int_equal(host_gather(pool, (char *)back, (char *)home, ids, count, stride), 0);
    assert_memory_equal(back, rows, count * stride);
    assert_memory_equal(untouched, drawn[2] + count * stride, row_bytes - count * stride);
    free(home), free(wanted), free(rows), free(back);
}

static void rows_go_to_their_places_and_come_back(void **state) {
    draw();
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        struct pool *pool = host_pool_open(threads[t]);
        assert_non_null(pool);
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) check(pool, strides[s], counts[c]);
        host_pool_close(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_go_to_their_places_and_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
