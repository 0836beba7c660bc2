/* directory_mark: a file that tells of a directory that this program has made it, so that the directory may be removed again. A
 * link to such a directory is not marked: nothing is removed through it.
 *
 *   DIRECTORY/<name>   begins with `text`, and holds nothing else
 */
#ifndef SPTX_DIRECTORY_MARK_H
#define SPTX_DIRECTORY_MARK_H

struct directory_mark {
    const char *name, *text;
};

/* Makes the directory, whose name must be free, and its mark. */
int directory_mark_make(const char *path, const struct directory_mark *mark);

/* Returns 1 for a directory that has the mark, or that a killed process left before the mark was there: it is empty, or holds the
 * partial file of the mark. 0: it is absent or something else. -1 after fail(). */
int directory_mark_is_there(const char *path, const struct directory_mark *mark);

/* Removes the mark and then the directory, whose other files the caller has removed. Where files are left the directory stays,
 * after a warning. */
int directory_mark_remove(const char *path, const struct directory_mark *mark);

#endif
