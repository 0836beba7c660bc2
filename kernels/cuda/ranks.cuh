/* ranks: sums over ranks, inside kernels. Each value to sum has a number in the step, its slot.
 *
 * Each rank has some of the columns, so it computes a partial sum of each dot product (and of each row's squares, if gradients are
 * bounded). exchange_post() sends a partial sum to the other ranks. exchange_collect() returns the sum over all ranks, added in
 * rank order, so that every rank gets the same bits. How partial sums are sent is decided when the backend opens:
 *
 *   near   all ranks are on this machine, and their GPUs can address each other's memory. Every GPU has a mailbox:
 *
 *              box[parity of the sequence][rank that sends][slot] = {value, sequence}, 8 bytes
 *
 *          The sequence is the number of the step. A post writes these 8 bytes to every other rank's box; a collect reads its own
 *          box until the slot has this step's sequence. Neither a fence nor a flag is needed, since value and sequence arrive
 *          together. Two boxes, used in turn, are enough: a rank that has finished a step has received a value of that step from
 *          every other rank, and a rank sends such a value only after it has finished the step before. Hence every step must post
 *          at least one value.
 *   far    all other ranks. Partial sums are posted to an array, which exchange_sum() sums between two kernels: by NCCL, or by the
 *          host's threads and MPI.
 */
#ifndef SPTX_CUDA_RANKS_CUH
#define SPTX_CUDA_RANKS_CUH

#include "values.cuh"

enum { NEAR_RANKS = 16 }; /* most ranks of one machine that exchange by mailboxes */

struct exchange_view {
    uint64_t *box;                /* near: this rank's mailbox of the two that this step uses; NULL: the ranks are far */
    uint64_t *peers[NEAR_RANKS];  /* near: the address in rank r's mailbox to which this rank writes; NULL: r is this rank, or there is no rank r */
    float *parts;                 /* far: [slots] partial sums */
    uint64_t capacity;            /* number of slots */
    const unsigned *beats;        /* pinned, mapped: a counter that does not grow while this process is stopped (ranks.cu) */
    uint32_t patience;            /* how long a collect waits, in heartbeats */
    unsigned *missing;            /* pinned, mapped: 1 + the number of the rank that sent nothing in time; 0: no rank is missing */
    unsigned *gave_up;            /* on the GPU: a copy of *missing; if it is not 0, no kernel waits any more */
    uint32_t ranks, number, sequence;
};

static __device__ __forceinline__ void exchange_post(const struct exchange_view &x, uint64_t slot, float part) {
    if (!x.box) {
        x.parts[slot] = part;
        return;
    }
    uint64_t word = (uint64_t)x.sequence << 32 | __float_as_uint(part);
    for (uint32_t r = 0; r < x.ranks; r++)
        if (r != x.number) asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(x.peers[r] + slot), "l"(word) : "memory");
}

/* Stores this rank's partial sum, so that a later kernel can collect it. */
static __device__ __forceinline__ void exchange_keep(const struct exchange_view &x, uint64_t slot, float part) {
    if (x.box) x.box[x.number * x.capacity + slot] = __float_as_uint(part);
}
static __device__ __forceinline__ float exchange_kept(const struct exchange_view &x, uint64_t slot) {
    return x.box ? __uint_as_float((uint32_t)x.box[x.number * x.capacity + slot]) : 0;
}

