/* told_apart: whether the rows of a trained table differ. Vectors that training has all moved the same way have cosines near 1 with
 * one another, and their nearest rows mean nothing.
 */
#ifndef SPTX_TOLD_APART_H
#define SPTX_TOLD_APART_H

#include "config/config.h"
#include "rows/table.h"

/* Finds the mean cosine of pairs of rows among [first, end), of at most 64 rows that lie evenly in that range; where ranks share out
 * the columns, of this rank's columns. No batch is in flight. NAN for fewer than two rows. Returns 0, or -1 after fail(). */
int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean);

/* Warns where a mean cosine is above 0.9, and names the keys that help. `what` is what a row stands for: "words". */
void told_apart_warn(const struct config *config, double mean, const char *what);

#endif
