/* step: shared by the kernels of a step: which kernels serve a row's width, a batch as kernels receive it, rows in registers, and an
 * optimizer's rule on a record.
 *
 * A group of G threads works on a row: a warp or a part of one for up to 512 columns, four warps for more. Each thread holds VEC quads of the row:
 * thread t those of chunks t, t + G, t + 2 G .. F is the form of the tables' rows, float32 or bfloat16 (values.cuh).
 */
#ifndef SPTX_CUDA_STEP_CUH
#define SPTX_CUDA_STEP_CUH

#include "ranks.cuh"
#include "values.cuh"

#include <stdint.h>

/* ==== widths ====
 *
 * A step's kernels are chosen by the width of a row. A kernel is compiled for G threads a row, each with VEC quads of it (written G x VEC), and for
 * records with state or without. Family<G, VEC, STATE>::get() returns the kernels of one width.
 *
 * More widths make kernels faster, since fewer threads hold quads past the row's end, but compiling longer, most of all for records with state, since
 * that includes every rule. So work that waits for memory, or that is rare, has few widths.
 *
 *   float32     up to 256 columns                                wider
 *   short       8 x 1, 16 x 1, 32 x 1, 32 x 2                    32 x 3, 32 x 4, 128 x 2, 128 x 4, 128 x 8
 *   narrow      8 x 1, 8 x 2, 8 x 3, 8 x 4, 16 x 3, 16 x 4       the same
 *   few         8 x 1, 8 x 2, 8 x 4, 16 x 4                      32 x 4, 128 x 2, 128 x 4, 128 x 8
 *   whole       32 x 1, 32 x 2                                   32 x 4, 128 x 8
 *
 *   bfloat16
 *   short       8 x 2, 16 x 2, 32 x 2                            32 x 4, 128 x 8
 *   narrow      8 x 2, 8 x 4, 8 x 6 (no state), 16 x 4           the same
 *   few         8 x 4, 16 x 4                                    the same
 *   whole       32 x 4                                           the same
 *
 * short: as many threads as the row can fill. narrow, few: a warp works on several rows at once, so that a sum over a row's threads takes fewer
 * rounds, for all rows together, and each coefficient is computed once instead of by the whole warp. For float32, narrow and few have equally many
 * threads a row, and so give the same bits. whole: a warp never works on two rows.
 */

template <template <int, int, bool> class Family, int G, int VEC> auto kernels_by_state(bool state) {
    return state ? Family<G, VEC, true>::get() : Family<G, VEC, false>::get();
}

/* ---- rows of float32 ---- */

