#include "run/run_directory.h"
#include "tests/unit/scratch.h"
#include "tests/unit/written_run.h"

#include "tests/testing.h"

/* Checks that every file of `run` contains `word`, and that the directory contains only a run's files. */
static void assert_run(const char *word) {
    char wanted[64];
    assert_string_equal(names_in("run"), "ages.txt checkpoint-5 config.ini latest metrics.jsonl vocab.tsv");
    assert_string_equal(names_in("run/checkpoint-5"), "context.npy state.ini target.npy");
    assert_string_equal(text_of("run/checkpoint-5/target.npy"), word);
    assert_string_equal(text_of("run/latest"), "checkpoint-5\n");
    snprintf(wanted, sizeof wanted, "the\t9\n%s\t3\n", word);
    assert_string_equal(text_of("run/vocab.tsv"), wanted);
    snprintf(wanted, sizeof wanted, "\npath = %s\n", word);
    assert_non_null(strstr(text_of("run/config.ini"), wanted));
    assert_non_null(strstr(text_of("run/metrics.jsonl"), word));
    for (int file = 0; file < RUN_FILES; file++) assert_int_equal(run_file_owner("run", (enum run_file)file), RUN_FILE_OWN);
}

static void assert_place(const char *wanted) {
    char *place = replacement_place("run");
    assert_string_equal(place, wanted);
    free(place);
}

static void begin_new_run(void) {
    char *place = replacement_begin("run");
    assert_string_equal(place, "run/replacement");
    write_run(place, "new");
    free(place);
}

static void takes_the_place_of_the_older_run(void **state) {
    write_run("run", "old");
    write_checkpoint("run", 90, "old", "old");
    assert_int_equal(replacement_exists("run"), 0);
    begin_new_run();
    assert_int_equal(replacement_exists("run"), 1);
    assert_place("run/replacement");
    assert_int_equal(replacement_settle("run"), 0);
    assert_run("new");
    assert_place("run");
    assert_int_equal(replacement_settle("run"), 0); /* there is nothing to settle */
    assert_run("new");
}

static void without_a_checkpoint_it_goes(void **state) {
    write_run("run", "old");
    begin_new_run();
    assert_int_equal(checkpoints_remove("run/replacement"), 0);
    assert_int_equal(directory_make("run/replacement/checkpoint-5.partial"), 0);
    write_text("run/replacement/checkpoint-5.partial/target.npy", "half");
    write_text("run/replacement/config.ini.7-0123456789abcdef.partial", "half");
    assert_place("run");
    assert_int_equal(replacement_settle("run"), 0);
    assert_run("old");
}

/* A kill may stop the replacement of a run at any point. Readers must find a whole run, both at that point and after the
 * replacement is finished. */
static void goes_on_where_a_kill_stopped_it(void **state) {
    enum { MADE, MARKED, OLDER_GONE, OLDER_HALF_GONE, FILES_CAME, NAMED, MOVED, EMPTIED, POINTS };
    for (int point = 0; point < POINTS; point++) {
        int moved = point == MOVED || point == EMPTIED;
        write_run("run", "old");
        if (point == MADE) assert_int_equal(mkdir("run/replacement", 0777), 0);
        else if (point == MARKED) free(replacement_begin("run"));
        else begin_new_run();
        if (point >= OLDER_GONE) assert_int_equal(checkpoints_remove("run"), 0);
        if (point == OLDER_HALF_GONE) {
            assert_int_equal(directory_make("run/checkpoint-5.partial"), 0);
            write_text("run/checkpoint-5.partial/state.ini", "of one that went");
        }
        if (point >= FILES_CAME) {
            assert_int_equal(unlink("run/vocab.tsv"), 0);
            assert_int_equal(link("run/replacement/vocab.tsv", "run/vocab.tsv"), 0); /* the file exists twice: once as a link,
                                                                                      * once as a copy */
            write_text("run/config.ini", text_of("run/replacement/config.ini"));
        }
        if (moved) write_text("run/metrics.jsonl", text_of("run/replacement/metrics.jsonl"));
        if (point >= NAMED) write_text("run/latest", "checkpoint-5\n");
        if (moved) assert_int_equal(rename("run/replacement/checkpoint-5", "run/checkpoint-5"), 0);
        if (point == EMPTIED) assert_int_equal(run_files_remove("run/replacement"), 0);
        assert_place(point <= MARKED || moved ? "run" : "run/replacement");
        assert_int_equal(replacement_settle("run"), 0);
        assert_run(point <= MARKED ? "old" : "new");
        assert_int_equal(directory_remove_tree("run"), 0);
    }
}

static void metrics_of_the_older_run_go_where_the_new_one_has_none(void **state) {
    write_run("run", "old");
    begin_new_run();
    assert_int_equal(file_remove("run/replacement/metrics.jsonl"), 0);
    assert_int_equal(replacement_settle("run"), 0);
    assert_string_equal(names_in("run"), "ages.txt checkpoint-5 config.ini latest vocab.tsv");
}

/* A user's directory named "replacement" is neither read nor changed. */
static void another_directory_of_its_name_stays(void **state) {
    write_run("run", "old");
    write_run("run/replacement", "mine");
    assert_int_equal(replacement_exists("run"), 0);
    assert_place("run");
    assert_int_equal(replacement_settle("run"), 0);
    assert_int_equal(replacement_check("run"), -1);
    assert_non_null(strstr(report_sentence(), "'run/replacement' is in the way"));
    report_clear();
    assert_null(replacement_begin("run"));
    report_clear();
    assert_string_equal(names_in("run/replacement"), "ages.txt checkpoint-5 config.ini latest metrics.jsonl vocab.tsv");
    assert_string_equal(text_of("run/checkpoint-5/target.npy"), "old");
}

static void what_is_not_a_runs_own_stays_in_it(void **state) {
    write_run("run", "old");
    begin_new_run();
    write_text("run/replacement/notes.txt", "the user's");
    assert_int_equal(replacement_settle("run"), 0);
    assert_string_equal(text_of("run/replacement/notes.txt"), "the user's");
    assert_place("run");
    assert_string_equal(text_of("run/checkpoint-5/target.npy"), "new");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_enter, scratch_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(takes_the_place_of_the_older_run),
                                       TEST(without_a_checkpoint_it_goes),
                                       TEST(goes_on_where_a_kill_stopped_it),
                                       TEST(metrics_of_the_older_run_go_where_the_new_one_has_none),
                                       TEST(another_directory_of_its_name_stays),
                                       TEST(what_is_not_a_runs_own_stays_in_it)};
    return cmocka_run_group_tests_name("replacement", tests, NULL, NULL);
}
