/* Tests tables by key of libsptx through sptx.h alone; tests/python/test_keyed_table.py has the rest. */
#include "../testing.h"

#include "sptx.h"

#include "open_cpu.h"

enum { DIM = 4 };

static struct sptx_keyed *open_table(struct sptx_context *context, uint64_t capacity, uint32_t evict) {
    struct sptx_table_options rows;
    struct sptx_keyed_options options;
    struct sptx_keyed *keyed;
    sptx_table_defaults(&rows, sizeof rows);
    sptx_keyed_defaults(&options, sizeof options);
    rows.rows = capacity;
    rows.dim = DIM;
    rows.lr = 1;
    options.evict = evict;
    if (sptx_keyed_open(context, &rows, &options, &keyed)) fail_msg("%s", sptx_error(context));
    return keyed;
}

static struct sptx_keyed_numbers about(const struct sptx_keyed *keyed) {
    struct sptx_keyed_numbers numbers = {.size = sizeof numbers};
    assert_int_equal(sptx_keyed_about(keyed, &numbers), SPTX_OK);
    return numbers;
}

static void keys_get_rows_and_leave(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct sptx_keyed *keyed = open_table(context, 2, SPTX_EVICT_LRU);
    const uint64_t first[] = {0, UINT64_MAX, 0}, more[] = {7}, all[] = {0, UINT64_MAX, 7};
    float rows[3 * DIM], left[DIM], ones[3 * DIM];
    uint64_t count, keys[2], counts[3];
    uint8_t found[3];
    for (int i = 0; i < 3 * DIM; i++) ones[i] = 1;
    assert_int_equal(sptx_keyed_fetch(keyed, first, 3, rows, SPTX_HOST, NULL), SPTX_OK);
    assert_memory_equal(rows, rows + 2 * DIM, DIM * sizeof *rows);
    assert_int_equal(sptx_keyed_update(keyed, first, 3, ones, SPTX_HOST, NULL), SPTX_OK);
    assert_int_equal(sptx_keyed_fetch(keyed, more, 1, rows + 2 * DIM, SPTX_HOST, NULL), SPTX_OK); /* the least key leaves */
    assert_int_equal(sptx_keyed_evicted(keyed, keys, left, 2, &count), SPTX_OK);
    assert_int_equal(count, 1);
    assert_int_equal(keys[0], 0);
    assert_true(left[0] == rows[0] - 2); /* the gradients of two places, with the rate 1 */
    assert_int_equal(sptx_keyed_find(keyed, all, 3, NULL, found, SPTX_HOST, NULL), SPTX_OK);
    assert_true(!found[0] && found[1] && found[2]);
    assert_int_equal(sptx_keyed_counts(keyed, all, 3, counts), SPTX_OK);
    assert_true(counts[0] == 0 && counts[1] == 1 && counts[2] == 1);
    assert_int_equal(sptx_keyed_keys(keyed, keys, 2, &count), SPTX_OK);
    assert_true(count == 2 && keys[0] == 7 && keys[1] == UINT64_MAX);
    assert_int_equal(sptx_keyed_remove(keyed, all, 3, &count), SPTX_OK);
    assert_int_equal(count, 2);
    assert_true(about(keyed).keys == 0 && about(keyed).evictions == 1 && about(keyed).calls == 4);
    assert_int_equal(sptx_table_dim(sptx_keyed_table(keyed)), DIM);
    sptx_close(context); /* closes the table */
}

static void wrong_calls_change_nothing(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_keyed *keyed = open_table(context, 1, SPTX_EVICT_NONE), *none;
    struct sptx_table_options rows;
    struct sptx_keyed_options options;
    const uint64_t two[] = {3, 4};
    float values[2 * DIM] = {0};
    sptx_table_defaults(&rows, sizeof rows);
    sptx_keyed_defaults(&options, sizeof options);
    assert_int_equal(sptx_keyed_open(context, &rows, &options, &none), SPTX_USAGE); /* no capacity */
    assert_null(none);
    rows.rows = 1;
    assert_int_equal(sptx_keyed_open(context, &rows, &options, &none), SPTX_USAGE); /* no columns */
    rows.dim = 1;
    options.evict = 4;
    assert_int_equal(sptx_keyed_open(context, &rows, &options, &none), SPTX_USAGE);
    assert_int_equal(sptx_keyed_open(context, NULL, NULL, &none), SPTX_USAGE);
    assert_int_equal(sptx_keyed_fetch(keyed, two, 2, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "key 3 gets no row"));
    assert_int_equal(sptx_keyed_fetch(keyed, two, 1, NULL, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_fetch(keyed, NULL, 1, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_fetch(keyed, two, 1, values, SPTX_CUDA, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_update(keyed, (const uint64_t *)((const char *)two + 1), 1, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_store(keyed, two, UINT64_MAX, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_fetch(NULL, two, 1, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_keyed_about(keyed, NULL), SPTX_USAGE);
    assert_true(about(keyed).keys == 0 && about(keyed).calls == 0);
    sptx_keyed_close(keyed);
    sptx_keyed_close(NULL);
    sptx_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_get_rows_and_leave), cmocka_unit_test(wrong_calls_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
