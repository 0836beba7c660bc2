#include "bench.h"

#include "base/memory.h"
#include "pipeline.h"
#include "base/progress.h"
#include "base/report.h"
#include "kernels/ranks.h"
#include "rates.h"
#include "run/schedule.h"
#include "session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PHASE_STEPS = 20,   /* measured phase by phase */
    RANK_WARM_STEPS = 20, /* by which ranks find how many they have the time for */
    SAMPLE_ROWS = 4096, /* of a table that is checked */
};
static const double warm_share = 0.1;     /* of the asked time */
static const double piece_seconds = 0.25; /* of one lock-free call */

/* ---- the machine ---- */

/* What plans then know, too. */
static int measure_limits(const struct backend_ops *ops, struct backend *backend, const struct backend_info *machine,
                          struct bench_limits *limits) {
    if (!ops->bench_limits) return 0;
    if (ops->bench_limits(backend, limits)) return -1;
    rates_keep(machine, limits);
    return 0;
}

int bench_open(struct bench *bench, const struct config *config) {
    struct backend_options options = {.threads = (unsigned)config->device_threads,
                                      .index = (unsigned)config->device_index,
                                      .depth = (unsigned)config->memory_depth,
                                      .gpu_budget = config->memory_gpu_budget};
    *bench = (struct bench){0};
    if (config_backend(config, &bench->ops) || bench->ops->open(&bench->backend, &options)) return -1;
    if (bench->ops->info(bench->backend, &bench->machine)) return -1;
    return measure_limits(bench->ops, bench->backend, &bench->machine, &bench->limits);
}

void bench_close(struct bench *bench) {
    if (bench->backend) bench->ops->close(bench->backend);
    bench->backend = NULL;
}

int bench_table_open(struct bench *bench, enum place place, uint64_t rows, uint32_t dim, const char *path,
                     struct backend_table **table) {
    const struct rule_options plain = {.rule = RULE_SGD}; /* weights alone */
    struct table_spec spec = {.name = "measured",
                              .rows = rows,
                              .weights = place,
                              .state = place,
                              .file_path = path,
                              .layout = record_layout_make(&plain, dim)};
    return bench->ops->table_open(bench->backend, &spec, table);
}

/* ---- memory ---- */

static int check_sample(struct bench *bench, struct backend_table *table, uint64_t rows, uint32_t dim) {
    uint64_t count = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS, first = rows - count;
    float *given = mem_alloc(count * dim, sizeof *given, "a sample of rows"),
          *got = mem_alloc(count * dim, sizeof *got, "a sample of rows");
    int result = -1;
    if (!given || !got) goto out;
    for (uint64_t i = 0; i < count * dim; i++) given[i] = (float)(i % 1000003);
    if (bench->ops->table_write(bench->backend, table, first, count, given) ||
        bench->ops->table_read(bench->backend, table, first, count, got))
        goto out;
    if (memcmp(given, got, count * dim * sizeof *given))
        fail("rows %" PRIu64 " to %" PRIu64 " came back otherwise than they were written", first, rows - 1);
    else
        result = 0;
out:
    free(given);
    free(got);
    return result;
}

int bench_memory(struct bench *bench, uint64_t rows, uint32_t dim, struct bench_memory *out) {
    struct backend_info before, after;
    struct backend_table *table = NULL;
    uint64_t resident = mem_resident();
    double began = progress_now();
    int result = -1;
    *out = (struct bench_memory){.rows = rows, .dim = dim, .payload = rows * dim * sizeof(float)};
    if (bench->ops->info(bench->backend, &before) || bench_table_open(bench, PLACE_PINNED, rows, dim, NULL, &table))
        goto out;
    out->opening = progress_now() - began;
    began = progress_now();
    if (check_sample(bench, table, rows, dim) || bench->ops->info(bench->backend, &after)) goto out;
    out->checking = progress_now() - began;
    out->host_bytes = after.host_used - before.host_used;
    out->gpu_bytes = after.gpu_used - before.gpu_used;
    out->resident = mem_resident() - resident;
    result = 0;
out:
    if (table) bench->ops->table_close(bench->backend, table);
    return result;
}

/* ---- train ---- */

struct training {
    struct config *config;
    struct session session;
    const struct backend_ops *ops; /* the session's */
    struct backend *backend;
    struct bench_training *out;
    struct ranks *ranks;
    uint64_t per_epoch, batch, total; /* examples */
    uint64_t epoch, position, step;
};

