/* state: state.ini of a checkpoint: how far the run is, what it trains on, and what the checkpoint's files must be.
 *
 * Every draw is a function of the position, so the file is small. It ends with its own checksum. Keys that this
 * version does not know are skipped. Numbers that few runs have are written only where they are not 0.
 */
#ifndef SPTX_STATE_H
#define SPTX_STATE_H

#include <stdint.h>

/* How far a run is. */
struct progress_state {
    uint64_t step;     /* batches done; in lock-free training, positions done / train.batch */
    uint64_t epoch;    /* the epoch that is under way */
    uint64_t position; /* examples of it that are done; fewer than an epoch has */
    uint64_t words, pairs; /* trained in the whole run */
    double seconds;    /* seconds of training, those before a resume included */
    int finished;      /* 1: the run ended as configured */
    /* A run with train.patience. All zeros otherwise. */
    double best;           /* the best held-out score so far; the higher the better */
    uint64_t best_step;    /* its checkpoint's; 0: none yet */
    uint64_t worse_epochs; /* epochs since then, none of which was better */
    uint64_t judged_step;  /* the last step that has a score */
    uint64_t ended_step;   /* the last step of the whole run, of which this checkpoint is the best; 0: the run may go on */
};

/* The corpus of a run, by content. A run that goes on must find the same, since its position counts examples of this
 * corpus. */
struct corpus_identity {
    uint64_t vocab;  /* XXH3 of vocab.tsv's bytes: words, counts and their order */
    uint64_t stream; /* checksum of the id stream: ids, and where sentences begin */
    uint64_t tree;   /* huffman_fingerprint() with train.loss = hierarchical; 0 otherwise */
};

/* A file of the checkpoint: its size, and XXH64 of all its bytes. */
struct table_file {
    uint64_t bytes, xxh64;
};

struct run_state {
    struct progress_state progress;
    struct corpus_identity corpus;
    struct table_file target, context;
    uint64_t target_first;   /* the row that target.npy begins with (table_spec.first_row) */
    struct table_file known; /* known.npy (frozen.h); 0 bytes: there is none */
};

/* Writes DIRECTORY/state.ini atomically. */
int state_write(const char *directory, const struct run_state *state);

/* Returns 1 where DIRECTORY/state.ini begins as this program's do, whole or not; 0 where not; -1 after fail() where it
 * cannot be read. */
int state_is_own(const char *directory);

/* Reads and verifies it. Returns 0, or -1 after fail(). *broken: 1 where the file is certainly missing or damaged, 0
 * where the system could not read it, which may pass. */
int state_read(const char *directory, struct run_state *state, int *broken);

#endif
