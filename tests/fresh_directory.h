/* fresh_directory: makes a directory for one test, where the system keeps temporary files. */
#ifndef SPTX_TESTS_FRESH_DIRECTORY_H
#define SPTX_TESTS_FRESH_DIRECTORY_H

#include "base/directory.h"
#include "base/memory.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Makes a directory sptx-NAME-XXXXXX (six random letters) in $TMPDIR or /tmp, and writes its path to `path`. Returns 0, or -1 on
 * failure. */
static inline int fresh_directory(char *path, size_t capacity, const char *name) {
    const char *base = getenv("TMPDIR");
    int length = snprintf(path, capacity, "%s/sptx-%s-XXXXXX", base && *base ? base : "/tmp", name);
    return length > 0 && (size_t)length < capacity && mkdtemp(path) ? 0 : -1;
}

/* Removes a directory with all that is in it; one that is absent is no error. The program itself never does that. */
static inline int directory_remove_tree(const char *path) {
    char **names;
    struct stat about;
    if (lstat(path, &about)) return errno == ENOENT ? 0 : -1;
    if (!S_ISDIR(about.st_mode)) return remove(path);
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count; i++) {
        char *inner = file_join(path, names[i]);
        if (!inner || directory_remove_tree(inner)) result = -1;
        free(inner);
    }
    mem_free_texts(names, count);
    return result || remove(path) ? -1 : 0;
}

#endif
