/* pairs: reads the lines of corpus.format = pairs: list, item[, rating], in the columns that the file's format gives (columns.h).
 * */
#ifndef SPTX_PAIRS_H
#define SPTX_PAIRS_H

#include "columns.h"
#include "corpus.h"

struct pair_line {
    const char *list, *item; /* in the block */
    uint64_t list_length, item_length;
    uint64_t line;
    double rating; /* NaN where the line has none */
    float weight;  /* 1 with PAIR_WEIGHTS_NONE */
};

/* Turns a rating into a weight: 0 or a positive finite float. Returns 0, or -1 where the rating is negative, NaN, or too large or
 * small for a float (no sentence is kept). */
int pairs_weight(enum pair_weights weights, double rating, float *weight);

/* Returns 1 with the next pair whose rating is at least min_rating (-infinity: all) and whose weight is above 0, 0 at the block's
 * end, -1 after fail(). It needs blocks of whole lines. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating, enum pair_weights weights,
               struct pair_line *pair);

#endif
