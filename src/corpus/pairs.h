/* pairs: reads the lines of corpus.format = pairs: list, item[, rating]; the file's format says which columns these are
 * (columns.h). */
#ifndef SPTX_PAIRS_H
#define SPTX_PAIRS_H

#include "columns.h"
#include "corpus.h"

/* A pair, as read from one line. */
struct pair_line {
    const char *list, *item; /* point into the block */
    uint64_t list_length, item_length;
    uint64_t line;
    double rating; /* NaN: the line has no rating */
    float weight;  /* 1 with PAIR_WEIGHTS_NONE; otherwise computed from the rating */
};

/* Converts a rating to a weight: 0, or a positive finite float. Returns 0, or -1 if the rating is negative, NaN, or too large or
 * too small for a float. Does not call fail(). */
int pairs_weight(enum pair_weights weights, double rating, float *weight);

/* Reads the next pair that options->min_rating, options->look.events and options->pair_weights keep. Counts the others in *left: also
 * those without a list or an item, and those that did not happen (columns_form.zeros_out). Returns 1; 0 at the end of the block; -1
 * after fail(). The block must consist of whole lines. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, const struct corpus_options *options,
               struct corpus_left *left, struct pair_line *pair);

#endif
