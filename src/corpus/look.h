/* look: decides what data is, from its first rows, and says so. Every file and everything that a program hands over comes in by this
 * door; no other module guesses formats. If the first rows contradict each other, an error message names the row and the key that
 * says otherwise; a later line that contradicts them is an error of the reader.
 *
 *   separator   the first of tab, ::, ; | comma and blanks that splits all lines into the same number of fields. For lists, whose
 *               lines differ in length: the first that splits at least half of the lines; blanks if none does
 *   count       a first line that is the number of the other lines is no data
 *   header      the first line is a header if it has known column names (columns.def), or a word in a column that has numbers in
 *               all other lines
 *   columns     the columns that corpus.columns names; if it is not set, the columns with known names in the header; if there are
 *               none, the first two, and the third if it has numbers or few words; of triples three, of which the relation is that
 *               whose few names occur in no other column; of documents the longest is the text, and one whose fields all differ
 *               names the document
 *   decimals    commas, if all values are numbers with decimal commas, and some are no numbers with decimal points
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
/* corpus.names: what names a list or a document, in the order of its choices in config.def */
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
    const char *events;  /* corpus.events: the words of events that are kept, with commas between; "" or NULL: all */
    int literals;        /* triples: 1: literals of N-Triples are entities, too; 0: their triples are left out */
    int no_values;       /* 1: a third column is never read (graph.weights = no) */
    int files;           /* documents: how many files the corpus has; 0 is 1 */
    int hints;           /* 1: these are the keys of a run's corpus, and the file is another one (held-out data, questions): what does
                          * not fit it is found as if it was not set */
};
#define LOOK_AUTO                                                                                                      \
    (struct look_keys) {                                                                                               \
        .header = HEADER_AUTO                                                                     \
    }

enum { LOOK_SAID = 400, LOOK_LIKE = 200 }; /* bytes of a description; of a warning */

struct look {
    struct columns_form form;
    enum look_rows rows;
    uint64_t skip;        /* number of bytes of the header, before the data */
    int header;           /* 1: the first row names the columns */
    int counted;          /* 1: the first line, which only counts the others, was left out */
    int sure;             /* documents, 1: the lines themselves tell what names a document: a table, or ids as first words */
    char said[LOOK_SAID]; /* the format in words: "columns    list = user, item = sku, rating = none; commas, a header"; "" for text */
    char doubt[LOOK_LIKE]; /* a warning about the rows, without its beginning "the lines of 'path'"; "" if there is none */
    char value[32];       /* name of the rating or weight column in the header; "" if the header has no such column */
    char columns[96];     /* the columns as corpus.columns names them: "1,3,2", "user,item"; "" if rows have no columns */
};

/* Finds the format of a file from its first bytes, which begin after a byte order mark. whole = 1: these are all bytes of the
 * file; 0: the last line may be cut off and is ignored if it has no line end. Messages call the file `path`. Returns 0, or -1
 * after fail() if the lines cannot be read as `rows`. */
int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path);

enum { LOOKED_AT = 2000 }; /* largest number of first rows that are examined */

/* A field of a row that a program hands over. */
enum look_field_kind { FIELD_NONE, FIELD_MISSING, FIELD_TEXT, FIELD_INTEGER, FIELD_REAL, FIELD_TRUTH };
struct look_field {
    const char *text; /* numbers as decimal digits, truths as True and False; owned by the caller */
    uint64_t length;
    enum look_field_kind kind; /* FIELD_NONE: the row ends before this column; FIELD_MISSING: it has no value */
};
/* The first rows of data that a program hands over. */
struct look_data {
    const struct look_field *fields; /* [rows][columns] */
    uint64_t rows, columns;
    const char *const *names; /* [columns] names of the columns; NULL: they have none */
    const char *what;         /* the data in messages: "the frame" */
};
/* Works like look_at_lines() for rows of typed fields. Of rows = LOOK_ANY the format is guessed, look->rows tells it, and data that
 * could be several formats is refused with the choices. Keys about separators and headers are not used. Nothing of `data` is kept.
 * Returns 0, or -1 after fail(). */
int look_at_rows(struct look *look, const struct look_data *data, enum look_rows rows, const struct look_keys *keys);

/* Checks the text of corpus.columns, which must have two or three entries (names or numbers). Returns 0 if it has, otherwise -1. */
int look_columns_valid(const char *columns);

/* ---- lists or pairs? ---- */

/* Kinds of lines: lists (name, items), pairs (list, item), or pairs with ratings (list, item, rating). */
enum look_kind { LINES_UNCLEAR, LINES_LISTS, LINES_PAIRS, LINES_RATINGS };
/* *named: 1: the first line is a header that names list and item; may be NULL. */
enum look_kind look_for_pairs(const char *bytes, uint64_t length, int *named);

/* For lines that are about to be read as text, lists or adjacency (`rows`): if they look like another format, writes the end of a
 * warning about it ("look like ratings .."), otherwise "". */
void look_for_rows(char like[LOOK_LIKE], const char *bytes, uint64_t length, enum look_rows rows);

#endif
