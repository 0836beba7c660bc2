/* faults: a library for LD_PRELOAD that fails the Nth call of a kind, once or from there on, and says which call it
 * was.
 *
 *   FAULT_KIND=write FAULT_NUMBER=3 FAULT_ERROR=ENOSPC LD_PRELOAD=build/faults.so build/sptx-w2v train ...
 *
 *   FAULT_KIND     open read write print sync rename unlink mkdir stat list truncate map memory thread lock close
 *   FAULT_FUNCTION counts only the calls of this function (pwrite), which must be of that kind
 *   FAULT_NUMBER   number of the call that fails, counted from the beginning of main(); 0: no call fails
 *   FAULT_ERROR    the error: EIO, ENOSPC, ENOMEM, EINTR, EAGAIN, EMFILE, EACCES, ENOLCK. SHORT: only half of the bytes are
 *                  transferred; KILL: the process is killed instead of making the call; STOP: it is stopped instead
 *   FAULT_LASTING  1: every later call of the kind fails, too (as on a disk that stays full, or without memory)
 *   FAULT_LOG      a file that gets lines: "fired KIND NUMBER FUNCTION" and the program's return addresses, and at the
 *                  end "counted KIND NUMBER" for each kind
 *   FAULT_SYNC     skip: fsync() and similar calls return at once (tests kill processes, not machines)
 *   FAULT_SLEEP    whole seconds that each pwrite takes
 *   FAULT_CLOCK    whole seconds by which each write advances the monotonic clock: a slow disk without waiting
 *
 * Calls of the program and of its libraries are counted from main() to the end of the process; calls that the C library makes for
 * itself are not. The order of calls of one thread is always the same; that of several threads is not.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind {
    OPEN,
    READ,
    WRITE,
    PRINT,
    SYNC,
    RENAME,
    UNLINK,
    MKDIR,
    STAT,
    LIST,
    TRUNCATE,
    MAP,
    MEMORY,
    THREAD,
    LOCK,
    CLOSE,
    KINDS
};
static const char *const kind_names[KINDS] = {"open",   "read",   "write", "print", "sync",     "rename",
                                              "unlink", "mkdir",  "stat",  "list",  "truncate", "map",
                                              "memory", "thread", "lock",  "close"};
enum { SHORT = -1, DIE = -2, HALT = -3, FRAMES = 24 };
static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM}, {"EINTR", EINTR}, {"EAGAIN", EAGAIN},
              {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"ENOLCK", ENOLCK}, {"SHORT", SHORT}, {"KILL", DIE}, {"STOP", HALT}};

static int in_main; /* 1 from the first instruction of main() on */
static enum kind wanted = KINDS;
static uint64_t wanted_number;
static int wanted_error, lasting, skip_sync, write_seconds, sleep_seconds;
static const char *log_path, *wanted_function;
static uintptr_t program_base;
static _Atomic uint64_t counted[KINDS];

/* ---- what the environment asks for, and what has happened ---- */

static void refuse_environment(const char *name, const char *value) {
    dprintf(2, "faults: %s = '%s' is not known\n", name, value);
    _exit(99);
}

static void read_environment(void) {
    const char *kind = getenv("FAULT_KIND"), *error = getenv("FAULT_ERROR"), *number = getenv("FAULT_NUMBER");
    log_path = getenv("FAULT_LOG");
    wanted_function = getenv("FAULT_FUNCTION");
    lasting = getenv("FAULT_LASTING") != NULL;
    skip_sync = getenv("FAULT_SYNC") != NULL;
    write_seconds = getenv("FAULT_CLOCK") ? atoi(getenv("FAULT_CLOCK")) : 0;
    sleep_seconds = getenv("FAULT_SLEEP") ? atoi(getenv("FAULT_SLEEP")) : 0;
    if (!kind) return;
    for (wanted = 0; wanted < KINDS && strcmp(kind, kind_names[wanted]); wanted++) {
    }
    if (wanted == KINDS) refuse_environment("FAULT_KIND", kind);
    for (size_t i = 0; error && i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(error, errors[i].name)) wanted_error = errors[i].number;
    if (!wanted_error) refuse_environment("FAULT_ERROR", error ? error : "");
    wanted_number = number ? strtoull(number, NULL, 10) : 0;
}

/* Writes by a direct system call, which is not counted and does not fail. */
static void log_line(const char *line, int length) {
    long fd = log_path ? syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0) return;
    syscall(SYS_write, fd, line, (size_t)length);
    syscall(SYS_close, fd);
}

