/* field_file: reads a small file of labels, titles, word pairs or groups: the whole file into memory, then line by line, each line
 * split into fields. The format is guessed from the first lines of the file (corpus/look.h). */
#ifndef SPTX_FIELD_FILE_H
#define SPTX_FIELD_FILE_H

#include "corpus/look.h"

struct field_file {
    const char *path;       /* owned by the caller */
    char *text;             /* the file's bytes, into which fields point */
    struct look look;       /* the format of the file, found from its first lines */
    struct corpus_cursor cursor;
    struct table_line line; /* fields of the current line; only the first COLUMNS_READ are stored */
    char *end;              /* end of the current line, without its line feed */
    uint64_t number;        /* number of the current line, from 1 */
};

/* Reads the file, which may be a pipe, and finds its format. `rows`: the meaning that its lines should have. Returns 0, or -1
 * after fail(). The caller calls field_file_close() in both cases. */
int field_file_open(struct field_file *file, const char *path, enum look_rows rows);
void field_file_close(struct field_file *file);

/* Reads the next line that is not blank. Returns 1; 0 at the end of the file; -1 after fail() if a quote is not closed. */
int field_file_next(struct field_file *file);

/* Returns the current line's field in the column with this meaning; NULL if the field is missing or empty. */
const char *field_file_field(const struct field_file *file, enum column_meaning meaning, uint64_t *length);

#endif
