/* titles: what ids are called by people, from a file of lines "id TAB title". */
#ifndef SPTX_TITLES_H
#define SPTX_TITLES_H

#include "model.h"

struct titles {
    char *text;         /* of the file, cut into strings; NULL where none was asked for */
    const char **title; /* [rows of the model] in `text`; NULL where a row has none. NULL where no file was read */
};

/* Lines whose id the model does not know are passed over (lists of titles are often longer than a corpus); of an id
 * that comes again the first title stays. 0, or -1 after fail(); the caller releases in either case. */
int titles_read(struct titles *titles, const struct model *model, const char *path);
void titles_release(struct titles *titles); /* harmless on a zeroed one */

/* The title of a row, "" where it has none or no file was read. */
const char *titles_of(const struct titles *titles, uint64_t row);

/* The first row that has this very title, or -1. */
int64_t titles_find(const struct titles *titles, const struct model *model, const char *title);

#endif
