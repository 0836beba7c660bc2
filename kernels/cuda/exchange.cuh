/* exchange: parts of sums that ranks hand to one another, each a float that has its own slot in a step.
 *
 * A rank owns some of the columns, so it has a part of each dot product (and of each row's squares, where gradients are
 * shortened). exchange_post() gives a part away, exchange_collect() has the sum over all ranks, in the ranks' order on each
 * of them: the same bits. How parts travel is chosen when the backend opens:
 *
 *   near   all ranks are on this machine and their GPUs reach each other's memory. A mailbox lies in every GPU:
 *
 *              box[parity of the sequence][rank it comes from][slot] = {value, sequence}, one word of 8 bytes
 *
 *          A post is a store into every peer's box, a collect reads the own box until the word has this step's sequence.
 *          No fence and no flag: value and number come together. Two boxes in turn are enough: a rank that has finished a
 *          step has had a word of it from every other, which then had finished the step before. So each step has a word.
 *   far    everything else. Parts are posted into an array, which exchange_sum() sums between two kernels: by NCCL, or by the
 *          host's threads and MPI.
 */
#ifndef SPTX_CUDA_EXCHANGE_CUH
#define SPTX_CUDA_EXCHANGE_CUH

#include "warp.cuh"

enum { NEAR_RANKS = 16 }; /* that share a machine's mailboxes at most */

struct exchange_view {
    uint64_t *box;                /* near: the own mailbox, of this step's parity; NULL: far */
    uint64_t *peers[NEAR_RANKS];  /* near: where rank r has this rank's words; NULL: this rank, or none */
    float *parts;                 /* far: [slots] */
    uint64_t capacity;            /* slots */
    const unsigned *beats;        /* pinned, mapped: this process's time (heartbeat.cu) */
    uint32_t patience;            /* beats that a collect waits */
    unsigned *missing;            /* pinned, mapped: 1 + the rank that was waited for in vain, or 0 */
    unsigned *gave_up;            /* the same on the GPU: nobody is waited for any more */
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

/* The own part, for a later kernel that collects and has it no more. */
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
    EXCHANGE_AGAIN = 4096, /* looks at a word before it is waited for in earnest */
    EXCHANGE_LOOKS = 1024  /* the same, for each look at memory of the host */
};

/* A word that does not come: after `patience` the rank it was to come from is named, and whatever stands there is taken. Time is
 * what the heartbeat has: where all processes are stopped, none of them waits. */
static __device__ __noinline__ uint64_t exchange_wait(const struct exchange_view &x, const uint64_t *at, uint32_t rank) {
    uint32_t began = 0;
    uint64_t word;
    for (uint64_t looks = 0; word = exchange_word(at), !exchange_has_come(x, word); looks++) {
        if (looks % EXCHANGE_LOOKS) continue;
        if (*(volatile unsigned *)x.gave_up) break;
        if (!looks) continue; /* a short wait asks the host for nothing */
        uint32_t now = *(volatile const unsigned *)x.beats;
        if (looks == EXCHANGE_LOOKS) began = now;
        if (now - began < x.patience) continue;
        *x.missing = rank + 1;
        *(volatile unsigned *)x.gave_up = rank + 1;
        __threadfence_system();
    }
    return word;
}

/* own: the part that this rank has posted. */
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
 * N slots a lane, of which it has those that are `real`. Lanes that each looked for their own words would leave the loop one by
 * one, and do what comes after it one after the other: two and a half times the instructions where it was measured. Where a lane
 * has one slot and little comes after it, exchange_collect() is faster.
 */

/* A rank's words, which come as zeros. */
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

/* Sums over all ranks; value: the parts that this rank has posted, then the sums. */
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

/* ---- the host's side (exchange.cu) ---- */

/* Joins this backend to those of the other ranks; all of them call it. backend->exchange stays NULL for a rank alone. */
int exchange_open(struct backend *backend, const struct backend_options *options);
void exchange_close(struct backend *backend);
int exchange_is_near(const struct exchange *exchange);
/* For a step of so many slots, the same on every rank; the compute stream's next kernels may use the view. */
int exchange_begin(struct backend *backend, uint64_t slots, struct exchange_view *view);
/* Far: parts [first, first + count) of the step become sums, after what the compute stream has so far and before what comes. */
int exchange_sum(struct backend *backend, uint64_t first, uint64_t count);
/* Waits for an event behind a step; -1 after fail() where another rank did not come with its part. */
int exchange_await(const struct backend *backend, cudaEvent_t event);

/* heartbeat.cu: a number that grows by HEARTBEATS a second, as long as this process is not stopped. */
enum { HEARTBEATS = 20 };
struct heartbeat;
/* On a thread of its own; -1 after fail(), and then heartbeat_end() is still to be called. */
int heartbeat_begin(struct heartbeat **heartbeat);
const unsigned *heartbeat_beats(const struct heartbeat *heartbeat); /* as kernels read it; NULL: there is none */
void heartbeat_end(struct heartbeat *heartbeat);

/* nccl.cu: sums over ranks by NCCL's library, where this machine has one; each rank's part is added in the ranks' order. */
struct nccl;
/* *nccl stays NULL, with the reason in `why`, where it cannot be had. All ranks call it. */
void nccl_open(struct nccl **nccl, struct ranks *ranks, char *why, size_t capacity);
void nccl_close(struct nccl *nccl);
/* Floats that arrays of `count` parts are to have. Ranks have shares of one size, which together reach past what is summed, and
 * that may be any of the parts, up to the last. */
uint64_t nccl_padded(uint64_t count, unsigned ranks);
/* parts[count] become sums, and what is there up to whole shares; work: as large. Enqueued. */
int nccl_sum(struct nccl *nccl, float *parts, float *work, uint64_t count, cudaStream_t stream);

#endif
