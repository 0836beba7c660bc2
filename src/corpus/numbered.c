#include "numbered.h"

#include "base/file.h"
#include "base/report.h"
#include "base/retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int numbered_open(struct numbered *numbered, const char *path) {
    *numbered = (struct numbered){.fd = file_open_unnamed(path), .path = path};
    pthread_mutex_init(&numbered->lock, NULL);
    pthread_cond_init(&numbered->moved, NULL);
    return numbered->fd < 0 ? -1 : 0;
}

int numbered_put(struct numbered *numbered, uint64_t block, const uint32_t *numbers, uint64_t count) {
    pthread_mutex_lock(&numbered->lock);
    while (numbered->next != block && !numbered->failed) pthread_cond_wait(&numbered->moved, &numbered->lock);
    int failed = numbered->failed;
    uint64_t at = numbered->count;
    numbered->count += count;
    numbered->next++;
    pthread_cond_broadcast(&numbered->moved);
    pthread_mutex_unlock(&numbered->lock);
    if (failed) return -1;
    int result = retry_write_at(numbered->fd, numbers, count * sizeof *numbers, at * sizeof *numbers);
    return result ? fail_system("write beside", numbered->path) : 0;
}

void numbered_give_up(struct numbered *numbered) {
    pthread_mutex_lock(&numbered->lock);
    numbered->failed = 1;
    pthread_cond_broadcast(&numbered->moved);
    pthread_mutex_unlock(&numbered->lock);
}

int numbered_finish(struct numbered *numbered) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", numbered->fd);
    if (file_map_open(&numbered->map, path)) return -1;
    numbered->numbers = (const uint32_t *)(const void *)numbered->map.data;
    numbered->complete = 1;
    return 0;
}

void numbered_close(struct numbered *numbered) {
    file_map_close(&numbered->map);
    if (numbered->fd >= 0) close(numbered->fd);
    free(numbered->items);
    free(numbered->lists);
    pthread_mutex_destroy(&numbered->lock);
    pthread_cond_destroy(&numbered->moved);
    *numbered = (struct numbered){.fd = -1};
}
