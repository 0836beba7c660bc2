#include "tests/testing.h"

#include "run/checkpoint.h"
#include "tests/fresh_directory.h"
#include "tests/unit/fake_tables.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROWS = 50 };
static struct backend device = {.ops = &fake_ops};
static struct table target, context;
static char run[256];

static int set_up(void **state) {
    struct table_options zeros = {.rows = ROWS, .dim = 6, .rule = {.rule = RULE_ADAGRAD}, .seed = 3, .directory = run};
    struct table_options drawn = zeros;
    table_init_values(&drawn.init.rows, "word2vec", TABLE_TARGET, 6);
    struct pool *pool = pool_open(1);
    device = (struct backend){.ops = &fake_ops};
    report_clear();
    report_quiet(1);
    if (fresh_directory(run, sizeof run, "checkpoint") ||
        table_init(&target, TABLE_TARGET, &drawn, &fake_ops, &device) ||
        table_init(&context, TABLE_CONTEXT, &zeros, &fake_ops, &device) ||
        table_fill(&target, pool) || table_fill(&context, pool))
        return -1;
    pool_close(pool);
    return 0;
}
static int tear_down(void **state) {
    table_release(&target);
    table_release(&context);
    return directory_remove_tree(run);
}

static struct progress_state at_step(uint64_t step) {
    return (struct progress_state){.step = step, .epoch = 2, .position = 12345678901, .words = 1ull << 60, .pairs = 77,
                                   .seconds = 1.0 / 3, .finished = 0};
}
static const struct corpus_identity corpus = {.vocab = 0xFEDCBA9876543210, .stream = 0xABCDEF0123456789};
static int write_state(const struct progress_state *state, uint64_t keep) {
    struct checkpoint what = {&target, &context, *state, corpus, NULL};
    return checkpoint_write(run, &what, keep);
}
static int write_step(uint64_t step, uint64_t keep) {
    struct progress_state state = at_step(step);
    return write_state(&state, keep);
}

/* Returns a path in the run directory, in one of four buffers that are used in turn. */
static char *in_run(const char *format, ...) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    int n = snprintf(path, 512, "%s/", run);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, 512 - (size_t)n, format, args);
    va_end(args);
    return path;
}

static void expect_names(const char *wanted) {
    char seen[1024] = "", **names;
    int64_t n = directory_list(run, &names);
    for (int64_t i = 0; i < n; i++) {
        strcat(strcat(seen, i ? " " : ""), names[i]);
        free(names[i]);
    }
    free(names);
    assert_string_equal(wanted, seen);
}

static void expect_newest(uint64_t step) {
    struct run_state state = {.progress = {0}};
    int found;
    char *path = checkpoint_newest(run, &state, &found);
    assert_non_null(path);
    assert_int_equal(1, found);
    assert_int_equal(step, state.progress.step);
    assert_true(state.corpus.vocab == corpus.vocab && state.corpus.stream == corpus.stream);
    assert_string_equal("", report_sentence());
    free(path);
}

static void flip(const char *path, long at) { /* Inverts the lowest bit of the byte at `at`; a negative `at` counts from the end
                                               * of the file. */
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(0, fseek(file, at, at < 0 ? SEEK_END : SEEK_SET));
    int byte = fgetc(file);
    assert_int_equal(0, fseek(file, -1, SEEK_CUR));
    fputc(byte ^ 1, file);
    fclose(file);
}

/* ---- whole ones ---- */

static void test_round_trip(void **state) {
    struct progress_state written = at_step(40), read = {0};
    struct run_state whole;
    written.finished = 1;
    assert_int_equal(0, write_state(&written, 2));
    expect_names("checkpoint-40 latest");
    assert_int_equal(0, checkpoint_verify(in_run("checkpoint-40"), &whole));
    read = whole.progress;
    assert_int_equal(40, read.step);
    assert_int_equal(2, read.epoch);
    assert_true(read.position == 12345678901);
    assert_true(read.words == 1ull << 60);
    assert_int_equal(77, read.pairs);
    assert_true(read.seconds == 1.0 / 3); /* the number must be the same to the last bit */
    assert_int_equal(1, read.finished);
    assert_true(whole.corpus.vocab == corpus.vocab && whole.corpus.stream == corpus.stream);
    char *latest = file_read(in_run("latest"), NULL);
    assert_string_equal("checkpoint-40\n", latest);
    free(latest);
    assert_int_equal(0, checkpoint_verify(in_run("checkpoint-40"), NULL));
    assert_int_equal(0, table_load(&target, in_run("checkpoint-40/target.npy")));
}

