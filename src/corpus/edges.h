/* edges: reads the lines of corpus.format = graph. Each line is an edge: source, target[, weight], in the columns that the file's
 * format gives (columns.h). A line that begins with # or % is a comment.
 *
 * Left out, and counted for whoever says so: an edge from a node to itself, and an edge that weighs 0, which no walk
 * takes.
 */
#ifndef SPTX_EDGES_H
#define SPTX_EDGES_H

#include "corpus.h"

struct edge_line {
    const char *from, *to; /* in the block */
    uint64_t from_length, to_length;
    uint64_t line;
    float weight; /* 1 where edges have none */
};

/* How many edges were left out. */
struct edges_left {
    uint64_t loops, zeros;
};

/* Returns 1 with the next edge, 0 at the block's end, -1 after fail(). It needs blocks of whole lines. */
int edges_next(struct corpus_cursor *cursor, const struct corpus_block *block, enum corpus_weights weights,
               struct edges_left *left, struct edge_line *edge);

/* Returns 1 where every edge among the first bytes of the corpus' first files has a number in its column of weights,
 * otherwise 0; -1 after fail(). */
int edges_look_weighted(const struct corpus *corpus, const struct corpus_options *options);

/* Checks a weight. Returns 0 with it; -1 where it is no number from 0 on that a float holds (no sentence is kept). */
int edges_weight(double value, float *weight);

#endif
