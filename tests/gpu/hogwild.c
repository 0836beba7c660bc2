/* Compares lock-free training with the exact step. At a rate so small that no row moves far, a pass must move each row by the
 * rate times the batch's summed gradient, in any order of updates, unless an update is lost or counted twice. */
#include "common.h"

#include "kernels/hogwild.h"

struct moved {
    double apart, size; /* lengths of (lock-free - exact) and of the exact movement, over all rows of a side */
    double along;       /* lock-free movement in the direction of the exact movement, as a share of it; 1: just as far */
};

static struct moved moves_of(const float *before, const float *exact, const float *loose, uint64_t count) {
    struct moved m = {0, 0, 0};
    for (uint64_t i = 0; i < count; i++) {
        double want = (double)exact[i] - (double)before[i], got = (double)loose[i] - (double)before[i];
        m.apart += (got - want) * (got - want);
        m.size += want * want;
        m.along += got * want;
    }
    return (struct moved){sqrt(m.apart), sqrt(m.size), m.along / m.size};
}

/* 1: lock-free training has bfloat16 tables. First weights are numbers that bfloat16 can represent, so both begin alike. */
static int halves;

/* Makes weights small, so that logits stay near zero and gradients do not change while rows move. */
static void shrink(char *const records[2], uint64_t count) {
    for (int side = 0; side < 2; side++)
        for (uint64_t i = 0; i < count; i++) {
            float *weight = (float *)records[side] + i;
            *weight *= 0.1f;
            if (halves) *weight = bfloat16_value(bfloat16_nearest(*weight));
        }
}

/* Packs weights into records of another precision without state; weights_of() does the reverse. */
static char *packed_of(const struct record_layout *layout, const float *weights, uint64_t rows) {
    char *records = need(rows * layout->packed);
    for (uint64_t i = 0; i < rows * layout->dim; i++)
        set_value(layout, records + i / layout->dim * layout->packed, 0, (uint32_t)(i % layout->dim), weights[i]);
    return records;
}
static float *weights_of(const struct record_layout *layout, const char *records, uint64_t rows) {
    float *weights = need(rows * layout->dim * sizeof *weights);
    for (uint64_t i = 0; i < rows * layout->dim; i++)
        weights[i] = (float)value_of(layout, records + i / layout->dim * layout->packed, 0, (uint32_t)(i % layout->dim));
    return weights;
}

/* Checks the number of bytes over the link. A target row is read once and added to once for each of its places; twice if the
 * row is so wide that its negatives need two turns; once for two pooled windows that are trained together. No upper bound is
 * checked if pooled rows are read again: bfloat16 rows before they move, and words of several rows in each turn of contexts. */
static int plausible_link(const struct placing *placing, const struct hogwild_result *result, uint32_t dim,
                          uint64_t places, const struct example_source *s) {
    uint64_t row = halves ? (dim + 7) / 8 * 16 : (dim + 3) / 4 * 16, once = 2 * places * row, least = s->pool.on ? once / 2 : once;
    if (placing[0].weights == PLACE_GPU) return result->link_bytes == 0;
    if (halves || s->subwords.starts) return result->link_bytes >= least;
    if (placing[1].weights == PLACE_GPU) return result->link_bytes >= least && result->link_bytes <= 2 * once;
    return result->link_bytes > 0;
}

/* A backend and its functions. */
struct side {
    const struct backend_ops *ops;
    struct backend *backend;
};

/* Trains one pass over all positions from the same first rows, by exact steps on `exactly`, and lock-free on the GPU; then
 * compares the rows. */
