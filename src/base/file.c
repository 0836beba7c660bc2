#define _GNU_SOURCE
#include "file.h"

#include "directory.h"
#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "retry.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

enum { LINKS_MOST = 40 }; /* the same limit as Linux has */

/* State of resolving one path. */
struct walk {
    const char *path; /* as the caller gave it, for messages */
    char *done;       /* the resolved beginning of the path; "": the working directory; NULL until put_bytes() is called */
    uint64_t length, capacity;
    uint64_t missing; /* how many parts at the end of `done` do not exist */
    unsigned links;   /* number of links followed so far */
    int is_directory; /* 1: `done` is a directory */
};

static int walk(struct walk *walk, const char *rest);

static int refuse(const struct walk *w) {
    return fail_system("look at", w->path);
}

static int put_bytes(struct walk *w, const char *bytes, uint64_t length) {
    if (mem_grow(&w->done, &w->capacity, w->length + length + 1, 1, "a path")) return -1;
    memcpy(w->done + w->length, bytes, length);
    w->length += length;
    w->done[w->length] = 0;
    return 0;
}

static int put_part(struct walk *w, const char *name, uint64_t length) {
    int slash = w->length && w->done[w->length - 1] != '/';
    return (slash && put_bytes(w, "/", 1)) || put_bytes(w, name, length) ? -1 : 0;
}

/* Returns the index in `done` at which its last part begins. */
static uint64_t last_part(const struct walk *w) {
    uint64_t at = w->length;
    while (at && w->done[at - 1] != '/') at--;
    return at;
}

static void drop_part(struct walk *w) {
    uint64_t at = last_part(w);
    w->length = at > 1 ? at - 1 : at; /* "/" itself keeps its slash */
    w->done[w->length] = 0;
}

static int go_up(struct walk *w) {
    if (w->missing) {
        w->missing--;
        drop_part(w);
        return 0;
    }
    if (!w->is_directory) {
        errno = ENOTDIR;
        return refuse(w);
    }
    if (w->length == 1 && *w->done == '/') return 0;
    if (!w->length || !strcmp(w->done + last_part(w), "..")) return put_part(w, "..", 2);
    drop_part(w);
    return 0;
}

/* Returns 1 for links in /proc that stand for an open file, and whose text is not a path. */
static int is_of_proc(const char *link) {
    OWNED char *directory = path_parent(link);
    struct statfs about;
    return directory && !statfs(directory, &about) && about.f_type == PROC_SUPER_MAGIC;
}

/* Replaces the link at the end of `done`, whose name begins at byte `start`, by the path to which it points. */
static int follow(struct walk *w, uint64_t start) {
    char target[PATH_MAX];
    ssize_t n = readlink(w->done, target, sizeof target - 1);
    if (n < 0) return refuse(w);
    target[n] = 0;
    if (++w->links > LINKS_MOST) {
        errno = ELOOP;
        return refuse(w);
    }
    w->length = *target == '/' ? 0 : start;
    w->done[w->length] = 0;
    w->is_directory = 1;
    return walk(w, target);
}

static int go_down(struct walk *w, const char *name, uint64_t length) {
    struct stat about;
    uint64_t start = w->length;
    if (put_part(w, name, length)) return -1;
    if (w->missing) {
        w->missing++;
        return 0;
    }
    if (lstat(w->done, &about)) {
        if (errno != ENOENT && errno != ENOTDIR) return refuse(w);
        w->missing = 1;
        return 0;
    }
    w->is_directory = S_ISDIR(about.st_mode);
    if (!S_ISLNK(about.st_mode) || is_of_proc(w->done)) return 0;
    return follow(w, start);
}

static int walk(struct walk *w, const char *rest) {
    if (*rest == '/' && !w->length && put_bytes(w, "/", 1)) return -1;
    while (*rest) {
        uint64_t length = strcspn(rest, "/");
        int up = length == 2 && !memcmp(rest, "..", 2), stay = !length || (length == 1 && *rest == '.');
        if (!stay && (up ? go_up(w) : go_down(w, rest, length))) return -1;
        rest += length + (rest[length] == '/');
    }
    return 0;
}

char *path_resolve(const char *path) {
    struct walk w = {.path = path, .is_directory = 1};
    if (!*path) {
        fail("a path is empty");
        return NULL;
    }
    if (put_bytes(&w, "", 0) || walk(&w, path) || (!w.length && put_bytes(&w, ".", 1))) {
        free(w.done);
        return NULL;
    }
    return w.done;
}

