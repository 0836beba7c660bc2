/* step_dots_ranks: first half of a step if several ranks each store some of the columns. Most of its kernels come from step_dots.cuh; this file has
 * those for blocks of one target with rows of up to 256 columns. There are two ways, with the same result:
 *
 *   GPUs can address each other's memory   one kernel, which keeps the rows in shared memory while it waits, some 2 us, for the other
 *                                          ranks' partial dot products. So a row is read once and written once
 *   otherwise                              two kernels, which read the rows twice
 *
 * The rows of a block (of the batch) are held by all warps of a thread block or, if blocks have few contexts, by one warp. While a block is worked
 * on, the addresses of the next block's rows are looked up: otherwise the GPU would wait for one read after the other, with too few rows in flight.
 * State is read after the sums have arrived; reading it earlier gained nothing.
 *
 * On every rank thread blocks work on runs of consecutive blocks, in order, so all ranks work on the earliest unfinished block. Between two runs the
 * GPU can make the next batch and copy its rows.
 */
#include "step_dots.cuh"

/* A block's target, and one of its contexts in each lane, looked up before the block is worked on. */
struct ahead {
    uint32_t start, end, positives;
    uint32_t target, target_id, context, context_id; /* target, context: indices among the distinct rows; target_id, context_id: their ids */
};

static __device__ __forceinline__ uint32_t first_of(const struct ahead &a, uint32_t part, uint32_t rows) {
    uint32_t first = a.start + part * rows;
    return first < a.end ? first : a.end;
}

static __device__ __forceinline__ void find_bounds(struct ahead &a, const struct step_view &v, uint32_t block, uint32_t blocks) {
    a.start = block < blocks ? v.context_starts[block] : 0;
    a.end = block < blocks ? v.context_starts[block + 1] : 0;
}

static __device__ __forceinline__ void find_context(struct ahead &a, const struct step_view &v, uint32_t first) {
    uint32_t lane = threadIdx.x & 31;
    a.context = DRAW_NONE, a.context_id = 0;
    if (lane >= v.held || first + lane >= a.end) return;
    a.context = v.context.rows.distinct[first + lane];
    a.context_id = v.context.rows.ids[first + lane];
}

/* Looks up a block's target and this lane's context. start, end and positives of the block must have been read. */
static __device__ __forceinline__ void find_ahead(struct ahead &a, const struct step_view &v, uint32_t block, uint32_t blocks, uint32_t part) {
    if (block < blocks) {
        a.positives = v.positives[block];
        a.target = v.target.rows.distinct[block] & ~SINGLE_BIT;
        a.target_id = v.target.rows.ids[block];
    }
    find_context(a, v, first_of(a, part, v.held));
}

/* ---- the rows of a warp ---- */

/* The context rows of a block that one warp holds in shared memory. */
struct warp_rows {
    char *rows;             /* in shared memory [here x v.weights_bytes]: the rows' weights */
    struct found_row found; /* the row that this lane has looked up */
    unsigned real;          /* bit l is 1 if lane l has a row */
    uint32_t here;
};

static __device__ __forceinline__ bool has_row(unsigned bits, uint32_t row) {
    return row < 32 && (bits >> row & 1);
}

/* Returns the row that this thread's group works on if the warp works on consecutive rows from i on, one for each of its groups. */
template <int G> static __device__ __forceinline__ uint32_t group_row(uint32_t i) {
    return i + own_beside<G>();
}

static __device__ __forceinline__ const char *held_row(const struct warp_rows &held, uint32_t row, const struct step_view &v) {
    return held.rows + row * v.weights_bytes;
}

