/* file: files, every error said once with the path and the system's reason.
 *
 * Writing is atomic: a file_writer fills a file of its own beside PATH (PATH.<process>-<random>.partial), and file_commit()
 * syncs it, renames it to PATH and syncs the directory, so PATH holds either what it held before or all of the new. A writer
 * that is not committed leaves nothing. Where PATH is a link, what it leads to is replaced and the link stays; a file that is
 * replaced gives its owner and rights to the new one.
 */
#ifndef SPTX_FILE_H
#define SPTX_FILE_H

#include <stdint.h>

/* Opens a plain file as open(2) does (O_CLOEXEC is added, new files get 0666): a file descriptor, or -1 after fail().
 * Anything else is refused at once: a pipe would keep the program waiting for its other end, and a device may never end. */
int file_open(const char *path, int flags);

/* A whole file in memory with a NUL after it; *length may be NULL. The caller frees. NULL after fail(). */
char *file_read(const char *path, uint64_t *length);

/* The same for a file that the user names, which may be a pipe too, as a shell's <(command) is one: it is read until its
 * writers are done, and refused where none comes within PIPE_SECONDS. More than `most` bytes are refused (0: no bound). */
char *file_read_given(const char *path, uint64_t most, uint64_t *length);
enum { PIPE_SECONDS = 3 };

/* How a file begins: at most capacity - 1 bytes and a NUL. 0: nothing is there; 1: a plain file; 2: something else, a
 * link too; -1 after fail(). */
int file_head(const char *path, char *head, uint64_t capacity);

struct file_writer {
    char *path;             /* as it was given; owned, as the next three; NULL when closed */
    char *target, *partial; /* what path stands for, and the file beside it; NULL where bytes go straight to a stream */
    char *buffer;           /* FILE_BUFFER bytes */
    uint64_t used;          /* bytes waiting in the buffer */
    uint64_t written;       /* bytes given so far, the waiting ones counted */
    uint64_t sent, started; /* bytes that the system has; of these, those that the disk has begun with */
    int fd;
    int failed; /* a write failed and its sentence is said; later calls do nothing */
};
enum { FILE_BUFFER = 1 << 20, DISK_PIECE = 16 << 20 };

int file_writer_open(struct file_writer *writer, const char *path);
/* The same, but `path` may be a pipe or a character device too (/dev/stdout, >(command), /dev/null): bytes go there as they
 * come, and stay there where the writer is abandoned. A pipe that nothing reads is refused after PIPE_SECONDS. */
int file_writer_open_given(struct file_writer *writer, const char *path);
int file_write(struct file_writer *writer, const void *data, uint64_t length);
int file_print(struct file_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes over bytes given earlier: for a header whose numbers are known at the end. */
int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
int file_finish(struct file_writer *writer);   /* all of it is on the disk, and not yet in place: little is left to fail */
int file_commit(struct file_writer *writer);   /* finishes, puts in place; closes the writer in either case */
void file_abandon(struct file_writer *writer); /* harmless on a closed writer */

/* A file of one's own to read and write in the directory of `path`. It has no name, so that it goes with its last descriptor or
 * mapping, however the process ends. -1 after fail(). */
int file_open_unnamed(const char *path);

/* Whether a path, links followed, names what is open as `fd`: 1; 0 where it names something else or nothing; -1 with errno
 * and no sentence. */
int file_is_at(int fd, const char *path);

/* A name beside `path` that nobody else has, the one of a file that a writer fills; for the caller to free. NULL after fail(). */
char *file_own_name(const char *path);

/* Whether `name` is that of the file which a writer fills for one named `of` in the same directory: what a killed process may
 * have left. */
int file_is_partial(const char *name, const char *of);

/* A whole small file, atomically. */
int file_replace(const char *path, const void *data, uint64_t length);

/* Appends one piece to a file that is made where absent; for logs. Where it fails the file is as long as it was, if the disk
 * allows. */
int file_append(const char *path, const void *data, uint64_t length);

/* 1: something has this name, be it a link to nothing; 0: nothing has; -1 after fail() where it cannot be told. */
int file_exists(const char *path);
int64_t file_size(const char *path); /* -1 after fail() */

int file_remove(const char *path); /* not an error where it is absent */
int file_remove_in(const char *directory, const char *name);
int file_rename(const char *from, const char *to); /* syncs the directory that holds `to` */

/* "directory/name" in memory that the caller frees; NULL after fail(). */
char *file_join(const char *directory, const char *name);

#endif
