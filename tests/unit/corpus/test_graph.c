#include "tests/testing.h"
#include <signal.h>
#include <sys/resource.h>

#include "base/directory.h"
#include "base/memory.h"
#include "corpus/fields.h"
#include "corpus/graph.h"
#include "corpus/idstream.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

#include "tests/unit/sentence.h"

enum { NODES = 40, EDGES = 900 };
static struct pool *pools[5]; /* pools[n] has n threads; 1 to 4 */

static int set_up(void **state) {
    for (unsigned threads = 1; threads < 5; threads++) pools[threads] = pool_open(threads);
    return scratch_make(state);
}
static int tear_down(void **state) {
    for (unsigned threads = 1; threads < 5; threads++) pool_close(pools[threads]);
    return scratch_remove(state);
}

/* ---- from edges, against a plain reference ---- */

/* Edges, and the graph that must be made of them: how often each arc occurs, and the sum of its weights. */
struct drawn {
    uint32_t ends[2 * EDGES];
    float weights[EDGES];
    int times[NODES][NODES];
    double sums[NODES][NODES];
    uint64_t count, loops;
};

static void add_arc(struct drawn *drawn, uint32_t from, uint32_t to, float weight) {
    drawn->times[from][to]++;
    drawn->sums[from][to] += weight;
}

/* Draws edges; few of them begin at the last nodes. Weights are multiples of a quarter, so their sums are exact. */
static struct drawn *draw(uint64_t count, int directed) {
    struct drawn *drawn = calloc(1, sizeof *drawn);
    drawn->count = count;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t from = scratch_random(1 + scratch_random(NODES)), to = scratch_random(NODES - 3);
        drawn->ends[2 * i] = from;
        drawn->ends[2 * i + 1] = to;
        drawn->weights[i] = 0.25f * (float)(1 + scratch_random(9));
        drawn->loops += from == to;
        if (from == to) continue;
        add_arc(drawn, from, to, drawn->weights[i]);
        if (!directed) add_arc(drawn, to, from, drawn->weights[i]);
    }
    return drawn;
}

static void assert_graph(const struct graph *graph, const struct drawn *drawn, int weighted) {
    uint64_t at = 0;
    assert_int_equal(graph->nodes, NODES);
    assert_int_equal(graph->weights != NULL, weighted);
    for (uint32_t from = 0; from < NODES; from++) {
        assert_int_equal(graph->starts[from], at);
        for (uint32_t to = 0; to < NODES; to++) {
            if (!drawn->times[from][to]) continue;
            assert_true(at < graph->arcs);
            assert_int_equal(graph->neighbours[at], to);
            if (weighted) assert_true(graph->weights[at] == (float)drawn->sums[from][to]);
            at++;
        }
    }
    assert_int_equal(graph->arcs, at);
    assert_int_equal(graph->starts[NODES], at);
}

static void make_and_check(const struct drawn *drawn, int directed, int weighted) {
    uint64_t checksum = 0;
    for (unsigned threads = 1; threads < 5; threads++) {
        struct edges edges = {.from = drawn->ends,
                              .to = drawn->ends + 1,
                              .weights = weighted ? drawn->weights : NULL,
                              .stride = 2, .weight_stride = 1, .count = drawn->count};
        struct graph_wanted wanted = {.fingerprint = 7,
                                      .nodes = NODES,
                                      .directed = directed,
                                      .at_once = threads * threads * 17,
                                      .report_seconds = 1};
        struct graph graph;
        struct graph_left left;
        assert_int_equal(graph_write(in_scratch("graph"), &wanted, &edges, pools[threads], &left), 0);
        assert_int_equal(left.loops, drawn->loops);
        assert_int_equal(graph_open(&graph, in_scratch("graph"), 7, NODES, pools[threads]), 0);
        assert_int_equal(file_size(in_scratch("graph")), graph_bytes(NODES, graph.arcs, weighted));
        assert_int_equal(graph.directed, directed);
        assert_graph(&graph, drawn, weighted);
        if (threads > 1) assert_int_equal(graph.checksum, checksum);
        checksum = graph.checksum;
        graph_close(&graph);
    }
}

