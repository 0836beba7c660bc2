/* test_gpu: the CUDA backend against the CPU backend and against itself, through struct backend_ops alone.
 *
 *   test_gpu [NAME]      all tests, or those whose name begins with NAME
 *   test_gpu --speed     pairs a second of the two large shapes, by place
 *
 * Prints a line a failed case and ends with "N passed, N failed"; 2 where there is no GPU.
 */
#include "../../kernels/backend.h"
#include "../../src/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int passed, failed;
static char directory[] = "/tmp/test_gpu.XXXXXX";

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (condition) passed++;                                                                                       \
        else {                                                                                                         \
            failed++;                                                                                                  \
            printf("FAILED %s:%d: ", __func__, __LINE__);                                                              \
            printf(__VA_ARGS__);                                                                                       \
            printf("%s%s\n", *report_sentence() ? " | " : "", report_sentence());                                      \
            report_clear();                                                                                            \
        }                                                                                                              \
    } while (0)

static void *need(uint64_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) {
        printf("no memory for the tests\n");
        exit(1);
    }
    return memory;
}

static uint64_t random_state = 88172645463325252ull;
static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
static float random_float(void) {
    return (float)(random_bits() >> 40) / 16777216.0f - 0.5f;
}

/* ---- a corpus ---- */

struct corpus {
    uint32_t *ids, *keep;
    uint64_t *starts, tokens, sentences, rows;
    struct alias *alias;
};

/* Vose's table of weights 1 / (row + 1). */
static void make_alias(struct alias *table, uint64_t rows) {
    double *share = need(rows * sizeof *share), sum = 0;
    uint32_t *small = need(rows * 4), *large = need(rows * 4);
    uint64_t smalls = 0, larges = 0;
    for (uint64_t i = 0; i < rows; i++) sum += 1.0 / (double)(i + 1);
    for (uint64_t i = 0; i < rows; i++) {
        share[i] = (double)rows / (double)(i + 1) / sum;
        if (share[i] < 1) small[smalls++] = (uint32_t)i;
        else large[larges++] = (uint32_t)i;
    }
    while (smalls && larges) {
        uint32_t a = small[--smalls], b = large[larges - 1];
        table[a] = (struct alias){(uint32_t)(share[a] * 4294967295.0), b};
        share[b] -= 1 - share[a];
        if (share[b] < 1) small[smalls++] = b, larges--;
    }
    for (; smalls; smalls--) table[small[smalls - 1]] = (struct alias){UINT32_MAX, small[smalls - 1]};
    for (; larges; larges--) table[large[larges - 1]] = (struct alias){UINT32_MAX, large[larges - 1]};
    free(share);
    free(small);
    free(large);
}

static void corpus_make(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest) {
    c->rows = rows;
    c->sentences = sentences;
    c->starts = need((sentences + 1) * 8);
    c->ids = need(sentences * longest * 4);
    c->keep = need(rows * 4);
    c->alias = need(rows * sizeof *c->alias);
    c->tokens = 0;
    for (uint64_t i = 0; i < sentences; i++) {
        uint64_t length = 1 + random_bits() % longest;
        c->starts[i] = c->tokens;
        for (uint64_t j = 0; j < length; j++) { /* squared: low rows are frequent */
            double u = (double)(random_bits() >> 11) / 9007199254740992.0;
            c->ids[c->tokens++] = (uint32_t)(u * u * u * (double)rows);
        }
    }
    c->starts[sentences] = c->tokens;
    for (uint64_t i = 0; i < rows; i++) c->keep[i] = i > rows / 2 ? UINT32_MAX : (uint32_t)(random_bits() >> 32) | 1u << 30;
    make_alias(c->alias, rows);
}

static void corpus_free(struct corpus *c) {
    free(c->ids);
    free(c->starts);
    free(c->keep);
    free(c->alias);
}

static struct example_source source_of(const struct corpus *c, enum example_mode mode) {
    return (struct example_source){
        .ids = c->ids, .starts = c->starts, .tokens = c->tokens, .sentences = c->sentences, .rows = c->rows,
        .mode = mode, .window = 5, .shrink = 1, .positives = 4, .negatives = 5, .exclude = 1, .law = NEGATIVE_UNIGRAM,
        .alias = c->alias, .log2_rows = log2((double)c->rows), .seed = 7,
    };
}

