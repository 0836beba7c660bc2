/* step: one exact step of a batch, in the same order as kernels/cpu/step.c.
 *
 *   dots        by block     (step_dots.cu; step_learn.cuh; step_shared.cu) old rows -> dot products, loss, coefficients; gradients
 *                            of target occurrences and, in blocks of several vectors, of contexts
 *   accumulate  by context   (below) sums its occurrences' gradients, or coefficients x old targets, and updates it
 *               by target    sums its occurrences' gradients, and updates it: together with contexts, or later if contexts read targets
 *
 * The work on a row with many occurrences is divided into several work items, whose sums add_partials adds. Each sum is always added in the same
 * order, whatever the stage, the number of stages or the place of the rows.
 *
 * If the rule clips gradients by their norm and ranks share the columns, accumulate only stores the sums of rows that occur more than once, and posts
 * their squares; finish_rows then collects the squares of all columns, and updates these rows.
 */
#include "step_learn.cuh"
#include "step.cuh"

#include <string.h>

/* ==== the second half of a step ====
 *
 * Sums each distinct row's gradient over its places in the batch, and updates the row. Most rows are one work item (struct item), for a group of
 * threads (accumulate). A row with many places has several, with partial sums that add_partials adds.
 *
 *   accumulate         records without state: a row's sum is in registers; a warp works on several rows
 *   accumulate_any     records of any rule and width: each thread works on B quads at a time (step.cuh: end_item)
 *
 * LEARNED: kernels for steps with the passes of step_learn.cuh: vectors may be pooled, rows may be frozen, and with cosines a row's gradient contains
 * the row itself, times a factor. Other kernels are compiled without all of this.
 */

/* What is summed for a side's gradients: coefficient x target row (SUM_TARGETS), or rows of a buffer (SUM_BUFFER). */
enum sum_of { SUM_TARGETS, SUM_BUFFER };

struct work {
    const struct item *items;
    const uint32_t *count;
    const float *buffer; /* SUM_BUFFER: a row of span floats for each place of the side */
    int side;
    float *partials;       /* partial sums, in rows of span floats */
    float *row_sums;       /* if squares are summed over ranks: [distinct rows x span] each row's whole sum; otherwise NULL */
    uint64_t squares_slot; /* slot of the exchange that belongs to place 0 of the side */
    const uint32_t *frozen; /* bit map of the side's frozen rows; NULL: none. This field and the next two are used only with LEARNED */
    const float *pooled;    /* SUM_TARGETS: [blocks x span] pooled vectors, summed in place of target rows; NULL: targets are not pooled */
    const float *own;       /* SUM_TARGETS: [places] factor with which each place's row is added to its own gradient; NULL: it is not added */
};

/* The work of one launch: of one side, or of both if neither side reads rows that the other one changes. blockIdx.y is the index in of[]. */
struct works {
    struct work of[2];
};

/* A work item, and what has been read for it so far. Its rows are found by four reads (SUM_TARGETS) or two, each of which needs the result of the
 * one before; so these reads are made while earlier items are worked on. Each lane looks up one of the item's first summands. */
struct coming {
    struct item item;
    bool real;           /* true: the item exists, and its row is not frozen */
    uint32_t id;         /* id of the row whose gradient is summed */
    uint32_t occurrence; /* place in the batch of the summand that this lane looks up */
    uint32_t block;      /* SUM_TARGETS: the block that contains the lane's summand; target, target_id: that block's target */
    uint32_t target, target_id;
    float factor;
};

/* Reads work item number `at`; if at >= count, sets c.real to false. */
static __device__ __forceinline__ void take_item(struct coming &c, const struct work &work, uint32_t at, uint32_t count) {
    c.item = {0, 0, 0, DRAW_NONE};
    c.real = at < count;
    if (c.real) c.item = work.items[at];
}

/* Reads where in the batch the lane's summand occurs. lane: the summand's number in the work item. */
static __device__ __forceinline__ void take_place(struct coming &c, const struct live_side &side, uint32_t lane) {
    c.occurrence = lane < c.item.count ? side.rows.order[c.item.first + lane] : 0;
}

static __device__ __forceinline__ void take_row_and_place(struct coming &c, const struct live_side &side, uint32_t lane) {
    c.id = c.real ? side.rows.distinct_ids[c.item.row] : 0;
    take_place(c, side, lane);
}

template <bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void take_blocks(struct coming &c, const struct step_view &v, const struct live_side &side,
                                                   const struct work &work, uint32_t lane) {
    c.factor = 1, c.block = 0;
    if (LEARNED && c.real && row_has_bit(work.frozen, c.id)) c.real = false, c.item.count = 0;
    if (OF != SUM_TARGETS || lane >= c.item.count) return;
    c.block = side.block_of[c.occurrence]; /* every block has one target, so the numbers of block and target are the same */
    c.factor = v.coefficients[c.occurrence];
}

template <bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void take_targets(struct coming &c, const struct step_view &v, const struct work &work, uint32_t lane) {
    c.target = c.target_id = 0;
    if (OF != SUM_TARGETS || lane >= c.item.count || (LEARNED && work.pooled)) return;
    c.target_id = v.target.rows.ids[c.block];
    c.target = v.target.rows.distinct[c.block] & ~SINGLE_BIT;
}

