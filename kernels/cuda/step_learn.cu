/* step_learn: the passes of step_learn.cuh, and their launches. `learn` computes loss and coefficients from complete scores, for one vector of a
 * block after the other, by a warp, or by a thread block if blocks have many contexts. */
#include "step_learn.cuh"

/* ==== the passes score, and gain for several vectors ====
 *
 * `score` computes dot products and squares; `gain`, for blocks of several vectors, computes gradients from the coefficients. */

/* ---- score ---- */

/* Sums, for each row in flight, its values over groups and lanes. Each lane gets one row's sum. */
template <int G, int U> static __device__ __forceinline__ float finish_values(float (&value)[U]) {
    group_sum<G, U>(value);
    return to_lanes<G, U>(value, threadIdx.x & 31);
}

template <class F, int VEC> static __device__ __forceinline__ float squares_of(const struct stored_row<F, VEC> &stored) {
    float4 x[VEC];
    open_row<F, VEC>(x, stored);
    return dot_rows<VEC>(x, x);
}

/* Computes the dot products of the group's contexts with a vector; `terms` is the number of the first one's term. With a block's first vector,
 * also computes the contexts' squares. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void score_contexts(const struct step_view &v, const struct learn_view &l, const struct block_share &s,
                                                      const float4 (&x)[VEC], uint64_t terms, bool squares) {
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
            if (G > 32 && threadIdx.x >= 32) real = false; /* all warps of a group have the same sums, so only one writes them */
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
        score_contexts<F, G, VEC>(v, l, s, x, v.term_starts[s.block] + (uint64_t)k * (s.end - s.start), k == 0 && l.lengths[SIDE_CONTEXT]);
        if (!l.lengths[SIDE_TARGET] || s.part) continue;
        float squares[1] = {dot_rows<VEC>(x, x)};
        group_sum<G, 1>(squares);
        if (threadIdx.x % learn_groups<G>::width == 0) give_part(v, l.lengths[SIDE_TARGET], place, l.length_slots[SIDE_TARGET] + place, squares[0]);
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

/* Computes a target's gradient: the sum of coefficient x context over its block, plus the target itself times its own factor (for cosines:
 * losses.h). */
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

/* Computes the gradient of one occurrence of a context: the sum of coefficient x target over its block, plus the context itself times its own
 * factor. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void gain_context(const struct step_view &v, const struct learn_view &l,
                                                    const struct block_share &s, uint32_t place, const float *coefficients) {
    uint32_t tid = threadIdx.x % G, distinct = v.context.rows.distinct[place];
    float4 sum[VEC];
    if (distinct == DRAW_NONE) return; /* the slot is empty, so its gradient is not read */
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

/* ==== the pass gain for blocks of one vector ====
 *
 * Computes the vector's gradient from the coefficients of its contexts. Updates contexts that occur once in the batch while they are in registers,
 * since their whole gradient is known. */

/* One of the group's `here` contexts, from number `base` on, in each lane: its row, its coefficient, and its factor in its own gradient. */
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

/* Adds the group's contexts to the vector's gradient, and updates those that occur once. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void gain_contexts(const struct step_view &v, const struct learn_view &l, const struct block_share &s,
                                                     const float4 (&x)[VEC], float4 (&gradient)[VEC]) {
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
            if (STATE) group_wait<G>(); /* waits until all threads have read the rows' counts of updates */
#pragma unroll
            for (int u = 0; u < U; u++) {
                float4 w[VEC];
                open_row<F, VEC>(w, stored[u]);
                if (rows[u].weights) add_row<VEC>(gradient, coefficient[u], w);
                if (!rows[u].single) continue;
                float4 own_gradient[VEC]; /* coefficient x vector, plus the row itself times its factor */
                clear_row<VEC>(own_gradient);
                add_row<VEC>(own_gradient, coefficient[u], x);
                add_row<VEC>(own_gradient, own[u], w);
                update_single<F, G, VEC, STATE>(rows[u], held[u], w, own_gradient, tid, v);
            }
        }
    }
    sum_beside<G, VEC>(gradient);
}

/* Returns how many thread blocks must fit on a multiprocessor: this limits a thread's registers to 128, or 255 for wide rows. */
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

/* ==== the passes pool and share: a warp works on a block ==== */

enum { AT_ONCE = 8 }; /* rows in flight: a window has about ten rows, a list a hundred */

