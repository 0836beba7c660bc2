/* generate: synthetic corpora in the shape of a run, from draws alone (the same seed makes the same bytes).
 *
 *   books   reading lists: "user12 b5 b977 ..": Zipf popularity (exponent 1); books come in series of 8 and genres of 4,096;
 *           a list stays mostly in a few genres and often goes on within a series
 *   papers  adjacency: "p7 p1 p5 ..": papers belong to fields of 2,048; nine citations in ten stay in the field; Zipf popularity
 *   words   text: sentences of 20 words; words belong to topics of 512; a sentence has one topic
 */
#ifndef SPTX_GENERATE_H
#define SPTX_GENERATE_H

#include <stdint.h>

enum generate_kind { GENERATE_BOOKS, GENERATE_PAPERS, GENERATE_WORDS };

struct generate_options {
    enum generate_kind kind;
    uint64_t rows, lists; /* books or papers or words; lists, papers that cite, sentences */
    uint32_t seed;
};

int generate_kind_named(const char *name); /* -1 after fail_usage() */
/* Writes the corpus atomically, with progress. */
int generate_write(const struct generate_options *options, const char *path);

#endif
