#define _GNU_SOURCE
#include "file_inner.h"

#include "memory.h"
#include "path.h"
#include "report.h"
#include "retry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- opening ---- */

/* A temporary file's name: the name of the file that it will replace, the process id, a random number, and partial_end. */
enum { PARTIAL_BYTES = 64, NAME_MOST = 255 };
static const char partial_end[] = ".partial";

char *file_own_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int before = (int)(name - path), length = (int)strnlen(name, NAME_MOST - PARTIAL_BYTES);
    size_t capacity = (size_t)before + NAME_MOST + 1;
    uint64_t number;
    char *own = mem_alloc(capacity, 1, "a path");
    if (own && getrandom(&number, sizeof number, 0) != sizeof number) {
        fail_system("name a file beside", path);
        free(own);
        return NULL;
    }
    if (own)
        snprintf(own, capacity, "%.*s%.*s.%ld-%016" PRIx64 "%s", before, path, length, name, (long)getpid(), number, partial_end);
    return own;
}

/* Makes a new file beside `target`. Returns its descriptor, and in *own its name, which the caller frees; -1 with errno. */
static int make_own(const char *target, int flags, char **own) {
    *own = file_own_name(target);
    return *own ? retry_open(*own, flags | O_CREAT | O_EXCL | O_CLOEXEC) : -1;
}

int file_is_partial(const char *name, const char *of) {
    size_t length = strlen(of), digits, number;
    if (strncmp(name, of, length) || name[length] != '.') return 0;
    name += length + 1;
    digits = strspn(name, "0123456789");
    if (!digits || name[digits] != '-') return 0;
    name += digits + 1;
    number = strspn(name, "0123456789abcdef");
    return number == 16 && !strcmp(name + number, partial_end);
}

/* Gives the new file the owner and the rights of the file that it will replace. If this process may not set the owner, the new
 * file gives no user more rights than the old file did. */
static int keep_rights(struct file_writer *writer, const struct stat *old) {
    mode_t mode = old->st_mode & 0777;
    struct stat own;
    if (fstat(writer->fd, &own)) return fail_system("look at", writer->path);
    int other = own.st_uid != old->st_uid || own.st_gid != old->st_gid;
    if (other && fchown(writer->fd, old->st_uid, old->st_gid) && fchown(writer->fd, (uid_t)-1, old->st_gid))
        mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    return fchmod(writer->fd, mode) ? fail_system("set the rights of", writer->path) : 0;
}

static int open_partial(struct file_writer *writer, const struct stat *old) {
    writer->fd = make_own(writer->target, O_WRONLY, &writer->partial);
    if (writer->fd < 0) return fail_system("write", writer->path);
    return old ? keep_rights(writer, old) : 0;
}

/* Makes a nameless file in the directory of `path`. Returns -1 with errno, for example if the file system cannot do this. */
static int make_unnamed(const char *path) {
    char *parent = path_parent(path);
    int fd = parent ? retry_open(parent, O_TMPFILE | O_RDWR | O_CLOEXEC) : -1;
    free(parent);
    return fd;
}

int file_open_unnamed(const char *path) {
    int fd = make_unnamed(path);
    if (fd >= 0) return fd;
    report_clear();
    char *name;
    fd = make_own(path, O_RDWR, &name);
    if (fd < 0) fail_system("make a file beside", path);
    else if (unlink(name)) {
        fail_system("remove", name);
        close(fd);
        fd = -1;
    }
    free(name);
    return fd;
}

int file_is_at(int fd, const char *path) {
    struct stat open, named;
    if (fstat(fd, &open)) return -1;
    if (stat(path, &named)) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    return open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* Opens a pipe for writing. Waits until it has a reader, up to PIPE_SECONDS: without a reader it cannot be opened. */
static int open_pipe(const char *path) {
    for (int waited = 0;; waited++) {
        int fd = retry_open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 || errno != ENXIO) return fd < 0 ? fail_system("write", path) : fd;
        if (waited * LOOK_MILLISECONDS >= PIPE_SECONDS * 1000)
            return fail("'%s' is a pipe that nothing reads: start its reader first", path);
        poll(NULL, 0, LOOK_MILLISECONDS);
    }
}

