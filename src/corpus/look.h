/* look: finds out from the first rows how data is laid out, and says so. It examines every file and all data of a program; no other module guesses
 * formats. If the first rows contradict each other, an error message names the row and the key that says otherwise; a later line that contradicts
 * them is an error of the reader.
 *
 *   separator   the first of tab, ::, ; | comma and blanks that splits all lines into the same number of fields. For lists, whose
 *               lines differ in length: the first that splits at least half of the lines; blanks if none does
 *   count       a first line that only says how many lines follow is not data
 *   header      the first line is a header if it has known column names (columns.def), or a word in a column that has numbers in
 *               all other lines
 *   columns     the columns that corpus.columns names; if it is not set, the columns with known names in the header; if there are
 *               none, the first two, and the third if it has numbers or few words. Triples have three; the relation is the one
 *               whose few names occur in no other column; of documents the longest is the text, and one whose fields all differ
 *               names the document
 *   decimals    commas, if that makes all values numbers and decimal points do not
 *
 * Keys of [corpus] override each of these. This module reads no file (first_bytes.h does) and prints nothing: `said` describes the
 * format, and the caller prints it.
 */
#ifndef SPTX_LOOK_H
#define SPTX_LOOK_H

#include "columns.h"

#include <stdint.h>

/* corpus.header: whether the first line of a file names its columns */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };
/* corpus.names: what names a list or a document. Numbered like the choices of this key in config.def */
enum corpus_names { NAMES_AUTO, NAMES_YES, NAMES_NO, NAMES_FILE };
/* corpus.separator, in the order of its choices in config.def */
enum corpus_separator {
    SEPARATOR_AUTO,
    SEPARATOR_TAB,
    SEPARATOR_COMMA,
    SEPARATOR_SEMICOLON,
    SEPARATOR_PIPE,
    SEPARATOR_COLONS,
    SEPARATOR_BLANK
};

/* Keys by which the user sets the format. The caller owns the text. */
struct look_keys {
    enum corpus_header header;
    enum corpus_names names;
    enum corpus_separator separator;
    const char *columns; /* corpus.columns: names or numbers, separated by commas; "" or NULL: auto */
    const char *events;  /* corpus.events: the events whose rows are kept, separated by commas; "" or NULL: all events */
    int literals;        /* triples: 1 if literals of N-Triples are entities; 0: their triples are left out */
    int labelled;        /* triples: 1: rows may have one more column, which says whether the triple is true (columns_truth()) */
    int no_values;       /* 1: a third column is never read (graph.weights = no) */
    int files;           /* documents: number of files of the corpus; 0 means 1 */
    int hints;           /* 1: the keys are those of a run's corpus, and this is another file (held-out data, questions): a key that does not fit
                          * it is ignored, as if not set */
};
#define LOOK_AUTO                                                                                                      \
    (struct look_keys) {                                                                                               \
        .header = HEADER_AUTO                                                                     \
    }

enum { LOOK_SAID = 400, LOOK_LIKE = 200 }; /* bytes of a description; of a warning */

struct look {
    struct columns_form form;
    enum look_rows rows;
    uint64_t skip;        /* number of bytes of the header: the data begins after it */
    int header;           /* 1: the first row names the columns */
    int shifted;          /* 1: it has no name for the first column, where R wrote row names */
    int counted;          /* 1: the first line, which only says how many lines follow, was left out */
    int sure;             /* documents: 1 if the lines themselves show what names a document, as a table or with ids as first words */
    char said[LOOK_SAID]; /* description of the format: "columns    list = user, item = sku, rating = none; commas, a header"; "" for text */
    char doubt[LOOK_LIKE]; /* a warning about the rows, to follow the words "the lines of 'path'"; "": no warning */
    char value[32];       /* name of the rating or weight column in the header; "" if the header has no such column */
    char columns[96];     /* the columns as a value of corpus.columns: "1,3,2", "user,item"; "" if rows have no columns */
};

/* Finds the format of a file from its first bytes, after a byte order mark. whole = 1: these are all bytes of the file; 0: the last line may be
 * cut off, and is ignored if it has no line end. path: the file's name in messages. Returns 0, or -1 after fail() if the lines cannot be read as
 * `rows`. */
int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path);

enum { LOOKED_AT = 2000 }; /* number of first rows that are examined */

/* A field of a row that a program hands over. */
enum look_field_kind { FIELD_NONE, FIELD_MISSING, FIELD_TEXT, FIELD_INTEGER, FIELD_REAL, FIELD_TRUTH };
struct look_field {
    const char *text; /* the value as text: numbers in decimal digits, truths as True and False; owned by the caller */
    uint64_t length;
    enum look_field_kind kind; /* FIELD_NONE: the row ends before this column; FIELD_MISSING: it has no value */
};
/* The first rows of data that a program hands over. */
struct look_data {
    const struct look_field *fields; /* [rows][columns] */
    uint64_t rows, columns;
    const char *const *names; /* [columns] names of the columns; NULL: the columns have no names */
    const char *what;         /* the data in messages: "the frame" */
};
/* Finds the format of a program's rows, as look_at_lines() does of a file's lines. rows = LOOK_ANY: the kind of rows is guessed and stored in
 * look->rows; if several kinds are possible, this fails and names them. Keys about separators and headers are ignored. Keeps no pointer into
 * `data`. Returns 0, or -1 after fail(). */
int look_at_rows(struct look *look, const struct look_data *data, enum look_rows rows, const struct look_keys *keys);

/* Returns 0 if the text has the form of corpus.columns, two or three entries (names or numbers); otherwise -1. */
int look_columns_valid(const char *columns);

/* ---- lists or pairs? ---- */

/* Kinds of lines: lists (name, items), pairs (list, item), or pairs with ratings (list, item, rating). */
enum look_kind { LINES_UNCLEAR, LINES_LISTS, LINES_PAIRS, LINES_RATINGS };
/* Returns the kind of lines. named: set to 1 if the first line is a header that names list and item; may be NULL. */
enum look_kind look_for_pairs(const char *bytes, uint64_t length, int *named);

/* Examines lines that will be read as text, lists or adjacency (`rows`). If they look like another format, writes the end of a warning ("look like
 * ratings .."), otherwise "". */
void look_for_rows(char like[LOOK_LIKE], const char *bytes, uint64_t length, enum look_rows rows);

#endif
