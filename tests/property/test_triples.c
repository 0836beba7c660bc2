/* Tests batches of triples on the CPU: each triple occurs in each direction once an epoch, is held out in both directions or none, and every row
 * can be a negative. test_shared.c compares their steps with the formulas. */
#include "tests/testing.h"

#include "shared_sources.h"

static void each_triple_is_an_example_in_both_directions(void **state) {
    struct backend *backend = open_cpu(3);
    for (int i = 0; i < 4; i++) {
        int directions = 1 + i % 2, tied = i / 2;
        struct example_source source = triples(40, PRODUCT_REAL, tied);
        uint64_t count = (uint64_t)directions * TOKENS / 3, blocks = 0;
        static int met[TOKENS / 3];
        memset(met, 0, sizeof met);
        source.reciprocal = directions == 2;
        backend_cpu.source(backend, &source);
        assert_int_equal(example_count(&source), count);
        for (uint64_t first = 0; first < count; first += 130) {
            struct batch_view view = make(backend, 4, first, count - first < 130 ? count - first : 130, 0);
            for (uint64_t b = 1; b < view.blocks; b++) {
                const uint32_t *targets = view.target_ids + view.target_starts[b], *contexts = view.context_ids + view.context_starts[b];
                uint32_t head = tied ? contexts[1] : targets[0], relation = targets[!tied], tail = contexts[0];
                assert_int_equal(view.target_starts[b], (2 - tied) * (b - 1));
                assert_int_equal(view.context_starts[b], 40 + (1 + tied) * (b - 1));
                int back = directions == 2 && relation >= ITEMS + LISTS / 2;
                for (uint64_t t = 0; t < TOKENS / 3; t++)
                    met[t] += ids[3 * t] == (back ? tail : head) && ids[3 * t + 2] == (back ? head : tail) &&
                              ids[3 * t + 1] == relation - (back ? LISTS / 2 : 0);
            }
            blocks += view.blocks - 1;
        }
        assert_int_equal(blocks, count);
        for (uint64_t t = 0; t < TOKENS / 3; t++) assert_true(met[t] >= directions && met[t] % directions == 0);
    }
    backend_cpu.close(backend);
}

/* A triple that is held out is held out in both directions. */
static void a_triple_is_held_out_as_a_whole(void **state) {
    struct example_source source = triples(40, PRODUCT_COMPLEX, 0);
    struct backend *backend = open_cpu(2);
    uint64_t count = 2 * TOKENS / 3, made[2];
    source.shuffle = 0, source.held_out = 1u << 30;
    backend_cpu.source(backend, &source);
    for (int held_out = 0; held_out < 2; held_out++) {
        struct batch_view view = make(backend, 1, 0, count, held_out);
        made[held_out] = view.blocks - 1;
        for (uint64_t i = 0; i + 1 < view.blocks; i += 2) {
            assert_int_equal(view.target_ids[2 * i], view.context_ids[40 + i + 1]);
            assert_int_equal(view.target_ids[2 * i + 1] + LISTS / 2, view.target_ids[2 * i + 3]);
        }
    }
    assert_true(made[1] > count / 8 && made[0] + made[1] == count);
    backend_cpu.close(backend);
}

static void every_row_can_be_a_negative(void **state) {
    struct example_source source = triples(ITEMS, PRODUCT_REAL, 0);
    struct backend *backend = open_cpu(2);
    source.noise = NOISE_EVERY;
    backend_cpu.source(backend, &source);
    struct batch_view view = make(backend, 1, 0, 9, 0);
    assert_int_equal(view.shared.count, ITEMS);
    for (uint32_t i = 0; i < ITEMS; i++) assert_int_equal(view.context_ids[i], i);
    backend_cpu.close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_triple_is_an_example_in_both_directions),
        cmocka_unit_test(a_triple_is_held_out_as_a_whole),
        cmocka_unit_test(every_row_can_be_a_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