/* Returns the address of the row that this lane has looked up as a summand. */
template <bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ unsigned long long summand(const struct coming &c, const struct step_view &v,
                                                             const struct work &work, uint32_t cold_first) {
    if (OF == SUM_BUFFER) return (unsigned long long)(uintptr_t)(work.buffer + c.occurrence * v.span);
    if (LEARNED && work.pooled) return (unsigned long long)(uintptr_t)(work.pooled + c.block * v.span);
    return (unsigned long long)(uintptr_t)live_row(v.target.weights, c.target_id, c.target, cold_first);
}

/* Prefetches the record of the item's row into the GPU's cache; it is used one or two items later. */
template <int G>
static __device__ __forceinline__ void ask_for_row(const struct coming &c, const struct step_view &v,
                                                   const struct live_side &side, uint32_t cold_first) {
    if (!c.real || c.item.partial != DRAW_NONE) return;
    ask_for_lines<G>(live_row(side.weights, c.id, c.item.row, cold_first), v.weights_bytes);
    ask_for_lines<G>(live_row(side.state, c.id, c.item.row, cold_first), v.state_bytes);
}

/* Sums a work item's summands in order, with U rows in flight at once; `c` has the first summands looked up. A warp does as many rounds as the
 * longest item of its groups needs. Thread tid sums chunks tid, tid + G .. of the row. */
template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void sum_item(float4 (&sum)[VEC], const struct step_view &v, const struct live_side &side,
                                                 const struct work &work, struct coming &c, uint32_t tid) {
    constexpr int MOST = VEC > 1 ? 2 : 4; /* most items have two summands, so registers are better used for several items at once */
    constexpr int U = rows_at_once(4 * VEC, REGISTERS) < MOST ? rows_at_once(4 * VEC, REGISTERS) : MOST;
    constexpr uint32_t LANES = lanes_of<G>();
    uint32_t lane = threadIdx.x % LANES, count = c.item.count, most = most_beside<LANES>(count);
    uint32_t cold_first = v.counts->cold_first[SIDE_TARGET];
    clear_row<VEC>(sum);
    for (uint32_t base = 0; base < most; base += LANES) {
        uint32_t here = base < count ? min(count - base, LANES) : 0, rounds = min(most - base, LANES);
        if (base) {
            take_place(c, side, base + lane);
            take_blocks<LEARNED, OF>(c, v, side, work, base + lane);
            take_targets<LEARNED, OF>(c, v, work, base + lane);
        }
        unsigned long long found = summand<LEARNED, OF>(c, v, work, cold_first);
        /* stored: the summands have the format F of the table's rows. Working memory is float32: if F is float32, both have the same format. */
        bool stored = F::QUADS == 1 || (OF == SUM_TARGETS && !(LEARNED && work.pooled));
        for (uint32_t i = 0; i < rounds; i += U)
            if (stored) add_found<F, G, VEC, U, char>(sum, found, c.factor, i, here, tid, v.quads);
            else add_found<F, G, VEC, U, float>(sum, found, c.factor, i, here, tid, v.quads);
    }
}

/* Returns the factor of the row itself in its gradient: the sum of the factors of the item's places. */
template <int G> static __device__ __forceinline__ float own_factor(const struct live_side &side, const struct work &work, const struct item &item) {
    constexpr uint32_t LANES = lanes_of<G>();
    float own = 0;
    for (uint32_t i = threadIdx.x % LANES; i < item.count; i += LANES) own += work.own[side.rows.order[item.first + i]];
    for (int width = LANES / 2; width; width /= 2) own += __shfl_xor_sync(ALL_LANES, own, width);
    return own;
}

template <class F, int G, int VEC>
static __device__ __forceinline__ void add_own(float4 (&sum)[VEC], const struct step_view &v, const struct live_side &side,
                                               const struct work &work, const struct item &item, const char *weights) {
    float own = own_factor<G>(side, work, item);
    float4 row[VEC];
    if (!item.count) return; /* another group of the warp has a work item, but not this one */
    read_row<F, G, VEC>(row, weights, threadIdx.x % G, v.quads);
    add_row<VEC>(sum, own, row);
}

/* Returns the exchange's slot for the squares of a row's gradient: that of the row's first place in the batch. */
static __device__ __forceinline__ uint64_t squares_of(const struct live_side &side, const struct work &work, uint32_t row) {
    return work.squares_slot + side.rows.order[side.rows.distinct_starts[row]];
}

/* Posts the squares of a row's gradient over this rank's columns, and stores them for finish_rows, which collects the sum. */
static __device__ __forceinline__ void post_squares(const struct step_view &v, const struct live_side &side,
                                                    const struct work &work, uint32_t row, float squares) {
    uint64_t slot = squares_of(side, work, row);
    exchange_post(v.exchange, slot, squares);
    exchange_keep(v.exchange, slot, squares);
}

/* Returns true if the row's whole gradient must be stored for finish_rows, which needs its squared norm over all ranks, instead of being used now. */
static __device__ __forceinline__ bool is_kept(const struct live_side &side, const struct work &work, const struct item &item) {
    return work.row_sums && item.partial == DRAW_NONE && side.rows.distinct_starts[item.row + 1] - side.rows.distinct_starts[item.row] > 1;
}

/* ---- records without state ---- */

