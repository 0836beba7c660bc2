/* ranks_heartbeat: a clock for kernels that wait for another rank. It stops while this process is stopped (Ctrl-Z, a paused
 * container); a GPU's own clock does not, so if all processes were stopped, their kernels would give up waiting for each other.
 * If only one process is stopped, the other ranks report it, and its kernel waits until the process ends. */
#include "ranks_exchange.cuh"

extern "C" {
#include "base/memory.h"
}

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE_BYTES = 4096 };

/* A running clock. Its page is ordinary memory of the program, not memory of the driver: if a process ends without
 * heartbeat_end(), the driver does not unmap the page while the thread still writes to it. */
struct heartbeat {
    unsigned *page, *device; /* page: the counter; device: the GPU's address of the page, once it is registered */
    pthread_t thread;
    int begun, ended;
};

static void *beat(void *context) {
    struct heartbeat *h = (struct heartbeat *)context;
    const struct timespec pause = {0, 1000000000 / HEARTBEATS};
    while (!__atomic_load_n(&h->ended, __ATOMIC_ACQUIRE)) {
        nanosleep(&pause, NULL);
        __atomic_add_fetch(h->page, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int heartbeat_begin(struct heartbeat **out) {
    struct heartbeat *h = *out = (struct heartbeat *)mem_zalloc(1, sizeof *h, "waiting for other ranks");
    if (!h) return -1;
    h->page = (unsigned *)aligned_alloc(PAGE_BYTES, PAGE_BYTES);
    if (!h->page) return fail("not enough memory for waiting for other ranks");
    *h->page = 0;
    CK(cudaHostRegister(h->page, PAGE_BYTES, cudaHostRegisterMapped));
    CK(cudaHostGetDevicePointer(&h->device, h->page, 0));
    int error = pthread_create(&h->thread, NULL, beat, h);
    if (error) return fail("a thread for waiting for other ranks: %s", strerror(error));
    h->begun = 1;
    return 0;
}

const unsigned *heartbeat_beats(const struct heartbeat *h) {
    return h ? h->device : NULL;
}

void heartbeat_end(struct heartbeat *h) {
    if (!h) return;
    __atomic_store_n(&h->ended, 1, __ATOMIC_RELEASE);
    if (h->begun) pthread_join(h->thread, NULL);
    if (h->device) cudaHostUnregister(h->page);
    free(h->page);
    free(h);
}
