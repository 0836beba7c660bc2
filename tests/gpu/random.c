/* Trains random runs (choice.h), each several times: with other threads, with more or fewer batches in flight, and with whole tables on the GPU and
 * one batch at a time. All must end in the same bytes, and the CPU must end near them. Rows that are never targets may be absent from a target table;
 * in a whole table they must not change.
 *
 *   SPTX_RANDOM_SEED=N   seed of the first run (default 1)
 *   SPTX_RANDOM_RUNS=N   number of runs (default 200; 12 without a GPU)
 *
 * A run that fails prints its seed and its choices; SPTX_RANDOM_SEED=seed SPTX_RANDOM_RUNS=1 repeats it.
 */
#include "choice.h"

#include "train/steps.h"

enum { TOUCHED_ROWS = 50, DESCRIPTION = 1200 };

struct outcome {
    char *records[2];
    double loss, held_out_loss;
    uint64_t examples, pairs, terms, words;
    uint64_t touched; /* checksum of the rows that were read during training */
};

/* ---- one run ---- */

struct training {
    const struct choice *choice;
    const struct machine *machine;
    struct tables tables;
    struct pipeline pipeline;
    struct outcome *out;
    uint64_t step, steps;
};

/* CPU backend that makes the batches for set_batch, in steps that do not use make_batch. */
static struct backend *arrays_maker;
static const struct backend_ops *arrays_for;

static int make_from_arrays(struct backend *backend, unsigned stage, const struct batch_request *request) {
    struct batch_view view;
    return backend_cpu.make_batch(arrays_maker, 0, request) || backend_cpu.batch_view(arrays_maker, 0, &view) ||
                   arrays_for->set_batch(backend, stage, &view)
               ? -1
               : 0;
}

static void take_result(struct outcome *out, const struct step_result *r) {
    out->loss += r->loss;
    out->examples += r->examples;
    out->pairs += r->pairs;
    out->terms += r->terms;
    out->words += r->words;
}

static int empty_pipeline(struct training *t) {
    struct step_result result;
    int more;
    while ((more = pipeline_next(&t->pipeline, &result)) > 0) take_result(t->out, &result);
    return more;
}

/* Does a step with no other batch in flight, and drains the backend between its calls. */
static int step_apart(struct training *t, const struct batch_request *batch, const struct step_request *step) {
    const struct backend_ops *ops = t->tables.ops;
    struct backend *backend = t->tables.backend;
    unsigned stage = t->pipeline.next;
    struct step_result result;
    if (empty_pipeline(t) || ops->make_batch(backend, stage, batch) || ops->drain(backend) ||
        ops->step(backend, stage, step) || ops->drain(backend) || ops->result(backend, stage, &result))
        return -1;
    take_result(t->out, &result);
    return 0;
}

static int step_in_pipeline(struct training *t, const struct batch_request *batch, const struct step_request *step,
                            int as_arrays) {
    struct backend_ops arrays = *t->tables.ops;
    struct step_result oldest;
    int came;
    arrays.make_batch = make_from_arrays;
    arrays_for = t->tables.ops;
    t->pipeline.ops = as_arrays ? &arrays : t->tables.ops;
    int result = pipeline_submit(&t->pipeline, batch, step, &oldest, &came);
    t->pipeline.ops = t->tables.ops;
    if (!result && came) take_result(t->out, &oldest);
    return result;
}

/* Reads some rows while batches are in flight, and writes them back unchanged. */
static int touch_rows(struct training *t) {
    const struct tables *tables = &t->tables;
    uint64_t from = t->choice->first_row, first = from + t->step * 7919 % (tables->rows - from), count = tables->rows - first;
    if (count > TOUCHED_ROWS) count = TOUCHED_ROWS;
    char *rows = need(count * tables->layout.packed);
    int result = 0;
    for (int side = 0; side < 2 && !result; side++) {
        result = tables->ops->table_read(tables->backend, tables->side[side], first, count, rows);
        for (uint64_t i = 0; i < count * tables->layout.packed && !result; i++)
            t->out->touched = (t->out->touched ^ (unsigned char)rows[i]) * 0x100000001B3u;
        if (!result) result = tables->ops->table_write(tables->backend, tables->side[side], first, count, rows);
    }
    free(rows);
    return result;
}

static int falls_on(uint64_t step, unsigned every) {
    return every && step % every == every - 1;
}

static int train_step(struct training *t, const struct batch_request *batch) {
    const struct choice *c = t->choice;
    double done = (double)t->step / (double)t->steps;
    struct step_request step = {.target = t->tables.side[0],
                                .context = t->tables.side[1],
                                .rule = &c->rule.options,
                                .loss = c->loss,
                                .lr = c->rule.options.lr * (1 - done / 2),
                                .global_step = t->step,
                                .mean = c->mean,
                                .loss_only = falls_on(t->step, c->loss_only)};
    int wrong = falls_on(t->step, c->apart) ? step_apart(t, batch, &step)
                                            : step_in_pipeline(t, batch, &step, falls_on(t->step, c->arrays));
    t->step++;
    return wrong || (falls_on(t->step, c->touched) && touch_rows(t)) ? -1 : 0;
}

