#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/tally.h"
#include "tests/unit/scratch.h"

#include <cmocka.h>

static struct tally *tally;

/* Counts a word that other bytes follow in memory. Returns its slot. */
static struct tally_slot *meet(const char *word, uint64_t length, char behind) {
    static char bytes[200];
    memset(bytes, behind, sizeof bytes);
    memcpy(bytes, word, length);
    const struct tally_query query = tally_ask(bytes, length);
    struct tally_slot *slot = tally_find(tally, &query);
    if (!slot->word) assert_int_equal(tally_add(tally, slot, &query, 0), 0);
    slot->count++;
    return slot;
}

static void a_word_ends_where_its_length_says(void **state) {
    char word[64];
    for (uint64_t i = 0; i < sizeof word; i++) word[i] = (char)('a' + i % 3);
    tally = test_calloc(1, sizeof *tally);
    for (char behind = 0; behind < 4; behind++)
        for (uint64_t length = 1; length <= sizeof word; length++) assert_int_equal(meet(word, length, behind)->count, behind + 1);
    assert_int_equal(tally->words.size, sizeof word);
    assert_int_equal(meet("a\0", 2, 0)->count, 1); /* another word than "a" */
    assert_int_equal(meet("a\0b", 3, 0)->count, 1);
    word[40] = 'x'; /* two long words that differ in one byte */
    assert_int_equal(meet(word, 50, 0)->count, 1);
    tally_clear(tally);
    assert_int_equal(meet(word, 50, 0)->count, 1);
    assert_int_equal(tally->words.size, 1);
    words_release(&tally->words);
    test_free(tally);
}

/* Fills a tally with as many words as it may hold, all with the same beginning. */
static void a_full_tally_knows_all_its_words(void **state) {
    char word[32];
    tally = test_calloc(1, sizeof *tally);
    for (int round = 1; round < 3; round++)
        for (unsigned i = 0; i < TALLY_MOST; i++) {
            uint64_t length = (uint64_t)sprintf(word, i % 2 ? "w%u" : "a longer word %u", i);
            struct tally_slot *slot = meet(word, length, ' ');
            assert_int_equal(slot->count, round);
            assert_int_equal(slot->word, i + 1);
            assert_string_equal(words_get(&tally->words, i, NULL), word);
        }
    words_release(&tally->words);
    test_free(tally);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_ends_where_its_length_says),
        cmocka_unit_test(a_full_tally_knows_all_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