/* Computes a block's vector: the weighted sum of its rows, in order. Each lane looks up one of 32 rows. */
template <class F>
static __global__ void __launch_bounds__(CTA) pool_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32, cold_first = v.counts->cold_first[SIDE_TARGET];
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first, lane = threadIdx.x & 31;
    float own = example_pool_weight(&l.pool, targets, 0), other = example_pool_weight(&l.pool, targets, 1);
    float *out = l.pooled + (uint64_t)block * v.span;
    for (uint32_t chunk = lane; chunk - lane < v.quads / F::QUADS; chunk += 32) { /* lanes without a chunk stay in the loop, since all lanes
                                                                                   * exchange values */
        float4 sum[F::QUADS];
        clear_row<F::QUADS>(sum);
        for (uint32_t base = 0; base < targets; base += 32) {
            uint32_t count = targets - base < 32 ? targets - base : 32, at = first + base + (lane < count ? lane : 0);
            uint32_t distinct = v.target.rows.distinct[at] & ~SINGLE_BIT;
            auto found = (unsigned long long)(uintptr_t)live_row(v.target.weights, v.target.rows.ids[at], distinct, cold_first);
            for (uint32_t t = 0; t < count; t += AT_ONCE) {
                struct stored_row<F, F::QUADS> stored[AT_ONCE];
#pragma unroll
                for (uint32_t u = 0; u < AT_ONCE; u++) {
                    auto weights = (const char *)(uintptr_t)__shfl_sync(ALL_LANES, found, (int)(t + u < count ? t + u : t));
                    read_stored<F, 32, F::QUADS>(stored[u], weights, chunk, v.quads);
                }
#pragma unroll
                for (uint32_t u = 0; u < AT_ONCE; u++) {
                    float4 row[F::QUADS];
                    open_row<F, F::QUADS>(row, stored[u]);
                    if (t + u < count) add_row<F::QUADS>(sum, base + t + u ? other : own, row);
                }
            }
        }
        write_row<F, 32, F::QUADS>(sum, out, chunk, v.quads);
    }
}

/* Distributes the gradient of a block's vector, stored at the place of the block's first target, to all its targets. */
static __global__ void __launch_bounds__(CTA) share_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32;
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first;
    if (!targets) return;
    for (uint32_t q = threadIdx.x & 31; q < v.quads; q += 32) {
        float *gradient = v.target_gradients + (uint64_t)first * v.span;
        float4 whole = read_quad(gradient, q);
        for (uint32_t t = 0; t < targets; t++) {
            float4 part[1] = {whole};
            if (!l.pool.whole) scale_row<1>(part, example_pool_share(&l.pool, targets, t));
            write_quad(gradient + t * v.span, q, part[0]);
        }
    }
}

int pool_launch(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    learn_kernel *kernel = v->halves ? pool_blocks<bfloat16_rows> : pool_blocks<float32_rows>;
    kernel<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("pool_blocks");
    return 0;
}

int pool_share(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    share_blocks<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("share_blocks");
    return 0;
}

/* Waits until all threads of the group can read the values that the other threads have written. */
template <int WIDTH> static __device__ void wait_for_group() {
    if (WIDTH > 32) __syncthreads();
    else __syncwarp();
}

/* ---- a vector's scores ---- */

/* The scores of one vector, first its positives' scores. Thread `tid` of the group writes coefficients tid, tid + WIDTH .. */
struct line {
    float *score, *coefficient; /* [count] */
    const uint32_t *distinct;   /* [count] indices among the distinct rows; DRAW_NONE: the slot is empty */
    const uint32_t *ids;        /* [count] */
    const float *weights;       /* [positives] weights; NULL: every positive weighs 1 */
    const uint32_t *unchanged;  /* bit map of rows whose contexts have no term in the loss; NULL: all have one */
    uint32_t count, positives, negatives; /* count: number of contexts; negatives: number of negatives whose slots are not empty */
    uint32_t tid;
    float scale, inverse; /* scale: factor of all gradients; inverse: 1 / temperature */

    __device__ float &score_at(uint32_t i) const {
        return score[i];
    }
    __device__ float &coefficient_at(uint32_t i) const {
        return coefficient[i];
    }
    __device__ bool is_there(uint32_t i) const {
        return distinct[i] != DRAW_NONE;
    }
    __device__ const float *positive_weights() const {
        return weights;
    }
    __device__ bool adds_loss(uint32_t i) const {
        return !row_has_bit(unchanged, ids[i]);
    }
};

