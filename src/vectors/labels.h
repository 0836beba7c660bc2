/* labels: files of what nodes, or any rows, are: a name a line, then its labels, parted by blanks or tabs. */
#ifndef SPTX_LABELS_H
#define SPTX_LABELS_H

#include "lines.h"

/* Takes one label of a line. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file. Columns that say train, val, test or - are no labels: they are the usual split of many data sets.
 * Returns 0, or -1 after fail() or as soon as take() returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

#endif
