/* directory: making, listing and removing directories, every error said once with the path and the system's reason. */
#ifndef SPTX_DIRECTORY_H
#define SPTX_DIRECTORY_H

#include <stdint.h>

/* Makes the directory and those above it; one that is there is no error. `path` may be anything that path_resolve()
 * takes: nothing is made for a part that a ".." takes away again. */
int directory_make(const char *path);
/* Works like directory_make(), and stores in *made how many parts at the path's end this call has made. */
int directory_make_counted(const char *path, unsigned *made);

/* Undoes directory_make_counted(): removes the last `made` directories of a resolved path, from the last one on, and stops at
 * the first that is not empty. */
void directory_unmake(const char *path, unsigned made);

/* 1: a directory is there (a link to one counts); 0: nothing, or something else; -1 after fail() where it cannot be told. */
int directory_exists(const char *path);

/* Returns 1 if `path` is a directory that exists and is not a symbolic link, otherwise 0. */
int directory_is_plain(const char *path);

/* Lists the names in a directory but for . and .., sorted by bytes. mem_free_texts() frees them. Returns their number,
 * or -1 after fail(). */
int64_t directory_list(const char *path, char ***names);

int directory_sync(const char *path);

/* Stores the bytes that this process may still write there; UINT64_MAX where the file system does not tell. */
int directory_space(const char *path, uint64_t *bytes);

#endif
