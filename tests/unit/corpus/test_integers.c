#include "tests/testing.h"

#include "corpus/word_counts.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

static void a_number_has_one_spelling(void **state) {
    static const struct {
        const char *word;
        uint32_t integer;
    } words[] = {{"0", 0},
                 {"7", 7},
                 {"10", 10},
                 {"67108863", 67108863},
                 {"67108864", NO_INTEGER},
                 {"99999999", NO_INTEGER},
                 {"123456789", NO_INTEGER},
                 {"00", NO_INTEGER},
                 {"07", NO_INTEGER},
                 {"-1", NO_INTEGER},
                 {"1a", NO_INTEGER},
                 {"1.0", NO_INTEGER},
                 {"\xB2", NO_INTEGER}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(integer_of(words[i].word, strlen(words[i].word)), words[i].integer);
}

static void rows_are_found_at_their_places(void **state) {
    struct vocab vocab = {0};
    struct integer_rows rows;
    assert_int_equal(vocab_read(&vocab, scratch_text("words", "30\t9\nten\t8\n0\t7\n030\t6\n2\t5\n")), 0);
    assert_int_equal(integer_rows_make(&rows, &vocab), 0);
    assert_int_equal(rows.size, 31);
    for (uint32_t i = 0; i < 31; i++)
        assert_int_equal(rows.rows[i], i == 30 ? 0 : i == 0 ? 2 : i == 2 ? 4 : WORDS_ABSENT);
    integer_rows_release(&rows);
    vocab_release(&vocab);
    assert_int_equal(vocab_read(&vocab, scratch_text("words", "30000\t9\nten\t8\n")), 0);
    assert_int_equal(integer_rows_make(&rows, &vocab), 0);
    assert_int_equal(rows.size, 0); /* the numbers are so far apart that a table indexed by them would be nearly empty */
    integer_rows_release(&rows);
    vocab_release(&vocab);
}

enum { TOKENS = 60000, NUMBERS = 9000 };

/* For each number, how often it is an end of an edge, and where first. */
struct seen {
    uint64_t count, first;
};

/* Some numbers fit the table of integers, some are larger than that table may be for a file of this size, and some words are not integers. Two
 * thirds of the numbers have the prefix. */
static void write_text(struct seen *seen, const char *prefix) {
    char *text = malloc(32 * TOKENS), *at = text;
    uint32_t before = 0;
    for (uint64_t i = 0; i < TOKENS; i++) {
        uint32_t number = scratch_random(1 + scratch_random(NUMBERS - 1));
        if (i % 2 && number == before) number++; /* avoids a self-loop, which is not counted */
        before = number;
        if (!seen[number].count++) seen[number].first = i;
        at += sprintf(at, number % 7 ? "%s%u" : "%s0%u", number % 3 ? prefix : "", number * (number % 5 ? 1 : 1000));
        *at++ = i % 2 ? '\n' : ' ';
    }
    scratch_file("text", text, (uint64_t)(at - text));
    free(text);
}

static void counts_agree(const char *prefix) {
    struct seen *seen = calloc(NUMBERS, sizeof *seen);
    struct corpus_options options = plain_options(FORMAT_GRAPH);
    write_text(seen, prefix);
    for (unsigned threads = 1; threads < 4; threads++) {
        struct pool *pool = pool_open(threads);
        struct corpus *corpus = scratch_corpus(in_scratch("text"), 5000 * threads);
        struct vocab vocab;
        options.order = threads % 2 ? ORDER_FREQUENCY : ORDER_FIRST_SEEN;
        assert_int_equal(vocab_build(&vocab, corpus, &options, pool), 0);
        assert_int_equal(vocab.tokens, TOKENS);
        struct seen before = {UINT64_MAX, 0};
        for (uint64_t row = 0; row < vocab.size; row++) {
            const char *word = vocab_word(&vocab, row, NULL);
            uint64_t number = strtoul(word + (strncmp(word, prefix, strlen(prefix)) ? 0 : strlen(prefix)), NULL, 10);
            if (number >= NUMBERS)
                number /= 1000;
            else if (number % 5 == 0)
                number /= 1000; /* these numbers are 0 .. 8 times 1,000 */
            assert_int_equal(vocab.counts[row], seen[number].count);
            int falls = before.count > seen[number].count, later = !row || before.first < seen[number].first;
            assert_true(options.order == ORDER_FIRST_SEEN ? later
                                                          : falls || (before.count == seen[number].count && later));
            before = seen[number];
        }
        vocab_release(&vocab);
        corpus_close(corpus);
        pool_close(pool);
    }
    free(seen);
}

static void counts_are_those_of_a_plain_count(void **state) {
    static const char *const prefixes[] = {"", "Q", "user-id", "username", "a1b"};
    for (unsigned i = 0; i < sizeof prefixes / sizeof *prefixes; i++) counts_agree(prefixes[i]);
}

static void the_first_integer_chooses_the_prefix(void **state) {
    static const struct {
        const char *word, *prefix;
    } words[] = {{"word", NULL}, {"x007", NULL}, {"username1", NULL}, {"x99999999", NULL}, {"u12", "u"}, {"v1", "u"}, {"3", "u"}};
    struct integer_counts counts = {.size = 0};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        char word[16] = {0};
        strcpy(word, words[i].word);
        struct integer_prefix prefix = integer_counts_prefix(&counts, word, strlen(word));
        assert_int_equal(prefix.known, words[i].prefix != NULL);
        assert_int_equal(prefix.length, words[i].prefix ? strlen(words[i].prefix) : 0);
    }
    struct integer_prefix prefix = integer_counts_prefix(&counts, "u0\0\0\0\0\0\0", 2);
    assert_int_equal(integer_behind(&prefix, "u120 90 ", 4), 120);
    assert_int_equal(integer_behind(&prefix, "u 120 90", 1), NO_INTEGER);
    assert_int_equal(integer_behind(&prefix, "u012    ", 4), NO_INTEGER);
    assert_int_equal(integer_behind(&prefix, "v12     ", 3), NO_INTEGER);
    assert_int_equal(integer_behind(&prefix, "12      ", 2), NO_INTEGER);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_one_spelling),
        IN_SCRATCH(rows_are_found_at_their_places),
        IN_SCRATCH(counts_are_those_of_a_plain_count),
        cmocka_unit_test(the_first_integer_chooses_the_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