/* Updates the row by a work item's sum, or stores the sum. All threads of a warp must call it. real: the group has an item; w: the weights of its
 * row, needed if the row is updated. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void end_sum(bool real, const struct item &item, float4 (&sum)[VEC], float4 (&w)[VEC], char *weights,
                                               const struct step_view &v, const struct live_side &side, const struct work &work, uint32_t id) {
    uint32_t tid = threadIdx.x % G;
    float squares = sum_squares<G, VEC>(sum, v);
    if (!real) return;
    if (is_kept(side, work, item)) {
        write_row<F, G, VEC>(sum, work.row_sums + item.row * v.span, tid, v.quads);
        if (tid == 0) post_squares(v, side, work, item.row, squares);
    } else if (item.partial != DRAW_NONE) {
        write_row<F, G, VEC>(sum, work.partials + item.partial * v.span, tid, v.quads);
    } else {
        scale_row<VEC>(sum, share_of_row(v, side.rows.distinct_starts, item.row, squares));
        struct held_state<VEC, 0> none;
        update_held<F, G, VEC, 0>(none, sum, w, weights, NULL, tid, v, {id, work.side});
    }
}

/* Sums a work item's summands; then updates its row, or stores the sum if the row has several items. */
template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void work_off(struct coming &c, const struct step_view &v, const struct live_side &side,
                                                const struct work &work, uint32_t cold_first) {
    uint32_t tid = threadIdx.x % G;
    if (G >= 32 && !c.real) return;
    const struct item item = c.item;
    char *weights = live_row(side.weights, c.id, item.row, cold_first);
    float4 w[VEC], sum[VEC];
    if (c.real && item.partial == DRAW_NONE) read_row<F, G, VEC>(w, weights, tid, v.quads);
    sum_item<F, G, VEC, LEARNED, OF>(sum, v, side, work, c, tid);
    if (LEARNED && work.own) add_own<F, G, VEC>(sum, v, side, work, item, weights);
    end_sum<F, G, VEC>(c.real, item, sum, w, weights, v, side, work, c.id);
}

/* ---- any record ---- */

/* Does the same as end_sum(), also for records with state. gained(chunk) computes the sum, B quads of a thread at a time. */
template <class F, int G, int B, typename Gained>
static __device__ __forceinline__ void end_columns(bool real, const struct item &item, char *weights, char *state, uint32_t id,
                                                   const struct step_view &v, const struct live_side &side, const struct work &work, Gained gained) {
    bool kept = real && is_kept(side, work, item);
    struct item_end to = {side.rows.distinct_starts, work.partials, kept ? work.row_sums + item.row * v.span : NULL};
    float squares = end_item<F, G, B>(real, item, weights, state, {id, work.side}, to, v, gained);
    if (kept && threadIdx.x % G == 0) post_squares(v, side, work, item.row, squares);
}

template <class F, int G, int B, bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void work_off_any(struct coming &c, const struct step_view &v, const struct live_side &side,
                                                      const struct work &work, uint32_t cold_first) {
    if (G >= 32 && !c.real) return;
    const struct item item = c.item;
    char *weights = live_row(side.weights, c.id, item.row, cold_first);
    char *state = live_row(side.state, c.id, item.row, cold_first);
    float own = LEARNED && work.own ? own_factor<G>(side, work, item) : 0;
    end_columns<F, G, B>(c.real, item, weights, state, c.id, v, side, work, [&](uint32_t chunk, float4(&sum)[B]) {
        sum_item<F, G, B, LEARNED, OF>(sum, v, side, work, c, chunk);
        if (!LEARNED || !work.own || !item.count) return;
        float4 row[B];
        read_row<F, G, B>(row, weights, chunk, v.quads);
        add_row<B>(sum, own, row);
    });
}

/* ---- work items in their turn ---- */

/* Returns how many thread blocks must fit on a multiprocessor: more for kernels that only look up rows and add them, since these need few
 * registers. */
static constexpr int resident_sums(int vec, enum sum_of of) {
    return vec > 6 ? 1 : vec <= 2 && of == SUM_BUFFER ? 6 : 4;
}

/* Works on the work items of the thread's group one after the other; looks up later items meanwhile. */
template <int G, bool LEARNED, enum sum_of OF, typename Work>
static __device__ __forceinline__ void each_item(const struct step_view &v, const struct works &works, Work work_on) {
    constexpr uint32_t GROUPS = CTA / G;
    constexpr int AHEAD = OF == SUM_TARGETS ? 4 : 3;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t lane = threadIdx.x % lanes_of<G>(), count = *work.count, cold_first = v.counts->cold_first[work.side];
    uint32_t first = blockIdx.x * GROUPS, step = gridDim.x * GROUPS, at = first + threadIdx.x / G;
    struct coming coming[AHEAD]; /* the next items, each looked up one read further than the one after it: item; row and places; blocks; targets */
#pragma unroll
    for (int i = AHEAD - 1; i >= 0; i--) {
        take_item(coming[i], work, at, count);
        if (i >= 1) take_row_and_place(coming[i], side, lane);
        if (i >= 2) take_blocks<LEARNED, OF>(coming[i], v, side, work, lane);
        if (i >= 3) take_targets<LEARNED, OF>(coming[i], v, work, lane);
        at += step;
    }
    for (; first + first_of_warp<G>() < count; first += step, at += step) {
        struct coming now = coming[AHEAD - 1];
#pragma unroll
        for (int i = AHEAD - 1; i > 0; i--) coming[i] = coming[i - 1];
        if (AHEAD > 3) take_targets<LEARNED, OF>(coming[AHEAD - 1], v, work, lane);
        take_blocks<LEARNED, OF>(coming[2], v, side, work, lane);
        take_row_and_place(coming[1], side, lane);
        take_item(coming[0], work, at, count);
        ask_for_row<G>(coming[2], v, side, cold_first);
        work_on(now, side, work, cold_first);
    }
}

