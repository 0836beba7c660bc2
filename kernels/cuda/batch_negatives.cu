/* batch_negatives: draws the negatives of a batch's blocks on the GPU: for each slot the first draw that is allowed
 * (kernels/examples.h). 2^n threads work on a block; if its negatives are distinct, a thread block does; of shared negatives
 * each thread draws two slots. A slot for which no draw in DRAW_ATTEMPTS is allowed keeps DRAW_NONE. */
#include "warp.cuh"

enum {
    THREAD_BITS = 8,
    THREADS = 1 << THREAD_BITS,
    NEGATIVE_LANE_BITS = 3,     /* if there are many blocks, at most 2^3 threads draw a block's negatives */
    NEGATIVE_THREADS = 1 << 16, /* number of threads that draw a batch's negatives, if it has at least as many pairs of slots */
    DISTINCT_THREADS = 128,
    DISTINCT_SLOTS = 512
};

/* draws_at: returns draw number `attempt` of `slot` and its neighbour. row_of: returns the row that a slot gets from a draw. */
static __device__ __forceinline__ struct draw4 draws_at(const struct example_request &b, uint64_t example,
                                                        uint32_t slot, uint32_t attempt) {
    return example_negative_draws(&b.source, b.epoch, example, slot, attempt);
}
static __device__ __forceinline__ uint32_t row_of(const struct example_request &b, const struct draw4 &drawn,
                                                  uint32_t slot) {
    return example_negative_of(&b.source, drawn, slot);
}

static __device__ struct example_own own_rows_of(const struct example_request &b, const struct built &to,
                                                 uint32_t block) {
    uint32_t first = to.target_starts[block], targets = to.target_starts[block + 1] - first;
    return example_own(&b.source, to.context_ids + to.context_starts[block], to.positives[block], to.target_ids + first, targets);
}

/* Counts the scores that are missing because a slot was left out: one for each vector of its block or, for a shared slot, one
 * for each example of the batch. */
static __device__ __forceinline__ void note_empty(const struct example_request &b, const struct built &to, uint32_t block) {
    const struct example_pool &pool = b.source.pool;
    uint32_t scores = b.source.per_batch ? to.counts->targets / example_shared_targets(&pool)
                                         : example_vectors(&pool, to.target_starts[block + 1] - to.target_starts[block]);
    atomicAdd(&to.counts->empty_terms, (unsigned long long)scores);
}

/* Draws negatives with 2^lane_bits threads a block. Each thread draws for one pair of slots at a time. */
static __global__ void fill_negatives(const struct example_request *request, struct built to, uint32_t lane_bits) {
    const struct example_request b = *request;
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, number = thread >> lane_bits;
    uint32_t lanes = 1u << lane_bits, lane = (uint32_t)thread & (lanes - 1);
    if (number >= to.counts->blocks) return;
    uint32_t block = (uint32_t)number, start = to.context_starts[block], end = to.context_starts[block + 1];
    uint32_t positives = to.positives[block], first = to.block_slot[block];
    uint32_t count = b.source.paths.starts ? 0 : end - start - positives; /* the contexts of paths have no negatives to draw */
    uint64_t example = to.block_example[block];
    struct example_own own = own_rows_of(b, to, block);
    for (uint32_t i = start + lane; i < end; i += lanes) to.context_block[i] = block;
    for (uint32_t pair = first / 2 + lane; count && pair <= (first + count - 1) / 2; pair += lanes) {
        struct draw4 first_draws = draws_at(b, example, 2 * pair, 0); /* most slots need no further attempt */
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t slot = 2 * pair + half, id = DRAW_NONE;
            if (slot < first || slot >= first + count) continue;
            for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
                uint32_t tried = row_of(b, attempt ? draws_at(b, example, slot, attempt) : first_draws, slot);
                if (example_excludes(&own, tried)) continue;
                id = tried;
                break;
            }
            if (id == DRAW_NONE) note_empty(b, to, block);
            to.context_ids[start + positives + slot - first] = id;
        }
    }
}

/* ---- distinct negatives ----
 *
 * By definition slots draw one after the other, and each takes its first draw that no earlier slot has. The result is the
 * same if all slots draw at once, each row is given to the lowest slot that has drawn it, and a slot that loses its row draws
 * again: a row that an earlier slot has never becomes free for a later one (Gale and Shapley 1962, where all rows rank the
 * slots in the same order). */

/* The rows of the slots that draw at the same time, in a hash table (open addressing): which slot has which row. */
struct claims {
    uint32_t row[2 * DISTINCT_SLOTS], holder[2 * DISTINCT_SLOTS]; /* entry of the hash table: a row, and the slot that has it;
                                                                   * row = DRAW_NONE: the entry is free */
    uint32_t chosen[DISTINCT_SLOTS];
    volatile uint32_t attempts[DISTINCT_SLOTS]; /* number of draws that each slot has made */
};

static __device__ uint32_t place_of(struct claims &c, uint32_t row, uint32_t mask) {
    for (uint32_t at = row * 0x9E3779B9u >> 16;; at++) {
        uint32_t there = atomicCAS(&c.row[at & mask], DRAW_NONE, row);
        if (there == DRAW_NONE || there == row) return at & mask;
    }
}

