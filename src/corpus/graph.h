/* graph: the arcs of a graph in one mapped file, as compressed sparse rows (CSR). Walks are drawn from it.
 *
 *   starts      0     2           5     6  ..   [nodes + 1]  node v has arcs starts[v] .. starts[v + 1] - 1
 *   neighbours  1 4   0 2 7       1     ..      [arcs]       of each node in rising order, each once, never the node itself
 *   weights     .5 1  .5 2 1      2     ..      [arcs]       only if edges have weights
 *
 * A node is a row of the vocabulary. An undirected edge is two arcs.
 *
 * The file (graph_write.h): a header (magic, version, flags, fingerprint, nodes, arcs, checksum of all that follows),
 * neighbours from byte 128, weights if edges have them, padding to 8, starts. Opening a graph reads the whole file, with all
 * threads, and checks all of this.
 */
#ifndef SPTX_GRAPH_H
#define SPTX_GRAPH_H

#include "base/file.h"

#include <stdint.h>

struct pool;

/* An opened graph. */
struct graph {
    const uint64_t *starts;     /* [nodes + 1] */
    const uint32_t *neighbours; /* [arcs] */
    const float *weights;       /* [arcs], each above 0 and finite; NULL: every arc weighs 1 */
    uint64_t nodes, arcs;
    int directed;      /* 1: an edge is one arc, stored with the node that it leaves; 0: an edge is two arcs */
    uint64_t checksum; /* of all arrays; graphs with equal contents have equal checksums */
    struct file_map map;
};

enum { GRAPH_HEADER = 128 };
#define GRAPH_MAGIC "SPTX-CSR"

/* Returns the size of a graph's file in bytes. weighted: 1 if arcs have weights. */
uint64_t graph_bytes(uint64_t nodes, uint64_t arcs, int weighted);

/* Maps a graph's file, which must have this fingerprint and `rows` nodes, and checks all of it. Returns 0, or -1 after fail(). */
int graph_open(struct graph *graph, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);
void graph_close(struct graph *graph); /* may be called on a struct of zeros */

#endif