template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __global__ void __launch_bounds__(CTA, resident_sums(VEC, OF))
    accumulate(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    each_item<G, LEARNED, OF>(v, works, [&](struct coming &c, const struct live_side &side, const struct work &work, uint32_t cold) {
        work_off<F, G, VEC, LEARNED, OF>(c, v, side, work, cold);
    });
}

template <class F, int G, int B, bool LEARNED, enum sum_of OF>
static __global__ void __launch_bounds__(CTA, B > 2 ? 3 : 4)
    accumulate_any(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    each_item<G, LEARNED, OF>(v, works, [&](struct coming &c, const struct live_side &side, const struct work &work, uint32_t cold) {
        work_off_any<F, G, B, LEARNED, OF>(c, v, side, work, cold);
    });
}

/* ---- rows of several work items ---- */

/* Returns the sum of a row's partial sums. Each group of a warp adds one share; then every group gets the whole sum. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void add_shares(float4 (&sum)[VEC], const float *partials, uint32_t count, uint32_t tid,
                                                  const struct step_view &v) {
    constexpr uint32_t BESIDE = 32 / lanes_of<G>();
    clear_row<VEC>(sum);
    for (uint32_t share = threadIdx.x % 32 / lanes_of<G>(); share < PARTIAL_SHARES; share += BESIDE) {
        float4 part[VEC];
        add_share<F, G, VEC>(part, partials, share, count, tid, v);
#pragma unroll
        for (uint32_t i = 0; i < BESIDE; i++)
#pragma unroll
            for (int k = 0; k < VEC; k++) {
                int from = i * lanes_of<G>() + threadIdx.x % lanes_of<G>();
                sum[k].x += __shfl_sync(ALL_LANES, part[k].x, from), sum[k].y += __shfl_sync(ALL_LANES, part[k].y, from);
                sum[k].z += __shfl_sync(ALL_LANES, part[k].z, from), sum[k].w += __shfl_sync(ALL_LANES, part[k].w, from);
            }
    }
}

/* Works on the rows that have several work items, with a warp (or more threads) for each row. first: true for the group that uses the row's sum. */
template <int G, typename Work>
static __device__ __forceinline__ void take_longs(const struct step_view &v, const struct works &works, Work work_row) {
    constexpr uint32_t WIDTH = G < 32 ? 32 : G, ROWS = CTA / WIDTH;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t count = *work.count, cold_first = v.counts->cold_first[work.side];
    bool first = threadIdx.x % WIDTH < G;
    for (uint32_t at = blockIdx.x * ROWS + threadIdx.x / WIDTH; at < count; at += gridDim.x * ROWS) {
        const struct item item = work.items[at];
        uint32_t id = side.rows.distinct_ids[item.row];
        if (row_has_bit(work.frozen, id)) continue;
        work_row(item, id, live_row(side.weights, id, item.row, cold_first), live_row(side.state, id, item.row, cold_first), first, side, work);
    }
}

template <class F, int G, int VEC>
static __global__ void __launch_bounds__(CTA)
    add_partials(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    take_longs<G>(v, works, [&](const struct item &item, uint32_t id, char *weights, char *, bool first,
                                const struct live_side &side, const struct work &work) {
        uint32_t tid = threadIdx.x % G;
        float4 w[VEC], sum[VEC];
        if (first) read_row<F, G, VEC>(w, weights, tid, v.quads);
        add_shares<F, G, VEC>(sum, work.partials + item.first * v.span, item.count, tid, v);
        end_sum<F, G, VEC>(first, item, sum, w, weights, v, side, work, id);
    });
}

template <class F, int G, int B>
static __global__ void __launch_bounds__(CTA)
    add_partials_any(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    take_longs<G>(v, works, [&](const struct item &item, uint32_t id, char *weights, char *state, bool first,
                                const struct live_side &side, const struct work &work) {
        end_columns<F, G, B>(first, item, weights, state, id, v, side, work, [&](uint32_t chunk, float4(&sum)[B]) {
            add_shares<F, G, B>(sum, work.partials + item.first * v.span, item.count, chunk, v);
        });
    });
}

/* ---- which kernels ---- */

typedef void sum_kernel(const struct step_view, const struct works);
struct sum_kernels {
    sum_kernel *accumulate[2], *add_partials; /* accumulate: by sum_of */
};
template <class F, int G, int VEC, bool LEARNED> static struct sum_kernels sum_kernels_plain(void) {
    return {{accumulate<F, G, VEC, LEARNED, SUM_TARGETS>, accumulate<F, G, VEC, LEARNED, SUM_BUFFER>}, add_partials<F, G, VEC>};
}
template <class F, int G, int B, bool LEARNED> static struct sum_kernels sum_kernels_any(void) {
    return {{accumulate_any<F, G, B, LEARNED, SUM_TARGETS>, accumulate_any<F, G, B, LEARNED, SUM_BUFFER>}, add_partials_any<F, G, B>};
}

