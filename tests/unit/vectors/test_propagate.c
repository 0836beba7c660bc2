#include "vectors/numeric.h"
#include "vectors/list_scores.h"

#include "tests/testing.h"

/* A graph: two triangles that a chain connects, and a node without edges. */
enum { NODES = 7, DIM = 3, ARCS = 14 };
static const uint64_t starts[NODES + 1] = {0, 2, 4, 7, 10, 12, 14, 14};
static const uint32_t neighbours[ARCS] = {1, 2, 0, 2, 0, 1, 3, 2, 4, 5, 3, 5, 3, 4};
static const float weights[ARCS] = {1, 2, 1, .5f, 2, .5f, 1, 1, 3, 1.5f, 3, 1, 1.5f, 1};
static const float rows[NODES * DIM] = {1,  .5f, -.25f, .5f, -1,   .75f, -.5f,  .25f, 1,   1,  1,
                                        -1, -1,  .75f,  .5f, .25f, -.5f, -.75f, .6f,  .1f, .2f};

/* Products of the resulting rows, times 4, computed by ProNE's own chebyshev_gaussian() and a dense SVD in NumPy's float64:
 * without weights, and with weights. */
static const double products[2][NODES * NODES] = {
    {4,           4,           3.10616658, -0.57497752, -1.8992923, -1.8992923, 2.43899708,
     4,           4,           3.10616658, -0.57497752, -1.8992923, -1.8992923, 2.43899708,
     3.10616658,  3.10616658,  4,          0.78559897,  0.61673848, 0.61673848, 3.64802972,
     -0.57497752, -0.57497752, 0.78559897, 4,           2.90391122, 2.90391122, -0.29483799,
     -1.8992923,  -1.8992923,  0.61673848, 2.90391122,  4,          4,          0.70805581,
     -1.8992923,  -1.8992923,  0.61673848, 2.90391122,  4,          4,          0.70805581,
     2.43899708,  2.43899708,  3.64802972, -0.29483799, 0.70805581, 0.70805581, 4},
    {4,           3.26655746,  3.3812233,  -0.18841077, -0.90317303, -1.28661521, 2.35116445,
     3.26655746,  4,           3.04618293, -1.69120951, -0.88032029, -1.07445725, 3.50871521,
     3.3812233,   3.04618293,  4,          1.06008496,  1.22755322,  0.87604145,  3.21170368,
     -0.18841077, -1.69120951, 1.06008496, 4,           3.10262055,  2.90770879,  -0.67693115,
     -0.90317303, -0.88032029, 1.22755322, 3.10262055,  4,           3.97501642,  0.95315412,
     -1.28661521, -1.07445725, 0.87604145, 2.90770879,  3.97501642,  4,           0.82641938,
     2.35116445,  3.50871521,  3.21170368, -0.67693115, 0.95315412,  0.82641938,  4}};

static double product(const float *a, const float *b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void rows_are_those_of_numpy(void **state) {
    struct pool *pool = pool_open(2);
    for (int weighted = 0; weighted < 2; weighted++) {
        struct graph graph = {.starts = starts, .neighbours = neighbours, .nodes = NODES, .arcs = ARCS};
        float x[NODES * DIM];
        if (weighted) graph.weights = weights;
        memcpy(x, rows, sizeof x);
        assert_int_equal(propagate(x, DIM, &graph, &backend_cpu, pool), 0);
        for (int i = 0; i < NODES * NODES; i++)
            assert_true(fabs(product(x + i / NODES * DIM, x + i % NODES * DIM, DIM) - products[weighted][i]) < 1e-4);
    }
    pool_close(pool);
}

/* A ring of many nodes, with more columns than one pass handles and more rows than one worker takes. The result must not depend
 * on the number of threads. */
static void threads_change_nothing(void **state) {
    enum { MANY = 5000, WIDE = 37 };
    uint64_t *at = malloc((MANY + 1) * sizeof *at);
    uint32_t *others = malloc(2 * MANY * sizeof *others), noise = 5;
    float *x[2];
    for (uint32_t i = 0; i <= MANY; i++) at[i] = 2 * i;
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t before = (i + MANY - 1) % MANY, after = (i + 1) % MANY;
        others[2 * i] = before < after ? before : after;
        others[2 * i + 1] = before < after ? after : before;
    }
    struct graph graph = {.starts = at, .neighbours = others, .nodes = MANY, .arcs = 2 * MANY};
    for (int threads = 1; threads <= 3; threads += 2) {
        struct pool *pool = pool_open((unsigned)threads);
        float *own = x[threads / 2] = malloc(MANY * WIDE * sizeof *own);
        noise = 5;
        for (uint32_t i = 0; i < MANY * WIDE; i++) {
            noise = noise * 1664525u + 1013904223u;
            own[i] = (float)((double)noise / 4294967296 - 0.5);
        }
        assert_int_equal(propagate(own, WIDE, &graph, &backend_cpu, pool), 0);
        pool_close(pool);
    }
    assert_memory_equal(x[0], x[1], MANY * WIDE * sizeof **x);
    for (uint32_t i = 0; i < MANY; i++) assert_true(fabs(product(x[0] + i * WIDE, x[0] + i * WIDE, WIDE) - 4) < 1e-5);
    free(at);
    free(others);
    free(x[0]);
    free(x[1]);
}