static void compare_pass(const struct side *exactly, struct backend *gpu, const struct example_source *s, uint32_t dim,
                         const struct placing *placing, const char *shape) {
    const struct backend_ops *ops = exactly->ops;
    char name[160];
    struct rule_options rule = options_of(RULE_SGD);
    struct rule_options loose_rule = rule;
    if (halves) loose_rule.precision = PRECISION_BFLOAT16;
    struct record_layout layout = layout_of(&rule, dim), loose_layout = layout_of(&loose_rule, dim);
    char *records[2] = {first_records(&rule, &layout, s->rows), first_records(&rule, &layout, s->rows)};
    shrink(records, s->rows * dim);
    char *after[2] = {need(s->rows * layout.packed), need(s->rows * layout.packed)};
    char *loose_records[2] = {packed_of(&loose_layout, (float *)records[0], s->rows),
                              packed_of(&loose_layout, (float *)records[1], s->rows)};
    struct tables exact = {0}, loose = {0};
    struct batch_request all = {0, 0, example_count(s), 0};
    struct step_request step = {.rule = &rule, .lr = 1e-3};
    struct hogwild_result result = {0};
    struct step_result done = {0};
    struct batch_view view = {0};
    snprintf(name, sizeof name, "%s, %s/%s", shape, placing[0].name, placing[1].name);
    int ok = !ops->source(exactly->backend, s) && !backend_cuda.source(gpu, s) &&
             !tables_open(&exact, ops, exactly->backend, &rule, dim, s->rows, PLACES[0]) &&
             !tables_open(&loose, &backend_cuda, gpu, &loose_rule, dim, s->rows, placing) &&
             !tables_fill(&exact, (const char *const *)records) && !tables_fill(&loose, (const char *const *)loose_records) &&
             !ops->make_batch(exactly->backend, 0, &all) && !one_step(&exact, 0, &step) &&
             !ops->result(exactly->backend, 0, &done) && !ops->batch_view(exactly->backend, 0, &view);
    struct hogwild_request request = {.target = loose.side[0],
                                      .context = loose.side[1],
                                      .rule = &rule,
                                      .count = example_count(s),
                                      .lr_first = 1e-3,
                                      .lr_last = 1e-3};
    ok = ok && !backend_cuda.hogwild(gpu, &request, &result) && !backend_cuda.drain(gpu);
    CHECK(ok, "%s, dim %u", name, dim);
    CHECK(result.words == done.words && result.pairs == done.pairs && (s->walks.length || done.words == s->tokens),
          "%s, dim %u: %llu words and %llu pairs, wanted %llu and %llu", name, dim, (unsigned long long)result.words,
          (unsigned long long)result.pairs, (unsigned long long)done.words, (unsigned long long)done.pairs);
    uint64_t places = ok ? view.target_starts[view.blocks] : 0;
    CHECK(plausible_link(placing, &result, dim, places, s), "%s, dim %u: %llu bytes over the link for %llu targets",
          name, dim, (unsigned long long)result.link_bytes, (unsigned long long)places);
    for (int side = 0; side < 2 && ok; side++) {
        ok = !ops->table_read(exactly->backend, exact.side[side], 0, s->rows, after[0]) &&
             !backend_cuda.table_read(gpu, loose.side[side], 0, s->rows, after[1]);
        float *got = weights_of(&loose_layout, after[1], s->rows);
        struct moved m = moves_of((float *)records[side], (float *)after[0], got, s->rows * dim);
        /* Rounding changes single values of bfloat16 at random; the mean movement is right. Shared rows move seldom, so they
         * scatter more. */
        double scatter = (s->subwords.starts ? 30 : 20) / sqrt((double)(s->rows * dim));
        int near = halves ? fabs(m.along - 1) <= 0.01 + scatter : m.apart <= 0.02 * m.size;
        CHECK(ok && m.size > 0 && near, "%s, dim %u: %s rows moved by %.4g, %.4g of it otherwise than exactly, %.4g along it", name,
              dim, side ? "context" : "target", m.size, m.apart, m.along);
        free(got);
    }
    tables_close(&exact);
    tables_close(&loose);
    for (int i = 0; i < 2; i++) {
        free(records[i]);
        free(after[i]);
        free(loose_records[i]);
    }
}

/* How a window's words are trained: each word has its own negatives, all words share them, or only the words' mean or weighted
 * sum has negatives. */
static const struct {
    const char *name;
    int per_pair;
    struct example_pool pool;
    int shared; /* 0: each word has one row; 1: the word in the middle has several; 2: the words around it have several */
} WAYS[] = {{"negatives by example", 0, {0}, 0},
            {"negatives by pair", 1, {0}, 0},
            {"the mean", 0, {.on = 1}, 0},
            {"the mean's whole gradient", 0, {.on = 1, .whole = 1}, 0},
            {"the first word and the others' mean", 0, {.on = 1, .own = 0.3f}, 0},
            {"words of several rows", 0, {.on = 1, .whole = 1}, 1},
            {"words of several rows, negatives by pair", 1, {.on = 1}, 1},
            {"windows of words of several rows", 0, {.on = 1, .whole = 1}, 2}};

