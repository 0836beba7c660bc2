/* step_learn_line: the losses of kernels/losses.h over the scores of one vector, for a group of WIDTH threads: a vector of a batch
 * (step_learn.cu), or a new list (fold_in.cu). A Line has
 *
 *   count, positives, negatives      scores, the positives first; negatives without those that are left out
 *   tid, scale, inverse              the thread; factor of the gradients; 1 / temperature
 *   score_at(i), coefficient_at(i)   references to two different arrays
 *   is_there(i)                      false: the score is left out, and its coefficient is 0
 *   adds_loss(i)                     false: the logistic loss is summed without it
 *   positive_weights()               [positives] weights of their terms; NULL: 1 each
 *
 * A thread writes the coefficients of the scores that it reads: tid, tid + WIDTH .. of all, or of the negatives alone.
 */
#ifndef SPTX_CUDA_STEP_LEARN_LINE_CUH
#define SPTX_CUDA_STEP_LEARN_LINE_CUH

#include "warp.cuh"

extern "C" {
#include "kernels/losses.h"
}

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

/* Returns the combination of the values of all threads of the group, made in a fixed order: all threads get the same bits. */
template <int WIDTH, class T, class Combine> static __device__ T across(T x, Combine combine) {
    for (int width = 16; width; width /= 2) x = combine(x, __shfl_xor_sync(ALL_LANES, x, width));
    if constexpr (WIDTH > 32) {
        __shared__ T warps[WIDTH / 32];
        __syncthreads(); /* all threads have read the values of the previous call */
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

/* Bayesian personalized ranking. A thread visits the same negatives for every positive, so it adds up their coefficients in
 * place. */
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

template <int WIDTH, class Line> static __device__ double learn_line(const struct loss_options &o, const Line &s) {
    if (o.kind == LOSS_LOGISTIC) return learn_logistic<WIDTH>(s);
    if (s.negatives && o.kind == LOSS_SOFTMAX) return learn_softmax<WIDTH>(o, s);
    if (o.kind == LOSS_BPR) return learn_bpr<WIDTH>(s);
    if (o.kind == LOSS_CONTRASTIVE) return learn_contrastive<WIDTH>(o, s);
    learn_nothing<WIDTH>(s); /* softmax compares positives with negatives, so it needs both */
    return 0;
}

#endif
