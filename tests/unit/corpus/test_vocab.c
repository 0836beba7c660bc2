#include "tests/testing.h"

#include "base/interrupt.h"
#include "corpus/vocab.h"
#include "corpus/word_counts.h"
#include "tests/unit/scratch.h"

#include "tests/unit/plain_options.h"
#include "tests/unit/sentence.h"

/* Builds a vocabulary from a file with this number of threads, in blocks of block_bytes. */
static int build(struct vocab *vocab, const struct corpus_options *options, char *path, unsigned threads, uint64_t block) {
    struct pool *pool = pool_open(threads);
    struct corpus *corpus = scratch_corpus(path, block);
    assert_non_null(pool);
    assert_non_null(corpus);
    int result = vocab_build(vocab, corpus, options, pool);
    corpus_close(corpus);
    pool_close(pool);
    return result;
}

/* Returns "word:count " for each word, by rising id. */
static const char *listed(const struct vocab *vocab) {
    static char out[4096];
    char *at = out;
    *out = 0;
    for (uint64_t id = 0; id < vocab->size; id++)
        at += sprintf(at, "%s:%" PRIu64 " ", vocab_word(vocab, id, NULL), vocab_count(vocab, id));
    return out;
}

static void built_as(const char *text, const struct corpus_options *options, const char *wanted) {
    static const unsigned threads[] = {1, 2, 5};
    static const uint64_t blocks[] = {1, 5, 64, CORPUS_BLOCK};
    char *path = scratch_text("corpus", text);
    for (int t = 0; t < 3; t++)
        for (int b = 0; b < 4; b++) {
            struct vocab vocab;
            assert_int_equal(build(&vocab, options, path, threads[t], blocks[b]), 0);
            assert_string_equal(listed(&vocab), wanted);
            vocab_release(&vocab);
        }
}

static void refused_as(const char *text, const struct corpus_options *options, const char *sentence) {
    struct vocab vocab;
    assert_int_equal(build(&vocab, options, scratch_text("corpus", text), 2, 8), -1);
    assert_int_equal(vocab.size, 0);
    sentence_holds(sentence);
}

/* ---- which tokens count ---- */

static void each_format_counts_its_words(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    built_as("b a b\na c b\n", &options, "b:3 a:2 c:1 ");
    options.format = FORMAT_ADJACENCY;
    built_as("b a b\na c b\n", &options, "b:3 a:2 c:1 ");
    options.format = FORMAT_LISTS;
    built_as("b a b\n\n  a c b\nname\nx", &options, "b:2 a:1 c:1 ");
    built_as("name a  aaaaaaaaaaaaaaaaaaaaaaaaaa\r\nname a", &options, "a:2 aaaaaaaaaaaaaaaaaaaaaaaaaa:1 ");
    options.format = FORMAT_PAIRS;
    built_as("u i r\nb a 3\nb b 5\na c 1 7\nc\tb", &options, "b:2 a:1 c:1 ");
    options.min_rating = 3;
    built_as("b a 3\nb b 5\na c 1 7\nc\tb 2.9", &options, "a:1 b:1 ");
}

static void ties_go_to_the_word_met_first(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    built_as("z y x w v z y x w v a a a", &options, "a:3 z:2 y:2 x:2 w:2 v:2 ");
    options.order = ORDER_FIRST_SEEN;
    built_as("z y x w v z y x w v a a a", &options, "z:2 y:2 x:2 w:2 v:2 a:3 ");
}

static void rare_words_and_words_past_the_limit_are_left_out(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    const char *text = "c c c b b b a a d d e";
    struct vocab vocab;
    options.min_count = 2;
    built_as(text, &options, "c:3 b:3 a:2 d:2 ");
    options.max_vocab = 3;
    built_as(text, &options, "c:3 b:3 a:2 ");
    options.order = ORDER_FIRST_SEEN;
    built_as("e d d a a b b b c c c", &options, "d:2 b:3 c:3 ");
    assert_int_equal(build(&vocab, &options, scratch_text("corpus", text), 1, 0), 0);
    assert_int_equal(vocab.tokens, 11);
    assert_int_equal(vocab.kept, 8);
    assert_int_equal(vocab.distinct, 5);
    vocab_release(&vocab);
}

