/* frozen: which rows of a run's tables no step changes (train.freeze), as a bit a row.
 *
 *   target, context   every row of that table
 *   known             those that came from train.from. What came from there is told by no key, and the source may be gone when
 *                     the run goes on: every checkpoint has them, in known.npy
 *
 * known.npy is a NumPy file of fields `target` and `context`, uint32, a record for 32 rows, the first row in the lowest bit:
 * numpy.unpackbits(a["target"].copy().view("u1"), bitorder="little")[:rows].
 */
#ifndef SPTX_FROZEN_H
#define SPTX_FROZEN_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"

#include <stdint.h>

struct frozen {
    uint64_t rows;
    int known;         /* 1: of train.freeze = known */
    uint32_t *bits[2]; /* by enum table_side: [table_frozen_words(rows)], as table_options have them; NULL: no row of it */
};

/* What the config says of tables of so many rows; where it says `known`, none is yet. 0, or -1 after fail(); released in any
 * case. */
int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows);
void frozen_release(struct frozen *frozen); /* harmless on a zeroed one */

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row);

/* known.npy of a checkpoint; *checksum is XXH64 of the whole file. */
int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum);
int frozen_read(struct frozen *frozen, const char *path);
/* That of a checkpoint which the first rank alone may see; by all ranks together. */
int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks);

uint64_t frozen_bytes(const struct frozen *frozen); /* of that file at most; 0: there is none */

#endif
