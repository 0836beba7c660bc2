#include "tests/testing.h"

#include "base/report.h"
#include "kernels/walks.h"
#include "tests/unit/plausible.h"
#include "train/examples.h"

/* ---- a graph ---- */

enum { NODES = 14, MOST_LABELS = 3, MOST_ARCS = NODES * NODES * MOST_LABELS, SEED = 5 };

/* Arcs of a small graph weigh the same, have weights, or have labels. With labels a weight stands for so many arcs between two nodes. */
enum arcs { PLAIN, WEIGHTED, LABELLED, ARCS };

/* A small graph, both as a matrix and in the form that walks read. */
struct small {
    double weight[NODES][NODES]; /* weight of the arc, or number of arcs; 0: there is no arc */
    uint64_t starts[NODES + 1];
    uint32_t neighbours[MOST_ARCS];
    struct alias alias[MOST_ARCS];
    uint32_t labels[MOST_ARCS]; /* label of each arc: NODES + the arc's index, so that a test can tell from a label which arc was taken */
    struct walks walks;
    int directed;
    double p, q;
};

/* Joins about a third of all pairs of nodes, the first nodes more often. In a directed graph no arc leaves the last node. */
static void join_nodes(struct small *g, enum arcs kind) {
    for (uint32_t a = 0; a < NODES; a++)
        for (uint32_t b = 0; b < NODES; b++) {
            struct draw4 drawn = draw_at(SEED, DRAW_GENERATE, a * NODES + b, 0, (uint32_t)g->directed);
            int joined = a != b && drawn.word[0] % 100 < (a < 3 || b < 3 ? 60u : 25u) && (!g->directed || a + 1 < NODES);
            double weight = kind == WEIGHTED ? 0.25 + drawn.word[1] % 32 / 4.0 : kind == LABELLED ? 1 + drawn.word[1] % MOST_LABELS : 1;
            if (joined && (g->directed || a < b)) g->weight[a][b] = weight;
            if (joined && !g->directed && a < b) g->weight[b][a] = g->weight[a][b];
        }
}

static void make_alias(struct small *g, uint32_t node, const double *weights) {
    uint64_t first = g->starts[node], count = g->starts[node + 1] - first;
    if (count) assert_int_equal(0, examples_alias(g->alias + first, weights, count));
}

static void lay_out(struct small *g, enum arcs kind) {
    uint64_t arcs = 0;
    for (uint32_t a = 0; a < NODES; a++) {
        double weights[NODES];
        g->starts[a] = arcs;
        for (uint32_t b = 0; b < NODES; b++)
            for (int i = 0; i < (kind == LABELLED ? (int)g->weight[a][b] : g->weight[a][b] > 0); i++) {
                if (kind != LABELLED) weights[arcs - g->starts[a]] = g->weight[a][b];
                g->labels[arcs] = NODES + (uint32_t)arcs;
                g->neighbours[arcs++] = b;
            }
        g->starts[a + 1] = arcs;
        if (kind == WEIGHTED) make_alias(g, a, weights);
    }
}

/* length: nodes of a walk. */
static struct small *small_graph(enum arcs kind, int directed, double p, double q, uint32_t length) {
    struct small *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->directed = directed, g->p = p, g->q = q;
    join_nodes(g, kind);
    lay_out(g, kind);
    g->walks = (struct walks){.starts = g->starts,
                              .neighbours = g->neighbours,
                              .alias = kind == WEIGHTED ? g->alias : NULL,
                              .labels = kind == LABELLED ? g->labels : NULL,
                              .nodes = NODES,
                              .begun = NODES,
                              .arcs = g->starts[NODES],
                              .length = kind == LABELLED ? 2 * length - 1 : length,
                              .per_node = 100000};
    walks_set_biases(&g->walks, p, q, directed);
    return g;
}

/* ---- laws ---- */

/* Computes from the definition the probability of each next node of a walk at `at` that came from `before` (NODES: the walk
 * begins at `at`). */
static void law_of_step(const struct small *g, uint32_t before, uint32_t at, double share[NODES]) {
    double sum = 0;
    for (uint32_t x = 0; x < NODES; x++) {
        double bias = before == NODES || (g->p == 1 && g->q == 1) ? 1
                      : x == before                               ? 1 / g->p
                      : g->weight[before][x] > 0                  ? 1
                                                                  : 1 / g->q;
        share[x] = g->weight[at][x] * bias;
        sum += share[x];
    }
    for (uint32_t x = 0; x < NODES && sum > 0; x++) share[x] /= sum;
}