static void random_graphs_are_as_a_plain_reference_has_them(void **state) {
    for (int round = 0; round < 60; round++) {
        int directed = round % 2, weighted = round / 2 % 2;
        struct drawn *drawn = draw(1 + scratch_random(round % 5 ? EDGES : 20), directed);
        if (drawn->loops < drawn->count) make_and_check(drawn, directed, weighted);
        free(drawn);
    }
}

/* Triples: each (from, to, label) is one arc, in this order. Triples with a term that has no row are left out. */
static void triples_become_arcs_with_labels(void **state) {
    enum { RELATIONS = 7, TRIPLES = 300 };
    static const uint32_t label_rows[RELATIONS] = {NODES + 3, NODES, WORDS_ABSENT, NODES + 5, NODES + 1, NODES + 2, NODES + 4};
    for (int round = 0; round < 40; round++) {
        int directed = round % 2, there[NODES][NODES][RELATIONS] = {0};
        uint32_t terms[3 * TRIPLES], rows[NODES + 1], count = 1 + scratch_random(TRIPLES);
        uint64_t arcs = 0, loops = 0, lost = 0, checksum = 0;
        for (uint32_t i = 0; i <= NODES; i++) rows[i] = i < NODES ? NODES - 1 - i : WORDS_ABSENT;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t head = i ? scratch_random(NODES + 1) : 0, relation = i ? scratch_random(RELATIONS) : 0, tail = i ? scratch_random(NODES + 1) : 1;
            terms[3 * i] = head, terms[3 * i + 1] = relation, terms[3 * i + 2] = tail;
            int absent = head == NODES || tail == NODES || label_rows[relation] == WORDS_ABSENT;
            lost += (uint64_t)absent;
            loops += !absent && head == tail;
            if (absent || head == tail) continue;
            there[rows[head]][rows[tail]][label_rows[relation] - NODES] = 1;
            if (!directed) there[rows[tail]][rows[head]][label_rows[relation] - NODES] = 1;
        }
        for (unsigned threads = 1; threads < 4; threads++) {
            struct edges edges = {.from = terms, .to = terms + 2, .rows = rows, .labels = terms + 1, .label_rows = label_rows, .stride = 3,
                                  .count = count};
            struct graph_wanted wanted = {.nodes = NODES + RELATIONS, .directed = directed, .at_once = threads * 17, .report_seconds = 1};
            struct graph graph;
            struct graph_left left;
            assert_int_equal(graph_write(in_scratch("graph"), &wanted, &edges, pools[threads], &left), 0);
            assert_true(left.loops == loops && left.lost == lost);
            assert_int_equal(graph_open(&graph, in_scratch("graph"), 0, wanted.nodes, pools[threads]), 0);
            assert_true(graph.labels && !graph.weights);
            arcs = 0;
            for (uint32_t from = 0; from < NODES; from++) {
                assert_int_equal(graph.starts[from], arcs);
                for (uint32_t to = 0; to < NODES; to++)
                    for (uint32_t label = 0; label < RELATIONS; label++) {
                        if (!there[from][to][label]) continue;
                        assert_true(arcs < graph.arcs && graph.neighbours[arcs] == to && graph.labels[arcs] == NODES + label);
                        arcs++;
                    }
            }
            assert_int_equal(graph.arcs, arcs);
            assert_int_equal(file_size(in_scratch("graph")), graph_bytes(wanted.nodes, arcs, 1));
            if (threads > 1) assert_int_equal(graph.checksum, checksum);
            checksum = graph.checksum;
            graph_close(&graph);
        }
    }
}

/* One row has more arcs than one sort handles, and many more duplicates than distinct arcs. */
static void a_row_may_be_longer_than_a_group(void **state) {
    enum { MANY = 3 * SORT_ARCS, OTHERS = 50000 };
    uint32_t *ends = malloc(2 * MANY * sizeof *ends);
    struct edges edges = {.from = ends, .to = ends + 1, .stride = 2, .weight_stride = 1, .count = MANY};
    struct graph_wanted wanted = {.nodes = OTHERS + 1, .at_once = 1000, .report_seconds = 1};
    struct graph graph;
    struct graph_left left;
    for (uint32_t i = 0; i < MANY; i++) ends[2 * i] = 0, ends[2 * i + 1] = 1 + i * 7u % OTHERS;
    assert_int_equal(graph_write(in_scratch("graph"), &wanted, &edges, pools[2], &left), 0);
    assert_int_equal(graph_open(&graph, in_scratch("graph"), 0, OTHERS + 1, pools[2]), 0);
    assert_int_equal(graph.arcs, 2 * OTHERS);
    assert_int_equal(graph.starts[1], OTHERS);
    for (uint32_t i = 0; i < OTHERS; i++) assert_int_equal(graph.neighbours[i], i + 1);
    for (uint64_t i = OTHERS; i < graph.arcs; i++) assert_int_equal(graph.neighbours[i], 0);
    graph_close(&graph);
    free(ends);
}

