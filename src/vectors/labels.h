/* labels: reads files that label nodes or other rows: each line is a name, then its labels. */
#ifndef SPTX_LABELS_H
#define SPTX_LABELS_H

#include "lines.h"

/* Takes one label of a line. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file and passes each label to take(). How lines are split into fields is guessed (field_file.h). If a header names a
 * column of labels, only that column is read. Numbers with blanks between them are one label each. The fields train, val, test and
 * - are no labels: many data sets mark their split so. Returns 0, or -1 after fail() or as soon as take() returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

#endif
