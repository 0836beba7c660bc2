#include "numeric.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 30 };                /* most rounds over all pairs of rows; usually ten are enough */
static const double nothing = 1e-16; /* values below this share of the sum of all values count as zero */

/* Rotates rows p and q: c and s are the angle's cosine and sine. */
static void turn_rows(double *rows, uint32_t n, uint32_t p, uint32_t q, double c, double s) {
    double *a = rows + (uint64_t)p * n, *b = rows + (uint64_t)q * n;
    for (uint32_t i = 0; i < n; i++) {
        double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Makes the matrix's value at (p, q) zero by a rotation and returns 1; returns 0 if the value's magnitude is at most `least`. */
static int rotate(double *matrix, uint32_t n, uint32_t p, uint32_t q, double least, double *vectors) {
    double pp = matrix[(uint64_t)p * n + p], qq = matrix[(uint64_t)q * n + q], pq = matrix[(uint64_t)p * n + q];
    if (fabs(pq) <= least) return 0;
    double half = (qq - pp) / (2 * pq), t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(half * half + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    turn_rows(matrix, n, p, q, c, s);
    matrix[(uint64_t)p * n + p] = pp - t * pq;
    matrix[(uint64_t)q * n + q] = qq + t * pq;
    matrix[(uint64_t)p * n + q] = matrix[(uint64_t)q * n + p] = 0;
    for (uint32_t i = 0; i < n; i++) { /* the matrix is symmetric, so columns p and q are rotated as rows p and q were */
        matrix[(uint64_t)i * n + p] = matrix[(uint64_t)p * n + i];
        matrix[(uint64_t)i * n + q] = matrix[(uint64_t)q * n + i];
    }
    turn_rows(vectors, n, p, q, c, s);
    return 1;
}

static void sort(double *values, double *vectors, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t largest = i;
        for (uint32_t j = i + 1; j < n; j++)
            if (values[j] > values[largest]) largest = j;
        double value = values[i];
        values[i] = values[largest];
        values[largest] = value;
        for (uint32_t j = 0; j < n && largest != i; j++) {
            double of_vector = vectors[(uint64_t)i * n + j];
            vectors[(uint64_t)i * n + j] = vectors[(uint64_t)largest * n + j];
            vectors[(uint64_t)largest * n + j] = of_vector;
        }
    }
}

/* Returns the component of largest magnitude. */
static double largest_of(const double *vector, uint32_t n) {
    uint32_t largest = 0;
    for (uint32_t i = 1; i < n; i++)
        if (fabs(vector[i]) > fabs(vector[largest])) largest = i;
    return vector[largest];
}

void eigen_symmetric(double *matrix, uint32_t n, double *values, double *vectors) {
    int turned = 1;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += fabs(matrix[(uint64_t)i * n + i]);
    memset(vectors, 0, (uint64_t)n * n * sizeof *vectors);
    for (uint32_t i = 0; i < n; i++) vectors[(uint64_t)i * n + i] = 1;
    for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
        turned = 0;
        for (uint32_t p = 0; p + 1 < n; p++)
            for (uint32_t q = p + 1; q < n; q++) turned |= rotate(matrix, n, p, q, nothing * sum, vectors);
    }
    for (uint32_t i = 0; i < n; i++) values[i] = matrix[(uint64_t)i * n + i];
    sort(values, vectors, n);
    for (uint32_t i = 0; i < n; i++) {
        double *vector = vectors + (uint64_t)i * n;
        if (largest_of(vector, n) < 0)
            for (uint32_t j = 0; j < n; j++) vector[j] = -vector[j];
    }
}

/* Few rounds are enough, since a map only starts from these directions and is then improved. */
enum { ROUNDS = 20 };
static const double least_length = 1e-12;

struct directions {
    const float *rows; /* [count x dim] */
    uint64_t count;
    uint32_t dim;
    double *mean, *first, *second, *next; /* [dim] each; one allocation, of which `mean` is the beginning */
};

static double product(const double *a, const double *b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++) sum += a[i] * b[i];
    return sum;
}

/* Returns a row's coordinate along a direction, relative to the mean. */
static double along(const struct directions *d, uint64_t row, const double *direction) {
    const float *values = d->rows + row * d->dim;
    double sum = 0;
    for (uint32_t i = 0; i < d->dim; i++) sum += ((double)values[i] - d->mean[i]) * direction[i];
    return sum;
}

