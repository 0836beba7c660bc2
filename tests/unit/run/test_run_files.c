#include "tests/unit/scratch.h"
#include "tests/unit/written_run.h"

#include "tests/testing.h"

static void assert_owner(enum run_file file, int wanted) {
    int owner = run_file_owner("run", file);
    if (owner != wanted) fail_msg("%s: %d, wanted %d: %s", run_file_names[file], owner, wanted, report_sentence());
}

static char *path_of(enum run_file file) {
    static char path[64];
    snprintf(path, sizeof path, "run/%s", run_file_names[file]);
    return path;
}

static void what_a_run_writes_is_its_own(void **state) {
    for (int file = 0; file < RUN_FILES; file++) assert_owner((enum run_file)file, RUN_FILE_ABSENT);
    write_run("run", "a");
    for (int file = 0; file < RUN_FILES; file++) assert_owner((enum run_file)file, RUN_FILE_OWN);
    assert_int_equal(run_files_check("run", 0), 0);
    assert_int_equal(run_files_remove("run"), 0);
    assert_string_equal(names_in("run"), "checkpoint-5");
}

static void anything_else_is_not(void **state) {
    static const struct {
        enum run_file file;
        const char *text;
    } theirs[] = {{RUN_CONFIG, "[model]\ndim = 3\n"},   {RUN_CONFIG, "; written by sptx\n"}, {RUN_CONFIG, ""},
                  {RUN_METRICS, "{\"loss\": 3}\n"},      {RUN_METRICS, "x"},                  {RUN_LATEST, "checkpoint-best\n"},
                  {RUN_LATEST, "checkpoint-5 "},         {RUN_LATEST, "checkpoint-5\nmore"},  {RUN_LATEST, "../../etc\n"},
                  {RUN_VOCAB, "the\t9\nb\t3\n"},         {RUN_VOCAB, ""},                     {RUN_VOCAB, "the\t9\na\t3\n "}};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        char *path = path_of(theirs[i].file);
        write_run("run", "a");
        write_text(path, theirs[i].text);
        assert_owner(theirs[i].file, RUN_FILE_FOREIGN);
        assert_int_equal(run_files_check("run", 0), -1);
        assert_non_null(strstr(report_sentence(), path));
        report_clear();
        assert_int_equal(run_files_check("run", 1), theirs[i].file == RUN_CONFIG ? 0 : -1);
        report_clear();
        assert_int_equal(run_files_remove("run"), 0);
        assert_string_equal(text_of(path), theirs[i].text);
        assert_int_equal(directory_remove_tree("run"), 0);
    }
}

static void links_and_directories_are_not(void **state) {
    for (int file = 0; file < RUN_FILES; file++) {
        char *path = path_of((enum run_file)file);
        write_run("run", "a");
        assert_int_equal(rename(path, "real"), 0); /* the file at the end of the link has the run's own bytes */
        assert_int_equal(symlink("../real", path), 0);
        assert_owner((enum run_file)file, RUN_FILE_FOREIGN);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0777), 0);
        assert_owner((enum run_file)file, RUN_FILE_FOREIGN);
        assert_int_equal(directory_remove_tree("run"), 0);
    }
}

/* The fingerprint in config.ini shows whether vocab.tsv belongs to the run. If config.ini is the user's, a checkpoint's
 * fingerprint does. */
static void a_vocabulary_is_told_by_its_fingerprint(void **state) {
    write_run("run", "a");
    assert_int_equal(checkpoints_remove("run"), 0);
    assert_owner(RUN_VOCAB, RUN_FILE_OWN);
    write_text("run/config.ini", "; mine\n");
    assert_owner(RUN_VOCAB, RUN_FILE_FOREIGN);
    write_checkpoint("run", 9, "b", "b");
    assert_owner(RUN_VOCAB, RUN_FILE_FOREIGN);
    write_checkpoint("run", 7, "a", "a");
    assert_owner(RUN_VOCAB, RUN_FILE_OWN);
    write_text("run/checkpoint-7/state.ini", "; where a run of sptx-w2v stands, and what its files must be\ncut");
    assert_owner(RUN_VOCAB, RUN_FILE_FOREIGN);
    assert_string_equal(report_sentence(), "");
}

static void writing_leaves_what_is_not_its_own(void **state) {
    struct vocab vocab = two_words("a");
    struct config config;
    assert_int_equal(config_init(&config), 0);
    assert_int_equal(mkdir("run", 0777), 0);
    assert_int_equal(run_files_write("run", &config, &vocab), 0);
    assert_string_equal(text_of("run/vocab.tsv"), "the\t9\na\t3\n");
    assert_int_equal(config_read(&config, "run/config.ini"), 0); /* its first line, which the program writes, is a comment */
    write_text("run/config.ini", "; mine\n");
    assert_int_equal(run_files_write("run", &config, &vocab), 0);
    assert_string_equal(text_of("run/config.ini"), "; mine\n");
    config_release(&config);
    vocab_release(&vocab);
}

static void pieces_of_a_killed_process_go(void **state) {
    write_run("run", "a");
    write_text("run/latest.7-0123456789abcdef.partial", "half");
    write_text("run/vocab.tsv.7-0123456789abcdef.partial", "half");
    write_text("run/target.working.7-0123456789abcdef.partial", "rows");
    write_text("run/target.working", "the user's");
    write_text("run/vocab.tsv.partial", "the user's");
    write_text("run/corpus.ids.7-0123456789abcdef.partial", "another process'");
    assert_int_equal(run_files_remove_pieces("run"), 0);
    assert_string_equal(names_in("run"), "ages.txt checkpoint-5 config.ini corpus.ids.7-0123456789abcdef.partial latest metrics.jsonl "
                                         "target.working vocab.tsv vocab.tsv.partial");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_enter, scratch_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(what_a_run_writes_is_its_own),
                                       TEST(anything_else_is_not),
                                       TEST(links_and_directories_are_not),
                                       TEST(a_vocabulary_is_told_by_its_fingerprint),
                                       TEST(writing_leaves_what_is_not_its_own),
                                       TEST(pieces_of_a_killed_process_go)};
    return cmocka_run_group_tests_name("run_files", tests, NULL, NULL);
}