static void given_numbers_are_the_ids(void **state) {
    struct corpus_options options = plain_options(FORMAT_LISTS);
    struct vocab vocab;
    options.order = ORDER_GIVEN;
    built_as("joe 3 1 3\nann 11 03\n", &options, "0:0 1:1 2:0 3:3 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:1 ");
    built_as("joe 0\n", &options, "0:1 ");
    options.min_count = 2;
    built_as("joe 3 1 3\nann 11 3\n", &options, "0:0 1:0 2:0 3:3 ");
    refused_as("joe 1 2\nann 5 4294967294\n", &options,
               "corpus' line 2: '4294967294' is not an id; corpus.order = given wants numbers from 0 to 4294967293");
    refused_as("joe 1 2\n\nann 5 x7 1\n", &options, "corpus' line 3: 'x7' is not an id");
    refused_as("joe -1\n", &options, "corpus' line 1: '-1' is not an id");
    options.min_count = 1;
    assert_int_equal(build(&vocab, &options, scratch_text("corpus", "n 100100"), 1, 0), 0);
    assert_int_equal(vocab.size, 100101);
    for (uint64_t id = 0; id < vocab.size; id++) {
        uint64_t length, read;
        const char *word = vocab_word(&vocab, id, &length);
        assert_int_equal(vocab_given_id(word, length, &read), 0);
        assert_int_equal(read, id);
        assert_int_equal(vocab_find(&vocab, word, length), id);
    }
    vocab_release(&vocab);
}

static void bytes_of_words_are_kept(void **state) {
    static const char odd[] = "a\0b \xFF\xFE caf\xC3\xA9\r\na\0b a\0 a\r\n";
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct vocab vocab;
    uint64_t length;
    assert_int_equal(build(&vocab, &options, scratch_file("odd", odd, sizeof odd - 1), 2, 3), 0);
    assert_int_equal(vocab.size, 5);
    assert_memory_equal(vocab_word(&vocab, 0, &length), "a\0b", 4);
    assert_int_equal(length, 3);
    assert_int_equal(vocab_find(&vocab, "\xFF\xFE", 2), 1);
    assert_int_equal(vocab_find(&vocab, "caf\xC3\xA9", 5), 2);
    assert_int_equal(vocab_find(&vocab, "a\0", 2), 3);
    assert_int_equal(vocab_find(&vocab, "a", 1), 4);
    assert_int_equal(vocab_find(&vocab, "a\0c", 3), -1);
    assert_int_equal(vocab_find(&vocab, "", 0), -1);
    vocab_release(&vocab);
}

/* ---- many words ---- */

/* 150,000 distinct words, more than a tally holds. Word i occurs i % 3 + 1 times. One more word has 200,000 bytes. */
enum { MANY = 150000, LONG = 200000 };
static char *many_words(void) {
    char *text = malloc(MANY * 24 + LONG + 2), *at = text;
    for (int i = 0; i < MANY; i++)
        for (int times = 0; times <= i % 3; times++) at += sprintf(at, "w%d%c", i, times % 2 ? '\n' : ' ');
    memset(at, 'L', LONG);
    at[LONG] = 0;
    char *path = scratch_text("many", text);
    free(text);
    return path;
}