/* Multiplies the direction by the covariance matrix, makes it orthogonal to `other` (unless that is NULL), and scales it to length 1 (zeros stay
 * zeros). Makes its largest component positive, so that a map is never mirrored. */
static void improve(struct directions *d, double *direction, const double *other) {
    memset(d->next, 0, d->dim * sizeof *d->next);
    for (uint64_t row = 0; row < d->count; row++) {
        double far = along(d, row, direction);
        for (uint32_t i = 0; i < d->dim; i++) d->next[i] += far * ((double)d->rows[row * d->dim + i] - d->mean[i]);
    }
    double shared = other ? product(d->next, other, d->dim) : 0;
    for (uint32_t i = 0; i < d->dim; i++) direction[i] = d->next[i] - (other ? shared * other[i] : 0);
    double length = sqrt(product(direction, direction, d->dim));
    double factor = length > least_length ? (largest_of(direction, d->dim) < 0 ? -1 : 1) / length : 0;
    for (uint32_t i = 0; i < d->dim; i++) direction[i] *= factor;
}

/* Sets a start direction that is unlikely to be orthogonal to the wanted one: cosines of multiples of the golden angle. */
static void begin_direction(double *direction, uint32_t dim, double from) {
    for (uint32_t i = 0; i < dim; i++) direction[i] = cos(from + 2.399963229728653 * i);
}

int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim) {
    struct directions d = {.rows = rows, .count = count, .dim = dim};
    d.mean = mem_zalloc(4 * (uint64_t)dim, sizeof *d.mean, "the directions of a map");
    if (!d.mean) return -1;
    d.first = d.mean + dim, d.second = d.first + dim, d.next = d.second + dim;
    for (uint64_t row = 0; row < d.count; row++)
        for (uint32_t i = 0; i < d.dim; i++) d.mean[i] += (double)d.rows[row * d.dim + i];
    for (uint32_t i = 0; i < d.dim; i++) d.mean[i] /= (double)d.count;
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

/* Sums values[i] * values[j] over all rows, for one column i and each j >= i; then takes the next column. */
static int sum_products(void *context, unsigned worker) {
    struct products *p = context;
    uint64_t i, end;
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
    OWNED double *values = mem_alloc(dim, sizeof *values, "the variances of rows");
    int result = p.sums && values ? pool_run(pool, sum_products, &p) : -1;
    for (uint32_t i = 0; !result && i < dim; i++)
        for (uint32_t j = 0; j < i; j++) p.sums[(uint64_t)i * dim + j] = p.sums[(uint64_t)j * dim + i];
    if (!result) eigen_symmetric(p.sums, dim, values, axes);
    free(p.sums);
    return result;
}

enum {
    NEWTON_STEPS = 60,
    GRADIENT_STEPS = 100, /* most steps of conjugate gradients for a Newton step */
    HALVINGS = 30,        /* how often a Newton step is halved at most */
    SPAN = 64             /* number of rows summed in float32; sums of these spans are added in double */
};
static const double enough = 1e-3;           /* the fit ends when the gradient's length has fallen to this share of its first length */
static const double enough_of_a_step = 0.05; /* the solver of a Newton step ends when its residual is this share of the gradient's length */

/* The state of a fit. Arrays of all samples are in one block, arrays of all columns (the intercept is column 0) in another. */
struct fit {
    const struct logistic_samples *samples;
    uint32_t columns;
    double *z, *dz, *slope, *bend; /* [count] z; its change in a step; first and second derivative of the loss by z */
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

/* Computes out_i = v_0 + v_1.. x_i, a dot product with an intercept, for every sample i. */
static void forward(struct fit *f, const double *v, double *out) {
    for (uint32_t i = 1; i < f->columns; i++) f->narrow[i - 1] = (float)v[i];
    for (uint64_t i = 0; i < f->samples->count; i++) out[i] = v[0] + (double)dot(f->narrow, sample_of(f, i), f->samples->dim);
}

/* Adds weight_i (1, x_i), summed over all samples i, to `out`. */
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

/* Takes the step, which is halved until the objective falls enough. Returns the new objective. */
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
        /* The gradient at w, and the two derivatives of each sample's loss. */
        memcpy(f->gradient, f->w, f->columns * sizeof *f->gradient);
        for (uint64_t i = 0; i < f->samples->count; i++) f->slope[i] = -sign_of(f, i) / (1 + exp(sign_of(f, i) * f->z[i]));
        backward(f, f->slope, f->gradient);
        for (uint64_t i = 0; i < f->samples->count; i++) f->bend[i] = fabs(f->slope[i]) * (1 - fabs(f->slope[i]));
        double length = sqrt(product(f->gradient, f->gradient, f->columns));
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
    mem_free(f.z, f.w, f.narrow);
    return result;
}

float logistic_score(const float *w, const float *x, uint32_t dim) {
    return w[0] + dot(w + 1, x, dim);
}

/* ---- the seed (O'Neill's seed_seq_fe128, as NumPy's SeedSequence has it) ---- */

enum { POOL = 4, WORDS = 8 };

static uint32_t mix_in(uint32_t value, uint32_t *constant, uint32_t factor) {
    value ^= *constant;
    *constant *= factor;
    value *= *constant;
    return value ^ value >> 16;
}

static void stir(uint32_t pool[POOL], uint32_t seed) {
    uint32_t constant = 0x43b0d7e5, factor = 0x931e8875;
    for (int i = 0; i < POOL; i++) pool[i] = mix_in(i ? 0 : seed, &constant, factor);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++) {
            if (from == to) continue;
            uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * mix_in(pool[from], &constant, factor);
            pool[to] = mixed ^ mixed >> 16;
        }
}

