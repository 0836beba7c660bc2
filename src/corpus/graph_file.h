/* graph_file: the layout of a graph's file (graph.h), for the code that writes it and the code that maps it. */
#ifndef SPTX_GRAPH_FILE_H
#define SPTX_GRAPH_FILE_H

#include "graph.h"

enum { GRAPH_VERSION = 1, GRAPH_DIRECTED = 1, GRAPH_WEIGHTED = 2 };

struct graph_header {
    char magic[8];
    uint32_t version, flags;                /* flags: GRAPH_DIRECTED | GRAPH_WEIGHTED */
    uint64_t fingerprint, nodes, arcs, sum; /* sum: checksum of all bytes after this header (piece_sum.h) */
    char rest[GRAPH_HEADER - 48];
};
_Static_assert(sizeof(struct graph_header) == GRAPH_HEADER, "neighbours start at byte 128");

/* Returns the bytes of neighbours and weights, with the padding after them. */
static inline uint64_t graph_arcs_bytes(uint64_t arcs, int weighted) {
    return (arcs * (weighted ? 8 : 4) + 7) / 8 * 8;
}

#endif
