/* dots: the first half of a step, block by block, from old rows: dot products, loss, coefficients, and each target
 * occurrence's gradient into a buffer.
 *
 *   one target       a context that stands once in the batch is updated right here, while it is in registers: read once,
 *                    written once. Of the others the coefficients are kept
 *   several targets  each context occurrence's gradient into a buffer
 *
 * Where ranks share out the columns, a dot product of these columns is a part of the one that is meant. DOTS_NEAR hands
 * parts over while the rows stay in registers: they are read once, as for a rank alone. Its blocks are taken in their order by
 * thread blocks that are resident all at once, on every rank, so that the earliest block that waits is always worked on by all.
 * DOTS_POST and DOTS_COLLECT are the same in two passes, between which the host has the parts summed.
 */
#ifndef SPTX_CUDA_DOTS_CUH
#define SPTX_CUDA_DOTS_CUH

#include "rule.cuh"

enum dots_mode { DOTS_ALONE, DOTS_NEAR, DOTS_POST, DOTS_COLLECT };

enum {
    WIDE_CTA = 384,   /* where a batch has too few blocks to fill the GPU: more groups share the contexts of each */
    WIDE_BLOCKS = 256 /* up to so many */
};

/* ---- a block's contexts ---- */

static __device__ __forceinline__ float loss_of(float logit, bool positive) {
    return sgns_loss_linear(logit, positive ? 1.0f : 0.0f) + log1pf(sgns_loss_tail(logit));
}

/* What a block's gradients are multiplied by; as the CPU has it, to the last bit. */
static __device__ __forceinline__ float scale_of(const struct step_view &v) {
    return v.mean ? (float)(1.0 / (double)v.counts->blocks) : 1.0f;
}

/* Rows that a warp works on side by side, and which of them this thread's is. */
template <int G> static constexpr __host__ __device__ int rows_beside() {
    return G < 32 ? 32 / G : 1;
}
template <int G> static __device__ __forceinline__ uint32_t own_beside() {
    return G < 32 ? (threadIdx.x & 31) / G : 0;
}

/* Contexts i to i + U x rows_beside of the `here` that `found` has, a lane each, into registers. weights NULL: a slot left
 * out, or none; single: stands once in the batch, its state is in `held`. In one struct these arrays took up to 3 registers
 * more. */
template <int G, int VEC, int NS, bool ONE, int U>
static __device__ __forceinline__ void read_contexts(float4 (&w)[U][VEC], struct held_row<VEC, ONE ? NS : 0> (&held)[U],
                                                     char *(&weights)[U], char *(&state)[U], bool (&single)[U],
                                                     const struct found_row &found, uint32_t i, uint32_t here,
                                                     uint32_t tid, const struct step_view &v) {
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint32_t own = i + u * rows_beside<G>() + own_beside<G>(), from = own & 31;
        weights[u] = (char *)__shfl_sync(ALL_LANES, found.weights, from);
        single[u] = ONE && __shfl_sync(ALL_LANES, found.single, from);
        state[u] = ONE && NS ? (char *)__shfl_sync(ALL_LANES, found.state, from) : NULL;
        if (own >= here) weights[u] = NULL, single[u] = false;
        if (weights[u]) read_row<G, VEC>(w[u], weights[u], tid, v.quads);
        else clear_row<VEC>(w[u]);
    }
    if constexpr (ONE && NS > 0) {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (single[u]) read_state<G, VEC, NS>(held[u], state[u], tid, v);
    }
}

/* A context that stands once in the batch: its whole gradient is known, and its record is in registers. */
template <int G, int VEC, int NS, bool ONE>
static __device__ __forceinline__ void update_single(struct held_row<VEC, ONE ? NS : 0> &held, float4 (&w)[VEC],
                                                     char *weights, char *state, float coefficient,
                                                     const float4 (&target)[VEC], uint32_t tid,
                                                     const struct step_view &v) {
    float4 g[VEC];
    clear_row<VEC>(g);
    add_row<VEC>(g, coefficient, target);
    if constexpr (NS == 0 || !ONE) held.updates = 0;
    if constexpr (ONE) update_row<G, VEC, NS>(held, g, w, weights, state, tid, v);
}

