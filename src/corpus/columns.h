/* columns: the lines of a table as people write it: which bytes part the columns, and which column is which.
 *
 *   alice,dune,5                      blanks, tabs and commas part fields (the free form): list, item[, rating[, more]]
 *   "User-ID";"ISBN";"Book-Rating"    a header that names list and item, in any order, among other columns
 *   1::1193::5::978300760             one of  :: ; |  where nothing else parts fields
 *   7,"Dune, ""revised""",4           fields between double quotes, where one of the file's first lines has such a field
 */
#ifndef SPTX_COLUMNS_H
#define SPTX_COLUMNS_H

#include "tokens.h"

#include <stdint.h>

enum column_meaning { COLUMN_LIST, COLUMN_ITEM, COLUMN_RATING, COLUMN_MEANINGS };
/* An edge leads from what stands in the column of lists to what stands in that of items, and its weight is its rating. */
enum column_set { COLUMNS_OF_PAIRS, COLUMNS_OF_EDGES };

/* Returns what a column of this name holds in such a table, or -1. Capitals and all but letters and digits do not count:
 * "User-ID". */
int column_meaning(enum column_set set, const char *name, uint64_t length);

enum { COLUMNS_READ = 64, NO_COLUMN = COLUMNS_READ }; /* further columns of a line are passed over */

/* 1 for the byte that a comment among edges begins with. */
static inline int columns_comment(char byte) {
    return byte == '#' || byte == '%';
}

/* How a file's lines are read. */
struct columns_form {
    char separator[3];               /* "": the free form */
    int named;                       /* 1: the header says which column is which */
    uint8_t column[COLUMN_MEANINGS]; /* the column of each meaning, or NO_COLUMN */
};
#define COLUMNS_FREE                                                                                                   \
    {                                                                                                                  \
        "", 0, {                                                                                                       \
            0, 1, 2                                                                                                    \
        }                                                                                                              \
    }

struct table_line {
    const char *word[COLUMNS_READ]; /* without quotes, and without white space around it or within them */
    uint64_t length[COLUMNS_READ];
    uint64_t count; /* may pass COLUMNS_READ */
    int hole;       /* 1: one of them is empty */
    int quoted;     /* 1: one of them begins with a quote that is closed */
    int open;       /* 1: a quote is not closed in the line, or something stands behind it */
};

/* Returns 1 with the columns of the next line, or 0 at the block's end. The block needs whole lines. An empty field of the
 * free form is two commas, or one at an end of the line, with nothing between. */
int columns_next(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *columns);

enum { COLUMNS_FREE_MOST = 4 }; /* fields of a line of the free form */
/* How sentences call the columns. */
struct columns_words {
    const char *list, *item, *rating;
};
/* Refuses a line that has no list and item where they are wanted. */
int columns_check(const struct table_line *columns, const struct columns_form *form, const struct columns_words *words,
                  const char *path, uint64_t line);
/* Refuses a word with white space in it that the vocabulary's file could not hold. Only a separator that is none of
 * white space, or quotes, let it be there. */
int columns_check_word(const struct table_line *columns, unsigned column, const char *path, uint64_t line);

/* Parts the line [at, end). " " parts at any run of blanks. Doubled quotes within quotes become one in place, so that a
 * line can be parted only once; `keep`: 1 leaves the bytes, and such quotes, as they are. */
void columns_part(struct table_line *columns, char *at, char *end, const char *separator, int keep);

/* Returns what seems to part the columns of a line that may be a header: "::", "\t", ";", "|", "," or " ". */
const char *columns_separator(const char *at, const char *end);

#endif
