/* trainer: a whole run, from the corpus to the last checkpoint. */
#ifndef SPTX_TRAINER_H
#define SPTX_TRAINER_H

#include "config.h"

struct trainer_options {
    int resume;
    int overwrite;     /* an older run goes when the new one has its first checkpoint */
    int overwrite_now; /* with overwrite: it goes before training begins */
};

/* 0: finished; -1 after fail(), also where a signal ended it (its sentence says where the checkpoint is). */
int trainer_run(struct config *config, const struct trainer_options *options);

#endif
