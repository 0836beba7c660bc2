/* titles: what the ids of a model are called, from a file of lines of id TAB title. */
#ifndef SPTX_TITLES_H
#define SPTX_TITLES_H

#include "model.h"

struct titles {
    char *text;         /* of the file, cut into strings; NULL where none was asked for */
    const char **title; /* [rows], NULL where a row has none */
};

/* Lines whose id the model does not know are passed over: lists of titles are often longer than a corpus. 0, or -1 after
 * fail(); the caller releases in either case. */
int titles_read(struct titles *titles, const struct model *model, const char *path);
void titles_release(struct titles *titles); /* harmless on a zeroed one */

/* The first row that has this very title, or -1. */
int64_t titles_find(const struct titles *titles, const struct model *model, const char *title);

#endif
