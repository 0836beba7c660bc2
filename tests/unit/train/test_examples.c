#include "tests/testing.h"

#include "kernels/cpu/cpu.h"
#include "train/examples.h"
#include "base/report.h"
#include "tests/unit/plausible.h"
#include "tests/unit/tiny_corpus.h"

static uint64_t bits_of(uint32_t purpose, uint64_t i) {
    return draw_pair(draw_at(1, purpose, i / 2, 0, 0), i & 1);
}

/* ---- subsampling ---- */

static void test_keep_rule(void **state) {
    const uint64_t total = 17000000;
    const double t = 1e-4;
    for (uint64_t count = 1; count < total; count = count * 3 + 1) {
        double f = (double)count / (double)total, chance = fmin(1, sqrt(t / f) + t / f);
        double kept = (examples_keep(count, total, t) + 1.0) / 4294967296.0;
        assert_true(fabs(kept - chance) <= 1e-9);
    }
    assert_int_equal(UINT32_MAX, examples_keep(1000, total, t)); /* a word rarer than t is always kept */
    assert_int_equal(UINT32_MAX, examples_keep(0, total, t));
    assert_int_equal(UINT32_MAX, examples_keep(total, total, 0));
    /* word2vec.c's formula, for "the" in a corpus: (sqrt(cn / (sample x words)) + 1) x (sample x words) / cn */
    double sample = t * (double)total, reference = (sqrt(1000000 / sample) + 1) * sample / 1000000;
    assert_float_equal(reference, (examples_keep(1000000, total, t) + 1.0) / 4294967296.0, 1e-6);
}

static void test_keep_draws(void **state) {
    uint32_t threshold = examples_keep(50000, 1000000, 1e-3);
    uint64_t seen[2] = {0}, n = 1000000;
    double kept = sqrt(1e-3 / 0.05) + 1e-3 / 0.05, share[2] = {1 - kept, kept};
    for (uint64_t i = 0; i < n; i++) seen[draw_word(1, DRAW_SUBSAMPLE, i, 3) <= threshold]++;
    assert_true(plausible(seen, share, 2, n));
    share[0] += 0.003, share[1] -= 0.003; /* shows that the test can fail */
    assert_false(plausible(seen, share, 2, n));
}

/* ---- negatives ---- */

enum { V = 1000 };

static void zipf_shares(double *share, double power) {
    double sum = 0;
    for (int i = 0; i < V; i++) sum += share[i] = pow(floor(1e6 / (i + 1)), power);
    for (int i = 0; i < V; i++) share[i] /= sum;
}

/* Adds up the columns of an alias table. The sums must be the probabilities from which it was made. */
static void unfold(const struct alias *table, uint64_t rows, double *share) {
    for (uint64_t i = 0; i < rows; i++) share[i] = 0;
    for (uint64_t i = 0; i < rows; i++) {
        double stays = (table[i].threshold + 1.0) / 4294967296.0;
        assert_true(table[i].other < rows || stays == 1);
        share[i] += stays / (double)rows;
        if (stays < 1) share[table[i].other] += (1 - stays) / (double)rows;
    }
}

static void test_alias_is_exact(void **state) {
    double share[V], held[V];
    struct alias table[V];
    for (int power = -1; power <= 2; power++) {
        zipf_shares(share, power * 0.75);
        assert_int_equal(0, examples_alias(table, share, V));
        unfold(table, V, held);
        for (int i = 0; i < V; i++) assert_true(fabs(held[i] - share[i]) < 1e-9);
    }
}

static void test_alias_draws(void **state) {
    double share[V], other[V];
    struct alias table[V];
    uint64_t seen[V] = {0}, n = 2000000;
    zipf_shares(share, 0.75);
    assert_int_equal(0, examples_alias(table, share, V));
    for (uint64_t i = 0; i < n; i++) seen[draw_alias(bits_of(DRAW_NEGATIVE, i), table, V)]++;
    assert_true(plausible(seen, share, V, n));
    zipf_shares(other, 0.76);
    assert_false(plausible(seen, other, V, n));
}

