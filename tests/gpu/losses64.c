#include "losses64.h"

static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double logistic(const double *s, double *k, uint64_t count, uint64_t positives, double inverse) {
    double loss = 0;
    for (uint64_t i = 0; i < count; i++) {
        double z = s[i] * inverse;
        loss += softplus(i < positives ? -z : z);
        k[i] = (sigmoid(z) - (i < positives)) * inverse;
    }
    return loss;
}

static double softmax(const double *s, double *k, uint64_t count, uint64_t positives, double inverse, double weight) {
    double loss = 0;
    for (uint64_t p = 0; p < positives && count > positives; p++) {
        double all = exp(s[p] * inverse);
        for (uint64_t i = positives; i < count; i++) all += weight * exp(s[i] * inverse);
        loss += log(all) - s[p] * inverse;
        k[p] += (exp(s[p] * inverse) / all - 1) * inverse;
        for (uint64_t i = positives; i < count; i++) k[i] += weight * exp(s[i] * inverse) / all * inverse;
    }
    return loss;
}

/* The mean of the negatives takes no positive in, and has a weight. */
static double softmax_apart(const double *s, double *k, uint64_t count, uint64_t positives, double inverse, double power) {
    double all = 0;
    if (count == positives) return 0;
    for (uint64_t i = positives; i < count; i++) all += exp(s[i] * inverse);
    double loss = (double)positives * power * log(all / (double)(count - positives));
    for (uint64_t p = 0; p < positives; p++) loss -= s[p] * inverse, k[p] = -inverse;
    for (uint64_t i = positives; i < count; i++) k[i] = (double)positives * power * exp(s[i] * inverse) / all * inverse;
    return loss;
}

static double bpr(const double *s, double *k, uint64_t count, uint64_t positives, double inverse) {
    double loss = 0;
    for (uint64_t p = 0; p < positives; p++)
        for (uint64_t i = positives; i < count; i++) {
            double above = (s[i] - s[p]) * inverse;
            loss += softplus(above);
            k[i] += sigmoid(above) * inverse;
            k[p] -= sigmoid(above) * inverse;
        }
    return loss;
}

static double contrastive(const double *s, double *k, uint64_t count, uint64_t positives, double margin, double weight) {
    double loss = 0, share = weight * (double)positives / (double)(count - positives);
    for (uint64_t i = 0; i < count; i++) {
        int past = i >= positives && s[i] > margin;
        loss += i < positives ? 1 - s[i] : past ? share * (s[i] - margin) : 0;
        k[i] = i < positives ? -1 : past ? share : 0;
    }
    return loss;
}

double losses64(const struct loss_options *o, const double *s, double *k, uint64_t count, uint64_t positives, double scale) {
    double inverse = o->temperature > 0 ? 1 / (double)o->temperature : 1, weight = (double)o->negative_weight, loss = 0;
    for (uint64_t i = 0; i < count; i++) k[i] = 0;
    switch (o->kind) {
    case LOSS_LOGISTIC: loss = logistic(s, k, count, positives, inverse); break;
    case LOSS_SOFTMAX:
        loss = o->negative_power > 0 ? softmax_apart(s, k, count, positives, inverse, (double)o->negative_power)
                                     : softmax(s, k, count, positives, inverse, weight);
        break;
    case LOSS_BPR: loss = bpr(s, k, count, positives, inverse); break;
    case LOSS_CONTRASTIVE: loss = contrastive(s, k, count, positives, (double)o->margin, weight); break;
    }
    for (uint64_t i = 0; i < count; i++) k[i] *= scale;
    return loss;
}