/* What the thread groups have of their rows, a value a row, by lanes: lane l gets that of row l of those in flight. */
template <int G, int U> static __device__ __forceinline__ float to_lanes(const float (&value)[U], uint32_t lane) {
    constexpr uint32_t R = rows_beside<G>();
    float mine = 0;
#pragma unroll
    for (int u = 0; u < U; u++) {
        float row = R > 1 ? __shfl_sync(ALL_LANES, value[u], lane % R * G) : value[u];
        if (lane / R == u) mine = row;
    }
    return mine;
}

/* Of the rows in flight, a lane a row (real: there is one): parts of their logits go to the other ranks, or come back as sums.
 * term: slot of the first. */
template <int G, int MODE, int U>
static __device__ __forceinline__ void exchange_logits(float (&logit)[U], const struct step_view &v, bool real, uint64_t term) {
    uint32_t lane = threadIdx.x & 31;
    float part = to_lanes<G, U>(logit, lane), sum = 0;
    if (MODE != DOTS_COLLECT && real && (G <= 32 || threadIdx.x < 32)) exchange_post(v.exchange, term + lane, part);
    if constexpr (MODE != DOTS_POST) {
        if (real) sum = exchange_collect(v.exchange, term + lane, part);
#pragma unroll
        for (int u = 0; u < U; u++) logit[u] = __shfl_sync(ALL_LANES, sum, u * rows_beside<G>() + own_beside<G>());
    }
}

template <int G, int VEC, int MODE, int U>
static __device__ __forceinline__ void find_logits(float (&logit)[U], const struct step_view &v, const float4 (&target)[VEC],
                                                   const float4 (&w)[U][VEC], bool real, uint64_t term) {
#pragma unroll
    for (int u = 0; u < U; u++) logit[u] = MODE == DOTS_COLLECT ? 0 : dot_rows<VEC>(target, w[u]);
    if constexpr (MODE != DOTS_COLLECT) group_sum<G, U>(logit);
    if constexpr (MODE != DOTS_ALONE) exchange_logits<G, MODE, U>(logit, v, real, term);
}

/* Rows of a group in flight. With ranks more, since each waits for a word of the others as well: so many that a target's
 * contexts take few rounds. */
template <int G, int VEC, int NS, bool ONE, int MODE> static constexpr __host__ __device__ int contexts_at_once() {
    constexpr int floats = 4 * VEC * (ONE ? 1 + NS : 1);
    constexpr int registers = !ONE || G > 32 ? REGISTERS : MODE != DOTS_NEAR ? REGISTERS / 2 : NS ? REGISTERS : 2 * REGISTERS / 3;
    return rows_at_once(floats, registers);
}

/* The sum of what the groups of a warp have, side by side; the same bits in all of them. */
template <int G, int VEC> static __device__ __forceinline__ void sum_beside(float4 (&x)[VEC]) {
    if constexpr (G < 32)
#pragma unroll
        for (int i = 0; i < VEC; i++)
#pragma unroll
            for (int width = G; width < 32; width *= 2) {
                x[i].x += __shfl_xor_sync(ALL_LANES, x[i].x, width);
                x[i].y += __shfl_xor_sync(ALL_LANES, x[i].y, width);
                x[i].z += __shfl_xor_sync(ALL_LANES, x[i].z, width);
                x[i].w += __shfl_xor_sync(ALL_LANES, x[i].w, width);
            }
}

/* Contexts [first, end) of a block against one target: adds to its gradient and the loss, updates rows that stand
 * once. terms: of the target's term with the block's first context. */