static void test_alias_edges(void **state) {
    struct alias table[5];
    double held[5], one[1] = {3}, equal[5] = {2, 2, 2, 2, 2}, spike[5] = {0, 0, 1e-300, 0, 0}, bad[2] = {0, 0};
    assert_int_equal(0, examples_alias(table, one, 1));
    assert_int_equal(0, draw_alias(UINT64_MAX, table, 1));
    assert_int_equal(0, examples_alias(table, equal, 5));
    unfold(table, 5, held);
    for (int i = 0; i < 5; i++) assert_float_equal(0.2, held[i], 1e-12);
    assert_int_equal(0, examples_alias(table, spike, 5));
    unfold(table, 5, held);
    assert_true(held[2] > 1 - 1e-8);
    assert_int_equal(-1, examples_alias(table, bad, 2));
    assert_non_null(strstr(report_sentence(), "no positive"));
    bad[0] = INFINITY;
    report_clear();
    assert_int_equal(-1, examples_alias(table, bad, 2));
    report_clear();
}

static void test_uniform_draws(void **state) {
    uint64_t seen[V] = {0}, n = 1000000;
    double share[V];
    for (int i = 0; i < V; i++) share[i] = 1.0 / V;
    for (uint64_t i = 0; i < n; i++) seen[draw_below(bits_of(DRAW_NEGATIVE, i), V)]++;
    assert_true(plausible(seen, share, V, n));
}

static void test_log_uniform_draws(void **state) {
    uint64_t seen[V] = {0}, n = 2000000;
    double share[V] = {0}, sum = 0;
    for (int k = 1; k < V; k++) sum += share[k] = log(1 + 1.0 / k) / log(V);
    assert_float_equal(1, sum, 1e-12);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = draw_log_uniform(bits_of(DRAW_NEGATIVE, i), V, log2(V));
        assert_true(k >= 1 && k < V);
        seen[k]++;
    }
    assert_true(plausible(seen, share, V, n));
    assert_int_equal(1, draw_log_uniform(0, V, log2(V)));
    assert_int_equal(V - 1, draw_log_uniform(UINT64_MAX, V, log2(V)));
}

/* ---- windows, shuffles, held-out ---- */

static void test_window_draws(void **state) {
    static const uint32_t windows[] = {1, 2, 5, 10, 40};
    for (int w = 0; w < 5; w++) {
        uint64_t seen[41] = {0}, n = 200000;
        double share[41] = {0};
        for (uint32_t i = 1; i <= windows[w]; i++) share[i] = 1.0 / windows[w];
        for (uint64_t i = 0; i < n; i++) seen[draw_window(draw_word(1, DRAW_WINDOW, i, 2), windows[w])]++;
        assert_true(plausible(seen, share, 41, n));
    }
}

static void check_permutation(uint64_t n, uint32_t epoch) {
    struct shuffle shuffle = shuffle_make(n, draw_at(1, DRAW_SHUFFLE, 0, epoch, 0));
    uint8_t *seen = calloc(n, 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = shuffle_at(&shuffle, i);
        assert_true(at < n && !seen[at]);
        seen[at] = 1;
    }
    free(seen);
}

static void test_shuffle_is_a_permutation(void **state) {
    static const uint64_t large[] = {4095, 4096, 4097, 65537, 100003, 1 << 20, (1 << 20) + 1};
    for (uint64_t n = 1; n <= 300; n++)
        for (uint32_t epoch = 0; epoch < 3; epoch++) check_permutation(n, epoch);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_permutation(large[i], 5);
    struct shuffle huge = shuffle_make((uint64_t)1 << 40, draw_at(1, DRAW_SHUFFLE, 0, 0, 0));
    for (uint64_t i = 0; i < 1000; i++) assert_true(shuffle_at(&huge, i << 30) < (uint64_t)1 << 40);
}

