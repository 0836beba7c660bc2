#include "tests/testing.h"

#include "run/checkpoint.h"
#include "tests/unit/scratch.h"

static struct config config;
static struct checkpoint_due due;

static int set_up(void **state) {
    return scratch_make(state) || config_init(&config) ? -1 : 0;
}
static int tear_down(void **state) {
    config_release(&config);
    return scratch_remove(state);
}

/* Begins a run at second 1000 and step 50, whose checkpoints have `bytes` bytes. */
static void start(const char *every, uint64_t bytes) {
    assert_int_equal(config_set(&config, "run", "checkpoint_every", every, "here"), 0);
    assert_int_equal(config_resolve(&config), 0);
    checkpoint_due_start(&due, &config, scratch, 50, 1000);
    due.bytes = bytes;
}
static int at(double now) {
    return checkpoint_due_now(&due, 60, 0, now);
}

static void a_time_of_ones_own_holds(void **state) {
    start("10m", UINT64_MAX / 2); /* with a given interval the free space of the disk does not matter */
    assert_false(at(1599.9));
    assert_true(at(1600));
    assert_false(checkpoint_due_now(&due, 50, 1, 9999)); /* this step's checkpoint is already written */
    checkpoint_due_written(&due, 60, 5000, 7000);        /* with a given interval the time of writing does not matter */
    assert_false(checkpoint_due_now(&due, 60, 0, 9999));
    assert_false(checkpoint_due_now(&due, 61, 0, 7599));
    assert_true(checkpoint_due_now(&due, 61, 0, 7600));
}

static void steps_and_epochs_are_counted(void **state) {
    start("10 steps", 1);
    assert_false(checkpoint_due_now(&due, 59, 1, 1e9));
    assert_true(checkpoint_due_now(&due, 60, 0, 1000));
    checkpoint_due_written(&due, 63, 1, 1001);
    assert_false(checkpoint_due_now(&due, 72, 0, 1e9));
    assert_true(checkpoint_due_now(&due, 73, 0, 1e9));
    start("epoch", 1);
    assert_false(checkpoint_due_now(&due, 51, 0, 1e9));
    assert_true(checkpoint_due_now(&due, 51, 1, 1000));
    assert_false(checkpoint_due_now(&due, 50, 1, 1000));
    start("end", 1);
    assert_false(checkpoint_due_now(&due, 51, 1, 1e9));
}

static void half_an_hour_by_itself_and_longer_where_writing_is_slow(void **state) {
    start("auto", 1);
    assert_false(at(2799));
    assert_true(at(2800));
    checkpoint_due_written(&due, 60, 1, 10000); /* writing took 1 second, far less than 3% of 30 minutes */
    assert_false(checkpoint_due_now(&due, 61, 0, 11799));
    assert_true(checkpoint_due_now(&due, 61, 0, 11800));
    checkpoint_due_written(&due, 61, 90, 20000); /* writing took 90 s, which is 3% of 3,000 s */
    assert_false(checkpoint_due_now(&due, 62, 0, 22999));
    assert_true(checkpoint_due_now(&due, 62, 0, 23001));
}

static void while_one_is_written_the_clock_makes_none_due_but_steps_do(void **state) {
    start("100s, 20 steps", 1);
    checkpoint_due_begun(&due, 60, 2000);
    assert_false(checkpoint_due_now(&due, 60, 0, 3000));
    checkpoint_due_busy(&due, 3000);
    assert_false(checkpoint_due_now(&due, 79, 0, 3000));
    assert_true(checkpoint_due_now(&due, 80, 0, 3000));
    checkpoint_due_written(&due, 60, 1010, 3010);
    assert_false(checkpoint_due_now(&due, 61, 0, 3109));
    assert_true(checkpoint_due_now(&due, 61, 0, 3111));
}

static void a_disk_without_room_is_left_for_the_end(void **state) {
    uint64_t space;
    assert_int_equal(directory_space(scratch, &space), 0);
    assert_true(space > 0);
    config.run_keep = 1;
    start("auto", space / 8); /* the disk has space for two checkpoints, even if others write to it */
    assert_true(at(2800));
    start("auto", space); /* the disk has no space for two checkpoints */
    assert_false(at(2800));
    assert_true(due.without);
    assert_false(at(1e9));
    start("auto", space); /* the run is resumed, and the space of its two checkpoints counts as free */
    due.present = 2;
    assert_true(at(2800));
    start("auto", UINT64_MAX / 2 + 1); /* two checkpoints would have more bytes than a uint64_t can count */
    assert_false(at(2800));
    start("auto", space);
    due.run = "/nonexistent/run"; /* the free space in this directory is unknown */
    assert_true(at(2800));
    assert_string_equal(report_sentence(), "");
    start("auto", space);
    checkpoint_due_written(&due, 55, 1, 1000); /* the first checkpoint had space, so later ones, which replace older ones, have it, too */
    assert_true(at(2800));
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_time_of_ones_own_holds),
        TEST(steps_and_epochs_are_counted),
        TEST(half_an_hour_by_itself_and_longer_where_writing_is_slow),
        TEST(while_one_is_written_the_clock_makes_none_due_but_steps_do),
        TEST(a_disk_without_room_is_left_for_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
