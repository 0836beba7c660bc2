/* Compares tables of bfloat16 with tables of float32 that have the same first numbers: after a step every value must be one of
 * the two bfloat16 neighbours of the float32 result, and its mean over seeds must be that result. Any number of threads must
 * give the same bytes. Rules, losses, and whether weights or state are bfloat16, are random. */
#include "tests/testing.h"

#include "kernels/backend.h"

enum { ROWS = 24, DIM = 19, BLOCKS = 30, MOST_T = 4, MOST_C = 12, SEEDS = 300, FIELDS = 1 + RULE_SLOTS };

#include "random_blocks.h"

/* ---- tables, and their numbers as floats ---- */

typedef float numbers[2][ROWS][FIELDS][DIM];

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct record_layout layout;
    char packed[2][ROWS * 4 * (DIM * FIELDS + 1)];
};

static void put(char *at, enum value_type type, float value) {
    uint16_t half = bfloat16_nearest(value);
    if (type == VALUE_FLOAT32) memcpy(at, &value, sizeof value);
    else memcpy(at, &half, sizeof half);
}

static float get(const char *at, enum value_type type) {
    uint16_t half;
    float value;
    if (type == VALUE_FLOAT32) return memcpy(&value, at, sizeof value), value;
    return memcpy(&half, at, sizeof half), bfloat16_value(half);
}

static char *place_of(struct model *m, int side, uint64_t row, uint32_t field, uint32_t column) {
    const struct record_field *f = &m->layout.field[field];
    return m->packed[side] + row * m->layout.packed + f->packed + column * value_bytes(f->type);
}

/* Write all numbers to the tables, and read them back. */
static void set_numbers(struct model *m, numbers from) {
    memset(m->packed, 0, sizeof m->packed);
    for (int side = 0; side < 2; side++) {
        for (uint64_t row = 0; row < ROWS; row++)
            for (uint32_t f = 0; f <= m->layout.slots; f++)
                for (uint32_t i = 0; i < m->layout.field[f].columns; i++)
                    put(place_of(m, side, row, f, i), m->layout.field[f].type, from[side][row][f][i]);
        assert_int_equal(backend_cpu.table_write(m->backend, m->table[side], 0, ROWS, m->packed[side]), 0);
    }
}

static void read_bytes(struct model *m) {
    for (int side = 0; side < 2; side++)
        assert_int_equal(backend_cpu.table_read(m->backend, m->table[side], 0, ROWS, m->packed[side]), 0);
}

static void get_numbers(struct model *m, numbers to) {
    read_bytes(m);
    for (int side = 0; side < 2; side++)
        for (uint64_t row = 0; row < ROWS; row++)
            for (uint32_t f = 0; f <= m->layout.slots; f++)
                for (uint32_t i = 0; i < m->layout.field[f].columns; i++)
                    to[side][row][f][i] = get(place_of(m, side, row, f, i), m->layout.field[f].type);
}

static void open_model(struct model *m, unsigned threads, const struct rule_options *rule, uint32_t seed,
                       const struct example_source *source) {
    struct backend_options options = {.threads = threads, .depth = 1};
    m->layout = record_layout_make(rule, DIM);
    assert_int_equal(backend_cpu.open(&m->backend, &options), 0);
    if (source) assert_int_equal(backend_cpu.source(m->backend, source), 0);
    for (uint32_t side = 0; side < 2; side++) {
        struct table_spec spec = {.name = "rows", .rows = ROWS, .layout = m->layout, .rounding = {seed, side, 0}};
        assert_int_equal(backend_cpu.table_open(m->backend, &spec, &m->table[side]), 0);
    }
}

/* Makes first numbers that bfloat16 can represent. Slots have values that their rules could make: squares are not negative. */
static void first_numbers(numbers out) {
    for (int side = 0; side < 2; side++)
        for (uint64_t row = 0; row < ROWS; row++)
            for (uint32_t f = 0; f < FIELDS; f++)
                for (uint32_t i = 0; i < DIM; i++) {
                    float value = (float)below(1 << 20) / (1 << 20) + 1e-3f;
                    out[side][row][f][i] = bfloat16_value(bfloat16_nearest(f ? 0.1f * value : value - 0.5f));
                }
}

