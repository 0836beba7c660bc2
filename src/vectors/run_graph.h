/* run_graph: finds and opens the graph on which a finished run was trained. */
#ifndef SPTX_RUN_GRAPH_H
#define SPTX_RUN_GRAPH_H

#include "corpus/graph.h"
#include "kernels/backend.h"
#include "run/model_files.h"

/* Returns 1 if the run was trained on a graph (corpus.format = graph); otherwise 0. */
int run_has_graph(const struct model *model);

/* Returns 1 if the graph's file exists and its number of nodes plus arcs is at most `most`; 0 if not; -1 after fail(). */
int run_graph_within(const struct model *model, uint64_t most);

/* Maps the graph's file, which is in the run directory or in corpus.cache, and checks that the run was trained on it. The
 * graph's nodes are the model's rows. Returns 0, or -1 after fail(). */
int run_graph_open(struct graph *graph, const struct model *model, struct pool *pool);

/* Returns the backend on which the run was trained; the CPU backend if this machine does not have it. */
const struct backend_ops *run_graph_backend(const struct model *model);

#endif
