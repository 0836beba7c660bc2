/* step_shared: the first half of a step whose examples share their negatives (backend.h: shared_negatives), as products of matrices.
 * kernels/cpu/step.c has the formulas. There are T examples and K negatives; the batch's contexts are the K negatives, then each example's positive.
 *
 *   multiply   only for triples, one thread block for each example: head and relation combined (kernels/triples.h)
 *   gather     one group of threads for each row: U [T x span] of targets, V [K x span] of negatives (both scaled to length 1 for
 *              cosines, measured for distances), and the positives' scores
 *   cuBLAS     Z = U V^T
 *   ranks      only if ranks share the columns: sums Z, the positives' scores and, for distances, the squares of rows over ranks
 *   learn      one thread block for each example: its loss, and its coefficients C, which replace Z
 *   cuBLAS     adds C V to the gradients of the targets, and C^T U to those of the first K contexts
 *   sum        only for distances: the sums of the columns of C
 *   finish     one group for each row: adds the positive's part; for cosines, turns gradients of scaled rows into those of the rows; for
 *              distances, adds each row x its factor in its own gradient
 *   spread     only for triples, one thread block for each row: turns a product's gradient into those of its two rows, and adds
 *              the penalty of cubes
 *
 * If relations are predicted, too (loss.relations above 0), multiply, Z, learn, the gradients and spread run once more: U has the pairs of head and
 * tail, V has all relations, which are the batch's first targets, and an example's positive is one of them.
 *
 * The host knows only an upper bound of T, which is above 0. Rows after the last target are zeros, and so are their scores and coefficients. A batch
 * without examples has no negatives either (their ids are DRAW_NONE). The second half of the step reads the gradients of all places from buffers, as
 * for blocks of several vectors.
 */
#include "blas.cuh"
#include "step_learn.cuh"

extern "C" {
#include "kernels/triples.h"
}

