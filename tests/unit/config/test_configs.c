/* The peculiar options of the notebooks' configs, checked in the examples that each config makes from a corpus. */
#include "tests/testing.h"

#include "kernels/cpu/cpu.h"
#include "config/config.h"
#include "base/report.h"
#include "tests/unit/tiny_corpus.h"

enum { ROWS = 5000, LINES = 3000, POSITIVES = 4 };

/* One epoch of a config's examples. The corpus has lines of 3 to 7 ids, and no id occurs twice in a line. */
struct built {
    struct tiny tiny;
    struct config config;
    struct examples examples;
    struct cpu_blocks blocks;
};

static void build(struct built *b, const char *path) {
    struct cpu_piece piece = {0};
    *b = (struct built){.config = {.name = NULL}};
    tiny_make(&b->tiny, ROWS, LINES, 5, 1);
    b->tiny.starts[0] = 0;
    for (uint64_t line = 0, at = 0; line < LINES; line++, b->tiny.starts[line] = at)
        for (uint64_t i = 0; i < 3 + line % 5; i++, at++) b->tiny.ids[at] = (uint32_t)((line * 7 + i * 613) % ROWS);
    b->tiny.stream.tokens = b->tiny.starts[LINES];
    if (config_init(&b->config) || config_read(&b->config, path) || config_resolve(&b->config) ||
        examples_init(&b->examples, &b->config, &b->tiny.vocab, &b->tiny.stream) ||
        cpu_build(&b->examples.source, &piece, &b->blocks, 0, 0, example_count(&b->examples.source), 0))
        fail_msg("%s: %s", path, report_sentence());
    assert_int_equal(example_count(&b->examples.source), LINES);
    cpu_piece_release(&piece);
}

static void release(struct built *b) {
    cpu_blocks_release(&b->blocks);
    examples_release(&b->examples);
    config_release(&b->config);
    tiny_free(&b->tiny);
}

static int64_t place_in(const struct built *b, uint64_t line, uint32_t id) {
    for (uint64_t at = b->tiny.starts[line]; at < b->tiny.starts[line + 1]; at++)
        if (b->tiny.ids[at] == id) return (int64_t)(at - b->tiny.starts[line]);
    return -1;
}

static int stands_before(const uint32_t *ids, uint64_t at) {
    for (uint64_t i = 0; i < at; i++)
        if (ids[i] == ids[at]) return 1;
    return 0;
}

/* Numbers that are counted in the blocks. */
struct counted {
    uint64_t blocks, positives_again, negatives_again, own, zero, targets_at[8], low;
};

static void count_block(const struct built *b, const struct cpu_block *block, uint64_t line, uint64_t negatives,
                        struct counted *sum) {
    const uint32_t *contexts = b->blocks.context + block->contexts;
    uint32_t target = b->blocks.target[block->targets];
    int64_t place = place_in(b, line, target);
    assert_int_equal(block->t, 1);
    assert_int_equal(block->positives, POSITIVES);
    assert_int_equal(block->c, POSITIVES + negatives);
    assert_true(place >= 0);
    sum->targets_at[place]++;
    for (uint64_t i = 0; i < block->c; i++) {
        int own = contexts[i] == target;
        if (i < POSITIVES) {
            assert_true(place_in(b, line, contexts[i]) >= 0 && !own);
            sum->positives_again += (uint64_t)stands_before(contexts, i);
            continue;
        }
        for (uint64_t p = 0; p < POSITIVES; p++) own |= contexts[i] == contexts[p];
        sum->own += (uint64_t)own;
        sum->negatives_again += (uint64_t)stands_before(contexts + POSITIVES, i - POSITIVES);
        sum->zero += contexts[i] == 0;
        sum->low += contexts[i] < 71; /* half of the log-uniform draws are below 71 of 5,000 ids, since ln 71 / ln 5000 = 0.5 */
    }
    sum->blocks++;
}

