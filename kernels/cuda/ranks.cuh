/* ranks: sums over ranks, inside kernels. Each value to be summed in a step has a number, its slot.
 *
 * Each rank stores some of the columns, and so computes a partial sum of each dot product (and of each gradient's squared norm, if gradients are
 * clipped). exchange_post() sends a partial sum to the other ranks. exchange_collect() returns the sum over all ranks, added in rank order, so that
 * every rank gets the same bits. How partial sums are sent is decided when the backend opens:
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
 *          A whole array, such as the scores of shared negatives, is summed between two kernels: exchange_sum_array().
 *   far    all other ranks. Partial sums are posted to an array, which exchange_sum() sums between two kernels: by NCCL, or by the
 *          host's threads and MPI.
 */
#ifndef SPTX_CUDA_RANKS_CUH
#define SPTX_CUDA_RANKS_CUH

#include "values.cuh"

enum { NEAR_RANKS = 16 }; /* most ranks of one machine that can exchange by mailboxes */

struct exchange_view {
    uint64_t *box;                /* near: this rank's mailbox for this step, one of two; NULL: ranks are far */
    uint64_t *peers[NEAR_RANKS];  /* near: where this rank writes in rank r's mailbox; NULL: r is this rank, or there is no rank r */
    float *parts;                 /* far: [slots] partial sums */
    uint64_t capacity;            /* number of slots */
    const unsigned *beats;        /* mapped pinned memory: a counter that stops while this process is stopped (ranks.cu) */
    uint32_t patience;            /* how long a collect waits, in heartbeats */
    unsigned *missing;            /* mapped pinned memory: 1 + the number of a rank that sent nothing in time; 0: no rank is missing */
    unsigned *gave_up;            /* on the GPU: copy of *missing; if it is not 0, kernels no longer wait */
    uint32_t ranks, number, sequence;
};

/* Writes a value to a slot of another rank's mailbox. */
static __device__ __forceinline__ void exchange_post_to(const struct exchange_view &x, uint32_t rank, uint64_t slot, float value) {
    uint64_t word = (uint64_t)x.sequence << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(x.peers[rank] + slot), "l"(word) : "memory");
}

static __device__ __forceinline__ void exchange_post(const struct exchange_view &x, uint64_t slot, float part) {
    if (!x.box) {
        x.parts[slot] = part;
        return;
    }
    for (uint32_t r = 0; r < x.ranks; r++)
        if (r != x.number) exchange_post_to(x, r, slot, part);
}

/* Stores this rank's partial sum for a later kernel, which collects the sum over ranks. */
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
    EXCHANGE_AGAIN = 4096, /* number of reads of a slot before exchange_wait() is called */
    EXCHANGE_LOOKS = 1024  /* host memory is read once for this many reads of a slot */
};

/* Waits for a value, for at most `patience` heartbeats; then records in *missing which rank did not send it. Returns what the slot contains.
 * Heartbeats are counted, not seconds, because they stop if all processes are stopped. */
static __device__ __noinline__ uint64_t exchange_wait(const struct exchange_view &x, const uint64_t *at, uint32_t rank) {
    uint32_t began = 0;
    uint64_t word;
    for (uint64_t looks = 0; word = exchange_word(at), !exchange_has_come(x, word); looks++) {
        if (looks % EXCHANGE_LOOKS) continue;
        if (*(volatile unsigned *)x.gave_up) break;
        if (!looks) continue; /* host memory is first read after EXCHANGE_LOOKS reads of the slot */
        uint32_t now = *(volatile const unsigned *)x.beats;
        if (looks == EXCHANGE_LOOKS) began = now;
        if (now - began < x.patience) continue;
        *x.missing = rank + 1;
        *(volatile unsigned *)x.gave_up = rank + 1;
        __threadfence_system();
    }
    return word;
}