namespace {

struct shared_view {
    struct loss_options loss;
    enum example_product product;
    bool tied; /* heads are contexts */
    uint32_t examples, negatives, relations; /* negatives: K; examples: the capacity for T; relations: number of targets of the batch's first block */
    bool pairs; /* true: the second part, where candidates are relations */
    int cosine, distance, masked;
    const float *weights;        /* [K + T] weight of each place's context, used for positives; NULL: every positive weighs 1 */
    float *unit[2];              /* unit[SIDE_TARGET]: U; unit[SIDE_CONTEXT]: V */
    float *gains;                /* [T x span] gradients of the targets, each a row or a product of two rows */
    float *scores;               /* [T x stride] first Z, then C; stride: K rounded up (shared_stride()) */
    uint64_t stride;
    float *inverse[2];           /* [0] of each target, [1] of each candidate: 1 / length. For distances: the squared length; after learn and sum
                                  * the factor with which the row is added to its own gradient */
    float *positive_inverse;     /* [T] 1 / length; for distances the squared distance. inverse[0] and then inverse[1] come after it in memory */
    float *positive_score, *positive_coefficient; /* [T] the score is not used for distances */
};

/* Returns T. */
__device__ __forceinline__ uint32_t examples_of(const struct step_view &v, const struct shared_view &s) {
    uint32_t targets = v.counts->targets > s.relations ? v.counts->targets - s.relations : 0;
    return s.product && !s.tied ? targets / 2 : targets;
}
/* Returns the index of an example's positive among the contexts. */
__device__ __forceinline__ uint32_t positive_place(const struct shared_view &s, uint32_t at) {
    return s.negatives + (s.tied ? 2 * at : at);
}

/* The row on which a group of threads works: a target or a negative. */
struct shared_row {
    uint32_t side, at; /* at: its place on this side */
    bool real;         /* false: past the last row, or a row of zeros after the last target */
    bool written;      /* true: the buffers have a place for the row */
};
template <int G> __device__ struct shared_row row_of_group(const struct step_view &v, const struct shared_view &s) {
    uint32_t number = blockIdx.x * (CTA / G) + threadIdx.x / G;
    struct shared_row row;
    row.side = number < s.examples ? SIDE_TARGET : SIDE_CONTEXT;
    row.at = row.side == SIDE_TARGET ? number : number - s.examples;
    row.written = row.side == SIDE_TARGET || row.at < s.negatives;
    row.real = row.written && (row.side == SIDE_CONTEXT || row.at < examples_of(v, s));
    return row;
}

/* Reads the row at a place; zeros if the place has no row. */
template <class F, int G, int VEC>
__device__ void read_place(float4 (&x)[VEC], const struct step_view &v, const struct live_side &side, uint32_t place, bool real) {
    struct found_row found = find_row(side, v.counts->cold_first[side.side], place, real);
    if (found.weights) read_row<F, G, VEC>(x, (const char *)found.weights, threadIdx.x % G, v.quads);
    else clear_row<VEC>(x);
}

template <int G, int VEC> __device__ float dot_of_group(const float4 (&x)[VEC], const float4 (&y)[VEC]) {
    float sum[1] = {dot_rows<VEC>(x, y)};
    group_sum<G, 1>(sum);
    return sum[0];
}

/* ---- multiply ---- */

typedef struct product_number number;

/* Returns a column's value in a row of a table or of working memory, and the value of the column's partner (kernels/triples.h). */
template <class F> __device__ __forceinline__ number number_at(const char *row, enum example_product product, uint32_t dim, uint32_t column) {
    if (!product_is_complex(product)) return {read_column<F>(row, column), 0};
    return {read_column<F>(row, column), read_column<F>(row, product_partner(product, dim, column))};
}

/* The three rows of a triple, by which kernels find where a row is stored and where its gradient is written. */
enum triple_part { OF_HEAD, OF_RELATION, OF_TAIL };
struct triple_row {
    const char *weights;
    float *gradient;
};
__device__ struct triple_row row_of_triple(const struct step_view &v, const struct shared_view &s, uint32_t at, uint32_t part) {
    bool context = part == OF_TAIL || (s.tied && part == OF_HEAD);
    uint32_t place = context ? positive_place(s, at) + (part == OF_HEAD) : s.relations + (s.tied ? at : 2 * at + part);
    const struct live_side &side = context ? v.context : v.target;
    const char *weights = (const char *)find_row(side, v.counts->cold_first[side.side], place, true).weights;
    return {weights, (context ? v.context_gradients : v.target_gradients) + place * v.span};
}

/* Writes the products of all examples to U, and then rows of zeros. */
template <class F>
__global__ void __launch_bounds__(CTA) multiply(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x;
    bool real = at < examples_of(v, s);
    const char *head = NULL, *relation = NULL;
    if (real) head = row_of_triple(v, s, at, OF_HEAD).weights, relation = row_of_triple(v, s, at, OF_RELATION).weights;
    float *to = s.unit[SIDE_TARGET] + at * v.span;
    for (uint32_t j = threadIdx.x; j < v.span; j += CTA) {
        float value = 0;
        if (real && j < v.dim)
            value = product_value(s.product, product_is_imaginary(s.product, v.dim, j), number_at<F>(head, s.product, v.dim, j),
                                  product_unit(s.product, number_at<F>(relation, s.product, v.dim, j)));
        to[j] = value;
    }
}

/* The second part: writes the pairs of all examples to U, rows of zeros, and then all relations to V; for distances also their squares. */
template <class F>
__global__ void __launch_bounds__(CTA) pair_up(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x, turns = s.product == PRODUCT_ROTATION;
    bool candidate = at >= s.examples, real = candidate || at < examples_of(v, s);
    if (candidate) at -= s.examples;
    const char *a = NULL, *c = NULL;
    if (candidate) c = (const char *)find_row(v.target, v.counts->cold_first[SIDE_TARGET], at, v.counts->targets > 0).weights;
    else if (real) a = row_of_triple(v, s, at, OF_HEAD).weights, c = row_of_triple(v, s, at, OF_TAIL).weights;
    real = real && c;
    float *to = s.unit[candidate] + at * v.span, squares = 0;
    for (uint32_t j = threadIdx.x; j < v.span; j += CTA) {
        float value = 0;
        if (real && j < v.dim) {
            number y = number_at<F>(c, s.product, v.dim, j), x = candidate ? y : number_at<F>(a, s.product, v.dim, j);
            value = candidate ? product_unit(s.product, y).own : product_pair(s.product, product_is_imaginary(s.product, v.dim, j), x, y);
            if (s.distance) squares += !turns ? value * value : candidate ? 0 : x.own * x.own + y.own * y.own;
        }
        to[j] = value;
    }
    if (!s.distance) return;
    squares = across<CTA>(squares, plus());
    if (!threadIdx.x) s.inverse[candidate][at] = squares;
}

/* ---- gather ---- */

/* For cosines: scales a row to length 1, and returns 1 / its old length; for dot products returns 1; for distances the row's squares. */
template <int G, int VEC> __device__ float make_unit(float4 (&x)[VEC], const struct shared_view &s) {
    if (!s.cosine && !s.distance) return 1;
    float squares = dot_of_group<G, VEC>(x, x), inverse = loss_inverse_length(squares);
    if (s.distance) return squares;
    scale_row<VEC>(x, inverse);
    return inverse;
}

template <class F, int G, int VEC>
__global__ void __launch_bounds__(CTA) gather(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    struct shared_row row = row_of_group<G>(v, s);
    bool target = row.side == SIDE_TARGET;
    float4 x[VEC], w[VEC];
    if (target && s.product) read_row<F, G, VEC>(x, s.unit[SIDE_TARGET] + row.at * v.span, threadIdx.x % G, v.quads);
    else read_place<F, G, VEC>(x, v, target ? v.target : v.context, row.at, row.real);
    read_place<F, G, VEC>(w, v, v.context, positive_place(s, row.at), row.real && target);
    float inverse = make_unit<G, VEC>(x, s), of_positive = make_unit<G, VEC>(w, s), score = dot_of_group<G, VEC>(x, w);
    if (s.distance) { /* the positive's distance is computed exactly, from the difference of the rows */
        add_row<VEC>(w, -1, x);
        of_positive = dot_of_group<G, VEC>(w, w);
    }
    if (!row.written) return;
    write_row<F, G, VEC>(x, s.unit[row.side] + row.at * v.span, threadIdx.x % G, v.quads);
    if (threadIdx.x % G) return;
    s.inverse[row.side][row.at] = inverse;
    if (!target) return;
    s.positive_inverse[row.at] = of_positive;
    s.positive_score[row.at] = score;
}

/* ---- learn ---- */

/* Returns the factor of gradients: 1 / number of examples if gradients are averaged, otherwise 1. */
__device__ float scale_of_examples(const struct step_view &v, const struct shared_view &s) {
    return v.mean ? (float)(1.0 / (double)examples_of(v, s)) : 1.0f;
}

/* Four scores of an example. counts: true: the score belongs to a negative that is not the example's own positive, and so is part of the example's
 * sum. The last scores of a row may be padding. */
struct four_scores {
    alignas(16) float score[4];
    bool counts[4];
};

/* Reads four scores from index `at` on; of distances they are margin - distance. own: id of the example's positive, which is left out; DRAW_NONE:
 * none is. squares: of the example's vector. */
__device__ __forceinline__ struct four_scores read_scores(const struct shared_view &s, const float *scores, const uint32_t *ids, uint32_t at,
                                                          uint32_t end, uint32_t own, float squares) {
    struct four_scores four;
    alignas(16) uint32_t id[4];
    *(float4 *)four.score = *(const float4 *)(scores + at);
    *(uint4 *)id = *(const uint4 *)(ids + at); /* reads past the last ids, which is safe since arrays are padded (GPU_ARRAY_ALIGN) */
    if (s.distance) {
        alignas(16) float of_candidate[4];
        *(float4 *)of_candidate = *(const float4 *)(s.inverse[SIDE_CONTEXT] + at);
#pragma unroll
        for (int k = 0; k < 4; k++) four.score[k] = s.loss.margin - loss_distance(squares + of_candidate[k], four.score[k]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) four.counts[k] = at + k < end && id[k] != DRAW_NONE && id[k] != own;
    return four;
}

/* Summary of some scores: their number, the largest, and the sum of their exponentials relative to the largest (loss_power()). */
struct power_sum {
    uint32_t count;
    float most, sum;
};
__device__ __forceinline__ void add_scores(struct power_sum &all, const struct four_scores &four, float inverse) {
    float most = all.most;
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (four.counts[k]) most = fmaxf(most, four.score[k]);
    if (most > all.most) all.sum *= loss_power(all.most, most, inverse), all.most = most;
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (four.counts[k]) all.sum += loss_power(four.score[k], most, inverse), all.count++;
}
/* Combines the values of all threads of the thread block. */
__device__ __forceinline__ struct power_sum add_threads(const struct power_sum &own, float inverse) {
    struct power_sum all;
    all.count = across<LEARN_CTA>(own.count, plus());
    all.most = across<LEARN_CTA>(own.most, larger());
    all.sum = across<LEARN_CTA>(own.count ? own.sum * loss_power(own.most, all.most, inverse) : 0.0f, plus());
    return all;
}

/* Returns the number of candidates: negatives, or relations. */
__host__ __device__ __forceinline__ uint32_t candidates_of(const struct shared_view &s) {
    return s.pairs ? s.relations : s.negatives;
}

/* Stores the coefficients of four candidates. If scores are distances, each coefficient is divided by its distance and added to *sum. */
__device__ __forceinline__ void write_coefficients(const struct shared_view &s, float *to, const struct four_scores &four, float (&coefficient)[4],
                                                   float *sum) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (!four.counts[k]) coefficient[k] = 0;
        if (s.distance && four.counts[k]) *sum += coefficient[k] /= s.loss.margin - four.score[k];
    }
    *(float4 *)to = *(const float4 *)coefficient;
}

