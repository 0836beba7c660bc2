/* step_learn: the first half of a step for every loss except the logistic one of dot products, for pooled targets, and with frozen rows. It consists
 * of these passes over the blocks, all from old rows (the plain logistic loss needs only one: step_dots.cu):
 *
 *   pool    a block's vector, if targets are pooled: the weighted sum of its rows
 *   score   dot products of vectors and contexts; with cosines the squares of both. With several ranks these are partial sums
 *   learn   from a block's scores: its loss, the coefficients of dot products and, with cosines, each place's factor of its own
 *           row (kernels/losses.h)
 *   gain    blocks of one vector: its gradient, and updates of contexts that occur once in the batch. Blocks of several vectors:
 *           the gradients of the vectors, and of each occurrence of a context
 *   share   distributes a pooled vector's gradient to its rows
 *
 * A vector is a target's row, or the pooled vector of a block. Each sum is always added in the same order. Pairs of two frozen rows are left out of
 * the loss and the counts, as kernels/cpu/batch.c leaves them out of a batch.
 */
#ifndef SPTX_CUDA_STEP_LEARN_CUH
#define SPTX_CUDA_STEP_LEARN_CUH

#include "step_dots.cuh"

extern "C" {
#include "kernels/losses.h"
}

enum { LEARN_CTA = 256 }; /* threads of a thread block, except that rows on which more than a warp works have CTA threads */

struct learn_view {
    struct loss_options loss;
    struct example_pool pool;
    float *scores;              /* [terms] first dot products; learn replaces them by scores, and then, for cosines, by coefficient x cosine */
    float *lengths[2];          /* [side][places] first the rows' squares, then 1 / length, then the row's factor in its own gradient. A pooled
                                 * vector uses the place of its block's first target. NULL: scores are not cosines */
    float *pooled;              /* [blocks x span] pooled vectors; NULL: a block's vectors are its target rows */
    const float *weights;       /* [contexts] weights of positives; NULL: every positive weighs 1 */
    const uint32_t *frozen[2];  /* [side] bit map of frozen rows; NULL: no row is frozen */
    struct batch_counts *counts;
    uint64_t length_slots[2];   /* [side] slot of the exchange for place 0; place p uses the p-th slot after it */
    int one_vector;             /* 1: every block has one vector */
};

/* ---- by kernels ---- */

/* Stores this rank's partial sum: posts it to the slot of the exchange, or, if there is only one rank, writes it to to[at]. */
static __device__ __forceinline__ void give_part(const struct step_view &v, float *to, uint64_t at, uint64_t slot, float part) {
    if (v.exchange.ranks > 1) {
        exchange_post(v.exchange, slot, part);
        exchange_keep(v.exchange, slot, part);
    } else {
        to[at] = part;
    }
}
static __device__ __forceinline__ float take_whole(const struct step_view &v, const float *from, uint64_t at, uint64_t slot) {
    return v.exchange.ranks > 1 ? exchange_collect(v.exchange, slot, exchange_kept(v.exchange, slot)) : from[at];
}

/* Reads a block's vector: a target row, or the pooled vector (zeros if the block has no targets). occurrence: that of the target, or of the first
 * pooled one. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void read_vector(const struct step_view &v, const struct learn_view &l, uint32_t block,
                                                   uint32_t occurrence, float4 (&x)[VEC]) {
    if (l.pooled) read_row<F, G, VEC>(x, l.pooled + (uint64_t)block * v.span, threadIdx.x % G, v.quads);
    else read_target<F, G, VEC>(v, occurrence, x);
}

/* threads: threads of a thread block; width: threads of a group, which work together; count: groups of a thread block. */
template <int G> struct learn_groups {
    static constexpr int threads = G > 32 ? (int)CTA : (int)LEARN_CTA, width = G < 32 ? 32 : G, count = threads / width;
};

/* The part of a block on which one group works: group number `part` of v.parts. */
struct block_share {
    uint32_t block, part, group;
    uint32_t start, end;   /* the block's contexts are start .. end - 1 */
    uint32_t first, last;  /* this group's contexts are first .. last - 1 */
    uint32_t target, targets;
};
template <int G> static __device__ __forceinline__ bool take_share(const struct step_view &v, struct block_share &s) {
    constexpr uint32_t WIDTH = learn_groups<G>::width, GROUPS = learn_groups<G>::count;
    s.group = threadIdx.x / WIDTH;
    s.block = (blockIdx.x * GROUPS + s.group) / v.parts;
    s.part = s.group % v.parts;
    if (s.block >= v.counts->blocks) return false; /* true for all groups that share a block, or for none */
    s.start = v.context_starts[s.block], s.end = v.context_starts[s.block + 1];
    uint32_t each = (s.end - s.start + v.parts - 1) / v.parts, first = s.start + s.part * each;
    s.first = first < s.end ? first : s.end;
    s.last = s.first + each < s.end ? s.first + each : s.end;
    s.target = v.target_starts[s.block];
    s.targets = v.target_starts[s.block + 1] - s.target;
    return true;
}

