/* ranks: sums of values over all ranks, enqueued by the host: by mailboxes if the ranks' GPUs can address each other's memory (ranks.cuh),
 * otherwise by NCCL or by the host. All ranks make the same batches, so all enlarge their arrays at the same time. Values are always added in the
 * order of ranks. A rank that hangs is reported, not waited for (device.rank_timeout). */
#include "ranks.cuh"

extern "C" {
#include "base/progress.h"
#include "kernels/ranks.h"
}

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ==== NCCL ====
 *
 * Sums over ranks by NCCL. The library is loaded when it is first needed, so a program for one GPU runs without it. The values are divided into
 * one share for each rank. A rank receives its share from all ranks, sums it in rank order, and sends the sums to all. This moves as many bytes as
 * NCCL's own all-reduce, whose order of summing depends on the network. */

/* The part of nccl.h that this file needs (NCCL 2.7 and later), since few machines have the header. */
typedef struct ncclComm *nccl_group;
struct nccl_id {
    char bytes[128];
};
enum { NCCL_SUCCESS = 0, NCCL_FLOAT = 7 };

struct calls {
    int (*unique)(struct nccl_id *id);
    int (*init)(nccl_group *group, int ranks, struct nccl_id id, int number);
    int (*abort)(nccl_group group);
    int (*send)(const void *data, size_t count, int type, int to, nccl_group group, cudaStream_t stream);
    int (*receive)(void *data, size_t count, int type, int from, nccl_group group, cudaStream_t stream);
    int (*begin)(void);
    int (*end)(void);
    int (*gather)(const void *own, void *all, size_t count, int type, nccl_group group, cudaStream_t stream);
    const char *(*text)(int error);
};

struct nccl {
    void *library;
    struct calls calls;
    nccl_group group;
    unsigned ranks, number;
};

/* ---- the library ---- */

template <typename Call> static int find(void *library, const char *name, Call *call) {
    *call = (Call)dlsym(library, name);
    return *call != NULL;
}

static int find_calls(void *library, struct calls *c) {
    return find(library, "ncclGetUniqueId", &c->unique) && find(library, "ncclCommInitRank", &c->init) && find(library, "ncclCommAbort", &c->abort) &&
           find(library, "ncclSend", &c->send) && find(library, "ncclRecv", &c->receive) && find(library, "ncclGroupStart", &c->begin) &&
           find(library, "ncclGroupEnd", &c->end) && find(library, "ncclAllGather", &c->gather) && find(library, "ncclGetErrorString", &c->text);
}

static int load(struct nccl *nccl) {
    nccl->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    return nccl->library && find_calls(nccl->library, &nccl->calls);
}

/* Joins all ranks in a group of NCCL, which prints to stderr only if NCCL_DEBUG is set. */
static int join(struct nccl *nccl, struct ranks *ranks) {
    struct nccl_id id;
    int failed = ranks_first(ranks) && nccl->calls.unique(&id) != NCCL_SUCCESS;
    ranks_share(ranks, &id, sizeof id);
    if (ranks_any(ranks, failed ? 1 : 0)) return 0;
    failed = nccl->calls.init(&nccl->group, (int)ranks->count, id, (int)ranks->number) != NCCL_SUCCESS;
    if (failed) nccl->group = NULL;
    return !ranks_any(ranks, failed ? 1 : 0);
}

void nccl_open(struct nccl **out, struct ranks *ranks, char *why, size_t capacity) {
    struct nccl *nccl = (struct nccl *)calloc(1, sizeof *nccl);
    int missing = !nccl || !load(nccl);
    *out = NULL;
    if (ranks_any(ranks, missing ? 1 : 0)) snprintf(why, capacity, "not every rank finds libnccl.so.2");
    else if (!join(nccl, ranks)) snprintf(why, capacity, "NCCL does not connect these ranks (NCCL_DEBUG=INFO says more)");
    else *out = nccl;
    if (*out) {
        nccl->ranks = ranks->count;
        nccl->number = ranks->number;
        return;
    }
    nccl_close(nccl);
}

void nccl_close(struct nccl *nccl) {
    if (!nccl) return;
    if (nccl->group) nccl->calls.abort(nccl->group);
    if (nccl->library) dlclose(nccl->library);
    free(nccl);
}

/* ---- sums ---- */

