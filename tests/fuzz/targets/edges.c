/* edges: takes any bytes as the edges of a graph, and makes the graph.
 *
 *   byte 0     weights, directed, and order of ids
 *   byte 1     limits on counts
 *   byte 2     size of a block
 *   byte 3     number of threads
 *   the rest   the edges
 *
 * The graph must be the same for any size of a block, number of threads and number of arcs that are sorted at a time. An
 * undirected graph must have each edge in both directions.
 */
#include "base/memory.h"
#include "corpus/fields.h"
#include "corpus/graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/plain_options.h"

enum { THREADS = 2, BYTES_MOST = 4096 };
static struct pool *pools[THREADS];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    for (unsigned i = 0; i < THREADS; i++)
        if (!(pools[i] = pool_open(i + 1))) return -1;
    return fuzz_begin();
}

struct made {
    struct corpus_options options;
    struct corpus *corpus;
    struct vocab vocab;
    struct graph graph;
    int result;
};

static void make(struct made *m, char *path, char *graph, struct corpus_options options, uint64_t block,
                 unsigned threads) {
    *m = (struct made){.options = options, .corpus = scratch_corpus(path, block), .result = -1};
    file_remove(graph);
    if (m->corpus && !corpus_stream(m->corpus) && !graph_settle(&m->options, m->corpus) &&
        !vocab_build(&m->vocab, m->corpus, &m->options, pools[threads]))
        m->result = graph_make(&m->graph, graph, m->corpus, &m->vocab, &m->options, pools[threads]);
    if (!m->corpus || !corpus_stream(m->corpus)) fuzz_accepted(m->result);
}

static void release(struct made *m) {
    graph_close(&m->graph);
    vocab_release(&m->vocab);
    corpus_close(m->corpus);
}

/* Returns the index of the arc from one node to another; the number of arcs if the graph does not have this arc. */
static uint64_t arc_of(const struct graph *graph, uint64_t from, uint64_t to) {
    for (uint64_t i = graph->starts[from]; i < graph->starts[from + 1]; i++)
        if (graph->neighbours[i] == to) return i;
    return graph->arcs;
}

static void check_both_ways(const struct graph *graph) {
    for (uint64_t node = 0; node < graph->nodes; node++)
        for (uint64_t i = graph->starts[node]; i < graph->starts[node + 1]; i++) {
            uint64_t back = arc_of(graph, graph->neighbours[i], node);
            HOLDS(back < graph->arcs, "an edge has no way back");
            HOLDS(!graph->weights || graph->weights[i] == graph->weights[back], "an edge weighs more in one direction");
        }
}

/* Returns 1 if a number would make too many rows for a test; numbers up to 4,294,967,293 may be rows. */
static int has_giant_id(const uint8_t *bytes, uint64_t length) {
    for (uint64_t i = 0, run = 0; i < length; i++) {
        run = bytes[i] >= '0' && bytes[i] <= '9' ? run + 1 : 0;
        if (run > 5) return 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct fuzz_input input = {bytes, length};
    unsigned what = fuzz_byte(&input), bounds = fuzz_byte(&input);
    uint64_t block = fuzz_byte(&input);
    unsigned threads_byte = fuzz_byte(&input), threads = threads_byte % THREADS;
    struct corpus_options options = plain_options(FORMAT_GRAPH);
    options.weights = what % 3;
    options.directed = what / 4 % 2;
    options.order = what / 8 % 3;
    options.min_count = 1 + bounds % 3;
    options.max_vocab = bounds / 4 % 4 * 2;
    options.look.header = (enum corpus_header)(bounds / 16 % 3);
    options.look.separator = (enum corpus_separator)(threads_byte / THREADS % 7);
    if (input.left > BYTES_MOST || (options.order == ORDER_GIVEN && has_giant_id(input.at, input.left))) return 0;
    char *path = scratch_file("corpus", input.at, input.left), *graph = in_scratch("graph"),
         *other_graph = in_scratch("other");
    struct made one, other;
    make(&one, path, graph, options, 1 + block, threads);
    make(&other, path, other_graph, options, 0, 0);
    HOLDS(!one.result == !other.result, "blocks of %llu bytes: %d, of the usual size: %d",
          (unsigned long long)block + 1, one.result, other.result);
    if (!one.result) {
        HOLDS(fuzz_same_files(graph, other_graph), "the size of a block changes the graph");
        HOLDS(one.graph.nodes == one.vocab.size, "%llu nodes", (unsigned long long)one.graph.nodes);
        if (!options.directed) check_both_ways(&one.graph);
    }
    release(&one);
    release(&other);
    return 0;
}
