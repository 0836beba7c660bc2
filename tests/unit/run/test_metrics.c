#include "run/metrics.h"
#include "base/progress.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static struct metrics metrics;
static struct config config;

static int set_up(void **state) {
    if (scratch_make(state) || config_init(&config)) return -1;
    return metrics_open(&metrics, &config, scratch);
}

static int tear_down(void **state) {
    metrics_close(&metrics);
    config_release(&config);
    return scratch_remove(state);
}

static void a_loss_diverges_beyond_a_million_times_its_beginning(void **state) {
    static const struct {
        double first, most; /* loss of one dot product */
    } runs[] = {{0.7, 1e6}, {1, 1e6}, {3, 3e6}, {2e5, 2e11}};
    char text[METRICS_BYTES];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        metrics.began_term = 0;
        assert_null(metrics_diverged(&metrics, 0, 0, text)); /* the loss of a batch without terms does not become the run's first loss */
        assert_null(metrics_diverged(&metrics, runs[i].first * 64, 64, text));
        assert_null(metrics_diverged(&metrics, 1e-3, 64, text));
        assert_null(metrics_diverged(&metrics, runs[i].most * 0.999 * 64, 64, text));
        assert_non_null(metrics_diverged(&metrics, runs[i].most * 1.001 * 64, 64, text));
        assert_null(metrics_diverged(&metrics, runs[i].first * 64, 64, text)); /* the first loss is remembered */
    }
    metrics.began_term = 0.7;
    assert_string_equal(metrics_diverged(&metrics, 4e7, 10, text), "the loss is 4e+06 a dot product (it began at 0.7)");
    assert_string_equal(metrics_diverged(&metrics, NAN, 10, text), "the loss is not a number");
    assert_string_equal(metrics_diverged(&metrics, INFINITY, 10, text), "the loss is infinite");
    assert_string_equal(metrics_diverged(&metrics, NAN, 0, text), "the loss is not a number");
}

/* Time not spent on training counts neither in the rates nor in the time until the next report. */
static void time_beside_training_is_left_out(void **state) {
    struct step_result step = {.loss = 100, .examples = 10, .pairs = 100, .terms = 1000};
    struct progress_state at = {.step = 1};
    struct standing now = {.state = &at, .done = 0.5, .seconds = 1};
    double rate;
    report_quiet(1);
    metrics_start(&metrics);
    metrics_add_step(&metrics, &step);
    metrics.tally.began -= 1000; /* as if the time since the last report were 1,000 s longer */
    assert_true(metrics_due(&metrics));
    metrics_leave_out(&metrics, 990);
    assert_true(metrics_due(&metrics));
    metrics_report(&metrics, &now);
    char *text = file_read(metrics.path, NULL), *found = strstr(text, "\"pairs_per_second\": ");
    assert_non_null(found);
    assert_int_equal(sscanf(found, "\"pairs_per_second\": %lf", &rate), 1);
    assert_true(rate > 1 && rate <= 10); /* 100 in a little more than 10 s, not in 1,000 s */
    free(text);
    metrics_start(&metrics);
    metrics.tally.began -= 1000;
    metrics_leave_out(&metrics, 1000);
    assert_true(metrics.tally.began <= progress_now());
}

