/* graph_write: makes a graph's file (graph.h) of edges in any order.
 *
 *   edges -> arcs of each node, counted -> arcs at their node's place -> each node's arcs in order -> doubles dropped
 * -> the file
 *
 * An edge that comes more than once counts once, or with the sum of its weights (summed from the smallest up, so that
 * the order of edges does not show). One from a node to itself is left out. Memory: 8 bytes a node, and 4 bytes an arc
 * (8 with weights) for as many arcs as are put in order at a time. The file is the same for any number of threads, and
 * of arcs at a time.
 */
#ifndef SPTX_GRAPH_WRITE_H
#define SPTX_GRAPH_WRITE_H

#include "base/pool.h"
#include "graph.h"

/* Edges in the caller's memory; the graph is made of them. */
struct edges {
    const uint32_t *ends; /* [2 * count]: the nodes of edge i are ends[2 * i] and ends[2 * i + 1] */
    const uint32_t *rows; /* the row of each node; WORDS_ABSENT: the node's edges are left out. NULL: nodes are rows */
    const float *weights; /* [count]; used if `weighted` is 1 */
    int weighted;
    uint64_t count;
};

struct graph_wanted {
    uint64_t fingerprint;
    uint64_t nodes; /* number of rows of the vocabulary */
    int directed;
    uint64_t at_once; /* number of arcs that are sorted at a time; 0: as many as memory allows */
    double report_seconds;
};

/* Writes the graph atomically. *loops: number of self-loops, which are left out. Returns 0, or -1 after fail(). */
int graph_write(const char *path, const struct graph_wanted *wanted, const struct edges *edges, struct pool *pool,
                uint64_t *loops);

#endif
