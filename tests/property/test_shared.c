/* Properties of negatives that a batch shares, on the CPU: which rows a batch names; that a step agrees with the formulas in
 * double; that nothing depends on the number of workers. */
#include "tests/testing.h"

#include "kernels/backend.h"

#include "cpu_batches.h"

enum { ITEMS = 400, LISTS = 60, ROWS = ITEMS + LISTS, TOKENS = 1500, MOST_DIM = 70 };

static uint32_t ids[TOKENS];
static uint64_t starts[LISTS + 1];

/* Makes lists of 1 to 48 places, of which the first is the list's own row. Frequent items have low ids. */
static struct example_source lists(uint32_t negatives) {
    uint64_t at = 0;
    srand(5);
    for (uint32_t list = 0; list < LISTS; list++) {
        uint64_t items = list + 1 == LISTS ? TOKENS - at - 1 : (uint64_t)(rand() % 48);
        starts[list] = at;
        ids[at++] = ITEMS + list;
        while (items--) {
            double u = (rand() + 0.5) / (RAND_MAX + 1.0);
            ids[at++] = (uint32_t)(ITEMS * u * u);
        }
    }
    starts[LISTS] = TOKENS;
    return (struct example_source){.ids = ids,
                                   .starts = starts,
                                   .tokens = TOKENS,
                                   .sentences = LISTS,
                                   .rows = ROWS,
                                   .target_only = LISTS,
                                   .longest = TOKENS,
                                   .mode = EXAMPLE_ITEM,
                                   .positives = 1,
                                   .shuffle = 1,
                                   .short_repeat = 1,
                                   .per_batch = 1,
                                   .negatives = negatives,
                                   .exclude = 1,
                                   .noise = NOISE_UNIFORM,
                                   .seed = 13};
}

/* ---- batches ---- */

static void each_item_is_an_example_once_an_epoch(void **state) {
    struct example_source source = lists(40);
    struct backend *backend = open_cpu(3);
    static int met[LISTS][ITEMS], wanted[LISTS][ITEMS];
    backend_cpu.source(backend, &source);
    assert_int_equal(example_count(&source), TOKENS);
    for (uint32_t list = 0; list < LISTS; list++)
        for (uint64_t i = starts[list] + 1; i < starts[list + 1]; i++) wanted[list][ids[i]]++;
    for (uint64_t first = 0; first < TOKENS; first += 130) {
        struct batch_view view = make(backend, 4, first, TOKENS - first < 130 ? TOKENS - first : 130, 0);
        assert_int_equal(view.shared.count, 40);
        assert_int_equal(view.shared.masked, 1);
        assert_int_equal(view.target_starts[1], 0);
        assert_int_equal(view.context_starts[1], 40);
        assert_int_equal(view.positives[0], 0);
        for (uint64_t i = 0; i < 40; i++) assert_true(view.context_ids[i] < ITEMS);
        for (uint64_t i = 1; i < view.blocks; i++) {
            assert_int_equal(view.positives[i], 1);
            assert_int_equal(view.target_starts[i], i - 1);
            assert_int_equal(view.context_starts[i], 40 + i - 1);
            met[view.target_ids[i - 1] - ITEMS][view.context_ids[40 + i - 1]]++;
        }
    }
    assert_memory_equal(met, wanted, sizeof met);
    backend_cpu.close(backend);
}

/* Negatives depend only on the epoch and the position at which a batch begins, not on the batch's size or the workers. */
static void negatives_belong_to_a_place(void **state) {
    struct example_source source = lists(50);
    struct backend *one = open_cpu(1), *many = open_cpu(4);
    uint32_t first[50], other[50];
    backend_cpu.source(one, &source);
    backend_cpu.source(many, &source);
    memcpy(first, make(one, 1, 100, 64, 0).context_ids, sizeof first);
    memcpy(other, make(many, 1, 100, 900, 0).context_ids, sizeof other);
    assert_memory_equal(first, other, sizeof first);
    memcpy(other, make(one, 1, 101, 64, 0).context_ids, sizeof other);
    assert_memory_not_equal(first, other, sizeof first);
    memcpy(other, make(one, 2, 100, 64, 0).context_ids, sizeof other);
    assert_memory_not_equal(first, other, sizeof first);
    source.distinct = 1, source.negatives = 300;
    backend_cpu.source(one, &source);
    struct batch_view view = make(one, 1, 0, 10, 0);
    int met[ITEMS] = {0};
    for (uint32_t i = 0; i < view.shared.count; i++) assert_int_equal(met[view.context_ids[i]]++, 0);
    assert_int_equal(view.shared.count, 300);
    backend_cpu.close(one);
    backend_cpu.close(many);
}

