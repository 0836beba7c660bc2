/* health: finds out whether training went wrong, because all rows point the same way or because weights have diverged. */
#ifndef SPTX_HEALTH_H
#define SPTX_HEALTH_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"

/* told_apart: checks that the rows of a trained table differ. If training has moved all vectors the same way, the cosine of any
 * two of them is near 1, and nearest rows mean nothing. */

/* Sets *mean to the mean cosine of all pairs of at most 64 rows, evenly spaced in first .. end - 1; NAN for fewer than two rows
 * or fewer than 16 columns. If there are several ranks, only this rank's columns count. No batch may be in flight. Returns 0, or
 * -1 after fail(). */
int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean);

/* Warns if the mean cosine is above 0.9, and names keys that help. `what`: the word for the rows in the warning, such as
 * "words". */
void told_apart_warn(const struct config *config, double mean, const char *what);

/* diverged: the error message of a run whose weights have diverged. */

/* Calls fail() with a message that says that the weights have diverged at `step`, how that was seen (`what`: "the loss is
 * infinite"), which keys to change, and which checkpoint is the last good one. It replaces a message that is already set. All
 * ranks call it together, since the first rank may need long to look for checkpoints. Returns -1. */
int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what);

#endif
