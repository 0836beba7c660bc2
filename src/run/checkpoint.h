/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy context.npy state.ini      written beside, synced, renamed, its directory synced; with
 *                         known.npy (frozen.h) where train.freeze = known
 *   RUN/latest                                                  the name of the newest, for people and scripts
 *
 * state.ini (state.h) holds where the run stands, and size and checksum of each file. Loading verifies before it believes,
 * and goes by what is there: `latest` is written last, so after a kill it may name an older one.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "frozen.h"
#include "rows/table.h"
#include "state.h"

/* What a checkpoint holds. */
struct checkpoint {
    struct table *target, *context;
    struct progress_state progress;
    struct corpus_identity corpus;
    const struct frozen *frozen; /* NULL: no row is */
};

/* Writes checkpoint-<step>, points `latest` at it, removes all but the newest `keep`; by all ranks of the tables together, in
 * the directory that the first one gives. A failure leaves the older ones: -1 after fail(), or TABLE_NOT_FINITE after fail()
 * where the tables hold what is no number. */
int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep);

/* The newest checkpoint of RUN that is whole (others are warned about and passed over), in memory that the caller frees;
 * NULL with *found = 0 where there is none, with *found = -1 after fail(). `state` may be NULL. */
char *checkpoint_newest(const char *run, struct run_state *state, int *found);

/* How many checkpoints lie in RUN, whole or not. */
int checkpoint_count(const char *run, uint64_t *count);

/* Points `latest` of RUN at this checkpoint of it, where it does not: a killed process leaves it at an older one. */
int checkpoint_name_latest(const char *run, const char *checkpoint);

/* Checks state.ini, sizes and checksums of one checkpoint directory. `state` may be NULL. */
int checkpoint_verify(const char *directory, struct run_state *state);

/* RUN as commands name it (a run directory or one checkpoint in it): its checkpoint directory and the directory that
 * holds config.ini and vocab.tsv, both for the caller to free. Verifies nothing but that they are there. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

#endif
