/* rule: an optimizer's rule on a record (optimizers.h has the rules themselves).
 *
 *   records without state   sgd: update_plain()
 *   records with state      any rule and any number of slots, which the kernel is told: update_held() of one that is in registers
 *                           as a whole, update_state() of one that is not, of any width
 */
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

/* Columns past the dimension stay zero, whatever a rule makes of a zero gradient. */
static __device__ __forceinline__ void mask_columns(float4 &x, uint32_t quad, uint32_t dim) {
    if (4 * quad + 3 < dim) return;
    if (4 * quad >= dim) x.x = 0;
    if (4 * quad + 1 >= dim) x.y = 0;
    if (4 * quad + 2 >= dim) x.z = 0;
    x.w = 0;
}

/* ---- records without state: all columns of a thread at once ---- */

template <int G, int VEC>
static __device__ __forceinline__ void update_plain(const float4 (&g)[VEC], float4 (&w)[VEC], char *weights, uint32_t tid,
                                                    const struct step_view &v) {
    struct rule_step k = v.rule.constants;
    float unused = 0;
    k.momentum = 0;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) rule_sgd(&k, (&g[i].x)[e], &w[i].x + e, &unused, &unused, &unused);
        if (v.dim & 3) mask_columns(w[i], i * G + tid, v.dim);
    }
    write_row<G, VEC>(w, weights, tid, v.quads);
}

/* ---- records with state ---- */

/* Quads of a slot; none of one that the rule has not. A bound instead of a branch leaves the reads of a row in one stretch of code,
 * which the compiler may put in any order. */
static __device__ __forceinline__ uint32_t quads_of(const struct step_view &v, int role) {
    return v.rule.slot_at[role] != DRAW_NONE ? v.quads : 0;
}

/* What a thread has of a record's state: quads tid, tid + G .. of its first two slots, by their role in the rule. Few rules have a
 * third, which is read where it is changed: registers for it would be taken from every rule. */
enum { HELD_SLOTS = 2, THIRD = 2 };
template <int VEC> struct held_state {
    float4 s[HELD_SLOTS][VEC];
};

template <int G, int VEC>
static __device__ __forceinline__ void read_state(struct held_state<VEC> &held, char *state, uint32_t tid,
                                                  const struct step_view &v) {
#pragma unroll
    for (int role = 0; role < HELD_SLOTS; role++)
        read_row<G, VEC>(held.s[role], state + v.rule.slot_at[role], tid, quads_of(v, role));
#pragma unroll
    for (int i = 0; i < VEC; i++)
        if (i * G + tid < quads_of(v, THIRD))
            asm volatile("prefetch.L2 [%0];" ::"l"((const float4 *)(state + v.rule.slot_at[THIRD]) + i * G + tid));
}

static constexpr __host__ __device__ bool may_have_third(int rule) {
    return rule == RULE_RMSPROP || rule == RULE_ADAM || rule == RULE_ADAMW;
}

/* A rule of so many columns: w and the record's slots s0, s1 in registers, its third slot in memory, if it has one. */
#define RULE_CASE(name, enumerator)                                                                                    \
    case enumerator:                                                                                                   \
        _Pragma("unroll") for (int i = 0; i < VEC; i++) {                                                              \
            float4 third = make_float4(0, 0, 0, 0), *third_at = (float4 *)(state + v.rule.slot_at[THIRD]) + i * G + tid; \
            bool thirds = may_have_third(enumerator) && i * G + tid < quads_of(v, THIRD);                              \
            if (thirds) third = *third_at;                                                                             \
            _Pragma("unroll") for (int e = 0; e < 4; e++)                                                              \
                rule_##name(&k, (&g[i].x)[e], &w[i].x + e, &held.s[0][i].x + e, &held.s[1][i].x + e, &third.x + e);     \
            if (v.dim & 3) mask_columns(third, i * G + tid, v.dim);                                                    \
            if (thirds) *third_at = third;                                                                             \
        }                                                                                                              \
        break;

