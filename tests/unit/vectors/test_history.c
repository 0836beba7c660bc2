#include "tests/unit/scratch.h"
#include "vectors/page.h"

#include "tests/testing.h"

static struct json json;

/* Returns the history made from a metrics.jsonl with these lines. */
static const char *told(const char *lines) {
    json_release(&json);
    assert_int_equal(history_print(&json, lines ? scratch_text("metrics.jsonl", lines) : in_scratch("nowhere")), 0);
    assert_int_equal(json.failed, 0);
    return json.bytes;
}

static int tear_down(void **state) {
    json_release(&json);
    return scratch_remove(state);
}

#define LINE(done, rest) "{\"step\": 7, \"epoch\": 1, \"done\": " done ", " rest "}\n"

static void lines(void **state) {
    assert_string_equal(
        told(LINE(
            "0.25",
            "\"loss\": 12, \"loss_pair\": 3, \"loss_term\": 0.5, \"loss_untrained\": 16, \"lr\": 0.05, \"words\": 9, "
            "\"pairs\": 8, \"words_per_second\": 1e6, \"pairs_per_second\": 5e+06, \"link_bytes\": 0, \"seconds\": 1.5")
                 LINE("0.5", "\"held_out_loss\": 20, \"held_out_loss_pair\": 5, \"held_out_examples\": 99")
                     LINE("0.5", "\"held_out_mrr\": 0.25, \"held_out_hits10\": 0.5, \"held_out_triples\": 60")),
        "{\"trained\":{\"done\":[0.25],\"epoch\":[1],\"seconds\":[1.5],\"loss\":[3],\"lr\":[0.05],\"pairs\":[5e+06],"
        "\"words\":[1e+06]},\"held_out\":{\"done\":[0.5],\"epoch\":[1],\"loss\":[5]},"
        "\"scored\":{\"name\":\"MRR\",\"done\":[0.5],\"score\":[0.25]},\"untrained\":4}");
}

static void nothing(void **state) {
    static const char none[] =
        "{\"trained\":{\"done\":[],\"epoch\":[],\"seconds\":[],\"loss\":[],\"lr\":[],\"pairs\":[],"
        "\"words\":[]},\"held_out\":{\"done\":[],\"epoch\":[],\"loss\":[]},"
        "\"scored\":{\"name\":\"\",\"done\":[],\"score\":[]},\"untrained\":null}";
    assert_string_equal(told(NULL), none);
    assert_string_equal(told(""), none);
    assert_string_equal(told("\n}\nloss\n{\"done\": x}\n"), none);
}

/* The last line may be cut short by a kill. A value that is not a number becomes null. */
static void broken(void **state) {
    const char *text =
        told(LINE("0.1", "\"loss_pair\": 3, \"lr\": nan, \"pairs_per_second\": inf") "{\"step\": 8, \"done\": 0.2, "
                                                                                     "\"loss_pair\": 2");
    assert_non_null(strstr(text, "{\"done\":[0.1],"));
    assert_non_null(strstr(text, "\"loss\":[3],\"lr\":[null],\"pairs\":[null],\"words\":[null]"));
    assert_non_null(strstr(text, "\"untrained\":null"));
    assert_non_null(strstr(told(LINE("1", "\"held_out_recall\": 0.5, \"held_out_lists\": 9")),
                           "\"scored\":{\"name\":\"recall@20\",\"done\":[1],\"score\":[0.5]}"));
}

/* Writes a file of `count` lines whose loss is 0 and 2 in turns. */
static const char *long_run(int count) {
    char *text = malloc((size_t)count * 100), *at = text;
    for (int i = 0; i < count; i++)
        at += sprintf(at, "{\"step\": %d, \"epoch\": 0, \"done\": %.6f, \"loss_pair\": %d, \"lr\": %d}\n", i,
                      (i + 1.0) / count, i % 2 * 2, i);
    const char *result = told(text);
    free(text);
    return result;
}

static int commas_in(const char *list) {
    int commas = 0;
    for (; *list != ']'; list++) commas += *list == ',';
    return commas;
}

/* The page shows up to HISTORY_POINTS lines. If a run has more, neighbouring lines are merged: a measured value becomes the
 * average of its lines, and a counter becomes the counter of the last line. */
static void thinned(void **state) {
    assert_int_equal(commas_in(strstr(long_run(HISTORY_POINTS), "\"loss\":[")), HISTORY_POINTS - 1);
    assert_non_null(strstr(json.bytes, "\"loss\":[0,2,0,2,"));
    assert_int_equal(commas_in(strstr(long_run(HISTORY_POINTS + 1), "\"loss\":[")), HISTORY_POINTS / 2);
    assert_non_null(strstr(json.bytes, "\"loss\":[1,1,1,"));
    assert_non_null(strstr(json.bytes, "\"lr\":[1,3,5,"));
    assert_non_null(strstr(json.bytes, ",1],\"epoch\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(lines, scratch_make, tear_down),
                                       cmocka_unit_test_setup_teardown(nothing, scratch_make, tear_down),
                                       cmocka_unit_test_setup_teardown(broken, scratch_make, tear_down),
                                       cmocka_unit_test_setup_teardown(thinned, scratch_make, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
