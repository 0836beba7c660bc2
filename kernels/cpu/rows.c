/* rows: see rows.h. The Makefile compiles this file once for each processor level: CPU_LEVEL is the name of its table of functions, and compiler
 * flags allow the level's instructions. Vectors are the compiler's vector types (CPU_LANES floats), so one source serves all levels. */
#include "rows.h"

#include "kernels/losses.h"
#include "kernels/record.h"

#include <math.h>

#define LANES CPU_LANES
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias)); /* for a row's last columns, which are too few for a whole vector */

#define INLINE static inline __attribute__((always_inline))
#define TILE   3 /* so that TILE x TILE sums and two rows fit into 16 registers */

INLINE vec load(const float *p) {
    return *(const vec *)p;
}

INLINE void store(float *p, vec v) {
    *(vec *)p = v;
}

/* Returns the sum of all lanes of `v` and `more`: the upper half is added to the lower half until one lane is left. */
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

INLINE void dots_tile(const float *const *t, const int nt, const float *const *c, const int nc, uint32_t dim, float *out, uint64_t stride) {
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

INLINE void dots_band(const float *const *t, const int nt, const float *const *c, uint32_t nc, uint32_t dim, float *out, uint64_t stride) {
    uint32_t k = 0;
    for (; k + 3 <= nc; k += 3) dots_tile(t, nt, c + k, 3, dim, out + k, stride);
    if (nc - k == 2) dots_tile(t, nt, c + k, 2, dim, out + k, stride);
    if (nc - k == 1) dots_tile(t, nt, c + k, 1, dim, out + k, stride);
}

static void dots(const float *const *t, uint32_t nt, const float *const *c, uint32_t nc, uint32_t dim, float *out, uint64_t stride) {
    uint32_t i = 0;
    for (; i + 3 <= nt; i += 3) dots_band(t + i, 3, c, nc, dim, out + i * stride, stride);
    if (nt - i == 2) dots_band(t + i, 2, c, nc, dim, out + i * stride, stride);
    if (nt - i == 1) dots_band(t + i, 1, c, nc, dim, out + i * stride, stride);
}

/* Number of queries computed together. Each has VECTORS sums for a panel: enough independent sums to hide the latency of an addition; with one
 * column of each query and one vector of the panel they just fill the registers. */
enum { VECTORS = CPU_PANEL / LANES, PRODUCTS = LANES == 16 ? 8 : LANES == 8 ? 3 : 1 };

INLINE void products_tile(const float *const *q, const int nq, const float *panel, uint32_t dim, float *out, uint64_t stride, const int add) {
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

INLINE void products_of_all(const float *const *q, uint32_t nq, const float *panel, uint32_t dim, float *out, uint64_t stride, const int add) {
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
            /* sigmoid(s) - 1 by subtraction: the digits that float32 loses are too small to matter in the sums */
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

/* ==== losses of a target's scores, positives first (kernels/losses.h) ====
 *
 * Each function replaces scores by `factor` x their coefficients (of z), and returns the loss. weights: [positives]; NULL: all are 1, which saves
 * logarithms. Each sum is made of LOSS_LANES partial sums, so that the compiler can use vector instructions of any width. */

enum { LOSS_LANES = 16 };

static inline float greatest(const float *value, uint32_t count) {
    float lane[LOSS_LANES], most = -INFINITY;
    uint32_t i = 0;
    for (int k = 0; k < LOSS_LANES; k++) lane[k] = -INFINITY;
    for (; i + LOSS_LANES <= count; i += LOSS_LANES)
        for (int k = 0; k < LOSS_LANES; k++) lane[k] = value[i + k] > lane[k] ? value[i + k] : lane[k];
    for (int k = 0; k < LOSS_LANES; k++) most = lane[k] > most ? lane[k] : most;
    for (; i < count; i++) most = value[i] > most ? value[i] : most;
    return most;
}

static inline float sum_of(const float *value, uint32_t count) {
    float lane[LOSS_LANES] = {0}, sum = 0;
    uint32_t i = 0;
    for (; i + LOSS_LANES <= count; i += LOSS_LANES)
        for (int k = 0; k < LOSS_LANES; k++) lane[k] += value[i + k];
    for (int k = 0; k < LOSS_LANES; k++) sum += lane[k];
    for (; i < count; i++) sum += value[i];
    return sum;
}

static inline double learn_logistic(float *score, uint32_t positives, uint32_t negatives, const float *weights, float inverse, float factor) {
    struct loss_sum loss = loss_sum_of_none();
    double weighted = 0;
    for (uint32_t i = 0; i < positives + negatives; i++) {
        score[i] *= inverse;
        loss_add_softplus(&loss, i < positives ? -score[i] : score[i]);
        if (weights && i < positives) weighted += loss_take_weighted(&loss, weights[i]);
    }
    for (uint32_t i = 0; i < positives; i++) score[i] = factor * loss_weight(weights, i) * sgns_coefficient(score[i], 1.0f);
    for (uint32_t i = positives; i < positives + negatives; i++) score[i] = factor * sgns_coefficient(score[i], 0.0f);
    return weighted + loss_of_sum(&loss);
}

/* Leave the negatives with id `own` out of a sum. The first function sets their scores to LEFT_OUT, which adds nothing to a loss, and returns
 * their number; the second sets their exponentials or coefficients to 0. */
#define LEFT_OUT (-1e30f)
static inline uint32_t leave_out(float *score, const uint32_t *ids, uint32_t count, uint32_t own) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) left += ids[i] == own;
    for (uint32_t i = 0; left && i < count; i++) score[i] = ids[i] == own ? LEFT_OUT : score[i];
    return left;
}
static inline void clear_left_out(float *power, const uint32_t *ids, uint32_t count, uint32_t own) {
    for (uint32_t i = 0; i < count; i++) power[i] = ids[i] == own ? 0 : power[i];
}

/* powers: [slots] scores of the negatives. ids: [slots] their ids; those equal to `own` are left out; NULL: none is. Without negatives, the loss
 * and all coefficients are 0. */
static inline double learn_softmax(const struct loss_options *o, float *score, uint32_t positives, const float *weights,
                                   float *powers, const uint32_t *ids, uint32_t slots, uint32_t own, float inverse, float factor) {
    struct loss_sum loss = loss_sum_of_none();
    double weighted = 0;
    uint32_t left = ids ? leave_out(powers, ids, slots, own) : 0, negatives = slots - left;
    float pulled = 0;
    if (!negatives) {
        for (uint32_t i = 0; i < positives; i++) score[i] = 0;
        for (uint32_t i = 0; i < slots; i++) powers[i] = 0;
        return 0;
    }
    float most = greatest(powers, slots);
    for (uint32_t i = 0; i < slots; i++) powers[i] = loss_power(powers[i], most, inverse);
    if (left) clear_left_out(powers, ids, slots, own);
    float sum = sum_of(powers, slots), against = loss_against(o, sum, most, inverse, negatives);
    for (uint32_t i = 0; i < positives; i++) {
        float z = score[i] * inverse;
        if (o->negative_power > 0) loss.linear += loss_of_positive(o, z, against);
        else loss_add_softplus(&loss, against - z);
        if (weights) weighted += loss_take_weighted(&loss, weights[i]);
        score[i] = loss_weight(weights, i) * loss_pulled(o, z - against);
        pulled -= score[i];
        score[i] *= factor;
    }
    float share = factor * loss_push(o) * pulled / sum;
    for (uint32_t i = 0; i < slots; i++) powers[i] *= share;
    return weighted + loss_of_sum(&loss);
}

/* The logistic loss of negatives that share a weight of 1 by e^(sharpness x score) (losses.h: adversarial). */
static inline double learn_adversarial(float sharpness, float *scores, uint32_t count, float inverse, float factor) {
    float most = greatest(scores, count), sum = 0;
    double loss = 0;
    for (uint32_t i = 0; i < count; i++) sum += loss_power(scores[i], most, sharpness);
    for (uint32_t i = 0; i < count; i++) {
        float share = loss_power(scores[i], most, sharpness) / sum, z = scores[i] * inverse;
        loss += (double)share * ((double)sgns_loss_linear(z, 0.0f) + log1p((double)sgns_loss_tail(z)));
        scores[i] = factor * share * sgns_coefficient(z, 0.0f);
    }
    return loss;
}

/* For softmax and logistic loss: replaces the scores of an example's positive, and of the negatives that its batch shares, by coefficients.
 * Negatives with id `own` are left out. */
static inline double learn_shared(const struct loss_options *o, float *positive, const float *weight, float *scores,
                                  const uint32_t *ids, uint32_t count, uint32_t own, float scale) {
    float inverse = loss_inverse_temperature(o), factor = scale * inverse;
    if (o->kind == LOSS_SOFTMAX) return learn_softmax(o, positive, 1, weight, scores, ids, count, own, inverse, factor);
    uint32_t left = leave_out(scores, ids, count, own);
    double loss = learn_logistic(positive, 1, 0, weight, inverse, factor);
    loss += o->adversarial > 0 ? learn_adversarial(o->adversarial * inverse, scores, count, inverse, factor)
                               : learn_logistic(scores, 0, count, NULL, inverse, factor);
    if (left) clear_left_out(scores, ids, count, own);
    return loss;
}

/* spare: [2 x negatives] first half: the negatives' coefficients, summed over the positives while the scores are still needed; second half: their
 * coefficients for one positive. */
static inline double learn_bpr(float *score, uint32_t positives, uint32_t negatives, const float *weights, float inverse,
                               float factor, float *restrict spare) {
    struct loss_sum loss = loss_sum_of_none();
    double weighted = 0;
    float *below = score + positives, *gained = spare, *of_one = spare + negatives;
    for (uint32_t n = 0; n < negatives; n++) gained[n] = 0;
    for (uint32_t p = 0; p < positives; p++) {
        float own = score[p], weight = loss_weight(weights, p);
        for (uint32_t n = 0; n < negatives; n++) loss_add_softplus(&loss, (below[n] - own) * inverse);
        if (weights) weighted += loss_take_weighted(&loss, weight);
        for (uint32_t n = 0; n < negatives; n++) of_one[n] = weight * sgns_coefficient((below[n] - own) * inverse, 0.0f);
        for (uint32_t n = 0; n < negatives; n++) gained[n] += of_one[n];
        score[p] = -factor * sum_of(of_one, negatives);
    }
    for (uint32_t n = 0; n < negatives; n++) below[n] = factor * gained[n];
    return weighted + loss_of_sum(&loss);
}

static inline double learn_contrastive(const struct loss_options *o, float *score, uint32_t positives, uint32_t negatives,
                                       const float *weights, float scale) {
    float all = weights ? sum_of(weights, positives) : (float)positives;
    float share = loss_negative_share(o, all, negatives), *below = score + positives;
    for (uint32_t i = 0; i < positives && weights; i++) score[i] *= weights[i];
    double loss = (double)all - sum_of(score, positives);
    for (uint32_t i = 0; i < positives; i++) score[i] = -scale * loss_weight(weights, i);
    for (uint32_t i = 0; i < negatives; i++) below[i] = loss_past(o, below[i]);
    loss += (double)share * sum_of(below, negatives);
    for (uint32_t i = 0; i < negatives; i++) below[i] = below[i] > 0 ? share * scale : 0.0f;
    return loss;
}

static inline double learn_glove(const struct loss_options *o, float *score, uint32_t positives, uint32_t negatives, const float *counts,
                                 float scale) {
    double sum = 0;
    for (uint32_t i = positives; i < positives + negatives; i++) score[i] = 0;
    for (uint32_t i = 0; i < positives; i++) {
        float loss, log_x = loss_log(loss_weight(counts, i));
        score[i] = scale * loss_fit(score[i], log_x, loss_share(o, log_x), &loss);
        sum += loss;
    }
    return sum;
}

/* ---- GloVe, lock-free ---- */

/* Return 1 / sqrt(x) with a relative error of 5e-6, enough for a learning rate: starts from half the exponent, and each step of Newton's method
 * squares the error. Compilers would divide by a root, which takes twice as long. */
typedef int32_t vec_exponents __attribute__((vector_size(4 * LANES)));
typedef int32_t vec4_exponents __attribute__((vector_size(16)));
INLINE vec inverse_root(vec x) {
    vec y = (vec)(0x5F375A86 - ((vec_exponents)x >> 1)), half = 0.5f * x;
    y *= 1.5f - half * y * y;
    return y * (1.5f - half * y * y);
}
INLINE vec4 inverse_root4(vec4 x) {
    vec4 y = (vec4)(0x5F375A86 - ((vec4_exponents)x >> 1)), half = 0.5f * x;
    y *= 1.5f - half * y * y;
    return y * (1.5f - half * y * y);
}

#define FIT_LEAST 1e-30f /* keeps the sums of padding columns above 0; their gradients are 0 */
#define FIT_COLUMNS(type, root)                                                                                        \
    do {                                                                                                               \
        type own = *(type *)(w + j), other = *(type *)(x + j), of_own = c * other, of_other = c * own;                 \
        type sum = *(type *)(s + j) + of_own * of_own, more = *(type *)(t + j) + of_other * of_other;                  \
        *(type *)(s + j) = sum, *(type *)(t + j) = more;                                                               \
        *(type *)(w + j) = own - lr * of_own * root(sum + FIT_LEAST);                                                            \
        *(type *)(x + j) = other - lr * of_other * root(more + FIT_LEAST);                                                       \
    } while (0)

static double fit(const struct loss_options *o, const struct cpu_fit *f, float lr) {
    float logs[CPU_FIT], shares[CPU_FIT], *w = f->weights, *s = f->sums;
    double all = 0;
    for (uint32_t i = 0; i < f->count; i++) logs[i] = loss_log(f->counts[i]);
    for (uint32_t i = 0; i < f->count; i++) shares[i] = loss_share(o, logs[i]);
    for (uint32_t i = 0; i < f->count; i++) {
        float *x = f->context_weights[i], *t = f->context_sums[i], loss;
        uint32_t j = 0;
        vec dot = {0};
        vec4 rest = {0};
        for (uint32_t at = 0; i < f->ahead_count && at < f->ahead_bytes; at += 64) __builtin_prefetch(f->ahead[i] + at, 1, 3);
        for (; j + LANES <= f->span; j += LANES) dot += load(w + j) * load(x + j);
        for (; j < f->span; j += 4) rest += *(vec4 *)(w + j) * *(vec4 *)(x + j);
        float c = loss_fit(sum_lanes(dot, rest), logs[i], shares[i], &loss);
        all += loss;
        for (j = 0; j + LANES <= f->span; j += LANES) FIT_COLUMNS(vec, inverse_root);
        for (; j < f->span; j += 4) FIT_COLUMNS(vec4, inverse_root4);
    }
    return all;
}

/* For any loss: replaces scores[t_count x c_count] by `scale` x their coefficients, and returns the loss. weights: [positives] or NULL. spare: [2
 * x c_count] scratch. */
static inline double learn(const struct loss_options *o, float *scores, uint32_t t_count, uint32_t c_count, uint32_t positives,
                           const float *weights, float scale, float *spare) {
    float inverse = loss_inverse_temperature(o), factor = scale * inverse;
    uint32_t negatives = c_count - positives;
    double loss_sum = 0;
    for (uint32_t t = 0; t < t_count; t++) {
        float *score = scores + (uint64_t)t * c_count;
        switch (o->kind) {
        case LOSS_LOGISTIC:
            loss_sum += learn_logistic(score, positives, negatives, weights, inverse, factor);
            break;
        case LOSS_SOFTMAX:
            loss_sum += learn_softmax(o, score, positives, weights, score + positives, NULL, negatives, 0, inverse, factor);
            break;
        case LOSS_BPR:
            loss_sum += learn_bpr(score, positives, negatives, weights, inverse, factor, spare);
            break;
        case LOSS_CONTRASTIVE:
            loss_sum += learn_contrastive(o, score, positives, negatives, weights, scale);
            break;
        case LOSS_GLOVE:
            loss_sum += learn_glove(o, score, positives, negatives, weights, scale);
            break;
        }
    }
    return loss_sum;
}

static void squares(const float *const *rows, uint64_t count, uint32_t dim, float *out) {
    for (uint64_t i = 0; i < count; i++) dots_tile(rows + i, 1, rows + i, 1, dim, out + i, 1);
}

static void scale_scores(float *values, const float *t_factors, uint32_t t_count, const float *c_factors, uint32_t c_count) {
    for (uint32_t t = 0; t < t_count; t++)
        for (uint32_t c = 0; c < c_count; c++) values[(uint64_t)t * c_count + c] *= t_factors[t] * c_factors[c];
}

/* Functions over the columns of a row. Each works on columns from j on, in units of `type` (a vector, four floats, one float), and returns the
 * first column that is left for the next one. */
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

INLINE void combine_rows(float *sum, const float *factors, uint64_t stride, const float *const *rows, const int count, uint32_t dim) {
    const float *row[CPU_ROWS_CONTEXTS];
    float factor[CPU_ROWS_CONTEXTS];
    for (int i = 0; i < count; i++) row[i] = rows[i], factor[i] = factors[(uint64_t)i * stride];
    uint32_t j = combine_wide(0, dim, sum, factor, row, count);
    j = combine_four(j, dim, sum, factor, row, count);
    combine_one(j, dim, sum, factor, row, count);
}

static void combine(float *restrict sum, const float *factors, uint64_t stride, const float *const *rows, uint64_t count, uint32_t dim) {
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

/* in_place: the contexts themselves change, and `gained` is not used. */
INLINE void gain_columns(const float *const *targets, float *const *moved, uint32_t nt, const float *const *contexts, float *const *gained,
                         const int in_place, const int nc, uint32_t dim, const float *factors, int new_moved, int new_gained) {
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
            default : break;
    }
}

/* ==== bfloat16 fields (kernels/rounding.h) ====
 *
 * Only this part of the CPU backend knows how such a field is stored. Loops are plain C, which the compiler vectorizes. Random bits are stored in
 * the order of columns, for processors that store the lower byte first. */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half of a word is the first column's");

enum { DRAWN = 16, DRAWN_COLUMNS = DRAWN * ROUND_GROUP }; /* groups of columns for which random bits are made at the same time */

static void widen(const uint16_t *restrict kept, uint32_t columns, float *restrict out) {
    for (uint32_t j = 0; j < columns; j++) out[j] = bfloat16_value(kept[j]);
}

/* ---- bits ---- */

/* Computes round_words() for DRAWN indices from `index` on. The loop must not be unrolled before the compiler vectorizes it. */
INLINE void words_from(uint32_t row_key, uint32_t index, uint32_t *restrict words) {
    _Pragma("GCC unroll 1") for (uint32_t i = 0; i < DRAWN; i++) {
        struct draw4 own = round_words(row_key, index + i);
        for (int word = 0; word < 4; word++) words[4 * i + word] = own.word[word];
    }
}

/* ---- writing ---- */

typedef uint32_t vec_bits __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_signed __attribute__((vector_size(4 * LANES)));
typedef uint16_t vec_kept __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* Does bfloat16_round() for a vector. */
INLINE void round_vector(uint16_t *kept, vec values, const uint16_t *random) {
    vec_bits bits = (vec_bits)values;
    vec_signed size = (vec_signed)(bits & 0x7FFFFFFFu);
    bits += __builtin_convertvector(*(const vec_kept *)random, vec_bits) & (vec_bits)(size < (int32_t)BFLOAT16_LARGEST);
    bits |= BFLOAT16_NAN & (vec_bits)(size > 0x7F800000);
    *(vec_kept *)kept = __builtin_convertvector(bits >> 16, vec_kept);
}

/* Random bits for a tile of columns: as 32-bit words, or as 16 bits for each column. */
union tile_bits {
    uint32_t word[DRAWN_COLUMNS / 2];
    uint16_t column[DRAWN_COLUMNS];
};

static void write_kept(uint16_t *kept, const float *values, uint32_t columns, const struct cpu_draws *draws) {
    union tile_bits bits;
    uint32_t row_key = round_row_key(round_step_key(draws->of, draws->purpose, draws->global_step), draws->row);
    for (uint32_t at = 0; at < columns; at += DRAWN_COLUMNS) {
        uint32_t end = columns - at < DRAWN_COLUMNS ? columns : at + DRAWN_COLUMNS, j = at;
        words_from(row_key, round_index(draws->of, at, draws->slot), bits.word);
        for (; j + LANES <= end; j += LANES) round_vector(kept + j, load(values + j), bits.column + (j - at));
        for (; j < end; j++) kept[j] = bfloat16_round(values[j], bits.column[j - at]);
    }
}

/* ---- codes ---- */

static void open_codes(const void *kept, int float8, uint32_t columns, float *restrict out) {
    const uint8_t *codes = (const uint8_t *)kept + RECORD_CODES;
    float scale = *(const float *)kept;
    if (float8)
        for (uint32_t j = 0; j < columns; j++) out[j] = float8_value(codes[j]) * scale;
    else
        for (uint32_t j = 0; j < columns; j++) out[j] = int8_value(codes[j]) * scale;
}

/* Makes codes of one tile of columns. */
INLINE void close_tile(uint8_t *restrict codes, const int float8, float scale, const float *restrict values, uint32_t columns,
                       const union tile_bits *random) {
    for (uint32_t j = 0; j < columns; j++) {
        float of_scale = values[j] / scale, chance = code_chance(random->column[j]);
        codes[j] = float8 ? float8_code(of_scale, chance) : int8_code(of_scale, chance);
    }
}

static void close_codes(void *kept, int float8, const float *values, uint32_t columns, const struct cpu_draws *draws) {
    uint8_t *codes = (uint8_t *)kept + RECORD_CODES;
    union tile_bits bits;
    uint32_t row_key = round_row_key(round_step_key(draws->of, draws->purpose, draws->global_step), draws->row), largest = 0;
    for (uint32_t j = 0; j < columns; j++) {
        uint32_t size = bits_of_float(values[j]) & 0x7FFFFFFFu;
        largest = size > largest ? size : largest;
    }
    float scale = code_scale(largest, float8);
    *(float *)kept = scale;
    if (!(scale > 0)) {
        memset(codes, 0, columns);
        return;
    }
    for (uint32_t at = 0; at < columns; at += DRAWN_COLUMNS) {
        uint32_t count = columns - at < DRAWN_COLUMNS ? columns - at : DRAWN_COLUMNS;
        words_from(row_key, round_index(draws->of, at, draws->slot), bits.word);
        if (float8) close_tile(codes + at, 1, scale, values + at, count, &bits);
        else close_tile(codes + at, 0, scale, values + at, count, &bits);
    }
}

/* ---- lock-free ---- */

/* PAIRS: pairs of neighbouring columns that are read or rounded at the same time; PAIRED: their number of columns. */
enum { PAIRS = LANES, PAIRED = 2 * LANES };
typedef uint32_t vec_pairs __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

/* Reads PAIRED columns: even ones to one vector, odd ones to the other. A pair of columns is one 32-bit lane, so nothing moves between lanes. */
INLINE void read_pairs(const uint16_t *kept, vec_bits *even, vec_bits *odd) {
    vec_bits pairs = *(const vec_pairs *)kept;
    *even = pairs << 16;
    *odd = pairs & 0xFFFF0000u;
}

INLINE void store_pairs(uint16_t *kept, vec_bits even, vec_bits odd) {
    *(vec_pairs *)kept = even >> 16 | (odd & 0xFFFF0000u);
}

INLINE int any_lane(vec_signed lanes) {
    union {
        vec_signed all;
        uint64_t part[LANES / 2];
    } of = {lanes};
    uint64_t some = 0;
#pragma GCC unroll 8
    for (int i = 0; i < LANES / 2; i++) some |= of.part[i];
    return some != 0;
}

/* Adds the random bits. Skips the checks of each lane if no value is near the largest bfloat16, as nearly always. */
INLINE void round_pairs(vec_bits *even, vec_bits *odd, vec_bits random) {
    vec_bits low = random & 0xFFFFu, high = random >> 16;
    vec_signed one = (vec_signed)(*even & 0x7FFFFFFFu), other = (vec_signed)(*odd & 0x7FFFFFFFu);
    vec_signed far = (one >= (int32_t)BFLOAT16_LARGEST) | (other >= (int32_t)BFLOAT16_LARGEST);
    if (__builtin_expect(any_lane(far), 0)) {
        low &= (vec_bits)(one < (int32_t)BFLOAT16_LARGEST), high &= (vec_bits)(other < (int32_t)BFLOAT16_LARGEST);
        *even |= BFLOAT16_NAN & (vec_bits)(one > 0x7F800000), *odd |= BFLOAT16_NAN & (vec_bits)(other > 0x7F800000);
    }
    *even += low, *odd += high;
}

/* Computes round_pair() for pairs from `first` on. */
INLINE vec_bits draw_pairs(uint32_t row_key, uint32_t first) {
    vec_bits x;
#pragma GCC unroll 16
    for (uint32_t i = 0; i < PAIRS; i++) x[i] = i * ROUND_STEP;
    x += row_key + first * ROUND_STEP;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    x *= 0x297A2D39u;
    return x ^ x >> 15;
}

INLINE void read_apart(const uint16_t *kept, float *out) {
    vec_bits even, odd;
    for (uint32_t j = 0; j < CPU_APART; j += PAIRED) {
        read_pairs(kept + j, &even, &odd);
        store(out + j, (vec)even);
        store(out + j + PAIRS, (vec)odd);
    }
}

INLINE void add_some(uint16_t *kept, const float *gain, uint32_t row_key, uint32_t pair) {
    vec_bits even, odd;
    for (uint32_t j = 0; j < CPU_APART; j += PAIRED) {
        read_pairs(kept + j, &even, &odd);
        even = (vec_bits)((vec)even + load(gain + j)), odd = (vec_bits)((vec)odd + load(gain + j + PAIRS));
        round_pairs(&even, &odd, draw_pairs(row_key, pair + j / 2));
        store_pairs(kept + j, even, odd);
    }
}

/* The last columns may be fewer than CPU_APART; they are first copied into an array padded with zeros. */
static void widen_apart(const uint16_t *kept, uint32_t columns, float *out) {
    uint16_t last[CPU_APART] = {0};
    uint32_t j = 0;
    for (; j + CPU_APART <= columns; j += CPU_APART) read_apart(kept + j, out + j);
    if (j == columns) return;
    memcpy(last, kept + j, (columns - j) * sizeof *last);
    read_apart(last, out + j);
}

static void add_apart(uint16_t *kept, const float *gain, uint32_t columns, uint32_t row_key) {
    uint16_t last[CPU_APART] = {0};
    uint32_t j = 0;
    for (; j + CPU_APART <= columns; j += CPU_APART) add_some(kept + j, gain + j, row_key, j / 2);
    if (j == columns) return;
    memcpy(last, kept + j, (columns - j) * sizeof *last);
    add_some(last, gain + j, row_key, j / 2);
    memcpy(kept + j, last, (columns - j) * sizeof *last);
}

/* ---- sums ---- */

INLINE void combine_some(float *restrict sum, const float *factors, uint64_t stride, const uint16_t *const *rows, const int count, uint32_t dim) {
    const uint16_t *restrict row[4];
    float factor[4];
    for (int i = 0; i < count; i++) row[i] = rows[i], factor[i] = factors[(uint64_t)i * stride];
    for (uint32_t j = 0; j < dim; j++) {
        float all = sum[j];
        _Pragma("GCC unroll 4") for (int i = 0; i < count; i++) all += factor[i] * bfloat16_value(row[i][j]);
        sum[j] = all;
    }
}

static void combine_kept(float *sum, const float *factors, uint64_t stride, const uint16_t *const *rows, uint64_t count, uint32_t dim) {
    for (; count >= 4; count -= 4, rows += 4, factors += 4 * stride) combine_some(sum, factors, stride, rows, 4, dim);
    if (count == 3) combine_some(sum, factors, stride, rows, 3, dim);
    if (count == 2) combine_some(sum, factors, stride, rows, 2, dim);
    if (count == 1) combine_some(sum, factors, stride, rows, 1, dim);
}

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
    .fit = fit,
    .squares = squares,
    .scale = scale_scores,
    .combine = combine,
    .spread = spread,
    .gain = gain,
    .widen = widen,
    .write = write_kept,
    .open_codes = open_codes,
    .close_codes = close_codes,
    .widen_apart = widen_apart,
    .add_apart = add_apart,
    .combine_kept = combine_kept,
    .rule = {RULES(RULE_ENTRY)},
};
