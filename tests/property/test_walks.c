/* Examples over walks must equal examples over the same walks stored as a corpus: id for id in batches of any size with any
 * number of threads, and byte for byte in lock-free training with one worker. */
#include "tests/testing.h"

#include "base/report.h"
#include "kernels/hogwild.h"

#include "cpu_batches.h"

enum { NODES = 60, DEGREE = 8, TRIALS = 60, DIM = 12 };

static uint32_t drawn(uint64_t number, uint32_t trial, uint32_t n) {
    return draw_word(trial, DRAW_GENERATE, number, 7) % n;
}

/* ---- a trial ---- */

/* A graph with arcs to random nodes, in which some nodes have no arcs; and walks over it, stored as a corpus. */
struct trial {
    uint64_t nodes[NODES + 1];
    uint32_t neighbours[NODES * DEGREE], labels[NODES * DEGREE], begins[NODES], keep[NODES];
    struct alias weights[NODES * DEGREE];
    uint32_t *ids;
    uint64_t *starts;
    struct example_source walked, stored;
};

/* Gives each node arcs to random nodes, ascending and without repeats. */
static void join_nodes(struct trial *t, uint32_t seed) {
    uint64_t arcs = 0;
    for (uint32_t node = 0; node < NODES; node++) {
        t->nodes[node] = arcs;
        uint32_t degree = drawn(node, seed, 5) ? 1 + drawn(NODES + node, seed, DEGREE) : 0, at = 0;
        for (uint32_t i = 0; i < degree; i++) {
            at += 1 + drawn(node * DEGREE + i, seed + 1, NODES / DEGREE - 1);
            t->neighbours[arcs] = at;
            t->labels[arcs] = drawn(arcs, seed + 4, NODES);
            t->weights[arcs++] = (struct alias){drawn(arcs, seed + 2, UINT32_MAX), drawn(arcs, seed + 3, degree)};
        }
    }
    t->nodes[NODES] = arcs;
}

static void store_walks(struct trial *t, uint32_t epoch) {
    const struct walks *w = &t->walked.walks;
    for (uint64_t i = 0; i <= walks_count(w); i++) t->starts[i] = i * w->length;
    for (uint64_t i = 0; i < walks_count(w); i++) walk_draw(w, t->walked.seed, i, epoch, t->ids + i * w->length);
}

static struct trial *make_trial(uint32_t seed) {
    static const double biases[][2] = {{1, 1}, {0.25, 2}, {3, 0.5}, {1000, 0.001}}; /* p and q of walks; with the last pair some steps are drawn
                                                                                     * exactly */
    struct trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    join_nodes(t, seed * 10);
    for (uint32_t i = 0; i < NODES; i++) t->keep[i] = i % 3 ? UINT32_MAX : 0x70000000u;
    struct walks walks = {.starts = t->nodes,
                          .neighbours = t->neighbours,
                          .alias = seed % 2 ? t->weights : NULL,
                          .nodes = NODES,
                          .begun = NODES,
                          .arcs = t->nodes[NODES],
                          .length = 2 + drawn(1, seed, seed % 4 ? 50 : 500),
                          .per_node = 1 + seed % 3};
    if (seed % 6 == 4) { /* over triples */
        walks.labels = t->labels;
        walks.begins = t->begins;
        walks.begun = 0;
        for (uint32_t i = 0; i < NODES; i++)
            if (t->nodes[i] < t->nodes[i + 1]) t->begins[walks.begun++] = i;
        walks.length = 2 * walks.length - 1;
    }
    walks_set_biases(&walks, biases[seed % 4][0], biases[seed % 4][1], (int)(seed / 2 % 2));
    t->walked = (struct example_source){.walks = walks,
                                        .tokens = walks_positions(&walks),
                                        .sentences = walks_count(&walks),
                                        .rows = NODES,
                                        .mode = EXAMPLE_WINDOW,
                                        .window = 1 + drawn(2, seed, 12),
                                        .shrink = (int)(seed / 3 % 2),
                                        .keep = seed / 5 % 2 ? t->keep : NULL,
                                        .per_pair = (int)(seed / 7 % 2),
                                        .negatives = drawn(3, seed, 4),
                                        .exclude = (int)(seed / 2 % 2),
                                        .noise = NOISE_UNIFORM,
                                        .held_out = seed % 5 ? 0 : 1u << 30,
                                        .seed = seed};
    t->ids = calloc(t->walked.tokens, sizeof *t->ids);
    t->starts = calloc(t->walked.sentences + 1, sizeof *t->starts);
    assert_true(t->ids && t->starts);
    t->stored = t->walked;
    t->stored.walks = (struct walks){.length = 0};
    t->stored.ids = t->ids;
    t->stored.starts = t->starts;
    return t;
}

static void free_trial(struct trial *t) {
    free(t->ids);
    free(t->starts);
    free(t);
}

/* ---- batches ---- */

static void assert_same(const struct batch_view *a, const struct batch_view *b) {
    assert_true(a->blocks == b->blocks);
    assert_memory_equal(a->target_starts, b->target_starts, (a->blocks + 1) * sizeof *a->target_starts);
    assert_memory_equal(a->context_starts, b->context_starts, (a->blocks + 1) * sizeof *a->context_starts);
    if (!a->blocks) return;
    assert_memory_equal(a->target_ids, b->target_ids, a->target_starts[a->blocks] * sizeof *a->target_ids);
    assert_memory_equal(a->context_ids, b->context_ids, a->context_starts[a->blocks] * sizeof *a->context_ids);
}

