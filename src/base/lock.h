/* lock: one process at a time has something, told by a lock file. The system takes the lock away when the process ends,
 * however it ends, on this machine and on others that share the file system; the file only says who has it, and goes when
 * the lock is given back. What a killed process leaves of it is taken over by the next.
 */
#ifndef SPTX_LOCK_H
#define SPTX_LOCK_H

struct lock {
    char *path; /* owned; NULL where nothing is locked */
    int fd;
};
enum { LOCK_HOLDER = 256 };

/* 0: this process has it. 1: another process has it, and `holder` says which one ("process 7 of host, since ..."). -1 after
 * fail(), also where a file of that name is none of these. Where the file system knows no locks: 0, after a warning. */
int lock_try(struct lock *lock, const char *path, char holder[LOCK_HOLDER]);

/* The same, but waits as long as another process has it. */
int lock_wait(struct lock *lock, const char *path);

/* The directory that the lock file is in has another path now. */
int lock_move(struct lock *lock, const char *path);

/* 1 where the file is where it was; 0 where somebody has removed it, and others may take the lock; -1 after fail(). */
int lock_stands(const struct lock *lock);

/* Takes the file away, where it still is this lock's. Harmless on a zeroed one. */
void lock_give(struct lock *lock);

#endif
