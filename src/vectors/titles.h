/* titles: readable titles of items, read from a file of lines of an id and a title (field_file.h). */
#ifndef SPTX_TITLES_H
#define SPTX_TITLES_H

#include "model.h"

struct titles {
    char *text;         /* the file's text, split into strings; NULL: no file was read */
    const char **title; /* [rows of the model] title of each row, in `text`; NULL: the row has none. The array is NULL if no file
                         * was read */
};

/* Reads the file. Lines whose id the model does not know are skipped, since files of titles often list more ids than a corpus.
 * If an id repeats, its first title counts. Returns 0, or -1 after fail(); the caller releases in either case. */
int titles_read(struct titles *titles, const struct model *model, const char *path);
void titles_release(struct titles *titles); /* may be called on a struct of zeros */

/* Returns the title of a row; "" if it has none, or if no file was read. */
const char *titles_of(const struct titles *titles, uint64_t row);

/* Returns the first row whose title equals `title`, or -1. */
int64_t titles_find(const struct titles *titles, const struct model *model, const char *title);

#endif
