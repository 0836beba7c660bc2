/* tune_directory: RUN.tune, the directory of a search, beside the run directory RUN.
 *
 *   RUN.tune/tried.tsv           the trials of earlier calls (tried.h); not removed at the end
 *   RUN.tune/tune.lock           lets one process at a time search here (lock.h)
 *   RUN.tune/trials/             the files of trials; removed at the end
 *     searches                   the mark that tune has made this directory (directory_mark.h)
 *     run/                       the run directory of the current trial
 *     corpus/                    the encoded corpus that trials share
 *     edges.tsv held_out.tsv     if the data is a graph: its training edges and its held-out edges
 *     corpus.graph corpus.vocab.tsv   the encoded whole graph
 *
 * A RUN.tune that holds any other file is refused. Only files that tune has written are removed, and never through a symbolic link.
 */
#ifndef SPTX_TUNE_DIRECTORY_H
#define SPTX_TUNE_DIRECTORY_H

#include "base/lock.h"

/* An open RUN.tune, whose lock this process holds. */
struct tune_directory {
    char *path;                             /* RUN.tune, resolved (path.h); owned, like the paths below */
    char *trials;                           /* RUN.tune/trials */
    char *run, *corpus, *edges, *held_out;  /* paths in RUN.tune/trials */
    struct lock lock;
    unsigned made; /* number of directories at the end of path that this process has created */
    int begun;     /* 1: this process has created trials/, and removes it */
};

/* Creates RUN.tune for the run directory `run` and takes its lock; removes trials that a killed process left. Returns 0, or -1
 * after fail(), also if another process has the lock (the message names it) or if a file there is not tune's. */
int tune_directory_open(struct tune_directory *directory, const char *run);

/* Removes the trials and releases the lock. Never fails, and keeps the message of an earlier failure. Harmless on a zeroed one. */
void tune_directory_close(struct tune_directory *directory);

#endif
