/* Tests which table of a finished run answers by default, and the messages about rows that were never trained. */
#include "tests/unit/small_run.h"
#include "vectors/list_scores.h"

enum { ROWS = 4, DIM = 6 };
static const char words[] = "both\t9\ncited\t5\nciting\t3\nneither\t1\n";
static const char readers[] = "a\t9\nb\t5\nlist:x\t0\nlist:y\t0\n";

static struct small_run run;
static struct model model;
static float target[ROWS * DIM], context[ROWS * DIM];

/* Gives both tables their first values. Then changes, as if trained, the rows `both` in both tables, and `cited` and `citing` in one table each. */
static void fill_tables(void) {
    struct init_values values;
    for (uint64_t row = 0; row < ROWS; row++) {
        struct columns all = {0, DIM, 0};
        assert_int_equal(table_init_values(&values, "word2vec", TABLE_TARGET, DIM), 0);
        table_first_weights(&values, 3, TABLE_TARGET, row, all, target + row * DIM);
        assert_int_equal(table_init_values(&values, "normal 0 1", TABLE_CONTEXT, DIM), 0);
        table_first_weights(&values, 3, TABLE_CONTEXT, row, all, context + row * DIM);
    }
    target[5] += 1, target[2 * DIM + 4] += 1; /* changes only the last columns, to check that all columns are compared with the
                                               * first values */
    context[5] += 1, context[DIM + 4] += 1;
}

static void open_run(const char *vocabulary, const char *keys) {
    static const char head[] = "[train]\nseed = 3\n[model]\ndim = 6\ntarget_init = word2vec\ncontext_init = normal 0 1\n";
    char text[512];
    fill_tables();
    small_run_make(&run, vocabulary, ROWS, DIM, target, context);
    snprintf(text, sizeof text, "%s%s", head, keys);
    small_write(run.directory, "config.ini", text, strlen(text));
    assert_int_equal(model_open(&model, run.directory), 0);
}

static int tear_down(void **state) {
    model_close(&model);
    small_run_remove(&run);
    return 0;
}

static void tables_and_scores(void **state) {
    static const struct {
        const char *vocabulary, *keys;
        enum model_view view;
        enum list_score dot, cosine;
    } runs[] = {{words, "[examples]\nmode = window\n", VIEW_TARGET, LIST_SCORE_TARGET, LIST_SCORE_CONTEXT_COSINE},
                {words, "[examples]\nmode = cbow\n", VIEW_TARGET, LIST_SCORE_TARGET, LIST_SCORE_CONTEXT_COSINE},
                {words, "[examples]\nmode = list\n", VIEW_TARGET, LIST_SCORE_TARGET, LIST_SCORE_CONTEXT_COSINE},
                {words, "", VIEW_TARGET, LIST_SCORE_TARGET, LIST_SCORE_CONTEXT_COSINE},
                {words, "[examples]\nmode = adjacency\n", VIEW_SUM, LIST_SCORE_SUM, LIST_SCORE_SUM},
                {words, "[examples]\nmode = walk\n", VIEW_NORMSUM, LIST_SCORE_CONTEXT, LIST_SCORE_CONTEXT},
                {readers, "[examples]\nmode = user\n", VIEW_CONTEXT, LIST_SCORE_USER, LIST_SCORE_USER_COSINE}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int cosine = 0; cosine < 2; cosine++) {
            char keys[128];
            snprintf(keys, sizeof keys, "[train]\nscore = %s\n%s", cosine ? "cosine" : "dot", runs[i].keys);
            open_run(runs[i].vocabulary, keys);
            assert_int_equal(answers_view_named(&model, NULL, 1), runs[i].view);
            assert_int_equal(answers_view_named(&model, "normsum", 1), VIEW_NORMSUM);
            assert_int_equal(answers_score(&model, 0), cosine ? runs[i].cosine : runs[i].dot);
            int own = runs[i].view == VIEW_SUM || model.mode == MODE_WALK; /* lines are named by rows */
            assert_int_equal(answers_score(&model, 1), own ? LIST_SCORE_USER : answers_score(&model, 0));
            tear_down(state);
        }
    open_run(words, "");
    assert_failed_with(answers_view_named(&model, "both", 1), "'both' is not a table");
    assert_failed_with(answers_view_named(&model, "propagated", 1), "was not trained on a graph (corpus.format = graph)");
    assert_failed_with(answers_score_named(&model, "propagated", 0, 1), "was not trained on a graph");
    assert_int_equal(answers_score_named(&model, NULL, 0, 1), LIST_SCORE_TARGET);
    tear_down(state);
    open_run(words, "[examples]\nmode = walk\n");
    assert_failed_with(answers_view_named(&model, "propagated", 1), "corpus.graph' is not there: it is the graph that");
}