static void compare_batches(struct trial *t, uint64_t size, unsigned threads) {
    struct backend *walker = open_cpu(threads), *reader = open_cpu(1);
    assert_int_equal(backend_cpu.source(walker, &t->walked), 0);
    assert_int_equal(backend_cpu.source(reader, &t->stored), 0);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        store_walks(t, epoch);
        for (uint64_t first = 0; first < t->walked.tokens; first += size) {
            uint64_t left = t->walked.tokens - first, count = left < size ? left : size;
            for (int held_out = 0; held_out <= (t->walked.held_out > 0); held_out++) {
                struct batch_view a = make(walker, epoch, first, count, held_out), b = make(reader, epoch, first, count, held_out);
                assert_same(&a, &b);
            }
        }
    }
    backend_cpu.close(walker);
    backend_cpu.close(reader);
}

static void test_batches_are_those_of_stored_walks(void **state) {
    for (uint32_t seed = 1; seed <= TRIALS; seed++) {
        struct trial *t = make_trial(seed);
        compare_batches(t, 1 + drawn(4, seed, seed % 2 ? 300 : 3000), 1 + seed % 4);
        free_trial(t);
    }
}

/* ---- lock-free ---- */

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct rule_options rule;
};

static void open_model(struct model *m, const struct example_source *source) {
    static float rows[NODES * DIM];
    m->rule = (struct rule_options){.rule = RULE_SGD};
    m->backend = open_cpu(1);
    assert_int_equal(backend_cpu.source(m->backend, source), 0);
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = {
            .name = "test", .rows = NODES, .layout = record_layout_make(&m->rule, DIM), .weights = PLACE_PINNED};
        for (uint32_t i = 0; i < NODES * DIM; i++) rows[i] = (float)drawn(i, 90 + (uint32_t)side, 1000) / 1000 - 0.5f;
        assert_int_equal(backend_cpu.table_open(m->backend, &spec, &m->table[side]), 0);
        assert_int_equal(backend_cpu.table_write(m->backend, m->table[side], 0, NODES, rows), 0);
    }
}

static struct hogwild_result train(struct model *m, uint32_t epoch, uint64_t count) {
    struct hogwild_result result;
    struct hogwild_request request = {.target = m->table[0],
                                      .context = m->table[1],
                                      .rule = &m->rule,
                                      .epoch = epoch,
                                      .count = count,
                                      .lr_first = 0.05,
                                      .lr_last = 0.01,
                                      .workers = 1};
    assert_int_equal(backend_cpu.hogwild(m->backend, &request, &result), 0);
    return result;
}

static void assert_same_rows(struct model *a, struct model *b) {
    static float of_a[NODES * DIM], of_b[NODES * DIM];
    for (int side = 0; side < 2; side++) {
        assert_int_equal(backend_cpu.table_read(a->backend, a->table[side], 0, NODES, of_a), 0);
        assert_int_equal(backend_cpu.table_read(b->backend, b->table[side], 0, NODES, of_b), 0);
        assert_memory_equal(of_a, of_b, sizeof of_a);
    }
}

static void test_lock_free_training_is_that_of_stored_walks(void **state) {
    for (uint32_t seed = 1; seed <= TRIALS; seed++) {
        struct trial *t = make_trial(seed);
        struct model walker, reader;
        open_model(&walker, &t->walked);
        open_model(&reader, &t->stored);
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            store_walks(t, epoch);
            struct hogwild_result a = train(&walker, epoch, t->walked.tokens), b = train(&reader, epoch, t->walked.tokens);
            assert_true(a.pairs == b.pairs && a.examples == b.examples && a.loss == b.loss);
        }
        assert_same_rows(&walker, &reader);
        backend_cpu.close(walker.backend);
        backend_cpu.close(reader.backend);
        free_trial(t);
    }
}

/* ---- alone ---- */

static void test_walks_are_drawn_alone(void **state) {
    for (uint32_t seed = 1; seed <= TRIALS; seed++) {
        struct trial *t = make_trial(seed);
        struct backend *backend = open_cpu(1 + seed % 4);
        uint64_t walks = t->walked.sentences, first = drawn(5, seed, (uint32_t)walks), count = walks - first;
        uint32_t length = t->walked.walks.length, *ids = calloc(count, length * sizeof *ids);
        assert_non_null(ids);
        store_walks(t, 1);
        assert_int_equal(backend_cpu.source(backend, &t->walked), 0);
        assert_int_equal(backend_cpu.draw_walks(backend, 1, first, count, ids), 0);
        assert_memory_equal(ids, t->ids + first * length, count * length * sizeof *ids);
        assert_int_equal(backend_cpu.draw_walks(backend, 1, 0, walks, NULL), 0);
        backend_cpu.close(backend);
        free(ids);
        free_trial(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_those_of_stored_walks),
        cmocka_unit_test(test_walks_are_drawn_alone),
        cmocka_unit_test(test_lock_free_training_is_that_of_stored_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