/* The rule, then the record back to where it came from. */
template <int G, int VEC>
static __device__ __forceinline__ void change_record(struct held_state<VEC> &held, const struct rule_step &k,
                                                     const float4 (&g)[VEC], float4 (&w)[VEC], char *weights, char *state,
                                                     uint32_t tid, const struct step_view &v) {
    switch (v.rule.rule) { RULES(RULE_CASE) }
    if (v.dim & 3)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            mask_columns(w[i], i * G + tid, v.dim);
#pragma unroll
            for (int role = 0; role < HELD_SLOTS; role++) mask_columns(held.s[role][i], i * G + tid, v.dim);
        }
    write_row<G, VEC>(w, weights, tid, v.quads);
#pragma unroll
    for (int role = 0; role < HELD_SLOTS; role++)
        write_row<G, VEC>(held.s[role], state + v.rule.slot_at[role], tid, quads_of(v, role));
}

#undef RULE_CASE

static __device__ __forceinline__ uint32_t *count_of(const struct step_view &v, char *state) {
    return (uint32_t *)(state + v.rule.count_at);
}
/* The updates that a row counts, as it was before: whoever changes rows reads them first, waits for its group, and goes on. */
static __device__ __forceinline__ uint32_t read_updates(const struct step_view &v, char *state) {
    return v.rule.corrections ? *count_of(v, state) : 0;
}
static __device__ __forceinline__ void write_updates(const struct step_view &v, char *state, uint32_t updates, uint32_t tid) {
    if (v.rule.corrections && tid == 0) *count_of(v, state) = updates;
}
/* Those of found rows that stand once, a lane a row. By all threads of a group. */
template <int G> static __device__ __forceinline__ void count_updates(struct found_row &found, const struct step_view &v) {
    if (!v.rule.corrections) return;
    if (found.single) found.updates = read_updates(v, (char *)found.state);
    group_wait<G>();
}

/* The rule on a record that is all in registers. */
template <int G, int VEC>
static __device__ __forceinline__ void update_held(struct held_state<VEC> &held, uint32_t updates, const float4 (&g)[VEC],
                                                   float4 (&w)[VEC], char *weights, char *state, uint32_t tid,
                                                   const struct step_view &v) {
    change_record<G, VEC>(held, row_constants(v.rule, updates), g, w, weights, state, tid, v);
    write_updates(v, state, updates + 1, tid);
}

/* The rule on a record of any width, B quads of a thread at a time: gradient(quad, g) gives those of quads quad, quad + G .. All
 * threads of the group call it together, for quads past the row too. */
template <int G, int B, typename Gradient>
static __device__ __forceinline__ void update_state(char *weights, char *state, uint32_t updates, uint32_t tid,
                                                    const struct step_view &v, Gradient gradient) {
    struct rule_step k = row_constants(v.rule, updates);
#pragma unroll 1
    for (uint32_t quad = tid; quad - tid < v.quads; quad += G * B) {
        struct held_state<B> held;
        float4 w[B], g[B];
        read_row<G, B>(w, weights, quad, v.quads);
        read_state<G, B>(held, state, quad, v);
        gradient(quad, g);
        change_record<G, B>(held, k, g, w, weights, state, quad, v);
    }
    write_updates(v, state, updates + 1, tid);
}

/* What a group works on a little later, on its way into the GPU's cache. */
template <int G> static __device__ __forceinline__ void ask_for_lines(const char *from, uint64_t bytes) {
    constexpr uint32_t LINE = 128;
    for (uint32_t at = threadIdx.x % G * LINE; at < bytes; at += G * LINE) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
}

/* ---- a piece of an update: some of a row's gradients, or all ---- */

/* Partial sums of a row are added up in shares, each in its order, and then the shares in theirs: the same bits whether groups
 * have a share each or one has all. */
enum { PARTIAL_SHARES = 4 };