/* ---- cosines ---- */

/* Replaces the squared length of each context of the block by 1 / length. Each thread converts those that it reads later. */
template <int WIDTH>
static __device__ void invert_lengths(const struct step_view &v, const struct learn_view &l, const struct line &s, uint32_t place) {
    float *lengths = l.lengths[SIDE_CONTEXT] + place;
    uint64_t slot = l.length_slots[SIDE_CONTEXT] + place;
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) lengths[i] = s.is_there(i) ? loss_inverse_length(take_whole(v, lengths, i, slot + i)) : 0;
}

/* Reads the vector's dot products, summed over ranks; for cosines, divides them by the lengths of both rows. */
template <int WIDTH>
static __device__ void take_scores(const struct step_view &v, const struct line &s, uint64_t term, const float *lengths, float inverse_length) {
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float score = s.is_there(i) ? take_whole(v, s.score, i, term + i) : 0;
        s.score[i] = lengths ? score * inverse_length * lengths[i] : score;
    }
}

/* For cosines: turns the coefficients of cosines into coefficients of dot products, and replaces each score by cosine x coefficient. Returns the
 * vector's factor in its own gradient. */
template <int WIDTH> static __device__ float finish_cosines(const struct line &s, const float *lengths, float inverse_length) {
    float sum = 0;
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float coefficient = s.coefficient[i], product = coefficient * s.score[i];
        s.score[i] = product;
        s.coefficient[i] = coefficient * inverse_length * lengths[i];
        sum += product;
    }
    return loss_own(across<WIDTH>(sum, plus()), inverse_length);
}

/* Computes each context's factor in its own gradient, from the products for all vectors. */
template <int WIDTH> static __device__ void finish_contexts(const struct line &s, const float *products, uint32_t vectors, float *lengths) {
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float sum = 0;
        for (uint32_t k = 0; k < vectors; k++) sum += products[(uint64_t)k * s.count + i];
        lengths[i] = vectors ? loss_own(sum, lengths[i]) : 0;
    }
}

/* ---- frozen rows ---- */

/* The pairs of a block that are left out because both rows are frozen, as kernels/cpu/batch.c leaves them out. */
struct left {
    bool vectors, contexts; /* vectors: true: some vector may change; contexts: true: some context may change */
    bool by_pairs;          /* true: a pair is kept if at least one of its rows may change; false: all pairs of the block are kept */
    unsigned long long terms, pairs;
};

template <int WIDTH> static __device__ bool some_change(const uint32_t *frozen, const uint32_t *ids, uint32_t count, uint32_t tid) {
    float change = 0;
    for (uint32_t i = tid; i < count; i += WIDTH)
        if (ids[i] != DRAW_NONE && !row_has_bit(frozen, ids[i])) change = 1;
    return across<WIDTH>(change, larger()) > 0;
}

template <int WIDTH>
static __device__ struct left left_of(const struct step_view &v, const struct learn_view &l, const struct line &s, uint32_t place, uint32_t targets) {
    struct left left = {true, true, false, 0, 0};
    if (!l.frozen[SIDE_TARGET] && !l.frozen[SIDE_CONTEXT]) return left;
    left.vectors = some_change<WIDTH>(l.frozen[SIDE_TARGET], v.target.rows.ids + place, targets, s.tid);
    left.contexts = some_change<WIDTH>(l.frozen[SIDE_CONTEXT], s.ids, s.count, s.tid);
    left.by_pairs = l.loss.kind == LOSS_LOGISTIC && !l.pool.on;
    return left;
}

/* Returns true if some pairs of a vector are kept. Marks and counts the contexts whose pairs are left out. */
template <int WIDTH> static __device__ bool leave_out(const struct learn_view &l, struct left &left, struct line &s, uint32_t target) {
    uint32_t positives = 0, negatives = 0;
    bool some = left.vectors || left.contexts;
    if (left.by_pairs && left.vectors && !left.contexts) some = !row_has_bit(l.frozen[SIDE_TARGET], target);
    s.unchanged = left.by_pairs && !left.vectors ? l.frozen[SIDE_CONTEXT] : NULL;
    if (!some) return false;
    for (uint32_t i = s.tid; s.unchanged && i < s.count; i += WIDTH)
        if (s.is_there(i) && !row_has_bit(s.unchanged, s.ids[i])) i < s.positives ? positives++ : negatives++;
    if (s.unchanged) {
        positives = across<WIDTH>(positives, plus());
        negatives = across<WIDTH>(negatives, plus());
    } else {
        positives = s.positives, negatives = s.negatives;
    }
    left.pairs += positives;
    left.terms += positives + negatives;
    return true;
}

