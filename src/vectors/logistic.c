#include "logistic.h"

#include "base/memory.h"
#include "dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEWTON_STEPS = 60,
    GRADIENT_STEPS = 100, /* most steps of conjugate gradients in a Newton step */
    HALVINGS = 30,        /* most times that a Newton step is halved */
    SPAN = 64             /* number of rows that are summed in float32; the sums of these spans are added in double */
};
static const double enough = 1e-3;           /* the fit ends when the gradient's length is this share of its first length */
static const double enough_of_a_step = 0.05; /* a Newton step's solver ends when its residual is this share of the gradient's
                                              * length */

/* The state of a fit. Arrays of all samples are in one block, arrays of all columns (the intercept is column 0) in another. */
struct fit {
    const struct logistic_samples *samples;
    uint32_t columns;
    double *z, *dz, *slope, *bend; /* [count] z; its change in a step; the loss's first and second derivative by z */
    double *w, *gradient, *step, *rest, *way, *turned; /* [columns] */
    float *narrow, *sums;                              /* [dim] */
};

static const float *sample_of(const struct fit *f, uint64_t i) {
    const struct logistic_samples *s = f->samples;
    return s->x + (s->rows ? s->rows[i] : i) * s->dim;
}

static double sign_of(const struct fit *f, uint64_t i) {
    return f->samples->of_class[i] ? 1 : -1;
}

static double product(const double *a, const double *b, uint32_t columns) {
    double sum = 0;
    for (uint32_t i = 0; i < columns; i++) sum += a[i] * b[i];
    return sum;
}

/* Computes out_i = v_0 + v_1.. x_i for every sample i. */
static void forward(struct fit *f, const double *v, double *out) {
    for (uint32_t i = 1; i < f->columns; i++) f->narrow[i - 1] = (float)v[i];
    for (uint64_t i = 0; i < f->samples->count; i++) out[i] = v[0] + (double)dot(f->narrow, sample_of(f, i), f->samples->dim);
}

/* Adds the sum over samples i of weight_i (1, x_i) to `out`. */
static void backward(struct fit *f, const double *weights, double *out) {
    uint32_t dim = f->samples->dim;
    for (uint64_t first = 0; first < f->samples->count; first += SPAN) {
        uint64_t end = first + SPAN < f->samples->count ? first + SPAN : f->samples->count;
        memset(f->sums, 0, dim * sizeof *f->sums);
        for (uint64_t i = first; i < end; i++) {
            const float *x = sample_of(f, i);
            float weight = (float)weights[i];
            for (uint32_t j = 0; j < dim; j++) f->sums[j] += weight * x[j];
            out[0] += weights[i];
        }
        for (uint32_t j = 0; j < dim; j++) out[j + 1] += (double)f->sums[j];
    }
}

/* Returns log(1 + exp(-m)) without overflow. */
static double loss_of(double m) {
    return m > 0 ? log1p(exp(-m)) : log1p(exp(m)) - m;
}

/* Returns the objective at w + t x step. */
static double value_at(const struct fit *f, double t) {
    double squares = 0, losses = 0;
    for (uint32_t i = 0; i < f->columns; i++) squares += (f->w[i] + t * f->step[i]) * (f->w[i] + t * f->step[i]);
    for (uint64_t i = 0; i < f->samples->count; i++) losses += loss_of(sign_of(f, i) * (f->z[i] + t * f->dz[i]));
    return squares / 2 + losses;
}

/* Computes the gradient at w, and both derivatives of each sample's loss. Returns the gradient's length. */
static double find_gradient(struct fit *f) {
    memcpy(f->gradient, f->w, f->columns * sizeof *f->gradient);
    for (uint64_t i = 0; i < f->samples->count; i++) f->slope[i] = -sign_of(f, i) / (1 + exp(sign_of(f, i) * f->z[i]));
    backward(f, f->slope, f->gradient);
    for (uint64_t i = 0; i < f->samples->count; i++) f->bend[i] = fabs(f->slope[i]) * (1 - fabs(f->slope[i]));
    return sqrt(product(f->gradient, f->gradient, f->columns));
}

/* Computes turned = Hessian x way. */
static void turn(struct fit *f) {
    forward(f, f->way, f->dz);
    for (uint64_t i = 0; i < f->samples->count; i++) f->dz[i] *= f->bend[i];
    memcpy(f->turned, f->way, f->columns * sizeof *f->turned);
    backward(f, f->dz, f->turned);
}

/* Solves for the Newton step by conjugate gradients, until the residual is a twentieth of the gradient's length. */
static void find_step(struct fit *f, double length) {
    uint32_t columns = f->columns;
    double squares = length * length, stop = enough_of_a_step * length;
    memset(f->step, 0, columns * sizeof *f->step);
    for (uint32_t i = 0; i < columns; i++) f->way[i] = f->rest[i] = -f->gradient[i];
    for (int round = 0; round < GRADIENT_STEPS && squares > stop * stop; round++) {
        turn(f);
        double far = squares / product(f->way, f->turned, columns), before = squares;
        for (uint32_t i = 0; i < columns; i++) {
            f->step[i] += far * f->way[i];
            f->rest[i] -= far * f->turned[i];
        }
        squares = product(f->rest, f->rest, columns);
        for (uint32_t i = 0; i < columns; i++) f->way[i] = f->rest[i] + f->way[i] * squares / before;
    }
}

/* Takes the step, halved until the objective falls enough. Returns the new objective. */
static double take_step(struct fit *f, double value) {
    double slope = product(f->gradient, f->step, f->columns), t = 1, found;
    forward(f, f->step, f->dz);
    found = value_at(f, t);
    for (int i = 0; i < HALVINGS && found > value + 1e-4 * t * slope + 1e-12 * fabs(value); i++) found = value_at(f, t /= 2);
    for (uint32_t i = 0; i < f->columns; i++) f->w[i] += t * f->step[i];
    for (uint64_t i = 0; i < f->samples->count; i++) f->z[i] += t * f->dz[i];
    return found;
}

static void solve(struct fit *f) {
    double value = (double)f->samples->count * M_LN2, first = 0;
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double length = find_gradient(f);
        if (!step) first = length;
        if (length <= enough * first) break;
        find_step(f, length);
        value = take_step(f, value);
    }
}

int logistic_fit(float *w, const struct logistic_samples *samples) {
    struct fit f = {.samples = samples, .columns = samples->dim + 1};
    f.z = mem_zalloc(samples->count, 4 * sizeof *f.z, "a regression");
    f.w = mem_zalloc(f.columns, 6 * sizeof *f.w, "a regression");
    f.narrow = mem_aligned(samples->dim, 2 * sizeof *f.narrow, "a regression");
    int result = f.z && f.w && f.narrow ? 0 : -1;
    if (!result) {
        f.dz = f.z + samples->count, f.slope = f.dz + samples->count, f.bend = f.slope + samples->count;
        f.gradient = f.w + f.columns, f.step = f.gradient + f.columns, f.rest = f.step + f.columns;
        f.way = f.rest + f.columns, f.turned = f.way + f.columns;
        f.sums = f.narrow + samples->dim;
        solve(&f);
        for (uint32_t i = 0; i < f.columns; i++) w[i] = (float)f.w[i];
    }
    free(f.z);
    free(f.w);
    free(f.narrow);
    return result;
}

float logistic_score(const float *w, const float *x, uint32_t dim) {
    return w[0] + dot(w + 1, x, dim);
}
