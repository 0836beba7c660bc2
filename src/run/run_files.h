/* run_files: the files of a run beside its checkpoints, and what tells that one of them is a run's own. A foreign file of such a
 * name stays as it is, and the run is refused.
 *
 *   config.ini      every key as it was resolved. Its first line says that a run wrote it, and the fingerprint of vocab.tsv
 *   vocab.tsv       words and counts; our own where config.ini or a checkpoint names its fingerprint
 *   metrics.jsonl   metrics.h; its lines begin with the step
 *   latest          the name of the newest checkpoint, and nothing else
 */
#ifndef SPTX_RUN_FILES_H
#define SPTX_RUN_FILES_H

#include "config/config.h"
#include "corpus/vocab.h"

enum run_file { RUN_LATEST, RUN_METRICS, RUN_VOCAB, RUN_CONFIG, RUN_FILES };
enum run_file_owner { RUN_FILE_ABSENT, RUN_FILE_OWN, RUN_FILE_FOREIGN };

extern const char *const run_file_names[RUN_FILES];

/* Returns one of enum run_file_owner, or -1 after fail() where it cannot be told. Links and directories are foreign. */
int run_file_owner(const char *run, enum run_file file);

/* Returns 0 where no foreign file has one of the names; otherwise -1 after fail(), which names it. A run that goes on
 * (`resumed`) reads config.ini as it stands, which need not be its own. */
int run_files_check(const char *run, int resumed);

/* Removes a run's own files. */
int run_files_remove(const char *run);
/* Returns 1 for the name of a partial file that a killed process left: of one of these files, or of a table's working
 * file. */
int run_file_is_piece(const char *name);
/* Removes these partial files. The caller has the run directory's lock, so no other process writes them. */
int run_files_remove_pieces(const char *run);

/* Writes config.ini and vocab.tsv, but leaves a foreign config.ini, and a vocab.tsv that has the words already. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab);

#endif
