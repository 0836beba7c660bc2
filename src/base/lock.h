/* lock: lets one process at a time have something, by a lock file. The system takes the lock away when the process
 * ends, however it ends, on this machine and on others that share the file system. The file itself only says who has
 * the lock, and goes when the lock is given back; one that a killed process has left is taken over by the next. */
#ifndef SPTX_LOCK_H
#define SPTX_LOCK_H

struct lock {
    char *path; /* owned; NULL where nothing is locked */
    int fd;
};
enum { LOCK_HOLDER = 256 };

/* 0: this process has the lock. 1: another process has it, and `holder` names that process ("process 7 of host, since ..."). -1
 * after fail(), also if a file of that name is not a lock file. If the file system has no locks: 0, after a warning. */
int lock_try(struct lock *lock, const char *path, char holder[LOCK_HOLDER]);

/* Takes the lock, and waits while another process has it. */
int lock_wait(struct lock *lock, const char *path);

/* Tells the lock that the directory of its file has another path now. */
int lock_move(struct lock *lock, const char *path);

/* Returns 1 where the lock file is still there; 0 where somebody has removed it, so that others may take the lock; -1
 * after fail(). */
int lock_stands(const struct lock *lock);

/* Gives the lock back: removes the file where it still is this lock's. Harmless on a zeroed one. */
void lock_give(struct lock *lock);

#endif
