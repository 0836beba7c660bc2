/* file_map: a whole file, read-only, where the system keeps it (the page cache), so that a corpus larger than memory works.
 *
 * Another program may cut a mapped file short, or its disk may fail. Reading it then is no call that could return an error:
 * the system sends a signal, SIGBUS, which would end the program without a word. file_map_catch() makes a sentence of it.
 */
#ifndef SPTX_FILE_MAP_H
#define SPTX_FILE_MAP_H

#include <stdint.h>

struct file_map {
    const char *data; /* NULL where the file is empty */
    uint64_t size;
};
int file_map_open(struct file_map *map, const char *path);
void file_map_close(struct file_map *map); /* harmless on a zeroed one */

/* From now on a mapped file that cannot be read any more ends the process with a sentence that names it, and exit code 1.
 * What lies on disk stays as it is, a run's last checkpoint too. For programs: a library leaves signals to its user. */
void file_map_catch(void);

#endif
