/* step_rule: an optimizer's rule on a record (optimizers.h has the rules themselves).
 *
 *   update_held()    a record that is completely in registers
 *   change_stored()  some quads of a record in memory, of any width and any rule
 */
#ifndef SPTX_CUDA_STEP_RULE_CUH
#define SPTX_CUDA_STEP_RULE_CUH

#include "step.cuh"
#include "step_widths.cuh"

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
/* Sets the columns of a chunk that are not in the dimension to zero: a row's last chunk may have such columns, and a rule may
 * turn a zero gradient into another value. */
template <class F>
static __device__ __forceinline__ void mask_chunk(float4 *quads, uint32_t chunk, const struct step_view &v) {
    constexpr uint32_t COLUMNS = 4 * F::QUADS;
    if (v.dim % COLUMNS && chunk == v.dim / COLUMNS)
#pragma unroll
        for (int q = 0; q < F::QUADS; q++) mask_columns(quads[q], chunk * F::QUADS + q, v.dim);
}

/* ---- a record's slots in registers ---- */

/* A kernel is compiled twice: for records with state, of any rule (STATE = true), and for records without state (sgd without
 * momentum).
 *
 * A slot's role is its number among the slots that its rule can have (rule_slots). Slots of the first two roles are kept in
 * registers. Few rules have a slot of the third role; it is read when it is changed, because registers for it would leave too few
 * for other uses. Kernels compiled for each number of roles were 1 to 4% faster with word2vec's loss, but there were three times as
 * many.
 */
enum { HELD_ROLES = 2, THIRD = 2 };

static constexpr __host__ __device__ int held_roles(bool state) {
    return state ? HELD_ROLES : 0;
}

/* Returns the number of quads of the slot with this role; 0 if the rule has no such slot. A bound instead of a branch keeps all
 * reads of a row in one basic block, which the compiler can reorder. */
static __device__ __forceinline__ uint32_t quads_of(const struct step_view &v, int role) {
    return v.rule.slot_at[role] != DRAW_NONE ? v.quads : 0;
}

/* A thread's part of a record's state: its chunks of the slots, by role, as stored; and the record's count of updates. The count
 * is read only if records have one. */
template <int VEC, bool STATE> struct held_state {
    float4 s[STATE ? HELD_ROLES : 1][VEC];
    uint32_t updates;
};

static __device__ __forceinline__ uint32_t *count_of(const struct step_view &v, char *state) {
    return (uint32_t *)(state + v.rule.count_at);
}
/* Returns a row's count of updates before this one, or the bits of its sum. A group must read it, then wait for all its threads,
 * and only then change rows. */
static __device__ __forceinline__ uint32_t read_updates(const struct step_view &v, char *state) {
    return v.rule.count_at != DRAW_NONE ? *count_of(v, state) : 0;
}
static __device__ __forceinline__ void write_updates(const struct step_view &v, char *state, uint32_t updates, uint32_t tid) {
    if (v.rule.count_at != DRAW_NONE && tid == 0) *count_of(v, state) = updates;
}

template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void read_state(struct held_state<VEC, STATE> &held, char *state, uint32_t tid,
                                                  const struct step_view &v) {
#pragma unroll
    for (int role = 0; role < held_roles(STATE); role++)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++) {
            float4 some[F::QUADS];
#pragma unroll
            for (float4 &quad : some) quad = make_float4(0, 0, 0, 0);
            if (i * G + tid < quads_of(v, role) / F::QUADS)
                read_state_chunk(some, state + v.rule.slot_at[role], i * G + tid, v.rule.halves);
            put_chunk<F, VEC>(held.s[role], some, i);
        }
    held.updates = read_updates(v, state);
    if constexpr (STATE)
#pragma unroll
        for (int i = 0; i < VEC / F::QUADS; i++)
            if (i * G + tid < quads_of(v, THIRD) / F::QUADS)
                prefetch_state_chunk<F>(state + v.rule.slot_at[THIRD], i * G + tid, v.rule.halves);
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
                store_state_chunk(state + v.rule.slot_at[role], i * G + tid, some, v.rule.halves, v.rule.slot_number[role],
                                  rounding);
        }
}

