/* sums: the second half of a step: each distinct row's gradient, summed over its places in the batch, and its update. One piece
 * of work a group of threads; step.cu says what the pieces are and launches them.
 *
 * LEARNED: after the passes of learn.cuh. Contexts are multiplied with vectors that may be pooled, have a factor for themselves
 * where scores are cosines, and rows may be frozen. The others are compiled without any of it.
 */
#ifndef SPTX_CUDA_SUMS_CUH
#define SPTX_CUDA_SUMS_CUH

#include "rule.cuh"

enum sum_of { SUM_TARGETS, SUM_BUFFER, SUM_PARTIALS };

struct work {
    const struct item *items;
    const uint32_t *count;
    const float *buffer; /* SUM_BUFFER, SUM_PARTIALS: rows of span floats */
    enum sum_of of;
    int side;
    float *partials;       /* rows of span floats: sums of pieces */
    float *row_sums;       /* rows of span floats by distinct row: where squares are summed over ranks; else NULL */
    uint64_t squares_slot; /* of the exchange, of the side's place 0 */
    const uint32_t *frozen; /* the side's rows that stay; NULL: none. This and the rest: LEARNED */
    const float *pooled;    /* SUM_TARGETS: [blocks x span] vectors in the place of targets; NULL: target rows */
    const float *own;       /* SUM_TARGETS: [places] factor of each place for its own row; NULL: none */
};

/* Of one launch: of one side or, where neither reads what the other changes, of both; blockIdx.y says which. */
struct works {
    struct work of[2];
};

/* The i-th summand of an order: where it lies and what it is multiplied by. */
template <bool LEARNED>
static __device__ __forceinline__ const char *summand(const struct step_view &v, const struct live_side &side,
                                                      const struct work &work, uint32_t i, float *factor) {
    *factor = 1;
    if (work.of == SUM_PARTIALS) return (const char *)(work.buffer + i * v.span);
    uint32_t occurrence = side.rows.order[i];
    if (work.of == SUM_BUFFER) return (const char *)(work.buffer + occurrence * v.span);
    uint32_t block = side.block_of[occurrence]; /* of one target: its number is the occurrence of the target */
    *factor = v.coefficients[occurrence];
    if (LEARNED && work.pooled) return (const char *)(work.pooled + block * v.span);
    return live_row(v.target.weights, v.target.rows.ids[block], v.target.rows.distinct[block] & ~SINGLE_BIT,
                    v.counts->cold_first[SIDE_TARGET]);
}

/* The summands of a piece in their order, U rows in flight at once. A warp's pieces take as many rounds as the longest needs. */
template <int G, int VEC, bool LEARNED>
static __device__ __forceinline__ void sum_piece(float4 (&sum)[VEC], const struct step_view &v,
                                                 const struct live_side &side, const struct work &work,
                                                 const struct item &item) {
    constexpr int MOST = G < 32 && VEC > 1 ? 2 : 4; /* most pieces have two; registers are for rows beside each other */
    constexpr int U = rows_at_once(4 * VEC, REGISTERS) < MOST ? rows_at_once(4 * VEC, REGISTERS) : MOST;
    constexpr uint32_t LANES = lanes_of<G>();
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x % LANES, most = most_beside<LANES>(item.count);
    clear_row<VEC>(sum);
    for (uint32_t base = 0; base < most; base += LANES) {
        uint32_t here = base < item.count ? min(item.count - base, LANES) : 0, rounds = min(most - base, LANES);
        float factor = 0;
        unsigned long long found = 0;
        if (lane < here)
            found = (unsigned long long)(uintptr_t)summand<LEARNED>(v, side, work, item.first + base + lane, &factor);
        for (uint32_t i = 0; i < rounds; i += U) add_found<G, VEC, U>(sum, found, factor, i, here, tid, v.quads);
    }
}

