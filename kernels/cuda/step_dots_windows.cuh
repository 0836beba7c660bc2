/* step_dots_windows: the kernels of step_dots.cuh for windows, whose blocks have several targets. A block's rows are held by G
 * lanes, a warp or a part of a warp, so a warp may work on several blocks at once. This file also chooses the kernels for a
 * row's width. */
#ifndef SPTX_CUDA_STEP_DOTS_WINDOWS_CUH
#define SPTX_CUDA_STEP_DOTS_WINDOWS_CUH

#include "step_dots.cuh"

/* How many targets, and how many contexts, of a window G lanes hold at a time. Ranks that wait for one another within a block
 * must all hold the same number of contexts (step_dots_ranks.cu); their numbers of targets may differ. */
template <int VEC> struct tile {
    static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, contexts = VEC <= 2 ? 6 : 4;
};

/* Reads N rows into registers. Lanes first .. first + N - 1 of the group have the rows' addresses in `found`. Places past the
 * end are read as zeros. */
template <class F, int G, int N, int VEC>
static __device__ __forceinline__ void read_tile(float4 (&rows)[N][VEC], unsigned long long found, uint32_t first,
                                                 uint32_t quads) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const char *row = (const char *)__shfl_sync(ALL_LANES, found, first + i, G);
        if (row) read_row<F, G, VEC>(rows[i], row, threadIdx.x % G, quads);
        else clear_row<VEC>(rows[i]);
    }
}

/* TERMS: how many terms of a tile each lane has. With CC contexts in a tile, the term of target j and context k has number i = j
 * x CC + k; it is number i / G of lane i % G. */
template <int G, int VEC> static constexpr int TERMS = (tile<VEC>::targets * tile<VEC>::contexts + G - 1) / G;

template <int G, int TT, int CC, int VEC>
static __device__ __forceinline__ void dot_tile(const float4 (&x)[TT][VEC], const float4 (&w)[CC][VEC],
                                                float (&logit)[TERMS<G, VEC>]) {
    float products[TT * CC];
#pragma unroll
    for (int j = 0; j < TT; j++)
#pragma unroll
        for (int k = 0; k < CC; k++) products[j * CC + k] = dot_rows<VEC>(x[j], w[k]);
    sum_over_lanes<G>(products, logit);
}

/* Adds to the gradients of a tile's `count` targets, in memory, and of its contexts, in registers, by the lanes' coefficients.
 * The block's first tile of contexts sets the targets' gradients; later tiles add to them. */
