/* step_rule: an optimizer's rule on a record (optimizers.h has the rules themselves).
 *
 *   update_held()    a record that is in registers as a whole
 *   update_state()   a record of any width and of any rule, which lies in memory
 */
#ifndef SPTX_CUDA_STEP_RULE_CUH
#define SPTX_CUDA_STEP_RULE_CUH

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

/* ---- a record's slots in registers ---- */

/* ROLES says which slots a kernel is compiled for; a slot's role is its place among those that its rule can have (rule_slots).
 *
 *   0          no state at all: sgd
 *   1, 2, 3    slots in the first so many roles, all in registers: where a record waits in registers beside others
 *   ANY_ROLES  whatever the rule has: the first two roles in registers; the third, which few rules have, is read where it is
 *              changed, since registers for it would be taken from every rule
 */
enum { ANY_ROLES = 4, THIRD = 2 };

static constexpr __host__ __device__ int held_roles(int roles) {
    return roles == ANY_ROLES ? 2 : roles;
}

/* Returns 1 where records of a rule can have slots in just so many roles. */
static constexpr __host__ __device__ bool may_have_roles(int rule, int roles) {
    switch (rule) {
    case RULE_SGD: return roles == 0 || roles == 1 || roles == ANY_ROLES;
    case RULE_ADAGRAD:
    case RULE_ASGD: return roles == 1 || roles == ANY_ROLES;
    case RULE_RMSPROP: return roles >= 1;
    case RULE_ADAM:
    case RULE_ADAMW: return roles >= 2;
    default: return roles == 2 || roles == ANY_ROLES;
    }
}

/* Quads of a slot; none of one that the rule has not: any of several, or rmsprop's momentum beside its mean. A bound instead of a
 * branch leaves the reads of a row in one stretch of code, which the compiler may put in any order. */
template <int ROLES> static __device__ __forceinline__ uint32_t quads_of(const struct step_view &v, int role) {
    return ROLES < 3 || v.rule.slot_at[role] != DRAW_NONE ? v.quads : 0;
}

/* A record's state as a thread has it: quads tid, tid + G and so on of its slots, by role, and the record's count of updates,
 * where it has one. */
template <int VEC, int ROLES> struct held_state {
    float4 s[ROLES ? held_roles(ROLES) : 1][VEC];
    uint32_t updates;
};

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

template <int G, int VEC, int ROLES>
static __device__ __forceinline__ void read_state(struct held_state<VEC, ROLES> &held, char *state, uint32_t tid,
                                                  const struct step_view &v) {
#pragma unroll
    for (int role = 0; role < held_roles(ROLES); role++)
        read_row<G, VEC>(held.s[role], state + v.rule.slot_at[role], tid, quads_of<ROLES>(v, role));
    held.updates = read_updates(v, state);
    if constexpr (ROLES == ANY_ROLES)
#pragma unroll
        for (int i = 0; i < VEC; i++)
            if (i * G + tid < quads_of<ROLES>(v, THIRD))
                prefetch_quad(state + v.rule.slot_at[THIRD], i * G + tid);
}

/* The constants without what rules of so few roles leave out, so that the compiler leaves it out, too. */
template <int ROLES> static __device__ __forceinline__ struct rule_step constants_of(struct rule_step k, int rule) {
    if (ROLES < 3) k.centered = 0, k.amsgrad = 0;
    if (ROLES == 0 || (ROLES == 1 && rule != RULE_SGD)) k.momentum = 0;
    return k;
}

/* One rule on a thread's quads i x G + tid of a record: w and the slots in registers, and the third that ANY_ROLES leaves in
 * memory. change(k, gradient, weight, slot 0, slot 1, slot 2) is the rule on a column. */
template <int RULE, int G, int VEC, int ROLES, typename Change>
static __device__ __forceinline__ void change_columns(struct held_state<VEC, ROLES> &held, const struct rule_step &constants,
                                                      const float4 (&g)[VEC], float4 (&w)[VEC], char *state, uint32_t tid,
                                                      const struct step_view &v, Change change) {
    constexpr int HELD = held_roles(ROLES);
    struct rule_step k = constants_of<ROLES>(constants, RULE);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        float4 absent = make_float4(0, 0, 0, 0);
        bool third = ROLES == ANY_ROLES && may_have_roles(RULE, 3) && i * G + tid < quads_of<ROLES>(v, THIRD);
        if (third) absent = read_quad(state + v.rule.slot_at[THIRD], i * G + tid);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float *slot[RULE_SLOTS];
#pragma unroll
            for (int role = 0; role < RULE_SLOTS; role++)
                slot[role] = (role < HELD ? &held.s[role < HELD ? role : 0][i].x : &absent.x) + e;
            change(k, (&g[i].x)[e], &w[i].x + e, slot[0], slot[1], slot[2]);
        }
        if (v.dim & 3) mask_columns(absent, i * G + tid, v.dim);
        if (third) write_quad(state + v.rule.slot_at[THIRD], i * G + tid, absent);
    }
}

#define RULE_CASE(name, enumerator)                                                                                    \
    case enumerator:                                                                                                   \
        if constexpr (may_have_roles(enumerator, ROLES))                                                               \
            change_columns<enumerator, G, VEC, ROLES>(held, k, g, w, state, tid, v,                                    \
                                                      [](const struct rule_step &step, float gradient, float *weight, float *s0, \
                                                         float *s1, float *s2) {                                       \
                                                          rule_##name(&step, gradient, weight, s0, s1, s2);            \
                                                      });                                                              \
        break;

