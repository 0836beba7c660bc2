/* labels: files of what nodes, or any rows, are: a name a line, then its labels. */
#ifndef SPTX_LABELS_H
#define SPTX_LABELS_H

#include "lines.h"

/* Takes one label of a line. Returns 0, or -1 to stop. */
typedef int labels_take(void *user, const struct token *name, const struct token *label);

/* Reads the file, whose fields are parted as the look at it says (field_file.h). Where a header names the column of labels, it
 * is the only one. Numbers with blanks between are a label each. Fields that say train, val, test or - are no labels: they are
 * the usual split of many data sets. Returns 0, or -1 after fail() or as soon as take() returns -1. */
int labels_read(const char *path, labels_take *take, void *user);

#endif
