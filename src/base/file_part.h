/* file_part: a file that several processes fill, each its own pieces. One of them makes it with a file_writer, which gives it
 * its name at the end (file.h); each writes by a part of it.
 */
#ifndef SPTX_FILE_PART_H
#define SPTX_FILE_PART_H

#include "file.h"

struct file_part {
    const char *path; /* for sentences; the caller's */
    int fd;           /* -1 when closed */
};

/* Of the process that has the writer. 0, or -1 after fail(). */
int file_part_of(struct file_part *part, const struct file_writer *writer);
/* Of another process, which knows the file by the name that the writer fills it under. 0, or -1 where it does not see it. */
int file_part_join(struct file_part *part, const char *path, const char *partial);
void file_part_close(struct file_part *part); /* harmless on a closed one */

int file_part_write(struct file_part *part, uint64_t offset, const void *data, uint64_t length);
int file_part_sync(struct file_part *part);
int file_part_resize(struct file_part *part, uint64_t bytes); /* what nobody has written is zeros */

#endif
