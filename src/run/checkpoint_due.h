/* checkpoint_due: decides when a run writes a checkpoint before its end, by run.checkpoint_every. */
#ifndef SPTX_CHECKPOINT_DUE_H
#define SPTX_CHECKPOINT_DUE_H

#include "config/config.h"

struct checkpoint_due {
    const struct config *config;
    const char *run;    /* the directory that checkpoints go to; the caller's */
    uint64_t bytes;     /* bytes that a checkpoint takes */
    uint64_t present;   /* checkpoints that a run which goes on has there already */
    double last;        /* when the last one was written, or training began; seconds by progress_now() */
    double took;        /* seconds that writing it took; 0: none was written yet */
    uint64_t last_step; /* the step of the last checkpoint, or the one that the run begins with */
    int without;        /* 1: run.checkpoint_every = auto, the disk has no space for it, and a warning has said so */
};

void checkpoint_due_start(struct checkpoint_due *due, const struct config *config, const char *run, uint64_t step, double now);
void checkpoint_due_written(struct checkpoint_due *due, uint64_t step, double took, double now);

/* Returns 1 where a checkpoint is due at this step. `epoch_ended`: the step was the last of an epoch. */
int checkpoint_due_now(struct checkpoint_due *due, uint64_t step, int epoch_ended, double now);

#endif
