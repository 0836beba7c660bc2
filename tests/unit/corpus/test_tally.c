#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/tally.h"
#include "tests/unit/scratch.h"

#include <cmocka.h>

static struct tally tally[1];

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
    assert_int_equal(tally_open(tally, 0), 0);
    for (char behind = 0; behind < 4; behind++)
        for (uint64_t length = 1; length <= sizeof word; length++) assert_int_equal(meet(word, length, behind)->count, behind + 1);
    assert_int_equal(tally->words.size, sizeof word);
    assert_int_equal(meet("a\0", 2, 0)->count, 1); /* not the word "a" */
    assert_int_equal(meet("a\0b", 3, 0)->count, 1);
    word[40] = 'x'; /* a long word differs by its bytes */
    assert_int_equal(meet(word, 50, 0)->count, 1);
    while (!tally_is_full(tally)) meet(word, (uint64_t)sprintf(word, "%d", (int)tally->words.size), 0);
    tally_make_room(tally); /* at its largest size: it is emptied */
    assert_int_equal(meet(word, 50, 0)->count, 1);
    assert_int_equal(tally->words.size, 1);
    tally_close(tally);
}

/* More words than a new tally has slots, with equal beginnings. */
static void a_tally_that_grows_knows_all_its_words(void **state) {
    char word[32];
    assert_int_equal(tally_open(tally, 1 << 24), 0);
    for (int round = 1; round < 3; round++)
        for (unsigned i = 0; i < 3 * TALLY_SLOTS; i++) {
            if (round == 1 && tally_is_full(tally)) tally_make_room(tally);
            uint64_t length = (uint64_t)sprintf(word, i % 2 ? "w%u" : "a longer word %u", i);
            struct tally_slot *slot = meet(word, length, ' ');
            assert_int_equal(slot->count, round);
            assert_int_equal(slot->word, i + 1);
            assert_string_equal(words_get(&tally->words, i, NULL), word);
            assert_ptr_equal(&tally->slots[tally->of[i].slot], slot);
        }
    tally_close(tally);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_ends_where_its_length_says),
        cmocka_unit_test(a_tally_that_grows_knows_all_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