/* The first group of rows that a worker sorts has no arc. */
static void the_first_rows_may_have_no_arc(void **state) {
    static const uint32_t ends[] = {SORT_ROWS + 5, 0, SORT_ROWS + 6, 9};
    static const float weights[] = {2, 3};
    for (int weighted = 0; weighted < 2; weighted++) {
        struct edges edges = {.from = ends, .to = ends + 1, .weights = weighted ? weights : NULL, .stride = 2, .weight_stride = 1, .count = 2};
        struct graph_wanted wanted = {.nodes = SORT_ROWS + 7, .directed = 1, .report_seconds = 1};
        struct graph graph;
        struct graph_left left;
        assert_int_equal(graph_write(in_scratch("graph"), &wanted, &edges, pools[1 + weighted], &left), 0);
        assert_int_equal(graph_open(&graph, in_scratch("graph"), 0, wanted.nodes, pools[1]), 0);
        assert_int_equal(graph.arcs, 2);
        assert_int_equal(graph.starts[SORT_ROWS + 5], 0);
        assert_int_equal(graph.starts[SORT_ROWS + 6], 1);
        assert_int_equal(graph.neighbours[1], 9);
        graph_close(&graph);
    }
}

/* The sum of an edge's weights must not depend on their order in the file, as a sum of floats would. */
static void sums_do_not_depend_on_the_order(void **state) {
    static const float weights[2][4] = {{1e8f, 1, 1e-7f, 3}, {1e-7f, 3, 1e8f, 1}};
    static const uint32_t ends[] = {0, 1, 1, 0, 0, 1, 1, 0};
    struct graph_wanted wanted = {.nodes = 2, .report_seconds = 1};
    struct graph graphs[2];
    struct graph_left left;
    for (int i = 0; i < 2; i++) {
        struct edges edges = {.from = ends, .to = ends + 1, .weights = weights[i], .stride = 2, .weight_stride = 1, .count = 4};
        char *path = in_scratch(i ? "one" : "other");
        assert_int_equal(graph_write(path, &wanted, &edges, pools[1], &left), 0);
        assert_int_equal(graph_open(&graphs[i], path, 0, 2, pools[1]), 0);
    }
    assert_int_equal(graphs[0].checksum, graphs[1].checksum);
    assert_true(graphs[0].weights[0] == graphs[0].weights[1] && graphs[0].weights[0] == 100000008.0f);
    graph_close(&graphs[0]);
    graph_close(&graphs[1]);
    struct edges edges = {.from = ends, .to = ends + 1, .weights = (const float[]){3e38f, 3e38f}, .stride = 2, .weight_stride = 1, .count = 2};
    assert_int_equal(graph_write(in_scratch("large"), &wanted, &edges, pools[1], &left), -1);
    sentence_holds("add up to more than 32 bits hold");
    assert_false(file_exists(in_scratch("large")));
}

/* ---- from text ---- */

struct made {
    struct corpus_options options;
    struct corpus *corpus;
    struct vocab vocab;
    struct graph graph;
    int result;
};

static struct corpus_options graph_options(void) {
    return plain_options(FORMAT_GRAPH);
}

static struct made make(const char *text, struct corpus_options options, uint64_t block) {
    struct made made = {.options = options, .corpus = scratch_corpus(scratch_text("edges", text), block)};
    file_remove(in_scratch("graph"));
    made.result =
        graph_settle(&made.options, made.corpus) || vocab_build(&made.vocab, made.corpus, &made.options, pools[2]) ||
                graph_make(&made.graph, in_scratch("graph"), made.corpus, &made.vocab, &made.options, pools[2])
            ? -1
            : 0;
    return made;
}

static void release(struct made *made) {
    graph_close(&made->graph);
    vocab_release(&made->vocab);
    corpus_close(made->corpus);
}

