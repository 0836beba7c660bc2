/* Snapshots of tables: all rows are changed, by calls by id and by steps of batches in flight, before the snapshot is read. So each
 * changed row must have been copied with its bytes from before the first change. */
#include "common.h"

enum { ROWS = 3000, DIM = 31, BATCH = 60, STEPS = 24, DEPTH = 3, CALLS = 6, COUNT = 2500 };

static int in_file(const struct placing *placing) {
    return placing->weights == PLACE_FILE || placing->state == PLACE_FILE;
}

static int changes_by_id(struct backend *gpu, struct backend_table *table, const struct rule_options *rule) {
    float *values = need((uint64_t)COUNT * DIM * sizeof *values);
    int ok = 1;
    for (int call = 0; call < CALLS && ok; call++) {
        uint32_t *ids;
        ok = !backend_cuda.rows_ids(gpu, COUNT, &ids);
        for (int i = 0; i < COUNT && ok; i++) ids[i] = (uint32_t)(random_bits() % ROWS);
        for (int i = 0; i < COUNT * DIM; i++) values[i] = random_float();
        struct rows_request request = {.table = table, .ids = ids, .count = call % 3 ? COUNT : 20, .id_bits = 32, .values = values,
                                       .rule = rule, .lr = 0.1, .global_step = (uint64_t)call};
        ok = ok && !(call % 2 ? backend_cuda.rows_store : backend_cuda.rows_update)(gpu, &request);
    }
    free(values);
    return ok;
}

/* Reads the table's snapshot, in two parts that split a hot row from the next. */
static int read_snapshot(struct backend *gpu, struct backend_table *table, const struct record_layout *layout, char *records) {
    return backend_cuda.snapshot_read(gpu, table, 0, 4, records) ||
           backend_cuda.snapshot_read(gpu, table, 4, ROWS - 4, records + 4 * layout->packed);
}

/* Calls on a table in a file wait until the snapshot was read, so the test reads the snapshot before it makes them. */
static void check_calls(struct backend *gpu, const struct rule_case *rule, const struct placing placing[2]) {
    struct tables t;
    struct record_layout layout = layout_of(&rule->options, DIM);
    char *first[2] = {first_records(&rule->options, &layout, ROWS), first_records(&rule->options, &layout, ROWS)};
    char *before = need(ROWS * layout.packed), *read = need(ROWS * layout.packed);
    int ok = !tables_open(&t, &backend_cuda, gpu, &rule->options, DIM, ROWS, placing) &&
             !tables_fill(&t, (const char *const *)first) && changes_by_id(gpu, t.side[0], &rule->options) &&
             !tables_read(&t, 0, before) && !backend_cuda.snapshot_begin(gpu, t.side[0], UINT64_MAX / 2);
    if (in_file(&placing[0])) ok = ok && !read_snapshot(gpu, t.side[0], &layout, read);
    ok = ok && changes_by_id(gpu, t.side[0], &rule->options);
    if (!in_file(&placing[0])) ok = ok && !read_snapshot(gpu, t.side[0], &layout, read);
    ok = ok && !backend_cuda.rows_wait(gpu);
    backend_cuda.snapshot_stop(t.side[0]);
    backend_cuda.snapshot_end(gpu, t.side[0]);
    CHECK(ok && !memcmp(before, read, ROWS * layout.packed), "%s in %s, calls by id", rule->name, placing[0].name);
    tables_close(&t);
    free(first[0]), free(first[1]), free(before), free(read);
}

static int train(struct tables *t, const struct rule_options *rule, int from, int end) {
    struct step_result result;
    int ok = 1;
    for (int i = from; i < end && ok; i++) {
        struct batch_request batch = {0, (uint64_t)i * BATCH, BATCH, 0};
        struct step_request step = {.rule = rule, .lr = 0.05, .global_step = (uint64_t)i};
        unsigned stage = (unsigned)i % DEPTH;
        if (i >= from + DEPTH) ok = !backend_cuda.result(t->backend, stage, &result);
        ok = ok && !backend_cuda.make_batch(t->backend, stage, &batch) && !one_step(t, stage, &step);
    }
    return ok && !backend_cuda.drain(t->backend);
}

static void check_steps(const struct example_source *s, const struct rule_case *rule, const struct placing placing[2]) {
    struct backend *gpu = open_or_stop(&backend_cuda, DEPTH);
    struct tables t;
    struct record_layout layout = layout_of(&rule->options, DIM);
    char *first[2] = {first_records(&rule->options, &layout, ROWS), first_records(&rule->options, &layout, ROWS)};
    char *before[2] = {need(ROWS * layout.packed), need(ROWS * layout.packed)}, *read = need(ROWS * layout.packed);
    int ok = !tables_open(&t, &backend_cuda, gpu, &rule->options, DIM, ROWS, placing) &&
             !tables_fill(&t, (const char *const *)first) && !backend_cuda.source(gpu, s) &&
             train(&t, &rule->options, 0, STEPS / 2);
    for (int side = 0; side < 2 && ok; side++)
        ok = !tables_read(&t, side, before[side]) && !backend_cuda.snapshot_begin(gpu, t.side[side], UINT64_MAX / 2);
    ok = ok && train(&t, &rule->options, STEPS / 2, STEPS);
    for (int side = 0; side < 2; side++) {
        ok = ok && !read_snapshot(gpu, t.side[side], &layout, read) && !memcmp(before[side], read, ROWS * layout.packed);
        CHECK(ok, "%s in %s, steps, side %d", rule->name, placing[side].name, side);
    }
    tables_close(&t); /* with the snapshots */
    backend_cuda.close(gpu);
    free(first[0]), free(first[1]), free(before[0]), free(before[1]), free(read);
}

void test_snapshots(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, ROWS, 2000, 9);
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    s.short_repeat = 1;
    for (int r = 0; r < count; r += 3)
        for (int p = 0; p < PLACE_PAIRS; p++) {
            check_calls(gpu, &rules[r], PLACES[p]);
            check_steps(&s, &rules[r], PLACES[p]);
        }
    corpus_free(&c);
    backend_cuda.close(gpu);
}