static int step_is_plausible(const struct small *g, uint32_t before, uint32_t at, const uint64_t seen[NODES]) {
    double share[NODES];
    uint64_t n = 0;
    for (uint32_t x = 0; x < NODES; x++) n += seen[x];
    law_of_step(g, before, at, share);
    for (uint32_t x = 0; x < NODES; x++)
        if (share[x] == 0 && seen[x]) return 0; /* a walk used an arc that does not exist */
    return n == 0 || plausible(seen, share, NODES, n);
}

/* Leaves the nodes of a walk alone in ids, and counts how often each arc was followed. */
static void take_labels(const struct small *g, uint32_t *ids, uint64_t arcs[MOST_ARCS]) {
    for (uint32_t i = 1; 2 * i < g->walks.length; i++) {
        uint32_t label = ids[2 * i - 1], from = ids[i - 1], to = ids[2 * i];
        assert_int_equal(label == DRAW_NONE, to == DRAW_NONE);
        ids[i] = to;
        if (to == DRAW_NONE) continue;
        uint64_t arc = label - NODES;
        assert_true(label >= NODES && arc >= g->starts[from] && arc < g->starts[from + 1]);
        assert_int_equal(g->neighbours[arc], to);
        arcs[arc]++;
    }
}

/* Counts the steps of many walks by previous, current and next node. A walk may end early only at a node without arcs. */
static void count_steps(const struct small *g, uint64_t walks, uint64_t (*seen)[NODES][NODES]) {
    uint32_t length = g->walks.labels ? g->walks.length / 2 + 1 : g->walks.length, *ids = calloc(g->walks.length, sizeof *ids);
    uint64_t *arcs = calloc(MOST_ARCS, sizeof *arcs);
    assert_true(ids && arcs);
    for (uint64_t w = 0; w < walks; w++) {
        walk_draw(&g->walks, SEED, w, 3, ids);
        if (g->walks.labels) take_labels(g, ids, arcs);
        for (uint32_t i = 1; i < length; i++) {
            if (ids[i] == DRAW_NONE) {
                assert_true(ids[i - 1] == DRAW_NONE || g->starts[ids[i - 1]] == g->starts[ids[i - 1] + 1]);
                continue;
            }
            assert_true(ids[i] < NODES && ids[i - 1] < NODES);
            seen[i > 1 ? ids[i - 2] : NODES][ids[i - 1]][ids[i]]++;
        }
    }
    for (uint64_t arc = 0, end = 1; arc < g->walks.arcs && g->walks.labels; arc = end++) { /* walks take all arcs between two nodes equally often */
        double shares[MOST_LABELS] = {0};
        uint64_t all = 0;
        while (end < g->walks.arcs && g->neighbours[end] == g->neighbours[arc]) end++;
        for (uint64_t i = arc; i < end && end - arc <= MOST_LABELS; i++) all += arcs[i], shares[i - arc] = 1.0 / (double)(end - arc);
        if (end - arc > 1 && all) assert_true(plausible(arcs + arc, shares, (uint32_t)(end - arc), all));
    }
    free(ids);
    free(arcs);
}

static void check_law(enum arcs weighted, int directed, double p, double q) {
    struct small *g = small_graph(weighted, directed, p, q, 9);
    uint64_t(*seen)[NODES][NODES] = calloc(NODES + 1, sizeof *seen);
    assert_non_null(seen);
    count_steps(g, 40000, seen);
    for (uint32_t before = 0; before <= NODES; before++)
        for (uint32_t at = 0; at < NODES; at++)
            if (!step_is_plausible(g, before, at, seen[before][at]))
                fail_msg("weighted %d, directed %d, p %g, q %g: steps from %u by way of %u", weighted, directed, p, q, before, at);
    free(seen);
    free(g);
}

static void test_steps_follow_their_law(void **state) {
    const double biases[][2] = {{1, 1}, {0.5, 2}, {0.25, 0.25}, {0.25, 4}, {4, 0.25}, {4, 4}, {2, 0.5}, {1, 3}, {0.1, 1}, {5, 1}};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        for (int kind = 0; kind < 2 * ARCS; kind++) check_law(kind % ARCS, kind / ARCS, biases[i][0], biases[i][1]);
}

/* The test must recognize the probabilities of another graph as wrong; otherwise the test above could not fail. */
static void test_a_wrong_law_is_seen(void **state) {
    struct small *g = small_graph(0, 0, 0.5, 2, 9);
    uint64_t(*seen)[NODES][NODES] = calloc(NODES + 1, sizeof *seen);
    int wrong = 0;
    assert_non_null(seen);
    count_steps(g, 40000, seen);
    g->q = 1.5;
    for (uint32_t before = 0; before < NODES; before++)
        for (uint32_t at = 0; at < NODES; at++) wrong += !step_is_plausible(g, before, at, seen[before][at]);
    assert_true(wrong > 10);
    free(seen);
    free(g);
}

