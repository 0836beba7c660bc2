/* resume: what a run that goes on must find as it left it. */
#ifndef SPTX_RESUME_H
#define SPTX_RESUME_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "state.h"

/* Holds `config` against RUN/config.ini. Keys that change the numbers must be the same; those that are left to the machine
 * ("auto": train.batch, and train.update, which is by the number of ranks) become what the run settled on, since this machine, or
 * what is free on it now, might settle otherwise. Before the corpus is read: it may take an hour. By all ranks together, of which
 * the first one reads the file; each gets 0, or -1 after fail(), for the caller to agree on. */
int resume_keys(struct config *config, const char *run, struct ranks *ranks);

/* Warns where the checkpoint's version computed other learning rates than this one does: the run goes on by this one's law. */
void resume_rates(const struct config *config, const char *checkpoint, const struct run_state *older);

/* Holds the corpus against the one that the checkpoint's place counts examples of. 0, or -1 after fail(). */
int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch);

#endif
