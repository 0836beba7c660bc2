#include "tests/testing.h"

#include "train/trainer.h"

#include "tests/unit/fake_tables.h"

enum { ROWS = 200, DIM = 16 };

static struct backend device;
static struct table table;
static uint32_t columns = DIM; /* number of columns of the whole table, over all ranks */

/* Opens a table in which row r, column c has the number value(r, c). */
static void open_table(float (*value)(uint64_t row, uint32_t column)) {
    struct rule_options sgd = {.rule = RULE_SGD};
    struct table_spec spec = {.rows = ROWS, .layout = record_layout_make(&sgd, DIM)};
    float row[DIM];
    device = (struct backend){.ops = &fake_ops};
    table = (struct table){.ops = &fake_ops, .backend = &device, .spec = spec, .whole = {.dim = columns}};
    assert_int_equal(fake_open(&device, &spec, &table.store), 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < DIM; k++) row[k] = value(i, k);
        assert_int_equal(fake_write(&device, table.store, i, 1, row), 0);
    }
}

static double cosine_of(float (*value)(uint64_t row, uint32_t column), uint64_t first, uint64_t end) {
    double mean = 0;
    open_table(value);
    assert_int_equal(told_apart_cosine(&table, first, end, &mean), 0);
    fake_close(&device, table.store);
    return mean;
}

static float one_direction(uint64_t row, uint32_t column) {
    return (float)(row + 1) * (float)(column + 1);
}
static float two_directions(uint64_t row, uint32_t column) {
    return (uint32_t)(row % 2) == column;
}
static float zeros(uint64_t row, uint32_t column) {
    return 0 * (float)(row + column);
}

static void rows_of_one_direction_have_cosines_of_1(void **state) {
    assert_float_equal(cosine_of(one_direction, 0, ROWS), 1, 1e-5);
    assert_float_equal(cosine_of(one_direction, 7, 9), 1, 1e-5);
}

/* Rows of two directions: of the 6 pairs of 4 rows, 2 have cosine 1 and 4 have cosine 0. Rows of zeros have cosine 0. */
static void lengths_do_not_count(void **state) {
    assert_float_equal(cosine_of(two_directions, 0, 4), 2.0 / 6, 1e-5);
    assert_float_equal(cosine_of(zeros, 0, ROWS), 0, 1e-9);
}

static void one_row_has_no_pair(void **state) {
    assert_true(isnan(cosine_of(one_direction, 3, 4)));
    assert_true(isnan(cosine_of(one_direction, 4, 4)));
}

static void tables_of_few_columns_are_not_judged(void **state) {
    columns = 15;
    assert_true(isnan(cosine_of(one_direction, 0, ROWS)));
    columns = DIM;
}

static void a_row_that_cannot_be_read_fails(void **state) {
    double mean;
    open_table(one_direction);
    device.fail_read_at = 5;
    assert_int_equal(told_apart_cosine(&table, 0, ROWS, &mean), -1);
    fake_close(&device, table.store);
    report_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_one_direction_have_cosines_of_1), cmocka_unit_test(lengths_do_not_count),
                                       cmocka_unit_test(one_row_has_no_pair), cmocka_unit_test(tables_of_few_columns_are_not_judged),
                                       cmocka_unit_test(a_row_that_cannot_be_read_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