/* Ends an example: stores the positive's coefficient and its distance's factor, and adds the loss. sum: of all negatives' coefficients of distances,
 * only for the first thread. */
__device__ void end_example(const struct step_view &v, const struct shared_view &s, uint32_t at, uint32_t own, float coefficient, float apart,
                            double loss, float sum) {
    if (s.distance) coefficient /= apart, s.inverse[SIDE_TARGET][at] = -(sum + coefficient);
    if (s.pairs) {
        s.scores[at * s.stride + own] = coefficient;
        v.losses[at] += loss;
    } else {
        s.positive_coefficient[at] = coefficient;
        v.losses[at] = loss;
    }
}

/* Returns the score of an example's positive. *apart: its distance; 1 if scores are not distances. */
__device__ float score_of_positive(const struct shared_view &s, uint32_t at, float *apart) {
    *apart = s.distance ? loss_distance(s.positive_inverse[at], 0) : 1;
    return s.distance ? s.loss.margin - *apart : s.positive_score[at];
}

/* Computes loss and coefficients of the softmax loss (losses.h). One thread block for each example. */
__global__ void __launch_bounds__(LEARN_CTA) learn(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x, count = candidates_of(s);
    if (at >= examples_of(v, s)) return;
    const uint32_t *ids = s.pairs ? v.target.rows.ids : v.context.rows.ids;
    uint32_t own = s.pairs ? ids[s.relations + (s.tied ? at : 2 * at + 1)] : s.masked ? ids[positive_place(s, at)] : DRAW_NONE;
    uint32_t own_place = s.pairs ? own - ids[0] : 0;
    float *scores = s.scores + at * s.stride, inverse = loss_inverse_temperature(&s.loss), squares = s.distance ? s.inverse[SIDE_TARGET][at] : 0;
    float score = 0, apart = 1, sum = 0;
    if (s.pairs) {
        score = scores[own_place];
        if (s.distance) apart = loss_distance(squares + s.inverse[SIDE_CONTEXT][own_place], score), score = s.loss.margin - apart;
    } else {
        score = score_of_positive(s, at, &apart);
    }
    struct power_sum all = {0, -INFINITY, 0};
    for (uint32_t i = 4 * threadIdx.x; i < count; i += 4 * LEARN_CTA) add_scores(all, read_scores(s, scores, ids, i, count, own, squares), inverse);
    all = add_threads(all, inverse);
    float against = 0, z = score * inverse, weight = s.pairs ? s.loss.relations : s.weights ? s.weights[positive_place(s, at)] : 1.0f;
    float factor = scale_of_examples(v, s) * inverse, coefficient = 0, share = 0;
    if (all.count) { /* otherwise there is nothing to compare the positive with: all coefficients are 0 */
        against = loss_against(&s.loss, all.sum, all.most, inverse, all.count);
        coefficient = weight * loss_pulled(&s.loss, z - against);
        share = factor * loss_push(&s.loss) * -coefficient / all.sum;
    }
    for (uint32_t i = 4 * threadIdx.x; i < count; i += 4 * LEARN_CTA) {
        struct four_scores four = read_scores(s, scores, ids, i, count, own, squares);
        alignas(16) float coefficients[4];
#pragma unroll
        for (int k = 0; k < 4; k++) coefficients[k] = four.counts[k] ? share * loss_power(four.score[k], all.most, inverse) : 0;
        write_coefficients(s, scores + i, four, coefficients, &sum);
    }
    if (s.distance || s.pairs) sum = across<LEARN_CTA>(sum, plus()); /* waits, too, until `own` has been written among the others */
    if (threadIdx.x) return;
    double loss = !all.count ? 0 : s.loss.negative_power > 0 ? (double)loss_of_positive(&s.loss, z, against) : softplus(against - z);
    end_example(v, s, at, own_place, factor * coefficient, apart, (double)weight * loss, sum);
}

