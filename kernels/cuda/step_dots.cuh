/* step_dots: the first half of a step, block by block, from old rows: dot products, loss, coefficients, and the gradient of each occurrence of a
 * target, which is written to a buffer. Contexts are handled differently by kind of block:
 *
 *   one target       a context that occurs once in the batch is updated here, while its row is in registers, so the row is read
 *                    and written once. For all other contexts only the coefficients are stored
 *   several targets  the gradient of each occurrence of a context is written to a buffer
 *
 * If ranks share the columns, each rank computes a partial sum of each dot product. It posts these to the other ranks, and collects the sums over all
 * ranks before it changes rows:
 *
 *   DOTS_POST, DOTS_COLLECT   two kernels, which read the rows twice; in between, partial sums may be added in any way
 *   DOTS_NEAR                 one kernel that posts and collects, if GPUs can address each other's memory. In between it holds the rows:
 *                             of blocks of one target in shared memory, up to 256 columns (step_dots_ranks.cu); of blocks of
 *                             several targets in registers, up to 512 columns
 */
#ifndef SPTX_CUDA_STEP_DOTS_CUH
#define SPTX_CUDA_STEP_DOTS_CUH

#include "step.cuh"

enum dots_mode { DOTS_ALONE, DOTS_NEAR, DOTS_POST, DOTS_COLLECT };

enum {
    WIDE_CTA = 384,   /* threads of a thread block if a batch has too few blocks to fill the GPU: more groups then share a block's contexts */
    WIDE_BLOCKS = 256, /* batches of at most this many blocks use thread blocks of WIDE_CTA threads */
    HELD_QUADS = 64    /* widest row, in quads, that is held in shared memory; too few wider rows would fit (step_dots_ranks.cu) */
};

/* Returns this thread block's number in the order in which thread blocks start, so that every rank works on the earliest unfinished block. All
 * threads of a thread block must call this. */
static __device__ __forceinline__ uint32_t number_in_order(const struct step_view &v) {
    __shared__ uint32_t number;
    meet_without_words(v);
    if (threadIdx.x == 0) number = atomicAdd((uint32_t *)&v.counts->begun, 1u);
    __syncthreads();
    return number;
}

/* ---- a block's contexts ---- */

static __device__ __forceinline__ float loss_of(float logit, bool positive) {
    return sgns_loss_linear(logit, positive ? 1.0f : 0.0f) + log1pf(sgns_loss_tail(logit));
}

/* Returns the factor of all gradients of a batch, to the same bits as on the CPU. */
static __device__ __forceinline__ float scale_of(const struct step_view &v) {
    return v.mean ? (float)(1.0 / (double)v.counts->blocks) : 1.0f;
}

/* rows_beside: returns how many rows a warp works on at once. own_beside: returns which of them this thread works on. */
template <int G> static constexpr __host__ __device__ int rows_beside() {
    return G < 32 ? 32 / G : 1;
}
template <int G> static __device__ __forceinline__ uint32_t own_beside() {
    return G < 32 ? (threadIdx.x & 31) / G : 0;
}

/* A context. weights: address of its row; NULL: its slot is empty, or it is past the end. state: address of its state. single: true: it occurs
 * once in the batch. */
struct context_row {
    char *weights, *state;
    uint32_t id;
    bool single;
};

/* Reads U x rows_beside contexts, from number i on, into registers; `found` has `here` contexts, one in each lane. If records have state, also
 * reads the state of those that occur once. */
template <class F, int G, int VEC, bool STATE, int U>
static __device__ __forceinline__ void read_contexts(struct stored_row<F, VEC> (&w)[U], struct held_state<VEC, STATE> (&held)[U],
                                                     struct context_row (&rows)[U], const struct found_row &found, uint32_t i,
                                                     uint32_t here, uint32_t tid, const struct step_view &v) {
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint32_t own = i + u * rows_beside<G>() + own_beside<G>(), from = own & 31;
        struct context_row &row = rows[u];
        row.weights = (char *)__shfl_sync(ALL_LANES, found.weights, from);
        row.single = __shfl_sync(ALL_LANES, found.single, from);
        row.state = STATE ? (char *)__shfl_sync(ALL_LANES, found.state, from) : NULL;
        row.id = F::QUADS > 1 ? __shfl_sync(ALL_LANES, found.id, from) : 0; /* needed only for rounding bfloat16 */
        if (own >= here) row.weights = NULL, row.single = false;
        if (row.weights) read_stored<F, G, VEC>(w[u], row.weights, tid, v.quads);
        else clear_stored<F, VEC>(w[u]);
    }
    if constexpr (STATE) {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (rows[u].single) read_state<F, G, VEC, STATE>(held[u], rows[u].state, tid, v);
    }
}

