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

/* Reads a whole file into memory and puts a NUL after it; *length may be NULL. The caller frees. Returns NULL after
 * fail(). */
char *file_read(const char *path, uint64_t *length);

/* Reads a file that the user names. Unlike for file_read(), it may be a pipe, as a shell's <(command) is one: it is
 * read until its writers are done, and refused where none comes within PIPE_SECONDS. More than `most` bytes are refused
 * (0: there is no bound). */
char *file_read_given(const char *path, uint64_t most, uint64_t *length);
enum { PIPE_SECONDS = 3 };

/* Reads the first bytes of a file, at most capacity - 1, and puts a NUL after them. Returns 0: there is nothing; 1: it
 * is a plain file; 2: it is something else, perhaps a link; -1 after fail(). */
int file_head(const char *path, char *head, uint64_t capacity);

struct file_writer {
    char *path;             /* as the caller gave it; owned, like the next three; NULL when closed */
    char *target, *partial; /* the file that `path` leads to, and the one beside it; NULL where bytes go straight to a stream */
    char *buffer;           /* FILE_BUFFER bytes */
    uint64_t used;          /* bytes waiting in the buffer */
    uint64_t written;       /* number of bytes given so far, including bytes that still wait in the buffer */
    uint64_t sent, started; /* bytes given to the system; of these, bytes that the disk has begun to write */
    int fd;
    int failed; /* 1: a write failed and its sentence is said; later calls do nothing */
};
enum { FILE_BUFFER = 1 << 20, DISK_PIECE = 16 << 20 };

int file_writer_open(struct file_writer *writer, const char *path);
/* Opens a writer whose `path` may also be a pipe or a character device (/dev/stdout, >(command), /dev/null): bytes go
 * there as they come, and stay there where the writer is abandoned. A pipe that nothing reads is refused after
 * PIPE_SECONDS. */
int file_writer_open_given(struct file_writer *writer, const char *path);
int file_write(struct file_writer *writer, const void *data, uint64_t length);
int file_print(struct file_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes over bytes given earlier: for a header whose numbers are known at the end. */
int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length);
int file_finish(struct file_writer *writer);   /* syncs the bytes to the disk without renaming yet: little is left that can fail */
int file_commit(struct file_writer *writer);   /* finishes and renames to PATH; closes the writer in either case */
void file_abandon(struct file_writer *writer); /* harmless on a closed writer */

/* Opens a new file without a name in the directory of `path`, to read and write. It goes with its last descriptor or
 * mapping, however the process ends. Returns -1 after fail(). */
int file_open_unnamed(const char *path);

/* Tells if a path, links followed, names the file that is open as `fd`. Returns 1 if so; 0 where it names something
 * else or nothing; -1 with errno, and without a sentence. */
int file_is_at(int fd, const char *path);

/* Makes a new file name beside `path`, under which a writer fills its file. The caller frees it. Returns NULL after fail(). */
char *file_own_name(const char *path);

/* Tells if `name` is that of a file which a writer fills for the file `of` in the same directory. A killed process may
 * have left one. */
int file_is_partial(const char *name, const char *of);

/* Writes a whole small file atomically. */
int file_replace(const char *path, const void *data, uint64_t length);

/* Appends to a file, which is made where it is absent; for logs. Where that fails, the file is cut back to its old
 * length if the disk allows. */
int file_append(const char *path, const void *data, uint64_t length);

/* Returns 1 where something has this name, even a link to nothing; 0 where nothing has; -1 after fail() where it cannot
 * be told. */
int file_exists(const char *path);
int64_t file_size(const char *path); /* -1 after fail() */

int file_remove(const char *path); /* not an error where it is absent */
int file_remove_in(const char *directory, const char *name);
int file_rename(const char *from, const char *to); /* syncs the directory that holds `to` */

/* Returns "directory/name", which the caller frees; NULL after fail(). */
char *file_join(const char *directory, const char *name);

#endif
