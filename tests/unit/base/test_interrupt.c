#include "base/interrupt.h"
#include "base/pool.h"
#include "base/report.h"

#include "tests/testing.h"
#include <sys/wait.h>

static void asks_while_it_is_watched(void **state) {
    static const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct interrupt watch;
        assert_false(interrupt_asked());
        interrupt_watch(&watch);
        assert_false(interrupt_asked());
        raise(numbers[i]);
        assert_true(interrupt_asked());
        interrupt_end(&watch);
        assert_false(interrupt_asked());
    }
}

/* Sends a child process SIGTERM `times` times, either while it watches for signals or after it has stopped watching. Returns how it ends. */
static int end_of(int times, int watching) {
    int status;
    pid_t child = fork();
    if (!child) {
        struct interrupt watch;
        interrupt_watch(&watch);
        if (!watching) interrupt_end(&watch);
        while (times--) raise(SIGTERM);
        _exit(interrupt_asked() ? 7 : 8);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_second_one_kills(void **state) {
    assert_int_equal(end_of(0, 1), 8);
    assert_int_equal(end_of(1, 1), 7);
    assert_int_equal(end_of(2, 1), -SIGTERM);
    assert_int_equal(end_of(1, 0), -SIGTERM);
}

static int see_flag(void *context, unsigned worker) {
    ((int *)context)[worker] = interrupt_asked();
    return 0;
}

/* A thread that has a flag checks the flag in place of signals, and so do the workers that do its jobs. */
static void a_flag_takes_the_place_of_signals(void **state) {
    struct pool *pool = pool_open(3);
    struct interrupt watch;
    _Atomic int flag = 0;
    int seen[3];
    interrupt_watch(&watch);
    raise(SIGINT);
    assert_null(interrupt_use(&flag));
    for (int asked = 0; asked < 2; asked++) {
        flag = asked;
        assert_int_equal(interrupt_asked(), asked);
        assert_int_equal(interrupt_check(), -asked);
        assert_int_equal(pool_run(pool, see_flag, seen), 0);
        for (int i = 0; i < 3; i++) assert_int_equal(seen[i], asked);
    }
    assert_int_equal(report_exit_code(), REPORT_STOPPED);
    report_clear();
    assert_ptr_equal(interrupt_use(NULL), &flag);
    assert_true(interrupt_asked());
    assert_int_equal(interrupt_check(), 0);
    assert_int_equal(interrupt_ends_work(1), 0);
    assert_int_equal(interrupt_check(), -1);
    assert_string_equal(report_sentence(), "stopped by a signal before training has begun: nothing new is written");
    report_clear();
    assert_int_equal(interrupt_ends_work(0), 1);
    assert_int_equal(interrupt_check(), 0);
    pool_run(pool, see_flag, seen);
    for (int i = 0; i < 3; i++) assert_int_equal(seen[i], 1);
    interrupt_end(&watch);
    pool_close(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(asks_while_it_is_watched), cmocka_unit_test(the_second_one_kills),
                                       cmocka_unit_test(a_flag_takes_the_place_of_signals)};
    return cmocka_run_group_tests_name("interrupt", tests, NULL, NULL);
}
