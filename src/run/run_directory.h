/* run_directory: the directory of a run, and who may write there.
 *
 *   RUN/config.ini vocab.tsv metrics.jsonl latest   below: files of a run
 *   RUN/checkpoint-<step>/                          checkpoint.h
 *   RUN/replacement/                                below: replacement, while --overwrite is under way
 *   RUN/corpus.ids (or .graph) corpus.vocab.tsv     corpus/cache.h
 *   RUN/train.lock                                  held by the process that trains here (base/directory.h); one at a time
 *
 * Readers need no lock and write nothing. Foreign files are never changed. A directory is refused if it contains foreign files but no run, or if a
 * foreign file has the name of a run's file.
 */
#ifndef SPTX_RUN_DIRECTORY_H
#define SPTX_RUN_DIRECTORY_H

#include "base/directory.h"
#include "config/config.h"
#include "corpus/vocab.h"

/* A run directory that this process has locked. */
struct run_directory {
    char *path;    /* path of the run directory, without links (file.h), as messages show it; owned */
    char *place;   /* directory in which the run's files are now: `path`, or path/replacement while an older run is being replaced; owned */
    struct lock lock;
    int fd;        /* the open directory, valid even after a rename; -1: not open */
    unsigned made; /* how many of the last directories of `path` this process has created */
};

/* Creates the directory if necessary, locks it, and finishes what a killed process has left. resumed = 1: the run in it shall be resumed. Returns
 * 0, or -1 after fail() if another process (named in the message) holds the lock, or if the directory cannot be used for a run. */
int run_directory_open(struct run_directory *run, const char *path, int resumed);

/* Returns 0 if a run may use the directory, which need not exist; otherwise -1 after fail(). Does not lock: for callers that only read a run's
 * corpus. */
int run_directory_check(const char *path);

/* Releases the lock. Removes a replacement that has no checkpoint yet, and the directory itself if it is empty and this process has created it.
 * May be called on a struct of zeros. */
void run_directory_close(struct run_directory *run);

/* Removes a run and its directory, if they exist; other files in it stay. Locks it first, so that no other process trains there. Returns 0, or -1
 * after fail(). */
int run_directory_remove(const char *path);

/* *space: free bytes on the disk on which a run directory is or would be created; *older: bytes of the checkpoints in it now. Returns 0, or -1
 * after fail(). */
int run_directory_space(const char *path, uint64_t *space, uint64_t *older);

/* Prepares the directory for a new run, whose checkpoint needs `bytes`. An older run's checkpoints stay until the new run has one (now = 0;
 * refused if the disk has no space for both), or are removed at once (now = 1). Files of an older run without checkpoints are removed. */
int run_directory_begin(struct run_directory *run, int now, uint64_t bytes);

/* Checks, before anything is written, where the directory is now. Returns 0 if it has not moved; 1 if it was moved, after updating path and place;
 * -1 after fail() if it was removed, or if the lock was removed and another process holds it now. */
int run_directory_follow(struct run_directory *run);

/* Writes config.ini and vocab.tsv. */
int run_directory_describe(const struct run_directory *run, const struct config *config, const struct vocab *vocab);

/* Called after each checkpoint: if an older run is to be replaced, removes it and moves the new run into its place. */
int run_directory_settle(struct run_directory *run);

/* run_files: the files of a run other than its checkpoints, and how they are recognized. If a file of such a name was not written by a run, it is
 * left unchanged and the run is refused.
 *
 *   config.ini      every key with its resolved value. Its first line says that a run wrote it, and gives vocab.tsv's fingerprint
 *   vocab.tsv       words and counts; a run's own if config.ini or a checkpoint names its fingerprint
 *   ages.txt        only of a run that kept words of an older run: a first line that says what it is, then the age of each word (vocab.h), by rows
 *   metrics.jsonl   see metrics.h; a run's own if its lines begin with the step
 *   latest          the name of the newest checkpoint, and nothing else
 */

enum run_file { RUN_LATEST, RUN_METRICS, RUN_AGES, RUN_VOCAB, RUN_CONFIG, RUN_FILES };
enum run_file_owner { RUN_FILE_ABSENT, RUN_FILE_OWN, RUN_FILE_FOREIGN };

extern const char *const run_file_names[RUN_FILES];

/* Returns who wrote the file (enum run_file_owner); -1 after fail() if that cannot be found out. Links and directories count as foreign. */
int run_file_owner(const char *run, enum run_file file);

/* Returns 0 if no foreign file has the name of a run's file; otherwise -1 after fail(), which names the file. resumed = 1: accepts any config.ini,
 * since a resumed run reads it. */
int run_files_check(const char *run, int resumed);

/* Removes the files that a run has written, except its checkpoints. */
int run_files_remove(const char *run);
/* Removes the partial files of these files, or of tables, that a killed process has left. The caller holds the run directory's lock, so no other
 * process is writing them. */
int run_files_remove_pieces(const char *run);

/* Writes config.ini, vocab.tsv, and ages.txt if the words have ages; not a config.ini in place of a foreign one, nor a vocab.tsv that already has
 * these words. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab);
/* Reads the ages of the words of vocab.tsv into vocab->age, which stays NULL if the run has no such file. Returns 0, or -1 after fail(). */
int run_ages_read(const char *run, struct vocab *vocab);

/* replacement: replaces an older run by a new one, so that a kill at any moment leaves one of the two whole.
 *
 *   RUN/replacement/    the directory of the new run until that has a checkpoint
 *
 * Readers look here first: from its first checkpoint on, the new run is the run of RUN. Then the older run's checkpoints are removed, its files are
 * replaced by the new run's, and finally the new checkpoint is moved to RUN. A replacement without a checkpoint is removed.
 *
 * A file `replaces` in it shows that this program has made it. If the process is killed, the next one that trains in RUN calls replacement_settle(),
 * which does all these steps again.
 */

/* Makes RUN/replacement. Returns its path, which the caller frees; NULL after fail(). */
char *replacement_begin(const char *run);

/* If RUN/replacement contains a checkpoint, replaces the older run by the run in it; otherwise removes RUN/replacement. Does nothing if it is
 * missing or was not made by this program. The caller must hold the run directory's lock. */
int replacement_settle(const char *run);

/* Returns 1 if RUN has a replacement that this program has made; 0 if it has none; -1 after fail(). */
int replacement_exists(const char *run);

/* Returns 0, or -1 after fail() if something that this program has not made has the name RUN/replacement. */
int replacement_check(const char *run);

/* Returns the directory in which readers find the run: RUN/replacement if it contains a checkpoint, otherwise RUN. The caller frees it; NULL after
 * fail(). */
char *replacement_place(const char *run);

/* run_owns: recognizes the files of a run, so that a command does not overwrite them. */

/* Returns 0 if the path (with links followed) does not exist or is not a file of a run; otherwise -1 after fail(). option: the option with which
 * the user gave the path ("--out"), for the message. */
int run_owns_refuse(const char *path, const char *option);

#endif
