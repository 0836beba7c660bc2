/* rows: see rows.h. The Makefile compiles this file once for each processor level: CPU_LEVEL names the table of functions, and
 * compiler flags allow the level's instructions. Vectors are the compiler's vector types (CPU_LANES floats), so one source
 * serves all levels. */
#include "rows.h"

#include "kernels/sgns.h"

#define LANES CPU_LANES
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float vec4
    __attribute__((vector_size(16), aligned(4), may_alias)); /* for the last columns of a row, which are too few for a vector */

#define INLINE static inline __attribute__((always_inline))
#define TILE   3 /* TILE x TILE sums and two rows fit into 16 registers */

INLINE vec load(const float *p) {
    return *(const vec *)p;
}

INLINE void store(float *p, vec v) {
    *(vec *)p = v;
}

/* Returns the sum of all lanes of `v` and of `more`, adding the upper half to the lower half until one lane is left. */
INLINE float sum_lanes(vec v, vec4 more) {
    union {
        vec all;
        vec4 four[LANES / 4];
    } lanes = {v};
#pragma GCC unroll 4
    for (int width = LANES / 8; width; width /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < width; i++) lanes.four[i] += lanes.four[i + width];
    vec4 last = lanes.four[0] + more;
    return (last[0] + last[2]) + (last[1] + last[3]);
}

INLINE void dots_tile(const float *const *t, const int nt, const float *const *c, const int nc, uint32_t dim,
                      float *out, uint64_t stride) {
    vec sum[TILE][TILE] = {{{0}}};
    uint32_t j = 0;
    for (; j + LANES <= dim; j += LANES) {
        vec column[TILE];
#pragma GCC unroll 3
        for (int k = 0; k < nc; k++) column[k] = load(c[k] + j);
#pragma GCC unroll 3
        for (int i = 0; i < nt; i++) {
            vec row = load(t[i] + j);
#pragma GCC unroll 3
            for (int k = 0; k < nc; k++) sum[i][k] += row * column[k];
        }
    }
#pragma GCC unroll 3
    for (int i = 0; i < nt; i++)
#pragma GCC unroll 3
        for (int k = 0; k < nc; k++) {
            uint32_t left = j;
            vec4 more = {0};
            for (; left + 4 <= dim; left += 4) more += *(const vec4 *)(t[i] + left) * *(const vec4 *)(c[k] + left);
            float s = sum_lanes(sum[i][k], more);
            for (; left < dim; left++) s += t[i][left] * c[k][left];
            out[(uint64_t)i * stride + (uint64_t)k] = s;
        }
}

INLINE void dots_band(const float *const *t, const int nt, const float *const *c, uint32_t nc, uint32_t dim, float *out,
                      uint64_t stride) {
    uint32_t k = 0;
    for (; k + 3 <= nc; k += 3) dots_tile(t, nt, c + k, 3, dim, out + k, stride);
    if (nc - k == 2) dots_tile(t, nt, c + k, 2, dim, out + k, stride);
    if (nc - k == 1) dots_tile(t, nt, c + k, 1, dim, out + k, stride);
}

static void dots(const float *const *t, uint32_t nt, const float *const *c, uint32_t nc, uint32_t dim, float *out,
                 uint64_t stride) {
    uint32_t i = 0;
    for (; i + 3 <= nt; i += 3) dots_band(t + i, 3, c, nc, dim, out + i * stride, stride);
    if (nt - i == 2) dots_band(t + i, 2, c, nc, dim, out + i * stride, stride);
    if (nt - i == 1) dots_band(t + i, 1, c, nc, dim, out + i * stride, stride);
}

/* Number of queries computed together. Each has VECTORS sums a panel: enough independent sums to hide the latency of an
 * addition, and with one column of each query and one vector of the panel they just fill the registers. */
enum { VECTORS = CPU_PANEL / LANES, PRODUCTS = LANES == 16 ? 8 : LANES == 8 ? 3 : 1 };

INLINE void products_tile(const float *const *q, const int nq, const float *panel, uint32_t dim, float *out, uint64_t stride,
                          const int add) {
    vec sum[PRODUCTS][VECTORS] = {{{0}}};
#pragma GCC unroll 8
    for (int i = 0; i < nq; i++)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            if (add) sum[i][v] = load(out + (uint64_t)i * stride + v * LANES);
    for (uint32_t j = 0; j < dim; j++, panel += CPU_PANEL) {
        vec query[PRODUCTS];
#pragma GCC unroll 8
        for (int i = 0; i < nq; i++) query[i] = q[i][j] - (vec){0};
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) {
            vec column = load(panel + v * LANES);
#pragma GCC unroll 8
            for (int i = 0; i < nq; i++) sum[i][v] += query[i] * column;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < nq; i++)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) store(out + (uint64_t)i * stride + v * LANES, sum[i][v]);
}

INLINE void products_of_all(const float *const *q, uint32_t nq, const float *panel, uint32_t dim, float *out, uint64_t stride,
                            const int add) {
    uint32_t i = 0;
    for (; i + PRODUCTS <= nq; i += PRODUCTS) products_tile(q + i, PRODUCTS, panel, dim, out + i * stride, stride, add);
    for (; i < nq; i++) products_tile(q + i, 1, panel, dim, out + i * stride, stride, add);
}

