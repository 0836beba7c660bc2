/* state: state.ini of a checkpoint: the progress of the run, fingerprints of its corpus, sizes and checksums of the other files.
 *
 * The file is small: no state of a random generator is needed, since every draw is a function of the position. It ends with its own
 * checksum. Keys that this version does not know are skipped. Numbers that few runs need are written only if they are not 0.
 */
#ifndef SPTX_STATE_H
#define SPTX_STATE_H

#include <stdint.h>

/* How far a run has come. */
struct progress_state {
    uint64_t step;     /* number of batches trained; in lock-free training, number of positions trained / train.batch */
    uint64_t epoch;    /* number of the epoch that is being trained, from 0 */
    uint64_t position; /* number of examples of this epoch that are trained; fewer than the epoch has */
    uint64_t words, pairs; /* numbers of words and pairs trained in the whole run */
    double seconds;    /* seconds of training in the whole run, including the time before it was resumed */
    int finished;      /* 1: the run ended as configured */
    /* The following are set by a run with train.patience, and 0 otherwise. */
    double best;           /* best held-out score so far (higher is better) */
    uint64_t best_step;    /* step of the checkpoint with that score; 0: none yet */
    uint64_t worse_epochs; /* number of epochs after that one; none of them had a better score */
    uint64_t judged_step;  /* last step whose held-out score was measured */
    uint64_t ended_step;   /* last step of the whole run, if this checkpoint is the best of an ended run; 0: the run may be
                            * resumed */
};

/* Fingerprints of a run's corpus. If the run is resumed, the corpus must have the same ones, since the position counts examples
 * of this corpus. */
struct corpus_identity {
    uint64_t vocab;  /* XXH3 of vocab.tsv's bytes: words, counts and their order */
    uint64_t stream; /* checksum of the id stream: ids, and where sentences begin */
    uint64_t tree;   /* huffman_fingerprint() with train.loss = hierarchical; 0 otherwise */
};

/* A file of a checkpoint: its size, and the XXH64 of all its bytes. */
struct table_file {
    uint64_t bytes, xxh64;
};

/* The contents of a state.ini. */
struct run_state {
    struct progress_state progress;
    struct corpus_identity corpus;
    struct table_file target, context;
    uint64_t target_first;   /* id of the first row in target.npy (table_spec.first_row) */
    struct table_file known; /* known.npy (frozen.h); its size is 0 if there is no such file */
};

/* Writes DIRECTORY/state.ini atomically. */
int state_write(const char *directory, const struct run_state *state);

/* Returns 1 if DIRECTORY/state.ini begins like a file that this program writes, whole or not; 0 if not; -1 after fail() if it
 * cannot be read. */
int state_is_own(const char *directory);

/* Reads and verifies state.ini. Returns 0, or -1 after fail() with *broken = 1 if the file is certainly missing or damaged, 0 if
 * the system could not read it, which may be temporary. */
int state_read(const char *directory, struct run_state *state, int *broken);

#endif
