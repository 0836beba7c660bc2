/* trainer: a whole run, from the corpus to the last checkpoint. */
#ifndef SPTX_TRAINER_H
#define SPTX_TRAINER_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"
#include "sptx.h"

/* Measures how much the rows of a trained table differ. If training has moved all vectors the same way, the cosine of any two of them is
 * near 1, and nearest rows mean nothing. Sets *mean to the mean cosine of all pairs of at most 64 rows, evenly spaced in
 * first .. end - 1; NAN for fewer than two rows or fewer than 16 columns. Of several ranks, each measures its own columns. No batch may be
 * in flight. Returns 0, or -1 after fail(). */
int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean);

/* The score of a run on its held-out data. */
struct trainer_score {
    double score;   /* higher is better: recall@20, or minus the loss of a pair; NaN: no data is held out */
    uint64_t lists; /* number of lists on which recall@20 was measured; 0: the score is a loss */
};

struct gathered;
struct held_out;
/* Wishes of the caller that the config does not contain. */
struct trainer_options {
    struct gathered *data; /* the corpus, if the caller has gathered it (corpus/numbered.h); NULL: the files of corpus.path */
    int resume;
    int overwrite;     /* 1: an older run in the directory is replaced; it is removed when the new run has a checkpoint */
    int overwrite_now; /* 1, with `overwrite`: the older run is removed before training begins */
    struct ranks *ranks; /* the processes that train together, each of which calls trainer_run(); NULL: this process alone */
    int keep_signals;  /* 1: the caller handles SIGINT, SIGTERM and SIGHUP, and stops the run by a flag (base/interrupt.h); 0:
                        * after such a signal the trainer writes a checkpoint and stops */
    sptx_progress_fn *hear; /* called at each report. If it returns a nonzero value, the trainer writes a checkpoint and stops. NULL:
                             * not called */
    void *user;
    /* Measures recall@20 of the held-out items (train.held_out_items) on a checkpoint of the run. A callback, since training
     * does not depend on how a finished run is searched; vectors/evaluate.h has the function. */
    int (*judge)(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                 const struct config *config);
    struct trainer_score *score; /* the score of the run's last checkpoint is stored here; NULL: it is not stored */
};

/* Trains a run. The first of several ranks owns the run directory. All ranks return the same result: 0: the run is finished; 1:
 * `hear` or the thread's flag stopped it, and a checkpoint is written; -1 after fail(), also if a signal stopped it (the message
 * says where the checkpoint is), or if the flag stopped it before there was anything to write (fail_stopped). */
int trainer_run(struct config *config, const struct trainer_options *options);

#endif
