#include "base/pool.h"
#include "base/progress.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static void the_first_sentence_wins(void **state) {
    assert_string_equal(report_sentence(), "");
    assert_int_equal(report_exit_code(), 0);
    assert_int_equal((fail)("cause %d", 1), -1);
    assert_int_equal(fail_usage("consequence"), -1);
    assert_string_equal(report_sentence(), "cause 1");
    assert_int_equal(report_exit_code(), 1);
    report_clear();
    assert_string_equal(report_sentence(), "");
    assert_int_equal(report_exit_code(), 0);
    assert_int_equal(fail_usage("how"), -1);
    assert_int_equal(report_exit_code(), 2);
    assert_string_equal(report_sentence(), "how");
}

static void a_sentence_is_one_line_whatever_it_quotes(void **state) {
    (fail)("'%s' is not\ta type", "<f4\n\033[2J\177");
    assert_string_equal(report_sentence(), "'<f4??[2J?' is not\\ta type");
    report_clear();
    /* control characters of C1, as one byte and in UTF-8, and letters whose bytes are similar */
    (fail)("'\x9B"
           "1m' '\xC2\x9B"
           "1m' 'caf\xC3\xA9 \xD0\x9B\xE2\x80\x9C caf\xE9'");
    assert_string_equal(report_sentence(), "'?1m' '?1m' 'caf\xC3\xA9 \xD0\x9B\xE2\x80\x9C caf\xE9'");
}

static void tabs_are_shown_while_there_is_room(void **state) {
    char text[12] = "a\tb\t\tc\n\t";
    terminal_make_line(text, sizeof text);
    assert_string_equal(text, "a\\tb\\t\\tc??");
}

static void a_long_sentence_is_cut_not_overrun(void **state) {
    char *text = calloc(100001, 1);
    memset(text, 'x', 100000);
    (fail)("%s", text);
    assert_in_range(strlen(report_sentence()), 1000, 99999);
    free(text);
}

static int fails(void *context, unsigned worker) {
    return (fail)("worker %u says so", worker);
}

/* If many threads fail at once, one of their messages is kept, whole. */
static void threads_do_not_mix_their_sentences(void **state) {
    struct pool *pool = pool_open(8);
    for (int i = 0; i < 500; i++) {
        unsigned worker;
        char rest[16];
        report_clear();
        assert_int_equal(pool_run(pool, fails, NULL), -1);
        assert_int_equal(sscanf(report_sentence(), "worker %u says %15s", &worker, rest), 2);
        assert_string_equal(rest, "so");
    }
    pool_close(pool);
}

/* Returns what work() writes to stderr, which is redirected to a file during the call. */
static char *stderr_of(void (*work)(void)) {
    char *path = scratch_text("stderr", "");
    fflush(stderr);
    int kept = dup(2);
    assert_non_null(freopen(path, "w", stderr));
    work();
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    return file_read(path, NULL);
}

static void speak(void) {
    report_quiet(0);
    note("a note of %d", 3);
    warn("a warning");
    report_live("a live line");
    report_live("");
    report_live("another");
    report_quiet(1);
    note("unheard");
    warn("unheard");
    report_live("unheard");
}

static void lines_off_a_terminal(void **state) {
    char *text = stderr_of(speak);
    assert_string_equal(text, "a note of 3\nsptx-w2v: warning: a warning\na live line\nanother\n");
    free(text);
}

static void speak_later(void) {
    report_quiet(0);
    report_hold();
    warn("held");
    note("held, too");
    fputs("at once\n", stderr);
    report_release(1);
    warn("after it");
    report_release(1); /* no message is held, so nothing is printed */
    report_hold();
    warn("never told");
    report_release(0);
    report_quiet(1);
}

static void what_is_held_is_told_in_its_order(void **state) {
    char *text = stderr_of(speak_later);
    assert_string_equal(text, "at once\nsptx-w2v: warning: held\nheld, too\nsptx-w2v: warning: after it\n");
    free(text);
}

