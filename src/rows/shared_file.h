/* shared_file: finds out if all ranks see the same file system, for files that they write or read together. Ranks of one machine
 * do; ranks of different machines may each have a disk of their own under the same paths. */
#ifndef SPTX_SHARED_FILE_H
#define SPTX_SHARED_FILE_H

#include "base/file_part.h"
#include "kernels/ranks.h"

/* Lets all ranks write one file, if they see it. The first rank has opened `writer`, whose file has nothing from byte `at` on; the
 * other ranks pass NULL. Every rank opens the file by its unique name and writes a number; the first rank reads all numbers back.
 *
 * Returns the number of ranks that may write the file: all, each through its `part`; or 1, the first rank. 0 after fail(). All
 * ranks call it together.
 */
unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at);

/* Returns the number of ranks that can read the file: all, if every rank finds the same file with this name; otherwise 1.
 * Returns 0 after fail(). All ranks call it together. */
unsigned shared_file_readers(struct ranks *ranks, const char *path);

#endif
