#include "losses64.h"

static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Scores of one vector, positives first; the loss turns them into coefficients. */
struct scores {
    const double *s;
    double *k;
    uint64_t count, positives;
    const float *weights; /* weights of the positives; NULL: all 1 */
    double inverse;       /* 1 / temperature */
};

static double weight_of(const struct scores *x, uint64_t p) {
    return x->weights ? (double)x->weights[p] : 1;
}

static double logistic(const struct scores *x) {
    double loss = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        int positive = i < x->positives;
        double z = x->s[i] * x->inverse, weight = positive ? weight_of(x, i) : 1;
        loss += weight * softplus(positive ? -z : z);
        x->k[i] = weight * (sigmoid(z) - positive) * x->inverse;
    }
    return loss;
}

static double softmax(const struct scores *x, double of_negatives) {
    double loss = 0;
    for (uint64_t p = 0; p < x->positives && x->count > x->positives; p++) {
        double own = exp(x->s[p] * x->inverse), all = own, weight = weight_of(x, p);
        for (uint64_t i = x->positives; i < x->count; i++) all += of_negatives * exp(x->s[i] * x->inverse);
        loss += weight * (log(all) - x->s[p] * x->inverse);
        x->k[p] += weight * (own / all - 1) * x->inverse;
        for (uint64_t i = x->positives; i < x->count; i++)
            x->k[i] += weight * of_negatives * exp(x->s[i] * x->inverse) / all * x->inverse;
    }
    return loss;
}

/* Computes the softmax loss in which the negatives' mean, with a weight, is apart from the positive. */
static double softmax_apart(const struct scores *x, double power) {
    double all = 0, loss = 0;
    for (uint64_t i = x->positives; i < x->count; i++) all += exp(x->s[i] * x->inverse);
    for (uint64_t p = 0; p < x->positives && x->count > x->positives; p++) {
        double weight = weight_of(x, p);
        loss += weight * (power * log(all / (double)(x->count - x->positives)) - x->s[p] * x->inverse);
        x->k[p] = -weight * x->inverse;
        for (uint64_t i = x->positives; i < x->count; i++)
            x->k[i] += weight * power * exp(x->s[i] * x->inverse) / all * x->inverse;
    }
    return loss;
}

static double bpr(const struct scores *x) {
    double loss = 0;
    for (uint64_t p = 0; p < x->positives; p++)
        for (uint64_t i = x->positives; i < x->count; i++) {
            double above = (x->s[i] - x->s[p]) * x->inverse, weight = weight_of(x, p);
            loss += weight * softplus(above);
            x->k[i] += weight * sigmoid(above) * x->inverse;
            x->k[p] -= weight * sigmoid(above) * x->inverse;
        }
    return loss;
}

static double contrastive(const struct scores *x, double margin, double of_negatives) {
    double loss = 0, share = of_negatives / (double)(x->count - x->positives);
    for (uint64_t p = 0; p < x->positives; p++) {
        double weight = weight_of(x, p);
        loss += weight * (1 - x->s[p]);
        x->k[p] = -weight;
        for (uint64_t i = x->positives; i < x->count; i++) {
            if (!(x->s[i] > margin)) continue;
            loss += weight * share * (x->s[i] - margin);
            x->k[i] += weight * share;
        }
    }
    return loss;
}

/* Counts of pairs are the weights of positives; there are no negatives. */
static double glove(const struct loss_options *o, const struct scores *x) {
    double loss = 0;
    for (uint64_t i = 0; i < x->positives; i++) {
        double count = weight_of(x, i), apart = x->s[i] - log(count), c = fmin(1, pow(count / (double)o->x_max, (double)o->x_power)) * apart;
        loss += 0.5 * c * apart;
        x->k[i] = fmax(-LOSS_GLOVE_CLIP, fmin(LOSS_GLOVE_CLIP, c));
    }
    return loss;
}

double losses64(const struct loss_options *o, const double *s, double *k, uint64_t count, uint64_t positives, const float *weights,
                double scale) {
    const struct scores x = {.s = s, .k = k, .count = count, .positives = positives, .weights = o->weighted ? weights : NULL,
                             .inverse = o->temperature > 0 ? 1 / (double)o->temperature : 1};
    double loss = 0;
    for (uint64_t i = 0; i < count; i++) k[i] = 0;
    switch (o->kind) {
    case LOSS_LOGISTIC: loss = logistic(&x); break;
    case LOSS_SOFTMAX:
        loss = o->negative_power > 0 ? softmax_apart(&x, (double)o->negative_power) : softmax(&x, (double)o->negative_weight);
        break;
    case LOSS_BPR: loss = bpr(&x); break;
    case LOSS_CONTRASTIVE: loss = contrastive(&x, (double)o->margin, (double)o->negative_weight); break;
    case LOSS_GLOVE: loss = glove(o, &x); break;
    }
    for (uint64_t i = 0; i < count; i++) k[i] *= scale;
    return loss;
}