template <class F, int G, int VEC> static __device__ __forceinline__ void bring_rows(const struct warp_rows &held, const struct step_view &v) {
#pragma unroll 4
    for (uint32_t i = 0; i < held.here; i += rows_beside<G>()) {
        uint32_t row = group_row<G>(i);
        const char *from = (const char *)__shfl_sync(ALL_LANES, held.found.weights, row & 31);
        if (!has_row(held.real, row)) continue;
        char *to = held.rows + row * v.weights_bytes;
#pragma unroll
        for (int k = 0; k < VEC / F::QUADS; k++) bring_chunk(to, from, k * G + threadIdx.x % G, v.quads / F::QUADS);
    }
}

/* Returns the dot product of the target and the row that this lane has looked up. */
template <class F, int G, int VEC>
static __device__ __forceinline__ float held_dots(const float4 (&target)[VEC], const struct warp_rows &held, const struct step_view &v) {
    constexpr uint32_t U = 5, R = rows_beside<G>();
    uint32_t lane = threadIdx.x & 31;
    float own = 0;
    for (uint32_t i = 0; i < held.here; i += U * R) {
        float part[U];
#pragma unroll
        for (uint32_t u = 0; u < U; u++) {
            uint32_t row = group_row<G>(i + u * R);
            float4 w[VEC];
            if (has_row(held.real, row)) read_row<F, G, VEC>(w, held_row(held, row, v), threadIdx.x % G, v.quads);
            else clear_row<VEC>(w);
            part[u] = dot_rows<VEC>(target, w);
        }
        float sum = sum_over_group<G, U>(part); /* lane u of a group has the sum for the group's row u */
        uint32_t at = lane - i;
        float mine = __shfl_sync(ALL_LANES, sum, (at % R * G + at / R) & 31);
        if (at < U * R) own = mine;
    }
    return own;
}

/* Adds coefficient x row to the target's gradient, and updates rows that occur once. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void change_held(float4 (&gradient)[VEC], const float4 (&target)[VEC],
                                                   const struct warp_rows &held, float coefficient, const struct step_view &v) {
    constexpr int U = STATE && VEC > 2 ? 1 : 2;
    constexpr uint32_t R = rows_beside<G>();
    uint32_t tid = threadIdx.x % G;
    for (uint32_t i = 0; i < held.here; i += U * R) {
        struct held_state<VEC, STATE> state[U];
        struct context_row rows[U];
        float by[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t row = group_row<G>(i + u * R), from = row & 31;
            rows[u].weights = (char *)__shfl_sync(ALL_LANES, held.found.weights, from);
            rows[u].state = STATE ? (char *)__shfl_sync(ALL_LANES, held.found.state, from) : NULL;
            rows[u].id = F::QUADS > 1 ? __shfl_sync(ALL_LANES, held.found.id, from) : 0;
            rows[u].single = __shfl_sync(ALL_LANES, held.found.single, from) && has_row(held.real, row);
            by[u] = __shfl_sync(ALL_LANES, coefficient, from);
            if (STATE && rows[u].single) read_state<F, G, VEC, STATE>(state[u], rows[u].state, tid, v);
        }
        if (STATE) __syncwarp(); /* waits until all threads have read the rows' counts of updates */
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t row = group_row<G>(i + u * R);
            if (!has_row(held.real, row)) continue;
            float4 w[VEC], g[VEC];
            read_row<F, G, VEC>(w, held_row(held, row, v), tid, v.quads);
            add_row<VEC>(gradient, by[u], w);
            if (!rows[u].single) continue;
            clear_row<VEC>(g);
            add_row<VEC>(g, by[u], target);
            update_single<F, G, VEC, STATE>(rows[u], state[u], w, g, tid, v);
        }
    }
}

/* ---- a block ---- */

