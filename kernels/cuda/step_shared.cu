/* step_shared: the first half of a step whose examples share their negatives (backend.h: shared_negatives), as products of matrices.
 * kernels/cpu/step.c has the formulas. There are T examples and K negatives; the batch's contexts are the K negatives, then each example's positive.
 *
 *   multiply   only for triples, one thread block for each example: the product of its two target rows
 *   gather     one group of threads for each row: U [T x span] of targets, V [K x span] of negatives (both scaled to length 1 for
 *              cosines), and the positives' scores
 *   cuBLAS     Z = U V^T
 *   learn      one thread block for each example: its loss, and its coefficients C, which replace Z
 *   cuBLAS     adds C V to the gradients of the targets, and C^T U to those of the first K contexts
 *   finish     one group for each row: adds the positive's part; for cosines, turns gradients of scaled rows into those of the rows
 *   spread     only for triples, one thread block for each row: turns a product's gradient into those of its two rows, and adds
 *              the penalty of cubes
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
    uint32_t examples, negatives; /* examples: upper bound of T; negatives: K */
    int cosine, masked;
    const float *weights;        /* [K + T] weight of each place's context, used for positives; NULL: every positive weighs 1 */
    float *unit[2];              /* unit[SIDE_TARGET]: U; unit[SIDE_CONTEXT]: V */
    float *gains;                /* [T x span] gradients of the targets, each a row or a product of two rows */
    float *scores;               /* [T x stride] first Z, then C; stride: K rounded up (shared_stride()) */
    uint64_t stride;
    float *inverse[2];           /* 1 / length of each target; of each negative */
    float *positive_inverse, *positive_score, *positive_coefficient; /* [T] */
};

/* Returns T. */
__device__ __forceinline__ uint32_t examples_of(const struct step_view &v, const struct shared_view &s) {
    return s.product && !s.tied ? v.counts->targets / 2 : v.counts->targets;
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

/* A column's value in a row of a table or of working memory, and the value of the column's partner (kernels/triples.h). */
struct number {
    float own, partner;
};
template <class F> __device__ __forceinline__ struct number number_at(const char *row, enum example_product product, uint32_t dim, uint32_t column) {
    if (product != PRODUCT_COMPLEX) return {read_column<F>(row, column), 0};
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
    uint32_t place = context ? positive_place(s, at) + (part == OF_HEAD) : s.tied ? at : 2 * at + part;
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
        if (real && j < v.dim) {
            struct number a = number_at<F>(head, s.product, v.dim, j), b = number_at<F>(relation, s.product, v.dim, j);
            value = product_value(product_is_imaginary(s.product, v.dim, j), a.own, a.partner, b.own, b.partner);
        }
        to[j] = value;
    }
}

/* ---- gather ---- */

