/* directory_claim: takes a directory for one process at a time, by a lock file in it (lock.h). */
#ifndef SPTX_DIRECTORY_CLAIM_H
#define SPTX_DIRECTORY_CLAIM_H

#include "lock.h"

/* Makes the directory `path` (resolved) where it is absent, and takes its lock file `name`. *made: how many parts at the end of
 * the path this call has made (directory.h). Returns 0; 1 where another process has the lock, and `holder` says which one; -1
 * after fail(). */
int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]);

#endif
