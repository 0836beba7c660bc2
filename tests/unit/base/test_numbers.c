#define _GNU_SOURCE
#include "base/pool.h"
#include "base/text.h"
#include "tests/decimal_comma.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static char written[2][8];

static int write_half(void *context, unsigned worker) {
    snprintf(written[worker], sizeof written[worker], "%.1f", 0.5);
    return 0;
}

/* Returns 0.5 as printf() writes it in this thread. */
static const char *half(void) {
    static char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    return text;
}

static void numbers_have_a_point_whatever_the_locale(void **state) {
    char *end;
    double value;
    if (decimal_comma_set(scratch)) {
        print_message("no locale with a decimal comma can be made here (localedef, and the sources of de_DE)\n");
        skip();
    }
    assert_string_equal(half(), "0,5");
    assert_true(numbers_read("2.5x", &end) == 2.5);
    assert_string_equal(end, "x");
    assert_true(numbers_read_float("1e-3", &end) == 1e-3f);
    assert_true(numbers_read("2,5", &end) == 2);
    assert_string_equal(end, ",5");
    assert_int_equal(text_real("0.025", &value), 0);
    assert_true(value == 0.025);
    assert_int_equal(text_real("0,025", &value), -1);
    locale_t before = numbers_enter();
    assert_string_equal(half(), "0.5");
    setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* any thread of the caller may change the locale at any time */
    assert_string_equal(half(), "0.5");
    numbers_leave(before);
    assert_string_equal(half(), "0,5");
    setlocale(LC_ALL, "C");
}

static void a_pool_writes_numbers_as_the_program_does(void **state) {
    if (decimal_comma_set(scratch)) skip();
    locale_t before = numbers_enter();
    struct pool *pool = pool_open(2);
    assert_int_equal(pool_run(pool, write_half, NULL), 0);
    pool_close(pool);
    numbers_leave(before);
    setlocale(LC_ALL, "C");
    assert_string_equal(written[0], "0.5");
    assert_string_equal(written[1], "0.5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_have_a_point_whatever_the_locale, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_pool_writes_numbers_as_the_program_does, scratch_make, scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
