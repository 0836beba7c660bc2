/* copies: how several GPUs of one process train a model lock-free. Each has a copy of both tables and trains its own examples. From
 * time to time the copies are merged: then all have the same rows again.
 *
 *   base        a row as it was after the last merge
 *   change      row of a copy - base
 *   merged row  base + (sum of the changes, copy after copy) / (number of copies that changed it)
 *
 * Each group of four columns is merged by itself. Averaging divides the progress by the number of copies, so each copy trains with
 * the learning rate times that number. The tables have no optimizer state (sgd), and all rows are on the GPUs.
 */
#ifndef SPTX_KERNELS_COPIES_H
#define SPTX_KERNELS_COPIES_H

#include "portable.h"

enum { COPIES_MOST = 16, COPIES_GROUP = 4 };

/* Merges a group of columns. rows: [count x COPIES_GROUP] the group's values in each copy. base: the values after the last merge;
 * receives the merged values. */
FN void copies_merge_group(float base[COPIES_GROUP], const float *rows, unsigned count) {
    float sum[COPIES_GROUP] = {0};
    unsigned changed = 0;
    for (unsigned r = 0; r < count; r++) {
        const float *row = rows + r * COPIES_GROUP;
        int differs = 0;
        for (int j = 0; j < COPIES_GROUP; j++) differs |= row[j] != base[j];
        if (!differs) continue;
        changed++;
        for (int j = 0; j < COPIES_GROUP; j++) sum[j] += row[j] - base[j];
    }
    for (int j = 0; changed && j < COPIES_GROUP; j++) base[j] += sum[j] / (float)changed;
}

#endif
