#include "clusters.h"

#include "base/memory.h"
#include "dot.h"
#include "numpy_draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clustering {
    const struct clusters_request *request;
    float *centres;    /* [most x dim] centres, each of length 1 or zeros */
    double *far;       /* [count] for each row: 1 - its cosine to the nearest centre */
    uint32_t *cluster; /* [count] for each row: the nearest centre */
    uint32_t begin;    /* the first centre with which rows have not been compared yet */
    struct numpy_draws draws;
};

static const float *values_of(const struct clustering *c, uint64_t row) {
    return c->request->rows + row * c->request->dim;
}

static float *centre_of(const struct clustering *c, uint32_t k) {
    return c->centres + (uint64_t)k * c->request->dim;
}

/* Compares a row with centres begin .. most - 1, and updates its nearest centre. */
static void compare(struct clustering *c, uint64_t row, uint32_t most) {
    for (uint32_t k = c->begin; k < most; k++) {
        double far = 1 - (double)dot(centre_of(c, k), values_of(c, row), c->request->dim);
        if (far < c->far[row]) c->far[row] = far, c->cluster[row] = k;
    }
}

/* Each worker compares a share of the rows. */
static int assign_share(void *context, unsigned worker) {
    struct clustering *c = context;
    uint64_t row, end;
    pool_share(c->request->count, worker, c->request->pool ? pool_threads(c->request->pool) : 1, &row, &end);
    for (; row < end; row++) compare(c, row, c->request->most);
    return 0;
}

static int run_workers(const struct clustering *c, pool_job *job, void *context) {
    return c->request->pool ? pool_run(c->request->pool, job, context) : job(context, 0);
}

/* ---- the first centres (k-means++, Arthur and Vassilvitskii 2007) ---- */

/* Draws a row with a probability proportional to its distance from the nearest centre. */
static uint64_t draw_row(struct clustering *c) {
    double all = 0, at;
    for (uint64_t row = 0; row < c->request->count; row++) all += c->far[row];
    at = all * numpy_draws_below(&c->draws, (uint64_t)1 << 32) / 4294967296.0;
    for (uint64_t row = 0; row < c->request->count; row++)
        if ((at -= c->far[row]) < 0) return row;
    return 0;
}

/* Runs in one thread: starting all threads once a centre would cost more than it saves for few rows. */
static void choose_centres(struct clustering *c) {
    uint64_t count = c->request->count;
    for (uint64_t row = 0; row < count; row++) c->far[row] = 1;
    for (uint32_t k = 0; k < c->request->most; k++) {
        memcpy(centre_of(c, k), values_of(c, draw_row(c)), c->request->dim * sizeof(float));
        c->begin = k;
        for (uint64_t row = 0; row < count; row++) {
            compare(c, row, k + 1);
            c->far[row] = fmax(0, c->far[row]);
        }
    }
}

/* ---- rounds ---- */

/* Assigns each row to its nearest centre. Returns the sum of the rows' cosines to their centres, or NaN after fail(). */
static double assign(struct clustering *c) {
    double sum = 0;
    c->begin = 0;
    for (uint64_t row = 0; row < c->request->count; row++) c->far[row] = 3, c->cluster[row] = 0;
    if (run_workers(c, assign_share, c)) return NAN;
    for (uint64_t row = 0; row < c->request->count; row++) sum += 1 - c->far[row];
    return sum;
}

/* Moves each centre to the mean direction of its rows. A centre without rows becomes zeros. */
static void move_centres(struct clustering *c) {
    uint32_t dim = c->request->dim;
    memset(c->centres, 0, (uint64_t)c->request->most * dim * sizeof *c->centres);
    for (uint64_t row = 0; row < c->request->count; row++) {
        float *centre = centre_of(c, c->cluster[row]);
        for (uint32_t i = 0; i < dim; i++) centre[i] += values_of(c, row)[i];
    }
    for (uint32_t k = 0; k < c->request->most; k++) {
        float *centre = centre_of(c, k), length = fmaxf(sqrtf(dot(centre, centre, dim)), 1e-12f);
        for (uint32_t i = 0; i < dim; i++) centre[i] /= length;
    }
}

/* Runs k-means once. Returns the sum of the rows' cosines to their centres. Ends early if a round does not raise this sum. */
static double try(struct clustering *c) {
    choose_centres(c);
    double sum = assign(c), before = -INFINITY;
    for (unsigned round = 1; round < c->request->rounds && sum > before; round++) {
        move_centres(c);
        before = sum;
        sum = assign(c);
    }
    return sum;
}

/* Numbers clusters in the order of their first rows; `numbers` is an array of one entry a cluster. Returns the number of
 * clusters that have rows. */
static uint32_t number(uint32_t *cluster, uint64_t count, uint32_t *numbers, uint32_t most) {
    uint32_t next = 0;
    memset(numbers, 0xff, most * sizeof *numbers);
    for (uint64_t row = 0; row < count; row++) {
        if (numbers[cluster[row]] == UINT32_MAX) numbers[cluster[row]] = next++;
        cluster[row] = numbers[cluster[row]];
    }
    return next;
}

int clusters_find(uint32_t *cluster, uint32_t *found, const struct clusters_request *request) {
    struct clustering c = {.request = request, .draws = numpy_draws_make(1)};
    uint32_t *numbers = mem_alloc(request->most, sizeof *numbers, "clusters");
    c.centres = mem_aligned(request->most, request->dim * sizeof *c.centres, "clusters");
    c.far = mem_alloc(request->count, sizeof *c.far, "clusters");
    c.cluster = mem_alloc(request->count, sizeof *c.cluster, "clusters");
    int result = numbers && c.centres && c.far && c.cluster ? 0 : -1;
    double best = -INFINITY;
    for (unsigned i = 0; !result && i < request->tries; i++) {
        double sum = try(&c);
        if (isnan(sum)) result = -1;
        if (!(sum > best)) continue;
        best = sum;
        memcpy(cluster, c.cluster, request->count * sizeof *cluster);
    }
    if (!result) *found = number(cluster, request->count, numbers, request->most);
    free(numbers);
    free(c.centres);
    free(c.far);
    free(c.cluster);
    return result;
}