/* ---- exact steps ---- */

struct way {
    struct rule_options rule;
    struct loss_options loss;
    uint64_t number;
};

static void step(struct model *m, const struct batch_view *view, const struct way *way) {
    struct step_request go = {.target = m->table[0], .context = m->table[1], .rule = &way->rule, .loss = way->loss, .lr = 0.05,
                              .global_step = way->number};
    assert_int_equal(backend_cpu.set_batch(m->backend, 0, view), 0);
    assert_int_equal(backend_cpu.step(m->backend, 0, &go), 0);
}

static struct way choose_way(uint32_t trial) {
    struct way way = {.rule = {.rule = (int)(trial % RULE_COUNT), .eps = 1e-8, .rho = 0.9, .alpha = 0.9, .beta1 = 0.9,
                               .beta2 = 0.999, .lr = 0.01, .eta_minus = 0.5, .eta_plus = 1.2, .step_min = 1e-6, .step_max = 50,
                               .t0 = 1e6, .clip = trial % 3 ? 0 : 0.1, .weight_decay = trial % 2 ? 0.01 : 0,
                               .momentum = trial % 4 == 1 ? 0.9 : 0},
                      .loss = {.kind = trial % 3 ? LOSS_LOGISTIC : (enum loss_kind)below(4), .score = (enum loss_score)below(2),
                               .temperature = 0.5f, .margin = 0.1f, .negative_weight = 2},
                      .number = below(1000)};
    way.rule.count_rows = trial % 4 && rule_counts(&way.rule);
    way.rule.precision = trial % 5 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    way.rule.state_precision = trial % 5 && trial % 5 < 3 ? PRECISION_FLOAT32 : PRECISION_BFLOAT16;
    return way;
}

/* Statistics of the differences between means over seeds and the float32 results. A difference is counted in standard deviations. */
struct law {
    double squares, sum, count;
};

/* Adds a value's mean over the seeds. The probability of rounding up must be the share of the step by which the float32 value
 * exceeds the lower neighbour. */
static void add_to_law(struct law *law, float want, double mean) {
    float low = float_of_bits(bits_of_float(want) & 0xFFFF0000u), high = float_of_bits((bits_of_float(want) & 0xFFFF0000u) + 65536);
    double up = (want - low) / ((double)high - low), deviation = fabs((double)high - low) * sqrt(up * (1 - up) / SEEDS);
    if (up < 0.02 || up > 0.98) return;
    law->squares += (mean - want) * (mean - want) / deviation / deviation;
    law->sum += (mean - want) / deviation;
    law->count++;
}

static void check_law(const struct law *law) {
    assert_true(fabs(law->sum) < 4.5 * sqrt(law->count));
    assert_true(fabs(law->squares / law->count - 1) < 6 * sqrt(2 / law->count));
}

/* Checks that `got` is a neighbour of `want`, with some tolerance, since float32 sums may differ in their last bits. */
static void check_neighbour(float want, float got) {
    float step = float_of_bits((bits_of_float(want) & 0xFF800000u)) / 64; /* a step is 2^-7 of a power of two; it doubles at the next power of two */
    if (!(fabsf(got - want) <= fabsf(step) + 1e-30f)) print_message("%.9g came out as %.9g\n", want, got);
    assert_true(fabsf(got - want) <= fabsf(step) + 1e-30f);
}