/* Multiplies all weights by a large factor, up to near the largest float. The result must hardly change: only the arc of each node
 * to itself keeps its weight. */
static void large_weights_change_little(void **state) {
    struct pool *pool = pool_open(2);
    float wanted[NODES * DIM], x[NODES * DIM], large[ARCS];
    static const float factors[] = {1e11f, 1e15f, 1e19f, 1e25f, 1e38f};
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        struct graph graph = {.starts = starts, .neighbours = neighbours, .weights = large, .nodes = NODES, .arcs = ARCS};
        for (int arc = 0; arc < ARCS; arc++) large[arc] = weights[arc] * factors[k];
        memcpy(x, rows, sizeof x);
        assert_int_equal(propagate(x, DIM, &graph, &backend_cpu, pool), 0);
        if (!k) memcpy(wanted, x, sizeof x);
        for (int i = 0; i < (NODES - 1) * (NODES - 1); i++) { /* leaves out the last node, whose only arc is to itself */
            int a = i / (NODES - 1), b = i % (NODES - 1);
            assert_true(fabs(product(x + a * DIM, x + b * DIM, DIM) - product(wanted + a * DIM, wanted + b * DIM, DIM)) < 1e-3);
        }
        assert_true(fabs(product(x + (NODES - 1) * DIM, x + (NODES - 1) * DIM, DIM) - 4) < 1e-4);
    }
    pool_close(pool);
}

/* Rows that all have the same direction have one singular value. The others, which are not 0 only by rounding, are left out. */
static void fewer_directions_than_columns(void **state) {
    struct graph graph = {.starts = starts, .neighbours = neighbours, .nodes = NODES, .arcs = ARCS};
    struct pool *pool = pool_open(1);
    float x[NODES * DIM];
    for (int i = 0; i < NODES * DIM; i++) x[i] = (float)((1 + i / DIM) * (1 + i % DIM));
    assert_int_equal(propagate(x, DIM, &graph, &backend_cpu, pool), 0);
    for (int i = 0; i < NODES; i++) {
        assert_true(fabs(fabs((double)x[i * DIM]) - 2) < 1e-5);
        assert_true(x[i * DIM + 1] == 0 && x[i * DIM + 2] == 0);
    }
    pool_close(pool);
}

/* The matrix is made from known eigenvalues and eigenvectors, which must be found. */
static void values_and_vectors_are_found(void **state) {
    enum { N = 9 };
    double matrix[N * N], values[N], vectors[N * N], wanted[N];
    for (int k = 0; k < N; k++) wanted[k] = k == 3 ? 0 : k == 4 ? -2.5 : pow(2, 8 - k);
    memset(matrix, 0, sizeof matrix);
    for (int k = 0; k < N; k++) /* the vectors of the discrete cosine transform are orthogonal */
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                matrix[i * N + j] += wanted[k] * (k ? 2.0 : 1.0) / N * cos(M_PI * k * (2 * i + 1) / (2 * N)) *
                                     cos(M_PI * k * (2 * j + 1) / (2 * N));
    eigen_symmetric(matrix, N, values, vectors);
    const int order[N] = {0, 1, 2, 5, 6, 7, 8, 3, 4};
    for (int k = 0; k < N; k++) {
        double along = 0, largest = 0;
        assert_true(fabs(values[k] - wanted[order[k]]) < 1e-11);
        for (int i = 0; i < N; i++) {
            along +=
                vectors[k * N + i] * sqrt((order[k] ? 2.0 : 1.0) / N) * cos(M_PI * order[k] * (2 * i + 1) / (2 * N));
            if (fabs(vectors[k * N + i]) > fabs(largest)) largest = vectors[k * N + i];
        }
        assert_true(fabs(fabs(along) - 1) < 1e-11 && largest > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_numpy),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(large_weights_change_little),
        cmocka_unit_test(fewer_directions_than_columns),
        cmocka_unit_test(values_and_vectors_are_found),
    };
    return cmocka_run_group_tests_name("propagate", tests, NULL, NULL);
}
