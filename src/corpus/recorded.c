#include "recorded.h"

#include "base/file.h"
#include "base/report.h"
#include "base/retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int recorded_open(struct recorded *recorded, const char *path) {
    *recorded = (struct recorded){.fd = file_open_unnamed(path), .path = path};
    pthread_mutex_init(&recorded->lock, NULL);
    pthread_cond_init(&recorded->moved, NULL);
    return recorded->fd < 0 ? -1 : 0;
}

int recorded_put(struct recorded *recorded, uint64_t block, const uint32_t *numbers, uint64_t count) {
    pthread_mutex_lock(&recorded->lock);
    while (recorded->next != block && !recorded->failed) pthread_cond_wait(&recorded->moved, &recorded->lock);
    int failed = recorded->failed;
    uint64_t at = recorded->count;
    recorded->count += count;
    recorded->next++;
    pthread_cond_broadcast(&recorded->moved);
    pthread_mutex_unlock(&recorded->lock);
    if (failed) return -1;
    int result = retry_write_at(recorded->fd, numbers, count * sizeof *numbers, at * sizeof *numbers);
    return result ? fail_system("write beside", recorded->path) : 0;
}

void recorded_give_up(struct recorded *recorded) {
    pthread_mutex_lock(&recorded->lock);
    recorded->failed = 1;
    pthread_cond_broadcast(&recorded->moved);
    pthread_mutex_unlock(&recorded->lock);
}

int recorded_finish(struct recorded *recorded) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", recorded->fd);
    if (file_map_open(&recorded->map, path)) return -1;
    recorded->numbers = (const uint32_t *)(const void *)recorded->map.data;
    recorded->complete = 1;
    return 0;
}

void recorded_close(struct recorded *recorded) {
    file_map_close(&recorded->map);
    if (recorded->fd >= 0) close(recorded->fd);
    free(recorded->items);
    free(recorded->lists);
    pthread_mutex_destroy(&recorded->lock);
    pthread_cond_destroy(&recorded->moved);
    *recorded = (struct recorded){.fd = -1};
}