static void test_only_the_newest_stay(void **state) {
    /* checkpoint-10 is before checkpoint-9 by name, but after it by number */
    for (uint64_t step = 8; step <= 10; step++) assert_int_equal(0, write_step(step, 2));
    expect_names("checkpoint-10 checkpoint-9 latest");
    assert_int_equal(2, checkpoint_count(run, CHECKPOINT_ASIDE, CHECKPOINTS_ALL));
    assert_int_equal(0, write_step(200, 1));
    expect_names("checkpoint-200 latest");
    expect_newest(200);
    assert_int_equal(1, checkpoint_count(run, CHECKPOINT_ASIDE, CHECKPOINTS_ALL));
    assert_int_equal(0, checkpoint_count(in_run("absent"), CHECKPOINT_ASIDE, CHECKPOINTS_ALL));
}

static void test_other_files_stay(void **state) {
    assert_int_equal(0, file_replace(in_run("checkpoint-notes.txt"), "x", 1));
    assert_int_equal(0, file_replace(in_run("config.ini"), "x", 1));
    assert_int_equal(0, directory_make(in_run("checkpoint-")));
    assert_int_equal(0, write_step(1, 1));
    assert_int_equal(0, write_step(2, 1));
    expect_names("checkpoint- checkpoint-2 checkpoint-notes.txt config.ini latest");
}

/* Files whose names resemble a checkpoint's are kept, and so is a directory with a checkpoint's name but no checkpoint in it. */
static void test_what_is_not_ours_stays(void **state) {
    static const char *const directories[] = {"checkpoint-007",         "checkpoint-3",     "checkpoint-5.bak",
                                              "checkpoint-best.partial", "checkpoint-+6", "checkpoint-99999999999999999999"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(0, directory_make(in_run(directories[i])));
        assert_int_equal(0, file_replace(in_run("%s/own", directories[i]), "x", 1));
    }
    assert_int_equal(0, file_replace(in_run("checkpoint-007/state.ini"), "x", 1));
    assert_int_equal(0, file_replace(in_run("checkpoint-4"), "x", 1));
    assert_int_equal(0, file_replace(in_run("checkpoint-2.partial"), "x", 1));
    assert_int_equal(0, write_step(8, 1));
    assert_int_equal(0, write_step(9, 1));
    expect_names("checkpoint-+6 checkpoint-007 checkpoint-2.partial checkpoint-3 checkpoint-4 checkpoint-5.bak checkpoint-9 "
                 "checkpoint-99999999999999999999 checkpoint-best.partial latest");
    expect_newest(9);
}

static void test_same_step_again(void **state) {
    struct progress_state again = at_step(5);
    struct run_state read;
    assert_int_equal(0, write_step(5, 2));
    again.finished = 1;
    assert_int_equal(0, write_state(&again, 2));
    expect_names("checkpoint-5 latest");
    assert_int_equal(0, checkpoint_verify(in_run("checkpoint-5"), &read));
    assert_int_equal(1, read.progress.finished);
}

static void test_none(void **state) {
    int found = 5;
    assert_null(checkpoint_newest(run, NULL, &found));
    assert_int_equal(0, found);
    assert_null(checkpoint_newest(in_run("absent"), NULL, &found));
    assert_int_equal(0, found);
    assert_string_equal("", report_sentence());
}

/* ---- broken ones ---- */

static void expect_broken(const char *part) {
    report_clear();
    assert_int_equal(-1, checkpoint_verify(in_run("checkpoint-20"), NULL));
    assert_non_null(strstr(report_sentence(), part));
    report_clear();
}