/* Prefetches the records of U x rows_beside contexts, from number i on. Used only for bfloat16, whose reads into registers do not keep the memory
 * busy; it made float32 rows 5% slower. */
template <class F, int G, bool STATE, int U>
static __device__ __forceinline__ void ask_for_contexts(const struct found_row &found, uint32_t i, uint32_t here, const struct step_view &v) {
    if constexpr (F::QUADS > 1)
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t own = i + u * rows_beside<G>() + own_beside<G>(), from = own & 31;
            auto weights = (const char *)__shfl_sync(ALL_LANES, found.weights, from);
            auto state = STATE ? (const char *)__shfl_sync(ALL_LANES, found.state, from) : NULL;
            bool asks_state = STATE && __shfl_sync(ALL_LANES, found.single, from);
            if (own >= here || !weights) continue;
            ask_for_lines<G>(weights, v.weights_bytes);
            if (asks_state) ask_for_lines<G>(state, v.state_bytes);
        }
}

/* Updates a context that occurs once in the batch, so that its whole gradient is known; its record is in registers. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void update_single(const struct context_row &row, struct held_state<VEC, STATE> &held, float4 (&w)[VEC],
                                                     const float4 (&gradient)[VEC], uint32_t tid, const struct step_view &v) {
    update_held<F, G, VEC, STATE>(held, gradient, w, row.weights, row.state, tid, v, {row.id, SIDE_CONTEXT});
}

/* Returns to lane l the value of row l of the rows in flight. value: U values, one for each row of this thread's group. */
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

/* Sums the values over the groups of a warp; all groups get the same bits. */
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

/* The contexts first .. end - 1 of a block that are trained with one target. start: the block's first context; positives: number of positives,
 * from `start` on; terms: number of the target's term with context `start`. */
struct meeting {
    uint32_t start, first, end, positives;
    uint64_t terms;
};

/* Returns how many rows a group has in flight. Each has `vec` quads in a thread; state: 1: its state is read, too. */
template <class F> static constexpr __host__ __device__ int contexts_at_once(int group, int vec, bool state, bool one) {
    int some = F::QUADS > 1 ? REGISTERS * 5 / 12 : REGISTERS / 2; /* bfloat16 rows need more registers, since they are converted to floats */
    return rows_at_once(4 * vec / F::QUADS + 4 * vec * held_roles(state), one && group <= 32 ? some : REGISTERS);
}

static __device__ __forceinline__ float coefficient_of(float logit, bool positive, float scale) {
    return sgns_coefficient(logit, positive ? 1.0f : 0.0f) * scale;
}

/* Writes the coefficient of the lane's context, and returns its loss; returns 0 if the lane has no context. Only one warp of a group writes. */
template <int G>
static __device__ __forceinline__ double keep_term(const struct step_view &v, const struct meeting &m, uint32_t context, bool real, float logit,
                                                   float coefficient) {
    if (threadIdx.x % (G < 32 ? 32 : G) < 32 && !v.loss_only && context < m.end) v.coefficients[m.terms + context - m.start] = coefficient;
    return real ? (double)loss_of(logit, context - m.start < m.positives) : 0;
}

/* Adds coefficient x row to the target's gradient, for rows in registers. ONE: also updates rows that occur once. */
template <class F, int G, int VEC, bool STATE, bool ONE, int U>
static __device__ __forceinline__ void change_rows(float4 (&gradient)[VEC], const float4 (&target)[VEC], const float (&coefficient)[U],
                                                   const struct stored_row<F, VEC> (&stored)[U], struct held_state<VEC, STATE> (&held)[U],
                                                   const struct context_row (&rows)[U], uint32_t tid, const struct step_view &v) {
#pragma unroll
    for (int u = 0; u < U; u++) {
        float by = rows[u].weights ? coefficient[u] : 0;
        float4 w[VEC], g[VEC];
        open_row<F, VEC>(w, stored[u]);
        add_row<VEC>(gradient, by, w);
        if (!ONE || !rows[u].single) continue;
        clear_row<VEC>(g);
        add_row<VEC>(g, by, target);
        update_single<F, G, VEC, STATE>(rows[u], held[u], w, g, tid, v);
    }
}