template <int G, int VEC, int NS, bool ONE, int MODE>
static __device__ __forceinline__ double meet_contexts(const struct step_view &v, const float4 (&target)[VEC],
                                                       float4 (&gradient)[VEC], uint32_t block_start, uint32_t first,
                                                       uint32_t end, uint32_t positives, uint64_t terms) {
    constexpr int U = contexts_at_once<G, VEC, NS, ONE, MODE>(), R = rows_beside<G>();
    float *coefficients = v.coefficients + terms;
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    float scale = scale_of(v);
    double loss = 0;
    for (uint32_t base = first; base < end; base += 32) {
        uint32_t here = end - base < 32 ? end - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        float my_logit = 0;
        if (v.loss_only || MODE == DOTS_POST) found.single = 0;
        for (uint32_t i = 0; i < here; i += U * R) {
            float4 w[U][VEC];
            struct held_row<VEC, ONE ? NS : 0> held[U];
            char *weights[U], *state[U];
            bool single[U];
            float logit[U];
            read_contexts<G, VEC, NS, ONE, U>(w, held, weights, state, single, found, i, here, tid, v);
            bool real = __shfl_sync(ALL_LANES, found.weights, (i + lane) & 31) && lane < U * R && i + lane < here;
            find_logits<G, VEC, MODE, U>(logit, v, target, w, real, terms + base + i - block_start);
            if (MODE == DOTS_POST) continue;
            float round_logit = to_lanes<G, U>(logit, (lane - i) & 31);
            if (lane - i < U * R) my_logit = round_logit;
#pragma unroll
            for (int u = 0; u < U; u++) {
                bool positive = base + i + u * R + own_beside<G>() - block_start < positives;
                float coefficient = sgns_coefficient(logit[u], positive ? 1.0f : 0.0f) * scale;
                if (!weights[u]) coefficient = 0;
                add_row<VEC>(gradient, coefficient, w[u]);
                if (single[u])
                    update_single<G, VEC, NS, ONE>(held[u], w[u], weights[u], state[u], coefficient, target, tid, v);
            }
        }
        if (MODE == DOTS_POST) continue;
        bool real = lane < here && found.weights, positive = base + lane - block_start < positives;
        float my_coefficient = real ? sgns_coefficient(my_logit, positive ? 1.0f : 0.0f) * scale : 0;
        if (real) loss += (double)loss_of(my_logit, positive);
        bool writes = threadIdx.x % (G < 32 ? 32 : G) < 32 && !v.loss_only;
        if (writes && lane < here) coefficients[base + lane - block_start] = my_coefficient;
    }
    sum_beside<G, VEC>(gradient);
    return loss;
}

template <int G, int VEC>
static __device__ __forceinline__ void read_target(const struct step_view &v, uint32_t occurrence, float4 (&target)[VEC]) {
    uint32_t distinct = v.target.rows.distinct[occurrence] & ~SINGLE_BIT, id = v.target.rows.ids[occurrence];
    read_row<G, VEC>(target, live_row(v.target.weights, id, distinct, v.counts->cold_first[SIDE_TARGET]),
                     threadIdx.x % G, v.quads);
}

/* ---- blocks of one target ---- */

/* Thread blocks of dot_one on a multiprocessor at least: where a row is updated as soon as it is read, many warps with
 * few rows each do better than few with many. */
static constexpr int resident_blocks(int group, int slots, int threads, int mode) {
    return group > 32 || threads > CTA ? 1 : slots > 1 || mode == DOTS_NEAR ? 3 : 4;
}

