#include "tests/testing.h"

#include "base/report.h"
#include "train/steps.h"

/* A backend that computes nothing. It remembers the batch in each stage, how far that batch is, and which functions were called. */
enum progress { FREE, MADE, STEPPED };
struct backend {
    enum progress at[BACKEND_STAGES];
    uint64_t batch[BACKEND_STAGES];
    unsigned depth, in_flight, most;
    uint64_t waited; /* number of results returned so far; they must be returned in order */
    int wrong;
    const char *fail_in; /* the function that is to fail, and the batch with which it fails */
    uint64_t fail_batch;
};

static int advance(struct backend *b, unsigned stage, enum progress from, enum progress to, const char *name) {
    if (stage >= b->depth || b->at[stage] != from) b->wrong++;
    b->at[stage] = to;
    if (b->fail_in && !strcmp(b->fail_in, name) && b->batch[stage] == b->fail_batch) return (fail)("%s broke", name);
    return 0;
}
static int fake_make(struct backend *b, unsigned stage, const struct batch_request *request) {
    b->batch[stage] = request->first;
    return advance(b, stage, FREE, MADE, "make_batch");
}
static int fake_step(struct backend *b, unsigned stage, const struct step_request *request) {
    if (request->global_step != b->batch[stage]) b->wrong++;
    if (++b->in_flight > b->most) b->most = b->in_flight;
    return advance(b, stage, MADE, STEPPED, "step");
}
static int fake_result(struct backend *b, unsigned stage, struct step_result *result) {
    if (b->batch[stage] != b->waited++) b->wrong++;
    b->in_flight--;
    *result = (struct step_result){.loss = (double)b->batch[stage]};
    return advance(b, stage, STEPPED, FREE, "result");
}
static const struct backend_ops ops = {.make_batch = fake_make, .step = fake_step, .result = fake_result};

static int submit(struct pipeline *pipeline, uint64_t number, struct step_result *oldest, int *came) {
    struct batch_request batch = {.first = number, .count = 1};
    struct step_request step = {.global_step = number};
    return pipeline_submit(pipeline, &batch, &step, oldest, came);
}

static void test_order(void **state) {
    enum { BATCHES = 29 };
    for (unsigned depth = 1; depth <= BACKEND_STAGES; depth++) {
        struct backend backend = {.depth = depth};
        struct pipeline pipeline;
        struct step_result result;
        int came, more;
        uint64_t seen = 0;
        pipeline_init(&pipeline, &ops, &backend, depth);
        for (uint64_t i = 0; i < BATCHES; i++) {
            assert_int_equal(0, submit(&pipeline, i, &result, &came));
            assert_int_equal(i >= depth, came);
            if (came) assert_true(result.loss == (double)seen++);
        }
        while ((more = pipeline_next(&pipeline, &result)) == 1) assert_true(result.loss == (double)seen++);
        assert_int_equal(0, more);
        assert_int_equal(BATCHES, seen);
        assert_int_equal(0, backend.wrong);
        assert_int_equal(depth, backend.most);
    }
}

static void test_drained_and_used_again(void **state) { /* empties the pipeline, as a checkpoint does, with the next batch in each of the stages */
    for (unsigned depth = 1; depth <= BACKEND_STAGES; depth++) {
        struct backend backend = {.depth = depth};
        struct pipeline pipeline;
        struct step_result result;
        int came;
        uint64_t sent = 0, seen = 0;
        pipeline_init(&pipeline, &ops, &backend, depth);
        for (unsigned run = 1; run <= 2 * BACKEND_STAGES; run++) {
            for (unsigned i = 0; i < run; i++) {
                assert_int_equal(0, submit(&pipeline, sent++, &result, &came));
                seen += (uint64_t)came;
            }
            while (pipeline_next(&pipeline, &result) == 1) seen++;
            assert_int_equal(sent, seen);
        }
        assert_int_equal(0, backend.wrong);
    }
}

static void test_depth_is_bounded(void **state) {
    struct pipeline pipeline;
    struct backend backend = {.depth = 1};
    pipeline_init(&pipeline, &ops, &backend, 0);
    assert_int_equal(1, pipeline.depth);
    pipeline_init(&pipeline, &ops, &backend, 100);
    assert_int_equal(BACKEND_STAGES, pipeline.depth);
}

static void test_failures_come_up(void **state) {
    static const char *const calls[] = {"make_batch", "step", "result"};
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        struct backend backend = {.depth = 3, .fail_in = calls[c], .fail_batch = 4};
        struct pipeline pipeline;
        struct step_result result;
        int came, failed = 0;
        char sentence[64];
        report_clear();
        pipeline_init(&pipeline, &ops, &backend, 3);
        for (uint64_t i = 0; i < 12 && !failed; i++) failed = submit(&pipeline, i, &result, &came);
        assert_int_equal(-1, failed);
        snprintf(sentence, sizeof sentence, "%s broke", calls[c]);
        assert_string_equal(sentence, report_sentence());
        for (int i = 0; i < 3; i++) (void)pipeline_next(&pipeline, &result);
        assert_int_equal(0, pipeline_next(&pipeline, &result)); /* the pipeline still ends without error */
    }
    report_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_drained_and_used_again),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_failures_come_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