/* Computes the logistic loss and its coefficients. One thread block for each example. */
__global__ void __launch_bounds__(LEARN_CTA)
    learn_by_pairs(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x;
    if (at >= examples_of(v, s)) return;
    const uint32_t *ids = v.context.rows.ids;
    uint32_t own = s.masked ? ids[positive_place(s, at)] : DRAW_NONE;
    float *scores = s.scores + at * s.stride, inverse = loss_inverse_temperature(&s.loss), squares = s.distance ? s.inverse[SIDE_TARGET][at] : 0;
    float factor = scale_of_examples(v, s) * inverse, sharpness = s.loss.adversarial * inverse, sum = 0;
    struct power_sum all = {0, -INFINITY, 0};
    for (uint32_t i = 4 * threadIdx.x; i < s.negatives && sharpness > 0; i += 4 * LEARN_CTA)
        add_scores(all, read_scores(s, scores, ids, i, s.negatives, own, squares), sharpness);
    if (sharpness > 0) all = add_threads(all, sharpness);
    double loss = 0;
    for (uint32_t i = 4 * threadIdx.x; i < s.negatives; i += 4 * LEARN_CTA) {
        struct four_scores four = read_scores(s, scores, ids, i, s.negatives, own, squares);
        alignas(16) float coefficients[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float z = four.score[k] * inverse, share = 1.0f;
            if (sharpness > 0 && four.counts[k]) share = loss_power(four.score[k], all.most, sharpness) / all.sum;
            coefficients[k] = factor * share * sgns_coefficient(z, 0.0f);
            if (four.counts[k]) loss += (double)share * softplus(z);
        }
        write_coefficients(s, scores + i, four, coefficients, &sum);
    }
    loss = across<LEARN_CTA>(loss, plus());
    if (s.distance) sum = across<LEARN_CTA>(sum, plus());
    if (threadIdx.x) return;
    float apart, z = score_of_positive(s, at, &apart) * inverse, weight = s.weights ? s.weights[positive_place(s, at)] : 1.0f;
    loss += (double)weight * softplus(-z);
    end_example(v, s, at, 0, factor * weight * sgns_coefficient(z, 1.0f), apart, loss, sum);
}

