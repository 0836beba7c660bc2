/* step_learn_score: two passes of step_learn.cuh: `score`, which computes dot products and squares; and `gain` for blocks of
 * several vectors, which computes gradients from the coefficients. */
#include "step_learn.cuh"

/* ---- score ---- */

/* Adds the values of each row in flight over groups and lanes. Returns one row's sum to each lane. */
template <int G, int U> static __device__ __forceinline__ float finish_values(float (&value)[U]) {
    group_sum<G, U>(value);
    return to_lanes<G, U>(value, threadIdx.x & 31);
}

template <class F, int VEC> static __device__ __forceinline__ float squares_of(const struct stored_row<F, VEC> &stored) {
    float4 x[VEC];
    open_row<F, VEC>(x, stored);
    return dot_rows<VEC>(x, x);
}

/* Computes the dot products of the group's contexts with a vector; the first of them is the term number `terms`. For a block's
 * first vector, also computes the squares of the contexts. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void score_contexts(const struct step_view &v, const struct learn_view &l,
                                                      const struct block_share &s, const float4 (&x)[VEC], uint64_t terms,
                                                      bool squares) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS), R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    for (uint32_t base = s.first; base < s.last; base += 32) {
        uint32_t here = s.last - base < 32 ? s.last - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        for (uint32_t i = 0; i < here; i += U * R) {
            struct stored_row<F, VEC> w[U];
            struct held_state<VEC, 0> none[U];
            struct context_row rows[U];
            float value[U];
            read_contexts<F, G, VEC, 0, U>(w, none, rows, found, i, here, tid, v);
            bool real = __shfl_sync(ALL_LANES, found.weights, (i + lane) & 31) && lane < U * R && i + lane < here;
            uint32_t place = base + i + lane;
            if (G > 32 && threadIdx.x >= 32) real = false; /* all warps of a group have the same sums, so one warp writes them */
#pragma unroll
            for (int u = 0; u < U; u++) value[u] = dot_stored<F, VEC>(x, w[u]);
            float part = finish_values<G, U>(value);
            if (real) give_part(v, l.scores, terms + place - s.start, terms + place - s.start, part);
            if (!squares) continue;
#pragma unroll
            for (int u = 0; u < U; u++) value[u] = squares_of<F, VEC>(w[u]);
            part = finish_values<G, U>(value);
            if (real) give_part(v, l.lengths[SIDE_CONTEXT], place, l.length_slots[SIDE_CONTEXT] + place, part);
        }
    }
}

template <class F, int G, int VEC>
static __global__ void __launch_bounds__(learn_groups<G>::threads)
    score_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    struct block_share s;
    if (!take_share<G>(v, s)) return;
    uint32_t vectors = example_vectors(&l.pool, s.targets);
    for (uint32_t k = 0; k < vectors; k++) {
        uint32_t place = s.target + k;
        float4 x[VEC];
        read_vector<F, G, VEC>(v, l, s.block, place, x);
        score_contexts<F, G, VEC>(v, l, s, x, v.term_starts[s.block] + (uint64_t)k * (s.end - s.start),
                               k == 0 && l.lengths[SIDE_CONTEXT]);
        if (!l.lengths[SIDE_TARGET] || s.part) continue;
        float squares[1] = {dot_rows<VEC>(x, x)};
        group_sum<G, 1>(squares);
        if (threadIdx.x % learn_groups<G>::width == 0)
            give_part(v, l.lengths[SIDE_TARGET], place, l.length_slots[SIDE_TARGET] + place, squares[0]);
    }
}

template <class F> struct score_of {
    template <int G, int VEC, bool> struct family {
        static struct learn_launch_of get(void) {
            return {score_blocks<F, G, VEC>, learn_groups<G>::threads, learn_groups<G>::count};
        }
    };
};
struct learn_launch_of learn_score(const struct step_view *v) {
    if (v->halves) return kernels_for_few_halves<score_of<bfloat16_rows>::family>(v->quads, false);
    return kernels_for_few<score_of<float32_rows>::family>(v->quads, false);
}

