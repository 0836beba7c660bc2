/* directory_claim: reserves a directory for one process at a time, by a lock file in it (lock.h). */
#ifndef SPTX_DIRECTORY_CLAIM_H
#define SPTX_DIRECTORY_CLAIM_H

#include "lock.h"

/* Creates the directory `path` (a resolved path) if it does not exist, and locks the file `name` in it. Stores in *made the number
 * of directories at the end of the path that this call has created. Returns 0 if this process now has the lock; 1 if another
 * process has it, which `holder` then names; -1 after fail(). */
int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]);

#endif