/* For distances: sets each candidate's factor in its own gradient, minus the sum of its column of C. A thread block sums 32 columns. */
enum { SUM_ROWS = 32 };
__global__ void __launch_bounds__(32 * SUM_ROWS)
    sum_columns(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    __shared__ float sums[SUM_ROWS][32];
    uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32, column = blockIdx.x * 32 + lane, examples = examples_of(v, s);
    float sum = 0;
    for (uint32_t i = row; i < examples && column < candidates_of(s); i += SUM_ROWS) sum += s.scores[i * s.stride + column];
    sums[row][lane] = sum;
    __syncthreads();
    for (uint32_t i = 1; i < SUM_ROWS && !row; i++) sum += sums[i][lane];
    if (!row && column < candidates_of(s)) s.inverse[SIDE_CONTEXT][column] = -sum;
}

/* ---- finish ---- */

/* For cosines: turns g, the gradient of the scaled row x, into the gradient of the row itself: (g - (g.x) x) x inverse, where inverse is 1 / the
 * row's length. For distances: adds x x inverse, which is then the row's factor in its own gradient. */
template <int G, int VEC> __device__ void through_length(float4 (&g)[VEC], const float4 (&x)[VEC], float inverse, const struct shared_view &s) {
    if (s.distance) add_row<VEC>(g, inverse, x);
    if (!s.cosine) return;
    float along = dot_of_group<G, VEC>(g, x);
    add_row<VEC>(g, -along, x);
    scale_row<VEC>(g, inverse);
}

template <class F, int G, int VEC>
__global__ void __launch_bounds__(CTA) finish(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    struct shared_row row = row_of_group<G>(v, s);
    uint32_t tid = threadIdx.x % G;
    bool target = row.side == SIDE_TARGET, has_positive = target && row.real;
    float *gradient = (target ? s.gains : v.context_gradients) + row.at * v.span;
    float4 g[VEC], x[VEC], w[VEC], of_positive[VEC];
    clear_row<VEC>(g), clear_row<VEC>(x), clear_row<VEC>(of_positive);
    if (row.real) {
        read_row<F, G, VEC>(g, gradient, tid, v.quads);
        read_row<F, G, VEC>(x, s.unit[row.side] + row.at * v.span, tid, v.quads);
    }
    uint64_t place = positive_place(s, row.at);
    read_place<F, G, VEC>(w, v, v.context, (uint32_t)place, has_positive);
    if (has_positive) {
        float inverse = s.distance ? 1 : s.positive_inverse[row.at], coefficient = s.positive_coefficient[row.at];
        scale_row<VEC>(w, inverse);
        add_row<VEC>(of_positive, coefficient * inverse, x);
        add_row<VEC>(of_positive, s.cosine ? -coefficient * inverse * s.positive_score[row.at] : s.distance ? -coefficient : 0, w);
        add_row<VEC>(g, coefficient, w);
    }
    through_length<G, VEC>(g, x, row.real ? s.inverse[row.side][row.at] : 0, s);
    if (!row.real) return;
    write_row<F, G, VEC>(g, gradient, tid, v.quads);
    if (target) write_row<F, G, VEC>(of_positive, v.context_gradients + place * v.span, tid, v.quads);
}

