/* losses: the loss of a block's scores, and how the scores should change. word2vec's loss of one logit is the first part of this file.
 *
 * A block compares its targets with P positive and N negative contexts. A target's scores s are dot products, or cosines; z is
 * s / temperature. The loss is summed over the block's targets:
 *
 *   logistic      sum over positives of softplus(-z)  +  sum over negatives of softplus(z)             (word2vec's)
 *   softmax       sum over positives p of  log(e^z_p + W sum over negatives of e^z_n) - z_p            (W: negative_weight)
 *     with K > 0  sum over positives p of  K log(mean over negatives of e^z_n) - z_p       (K: negative_power; BSL's)
 *   bpr           sum over positives p and negatives n of  softplus(z_n - z_p)
 *   contrastive   sum over positives p of  (1 - s_p) + W / N sum over negatives of max(0, s_n - margin)   (SimpleX's)
 *
 *   glove         sum over positives of  f(x) (s - log x)^2 / 2,   f(x) = min(1, (x / x_max)^x_power)   (GloVe's; x: its weight, a count;
 *                                                                                                     negatives add nothing)
 *
 * A positive may have a weight w (loss_options.weighted), which multiplies its part of the loss, the term of the sum over p:
 *
 *   logistic      sum over positives of w_p softplus(-z)  +  sum over negatives of softplus(z)
 *   the others    sum over positives p of  w_p x (the term for p above)
 *
 * If a batch's targets are multiplied (triples.h), each example adds `cubes` x sum |x|^3 of its three rows to what is minimized.
 * As with weight_decay, the loss that a step returns does not contain this penalty.
 *
 * Each positive is compared with the negatives of its block and with no other positive. softmax is the logistic loss of how far a positive
 * is above its negatives: with L = log(W sum of e^z_n) it is softplus(L - z_p), which holds for any z. With a negative_power the positive
 * does not occur in the logarithm: its coefficient is the same however high it is, and the negatives are pushed K times as strongly (Wu et
 * al., "BSL: Understanding and Improving Softmax Loss for Recommendation", ICDE 2024). Such a loss may be below zero.
 *
 * Shared negatives may also be compared by distance: s = margin - |u - v|, and logistic's negatives may share a weight of 1 by how near they are
 * (loss_options.adversarial): p_n = e^(A z_n) / sum over negatives of e^(A z), which counts as a constant in gradients (Sun et al., "RotatE",
 * ICLR 2019). With `relations` above 0, each triple adds that weight x the softmax loss of its relation among all relations (Chen et al.,
 * "Relation Prediction as an Auxiliary Training Objective", AKBC 2021).
 *
 * A backend needs a score's coefficient c = d loss / d s. For a cosine s = u.v / (|u| |v|), the gradient of row u is
 *
 *   sum over v of  c / (|u| |v|) x v   -   (sum over v of c s) / |u|^2 x u
 *
 * and that of row v has u and v exchanged. It needs the coefficient of a dot product, c / (|u| |v|), and the factor of u
 * in its own gradient, which loss_own() computes. For a distance d the coefficient of the dot product is c / d, and the factor
 * of u in its own gradient is minus the sum of these.
 */
#ifndef SPTX_LOSSES_H
#define SPTX_LOSSES_H

#include "portable.h"

/* ==== one logit ====
 *
 * The skip-gram loss with negative sampling, of one logit at a time.
 *
 *   s = dot(target row, context row);  y = 1 for a positive, 0 for a negative
 *   loss(s, y) = softplus(s) - y s      (Mikolov et al. 2013, eq. 4, as binary cross-entropy with logits)
 *   d loss / d s = sigmoid(s) - y       the pair's coefficient
 */

/* Returns e^x to 2 ulp, for x limited to [-87, 88], without branches or calls, so that compilers vectorize loops over it. As in Cephes' expf: x =
 * n ln 2 + r, a polynomial gives e^r, and n is added to the exponent bits. */
FN float sgns_exp(float x) {
    const float round = 12582912.0f; /* 1.5 x 2^23: after adding it, the low bits contain the nearest integer */
    union {
        uint32_t i;
        float f;
    } power;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = x * 1.44269504088896341f + round;
    n -= round;
    float r = x - n * 0.693359375f;
    r += n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    power.i = (uint32_t)((int32_t)n + 127) << 23; /* if x is NaN any value is good enough, since p is NaN then */
    return p * power.f;
}