static void test_passes(struct backend *gpu) {
    static const uint32_t dims[] = {1, 31, 100, 128, 300, 512, 513, 2048, 4096};
    static const uint64_t longest[] = {
        2, 7, 60, 2000}; /* lengths of sentences: shorter and longer than a window, and than the positions that a worker takes at
                          * once */
    const struct side exact[] = {{&backend_cuda, gpu}, {&backend_cpu, open_or_stop(&backend_cpu, 1)}};
    for (int l = 0; l < 4; l++) {
        struct corpus c;
        corpus_make(&c, 20000, 6000 / longest[l], longest[l]);
        for (uint64_t i = 0; i < c.tokens; i++) c.ids[i] = (uint32_t)(random_bits() % c.rows); /* no word is frequent */
        for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++) {
            struct example_source s = source_of(&c, EXAMPLE_WINDOW);
            char name[96];
            s.per_pair = WAYS[w].per_pair;
            s.pool = WAYS[w].pool;
            s.noise = NOISE_UNIFORM;
            if (l % 2) s.keep = c.keep;
            if (WAYS[w].shared) source_shares(&s, &c, WAYS[w].shared == 2);
            snprintf(name, sizeof name, "sentences to %llu words, %s", (unsigned long long)longest[l], WAYS[w].name);
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
                if (dims[d] > 1000 && l != 2) continue; /* these would take most of the time, in the same kernel */
                /* Places in turn: on the GPU, pinned, hot and cold rows. */
                compare_pass(&exact[s.pool.on], gpu, &s, dims[d], PLACES[(d + (size_t)l + w) % 3], name);
            }
        }
        corpus_free(&c);
    }
    backend_cpu.close(exact[1].backend);
}

/* ---- one warp compared with one thread: every key has the same effect on both ---- */

struct trial {
    struct example_source source;
    struct rule_options rule;
    struct record_layout layout;
    const struct placing *placing;
    struct hogwild_request request;
    struct hogwild_result result;
    char *records[2]; /* first records of both sides; after training the trained ones */
    char name[240];
};

static uint64_t below(uint64_t n) {
    return (random_bits() >> 11) % n;
}

static void choose_examples(struct trial *t, struct corpus *c) {
    struct example_source *s = &t->source;
    *s = source_of(c, (enum example_mode)below(3));
    s->seed = (uint32_t)random_bits();
    s->window = 1 + (uint32_t)below(below(4) || c->rows < 100 ? 8 : 40); /* in a wide window few words would meet themselves */
    s->shrink = (int)below(2), s->shuffle = (int)below(2), s->shuffle_items = (int)below(2);
    s->positives = (uint32_t)below(6);
    s->targets_all = (int)below(2), s->replacement = s->positives && below(2), s->short_repeat = (int)below(2);
    s->negatives = (uint32_t)below(14);
    s->per_pair = (int)below(2), s->exclude = (int)below(2);
    s->distinct = below(2) && c->rows > 100;
    s->noise = (enum noise_distribution)below(3);
    s->held_out = below(3) ? 0 : 1u << 30;
    if (s->mode == EXAMPLE_WINDOW && below(2)) s->keep = c->keep;
    if (s->mode == EXAMPLE_WINDOW && below(3) == 0) source_walks(s, c, 2 + (uint32_t)below(60), (unsigned)below(32));
    if (s->mode != EXAMPLE_WINDOW && s->per_pair) s->positives = 1 + (uint32_t)below(4);
    if (s->mode == EXAMPLE_WINDOW && below(3) == 0) {
        source_shares(s, c, (int)below(2));
        s->pool.whole = (int)below(2);
        return;
    }
    if (s->mode == EXAMPLE_WINDOW ? below(2) : below(3)) return;
    if (s->mode == EXAMPLE_WINDOW) s->per_pair = 0;
    s->pooled = (uint32_t)below(4);
    s->pool = (struct example_pool){.on = 1, .own = below(3) ? 0 : 0.3f, .whole = (int)below(2)};
    s->pool.sum = !s->pool.whole && s->seed % 2;
}

static void choose_rule(struct trial *t) {
    t->rule = options_of(below(2) ? RULE_SGD : RULE_ADAGRAD);
    if (below(4) == 0) t->rule.weight_decay = 0.02;
    if (t->rule.rule == RULE_SGD) return;
    t->rule.initial_accumulator = below(2) ? 0.1 : 0.01; /* with 0 the first moves would be so long that rounding errors grow */
    t->rule.lr_decay = below(3) ? 0.05 : 0;
    t->rule.count_rows = below(2) && rule_counts(&t->rule);
}

