/* Checks the capacity for the largest batch: no batch is larger, and the largest batch nearly fills it. */
#include "tests/testing.h"

#include "kernels/cpu/cpu.h"
#include "train/examples.h"
#include "base/report.h"
#include "base/pool.h"
#include "tests/unit/tiny_graph.h"

/* Sorts sentences by length, as in a sorted corpus. Its last batches are far larger than the mean batch. */
static void sort_by_length(struct tiny *tiny) {
    uint64_t sentences = tiny->stream.sentences, *lengths = calloc(sentences, sizeof *lengths), at = 0;
    for (uint64_t i = 0; i < sentences; i++) lengths[i] = tiny->starts[i + 1] - tiny->starts[i];
    for (uint64_t i = 1; i < sentences; i++)
        for (uint64_t j = i; j > 0 && lengths[j - 1] > lengths[j]; j--) {
            uint64_t shorter = lengths[j];
            lengths[j] = lengths[j - 1], lengths[j - 1] = shorter;
        }
    for (uint64_t i = 0; i < sentences; i++) tiny->starts[i] = at, at += lengths[i];
    free(lengths);
}

/* Checks that every batch of two epochs fits the capacity, and that the largest batch fills at least this share of it. */
static void check_examples(const char *name, struct config config, const struct examples *examples, uint64_t batch, double filled) {
    struct cpu_piece piece = {0};
    struct cpu_blocks blocks = {0};
    struct example_sizes most = {0};
    const struct example_source *source = &examples->source;
    int held_out = source->held_out > 0;
    uint64_t count = example_count(source);
    struct example_sizes capacity = examples_capacity(examples, batch, held_out ? config.train_held_out : 1);
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t first = 0; first < count; first += batch) {
            cpu_blocks_clear(&blocks);
            assert_int_equal(0, cpu_build(source, &piece, &blocks, epoch, first,
                                          count - first < batch ? count - first : batch, held_out));
            if (blocks.count > most.blocks) most.blocks = blocks.count;
            if (blocks.targets > most.targets) most.targets = blocks.targets;
            if (blocks.contexts > most.contexts) most.contexts = blocks.contexts;
            if (blocks.logits > most.terms) most.terms = blocks.logits;
        }
    print_message("%-32s %6llu: of %llu blocks %.3f, targets %.3f, contexts %.3f, terms %.3f\n", name,
                  (unsigned long long)batch, (unsigned long long)capacity.blocks,
                  (double)most.blocks / (double)capacity.blocks, (double)most.targets / (double)capacity.targets,
                  (double)most.contexts / (double)capacity.contexts, (double)most.terms / (double)capacity.terms);
    assert_true(most.blocks <= capacity.blocks && most.targets <= capacity.targets);
    assert_true(most.contexts <= capacity.contexts && most.terms <= capacity.terms);
    if (source->pool.on) assert_true((double)most.targets >= 0.85 * (double)capacity.targets);
    assert_true((double)most.contexts >= filled * (double)capacity.contexts &&
                (double)most.terms >= filled * (double)capacity.terms);
    cpu_blocks_release(&blocks);
    cpu_piece_release(&piece);
}

static void check_capacity(const char *name, struct config config, const struct tiny *tiny, uint64_t batch, double filled) {
    struct examples examples;
    assert_int_equal(0, examples_init(&examples, &config, &tiny->vocab, &tiny->stream));
    check_examples(name, config, &examples, batch, filled);
    examples_release(&examples);
}

static void check_window_capacities(const char *order, const struct tiny *tiny) {
    for (int variant = 0; variant < 16; variant++) {
        struct config config = tiny_config(EXAMPLE_WINDOW);
        char name[64];
        config.negatives_per = variant & 1 ? PER_EXAMPLE : PER_PAIR;
        config.examples_subsample = variant & 2 ? 1e-3 : 0;
        config.examples_shuffle = (variant & 4) != 0;
        config.train_held_out = variant & 8 ? 0.1 : 0;
        snprintf(name, sizeof name, "%s%s%s%s%s", order, variant & 1 ? "" : ", per pair", variant & 2 ? ", subsample" : "",
                 variant & 4 ? ", shuffled" : "", variant & 8 ? ", held out" : "");
        check_capacity(name, config, tiny, 500, variant & 8 ? 0.3 : 0.6);
        check_capacity(name, config, tiny, 8192, variant & 8 ? 0.6 : 0.85);
    }
}