static void a_step_is_that_of_float32_rounded(void **state) {
    static struct model plain, halves;
    static struct batch batch;
    static numbers first, want, got;
    static double mean[2][ROWS][FIELDS][DIM];
    for (uint32_t trial = 0; trial < 60; trial++) {
        struct way way = choose_way(trial), as_float = way;
        struct batch_view view = fill_batch(&batch);
        struct law law = {0, 0, 0};
        view.pool = (struct example_pool){.on = trial % 7 == 3, .whole = trial % 2};
        as_float.rule.precision = as_float.rule.state_precision = PRECISION_FLOAT32;
        first_numbers(first);
        open_model(&plain, 1, &as_float.rule, 0, NULL);
        set_numbers(&plain, first);
        step(&plain, &view, &as_float);
        get_numbers(&plain, want);
        memset(mean, 0, sizeof mean);
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            open_model(&halves, 1, &way.rule, seed, NULL);
            set_numbers(&halves, first);
            step(&halves, &view, &way);
            get_numbers(&halves, got);
            for (int side = 0; side < 2; side++)
                for (uint64_t row = 0; row < ROWS; row++)
                    for (uint32_t f = 0; f <= plain.layout.slots; f++)
                        for (uint32_t i = 0; i < plain.layout.field[f].columns; i++) {
                            check_neighbour(want[side][row][f][i], got[side][row][f][i]);
                            mean[side][row][f][i] += got[side][row][f][i] / (double)SEEDS;
                        }
            if (seed + 1 < SEEDS) backend_cpu.close(halves.backend);
        }
        for (int side = 0; side < 2; side++)
            for (uint64_t row = 0; row < ROWS; row++)
                for (uint32_t f = 0; f <= plain.layout.slots; f++)
                    for (uint32_t i = 0; i < DIM && halves.layout.field[f].type == VALUE_BFLOAT16; i++)
                        add_to_law(&law, want[side][row][f][i], mean[side][row][f][i]);
        if (law.count > 100) check_law(&law);
        backend_cpu.close(halves.backend);
        backend_cpu.close(plain.backend);
    }
}

static void threads_change_no_byte(void **state) {
    static struct model one, several;
    static struct batch batch;
    static numbers first;
    for (uint32_t trial = 0; trial < 100; trial++) {
        struct way way = choose_way(trial);
        first_numbers(first);
        open_model(&one, 1, &way.rule, trial, NULL);
        open_model(&several, 2 + below(3), &way.rule, trial, NULL);
        set_numbers(&one, first);
        set_numbers(&several, first);
        for (int i = 0; i < 3; i++, way.number++) {
            struct batch_view view = fill_batch(&batch);
            step(&one, &view, &way);
            step(&several, &view, &way);
            read_bytes(&one);
            read_bytes(&several);
            assert_memory_equal(one.packed, several.packed, sizeof one.packed);
        }
        backend_cpu.close(one.backend);
        backend_cpu.close(several.backend);
    }
}

/* ---- rows by id ---- */

/* Tests calls on rows by id. An update must give the rounded float32 result, a store must round its values, and a fetch must return the stored
 * values. */
static void rows_by_id(void **state) {
    static struct model plain, halves;
    static numbers first, want, got;
    static float values[ROWS][DIM], fetched[ROWS][DIM];
    float *all = &values[0][0];
    int32_t ids[ROWS];
    for (uint32_t trial = 0; trial < 40; trial++) {
        struct way way = choose_way(trial), as_float = way;
        as_float.rule.precision = as_float.rule.state_precision = PRECISION_FLOAT32;
        first_numbers(first);
        open_model(&plain, 1, &as_float.rule, 0, NULL);
        open_model(&halves, 2, &way.rule, trial, NULL);
        set_numbers(&plain, first);
        set_numbers(&halves, first);
        for (int i = 0; i < ROWS; i++) ids[i] = (int32_t)below(ROWS);
        for (int i = 0; i < ROWS * DIM; i++) all[i] = (float)below(2000) / 1000 - 1;
        struct rows_request request = {.ids = ids, .count = ROWS, .id_bits = 32, .values = all, .lr = 0.05, .global_step = trial};
        for (int side = 0; side < 2; side++) {
            request.table = plain.table[side], request.rule = &as_float.rule;
            assert_int_equal(backend_cpu.rows_update(plain.backend, &request), 0);
            request.table = halves.table[side], request.rule = &way.rule;
            assert_int_equal(backend_cpu.rows_update(halves.backend, &request), 0);
        }
        get_numbers(&plain, want);
        get_numbers(&halves, got);
        for (size_t i = 0; i < sizeof want / sizeof(float); i++)
            if (i / DIM % FIELDS <= plain.layout.slots) check_neighbour(((float *)want)[i], ((float *)got)[i]);
        request.table = halves.table[0];
        assert_int_equal(backend_cpu.rows_store(halves.backend, &request), 0);
        request.values = fetched[0];
        assert_int_equal(backend_cpu.rows_fetch(halves.backend, &request), 0);
        get_numbers(&halves, got);
        for (int i = 0; i < ROWS; i++) {
            int last = ROWS - 1;
            while (ids[last] != ids[i]) last--;
            assert_memory_equal(fetched[i], got[0][ids[i]][0], sizeof fetched[i]);
            for (int j = 0; j < DIM; j++) check_neighbour(values[last][j], fetched[i][j]);
        }
        backend_cpu.close(plain.backend);
        backend_cpu.close(halves.backend);
    }
}

