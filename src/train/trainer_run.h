/* trainer_run: takes the run directory for training, and decides what happens to a run that is already there. If several ranks
 * train together, the first rank takes the directory and tells the others; they write nothing there. */
#ifndef SPTX_TRAINER_RUN_H
#define SPTX_TRAINER_RUN_H

#include "run/run_directory.h"
#include "run/state.h"
#include "trainer.h"

/* The run directory that the trainer has taken, and the run that was found there. */
struct trainer_run {
    struct run_directory run; /* on the first rank, the open directory; on other ranks, only its paths are set */
    char *checkpoint;         /* path of the checkpoint to resume from, owned; NULL: a new run */
    struct run_state older;   /* state of that checkpoint */
    uint64_t kept;            /* value of run.keep in the process that wrote that checkpoint */
};

/* Takes config->run_dir and replaces it by its real path. If it resumes a run, sets the keys that depend on the machine to that
 * run's values. Returns -1 after fail(), on every rank, also if a run is there and neither --resume nor --overwrite was asked
 * for. Call trainer_run_close() in any case. */
int trainer_run_open(struct trainer_run *claim, struct config *config, const struct trainer_options *options);
void trainer_run_close(struct trainer_run *claim);

#endif
