/* generate: synthetic corpora in the shape of a run, from draws alone (the same seed makes the same bytes).
 *
 * Rows come in groups: row x is member x % SIZE of group x / SIZE, and members fall in popularity, P(member r) being
 * ln(1 + 1/(r+1)) / ln(SIZE+1): Zipf's law with exponent 1. A draw from everywhere obeys the same law over all rows, first
 * members of all groups before second ones; so the popularity of rows falls as 1/rank in the whole and in each group.
 *
 *   kind    line                group          a line
 *   books   "user12 b5 b977 .." genre, 4,096;  5 to 79 different books (P(n) as 1/n); 3 in 10 go on in the series of the
 *                               series of 8    book before, 55 in 100 are of the list's three genres (a half, a quarter, a
 *                                              quarter of those), the rest from everywhere
 *   papers  "p7 p1 p5 .."       field, 2,048   4 to 43 different citations (P(n) as 1/n), nine in ten of the field of the paper that cites;
 *                                              papers cite in a random order, each once before any cites again
 *   words   "w3 w17 .."         topic, 512     20 words, half of them of the sentence's topic
 *
 * Beside PATH stands PATH.groups.tsv, what was planted: book TAB series TAB genre, paper TAB field, word TAB topic. Where
 * PATH ends in .ids it is an id stream (idstream.h) with PATH.vocab.tsv beside, and no text is written: ids are frequency
 * ranks, a list has no name, a paper is the first id of its line; rows that no line names come last, with a count of 0.
 */
#ifndef SPTX_GENERATE_H
#define SPTX_GENERATE_H

#include <stdint.h>

enum generate_kind { GENERATE_BOOKS, GENERATE_PAPERS, GENERATE_WORDS };

struct generate_options {
    enum generate_kind kind;
    uint64_t rows, lists; /* books or papers or words, 1 to 4,294,967,294; lists, papers that cite, sentences, up to 2^48 */
    uint32_t seed;
};

int generate_kind_named(const char *name); /* -1 after fail_usage() */
/* Writes the corpus atomically, with progress. */
int generate_write(const struct generate_options *options, const char *path);

#endif
