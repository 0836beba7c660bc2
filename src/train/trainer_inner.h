/* trainer_inner: the state of a run that the files of the trainer share. No other file includes it. */
#ifndef SPTX_TRAINER_INNER_H
#define SPTX_TRAINER_INNER_H

#include "trainer.h"

#include "trainer_run.h"
#include "run/checkpoint_due.h"
#include "run/metrics.h"
#include "session.h"
#include "steps.h"

struct trainer {
    struct config *config;
    const struct trainer_options *options;
    struct ranks *ranks; /* the options'; NULL: alone */
    int impatient;  /* 1: the held-out score has not become better for train.patience epochs */
    int heard_stop; /* the caller in this process asked for it: options->hear, or its flag */
    struct trainer_run claim;
    struct run_directory *run; /* the claim's; only the first rank writes there */
    struct session session;
    struct steps steps;
    struct corpus_identity corpus;
    double began, began_training, seconds_before;
    double beside; /* seconds since began_training that were not training: held-out loss, checkpoints */
    struct checkpoint_due due;
    struct metrics metrics;
};

/* Returns 1 where this process has the run directory, and writes there. */
int trainer_writes(const struct trainer *t);

uint64_t trainer_checkpoint_bytes(const struct trainer *t); /* of its files */
int trainer_start_due(struct trainer *t);
int trainer_write_checkpoint(struct trainer *t);

/* ---- trainer_patience.c ---- */

/* Returns 1 where the run is judged after each epoch (train.patience). */
int trainer_is_judged(const struct trainer *t);
/* Writes a checkpoint after an epoch, finds its held-out score, and sets t->impatient. The held-out loss is measured already. */
int trainer_judge_epoch(struct trainer *t);
/* Judges an epoch's checkpoint that a killed run left without a score. */
int trainer_judge_left(struct trainer *t);
/* Ends a run that was judged after each epoch: only its best checkpoint stays. */
int trainer_end_at_best(struct trainer *t);
/* Finds the score of a run that has ended without patience. */
int trainer_judge_end(struct trainer *t);

/* Measures the loss of the examples that are held out (train.held_out), if any are. No batch is in flight. */
int trainer_measure_held_out(struct trainer *t);
struct standing trainer_standing(const struct trainer *t, double lr);

/* Takes the steps' results, and acts between the steps. */
struct steps_watch trainer_watch(struct trainer *t);

#endif
