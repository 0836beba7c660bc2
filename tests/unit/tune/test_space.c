#include "tests/testing.h"

#include "base/report.h"
#include "tune/tune_inner.h"

#include "tests/unit/sentence.h"

static struct config config;
static struct space space;

static int set_up(void **state) {
    return config_init(&config);
}
static int tear_down(void **state) {
    config_release(&config);
    return 0;
}

static void set(const char *argument) {
    assert_int_equal(config_argument(&config, argument, "command line"), 0);
}

/* Calls space_find() with `config` and a resolved copy of it. */
static int weighable;
static int find_space(int wide) {
    struct config resolved;
    assert_int_equal(config_copy(&resolved, &config) || config_resolve(&resolved), 0);
    int result = space_find(&space, &config, &resolved, wide, weighable);
    config_release(&resolved);
    return result;
}

static const struct space_key *find(const char *key) {
    for (int i = 0; i < space.count; i++)
        if (!strcmp(space.key[i].key, key)) return &space.key[i];
    return NULL;
}

static void keys_that_are_set_are_not_tried(void **state) {
    set("--corpus.format=lists");
    assert_int_equal(find_space(0), 0);
    assert_non_null(find("dim"));
    assert_non_null(find("negative_power"));
    assert_string_equal(find("lr")->value[find("lr")->own], "0.002");
    set("--model.dim=128"); /* the key is set to its default */
    assert_int_equal(find_space(0), 0);
    assert_null(find("dim"));
}

static void negatives_of_a_batch_have_keys_of_their_own(void **state) {
    set("--corpus.format=lists");
    assert_int_equal(find_space(0), 0);
    assert_non_null(find("own"));
    set("--negatives.per=batch");
    assert_int_equal(find_space(0), 0);
    assert_null(find("own"));
    assert_string_equal(find("count")->value[find("count")->own], "8000");
}

static void weights_are_tried_where_pairs_have_them(void **state) {
    for (weighable = 0; weighable < 2; weighable++)
        for (int pairs = 0; pairs < 2; pairs++) {
            set(pairs ? "--corpus.format=pairs" : "--corpus.format=lists");
            assert_int_equal(find_space(0), 0);
            assert_int_equal(find("weights") != NULL, weighable && pairs);
        }
    assert_string_equal(find("weights")->value[find("weights")->own], "none");
    weighable = 0;
}

static void values_that_other_keys_refuse_are_not_tried(void **state) {
    set("--corpus.format=lists");
    set("--train.loss=bpr"); /* the negatives of this loss have no power */
    assert_int_equal(find_space(0), 0);
    assert_null(find("negative_power"));
    assert_string_equal(report_sentence(), "");
}

static void a_loss_compares_fewer_keys_of_text(void **state) {
    assert_int_equal(find_space(0), 0);
    assert_null(find("window"));
    assert_int_equal(find_space(1), 0);
    assert_non_null(find("window"));
    set("--model.dim=100"), set("--optimizer.lr=0.1");
    assert_int_equal(find_space(0), -1);
    sentence_holds("tune has no key left to try");
}

static void draws_depend_on_seed_and_number_alone(void **state) {
    set("--corpus.format=lists");
    assert_int_equal(find_space(0), 0);
    struct space_point own = space_own(&space);
    for (uint64_t number = 1; number < 50; number++) {
        struct space_point a = space_draw(&space, NULL, 3, number, 0), b = space_draw(&space, NULL, 3, number, 0);
        struct space_point near = space_draw(&space, &own, 3, number, 0);
        int moved = 0;
        assert_true(space_equal(&space, &a, &b));
        for (int i = 0; i < space.count; i++) {
            assert_in_range(a.place[i], 0, space.key[i].count - 1);
            if (near.place[i] == SPACE_OWN) continue;
            assert_int_equal(abs(near.place[i] - space.key[i].own), 1);
            assert_in_range(near.place[i], 0, space.key[i].count - 1);
            moved++;
        }
        assert_true(moved >= 1);
    }
}

static void a_trial_sets_its_keys(void **state) {
    struct space_point point;
    char text[SPACE_TEXT];
    set("--corpus.format=lists");
    assert_int_equal(find_space(0), 0);
    point = space_own(&space);
    space_text(&space, &point, text);
    assert_string_equal(text, "the keys as they are");
    point.place[0] = 0;
    space_text(&space, &point, text);
    assert_string_equal(text, "model.dim=64");
    assert_true(space_cost(&space, &point) == 0.5);
    assert_int_equal(space_set(&space, &point, &config), 0);
    assert_int_equal(config.model_dim, 64);
    assert_true(config_is_given(&config, "model", "dim") && !config_is_given(&config, "optimizer", "lr"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_that_are_set_are_not_tried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(negatives_of_a_batch_have_keys_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(weights_are_tried_where_pairs_have_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_that_other_keys_refuse_are_not_tried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loss_compares_fewer_keys_of_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draws_depend_on_seed_and_number_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trial_sets_its_keys, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