template <class F, int G, int TT, int CC, int VEC>
static __device__ __forceinline__ void gain_tile(const struct step_view &v, const float4 (&x)[TT][VEC],
                                                 const float4 (&w)[CC][VEC], float4 (&gained)[CC][VEC],
                                                 const float (&coefficient)[TERMS<G, VEC>], float *gradients, uint32_t count,
                                                 bool begin) {
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

/* Depending on MODE, posts the logits of a lane's terms, collects their sums over ranks, or does both. Each term that is `real`
 * has a slot of its own. */
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

/* Computes the loss and the coefficients of a lane's terms. The first `positives` contexts of the tile are positive. */
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

/* A block: its first target, first context and first term, and its numbers of targets, contexts and positives. All are 0 past
 * the last block. */
struct window {
    uint32_t target, targets, context, contexts, positives, terms;
};
static __device__ __forceinline__ struct window window_of(const struct step_view &v, uint32_t block, uint32_t blocks) {
    if (block >= blocks) return {};
    uint32_t t0 = v.target_starts[block], c0 = v.context_starts[block];
    return {t0, v.target_starts[block + 1] - t0, c0, v.context_starts[block + 1] - c0, v.positives[block], v.term_starts[block]};
}

/* The two values that must be read before the row of an occurrence can be found: its number among the distinct rows, and its id.
 * Both are requested at once, so that the rows of a window wait once, not twice. */
struct looked_up {
    uint32_t distinct, id; /* distinct = DRAW_NONE: the slot was left out, or the lane has no occurrence */
};
static __device__ __forceinline__ struct looked_up look_up(const struct live_side &side, uint32_t occurrence, bool real) {
    if (!real) return {DRAW_NONE, 0};
    return {side.rows.distinct[occurrence], side.rows.ids[occurrence]};
}
static __device__ __forceinline__ unsigned long long row_of(const struct live_side &side, uint32_t cold_first,
                                                            const struct looked_up &at) {
    return at.distinct == DRAW_NONE ? 0 : place_row(side, cold_first, at.distinct, at.id).weights;
}

/* Trains one block with each G lanes of a warp. The warp takes as many rounds as its largest block needs. A tile of contexts and
 * their gradients stay in registers while all targets are visited, tile after tile; for the next tile of contexts, all targets
 * are visited again, and their gradients added to. */
template <class F, int G, int VEC, int MODE>
static __device__ __forceinline__ void dot_window(const struct step_view &v, uint32_t block, uint32_t blocks) {
    constexpr int TT = tile<VEC>::targets, CC = tile<VEC>::contexts, N = TERMS<G, VEC>;
    constexpr uint32_t AHEAD = G / TT * TT; /* number of targets that are looked up together, one for each lane */
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
        bool there[N]; /* for each of the lane's terms: true: its target and its context exist */
#pragma unroll
        for (int n = 0; n < N; n++)
            there[n] = __shfl_sync(ALL_LANES, context, (n * G + lane) % CC, G) && n * G + lane < TT * CC;
        for (uint32_t done = 0; done < most_targets; done += TT) {
            uint32_t left = done < own.targets ? own.targets - done : 0;
            if (done && done % AHEAD == 0)
                target = row_of(v.target, cold[SIDE_TARGET], look_up(v.target, own.target + done + lane, lane < left));
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
            if (first + k < own.contexts)
                write_row<F, G, VEC>(gained[k], v.context_gradients + (own.context + first + k) * v.span, lane, v.quads);
    }
    if (MODE == DOTS_POST) return;
    loss = warp_sum<G>(loss);
    for (uint32_t t = lane; t < own.targets; t += G) v.losses[own.target + t] = t ? 0 : loss; /* the first has the block's */
}

/* Returns the least number of thread blocks of dot_windows on a multiprocessor, chosen so that a thread has the registers for a
 * tile of one quad. */
static constexpr int resident_windows(int quads, int mode) {
    return quads > 1 ? 1 : mode == DOTS_POST ? 6 : 4;
}

/* Trains blocks of several targets. Thread blocks that wait for other ranks take their blocks in order, as in
 * step_dots_held.cuh. */
template <class F, int G, int VEC, int MODE>
static __global__ void __launch_bounds__(CTA, resident_windows(VEC, MODE))
    dot_windows(const __grid_constant__ struct step_view v) {
    uint32_t blocks = v.counts->blocks; /* read before number_in_order(), which may wait */
    uint32_t number = MODE == DOTS_NEAR ? number_in_order(v) : blockIdx.x;
    if (MODE == DOTS_COLLECT) meet_without_words(v);
    dot_window<F, G, VEC, MODE>(v, (number * CTA + threadIdx.x) / G, blocks);
}

/* ---- which kernels ---- */

typedef void dot_kernel(const struct step_view);

struct dot_kernels {
    dot_kernel *one, *wide; /* for blocks of one target; wide: with thread blocks of WIDE_CTA threads; may be NULL */
    uint32_t one_threads;   /* number of threads of `one` that work on a block's contexts together */
    dot_kernel *many;
    uint32_t many_threads;  /* number of threads of `many` that work on a block */
};

/* The kernels of step_dots_held.cuh, for blocks of one target with several ranks. */
struct held_kernels {
    dot_kernel *near, *post, *collect;
};

template <class F, int MODE> struct of_mode {
    /* For blocks of one target. */
    template <int G, int VEC, bool STATE> struct one {
        static struct dot_kernels get(void) {
            if constexpr (MODE != DOTS_ALONE && G * VEC <= HELD_QUADS) return {}; /* step_dots_held.cuh has the kernels */
            else return {dot_one<F, G, VEC, STATE && MODE != DOTS_POST, CTA, MODE>, NULL, G < 32 ? 32 : G, NULL, 0};
        }
    };
    /* one_plain: for widths that are compiled only for records without state. */
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
    return with_many(kernels_for_narrow_halves<mode::template one>(quads, state),
                     kernels_for_short_halves<mode::template many>(quads, false));
}
/* Returns the kernels for a width. halves: 1: rows are bfloat16; state: 1: records have state. */
template <int MODE> static struct dot_kernels dot_kernels_of(bool halves, uint32_t quads, bool state) {
    typedef of_mode<float32_rows, MODE> mode;
    if (halves) return dot_kernels_of_halves<MODE>(quads, state);
    struct dot_kernels many = kernels_for_short<mode::template many>(quads, false);
    if constexpr (MODE == DOTS_ALONE)
        if (!state) return with_many(kernels_for_narrow<mode::template one_plain>(quads, false), many);
    return with_many(kernels_for_few<mode::template one>(quads, state), many);
}

struct dot_kernels dot_kernels_alone(const struct step_view *view); /* step_dots_alone.cu */
/* step_dots_ranks.cu. held: `near` is NULL if rows are not held. */
struct dot_kernels dot_kernels_post(const struct step_view *view);
struct dot_kernels dot_kernels_collect(const struct step_view *view);
struct dot_kernels dot_kernels_near(const struct step_view *view); /* for blocks of several targets; many: NULL if they need two
                                                                    * passes */
struct held_kernels dot_kernels_held(const struct step_view *view);

#endif
