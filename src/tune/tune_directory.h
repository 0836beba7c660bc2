/* tune_directory: the directory of a search beside the run's, RUN.tune, and who may write there.
 *
 *   RUN.tune/tried.tsv           what was tried (tried.h); stays
 *   RUN.tune/tune.lock           who searches here (lock.h): one process at a time
 *   RUN.tune/trials/             what trials write; removed at the end
 *     searches                   the mark that tune has made this directory (directory_mark.h)
 *     run/                       the run of the trial at hand
 *     corpus/                    the encoded corpus that trials share
 *     edges.tsv held_out.tsv     the two parts of a graph, and its encoded whole: corpus.graph, corpus.vocab.tsv
 *
 * A directory that holds anything else is refused, and nothing that tune has not written is removed. Links inside are never
 * followed.
 */
#ifndef SPTX_TUNE_DIRECTORY_H
#define SPTX_TUNE_DIRECTORY_H

#include "base/lock.h"

struct tune_directory {
    char *path;                             /* RUN.tune, resolved (path.h), owned like the others */
    char *trials;                           /* RUN.tune/trials */
    char *run, *corpus, *edges, *held_out;  /* in it */
    struct lock lock;
    unsigned made; /* parts at the end of path that this process has made */
    int begun;     /* 1: trials/ is this process' own */
};

/* Makes and takes the directory for the run in `run`; removes the trials that a killed process left. Returns -1 after fail(),
 * also where another process has it, which is named, or where it holds what tune has not written. */
int tune_directory_open(struct tune_directory *directory, const char *run);

/* Removes the trials, and gives the directory back. It never fails, and keeps the sentence of an earlier failure. Harmless on a
 * zeroed one. */
void tune_directory_close(struct tune_directory *directory);

#endif
