/* pairs: the lines of corpus.format = pairs: list, item[, rating[, anything]], with blanks, tabs or commas between. */
#ifndef SPTX_PAIRS_H
#define SPTX_PAIRS_H

#include "corpus.h"

struct pair_line {
    const char *list, *item; /* in the block */
    uint64_t list_length, item_length;
    uint64_t line;
    double rating; /* NaN where the line has none */
};

/* 1 with the next pair whose rating is at least min_rating (-infinity: all), 0 at the block's end, -1 after fail().
 * Wants blocks of whole lines. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating, struct pair_line *pair);

/* A rating, a number as text_real() reads it: 0, or -1 where the word is none. */
int pairs_rating(const char *word, uint64_t length, double *rating);

/* The first line of a file that holds anything, and whether it names the columns (user_id,book_id,rating): the column of
 * ratings has no number there and one in the second line; or there are two columns, with numbers in neither there and in
 * both in the second line. Names can have blanks where commas or tabs stand between them. */
struct pairs_front {
    const char *first;
    uint64_t first_length; /* 0: there is none, or its end is not among these bytes */
    uint64_t data;         /* where the next line begins */
    int is_header;
};
/* whole: 1 where the file has no more than these bytes. */
struct pairs_front pairs_front(const char *bytes, uint64_t length, int whole);

#endif