/* What a piece's places add along their own row, as it stood before the step. */
template <int G, int VEC>
static __device__ __forceinline__ void add_own(float4 (&sum)[VEC], const struct step_view &v, const struct live_side &side,
                                               const struct work &work, const struct item &item, const char *weights) {
    constexpr uint32_t LANES = lanes_of<G>();
    float own = 0;
    float4 row[VEC];
    for (uint32_t i = threadIdx.x % LANES; i < item.count; i += LANES) own += work.own[side.rows.order[item.first + i]];
    for (int width = LANES / 2; width; width /= 2) own += __shfl_xor_sync(ALL_LANES, own, width);
    if (!item.count) return; /* none, beside one */
    read_row<G, VEC>(row, weights, threadIdx.x % G, v.quads);
    add_row<VEC>(sum, own, row);
}

/* Where ranks exchange a row's squares: by the first of its places. Its number may be another on each rank: one whose contexts
 * all lie on the GPU does not number those that stand once (repeats.cu). */
static __device__ __forceinline__ uint64_t squares_of(const struct live_side &side, const struct work &work, uint32_t row) {
    return work.squares_slot + side.rows.order[side.rows.distinct_starts[row]];
}

/* Whether a piece that ends its row leaves the gradient to finish_rows: its squares over all ranks are wanted. */
static __device__ __forceinline__ bool is_kept(const struct live_side &side, const struct work &work, const struct item &item) {
    return work.row_sums && item.partial == DRAW_NONE &&
           side.rows.distinct_starts[item.row + 1] - side.rows.distinct_starts[item.row] > 1;
}

/* A row's whole gradient, kept until its squares over all ranks are known. */
template <int G, int VEC>
static __device__ __forceinline__ void keep_sum(const float4 (&sum)[VEC], float squares, uint32_t row, uint32_t tid,
                                                const struct live_side &side, const struct work &work,
                                                const struct step_view &v) {
    write_row<G, VEC>(sum, (char *)(work.row_sums + row * v.span), tid, v.quads);
    if (tid == 0) exchange_post(v.exchange, squares_of(side, work, row), squares);
}

/* The piece of work at `at` of `count`; none where there are no more, or the row stays. */
template <bool LEARNED>
static __device__ __forceinline__ bool take_item(const struct live_side &side, const struct work &work, uint32_t at,
                                                 uint32_t count, struct item *item) {
    *item = {0, 0, 0, DRAW_NONE};
    if (at >= count) return false;
    *item = work.items[at];
    if (!LEARNED || !row_has_bit(work.frozen, side.rows.distinct_ids[item->row])) return true;
    item->count = 0;
    return false;
}

template <int G, int VEC, int NS, bool LEARNED>
static __global__ void __launch_bounds__(CTA)
    accumulate(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    constexpr uint32_t GROUPS = CTA / G;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t tid = threadIdx.x % G, count = *work.count, cold_first = v.counts->cold_first[work.side];
    for (uint32_t first = blockIdx.x * GROUPS; first + first_of_warp<G>() < count; first += gridDim.x * GROUPS) {
        struct item item;
        bool real = take_item<LEARNED>(side, work, first + threadIdx.x / G, count, &item);
        if (G >= 32 && !real) continue;
        uint32_t id = side.rows.distinct_ids[item.row];
        char *weights = live_row(side.weights, id, item.row, cold_first);
        char *state = live_row(side.state, id, item.row, cold_first);
        struct held_row<VEC, NS> held;
        float4 w[VEC], sum[VEC];
        begin_piece<G, VEC, NS>(real && item.partial == DRAW_NONE, w, held, weights, state, tid, v);
        sum_piece<G, VEC, LEARNED>(sum, v, side, work, item);
        if (LEARNED && work.own) add_own<G, VEC>(sum, v, side, work, item, weights);
        group_wait<G>(); /* all have read the row's update count */
        float squares = sum_squares<G, VEC>(sum, v);
        if (!real) continue;
        if (is_kept(side, work, item)) keep_sum<G, VEC>(sum, squares, item.row, tid, side, work, v);
        else end_piece<G, VEC, NS>(item, side.rows.distinct_starts, sum, squares, w, held, weights, state, work.partials, tid, v);
    }
}

typedef void accumulate_kernel(const struct step_view, const struct works);
template <bool LEARNED> struct accumulate_of {
    template <int G, int VEC, int NS> struct family {
        static accumulate_kernel *get(void) {
            return accumulate<G, VEC, NS, LEARNED>;
        }
    };
};

accumulate_kernel *accumulate_learned(uint32_t quads, uint32_t slots); /* sums_learned.cu */

#endif
