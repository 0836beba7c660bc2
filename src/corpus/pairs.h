/* pairs: reads the lines of corpus.format = pairs: list, item[, rating[, anything]], with what columns.h tells between;
 * or the columns that a header names. */
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

/* Reads a rating, which is a number as text_real() reads it. Returns 0, or -1 where the word is none. */
int pairs_rating(const char *word, uint64_t length, double *rating);

/* The first line of a file that is not empty, and if it names the columns (user_id,book_id,rating). It does
 *
 *   with a column of ratings, where that has no number in it, and one in the second line
 *   with two columns, where neither has a number in it, and both have one in the second line
 *   where names of columns.def are among them, of a list and of an item, and there is a second line
 *
 * Names may have blanks where commas or tabs part them.
 */
struct pairs_front {
    const char *first;
    uint64_t first_length; /* 0: there is no such line, or its end is not among these bytes */
    uint64_t data;         /* where the next line begins */
    int is_header;
    int names;                /* 1: it says which columns are list and item */
    struct columns_form form; /* of the lines behind it, where it is left out */
};
/* Looks at the first bytes. whole: 1 where the file has no more than these; may_name: 0 where no header is wanted. Of edges,
 * comments come before the first line, and a matrix of Matrix Market's has a line of sizes, which is a header. */
struct pairs_front pairs_front(const char *bytes, uint64_t length, int whole, int may_name, enum column_set set);

#endif
