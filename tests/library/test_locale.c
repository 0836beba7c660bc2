/* Tests the library in a program whose locale has a decimal comma: files must be read and written with a point. */
#define _GNU_SOURCE
#include "../testing.h"

#include "sptx.h"

#include "../decimal_comma.h"

static void assert_comma(void) {
    char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
}

/* Progress callback. It must run in the program's locale, and may change it. */
static int hear(void *user, const struct sptx_progress *progress) {
    int *times = user;
    assert_comma();
    assert_non_null(setlocale(LC_NUMERIC, "de_DE.UTF-8"));
    return ++*times == 1; /* stop after the first report; training is resumed later */
}

static void hear_warning(void *user, const char *text) {
    assert_comma();
    ++*(int *)user;
}

/* Returns the number of lines of a file with a digit, a comma and a digit. */
static int lines_with_comma(const char *directory, const char *name) {
    char path[128], line[1024];
    int found = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        for (char *at = line; (at = strchr(at, ',')); at++)
            found += at > line && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9';
    fclose(file);
    return found;
}

static void train_twice(struct sptx_context *context, const char *directory) {
    char corpus[96], run[96];
    int heard = 0;
    snprintf(corpus, sizeof corpus, "corpus.path=%s/text.txt", directory);
    snprintf(run, sizeof run, "run.dir=%s/run", directory);
    const char *settings[] = {corpus,
                              run,
                              "corpus.min_count=1",
                              "model.dim=16",
                              "train.update=batch",
                              "train.batch=500",
                              "train.epochs=3",
                              "train.report_seconds=0.01",
                              "optimizer.rule=adagrad",
                              "optimizer.lr=0.05"};
    enum { COUNT = sizeof settings / sizeof *settings };
    enum sptx_status status = sptx_train(context, NULL, settings, COUNT, 0, hear, &heard);
    if (status != SPTX_STOPPED) fail_msg("%d: %s", status, sptx_error(context));
    status = sptx_train(context, NULL, settings, COUNT, 1, NULL, NULL);
    if (status) fail_msg("%s", sptx_error(context));
    assert_int_equal(lines_with_comma(directory, "run/metrics.jsonl"), 0);
    assert_int_equal(lines_with_comma(directory, "run/config.ini"), 0);
}

static void table_sentences(struct sptx_context *context) {
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = 3, options.dim = 2, options.optimizer = "sgd", options.lr = 0.5;
    options.init = "uniform -0.5 0.5";
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    assert_int_equal(sptx_table_set_lr(table, -0.5), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "lr = -0.5 "));
    sptx_table_close(table);
}

static void a_decimal_comma_changes_nothing(void **state) {
    char directory[] = "/tmp/sptx-library.XXXXXX", path[96], command[64];
    int warned = 0;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/text.txt", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 20000; i++) fprintf(file, i % 2 ? "red green blue\n" : "one two three four\n");
    fclose(file);
    int there = !decimal_comma_set(directory);
    if (there) {
        struct sptx_context_options options = SPTX_CONTEXT_OPTIONS;
        struct sptx_context *context;
        options.device = "cpu", options.threads = 2, options.warning = hear_warning, options.user = &warned;
        assert_int_equal(sptx_open(&context, &options), SPTX_OK);
        train_twice(context, directory);
        table_sentences(context);
        sptx_close(context);
        assert_comma(); /* the program's locale must not have changed */
    }
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
    if (there) return;
    print_message("no locale with a decimal comma can be made here (localedef, and the sources of de_DE)\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_decimal_comma_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
