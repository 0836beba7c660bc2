#include "base/interrupt.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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

/* How a child ends that is sent SIGTERM so many times, watching or having watched. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(asks_while_it_is_watched), cmocka_unit_test(the_second_one_kills)};
    return cmocka_run_group_tests_name("interrupt", tests, NULL, NULL);
}
