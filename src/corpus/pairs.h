/* pairs: the lines of corpus.format = pairs: list, item[, rating[, anything]], with blanks, tabs or commas between. */
#ifndef SPTX_PAIRS_H
#define SPTX_PAIRS_H

#include "corpus.h"

struct pair_line {
    const char *list, *item; /* in the block */
    uint64_t list_length, item_length;
    uint64_t line;
};

/* 1 with the next pair whose rating is at least min_rating (-infinity: all), 0 at the block's end, -1 after fail().
 * Wants blocks of whole lines. A file's first line may be a header: it is left out where its rating is not a number. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating, struct pair_line *pair);

#endif
