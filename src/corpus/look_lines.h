/* look_lines: the first lines of a file, and statistics of their fields. Only look*.c use it. */
#ifndef SPTX_LOOK_LINES_H
#define SPTX_LOOK_LINES_H

#include "look.h"

enum { LOOKED_AT = 2000 }; /* largest number of first lines that are examined */

struct looked_line {
    const char *at, *end; /* the line's bytes, without the line end */
    uint64_t number;      /* line number in the file, from 1 */
};
struct looked_lines {
    struct looked_line *line; /* [count] lines; empty lines and comments are left out */
    uint64_t count;
    const char *bytes; /* the first byte of the file's first line */
};

/* Finds the first lines in `bytes`, up to LOOKED_AT. comments = 1: leaves out lines that begin with # or %. Returns 0, or -1 after
 * fail(); the caller must call looked_lines_release() in both cases. */
int looked_lines_collect(struct looked_lines *lines, const char *bytes, uint64_t length, int whole, int comments);
void looked_lines_release(struct looked_lines *lines);

/* Splits a line into fields without changing its bytes. */
struct table_line looked_part(const struct looked_line *line, const struct columns_form *form);

/* Sets form->separator and form->quotes so that they fit the lines. fixed = 1: all lines should have the same number of fields.
 * blanks = 1: runs of blanks may be the separator. `key` is corpus.separator; `written` is the separator that the file names in a
 * line such as "sep=;", or "". */
void looked_separate(struct columns_form *form, const struct looked_lines *lines, int fixed, int blanks,
                     enum corpus_separator key, const char *written);

/* Returns 1 if the separator is '|' or '::', and commas, which are neither decimal nor followed by blanks, also split all lines into
 * the same number of fields. */
int looked_has_two_separators(const struct looked_lines *lines, const struct columns_form *form);

/* Statistics of one column. Each counter is a number of the column's fields. */
struct looked_column {
    uint64_t filled;        /* number of fields that are not empty */
    uint64_t numbers;       /* number of fields that are numbers: 1.5 */
    uint64_t comma_numbers; /* number of fields that are numbers if a comma is the decimal point: 1,5 or 2 */
    uint64_t digits;        /* number of fields of digits and signs such as . : / - only: numbers, dates, times */
    uint64_t arrows;        /* number of fields such as -> or -- */
    uint64_t thousands;     /* number of fields such as 1,234 */
    uint64_t flags;         /* number of fields that are 0 or 1 */
    uint64_t times;         /* number of fields that are seconds or milliseconds since 1970, within the years 1986 to 2096 */
    uint64_t coded;         /* number of fields with the same letters as the first field, and digits after them: u17 */
    const char *letters;    /* the letters before the first digit of the column's first field: u */
    uint64_t letters_length;
};
struct looked_columns {
    struct looked_column column[COLUMNS_READ];
    uint64_t least, most; /* smallest and largest number of fields in a line */
    uint64_t lines;       /* number of lines described */
};
/* Computes the statistics of all columns over the lines from index `first` on. */
void looked_describe(struct looked_columns *columns, const struct looked_lines *lines, uint64_t first,
                     const struct columns_form *form);
/* Returns 1 if most lines are N-Triples: apart from comments, they begin with an IRI or a blank node and end with a dot,
 * maybe with a comment after it. The others are wrong lines, which are named when they are read. */
int looked_are_ntriples(const struct looked_lines *lines);

/* Returns 1 if all lines after the first have different first fields. */
int looked_begin_differently(const struct looked_lines *lines, const struct columns_form *form);
/* Returns 1 if there are at least five lines, and their first fields are consecutive numbers from 0 or 1 on. */
int looked_are_numbered(const struct looked_lines *lines, const struct columns_form *form);

/* ---- look_refuse.c ---- */

static inline int looked_is_of_lists(enum look_rows rows) {
    return rows == LOOK_LISTS || rows == LOOK_ADJACENCY;
}
/* Refuses a file whose lines are not rows of fields. braces: 1 if edges end with networkx' attributes. Returns 0, or -1 after
 * fail(). */
int looked_refuse_lines(const struct looked_lines *lines, enum look_rows rows, int braces, const char *path);
/* Refuses columns that were chosen for COLUMN_A and COLUMN_B if their fields, in the lines from index `first` on, are not names.
 * Returns 0, or -1 after fail(). */
int looked_refuse_fields(const struct looked_lines *lines, uint64_t first, const struct columns_form *form, enum look_rows rows,
                         const char *path);
/* Returns 1 for a word that programs write if a value is missing, such as NA or NULL. */
int looked_is_missing(const char *word, uint64_t length);

/* Returns 1 if the word has a digit, and consists of digits and signs such as . : / - only. */
int looked_is_digits(const char *word, uint64_t length);
/* Returns 1 if the word begins with column->letters and a digit follows them. */
int looked_is_coded(const struct looked_column *column, const char *word, uint64_t length);

#endif