/* Numbers from n on must be returned at once: for some of them, a search for a place below n would never end. */
static void test_what_is_not_shuffled_stays(void **state) {
    for (uint64_t n = 0; n <= 40; n++)
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            struct shuffle shuffle = shuffle_make(n, draw_at(1, DRAW_SHUFFLE, 0, epoch, 0));
            for (uint64_t i = n; i < 300; i++) assert_int_equal(i, shuffle_at(&shuffle, i));
            assert_true(shuffle_at(&shuffle, UINT64_MAX) == UINT64_MAX);
        }
}

/* Over many epochs an item must be at each place equally often, and so must each item that follows it. */
static void test_shuffle_is_uniform(void **state) {
    static const uint64_t sizes[] = {2, 3, 4, 7, 10, 16, 20, 50, 64, 257};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t n = sizes[k], epochs = 20000 + 100 * n, *place = calloc(n, 8), *step = calloc(n, 8);
        double *share = calloc(n, sizeof *share), *after = calloc(n, sizeof *after);
        for (uint64_t i = 0; i < n; i++) share[i] = 1.0 / (double)n, after[i] = i ? 1.0 / (double)(n - 1) : 0;
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            struct shuffle shuffle = shuffle_make(n, draw_at(1, DRAW_SHUFFLE, 0, epoch, 0));
            uint64_t a = shuffle_at(&shuffle, n / 2), b = shuffle_at(&shuffle, (n / 2 + 1) % n);
            place[a]++;
            step[(b + n - a) % n]++;
        }
        assert_true(plausible(place, share, n, epochs));
        if (n > 2) assert_true(plausible(step, after, n, epochs));
        free(place), free(step), free(share), free(after);
    }
}

static void test_epochs_differ(void **state) {
    struct shuffle a = shuffle_make(1000, draw_at(1, DRAW_SHUFFLE, 0, 0, 0)),
                   b = shuffle_make(1000, draw_at(1, DRAW_SHUFFLE, 0, 1, 0));
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) same += shuffle_at(&a, i) == shuffle_at(&b, i);
    assert_true(same < 12); /* one is expected by chance */
}

/* Marks the words of all blocks of an epoch, by example number, as held out or trained. */
static void mark_examples(const struct example_source *source, uint32_t epoch, int held_out, uint64_t *count) {
    struct cpu_piece piece = {0};
    struct cpu_blocks blocks = {0};
    assert_int_equal(0, cpu_build(source, &piece, &blocks, epoch, 0, example_count(source), held_out));
    *count = blocks.count;
    for (uint64_t i = 0; i < blocks.count; i++) assert_true(blocks.target[blocks.block[i].targets] < source->rows);
    cpu_blocks_release(&blocks);
    cpu_piece_release(&piece);
}

static void test_held_out_is_stable(void **state) {
    struct tiny tiny;
    struct examples examples;
    struct config config = tiny_config(EXAMPLE_LIST);
    uint64_t in[3], out[3];
    config.train_held_out = 0.1;
    config.examples_shuffle = 1;
    tiny_make(&tiny, 500, 4000, 12, 1);
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        mark_examples(&examples.source, epoch, 0, &in[epoch]);
        mark_examples(&examples.source, epoch, 1, &out[epoch]);
        assert_int_equal(4000, in[epoch] + out[epoch]);
        assert_int_equal(out[0], out[epoch]);
    }
    assert_true(out[0] > 400 - 5 * 19 && out[0] < 400 + 5 * 19);
    examples_release(&examples);
    tiny_free(&tiny);
}

/* ---- from a configuration ---- */