/* Chooses kernels for rows of more than 512 columns, which four warps share. */
template <template <int, int, bool> class Family> auto kernels_for_four_warps(uint32_t quads, bool state) {
    if (quads <= 256) return kernels_by_state<Family, 128, 2>(state);
    if (quads <= 512) return kernels_by_state<Family, 128, 4>(state);
    return kernels_by_state<Family, 128, 8>(state);
}
/* Chooses kernels for rows of more than 256 columns. */
template <template <int, int, bool> class Family> auto kernels_for_wide(uint32_t quads, bool state) {
    if (quads <= 96) return kernels_by_state<Family, 32, 3>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_for_four_warps<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_short(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 16, 1>(state);
    if (quads <= 32) return kernels_by_state<Family, 32, 1>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    return kernels_for_wide<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_narrow(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 24) return kernels_by_state<Family, 8, 3>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 48) return kernels_by_state<Family, 16, 3>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_wide<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_few(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_for_four_warps<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_whole(uint32_t quads, bool state) {
    if (quads <= 32) return kernels_by_state<Family, 32, 1>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_by_state<Family, 128, 8>(state);
}

/* ---- rows of bfloat16 ---- */

template <template <int, int, bool> class Family> auto kernels_for_whole_halves(uint32_t quads, bool state) {
    return quads <= 128 ? kernels_by_state<Family, 32, 4>(state) : kernels_by_state<Family, 128, 8>(state);
}
template <template <int, int, bool> class Family> auto kernels_for_short_halves(uint32_t quads, bool state) {
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 16, 2>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}
/* Six quads a thread are compiled only without state, since with their state they would not fit into a thread's registers. */
template <template <int, int, bool> class Family> auto kernels_for_narrow_halves(uint32_t quads, bool state) {
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 48 && !state) return Family<8, 6, false>::get();
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_few_halves(uint32_t quads, bool state) {
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}

enum {
    CTA = 128,
    REGISTERS = 96 /* number of a thread's registers for rows in flight */
};

/* ---- what the kernels are given ---- */

/* Where kernels find the weights, or the state, of a batch's rows: rows below hot_rows in `resident`, by their ids, the others in the stage's
 * slots. */
struct live_part {
    char *resident, *slots;
    uint64_t stride, hot_rows;
};

struct live_side {
    struct live_part weights, state;
    struct row_set_view rows;
    const uint32_t *block_of; /* [ids] the block that contains each id */
    int side;
};

/* by_updates[n]: the rule's constants {lr, a, correction, -} for a row after n updates. For larger n kernels compute them from rule and lr. */
struct corrections {
    struct rule_options rule;
    double lr;
    float4 by_updates[CORRECTIONS];
};

struct rule_view {
    struct rule_step constants;
    const struct corrections *corrections; /* NULL: bias corrections are the same for all rows */
    int rule;
    uint32_t slots;               /* number of a record's slots */
    uint32_t slot_at[RULE_SLOTS]; /* [role] offset of the slot with this role in bytes from the beginning of the state; DRAW_NONE: the rule has
                                   * none */
    uint32_t slot_number[RULE_SLOTS]; /* [role] number of the slot with this role in a record */
    bool halves;                  /* slots are bfloat16 */
    bool by_row;                  /* the last slot has one column, and is not in `slots` (RULE_BY_ROW); `rule` is RULE_SGD if it is the only slot */
    uint32_t row_at;              /* if by_row: offset in the state of the slot of one column */
    uint32_t count_at;            /* offset in the state of the row's count of updates; DRAW_NONE: rows have none */
};

struct step_view {
    struct live_side target, context;
    struct rule_view rule;
    const struct batch_counts *counts;
    const uint32_t *target_starts, *context_starts, *term_starts, *positives;
    float *coefficients, *target_gradients, *context_gradients;
    double *losses;
    uint32_t quads, dim, parts; /* quads: quads of a row; parts: groups that share a block's contexts */
    uint32_t run;               /* step_dots_ranks.cu only: number of consecutive blocks that a group works on */
    uint32_t held;              /* step_dots_ranks.cu only: number of rows that a warp holds */
    uint64_t span; /* floats of a row of working memory (4 x quads) */
    uint32_t weights_bytes, state_bytes; /* bytes of a stored record's weights, and of its state */
    int mean, loss_only;
    bool halves;                 /* true: rows are bfloat16 */
    struct rounding_keys rounding[2]; /* by side; used only for bfloat16 rows */
    struct exchange_view exchange; /* exchange with other ranks; all zeros if there is only one */
};

/* A row and its side, which determine the random bits for rounding the row. */
struct named_row {
    uint32_t id;
    int side;
};
static __device__ __forceinline__ struct rounding_keys rounding_of(const struct step_view &v, const struct named_row &row) {
    return keys_of_row(v.rounding[row.side], row.id);
}

static __device__ __forceinline__ char *live_row(const struct live_part &p, uint32_t id, uint32_t distinct, uint32_t cold_first) {
    return id < p.hot_rows ? p.resident + id * p.stride : p.slots + (uint64_t)(distinct - cold_first) * p.stride;
}

/* A row as one lane has found it; the rows of a warp, up to 32, can be anywhere in memory. */
struct found_row {
    unsigned long long weights, state; /* addresses of its weights and state; 0: the slot is empty, or rows have no state */
    int single;
    uint32_t id;
};

/* Finds a row. distinct: its index among the distinct rows, with SINGLE_BIT if it occurs once; id: its id. */
static __device__ __forceinline__ struct found_row place_row(const struct live_side &side, uint32_t cold_first, uint32_t distinct, uint32_t id) {
    uint32_t row = distinct & ~SINGLE_BIT;
    struct found_row found;
    found.single = (distinct & SINGLE_BIT) != 0;
    found.weights = (unsigned long long)(uintptr_t)live_row(side.weights, id, row, cold_first);
    found.state = (unsigned long long)(uintptr_t)live_row(side.state, id, row, cold_first);
    found.id = id;
    return found;
}

static __device__ __forceinline__ struct found_row find_row(const struct live_side &side, uint32_t cold_first, uint32_t occurrence, bool real) {
    uint32_t distinct = real ? side.rows.distinct[occurrence] : DRAW_NONE;
    if (distinct == DRAW_NONE) return {0, 0, 0, 0};
    return place_row(side, cold_first, distinct, side.rows.ids[occurrence]);
}

/* Makes ranks wait for each other in a step without targets. Without it no rank would post a value, and a rank could run ahead and, two steps
 * later, overwrite a box that others still read (ranks.cuh). A batch has no targets if it has no blocks, or only pooled blocks without targets. In
 * other steps each target has a positive, for which a value is posted. */
static __device__ __forceinline__ void meet_without_words(const struct step_view &v) {
    if (blockIdx.x || threadIdx.x || !v.exchange.box || v.counts->targets) return;
    exchange_post(v.exchange, 0, 0);
    exchange_collect(v.exchange, 0, 0);
}

/* ---- a row in registers ---- */

/* Returns how many lanes of a warp work on the same row. */
template <int G> static constexpr __host__ __device__ int lanes_of() {
    return G < 32 ? G : 32;
}

/* chunk_of: returns which chunk of a row contains a thread's quad v. quad_of: returns the index of that quad in the row. */
template <class F, int G> static __device__ __forceinline__ uint32_t chunk_of(int v, uint32_t tid) {
    return v / F::QUADS * G + tid;
}
template <class F, int G> static __device__ __forceinline__ uint32_t quad_of(int v, uint32_t tid) {
    return chunk_of<F, G>(v, tid) * F::QUADS + v % F::QUADS;
}

/* The chunks of a row's weights that a thread holds in registers, in the format in which memory stores them. */
template <class F, int VEC> struct stored_row {
    static_assert(VEC % F::QUADS == 0, "a thread has whole chunks");
    float4 chunk[VEC / F::QUADS];
};

template <class F, int G, int VEC>
static __device__ __forceinline__ void read_stored(struct stored_row<F, VEC> &x, const char *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) x.chunk[i] = i * G + tid < quads / F::QUADS ? read_chunk(row, i * G + tid) : make_float4(0, 0, 0, 0);
}

template <class F, int VEC> static __device__ __forceinline__ void clear_stored(struct stored_row<F, VEC> &x) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) x.chunk[i] = make_float4(0, 0, 0, 0);
}

