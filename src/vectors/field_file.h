/* field_file: a file of rows of fields that vectors are asked with (labels, titles, word pairs, groups), whole in memory, line
 * by line, as the look at its first lines says (corpus/look.h). */
#ifndef SPTX_FIELD_FILE_H
#define SPTX_FIELD_FILE_H

#include "corpus/look.h"

struct field_file {
    const char *path;       /* the caller's */
    char *text;             /* the file's bytes, which fields point into */
    struct look look;       /* how it is read */
    struct corpus_cursor cursor;
    struct table_line line; /* the current line; of more than COLUMNS_READ fields only the first ones */
    char *end;              /* of the current line */
    uint64_t number;        /* of the current line, from 1 */
};

/* Reads the file, which may be a pipe, and looks at it. Returns 0, or -1 after fail(); the caller closes in either case. */
int field_file_open(struct field_file *file, const char *path, enum look_rows rows);
void field_file_close(struct field_file *file);

/* Goes to the next line that has a field. Returns 1, 0 at the end, or -1 after fail(): a quote is not closed. */
int field_file_next(struct field_file *file);

/* Returns the current line's field of the column that has this meaning; NULL where the line has none, or an empty one. */
const char *field_file_field(const struct field_file *file, enum column_meaning meaning, uint64_t *length);

#endif