static __device__ __forceinline__ uint64_t exchange_word(const uint64_t *at) {
    uint64_t word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

static __device__ __forceinline__ bool exchange_has_come(const struct exchange_view &x, uint64_t word) {
    return (uint32_t)(word >> 32) == x.sequence;
}

enum {
    EXCHANGE_AGAIN = 4096, /* how often a slot is read before exchange_wait() is called */
    EXCHANGE_LOOKS = 1024  /* how often a slot is read between two reads of host memory */
};

/* Waits for a value that has not arrived, at most `patience` heartbeats. Then it records in *missing which rank should have sent the value,
 * and returns what is in the slot. Heartbeats are counted instead of seconds because they stop if all processes are stopped. */
static __device__ __noinline__ uint64_t exchange_wait(const struct exchange_view &x, const uint64_t *at, uint32_t rank) {
    uint32_t began = 0;
    uint64_t word;
    for (uint64_t looks = 0; word = exchange_word(at), !exchange_has_come(x, word); looks++) {
        if (looks % EXCHANGE_LOOKS) continue;
        if (*(volatile unsigned *)x.gave_up) break;
        if (!looks) continue; /* before the first EXCHANGE_LOOKS reads of the slot, host memory is not read */
        uint32_t now = *(volatile const unsigned *)x.beats;
        if (looks == EXCHANGE_LOOKS) began = now;
        if (now - began < x.patience) continue;
        *x.missing = rank + 1;
        *(volatile unsigned *)x.gave_up = rank + 1;
        __threadfence_system();
    }
    return word;
}

/* Returns the sum over all ranks. own: the partial sum that this rank has posted. */
static __device__ __forceinline__ float exchange_collect(const struct exchange_view &x, uint64_t slot, float own) {
    if (!x.box) return x.parts[slot];
    float sum = 0;
    for (uint32_t r = 0; r < x.ranks; r++) {
        float part = own;
        if (r != x.number) {
            const uint64_t *at = x.box + r * x.capacity + slot;
            uint64_t word = exchange_word(at);
            for (int again = 0; again < EXCHANGE_AGAIN && !exchange_has_come(x, word); again++) word = exchange_word(at);
            if (!exchange_has_come(x, word)) word = exchange_wait(x, at, r);
            part = __uint_as_float((uint32_t)word);
        }
        sum = r ? sum + part : part;
    }
    return sum;
}

/* ---- by all lanes of a warp ----
 *
 * A lane has N slots, of which only those marked `real` are used. If each lane waited for its own values, lanes would leave the
 * loop at different times and run the code after it one after the other: 2.5 times the instructions in a measurement. If a lane has
 * one slot and little code follows, exchange_collect() is faster.
 */

/* Reads the values of one rank. word[] must contain zeros before the call. */
template <int N>
static __device__ __forceinline__ void exchange_words(const struct exchange_view &x, uint32_t rank, const uint64_t (&slot)[N],
                                                      const bool (&real)[N], uint64_t (&word)[N]) {
    const uint64_t *from = x.box + rank * x.capacity;
    for (int again = 0; again <= EXCHANGE_AGAIN; again++) {
        bool missing = false;
#pragma unroll
        for (int n = 0; n < N; n++)
            if (real[n] && !exchange_has_come(x, word[n])) word[n] = exchange_word(from + slot[n]);
#pragma unroll
        for (int n = 0; n < N; n++) missing |= real[n] && !exchange_has_come(x, word[n]);
        if (!__any_sync(ALL_LANES, missing)) return;
    }
#pragma unroll
    for (int n = 0; n < N; n++)
        if (real[n] && !exchange_has_come(x, word[n])) word[n] = exchange_wait(x, from + slot[n], rank);
    __syncwarp();
}

/* value[] contains the partial sums that this rank has posted; replaces them by the sums over all ranks. */
template <int N>
static __device__ __forceinline__ void exchange_collect_all(const struct exchange_view &x, const uint64_t (&slot)[N],
                                                            const bool (&real)[N], float (&value)[N]) {
    if (!x.box) {
#pragma unroll
        for (int n = 0; n < N; n++)
            if (real[n]) value[n] = x.parts[slot[n]];
        return;
    }
    float sum[N] = {};
    for (uint32_t r = 0; r < x.ranks; r++) {
        uint64_t word[N] = {};
        if (r != x.number) exchange_words(x, r, slot, real, word);
#pragma unroll
        for (int n = 0; n < N; n++) {
            float part = r != x.number ? __uint_as_float((uint32_t)word[n]) : value[n];
            sum[n] = r ? sum[n] + part : part;
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) value[n] = sum[n];
}

/* ---- the host's side (ranks.cu) ---- */

/* Connects this backend to the backends of the other ranks; all ranks must call it. For a single rank, backend->exchange stays NULL. */
int exchange_open(struct backend *backend, const struct backend_options *options);
void exchange_close(struct backend *backend);
int exchange_is_near(const struct exchange *exchange);
/* Begins a step that exchanges this number of slots, which must be the same on every rank. Kernels that are then enqueued on the
 * compute stream may use the view. */
int exchange_begin(struct backend *backend, uint64_t slots, struct exchange_view *view);
/* Only for `far` ranks: enqueues, after the work on the compute stream so far, that partial sums [first, first + count) of the
 * step are replaced by their sums over ranks. */
int exchange_sum(struct backend *backend, uint64_t first, uint64_t count);
/* Waits for an event that is recorded after a step. Returns -1 after fail() if another rank did not send its partial sums. */
int exchange_await(const struct backend *backend, cudaEvent_t event);

/* A counter that grows by HEARTBEATS a second, except while this process is stopped. */
enum { HEARTBEATS = 20 };
struct heartbeat;
/* Starts the counter, which its own thread increments. Call heartbeat_end() even if this returns -1 after fail(). */
int heartbeat_begin(struct heartbeat **heartbeat);
const unsigned *heartbeat_beats(const struct heartbeat *heartbeat); /* returns the counter's address on the GPU; NULL: the GPU
                                                                     * cannot read the counter */
void heartbeat_end(struct heartbeat *heartbeat);

/* Sums over ranks by NCCL, if this machine has the library. Partial sums are added in rank order. */
struct nccl;
/* Opens NCCL; all ranks must call it. If NCCL cannot be used, *nccl stays NULL and `why` says why. */
void nccl_open(struct nccl **nccl, struct ranks *ranks, char *why, size_t capacity);
void nccl_close(struct nccl *nccl);
/* Returns the length of an array for `count` floats that are summed over ranks: `count`, rounded up so that all ranks' shares have the same size. */
uint64_t nccl_padded(uint64_t count, unsigned ranks);
/* Enqueues the summing of parts[nccl_padded(count)] over ranks; the sums replace the values. work: scratch of the same length. */
int nccl_sum(struct nccl *nccl, float *parts, float *work, uint64_t count, cudaStream_t stream);

#endif
