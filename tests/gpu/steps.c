/* Compares steps of both backends with float64. A rule that divides by a gradient's size magnifies the rounding of a nearly
 * vanishing sum on both backends, so that only a third computation can say whether one of them is wrong. */
#include "kernels/triples.h"
#include "common.h"
#include "step64.h"

/* Distance of a backend from float64, as shares of the largest value of the part. */
struct distance {
    double apart; /* share of values that differ by more than `tolerance` */
    double worst;
};

static struct distance distance_of(const struct table64 *want, const char *records, uint32_t part, double tolerance) {
    const struct record_layout *layout = &want->layout;
    double largest = 0, apart = 0, worst = 0;
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim, count = want->rows * layout->dim;
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t row = 0; row < want->rows; row++) {
            const double *x = want->values + row * floats + (uint64_t)part * layout->dim;
            for (uint32_t i = 0; i < layout->dim; i++) {
                if (pass == 0) {
                    largest = fmax(largest, fabs(x[i]));
                    continue;
                }
                double d = fabs(x[i] - value_of(layout, records + row * layout->packed, part, i)) / (largest > 0 ? largest : 1);
                if (!(d <= tolerance)) apart++;
                if (!(d <= worst)) worst = d;
            }
        }
    return (struct distance){apart / (double)count, worst};
}

/* Allowed difference of a value by rounding; larger in the test of frequent rows, which sums thousands of values. */
static double tolerance = 3e-5;

/* Allowed share of values that rounding changes by more than `tolerance`. Losses over hundreds of contexts have more sums near
 * zero, which rules that divide by a gradient's size, or use its sign, magnify. */
static double part_off = 1e-3;

/* Largest allowed difference of a single value. */
static double worst_off = 5e-3;

/* Update counts of rows before the first step: this number plus 0 to 3. */
static uint32_t updates_before;

/* The loss of the compared steps, and the frozen rows of targets and of contexts. */
static struct loss_options loss_of_steps;
static const uint32_t *frozen[2];

static char *counted_records(const struct rule_options *rule, const struct record_layout *layout, uint64_t rows) {
    char *records = first_records(rule, layout, rows);
    for (uint64_t row = 0; row < rows && layout->counted && updates_before; row++) {
        uint32_t updates = updates_before + (uint32_t)(row % 4);
        memcpy(records + (row + 1) * layout->packed - 4, &updates, 4);
    }
    return records;
}

/* 1: the rule uses a gradient's sign. Rounding may change the sign of a sum near zero, so a value may differ by any amount. */
static int by_sign;

/* This share of a table's values may differ by any amount; it is above 0 only for some rules and losses. A rule may use a gradient's sign,
 * or divide a gradient by its size: a sum near zero then comes out very differently after rounding. Weighted losses make more of these
 * sums; TF32 and bfloat16 round more. */
static double amplified;

/* halves: 1: weights are bfloat16; the state is bfloat16 in every second comparison (halves_turn). */
static int halves, halves_turn;

/* Checks a bfloat16 part. Two sums that differ by rounding may be rounded to neighbouring bfloat16 values, 1/128 of the value
 * apart; rows that meet such a row in later batches then differ a little in all columns. That happens to a few of some hundred
 * rows. If the backends drew different random bits, half of the values would differ. */
static void check_rounded_part(const struct table64 *want, const char *cpu, const char *gpu, uint32_t part, const char *name) {
    struct distance c = distance_of(want, cpu, part, tolerance), g = distance_of(want, gpu, part, tolerance);
    CHECK(c.apart <= 0.1 + 20 * tolerance, "%s part %u of bfloat16: %.3g of the CPU's values apart from float64", name, part,
          c.apart);
    int near = g.worst <= 4.0 / 128 + 4 * c.worst || by_sign || g.apart <= amplified;
    CHECK(g.apart <= 2e-2 + 20 * tolerance + 20 * amplified + 4 * c.apart && near,
          "%s part %u of bfloat16: %.3g of the values apart from float64, by up to %.3g; the CPU's %.3g and %.3g", name, part,
          g.apart, g.worst, c.apart, c.worst);
}

/* Checks a float32 part. A small share of the GPU's values may differ by rounding, each by at most 0.5% of the largest value;
 * more only if the CPU's differ as much. */