static int prepare(struct training *t) {
    struct config *c = t->config;
    struct session *s = &t->session;
    if (session_open(s, c, t->ranks, NULL)) return -1;
    t->out->plan = s->plan;
    t->out->gpu = s->ops->has_gpu;
    /* Limits first: what they are measured with is given back before tables take all of the budget that the plan has. */
    if (measure_limits(s->ops, s->backend, &s->machine, &t->out->limits)) return -1;
    planner_set_floor(&t->out->plan, &t->out->limits);
    if (session_tables(s) || session_fill(s)) return -1;
    ranks_patience(t->ranks, c->device_rank_timeout, 1);
    t->ops = s->ops;
    t->backend = s->backend;
    t->batch = s->plan.batch;
    t->per_epoch = example_count(&s->examples.source);
    t->total = t->per_epoch * (c->train_epochs ? c->train_epochs : 1);
    return 0;
}

static double rate_at(const struct training *t) {
    double done = (double)(t->epoch * t->per_epoch + t->position) / (double)t->total;
    return schedule_rate(t->config, done > 1 ? 1 : done);
}

/* The next `count` examples at most; short at an epoch's end. */
static struct batch_request next_batch(struct training *t, uint64_t count) {
    uint64_t left = t->per_epoch - t->position;
    struct batch_request batch = {(uint32_t)t->epoch, t->position, count < left ? count : left, 0, t->session.context.store};
    t->position += batch.count;
    if (t->position == t->per_epoch) t->position = 0, t->epoch++;
    t->step++;
    return batch;
}

static struct step_request step_of(const struct training *t) {
    return (struct step_request){.target = t->session.target.store,
                                 .context = t->session.context.store,
                                 .rule = &t->session.target.rule,
                                 .loss = config_loss(t->config),
                                 .lr = rate_at(t),
                                 .global_step = t->step,
                                 .mean = t->config->train_reduction == REDUCTION_MEAN};
}

/* Ranks do the same number of steps: as many as the slowest has the time for. */
static uint64_t steps_for(const struct training *t, double seconds) {
    double own = t->out->steps / t->out->seconds * seconds, all[ranks_count(t->ranks)];
    ranks_exchange(t->ranks, &own, all, sizeof own);
    for (unsigned r = 0; r < ranks_count(t->ranks); r++)
        if (all[r] < own) own = all[r];
    return own > 1 ? (uint64_t)own : 1;
}

static void count_step(struct bench_training *out, const struct step_result *r) {
    out->words += r->words;
    out->examples += r->examples;
    out->pairs += r->pairs;
    out->link_bytes += r->link_bytes;
    if (r->pairs) out->loss_pair = r->loss / (double)r->pairs;
}

static void clear_counts(struct bench_training *out) {
    out->words = out->examples = out->pairs = out->link_bytes = out->row_bytes = 0;
    out->calling = 0;
}

/* Until `seconds` are over, or `steps` steps are done where not 0. */
static int run_batches(struct training *t, double seconds, uint64_t steps) {
    struct bench_training *out = t->out;
    struct pipeline pipeline;
    struct step_result result;
    int came, more;
    double began = progress_now();
    clear_counts(out);
    pipeline_init(&pipeline, t->ops, t->backend, (unsigned)t->config->memory_depth);
    for (out->steps = 0; steps ? out->steps < steps : progress_now() - began < seconds; out->steps++) {
        struct step_request step = step_of(t);
        struct batch_request batch = next_batch(t, t->batch);
        if (pipeline_submit(&pipeline, &batch, &step, &result, &came)) return -1;
        if (came) count_step(out, &result);
    }
    while ((more = pipeline_next(&pipeline, &result)) > 0) count_step(out, &result);
    if (more || t->ops->drain(t->backend)) return -1;
    out->seconds = progress_now() - began;
    return 0;
}

/* Rows that blocks name: T targets and the contexts of each block. Where pairs have negatives of their own a window's word
 * in the middle, which all its blocks name, is counted once a pair. */
static uint64_t rows_named(const struct example_source *s, const struct hogwild_result *r) {
    uint64_t contexts = 1 + (uint64_t)s->negatives;
    if (!s->per_pair) return r->pairs + r->examples * contexts;
    return r->pairs * contexts + (s->mode == EXAMPLE_WINDOW ? r->pairs : r->examples);
}

