/* look: decides by a file's first lines how its rows of fields are read: what parts them, what quotes mean, if the first
 * line names the columns, which column is which, how numbers are written. Whoever reads such a file asks here, and
 * nothing else guesses. What the lines looked at do not agree on is refused with the line, or when the line is read.
 *
 *   separator   the first of tab, ::, ; | and comma that parts all lines into as many fields, otherwise blanks. Of
 *               lists, whose lines differ in length: the first that parts half of the lines
 *   header      names of columns.def, or a first line with a word in a column that has a number in all other lines
 *   columns     by corpus.columns, by the header's names, or the first two, and the third where it is a number
 *   decimals    a comma, where all values are numbers with it and not all without
 *
 * Keys of [corpus] override each of these. It never reads a file (first_bytes.h does) and never prints: `said` tells what
 * was taken, for whoever reads to print.
 */
#ifndef SPTX_LOOK_H
#define SPTX_LOOK_H

#include "columns.h"

#include <stdint.h>

/* What a file's lines are rows of. */
enum look_rows {
    LOOK_TEXT,      /* no fields: nothing is decided */
    LOOK_LISTS,     /* a name and its items; as many as there are */
    LOOK_ADJACENCY, /* a target and its contexts */
    LOOK_PAIRS,     /* list, item[, rating] */
    LOOK_EDGES,     /* source, target[, weight] */
    LOOK_LABELS,    /* a name and its labels */
    LOOK_TITLES,    /* an id and its title */
    LOOK_WORDS      /* two words and their score */
};

/* corpus.header: does the first line of a file name its columns? */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };
/* corpus.names: does a list's line begin with its name? */
enum corpus_names { NAMES_AUTO, NAMES_YES, NAMES_NO };
/* corpus.separator; the order is that of its list in config.def. */
enum corpus_separator {
    SEPARATOR_AUTO,
    SEPARATOR_TAB,
    SEPARATOR_COMMA,
    SEPARATOR_SEMICOLON,
    SEPARATOR_PIPE,
    SEPARATOR_COLONS,
    SEPARATOR_BLANK
};

/* What the user has decided. The caller owns the text. */
struct look_keys {
    enum corpus_header header;
    enum corpus_names names;
    enum corpus_separator separator;
    const char *columns; /* corpus.columns: names or numbers, with commas between; "" or NULL: by look */
    int no_values;       /* 1: a third column is not read, whatever it holds (graph.weights = no) */
};
#define LOOK_AUTO                                                                                                      \
    (struct look_keys) {                                                                                               \
        .header = HEADER_AUTO                                                                     \
    }

struct look {
    struct columns_form form;
    uint64_t skip;   /* bytes of the header, which is no data */
    char said[240];  /* "columns    list = user, item = sku, rating = none; commas, a header"; "" of text */
    char value[32];  /* the header's name of the column of values, or "" */
};

/* Looks at the first bytes of a file, behind its byte order mark. whole: 1 where the file has no more bytes than these;
 * otherwise only whole lines count. Sentences call the file `path`. Returns 0, or -1 after fail(): the lines are no such
 * rows. */
int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path);

/* Checks the text of corpus.columns: two or three names or numbers from 1 on. Returns 0, or -1. */
int look_columns_valid(const char *columns);

/* ---- lists or pairs? ---- */

/* What lines look like that may be lists (name, items) or pairs (list, item[, rating]). */
enum look_kind { LINES_UNCLEAR, LINES_LISTS, LINES_PAIRS, LINES_RATINGS };
enum look_kind look_for_pairs(const char *bytes, uint64_t length);

/* Returns what lines that are read as text, as lists or as adjacency look like instead, for a warning: "look like ratings ..";
 * NULL where they look like what they are. */
const char *look_for_rows(const char *bytes, uint64_t length, enum look_rows rows);

#endif
