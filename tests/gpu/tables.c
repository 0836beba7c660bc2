/* Whole rows written and read, and what must be refused. */
#include "common.h"

/* Written by `piece` rows, of which the first ones straddle the hot rows' end; read as a whole and in part. */
static void check_rows(struct backend *gpu, const struct rule_case *rule, const struct placing placing[2],
                       uint64_t rows, uint64_t piece) {
    const struct backend_ops *ops = &backend_cuda;
    struct tables t;
    struct record_layout layout = layout_of(&rule->options, 31);
    char *records = first_records(&rule->options, &layout, rows), *back = need(rows * layout.packed);
    int ok = !tables_open(&t, ops, gpu, &rule->options, 31, rows, placing);
    for (uint64_t at = 0; at < rows && ok; at += piece)
        ok = !ops->table_write(gpu, t.side[0], at, rows - at < piece ? rows - at : piece, records + at * layout.packed);
    ok = ok && !ops->table_read(gpu, t.side[0], 0, rows, back) && !memcmp(records, back, rows * layout.packed);
    ok = ok && !ops->table_read(gpu, t.side[0], 3, 20, back) &&
         !memcmp(records + 3 * layout.packed, back, 20 * layout.packed);
    CHECK(ok, "%s in %s", rule->name, placing[0].name);
    CHECK(ops->table_read(gpu, t.side[0], rows - 1, 2, back) == -1 && *report_sentence(),
          "rows past the end were read");
    report_clear();
    tables_close(&t);
    free(records);
    free(back);
}

void test_rows(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 3);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    for (int r = 0; r < count; r++)
        for (int p = 0; p < PLACE_PAIRS; p++)
            if (r % 4)
                check_rows(gpu, &rules[r], PLACES[p], 5000, 1234);
            else
                check_rows(gpu, &rules[r], PLACES[p], 150000, 140000); /* several copies a piece */
    backend_cuda.close(gpu);
}

/* ---- what must be refused ---- */

void test_refusals(void) {
    struct backend_options options = {.depth = 2, .gpu_budget = 64 << 20, .index = 0};
    struct backend *gpu = NULL;
    struct backend_table *table = NULL;
    struct rule_options rule = options_of(RULE_SGD);
    struct table_spec spec = {
        .name = "target", .rows = 1 << 20, .layout = layout_of(&rule, 128), .weights = PLACE_GPU, .state = PLACE_GPU};
    struct batch_request request = {0, 0, 10, 0};
    struct step_result result;
    CHECK(!backend_cuda.open(&gpu, &options), "open");
    if (!gpu) return;
    CHECK(backend_cuda.table_open(gpu, &spec, &table) == -1 && strstr(report_sentence(), "memory.gpu_budget"),
          "512 MiB were taken of a budget of 64");
    report_clear();
    CHECK(backend_cuda.make_batch(gpu, 0, &request) == -1 && *report_sentence(), "a batch without a source");
    report_clear();
    CHECK(backend_cuda.result(gpu, 1, &result) == -1 && *report_sentence(), "a result without a batch");
    report_clear();
    spec.rows = UINT64_C(1) << 60;
    spec.weights = spec.state = PLACE_PINNED;
    CHECK(backend_cuda.table_open(gpu, &spec, &table) == -1 && *report_sentence(), "a table of 2^69 bytes");
    report_clear();
    backend_cuda.close(gpu);
    options.index = 99;
    CHECK(backend_cuda.open(&gpu, &options) == -1 && strstr(report_sentence(), "device.index"), "GPU 99");
    report_clear();
}
