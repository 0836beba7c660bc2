#define _GNU_SOURCE
#include "directory.h"

#include "file.h"
#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "retry.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
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

/* Makes one directory, whose parent exists, and adds 1 to *made. Sets *made to 0 if it exists already, for example because another process was
 * faster. */
static int make_one(const char *path, unsigned *made) {
    int there = directory_exists(path);
    if (there < 0) return -1;
    if (!there && !mkdir(path, 0777)) {
        ++*made;
        return 0;
    }
    if (!there && errno != EEXIST) return fail_system("make directory", path);
    *made = 0; /* this call has not made this directory or its parents; it may make deeper ones */
    return 0;
}

/* Makes all directories of a resolved path, from the top down. `path` is cut and restored meanwhile. */
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
    OWNED char *resolved = path_resolve(path);
    *made = 0;
    return resolved ? make_all(resolved, made) : -1;
}

int directory_make(const char *path) {
    return directory_make_counted(path, &(unsigned){0});
}

void directory_unmake(const char *path, unsigned made) {
    OWNED char *copy = mem_text(path, strlen(path), "a path");
    while (copy && made-- && !rmdir(copy)) {
        char *slash = strrchr(copy, '/');
        if (!slash) break;
        *slash = 0;
    }
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
    *bytes = about.f_blocks ? (uint64_t)about.f_bavail * about.f_frsize : UINT64_MAX;
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

enum { LOOKS = 50, LOOK_MILLISECONDS = 10 };
static const char lock_head[] = "sptx-w2v lock\n"; /* the first line of a lock file */

/* ---- the process that has the lock ---- */

static int write_holder(const struct lock *lock) {
    char text[LOCK_HOLDER], host[128] = "?", since[64] = "?";
    time_t now = time(NULL);
    struct tm parts;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &parts)) strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
    size_t n = text_add(text, sizeof text, 0, "%sprocess %ld of %s, since %s\n", lock_head, (long)getpid(), host, since);
    if (retry_write_at(lock->fd, text, n, 0) || retry_truncate(lock->fd, n)) return fail_system("write", lock->path);
    return 0;
}

/* Checks that the open file is a lock file: empty (just made), or beginning with our lock_head. Copies its second line to `holder`. Returns 0, or
 * -1 after fail(). */
static int read_holder(int fd, const char *path, char holder[LOCK_HOLDER]) {
    char text[LOCK_HOLDER];
    struct stat about;
    if (fstat(fd, &about)) return fail_system("look at", path);
    int64_t n = S_ISREG(about.st_mode) ? retry_read_at(fd, text, sizeof text - 1, 0) : 0;
    if (n < 0) return fail_system("read", path);
    text[n] = 0;
    if (!S_ISREG(about.st_mode) || (n && strncmp(text, lock_head, sizeof lock_head - 1)))
        return fail("'%s' is in the way: a lock file has this name, and this is none", path);
    snprintf(holder, LOCK_HOLDER, "%s", n ? text + sizeof lock_head - 1 : "");
    holder[strcspn(holder, "\n")] = 0;
    return 0;
}

/* Reads the name of the process that has locked the file. Waits a little, since that process may have locked it just now and not written its name
 * yet. */
static int await_holder(int fd, const char *path, char holder[LOCK_HOLDER]) {
    for (int looks = 0; looks < LOOKS; looks++) {
        if (read_holder(fd, path, holder)) return -1;
        if (*holder) return 0;
        poll(NULL, 0, LOOK_MILLISECONDS);
    }
    snprintf(holder, LOCK_HOLDER, "another process");
    return 0;
}

/* ---- locking ---- */

static int open_file(const char *path) {
    int fd = retry_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? fail_system("write", path) : fd;
}

enum attempt { FAILED = -1, TAKEN, HELD, GONE }; /* HELD: another process holds the lock; GONE: the file was removed after this process opened it */

static enum attempt attempt(int fd, const char *path, int wait, char holder[LOCK_HOLDER]) {
    if (read_holder(fd, path, holder)) return FAILED;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK && wait) {
            if (interrupt_check()) return FAILED;
            poll(NULL, 0, LOOK_MILLISECONDS);
            continue;
        }
        if (errno == EWOULDBLOCK) return await_holder(fd, path, holder) ? FAILED : HELD;
        if (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP) return (enum attempt)fail_system("lock", path);
        warn("the file system of '%s' knows no locks: nothing keeps a second process away", path);
        break;
    }
    int there = file_is_at(fd, path); /* 0: the file was removed, which releases a lock, perhaps after this process had opened it */
    return there < 0 ? (enum attempt)fail_system("look at", path) : there ? TAKEN : GONE;
}