/* Updates the rows whose gradients were stored: clips each gradient by its norm, which is known now over all ranks' columns, and applies the
 * optimizer's rule. One kernel serves all rules. */
template <class F, int G>
static __global__ void __launch_bounds__(CTA) finish_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    constexpr uint32_t GROUPS = CTA / G, LANES = lanes_of<G>();
    constexpr int B = F::QUADS;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t tid = threadIdx.x % G, count = *work.count, cold_first = v.counts->cold_first[work.side];
    for (uint32_t first = blockIdx.x * GROUPS; first + first_of_warp<G>() < count; first += gridDim.x * GROUPS) {
        uint32_t at = first + threadIdx.x / G, row = at < count ? at : first; /* a group without a row computes row `first` again, and writes
                                                                               * nothing */
        uint32_t places = side.rows.distinct_starts[row + 1] - side.rows.distinct_starts[row];
        uint32_t id = side.rows.distinct_ids[row];
        bool real = at < count && places > 1 && !row_has_bit(work.frozen, id); /* only these rows' squares were posted: rows with several places
                                                                                * that are not frozen */
        if (G >= 32 && !real) continue;
        char *weights = live_row(side.weights, id, row, cold_first), *state = live_row(side.state, id, row, cold_first);
        const float *sum = work.row_sums + row * v.span;
        uint32_t updates = real ? read_updates(v, state) : 0;
        __syncwarp(); /* waits until all threads have read the row's count of updates */
        uint64_t slot = real ? squares_of(side, work, row) : 0;
        float all = real && tid % LANES == 0 ? exchange_collect(v.exchange, slot, exchange_kept(v.exchange, slot)) : 0;
        all = __shfl_sync(ALL_LANES, all, 0, LANES);
        if (!real) continue;
        float share = rule_share(v.rule.constants.clip, places, all);
#pragma unroll 1
        for (uint32_t chunk = tid; chunk - tid < v.quads / F::QUADS; chunk += G * B / F::QUADS) {
            struct stored_record<F, B> record;
            float4 g[B];
            read_record<F, G, B>(record, weights, state, chunk, v);
            read_row<F, G, B>(g, sum, chunk, v.quads);
            scale_row<B>(g, share);
            change_stored<F, G, B>(record, g, weights, state, updates, 0, chunk, v, {id, work.side}); /* ranks share out no rule by row */
        }
        write_updates(v, state, updates + 1, tid);
    }
}

/* ---- the result ---- */

struct result_view {
    const double *losses;
    const struct batch_counts *counts;
    int one_vector;         /* 1: one loss for each block; 0: for each target or, with shared negatives, for each example */
    uint64_t cold_bytes[2]; /* [side] bytes of the record of a cold row */
    int written;            /* 1: cold rows are copied back */
    uint64_t words;
    uint32_t shared; /* number of negatives that all examples share */
    struct step_result *to;
};

static __global__ void __launch_bounds__(1024) tell_result(struct result_view r) {
    __shared__ double sums[32];
    double sum = 0;
    uint32_t blocks = r.counts->blocks, count = r.one_vector ? blocks : !r.shared ? r.counts->targets : blocks ? blocks - 1 : 0;
    for (uint32_t i = threadIdx.x; i < count; i += 1024) sum += r.losses[i];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(sums[threadIdx.x]);
    if (threadIdx.x) return;
    struct step_result result;
    result.loss = sum;
    result.examples = r.shared ? count : r.counts->blocks;
    result.pairs = r.counts->pairs;
    result.terms = r.counts->terms - r.counts->empty_terms + (uint64_t)r.shared * count;
    result.words = r.words + r.counts->walked;
    result.link_bytes = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t cold = r.counts->distinct[side] - r.counts->cold_first[side];
        result.link_bytes += r.cold_bytes[side] * (cold - r.counts->forwarded[side] + (r.written ? cold : 0));
    }
    *r.to = result;
    __threadfence_system();
}

/* ---- launching ---- */

struct sums {
    struct sum_kernels of;
    uint32_t group; /* number of threads that work on one row */
};

constexpr uint32_t PLAIN_HALVES = 128; /* widest row of bfloat16, in quads (of four columns), for the special kernels. For wider rows the kernels
                                        * for any record are a third faster */

template <class F, bool LEARNED> struct plain_sums {
    template <int G, int VEC, bool> struct family {
        static struct sums get(void) {
            if constexpr (F::QUADS > 1 && G * VEC > PLAIN_HALVES) return {};
            else return {sum_kernels_plain<F, G, VEC, LEARNED>(), G};
        }
    };
};

/* Chooses, by the width of a row, the kernels for records with the state of any rule. */
template <class F, bool LEARNED> static struct sums sums_of_any(uint32_t chunks) {
    constexpr int Q = F::QUADS;
    if (chunks <= 8) return {sum_kernels_any<F, 8, Q, LEARNED>(), 8};
    if (chunks <= 16) return {sum_kernels_any<F, 16, Q, LEARNED>(), 16};
    if constexpr (Q == 1) {
        if (chunks > 64) return {sum_kernels_any<F, 32, 4, LEARNED>(), 32};
        if (chunks > 32) return {sum_kernels_any<F, 32, 2, LEARNED>(), 32};
    }
    return {sum_kernels_any<F, 32, Q, LEARNED>(), 32};
}

