#include "kernels/cpu/rows.h"
#include "kernels/cpu/cpu.h"
#include "kernels/finished.h"
#include "tests/unit/small_run.h"
#include "vectors/search.h"

#include <math.h>

/* Returns a pseudo-random number made from a counter (Weyl's sequence and a mixing function). */
static float number(uint64_t at) {
    uint64_t x = (at + 1) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31, x *= 0xBF58476D1CE4E5B9ull, x ^= x >> 29;
    return (float)((double)(x >> 11) / 4503599627370496.0 - 1);
}

static float *numbers(uint64_t count, uint64_t from) {
    float *out = malloc((count + 1) * sizeof *out);
    for (uint64_t i = 0; i < count; i++) out[i] = number(from + i);
    return out;
}

static double dot(const float *a, const float *b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++) sum += (double)a[i] * b[i];
    return sum;
}

static int is_banned(const struct topk_request *r, uint64_t query, uint32_t id) {
    for (uint64_t i = r->banned_starts ? r->banned_starts[query] : 0;
         r->banned_starts && i < r->banned_starts[query + 1]; i++)
        if (r->banned[i] == id) return 1;
    return 0;
}

/* Checks that each answer is a row that may be found and has its own score, that answers are sorted, and that no better row was
 * left out. */
static void check_answers(const struct topk_request *r) {
    for (uint64_t query = 0; query < r->query_rows; query++) {
        const float *q = r->queries + query * r->dim, *scores = r->scores + query * r->k;
        const uint32_t *ids = r->ids + query * r->k;
        uint64_t allowed = 0, found = 0, above = 0;
        while (found < r->k && ids[found] != DRAW_NONE) found++;
        for (uint64_t i = 0; i < found; i++) {
            assert_true(ids[i] < r->base_rows);
            assert_false(is_banned(r, query, ids[i]));
            assert_true(fabs(scores[i] - dot(q, r->base + (uint64_t)ids[i] * r->dim, r->dim)) < 1e-5);
            if (i) assert_true(scores[i - 1] > scores[i] || (scores[i - 1] == scores[i] && ids[i - 1] < ids[i]));
        }
        for (uint64_t i = found; i < r->k; i++) {
            assert_int_equal(ids[i], DRAW_NONE);
            assert_true(scores[i] < -1e38f);
        }
        for (uint32_t row = 0; row < r->base_rows; row++) {
            if (is_banned(r, query, row)) continue;
            allowed++;
            above += found && dot(q, r->base + (uint64_t)row * r->dim, r->dim) > scores[found - 1] + 1e-5;
        }
        assert_int_equal(found, allowed < r->k ? allowed : r->k);
        assert_true(above < found + !found);
    }
}

static void search(uint64_t base_rows, uint64_t query_rows, uint32_t dim, uint32_t k, unsigned threads,
                   int banned_each) {
    struct topk_request r = {.base_rows = base_rows, .query_rows = query_rows, .dim = dim, .k = k};
    struct pool *pool = pool_open(threads);
    float *base = numbers(base_rows * dim, 0), *queries = numbers(query_rows * dim, 1 << 30);
    uint64_t *starts = malloc((query_rows + 1) * sizeof *starts);
    uint32_t *banned = malloc((query_rows * (uint64_t)banned_each + 1) * sizeof *banned);
    starts[0] = 0;
    for (uint64_t q = 0; q < query_rows; q++) {
        uint32_t *own = banned + starts[q];
        for (int i = 0; i < banned_each; i++)
            own[i] = (uint32_t)((number(q * 1000 + (uint64_t)i) + 1) / 2 * (float)(base_rows - 1));
        starts[q + 1] = starts[q] + search_distinct(own, (uint64_t)banned_each);
    }
    r.base = base, r.queries = queries;
    if (banned_each) r.banned_starts = starts, r.banned = banned;
    r.ids = malloc(query_rows * k * sizeof *r.ids);
    r.scores = malloc(query_rows * k * sizeof *r.scores);
    assert_int_equal(cpu_topk(pool, &r), 0);
    check_answers(&r);
    free(r.ids), free(r.scores), free(base), free(queries), free(starts), free(banned);
    pool_close(pool);
}

