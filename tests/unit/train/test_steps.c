/* The loop of training steps, with a backend that only counts: which examples are trained at which learning rate, when batches
 * in flight are waited for, and how the loop ends. */
#include "tests/testing.h"

#include "train/steps.h"
#include "base/report.h"

enum { PER_EPOCH = 100, BATCH = 30, DEPTH = 3 };

struct backend {
    unsigned in_flight;
    uint64_t trained, next; /* number of trained examples; position in the epoch at which the next batch or piece must begin */
    double last_rate;
    int wrong;
    uint64_t gives_up_at; /* number of examples after which the run is asked to stop, and drops the next batch; 0: never */
    uint64_t pieces_of;   /* number of examples of a lock-free work item that are still trained after the run was asked to stop */
};

static int is_asked_to_stop(const struct backend *b) {
    return b->gives_up_at && b->trained >= b->gives_up_at;
}

static int fake_make(struct backend *b, unsigned stage, const struct batch_request *batch) {
    if (is_asked_to_stop(b)) return BATCH_STOPPED;
    if (batch->first != b->next || !batch->count || batch->first + batch->count > PER_EPOCH) b->wrong++;
    b->next = (batch->first + batch->count) % PER_EPOCH;
    b->trained += batch->count;
    return 0;
}
static int fake_step(struct backend *b, unsigned stage, const struct step_request *step) {
    if (step->lr > b->last_rate) b->wrong++; /* the rate falls linearly */
    b->last_rate = step->lr;
    b->in_flight++;
    return 0;
}
static int fake_result(struct backend *b, unsigned stage, struct step_result *result) {
    b->in_flight--;
    *result = (struct step_result){.examples = 1};
    return 0;
}
static int fake_hogwild(struct backend *b, const struct hogwild_request *r, struct hogwild_result *result) {
    struct batch_request piece = {.first = r->first, .count = r->count};
    if (is_asked_to_stop(b)) piece.count = b->pieces_of;
    if (r->lr_first > b->last_rate || r->lr_last >= r->lr_first || r->global_step != b->trained) b->wrong++;
    b->last_rate = r->lr_last;
    *result = (struct hogwild_result){.done = piece.count, .examples = piece.count};
    return fake_make(b, 0, &piece);
}
static const struct backend_ops ops = {
    .make_batch = fake_make, .step = fake_step, .result = fake_result, .hogwild = fake_hogwild};

/* The caller of the loop. */
struct runner {
    struct backend backend;
    uint64_t results, examples, steps, betweens, epochs, reports, lasts;
    uint64_t stop_after; /* number of steps */
    int fail_at;         /* number of the result at which the callback fails */
};

static int took_batch(void *user, const struct step_result *result) {
    struct runner *r = user;
    r->examples += result->examples;
    return ++r->results == (uint64_t)r->fail_at ? (fail)("enough") : 0;
}
static int took_piece(void *user, const struct hogwild_result *result, double seconds) {
    struct runner *r = user;
    if (seconds < 0) r->backend.wrong++;
    r->examples += result->examples;
    return ++r->results == (uint64_t)r->fail_at ? (fail)("enough") : 0;
}
static unsigned wishes(void *user, int epoch_ended) {
    struct runner *r = user;
    r->epochs += (uint64_t)epoch_ended;
    return ++r->steps == r->stop_after || is_asked_to_stop(&r->backend) ? 4 : 0;
}
static int between(void *user, int epoch_ended, unsigned wished) {
    struct runner *r = user;
    if (r->backend.in_flight) r->backend.wrong++;
    r->betweens++;
    return wished == 4;
}
static void report(void *user, double lr, int last) {
    struct runner *r = user;
    if (lr != r->backend.last_rate) r->backend.wrong++;
    *(last ? &r->lasts : &r->reports) += 1;
}

static int run(struct runner *r, const char *update, uint64_t end, struct steps *out) {
    struct config config;
    struct table table = {.rule = {.rule = RULE_SGD}};
    const struct steps_watch watch = {r, took_batch, took_piece, wishes, between, report};
    assert_int_equal(config_init(&config), 0);
    assert_int_equal(config_set(&config, "train", "update", update, "here"), 0);
    assert_int_equal(config_resolve(&config), 0);
    config.memory_depth = DEPTH;
    r->backend.last_rate = config.optimizer_lr;
    struct steps steps = {.config = &config,
                          .ops = &ops,
                          .backend = &r->backend,
                          .target = &table,
                          .context = &table,
                          .per_epoch = PER_EPOCH,
                          .batch = BATCH,
                          .run = 2 * PER_EPOCH + 50,
                          .end = end};
    int result = steps_train(&steps, &watch);
    assert_int_equal(r->backend.wrong, 0);
    config_release(&config);
    *out = steps;
    return result;
}