static __device__ void tell_left(const struct learn_view &l, const struct left &left, const struct line &s, uint32_t vectors) {
    unsigned long long pairs = (unsigned long long)vectors * s.positives;
    unsigned long long terms = pairs + (unsigned long long)vectors * s.negatives;
    if (s.tid || (!l.frozen[SIDE_TARGET] && !l.frozen[SIDE_CONTEXT])) return;
    if (terms > left.terms) atomicAdd(&l.counts->empty_terms, terms - left.terms);
    if (pairs > left.pairs) atomicAdd(&l.counts->pairs, 0ull - (pairs - left.pairs));
}

/* ---- the pass ---- */

template <int WIDTH> static __device__ uint32_t count_negatives(const struct line &s) {
    uint32_t negatives = 0;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) negatives += s.is_there(i);
    return across<WIDTH>(negatives, plus());
}

template <int WIDTH> static __device__ struct line line_of(const struct step_view &v, const struct learn_view &l, uint32_t block) {
    struct line s;
    uint32_t first = v.context_starts[block];
    s.tid = threadIdx.x % WIDTH;
    s.count = v.context_starts[block + 1] - first;
    s.positives = v.positives[block];
    s.distinct = v.context.rows.distinct + first;
    s.ids = v.context.rows.ids + first;
    s.weights = l.weights ? l.weights + first : NULL;
    s.unchanged = NULL;
    s.scale = scale_of(v);
    s.inverse = loss_inverse_temperature(&l.loss);
    s.negatives = count_negatives<WIDTH>(s);
    return s;
}

/* Computes loss and coefficients of one vector: the target at `place`, or the pooled targets that begin there. Returns this thread's part of the
 * loss. */
template <int WIDTH>
static __device__ double learn_vector(const struct step_view &v, const struct learn_view &l, struct line &s, struct left &left,
                                      uint64_t term, uint32_t place, const float *lengths) {
    float *own = lengths ? l.lengths[SIDE_TARGET] + place : NULL;
    float inverse_length = own ? loss_inverse_length(take_whole(v, own, 0, l.length_slots[SIDE_TARGET] + place)) : 1;
    s.score = l.scores + term;
    s.coefficient = v.coefficients + term;
    bool some = leave_out<WIDTH>(l, left, s, v.target.rows.ids[place]);
    take_scores<WIDTH>(v, s, term, lengths, inverse_length);
    wait_for_group<WIDTH>();
    double loss = learn_line<WIDTH>(l.loss, s);
    if (!own) return some ? loss : 0;
    wait_for_group<WIDTH>(); /* waits for the coefficients of positives, which other threads may write */
    float factor = finish_cosines<WIDTH>(s, lengths, inverse_length);
    if (s.tid == 0) *own = factor;
    return some ? loss : 0;
}

template <int WIDTH>
static __global__ void __launch_bounds__(LEARN_CTA)
    learn_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = blockIdx.x * (LEARN_CTA / WIDTH) + threadIdx.x / WIDTH;
    meet_without_words(v);
    if (block >= v.counts->blocks) return;
    struct line s = line_of<WIDTH>(v, l, block);
    uint32_t place = v.target_starts[block], targets = v.target_starts[block + 1] - place, first = v.context_starts[block];
    uint32_t vectors = example_vectors(&l.pool, targets);
    uint64_t terms = v.term_starts[block];
    float *lengths = l.lengths[SIDE_CONTEXT] ? l.lengths[SIDE_CONTEXT] + first : NULL;
    struct left left = left_of<WIDTH>(v, l, s, place, targets);
    double loss = 0;
    if (lengths && vectors) invert_lengths<WIDTH>(v, l, s, first);
    for (uint32_t k = 0; k < vectors; k++) loss += learn_vector<WIDTH>(v, l, s, left, terms + (uint64_t)k * s.count, place + k, lengths);
    s.coefficient = v.coefficients + terms;
    if (!vectors && l.one_vector) learn_nothing<WIDTH>(s); /* a pooled block without targets has terms, but no vector */
    if (lengths) finish_contexts<WIDTH>(s, l.scores + terms, vectors, lengths);
    tell_left(l, left, s, vectors);
    loss = across<WIDTH>(loss, plus());
    for (uint32_t k = s.tid; k < (l.one_vector ? 1 : targets); k += WIDTH)
        v.losses[(l.one_vector ? block : place) + k] = k ? 0 : loss; /* a block's whole loss is stored as its first one; its others are 0 */
}

