/* Exact steps with frozen rows must equal steps without, after which the frozen rows get their old bytes back. Shapes, rules,
 * losses and the frozen rows are random. */
#include "tests/testing.h"

#include "kernels/backend.h"

enum { ROWS = 70, DIM = 12, BLOCKS = 60, MOST_T = 5, MOST_C = 9, STEPS = 4, WORDS = (ROWS + 31) / 32 };

#include "random_blocks.h"

/* ---- two tables ---- */

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct record_layout layout;
    char packed[2][ROWS * 4 * (DIM * 4 + 1)]; /* records of both sides, as read last */
};

static void put_weight(char *record, enum value_type type, int column, float value) {
    uint16_t kept = bfloat16_nearest(value);
    if (type == VALUE_FLOAT32) memcpy(record + column * (int)sizeof value, &value, sizeof value);
    else memcpy(record + column * (int)sizeof kept, &kept, sizeof kept);
}

static void open_model(struct model *m, unsigned threads, const struct rule_options *rule, uint32_t (*frozen)[WORDS],
                       uint32_t seed) {
    struct backend_options options = {.threads = threads, .depth = 1};
    m->layout = record_layout_make(rule, DIM);
    assert_int_equal(backend_cpu.open(&m->backend, &options), 0);
    srand(seed);
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = {.name = "rows", .rows = ROWS, .layout = m->layout, .frozen = frozen ? frozen[side] : NULL};
        memset(m->packed[side], 0, sizeof m->packed[side]);
        for (uint64_t row = 0; row < ROWS; row++)
            for (int i = 0; i < DIM; i++)
                put_weight(m->packed[side] + row * m->layout.packed, m->layout.field[RECORD_WEIGHTS].type, i,
                           (float)rand() / (float)RAND_MAX - 0.5f);
        assert_int_equal(backend_cpu.table_open(m->backend, &spec, &m->table[side]), 0);
        assert_int_equal(backend_cpu.table_write(m->backend, m->table[side], 0, ROWS, m->packed[side]), 0);
    }
}

/* All choices of a step. */
struct way {
    const struct rule_options *rule;
    struct loss_options loss;
    int mean;
};

static struct step_result step(struct model *m, const struct batch_view *view, const struct way *way, uint64_t number) {
    struct step_result result;
    struct step_request go = {.target = m->table[0],
                              .context = m->table[1],
                              .rule = way->rule,
                              .loss = way->loss,
                              .lr = 0.05,
                              .global_step = number,
                              .mean = way->mean};
    assert_int_equal(backend_cpu.set_batch(m->backend, 0, view), 0);
    assert_int_equal(backend_cpu.step(m->backend, 0, &go), 0);
    assert_int_equal(backend_cpu.result(m->backend, 0, &result), 0);
    for (int side = 0; side < 2; side++)
        assert_int_equal(backend_cpu.table_read(m->backend, m->table[side], 0, ROWS, m->packed[side]), 0);
    return result;
}

static int is_frozen(const uint32_t *bits, uint64_t row) {
    return bits[row / 32] >> row % 32 & 1;
}

/* Copies the frozen rows of `frozen_one` to `free_one`, the model that was trained without freezing. */
static void give_back(struct model *free_one, const struct model *frozen_one, uint32_t (*frozen)[WORDS]) {
    for (int side = 0; side < 2; side++)
        for (uint64_t row = 0; row < ROWS; row++) {
            uint64_t at = row * free_one->layout.packed;
            if (!is_frozen(frozen[side], row)) continue;
            memcpy(free_one->packed[side] + at, frozen_one->packed[side] + at, free_one->layout.packed);
            assert_int_equal(backend_cpu.table_write(free_one->backend, free_one->table[side], row, 1,
                                                     free_one->packed[side] + at), 0);
        }
}

static void choose_frozen(uint32_t frozen[2][WORDS]) {
    for (int side = 0; side < 2; side++) {
        uint32_t share = below(5); /* 0: no row is frozen; 1: all rows; 2, 3, 4: about 3, 5 or 7 of 8 rows */
        for (int row = 0; row < ROWS; row++) {
            uint32_t bit = 1u << row % 32;
            int yes = share == 1 || (share > 1 && below(8) < share * 2 - 1);
            frozen[side][row / 32] = yes ? frozen[side][row / 32] | bit : frozen[side][row / 32] & ~bit;
        }
    }
}

