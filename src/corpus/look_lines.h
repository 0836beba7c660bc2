/* look_lines: the first lines of a file, as the look at it sees them. For look*.c alone. */
#ifndef SPTX_LOOK_LINES_H
#define SPTX_LOOK_LINES_H

#include "look.h"

enum { LOOKED_AT = 2000 }; /* lines */

struct looked_line {
    const char *at, *end; /* without blanks around it */
    uint64_t number;      /* from 1 */
};
struct looked_lines {
    struct looked_line *line; /* [count]; neither empty lines nor comments */
    uint64_t count;
    const char *bytes; /* where they begin */
};

/* Collects the lines. comments: 1 passes over lines that begin with # or %. Returns 0, or -1 after fail(); the caller
 * releases in either case. */
int looked_lines_collect(struct looked_lines *lines, const char *bytes, uint64_t length, int whole, int comments);
void looked_lines_release(struct looked_lines *lines);

/* Parts a line, whose bytes stay as they are. */
struct table_line looked_part(const struct looked_line *line, const struct columns_form *form);

/* Sets the form's separator and what quotes mean, as the lines agree on them. `fixed`: 1 where lines have the same number of
 * fields; `blanks`: 1 where runs of blanks may part them. `written`: the separator that the file itself names; "": none. */
void looked_separate(struct columns_form *form, const struct looked_lines *lines, int fixed, int blanks,
                     enum corpus_separator key, const char *written);

/* What a column's fields have in common, over some lines. */
struct looked_column {
    uint64_t filled;        /* fields that are not empty */
    uint64_t numbers;       /* of which are numbers */
    uint64_t comma_numbers; /* .. numbers with a decimal comma, or without any */
    uint64_t digits;        /* .. digits with signs between: numbers, dates, times */
    uint64_t times;         /* .. seconds or milliseconds since 1970, of the years 1986 to 2096 */
    uint64_t bracketed;     /* .. lists as programs print them: ['a', 'b'] */
    uint64_t coded;         /* .. letters and then digits, which begin with the same letters: u17 */
    const char *letters;    /* with which those begin */
    uint64_t letters_length;
};
struct looked_columns {
    struct looked_column column[COLUMNS_READ];
    uint64_t least, most; /* fields of a line */
    uint64_t lines;
};
/* Describes the columns of the lines from `first` on. */
void looked_describe(struct looked_columns *columns, const struct looked_lines *lines, uint64_t first,
                     const struct columns_form *form);

/* 1 where the word is made of digits with signs between. */
int looked_is_digits(const char *word, uint64_t length);
/* 1 where the word begins with the letters that a column's fields begin with, and has a digit behind them. */
int looked_is_coded(const struct looked_column *column, const char *word, uint64_t length);

#endif
