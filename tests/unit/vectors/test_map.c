#include "base/report.h"
#include "vectors/numeric.h"

#include "tests/testing.h"

enum { DIM = 8, MOST = 400, GROUPS = 4 };

/* Rows of length 1 around GROUPS directions, row i around direction i % GROUPS. spread = 0: all rows of a group are equal. */
static float rows[MOST * DIM];
static void make_rows(int count, float spread) {
    uint64_t seed = 1;
    for (int row = 0; row < count; row++) {
        float *at = rows + row * DIM, squares = 0;
        for (int i = 0; i < DIM; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            at[i] = (i == row % GROUPS) + spread * ((float)(seed >> 40) / (1 << 24) - 0.5f);
            squares += at[i] * at[i];
        }
        for (int i = 0; i < DIM; i++) at[i] /= sqrtf(squares);
    }
}

static float cosine(int a, int b) {
    float sum = 0;
    for (int i = 0; i < DIM; i++) sum += rows[a * DIM + i] * rows[b * DIM + i];
    return sum;
}

struct found {
    float cosine;
    uint32_t row;
};
static int better(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    return x->cosine == y->cosine ? (x->row > y->row) - (x->row < y->row) : x->cosine < y->cosine ? 1 : -1;
}

static uint32_t near[MOST * MAP_NEAR];
static float cosines[MOST * MAP_NEAR];
static uint32_t find_near(int count) {
    static struct found all[MOST];
    uint32_t k = count > MAP_NEAR ? MAP_NEAR : (uint32_t)count - 1;
    for (int row = 0; row < count; row++) {
        int others = 0;
        for (int other = 0; other < count; other++)
            if (other != row) all[others++] = (struct found){cosine(row, other), (uint32_t)other};
        qsort(all, (size_t)others, sizeof *all, better);
        for (uint32_t i = 0; i < k; i++)
            near[(uint32_t)row * k + i] = all[i].row, cosines[(uint32_t)row * k + i] = all[i].cosine;
    }
    return k;
}

static void make_map(float *xy, int count, unsigned threads) {
    struct pool *pool = pool_open(threads);
    struct map_request request = {rows, (uint64_t)count, DIM, near, cosines, find_near(count)};
    assert_non_null(pool);
    assert_int_equal(map_make(xy, &request, pool), 0);
    pool_close(pool);
    for (int i = 0; i < 2 * count; i++) assert_true(isfinite(xy[i]));
}

static float apart(const float *xy, int a, int b) {
    return hypotf(xy[2 * a] - xy[2 * b], xy[2 * a + 1] - xy[2 * b + 1]);
}

/* For every row, the nearest row on the map must be in the same group. */
static void groups_stay_together(void **state) {
    static float xy[2 * MOST];
    make_rows(MOST, 0.5f);
    make_map(xy, MOST, 2);
    for (int row = 0; row < MOST; row++) {
        int best = row ? 0 : 1;
        for (int other = 0; other < MOST; other++)
            if (other != row && apart(xy, row, other) < apart(xy, row, best)) best = other;
        assert_int_equal(best % GROUPS, row % GROUPS);
    }
}

static void threads_change_nothing(void **state) {
    static float one[2 * MOST], three[2 * MOST];
    make_rows(203, 0.7f); /* 203 rows are no multiple of the processor's lanes */
    make_map(one, 203, 1);
    make_map(three, 203, 3);
    assert_memory_equal(one, three, 203 * 2 * sizeof *one);
}

/* Tries one row, two, three, as many as the neighbours that are used, and one more. */
static void few_rows(void **state) {
    static const int counts[] = {1, 2, 3, 4, MAP_NEAR, MAP_NEAR + 1, MAP_NEAR + 2};
    static float xy[2 * MOST];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        make_rows(counts[i], 0.5f);
        make_map(xy, counts[i], 1);
    }
}

/* Equal rows and rows of zeros get points on the map, too. */
static void equal_rows(void **state) {
    static float xy[2 * MOST];
    make_rows(40, 0);
    make_map(xy, 40, 1);
    memset(rows, 0, sizeof rows);
    make_map(xy, 120, 1);
}

/* The points are spread far along one direction and less far along another. Both must be found, the longer one first. */
static void principal_directions(void **state) {
    static float xy[2 * MOST];
    for (int row = 0; row < MOST; row++)
        for (int i = 0; i < DIM; i++)
            rows[row * DIM + i] = i == 5 ? (float)(row % 20) : i == 2 ? 3 * (float)(row / 20) : i == 7 ? 100 : 0;
    assert_int_equal(principal_two(xy, rows, MOST, DIM), 0);
    for (int row = 0; row < MOST; row++) {
        assert_true(fabsf(xy[2 * row] - 3 * ((float)(row / 20) - 9.5f)) < 1e-3f);
        assert_true(fabsf(xy[2 * row + 1] - ((float)(row % 20) - 9.5f)) < 1e-3f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_stay_together), cmocka_unit_test(threads_change_nothing),
                                       cmocka_unit_test(few_rows), cmocka_unit_test(equal_rows),
                                       cmocka_unit_test(principal_directions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
