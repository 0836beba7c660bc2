#include "tests/testing.h"

#include "base/report.h"
#include "tune/tune_inner.h"

static struct halving halving;

static int release(void **state) {
    halving_release(&halving);
    return 0;
}

enum { TRIALS = 27, BEST = 23 };

/* Returns the score of a trial on a rung: a different number below 27 for each trial, in mixed order, plus a little for the number of epochs. */
static double score_of(const struct halving_job *job) {
    return (double)(job->trial * 7 % TRIALS) + 0.1 * job->rung;
}

static struct halving_job next(enum halving_begin begin, double left) {
    struct halving_bounds bounds = {begin, left};
    struct halving_job job = {UINT64_MAX, -1};
    int found = halving_next(&halving, &bounds, &job);
    assert_true(found >= 0);
    return found ? job : (struct halving_job){UINT64_MAX, -1};
}

/* Does jobs until no job is left for `trials` trials. Counts the jobs on each rung. */
static void run(uint64_t trials, uint64_t counts[HALVING_RUNGS]) {
    for (int rung = 0; rung < HALVING_RUNGS; rung++) counts[rung] = 0;
    for (;;) {
        struct halving_job job = next(halving.count < trials ? HALVING_ANY : HALVING_NONE, INFINITY);
        if (job.rung < 0) return;
        counts[job.rung]++;
        assert_int_equal(halving_took(&halving, &job, score_of(&job), job.rung + 1), 0);
    }
}

static void a_third_rises_each_time(void **state) {
    uint64_t counts[HALVING_RUNGS], count;
    run(TRIALS, counts);
    assert_int_equal(counts[0], TRIALS);
    assert_in_range(counts[1], 9, 15); /* more than a third of the trials: each one that was among the best third when its result came */
    assert_in_range(counts[2], 3, 8);
    assert_int_equal(halving.trial[0].rungs, HALVING_RUNGS); /* trial 0 has the user's own keys, and always rises to the end */
    assert_int_equal(halving.trial[BEST].rungs, HALVING_RUNGS);
    uint64_t *order = halving_order(&halving, 0, &count);
    assert_int_equal(count, TRIALS);
    for (uint64_t i = 0; i < count; i++) assert_int_equal(order[i] * 7 % TRIALS, TRIALS - 1 - i);
    free(order);
    assert_int_equal(halving_top(&halving), 2);
}

static void one_alone_comes_to_the_top(void **state) {
    uint64_t counts[HALVING_RUNGS];
    assert_int_equal(halving_top(&halving), -1);
    run(1, counts);
    for (int rung = 0; rung < HALVING_RUNGS; rung++) assert_int_equal(counts[rung], 1);
}

static void what_takes_too_long_is_left_out(void **state) {
    struct halving_job job = {0, 0};
    assert_int_equal(halving_took(&halving, &job, 1, 10), 0);
    assert_int_equal(next(HALVING_NONE, 29).rung, -1);
    assert_int_equal(next(HALVING_NONE, 30).rung, 1);
    assert_int_equal(next(HALVING_ANY, 149).trial, 1); /* trial 0, the user's own keys, would take 30 s, more than a fifth of 149
                                                        * s */
    assert_int_equal(next(HALVING_ANY, 150).rung, 1);
    assert_int_equal(next(HALVING_ANY, 9).rung, -1);
}

static void time_that_nobody_rises_in_begins_trials(void **state) {
    for (int rung = 0; rung < HALVING_RUNGS; rung++) {
        struct halving_job job = next(HALVING_LAST, 1000); /* no trial has begun yet; once trial 0 is trained, it is trained on the next rung first */
        assert_true(job.trial == 0 && job.rung == rung);
        assert_int_equal(halving_took(&halving, &job, 1, 10), 0);
    }
    assert_int_equal(next(HALVING_NONE, 1000).rung, -1);
    assert_true(next(HALVING_LAST, 40).trial == 1 && next(HALVING_LAST, 40).rung == 0);
    assert_int_equal(next(HALVING_LAST, 39).rung, -1); /* 39 s do not suffice for a trial of 10 s and its next rung of 30 s */
}

static void equal_scores_go_by_number(void **state) {
    uint64_t count;
    for (uint64_t i = 0; i < 4; i++) {
        struct halving_job job = {i, 0};
        assert_int_equal(halving_took(&halving, &job, i == 2 ? -INFINITY : 5, 1), 0);
    }
    uint64_t *order = halving_order(&halving, 0, &count);
    assert_true(count == 4 && order[0] == 0 && order[1] == 1 && order[2] == 3 && order[3] == 2);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(a_third_rises_each_time, release),
                                       cmocka_unit_test_teardown(one_alone_comes_to_the_top, release),
                                       cmocka_unit_test_teardown(what_takes_too_long_is_left_out, release),
                                       cmocka_unit_test_teardown(time_that_nobody_rises_in_begins_trials, release),
                                       cmocka_unit_test_teardown(equal_scores_go_by_number, release)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
