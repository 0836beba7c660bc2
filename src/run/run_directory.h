/* run_directory: the directory of a run, and who may write there.
 *
 *   RUN/config.ini vocab.tsv metrics.jsonl latest   run_files.h
 *   RUN/checkpoint-<step>/                          checkpoint.h
 *   RUN/replacement/                                replacement.h, while --overwrite is under way
 *   RUN/corpus.ids (or .graph) corpus.vocab.tsv     corpus/cache.h
 *   RUN/train.lock                                  held by the process that trains here (base/directory.h); one at a time
 *
 * Readers need no lock and write nothing. Foreign files are never touched. A directory is refused if it has other files and no run,
 * or if a foreign file has the name of a run's file.
 */
#ifndef SPTX_RUN_DIRECTORY_H
#define SPTX_RUN_DIRECTORY_H

#include "base/directory.h"
#include "config/config.h"
#include "corpus/vocab.h"

/* A run directory whose lock this process holds. */
struct run_directory {
    char *path;    /* path of the run directory without links (path.h), as in error messages; owned */
    char *place;   /* directory that has the run's files now: `path`; or path/replacement, while an older run is being replaced;
                    * owned */
    struct lock lock;
    int fd;        /* the open directory; it stays valid if the directory is renamed; -1: no directory is open */
    unsigned made; /* number of the last directories of `path` that this process has created */
};

/* Creates the directory if it is absent, takes its lock, and finishes the work of a killed process. `resumed`: 1 if the run
 * there is to be resumed. Returns 0, or -1 after fail() if another process has the lock (the message names it), or if the
 * directory cannot hold a run. */
int run_directory_open(struct run_directory *run, const char *path, int resumed);

/* Returns 0 if a run may use the directory, which may be absent; otherwise -1 after fail(). It does not take the lock: for
 * callers that only read a run's corpus. */
int run_directory_check(const char *path);

/* Releases the lock. Removes a replacement that has no checkpoint yet, and the directory if it is empty and this process created
 * it. May be called on a struct of zeros. */
void run_directory_close(struct run_directory *run);

/* Removes a run and its directory, which may be absent; other files in it stay. Takes the lock first, so that no other process
 * trains there meanwhile. Returns 0, or -1 after fail(). */
int run_directory_remove(const char *path);

/* Returns 1 if the directory has checkpoints of an older run, whole or not; 0 if not; -1 after fail(). */
int run_directory_has_run(const struct run_directory *run);

/* Stores in *space the free bytes of the disk on which a run directory is or would be made, and in *older the bytes of the checkpoints
 * that are in it now. Returns 0, or -1 after fail(). */
int run_directory_space(const char *path, uint64_t *space, uint64_t *older);

/* Prepares the directory for a new run, whose checkpoint takes `bytes`. An older run's checkpoints stay until the new run has
 * one, or are removed at once if `now` is 1. If `now` is 0, refuses if the disk has no space for both. Files of an older run
 * without a checkpoint are removed. */
int run_directory_begin(struct run_directory *run, int now, uint64_t bytes);

/* Checks where the directory is now, before anything is written. Returns 0 if it has not moved; 1 if it was moved, with its new
 * path and place set; -1 after fail() if it was removed, or if somebody removed the lock and another process has taken it. */
int run_directory_follow(struct run_directory *run);

/* Writes config.ini and vocab.tsv. */
int run_directory_describe(const struct run_directory *run, const struct config *config, const struct vocab *vocab);

/* Called after each checkpoint: if an older run was waiting to be replaced, removes it and moves the new run into its place. */
int run_directory_settle(struct run_directory *run);

#endif
