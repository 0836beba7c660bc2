/* look: finds the format of a table file (lists, pairs, edges ..) from its first lines: the separator, what quotes mean, whether
 * the first line is a header, what each column means, and how numbers are written. No other module guesses formats. If the first
 * lines contradict each other, or a later line contradicts the format, an error message names the line.
 *
 *   separator   the first of tab, ::, ; | comma and blanks that splits all lines into the same number of fields. For lists, whose
 *               lines differ in length: the first that splits at least half of the lines; blanks if none does
 *   header      the first line is a header if it has known column names (columns.def), or a word in a column that has numbers in
 *               all other lines
 *   columns     the columns that corpus.columns names; if it is not set, the columns with known names in the header; if there are
 *               none, the first two, and the third if it has numbers; of triples always three
 *   decimals    commas, if all values are numbers with decimal commas, and some are no numbers with decimal points
 *
 * Keys of [corpus] override each of these. This module reads no file (first_bytes.h does) and prints nothing: `said` describes the
 * format, and the caller prints it.
 */
#ifndef SPTX_LOOK_H
#define SPTX_LOOK_H

#include "columns.h"

#include <stdint.h>

/* The meaning of a file's lines. */
enum look_rows {
    LOOK_TEXT,      /* running text: it has no fields, so it has no format of fields */
    LOOK_LISTS,     /* a list: its name and any number of items */
    LOOK_ADJACENCY, /* a target and any number of contexts */
    LOOK_PAIRS,     /* list, item[, rating] */
    LOOK_EDGES,     /* source, target[, weight] */
    LOOK_LABELS,    /* a name and its labels */
    LOOK_TITLES,    /* an id and its title */
    LOOK_WORDS,     /* two words and their score */
    LOOK_TRIPLES    /* head, relation, tail */
};

/* corpus.header: whether the first line of a file names its columns */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };
/* corpus.names: whether each line of lists begins with the list's name */
enum corpus_names { NAMES_AUTO, NAMES_YES, NAMES_NO };
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
    int no_values;       /* 1: a third column is never read (graph.weights = no) */
};
#define LOOK_AUTO                                                                                                      \
    (struct look_keys) {                                                                                               \
        .header = HEADER_AUTO                                                                     \
    }

struct look {
    struct columns_form form;
    uint64_t skip;   /* number of bytes of the header, before the data */
    char said[240];  /* the format in words: "columns    list = user, item = sku, rating = none; commas, a header"; "" for text */
    char value[32];  /* name of the rating or weight column in the header; "" if the header has no such column */
};

/* Finds the format of a file from its first bytes, which begin after a byte order mark. whole = 1: these are all bytes of the
 * file; 0: the last line may be cut off and is ignored if it has no line end. Messages call the file `path`. Returns 0, or -1
 * after fail() if the lines cannot be read as `rows`. */
int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path);

/* Checks the text of corpus.columns, which must have two or three entries (names or numbers). Returns 0 if it has, otherwise -1. */
int look_columns_valid(const char *columns);

/* ---- lists or pairs? ---- */

/* Kinds of lines: lists (name, items), pairs (list, item), or pairs with ratings (list, item, rating). */
enum look_kind { LINES_UNCLEAR, LINES_LISTS, LINES_PAIRS, LINES_RATINGS };
enum look_kind look_for_pairs(const char *bytes, uint64_t length);

/* For lines that are about to be read as text, lists or adjacency (`rows`): if they look like another format, returns the end of a
 * warning about it ("look like ratings .."), otherwise NULL. */
const char *look_for_rows(const char *bytes, uint64_t length, enum look_rows rows);

#endif