/* Measures held-out examples at the end of an epoch, in the first stage, as the trainer does. */
static int step_held_out(struct training *t, uint64_t examples) {
    const struct backend_ops *ops = t->tables.ops;
    struct step_request step = {
        .target = t->tables.side[0], .context = t->tables.side[1], .rule = &t->choice->rule.options, .loss = t->choice->loss,
        .loss_only = 1};
    struct step_result result;
    for (uint64_t first = 0; first < examples; first += t->choice->batch) {
        uint64_t left = examples - first;
        struct batch_request batch = {0, first, left < t->choice->batch ? left : t->choice->batch, 1};
        if (ops->make_batch(t->tables.backend, 0, &batch) || one_step(&t->tables, 0, &step) ||
            ops->result(t->tables.backend, 0, &result))
            return -1;
        t->out->held_out_loss += result.loss;
    }
    return 0;
}

static int train_epochs(struct training *t, const struct example_source *s) {
    const struct choice *c = t->choice;
    uint64_t examples = example_count(s), batches = (examples + c->batch - 1) / c->batch;
    t->steps = c->epochs * batches;
    for (uint32_t epoch = 0; epoch < c->epochs; epoch++) {
        for (uint64_t first = 0; first < examples; first += c->batch) {
            uint64_t left = examples - first;
            struct batch_request batch = {epoch, first, left < c->batch ? left : c->batch, 0};
            if (train_step(t, &batch)) return -1;
        }
        if (c->flowing && epoch + 1 < c->epochs) continue;
        if (empty_pipeline(t) || t->tables.ops->drain(t->tables.backend)) return -1;
        if (s->held_out && step_held_out(t, examples)) return -1;
    }
    return 0;
}

static int train(struct outcome *out, const struct choice *c, const struct example_source *s,
                 const struct backend_ops *ops, const struct machine *machine, char *const first[2]) {
    struct training t = {.choice = c, .machine = machine, .out = out};
    struct backend *backend = open_with_threads(ops, machine->depth, machine->threads);
    *out = (struct outcome){.loss = 0};
    int wrong = tables_open_frozen(&t.tables, ops, backend, &c->rule.options, c->dim, c->rows, machine->placing,
                                   c->frozen_rows) ||
                tables_fill(&t.tables, (const char *const *)first) || ops->source(backend, s);
    pipeline_init(&t.pipeline, ops, backend, machine->depth);
    wrong = wrong || train_epochs(&t, s);
    for (int side = 0; side < 2 && !wrong; side++) {
        out->records[side] = need(c->rows * t.tables.layout.packed);
        memcpy(out->records[side], first[side], c->rows * t.tables.layout.packed); /* rows that the tables lack do not change */
        wrong = tables_read(&t.tables, side, out->records[side]);
    }
    tables_close(&t.tables);
    ops->close(backend);
    return wrong ? -1 : 0;
}

static void outcome_free(struct outcome *out) {
    for (int side = 0; side < 2; side++) free(out->records[side]);
}

/* ---- the same bytes ---- */

/* Returns the first row that differs, or `rows`. *how_many: the number of rows that differ. */
static uint64_t first_difference(const char *a, const char *b, uint64_t rows, uint64_t bytes, uint64_t *how_many) {
    uint64_t first = rows;
    *how_many = 0;
    for (uint64_t row = 0; row < rows; row++) {
        if (!memcmp(a + row * bytes, b + row * bytes, bytes)) continue;
        if (first == rows) first = row;
        ++*how_many;
    }
    return first;
}

static void check_same(const struct choice *c, const struct outcome *want, const struct outcome *got,
                       const struct machine *machine, const char *text) {
    struct record_layout layout = layout_of(&c->rule.options, c->dim);
    CHECK(want->loss == got->loss && want->held_out_loss == got->held_out_loss && want->touched == got->touched &&
              want->examples == got->examples && want->pairs == got->pairs && want->terms == got->terms &&
              want->words == got->words,
          "%s: threads %u, depth %u: loss %.17g and held out %.17g, wanted %.17g and %.17g; pairs %llu, wanted %llu; "
          "rows on "
          "the way %s",
          text, machine->threads, machine->depth, got->loss, got->held_out_loss, want->loss, want->held_out_loss,
          (unsigned long long)got->pairs, (unsigned long long)want->pairs,
          want->touched == got->touched ? "alike" : "differ");
    for (int side = 0; side < 2; side++) {
        uint64_t many, row = first_difference(want->records[side], got->records[side], c->rows, layout.packed, &many);
        CHECK(row == c->rows, "%s: threads %u, depth %u, %s: %llu %s rows differ, the first %llu", text,
              machine->threads, machine->depth, machine->placing[0].name, (unsigned long long)many,
              side ? "context" : "target", (unsigned long long)row);
    }
}

