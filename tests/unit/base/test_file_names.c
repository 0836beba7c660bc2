#include "base/file.h"
#include "tests/unit/file_holds.h"

static void joins_paths(void **state) {
    static const char *const all[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}, {"a", "", "a/"}};
    for (size_t i = 0; i < 5; i++) {
        char *path = file_join(all[i][0], all[i][1]);
        assert_string_equal(path, all[i][2]);
        free(path);
    }
}

static int looks_at(const char *path) {
    return file_exists(path);
}

/* A file counts as absent only if the system says so; any other answer is an error. */
static void tells_absent_from_unknown(void **state) {
    char *file = scratch_text("file", ""), *loop = in_scratch("loop"), *closed = in_scratch("closed"), part[300];
    assert_int_equal(symlink("nowhere", in_scratch("broken")), 0);
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(file_exists(file), 1);
    assert_int_equal(file_exists(scratch), 1);
    assert_int_equal(file_exists(in_scratch("broken")), 1);
    assert_int_equal(file_exists(loop), 1);
    assert_int_equal(file_exists(in_scratch("absent")), 0);
    assert_int_equal(file_exists(in_scratch("absent/x")), 0);
    assert_int_equal(file_exists(in_scratch("file/x")), 0);
    memset(part, 'x', sizeof part - 1);
    part[sizeof part - 1] = 0;
    assert_int_equal(file_exists(part), 0); /* no file can have such a name, so it is absent */
    assert_int_equal(file_exists(in_scratch("loop/x")), -1);
    assert_said("cannot look at", loop);
    assert_int_equal(mkdir(closed, 0), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(without_rights(looks_at, in_scratch("closed/x")), -1);
    assert_said("ermission", closed);
    chmod(closed, 0700);
}

static void removes_a_file(void **state) {
    char *file = scratch_text("file", "x");
    assert_int_equal(file_remove(file), 0);
    assert_false(file_exists(file));
    assert_int_equal(file_remove(file), 0); /* removing an absent file is no error */
    assert_int_equal(file_remove(scratch), -1);
    assert_said("cannot remove", scratch);
}

static void renames(void **state) {
    char *from = scratch_text("from", "new"), *to = scratch_text("to", "old");
    assert_int_equal(file_rename(from, to), 0);
    assert_holds(to, "new", 3);
    assert_int_equal(file_rename(from, to), -1);
    assert_said("cannot rename to", to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(joins_paths), TEST(tells_absent_from_unknown), TEST(removes_a_file), TEST(renames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