/* Returns the descriptor if `target` is a name in /proc of a file that this process has open (/proc/self/fd/1); otherwise -1. */
static int own_file(const char *target) {
    static const char own[] = "/proc/self/fd/";
    return strncmp(target, own, sizeof own - 1) ? -1 : atoi(target + sizeof own - 1);
}

/* Opens a pipe, a device or a file that this process has open. Such a file is duplicated, so that writing continues at its
 * current position; opening it anew would begin at its first byte. */
static int open_stream(struct file_writer *writer, mode_t mode) {
    int own = own_file(writer->target);
    if (own < 0 && S_ISFIFO(mode)) return (writer->fd = open_pipe(writer->path)) < 0 ? -1 : 0;
    writer->fd = own < 0 ? open(writer->target, O_WRONLY | O_CLOEXEC | O_NOCTTY) : retry_duplicate(own);
    return writer->fd < 0 ? fail_system("write", writer->path) : 0;
}

/* Returns 1 for a path that can only be a directory's: it ends with a slash, "." or "..". */
static int ends_as_directory(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

static int open_target(struct file_writer *writer, int stream_too) {
    struct stat about;
    int there = !stat(writer->target, &about);
    if (!there && errno == ENOENT && ends_as_directory(writer->path)) errno = EISDIR;
    if (!there && errno != ENOENT) return fail_system("write", writer->path);
    if (!there) return open_partial(writer, NULL);
    int own = own_file(writer->target) >= 0;
    if (S_ISREG(about.st_mode) && !own) {
        if (faccessat(AT_FDCWD, writer->target, W_OK, AT_EACCESS)) return fail_system("write", writer->path);
        return open_partial(writer, &about);
    }
    if (stream_too && (own || S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) return open_stream(writer, about.st_mode);
    return fail("cannot write '%s': it is no plain file but %s", writer->path, file_kind(about.st_mode));
}

static int open_writer(struct file_writer *writer, const char *path, int stream_too) {
    *writer = (struct file_writer){.fd = -1};
    writer->path = mem_text(path, strlen(path), "a path");
    writer->buffer = mem_alloc(FILE_BUFFER, 1, "a write buffer");
    writer->target = path_resolve(path);
    if (writer->path && writer->buffer && writer->target && !open_target(writer, stream_too)) return 0;
    file_abandon(writer);
    return -1;
}

int file_writer_open(struct file_writer *writer, const char *path) {
    return open_writer(writer, path, 0);
}

int file_writer_open_given(struct file_writer *writer, const char *path) {
    return open_writer(writer, path, 1);
}

/* ---- writing and committing ---- */

/* Asks the disk to begin writing the bytes that the system holds, so that committing a large file is quick. If this hint fails,
 * nothing is lost. */
static void start_disk(struct file_writer *writer) {
    if (writer->sent - writer->started < DISK_PIECE) return;
    sync_file_range(writer->fd, (off_t)writer->started, (off_t)(writer->sent - writer->started), SYNC_FILE_RANGE_WRITE);
    writer->started = writer->sent;
}

/* Writes all bytes, in as many calls as the system needs. Returns 0, or -1 with errno. */
static int write_all(int fd, const char *data, uint64_t length) {
    while (length) {
        ssize_t n = write(fd, data, length > (1 << 30) ? 1 << 30 : length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) { /* a pipe opened with O_NONBLOCK is full: wait until its reader has read */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n == 0) errno = EIO;
        if (n <= 0) return -1;
        data += n;
        length -= (uint64_t)n;
    }
    return 0;
}

static int write_out(struct file_writer *writer, const char *data, uint64_t length) {
    if (write_all(writer->fd, data, length)) {
        writer->failed = 1;
        return fail_system("write", writer->path);
    }
    writer->sent += length;
    start_disk(writer);
    return 0;
}

int file_write(struct file_writer *writer, const void *data, uint64_t length) {
    if (writer->failed) return -1;
    writer->written += length;
    if (length >= FILE_BUFFER - writer->used) {
        if (write_out(writer, writer->buffer, writer->used)) return -1;
        writer->used = 0;
        if (length >= FILE_BUFFER) return write_out(writer, data, length);
    }
    memcpy(writer->buffer + writer->used, data, length);
    writer->used += length;
    return 0;
}

int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length) {
    if (writer->failed || write_out(writer, writer->buffer, writer->used)) return -1;
    writer->used = 0;
    if (!retry_write_at(writer->fd, data, length, offset)) return 0;
    writer->failed = 1;
    return fail_system("write", writer->path);
}

int file_write_apart(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length) {
    if (retry_write_at(writer->fd, data, length, offset)) return fail_system("write", writer->path);
    sync_file_range(writer->fd, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE); /* as in start_disk() */
    return 0;
}

int file_skip(struct file_writer *writer, uint64_t length) {
    if (writer->failed || write_out(writer, writer->buffer, writer->used)) return -1;
    writer->used = 0;
    writer->written += length;
    writer->sent += length;
    writer->started = writer->sent;
    return lseek(writer->fd, (off_t)length, SEEK_CUR) < 0 ? fail_system("write", writer->path) : 0;
}

int file_print(struct file_writer *writer, const char *format, ...) {
    char line[1024], *text = line;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n >= (int)sizeof line) {
        va_start(args, format);
        if (vasprintf(&text, format, args) < 0) text = NULL;
        va_end(args);
    }
    if (n < 0 || !text) return fail("cannot format a line of '%s'", writer->path);
    int result = file_write(writer, text, (uint64_t)n);
    if (text != line) free(text);
    return result;
}

