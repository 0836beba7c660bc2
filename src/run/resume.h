/* resume: checks that a run which goes on has the keys and the corpus that it was begun with. */
#ifndef SPTX_RESUME_H
#define SPTX_RESUME_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "state.h"

/* Compares `config` with RUN/config.ini. Keys that change the numbers must be the same. Keys that are left to the
 * machine ("auto": train.batch, and train.update, which depends on the number of ranks) become what the run settled on,
 * since this machine, or what is free on it now, might settle otherwise.
 *
 * *kept becomes the run.keep of RUN/config.ini: how many checkpoints the process that wrote them wanted to keep.
 *
 * It comes before the corpus is read, which may take an hour. All ranks call it together, and the first one reads the
 * file; each gets 0, or -1 after fail(), for the caller to agree on.
 */
int resume_keys(struct config *config, const char *run, struct ranks *ranks, uint64_t *kept);

/* Compares the corpus with the one that the checkpoint's position belongs to. Returns 0, or -1 after fail(). */
int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch);

#endif
