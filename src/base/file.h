/* file: reads, writes and removes files. Error messages contain the path and the system's reason.
 *
 * Writing is atomic: a file_writer writes to a temporary file beside PATH (PATH.<process>-<random>.partial). file_commit() syncs it, renames it to
 * PATH and syncs the directory, so PATH contains either all of its old bytes or all new ones. A writer that is not committed leaves no file. If PATH
 * is a link, the file to which it points is replaced. A new file gets the owner and permissions of the file that it replaces.
 */
#ifndef SPTX_FILE_H
#define SPTX_FILE_H

#include <stdint.h>
#include <sys/stat.h>

/* path: resolves a path and its links, before a file or directory is made or opened. */

/* Returns a path to the same file without links, without "." and, except at its beginning, without "..": "out/../run/" becomes
 * "run". A path below the working directory stays relative.
 *
 * No part of the path has to exist. A ".." cancels a part before it that does not exist, so "absent/../run" becomes "run", without making a
 * directory. A link is followed even if it points to nothing. Links in /proc that are not paths (/proc/self/fd/1) are kept.
 *
 * The caller frees the result. Returns NULL after fail(), for example if a part may not be examined.
 */
char *path_resolve(const char *path);

/* Returns the directory that contains `path`; the caller frees it. NULL after fail(). */
char *path_parent(const char *path);

/* Returns the path of the running program; the caller frees it. NULL after fail(). */
char *path_of_program(void);

/* Opens a plain file like open(2) (with O_CLOEXEC; new files get mode 0666). Returns a descriptor, or -1 after fail(). Refuses other kinds of
 * files at once: a pipe would wait for its other end, and a device may never end. */
int file_open(const char *path, int flags);

/* Reads a whole file into memory, followed by a NUL. *length: bytes of the file; may be NULL. The caller frees the result. NULL after fail(). */
char *file_read(const char *path, uint64_t *length);

/* Does the same as file_read(), for a path that the user gave, which may also be a pipe such as a shell's <(command). A pipe is read until its
 * writers close it, and refused if no writer opens it within PIPE_SECONDS. A file of more than `most` bytes is refused (0: no limit). */
char *file_read_given(const char *path, uint64_t most, uint64_t *length);
enum { PIPE_SECONDS = 3 };

/* Reads the first bytes of a file, at most capacity - 1, followed by a NUL. Returns 1 for a plain file; 2 for anything else, such as a link, which
 * is not read; 0 if the name does not exist; -1 after fail(). */
int file_head(const char *path, char *head, uint64_t capacity);

struct file_writer {
    char *path;             /* path as the caller gave it; NULL: closed; owned, like `target`, `partial` and `buffer` */
    char *target, *partial; /* target: the resolved path; partial: the temporary file beside it; NULL: bytes are written directly to `target` */
    char *buffer;           /* [FILE_BUFFER] */
    uint64_t used;          /* bytes in the buffer */
    uint64_t written;       /* number of bytes passed to file_write() so far, including those in the buffer */
    uint64_t sent, started; /* bytes passed to the system; of these, bytes that it has started to write to the disk */
    int fd;
    int failed; /* 1: a write has failed and fail() was called; further calls do nothing */
};
enum { FILE_BUFFER = 1 << 20, DISK_PIECE = 16 << 20 };

int file_writer_open(struct file_writer *writer, const char *path);
/* Does the same as file_writer_open(), for a `path` that may also be a pipe or a character device (/dev/stdout, >(command), /dev/null). Bytes are
 * then written there directly, and file_abandon() cannot undo that. A pipe without a reader within PIPE_SECONDS is refused. */
