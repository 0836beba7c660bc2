#include "cli/arguments.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

enum { ARGUMENTS = 32 };

/* The result of arguments_read() for one command line. */
struct read {
    struct arguments arguments;
    int flag, pair_count;
    const char *k, *out, *over, *pairs[OPTION_TIMES];
};

/* Reads a line of words by arguments_read(). The caller releases read->arguments. */
static int read_line(struct read *read, const char *sections, const char *line) {
    static char words[1024];
    char *argv[ARGUMENTS], *rest = words;
    int argc = 0;
    *read = (struct read){.out = "default"};
    const struct option options[] = {{.name = "k", .text = &read->k},
                                     {.name = "out", .text = &read->out, .several = "--out=A,B"},
                                     {.name = "over", .text = &read->over, .flag = &read->flag},
                                     {.name = "resume", .flag = &read->flag},
                                     {.name = "pairs", .texts = read->pairs, .count = &read->pair_count},
                                     {0}};
    snprintf(words, sizeof words, "%s", line);
    while (argc < ARGUMENTS && (argv[argc] = strsep(&rest, " "))) argc++;
    return arguments_read(&read->arguments, "cmd sub", argc, argv, options, sections);
}

static void sorts_arguments(void **state) {
    static const char *const given[] = {"one", "two", "-x", "--k=11", "--", "--z"};
    struct read g;
    assert_int_equal(read_line(&g, ANY_SECTION, "cmd one --k=10 two --resume --resume --model.dim=3 --pairs=a --pairs=b=c -x --run.dir=a "
                                                "-- --k=11 -- --z"),
                     0);
    assert_int_equal(g.arguments.count, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(g.arguments.given[i], given[i]);
    assert_string_equal(g.k, "10");
    assert_string_equal(g.out, "default");
    assert_int_equal(g.flag, 1);
    assert_int_equal(g.pair_count, 2);
    assert_string_equal(g.pairs[1], "b=c");
    assert_int_equal(g.arguments.setting_count, 2);
    assert_string_equal(g.arguments.settings[0], "--model.dim=3");
    assert_string_equal(g.arguments.settings[1], "--run.dir=a");
    arguments_release(&g.arguments);
    assert_int_equal(read_line(&g, NULL, "cmd"), 0);
    assert_int_equal(g.arguments.count, 0);
    arguments_release(&g.arguments);
    assert_int_equal(read_line(&g, NULL, "cmd --out=a.b"), 0); /* the '.' is in the option's value, so the option is not a key */
    assert_string_equal(g.out, "a.b");
    arguments_release(&g.arguments);
    assert_int_equal(read_line(&g, "device, memory", "cmd --memory.depth=2 --device.threads=1"), 0);
    assert_int_equal(g.arguments.setting_count, 2);
    arguments_release(&g.arguments);
}

static void refuses_arguments(void **state) {
    static const struct {
        const char *sections, *line, *part;
    } wrong[] = {
        {ANY_SECTION, "cmd --resum", "did you mean '--resume'"},
        {ANY_SECTION, "cmd --zzzzzz=3", "cmd sub has no option '--zzzzzz'; see 'sptx-w2v help cmd'"},
        {ANY_SECTION, "cmd --k", "--k needs a value"},
        {ANY_SECTION, "cmd --k=", "--k needs a value"},
        {ANY_SECTION, "cmd --resume=yes", "--resume takes no value"},
        {ANY_SECTION, "cmd --k=1 --out=a --k=2", "cmd sub: --k is given twice"},
        {ANY_SECTION, "cmd --k=1 --k=1", "--k is given twice"},
        {NULL, "cmd --out=a x --out=b", "--out is given twice; several are written --out=A,B"},
        {NULL, "cmd --over --over=now", "--over is given twice"},
        {ANY_SECTION, "cmd --dim=100", "cmd sub has no option '--dim'; the key is --model.dim=100"},
        {ANY_SECTION, "cmd --epochs", "the key is --train.epochs=..."},
        {"device, memory", "cmd --threads=2", "the key is --device.threads=2"},
        {"device, memory", "cmd --dim=100", "cmd sub has no option '--dim'; see"},
        {NULL, "cmd --dim=100", "cmd sub has no option '--dim'; see"},
        {ANY_SECTION, "cmd --model.dim = 100", "'--model.dim =' has a blank between key and value; write --model.dim=..."},
        {ANY_SECTION, "cmd --model.dim =100", "'--model.dim =100' has a blank between key and value; write --model.dim=100"},
        {ANY_SECTION, "cmd --model.dim 100", "'--model.dim 100' has a blank between key and value; write --model.dim=100"},
        {NULL, "cmd --model.dim=3", "no option '--model.dim'"},
        {"device, memory", "cmd --model.dim=3", "no use for '--model.dim=3': its keys are those of the sections device, memory"},
        {"device, memory", "cmd --mem.dim=3", "no use for '--mem.dim=3'"},
        {ANY_SECTION,
         "cmd --pairs=1 --pairs=2 --pairs=3 --pairs=4 --pairs=5 --pairs=6 --pairs=7 --pairs=8 --pairs=9 --pairs=10 "
         "--pairs=11 --pairs=12 --pairs=13 --pairs=14 --pairs=15 --pairs=16 --pairs=17",
         "more than 16 times"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct read g;
        assert_int_equal(read_line(&g, wrong[i].sections, wrong[i].line), -1);
        arguments_release(&g.arguments);
        assert_int_equal(report_exit_code(), 2);
        if (!strstr(report_sentence(), wrong[i].part))
            fail_msg("wanted \"%s\" in \"%s\"", wrong[i].part, report_sentence());
        report_clear();
    }
}

static void reads_numbers(void **state) {
    uint64_t value = 7;
    assert_int_equal(arguments_number("cmd", "k", NULL, 1, 9, &value), 0);
    assert_int_equal(value, 7);
    assert_int_equal(arguments_number("cmd", "k", "9", 1, 9, &value), 0);
    assert_int_equal(value, 9);
    static const char *const wrong[] = {"0", "10", "x", "", "1.5", "-1"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(arguments_number("cmd", "k", wrong[i], 1, 9, &value), -1);
        assert_int_equal(report_exit_code(), 2);
        assert_non_null(strstr(report_sentence(), "cmd: --k"));
        assert_non_null(strstr(report_sentence(), "from 1 to 9"));
        report_clear();
        assert_int_equal(value, 9);
    }
}

static void settings_stand_over_the_file(void **state) {
    const char *path = scratch_text("a.ini", "[model]\ndim = 3\n[train]\nepochs = 2\n"),
               *settings[] = {"--model.dim=4", "--model.dim=5"};
    const struct arguments none = {.count = 0}, two = {.settings = settings, .setting_count = 2};
    struct config config;
    assert_int_equal(arguments_config(&config, 0, path, &two), 0);
    assert_int_equal(config.model_dim, 5);
    assert_int_equal(config.train_epochs, 2);
    assert_string_equal(config.run_dir, "runs/a"); /* the config is resolved, so run.dir has a value */
    config_release(&config);
    assert_int_equal(arguments_config(&config, 0, NULL, &none), 0);
    assert_string_equal(config.run_dir, "runs/run");
    config_release(&config);
    settings[1] = "--model.dimm=5";
    assert_int_equal(arguments_config(&config, 0, path, &two), -1);
    assert_int_equal(report_exit_code(), 2);
    config_release(&config);
    report_clear();
    assert_int_equal(arguments_config(&config, 0, in_scratch("absent.ini"), &two), -1);
    assert_int_equal(report_exit_code(), 1);
    config_release(&config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(sorts_arguments), TEST(refuses_arguments), TEST(reads_numbers),
                                       TEST(settings_stand_over_the_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
