/* file_map: maps a whole file read-only. Its bytes stay in the system's page cache, so a corpus may be larger than memory.
 *
 * Another program may shorten a mapped file, or its disk may fail. No call returns an error then: reading the bytes raises the
 * signal SIGBUS, which would end the program without a message. file_map_catch() makes it print one.
 */
#ifndef SPTX_FILE_MAP_H
#define SPTX_FILE_MAP_H

#include <stdint.h>

struct file_map {
    const char *data; /* NULL if the file is empty */
    uint64_t size;
};
int file_map_open(struct file_map *map, const char *path);
/* Opens a map of `size` zero bytes in memory, without a file, for data that this process first writes and then reads like a mapped
 * file. Returns the writable bytes, or NULL after fail(). `what` names the data in the error message. */
char *file_map_memory(struct file_map *map, uint64_t size, const char *what);
void file_map_close(struct file_map *map); /* may be called on a struct of zeros */

/* Makes SIGBUS end the process with exit code 1 and a message that names the mapped file. Only programs call this: a library
 * leaves signals to its caller. */
void file_map_catch(void);

#endif