/* Trains the block's contexts from number `first` on, one in each lane. Returns the lane's loss. */
template <class F, int G, int VEC, bool STATE, int MODE>
static __device__ __forceinline__ double hold_contexts(const struct step_view &v, const float4 (&target)[VEC], float4 (&gradient)[VEC],
                                                       const struct ahead &a, uint32_t first, uint32_t cold_first, float scale, char *rows) {
    uint32_t context = first + (threadIdx.x & 31);
    bool real = a.context != DRAW_NONE;
    struct warp_rows held = {rows, {0, 0, 0, 0}, 0, min(a.end - first, v.held)};
    if (real) held.found = place_row(v.context, cold_first, a.context, a.context_id);
    held.real = __ballot_sync(ALL_LANES, real);
    bring_rows<F, G, VEC>(held, v);
    wait_for_copies();
    float own = 0; /* stays 0 with DOTS_COLLECT: the collected sum includes this rank's partial sum */
    if constexpr (MODE != DOTS_COLLECT) {
        own = held_dots<F, G, VEC>(target, held, v);
        if (real) exchange_post(v.exchange, context, own);
    }
    if constexpr (MODE == DOTS_POST) {
        __syncwarp(); /* all lanes have read the rows */
        return 0;
    }
    if constexpr (MODE == DOTS_NEAR) __nanosleep(HELD_PAUSE);
    float logit = real ? exchange_collect(v.exchange, context, own) : 0;
    __syncwarp();
    bool positive = context - a.start < a.positives;
    float coefficient = real ? coefficient_of(logit, positive, scale) : 0;
    if ((threadIdx.x & 31) < held.here && !v.loss_only) v.coefficients[context] = coefficient;
    if (!v.loss_only) change_held<F, G, VEC, STATE>(gradient, target, held, coefficient, v);
    __syncwarp(); /* all lanes have read the rows */
    return real ? (double)loss_of(logit, positive) : 0;
}

/* Returns how many thread blocks fit on a multiprocessor by their registers (shared memory may allow fewer). */
static constexpr int held_resident(int vec, bool state) {
    return state ? 3 : vec < 4 ? 6 : 5;
}

/* Trains blocks of one target. v.parts: warps that share a block's contexts: 1, or all warps of the thread block. */
template <class F, int G, int VEC, bool STATE, int MODE>
static __global__ void __launch_bounds__(HELD_THREADS, held_resident(VEC, STATE)) dot_held(const __grid_constant__ struct step_view v) {
    extern __shared__ float4 all_rows[];
    uint32_t number = MODE == DOTS_NEAR ? number_in_order(v) : blockIdx.x;
    uint32_t warp = threadIdx.x / 32, part = warp % v.parts, step = HELD_WARPS / v.parts;
    uint32_t begin = number * v.run * step, end = begin + v.run * step, blocks = end < v.counts->blocks ? end : v.counts->blocks;
    uint32_t block = begin + warp / v.parts;
    uint32_t cold[2] = {v.counts->cold_first[0], v.counts->cold_first[1]};
    uint32_t bytes = v.held * v.weights_bytes; /* bytes of a warp's rows; later the warp's part of the target's gradient is written there */
    struct group_rows rows = {all_rows, bytes / (uint32_t)sizeof(float4)};
    float scale = scale_of(v);
    struct ahead next, later;
    find_bounds(next, v, block, blocks);
    find_bounds(later, v, block + step, blocks);
    find_ahead(next, v, block, blocks, part);
    for (; block < blocks; block += step) {
        struct ahead now = next;
        next.start = later.start, next.end = later.end;
        find_ahead(next, v, block + step, blocks, part);
        find_bounds(later, v, block + 2 * step, blocks);
        float4 target[VEC], gradient[VEC];
        double loss = 0;
        char *row = live_row(v.target.weights, now.target_id, now.target, cold[SIDE_TARGET]);
        read_row<F, G, VEC>(target, row, threadIdx.x % G, v.quads);
        clear_row<VEC>(gradient);
        for (uint32_t first = first_of(now, part, v.held); first < now.end; first += v.parts * v.held) {
            if (first != first_of(now, part, v.held)) find_context(now, v, first);
            loss += hold_contexts<F, G, VEC, STATE, MODE>(v, target, gradient, now, first, cold[SIDE_CONTEXT], scale,
                                                    (char *)all_rows + warp * bytes);
        }
        if (MODE == DOTS_POST) continue;
        sum_beside<G, VEC>(gradient);
        end_block<F, G, VEC, HELD_THREADS>(v, block, loss, gradient, rows);
        if (v.parts > 1) __syncthreads(); /* waits until all warps have read the sums of the others */
    }
}