/* The groups' gradients, added in the groups' order by all threads. */
template <int THREADS, uint32_t GROUPS, int QUADS>
static __device__ __forceinline__ void add_groups(const float4 (&sums)[GROUPS][QUADS], float4 *out, uint32_t quads) {
    for (uint32_t q = threadIdx.x; q < quads; q += THREADS) {
        float4 sum = sums[0][q];
#pragma unroll
        for (uint32_t p = 1; p < GROUPS; p++) {
            float4 more = sums[p][q];
            sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        out[q] = sum;
    }
}

/* The blocks of thread block `at`. parts groups of a thread block share a block's contexts; their sums are added in their
 * order. */
template <int G, int VEC, int NS, int THREADS, int MODE>
static __device__ __forceinline__ void dot_blocks(const struct step_view &v, uint32_t at) {
    constexpr uint32_t WIDTH = G < 32 ? 32 : G, GROUPS = THREADS / WIDTH; /* threads that take a block's contexts together */
    __shared__ float4 sums[GROUPS > 1 ? GROUPS : 1][GROUPS > 1 ? VEC * G : 1];
    __shared__ double losses[GROUPS];
    uint32_t group = threadIdx.x / WIDTH, tid = threadIdx.x % WIDTH, block = (at * GROUPS + group) / v.parts,
             part = group % v.parts;
    if (block >= v.counts->blocks) return; /* all groups that share a block, or none */
    float4 target[VEC], gradient[VEC];
    uint32_t start = v.context_starts[block], end = v.context_starts[block + 1];
    uint32_t each = (end - start + v.parts - 1) / v.parts;
    uint32_t first = start + part * each, last = first + each < end ? first + each : end;
    if (first > last) first = last;
    read_target<G, VEC>(v, block, target);
    clear_row<VEC>(gradient);
    double loss = meet_contexts<G, VEC, NS, true, MODE>(v, target, gradient, start, first, last, v.positives[block], start);
    if (MODE == DOTS_POST) return;
    loss = warp_sum(loss);
    char *out = (char *)(v.target_gradients + block * v.span);
    if (v.parts == 1) {
        if (tid == 0) v.losses[block] = loss;
        if (!v.loss_only && tid < G) write_row<G, VEC>(gradient, out, tid, v.quads);
        return;
    }
    if constexpr (GROUPS > 1) {
#pragma unroll
        for (int i = 0; i < VEC; i++)
            if (tid < G) sums[group][i * G + tid] = gradient[i];
        if (tid == 0) losses[group] = loss;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (uint32_t p = 1; p < GROUPS; p++) loss += losses[p];
            v.losses[block] = loss;
        }
        if (!v.loss_only) add_groups<THREADS, GROUPS, VEC * G>(sums, (float4 *)out, v.quads);
        if constexpr (MODE == DOTS_NEAR) __syncthreads(); /* sums and losses are the next block's */
    }
}

template <int G, int VEC, int NS, int THREADS, int MODE>
static __global__ void __launch_bounds__(THREADS, resident_blocks(G, NS, THREADS, MODE))
    dot_one(const __grid_constant__ struct step_view v) {
    constexpr uint32_t GROUPS = THREADS / (G < 32 ? 32 : G);
    if constexpr (MODE == DOTS_NEAR)
        for (uint32_t at = blockIdx.x; at * GROUPS / v.parts < v.counts->blocks; at += gridDim.x)
            dot_blocks<G, VEC, NS, THREADS, MODE>(v, at);
    else dot_blocks<G, VEC, NS, THREADS, MODE>(v, blockIdx.x);
}

/* ---- blocks of several targets ---- */

/* A context's gradient: targets [t0, t1), each by its coefficient, which lie `stride` apart. */
template <int G, int VEC>
static __device__ __forceinline__ void sum_targets(float4 (&sum)[VEC], const struct step_view &v, uint32_t t0,
                                                   uint32_t t1, const float *coefficients, uint32_t stride) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS);
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_TARGET];
    clear_row<VEC>(sum);
    for (uint32_t base = t0; base < t1; base += 32) {
        uint32_t here = t1 - base < 32 ? t1 - base : 32;
        struct found_row found = find_row(v.target, cold_first, base + lane, lane < here);
        float factor = lane < here ? coefficients[(uint64_t)(base + lane - t0) * stride] : 0;
        for (uint32_t i = 0; i < here; i += U) add_found<G, VEC, U>(sum, found.weights, factor, i, here, tid, v.quads);
    }
}

