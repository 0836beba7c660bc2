/* path: resolves a path and its links, before a file or directory is made or opened. */
#ifndef SPTX_PATH_H
#define SPTX_PATH_H

/* Returns a path to the same place without links, without "." and without ".." but for leading ones: "out/../run/"
 * becomes "run", and a path below the working directory stays relative.
 *
 * Neither the last part nor those before it need to exist. A ".." behind a part that does not exist takes it away
 * again, so that "absent/../run" is "run" and nothing has to be made for it. A link is followed, also where it leads to
 * nothing; links of /proc, which are no paths (/proc/self/fd/1), stay as they are.
 *
 * The caller frees. Returns NULL after fail(), also where a part cannot be looked at.
 */
char *path_resolve(const char *path);

/* Returns the directory that holds `path`, for the caller to free; NULL after fail(). */
char *path_parent(const char *path);

/* Returns the path of the running program, for the caller to free; NULL after fail(). */
char *path_of_program(void);

#endif
