/* Compares the expected number of distinct rows of a batch, for lists that have rows, with batches that are made. */
#include "tests/testing.h"

#include "base/report.h"
#include "kernels/cpu/cpu.h"
#include "train/expected_rows.h"
#include "tests/unit/tiny_corpus.h"

enum { ITEMS = 2000, LISTS = 4000, BATCH = 200, BATCHES = 4 };

static struct tiny tiny;

/* Adds rows of lists after the rows of items, as a vocabulary does. Rows of lists have no counts. */
static void give_lists_rows(void) {
    tiny.vocab.counts = realloc(tiny.vocab.counts, (ITEMS + LISTS) * sizeof *tiny.vocab.counts);
    memset(tiny.vocab.counts, 0, (ITEMS + LISTS) * sizeof *tiny.vocab.counts);
    for (uint64_t i = 0; i < LISTS; i++) {
        tiny.ids[tiny.starts[i]] = (uint32_t)(ITEMS + i);
        for (uint64_t at = tiny.starts[i] + 1; at < tiny.starts[i + 1]; at++) tiny.vocab.counts[tiny.ids[at]]++;
    }
    tiny.vocab.size = ITEMS + LISTS;
    tiny.vocab.lists = LISTS;
}

static double count_distinct(const uint32_t *ids, uint64_t count, double *below) {
    static unsigned char met[ITEMS + LISTS];
    double distinct = 0;
    memset(met, 0, sizeof met);
    for (uint64_t i = 0; i < count; i++) {
        distinct += !met[ids[i]];
        met[ids[i]] = 1;
        *below += ids[i] < ITEMS / 10;
    }
    return distinct;
}

static void close_to(const char *what, double said, double found) {
    print_message("%s %.1f of %.1f\n", what, said, found);
    assert_true(fabs(said - found) <= 0.05 * found);
}

static void compare_with_built(const struct config *config) {
    struct examples examples;
    struct expected_rows t;
    double blocks = 0, pairs = 0, targets = 0, distinct[2] = {0, 0}, below = 0, unused = 0;
    assert_int_equal(0, examples_init(&examples, config, &tiny.vocab, &tiny.stream));
    expected_rows_init(&t, config, &tiny.vocab, &examples);
    struct batch_rows batch = expected_rows_of_batch(&t, BATCH);
    for (uint64_t n = 0; n < BATCHES; n++) {
        struct cpu_piece piece = {0};
        struct cpu_blocks built = {0};
        assert_int_equal(0, cpu_build_shared(&examples.source, &built, 0, n * BATCH));
        assert_int_equal(0, cpu_build(&examples.source, &piece, &built, 0, n * BATCH, BATCH, 0));
        for (uint64_t i = 0; i < built.count; i++) pairs += (double)built.block[i].positives;
        blocks += (double)built.count - (config->negatives_per == PER_BATCH);
        targets += (double)built.targets;
        distinct[0] += count_distinct(built.target, built.targets, &below);
        distinct[1] += count_distinct(built.context, built.contexts, &unused);
        cpu_blocks_release(&built);
        cpu_piece_release(&piece);
    }
    close_to("blocks", batch.blocks, blocks / BATCHES);
    close_to("pairs", batch.pairs, pairs / BATCHES);
    close_to("targets", batch.targets, targets / BATCHES);
    close_to("distinct targets", batch.distinct_targets, distinct[0] / BATCHES);
    close_to("distinct contexts", batch.distinct_contexts, distinct[1] / BATCHES);
    close_to("per cent of targets among the first rows", 100 * expected_rows_below(&t, ITEMS / 10), 100 * below / targets);
    examples_release(&examples);
}

/* Tests three kinds of targets: only lists' rows; lists' rows and means of items; only means of items. */
static void lists_with_rows(void **state) {
    static const double own[] = {1, 0.5, 0};
    tiny_make(&tiny, ITEMS, LISTS, 30, 1);
    give_lists_rows();
    for (int i = 0; i < 12; i++) {
        struct config config = tiny_config(MODE_USER);
        config.negatives_law = NOISE_UNIFORM;
        config.examples_own = own[i % 3];
        config.examples_pooled = i % 3 && i / 3 % 2 ? 6 : 0;
        config.examples_positives = i / 6 ? 4 : 0;
        config.examples_shuffle = 1;
        compare_with_built(&config);
    }
    tiny_free(&tiny);
}

/* Tests lists in which each item makes an example. The example has negatives of its own, or shares the batch's negatives. */
static void items_as_examples(void **state) {
    tiny_make(&tiny, ITEMS, LISTS, 30, 1);
    give_lists_rows();
    for (int i = 0; i < 4; i++) {
        struct config config = tiny_config(MODE_USER);
        config.negatives_law = i / 2 ? NOISE_UNIGRAM : NOISE_UNIFORM;
        config.examples_targets = TARGETS_ALL;
        config.examples_positives = 1;
        config.examples_shuffle = 1;
        config.negatives_per = i % 2 ? PER_BATCH : PER_EXAMPLE;
        config.negatives_count = i % 2 ? 700 : 5;
        compare_with_built(&config);
    }
    tiny_free(&tiny);
}

/* The expected number counts all relations as equally frequent, which is true only on average. */
static void triples(void **state) {
    tiny_make(&tiny, ITEMS, LISTS, 30, 0.6);
    tiny_make_triples(&tiny, 40);
    for (int i = 0; i < 4; i++) {
        struct config config = tiny_config(MODE_TRIPLE);
        config.model_tied = i / 2;
        config.negatives_law = NOISE_UNIFORM;
        config.negatives_per = PER_BATCH;
        config.negatives_count = i % 2 ? 700 : COUNT_ALL;
        config.triples_reciprocal = 1;
        config.examples_positives = 1;
        config.examples_shuffle = 1;
        compare_with_built(&config);
    }
    tiny_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_with_rows), cmocka_unit_test(items_as_examples), cmocka_unit_test(triples)};
    return cmocka_run_group_tests_name("touches", tests, NULL, NULL);
}
