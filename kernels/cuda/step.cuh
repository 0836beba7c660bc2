/* step: shared by the kernels of a step: a batch as they receive it, and rows in registers.
 *
 * A group of G threads works on a row: a warp or a part of a warp for up to 512 columns, four warps for more (step_widths.cuh).
 * Each thread has VEC quads of the row. F is the form of the tables' rows (values.cuh). Thread t has the quads of chunks t, t + G,
 * t + 2 G ..
 */
#ifndef SPTX_CUDA_STEP_CUH
#define SPTX_CUDA_STEP_CUH

#include "ranks_exchange.cuh"
#include "warp.cuh"

enum {
    CTA = 128,
    REGISTERS = 96 /* number of a thread's registers that hold rows in flight */
};

/* ---- what the kernels are given ---- */

/* The weights, or the state, of a batch's rows: rows below hot_rows are in `resident`, by their ids; the others are in the
 * stage's slots. */
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

/* by_updates[n]: a rule's constants {lr, a, correction, -} for a row that has had n updates. For larger n kernels compute the
 * constants from rule and lr. */
struct corrections {
    struct rule_options rule;
    double lr;
    float4 by_updates[CORRECTIONS];
};

struct rule_view {
    struct rule_step constants;
    const struct corrections *corrections; /* NULL: bias corrections do not depend on the row */
    int rule;
    uint32_t slots;               /* number of a record's slots */
    uint32_t slot_at[RULE_SLOTS]; /* by role: bytes from the beginning of the state; DRAW_NONE: no such slot */
    uint32_t slot_number[RULE_SLOTS]; /* by role: the slot's number in a record */
    bool halves;                  /* slots are bfloat16 */
    bool by_row;                  /* records have the row's sum and no slots (RULE_BY_ROW); the rule is then RULE_SGD */
    uint32_t count_at;            /* bytes from the beginning of the state to the row's count of updates, or its sum;
                                   * DRAW_NONE: rows have neither */
};

struct step_view {
    struct live_side target, context;
    struct rule_view rule;
    const struct batch_counts *counts;
    const uint32_t *target_starts, *context_starts, *term_starts, *positives;
    float *coefficients, *target_gradients, *context_gradients;
    double *losses;
    uint32_t quads, dim, parts; /* quads: of a row; parts: number of groups that share a block's contexts */
    uint32_t run;               /* for step_dots_held.cuh: number of consecutive blocks that a group works on */
    uint32_t held;              /* for step_dots_held.cuh: number of rows that a warp holds */
    uint64_t span; /* floats of a row of working memory: 4 x quads */
    uint32_t weights_bytes, state_bytes; /* bytes of the weights, and of the state, of a stored record */
    int mean, loss_only;
    bool halves;                 /* true: rows are bfloat16 */
    struct rounding_keys rounding[2]; /* by side; used only for bfloat16 rows */
    struct exchange_view exchange; /* the exchange with other ranks; all zeros for a single rank */
};

/* A row and its side: they determine the random bits for rounding the row. */
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

/* A row as one lane has found it. The up to 32 rows of a warp can be anywhere in memory. */
struct found_row {
    unsigned long long weights, state; /* addresses of its weights and its state; 0: the slot was left out, or rows have no state */
    int single;
    uint32_t id;
};

/* Finds a row. distinct: its number among the distinct rows, with SINGLE_BIT if it occurs once; id: its id. */
static __device__ __forceinline__ struct found_row place_row(const struct live_side &side, uint32_t cold_first, uint32_t distinct,
                                                             uint32_t id) {
    uint32_t row = distinct & ~SINGLE_BIT;
    struct found_row found;
    found.single = (distinct & SINGLE_BIT) != 0;
    found.weights = (unsigned long long)(uintptr_t)live_row(side.weights, id, row, cold_first);
    found.state = (unsigned long long)(uintptr_t)live_row(side.state, id, row, cold_first);
    found.id = id;
    return found;
}

static __device__ __forceinline__ struct found_row find_row(const struct live_side &side, uint32_t cold_first,
                                                            uint32_t occurrence, bool real) {
    uint32_t distinct = real ? side.rows.distinct[occurrence] : DRAW_NONE;
    if (distinct == DRAW_NONE) return {0, 0, 0, 0};
    return place_row(side, cold_first, distinct, side.rows.ids[occurrence]);
}

/* Makes ranks wait for each other in a step that has no target: without it, no rank would post a value, and a rank could run
 * ahead and, two steps later, overwrite a box that others still read (ranks_exchange.cuh). A step has no target if its batch has
 * no blocks, or only pooled blocks without targets. A target has a positive, so other steps post a value. */
static __device__ __forceinline__ void meet_without_words(const struct step_view &v) {
    if (blockIdx.x || threadIdx.x || !v.exchange.box || v.counts->targets) return;
    exchange_post(v.exchange, 0, 0);
    exchange_collect(v.exchange, 0, 0);
}

/* ---- a row in registers ---- */

/* Returns how many of a warp's lanes work on one row. */
template <int G> static constexpr __host__ __device__ int lanes_of() {
    return G < 32 ? G : 32;
}

