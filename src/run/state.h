/* state: how far a run is, and whether it may continue with these keys, this corpus and these ranks.
 *
 * state.ini of a checkpoint has the progress of the run, fingerprints of its corpus, sizes and checksums of the other files.
 *
 * The file is small: no state of a random generator is needed, since every draw is a function of the position. It ends with its own
 * checksum. Keys that this version does not know are skipped. Numbers that few runs need are written only if they are not 0.
 */
#ifndef SPTX_STATE_H
#define SPTX_STATE_H

#include "config/config.h"
#include "kernels/ranks.h"

#include <stdint.h>

/* How far a run has come. */
struct progress_state {
    uint64_t step;     /* number of batches trained; lock-free: number of positions trained / train.batch */
    uint64_t epoch;    /* number of the current epoch, from 0 */
    uint64_t position; /* number of examples of this epoch that have been trained: not yet all */
    uint64_t words, pairs; /* numbers of words and pairs trained in the whole run */
    double seconds;    /* seconds of training in the whole run, before and after resuming */
    int finished;      /* 1: the run ended as configured */
    /* The fields below are set by runs with train.patience, and 0 in others. */
    double best;           /* best held-out score so far (higher is better) */
    uint64_t best_step;    /* step of the checkpoint with this score; 0: none yet */
    uint64_t worse_epochs; /* number of epochs since then, none of which had a better score */
    uint64_t judged_step;  /* last step whose held-out score was measured */
    uint64_t ended_step;   /* the run's last step, if this is the best checkpoint of a run that has ended; 0: the run may be resumed */
};

/* Fingerprints of a run's corpus. A resumed run must have the same corpus, since its position counts examples. */
struct corpus_identity {
    uint64_t vocab;  /* XXH3 of vocab.tsv, for words, counts and order */
    uint64_t stream; /* checksum of the id stream, for ids and beginnings of sentences */
    uint64_t tree;   /* huffman_fingerprint() with train.loss = hierarchical; 0 otherwise */
};

/* A file of a checkpoint: its size, and XXH64 of all its bytes. */
struct table_file {
    uint64_t bytes, xxh64;
};

/* The contents of a state.ini. */
struct run_state {
    struct progress_state progress;
    struct corpus_identity corpus;
    struct table_file target, context;
    uint64_t target_first;   /* id of the first row in target.npy (table_spec.first_row) */
    struct table_file known; /* known.npy (model_files.h); size 0: there is none */
};

/* Writes DIRECTORY/state.ini atomically. */
int state_write(const char *directory, const struct run_state *state);

/* Returns 1 if DIRECTORY/state.ini begins like a file of this program, whole or not; 0 if not; -1 after fail() if it cannot be read. */
int state_is_own(const char *directory);

/* Reads and verifies state.ini. Returns 0, or -1 after fail(): with *broken = 1 if the file is certainly missing or damaged, 0 if the system could
 * not read it, perhaps temporarily. */
int state_read(const char *directory, struct run_state *state, int *broken);

/* resume: checks that a resumed run has the same keys and corpus as when it began. */

/* Compares `config` with RUN/config.ini. Keys that change the result must be equal. train.batch and train.update, if "auto", are set to the run's
 * values, since this machine, its free memory or the number of ranks might lead to others.
 *
 * *kept: run.keep of RUN/config.ini, how many checkpoints the process that wrote them wanted to keep.
 *
 * Called before the corpus is read, which may take an hour. All ranks call it together; the first rank reads the file. Each rank
 * gets 0, or -1 after fail(), and the caller must let the ranks agree.
 */
int resume_keys(struct config *config, const char *run, struct ranks *ranks, uint64_t *kept);

/* Compares the corpus with that of the checkpoint, whose position counts examples of it. Returns 0, or -1 after fail(). */
int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch);

/* schedule: the length of a run, and its learning rate and penalty over it. */

/* Returns the learning rate when a share `done` (0..1) of the run is done. Below optimizer.warmup it rises linearly from 0 to lr; then it falls
 * from lr to lr x min_lr_ratio: linearly for `linear`, along half a cosine for `cosine`. */
double schedule_rate(const struct config *config, double done);
/* Returns config_loss() when a share `done` (0..1) of the run is done: below train.n3_warmup, its penalty of cubes is train.n3 times the square of
 * done / n3_warmup. */
struct loss_options schedule_loss(const struct config *config, double done);

/* Returns the number of steps of an epoch: each has `batch` examples, but for the last one, which may have fewer. */
static inline uint64_t schedule_epoch_steps(uint64_t per_epoch, uint64_t batch) {
    return (per_epoch + batch - 1) / batch;
}

/* Sets *total to the run's number of examples: that of train.epochs epochs or of train.steps steps, whichever is less. Returns 0, or -1 after
 * fail(). */
int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total);

/* ranks_alike: checks that all ranks have the same values of keys that change the result, the same encoded corpus and the same batch; otherwise
 * each would train another run. Each rank compares its values with the first rank's. All ranks call these functions together; each gets 0, or -1
 * after fail(). */

int ranks_alike_config(const struct config *config, struct ranks *ranks);

/* Copies the first rank's text to all ranks, which free it; NULL stays NULL. */
int ranks_alike_text(char **text, struct ranks *ranks);

/* Checks that all ranks have the same device.exchange, since they must sum dot products in the same way, and the same `gpu` (1: trains on a GPU). */
int ranks_alike_device(const struct config *config, int gpu, struct ranks *ranks);

int ranks_alike_corpus(const struct corpus_identity *corpus, uint64_t examples_per_epoch, uint64_t batch, struct ranks *ranks);

#endif