static void check_part(const struct table64 *want, const char *cpu, const char *gpu, uint32_t part, const char *name) {
    struct distance c = distance_of(want, cpu, part, tolerance), g = distance_of(want, gpu, part, tolerance);
    int near = g.worst <= worst_off + 4 * c.worst || (by_sign && g.apart < part_off / 2);
    CHECK((g.apart <= part_off + 4 * c.apart && near) || g.apart <= amplified,
          "%s part %u: %.3g of the values apart from float64, by up to %.3g; the CPU's %.3g and %.3g", name, part,
          g.apart, g.worst, c.apart, c.worst);
}

static void check_updates(const struct table64 *want, const char *records, const char *name) {
    uint64_t row = table64_other_updates(want, records);
    CHECK(row == want->rows, "%s: row %llu does not have %u updates", name, (unsigned long long)row,
          want->updates[row]);
}

static void compare_tables(const struct tables *cpu, const struct tables *gpu, const struct table64 want[2],
                           const char *name) {
    for (int side = 0; side < 2; side++) {
        char *a = tables_records(cpu, side, name), *b = tables_records(gpu, side, name), part_name[320];
        snprintf(part_name, sizeof part_name, "%s: %s", name, side ? "context" : "target");
        for (uint32_t part = 0; part <= cpu->layout.slots; part++)
            (halves ? check_rounded_part : check_part)(&want[side], a, b, part, part_name);
        check_updates(&want[side], a, name);
        check_updates(&want[side], b, name);
        free(a);
        free(b);
    }
}

static void check_result(const struct step_result *cpu, const struct step_result *gpu, double loss, int from_arrays,
                         int rule, const char *name, int step) {
    double near = halves ? 1e-3 : 1e-5;
    if (rule == RULE_RPROP) near = halves ? 4e-3 : 1e-3; /* in the step before, a sum near zero may have had the other sign */
    if (matmul == MATMUL_TF32) near = 1e-2;
    /* With a negative power a pair's loss is a difference of numbers near 1, which may be near zero. */
    double size = fabs(loss) + (loss_of_steps.negative_power > 0 ? (double)cpu->pairs : 0);
    CHECK(fabs(gpu->loss - loss) <= near * size, "%s: step %d: loss %.9g, float64 %.9g, the CPU's %.9g", name,
          step, gpu->loss, loss, cpu->loss);
    CHECK(cpu->terms == gpu->terms && cpu->pairs == gpu->pairs && cpu->examples == gpu->examples &&
              (from_arrays || cpu->words == gpu->words),
          "%s: step %d: terms %llu, wanted %llu; pairs %llu, wanted %llu", name, step, (unsigned long long)gpu->terms,
          (unsigned long long)cpu->terms, (unsigned long long)gpu->pairs, (unsigned long long)cpu->pairs);
}

static struct rule_case rounded_rule(const struct rule_case *rule) {
    struct rule_case rounded = *rule;
    if (!halves) return rounded;
    rounded.options.precision = PRECISION_BFLOAT16;
    rounded.options.state_precision = halves_turn++ % 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    return rounded;
}

