/* Strips: a walk in either direction must visit each kept word once. A word must be the same in a walk, looked up alone, and
 * wherever in memory the strip's ids are. */
#include "tests/testing.h"

#include "kernels/examples.h"

enum { ROWS = 40, TOKENS = 500, SENTENCES = 30 };

static uint32_t ids[TOKENS], keep[ROWS];
static uint64_t starts[SENTENCES + 1];

static uint32_t drawn(uint64_t number, uint32_t trial) {
    return draw_word(trial, DRAW_GENERATE, number, 0);
}

/* Makes sentences of one word or more. Words are always kept, never kept, or kept by chance. */
static struct example_source random_source(uint32_t trial) {
    for (uint64_t i = 0; i < TOKENS; i++) ids[i] = drawn(i, trial) % ROWS;
    for (uint64_t i = 0; i < ROWS; i++) {
        uint32_t draw = drawn(TOKENS + i, trial);
        keep[i] = draw % 3 == 0 ? UINT32_MAX : draw % 3 == 1 ? 0 : draw;
    }
    starts[0] = 0;
    for (uint64_t i = 1; i < SENTENCES; i++) starts[i] = starts[i - 1] + 1 + drawn(2 * TOKENS + i, trial) % 16;
    starts[SENTENCES] = TOKENS;
    return (struct example_source){.ids = ids,
                                   .starts = starts,
                                   .tokens = TOKENS,
                                   .sentences = SENTENCES,
                                   .rows = ROWS,
                                   .mode = EXAMPLE_WINDOW,
                                   .window = 5,
                                   .shuffle_items = trial % 2,
                                   .keep = trial % 3 ? keep : NULL,
                                   .seed = trial};
}

/* Compares a walk from `at` in direction `by` with single look-ups of the positions from there to the end of the strip. */
static void check_walk(const struct example_source *s, const struct strip *strip, uint64_t number, uint64_t at, int by) {
    struct strip_draws draws = strip_draws();
    struct strip_walk walk = {at, by};
    for (uint64_t next = at + (uint64_t)by; next - strip->start < strip->end - strip->start; next += (uint64_t)by) {
        uint32_t id = strip_word_alone(s, number, next, 3);
        if (id == DRAW_NONE) continue;
        assert_int_equal(strip_next(s, strip, &walk, 3, &draws), id);
        assert_true(walk.at == next);
    }
    assert_int_equal(strip_next(s, strip, &walk, 3, &draws), DRAW_NONE);
}

static void walks_meet_each_kept_word(void **state) {
    for (uint32_t trial = 1; trial <= 60; trial++) {
        struct example_source s = random_source(trial);
        for (uint64_t number = 0; number < SENTENCES; number++) {
            struct strip strip = strip_of(&s, number, 3);
            assert_true(strip.start == starts[number] && strip.end == starts[number + 1]);
            check_walk(&s, &strip, number, strip.start - 1, 1); /* at the first sentence, starting before position 0 */
            for (uint64_t at = strip.start; at < strip.end; at++) {
                check_walk(&s, &strip, number, at, 1);
                check_walk(&s, &strip, number, at, -1);
            }
            check_walk(&s, &strip, number, strip.end, -1);
        }
    }
}

static void ids_may_lie_elsewhere(void **state) {
    struct example_source s = random_source(7);
    uint32_t held[TOKENS];
    for (uint64_t number = 0; number < SENTENCES; number++) {
        struct strip strip = strip_of(&s, number, 3), moved = strip;
        struct strip_draws draws = strip_draws(), others = strip_draws();
        for (uint64_t at = strip.start; at < strip.end; at++) held[at] = ids[at];
        moved.ids = held;
        for (uint64_t at = strip.start; at < strip.end; at++)
            assert_int_equal(strip_word(&s, &strip, at, 3, &draws), strip_word(&s, &moved, at, 3, &others));
    }
}

static void a_documents_row_is_no_word(void **state) {
    for (uint32_t trial = 1; trial <= 60; trial++) {
        struct example_source s = random_source(trial);
        s.documents = 1;
        s.target_only = 4;
        for (uint64_t i = 0; i < SENTENCES; i++) ids[starts[i]] = ROWS - 1 - i % 4;
        for (uint64_t number = 0; number < SENTENCES; number++) {
            struct strip strip = strip_of(&s, number, 3);
            struct strip_draws draws = strip_draws();
            assert_int_equal(example_document(&s, number), ids[starts[number]]);
            check_walk(&s, &strip, number, strip.start - 1, 1);
            for (uint64_t at = strip.start; at < strip.end; at++) {
                uint32_t id = strip_word(&s, &strip, at, 3, &draws);
                assert_true(id == DRAW_NONE || id < ROWS - 4);
                check_walk(&s, &strip, number, at, -1);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_meet_each_kept_word),
        cmocka_unit_test(a_documents_row_is_no_word),
        cmocka_unit_test(ids_may_lie_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
