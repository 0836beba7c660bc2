/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy      weights and optimizer state of the targets
 *                         context.npy     the same of the contexts
 *                         known.npy       where train.freeze = known: the rows that do not change (frozen.h)
 *                         state.ini       where the run stands; size and checksum of each file (state.h)
 *   RUN/latest                            the name of the newest checkpoint, for people and scripts
 *
 * A checkpoint is written under another name, synced and renamed. Loading verifies sizes and checksums first, and looks at the
 * directories themselves: `latest` is written last, so after a kill it may name an older one.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "frozen.h"
#include "rows/table.h"
#include "state.h"

/* The parts that a checkpoint is written from. */
struct checkpoint {
    struct table *target, *context;
    struct progress_state progress;
    struct corpus_identity corpus;
    const struct frozen *frozen; /* NULL: no row is frozen */
};

/* Writes checkpoint-<step>, points `latest` at it, and removes all but the newest `keep` and the
 * best one so far (progress.best_step). All ranks of the tables call it together; the first one gives the directory. A
 * failure leaves the older ones: -1 after fail(), or TABLE_NOT_FINITE after fail() where the tables hold an infinite
 * value or NaN. */
int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep);

/* Returns the newest whole checkpoint of RUN, for the caller to free. Checkpoints that are not whole are skipped with a warning.
 * NULL with *found = 0 if none is whole, with *found = -1 after fail(). `state` may be NULL. */
char *checkpoint_newest(const char *run, struct run_state *state, int *found);

/* Counts the checkpoints in RUN, whole or not. */
int checkpoint_count(const char *run, uint64_t *count);

/* Ends a run at its best checkpoint, the one of `step`: writes that into its state.ini and into `latest`, and removes the later
 * checkpoints. `ended` is the step that the run came to, if no more epochs can be added (state.h), otherwise 0. After a kill
 * halfway, --resume ends the run with the same result. */
int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended);

/* Puts where the run stands into the state.ini of its checkpoint of that step. */
int checkpoint_amend(const char *run, const struct progress_state *progress);

/* Points `latest` of RUN at this checkpoint. A killed process may have left it at an older one. */
int checkpoint_name_latest(const char *run, const char *checkpoint);

/* Finishes the removals that the writer of this checkpoint, which is of `step`, makes at its end, in case it was killed: partial
 * checkpoints, checkpoints that were moved aside, and all but the newest `keep` and the one of step `best`. Warns if it cannot. */
void checkpoint_remove_older(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best);

/* Verifies state.ini, sizes and checksums of one checkpoint directory. `state` may be NULL. */
int checkpoint_verify(const char *directory, struct run_state *state);

/* Finds the directories that a command's RUN means, which is a run directory or one checkpoint in it: the checkpoint directory,
 * and the directory that holds config.ini and vocab.tsv, both for the caller to free. It checks only that they exist. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

#endif
