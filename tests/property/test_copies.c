/* Checks that copies of a table are merged as kernels/hogwild.h defines: a group of columns that no copy has changed keeps its
 * values; to any other group the mean change of the copies that changed it is added. */
#include "tests/testing.h"

#include "cpu_batches.h"

#include "kernels/hogwild.h"
#include "kernels/record.h"

#include <math.h>

enum { ROWS = 37, FIRST = 5, DIM = 22, COPIES = 3 };

/* Copies of one table. A bfloat16 row is read and written in its stored form. */
struct model {
    struct record_layout layout;
    struct backend *backends[COPIES];
    struct backend_table *tables[COPIES];
    struct backend_copies *copies;
};

static void read_copy(struct model *m, int copy, float values[ROWS][DIM]) {
    char *packed = malloc(ROWS * m->layout.packed);
    assert_int_equal(backend_cpu.table_read(m->backends[copy], m->tables[copy], FIRST, ROWS, packed), 0);
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < DIM; j++) {
            const char *at = packed + (uint64_t)row * m->layout.packed;
            values[row][j] = m->layout.halves ? bfloat16_value(((const uint16_t *)at)[j]) : ((const float *)at)[j];
        }
    free(packed);
}

static void write_copy(struct model *m, int copy, float values[ROWS][DIM]) {
    char *packed = calloc(ROWS, m->layout.packed);
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < DIM; j++) {
            char *at = packed + (uint64_t)row * m->layout.packed;
            if (m->layout.halves) ((uint16_t *)at)[j] = bfloat16_nearest(values[row][j]);
            else ((float *)at)[j] = values[row][j];
        }
    assert_int_equal(backend_cpu.table_write(m->backends[copy], m->tables[copy], FIRST, ROWS, packed), 0);
    free(packed);
}

static float any(void) {
    return (float)rand() / (float)RAND_MAX - 0.5f;
}

static struct model open_model(int precision) {
    struct rule_options rule = {.rule = RULE_SGD, .precision = precision};
    struct model m = {.layout = record_layout_make(&rule, DIM)};
    float values[ROWS][DIM];
    for (int copy = 0; copy < COPIES; copy++) {
        struct table_spec spec = {.name = "target", .rows = FIRST + ROWS, .first_row = FIRST, .layout = m.layout, .rounding = {.seed = 1}};
        m.backends[copy] = open_cpu(1 + copy % 2);
        assert_int_equal(backend_cpu.table_open(m.backends[copy], &spec, &m.tables[copy]), 0);
        for (int row = 0; row < ROWS; row++)
            for (int j = 0; j < DIM; j++) values[row][j] = any();
        write_copy(&m, copy, values);
    }
    assert_int_equal(backend_cpu.copies_open(m.backends, m.tables, COPIES, &m.copies), 0);
    return m;
}

static void close_model(struct model *m) {
    backend_cpu.copies_close(m->copies);
    for (int copy = 0; copy < COPIES; copy++) {
        backend_cpu.table_close(m->backends[copy], m->tables[copy]);
        backend_cpu.close(m->backends[copy]);
    }
}

static void check_merges(int precision) {
    static float before[ROWS][DIM], now[COPIES][ROWS][DIM], merged[ROWS][DIM];
    struct model m = open_model(precision);
    for (int round = 0; round < 4; round++) {
        read_copy(&m, 0, before);
        for (int copy = 0; copy < COPIES; copy++) {
            read_copy(&m, copy, now[copy]);
            assert_memory_equal(now[copy], before, sizeof before); /* all copies have the same rows */
            for (int row = 0; row < ROWS; row++)
                for (int j = 0; j < DIM; j++)
                    if (rand() % 3 == 0) now[copy][row][j] += any();
            write_copy(&m, copy, now[copy]);
            read_copy(&m, copy, now[copy]);
        }
        assert_int_equal(backend_cpu.copies_merge(m.copies), 0);
        read_copy(&m, COPIES - 1, merged);
        for (int row = 0; row < ROWS; row++)
            for (int j = 0; j < DIM; j++) {
                double sum = 0;
                int changed = 0, first = j / COPIES_GROUP * COPIES_GROUP, end = first + COPIES_GROUP < DIM ? first + COPIES_GROUP : DIM;
                for (int copy = 0; copy < COPIES; copy++) {
                    changed += memcmp(now[copy][row] + first, before[row] + first, (size_t)(end - first) * sizeof(float)) != 0;
                    sum += (double)now[copy][row][j] - (double)before[row][j];
                }
                double want = (double)before[row][j] + (changed ? sum / changed : 0);
                assert_true(fabs((double)merged[row][j] - want) <= (precision ? 1.0 / 256 * fabs(want) : 1e-6 * (fabs(want) + 1)));
                if (!changed) assert_true(merged[row][j] == before[row][j]);
            }
    }
    close_model(&m);
}

static void merged_by_those_that_changed(void **state) {
    srand(11);
    check_merges(PRECISION_FLOAT32);
    check_merges(PRECISION_BFLOAT16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(merged_by_those_that_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