/* Trains contexts with a target on a rank that has all columns: adds to the target's gradient, updates rows that occur once, and returns the loss. */
template <class F, int G, int VEC, bool STATE, bool ONE>
static __device__ __forceinline__ double meet_contexts(const struct step_view &v, const float4 (&target)[VEC],
                                                       float4 (&gradient)[VEC], const struct meeting &m) {
    constexpr int U = contexts_at_once<F>(G, VEC, STATE, ONE), R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    float scale = scale_of(v);
    double loss = 0;
    for (uint32_t base = m.first; base < m.end; base += 32) {
        uint32_t here = m.end - base < 32 ? m.end - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        float my_logit = 0;
        if (v.loss_only) found.single = 0;
        for (uint32_t i = 0; i < here; i += U * R) {
            struct stored_row<F, VEC> w[U];
            struct held_state<VEC, STATE> held[U];
            struct context_row rows[U];
            float logit[U];
            read_contexts<F, G, VEC, STATE, U>(w, held, rows, found, i, here, tid, v);
            ask_for_contexts<F, G, STATE, U>(found, i + U * R, here, v);
#pragma unroll
            for (int u = 0; u < U; u++) logit[u] = dot_stored<F, VEC>(target, w[u]);
            group_sum<G, U>(logit);
            float round_logit = to_lanes<G, U>(logit, (lane - i) & 31);
            if (lane - i < U * R) my_logit = round_logit;
#pragma unroll
            for (int u = 0; u < U; u++) logit[u] = coefficient_of(logit[u], base + i + u * R + own_beside<G>() - m.start < m.positives, scale);
            change_rows<F, G, VEC, STATE, ONE, U>(gradient, target, logit, w, held, rows, tid, v);
        }
        bool real = lane < here && found.weights;
        float my_coefficient = real ? coefficient_of(my_logit, base + lane - m.start < m.positives, scale) : 0;
        loss += keep_term<G>(v, m, base + lane, real, my_logit, my_coefficient);
    }
    sum_beside<G, VEC>(gradient);
    return loss;
}

/* ---- with other ranks ---- */

/* Posts this rank's partial sums of the contexts' logits, one context in each lane. */
template <class F, int G, int VEC, bool ONE>
static __device__ __forceinline__ void post_contexts(const struct step_view &v, const float4 (&target)[VEC], const struct meeting &m) {
    constexpr int U = contexts_at_once<F>(G, VEC, 0, ONE), R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    for (uint32_t base = m.first; base < m.end; base += 32) {
        uint32_t here = m.end - base < 32 ? m.end - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        float my_part = 0;
        for (uint32_t i = 0; i < here; i += U * R) {
            struct stored_row<F, VEC> w[U];
            struct held_state<VEC, 0> none[U];
            struct context_row rows[U];
            float part[U];
            read_contexts<F, G, VEC, 0, U>(w, none, rows, found, i, here, tid, v);
#pragma unroll
            for (int u = 0; u < U; u++) part[u] = dot_stored<F, VEC>(target, w[u]);
            group_sum<G, U>(part);
            float round_part = to_lanes<G, U>(part, (lane - i) & 31);
            if (lane - i < U * R) my_part = round_part;
        }
        if (lane >= here || !found.weights || threadIdx.x % (G < 32 ? 32 : G) >= 32) continue;
        exchange_post(v.exchange, m.terms + base + lane - m.start, my_part);
        exchange_keep(v.exchange, m.terms + base + lane - m.start, my_part);
    }
}

/* Does the same as meet_contexts(), from the sums over ranks of the dot products that post_contexts() has posted. */
template <class F, int G, int VEC, bool STATE, bool ONE>
static __device__ __forceinline__ double collect_contexts(const struct step_view &v, const float4 (&target)[VEC],
                                                          float4 (&gradient)[VEC], const struct meeting &m) {
    constexpr int U = contexts_at_once<F>(G, VEC, STATE, ONE), R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    float scale = scale_of(v);
    double loss = 0;
    for (uint32_t base = m.first; base < m.end; base += 32) {
        uint32_t here = m.end - base < 32 ? m.end - base : 32;
        uint64_t term = m.terms + base + lane - m.start;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        bool real = lane < here && found.weights;
        float logit = real ? exchange_collect(v.exchange, term, exchange_kept(v.exchange, term)) : 0;
        float my_coefficient = real ? coefficient_of(logit, base + lane - m.start < m.positives, scale) : 0;
        loss += keep_term<G>(v, m, base + lane, real, logit, my_coefficient);
        if (v.loss_only) found.single = 0;
        for (uint32_t i = 0; i < here; i += U * R) {
            struct stored_row<F, VEC> w[U];
            struct held_state<VEC, STATE> held[U];
            struct context_row rows[U];
            float coefficient[U];
            read_contexts<F, G, VEC, STATE, U>(w, held, rows, found, i, here, tid, v);
#pragma unroll
            for (int u = 0; u < U; u++) coefficient[u] = __shfl_sync(ALL_LANES, my_coefficient, (i + u * R + own_beside<G>()) & 31);
            if (STATE) group_wait<G>(); /* waits until all threads have read the rows' counts of updates */
            change_rows<F, G, VEC, STATE, ONE, U>(gradient, target, coefficient, w, held, rows, tid, v);
        }
    }
    sum_beside<G, VEC>(gradient);
    return loss;
}