/* ---- backends ---- */

static struct backend *open_or_stop(const struct backend_ops *ops, unsigned depth) {
    struct backend *backend = NULL;
    struct backend_options options = {.threads = 2, .depth = depth, .gpu_budget = UINT64_MAX};
    if (ops->open(&backend, &options)) {
        printf("cannot open %s: %s\n", ops->name, report_sentence());
        exit(1);
    }
    return backend;
}

/* ---- batches, id by id ---- */

static int same_view(const struct batch_view *a, const struct batch_view *b, char *why, size_t room) {
    if (a->blocks != b->blocks) return snprintf(why, room, "%llu blocks, wanted %llu", (unsigned long long)b->blocks, (unsigned long long)a->blocks), 0;
    for (uint64_t i = 0; i < a->blocks; i++) {
        if (a->target_starts[i + 1] != b->target_starts[i + 1] || a->context_starts[i + 1] != b->context_starts[i + 1] ||
            a->positives[i] != b->positives[i])
            return snprintf(why, room, "block %llu has another shape: contexts to %llu, wanted %llu", (unsigned long long)i,
                            (unsigned long long)b->context_starts[i + 1], (unsigned long long)a->context_starts[i + 1]),
                   0;
        for (uint64_t j = a->target_starts[i]; j < a->target_starts[i + 1]; j++)
            if (a->target_ids[j] != b->target_ids[j]) return snprintf(why, room, "block %llu: target %u, wanted %u", (unsigned long long)i, b->target_ids[j], a->target_ids[j]), 0;
        for (uint64_t j = a->context_starts[i]; j < a->context_starts[i + 1]; j++)
            if (a->context_ids[j] != b->context_ids[j])
                return snprintf(why, room, "block %llu: context %llu is %u, wanted %u", (unsigned long long)i,
                                (unsigned long long)(j - a->context_starts[i]), b->context_ids[j], a->context_ids[j]),
                       0;
    }
    return 1;
}

static void compare_batches(struct backend *cpu, struct backend *gpu, const struct example_source *s, const char *name) {
    uint64_t examples = example_count(s), size = 700;
    char why[256] = "";
    if (backend_cpu.source(cpu, s) || backend_cuda.source(gpu, s)) {
        CHECK(0, "%s: source", name);
        return;
    }
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t first = 0; first < examples; first += size * 3) {
            struct batch_request request = {epoch, first, examples - first < size ? examples - first : size, s->held_out && first % 2};
            struct batch_view a, b;
            int ok = !backend_cpu.make_batch(cpu, 0, &request) && !backend_cpu.batch_view(cpu, 0, &a) &&
                     !backend_cuda.make_batch(gpu, 0, &request) && !backend_cuda.batch_view(gpu, 0, &b) &&
                     same_view(&a, &b, why, sizeof why);
            CHECK(ok, "%s, epoch %u, from %llu: %s", name, epoch, (unsigned long long)first, why);
            if (!ok) return;
        }
}

