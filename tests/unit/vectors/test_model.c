#include "vectors/model.h"
#include "base/npy.h"
#include "tests/unit/small_run.h"

#include <fcntl.h>
#include <math.h>

static const char words[] = "the\t40\nGeneral\t30\n\xD1\x81\xD0\xBB\xD0\xBE\t20\n";
static const float targets[6] = {3, 4, 0, 0, -1, 0}, contexts[6] = {0, 2, 6, 8, 0, 0};

static struct small_run run;

static int set_up(void **state) {
    small_run_make(&run, words, 3, 2, targets, contexts);
    return 0;
}
static int tear_down(void **state) {
    small_run_remove(&run);
    return 0;
}

static void refused(const char *directory, const char *part) {
    struct model model;
    assert_failed_with(model_open(&model, directory), part);
    assert_null(model.directory); /* closing the model has freed and cleared everything */
    model_close(&model);
}

static void views(void **state) {
    struct model model;
    float rows[6];
    assert_int_equal(model_open(&model, run.directory), 0);
    assert_int_equal(model.rows, 3);
    assert_int_equal(model.dim, 2);
    model_rows(&model, VIEW_TARGET, 0, 3, rows);
    assert_memory_equal(rows, targets, sizeof rows);
    model_rows(&model, VIEW_CONTEXT, 1, 2, rows);
    assert_memory_equal(rows, contexts + 2, 4 * sizeof *rows);
    model_rows(&model, VIEW_SUM, 0, 3, rows);
    for (int i = 0; i < 6; i++) assert_true(rows[i] == targets[i] + contexts[i]);
    static const float normsum[6] = {0.6f, 1.8f, 0.6f, 0.8f, -1, 0};
    model_rows(&model, VIEW_NORMSUM, 0, 3, rows);
    for (int i = 0; i < 6; i++) assert_float_equal(rows[i], normsum[i], 1e-6);
    model_close(&model);
}

static void matrices(void **state) {
    struct model model;
    static const float unit[6] = {0.6f, 0.8f, 0, 0, -1, 0};
    assert_int_equal(model_open(&model, run.checkpoint), 0); /* the path may be that of one checkpoint of the run */
    float *matrix = model_matrix(&model, VIEW_TARGET, 0, 1);
    for (int i = 0; i < 6; i++) assert_float_equal(matrix[i], unit[i], 1e-7);
    free(matrix);
    matrix = model_matrix(&model, VIEW_TARGET, 99, 0);
    assert_memory_equal(matrix, targets, sizeof targets);
    free(matrix);
    model_close(&model);
}

/* If the run has trained the target row of an item, as part of a list's mean, that row is used. */
static void rows_of_lists(void **state) {
    static const char vocabulary[] = "a\t30\nb\t20\nlist:x\t0\n", keys[] = "[examples]\nown = 0.5\n";
    static const char wrong[] = "[examples]\nown = 2\n";
    for (int means = 0; means < 2; means++) {
        struct small_run lists;
        struct model model;
        float row[2];
        small_run_make(&lists, vocabulary, 3, 2, targets, contexts);
        if (means) small_write(lists.directory, "config.ini", keys, sizeof keys - 1);
        assert_int_equal(model_open(&model, lists.directory), 0);
        assert_true(model.own == (means ? 0.5 : 1));
        for (uint64_t i = 0; i < 3; i++) {
            model_rows(&model, VIEW_TARGET, i, 1, row);
            assert_memory_equal(row, (i == 2 || means ? targets : contexts) + 2 * i, sizeof row);
            model_rows(&model, VIEW_CONTEXT, i, 1, row);
            assert_memory_equal(row, (i == 2 ? targets : contexts) + 2 * i, sizeof row);
        }
        model_close(&model);
        small_write(lists.directory, "config.ini", wrong, sizeof wrong - 1);
        refused(lists.directory, "examples.own");
        small_run_remove(&lists);
    }
}

/* If examples.own is 0, the row of a list is never trained. It is not exported, cannot be asked, and is no answer. */
static void lists_that_are_means_alone(void **state) {
    static const char vocabulary[] = "a\t30\nb\t20\nlist:x\t0\n";
    static const char *const keys[] = {"[examples]\nown = 0.001\n", "[examples]\nown = 0\n"};
    for (int alone = 0; alone < 2; alone++) {
        struct small_run lists;
        struct model model;
        small_run_make(&lists, vocabulary, 3, 2, targets, contexts);
        small_write(lists.directory, "config.ini", keys[alone], strlen(keys[alone]));
        assert_int_equal(model_open(&model, lists.directory), 0);
        assert_int_equal(model_items(&model), 2);
        assert_int_equal(model_find(&model, VIEW_TARGET, "b"), 1);
        if (alone) assert_failed_with((int)model_find(&model, VIEW_TARGET, "list:x"), "'list:x' has no row in");
        else assert_int_equal(model_find(&model, VIEW_TARGET, "list:x"), 2);
        model_close(&model);
        small_run_remove(&lists);
    }
}