static int run_hogwild(struct training *t, double seconds, uint64_t steps) {
    struct bench_training *out = t->out;
    uint64_t piece = t->batch;
    double began = progress_now();
    clear_counts(out);
    for (out->steps = 0; steps ? out->steps < steps : progress_now() - began < seconds; out->steps++) {
        struct hogwild_request request = {
            .target = t->session.target.store,
            .context = t->session.context.store,
            .rule = &t->session.target.rule,
            .lr_first = rate_at(t)};
        struct batch_request batch = next_batch(t, piece);
        struct hogwild_result r;
        double started = progress_now();
        request.epoch = batch.epoch, request.first = batch.first, request.count = batch.count,
        request.lr_last = rate_at(t);
        if (t->ops->hogwild(t->backend, &request, &r)) return -1;
        double took = progress_now() - started;
        if (took < piece_seconds && batch.count == piece) piece *= 2;
        count_step(out, &(struct step_result){
                            .examples = r.examples, .pairs = r.pairs, .words = r.words, .link_bytes = r.link_bytes});
        out->calling += took;
        out->row_bytes += 2 * rows_named(&t->session.examples.source, &r) * t->out->plan.layout.span * sizeof(float);
        if (r.sampled_pairs) out->loss_pair = r.loss / (double)r.sampled_pairs;
    }
    out->seconds = progress_now() - began;
    return 0;
}

/* Waits, and adds what has passed since *began to a phase. */
static int end_phase(struct training *t, enum bench_phase phase, double *began) {
    if (t->ops->drain(t->backend)) return -1;
    double now = progress_now();
    t->out->phase[phase] += now - *began;
    *began = now;
    return 0;
}

/* The step of a batch as if the own columns were all. Its new values are as good for measuring as any. */
static int measure_alone(struct training *t, struct step_request *step) {
    const struct backend_ops *ops = t->ops;
    struct step_result result;
    struct batch_request batch = next_batch(t, t->batch);
    step->apart = 1;
    if (ops->make_batch(t->backend, 0, &batch) || ops->gather(t->backend, 0, step) || ops->drain(t->backend)) return -1;
    double began = progress_now();
    if (ops->step(t->backend, 0, step) || end_phase(t, PHASE_ALONE, &began) || ops->scatter(t->backend, 0, step)) return -1;
    return ops->result(t->backend, 0, &result);
}

static int measure_phases(struct training *t) {
    const struct backend_ops *ops = t->ops;
    struct backend *backend = t->backend;
    struct step_result result;
    if (ranks_count(t->ranks) > 1) { /* a GPU loads a kernel when it first runs, and those of a rank alone have not */
        struct step_request step = step_of(t);
        if (measure_alone(t, &step)) return -1;
        t->out->phase[PHASE_ALONE] = 0;
    }
    for (int i = 0; i < PHASE_STEPS; i++) {
        struct step_request step = step_of(t);
        struct batch_request batch = next_batch(t, t->batch);
        double began = progress_now();
        if (ops->make_batch(backend, 0, &batch) || end_phase(t, PHASE_MAKE, &began) || ops->gather(backend, 0, &step) ||
            end_phase(t, PHASE_GATHER, &began) || ops->step(backend, 0, &step) || end_phase(t, PHASE_STEP, &began) ||
            ops->scatter(backend, 0, &step) || end_phase(t, PHASE_SCATTER, &began) || ops->result(backend, 0, &result))
            return -1;
        if (ranks_count(t->ranks) > 1 && measure_alone(t, &step)) return -1;
    }
    for (int i = 0; i < PHASES; i++) t->out->phase[i] /= PHASE_STEPS;
    t->out->phase_steps = PHASE_STEPS;
    return 0;
}

static int measure(struct training *t, double seconds, uint64_t steps) {
    int (*run)(struct training *, double, uint64_t) = t->out->hogwild ? run_hogwild : run_batches;
    uint64_t warm = steps ? steps / 10 + 1 : 0;
    if (ranks_count(t->ranks) > 1 && !steps) {
        if (run(t, 0, RANK_WARM_STEPS) || run(t, 0, RANK_WARM_STEPS)) return -1; /* the first ones make room, too */
        steps = steps_for(t, seconds);
        warm = steps_for(t, seconds * warm_share);
    }
    if (run(t, seconds * warm_share, warm) || run(t, seconds, steps)) return -1;
    return t->out->hogwild ? 0 : measure_phases(t);
}

int bench_train(struct bench_training *out, struct config *config, double seconds, uint64_t steps, struct ranks *ranks) {
    struct training t = {.config = config, .out = out, .ranks = ranks};
    double began = progress_now();
    *out = (struct bench_training){.hogwild = config->train_update == UPDATE_HOGWILD};
    int result = prepare(&t);
    out->loading = progress_now() - began;
    if (!result) result = measure(&t, seconds, steps);
    if (!result) result = t.ops->info(t.backend, &out->machine); /* stages have grown meanwhile */
    session_close(&t.session);
    return result;
}
