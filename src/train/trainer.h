/* trainer: a whole run, from the corpus to the last checkpoint. */
#ifndef SPTX_TRAINER_H
#define SPTX_TRAINER_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"
#include "sptx.h"

/* Measures how much the rows of a trained table differ: if any two have a cosine near 1, because training has moved all vectors the same way,
 * nearest rows mean nothing. *mean: mean cosine of all pairs of at most 64 rows, evenly spaced in first .. end - 1; NAN for fewer than two rows or
 * 16 columns. Each rank measures its own columns. No batch may be in flight. Returns 0, or -1 after fail(). */
int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean);

/* The score of a run on its held-out data. */
struct trainer_score {
    double score;   /* higher is better: recall@20, MRR, or minus the loss of a pair; NaN: nothing is held out */
    uint64_t lists; /* number of lists over which recall@20 was measured; 0: the score is a loss, or MRR */
};

struct gathered;
struct held_out;
struct model;
struct triples_job;
/* The wishes of the caller that are not in the config. */
struct trainer_options {
    struct gathered *data; /* the corpus, if the calling program has handed it over (corpus/numbered.h); NULL: the files of corpus.path */
    int resume;
    int overwrite;     /* 1: replace an older run in the directory; it is removed when the new run has a checkpoint */
    int overwrite_now; /* 1, with `overwrite`: remove the older run before training begins */
    struct ranks *ranks; /* the processes that train together, all of which call trainer_run(); NULL: only this one */
    int keep_signals;  /* 1: the caller handles SIGINT, SIGTERM and SIGHUP, and stops the run by a flag (base/interrupt.h); 0: the trainer itself
                        * writes a checkpoint and stops after such a signal */
    sptx_progress_fn *hear; /* called at each report; if it does not return 0, the trainer writes a checkpoint and stops. NULL: not called */
    void *user;
    /* Measures recall@20 of the held-out items (train.held_out_items) with a checkpoint of the run. It is a callback, since training does not
     * depend on searching finished runs; the function is in vectors/evaluate.h. */
    int (*judge)(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                 const struct config *config);
    /* Ranks the triples of train.evaluate: evaluate_live() of vectors/evaluate.h. found = NULL: only reads them. */
    int (*evaluate)(struct triples_job **kept, const struct model *model, double found[4]);
    struct trainer_score *score; /* where the score of the run's last checkpoint is stored; NULL: nowhere */
};

/* Trains a run. The first of several ranks owns the run directory. All ranks return the same: 0 if the run is finished; 1 if `hear` or the
 * thread's flag stopped it, after a checkpoint; -1 after fail(), also if a signal stopped it (the message names the checkpoint), or if the flag
 * did before there was anything to write (fail_stopped). */
int trainer_run(struct config *config, const struct trainer_options *options);

#endif
