/* file_part: a file that several processes fill, each its own range of bytes. One of them makes it with a file_writer,
 * which gives it its name at the end (file.h); each of them, that one included, writes through a file_part. */
#ifndef SPTX_FILE_PART_H
#define SPTX_FILE_PART_H

#include "file.h"

struct file_part {
    const char *path; /* for sentences; the caller owns it */
    int fd;           /* -1 when closed */
};

/* Opens the part of the process that has the writer. Returns 0, or -1 after fail(). */
int file_part_of(struct file_part *part, const struct file_writer *writer);
/* Opens the part of another process, which is told the name under which the writer fills the file. Returns 0, or -1
 * where it does not see that file. */
int file_part_join(struct file_part *part, const char *path, const char *partial);
void file_part_close(struct file_part *part); /* harmless on a closed one */

int file_part_write(struct file_part *part, uint64_t offset, const void *data, uint64_t length);
int file_part_sync(struct file_part *part);
int file_part_resize(struct file_part *part, uint64_t bytes); /* bytes that nobody has written are zeros */

#endif
