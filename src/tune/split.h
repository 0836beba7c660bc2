/* split: a graph without some of its edges, for judging links (tune.h). Both parts are files of edges whose nodes are
 * numbers. */
#ifndef SPTX_SPLIT_H
#define SPTX_SPLIT_H

#include "corpus/graph.h"

/* Writes a `share` of the edges to `out` and the others, with their weights, to `kept`. The edges of a spanning forest,
 * which is drawn with the rest from the seed, are never held out: nodes that hang together still do. Returns 0, or -1
 * after fail(), also where no edge is left over. */
int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out);

#endif
