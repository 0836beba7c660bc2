/* ranks_exchange: sums over ranks: by mailboxes if the ranks' GPUs can address each other's memory, otherwise by NCCL or by the
 * host. All ranks make the same batches, so all of them grow their arrays at the same time. */
#include "ranks_exchange.cuh"

extern "C" {
#include "base/progress.h"
#include "kernels/ranks.h"
}

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct exchange {
    struct ranks *ranks;
    int near_by;             /* 1: near: ranks exchange by mailboxes; 0: far */
    uint32_t sequence;       /* number of the newest step */
    uint64_t capacity;       /* number of slots */
    struct gpu_array box;    /* near: this rank's mailboxes: uint64 [2 x ranks x capacity]; far: partial sums: float [capacity] */
    void *peers[NEAR_RANKS]; /* near: by rank: its mailboxes, mapped; NULL for this rank */
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

/* Returns 1 if every rank can map every other rank's box; otherwise all ranks unmap what they have mapped, and it returns 0. */
static int map_peers(struct exchange *x) {
    cudaIpcMemHandle_t own, handles[NEAR_RANKS];
    memset(&own, 0, sizeof own);
    int failed = cudaIpcGetMemHandle(&own, x->box.data) != cudaSuccess;
    cudaGetLastError();
    ranks_exchange(x->ranks, &own, handles, sizeof own);
    failed = failed || !map_boxes(x, handles);
    if (!ranks_any(x->ranks, failed ? 1 : 0)) return 1;
    unmap_peers(x);
    ranks_any(x->ranks, 0); /* waits until no rank maps this rank's box any more; then the box may be freed */
    return 0;
}

/* ---- growing ---- */

static uint64_t near_bytes(const struct exchange *x, uint64_t slots) {
    return exchange_box_bytes(slots, x->ranks->count);
}

static int grow_near(struct backend *b, uint64_t slots) {
    struct exchange *x = b->exchange;
    int result = gpu_grow(b, &x->box, near_bytes(x, slots), "words from other ranks");
    if (!result) result = gpu_fill(x->box.data, NULL, x->box.bytes); /* zeroed before another rank can write to it */
    if (ranks_agree(x->ranks, result)) return -1;
    x->near_by = map_peers(x);
    if (!x->near_by && x->asked == EXCHANGE_GPU)
        return fail("device.exchange = gpu: the GPUs of these ranks do not reach each other's memory");
    x->capacity = x->box.bytes / near_bytes(x, 1);
    return 0;
}

/* Opens sums for ranks whose GPUs cannot address each other's memory. If ranks share a GPU, the host sums: NCCL refuses such
 * ranks, and the other ranks would wait for them. */
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
    if (!result)
        result = x->nccl ? gpu_grow(b, &x->work, bytes, "parts of sums")
                         : buffer_grow(b, (void **)&x->host, &x->host_bytes, bytes);
    if (ranks_agree(x->ranks, result)) return -1;
    x->capacity = slots;
    return 0;
}

/* Grows the boxes to `slots` slots. Every rank must have finished all earlier steps before, since the old boxes are freed. */
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

/* Converts seconds to heartbeats. 0 seconds mean no limit. */
static uint32_t beats_of(unsigned seconds) {
    return seconds && seconds < UINT32_MAX / HEARTBEATS ? seconds * HEARTBEATS : UINT32_MAX;
}

int exchange_begin(struct backend *b, uint64_t slots, struct exchange_view *view) {
    struct exchange *x = b->exchange;
    memset(view, 0, sizeof *view);
    if (!x) return 0;
    if (slots > x->capacity && grow(b, slots)) return -1;
    if (++x->sequence == 0) x->sequence = 1; /* 0 is never a step's sequence: a new box contains zeros */
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

static int check_missing(const struct exchange *x) {
    unsigned missing = *(volatile unsigned *)x->missing;
    if (!missing) return 0;
    return fail("rank %u of %u did not come with its part of a step within %u s (device.rank_timeout): its process or its GPU "
                "hangs",
                missing - 1, x->ranks->count, x->ranks->patience);
}

/* Waits until an event is recorded, or another rank is missing. Our kernels stop waiting after `patience`; NCCL's kernels would
 * wait for ever. */
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
