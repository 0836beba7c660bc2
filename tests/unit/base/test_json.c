#include "base/report.h"
#include "base/text.h"

#include "tests/testing.h"

static struct json json;

static int tear_down(void **state) {
    json_release(&json);
    report_clear();
    return 0;
}

/* Checks that the last call has appended `wanted`. */
static void assert_added(const char *wanted) {
    assert_int_equal(json.failed, 0);
    assert_int_equal(json.used, strlen(json.bytes));
    assert_string_equal(json.bytes, wanted);
    json_release(&json);
}

static void string(const char *text, const char *wanted) {
    json_string(&json, text, strlen(text));
    assert_added(wanted);
}

static void plain(void **state) {
    string("", "\"\"");
    string("mutex lock", "\"mutex lock\"");
    string("na\xC3\xAFve \xE6\x97\xA5 \xF0\x9F\x98\x80", "\"na\xC3\xAFve \xE6\x97\xA5 \xF0\x9F\x98\x80\"");
    json_string(&json, "cut here", 3);
    assert_added("\"cut\"");
}

/* No character of a text may end the JSON string, an enclosing <script>, or the line. */
static void escaped(void **state) {
    string("\"\\", "\"\\u0022\\u005c\"");
    string("</script><!--&", "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
    string("\n\t\x01\x1F\x7F ", "\"\\u000a\\u0009\\u0001\\u001f\\u007f \"");
    json_string(&json, "a\0b", 3);
    assert_added("\"a\\u0000b\"");
}

/* Each byte that is no valid UTF-8 becomes one U+FFFD, and reading continues with the next byte. */
static void no_utf8(void **state) {
    string("\xFF", "\"\\ufffd\"");
    string("\x80x", "\"\\ufffdx\"");
    string("\xC3", "\"\\ufffd\"");
    string("\xC3(", "\"\\ufffd(\"");
    string("\xE6\x97", "\"\\ufffd\\ufffd\"");
    string("\xC0\xAF", "\"\\ufffd\\ufffd\"");            /* '/' in two bytes, an overlong form */
    string("\xE0\x9F\xBF", "\"\\ufffd\\ufffd\\ufffd\""); /* U+07FF in three bytes, an overlong form */
    string("\xE0\xA0\x80", "\"\xE0\xA0\x80\"");          /* the first character of three bytes */
    string("a\xC2\x9B"
           "1m\xC2\xA0",
           "\"a\\u009b1m\xC2\xA0\"");                    /* a control character of two bytes, and a no-break space */
    string("\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* half of a surrogate pair */
    string("\xED\x9F\xBF", "\"\xED\x9F\xBF\"");          /* the last character before the surrogates */
    string("\xF0\x8F\xBF\xBF", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    string("\xF0\x90\x80\x80", "\"\xF0\x90\x80\x80\"");
    string("\xF4\x8F\xBF\xBF", "\"\xF4\x8F\xBF\xBF\""); /* the last character of Unicode */
    string("\xF4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    string("\xF5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void numbers(void **state) {
    json_number(&json, 0.5);
    json_print(&json, ",");
    json_number(&json, -1234567);
    json_print(&json, ",%d,", 7);
    json_number(&json, NAN);
    json_print(&json, ",");
    json_number(&json, -INFINITY);
    json_print(&json, ",");
    json_decimals(&json, 1234567.5, 3);
    json_print(&json, ",");
    json_decimals(&json, NAN, 3);
    assert_added("0.5,-1.23457e+06,7,null,null,1234567.500,null");
}

static void base64(void **state) {
    static const char *const wanted[] = {"\"\"", "\"/w==\"", "\"/wA=\"", "\"/wD+\"", "\"/wD+TQ==\""};
    for (uint64_t length = 0; length < 5; length++) {
        json_base64(&json, "\xFF\0\xFEM", length);
        assert_added(wanted[length]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(plain, tear_down), cmocka_unit_test_teardown(escaped, tear_down),
        cmocka_unit_test_teardown(no_utf8, tear_down), cmocka_unit_test_teardown(numbers, tear_down),
        cmocka_unit_test_teardown(base64, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
