#include "split.h"

#include "kernels/draws.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>

struct edge {
    uint32_t from, to;
    float weight;
};
struct edges {
    struct edge *list;
    uint64_t count;
    uint32_t *parent; /* [nodes] disjoint sets of connected nodes: the parent of each node in its tree */
};

/* Lists each edge once. */
static int list_edges(struct edges *edges, const struct graph *graph) {
    edges->list = mem_alloc(graph->arcs, sizeof *edges->list, "edges");
    edges->parent = mem_alloc(graph->nodes, sizeof *edges->parent, "edges");
    if (!edges->list || !edges->parent) return -1;
    for (uint64_t node = 0; node < graph->nodes; node++) {
        edges->parent[node] = (uint32_t)node;
        for (uint64_t arc = graph->starts[node]; arc < graph->starts[node + 1]; arc++)
            if (graph->directed || node < graph->neighbours[arc])
                edges->list[edges->count++] =
                    (struct edge){(uint32_t)node, graph->neighbours[arc], graph->weights ? graph->weights[arc] : 1};
    }
    return 0;
}

static uint32_t root_of(struct edges *edges, uint32_t node) {
    while (edges->parent[node] != node) node = edges->parent[node] = edges->parent[edges->parent[node]];
    return node;
}

/* Joins the two ends of an edge. Returns 1 if they were not connected before. */
static int joins(struct edges *edges, const struct edge *edge) {
    uint32_t from = root_of(edges, edge->from), to = root_of(edges, edge->to);
    if (from != to) edges->parent[from > to ? from : to] = from > to ? to : from;
    return from != to;
}

static int write_edge(struct file_writer *writer, const struct edge *edge, int weighted) {
    if (weighted) return file_print(writer, "%" PRIu32 "\t%" PRIu32 "\t%.9g\n", edge->from, edge->to, (double)edge->weight);
    return file_print(writer, "%" PRIu32 "\t%" PRIu32 "\n", edge->from, edge->to);
}

static int write_parts(struct edges *edges, uint64_t wanted, uint32_t seed, int weighted, struct file_writer *kept,
                       struct file_writer *out) {
    struct shuffle order = shuffle_make(edges->count, draw_at(seed, DRAW_HELD_OUT, 0, 2, 0));
    uint64_t taken = 0;
    for (uint64_t i = 0; i < edges->count; i++) {
        const struct edge *edge = &edges->list[shuffle_at(&order, i)];
        int stays = joins(edges, edge) || taken == wanted;
        taken += !stays;
        if (stays ? write_edge(kept, edge, weighted) : write_edge(out, edge, 0)) return -1;
    }
    return taken ? 0 : fail("tune holds out edges that no two nodes need to hang together, and this graph has none");
}

/* The files of both parts. */
struct parts {
    struct file_writer kept, out;
};

static int open_parts(struct parts *parts, const char *kept, const char *out) {
    *parts = (struct parts){.kept = {.path = NULL}};
    return file_writer_open(&parts->kept, kept) || file_writer_open(&parts->out, out) ? -1 : 0;
}
static int close_parts(struct parts *parts, int result) {
    if (!result) result = file_commit(&parts->kept) || file_commit(&parts->out) ? -1 : 0;
    file_abandon(&parts->kept);
    file_abandon(&parts->out);
    return result;
}

int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out) {
    struct edges edges = {.count = 0};
    struct parts parts;
    int result = open_parts(&parts, kept, out) || list_edges(&edges, graph) ? -1 : 0;
    uint64_t wanted = (uint64_t)((double)edges.count * share);
    if (!result) result = write_parts(&edges, wanted ? wanted : 1, seed, graph->weights != NULL, &parts.kept, &parts.out);
    free(edges.list);
    free(edges.parent);
    return close_parts(&parts, result);
}

static int write_triples(const struct idstream *stream, uint64_t wanted, uint32_t seed, struct parts *parts) {
    struct shuffle order = shuffle_make(stream->triples, draw_at(seed, DRAW_HELD_OUT, 0, 2, 0));
    if (stream->triples < 2) return fail("tune holds out triples and needs two or more; this corpus has %" PRIu64, stream->triples);
    for (uint64_t i = 0; i < stream->triples; i++) {
        const uint32_t *triple = stream->ids + 3 * shuffle_at(&order, i);
        if (file_print(i < wanted ? &parts->out : &parts->kept, "%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\n", triple[0], triple[1], triple[2]))
            return -1;
    }
    return 0;
}

int split_triples(const struct idstream *stream, double share, uint32_t seed, const char *kept, const char *out) {
    struct parts parts;
    uint64_t wanted = (uint64_t)((double)stream->triples * share);
    int result = open_parts(&parts, kept, out) || write_triples(stream, wanted ? wanted : 1, seed, &parts) ? -1 : 0;
    return close_parts(&parts, result);
}
