/* fresh_directory: a directory of a test's own, where the system keeps what is temporary. */
#ifndef SPTX_TESTS_FRESH_DIRECTORY_H
#define SPTX_TESTS_FRESH_DIRECTORY_H

#include "base/directory.h"

#include <stdio.h>
#include <stdlib.h>

/* Makes sptx-NAME-, with six letters of mkdtemp's behind it, in $TMPDIR or /tmp and leaves its path in `path`. -1 where
 * that fails. */
static inline int fresh_directory(char *path, size_t room, const char *name) {
    const char *base = getenv("TMPDIR");
    int length = snprintf(path, room, "%s/sptx-%s-XXXXXX", base && *base ? base : "/tmp", name);
    return length > 0 && (size_t)length < room && mkdtemp(path) ? 0 : -1;
}

#endif