/* Draws for `slot` until it gets a row. If a higher slot had that row, it loses the row, and this thread then draws for that
 * slot, and so on. Slots below `base` are final; their ids are in `out`. */
static __device__ void claim(struct claims &c, const struct example_request &b, const struct example_own &own,
                             uint64_t example, uint32_t first, const uint32_t *out, uint32_t base, uint32_t slot,
                             uint32_t mask) {
    uint32_t attempt = 0;
    while (attempt < DRAW_ATTEMPTS) {
        uint32_t number = first + base + slot, row = row_of(b, draws_at(b, example, number, attempt), number);
        attempt++;
        if (example_excludes(&own, row) || example_among(row, out, base)) continue;
        uint32_t place = place_of(c, row, mask);
        c.attempts[slot] = attempt;
        __threadfence_block();
        uint32_t other = atomicMin(&c.holder[place], slot);
        if (other == DRAW_NONE) return;
        if (other < slot) continue;
        __threadfence_block();
        slot = other;
        attempt = c.attempts[slot];
    }
}

/* Draws distinct negatives; each thread block works on one block of the batch. */
static __global__ void __launch_bounds__(DISTINCT_THREADS)
    fill_distinct_negatives(const struct example_request *request, struct built to) {
    __shared__ struct claims c;
    const struct example_request b = *request;
    uint32_t block = blockIdx.x;
    if (block >= to.counts->blocks) return;
    uint32_t start = to.context_starts[block], end = to.context_starts[block + 1], positives = to.positives[block];
    uint32_t count = end - start - positives, *out = to.context_ids + start + positives;
    uint64_t example = to.block_example[block];
    struct example_own own = own_rows_of(b, to, block);
    for (uint32_t i = start + threadIdx.x; i < end; i += DISTINCT_THREADS) to.context_block[i] = block;
    for (uint32_t base = 0; base < count; base += DISTINCT_SLOTS) {
        uint32_t here = count - base < DISTINCT_SLOTS ? count - base : DISTINCT_SLOTS, places = 2;
        while (places < 2 * here) places *= 2;
        for (uint32_t i = threadIdx.x; i < places; i += DISTINCT_THREADS) c.row[i] = c.holder[i] = DRAW_NONE;
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS) c.chosen[i] = DRAW_NONE;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS)
            claim(c, b, own, example, to.block_slot[block], out, base, i, places - 1);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < places; i += DISTINCT_THREADS)
            if (c.holder[i] != DRAW_NONE) c.chosen[c.holder[i]] = c.row[i];
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS) {
            out[base + i] = c.chosen[i];
            if (c.chosen[i] == DRAW_NONE) note_empty(b, to, block);
        }
        __syncthreads();
    }
}

/* ---- the host's side ---- */

/* Returns log2 of the number of threads that draw a block's negatives: about one thread for each pair of slots, but at most
 * 2^NEGATIVE_LANE_BITS. With few blocks the limit is higher, since a block may have a thousand negatives, and each must be
 * compared with as many positives. */
static uint32_t negative_lane_bits(const struct batch_sizes *sizes) {
    uint32_t bits = 0, most = NEGATIVE_LANE_BITS, pairs = sizes->contexts / sizes->blocks / 2 + 1;
    while (most < THREAD_BITS && ((uint64_t)sizes->blocks << most) < NEGATIVE_THREADS) most++;
    while (bits < most && (uint64_t)1 << bits < pairs) bits++;
    return bits;
}

/* Enqueues drawing the negatives of the first `blocks` blocks: with 2^bits threads a block, or, if negatives are distinct, with
 * a thread block for each block. */
static int fill_slots(struct stage *stage, const struct built &to, uint32_t blocks, uint32_t bits) {
    cudaStream_t stream = stage->builder->stream;
    if (stage->request_host->source.distinct && !stage->request_host->source.paths.starts) {
        fill_distinct_negatives<<<blocks, DISTINCT_THREADS, 0, stream>>>(stage->request, to);
        CK_LAUNCH("fill_distinct_negatives");
    } else {
        fill_negatives<<<blocks_for((uint64_t)blocks << bits, THREADS), THREADS, 0, stream>>>(stage->request, to, bits);
        CK_LAUNCH("fill_negatives");
    }
    return 0;
}

/* Returns log2 of the number of threads that draw shared negatives: at least one for each pair of slots. */
static uint32_t shared_lane_bits(uint32_t negatives) {
    uint32_t bits = THREAD_BITS;
    while ((uint64_t)2 << bits < negatives) bits++;
    return bits;
}

int cuda_negatives_draw(struct stage *stage, const struct built *to) {
    uint32_t shared = example_batch_negatives(&stage->request_host->source);
    return shared ? fill_slots(stage, *to, 1, shared_lane_bits(shared))
                  : fill_slots(stage, *to, stage->sizes.blocks, negative_lane_bits(&stage->sizes));
}
