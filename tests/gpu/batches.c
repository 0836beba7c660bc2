/* Compares the batches of both backends, id by id. */
#include "common.h"

static int same_view(const struct batch_view *a, const struct batch_view *b, char *why, size_t capacity) {
    if (a->pool.on != b->pool.on || a->pool.product != b->pool.product || a->pool.tied != b->pool.tied || a->pool.own != b->pool.own || a->pool.whole != b->pool.whole || a->pool.sum != b->pool.sum)
        return snprintf(why, capacity, "its targets are pooled in another way"), 0;
    if (a->shared.count != b->shared.count || a->shared.masked != b->shared.masked)
        return snprintf(why, capacity, "%u shared negatives, wanted %u", b->shared.count, a->shared.count), 0;
    if (a->blocks != b->blocks)
        return snprintf(why, capacity, "%llu blocks, wanted %llu", (unsigned long long)b->blocks,
                        (unsigned long long)a->blocks),
               0;
    for (uint64_t i = 0; i < a->blocks; i++) {
        if (a->target_starts[i + 1] != b->target_starts[i + 1] ||
            a->context_starts[i + 1] != b->context_starts[i + 1] || a->positives[i] != b->positives[i])
            return snprintf(why, capacity, "block %llu has another shape: contexts to %llu, wanted %llu",
                            (unsigned long long)i, (unsigned long long)b->context_starts[i + 1],
                            (unsigned long long)a->context_starts[i + 1]),
                   0;
        for (uint64_t j = a->target_starts[i]; j < a->target_starts[i + 1]; j++)
            if (a->target_ids[j] != b->target_ids[j])
                return snprintf(why, capacity, "block %llu: target %u, wanted %u", (unsigned long long)i,
                                b->target_ids[j], a->target_ids[j]),
                       0;
        for (uint64_t j = a->context_starts[i]; a->weights && j < a->context_starts[i] + a->positives[i]; j++)
            if (!b->weights || a->weights[j] != b->weights[j])
                return snprintf(why, capacity, "block %llu: positive %llu weighs %.9g, wanted %.9g", (unsigned long long)i,
                                (unsigned long long)(j - a->context_starts[i]), b->weights ? (double)b->weights[j] : 1,
                                (double)a->weights[j]),
                       0;
        for (uint64_t j = a->context_starts[i]; j < a->context_starts[i + 1]; j++)
            if (a->context_ids[j] != b->context_ids[j])
                return snprintf(why, capacity, "block %llu: context %llu is %u, wanted %u", (unsigned long long)i,
                                (unsigned long long)(j - a->context_starts[i]), b->context_ids[j], a->context_ids[j]),
                       0;
    }
    return 1;
}

/* Compares every third batch of `size` examples. */
static void compare_batches_of(uint64_t size, struct backend *cpu, struct backend *gpu, const struct example_source *s,
                               const char *name) {
    uint64_t examples = example_count(s);
    unsigned stage = 0; /* alternates between the stages, since each builder has its own scratch memory */
    char why[256] = "";
    if (backend_cpu.source(cpu, s) || backend_cuda.source(gpu, s)) {
        CHECK(0, "%s: source", name);
        return;
    }
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t first = 0; first < examples; first += size * 3, stage = !stage) {
            struct batch_request request = {epoch, first, examples - first < size ? examples - first : size,
                                            s->held_out && first % 2};
            struct batch_view a, b;
            int ok = !backend_cpu.make_batch(cpu, 0, &request) && !backend_cpu.batch_view(cpu, 0, &a) &&
                     !backend_cuda.make_batch(gpu, stage, &request) && !backend_cuda.batch_view(gpu, stage, &b) &&
                     same_view(&a, &b, why, sizeof why);
            CHECK(ok, "%s, epoch %u, from %llu: %s", name, epoch, (unsigned long long)first, why);
            if (!ok) return;
        }
}

static void compare_batches(struct backend *cpu, struct backend *gpu, const struct example_source *s, const char *name) {
    compare_batches_of(700, cpu, gpu, s, name);
}

/* Draws the last two thirds of the walks, without making batches of them; both backends must give the same nodes. */
static void compare_drawn(struct backend *cpu, struct backend *gpu, const struct example_source *s, unsigned kind) {
    uint64_t first = s->sentences / 3, count = s->sentences - first, bytes = count * s->walks.length * sizeof(uint32_t);
    uint32_t *a = need(bytes), *b = need(bytes);
    CHECK(!backend_cpu.source(cpu, s) && !backend_cuda.source(gpu, s) && !backend_cpu.draw_walks(cpu, 2, first, count, a) &&
              !backend_cuda.draw_walks(gpu, 2, first, count, b) && !memcmp(a, b, bytes),
          "walks of %u, kind %u: drawn alone", s->walks.length, kind);
    free(a);
    free(b);
}