/* ---- gradients of blocks of several vectors ---- */

/* Computes a target's gradient: the sum over the contexts of its block of coefficient x context, plus the target itself x its
 * own factor (used for cosines: losses.h). */
template <class F, int G, int VEC>
static __device__ __forceinline__ void gain_target(const struct step_view &v, const struct learn_view &l,
                                                   const struct block_share &s, uint32_t place, const float *coefficients) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS);
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    float4 sum[VEC];
    clear_row<VEC>(sum);
    for (uint32_t base = s.start; base < s.end; base += 32) {
        uint32_t here = s.end - base < 32 ? s.end - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        struct stored_row<F, VEC> w[U];
        struct held_state<VEC, 0> none[U];
        struct context_row rows[U];
        float factor = lane < here ? coefficients[base + lane - s.start] : 0;
        for (uint32_t i = 0; i < here; i += U) {
            read_contexts<F, G, VEC, 0, U>(w, none, rows, found, i, here, tid, v);
#pragma unroll
            for (int u = 0; u < U; u++) {
                float by = __shfl_sync(ALL_LANES, factor, (i + u) & 31);
                float4 row[VEC];
                open_row<F, VEC>(row, w[u]);
                if (rows[u].weights) add_row<VEC>(sum, by, row);
            }
        }
    }
    if (l.lengths[SIDE_TARGET]) {
        float4 x[VEC];
        read_target<F, G, VEC>(v, place, x);
        add_row<VEC>(sum, l.lengths[SIDE_TARGET][place], x);
    }
    write_row<F, G, VEC>(sum, v.target_gradients + (uint64_t)place * v.span, tid, v.quads);
}

/* Computes the gradient of a context in one place: the sum over the block's targets of coefficient x target, plus the context
 * itself x its own factor. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void gain_context(const struct step_view &v, const struct learn_view &l,
                                                    const struct block_share &s, uint32_t place, const float *coefficients) {
    uint32_t tid = threadIdx.x % G, distinct = v.context.rows.distinct[place];
    float4 sum[VEC];
    if (distinct == DRAW_NONE) return; /* the slot was left out, so nothing reads its gradient */
    sum_targets<F, G, VEC>(sum, v, s.target, s.target + s.targets, coefficients + place - s.start, s.end - s.start);
    if (l.lengths[SIDE_CONTEXT]) {
        float4 w[VEC];
        read_row<F, G, VEC>(w, live_row(v.context.weights, v.context.rows.ids[place], distinct & ~SINGLE_BIT,
                                     v.counts->cold_first[SIDE_CONTEXT]), tid, v.quads);
        add_row<VEC>(sum, l.lengths[SIDE_CONTEXT][place], w);
    }
    write_row<F, G, VEC>(sum, v.context_gradients + (uint64_t)place * v.span, tid, v.quads);
}

template <class F, int G, int VEC>
static __global__ void __launch_bounds__(learn_groups<G>::threads)
    gain_many(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    struct block_share s;
    if (!take_share<G>(v, s)) return;
    const float *coefficients = v.coefficients + v.term_starts[s.block];
    for (uint32_t t = s.part; t < s.targets; t += v.parts)
        gain_target<F, G, VEC>(v, l, s, s.target + t, coefficients + (uint64_t)t * (s.end - s.start));
    for (uint32_t place = s.start + s.part; place < s.end; place += v.parts) gain_context<F, G, VEC>(v, l, s, place, coefficients);
}

template <class F> struct gain_many_of {
    template <int G, int VEC, bool> struct family {
        static struct learn_launch_of get(void) {
            return {gain_many<F, G, VEC>, learn_groups<G>::threads, learn_groups<G>::count};
        }
    };
};
struct learn_launch_of learn_gain_many(const struct step_view *v) {
    if (v->halves) return kernels_for_whole_halves<gain_many_of<bfloat16_rows>::family>(v->quads, false);
    return kernels_for_whole<gain_many_of<float32_rows>::family>(v->quads, false);
}