/* ---- by the host ---- */

/* Returns the weights of a batch's positives if the loss uses them; NULL: every positive weighs 1. */
static inline const float *weights_of(const struct stage *stage, const struct step_request *request) {
    return stage->weighted && request->loss.weighted ? (const float *)stage->weights.data : NULL;
}

typedef void learn_kernel(const struct step_view, const struct learn_view);
struct learn_launch_of {
    learn_kernel *kernel;
    uint32_t threads, groups; /* threads, and groups, of a thread block */
};

/* step_learn.cu, step_learn.cu */
struct learn_launch_of learn_score(const struct step_view *view);
struct learn_launch_of learn_gain_many(const struct step_view *view);
struct learn_launch_of learn_gain_one(const struct step_view *view);
/* step_learn.cu: enqueue the passes `pool` and `share`. blocks: upper bound of the number of blocks. */
int pool_launch(struct backend *backend, uint32_t blocks, const struct step_view *view, const struct learn_view *learn);
int pool_share(struct backend *backend, uint32_t blocks, const struct step_view *view, const struct learn_view *learn);

/* Returns 1 if the step needs the passes listed above. */
int learn_is_wanted(const struct stage *stage, const struct step_request *request);
/* step_shared.cu: enqueues the first half of a step with shared negatives, in place of these passes. Sets the fields of *learn that the second
 * half needs. */
int shared_launch(struct backend *backend, const struct stage *stage, const struct step_request *request,
                  const struct step_view *view, struct learn_view *learn);
/* Enqueues all passes on the compute stream. Sets *learn, which the second half of the step needs. */
int learn_launch(struct backend *backend, const struct stage *stage, const struct step_request *request,
                 const struct step_view *view, struct learn_view *learn);

/* ==== the losses of one line ====
 *
 * The losses of kernels/losses.h for the scores of one vector, computed by WIDTH threads: a vector of a batch (step_learn.cu), or a new list
 * (fold_in.cu). A Line has
 *
 *   count, positives, negatives      numbers of scores (positives come first), and of negatives that are not left out
 *   tid, scale, inverse              number of the thread; factor of the gradients; 1 / temperature
 *   score_at(i), coefficient_at(i)   references to two different arrays
 *   is_there(i)                      false: the score is left out, and its coefficient is 0
 *   adds_loss(i)                     false: the logistic loss is summed without it
 *   positive_weights()               [positives] weights of their terms; NULL: 1 each
 *
 * A thread writes the coefficients of the scores that it reads: tid, tid + WIDTH .. of all, or of the negatives alone.
 */

/* ---- sums over a group of threads ---- */

struct plus {
    template <class T> __device__ T operator()(T a, T b) const {
        return a + b;
    }
};
struct larger {
    __device__ float operator()(float a, float b) const {
        return a > b ? a : b;
    }
};

/* Combines the values of all threads of the group, always in the same order, so all threads get the same bits. */
template <int WIDTH, class T, class Combine> static __device__ T across(T x, Combine combine) {
    for (int width = 16; width; width /= 2) x = combine(x, __shfl_xor_sync(ALL_LANES, x, width));
    if constexpr (WIDTH > 32) {
        __shared__ T warps[WIDTH / 32];
        __syncthreads(); /* waits until all threads have read the values of the previous call */
        if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = x;
        __syncthreads();
        x = warps[0];
        for (int w = 1; w < WIDTH / 32; w++) x = combine(x, warps[w]);
    }
    return x;
}

static __device__ __forceinline__ double softplus(float x) {
    return (double)(sgns_loss_linear(x, 0.0f) + log1pf(sgns_loss_tail(x)));
}

/* ---- losses: each writes the coefficients, and returns the thread's part of the loss ---- */

template <int WIDTH, class Line> static __device__ double learn_logistic(const Line &s) {
    double loss = 0;
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        bool positive = i < s.positives;
        float z = s.score_at(i) * s.inverse;
        float weight = positive ? loss_weight(s.positive_weights(), i) : 1.0f;
        s.coefficient_at(i) = s.is_there(i) ? s.scale * s.inverse * weight * sgns_coefficient(z, positive ? 1.0f : 0.0f) : 0;
        if (s.is_there(i) && s.adds_loss(i)) loss += (double)weight * softplus(positive ? -z : z);
    }
    return loss;
}