/* ---- lock-free ---- */

enum { WORDS = 60 };

/* With one worker the mean over seeds must be the float32 result: no update of a row that occurs twice in a block may be lost.
 * Learning rates are small, because with float32 a row may already have moved when it occurs again in a block. */
static void lock_free_training_has_the_mean_of_float32(void **state) {
    static struct model plain, halves;
    static numbers first, want, got;
    static double mean[2][ROWS][DIM], square[2][ROWS][DIM];
    uint32_t ids[WORDS];
    const uint64_t starts[] = {0, WORDS / 2, WORDS};
    for (uint32_t trial = 0; trial < 12; trial++) {
        for (int i = 0; i < WORDS; i++) ids[i] = below(trial % 2 ? 5 : ROWS);
        struct example_source source = {.ids = ids, .starts = starts, .tokens = WORDS, .sentences = 2, .rows = ROWS,
                                        .window = 1 + below(8), .negatives = 3 + below(20), .exclude = 1, .noise = NOISE_UNIFORM,
                                        .seed = trial, .pool = {.on = trial % 3 == 2, .whole = trial % 2, .sum = trial % 4 == 2}};
        struct rule_options rule = {.rule = trial % 4 == 3 ? RULE_ADAGRAD : RULE_SGD, .eps = 1e-3}, kept = rule;
        struct hogwild_result result;
        struct hogwild_request request = {.count = WORDS, .lr_first = 1e-3, .lr_last = 5e-4, .workers = 1, .global_step = trial};
        double squares = 0, count = 0;
        kept.precision = kept.state_precision = PRECISION_BFLOAT16;
        first_numbers(first);
        open_model(&plain, 1, &rule, 0, &source);
        set_numbers(&plain, first);
        request.rule = &rule, request.target = plain.table[0], request.context = plain.table[1];
        assert_int_equal(backend_cpu.hogwild(plain.backend, &request, &result), 0);
        get_numbers(&plain, want);
        memset(mean, 0, sizeof mean);
        memset(square, 0, sizeof square);
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            open_model(&halves, 1, &kept, seed, &source);
            set_numbers(&halves, first);
            request.rule = &kept, request.target = halves.table[0], request.context = halves.table[1];
            assert_int_equal(backend_cpu.hogwild(halves.backend, &request, &result), 0);
            get_numbers(&halves, got);
            backend_cpu.close(halves.backend);
            for (int side = 0; side < 2; side++)
                for (int row = 0; row < ROWS; row++)
                    for (int i = 0; i < DIM; i++) {
                        double apart = (double)got[side][row][0][i] - want[side][row][0][i];
                        mean[side][row][i] += apart / SEEDS, square[side][row][i] += apart * apart / SEEDS;
                    }
        }
        for (size_t i = 0; i < sizeof mean / sizeof(double); i++) {
            double m = ((double *)mean)[i], deviation = sqrt((((double *)square)[i] - m * m) / SEEDS);
            if (deviation > 1e-5) squares += m * m / deviation / deviation, count++;
        }
        if (!(squares / count < 1.6)) print_message("trial %u: %g over %g values\n", trial, squares / count, count);
        assert_true(squares / count < 1.6);
        backend_cpu.close(plain.backend);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_that_of_float32_rounded),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(rows_by_id),
        cmocka_unit_test(lock_free_training_has_the_mean_of_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