static void many_words_are_ranked_alike_by_any_threads(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    char *path = many_words(), word[24], *longest = malloc(LONG);
    static const struct {
        unsigned threads;
        uint64_t block;
    } ways[] = {{1, CORPUS_BLOCK}, {2, 100000}, {5, 1000}};
    for (int w = 0; w < 3; w++) {
        struct vocab vocab;
        assert_int_equal(build(&vocab, &options, path, ways[w].threads, ways[w].block), 0);
        assert_int_equal(vocab.size, MANY + 1);
        assert_int_equal(vocab.tokens, 2 * MANY + 1);
        for (int i = 0; i < MANY; i++) {
            int rank = (2 - i % 3) * (MANY / 3) + i / 3, length = sprintf(word, "w%d", i);
            assert_int_equal(vocab_find(&vocab, word, (uint64_t)length), rank);
            assert_int_equal(vocab_count(&vocab, rank), i % 3 + 1);
        }
        assert_int_equal(vocab_find(&vocab, memset(longest, 'L', LONG), LONG), MANY);
        assert_int_equal(vocab_find(&vocab, longest, LONG - 1), -1);
        vocab_release(&vocab);
    }
    free(longest);
}

/* Tokens are looked up WORDS_BATCH at a time. Here a batch contains the same new word several times, and a word that was new in
 * the batch before. */
/* A word of a random corpus, with its number of occurrences by a simple count. */
struct plain_word {
    uint64_t count, first, number;
};
static int plainly_first(const void *a, const void *b) {
    const struct plain_word *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}
static int plainly_more(const void *a, const void *b) {
    const struct plain_word *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : plainly_first(a, b);
}

/* Makes a corpus of `words` different words: one in ten occurs 64 to 263 times, the others one to three times. Lists the words. */
static char *random_words(struct plain_word *list, uint64_t words) {
    uint64_t tokens = 0, *order = malloc(words * 263 * sizeof *order);
    for (uint64_t n = 0; n < words; n++) {
        list[n] = (struct plain_word){n % 10 ? 1 + scratch_random(3) : 64 + scratch_random(200), UINT64_MAX, n};
        for (uint64_t i = 0; i < list[n].count; i++) order[tokens++] = n;
    }
    char *text = malloc(tokens * 12), *at = text;
    for (uint64_t i = 0; i < tokens; i++) {
        uint64_t other = i + scratch_random((unsigned)(tokens - i)), n = order[other];
        order[other] = order[i];
        if (list[n].first == UINT64_MAX) list[n].first = i;
        at += sprintf(at, "x%" PRIu64 "y%c", n, i % 7 ? ' ' : '\n');
    }
    char *path = scratch_file("random", text, (uint64_t)(at - text));
    free(order);
    free(text);
    return path;
}

static void random_words_are_ranked_as_by_a_plain_sort(void **state) {
    enum { WORDS = 4000 };
    struct plain_word *list = malloc(WORDS * sizeof *list);
    char *path = random_words(list, WORDS), word[24];
    for (int way = 0; way < 12; way++) {
        struct corpus_options options = plain_options(FORMAT_TEXT);
        struct vocab vocab;
        uint64_t size = 0, most = way % 2 ? 700 : WORDS;
        options.order = way / 2 % 2 ? ORDER_FIRST_SEEN : ORDER_FREQUENCY;
        options.min_count = way == 4 ? 2 : 1;
        options.max_vocab = way % 2 ? most : 0;
        qsort(list, WORDS, sizeof *list, plainly_more);
        while (size < most && list[size].count >= options.min_count) size++;
        if (options.order == ORDER_FIRST_SEEN) qsort(list, size, sizeof *list, plainly_first);
        assert_int_equal(build(&vocab, &options, path, 1 + (unsigned)way / 4 * 2, 5000), 0);
        assert_int_equal(vocab.size, size);
        for (uint64_t id = 0; id < size; id++) {
            sprintf(word, "x%" PRIu64 "y", list[id].number);
            assert_string_equal(vocab_word(&vocab, id, NULL), word);
            assert_int_equal(vocab_count(&vocab, id), list[id].count);
        }
        vocab_release(&vocab);
    }
    free(list);
}