/* Copies the quads of the thread's i-th chunk. */
template <class F, int VEC> static __device__ __forceinline__ void take_chunk(float4 (&some)[F::QUADS], const float4 (&x)[VEC], int i) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) some[k] = x[i * F::QUADS + k];
}
template <class F, int VEC> static __device__ __forceinline__ void put_chunk(float4 (&x)[VEC], const float4 (&some)[F::QUADS], int i) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) x[i * F::QUADS + k] = some[k];
}

template <class F, int VEC> static __device__ __forceinline__ void open_row(float4 (&x)[VEC], const struct stored_row<F, VEC> &row) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) {
        float4 some[F::QUADS];
        open_chunk(some, row.chunk[i]);
        put_chunk<F, VEC>(x, some, i);
    }
}

/* Reads a row of a table, or of working memory (values.cuh), into the quads of a group's threads. */
template <class F, int G, int VEC> static __device__ __forceinline__ void read_row(float4 (&x)[VEC], const char *row, uint32_t tid, uint32_t quads) {
    struct stored_row<F, VEC> stored;
    read_stored<F, G, VEC>(stored, row, tid, quads);
    open_row<F, VEC>(x, stored);
}
template <class F, int G, int VEC> static __device__ __forceinline__ void read_row(float4 (&x)[VEC], const float *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        uint32_t q = quad_of<F, G>(v, tid);
        x[v] = q < quads ? read_quad(row, q) : make_float4(0, 0, 0, 0);
    }
}

template <class F, int G, int VEC>
static __device__ __forceinline__ void write_row(const float4 (&x)[VEC], float *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        uint32_t q = quad_of<F, G>(v, tid);
        if (q < quads) write_quad(row, q, x[v]);
    }
}

template <class F, int G, int VEC>
static __device__ __forceinline__ void write_weights(const float4 (&x)[VEC], char *row, uint32_t tid, uint32_t quads,
                                                     const struct rounding_keys &rounding) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) {
        float4 some[F::QUADS];
        take_chunk<F, VEC>(some, x, i);
        if (i * G + tid < quads / F::QUADS) store_chunk(row, i * G + tid, some, rounding);
    }
}

template <int VEC> static __device__ __forceinline__ void clear_row(float4 (&x)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; v++) x[v] = make_float4(0, 0, 0, 0);
}

/* Returns `sum` plus the dot product. Products are added in the order of columns, so reading a row in parts gives the same bits. */
template <int VEC> static __device__ __forceinline__ float dot_rows(const float4 (&x)[VEC], const float4 (&y)[VEC], float sum = 0) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        sum = fmaf(x[v].x, y[v].x, sum);
        sum = fmaf(x[v].y, y[v].y, sum);
        sum = fmaf(x[v].z, y[v].z, sum);
        sum = fmaf(x[v].w, y[v].w, sum);
    }
    return sum;
}

