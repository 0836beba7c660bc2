/* graph: takes any bytes as a graph's file. A file that is accepted must be safe to walk.
 *
 *   byte 0     number of nodes; bit 4: the number of arcs is made right; bit 5: the checksum is made right; bit 6: weighted;
 *              bit 7: directed
 *   then       the numbers of the header that are not made right, eight bytes each
 *   the rest   the file after its header
 */
#include "corpus/graph.h"
#include "corpus/idstream.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

enum { FILE_MOST = 4096 };
static struct pool *pool;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    pool = pool_open(1);
    return pool ? fuzz_begin() : -1;
}

/* Returns how many arcs fit a file of this length. */
static uint64_t arcs_of(uint64_t length, uint64_t nodes, int weighted) {
    uint64_t starts = (nodes + 1) * 8;
    return length > starts ? (length - starts) / (weighted ? 8 : 4) : 0;
}

static void check_rows(const struct graph *graph) {
    HOLDS(graph->starts[0] == 0 && graph->starts[graph->nodes] == graph->arcs && graph->arcs, "the ends are wrong");
    for (uint64_t node = 0; node < graph->nodes; node++) {
        HOLDS(graph->starts[node] <= graph->starts[node + 1] && graph->starts[node + 1] <= graph->arcs,
              "a row passes the end");
        for (uint64_t i = graph->starts[node]; i < graph->starts[node + 1]; i++) {
            HOLDS(graph->neighbours[i] < graph->nodes && graph->neighbours[i] != node, "an arc leads nowhere");
            HOLDS(i == graph->starts[node] || graph->neighbours[i - 1] < graph->neighbours[i], "neighbours fall");
            HOLDS(!graph->weights || (graph->weights[i] > 0 && isfinite(graph->weights[i])), "a weight is none");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static uint8_t file[GRAPH_HEADER + FILE_MOST];
    struct fuzz_input input = {bytes, length};
    struct graph_header header = {.version = GRAPH_VERSION};
    struct graph graph;
    unsigned how = fuzz_byte(&input);
    uint64_t nodes = how % 16, arcs = how & 16 ? fuzz_number(&input) : 0, sum = how & 32 ? fuzz_number(&input) : 0;
    uint64_t used = input.left < FILE_MOST ? input.left : FILE_MOST;
    int weighted = how / 64 % 2;
    if (used) memcpy(file + GRAPH_HEADER, input.at, used);
    memcpy(header.magic, GRAPH_MAGIC, sizeof header.magic);
    header.flags = (weighted ? GRAPH_WEIGHTED : 0) | (how / 128 ? GRAPH_DIRECTED : 0);
    header.nodes = nodes;
    header.arcs = how & 16 ? arcs : arcs_of(used, nodes, weighted);
    header.sum = sum;
    if (!(how & 32))
        HOLDS(!piece_sum_of((char *)file + GRAPH_HEADER, used, pool, NULL, NULL, &header.sum), "no checksum");
    memcpy(file, &header, sizeof header);
    char *path = scratch_file("given", file, GRAPH_HEADER + used);
    if (fuzz_accepted(graph_open(&graph, path, 0, nodes, pool))) {
        check_rows(&graph);
        graph_close(&graph);
    }
    return 0;
}
