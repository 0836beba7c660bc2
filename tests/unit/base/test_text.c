#include "base/text.h"

#include "tests/testing.h"

static void counts(void **state) {
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"5000", 5000},
                {" 7 ", 7},
                {"1e6", 1000000},
                {"2_000_000", 2000000},
                {"2.5e3", 2500},
                {"1e18", 1000000000000000000u},
                {"007", 7},
                {"9007199254740993", 9007199254740993u} /* 2^53 + 1, which a double cannot hold */,
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "1.5",
                                      "abc",
                                      "5k",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "1e30",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "1__0",
                                      "_1",
                                      "1_",
                                      "1 2",
                                      "1,000",
                                      "--1",
                                      "1e"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t value = 99;
        assert_int_equal(text_count(good[i].text, &value), 0);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t value;
        if (!text_count(bad[i], &value)) fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)value);
    }
}

static void blanks(void **state) {
    for (int byte = 0; byte < 256; byte++)
        assert_int_equal(text_is_blank((char)byte), byte && strchr(" \t\r\v\f", byte) != NULL);
}

static void a_number_of_a_thousand_digits_is_not_cut(void **state) {
    char text[1001];
    double real;
    uint64_t count;
    memset(text, '1', 1000);
    text[1000] = 0;
    assert_int_equal(text_count(text, &count), -1);
    assert_int_equal(text_real(text, &real), -1);
}

static void reals(void **state) {
    double value;
    assert_int_equal(text_real("1e-4", &value), 0);
    assert_true(value == 1e-4);
    assert_int_equal(text_real(" -0.75 ", &value), 0);
    assert_true(value == -0.75);
    assert_int_equal(text_real("0.30000000000000004", &value), 0);
    assert_true(value == 0.30000000000000004);
    static const char *const bad[] = {"", "x", "1x", "1 x", "nan", "inf", "-inf", "1e999", "0x1p3", "1..2", "1 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!text_real(bad[i], &value)) fail_msg("'%s' was read as %g", bad[i], value);
}

static void sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"4096", 4096},
                {"4096 B", 4096},
                {"1KB", 1000},
                {"1KiB", 1024},
                {"1K", 1024},
                {"512 MB", 512000000},
                {"512mib", 512ull << 20},
                {"11GiB", 11ull << 30},
                {"1.5G", 3ull << 29},
                {"2T", 2ull << 40},
                {"0", 0},
                {"1e9", 1000000000}};
    static const char *const bad[] = {"", "GiB", "11 Gi", "-1GiB", "1 G B", "11GiBB", "1e30GiB", "9000000TiB"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes;
        assert_int_equal(text_bytes(good[i].text, &bytes), 0);
        assert_true(bytes == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes;
        if (!text_bytes(bad[i], &bytes)) fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)bytes);
    }
}

static void times(void **state) {
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"90", 90}, {"90s", 90}, {"10m", 600}, {"10 min", 600}, {"2h", 7200}, {"1.5d", 129600}, {"0", 0}};
    static const char *const bad[] = {"", "m", "-5s", "5 parsecs", "5M", "5 m s"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double seconds;
        assert_int_equal(text_time(good[i].text, &seconds), 0);
        assert_true(seconds == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double seconds;
        if (!text_time(bad[i], &seconds)) fail_msg("'%s' was read as %g", bad[i], seconds);
    }
}

static void truths(void **state) {
    static const char *const yes[] = {"yes", "YES", "true", "on", "1", " yes "}, *const no[] = {"no", "False", "off",
                                                                                                "0"};
    static const char *const bad[] = {"", "y", "2", "yes no", "yesyesyes", "truee"};
    int value;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(text_truth(yes[i], &value), 0);
        assert_int_equal(value, 1);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(text_truth(no[i], &value), 0);
        assert_int_equal(value, 0);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(text_truth(bad[i], &value), -1);
}

