/* run_directory: the directory of a run, and who may write there.
 *
 *   RUN/config.ini vocab.tsv metrics.jsonl latest   below: files of a run
 *   RUN/checkpoint-<step>/                          checkpoint.h
 *   RUN/replacement/                                below: replacement, while --overwrite is under way
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
    char *path;    /* path of the run directory without links (file.h), as in error messages; owned */
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

/* run_files: the files of a run other than its checkpoints, and how to tell that a run has written them. If another program has
 * written a file of such a name, the file is left unchanged and the run is refused.
 *
 *   config.ini      every key with its resolved value. Its first line says that a run wrote it, and gives vocab.tsv's fingerprint
 *   vocab.tsv       words and counts; a run's own if config.ini or a checkpoint names its fingerprint
 *   metrics.jsonl   see metrics.h; a run's own if its lines begin with the step
 *   latest          the name of the newest checkpoint, and nothing else
 */

enum run_file { RUN_LATEST, RUN_METRICS, RUN_VOCAB, RUN_CONFIG, RUN_FILES };
enum run_file_owner { RUN_FILE_ABSENT, RUN_FILE_OWN, RUN_FILE_FOREIGN };

extern const char *const run_file_names[RUN_FILES];

/* Returns a value of enum run_file_owner; -1 after fail() if the owner cannot be found out. Links and directories count as
 * foreign. */
int run_file_owner(const char *run, enum run_file file);

/* Returns 0 if no foreign file has the name of a file of a run; otherwise -1 after fail(), whose message names the file. If
 * `resumed` is 1, any config.ini is accepted, since a resumed run reads it. */
int run_files_check(const char *run, int resumed);

/* Removes the files that a run has written, except its checkpoints. */
int run_files_remove(const char *run);
/* Removes the partial files that a killed process has left of these files, or of a table. The caller has the run directory's lock, so no other process writes them. */
int run_files_remove_pieces(const char *run);

/* Writes config.ini and vocab.tsv. Does not write a config.ini that is not a run's, nor a vocab.tsv that already has these
 * words. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab);

/* replacement: replaces an older run by a new one, so that a kill at any moment leaves one of the two whole.
 *
 *   RUN/replacement/    the directory of the new run until that has a checkpoint
 *
 * Readers look here first: from its first checkpoint on, the new run is the run of RUN. Then the older run's checkpoints are
 * removed, the new run's files replace the older run's, and at last the new checkpoint moves to RUN. A replacement without a
 * checkpoint is removed.
 *
 * A file `replaces` in it tells that this program has made it. If a process is killed meanwhile, the next process that trains in
 * RUN calls replacement_settle(), which does all these steps again.
 */

/* Makes RUN/replacement. Returns its path, for the caller to free, or NULL after fail(). */
char *replacement_begin(const char *run);

/* If RUN/replacement has a checkpoint, replaces the older run by the run in it; otherwise removes RUN/replacement. Does nothing
 * if RUN/replacement is missing or was not made by this program. The caller must hold the run directory's lock. */
int replacement_settle(const char *run);

/* Returns 1 if RUN has a replacement that this program has made; 0 if it has none; -1 after fail(). */
int replacement_exists(const char *run);

/* Returns 0, or -1 after fail() if something that this program has not made has the name RUN/replacement. */
int replacement_check(const char *run);

/* Returns the directory in which readers find the run: RUN/replacement if that has a checkpoint, otherwise RUN. For the caller
 * to free; NULL after fail(). */
char *replacement_place(const char *run);

/* run_owns: recognizes the files of a run, so that a command does not overwrite them. */

/* Returns 0 if the path (with links followed) is absent, or is no file of a run; otherwise -1 after fail(). `option`: the option
 * with which the user gave the path ("--out"), for the message. */
int run_owns_refuse(const char *path, const char *option);

#endif
