/* Lock-free training against the exact step. With a rate so small that no row moves far, what a pass adds up to is the
 * rate times the batch's summed gradient, whatever the order; an update that is lost or counted twice is not. */
#include "common.h"

struct moved {
    double apart, size; /* |lock-free - exact| and |exact|, over all rows of a side */
};

static struct moved moves_of(const float *before, const float *exact, const float *loose, uint64_t count) {
    struct moved m = {0, 0};
    for (uint64_t i = 0; i < count; i++) {
        double want = (double)exact[i] - (double)before[i], got = (double)loose[i] - (double)before[i];
        m.apart += (got - want) * (got - want);
        m.size += want * want;
    }
    return (struct moved){sqrt(m.apart), sqrt(m.size)};
}

/* Small weights: logits near zero stay there, so that the gradients do not change while the rows move. */
static void shrink(char *const records[2], uint64_t count) {
    for (int side = 0; side < 2; side++)
        for (uint64_t i = 0; i < count; i++) ((float *)records[side])[i] *= 0.1f;
}

/* Of a target that each pair reads and adds to; twice where a wide row meets its negatives in two turns. */
static int plausible_link(const struct placing *placing, const struct hogwild_result *result, uint32_t dim) {
    uint64_t once = 2 * result->pairs * ((dim + 3) / 4 * 4) * sizeof(float);
    if (placing[0].weights == PLACE_GPU) return result->link_bytes == 0;
    if (placing[1].weights == PLACE_GPU) return result->link_bytes >= once && result->link_bytes <= 2 * once;
    return result->link_bytes > 0;
}

/* One pass over all positions by each way, on the GPU, from the same rows. */
static void compare_pass(struct backend *gpu, const struct example_source *s, uint32_t dim,
                         const struct placing *placing, const char *shape) {
    char name[96];
    struct rule_options rule = options_of(RULE_SGD);
    struct record_layout layout = layout_of(&rule, dim);
    char *records[2] = {first_records(&rule, &layout, s->rows), first_records(&rule, &layout, s->rows)};
    shrink(records, s->rows * dim);
    char *after[2] = {need(s->rows * layout.packed), need(s->rows * layout.packed)};
    struct tables exact = {0}, loose = {0};
    struct batch_request all = {0, 0, example_count(s), 0};
    struct step_request step = {.rule = &rule, .lr = 1e-3};
    struct hogwild_result result = {0};
    struct step_result done = {0};
    snprintf(name, sizeof name, "%s, %s/%s", shape, placing[0].name, placing[1].name);
    int ok = !backend_cuda.source(gpu, s) && !tables_open(&exact, &backend_cuda, gpu, &rule, dim, s->rows, PLACES[0]) &&
             !tables_open(&loose, &backend_cuda, gpu, &rule, dim, s->rows, placing) &&
             !tables_fill(&exact, (const char *const *)records) && !tables_fill(&loose, (const char *const *)records) &&
             !backend_cuda.make_batch(gpu, 0, &all) && !one_step(&exact, 0, &step) &&
             !backend_cuda.result(gpu, 0, &done);
    struct hogwild_request request = {loose.side[0], loose.side[1], &rule, 0, 0, example_count(s), 1e-3, 1e-3};
    ok = ok && !backend_cuda.hogwild(gpu, &request, &result) && !backend_cuda.drain(gpu);
    CHECK(ok, "%s, dim %u", name, dim);
    CHECK(result.words == s->tokens && result.pairs == done.pairs,
          "%s, dim %u: %llu words and %llu pairs, wanted %llu and %llu", name, dim, (unsigned long long)result.words,
          (unsigned long long)result.pairs, (unsigned long long)s->tokens, (unsigned long long)done.pairs);
    CHECK(plausible_link(placing, &result, dim), "%s, dim %u: %llu bytes over the link for %llu pairs", name, dim,
          (unsigned long long)result.link_bytes, (unsigned long long)result.pairs);
    for (int side = 0; side < 2 && ok; side++) {
        ok = !backend_cuda.table_read(gpu, exact.side[side], 0, s->rows, after[0]) &&
             !backend_cuda.table_read(gpu, loose.side[side], 0, s->rows, after[1]);
        struct moved m = moves_of((float *)records[side], (float *)after[0], (float *)after[1], s->rows * dim);
        CHECK(ok && m.size > 0 && m.apart <= 0.02 * m.size,
              "%s, dim %u: %s rows moved by %.4g, %.4g of it otherwise than exactly", name, dim,
              side ? "context" : "target", m.size, m.apart);
    }
    tables_close(&exact);
    tables_close(&loose);
    for (int i = 0; i < 2; i++) {
        free(records[i]);
        free(after[i]);
    }
}

void test_hogwild(void) {
    static const uint32_t dims[] = {1, 31, 100, 128, 300, 512, 513, 2048, 4096};
    static const uint64_t longest[] = {
        2, 7, 60, 2000}; /* words of a sentence: shorter and longer than a window, and than a piece of work */
    struct backend *gpu = open_or_stop(&backend_cuda, 1);
    for (int l = 0; l < 4; l++) {
        struct corpus c;
        corpus_make(&c, 20000, 6000 / longest[l], longest[l]);
        for (uint64_t i = 0; i < c.tokens; i++) c.ids[i] = (uint32_t)(random_bits() % c.rows); /* no row is met often */
        for (int per_pair = 0; per_pair < 2; per_pair++) {
            struct example_source s = source_of(&c, EXAMPLE_WINDOW);
            char name[64];
            s.per_pair = per_pair;
            s.law = NEGATIVE_UNIFORM;
            if (l % 2) s.keep = c.keep;
            snprintf(name, sizeof name, "sentences to %llu words, negatives by %s", (unsigned long long)longest[l],
                     per_pair ? "pair" : "example");
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
                if (dims[d] > 1000 && l != 2) continue; /* most of the time, and the same kernel */
                /* On the GPU; pinned; hot and cold. */
                compare_pass(gpu, &s, dims[d], PLACES[(d + (size_t)(l + per_pair)) % 3], name);
            }
        }
        corpus_free(&c);
    }
    backend_cuda.close(gpu);
}
