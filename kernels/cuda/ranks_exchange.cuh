/* ranks_exchange: parts of sums that ranks hand to one another; each is a float with a slot of its own in the step.
 *
 * A rank owns some of the columns, so it has a part of each dot product (and of each row's squares, where gradients are
 * shortened). exchange_post() gives a part away; exchange_collect() returns the sum over all ranks, in rank order on each of them:
 * the same bits. How parts travel is decided when the backend opens:
 *
 *   near   all ranks are on this machine, and their GPUs reach each other's memory. Every GPU has a mailbox:
 *
 *              box[parity of the sequence][rank it comes from][slot] = {value, sequence}, one word of 8 bytes
 *
 *          A post stores a word into every peer's box; a collect reads its own box until the word has this step's sequence.
 *          Neither a fence nor a flag is needed, since value and number come together. Two boxes that take turns are enough:
 *          a rank that has finished a step has received a word of it from every other rank, which had then finished the step
 *          before. Hence every step must post at least one word.
 *   far    all other ranks. Parts are posted into an array, which exchange_sum() sums between two kernels: by NCCL, or by the
 *          host's threads and MPI.
 */
#ifndef SPTX_CUDA_RANKS_EXCHANGE_CUH
#define SPTX_CUDA_RANKS_EXCHANGE_CUH

#include "warp.cuh"

enum { NEAR_RANKS = 16 }; /* ranks that share a machine's mailboxes, at most */

struct exchange_view {
    uint64_t *box;                /* near: the own mailbox for this step's parity; NULL: far */
    uint64_t *peers[NEAR_RANKS];  /* near: where rank r receives this rank's words; NULL: this rank, or none */
    float *parts;                 /* far: [slots] */
    uint64_t capacity;            /* slots */
    const unsigned *beats;        /* pinned, mapped: the clock of this process (ranks_heartbeat.cu) */
    uint32_t patience;            /* beats that a collect waits */
    unsigned *missing;            /* pinned, mapped: 1 + the rank that did not come, or 0 */
    unsigned *gave_up;            /* the same number on the GPU; not 0: no rank waits any more */
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

/* Keeps the own part for a later kernel, which collects and does not have the part any more. */
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
    EXCHANGE_AGAIN = 4096, /* looks at a word before exchange_wait() */
    EXCHANGE_LOOKS = 1024  /* looks at a word between two looks at the host's memory */
};

/* Waits for a word that has not come. After `patience` it names the rank that the word was to come from, and takes
 * whatever is there. Time is the heartbeat's: where all processes are stopped, none of them waits. */
static __device__ __noinline__ uint64_t exchange_wait(const struct exchange_view &x, const uint64_t *at, uint32_t rank) {
    uint32_t began = 0;
    uint64_t word;
    for (uint64_t looks = 0; word = exchange_word(at), !exchange_has_come(x, word); looks++) {
        if (looks % EXCHANGE_LOOKS) continue;
        if (*(volatile unsigned *)x.gave_up) break;
        if (!looks) continue; /* a short wait does not read the host's memory */
        uint32_t now = *(volatile const unsigned *)x.beats;
        if (looks == EXCHANGE_LOOKS) began = now;
        if (now - began < x.patience) continue;
        *x.missing = rank + 1;
        *(volatile unsigned *)x.gave_up = rank + 1;
        __threadfence_system();
    }
    return word;
}

/* Returns the sum over all ranks. own: the part that this rank has posted. */
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
 * A lane has N slots, of which those marked `real` count. Lanes that each waited for their own words would leave the loop one by
 * one, and run the code behind it one after the other: 2.5 times the instructions where it was measured. Where a lane has one slot
 * and little code follows, exchange_collect() is faster.
 */

/* Reads a rank's words. Before the call they are zeros. */
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

/* Sums over all ranks. value: first the parts that this rank has posted, then the sums. */
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

/* ---- the host's side (ranks_exchange.cu) ---- */

/* Joins this backend to the other ranks' backends; all of them call it. backend->exchange stays NULL for a single rank. */
int exchange_open(struct backend *backend, const struct backend_options *options);
void exchange_close(struct backend *backend);
int exchange_is_near(const struct exchange *exchange);
/* Begins a step of this number of slots, the same number on every rank. The next kernels of the compute stream may use the view. */
int exchange_begin(struct backend *backend, uint64_t slots, struct exchange_view *view);
/* Ranks of several machines: turns partial sums [first, first + count) of the step into sums, after the work that the compute
 * stream has so far. */
int exchange_sum(struct backend *backend, uint64_t first, uint64_t count);
/* Waits for an event behind a step. Returns -1 after fail() where another rank did not bring its part. */
int exchange_await(const struct backend *backend, cudaEvent_t event);

/* ranks_heartbeat.cu: a number that grows by HEARTBEATS a second while this process is not stopped. */
enum { HEARTBEATS = 20 };
struct heartbeat;
/* Begins it on a thread of its own. Even after -1, with fail(), heartbeat_end() must be called. */
int heartbeat_begin(struct heartbeat **heartbeat);
const unsigned *heartbeat_beats(const struct heartbeat *heartbeat); /* the address for kernels; NULL: the GPU cannot reach it */
void heartbeat_end(struct heartbeat *heartbeat);

/* ranks_nccl.cu: sums over ranks by NCCL's library, where this machine has it. Parts are added in rank order. */
struct nccl;
/* Opens NCCL; all ranks call it. Where it cannot be used, *nccl stays NULL and the reason is in `why`. */
void nccl_open(struct nccl **nccl, struct ranks *ranks, char *why, size_t capacity);
void nccl_close(struct nccl *nccl);
/* Returns the floats that arrays of `count` parts must have. All ranks' shares have one size; together they reach past
 * the sums, which may end anywhere in them. */
uint64_t nccl_padded(uint64_t count, unsigned ranks);
/* Enqueues that parts[count] become sums, as does what follows them up to whole shares. work: an array of the same
 * size. */
int nccl_sum(struct nccl *nccl, float *parts, float *work, uint64_t count, cudaStream_t stream);

#endif