/* Checks that the graph's arcs are `wanted`, written as "a>b=weight " each. */
static void assert_arcs(const char *text, struct corpus_options options, const char *wanted) {
    char got[1024] = "", *at = got;
    struct made made = make(text, options, 5);
    if (made.result) fail_msg("of \"%s\": %s", text, report_sentence());
    for (uint64_t node = 0; node < made.graph.nodes; node++)
        for (uint64_t i = made.graph.starts[node]; i < made.graph.starts[node + 1]; i++) {
            at += sprintf(at, "%s>%s", vocab_word(&made.vocab, node, NULL),
                          vocab_word(&made.vocab, made.graph.neighbours[i], NULL));
            at += made.graph.weights ? sprintf(at, "=%g ", made.graph.weights[i]) : sprintf(at, " ");
        }
    if (strcmp(got, wanted)) fail_msg("of \"%s\"\n  wanted \"%s\"\n  got    \"%s\"", text, wanted, got);
    release(&made);
}

static void lines_become_arcs(void **state) {
    struct corpus_options options = graph_options(), directed = options, none = options;
    directed.directed = 1;
    none.weights = WEIGHTS_NO;
    assert_arcs("a b\nb c\nb d\nc c\nb a\n", options, "b>a b>c b>d a>b c>b d>b ");
    assert_arcs("a b\nb c\nb d\nc c\nb a\n", directed, "b>a b>c b>d a>b ");
    assert_arcs("a b .5\nb a 2\nc a 0\na b 1\nb c 4\n", options, "b>a=3.5 b>c=4 a>b=3.5 c>b=4 ");
    assert_arcs("a b .5\nb a 2\nb c 4\na b 1\n", directed, "b>a=2 b>c=4 a>b=1.5 ");
    assert_arcs("a b .5\nb a 2\n", none, "a>b b>a ");
    assert_arcs("7 12\n12 xx\n7 007\n", options, "7>12 7>007 12>7 12>xx xx>12 007>7 ");
}

static void nodes_that_are_left_out_take_their_edges_along(void **state) {
    struct corpus_options options = graph_options(), few = options, given = options;
    options.min_count = 2;
    few.max_vocab = 2;
    given.order = ORDER_GIVEN;
    assert_arcs("a b\nb c\nc a\nc rare\n", options, "c>a c>b a>c a>b b>c b>a ");
    assert_arcs("a b\nb c\nb d\nc a\nc b\n", few, "b>c c>b ");
    assert_arcs("4 1\n01 0\n1 01\n4 1\n", given, "0>1 1>0 1>4 4>1 "); /* 1 and 01 are the same number, so the same node */
    given.min_count = 2; /* a number that is left out as too rare still has a row, with count 0, if a higher number is kept */
    assert_arcs("0 1\n0 1\n1 2\n1 9\n9 0\n", given, "0>1 0>9 1>0 1>9 9>0 9>1 ");
    options.vocab = scratch_text("vocab", "c\t3\nb\t2\nzz\t1\n");
    assert_arcs("a b\nb c\nc a\n", options, "c>b b>c ");
    struct made made = make("a b\nx c\n", options, 0);
    assert_int_equal(made.result, -1);
    sentence_holds("joins two nodes of the vocabulary of 3 words");
    release(&made);
}

static void mistakes_have_a_sentence(void **state) {
    static const char *const bad[][2] = {{"a b 1\nb d 2\nb c x\n", "line 3: the weight 'x' is not a positive finite number"},
                                         {"a a\n", "the corpus 'here' has no edge in its 4 bytes"},
                                         {"a b\na\n", "line 2: 1 field"}};
    struct corpus_options options = graph_options();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.weights = i == 0 ? WEIGHTS_YES : WEIGHTS_AUTO;
        struct made made = make(bad[i][0], options, 0);
        assert_int_equal(made.result, -1);
        sentence_holds(bad[i][1]);
        release(&made);
    }
}

/* No temporary file is left beside the graph. */
static void only_the_graph_is_left(void **state) {
    char **names;
    struct made made = make("a b 2\nb c 3\n", graph_options(), 0);
    assert_int_equal(made.result, 0);
    int64_t count = directory_list(scratch, &names);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "edges");
    assert_string_equal(names[1], "graph");
    mem_free_texts(names, count);
    release(&made);
}