static __device__ __forceinline__ const char *target_at(const struct step_view &v, uint32_t occurrence) {
    uint32_t distinct = v.target.rows.distinct[occurrence] & ~SINGLE_BIT, id = v.target.rows.ids[occurrence];
    return live_row(v.target.weights, id, distinct, v.counts->cold_first[SIDE_TARGET]);
}
template <class F, int G, int VEC>
static __device__ __forceinline__ void read_target(const struct step_view &v, uint32_t occurrence, float4 (&target)[VEC]) {
    read_row<F, G, VEC>(target, target_at(v, occurrence), threadIdx.x % G, v.quads);
}

/* ---- blocks of one target ---- */

/* Returns how many thread blocks of dot_one must fit on a multiprocessor. Where rows are updated as soon as they are read, many warps with few
 * rows each are faster than few warps with many. */
template <class F> static constexpr int resident_blocks(int group, bool state, int threads) {
    return group > 32 || threads > CTA ? 1 : state ? 3 : 4;
}

/* Returns the contexts of a block for group number `part` of v.parts groups. */
static __device__ __forceinline__ struct meeting share_of(const struct step_view &v, uint32_t block, uint32_t part) {
    uint32_t start = v.context_starts[block], end = v.context_starts[block + 1], each = (end - start + v.parts - 1) / v.parts;
    uint32_t first = start + part * each, last = first + each < end ? first + each : end;
    return {start, first < last ? first : last, last, v.positives[block], start};
}

/* Shared memory with a row for each group of a thread block; rows are `stride` quads apart. */
struct group_rows {
    float4 *rows;
    uint32_t stride;
};

/* Adds the gradients of all groups, in the order of groups. All threads of the thread block must call it. */
template <int THREADS, uint32_t GROUPS> static __device__ __forceinline__ void add_groups(const struct group_rows &sums, float *out, uint32_t quads) {
    for (uint32_t q = threadIdx.x; q < quads; q += THREADS) {
        float4 sum = sums.rows[q];
#pragma unroll
        for (uint32_t p = 1; p < GROUPS; p++) {
            float4 more = sums.rows[p * sums.stride + q];
            sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        write_quad(out, q, sum);
    }
}

/* Writes a block's loss and its target's gradient, summed over all groups of the thread block. */
template <class F, int VEC, int G, int THREADS, uint32_t GROUPS>
static __device__ __forceinline__ void finish_block(const struct step_view &v, uint32_t block, double loss,
                                                    const float4 (&gradient)[VEC], const struct group_rows &sums) {
    constexpr uint32_t WIDTH = THREADS / GROUPS;
    __shared__ double losses[GROUPS];
    uint32_t group = threadIdx.x / WIDTH, tid = threadIdx.x % WIDTH;
    if (tid < G) write_row<F, G, VEC>(gradient, (float *)(sums.rows + group * sums.stride), tid, v.quads);
    if (tid == 0) losses[group] = loss;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t p = 1; p < GROUPS; p++) loss += losses[p];
        v.losses[block] = loss;
    }
    if (!v.loss_only) add_groups<THREADS, GROUPS>(sums, v.target_gradients + block * v.span, v.quads);
}

/* Writes a block's loss and its target's gradient, of one group or summed over all groups of the thread block. */
template <class F, int G, int VEC, int THREADS>
static __device__ __forceinline__ void end_block(const struct step_view &v, uint32_t block, double loss,
                                                 const float4 (&gradient)[VEC], const struct group_rows &sums) {
    constexpr uint32_t WIDTH = G < 32 ? 32 : G, GROUPS = THREADS / WIDTH;
    uint32_t tid = threadIdx.x % WIDTH;
    loss = warp_sum(loss);
    if (v.parts == 1) {
        if (tid == 0) v.losses[block] = loss;
        if (!v.loss_only && tid < G) write_row<F, G, VEC>(gradient, v.target_gradients + block * v.span, tid, v.quads);
        return;
    }
    if constexpr (GROUPS > 1) finish_block<F, VEC, G, THREADS, GROUPS>(v, block, loss, gradient, sums);
}

/* Trains blocks of one target. v.parts groups of a thread block share a block's contexts; their sums are added in the order of groups. */
template <class F, int G, int VEC, bool STATE, int THREADS, int MODE>
static __global__ void __launch_bounds__(THREADS, resident_blocks<F>(G, STATE, THREADS)) dot_one(const __grid_constant__ struct step_view v) {
    constexpr uint32_t WIDTH = G < 32 ? 32 : G, GROUPS = THREADS / WIDTH; /* WIDTH: threads that work together on a block's contexts */
    __shared__ float4 sums[GROUPS][VEC * G];
    uint32_t group = threadIdx.x / WIDTH, block = (blockIdx.x * GROUPS + group) / v.parts;
    if (MODE == DOTS_COLLECT) meet_without_words(v);
    if (block >= v.counts->blocks) return; /* either all threads that work on one block of the batch return here, or none */
    float4 target[VEC], gradient[VEC];
    struct meeting m = share_of(v, block, group % v.parts);
    read_target<F, G, VEC>(v, block, target);
    if constexpr (MODE == DOTS_POST) {
        post_contexts<F, G, VEC, true>(v, target, m);
        return;
    }
    clear_row<VEC>(gradient);
    double loss;
    if constexpr (MODE == DOTS_ALONE) loss = meet_contexts<F, G, VEC, STATE, true>(v, target, gradient, m);
    else loss = collect_contexts<F, G, VEC, STATE, true>(v, target, gradient, m);
    end_block<F, G, VEC, THREADS>(v, block, loss, gradient, {sums[0], VEC * G});
}