/* Compares batches that begin and end in the middle of walks; a walk may be longer than a batch. */
static void compare_walks(struct backend *cpu, struct backend *gpu) {
    static const uint32_t lengths[] = {2, 3, 40, 127, 701, 2000};
    for (unsigned kind = 0; kind < 32; kind++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            struct corpus c;
            char name[120];
            corpus_make(&c, kind % 3 ? 700 : 9, 60, 40);
            struct example_source s = source_of(&c, EXAMPLE_WINDOW);
            s.stream_on_host = (int)(kind + l) % 2, s.per_pair = l % 2, s.held_out = l % 3 ? 0 : 1u << 30;
            if (kind % 4 == 3) s.keep = c.keep;
            if (kind % 5 == 4) source_shares(&s, &c, (int)l % 2);
            if (kind % 7 > 4) source_paths(&s, &c);
            source_walks(&s, &c, lengths[l], kind);
            compare_drawn(cpu, gpu, &s, kind);
            snprintf(name, sizeof name, "walks of %u, kind %u, %llu nodes", lengths[l], kind, (unsigned long long)c.rows);
            compare_batches(cpu, gpu, &s, name);
            corpus_free(&c);
        }
}

/* Compares windows of `s` in which words have several rows, and windows whose words are predicted by tree paths. */
static void compare_shared(struct backend *cpu, struct backend *gpu, const struct example_source *s, struct corpus *c, int kind,
                           const char *of) {
    struct example_source shared = *s;
    char name[200];
    source_shares(&shared, c, kind % 2);
    snprintf(name, sizeof name, "%s, rows shared by %s", of, kind % 2 ? "windows" : "words");
    compare_batches(cpu, gpu, &shared, name);
    source_paths(&shared, c);
    snprintf(name, sizeof name, "%s, rows shared by %s, paths", of, kind % 2 ? "windows" : "words");
    compare_batches(cpu, gpu, &shared, name);
    struct example_source paths = *s;
    source_paths(&paths, c);
    paths.pool.on = kind / 2 % 2;
    snprintf(name, sizeof name, "%s, paths", of);
    compare_batches(cpu, gpu, &paths, name);
}

/* Compares batches with one example for each item; negatives belong to the example or to the whole batch. */
static void compare_items(struct backend *cpu, struct backend *gpu) {
    static const uint32_t negatives[] = {1, 2, 255, 256, 257, 511, 512, 513, 514, 3000};
    for (int i = 0; i < 60; i++) {
        struct corpus c;
        char name[120];
        corpus_make(&c, i % 4 ? 5000 : 40, 300, 40);
        struct example_source s = source_of(&c, EXAMPLE_ITEM);
        s.noise = (enum noise_distribution)(i % 3);
        s.negatives = negatives[i % 10];
        s.per_batch = i % 7 > 0, s.exclude = i / 2 % 2, s.distinct = i / 3 % 4 == 0, s.shuffle = i / 5 % 2;
        s.positives = 1, s.held_out = i % 5 ? 0 : 1u << 30;
        if (i % 3 == 1) source_weigh(&s, &c);
        snprintf(name, sizeof name, "items of %llu rows, %u negatives a %s, options %d", (unsigned long long)c.rows, s.negatives,
                 s.per_batch ? "batch" : "example", i);
        if (s.negatives < 500 || s.per_batch) compare_batches(cpu, gpu, &s, name);
        corpus_free(&c);
    }
}

static void compare_triples(struct backend *cpu, struct backend *gpu) {
    static const uint32_t negatives[] = {1, 2, 255, 513, 3000};
    for (int i = 0; i < 40; i++) {
        struct corpus c;
        char name[120];
        corpus_make(&c, i % 4 ? 5000 : 40, 300, 40);
        struct example_source s = source_of(&c, EXAMPLE_TRIPLE);
        s.noise = (enum noise_distribution)(1 + i % 3);
        s.negatives = negatives[i % 5];
        s.exclude = i / 2 % 2, s.distinct = i / 3 % 4 == 0, s.shuffle = i / 5 % 2, s.stream_on_host = i / 7 % 2;
        s.held_out = i % 5 ? 0 : 1u << 30;
        const struct example_pool pool = {.on = 1, .product = i % 2 ? PRODUCT_REAL : PRODUCT_COMPLEX, .tied = i / 8 % 2};
        s.relations_too = i / 3 % 2;
        source_triples(&s, &c, &pool, i / 4 % 2);
        snprintf(name, sizeof name, "triples of %llu rows, %u negatives, options %d", (unsigned long long)c.rows, s.negatives, i);
        compare_batches(cpu, gpu, &s, name);
        compare_batches_of(1, cpu, gpu, &s, name);
        corpus_free(&c);
    }
}