/* Writes the return addresses relative to the program's file, which is the form that addr2line needs. */
static void log_fault(const char *function) {
    static __thread int inside;
    char line[1024];
    void *frames[FRAMES];
    if (inside++) return;
    int n = snprintf(line, sizeof line, "fired %s %llu %s", kind_names[wanted], (unsigned long long)wanted_number,
                     function);
    int depth = backtrace(frames, FRAMES);
    for (int i = 0; i < depth && n < (int)sizeof line - 24; i++) {
        Dl_info about;
        if (dladdr(frames[i], &about) && (uintptr_t)about.dli_fbase == program_base)
            n += snprintf(line + n, sizeof line - (size_t)n, " %#lx",
                          (unsigned long)((uintptr_t)frames[i] - program_base - 1));
    }
    line[n++] = '\n';
    log_line(line, n);
    inside--;
}

/* Returns 0 if the call must be made; otherwise the error with which it fails, or SHORT. */
static int fault(enum kind kind, const char *function) {
    if (!in_main || (kind == wanted && wanted_function && strcmp(function, wanted_function))) return 0;
    uint64_t number = atomic_fetch_add(&counted[kind], 1) + 1;
    if (sleep_seconds && !strcmp(function, "pwrite")) sleep((unsigned)sleep_seconds);
    if (kind != wanted || !wanted_number || (lasting ? number < wanted_number : number != wanted_number)) return 0;
    if (number == wanted_number) log_fault(function);
    if (wanted_error == DIE || wanted_error == HALT) kill(getpid(), wanted_error == DIE ? SIGKILL : SIGSTOP);
    return wanted_error;
}

/* ---- main ---- */

typedef int main_function(int, char **, char **);
static main_function *real_main;

static int counting_main(int argc, char **argv, char **environment) {
    in_main = 1;
    return real_main(argc, argv, environment);
}

