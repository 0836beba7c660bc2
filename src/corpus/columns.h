/* columns: the fields of a line, as its file's form says: what parts them, what quotes mean, which column is which.
 * A form is found by looking at a file's first lines (look.h).
 *
 *   alice,dune,5                        commas, tabs, semicolons, bars, "::", or any run of blanks part the fields
 *   7,"Dune, ""revised""",4             a field between double quotes may hold what parts fields
 *   "User-ID";"ISBN";"Book-Rating"      a header may say which column is which, in any order, among other columns
 *   1;2;1,5                             numbers may have a decimal comma
 *   1 2 {'weight': 3, 'color': 'red'}   networkx' attributes: from the brace on, a line is one field
 */
#ifndef SPTX_COLUMNS_H
#define SPTX_COLUMNS_H

#include "tokens.h"

#include <stdint.h>

/* The columns that are taken of a line: a list, an item and its rating; or an edge's source, target and weight; or a
 * name and its label or title; or two words and their score. */
enum column_meaning { COLUMN_A, COLUMN_B, COLUMN_VALUE, COLUMN_MEANINGS };

/* Tables whose columns have other names and meanings. */
enum column_set { COLUMNS_OF_PAIRS, COLUMNS_OF_EDGES, COLUMNS_OF_LABELS, COLUMNS_OF_TITLES, COLUMNS_OF_WORDS, COLUMN_SETS };

/* How sentences call the three columns of a table. */
struct columns_words {
    const char *a, *b, *value;
};
extern const struct columns_words columns_words[COLUMN_SETS];

/* Returns how well a name tells that a column has this meaning: 0 not at all, otherwise more for names that are listed
 * earlier in columns.def. Only letters and digits count, and capitals do not: "User-ID" is "userid". */
unsigned column_rank(enum column_set set, enum column_meaning meaning, const char *name, uint64_t length);

/* Returns the meaning that a name tells best, or -1. */
int column_meaning(enum column_set set, const char *name, uint64_t length);

enum { COLUMNS_READ = 64, NO_COLUMN = COLUMNS_READ }; /* columns of a line that are kept; the line may have more */

/* 1 for the byte that a comment among edges begins with. */
static inline int columns_comment(char byte) {
    return byte == '#' || byte == '%';
}

/* What a double quote at the beginning of a field means. */
enum column_quotes {
    QUOTES_BYTES,   /* a byte like any other */
    QUOTES_LENIENT, /* the field ends at the closing quote, if a separator or the line's end follows; otherwise a byte */
    QUOTES_STRICT   /* the field must end at a closing quote */
};

/* How a file's lines are read. */
struct columns_form {
    char separator[3];               /* " ": any run of blanks */
    uint8_t quotes;                  /* enum column_quotes */
    uint8_t decimal_comma;           /* 1: numbers are written 1,5 */
    uint8_t braces;                  /* 1: a field that begins with { takes the rest of its line */
    uint8_t unnamed;                 /* 1: lists have no names: each line's number becomes its name (corpus.names) */
    uint8_t named;                   /* 1: a header, or corpus.columns, says which column is which */
    uint8_t column[COLUMN_MEANINGS]; /* the column of each meaning, or NO_COLUMN */
    uint64_t most;                   /* a line with more fields is refused; 0: lines may have any number */
};
#define COLUMNS_PLAIN                                                                                                  \
    (struct columns_form) {                                                                                            \
        .separator = " ", .column = { 0, 1, 2 }                                                                        \
    }

/* ---- field by field ---- */

struct column_walk {
    char *at, *end;
    int more; /* 1: another field follows, which may be empty */
};
struct column_field {
    char *word; /* without quotes, and without the blanks around it or within its quotes */
    uint64_t length;
    int quoted; /* 1: quotes were taken away */
    int open;   /* 1: a quote is not closed, or bytes follow a closing quote */
};

/* Begins a walk over the line [at, end). A line of blanks alone has no field. */
void column_walk_start(struct column_walk *walk, char *at, char *end, const struct columns_form *form);
/* Returns 1 with the next field, or 0 at the line's end. Doubled quotes within quotes become one in place, so that a
 * line can be walked only once; `keep`: 1 leaves the bytes, and such quotes, as they are. */
int column_walk_next(struct column_walk *walk, const struct columns_form *form, int keep, struct column_field *field);

/* ---- line by line ---- */

struct table_line {
    const char *word[COLUMNS_READ];
    uint64_t length[COLUMNS_READ];
    uint64_t count; /* may pass COLUMNS_READ */
    int quoted;     /* 1: one of the fields was quoted */
    int open;       /* 1: one of the fields has a quote that is not closed */
};

/* Parts the line [at, end); `keep` as above. */
void columns_part(struct table_line *line, char *at, char *end, const struct columns_form *form, int keep);

/* Returns 1 with the next line of the block, which may have no field, or 0 at the block's end. The block must hold
 * whole lines; its bytes may change. */
int columns_next(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *line);

/* Refuses a line whose two first columns are missing or empty, that has more fields than the file's first lines, an
 * open quote, or a word with a tab or a line's end in it, which a vocabulary's file could not hold. Returns 0, or -1
 * after fail(). */
int columns_check(const struct table_line *line, const struct columns_form *form, enum column_set set, const char *path,
                  uint64_t number);

/* Returns the line's column of values, or NO_COLUMN where it has none or an empty one. */
unsigned columns_value(const struct table_line *line, const struct columns_form *form);

/* Reads a number as the form writes it: 4.5, 1e3, 4,5, or the weight among networkx' attributes. Returns 0, or -1 where
 * the field is no finite number. */
int columns_number(const struct columns_form *form, const char *word, uint64_t length, double *value);

/* Returns how sentences call a separator: "tabs". */
const char *columns_separator_name(const char *separator);

#endif