/* chunk_of: returns the chunk of a row that contains a thread's quad v. quad_of: returns the number of that quad in the row. */
template <class F, int G> static __device__ __forceinline__ uint32_t chunk_of(int v, uint32_t tid) {
    return v / F::QUADS * G + tid;
}
template <class F, int G> static __device__ __forceinline__ uint32_t quad_of(int v, uint32_t tid) {
    return chunk_of<F, G>(v, tid) * F::QUADS + v % F::QUADS;
}

/* A thread's chunks of a row's weights, in registers, in the form in which they are stored. */
template <class F, int VEC> struct stored_row {
    static_assert(VEC % F::QUADS == 0, "a thread has whole chunks");
    float4 chunk[VEC / F::QUADS];
};

template <class F, int G, int VEC>
static __device__ __forceinline__ void read_stored(struct stored_row<F, VEC> &x, const char *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++)
        x.chunk[i] = i * G + tid < quads / F::QUADS ? read_chunk(row, i * G + tid) : make_float4(0, 0, 0, 0);
}

template <class F, int VEC> static __device__ __forceinline__ void clear_stored(struct stored_row<F, VEC> &x) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) x.chunk[i] = make_float4(0, 0, 0, 0);
}

/* Copies the quads of the thread's chunk i. */
template <class F, int VEC>
static __device__ __forceinline__ void take_chunk(float4 (&some)[F::QUADS], const float4 (&x)[VEC], int i) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) some[k] = x[i * F::QUADS + k];
}
template <class F, int VEC>
static __device__ __forceinline__ void put_chunk(float4 (&x)[VEC], const float4 (&some)[F::QUADS], int i) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) x[i * F::QUADS + k] = some[k];
}

template <class F, int VEC>
static __device__ __forceinline__ void open_row(float4 (&x)[VEC], const struct stored_row<F, VEC> &row) {
#pragma unroll
    for (int i = 0; i < VEC / F::QUADS; i++) {
        float4 some[F::QUADS];
        open_chunk(some, row.chunk[i]);
        put_chunk<F, VEC>(x, some, i);
    }
}

/* Reads a row of a table, or a row of working memory (values.cuh). */
template <class F, int G, int VEC>
static __device__ __forceinline__ void read_row(float4 (&x)[VEC], const char *row, uint32_t tid, uint32_t quads) {
    struct stored_row<F, VEC> stored;
    read_stored<F, G, VEC>(stored, row, tid, quads);
    open_row<F, VEC>(x, stored);
}
template <class F, int G, int VEC>
static __device__ __forceinline__ void read_row(float4 (&x)[VEC], const float *row, uint32_t tid, uint32_t quads) {
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

/* Returns `sum` plus the dot product. Products are added in the order of columns, so a row that is read in parts gives the same
 * bits as the whole row. */
template <int VEC>
static __device__ __forceinline__ float dot_rows(const float4 (&x)[VEC], const float4 (&y)[VEC], float sum = 0) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        sum = fmaf(x[v].x, y[v].x, sum);
        sum = fmaf(x[v].y, y[v].y, sum);
        sum = fmaf(x[v].z, y[v].z, sum);
        sum = fmaf(x[v].w, y[v].w, sum);
    }
    return sum;
}

template <class F, int VEC>
static __device__ __forceinline__ float dot_stored(const float4 (&x)[VEC], const struct stored_row<F, VEC> &stored) {
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

/* sum += factor x row, for rows i .. i + U - 1 of the `here` rows that `found` lists. Each lane of the group has one entry of
 * `found`, and the factor of that row. Row is char for rows of a table, float for rows of working memory. */
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
        __syncthreads(); /* all threads have read the values of the previous sum */
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

/* Returns the number, in the thread block, of the first group in this warp or, if groups are wider than a warp, of the group that
 * contains this warp. */
template <int G> static __device__ __forceinline__ uint32_t first_of_warp() {
    return threadIdx.x / 32 * 32 / G;
}

template <int G> static __device__ __forceinline__ void group_wait() {
    if (G <= 32) __syncwarp();
    else __syncthreads();
}

/* Returns how many rows a group has in flight at once: as many as fit into `registers` of a thread, if each needs `floats`. */
static constexpr __host__ __device__ int rows_at_once(int floats, int registers) {
    int rows = registers / floats, power = 1;
    while (2 * power <= rows && power < 8) power *= 2;
    return power;
}

/* step.cu: computes, on `stream`, the constants of the rule for an update with learning rate lr after `updates` earlier updates,
 * for records of this layout. */
int cuda_prepare_rule(struct backend *backend, const struct rule_options *rule, double lr, uint64_t updates,
                      const struct record_layout *layout, cudaStream_t stream, struct rule_view *view);

/* step_dots.cu: enqueues, on the compute stream, the dot products, loss, coefficients and gradients of every block.
 * stage->sizes.blocks is an upper bound of the number of blocks. */
int cuda_launch_dots(struct backend *backend, const struct stage *stage, const struct step_view *view);
/* Returns 1 if this step's dot products are summed over ranks. */
static inline int has_parts(const struct step_view *view) {
    return view->exchange.ranks > 1;
}

#endif