static void rows(void **state) {
    open_run(readers, "[examples]\nmode = user\n");
    assert_int_equal(answers_rows(&model, 0), 2);
    assert_int_equal(answers_rows(&model, 1), 4);
    tear_down(state);
    open_run(readers, "[examples]\nmode = user\nown = 0\n");
    assert_int_equal(answers_rows(&model, 0), 2);
    assert_int_equal(answers_rows(&model, 1), 0);
    assert_failed_with(-1, "its lists are the mean of their items alone");
    tear_down(state);
    open_run("list:a\t0\nlist:b\t0\nlist:x\t0\nlist:y\t0\n", "");
    assert_int_equal(answers_rows(&model, 0), 0);
    assert_failed_with(-1, "has no row but those of lists; wanted items");
    tear_down(state);
    open_run(words, "");
    assert_int_equal(answers_rows(&model, 0), 4);
    assert_int_equal(answers_rows(&model, 1), 0);
    assert_failed_with(-1, "no list has a row in");
}

static void rows_never_trained(void **state) {
    open_run(words, "[examples]\nmode = adjacency\n");
    assert_int_equal(model_find(&model, VIEW_TARGET, "both"), 0);
    assert_int_equal(model_find(&model, VIEW_TARGET, "citing"), 2);
    assert_int_equal(model_find(&model, VIEW_CONTEXT, "cited"), 1);
    assert_int_equal(model_find(&model, VIEW_SUM, "cited"), 1);
    assert_int_equal(model_find(&model, VIEW_NORMSUM, "citing"), 2);
    assert_failed_with((int)model_find(&model, VIEW_TARGET, "cited"),
                       "'cited' was never trained as a target in");
    assert_failed_with((int)model_find(&model, VIEW_CONTEXT, "citing"), "ask the table target, or sum");
    for (enum model_view view = VIEW_TARGET; view <= VIEW_NORMSUM; view++)
        assert_failed_with((int)model_find(&model, view, "neither"), "'neither' was never trained in");
}

/* A vector that was never trained is left out of a sum: its initial values add nothing. */
static void sums_of_what_was_trained(void **state) {
    float sum[ROWS * DIM], normsum[ROWS * DIM];
    open_run(words, "[examples]\nmode = adjacency\n");
    model_rows(&model, VIEW_SUM, 0, ROWS, sum);
    model_rows(&model, VIEW_NORMSUM, 0, ROWS, normsum);
    for (int i = 0; i < DIM; i++) {
        assert_true(sum[i] == target[i] + context[i]);
        assert_true(sum[DIM + i] == context[DIM + i]);
        assert_true(sum[2 * DIM + i] == target[2 * DIM + i]);
        assert_true(sum[3 * DIM + i] == 0 && normsum[3 * DIM + i] == 0);
    }
    float length = 0;
    for (int i = 0; i < DIM; i++) length += normsum[DIM + i] * normsum[DIM + i];
    assert_float_equal(length, 1, 1e-5);
}

/* If a list has a row, it is trained only in the target table, and an item only in the context table. Every view shows the trained vector. */
static void lists_and_items(void **state) {
    open_run(readers, "[examples]\nmode = user\n");
    for (enum model_view view = VIEW_TARGET; view <= VIEW_NORMSUM; view++) {
        assert_int_equal(model_find(&model, view, "b"), 1);
        assert_int_equal(model_find(&model, view, "list:x"), 2);
        assert_int_equal(model_find(&model, view, "list:y"), 3); /* found, but with a warning */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tables_and_scores, tear_down),
        cmocka_unit_test_teardown(rows, tear_down),
        cmocka_unit_test_teardown(rows_never_trained, tear_down),
        cmocka_unit_test_teardown(sums_of_what_was_trained, tear_down),
        cmocka_unit_test_teardown(lists_and_items, tear_down),
    };
    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