/* The first place of a list is not an example. A batch of only such places, or without a held-out example, must have no
 * negatives either. */
static void a_batch_without_examples_is_empty(void **state) {
    struct example_source source = lists(40);
    struct backend *backend = open_cpu(2);
    source.shuffle = 0;
    backend_cpu.source(backend, &source);
    for (uint32_t list = 0; list < LISTS; list++) {
        struct batch_view view = make(backend, 1, starts[list], 1, 0);
        assert_int_equal(view.blocks, 0);
        assert_int_equal(view.shared.count, 0);
        assert_int_equal(view.context_starts[0], 0);
        assert_int_equal(make(backend, 1, starts[list], 2, 0).blocks, starts[list] + 1 == starts[list + 1] ? 0 : 2);
        assert_int_equal(make(backend, 1, starts[list], 5, 1).blocks, 0);
    }
    backend_cpu.close(backend);
}

/* ---- tables ---- */

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct rule_options rule;
    struct record_layout layout;
};

static struct model open_model(unsigned threads, struct rule_options rule, uint32_t dim, const uint32_t *frozen) {
    struct model m = {.backend = open_cpu(threads), .rule = rule, .layout = record_layout_make(&rule, dim)};
    char *packed = calloc(ROWS, m.layout.packed);
    srand(3);
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = {.name = side ? "context" : "target",
                                  .rows = ROWS,
                                  .layout = m.layout,
                                  .rounding = {.seed = 1},
                                  .frozen = frozen};
        assert_int_equal(backend_cpu.table_open(m.backend, &spec, &m.table[side]), 0);
        for (int row = 0; row < ROWS && !m.layout.halves; row++)
            for (uint32_t j = 0; j < dim; j++)
                ((float *)(packed + (uint64_t)row * m.layout.packed))[j] = (float)rand() / (float)RAND_MAX - 0.5f;
        for (uint64_t i = 0; i < ROWS * m.layout.packed / 2 && m.layout.halves; i++) /* numbers of moderate size and either sign */
            ((uint16_t *)packed)[i] = (uint16_t)(0x3E00 + rand() % 256 + (rand() % 2 << 15));
        assert_int_equal(backend_cpu.table_write(m.backend, m.table[side], 0, ROWS, packed), 0);
    }
    free(packed);
    return m;
}

static char *read_model(struct model *m) {
    char *packed = malloc(2 * ROWS * m->layout.packed);
    for (int side = 0; side < 2; side++)
        assert_int_equal(backend_cpu.table_read(m->backend, m->table[side], 0, ROWS, packed + side * ROWS * m->layout.packed), 0);
    return packed;
}

static double step_model(struct model *m, struct loss_options loss, double lr, uint64_t number, int loss_only) {
    struct step_request go = {.target = m->table[0],
                              .context = m->table[1],
                              .rule = &m->rule,
                              .loss = loss,
                              .lr = lr,
                              .global_step = number,
                              .loss_only = loss_only};
    struct step_result result;
    assert_int_equal(backend_cpu.step(m->backend, number % 3, &go), 0);
    assert_int_equal(backend_cpu.result(m->backend, number % 3, &result), 0);
    assert_int_equal(result.pairs, result.examples);
    return result.loss;
}

/* ---- double precision ---- */

static double rows64[2][ROWS][MOST_DIM], gradient[2][ROWS][MOST_DIM], length[2][ROWS];

static void begin64(const char *packed, uint32_t dim, int cosine) {
    memset(gradient, 0, sizeof gradient);
    for (int side = 0; side < 2; side++)
        for (int row = 0; row < ROWS; row++) {
            double squares = 0;
            for (uint32_t j = 0; j < dim; j++) {
                double value = ((const float *)packed)[((uint64_t)side * ROWS + (uint64_t)row) * dim + j];
                rows64[side][row][j] = value;
                squares += value * value;
            }
            length[side][row] = cosine ? sqrt(squares) : 1;
        }
}

static double score64(uint32_t target, uint32_t context, uint32_t dim) {
    double sum = 0;
    for (uint32_t j = 0; j < dim; j++) sum += rows64[0][target][j] * rows64[1][context][j];
    return sum / length[0][target] / length[1][context];
}

/* Adds a score's coefficient c to the gradients of its two rows. */
static void add64(uint32_t target, uint32_t context, uint32_t dim, double c, double score, int cosine) {
    double both = length[0][target] * length[1][context];
    for (uint32_t j = 0; j < dim; j++) {
        double u = rows64[0][target][j], v = rows64[1][context][j];
        gradient[0][target][j] += c * (v / both - (cosine ? score * u / length[0][target] / length[0][target] : 0));
        gradient[1][context][j] += c * (u / both - (cosine ? score * v / length[1][context] / length[1][context] : 0));
    }
}

