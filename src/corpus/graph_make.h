/* graph_make: makes a graph (graph.h) from a corpus of edges and its vocabulary. The nodes are the vocabulary's words; an
 * edge with a word that is not in the vocabulary is left out.
 *
 *   lines -> numbers of the edges' nodes (recorded.h; of gathered edges: in memory), and the row of each number
 *         -> the graph's file (graph_write.h)
 */
#ifndef SPTX_GRAPH_MAKE_H
#define SPTX_GRAPH_MAKE_H

#include "graph.h"
#include "vocab.h"

/* Replaces options->weights = WEIGHTS_AUTO by WEIGHTS_YES if the corpus' first edges all have weights. Returns 0, or -1 after
 * fail(). */
int graph_settle(struct corpus_options *options, const struct corpus *corpus);

/* Returns the fingerprint of the graph that this corpus gives with these options, after graph_settle(), and this vocabulary. */
uint64_t graph_fingerprint(const struct corpus *corpus, const struct vocab *vocab,
                           const struct corpus_options *options);

/* Makes the graph's file `path` (atomically, with all threads) and opens it. Prints how many self-loops and edges of weight 0
 * were left out. Returns 0, or -1 after fail(). */
int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool);

#endif