static uint64_t share_of(uint64_t count, unsigned ranks) {
    return (count + ranks - 1) / ranks;
}
uint64_t nccl_padded(uint64_t count, unsigned ranks) {
    return count + ranks - 1;
}

/* Sums this rank's share of the values. own: its own values, replaced by the sums; others: [ranks x share] values that the other ranks have sent. */
static __global__ void add_shares(float *own, const float *others, uint64_t share, uint32_t ranks, uint32_t number) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= share) return;
    float sum = number ? others[i] : own[i];
    for (uint32_t r = 1; r < ranks; r++) sum += r == number ? own[i] : others[r * share + i];
    own[i] = sum;
}

static int spread(struct nccl *n, const float *parts, float *work, uint64_t share, cudaStream_t stream) {
    int failed = n->calls.begin();
    for (unsigned r = 0; r < n->ranks && failed == NCCL_SUCCESS; r++) {
        if (r == n->number) continue;
        failed = n->calls.send(parts + r * share, share, NCCL_FLOAT, (int)r, n->group, stream);
        if (failed == NCCL_SUCCESS) failed = n->calls.receive(work + r * share, share, NCCL_FLOAT, (int)r, n->group, stream);
    }
    if (failed == NCCL_SUCCESS) failed = n->calls.end();
    return failed == NCCL_SUCCESS ? 0 : fail("NCCL: %s", n->calls.text(failed));
}

int nccl_sum(struct nccl *n, float *parts, float *work, uint64_t count, cudaStream_t stream) {
    uint64_t share = share_of(count, n->ranks);
    float *own = parts + n->number * share;
    if (spread(n, parts, work, share, stream)) return -1;
    add_shares<<<blocks_for(share, 256), 256, 0, stream>>>(own, work, share, n->ranks, n->number);
    CK_LAUNCH("add_shares");
    int failed = n->calls.gather(own, parts, share, NCCL_FLOAT, n->group, stream);
    return failed == NCCL_SUCCESS ? 0 : fail("NCCL: %s", n->calls.text(failed));
}

/* ==== a clock that stops with the process ====
 *
 * A clock for kernels that wait for another rank. It stops while this process is stopped (Ctrl-Z, a paused container). A GPU's own clock goes on
 * then, so that after a stop of all processes the kernels would no longer wait for each other. If only one process is stopped, the other ranks
 * report it, and its kernel waits until the process ends. */

enum { PAGE_BYTES = 4096 };

/* A running clock. Its page belongs to the program and not to the driver: if a process ends without heartbeat_end(), the driver cannot unmap the
 * page while the thread still writes to it. */