void file_abandon(struct file_writer *writer) {
    if (writer->fd >= 0) {
        close(writer->fd);
        if (writer->partial) unlink(writer->partial);
    }
    free(writer->path);
    free(writer->target);
    free(writer->partial);
    free(writer->buffer);
    *writer = (struct file_writer){.fd = -1};
}

static int put_in_place(struct file_writer *writer) {
    int fd = writer->fd;
    writer->fd = -1;
    if (retry_close(fd)) return fail_system("close", writer->path);
    return writer->partial ? file_rename(writer->partial, writer->target) : 0;
}

int file_finish(struct file_writer *writer) {
    if (writer->failed || write_out(writer, writer->buffer, writer->used)) return -1;
    writer->used = 0;
    return writer->partial && retry_sync(writer->fd) ? fail_system("sync", writer->path) : 0;
}

int file_commit(struct file_writer *writer) {
    int result = file_finish(writer);
    if (!result) {
        result = put_in_place(writer);
        if (result && writer->partial) unlink(writer->partial);
    }
    file_abandon(writer);
    return result;
}

int file_replace(const char *path, const void *data, uint64_t length) {
    struct file_writer writer;
    if (file_writer_open(&writer, path)) return -1;
    if (file_write(&writer, data, length)) {
        file_abandon(&writer);
        return -1;
    }
    return file_commit(&writer);
}

int file_append(const char *path, const void *data, uint64_t length) {
    struct stat before;
    int fd = file_open(path, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0) return -1;
    int result = fstat(fd, &before) ? fail_system("look at", path) : 0;
    if (!result && write_all(fd, data, length)) {
        result = fail_system("write", path);
        retry_truncate(fd, (uint64_t)before.st_size); /* half a line would also spoil the line that is appended next */
    }
    if (retry_close(fd) && !result) result = fail_system("close", path);
    return result;
}
