#include "base/file.h"
#include "tests/unit/scratch.h"

#include <limits.h>

#include "tests/testing.h"

static void assert_stands_for(const char *path, const char *wanted) {
    char *got = path_resolve(path);
    if (!got) fail_msg("'%s': %s", path, report_sentence());
    else if (strcmp(got, wanted)) fail_msg("'%s' is said to be '%s', wanted '%s'", path, got, wanted);
    free(got);
}

static void assert_refused(const char *path, const char *part) {
    char *got = path_resolve(path);
    if (got) fail_msg("'%s' is said to be '%s'", path, got);
    if (!strstr(report_sentence(), part)) fail_msg("wanted \"%s\" in \"%s\"", part, report_sentence());
    report_clear();
}

static void parts_that_lead_nowhere_go(void **state) {
    static const char *const all[][2] = {
        {"run", "run"},     {"./run", "run"},  {"run/", "run"},     {"run//", "run"},     {".//./run/.", "run"},
        {"a/../run", "run"}, {"a/b/../..", "."}, {".", "."},         {"./", "."},          {"a/..", "."},
        {"..", ".."},       {"../", ".."},     {"../..", "../.."},  {"../x/..", ".."},    {"a/../../x", "../x"},
        {"/", "/"},         {"//", "/"},       {"/..", "/"},        {"/../x", "/x"},      {"/x/..", "/"},
        {"/x/../..", "/"},  {"...", "..."},    {"..a", "..a"},      {"a/./b/../c", "a/c"},
        {"\xD1\x81/../\xE6\x97\xA5", "\xE6\x97\xA5"}};
    for (int there = 0; there < 2; there++) { /* in the first round nothing of the path exists; in the second, a and x do */
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_stands_for(all[i][0], all[i][1]);
        assert_int_equal(directory_make("a/b"), 0);
        assert_int_equal(mkdir("x", 0777), 0 - there);
    }
    assert_refused("", "empty");
}

static void links_are_followed_even_to_nothing(void **state) {
    assert_int_equal(directory_make("real/inner"), 0);
    scratch_text("real/file", "");
    assert_int_equal(symlink("real/inner", "link"), 0);
    assert_int_equal(symlink("../link/..", "real/back"), 0);
    assert_int_equal(symlink("absent/x", "broken"), 0);
    assert_int_equal(symlink(scratch, "whole"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_stands_for("link", "real/inner");
    assert_stands_for("link/new", "real/inner/new");
    assert_stands_for("link/..", "real"); /* ".." after a link is the parent of the link's target, as for the system */
    assert_stands_for("real/back", "real");
    assert_stands_for("real/back/back/file", "real/file");
    assert_stands_for("broken", "absent/x");
    assert_stands_for("broken/../y", "absent/y");
    char *wanted = realpath("real", NULL);
    assert_stands_for("whole/real", wanted);
    free(wanted);
    assert_refused("loop", "loop");
    assert_refused("loop/x", "loop");
    assert_refused("real/file/..", "Not a directory");
    assert_stands_for("real/file/x", "real/file/x"); /* the error comes later, from the attempt to create a file there */
}

static void what_is_open_stays(void **state) {
    assert_stands_for("/dev/stdout", "/proc/self/fd/1");
    assert_stands_for("/dev/fd/1", "/proc/self/fd/1");
    assert_stands_for("/proc/self/fd/1", "/proc/self/fd/1");
    assert_int_equal(symlink("/dev/stdout", "out"), 0);
    assert_stands_for("out", "/proc/self/fd/1");
}

static void paths_of_any_length(void **state) {
    enum { DEEP = 2000 };
    char *path = calloc(DEEP, 4), part[NAME_MAX + 2];
    for (int i = 0; i < DEEP; i++) strcat(path, i < DEEP / 2 ? "a/" : "../");
    assert_stands_for(path, ".");
    strcat(path, "run");
    assert_stands_for(path, "run");
    for (int i = 0; i < DEEP; i++) memcpy(path + 2 * i, "d/", 3);
    path[2 * DEEP - 1] = 0;
    assert_stands_for(path, path); /* no part of the path exists, so no system call is given the whole path */
    memset(part, 'x', NAME_MAX + 1);
    part[NAME_MAX + 1] = 0;
    assert_refused(part, "too long");
    free(path);
}

static int looks_below(const char *path) {
    char *got = path_resolve(path);
    free(got);
    return got ? 1 : 0;
}

static void what_cannot_be_looked_at_is_no_absence(void **state) {
    assert_int_equal(directory_make("closed/run"), 0);
    assert_int_equal(chmod("closed", 0), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(without_rights(looks_below, "closed/run"), 0);
    assert_non_null(strstr(report_sentence(), "ermission"));
    chmod("closed", 0700);
}

static void parents(void **state) {
    static const char *const all[][2] = {{"a", "."}, {"a/b", "a"}, {"/a", "/"}, {"/a/b", "/a"}, {"../a", ".."}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *got = path_parent(all[i][0]);
        assert_string_equal(got, all[i][1]);
        free(got);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_enter, scratch_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(parts_that_lead_nowhere_go),
                                       TEST(links_are_followed_even_to_nothing),
                                       TEST(what_is_open_stays),
                                       TEST(paths_of_any_length),
                                       TEST(what_cannot_be_looked_at_is_no_absence),
                                       TEST(parents)};
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