static void test_source_from_keys(void **state) {
    struct tiny tiny;
    struct examples examples;
    struct config config = tiny_config(EXAMPLE_WINDOW);
    config.examples_subsample = 1e-2;
    config.train_held_out = 0.25;
    tiny_make(&tiny, 300, 100, 20, 1);
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    const struct example_source *source = &examples.source;
    assert_int_equal(EXAMPLE_WINDOW, source->mode);
    assert_int_equal(300, source->rows);
    assert_int_equal(tiny.stream.tokens, source->tokens);
    assert_int_equal(1u << 30, source->held_out);
    assert_int_equal(1, source->per_pair);
    assert_ptr_equal(examples.keep, source->keep);
    assert_int_equal(examples_keep(tiny.vocab.counts[0], tiny.vocab.kept, 1e-2), source->keep[0]);
    assert_non_null(source->alias);
    double held[300], sum = 0;
    unfold(source->alias, 300, held);
    for (int i = 0; i < 300; i++) sum += pow((double)tiny.vocab.counts[i], 0.75) * (tiny.vocab.counts[i] > 0);
    for (int i = 0; i < 300; i++) assert_float_equal(pow((double)tiny.vocab.counts[i], 0.75) / sum, held[i], 1e-9);
    examples_release(&examples);
    examples_release(&examples);

    config.negatives_law = NOISE_LOG_UNIFORM;
    config.examples_subsample = 0;
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    assert_null(examples.source.alias);
    assert_null(examples.source.keep);
    assert_true(examples.source.log2_rows == log2(300));
    examples_release(&examples);
    tiny_free(&tiny);
}

static struct tiny refused;
static void refuse(struct config config, const char *part) {
    struct examples examples;
    report_clear();
    assert_int_equal(-1, examples_init(&examples, &config, &refused.vocab, &refused.stream));
    if (!strstr(report_sentence(), part)) print_message("'%s' is not in: %s\n", part, report_sentence());
    assert_non_null(strstr(report_sentence(), part));
    examples_release(&examples);
    report_clear();
}
static void accept(struct config config) {
    struct examples examples;
    int result = examples_init(&examples, &config, &refused.vocab, &refused.stream);
    if (result) print_message("refused: %s\n", report_sentence());
    assert_int_equal(0, result);
    examples_release(&examples);
}

static void test_refuses_corpora(void **state) {
    tiny_make(&refused, 1, 10, 6, 1);
    refuse(tiny_config(EXAMPLE_WINDOW), "vocabulary has 1 word");
    tiny_free(&refused);
    tiny_make(&refused, 50, 10, 1, 1);
    refuse(tiny_config(EXAMPLE_WINDOW), "no sentence of the corpus holds two words");
    refuse(tiny_config(EXAMPLE_LIST), "no list of the corpus holds two words");
    tiny_free(&refused);
    tiny_make(&refused, 50, 10, 3, 1);
    struct config config = tiny_config(EXAMPLE_ADJACENCY);
    config.examples_positives = 5;
    refuse(config, "examples.positives = 5 needs a line of 6 words");
    config.examples_short = SHORT_REPEAT;
    accept(config);
    tiny_free(&refused);
    refused.stream = (struct idstream){0};
    refused.vocab = (struct vocab){.size = 2};
    refuse(tiny_config(EXAMPLE_WINDOW), "no sentence");
}

