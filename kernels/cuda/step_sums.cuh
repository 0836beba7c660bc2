/* step_sums: the second half of a step: each distinct row's gradient, summed over its places in the batch, and its update. Most
 * rows are one piece of work, for a group of threads (accumulate). A row with many places is divided into pieces with partial sums,
 * which add_partials adds. step.cu launches both.
 *
 *   accumulate         records without state: a row's sum is in registers; a warp works on several rows
 *   accumulate_any     records of any rule and width: B quads of a thread at a time (step_rule.cuh: end_piece)
 *
 * LEARNED: for steps with the passes of step_learn.cuh: vectors may be pooled, rows have a factor in their own gradient if scores
 * are cosines, and rows may be frozen. Kernels without LEARNED are compiled without all of this.
 */
#ifndef SPTX_CUDA_STEP_SUMS_CUH
#define SPTX_CUDA_STEP_SUMS_CUH

#include "step_rule.cuh"

/* The summands of a side's gradients: coefficient x target row (SUM_TARGETS), or rows of a buffer (SUM_BUFFER). */
enum sum_of { SUM_TARGETS, SUM_BUFFER };

struct work {
    const struct item *items;
    const uint32_t *count;
    const float *buffer; /* SUM_BUFFER: rows of span floats, one for each place of the side */
    int side;
    float *partials;       /* partial sums, in rows of span floats */
    float *row_sums;       /* if squares are summed over ranks: [distinct rows x span] whole sums of rows; otherwise NULL */
    uint64_t squares_slot; /* slot of the exchange for place 0 of the side */
    const uint32_t *frozen; /* bit map of the side's frozen rows; NULL: no row is frozen. This field and the next two are used
                             * only with LEARNED */
    const float *pooled;    /* SUM_TARGETS: [blocks x span] pooled vectors, used instead of target rows; NULL: targets are not
                             * pooled */
    const float *own;       /* SUM_TARGETS: [places] factor of a place's row in its own gradient; NULL: rows are not in their own
                             * gradients */
};

/* The work of one launch: on one side, or on both sides if neither side reads rows that the other side changes. blockIdx.y is
 * the side's index in of[]. */
struct works {
    struct work of[2];
};

/* A piece of work, with the values that have been read for it so far. Finding its rows takes four reads (SUM_TARGETS) or two,
 * and each read needs the result of the one before; so they are made while earlier pieces are worked on. Each lane looks up one
 * of the piece's first summands. */
struct coming {
    struct item item;
    bool real;           /* true: the piece exists, and its row is not frozen */
    uint32_t id;         /* the id of the row whose gradient is summed */
    uint32_t occurrence; /* place in the batch of the lane's summand */
    uint32_t block;      /* SUM_TARGETS: the block that contains the lane's summand; target, target_id: that block's target */
    uint32_t target, target_id;
    float factor;
};

/* Reads piece number `at`; if at >= count, sets c.real to false. */
static __device__ __forceinline__ void take_item(struct coming &c, const struct work &work, uint32_t at, uint32_t count) {
    c.item = {0, 0, 0, DRAW_NONE};
    c.real = at < count;
    if (c.real) c.item = work.items[at];
}

/* Reads which place in the batch the lane's summand has. lane: the summand's number in the piece. */
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
    c.block = side.block_of[c.occurrence]; /* every block has one target, so the block's number is the target's occurrence */
    c.factor = v.coefficients[c.occurrence];
}

template <bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void take_targets(struct coming &c, const struct step_view &v, const struct work &work,
                                                    uint32_t lane) {
    c.target = c.target_id = 0;
    if (OF != SUM_TARGETS || lane >= c.item.count || (LEARNED && work.pooled)) return;
    c.target_id = v.target.rows.ids[c.block];
    c.target = v.target.rows.distinct[c.block] & ~SINGLE_BIT;
}

/* Returns the address of the row that the lane has looked up as a summand. */
template <bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ unsigned long long summand(const struct coming &c, const struct step_view &v,
                                                             const struct work &work, uint32_t cold_first) {
    if (OF == SUM_BUFFER) return (unsigned long long)(uintptr_t)(work.buffer + c.occurrence * v.span);
    if (LEARNED && work.pooled) return (unsigned long long)(uintptr_t)(work.pooled + c.block * v.span);
    return (unsigned long long)(uintptr_t)live_row(v.target.weights, c.target_id, c.target, cold_first);
}

