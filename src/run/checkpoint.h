/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy      weights and optimizer state of the target rows
 *                         context.npy     weights and optimizer state of the context rows
 *                         known.npy       with train.freeze = known: the rows that do not change (model_files.h)
 *                         state.ini       progress of the run; size and checksum of each file (state.h)
 *   RUN/latest                            the name of the newest checkpoint, for people and scripts
 *
 * A checkpoint is written under a temporary name, synced and renamed. Loading first verifies sizes and checksums. It finds the
 * newest checkpoint by the names of the directories, not by `latest`, which is written last: after a kill it may name an older
 * checkpoint.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "config/config.h"
#include "model_files.h"
#include "rows/table.h"
#include "state.h"

#include <stdint.h>

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

/* checkpoints: the checkpoint directories of a run: their names, which of them this program has made, how they are removed.
 *
 *   RUN/checkpoint-<step>             a checkpoint
 *   RUN/checkpoint-<step>.replaced    an older checkpoint of the same step, moved aside while a new one replaces it
 *   RUN/checkpoint-<step>.partial     a checkpoint that is being written, or that a killed process left
 *
 * Other names (checkpoint-best, checkpoint-007, checkpoint-notes.txt) are ignored. A directory with one of the names above counts
 * as made by this program if its state.ini begins like one that this program writes, or, if it is partial, if it holds only files
 * of a checkpoint. No other directory is ever removed, and in these directories only the files of a checkpoint are.
 */

enum { CHECKPOINT_NAME = 64 }; /* bytes of the longest name, counting the NUL */
enum checkpoint_kind { CHECKPOINT_IN_PLACE, CHECKPOINT_ASIDE, CHECKPOINT_PARTIAL };

/* One directory of a run that has a checkpoint's name. */
struct checkpoint_entry {
    char *path; /* RUN/name, owned */
    uint64_t step;
    enum checkpoint_kind kind;
    int own;    /* 1: this program has written the directory */
    int linked; /* 1: a symbolic link to a checkpoint: it is read as a checkpoint, and may be renamed, but is never removed */
};
/* All directories of a run that have a checkpoint's name. */
struct checkpoints {
    struct checkpoint_entry *list; /* sorted by step, the highest first; of a step, first the checkpoint, then the one moved
                                    * aside, then the partial one */
    uint64_t count, capacity;
};

/* Lists the directories in RUN, and the links to directories, that have the name of a checkpoint. Returns -1 after fail(). */
int checkpoints_find(const char *run, struct checkpoints *all);
void checkpoints_release(struct checkpoints *all);

/* Returns 1 if this is the name of a file of a checkpoint. */
int checkpoint_holds(const char *name);

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind);

/* Returns how many checkpoints of kinds up to `most` RUN has, whole or not; -1 after fail(). LINKED: those that this program has written,
 * and links to such; OWN: only those that it has written. */
enum checkpoints_of { CHECKPOINTS_ALL, CHECKPOINTS_LINKED, CHECKPOINTS_OWN };
int64_t checkpoint_count(const char *run, enum checkpoint_kind most, enum checkpoints_of of);

/* Removes a checkpoint of this program; it is no error if it is gone. Files in it that are not files of a checkpoint stay, with
 * a warning. */
int checkpoint_remove(const struct checkpoint_entry *one);
/* Removes all checkpoints of RUN. Renames links to checkpoints to PATH.kept-1, with a warning. */
int checkpoints_remove(const char *run);

/* If something that this program has not made has the path `path`, renames it to PATH.kept-1, with a warning. */
int checkpoint_make_way(const char *path, enum checkpoint_kind kind);

/* checkpoint_due: decides when a run writes a checkpoint before its end, by run.checkpoint_every. */

/* When a run has written its last checkpoint, and the numbers that decide when the next one is due. */
struct checkpoint_due {
    const struct config *config;
    const char *run;    /* directory of the checkpoints; owned by the caller */
    uint64_t bytes;     /* bytes of a checkpoint */
    uint64_t present;   /* number of checkpoints that a resumed run has found */
    double last;        /* time of the last checkpoint, or of the beginning of training, in seconds (progress_now()) */
    double took;        /* seconds that the last checkpoint took to write; 0: none has been written */
    uint64_t last_step; /* step of the last checkpoint, or the step at which this process began */
    int without;        /* 1: with run.checkpoint_every = auto, the disk has too little space and a warning was given; only the
                         * last checkpoint is written */
};

void checkpoint_due_start(struct checkpoint_due *due, const struct config *config, const char *run, uint64_t step, double now);
/* Calls about a checkpoint that is written while training goes on: checkpoint_due_begun() when it begins, at `step`;
 * checkpoint_due_busy() while it is being written, so that no other is due by the clock; checkpoint_due_written() when it is
 * written, after `took` seconds. If training waits for the checkpoint, only the last of these is called. */
void checkpoint_due_begun(struct checkpoint_due *due, uint64_t step, double now);
void checkpoint_due_busy(struct checkpoint_due *due, double now);
void checkpoint_due_written(struct checkpoint_due *due, uint64_t step, double took, double now);

/* Returns 1 if a checkpoint is due at this step. `epoch_ended`: 1 if the step ended an epoch. */
int checkpoint_due_now(struct checkpoint_due *due, uint64_t step, int epoch_ended, double now);

#endif