/* ---- blocks of several targets ---- */

/* Returns a context's gradient: the sum of coefficient x target over targets t0 .. t1 - 1. The context's coefficients are `stride` floats apart. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void sum_targets(float4 (&sum)[VEC], const struct step_view &v, uint32_t t0,
                                                   uint32_t t1, const float *coefficients, uint32_t stride) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS);
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_TARGET];
    clear_row<VEC>(sum);
    for (uint32_t base = t0; base < t1; base += 32) {
        uint32_t here = t1 - base < 32 ? t1 - base : 32;
        struct found_row found = find_row(v.target, cold_first, base + lane, lane < here);
        float factor = lane < here ? coefficients[(uint64_t)(base + lane - t0) * stride] : 0;
        for (uint32_t i = 0; i < here; i += U) add_found<F, G, VEC, U, char>(sum, found.weights, factor, i, here, tid, v.quads);
    }
}

/* Trains blocks of several targets whose rows are too wide for a warp's registers: one thread block for each block, which reads rows several times
 * from the first cache. */
template <class F, int G, int VEC, int MODE> static __global__ void __launch_bounds__(CTA) dot_many(const __grid_constant__ struct step_view v) {
    constexpr uint32_t GROUPS = CTA / G;
    uint32_t group = threadIdx.x / G, tid = threadIdx.x % G, block = blockIdx.x;
    if (MODE == DOTS_COLLECT) meet_without_words(v);
    if (block >= v.counts->blocks) return;
    uint32_t t0 = v.target_starts[block], t1 = v.target_starts[block + 1];
    uint32_t c0 = v.context_starts[block], c1 = v.context_starts[block + 1];
    uint32_t contexts = c1 - c0, positives = v.positives[block];
    float *coefficients = v.coefficients + v.term_starts[block];
    float4 x[VEC], sum[VEC];
    for (uint32_t t = t0 + group; t < t1; t += GROUPS) {
        read_target<F, G, VEC>(v, t, x);
        clear_row<VEC>(sum);
        struct meeting m = {c0, c0, c1, positives, v.term_starts[block] + (uint64_t)(t - t0) * contexts};
        if constexpr (MODE == DOTS_POST) {
            post_contexts<F, G, VEC, false>(v, x, m);
            continue;
        }
        double loss;
        if constexpr (MODE == DOTS_ALONE) loss = meet_contexts<F, G, VEC, 0, false>(v, x, sum, m);
        else loss = collect_contexts<F, G, VEC, 0, false>(v, x, sum, m);
        loss = warp_sum(loss);
        if (tid == 0) v.losses[t] = loss;
        if (!v.loss_only) write_row<F, G, VEC>(sum, v.target_gradients + t * v.span, tid, v.quads);
    }
    if (v.loss_only || MODE == DOTS_POST) return;
    __syncthreads(); /* all threads have written their coefficients */
    for (uint32_t c = group; c < contexts; c += GROUPS) {
        sum_targets<F, G, VEC>(sum, v, t0, t1, coefficients + c, contexts);
        write_row<F, G, VEC>(sum, v.context_gradients + (c0 + c) * v.span, tid, v.quads);
    }
}

/* ==== windows ====
 *
 * Blocks of windows have several targets. A block is worked on by G lanes, a warp or a part of one, so a warp may work on several blocks at once. */

/* How many targets and contexts of a window G lanes hold at a time. Ranks that wait for each other within a block must all hold the same number of
 * contexts (step_dots_ranks.cu); their numbers of targets may differ. */
template <int VEC> struct tile { static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, contexts = VEC <= 2 ? 6 : 4; };

/* Reads N rows into registers; `found` of lanes first .. first + N - 1 of the group has their addresses. Rows past the end are read as zeros. */
template <class F, int G, int N, int VEC>
static __device__ __forceinline__ void read_tile(float4 (&rows)[N][VEC], unsigned long long found, uint32_t first, uint32_t quads) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const char *row = (const char *)__shfl_sync(ALL_LANES, found, first + i, G);
        if (row) read_row<F, G, VEC>(rows[i], row, threadIdx.x % G, quads);
        else clear_row<VEC>(rows[i]);
    }
}