static double learn64(const struct batch_view *view, uint64_t block, struct loss_options o, uint32_t dim) {
    uint32_t target = view->target_ids[block - 1], positive = view->context_ids[view->context_starts[block]], negatives = 0;
    int cosine = o.score == SCORE_COSINE;
    double own = score64(target, positive, dim), sum = 0, t = o.temperature > 0 ? o.temperature : 1;
    for (uint32_t i = 0; i < view->shared.count; i++) {
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        sum += exp(score64(target, view->context_ids[i], dim) / t);
        negatives++;
    }
    if (!negatives) return 0;
    double power = o.negative_power, against = log(power > 0 ? sum / negatives : o.negative_weight * sum);
    double weight = o.weighted ? (double)view->weights[view->context_starts[block]] : 1;
    double pulled = weight * (power > 0 ? 1 : 1 / (1 + exp(own / t - against))), push = power > 0 ? power : 1;
    for (uint32_t i = 0; i < view->shared.count; i++) {
        double s = score64(target, view->context_ids[i], dim);
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        add64(target, view->context_ids[i], dim, push * pulled * exp(s / t) / sum / t, s, cosine);
    }
    add64(target, positive, dim, -pulled / t, own, cosine);
    return weight * (power > 0 ? power * against - own / t : log1p(exp(against - own / t)));
}

static void check_step(uint32_t dim, uint32_t negatives, uint64_t count, int exclude, struct loss_options loss) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct model m = open_model(2, rule, dim, NULL);
    struct example_source source = lists(negatives);
    double want = 0, most = 0, error = 0;
    char *before = read_model(&m);
    source.exclude = exclude;
    float *weights = calloc(source.tokens, sizeof *weights);
    for (uint64_t i = 0; i < source.tokens; i++) weights[i] = 0.2f + (float)(i * 7 % 10) / 4;
    source.weights = weights, source.weight_scale = 0.75f;
    backend_cpu.source(m.backend, &source);
    struct batch_view view = make(m.backend, 0, 0, count, 0);
    begin64(before, dim, loss.score == SCORE_COSINE);
    for (uint64_t block = 1; block < view.blocks; block++) want += learn64(&view, block, loss, dim);
    double only = step_model(&m, loss, 1, 0, 1), got = step_model(&m, loss, 1, 0, 0);
    assert_true(only == got);
    assert_true(fabs(got - want) <= 2e-6 * (fabs(want) + (double)view.blocks));
    char *after = read_model(&m);
    for (int side = 0; side < 2; side++)
        for (int row = 0; row < ROWS; row++)
            for (uint32_t j = 0; j < dim; j++) {
                uint64_t at = ((uint64_t)side * ROWS + (uint64_t)row) * dim + j;
                double moved = (double)((float *)before)[at] - ((float *)after)[at];
                most = fmax(most, fabs(gradient[side][row][j]));
                error = fmax(error, fabs(moved - gradient[side][row][j]));
            }
    assert_true(most > 0 && error <= 1e-5 * most + 1e-6);
    free(before);
    free(after);
    free(weights);
    backend_cpu.close(m.backend);
}

static void steps_follow_the_formulas(void **state) {
    const uint32_t dims[] = {2, 7, 32, 33, 70}, negatives[] = {1, 31, 32, 300, 700};
    for (int i = 0; i < 40; i++) {
        struct loss_options loss = {.kind = LOSS_SOFTMAX,
                                    .score = i % 2 ? SCORE_DOT : SCORE_COSINE,
                                    .temperature = i % 4 < 2 ? 0.1f : 0.7f,
                                    .negative_weight = i % 5 ? 1 : 0.5f,
                                    .negative_power = i / 2 % 2 ? 1.15f : 0,
                                    .weighted = i % 3 == 0};
        check_step(dims[i % 5], negatives[i / 3 % 5], i % 7 ? 1 + (uint64_t)(i * 37) % 600 : 1, i / 4 % 2, loss);
    }
}

/* ---- what nothing depends on ---- */

static char *train(unsigned threads, struct rule_options rule, uint32_t dim, const struct example_source *source,
                   const uint32_t *frozen, struct record_layout *layout) {
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_power = 1.15f};
    struct model m = open_model(threads, rule, dim, frozen);
    backend_cpu.source(m.backend, source);
    for (uint64_t first = 0, number = 0; first < TOKENS; first += 400, number++) {
        struct batch_request request = {0, first, TOKENS - first < 400 ? TOKENS - first : 400, 0};
        assert_int_equal(backend_cpu.make_batch(m.backend, number % 3, &request), 0);
        step_model(&m, loss, 0.01, number, 0);
    }
    char *trained = read_model(&m);
    *layout = m.layout;
    backend_cpu.close(m.backend);
    return trained;
}

