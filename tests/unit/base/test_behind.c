#include "tests/testing.h"

#include "base/pool.h"
#include "base/report.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct job {
    _Atomic int may_end;
    int result, hears; /* hears: 1 if a SIGUSR1 could interrupt the thread that does the work */
};

static int work(void *user) {
    struct job *job = user;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    job->hears = !sigismember(&blocked, SIGUSR1);
    while (!job->may_end) usleep(100);
    if (job->result) fail(job->result == -1 ? "the disk is full" : "row 3 holds infinity");
    return job->result;
}

static void the_caller_goes_on_while_work_is_done(void **state) {
    struct job job = {0};
    struct behind behind;
    assert_int_equal(behind_begin(&behind, work, &job), 0);
    assert_int_equal(behind_is_done(&behind), 0);
    job.may_end = 1;
    behind_wait(&behind);
    behind_wait(&behind);
    assert_int_equal(behind_is_done(&behind), 1);
    assert_int_equal(behind_end(&behind), 0);
    assert_int_equal(job.hears, 0);
    behind_close(&behind);
}

static void a_failure_is_told_where_it_is_asked_for(void **state) {
    for (int result = -1; result < 2; result += 2) {
        struct job job = {.may_end = 1, .result = result};
        struct behind behind;
        int code;
        report_clear();
        assert_int_equal(behind_begin(&behind, work, &job), 0);
        const char *wanted = result < 0 ? "the disk is full" : "row 3 holds infinity";
        assert_string_equal(behind_sentence(&behind, &code), wanted);
        assert_int_equal(code, 1);
        assert_string_equal(report_sentence(), "");
        assert_int_equal(behind_end(&behind), result);
        assert_string_equal(report_sentence(), wanted);
        behind_close(&behind);
        behind_close(&behind);
    }
    report_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caller_goes_on_while_work_is_done),
        cmocka_unit_test(a_failure_is_told_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
