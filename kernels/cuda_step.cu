/* cuda_step: one exact step of a batch, in the order that cpu_step.c has.
 *
 *   measure     by block     logits from old rows, loss, coefficients; each target occurrence's gradient into a buffer.
 *                            T == 1: a context that stands once in the batch is updated right here, while it is in
 *                            registers: read once, written once. T > 1: each context occurrence's gradient into a buffer
 *   accumulate  by context   coefficients x old targets (T > 1: the buffer) over the row's occurrences; rule; in place
 *               by target    the buffer over the row's occurrences; rule; in place
 *
 * A row with many occurrences is cut into pieces whose sums are summed in order. Every sum has one order, whatever the
 * stage, the depth or the place of the rows. A row is worked on by a group of G threads, each with VEC columns of four:
 * a warp up to 512 columns, four warps above.
 */
#include "cuda.cuh"

#include <string.h>

enum {
    CTA = 128,
    WIDE_CTA = 384,    /* where a batch has too few blocks to fill the GPU: more groups share the contexts of each */
    WIDE_BLOCKS = 256, /* up to so many */
    CORRECTIONS = 4096,
    REGISTERS = 96 /* of a thread, for rows in flight */
};
#define ALL 0xFFFFFFFFu

/* ---- what the kernels are given ---- */

/* Where one part of a batch's rows lies: resident rows below hot_rows, the others in slots. */
struct live_part {
    char *resident, *slots;
    uint64_t stride, hot_rows;
};

struct live_side {
    struct live_part weights, state;
    struct side_view batch;
    int side;
};

/* A rule's constants that follow a row's own updates: {lr, a, correction, -} by their number, and what makes the others. */
struct corrections {
    struct rule_options rule;
    double lr;
    float4 by_updates[CORRECTIONS];
};

struct rule_view {
    struct rule_step constants;
    const struct corrections *corrections; /* NULL: bias correction is global */
    int rule;
};

struct step_view {
    struct live_side target, context;
    struct rule_view rule;
    const struct batch_counts *counts;
    const uint32_t *target_starts, *context_starts, *term_starts, *positives;
    float *coefficients, *target_gradients, *context_gradients, *partials;
    double *losses;
    uint32_t quads, dim, parts; /* quads: span / 4; parts: groups that share a block's contexts */
    uint64_t span;
    int mean, loss_only;
};

static __device__ __forceinline__ char *live_row(const struct live_part &p, uint32_t id, uint32_t distinct, uint32_t cold_first) {
    return id < p.hot_rows ? p.resident + id * p.stride : p.slots + (uint64_t)(distinct - cold_first) * p.stride;
}

/* ---- a row in registers ---- */

template <int G, int VEC> static __device__ __forceinline__ void read_row(float4 (&x)[VEC], const char *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        uint32_t q = v * G + tid;
        x[v] = q < quads ? ((const float4 *)row)[q] : make_float4(0, 0, 0, 0);
    }
}

template <int G, int VEC> static __device__ __forceinline__ void write_row(const float4 (&x)[VEC], char *row, uint32_t tid, uint32_t quads) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        uint32_t q = v * G + tid;
        if (q < quads) ((float4 *)row)[q] = x[v];
    }
}

template <int VEC> static __device__ __forceinline__ void clear_row(float4 (&x)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; v++) x[v] = make_float4(0, 0, 0, 0);
}

template <int VEC> static __device__ __forceinline__ float dot_rows(const float4 (&x)[VEC], const float4 (&y)[VEC]) {
    float sum = 0;
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        sum = fmaf(x[v].x, y[v].x, sum);
        sum = fmaf(x[v].y, y[v].y, sum);
        sum = fmaf(x[v].z, y[v].z, sum);
        sum = fmaf(x[v].w, y[v].w, sum);
    }
    return sum;
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