/* Many batches here contain only the first place of a list, or no held-out example. Such batches have no shared negatives. */
static void compare_own_places(struct backend *cpu, struct backend *gpu) {
    for (int i = 0; i < 8; i++) {
        struct corpus c;
        char name[80];
        corpus_make(&c, 40, 60, 2);
        struct example_source s = source_of(&c, EXAMPLE_ITEM);
        s.per_batch = 1, s.positives = 1, s.negatives = 9;
        s.shuffle = i % 2, s.held_out = i / 2 % 2 ? 1u << 30 : 0, s.distinct = i / 4;
        snprintf(name, sizeof name, "batches of one place, options %d", i);
        compare_batches_of(1, cpu, gpu, &s, name);
        corpus_free(&c);
    }
}

/* Makes batches so large that their sizes are counted instead of bounded, in stages with no memory for them, too little, or more
 * than enough. */
static void count_batches(struct example_source *s, int capacity) {
    s->batch = EXAMPLE_MOST_PADDED;
    if (capacity == 1) s->capacity = (struct example_sizes){50, 100, 300, 600};
    if (capacity == 2) s->capacity = (struct example_sizes){100000, 100000, 1000000, 1000000};
}

void test_batches(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 2);
    uint64_t vocabularies[] = {2, 3, 40, 1000, 65536};
    compare_items(cpu, gpu);
    compare_own_places(cpu, gpu);
    compare_triples(cpu, gpu);
    for (int v = 0; v < 5; v++) {
        struct corpus c;
        corpus_make(&c, vocabularies[v], 300, 40);
        uint32_t *known = frozen_of(c.rows, 2);
        for (int mode = 0; mode < 3; mode++)
            for (int law = 0; law < 3; law++)
                for (int bits = v; bits < 64;
                     bits += vocabularies[v] < 40 ? 13 : 3) { /* fewer batches of tiny vocabularies, since they are slow */
                    struct example_source s = source_of(&c, (enum example_mode)mode);
                    char name[160];
                    s.noise = (enum noise_distribution)law;
                    s.per_pair = bits & 1;
                    s.exclude = bits >> 1 & 1;
                    s.distinct = bits >> 2 & 1;
                    s.shuffle = bits >> 3 & 1;
                    if (bits >> 4 & 1) s.shuffle_items = 1, s.targets_all = 1, s.keep = c.keep;
                    if (bits >> 5 & 1) s.shrink = 0, s.replacement = 1, s.short_repeat = 1, s.held_out = 1u << 30;
                    if (s.targets_all && mode == EXAMPLE_LIST && bits % 2) s.known = known;
                    s.pool = (struct example_pool){.on = bits % 5 < 2, .own = bits % 4 > 1 ? 0.5f : 0, .whole = bits % 5};
                    s.pooled = (uint32_t)(bits / 5 % 3) * 3;
                    s.negatives = bits % 3 == 0 ? 5 : bits % 3 == 1 ? 64 : 1;
                    s.positives = bits % 7 == 0 ? 0 : bits % 7 == 1 ? 1 : 4;
                    if (mode != EXAMPLE_WINDOW && (bits + v) % 3 == 0) source_weigh(&s, &c);
                    snprintf(name, sizeof name, "rows %llu mode %d law %d options %d", (unsigned long long)c.rows, mode,
                             law, bits);
                    compare_batches(cpu, gpu, &s, name);
                    if (mode == EXAMPLE_WINDOW) compare_shared(cpu, gpu, &s, &c, bits, name);
                    if (mode != EXAMPLE_WINDOW && !s.pool.on) continue;
                    count_batches(&s, bits / 3 % 3);
                    strcat(name, ", counted");
                    compare_batches(cpu, gpu, &s, name);
                    if (mode == EXAMPLE_WINDOW) compare_shared(cpu, gpu, &s, &c, bits + 1, name);
                }
        corpus_free(&c);
        free(known);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}

/* ---- on both sides of what decides how a batch is made ---- */

