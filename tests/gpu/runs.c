/* Compares hundreds of steps of every rule, with many dimensions and in all places, with the same steps in float64.
 *
 * The unit of distances is the movement: the root mean square of what the run changed. Learning rates are such that weights move
 * by a good part of their size, and rounding errors shrink instead of grow, so that any correct float32 run ends near float64.
 * A fault shows: a rate that is wrong by a thousandth, or one update lost in every hundred steps, makes the distance twenty
 * times larger than is allowed (with a single column twice; rprop has other limits, see near_enough).
 */
#include "common.h"
#include "step64.h"

enum { STEPS = 200, BATCH = 32, ROWS = 300 };

/* Distance of a backend's part of a table from float64, in units of the part's movement. */
struct distance {
    double rms;
    double values; /* share of values that differ by more than FAR */
    double rows;   /* share of rows of which more than a quarter of the values differ by more than FAR */
};
static const double FAR = 1e-2;

/* Root mean squares of a part: of its change in the run, and of its first values. */
struct movement {
    double moved, size;
};

static struct movement movement_of(const struct table64 *want, const char *first, uint32_t part) {
    const struct record_layout *layout = &want->layout;
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim;
    double moved = 0, size = 0, count = (double)(want->rows * layout->dim);
    for (uint64_t row = 0; row < want->rows; row++) {
        const double *x = want->values + row * floats + (uint64_t)part * layout->dim;
        for (uint32_t i = 0; i < layout->dim; i++) {
            double old = value_of(layout, first + row * layout->packed, part, i);
            moved += (x[i] - old) * (x[i] - old);
            size += old * old;
        }
    }
    return (struct movement){sqrt(moved / count), sqrt(size / count)};
}

static struct distance distance_of(const struct table64 *want, const char *records, uint32_t part, double moved) {
    const struct record_layout *layout = &want->layout;
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim, values = 0, rows = 0;
    double squares = 0, count = (double)(want->rows * layout->dim);
    for (uint64_t row = 0; row < want->rows; row++) {
        const double *x = want->values + row * floats + (uint64_t)part * layout->dim;
        uint64_t here = 0;
        for (uint32_t i = 0; i < layout->dim; i++) {
            double d = (x[i] - value_of(layout, records + row * layout->packed, part, i)) / moved;
            squares += d * d;
            here += !(fabs(d) <= FAR);
        }
        values += here;
        rows += 4 * here > layout->dim;
    }
    return (struct distance){sqrt(squares / count), (double)values / count, (double)rows / (double)want->rows};
}

/* ---- one run ---- */

struct run {
    struct rule_options rule;
    struct record_layout layout;
    int mean;
    char name[128];
    char *first[2]; /* first records of both sides */
    struct table64 want[2];
    struct tables cpu, gpu[PLACE_PAIRS];
    double cpu_loss, gpu_loss[PLACE_PAIRS]; /* largest relative difference of a step's loss from float64 */
};

static void keep_worst(double *worst, double loss, double want) {
    double share = fabs(loss - want) / fabs(want);
    if (!(share <= *worst)) *worst = share >= 0 ? share : INFINITY;
}

static int open_tables(struct run *run, struct backend *cpu, struct backend *gpu) {
    uint32_t dim = run->layout.dim;
    if (tables_open(&run->cpu, &backend_cpu, cpu, &run->rule, dim, ROWS, PLACES[0]) ||
        tables_fill(&run->cpu, (const char *const *)run->first))
        return -1;
    for (int p = 0; p < PLACE_PAIRS; p++)
        if (tables_open(&run->gpu[p], &backend_cuda, gpu, &run->rule, dim, ROWS, PLACES[p]) ||
            tables_fill(&run->gpu[p], (const char *const *)run->first))
            return -1;
    return 0;
}

/* Does a step in all places. Each place has its own stage, so their steps are in flight together while the host computes the
 * reference. */
