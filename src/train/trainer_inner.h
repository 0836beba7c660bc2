/* trainer_inner: a run as the files of the trainer share it. For nobody else. */
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

/* Takes the steps' results, and acts between the steps. */
struct steps_watch trainer_watch(struct trainer *t);

#endif
