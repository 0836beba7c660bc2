#include "base/directory.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

#include "tests/unit/sentence.h"

static const struct directory_mark mark = {"mine", "made by this test\n"};

static void write_in(const char *path, const char *text) {
    assert_int_equal(file_replace(path, text, strlen(text)), 0);
}

static void what_was_made_is_known_and_removed(void **state) {
    assert_int_equal(directory_mark_is_there("d", &mark), 0);
    assert_int_equal(directory_mark_make("d", &mark), 0);
    assert_int_equal(directory_mark_is_there("d", &mark), 1);
    assert_int_equal(directory_mark_make("d", &mark), -1);
    sentence_holds("cannot make directory 'd'");
    assert_int_equal(directory_mark_remove("d", &mark), 0);
    assert_int_equal(file_exists("d"), 0);
}

/* A process may be killed after it has made the directory but before it has written the mark. A later process must still recognize the directory
 * as the program's. */
static void what_was_just_made_is_known(void **state) {
    assert_int_equal(directory_make("d"), 0);
    assert_int_equal(directory_mark_is_there("d", &mark), 1);
    write_in("d/mine.7-0123456789abcdef.partial", "made by");
    assert_int_equal(directory_mark_is_there("d", &mark), 1);
    assert_int_equal(directory_mark_remove("d", &mark), 0);
    assert_int_equal(file_exists("d"), 0);
}

static void what_others_made_is_not(void **state) {
    assert_int_equal(directory_make("d"), 0);
    write_in("d/other", "text");
    assert_int_equal(directory_mark_is_there("d", &mark), 0);
    write_in("d/mine", "made by this test\nand more\n");
    assert_int_equal(directory_mark_is_there("d", &mark), 0);
    write_in("file", "text");
    assert_int_equal(directory_mark_is_there("file", &mark), 0);
    assert_int_equal(directory_mark_make("marked", &mark), 0);
    assert_int_equal(symlink("marked", "link"), 0);
    assert_int_equal(directory_mark_is_there("link", &mark), 0);
}

static void files_of_others_stay(void **state) {
    assert_int_equal(directory_mark_make("d", &mark), 0);
    write_in("d/other", "text");
    assert_int_equal(directory_mark_remove("d", &mark), 0);
    assert_int_equal(file_exists("d/other"), 1);
    assert_int_equal(file_exists("d/mine"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_made_is_known_and_removed, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(what_was_just_made_is_known, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(what_others_made_is_not, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(files_of_others_stay, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests_name("directory_mark", tests, NULL, NULL);
}
