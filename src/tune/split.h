/* split: splits the edges of a graph into training edges and held-out edges, to measure how well links are predicted (tune.h).
 * Both are written as files of edges whose nodes are numbers. */
#ifndef SPTX_SPLIT_H
#define SPTX_SPLIT_H

#include "corpus/graph.h"

/* Writes the share `share` of the edges to `out`, and the others, with their weights, to `kept`. The edges are drawn from the
 * seed. Edges of a spanning forest, drawn too, are never held out, so nodes that were connected remain connected. Returns 0, or
 * -1 after fail(), also if no edge can be held out. */
int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out);

#endif