static void test_every_flipped_byte_is_seen(void **state) {
    static const char *const names[] = {"state.ini", "target.npy", "context.npy"};
    assert_int_equal(0, write_step(10, 2));
    assert_int_equal(0, write_step(20, 2));
    for (int i = 0; i < 3; i++) {
        char *path = strdup(in_run("checkpoint-20/%s", names[i]));
        long size = (long)file_size(path), step = i == 0 ? 1 : 61;
        for (long at = 0; at < size; at += step) {
            flip(path, at);
            expect_broken(i == 0 ? "state.ini" : names[i]);
            flip(path, at);
        }
        flip(path, -1);
        expect_newest(10);
        flip(path, -1);
        free(path);
    }
    expect_newest(20);
}

static void test_truncated(void **state) {
    static const char *const names[] = {"state.ini", "target.npy", "context.npy"};
    assert_int_equal(0, write_step(10, 2));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(0, write_step(20, 2));
        char *path = strdup(in_run("checkpoint-20/%s", names[i]));
        int64_t size = file_size(path);
        for (int64_t cut = size - 1; cut >= 0; cut = cut > 40 ? cut - 37 : cut - 1) {
            assert_int_equal(0, truncate(path, cut));
            expect_broken(names[i]);
        }
        free(path);
        expect_newest(10);
        assert_int_equal(0, unlink(in_run("checkpoint-20/%s", names[i])));
        expect_broken(names[i]);
        expect_newest(10);
    }
}

static void test_longer_file(void **state) {
    assert_int_equal(0, write_step(20, 2));
    assert_int_equal(0, file_append(in_run("checkpoint-20/target.npy"), "x", 1));
    expect_broken("bytes");
}

static void test_all_broken(void **state) {
    int found = 0;
    assert_int_equal(0, write_step(10, 2));
    assert_int_equal(0, write_step(20, 2));
    flip(in_run("checkpoint-10/target.npy"), -3);
    flip(in_run("checkpoint-20/context.npy"), -3);
    assert_null(checkpoint_newest(run, NULL, &found));
    assert_int_equal(-1, found);
    assert_non_null(strstr(report_sentence(), "none of the 2 checkpoints"));
}

static void test_going_back_past_a_broken_one(void **state) {
    assert_int_equal(0, write_step(10, 1));
    assert_int_equal(0, write_step(30, 2));
    flip(in_run("checkpoint-30/target.npy"), -3);
    expect_newest(10);
    assert_int_equal(0, write_step(20, 1)); /* with run.keep = 1: the broken checkpoint must not be kept because its number is
                                             * higher */
    expect_names("checkpoint-20 latest");
    expect_newest(20);
}

/* If a checkpoint cannot be read, it may still be whole, so it is kept. Here a directory in place of a table's file imitates a
 * disk that does not answer. */
static void test_one_that_cannot_be_read_now_is_kept(void **state) {
    assert_int_equal(0, write_step(10, 1));
    assert_int_equal(0, write_step(30, 2));
    assert_int_equal(0, rename(in_run("checkpoint-30/context.npy"), in_run("away")));
    assert_int_equal(0, directory_make(in_run("checkpoint-30/context.npy")));
    expect_newest(10);
    assert_int_equal(0, write_step(20, 1));
    expect_names("away checkpoint-20 checkpoint-30 latest");
    assert_int_equal(0, rmdir(in_run("checkpoint-30/context.npy")));
    assert_int_equal(0, rename(in_run("away"), in_run("checkpoint-30/context.npy")));
    expect_newest(30);
    assert_int_equal(0, write_step(25, 1)); /* the run continued from step 20, and did not check whether checkpoint 30 is whole */
    expect_names("checkpoint-25 checkpoint-30 latest");
    assert_int_equal(0, write_step(31, 1));
    expect_names("checkpoint-31 latest");
}

static void test_diverged_tables_are_not_written(void **state) {
    float *rows = (float *)(void *)context.store->packed, kept = rows[3 * 12 + 5];
    assert_int_equal(0, write_step(10, 1));
    rows[3 * 12 + 5] = INFINITY;
    assert_int_equal(TABLE_NOT_FINITE, write_step(20, 1));
    assert_string_equal("row 3 of the context table holds infinity or NaN", report_sentence());
    report_clear();
    expect_names("checkpoint-10 latest");
    expect_newest(10);
    rows[3 * 12 + 5] = kept;
}