template <class F, int VEC> static __device__ __forceinline__ float dot_stored(const float4 (&x)[VEC], const struct stored_row<F, VEC> &stored) {
    float4 y[VEC];
    open_row<F, VEC>(y, stored);
    return dot_rows<VEC>(x, y);
}

template <int VEC> static __device__ __forceinline__ void add_row(float4 (&sum)[VEC], float factor, const float4 (&x)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        sum[v].x = fmaf(factor, x[v].x, sum[v].x);
        sum[v].y = fmaf(factor, x[v].y, sum[v].y);
        sum[v].z = fmaf(factor, x[v].z, sum[v].z);
        sum[v].w = fmaf(factor, x[v].w, sum[v].w);
    }
}

template <int VEC> static __device__ __forceinline__ void scale_row(float4 (&x)[VEC], float factor) {
#pragma unroll
    for (int v = 0; v < VEC; v++) x[v].x *= factor, x[v].y *= factor, x[v].z *= factor, x[v].w *= factor;
}

/* sum += factor x row for U rows, entries i .. i + U - 1 of `found`, which has `here` entries. Each lane of the group has one entry, and the
 * factor of that row. Row is char for rows of a table, float for rows of working memory. */
template <class F, int G, int VEC, int U, typename Row>
static __device__ __forceinline__ void add_found(float4 (&sum)[VEC], unsigned long long found, float factor, uint32_t i,
                                                 uint32_t here, uint32_t tid, uint32_t quads) {
    constexpr int LANES = lanes_of<G>();
    float4 row[U][VEC];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const Row *from = (const Row *)__shfl_sync(ALL_LANES, found, (i + u) % LANES, LANES);
        if (i + u < here) read_row<F, G, VEC>(row[u], from, tid, quads);
        else clear_row<VEC>(row[u]);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        float by = __shfl_sync(ALL_LANES, factor, (i + u) % LANES, LANES);
        if (i + u < here) add_row<VEC>(sum, by, row[u]);
    }
}

/* Sums each value over the threads of a group; all threads get the same bits. */
template <int G, int U> static __device__ __forceinline__ void group_sum(float (&s)[U]) {
#pragma unroll
    for (int width = lanes_of<G>() / 2; width; width /= 2)
#pragma unroll
        for (int u = 0; u < U; u++) s[u] += __shfl_xor_sync(ALL_LANES, s[u], width);
    if constexpr (G > 32) {
        __shared__ float warps[G / 32][U];
        __syncthreads(); /* waits until all threads have read the values of the previous sum */
        if ((threadIdx.x & 31) == 0)
#pragma unroll
            for (int u = 0; u < U; u++) warps[threadIdx.x / 32][u] = s[u];
        __syncthreads();
#pragma unroll
        for (int u = 0; u < U; u++) {
            s[u] = warps[0][u];
#pragma unroll
            for (int w = 1; w < G / 32; w++) s[u] += warps[w][u];
        }
    }
}

/* Returns the number, in the thread block, of the first group in this warp or, if groups are wider than a warp, of the group to which this warp
 * belongs. */
template <int G> static __device__ __forceinline__ uint32_t first_of_warp() {
    return threadIdx.x / 32 * 32 / G;
}

template <int G> static __device__ __forceinline__ void group_wait() {
    if (G <= 32) __syncwarp();
    else __syncthreads();
}

/* Returns how many rows a group has in flight at once: as many as fit into `registers` of a thread if each needs `floats`. */
static constexpr __host__ __device__ int rows_at_once(int floats, int registers) {
    int rows = registers / floats, power = 1;
    while (2 * power <= rows && power < 8) power *= 2;
    return power;
}

/* step.cu: computes, on `stream`, a rule's constants for an update with learning rate lr after `updates` earlier ones, for records of this layout. */
int cuda_prepare_rule(struct backend *backend, const struct rule_options *rule, double lr, uint64_t updates,
                      const struct record_layout *layout, cudaStream_t stream, struct rule_view *view);

/* step_dots.cu: enqueues, on the compute stream, every block's dot products, loss, coefficients and gradients. stage->sizes.blocks is an upper
 * bound of the number of blocks. */
int cuda_launch_dots(struct backend *backend, const struct stage *stage, const struct step_view *view);
/* Returns 1 if the dot products of this step are sums over ranks. */
static inline int has_parts(const struct step_view *view) {
    return view->exchange.ranks > 1;
}

