/* dots_windows: dots.cuh for windows: blocks of several targets whose rows a warp holds; and which of all kernels rows take.
 *
 * In DOTS_NEAR blocks are taken in their order by thread blocks that are resident all at once, on every rank, so that the
 * earliest block that waits is always worked on by all.
 */
#ifndef SPTX_CUDA_DOTS_WINDOWS_CUH
#define SPTX_CUDA_DOTS_WINDOWS_CUH

#include "dots.cuh"

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
    if (MODE == DOTS_ALONE || !real) return logit;
    if constexpr (MODE == DOTS_COLLECT) logit = exchange_kept(v.exchange, term);
    if constexpr (MODE != DOTS_COLLECT) exchange_post(v.exchange, term, logit);
    if constexpr (MODE == DOTS_POST) exchange_keep(v.exchange, term, logit);
    else logit = exchange_collect(v.exchange, term, logit);
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
            if constexpr (G > 32 && MODE == DOTS_NEAR) return {};
            else if constexpr (G > 32) return {NULL, NULL, 0, dot_many<G, VEC, MODE>, CTA};
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

struct dot_kernels dot_kernels_alone(uint32_t quads, uint32_t slots); /* dots_alone.cu */
struct dot_kernels dot_kernels_post(uint32_t quads);                  /* dots_ranks.cu */
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t slots);
/* Waits for other ranks, so it is launched with as many thread blocks as the GPU holds at once. NULL: rows of more than 512
 * columns. */
dot_kernel *dot_windows_near(uint32_t quads);

#endif