static void words_that_are_looked_up_together_are_one(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    for (int tokens = WORDS_BATCH - 1; tokens <= 2 * WORDS_BATCH + 1; tokens += tokens % WORDS_BATCH == 1 ? WORDS_BATCH - 2 : 1) {
        char text[8 * WORDS_BATCH], wanted[64], *at = text;
        for (int i = 0; i < tokens; i++) at += sprintf(at, "%s ", i == tokens - 1 ? "last" : i % 3 ? "b" : "a");
        sprintf(wanted, "b:%d a:%d last:1 ", (tokens - 1) - (tokens + 1) / 3, (tokens + 1) / 3);
        built_as(text, &options, wanted);
    }
}

/* ---- nothing to count ---- */

static void an_empty_corpus_says_why(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    refused_as("", &options, "the corpus 'here' is empty: not one word, read as text, in its 0 bytes");
    refused_as(" \n\r\n\t", &options, "not one word, read as text, in its 5 bytes");
    options.format = FORMAT_LISTS;
    refused_as("name\nother\n", &options, "not one word, read as lists, in its 11 bytes");
    options.format = FORMAT_PAIRS;
    options.min_rating = 4.5;
    refused_as("a b 4\n", &options, "no pair with a rating of at least 4.5 (corpus.min_rating)");
    options = plain_options(FORMAT_TEXT);
    options.min_count = 5;
    refused_as("a b a c", &options,
               "no word of the corpus comes 5 times (corpus.min_count): the most frequent of 3, 'a', comes 2 times");
}

static void a_bad_line_of_pairs_is_named(void **state) {
    struct corpus_options options = plain_options(FORMAT_PAIRS);
    refused_as("a b 4\na b x\n", &options, "corpus' line 2: the rating 'x' is not a number");
    refused_as("a b 4\n\n\na\n", &options, "corpus' line 4: 1 field with blanks between; wanted list");
}

static void parts_of_lines_are_named_by_format(void **state) {
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_TEXT], 0), PART_WORD);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_ADJACENCY], 0), PART_WORD);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_LISTS], 0), PART_NAME);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_LISTS], 1), PART_WORD);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_PAIRS], 0), PART_NAME);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_PAIRS], 1), PART_WORD);
    assert_int_equal(corpus_part(&corpus_formats[FORMAT_PAIRS], 2), PART_RATING);
}

/* ---- on disk ---- */

static void what_is_written_reads_back(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct vocab vocab, again;
    static const char odd[] = "x\0y x\0y \xFF\xC3 z z z";
    assert_int_equal(build(&vocab, &options, scratch_file("odd", odd, sizeof odd - 1), 1, 0), 0);
    assert_int_equal(vocab_write(&vocab, in_scratch("v.tsv")), 0);
    uint64_t length;
    char *text = file_read(in_scratch("v.tsv"), &length);
    assert_int_equal(length, 15);
    assert_memory_equal(text, "z\t3\nx\0y\t2\n\xFF\xC3\t1\n", 15);
    free(text);
    assert_int_equal(vocab_read(&again, in_scratch("v.tsv")), 0);
    assert_int_equal(again.size, 3);
    assert_int_equal(again.tokens, 6);
    assert_int_equal(again.kept, 6);
    assert_int_equal(again.distinct, 3);
    assert_int_equal(vocab_fingerprint(&again), vocab_fingerprint(&vocab));
    assert_int_equal(vocab_find(&again, "x\0y", 3), 1);
    vocab_release(&vocab);
    vocab_release(&again);
    vocab_release(&again);
    assert_int_equal(vocab_find(&again, "z", 1), -1);
}

/* Lines of a file of some megabytes, which threads read in parts: one word of the file is longer than a part, and one is longer
 * than a block of bytes that is written by one call. The 20,000 lines from line `bad` on have no count. */
