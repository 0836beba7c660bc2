#define _GNU_SOURCE
#include "file_part.h"

#include "report.h"
#include "retry.h"

#include <fcntl.h>
#include <unistd.h>

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
    /* Asks the disk to begin writing now, so that syncing a large file later is quick. If this hint fails, nothing is lost. */
    sync_file_range(part->fd, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE);
    return 0;
}

int file_part_sync(struct file_part *part) {
    return retry_sync(part->fd) ? fail_system("sync", part->path) : 0;
}

int file_part_resize(struct file_part *part, uint64_t bytes) {
    return retry_truncate(part->fd, bytes) ? fail_system("write", part->path) : 0;
}