/* ---- which kernels serve a row's width ---- */

template <class F> struct of_form {
    template <int G, int VEC, bool STATE> struct near {
        static dot_kernel *get(void) {
            if constexpr (G * VEC > HELD_QUADS) return NULL;
            else return dot_held<F, G, VEC, STATE, DOTS_NEAR>;
        }
    };
    template <int G, int VEC, bool> struct near_plain : near<G, VEC, false> {}; /* as one_plain in step_dots.cuh */
    template <int G, int VEC, bool STATE> struct passes {
        static struct held_kernels get(void) {
            if constexpr (G * VEC > HELD_QUADS) return {};
            else return {NULL, dot_held<F, G, VEC, false, DOTS_POST>, dot_held<F, G, VEC, STATE, DOTS_COLLECT>};
        }
    };
    template <int G, int VEC, bool> struct near_windows {
        static struct dot_kernels get(void) {
            if constexpr (G > 32) return {};
            else return {NULL, NULL, 0, dot_windows<F, G, VEC, DOTS_NEAR>, G};
        }
    };
};

/* Narrow rows of bfloat16, as each of four ranks has, get as many threads as `few` gives them, so that the bits are the same, but two quads a
 * thread instead of four, two of which would be past the row's end. That needs fewer registers, so more warps run at once. */
struct held_kernels dot_kernels_held(const struct step_view *v) {
    typedef of_form<float32_rows> floats;
    typedef of_form<bfloat16_rows> halves;
    constexpr uint32_t NARROW = 16; /* Widest row, in quads, that eight threads hold with two quads each. */
    bool state = v->rule.slots > 0;
    struct held_kernels kernels = v->halves ? kernels_for_few_halves<halves::passes>(v->quads, state)
                                            : kernels_for_few<floats::passes>(v->quads, state);
    if (v->halves && v->quads <= NARROW) kernels.near = kernels_by_state<halves::near, 8, 2>(state);
    else if (v->halves) kernels.near = kernels_for_few_halves<halves::near>(v->quads, state);
    else if (state) kernels.near = kernels_for_few<floats::near>(v->quads, true);
    else kernels.near = kernels_for_narrow<floats::near_plain>(v->quads, false);
    return kernels;
}

/* Returns true if some ranks hold smaller tiles than others, because others have one more chunk of columns. Ranks can exchange a block's terms in
 * one pass only if all hold equally many contexts at a time; otherwise two passes are needed, the first of which waits for no rank. */
static bool has_smaller_tiles(uint32_t quads, uint32_t chunk) {
    constexpr uint32_t TWO_A_THREAD = 64; /* Widest row, in quads, that a warp holds with two quads in each thread. */
    static_assert(tile<1>::contexts == tile<2>::contexts && tile<3>::contexts == tile<4>::contexts,
                  "tiles change where a thread's third quad begins, and nowhere else");
    return quads == TWO_A_THREAD + chunk;
}

struct dot_kernels dot_kernels_near(const struct step_view *v) {
    if (has_smaller_tiles(v->quads, v->halves ? bfloat16_rows::QUADS : float32_rows::QUADS)) return {};
    if (v->halves) return kernels_for_short_halves<of_form<bfloat16_rows>::near_windows>(v->quads, false);
    return kernels_for_short<of_form<float32_rows>::near_windows>(v->quads, false);
}

struct dot_kernels dot_kernels_post(const struct step_view *v) {
    return dot_kernels_of<DOTS_POST>(v->halves, v->quads, false);
}
struct dot_kernels dot_kernels_collect(const struct step_view *v) {
    return dot_kernels_of<DOTS_COLLECT>(v->halves, v->quads, v->rule.slots > 0);
}