/* Rows too wide for a warp's registers, a thread block a block: rows come from the first cache but for the first time. */
template <int G, int VEC, int MODE>
static __device__ __forceinline__ void dot_wide_block(const struct step_view &v, uint32_t block) {
    constexpr uint32_t GROUPS = CTA / G;
    uint32_t group = threadIdx.x / G, tid = threadIdx.x % G;
    if (block >= v.counts->blocks) return;
    uint32_t t0 = v.target_starts[block], t1 = v.target_starts[block + 1];
    uint32_t c0 = v.context_starts[block], c1 = v.context_starts[block + 1];
    uint32_t contexts = c1 - c0, positives = v.positives[block];
    float *coefficients = v.coefficients + v.term_starts[block];
    float4 x[VEC], sum[VEC];
    for (uint32_t t = t0 + group; t < t1; t += GROUPS) {
        read_target<G, VEC>(v, t, x);
        clear_row<VEC>(sum);
        double loss = meet_contexts<G, VEC, 0, false, MODE>(v, x, sum, c0, c0, c1, positives,
                                                            v.term_starts[block] + (uint64_t)(t - t0) * contexts);
        if (MODE == DOTS_POST) continue;
        loss = warp_sum(loss);
        if (tid == 0) v.losses[t] = loss;
        if (!v.loss_only) write_row<G, VEC>(sum, (char *)(v.target_gradients + t * v.span), tid, v.quads);
    }
    if (v.loss_only || MODE == DOTS_POST) return;
    __syncthreads(); /* all coefficients are there */
    for (uint32_t c = group; c < contexts; c += GROUPS) {
        sum_targets<G, VEC>(sum, v, t0, t1, coefficients + c, contexts);
        write_row<G, VEC>(sum, (char *)(v.context_gradients + (c0 + c) * v.span), tid, v.quads);
    }
    if constexpr (MODE == DOTS_NEAR) __syncthreads(); /* what is in shared memory is the next block's */
}

template <int G, int VEC, int MODE>
static __global__ void __launch_bounds__(CTA) dot_many(const __grid_constant__ struct step_view v) {
    if constexpr (MODE == DOTS_NEAR)
        for (uint32_t block = blockIdx.x; block < v.counts->blocks; block += gridDim.x) dot_wide_block<G, VEC, MODE>(v, block);
    else dot_wide_block<G, VEC, MODE>(v, blockIdx.x);
}

/* What a warp holds of a window at a time: so many of its targets and contexts. */
template <int VEC> struct tile {
    static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, contexts = VEC <= 2 ? 6 : 4;
};

/* N rows of `found`, from lane `first` on, a lane each; zeros for those that are none. */
template <int N, int VEC>
static __device__ __forceinline__ void read_tile(float4 (&rows)[N][VEC], unsigned long long found, uint32_t first,
                                                 uint32_t quads) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const char *row = (const char *)__shfl_sync(ALL_LANES, found, first + i);
        if (row) read_row<32, VEC>(rows[i], row, threadIdx.x & 31, quads);
        else clear_row<VEC>(rows[i]);
    }
}

/* Lane j x CC + k has the dot product of target j and context k. */
template <int TT, int CC, int VEC>
static __device__ __forceinline__ float dot_tile(const float4 (&x)[TT][VEC], const float4 (&w)[CC][VEC]) {
    float logits[TT * CC];
#pragma unroll
    for (int j = 0; j < TT; j++)
#pragma unroll
        for (int k = 0; k < CC; k++) logits[j * CC + k] = dot_rows<VEC>(x[j], w[k]);
    return sum_over_warp(logits);
}

/* The gradients that the tile's `count` targets and its contexts gain, by the coefficients that lanes have as
 * dot_tile() leaves them. The targets' lie in memory, row after row; with the first tile of contexts they begin. */
