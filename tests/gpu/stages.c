/* The order of calls on a batch: which calls must be refused, and which other calls are allowed in between. */
#include "common.h"

enum { ROWS = 500, DIM = 64, BATCH = 60, STEPS = 12 };

static const struct placing PLACING[2] = {{"pinned", PLACE_PINNED, PLACE_PINNED, 0, 0},
                                          {"pinned", PLACE_PINNED, PLACE_PINNED, 9, 0}};

#define REFUSED(call, what)                                                                                            \
    do {                                                                                                               \
        CHECK((call) == -1 && *report_sentence(), what);                                                               \
        report_clear();                                                                                                \
    } while (0)

static void check_order(struct tables *t, const struct step_request *step) {
    const struct backend_ops *ops = t->ops;
    struct backend *gpu = t->backend;
    struct batch_request batch = {0, 0, BATCH, 0};
    struct step_request other = *step;
    struct step_result result;
    REFUSED(ops->step(gpu, 0, step), "a step without a batch");
    REFUSED(ops->step(gpu, 3, step), "a step in a stage that is not there");
    CHECK(!ops->make_batch(gpu, 0, &batch) && !ops->make_batch(gpu, 0, &batch), "a batch made twice");
    REFUSED(ops->result(gpu, 0, &result), "a result before its step");
    other.context = step->target;
    REFUSED(ops->step(gpu, 0, &other), "one table on both sides");
    CHECK(!ops->make_batch(gpu, 1, &batch), "the next batch");
    CHECK(!ops->step(gpu, 0, step), "step");
    REFUSED(ops->step(gpu, 0, step), "a second step");
    CHECK(!ops->step(gpu, 1, step), "the next batch's step");
    CHECK(!ops->result(gpu, 1, &result) && !ops->result(gpu, 0, &result) && !ops->result(gpu, 0, &result),
          "results, in any order");
}

/* Trains two tables that swap the roles of target and context every `turn` steps. Returns their records. */
static char *train_crossed(const struct example_source *s, const struct rule_options *rule, unsigned depth, int turn,
                           char *const first[2]) {
    struct backend *gpu = open_with_threads(&backend_cuda, depth, 16);
    struct tables t;
    struct record_layout layout = layout_of(rule, DIM);
    char *out = need(2 * ROWS * layout.packed);
    int ok = !tables_open(&t, &backend_cuda, gpu, rule, DIM, ROWS, PLACING) &&
             !tables_fill(&t, (const char *const *)first) && !backend_cuda.source(gpu, s);
    for (int i = 0; i < STEPS && ok; i++) {
        struct batch_request batch = {0, (uint64_t)i * BATCH, BATCH, 0};
        struct tables turned = t;
        int side = i / turn % 2;
        turned.side[0] = t.side[side], turned.side[1] = t.side[!side];
        struct step_request step = {.rule = rule, .lr = 0.05, .global_step = (uint64_t)i};
        ok = !backend_cuda.make_batch(gpu, (unsigned)i % depth, &batch) &&
             !one_step(&turned, (unsigned)i % depth, &step);
    }
    for (int side = 0; side < 2 && ok; side++)
        ok = !backend_cuda.table_read(gpu, t.side[side], 0, ROWS, out + (uint64_t)side * ROWS * layout.packed);
    CHECK(ok, "tables that change sides, depth %u", depth);
    tables_close(&t);
    backend_cuda.close(gpu);
    return out;
}

void test_stages(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 3);
    struct rule_options rule = options_of(RULE_ADAGRAD);
    struct record_layout layout = layout_of(&rule, DIM);
    char *first[2] = {first_records(&rule, &layout, ROWS), first_records(&rule, &layout, ROWS)};
    struct corpus c;
    struct tables t;
    corpus_make(&c, ROWS, 1000, 9);
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    s.short_repeat = 1;
    CHECK(!tables_open(&t, &backend_cuda, gpu, &rule, DIM, ROWS, PLACING) &&
              !tables_fill(&t, (const char *const *)first) && !backend_cuda.source(gpu, &s),
          "tables");
    struct step_request step = {.target = t.side[0], .context = t.side[1], .rule = &rule, .lr = 0.05};
    check_order(&t, &step);
    tables_close(&t);
    backend_cuda.close(gpu);
    for (int turn = 1; turn <= 3; turn++) {
        char *want = train_crossed(&s, &rule, 1, turn, first), *got = train_crossed(&s, &rule, 4, turn, first);
        CHECK(!memcmp(want, got, 2 * ROWS * layout.packed), "tables that change sides every %d steps: other bytes",
              turn);
        free(want);
        free(got);
    }
    for (int side = 0; side < 2; side++) free(first[side]);
    corpus_free(&c);
}