enum { LINES = 250000, LONGEST = 2500000 };
static char *many_lines(uint64_t bad) {
    char *text = malloc(LINES * 24 + LONGEST + LONG), *at = text;
    for (uint64_t line = 1; line <= LINES; line++) {
        uint64_t length = line == 100000 ? LONGEST : line == 170000 ? LONG : 0;
        memset(at, 'L', length);
        at += length;
        at += sprintf(at, line >= bad && line < bad + 20000 ? "w%" PRIu64 "\n" : "w%" PRIu64 "\t%" PRIu64 "\n", line, LINES - line);
    }
    char *path = scratch_file("many", text, (uint64_t)(at - text));
    free(text);
    return path;
}

static void many_lines_are_read_alike_by_any_threads(void **state) {
    static const uint64_t bad[] = {LINES + 1, 1, 99999, 100001, LINES};
    char sentence[64];
    for (unsigned threads = 1; threads < 6; threads += 2)
        for (int b = 0; b < 5; b++) {
            struct pool *pool = pool_open(threads);
            struct vocab vocab;
            uint64_t length, written;
            char *path = many_lines(bad[b]);
            assert_int_equal(vocab_read_words(&vocab, path, b % 2, pool), bad[b] <= LINES ? -1 : 0);
            snprintf(sentence, sizeof sentence, "line %" PRIu64 ": 'w%" PRIu64 "' has no count", bad[b], bad[b]);
            if (bad[b] <= LINES) sentence_holds(sentence);
            if (bad[b] > LINES) {
                assert_int_equal(vocab.size, LINES);
                assert_int_equal(vocab_count(&vocab, LINES - 2), 1);
                assert_int_equal(vocab_write(&vocab, in_scratch("again")), 0);
                char *text = file_read(path, &length), *again = file_read(in_scratch("again"), &written);
                assert_int_equal(length, written);
                assert_memory_equal(text, again, length);
                free(text);
                free(again);
            }
            vocab_release(&vocab);
            pool_close(pool);
        }
}

static void counts_may_have_more_than_32_bits(void **state) {
    static const char text[] = "a\t5000000000\nb\t4294967294\nc\t1\nd\t4294967295\ne\t18446744060119617020\n";
    struct vocab vocab;
    uint64_t length;
    assert_int_equal(vocab_read(&vocab, scratch_text("v", text)), 0);
    assert_string_equal(listed(&vocab), "a:5000000000 b:4294967294 c:1 d:4294967295 e:18446744060119617020 ");
    assert_int_equal(vocab.tokens, 18446744073709551610u);
    assert_int_equal(vocab.large_count, 3);
    assert_int_equal(vocab_set_count(&vocab, 2, 7000000000), 0);
    assert_int_equal(vocab_set_count(&vocab, 0, 6000000000), 0);
    assert_int_equal(vocab_write(&vocab, in_scratch("again")), 0);
    vocab_release(&vocab);
    char *again = file_read(in_scratch("again"), &length);
    again[length - 1] = 0;
    assert_string_equal(again, "a\t6000000000\nb\t4294967294\nc\t7000000000\nd\t4294967295\ne\t18446744060119617020");
    free(again);
}

static void written_to_nowhere_is_a_failure(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct vocab vocab;
    assert_int_equal(build(&vocab, &options, scratch_text("c", "a"), 1, 0), 0);
    assert_int_equal(vocab_write(&vocab, in_scratch("no/such/v.tsv")), -1);
    sentence_holds("no/such/v.tsv': No such file");
    vocab_release(&vocab);
}

static void vocabularies_of_other_tools_are_read(void **state) {
    static const char *const same[] = {"the\t12\nof\t7\n", "the 12\nof 7", "the\t12\r\nof\t7\r\n", "the\t12\r\nof 7\r",
                                       "the \t 12 \nof\t\t7"};
    for (int i = 0; i < 5; i++) {
        struct vocab vocab;
        assert_int_equal(vocab_read(&vocab, scratch_text("v", same[i])), 0);
        assert_string_equal(listed(&vocab), "the:12 of:7 ");
        vocab_release(&vocab);
    }
}