struct heartbeat {
    unsigned *page, *device; /* page: contains the counter; device: the page's address on the GPU, once it is registered */
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

struct exchange {
    struct ranks *ranks;
    int near_by;             /* 1: ranks exchange by mailboxes ("near"); 0: by NCCL or the host ("far") */
    uint32_t sequence;       /* number of the newest step */
    uint64_t capacity;       /* number of slots */
    struct gpu_array box;    /* near: this rank's mailboxes, uint64 [2 x ranks x capacity]; far: partial sums, float [capacity] */
    void *peers[NEAR_RANKS]; /* near: [rank] its mailboxes, mapped into this process; NULL for this rank */
    struct nccl *nccl;       /* far: NCCL; NULL: the host sums */
    struct gpu_array work;   /* far, summed by NCCL: scratch: float [capacity] */
    float *host;             /* far, summed by the host: pinned [capacity] */
    uint64_t host_bytes;
    int opened_far;
    enum exchange_way asked;
    unsigned *missing;           /* pinned, mapped */
    struct heartbeat *heartbeat; /* NULL: the exchange was opened as far */
    unsigned *gave_up;           /* on the GPU */
};

int exchange_is_near(const struct exchange *x) {
    return x->near_by;
}

/* ---- the others' mailboxes ---- */

static void unmap_peers(struct exchange *x) {
    for (void *&peer : x->peers) {
        if (peer) cudaIpcCloseMemHandle(peer);
        peer = NULL;
    }
}

static int map_boxes(struct exchange *x, const cudaIpcMemHandle_t *handles) {
    for (unsigned r = 0; r < x->ranks->count; r++) {
        if (r == x->ranks->number) continue;
        if (cudaIpcOpenMemHandle(&x->peers[r], handles[r], cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) continue;
        cudaGetLastError();
        x->peers[r] = NULL;
        return 0;
    }
    return 1;
}

/* Maps every other rank's box into this process. Returns 1 if that worked in all ranks; otherwise all ranks unmap them again, and it returns 0. */
static int map_peers(struct exchange *x) {
    cudaIpcMemHandle_t own, handles[NEAR_RANKS];
    memset(&own, 0, sizeof own);
    int failed = cudaIpcGetMemHandle(&own, x->box.data) != cudaSuccess;
    cudaGetLastError();
    ranks_exchange(x->ranks, &own, handles, sizeof own);
    failed = failed || !map_boxes(x, handles);
    if (!ranks_any(x->ranks, failed ? 1 : 0)) return 1;
    unmap_peers(x);
    ranks_any(x->ranks, 0); /* waits until no rank maps this rank's box any more, so that it may be freed */
    return 0;
}

/* ---- growing ---- */

static uint64_t near_bytes(const struct exchange *x, uint64_t slots) {
    return exchange_box_bytes(slots, x->ranks->count);
}

static int grow_near(struct backend *b, uint64_t slots) {
    struct exchange *x = b->exchange;
    int result = gpu_grow(b, &x->box, near_bytes(x, slots), "words from other ranks");
    if (!result) result = gpu_fill(x->box.data, NULL, x->box.bytes); /* must be zeroed before another rank can write to it */
    if (ranks_agree(x->ranks, result)) return -1;
    x->near_by = map_peers(x);
    if (!x->near_by && x->asked == EXCHANGE_GPU) return fail("device.exchange = gpu: the GPUs of these ranks do not reach each other's memory");
    x->capacity = x->box.bytes / near_bytes(x, 1);
    return 0;
}

/* Prepares sums of ranks whose GPUs cannot address each other's memory. If ranks share a GPU, the host sums: NCCL refuses such ranks, and the
 * others would wait for them. */
static int open_far(const struct backend *b, struct exchange *x) {
    char why[256] = "ranks share a GPU, and NCCL wants one for each";
    if (x->opened_far) return 0;
    x->opened_far = 1;
    if (x->asked != EXCHANGE_HOST && !ranks_any(x->ranks, b->sharers > 1)) nccl_open(&x->nccl, x->ranks, why, sizeof why);
    if (!x->nccl && x->asked == EXCHANGE_NCCL) return fail("device.exchange = nccl: %s", why);
    return 0;
}

static int grow_far(struct backend *b, uint64_t slots) {
    struct exchange *x = b->exchange;
    if (open_far(b, x)) return -1;
    uint64_t bytes = nccl_padded(slots, x->ranks->count) * sizeof *x->host;
    int result = gpu_grow(b, &x->box, bytes, "parts of sums");
    if (!result) result = x->nccl ? gpu_grow(b, &x->work, bytes, "parts of sums") : buffer_grow(b, (void **)&x->host, &x->host_bytes, bytes);
    if (ranks_agree(x->ranks, result)) return -1;
    x->capacity = slots;
    return 0;
}

/* Enlarges the boxes to `slots` slots. All ranks must have finished all earlier steps, since the old boxes are freed. */
static int grow(struct backend *b, uint64_t slots) {
    struct exchange *x = b->exchange;
    CK(cudaStreamSynchronize(b->compute));
    ranks_any(x->ranks, 0);
    unmap_peers(x);
    ranks_any(x->ranks, 0);
    if (x->near_by && grow_near(b, slots)) return -1;
    return x->near_by ? 0 : grow_far(b, slots);
}

/* ---- a step ---- */

/* Converts seconds to heartbeats; 0 means no limit. */
static uint32_t beats_of(unsigned seconds) {
    return seconds && seconds < UINT32_MAX / HEARTBEATS ? seconds * HEARTBEATS : UINT32_MAX;
}

int exchange_begin(struct backend *b, uint64_t slots, struct exchange_view *view) {
    struct exchange *x = b->exchange;
    memset(view, 0, sizeof *view);
    if (!x) return 0;
    if (slots > x->capacity && grow(b, slots)) return -1;
    if (++x->sequence == 0) x->sequence = 2; /* not 0, which a new box contains; not 1, since the last bit chooses the box */
    uint64_t all = x->capacity * x->ranks->count, parity = (x->sequence & 1) * all;
    view->ranks = x->ranks->count;
    view->number = x->ranks->number;
    view->sequence = x->sequence;
    view->capacity = x->capacity;
    view->beats = heartbeat_beats(x->heartbeat);
    view->patience = beats_of(x->ranks->patience);
    view->missing = x->missing;
    view->gave_up = x->gave_up;
    if (!x->near_by) {
        view->parts = (float *)x->box.data;
        return 0;
    }
    view->box = (uint64_t *)x->box.data + parity;
    for (unsigned r = 0; r < view->ranks; r++)
        if (x->peers[r]) view->peers[r] = (uint64_t *)x->peers[r] + parity + view->number * x->capacity;
    return 0;
}

int exchange_sum(struct backend *b, uint64_t first, uint64_t count) {
    struct exchange *x = b->exchange;
    float *parts = (float *)x->box.data + first;
    if (!count) return 0;
    if (x->nccl) return nccl_sum(x->nccl, parts, (float *)x->work.data, count, b->compute);
    CK(cudaMemcpyAsync(x->host, parts, count * sizeof *parts, cudaMemcpyDeviceToHost, b->compute));
    CK(cudaStreamSynchronize(b->compute));
    if (ranks_sum(x->ranks, x->host, count)) return -1;
    CK(cudaMemcpyAsync(parts, x->host, count * sizeof *parts, cudaMemcpyHostToDevice, b->compute));
    return 0;
}

/* ---- an array ----
 *
 * Near ranks share out a chunk's values: a rank receives the partial sums of its share from all others, sums them, and posts the sums to all. Per
 * value each of G ranks so posts 2 (G - 1) / G words; if it posted its partial sums to all, it would post G - 1. All shares have the same number of
 * slots, at least one, so every rank posts something to every other.
 *
 *   slots of a sender's box    0 .. share - 1: partial sums of the receiver's share    share .. 2 share - 1: sums of the sender's share
 */
struct chunk_view {
    float *values;
    uint64_t count, share; /* count: number of values; those past it are 0 */
};

static __device__ __forceinline__ float chunk_value(const struct chunk_view &c, uint64_t i) {
    return i < c.count ? c.values[i] : 0;
}
static __device__ __forceinline__ void set_value(const struct chunk_view &c, uint64_t i, float value) {
    if (i < c.count) c.values[i] = value;
}

static __global__ void post_shares(const __grid_constant__ struct exchange_view x, const __grid_constant__ struct chunk_view c) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t owner = (uint32_t)(i / c.share);
    if (owner < x.ranks && owner != x.number) exchange_post_to(x, owner, i - owner * c.share, chunk_value(c, i));
}

static __global__ void sum_share(const __grid_constant__ struct exchange_view x, const __grid_constant__ struct chunk_view c) {
    uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, i = x.number * c.share + slot;
    if (slot >= c.share) return;
    float sum = exchange_collect(x, slot, chunk_value(c, i));
    set_value(c, i, sum);
    exchange_post(x, c.share + slot, sum);
}

static __global__ void take_sums(const __grid_constant__ struct exchange_view x, const __grid_constant__ struct chunk_view c) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t owner = (uint32_t)(i / c.share);
    if (owner < x.ranks && owner != x.number) set_value(c, i, exchange_receive(x, owner, c.share + i - owner * c.share));
}

