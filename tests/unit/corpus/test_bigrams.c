#include "tests/testing.h"

#include "base/report.h"
#include "corpus/phrases.h"

#include "tests/unit/sentence.h"

enum { WORDS = 3000, TIMES = 200000 };

/* Returns bigram i of the test. Words with low numbers are drawn more often. Every fifth bigram is a text; the others are two numbers of words. */
static struct bigram bigram_at(uint32_t i) {
    uint32_t draw = i * 2654435761u >> 8, word = draw % WORDS * (draw / WORDS % WORDS) / WORDS;
    char text[16] = "";
    if (i % 5) return bigram_of_words(word, word % 7);
    memcpy(text, &word, sizeof word);
    return bigram_of_text(text, sizeof text);
}

static void add_all(struct bigrams *bigrams) {
    struct bigram met[1000];
    for (uint32_t i = 0; i < TIMES; i += 1000) {
        for (uint32_t j = 0; j < 1000; j++) met[j] = bigram_at(i + j);
        assert_int_equal(bigrams_add(bigrams, met, NULL, 1000, 0), 0);
    }
}

static uint32_t counts[2][WORDS];

static void count_plainly(void) {
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < TIMES; i++) {
        uint32_t draw = i * 2654435761u >> 8;
        counts[i % 5 == 0][draw % WORDS * (draw / WORDS % WORDS) / WORDS]++;
    }
}

static uint32_t count_of(const struct bigrams *bigrams, int text, uint32_t word) {
    char bytes[16] = "";
    memcpy(bytes, &word, sizeof word);
    return bigrams_count(bigrams, text ? bigram_of_text(bytes, sizeof bytes) : bigram_of_words(word, word % 7));
}

static void any_memory_gives_the_same_counts(void **state) {
    static const uint64_t memories[] = {1 << 24, 60000, 40000};
    count_plainly();
    for (int i = 0; i < 3; i++) {
        struct bigrams bigrams;
        uint64_t distinct = 0;
        int sweeps = 0, more = 1;
        bigrams_init(&bigrams, memories[i]);
        for (; more; sweeps++) {
            add_all(&bigrams);
            more = bigrams_next_sweep(&bigrams, 100);
            assert_in_range(more, 0, 1);
        }
        assert_true(i ? sweeps > 1 : sweeps == 1);
        for (int text = 0; text < 2; text++)
            for (uint32_t word = 0; word < WORDS; word++) {
                uint32_t count = count_of(&bigrams, text, word);
                if (counts[text][word] >= 100 || !i) assert_int_equal(count, counts[text][word]);
                distinct += counts[text][word] > 0;
            }
        assert_int_equal(bigrams.distinct, distinct);
        bigrams_release(&bigrams);
    }
}

static void kept_bigrams_are_never_dropped(void **state) {
    struct bigrams bigrams;
    struct bigram one = bigram_of_words(4000000000u, 4000000001u);
    uint32_t count = 3;
    int more = 1;
    for (bigrams_init(&bigrams, 40000); more; more = bigrams_next_sweep(&bigrams, 100)) {
        assert_int_equal(bigrams_add(&bigrams, &one, &count, 1, 1), 0);
        add_all(&bigrams);
    }
    assert_int_equal(bigrams_count(&bigrams, one), 3);
    bigrams_release(&bigrams);
}

static int keeps_texts(void *user, struct bigram bigram, uint32_t count) {
    return bigram.tag > 0 && count > 0;
}

static void a_filter_drops_the_others_and_counts_stop(void **state) {
    struct bigrams bigrams;
    struct bigram one = bigram_of_text("a", 1);
    uint32_t count = BIGRAM_MOST;
    count_plainly();
    bigrams_init(&bigrams, 1 << 24);
    add_all(&bigrams);
    for (int i = 0; i < 2; i++) assert_int_equal(bigrams_add(&bigrams, &one, &count, 1, 0), 0);
    assert_int_equal(bigrams_next_sweep(&bigrams, 1), 0);
    assert_int_equal(bigrams_filter(&bigrams, keeps_texts, NULL), 0);
    assert_int_equal(bigrams_count(&bigrams, one), BIGRAM_MOST);
    for (uint32_t word = 0; word < WORDS; word++) {
        assert_int_equal(count_of(&bigrams, 0, word), 0);
        assert_int_equal(count_of(&bigrams, 1, word), counts[1][word]);
    }
    bigrams_release(&bigrams);
    bigrams_release(&bigrams);
}

static void frequent_bigrams_that_do_not_fit_are_a_failure(void **state) {
    struct bigrams bigrams;
    int more = 1;
    for (bigrams_init(&bigrams, 8000); more > 0; more = bigrams_next_sweep(&bigrams, 1)) {
        struct bigram met[1000];
        int result = 0;
        for (uint32_t i = 0; i < TIMES && !result; i += 1000) {
            for (uint32_t j = 0; j < 1000; j++) met[j] = bigram_at(i + j);
            result = bigrams_add(&bigrams, met, NULL, 1000, 0);
        }
        if (result) break;
    }
    sentence_holds("(phrases.memory)");
    bigrams_release(&bigrams);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_memory_gives_the_same_counts),
        cmocka_unit_test(kept_bigrams_are_never_dropped),
        cmocka_unit_test(a_filter_drops_the_others_and_counts_stop),
        cmocka_unit_test(frequent_bigrams_that_do_not_fit_are_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