/* For cosines: scales a row to length 1, and returns 1 / its old length; for dot products returns 1. */
template <int G, int VEC> __device__ float make_unit(float4 (&x)[VEC], const struct shared_view &s) {
    if (!s.cosine) return 1;
    float inverse = loss_inverse_length(dot_of_group<G, VEC>(x, x));
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

/* Reads four scores from index `at` on. own: id of the example's positive, which is left out; DRAW_NONE: none is. */
__device__ __forceinline__ struct four_scores read_scores(const float *scores, const uint32_t *ids, uint32_t at, uint32_t end, uint32_t own) {
    struct four_scores four;
    alignas(16) uint32_t id[4];
    *(float4 *)four.score = *(const float4 *)(scores + at);
    *(uint4 *)id = *(const uint4 *)(ids + at); /* reads past the last ids, which is safe since arrays are padded (GPU_ARRAY_ALIGN) */
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

/* Sets all coefficients to 0 for an example without negatives, since there is nothing to compare its positive with. */
__device__ void learn_none(const struct step_view &v, const struct shared_view &s, uint32_t at, float *scores) {
    for (uint32_t i = threadIdx.x; i < s.negatives; i += LEARN_CTA) scores[i] = 0;
    if (threadIdx.x) return;
    s.positive_coefficient[at] = 0;
    v.losses[at] = 0;
}

/* Computes loss and coefficients of the softmax loss (losses.h). One thread block for each example. */
__global__ void __launch_bounds__(LEARN_CTA) learn(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x;
    if (at >= examples_of(v, s)) return;
    const uint32_t *ids = v.context.rows.ids;
    uint32_t own = s.masked ? ids[positive_place(s, at)] : DRAW_NONE;
    float *scores = s.scores + at * s.stride, inverse = loss_inverse_temperature(&s.loss);
    struct power_sum all = {0, -INFINITY, 0};
    for (uint32_t i = 4 * threadIdx.x; i < s.negatives; i += 4 * LEARN_CTA) add_scores(all, read_scores(scores, ids, i, s.negatives, own), inverse);
    all = add_threads(all, inverse);
    if (!all.count) {
        learn_none(v, s, at, scores);
        return;
    }
    float against = loss_against(&s.loss, all.sum, all.most, inverse, all.count), z = s.positive_score[at] * inverse;
    float weight = s.weights ? s.weights[positive_place(s, at)] : 1.0f;
    float factor = scale_of_examples(v, s) * inverse, coefficient = weight * loss_pulled(&s.loss, z - against);
    float share = factor * loss_push(&s.loss) * -coefficient / all.sum;
    for (uint32_t i = 4 * threadIdx.x; i < s.negatives; i += 4 * LEARN_CTA) {
        struct four_scores four = read_scores(scores, ids, i, s.negatives, own);
#pragma unroll
        for (int k = 0; k < 4; k++) four.score[k] = four.counts[k] ? share * loss_power(four.score[k], all.most, inverse) : 0;
        *(float4 *)(scores + i) = *(const float4 *)four.score;
    }
    if (threadIdx.x) return;
    s.positive_coefficient[at] = factor * coefficient;
    v.losses[at] = (double)weight * (s.loss.negative_power > 0 ? (double)loss_of_positive(&s.loss, z, against) : softplus(against - z));
}

/* One example's scores for learn_logistic(): first the positive's, then the negatives'. */
struct shared_line {
    const struct shared_view &s;
    uint32_t at, own, count, positives, tid; /* own: the id that is left out */
    const uint32_t *ids;
    float scale, inverse;
    __device__ float &score_at(uint32_t i) const {
        return i ? s.scores[at * s.stride + i - 1] : s.positive_score[at];
    }
    __device__ float &coefficient_at(uint32_t i) const {
        return i ? s.scores[at * s.stride + i - 1] : s.positive_coefficient[at];
    }
    __device__ bool is_there(uint32_t i) const {
        return !i || (ids[i - 1] != DRAW_NONE && ids[i - 1] != own);
    }
    __device__ bool adds_loss(uint32_t) const {
        return true;
    }
    __device__ const float *positive_weights() const {
        return s.weights ? s.weights + positive_place(s, at) : NULL;
    }
};

/* Computes the logistic loss and its coefficients. One thread block for each example. */
__global__ void __launch_bounds__(LEARN_CTA)
    learn_by_pairs(const __grid_constant__ struct step_view v, const __grid_constant__ struct shared_view s) {
    uint32_t at = blockIdx.x;
    if (at >= examples_of(v, s)) return;
    const uint32_t *ids = v.context.rows.ids;
    struct shared_line line = {s, at, s.masked ? ids[positive_place(s, at)] : DRAW_NONE, s.negatives + 1, 1, threadIdx.x, ids,
                               scale_of_examples(v, s), loss_inverse_temperature(&s.loss)};
    double loss = across<LEARN_CTA>(learn_logistic<LEARN_CTA>(line), plus());
    if (!threadIdx.x) v.losses[at] = loss;
}

/* ---- finish ---- */

/* For cosines: turns g, the gradient of the scaled row x, into the gradient of the row itself: (g - (g.x) x) x inverse, where inverse is 1 / the
 * row's length. */
template <int G, int VEC> __device__ void through_length(float4 (&g)[VEC], const float4 (&x)[VEC], float inverse, bool cosine) {
    if (!cosine) return;
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
        float inverse = s.positive_inverse[row.at], coefficient = s.positive_coefficient[row.at];
        scale_row<VEC>(w, inverse);
        add_row<VEC>(of_positive, coefficient * inverse, x);
        add_row<VEC>(of_positive, s.cosine ? -coefficient * inverse * s.positive_score[row.at] : 0, w);
        add_row<VEC>(g, coefficient, w);
    }
    through_length<G, VEC>(g, x, row.real ? s.inverse[row.side][row.at] : 0, s.cosine);
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
    for (uint32_t j = threadIdx.x; j < v.span; j += CTA) {
        float value = part == OF_TAIL ? gradient[j] : 0;
        if (other && j < v.dim) {
            struct number g = number_at<float32_rows>(gain, s.product, v.dim, j), b = number_at<F>(other, s.product, v.dim, j);
            value = product_gradient(product_is_imaginary(s.product, v.dim, j), g.own, g.partner, b.own, b.partner);
        }
        if (cubes > 0 && j < v.dim) {
            struct number x = number_at<F>(row, s.product, v.dim, j);
            value += cubes * product_cube_gradient(x.own, x.partner);
        }
        gradient[j] = value;
    }
}

/* ---- launching ---- */

typedef void shared_kernel(const struct step_view, const struct shared_view);
struct shared_kernels {
    shared_kernel *multiply, *gather, *finish, *spread;
    uint32_t groups; /* number of groups in a thread block */
};
template <class F> struct kernels_of {
    template <int G, int VEC, bool> struct family {
        static struct shared_kernels get(void) {
            return {multiply<F>, gather<F, G, VEC>, finish<F, G, VEC>, spread<F>, CTA / G};
        }
    };
};

struct shared_kernels kernels_of_rows(const struct step_view *v) {
    if (v->halves) return kernels_for_few_halves<kernels_of<bfloat16_rows>::family>(v->quads, false);
    return kernels_for_few<kernels_of<float32_rows>::family>(v->quads, false);
}

int check(const struct step_request *request, const struct step_view *v, enum example_product product) {
    if ((request->loss.kind != LOSS_SOFTMAX && request->loss.kind != LOSS_LOGISTIC) || has_parts(v))
        return fail("shared negatives are trained by the softmax or the logistic loss, in one process");
    if (product == PRODUCT_COMPLEX && v->dim % 2) return fail("complex numbers need an even number of columns, and the tables have %u", v->dim);
    return 0;
}

int fill_shared(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v, struct shared_view *s) {
    uint32_t each = example_shared_targets(&stage->pool);
    uint64_t examples = stage->capacity.targets / each, negatives = stage->shared.count;
    struct shared_bytes bytes = shared_bytes(examples, negatives, v->span, stage->pool.product != PRODUCT_NONE);
    if (gpu_grow(b, &b->shared_rows, bytes.rows, "shared negatives") ||
        gpu_grow(b, &b->shared_scores, bytes.scores, "the scores of shared negatives") ||
        gpu_grow(b, &b->shared_lengths, bytes.lengths, "the lengths of shared negatives") ||
        gpu_grow(b, &b->shared_gains, bytes.gains, "the gradients of products"))
        return -1;
    float *lengths = (float *)b->shared_lengths.data;
    s->loss = request->loss;
    s->product = stage->pool.product;
    s->tied = stage->pool.tied;
    s->examples = stage->sizes.targets / each;
    s->negatives = (uint32_t)negatives;
    s->cosine = request->loss.score == SCORE_COSINE;
    s->masked = stage->shared.masked;
    s->weights = weights_of(stage, request);
    s->unit[SIDE_TARGET] = (float *)b->shared_rows.data;
    s->unit[SIDE_CONTEXT] = s->unit[SIDE_TARGET] + examples * v->span;
    s->gains = s->product ? (float *)b->shared_gains.data : v->target_gradients;
    s->scores = (float *)b->shared_scores.data;
    s->stride = shared_stride(negatives);
    s->inverse[SIDE_TARGET] = lengths;
    s->positive_inverse = lengths + examples;
    s->positive_score = lengths + 2 * examples;
    s->positive_coefficient = lengths + 3 * examples;
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

/* Computes Z = U V^T. cuBLAS expects matrices stored by columns, but these are stored by rows, so it multiplies their transposes. */
int multiply_scores(struct backend *b, const struct step_view *v, const struct shared_view *s) {
    int span = (int)v->span, t = (int)s->examples, k = (int)s->negatives;
    const struct blas_matrix u = {s->unit[SIDE_TARGET], span, 0}, n = {s->unit[SIDE_CONTEXT], span, 1};
    const struct blas_product p = {n, u, s->scores, (int)s->stride, k, t, span, b->matmul};
    return cuda_multiply(b, &p);
}
int multiply_gains(struct backend *b, const struct step_view *v, const struct shared_view *s) {
    int span = (int)v->span, t = (int)s->examples, k = (int)s->negatives, stride = (int)s->stride;
    const struct blas_matrix u = {s->unit[SIDE_TARGET], span, 0}, n = {s->unit[SIDE_CONTEXT], span, 0};
    const struct blas_product targets = {n, {s->scores, stride, 0}, s->gains, span, span, t, k, b->matmul};
    const struct blas_product negatives = {u, {s->scores, stride, 1}, v->context_gradients, span, span, k, t, b->matmul};
    return cuda_multiply(b, &targets) || cuda_multiply(b, &negatives) ? -1 : 0;
}

} // namespace

int shared_launch(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v, struct learn_view *l) {
    struct shared_view s;
    struct shared_kernels k = kernels_of_rows(v);
    l->frozen[SIDE_TARGET] = request->loss_only ? NULL : request->target->frozen;
    l->frozen[SIDE_CONTEXT] = request->loss_only ? NULL : request->context->frozen;
    if (check(request, v, stage->pool.product) || fill_shared(b, stage, request, v, &s)) return -1;
    uint64_t examples = s.examples, rows = examples + s.negatives;
    if (s.product && launch(b, k.multiply, dim3(s.examples), v, &s, "multiply")) return -1;
    if (launch_rows(b, k.gather, rows, &k, v, &s, "gather") || multiply_scores(b, v, &s)) return -1;
    (s.loss.kind == LOSS_LOGISTIC ? learn_by_pairs : learn)<<<s.examples, LEARN_CTA, 0, b->compute>>>(*v, s);
    CK_LAUNCH("learn");
    if (request->loss_only) return 0;
    /* For dot products, the matrix product has completed the gradients of negatives; for cosines they must still be finished. */
    if (multiply_gains(b, v, &s) || launch_rows(b, k.finish, s.cosine ? rows : examples, &k, v, &s, "finish")) return -1;
    return s.product ? launch(b, k.spread, dim3(s.examples, s.loss.cubes > 0 ? 3 : 2), v, &s, "spread") : 0;
}
