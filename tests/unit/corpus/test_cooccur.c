#include "tests/testing.h"

#include "base/file.h"
#include "base/report.h"
#include "corpus/cooccur.h"
#include "corpus/counts.h"
#include "kernels/draws.h"

#include "tests/unit/scratch.h"
#include "tests/unit/sentence.h"

#include <math.h>
#include <stdlib.h>

/* A text of sentences of different lengths, whose low ids are frequent. */
enum { WORDS = 700, TOKENS = 9000, SENTENCES = 60 }; /* enough words that the threads merge several rounds of blocks of rows */
static uint32_t ids[TOKENS];
static uint64_t starts[SENTENCES + 1];

static struct cooccur_text make_text(void) {
    for (uint64_t i = 0; i < TOKENS; i++) {
        double drawn = draw_unit(draw_word(1, 0, i, 0));
        ids[i] = (uint32_t)(WORDS * drawn * drawn);
    }
    for (uint64_t i = 1; i < SENTENCES; i++) starts[i] = i < 5 ? i : TOKENS / SENTENCES * i; /* some of one word, one of many */
    starts[SENTENCES] = TOKENS;
    return (struct cooccur_text){ids, starts, TOKENS, SENTENCES, WORDS};
}

/* Counts in the plainest way: counts[row][column]. */
static void count_plainly(const struct cooccur_text *text, uint32_t window, int one_sided, int flat, double counts[WORDS][WORDS]) {
    memset(counts, 0, sizeof(double[WORDS][WORDS]));
    for (uint64_t s = 0; s < text->sentences; s++)
        for (uint64_t i = text->starts[s]; i < text->starts[s + 1]; i++)
            for (uint64_t j = i + 1; j < text->starts[s + 1] && j <= i + window; j++) {
                counts[ids[i]][ids[j]] += flat ? 1 : 1 / (double)(j - i);
                if (!one_sided) counts[ids[j]][ids[i]] += flat ? 1 : 1 / (double)(j - i);
            }
}

static void assert_counts(const struct cooccur_wanted *wanted, unsigned threads, int runs) {
    static double plain[WORDS][WORDS], found[WORDS][WORDS];
    struct cooccur_text text = make_text();
    struct pool *pool = pool_open(threads);
    struct cooccur *cooccur = cooccur_open(&text, wanted, pool);
    struct cooccur_pair pair, last = {0};
    int more, first = 1;
    assert_non_null(cooccur);
    assert_int_equal(cooccur_runs(cooccur) > 0, runs);
    count_plainly(&text, wanted->window, wanted->one_sided, wanted->flat, plain);
    memset(found, 0, sizeof found);
    while ((more = cooccur_next(cooccur, &pair)) > 0) {
        assert_true(first || pair.row > last.row || (pair.row == last.row && pair.column > last.column));
        found[pair.row][pair.column] = (double)pair.units / (double)cooccur_unit(cooccur);
        assert_true(pair.units > 0);
        last = pair, first = 0;
    }
    assert_int_equal(more, 0);
    for (int a = 0; a < WORDS; a++)
        for (int b = 0; b < WORDS; b++)
            if (fabs(found[a][b] - plain[a][b]) > 1e-9 * plain[a][b] * (wanted->window > COOCCUR_EXACT ? 1e4 : 1))
                fail_msg("pair %d %d: %.12g, not %.12g", a, b, found[a][b], plain[a][b]);
    cooccur_close(cooccur);
    pool_close(pool);
}

static void pairs_count_as_by_the_plainest_way(void **state) {
    const uint32_t windows[] = {1, 2, 10, 15, 40};
    const uint64_t frequent[] = {1, 7, WORDS};
    for (int w = 0; w < 5; w++)
        for (int f = 0; f < 3; f++)
            for (unsigned threads = 1; threads <= 3; threads += 2)
                assert_counts(&(struct cooccur_wanted){.window = windows[w], .frequent = frequent[f], .path = in_scratch("counts")}, threads, 0);
    assert_counts(&(struct cooccur_wanted){.window = 5, .one_sided = 1, .path = in_scratch("counts")}, 2, 0);
    assert_counts(&(struct cooccur_wanted){.window = 5, .flat = 1, .path = in_scratch("counts")}, 2, 0);
}