static void assert_alone(const char *name) {
    char **names;
    int64_t count = directory_list(scratch, &names);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], name);
    mem_free_texts(names, count);
}

/* The disk is full while edges, weights, or the graph are written. */
static void a_full_disk_leaves_nothing(void **state) {
    static const uint64_t room[] = {1000, 36000, 50000};
    static const char *const sentences[] = {"cannot write beside '", "cannot write beside '", "graph': File too large"};
    char *text = malloc(200000), *at = text;
    for (int i = 0; i < 5000; i++) at += sprintf(at, "%d %d %d\n", i % 70, 100 + i, 1 + i % 3);
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 3; i++) {
        struct rlimit limit, small;
        scratch_text("edges", text);
        getrlimit(RLIMIT_FSIZE, &limit);
        small = limit;
        small.rlim_cur = room[i];
        struct made made = {.options = graph_options(), .corpus = scratch_corpus(in_scratch("edges"), 20000)};
        assert_int_equal(graph_settle(&made.options, made.corpus), 0);
        assert_int_equal(vocab_build(&made.vocab, made.corpus, &made.options, pools[2]), 0);
        setrlimit(RLIMIT_FSIZE, &small);
        made.result = graph_make(&made.graph, in_scratch("graph"), made.corpus, &made.vocab, &made.options, pools[2]);
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_int_equal(made.result, -1);
        sentence_holds(sentences[i]);
        assert_alone("edges");
        release(&made);
    }
    free(text);
}

/* The file changes between counting the nodes and reading the edges. It must be refused. */
static void a_file_that_grows_meanwhile_is_refused(void **state) {
    struct made made = {.options = graph_options(), .corpus = scratch_corpus(scratch_text("edges", "a b\nb c\n"), 0)};
    assert_int_equal(vocab_build(&made.vocab, made.corpus, &made.options, pools[2]), 0);
    scratch_text("edges", "a b\nb c\nc a\n");
    assert_int_equal(graph_make(&made.graph, in_scratch("graph"), made.corpus, &made.vocab, &made.options, pools[2]),
                     -1);
    sentence_holds("edges' was changed while it was read: it had 8 bytes and has 12; train when nothing writes to it");
    assert_alone("edges");
    release(&made);
}

static void fingerprints_tell_keys_apart(void **state) {
    struct made made = make("a b 2\nb c 3\n", graph_options(), 0);
    struct corpus_options other = made.options;
    uint64_t own = graph_fingerprint(made.corpus, &made.vocab, &made.options);
    assert_int_equal(graph_fingerprint(made.corpus, &made.vocab, &other), own);
    other.directed = 1;
    assert_int_not_equal(graph_fingerprint(made.corpus, &made.vocab, &other), own);
    other = made.options;
    other.weights = WEIGHTS_NO;
    assert_int_not_equal(graph_fingerprint(made.corpus, &made.vocab, &other), own);
    other = made.options;
    other.min_count = 3;
    assert_int_not_equal(graph_fingerprint(made.corpus, &made.vocab, &other), own);
    release(&made);
}

/* ---- what is not believed ---- */

/* Writes the right checksum of these bytes into them. */
static void sign(char *bytes, uint64_t length) {
    uint64_t sum;
    assert_int_equal(piece_sum_of(bytes + GRAPH_HEADER, length - GRAPH_HEADER, pools[1], NULL, NULL, &sum), 0);
    memcpy(bytes + 40, &sum, sizeof sum);
}

static int opens(const char *bytes, uint64_t length, uint64_t fingerprint, uint64_t rows) {
    struct graph graph;
    int result = graph_open(&graph, scratch_file("changed", bytes, length), fingerprint, rows, pools[2]);
    assert_int_equal(!result, !*report_sentence());
    report_clear();
    graph_close(&graph);
    return !result;
}

static void damage_is_seen(void **state) {
    struct made made = make("a b 2\nb c 3\nc d 1\nd a 4\n", graph_options(), 0);
    uint64_t length, fingerprint = graph_fingerprint(made.corpus, &made.vocab, &made.options);
    char *bytes = file_read(in_scratch("graph"), &length);
    assert_int_equal(opens(bytes, length, fingerprint, 4), 1);
    assert_int_equal(opens(bytes, length, fingerprint + 1, 4), 0);
    assert_int_equal(opens(bytes, length, fingerprint, 5), 0);
    assert_int_equal(opens(bytes, length - 8, fingerprint, 4), 0);
    assert_int_equal(opens(bytes, 60, fingerprint, 4), 0);
    for (uint64_t i = GRAPH_HEADER; i < length; i++) {
        bytes[i] ^= 1;
        assert_int_equal(opens(bytes, length, fingerprint, 4), 0);
        bytes[i] ^= 1;
    }
    free(bytes);
    release(&made);
}