char *path_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return mem_text(".", 1, "a path");
    return mem_text(path, slash == path ? 1 : (uint64_t)(slash - path), "a path");
}

char *path_of_program(void) {
    enum { LONGEST = 4096 };
    char *own = mem_zalloc(LONGEST, 1, "the path of the program");
    if (own && readlink("/proc/self/exe", own, LONGEST - 1) < 0) {
        fail_system("read", "/proc/self/exe");
        free(own);
        return NULL;
    }
    return own;
}

enum { LOOK_MILLISECONDS = 50 }; /* time between two checks whether the other end of a pipe has been opened */

/* ---- reading ---- */

/* Returns what messages call a file that is not a plain one: "a pipe". */
static const char *file_kind(mode_t mode) {
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Opens a file of any kind, and stores its properties in *about. Does not wait for the other end of a pipe. Returns a descriptor, or -1 after
 * fail(). */
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
    uint64_t used, capacity, most; /* most: longer files are refused; 0: no limit */
    int fd;
    int is_pipe, had_writer; /* had_writer: a writer has opened the pipe at least once since this process opened it */
    int waited;              /* how often the pipe was found without a writer */
};

/* Finds out why nothing can be read from a pipe. Returns 1 if its last writer has closed it. If no writer has opened it yet, waits a little and
 * returns 0. Returns -1 after fail() if none opens it in time. */
static int await_writer(struct reading *reading) {
    struct pollfd pipe = {.fd = reading->fd, .events = POLLIN};
    if (reading->had_writer || reading->used) return 1;
    if (reading->waited++ * LOOK_MILLISECONDS >= PIPE_SECONDS * 1000)
        return fail("'%s' is a pipe that nothing has written to for %d s", reading->path, PIPE_SECONDS);
    int got = poll(&pipe, 1, LOOK_MILLISECONDS);
    if (got < 0 && errno != EINTR) return fail_system("wait for", reading->path);
    if (got > 0) reading->had_writer = 1; /* a writer that may already have closed the pipe again */
    return 0;
}

static int take_piece(struct reading *reading) {
    if (mem_grow(&reading->text, &reading->capacity, reading->used + 2, 1, reading->path)) return -1;
    ssize_t n = read(reading->fd, reading->text + reading->used, reading->capacity - reading->used - 1);
    if (n < 0 && errno == EINTR) return 0;
    if (n < 0 && errno == EAGAIN) { /* the pipe has a writer: waits until it writes something or closes the pipe */
        struct pollfd pipe = {.fd = reading->fd, .events = POLLIN};
        reading->had_writer = 1;
        return poll(&pipe, 1, -1) < 0 && errno != EINTR ? fail_system("wait for", reading->path) : 0;
    }
    if (n < 0) return fail_system("read", reading->path);
    if (n == 0) return reading->is_pipe ? await_writer(reading) : 1;
    reading->used += (uint64_t)n;
    if (reading->most && reading->used > reading->most)
        return fail("'%s' is too long to be read: it has more than %" PRIu64 " bytes", reading->path, reading->most);
    return 0;
}

/* Reads an open file to its end, and closes it. The file's size is only a first guess: files in /proc have size 0, and other files may grow. */
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
    OWNED char *directory = path_parent(to);
    return directory ? directory_sync(directory) : -1;
}

/* ---- existence, size, removal ---- */

int file_exists(const char *path) {
    struct stat about;
    if (!lstat(path, &about)) return 1;
    return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? 0 : fail_system("look at", path);
}

int file_is_same(const char *a, const char *b) {
    struct stat of_a, of_b;
    if (!stat(a, &of_a) && !stat(b, &of_b))
        return (S_ISREG(of_a.st_mode) || S_ISDIR(of_a.st_mode)) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    OWNED char *at_a = path_resolve(a), *at_b = path_resolve(b);
    return at_a && at_b ? !strcmp(at_a, at_b) : -1;
}

