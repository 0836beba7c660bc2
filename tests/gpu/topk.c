/* Exact nearest rows. Both backends must find the same bits, for any slices of the base: with small integers, whose products are
 * often equal; random numbers; rows that occur hundreds of times; rows of very different lengths; and rows that contain NaN or
 * overflow. */
#include "common.h"

#include "kernels/finished.h"

struct search {
    struct topk_request request;
    float *base, *queries;
    uint64_t *starts;
    uint32_t *banned;
};

enum kind { WHOLE, ANY, REPEATED, LENGTHS, BROKEN, KINDS };

static float *numbers(uint64_t rows, uint32_t dim, enum kind kind) {
    float *to = need(rows * dim * 4);
    for (uint64_t row = 0; row < rows; row++) {
        float length = kind == LENGTHS ? powf(10, (float)(random_bits() % 9) - 4) : 1;
        for (uint32_t i = 0; i < dim; i++) {
            float *at = to + row * dim + i;
            *at = kind == WHOLE ? (float)(int)(random_bits() % 9) - 4 : length * random_float();
            if (kind == REPEATED && row > 7) *at = to[row * 5 % 7 * dim + i];
            if (kind == BROKEN && random_bits() % 2000 == 0) *at = random_bits() % 2 ? NAN : 3e38f;
        }
    }
    return to;
}

static struct search search_make(uint64_t base_rows, uint64_t query_rows, uint32_t dim, uint32_t k, int bans,
                                 enum kind kind) {
    struct search s = {.base = numbers(base_rows, dim, kind),
                       .queries = numbers(query_rows, dim, kind == BROKEN ? ANY : kind)};
    s.request = (struct topk_request){
        .base = s.base, .base_rows = base_rows, .queries = s.queries, .query_rows = query_rows, .dim = dim, .k = k};
    if (!bans) return s;
    s.starts = need((query_rows + 1) * 8);
    s.banned = need(query_rows * 8 * 4);
    for (uint64_t q = 0; q < query_rows; q++) {
        uint64_t at = s.starts[q];
        for (uint64_t row = random_bits() % (base_rows / 4 + 1); row < base_rows && at < s.starts[q] + 8;
             row += 1 + random_bits() % (base_rows / 4 + 1))
            s.banned[at++] = (uint32_t)row;
        s.starts[q + 1] = at;
    }
    s.request.banned_starts = s.starts;
    s.request.banned = s.banned;
    return s;
}

static void search_free(struct search *s) {
    free(s->base);
    free(s->queries);
    free(s->starts);
    free(s->banned);
}

static int run(const struct backend_ops *ops, uint64_t budget, const struct topk_request *request) {
    struct backend *backend = NULL;
    struct backend_options options = {.threads = 2, .depth = 1, .gpu_budget = budget};
    int result = ops->open(&backend, &options) || ops->topk(backend, request);
    if (backend) ops->close(backend);
    return result;
}

static void compare_searches(uint64_t base_rows, uint64_t query_rows, uint32_t dim, uint32_t k, int bans,
                             enum kind kind, uint64_t budget) {
    struct search s = search_make(base_rows, query_rows, dim, k, bans, kind);
    uint32_t *ids[2] = {need(query_rows * k * 4), need(query_rows * k * 4)};
    float *scores[2] = {need(query_rows * k * 4), need(query_rows * k * 4)};
    uint64_t differ = 0;
    int broken = 0;
    for (int side = 0; side < 2; side++) {
        s.request.ids = ids[side];
        s.request.scores = scores[side];
        broken = broken || run(side ? &backend_cuda : &backend_cpu, budget, &s.request);
    }
    for (uint64_t i = 0; i < query_rows * k; i++) differ += ids[0][i] != ids[1][i] || scores[0][i] != scores[1][i];
    CHECK(!broken && !differ,
          "%llu rows, %llu queries, dim %u, k %u, bans %d, kind %d, budget %llu: %llu answers differ",
          (unsigned long long)base_rows, (unsigned long long)query_rows, dim, k, bans, (int)kind,
          (unsigned long long)budget, (unsigned long long)differ);
    for (int side = 0; side < 2; side++) {
        free(ids[side]);
        free(scores[side]);
    }
    search_free(&s);
}

/* Counts, for each query, the rows with a higher score than one row, and the rows with the same score. */
static void compare_counts(uint64_t base_rows, uint64_t query_rows, uint32_t dim, int bans, enum kind kind, uint64_t budget) {
    struct search s = search_make(base_rows, query_rows, dim, 0, bans, kind);
    float *than = need(query_rows * 4);
    uint64_t *counts[2] = {need(2 * query_rows * 8), need(2 * query_rows * 8)}, differ = 0;
    int broken = 0;
    for (uint64_t q = 0; q < query_rows; q++)
        than[q] = search_score(s.queries + q * dim, s.base + random_bits() % base_rows * dim, dim);
    s.request.than = than;
    for (int side = 0; side < 2; side++) {
        s.request.above = counts[side];
        s.request.level = counts[side] + query_rows;
        broken = broken || run(side ? &backend_cuda : &backend_cpu, budget, &s.request);
    }
    for (uint64_t i = 0; i < 2 * query_rows; i++) differ += counts[0][i] != counts[1][i];
    CHECK(!broken && !differ, "%llu rows, %llu queries, dim %u, bans %d, kind %d, budget %llu: %llu counts differ",
          (unsigned long long)base_rows, (unsigned long long)query_rows, dim, bans, (int)kind, (unsigned long long)budget,
          (unsigned long long)differ);
    for (int side = 0; side < 2; side++) free(counts[side]);
    free(than);
    search_free(&s);
}

void test_topk(void) {
    static const uint64_t bases[] = {1, 5, 1000, 70001}, queries[] = {1, 3, 300};
    static const uint32_t dims[] = {1, 31, 128, 300}, ks[] = {1, 10, 100, 2000};
    for (int b = 0; b < 4; b++)
        for (int q = 0; q < 3; q++)
            for (int d = 0; d < 4; d++)
                for (int k = 0; k < 4; k++)
                    compare_searches(bases[b], queries[q], dims[d], ks[k], (b + q + d + k) % 2,
                                     (enum kind)((b + 2 * q + 3 * d + k) % KINDS), UINT64_MAX);
    for (int kind = 0; kind < KINDS; kind++) {
        compare_counts(1, 3, 5, 0, (enum kind)kind, UINT64_MAX);
        compare_counts(70001, 300, 100, kind % 2, (enum kind)kind, UINT64_MAX);
        compare_counts(400000, 50, 128, 1, (enum kind)kind, (uint64_t)48 << 20);
    }
    /* The base is many times larger than the GPU memory that the backend may use. */
    for (int kind = 0; kind < KINDS; kind++)
        compare_searches(400000, 50, 128, 10, kind % 2, (enum kind)kind, (uint64_t)48 << 20);
}