/* A file with a right checksum may still contain an invalid graph. This one has 8 arcs: neighbours, weights, then five starts. */
static void arcs_that_make_no_sense_are_seen(void **state) {
    struct made made = make("a b 2\nb c 3\nc d 1\nd a 4\n", graph_options(), 0);
    uint64_t length, fingerprint = graph_fingerprint(made.corpus, &made.vocab, &made.options);
    char *bytes = file_read(in_scratch("graph"), &length), *changed = malloc(length);
    const struct {
        uint64_t at;
        uint32_t value;
    } changes[] = {{0, 0},          {0, 4},          {0, 3},  {1, 1},  {8, 0},  {9, 0x7f800000},
                   {9, 0xbf800000}, {9, 0x7fc00000}, {16, 1}, {18, 9}, {19, 1}, {24, 7}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(changed, bytes, length);
        memcpy(changed + GRAPH_HEADER + 4 * changes[i].at, &changes[i].value, 4);
        sign(changed, length);
        if (opens(changed, length, fingerprint, 4)) fail_msg("change %d was not seen", (int)i);
    }
    memcpy(changed, bytes, length);
    sign(changed, length);
    assert_int_equal(opens(changed, length, fingerprint, 4), 1);
    free(bytes);
    free(changed);
    release(&made);
}

/* Damaged labels of triples: here a>b by two relations, c>a by one; neighbours are followed by labels. */
static void labels_that_make_no_sense_are_seen(void **state) {
    static const uint32_t terms[] = {0, 0, 1, 0, 1, 1, 2, 0, 0}, label_rows[] = {3, 4};
    struct edges edges = {.from = terms, .to = terms + 2, .labels = terms + 1, .label_rows = label_rows, .stride = 3, .count = 3};
    struct graph_wanted wanted = {.nodes = 5, .directed = 1, .report_seconds = 1};
    struct graph_left left;
    uint64_t length;
    assert_int_equal(graph_write(in_scratch("graph"), &wanted, &edges, pools[1], &left), 0);
    char *bytes = file_read(in_scratch("graph"), &length), *changed = malloc(length);
    assert_int_equal(opens(bytes, length, 0, 5), 1);
    const uint32_t changes[][2] = {{3, 4}, {4, 3}, {4, 5}, {5, UINT32_MAX}, {1, 0}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(changed, bytes, length);
        memcpy(changed + GRAPH_HEADER + 4 * changes[i][0], &changes[i][1], 4);
        sign(changed, length);
        if (opens(changed, length, 0, 5)) fail_msg("change %d was not seen", (int)i);
    }
    memcpy(changed, bytes, length);
    changed[12] |= GRAPH_WEIGHTED; /* a graph has weights or labels */
    assert_int_equal(opens(changed, length, 0, 5), 0);
    free(bytes);
    free(changed);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(random_graphs_are_as_a_plain_reference_has_them),
        IN_SCRATCH(triples_become_arcs_with_labels),
        IN_SCRATCH(a_row_may_be_longer_than_a_group),
        IN_SCRATCH(sums_do_not_depend_on_the_order),
        IN_SCRATCH(lines_become_arcs),
        IN_SCRATCH(nodes_that_are_left_out_take_their_edges_along),
        IN_SCRATCH(the_first_rows_may_have_no_arc),
        IN_SCRATCH(mistakes_have_a_sentence),
        IN_SCRATCH(only_the_graph_is_left),
        IN_SCRATCH(a_full_disk_leaves_nothing),
        IN_SCRATCH(a_file_that_grows_meanwhile_is_refused),
        IN_SCRATCH(fingerprints_tell_keys_apart),
        IN_SCRATCH(damage_is_seen),
        IN_SCRATCH(arcs_that_make_no_sense_are_seen),
        IN_SCRATCH(labels_that_make_no_sense_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
