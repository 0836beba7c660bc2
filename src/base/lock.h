/* lock: lets one process at a time use something, by a lock file. The system releases the lock when the process ends, even if it
 * is killed, and also for other machines that share the file system. The file's content only names the process that has the
 * lock. The file is removed when the lock is released; if a killed process leaves it, the next process takes it over. */
#ifndef SPTX_LOCK_H
#define SPTX_LOCK_H

struct lock {
    char *path; /* owned; NULL if nothing is locked */
    int fd;
};
enum { LOCK_HOLDER = 256 };

/* Tries to lock. Returns 0 if this process now has the lock, or, after a warning, if the file system has no locks. Returns 1 if
 * another process has it, which `holder` then names ("process 7 of host, since ..."). Returns -1 after fail(), also if a file of
 * that name is not a lock file. */
int lock_try(struct lock *lock, const char *path, char holder[LOCK_HOLDER]);

/* Locks, and waits as long as another process has the lock. Returns 0, or -1 after fail(). */
int lock_wait(struct lock *lock, const char *path);

/* Changes the path of the lock file after its directory was moved. Returns 0, or -1 after fail(). */
int lock_move(struct lock *lock, const char *path);

/* Returns 1 if the lock file still exists; 0 if somebody has removed it, so that others may lock too; -1 after fail(). */
int lock_stands(const struct lock *lock);

/* Releases the lock, and removes its file if it is still the one that was locked. May be called on a struct of zeros. */
void lock_give(struct lock *lock);

#endif
