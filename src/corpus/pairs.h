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
};

/* Returns 1 with the next pair whose rating is at least min_rating (-infinity: all), 0 at the block's end, -1 after
 * fail(). It needs blocks of whole lines. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating, struct pair_line *pair);

#endif
