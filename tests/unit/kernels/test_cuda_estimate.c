/* The CUDA backend's estimate, as far as a machine without a GPU can check it. tests/gpu/estimate.c compares it with the
 * bytes that the GPU holds. */
#include "tests/testing.h"

#include "kernels/cuda/arrays.h"

enum { CONTEXTS = 16, ROWS = 1 << 18 };

/* Returns the GPU memory for `depth` batches in flight, each with this number of contexts, over tables of this number of rows. */
static uint64_t work_in_flight(uint64_t contexts, uint64_t rows, unsigned depth) {
    const struct rule_options rule = {.rule = RULE_SGD};
    const struct table_spec target = {.name = "target",
                                      .rows = rows,
                                      .layout = record_layout_make(&rule, 4),
                                      .weights = PLACE_GPU,
                                      .state = PLACE_GPU};
    const struct example_source source = {
        .mode = EXAMPLE_LIST, .positives = 1, .negatives = CONTEXTS - 1, .rows = rows, .batch = contexts / CONTEXTS};
    const struct estimate_request request = {
        .target = target, .context = target, .source = &source, .depth = depth, .threads = 1, .rule = &rule};
    struct estimate estimate;
    cuda_estimate(&request, &estimate);
    return estimate.work.gpu;
}
/* Returns the memory that the n-th batch in flight adds: its stage, and perhaps a builder. */
static uint64_t taken_by(uint64_t contexts, unsigned n) {
    return work_in_flight(contexts, ROWS, n) - work_in_flight(contexts, ROWS, n - 1);
}

static void small_batches_have_a_builder_each_and_large_ones_two(void **state) {
    uint64_t small = SMALL_BATCH, large = SMALL_BATCH + CONTEXTS;
    for (unsigned n = 3; n <= BACKEND_STAGES; n++) {
        assert_int_equal(taken_by(small, n), taken_by(small, 2));
        assert_int_equal(taken_by(large, n), taken_by(large, 3));
    }
    assert_in_range(taken_by(large, 2) - taken_by(large, 3), sort_bytes(large), 3 * sort_bytes(large));
}

/* Returns the scratch memory for lists of this number of items. Half of the items are positives, and the other half are pooled
 * to one vector. */
static uint64_t scratch_of(uint64_t items) {
    const struct example_source source = {
        .mode = EXAMPLE_ADJACENCY, .pool = {.on = 1, .own = 0.5f}, .negatives = 100, .short_repeat = 1, .longest = 1 + items};
    return hogwild_scratch(&source).words;
}

static void a_pool_meets_contexts_as_one_vector(void **state) {
    assert_in_range(scratch_of(20000), scratch_of(10000), 2 * scratch_of(10000));
}

/* Examples over words with up to 30 rows each (n-grams), in windows of 5 words on each side. */
static struct example_source shared_source(int by_window) {
    static const uint64_t starts[1];
    const struct example_subwords subwords = {starts, NULL, 1000, 9000, 30, by_window};
    return (struct example_source){.mode = EXAMPLE_WINDOW,
                                   .window = 5,
                                   .negatives = 7,
                                   .rows = 5000,
                                   .target_only = 4000,
                                   .pool = {.on = 1},
                                   .subwords = subwords};
}

/* A word's path in the tree has up to 20 nodes. */
static void paths_in_a_tree_lie_on_the_gpu_and_need_few_warps(void **state) {
    static const uint64_t starts[2 * 1000 + 1];
    const struct rule_options rule = {.rule = RULE_SGD};
    const struct table_spec table = {.name = "target", .rows = 50000, .layout = record_layout_make(&rule, 4)};
    struct example_source source = shared_source(0);
    const struct estimate_request request = {
        .target = table, .context = table, .source = &source, .depth = 1, .threads = 1, .rule = &rule, .hogwild = 1};
    struct estimate with, without;
    source.per_pair = 0, source.negatives = 0, source.subwords.words = 50000;
    cuda_estimate(&request, &without);
    assert_true(hogwild_wanted_warps(&source) > HOGWILD_TREE_WARPS);
    source.paths = (struct example_paths){.starts = starts, .words = 1000, .listed = 12000, .most = 20};
    cuda_estimate(&request, &with);
    assert_int_equal(with.source.gpu - without.source.gpu, 2001 * sizeof(uint64_t) + 12000 * sizeof(uint32_t));
    assert_int_equal(hogwild_wanted_warps(&source), HOGWILD_TREE_WARPS);
    assert_int_equal(hogwild_scratch(&source).contexts, 10 * 20 + 10);
    source.subwords.by_window = 1;
    assert_int_equal(hogwild_scratch(&source).contexts, 20);
}

static void the_rows_of_words_lie_on_the_gpu(void **state) {
    const struct rule_options rule = {.rule = RULE_SGD};
    const struct table_spec table = {.name = "target", .rows = 5000, .layout = record_layout_make(&rule, 4)};
    struct example_source source = shared_source(0);
    const struct estimate_request request = {
        .target = table, .context = table, .source = &source, .depth = 1, .threads = 1, .rule = &rule, .hogwild = 1};
    struct estimate with, without;
    cuda_estimate(&request, &with);
    source.subwords = (struct example_subwords){.starts = NULL};
    cuda_estimate(&request, &without);
    assert_int_equal(with.source.gpu - without.source.gpu, 1001 * sizeof(uint64_t) + 9000 * sizeof(uint32_t));
}

/* A window makes one block. Its targets are the rows of one word, or of all words around it. */
static void a_block_has_space_for_all_rows_of_its_words(void **state) {
    for (int variant = 0; variant < 4; variant++) {
        struct example_source source = shared_source(variant & 1);
        source.per_pair = variant >> 1;
        struct hogwild_scratch scratch = hogwild_scratch(&source);
        uint64_t positives = source.subwords.by_window ? 1 : 10, negatives = source.per_pair ? 70 : 7;
        assert_int_equal(scratch.targets, source.subwords.by_window ? 300 : 30);
        assert_int_equal(scratch.window_targets, scratch.targets);
        uint64_t waiting = source.subwords.by_window ? 0 : 10; /* number of words of the window that wait until the contexts they
                                                                * predict are listed */
        assert_int_equal(scratch.contexts, positives + negatives + waiting);
        assert_int_equal(scratch.vectors, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_batches_have_a_builder_each_and_large_ones_two),
        cmocka_unit_test(a_pool_meets_contexts_as_one_vector),
        cmocka_unit_test(the_rows_of_words_lie_on_the_gpu),
        cmocka_unit_test(paths_in_a_tree_lie_on_the_gpu_and_need_few_warps),
        cmocka_unit_test(a_block_has_space_for_all_rows_of_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
