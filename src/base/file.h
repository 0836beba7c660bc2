/* file: reads, writes and removes files. Each error message has the path and the system's reason.
 *
 * Writing is atomic: a file_writer writes to a temporary file beside PATH (PATH.<process>-<random>.partial). file_commit() syncs
 * it, renames it to PATH and syncs the directory, so PATH always has either all of its old bytes or all of the new ones. A writer
 * that is not committed leaves no file. If PATH is a link, the file that it leads to is replaced, and the link stays. A new file
 * gets the owner and rights of the file that it replaces.
 */
#ifndef SPTX_FILE_H
#define SPTX_FILE_H

#include <stdint.h>
#include <sys/stat.h>

/* path: resolves a path and its links, before a file or directory is made or opened. */

/* Returns a path to the same file without links, without "." and, except at its beginning, without "..": "out/../run/" becomes
 * "run". A path below the working directory stays relative.
 *
 * No part of the path has to exist. A ".." after a part that does not exist removes that part, so "absent/../run" becomes "run",
 * and no directory has to be made for it. A link is followed even if it leads to nothing. Links in /proc that are not paths
 * (/proc/self/fd/1) are kept.
 *
 * The caller frees the result. Returns NULL after fail(), for example if a part may not be examined.
 */
char *path_resolve(const char *path);

/* Returns the directory that holds `path`, for the caller to free; NULL after fail(). */
char *path_parent(const char *path);

/* Returns the path of the running program, for the caller to free; NULL after fail(). */
char *path_of_program(void);

/* Opens a plain file as open(2) does (with O_CLOEXEC; new files get mode 0666). Returns a descriptor, or -1 after fail(). Other
 * kinds of files are refused at once: a pipe would wait for its other end, and a device may never end. */
int file_open(const char *path, int flags);

/* Reads a whole file into memory and puts a NUL after it. *length: the file's bytes; `length` may be NULL. The caller frees the
 * result. Returns NULL after fail(). */
char *file_read(const char *path, uint64_t *length);

/* Works like file_read(), for a path that the user gave, which may also be a pipe such as a shell's <(command). A pipe is read
 * until its writers close it; it is refused if no writer opens it within PIPE_SECONDS. A file of more than `most` bytes is
 * refused (0: no limit). */
char *file_read_given(const char *path, uint64_t most, uint64_t *length);
enum { PIPE_SECONDS = 3 };

/* Reads the first bytes of a file, at most capacity - 1, and puts a NUL after them. Returns 1 for a plain file; 2 for anything
 * else, such as a link, which is not read; 0 if nothing has this name; -1 after fail(). */
int file_head(const char *path, char *head, uint64_t capacity);

struct file_writer {
    char *path;             /* as the caller gave it; NULL when closed; owned, like `target`, `partial` and `buffer` */
    char *target, *partial; /* the resolved path, and the temporary file beside it; partial is NULL if bytes are written directly
                             * to `target` */
    char *buffer;           /* [FILE_BUFFER] */
    uint64_t used;          /* bytes in the buffer */
    uint64_t written;       /* number of bytes passed to file_write() so far, including those still in the buffer */
    uint64_t sent, started; /* bytes given to the system; how many of them the disk has begun to write */
    int fd;
    int failed; /* 1: a write failed and fail() was called; later calls do nothing */
};
enum { FILE_BUFFER = 1 << 20, DISK_PIECE = 16 << 20 };

int file_writer_open(struct file_writer *writer, const char *path);
/* Works like file_writer_open(), but `path` may also be a pipe or a character device (/dev/stdout, >(command), /dev/null). Bytes
 * then go there directly, and file_abandon() cannot take them back. A pipe that has no reader within PIPE_SECONDS is refused. */
