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
#ifndef SPTX_REPLACEMENT_H
#define SPTX_REPLACEMENT_H

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

#endif
