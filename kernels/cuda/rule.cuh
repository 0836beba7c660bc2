/* rule: an optimizer's rule on a record in registers (optimizers.h has the rules themselves). */
#ifndef SPTX_CUDA_RULE_CUH
#define SPTX_CUDA_RULE_CUH

#include "step.cuh"

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

#undef SLOT
#undef COLUMNS

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
static __device__ __forceinline__ void read_state(struct held_row<VEC, NS> &held, const char *state, uint32_t tid,
                                                  const struct step_view &v) {
#pragma unroll
    for (int i = 0; i < NS; i++) read_row<G, VEC>(held.s[i], state + i * v.span * 4, tid, v.quads);
    held.updates = NS && v.rule.corrections ? *(const uint32_t *)(state + NS * v.span * 4) : 0;
}

/* The rule, then the record back to where it came from. All threads of the group have read it. */
template <int G, int VEC, int NS>
static __device__ __forceinline__ void update_row(struct held_row<VEC, NS> &held, const float4 (&g)[VEC],
                                                  float4 (&w)[VEC], char *weights, char *state, uint32_t tid,
                                                  const struct step_view &v) {
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

/* ---- a piece of an update: some of a row's gradients, or all ---- */

/* Partial sums of a row are added up in shares, each in its order, and then the shares in theirs: the same bits whether groups
 * have a share each or one has all. */
enum { PARTIAL_SHARES = 4 };

/* Share `share` of `count` partial sums, which lie row after row. */
template <int G, int VEC>
static __device__ __forceinline__ void add_share(float4 (&sum)[VEC], const float *partials, uint32_t share, uint32_t count,
                                                 const struct step_view &v) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS / 2);
    uint32_t each = (count + PARTIAL_SHARES - 1) / PARTIAL_SHARES, end = min((share + 1) * each, count);
    clear_row<VEC>(sum);
    for (uint32_t i = share * each; i < end; i += U) {
        float4 row[U][VEC];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) read_row<G, VEC>(row[u], (const char *)(partials + (i + u) * v.span), threadIdx.x % G, v.quads);
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) add_row<VEC>(sum, 1, row[u]);
    }
}

/* The record of a piece that ends its row; one that does not leaves a partial sum, and reads none. */
template <int G, int VEC, int NS>
static __device__ __forceinline__ void begin_piece(bool last, float4 (&w)[VEC], struct held_row<VEC, NS> &held,
                                                   const char *weights, const char *state, uint32_t tid,
                                                   const struct step_view &v) {
    held.updates = 0;
    if (!last) return;
    read_row<G, VEC>(w, weights, tid, v.quads);
    read_state<G, VEC, NS>(held, state, tid, v);
}

/* The squares of a row's gradient `sum`, where the rule bounds its norm. By all threads of a warp. */
template <int G, int VEC>
static __device__ __forceinline__ float sum_squares(const float4 (&sum)[VEC], const struct step_view &v) {
    if (!(v.rule.constants.clip > 0)) return 0;
    float squares[1] = {dot_rows<VEC>(sum, sum)};
    group_sum<G, 1>(squares);
    return squares[0];
}

/* The rule, on the gradient shortened where the rule bounds it, or the partial sum. starts: distinct_starts of the row set. All
 * threads of the group have read the row's update count. */
template <int G, int VEC, int NS>
static __device__ __forceinline__ void end_piece(const struct item &item, const uint32_t *starts, float4 (&sum)[VEC],
                                                 float squares, float4 (&w)[VEC], struct held_row<VEC, NS> &held,
                                                 char *weights, char *state, float *partials, uint32_t tid,
                                                 const struct step_view &v) {
    if (item.partial != DRAW_NONE) {
        write_row<G, VEC>(sum, (char *)(partials + item.partial * v.span), tid, v.quads);
        return;
    }
    float clip = v.rule.constants.clip;
    if (clip > 0) scale_row<VEC>(sum, rule_share(clip, starts[item.row + 1] - starts[item.row], squares));
    update_row<G, VEC, NS>(held, sum, w, weights, state, tid, v);
}

#endif
