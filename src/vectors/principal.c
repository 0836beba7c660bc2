#include "principal.h"

#include "base/memory.h"
#include "eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Few rounds are enough: the directions are only the start of a map that is then improved. */
enum { ROUNDS = 20 };
static const double least_length = 1e-12;

struct directions {
    const float *rows; /* [count x dim] */
    uint64_t count;
    uint32_t dim;
    double *mean, *first, *second, *next; /* [dim] each; one allocation, which begins at `mean` */
};

static double product(const double *a, const double *b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++) sum += a[i] * b[i];
    return sum;
}

/* Returns a row's coordinate along a direction, measured from the mean. */
static double along(const struct directions *d, uint64_t row, const double *direction) {
    const float *values = d->rows + row * d->dim;
    double sum = 0;
    for (uint32_t i = 0; i < d->dim; i++) sum += ((double)values[i] - d->mean[i]) * direction[i];
    return sum;
}

static void find_mean(struct directions *d) {
    for (uint64_t row = 0; row < d->count; row++)
        for (uint32_t i = 0; i < d->dim; i++) d->mean[i] += (double)d->rows[row * d->dim + i];
    for (uint32_t i = 0; i < d->dim; i++) d->mean[i] /= (double)d->count;
}

/* Scales a direction to length 1 (zeros stay zeros). Makes its largest component positive, so that a map is never mirrored. */
static void settle(double *direction, uint32_t dim) {
    double length = sqrt(product(direction, direction, dim));
    uint32_t largest = 0;
    for (uint32_t i = 1; i < dim; i++)
        if (fabs(direction[i]) > fabs(direction[largest])) largest = i;
    double factor = length > least_length ? (direction[largest] < 0 ? -1 : 1) / length : 0;
    for (uint32_t i = 0; i < dim; i++) direction[i] *= factor;
}

/* Multiplies the direction by the covariance matrix, then makes it orthogonal to `other` (unless that is NULL). */
static void improve(struct directions *d, double *direction, const double *other) {
    memset(d->next, 0, d->dim * sizeof *d->next);
    for (uint64_t row = 0; row < d->count; row++) {
        double far = along(d, row, direction);
        for (uint32_t i = 0; i < d->dim; i++) d->next[i] += far * ((double)d->rows[row * d->dim + i] - d->mean[i]);
    }
    double shared = other ? product(d->next, other, d->dim) : 0;
    for (uint32_t i = 0; i < d->dim; i++) direction[i] = d->next[i] - (other ? shared * other[i] : 0);
    settle(direction, d->dim);
}

/* Sets a start direction: cosines of multiples of the golden angle, which are unlikely to be orthogonal to the wanted direction. */
static void begin_direction(double *direction, uint32_t dim, double from) {
    for (uint32_t i = 0; i < dim; i++) direction[i] = cos(from + 2.399963229728653 * i);
}

int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim) {
    struct directions d = {.rows = rows, .count = count, .dim = dim};
    d.mean = mem_zalloc(4 * (uint64_t)dim, sizeof *d.mean, "the directions of a map");
    if (!d.mean) return -1;
    d.first = d.mean + dim, d.second = d.first + dim, d.next = d.second + dim;
    find_mean(&d);
    begin_direction(d.first, dim, 1);
    begin_direction(d.second, dim, 2);
    for (int round = 0; round < ROUNDS; round++) {
        improve(&d, d.first, NULL);
        improve(&d, d.second, d.first);
    }
    for (uint64_t row = 0; row < count; row++) {
        xy[2 * row] = (float)along(&d, row, d.first);
        xy[2 * row + 1] = (float)along(&d, row, d.second);
    }
    free(d.mean);
    return 0;
}

/* ---- all axes ---- */

struct products {
    const float *rows;
    uint64_t count;
    uint32_t dim;
    double *sums; /* [dim x dim] */
    _Atomic uint64_t next;
};

/* Sums values[i] * values[j] over all rows, for the next column i and each j of at least i. */
static int sum_products(void *context, unsigned worker) {
    struct products *p = context;
    uint64_t i, end;
    (void)worker;
    while (pool_take(&p->next, p->dim, 1, &i, &end))
        for (uint64_t row = 0; row < p->count; row++) {
            const float *values = p->rows + row * p->dim;
            for (uint32_t j = (uint32_t)i; j < p->dim; j++) p->sums[i * p->dim + j] += (double)values[i] * (double)values[j];
        }
    return 0;
}

int principal_axes(double *axes, const float *rows, uint64_t count, uint32_t dim, struct pool *pool) {
    struct products p = {.rows = rows, .count = count, .dim = dim};
    p.sums = mem_zalloc(dim, dim * sizeof *p.sums, "the covariance of rows");
    double *values = mem_alloc(dim, sizeof *values, "the variances of rows");
    int result = p.sums && values ? pool_run(pool, sum_products, &p) : -1;
    for (uint32_t i = 0; !result && i < dim; i++)
        for (uint32_t j = 0; j < i; j++) p.sums[(uint64_t)i * dim + j] = p.sums[(uint64_t)j * dim + i];
    if (!result) eigen_symmetric(p.sums, dim, values, axes);
    free(p.sums);
    free(values);
    return result;
}