/* ==== an optimizer's rule on a record (optimizers.h has the rules themselves) ====
 *
 *   update_held()    updates a record that is completely in registers
 *   change_stored()  updates some quads of a record in memory, of any width and any rule
 */

static __device__ __noinline__ float4 late_correction(const struct corrections *c, uint32_t updates) {
    struct rule_step k = rule_prepare(&c->rule, c->lr, updates);
    return make_float4(k.lr, k.a, k.correction, 0);
}

static __device__ __forceinline__ struct rule_step row_constants(const struct rule_view &rule, uint32_t updates) {
    struct rule_step k = rule.constants;
    if (!rule.corrections) return k;
    float4 own = updates < CORRECTIONS ? rule.corrections->by_updates[updates] : late_correction(rule.corrections, updates);
    k.lr = own.x;
    k.a = own.y;
    k.correction = own.z;
    return k;
}

static __device__ __forceinline__ void mask_columns(float4 &x, uint32_t quad, uint32_t dim) {
    if (4 * quad + 3 < dim) return;
    if (4 * quad >= dim) x.x = 0;
    if (4 * quad + 1 >= dim) x.y = 0;
    if (4 * quad + 2 >= dim) x.z = 0;
    x.w = 0;
}
/* Zeroes the columns of a chunk beyond the row's dimension, which the last chunk may have, since a rule may turn a zero gradient into another
 * value. */
template <class F> static __device__ __forceinline__ void mask_chunk(float4 *quads, uint32_t chunk, const struct step_view &v) {
    constexpr uint32_t COLUMNS = 4 * F::QUADS;
    if (v.dim % COLUMNS && chunk == v.dim / COLUMNS)
#pragma unroll
        for (int q = 0; q < F::QUADS; q++) mask_columns(quads[q], chunk * F::QUADS + q, v.dim);
}

/* ---- a record's slots in registers ---- */

/* A kernel is compiled twice: for records with state, of any rule (STATE = true), and for records without state (sgd without momentum).
 *
 * A slot's role is its number among the slots that its rule can have (rule_slots). Slots of the first two roles are held in registers. Few rules have
 * a slot of the third role; it is read only when it is changed, because it would need too many registers. Kernels compiled for each number of roles
 * were 1 to 4% faster with word2vec's loss, but there were three times as many.
 */
enum { HELD_ROLES = 2, THIRD = 2 };

static constexpr __host__ __device__ int held_roles(bool state) {
    return state ? HELD_ROLES : 0;
}

/* Returns the number of quads of the slot with this role; 0 if the rule has none. Reads are limited by this number, without a branch, so that all
 * reads of a row are in one basic block, which the compiler can reorder. */
static __device__ __forceinline__ uint32_t quads_of(const struct step_view &v, int role) {
    return v.rule.slot_at[role] != DRAW_NONE ? v.quads : 0;
}

/* The part of a record's state that a thread holds: its chunks of the slots, by role, as stored, and the record's count of updates. The count is
 * read only if records have one. */
template <int VEC, bool STATE> struct held_state {
    float4 s[STATE ? HELD_ROLES : 1][VEC];
    uint32_t updates;
};

static __device__ __forceinline__ uint32_t *count_of(const struct step_view &v, char *state) {
    return (uint32_t *)(state + v.rule.count_at);
}
/* Returns a row's count of earlier updates. A group must read it, wait for all its threads, and only then change rows. */
static __device__ __forceinline__ uint32_t read_updates(const struct step_view &v, char *state) {
    return v.rule.count_at != DRAW_NONE ? *count_of(v, state) : 0;
}
static __device__ __forceinline__ void write_updates(const struct step_view &v, char *state, uint32_t updates, uint32_t tid) {
    if (v.rule.count_at != DRAW_NONE && tid == 0) *count_of(v, state) = updates;
}

template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void read_state(struct held_state<VEC, STATE> &held, char *state, uint32_t tid, const struct step_view &v) {
#pragma unroll
    for (int role = 0; role < held_roles(STATE); role++)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++) {
            float4 some[F::QUADS];
#pragma unroll
            for (float4 &quad : some) quad = make_float4(0, 0, 0, 0);
            if (i * G + tid < quads_of(v, role) / F::QUADS) read_state_chunk(some, state + v.rule.slot_at[role], i * G + tid, v.rule.halves);
            put_chunk<F, VEC>(held.s[role], some, i);
        }
    held.updates = read_updates(v, state);
    if constexpr (STATE)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++)
            if (i * G + tid < quads_of(v, THIRD) / F::QUADS) prefetch_state_chunk<F>(state + v.rule.slot_at[THIRD], i * G + tid, v.rule.halves);
}