/* ---- launching ---- */

int learn_is_wanted(const struct stage *stage, const struct step_request *request) {
    int frozen = request->target->frozen || request->context->frozen;
    return !loss_is_plain(&request->loss) || stage->pool.on || (frozen && !request->loss_only);
}

static int fill_learn(struct backend *b, const struct stage *stage, const struct step_request *request, struct learn_view *l) {
    const struct batch_sizes *capacity = &stage->capacity;
    uint64_t targets = capacity->targets, contexts = capacity->contexts, span = request->target->spec.layout.span;
    int cosines = request->loss.score == SCORE_COSINE;
    struct learn_bytes bytes = learn_bytes(capacity->blocks, targets + contexts, capacity->terms, span, cosines, stage->pool.on);
    if (gpu_grow(b, &b->scores, bytes.scores, "a batch's scores") || gpu_grow(b, &b->lengths, bytes.lengths, "a batch's lengths") ||
        gpu_grow(b, &b->pooled, bytes.pooled, "a batch's pooled targets"))
        return -1;
    l->loss = request->loss;
    l->pool = stage->pool;
    l->scores = (float *)b->scores.data;
    l->lengths[SIDE_TARGET] = cosines ? (float *)b->lengths.data : NULL;
    l->lengths[SIDE_CONTEXT] = cosines ? (float *)b->lengths.data + targets : NULL;
    l->length_slots[SIDE_TARGET] = exchange_slots(targets, contexts, capacity->terms, 0);
    l->length_slots[SIDE_CONTEXT] = l->length_slots[SIDE_TARGET] + targets;
    l->weights = weights_of(stage, request);
    l->pooled = stage->pool.on ? (float *)b->pooled.data : NULL;
    l->frozen[SIDE_TARGET] = request->loss_only ? NULL : request->target->frozen;
    l->frozen[SIDE_CONTEXT] = request->loss_only ? NULL : request->context->frozen;
    l->counts = stage->counts;
    l->one_vector = stage->one_vector;
    return 0;
}

/* Launches a pass. If blocks have enough contexts, several groups of threads share a block. */
static int launch(struct backend *b, const struct stage *stage, struct step_view v, const struct learn_view *l,
                  const struct learn_launch_of *k, const char *name) {
    const struct batch_sizes *sizes = &stage->sizes;
    int share = sizes->contexts / 32 >= sizes->blocks;
    v.parts = share ? k->groups : 1;
    k->kernel<<<blocks_for((uint64_t)sizes->blocks * v.parts, k->groups), k->threads, 0, b->compute>>>(v, *l);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : cuda_failed(error, name);
}

int learn_launch(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v, struct learn_view *l) {
    uint32_t blocks = stage->sizes.blocks;
    struct learn_launch_of score = learn_score(v);
    struct learn_launch_of gain = stage->one_vector ? learn_gain_one(v) : learn_gain_many(v);
    if (fill_learn(b, stage, request, l) || (l->pooled && pool_launch(b, blocks, v, l)) || launch(b, stage, *v, l, &score, "score")) return -1;
    if (has_parts(v) && !exchange_is_near(b->exchange)) {
        uint64_t lengths = stage->capacity.targets + (uint64_t)stage->sizes.contexts;
        if (exchange_sum(b, 0, stage->sizes.terms)) return -1;
        if (l->lengths[SIDE_TARGET] && exchange_sum(b, l->length_slots[SIDE_TARGET], lengths)) return -1;
    }
    if (stage->sizes.contexts / LEARN_CTA >= blocks) learn_blocks<LEARN_CTA><<<blocks, LEARN_CTA, 0, b->compute>>>(*v, *l);
    else learn_blocks<32><<<blocks_for((uint64_t)blocks * 32, LEARN_CTA), LEARN_CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("learn_blocks");
    if (request->loss_only) return 0;
    if (launch(b, stage, *v, l, &gain, "gain")) return -1;
    return l->pooled ? pool_share(b, blocks, v, l) : 0;
}
