/* frozen: which rows of a run's tables never change (train.freeze), one bit a row.
 *
 *   target, context   every row of that table
 *   known             the rows that came from train.from. No key tells which rows these are, and the source may be
 *                     gone when the run is resumed. Hence every checkpoint lists them, in known.npy
 *
 * known.npy is a NumPy file with the fields `target` and `context`, uint32, one record for 32 rows, the first row in the
 * lowest bit: numpy.unpackbits(a["target"].copy().view("u1"), bitorder="little")[:rows].
 */
#ifndef SPTX_FROZEN_H
#define SPTX_FROZEN_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"

#include <stdint.h>

/* The frozen rows of both tables of a run. */
struct frozen {
    uint64_t rows;
    int known;         /* 1: train.freeze = known */
    uint32_t *bits[2]; /* by enum table_side: [table_frozen_words(rows)] bit map of the rows, as table_options.frozen; NULL: the
                        * table has no frozen row */
};

/* Allocates and sets the bits that the config asks for, for tables of this number of rows. With train.freeze = known, no bit is
 * set yet. Returns 0, or -1 after fail(). Call frozen_release() in any case. */
int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows);
void frozen_release(struct frozen *frozen); /* may be called on a struct of zeros */

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row);

/* Writes known.npy of a checkpoint; *checksum receives XXH64 of the whole file. */
int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum);
int frozen_read(struct frozen *frozen, const char *path);
/* Reads known.npy of a checkpoint. All ranks call it together, since only the first one may see the file. */
int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks);

uint64_t frozen_bytes(const struct frozen *frozen); /* returns the most bytes that known.npy can have; 0: the run has no such
                                                     * file */

#endif
