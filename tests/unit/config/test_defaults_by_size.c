#include "tests/testing.h"

#include "config/defaults_by_size.h"

static struct config config;
static char chosen[DEFAULTS_TEXT];

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

/* Resolves the config and then sets its defaults for data of this size. */
static void settle(struct data_size size) {
    assert_int_equal(config_resolve(&config), 0);
    assert_int_equal(defaults_by_size(&config, &size, chosen), 0);
}

static void assert_value(const char *section, const char *key, const char *wanted) {
    char *value = config_value(&config, section, key);
    assert_string_equal(value, wanted);
    free(value);
}

static const struct data_size small_text = {.tokens = 20000, .words = 40, .lists = 2000};

static void a_small_text_keeps_all_of_its_tokens(void **state) {
    settle(small_text);
    assert_value("examples", "subsample", "0");
    assert_non_null(strstr(chosen, "examples.subsample = 0"));
}

struct edge {
    struct data_size size;
    const char *epochs, *subsample, *lr;
};

/* Tests each threshold of the table with a text just below it and a text at it. */
static void text_takes_its_values_by_tokens_and_words(void **state) {
    const struct edge edges[] = {{{.tokens = 20000, .words = 40}, "40", "0", "0.025"},
                                 {{.tokens = 20000, .words = 199}, "40", "0", "0.025"},
                                 {{.tokens = 20000, .words = 200}, "40", "0.0003", "0.025"},
                                 {{.tokens = 20000, .words = 400}, "40", "0.0003", "0.025"},
                                 {{.tokens = 20000, .words = 401}, "40", "0.0003", "0.05"},
                                 {{.tokens = 49999, .words = 1000}, "29", "0.0003", "0.05"},
                                 {{.tokens = 50000, .words = 1000}, "29", "0.0001", "0.05"},
                                 {{.tokens = 50000, .words = 999}, "29", "0.0003", "0.05"},
                                 {{.tokens = 199999, .words = 4000}, "18", "0.0001", "0.05"},
                                 {{.tokens = 200000, .words = 4000}, "18", "0.0001", "0.05"},
                                 {{.tokens = 699999, .words = 9000}, "12", "0.0001", "0.05"},
                                 {{.tokens = 700000, .words = 9000}, "12", "0.0001", "0.05"},
                                 {{.tokens = 1499999, .words = 24999}, "9", "0.0001", "0.05"},
                                 {{.tokens = 1500000, .words = 24999}, "9", "0.0001", "0.025"},
                                 {{.tokens = 1500000, .words = 25000}, "9", "0.0001", "0.05"},
                                 {{.tokens = 2499999, .words = 25000}, "8", "0.0001", "0.05"},
                                 {{.tokens = 2500000, .words = 24999}, "8", "0.0001", "0.025"},
                                 {{.tokens = 2500000, .words = 25000}, "8", "0.0001", "0.05"},
                                 {{.tokens = 10000000, .words = 24999}, "5", "0.0001", "0.025"},
                                 {{.tokens = 16700000, .words = 80000}, "5", "0.0001", "0.05"},
                                 {{.tokens = 20000000000, .words = 5000000}, "5", "0.0001", "0.025"}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        config_release(&config);
        assert_int_equal(config_init(&config), 0);
        settle(edges[i].size);
        assert_value("train", "epochs", edges[i].epochs);
        assert_value("examples", "subsample", edges[i].subsample);
        assert_value("optimizer", "lr", edges[i].lr);
    }
}

static void assert_epochs(uint64_t tokens, const char *mode, const char *wanted) {
    config_release(&config);
    assert_int_equal(config_init(&config), 0);
    set(mode);
    settle((struct data_size){.tokens = tokens, .words = tokens / 50});
    assert_value("train", "epochs", wanted);
}

/* Epochs fall with the cube root of the tokens, between two bounds. */
static void cbow_and_subwords_have_epochs_of_their_own(void **state) {
    const struct {
        uint64_t tokens;
        const char *epochs;
    } cbow[] = {{1000, "60"}, {46000, "60"}, {60000, "55"}, {700000, "24"}, {10000000, "10"}, {100000000, "5"}},
      subwords[] = {{1000, "30"}, {19000, "30"}, {30000, "26"}, {700000, "9"}, {4300000, "5"}, {100000000, "5"}};
    for (size_t i = 0; i < sizeof cbow / sizeof *cbow; i++) {
        assert_epochs(cbow[i].tokens, "--examples.mode=cbow", cbow[i].epochs);
        assert_value("optimizer", "lr", "0.06");
    }
    for (size_t i = 0; i < sizeof subwords / sizeof *subwords; i++) {
        assert_epochs(subwords[i].tokens, "--examples.subwords=3-6", subwords[i].epochs);
        assert_value("optimizer", "lr", "0.075");
    }
}