/* Share `share` of `count` partial sums, which lie row after row. */
template <int G, int VEC>
static __device__ __forceinline__ void add_share(float4 (&sum)[VEC], const float *partials, uint32_t share, uint32_t count,
                                                 uint32_t tid, const struct step_view &v) {
    constexpr int U = rows_at_once(4 * VEC, REGISTERS / 2);
    uint32_t each = (count + PARTIAL_SHARES - 1) / PARTIAL_SHARES, end = min((share + 1) * each, count);
    clear_row<VEC>(sum);
    for (uint32_t i = share * each; i < end; i += U) {
        float4 row[U][VEC];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) read_row<G, VEC>(row[u], (const char *)(partials + (i + u) * v.span), tid, v.quads);
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < end) add_row<VEC>(sum, 1, row[u]);
    }
}

/* The squares of a row's gradient `sum`, where the rule bounds its norm. By all threads of a warp. */
template <int G, int VEC>
static __device__ __forceinline__ float sum_squares(const float4 (&sum)[VEC], const struct step_view &v) {
    if (!(v.rule.constants.clip > 0)) return 0;
    float squares[1] = {dot_rows<VEC>(sum, sum)};
    group_sum<G, 1>(squares);
    return squares[0];
}

/* What a row's gradient is multiplied by. starts: distinct_starts of the row set. */
static __device__ __forceinline__ float share_of_row(const struct step_view &v, const uint32_t *starts, uint32_t row, float squares) {
    float clip = v.rule.constants.clip;
    return clip > 0 ? rule_share(clip, starts[row + 1] - starts[row], squares) : 1.0f;
}

/* Where the sum of a piece goes that does not change its row, and what is known of rows that it does change. */
struct piece_end {
    const uint32_t *starts; /* distinct_starts of the row set */
    float *partials;        /* rows of span floats */
    float *kept;            /* span floats, where the row's whole sum is kept and not used yet; NULL: it is used */
};

/* What the sum of a piece leads to where records may have state: the rule, or the sum itself, kept or a partial one.
 * gained(quad, sum) sums B quads of a thread; all threads of a warp call it together. real: the thread's group has the piece. Rows
 * wider than G x B quads are a warp's (G is 32). The squares of the sum are given back, where the rule bounds them. */
template <int G, int B, typename Gained>
static __device__ __forceinline__ float end_piece(bool real, const struct item &item, char *weights, char *state,
                                                  const struct piece_end &to, const struct step_view &v, Gained gained) {
    uint32_t tid = threadIdx.x % G;
    bool bounded = v.rule.constants.clip > 0, updated = real && !to.kept && item.partial == DRAW_NONE;
    uint32_t updates = updated ? read_updates(v, state) : 0;
    float4 whole[B]; /* of rows that lie side by side in a warp: their sums, since not all of them may go the same way below */
    float squares[1] = {0};
    __syncwarp(); /* all have read the row's update count */
    for (uint32_t quad = tid; (G < 32 || bounded) && quad - tid < v.quads; quad += G * B) {
        gained(quad, whole);
        squares[0] += dot_rows<B>(whole, whole);
    }
    if (bounded) group_sum<G, 1>(squares);
    auto sum_at = [&](uint32_t quad, float4(&sum)[B]) {
        if constexpr (G == 32) gained(quad, sum);
        else
#pragma unroll
            for (int i = 0; i < B; i++) sum[i] = whole[i];
    };
    if (updated) {
        float share = share_of_row(v, to.starts, item.row, squares[0]);
        update_state<G, B>(weights, state, updates, tid, v, [&](uint32_t quad, float4(&g)[B]) {
            sum_at(quad, g);
            scale_row<B>(g, share);
        });
    } else if (real) {
        char *sum_to = (char *)(to.kept ? to.kept : to.partials + item.partial * v.span);
        for (uint32_t quad = tid; quad - tid < v.quads; quad += G * B) {
            float4 sum[B];
            sum_at(quad, sum);
            write_row<G, B>(sum, sum_to, quad, v.quads);
        }
    }
    return squares[0];
}

#endif
