/* directory: making, listing and removing directories, every error said once with the path and the system's reason. */
#ifndef SPTX_DIRECTORY_H
#define SPTX_DIRECTORY_H

#include <stdint.h>

/* The directory and those above it; not an error where it is there. `path` may be anything path_resolve() takes: nothing
 * is made for a part that a ".." takes away again. */
int directory_make(const char *path);
/* The same; *made: how many parts at its end this call has made. */
int directory_make_counted(const char *path, unsigned *made);

/* Removes the last `made` parts of a resolved path as far as they are empty: what directory_make_counted() has made, and
 * nothing that another has put there. */
void directory_unmake(const char *path, unsigned made);

/* 1: a directory is there (a link to one counts); 0: nothing, or something else; -1 after fail() where it cannot be told. */
int directory_exists(const char *path);

/* Names in a directory but for . and .., sorted by bytes. mem_free_texts() frees them. -1 after fail(). */
int64_t directory_list(const char *path, char ***names);

int directory_sync(const char *path);

/* Bytes that this process may still write below it; UINT64_MAX where the file system does not tell. */
int directory_space(const char *path, uint64_t *bytes);

#endif
