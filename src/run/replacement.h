/* replacement: a new run in the place of an older one, so that a kill at any moment leaves one of the two whole.
 *
 *   RUN/replacement/    a run directory of its own, in which the new run is until it has a checkpoint. That moment it is the
 *                       run, and readers look here first. Then the older run's checkpoints go, the new run's files take the
 *                       names of the older one's, and last its checkpoint moves to RUN. Without a checkpoint again, it goes
 *
 * It holds a file `replaces`, which tells that it is this program's own. Whatever a killed process leaves, the next one that
 * trains in RUN puts in order: replacement_settle() begins anew where the killed one stopped.
 */
#ifndef SPTX_REPLACEMENT_H
#define SPTX_REPLACEMENT_H

/* RUN/replacement, made, in memory that the caller frees; NULL after fail(). */
char *replacement_begin(const char *run);

/* Puts the run in RUN/replacement in the place of the older one where it has a checkpoint; takes away what is there otherwise.
 * Nothing where there is none of our own. By who has the run directory's lock. */
int replacement_settle(const char *run);

/* 1: RUN holds one of our own; 0: it does not; -1 after fail(). */
int replacement_exists(const char *run);

/* -1 after fail() where something else has its name. */
int replacement_check(const char *run);

/* Where readers find the run: RUN/replacement where there is one with a checkpoint, otherwise RUN. In memory that the
 * caller frees; NULL after fail(). */
char *replacement_place(const char *run);

#endif