/* The fast approximate products, by which rows are excluded, differ from exact scores by at most the margin. Tested at the level that every
 * processor has, and at this processor's best level. */
static void products_keep_to_the_margin(void **state) {
    extern const struct cpu_rows cpu_rows_base;
    const struct cpu_rows *levels[] = {&cpu_rows_base, cpu_rows_best()};
    static const uint32_t dims[] = {1, 2, 7, 8, 9, 128, 401};
    enum { QUERIES = 19 };
    float out[QUERIES * CPU_PANEL], *panel = malloc(401 * CPU_PANEL * sizeof *panel);
    for (int level = 0; level < 2; level++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
            for (uint32_t count = 1; count <= QUERIES; count++) {
                uint32_t dim = dims[d];
                float *rows = numbers(CPU_PANEL * dim, 3), *queries = numbers(count * dim, 1 << 20);
                const float *asked[QUERIES];
                for (uint32_t q = 0; q < count; q++) asked[q] = queries + q * dim;
                for (uint32_t j = 0; j < dim; j++)
                    for (uint32_t r = 0; r < CPU_PANEL; r++) panel[j * CPU_PANEL + r] = rows[r * dim + j];
                levels[level]->products(asked, count, panel, dim, out, CPU_PANEL, 0);
                for (uint32_t q = 0; q < count; q++)
                    for (uint32_t r = 0; r < CPU_PANEL; r++) {
                        const float *row = rows + r * dim;
                        float margin = search_margin(dim, dot(asked[q], asked[q], dim), (float)dot(row, row, dim));
                        assert_true(fabs(out[q * CPU_PANEL + r] - dot(asked[q], row, dim)) <= margin);
                    }
                free(rows), free(queries);
            }
    free(panel);
}

/* Tries a little more and a little less than the sizes at which the search changes its way: a panel (32 rows), a slice (1,024
 * rows), a chunk (256 queries), a few queries (4), and the number of threads. */
static void against_brute_force(void **state) {
    search(1, 1, 1, 1, 1, 0);
    search(5, 3, 4, 10, 2, 0); /* k is larger than the number of rows */
    search(1023, 7, 8, 5, 2, 3);
    search(1025, 300, 12, 3, 2, 5);
    search(2048, 257, 5, 1, 3, 1);
    search(5000, 2, 16, 20, 5, 40); /* fewer queries than threads: each thread searches some of the rows */
    search(3000, 1, 7, 3000, 4, 10);
    search(40, 3, 3, 4, 2, 200); /* nearly all rows are banned */
    for (uint64_t rows = 31; rows <= 65; rows += rows == 33 ? 30 : 1)
        for (uint64_t queries = 1; queries <= 9; queries++) search(rows, queries, 9, 5, 1, 2);
}

/* Equal rows that are far apart are answered by rising id, whether threads divide the queries or the rows among them. */
static void ties_by_id(void **state) {
    enum { ROWS = 4000, DIM = 37, K = 6 };
    static const uint32_t equal[] = {3, 1023, 1024, 2047, 3000, 3999};
    float *base = numbers(ROWS * DIM, 5), *queries = malloc(9 * DIM * sizeof *queries);
    for (int i = 1; i < K; i++) memcpy(base + equal[i] * DIM, base + equal[0] * DIM, DIM * sizeof *base);
    for (int q = 0; q < 9; q++)
        for (int i = 0; i < DIM; i++) queries[q * DIM + i] = 4 * base[equal[0] * DIM + i];
    for (unsigned threads = 1; threads < 8; threads++)
        for (uint64_t count = 1; count < 10; count += 4) {
            uint32_t ids[9 * K];
            float scores[9 * K];
            struct topk_request r = {base, ROWS, queries, count, DIM, K, NULL, NULL, ids, scores, NULL, NULL, NULL};
            struct pool *pool = pool_open(threads);
            assert_int_equal(cpu_topk(pool, &r), 0);
            for (uint64_t i = 0; i < count * K; i++) assert_int_equal(ids[i], equal[i % K]);
            pool_close(pool);
        }
    free(base), free(queries);
}

/* A query of zeros is equally near to every row, so it finds the first ids that are not banned. A row with NaN is never found. */
static void zeros_and_nan(void **state) {
    enum { ROWS = 2000, DIM = 3, K = 4 };
    float *base = numbers(ROWS * DIM, 9), query[DIM] = {0, 0, 0}, scores[K];
    uint64_t starts[2] = {0, 2};
    uint32_t banned[2] = {0, 2}, ids[K];
    struct pool *pool = pool_open(2);
    struct topk_request r = {base, ROWS, query, 1, DIM, K, starts, banned, ids, scores, NULL, NULL, NULL};
    base[3 * DIM] = NAN;
    assert_int_equal(cpu_topk(pool, &r), 0);
    static const uint32_t wanted[K] = {1, 4, 5, 6};
    for (int i = 0; i < K; i++) assert_int_equal(ids[i], wanted[i]);
    r.query_rows = 0;
    assert_int_equal(cpu_topk(pool, &r), 0);
    pool_close(pool);
    free(base);
}

static void distinct_ids(void **state) {
    uint32_t ids[] = {5, 3, 5, 9, 3, 0};
    static const uint32_t wanted[] = {0, 3, 5, 9};
    assert_int_equal(search_distinct(ids, 6), 4);
    assert_memory_equal(ids, wanted, sizeof wanted);
    assert_int_equal(search_distinct(NULL, 0), 0);
}

/* ---- over a model ---- */

static const char words[] = "a\t9\nb\t8\nc\t7\nd\t6\n";
static const float targets[8] = {1, 0, 0, 5, 3, 3, -2, 0}, contexts[8] = {0, 1, 2, 0, 0, 3, 0, 0};

static void a_model(void **state) {
    struct small_run run;
    struct model model;
    struct search near;
    float query[2] = {10, 0}, scores[4];
    uint32_t ids[4];
    small_run_make(&run, words, 4, 2, targets, contexts);
    assert_int_equal(model_open(&model, run.directory), 0);

    assert_int_equal(search_open(&near, &model, VIEW_TARGET, METRIC_COSINE, model.rows, NULL), 0);
    assert_int_equal(search_top(&near, query, 1, 4, NULL, NULL, ids, scores), 0);
    static const uint32_t by_cosine[] = {0, 2, 1, 3};
    static const float cosines[] = {1, 0.70710678f, 0, -1};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ids[i], by_cosine[i]);
        assert_float_equal(scores[i], cosines[i], 1e-6);
    }
    search_close(&near);

    assert_int_equal(search_open(&near, &model, VIEW_TARGET, METRIC_DOT, model.rows, NULL), 0);
    assert_int_equal(search_top(&near, query, 1, 2, NULL, NULL, ids, scores), 0);
    assert_int_equal(ids[0], 2);
    assert_float_equal(scores[0], 30, 1e-5);
    search_close(&near);

    assert_int_equal(search_open(&near, &model, VIEW_CONTEXT, METRIC_DOT, 2, NULL), 0); /* only the first two rows are searched */
    assert_int_equal(search_top(&near, query, 1, 3, NULL, NULL, ids, scores), 0);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
    assert_int_equal(ids[2], DRAW_NONE);
    search_close(&near);
    search_close(&near);
    model_close(&model);
    small_run_remove(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_keep_to_the_margin),
        cmocka_unit_test(against_brute_force),
        cmocka_unit_test(ties_by_id),
        cmocka_unit_test(zeros_and_nan),
        cmocka_unit_test(distinct_ids),
        cmocka_unit_test(a_model),
    };
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