static __global__ void meet_ranks(const __grid_constant__ struct exchange_view x) {
    exchange_post(x, 0, 0);
    exchange_collect(x, 0, 0);
}

static int sum_near(struct backend *b, const struct exchange_view *view, float *values, uint64_t count) {
    const struct chunk_view chunk = {values, count, exchange_share(count, view->ranks)};
    unsigned whole = blocks_for(chunk.share * view->ranks, 256), own = blocks_for(chunk.share, 256);
    post_shares<<<whole, 256, 0, b->compute>>>(*view, chunk);
    CK_LAUNCH("post_shares");
    sum_share<<<own, 256, 0, b->compute>>>(*view, chunk);
    CK_LAUNCH("sum_share");
    take_sums<<<whole, 256, 0, b->compute>>>(*view, chunk);
    CK_LAUNCH("take_sums");
    return 0;
}

static int sum_far(struct backend *b, const struct exchange_view *view, float *values, uint64_t count) {
    CK(cudaMemcpyAsync(view->parts, values, count * sizeof *values, cudaMemcpyDeviceToDevice, b->compute));
    if (exchange_sum(b, 0, count)) return -1;
    CK(cudaMemcpyAsync(values, view->parts, count * sizeof *values, cudaMemcpyDeviceToDevice, b->compute));
    return 0;
}

