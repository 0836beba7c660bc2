/* directory: makes, lists, reserves, marks and removes directories. Each error message has the path and the system's reason.
 *
 *   DIRECTORY/<lock>   names the process that works in it; the system releases it when that process ends (lock_try)
 *   DIRECTORY/<mark>   shows that this program made the directory, so that it may remove it again (directory_mark)
 *
 * Nothing here removes a file that has no mark of this program, and nothing is removed through a link.
 */
#ifndef SPTX_DIRECTORY_H
#define SPTX_DIRECTORY_H

#include <stdint.h>

/* Makes a directory and its missing parents; it is no error if it exists. `path` may be any path that path_resolve() accepts: a
 * part that a later ".." removes is not made. */
int directory_make(const char *path);
/* Works like directory_make(). *made: how many directories at the path's end this call has made. */
int directory_make_counted(const char *path, unsigned *made);

/* Undoes directory_make_counted(): removes the last `made` directories of a resolved path, the deepest first. Stops at the first
 * that is not empty. */
void directory_unmake(const char *path, unsigned made);

/* Returns 1 if the path is a directory or a link to one; 0 if it is something else or does not exist; -1 after fail() if the
 * system does not tell. */
int directory_exists(const char *path);

/* Returns 1 if `path` is a directory that exists and is not a symbolic link, otherwise 0. */
int directory_is_plain(const char *path);

/* Lists the names in a directory, except . and .., sorted by bytes. mem_free_texts() frees them. Returns their number, or -1
 * after fail(). */
int64_t directory_list(const char *path, char ***names);

int directory_sync(const char *path);

/* Stores the number of bytes that users may still write to the directory's file system; UINT64_MAX if that is not known. What a file
 * system reserves for root is not counted: root in a container has no right to it.
 * Returns 0, or -1 after fail(). */
int directory_space(const char *path, uint64_t *bytes);

/* lock: lets one process at a time use something, by a lock file. The system releases the lock when the process ends, even if it
 * is killed, and also for other machines that share the file system. The file's content only names the process that has the
 * lock. The file is removed when the lock is released; if a killed process leaves it, the next process takes it over. */

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

/* ---- claims: a directory is reserved for one process at a time, by a lock file in it ---- */

/* Creates the directory `path` (a resolved path) if it does not exist, and locks the file `name` in it. Stores in *made the number
 * of directories at the end of the path that this call has created. Returns 0 if this process now has the lock; 1 if another
 * process has it, which `holder` then names; -1 after fail(). */
int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]);

/* directory_mark: a file in a directory that shows that this program created the directory and may remove it again. A symbolic
 * link to a marked directory does not count as marked, so that nothing is removed through a link.
 *
 *   DIRECTORY/<name>   the mark: a file whose content is exactly `text`
 */

struct directory_mark {
    const char *name, *text;
};

/* Creates the directory and its mark. Nothing may exist at `path` before. Returns 0, or -1 after fail(). */
int directory_mark_make(const char *path, const struct directory_mark *mark);

/* Returns 1 if the directory has the mark. Also returns 1 if it has no file, or only a half-written mark: a process was killed
 * while it created them. Returns 0 if the directory does not exist or has other files, -1 after fail(). */
int directory_mark_is_there(const char *path, const struct directory_mark *mark);

/* Removes the mark and then the directory. The caller removes the directory's other files first: if any is left, the directory
 * stays and a warning says so. Returns 0, or -1 after fail(). */
int directory_mark_remove(const char *path, const struct directory_mark *mark);

#endif
