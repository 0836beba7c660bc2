/* file_inner: what file.c (looks and reads) and file_write.c share. No other file includes this. */
#ifndef SPTX_FILE_INNER_H
#define SPTX_FILE_INNER_H

#include "file.h"

#include <sys/stat.h>

enum { LOOK_MILLISECONDS = 50 }; /* between two looks at a pipe whose other end has not come */

/* Names the kind of a file that is not a plain one, for a sentence: "a pipe". */
const char *file_kind(mode_t mode);

#endif
