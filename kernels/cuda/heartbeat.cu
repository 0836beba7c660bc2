/* heartbeat: time for kernels that wait for another rank. A GPU's own clock goes on while its process is stopped (Ctrl-Z, a
 * container that is paused), and with it those of all other ranks: they would give up waiting for one another.
 */
#include "exchange.cuh"

extern "C" {
#include "base/memory.h"
}

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct heartbeat {
    pthread_t thread;
    unsigned *beats;
    int ended;
};

static void *beat(void *context) {
    struct heartbeat *h = (struct heartbeat *)context;
    const struct timespec pause = {0, 1000000000 / HEARTBEATS};
    while (!__atomic_load_n(&h->ended, __ATOMIC_ACQUIRE)) {
        nanosleep(&pause, NULL);
        __atomic_add_fetch(h->beats, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int heartbeat_begin(struct heartbeat **out, unsigned *beats) {
    struct heartbeat *h = (struct heartbeat *)mem_zalloc(1, sizeof *h, "waiting for other ranks");
    if (!h) return -1;
    h->beats = beats;
    int error = pthread_create(&h->thread, NULL, beat, h);
    if (error) {
        free(h);
        return fail("a thread for waiting for other ranks: %s", strerror(error));
    }
    *out = h;
    return 0;
}

void heartbeat_end(struct heartbeat *h) {
    if (!h) return;
    __atomic_store_n(&h->ended, 1, __ATOMIC_RELEASE);
    pthread_join(h->thread, NULL);
    free(h);
}