static int take_lock(struct lock *lock, const char *path, int wait, char holder[LOCK_HOLDER]) {
    enum attempt result = GONE;
    *lock = (struct lock){NULL, -1};
    while (result == GONE) {
        lock->fd = open_file(path);
        if (lock->fd < 0) return -1;
        result = attempt(lock->fd, path, wait, holder);
        if (result == TAKEN) {
            lock->path = mem_text(path, strlen(path), "a path");
            if (lock->path && !write_holder(lock)) return 0;
            result = FAILED;
            unlink(path);
        }
        close(lock->fd);
    }
    free(lock->path);
    *lock = (struct lock){NULL, -1};
    return result == HELD ? 1 : -1;
}

int lock_try(struct lock *lock, const char *path, char holder[LOCK_HOLDER]) {
    return take_lock(lock, path, 0, holder);
}

int lock_wait(struct lock *lock, const char *path) {
    char holder[LOCK_HOLDER];
    return take_lock(lock, path, 1, holder);
}

int lock_move(struct lock *lock, const char *path) {
    char *moved = mem_text(path, strlen(path), "a path");
    if (!moved) return -1;
    free(lock->path);
    lock->path = moved;
    return 0;
}

int lock_stands(const struct lock *lock) {
    int there = file_is_at(lock->fd, lock->path);
    return there < 0 ? fail_system("look at", lock->path) : there;
}

void lock_give(struct lock *lock) {
    if (!lock->path) return;
    if (file_is_at(lock->fd, lock->path) && unlink(lock->path) && errno != ENOENT)
        warn("cannot remove '%s': %s; it keeps nobody away", lock->path, strerror(errno));
    close(lock->fd);
    free(lock->path);
    *lock = (struct lock){NULL, -1};
}

enum { TRIES = 100 }; /* how often to try again, since other processes may remove the directory before it is locked */

int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]) {
    OWNED char *file = file_join(path, name);
    int taken = -1;
    for (int tries = 0; file && tries < TRIES; tries++) {
        if (directory_make_counted(path, made)) break;
        taken = lock_try(lock, file, holder);
        if (taken >= 0 || directory_exists(path)) break;
        if (tries + 1 < TRIES) report_clear();
    }
    return taken;
}

enum { HEAD = 256 }; /* buffer size, larger than the text of any mark */

int directory_mark_make(const char *path, const struct directory_mark *mark) {
    OWNED char *file = file_join(path, mark->name);
    int result = file ? 0 : -1;
    if (!result && mkdir(path, 0777)) result = fail_system("make directory", path);
    if (!result) result = file_replace(file, mark->text, strlen(mark->text));
    return result;
}

static int is_just_made(const char *path, const struct directory_mark *mark) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 1;
    for (int64_t i = 0; i < count && result; i++) result = file_is_partial(names[i], mark->name);
    mem_free_texts(names, count);
    return result;
}

int directory_mark_is_there(const char *path, const struct directory_mark *mark) {
    if (!directory_is_plain(path)) return 0;
    char head[HEAD] = "", *file = file_join(path, mark->name);
    int kind = file ? file_head(file, head, sizeof head) : -1;
    free(file);
    int has = kind < 0 ? -1 : kind == 1 && !strcmp(head, mark->text);
    return has ? has : is_just_made(path, mark);
}

/* Removes half-written files of a mark that killed processes have left. */
static int remove_partials(const char *path, const struct directory_mark *mark) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (file_is_partial(names[i], mark->name)) result = file_remove_in(path, names[i]);
    mem_free_texts(names, count);
    return result;
}

int directory_mark_remove(const char *path, const struct directory_mark *mark) {
    if (remove_partials(path, mark) || file_remove_in(path, mark->name)) return -1;
    if (!rmdir(path) || errno == ENOENT) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return fail_system("remove", path);
    warn("'%s' stays, because it holds files that this program has not written", path);
    return 0;
}