static void the_rate_follows_epochs_that_the_user_sets(void **state) {
    set("--train.epochs=20");
    settle((struct data_size){.tokens = 16700000, .words = 80000});
    assert_value("optimizer", "lr", "0.025");
}

static void a_rule_that_is_named_has_its_own_rate(void **state) {
    set("--optimizer.rule=adagrad");
    settle((struct data_size){.tokens = 16700000, .words = 80000});
    assert_value("optimizer", "lr", "0.01");
}

static void exact_steps_of_sgd_without_a_bound_have_plain_values(void **state) {
    set("--train.update=batch");
    set("--optimizer.clip=0");
    settle((struct data_size){.tokens = 100000, .words = 900});
    assert_value("optimizer", "lr", "0.025");
    assert_value("examples", "subsample", "0.0001");
    assert_value("train", "epochs", "23");
}

static void exact_steps_with_a_bound_follow_the_size(void **state) {
    set("--train.update=batch");
    settle((struct data_size){.tokens = 100000, .words = 4000});
    assert_value("optimizer", "lr", "0.05");
}

/* examples.mode = user: tests data just below each threshold and at it, with train.effort = quick and thorough. */
static void lists_take_their_values_by_pairs_and_items(void **state) {
    static const struct {
        uint64_t pairs, items;
        const char *effort, *temperature, *epochs, *negatives;
    } all[] = {{1999, 20, "quick", "1", "60", "20"},           {2000, 20, "quick", "0.5", "60", "20"},
               {9999, 20, "quick", "0.5", "60", "20"},         {10000, 49, "quick", "0.4", "60", "49"},
               {99999, 50, "quick", "0.4", "60", "50"},        {100000, 999, "quick", "0.2", "60", "50"},
               {200000, 999, "quick", "0.2", "60", "50"},      {24999, 1999, "quick", "0.2", "20", "1999"},
               {24999, 2000, "quick", "0.2", "20", "2000"},
               {25000, 1000, "quick", "0.2", "60", "300"},     {59999, 1000, "quick", "0.2", "60", "300"},     {60000, 1000, "quick", "0.15", "60", "300"},
               {119999, 9999, "quick", "0.15", "60", "300"},   {120000, 9999, "quick", "0.1", "60", "300"},
               {25000, 10000, "quick", "0.1", "60", "300"},    {199999, 10000, "quick", "0.1", "60", "300"},
               {200000, 1000, "quick", "0.1", "20", "1000"},   {9999, 168, "thorough", "0.5", "20", "168"},
               {10000, 3999, "thorough", "0.2", "60", "3999"}, {10000, 8191, "thorough", "0.2", "60", "8191"},
               {10000, 8192, "thorough", "0.2", "60", "8192"}, {300000, 20000, "thorough", "0.09", "60", "8192"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char effort[64];
        snprintf(effort, sizeof effort, "--train.effort=%s", all[i].effort);
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=lists");
        set("--device.backend=cpu");
        set(effort);
        settle((struct data_size){.tokens = all[i].pairs, .words = all[i].items, .lists = 600});
        assert_value("train", "temperature", all[i].temperature);
        assert_value("train", "epochs", all[i].epochs);
        assert_value("negatives", "count", all[i].negatives);
        config_release(&config);
    }
}

static void few_lines_take_a_lower_rate_and_more_columns(void **state) {
    static const struct {
        uint64_t pairs;
        const char *rate, *columns;
    } all[] = {{99999, "0.0125", "256"}, {100000, "0.05", "128"}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=adjacency");
        settle((struct data_size){.tokens = all[i].pairs, .words = 3000, .lists = 3000});
        assert_value("optimizer", "lr", all[i].rate);
        assert_value("model", "dim", all[i].columns);
        config_release(&config);
    }
    assert_int_equal(config_init(&config), 0);
    set("--corpus.format=adjacency");
    set("--optimizer.rule=adagrad");
    settle((struct data_size){.tokens = 5000, .words = 3000, .lists = 3000});
    assert_value("optimizer", "lr", "0.01"); /* PyTorch's default */
    config_release(&config);
}

/* With many items and few pairs a batch shares its negatives, unless the user has set a key that does not fit shared negatives. */
static void small_data_of_many_items_shares_negatives(void **state) {
    static const struct {
        const char *key;
        uint64_t pairs, items;
        const char *per, *targets, *positives;
    } all[] = {{"--train.seed=1", 24999, 1000, "batch", "all", "1"},      {"--train.seed=1", 25000, 1000, "example", "one", "0"},
               {"--train.seed=1", 24999, 999, "example", "one", "0"},     {"--negatives.count=50", 5000, 3000, "example", "one", "0"},
               {"--examples.own=0", 5000, 3000, "example", "one", "0"},   {"--train.loss=bpr", 5000, 3000, "example", "one", "0"},
               {"--device.ranks=2", 5000, 3000, "example", "one", "0"},   {"--train.batch=64", 5000, 3000, "example", "one", "0"},
               {"--examples.positives=3", 5000, 3000, "example", "one", "3"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=lists");
        set("--train.effort=quick");
        set(all[i].key);
        settle((struct data_size){.tokens = all[i].pairs, .words = all[i].items, .lists = 600});
        assert_value("negatives", "per", all[i].per);
        assert_value("examples", "targets", all[i].targets);
        assert_value("examples", "positives", all[i].positives);
        config_release(&config);
    }
}

/* If a key of the user excludes shared negatives, a thorough run draws 4,000 negatives a list, but no more than there are items. */
static void thorough_lists_that_share_nothing_have_no_more_negatives_than_items(void **state) {
    static const uint64_t items[] = {168, 3999, 4000, 9000};
    static const char *const wanted[] = {"168", "3999", "4000", "4000"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=lists");
        set("--train.effort=thorough");
        set("--examples.positives=0");
        settle((struct data_size){.tokens = 300000, .words = items[i], .lists = 6000});
        assert_value("negatives", "count", wanted[i]);
        config_release(&config);
    }
}

static void a_temperature_by_size_is_of_cosines_in_a_softmax(void **state) {
    set("--corpus.format=lists");
    set("--train.loss=bpr");
    settle((struct data_size){.tokens = 5000, .words = 200, .lists = 1000});
    assert_value("train", "temperature", "1");
    config_release(&config);
    assert_int_equal(config_init(&config), 0);
    set("--corpus.format=lists");
    set("--train.score=dot");
    settle((struct data_size){.tokens = 5000, .words = 200, .lists = 1000});
    assert_value("train", "temperature", "1");
}

static void other_data_is_left_alone(void **state) {
    set("--examples.mode=window");
    set("--corpus.format=lists");
    settle((struct data_size){.tokens = 20000, .words = 400, .lists = 2000});
    assert_string_equal(chosen, "");
}

static void keys_that_the_user_sets_stay(void **state) {
    set("--examples.subsample=1e-3");
    set("--train.epochs=5");
    set("--optimizer.lr=0.01");
    settle(small_text);
    assert_value("examples", "subsample", "0.001");
    assert_value("train", "epochs", "5");
    assert_value("optimizer", "lr", "0.01");
    assert_string_equal(chosen, "");
}

static void auto_is_no_value_of_the_users(void **state) {
    set("--examples.subsample=1e-3");
    set("--examples.subsample=auto");
    settle(small_text);
    assert_value("examples", "subsample", "0");
}

static void a_run_that_goes_on_keeps_its_values(void **state) {
    struct config before;
    assert_int_equal(config_init(&before), 0);
    assert_int_equal(config_argument(&before, "--examples.subsample=3e-4", "command line") || config_argument(&before, "--train.epochs=7", "command line"), 0);
    assert_int_equal(config_resolve(&before) || config_resolve(&config), 0);
    set("--train.epochs=9");
    defaults_keep(&config, &before);
    assert_value("examples", "subsample", "0.0003");
    assert_value("train", "epochs", "9");
    config_release(&before);
}

/* Sets the defaults for a graph with this number of nodes, each of which has `arcs` arcs. */
static void settle_graph(uint64_t nodes, double arcs) {
    settle((struct data_size){.words = nodes, .arcs = (uint64_t)((double)nodes * arcs)});
}

static void dense_graphs_are_walked_more(void **state) {
    set("--corpus.format=graph");
    set("--train.effort=quick");
    settle_graph(1000, 31.9);
    assert_value("walks", "per_node", "10");
    assert_string_equal(chosen, "");
    settle_graph(1000, 32);
    assert_value("walks", "per_node", "20");
    assert_string_equal(chosen, "walks.per_node = 20");
    settle_graph(1000000, 31);
    assert_value("walks", "per_node", "10");
    set("--walks.per_node=7");
    settle_graph(1000, 65);
    assert_value("walks", "per_node", "7");
}

static void the_densest_graphs_have_a_higher_rate(void **state) {
    set("--corpus.format=graph");
    set("--train.effort=quick");
    settle_graph(1000, 47.9);
    assert_value("optimizer", "lr", "0.01");
    settle_graph(1000, 48);
    assert_value("optimizer", "lr", "0.015");
}

static void exact_steps_of_graphs_keep_their_rate(void **state) {
    set("--corpus.format=graph");
    set("--train.update=batch");
    set("--optimizer.clip=0");
    settle_graph(1000, 48);
    assert_value("optimizer", "lr", "0.01");
}

/* The labels of some small graphs tell the role of a node (a hub, a bridge) and not its neighbourhood. With more walks such labels are
 * predicted worse, so small graphs keep 10 walks a node. */
static void thorough_walks_are_for_large_graphs(void **state) {
    set("--corpus.format=graph");
    set("--train.effort=thorough");
    settle_graph(4999, 31);
    assert_value("walks", "per_node", "10");
    settle_graph(5000, 15.9);
    assert_value("walks", "per_node", "10");
    settle_graph(5000, 16);
    assert_value("walks", "per_node", "20");
    settle_graph(100, 32);
    assert_value("walks", "per_node", "20");
}

static void triples_take_their_values_by_entities(void **state) {
    const struct {
        uint64_t entities, triples;
        const char *effort, *dim, *negatives, *weight, *epochs, *n3, *lr, *relations;
        uint64_t kinds;
    } all[] = {{1999, 20000, "quick", "200", "all", "1", "40", "0.01", "0.1", "0", 40},
               {3999, 20000, "quick", "200", "all", "1", "40", "0.01", "0.1", "0", 40},
               {4000, 20000, "quick", "200", "1000", "4", "40", "0.05", "0.1", "0", 40},
               {999, 20000, "thorough", "1000", "all", "1", "40", "0.01", "0.1", "0", 40},
               {1000, 20000, "thorough", "2000", "all", "1", "40", "0.01", "0.1", "0", 40},
               {3999, 20000, "thorough", "2000", "all", "1", "40", "0.01", "0.1", "0", 40},
               {4000, 272115, "thorough", "2000", "all", "1", "20", "0.05", "0.1", "0.25", 3999},
               {14541, 272115, "thorough", "2000", "all", "1", "20", "0.05", "0.1", "0", 4000},
               {20000, 5000000, "thorough", "1000", "all", "1", "20", "0.05", "0.1", "0.25", 40},
               {50000, 5000000, "thorough", "1000", "4000", "12", "20", "0.05", "0.2", "0.25", 40},
               {999999, 5000000, "thorough", "200", "4000", "250", "20", "0.05", "0.2", "0.25", 40},
               {1000000, 5000000, "thorough", "200", "4000", "250", "20", "0.1", "0.5", "0.25", 40},
               {86000000, 338000000, "thorough", "100", "1000", "86000", "10", "0.1", "0.5", "0", 40}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        config_release(&config);
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=triples");
        assert_int_equal(config_set(&config, "train", "effort", all[i].effort, "test"), 0);
        settle((struct data_size){.tokens = 2 * all[i].triples, .words = all[i].entities, .lists = all[i].triples, .relations = all[i].kinds});
        assert_value("model", "dim", all[i].dim);
        assert_value("train", "relations", all[i].relations);
        assert_value("negatives", "count", all[i].negatives);
        assert_value("train", "negative_weight", all[i].weight);
        assert_value("train", "epochs", all[i].epochs);
        assert_value("train", "n3", all[i].n3);
        assert_value("optimizer", "lr", all[i].lr);
        int many = all[i].entities >= 1000000;
        assert_value("optimizer", "initial_accumulator", many ? "1" : "0");
        assert_value("train", "n3_warmup", many ? "0.3" : "0");
        assert_value("model", "target_init", "normal 0 0.001");
        assert_value("model", "context_init", many ? "normal 0 0.05" : "normal 0 0.001");
        assert_value("model", "relation_init", many ? "normal 0 0.4" : "normal 0 0.001");
    }
}

/* The defaults of very many entities belong together. If the user sets one of these keys, others that would not fit its value keep their plain
 * defaults. */
static void keys_that_are_set_change_the_defaults_of_many_triples(void **state) {
    static const struct {
        const char *key, *section, *name, *value;
    } all[] = {{"--train.n3=0", "train", "n3_warmup", "0"},
               {"--optimizer.rule=adagrad", "optimizer", "initial_accumulator", "0"},
               {"--model.target_init=normal 0 0.5", "model", "relation_init", "normal 0 0.5"},
               {"--train.product=rotation", "model", "relation_init", "normal 0 0.001"},
               {"--train.product=translation", "optimizer", "initial_accumulator", "0"},
               {"--train.product=rotation", "optimizer", "lr", "0.1"},
               {"--train.product=real", "optimizer", "lr", "0.5"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        config_release(&config);
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=triples");
        set(all[i].key);
        settle((struct data_size){.tokens = 10000000, .words = 1000000, .lists = 5000000, .relations = 40});
        assert_value(all[i].section, all[i].name, all[i].value);
    }
}

/* negative_weight is used by the softmax only, and not if negative_power is set. */
static void only_a_softmax_weighs_the_negatives_of_triples(void **state) {
    static const char *const keys[] = {"--train.loss=logistic", "--train.negative_power=1.1", "--train.negative_weight=3"};
    for (int i = 0; i < 3; i++) {
        config_release(&config);
        assert_int_equal(config_init(&config), 0);
        set("--corpus.format=triples");
        set("--negatives.count=100");
        set(keys[i]);
        settle((struct data_size){.tokens = 2000, .words = 1000, .lists = 1000});
        assert_value("train", "negative_weight", i == 2 ? "3" : "1");
    }
}

/* `help keys` describes the defaults from the same table that sets them. */
static void help_names_the_values(void **state) {
    char text[DEFAULTS_HELP];
    defaults_describe("train.epochs", text);
    assert_non_null(strstr(text, "\n  for examples.mode = window: 40 for at most 20,000 tokens, 5 for at least 10,000,000; between them 1077 / the "
                                 "cube root of their number\n"));
    assert_non_null(strstr(text, "\n  for examples.mode = user, at least 1,000 items and 200,000 pairs, with train.effort = thorough: 60\n"
                                 "  for examples.mode = user, at least 1,000 items and 200,000 pairs: 20\n"));
    assert_non_null(strstr(text, "\n  for examples.mode = user, at least 10,000 pairs, with train.effort = thorough: 60"));
    defaults_describe("examples.subsample", text);
    assert_string_equal(text, "  for corpus.format = text, at least 50,000 tokens and 1,000 distinct words: 1e-4\n"
                              "  for corpus.format = text, at least 200 distinct words: 3e-4\n  for corpus.format = text: 0\n"
                              "  for examples.mode = walk with corpus.format = triples, at least 1,000 nodes: 1e-3\n"
                              "  for examples.mode = walk with corpus.format = triples: 0");
    defaults_describe("train.seed", text);
    assert_string_equal(text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(a_small_text_keeps_all_of_its_tokens, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(text_takes_its_values_by_tokens_and_words, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(cbow_and_subwords_have_epochs_of_their_own, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(the_rate_follows_epochs_that_the_user_sets, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(a_rule_that_is_named_has_its_own_rate, set_up, tear_down),
                                       cmocka_unit_test(lists_take_their_values_by_pairs_and_items),
                                       cmocka_unit_test(few_lines_take_a_lower_rate_and_more_columns),
                                       cmocka_unit_test(small_data_of_many_items_shares_negatives),
                                       cmocka_unit_test(thorough_lists_that_share_nothing_have_no_more_negatives_than_items),
                                       cmocka_unit_test_setup_teardown(a_temperature_by_size_is_of_cosines_in_a_softmax, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(exact_steps_of_sgd_without_a_bound_have_plain_values, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(exact_steps_with_a_bound_follow_the_size, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(other_data_is_left_alone, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(keys_that_the_user_sets_stay, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(auto_is_no_value_of_the_users, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(a_run_that_goes_on_keeps_its_values, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(dense_graphs_are_walked_more, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(the_densest_graphs_have_a_higher_rate, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(exact_steps_of_graphs_keep_their_rate, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(thorough_walks_are_for_large_graphs, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(triples_take_their_values_by_entities, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(keys_that_are_set_change_the_defaults_of_many_triples, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(only_a_softmax_weighs_the_negatives_of_triples, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(help_names_the_values, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
