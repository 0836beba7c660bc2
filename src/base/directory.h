/* directory: makes, lists, reserves, marks and removes directories. Error messages contain the path and the system's reason.
 *
 *   DIRECTORY/<lock>   names the process that works in it; the system releases it when that process ends (lock_try)
 *   DIRECTORY/<mark>   shows that this program made the directory, so that it may remove it again (directory_mark)
 *
 * Nothing here removes a file that has no mark of this program, and nothing is removed through a link.
 */
#ifndef SPTX_DIRECTORY_H
#define SPTX_DIRECTORY_H

#include <stdint.h>

/* Makes a directory and its missing parents; does nothing if it exists. `path`: any path that path_resolve() accepts; a part that a later ".."
 * cancels is not made. */
int directory_make(const char *path);
/* Does the same as directory_make(). *made: how many directories at the end of the path were made. */
int directory_make_counted(const char *path, unsigned *made);

/* Undoes directory_make_counted(): removes the last `made` directories of a resolved path, the deepest first, and stops at one that is not empty. */
void directory_unmake(const char *path, unsigned made);

/* Returns 1 if the path is a directory or a link to one; 0 if it is something else or does not exist; -1 after fail() if the system does not say. */
int directory_exists(const char *path);

/* Returns 1 if `path` is a directory that exists and is not a symbolic link, otherwise 0. */
int directory_is_plain(const char *path);

/* Lists the names in a directory, except . and .., sorted by bytes. mem_free_texts() frees them. Returns their number, or -1
 * after fail(). */
int64_t directory_list(const char *path, char ***names);

int directory_sync(const char *path);

/* Stores the number of bytes that users may still write to the directory's file system; UINT64_MAX: unknown. Space that a file system reserves for
 * root is not counted, since root in a container may not use it. Returns 0, or -1 after fail(). */
int directory_space(const char *path, uint64_t *bytes);

/* lock: lets one process at a time use something, by a lock file. The system releases the lock when the process ends, even if it is killed; it
 * also works between machines that share the file system. The file's content only names the process that holds the lock. Releasing the lock
 * removes the file; a file that a killed process has left is used by the next process. */

struct lock {
    char *path; /* owned; NULL if nothing is locked */
    int fd;
};
enum { LOCK_HOLDER = 256 };

/* Tries to lock. Returns 0 if this process now holds the lock, or, after a warning, if the file system has no locks; 1 if another process holds
 * it, with its name in `holder` ("process 7 of host, since ..."); -1 after fail(), also if the file is not a lock file. */
int lock_try(struct lock *lock, const char *path, char holder[LOCK_HOLDER]);

/* Locks; waits as long as another process holds the lock. Returns 0, or -1 after fail(). */
int lock_wait(struct lock *lock, const char *path);

/* Updates the path of the lock file after its directory was moved. Returns 0, or -1 after fail(). */
int lock_move(struct lock *lock, const char *path);

/* Returns 1 if the lock file still exists; 0 if it was removed, so that other processes may lock, too; -1 after fail(). */
int lock_stands(const struct lock *lock);

/* Releases the lock, and removes its file if it is still the one that was locked. May be called on a struct of zeros. */
void lock_give(struct lock *lock);

/* ---- claims: a directory is reserved for one process at a time, by a lock file in it ---- */

/* Creates the directory `path` (resolved) if it does not exist, and locks the file `name` in it. *made: how many directories at the end of the
 * path were created. Returns 0 if this process now holds the lock; 1 if another process does, which is named in `holder`; -1 after fail(). */
int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]);

/* directory_mark: a file in a directory which shows that this program created the directory and may remove it. A symbolic link to a marked directory
 * is not taken as marked, so that nothing is removed through a link.
 *
 *   DIRECTORY/<name>   the mark: a file whose content is exactly `text`
 */

struct directory_mark {
    const char *name, *text;
};

/* Creates the directory and its mark. Nothing may exist at `path`. Returns 0, or -1 after fail(). */
int directory_mark_make(const char *path, const struct directory_mark *mark);

/* Returns 1 if the directory has the mark, or if it contains nothing or a half-written mark, because a process was killed while it created them.
 * Returns 0 if the directory does not exist or contains other files; -1 after fail(). */
int directory_mark_is_there(const char *path, const struct directory_mark *mark);

/* Removes the mark and then the directory, whose other files the caller has removed; if any is left, the directory stays, with a warning. Returns
 * 0, or -1 after fail(). */
int directory_mark_remove(const char *path, const struct directory_mark *mark);

#endif