static void name_trial(struct trial *t) {
    const struct example_source *s = &t->source;
    snprintf(t->name, sizeof t->name,
             "mode %d%s%s%s, window %u%s%s%s, positives %u, negatives %u%s%s%s, shuffle %d %d, rows %llu, dim %u, rule %d, "
             "decay %g, "
             "lr_decay %g by %s, %s/%s",
             (int)s->mode, s->walks.length ? " over walks" : "",
             !s->subwords.starts ? "" : s->subwords.by_window ? ", windows of shared rows" : ", words of shared rows",
             s->paths.starts ? ", paths" : "", s->window,
             s->pool.on ? " pooled" : "", s->pool.own > 0 ? " by weight" : "", s->pool.whole ? " whole" : "", s->positives, s->negatives,
             s->per_pair ? " a pair" : "", s->exclude ? " excluded" : "", s->distinct ? " distinct" : "", s->shuffle,
             s->shuffle_items, (unsigned long long)s->rows, t->layout.dim, t->rule.rule, t->rule.weight_decay,
             t->rule.lr_decay, t->rule.count_rows ? "row" : "example", t->placing[0].name, t->placing[1].name);
}

/* Updates may be computed in any order, from rows that earlier updates have moved. Small rates keep that effect small. */
static void choose_trial(struct trial *t, struct corpus *c) {
    static const uint32_t dims[] = {1, 4, 31, 100, 128, 129, 256, 257, 512, 513, 1000};
    choose_examples(t, c);
    if (t->source.mode == EXAMPLE_WINDOW && below(3) == 0) source_paths(&t->source, c);
    choose_rule(t);
    t->layout = layout_of(&t->rule, dims[below(sizeof dims / sizeof *dims)]);
    t->placing = PLACES[below(c->rows < 18 ? 2 : 4)]; /* no table in a file; two of these placings have 17 hot rows */
    int small = hogwild_is_linear(&t->rule);
    uint64_t examples = example_count(&t->source), first = below(examples);
    if (examples - first > 700) examples = first + 700;
    t->request = (struct hogwild_request){.rule = &t->rule,
                                          .epoch = (uint32_t)below(3),
                                          .first = first,
                                          .count = examples - first,
                                          .lr_first = small ? 1e-3 : 0.02,
                                          .lr_last = small ? 5e-4 : 0.005,
                                          .global_step = below(100),
                                          .workers = 1};
    name_trial(t);
}

/* Makes a trial of counts of pairs: a sentence is a target and its contexts, each with a count. */
static void choose_counts(struct trial *t, struct corpus *c, float *counts) {
    choose_trial(t, c);
    uint32_t seed = t->source.seed;
    t->source = source_of(c, EXAMPLE_ADJACENCY);
    t->source.seed = seed, t->source.shuffle = (int)below(2), t->source.held_out = below(3) ? 0 : 1u << 30;
    t->source.positives = t->source.negatives = 0;
    t->source.weights = counts, t->source.weight_scale = 1;
    for (uint64_t i = 0; i < c->tokens; i++) counts[i] = 0.1f + (float)below(1000) / 8;
    t->rule = options_of(RULE_ADAGRAD);
    t->rule.initial_accumulator = 20, t->rule.eps = 1e-10;
    t->layout = layout_of(&t->rule, t->layout.dim > HOGWILD_FIT_COLUMNS ? HOGWILD_FIT_COLUMNS - 1 : t->layout.dim);
    uint64_t examples = example_count(&t->source);
    t->request.first = below(examples), t->request.count = examples - t->request.first;
    t->request.lr_first = 0.2, t->request.lr_last = 0.1;
    t->request.loss = (struct loss_options){.kind = LOSS_GLOVE, .weighted = 1, .x_max = 10, .x_power = 0.75f};
    name_trial(t);
}

/* Trains from the trial's records, and replaces them by the trained ones. */
static int run_trial(struct trial *t, const struct backend_ops *ops, struct backend *backend) {
    struct tables tables = {0};
    int ok = !ops->source(backend, &t->source) &&
             !tables_open(&tables, ops, backend, &t->rule, t->layout.dim, t->source.rows, t->placing) &&
             !tables_fill(&tables, (const char *const *)t->records);
    t->request.target = tables.side[0], t->request.context = tables.side[1];
    ok = ok && !ops->hogwild(backend, &t->request, &t->result) && !ops->drain(backend);
    for (int side = 0; side < 2 && ok; side++)
        ok = !ops->table_read(backend, tables.side[side], 0, t->source.rows, t->records[side]);
    tables_close(&tables);
    return ok;
}

