/* dots_held: blocks of one target over ranks whose GPUs reach each other: a block's rows stay in registers from the dot products
 * of these columns until the sums over all ranks are there, some 2 us later. A row is read once and written once, as by a rank
 * alone (dots.cuh).
 *
 * Rows are held by all warps of a thread block, or where blocks have few contexts by one. What a block needs before its rows can
 * be read (where they lie) is looked up while the block before is worked on: otherwise the GPU would wait for one answer after
 * the other, with too few rows on their way.
 *
 * Thread blocks take runs of blocks in their order, on every rank, so that the earliest block that waits is always worked on by
 * all. They end with their run: between them the GPU makes the next batch and moves its rows.
 */
#ifndef SPTX_CUDA_DOTS_HELD_CUH
#define SPTX_CUDA_DOTS_HELD_CUH

#include "dots.cuh"

/* A warp holds at_once rows for each group of G threads, a quad a thread; `warps` share a block. Wider rows and their state leave
 * too few warps on a GPU for it to be worth while: 2,829,853 x 200 with Adamax took 3.2 ms a step so, and 2.1 in two passes. */
template <int G> struct held_shape {
    static constexpr int at_once = G == 32 ? 18 : G == 16 ? 9 : 5, rows = at_once * rows_beside<G>();
    static constexpr int warps = 4, threads = 32 * warps, resident = 4;
};

/* What is known of a block before it is worked on: of its target, and of a context a lane. */
struct ahead {
    uint32_t start, end, positives;
    uint32_t target, target_id, context, context_id; /* places among distinct rows, and ids */
};

static __device__ __forceinline__ uint32_t first_of(const struct ahead &a, uint32_t part, uint32_t rows) {
    uint32_t first = a.start + part * rows;
    return first < a.end ? first : a.end;
}

static __device__ __forceinline__ void find_bounds(struct ahead &a, const struct step_view &v, uint32_t block, uint32_t blocks) {
    a.start = block < blocks ? v.context_starts[block] : 0;
    a.end = block < blocks ? v.context_starts[block + 1] : 0;
}

static __device__ __forceinline__ void find_context(struct ahead &a, const struct step_view &v, uint32_t first, uint32_t rows) {
    uint32_t lane = threadIdx.x & 31;
    a.context = DRAW_NONE, a.context_id = 0;
    if (lane >= rows || first + lane >= a.end) return;
    a.context = v.context.rows.distinct[first + lane];
    a.context_id = v.context.rows.ids[first + lane];
}

/* The bounds are known. */
static __device__ __forceinline__ void find_ahead(struct ahead &a, const struct step_view &v, uint32_t block, uint32_t blocks,
                                                  uint32_t part, uint32_t rows) {
    if (block < blocks) {
        a.positives = v.positives[block];
        a.target = v.target.rows.distinct[block] & ~SINGLE_BIT;
        a.target_id = v.target.rows.ids[block];
    }
    find_context(a, v, first_of(a, part, rows), rows);
}

static __device__ __forceinline__ struct found_row found_of(const struct ahead &a, const struct live_side &side,
                                                            uint32_t cold_first) {
    struct found_row found = {0, 0, 0};
    if (a.context == DRAW_NONE) return found;
    uint32_t row = a.context & ~SINGLE_BIT;
    found.single = (a.context & SINGLE_BIT) != 0;
    found.weights = (unsigned long long)(uintptr_t)live_row(side.weights, a.context_id, row, cold_first);
    return found;
}

/* The dot products of the warp's rows, a lane each: a few rows at a time, since registers are full of rows. */
template <int G, int U>
static __device__ __forceinline__ float held_dots(const float4 (&target)[1], const float4 (&w)[U][1]) {
    constexpr int FEW = U % 3 == 0 ? 3 : 5, BESIDE = rows_beside<G>();
    uint32_t lane = threadIdx.x & 31;
    float own = 0;
#pragma unroll
    for (int first = 0; first < U; first += FEW) {
        float part[FEW];
#pragma unroll
        for (int u = 0; u < FEW; u++) part[u] = dot_rows<1>(target, w[first + u]);
        uint32_t at = lane - first * BESIDE;
        float sum;
        if constexpr (G == 32) {
            sum = sum_over_warp(part);
            sum = __shfl_sync(ALL_LANES, sum, at & 31);
        } else {
            group_sum<G, FEW>(part);
            sum = to_lanes<G, FEW>(part, at & 31);
        }
        if (at < FEW * BESIDE) own = sum;
    }
    return own;
}

