/* Lists that are split into positives and a pool of targets, on the CPU. Only the batches are tested. */
#include "tests/testing.h"

#include "cpu_batches.h"

enum { ROWS = 97, LINES = 60, LONGEST = 12, NEGATIVES = 6 };

static uint32_t ids[LINES * LONGEST];
static uint64_t starts[LINES + 1];

static struct example_source lines(void) {
    return (struct example_source){.ids = ids,
                                   .starts = starts,
                                   .rows = ROWS,
                                   .mode = EXAMPLE_ADJACENCY,
                                   .negatives = NEGATIVES,
                                   .exclude = 1,
                                   .noise = NOISE_UNIFORM,
                                   .seed = 11};
}

/* The positives and targets of a line, as the documentation describes them, and their numbers. */
struct wanted {
    uint32_t positive[64], target[64];
    uint64_t positives, targets;
};

static struct wanted split_line(const struct example_source *s, uint64_t line, uint32_t epoch) {
    struct wanted w = {.positives = 0};
    uint64_t others = s->starts[line + 1] - s->starts[line] - 1;
    const uint32_t *items = s->ids + s->starts[line];
    uint64_t positives = s->positives ? s->positives : (others + 1) / 2, pool = others > positives ? others - positives : 0;
    if (s->pooled && pool > s->pooled) pool = s->pooled;
    if (!others || (others < positives && !s->short_repeat)) return w;
    struct shuffle order = shuffle_make(others, draw_at(s->seed, DRAW_POSITIVE, line, epoch, 0));
    for (uint64_t j = 0; j < positives; j++) {
        struct draw4 drawn = draw_at(s->seed, DRAW_POSITIVE, line, epoch, (uint32_t)(j / 2));
        uint64_t place = others < positives ? draw_below(draw_half(drawn, (uint32_t)j), others) : shuffle_at(&order, j);
        w.positive[w.positives++] = items[1 + place];
    }
    if (s->pool.own > 0 || !pool) w.target[w.targets++] = items[0];
    for (uint64_t i = 0; i < pool; i++) w.target[w.targets++] = items[1 + shuffle_at(&order, positives + i)];
    return w;
}

static int is_in(const uint32_t *list, uint64_t count, uint32_t id) {
    for (uint64_t i = 0; i < count; i++)
        if (list[i] == id) return 1;
    return 0;
}

static void compare_lines(const struct example_source *s, const struct batch_view *v, uint32_t epoch) {
    uint64_t block = 0;
    for (uint64_t line = 0; line < s->sentences; line++) {
        struct wanted w = split_line(s, line, epoch);
        if (!w.positives) continue;
        const uint32_t *t = v->target_ids + v->target_starts[block], *c = v->context_ids + v->context_starts[block];
        uint64_t contexts = v->context_starts[block + 1] - v->context_starts[block];
        assert_int_equal(v->target_starts[block + 1] - v->target_starts[block], w.targets);
        assert_int_equal(v->positives[block], w.positives);
        assert_memory_equal(t, w.target, w.targets * sizeof *t);
        assert_memory_equal(c, w.positive, w.positives * sizeof *c);
        assert_int_equal(contexts, w.positives + NEGATIVES);
        for (uint64_t i = 0; i < w.targets; i++) assert_false(is_in(c, contexts, t[i])); /* not among positives or negatives */
        for (uint64_t i = w.positives; i < contexts; i++) assert_false(is_in(c, w.positives, c[i]));
        block++;
    }
    assert_int_equal(block, v->blocks);
}

/* Splits lines of many lengths, up to more items than positives and pool can hold. No item may occur twice in a line's example. */
static void lists_are_split(void **state) {
    struct backend *backend = open_cpu(2);
    for (int variant = 0; variant < 24; variant++) {
        struct example_source s = lines();
        s.pool = (struct example_pool){.on = 1, .own = variant % 2 ? 0.25f : 0};
        s.positives = variant / 2 % 3 == 0 ? 0 : variant / 2 % 3 == 1 ? 1 : 4;
        s.pooled = variant / 6 % 2 ? 3 : 0;
        s.short_repeat = variant / 12;
        s.sentences = LINES;
        for (uint64_t i = 0; i < s.sentences; i++) starts[i + 1] = starts[i] + 1 + i % LONGEST;
        s.tokens = starts[s.sentences];
        for (uint64_t i = 0; i < s.tokens; i++) ids[i] = (uint32_t)(7 * i % ROWS);
        backend_cpu.source(backend, &s);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            struct batch_view v = make(backend, epoch, 0, s.sentences, 0);
            compare_lines(&s, &v, epoch);
        }
    }
    backend_cpu.close(backend);
}

/* Over many epochs all items of a list must be positives equally often, and be in the pool equally often. */
static void every_item_is_a_positive_as_often(void **state) {
    enum { ITEMS = 11, POSITIVES = 3, POOLED = 4, EPOCHS = 6000 };
    struct backend *backend = open_cpu(1);
    struct example_source s = lines();
    double positive[ITEMS + 1] = {0}, pooled[ITEMS + 1] = {0};
    s.sentences = 1, s.tokens = starts[1] = ITEMS + 1;
    s.pool = (struct example_pool){.on = 1, .own = 0.5f};
    s.positives = POSITIVES, s.pooled = POOLED;
    for (uint32_t i = 0; i <= ITEMS; i++) ids[i] = i;
    backend_cpu.source(backend, &s);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        struct batch_view v = make(backend, epoch, 0, 1, 0);
        for (int j = 0; j < POSITIVES; j++) positive[v.context_ids[j]]++;
        for (int i = 1; i <= POOLED; i++) pooled[v.target_ids[i]]++;
    }
    for (int i = 1; i <= ITEMS; i++) { /* within five standard deviations */
        double p = (double)POSITIVES / ITEMS, q = (double)POOLED / ITEMS;
        assert_true(fabs(positive[i] - EPOCHS * p) < 5 * sqrt(EPOCHS * p * (1 - p)));
        assert_true(fabs(pooled[i] - EPOCHS * q) < 5 * sqrt(EPOCHS * q * (1 - q)));
    }
    backend_cpu.close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_split),
        cmocka_unit_test(every_item_is_a_positive_as_often),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
