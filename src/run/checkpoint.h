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

/* Returns the newest whole checkpoint of RUN, for the caller to free; others are warned about and passed over. NULL
 * with *found = 0 where there is none, with *found = -1 after fail(). `state` may be NULL. */
char *checkpoint_newest(const char *run, struct run_state *state, int *found);

/* Counts the checkpoints in RUN, whole or not. */
int checkpoint_count(const char *run, uint64_t *count);

/* Ends a run at its best checkpoint, that of `step`: its state.ini says so, `latest` names it, and the later checkpoints go.
 * `ended` is the step that the run came to, where no more epochs can be added (state.h), or 0 where they can. A kill on the way
 * leaves a run that --resume ends in the same way. */
int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended);

/* Puts where the run stands into the state.ini of its checkpoint of that step. */
int checkpoint_amend(const char *run, const struct progress_state *progress);

/* Points `latest` of RUN at this checkpoint. A killed process may have left it at an older one. */
int checkpoint_name_latest(const char *run, const char *checkpoint);

/* Removes what the writer of this checkpoint, which is of `step`, removes at its end, in case it was killed before:
 * partial checkpoints, those moved aside, and all but the newest `keep` and the one of step `best`. Warns where it cannot. */
void checkpoint_remove_older(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best);

/* Verifies state.ini, sizes and checksums of one checkpoint directory. `state` may be NULL. */
int checkpoint_verify(const char *directory, struct run_state *state);

/* Finds what a command's RUN stands for, which is a run directory or one checkpoint in it: the checkpoint directory,
 * and the directory that holds config.ini and vocab.tsv, both for the caller to free. Verifies only that they are
 * there. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

#endif
