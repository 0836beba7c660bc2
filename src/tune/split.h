/* split: splits the edges of a graph, or triples, into a part for training and a held-out part, to measure how well training
 * predicts the held-out part (tune.h). Both parts are written as files of edges or triples whose names are numbers. */
#ifndef SPTX_SPLIT_H
#define SPTX_SPLIT_H

#include "corpus/graph.h"
#include "corpus/idstream.h"

/* Writes the share `share` of the edges to `out`, and the others, with their weights, to `kept`. The edges are drawn from the
 * seed. Edges of a spanning forest, drawn too, are never held out, so nodes that were connected remain connected. Returns 0, or
 * -1 after fail(), also if no edge can be held out. */
int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out);
/* Writes the share `share` of the triples, at least one of them, to `out`, and the others to `kept`. The triples are drawn from the
 * seed. Returns 0, or -1 after fail(), also if there are fewer than two triples. */
int split_triples(const struct idstream *stream, double share, uint32_t seed, const char *kept, const char *out);

#endif
