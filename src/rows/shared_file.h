/* shared_file: finds out if all ranks see one file system, for files that they write or read together. Ranks of one machine do;
 * ranks of several machines may each have a disk of their own under the same paths. */
#ifndef SPTX_SHARED_FILE_H
#define SPTX_SHARED_FILE_H

#include "base/file_part.h"
#include "kernels/ranks.h"

/* All ranks call it together. The first one has made `writer` (the others pass NULL), whose file has nothing from byte
 * `at` on yet. Every rank opens the file by the name that only this file has and writes a number there; the first one
 * reads them all back.
 *
 * Returns how many ranks may write the file: all, each of which then has its `part`, or 1, the first one. 0 after
 * fail().
 */
unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at);

/* All ranks call it together. Returns how many of them find the same file of this name: all, or 1. 0 after fail(). */
unsigned shared_file_readers(struct ranks *ranks, const char *path);

#endif
