#include "vectors/numeric.h"

#include "tests/testing.h"

enum { COUNT = 10, DIM = 2 };
static const float points[COUNT * DIM] = {1, 2, 2, 1, 3, 0, 0, 3, -1, 1, 2, -2, -2, -1, 1, -3, 4, 1, -3, 2};
static const uint8_t of_class[COUNT] = {1, 1, 1, 0, 0, 1, 0, 1, 0, 0};
/* the optimum, found by Newton's method in NumPy until the gradient was below 1e-15 */
static const double optimum[DIM + 1] = {-0.11950215, 0.48727314, -0.46146359};

static void is_near(const float *w, double within) {
    for (int i = 0; i <= DIM; i++) assert_true(fabs((double)w[i] - optimum[i]) < within);
}

static void the_optimum_is_found(void **state) {
    struct logistic_samples samples = {points, NULL, of_class, COUNT, DIM};
    float w[DIM + 1];
    assert_int_equal(logistic_fit(w, &samples), 0);
    is_near(w, 1e-3);
    assert_true(fabs((double)logistic_score(w, points, DIM) + 0.55515618) < 3e-3);
}

/* The samples may be any rows of the table, in any order. */
static void samples_are_rows(void **state) {
    float spread[3 * COUNT * DIM], w[DIM + 1];
    uint32_t rows[COUNT];
    uint8_t classes[COUNT];
    for (int i = 0; i < 3 * COUNT * DIM; i++) spread[i] = NAN;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t from = (i * 7 + 3) % COUNT;
        rows[i] = 3 * from + 1;
        classes[i] = of_class[from];
        for (int j = 0; j < DIM; j++) spread[rows[i] * DIM + j] = points[from * DIM + j];
    }
    struct logistic_samples samples = {spread, rows, classes, COUNT, DIM};
    assert_int_equal(logistic_fit(w, &samples), 0);
    is_near(w, 1e-3);
}

/* The values differ by orders of magnitude, there are more samples than are summed at once, and the columns are no multiple of a
 * processor's vector. */
static void many_samples_of_uneven_columns(void **state) {
    enum { MANY = 1000, WIDE = 19 };
    static float x[MANY * WIDE];
    static uint8_t classes[MANY];
    float w[WIDE + 1];
    uint32_t noise = 1, right = 0;
    for (int i = 0; i < MANY; i++) {
        classes[i] = i % 3 == 0;
        for (int j = 0; j < WIDE; j++) {
            noise = noise * 1664525u + 1013904223u;
            x[i * WIDE + j] =
                (float)((double)noise / 4294967296 - 0.5 + (j == 4 && classes[i] ? 0.8 : 0)) * (j == 4 ? 30 : 1);
        }
    }
    struct logistic_samples samples = {x, NULL, classes, MANY, WIDE};
    assert_int_equal(logistic_fit(w, &samples), 0);
    for (int i = 0; i < MANY; i++) right += (logistic_score(w, x + i * WIDE, WIDE) > 0) == classes[i];
    assert_true(right > 850);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_optimum_is_found),
        cmocka_unit_test(samples_are_rows),
        cmocka_unit_test(many_samples_of_uneven_columns),
    };
    return cmocka_run_group_tests_name("logistic", tests, NULL, NULL);
}