/* ---- leftovers ---- */

static void test_latest_missing_or_wrong(void **state) {
    assert_int_equal(0, write_step(9, 2));
    assert_int_equal(0, write_step(10, 2));
    assert_int_equal(0, unlink(in_run("latest")));
    expect_newest(10);
    assert_int_equal(0, file_replace(in_run("latest"), "checkpoint-77\n", 14));
    expect_newest(10);
    assert_int_equal(0, file_replace(in_run("latest"), "", 0));
    expect_newest(10);
    assert_int_equal(0, file_replace(in_run("latest"), "../../etc\n", 10));
    expect_newest(10);
    assert_int_equal(0, file_replace(in_run("latest"), "checkpoint-9\n", 13)); /* as if the run had been killed before it wrote
                                                                                * this file again */
    expect_newest(10);
}

static void test_partial_is_ignored_and_removed(void **state) {
    assert_int_equal(0, write_step(10, 2));
    assert_int_equal(0, directory_make(in_run("checkpoint-99.partial")));
    assert_int_equal(0, file_replace(in_run("checkpoint-99.partial/target.npy"), "junk", 4));
    expect_newest(10);
    assert_int_equal(0, write_step(11, 2));
    expect_names("checkpoint-10 checkpoint-11 latest");
}

static void test_only_a_partial(void **state) {
    int found = 5;
    assert_int_equal(0, directory_make(in_run("checkpoint-99.partial")));
    assert_null(checkpoint_newest(run, NULL, &found));
    assert_int_equal(0, found);
}

static void test_moved_aside_is_found(void **state) { /* A checkpoint of the same step is replaced by two renames; the process was killed between
                                                       * them. */
    assert_int_equal(0, write_step(10, 1));
    assert_int_equal(0, rename(in_run("checkpoint-10"), in_run("checkpoint-10.replaced")));
    assert_int_equal(0, directory_make(in_run("checkpoint-10.partial")));
    expect_newest(10);
    assert_int_equal(0, write_step(10, 1));
    expect_names("checkpoint-10 latest");
    expect_newest(10);
}

/* The process was killed before it had removed older checkpoints. The next process removes them. */
static void test_older_ones_go_later(void **state) {
    for (uint64_t step = 7; step <= 10; step++) assert_int_equal(0, write_step(step, 9));
    assert_int_equal(0, rename(in_run("checkpoint-7"), in_run("checkpoint-7.partial")));
    assert_int_equal(0, directory_make(in_run("checkpoint-6.partial/the user's")));
    checkpoint_remove_older(run, in_run("checkpoint-10"), 10, 2, 0);
    expect_names("checkpoint-10 checkpoint-6.partial checkpoint-9 latest");
    assert_string_equal("", report_sentence());
}

static void test_older_ones_go_but_the_one_moved_aside_that_is_read(void **state) {
    for (uint64_t step = 8; step <= 10; step++) assert_int_equal(0, write_step(step, 9));
    assert_int_equal(0, rename(in_run("checkpoint-10"), in_run("checkpoint-10.replaced")));
    assert_int_equal(0, rename(in_run("checkpoint-9"), in_run("checkpoint-9.replaced")));
    checkpoint_remove_older(run, in_run("checkpoint-10.replaced"), 10, 1, 0);
    expect_names("checkpoint-10.replaced latest");
}

static void test_failed_write_keeps_the_older(void **state) {
    assert_int_equal(0, write_step(10, 1));
    device.reads = 0;
    device.fail_read_at = 2; /* the second read is of the context table */
    assert_int_equal(-1, write_step(20, 1));
    assert_string_equal("the device is gone", report_sentence());
    report_clear();
    expect_names("checkpoint-10 latest");
    expect_newest(10);
}