static void products(const float *const *q, uint32_t nq, const float *panel, uint32_t dim, float *out, uint64_t stride, int add) {
    if (add) products_of_all(q, nq, panel, dim, out, stride, 1);
    else products_of_all(q, nq, panel, dim, out, stride, 0);
}

static void coefficients(float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives, float scale) {
    uint64_t n = (uint64_t)t_count * c_count;
    for (uint64_t i = 0; i < n; i++) logits[i] = sgns_coefficient(logits[i], 0.0f) * scale;
    for (uint32_t t = 0; t < t_count; t++)
        for (uint32_t c = 0; c < positives; c++) {
            /* sigmoid(s) - 1 by subtraction: the digits that float32 loses are too small to matter in the sum that it is added
             * to */
            logits[(uint64_t)t * c_count + c] -= scale;
        }
}

static double loss(const float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives) {
    double linear = 0, product = 1, logs = 0;
    unsigned factors = 0;
    for (uint32_t t = 0; t < t_count; t++)
        for (uint32_t c = 0; c < c_count; c++) {
            float s = logits[(uint64_t)t * c_count + c];
            linear += sgns_loss_linear(s, c < positives ? 1.0f : 0.0f);
            product *= 1.0 + sgns_loss_tail(s);
            if (++factors == 512) {
                logs += log(product);
                product = 1;
                factors = 0;
            }
        }
    return linear + logs + log(product);
}

#include "kernels/losses_block.h"

static void squares(const float *const *rows, uint64_t count, uint32_t dim, float *out) {
    for (uint64_t i = 0; i < count; i++) dots_tile(rows + i, 1, rows + i, 1, dim, out + i, 1);
}

static void scale_scores(float *values, const float *t_factors, uint32_t t_count, const float *c_factors,
                         uint32_t c_count) {
    for (uint32_t t = 0; t < t_count; t++)
        for (uint32_t c = 0; c < c_count; c++) values[(uint64_t)t * c_count + c] *= t_factors[t] * c_factors[c];
}

/* Functions over the columns of a row. Each works on columns from j on in units of `type` (a vector, four floats, or one float)
 * and returns the first column that is left. They are called in that order. */