/* Sums over the threads of a group, the same bits in all of them. */
template <int G, int U> static __device__ __forceinline__ void group_sum(float (&s)[U]) {
#pragma unroll
    for (int width = 16; width; width /= 2)
#pragma unroll
        for (int u = 0; u < U; u++) s[u] += __shfl_xor_sync(ALL, s[u], width);
    if (G == 32) return;
    __shared__ float warps[G / 32][U];
    __syncthreads(); /* the sums before are read */
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

template <int G> static __device__ __forceinline__ void group_wait() {
    if (G == 32) __syncwarp();
    else __syncthreads();
}

/* ---- the rule on a row ---- */

static __device__ __noinline__ float4 late_correction(const struct corrections *c, uint32_t updates) {
    struct rule_step k = rule_prepare(&c->rule, c->lr, updates);
    return make_float4(k.lr, k.a, k.correction, 0);
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

static __device__ __forceinline__ struct rule_step row_constants(const struct rule_view &rule, uint32_t updates) {
    struct rule_step k = rule.constants;
    if (!rule.corrections) return k;
    float4 own = updates < CORRECTIONS ? rule.corrections->by_updates[updates] : late_correction(rule.corrections, updates);
    k.lr = own.x;
    k.a = own.y;
    k.correction = own.z;
    return k;
}

#define COLUMNS(call)                                                                                                  \
    _Pragma("unroll") for (int v = 0; v < VEC; v++) _Pragma("unroll") for (int e = 0; e < 4; e++) {                    \
        float gradient = (&g[v].x)[e], unused = 0, *weight = &w[v].x + e;                                              \
        (void)unused;                                                                                                  \
        call;                                                                                                          \
    }                                                                                                                  \
    break
#define SLOT(i) (&s[i][v].x + e)

/* g, w and the record's slots s, in the slots' order in a record (rule_slots). NS says which rules can come: the others
 * are not compiled into this kernel. */
template <int VEC, int NS>
static __device__ __forceinline__ void apply_rule(int rule, struct rule_step k, const float4 (&g)[VEC], float4 (&w)[VEC],
                                                  float4 (&s)[NS ? NS : 1][VEC]) {
    if constexpr (NS == 0) {
        k.momentum = 0;
        switch (0) {
        default: COLUMNS(rule_sgd(&k, gradient, weight, &unused, &unused, &unused));
        }
    } else if constexpr (NS == 1) {
        k.centered = 0;
        switch (rule) {
        case RULE_SGD: COLUMNS(rule_sgd(&k, gradient, weight, SLOT(0), &unused, &unused));
        case RULE_ADAGRAD: COLUMNS(rule_adagrad(&k, gradient, weight, SLOT(0), &unused, &unused));
        case RULE_RMSPROP: k.momentum = 0; COLUMNS(rule_rmsprop(&k, gradient, weight, SLOT(0), &unused, &unused));
        case RULE_ASGD: COLUMNS(rule_asgd(&k, gradient, weight, SLOT(0), &unused, &unused));
        }
    } else if constexpr (NS == 2) {
        k.amsgrad = 0;
        switch (rule) {
        case RULE_ADADELTA: COLUMNS(rule_adadelta(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_RMSPROP: /* its second slot is the momentum or, centered, the mean */
            if (k.centered) {
                k.momentum = 0;
                COLUMNS(rule_rmsprop(&k, gradient, weight, SLOT(0), &unused, SLOT(1)));
            }
            COLUMNS(rule_rmsprop(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_ADAM: COLUMNS(rule_adam(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_ADAMW: COLUMNS(rule_adamw(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_SPARSE_ADAM: COLUMNS(rule_sparse_adam(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_ADAMAX: COLUMNS(rule_adamax(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        case RULE_RPROP: COLUMNS(rule_rprop(&k, gradient, weight, SLOT(0), SLOT(1), &unused));
        }
    } else {
        switch (rule) {
        case RULE_RMSPROP: COLUMNS(rule_rmsprop(&k, gradient, weight, SLOT(0), SLOT(1), SLOT(2)));
        case RULE_ADAM: COLUMNS(rule_adam(&k, gradient, weight, SLOT(0), SLOT(1), SLOT(2)));
        case RULE_ADAMW: COLUMNS(rule_adamw(&k, gradient, weight, SLOT(0), SLOT(1), SLOT(2)));
        }
    }
}

/* Columns past the dimension stay zero, whatever a rule makes of a zero gradient. */
static __device__ __forceinline__ void mask_columns(float4 &x, uint32_t quad, uint32_t dim) {
    if (4 * quad + 3 < dim) return;
    if (4 * quad >= dim) x.x = 0;
    if (4 * quad + 1 >= dim) x.y = 0;
    if (4 * quad + 2 >= dim) x.z = 0;
    x.w = 0;
}

/* A record in registers. */
template <int VEC, int NS> struct held_row {
    float4 s[NS ? NS : 1][VEC];
    uint32_t updates;
};

template <int G, int VEC, int NS>
static __device__ __forceinline__ void read_state(struct held_row<VEC, NS> &held, const char *state, uint32_t tid, const struct step_view &v) {
#pragma unroll
    for (int i = 0; i < NS; i++) read_row<G, VEC>(held.s[i], state + i * v.span * 4, tid, v.quads);
    held.updates = NS && v.rule.corrections ? *(const uint32_t *)(state + NS * v.span * 4) : 0;
}

/* The rule, then the record back to where it came from. All threads of the group have read it. */
template <int G, int VEC, int NS>
static __device__ __forceinline__ void update_row(struct held_row<VEC, NS> &held, const float4 (&g)[VEC], float4 (&w)[VEC], char *weights,
                                                  char *state, uint32_t tid, const struct step_view &v) {
    apply_rule<VEC, NS>(v.rule.rule, row_constants(v.rule, held.updates), g, w, held.s);
    if (v.dim & 3)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            mask_columns(w[i], i * G + tid, v.dim);
#pragma unroll
            for (int j = 0; j < NS; j++) mask_columns(held.s[j][i], i * G + tid, v.dim);
        }
    write_row<G, VEC>(w, weights, tid, v.quads);
#pragma unroll
    for (int i = 0; i < NS; i++) write_row<G, VEC>(held.s[i], state + i * v.span * 4, tid, v.quads);
    if (NS && v.rule.corrections && tid == 0) *(uint32_t *)(state + NS * v.span * 4) = held.updates + 1;
}

/* Rows of a group in flight at once: what `registers` of a thread hold. */
static constexpr __host__ __device__ int rows_at_once(int floats, int registers) {
    int rows = registers / floats, power = 1;
    while (2 * power <= rows && power < 8) power *= 2;
    return power;
}

/* ---- measure ---- */

static __device__ __forceinline__ float loss_of(float logit, bool positive) {
    return sgns_loss_linear(logit, positive ? 1.0f : 0.0f) + log1pf(sgns_loss_tail(logit));
}

static __device__ __forceinline__ double warp_sum(double x) {
    for (int width = 16; width; width /= 2) x += __shfl_xor_sync(ALL, x, width);
    return x;
}

/* Where up to 32 rows of a side lie, a lane a row. */
struct found_row {
    unsigned long long weights, state; /* 0: a slot left out, or none */
    int single;
};

static __device__ __forceinline__ struct found_row find_row(const struct live_side &side, uint32_t cold_first, uint32_t occurrence, bool real) {
    struct found_row found = {0, 0, 0};
    uint32_t distinct = real ? side.batch.distinct[occurrence] : DRAW_NONE;
    if (distinct == DRAW_NONE) return found;
    uint32_t id = side.batch.ids[occurrence], row = distinct & ~SINGLE_BIT;
    found.single = (distinct & SINGLE_BIT) != 0;
    found.weights = (unsigned long long)(uintptr_t)live_row(side.weights, id, row, cold_first);
    found.state = (unsigned long long)(uintptr_t)live_row(side.state, id, row, cold_first);
    return found;
}

/* What a block's gradients are multiplied by; as the CPU has it, to the last bit. */
static __device__ __forceinline__ float scale_of(const struct step_view &v) {
    return v.mean ? (float)(1.0 / (double)v.counts->blocks) : 1.0f;
}

/* Contexts [first, end) of a block against one target: adds to its gradient and the loss; updates rows that stand once. */
template <int G, int VEC, int NS, bool ONE>
static __device__ __forceinline__ double meet_contexts(const struct step_view &v, const float4 (&target)[VEC], float4 (&gradient)[VEC],
                                                       uint32_t block_start, uint32_t first, uint32_t end, uint32_t positives,
                                                       float *coefficients) {
    constexpr int U = rows_at_once(4 * VEC * (ONE ? 1 + NS : 1), ONE && G == 32 ? REGISTERS / 2 : REGISTERS);
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, cold_first = v.counts->cold_first[SIDE_CONTEXT];
    float scale = scale_of(v);
    double loss = 0;
    for (uint32_t base = first; base < end; base += 32) {
        uint32_t here = end - base < 32 ? end - base : 32;
        struct found_row found = find_row(v.context, cold_first, base + lane, lane < here);
        float my_logit = 0, my_coefficient = 0;
        if (v.loss_only) found.single = 0;
        for (uint32_t i = 0; i < here; i += U) {
            float4 w[U][VEC];
            struct held_row<VEC, ONE ? NS : 0> held[U];
            char *weights[U], *state[U];
            bool single[U];
            float logit[U];
#pragma unroll
            for (int u = 0; u < U; u++) {
                uint32_t from = (i + u) & 31;
                weights[u] = (char *)__shfl_sync(ALL, found.weights, from);
                single[u] = ONE && __shfl_sync(ALL, found.single, from);
                state[u] = ONE && NS ? (char *)__shfl_sync(ALL, found.state, from) : NULL;
                if (i + u >= here) weights[u] = NULL, single[u] = false;
                if (weights[u]) read_row<G, VEC>(w[u], weights[u], tid, v.quads);
                else clear_row<VEC>(w[u]);
            }
            if constexpr (ONE && NS > 0) {
#pragma unroll
                for (int u = 0; u < U; u++)
                    if (single[u]) read_state<G, VEC, NS>(held[u], state[u], tid, v);
            }
#pragma unroll
            for (int u = 0; u < U; u++) logit[u] = dot_rows<VEC>(target, w[u]);
            group_sum<G, U>(logit);
#pragma unroll
            for (int u = 0; u < U; u++) {
                bool positive = base + i + u - block_start < positives;
                float coefficient = sgns_coefficient(logit[u], positive ? 1.0f : 0.0f) * scale;
                if (!weights[u]) coefficient = 0;
                if (lane == i + u) my_logit = logit[u], my_coefficient = coefficient;
                add_row<VEC>(gradient, coefficient, w[u]);
                if (single[u]) {
                    float4 g[VEC];
                    clear_row<VEC>(g);
                    add_row<VEC>(g, coefficient, target);
                    if constexpr (NS == 0 || !ONE) held[u].updates = 0;
                    if constexpr (ONE) update_row<G, VEC, NS>(held[u], g, w[u], weights[u], state[u], tid, v);
                }
            }
        }
        if (lane < here && found.weights) loss += (double)loss_of(my_logit, base + lane - block_start < positives);
        if (lane < here && tid < 32 && !v.loss_only) coefficients[base + lane - block_start] = my_coefficient;
    }
    return loss;
}

template <int G, int VEC>
static __device__ __forceinline__ void read_target(const struct step_view &v, uint32_t occurrence, float4 (&target)[VEC]) {
    uint32_t distinct = v.target.batch.distinct[occurrence] & ~SINGLE_BIT, id = v.target.batch.ids[occurrence];
    read_row<G, VEC>(target, live_row(v.target.weights, id, distinct, v.counts->cold_first[SIDE_TARGET]), threadIdx.x % G, v.quads);
}

/* Thread blocks of measure_one on a multiprocessor at least: where a row is updated as soon as it is read, many warps with
 * few rows each do better than few with many. */
static constexpr int resident_blocks(int group, int slots, int threads) {
    return group > 32 || threads > CTA ? 1 : slots > 1 ? 3 : 4;
}

/* Blocks of one target. parts groups of a thread block share a block's contexts; their sums are added in their order. */
template <int G, int VEC, int NS, int THREADS>
static __global__ void __launch_bounds__(THREADS, resident_blocks(G, NS, THREADS)) measure_one(const __grid_constant__ struct step_view v) {
    constexpr uint32_t GROUPS = THREADS / G;
    __shared__ float4 sums[GROUPS > 1 ? GROUPS : 1][GROUPS > 1 ? VEC * G : 1];
    __shared__ double losses[GROUPS];
    uint32_t group = threadIdx.x / G, tid = threadIdx.x % G, block = (blockIdx.x * GROUPS + group) / v.parts, part = group % v.parts;
    if (block >= v.counts->blocks) return; /* all groups that share a block, or none */
    float4 target[VEC], gradient[VEC];
    uint32_t start = v.context_starts[block], end = v.context_starts[block + 1], each = (end - start + v.parts - 1) / v.parts;
    uint32_t first = start + part * each, last = first + each < end ? first + each : end;
    if (first > last) first = last;
    read_target<G, VEC>(v, block, target);
    clear_row<VEC>(gradient);
    double loss = meet_contexts<G, VEC, NS, true>(v, target, gradient, start, first, last, v.positives[block], v.coefficients + start);
    loss = warp_sum(loss);
    char *out = (char *)(v.target_gradients + block * v.span);
    if (v.parts == 1) {
        if (tid == 0) v.losses[block] = loss;
        if (!v.loss_only) write_row<G, VEC>(gradient, out, tid, v.quads);
        return;
    }
    if constexpr (GROUPS > 1) {
#pragma unroll
        for (int i = 0; i < VEC; i++) sums[group][i * G + tid] = gradient[i];
        if (tid == 0) losses[group] = loss;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (uint32_t p = 1; p < GROUPS; p++) loss += losses[p];
            v.losses[block] = loss;
        }
        for (uint32_t q = threadIdx.x; q < v.quads && !v.loss_only; q += THREADS) {
            float4 sum = sums[0][q];
#pragma unroll
            for (uint32_t p = 1; p < GROUPS; p++) {
                float4 more = sums[p][q];
                sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
            }
            ((float4 *)out)[q] = sum;
        }
    }
}

/* Blocks of several targets, a thread block each: rows come from the first cache but for the first time. */
template <int G, int VEC> static __global__ void __launch_bounds__(CTA) measure_many(const __grid_constant__ struct step_view v) {
    constexpr uint32_t GROUPS = CTA / G;
    constexpr int U = rows_at_once(4 * VEC, REGISTERS);
    uint32_t group = threadIdx.x / G, tid = threadIdx.x % G, lane = threadIdx.x & 31, block = blockIdx.x;
    if (block >= v.counts->blocks) return;
    uint32_t t0 = v.target_starts[block], t1 = v.target_starts[block + 1], c0 = v.context_starts[block], c1 = v.context_starts[block + 1];
    uint32_t contexts = c1 - c0, positives = v.positives[block], cold_first = v.counts->cold_first[SIDE_TARGET];
    float *coefficients = v.coefficients + v.term_starts[block];
    float4 x[VEC], sum[VEC];
    for (uint32_t t = t0 + group; t < t1; t += GROUPS) {
        read_target<G, VEC>(v, t, x);
        clear_row<VEC>(sum);
        double loss = meet_contexts<G, VEC, 0, false>(v, x, sum, c0, c0, c1, positives, coefficients + (uint64_t)(t - t0) * contexts);
        loss = warp_sum(loss);
        if (tid == 0) v.losses[t] = loss;
        if (!v.loss_only) write_row<G, VEC>(sum, (char *)(v.target_gradients + t * v.span), tid, v.quads);
    }
    if (v.loss_only) return;
    __syncthreads(); /* all coefficients are there */
    for (uint32_t c = group; c < contexts; c += GROUPS) {
        clear_row<VEC>(sum);
        for (uint32_t base = t0; base < t1; base += 32) {
            uint32_t here = t1 - base < 32 ? t1 - base : 32;
            struct found_row found = find_row(v.target, cold_first, base + lane, lane < here);
            float factor = lane < here ? coefficients[(uint64_t)(base + lane - t0) * contexts + c] : 0;
            for (uint32_t i = 0; i < here; i += U) {
                float4 row[U][VEC];
#pragma unroll
                for (int u = 0; u < U; u++) {
                    const char *weights = (const char *)__shfl_sync(ALL, found.weights, (i + u) & 31);
                    if (i + u < here) read_row<G, VEC>(row[u], weights, tid, v.quads);
                    else clear_row<VEC>(row[u]);
                }
#pragma unroll
                for (int u = 0; u < U; u++) {
                    float by = __shfl_sync(ALL, factor, (i + u) & 31);
                    if (i + u < here) add_row<VEC>(sum, by, row[u]);
                }
            }
        }
        write_row<G, VEC>(sum, (char *)(v.context_gradients + (c0 + c) * v.span), tid, v.quads);
    }
}

/* ---- accumulate ---- */

enum sum_of { SUM_TARGETS, SUM_BUFFER, SUM_PARTIALS };

struct work {
    const struct item *items;
    const uint32_t *count;
    const float *buffer; /* SUM_BUFFER, SUM_PARTIALS: rows of span floats */
    enum sum_of of;
    int side;
};

/* The i-th summand of an order: where it lies and what it is multiplied by. */
static __device__ __forceinline__ const char *summand(const struct step_view &v, const struct live_side &side, const struct work &work,
                                                      uint32_t i, float *factor) {
    *factor = 1;
    if (work.of == SUM_PARTIALS) return (const char *)(work.buffer + i * v.span);
    uint32_t occurrence = side.batch.order[i];
    if (work.of == SUM_BUFFER) return (const char *)(work.buffer + occurrence * v.span);
    uint32_t block = side.batch.block[occurrence]; /* of one target: its number is the occurrence of the target */
    *factor = v.coefficients[occurrence];
    return live_row(v.target.weights, v.target.batch.ids[block], v.target.batch.distinct[block] & ~SINGLE_BIT,
                    v.counts->cold_first[SIDE_TARGET]);
}

template <int G, int VEC, int NS>
static __global__ void __launch_bounds__(CTA) accumulate(const __grid_constant__ struct step_view v, const __grid_constant__ struct work work) {
    constexpr uint32_t GROUPS = CTA / G;
    constexpr int U = rows_at_once(4 * VEC, REGISTERS) < 4 ? rows_at_once(4 * VEC, REGISTERS) : 4;
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t tid = threadIdx.x % G, lane = threadIdx.x & 31, count = *work.count, cold_first = v.counts->cold_first[work.side];
    for (uint32_t at = blockIdx.x * GROUPS + threadIdx.x / G; at < count; at += gridDim.x * GROUPS) {
        struct item item = work.items[at];
        uint32_t id = side.batch.distinct_ids[item.row];
        char *weights = live_row(side.weights, id, item.row, cold_first), *state = live_row(side.state, id, item.row, cold_first);
        struct held_row<VEC, NS> held;
        float4 w[VEC], sum[VEC];
        bool last = item.partial == DRAW_NONE;
        held.updates = 0;
        if (last) {
            read_row<G, VEC>(w, weights, tid, v.quads);
            read_state<G, VEC, NS>(held, state, tid, v);
        }
        clear_row<VEC>(sum);
        for (uint32_t base = 0; base < item.count; base += 32) {
            uint32_t here = item.count - base < 32 ? item.count - base : 32;
            float factor = 0;
            unsigned long long found = 0;
            if (lane < here) found = (unsigned long long)(uintptr_t)summand(v, side, work, item.first + base + lane, &factor);
            for (uint32_t i = 0; i < here; i += U) {
                float4 row[U][VEC];
#pragma unroll
                for (int u = 0; u < U; u++) {
                    const char *from = (const char *)__shfl_sync(ALL, found, (i + u) & 31);
                    if (i + u < here) read_row<G, VEC>(row[u], from, tid, v.quads);
                    else clear_row<VEC>(row[u]);
                }
#pragma unroll
                for (int u = 0; u < U; u++) {
                    float by = __shfl_sync(ALL, factor, (i + u) & 31);
                    if (i + u < here) add_row<VEC>(sum, by, row[u]);
                }
            }
        }
        group_wait<G>(); /* all have read the row's update count */
        if (last && v.rule.constants.clip > 0) {
            const uint32_t *first = side.batch.distinct_starts + item.row;
            float squares[1] = {dot_rows<VEC>(sum, sum)};
            group_sum<G, 1>(squares);
            scale_row<VEC>(sum, rule_share(v.rule.constants.clip, first[1] - first[0], squares[0]));
        }
        if (last) update_row<G, VEC, NS>(held, sum, w, weights, state, tid, v);
        else write_row<G, VEC>(sum, (char *)(v.partials + item.partial * v.span), tid, v.quads);
    }
}

/* ---- the result ---- */

struct result_view {
    const double *losses;
    const struct batch_counts *counts;
    int one_target;         /* a loss a block; otherwise a loss a target */
    uint64_t cold_bytes[2]; /* of a cold row of each side */
    int written;            /* cold rows go back */
    uint64_t words;
    struct step_result *to;
};

static __global__ void __launch_bounds__(1024) tell_result(struct result_view r) {
    __shared__ double sums[32];
    double sum = 0;
    uint32_t count = r.one_target ? r.counts->blocks : r.counts->targets;
    for (uint32_t i = threadIdx.x; i < count; i += 1024) sum += r.losses[i];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(sums[threadIdx.x]);
    if (threadIdx.x) return;
    struct step_result result;
    result.loss = sum;
    result.examples = r.counts->blocks;
    result.pairs = r.counts->pairs;
    result.terms = r.counts->terms - r.counts->empty_terms;
    result.words = r.words;
    result.link_bytes = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t cold = r.counts->distinct[side] - r.counts->cold_first[side];
        result.link_bytes += r.cold_bytes[side] * (cold - r.counts->forwarded[side] + (r.written ? cold : 0));
    }
    *r.to = result;
    __threadfence_system();
}

/* ---- launching ---- */

typedef void measure_kernel(const struct step_view);
typedef void accumulate_kernel(const struct step_view, const struct work);

struct kernels {
    measure_kernel *one, *wide, *many; /* wide: one, with thread blocks of WIDE_CTA */
    accumulate_kernel *sum;
    uint32_t group; /* threads */
};

template <int G, int VEC, int NS> static struct kernels kernels_of(void) {
    struct kernels k = {measure_one<G, VEC, NS, CTA>, NULL, measure_many<G, VEC>, accumulate<G, VEC, NS>, G};
    if constexpr (G == 32) k.wide = measure_one<G, VEC, NS, WIDE_CTA>;
    return k;
}

template <int G, int VEC> static struct kernels kernels_by_slots(uint32_t slots) {
    switch (slots) {
    case 0: return kernels_of<G, VEC, 0>();
    case 1: return kernels_of<G, VEC, 1>();
    case 2: return kernels_of<G, VEC, 2>();
    default: return kernels_of<G, VEC, 3>();
    }
}

static struct kernels find_kernels(uint32_t quads, uint32_t slots) {
    if (quads <= 32) return kernels_by_slots<32, 1>(slots);
    if (quads <= 64) return kernels_by_slots<32, 2>(slots);
    if (quads <= 96) return kernels_by_slots<32, 3>(slots);
    if (quads <= 128) return kernels_by_slots<32, 4>(slots);
    if (quads <= 256) return kernels_by_slots<128, 2>(slots);
    if (quads <= 512) return kernels_by_slots<128, 4>(slots);
    return kernels_by_slots<128, 8>(slots);
}

static struct live_part live_part_of(const struct stage *stage, int side, int part, uint64_t offset) {
    const struct store *store = &stage->tables[side]->stores[part];
    struct live_part live;
    live.resident = store->gpu + offset;
    live.slots = (char *)stage->side[side].slots[part].data + offset;
    live.stride = store->stride;
    live.hot_rows = store->gpu_rows;
    return live;
}

static struct live_side live_side_of(const struct stage *stage, int side) {
    const struct backend_table *table = stage->tables[side];
    struct live_side live;
    live.batch = cuda_side(stage, side);
    live.side = side;
    live.weights = live_part_of(stage, side, 0, 0);
    live.state = table->shared ? live_part_of(stage, side, 0, (uint64_t)table->spec.layout.span * 4) : live_part_of(stage, side, 1, 0);
    return live;
}

static int check_tables(const struct step_request *r) {
    const struct record_layout *t = &r->target->spec.layout, *c = &r->context->spec.layout;
    struct rule_slot slots[RULE_SLOTS];
    if (t->dim != c->dim || t->span != c->span || t->slots != c->slots || t->counted != c->counted)
        return fail("the target and context tables have different records");
    if (!r->loss_only && (uint32_t)rule_slots(r->rule, slots) != t->slots)
        return fail("the rule has %d slots and the tables have %u", rule_slots(r->rule, slots), t->slots);
    if (t->span % 4) return fail("rows of %u floats are not whole 16 bytes", t->span);
    if (t->dim < 1 || t->dim > 4096) return fail("model.dim %u is not in 1..4096", t->dim);
    return 0;
}

/* Corrections by a row's own updates, made anew when the rate changes. */
static int prepare_corrections(struct backend *b, const struct step_request *request, struct rule_view *view) {
    if (!request->target->spec.layout.counted) return 0;
    if (gpu_grow(b, &b->corrections, sizeof(struct corrections), "bias corrections")) return -1;
    view->corrections = (const struct corrections *)b->corrections.data;
    if (b->corrections_ready && b->corrections_lr == request->lr && !memcmp(&b->corrections_rule, request->rule, sizeof *request->rule))
        return 0;
    fill_corrections<<<CORRECTIONS / CTA, CTA, 0, b->compute>>>(*request->rule, request->lr, (struct corrections *)b->corrections.data);
    CK_LAUNCH("fill_corrections");
    b->corrections_rule = *request->rule;
    b->corrections_lr = request->lr;
    b->corrections_ready = 1;
    return 0;
}

static int grow_buffers(struct backend *b, const struct stage *stage, uint64_t span) {
    const struct batch_sizes *room = &stage->room;
    uint64_t row = span * 4, most = room->targets > room->contexts ? room->targets : room->contexts;
    uint64_t pieces = 2 * most / UPDATE_PIECE + 2; /* rows of more than one piece: at most twice what they fill */
    if (gpu_grow(b, &b->gradients, room->targets * row, "a batch's gradients") ||
        gpu_grow(b, &b->partials, pieces * row, "a batch's partial sums"))
        return -1;
    if (stage->one_target) return 0;
    return gpu_grow(b, &b->context_gradients, room->contexts * row, "a batch's gradients");
}

static int fill_view(struct backend *b, const struct stage *stage, const struct step_request *request, struct step_view *v) {
    const struct record_layout *layout = &request->target->spec.layout;
    memset(v, 0, sizeof *v);
    v->target = live_side_of(stage, SIDE_TARGET);
    v->context = live_side_of(stage, SIDE_CONTEXT);
    if (!request->loss_only) {
        v->rule.constants = rule_prepare(request->rule, request->lr, request->behind);
        v->rule.rule = request->rule->rule;
        if (prepare_corrections(b, request, &v->rule)) return -1;
    }
    v->counts = stage->counts;
    v->target_starts = (const uint32_t *)stage->target_starts.data;
    v->context_starts = (const uint32_t *)stage->context_starts.data;
    v->term_starts = (const uint32_t *)stage->term_starts.data;
    v->positives = (const uint32_t *)stage->positives.data;
    v->coefficients = (float *)stage->coefficients.data;
    v->target_gradients = (float *)b->gradients.data;
    v->context_gradients = (float *)b->context_gradients.data;
    v->partials = (float *)b->partials.data;
    v->losses = (double *)stage->losses.data;
    v->quads = layout->span / 4;
    v->dim = layout->dim;
    v->span = layout->span;
    v->mean = request->mean;
    v->loss_only = request->loss_only;
    v->parts = 1;
    return 0;
}

/* Pieces, then the rows that took several. At most `pieces` of them. */
static int launch_sums(struct backend *b, const struct stage *stage, const struct kernels *k, const struct step_view *v, int side,
                       const float *buffer, enum sum_of of, uint32_t pieces) {
    struct work work;
    uint32_t groups = CTA / k->group, most = 16 * (uint32_t)b->processors, grid = (pieces + groups - 1) / groups;
    const struct live_side *live = side == SIDE_TARGET ? &v->target : &v->context;
    if (!pieces) return 0;
    work.items = live->batch.items;
    work.count = &stage->counts->items[side];
    work.buffer = buffer;
    work.of = of;
    work.side = side;
    k->sum<<<grid < most ? grid : most, CTA, 0, b->compute>>>(*v, work);
    CK_LAUNCH("accumulate");
    if (pieces <= UPDATE_PIECE) return 0;
    work.items = live->batch.longs;
    work.count = &stage->counts->longs[side];
    work.buffer = v->partials;
    work.of = SUM_PARTIALS;
    grid = (pieces / UPDATE_PIECE + groups) / groups;
    k->sum<<<grid < most ? grid : most, CTA, 0, b->compute>>>(*v, work);
    CK_LAUNCH("accumulate");
    return 0;
}

static int launch_step(struct backend *b, struct stage *stage, const struct step_request *request) {
    const struct batch_sizes *sizes = &stage->sizes;
    struct kernels k = find_kernels(request->target->spec.layout.span / 4, request->target->spec.layout.slots);
    struct step_view v;
    if (grow_buffers(b, stage, request->target->spec.layout.span) || fill_view(b, stage, request, &v)) return -1;
    if (stage->one_target) {
        int share = sizes->contexts / 32 >= sizes->blocks; /* contexts enough for several groups */
        int wide = share && k.wide && sizes->blocks <= WIDE_BLOCKS;
        uint32_t threads = wide ? WIDE_CTA : CTA, groups = threads / k.group;
        if (share) v.parts = groups;
        (wide ? k.wide : k.one)<<<share ? sizes->blocks : (sizes->blocks + groups - 1) / groups, threads, 0, b->compute>>>(v);
    } else {
        k.many<<<sizes->blocks, CTA, 0, b->compute>>>(v);
    }
    CK_LAUNCH("measure");
    if (request->loss_only) return 0;
    if (launch_sums(b, stage, &k, &v, SIDE_CONTEXT, v.context_gradients, stage->one_target ? SUM_TARGETS : SUM_BUFFER, sizes->contexts))
        return -1;
    return launch_sums(b, stage, &k, &v, SIDE_TARGET, v.target_gradients, SUM_BUFFER, sizes->targets);
}

static uint64_t cold_bytes(const struct backend_table *table) {
    uint64_t bytes = 0;
    for (int i = 0; i < table->parts; i++)
        if (table->stores[i].place != PLACE_GPU && table->stores[i].host) bytes += table->stores[i].stride;
    return bytes;
}

static int launch_result(struct backend *b, struct stage *stage, const struct step_request *request) {
    struct result_view r;
    memset(&r, 0, sizeof r);
    r.losses = (const double *)stage->losses.data;
    r.counts = stage->counts;
    r.one_target = stage->one_target;
    r.cold_bytes[SIDE_TARGET] = cold_bytes(request->target);
    r.cold_bytes[SIDE_CONTEXT] = cold_bytes(request->context);
    r.written = !request->loss_only;
    r.words = stage->words;
    r.to = stage->result;
    CK(cudaStreamWaitEvent(b->out, stage->stepped, 0));
    tell_result<<<1, 1024, 0, b->out>>>(r);
    CK_LAUNCH("tell_result");
    CK(cudaEventRecord(stage->done, b->out));
    return 0;
}

int cuda_step(struct backend *b, unsigned number, const struct step_request *request) {
    struct stage *stage = &b->stages[number];
    if (number >= b->depth || !stage->built || !stage->gathered) return fail("stage %u has no gathered batch to step", number);
    if (stage->tables[SIDE_TARGET] != request->target || stage->tables[SIDE_CONTEXT] != request->context)
        return fail("a step over other tables than its rows were gathered from");
    CK(cudaSetDevice(b->device));
    if (check_tables(request) || cuda_forward(b, stage)) return -1;
    if (stage->sizes.blocks && launch_step(b, stage, request)) return -1;
    CK(cudaEventRecord(stage->stepped, b->compute));
    return launch_result(b, stage, request);
}