static void frozen_rows_stay_and_others_get_the_same_bytes(void **state) {
    for (uint32_t trial = 0; trial < 600; trial++) {
        struct rule_options rule = {.rule = (int)(trial % RULE_COUNT), .eps = 1e-8, .rho = 0.9, .alpha = 0.9, .beta1 = 0.9,
                                    .beta2 = 0.999, .lr = 0.01, .eta_minus = 0.5, .eta_plus = 1.2, .step_min = 1e-6,
                                    .step_max = 50, .t0 = 1e6, .clip = trial % 3 ? 0 : 0.1, .weight_decay = trial % 2 ? 0.01 : 0};
        static struct model free_one, frozen_one, first;
        static struct batch batch;
        uint32_t frozen[2][WORDS] = {{0}};
        const struct example_pool pool = {.on = trial % 7 == 3, .whole = trial % 2};
        const struct way way = {.rule = &rule,
                                .loss = {.kind = trial % 3 ? LOSS_LOGISTIC : (enum loss_kind)below(4),
                                         .score = (enum loss_score)below(2),
                                         .temperature = trial % 2 ? 0.5f : 1,
                                         .margin = 0.1f,
                                         .negative_weight = 2,
                                         .negative_power = trial % 4 == 3 ? 1.2f : 0,
                                         .weighted = trial % 8 < 3},
                                .mean = trial % 5 == 0};
        rule.count_rows = trial % 4 && rule_counts(&rule);
        rule.precision = (int)below(2), rule.state_precision = (int)below(2);
        choose_frozen(frozen);
        open_model(&free_one, 1, &rule, NULL, trial);
        open_model(&frozen_one, 1 + below(3), &rule, frozen, trial);
        first = frozen_one;
        for (uint64_t number = 0; number < STEPS; number++) {
            struct batch_view view = fill_batch(&batch);
            view.pool = pool;
            struct step_result all = step(&free_one, &view, &way, number);
            struct step_result left = step(&frozen_one, &view, &way, number);
            assert_true(left.examples == all.examples && left.terms <= all.terms);
            assert_true(way.loss.negative_power > 0 || left.loss <= all.loss * (1 + 1e-12));
            give_back(&free_one, &frozen_one, frozen);
            for (int side = 0; side < 2; side++)
                assert_memory_equal(free_one.packed[side], frozen_one.packed[side], ROWS * first.layout.packed);
        }
        for (int side = 0; side < 2; side++)
            for (uint64_t row = 0; row < ROWS; row++)
                if (is_frozen(frozen[side], row))
                    assert_memory_equal(first.packed[side] + row * first.layout.packed,
                                        frozen_one.packed[side] + row * first.layout.packed, first.layout.packed);
        backend_cpu.close(free_one.backend);
        backend_cpu.close(frozen_one.backend);
    }
}

/* The loss of held-out examples includes pairs of frozen rows; a training step computes no pair of two frozen rows. */
static void what_is_left_out(void **state) {
    static struct model m;
    struct rule_options rule = {.rule = RULE_SGD};
    uint32_t frozen[2][WORDS] = {{1u << 0}, {1u << 1 | 1u << 2}}; /* frozen: target 0; contexts 1 and 2 */
    const uint64_t target_starts[] = {0, 1, 2, 4}, context_starts[] = {0, 2, 5, 7};
    const uint32_t positives[] = {1, 1, 1}, targets[] = {0, 0, 0, 5}, contexts[] = {1, 2, 1, 3, 2, 2, 1};
    const float weights[] = {2, 0, 3, 0, 0, 5, 0};
    const struct batch_view view = {.blocks = 3,
                                    .target_starts = target_starts,
                                    .context_starts = context_starts,
                                    .positives = positives,
                                    .target_ids = targets,
                                    .context_ids = contexts,
                                    .weights = weights};
    struct step_result result;
    open_model(&m, 1, &rule, frozen, 1);
    struct step_request go = {.target = m.table[0], .context = m.table[1], .rule = &rule, .lr = 0.1, .loss_only = 1};
    assert_int_equal(backend_cpu.set_batch(m.backend, 0, &view), 0);
    assert_int_equal(backend_cpu.step(m.backend, 0, &go), 0);
    assert_int_equal(backend_cpu.result(m.backend, 0, &result), 0);
    assert_true(result.terms == 2 + 3 + 4 && result.pairs == 1 + 1 + 2);
    result = step(&m, &view, &(struct way){.rule = &rule}, 0);
    assert_int_equal(result.terms, 0 + 1 + 2); /* terms of the three blocks: none; target 0 with context 3, a negative; target 5
                                                * with both contexts */
    assert_int_equal(result.pairs, 0 + 0 + 1);
    assert_int_equal(result.examples, 3);
    struct batch_view left;
    assert_int_equal(backend_cpu.batch_view(m.backend, 0, &left), 0);
    assert_true(left.positives[1] == 1 && left.weights[left.context_starts[1]] == 5);
    backend_cpu.close(m.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_rows_stay_and_others_get_the_same_bytes),
        cmocka_unit_test(what_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