static struct trial copy_trial(const struct trial *t) {
    struct trial copy = *t;
    for (int side = 0; side < 2; side++) {
        copy.records[side] = need(t->source.rows * t->layout.packed);
        memcpy(copy.records[side], t->records[side], t->source.rows * t->layout.packed);
    }
    return copy;
}

static void free_records(struct trial *t) {
    free(t->records[0]);
    free(t->records[1]);
}

/* Returns the distance between two trials' rows, as a share of the movement of `want`. *counters: number of rows whose update
 * counts differ. */
static double distance(const struct trial *first, const struct trial *want, const struct trial *got,
                       uint64_t *counters) {
    const struct record_layout *layout = &first->layout;
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim;
    double apart = 0, size = 0;
    for (int side = 0; side < 2; side++)
        for (uint64_t row = 0; row < first->source.rows; row++) {
            uint64_t at = row * layout->packed;
            struct moved m = moves_of((float *)(first->records[side] + at), (float *)(want->records[side] + at),
                                      (float *)(got->records[side] + at), floats);
            apart += m.apart * m.apart, size += m.size * m.size;
            if (layout->counted)
                *counters +=
                    memcmp(want->records[side] + at + floats * 4, got->records[side] + at + floats * 4, 4) != 0;
        }
    return size > 0 ? sqrt(apart / size) : apart > 0;
}

static void check_counts(const struct trial *want, const struct trial *got) {
    const struct hogwild_result *a = &want->result, *b = &got->result;
    CHECK(a->words == b->words && a->examples == b->examples && a->pairs == b->pairs &&
              a->sampled_examples == b->sampled_examples && a->sampled_pairs == b->sampled_pairs &&
              a->sampled_terms == b->sampled_terms,
          "%s: %llu examples, %llu pairs, of %llu terms the loss; wanted %llu, %llu, %llu", want->name,
          (unsigned long long)b->examples, (unsigned long long)b->pairs, (unsigned long long)b->sampled_terms,
          (unsigned long long)a->examples, (unsigned long long)a->pairs, (unsigned long long)a->sampled_terms);
    CHECK(fabs(a->loss - b->loss) <= 5e-3 * a->loss, "%s: loss %g, wanted %g", want->name, b->loss, a->loss);
}

static void compare_trials(const struct trial *first, const struct trial *want, const struct trial *got,
                           double allowed) {
    uint64_t counters = 0;
    check_counts(want, got);
    double apart = distance(first, want, got, &counters);
    CHECK(apart <= allowed && !counters, "%s: %.3g of the movement apart, %llu counters of updates differ", want->name,
          apart, (unsigned long long)counters);
}

/* Returns a trial with its records rounded to bfloat16; with state_halves also the state. */
static struct trial rounded_trial(const struct trial *of, int state_halves) {
    struct trial rounded = *of;
    rounded.rule.precision = PRECISION_BFLOAT16;
    rounded.rule.state_precision = state_halves ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    rounded.layout = layout_of(&rounded.rule, of->layout.dim);
    for (int side = 0; side < 2; side++) {
        rounded.records[side] = need(of->source.rows * rounded.layout.packed);
        for (uint64_t row = 0; row < of->source.rows; row++)
            for (uint32_t part = 0; part <= of->layout.slots; part++)
                for (uint32_t i = 0; i < of->layout.dim; i++)
                    set_value(&rounded.layout, rounded.records[side] + row * rounded.layout.packed, part, i,
                              (float)value_of(&of->layout, of->records[side] + row * of->layout.packed, part, i));
    }
    return rounded;
}

/* Averaged over all values, rows of bfloat16 must move as far as `want`. Single values are not compared: where a movement is small,
 * random rounding may exceed it several times. */
