#include "base/report.h"
#include "run/state.h"

#include "tests/testing.h"

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-12 * fabs(wanted) + 1e-15)) fail_msg("%.17g is not %.17g", got, wanted);
}

static struct config with(int schedule, double lr, double ratio, double warmup) {
    return (struct config){.optimizer_schedule = schedule,
                           .optimizer_lr = lr,
                           .optimizer_min_lr_ratio = ratio,
                           .optimizer_warmup = warmup};
}

static void constant(void **state) {
    struct config c = with(SCHEDULE_CONSTANT, 0.5, 0.1, 0);
    for (double done = 0; done <= 1; done += 0.125) assert_true(schedule_rate(&c, done) == 0.5);
}

/* The rate falls linearly from lr to lr x ratio, and is exactly that at the end. */
static void linear(void **state) {
    struct config c = with(SCHEDULE_LINEAR, 0.5, 0.2, 0);
    assert_true(schedule_rate(&c, 0) == 0.5);
    assert_near(schedule_rate(&c, 0.25), 0.4);
    assert_near(schedule_rate(&c, 0.5), 0.3);
    assert_near(schedule_rate(&c, 0.8), 0.18);
    assert_near(schedule_rate(&c, 0.9), 0.14);
    assert_near(schedule_rate(&c, 1), 0.1);
    c = with(SCHEDULE_LINEAR, 0.025, 0, 0);
    assert_true(schedule_rate(&c, 1) == 0);
    c = with(SCHEDULE_LINEAR, 0.025, 1, 0);
    for (double done = 0; done <= 1; done += 0.125) assert_near(schedule_rate(&c, done), 0.025);
}

/* word2vec.c's rate is starting_alpha x (1 - done), but at least starting_alpha x 0.0001. Our rate must be within starting_alpha
 * x 0.0001 of it. */
static void linear_is_near_word2vec_by_default(void **state) {
    struct config c = with(SCHEDULE_LINEAR, 0.025, 1e-4, 0);
    for (double done = 0; done <= 1; done += 1.0 / 1024)
        assert_true(fabs(schedule_rate(&c, done) - 0.025 * fmax(1 - done, 1e-4)) <= 0.025 * 1e-4);
}

static void cosine(void **state) {
    struct config c = with(SCHEDULE_COSINE, 1, 0.2, 0);
    assert_near(schedule_rate(&c, 0), 1);
    assert_near(schedule_rate(&c, 0.5), 0.6);
    assert_near(schedule_rate(&c, 1), 0.2);
    assert_near(schedule_rate(&c, 1.0 / 3), 0.2 + 0.8 * 0.75);
    for (double done = 0; done < 0.99; done += 0.01)
        assert_true(schedule_rate(&c, done) > schedule_rate(&c, done + 0.01));
}

/* train.n3 is reached at the end of n3_warmup; before, the factor is train.n3 times the square of the share of n3_warmup that is done. */
static void the_penalty_rises(void **state) {
    struct config c = with(SCHEDULE_CONSTANT, 0.5, 0, 0);
    c.examples_mode = MODE_TRIPLE, c.train_n3 = 0.5;
    assert_true(schedule_loss(&c, 0).cubes == 0.5f);
    c.train_n3_warmup = 0.25;
    assert_true(schedule_loss(&c, 0).cubes == 0);
    assert_near(schedule_loss(&c, 0.125).cubes, 0.125);
    assert_true(schedule_loss(&c, 0.25).cubes == 0.5f && schedule_loss(&c, 1).cubes == 0.5f);
}

static void warmup(void **state) {
    struct config c = with(SCHEDULE_CONSTANT, 0.5, 0, 0.1);
    assert_true(schedule_rate(&c, 0) == 0);
    assert_near(schedule_rate(&c, 0.05), 0.25);
    assert_near(schedule_rate(&c, 0.1), 0.5);
    assert_near(schedule_rate(&c, 0.7), 0.5);
}

/* The rate reaches lr exactly at the end of the warm-up, and falls over the rest of the run. */
static void a_warmup_reaches_lr_before_the_fall(void **state) {
    for (int schedule = SCHEDULE_LINEAR; schedule <= SCHEDULE_COSINE; schedule++) {
        struct config c = with(schedule, 0.4, 0.5, 0.5);
        assert_near(schedule_rate(&c, 0.25), 0.2);
        assert_near(schedule_rate(&c, 0.5), 0.4);
        assert_near(schedule_rate(&c, 0.75), schedule == SCHEDULE_CONSTANT ? 0.4 : 0.3);
        assert_near(schedule_rate(&c, 1), schedule == SCHEDULE_CONSTANT ? 0.4 : 0.2);
        c.optimizer_warmup = 1; /* the warm-up lasts for the whole run */
        assert_near(schedule_rate(&c, 0.5), 0.2);
        assert_near(schedule_rate(&c, 1), 0.4);
    }
}

static void outside_the_run_its_ends_count(void **state) {
    struct config c = with(SCHEDULE_LINEAR, 1, 0.5, 0);
    assert_near(schedule_rate(&c, -0.1), 1);
    assert_near(schedule_rate(&c, 1.1), 0.5);
    c.optimizer_lr = 0;
    assert_true(schedule_rate(&c, 0.3) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(constant),
                                       cmocka_unit_test(linear),
                                       cmocka_unit_test(linear_is_near_word2vec_by_default),
                                       cmocka_unit_test(cosine),
                                       cmocka_unit_test(the_penalty_rises), cmocka_unit_test(warmup),
                                       cmocka_unit_test(a_warmup_reaches_lr_before_the_fall),
                                       cmocka_unit_test(outside_the_run_its_ends_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
