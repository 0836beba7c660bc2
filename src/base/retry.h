/* retry: system calls that are made again where a signal has interrupted them. Networked file systems interrupt calls
 * that local ones do not; nothing here ends because somebody pressed Ctrl-C or resized a window.
 *
 * errno is set as usual, and the caller words the error.
 */
#ifndef SPTX_RETRY_H
#define SPTX_RETRY_H

#include <stdint.h>
#include <sys/types.h>

int retry_open(const char *path, int flags); /* new files get 0666 */
int retry_duplicate(int fd);                 /* returns another number of the open file, closed by exec */
int retry_sync(int fd);
int retry_truncate(int fd, uint64_t length);
/* Does not close again after an interruption: Linux gives the number away before it waits for anything. */
int retry_close(int fd);
/* Reads `length` bytes from `offset` on, or as many as there are. Returns how many, or -1. */
int64_t retry_read_at(int fd, void *out, uint64_t length, uint64_t offset);
/* Writes all bytes at `offset`. Returns 0 or -1. */
int retry_write_at(int fd, const void *data, uint64_t length, uint64_t offset);
/* Reserves space for the file's first `length` bytes. Returns 0 or an error's number. */
int retry_allocate(int fd, uint64_t length);

#endif
