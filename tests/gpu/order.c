/* Tests that rows are written back to their store in a fixed order: runs whose batches contain thousands of rows, many of them
 * in several batches in flight, must give the same bytes at any depth, and when repeated. */
#include "common.h"

#include "train/steps.h"

enum { ROWS = 100000, LISTS = 60000, DIM = 128, EPOCHS = 3, THREADS = 16, RUNS = 4 };

/* [side] places of targets and of contexts. */
static const struct placing PINNED[2] = {{"pinned", PLACE_PINNED, PLACE_PINNED, 0, 0}, {"gpu", PLACE_GPU, PLACE_GPU, 0, 0}},
                            IN_FILES[2] = {{"file, state pinned", PLACE_FILE, PLACE_PINNED, 0, 0},
                                           {"pinned, some hot", PLACE_PINNED, PLACE_PINNED, 900, 0}};
static const unsigned DEPTHS[RUNS] = {1, 3, 5, 5};

static int train_epochs(struct tables *t, const struct example_source *s, const struct rule_options *rule,
                        uint64_t batch, unsigned depth) {
    struct pipeline pipeline;
    struct step_result result;
    uint64_t examples = example_count(s), step = 0;
    int came, more = 0;
    pipeline_init(&pipeline, t->ops, t->backend, depth);
    for (uint32_t epoch = 0; epoch < EPOCHS && !more; epoch++) {
        for (uint64_t first = 0; first < examples; first += batch) {
            struct batch_request request = {epoch, first, examples - first < batch ? examples - first : batch, 0};
            struct step_request go = {
                .target = t->side[0], .context = t->side[1], .rule = rule, .lr = rule->lr, .global_step = step++};
            if (pipeline_submit(&pipeline, &request, &go, &result, &came)) return -1;
        }
        while ((more = pipeline_next(&pipeline, &result)) > 0) continue;
    }
    return more;
}

static int train(char *out[2], const struct example_source *s, const struct rule_options *rule, const struct placing *places,
                 uint64_t batch, unsigned depth, char *const first[2]) {
    struct backend *gpu = open_with_threads(&backend_cuda, depth, THREADS);
    struct tables t;
    int wrong = tables_open(&t, &backend_cuda, gpu, rule, DIM, ROWS, places) ||
                tables_fill(&t, (const char *const *)first) || backend_cuda.source(gpu, s) ||
                train_epochs(&t, s, rule, batch, depth);
    for (int side = 0; side < 2; side++) {
        out[side] = need(ROWS * t.layout.packed);
        wrong = wrong || backend_cuda.table_read(gpu, t.side[side], 0, ROWS, out[side]);
    }
    tables_close(&t);
    backend_cuda.close(gpu);
    return wrong ? -1 : 0;
}

static void check_runs(const struct example_source *source, const struct placing *places, uint64_t batch, const char *name) {
    struct rule_options rule = options_of(RULE_ADAGRAD);
    struct record_layout layout = layout_of(&rule, DIM);
    struct example_source s = *source;
    s.batch = batch;
    rule.lr = 0.01;
    char *first[2] = {first_records(&rule, &layout, ROWS), first_records(&rule, &layout, ROWS)},
         *out[RUNS][2] = {{NULL}};
    for (int run = 0; run < RUNS; run++) {
        int ok = !train(out[run], &s, &rule, places, batch, DEPTHS[run], first);
        CHECK(ok, "%s, depth %u", name, DEPTHS[run]);
        for (int side = 0; side < 2 && ok && run > 0; side++)
            CHECK(!memcmp(out[0][side], out[run][side], ROWS * layout.packed),
                  "%s: %s of depth %u, run %d: other bytes", name, side ? "contexts" : "targets", DEPTHS[run], run);
    }
    for (int side = 0; side < 2; side++) {
        for (int run = 0; run < RUNS; run++) free(out[run][side]);
        free(first[side]);
    }
}

void test_order(void) {
    struct corpus c;
    corpus_make(&c, ROWS, LISTS, 12);
    struct example_source lists = source_of(&c, EXAMPLE_LIST), windows = source_of(&c, EXAMPLE_WINDOW), all;
    lists.negatives = 16, lists.shuffle = 1, lists.short_repeat = 1;
    all = lists;
    all.positives = 0;
    windows.per_pair = 1;
    check_runs(&lists, PINNED, 8192, "lists, batches of 8192");
    check_runs(&lists, IN_FILES, 8192, "lists, targets in a file");
    check_runs(&all, PINNED, 8192, "lists, all positives");
    check_runs(&windows, PINNED, 2800, "windows, negatives by pair");
    check_runs(&lists, PINNED, 16384, "lists, batches of 16384");
    lists.targets_all = 1;
    check_runs(&lists, PINNED, 8192, "lists, all targets");
    corpus_free(&c);
}
