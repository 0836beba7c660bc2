/* checkpoint_due: decides when a run writes a checkpoint before its end, by run.checkpoint_every. */
#ifndef SPTX_CHECKPOINT_DUE_H
#define SPTX_CHECKPOINT_DUE_H

#include "config/config.h"

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