static void test_refuses_laws(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    tiny_make(&refused, 20, 10, 30, 0.1);
    config.negatives_per = PER_EXAMPLE;
    config.negatives_distinct = 1;
    config.negatives_count = 20;
    config.negatives_law = NOISE_UNIFORM;
    refuse(config, "negatives.distinct asks for 20 different rows, and only 19 can be drawn beside an example's own;");
    config.negatives_count = 19;
    accept(config);
    config.negatives_law = NOISE_LOG_UNIFORM;
    refuse(config, "only 18");
    config.negatives_exclude = 0;
    accept(config);

    refused.vocab.lists = 1; /* negatives that a batch shares are drawn for no example, so that one example's own rows cannot be left out of them */
    for (int law = NOISE_UNIFORM; law <= NOISE_LOG_UNIFORM; law++)
        for (config.negatives_exclude = 0; config.negatives_exclude < 2; config.negatives_exclude++) {
            config.examples_mode = MODE_USER, config.examples_targets = TARGETS_ALL, config.examples_positives = 1;
            config.negatives_per = PER_BATCH, config.negatives_law = law;
            config.negatives_count = law == NOISE_UNIFORM ? 20 : 19;
            refuse(config, law == NOISE_UNIFORM ? "asks for 20 different rows, and only 19 can be drawn;"
                                                : "asks for 19 different rows, and only 18 can be drawn;");
            config.negatives_count--;
            accept(config);
        }
    refused.vocab.lists = 0;

    config = tiny_config(EXAMPLE_WINDOW);
    config.examples_window = 4096;
    config.negatives_count = 256;
    accept(config);
    config.negatives_count = 257;
    refuse(config, "negatives.per = pair");
    config.negatives_per = PER_EXAMPLE;
    accept(config);

    config = tiny_config(EXAMPLE_LIST);
    config.examples_positives = 19;
    config.negatives_law = NOISE_UNIFORM;
    refuse(config, "negatives.exclude leaves nothing");
    config.negatives_count = 0;
    accept(config);

    config = tiny_config(EXAMPLE_WINDOW);
    memset(refused.vocab.counts, 0, 20 * sizeof *refused.vocab.counts);
    refuse(config, "negatives.");
    config.negatives_exclude = 0;
    refuse(config, "negatives.");
    config.negatives_law = NOISE_UNIFORM;
    accept(config);
    tiny_free(&refused);

    tiny_make(&refused, 2, 10, 6, 0);
    config.negatives_law = NOISE_LOG_UNIFORM;
    refuse(config, "needs three rows");
    tiny_free(&refused);
}

/* The last batch of an epoch gets the same bound as the other batches, even if it is shorter. */
static void a_short_batch_is_bounded_as_a_whole_one_is(void **state) {
    struct example_source source = {.mode = EXAMPLE_WINDOW, .window = 5, .negatives = 5};
    struct example_sizes most;
    uint64_t largest = EXAMPLE_MOST_PADDED / 60; /* an example has at most ten targets and six contexts */
    assert_int_equal(example_bound(&source, largest, &most), 1);
    assert_int_equal(most.terms, 60 * largest);
    assert_int_equal(example_bound(&source, largest + 1, &most), 0);
    source.batch = largest;
    assert_int_equal(example_bound(&source, 100, &most), 1);
    assert_int_equal(most.terms, 6000);
    source.batch = largest + 1;
    assert_int_equal(example_bound(&source, 100, &most), 0);
}

/* ---- bounds, against what is built ---- */

static void compare_with_built(struct config config, struct tiny *tiny) {
    struct examples examples;
    struct cpu_piece piece = {0};
    struct cpu_blocks blocks = {0};
    struct example_sizes most;
    assert_int_equal(0, examples_init(&examples, &config, &tiny->vocab, &tiny->stream));
    uint64_t count = example_count(&examples.source);
    int bounded = example_bound(&examples.source, count, &most);
    assert_int_equal(0, cpu_build(&examples.source, &piece, &blocks, 0, 0, count, 0));
    assert_int_equal(bounded, examples.source.positives > 0 && !examples.source.pool.on);
    if (bounded) {
        assert_true(blocks.count <= most.blocks && blocks.targets <= most.targets);
        assert_true(blocks.contexts <= most.contexts && blocks.logits <= most.terms);
    }
    cpu_blocks_release(&blocks);
    cpu_piece_release(&piece);
    examples_release(&examples);
}

/* Makes each sentence a document: its first id becomes the number of the document's row. */
static void make_documents(struct tiny *tiny) {
    struct vocab *vocab = &tiny->vocab;
    uint64_t words = vocab->size, documents = tiny->stream.sentences;
    uint32_t *counts = calloc(words + documents, sizeof *counts);
    memcpy(counts, vocab->counts, words * sizeof *counts);
    free(vocab->counts);
    vocab->counts = counts;
    vocab->size += documents;
    vocab->lists = documents;
    for (uint64_t i = 0; i < documents; i++) tiny->ids[tiny->starts[i]] = (uint32_t)(words + i);
}

