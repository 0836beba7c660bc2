#include "base/interrupt.h"
#include "vectors/page.h"
#include "tests/unit/small_run.h"

#include <math.h>
#include <signal.h>

enum { ROWS = 40, DIM = 4 };

static struct small_run run;
static struct model model;
static struct config config;
static struct titles titles;
static char *out;
static struct page_size size;

/* Makes a run with the words `first`, w1, w2, .., of which the last is the most frequent. */
static void make_run(const char *first) {
    char words[ROWS * 16 + 512], *at = words;
    float values[ROWS * DIM];
    for (int i = 0; i < ROWS; i++) {
        at += i ? sprintf(at, "w%d\t%d\n", i, i) : sprintf(at, "%s\t20\n", first);
        for (int j = 0; j < DIM; j++) values[i * DIM + j] = sinf((float)(i * i + 7 * j));
    }
    small_run_make(&run, words, ROWS, DIM, values, values);
    out = small_path(run.directory, "out.html");
    assert_int_equal(model_open(&model, run.directory), 0);
    assert_int_equal(config_init(&config), 0);
}

static int tear_down(void **state) {
    model_close(&model);
    config_release(&config);
    titles_release(&titles);
    small_run_remove(&run);
    free(out);
    return 0;
}

static int write_page(uint64_t top, uint64_t listed) {
    struct page_request request = {.run = "runs/it's", .rows = model.rows, .top = top, .listed = listed, .titles = &titles};
    return page_write(&model, &request, &config, out, &size);
}

/* Returns the page as a text, which the caller frees. */
static char *page(uint64_t top, uint64_t listed) {
    uint64_t length;
    assert_int_equal(write_page(top, listed), 0);
    char *text = file_read(out, &length);
    assert_non_null(text);
    assert_int_equal(length, size.bytes);
    assert_int_equal(strlen(text), size.bytes);
    return text;
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text++) count++;
    return count;
}

static void parts(void **state) {
    make_run("first");
    char *text = page(20, 30);
    assert_int_equal(strncmp(text, "<!doctype html>", 15), 0);
    assert_null(strstr(text, "{{"));
    assert_non_null(strstr(text, "{\"version\":\""));
    assert_non_null(strstr(text, "\"run\":\"runs/it's\",\"rows\":40,\"dim\":4,"));
    assert_non_null(strstr(text, "\"table\":\"target\",\"top\":20,\"listed\":30,"));
    assert_non_null(strstr(text, "\"names\":[\"w39\",\"w38\",")); /* the most frequent word is first */
    assert_non_null(strstr(text, "\"w21\",\"first\",\"w20\","));  /* of equally frequent words the lower id is first */
    assert_non_null(strstr(text, "\"titles\":[]"));
    assert_non_null(strstr(text, "\"k\":10,"));
    assert_non_null(strstr(text, "\"history\":{\"trained\":{\"done\":[]")); /* the run has no metrics.jsonl, so the history is
                                                                             * empty */
    free(text);
}

/* Asks for more rows than the run has, and for more rows on the map than in the search. */
static void bounds(void **state) {
    make_run("first");
    char *text = page(1000, 1000);
    assert_non_null(strstr(text, "\"top\":40,\"listed\":40,"));
    free(text);
    text = page(30, 5);
    assert_non_null(strstr(text, "\"top\":30,\"listed\":30,"));
    free(text);
    text = page(1, 1);
    assert_non_null(strstr(text, "\"top\":1,\"listed\":1,"));
    free(text);
}

/* The run has only one row. */
static void lonely(void **state) {
    static const float values[2] = {1, 2};
    small_run_make(&run, "only\t1\n", 1, 2, values, values);
    out = small_path(run.directory, "out.html");
    assert_int_equal(model_open(&model, run.directory), 0);
    assert_int_equal(config_init(&config), 0);
    char *text = page(5, 5);
    assert_non_null(
        strstr(text, "\"names\":[\"only\"],\"counts\":[1],\"titles\":[],\"k\":0,\"near\":\"\",\"scores\":\"\","));
    free(text);
}

/* A word may contain text that would end the page's data, or that would look like the nonce that scripts need. Neither may have
 * an effect. */
static void hostile_words(void **state) {
    make_run("first");
    char *text = page(ROWS, ROWS);
    int ends = count_of(text, "</script>"), begins = count_of(text, "<script");
    char nonce[64], *at = strstr(text, "nonce-");
    snprintf(nonce, sizeof nonce, "%.32s", at + 6);
    assert_int_equal(strspn(nonce, "0123456789abcdef"), 32);
    assert_int_equal(count_of(text, nonce), 4); /* the nonce occurs twice in the policy, once at the style and once at the script */
    free(text);
    tear_down(NULL);
    make_run("</script><script>alert(1)</script>\"'\\\x01\xFF<!--");
    text = page(ROWS, ROWS);
    assert_int_equal(count_of(text, "</script>"), ends);
    assert_int_equal(count_of(text, "<script"), begins);
    assert_int_equal(count_of(text, "<!--"), 0);
    assert_int_equal(count_of(text, nonce), 0);
    assert_non_null(strstr(
        text, "\"\\u003c/script\\u003e\\u003cscript\\u003ealert(1)\\u003c/script\\u003e\\u0022'\\u005c\\u0001\\ufffd"));
    free(text);
}