static void show_progress(void) {
    struct progress progress;
    report_quiet(0);
    progress_start(&progress, "counting", 1);
    progress_show(&progress, 1, 4, "B"); /* too early for another line */
    progress.shown -= 1000;
    progress.started -= 100;
    progress_show(&progress, 50000000, 200000000, "B");
    progress.shown -= 1000;
    progress_show(&progress, 500, 1000, "words");
    progress.shown -= 1000;
    progress_show(&progress, 500, 0, "words"); /* the total is unknown */
    progress.shown -= 1000;
    progress_show(&progress, 0, 10, "words");
    progress.shown -= 1000;
    progress_show(&progress, 20, 10, "words"); /* more is done than was expected */
    progress_end(&progress);
    report_quiet(1);
}

static void progress_says_share_rate_and_time_left(void **state) {
    char *text = stderr_of(show_progress), *line[6] = {0}, *rest = text;
    int lines = 0;
    for (; lines < 6 && rest && *rest; lines++) line[lines] = strsep(&rest, "\n");
    assert_int_equal(lines, 5);
    assert_string_equal(line[0], "counting 25%  500 kB/s  ETA 5m00s");
    assert_string_equal(line[1], "counting 50%  5.00 words/s  ETA 1m40s");
    assert_string_equal(line[2], "counting  5.00 words/s");
    assert_string_equal(line[3], "counting  0.00 words/s");
    assert_string_equal(line[4], "counting 100%  0.20 words/s  ETA 0.0s");
    free(text);
}

static void the_clock_goes_on(void **state) {
    double before = progress_now();
    usleep(20000);
    assert_true(progress_now() - before > 0.015);
    assert_true(progress_now() - before < 60);
}

static int fail_on_each(void *context, unsigned worker) {
    return (fail)("worker of %s", (const char *)context);
}

/* Each handle keeps its own message, whichever threads work for it. The message of the program itself does not change. */
static void sinks_keep_their_own(void **state) {
    struct pool *pool = pool_open(3);
    struct report *one = report_open(NULL, NULL), *two = report_open(NULL, NULL);
    assert_null(report_use(one));
    assert_int_equal(pool_run(pool, fail_on_each, "one"), -1);
    assert_ptr_equal(report_use(two), one);
    assert_int_equal(report_exit_code(), 0);
    assert_int_equal(pool_run(pool, fail_on_each, "two"), -1);
    assert_string_equal(report_sentence(), "worker of two");
    report_use(one);
    assert_string_equal(report_sentence(), "worker of one");
    report_use(NULL);
    assert_string_equal(report_sentence(), "");
    report_close(one);
    report_close(two);
    pool_close(pool);
}

static void hear(void *user, const char *warning) {
    strcat(user, warning);
}

static void speak_to_a_sink(void) {
    char heard[64] = "";
    struct report *sink = report_open(hear, heard), *deaf = report_open(NULL, NULL);
    report_use(sink);
    warn("%d is odd", 3);
    note("not heard");
    report_live("nor this");
    remark("; %d ratings", 4);
    report_use(deaf);
    warn("dropped");
    report_use(NULL);
    assert_string_equal(heard, "3 is odd; 4 ratings");
    report_close(sink);
    report_close(deaf);
}

static void a_sink_writes_nothing(void **state) {
    char *text = stderr_of(speak_to_a_sink);
    assert_string_equal(text, "");
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(the_first_sentence_wins),
                                       TEST(a_sentence_is_one_line_whatever_it_quotes),
                                       TEST(tabs_are_shown_while_there_is_room),
                                       TEST(a_long_sentence_is_cut_not_overrun),
                                       TEST(threads_do_not_mix_their_sentences),
                                       TEST(lines_off_a_terminal),
                                       TEST(what_is_held_is_told_in_its_order),
                                       TEST(progress_says_share_rate_and_time_left),
                                       TEST(the_clock_goes_on),
                                       TEST(sinks_keep_their_own),
                                       TEST(a_sink_writes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
