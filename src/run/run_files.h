/* run_files: the files of a run other than its checkpoints, and how to tell that a run has written them. If another program has
 * written a file of such a name, the file is left unchanged and the run is refused.
 *
 *   config.ini      every key with its resolved value. Its first line says that a run wrote it, and gives vocab.tsv's fingerprint
 *   vocab.tsv       words and counts; a run's own if config.ini or a checkpoint names its fingerprint
 *   metrics.jsonl   see metrics.h; a run's own if its lines begin with the step
 *   latest          the name of the newest checkpoint, and nothing else
 */
#ifndef SPTX_RUN_FILES_H
#define SPTX_RUN_FILES_H

#include "config/config.h"
#include "corpus/vocab.h"

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
/* Returns 1 if this is the name of a partial file, which a killed process has left: of one of these files, or of a table's
 * working file. */
int run_file_is_piece(const char *name);
/* Removes these partial files. The caller has the run directory's lock, so no other process writes them. */
int run_files_remove_pieces(const char *run);

/* Writes config.ini and vocab.tsv. Does not write a config.ini that is not a run's, nor a vocab.tsv that already has these
 * words. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab);

#endif