/* Returns sigmoid(s) - y, from e^-|s| so that both tails keep their digits. */
FN float sgns_coefficient(float s, float y) {
    float a = s < 0 ? s : -s, e = sgns_exp(a);
    float top = s < 0 ? e : 1.0f;
    return top / (1.0f + e) - y;
}

/* Return two parts of the loss softplus(s) - y s = linear + log(1 + tail). Callers multiply the factors (1 + tail) of many pairs in a double and
 * take one logarithm: each factor is at most 2, so 512 of them cannot overflow. */
FN float sgns_loss_linear(float s, float y) {
    return (s > 0 ? s : 0) - y * s;
}
FN float sgns_loss_tail(float s) {
    return sgns_exp(s < 0 ? s : -s);
}

/* numbered as the values of train.loss, and of train.score */
enum loss_kind { LOSS_LOGISTIC, LOSS_SOFTMAX, LOSS_BPR, LOSS_CONTRASTIVE, LOSS_GLOVE };
enum { LOSS_KINDS = LOSS_GLOVE + 1 };
enum loss_score { SCORE_DOT, SCORE_COSINE, SCORE_DISTANCE };

/* The options of a loss. All zeros: word2vec's loss. */
struct loss_options {
    enum loss_kind kind;
    enum loss_score score;
    float temperature;     /* number by which scores are divided; 0: 1 */
    float margin;          /* for contrastive, and for distances */
    float negative_weight; /* for softmax and contrastive */
    float negative_power;  /* softmax: factor K of the logarithm over negatives, from which the positive is then left out; 0: plain softmax */
    int weighted;          /* 1: the batch has weights of positives; 0: every positive weighs 1 */
    float x_max, x_power;  /* for glove */
    float cubes;           /* if targets are multiplied: factor of the penalty of cubes */
    float relations;       /* if the batch's first block has all relations as targets: weight of the loss of relations */
    float adversarial;     /* logistic loss of shared negatives: A of their weights; 0: each negative weighs 1 */
};

FN float loss_inverse_temperature(const struct loss_options *o) {
    return o->temperature > 0 ? 1.0f / o->temperature : 1.0f;
}

/* Returns 1 for the logistic loss of dot products without temperature or weights, for which backends have faster code. */
FN int loss_is_plain(const struct loss_options *o) {
    return o->kind == LOSS_LOGISTIC && o->score == SCORE_DOT && loss_inverse_temperature(o) == 1.0f && !o->weighted;
}

/* Returns the weight of positive i. weights: [positives]; NULL: every positive weighs 1. */
FN float loss_weight(const float *weights, uint32_t i) {
    return weights ? weights[i] : 1.0f;
}

/* ---- cosines ---- */

/* Returns 1 / |row| from the sum of the row's squares; 0 for a row of zeros, whose cosines and gradient are then 0. */
FN float loss_inverse_length(float squares) {
    return squares > 1e-24f ? 1.0f / sqrtf(squares) : 0.0f;
}

/* Returns the factor of a row in its own gradient. coefficients_x_cosines: coefficient x cosine, summed over its pairs. */
FN float loss_own(float coefficients_x_cosines, float inverse_length) {
    return -coefficients_x_cosines * inverse_length * inverse_length;
}

/* ---- distances ---- */

/* Returns |u - v| of two rows that were not subtracted. squares: |u|^2 + |v|^2; dot: u.v. Tensor cores know a product to 2^-11, so rows nearer than
 * LOSS_NEAR of their squares count as that far apart, on every backend. */
#define LOSS_NEAR (1.0f / 4096)
FN float loss_distance(float squares, float dot) {
    float apart = squares - 2.0f * dot, least = LOSS_NEAR * squares + 1e-12f;
    return sqrtf(apart > least ? apart : least);
}

/* ---- scores ----
 *
 * `inverse` is 1 / temperature. Coefficients below are d loss / d z; d loss / d s is `inverse` times that.
 */

/* A running sum of softplus(x) that computes one logarithm for 512 terms: it multiplies their factors, each at most 2, so that the product stays
 * far below the largest double. */
struct loss_sum {
    double linear, product, logs;
    uint32_t factors;
};
FN struct loss_sum loss_sum_of_none(void) {
    struct loss_sum sum = {0, 1, 0, 0};
    return sum;
}
FN void loss_add_softplus(struct loss_sum *sum, float x) {
    sum->linear += sgns_loss_linear(x, 0.0f);
    sum->product *= 1.0 + sgns_loss_tail(x);
    if (++sum->factors < 512) return;
    sum->logs += log(sum->product);
    sum->product = 1;
    sum->factors = 0;
}
FN double loss_of_sum(const struct loss_sum *sum) {
    return sum->linear + sum->logs + log(sum->product);
}