static unsigned __int128 two_words(const uint32_t *words) {
    uint64_t high = (uint64_t)words[1] << 32 | words[0], low = (uint64_t)words[3] << 32 | words[2];
    return (unsigned __int128)high << 64 | low;
}

/* ---- the generator ---- */

static void step(struct numpy_draws *draws) {
    const unsigned __int128 factor = (unsigned __int128)2549297995355413924u << 64 | 4865540595714422341u;
    draws->state = draws->state * factor + draws->increment;
}

struct numpy_draws numpy_draws_make(uint32_t seed) {
    uint32_t pool[POOL], words[WORDS], constant = 0x8b51f9dd;
    stir(pool, seed);
    for (int i = 0; i < WORDS; i++) words[i] = mix_in(pool[i % POOL], &constant, 0x58f38ded);
    struct numpy_draws draws = {.increment = two_words(words + 4) << 1 | 1};
    step(&draws);
    draws.state += two_words(words);
    step(&draws);
    return draws;
}

static uint32_t next_32(struct numpy_draws *draws) {
    draws->has_half = !draws->has_half;
    if (!draws->has_half) return draws->half;
    step(draws);
    uint64_t folded = (uint64_t)(draws->state >> 64) ^ (uint64_t)draws->state;
    unsigned turn = (unsigned)(draws->state >> 122);
    uint64_t bits = folded >> turn | folded << (-turn & 63);
    draws->half = (uint32_t)(bits >> 32);
    return (uint32_t)bits;
}

/* ---- whole numbers ---- */

uint32_t numpy_draws_below(struct numpy_draws *draws, uint64_t n) {
    if (n <= 1) return 0;
    uint64_t product;
    do product = next_32(draws) * n;
    while ((uint32_t)product < n && (uint32_t)product < (((uint64_t)1 << 32) - n) % n);
    return (uint32_t)(product >> 32);
}

static void exchange(uint32_t *order, uint64_t a, uint64_t b) {
    uint32_t value = order[a];
    order[a] = order[b];
    order[b] = value;
}

/* Returns a random number 0 .. highest as NumPy's permutation() draws it: as many bits as `highest` has, again and again until the number is not
 * above it. */
static uint32_t below_by_bits(struct numpy_draws *draws, uint32_t highest) {
    uint32_t bits = UINT32_MAX >> __builtin_clz(highest | 1), value;
    do value = next_32(draws) & bits;
    while (value > highest);
    return value;
}

void numpy_draws_permutation(struct numpy_draws *draws, uint32_t *order, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (uint64_t i = n; i-- > 1;) exchange(order, i, below_by_bits(draws, (uint32_t)i));
}

/* Exchanges only the last `count` elements, as NumPy does for most sizes. NumPy has another method for less than a fiftieth of a population above
 * 10,000: there this function chooses other elements, equally at random. */
int numpy_draws_choice(struct numpy_draws *draws, uint32_t *out, uint64_t count, uint64_t n) {
    OWNED uint32_t *order = mem_alloc(n, sizeof *order, "a choice");
    if (!order) return -1;
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (uint64_t i = n, first = n > count ? n - count : 1; i-- > first;) exchange(order, i, numpy_draws_below(draws, i + 1));
    memcpy(out, order + (n - count), count * sizeof *out);
    return 0;
}
