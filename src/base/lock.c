#define _GNU_SOURCE
#include "lock.h"

#include "file.h"
#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "retry.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 50, LOOK_MILLISECONDS = 10 };
static const char mark[] = "sptx-w2v lock\n"; /* the first line of a lock file */

/* ---- the process that has the lock ---- */

static int write_holder(const struct lock *lock) {
    char text[LOCK_HOLDER], host[128] = "?", since[64] = "?";
    time_t now = time(NULL);
    struct tm parts;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &parts)) strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
    size_t n = text_add(text, sizeof text, 0, "%sprocess %ld of %s, since %s\n", mark, (long)getpid(), host, since);
    if (retry_write_at(lock->fd, text, n, 0) || retry_truncate(lock->fd, n)) return fail_system("write", lock->path);
    return 0;
}

/* Checks that the open file is a lock file: it is empty (just made) or begins with our mark. Copies its second line to `holder`.
 * Returns 0, or -1 after fail(). */
static int read_holder(int fd, const char *path, char holder[LOCK_HOLDER]) {
    char text[LOCK_HOLDER];
    struct stat about;
    if (fstat(fd, &about)) return fail_system("look at", path);
    int64_t n = S_ISREG(about.st_mode) ? retry_read_at(fd, text, sizeof text - 1, 0) : 0;
    if (n < 0) return fail_system("read", path);
    text[n] = 0;
    if (!S_ISREG(about.st_mode) || (n && strncmp(text, mark, sizeof mark - 1)))
        return fail("'%s' is in the way: a lock file has this name, and this is none", path);
    snprintf(holder, LOCK_HOLDER, "%s", n ? text + sizeof mark - 1 : "");
    holder[strcspn(holder, "\n")] = 0;
    return 0;
}

/* Reads the name of the process that has locked the file. It may have locked just now and not have written its name yet, so this
 * waits a little. */
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

enum attempt { FAILED = -1, TAKEN, HELD, GONE }; /* HELD: another process has the lock; GONE: the file was removed after it was
                                                  * opened */

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
    int there = file_is_at(fd, path); /* releasing a lock removes its file, perhaps after this process has opened it */
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
