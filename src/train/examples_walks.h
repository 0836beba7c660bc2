/* examples_walks: lets an example_source use walks over a graph as its sentences. */
#ifndef SPTX_EXAMPLES_WALKS_H
#define SPTX_EXAMPLES_WALKS_H

#include "examples.h"

/* Points the example source at the graph. If the graph has weights, also makes the alias tables of its arcs. Returns 0, or -1
 * after fail(). */
int examples_take_graph(struct examples *examples, const struct config *config, const struct graph *graph, struct pool *pool);

#endif
