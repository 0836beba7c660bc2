/* labels: reads files that label nodes or other rows: each line is a name, then its labels. */
#ifndef SPTX_LABELS_H
#define SPTX_LABELS_H

#include "lines.h"

/* Called with a line's name and one of its labels. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file and calls take() for each label. The file's first lines show how lines are split into fields (field_file.h). If
 * a header names a column of labels, only that column is read. If a field has several numbers separated by blanks, each number
 * is a label. The fields train, val, test and - are marks of a data set's split, and no labels. Returns 0, or -1 after fail() or
 * as soon as take() returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

#endif