static void compare_steps(struct backend *cpu, struct backend *gpu, const struct rule_case *of, uint32_t dim, uint64_t rows,
                          const struct placing placing[2], int steps, uint64_t batch, int mean, const char *batch_name) {
    static const struct placing plain[2] = {{"", PLACE_GPU, PLACE_GPU, 0, 0}, {"", PLACE_GPU, PLACE_GPU, 0, 0}};
    struct tables a = {0}, b = {0};
    const struct rule_case rounded = rounded_rule(of), *rule = &rounded;
    char name[256];
    struct record_layout layout = layout_of(&rule->options, dim);
    char *records[2] = {counted_records(&rule->options, &layout, rows), counted_records(&rule->options, &layout, rows)};
    struct table64 want[2] = {table64_of(&layout, rows, records[0]), table64_of(&layout, rows, records[1])};
    for (int side = 0; side < 2; side++) want[side].frozen = frozen[side], want[side].rounding = rounding_of_side(side);
    const char *kept = !halves ? "" : rule->options.state_precision ? ", all bfloat16" : ", bfloat16 weights";
    snprintf(name, sizeof name, "%s%s, dim %u, %s/%s hot %llu, %s", rule->name, kept, dim, placing[0].name, placing[1].name,
             (unsigned long long)placing[0].hot_rows, batch_name);
    if (tables_open_frozen(&a, &backend_cpu, cpu, &rule->options, dim, rows, plain, frozen) ||
        tables_open_frozen(&b, &backend_cuda, gpu, &rule->options, dim, rows, placing, frozen) ||
        tables_fill(&a, (const char *const *)records) || tables_fill(&b, (const char *const *)records)) {
        CHECK(0, "%s: tables", name);
        goto out;
    }
    for (int i = 0; i < steps; i++) {
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {
            .rule = &rule->options, .loss = loss_of_steps, .lr = 0.05, .global_step = (uint64_t)i, .mean = mean,
            .loss_only = i == 2};
        struct step_result x, y;
        struct batch_view view;
        int ok = !backend_cpu.make_batch(cpu, 0, &request) && !backend_cpu.batch_view(cpu, 0, &view);
        /* Every second batch is given as arrays. */
        ok = ok && !(i % 2 ? backend_cuda.set_batch(gpu, 0, &view) : backend_cuda.make_batch(gpu, 0, &request));
        double loss = ok ? step64(&want[0], &want[1], &view, &step) : 0;
        ok = ok && !one_step(&a, 0, &step) && !one_step(&b, 0, &step) && !backend_cpu.result(cpu, 0, &x) &&
             !backend_cuda.result(gpu, 0, &y);
        CHECK(ok, "%s: step %d", name, i);
        if (!ok) goto out;
        if (!step.loss_only && (frozen[0] || frozen[1])) loss = x.loss; /* without pairs of two frozen rows */
        check_result(&x, &y, loss, i % 2, rule->options.rule, name, i);
    }
    by_sign = rule->options.rule == RULE_RPROP;
    int divides = rule->options.rule != RULE_SGD && rule->options.rule != RULE_ASGD;
    amplified = !divides ? 0 : matmul == MATMUL_TF32 ? part_off : loss_of_steps.weighted ? 5e-3 : halves ? 2e-3 : 0;
    compare_tables(&a, &b, want, name);
out:
    tables_close(&a);
    tables_close(&b);
    for (int side = 0; side < 2; side++) {
        free(records[side]);
        table64_free(&want[side]);
    }
}

