#define _GNU_SOURCE
#include "directory.h"

#include "file.h"
#include "memory.h"
#include "path.h"
#include "report.h"
#include "retry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int directory_exists(const char *path) {
    struct stat about;
    if (!stat(path, &about)) return S_ISDIR(about.st_mode);
    return errno == ENOENT || errno == ENOTDIR ? 0 : fail_system("look at", path);
}

int directory_is_plain(const char *path) {
    struct stat about;
    return !lstat(path, &about) && S_ISDIR(about.st_mode);
}

/* ---- making ---- */

/* Makes one directory, whose parent exists, and adds 1 to *made. If the directory exists already, perhaps since another process
 * was faster, sets *made to 0. */
static int make_one(const char *path, unsigned *made) {
    int there = directory_exists(path);
    if (there < 0) return -1;
    if (!there && !mkdir(path, 0777)) {
        ++*made;
        return 0;
    }
    if (!there && errno != EEXIST) return fail_system("make directory", path);
    *made = 0; /* this directory and its parents are not this call's own; only deeper ones may be */
    return 0;
}

/* Makes all directories of a resolved path, from the top down. `path` is cut and restored on the way. */
static int make_all(char *path, unsigned *made) {
    for (char *at = path;; at++) {
        char kept = *at;
        if (at == path || (kept && kept != '/')) continue;
        *at = 0;
        if (make_one(path, made)) {
            char *slash = strrchr(path, '/');
            if (slash) *slash = 0;
            directory_unmake(path, *made);
            return -1;
        }
        *at = kept;
        if (!kept) break;
    }
    int there = directory_exists(path);
    if (!there) fail("'%s' is there and is not a directory", path);
    return there == 1 ? 0 : -1;
}

int directory_make_counted(const char *path, unsigned *made) {
    char *resolved = path_resolve(path);
    *made = 0;
    int result = resolved ? make_all(resolved, made) : -1;
    free(resolved);
    return result;
}

int directory_make(const char *path) {
    return directory_make_counted(path, &(unsigned){0});
}

void directory_unmake(const char *path, unsigned made) {
    char *copy = mem_text(path, strlen(path), "a path");
    while (copy && made-- && !rmdir(copy)) {
        char *slash = strrchr(copy, '/');
        if (!slash) break;
        *slash = 0;
    }
    free(copy);
}

int directory_sync(const char *path) {
    int fd = retry_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_system("open directory", path);
    int result = retry_sync(fd);
    if (result) fail_system("sync directory", path);
    close(fd);
    return result;
}

int directory_space(const char *path, uint64_t *bytes) {
    struct statvfs about;
    if (statvfs(path, &about)) return fail_system("look at the disk of", path);
    *bytes = about.f_blocks ? (uint64_t)(geteuid() ? about.f_bavail : about.f_bfree) * about.f_frsize : UINT64_MAX;
    return 0;
}

/* ---- listing ---- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int64_t directory_list(const char *path, char ***names) {
    struct dirent **entries;
    *names = NULL;
    int n = scandir(path, &entries, NULL, NULL);
    if (n < 0) return fail_system("read directory", path);
    char **list = mem_zalloc((uint64_t)n + 1, sizeof *list, "a directory's names");
    int64_t kept = 0;
    int failed = !list;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (!failed && strcmp(name, ".") && strcmp(name, "..")) {
            list[kept] = mem_text(name, strlen(name), "a directory's names");
            if (list[kept]) kept++;
            else failed = 1;
        }
        free(entries[i]);
    }
    free(entries);
    if (failed) {
        mem_free_texts(list, kept);
        return -1;
    }
    if (kept > 1) qsort(list, (size_t)kept, sizeof *list, by_bytes);
    *names = list;
    return kept;
}