/* A full disk is imitated by a limit on the size of a child's files. */
static void test_full_disk(void **state) {
    assert_int_equal(0, write_step(10, 1));
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        int failed = write_step(20, 1) == -1 && strstr(report_sentence(), "target.npy") != NULL;
        _exit(failed ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(0, status);
    expect_names("checkpoint-10 latest");
    expect_newest(10);
}

/* Child processes write one checkpoint after another, and each child is killed a little later than the one before. A whole
 * checkpoint must always exist, and it must not be older than the newest one seen before. */
static void test_killed_at_any_moment(void **state) {
    uint64_t known = 1;
    assert_int_equal(0, write_step(1, 1));
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (uint64_t step = known;; step += (step - known) % 3 != 1) write_step(step, 1); /* some steps are written twice */
        }
        usleep((useconds_t)(200 + round * 173 % 4000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct run_state now = {.progress = {0}};
        int found;
        char *path = checkpoint_newest(run, &now, &found);
        assert_int_equal(1, found);
        assert_true(now.progress.step >= known);
        known = now.progress.step;
        free(path);
        report_clear();
    }
    assert_int_equal(0, write_step(known + 1, 1));
    char *latest = file_read(in_run("latest"), NULL), wanted[64];
    snprintf(wanted, sizeof wanted, "checkpoint-%" PRIu64 "\n", known + 1);
    assert_string_equal(wanted, latest);
    free(latest);
}

/* ---- finding ---- */

static void expect_located(const char *what, const char *checkpoint_end, const char *directory_end) {
    char *checkpoint, *directory;
    assert_int_equal(0, checkpoint_locate(what, &checkpoint, &directory));
    struct stat a, b;
    assert_int_equal(0, stat(checkpoint, &a));
    assert_int_equal(0, stat(checkpoint_end, &b));
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_equal(0, stat(directory, &a));
    assert_int_equal(0, stat(directory_end, &b));
    assert_int_equal(a.st_ino, b.st_ino);
    free(checkpoint);
    free(directory);
}

static void test_locate(void **state) {
    assert_int_equal(0, write_step(9, 5));
    assert_int_equal(0, write_step(10, 5));
    expect_located(run, in_run("checkpoint-10"), run);
    expect_located(in_run("checkpoint-9"), in_run("checkpoint-9"), run);
    expect_located(in_run("checkpoint-9/"), in_run("checkpoint-9"), run);
    assert_int_equal(0, file_replace(in_run("latest"), "checkpoint-9\n", 13));
    expect_located(run, in_run("checkpoint-10"), run);
    assert_int_equal(0, unlink(in_run("checkpoint-10/state.ini")));
    expect_located(run, in_run("checkpoint-9"), run);
    char old[4096];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(0, chdir(in_run("checkpoint-9")));
    expect_located(".", in_run("checkpoint-9"), run);
    expect_located("..", in_run("checkpoint-9"), run);
    assert_int_equal(0, chdir(old));
}

static void test_locate_refuses(void **state) {
    char *checkpoint, *directory;
    assert_int_equal(-1, checkpoint_locate(run, &checkpoint, &directory));
    assert_non_null(strstr(report_sentence(), "holds no checkpoint"));
    assert_null(checkpoint);
    assert_null(directory);
    report_clear();
    assert_int_equal(-1, checkpoint_locate(in_run("absent"), &checkpoint, &directory));
    assert_non_null(strstr(report_sentence(), "no run directory"));
    report_clear();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_only_the_newest_stay),
        TEST(test_other_files_stay),
        TEST(test_what_is_not_ours_stays),
        TEST(test_same_step_again),
        TEST(test_none),
        TEST(test_every_flipped_byte_is_seen),
        TEST(test_truncated),
        TEST(test_longer_file),
        TEST(test_all_broken),
        TEST(test_going_back_past_a_broken_one),
        TEST(test_one_that_cannot_be_read_now_is_kept),
        TEST(test_diverged_tables_are_not_written),
        TEST(test_latest_missing_or_wrong),
        TEST(test_partial_is_ignored_and_removed),
        TEST(test_only_a_partial),
        TEST(test_moved_aside_is_found),
        TEST(test_older_ones_go_later),
        TEST(test_older_ones_go_but_the_one_moved_aside_that_is_read),
        TEST(test_failed_write_keeps_the_older),
        TEST(test_full_disk),
        TEST(test_killed_at_any_moment),
        TEST(test_locate),
        TEST(test_locate_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
