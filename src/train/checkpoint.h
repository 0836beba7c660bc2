/* checkpoint: the durable state of a run.
 *
 *   RUN/checkpoint-<step>/target.npy context.npy state.ini      written beside, synced, renamed, its directory synced
 *   RUN/latest                                                  the name of the newest good one
 *
 * Every draw is a function of the position, so the state is small: where the run stands. state.ini holds it with the
 * checksum (XXH64) and size of each table and of the vocabulary. Loading verifies before it believes.
 */
#ifndef SPTX_CHECKPOINT_H
#define SPTX_CHECKPOINT_H

#include "rows/table.h"

struct progress_state {
    uint64_t step;     /* batches done (batch), or work pieces done (hogwild) */
    uint64_t epoch;    /* the epoch that goes on */
    uint64_t position; /* examples of it that are done */
    uint64_t words, pairs; /* trained in the whole run */
    double seconds;    /* spent training, earlier parts of the run counted */
    int finished;      /* 1: the run ended as configured */
};

/* Writes checkpoint-<step>, points `latest` at it, removes all but the newest `keep`. A failure leaves the older ones. */
int checkpoint_write(const char *run, struct table *target, struct table *context, const struct progress_state *state,
                     uint64_t vocab_fingerprint, uint64_t keep);

/* The newest checkpoint of RUN that verifies (a broken one is warned about and passed over), in memory that the caller
 * frees; NULL with *found = 0 where there is none, with *found = -1 after fail(). `state` is read from it. */
char *checkpoint_newest(const char *run, struct progress_state *state, uint64_t *vocab_fingerprint, int *found);

/* Checks state.ini, sizes and checksums of one checkpoint directory. */
int checkpoint_verify(const char *directory, struct progress_state *state, uint64_t *vocab_fingerprint);

/* RUN as commands name it (a run directory or one checkpoint in it): its checkpoint directory and the directory that
 * holds config.ini and vocab.tsv, both for the caller to free. Verifies nothing but that they are there. */
int checkpoint_locate(const char *run, char **checkpoint, char **run_directory);

#endif