template <int WIDTH, class Line> static __device__ void learn_nothing(const Line &s) {
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) s.coefficient_at(i) = 0;
}

template <int WIDTH, class Line> static __device__ double learn_softmax(const struct loss_options &o, const Line &s) {
    double loss = 0;
    float most = -INFINITY, sum = 0, pulled = 0, factor = s.scale * s.inverse;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH)
        if (s.is_there(i)) most = larger()(most, s.score_at(i));
    most = across<WIDTH>(most, larger());
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH)
        if (s.is_there(i)) sum += loss_power(s.score_at(i), most, s.inverse);
    sum = across<WIDTH>(sum, plus());
    float against = loss_against(&o, sum, most, s.inverse, s.negatives);
    for (uint32_t i = s.tid; i < s.positives; i += WIDTH) {
        float z = s.score_at(i) * s.inverse, weight = loss_weight(s.positive_weights(), i);
        float coefficient = weight * loss_pulled(&o, z - against);
        loss += (double)weight * (o.negative_power > 0 ? (double)loss_of_positive(&o, z, against) : softplus(against - z));
        pulled -= coefficient;
        s.coefficient_at(i) = factor * coefficient;
    }
    pulled = across<WIDTH>(pulled, plus());
    float share = factor * loss_push(&o) * pulled / sum;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH)
        s.coefficient_at(i) = s.is_there(i) ? share * loss_power(s.score_at(i), most, s.inverse) : 0;
    return loss;
}

/* Bayesian personalized ranking. For every positive a thread visits the same negatives, so it can add up their coefficients in place. */
template <int WIDTH, class Line> static __device__ double learn_bpr(const Line &s) {
    double loss = 0;
    float factor = s.scale * s.inverse;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) s.coefficient_at(i) = 0;
    for (uint32_t p = 0; p < s.positives; p++) {
        float own = s.score_at(p), weight = loss_weight(s.positive_weights(), p), pulled = 0;
        for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) {
            float above = (s.score_at(i) - own) * s.inverse, coefficient = weight * sgns_coefficient(above, 0.0f);
            if (!s.is_there(i)) continue;
            loss += (double)weight * softplus(above);
            pulled += coefficient;
            s.coefficient_at(i) += coefficient;
        }
        pulled = across<WIDTH>(pulled, plus());
        if (s.tid == 0) s.coefficient_at(p) = -factor * pulled;
    }
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) s.coefficient_at(i) *= factor;
    return loss;
}

template <int WIDTH, class Line> static __device__ double learn_contrastive(const struct loss_options &o, const Line &s) {
    const float *weights = s.positive_weights();
    float all = 0;
    for (uint32_t i = s.tid; i < s.positives && weights; i += WIDTH) all += weights[i];
    all = weights ? across<WIDTH>(all, plus()) : (float)s.positives;
    float share = loss_negative_share(&o, all, s.negatives);
    double loss = 0;
    for (uint32_t i = s.tid; i < s.positives; i += WIDTH) {
        float weight = loss_weight(weights, i);
        loss += (double)weight * (1.0 - (double)s.score_at(i));
        s.coefficient_at(i) = -s.scale * weight;
    }
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) {
        float past = s.is_there(i) ? loss_past(&o, s.score_at(i)) : 0;
        loss += (double)share * (double)past;
        s.coefficient_at(i) = past > 0 ? share * s.scale : 0;
    }
    return loss;
}

template <int WIDTH, class Line> static __device__ double learn_glove(const struct loss_options &o, const Line &s) {
    double loss = 0;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) s.coefficient_at(i) = 0;
    for (uint32_t i = s.tid; i < s.positives; i += WIDTH) {
        float own, log_x = loss_log(loss_weight(s.positive_weights(), i));
        s.coefficient_at(i) = s.scale * loss_fit(s.score_at(i), log_x, loss_share(&o, log_x), &own);
        loss += (double)own;
    }
    return loss;
}

template <int WIDTH, class Line> static __device__ double learn_line(const struct loss_options &o, const Line &s) {
    if (o.kind == LOSS_LOGISTIC) return learn_logistic<WIDTH>(s);
    if (s.negatives && o.kind == LOSS_SOFTMAX) return learn_softmax<WIDTH>(o, s);
    if (o.kind == LOSS_BPR) return learn_bpr<WIDTH>(s);
    if (o.kind == LOSS_CONTRASTIVE) return learn_contrastive<WIDTH>(o, s);
    if (o.kind == LOSS_GLOVE) return learn_glove<WIDTH>(o, s);
    learn_nothing<WIDTH>(s); /* softmax compares positives with negatives, so nothing is learned without either */
    return 0;
}

#endif