/* ---- near the CPU ---- */

/* A step of bfloat16, as a share of the value. Two sums that differ by rounding may be rounded to neighbouring bfloat16 values;
 * the two runs then differ by a step. A row may have one step in each of its columns; over all rows one value in a hundred may
 * differ. */
#define ROUNDING_STEP (1.0 / 128)

/* Distance between two runs in one part of a table (the weights, or a slot), and how far the run moved that part. */
struct distance {
    double apart, moved, size; /* root mean squares of the difference, of the movement and of the values */
    double rows;               /* share of rows whose difference is more than a hundredth of their movement */
};

static struct distance distance_of(const struct record_layout *layout, uint64_t rows, uint32_t part, const char *a,
                                   const char *b, const char *first) {
    double apart = 0, moved = 0, size = 0, count = (double)rows * layout->dim;
    double step = layout->halves ? ROUNDING_STEP : 0;
    uint64_t wrong = 0;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t at = row * layout->packed;
        double row_apart = 0, row_moved = 0, row_size = 0;
        for (uint32_t i = 0; i < layout->dim; i++) {
            double x = value_of(layout, a + at, part, i), y = value_of(layout, b + at, part, i);
            double d = x - y, m = y - value_of(layout, first + at, part, i);
            row_apart += d * d, row_moved += m * m, row_size += y * y;
        }
        wrong += !(sqrt(row_apart) <= 1e-2 * sqrt(row_moved) + (1e-5 + step) * sqrt(row_size));
        apart += row_apart, moved += row_moved, size += row_size;
    }
    return (struct distance){sqrt(apart / count), sqrt(moved / count), sqrt(size / count),
                             (double)wrong / (double)rows};
}

/* Number of runs that measure the effect of rounding: the CPU repeats the run with first weights changed in their last bit.
 * Rules that divide by a gradient's size, or use its sign, magnify such a change. If the rule uses the sign, a sum near zero may
 * change its sign by chance, so more of these runs are needed. */
enum { NUDGES = 8 };

/* The largest distances of these runs, by side and part. */
struct nudged {
    struct distance most[2][1 + RULE_SLOTS];
    double loss;
};

static double loss_apart(const struct outcome *a, const struct outcome *b) {
    return fabs(a->loss - b->loss) + fabs(a->held_out_loss - b->held_out_loss);
}

static void note_distances(struct nudged *nudged, const struct choice *c, const struct outcome *got, const struct outcome *cpu,
                           char *const first[2]) {
    struct record_layout layout = layout_of(&c->rule.options, c->dim);
    nudged->loss = fmax(nudged->loss, loss_apart(got, cpu));
    for (int side = 0; side < 2; side++)
        for (uint32_t part = 0; part <= layout.slots; part++) {
            struct distance n = distance_of(&layout, c->rows, part, got->records[side], cpu->records[side], first[side]);
            struct distance *most = &nudged->most[side][part];
            most->apart = fmax(most->apart, n.apart);
            most->rows = fmax(most->rows, n.rows);
        }
}

/* Returns the relative difference of two sums of n floats in different orders: about the square root of n last bits. */
static double rounding_of(const struct choice *c) {
    return 1e-5 * sqrt(fmax(1, c->places / 8192));
}

static void check_near(const struct choice *c, const struct outcome *cpu, const struct nudged *nudged,
                       const struct outcome *got, char *const first[2], const char *text) {
    struct record_layout layout = layout_of(&c->rule.options, c->dim);
    double loss = fabs(cpu->loss) + fabs(cpu->held_out_loss), off = loss_apart(got, cpu);
    if (c->loss.negative_power > 0) loss += (double)cpu->pairs; /* it is a difference, which may be near zero */
    CHECK(got->examples == cpu->examples && got->pairs == cpu->pairs && got->terms == cpu->terms &&
              got->words == cpu->words,
          "%s: pairs %llu, the CPU's %llu; terms %llu, the CPU's %llu", text, (unsigned long long)got->pairs,
          (unsigned long long)cpu->pairs, (unsigned long long)got->terms, (unsigned long long)cpu->terms);
    CHECK(off <= (layout.halves ? 1e-4 : 1e-5) * loss + 20 * nudged->loss, "%s: loss %.9g, the CPU's %.9g", text, got->loss,
          cpu->loss);
    for (int side = 0; side < 2; side++)
        for (uint32_t part = 0; part <= layout.slots; part++) {
            struct distance n = nudged->most[side][part];
            struct distance g =
                distance_of(&layout, c->rows, part, got->records[side], cpu->records[side], first[side]);
            double steps = layout.halves ? ROUNDING_STEP / 10 * g.size : 0;
            CHECK(g.apart <= rounding_of(c) * g.moved + 1e-6 * g.size + steps + 20 * n.apart && g.rows <= 0.002 + 4 * n.rows,
                  "%s: %s part %u: %.3g from the CPU (which moved by %.3g, and by a last bit's %.3g), %.3g of the rows "
                  "(%.3g)",
                  text, side ? "context" : "target", part, g.apart, g.moved, n.apart, g.rows, n.rows);
        }
}