static void names(void **state) {
    struct model model;
    assert_int_equal(model_open(&model, run.directory), 0);
    assert_int_equal(model_find(&model, VIEW_TARGET, "General"), 1);
    assert_int_equal(model_find(&model, VIEW_TARGET, "\xD1\x81\xD0\xBB\xD0\xBE"), 2);
    assert_failed_with((int)model_find(&model, VIEW_TARGET, "Generel"), "did you mean 'General'");
    assert_failed_with((int)model_find(&model, VIEW_TARGET, "xyzzyxyzzy"), "'xyzzyxyzzy' is not in the vocabulary");
    model_close(&model);
    assert_int_equal(model_view_named("normsum"), VIEW_NORMSUM);
    assert_failed_with(model_view_named("input"), "'input' is not a table");
}

static void not_a_number(void **state) {
    struct model model;
    struct small_run broken;
    const float nan = NAN;
    small_run_make(&broken, words, 3, 2, targets, contexts);
    assert_int_equal(model_open(&model, broken.directory), 0);
    char *path = small_path(broken.checkpoint, "context.npy");
    int fd = file_open(path, O_WRONLY); /* no checkpoint is written with NaN, so the test writes it into the mapped file */
    assert_int_equal(pwrite(fd, &nan, sizeof nan, (off_t)(model.context.data + model.context.record + 4)), sizeof nan);
    close(fd);
    free(path);
    float *matrix = model_matrix(&model, VIEW_TARGET, 0, 1);
    assert_non_null(matrix);
    free(matrix);
    assert_null(model_matrix(&model, VIEW_CONTEXT, 0, 1));
    assert_failed_with(-1, "the vector of 'General'");
    matrix = model_matrix(&model, VIEW_CONTEXT, 1, 1); /* these rows contain no NaN */
    assert_non_null(matrix);
    free(matrix);
    model_close(&model);
    small_run_remove(&broken);
}

static void nothing_there(void **state) {
    char empty[256];
    refused("/nonexistent/run", "/nonexistent/run");
    assert_int_equal(fresh_directory(empty, sizeof empty, "test"), 0);
    refused(empty, empty);
    directory_remove_tree(empty);
    char *path = small_path(run.checkpoint, "context.npy");
    file_remove(path);
    refused(run.directory, "context.npy");
    free(path);
}

static void another_vocabulary(void **state) {
    small_write(run.directory, "vocab.tsv", words, strlen(words) - 12);
    refused(run.directory, "vocab.tsv' has 2 words");
    static const char swapped[] = "General\t30\nthe\t40\n\xD1\x81\xD0\xBB\xD0\xBE\t20\n";
    small_write(run.directory, "vocab.tsv", swapped, strlen(swapped));
    refused(run.directory, "is not the vocabulary that");
}

/* Tries a file that is cut short, a file with a changed byte, and the file of another table. */
static void broken_tables(void **state) {
    char *path = small_path(run.checkpoint, "target.npy");
    uint64_t length;
    char *bytes = file_read(path, &length);
    small_write(run.checkpoint, "target.npy", bytes, length - 1);
    refused(run.directory, "cut off");
    bytes[length - 3] ^= 1;
    small_write(run.checkpoint, "target.npy", bytes, length);
    refused(run.directory, "was changed");
    bytes[length - 3] ^= 1;
    small_write(run.checkpoint, "target.npy", bytes, length);
    struct model model;
    assert_int_equal(model_open(&model, run.directory), 0);
    model_close(&model);
    free(path);
    free(bytes);
}

static void tables_that_differ(void **state) {
    struct small_run other;
    static const float wide[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint64_t length;
    small_run_make(&other, words, 3, 3, wide, wide);
    char *path = small_path(other.checkpoint, "context.npy"), *bytes = file_read(path, &length);
    small_write(run.checkpoint, "context.npy", bytes, length);
    refused(run.directory, "has 3 columns, but target.npy has 2");
    free(path);
    free(bytes);
    small_run_remove(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(views, set_up, tear_down),
        cmocka_unit_test_setup_teardown(matrices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names, set_up, tear_down),
        cmocka_unit_test(rows_of_lists), cmocka_unit_test(lists_that_are_means_alone),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test_setup_teardown(nothing_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_vocabulary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_that_differ, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
