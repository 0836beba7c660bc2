/* Exact nearest rows on the CPU must have the same bits for any number of threads and of queries in a call, and equal a search
 * that scores every row alone. Random shapes are on both sides of the kernels' thresholds: rows of a slice (1,024), queries of a
 * chunk (256), products compared together (32), and columns summed together (32). */
#include "tests/testing.h"

#include "kernels/cpu/cpu.h"
#include "kernels/finished.h"

#include "random.h"

struct search {
    struct topk_request request;
    float *base, *queries;
    uint64_t *starts;
    uint32_t *banned;
};

/* Returns a size near one of the kernels' thresholds. */
static uint64_t near(const uint64_t *sizes, int count) {
    uint64_t size = sizes[below((uint64_t)count)], off = below(5);
    return off < 3 ? size + off - 1 : 1 + below(size + 1);
}

/* Makes rows with many nearly equal products: few different values, the same rows many times, or rows of very different lengths. */
static void fill(float *to, uint64_t rows, uint32_t dim, uint64_t kind) {
    for (uint64_t row = 0; row < rows; row++) {
        float length = kind == 3 ? (float)pow(10, (double)below(9) - 4) : 1;
        for (uint32_t i = 0; i < dim; i++) {
            float *at = to + row * dim + i;
            *at = length * ((float)(bits() >> 40) / 16777216.0f - 0.5f);
            if (kind == 1) *at = (float)(int)below(3) - 1;
            if (kind == 2 && row > 7) *at = to[(row * 5 % 7) * dim + i];
            if (kind == 4 && below(3000) == 0) *at = below(2) ? NAN : 3e38f;
        }
    }
}

static struct search search_make(void) {
    static const uint64_t bases[] = {1, 32, 1024, 2048, 3072, 5000}, counts[] = {1, 2, 16, 256, 300},
                          dims[] = {1, 32, 64, 100};
    struct search s = {
        .request = {.base_rows = near(bases, 6), .query_rows = near(counts, 5), .dim = (uint32_t)near(dims, 4)}};
    struct topk_request *r = &s.request;
    uint64_t kind = below(5), most = below(4) ? 12 : r->base_rows + 2;
    if (!r->base_rows) r->base_rows = 1;
    if (!r->query_rows) r->query_rows = 1;
    if (!r->dim) r->dim = 1;
    r->k = 1 + (uint32_t)below(most);
    r->base = s.base = malloc(r->base_rows * r->dim * sizeof(float));
    r->queries = s.queries = malloc(r->query_rows * r->dim * sizeof(float));
    fill(s.base, r->base_rows, r->dim, kind);
    fill(s.queries, r->query_rows, r->dim, kind == 4 ? 0 : kind);
    if (below(2)) return s;
    r->banned_starts = s.starts = calloc(r->query_rows + 1, sizeof *s.starts);
    if (below(3) == 0) return s; /* no banned rows: starts and banned stay NULL */
    r->banned = s.banned = malloc(r->query_rows * 9 * sizeof *s.banned);
    for (uint64_t q = 0; q < r->query_rows; q++) {
        uint64_t at = s.starts[q], row = below(r->base_rows);
        for (; row < r->base_rows && at < s.starts[q] + 9; row += 1 + below(r->base_rows / 4 + 1))
            s.banned[at++] = (uint32_t)row;
        s.starts[q + 1] = at;
    }
    return s;
}

static void search_free(struct search *s) {
    free(s->base);
    free(s->queries);
    free(s->starts);
    free(s->banned);
}

struct answers {
    uint32_t *ids;
    float *scores;
};

static struct answers ask(const struct topk_request *request, unsigned threads) {
    struct topk_request r = *request;
    struct pool *pool = pool_open(threads);
    uint64_t count = r.query_rows * r.k;
    struct answers a = {malloc(count * sizeof *a.ids), malloc(count * sizeof *a.scores)};
    r.ids = a.ids, r.scores = a.scores;
    assert_int_equal(cpu_topk(pool, &r), 0);
    pool_close(pool);
    return a;
}

static void answers_free(struct answers *a) {
    free(a->ids);
    free(a->scores);
}

static void assert_same(const struct answers *want, const struct answers *got, uint64_t first, uint64_t count) {
    assert_memory_equal(want->ids + first, got->ids, count * sizeof *want->ids);
    assert_memory_equal(want->scores + first, got->scores, count * sizeof *want->scores);
}

static void threads_change_nothing(void **state) {
    for (int i = 0; i < 30; i++) {
        struct search s = search_make();
        uint64_t count = s.request.query_rows * s.request.k;
        struct answers one = ask(&s.request, 1);
        for (unsigned threads = 2; threads <= 16; threads += 1 + (unsigned)below(4)) {
            struct answers many = ask(&s.request, threads);
            assert_same(&one, &many, 0, count);
            answers_free(&many);
        }
        answers_free(&one);
        search_free(&s);
    }
}

