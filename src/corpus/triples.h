/* triples: reads the lines of corpus.format = triples. Each line has the columns head, relation and tail (columns.h), or is a line
 * of N-Triples:
 *
 *   <http://a.org/Ulm> <http://a.org/in> <http://a.org/Germany> .    names are without < and >
 *   _:b1 <http://a.org/name> "Ulm"@de .                              a blank node is _:b1, a literal keeps its quotes and language
 *   # comment                                                        lines may end with a comment, too
 *
 * A fourth term of N-Quads, the graph, is not read.
 */
#ifndef SPTX_TRIPLES_H
#define SPTX_TRIPLES_H

#include "corpus.h"

enum { TRIPLE_HEAD, TRIPLE_RELATION, TRIPLE_TAIL, TRIPLE_TERMS };

/* A triple, as read from one line. */
struct triple_line {
    const char *term[TRIPLE_TERMS]; /* they point into the block */
    uint64_t length[TRIPLE_TERMS];
    uint64_t line;
};

/* Reads the next triple. literals = 0: triples of N-Triples with a literal are left out, and counted in *left. Returns 1; 0 at the end
 * of the block; -1 after fail(). The block must consist of whole lines. */
int triples_next(struct corpus_cursor *cursor, const struct corpus_block *block, int literals, struct corpus_left *left,
                 struct triple_line *triple);

#endif