/* Checks the step that is drawn after all candidates were refused, with every previous node. */
static void check_exact_law(enum arcs weighted, int directed, double p, double q) {
    enum { DRAWS = 4000 };
    struct small *g = small_graph(weighted, directed, p, q, 9);
    for (uint32_t before = 0; before < NODES; before++)
        for (uint32_t at = 0; at < NODES; at++) {
            struct walk_node from = walk_node(&g->walks, before), here = walk_node(&g->walks, at);
            uint64_t seen[NODES] = {0};
            if (g->weight[before][at] == 0 || !here.degree) continue;
            for (uint32_t i = 0; i < DRAWS; i++) {
                uint32_t label = 0, next = walk_draw_exactly(&g->walks, SEED, i, 0, at, &here, &from, &label);
                assert_true(!g->walks.labels || (label >= NODES && g->neighbours[label - NODES] == next));
                seen[next]++;
            }
            if (!step_is_plausible(g, before, at, seen))
                fail_msg("weighted %d, directed %d, p %g, q %g: steps from %u by way of %u", weighted, directed, p, q, before, at);
        }
    free(g);
}

static void test_exact_steps_follow_the_same_law(void **state) {
    const double biases[][2] = {{0.5, 2}, {4, 0.25}, {0.1, 1}, {1000, 0.001}, {0.001, 1}, {1, 0.001}};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        for (int kind = 0; kind < 2 * ARCS; kind++) check_exact_law(kind % ARCS, kind / ARCS, biases[i][0], biases[i][1]);
}

/* On a ring whose arcs weigh 1 and 10^6 by turns, the way back over a heavy arc is nearly always drawn and nearly always
 * refused. By definition a walk goes back over it as often as forward: 10^6 / p against 1 / q. */
static void test_tries_of_a_step_have_an_end(void **state) {
    enum { RING = 10, LENGTH = 40, WALKS = 60 };
    uint64_t starts[RING + 1], tries = 0, on = 0, back = 0;
    uint32_t neighbours[2 * RING];
    struct alias alias[2 * RING];
    for (uint32_t node = 0; node < RING; node++) {
        uint32_t next = (node + 1) % RING, last = (node + RING - 1) % RING, first = next < last ? next : last;
        const double heavy = node % 2 ? 1e6 : 1, other = node % 2 ? 1 : 1e6, weights[] = {first == next ? heavy : other,
                                                                                          first == next ? other : heavy};
        starts[node] = 2 * node;
        neighbours[2 * node] = first;
        neighbours[2 * node + 1] = first == next ? last : next;
        assert_int_equal(0, examples_alias(alias + 2 * node, weights, 2));
    }
    starts[RING] = 2 * RING;
    struct walks w = {.starts = starts, .neighbours = neighbours, .alias = alias, .nodes = RING, .begun = RING, .arcs = 2 * RING, .length = LENGTH};
    w.per_node = WALKS;
    walks_set_biases(&w, 1000, 0.001, 0);
    for (uint64_t number = 0; number < WALKS; number++) {
        struct walk walk = walk_begin(&w, SEED, number, 0);
        uint32_t before = DRAW_NONE, at = walk.at.id;
        while (walk_go(&w, SEED, 0, &walk)) {
            tries++;
            if (walk.at.id == at) continue;
            int heavy = before != DRAW_NONE && before % 2 && at == (before + 1) % RING;
            heavy |= before != DRAW_NONE && before % 2 == 0 && before == (at + 1) % RING;
            if (heavy) *(walk.at.id == before ? &back : &on) += 1;
            before = at;
            at = walk.at.id;
        }
        assert_int_equal(walk.step, LENGTH - 1);
    }
    assert_true(tries <= (uint64_t)WALKS * (LENGTH - 1) * (WALK_TRIES + 3));
    assert_true(tries > (uint64_t)WALK_TRIES * 100); /* the limit on tries was reached */
    assert_true(on + back > 1000 && on > 2 * back / 3 && back > 2 * on / 3);
}

/* ---- walks ---- */

static void test_every_node_begins_a_walk_in_each_pass(void **state) {
    struct small *g = small_graph(0, 0, 1, 1, 3);
    int moved = 0;
    for (uint64_t pass = 0; pass < 50; pass++) {
        unsigned seen = 0;
        for (uint64_t i = 0; i < NODES; i++) {
            uint32_t start = walk_start(&g->walks, SEED, pass * NODES + i, 1);
            seen |= 1u << start;
            moved += start != walk_start(&g->walks, SEED, i, 0);
        }
        assert_int_equal((1u << NODES) - 1, seen);
    }
    assert_true(moved > 40 * NODES); /* walks begin at the nodes in a random order */
    free(g);
}

