#include "file_map.h"

#include "file.h"
#include "memory.h"
#include "report.h"
#include "text.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the table of maps that the signal's handler reads ----
 *
 * A signal's handler may run in the middle of anything, so it may neither lock nor allocate. It finds the file of an address
 * in this table. An entry is valid while `data` is not NULL: that is set last and cleared first.
 */

enum { WATCHED = 64 }; /* number of maps for which SIGBUS gives a message; further maps work, but give none */
static struct watched {
    _Atomic(const char *) data;
    uint64_t size;
    char *path; /* owned */
} watched[WATCHED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a map is opened or closed */

static void watch(const struct file_map *map, const char *path) {
    char *kept = mem_text(path, strlen(path), "a path");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WATCHED && kept; i++) {
        if (atomic_load(&watched[i].data)) continue;
        watched[i].size = map->size;
        watched[i].path = kept;
        kept = NULL;
        atomic_store(&watched[i].data, map->data);
    }
    pthread_mutex_unlock(&lock);
    free(kept);
}

static void forget(const struct file_map *map) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WATCHED; i++) {
        if (atomic_load(&watched[i].data) != map->data) continue;
        atomic_store(&watched[i].data, NULL);
        free(watched[i].path);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    const char *at = info->si_addr;
    for (int i = 0; i < WATCHED; i++) {
        const char *data = atomic_load(&watched[i].data);
        if (!data || at < data || at >= data + watched[i].size) continue;
        report_dying("'", watched[i].path, "' cannot be read any more: another program has cut it short, or its disk fails");
        _exit(1);
    }
    signal(number, SIG_DFL); /* the address is in none of our maps, so the signal ends the process as usual */
    raise(number);
}

void file_map_catch(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

/* ---- mapping ---- */

static int map_open(struct file_map *map, int fd, const char *path) {
    struct stat about;
    if (fstat(fd, &about)) return fail_system("look at", path);
    if (!about.st_size) return 0;
    void *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return fail_system("map", path);
    *map = (struct file_map){data, (uint64_t)about.st_size};
    watch(map, path);
    return 0;
}

int file_map_open(struct file_map *map, const char *path) {
    *map = (struct file_map){NULL, 0};
    int fd = file_open(path, O_RDONLY), result = fd < 0 ? -1 : map_open(map, fd, path);
    if (fd >= 0) close(fd);
    return result;
}

char *file_map_memory(struct file_map *map, uint64_t size, const char *what) {
    char text[TEXT_BYTES];
    char *data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *map = (struct file_map){NULL, 0};
    if (data == MAP_FAILED) {
        fail("not enough memory for %s: %s", what, text_of_bytes(text, size));
        return NULL;
    }
    *map = (struct file_map){data, size};
    return data;
}

void file_map_close(struct file_map *map) {
    if (map->data) {
        forget(map);
        munmap((void *)map->data, map->size);
    }
    *map = (struct file_map){NULL, 0};
}