/* ---- spread ---- */

/* Writes the gradients of heads and relations, and adds the penalty of cubes to the gradients of tails. blockIdx.y: enum triple_part. */
template <class F>
__global__ void __launch_bounds__(CTA) spread(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x, part = blockIdx.y;
    if (at >= examples_of(v, s)) return;
    const struct triple_row own = row_of_triple(v, s, at, part);
    const char *row = own.weights, *gain = (const char *)(s.gains + at * v.span);
    const char *other = part == OF_TAIL ? NULL : row_of_triple(v, s, at, part == OF_HEAD ? OF_RELATION : OF_HEAD).weights;
    float *gradient = own.gradient;
    float cubes = s.loss.cubes * scale_of_examples(v, s);
    bool turned = part == OF_RELATION && s.product == PRODUCT_ROTATION;
    for (uint32_t j = threadIdx.x; j < v.span; j += CTA) {
        float value = part == OF_TAIL ? gradient[j] : 0;
        if (other && j < v.dim) {
            number g = number_at<float32_rows>(gain, s.product, v.dim, j), b = number_at<F>(other, s.product, v.dim, j);
            if (part == OF_HEAD) b = product_unit(s.product, b);
            bool imaginary = product_is_imaginary(s.product, v.dim, j);
            value = product_gradient(s.product, imaginary, g, b);
            if (turned) {
                float of_partner = product_gradient(s.product, !imaginary, {g.partner, g.own}, {b.partner, b.own});
                value = product_unit_gradient({value, of_partner}, number_at<F>(row, s.product, v.dim, j));
            }
        }
        if (cubes > 0 && j < v.dim) value += cubes * product_cube_gradient(number_at<F>(row, s.product, v.dim, j));
        gradient[j] = value;
    }
}

/* Ends the second part. Adds the gradients of pairs to the gradients of heads and tails. For rotations, replaces the gradient of a relation's numbers
 * of length 1 by the gradient of its row. Each example has two thread blocks, for its head and its tail; after them each relation has one. */
template <class F>
__global__ void __launch_bounds__(CTA) spread_pairs(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x / 2;
    if (blockIdx.x >= 2 * s.examples) {
        at = blockIdx.x - 2 * s.examples;
        const char *stored = (const char *)find_row(v.target, v.counts->cold_first[SIDE_TARGET], at, v.counts->targets > 0).weights;
        float *gradient = v.target_gradients + at * v.span, own = s.distance && s.product != PRODUCT_ROTATION ? s.inverse[SIDE_CONTEXT][at] : 0;
        uint32_t half = v.dim / 2;
        for (uint32_t j = threadIdx.x; j < v.dim && own != 0; j += CTA) gradient[j] += own * s.unit[SIDE_CONTEXT][at * v.span + j];
        for (uint32_t j = threadIdx.x; j < half && stored && s.product == PRODUCT_ROTATION; j += CTA) {
            number x = number_at<F>(stored, s.product, v.dim, j), g = {gradient[j], gradient[j + half]};
            gradient[j] = product_unit_gradient(g, x);
            gradient[j + half] = product_unit_gradient({g.partner, g.own}, {x.partner, x.own});
        }
        return;
    }
    if (at >= examples_of(v, s)) return;
    bool of_head = blockIdx.x % 2 == 0;
    const struct triple_row own = row_of_triple(v, s, at, of_head ? OF_HEAD : OF_TAIL);
    const char *other = row_of_triple(v, s, at, of_head ? OF_TAIL : OF_HEAD).weights;
    const float *gain = s.gains + at * v.span, *pair = s.unit[SIDE_TARGET] + at * v.span;
    float factor = s.distance ? s.inverse[SIDE_TARGET][at] : 0, of_row = s.product == PRODUCT_ROTATION ? factor : 0;
    for (uint32_t j = threadIdx.x; j < v.dim; j += CTA) {
        number g = number_at<float32_rows>((const char *)gain, s.product, v.dim, j), x = number_at<F>(other, s.product, v.dim, j);
        bool imaginary = product_is_imaginary(s.product, v.dim, j);
        if (s.product == PRODUCT_TRANSLATION) g.own += factor * pair[j];
        float value = of_head ? product_pair_head(s.product, imaginary, x, g) : product_pair_tail(s.product, imaginary, x, g);
        if (of_row != 0) value += of_row * read_column<F>(own.weights, j);
        own.gradient[j] += value;
    }
}