/* A batch ends at the end of its epoch; the last batch ends at the end of the loop. */
static void batches_to_the_end(void **state) {
    struct runner r = {.fail_at = 0};
    struct steps steps;
    assert_int_equal(run(&r, "batch", 2 * PER_EPOCH + 50, &steps), 0);
    assert_int_equal(r.backend.trained, 2 * PER_EPOCH + 50);
    assert_int_equal(steps_done(&steps), 2 * PER_EPOCH + 50);
    assert_true(steps_share(&steps) == 1);
    assert_int_equal(steps.state.step, 4 + 4 + 2);
    assert_int_equal(r.results, 10);
    assert_int_equal(r.backend.in_flight, 0);
    assert_int_equal(r.epochs, 2);
    assert_int_equal(r.betweens, 3);
    assert_int_equal(r.reports, 10);
    assert_int_equal(r.lasts, 1);
}

static void pieces_to_the_end(void **state) {
    struct runner r = {.fail_at = 0};
    struct steps steps;
    assert_int_equal(run(&r, "hogwild", 2 * PER_EPOCH + 50, &steps), 0);
    assert_int_equal(r.examples, 2 * PER_EPOCH + 50);
    assert_int_equal(r.results, 3); /* each as long as there are examples */
    assert_int_equal(r.betweens, 3);
    assert_int_equal(steps.state.step, 4 + 4 + 50 / BATCH); /* the rest of an epoch is a step, as a batch is */
    assert_int_equal(r.lasts, 1);
}

/* If a run is asked to stop while a batch is made or a lock-free work item is trained, only trained examples are counted. */
static void what_is_given_up_does_not_count(void **state) {
    struct runner batches = {.backend = {.gives_up_at = 2 * BATCH}};
    struct runner pieces = {.backend = {.gives_up_at = PER_EPOCH, .pieces_of = 7}, .stop_after = 2};
    struct steps steps;
    assert_int_equal(run(&batches, "batch", 2 * PER_EPOCH, &steps), 1);
    assert_int_equal(steps_done(&steps), 2 * BATCH);
    assert_int_equal(steps.state.step, 2);
    assert_int_equal(batches.results, 2);
    assert_int_equal(batches.backend.in_flight, 0);
    assert_int_equal(run(&pieces, "hogwild", 2 * PER_EPOCH, &steps), 1);
    assert_true(steps_done(&steps) == PER_EPOCH || steps_done(&steps) == PER_EPOCH + 7);
    assert_int_equal(pieces.examples, steps_done(&steps));
}

/* A loop without an end continues after the run's last step, with the last learning rate, until it is asked to stop. */
static void it_stops_when_it_is_told_to(void **state) {
    static const char *const updates[] = {"batch", "hogwild"};
    struct runner batches = {.stop_after = 50}, pieces = {.stop_after = 2};
    struct steps steps;
    assert_int_equal(run(&batches, updates[0], UINT64_MAX, &steps), 1);
    assert_int_equal(batches.steps, 50);
    assert_int_equal(batches.results, 50);
    assert_true(steps_share(&steps) == 1);
    assert_int_equal(run(&pieces, updates[1], UINT64_MAX, &steps), 1);
    assert_int_equal(pieces.steps, 2);
}

static void failures_end_it(void **state) {
    static const char *const updates[] = {"batch", "hogwild"};
    for (int i = 0; i < 2; i++) {
        struct runner r = {.fail_at = 2};
        struct steps steps;
        report_clear();
        assert_int_equal(run(&r, updates[i], 2 * PER_EPOCH + 50, &steps), -1);
        assert_string_equal(report_sentence(), "enough");
        assert_int_equal(r.lasts, 0);
        report_clear();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_to_the_end), cmocka_unit_test(pieces_to_the_end),
                                       cmocka_unit_test(what_is_given_up_does_not_count),
                                       cmocka_unit_test(it_stops_when_it_is_told_to), cmocka_unit_test(failures_end_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
