/* replacement: puts a new run in the place of an older one, so that a kill at any moment leaves one of the two whole.
 *
 *   RUN/replacement/    a run directory of its own, which holds the new run until that has a checkpoint
 *
 * From its first checkpoint on, the new run counts, and readers look here first. The older run's checkpoints are then removed,
 * the new run's files take the names of the older one's, and last its checkpoint moves to RUN. A replacement that has no checkpoint
 * is removed.
 *
 * It holds a file `replaces`, which tells that it is this program's own. Whatever a killed process leaves, the next process that
 * trains in RUN puts in order: replacement_settle() goes through the same steps again.
 */
#ifndef SPTX_REPLACEMENT_H
#define SPTX_REPLACEMENT_H

/* Makes RUN/replacement and returns its path, for the caller to free; NULL after fail(). */
char *replacement_begin(const char *run);

/* Moves the run in RUN/replacement into the place of the older one if it has a checkpoint, and removes it otherwise. Does
 * nothing if RUN/replacement is missing or is not ours. The caller has the run directory's lock. */
int replacement_settle(const char *run);

/* Returns 1 where RUN holds a replacement of our own, 0 where not, -1 after fail(). */
int replacement_exists(const char *run);

/* Returns -1 after fail() where something foreign has the name RUN/replacement. */
int replacement_check(const char *run);

/* Returns where readers find the run: RUN/replacement where that has a checkpoint, otherwise RUN. The caller frees;
 * NULL after fail(). */
char *replacement_place(const char *run);

#endif
