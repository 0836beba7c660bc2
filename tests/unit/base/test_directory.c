#include "tests/unit/scratch.h"

#include "tests/testing.h"
#include "tests/unit/sentence.h"

/* ---- making ---- */

static void makes_those_above_it(void **state) {
    for (int times = 0; times < 2; times++) {
        assert_int_equal(directory_make("a/b/c"), 0);
        assert_int_equal(directory_exists("a/b/c"), 1);
    }
    assert_int_equal(directory_make("x//y/"), 0);
    assert_int_equal(directory_exists("x/y"), 1);
    assert_int_equal(directory_make("."), 0);
    assert_int_equal(directory_make("/"), 0);
    assert_int_equal(directory_make(""), -1);
    sentence_holds("empty");
}

/* If a later ".." removes a part of the path, no directory is made for that part. */
static void makes_nothing_on_the_way(void **state) {
    assert_int_equal(directory_make("absent/../run"), 0);
    assert_int_equal(directory_exists("run"), 1);
    assert_int_equal(file_exists("absent"), 0);
    assert_int_equal(directory_make("absent/.."), 0);
    assert_int_equal(file_exists("absent"), 0);
}

static void goes_through_links(void **state) {
    assert_int_equal(mkdir("real", 0777), 0);
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(symlink("real/later", "broken"), 0);
    assert_int_equal(directory_make("link/a"), 0);
    assert_int_equal(directory_exists("real/a"), 1);
    assert_int_equal(directory_make("broken/b"), 0);
    assert_int_equal(directory_exists("real/later/b"), 1);
    assert_int_equal(directory_exists("link"), 1);
}

static int make_here(const char *path) {
    return directory_make(path);
}

static void says_what_is_in_the_way(void **state) {
    scratch_text("file", "");
    assert_int_equal(directory_make("file"), -1);
    sentence_holds("'file' is there and is not a directory");
    assert_int_equal(directory_make("file/d"), -1);
    sentence_holds("cannot make directory 'file/d': Not a directory");
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(without_rights(make_here, "new"), -1);
    sentence_holds("cannot make directory 'new': Permission denied");
    assert_int_equal(directory_exists("file"), 0);
    assert_int_equal(directory_exists("absent"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(directory_exists("loop/x"), -1);
    sentence_holds("cannot look at 'loop/x'");
}

/* If a later part of the path fails, the new directories are removed again, and older directories remain. */
static void a_failure_leaves_nothing(void **state) {
    char path[600] = "mine/deep/";
    assert_int_equal(mkdir("theirs", 0777), 0);
    memset(path + 10, 'x', 300); /* a name that is too long for every file system */
    assert_int_equal(directory_make(path), -1);
    sentence_holds("too long");
    assert_int_equal(file_exists("mine"), 0);
    memcpy(path, "theirs/", 7);
    assert_int_equal(directory_make(path), -1);
    report_clear();
    assert_int_equal(directory_exists("theirs"), 1);
}

static void only_what_was_made_is_taken_away_again(void **state) {
    unsigned made;
    assert_int_equal(directory_make_counted("a/b/c", &made), 0);
    assert_int_equal(made, 3);
    assert_int_equal(directory_make_counted("a/b/c/d/e", &made), 0);
    assert_int_equal(made, 2);
    directory_unmake("a/b/c/d/e", made);
    assert_int_equal(file_exists("a/b/c/d"), 0);
    assert_int_equal(directory_exists("a/b/c"), 1);
    assert_int_equal(directory_make_counted("a/b/c", &made), 0);
    assert_int_equal(made, 0);
    directory_unmake("a/b/c", made);
    assert_int_equal(directory_exists("a/b/c"), 1);
    assert_int_equal(directory_make_counted("a/b/c/d/e", &made), 0);
    scratch_text("a/b/c/d/theirs", "");
    directory_unmake("a/b/c/d/e", made);
    assert_int_equal(file_exists("a/b/c/d/e"), 0);
    assert_int_equal(file_exists("a/b/c/d/theirs"), 1);
}

static void syncs(void **state) {
    scratch_text("file", "");
    assert_int_equal(directory_sync("."), 0);
    assert_int_equal(directory_sync("file"), -1);
    sentence_holds("cannot open directory 'file'");
}

/* ---- what is in it ---- */

static void lists_by_bytes(void **state) {
    char **names;
    static const char *const wanted[] = {".hidden", "B", "a10", "a9", "b", "\xC3\xA4"};
    scratch_text("b", "");
    scratch_text("B", "");
    scratch_text("a10", "");
    scratch_text("a9", "");
    scratch_text(".hidden", "");
    scratch_text("\xC3\xA4", "");
    assert_int_equal(directory_list(".", &names), 6);
    for (int i = 0; i < 6; i++) assert_string_equal(names[i], wanted[i]);
    mem_free_texts(names, 6);
    assert_int_equal(directory_make("empty"), 0);
    assert_int_equal(directory_list("empty", &names), 0);
    mem_free_texts(names, 0);
    assert_int_equal(directory_list("absent", &names), -1);
    sentence_holds("cannot read directory 'absent'");
    mem_free_texts(names, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_enter, scratch_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(makes_those_above_it),
                                       TEST(makes_nothing_on_the_way),
                                       TEST(goes_through_links),
                                       TEST(says_what_is_in_the_way),
                                       TEST(a_failure_leaves_nothing),
                                       TEST(only_what_was_made_is_taken_away_again),
                                       TEST(syncs),
                                       TEST(lists_by_bytes)};
    return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}
