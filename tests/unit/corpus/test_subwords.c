#include "tests/testing.h"

#include "corpus/vocab.h"
#include "tests/unit/scratch.h"

#include "kernels/draws.h"

/* ---- the form ---- */

static void lengths_are_two_numbers(void **state) {
    struct subword_form form;
    assert_int_equal(subwords_read_lengths("3-6", &form), 0);
    assert_int_equal(form.min * 100 + form.max, 306);
    assert_int_equal(subwords_read_lengths("1-255", &form), 0);
    assert_int_equal(subwords_read_lengths("none", &form), 0);
    assert_int_equal(form.max, 0);
    static const char *const wrong[] = {"",      "3",     "6-3",  "0-3", "3-",    "-6",
                                        "3-256", "3 - 6", "3-6x", "a-b", "3-6-9", "99999999999-3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(subwords_read_lengths(wrong[i], &form), -1);
}

static void buckets_are_a_number_or_used(void **state) {
    struct subword_form form;
    assert_int_equal(subwords_read_buckets("2147483647", &form), 0);
    assert_int_equal(form.buckets, 2147483647);
    assert_false(form.used);
    assert_int_equal(subwords_read_buckets("used", &form), 0);
    assert_int_equal(form.buckets, 2000000);
    assert_true(form.used);
    static const char *const wrong[] = {"", "0", "-1", "2147483648", "all", "1.5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(subwords_read_buckets(wrong[i], &form), -1);
}

/* ---- n-grams ---- */

struct listed {
    char text[4096];
    size_t used;
    uint64_t count;
};

static int list_ngram(void *user, const char *ngram, uint64_t length, uint32_t bucket) {
    struct listed *to = user;
    to->used +=
        (size_t)snprintf(to->text + to->used, sizeof to->text - to->used, "%.*s:%u ", (int)length, ngram, bucket);
    to->count++;
    return 0;
}

static const char *ngrams_of(struct listed *listed, uint32_t min, uint32_t max, const char *word) {
    const struct subword_form form = {.min = min, .max = max, .buckets = 2000000};
    *listed = (struct listed){.count = 0};
    assert_int_equal(subwords_visit(&form, word, strlen(word), list_ngram, listed), 0);
    return listed->text;
}

/* An n-gram has the same hash (bucket) as in fasttext 0.9.2 and gensim. */
static void ngrams_are_those_of_fasttext(void **state) {
    struct listed listed;
    assert_string_equal(ngrams_of(&listed, 3, 4, "where"),
                        "<wh:167652 <whe:989715 whe:420941 wher:312621 her:1473420 here:1540811 "
                        "ere:1529033 ere>:1568469 re>:867498 ");
    assert_string_equal(
        ngrams_of(&listed, 3, 4, "\xC3\xA9t\xC3\xA9"),
        "<\xC3\xA9t:1908133 <\xC3\xA9t\xC3\xA9:59617 \xC3\xA9t\xC3\xA9:187927 \xC3\xA9t\xC3\xA9>:196363 "
        "t\xC3\xA9>:1291535 ");
}

/* '<' or '>' alone is not an n-gram, but any other single character is. */
static void bounds_alone_are_left_out(void **state) {
    struct listed listed;
    ngrams_of(&listed, 1, 1, "ab");
    assert_int_equal(listed.count, 2);
    ngrams_of(&listed, 1, 2, "a");
    assert_int_equal(listed.count, 3); /* the n-grams <a, a and a> */
    ngrams_of(&listed, 3, 6, "");
    assert_int_equal(listed.count, 0);
    ngrams_of(&listed, 3, 6, SUBWORDS_END);
    assert_int_equal(listed.count, 0);
}

/* A UTF-8 continuation byte belongs to the character before it, even without a start byte, as in fastText. */
static void invalid_utf8_counts_as_fasttext_counts_it(void **state) {
    struct listed listed;
    ngrams_of(&listed, 1, 1, "\xFF\xFE"); /* two bytes that each begin a character */
    assert_int_equal(listed.count, 2);
    ngrams_of(&listed, 3, 3, "\x80\x80\x80"); /* three continuation bytes, which belong to the '<' before them */
    assert_int_equal(listed.count, 0);
    ngrams_of(&listed, 2, 2, "\x80\x80\x80"); /* the only n-gram of 2 characters: '<' with the three bytes, and '>' */
    assert_int_equal(listed.count, 1);
}

static int count_ngram(void *user, const char *ngram, uint64_t length, uint32_t bucket) {
    ++*(uint64_t *)user;
    return 0;
}

static void long_words_have_all_their_ngrams(void **state) {
    const struct subword_form form = {.min = 3, .max = 6, .buckets = 1000};
    static char word[10000];
    uint64_t count = 0, bounded = sizeof word + 2, wanted = 0;
    memset(word, 'x', sizeof word);
    assert_int_equal(subwords_visit(&form, word, sizeof word, count_ngram, &count), 0);
    for (uint64_t n = 3; n <= 6; n++) wanted += bounded - n + 1;
    assert_int_equal(count, wanted);
}

/* ---- rows ---- */

static void make_vocab(struct vocab *vocab, const char *const *words, const uint64_t *counts, uint64_t size) {
    *vocab = (struct vocab){.size = 0};
    assert_int_equal(vocab_reserve(vocab, size, 4096), 0);
    for (uint64_t i = 0; i < size; i++) vocab_append(vocab, words[i], strlen(words[i]), counts[i]);
    assert_int_equal(vocab_index(vocab, "words", NULL), 0);
}

static const char *const words[] = {"the", "other", "there"};
static const uint64_t counts[] = {100, 10, 1};

static int64_t row_of(const struct subwords *s, const char *ngram) {
    uint32_t row = s->row_of[subwords_hash(ngram, strlen(ngram)) % s->form.buckets];
    return row == WORDS_ABSENT ? -1 : (int64_t)row;
}

static void check_rows(const struct subwords *s, const struct vocab *vocab) {
    for (uint64_t i = 0; i < vocab->size; i++) {
        uint32_t *found = NULL;
        uint64_t capacity = 0, length, first = s->starts[i];
        const char *word = vocab_word(vocab, i, &length);
        int64_t count = subwords_of(s, word, length, &found, &capacity);
        assert_int_equal(s->row[first], i);
        assert_int_equal(count, s->starts[i + 1] - first - 1);
        assert_true((uint64_t)count < s->most);
        if (count) assert_memory_equal(found, s->row + first + 1, (size_t)count * sizeof *found);
        free(found);
    }
}

static void rows_of_ngrams_follow_the_words(void **state) {
    struct vocab vocab;
    struct subword_form form = {.min = 3, .max = 4, .buckets = 5000, .used = 1};
    make_vocab(&vocab, words, counts, 3);
    assert_int_equal(subwords_make(&vocab.subwords, &form, &vocab), 0);
    const struct subwords *s = &vocab.subwords;
    check_rows(s, &vocab);
    assert_int_equal(row_of(s, "the"), 3); /* three words, of 111 tokens, have this n-gram */
    assert_true(row_of(s, "<the") < row_of(s, "<oth") && row_of(s, "<oth") < row_of(s, "here"));
    assert_int_equal(row_of(s, "xyz"), -1);
    for (uint64_t i = 1; i < s->rows; i++) assert_true(s->counts[i - 1] >= s->counts[i]);
    assert_int_equal(s->counts[0], 111);
    assert_int_equal(vocab_targets(&vocab), 3 + s->rows);
    uint64_t used = s->rows;
    subwords_release(&vocab.subwords);
    form.used = 0;
    assert_int_equal(subwords_make(&vocab.subwords, &form, &vocab), 0);
    assert_int_equal(s->rows, 5000);
    assert_int_equal(row_of(s, "the"), 3);
    assert_true(row_of(s, "xyz") >= (int64_t)(3 + used));
    subwords_release(&vocab.subwords);
    form.in_order = 1;
    assert_int_equal(subwords_make(&vocab.subwords, &form, &vocab), 0);
    for (uint32_t b = 0; b < 5000; b++) assert_int_equal(s->row_of[b], 3 + b);
    check_rows(s, &vocab);
    vocab_release(&vocab);
}

static void without_ngrams_nothing_is_made(void **state) {
    struct vocab vocab;
    const struct subword_form form = {.max = 0, .buckets = 2000000};
    make_vocab(&vocab, words, counts, 3);
    assert_int_equal(subwords_make(&vocab.subwords, &form, &vocab), 0);
    assert_null(vocab.subwords.starts);
    assert_int_equal(vocab_targets(&vocab), 3);
    assert_int_equal(subwords_bytes(&vocab.subwords), 0);
    vocab_release(&vocab);
}

/* Words of any bytes are tried. Each bucket must have one row, no row may belong to two buckets, and a word's rows must be its
 * own row and the rows of its n-grams. */
static void any_words_and_forms_agree(void **state) {
    for (uint32_t round = 0; round < 200; round++) {
        char text[8][16];
        const char *list[8];
        uint64_t many[8];
        struct vocab vocab;
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t length = 1 + draw_word(7, DRAW_GENERATE, round * 8 + i, 0) % 14;
            for (uint32_t j = 0; j < length; j++)
                text[i][j] = (char)(1 + draw_word(7, DRAW_GENERATE, (round * 8 + i) * 16 + j, 1) % 255);
            text[i][0] = (char)('a' + i); /* makes the words different */
            text[i][length] = 0;
            list[i] = text[i];
            many[i] = draw_word(7, DRAW_GENERATE, round * 8 + i, 2) % 1000;
        }
        uint32_t min = 1 + draw_word(7, DRAW_GENERATE, round, 3) % 5;
        const struct subword_form form = {.min = min,
                                          .max = min + draw_word(7, DRAW_GENERATE, round, 4) % 5,
                                          .buckets = 1 + draw_word(7, DRAW_GENERATE, round, 5) % 300,
                                          .used = round % 2};
        make_vocab(&vocab, list, many, 8);
        assert_int_equal(subwords_make(&vocab.subwords, &form, &vocab), 0);
        const struct subwords *s = &vocab.subwords;
        check_rows(s, &vocab);
        char seen[8 + 300] = {0};
        for (uint32_t b = 0; b < form.buckets; b++) {
            if (s->row_of[b] == WORDS_ABSENT) continue;
            assert_in_range(s->row_of[b], 8, 7 + s->rows);
            assert_int_equal(seen[s->row_of[b]]++, 0);
        }
        vocab_release(&vocab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_two_numbers),
        cmocka_unit_test(buckets_are_a_number_or_used),
        cmocka_unit_test(ngrams_are_those_of_fasttext),
        cmocka_unit_test(bounds_alone_are_left_out),
        cmocka_unit_test(invalid_utf8_counts_as_fasttext_counts_it),
        cmocka_unit_test(long_words_have_all_their_ngrams),
        cmocka_unit_test(rows_of_ngrams_follow_the_words),
        cmocka_unit_test(without_ngrams_nothing_is_made),
        cmocka_unit_test(any_words_and_forms_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
