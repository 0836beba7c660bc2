/* resume: checks that a resumed run has the same keys and the same corpus as when it began. */
#ifndef SPTX_RESUME_H
#define SPTX_RESUME_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "state.h"

/* Compares `config` with RUN/config.ini. Keys that change the numbers must be equal. If train.batch or train.update is "auto", it
 * is set to the value that the run chose, since this machine, its free memory or the number of ranks might lead to another one.
 *
 * *kept becomes the run.keep of RUN/config.ini: how many checkpoints the process that wrote them wanted to keep.
 *
 * Called before the corpus is read, which may take an hour. All ranks call it together; the first rank reads the file. Each rank
 * gets 0, or -1 after fail(), and the caller must let the ranks agree.
 */
int resume_keys(struct config *config, const char *run, struct ranks *ranks, uint64_t *kept);

/* Compares the corpus with the corpus of the checkpoint, since the checkpoint's position counts examples of that corpus. Returns
 * 0, or -1 after fail(). */
int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch);

#endif
