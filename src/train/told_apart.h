/* told_apart: checks that the rows of a trained table differ. If training has moved all vectors the same way, the cosine of any
 * two of them is near 1, and nearest rows mean nothing. */
#ifndef SPTX_TOLD_APART_H
#define SPTX_TOLD_APART_H

#include "config/config.h"
#include "rows/table.h"

/* Sets *mean to the mean cosine of all pairs of at most 64 rows, evenly spaced in first .. end - 1; NAN for fewer than two rows
 * or fewer than 16 columns. If there are several ranks, only this rank's columns count. No batch may be in flight. Returns 0, or
 * -1 after fail(). */
int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean);

/* Warns if the mean cosine is above 0.9, and names keys that help. `what`: the word for the rows in the warning, such as
 * "words". */
void told_apart_warn(const struct config *config, double mean, const char *what);

#endif