int exchange_sum_array(struct backend *b, float *values, uint64_t count) {
    const struct exchange *x = b->exchange;
    struct exchange_view view;
    for (uint64_t first = 0; first < count; first += EXCHANGE_CHUNK) {
        uint64_t here = count - first < EXCHANGE_CHUNK ? count - first : EXCHANGE_CHUNK;
        if (exchange_begin(b, x->near_by ? exchange_array_slots(here, x->ranks->count) : here, &view)) return -1;
        /* if exchange_begin() has just found out that ranks are far, they need a slot for each value */
        if (!view.box && here > view.capacity && exchange_begin(b, here, &view)) return -1;
        if (view.box ? sum_near(b, &view, values + first, here) : sum_far(b, &view, values + first, here)) return -1;
    }
    return 0;
}

int exchange_meet(struct backend *b, const struct exchange_view *view) {
    if (!view->box) return 0;
    meet_ranks<<<1, 1, 0, b->compute>>>(*view);
    CK_LAUNCH("meet_ranks");
    return 0;
}

static int check_missing(const struct exchange *x) {
    unsigned missing = *(volatile unsigned *)x->missing;
    if (!missing) return 0;
    return fail("rank %u of %u did not come with its part of a step within %u s (device.rank_timeout): its process or its GPU "
                "hangs",
                missing - 1, x->ranks->count, x->ranks->patience);
}

/* Waits until an event is recorded, or until a rank is found missing. Our own kernels stop waiting after `patience`; NCCL's would wait for ever. */
int exchange_await(const struct backend *b, cudaEvent_t event) {
    const struct exchange *x = b->exchange;
    const struct timespec pause = {0, 20000};
    struct waiting waiting = waiting_begin();
    if (x && x->nccl && x->ranks->patience)
        while (cudaEventQuery(event) == cudaErrorNotReady) {
            if (waiting_seconds(&waiting) > x->ranks->patience)
                return fail("a rank did not come with its part of a step within %u s (device.rank_timeout): its process or its "
                            "GPU hangs",
                            x->ranks->patience);
            nanosleep(&pause, NULL);
        }
    CK(cudaEventSynchronize(event));
    return x ? check_missing(x) : 0;
}

/* ---- opening ---- */

int exchange_open(struct backend *b, const struct backend_options *options) {
    if (ranks_count(options->ranks) == 1) return 0;
    struct exchange *x = (struct exchange *)mem_zalloc(1, sizeof *x, "an exchange with other ranks");
    b->exchange = x;
    if (!x) return -1;
    x->ranks = options->ranks;
    x->asked = options->exchange;
    int here = x->ranks->local == x->ranks->count && x->ranks->count <= NEAR_RANKS;
    x->near_by = here && (x->asked == EXCHANGE_AUTO || x->asked == EXCHANGE_GPU);
    if (!here && x->asked == EXCHANGE_GPU)
        return fail("device.exchange = gpu: %u of %u ranks are on this machine, and up to %d of one machine can exchange so",
                    x->ranks->local, x->ranks->count, NEAR_RANKS);
    if (buffer_take(b, (void **)&x->missing, sizeof *x->missing) ||
        gpu_take(b, (void **)&x->gave_up, sizeof *x->gave_up, "an exchange with other ranks"))
        return -1;
    *x->missing = 0;
    if (x->near_by && heartbeat_begin(&x->heartbeat)) return -1;
    return gpu_fill(x->gave_up, NULL, sizeof *x->gave_up);
}

void exchange_close(struct backend *b) {
    struct exchange *x = b->exchange;
    if (!x) return;
    unmap_peers(x);
    nccl_close(x->nccl);
    gpu_drop(b, &x->box);
    gpu_drop(b, &x->work);
    buffer_give(b, x->host, x->host_bytes);
    heartbeat_end(x->heartbeat);
    buffer_give(b, x->missing, sizeof *x->missing);
    gpu_give(b, x->gave_up, sizeof *x->gave_up);
    free(x);
    b->exchange = NULL;
}
