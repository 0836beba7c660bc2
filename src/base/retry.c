#include "retry.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int retry_open(const char *path, int flags) {
    int fd;
    do fd = open(path, flags, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int retry_duplicate(int fd) {
    int other;
    do other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    while (other < 0 && errno == EINTR);
    return other;
}

int retry_sync(int fd) {
    int result;
    do result = fsync(fd);
    while (result && errno == EINTR);
    return result;
}

int retry_truncate(int fd, uint64_t length) {
    int result;
    do result = ftruncate(fd, (off_t)length);
    while (result && errno == EINTR);
    return result;
}

int retry_close(int fd) {
    return close(fd) && errno != EINTR ? -1 : 0;
}

int64_t retry_read_at(int fd, void *out, uint64_t length, uint64_t offset) {
    uint64_t used = 0;
    while (used < length) {
        ssize_t n = pread(fd, (char *)out + used, length - used, (off_t)(offset + used));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        used += (uint64_t)n;
    }
    return (int64_t)used;
}

int retry_write_at(int fd, const void *data, uint64_t length, uint64_t offset) {
    const char *at = data;
    while (length) {
        ssize_t n = pwrite(fd, at, length, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return -1;
        at += n;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
    return 0;
}

int retry_allocate(int fd, uint64_t length) {
    int error;
    do error = posix_fallocate(fd, 0, (off_t)length);
    while (error == EINTR);
    return error;
}