template <int TT, int CC, int VEC>
static __device__ __forceinline__ void gain_tile(const struct step_view &v, const float4 (&x)[TT][VEC],
                                                 const float4 (&w)[CC][VEC], float4 (&gained)[CC][VEC],
                                                 float coefficient, float *gradients, uint32_t count, bool begin) {
    uint32_t lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < TT; j++) {
        if (j >= count) continue;
        char *gradient = (char *)(gradients + (uint64_t)j * v.span);
        float4 sum[VEC];
        if (begin) clear_row<VEC>(sum);
        else read_row<32, VEC>(sum, gradient, lane, v.quads);
#pragma unroll
        for (int k = 0; k < CC; k++) {
            float by = __shfl_sync(ALL_LANES, coefficient, j * CC + k);
            add_row<VEC>(sum, by, w[k]);
            add_row<VEC>(gained[k], by, x[j]);
        }
        write_row<32, VEC>(sum, gradient, lane, v.quads);
    }
}

/* The logit of a lane's target and context; every lane with a real one has its own slot. */
template <int TT, int CC, int VEC, int MODE>
static __device__ __forceinline__ float find_logit(const struct step_view &v, const float4 (&x)[TT][VEC],
                                                   const float4 (&w)[CC][VEC], uint64_t term, bool real) {
    float logit = 0;
    if constexpr (MODE != DOTS_COLLECT) logit = dot_tile<TT, CC, VEC>(x, w);
    if ((MODE == DOTS_NEAR || MODE == DOTS_POST) && real) exchange_post(v.exchange, term, logit);
    if ((MODE == DOTS_NEAR || MODE == DOTS_COLLECT) && real) logit = exchange_collect(v.exchange, term, logit);
    return logit;
}

/* A warp a block. A tile of contexts and what they gain stays in registers while the targets pass; where there are more
 * contexts, the targets pass again and add to their gradients. */
template <int VEC, int MODE>
static __device__ __forceinline__ void dot_window(const struct step_view &v, uint32_t block) {
    constexpr int TT = tile<VEC>::targets, CC = tile<VEC>::contexts;
    constexpr uint32_t AHEAD = 32 / TT * TT; /* targets looked up at a time, a lane each */
    uint32_t lane = threadIdx.x & 31;
    if (block >= v.counts->blocks) return;
    uint32_t t0 = v.target_starts[block], t1 = v.target_starts[block + 1];
    uint32_t c0 = v.context_starts[block], c1 = v.context_starts[block + 1];
    uint32_t positives = v.positives[block], my_target = lane / CC, my_slot = lane % CC;
    float scale = scale_of(v);
    double loss = 0;
    for (uint32_t first = c0; first < c1; first += CC) {
        struct found_row context = find_row(v.context, v.counts->cold_first[SIDE_CONTEXT], first + lane,
                                            lane < CC && first + lane < c1);
        struct found_row target = {0, 0, 0};
        float4 w[CC][VEC], gained[CC][VEC];
        read_tile<CC, VEC>(w, context.weights, 0, v.quads);
#pragma unroll
        for (int k = 0; k < CC; k++) clear_row<VEC>(gained[k]);
        bool real = __shfl_sync(ALL_LANES, context.weights, my_slot) && lane < TT * CC;
        bool positive = first - c0 + my_slot < positives;
        for (uint32_t done = 0; t0 + done < t1; done += TT) {
            uint32_t at = t0 + done;
            if (done % AHEAD == 0)
                target = find_row(v.target, v.counts->cold_first[SIDE_TARGET], at + lane, at + lane < t1);
            float4 x[TT][VEC];
            read_tile<TT, VEC>(x, target.weights, done % AHEAD, v.quads);
            bool alive = real && at + my_target < t1;
            uint64_t term = v.term_starts[block] + (uint64_t)(done + my_target) * (c1 - c0) + first - c0 + my_slot;
            float logit = find_logit<TT, CC, VEC, MODE>(v, x, w, term, alive);
            if (MODE == DOTS_POST) continue;
            float coefficient = alive ? sgns_coefficient(logit, positive ? 1.0f : 0.0f) * scale : 0;
            if (alive) loss += (double)loss_of(logit, positive);
            if (v.loss_only) continue;
            gain_tile<TT, CC, VEC>(v, x, w, gained, coefficient, v.target_gradients + (uint64_t)at * v.span, t1 - at,
                                   first == c0);
        }
#pragma unroll
        for (int k = 0; k < CC && !v.loss_only && MODE != DOTS_POST; k++)
            if (first + k < c1)
                write_row<32, VEC>(gained[k], (char *)(v.context_gradients + (uint64_t)(first + k) * v.span), lane,
                                   v.quads);
    }
    if (MODE == DOTS_POST) return;
    loss = warp_sum(loss);
    for (uint32_t t = t0 + lane; t < t1; t += 32) v.losses[t] = t == t0 ? loss : 0; /* a loss a target is summed */
}

