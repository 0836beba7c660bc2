/* Tests how waiting time is counted. To avoid waiting, the tests set the time of the last look back. */
#include "tests/testing.h"

#include "base/waiting.h"

/* Returns the waiting time that is counted if the look before was `seconds` ago. */
static double waited_after(struct waiting *waiting, double seconds) {
    double before = waiting->seconds;
    waiting->last = waiting_now() - seconds;
    return waiting_seconds(waiting) - before;
}

static void looks_beside_one_another_add_up(void **state) {
    struct waiting waiting = waiting_begin();
    assert_true(waiting_seconds(&waiting) >= 0);
    for (int i = 0; i < 10; i++) assert_true(waited_after(&waiting, 0.25) >= 0.25);
    assert_true(waiting.seconds >= 2.5);
}

static void a_process_that_stood_still_has_not_waited(void **state) {
    struct waiting waiting = waiting_begin();
    for (int i = 0; i < 3; i++) assert_true(waited_after(&waiting, 3600) == 0);
    assert_true(waited_after(&waiting, 0.25) >= 0.25); /* the time is counted further */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_beside_one_another_add_up),
        cmocka_unit_test(a_process_that_stood_still_has_not_waited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
