/* edges: reads the lines of corpus.format = graph. Each line is an edge: source, target[, weight]; the file's format says which
 * columns these are (columns.h). A line that begins with # or % is a comment.
 *
 * Self-loops, and edges of weight 0, which no walk takes, are left out. They are counted, so that a message can tell how many.
 */
#ifndef SPTX_EDGES_H
#define SPTX_EDGES_H

#include "corpus.h"

/* An edge, as read from one line. */
struct edge_line {
    const char *from, *to; /* words of the two nodes; they point into the block */
    uint64_t from_length, to_length;
    uint64_t line;
    float weight; /* 1 if edges have no weights */
};

/* Reads the next edge. Returns 1, 0 at the block's end, or -1 after fail(). The block must consist of whole lines. */
int edges_next(struct corpus_cursor *cursor, const struct corpus_block *block, enum corpus_weights weights,
               struct corpus_left *left, struct edge_line *edge);

/* Examines the first lines of the corpus' first files. Returns 1 if every edge has a number in the weight column, otherwise 0;
 * -1 after fail(). */
int edges_look_weighted(const struct corpus *corpus, const struct corpus_options *options);

/* Converts a weight to float. Returns 0, or -1 if it is negative, not finite, or too large or too small for a float. Does not
 * call fail(). */
int edges_weight(double value, float *weight);

#endif