/* Rows in registers change, or add to the target's gradient. */
template <int G, int U>
static __device__ __forceinline__ void change_held(float4 (&gradient)[1], const float4 (&target)[1], float4 (&w)[U][1],
                                                   const struct found_row &found, float coefficient, const struct step_view &v) {
    uint32_t tid = threadIdx.x % G;
#pragma unroll
    for (int u = 0; u < U; u++) {
        int from = u * rows_beside<G>() + own_beside<G>();
        char *weights = (char *)__shfl_sync(ALL_LANES, found.weights, from);
        bool single = __shfl_sync(ALL_LANES, found.single, from);
        float by = __shfl_sync(ALL_LANES, coefficient, from);
        struct held_row<1, 0> none;
        add_row<1>(gradient, by, w[u]);
        if (single) update_single<G, 1, 0, true>(none, w[u], weights, NULL, by, target, tid, v);
    }
}

/* Contexts `first` and on, of which a lane has one; the lane's loss. */
template <int G, int MODE>
static __device__ __forceinline__ double hold_contexts(const struct step_view &v, const float4 (&target)[1],
                                                       float4 (&gradient)[1], const struct ahead &a, uint32_t first,
                                                       uint32_t cold_first, float scale) {
    constexpr int U = held_shape<G>::at_once;
    uint32_t tid = threadIdx.x % G, context = first + (threadIdx.x & 31);
    struct found_row found = found_of(a, v.context, cold_first);
    bool real = found.weights;
    float4 w[U][1];
#pragma unroll
    for (int u = 0; u < U; u++) {
        char *weights = (char *)__shfl_sync(ALL_LANES, found.weights, u * rows_beside<G>() + own_beside<G>());
        if (weights) read_row<G, 1>(w[u], weights, tid, v.quads);
        else clear_row<1>(w[u]);
    }
    float own = 0;
    if constexpr (MODE != DOTS_COLLECT) {
        own = held_dots<G, U>(target, w);
        if (real) exchange_post(v.exchange, context, own);
        if (MODE == DOTS_POST && real) exchange_keep(v.exchange, context, own);
    } else if (real) {
        own = exchange_kept(v.exchange, context);
    }
    if constexpr (MODE == DOTS_POST) return 0;
    float logit = real ? exchange_collect(v.exchange, context, own) : 0;
    __syncwarp();
    bool positive = context - a.start < a.positives;
    float coefficient = real ? coefficient_of(logit, positive, scale) : 0;
    if (context < a.end && !v.loss_only && (threadIdx.x & 31) < held_shape<G>::rows) v.coefficients[context] = coefficient;
    if (!v.loss_only) change_held<G, U>(gradient, target, w, found, coefficient, v);
    return real ? (double)loss_of(logit, positive) : 0;
}

/* v.parts: warps that share a block's contexts; 1, or all of the thread block. */
template <int G, int MODE>
static __global__ void __launch_bounds__(held_shape<G>::threads, held_shape<G>::resident)
    dot_held(const __grid_constant__ struct step_view v) {
    constexpr uint32_t THREADS = held_shape<G>::threads, WARPS = THREADS / 32, ROWS = held_shape<G>::rows;
    __shared__ uint32_t number;
    if (threadIdx.x == 0) number = MODE == DOTS_NEAR ? atomicAdd((uint32_t *)&v.counts->runs, 1u) : blockIdx.x;
    __syncthreads();
    uint32_t warp = threadIdx.x / 32, part = warp % v.parts, step = WARPS / v.parts;
    uint32_t begin = number * v.run * step, end = begin + v.run * step, blocks = end < v.counts->blocks ? end : v.counts->blocks;
    uint32_t block = begin + warp / v.parts;
    uint32_t cold[2] = {v.counts->cold_first[0], v.counts->cold_first[1]};
    float scale = scale_of(v);
    struct ahead next, later;
    find_bounds(next, v, block, blocks);
    find_bounds(later, v, block + step, blocks);
    find_ahead(next, v, block, blocks, part, ROWS);
    for (; block < blocks; block += step) {
        struct ahead now = next;
        next.start = later.start, next.end = later.end;
        find_ahead(next, v, block + step, blocks, part, ROWS);
        find_bounds(later, v, block + 2 * step, blocks);
        float4 target[1], gradient[1];
        double loss = 0;
        char *row = live_row(v.target.weights, now.target_id, now.target, cold[SIDE_TARGET]);
        read_row<G, 1>(target, row, threadIdx.x % G, v.quads);
        clear_row<1>(gradient);
        for (uint32_t first = first_of(now, part, ROWS); first < now.end; first += v.parts * ROWS) {
            if (first != first_of(now, part, ROWS)) find_context(now, v, first, ROWS);
            loss += hold_contexts<G, MODE>(v, target, gradient, now, first, cold[SIDE_CONTEXT], scale);
        }
        if (MODE == DOTS_POST) continue;
        sum_beside<G, 1>(gradient);
        end_block<G, 1, THREADS>(v, block, loss, gradient);
        if (v.parts > 1) __syncthreads(); /* the warps' sums are read */
    }
}

#endif