static void test_batches(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    uint64_t vocabularies[] = {2, 3, 40, 1000, 65536};
    for (int v = 0; v < 5; v++) {
        struct corpus c;
        corpus_make(&c, vocabularies[v], 300, 40);
        for (int mode = 0; mode < 3; mode++)
            for (int law = 0; law < 3; law++)
                for (int bits = v; bits < 64; bits += vocabularies[v] < 40 ? 13 : 3) { /* tiny vocabularies draw long: fewer */
                    struct example_source s = source_of(&c, (enum example_mode)mode);
                    char name[128];
                    s.law = (enum negative_law)law;
                    s.per_pair = bits & 1;
                    s.exclude = bits >> 1 & 1;
                    s.distinct = bits >> 2 & 1;
                    s.shuffle = bits >> 3 & 1;
                    if (bits >> 4 & 1) s.shuffle_items = 1, s.targets_all = 1, s.keep = c.keep;
                    if (bits >> 5 & 1) s.shrink = 0, s.replacement = 1, s.short_repeat = 1, s.held_out = 1u << 30;
                    s.negatives = bits % 3 == 0 ? 5 : bits % 3 == 1 ? 64 : 1;
                    s.positives = bits % 7 == 0 ? 0 : bits % 7 == 1 ? 1 : 4;
                    snprintf(name, sizeof name, "rows %llu mode %d law %d options %d", (unsigned long long)c.rows, mode, law, bits);
                    compare_batches(cpu, gpu, &s, name);
                }
        corpus_free(&c);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}

/* ---- tables ---- */

struct rule_case {
    const char *name;
    struct rule_options options;
};

/* A large eps: where a gradient nearly vanishes a small one would magnify how its sum was rounded. */
static struct rule_options options_of(int rule) {
    return (struct rule_options){
        .rule = rule, .eps = 1e-3, .rho = 0.9, .alpha = rule == RULE_ASGD ? 0.75 : 0.99, .beta1 = 0.9,
        .beta2 = 0.999, .lambd = 1e-4, .t0 = 2, .eta_minus = 0.5, .eta_plus = 1.2, .step_min = 1e-6, .step_max = 50, .lr = 0.05,
    };
}

/* Every rule plain, and those with options with them. */
static int rule_cases(struct rule_case cases[32]) {
    int n = 0;
#define PLAIN(text, enumerator) cases[n].name = #text, cases[n++].options = options_of(enumerator);
    RULES(PLAIN)
#undef PLAIN
    cases[n] = (struct rule_case){"sgd momentum nesterov decay", options_of(RULE_SGD)};
    cases[n].options.momentum = 0.9, cases[n].options.nesterov = 1, cases[n++].options.weight_decay = 0.01;
    cases[n] = (struct rule_case){"adagrad lr_decay counted", options_of(RULE_ADAGRAD)};
    cases[n].options.lr_decay = 0.1, cases[n].options.initial_accumulator = 0.1, cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"rmsprop centered", options_of(RULE_RMSPROP)};
    cases[n++].options.centered = 1;
    cases[n] = (struct rule_case){"rmsprop momentum", options_of(RULE_RMSPROP)};
    cases[n++].options.momentum = 0.9;
    cases[n] = (struct rule_case){"rmsprop centered momentum", options_of(RULE_RMSPROP)};
    cases[n].options.momentum = 0.9, cases[n++].options.centered = 1;
    cases[n] = (struct rule_case){"adam amsgrad counted", options_of(RULE_ADAM)};
    cases[n].options.amsgrad = 1, cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"adamw decay amsgrad", options_of(RULE_ADAMW)};
    cases[n].options.amsgrad = 1, cases[n++].options.weight_decay = 0.01;
    cases[n] = (struct rule_case){"adamax counted", options_of(RULE_ADAMAX)};
    cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"sparse_adam counted", options_of(RULE_SPARSE_ADAM)};
    cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"asgd counted", options_of(RULE_ASGD)};
    cases[n++].options.count_rows = 1;
    return n;
}

static struct record_layout layout_of(const struct rule_options *rule, uint32_t dim) {
    struct rule_slot slots[RULE_SLOTS];
    struct record_layout layout = {.dim = dim, .span = (dim + 3) / 4 * 4, .slots = (uint32_t)rule_slots(rule, slots)};
    layout.counted = rule->count_rows && rule_counts(rule);
    layout.packed = (uint64_t)(1 + layout.slots) * dim * 4 + layout.counted * 4;
    return layout;
}

struct placing {
    const char *name;
    enum place weights, state;
    uint64_t hot_rows;
};

struct tables {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *side[2];
    struct record_layout layout;
    uint64_t rows;
};

static int tables_open(struct tables *t, const struct backend_ops *ops, struct backend *backend, const struct rule_options *rule,
                       uint32_t dim, uint64_t rows, const struct placing placing[2]) {
    *t = (struct tables){.ops = ops, .backend = backend, .layout = layout_of(rule, dim), .rows = rows};
    for (int side = 0; side < 2; side++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", directory, side ? "context" : "target");
        struct table_spec spec = {.name = side ? "context" : "target", .rows = rows, .layout = t->layout, .weights = placing[side].weights,
                                  .state = placing[side].state, .file_path = path, .hot_rows = placing[side].hot_rows};
        if (ops->table_open(backend, &spec, &t->side[side])) return -1;
    }
    return 0;
}

