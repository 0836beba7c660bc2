/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy      weights and optimizer state of the target rows
 *                         context.npy     weights and optimizer state of the context rows
 *                         known.npy       with train.freeze = known: the rows that do not change (frozen.h)
 *                         state.ini       progress of the run; size and checksum of each file (state.h)
 *   RUN/latest                            the name of the newest checkpoint, for people and scripts
 *
 * A checkpoint is written under a temporary name, synced and renamed. Loading first verifies sizes and checksums. It finds the
 * newest checkpoint by the names of the directories, not by `latest`, which is written last: after a kill it may name an older
 * checkpoint.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "frozen.h"
#include "rows/table.h"
#include "state.h"

/* The data of a checkpoint, for writing it. */
struct checkpoint {
    struct table *target, *context;
    struct progress_state progress;
    struct corpus_identity corpus;
    const struct frozen *frozen; /* NULL: no row is frozen */
};

/* Writes checkpoint-<step>, points `latest` at it, and removes all checkpoints but the newest `keep` and the best so far
 * (progress.best_step). All ranks of the tables call it together; `run` is the first rank's. Returns 0; -1 after fail();
 * TABLE_NOT_FINITE after fail() if a table holds infinity or NaN. After a failure the older checkpoints are unchanged. */
int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep);

/* Returns the path of the newest whole checkpoint of RUN, for the caller to free, and stores its state in *state unless that is
 * NULL. Skips checkpoints that are not whole, with a warning. Returns NULL with *found = 0 if no checkpoint is whole; NULL with
 * *found = -1 after fail(). */
char *checkpoint_newest(const char *run, struct run_state *state, int *found);

/* Counts the checkpoints in RUN, whole or not. */
int checkpoint_count(const char *run, uint64_t *count);

/* Ends a run at its best checkpoint, that of step `step`: records the end in the checkpoint's state.ini and in `latest`, and
 * removes later checkpoints. `ended`: the last step of the run, if no epochs can be added later (state.h); otherwise 0. If the
 * process is killed meanwhile, --resume ends the run with the same result. */
int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended);

/* Writes `progress` to the state.ini of the checkpoint of step progress->step. */
int checkpoint_amend(const char *run, const struct progress_state *progress);

/* Writes this checkpoint's name to `latest` of RUN. A killed process may have left the name of an older one. */
int checkpoint_name_latest(const char *run, const char *checkpoint);

/* Finishes the removals that a killed process may have left undone after it wrote this checkpoint (of step `step`): removes
 * partial checkpoints, checkpoints that were moved aside, and all but the newest `keep` and the one of step `best`. Warns if it
 * cannot. */
void checkpoint_remove_older(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best);

/* Verifies state.ini, and the sizes and checksums of the files of one checkpoint directory. Stores the state in *state, if that
 * is not NULL. */
int checkpoint_verify(const char *directory, struct run_state *state);

/* Finds the directories of RUN, which may be a run directory or one checkpoint in it. Sets *checkpoint to the checkpoint
 * directory and *run_directory to the directory of config.ini and vocab.tsv, both for the caller to free. Checks only that they
 * exist. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

#endif