/* Tokens that a program passes keep blanks around them. A blank after the TAB shows that another tool wrote the vocabulary file. */
static void words_keep_their_blanks(void **state) {
    struct vocab vocab;
    assert_int_equal(vocab_read(&vocab, scratch_text("v", " lead\t12\nlead \t7\n  \t2\nlead\t1\n")), 0);
    assert_string_equal(listed(&vocab), " lead:12 lead :7   :2 lead:1 ");
    vocab_release(&vocab);
    assert_int_equal(vocab_read(&vocab, scratch_text("v", " lead 12\n")), -1);
    sentence_holds("line 1 has no word");
}

static void words_of_other_tools_may_have_odd_bytes(void **state) {
    struct vocab vocab;
    assert_int_equal(vocab_read(&vocab, scratch_text("v", "\fthe\v\t12\no\ff 7\n")), 0);
    assert_string_equal(listed(&vocab), "\fthe\v:12 o\ff:7 ");
    vocab_release(&vocab);
}

static void a_vocabulary_takes_the_place_of_counting(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    options.vocab = scratch_text("v", "x\t0\n</s> 18446744073709551615\n");
    options.min_count = 5;
    built_as("a b c", &options, "x:0 </s>:18446744073709551615 ");
    options.vocab = in_scratch("gone");
    refused_as("a b c", &options, "cannot open");
}