/* The first object in the loader's list is the program. */
static int find_base(struct dl_phdr_info *info, size_t size, void *base) {
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    int (*start)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
        dlsym(RTLD_NEXT, "__libc_start_main");
    void *frames[1];
    read_environment();
    dl_iterate_phdr(find_base, &program_base);
    backtrace(frames, 1); /* loads the unwinder, which allocates memory, before calls are counted */
    real_main = main;
    return start(counting_main, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) static void log_counts(void) {
    in_main = 0;
    for (int i = 0; i < KINDS; i++) {
        char line[64];
        log_line(line, snprintf(line, sizeof line, "counted %s %llu\n", kind_names[i], (unsigned long long)counted[i]));
    }
}

/* ---- the calls ---- */

/* Wraps a function that fails with errno set, as most do. `real` is the next function of that name, behind this
 * library. `arguments` and `names` are written in brackets; `names` are passed on, and may use the variable
 * `error`: SHORT if only half of the bytes are to be transferred, 0 otherwise. */
#define WRAP(kind, result, bad, name, arguments, names)                                                                \
    result name arguments {                                                                                            \
        static result(*real) arguments;                                                                                \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        int error = fault(kind, #name);                                                                                \
        if (error > 0) {                                                                                               \
            errno = error;                                                                                             \
            return bad;                                                                                                \
        }                                                                                                              \
        return real names;                                                                                             \
    }
/* Wraps a function that returns the error instead of setting errno. */
#define WRAP_CODE(kind, name, arguments, names)                                                                        \
    int name arguments {                                                                                               \
        static int(*real) arguments;                                                                                   \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        int error = fault(kind, #name);                                                                                \
        return error > 0 ? error : real names;                                                                         \
    }
#define HALF(count) (error == SHORT ? ((count) + 1) / 2 : (count))

WRAP(READ, ssize_t, -1, read, (int fd, void *data, size_t length), (fd, data, HALF(length)))
WRAP(READ, ssize_t, -1, pread, (int fd, void *data, size_t length, off_t at), (fd, data, HALF(length), at))
WRAP(WRITE, ssize_t, -1, write, (int fd, const void *data, size_t length), (fd, data, HALF(length)))
WRAP(WRITE, ssize_t, -1, pwrite, (int fd, const void *data, size_t length, off_t at), (fd, data, HALF(length), at))
WRAP(WRITE, ssize_t, -1, writev, (int fd, const struct iovec *parts, int count), (fd, parts, HALF(count)))

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_MONOTONIC) now->tv_sec += (time_t)counted[WRITE] * write_seconds;
    return result;
}

/* The mode is an argument only if the call may make a file. */
#define TAKE_MODE(mode, flags)                                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode_t mode = (flags)&O_CREAT ? va_arg(rest, mode_t) : 0;                                                          \
    va_end(rest)

static int opened(const char *function, int at, const char *path, int flags, mode_t mode) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "openat");
    int error = fault(OPEN, function);
    if (error <= 0) return real(at, path, flags, mode);
    errno = error;
    return -1;
}
int open(const char *path, int flags, ...) {
    TAKE_MODE(mode, flags);
    return opened("open", AT_FDCWD, path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
    TAKE_MODE(mode, flags);
    return opened("openat", at, path, flags, mode);
}
WRAP(OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
WRAP(OPEN, FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
WRAP(OPEN, int, -1, mkstemp, (char *path), (path))
WRAP(OPEN, int, -1, mkostemp, (char *path, int flags), (path, flags))

/* The file is closed even if the call fails, as on Linux. */
int close(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "close");
    int error = fault(CLOSE, "close"), result = real(fd);
    if (error <= 0) return result;
    errno = error;
    return -1;
}

#define WRAP_SYNC(name, arguments, names)                                                                              \
    int name arguments {                                                                                               \
        static int(*real) arguments;                                                                                   \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        int error = fault(SYNC, #name);                                                                                \
        if (error > 0) errno = error;                                                                                  \
        return error > 0 ? -1 : skip_sync ? 0 : real names;                                                            \
    }
WRAP_SYNC(fsync, (int fd), (fd))
WRAP_SYNC(fdatasync, (int fd), (fd))
WRAP_SYNC(syncfs, (int fd), (fd))
WRAP_SYNC(msync, (void *start, size_t length, int flags), (start, length, flags))
WRAP_SYNC(sync_file_range, (int fd, off_t at, off_t length, unsigned flags), (fd, at, length, flags))

WRAP(RENAME, int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(RENAME, int, -1, renameat, (int at, const char *from, int to_at, const char *to), (at, from, to_at, to))
WRAP(RENAME, int, -1, renameat2, (int at, const char *from, int to_at, const char *to, unsigned flags),
     (at, from, to_at, to, flags))
WRAP(RENAME, int, -1, link, (const char *from, const char *to), (from, to))
WRAP(RENAME, int, -1, linkat, (int at, const char *from, int to_at, const char *to, int flags),
     (at, from, to_at, to, flags))
WRAP(RENAME, int, -1, symlink, (const char *from, const char *to), (from, to))
WRAP(UNLINK, int, -1, unlink, (const char *path), (path))
WRAP(UNLINK, int, -1, unlinkat, (int at, const char *path, int flags), (at, path, flags))
WRAP(UNLINK, int, -1, remove, (const char *path), (path))
WRAP(UNLINK, int, -1, rmdir, (const char *path), (path))
WRAP(MKDIR, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(MKDIR, int, -1, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
WRAP(MKDIR, char *, NULL, mkdtemp, (char *path), (path))
WRAP(MKDIR, int, -1, chmod, (const char *path, mode_t mode), (path, mode))
WRAP(MKDIR, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))

WRAP(STAT, int, -1, stat, (const char *path, struct stat *about), (path, about))
WRAP(STAT, int, -1, lstat, (const char *path, struct stat *about), (path, about))
WRAP(STAT, int, -1, fstat, (int fd, struct stat *about), (fd, about))
WRAP(STAT, int, -1, fstatat, (int at, const char *path, struct stat *about, int flags), (at, path, about, flags))
WRAP(STAT, int, -1, statx, (int at, const char *path, int flags, unsigned mask, struct statx *about),
     (at, path, flags, mask, about))
WRAP(STAT, int, -1, statvfs, (const char *path, struct statvfs *about), (path, about))
WRAP(STAT, int, -1, fstatvfs, (int fd, struct statvfs *about), (fd, about))
WRAP(STAT, int, -1, access, (const char *path, int mode), (path, mode))
WRAP(STAT, int, -1, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags))
WRAP(STAT, ssize_t, -1, readlink, (const char *path, char *out, size_t length), (path, out, length))
WRAP(STAT, char *, NULL, realpath, (const char *path, char *out), (path, out))
WRAP(STAT, char *, NULL, getcwd, (char *out, size_t length), (out, length))
WRAP(LIST, DIR *, NULL, opendir, (const char *path), (path))
WRAP(LIST, DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(LIST, struct dirent *, NULL, readdir, (DIR * directory), (directory))
WRAP(LIST, int, -1, scandir,
     (const char *path, struct dirent ***names, int (*keep)(const struct dirent *),
      int (*order)(const struct dirent **, const struct dirent **)),
     (path, names, keep, order))
WRAP(TRUNCATE, int, -1, truncate, (const char *path, off_t length), (path, length))
WRAP(TRUNCATE, int, -1, ftruncate, (int fd, off_t length), (fd, length))
WRAP(TRUNCATE, int, -1, fallocate, (int fd, int mode, off_t at, off_t length), (fd, mode, at, length))
WRAP(TRUNCATE, off_t, -1, lseek, (int fd, off_t at, int from), (fd, at, from))
WRAP_CODE(TRUNCATE, posix_fallocate, (int fd, off_t at, off_t length), (fd, at, length))
WRAP(MAP, void *, MAP_FAILED, mmap, (void *start, size_t length, int access, int flags, int fd, off_t at),
     (start, length, access, flags, fd, at))
WRAP(MAP, int, -1, madvise, (void *start, size_t length, int advice), (start, length, advice))
WRAP(MAP, int, -1, mlock, (const void *start, size_t length), (start, length))
WRAP(MEMORY, void *, NULL, malloc, (size_t length), (length))
WRAP(MEMORY, void *, NULL, calloc, (size_t count, size_t length), (count, length))
WRAP(MEMORY, void *, NULL, realloc, (void *old, size_t length), (old, length))
WRAP(MEMORY, void *, NULL, aligned_alloc, (size_t step, size_t length), (step, length))
WRAP_CODE(MEMORY, posix_memalign, (void **out, size_t step, size_t length), (out, step, length))
WRAP_CODE(THREAD, pthread_create,
          (pthread_t * thread, const pthread_attr_t *how, void *(*start)(void *), void *context),
          (thread, how, start, context))
WRAP(LOCK, int, -1, flock, (int fd, int operation), (fd, operation))

int fcntl(int fd, int command, ...) {
    static int (*real)(int, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "fcntl");
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int error = fault(LOCK, "fcntl");
    if (error <= 0) return real(fd, command, argument);
    errno = error;
    return -1;
}

/* ---- streams: failures of stdout are PRINT, those of files that are read are READ; stderr never fails ---- */

/* Fails a write to a stream as the C library does: the stream's error indicator is set from then on. */
static int stream_fault(enum kind kind, const char *function, FILE *stream) {
    enum { ERROR_SEEN = 0x20 }; /* glibc's _IO_ERR_SEEN */
    int error = stream == stderr ? 0 : fault(kind, function);
    if (error <= 0) return 0;
    stream->_flags |= ERROR_SEEN;
    errno = error;
    return 1;
}
#define WRAP_STREAM(kind, result, bad, name, arguments, stream, names)                                                 \
    result name arguments {                                                                                            \
        static result(*real) arguments;                                                                                \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        return stream_fault(kind, #name, stream) ? bad : real names;                                                   \
    }
WRAP_STREAM(READ, char *, NULL, fgets, (char *out, int length, FILE *stream), stream, (out, length, stream))
WRAP_STREAM(READ, size_t, 0, fread, (void *out, size_t size, size_t count, FILE *stream), stream,
            (out, size, count, stream))
WRAP_STREAM(READ, ssize_t, -1, getline, (char **line, size_t *length, FILE *stream), stream, (line, length, stream))
WRAP_STREAM(PRINT, size_t, 0, fwrite, (const void *data, size_t size, size_t count, FILE *stream), stream,
            (data, size, count, stream))
WRAP_STREAM(PRINT, int, EOF, fputs, (const char *text, FILE *stream), stream, (text, stream))
WRAP_STREAM(PRINT, int, EOF, fputc, (int letter, FILE *stream), stream, (letter, stream))
WRAP_STREAM(PRINT, int, EOF, putc, (int letter, FILE *stream), stream, (letter, stream))
WRAP_STREAM(PRINT, int, EOF, puts, (const char *text), stdout, (text))
WRAP_STREAM(PRINT, int, EOF, putchar, (int letter), stdout, (letter))
WRAP_STREAM(PRINT, int, EOF, fflush, (FILE * stream), stream, (stream))
WRAP_STREAM(PRINT, int, -1, vfprintf, (FILE * stream, const char *format, va_list rest), stream, (stream, format, rest))

/* vfprintf above decides if this fails. */
int fprintf(FILE *stream, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    int result = vfprintf(stream, format, rest);
    va_end(rest);
    return result;
}
int printf(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    int result = vfprintf(stdout, format, rest);
    va_end(rest);
    return result;
}