/* Chooses the kernels. Records without state have their own, since the kernels for any record made sums for text 20% slower. Of float32 kernels
 * there are versions with and without LEARNED, which makes records with state 6 to 9% slower. For bfloat16 fewer kernels are compiled: those for
 * any record have LEARNED. */
static struct sums sums_for(const struct record_layout *layout, bool learned) {
    uint32_t quads = record_quads(layout), chunks = quads / bfloat16_rows::QUADS;
    if (has_halves(layout)) {
        if (learned || layout->slots || quads > PLAIN_HALVES) return sums_of_any<bfloat16_rows, true>(chunks);
        return kernels_for_narrow_halves<plain_sums<bfloat16_rows, false>::family>(quads, false);
    }
    if (layout->slots) return learned ? sums_of_any<float32_rows, true>(quads) : sums_of_any<float32_rows, false>(quads);
    if (learned) return kernels_for_few<plain_sums<float32_rows, true>::family>(quads, false);
    return kernels_for_narrow<plain_sums<float32_rows, false>::family>(quads, false);
}

static struct live_part live_part_of(const struct row_set *set, int part, uint64_t offset) {
    const struct store *store = &set->table->stores[part];
    struct live_part live;
    live.resident = store->gpu + offset;
    live.slots = (char *)set->slots[part].data + offset;
    live.stride = store->stride;
    live.hot_rows = store->gpu_rows;
    return live;
}

static struct live_side live_side_of(const struct stage *stage, int side) {
    const struct row_set *set = &stage->side[side];
    struct live_side live;
    live.rows = row_set_view(set);
    live.block_of = (const uint32_t *)stage->block_of[side].data;
    live.side = side;
    live.weights = live_part_of(set, 0, 0);
    live.state = live_part_of(set, set->table->shared ? 0 : 1, set->table->state_offset);
    return live;
}

static int check_tables(const struct step_request *r) {
    const struct record_layout *t = &r->target->spec.layout, *c = &r->context->spec.layout;
    struct rule_slot slots[RULE_SLOTS];
    if (t->dim != c->dim || t->span != c->span || t->slots != c->slots || t->counted != c->counted || t->by_row != c->by_row ||
        t->field[RECORD_WEIGHTS].type != c->field[RECORD_WEIGHTS].type || state_halves(t) != state_halves(c))
        return fail("the target and context tables have different records");
    if (!r->loss_only && (uint32_t)rule_slots(r->rule, slots) != t->slots)
        return fail("the rule has %d slots and the tables have %u", rule_slots(r->rule, slots), t->slots);
    if (!r->loss_only && RULE_BY_ROW(r->rule->rule) != (int)t->by_row) return fail("the rule and the tables differ in whether a row has one sum");
    if (t->span % 4) return fail("rows of %u floats are not whole 16 bytes", t->span);
    if (t->dim < 1 || t->dim > COLUMNS_MOST) return fail("model.dim %u is not in 1..%d", t->dim, (int)COLUMNS_MOST);
    return 0;
}

static __global__ void fill_corrections(struct rule_options rule, double lr, struct corrections *to) {
    uint32_t updates = blockIdx.x * blockDim.x + threadIdx.x;
    if (updates == 0) {
        to->rule = rule;
        to->lr = lr;
    }
    if (updates >= CORRECTIONS) return;
    struct rule_step k = rule_prepare(&rule, lr, updates);
    to->by_updates[updates] = make_float4(k.lr, k.a, k.correction, 0);
}

/* Computes the rule's constants for each number of updates of a row, if the rule or the learning rate has changed. */
static int prepare_corrections(struct backend *b, const struct rule_options *rule, double lr, cudaStream_t stream) {
    static_assert(sizeof(struct corrections) <= CORRECTIONS_BYTES, "arrays.h gives it less capacity");
    if (gpu_grow(b, &b->corrections, CORRECTIONS_BYTES, "bias corrections")) return -1;
    if (b->corrections_ready && b->corrections_lr == lr && !memcmp(&b->corrections_rule, rule, sizeof *rule)) return 0;
    fill_corrections<<<CORRECTIONS / CTA, CTA, 0, stream>>>(*rule, lr, (struct corrections *)b->corrections.data);
    CK_LAUNCH("fill_corrections");
    b->corrections_rule = *rule;
    b->corrections_lr = lr;
    b->corrections_ready = 1;
    return 0;
}

int cuda_prepare_rule(struct backend *b, const struct rule_options *rule, double lr, uint64_t updates,
                      const struct record_layout *layout, cudaStream_t stream, struct rule_view *view) {
    struct rule_slot slots[RULE_SLOTS];
    view->constants = rule_prepare(rule, lr, updates);
    view->by_row = layout->by_row;
    view->slots = (uint32_t)rule_slots(rule, slots) - layout->by_row;
    view->rule = view->by_row && !view->slots ? RULE_SGD : rule->rule;
    view->row_at = view->by_row ? (uint32_t)record_slot(layout, view->slots)->offset : DRAW_NONE;
    view->count_at = layout->counted ? (uint32_t)record_updates(layout)->offset : DRAW_NONE;
    for (uint32_t &slot : view->slot_at) slot = DRAW_NONE;
    for (uint32_t &slot : view->slot_number) slot = 0;
    view->halves = state_halves(layout);
    for (uint32_t i = 0; i < view->slots; i++) {
        view->slot_number[slots[i].role] = i;
        view->slot_at[slots[i].role] = (uint32_t)record_slot(layout, i)->offset;
    }
    view->corrections = NULL;
    if (!layout->counted) return 0;
    if (prepare_corrections(b, rule, lr, stream)) return -1;
    view->corrections = (const struct corrections *)b->corrections.data;
    return 0;
}

