#include "eigen.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 30 };                /* most sweeps over all pairs of rows; usually ten are enough */
static const double nothing = 1e-16; /* a value counts as zero if it is below this share of the sum of all values */

/* Rotates rows p and q: c and s are the angle's cosine and sine. */
static void turn_rows(double *rows, uint32_t n, uint32_t p, uint32_t q, double c, double s) {
    double *a = rows + (uint64_t)p * n, *b = rows + (uint64_t)q * n;
    for (uint32_t i = 0; i < n; i++) {
        double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Copies rows p and q to columns p and q, since the matrix is symmetric. */
static void mirror(double *matrix, uint32_t n, uint32_t p, uint32_t q) {
    for (uint32_t i = 0; i < n; i++) {
        matrix[(uint64_t)i * n + p] = matrix[(uint64_t)p * n + i];
        matrix[(uint64_t)i * n + q] = matrix[(uint64_t)q * n + i];
    }
}

/* Makes the matrix's value at (p, q) zero by a rotation, unless its magnitude is at most `least`. Returns 1 if it rotated, else
 * 0. */
static int rotate(double *matrix, uint32_t n, uint32_t p, uint32_t q, double least, double *vectors) {
    double pp = matrix[(uint64_t)p * n + p], qq = matrix[(uint64_t)q * n + q], pq = matrix[(uint64_t)p * n + q];
    if (fabs(pq) <= least) return 0;
    double half = (qq - pp) / (2 * pq), t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(half * half + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    turn_rows(matrix, n, p, q, c, s);
    matrix[(uint64_t)p * n + p] = pp - t * pq;
    matrix[(uint64_t)q * n + q] = qq + t * pq;
    matrix[(uint64_t)p * n + q] = matrix[(uint64_t)q * n + p] = 0;
    mirror(matrix, n, p, q);
    turn_rows(vectors, n, p, q, c, s);
    return 1;
}

static void exchange_rows(double *rows, uint32_t n, uint32_t p, uint32_t q) {
    for (uint32_t i = 0; i < n; i++) {
        double value = rows[(uint64_t)p * n + i];
        rows[(uint64_t)p * n + i] = rows[(uint64_t)q * n + i];
        rows[(uint64_t)q * n + i] = value;
    }
}

static void sort(double *values, double *vectors, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t largest = i;
        for (uint32_t j = i + 1; j < n; j++)
            if (values[j] > values[largest]) largest = j;
        double value = values[i];
        values[i] = values[largest];
        values[largest] = value;
        if (largest != i) exchange_rows(vectors, n, i, largest);
    }
}

static void settle_sign(double *vector, uint32_t n) {
    uint32_t largest = 0;
    for (uint32_t i = 1; i < n; i++)
        if (fabs(vector[i]) > fabs(vector[largest])) largest = i;
    if (vector[largest] < 0)
        for (uint32_t i = 0; i < n; i++) vector[i] = -vector[i];
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
    for (uint32_t i = 0; i < n; i++) settle_sign(vectors + (uint64_t)i * n, n);
}