/* Compares all rules with each number of columns; from dims[often] on, only a third of the rules with each. */
static void compare_widths(const uint32_t *dims, size_t widths, size_t often) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, 300, 400, 12);
    for (int kind = 0; kind < 3; kind++) {
        static const char *kinds[] = {"windows that share negatives", "lists, few contexts", "lists, 40 contexts"};
        struct example_source s = source_of(&c, kind ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        s.noise = kind == 2 ? NOISE_UNIFORM : NOISE_UNIGRAM;
        if (kind == 2) s.negatives = 36, s.short_repeat = 1;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r++)
            for (size_t d = 0; d < widths; d++) {
                if (d >= often && r % 3 != kind) continue;
                compare_steps(cpu, gpu, &rules[r], dims[d], 300, PLACES[((size_t)r + d) % PLACE_PAIRS], 4, 40,
                              (r + (int)d) % 2, kinds[kind]);
            }
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

void test_steps(void) {
    static const uint32_t dims[] = {1,   31,  32,  33,  100, 128,  188,  300,  400,  496,  512, 129,
                                    60,  61,  64,  65,   68,   256,  257,  384,  385, 513, 1000, 1024,
                                    1025, 2048, 2049, 4096};
    compare_widths(dims, sizeof dims / sizeof *dims, 11);
}

/* Tests blocks of about 80 targets and 60 contexts, more than a warp looks up or keeps at a time; ten slots of each are left
 * out. */
void test_wide_windows(void) {
    static const uint32_t dims[] = {20, 32, 33, 61, 64, 65, 128, 200, 300, 512, 600};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_make(&c, 60, 40, 150);
    struct example_source s = source_of(&c, EXAMPLE_WINDOW);
    s.window = 40, s.shrink = 0;
    s.noise = NOISE_UNIFORM, s.negatives = 69, s.distinct = 1;
    if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
    tolerance = 1e-3;
    for (int r = 0; r < count; r += 3)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
            compare_steps(cpu, gpu, &rules[r], dims[d], 60, PLACES[((size_t)r + d) % PLACE_PAIRS], 4, 40, 1,
                          "wide windows");
    tolerance = 3e-5;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* Tests rows that occur thousands of times in a batch: their partial sums, and the sums of these. */
void test_frequent_rows(void) {
    static const uint32_t dims[] = {600, 128, 64, 20};
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
            compare_steps(cpu, gpu, &rules[r], dims[r / 4 % 4], 6, PLACES[(size_t)r % PLACE_PAIRS], 1, 2500, 1,
                          "frequent rows");
    }
    tolerance = 3e-5;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* ---- on both sides of what decides how a step is done ---- */

/* Makes a corpus in which the rows occur exactly counts[n] times in a batch. The counts are near multiples of ITEM_MOST, and
 * give fewer partial sums than are added in shares, as many, and more. */
static void corpus_of_counts(struct corpus *c, const uint32_t *counts, size_t n) {
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += counts[i];
    *c = (struct corpus){.rows = 2 * n, .sentences = lines, .tokens = 2 * lines};
    c->ids = need(c->tokens * 4);
    c->starts = need((lines + 1) * 8);
    for (uint64_t i = 0, line = 0; i < n; i++)
        for (uint32_t k = 0; k < counts[i]; k++, line++) {
            c->ids[2 * line] = (uint32_t)(2 * i);
            c->ids[2 * line + 1] = (uint32_t)(2 * i + 1);
            c->starts[line + 1] = 2 * line + 2;
        }
}

void test_items(void) {
    static const uint32_t counts[] = {1,  2,   31,  32,  33,  63,  64,  65,  95,  96,   97,  127,
                                      128, 129, 160, 161, 191, 192, 193, 640, 1023, 1025, 4096, 4097};
    static const uint32_t dims[] = {20, 600, 64, 68, 188, 260, 400};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_of_counts(&c, counts, sizeof counts / sizeof *counts);
    tolerance = 1e-3;
    for (int windows = 0; windows < 2; windows++) { /* 0: blocks with one target; 1: blocks that are treated as if they had
                                                     * several */
        struct example_source s = source_of(&c, windows ? EXAMPLE_WINDOW : EXAMPLE_ADJACENCY);
        s.window = 1, s.shrink = 0, s.positives = 1, s.negatives = 0;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r++)
            compare_steps(cpu, gpu, &rules[r], dims[(r + windows) % 7], c.rows, PLACES[(size_t)r % PLACE_PAIRS], 1,
                          example_count(&s), 1, windows ? "counted rows of windows" : "counted rows of lines");
    }
    tolerance = 3e-5;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    free(c.ids);
    free(c.starts);
}

/* Tests rules without state, which move rows only by the sum over a batch, so that one occurrence too many or too few shows. The
 * numbers of columns need groups of threads of every size. */
void test_plain_items(void) {
    static const uint32_t counts[] = {1, 2, 31, 32, 33, 64, 65, 96, 97, 128, 129, 160, 161, 193};
    static const uint32_t dims[] = {20, 32, 33, 64, 68, 100, 128, 188, 256, 260, 600};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct rule_slot slots[RULE_SLOTS];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_of_counts(&c, counts, sizeof counts / sizeof *counts);
    for (int windows = 0; windows < 2; windows++) {
        struct example_source s = source_of(&c, windows ? EXAMPLE_WINDOW : EXAMPLE_ADJACENCY);
        s.window = 1, s.shrink = 0, s.positives = 1, s.negatives = 0;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r++)
            for (size_t d = 0; d < sizeof dims / sizeof *dims && !rule_slots(&rules[r].options, slots); d++)
                compare_steps(cpu, gpu, &rules[r], dims[d], c.rows, PLACES[d % PLACE_PAIRS], 1, example_count(&s), 0,
                              windows ? "counted rows of windows, summed" : "counted rows of lines, summed");
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    free(c.ids);
    free(c.starts);
}

/* Returns the number of groups of threads that update rows at once (step.cu: 16 thread blocks of 128 threads for each
 * multiprocessor). Depending on the columns, a group has 8 threads, a warp (also if there is state), or all threads of a block.
 * A row with several partial sums needs at least a warp. */
static uint64_t groups_at_once(uint32_t dim, uint32_t slots, uint32_t times, unsigned processors) {
    int narrow = times <= 32 && !(dim > 64 && slots);
    return 16ull * processors * (dim > 512 ? 1 : narrow ? 16 : 4);
}

/* Tests as many partial sums as groups of threads, one fewer, one more, and several for each group: a group looks up its work
 * two or three partial sums ahead. Every row occurs twice in the batch or, for a rule without state, so often that it has
 * several partial sums. */
void test_turns(void) {
    static const uint32_t dims[] = {20, 68, 600};
    static const struct {
        uint64_t turns;
        int more;
        uint32_t times;
    } sizes[] = {{1, -1, 2}, {1, 0, 2}, {1, 1, 2}, {3, 1, 2}, {5, 7, 2}, {1, -1, 33}, {1, 1, 33}};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct backend_info info;
    struct rule_case rules[32];
    int count = rule_cases(rules), at = 0;
    if (backend_cuda.info(gpu, &info)) CHECK(0, "info");
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, at += 2) {
            int plain = sizes[i].times > 2;
            const struct rule_case *rule = &rules[plain ? 0 : at % count];
            struct record_layout layout = layout_of(&rule->options, dims[d]);
            uint64_t n = sizes[i].turns * groups_at_once(dims[d], layout.slots, sizes[i].times, info.processors);
            n += (uint64_t)(int64_t)sizes[i].more;
            uint32_t *counts = need(n * sizeof *counts);
            struct corpus c;
            for (uint64_t k = 0; k < n; k++) counts[k] = sizes[i].times;
            corpus_of_counts(&c, counts, n);
            struct example_source s = source_of(&c, EXAMPLE_ADJACENCY);
            s.positives = 1, s.negatives = 0;
            if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
            compare_steps(cpu, gpu, rule, dims[d], c.rows, PLACES[(size_t)at % PLACE_PAIRS], 1, example_count(&s), !plain,
                          "as many work items as groups of threads");
            free(counts);
            free(c.ids);
            free(c.starts);
        }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}

