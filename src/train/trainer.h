/* trainer: a whole run, from the corpus to the last checkpoint. */
#ifndef SPTX_TRAINER_H
#define SPTX_TRAINER_H

#include "config/config.h"
#include "kernels/ranks.h"

/* A caller in the same process is told this. */
struct trainer_report {
    uint64_t step, epoch;
    double done;     /* share of the run, 0..1 */
    double loss, lr; /* loss: an example's, since the last report */
    double words_per_second, pairs_per_second;
    double seconds;  /* spent training in the whole run */
    const char *line; /* the live line, as the terminal shows it */
};

/* A score on held-out data of a run. */
struct trainer_score {
    double score;   /* the higher the better: recall@20, or the loss of a pair with its sign turned; NaN: nothing is held out */
    uint64_t lists; /* that were asked; 0: it is a loss */
};

struct gathered;
struct held_out;
struct trainer_options {
    struct gathered *data; /* data that the caller has gathered (corpus/gathered.h); NULL: the files of corpus.path */
    int resume;
    int overwrite;     /* an older run goes when the new one has its first checkpoint */
    int overwrite_now; /* with overwrite: it goes before training begins */
    struct ranks *ranks; /* that train together, each calling trainer_run(); NULL: this process alone */
    int keep_signals;  /* 1: SIGINT, SIGTERM and SIGHUP stay the caller's, whose thread asks by a flag (base/interrupt.h);
                          0: they write a checkpoint and stop */
    /* Called at each report. If it returns another value than 0, the trainer writes a checkpoint and stops. NULL: not called. */
    int (*hear)(void *user, const struct trainer_report *report);
    void *user;
    /* Finds recall@20 of the items that a run leaves out (train.held_out_items), on one of its checkpoints: vectors/judge.h, for
     * training does not know how a finished run is asked. */
    int (*judge)(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                 const struct config *config);
    struct trainer_score *score; /* gets that of the run's last checkpoint; NULL: not asked for */
};

/* The first of several ranks owns the run directory. All ranks end with the same result:
 *
 * 0: finished; 1: `hear` or the thread's flag stopped it, and a checkpoint is written; -1 after fail(), also where a signal
 * ended it (its sentence says where the checkpoint is) or the flag before there was anything to write (fail_stopped). */
int trainer_run(struct config *config, const struct trainer_options *options);

#endif
