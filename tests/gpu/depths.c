/* Tests that runs with any depth, hot rows and places give the same bytes. */
#include "common.h"

struct trained {
    char *records[2];
    double loss;
};

/* Trains `steps` batches, `depth` of them in flight; every fifth batch only measures its loss. */
static int train(struct trained *out, const struct example_source *s, const struct rule_options *rule, uint32_t dim,
                 unsigned depth, const struct placing placing[2], const char *const records[2], int steps,
                 uint64_t batch) {
    struct backend *gpu = open_or_stop(&backend_cuda, depth);
    struct tables t;
    int result = -1;
    out->loss = 0;
    out->records[0] = out->records[1] = NULL;
    if (tables_open(&t, &backend_cuda, gpu, rule, dim, s->rows, placing) || tables_fill(&t, records) ||
        backend_cuda.source(gpu, s))
        goto out;
    for (int i = 0; i < steps + (int)depth; i++) {
        unsigned stage = (unsigned)i % depth;
        struct step_result done;
        if (i >= (int)depth) {
            if (backend_cuda.result(gpu, stage, &done)) goto out;
            out->loss += done.loss;
        }
        if (i >= steps) continue;
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {
            .rule = rule, .lr = 0.05 / (1 + i), .global_step = (uint64_t)i, .loss_only = i % 5 == 3};
        if (backend_cuda.make_batch(gpu, stage, &request) || one_step(&t, stage, &step)) goto out;
    }
    if (backend_cuda.drain(gpu)) goto out;
    for (int side = 0; side < 2; side++) {
        out->records[side] = need(s->rows * t.layout.packed);
        if (backend_cuda.table_read(gpu, t.side[side], 0, s->rows, out->records[side])) goto out;
    }
    result = 0;
out:
    tables_close(&t);
    backend_cuda.close(gpu);
    return result;
}

void test_depths(void) {
    static const unsigned depths[] = {1, 2, 3, 8};
    static const uint64_t hots[] = {0, 1, 37, 300};
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, 300, 600, 20);
    for (int kind = 0; kind < 4; kind++) {
        struct example_source s = source_of(&c, kind == 1 ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        if (kind == 0) s.batch = 40; /* a batch this small is made by a builder of its own in each stage (arrays.h) */
        if (kind == 2) s.batch = EXAMPLE_MOST_PADDED; /* too large for a bound on its size: it is counted */
        if (kind == 3) source_shares(&s, &c, 0);
        s.short_repeat = 1;
        s.keep = c.keep;
        for (int r = 0; r < count; r += 3) {
            const struct rule_options *rule = &rules[r].options;
            uint32_t dim = r % 2 ? 50 : 128;
            struct record_layout layout = layout_of(rule, dim);
            char *records[2] = {first_records(rule, &layout, s.rows), first_records(rule, &layout, s.rows)};
            struct trained want, got;
            if (train(&want, &s, rule, dim, 1, PLACES[0], (const char *const *)records, 14, 40)) {
                CHECK(0, "%s: the run to compare with", rules[r].name);
                continue;
            }
            for (int d = 0; d < 4; d++)
                for (int h = 0; h < 4; h++)
                    for (int p = 0; p < PLACE_PAIRS; p++) {
                        if ((d + h + p + r / 3) % 2) continue; /* only half of the combinations with each rule */
                        struct placing placing[2] = {PLACES[p][0], PLACES[p][1]};
                        placing[0].hot_rows = hots[h];
                        placing[1].hot_rows = hots[(h + p) % 4];
                        int ok = !train(&got, &s, rule, dim, depths[d], placing, (const char *const *)records, 14, 40);
                        ok = ok && got.loss == want.loss;
                        for (int side = 0; side < 2 && ok; side++)
                            ok = !memcmp(want.records[side], got.records[side], s.rows * layout.packed);
                        CHECK(ok, "%s, kind %d, depth %u, hot %llu, %s/%s: other bytes (loss %.17g, wanted %.17g)",
                              rules[r].name, kind, depths[d], (unsigned long long)hots[h], placing[0].name,
                              placing[1].name, got.loss, want.loss);
                        free(got.records[0]);
                        free(got.records[1]);
                    }
            free(want.records[0]);
            free(want.records[1]);
            free(records[0]);
            free(records[1]);
        }
    }
    corpus_free(&c);
}