static void tables_close(struct tables *t) {
    for (int side = 0; side < 2; side++)
        if (t->side[side]) t->ops->table_close(t->backend, t->side[side]);
}

/* First records, the same for all tables of a shape. */
static char *first_records(const struct rule_options *rule, const struct record_layout *layout, uint64_t rows) {
    struct rule_slot slots[RULE_SLOTS];
    char *records = need(rows * layout->packed);
    rule_slots(rule, slots);
    for (uint64_t row = 0; row < rows; row++) {
        float *at = (float *)(records + row * layout->packed);
        for (uint32_t i = 0; i < layout->dim; i++) at[i] = random_float() * 0.5f;
        for (uint32_t s = 0; s < layout->slots; s++)
            for (uint32_t i = 0; i < layout->dim; i++) at[(s + 1) * layout->dim + i] = slots[s].initial;
    }
    return records;
}

static int tables_fill(struct tables *t, const char *const records[2]) {
    for (int side = 0; side < 2; side++)
        if (t->ops->table_write(t->backend, t->side[side], 0, t->rows, records[side])) return -1;
    return 0;
}

static int one_step(struct tables *t, unsigned stage, const struct step_request *request) {
    struct step_request r = *request;
    r.target = t->side[0], r.context = t->side[1];
    return t->ops->gather(t->backend, stage, &r) || t->ops->step(t->backend, stage, &r) || t->ops->scatter(t->backend, stage, &r);
}

/* ---- steps, CPU against GPU ---- */

/* The share of values that differ by more than `tolerance` of the array's largest; *worst the largest difference so. */
static double share_apart(const float *a, const float *b, uint64_t count, uint64_t stride, uint64_t rows, double tolerance, double *worst) {
    double largest = 0, apart = 0;
    *worst = 0;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)a[row * stride + i]));
    if (largest == 0) largest = 1;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = 0; i < count; i++) {
            double d = fabs((double)a[row * stride + i] - (double)b[row * stride + i]) / largest;
            if (!(d <= tolerance)) apart++;
            if (!(d <= *worst)) *worst = d;
        }
    return apart / (double)(rows * count);
}

/* How far two roundings of the same sums may lie apart: of thousands of summands in the test of frequent rows. */
static double tolerance = 3e-5;

static void compare_tables(const struct tables *cpu, const struct tables *gpu, const struct rule_options *rule, const char *name) {
    const struct record_layout *layout = &cpu->layout;
    uint64_t stride = layout->packed / 4;
    for (int side = 0; side < 2; side++) {
        char *a = need(cpu->rows * layout->packed), *b = need(cpu->rows * layout->packed);
        if (cpu->ops->table_read(cpu->backend, cpu->side[side], 0, cpu->rows, a) ||
            gpu->ops->table_read(gpu->backend, gpu->side[side], 0, gpu->rows, b))
            CHECK(0, "%s: reading", name);
        for (uint32_t part = 0; part <= layout->slots; part++) {
            double worst, allowed = 1e-3, most = 5e-3; /* rules that divide by a gradient's size magnify what is left of its sum */
            if (rule->rule == RULE_RPROP) allowed = 0.02, most = INFINITY; /* a sum near zero may change its sign */
            double apart = share_apart((float *)a + part * layout->dim, (float *)b + part * layout->dim, layout->dim, stride, cpu->rows, tolerance, &worst);
            CHECK(apart <= allowed && worst <= most, "%s: %s part %u: %.3g of the values apart, by up to %.3g", name, side ? "context" : "target", part, apart, worst);
        }
        if (layout->counted)
            for (uint64_t row = 0; row < cpu->rows; row++) {
                uint32_t x, y;
                memcpy(&x, a + row * layout->packed + layout->packed - 4, 4);
                memcpy(&y, b + row * layout->packed + layout->packed - 4, 4);
                if (x != y) {
                    CHECK(0, "%s: row %llu has %u updates, wanted %u", name, (unsigned long long)row, y, x);
                    break;
                }
            }
        free(a);
        free(b);
    }
}

