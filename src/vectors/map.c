#include "numeric.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 8,      /* number of rows whose repulsion of a row is computed together */
    EARLY = 120,    /* number of rounds at the beginning with stronger attraction, so that groups form */
    ROUNDS = 450,   /* number of rounds */
    GRAIN = 64,     /* number of rows that a worker takes at a time */
    BISECTIONS = 50 /* number of bisections to find a kernel's width: far more precise than the eye can see */
};
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), may_alias));
static const float early_pull = 12;
/* Standard deviation of the initial coordinates: small, so that all repulsions are nearly equal at the start. */
static const double start_spread = 1e-2;
/* Coordinate of padding rows: so far away that their repulsion is too small for a float. */
static const float far_away = 1e15f;

/* A row that attracts another one, and how strongly. The rows that attract row i are pulls[starts[i]] .. pulls[starts[i + 1] - 1]. */
struct pull {
    uint32_t row;
    float strength;
};

struct drawing {
    const struct map_request *request;
    uint64_t count, padded; /* number of rows; the same rounded up to a multiple of LANES */
    float *x, *y;           /* [padded] coordinates */
    float *push_x, *push_y; /* [count] sum of all repulsions of each row in a round, before it is divided by the sum of all nearness */
    double *nearness;       /* [count] sum of the row's nearness to all other rows */
    float *speed, *gain;    /* [2 x count] speed and gain of each coordinate */
    uint64_t *starts;       /* [count + 1] indexes into pulls */
    struct pull *pulls;
    float rate, momentum, strength; /* of the current round: learning rate, momentum, factor of attraction */
    double all_nearness;
    void (*work)(struct drawing *d, uint64_t row);
    _Atomic uint64_t next; /* number of the next row for a worker */
};

/* ---- how strongly rows are drawn together ---- */

/* Computes the weights of a row's k neighbours, which fall with distance, at the rate that gives the wanted perplexity. out: [k], sums to 1. */
static void share_out(const float *cosines, uint32_t k, double perplexity, float *out) {
    double low = 0, high = INFINITY, width = 1, wanted = log(perplexity);
    for (int step = 0; step < BISECTIONS; step++) {
        double sum = 0, entropy = 0;
        for (uint32_t i = 0; i < k; i++) {
            double distance = 2 * ((double)cosines[0] - (double)cosines[i]), share = exp(-width * distance);
            sum += share;
            entropy += share * width * distance;
            out[i] = (float)share;
        }
        entropy = entropy / sum + log(sum);
        for (uint32_t i = 0; i < k; i++) out[i] = (float)((double)out[i] / sum);
        if (entropy > wanted)
            low = width;
        else
            high = width;
        width = isinf(high) ? 2 * width : (low + high) / 2;
    }
}

/* Fills `pulls`. Two rows attract each other by the mean of the weights that each has for the other, so each weight is listed for both. */
static int find_pulls(struct drawing *d) {
    const struct map_request *r = d->request;
    uint64_t edges = r->count * r->k;
    OWNED uint64_t *at = mem_zalloc(r->count + 1, sizeof *at, "the map");
    OWNED float *shares = mem_alloc(edges + 1, sizeof *shares, "the map");
    double most = (double)r->k / 3, perplexity = most < MAP_PERPLEXITY ? fmax(most, 1) : MAP_PERPLEXITY;
    d->starts = mem_zalloc(r->count + 1, sizeof *d->starts, "the map");
    d->pulls = mem_alloc(2 * edges + 1, sizeof *d->pulls, "the map");
    if (!at || !shares || !d->starts || !d->pulls) return -1;
    for (uint64_t row = 0; row < r->count && r->k; row++) share_out(r->cosines + row * r->k, r->k, perplexity, shares + row * r->k);
    for (uint64_t edge = 0; edge < edges; edge++) d->starts[r->near[edge] + 1]++;
    for (uint64_t row = 0; row < r->count; row++) d->starts[row + 1] += d->starts[row] + r->k;
    memcpy(at, d->starts, r->count * sizeof *at);
    for (uint64_t edge = 0; edge < edges; edge++) {
        uint32_t row = (uint32_t)(edge / r->k), other = r->near[edge];
        float strength = shares[edge] / (2 * (float)r->count);
        d->pulls[at[row]++] = (struct pull){other, strength};
        d->pulls[at[other]++] = (struct pull){row, strength};
    }
    return 0;
}

/* ---- a round ---- */

/* Sums the repulsion of row i by all rows. That includes row i itself, whose repulsion is 0; its nearness of 1 is subtracted at the end. */
static void push_row(struct drawing *d, uint64_t i) {
    const lanes *x = (const lanes *)d->x, *y = (const lanes *)d->y;
    lanes to_x = {0}, to_y = {0}, near = {0};
    for (uint64_t at = 0; at < d->padded / LANES; at++) {
        lanes dx = d->x[i] - x[at], dy = d->y[i] - y[at], nearness = 1 / (1 + dx * dx + dy * dy);
        near += nearness;
        nearness *= nearness;
        to_x += nearness * dx;
        to_y += nearness * dy;
    }
    double sum = -1;
    d->push_x[i] = d->push_y[i] = 0;
    for (int lane = 0; lane < LANES; lane++) {
        sum += (double)near[lane];
        d->push_x[i] += to_x[lane];
        d->push_y[i] += to_y[lane];
    }
    d->nearness[i] = sum;
}

static void drive(float force, float *speed, float *gain, const struct drawing *d) {
    *gain = (force < 0) == (*speed < 0) ? *gain + 0.2f : *gain * 0.8f;
    if (*gain < 0.01f) *gain = 0.01f;
    *speed = d->momentum * *speed + d->rate * *gain * force;
}

