#include "cli/commands.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

enum { ARGUMENTS = 32 };

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
    assert_int_equal(count, 26);
}

/* ---- commands that only print ---- */

/* Runs a command with stdout redirected to a file, and returns the text of that file. */
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
    assert_true(before.st_ino == after.st_ino); /* the file was not written a second time */
    free(first);
    free(again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(finds_commands),
                                       TEST(every_command_is_described),
                                       TEST(config_prints_what_it_reads),
                                       TEST(help_tells_of_everything),
                                       TEST(devices_names_the_machine),
                                       TEST(train_and_plan_want_one_file),
                                       TEST(plan_finds_what_it_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
