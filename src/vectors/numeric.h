/* numeric: the small numerical methods for evaluation, maps and export: dot products, eigenvectors of a symmetric matrix, principal directions,
 * maps and clusters of rows, logistic regression, NumPy's random numbers. None of them knows of models or files. */
#ifndef SPTX_NUMERIC_H
#define SPTX_NUMERIC_H

#include "base/pool.h"

#include <stdint.h>

/* dot: dot products of float32 rows at any address. */

enum { DOT_LANES = 8 };

/* Prefetches a row for a dot product a little later. Without prefetching, products of rows in random order mostly wait for memory. */
static inline void dot_fetch(const float *row, uint32_t dim) {
    enum { LINE = 16 }; /* number of floats of a cache line */
    for (uint32_t i = 0; i < dim; i += LINE) __builtin_prefetch(row + i);
}

/* Returns the dot product, summed in eight lanes, which compilers keep in vector registers. */
static inline float dot(const float *a, const float *b, uint32_t dim) {
    float lanes[DOT_LANES] = {0}, sum = 0;
    uint32_t whole = dim / DOT_LANES * DOT_LANES;
    for (uint32_t i = 0; i < whole; i += DOT_LANES)
        for (uint32_t lane = 0; lane < DOT_LANES; lane++) lanes[lane] += a[i + lane] * b[i + lane];
    for (uint32_t i = whole; i < dim; i++) sum += a[i] * b[i];
    for (uint32_t lane = 0; lane < DOT_LANES; lane++) sum += lanes[lane];
    return sum;
}

/* eigen: the eigenvalues and eigenvectors of a symmetric matrix, by Jacobi rotations. */

/* Computes the eigenvalues [n], largest first, and the eigenvectors [n x n], one in each row, of the symmetric matrix [n x n], which is
 * overwritten. In each eigenvector the component of largest magnitude is positive. */
void eigen_symmetric(double *matrix, uint32_t n, double *values, double *vectors);

/* principal: the directions along which rows vary most (PCA): two by power iteration, or all by eigenvectors. */

/* Fills xy [count x 2] with the coordinates of the rows [count x dim] along the two directions; the mean is at 0, 0. Equal rows
 * give equal bits. Returns 0, or -1 after fail(). */
int principal_two(float *xy, const float *rows, uint64_t count, uint32_t dim);

/* Computes all principal axes [dim x dim] of the rows [count x dim] about 0, one in each row, the one of largest variance first: the eigenvectors
 * of the sum of the rows' outer products. The result does not depend on the number of threads. Returns 0, or -1 after fail(). */
int principal_axes(double *axes, const float *rows, uint64_t count, uint32_t dim, struct pool *pool);

/* logistic: logistic regression with an L2 penalty, the same problem as LIBLINEAR's.
 *
 *   minimum over w of   |w|^2 / 2  +  C sum over samples i of log(1 + exp(-s_i z_i)),   C = 1
 *   z_i = w_0 + w_1.. x_i;   s_i = 1 if sample i is in the class, -1 if not
 *
 * The intercept w_0 is penalised, too. The problem is convex, so every solver converges to the same w. This one is Newton's
 * method with conjugate gradients (Lin, Weng and Keerthi 2008). It stops when the gradient is a thousandth as long as at the
 * start.
 */

struct logistic_samples {
    const float *x;          /* rows of `dim` numbers each */
    const uint32_t *rows;    /* [count] which rows of x are the samples; NULL: the first `count` rows */
    const uint8_t *of_class; /* [count] 1: the sample is in the class; 0: it is not */
    uint64_t count;
    uint32_t dim;
};

/* Fits w [1 + dim], the intercept first. Equal samples give equal bits. Returns 0, or -1 after fail(). */
int logistic_fit(float *w, const struct logistic_samples *samples);

/* Returns z = w_0 + w_1.. x of one row x. */
float logistic_score(const float *w, const float *x, uint32_t dim);

/* numpy_draws: the random numbers of NumPy's default_rng(seed). Scores depend on random choices (which nodes are trained on, which unlinked pairs are
 * drawn); a script that uses NumPy makes the same choices with these numbers.
 *
 * The generator is PCG64 (O'Neill 2014; PCG XSL RR 128/64), seeded by NumPy's SeedSequence. Each 64-bit output gives two 32-bit
 * numbers, the lower half first. A number below n is made by Lemire's method with rejection (2019); in permutations by masking
 * bits and rejecting numbers that are too large.
 */

struct numpy_draws {
    unsigned __int128 state, increment;
    uint32_t half; /* upper half of the generator's last output */
    int has_half;  /* 1: `half` has not been used yet */
};

/* Returns the generator that numpy.random.default_rng(seed) makes. */
struct numpy_draws numpy_draws_make(uint32_t seed);

/* Returns a random number 0 .. n - 1, as NumPy's integers(0, n) does; n is at most 2^32. For n = 1 returns 0 without drawing. */
uint32_t numpy_draws_below(struct numpy_draws *draws, uint64_t n);

/* Fills order[n] as NumPy's permutation(n) does. */
void numpy_draws_permutation(struct numpy_draws *draws, uint32_t *order, uint64_t n);

/* Fills out[count] with different numbers 0 .. n - 1, as NumPy's choice(n, count, replace=False) does; count is at most n.
 * Returns 0, or -1 after fail(). */
int numpy_draws_choice(struct numpy_draws *draws, uint32_t *out, uint64_t count, uint64_t n);

/* map: computes a two-dimensional map on which rows that are similar by cosine are near each other (t-SNE, van der Maaten and
 * Hinton 2008). The map starts from the rows' two principal directions.
 *
 *   attraction   between each row and its nearest rows; its strengths are computed once
 *   repulsion    between all pairs of rows; computed exactly in each round
 *
 * One thread sums a row's forces in a fixed order, so the result is the same for any number of threads. A round computes count^2
 * terms: on two cores 5,000 rows need seconds, 20,000 rows a minute.
 */

enum {
    MAP_PERPLEXITY = 30, /* effective number of neighbours of a row (t-SNE's perplexity) */
    MAP_NEAR = 90,       /* number of neighbours that attract a row: three times MAP_PERPLEXITY */
    MAP_ROWS = 20000     /* most rows of a map; with more it would take minutes */
};

struct map_request {
    const float *rows; /* [count x dim] rows of length 1 */
    uint64_t count;
    uint32_t dim;
    const uint32_t *near; /* [count x k] the nearest other rows of each row, best first */
    const float *cosines; /* [count x k] cosines of these rows */
    uint32_t k;           /* number of nearest rows of each row, at most MAP_NEAR; 0 with only one row */
};

/* Computes the coordinates xy [count x 2]. Returns 0, or -1 after fail(), also if a signal asked to stop. */
int map_make(float *xy, const struct map_request *request, struct pool *pool);

/* clusters: groups of rows that point in similar directions (k-means of unit rows, "spherical k-means", Dhillon and Modha 2001). */

struct clusters_request {
    const float *rows; /* [count x dim]; each row has length 1 or is all zeros */
    uint64_t count;
    uint32_t dim;
    uint32_t most;          /* most clusters */
    unsigned tries, rounds; /* tries: runs, of which the best is kept; rounds: most rounds of a run */
    struct pool *pool;      /* threads to use; NULL: only the calling thread, with the same result */
};

/* Sets cluster[count] to the number of each row's cluster, 0 .. *found - 1, numbered in the order of their first rows. Equal input gives equal
 * clusters. Returns 0, or -1 after fail(). */
int clusters_find(uint32_t *cluster, uint32_t *found, const struct clusters_request *request);

#endif