static int run_step(struct run *run, uint64_t i, uint64_t examples) {
    struct backend *cpu = run->cpu.backend, *gpu = run->gpu[0].backend;
    uint64_t each = examples / BATCH; /* number of batches in an epoch */
    struct batch_request request = {(uint32_t)(i / each), i % each * BATCH, BATCH, 0};
    struct step_request step = {
        .rule = &run->rule, .lr = run->rule.lr * (1 - (double)i / (2 * STEPS)), .global_step = i, .mean = run->mean};
    struct step_result x, y;
    struct batch_view view;
    if (backend_cpu.make_batch(cpu, 0, &request) || backend_cpu.batch_view(cpu, 0, &view)) return -1;
    for (unsigned p = 0; p < PLACE_PAIRS; p++) /* half of the batches are given as arrays */
        if (((i + p) % 2 ? backend_cuda.set_batch(gpu, p, &view) : backend_cuda.make_batch(gpu, p, &request)) ||
            one_step(&run->gpu[p], p, &step))
            return -1;
    double loss = step64(&run->want[0], &run->want[1], &view, &step);
    if (one_step(&run->cpu, 0, &step) || backend_cpu.result(cpu, 0, &x)) return -1;
    keep_worst(&run->cpu_loss, x.loss, loss);
    for (unsigned p = 0; p < PLACE_PAIRS; p++) {
        if (backend_cuda.result(gpu, p, &y)) return -1;
        if (y.terms != x.terms || y.pairs != x.pairs || y.examples != x.examples) return -1;
        keep_worst(&run->gpu_loss[p], y.loss, loss);
    }
    return 0;
}

/* ---- what it came to ---- */

/* rprop uses a gradient's sign, and the sign of a sum near zero depends on its rounding: such a value moves by whole steps in
 * the other direction, in any float32 run. These values are few and scattered; a fault would show as a row with many wrong
 * weights or step sizes (part 1, the last gradient, depends on other rows). With the other rules float32 ends 1e-6 to 5e-6 of
 * the movement away; with one column, where the loss has a saddle near the first weights, sometimes 1e-4. */
static int near_enough(const struct run *run, uint32_t part, const struct distance *got, double cpu_rms) {
    int one = run->layout.dim == 1;
    if (run->rule.rule != RULE_RPROP) return got->rms <= (one ? 3e-4 : 2e-5) + 4 * cpu_rms;
    return got->values <= 0.02 && (one || part == 1 || got->rows == 0);
}

static void check_side(const struct run *run, int side) {
    const struct table64 *want = &run->want[side];
    const char *side_name = side ? "context" : "target";
    char *cpu = tables_records(&run->cpu, side, run->name), *gpu[PLACE_PAIRS];
    for (int p = 0; p < PLACE_PAIRS; p++) gpu[p] = tables_records(&run->gpu[p], side, run->name);
    for (uint32_t part = 0; part <= run->layout.slots; part++) {
        struct movement m = movement_of(want, run->first[side], part);
        struct distance c = distance_of(want, cpu, part, m.moved);
        CHECK(part || m.moved >= 0.03 * m.size, "%s: %s: weights of %.3g moved by %.3g", run->name, side_name, m.size,
              m.moved);
        CHECK(near_enough(run, part, &c, 0), "%s: %s part %u: the CPU %.3g from float64", run->name, side_name, part,
              c.rms);
        for (int p = 0; p < PLACE_PAIRS; p++) {
            struct distance g = distance_of(want, gpu[p], part, m.moved);
            CHECK(near_enough(run, part, &g, c.rms),
                  "%s, %s/%s: %s part %u: %.3g from float64, the CPU %.3g; %.3g of the values apart, %.3g of the rows",
                  run->name, PLACES[p][0].name, PLACES[p][1].name, side_name, part, g.rms, c.rms, g.values, g.rows);
        }
    }
    CHECK(table64_other_updates(want, cpu) == ROWS, "%s: %s: the CPU's counts of updates", run->name, side_name);
    for (int p = 0; p < PLACE_PAIRS; p++) {
        CHECK(table64_other_updates(want, gpu[p]) == ROWS, "%s, %s/%s: %s: counts of updates", run->name,
              PLACES[p][0].name, PLACES[p][1].name, side_name);
        free(gpu[p]);
    }
    free(cpu);
}