/* ---- launching ---- */

typedef void shared_kernel(const struct step_view, const struct shared_view);
struct shared_kernels {
    shared_kernel *multiply, *pair_up, *gather, *finish, *spread, *spread_pairs;
    uint32_t groups; /* number of groups in a thread block */
};
template <class F> struct kernels_of {
    template <int G, int VEC, bool> struct family {
        static struct shared_kernels get(void) {
            return {multiply<F>, pair_up<F>, gather<F, G, VEC>, finish<F, G, VEC>, spread<F>, spread_pairs<F>, CTA / G};
        }
    };
};

struct shared_kernels kernels_of_rows(const struct step_view *v) {
    if (v->halves) return kernels_for_few_halves<kernels_of<bfloat16_rows>::family>(v->quads, false);
    return kernels_for_few<kernels_of<float32_rows>::family>(v->quads, false);
}

int fill_shared(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v, struct shared_view *s) {
    uint32_t each = example_shared_targets(&stage->pool);
    uint64_t relations = stage->shared.relations, examples = (stage->capacity.targets - relations) / each, negatives = stage->shared.count;
    struct shared_bytes bytes = shared_bytes(examples, std::max(negatives, relations), v->span, stage->pool.product != PRODUCT_NONE);
    if (gpu_grow(b, &b->shared_rows, bytes.rows, "shared negatives") ||
        gpu_grow(b, &b->shared_scores, bytes.scores, "the scores of shared negatives") ||
        gpu_grow(b, &b->shared_lengths, bytes.lengths, "the lengths of shared negatives") ||
        gpu_grow(b, &b->shared_gains, bytes.gains, "the gradients of products"))
        return -1;
    float *lengths = (float *)b->shared_lengths.data;
    s->loss = request->loss;
    s->product = stage->pool.product;
    s->tied = stage->pool.tied;
    s->examples = (uint32_t)((stage->sizes.targets - relations) / each);
    s->negatives = (uint32_t)negatives;
    s->relations = (uint32_t)relations;
    s->pairs = false;
    s->cosine = request->loss.score == SCORE_COSINE;
    s->distance = request->loss.score == SCORE_DISTANCE;
    s->masked = stage->shared.masked;
    s->weights = weights_of(stage, request);
    s->unit[SIDE_TARGET] = (float *)b->shared_rows.data;
    s->unit[SIDE_CONTEXT] = s->unit[SIDE_TARGET] + examples * v->span;
    s->gains = s->product ? (float *)b->shared_gains.data : v->target_gradients;
    s->scores = (float *)b->shared_scores.data;
    s->stride = shared_stride(negatives);
    s->positive_score = lengths;
    s->positive_coefficient = lengths + examples;
    s->positive_inverse = lengths + 2 * examples;
    s->inverse[SIDE_TARGET] = lengths + 3 * examples;
    s->inverse[SIDE_CONTEXT] = lengths + 4 * examples;
    return 0;
}

int launch(struct backend *b, shared_kernel *kernel, dim3 grid, const struct step_view *v, const struct shared_view *s, const char *name) {
    kernel<<<grid, CTA, 0, b->compute>>>(*v, *s);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : cuda_failed(error, name);
}
/* Launches a kernel with one group of threads for each of `rows` rows. */
int launch_rows(struct backend *b, shared_kernel *kernel, uint64_t rows, const struct shared_kernels *k, const struct step_view *v,
                const struct shared_view *s, const char *name) {
    return launch(b, kernel, dim3(blocks_for(rows, k->groups)), v, s, name);
}

/* Changes the view from a step's first part (targets against negatives) to its second (pairs of head and tail against relations), which uses the same
 * memory. The loss of relations is the plain softmax. */
void begin_pairs(struct shared_view *s) {
    s->pairs = true;
    s->stride = shared_stride(s->relations);
    s->loss.kind = LOSS_SOFTMAX;
    s->loss.negative_weight = 1;
    s->loss.negative_power = 0;
}

