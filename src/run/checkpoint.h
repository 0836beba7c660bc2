/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy      weights and optimizer state of the target rows
 *                         context.npy     weights and optimizer state of the context rows
 *                         known.npy       with train.freeze = known: the rows that do not change (model_files.h)
 *                         state.ini       progress of the run; size and checksum of each file (state.h)
 *   RUN/latest                            the name of the newest checkpoint, for people and scripts
 *
 * A checkpoint is written under a temporary name, synced and renamed. Sizes and checksums are verified before anything is loaded. The newest
 * checkpoint is found by the directories' names, not by `latest`, which may name an older one after a kill, since it is written last.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "config/config.h"
#include "model_files.h"
#include "rows/table.h"
#include "state.h"

#include <stdint.h>

/* The contents of a checkpoint that is to be written. */
struct checkpoint {
    struct table *target, *context;
    struct progress_state progress;
    struct corpus_identity corpus;
    const struct frozen *frozen; /* NULL: no row is frozen */
};

/* Writes checkpoint-<step>, points `latest` at it, and removes all checkpoints but the newest `keep` and the best one so far (progress.best_step).
 * All ranks call it together; `run` is the first rank's. Returns 0; -1 after fail(); TABLE_NOT_FINITE after fail() if a table contains infinity or
 * NaN. After a failure older checkpoints are unchanged. */
int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep);

/* Returns the path of the newest whole checkpoint of RUN, which the caller frees, and stores its state in *state (unless NULL). Skips others, with
 * a warning. Returns NULL with *found = 0 if none is whole; with *found = -1 after fail(). */
char *checkpoint_newest(const char *run, struct run_state *state, int *found);

/* Ends a run at its best checkpoint, of step `step`: records the end in that checkpoint's state.ini and in `latest`, and removes later
 * checkpoints. ended: the run's last step, if no epochs can be added later (state.h); otherwise 0. If the process is killed meanwhile, --resume
 * ends the run with the same result. */
int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended);

/* Writes `progress` to the state.ini of the checkpoint of step progress->step. Removes the former best one unless it is among the newest `keep`. */
int checkpoint_amend(const char *run, const struct progress_state *progress, uint64_t keep);

/* Writes the name of this checkpoint to `latest` of RUN, where a killed process may have left an older one's. */
int checkpoint_name_latest(const char *run, const char *checkpoint);

/* Removes what a killed process may have left after it wrote this checkpoint (of step `step`): partial checkpoints, those moved aside, and all but
 * the newest `keep` and the one of step `best`. Warns if that fails. */
void checkpoint_remove_older(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best);

/* Verifies state.ini of a checkpoint directory, and the sizes and checksums of its files. Stores the state in *state (unless NULL). */
int checkpoint_verify(const char *directory, struct run_state *state);

/* Finds the directories of RUN, a run directory or one checkpoint in it: *checkpoint, and *run_directory, where config.ini and vocab.tsv are; the
 * caller frees both. Checks only that they exist. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

/* checkpoints: the checkpoint directories of a run: their names, which of them this program has made, how they are removed.
 *
 *   RUN/checkpoint-<step>             a checkpoint
 *   RUN/checkpoint-<step>.replaced    an older checkpoint of the same step, moved aside while a new one replaces it
 *   RUN/checkpoint-<step>.partial     a checkpoint that is being written, or that a killed process left
 *
 * Other names (checkpoint-best, checkpoint-007, checkpoint-notes.txt) are ignored. A directory with one of these names is taken as this program's if
 * its state.ini begins like one that this program writes, or, if it is partial, if it contains only files of a checkpoint. No other directory is ever
 * removed, and of these only the files of a checkpoint.
 */

enum { CHECKPOINT_NAME = 64 }; /* bytes of the longest name, including the NUL */
enum checkpoint_kind { CHECKPOINT_IN_PLACE, CHECKPOINT_ASIDE, CHECKPOINT_PARTIAL };

/* A directory of a run whose name is a checkpoint's. */
struct checkpoint_entry {
    char *path; /* RUN/name, owned */
    uint64_t step;
    enum checkpoint_kind kind;
    int own;    /* 1: this program has written the directory */
    int linked; /* 1: a symbolic link to a checkpoint: read like a checkpoint, may be renamed, is never removed */
};
/* All directories of a run that are named as checkpoints are. */
struct checkpoints {
    struct checkpoint_entry *list; /* highest step first; within a step: the checkpoint, the one moved aside, the partial one */
    uint64_t count, capacity;
};

/* Lists the directories in RUN, and links to directories, whose names are those of checkpoints. Returns -1 after fail(). */
int checkpoints_find(const char *run, struct checkpoints *all);
void checkpoints_release(struct checkpoints *all);

/* Returns 1 if this is the name of a file of a checkpoint. */
int checkpoint_holds(const char *name);

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind);

/* Returns how many checkpoints of kinds up to `most` RUN contains, whole or not; -1 after fail(). LINKED: those written by this program, and links
 * to such; OWN: only the former. */
enum checkpoints_of { CHECKPOINTS_ALL, CHECKPOINTS_LINKED, CHECKPOINTS_OWN };
int64_t checkpoint_count(const char *run, enum checkpoint_kind most, enum checkpoints_of of);

/* Removes a checkpoint of this program, if it still exists. Foreign files in it stay, with a warning. */
int checkpoint_remove(const struct checkpoint_entry *one);
/* Removes all checkpoints of RUN, and renames links to checkpoints to PATH.kept-1, with a warning. */
int checkpoints_remove(const char *run);

/* If `path` exists but was not made by this program, renames it to PATH.kept-1, with a warning. */
int checkpoint_make_way(const char *path, enum checkpoint_kind kind);

/* checkpoint_due: decides when a run writes checkpoints before its end, by run.checkpoint_every. */

/* When the last checkpoint was written, and what decides when the next one is due. */
struct checkpoint_due {
    const struct config *config;
    const char *run;    /* directory of the checkpoints; owned by the caller */
    uint64_t bytes;     /* bytes of a checkpoint */
    uint64_t present;   /* number of checkpoints found by a resumed run */
    double last;        /* time (progress_now()) of the last checkpoint, or of the beginning of training */
    double took;        /* seconds that writing the last checkpoint took; 0: none was written */
    uint64_t last_step; /* step of the last checkpoint, or at which this process began */
    int without;        /* 1: with run.checkpoint_every = auto, the disk has too little space, which a warning has said; only the last checkpoint
                         * is written */
};

void checkpoint_due_start(struct checkpoint_due *due, const struct config *config, const char *run, uint64_t step, double now);
/* Calls for a checkpoint that is written while training continues: checkpoint_due_begun() when it begins, at `step`; checkpoint_due_busy() while
 * it is being written, so that no other becomes due by the clock; checkpoint_due_written() when it is written, after `took` seconds. If training
 * waits for checkpoints, only the last one is called. */
void checkpoint_due_begun(struct checkpoint_due *due, uint64_t step, double now);
void checkpoint_due_busy(struct checkpoint_due *due, double now);
void checkpoint_due_written(struct checkpoint_due *due, uint64_t step, double took, double now);

/* Returns 1 if a checkpoint is due at this step. epoch_ended = 1: an epoch has ended with it. */
int checkpoint_due_now(struct checkpoint_due *due, uint64_t step, int epoch_ended, double now);

#endif