template <class F, int VEC, bool STATE>
static __device__ __forceinline__ void open_state(struct held_state<VEC, STATE> &held, const struct step_view &v) {
#pragma unroll
    for (int role = 0; role < held_roles(STATE); role++)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++) {
            float4 some[F::QUADS];
            take_chunk<F, VEC>(some, held.s[role], i);
            open_state_chunk(some, v.rule.halves);
            put_chunk<F, VEC>(held.s[role], some, i);
        }
}

template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void write_state(const struct held_state<VEC, STATE> &held, char *state, uint32_t tid,
                                                   const struct step_view &v, const struct rounding_keys &rounding) {
#pragma unroll
    for (int role = 0; role < held_roles(STATE); role++)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++) {
            float4 some[F::QUADS];
            take_chunk<F, VEC>(some, held.s[role], i);
            if (i * G + tid < quads_of(v, role) / F::QUADS)
                store_state_chunk(state + v.rule.slot_at[role], i * G + tid, some, v.rule.halves, v.rule.slot_number[role], rounding);
        }
}

/* A value of RULE for kernels that are compiled for all rules: the rule is then an argument. */
enum { ANY_RULE = RULE_COUNT };

/* Four columns of a record: their weights, and their values in each slot, by role. */
struct record_quad {
    float4 w, s[RULE_SLOTS];
};

#define CHANGE_QUAD(name, enumerator)                                                                                  \
    case enumerator:                                                                                                   \
        if constexpr (RULE == enumerator || RULE == ANY_RULE) {                                                        \
            _Pragma("unroll") for (int c = 0; c < 4; c++)                                                              \
                rule_##name(&k, (&g.x)[c], &quad.w.x + c, &quad.s[0].x + c, &quad.s[1].x + c, &quad.s[2].x + c);       \
        }                                                                                                              \
        break;
/* Updates a quad by RULE, or by `rule` if RULE is ANY_RULE. */
template <int RULE> static __device__ __forceinline__ void change_quad(struct record_quad &quad, const struct rule_step &k, float4 g, int rule) {
    switch (RULE == ANY_RULE ? rule : RULE) { RULES(CHANGE_QUAD) }
}
#undef CHANGE_QUAD

/* Returns the quad after an update by any rule. Called for rules that few runs use: their code in each kernel made compiling take twice as long. */
static __device__ __noinline__ struct record_quad changed_quad(struct record_quad quad, struct rule_step k, float4 g, int rule) {
    change_quad<ANY_RULE>(quad, k, g, rule);
    return quad;
}

/* Updates a thread's quads of a record by RULE. The weights w and the slots of the first two roles are in registers, the slot of the third role in
 * memory. */
template <class F, int RULE, int G, int VEC, bool STATE>
static __device__ __forceinline__ void change_columns(struct held_state<VEC, STATE> &held, const struct rule_step &constants,
                                                      const float4 (&g)[VEC], float4 (&w)[VEC], char *state, uint32_t tid,
                                                      const struct step_view &v, const struct rounding_keys &rounding) {
    constexpr int HELD = held_roles(STATE);
    struct rule_step k = constants;
    if (!STATE) k.momentum = 0; /* is 0 already, but so the compiler can leave momentum out */
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) {
        float4 absent[F::QUADS];
#pragma unroll
        for (float4 &quad : absent) quad = make_float4(0, 0, 0, 0);
        bool third = STATE && (RULE == ANY_RULE || RULE_MAY_HAVE_THIRD(RULE)) && i * G + tid < quads_of(v, THIRD) / F::QUADS;
        if (third) {
            read_state_chunk(absent, state + v.rule.slot_at[THIRD], i * G + tid, v.rule.halves);
            open_state_chunk(absent, v.rule.halves);
        }
#pragma unroll
        for (int part = 0; part < F::QUADS; part++) {
            const int q = i * F::QUADS + part;
            struct record_quad quad = {w[q], {absent[part], absent[part], absent[part]}};
#pragma unroll
            for (int role = 0; role < HELD; role++) quad.s[role] = held.s[role][q];
            if constexpr (RULE == ANY_RULE) quad = changed_quad(quad, k, g[q], v.rule.rule);
            else change_quad<RULE>(quad, k, g[q], RULE);
            w[q] = quad.w;
#pragma unroll
            for (int role = 0; role < HELD; role++) held.s[role][q] = quad.s[role];
            absent[part] = quad.s[THIRD];
        }
        mask_chunk<F>(absent, i * G + tid, v);
        if (third) store_state_chunk(state + v.rule.slot_at[THIRD], i * G + tid, absent, v.rule.halves, v.rule.slot_number[THIRD], rounding);
    }
}

