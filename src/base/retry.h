/* retry: system calls that a signal may interrupt, made again until they are done. Networked file systems interrupt calls
 * that local ones do not; nothing here ends because somebody pressed Ctrl-C or changed the size of a window.
 *
 * errno is the call's, as usual; what it means is the caller's to say.
 */
#ifndef SPTX_RETRY_H
#define SPTX_RETRY_H

#include <stdint.h>
#include <sys/types.h>

int retry_open(const char *path, int flags); /* new files get 0666 */
int retry_sync(int fd);
int retry_truncate(int fd, uint64_t length);
/* An interrupted close() has closed: Linux gives the number away before it waits for anything. */
int retry_close(int fd);
/* `length` bytes from `offset` on, or as many as there are: how many, or -1. */
int64_t retry_read_at(int fd, void *out, uint64_t length, uint64_t offset);
/* All of it, at `offset`. 0 or -1. */
int retry_write_at(int fd, const void *data, uint64_t length, uint64_t offset);
/* Space for `length` bytes from the file's beginning on. 0 or an error's number. */
int retry_allocate(int fd, uint64_t length);

#endif