/* Waits for the value that a rank posts to a slot of this rank's mailbox, and returns it. */
static __device__ __forceinline__ float exchange_receive(const struct exchange_view &x, uint32_t rank, uint64_t slot) {
    const uint64_t *at = x.box + rank * x.capacity + slot;
    uint64_t word = exchange_word(at);
    for (int again = 0; again < EXCHANGE_AGAIN && !exchange_has_come(x, word); again++) word = exchange_word(at);
    if (!exchange_has_come(x, word)) word = exchange_wait(x, at, rank);
    return __uint_as_float((uint32_t)word);
}

/* Waits for the other ranks' partial sums, and returns the sum over all ranks. own: the partial sum that this rank has posted. */
static __device__ __forceinline__ float exchange_collect(const struct exchange_view &x, uint64_t slot, float own) {
    if (!x.box) return x.parts[slot];
    float sum = 0;
    for (uint32_t r = 0; r < x.ranks; r++) {
        float part = r != x.number ? exchange_receive(x, r, slot) : own;
        sum = r ? sum + part : part;
    }
    return sum;
}

/* ---- by all lanes of a warp ----
 *
 * A lane has N slots, of which it uses those marked `real`. All lanes leave the loop together: if each waited only for its own values, lanes would
 * run the code after the loop one after the other (2.5 times the instructions when measured). For one slot and little code after it,
 * exchange_collect() is faster.
 */

/* Reads the values that one rank has sent. word[] must contain zeros before. */
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

/* Replaces value[], the partial sums that this rank has posted, by the sums over all ranks. */
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

/* Connects this backend to those of the other ranks; all ranks must call it. backend->exchange stays NULL if there is only one rank. */
int exchange_open(struct backend *backend, const struct backend_options *options);
void exchange_close(struct backend *backend);
int exchange_is_near(const struct exchange *exchange);
/* Begins a step that exchanges `slots` values, a number that must be the same on every rank. Kernels enqueued afterwards on the compute stream may
 * use the view. */
int exchange_begin(struct backend *backend, uint64_t slots, struct exchange_view *view);
/* For `far` ranks only: enqueues on the compute stream that partial sums first .. first + count - 1 of the step are replaced by their sums over
 * ranks. */
int exchange_sum(struct backend *backend, uint64_t first, uint64_t count);
/* Enqueues on the compute stream that values[count], partial sums in GPU memory, are replaced by their sums over ranks. All ranks must call it with
 * the same count. It begins steps of the exchange of its own, so the view of an earlier exchange_begin() can no longer be used. */
int exchange_sum_array(struct backend *backend, float *values, uint64_t count);
/* Enqueues a kernel in which all ranks wait for each other. A step whose other kernels may send nothing needs it, because every step must post at
 * least one value. */
int exchange_meet(struct backend *backend, const struct exchange_view *view);
/* Waits for an event that is recorded after a step. Returns -1 after fail() if another rank has not sent its partial sums in time. */
int exchange_await(const struct backend *backend, cudaEvent_t event);

/* How many times a second the counter is increased, except while this process is stopped. */
enum { HEARTBEATS = 20 };
struct heartbeat;
/* Starts the counter, which its own thread increments. Call heartbeat_end() even if this returns -1 after fail(). */
int heartbeat_begin(struct heartbeat **heartbeat);
const unsigned *heartbeat_beats(const struct heartbeat *heartbeat); /* returns the counter's address on the GPU; NULL: the GPU cannot read it */
void heartbeat_end(struct heartbeat *heartbeat);

/* Sums over ranks by NCCL, if this machine has the library. Partial sums are added in rank order. */
struct nccl;
/* Opens NCCL; all ranks must call it. If NCCL cannot be used, *nccl stays NULL and `why` gets the reason. */
void nccl_open(struct nccl **nccl, struct ranks *ranks, char *why, size_t capacity);
void nccl_close(struct nccl *nccl);
/* Returns the length of an array of `count` floats that are summed over ranks: rounded up so that all ranks' shares have the same size. */
uint64_t nccl_padded(uint64_t count, unsigned ranks);
/* Enqueues summing parts[nccl_padded(count)] over ranks, which replaces the values by the sums. work: scratch of the same length. */
int nccl_sum(struct nccl *nccl, float *parts, float *work, uint64_t count, cudaStream_t stream);

#endif