/* Distinct negatives are made unique group by group; a group may have more rows than slots, or fewer. */
static void compare_distinct(struct backend *cpu, struct backend *gpu) {
    static const uint32_t negatives[] = {127, 128, 129, 511, 512, 513, 1024, 1025};
    static const uint64_t rows[] = {600, 3000};
    for (int r = 0; r < 2; r++) {
        struct corpus c;
        corpus_make(&c, rows[r], 12, 9);
        for (size_t n = 0; n < sizeof negatives / sizeof *negatives; n++) {
            struct example_source s = source_of(&c, n % 2 ? EXAMPLE_LIST : EXAMPLE_WINDOW);
            char name[80];
            s.distinct = 1, s.negatives = negatives[n], s.noise = n % 3 ? NOISE_UNIFORM : NOISE_UNIGRAM;
            snprintf(name, sizeof name, "%u distinct negatives of %llu rows", s.negatives, (unsigned long long)c.rows);
            compare_batches(cpu, gpu, &s, name);
        }
        corpus_free(&c);
    }
}

/* Tries the largest batch of windows whose size is bounded, and one with one example more. */
static void compare_padded(struct backend *cpu, struct backend *gpu) {
    struct corpus c;
    corpus_make(&c, 1000, 300, 40);
    for (int i = 0; i < 6; i++) {
        struct example_source s = source_of(&c, EXAMPLE_WINDOW);
        struct example_sizes most;
        char name[80];
        s.window = 5, s.negatives = 3, s.per_pair = i % 2;
        s.batch = EXAMPLE_MOST_PADDED / (2 * 5 * (1 + 3)) + (uint64_t)(i / 2) - 1;
        snprintf(name, sizeof name, "windows in batches of %llu", (unsigned long long)s.batch);
        CHECK(example_bound(&s, 700, &most) == (i / 2 < 2), "%s: bounded or not", name);
        compare_batches(cpu, gpu, &s, name);
    }
    corpus_free(&c);
}

/* Words are looked up once for a batch and for KEPT_BESIDE (128) positions on each side of it. Here so few words are kept that
 * windows reach to that limit and beyond; some sentences end before it, some after it. */
static void compare_sparse(struct backend *cpu, struct backend *gpu) {
    static const double kept[] = {0.005, 0.02, 0.04, 0.1};
    for (int i = 0; i < 48; i++) {
        struct corpus c;
        char name[120];
        corpus_make(&c, 500, 12, i % 3 == 0 ? 130 : i % 3 == 1 ? 700 : 4000);
        for (uint64_t row = 0; row < c.rows; row++) c.keep[row] = (uint32_t)(kept[i % 4] * 4294967296.0);
        struct example_source s = source_of(&c, EXAMPLE_WINDOW);
        s.keep = c.keep, s.window = i / 4 % 3 == 0 ? 1 : i / 4 % 3 == 1 ? 5 : 32;
        s.shrink = i / 2 % 2, s.per_pair = i / 3 % 2, s.shuffle = i % 7 == 0, s.shuffle_items = i % 5 == 0;
        s.held_out = i % 11 == 0 ? 1u << 30 : 0, s.negatives = 2;
        snprintf(name, sizeof name, "windows of %u, %g of words kept, %llu positions", s.window, kept[i % 4],
                 (unsigned long long)c.tokens);
        compare_batches(cpu, gpu, &s, name);
        count_batches(&s, i % 3);
        strcat(name, ", counted");
        compare_batches(cpu, gpu, &s, name);
        compare_shared(cpu, gpu, &s, &c, i, name);
        corpus_free(&c);
    }
}

/* Tries the largest allowed number of negatives of an example, and one more. */
static void compare_most_negatives(struct backend *cpu, struct backend *gpu) {
    static uint32_t ids[] = {5, 6, 7, 8};
    static uint64_t starts[] = {0, 4};
    struct batch_request request = {0, 0, 1, 0};
    struct example_source s = {.ids = ids, .starts = starts, .tokens = 4, .sentences = 1, .rows = 100000, .seed = 3};
    s.mode = EXAMPLE_LIST, s.positives = 2, s.per_pair = 1, s.noise = NOISE_UNIFORM;
    s.negatives = EXAMPLE_MOST_NEGATIVES / 2;
    compare_batches(cpu, gpu, &s, "the most negatives");
    s.negatives++;
    if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
    CHECK(backend_cpu.make_batch(cpu, 0, &request) == -1 && *report_sentence(), "an example with too many negatives");
    report_clear();
    CHECK(backend_cuda.make_batch(gpu, 0, &request) == -1 && *report_sentence(), "an example with too many negatives");
    report_clear();
}

void test_batch_bounds(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 2);
    compare_distinct(cpu, gpu);
    compare_padded(cpu, gpu);
    compare_sparse(cpu, gpu);
    compare_most_negatives(cpu, gpu);
    compare_walks(cpu, gpu);
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}
