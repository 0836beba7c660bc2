#include "cli/commands.h"
#include "tests/unit/scratch.h"

#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ARGUMENTS = 32 };

/* What command_arguments() made of a line of words. */
struct given {
    int count, setting_count, flag, pair_count;
    const char *k, *out, *pairs[OPTION_TIMES];
    const char *positional[ARGUMENTS], *settings[ARGUMENTS];
};

static int arguments(struct given *given, int settings, const char *line) {
    static char words[1024];
    char *argv[ARGUMENTS], *rest = words;
    int argc = 0;
    *given = (struct given){.out = "default"};
    const struct option options[] = {{.name = "k", .text = &given->k},
                                     {.name = "out", .text = &given->out},
                                     {.name = "resume", .flag = &given->flag},
                                     {.name = "pairs", .texts = given->pairs, .count = &given->pair_count},
                                     {0}};
    snprintf(words, sizeof words, "%s", line);
    while (argc < ARGUMENTS && (argv[argc] = strsep(&rest, " "))) argc++;
    given->count = command_arguments(argc, argv, options, given->positional, settings ? given->settings : NULL,
                                     settings ? &given->setting_count : NULL);
    return given->count;
}

static void sorts_arguments(void **state) {
    struct given g;
    assert_int_equal(
        arguments(&g, 1,
                  "cmd one --k=10 two --resume --model.dim=3 --pairs=a --pairs=b=c -x --run.dir=a -- --k=11 -- --z"),
        6);
    assert_string_equal(g.positional[0], "one");
    assert_string_equal(g.positional[1], "two");
    assert_string_equal(g.positional[2], "-x");
    assert_string_equal(g.positional[3], "--k=11");
    assert_string_equal(g.positional[4], "--");
    assert_string_equal(g.positional[5], "--z");
    assert_string_equal(g.k, "10");
    assert_string_equal(g.out, "default");
    assert_int_equal(g.flag, 1);
    assert_int_equal(g.pair_count, 2);
    assert_string_equal(g.pairs[1], "b=c");
    assert_int_equal(g.setting_count, 2);
    assert_string_equal(g.settings[0], "--model.dim=3");
    assert_string_equal(g.settings[1], "--run.dir=a");
    assert_int_equal(arguments(&g, 0, "cmd"), 0);
    assert_int_equal(arguments(&g, 0, "cmd --out=a.b"), 0); /* the dot stands in the value */
    assert_string_equal(g.out, "a.b");
}

