/* run_directory: where a run is written, and who may write there.
 *
 *   RUN/config.ini vocab.tsv metrics.jsonl latest   run_files.h
 *   RUN/checkpoint-<step>/                          checkpoint.h
 *   RUN/replacement/                                replacement.h, while --overwrite is under way
 *   RUN/corpus.ids corpus.vocab.tsv                 corpus/cache.h
 *   RUN/train.lock                                  who trains here (lock.h): one process at a time
 *
 * Readers need no lock and write nothing. What is not a run's own is never touched: a directory that holds other things and is no
 * run is refused, and so is one in which they have the names of a run's files.
 */
#ifndef SPTX_RUN_DIRECTORY_H
#define SPTX_RUN_DIRECTORY_H

#include "base/lock.h"
#include "config/config.h"
#include "corpus/vocab.h"

struct run_directory {
    char *path;    /* resolved (path.h), owned; what sentences quote */
    char *place;   /* where the run's files are for now: path, or the replacement of an older run in it; owned */
    struct lock lock;
    int fd;        /* the directory, open: it stays the run's under whatever name; -1 where there is none */
    unsigned made; /* parts at the end of path that this process has made */
};

/* Makes the directory where it is not there, and takes it: -1 after fail() where another process has it, which is named, or
 * where it is no place for a run. Finishes what a killed process left. `resumed`: the run there is to go on. */
int run_directory_open(struct run_directory *run, const char *path, int resumed);

/* 0 where a run may be in the directory, which need not be there; otherwise -1 after fail(). For those who look at a run's
 * corpus without taking its directory. */
int run_directory_check(const char *path);

/* Gives it back. What was begun and has no checkpoint yet goes; the directory, too, where it is empty and was made by this
 * process. Harmless on a zeroed one. */
void run_directory_close(struct run_directory *run);

/* 1: it holds checkpoints of an older run, whole or not; 0: none; -1 after fail(). */
int run_directory_has_run(const struct run_directory *run);

/* Makes space for a new run, whose checkpoints take `bytes`. An older run's checkpoints stay until the new run has one; with
 * `now` they go at once. Refuses where there is no space for both. What a run left that has no checkpoint goes. */
int run_directory_begin(struct run_directory *run, int now, uint64_t bytes);

/* Before anything is written: 0 where the directory is where it was; 1 where it was moved, and path and place are its new ones;
 * -1 after fail() where it was removed, or another process has taken it because somebody removed its lock. */
int run_directory_follow(struct run_directory *run);

/* Writes config.ini and vocab.tsv. */
int run_directory_describe(const struct run_directory *run, const struct config *config, const struct vocab *vocab);

/* After a checkpoint: an older run that had to wait for it goes, and the new one takes its place. */
int run_directory_settle(struct run_directory *run);

#endif