/* Prefetches the record of the piece's row into the GPU's cache; it is used one or two pieces later. */
template <int G>
static __device__ __forceinline__ void ask_for_row(const struct coming &c, const struct step_view &v,
                                                   const struct live_side &side, uint32_t cold_first) {
    if (!c.real || c.item.partial != DRAW_NONE) return;
    ask_for_lines<G>(live_row(side.weights, c.id, c.item.row, cold_first), v.weights_bytes);
    ask_for_lines<G>(live_row(side.state, c.id, c.item.row, cold_first), v.state_bytes);
}

/* Sums a piece's summands in order, with U rows in flight at once. `c` has the first summands looked up. A warp takes as many
 * rounds as the longest of its groups' pieces needs. Each thread sums chunks tid, tid + G .. of the row. */
template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void sum_piece(float4 (&sum)[VEC], const struct step_view &v, const struct live_side &side,
                                                 const struct work &work, struct coming &c, uint32_t tid) {
    constexpr int MOST = VEC > 1 ? 2 : 4; /* most pieces have two summands, so the registers are better used for more pieces at
                                           * once */
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
        /* A float32 row of a table is stored as a row of working memory is, so one loop reads both. */
        bool stored = F::QUADS == 1 || (OF == SUM_TARGETS && !(LEARNED && work.pooled));
        for (uint32_t i = 0; i < rounds; i += U)
            if (stored) add_found<F, G, VEC, U, char>(sum, found, c.factor, i, here, tid, v.quads);
            else add_found<F, G, VEC, U, float>(sum, found, c.factor, i, here, tid, v.quads);
    }
}

/* Returns the factor of the old row itself in the piece's gradient: the sum of the factors of the piece's places. */
template <int G>
static __device__ __forceinline__ float own_factor(const struct live_side &side, const struct work &work, const struct item &item) {
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
    if (!item.count) return; /* this group has no piece, though another group of the warp has one */
    read_row<F, G, VEC>(row, weights, threadIdx.x % G, v.quads);
    add_row<VEC>(sum, own, row);
}

/* Returns the exchange's slot for the sum of squares of a row's gradient: the slot of the row's first place in the batch. */
static __device__ __forceinline__ uint64_t squares_of(const struct live_side &side, const struct work &work, uint32_t row) {
    return work.squares_slot + side.rows.order[side.rows.distinct_starts[row]];
}

/* Posts the squares of a row's gradient in this rank's columns, and stores them for finish_rows, which collects the sum. */
static __device__ __forceinline__ void post_squares(const struct step_view &v, const struct live_side &side,
                                                    const struct work &work, uint32_t row, float squares) {
    uint64_t slot = squares_of(side, work, row);
    exchange_post(v.exchange, slot, squares);
    exchange_keep(v.exchange, slot, squares);
}

/* Returns true if the whole gradient of the row is stored for finish_rows, which needs its squares summed over ranks, instead of
 * updating the row now. */
static __device__ __forceinline__ bool is_kept(const struct live_side &side, const struct work &work, const struct item &item) {
    return work.row_sums && item.partial == DRAW_NONE &&
           side.rows.distinct_starts[item.row + 1] - side.rows.distinct_starts[item.row] > 1;
}

/* ---- records without state ---- */

/* Updates the row by a piece's sum, or writes the sum to memory. All threads of a warp must call it. real: the group has a
 * piece; w: the weights of its row, needed if the row is updated. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void end_sum(bool real, const struct item &item, float4 (&sum)[VEC], float4 (&w)[VEC],
                                               char *weights, const struct step_view &v, const struct live_side &side,
                                               const struct work &work, uint32_t id) {
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

/* Sums a piece's summands; then updates its row, if the row has no other piece, or writes the sum to memory. */
template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __device__ __forceinline__ void work_off(struct coming &c, const struct step_view &v, const struct live_side &side,
                                                const struct work &work, uint32_t cold_first) {
    uint32_t tid = threadIdx.x % G;
    if (G >= 32 && !c.real) return;
    const struct item item = c.item;
    char *weights = live_row(side.weights, c.id, item.row, cold_first);
    float4 w[VEC], sum[VEC];
    if (c.real && item.partial == DRAW_NONE) read_row<F, G, VEC>(w, weights, tid, v.quads);
    sum_piece<F, G, VEC, LEARNED, OF>(sum, v, side, work, c, tid);
    if (LEARNED && work.own) add_own<F, G, VEC>(sum, v, side, work, item, weights);
    end_sum<F, G, VEC>(c.real, item, sum, w, weights, v, side, work, c.id);
}