/* Computes the forces on row i, and changes its speed. The gain of a coordinate grows while the force has the direction of the speed, and shrinks
 * when it turns. */
static void drive_row(struct drawing *d, uint64_t i) {
    float x = d->x[i], y = d->y[i], force_x = 0, force_y = 0, all = (float)d->all_nearness;
    for (uint64_t edge = d->starts[i]; edge < d->starts[i + 1]; edge++) {
        struct pull pull = d->pulls[edge];
        float dx = d->x[pull.row] - x, dy = d->y[pull.row] - y;
        float force = pull.strength * d->strength / (1 + dx * dx + dy * dy);
        force_x += force * dx;
        force_y += force * dy;
    }
    drive(4 * (force_x + d->push_x[i] / all), &d->speed[2 * i], &d->gain[2 * i], d);
    drive(4 * (force_y + d->push_y[i] / all), &d->speed[2 * i + 1], &d->gain[2 * i + 1], d);
}

static int each_row(void *context, unsigned worker) {
    struct drawing *d = context;
    uint64_t first, end;
    while (pool_take(&d->next, d->count, GRAIN, &first, &end))
        for (uint64_t i = first; i < end; i++) d->work(d, i);
    return 0;
}

static int do_each_row(struct drawing *d, void (*work)(struct drawing *d, uint64_t row), struct pool *pool) {
    d->work = work;
    d->next = 0;
    return pool_run(pool, each_row, d);
}

static int play_round(struct drawing *d, int round, struct pool *pool) {
    int early = round < EARLY;
    d->strength = early ? early_pull : 1;
    d->momentum = early ? 0.5f : 0.8f;
    if (do_each_row(d, push_row, pool)) return -1;
    d->all_nearness = 0;
    for (uint64_t i = 0; i < d->count; i++) d->all_nearness += d->nearness[i];
    if (do_each_row(d, drive_row, pool)) return -1;
    for (uint64_t i = 0; i < d->count; i++) {
        d->x[i] += d->speed[2 * i];
        d->y[i] += d->speed[2 * i + 1];
    }
    return 0;
}

/* ---- the whole ---- */

static int begin_drawing(struct drawing *d, float *xy) {
    const struct map_request *r = d->request;
    double squares = 0;
    d->x = mem_aligned(d->padded, sizeof *d->x, "the map");
    d->y = mem_aligned(d->padded, sizeof *d->y, "the map");
    d->push_x = mem_alloc(d->count, sizeof *d->push_x, "the map");
    d->push_y = mem_alloc(d->count, sizeof *d->push_y, "the map");
    d->nearness = mem_alloc(d->count, sizeof *d->nearness, "the map");
    d->speed = mem_zalloc(d->count, 2 * sizeof *d->speed, "the map");
    d->gain = mem_alloc(d->count, 2 * sizeof *d->gain, "the map");
    if (!d->x || !d->y || !d->push_x || !d->push_y || !d->nearness || !d->speed || !d->gain) return -1;
    if (principal_two(xy, r->rows, r->count, r->dim)) return -1;
    for (uint64_t i = 0; i < 2 * d->count; i++) {
        squares += (double)xy[i] * xy[i];
        d->gain[i] = 1;
    }
    float scale = squares > 0 ? (float)(start_spread / sqrt(squares / (double)d->count)) : 0;
    for (uint64_t i = 0; i < d->padded; i++) {
        d->x[i] = i < d->count ? xy[2 * i] * scale : far_away;
        d->y[i] = i < d->count ? xy[2 * i + 1] * scale : far_away;
    }
    return 0;
}

static int draw(struct drawing *d, float *xy, struct pool *pool) {
    struct progress progress;
    int result = 0;
    progress_start(&progress, "the map", 1);
    for (int round = 0; !result && round < ROUNDS; round++) {
        result = play_round(d, round, pool);
        if (!result && interrupt_asked()) result = fail("stopped by a signal: nothing was written");
        progress_show(&progress, (uint64_t)round + 1, ROUNDS, "rounds");
    }
    progress_end(&progress);
    for (uint64_t i = 0; i < d->count; i++) {
        xy[2 * i] = d->x[i];
        xy[2 * i + 1] = d->y[i];
    }
    return result;
}

int map_make(float *xy, const struct map_request *request, struct pool *pool) {
    struct drawing d = {.request = request, .count = request->count};
    d.padded = (d.count + LANES - 1) / LANES * LANES;
    float least = 50, rate = (float)d.count / early_pull / 4;
    d.rate = rate > least ? rate : least;
    int result = find_pulls(&d) || begin_drawing(&d, xy) || (d.count > 2 && draw(&d, xy, pool)) ? -1 : 0;
    mem_free(d.x, d.y, d.push_x, d.push_y, d.nearness, d.speed, d.gain, d.starts, d.pulls);
    return result;
}

struct clustering {
    const struct clusters_request *request;
    float *centres;    /* [most x dim] centres; each has length 1 or is zeros */
    double *far;       /* [count] for each row: 1 - its cosine to the nearest centre */
    uint32_t *cluster; /* [count] for each row: the nearest centre */
    uint32_t begin;    /* index of the first centre that was not yet compared with the rows */
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

/* Runs in one thread: with few rows, starting all threads for each centre would cost more than it saves. */
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
    if (c->request->pool ? pool_run(c->request->pool, assign_share, c) : assign_share(c, 0)) return NAN;
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

/* Numbers the clusters in the order of their first rows. numbers: scratch, one for each cluster. Returns how many clusters have rows. */
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
    OWNED uint32_t *numbers = mem_alloc(request->most, sizeof *numbers, "clusters");
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
    mem_free(c.centres, c.far, c.cluster);
    return result;
}