static void bad_vocabularies_name_their_line(void **state) {
    static const struct {
        const char *text, *sentence;
    } bad[] = {
        {"", "v' is empty"},
        {"\n", "v' line 1 is empty"},
        {"a\t1\n\nb\t1\n", "v' line 2 is empty"},
        {"a\t1\nb\n", "v' line 2: 'b' has no count"},
        {"a\t1\n\t5\n", "v' line 2 has no word"},
        {"a\t1\nb\tx\n", "v' line 2: the count 'x' is not a whole number"},
        {"a\t-1\n", "v' line 1: the count '-1' is not a whole number"},
        {"a\t1.5\n", "v' line 1: the count '1.5' is not a whole number"},
        {"a\t18446744073709551616\n", "v' line 1: the count '18446744073709551616' is not a whole number below 2^64"},
        {"a\t18446744073709551615\nb\t1\n", "v' line 2: the counts add up"},
        {"a\t1\nb\t1\na\t2\n", "v' line 3: the word 'a' is on line 1 already"},
        {"New York 5\n", "v' line 1: the word 'New York' has a blank in it"},
        {"New\tYork\t5\n", "v' line 1: the word 'New\\tYork' has a blank in it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct vocab vocab;
        assert_int_equal(vocab_read(&vocab, scratch_text("v", bad[i].text)), -1);
        assert_null(vocab.counts);
        sentence_holds(bad[i].sentence);
    }
}

static void a_given_file_that_is_no_text_is_told(void **state) {
    struct vocab vocab;
    assert_int_equal(vocab_read_given(&vocab, scratch_text("v", "\x1F\x8B\x08 packed\n")), -1);
    sentence_holds("v' is a gzip file and no text: unpack it first");
    assert_int_equal(vocab_read_given(&vocab, scratch_text("v", "MZ\t2\nORC\t1\n")), 0);
    vocab_release(&vocab);
}

/* A vocabulary file that the user names may begin with a byte order mark of an editor; in the program's own files the first word begins there. */
static void a_byte_order_mark_is_no_word_of_a_given_file(void **state) {
    struct vocab vocab;
    char *path = scratch_text("v", "\xEF\xBB\xBF"
                                   "a\t2\nb\t1\n");
    assert_int_equal(vocab_read_given(&vocab, path), 0);
    assert_string_equal(listed(&vocab), "a:2 b:1 ");
    vocab_release(&vocab);
    assert_int_equal(vocab_read(&vocab, path), 0);
    assert_string_equal(listed(&vocab), "\xEF\xBB\xBF"
                                        "a:2 b:1 ");
    vocab_release(&vocab);
    assert_int_equal(vocab_read_given(&vocab, scratch_text("v", "\xEF\xBB\xBF")), -1);
    sentence_holds("v' is empty");
    assert_int_equal(vocab_read_given(&vocab, scratch_text("v", "")), -1);
    sentence_holds("v' is empty");
}

/* Refusing a file with gigabytes of zeros takes neither time nor memory. */
static void what_is_no_vocabulary_is_not_read_to_its_end(void **state) {
    struct vocab vocab;
    char *path = scratch_text("v", "a\t2\n");
    assert_int_equal(truncate(path, (off_t)3 << 30), 0);
    assert_int_equal(vocab_read(&vocab, path), -1);
    sentence_holds("v' line 2 has more than 67108928 bytes; wanted word TAB count");
    scratch_text("v", "no count\n");
    assert_int_equal(truncate(path, (off_t)3 << 30), 0);
    assert_int_equal(vocab_read(&vocab, path), -1);
    sentence_holds("v' line 1: the count 'count' is not a whole number");
}

/* While words are read, and while their hash table is built, it is checked whether the user has interrupted the program. */
static void an_interruption_ends_the_reading_of_a_vocabulary(void **state) {
    static _Atomic int stop;
    char *path = scratch_text("v", "a\t2\nb\t1\n");
    struct vocab vocab;
    interrupt_flag *before = interrupt_use(&stop);
    stop = 1;
    assert_int_equal(vocab_read(&vocab, path), -1);
    sentence_holds("stopped before training has begun");
    stop = 0;
    assert_int_equal(vocab_read(&vocab, path), 0);
    stop = 1;
    assert_int_equal(vocab_index(&vocab, path, NULL), -1);
    sentence_holds("stopped before training has begun");
    vocab_release(&vocab);
    interrupt_use(before);
}

static void an_interruption_ends_the_choice_of_words(void **state) {
    static _Atomic int stop;
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct corpus *corpus = scratch_corpus(scratch_text("corpus", "a b a\n"), 0);
    struct pool *pool = pool_open(2);
    struct word_counts items = {0};
    struct word_counts_wanted wanted = {.items = &items};
    struct vocab vocab = {0};
    assert_int_equal(word_counts_read(&wanted, corpus, &options, pool), 0);
    interrupt_flag *before = interrupt_use(&stop);
    stop = 1;
    assert_int_equal(vocab_choose(&vocab, &items, &options, 6, pool, NULL), -1);
    sentence_holds("stopped before training has begun");
    interrupt_use(before);
    vocab_release(&vocab);
    word_counts_release(&items);
    pool_close(pool);
    corpus_close(corpus);
}

/* While a word is looked up, memory for later words is prefetched. A word that occurs twice must be found, however far apart the two are. */
static void a_word_there_twice_is_found_at_any_distance(void **state) {
    static const unsigned distances[] = {1, 2, 31, 32, 33, 64, 65, 998, 999};
    char *text = malloc(32000), sentence[96];
    for (size_t d = 0; d <= sizeof distances / sizeof *distances; d++) {
        unsigned again = d < sizeof distances / sizeof *distances ? 999 - distances[d] : 1000; /* 1000: no word occurs twice */
        struct vocab vocab;
        char *at = text;
        for (unsigned i = 0; i < 1000; i++) at += sprintf(at, "word%u\t1\n", i == 999 && again < 999 ? again : i);
        assert_int_equal(vocab_read(&vocab, scratch_text("v", text)), again < 1000 ? -1 : 0);
        snprintf(sentence, sizeof sentence, "v' line 1000: the word 'word%u' is on line %u already", again, again + 1);
        if (again < 1000) sentence_holds(sentence);
        for (unsigned i = 0; again == 1000 && i < 1000; i++) {
            char word[16];
            assert_int_equal(vocab_find(&vocab, word, (uint64_t)sprintf(word, "word%u", i)), i);
        }
        vocab_release(&vocab);
    }
    free(text);
}

static uint64_t fingerprint(const char *text) {
    struct vocab vocab;
    assert_int_equal(vocab_read(&vocab, scratch_text("v", text)), 0);
    uint64_t sum = vocab_fingerprint(&vocab);
    vocab_release(&vocab);
    return sum;
}

static void the_fingerprint_knows_words_counts_and_order(void **state) {
    uint64_t first = fingerprint("a\t2\nb\t2\n");
    assert_int_equal(fingerprint("a 2\r\nb 2"), first);
    assert_int_not_equal(fingerprint("b\t2\na\t2\n"), first);
    assert_int_not_equal(fingerprint("a\t2\nb\t1\n"), first);
    assert_int_not_equal(fingerprint("a\t2\nc\t2\n"), first);
    assert_int_not_equal(fingerprint("a\t2\n"), first);
}

static void a_near_word_is_suggested_among_the_frequent(void **state) {
    struct vocab vocab;
    char *text = malloc(MANY * 32), *at = text;
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "filler%06d\t%d\n", i, i < MANY / 2 ? 1 : 2); /* the counts do not fall from line to line */
    at += sprintf(at, "mutex\t9\nmutey\t0\n");
    assert_int_equal(vocab_read(&vocab, scratch_text("v", text)), 0);
    assert_string_equal(vocab_near(&vocab, "mutx"), "mutex");
    assert_string_equal(vocab_near(&vocab, "mutey"), "mutex");
    assert_null(vocab_near(&vocab, "entirely-else"));
    free(text);
    vocab_release(&vocab);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(each_format_counts_its_words),
        IN_SCRATCH(ties_go_to_the_word_met_first),
        IN_SCRATCH(rare_words_and_words_past_the_limit_are_left_out),
        IN_SCRATCH(given_numbers_are_the_ids),
        IN_SCRATCH(bytes_of_words_are_kept),
        IN_SCRATCH(many_words_are_ranked_alike_by_any_threads),
        IN_SCRATCH(random_words_are_ranked_as_by_a_plain_sort),
        IN_SCRATCH(words_that_are_looked_up_together_are_one),
        IN_SCRATCH(an_empty_corpus_says_why),
        IN_SCRATCH(a_bad_line_of_pairs_is_named),
        IN_SCRATCH(parts_of_lines_are_named_by_format),
        IN_SCRATCH(what_is_written_reads_back),
        IN_SCRATCH(many_lines_are_read_alike_by_any_threads),
        IN_SCRATCH(counts_may_have_more_than_32_bits),
        IN_SCRATCH(written_to_nowhere_is_a_failure),
        IN_SCRATCH(vocabularies_of_other_tools_are_read),
        IN_SCRATCH(words_keep_their_blanks),
        IN_SCRATCH(words_of_other_tools_may_have_odd_bytes),
        IN_SCRATCH(a_vocabulary_takes_the_place_of_counting),
        IN_SCRATCH(bad_vocabularies_name_their_line),
        IN_SCRATCH(a_given_file_that_is_no_text_is_told),
        IN_SCRATCH(a_byte_order_mark_is_no_word_of_a_given_file),
        IN_SCRATCH(what_is_no_vocabulary_is_not_read_to_its_end),
        IN_SCRATCH(an_interruption_ends_the_reading_of_a_vocabulary),
        IN_SCRATCH(an_interruption_ends_the_choice_of_words),
        IN_SCRATCH(a_word_there_twice_is_found_at_any_distance),
        IN_SCRATCH(the_fingerprint_knows_words_counts_and_order),
        IN_SCRATCH(a_near_word_is_suggested_among_the_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
