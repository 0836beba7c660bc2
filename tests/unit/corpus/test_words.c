#include "tests/testing.h"

#include "corpus/words.h"
#include "tests/unit/scratch.h"
#include "tests/unit/sentence.h"

static int64_t add(struct words *words, const char *word) {
    return words_add(words, words_hash(word, strlen(word)), word, strlen(word));
}
static int64_t find(const struct words *words, const char *word) {
    return words_find(words, words_hash(word, strlen(word)), word, strlen(word));
}
static const char *numbered(uint64_t number) {
    static char word[24];
    sprintf(word, "w%" PRIu64, number);
    return word;
}

/* The number of words passes each size at which the table grows. */
static void words_are_numbered_as_they_come(void **state) {
    struct words words = {0};
    assert_int_equal(find(&words, "w0"), -1);
    for (uint64_t n = 0; n < 50000; n++) {
        assert_int_equal(add(&words, numbered(n)), n);
        assert_true(words.size * 4 <= words.slot_count * 3);
    }
    for (uint64_t n = 0; n < 50000; n++) {
        uint64_t length;
        assert_int_equal(add(&words, numbered(n)), n);
        assert_string_equal(words_get(&words, n, &length), numbered(n));
        assert_int_equal(length, strlen(numbered(n)));
        assert_int_equal(find(&words, numbered(n + 50000)), -1);
    }
    assert_int_equal(words.size, 50000);
    words_release(&words);
    words_release(&words);
}

/* All words have the same tag and hash to the table's last slot, so that the search continues at its first slots. */
static void words_of_one_hash_are_told_apart(void **state) {
    static const uint64_t hashes[] = {0, 7, UINT32_MAX, UINT64_MAX};
    char word[400];
    memset(word, 'x', sizeof word);
    for (int h = 0; h < 4; h++) {
        struct words words = {0};
        for (int pass = 0; pass < 2; pass++)
            for (uint64_t length = 0; length < sizeof word; length++)
                assert_int_equal(words_add(&words, hashes[h], word, length), length);
        for (uint64_t n = 0; n < sizeof word; n++) {
            uint64_t length;
            assert_memory_equal(words_get(&words, n, &length), word, n);
            assert_int_equal(length, n);
            assert_int_equal(words_find(&words, hashes[h], word, n), n);
        }
        assert_int_equal(words_find(&words, hashes[h], "y", 1), -1);
        words_release(&words);
    }
}

static void any_bytes_are_a_word(void **state) {
    struct words words = {0};
    assert_int_equal(words_add(&words, 1, "a\0b", 3), 0);
    assert_int_equal(words_add(&words, 1, "a\0c", 3), 1);
    assert_int_equal(words_add(&words, 1, "a", 1), 2);
    assert_int_equal(words_add(&words, 1, "a\0", 2), 3);
    assert_int_equal(words_add(&words, 1, "", 0), 4);
    assert_int_equal(words_find(&words, 1, "a\0c", 3), 1);
    assert_int_equal(words_find(&words, 1, "", 0), 4);
    words_release(&words);
}

static void cleared_words_are_gone(void **state) {
    struct words words = {0};
    words_clear(&words);
    for (uint64_t n = 0; n < 2000; n++) add(&words, numbered(n));
    words_clear(&words);
    assert_int_equal(words.size, 0);
    assert_int_equal(find(&words, "w7"), -1);
    assert_int_equal(add(&words, "w1999"), 0);
    assert_int_equal(find(&words, "w1999"), 0);
    words_release(&words);
}

/* ---- many look-ups side by side ---- */

static void look_up(const struct words *words, const uint64_t *wanted, unsigned count, uint32_t *numbers) {
    struct word_query queries[WORDS_BATCH];
    char text[WORDS_BATCH][24];
    for (unsigned i = 0; i < count; i++) {
        strcpy(text[i], numbered(wanted[i]));
        words_ask(words, &queries[i], words_hash(text[i], strlen(text[i])), text[i], strlen(text[i]));
    }
    words_find_batch(words, queries, count, numbers);
}

static void a_batch_of_look_ups_finds_what_single_ones_find(void **state) {
    enum { MANY = 20000 };
    struct words words = {0};
    uint64_t wanted[WORDS_BATCH];
    uint32_t numbers[WORDS_BATCH];
    for (unsigned i = 0; i < WORDS_BATCH; i++) wanted[i] = i;
    look_up(&words, wanted, WORDS_BATCH, numbers);
    for (unsigned i = 0; i < WORDS_BATCH; i++) assert_int_equal(numbers[i], WORDS_ABSENT);
    for (uint64_t n = 0; n < MANY; n++) add(&words, numbered(n));
    for (int round = 0; round < 500; round++) {
        unsigned count = 1 + scratch_random(WORDS_BATCH);
        for (unsigned i = 0; i < count; i++) wanted[i] = scratch_random(2 * MANY);
        look_up(&words, wanted, count, numbers);
        for (unsigned i = 0; i < count; i++) assert_int_equal(numbers[i], wanted[i] < MANY ? wanted[i] : WORDS_ABSENT);
    }
    words_release(&words);
}