/* Every line is valid JSON: an infinite number is written as null, and a line may have any length. */
static void every_line_is_json(void **state) {
    static const double seconds[] = {1, 1e308, INFINITY};
    struct step_result step = {.loss = NAN, .examples = 10, .pairs = 100, .terms = 1000};
    struct progress_state at = {.step = 1};
    char *text, *end;
    report_quiet(1);
    for (int i = 0; i < 3; i++) {
        struct standing now = {.state = &at, .done = 0.5, .seconds = seconds[i], .lr = INFINITY};
        metrics_start(&metrics);
        metrics_untrained(&metrics, &step, &now);
        metrics_add_step(&metrics, &step);
        metrics_report(&metrics, &now);
        metrics_held_out(&metrics, &step, &now);
    }
    assert_non_null(text = file_read(metrics.path, NULL));
    assert_non_null(strstr(text, "\"done\": 0.500000, \"loss\": null, \"loss_pair\": null"));
    assert_non_null(strstr(text, "\"lr\": null"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    int lines = 0;
    for (char *line = text; (end = strchr(line, '\n')); line = end + 1, lines++) {
        assert_memory_equal(line, "{\"step\": 1, ", 12);
        assert_true(end[-1] == '}');
        for (char *c = line; c < end; c++) assert_true(*c >= ' ' && *c < 127);
    }
    assert_int_equal(lines, 9);
    free(text);
}

/* If lines cannot be written (here a directory has the file's name), the run continues and reports at its end how many are
 * missing. */
static void lines_that_cannot_be_written_are_counted(void **state) {
    struct step_result step = {.loss = 100, .examples = 10, .pairs = 100, .terms = 1000};
    struct progress_state at = {.step = 1};
    struct standing now = {.state = &at, .done = 0.5, .seconds = 1};
    report_quiet(1);
    metrics_start(&metrics);
    metrics_untrained(&metrics, &step, &now);
    assert_int_equal(metrics_complete(&metrics), 0);
    assert_int_equal(rename(metrics.path, in_scratch("kept")), 0);
    assert_int_equal(mkdir(metrics.path, 0700), 0);
    for (int i = 0; i < 2; i++) {
        metrics_add_step(&metrics, &step);
        metrics_report(&metrics, &now);
        assert_string_equal(report_sentence(), "");
    }
    metrics_held_out(&metrics, &step, &now);
    assert_int_equal(rmdir(metrics.path), 0);
    assert_int_equal(rename(in_scratch("kept"), metrics.path), 0);
    metrics_add_step(&metrics, &step);
    metrics_report(&metrics, &now);
    char *text = file_read(metrics.path, NULL);
    assert_non_null(strstr(text, "}\n{")); /* only the first and the last line are there */
    assert_null(strstr(strstr(text, "}\n{") + 2, "}\n{"));
    free(text);
    assert_int_equal(metrics_complete(&metrics), -1);
    if (!strstr(report_sentence(), "metrics.jsonl' lacks 3 lines: cannot write '")) fail_msg("%s", report_sentence());
}

/* Lines written after the checkpoint are removed. A line is compared by step; of several lines with the same step, by pairs and epochs. An
 * incomplete last line is removed, too. */
static void lines_after_a_checkpoint_are_cut(void **state) {
    static const char whole[] = "{\"step\": 0, \"epoch\": 0, \"loss\": 1}\n"
                                "{\"step\": 3, \"epoch\": 1, \"pairs\": 40, \"x\": 1}\n"
                                "half\n"
                                "{\"step\": 3, \"epoch\": 1, \"pairs\": 50, \"x\": 1}\n"
                                "{\"step\": 3, \"epoch\": 2, \"held_out_loss\": 1}\n"
                                "{\"step\": 3, \"epoch\": 3, \"held_out_loss\": 2}\n"
                                "{\"step\": 3, \"epoch\": 3, \"pairs\": 60, \"x\": 1}\n"
                                "{\"step\": 4, \"epoch\": 4, \"held_out_loss\": 3}\n"
                                "{\"step\": 5, \"los";
    static const struct { uint64_t step, epoch, pairs; int lines; } stands[] = {
        {5, 9, 99, 7}, {4, 4, 60, 7}, {4, 3, 60, 6}, {3, 4, 60, 6}, {3, 3, 59, 5}, {3, 2, 60, 4},
        {3, 2, 50, 4}, {3, 1, 55, 3}, {3, 1, 49, 2}, {2, 4, 50, 1}, {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof stands / sizeof *stands; i++) {
        struct progress_state stand = {.step = stands[i].step, .epoch = stands[i].epoch, .pairs = stands[i].pairs};
        assert_int_equal(file_replace(metrics.path, whole, sizeof whole - 1), 0);
        assert_int_equal(metrics_cut(&metrics, &stand), 0);
        char *text = file_read(metrics.path, NULL);
        int lines = 0;
        for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
        assert_int_equal(lines, stands[i].lines);
        assert_null(strstr(text, "half"));
        free(text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_loss_diverges_beyond_a_million_times_its_beginning),
                                       TEST(time_beside_training_is_left_out), TEST(every_line_is_json),
                                       TEST(lines_that_cannot_be_written_are_counted),
                                       TEST(lines_after_a_checkpoint_are_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
