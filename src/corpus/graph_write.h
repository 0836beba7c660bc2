/* graph_write: writes a graph's file (graph.h) from edges in any order.
 *
 *   edges -> number of arcs of each node -> arcs stored by groups of nodes -> each group sorted -> doubles joined -> the file
 *
 * An edge that occurs more than once becomes one edge, whose weight is the sum of the weights (added from the smallest up, so that
 * the order of edges does not change the sum). Self-loops are left out. Memory: 8 bytes a node, and 8 bytes (12 with weights) for
 * each of the arcs that are sorted at a time. The file does not depend on the number of threads, or of arcs at a time.
 */
#ifndef SPTX_GRAPH_WRITE_H
#define SPTX_GRAPH_WRITE_H

#include "base/pool.h"
#include "graph.h"
#include "vocab.h"

/* The edges of which a graph is made, in the caller's memory. */
struct edges {
    const uint32_t *ends; /* edge i connects nodes ends[stride * i] and ends[stride * i + 1] */
    const uint32_t *rows; /* row of each node; WORDS_ABSENT: the node's edges are left out. NULL: a node's number is its row */
    const float *weights; /* if `weighted` is 1: the weight of edge i is weights[weight_stride * i] */
    unsigned stride, weight_stride;
    int weighted;
    uint64_t count;
    const struct vocab *degrees; /* its counts are the number of arcs of each row, in which equal arcs count each time; NULL:
                                  * graph_write() counts them */
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