static int grow_buffers(struct backend *b, const struct stage *stage, const struct step_request *request) {
    const struct batch_sizes *capacity = &stage->capacity;
    uint64_t span = request->target->spec.layout.span;
    struct sum_bytes bytes = sum_bytes(capacity->targets, capacity->contexts, span, stage->one_vector);
    int norms = b->exchange && !request->loss_only && request->rule->clip > 0;
    if (norms && gpu_grow(b, &b->row_sums, row_sum_bytes(capacity->targets, capacity->contexts, span), "a batch's sums")) return -1;
    return gpu_grow(b, &b->gradients, bytes.gradients, "a batch's gradients") ||
                   gpu_grow(b, &b->partials, bytes.partials, "a batch's partial sums") ||
                   gpu_grow(b, &b->context_gradients, bytes.context_gradients, "a batch's gradients")
               ? -1
               : 0;
}

static int fill_view(struct backend *b, const struct stage *stage, const struct step_request *request, struct step_view *v) {
    const struct record_layout *layout = &request->target->spec.layout;
    memset(v, 0, sizeof *v);
    v->target = live_side_of(stage, SIDE_TARGET);
    v->context = live_side_of(stage, SIDE_CONTEXT);
    if (!request->loss_only && cuda_prepare_rule(b, request->rule, request->lr, request->global_step, layout, b->compute, &v->rule)) return -1;
    v->counts = stage->counts;
    v->target_starts = (const uint32_t *)stage->target_starts.data;
    v->context_starts = (const uint32_t *)stage->context_starts.data;
    v->term_starts = (const uint32_t *)stage->term_starts.data;
    v->positives = (const uint32_t *)stage->positives.data;
    v->coefficients = (float *)stage->coefficients.data;
    v->target_gradients = (float *)b->gradients.data;
    v->context_gradients = (float *)b->context_gradients.data;
    v->losses = (double *)stage->losses.data;
    v->quads = record_quads(layout);
    v->weights_bytes = (uint32_t)record_weights_bytes(layout);
    v->state_bytes = (uint32_t)record_state_bytes(layout);
    v->dim = layout->dim;
    v->span = layout->span;
    v->halves = has_halves(layout);
    v->rounding[SIDE_TARGET] = keys_of_step(&request->target->spec.rounding, DRAW_ROUND_WEIGHTS, request->global_step);
    v->rounding[SIDE_CONTEXT] = keys_of_step(&request->context->spec.rounding, DRAW_ROUND_WEIGHTS, request->global_step);
    v->mean = request->mean;
    v->loss_only = request->loss_only;
    v->parts = 1;
    return 0;
}

/* Work on one side or on both. most: upper bound of the number of work items of a side. */
struct sides {
    struct works works;
    uint32_t count, most[2];
};

static void add_side(struct sides *to, const struct work *work, uint32_t most) {
    to->works.of[to->count] = *work;
    to->most[to->count++] = most;
}

/* Launches a kernel over the rows, or the work items, of one side (targets or contexts) or both. *work->count, on the GPU, is their number. */
static int launch_sides(struct backend *b, sum_kernel *kernel, uint32_t group, const struct step_view *v, const struct sides *sides) {
    uint32_t most = 0, widest = 16 * (uint32_t)b->processors;
    for (uint32_t i = 0; i < sides->count; i++)
        if (sides->most[i] > most) most = sides->most[i];
    if (!most) return 0;
    uint32_t grid = blocks_for(most, CTA / group);
    kernel<<<dim3(grid < widest ? grid : widest, sides->count), CTA, 0, b->compute>>>(*v, sides->works);
    CK_LAUNCH("accumulate");
    return 0;
}

static struct sides side_of(struct backend *b, const struct stage *stage, const struct step_view *v, const struct learn_view *l, int side) {
    const struct batch_sizes *sizes = &stage->sizes, *capacity = &stage->capacity;
    int behind = side == SIDE_CONTEXT, norms = has_parts(v) && v->rule.constants.clip > 0;
    struct sides alone;
    struct work work;
    memset(&alone, 0, sizeof alone);
    memset(&work, 0, sizeof work);
    work.items = (behind ? &v->context : &v->target)->rows.items;
    work.count = &stage->counts->items[side];
    work.buffer = behind ? v->context_gradients : v->target_gradients;
    work.side = side;
    work.partials = (float *)b->partials.data + (behind ? most_partials(capacity->targets) * v->span : 0);
    work.row_sums = norms ? (float *)b->row_sums.data + (behind ? capacity->targets * v->span : 0) : NULL;
    work.squares_slot = capacity->terms + (behind ? capacity->targets : 0);
    work.frozen = l->frozen[side];
    if (behind && stage->one_vector) { /* contexts are sums of coefficient x target */
        work.pooled = l->pooled;
        work.own = l->lengths[SIDE_CONTEXT];
    }
    add_side(&alone, &work, behind ? sizes->contexts : sizes->targets);
    return alone;
}