/* Updates a record that is in registers, and writes it back to memory. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void change_record(struct held_state<VEC, STATE> &held, const struct rule_step &k,
                                                     const float4 (&g)[VEC], float4 (&w)[VEC], char *weights, char *state,
                                                     uint32_t tid, const struct step_view &v, const struct named_row &row) {
    const struct rounding_keys rounding = rounding_of(v, row);
    open_state<F, VEC, STATE>(held, v);
#define CHANGE_BY(RULE) change_columns<F, RULE, G, VEC, STATE>(held, k, g, w, state, tid, v, rounding)
    if constexpr (!STATE) CHANGE_BY(RULE_SGD);
    else if (v.rule.rule == RULE_SGD) CHANGE_BY(RULE_SGD);
    else if (v.rule.rule == RULE_ADAGRAD) CHANGE_BY(RULE_ADAGRAD);
    else if (v.rule.rule == RULE_ADAM) CHANGE_BY(RULE_ADAM);
    else if (v.rule.rule == RULE_ADAMAX) CHANGE_BY(RULE_ADAMAX);
    else CHANGE_BY(ANY_RULE);
#undef CHANGE_BY
#pragma unroll
    for (int i = 0; i < VEC; i += F::QUADS) {
        mask_chunk<F>(&w[i], chunk_of<F, G>(i, tid), v);
#pragma unroll
        for (int role = 0; role < held_roles(STATE); role++) mask_chunk<F>(&held.s[role][i], chunk_of<F, G>(i, tid), v);
    }
    write_weights<F, G, VEC>(w, weights, tid, v.quads, rounding);
    write_state<F, G, VEC, STATE>(held, state, tid, v, rounding);
}

/* Updates a record that is in registers, and counts the update. All threads of the group must have read its count of updates before. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void update_held(struct held_state<VEC, STATE> &held, const float4 (&g)[VEC], float4 (&w)[VEC], char *weights,
                                                   char *state, uint32_t tid, const struct step_view &v, const struct named_row &row) {
    if constexpr (!STATE) {
        change_record<F, G, VEC, false>(held, v.rule.constants, g, w, weights, state, tid, v, row);
    } else {
        change_record<F, G, VEC, true>(held, row_constants(v.rule, held.updates), g, w, weights, state, tid, v, row);
        write_updates(v, state, held.updates + 1, tid);
    }
}

/* B quads of a record in registers, in the format in which memory stores them. */
template <class F, int B> struct stored_record {
    struct stored_row<F, B> weights;
    struct held_state<B, true> state;
};

template <class F, int G, int B>
static __device__ __forceinline__ void read_record(struct stored_record<F, B> &r, const char *weights, char *state, uint32_t chunk,
                                                   const struct step_view &v) {
    read_stored<F, G, B>(r.weights, weights, chunk, v.quads);
    read_state<F, G, B, true>(r.state, state, chunk, v);
}

/* Updates B quads of a record by the rule, and writes them back. All threads of the group must have read its count of updates. `updates`: that
 * count; of_row: the new value of the slot of one column, if there is one. */
template <class F, int G, int B>
static __device__ __forceinline__ void change_stored(struct stored_record<F, B> &r, const float4 (&g)[B], char *weights, char *state,
                                                     uint32_t updates, float of_row, uint32_t chunk, const struct step_view &v,
                                                     const struct named_row &row) {
    float4 w[B];
    open_row<F, B>(w, r.weights);
    struct rule_step k = row_constants(v.rule, updates); /* computed early, so that the record's reads need not wait for it */
    if (v.rule.by_row) k.lr = rule_row_rate(&k, of_row);
    change_record<F, G, B, true>(r.state, k, g, w, weights, state, chunk, v, row);
}

/* Prefetches `bytes` of memory into the GPU's cache, for the group to read a little later. */
template <int G> static __device__ __forceinline__ void ask_for_lines(const char *from, uint64_t bytes) {
    constexpr uint32_t LINE = 128;
    for (uint32_t at = threadIdx.x % G * LINE; at < bytes; at += G * LINE) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
}

/* ---- a work item of an update: some of a row's gradients, or all ---- */

/* Number of shares into which a row's partial sums are divided: the sums of each share are added in order, then the shares' sums in order. So the
 * bits are the same whether several groups add one share each or one group adds all shares. */
enum { PARTIAL_SHARES = 4 };