/* Returns `weight` x the sum, and resets the sum to zero. */
FN double loss_take_weighted(struct loss_sum *sum, float weight) {
    double loss = (double)weight * loss_of_sum(sum);
    *sum = loss_sum_of_none();
    return loss;
}

/* softmax: returns the exponential of a negative's score relative to `most`, the largest score of a negative. */
FN float loss_power(float s, float most, float inverse) {
    return sgns_exp((s - most) * inverse);
}
/* softmax: returns the number to which each positive's z is compared: the logarithm of the sum of the negatives' weighted exponentials, or, with a
 * negative_power, of their mean. */
FN float loss_against(const struct loss_options *o, float powers, float most, float inverse, uint32_t negatives) {
    float weight = o->negative_power > 0 ? 1.0f / (float)negatives : o->negative_weight;
    return logf(weight * powers) + most * inverse;
}
/* softmax: returns the coefficient of a positive. above: its z minus loss_against(). */
FN float loss_pulled(const struct loss_options *o, float above) {
    return o->negative_power > 0 ? -1.0f : sgns_coefficient(above, 1.0f);
}
/* softmax: returns a factor f: the coefficients of the negatives add up to -f x the sum of the positives' coefficients. */
FN float loss_push(const struct loss_options *o) {
    return o->negative_power > 0 ? o->negative_power : 1.0f;
}
/* softmax with negative_power above 0: returns the loss of a positive. */
FN float loss_of_positive(const struct loss_options *o, float z, float against) {
    return o->negative_power * against - z;
}

/* glove. A row has two more columns than its vector, so that the dot product of two rows includes a bias of each:
 *
 *   target row   vector, its bias, 1
 *   context row  vector, 1, its bias
 *
 * The column of ones never changes: its sum of squared gradients begins at LOSS_GLOVE_STILL, and adagrad divides by the root of that sum. The sum
 * of a bias begins at 1, and all others at optimizer.initial_accumulator, as in GloVe's program. loss_fit() returns the coefficient of a score,
 * and sets *loss. GloVe limits each column's gradient to LOSS_GLOVE_CLIP; here the coefficient is limited, so that none is infinite. */
enum { LOSS_GLOVE_BIASES = 2, LOSS_GLOVE_CLIP = 100 };
#define LOSS_GLOVE_STILL 1e38f
FN float loss_log(float x) { /* like sgns_exp(): Cephes' logf, without branches. x must be above 0; below FLT_MIN it is treated as FLT_MIN */
    union {
        uint32_t i;
        float f;
    } of;
    of.f = x < 1.17549435e-38f ? 1.17549435e-38f : x;
    int32_t e = (int32_t)(of.i - 0x3F3504F3u) >> 23; /* so that the fraction is within 2^-.5 .. 2^.5 */
    of.i -= (uint32_t)e << 23;
    float r = of.f - 1.0f, square = r * r, n = (float)e;
    float p = 7.0376836292e-2f;
    p = p * r - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    p = p * r * square - 2.12194440e-4f * n - 0.5f * square;
    return r + p + 0.693359375f * n;
}
/* Returns f(x), of log x. */
FN float loss_share(const struct loss_options *o, float log_x) {
    float below = o->x_power * (log_x - loss_log(o->x_max));
    return below < 0 ? sgns_exp(below) : 1.0f;
}
FN float loss_fit(float s, float log_x, float share, float *loss) {
    float apart = s - log_x, c = share * apart;
    *loss = 0.5f * c * apart;
    return c > LOSS_GLOVE_CLIP ? (float)LOSS_GLOVE_CLIP : c < -LOSS_GLOVE_CLIP ? -(float)LOSS_GLOVE_CLIP : c;
}

/* contrastive: return how far a negative's score is above the margin, and the weight of a negative whose score is above it. positives: sum of the
 * positives' weights. */
FN float loss_past(const struct loss_options *o, float s) {
    float past = s - o->margin;
    return past > 0 ? past : 0.0f;
}
FN float loss_negative_share(const struct loss_options *o, float positives, uint32_t negatives) {
    return negatives ? o->negative_weight * positives / (float)negatives : 0.0f;
}

#endif
