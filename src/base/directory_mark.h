/* directory_mark: a file in a directory that shows that this program created the directory and may remove it again. A symbolic
 * link to a marked directory does not count as marked, so that nothing is removed through a link.
 *
 *   DIRECTORY/<name>   the mark: a file whose content is exactly `text`
 */
#ifndef SPTX_DIRECTORY_MARK_H
#define SPTX_DIRECTORY_MARK_H

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
