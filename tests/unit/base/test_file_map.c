#include "base/file.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/testing.h"

enum { SIZE = 3 * 65536, MANY = 70 };
static volatile char seen;

/* Runs work() in a child process. Returns the child's status as waitpid() does, and the child's stderr. */
static int in_a_child(void (*work)(void), char *said, size_t capacity) {
    int pipes[2], status;
    size_t length = 0;
    ssize_t n;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        report_quiet(0);
        work();
        _exit(0);
    }
    close(pipes[1]);
    while ((n = read(pipes[0], said + length, capacity - 1 - length)) > 0) length += (size_t)n;
    said[length] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static char *big_file(const char *name) {
    char *bytes = calloc(1, SIZE), *path = scratch_file(name, bytes, SIZE);
    free(bytes);
    return path;
}

/* Three files are mapped, and the second is read, cut short, and read again. */
static void read_what_was_cut(void) {
    struct file_map maps[3];
    file_map_catch();
    file_map_open(&maps[0], in_scratch("one"));
    file_map_open(&maps[1], in_scratch("two\ttabs"));
    file_map_open(&maps[2], in_scratch("three"));
    for (int i = 0; i < 3; i++) seen += maps[i].data[SIZE - 1];
    if (truncate(in_scratch("two\ttabs"), 1)) _exit(7);
    seen += maps[0].data[SIZE - 1] + maps[2].data[SIZE - 1] + maps[1].data[0];
    seen += maps[1].data[SIZE - 1];
}

static void a_file_that_is_cut_short_is_named(void **state) {
    char said[1024], wanted[1024];
    big_file("one"), big_file("two\ttabs"), big_file("three");
    int status = in_a_child(read_what_was_cut, said, sizeof said);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    snprintf(wanted, sizeof wanted,
             "sptx-w2v: '%s/two\\ttabs' cannot be read any more: another program has cut it short, or its disk fails\n", scratch);
    assert_string_equal(said, wanted);
}

/* A map that was closed must be forgotten, since its address may then belong to the map of another file. */
static void read_after_many(void) {
    struct file_map map, many[MANY];
    file_map_catch();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) file_map_open(&many[i], in_scratch("one"));
        for (int i = 0; i < MANY; i++) file_map_close(&many[i]);
    }
    file_map_open(&map, in_scratch("three"));
    if (truncate(in_scratch("three"), 0)) _exit(7);
    seen += map.data[0];
}

static void closed_maps_are_forgotten(void **state) {
    char said[1024];
    big_file("one"), big_file("three");
    assert_int_equal(WEXITSTATUS(in_a_child(read_after_many, said, sizeof said)), 1);
    assert_non_null(strstr(said, "/three' cannot be read any more"));
}

static void be_told(void) {
    struct file_map map;
    file_map_catch();
    file_map_open(&map, in_scratch("one"));
    raise(SIGBUS);
}

static void other_such_signals_end_the_process(void **state) {
    char said[1024];
    big_file("one");
    signal(SIGBUS, SIG_DFL); /* otherwise a sanitizer's handler would write more to stderr */
    int status = in_a_child(be_told, said, sizeof said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_string_equal(said, "");
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_file_that_is_cut_short_is_named),
        IN_SCRATCH(closed_maps_are_forgotten),
        IN_SCRATCH(other_such_signals_end_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
