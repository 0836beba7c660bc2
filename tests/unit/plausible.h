/* plausible: whether counts of draws follow a law. */
#ifndef SPTX_TESTS_PLAUSIBLE_H
#define SPTX_TESTS_PLAUSIBLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Every law is tested at this level with fixed seeds, so a test that passes once passes always, and a wrong law
 * fails. */
#define LEVEL_Z 3.719 /* one side of the normal law: 1e-4 */

/* Computes Pearson's chi-square of n draws against shares; bins of fewer than 5 expected draws are pooled. Returns 1
 * where it is plausible. */
static int plausible(const uint64_t *seen, const double *share, uint64_t bins, uint64_t n) {
    double square = 0, pooled = 0, pooled_seen = 0, degrees = -1;
    for (uint64_t i = 0; i < bins; i++) {
        double expected = share[i] * (double)n;
        if (expected < 5) {
            pooled += expected, pooled_seen += (double)seen[i];
            continue;
        }
        square += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
        degrees++;
    }
    if (pooled > 0.5) square += (pooled_seen - pooled) * (pooled_seen - pooled) / pooled, degrees++;
    else if (pooled_seen > 5) return 0;
    if (degrees < 1) return square < 1e-9; /* one bin: nothing can differ */
    double h = 2 / (9 * degrees), limit = degrees * pow(1 - h + LEVEL_Z * sqrt(h), 3); /* Wilson and Hilferty */
    if (square > limit) printf("chi-square %.1f, limit %.1f at %.0f degrees\n", square, limit, degrees);
    return square <= limit;
}

#endif