/* Computes Z = U V^T. cuBLAS expects matrices stored by columns, but these are stored by rows, so it multiplies their transposes. */
int multiply_scores(struct backend *b, const struct step_view *v, const struct shared_view *s) {
    int span = (int)v->span, t = (int)s->examples, k = (int)candidates_of(*s);
    const struct blas_matrix u = {s->unit[SIDE_TARGET], span, 0}, n = {s->unit[SIDE_CONTEXT], span, 1};
    const struct blas_product p = {n, u, s->scores, (int)s->stride, k, t, span, b->matmul};
    return cuda_multiply(b, &p);
}
int multiply_gains(struct backend *b, const struct step_view *v, const struct shared_view *s) {
    int span = (int)v->span, t = (int)s->examples, k = (int)candidates_of(*s), stride = (int)s->stride;
    const struct blas_matrix u = {s->unit[SIDE_TARGET], span, 0}, n = {s->unit[SIDE_CONTEXT], span, 0};
    const struct blas_product targets = {n, {s->scores, stride, 0}, s->gains, span, span, t, k, b->matmul};
    float *of_candidates = s->pairs ? v->target_gradients : v->context_gradients;
    const struct blas_product negatives = {u, {s->scores, stride, 1}, of_candidates, span, span, k, t, b->matmul};
    return cuda_multiply(b, &targets) || cuda_multiply(b, &negatives) ? -1 : 0;
}

/* Replaces scores and squared lengths, which each rank computed from its own columns, by their sums over all ranks. */
int sum_over_ranks(struct backend *b, const struct shared_view *s) {
    float *first = s->pairs ? s->inverse[SIDE_TARGET] : s->positive_inverse, *end = s->inverse[SIDE_CONTEXT] + candidates_of(*s);
    if (exchange_sum_array(b, s->scores, s->examples * s->stride)) return -1;
    if (s->distance) return exchange_sum_array(b, first, (uint64_t)(end - first));
    return s->pairs ? 0 : exchange_sum_array(b, s->positive_score, s->examples);
}

int sum_of_columns(struct backend *b, const struct step_view *v, const struct shared_view *s) {
    if (!s->distance) return 0;
    sum_columns<<<blocks_for(candidates_of(*s), 32), 32 * SUM_ROWS, 0, b->compute>>>(*v, *s);
    CK_LAUNCH("sum_columns");
    return 0;
}

} // namespace

int shared_launch(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v, struct learn_view *l) {
    struct shared_view s;
    struct shared_kernels k = kernels_of_rows(v);
    int parted = b->exchange && !request->apart;
    l->frozen[SIDE_TARGET] = request->loss_only ? NULL : request->target->frozen;
    l->frozen[SIDE_CONTEXT] = request->loss_only ? NULL : request->context->frozen;
    if (shared_product_check(&stage->pool, &request->loss, v->dim, parted) || fill_shared(b, stage, request, v, &s)) return -1;
    uint64_t examples = s.examples, rows = examples + s.negatives;
    if (s.product && launch(b, k.multiply, dim3(s.examples), v, &s, "multiply")) return -1;
    if (launch_rows(b, k.gather, rows, &k, v, &s, "gather") || multiply_scores(b, v, &s) || (parted && sum_over_ranks(b, &s))) return -1;
    (s.loss.kind == LOSS_LOGISTIC ? learn_by_pairs : learn)<<<s.examples, LEARN_CTA, 0, b->compute>>>(*v, s);
    CK_LAUNCH("learn");
    if (!request->loss_only) {
        if (multiply_gains(b, v, &s) || sum_of_columns(b, v, &s)) return -1;
        /* For dot products, the matrix product has completed the gradients of negatives; otherwise they must still be finished. */
        if (launch_rows(b, k.finish, s.cosine || s.distance ? rows : examples, &k, v, &s, "finish")) return -1;
        if (s.product && launch(b, k.spread, dim3(s.examples, s.loss.cubes > 0 ? 3 : 2), v, &s, "spread")) return -1;
    }
    if (!s.relations) return 0;
    if (!(s.loss.relations > 0)) {
        if (!request->loss_only) CK(cudaMemsetAsync(v->target_gradients, 0, s.relations * (uint64_t)v->span * sizeof(float), b->compute));
        return 0;
    }
    begin_pairs(&s);
    if (launch(b, k.pair_up, dim3(s.examples + s.relations), v, &s, "pair_up") || multiply_scores(b, v, &s)) return -1;
    if (parted && sum_over_ranks(b, &s)) return -1;
    learn<<<s.examples, LEARN_CTA, 0, b->compute>>>(*v, s);
    CK_LAUNCH("learn");
    if (request->loss_only) return 0;
    return multiply_gains(b, v, &s) || sum_of_columns(b, v, &s) ||
                   launch(b, k.spread_pairs, dim3(2 * s.examples + s.relations), v, &s, "spread_pairs")
               ? -1 : 0;
}
