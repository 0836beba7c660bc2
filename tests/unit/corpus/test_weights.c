/* Weights of pairs (corpus.weights): read from files and from gathered data, kept in the stream beside their ids. */
#include "tests/testing.h"

#include "corpus/encode.h"
#include "corpus/numbered.h"
#include "tests/unit/scratch.h"

#include "tests/unit/plain_options.h"
#include "tests/unit/sentence.h"

static const char text[] = "u1 a 5\nu2 b 1\nu1 b 0.5\nu1 c 0\nu2 a 3\nu3 a 2\nu2 d 0\n";

static struct corpus_options weighed(enum pair_weights weights, int list_rows) {
    struct corpus_options options = plain_options(FORMAT_PAIRS);
    options.pair_weights = weights;
    options.list_rows = list_rows;
    return options;
}

/* Writes each list as its items with their weights: "a 5 b 0.5 | b 1 a 3 | a 2 ". Returns NULL on failure. */
static const char *encoded(struct corpus *corpus, const struct corpus_options *options, unsigned threads, struct vocab *vocab) {
    static char out[512];
    struct pool *pool = pool_open(threads);
    struct idstream stream = {.tokens = 0};
    char *at = out;
    int reused, failed = vocab_build(vocab, corpus, options, pool) ||
                         encode_open(&stream, in_scratch("ids"), corpus, vocab, options, pool, &reused);
    *out = 0;
    for (uint64_t list = 0; !failed && list < stream.sentences; list++) {
        if (list) at += sprintf(at, "| ");
        for (uint64_t i = stream.starts[list]; i < stream.starts[list + 1]; i++)
            at += sprintf(at, "%s %.6g ", vocab_word(vocab, stream.ids[i], NULL), stream.weights ? (double)stream.weights[i] : -1);
    }
    assert_true(failed || stream.weighed == options->pair_weights);
    idstream_close(&stream);
    pool_close(pool);
    return failed ? NULL : out;
}

static const char *encoded_file(const char *bytes, const struct corpus_options *options, unsigned threads, uint64_t block) {
    struct corpus *corpus = scratch_corpus(scratch_text("pairs", bytes), block);
    struct vocab vocab = {.size = 0};
    file_remove(in_scratch("ids"));
    const char *out = encoded(corpus, options, threads, &vocab);
    vocab_release(&vocab);
    corpus_close(corpus);
    return out;
}

static void items_keep_their_weights(void **state) {
    static const unsigned threads[] = {1, 1, 2, 5};
    static const uint64_t blocks[] = {CORPUS_BLOCK, 1, 7, 20};
    for (int way = 0; way < 4; way++)
        for (int rows = 0; rows < 2; rows++) {
            struct corpus_options options = weighed(PAIR_WEIGHTS_LINEAR, rows);
            assert_string_equal(encoded_file(text, &options, threads[way], blocks[way]),
                                rows ? "list:u1 0 a 5 b 0.5 | list:u2 0 b 1 a 3 | list:u3 0 a 2 " : "a 5 b 0.5 | b 1 a 3 | a 2 ");
        }
}

static void log_is_of_one_more(void **state) {
    struct corpus_options options = weighed(PAIR_WEIGHTS_LOG, 0);
    assert_string_equal(encoded_file(text, &options, 2, 5), "a 1.79176 b 0.405465 | b 0.693147 a 1.38629 | a 1.09861 ");
}

static void a_lowest_rating_comes_before_weights(void **state) {
    struct corpus_options options = weighed(PAIR_WEIGHTS_LINEAR, 0);
    options.min_rating = 2;
    assert_string_equal(encoded_file("u1 a 5\nu1 b -3\nu1 c 2\n", &options, 1, 0), "a 5 c 2 ");
}

