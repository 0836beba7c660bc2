/* file_inner: declarations that file.c and file_write.c share. No other file includes this. */
#ifndef SPTX_FILE_INNER_H
#define SPTX_FILE_INNER_H

#include "file.h"

#include <sys/stat.h>

enum { LOOK_MILLISECONDS = 50 }; /* time between two checks whether the other end of a pipe is open */

/* Returns the kind of a file that is not a plain one, for messages: "a pipe". */
const char *file_kind(mode_t mode);

#endif