/* One byte of memory is allowed: each thread keeps the fewest events possible, and writes the others to disk. */
static void pairs_beyond_the_memory_are_merged_from_disk(void **state) {
    assert_counts(&(struct cooccur_wanted){.window = 15, .frequent = 1, .memory = 1, .path = in_scratch("counts")}, 1, 1);
    assert_counts(&(struct cooccur_wanted){.window = 40, .frequent = 3, .memory = 1, .path = in_scratch("counts")}, 2, 1);
}

/* A pair of neighbours that occurs so often that its 32-bit count in the triangle overflows. */
static void a_count_beyond_32_bits_is_kept(void **state) {
    static uint32_t two[200];
    static uint64_t one_sentence[2] = {0, 200};
    for (int i = 0; i < 200; i++) two[i] = (uint32_t)i % 2;
    struct cooccur_text text = {two, one_sentence, 200, 1, 2};
    struct cooccur *cooccur = cooccur_open(&text, &(struct cooccur_wanted){.window = 22, .path = in_scratch("counts")}, NULL);
    struct cooccur_pair pair;
    double of[2][2] = {{0}}, plain[2][2] = {{0}};
    assert_non_null(cooccur);
    while (cooccur_next(cooccur, &pair) > 0) of[pair.row][pair.column] = (double)pair.units / (double)cooccur_unit(cooccur);
    for (int i = 0; i < 200; i++)
        for (int d = 1; d <= 22 && i + d < 200; d++) {
            plain[two[i]][two[i + d]] += 1. / d;
            plain[two[i + d]][two[i]] += 1. / d;
        }
    for (int i = 0; i < 4; i++) {
        assert_true(plain[i / 2][i % 2] * (double)cooccur_unit(cooccur) > 4.3e9);
        assert_true(fabs(of[i / 2][i % 2] - plain[i / 2][i % 2]) < 1e-9 * plain[i / 2][i % 2]);
    }
    cooccur_close(cooccur);
}

static void what_does_not_fit_64_bits_is_refused(void **state) {
    struct cooccur_text text = make_text();
    text.words = 1u << 30;
    assert_null(cooccur_open(&text, &(struct cooccur_wanted){.window = 16, .path = in_scratch("counts")}, NULL));
    sentence_holds("pairs of 1073741824 words in windows of 16 need 65 bits, and have 64; lower examples.window, or raise corpus.min_count");
}

/* The stream lists the pairs of each row, at most four in a sentence. Its bytes do not depend on the number of threads. */
static void the_stream_has_rows_and_their_counts(void **state) {
    struct cooccur_text text = make_text();
    struct idstream of = {.ids = ids, .starts = starts, .tokens = TOKENS, .sentences = SENTENCES, .checksum = 5};
    struct counts_wanted wanted = {.text = &of, .words = WORDS, .window = 5, .together = 4};
    char *path = in_scratch("counts");
    static double plain[WORDS][WORDS];
    uint64_t checksums[2], pairs = 0;
    struct idstream stream;
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct pool *pool = pool_open(2 * threads - 1);
        assert_int_equal(counts_make(path, &wanted, pool), 0);
        assert_int_equal(idstream_open(&stream, path, counts_fingerprint(&wanted), WORDS, pool), 0);
        checksums[threads - 1] = stream.checksum;
        if (threads == 1) idstream_close(&stream);
        pool_close(pool);
    }
    assert_int_equal(checksums[0], checksums[1]);
    count_plainly(&text, 5, 0, 0, plain);
    for (uint64_t s = 0; s < stream.sentences; s++) {
        uint64_t first = stream.starts[s], end = stream.starts[s + 1];
        assert_in_range(end - first, 2, 5);
        assert_true(stream.weights[first] == 0);
        for (uint64_t i = first + 1; i < end; i++, pairs++) {
            double *count = &plain[stream.ids[first]][stream.ids[i]];
            assert_true(fabs(stream.weights[i] - *count) < 1e-6 * *count);
            *count = 0;
        }
    }
    for (int i = 0; i < WORDS * WORDS; i++) assert_true(plain[i / WORDS][i % WORDS] == 0);
    assert_int_equal(stream.tokens, pairs + stream.sentences);
    idstream_close(&stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pairs_count_as_by_the_plainest_way, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(pairs_beyond_the_memory_are_merged_from_disk, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_count_beyond_32_bits_is_kept, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_does_not_fit_64_bits_is_refused, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(the_stream_has_rows_and_their_counts, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
