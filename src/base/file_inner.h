/* file_inner: what file.c, which looks and reads, and file_write.c share. For nobody else. */
#ifndef SPTX_FILE_INNER_H
#define SPTX_FILE_INNER_H

#include "file.h"

#include <sys/stat.h>

enum { LOOK_MILLISECONDS = 50 }; /* between two looks at a pipe whose other end is not there */

/* What is no plain file, for a sentence: "a pipe". */
const char *file_kind(mode_t mode);

#endif
