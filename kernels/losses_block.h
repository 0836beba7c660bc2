/* losses_block: the losses of losses.h over one target's scores, positives first. Only kernels/cpu/rows.c includes this file; it
 * is compiled once for each instruction set. Each function replaces scores by `factor` x their coefficients (of z), and returns
 * the loss. weights: [positives]; NULL: all weigh 1, and the loss needs fewer logarithms. Sums have LOSS_LANES partial sums, so
 * that the compiler can use vector instructions of any width. */
#ifndef SPTX_LOSSES_BLOCK_H
#define SPTX_LOSSES_BLOCK_H

#include "losses.h"

#include <math.h>

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

static inline double learn_logistic(float *score, uint32_t positives, uint32_t negatives, const float *weights, float inverse,
                                    float factor) {
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

/* Leave the negatives with id `own` out of a sum. The first function sets their scores to LEFT_OUT, which adds nothing to a loss,
 * and returns how many there are; the second sets their exponentials or coefficients to 0. */
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

/* powers: [slots] the negatives' scores. ids: [slots] ids of the negatives, of which those equal to `own` are left out; NULL: no
 * negative is left out. Without negatives, the loss and all coefficients are 0. */
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

/* Replaces the scores of an example's positive and of the negatives that its batch shares by coefficients, for the softmax and
 * the logistic loss. Negatives with id `own` are left out. */
static inline double learn_shared(const struct loss_options *o, float *positive, const float *weight, float *scores,
                                  const uint32_t *ids, uint32_t count, uint32_t own, float scale) {
    float inverse = loss_inverse_temperature(o), factor = scale * inverse;
    if (o->kind == LOSS_SOFTMAX) return learn_softmax(o, positive, 1, weight, scores, ids, count, own, inverse, factor);
    uint32_t left = leave_out(scores, ids, count, own);
    double loss = learn_logistic(positive, 1, 0, weight, inverse, factor) + learn_logistic(scores, 0, count, NULL, inverse, factor);
    if (left) clear_left_out(scores, ids, count, own);
    return loss;
}

/* spare: [2 x negatives] first half: the negatives' coefficients summed over the positives, since their scores are still needed;
 * second half: their coefficients for one positive. */
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

/* Replaces scores[t_count x c_count] by `scale` x their coefficients, for any loss, and returns the loss. weights: [positives] or
 * NULL. spare: [2 x c_count] scratch. */
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
        }
    }
    return loss_sum;
}

#endif