static void the_largest_batch_of_windows_has_capacity(void **state) {
    struct tiny tiny;
    tiny_make(&tiny, 2000, 3000, 18, 1);
    check_window_capacities("as it comes", &tiny);
    sort_by_length(&tiny);
    check_window_capacities("sorted", &tiny);
    tiny_free(&tiny);
}

static void the_largest_batch_of_walks_has_capacity(void **state) {
    struct tiny_graph graph;
    struct pool *pool = pool_open(2);
    assert_non_null(pool);
    tiny_graph_make(&graph, 3000, 6, 0);
    for (int variant = 0; variant < 8; variant++) {
        struct config config = tiny_graph_config();
        struct examples examples;
        config.negatives_per = variant & 1 ? PER_EXAMPLE : PER_PAIR;
        config.examples_subsample = variant & 2 ? 1e-3 : 0;
        config.train_held_out = variant & 4 ? 0.1 : 0;
        assert_int_equal(0, examples_init_walks(&examples, &config, &graph.vocab, &graph.graph, pool));
        double filled = variant & 4 ? 0.6 : 0.85;
        check_examples("walks", config, &examples, 8192, filled);
        examples_release(&examples);
    }
    pool_close(pool);
    tiny_graph_free(&graph);
}

static void the_largest_batch_of_lists_has_capacity(void **state) {
    struct tiny tiny;
    tiny_make(&tiny, 2000, 3000, 18, 0.5);
    sort_by_length(&tiny);
    for (int variant = 0; variant < 8; variant++) {
        struct config config = tiny_config(variant & 1 ? EXAMPLE_ADJACENCY : EXAMPLE_LIST);
        config.examples_positives = 0; /* all other items of a list are positives, so examples differ in size */
        config.examples_targets = variant & 2 ? TARGETS_ALL : TARGETS_ONE;
        config.examples_shuffle = (variant & 4) != 0;
        check_capacity(variant & 1 ? "adjacency" : "list", config, &tiny, 500, variant & 4 ? 0.9 : 0.9999);
        config.examples_own = variant & 2 ? 0.5 : 0;
        config.examples_pooled = variant & 1 ? 5 : 0;
        check_capacity("split", config, &tiny, 500, variant & 4 ? 0.9 : 0.9999);
        config.examples_positives = 3;
        config.examples_short = SHORT_REPEAT;
        check_capacity("split, three positives", config, &tiny, 500, variant & 4 ? 0.9 : 0.9999);
    }
    tiny_free(&tiny);
}

/* One list in a hundred is a hundred times as long as the others. A small batch with several long lists is rare, but a run has
 * so many batches that it occurs. */
static void no_batch_of_a_long_run_is_larger_than_its_capacity(void **state) {
    enum { LISTS = 4000, BATCH = 64, EPOCHS = 100 };
    struct tiny tiny;
    struct config config = tiny_config(EXAMPLE_LIST);
    struct examples examples;
    struct cpu_piece piece = {0};
    struct cpu_blocks blocks = {0};
    uint64_t most = 0, at = 0;
    tiny_make(&tiny, 2000, LISTS, 8, 0.5);
    for (uint64_t i = 0; i < LISTS; i++) tiny.starts[i] = at, at += i % 100 ? 3 : 300;
    tiny.starts[LISTS] = at;
    tiny.stream.tokens = at;
    config.examples_positives = 0;
    config.examples_shuffle = 1;
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    struct example_sizes capacity = examples_capacity(&examples, BATCH, 1);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t first = 0; first + BATCH <= LISTS; first += BATCH) {
            cpu_blocks_clear(&blocks);
            assert_int_equal(0, cpu_build(&examples.source, &piece, &blocks, epoch, first, BATCH, 0));
            if (blocks.contexts > most) most = blocks.contexts;
        }
    print_message("the largest of %d batches has %llu contexts of %llu\n", LISTS / BATCH * EPOCHS,
                  (unsigned long long)most, (unsigned long long)capacity.contexts);
    assert_true(most <= capacity.contexts && most > capacity.contexts / 4);
    cpu_blocks_release(&blocks);
    cpu_piece_release(&piece);
    examples_release(&examples);
    tiny_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_batch_of_windows_has_capacity),
        cmocka_unit_test(the_largest_batch_of_walks_has_capacity),
        cmocka_unit_test(the_largest_batch_of_lists_has_capacity),
        cmocka_unit_test(no_batch_of_a_long_run_is_larger_than_its_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
