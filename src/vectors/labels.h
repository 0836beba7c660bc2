/* labels: reads files that label nodes or other rows: each line is a name, then its labels. */
#ifndef SPTX_LABELS_H
#define SPTX_LABELS_H

#include "lines.h"

/* Called with a line's name and one of its labels. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file and calls take() for each label. How lines are split into fields is guessed (field_file.h). If a header names a
 * column of labels, only that column is read. In a field of numbers with blanks between them, each number is a label. The fields
 * train, val, test and - are not labels, but marks of a data set's split. Returns 0, or -1 after fail() or as soon as take()
 * returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

#endif