/* A value of RULE for kernels compiled for every rule: the rule is then an argument. */
enum { ANY_RULE = RULE_COUNT };

/* Four columns of a record: their weights, and their values in the slots, by role. */
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
/* Updates a quad by the rule RULE or, if RULE is ANY_RULE, by `rule`. */
template <int RULE>
static __device__ __forceinline__ void change_quad(struct record_quad &quad, const struct rule_step &k, float4 g, int rule) {
    switch (RULE == ANY_RULE ? rule : RULE) { RULES(CHANGE_QUAD) }
}
#undef CHANGE_QUAD

/* Returns the quad as any rule changes it. Kernels call this for rules that few runs use: code for all in each kernel took
 * twice as long to compile. */
static __device__ __noinline__ struct record_quad changed_quad(struct record_quad quad, struct rule_step k, float4 g, int rule) {
    change_quad<ANY_RULE>(quad, k, g, rule);
    return quad;
}

/* Updates a thread's quads of a record by RULE. w, and the slots of the first two roles, are in registers; the slot of the third
 * role is in memory. */
template <class F, int RULE, int G, int VEC, bool STATE>
static __device__ __forceinline__ void change_columns(struct held_state<VEC, STATE> &held, const struct rule_step &constants,
                                                      const float4 (&g)[VEC], float4 (&w)[VEC], char *state, uint32_t tid,
                                                      const struct step_view &v, const struct rounding_keys &rounding) {
    constexpr int HELD = held_roles(STATE);
    struct rule_step k = constants;
    if (!STATE) k.momentum = 0; /* 0 already, but now the compiler can leave momentum out */
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
        if (third)
            store_state_chunk(state + v.rule.slot_at[THIRD], i * G + tid, absent, v.rule.halves, v.rule.slot_number[THIRD],
                              rounding);
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

/* Updates a record that is in registers, and counts the update. All threads of the group must have read its count of updates
 * before. */
template <class F, int G, int VEC, bool STATE>
static __device__ __forceinline__ void update_held(struct held_state<VEC, STATE> &held, const float4 (&g)[VEC],
                                                   float4 (&w)[VEC], char *weights, char *state, uint32_t tid,
                                                   const struct step_view &v, const struct named_row &row) {
    if constexpr (!STATE) {
        change_record<F, G, VEC, false>(held, v.rule.constants, g, w, weights, state, tid, v, row);
    } else {
        change_record<F, G, VEC, true>(held, row_constants(v.rule, held.updates), g, w, weights, state, tid, v, row);
        write_updates(v, state, held.updates + 1, tid);
    }
}

/* B quads of a record, in the form in which they are stored. */
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

/* Applies the rule to B quads of a record, and writes them back. All threads of the group must have read its count of updates.
 * `updates`: that count, or the bits of the row's new sum. */
template <class F, int G, int B>
static __device__ __forceinline__ void change_stored(struct stored_record<F, B> &r, const float4 (&g)[B], char *weights,
                                                     char *state, uint32_t updates, uint32_t chunk, const struct step_view &v,
                                                     const struct named_row &row) {
    float4 w[B];
    open_row<F, B>(w, r.weights);
    struct rule_step k = row_constants(v.rule, updates); /* computed here so that the record's reads need not wait for it */
    if (v.rule.by_row) k.lr = rule_row_rate(&k, __uint_as_float(updates));
    change_record<F, G, B, true>(r.state, k, g, w, weights, state, chunk, v, row);
}

/* Prefetches `bytes` of memory into the GPU's cache; the group reads them a little later. */
template <int G> static __device__ __forceinline__ void ask_for_lines(const char *from, uint64_t bytes) {
    constexpr uint32_t LINE = 128;
    for (uint32_t at = threadIdx.x % G * LINE; at < bytes; at += G * LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
}

/* ---- a piece of an update: some of a row's gradients, or all ---- */

/* Number of shares into which a row's partial sums are divided. The partial sums of a share are added in order, then the shares'
 * sums in order. So the bits are the same whether several groups add one share each or one group adds all shares. */
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

/* Returns the squared norm of a row's gradient `sum`; 0 if the rule does not bound gradients. All threads of a warp must call
 * it. */
template <int G, int VEC>
static __device__ __forceinline__ float sum_squares(const float4 (&sum)[VEC], const struct step_view &v) {
    if (!(v.rule.constants.clip > 0)) return 0;
    float squares[1] = {dot_rows<VEC>(sum, sum)};
    group_sum<G, 1>(squares);
    return squares[0];
}

/* Returns the factor that bounds a row's gradient, whose squared norm is `squares`; 1 if the rule does not bound gradients.
 * starts: distinct_starts of the row set. */
static __device__ __forceinline__ float share_of_row(const struct step_view &v, const uint32_t *starts, uint32_t row,
                                                     float squares) {
    float clip = v.rule.constants.clip;
    return clip > 0 ? rule_share(clip, starts[row + 1] - starts[row], squares) : 1.0f;
}

/* Where the sum of a piece of a row's gradients is written, or how the row is updated by it. */
struct piece_end {
    const uint32_t *starts; /* distinct_starts of the row set: they give the row's number of places */
    float *partials;        /* rows of span floats; the sum is written here if the row has several pieces */
    float *kept;            /* [span] the row's whole sum is written here, and another kernel updates the row; NULL: this kernel
                             * updates the row */
};

/* Uses the sum of a piece of a record that may have state: updates the row, or stores the sum as the row's whole or partial sum.
 * gained(chunk, sum) sums B quads of a thread; all threads of a warp must call it. real: the thread's group has a piece. A row
 * wider than G x B quads is worked on by a whole warp (G is 32). Returns the squared norm of the sum, if the rule uses it. */
template <class F, int G, int B, typename Gained>
static __device__ __forceinline__ float end_piece(bool real, const struct item &item, char *weights, char *state,
                                                  const struct named_row &row, const struct piece_end &to,
                                                  const struct step_view &v, Gained gained) {
    constexpr uint32_t STEP = G * B / F::QUADS;
    const uint32_t chunks = v.quads / F::QUADS;
    uint32_t tid = threadIdx.x % G;
    bool squared = v.rule.constants.clip > 0 || v.rule.by_row, updated = real && !to.kept && item.partial == DRAW_NONE;
    uint32_t updates = updated ? read_updates(v, state) : 0;
    float4 sum[B]; /* if rows of one warp may take different branches below, the sum is computed before them */
    float squares[1] = {0};
    __syncwarp(); /* all threads have read the row's count of updates */
#pragma unroll 1
    for (uint32_t chunk = tid; (G < 32 || squared) && chunk - tid < chunks; chunk += STEP) {
        gained(chunk, sum);
        squares[0] = dot_rows<B>(sum, sum, squares[0]);
    }
    if (squared) group_sum<G, 1>(squares);
    float share = updated ? share_of_row(v, to.starts, item.row, squares[0]) : 1;
    if (v.rule.by_row) updates = __float_as_uint(rule_row_sum(__uint_as_float(updates), share * share * squares[0], v.dim));
#pragma unroll 1
    for (uint32_t chunk = tid; real && chunk - tid < chunks; chunk += STEP) {
        struct stored_record<F, B> record;
        if (updated) read_record<F, G, B>(record, weights, state, chunk, v);
        if (G == 32) gained(chunk, sum);
        if (updated) {
            scale_row<B>(sum, share);
            change_stored<F, G, B>(record, sum, weights, state, updates, chunk, v, row);
        } else {
            write_row<F, G, B>(sum, to.kept ? to.kept : to.partials + item.partial * v.span, chunk, v.quads);
        }
    }
    if (updated) write_updates(v, state, v.rule.by_row ? updates : updates + 1, tid);
    return squares[0];
}

#endif
