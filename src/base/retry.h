/* retry: system calls that are repeated if a signal interrupts them, which Ctrl-C or a resized window may do, above all on network file systems.
 *
 * errno is set as usual; the caller makes the error message.
 */
#ifndef SPTX_RETRY_H
#define SPTX_RETRY_H

#include <stdint.h>
#include <sys/types.h>

int retry_open(const char *path, int flags); /* new files get mode 0666 */
int retry_duplicate(int fd);                 /* returns a new descriptor of the same open file, which is closed by exec */
int retry_sync(int fd);
int retry_truncate(int fd, uint64_t length);
/* Unlike the others, calls close() only once: Linux frees the descriptor even if a signal interrupts the call. */
int retry_close(int fd);
/* Reads `length` bytes at `offset`, or fewer at the file's end. Returns the number of bytes, or -1. */
int64_t retry_read_at(int fd, void *out, uint64_t length, uint64_t offset);
/* Writes all bytes at `offset`. Returns 0 or -1. */
int retry_write_at(int fd, const void *data, uint64_t length, uint64_t offset);
/* Reserves disk space for the file's first `length` bytes. Returns 0, or the error's number. */
int retry_allocate(int fd, uint64_t length);

#endif
