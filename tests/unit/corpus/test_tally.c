#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/word_counts.h"
#include "tests/unit/scratch.h"

#include <cmocka.h>

static struct tally tally[1];

/* Makes a query for a word. In memory, other bytes follow the word. */
static struct tally_query ask(const char *word, uint64_t length, char behind) {
    static char bytes[300];
    memset(bytes, behind, sizeof bytes);
    memcpy(bytes, word, length);
    return tally_ask(bytes, length);
}

/* Counts a word, which is added first if the tally lacks it. Returns its slot. */
static struct tally_slot *meet(const char *word, uint64_t length, char behind, uint32_t number) {
    const struct tally_query query = ask(word, length, behind);
    assert_int_equal(tally_add(tally, &query, number), 0);
    struct tally_slot *slot = tally_find(tally, &query);
    slot->count++;
    return slot;
}

static void a_word_ends_where_its_length_says(void **state) {
    char word[2 * TALLY_LONGEST];
    for (uint64_t i = 0; i < sizeof word; i++) word[i] = (char)('a' + i % 3);
    assert_int_equal(tally_open(tally, 0), 0);
    for (char behind = 0; behind < 4; behind++)
        for (uint64_t length = 1; length <= 64; length++) assert_int_equal(meet(word, length, behind, 7)->count, behind + 1);
    assert_int_equal(tally->size, 64);
    assert_int_equal(meet("a\0", 2, 0, 7)->count, 1); /* not the word "a" */
    assert_int_equal(meet("a\0b", 3, 0, 7)->count, 1);
    const struct tally_query longest = ask(word, TALLY_LONGEST, 0);
    assert_int_equal(meet(word, TALLY_LONGEST, 0, 8)->number, 8);
    assert_int_equal(tally_find(tally, &longest)->end, TALLY_LONGEST + 1);
    word[40] = 'x'; /* a long word differs by its bytes */
    assert_int_equal(meet(word, 50, 0, 9)->count, 1);
    const struct tally_query longer = ask(word, TALLY_LONGEST + 1, 0);
    assert_int_equal(tally_add(tally, &longer, 1), 0);
    assert_int_equal(tally_find(tally, &longer)->end, 0);
    tally_close(tally);
}

static void a_full_tally_takes_words_after_it_is_doubled_or_emptied(void **state) {
    char word[32];
    uint64_t length = 0;
    assert_int_equal(tally_open(tally, 4 * TALLY_SLOTS * sizeof *tally->slots), 0);
    for (uint32_t n = 0; n < 4 * TALLY_SLOTS; n++) {
        length = (uint64_t)sprintf(word, n % 2 ? "w%u" : "a longer word %u", n);
        const struct tally_query query = ask(word, length, ' ');
        int full = tally_is_full(tally);
        assert_int_equal(tally_add(tally, &query, n), 0);
        assert_int_equal(tally_find(tally, &query)->end != 0, !full);
        if (full && !tally_double(tally)) break;
    }
    assert_int_equal(tally->slot_count, 4 * TALLY_SLOTS);
    assert_true(tally_is_full(tally));
    uint64_t found = 0;
    for (uint32_t n = 0; n < 4 * TALLY_SLOTS; n++) {
        length = (uint64_t)sprintf(word, n % 2 ? "w%u" : "a longer word %u", n);
        const struct tally_query query = ask(word, length, ' ');
        const struct tally_slot *slot = tally_find(tally, &query);
        if (!slot->end) continue;
        assert_int_equal(slot->number, n);
        found++;
    }
    assert_int_equal(found, tally->size);
    tally_clear(tally);
    assert_int_equal(meet(word, length, 0, 5)->number, 5);
    assert_int_equal(tally->size, 1);
    tally_close(tally);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_ends_where_its_length_says),
        cmocka_unit_test(a_full_tally_takes_words_after_it_is_doubled_or_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
