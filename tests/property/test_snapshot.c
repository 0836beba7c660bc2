/* A snapshot has the rows as they were when it began: whatever changes rows while it is read, however small the memory for copies is, and whatever
 * sizes of chunks are read. */
#include "tests/testing.h"

#include "base/report.h"
#include "cpu_batches.h"
#include "random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MOST = 6000, COUNT = 700, DIM_MOST = 200 };

struct shape {
    uint64_t rows, first;
    enum place weights, state;
    int rule, halves;
    uint32_t dim;
    unsigned threads;
};

static struct shape random_shape(void) {
    static const int rules[] = {RULE_SGD, RULE_ADAM, RULE_ROWWISE_ADAGRAD, RULE_ADAMAX};
    struct shape s = {.rows = 1 + below(ROWS_MOST), .rule = rules[below(4)], .halves = (int)below(2)};
    s.threads = 1 + (unsigned)below(3);
    s.first = below(3) ? 0 : below(s.rows);
    s.weights = below(3) ? PLACE_PINNED : PLACE_FILE;
    s.state = below(3) ? PLACE_PINNED : PLACE_FILE;
    s.dim = 1 + (uint32_t)below(DIM_MOST);
    return s;
}

/* A table with its reader, which copies the snapshot's rows to `packed` in chunks of random sizes, with pauses. */
struct reading {
    struct backend *backend;
    struct backend_table *table;
    const struct table_spec *spec;
    char *packed;
    uint64_t stop_at; /* the reader stops before it reads this row */
    uint32_t seed;
    _Atomic int done;
};

static void *read_rows(void *context) {
    struct reading *r = context;
    uint64_t end = r->stop_at;
    for (uint64_t first = r->spec->first_row; first < end;) {
        r->seed = r->seed * 1664525 + 1013904223;
        uint64_t count = 1 + (r->seed >> 8) % 300;
        if (count > end - first) count = end - first;
        if (r->seed >> 30 == 0) usleep(200);
        char *to = r->packed + (first - r->spec->first_row) * r->spec->layout.packed;
        if (backend_cpu.snapshot_read(r->backend, r->table, first, count, to)) abort();
        first += count;
    }
    backend_cpu.snapshot_stop(r->table);
    r->done = 1;
    return NULL;
}

static void change_rows(const struct reading *r, const struct rule_options *rule, uint64_t step) {
    static float values[COUNT * DIM_MOST];
    uint32_t *ids, dim = r->spec->layout.dim;
    uint64_t count = 1 + below(COUNT);
    assert_int_equal(backend_cpu.rows_ids(r->backend, count, &ids), 0);
    for (uint64_t i = 0; i < count; i++) ids[i] = (uint32_t)(r->spec->first_row + below(table_row_count(r->spec)));
    for (uint64_t i = 0; i < count * dim; i++) values[i] = (float)below(1000) / 1000 - 0.5f;
    struct rows_request request = {.table = r->table, .ids = ids, .count = count, .id_bits = 32, .values = values};
    request.rule = rule;
    request.lr = 0.1;
    request.global_step = step;
    assert_int_equal((below(3) ? backend_cpu.rows_update : backend_cpu.rows_store)(r->backend, &request), 0);
}

static char *read_now(const struct reading *r) {
    uint64_t rows = table_row_count(r->spec);
    char *packed = malloc(rows * r->spec->layout.packed);
    assert_non_null(packed);
    assert_int_equal(backend_cpu.table_read(r->backend, r->table, r->spec->first_row, rows, packed), 0);
    return packed;
}

/* Reads a snapshot while rows change, at least until the reader is done. */
static void check_snapshot(struct reading *r, const struct rule_options *rule, uint64_t most, uint64_t *step) {
    pthread_t thread;
    uint64_t rows = table_row_count(r->spec);
    int whole = below(4) > 0;
    char *before = read_now(r);
    r->packed = calloc(rows, r->spec->layout.packed);
    assert_non_null(r->packed);
    r->done = 0;
    r->stop_at = whole ? r->spec->rows : r->spec->first_row + below(rows);
    r->seed = (uint32_t)bits();
    assert_int_equal(backend_cpu.snapshot_begin(r->backend, r->table, most), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_rows, r), 0);
    do change_rows(r, rule, (*step)++);
    while (!r->done);
    pthread_join(thread, NULL);
    change_rows(r, rule, (*step)++); /* rows still change after the last row was read and before the snapshot ends */
    backend_cpu.snapshot_end(r->backend, r->table);
    assert_memory_equal(r->packed, before, (r->stop_at - r->spec->first_row) * r->spec->layout.packed);
    free(before);
    free(r->packed);
}

static void check_shape(const struct shape *shape) {
    struct rule_options rule = {.rule = shape->rule, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    rule.precision = rule.state_precision = shape->halves ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    rule.count_rows = rule_counts(&rule);
    struct table_spec spec = {.name = "target", .file_path = "./snapshot.working", .rows = shape->rows, .first_row = shape->first,
                              .weights = shape->weights, .state = shape->state, .layout = record_layout_make(&rule, shape->dim)};
    struct reading r = {.backend = open_cpu(shape->threads), .spec = &spec};
    uint64_t step = 0;
    assert_int_equal(backend_cpu.table_open(r.backend, &spec, &r.table), 0);
    for (int i = 0; i < 5; i++) change_rows(&r, &rule, step++);
    for (int i = 0; i < 3; i++) check_snapshot(&r, &rule, below(2) ? UINT64_MAX : below(1 << 16), &step);
    backend_cpu.close(r.backend);
}

static void a_snapshot_is_the_table_of_its_beginning(void **state) {
    for (int i = 0; i < 60; i++) {
        struct shape shape = random_shape();
        check_shape(&shape);
    }
}

/* The table has the same rows as a table without a snapshot. */
static void a_snapshot_changes_nothing(void **state) {
    struct rule_options rule = {.rule = RULE_SGD, .lr = 0.1};
    struct table_spec spec = {.name = "target", .rows = 500, .layout = record_layout_make(&rule, 9)};
    char *ends[2];
    for (int with = 0; with < 2; with++) {
        struct reading r = {.backend = open_cpu(2), .spec = &spec};
        state_of_random = 77;
        assert_int_equal(backend_cpu.table_open(r.backend, &spec, &r.table), 0);
        if (with) assert_int_equal(backend_cpu.snapshot_begin(r.backend, r.table, 1 << 20), 0);
        for (uint64_t step = 0; step < 20; step++) change_rows(&r, &rule, step);
        ends[with] = read_now(&r);
        backend_cpu.close(r.backend); /* also frees the snapshot, which was not ended */
    }
    assert_memory_equal(ends[0], ends[1], 500 * spec.layout.packed);
    free(ends[0]);
    free(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_the_table_of_its_beginning),
        cmocka_unit_test(a_snapshot_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