static void values_for_people(void **state) {
    char out[TEXT_BYTES];
    assert_string_equal(text_of_bytes(out, 0), "0 B");
    assert_string_equal(text_of_bytes(out, 1023), "1023 B");
    assert_string_equal(text_of_bytes(out, 1024), "1.00 KiB");
    assert_string_equal(text_of_bytes(out, 11ull << 30), "11.0 GiB");
    assert_string_equal(text_of_bytes(out, UINT64_MAX), "16384 PiB");
    assert_string_equal(text_of_count(out, 0), "0");
    assert_string_equal(text_of_count(out, 999), "999");
    assert_string_equal(text_of_count(out, 1000), "1,000");
    assert_string_equal(text_of_count(out, 14886545), "14,886,545");
    assert_string_equal(text_of_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(text_of_rate(out, 2630000), "2.63 M");
    assert_string_equal(text_of_rate(out, 17), "17.0");
    assert_string_equal(text_of_rate(out, 1.5e12), "1500 G");
    assert_string_equal(text_of_time(out, 12), "12s");
    assert_string_equal(text_of_time(out, 1.25), "1.2s");
    assert_string_equal(text_of_time(out, 200), "3m20s");
    assert_string_equal(text_of_time(out, 3720), "1h02m");
    assert_string_equal(text_of_time(out, -1), "?");
    assert_string_equal(text_of_time(out, NAN), "?");
    assert_string_equal(text_of_time(out, INFINITY), "?");
}

static void whatever_the_value_there_is_capacity(void **state) {
    static const double values[] = {0, -1, 1, 9.95, 59.999, 3599.9, 1e9, 1e18, 1e300, -1e300, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char out[TEXT_BYTES + 8];
        memset(out, '#', sizeof out);
        assert_true(strlen(text_of_time(out, values[i])) < TEXT_BYTES);
        assert_true(strlen(text_of_rate(out, values[i])) < TEXT_BYTES);
        for (int k = TEXT_BYTES; k < TEXT_BYTES + 8; k++) assert_int_equal(out[k], '#');
    }
}

static void stripping(void **state) {
    char a[] = " \t a b \r\n", b[] = "", c[] = "   ";
    assert_string_equal(text_strip(a), "a b");
    assert_string_equal(text_strip(b), "");
    assert_string_equal(text_strip(c), "");
}

static void a_text_is_added_to_as_far_as_there_is_room(void **state) {
    char text[8];
    size_t n = text_add(text, sizeof text, 0, "%d", 12);
    assert_int_equal(n, 2);
    n = text_add(text, sizeof text, n, "%s", "345");
    assert_int_equal(n, 5);
    n = text_add(text, sizeof text, n, "%.3f", 1e300);
    assert_int_equal(n, 7); /* the number of bytes written; the whole text is longer */
    assert_int_equal(strlen(text), 7);
    assert_memory_equal(text, "12345", 5);
    assert_int_equal(text_add(text, sizeof text, n, "more"), 7);
}

static void nearest_name(void **state) {
    static const char *const names[] = {"train", "plan", "export", "nearest"};
    char long_word[500];
    assert_string_equal(text_nearest("trian", names, 4), "train");
    assert_string_equal(text_nearest("plans", names, 4), "plan");
    assert_string_equal(text_nearest("nearst", names, 4), "nearest");
    assert_null(text_nearest("export", names, 4)); /* the asked word itself is no suggestion */
    assert_string_equal(text_nearest("dim", (const char *const[]){"dim", "dims"}, 2), "dims");
    assert_string_equal(text_nearest("plna", names, 4), "plan"); /* two letters exchanged count as one edit */
    assert_string_equal(text_nearest("dmi", (const char *const[]){"dim"}, 1), "dim");
    assert_null(text_nearest("quux", names, 4));
    assert_null(text_nearest("", names, 4));
    assert_null(text_nearest("train", names, 0));
    memset(long_word, 'a', sizeof long_word);
    long_word[sizeof long_word - 1] = 0;
    assert_null(text_nearest(long_word, names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                       cmocka_unit_test(blanks),
                                       cmocka_unit_test(a_number_of_a_thousand_digits_is_not_cut),
                                       cmocka_unit_test(reals),
                                       cmocka_unit_test(sizes),
                                       cmocka_unit_test(times),
                                       cmocka_unit_test(truths),
                                       cmocka_unit_test(values_for_people),
                                       cmocka_unit_test(whatever_the_value_there_is_capacity),
                                       cmocka_unit_test(stripping),
                                       cmocka_unit_test(a_text_is_added_to_as_far_as_there_is_room),
                                       cmocka_unit_test(nearest_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
