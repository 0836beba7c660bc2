/* columns: splits a line into fields by the format of its file (struct columns_form): the separator, what quotes mean, and which
 * column has which meaning. look.h finds the format from the file's first lines.
 *
 *   alice,dune,5                        fields are separated by commas, tabs, semicolons, bars, "::", or any run of blanks
 *   7,"Dune, ""revised""",4             a field in double quotes may contain the separator
 *   "User-ID";"ISBN";"Book-Rating"      a header may name the columns, which may be in any order, among others
 *   1;2;1,5                             numbers may have a decimal comma
 *   1 2 {'weight': 3, 'color': 'red'}   edges of networkx: everything from the brace to the end of the line is one field
 */
#ifndef SPTX_COLUMNS_H
#define SPTX_COLUMNS_H

#include "tokens.h"

#include <stdint.h>

/* Meanings of the columns that are read from a line; rows.def names them for each kind of row: for pairs list, item, rating. */
enum column_meaning { COLUMN_A, COLUMN_B, COLUMN_VALUE, COLUMN_MEANINGS };

/* Kinds of rows, such as pairs or edges, that a file or a program's data may contain: one for each line of rows.def. */
enum look_rows {
#define ROWS(rows, ...) rows,
#include "rows.def"
    LOOK_ROWS,
    LOOK_ANY = LOOK_ROWS /* the user has named no format: look_at_rows() guesses it */
};

struct row_properties {
    const char *names[COLUMN_MEANINGS]; /* names of the fields in messages, indexed by meaning */
    const char *row;                    /* a row in messages: "a pair" */
    enum column_meaning order[COLUMN_MEANINGS]; /* the order of the fields in a file whose columns have no names */
    unsigned needed;                    /* number of fields, in the sequence of `order`, that each row must have */
    int number;                         /* 1: COLUMN_VALUE is a number, and may be missing */
    int free;                           /* 1: a row may have any number of fields; all after the first have the same meaning */
    int text;                           /* 1: a field is running text: words with blanks between them */
    int longer;                         /* 1: a row may have more fields than the first rows */
    int comments;                       /* 1: lines that begin with # or % are comments */
};
extern const struct row_properties row_properties[LOOK_ROWS];

/* Returns how well a column's name fits a meaning: 0 if columns.def does not list the name; otherwise the earlier the name is
 * listed, the higher. Only letters and digits are compared, without regard to case: "User-ID" equals "userid". */
unsigned column_rank(enum look_rows rows, enum column_meaning meaning, const char *name, uint64_t length);

/* Returns the meaning (enum column_meaning) that a column's name fits best, or -1 if it fits none. */
int column_meaning(enum look_rows rows, const char *name, uint64_t length);

enum { COLUMNS_READ = 64, NO_COLUMN = COLUMNS_READ }; /* number of first fields of a line that are stored; later fields are only
                                                       * counted */

/* Returns 1 if a line of an edge file that begins with this byte is a comment. */
static inline int columns_comment(char byte) {
    return byte == '#' || byte == '%';
}

/* The meaning of a double quote at the beginning of a field. */
enum column_quotes {
    QUOTES_BYTES,   /* the quote is an ordinary byte of the field */
    QUOTES_LENIENT, /* the quote opens a quoted field if a closing quote ends the field; otherwise it is an ordinary byte */
    QUOTES_STRICT   /* the quote opens a quoted field; it is an error if the field does not end with a closing quote */
};

/* What names a list or a document (corpus.names). */
enum columns_naming {
    NAMED_BY_FIELD,  /* the first field of a line, or its field in column COLUMN_A */
    NAMED_BY_LINE,   /* the number of its line */
    NAMED_BY_FILE    /* a document is a whole file, and is named by the file's path */
};