static char *nudge(const char *records, const struct record_layout *layout, uint64_t rows) {
    char *nudged = need(rows * layout->packed);
    memcpy(nudged, records, rows * layout->packed);
    for (uint64_t row = 0; row < rows; row++) {
        char *record = nudged + row * layout->packed;
        for (uint32_t i = 0; i < layout->dim && !layout->halves; i++)
            set_value(layout, record, 0, i, nextafterf((float)value_of(layout, record, 0, i), random_bits() & 1 << 20 ? 1 : -1));
    }
    return nudged;
}

/* Repeats the CPU's run with first weights changed in their last bit. For bfloat16 that change would be too large; instead the
 * learning rate's last bits are changed. */
static int train_nudged(struct nudged *nudged, const struct choice *of, const struct example_source *s,
                        const struct machine *machine, char *const first[2], const struct outcome *cpu) {
    struct choice off_rate = *of, *c = &off_rate;
    struct record_layout layout = layout_of(&c->rule.options, c->dim);
    if (layout.halves) c->rule.options.lr *= 1 + 1e-6;
    int runs = c->rule.options.rule == RULE_RPROP ? NUDGES : 1, wrong = 0;
    for (int run = 0; run < runs && !wrong; run++) {
        char *off[2] = {nudge(first[0], &layout, c->rows), nudge(first[1], &layout, c->rows)};
        struct outcome got = {0};
        wrong = train(&got, c, s, &backend_cpu, machine, off);
        if (!wrong) note_distances(nudged, c, &got, cpu, first);
        outcome_free(&got);
        for (int side = 0; side < 2; side++) free(off[side]);
    }
    return wrong;
}

/* ---- the whole ---- */

static void check_choice(const struct backend_ops *tested, uint64_t seed) {
    char text[DESCRIPTION];
    struct choice c = choice_make(seed);
    struct machine alike = {.threads = 16, .depth = 1}, machines[3];
    struct corpus corpus;
    struct record_layout layout = layout_of(&c.rule.options, c.dim);
    struct outcome want = {0}, got = {0}, cpu = {0};
    struct nudged nudged = {0};
    choice_describe(&c, text, sizeof text);
    machines[0] = c.machine, machines[1] = machine_other(&c.machine, seed), machines[2] = machine_plain(&c.machine);
    choice_corpus(&c, &corpus);
    struct example_source s = choice_source(&c, &corpus);
    char *first[2] = {first_records(&c.rule.options, &layout, c.rows), first_records(&c.rule.options, &layout, c.rows)};
    choice_freeze(&c);
    arrays_maker = open_or_stop(&backend_cpu, 1);
    int ok = !backend_cpu.source(arrays_maker, &s) && !train(&want, &c, &s, tested, &machines[0], first);
    CHECK(ok, "%s", text);
    for (int i = 1; i < 3 && ok; i++) {
        ok = !train(&got, &c, &s, tested, &machines[i], first);
        CHECK(ok, "%s: threads %u, depth %u", text, machines[i].threads, machines[i].depth);
        if (ok) check_same(&c, &want, &got, &machines[i], text);
        outcome_free(&got);
    }
    for (int side = 0; side < 2; side++) alike.placing[side] = machines[2].placing[side];
    if (ok) {
        ok = !train(&cpu, &c, &s, &backend_cpu, &alike, first) && !train_nudged(&nudged, &c, &s, &alike, first, &cpu);
        CHECK(ok, "%s: on the CPU", text);
        if (ok) check_near(&c, &cpu, &nudged, &want, first, text);
    }
    outcome_free(&want), outcome_free(&cpu);
    for (int side = 0; side < 2; side++) free(first[side]);
    choice_thaw(&c);
    backend_cpu.close(arrays_maker);
    corpus_free(&corpus);
}

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

void test_random(const struct backend_ops *tested) {
    uint64_t first = number_of("SPTX_RANDOM_SEED", 1),
             count = number_of("SPTX_RANDOM_RUNS", tested == &backend_cpu ? 12 : 200);
    for (uint64_t i = 0; i < count; i++) check_choice(tested, first + i);
}