static void refuses_arguments(void **state) {
    static const struct {
        int settings;
        const char *line, *part;
    } wrong[] = {
        {1, "cmd --resum", "did you mean '--resume'"},
        {1, "cmd --zzzzzz=3", "cmd has no option '--zzzzzz'"},
        {1, "cmd --k", "--k needs a value"},
        {1, "cmd --k=", "--k needs a value"},
        {1, "cmd --resume=yes", "--resume takes no value"},
        {0, "cmd --model.dim=3", "no option '--model.dim'"},
        {1,
         "cmd --pairs=1 --pairs=2 --pairs=3 --pairs=4 --pairs=5 --pairs=6 --pairs=7 --pairs=8 --pairs=9 --pairs=10 "
         "--pairs=11 --pairs=12 --pairs=13 --pairs=14 --pairs=15 --pairs=16 --pairs=17",
         "more than 16 times"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g;
        assert_int_equal(arguments(&g, wrong[i].settings, wrong[i].line), -1);
        assert_int_equal(report_exit_code(), 2);
        if (!strstr(report_sentence(), wrong[i].part))
            fail_msg("wanted \"%s\" in \"%s\"", wrong[i].part, report_sentence());
        report_clear();
    }
}

static void reads_counts(void **state) {
    uint64_t value = 7;
    assert_int_equal(command_count("cmd", "k", NULL, 1, 9, &value), 0);
    assert_int_equal(value, 7);
    assert_int_equal(command_count("cmd", "k", "9", 1, 9, &value), 0);
    assert_int_equal(value, 9);
    static const char *const wrong[] = {"0", "10", "x", "", "1.5", "-1"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(command_count("cmd", "k", wrong[i], 1, 9, &value), -1);
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
    struct config config;
    assert_int_equal(command_config(&config, path, settings, 2), 0);
    assert_int_equal(config.model_dim, 5);
    assert_int_equal(config.train_epochs, 2);
    assert_string_equal(config.run_dir, "runs/a"); /* resolved */
    config_release(&config);
    assert_int_equal(command_config(&config, NULL, NULL, 0), 0);
    assert_string_equal(config.run_dir, "runs/run");
    config_release(&config);
    settings[1] = "--model.dimm=5";
    assert_int_equal(command_config(&config, path, settings, 2), -1);
    assert_int_equal(report_exit_code(), 2);
    config_release(&config);
    report_clear();
    assert_int_equal(command_config(&config, in_scratch("absent.ini"), settings, 2), -1);
    assert_int_equal(report_exit_code(), 1);
    config_release(&config);
}

/* ---- the table ---- */

static void finds_commands(void **state) {
    assert_ptr_equal(command_find("train")->run, cmd_train);
    assert_null(command_find("trian"));
    assert_non_null(strstr(report_sentence(), "did you mean 'train'"));
    assert_int_equal(report_exit_code(), 2);
    report_clear();
    assert_null(command_find(""));
    report_clear();
    assert_null(command_find("--xyz"));
    assert_non_null(strstr(report_sentence(), "sptx-w2v help"));
}

static void every_command_is_described(void **state) {
    int count = 0;
    for (const struct command *c = commands; c->name; c++, count++) {
        size_t length = strlen(c->name);
        assert_ptr_equal(command_find(c->name), c);
        assert_int_equal(strncmp(c->usage, c->name, length), 0);
        assert_true(c->usage[length] == 0 || c->usage[length] == ' ');
        assert_true(*c->summary && *c->help && !strchr(c->summary, '\n'));
        assert_true(c->summary[strlen(c->summary) - 1] != '.');
        for (const char *line = c->help; *line; line += strcspn(line, "\n"), line += *line == '\n')
            assert_true(strcspn(line, "\n") <= 120);
    }
    assert_int_equal(count, 13);
}

/* ---- commands that only print ---- */

/* What a command writes to stdout, which is a file meanwhile. */
static char *stdout_of(int wanted, int (*run)(int, char **), const char *line) {
    static char words[1024];
    char *argv[ARGUMENTS], *rest = words, *path = in_scratch("stdout");
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    while ((argv[argc] = strsep(&rest, " "))) argc++;
    fflush(stdout);
    int kept = dup(1);
    assert_non_null(freopen(path, "w", stdout));
    int result = run(argc, argv);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    if (result != wanted) fail_msg("%s: %d, %s", line, result, report_sentence());
    return file_read(path, NULL);
}

static void config_prints_what_it_reads(void **state) {
    char *once = stdout_of(0, cmd_config, "config --model.dim=77 --optimizer.rule=adamw"), line[512];
    assert_non_null(strstr(once, "\ndim = 77\n"));
    assert_non_null(strstr(once, "\nweight_decay = 0.01\n"));
    snprintf(line, sizeof line, "config %s", scratch_text("run.ini", once));
    char *again = stdout_of(0, cmd_config, line);
    assert_string_equal(once, again);
    free(once);
    free(again);
    free(stdout_of(-1, cmd_config, "config a b"));
    assert_int_equal(report_exit_code(), 2);
}

static void help_tells_of_everything(void **state) {
    char *text = stdout_of(0, cmd_help, "help");
    for (const struct command *c = commands; c->name; c++) assert_non_null(strstr(text, c->summary));
    free(text);
    for (const struct command *c = commands; c->name; c++) {
        char line[64];
        snprintf(line, sizeof line, "help %s", c->name);
        text = stdout_of(0, cmd_help, line);
        assert_non_null(strstr(text, c->usage));
        assert_non_null(strstr(text, c->help));
        free(text);
    }
    text = stdout_of(0, cmd_help, "help keys");
    static const char *const parts[] = {"corpus.path = ", "run.keep = 2", "sparse-adam", "from 1 to 4,096", "[memory]"};
    for (int i = 0; i < 5; i++) assert_non_null(strstr(text, parts[i]));
    free(text);
    free(stdout_of(-1, cmd_help, "help nearst"));
    assert_non_null(strstr(report_sentence(), "'nearest'"));
    report_clear();
    free(stdout_of(-1, cmd_help, "help a b"));
}

static void devices_names_the_machine(void **state) {
    char *text = stdout_of(0, cmd_devices, "devices");
    assert_non_null(strstr(text, "cores "));
    assert_non_null(strstr(text, "memory "));
    assert_true(strstr(text, "auto       cpu\n") || strstr(text, "auto       cuda\n"));
    free(text);
    free(stdout_of(-1, cmd_devices, "devices all"));
    assert_int_equal(report_exit_code(), 2);
    report_clear();
    free(stdout_of(-1, cmd_devices, "devices --all a"));
    assert_int_equal(report_exit_code(), 2);
}

static void train_and_plan_want_one_file(void **state) {
    static const char *const lines[] = {"train", "train a b", "train a --resume --overwrite", "train a --resum"};
    for (int i = 0; i < 4; i++) {
        free(stdout_of(-1, cmd_train, lines[i]));
        assert_int_equal(report_exit_code(), 2);
        report_clear();
    }
    free(stdout_of(-1, cmd_plan, "plan"));
    assert_int_equal(report_exit_code(), 2);
    report_clear();
    char line[512];
    snprintf(line, sizeof line, "plan %s", scratch_text("empty.ini", ""));
    free(stdout_of(-1, cmd_plan, line));
    assert_non_null(strstr(report_sentence(), "corpus.path is empty"));
    assert_int_equal(report_exit_code(), 1);
}

static void plan_finds_what_it_left(void **state) {
    char line[1024], corpus[2000] = "", *run = in_scratch("run");
    for (int i = 0; i < 60; i++) strcat(corpus, i % 3 ? "one two three four five six\n" : "two four six eight\n");
    scratch_text("corpus.txt", corpus);
    snprintf(line, sizeof line,
             "plan %s --corpus.path=%s --run.dir=%s --model.dim=8 --device.backend=cpu --device.threads=1",
             scratch_text("a.ini", ""), in_scratch("corpus.txt"), run);
    char *first = stdout_of(0, cmd_plan, line);
    assert_true(strlen(first) > 100);
    char *ids = in_scratch("run/corpus.ids");
    assert_true(file_exists(ids));
    struct stat before, after;
    assert_int_equal(stat(ids, &before), 0);
    char *again = stdout_of(0, cmd_plan, line);
    assert_int_equal(stat(ids, &after), 0);
    assert_true(before.st_ino == after.st_ino); /* not written anew */
    free(first);
    free(again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(sorts_arguments),
                                       TEST(refuses_arguments),
                                       TEST(reads_counts),
                                       TEST(settings_stand_over_the_file),
                                       TEST(finds_commands),
                                       TEST(every_command_is_described),
                                       TEST(config_prints_what_it_reads),
                                       TEST(help_tells_of_everything),
                                       TEST(devices_names_the_machine),
                                       TEST(train_and_plan_want_one_file),
                                       TEST(plan_finds_what_it_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