/* The format of a file's lines. */
struct columns_form {
    char separator[3];               /* text between two fields; " ": any run of blanks */
    uint8_t quotes;                  /* enum column_quotes */
    uint8_t decimal_comma;           /* 1: numbers have a decimal comma: 1,5 */
    uint8_t braces;                  /* 1: a field that begins with { extends to the end of its line */
    uint8_t ntriples;                /* 1: lines are N-Triples (fields.h); the separator and the columns are not used */
    uint8_t naming;                  /* enum columns_naming: what names a list or a document */
    uint8_t named;                   /* 1: column[] was chosen by the header or by corpus.columns, not by position */
    uint8_t zeros_out;               /* 1: COLUMN_VALUE is 1 for an event that happened and 0 for one that did not; rows with 0 are left out */
    uint8_t events;                  /* 1: COLUMN_VALUE is a word that says what happened: view, cart, purchase */
    uint8_t truth;                   /* triples: the column, counted from 1, that says whether a triple is true; 0: no column does */
    uint8_t column[COLUMN_MEANINGS]; /* [meaning] index of the column that has this meaning, from 0; NO_COLUMN: no column has it */
    uint64_t columns;                /* for documents: number of columns in the file's first lines */
    uint64_t most;                   /* largest number of fields that a line may have; 0: no limit */
};
#define COLUMNS_PLAIN                                                                                                  \
    (struct columns_form) {                                                                                            \
        .separator = " ", .column = { 0, 1, 2 }                                                                        \
    }

/* ---- field by field ---- */

/* The unread rest of a line whose fields are read one after the other. */
struct column_walk {
    char *at, *end;
    int more; /* 1: the line has another field, which may be empty */
};
/* One field of a line. */
struct column_field {
    char *word; /* the field's text, without its quotes and without blanks at either end, inside or outside of the quotes */
    uint64_t length;
    int quoted; /* 1: the field had quotes, which were removed */
    int open;   /* 1: the field is malformed: its quote is not closed, or bytes follow its closing quote */
};

/* Prepares to read the fields of the line [at, end) by column_walk_next(). A line of blanks only has no fields. */
void column_walk_start(struct column_walk *walk, char *at, char *end, const struct columns_form *form);
/* Stores the next field and returns 1, or returns 0 at the end of the line. With keep = 0, each doubled quote in a quoted field is replaced by
 * one, in the line's own bytes, so the line can be read only once; with keep = 1 its bytes do not change. */
int column_walk_next(struct column_walk *walk, const struct columns_form *form, int keep, struct column_field *field);

/* ---- line by line ---- */

/* All fields of a line. They point into the line's bytes. */
struct table_line {
    const char *word[COLUMNS_READ];
    uint64_t length[COLUMNS_READ];
    uint64_t count; /* number of fields; it may be larger than COLUMNS_READ */
    int quoted;     /* 1: at least one field was quoted */
    int open;       /* 1: at least one field has a quote that is not closed */
    int plain;      /* 1: no field contains white space */
};

/* Splits the line at .. end - 1 into fields. keep: as in column_walk_next(). */
void columns_part(struct table_line *line, char *at, char *end, const struct columns_form *form, int keep);

/* Reads the next line of a block. Returns 1 (even if the line has no fields), or 0 at the end of the block. The block must consist of whole lines;
 * its bytes may be changed. */
int columns_next(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *line);

/* Returns -1 after fail() for a wrong line: it lacks a field that each row needs (row_properties), or has more fields than form->most; a quote is
 * not closed; or a word contains a tab or a line end, which a vocabulary file cannot store. Otherwise returns 0. */
int columns_check(const struct table_line *line, const struct columns_form *form, enum look_rows rows, const char *path,
                  uint64_t number);

/* Returns the index of the field with the line's rating, weight or score; NO_COLUMN if it is missing or empty. */
unsigned columns_value(const struct table_line *line, const struct columns_form *form);

/* Reads a number as the file writes it: 4.5 or 1e3; 4,5 with decimal commas; or the weight in a networkx attribute list. Returns 0, or -1 if the
 * field is not a finite number. */
int columns_number(const struct columns_form *form, const char *word, uint64_t length, double *value);

/* Returns 1 for a field that says "true" (1, +1, true), 0 for one that says "false" (0, -1, false), -1 for any other. */
int columns_truth(const char *word, uint64_t length);

/* Returns the name of a separator for messages: "tabs". */
const char *columns_separator_name(const char *separator);

#endif