/* Launches the kernel for the work items, then the one for rows that have several work items. */
static int launch_sums(struct backend *b, const struct stage *stage, const struct sums *k, const struct step_view *v,
                       const struct sides *items, enum sum_of of) {
    struct sides longs;
    memset(&longs, 0, sizeof longs);
    for (uint32_t i = 0; i < items->count; i++) {
        struct work work = items->works.of[i];
        work.items = (work.side == SIDE_TARGET ? &v->target : &v->context)->rows.longs;
        work.count = &stage->counts->longs[work.side];
        if (items->most[i] > ITEM_MOST) add_side(&longs, &work, items->most[i] / ITEM_MOST + 1);
    }
    uint32_t threads = k->group < 32 ? 32 : k->group; /* threads that work on a row with several work items */
    if (launch_sides(b, k->of.accumulate[of], k->group, v, items)) return -1;
    return launch_sides(b, k->of.add_partials, threads, v, &longs);
}

template <class F> static sum_kernel *finish_of(uint32_t group) {
    return group == 8 ? finish_rows<F, 8> : group == 16 ? finish_rows<F, 16> : finish_rows<F, 32>;
}

/* Sums the squares that were posted over ranks, and updates the rows to which they belong. */
static int finish(struct backend *b, const struct stage *stage, const struct step_view *v, struct sides sides) {
    uint64_t first = stage->capacity.terms, squares = (uint64_t)stage->capacity.targets + stage->sizes.contexts;
    if (!exchange_is_near(b->exchange) && exchange_sum(b, first, squares)) return -1;
    for (uint32_t i = 0; i < sides.count; i++) sides.works.of[i].count = &stage->counts->distinct[sides.works.of[i].side];
    uint32_t chunks = v->halves ? v->quads / bfloat16_rows::QUADS : v->quads, group = chunks <= 8 ? 8 : chunks <= 16 ? 16 : 32;
    return launch_sides(b, v->halves ? finish_of<bfloat16_rows>(group) : finish_of<float32_rows>(group), group, v, &sides);
}

/* Enqueues the second half of a step: sums each row's gradient, and updates the row. If blocks have one vector, contexts read the old targets, so
 * contexts are updated first; otherwise both sides are updated together. With several ranks, the squares of both sides are posted before any are
 * collected. */
static int launch_rows(struct backend *b, const struct stage *stage, const struct sums *k, const struct step_view *v, const struct learn_view *l) {
    struct sides contexts = side_of(b, stage, v, l, SIDE_CONTEXT), targets = side_of(b, stage, v, l, SIDE_TARGET);
    struct sides both = contexts;
    add_side(&both, &targets.works.of[0], targets.most[0]);
    if (!stage->one_vector) {
        if (launch_sums(b, stage, k, v, &both, SUM_BUFFER)) return -1;
    } else {
        if (launch_sums(b, stage, k, v, &contexts, SUM_TARGETS) || launch_sums(b, stage, k, v, &targets, SUM_BUFFER)) return -1;
    }
    return both.works.of[0].row_sums ? finish(b, stage, v, both) : 0;
}

int cuda_launch_step(struct backend *b, struct stage *stage, const struct step_request *request) {
    const struct batch_sizes *sizes = &stage->sizes;
    const struct record_layout *layout = &request->target->spec.layout;
    int learned = learn_is_wanted(stage, request), shared = stage->shared.count > 0, parted = b->exchange && !request->apart;
    struct sums k = sums_for(layout, learned);
    struct step_view v;
    struct learn_view l;
    memset(&l, 0, sizeof l);
    if (check_tables(request)) return -1;
    if (layout->by_row && stage->early_singles) return fail("the batch was made before the tables were opened");
    if (!sizes->blocks) return 0;
    if (grow_buffers(b, stage, request) || fill_view(b, stage, request, &v)) return -1;
    uint64_t slots = exchange_slots(stage->capacity.targets, stage->capacity.contexts, stage->capacity.terms, request->loss.score == SCORE_COSINE);
    if (parted && !shared && exchange_begin(b, slots, &v.exchange)) return -1;
    /* first half, from old rows: by matrix products, by the passes of step_learn.cuh, or by the kernels of step_dots.cu */
    if (shared ? shared_launch(b, stage, request, &v, &l) : learned ? learn_launch(b, stage, request, &v, &l) : cuda_launch_dots(b, stage, &v))
        return -1;
    if (request->loss_only) return 0;
    /* shared_launch() has summed all scores; only squared norms are still exchanged */
    if (parted && shared && request->rule->clip > 0 && (exchange_begin(b, slots, &v.exchange) || exchange_meet(b, &v.exchange))) return -1;
    return launch_rows(b, stage, &k, &v, &l);
}

static uint64_t cold_bytes(const struct backend_table *table) {
    uint64_t bytes = 0;
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) bytes += table->stores[i].stride;
    return bytes;
}

int cuda_launch_result(struct backend *b, struct stage *stage, const struct step_request *request) {
    struct result_view r;
    memset(&r, 0, sizeof r);
    r.losses = (const double *)stage->losses.data;
    r.counts = stage->counts;
    r.one_vector = stage->one_vector;
    r.cold_bytes[SIDE_TARGET] = cold_bytes(request->target);
    r.cold_bytes[SIDE_CONTEXT] = cold_bytes(request->context);
    r.written = !request->loss_only;
    r.words = stage->words;
    r.shared = stage->shared.count;
    r.to = stage->result;
    tell_result<<<1, 1024, 0, b->out>>>(r);
    CK_LAUNCH("tell_result");
    return 0;
}
