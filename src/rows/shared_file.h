/* shared_file: whether all ranks see one file system, for files that they write or read together. Ranks of one machine do; those
 * of several may each have a disk of their own under the same names.
 */
#ifndef SPTX_SHARED_FILE_H
#define SPTX_SHARED_FILE_H

#include "base/file_part.h"
#include "kernels/ranks.h"

/* By all ranks. The first one has made `writer` (the others give NULL), whose file has nothing from byte `at` on yet. Every rank
 * opens it by the name that only this file has and writes a number there, and the first one reads them all back: where it
 * finds them, each rank has its `part`, and all get their count. Otherwise 1, and only the first has a part. 0 after fail(). */
unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at);

/* By all ranks: how many of them find the very file of this name that the first one finds: all, or 1. 0 after fail(). */
unsigned shared_file_readers(struct ranks *ranks, const char *path);

#endif