static void check_losses(const struct run *run) {
    double near = run->rule.rule == RULE_RPROP ? 1e-3 : run->layout.dim == 1 ? 1e-4 : 1e-5;
    CHECK(run->cpu_loss <= near, "%s: the CPU's loss %.3g from float64", run->name, run->cpu_loss);
    for (int p = 0; p < PLACE_PAIRS; p++)
        CHECK(run->gpu_loss[p] <= near, "%s, %s/%s: loss %.3g from float64, the CPU's %.3g", run->name,
              PLACES[p][0].name, PLACES[p][1].name, run->gpu_loss[p], run->cpu_loss);
}

static void compare_runs(struct backend *cpu, struct backend *gpu, const struct rule_case *rule, uint32_t dim, int mean,
                         const struct example_source *source, const char *source_name) {
    struct run run = {.rule = rule->options, .mean = mean};
    run.rule.lr = rate_of(&run.rule, mean ? 1 : BATCH);
    run.rule.step_max = 3e-3; /* bounds rprop's steps, so that a gradient of the wrong sign moves a value by little */
    run.layout = layout_of(&run.rule, dim);
    snprintf(run.name, sizeof run.name, "%s, dim %u, %s, %s", rule->name, dim, source_name, mean ? "mean" : "sum");
    for (int side = 0; side < 2; side++) {
        run.first[side] = first_records(&run.rule, &run.layout, ROWS);
        run.want[side] = table64_of(&run.layout, ROWS, run.first[side]);
    }
    int steps = 0, opened = !open_tables(&run, cpu, gpu);
    while (opened && steps < STEPS && !run_step(&run, (uint64_t)steps, example_count(source))) steps++;
    CHECK(steps == STEPS, "%s: ended at step %d", run.name, steps);
    if (steps == STEPS) {
        check_side(&run, 0);
        check_side(&run, 1);
        check_losses(&run);
    }
    tables_close(&run.cpu);
    for (int p = 0; p < PLACE_PAIRS; p++) tables_close(&run.gpu[p]);
    for (int side = 0; side < 2; side++) {
        free(run.first[side]);
        table64_free(&run.want[side]);
    }
}

void test_runs(void) {
    static const uint32_t dims[] = {1, 31, 32, 33, 100, 128, 300, 400, 496};
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, PLACE_PAIRS);
    struct rule_case rules[32];
    int count = rule_cases(rules);
    struct corpus c;
    corpus_make(&c, ROWS, 400, 12);
    for (int kind = 0; kind < 3; kind++) {
        static const char *kinds[] = {"windows that share negatives", "lists, few contexts", "lists, 40 contexts"};
        struct example_source s = source_of(&c, kind ? EXAMPLE_LIST : EXAMPLE_WINDOW);
        s.noise = kind == 2 ? NOISE_UNIFORM : NOISE_UNIGRAM;
        s.shuffle = 1;
        s.short_repeat = 1;
        if (kind == 2) s.negatives = 36;
        if (backend_cpu.source(cpu, &s) || backend_cuda.source(gpu, &s)) CHECK(0, "source");
        for (int r = 0; r < count; r++)
            for (int d = 0; d < (int)(sizeof dims / sizeof *dims); d++)
                if ((r + d) % 3 == kind) /* each rule is run with each kind, both with the mean and with the sum of gradients */
                    compare_runs(cpu, gpu, &rules[r], dims[d], (r + d) / 3 % 2, &s, kinds[kind]);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
    corpus_free(&c);
}
