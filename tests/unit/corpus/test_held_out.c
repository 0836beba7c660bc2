#include "tests/testing.h"

#include "base/report.h"
#include "corpus/held_out.h"

#include "tests/unit/sentence.h"

/* Lists of 1, 2, 3 .. items. Before its items, each list has its own row, 1000 + its number. */
enum { LISTS = 60, TOKENS = LISTS * (LISTS + 1) / 2 + LISTS };
static uint32_t ids[TOKENS];
static uint64_t starts[LISTS + 1];

static struct idstream make_lists(void) {
    uint64_t at = 0;
    for (uint32_t list = 0; list < LISTS; list++) {
        ids[at++] = 1000 + list;
        for (uint32_t item = 0; item <= list; item++) ids[at++] = item;
        starts[list + 1] = at;
    }
    return (struct idstream){.ids = ids, .starts = starts, .tokens = TOKENS, .sentences = LISTS, .checksum = 7};
}

/* Checks that a list's held-out items and trained items together are the whole list, each part in the list's order. */
static void assert_parts(const struct held_out *h, uint64_t list, uint64_t least) {
    uint64_t trained = h->trained.starts[list], out = h->starts[list];
    for (uint64_t at = starts[list]; at < starts[list + 1]; at++) {
        int is_out = out < h->starts[list + 1] && h->ids[out] == ids[at];
        if (is_out)
            out++;
        else
            assert_int_equal(h->trained.ids[trained++], ids[at]);
    }
    assert_int_equal(out, h->starts[list + 1]);
    assert_int_equal(trained, h->trained.starts[list + 1]);
    assert_true(trained - h->trained.starts[list] >= least || h->starts[list] == out);
}

static void a_share_of_each_list_is_set_apart(void **state) {
    struct idstream whole = make_lists();
    struct held_out h;
    assert_int_equal(held_out_split(&h, &whole, 1, 0.1, 1), 0);
    assert_int_equal(h.trained.tokens + h.starts[LISTS], TOKENS);
    assert_int_equal(h.trained.checksum, 7);
    for (uint64_t list = 0; list < LISTS; list++) {
        uint64_t count = h.starts[list + 1] - h.starts[list], items = list + 1;
        assert_parts(&h, list, 3);
        assert_int_equal(h.trained.ids[h.trained.starts[list]], 1000 + list);
        assert_true(items <= 2 ? !count : count == items / 10 || count == items / 10 + 1);
    }
    assert_in_range(h.starts[LISTS], TOKENS / 10 - 25, TOKENS / 10 + 25);
    held_out_release(&h);
    held_out_release(&h);
}

/* The weights of trained items stay with their ids. */
static void weights_stay_with_their_ids(void **state) {
    static float weights[TOKENS];
    struct idstream whole = make_lists();
    struct held_out h;
    for (uint64_t i = 0; i < TOKENS; i++) weights[i] = (float)ids[i] / 8;
    whole.weights = weights, whole.weighed = PAIR_WEIGHTS_LOG;
    for (int own = 0; own < 2; own++) {
        assert_int_equal(held_out_split(&h, &whole, own, 0.3, 1), 0);
        assert_int_equal(h.trained.weighed, PAIR_WEIGHTS_LOG);
        for (uint64_t i = 0; i < h.trained.tokens; i++) assert_true(h.trained.weights[i] == (float)h.trained.ids[i] / 8);
        held_out_release(&h);
    }
}

static void the_seed_alone_decides(void **state) {
    struct idstream whole = make_lists();
    struct held_out a, b, c;
    assert_int_equal(held_out_split(&a, &whole, 0, 0.5, 3), 0);
    assert_int_equal(held_out_split(&b, &whole, 0, 0.5, 3), 0);
    assert_int_equal(held_out_split(&c, &whole, 0, 0.5, 4), 0);
    assert_memory_equal(a.starts, b.starts, sizeof starts);
    assert_memory_equal(a.ids, b.ids, a.starts[LISTS] * sizeof *a.ids);
    assert_true(memcmp(a.ids, c.ids, 100 * sizeof *a.ids));
    held_out_release(&a);
    held_out_release(&b);
    held_out_release(&c);
}

static void refuses_lists_that_can_lose_nothing(void **state) {
    struct idstream whole = make_lists();
    struct held_out h;
    whole.sentences = 2;
    assert_int_equal(held_out_split(&h, &whole, 1, 0.9, 1), -1);
    sentence_holds("train.held_out_items = 0.9 holds out no item");
    held_out_release(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_share_of_each_list_is_set_apart),
                                       cmocka_unit_test(weights_stay_with_their_ids),
                                       cmocka_unit_test(the_seed_alone_decides),
                                       cmocka_unit_test(refuses_lists_that_can_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