#define COLUMNS(name, type)                                                                                            \
    INLINE uint32_t combine_##name(uint32_t j, uint32_t dim, float *sum, const float *factors,                         \
                                   const float *const *rows, const int count) {                                        \
        for (; j + sizeof(type) / 4 <= dim; j += sizeof(type) / 4) {                                                   \
            type all = *(type *)(sum + j);                                                                             \
            _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) all += factors[i] * *(const type *)(rows[i] + j);  \
            *(type *)(sum + j) = all;                                                                                  \
        }                                                                                                              \
        return j;                                                                                                      \
    }                                                                                                                  \
    INLINE uint32_t spread_##name(uint32_t j, uint32_t dim, const float *row, const float *factors,                    \
                                  float *const *sums, const int count) {                                               \
        for (; j + sizeof(type) / 4 <= dim; j += sizeof(type) / 4) {                                                   \
            type add = *(const type *)(row + j);                                                                       \
            _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) {                                                  \
                type *sum = (type *)(sums[i] + j);                                                                     \
                *sum += factors[i] * add;                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        return j;                                                                                                      \
    }                                                                                                                  \
    INLINE uint32_t update_##name(uint32_t j, uint32_t dim, const float *const *targets, float *const *moved,          \
                                  uint32_t nt, const float *const *contexts, float *const *to, const int nc,           \
                                  const float *factors, const int new_moved, const int new_gained) {                   \
        for (; j + sizeof(type) / 4 <= dim; j += sizeof(type) / 4) {                                                   \
            type old[CPU_ROWS_CONTEXTS], gained[CPU_ROWS_CONTEXTS];                                                    \
            _Pragma("GCC unroll 8") for (int k = 0; k < nc; k++) old[k] = *(const type *)(contexts[k] + j),            \
                                                                 gained[k] = (type){0};                                \
            for (uint32_t t = 0; t < nt; t++) {                                                                        \
                const float *f = factors + t * (uint32_t)nc;                                                           \
                type row = *(const type *)(targets[t] + j), sum = (type){0};                                           \
                if (!new_moved) sum = *(type *)(moved[t] + j);                                                         \
                _Pragma("GCC unroll 8") for (int k = 0; k < nc; k++) {                                                 \
                    sum += f[k] * old[k];                                                                              \
                    gained[k] += f[k] * row;                                                                           \
                }                                                                                                      \
                *(type *)(moved[t] + j) = sum;                                                                         \
            }                                                                                                          \
            _Pragma("GCC unroll 8") for (int k = 0; k < nc; k++) {                                                     \
                if (!new_gained) gained[k] += *(type *)(to[k] + j);                                                    \
                *(type *)(to[k] + j) = gained[k];                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return j;                                                                                                      \
    }
COLUMNS(wide, vec)
COLUMNS(four, vec4)
COLUMNS(one, float)
#undef COLUMNS

INLINE void combine_rows(float *sum, const float *factors, uint64_t stride, const float *const *rows, const int count,
                         uint32_t dim) {
    const float *row[CPU_ROWS_CONTEXTS];
    float factor[CPU_ROWS_CONTEXTS];
    for (int i = 0; i < count; i++) row[i] = rows[i], factor[i] = factors[(uint64_t)i * stride];
    uint32_t j = combine_wide(0, dim, sum, factor, row, count);
    j = combine_four(j, dim, sum, factor, row, count);
    combine_one(j, dim, sum, factor, row, count);
}

static void combine(float *restrict sum, const float *factors, uint64_t stride, const float *const *rows,
                    uint64_t count, uint32_t dim) {
    for (; count >= 4; count -= 4, rows += 4, factors += 4 * stride) combine_rows(sum, factors, stride, rows, 4, dim);
    if (count == 3) combine_rows(sum, factors, stride, rows, 3, dim);
    if (count == 2) combine_rows(sum, factors, stride, rows, 2, dim);
    if (count == 1) combine_rows(sum, factors, stride, rows, 1, dim);
}

INLINE void spread_rows(const float *row, const float *factors, float *const *sums, const int count, uint32_t dim) {
    float *sum[CPU_ROWS_CONTEXTS], factor[CPU_ROWS_CONTEXTS];
    for (int i = 0; i < count; i++) sum[i] = sums[i], factor[i] = factors[i];
    uint32_t j = spread_wide(0, dim, row, factor, sum, count);
    j = spread_four(j, dim, row, factor, sum, count);
    spread_one(j, dim, row, factor, sum, count);
}

static void spread(const float *restrict row, const float *factors, float *const *sums, uint64_t count, uint32_t dim) {
    for (; count >= 4; count -= 4, sums += 4, factors += 4) spread_rows(row, factors, sums, 4, dim);
    if (count == 3) spread_rows(row, factors, sums, 3, dim);
    if (count == 2) spread_rows(row, factors, sums, 2, dim);
    if (count == 1) spread_rows(row, factors, sums, 1, dim);
}

/* in_place: `gained` is not read, and the contexts change. */
INLINE void gain_columns(const float *const *targets, float *const *moved, uint32_t nt, const float *const *contexts,
                         float *const *gained, const int in_place, const int nc, uint32_t dim, const float *factors,
                         int new_moved, int new_gained) {
    const float *context[CPU_ROWS_CONTEXTS];
    float *other[CPU_ROWS_CONTEXTS], *const *to = in_place ? (float *const *)context : other;
    for (int k = 0; k < nc; k++) context[k] = contexts[k];
    for (int k = 0; k < nc && !in_place; k++) other[k] = gained[k];
    uint32_t j = update_wide(0, dim, targets, moved, nt, context, to, nc, factors, new_moved, new_gained);
    j = update_four(j, dim, targets, moved, nt, context, to, nc, factors, new_moved, new_gained);
    update_one(j, dim, targets, moved, nt, context, to, nc, factors, new_moved, new_gained);
}

static void gain(const float *const *targets, float *const *moved, uint32_t nt, const float *const *contexts, float *const *gained,
                 uint32_t nc, uint32_t dim, const float *factors, int new_moved, int new_gained) {
    switch (nc) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        if (gained == (float *const *)contexts) gain_columns(targets, moved, nt, contexts, gained, 1, n, dim, factors, 0, 0); \
        else gain_columns(targets, moved, nt, contexts, gained, 0, n, dim, factors, new_moved, new_gained);            \
        break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#undef CASE
    default:
        break;
    }
}

#include "rows_kept.h"

#define RULE_LOOP(name, enumerator)                                                                                    \
    static void row_##name(const struct rule_step *step, uint32_t dim, const float *restrict g, float *restrict w,     \
                           float *restrict s0, float *restrict s1, float *restrict s2) {                               \
        const struct rule_step k = *step;                                                                              \
        for (uint32_t j = 0; j < dim; j++) rule_##name(&k, g[j], w + j, s0 + j, s1 + j, s2 + j);                       \
    }
RULES(RULE_LOOP)
#undef RULE_LOOP

#define JOIN_(a, b)                  a##b
#define JOIN(a, b)                   JOIN_(a, b)
#define QUOTE_(a)                    #a
#define QUOTE(a)                     QUOTE_(a)
#define RULE_ENTRY(name, enumerator) [enumerator] = row_##name,

extern const struct cpu_rows JOIN(cpu_rows_, CPU_LEVEL);
const struct cpu_rows JOIN(cpu_rows_, CPU_LEVEL) = {
    .name = QUOTE(CPU_LEVEL),
    .dots = dots,
    .products = products,
    .coefficients = coefficients,
    .loss = loss,
    .learn = learn,
    .learn_shared = learn_shared,
    .squares = squares,
    .scale = scale_scores,
    .combine = combine,
    .spread = spread,
    .gain = gain,
    .widen = widen,
    .write = write_kept,
    .widen_apart = widen_apart,
    .add_apart = add_apart,
    .combine_kept = combine_kept,
    .rule = {RULES(RULE_ENTRY)},
};
