#include "tests/unit/scratch.h"
#include "tests/unit/written_run.h"
#include "tune/tune_inner.h"

#include "tests/testing.h"

#include "tests/unit/sentence.h"

static int is_free(const char *path) {
    return file_exists(path) == 0;
}

static void leave_trials(const struct tune_directory *d) {
    write_run(d->run, "trial");
    write_text(d->edges, "0 1\n");
    write_text(d->held_out, "0 2\n");
    assert_int_equal(directory_make(d->corpus), 0);
    assert_int_equal(chdir(d->corpus), 0);
    write_text("corpus.ids", "ids");
    assert_int_equal(chdir(scratch), 0);
    write_text("r.tune/trials/corpus.graph", "graph");
}

static void trials_are_removed_and_what_was_tried_stays(void **state) {
    struct tune_directory d;
    assert_int_equal(tune_directory_open(&d, "r"), 0);
    leave_trials(&d);
    write_text("r.tune/tried.tsv", "# sptx-w2v tune 1\n");
    tune_directory_close(&d);
    assert_string_equal(names_in("r.tune"), "tried.tsv");
    assert_int_equal(tune_directory_open(&d, "r"), 0);
    tune_directory_close(&d);
    assert_string_equal(names_in("r.tune"), "tried.tsv");
}

static void nothing_is_left_of_a_search_that_tried_nothing(void **state) {
    struct tune_directory d;
    assert_int_equal(tune_directory_open(&d, "some/where/r"), 0);
    tune_directory_close(&d);
    assert_true(is_free("some"));
    tune_directory_close(&d);
}

/* A search that was killed has left its trials and its lock file. The next search removes them. */
static void the_next_search_removes_what_a_killed_one_left(void **state) {
    struct tune_directory d, killed;
    assert_int_equal(tune_directory_open(&killed, "r"), 0);
    leave_trials(&killed);
    close(killed.lock.fd); /* closes the file as the system does when a process is killed */
    assert_int_equal(tune_directory_open(&d, "r"), 0);
    assert_string_equal(names_in("r.tune"), "trials tune.lock");
    assert_string_equal(names_in("r.tune/trials"), "searches");
    tune_directory_close(&d);
    assert_string_equal(names_in("r.tune"), "");
    killed.begun = 0;
    killed.lock.path[0] = 0;
    tune_directory_close(&killed);
}

static void one_search_at_a_time(void **state) {
    struct tune_directory first, second;
    assert_int_equal(tune_directory_open(&first, "r"), 0);
    assert_int_equal(tune_directory_open(&second, "r"), -1);
    sentence_holds("is being used by the tune of process");
    tune_directory_close(&second);
    assert_string_equal(names_in("r.tune"), "trials tune.lock");
    tune_directory_close(&first);
}

/* Checks that r.tune is refused with this message, and that it then still contains `name` and nothing else. */
static void assert_refused(const char *name, const char *sentence) {
    struct tune_directory d;
    assert_int_equal(tune_directory_open(&d, "r"), -1);
    sentence_holds(sentence);
    tune_directory_close(&d);
    assert_string_equal(names_in("r.tune"), name);
}

static void what_others_wrote_is_refused_and_stays(void **state) {
    static const char *const names[] = {"edges.tsv", "held_out.tsv", "corpus.graph", "corpus.ids", "config.ini", "trials", "searches"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(directory_make("r.tune"), 0);
        snprintf(path, sizeof path, "r.tune/%s", names[i]);
        write_text(path, "precious");
        assert_refused(names[i], "which tune has not written");
        assert_string_equal(text_of(path), "precious");
        assert_int_equal(directory_remove_tree("r.tune"), 0);
    }
    assert_int_equal(directory_make("r.tune/trials"), 0);
    write_text("r.tune/trials/edges.tsv", "precious"); /* the directory has no mark, so its files may be a user's */
    assert_refused("trials", "which tune has not written");
    assert_string_equal(text_of("r.tune/trials/edges.tsv"), "precious");
    write_run("r.tune/trials", "mine");
    assert_refused("trials", "which tune has not written");
}

static void nothing_is_removed_through_a_link(void **state) {
    struct tune_directory d, killed;
    write_run("mine", "mine");
    assert_int_equal(directory_make("r.tune"), 0);
    assert_int_equal(symlink("../mine", "r.tune/trials"), 0);
    assert_refused("trials", "which tune has not written");
    assert_int_equal(unlink("r.tune/trials"), 0);
    assert_int_equal(tune_directory_open(&killed, "r"), 0);
    close(killed.lock.fd);
    assert_int_equal(symlink("../../mine", "r.tune/trials/run"), 0);
    assert_int_equal(symlink("/dev/null", killed.edges), 0); /* tune_directory removes the link itself; /dev/null, its target,
                                                              * must remain */
    assert_int_equal(tune_directory_open(&d, "r"), -1);
    sentence_holds("holds what tune has not written");
    tune_directory_close(&d);
    assert_string_equal(names_in("r.tune/trials"), "run");
    killed.begun = 0;
    killed.lock.path[0] = 0;
    tune_directory_close(&killed);
    assert_string_equal(names_in("mine"), "ages.txt checkpoint-5 config.ini latest metrics.jsonl vocab.tsv");
    assert_true(file_exists("/dev/null"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trials_are_removed_and_what_was_tried_stays, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_a_search_that_tried_nothing, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(the_next_search_removes_what_a_killed_one_left, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(one_search_at_a_time, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(what_others_wrote_is_refused_and_stays, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(nothing_is_removed_through_a_link, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests_name("tune_directory", tests, NULL, NULL);
}