/* At most 300 bytes of a name are shown, and a character is never cut. */
static void long_names(void **state) {
    char word[400], wanted[410];
    memset(word, 'a', sizeof word);
    word[300] = 0;
    make_run(word);
    char *text = page(ROWS, ROWS);
    snprintf(wanted, sizeof wanted, "\"%s\"", word);
    assert_non_null(strstr(text, wanted));
    free(text);
    tear_down(NULL);
    strcpy(word + 299, "\xC3\xA9z");
    make_run(word);
    text = page(ROWS, ROWS);
    snprintf(wanted, sizeof wanted, "\"%.299s\xE2\x80\xA6\"", word);
    assert_non_null(strstr(text, wanted));
    free(text);
}

static void same_bytes(void **state) {
    make_run("first");
    config.device_threads = 1;
    char *one = page(ROWS, ROWS);
    config.device_threads = 3;
    char *three = page(ROWS, ROWS);
    assert_string_equal(one, three);
    free(one);
    free(three);
}

static void shown_titles(void **state) {
    make_run("first");
    small_write(run.directory, "titles", "w39\tThe \"last\"\n", 15);
    char *path = small_path(run.directory, "titles");
    assert_int_equal(titles_read(&titles, &model, path), 0);
    char *text = page(ROWS, ROWS);
    assert_non_null(strstr(text, "\"titles\":[\"The \\u0022last\\u0022\",null,null,"));
    free(path);
    free(text);
}

/* If the page would be too large, it gets as many lists of nearest rows as fit. */
static void as_many_lists_as_fit(void **state) {
    make_run("first");
    free(page(9, 9));
    uint64_t least = size.bytes;
    free(page(9, ROWS));
    uint64_t all = size.bytes;
    char *filling = malloc(PAGE_BYTES);
    memset(filling, 'x', PAGE_BYTES);
    small_write(run.directory, "config.ini", filling, PAGE_BYTES - all);
    free(page(9, ROWS));
    assert_int_equal(size.bytes, PAGE_BYTES);
    assert_int_equal(size.listed, ROWS);
    small_write(run.directory, "config.ini", filling, PAGE_BYTES - all + 1);
    char *text = page(9, ROWS);
    assert_in_range(size.listed, 9, ROWS - 1);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"top\":9,\"listed\":%d,", (int)size.listed);
    assert_non_null(strstr(text, wanted));
    free(text);
    small_write(run.directory, "config.ini", filling, PAGE_BYTES - least);
    free(page(9, ROWS));
    assert_int_equal(size.listed, 9);
    small_write(run.directory, "config.ini", filling, PAGE_BYTES - least + 1);
    assert_failed_with(write_page(9, ROWS), "the page would take 10.0 MB");
    free(filling);
}

static void stopped(void **state) {
    struct interrupt watch;
    make_run("first");
    interrupt_watch(&watch);
    raise(SIGINT);
    assert_failed_with(write_page(9, 9), "stopped by a signal: nothing was written");
    interrupt_end(&watch);
    assert_int_equal(file_exists(out), 0);
}

/* If the page cannot be made, the old file stays and no partial file is left. */
static void refused(void **state) {
    struct page_request request = {.run = "run", .top = 9, .listed = 9, .titles = &titles, .evaluation_count = 1};
    make_run("first");
    request.rows = model.rows;
    char *vocab = small_path(run.directory, "vocab.tsv"), *large = malloc(PAGE_BYTES), *before = page(9, 9);
    small_write(run.directory, "config.ini", "; written by sptx-w2v for the run\n", 34);
    assert_failed_with(page_write(&model, &request, &config, vocab, &size), "is a file of the run in");
    request.evaluations = (const char *const[]){"/nowhere"};
    assert_failed_with(page_write(&model, &request, &config, out, &size), "'/nowhere'");
    memset(large, 'x', PAGE_BYTES);
    small_write(run.directory, "config.ini", large, PAGE_BYTES);
    assert_failed_with(write_page(9, 9),
                       "more than the 10 MB that a browser opens at once: ask for fewer rows than --top=9");
    char *after = file_read(out, NULL);
    assert_string_equal(before, after);
    char **names;
    int64_t count = directory_list(run.directory, &names);
    for (int64_t i = 0; i < count; i++) assert_null(strstr(names[i], "partial"));
    mem_free_texts(names, count);
    free(vocab);
    free(large);
    free(before);
    free(after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(parts, tear_down),         cmocka_unit_test_teardown(bounds, tear_down),
        cmocka_unit_test_teardown(hostile_words, tear_down), cmocka_unit_test_teardown(long_names, tear_down),
        cmocka_unit_test_teardown(same_bytes, tear_down),    cmocka_unit_test_teardown(shown_titles, tear_down),
        cmocka_unit_test_teardown(refused, tear_down),       cmocka_unit_test_teardown(lonely, tear_down),
           cmocka_unit_test_teardown(as_many_lists_as_fit, tear_down),
        cmocka_unit_test_teardown(stopped, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