/* Number of terms of a tile in each lane. With CC contexts in a tile, the term of target j and context k has the index i = j x CC + k; it is in
 * lane i % G as number i / G. */
template <int G, int VEC> static constexpr int TERMS = (tile<VEC>::targets * tile<VEC>::contexts + G - 1) / G;

template <int G, int TT, int CC, int VEC>
static __device__ __forceinline__ void dot_tile(const float4 (&x)[TT][VEC], const float4 (&w)[CC][VEC], float (&logit)[TERMS<G, VEC>]) {
    float products[TT * CC];
#pragma unroll
    for (int j = 0; j < TT; j++)
#pragma unroll
        for (int k = 0; k < CC; k++) products[j * CC + k] = dot_rows<VEC>(x[j], w[k]);
    sum_over_lanes<G>(products, logit);
}

/* Adds coefficient x row to the gradients of a tile's `count` targets (in memory) and of its contexts (in registers). For the block's first tile
 * of contexts, the targets' gradients are set instead. */
template <class F, int G, int TT, int CC, int VEC>
static __device__ __forceinline__ void gain_tile(const struct step_view &v, const float4 (&x)[TT][VEC], const float4 (&w)[CC][VEC],
                                                 float4 (&gained)[CC][VEC], const float (&coefficient)[TERMS<G, VEC>], float *gradients,
                                                 uint32_t count, bool begin) {
    uint32_t tid = threadIdx.x % G, most = most_beside<G>(count);
#pragma unroll
    for (int j = 0; j < TT; j++) {
        if (j >= most) continue;
        float *gradient = gradients + (uint64_t)j * v.span;
        float4 sum[VEC];
        if (begin || j >= count) clear_row<VEC>(sum);
        else read_row<F, G, VEC>(sum, gradient, tid, v.quads);
#pragma unroll
        for (int k = 0; k < CC; k++) {
            float by = __shfl_sync(ALL_LANES, coefficient[(j * CC + k) / G], (j * CC + k) % G, G);
            add_row<VEC>(sum, by, w[k]);
            add_row<VEC>(gained[k], by, x[j]);
        }
        if (j < count) write_row<F, G, VEC>(sum, gradient, tid, v.quads);
    }
}

/* Posts the logits of a lane's terms, collects their sums over ranks, or does both, depending on MODE. Each term that is `real` has its own slot. */
template <int MODE, int N>
static __device__ __forceinline__ void exchange_logits(const struct step_view &v, float (&logit)[N], const uint64_t (&term)[N],
                                                       const bool (&real)[N]) {
#pragma unroll
    for (int n = 0; n < N; n++) {
        if (!real[n]) continue;
        if constexpr (MODE == DOTS_COLLECT) logit[n] = exchange_kept(v.exchange, term[n]);
        else exchange_post(v.exchange, term[n], logit[n]);
        if constexpr (MODE == DOTS_POST) exchange_keep(v.exchange, term[n], logit[n]);
    }
    if constexpr (MODE != DOTS_POST) exchange_collect_all(v.exchange, term, real, logit);
}

/* Computes the loss and coefficients of a lane's terms. The tile's first `positives` contexts are positives. */
template <int G, int CC, int N>
static __device__ __forceinline__ double coefficients_of(const struct step_view &v, const float (&logit)[N],
                                                         const bool (&real)[N], uint32_t positives, float (&coefficient)[N]) {
    float scale = scale_of(v);
    double loss = 0;
#pragma unroll
    for (int n = 0; n < N; n++) {
        bool positive = (n * G + threadIdx.x % G) % CC < positives;
        coefficient[n] = real[n] ? sgns_coefficient(logit[n], positive ? 1.0f : 0.0f) * scale : 0;
        if (real[n]) loss += (double)loss_of(logit[n], positive);
    }
    return loss;
}

/* A block: first target, first context and first term; numbers of targets, contexts and positives. All are 0 past the last block. */
struct window {
    uint32_t target, targets, context, contexts, positives, terms;
};
static __device__ __forceinline__ struct window window_of(const struct step_view &v, uint32_t block, uint32_t blocks) {
    if (block >= blocks) return {};
    uint32_t t0 = v.target_starts[block], c0 = v.context_starts[block];
    return {t0, v.target_starts[block + 1] - t0, c0, v.context_starts[block + 1] - c0, v.positives[block], v.term_starts[block]};
}

/* What must be read to find the row of an occurrence: its index among the distinct rows, and its id. Both are requested at once, so that a
 * window's rows are waited for once, not twice. */