static void compare_steps(struct backend *cpu, struct backend *gpu, const struct rule_case *rule, uint32_t dim, uint64_t rows,
                          const struct placing placing[2], int steps, uint64_t batch, int mean, const char *batch_name) {
    static const struct placing plain[2] = {{"", PLACE_GPU, PLACE_GPU, 0}, {"", PLACE_GPU, PLACE_GPU, 0}};
    struct tables a, b;
    char name[256];
    struct record_layout layout = layout_of(&rule->options, dim);
    char *records[2] = {first_records(&rule->options, &layout, rows), first_records(&rule->options, &layout, rows)};
    snprintf(name, sizeof name, "%s, dim %u, %s/%s hot %llu, %s", rule->name, dim, placing[0].name, placing[1].name,
             (unsigned long long)placing[0].hot_rows, batch_name);
    if (tables_open(&a, &backend_cpu, cpu, &rule->options, dim, rows, plain) || tables_open(&b, &backend_cuda, gpu, &rule->options, dim, rows, placing) ||
        tables_fill(&a, (const char *const *)records) || tables_fill(&b, (const char *const *)records)) {
        CHECK(0, "%s: tables", name);
        goto out;
    }
    for (int i = 0; i < steps; i++) {
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {.rule = &rule->options, .lr = 0.05, .behind = (uint64_t)i, .mean = mean, .loss_only = i == 2};
        struct step_result x, y;
        struct batch_view view;
        int ok = !backend_cpu.make_batch(cpu, 0, &request) && !backend_cpu.batch_view(cpu, 0, &view);
        /* Half of them from plain arrays. */
        ok = ok && !(i % 2 ? backend_cuda.set_batch(gpu, 0, &view) : backend_cuda.make_batch(gpu, 0, &request));
        ok = ok && !one_step(&a, 0, &step) && !one_step(&b, 0, &step) && !backend_cpu.result(cpu, 0, &x) && !backend_cuda.result(gpu, 0, &y);
        CHECK(ok, "%s: step %d", name, i);
        if (!ok) goto out;
        CHECK(fabs(x.loss - y.loss) <= (rule->options.rule == RULE_RPROP ? 1e-3 : 1e-5) * fabs(x.loss) && x.terms == y.terms && x.pairs == y.pairs && x.examples == y.examples &&
                  (i % 2 || x.words == y.words),
              "%s: step %d: loss %.9g, wanted %.9g; terms %llu, wanted %llu; pairs %llu, wanted %llu", name, i, y.loss, x.loss,
              (unsigned long long)y.terms, (unsigned long long)x.terms, (unsigned long long)y.pairs, (unsigned long long)x.pairs);
    }
    compare_tables(&a, &b, &rule->options, name);
out:
    tables_close(&a);
    tables_close(&b);
    free(records[0]);
    free(records[1]);
}

static const struct placing PLACES[][2] = {
    {{"gpu", PLACE_GPU, PLACE_GPU, 0}, {"gpu", PLACE_GPU, PLACE_GPU, 0}},
    {{"pinned", PLACE_PINNED, PLACE_PINNED, 0}, {"gpu", PLACE_GPU, PLACE_GPU, 0}},
    {{"pinned", PLACE_PINNED, PLACE_PINNED, 17}, {"pinned", PLACE_PINNED, PLACE_PINNED, 17}},
    {{"gpu+pinned", PLACE_GPU, PLACE_PINNED, 5}, {"pinned+gpu", PLACE_PINNED, PLACE_GPU, 5}},
    {{"file", PLACE_FILE, PLACE_FILE, 9}, {"file+pinned", PLACE_FILE, PLACE_PINNED, 9}},
};
enum { PLACE_PAIRS = sizeof PLACES / sizeof *PLACES };