/* ---- any record ---- */

/* Does the work of end_sum() for records with state, too; gained(chunk) computes the sum, B quads of a thread at a time. */
template <class F, int G, int B, typename Gained>
static __device__ __forceinline__ void end_columns(bool real, const struct item &item, char *weights, char *state, uint32_t id,
                                                   const struct step_view &v, const struct live_side &side,
                                                   const struct work &work, Gained gained) {
    bool kept = real && is_kept(side, work, item);
    struct piece_end to = {side.rows.distinct_starts, work.partials, kept ? work.row_sums + item.row * v.span : NULL};
    float squares = end_piece<F, G, B>(real, item, weights, state, {id, work.side}, to, v, gained);
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
        sum_piece<F, G, B, LEARNED, OF>(sum, v, side, work, c, chunk);
        if (!LEARNED || !work.own || !item.count) return;
        float4 row[B];
        read_row<F, G, B>(row, weights, chunk, v.quads);
        add_row<B>(sum, own, row);
    });
}

/* ---- pieces in their turn ---- */

/* Returns the least number of thread blocks on a multiprocessor. Kernels that only look up rows and add them need few registers,
 * so more of their thread blocks fit. */
static constexpr int resident_sums(int vec, enum sum_of of) {
    return vec > 6 ? 1 : vec <= 2 && of == SUM_BUFFER ? 6 : 4;
}

/* Works on the pieces of the thread's group one after the other. Each piece is looked up while earlier ones are worked on. */
template <int G, bool LEARNED, enum sum_of OF, typename Work>
static __device__ __forceinline__ void take_pieces(const struct step_view &v, const struct works &works, Work work_piece) {
    constexpr uint32_t GROUPS = CTA / G;
    constexpr int AHEAD = OF == SUM_TARGETS ? 4 : 3;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t lane = threadIdx.x % lanes_of<G>(), count = *work.count, cold_first = v.counts->cold_first[work.side];
    uint32_t first = blockIdx.x * GROUPS, step = gridDim.x * GROUPS, at = first + threadIdx.x / G;
    struct coming coming[AHEAD]; /* the next pieces, each looked up one read further than the one after it: item; row and places;
                                  * blocks; targets */
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
        work_piece(now, side, work, cold_first);
    }
}

template <class F, int G, int VEC, bool LEARNED, enum sum_of OF>
static __global__ void __launch_bounds__(CTA, resident_sums(VEC, OF))
    accumulate(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    take_pieces<G, LEARNED, OF>(v, works, [&](struct coming &c, const struct live_side &side, const struct work &work,
                                              uint32_t cold) {
        work_off<F, G, VEC, LEARNED, OF>(c, v, side, work, cold);
    });
}

template <class F, int G, int B, bool LEARNED, enum sum_of OF>
static __global__ void __launch_bounds__(CTA, B > 2 ? 3 : 4)
    accumulate_any(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    take_pieces<G, LEARNED, OF>(v, works, [&](struct coming &c, const struct live_side &side, const struct work &work,
                                              uint32_t cold) {
        work_off_any<F, G, B, LEARNED, OF>(c, v, side, work, cold);
    });
}

/* ---- rows of several pieces ---- */

/* Returns the sum of a row's partial sums. Groups of a warp add one share each; then every group gets the whole sum. */
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

/* Works on the rows of several pieces, a warp (or more threads) for each row. first: true for one of the groups that have the
 * row's sum: this group uses it. */
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
        work_row(item, id, live_row(side.weights, id, item.row, cold_first), live_row(side.state, id, item.row, cold_first), first,
                 side, work);
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
    return {{accumulate_any<F, G, B, LEARNED, SUM_TARGETS>, accumulate_any<F, G, B, LEARNED, SUM_BUFFER>},
            add_partials_any<F, G, B>};
}

#endif