/* Tests blocks whose contexts one group of threads has alone, or several groups share (from 32 on), with thread blocks of either
 * kind (up to 256 blocks). */
void test_blocks(void) {
    static const uint64_t blocks[] = {1, 2, 255, 256, 257};
    static const uint32_t dims[] = {20, 128, 129, 256, 257, 384, 385, 512, 513};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules), at = 0;
    corpus_make(&c, 300, 1200, 12);
    for (uint32_t contexts = 31; contexts <= 65; contexts += contexts < 33 ? 1 : contexts == 33 ? 31 : 1) {
        struct example_source s = source_of(&c, EXAMPLE_LIST);
        char name[64];
        s.negatives = contexts - s.positives, s.short_repeat = 1, s.noise = NOISE_UNIFORM;
        snprintf(name, sizeof name, "blocks of %u contexts", contexts);
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (size_t d = (b + contexts) % 2; d < sizeof dims / sizeof *dims; d += 2, at++)
                compare_steps(cpu, gpu, &rules[at % count], dims[d], 300, PLACES[at % PLACE_PAIRS], 4, blocks[b],
                              at % 2, name);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* Tests rows with more updates than there are precomputed bias corrections. */
void test_late_updates(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_make(&c, 300, 400, 12);
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
    updates_before = 4096 - 3;
    for (int r = 0; r < count; r++)
        if (rules[r].options.count_rows)
            compare_steps(cpu, gpu, &rules[r], r % 2 ? 128 : 600, 300, PLACES[(size_t)r % PLACE_PAIRS], 5, 80, 1,
                          "4096 updates");
    updates_before = 0;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* ---- every loss ---- */

enum { LOSS_CASES = 11, SOURCE_CASES = 12 };
static const struct loss_options losses[LOSS_CASES] = {
    {LOSS_LOGISTIC, SCORE_DOT, .temperature = 0.5f, .negative_weight = 1},
    {LOSS_LOGISTIC, SCORE_COSINE, .temperature = 0.25f, .negative_weight = 1},
    {LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 1},
    {LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 2},
    {LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 1, .negative_power = 1.15f},
    {LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 1, .negative_power = 1.3f},
    {LOSS_BPR, SCORE_DOT, .temperature = 1, .negative_weight = 1},
    {LOSS_BPR, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 1},
    {LOSS_CONTRASTIVE, SCORE_DOT, .temperature = 1, .margin = 0.1f, .negative_weight = 2},
    {LOSS_CONTRASTIVE, SCORE_COSINE, .temperature = 1, .margin = 0.2f, .negative_weight = 3},
    {LOSS_LOGISTIC, SCORE_DOT, .temperature = 1, .negative_weight = 1}};

/* Makes a source: blocks of one vector and of several; means; contexts for one warp, for several warps (from 32 on), and for the
 * thread block that turns scores into coefficients (from 256 on). */
static struct example_source source_case(struct corpus *c, int number, const char **name) {
    static const char *names[SOURCE_CASES] = {"windows", "windows, a block a pair", "means", "means with a first weight",
                                              "means, whole gradients", "lists", "lists, 40 contexts", "lists, 300 contexts",
                                              "windows, 300 contexts", "words of several rows",
                                              "words of several rows, negatives by pair", "windows of words of several rows"};
    int list = number >= 5 && number <= 7;
    struct example_source s = source_of(c, list ? EXAMPLE_LIST : EXAMPLE_WINDOW);
    s.per_pair = number == 1;
    s.pool.on = number >= 2 && number <= 4;
    s.pool.own = number == 3 ? 0.4f : 0;
    s.pool.whole = number == 4;
    if (number >= 9) {
        source_shares(&s, c, number == 11);
        s.per_pair = number == 10;
        s.pool.whole = number != 10;
    }
    if (list) source_weigh(&s, c);
    if (list) s.short_repeat = 1, s.noise = NOISE_UNIFORM, s.positives = number == 5 ? 0 : 3;
    if (number >= 6 && number <= 8) s.negatives = number == 6 ? 37 : 297;
    if (number == 8) s.window = 2, s.distinct = 1; /* there are 300 rows, so some slots are left out */
    *name = names[number];
    return s;
}

static void compare_losses(const uint32_t *dims, size_t count_of_dims, uint64_t rows, size_t every) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    size_t count = (size_t)rule_cases(rules), at = 0;
    corpus_make(&c, rows, 300, 12);
    part_off = 5e-3;
    for (int kind = 0; kind < SOURCE_CASES; kind++) {
        const char *source_name;
        struct example_source s = source_case(&c, kind, &source_name);
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int l = 0; l < LOSS_CASES; l++)
            for (size_t d = 0; d < count_of_dims; d++, at++) {
                char name[128];
                uint32_t dim = losses[l].score == SCORE_COSINE && dims[d] < 8 ? 8 : dims[d]; /* few columns: nearly no gradient */
                if (at % every) continue; /* `every` divides none of the counts, so that all dims, losses and sources occur */
                size_t turn = at / every;
                loss_of_steps = losses[l];
                loss_of_steps.weighted = s.weights && turn % 3;
                snprintf(name, sizeof name, "loss %d of %s, %s%s", (int)losses[l].kind, losses[l].score ? "cosines" : "dots",
                         source_name, loss_of_steps.weighted ? ", weighted" : "");
                compare_steps(cpu, gpu, &rules[turn % count], dim, s.rows, PLACES[turn % PLACE_PAIRS], 4, turn % 3 ? 30 : 70,
                              (int)(turn / 2 % 2), name);
            }
    }
    loss_of_steps = (struct loss_options){0};
    part_off = 1e-3;
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* Tests negatives that a batch shares: fewer than the columns of a row, and so many that a thread block needs several rounds; an
 * example's positive may be left out of its negatives, or not. TF32 keeps 11 bits of each factor. */
static void compare_shared(const uint32_t *dims, size_t count_of_dims, enum matmul_type type) {
    static const uint32_t negatives[] = {1, 33, 255, 700};
    static const struct loss_options of_shared[] = {{LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 1, .negative_power = 1.15f},
                                                    {LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 1},
                                                    {LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 2},
                                                    {LOSS_SOFTMAX, SCORE_DOT, .temperature = 0.5f, .negative_weight = 1, .negative_power = 1.15f}};
    matmul = type;
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    size_t count = (size_t)rule_cases(rules);
    corpus_make(&c, 300, 300, 12);
    tolerance = 1e-4;
    if (type == MATMUL_TF32) tolerance = 5e-3, part_off = worst_off = 5e-2;
    for (size_t i = 0; i < 3 * count_of_dims; i++) {
        struct example_source s = source_of(&c, EXAMPLE_ITEM);
        char name[128];
        s.per_batch = 1, s.negatives = negatives[i / 2 % 4], s.exclude = i % 3 > 0, s.positives = 1;
        s.noise = i % 2 ? NOISE_UNIFORM : NOISE_UNIGRAM, s.shuffle = i % 5 > 0;
        s.distinct = i % 3 == 1; /* there are 300 rows: of 255 slots some may be left out, of 700 most are */
        loss_of_steps = of_shared[i % 4];
        loss_of_steps.weighted = i / 5 % 2;
        if (i % 10 >= 3) source_weigh(&s, &c);
        uint32_t dim = loss_of_steps.score == SCORE_COSINE && dims[i / 3] < 8 ? 8 : dims[i / 3];
        snprintf(name, sizeof name, "%u shared negatives, %s%s%s", s.negatives, loss_of_steps.score ? "cosines" : "dots",
                 s.exclude ? ", excluding" : "", s.distinct ? ", distinct" : "");
        if (loss_of_steps.weighted && s.weights) strcat(name, ", weighted");
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        uint64_t quarter = example_count(&s) / 4, batch = i % 3 ? 90 : 333; /* four batches are within the epoch */
        compare_steps(cpu, gpu, &rules[i % count], dim, 300, PLACES[i % PLACE_PAIRS], 4, batch < quarter ? batch : quarter,
                      (int)(i / 2 % 2), name);
    }
    tolerance = 3e-5, part_off = 1e-3, worst_off = 5e-3;
    matmul = MATMUL_FLOAT32;
    loss_of_steps = (struct loss_options){0};
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

/* Tests triples: all products and losses, relations predicted or not, with the penalty of cubes and without; every row as a negative. */
static void compare_triples(const uint32_t *dims, size_t count_of_dims, enum matmul_type type) {
    static const uint32_t negatives[] = {1, 33, 255, 700};
    static const struct loss_options of_triples[] = {{LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 1, .cubes = 0.05f},
                                                     {LOSS_LOGISTIC, SCORE_DOT, .temperature = 1, .negative_weight = 1},
                                                     {LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.2f, .negative_weight = 3, .cubes = 0.02f},
                                                     {LOSS_SOFTMAX, SCORE_DOT, .temperature = 0.5f, .negative_weight = 1},
                                                     {LOSS_LOGISTIC, SCORE_COSINE, .temperature = 0.5f, .negative_weight = 1, .cubes = 0.05f}};
    static const enum example_product products[] = {PRODUCT_COMPLEX, PRODUCT_REAL, PRODUCT_ROTATION, PRODUCT_TRANSLATION};
    matmul = type;
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    size_t count = (size_t)rule_cases(rules);
    tolerance = 1e-4;
    if (type == MATMUL_TF32) tolerance = 5e-3, part_off = worst_off = 7e-2;
    for (size_t i = 0; i < 6 * count_of_dims; i++) {
        struct corpus c;
        char name[160];
        corpus_make(&c, 300, 300, 12);
        struct example_source s = source_of(&c, EXAMPLE_TRIPLE);
        uint32_t dim = dims[i / 6];
        enum example_product product = products[dim % 2 ? i / 2 % 2 * 2 + 1 : i % 4];
        loss_of_steps = of_triples[i % 5];
        if (product_is_distance(product)) { /* in few columns some rows are nearer than LOSS_NEAR */
            loss_of_steps.score = SCORE_DISTANCE, loss_of_steps.cubes = 0, loss_of_steps.margin = i % 3 ? 0 : 2.5f;
            if (dim < 32) dim = 32;
        }
        if (loss_of_steps.kind == LOSS_LOGISTIC) loss_of_steps.adversarial = i / 5 % 2 ? 0.75f : 0;
        if (i / 3 % 3 && loss_of_steps.score != SCORE_COSINE) s.relations_too = 1, loss_of_steps.relations = i % 2 ? 0.25f : 3;
        if (loss_of_steps.score == SCORE_COSINE && dim < 8) dim = 8;
        s.noise = i % 4 ? NOISE_UNIFORM : NOISE_EVERY;
        s.negatives = negatives[i / 2 % 4], s.exclude = i % 3 > 0, s.distinct = i % 7 == 1, s.shuffle = i % 5 > 0;
        const struct example_pool pool = {
            .on = 1, .product = product, .tied = i / 2 % 3 > 0};
        source_triples(&s, &c, &pool, i / 3 % 2);
        snprintf(name, sizeof name, "triples%s, product %d%s, loss %d of score %d, %u negatives%s%s%s", type == MATMUL_TF32 ? " by TF32" : "",
                 (int)s.pool.product, pool.tied ? ", tied" : "", (int)loss_of_steps.kind, (int)loss_of_steps.score,
                 s.negatives, s.exclude ? ", excluding" : "", s.relations_too ? ", relations" : "", loss_of_steps.adversarial > 0 ? ", adversarial" : "");
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        uint64_t quarter = example_count(&s) / 4, batch = i % 3 ? 90 : 333; /* four batches are within the epoch */
        compare_steps(cpu, gpu, &rules[i % count], dim, 300, PLACES[i % PLACE_PAIRS], 4, batch < quarter ? batch : quarter,
                      (int)(i / 2 % 2), name);
        corpus_free(&c);
    }
    tolerance = 3e-5, part_off = 1e-3, worst_off = 5e-3;
    matmul = MATMUL_FLOAT32;
    loss_of_steps = (struct loss_options){0};
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}

/* Tests batches of one place, an item or a list's own row. If the batch has no example, no row may move, whatever its state. */
static void compare_own_places(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 1);
    struct rule_case rules[32];
    struct corpus c;
    int count = rule_cases(rules);
    corpus_make(&c, 300, 60, 2);
    struct example_source s = source_of(&c, EXAMPLE_ITEM);
    s.per_batch = 1, s.negatives = 40, s.positives = 1, s.noise = NOISE_UNIFORM;
    tolerance = 1e-4;
    loss_of_steps = (struct loss_options){LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 1};
    if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
    for (int r = 0; r < count; r++)
        compare_steps(cpu, gpu, &rules[r], 20, 300, PLACES[r % PLACE_PAIRS], 12, 1, r % 2, "one place of a list");
    tolerance = 3e-5;
    loss_of_steps = (struct loss_options){0};
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}

void test_shared(void) {
    static const uint32_t dims[] = {1, 20, 32, 33, 64, 65, 128, 129, 256, 257, 300, 512, 513, 1024, 1025, 2048, 2049, 4096};
    compare_shared(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
    compare_shared(dims, sizeof dims / sizeof *dims, MATMUL_TF32);
    compare_triples(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
    compare_triples(dims, sizeof dims / sizeof *dims, MATMUL_TF32);
    compare_own_places();
}

void test_losses(void) {
    static const uint32_t dims[] = {1,   32,  33,  64,  65,  100, 128, 129,  256,
                                    257, 300, 512, 513, 600, 1024, 1025, 2048, 2049};
    compare_losses(dims, sizeof dims / sizeof *dims, 300, 5);
}

/* Tests frozen targets, frozen contexts, and both; a few rows, or all rows of a side. */
void test_frozen(void) {
    static const uint32_t dims[] = {20, 128, 600};
    static const unsigned every[][2] = {{2, 0}, {0, 3}, {2, 2}, {1, 0}, {0, 1}, {1, 3}, {1, 1}};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        uint32_t *bits[2] = {NULL, NULL};
        for (int side = 0; side < 2; side++)
            if (every[i][side]) frozen[side] = bits[side] = frozen_of(300 + shared_rows(300), every[i][side]);
        compare_losses(dims, sizeof dims / sizeof *dims, 300, 4);
        compare_shared(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
        compare_triples(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
        for (int side = 0; side < 2; side++) free(bits[side]);
        frozen[0] = frozen[1] = NULL;
    }
}

/* ---- bfloat16 ---- */

/* Tests that every rule, loss and kind of block rounds as kernels/rounding.h defines: with other random bits half of the values
 * would differ. The numbers of columns are on both sides of the thresholds that choose a kernel for bfloat16. */
void test_halves(void) {
    static const uint32_t dims[] = {1, 60, 188, 7, 8, 9, 64, 65, 100, 128, 129, 192, 193, 256, 257, 400, 512, 513, 1025, 4096};
    halves = 1;
    compare_widths(dims, sizeof dims / sizeof *dims, 3);
    test_wide_windows();
    test_items();
    test_turns();
    test_blocks();
    test_late_updates();
    compare_losses(dims, sizeof dims / sizeof *dims, 300, 7);
    compare_shared(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
    compare_triples(dims, sizeof dims / sizeof *dims, MATMUL_FLOAT32);
    frozen[0] = frozen_of(300 + shared_rows(300), 2), frozen[1] = frozen_of(300 + shared_rows(300), 3);
    compare_losses(dims, sizeof dims / sizeof *dims, 300, 13);
    for (int side = 0; side < 2; side++) {
        free((void *)(uintptr_t)frozen[side]);
        frozen[side] = NULL;
    }
    halves = 0;
}