int file_writer_open_given(struct file_writer *writer, const char *path);
int file_write(struct file_writer *writer, const void *data, uint64_t length);
int file_print(struct file_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Overwrites bytes that were written before, such as a header whose numbers are known only at the end. */
int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
/* Writes bytes at an offset that file_write() has not reached; any thread may call it. When all threads are done, file_skip() moves the position
 * of file_write() behind these bytes. */
int file_write_apart(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
int file_skip(struct file_writer *writer, uint64_t length);
int file_finish(struct file_writer *writer);   /* writes and syncs all bytes without renaming, so that file_commit() can hardly fail */
int file_commit(struct file_writer *writer);   /* calls file_finish(), and renames the file to PATH; always closes the writer */
void file_abandon(struct file_writer *writer); /* may be called on a closed writer */

/* Creates a nameless file in the directory of `path`, open for reading and writing. The system removes it when its last descriptor and mapping are
 * closed, even if the process is killed. Returns a descriptor, or -1 after fail(). */
int file_open_unnamed(const char *path);

/* Returns 1 if `path`, with links followed, is the file that is open as `fd`; 0 if it is another one or does not exist; -1 with errno, without
 * calling fail(). */
int file_is_at(int fd, const char *path);

/* Returns an unused name beside `path` for a writer's temporary file; the caller frees it. NULL after fail(). */
char *file_own_name(const char *path);

/* Returns 1 if `name` could be a temporary file, in the same directory, of a writer of the file `of`, perhaps of a killed process. */
int file_is_partial(const char *name, const char *of);

/* Removes the temporary files that killed writers of `path` have left beside it. Files of running writers, which are locked, stay. */
void file_remove_left(const char *path);

/* Writes a whole small file atomically. */
int file_replace(const char *path, const void *data, uint64_t length);

/* Appends to a log file, which is created if it does not exist. If a write fails, the file is cut back to its old length if possible. Returns 0,
 * or -1 after fail(). */
int file_append(const char *path, const void *data, uint64_t length);

/* Returns 1 if a file of any kind has this name, even a link to nothing; 0 if not; -1 after fail() if the system does not say. */
int file_exists(const char *path);
/* Returns 1 if both paths, with links followed, name the same file, which need not exist; otherwise 0, always for pipes and devices, since several
 * writers may use them. Returns -1 after fail(). */
int file_is_same(const char *a, const char *b);
/* Checks, before work that takes long, that a file can be written at a path that the user gave. Leaves nothing behind, and does not touch pipes
 * and devices. Returns 0, or -1 after fail(). */
int file_check_place(const char *path);
/* Computes the XXH64 of an open file's bytes from its position on. path: for messages. Returns 0, or -1 after fail(), also if the caller asked to
 * stop (interrupt.h). */
int file_checksum(int fd, const char *path, uint64_t *hash);
int64_t file_size(const char *path); /* returns the size in bytes, or -1 after fail() */

int file_remove(const char *path); /* it is no error if the file does not exist */
int file_remove_in(const char *directory, const char *name);
int file_rename(const char *from, const char *to); /* syncs the directory that holds `to` */

/* Returns "directory/name", which the caller frees; NULL after fail(). */
char *file_join(const char *directory, const char *name);

/* ---- mapped files ----
 *
 * file_map maps a whole file read-only. Its bytes stay in the system's page cache, so a corpus may be larger than memory.
 *
 * If another program shortens a mapped file, or its disk fails, no call returns an error: reading the bytes raises the signal SIGBUS, which ends the
 * program without a message, unless file_map_catch() was called.
 */

struct file_map {
    const char *data; /* NULL if the file is empty */
    uint64_t size;
};
int file_map_open(struct file_map *map, const char *path);
/* Opens a map of `size` zero bytes in memory, without a file, for data that is first written and then read like a mapped file. `what` names the
 * data in the error message. Returns the writable bytes, or NULL after fail(). */
char *file_map_memory(struct file_map *map, uint64_t size, const char *what);
void file_map_close(struct file_map *map); /* may be called on a struct of zeros */

/* Makes SIGBUS end the process with exit code 1 and a message that names the mapped file. Only programs call this; a library leaves signals to its
 * caller. */
void file_map_catch(void);

/* ---- a file written by several processes ----
 *
 * file_part: lets several processes write one file, each its own range of bytes. One process makes the file with a file_writer and commits it; all
 * of them, including that one, write through a file_part. */

struct file_part {
    const char *path; /* path for messages; owned by the caller */
    int fd;           /* -1 when closed */
};

/* Opens the file_part of the process that owns the writer. Returns 0, or -1 after fail(). */
int file_part_of(struct file_part *part, const struct file_writer *writer);
/* Opens the file_part of another process. `path` is the file's final path, `partial` the temporary path that the writer uses. Returns 0, or -1 if
 * this process cannot open `partial`. */
int file_part_join(struct file_part *part, const char *path, const char *partial);
void file_part_close(struct file_part *part); /* may be called twice */

int file_part_write(struct file_part *part, uint64_t offset, const void *data, uint64_t length);
int file_part_sync(struct file_part *part);
int file_part_resize(struct file_part *part, uint64_t bytes); /* bytes that no process writes are zeros */

/* ---- copies of data that can be read only once ----
 *
 * spool: nameless files in $TMPDIR or /var/tmp. The system removes such a file when its descriptor is closed, even if the process is killed. */

/* Opens an empty nameless file. Returns its descriptor, or -1 after fail(). */
int spool_open(void);
const char *spool_directory(void); /* returns the directory of these files, for messages */

/* Copies everything that can be read from `from` into a new nameless file. `what` names the data in error messages. Returns its descriptor, or -1
 * after fail(). */
int spool_all(int from, const char *what);

#endif
