/* Tests GloVe's coefficient (losses.h) and its lock-free block (kernels/cpu/rows.h: fit) against float64. */
#include "kernels/cpu/rows.h"
#include "kernels/draws.h"
#include "kernels/losses.h"

#include "tests/testing.h"

#include <math.h>
#include <string.h>

enum { SPAN = 44, CONTEXTS = 9 }; /* columns for vectors of 8 and 16, and some that are left */

static double number(uint64_t at) {
    return draw_unit(draw_word(3, 0, at, 0)) - 0.5;
}

static void logarithms_and_shares_are_those_of_the_library(void **state) {
    struct loss_options o = {.kind = LOSS_GLOVE, .x_max = 10, .x_power = 0.75f};
    for (float x = 1e-30f; x < 1e30f; x *= 1.37f) {
        float log_x = loss_log(x);
        assert_true(fabs((double)log_x - log((double)x)) <= 2e-7 * fmax(1, fabs(log((double)x))));
        double share = x < 10 ? pow((double)x / 10, 0.75) : 1;
        assert_true(fabs((double)loss_share(&o, log_x) - share) <= 1e-5 * share + 1e-30);
    }
    assert_true(isfinite(loss_log(0)));
}

/* A coefficient never exceeds LOSS_GLOVE_CLIP, even for scores near the limit of float32. */
static void no_coefficient_is_long(void **state) {
    float loss;
    assert_true(loss_fit(1e30f, 0, 1, &loss) == LOSS_GLOVE_CLIP);
    assert_true(loss_fit(-INFINITY, 0, 1, &loss) == -LOSS_GLOVE_CLIP);
    assert_true(fabsf(loss_fit(2, 0.5f, 0.25f, &loss) - 0.375f) < 1e-6f && fabsf(loss - 0.28125f) < 1e-6f);
}

/* Rows have 42 columns and 2 columns of padding. In a target's row the last two of the 42 are its bias and a one; in a context's row a one and its
 * bias. */
static void a_block_moves_as_in_float64(void **state) {
    struct loss_options o = {.kind = LOSS_GLOVE, .x_max = 10, .x_power = 0.75f};
    static float w[SPAN], s[SPAN], x[CONTEXTS][SPAN], t[CONTEXTS][SPAN], counts[CONTEXTS];
    static double dw[SPAN], ds[SPAN], dx[CONTEXTS][SPAN], dt[CONTEXTS][SPAN];
    float *weights[CONTEXTS], *sums[CONTEXTS];
    const char *ahead[1] = {(const char *)w};
    double wanted = 0, lr = 0.7;
    for (int j = 0; j < SPAN - 2; j++) w[j] = (float)number((uint64_t)j), s[j] = 4;
    w[SPAN - 3] = 1, s[SPAN - 3] = LOSS_GLOVE_STILL;
    for (int i = 0; i < CONTEXTS; i++) {
        for (int j = 0; j < SPAN - 2; j++) x[i][j] = (float)number((uint64_t)(100 + 50 * i + j)), t[i][j] = 2;
        x[i][SPAN - 4] = 1, t[i][SPAN - 4] = LOSS_GLOVE_STILL;
        counts[i] = 0.1f + 4 * (float)i;
        weights[i] = x[i], sums[i] = t[i];
    }
    for (int j = 0; j < SPAN; j++) dw[j] = w[j], ds[j] = s[j];
    for (int i = 0; i < CONTEXTS; i++)
        for (int j = 0; j < SPAN; j++) dx[i][j] = x[i][j], dt[i][j] = t[i][j];
    for (int i = 0; i < CONTEXTS; i++) {
        double dot = 0, share = counts[i] < 10 ? pow((double)counts[i] / 10, 0.75) : 1;
        for (int j = 0; j < SPAN; j++) dot += dw[j] * dx[i][j];
        double apart = dot - log((double)counts[i]), c = share * apart;
        wanted += share * apart * apart / 2;
        for (int j = 0; j < SPAN; j++) {
            double own = c * dx[i][j], other = c * dw[j];
            ds[j] += own * own, dt[i][j] += other * other;
            if (own != 0) dw[j] -= lr * own / sqrt(ds[j]);
            if (other != 0) dx[i][j] -= lr * other / sqrt(dt[i][j]);
        }
    }
    struct cpu_fit fit = {.weights = w, .sums = s, .context_weights = weights, .context_sums = sums, .counts = counts, .count = CONTEXTS, .span = SPAN,
                          .ahead = ahead, .ahead_count = 1, .ahead_bytes = sizeof w};
    double loss = cpu_rows_best()->fit(&o, &fit, (float)lr);
    assert_true(fabs(loss - wanted) < 1e-4 * wanted);
    for (int j = 0; j < SPAN; j++) {
        assert_true(fabs((double)w[j] - dw[j]) < 1e-4 && fabs((double)s[j] - ds[j]) <= 1e-4 * ds[j]);
        for (int i = 0; i < CONTEXTS; i++) assert_true(fabs((double)x[i][j] - dx[i][j]) < 1e-4 && fabs((double)t[i][j] - dt[i][j]) <= 1e-4 * dt[i][j]);
    }
    assert_true(w[SPAN - 3] == 1 && w[SPAN - 2] == 0 && s[SPAN - 1] == 0);
    for (int i = 0; i < CONTEXTS; i++) assert_true(x[i][SPAN - 4] == 1 && x[i][SPAN - 1] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_and_shares_are_those_of_the_library),
        cmocka_unit_test(no_coefficient_is_long),
        cmocka_unit_test(a_block_moves_as_in_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