static void test_steps(void) {
    static const uint32_t dims[] = {1, 31, 32, 33, 100, 128, 188, 300, 400, 496, 512, 513, 1000, 2048, 4096};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, 300, 400, 12);
    for (int kind = 0; kind < 3; kind++) {
        static const char *kinds[] = {"windows that share negatives", "lists, few contexts", "lists, 40 contexts"};
        struct example_source s = source_of(&c, kind ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        s.law = kind == 2 ? NEGATIVE_UNIFORM : NEGATIVE_UNIGRAM;
        if (kind == 2) s.negatives = 36, s.short_repeat = 1;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r++)
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
                if (dims[d] > 512 && r % 3 != kind) continue; /* wide rows with a third of the rules each */
                compare_steps(cpu, gpu, &rules[r], dims[d], 300, PLACES[((size_t)r + d) % PLACE_PAIRS], 4, 40, (r + (int)d) % 2, kinds[kind]);
            }
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* Rows in thousands of places at once: the pieces and their sums. */
static void test_frequent_rows(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_make(&c, 6, 3000, 12);
    tolerance = 1e-3;
    for (int kind = 0; kind < 3; kind++) {
        struct example_source s = source_of(&c, kind == 1 ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        s.per_pair = kind == 2;
        s.exclude = 0;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r += 4)
            compare_steps(cpu, gpu, &rules[r], r % 8 ? 128 : 600, 6, PLACES[(size_t)r % PLACE_PAIRS], 1, 2500, 1, "frequent rows");
    }
    tolerance = 3e-5;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* ---- depth, hot rows and places: the same bytes ---- */

struct trained {
    char *records[2];
    double loss;
};

/* `steps` batches with `depth` in flight; every fifth only measured. */
static int train(struct trained *out, const struct example_source *s, const struct rule_options *rule, uint32_t dim, unsigned depth,
                 const struct placing placing[2], const char *const records[2], int steps, uint64_t batch) {
    struct backend *gpu = open_or_stop(&backend_cuda, depth);
    struct tables t;
    int result = -1;
    out->loss = 0;
    out->records[0] = out->records[1] = NULL;
    if (tables_open(&t, &backend_cuda, gpu, rule, dim, s->rows, placing) || tables_fill(&t, records) || backend_cuda.source(gpu, s)) goto out;
    for (int i = 0; i < steps + (int)depth; i++) {
        unsigned stage = (unsigned)i % depth;
        struct step_result done;
        if (i >= (int)depth) {
            if (backend_cuda.result(gpu, stage, &done)) goto out;
            out->loss += done.loss;
        }
        if (i >= steps) continue;
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {.rule = rule, .lr = 0.05 / (1 + i), .behind = (uint64_t)i, .loss_only = i % 5 == 3};
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

static void test_depths(void) {
    static const unsigned depths[] = {1, 2, 3, 8};
    static const uint64_t hots[] = {0, 1, 37, 300};
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, 300, 600, 20);
    for (int kind = 0; kind < 2; kind++) {
        struct example_source s = source_of(&c, kind ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        s.short_repeat = 1;
        s.keep = c.keep;
        for (int r = 0; r < count; r += 3) {
            const struct rule_options *rule = &rules[r].options;
            uint32_t dim = r % 2 ? 50 : 128;
            struct record_layout layout = layout_of(rule, dim);
            char *records[2] = {first_records(rule, &layout, c.rows), first_records(rule, &layout, c.rows)};
            struct trained want, got;
            if (train(&want, &s, rule, dim, 1, PLACES[0], (const char *const *)records, 14, 40)) {
                CHECK(0, "%s: the run to compare with", rules[r].name);
                continue;
            }
            for (int d = 0; d < 4; d++)
                for (int h = 0; h < 4; h++)
                    for (int p = 0; p < PLACE_PAIRS; p++) {
                        if ((d + h + p + r / 3) % 2) continue; /* half of them with each rule */
                        struct placing placing[2] = {PLACES[p][0], PLACES[p][1]};
                        placing[0].hot_rows = hots[h];
                        placing[1].hot_rows = hots[(h + p) % 4];
                        int ok = !train(&got, &s, rule, dim, depths[d], placing, (const char *const *)records, 14, 40);
                        ok = ok && got.loss == want.loss;
                        for (int side = 0; side < 2 && ok; side++)
                            ok = !memcmp(want.records[side], got.records[side], c.rows * layout.packed);
                        CHECK(ok, "%s, kind %d, depth %u, hot %llu, %s/%s: other bytes (loss %.17g, wanted %.17g)", rules[r].name, kind, depths[d],
                              (unsigned long long)hots[h], placing[0].name, placing[1].name, got.loss, want.loss);
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

/* ---- whole rows ---- */

static void test_rows(void) {
    struct backend *gpu = open_or_stop(&backend_cuda, 3);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    const uint64_t rows = 5000;
    for (int r = 0; r < count; r++)
        for (int p = 0; p < PLACE_PAIRS; p++) {
            struct tables t;
            struct record_layout layout = layout_of(&rules[r].options, 31);
            char *records = first_records(&rules[r].options, &layout, rows), *back = need(rows * layout.packed);
            int ok = !tables_open(&t, &backend_cuda, gpu, &rules[r].options, 31, rows, PLACES[p]);
            const struct backend_ops *ops = &backend_cuda;
            for (uint64_t at = 0; at < rows && ok; at += 1234) /* in pieces that straddle the hot rows' end */
                ok = !ops->table_write(gpu, t.side[0], at, rows - at < 1234 ? rows - at : 1234, records + at * layout.packed);
            ok = ok && !ops->table_read(gpu, t.side[0], 0, rows, back) && !memcmp(records, back, rows * layout.packed);
            ok = ok && !ops->table_read(gpu, t.side[0], 3, 20, back) && !memcmp(records + 3 * layout.packed, back, 20 * layout.packed);
            CHECK(ok, "%s in %s", rules[r].name, PLACES[p][0].name);
            CHECK(ops->table_read(gpu, t.side[0], rows - 1, 2, back) == -1 && *report_sentence(), "rows past the end were read");
            report_clear();
            tables_close(&t);
            free(records);
            free(back);
        }
    backend_cuda.close(gpu);
}

/* ---- what must be refused ---- */

static void test_refusals(void) {
    struct backend_options options = {.depth = 2, .gpu_budget = 64 << 20, .index = 0};
    struct backend *gpu = NULL;
    struct backend_table *table = NULL;
    struct rule_options rule = options_of(RULE_SGD);
    struct table_spec spec = {.name = "target", .rows = 1 << 20, .layout = layout_of(&rule, 128), .weights = PLACE_GPU, .state = PLACE_GPU};
    struct batch_request request = {0, 0, 10, 0};
    struct step_result result;
    CHECK(!backend_cuda.open(&gpu, &options), "open");
    if (!gpu) return;
    CHECK(backend_cuda.table_open(gpu, &spec, &table) == -1 && strstr(report_sentence(), "memory.gpu_budget"), "512 MiB were taken of a budget of 64");
    report_clear();
    CHECK(backend_cuda.make_batch(gpu, 0, &request) == -1 && *report_sentence(), "a batch without a source");
    report_clear();
    CHECK(backend_cuda.result(gpu, 1, &result) == -1 && *report_sentence(), "a result without a batch");
    report_clear();
    spec.rows = UINT64_C(1) << 60;
    spec.weights = spec.state = PLACE_PINNED;
    CHECK(backend_cuda.table_open(gpu, &spec, &table) == -1 && *report_sentence(), "a table of 2^69 bytes");
    report_clear();
    backend_cuda.close(gpu);
    options.index = 99;
    CHECK(backend_cuda.open(&gpu, &options) == -1 && strstr(report_sentence(), "device.index"), "GPU 99");
    report_clear();
}

/* ---- speed ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct shape {
    const char *name;
    uint64_t rows;
    uint32_t dim;
    int rule;
};

static int fill_large(struct tables *t, const struct rule_options *rule) {
    const uint64_t piece = 1 << 15;
    char *records = first_records(rule, &t->layout, piece);
    int result = 0;
    for (int side = 0; side < 2; side++)
        for (uint64_t at = 0; at < t->rows && !result; at += piece)
            result = t->ops->table_write(t->backend, t->side[side], at, t->rows - at < piece ? t->rows - at : piece, records);
    free(records);
    return result;
}

static void measure_speed(const struct shape *shape, const struct placing placing[2], unsigned depth, uint64_t batch, int counted) {
    struct rule_options rule = options_of(shape->rule);
    struct backend *gpu = NULL;
    struct backend_options options = {.depth = depth, .gpu_budget = UINT64_MAX};
    struct corpus c = {.rows = shape->rows, .sentences = 1 << 20};
    struct tables t;
    double began = now(), opened, start;
    rule.count_rows = counted;
    rule.lr = 0.002;
    c.tokens = c.sentences * 8;
    c.ids = need(c.tokens * 4);
    c.starts = need((c.sentences + 1) * 8);
    for (uint64_t i = 0; i < c.tokens; i++) c.ids[i] = (uint32_t)(random_bits() % c.rows);
    for (uint64_t i = 0; i <= c.sentences; i++) c.starts[i] = i * 8;
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    s.law = NEGATIVE_UNIFORM, s.negatives = 64, s.shuffle = 1;
    s.exclude = 0;
    if (backend_cuda.open(&gpu, &options) || tables_open(&t, &backend_cuda, gpu, &rule, shape->dim, shape->rows, placing) ||
        fill_large(&t, &rule) || backend_cuda.source(gpu, &s)) {
        printf("%s: %s\n", shape->name, report_sentence());
        report_clear();
        if (gpu) backend_cuda.close(gpu);
        return;
    }
    opened = now() - began;
    uint64_t pairs = 0, link = 0;
    int steps = (int)(c.sentences / batch), warm = 8;
    if (steps > 400) steps = 400;
    double loss = 0;
    start = now();
    for (int i = 0; i < steps + (int)depth; i++) {
        unsigned stage = (unsigned)i % depth;
        struct step_result done = {0};
        if (i >= (int)depth) {
            if (backend_cuda.result(gpu, stage, &done)) break;
            if (i - (int)depth == warm) start = now();
            if (i - (int)depth > warm) pairs += done.pairs, link += done.link_bytes;
            loss = done.loss;
        }
        if (i >= steps) continue;
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {.rule = &rule, .lr = 0.002, .behind = (uint64_t)i};
        if (backend_cuda.make_batch(gpu, stage, &request) || one_step(&t, stage, &step)) break;
    }
    double seconds = now() - start;
    printf("%-34s batch %6llu depth %u %s/%s%s hot %llu: %8.2f M pairs/s, link %5.1f GB/s, %.3f ms a step (%d), loss %.4g, opened in %.1f s%s%s\n", shape->name,
           (unsigned long long)batch, depth, placing[0].name, placing[1].name, counted ? " counted" : "", (unsigned long long)placing[0].hot_rows,
           (double)pairs / seconds * 1e-6, (double)link / seconds * 1e-9, seconds / (steps - warm - 1) * 1e3, steps, loss, opened,
           *report_sentence() ? " | " : "", report_sentence());
    report_clear();
    fflush(stdout);
    tables_close(&t);
    backend_cuda.close(gpu);
    free(c.ids);
    free(c.starts);
}

/* Everything on the GPU; targets and their state pinned, none of their rows hot; the same with a tenth of them hot. */
static void speed(void) {
    static const struct shape shapes[] = {{"2.83M x 400 adamax", 2829853, 400, RULE_ADAMAX}, {"14.9M x 188 sgd", 14886544, 188, RULE_SGD}};
    for (int i = 0; i < 2; i++) {
        struct placing hot[2] = {PLACES[1][0], PLACES[1][1]};
        hot[0].hot_rows = shapes[i].rows / 10;
        for (uint64_t batch = 16384; batch <= 32768; batch *= 2) {
            measure_speed(&shapes[i], PLACES[0], 3, batch, 0);
            measure_speed(&shapes[i], PLACES[1], 3, batch, 0);
            measure_speed(&shapes[i], PLACES[1], 5, batch, 0);
            measure_speed(&shapes[i], hot, 5, batch, 0);
        }
        measure_speed(&shapes[i], PLACES[1], 3, 4096, 0);
        measure_speed(&shapes[i], PLACES[1], 3, 512, 0);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"refusals", test_refusals}, {"rows", test_rows},     {"batches", test_batches},
                 {"steps", test_steps},       {"frequent", test_frequent_rows}, {"depths", test_depths}};
    char why[256];
    if (!backend_cuda_present(why, sizeof why)) {
        printf("no test was run: %s\n", why);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "--speed")) {
        speed();
        return 0;
    }
    if (!mkdtemp(directory)) return 1;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int before = failed, sure = passed;
        double start = now();
        if (argc > 1 && strncmp(tests[i].name, argv[1], strlen(argv[1]))) continue;
        tests[i].run();
        printf("%s: %d passed, %d failed, %.1f s\n", tests[i].name, passed - sure, failed - before, now() - start);
    }
    rmdir(directory);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
