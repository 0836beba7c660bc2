#include "clusters.h"

#include "base/memory.h"
#include "dot.h"
#include "numpy_draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 4,   /* with other first centres, of which the best is kept */
    ROUNDS = 30, /* of a try, at most */
};

struct clustering {
    const float *rows; /* [count x dim] */
    uint64_t count;
    uint32_t dim, most;
    float *centres;   /* [most x dim], each of unit length or zeros */
    double *far;      /* [count] 1 - cosine to the nearest centre so far */
    uint8_t *cluster; /* [count] */
    struct numpy_draws draws;
};

static const float *row_of(const struct clustering *c, uint64_t row) {
    return c->rows + row * c->dim;
}

/* ---- the first centres (k-means++, Arthur and Vassilvitskii 2007) ---- */

/* Draws a row: the farther it lies from all centres, the likelier. */
static uint64_t draw_row(struct clustering *c) {
    double all = 0, at;
    for (uint64_t row = 0; row < c->count; row++) all += c->far[row];
    at = all * numpy_draws_below(&c->draws, (uint64_t)1 << 32) / 4294967296.0;
    for (uint64_t row = 0; row < c->count; row++)
        if ((at -= c->far[row]) < 0) return row;
    return 0;
}

static void choose_centres(struct clustering *c) {
    for (uint64_t row = 0; row < c->count; row++) c->far[row] = 1;
    for (uint32_t k = 0; k < c->most; k++) {
        float *centre = c->centres + (uint64_t)k * c->dim;
        memcpy(centre, row_of(c, draw_row(c)), c->dim * sizeof *centre);
        for (uint64_t row = 0; row < c->count; row++)
            c->far[row] = fmin(c->far[row], fmax(0, 1 - (double)dot(centre, row_of(c, row), c->dim)));
    }
}

/* ---- rounds ---- */

/* Gives each row to its nearest centre. Returns the sum of their cosines; *moved: rows that went to another. */
static double assign(struct clustering *c, uint64_t *moved) {
    double sum = 0;
    *moved = 0;
    for (uint64_t row = 0; row < c->count; row++) {
        uint32_t best = 0;
        float nearest = -2;
        for (uint32_t k = 0; k < c->most; k++) {
            float cosine = dot(c->centres + (uint64_t)k * c->dim, row_of(c, row), c->dim);
            if (cosine > nearest) nearest = cosine, best = k;
        }
        *moved += c->cluster[row] != best;
        c->cluster[row] = (uint8_t)best;
        sum += (double)nearest;
    }
    return sum;
}

/* Puts each centre in the middle of its rows. One without rows stays where the others have left it: nowhere. */
static void move_centres(struct clustering *c) {
    memset(c->centres, 0, (uint64_t)c->most * c->dim * sizeof *c->centres);
    for (uint64_t row = 0; row < c->count; row++) {
        float *centre = c->centres + (uint64_t)c->cluster[row] * c->dim;
        for (uint32_t i = 0; i < c->dim; i++) centre[i] += row_of(c, row)[i];
    }
    for (uint32_t k = 0; k < c->most; k++) {
        float *centre = c->centres + (uint64_t)k * c->dim;
        float length = fmaxf(sqrtf(dot(centre, centre, c->dim)), 1e-12f);
        for (uint32_t i = 0; i < c->dim; i++) centre[i] /= length;
    }
}

static double try(struct clustering *c) {
    uint64_t moved;
    memset(c->cluster, UINT8_MAX, c->count);
    choose_centres(c);
    double sum = assign(c, &moved);
    for (int round = 1; round < ROUNDS && moved; round++) {
        move_centres(c);
        sum = assign(c, &moved);
    }
    return sum;
}

/* Numbers clusters in the order of their first rows. Returns how many have one. */
static uint32_t number(uint8_t *cluster, uint64_t count) {
    uint32_t next = 0;
    uint8_t numbers[UINT8_MAX + 1];
    memset(numbers, UINT8_MAX, sizeof numbers);
    for (uint64_t row = 0; row < count; row++) {
        if (numbers[cluster[row]] == UINT8_MAX) numbers[cluster[row]] = (uint8_t)next++;
        cluster[row] = numbers[cluster[row]];
    }
    return next;
}

int clusters_find(uint8_t *cluster, uint32_t *found, const float *rows, uint64_t count, uint32_t dim, uint32_t most) {
    struct clustering c = {.rows = rows, .count = count, .dim = dim, .most = most, .draws = numpy_draws_make(1)};
    c.centres = mem_aligned(most, dim * sizeof *c.centres, "clusters");
    c.far = mem_alloc(count, sizeof *c.far, "clusters");
    c.cluster = mem_alloc(count, sizeof *c.cluster, "clusters");
    int result = c.centres && c.far && c.cluster ? 0 : -1;
    double best = -INFINITY;
    for (int i = 0; !result && i < TRIES; i++) {
        double sum = try(&c);
        if (sum <= best) continue;
        best = sum;
        memcpy(cluster, c.cluster, count);
    }
    if (!result) *found = number(cluster, count);
    free(c.centres);
    free(c.far);
    free(c.cluster);
    return result;
}
