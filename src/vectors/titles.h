/* titles: readable titles of ids, from a file with an id and a title on each line (field_file.h). */
#ifndef SPTX_TITLES_H
#define SPTX_TITLES_H

#include "model.h"

struct titles {
    char *text;         /* the file's text, cut into strings; NULL where there is no file */
    const char **title; /* [rows of the model] in `text`; NULL where a row has none. The array is NULL where there is no file */
};

/* Reads the file. Lines whose id the model does not know are passed over, since lists of titles are often longer than a
 * corpus; an id that comes again keeps its first title. Returns 0, or -1 after fail(); the caller releases in either
 * case. */
int titles_read(struct titles *titles, const struct model *model, const char *path);
void titles_release(struct titles *titles); /* harmless on a zeroed one */

/* Returns the title of a row; "" where it has none or no file was read. */
const char *titles_of(const struct titles *titles, uint64_t row);

/* Returns the first row that has exactly this title, or -1. */
int64_t titles_find(const struct titles *titles, const struct model *model, const char *title);

#endif
