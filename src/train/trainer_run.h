/* trainer_run: takes the run directory for training, and decides what happens to the run that it holds. If ranks train together,
 * the first one takes it and tells the others, which write nothing there. */
#ifndef SPTX_TRAINER_RUN_H
#define SPTX_TRAINER_RUN_H

#include "run/run_directory.h"
#include "run/state.h"
#include "trainer.h"

struct trainer_run {
    struct run_directory run; /* of the first rank; of the others the paths alone */
    char *checkpoint;         /* to go on from, owned; NULL: the run begins anew */
    struct run_state older;   /* of that checkpoint */
    uint64_t kept;            /* run.keep of the process that wrote it */
};

/* Takes config->run_dir, which becomes the directory's real path, and settles keys as the run there has them. Refuses a run that
 * is there and was not asked for: -1 after fail(), on every rank. The caller closes in any case. */
int trainer_run_open(struct trainer_run *claim, struct config *config, const struct trainer_options *options);
void trainer_run_close(struct trainer_run *claim);

#endif
