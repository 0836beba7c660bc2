/* path: resolves a path and its links, before a file or directory is made or opened. */
#ifndef SPTX_PATH_H
#define SPTX_PATH_H

/* Returns a path to the same file without links, without "." and, except at its beginning, without "..": "out/../run/" becomes
 * "run". A path below the working directory stays relative.
 *
 * No part of the path has to exist. A ".." after a part that does not exist removes that part, so "absent/../run" becomes "run",
 * and no directory has to be made for it. A link is followed even if it leads to nothing. Links in /proc that are not paths
 * (/proc/self/fd/1) are kept.
 *
 * The caller frees the result. Returns NULL after fail(), for example if a part may not be examined.
 */
char *path_resolve(const char *path);

/* Returns the directory that holds `path`, for the caller to free; NULL after fail(). */
char *path_parent(const char *path);

/* Returns the path of the running program, for the caller to free; NULL after fail(). */
char *path_of_program(void);

#endif
