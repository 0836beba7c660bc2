#include "tests/testing.h"

#include "base/file.h"
#include "tests/unit/scratch.h"
#include "tune/tune_inner.h"

#include "tests/unit/sentence.h"

/* A ring of twelve nodes, each joined to the next two nodes: 24 edges. */
enum { NODES = 12, ARCS = 48 };
static uint64_t starts[NODES + 1];
static uint32_t neighbours[ARCS];

static int by_number(const void *a, const void *b) {
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static struct graph make_ring(void) {
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t *of = neighbours + 4 * node;
        of[0] = (node + 1) % NODES, of[1] = (node + 2) % NODES, of[2] = (node + 10) % NODES,
        of[3] = (node + 11) % NODES;
        qsort(of, 4, sizeof *of, by_number);
        starts[node + 1] = 4 * node + 4;
    }
    return (struct graph){.starts = starts, .neighbours = neighbours, .nodes = NODES, .arcs = ARCS};
}

/* Reads a file's edges into seen[][], and joins the components of their nodes in part[]. */
static int read_edges(const char *path, int seen[NODES][NODES], int part[NODES]) {
    char *text = file_read(path, NULL);
    int count = 0;
    assert_non_null(text);
    for (char *line = text; *line; line = strchr(line, '\n') + 1, count++) {
        int from, to;
        assert_int_equal(sscanf(line, "%d\t%d", &from, &to), 2);
        assert_int_equal(seen[from][to]++, 0);
        for (int i = 0, old = part[to]; i < NODES; i++)
            if (part[i] == old) part[i] = part[from];
    }
    free(text);
    return count;
}

static void what_is_left_hangs_together(void **state) {
    struct graph ring = make_ring();
    char kept[512], out[512];
    snprintf(kept, sizeof kept, "%s", in_scratch("kept"));
    snprintf(out, sizeof out, "%s", in_scratch("out"));
    for (uint32_t seed = 1; seed < 20; seed++) {
        int seen[NODES][NODES] = {{0}}, part[NODES], none[NODES] = {0};
        for (int i = 0; i < NODES; i++) part[i] = i;
        assert_int_equal(split_edges(&ring, 0.5, seed, kept, out), 0);
        assert_int_equal(read_edges(kept, seen, part), 12);
        for (int i = 1; i < NODES; i++) assert_int_equal(part[i], part[0]);
        assert_int_equal(read_edges(out, seen, none), 12);
    }
}

static void each_triple_is_in_one_part(void **state) {
    uint32_t ids[3 * 50];
    char kept[512], out[512];
    for (uint32_t i = 0; i < 150; i++) ids[i] = i / 3 * 7 + i % 3;
    struct idstream stream = {.ids = ids, .tokens = 150, .sentences = 50, .triples = 50};
    snprintf(kept, sizeof kept, "%s", in_scratch("kept"));
    snprintf(out, sizeof out, "%s", in_scratch("out"));
    for (int part = 0, met[50] = {0}; part < 2; part++) {
        assert_int_equal(split_triples(&stream, 0.1, 3, kept, out), 0);
        char *text = file_read(part ? out : kept, NULL);
        int count = 0;
        assert_non_null(text);
        for (char *line = text; *line; line = strchr(line, '\n') + 1, count++) {
            unsigned triple[3];
            assert_int_equal(sscanf(line, "%u\t%u\t%u", &triple[0], &triple[1], &triple[2]), 3);
            assert_true(triple[1] == triple[0] + 1 && triple[2] == triple[0] + 2);
            assert_int_equal(met[triple[0] / 7]++, 0);
        }
        assert_int_equal(count, part ? 5 : 45);
        free(text);
    }
    stream.triples = 1;
    assert_int_equal(split_triples(&stream, 0.1, 3, kept, out), -1);
    report_clear();
}

static void a_tree_has_nothing_to_hold_out(void **state) {
    static const uint64_t tree_starts[] = {0, 2, 3, 4};
    static const uint32_t tree_neighbours[] = {1, 2, 0, 0};
    struct graph tree = {.starts = tree_starts, .neighbours = tree_neighbours, .nodes = 3, .arcs = 4};
    char kept[512];
    snprintf(kept, sizeof kept, "%s", in_scratch("kept"));
    assert_int_equal(split_edges(&tree, 0.1, 1, kept, in_scratch("out")), -1);
    sentence_holds("this graph has none");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_triple_is_in_one_part),
                                       cmocka_unit_test(what_is_left_hangs_together),
                                       cmocka_unit_test(a_tree_has_nothing_to_hold_out)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
