/* plausible: tests whether random draws have the right distribution. */
#ifndef SPTX_TESTS_PLAUSIBLE_H
#define SPTX_TESTS_PLAUSIBLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Every distribution is tested at this level and with fixed seeds. So a test that has passed once always passes, and a wrong distribution fails. */
#define LEVEL_Z 3.719 /* probability 1e-4 in one tail of the normal distribution */

/* Compares n draws with the expected shares by Pearson's chi-square; bins with fewer than 5 expected draws are merged. Returns 1
 * if the draws are plausible. */
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
    if (degrees < 1) return square < 1e-9; /* there is one bin, so nothing can differ */
    double h = 2 / (9 * degrees), limit = degrees * pow(1 - h + LEVEL_Z * sqrt(h), 3); /* quantile of chi-square, approximated as
                                                                                        * by Wilson and Hilferty */
    if (square > limit) printf("chi-square %.1f, limit %.1f at %.0f degrees\n", square, limit, degrees);
    return square <= limit;
}

#endif