int file_writer_open_given(struct file_writer *writer, const char *path);
int file_write(struct file_writer *writer, const void *data, uint64_t length);
int file_print(struct file_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Overwrites bytes that were written earlier: for a header whose numbers are known only at the end. */
int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
/* Writes bytes at an offset that file_write() has not reached. Any thread may call it. When all threads are done, file_skip() makes
 * file_write() continue `length` bytes later. */
int file_write_apart(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
int file_skip(struct file_writer *writer, uint64_t length);
int file_finish(struct file_writer *writer);   /* writes and syncs all bytes, but does not rename yet, so that file_commit() can
                                                * hardly fail */
int file_commit(struct file_writer *writer);   /* finishes, and renames the file to PATH; always closes the writer */
void file_abandon(struct file_writer *writer); /* may be called on a closed writer */

/* Opens a new nameless file in the directory of `path`, for reading and writing. The system removes it with its last descriptor
 * or mapping, even if the process is killed. Returns a descriptor, or -1 after fail(). */
int file_open_unnamed(const char *path);

/* Returns 1 if `path`, with its links followed, is the file that is open as `fd`; 0 if it is another file or does not exist; -1
 * with errno, without a call of fail(). */
int file_is_at(int fd, const char *path);

/* Makes a new name beside `path`, for the temporary file of a writer. The caller frees it. Returns NULL after fail(). */
char *file_own_name(const char *path);

/* Returns 1 if `name` could be the temporary file of a writer of the file `of` in the same directory; a killed process may have
 * left one. */
int file_is_partial(const char *name, const char *of);

/* Removes the temporary files that killed writers of `path` have left beside it. A writer that is still at work holds a lock on its
 * file, which stays. */
void file_remove_left(const char *path);

/* Writes a whole small file atomically. */
int file_replace(const char *path, const void *data, uint64_t length);

/* Appends to a log file, which is made if it does not exist. If a write fails, the file is cut back to its old length, if
 * possible. Returns 0, or -1 after fail(). */
int file_append(const char *path, const void *data, uint64_t length);

/* Returns 1 if a file of any kind has this name, even a link to nothing; 0 if none has; -1 after fail() if the system does not
 * tell. */
int file_exists(const char *path);
/* Returns 1 if both paths, with their links followed, name the same file, which need not exist yet; 0 if not. Pipes and devices are
 * never the same: several may write to them. Returns -1 after fail(). */
int file_is_same(const char *a, const char *b);
/* Checks that a file can be written at a path that the user gave, before work that takes long. Leaves nothing behind, and leaves
 * pipes and devices alone. Returns 0, or -1 after fail(). */
int file_check_place(const char *path);
/* Computes the XXH64 of the bytes of an open file from its position on. Returns 0, or -1 after fail(), also if the caller asked to
 * stop (interrupt.h). `path`: for messages. */
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
 * Another program may shorten a mapped file, or its disk may fail. No call returns an error then: reading the bytes raises the
 * signal SIGBUS, which would end the program without a message. file_map_catch() makes it print one.
 */

struct file_map {
    const char *data; /* NULL if the file is empty */
    uint64_t size;
};
int file_map_open(struct file_map *map, const char *path);
/* Opens a map of `size` zero bytes in memory, without a file, for data that this process first writes and then reads like a mapped
 * file. Returns the writable bytes, or NULL after fail(). `what` names the data in the error message. */
char *file_map_memory(struct file_map *map, uint64_t size, const char *what);
void file_map_close(struct file_map *map); /* may be called on a struct of zeros */

/* Makes SIGBUS end the process with exit code 1 and a message that names the mapped file. Only programs call this: a library
 * leaves signals to its caller. */
void file_map_catch(void);

/* ---- a file written by several processes ----
 *
 * file_part: a file that several processes write together, each a byte range of its own. One process makes the file with a
 * file_writer and commits it. Every process, that one included, writes through a file_part. */

struct file_part {
    const char *path; /* path for messages; owned by the caller */
    int fd;           /* -1 when closed */
};

/* Opens a part in the process that has the writer. Returns 0, or -1 after fail(). */
int file_part_of(struct file_part *part, const struct file_writer *writer);
/* Opens a part in another process. `path` is the file's final path, `partial` the temporary path that the writer uses. Returns
 * 0, or -1 if this process cannot open `partial`. */
int file_part_join(struct file_part *part, const char *path, const char *partial);
void file_part_close(struct file_part *part); /* may be called twice */

int file_part_write(struct file_part *part, uint64_t offset, const void *data, uint64_t length);
int file_part_sync(struct file_part *part);
int file_part_resize(struct file_part *part, uint64_t bytes); /* bytes that no process writes are zeros */

/* ---- copies of data that can be read only once ----
 *
 * spool: nameless files in $TMPDIR or /var/tmp, for data that is read more than once. The system removes such a file when its
 * descriptor is closed, even if the process is killed. */

/* Opens an empty nameless file. Returns its descriptor, or -1 after fail(). */
int spool_open(void);
const char *spool_directory(void); /* returns the directory of these files, for messages */

/* Copies all bytes that can be read from `from` into a new nameless file. Returns its descriptor, or -1 after fail(), whose
 * message calls the data `what`. */
int spool_all(int from, const char *what);

#endif
