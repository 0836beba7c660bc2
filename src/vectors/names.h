/* names: small files that people write about rows: labels, titles, word pairs, questions. Their formats are found by corpus/look.h, and their
 * words are looked up in a model. */
#ifndef SPTX_NAMES_H
#define SPTX_NAMES_H

#include "corpus/fields.h"
#include "corpus/numbered.h"
#include "corpus/look.h"
#include "model.h"

#include <stdint.h>

/* field_file: reads a small file of labels, titles, word pairs or groups: all of it into memory, then line by line, split into fields. The format
 * is found from the first lines (corpus/look.h). */

struct field_file {
    const char *path;       /* owned by the caller */
    char *text;             /* the file's bytes, into which fields point */
    struct look look;       /* format of the file, found from its first lines */
    struct corpus_cursor cursor;
    struct table_line line; /* fields of the current line; only the first COLUMNS_READ are stored */
    char *end;              /* end of the current line, without its line end */
    uint64_t number;        /* number of the current line, from 1 */
};

/* Reads the file, which may be a pipe, and finds its format. rows: what its lines should be. Returns 0, or -1 after fail(). The caller calls
 * field_file_close() in both cases. */
int field_file_open(struct field_file *file, const char *path, enum look_rows rows);
void field_file_close(struct field_file *file);

/* Reads the next line that is not blank. Returns 1; 0 at the end of the file; -1 after fail() if a quote is not closed. */
int field_file_next(struct field_file *file);

/* Returns the current line's field with this meaning; NULL if it is missing or empty. */
const char *field_file_field(const struct field_file *file, enum column_meaning meaning, uint64_t *length);

/* lines: reads a text file in memory line by line and token by token, for files of analogies and other questions. */

struct lines {
    char *at, *end;
    char *line, *stop; /* the unread part of the current line */
    uint64_t number;
};

struct token {
    char *text; /* the token's first byte in the file's copy in memory; no NUL follows the token */
    uint64_t length;
};

/* Reads the whole file, which may be a pipe, into memory that the caller frees. Returns NULL after fail(). */
char *lines_open(struct lines *lines, const char *path);
/* Moves to the next line; LF, CR or CRLF ends a line. Returns 1, or 0 at the end of the file. */
int lines_next(struct lines *lines);
/* Reads the next token of the current line; blanks separate tokens. Returns 1, or 0 at the end of the line. */
int lines_token(struct lines *lines, struct token *token);

/* names: the different words of a file, numbered in the order of their first occurrence, each with its row in a model. */

struct names {
    struct words words;
    int64_t *row; /* [words.size] row of the model; -1: the model does not know the name */
    uint64_t capacity;
};
void names_release(struct names *names); /* may be called on a struct of zeros */

/* Returns the number of a name, which is added if it is new; -1 after fail(). */
int64_t names_add(struct names *names, const char *text, uint64_t length);
/* Changes `text` to lower case, and adds it like names_add(). */
int64_t names_add_lower(struct names *names, char *text, uint64_t length);
/* Returns the number of a name; -1 if it has not been added. */
int64_t names_find(const struct names *names, const char *text, uint64_t length);

/* Returns the word most like `name`, for an error message that suggests it; NULL if none is similar. Looks at 100,000 of `words`, from number
 * `first` to `end`, each without its first `skip` bytes. */
const char *names_near(const struct words *words, uint64_t first, uint64_t end, uint64_t skip, const char *name);

/* Sets the row of each name: that of the list with this name, or of the target whose line begins with it. */
void names_locate_lists(struct names *names, const struct model *model);

/* Sets the row of each name, which must be in lower case: the first of the first `rows` rows whose word in lower case equals it. Returns 0, or -1
 * after fail(). */
int names_locate(struct names *names, const struct model *model, uint64_t rows);

/* labels: reads files that label nodes or other rows: each line is a name, then its labels. */

/* Called with a line's name and one of its labels. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file and calls take() for each label. Lines are split as the first lines show (field_file). If a header names a column of labels, only
 * that column is read. In a field of several numbers separated by blanks, each number is a label. The fields train, val, test and - mark the parts
 * of a split data set, and are not labels. Returns 0, or -1 after fail() or as soon as take() returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

/* titles: readable titles of items, read from a file of lines of an id and a title. */

struct titles {
    char *text;         /* text of the file, split into strings; NULL: no file was read */
    const char **title; /* [model_end()] title of each row, a string in `text`; NULL: it has none. The array is NULL if no file was read */
};

/* Reads the file. Lines whose id the model does not know are skipped, since such files often list more ids than the corpus. Of several titles for
 * an id the first counts. Returns 0, or -1 after fail(); the caller releases in both cases. */
int titles_read(struct titles *titles, const struct model *model, const char *path);
void titles_release(struct titles *titles); /* may be called on a struct of zeros */

/* Returns the title of a row; "" if it has none, or if no file was read. */
const char *titles_of(const struct titles *titles, uint64_t row);

/* Returns the first row whose title equals `title`, or -1. */
int64_t titles_find(const struct titles *titles, const struct model *model, const char *title);

/* asked: reads data about which a run is asked, field by field: a file, read like a corpus, or data in memory. */

/* Called with each field that is a word or a name, in the order of a line: for lists, the list's name, then its items; for pairs, the list's name
 * and an item; for edges, two words; for triples, head, relation (a name), tail. Returns 0, or -1 to stop. */
typedef int asked_take(void *user, const struct corpus_field *field);
/* Reads `data`, or, if it is NULL, the file in the format of `options`. Returns 0, or -1 after fail() or as soon as take() returns -1. */
int asked_read(const char *path, const struct gathered *data, const struct corpus_options *options, asked_take *take, void *user);

/* list_form: finds out whether a file contains lists or pairs, if the user does not say. People often ask a run that was trained on lists about
 * files of pairs, and vice versa. */

/* Sets reading->format to the format of the lines in `path`, a file or a directory of files (look.h). Prints a note if this changes it. Returns 0,
 * or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

/* Writes which columns of a file of pairs are list, item and rating, as a value of corpus.columns; "" for files of other formats and for standard
 * input. Returns 0, or -1 after fail(). */
enum { LIST_FORM_COLUMNS = 96 };
int list_form_columns(const struct corpus_options *reading, const char *path, char columns[LIST_FORM_COLUMNS]);

#endif
