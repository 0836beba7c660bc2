/* generate: synthetic corpora in the shape of a run, from draws alone (the same seed makes the same bytes).
 *
 * Rows come in groups: row x is member x % SIZE of group x / SIZE. Members fall in popularity, P(member r) being
 * ln(1 + 1/(r+1)) / ln(SIZE+1), which is Zipf's law with exponent 1. A draw from everywhere obeys the same law over all rows, the
 * first members of all groups before the second ones. So popularity falls as 1/rank in the whole and in each group.
 *
 *   books   "user12 b5 b977 .."  genres of 4,096 in series of 8; a list has 5 to 79 different books (P(n) as 1/n):
 *                                30 in 100 go on in the series of the book before, 55 are of the list's three genres
 *                                (a half, a quarter and a quarter of those), the rest from everywhere
 *   papers  "p7 p1 p5 .."        fields of 2,048; a paper cites 4 to 43 different others (P(n) as 1/n), nine in ten of
 *                                its own field; papers come in a random order, each once before any comes again
 *   words   "w3 w17 .."          topics of 512; a sentence has 20 words, half of them of its one topic
 *
 *   graph   "17 4"               edges as R-MAT draws them (Chakrabarti et al. 2004): each bit of the two numbers is one of four
 *                                quadrants, with probabilities .57, .19, .19 and .05. A node's number is its word; edges may come
 *                                more than once, and none is a self-loop. Its rows are in no groups
 *
 * PATH.groups.tsv says which groups were planted: book TAB series TAB genre, paper TAB field, word TAB topic.
 *
 * A PATH that ends in .ids becomes an id stream (idstream.h) with PATH.vocab.tsv, and no text is written: ids are frequency
 * ranks, a list has no name, a paper is the first id of its line, and rows that no line names come last, with a count of 0. Such a
 * path serves as corpus.path as it is. A PATH that ends in .zst is packed, as frames of 4,096 lines.
 */
#ifndef SPTX_GENERATE_H
#define SPTX_GENERATE_H

#include <stdint.h>

enum generate_kind { GENERATE_BOOKS, GENERATE_PAPERS, GENERATE_WORDS, GENERATE_GRAPH, GENERATE_KINDS };

struct generate_options {
    enum generate_kind kind;
    uint64_t rows;  /* books, papers, words or nodes: 1 (nodes: 2) to 4,294,967,294 */
    uint64_t lists; /* lists, papers that cite, sentences or edges: 1 to 2^48 - 1 */
    uint32_t seed;
};

int generate_kind_named(const char *name); /* returns an enum generate_kind, or -1 after fail_usage() */
/* Writes the corpus atomically, with a progress line. Returns 0, or -1 after fail(). */
int generate_write(const struct generate_options *options, const char *path);

#endif
