/* Writes and reads whole rows, and makes calls that must be refused. */
#include "common.h"

/* Writes `piece` rows at a time, of which the first call includes hot and cold rows; reads all rows back, and some of them. */
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

/* Tests the last rows of a large pinned table, which is allocated in chunks: it has one row more than fills `bytes`. */
static void check_large(struct backend *gpu, uint64_t bytes) {
    struct rule_options rule = options_of(RULE_SGD);
    struct record_layout layout = layout_of(&rule, 31);
    struct table_spec spec = {
        .name = "target", .rows = bytes / 128 + 1, .layout = layout, .weights = PLACE_PINNED, .state = PLACE_PINNED};
    struct backend_table *table = NULL;
    char *records = first_records(&rule, &layout, 40), back[40 * 31 * 4];
    int ok = !backend_cuda.table_open(gpu, &spec, &table) &&
             !backend_cuda.table_write(gpu, table, spec.rows - 40, 40, records) &&
             !backend_cuda.table_read(gpu, table, spec.rows - 40, 40, back) && !memcmp(records, back, sizeof back) &&
             !backend_cuda.table_read(gpu, table, spec.rows - 80, 40, back);
    for (size_t i = 0; i < sizeof back && ok; i++) ok = back[i] == 0;
    CHECK(ok, "%llu bytes and a row, pinned", (unsigned long long)bytes);
    backend_cuda.table_close(gpu, table);
    free(records);
}

void test_rows(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 3);
    struct rule_case sgd = {"sgd", options_of(RULE_SGD)};
    struct rule_case rules[32];
    int count = rule_cases(rules);
    for (int r = 0; r < count; r++)
        for (int p = 0; p < PLACE_PAIRS; p++)
            if (r % 4)
                check_rows(gpu, &rules[r], PLACES[p], 5000, 1234);
            else
                check_rows(gpu, &rules[r], PLACES[p], 150000, 140000); /* each write needs several copies */
    /* Rows of 128 bytes: one fewer than fill a huge page, exactly as many, and one more. */
    for (uint64_t rows = 16383; rows <= 16385; rows++) check_rows(gpu, &sgd, PLACES[1], rows, 10000);
    check_large(gpu, UINT64_C(1) << 30);
    backend_cuda.close(gpu);
}

/* ---- what must be refused ---- */

/* Tries more than 2^31 examples, and more than 2^31 contexts: 2,048 examples with 2^20 each. Both must be refused. */
static void check_large_batches(struct backend *gpu) {
    struct corpus c;
    corpus_make(&c, 100, 4096, 9);
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    struct batch_request request = {0, 0, UINT64_C(1) << 31, 0};
    s.positives = 1, s.negatives = (1 << 20) - 1, s.short_repeat = 1;
    for (uint64_t i = 0; i <= c.sentences; i++)
        c.starts[i] = i * (c.tokens / c.sentences); /* at least two ids in each */
    c.tokens = s.tokens = c.starts[c.sentences];
    CHECK(!backend_cuda.source(gpu, &s), "source");
    CHECK(backend_cuda.make_batch(gpu, 0, &request) == -1 && strstr(report_sentence(), "train.batch"), "2^31 examples");
    report_clear();
    request.count = 2048;
    CHECK(backend_cuda.make_batch(gpu, 0, &request) == -1 && strstr(report_sentence(), "train.batch"), "2^31 contexts");
    report_clear();
    corpus_free(&c);
}

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
    check_large_batches(gpu);
    spec.rows = UINT64_C(1) << 60;
    spec.weights = spec.state = PLACE_PINNED;
    CHECK(backend_cuda.table_open(gpu, &spec, &table) == -1 && *report_sentence(), "a table of 2^69 bytes");
    report_clear();
    backend_cuda.close(gpu);
    options.index = 99;
    CHECK(backend_cuda.open(&gpu, &options) == -1 && strstr(report_sentence(), "device.index"), "GPU 99");
    report_clear();
}
