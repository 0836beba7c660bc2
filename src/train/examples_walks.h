/* examples_walks: walks over a graph as the sentences of an example_source. */
#ifndef SPTX_EXAMPLES_WALKS_H
#define SPTX_EXAMPLES_WALKS_H

#include "examples.h"

/* Takes the graph, and makes the alias tables of its arcs where it has weights. 0, or -1 after fail(). */
int examples_take_graph(struct examples *examples, const struct config *config, const struct graph *graph, struct pool *pool);

#endif
