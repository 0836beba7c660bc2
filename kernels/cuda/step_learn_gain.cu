/* step_learn_gain: the pass `gain` of step_learn.cuh for blocks of one vector: computes the vector's gradient from the
 * coefficients of its contexts; and updates contexts that occur once in the batch while they are in registers, since their whole
 * gradient is known. */
#include "step_learn.cuh"

/* A context of this lane, of the group's `here` contexts from number `base` on: its row, its coefficient, and its factor in its
 * own gradient. */
struct gained {
    struct found_row found;
    float coefficient, own;
};
static __device__ __forceinline__ struct gained find_gained(const struct step_view &v, const struct learn_view &l, uint32_t place,
                                                            uint64_t term, bool real) {
    struct gained g;
    g.found = find_row(v.context, v.counts->cold_first[SIDE_CONTEXT], place, real);
    g.coefficient = real ? v.coefficients[term] : 0;
    g.own = real && l.lengths[SIDE_CONTEXT] ? l.lengths[SIDE_CONTEXT][place] : 0;
    if (g.found.single && row_has_bit(l.frozen[SIDE_CONTEXT], v.context.rows.ids[place])) g.found.single = 0;
    return g;
}

/* Works on the group's contexts: adds to the vector's gradient, and updates rows that occur once. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void gain_contexts(const struct step_view &v, const struct learn_view &l,
                                                     const struct block_share &s, const float4 (&x)[VEC],
                                                     float4 (&gradient)[VEC]) {
    constexpr int U = contexts_at_once<F>(G, VEC, STATE, true), R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31;
    uint64_t terms = v.term_starts[s.block];
    for (uint32_t base = s.first; base < s.last; base += 32) {
        uint32_t here = s.last - base < 32 ? s.last - base : 32;
        struct gained g = find_gained(v, l, base + lane, terms + base + lane - s.start, lane < here);
        for (uint32_t i = 0; i < here; i += U * R) {
            struct stored_row<F, VEC> stored[U];
            struct held_state<VEC, STATE> held[U];
            struct context_row rows[U];
            float coefficient[U], own[U];
            read_contexts<F, G, VEC, STATE, U>(stored, held, rows, g.found, i, here, tid, v);
#pragma unroll
            for (int u = 0; u < U; u++) {
                uint32_t from = (i + u * R + own_beside<G>()) & 31;
                coefficient[u] = __shfl_sync(ALL_LANES, g.coefficient, from);
                own[u] = __shfl_sync(ALL_LANES, g.own, from);
            }
            if (STATE) group_wait<G>(); /* all threads have read the rows' counts of updates */
#pragma unroll
            for (int u = 0; u < U; u++) {
                float4 w[VEC];
                open_row<F, VEC>(w, stored[u]);
                if (rows[u].weights) add_row<VEC>(gradient, coefficient[u], w);
                if (!rows[u].single) continue;
                float4 own_gradient[VEC]; /* coefficient x vector, plus the row's factor x the row itself */
                clear_row<VEC>(own_gradient);
                add_row<VEC>(own_gradient, coefficient[u], x);
                add_row<VEC>(own_gradient, own[u], w);
                update_single<F, G, VEC, STATE>(rows[u], held[u], w, own_gradient, tid, v);
            }
        }
    }
    sum_beside<G, VEC>(gradient);
}

/* Returns the least number of thread blocks on a multiprocessor. It limits a thread's registers to 128, or 255 for wide rows. */
static constexpr int gain_resident(int group) {
    return group <= 32 ? 2 : 1;
}

template <class F, int G, int VEC, bool STATE>
static __global__ void __launch_bounds__(learn_groups<G>::threads, gain_resident(G))
    gain_one(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    constexpr int THREADS = learn_groups<G>::threads;
    constexpr uint32_t WIDTH = learn_groups<G>::width, GROUPS = learn_groups<G>::count;
    __shared__ float4 sums[GROUPS > 1 ? GROUPS : 1][GROUPS > 1 ? VEC * G : 1];
    struct block_share s;
    float4 x[VEC], gradient[VEC];
    if (!take_share<G>(v, s)) return;
    uint32_t tid = threadIdx.x % WIDTH;
    read_vector<F, G, VEC>(v, l, s.block, s.target, x);
    clear_row<VEC>(gradient);
    gain_contexts<F, G, VEC, STATE>(v, l, s, x, gradient);
    if (l.lengths[SIDE_TARGET] && s.part == 0 && s.targets) add_row<VEC>(gradient, l.lengths[SIDE_TARGET][s.target], x);
    float *out = v.target_gradients + (uint64_t)s.target * v.span;
    if (v.parts == 1) {
        if (s.targets && tid < G) write_row<F, G, VEC>(gradient, out, tid, v.quads);
        return;
    }
    if constexpr (GROUPS > 1) {
#pragma unroll
        for (int i = 0; i < VEC; i++)
            if (tid < G) sums[s.group][quad_of<F, G>(i, tid)] = gradient[i];
        __syncthreads();
        if (s.targets) add_groups<THREADS, GROUPS>({sums[0], VEC * G}, out, v.quads);
    }
}

template <class F> struct gain_one_of {
    template <int G, int VEC, bool STATE> struct family {
        static struct learn_launch_of get(void) {
            return {gain_one<F, G, VEC, STATE>, learn_groups<G>::threads, learn_groups<G>::count};
        }
    };
};
struct learn_launch_of learn_gain_one(const struct step_view *v) {
    if (v->halves) return kernels_for_few_halves<gain_one_of<bfloat16_rows>::family>(v->quads, v->rule.slots > 0);
    return kernels_for_few<gain_one_of<float32_rows>::family>(v->quads, v->rule.slots > 0);
}