static void queries_beside_it_change_nothing(void **state) {
    for (int i = 0; i < 30; i++) {
        struct search s = search_make();
        struct topk_request *r = &s.request;
        struct answers all = ask(r, 3);
        for (int part = 0; part < 4; part++) {
            struct topk_request some = *r;
            uint64_t first = below(r->query_rows);
            some.query_rows = part < 2 ? 1 : 1 + below(r->query_rows - first);
            some.queries += first * r->dim;
            if (some.banned_starts) some.banned_starts += first;
            struct answers own = ask(&some, 1 + (unsigned)below(4));
            assert_same(&all, &own, first * r->k, some.query_rows * r->k);
            answers_free(&own);
        }
        answers_free(&all);
        search_free(&s);
    }
}

/* ---- every row scored alone ---- */

struct scored {
    float score;
    uint32_t id;
};

static int best_first(const void *a, const void *b) {
    const struct scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : x->id > y->id ? 1 : -1;
}

static uint64_t score_all(const struct topk_request *r, uint64_t query, struct scored *out) {
    uint64_t found = 0, ban = r->banned_starts ? r->banned_starts[query] : 0;
    for (uint32_t row = 0; row < r->base_rows; row++) {
        if (r->banned && ban < r->banned_starts[query + 1] && r->banned[ban] == row) {
            ban++;
            continue;
        }
        float score = search_score(r->queries + query * r->dim, r->base + (uint64_t)row * r->dim, r->dim);
        if (score > -HUGE_VALF) out[found++] = (struct scored){score, row};
    }
    qsort(out, found, sizeof *out, best_first);
    return found;
}

static void products_miss_no_row(void **state) {
    for (int i = 0; i < 30; i++) {
        struct search s = search_make();
        const struct topk_request *r = &s.request;
        struct scored *all = malloc(r->base_rows * sizeof *all);
        struct answers got = ask(r, 2);
        for (uint64_t query = 0; query < r->query_rows; query += 1 + below(20)) {
            uint64_t found = score_all(r, query, all);
            for (uint64_t k = 0; k < r->k; k++) {
                assert_int_equal(got.ids[query * r->k + k], k < found ? all[k].id : DRAW_NONE);
                assert_true(got.scores[query * r->k + k] == (k < found ? all[k].score : -HUGE_VALF));
            }
        }
        answers_free(&got);
        free(all);
        search_free(&s);
    }
}

/* The error margin must hold for sums in any order; a sum in the simplest order must be near search_sum(). */
static void margins_hold(void **state) {
    for (int i = 0; i < 2000; i++) {
        float a[300], b[300], forth = 0, back = 0, squares = 0;
        uint32_t dim = 1 + (uint32_t)below(300);
        fill(a, 1, dim, below(2) ? 3 : 0);
        fill(b, 1, dim, below(2) ? 3 : 0);
        for (uint32_t k = 0; k < dim; k++) forth += a[k] * b[k], squares += b[k] * b[k];
        for (uint32_t k = dim; k-- > 0;) back += a[k] * b[k];
        float margin = search_margin(dim, search_sum(a, a, dim), squares), score = search_score(a, b, dim);
        assert_true(fabs((double)forth - score) <= margin && fabs((double)back - score) <= margin);
        assert_true(margin <= 1e-4 * sqrt(search_sum(a, a, dim) * (double)squares) + 1e-15);
    }
    assert_true(search_margin(8, 1e40, 1e35f) == HUGE_VALF);
    assert_true(search_margin(8, NAN, 1) == HUGE_VALF);
}

static int is_banned_row(const struct topk_request *r, uint64_t query, uint64_t row) {
    for (uint64_t i = r->banned_starts ? r->banned_starts[query] : 0; r->banned_starts && i < r->banned_starts[query + 1]; i++)
        if (r->banned[i] == row) return 1;
    return 0;
}

static void counts_are_those_of_all_scores(void **state) {
    for (int i = 0; i < 30; i++) {
        struct search s = search_make();
        struct topk_request *r = &s.request;
        uint64_t n = r->query_rows;
        float *than = malloc(n * sizeof *than);
        uint64_t *above = malloc(n * sizeof *above), *level = malloc(n * sizeof *level);
        for (uint64_t q = 0; q < n; q++) than[q] = search_score(r->queries + q * r->dim, r->base + below(r->base_rows) * r->dim, r->dim);
        r->than = than, r->above = above, r->level = level;
        struct pool *pool = pool_open(1 + (unsigned)below(8));
        assert_int_equal(cpu_topk(pool, r), 0);
        pool_close(pool);
        for (uint64_t q = 0; q < n; q++) {
            uint64_t wanted[2] = {0, 0};
            for (uint64_t row = 0; row < r->base_rows; row++) {
                float score = is_banned_row(r, q, row) ? NAN : search_score(r->queries + q * r->dim, r->base + row * r->dim, r->dim);
                wanted[0] += score > than[q], wanted[1] += score == than[q];
            }
            assert_int_equal(above[q], wanted[0]);
            assert_int_equal(level[q], wanted[1]);
        }
        free(than);
        free(above);
        free(level);
        search_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(queries_beside_it_change_nothing),
        cmocka_unit_test(products_miss_no_row),
        cmocka_unit_test(margins_hold),
        cmocka_unit_test(counts_are_those_of_all_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
