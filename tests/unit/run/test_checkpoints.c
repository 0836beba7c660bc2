#include "tests/unit/scratch.h"
#include "tests/unit/written_run.h"

#include "tests/testing.h"

static void assert_names(const char *directory, const char *wanted) {
    assert_string_equal(wanted, names_in(directory));
}

static void finds_by_name_and_says_whose(void **state) {
    static const struct {
        const char *path;
        uint64_t step;
        enum checkpoint_kind kind;
        int own;
    } wanted[] = {{"run/checkpoint-30.partial", 30, CHECKPOINT_PARTIAL, 0},
                  {"run/checkpoint-20", 20, CHECKPOINT_IN_PLACE, 1},
                  {"run/checkpoint-20.replaced", 20, CHECKPOINT_ASIDE, 1},
                  {"run/checkpoint-20.partial", 20, CHECKPOINT_PARTIAL, 1},
                  {"run/checkpoint-9", 9, CHECKPOINT_IN_PLACE, 0},
                  {"run/checkpoint-8", 8, CHECKPOINT_IN_PLACE, 0},
                  {"run/checkpoint-7", 7, CHECKPOINT_IN_PLACE, 0},
                  {"run/checkpoint-0", 0, CHECKPOINT_IN_PLACE, 1}};
    static const char *const others[] = {"checkpoint-best", "checkpoint-007",       "checkpoint-7.kept-1", "checkpoint-",
                                         "checkpoint--1",   "checkpoint-7.Partial", "mycheckpoint-7"};
    struct checkpoints all;
    char path[512];
    write_checkpoint("run", 20, "a", "a");
    write_checkpoint("run", 0, "a", "a");
    write_checkpoint("run", 21, "a", "a");
    assert_int_equal(rename("run/checkpoint-21", "run/checkpoint-20.replaced"), 0);
    assert_int_equal(directory_make("run/checkpoint-20.partial"), 0);
    write_text("run/checkpoint-20.partial/target.npy", "half");
    write_text("run/checkpoint-20.partial/context.npy.7-0123456789abcdef.partial", "half");
    assert_int_equal(directory_make("run/checkpoint-30.partial/of the user's"), 0);
    assert_int_equal(directory_make("run/checkpoint-9"), 0); /* this directory is empty */
    assert_int_equal(directory_make("run/checkpoint-8"), 0);
    write_text("run/checkpoint-8/state.ini", "[state]\nof another program\n");
    assert_int_equal(symlink("checkpoint-20", "run/checkpoint-7"), 0); /* a link to a checkpoint is read, but never removed */
    write_text("run/checkpoint-6", "a file");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "run/%s", others[i]);
        assert_int_equal(directory_make(path), 0);
    }
    assert_int_equal(checkpoints_find("run", &all), 0);
    assert_int_equal(all.count, 8);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(all.list[i].path, wanted[i].path);
        assert_int_equal(all.list[i].step, wanted[i].step);
        assert_int_equal(all.list[i].kind, wanted[i].kind);
        assert_int_equal(all.list[i].own, wanted[i].own);
    }
    checkpoints_release(&all);
    assert_int_equal(checkpoints_remove("run"), 0);
    assert_names("run", "checkpoint- checkpoint--1 checkpoint-007 checkpoint-30.partial checkpoint-6 "
                        "checkpoint-7.Partial checkpoint-7.kept-1 checkpoint-7.kept-2 checkpoint-8 checkpoint-9 checkpoint-best latest "
                        "mycheckpoint-7");
    assert_int_equal(checkpoints_find("absent", &all), 0);
    assert_int_equal(all.count, 0);
}

/* A kill may interrupt the removal of a checkpoint. What remains no longer has a checkpoint's name, and the user's files in it are still there. */
static void goes_by_another_name(void **state) {
    struct checkpoint_entry one = {.path = "run/checkpoint-5", .step = 5, .kind = CHECKPOINT_IN_PLACE, .own = 1};
    write_checkpoint("run", 5, "a", "a");
    write_text("run/checkpoint-5/notes.txt", "the user's");
    assert_int_equal(checkpoint_remove(&one), 0);
    assert_names("run", "checkpoint-5 latest");
    assert_names("run/checkpoint-5", "notes.txt");
    assert_int_equal(file_remove("run/checkpoint-5/notes.txt"), 0);
    assert_int_equal(rmdir("run/checkpoint-5"), 0);
    write_checkpoint("run", 5, "a", "a");
    assert_int_equal(directory_make("run/checkpoint-5/target.npy.d"), 0);
    assert_int_equal(rename("run/checkpoint-5/target.npy.d", "run/checkpoint-5/target.npy"), -1);
    assert_int_equal(rmdir("run/checkpoint-5/target.npy.d"), 0);
    assert_int_equal(file_remove("run/checkpoint-5/target.npy"), 0);
    assert_int_equal(directory_make("run/checkpoint-5/target.npy"), 0); /* a directory, which unlink() cannot remove */
    assert_int_equal(checkpoint_remove(&one), -1);
    report_clear();
    assert_names("run", "checkpoint-5.partial latest");
    assert_int_equal(checkpoint_remove(&one), 0); /* removing an absent checkpoint is no error */
}

static void makes_way(void **state) {
    assert_int_equal(directory_make("run/checkpoint-5"), 0);
    write_text("run/checkpoint-5/weights", "the user's");
    write_text("run/checkpoint-5.kept-1", "an older one");
    assert_int_equal(checkpoint_make_way("run/checkpoint-5", CHECKPOINT_IN_PLACE), 0);
    assert_string_equal(text_of("run/checkpoint-5.kept-2/weights"), "the user's");
    assert_string_equal(text_of("run/checkpoint-5.kept-1"), "an older one");
    assert_int_equal(checkpoint_make_way("run/checkpoint-5", CHECKPOINT_IN_PLACE), 0);
    write_checkpoint("run", 5, "a", "a");
    assert_int_equal(checkpoint_make_way("run/checkpoint-5", CHECKPOINT_IN_PLACE), 0);
    assert_names("run", "checkpoint-5 checkpoint-5.kept-1 checkpoint-5.kept-2 latest");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_enter, scratch_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(finds_by_name_and_says_whose), TEST(goes_by_another_name), TEST(makes_way)};
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