/* Adds share number `share` of a row's `count` partial sums, which are consecutive rows of `partials`. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void add_share(float4 (&sum)[VEC], const float *partials, uint32_t share, uint32_t count,
                                                 uint32_t tid, const struct step_view &v) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS / 2);
    uint32_t each = (count + PARTIAL_SHARES - 1) / PARTIAL_SHARES, end = min((share + 1) * each, count);
    clear_row<VEC>(sum);
    for (uint32_t i = share * each; i < end; i += U) {
        float4 row[U][VEC];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) read_row<F, G, VEC>(row[u], partials + (i + u) * v.span, tid, v.quads);
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) add_row<VEC>(sum, 1, row[u]);
    }
}

/* Returns the squared norm of a row's gradient `sum`; 0 if the rule does not clip gradients. All threads of a warp must call it. */
template <int G, int VEC> static __device__ __forceinline__ float sum_squares(const float4 (&sum)[VEC], const struct step_view &v) {
    if (!(v.rule.constants.clip > 0)) return 0;
    float squares[1] = {dot_rows<VEC>(sum, sum)};
    group_sum<G, 1>(squares);
    return squares[0];
}

/* Returns the factor by which the gradient of a row is multiplied to clip it; 1 if the rule does not clip. squares: the squared norm of the gradient.
 * starts: distinct_starts of the row set, which tells how many summands the gradient has. */
static __device__ __forceinline__ float share_of_row(const struct step_view &v, const uint32_t *starts, uint32_t row, float squares) {
    float clip = v.rule.constants.clip;
    return clip > 0 ? rule_share(clip, starts[row + 1] - starts[row], squares) : 1.0f;
}

/* The place where the sum of a work item is stored, or the input for updating the row by it. */
struct item_end {
    const uint32_t *starts; /* distinct_starts of the row set, which give the row's number of places */
    float *partials;        /* rows of span floats; the sum is stored here if the row has several work items */
    float *kept;            /* [span] the row's whole sum is stored here, for another kernel that updates the row; NULL: this kernel updates it */
};

/* Uses a work item's sum for a record that may have state: updates the row, or stores the sum, as the row's whole or partial sum. gained(chunk,
 * sum) computes B quads of a thread's sum; all threads of a warp must call it. real: the thread's group has an item. A row wider than G x B quads
 * is worked on by a whole warp (G is 32). Returns the squared norm of the sum, if the rule uses it. */
template <class F, int G, int B, typename Gained>
static __device__ __forceinline__ float end_item(bool real, const struct item &item, char *weights, char *state, const struct named_row &row,
                                                 const struct item_end &to, const struct step_view &v, Gained gained) {
    constexpr uint32_t STEP = G * B / F::QUADS;
    const uint32_t chunks = v.quads / F::QUADS;
    uint32_t tid = threadIdx.x % G;
    bool squared = v.rule.constants.clip > 0 || v.rule.by_row, updated = real && !to.kept && item.partial == DRAW_NONE;
    uint32_t updates = updated ? read_updates(v, state) : 0;
    float of_row = updated && v.rule.by_row ? *(const float *)(state + v.rule.row_at) : 0;
    float4 sum[B]; /* computed before the branches below, which rows of one warp may take differently */
    float squares[1] = {0};
    __syncwarp(); /* waits until all threads have read the row's count of updates */
#pragma unroll 1
    for (uint32_t chunk = tid; (G < 32 || squared) && chunk - tid < chunks; chunk += STEP) {
        gained(chunk, sum);
        squares[0] = dot_rows<B>(sum, sum, squares[0]);
    }
    if (squared) group_sum<G, 1>(squares);
    float share = updated ? share_of_row(v, to.starts, item.row, squares[0]) : 1;
    if (v.rule.by_row) of_row = rule_row_sum(&v.rule.constants, of_row, share * share * squares[0], v.dim);
#pragma unroll 1
    for (uint32_t chunk = tid; real && chunk - tid < chunks; chunk += STEP) {
        struct stored_record<F, B> record;
        if (updated) read_record<F, G, B>(record, weights, state, chunk, v);
        if (G == 32) gained(chunk, sum);
        if (updated) {
            scale_row<B>(sum, share);
            change_stored<F, G, B>(record, sum, weights, state, updates, of_row, chunk, v, row);
        } else {
            write_row<F, G, B>(sum, to.kept ? to.kept : to.partials + item.partial * v.span, chunk, v.quads);
        }
    }
    if (updated) write_updates(v, state, updates + 1, tid);
    if (updated && v.rule.by_row && tid == 0) *(float *)(state + v.rule.row_at) = of_row;
    return squares[0];
}

#endif