static void check_rounded_trial(const struct trial *first, const struct trial *want, struct backend *gpu, int state_halves) {
    struct trial got = rounded_trial(first, state_halves), before = copy_trial(&got);
    double along = 0, size = 0, moved = 0;
    got.request.rule = &got.rule;
    int ok = run_trial(&got, &backend_cuda, gpu);
    CHECK(ok, "%s, of bfloat16", first->name);
    for (int side = 0; side < 2 && ok; side++)
        for (uint64_t i = 0; i < first->source.rows * first->layout.dim; i++) {
            uint64_t row = i / first->layout.dim, at = row * first->layout.packed, rounded_at = row * got.layout.packed;
            uint32_t column = (uint32_t)(i % first->layout.dim);
            double wanted = value_of(&first->layout, want->records[side] + at, 0, column) -
                            value_of(&first->layout, first->records[side] + at, 0, column);
            along += wanted * (value_of(&got.layout, got.records[side] + rounded_at, 0, column) -
                               value_of(&got.layout, before.records[side] + rounded_at, 0, column));
            size += wanted * wanted, moved += wanted != 0;
        }
    CHECK(!ok || fabs(along - size) <= (0.05 + 40 / sqrt(moved + 1)) * size, "%s, of bfloat16: went %.3g of the way", first->name,
          along / size);
    free_records(&got);
    free_records(&before);
}

void test_hogwild_worker(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    static const uint64_t vocabularies[] = {8, 20, 300, 3000};
    for (int v = 0; v < 4; v++) {
        struct corpus c;
        corpus_make(&c, vocabularies[v], 200, v % 2 ? 40 : 6);
        float *counts = need(c.tokens * sizeof *counts);
        for (int i = 0; i < 72; i++) {
            struct trial first;
            int fits = i >= 60; /* GloVe, which a GPU trains lock-free with rows of float32 alone */
            if (fits) choose_counts(&first, &c, counts);
            else choose_trial(&first, &c);
            for (int side = 0; side < 2; side++)
                first.records[side] = first_records(&first.rule, &first.layout, first.source.rows);
            struct trial want = copy_trial(&first), got = copy_trial(&first);
            int ok = run_trial(&want, &backend_cpu, cpu) && run_trial(&got, &backend_cuda, gpu);
            CHECK(ok, "%s", first.name);
            if (ok) compare_trials(&first, &want, &got, fits ? 2e-3 : hogwild_is_linear(&first.rule) ? 1e-2 : 3e-4);
            if (ok && !fits) check_rounded_trial(&first, &want, gpu, i % 2);
            free_records(&first);
            free_records(&want);
            free_records(&got);
        }
        free(counts);
        corpus_free(&c);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}

/* ---- all warps compared with one: adagrad on rows that seldom occur twice ---- */

static void test_races(struct backend *gpu) {
    struct corpus c;
    corpus_make(&c, 20000, 100, 60);
    for (uint64_t i = 0; i < c.tokens; i++) c.ids[i] = (uint32_t)(random_bits() % c.rows);
    for (int i = 0; i < 12; i++) {
        struct trial first;
        /* Walks come back to the same nodes, and their shared rows are met too often for a race to change little. */
        do choose_trial(&first, &c);
        while (first.source.walks.length && first.source.subwords.starts);
        first.source.noise = NOISE_UNIFORM;
        first.source.paths = (struct example_paths){.starts = NULL}; /* no paths: all warps would update the tree's root at once */
        first.source.window = 3, first.source.positives = 3;
        first.rule = options_of(RULE_ADAGRAD);
        first.rule.initial_accumulator = 0.1;
        first.rule.lr_decay = i % 2 ? 1e-3 : 0;
        first.rule.count_rows = i % 2;
        first.layout = layout_of(&first.rule, first.layout.dim);
        first.request.rule = &first.rule;
        first.request.lr_first = first.request.lr_last = 1e-3;
        name_trial(&first);
        for (int side = 0; side < 2; side++) first.records[side] = first_records(&first.rule, &first.layout, first.source.rows);
        struct trial want = copy_trial(&first), got = copy_trial(&first);
        got.request.workers = 0;
        int ok = run_trial(&want, &backend_cuda, gpu) && run_trial(&got, &backend_cuda, gpu);
        CHECK(ok, "%s", first.name);
        if (ok) compare_trials(&first, &want, &got, 0.02);
        free_records(&first);
        free_records(&want);
        free_records(&got);
    }
    corpus_free(&c);
}

void test_hogwild(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 1);
    test_passes(gpu);
    halves = 1;
    test_passes(gpu);
    halves = 0;
    test_races(gpu);
    backend_cuda.close(gpu);
}