static void steps_do_not_depend_on_workers(void **state) {
    struct rule_options rule = {.rule = RULE_ADAM, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999, .lr = 0.01, .count_rows = 1};
    struct example_source source = lists(600);
    for (int halves = 0; halves < 2; halves++) {
        struct record_layout layout;
        rule.precision = rule.state_precision = halves ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        rule.clip = halves;
        char *one = train(1, rule, 50, &source, NULL, &layout);
        for (unsigned threads = 2; threads <= 4; threads++) {
            char *many = train(threads, rule, 50, &source, NULL, &layout);
            assert_memory_equal(one, many, 2 * ROWS * layout.packed);
            free(many);
        }
        free(one);
    }
}

/* After one step, frozen rows must be unchanged, and all other rows must equal those of a step without frozen rows. */
static void frozen_rows_stay(void **state) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_weight = 1};
    struct example_source source = lists(100);
    uint32_t frozen[(ROWS + 31) / 32];
    char *after[2], *before = NULL;
    for (uint64_t i = 0; i < sizeof frozen / sizeof *frozen; i++) frozen[i] = 0x0F0F3355u;
    for (int freezes = 0; freezes < 2; freezes++) {
        struct model m = open_model(2, rule, 16, freezes ? frozen : NULL);
        if (!freezes) before = read_model(&m);
        backend_cpu.source(m.backend, &source);
        make(m.backend, 0, 0, 500, 0);
        step_model(&m, loss, 0.1, 0, 0);
        after[freezes] = read_model(&m);
        backend_cpu.close(m.backend);
    }
    for (uint64_t row = 0; row < 2 * ROWS; row++) {
        const char *want = row_has_bit(frozen, (uint32_t)(row % ROWS)) ? before : after[0];
        assert_memory_equal(want + row * 64, after[1] + row * 64, 64);
    }
    free(before);
    free(after[0]);
    free(after[1]);
}

/* A batch without examples must not move the negatives' rows, though Adam's momentum would, even with zero gradients. */
static void a_batch_without_examples_changes_nothing(void **state) {
    struct rule_options rule = {.rule = RULE_ADAM, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999, .lr = 0.01, .count_rows = 1};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_DOT, .temperature = 1, .negative_weight = 1};
    struct example_source source = lists(300);
    struct model m = open_model(2, rule, 20, NULL);
    source.shuffle = 0;
    backend_cpu.source(m.backend, &source);
    make(m.backend, 0, 0, TOKENS, 0);
    step_model(&m, loss, 0.01, 0, 0); /* so that momentum is not zero */
    char *before = read_model(&m);
    for (uint32_t list = 0; list < LISTS; list++) {
        make(m.backend, 0, starts[list], 1, 0);
        assert_true(step_model(&m, loss, 0.01, 3, 0) == 0);
    }
    char *after = read_model(&m);
    assert_memory_equal(before, after, 2 * ROWS * m.layout.packed);
    free(before);
    free(after);
    backend_cpu.close(m.backend);
}

/* A batch given as arrays with the same ids must have the same effect; one with blocks of another form must be refused. */
static void a_callers_batch_is_the_same(void **state) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_weight = 1};
    struct example_source source = lists(90);
    struct model a = open_model(1, rule, 24, NULL), b = open_model(2, rule, 24, NULL);
    backend_cpu.source(a.backend, &source);
    struct batch_view view = make(a.backend, 0, 0, 333, 0);
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), 0);
    assert_true(step_model(&a, loss, 0.1, 0, 0) == step_model(&b, loss, 0.1, 0, 0));
    char *one = read_model(&a), *other = read_model(&b);
    assert_memory_equal(one, other, 2 * ROWS * a.layout.packed);
    struct step_request go = {.target = b.table[0], .context = b.table[1], .rule = &rule, .loss = loss, .lr = 1};
    go.loss.kind = LOSS_BPR;
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), 0);
    assert_int_equal(backend_cpu.step(b.backend, 0, &go), -1);
    view.shared.count--;
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), -1);
    view.shared.count++;
    view.blocks = 1; /* shared negatives without any example */
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), -1);
    free(one);
    free(other);
    backend_cpu.close(a.backend);
    backend_cpu.close(b.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_an_example_once_an_epoch),
        cmocka_unit_test(negatives_belong_to_a_place),
        cmocka_unit_test(a_batch_without_examples_is_empty),
        cmocka_unit_test(steps_follow_the_formulas),
        cmocka_unit_test(steps_do_not_depend_on_workers),
        cmocka_unit_test(frozen_rows_stay),
        cmocka_unit_test(a_batch_without_examples_changes_nothing),
        cmocka_unit_test(a_callers_batch_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