/* Walks over triples begin only at listed nodes. */
static void test_walks_begin_at_the_listed_nodes(void **state) {
    static const uint32_t begins[] = {3, 7, 8, 12, 13};
    enum { BEGUN = sizeof begins / sizeof *begins };
    struct small *g = small_graph(LABELLED, 1, 1, 1, 3);
    g->walks.begins = begins;
    g->walks.begun = BEGUN;
    assert_int_equal(walks_count(&g->walks), (uint64_t)BEGUN * g->walks.per_node);
    for (uint64_t pass = 0; pass < 20; pass++) {
        unsigned seen = 0;
        for (uint64_t i = 0; i < BEGUN; i++) seen |= 1u << walk_start(&g->walks, SEED, pass * BEGUN + i, 1);
        assert_int_equal(1u << 3 | 1u << 7 | 1u << 8 | 1u << 12 | 1u << 13, seen);
    }
    free(g);
}

static void test_walks_differ(void **state) {
    struct small *g = small_graph(0, 0, 2, 0.5, 40);
    uint32_t a[40], b[40];
    uint64_t other = 1;
    while (walk_start(&g->walks, SEED, other, 0) != walk_start(&g->walks, SEED, 0, 0) || other < NODES) other++;
    walk_draw(&g->walks, SEED, 0, 0, a);
    walk_draw(&g->walks, SEED, 0, 0, b);
    assert_memory_equal(a, b, sizeof a);
    walk_draw(&g->walks, SEED, other, 0, b);
    assert_int_equal(a[0], b[0]);
    assert_memory_not_equal(a, b, sizeof a);
    free(g);
}

/* Nodes 1, 2, .. have an arc to node 0 only. So every second step goes back, even if its bias makes that improbable. */
static void test_the_only_arc_is_taken_at_once(void **state) {
    enum { LEAVES = 9, LENGTH = 21 };
    uint64_t starts[LEAVES + 2] = {0};
    uint32_t neighbours[2 * LEAVES], ids[LENGTH];
    for (uint32_t leaf = 1; leaf <= LEAVES; leaf++) {
        neighbours[leaf - 1] = leaf;
        neighbours[LEAVES + leaf - 1] = 0;
        starts[leaf] = LEAVES + leaf - 1;
    }
    starts[LEAVES + 1] = 2 * LEAVES;
    struct walks w = {.starts = starts, .neighbours = neighbours, .nodes = LEAVES + 1, .begun = LEAVES + 1, .arcs = 2 * LEAVES, .length = LENGTH};
    w.per_node = 1;
    walks_set_biases(&w, 1000, 0.001, 0);
    for (uint64_t number = 0; number < 20; number++) {
        struct walk walk = walk_begin(&w, SEED, number, 0);
        unsigned tries = 0;
        do ids[walk.step] = walk.at.id;
        while (walk_go(&w, SEED, 0, &walk) && ++tries < 1000);
        assert_true(tries < 1000);
        for (uint32_t i = 1; i < LENGTH; i++) assert_true((ids[i] == 0) != (ids[i - 1] == 0));
    }
}

static void test_positions_are_those_of_walks(void **state) {
    struct walks w = {.nodes = (uint64_t)1 << 32, .begun = (uint64_t)1 << 32, .per_node = 10, .length = 80};
    assert_true(walks_count(&w) == (uint64_t)10 << 32 && walks_positions(&w) == (uint64_t)800 << 32);
    struct walk_range range = walks_of(&w, ((uint64_t)1 << 40) * 80 + 79, 2);
    assert_true(range.first == (uint64_t)1 << 40 && range.end == ((uint64_t)1 << 40) + 2);
    range = walks_of(&w, 160, 80);
    assert_true(range.first == 2 && range.end == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_follow_their_law),
        cmocka_unit_test(test_exact_steps_follow_the_same_law),
        cmocka_unit_test(test_tries_of_a_step_have_an_end),
        cmocka_unit_test(test_a_wrong_law_is_seen),
        cmocka_unit_test(test_every_node_begins_a_walk_in_each_pass),
        cmocka_unit_test(test_walks_begin_at_the_listed_nodes),
        cmocka_unit_test(test_walks_differ),
        cmocka_unit_test(test_the_only_arc_is_taken_at_once),
        cmocka_unit_test(test_positions_are_those_of_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