/* Each value of corpus.weights makes another stream. The stream without weights is the same as in earlier versions. */
static void kinds_are_told_apart(void **state) {
    uint64_t seen[3], length;
    for (int kind = 0; kind < 3; kind++) {
        struct corpus_options options = weighed((enum pair_weights)kind, 0);
        assert_non_null(encoded_file(text, &options, 1, 0));
        char *bytes = file_read(in_scratch("ids"), &length);
        memcpy(&seen[kind], bytes + 16, sizeof seen[kind]); /* reads the fingerprint from the header */
        assert_int_equal(bytes[8], kind ? 3 : 2);
        assert_int_equal(length, idstream_bytes(kind ? 5 : 7, 3, kind > 0));
        for (uint64_t at = kind ? IDSTREAM_HEADER : length; at < length; at++) { /* a stream with a changed weight is refused,
                                                                                  * too */
            struct idstream stream;
            struct pool *pool = pool_open(1);
            bytes[at] ^= 1;
            scratch_file("changed", bytes, length);
            bytes[at] ^= 1;
            assert_int_equal(idstream_reuse(&stream, in_scratch("changed"), seen[kind], 4, pool), 0);
            pool_close(pool);
        }
        free(bytes);
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
}

static void impossible_weights_are_refused(void **state) {
    static const char *const wrong[][2] = {{"u1 a 5\nu1 b -1\n", "line 2: the rating -1 cannot be the pair's weight"},
                                           {"u1 a 5\nu1 b nan\n", "line 2: the rating 'nan' is not a number"},
                                           {"u1 a 5\nu1 b 1e39\n", "line 2: the rating 1e39 cannot be the pair's weight"},
                                           {"u1 a 5\nu1 b 1e-39\n", "line 2: the rating 1e-39 cannot be the pair's weight"},
                                           {"u1 a 5\nu1 b\n", "line 2: no rating, which corpus.weights makes the pair's weight"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct corpus_options options = weighed(i % 2 ? PAIR_WEIGHTS_LOG : PAIR_WEIGHTS_LINEAR, 0);
        assert_null(encoded_file(wrong[i][0], &options, 1, 0));
        sentence_holds(wrong[i][1]);
    }
}

/* The stream has a weight that no pair can have, and the right checksum. It must be refused. */
static void a_stream_with_impossible_weights_is_refused(void **state) {
    static const uint32_t ids[] = {0, 1, 0};
    static const float wrong[] = {-1, NAN, INFINITY};
    struct pool *pool = pool_open(2);
    for (int i = 0; i < 4; i++) {
        const float weights[] = {1, i < 3 ? wrong[i] : 0, 2};
        struct idstream_writer writer;
        struct idstream stream;
        assert_int_equal(idstream_writer_open(&writer, in_scratch("x")), 0);
        writer.weighed = PAIR_WEIGHTS_LINEAR;
        assert_int_equal(idstream_append(&writer, ids, 3) || idstream_put_weights(&writer, weights, 3), 0);
        assert_int_equal(idstream_writer_commit(&writer, 1), 0);
        assert_int_equal(idstream_open(&stream, in_scratch("x"), 1, 2, pool), i < 3 ? -1 : 0);
        if (i == 3) assert_memory_equal(stream.weights, weights, sizeof weights);
        else sentence_holds("token 1 weighs");
        idstream_close(&stream);
    }
    pool_close(pool);
}

/* ---- gathered data ---- */

static const int64_t lists[] = {1, 2, 1, 1, 2, 3, 2}, items[] = {7, 8, 7, 9, 7, 7, 6};

static int gather(struct gathered *gathered, const struct corpus_options *options, const double *ratings) {
    const struct tokens named = {TOKENS_NUMBERS, 64, lists, NULL, 7}, given = {TOKENS_NUMBERS, 64, items, NULL, 7};
    *gathered = (struct gathered){.options = options};
    return gathered_take_pairs(gathered, &named, &given, ratings);
}

static void gathered_pairs_keep_their_weights(void **state) {
    static const double ratings[] = {5, 1, 0.5, 0, 3, 2, 0};
    struct gathered gathered;
    struct vocab vocab = {.size = 0};
    struct corpus_options options = weighed(PAIR_WEIGHTS_LINEAR, 1);
    assert_int_equal(gather(&gathered, &options, ratings), 0);
    uint64_t before = gathered_fingerprint(&gathered);
    struct corpus *corpus = corpus_open_gathered(&gathered);
    assert_string_equal(encoded(corpus, &options, 2, &vocab), "list:1 0 7 5 7 0.5 | list:2 0 8 1 7 3 | list:3 0 7 2 ");
    memcpy(&gathered.numbers[2], &(float){4}, sizeof(float));
    assert_true(gathered_fingerprint(&gathered) != before);
    vocab_release(&vocab);
    corpus_close(corpus);
    gathered_release(&gathered);
}

static void gathered_weights_are_checked(void **state) {
    static const double negative[] = {5, 1, -2, 0, 3, 2, 0}, missing[] = {5, 1, NAN, 0, 3, 2, 0};
    static const char *const said[] = {"the rating -2 of pair 2 of the data, counted from 0, cannot be its weight",
                                       "pair 2 of the data, counted from 0, has no rating, and corpus.weights is set",
                                       "the pairs have no ratings, and corpus.weights is set"};
    const double *const given[] = {negative, missing, NULL};
    for (int i = 0; i < 3; i++) {
        struct gathered gathered;
        struct corpus_options options = weighed(PAIR_WEIGHTS_LOG, 0);
        assert_int_equal(gather(&gathered, &options, given[i]), -1);
        sentence_holds(said[i]);
        gathered_release(&gathered);
    }
}

#define IN_SCRATCH(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(items_keep_their_weights),
        IN_SCRATCH(log_is_of_one_more),
        IN_SCRATCH(a_lowest_rating_comes_before_weights),
        IN_SCRATCH(kinds_are_told_apart),
        IN_SCRATCH(impossible_weights_are_refused),
        IN_SCRATCH(a_stream_with_impossible_weights_is_refused),
        IN_SCRATCH(gathered_pairs_keep_their_weights),
        IN_SCRATCH(gathered_weights_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
