/* run_directory: where a run is written.
 *
 *   RUN/config.ini vocab.tsv      every key resolved, the words: with a checkpoint they are all that readers need
 *   RUN/metrics.jsonl             metrics.h
 *   RUN/checkpoint-<step>/ latest checkpoint.h
 */
#ifndef SPTX_RUN_DIRECTORY_H
#define SPTX_RUN_DIRECTORY_H

#include "config.h"
#include "corpus/vocab.h"

/* Writes config.ini and vocab.tsv. */
int run_directory_describe(const char *run, const struct config *config, const struct vocab *vocab);

/* Takes an older run away: its checkpoints, what names them, its metrics. The cached corpus stays. */
int run_directory_clear(const char *run);

#endif