struct looked_up {
    uint32_t distinct, id; /* distinct = DRAW_NONE: the slot is empty, or this lane has no occurrence */
};
static __device__ __forceinline__ struct looked_up look_up(const struct live_side &side, uint32_t occurrence, bool real) {
    if (!real) return {DRAW_NONE, 0};
    return {side.rows.distinct[occurrence], side.rows.ids[occurrence]};
}
static __device__ __forceinline__ unsigned long long row_of(const struct live_side &side, uint32_t cold_first, const struct looked_up &at) {
    return at.distinct == DRAW_NONE ? 0 : place_row(side, cold_first, at.distinct, at.id).weights;
}

/* Trains one block with each G lanes of a warp, in as many rounds as the warp's largest block needs. A tile of contexts and their gradients stay
 * in registers while all targets are visited, tile by tile; for the next tile of contexts all targets are visited again. */
template <class F, int G, int VEC, int MODE>
static __device__ __forceinline__ void dot_window(const struct step_view &v, uint32_t block, uint32_t blocks) {
    constexpr int TT = tile<VEC>::targets, CC = tile<VEC>::contexts, N = TERMS<G, VEC>;
    constexpr uint32_t AHEAD = G / TT * TT; /* targets that are looked up together, one in each lane */
    uint32_t lane = threadIdx.x % G;
    uint32_t cold[2] = {v.counts->cold_first[0], v.counts->cold_first[1]};
    struct window own = window_of(v, block, blocks);
    uint32_t most_contexts = most_beside<G>(own.contexts), most_targets = most_beside<G>(own.targets);
    double loss = 0;
    for (uint32_t first = 0; first < most_contexts; first += CC) {
        struct looked_up context_at = look_up(v.context, own.context + first + lane, lane < CC && first + lane < own.contexts);
        struct looked_up target_at = look_up(v.target, own.target + lane, lane < own.targets);
        unsigned long long context = row_of(v.context, cold[SIDE_CONTEXT], context_at);
        unsigned long long target = row_of(v.target, cold[SIDE_TARGET], target_at);
        float4 w[CC][VEC], gained[CC][VEC];
        read_tile<F, G, CC, VEC>(w, context, 0, v.quads);
#pragma unroll
        for (int k = 0; k < CC; k++) clear_row<VEC>(gained[k]);
        bool there[N]; /* [term of the lane] true: its target and its context exist */
#pragma unroll
        for (int n = 0; n < N; n++) there[n] = __shfl_sync(ALL_LANES, context, (n * G + lane) % CC, G) && n * G + lane < TT * CC;
        for (uint32_t done = 0; done < most_targets; done += TT) {
            uint32_t left = done < own.targets ? own.targets - done : 0;
            if (done && done % AHEAD == 0) target = row_of(v.target, cold[SIDE_TARGET], look_up(v.target, own.target + done + lane, lane < left));
            float4 x[TT][VEC];
            float logit[N];
            uint64_t term[N];
            bool real[N];
            read_tile<F, G, TT, VEC>(x, target, done % AHEAD, v.quads);
#pragma unroll
            for (int n = 0; n < N; n++) {
                uint32_t j = (n * G + lane) / CC, k = (n * G + lane) % CC;
                real[n] = there[n] && j < left;
                term[n] = own.terms + (uint64_t)(done + j) * own.contexts + first + k;
            }
            if constexpr (MODE != DOTS_COLLECT) dot_tile<G, TT, CC, VEC>(x, w, logit);
            if constexpr (MODE != DOTS_ALONE) exchange_logits<MODE>(v, logit, term, real);
            if constexpr (MODE != DOTS_POST) {
                float coefficient[N], *gradients = v.target_gradients + (own.target + done) * v.span;
                uint32_t positives = first < own.positives ? own.positives - first : 0;
                loss += coefficients_of<G, CC>(v, logit, real, positives, coefficient);
                if (!v.loss_only) gain_tile<F, G, TT, CC, VEC>(v, x, w, gained, coefficient, gradients, left, first == 0);
            }
        }
#pragma unroll
        for (int k = 0; k < CC && !v.loss_only && MODE != DOTS_POST; k++)
            if (first + k < own.contexts) write_row<F, G, VEC>(gained[k], v.context_gradients + (own.context + first + k) * v.span, lane, v.quads);
    }
    if (MODE == DOTS_POST) return;
    loss = warp_sum<G>(loss);
    for (uint32_t t = lane; t < own.targets; t += G) v.losses[own.target + t] = t ? 0 : loss; /* the first has the block's */
}

/* Returns how many thread blocks of dot_windows must fit on a multiprocessor, so that a thread has the registers for a tile of one quad. */
static constexpr int resident_windows(int quads, int mode) {
    return quads > 1 ? 1 : mode == DOTS_POST ? 6 : 4;
}

