/* file_part: a file that several processes write together, each a byte range of its own. One process makes the file with a
 * file_writer and commits it (file.h). Every process, that one included, writes through a file_part. */
#ifndef SPTX_FILE_PART_H
#define SPTX_FILE_PART_H

#include "file.h"

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

#endif