template <int VEC, int MODE>
static __global__ void __launch_bounds__(CTA) dot_windows(const __grid_constant__ struct step_view v) {
    constexpr uint32_t WARPS = CTA / 32;
    uint32_t warp = threadIdx.x / 32;
    if constexpr (MODE == DOTS_NEAR)
        for (uint32_t at = blockIdx.x; at * WARPS < v.counts->blocks; at += gridDim.x)
            dot_window<VEC, MODE>(v, at * WARPS + warp);
    else dot_window<VEC, MODE>(v, blockIdx.x * WARPS + warp);
}

/* ---- which kernels ---- */

typedef void dot_kernel(const struct step_view);

struct dot_kernels {
    dot_kernel *one, *wide; /* wide: one, with thread blocks of WIDE_CTA; or NULL */
    uint32_t one_threads;   /* that take a block's contexts together in `one` */
    dot_kernel *many;
    uint32_t many_threads;  /* on a block in `many` */
};

/* For blocks of one target; of several. */
template <int MODE> struct of_mode {
    template <int G, int VEC, int NS> struct one {
        static constexpr int STATE = MODE == DOTS_POST ? 0 : NS; /* slots that are read */
        static struct dot_kernels get(void) {
            if constexpr (G > 32) return {dot_one<G, VEC, STATE, CTA, MODE>, NULL, G, NULL, 0};
            else if constexpr (MODE == DOTS_ALONE)
                return {dot_one<G, VEC, STATE, CTA, MODE>, dot_one<G, VEC, STATE, WIDE_CTA, MODE>, 32, NULL, 0};
            else return {dot_one<G, VEC, STATE, CTA, MODE>, NULL, 32, NULL, 0};
        }
    };
    template <int G, int VEC, int NS> struct many {
        static struct dot_kernels get(void) {
            if constexpr (G > 32) return {NULL, NULL, 0, dot_many<G, VEC, MODE>, CTA};
            else return {NULL, NULL, 0, dot_windows<VEC, MODE>, 32};
        }
    };
};

/* slots: of the records; where no state is read, 0. */
template <int MODE> static struct dot_kernels dot_kernels_of(uint32_t quads, uint32_t slots) {
    struct dot_kernels k = kernels_for_narrow<of_mode<MODE>::template one>(quads, slots);
    struct dot_kernels many = kernels_for<of_mode<MODE>::template many>(quads, 0);
    k.many = many.many;
    k.many_threads = many.many_threads;
    return k;
}

/* dots_near.cu; launched with as many thread blocks as the GPU holds at once, since they wait for other ranks. */
struct dot_kernels dot_kernels_near(uint32_t quads, uint32_t slots);
/* dots_far.cu */
struct dot_kernels dot_kernels_post(uint32_t quads);
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t slots);

#endif
