/* directory: makes, lists and removes directories. Each error message has the path and the system's reason. */
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

/* Stores the number of bytes that this process may still write to the directory's file system; UINT64_MAX if that is not known.
 * Returns 0, or -1 after fail(). */
int directory_space(const char *path, uint64_t *bytes);

#endif