/* The rule, then the record back to where it came from. */
template <int G, int VEC, int ROLES>
static __device__ __forceinline__ void change_record(struct held_state<VEC, ROLES> &held, const struct rule_step &k,
                                                     const float4 (&g)[VEC], float4 (&w)[VEC], char *weights, char *state,
                                                     uint32_t tid, const struct step_view &v) {
    switch (ROLES ? v.rule.rule : (int)RULE_SGD) { RULES(RULE_CASE) }
    if (v.dim & 3)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            mask_columns(w[i], i * G + tid, v.dim);
#pragma unroll
            for (int role = 0; role < held_roles(ROLES); role++) mask_columns(held.s[role][i], i * G + tid, v.dim);
        }
    write_row<G, VEC>(w, weights, tid, v.quads);
#pragma unroll
    for (int role = 0; role < held_roles(ROLES); role++)
        write_row<G, VEC>(held.s[role], state + v.rule.slot_at[role], tid, quads_of<ROLES>(v, role));
}

#undef RULE_CASE

/* The rule on a record that waits in registers. All threads of the group have read its count. */
template <int G, int VEC, int ROLES>
static __device__ __forceinline__ void update_held(struct held_state<VEC, ROLES> &held, const float4 (&g)[VEC],
                                                   float4 (&w)[VEC], char *weights, char *state, uint32_t tid,
                                                   const struct step_view &v) {
    if constexpr (ROLES == 0) {
        change_record<G, VEC, 0>(held, v.rule.constants, g, w, weights, state, tid, v);
    } else {
        change_record<G, VEC, ROLES>(held, row_constants(v.rule, held.updates), g, w, weights, state, tid, v);
        write_updates(v, state, held.updates + 1, tid);
    }
}

/* The rule on a record of any width, B quads of a thread at a time: gradient(quad, g) gives those of quads quad, quad + G .. All
 * threads of the group call it together, for quads past the row too. */
template <int G, int B, typename Gradient>
static __device__ __forceinline__ void update_state(char *weights, char *state, uint32_t updates, uint32_t tid,
                                                    const struct step_view &v, Gradient gradient) {
#pragma unroll 1
    for (uint32_t quad = tid; quad - tid < v.quads; quad += G * B) {
        struct held_state<B, ANY_ROLES> held;
        float4 w[B], g[B];
        read_row<G, B>(w, weights, quad, v.quads);
        read_state<G, B, ANY_ROLES>(held, state, quad, v);
        gradient(quad, g);
        struct rule_step k = row_constants(v.rule, updates); /* here: the reads above do not wait for it */
        change_record<G, B, ANY_ROLES>(held, k, g, w, weights, state, quad, v);
    }
    write_updates(v, state, updates + 1, tid);
}

/* Asks for what a group works on a little later, so that it is in the GPU's cache by then. */
template <int G> static __device__ __forceinline__ void ask_for_lines(const char *from, uint64_t bytes) {
    constexpr uint32_t LINE = 128;
    for (uint32_t at = threadIdx.x % G * LINE; at < bytes; at += G * LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
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
            if (i + u < end) read_row<G, VEC>(row[u], partials + (i + u) * v.span, tid, v.quads);
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

/* Returns the factor that bounds a row's gradient. starts: distinct_starts of the row set. */
static __device__ __forceinline__ float share_of_row(const struct step_view &v, const uint32_t *starts, uint32_t row,
                                                     float squares) {
    float clip = v.rule.constants.clip;
    return clip > 0 ? rule_share(clip, starts[row + 1] - starts[row], squares) : 1.0f;
}

/* Says where the sum of a piece goes if it does not change its row, and how many places a row has if it does. */
struct piece_end {
    const uint32_t *starts; /* distinct_starts of the row set */
    float *partials;        /* rows of span floats */
    float *kept;            /* span floats, where the row's whole sum is kept and not used yet; NULL: it is used */
};

/* Uses the sum of a piece where records may have state: the rule, or the sum is kept, as a row's or as a partial one.
 * gained(quad, sum) sums B quads of a thread; all threads of a warp call it together. real: the thread's group has the piece. Rows
 * wider than G x B quads are a warp's (G is 32). The squares of the sum are given back, where the rule bounds them. */
template <int G, int B, typename Gained>
static __device__ __forceinline__ float end_piece(bool real, const struct item &item, char *weights, char *state,
                                                  const struct piece_end &to, const struct step_view &v, Gained gained) {
    uint32_t tid = threadIdx.x % G;
    bool bounded = v.rule.constants.clip > 0, updated = real && !to.kept && item.partial == DRAW_NONE;
    uint32_t updates = updated ? read_updates(v, state) : 0;
    float4 whole[B]; /* holds the sums of rows side by side in a warp, since not all of them may go the same way below */
    float squares[1] = {0};
    __syncwarp(); /* all have read the row's update count */
    for (uint32_t quad = tid; (G < 32 || bounded) && quad - tid < v.quads; quad += G * B) {
        gained(quad, whole);
        squares[0] = dot_rows<B>(whole, whole, squares[0]);
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
        float *sum_to = to.kept ? to.kept : to.partials + item.partial * v.span;
        for (uint32_t quad = tid; quad - tid < v.quads; quad += G * B) {
            float4 sum[B];
            sum_at(quad, sum);
            write_row<G, B>(sum, sum_to, quad, v.quads);
        }
    }
    return squares[0];
}

#endif
