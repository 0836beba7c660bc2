#define _GNU_SOURCE
#include "file_inner.h"

#include "directory.h"
#include "memory.h"
#include "path.h"
#include "report.h"
#include "retry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ---- */

const char *file_kind(mode_t mode) {
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Opens a file of any kind, and stores its kind in *about. Does not wait for a pipe's other end. Returns a descriptor, or -1
 * after fail(). */
static int open_any(const char *path, int flags, struct stat *about) {
    int fd = retry_open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return fail_system(flags & O_ACCMODE ? "write" : "open", path);
    if (!fstat(fd, about)) return fd;
    fail_system("look at", path);
    close(fd);
    return -1;
}

static int open_regular(const char *path, int flags, struct stat *about) {
    int fd = open_any(path, flags, about);
    if (fd < 0 || S_ISREG(about->st_mode)) return fd;
    close(fd);
    return fail("'%s' is not a plain file but %s", path, file_kind(about->st_mode));
}

int file_open(const char *path, int flags) {
    struct stat about;
    return open_regular(path, flags, &about);
}

/* State of reading a file into memory. */
struct reading {
    const char *path;
    char *text;
    uint64_t used, capacity, most; /* most: a longer file is refused; 0: no limit */
    int fd;
    int is_pipe, had_writer; /* had_writer: the pipe has a writer now, or had one since it was opened */
    int waited;              /* how often the pipe was checked and had no writer yet */
};

/* Finds out why a pipe is empty. Returns 1 if its last writer has closed it. If its first writer has not opened it yet, waits a
 * little and returns 0. Returns -1 after fail() if no writer opens it in time. */
static int await_writer(struct reading *reading) {
    struct pollfd pipe = {.fd = reading->fd, .events = POLLIN};
    if (reading->had_writer || reading->used) return 1;
    if (reading->waited++ * LOOK_MILLISECONDS >= PIPE_SECONDS * 1000)
        return fail("'%s' is a pipe that nothing has written to for %d s", reading->path, PIPE_SECONDS);
    int got = poll(&pipe, 1, LOOK_MILLISECONDS);
    if (got < 0 && errno != EINTR) return fail_system("wait for", reading->path);
    if (got > 0) reading->had_writer = 1; /* the writer may have closed the pipe again already */
    return 0;
}

/* Waits until the pipe's writer has written something or has closed the pipe. */
static int await_bytes(struct reading *reading) {
    struct pollfd pipe = {.fd = reading->fd, .events = POLLIN};
    reading->had_writer = 1;
    return poll(&pipe, 1, -1) < 0 && errno != EINTR ? fail_system("wait for", reading->path) : 0;
}

static int take_piece(struct reading *reading) {
    if (mem_grow(&reading->text, &reading->capacity, reading->used + 2, 1, reading->path)) return -1;
    ssize_t n = read(reading->fd, reading->text + reading->used, reading->capacity - reading->used - 1);
    if (n < 0 && errno == EINTR) return 0;
    if (n < 0 && errno == EAGAIN) return await_bytes(reading);
    if (n < 0) return fail_system("read", reading->path);
    if (n == 0) return reading->is_pipe ? await_writer(reading) : 1;
    reading->used += (uint64_t)n;
    if (reading->most && reading->used > reading->most)
        return fail("'%s' is too long to be read: it has more than %" PRIu64 " bytes", reading->path, reading->most);
    return 0;
}

/* Reads an open file to its end, and closes fd. The file's size is used only as a first guess: files in /proc have size 0, and
 * other files may grow meanwhile. */
static char *read_open(int fd, const char *path, const struct stat *about, uint64_t most, uint64_t *length) {
    struct reading reading = {.path = path, .fd = fd, .most = most, .is_pipe = S_ISFIFO(about->st_mode)};
    uint64_t size = reading.is_pipe ? 0 : (uint64_t)about->st_size;
    if (most && size > most) size = most;
    int ended = mem_grow(&reading.text, &reading.capacity, size + 2, 1, path);
    while (!ended) ended = take_piece(&reading);
    close(fd);
    if (ended < 0) {
        free(reading.text);
        return NULL;
    }
    reading.text[reading.used] = 0;
    if (length) *length = reading.used;
    return reading.text;
}

char *file_read(const char *path, uint64_t *length) {
    struct stat about;
    int fd = open_regular(path, O_RDONLY, &about);
    return fd < 0 ? NULL : read_open(fd, path, &about, 0, length);
}

char *file_read_given(const char *path, uint64_t most, uint64_t *length) {
    struct stat about;
    int fd = open_any(path, O_RDONLY, &about);
    if (fd < 0) return NULL;
    if (S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode)) return read_open(fd, path, &about, most, length);
    close(fd);
    fail("'%s' is not a plain file but %s", path, file_kind(about.st_mode));
    return NULL;
}

int file_head(const char *path, char *head, uint64_t capacity) {
    struct stat about;
    int there = file_exists(path);
    if (there != 1) return there;
    if (lstat(path, &about)) return fail_system("look at", path);
    if (!S_ISREG(about.st_mode)) return 2;
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return -1;
    int64_t n = retry_read_at(fd, head, capacity - 1, 0);
    if (n < 0) fail_system("read", path);
    else head[n] = 0;
    close(fd);
    return n < 0 ? -1 : 1;
}

char *file_join(const char *directory, const char *name) {
    size_t n = strlen(directory), m = strlen(name);
    int slash = n && directory[n - 1] != '/';
    char *path = mem_alloc(n + (size_t)slash + m + 1, 1, "a path");
    if (path) sprintf(path, "%s%s%s", directory, slash ? "/" : "", name);
    return path;
}

int file_rename(const char *from, const char *to) {
    if (rename(from, to)) return fail_system("rename to", to);
    char *directory = path_parent(to);
    int result = directory ? directory_sync(directory) : -1;
    free(directory);
    return result;
}

/* ---- existence, size, removal ---- */

int file_exists(const char *path) {
    struct stat about;
    if (!lstat(path, &about)) return 1;
    return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? 0 : fail_system("look at", path);
}

int64_t file_size(const char *path) {
    struct stat about;
    if (stat(path, &about)) return fail_system("look at", path);
    return (int64_t)about.st_size;
}

int file_remove(const char *path) {
    if (unlink(path) && errno != ENOENT) return fail_system("remove", path);
    return 0;
}

int file_remove_in(const char *directory, const char *name) {
    char *path = file_join(directory, name);
    int result = path ? file_remove(path) : -1;
    free(path);
    return result;
}