/* Trains blocks of several targets. Where thread blocks wait for other ranks, they work on blocks in order, as in step_dots_ranks.cu. */
template <class F, int G, int VEC, int MODE>
static __global__ void __launch_bounds__(CTA, resident_windows(VEC, MODE)) dot_windows(const __grid_constant__ struct step_view v) {
    uint32_t blocks = v.counts->blocks; /* read before number_in_order(), which may wait */
    uint32_t number = MODE == DOTS_NEAR ? number_in_order(v) : blockIdx.x;
    if (MODE == DOTS_COLLECT) meet_without_words(v);
    dot_window<F, G, VEC, MODE>(v, (number * CTA + threadIdx.x) / G, blocks);
}

/* ---- which kernels ---- */

typedef void dot_kernel(const struct step_view);

struct dot_kernels {
    dot_kernel *one, *wide; /* for blocks of one target; wide: the same with thread blocks of WIDE_CTA threads; may be NULL */
    uint32_t one_threads;   /* threads of `one` that work together on a block's contexts */
    dot_kernel *many;
    uint32_t many_threads;  /* threads of `many` that work on a block */
};

/* Sizes for the kernels of step_dots_ranks.cu, which hold rows in shared memory. */
enum {
    HELD_WARPS = 4, /* number of warps of a thread block */
    HELD_THREADS = 32 * HELD_WARPS,
    HELD_MOST = 32,        /* most rows that a warp holds, since each lane looks up one */
    HELD_BYTES = 72 << 10, /* most bytes of rows that a thread block holds, so that three fit on a multiprocessor of sm_90 */
    HELD_SHARED_FROM = 16, /* from this number of contexts on, all warps of a thread block share a block */
    HELD_PAUSE = 600       /* nanoseconds before a warp first looks for values of other ranks: few arrive sooner, and looking slows the warps that
                            * work */
};

/* Kernels that hold rows in shared memory: blocks of one target, with several ranks. */
struct held_kernels {
    dot_kernel *near, *post, *collect;
};

template <class F, int MODE> struct of_mode {
    /* For blocks of one target. */
    template <int G, int VEC, bool STATE> struct one {
        static struct dot_kernels get(void) {
            if constexpr (MODE != DOTS_ALONE && G * VEC <= HELD_QUADS) return {}; /* step_dots_ranks.cu has the kernels */
            else return {dot_one<F, G, VEC, STATE && MODE != DOTS_POST, CTA, MODE>, NULL, G < 32 ? 32 : G, NULL, 0};
        }
    };
    /* A kernel family for widths that are compiled only without state. */
    template <int G, int VEC, bool> struct one_plain : one<G, VEC, false> {};
    template <int G, int VEC, bool STATE> struct wide {
        static dot_kernel *get(void) {
            if constexpr (G > 32) return NULL;
            else return dot_one<F, G, VEC, STATE, WIDE_CTA, MODE>;
        }
    };
    /* For blocks of several targets. */
    template <int G, int VEC, bool> struct many {
        static struct dot_kernels get(void) {
            if constexpr (G > 32) return {NULL, NULL, 0, dot_many<F, G, VEC, MODE>, CTA};
            else return {NULL, NULL, 0, dot_windows<F, G, VEC, MODE>, G};
        }
    };
};

static inline struct dot_kernels with_many(struct dot_kernels one, const struct dot_kernels &many) {
    one.many = many.many;
    one.many_threads = many.many_threads;
    return one;
}

template <int MODE> static struct dot_kernels dot_kernels_of_halves(uint32_t quads, bool state) {
    typedef of_mode<bfloat16_rows, MODE> mode;
    return with_many(kernels_for_narrow_halves<mode::template one>(quads, state), kernels_for_short_halves<mode::template many>(quads, false));
}
/* Returns the kernels for a width. halves = 1: rows are bfloat16; state = 1: records have state. */
template <int MODE> static struct dot_kernels dot_kernels_of(bool halves, uint32_t quads, bool state) {
    typedef of_mode<float32_rows, MODE> mode;
    if (halves) return dot_kernels_of_halves<MODE>(quads, state);
    struct dot_kernels many = kernels_for_short<mode::template many>(quads, false);
    if constexpr (MODE == DOTS_ALONE)
        if (!state) return with_many(kernels_for_narrow<mode::template one_plain>(quads, false), many);
    return with_many(kernels_for_few<mode::template one>(quads, state), many);
}

struct dot_kernels dot_kernels_alone(const struct step_view *view); /* step_dots.cu */
/* step_dots_ranks.cu. held: `near` is NULL if rows cannot be held. */
struct dot_kernels dot_kernels_post(const struct step_view *view);
struct dot_kernels dot_kernels_collect(const struct step_view *view);
struct dot_kernels dot_kernels_near(const struct step_view *view); /* for blocks of several targets; many: NULL if they need two kernels */
struct held_kernels dot_kernels_held(const struct step_view *view);

#endif