int file_check_place(const char *path) {
    struct stat about;
    struct file_writer writer;
    if (!stat(path, &about) && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return 0;
    if (file_writer_open_given(&writer, path)) return -1;
    file_abandon(&writer);
    return 0;
}

int file_checksum(int fd, const char *path, uint64_t *hash) {
    XXH64_state_t *state = XXH64_createState();
    OWNED char *piece = mem_alloc(FILE_BUFFER, 1, "reading a file");
    int result = -1;
    ssize_t n = 0;
    if (!state) fail("not enough memory for a checksum");
    if (!state || !piece) goto out;
    XXH64_reset(state, 0);
    do {
        if (interrupt_check()) goto out;
        n = read(fd, piece, FILE_BUFFER);
        if (n > 0) XXH64_update(state, piece, (size_t)n);
    } while (n > 0 || (n < 0 && errno == EINTR));
    *hash = XXH64_digest(state);
    result = n < 0 ? fail_system("read", path) : 0;
out:
    XXH64_freeState(state);
    return result;
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
    OWNED char *path = file_join(directory, name);
    return path ? file_remove(path) : -1;
}

/* ---- opening ---- */

/* Length of a temporary file's name: the name of the file to be replaced, process id, random number, partial_end; longest name. */
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

/* Makes a new file beside `target`. Returns its descriptor, and its name in *own, which the caller frees; -1 with errno. */
static int make_own(const char *target, int flags, char **own) {
    *own = file_own_name(target);
    return *own ? retry_open(*own, flags | O_CREAT | O_EXCL | O_CLOEXEC) : -1;
}

int file_is_partial(const char *name, const char *of) {
    size_t length = strnlen(of, NAME_MOST - PARTIAL_BYTES), digits, number; /* file_own_name() cuts longer names */
    if (strncmp(name, of, length) || name[length] != '.') return 0;
    name += length + 1;
    digits = strspn(name, "0123456789");
    if (!digits || name[digits] != '-') return 0;
    name += digits + 1;
    number = strspn(name, "0123456789abcdef");
    return number == 16 && !strcmp(name + number, partial_end);
}

/* Gives the new file the owner and permissions of the file that it will replace. If this process may not set the owner, the new file gives no user
 * more permissions than before. */
static int keep_rights(struct file_writer *writer, const struct stat *old) {
    mode_t mode = old->st_mode & 0777;
    struct stat own;
    if (fstat(writer->fd, &own)) return fail_system("look at", writer->path);
    int other = own.st_uid != old->st_uid || own.st_gid != old->st_gid;
    if (other && fchown(writer->fd, old->st_uid, old->st_gid) && fchown(writer->fd, (uid_t)-1, old->st_gid))
        mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    return fchmod(writer->fd, mode) ? fail_system("set the rights of", writer->path) : 0;
}

/* Makes the temporary file. Its lock shows, until it is renamed, that this process is writing it. Before it is locked, file_remove_left() of
 * another process may take it for the file of a killed writer, and remove it; then another file is made. */
static int open_partial(struct file_writer *writer, const struct stat *old) {
    for (;;) {
        writer->fd = make_own(writer->target, O_WRONLY, &writer->partial);
        if (writer->fd < 0) return fail_system("write", writer->path);
        int taken = flock(writer->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (!taken && file_is_at(writer->fd, writer->partial)) return old ? keep_rights(writer, old) : 0;
        close(writer->fd);
        unlink(writer->partial);
        free(writer->partial);
    }
}

int file_open_unnamed(const char *path) {
    char *name, *parent = path_parent(path);
    int fd = parent ? retry_open(parent, O_TMPFILE | O_RDWR | O_CLOEXEC) : -1;
    free(parent);
    if (fd >= 0) return fd;
    report_clear(); /* for example, because the file system has no nameless files */
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

/* Opens a pipe for writing. That needs a process that reads from it: waits up to PIPE_SECONDS for one. */
static int open_pipe(const char *path) {
    for (int waited = 0;; waited++) {
        int fd = retry_open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 || errno != ENXIO) return fd < 0 ? fail_system("write", path) : fd;
        if (waited * LOOK_MILLISECONDS >= PIPE_SECONDS * 1000)
            return fail("'%s' is a pipe that nothing reads: start its reader first", path);
        poll(NULL, 0, LOOK_MILLISECONDS);
    }
}

static int open_target(struct file_writer *writer, int stream_too) {
    struct stat about;
    int there = !stat(writer->target, &about);
    const char *slash = strrchr(writer->path, '/'), *name = slash ? slash + 1 : writer->path;
    if (!there && errno == ENOENT && (!*name || !strcmp(name, ".") || !strcmp(name, ".."))) errno = EISDIR; /* only a directory is called so */
    if (!there && errno != ENOENT) return fail_system("write", writer->path);
    if (!there) return open_partial(writer, NULL);
    static const char of_own[] = "/proc/self/fd/"; /* names of files that this process has open, by their descriptors */
    int own = strncmp(writer->target, of_own, sizeof of_own - 1) ? -1 : atoi(writer->target + sizeof of_own - 1);
    if (S_ISREG(about.st_mode) && own < 0) {
        if (faccessat(AT_FDCWD, writer->target, W_OK, AT_EACCESS)) return fail_system("write", writer->path);
        return open_partial(writer, &about);
    }
    if (stream_too && own < 0 && S_ISFIFO(about.st_mode)) return (writer->fd = open_pipe(writer->path)) < 0 ? -1 : 0;
    if (stream_too && (own >= 0 || S_ISCHR(about.st_mode))) {
        /* A file that this process already has open is duplicated, so that writing continues at its current position; opening it again would start
         * at byte 0. */
        writer->fd = own < 0 ? open(writer->target, O_WRONLY | O_CLOEXEC | O_NOCTTY) : retry_duplicate(own);
        return writer->fd < 0 ? fail_system("write", writer->path) : 0;
    }
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

/* Asks the system to start writing the bytes to the disk, so that committing a large file is fast. It does not matter if this fails. */
static void start_disk(struct file_writer *writer) {
    if (writer->sent - writer->started < DISK_PIECE) return;
    sync_file_range(writer->fd, (off_t)writer->started, (off_t)(writer->sent - writer->started), SYNC_FILE_RANGE_WRITE);
    writer->started = writer->sent;
}

/* Writes all bytes, in several calls if necessary. Returns 0, or -1 with errno. */
static int write_all(int fd, const char *data, uint64_t length) {
    while (length) {
        ssize_t n = write(fd, data, length > (1 << 30) ? 1 << 30 : length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) { /* a pipe opened with O_NONBLOCK is full: waits until its reader has read */
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
    if (length) memcpy(writer->buffer + writer->used, data, length); /* no bytes may be at NULL */
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
    mem_free(writer->path, writer->target, writer->partial, writer->buffer);
    *writer = (struct file_writer){.fd = -1};
}

int file_finish(struct file_writer *writer) {
    if (writer->failed || write_out(writer, writer->buffer, writer->used)) return -1;
    writer->used = 0;
    return writer->partial && retry_sync(writer->fd) ? fail_system("sync", writer->path) : 0;
}

int file_commit(struct file_writer *writer) {
    int result = file_finish(writer);
    if (!result) {
        int fd = writer->fd, locked = writer->partial ? retry_duplicate(fd) : -1; /* the lock stays until the file has its name */
        writer->fd = -1;
        if (retry_close(fd)) result = fail_system("close", writer->path);
        else if (writer->partial) result = file_rename(writer->partial, writer->target);
        if (result && writer->partial) unlink(writer->partial);
        if (locked >= 0) close(locked);
    }
    file_abandon(writer);
    return result;
}

void file_remove_left(const char *path) {
    int failed_before = report_exit_code();
    char **names = NULL, *target = path_resolve(path), *parent = target ? path_parent(target) : NULL;
    const char *slash = target ? strrchr(target, '/') : NULL;
    int64_t count = parent ? directory_list(parent, &names) : 0;
    for (int64_t i = 0; i < count; i++) {
        OWNED char *left = file_is_partial(names[i], slash ? slash + 1 : target) ? file_join(parent, names[i]) : NULL;
        int fd = left ? retry_open(left, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1; /* O_NONBLOCK: it may be a pipe */
        struct stat about;
        if (fd >= 0 && !fstat(fd, &about) && S_ISREG(about.st_mode) && !flock(fd, LOCK_EX | LOCK_NB)) unlink(left);
        if (fd >= 0) close(fd);
    }
    mem_free_texts(names, count > 0 ? count : 0);
    mem_free(target, parent);
    if (!failed_before) report_clear(); /* what cannot be removed stays */
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
        retry_truncate(fd, (uint64_t)before.st_size); /* removes the half line, which would also damage the next line */
    }
    if (retry_close(fd) && !result) result = fail_system("close", path);
    return result;
}

int file_part_of(struct file_part *part, const struct file_writer *writer) {
    *part = (struct file_part){writer->path, retry_duplicate(writer->fd)};
    return part->fd < 0 ? fail_system("write", part->path) : 0;
}

int file_part_join(struct file_part *part, const char *path, const char *partial) {
    *part = (struct file_part){path, retry_open(partial, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
    return part->fd < 0 ? -1 : 0;
}

void file_part_close(struct file_part *part) {
    if (part->fd >= 0) close(part->fd);
    part->fd = -1;
}

int file_part_write(struct file_part *part, uint64_t offset, const void *data, uint64_t length) {
    if (retry_write_at(part->fd, data, length, offset)) return fail_system("write", part->path);
    /* Asks the system to start writing to the disk now, so that syncing a large file later is fast. It does not matter if this fails. */
    sync_file_range(part->fd, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE);
    return 0;
}

int file_part_sync(struct file_part *part) {
    return retry_sync(part->fd) ? fail_system("sync", part->path) : 0;
}

int file_part_resize(struct file_part *part, uint64_t bytes) {
    return retry_truncate(part->fd, bytes) ? fail_system("write", part->path) : 0;
}

/* ---- the table of maps that the signal's handler reads ----
 *
 * A signal handler may interrupt anything, so it may neither lock nor allocate. In this table it finds the file to which an address belongs. An entry
 * is valid while `data` is not NULL: that is set last and cleared first.
 */

enum { WATCHED = 64 }; /* number of maps for which SIGBUS is explained by a message; more maps work, but without it */
static struct watched {
    _Atomic(const char *) data;
    uint64_t size;
    char *path; /* owned */
} watched[WATCHED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a map is added to or removed from the table */

static void watch(const struct file_map *map, const char *path) {
    char *kept = mem_text(path, strlen(path), "a path");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WATCHED && kept; i++) {
        if (atomic_load(&watched[i].data)) continue;
        watched[i].size = map->size;
        watched[i].path = kept;
        kept = NULL;
        atomic_store(&watched[i].data, map->data);
    }
    pthread_mutex_unlock(&lock);
    free(kept);
}

static void forget(const struct file_map *map) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WATCHED; i++) {
        if (atomic_load(&watched[i].data) != map->data) continue;
        atomic_store(&watched[i].data, NULL);
        free(watched[i].path);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    const char *at = info->si_addr;
    for (int i = 0; i < WATCHED; i++) {
        const char *data = atomic_load(&watched[i].data);
        if (!data || at < data || at >= data + watched[i].size) continue;
        report_dying("'", watched[i].path, "' cannot be read any more: another program has cut it short, or its disk fails");
        _exit(1);
    }
    signal(number, SIG_DFL); /* the address is in no map, so the signal ends the process as usual */
    raise(number);
}

void file_map_catch(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

/* ---- mapping ---- */

static int map_open(struct file_map *map, int fd, const char *path) {
    struct stat about;
    if (fstat(fd, &about)) return fail_system("look at", path);
    if (!about.st_size) return 0;
    void *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return fail_system("map", path);
    *map = (struct file_map){data, (uint64_t)about.st_size};
    watch(map, path);
    return 0;
}

int file_map_open(struct file_map *map, const char *path) {
    *map = (struct file_map){NULL, 0};
    int fd = file_open(path, O_RDONLY), result = fd < 0 ? -1 : map_open(map, fd, path);
    if (fd >= 0) close(fd);
    return result;
}

char *file_map_memory(struct file_map *map, uint64_t size, const char *what) {
    char text[TEXT_BYTES];
    char *data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *map = (struct file_map){NULL, 0};
    if (data == MAP_FAILED) {
        fail("not enough memory for %s: %s", what, text_of_bytes(text, size));
        return NULL;
    }
    *map = (struct file_map){data, size};
    return data;
}

void file_map_close(struct file_map *map) {
    if (map->data) {
        forget(map);
        munmap((void *)map->data, map->size);
    }
    *map = (struct file_map){NULL, 0};
}

enum { PIECE = 1 << 20 };

/* Reads the next bytes into `piece`. Returns their number, 0 at the end, -1 after fail(). */
static int64_t read_piece(int from, char *piece, const char *what) {
    ssize_t n;
    do n = read(from, piece, PIECE);
    while (n < 0 && errno == EINTR && !interrupt_check());
    return n < 0 ? fail("cannot read %s: %s", what, strerror(errno)) : n;
}

static int copy(int from, int to, const char *directory, const char *what) {
    OWNED char *piece = mem_alloc(PIECE, 1, "reading");
    int64_t n = piece ? 1 : -1;
    for (uint64_t at = 0; n > 0; at += (uint64_t)n) {
        n = interrupt_check() ? -1 : read_piece(from, piece, what);
        if (n > 0 && retry_write_at(to, piece, (uint64_t)n, at))
            n = fail("cannot keep %s in '%s': %s; TMPDIR names another directory", what, directory, strerror(errno));
    }
    return n < 0 ? -1 : 0;
}

const char *spool_directory(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}

int spool_open(void) {
    OWNED char *path = file_join(spool_directory(), "sptx-spool");
    return path ? file_open_unnamed(path) : -1;
}

int spool_all(int from, const char *what) {
    int to = spool_open();
    if (to < 0 || !copy(from, to, spool_directory(), what)) return to;
    close(to);
    return -1;
}