/* A block has the document's row, then the kept words of its window; nothing else. */
static void test_documents_are_targets(void **state) {
    struct tiny tiny;
    struct examples examples;
    struct cpu_piece piece = {0};
    struct cpu_blocks blocks = {0};
    struct config config = tiny_config(MODE_CBOW);
    tiny_make(&tiny, 200, 40, 12, 1);
    make_documents(&tiny);
    config.corpus_format = FORMAT_DOCUMENTS;
    config.negatives_per = PER_EXAMPLE;
    config.examples_shrink = 0;
    config.examples_window = 3;
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    const struct example_source *s = &examples.source;
    assert_int_equal(0, cpu_build(s, &piece, &blocks, 0, 0, example_count(s), 0));
    for (uint64_t i = 0; i < blocks.count; i++) {
        const struct cpu_block *block = &blocks.block[i];
        const uint32_t *targets = blocks.target + block->targets;
        uint64_t at = block->example, number = example_sentence_of(s, at), first = s->starts[number] + 1, end = s->starts[number + 1];
        uint64_t from = at < first + 3 ? first : at - 3, to = at + 4 > end ? end : at + 4, t = 1;
        assert_int_equal(targets[0], tiny.ids[first - 1]);
        for (uint64_t j = from; j < to; j++)
            if (j != at) assert_int_equal(targets[t++], tiny.ids[j]);
        assert_int_equal(block->t, t);
        assert_int_equal(blocks.context[block->contexts], tiny.ids[at]);
    }
    assert_int_equal(blocks.count, tiny.stream.tokens - tiny.stream.sentences);
    cpu_blocks_release(&blocks);
    cpu_piece_release(&piece);
    examples_release(&examples);
    tiny_free(&tiny);
}

static void no_examples_of_lists_exceed_their_bound(void **state) {
    struct tiny tiny;
    tiny_make(&tiny, 2000, 3000, 6, 0.5); /* lists of 4 to 8 items, of which some are too short for an example */
    for (int mode = EXAMPLE_LIST; mode <= EXAMPLE_ADJACENCY; mode++) {
        struct config config = tiny_config(mode);
        config.examples_positives = 5;
        compare_with_built(config, &tiny);
        config.negatives_per = PER_PAIR;
        config.examples_short = SHORT_REPEAT;
        compare_with_built(config, &tiny);
        config.examples_targets = TARGETS_ALL;
        config.examples_positives = 0;
        compare_with_built(config, &tiny);
        for (int i = 0; i < 8; i++) {
            config.examples_own = i % 2 ? 0.5 : 0;
            config.examples_positives = i / 2 % 2 ? 4 : 0;
            config.examples_pooled = i / 4 ? 2 : 0;
            compare_with_built(config, &tiny);
        }
    }
    tiny_free(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep_rule),
        cmocka_unit_test(test_keep_draws),
        cmocka_unit_test(test_alias_is_exact),
        cmocka_unit_test(test_alias_draws),
        cmocka_unit_test(test_alias_edges),
        cmocka_unit_test(test_uniform_draws),
        cmocka_unit_test(test_log_uniform_draws),
        cmocka_unit_test(test_window_draws),
        cmocka_unit_test(test_shuffle_is_a_permutation),
        cmocka_unit_test(test_what_is_not_shuffled_stays),
        cmocka_unit_test(test_shuffle_is_uniform),
        cmocka_unit_test(test_epochs_differ),
        cmocka_unit_test(test_held_out_is_stable),
        cmocka_unit_test(test_source_from_keys),
        cmocka_unit_test(test_refuses_corpora),
        cmocka_unit_test(test_refuses_laws),
        cmocka_unit_test(a_short_batch_is_bounded_as_a_whole_one_is),
        cmocka_unit_test(test_documents_are_targets),
        cmocka_unit_test(no_examples_of_lists_exceed_their_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