/* All words have the same tag, so a batch must search past the first word with that tag. */
static void a_batch_tells_words_of_one_hash_apart(void **state) {
    struct words words = {0};
    struct word_query queries[4];
    uint32_t numbers[4];
    static const char *const names[] = {"c", "a", "d", "b"};
    for (int i = 0; i < 3; i++) words_add(&words, UINT32_MAX, &"abc"[i], 1);
    for (int i = 0; i < 4; i++) words_ask(&words, &queries[i], UINT32_MAX, names[i], 1);
    words_find_batch(&words, queries, 4, numbers);
    assert_int_equal(numbers[0], 2);
    assert_int_equal(numbers[1], 0);
    assert_int_equal(numbers[2], WORDS_ABSENT);
    assert_int_equal(numbers[3], 1);
    words_release(&words);
}

/* ---- many words at once ---- */

static void words_put_in_at_once_are_found_after_indexing(void **state) {
    static const uint64_t sizes[] = {0, 1, 2, 31, 32, 33, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct words words = {0};
        uint64_t first, again;
        assert_int_equal(words_reserve(&words, sizes[s], 24 * sizes[s] + 1), 0);
        for (uint64_t n = 0; n < sizes[s]; n++) words_append(&words, numbered(n), strlen(numbered(n)));
        assert_int_equal(find(&words, "w0"), -1);
        for (int pass = 0; pass < 2; pass++) assert_int_equal(words_index(&words, NULL, &first, &again), 0);
        for (uint64_t n = 0; n < sizes[s]; n++) assert_int_equal(find(&words, numbered(n)), n);
        assert_int_equal(find(&words, numbered(sizes[s])), -1);
        assert_int_equal(add(&words, "one more"), sizes[s]);
        words_drop_index(&words);
        assert_int_equal(find(&words, "w0"), -1);
        assert_string_equal(words_get(&words, sizes[s], NULL), "one more");
        words_release(&words);
    }
}

static void a_word_put_in_twice_is_named(void **state) {
    struct words words = {0};
    uint64_t first, again;
    assert_int_equal(words_reserve(&words, 60, 600), 0);
    for (uint64_t n = 0; n < 60; n++) {
        const char *word = numbered(n == 50 ? 3 : n == 55 ? 4 : n);
        words_append(&words, word, strlen(word));
    }
    assert_int_equal(words_index(&words, NULL, &first, &again), 1);
    assert_int_equal(first, 3);
    assert_int_equal(again, 50);
    words_release(&words);
}

/* Threads add their words in any order; the same two words must be reported. */
static void words_are_indexed_alike_by_any_threads(void **state) {
    enum { MANY = 100000, TWICE = 70000 };
    for (unsigned threads = 1; threads < 6; threads += 2)
        for (int twice = 0; twice < 2; twice++) {
            struct pool *pool = pool_open(threads);
            struct words words = {0};
            uint64_t first = 0, again = 0;
            assert_int_equal(words_reserve(&words, MANY, 24 * MANY), 0);
            for (uint64_t n = 0; n < MANY; n++) {
                const char *word = numbered(twice && n >= TWICE ? n - TWICE / 2 : n);
                words_append(&words, word, strlen(word));
            }
            assert_int_equal(words_index(&words, pool, &first, &again), twice);
            if (twice) assert_true(first == TWICE / 2 && again == TWICE);
            for (uint64_t n = 0; n < MANY && !twice; n++) assert_int_equal(find(&words, numbered(n)), n);
            words_release(&words);
            pool_close(pool);
        }
}

/* The table's first 5 GiB of bytes are reserved and never touched, so they take no memory. */
static void words_may_have_more_bytes_than_32_bits_count(void **state) {
    const uint64_t far = (uint64_t)5 << 30;
    struct words words = {.used = far};
    uint64_t length;
    assert_int_equal(words_reserve(&words, 2, far + 6), 0);
    words_append(&words, "a", 1);
    words_append(&words, "bcd", 3);
    assert_int_equal(words_offset(&words, 1), far + 2);
    assert_string_equal(words_get(&words, 1, &length), "bcd");
    assert_int_equal(length, 3);
    words.used = ((uint64_t)1 << 40) - 4;
    assert_int_equal(words_put(&words, "efg", 3), -1);
    sentence_holds("more than 2^40");
    assert_int_equal(words_reserve(&words, 2, (uint64_t)1 << 40), -1);
    words_release(&words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_numbered_as_they_come),
        cmocka_unit_test(words_of_one_hash_are_told_apart),
        cmocka_unit_test(any_bytes_are_a_word),
        cmocka_unit_test(cleared_words_are_gone),
        cmocka_unit_test(a_batch_of_look_ups_finds_what_single_ones_find),
        cmocka_unit_test(a_batch_tells_words_of_one_hash_apart),
        cmocka_unit_test(words_put_in_at_once_are_found_after_indexing),
        cmocka_unit_test(a_word_put_in_twice_is_named),
        cmocka_unit_test(words_are_indexed_alike_by_any_threads),
        cmocka_unit_test(words_may_have_more_bytes_than_32_bits_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
