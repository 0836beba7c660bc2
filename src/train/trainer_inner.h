/* trainer_inner: the state of a run that the trainer*.c files share. No other file includes it. */
#ifndef SPTX_TRAINER_INNER_H
#define SPTX_TRAINER_INNER_H

#include "trainer.h"

#include "base/pool.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "session.h"
#include "steps.h"
#include "trainer_run.h"

/* A checkpoint that is written while training goes on (trainer_behind.c). */
struct trainer_behind {
    struct behind work;
    char *place; /* the directory in which it is written; owned; NULL: none is being written */
    struct table target, context; /* the tables as they were when it began */
    struct checkpoint what;
    uint64_t keep;
    double began;
};

/* A run that is being trained by this process. */
struct trainer {
    struct config *config;
    const struct trainer_options *options;
    struct ranks *ranks; /* options->ranks; NULL: this process alone */
    int impatient;  /* 1: the held-out score has not improved for train.patience epochs */
    int heard_stop; /* 1: the caller in this process asked to stop, by options->hear or by its flag */
    struct trainer_run claim;
    struct run_directory *run; /* points into `claim`; only the first rank writes there */
    struct session session;
    struct steps steps;
    struct corpus_identity corpus;
    double began, began_training, seconds_before;
    double beside; /* seconds, since began_training, of work that is not training: held-out losses and checkpoints */
    struct checkpoint_due due;
    struct trainer_behind behind;
    char unwritten[4096]; /* why a checkpoint could not be written */
    struct metrics metrics;
};

/* Returns 1 if this process owns the run directory and writes there. */
int trainer_writes(const struct trainer *t);

uint64_t trainer_checkpoint_bytes(const struct trainer *t); /* returns the bytes of the files of a checkpoint */
int trainer_start_due(struct trainer *t);
/* Write a checkpoint of this step, and wait until it is written. If it cannot be written, for example on a full disk,
 * trainer_write_checkpoint() warns and returns NOT_WRITTEN: older checkpoints stay, and training goes on. trainer_write_last(), at the
 * end of a run, tries again for run.retry_seconds. Both return 0, or -1 after fail(). */
int trainer_write_checkpoint(struct trainer *t);
int trainer_write_last(struct trainer *t);
enum { NOT_WRITTEN = 1 };
/* For a checkpoint that failed on all ranks: trainer_forgive() moves the reason to t->unwritten, so that the ranks can go on;
 * trainer_pass_over() warns of it. Both return NOT_WRITTEN. */
int trainer_forgive(struct trainer *t);
int trainer_pass_over(struct trainer *t, uint64_t step);
int trainer_ready_checkpoint(struct trainer *t); /* makes the tables and the state ready for a checkpoint of this step */
int trainer_follow(struct trainer *t); /* if the run directory was moved, continues in its new place; if it was removed, fails */
int trainer_settle(struct trainer *t); /* called after each checkpoint: lets a new run replace the older one */

/* ---- trainer_behind.c ---- */

/* trainer_begin_checkpoint() begins a checkpoint that is written while training goes on, or writes it at once if the plan has no
 * memory for that. trainer_end_checkpoint() waits until it is written, and warns if it could not be written; trainer_leave_checkpoint()
 * only waits. Both do nothing if none is being written. */
int trainer_begin_checkpoint(struct trainer *t);
int trainer_is_writing(const struct trainer *t);
int trainer_end_checkpoint(struct trainer *t);
void trainer_leave_checkpoint(struct trainer *t);

/* ---- trainer_patience.c ---- */

/* Returns 1 if the run is scored after each epoch (train.patience). */
int trainer_is_judged(const struct trainer *t);
/* Writes a checkpoint after an epoch, computes its held-out score, and sets t->impatient. If the score is a loss, it has been
 * measured before. */
int trainer_judge_epoch(struct trainer *t);
/* Scores the checkpoint of an epoch if a process wrote it, but was killed before it scored it. */
int trainer_judge_left(struct trainer *t);
/* Ends a run that was scored after each epoch: its best checkpoint becomes the result, and later checkpoints are removed. */
int trainer_end_at_best(struct trainer *t);
/* Computes the score of a finished run without train.patience. */
int trainer_judge_end(struct trainer *t);

/* Measures the loss of the held-out examples (train.held_out), if there are any. No batch may be in flight. */
int trainer_measure_held_out(struct trainer *t);
struct standing trainer_standing(const struct trainer *t, double lr);

/* Returns the callbacks that take the steps' results and do the work between steps. */
struct steps_watch trainer_watch(struct trainer *t);

#endif
