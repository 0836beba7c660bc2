/* run_directory: the directory of a run, and who may write there.
 *
 *   RUN/config.ini vocab.tsv metrics.jsonl latest   run_files.h
 *   RUN/checkpoint-<step>/                          checkpoint.h
 *   RUN/replacement/                                replacement.h, while --overwrite is under way
 *   RUN/corpus.ids (or .graph) corpus.vocab.tsv     corpus/cache.h
 *   RUN/train.lock                                  who trains here (lock.h): one process at a time
 *
 * Readers need no lock and write nothing. Foreign files are never touched. A directory that holds other things and is no run is
 * refused, and so is a run whose files' names are taken by foreign ones.
 */
#ifndef SPTX_RUN_DIRECTORY_H
#define SPTX_RUN_DIRECTORY_H

#include "base/lock.h"
#include "config/config.h"
#include "corpus/vocab.h"

struct run_directory {
    char *path;    /* resolved (path.h), owned; what sentences quote */
    char *place;   /* the directory of the run's files now: path, or the replacement of an older run in it; owned */
    struct lock lock;
    int fd;        /* descriptor of the open directory, which stays valid if the directory is renamed; -1: none is open */
    unsigned made; /* parts at the end of path that this process has made */
};

/* Makes the directory if it is absent, takes it, and finishes the work of a killed process. `resumed`: the run there is to go
 * on. Returns -1 after fail() if another process has it, whose name the sentence gives, or if it cannot hold a run. */
int run_directory_open(struct run_directory *run, const char *path, int resumed);

/* Returns 0 where a run may be in the directory, which may be absent; otherwise -1 after fail(). It serves those who
 * look at a run's corpus without taking its directory. */
int run_directory_check(const char *path);

/* Gives the directory back. A run that was begun and has no checkpoint yet is removed, and so is the directory where it
 * is empty and this process made it. Harmless on a zeroed one. */
void run_directory_close(struct run_directory *run);

/* Removes a run and its directory, which may be absent; other files in it stay. Takes its lock first, so that no other process
 * trains there meanwhile. Returns 0, or -1 after fail(). */
int run_directory_remove(const char *path);

/* Returns 1 where it holds checkpoints of an older run, whole or not; 0 where not; -1 after fail(). */
int run_directory_has_run(const struct run_directory *run);

/* Makes space for a new run, whose checkpoints take `bytes`. An older run's checkpoints stay until the new run has one;
 * with `now` they go at once. Refuses where there is no space for both. Files of a run without a checkpoint
 * goes. */
int run_directory_begin(struct run_directory *run, int now, uint64_t bytes);

/* Looks for the directory before anything is written. Returns 0 where it is where it was; 1 where it was moved, and
 * path and place are its new ones; -1 after fail() where it was removed, or another process has taken it because
 * somebody removed its lock. */
int run_directory_follow(struct run_directory *run);

/* Writes config.ini and vocab.tsv. */
int run_directory_describe(const struct run_directory *run, const struct config *config, const struct vocab *vocab);

/* Comes after a checkpoint: an older run that had to wait for it goes, and the new one takes its place. */
int run_directory_settle(struct run_directory *run);

#endif