/* Counts over all lines. in_order: 1 if the config does not shuffle lines. Lines of fewer than `shortest` ids must not occur. */
static struct counted count(const struct built *b, uint64_t negatives, uint64_t shortest, int in_order) {
    struct counted sum = {0};
    struct shuffle order = shuffle_make(LINES, draw_at(b->examples.source.seed, DRAW_SHUFFLE, 0, 0, 0));
    for (uint64_t e = 0; e < LINES; e++) {
        uint64_t line = in_order ? e : shuffle_at(&order, e);
        if (b->tiny.starts[line + 1] - b->tiny.starts[line] < shortest) continue;
        assert_true(sum.blocks < b->blocks.count);
        count_block(b, &b->blocks.block[sum.blocks], line, negatives, &sum);
    }
    assert_int_equal(sum.blocks, b->blocks.count);
    return sum;
}

static void lit2vec(void **state) {
    static const char *const paths[] = {"configs/lit2vec.ini", "configs/lit2vec-496-adamax.ini"};
    for (int i = 0; i < 2; i++) {
        struct built b;
        build(&b, paths[i]);
        struct counted sum = count(&b, 128, 2, 1);
        assert_int_equal(sum.blocks, LINES);
        assert_int_equal(sum.own + sum.negatives_again + sum.zero, 0);
        assert_true(sum.positives_again > LINES / 4); /* positives are drawn with replacement from the line's 2 to 6 other ids */
        assert_true(sum.low > LINES * 128 / 4);       /* small ids are drawn far more often */
        for (int at = 0; at < 3; at++) assert_true(sum.targets_at[at] > LINES / 8); /* the target is any book of a list with equal chances */
        assert_int_equal(b.config.train_reduction, REDUCTION_MEAN);
        assert_int_equal(b.config.optimizer_schedule, SCHEDULE_CONSTANT);
        release(&b);
    }
}

static void research2vec(void **state) {
    static const char *const paths[] = {"configs/research2vec.ini", "configs/research2vec-tuned.ini"};
    for (int i = 0; i < 2; i++) {
        struct built b;
        build(&b, paths[i]);
        struct counted sum = count(&b, 132, POSITIVES + 1, 0);
        assert_int_equal(sum.blocks, LINES / 5 * 3); /* only the lines of 5, 6 and 7 ids */
        assert_int_equal(sum.positives_again, 0);
        assert_true(sum.own > 0 && sum.negatives_again > 0 && sum.zero > 0); /* negatives are drawn uniformly, so they may be rows of the example,
                                                                              * occur twice, or be row 0 */
        assert_int_equal(sum.targets_at[0], sum.blocks);
        assert_int_equal(b.config.train_reduction, i ? REDUCTION_SUM : REDUCTION_MEAN);
        assert_int_equal(b.config.train_update, UPDATE_BATCH);
        release(&b);
    }
}

static void papers_of_computer_science(void **state) {
    struct built b;
    build(&b, "configs/papers-cs.ini");
    struct counted sum = count(&b, 256, 2, 0);
    assert_int_equal(sum.blocks, LINES);
    assert_true(sum.positives_again > 0); /* positives repeat only in lines with fewer than four other ids */
    assert_true(sum.own > 0 && sum.negatives_again > 0 && sum.zero > 0);
    for (uint64_t i = 0; i < b.blocks.count; i++) {
        const uint32_t *contexts = b.blocks.context + b.blocks.block[i].contexts;
        uint32_t target = b.blocks.target[b.blocks.block[i].targets];
        uint64_t again = 0, line = 0;
        while (b.tiny.ids[b.tiny.starts[line]] != target) line++; /* finds the line by its first id, which no other line has */
        for (uint64_t p = 1; p < POSITIVES; p++) again += (uint64_t)stands_before(contexts, p);
        if (again) assert_true((line % 5) < 2);
    }
    release(&b);
}

static void word2vec_notebook(void **state) {
    struct built b;
    build(&b, "configs/word2vec-notebook.ini");
    struct counted sum = count(&b, 64, POSITIVES + 1, 1);
    assert_int_equal(sum.blocks, LINES / 5 * 3);
    assert_int_equal(sum.positives_again, 0);
    assert_int_equal(sum.targets_at[0], sum.blocks);
    release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lit2vec),
        cmocka_unit_test(research2vec),
        cmocka_unit_test(papers_of_computer_science),
        cmocka_unit_test(word2vec_notebook),
    };
    return cmocka_run_group_tests_name("configs", tests, NULL, NULL);
}
