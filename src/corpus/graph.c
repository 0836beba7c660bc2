#include "graph.h"

#include "base/interrupt.h"
#include "base/pool.h"
#include "base/report.h"
#include "graph_file.h"
#include "piece_sum.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

uint64_t graph_bytes(uint64_t nodes, uint64_t arcs, int weighted) {
    return GRAPH_HEADER + graph_arcs_bytes(arcs, weighted) + (nodes + 1) * sizeof(uint64_t);
}

/* ---- checking ---- */

/* Returns 1 if a graph with the header's numbers has exactly `size` bytes. The first test keeps the sums from overflowing. */
static int sizes_agree(const struct graph_header *header, uint64_t size) {
    uint64_t words = (size - sizeof *header) / 4;
    if (header->nodes > words || header->arcs > words) return 0;
    return graph_bytes(header->nodes, header->arcs, header->flags & GRAPH_WEIGHTED) == size;
}

static int header_fits(const struct file_map *map, struct graph_header *header) {
    if (map->size < sizeof *header + 8) return 0;
    memcpy(header, map->data, sizeof *header);
    return !memcmp(header->magic, GRAPH_MAGIC, sizeof header->magic) && header->version == GRAPH_VERSION &&
           header->flags <= (GRAPH_DIRECTED | GRAPH_WEIGHTED) && sizes_agree(header, map->size);
}

/* State of checking a graph's rows, with all threads. The checksum does not replace this check: a file with the right checksum
 * may contain rows that graph.h forbids. */
struct checking {
    const struct graph *graph;
    _Atomic uint64_t next, senseless; /* next: the next row to check; senseless: a row with wrong arcs; UINT64_MAX: none was
                                       * found */
};

enum { ROWS = 1 << 14 }; /* number of rows that a thread checks at a time */

static int row_holds(const struct graph *graph, uint64_t node) {
    uint64_t at = graph->starts[node], end = graph->starts[node + 1], least = 0;
    int holds = at <= end && end <= graph->arcs;
    for (; holds && at < end; at++) {
        uint64_t neighbour = graph->neighbours[at];
        holds = neighbour >= least && neighbour < graph->nodes && neighbour != node &&
                (!graph->weights || (graph->weights[at] > 0 && isfinite(graph->weights[at])));
        least = neighbour + 1;
    }
    return holds;
}

static int check_rows(void *context, unsigned worker) {
    struct checking *c = context;
    uint64_t first, end;
    while (pool_take(&c->next, c->graph->nodes, ROWS, &first, &end)) {
        if (interrupt_check()) return -1;
        for (uint64_t node = first; node < end; node++)
            if (!row_holds(c->graph, node)) c->senseless = node;
    }
    return 0;
}

static int say_damaged(const char *path, uint64_t size) {
    return fail("the graph '%s' is damaged or of another version: %" PRIu64 " bytes do not hold what its header says",
                path, size);
}

/* Reads the whole graph, and checks its checksum and its rows. */
static int check(struct graph *graph, const struct graph_header *header, const char *path, struct pool *pool) {
    struct checking c = {.graph = graph, .senseless = UINT64_MAX};
    if (piece_sum_of(graph->map.data + sizeof *header, graph->map.size - sizeof *header, pool, NULL, NULL,
                     &graph->checksum))
        return -1;
    if (graph->checksum != header->sum) return say_damaged(path, graph->map.size);
    if (graph->starts[0] || graph->starts[graph->nodes] != graph->arcs)
        return fail("the graph '%s': its rows go from arc %" PRIu64 " to %" PRIu64 ", and it has %" PRIu64 " arcs",
                    path, graph->starts[0], graph->starts[graph->nodes], graph->arcs);
    if (pool_run(pool, check_rows, &c)) return -1;
    if (c.senseless == UINT64_MAX) return 0;
    return fail("the graph '%s': the arcs of node %" PRIu64
                " are none (wanted other nodes in rising order, and weights above 0)",
                path, (uint64_t)c.senseless);
}

/* ---- reading ---- */

static void view(struct graph *graph, const struct file_map *map, const struct graph_header *header) {
    const char *arcs = map->data + sizeof *header;
    int weighted = (header->flags & GRAPH_WEIGHTED) != 0;
    *graph = (struct graph){.neighbours = (const uint32_t *)(const void *)arcs,
                            .weights = weighted ? (const float *)(const void *)(arcs + header->arcs * 4) : NULL,
                            .starts = (const uint64_t *)(const void *)(arcs + graph_arcs_bytes(header->arcs, weighted)),
                            .nodes = header->nodes,
                            .arcs = header->arcs,
                            .directed = (header->flags & GRAPH_DIRECTED) != 0,
                            .map = *map};
}

int graph_open(struct graph *graph, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool) {
    struct graph_header header;
    struct file_map map;
    *graph = (struct graph){0};
    if (file_map_open(&map, path)) return -1;
    int result =
        !header_fits(&map, &header) ? say_damaged(path, map.size)
        : header.fingerprint != fingerprint || header.nodes != rows
            ? fail("the graph '%s' was made with another vocabulary than this one of %" PRIu64 " words", path, rows)
        : !header.arcs ? fail("the graph '%s' has no edge", path)
                       : 0;
    if (!result) {
        view(graph, &map, &header);
        result = check(graph, &header, path, pool);
    }
    if (result) {
        file_map_close(&map);
        *graph = (struct graph){0};
    }
    return result;
}

void graph_close(struct graph *graph) {
    file_map_close(&graph->map);
    *graph = (struct graph){0};
}
