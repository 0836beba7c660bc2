/* planner: see planner.h. It works from counts, a few batches, keys and the machine's sizes, without allocating tables. Advice for a plan that
 * does not fit is tried, or computed from counted bytes, before it is given. */

#include "planner.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/planted.h"
#include "kernels/backend.h"
#include "run/model_files.h"
#include "warm_start.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { GPU_STREAM_PART = 4 }; /* the id stream is stored on the GPU if it needs at most 1 / GPU_STREAM_PART of the budget */

/* A plan that is being made, with its input. */
struct planning {
    struct plan *plan;
    const struct config *config;
    const struct planner_machine *machine;
    const struct examples *examples;
    struct batch_rows batch;      /* expected numbers of rows in a batch of plan->batch examples */
    int failed;                   /* 1: a count has failed, after fail() */
    struct example_source source; /* the source that the backend will receive */
    struct rule_options rule;
    int gpu, hogwild;
    int behind; /* 1: checkpoints are written while training continues */
    uint64_t idle; /* number of rows at the end of the target table that occur in no example */
    uint64_t budget;          /* bytes of GPU memory that the run may use; 0 without a GPU */
    uint64_t ordering; /* bytes of scratch for sorting the n-grams' buckets, freed before tables are allocated */
    uint64_t unmeasured_host; /* bytes of host memory that no backend counts: the program, the vocabulary, buffers for saving */
    struct estimate estimate; /* the backend's estimate for `plan` as it is now */
};

enum {
    HOGWILD_STEP = 131072,   /* number of positions that are counted as one step of lock-free training */
    CPU_WINDOW_BATCH = 8192, /* default batch on the CPU, in positions, for a corpus of sentences */
    CPU_ROW_BATCH = 1024,    /* default batch on the CPU, in lists or lines */
    USER_BATCH = 128,        /* default batch for examples.mode = user, in lists (one example each): many small steps learn more than few large
                              * ones, also on a GPU */
    USER_STEPS = 32,         /* fewest steps of an epoch in user mode; if lists or items are few, the batch is made so small that there are this
                              * many */
    USER_LEAST = 16,         /* the batch is not made smaller than this number of examples for USER_STEPS */
    SHARED_BATCH = 2048,     /* default batch for user with examples.targets = all, in items (one example each): larger, since most rows of a step
                              * are negatives, which the batch shares */
    TRIPLE_STEPS = 500,      /* triples: number of steps of an epoch with the default batch, within the next two sizes: with small batches Adagrad,
                              * whose first steps are as large as its rate, learns few triples */
    TRIPLE_LEAST = 128,
    TRIPLE_BATCH = 100000,
    TRIPLE_SCORES = 1 << 28, /* most scores of a default batch of triples (1 GiB); TRIPLE_LEAST may exceed it */
    SHARED_LEAST = 256,      /* a batch of items is not made smaller than this for USER_STEPS */
    GPU_BATCH = 16384,
    SMALLEST_BATCH = 256,
    GPU_WORK_PART = 4,        /* train.batch = auto is halved until batches in flight need at most 1 / GPU_WORK_PART of the GPU budget */
    BEHIND_LEAST = 256 << 20, /* tables of fewer bytes are written so fast that training waits for a checkpoint */
    SNAPSHOT_SPARE = 4096,    /* bytes on the GPU for the counts of two snapshots */
    PROGRAM_BYTES = 22 << 20, /* bytes of the program, its libraries, file buffers, and memory that the allocator keeps after reading the corpus */
};

/* ---- what the backend says ---- */

static struct table_spec spec_of(const struct plan *plan, enum table_side side) {
    int target = side == TABLE_TARGET;
    return (struct table_spec){.name = table_side_name(side),
                               .rows = target ? plan->rows - plan->blank_rows : plan->items,
                               .first_row = target ? plan->first_target : 0,
                               .layout = plan->layout,
                               .weights = target ? plan->target : plan->context,
                               .state = target ? plan->target_state : plan->context_state,
                               .hot_rows = plan->hot_rows};
}

/* Returns the most bytes of host memory that a snapshot of a table needs: copies of rows, and lists to find them. */
static uint64_t copies_of(const struct planning *p, enum table_side side) {
    struct table_spec spec = spec_of(p->plan, side);
    uint64_t row = table_row_bytes(&spec.layout, spec.weights, spec.state), rows = table_row_count(&spec);
    uint64_t most = table_snapshot_bytes(rows * row);
    return most + 3 * sizeof(uint32_t) * (most / row) + rows / 8;
}

/* Adds the memory for snapshots of both tables. On a GPU, the copies are in pinned memory, and the GPU keeps one bit for each row. */
static void add_snapshots(const struct planning *p, struct estimate *e) {
    uint64_t copies = copies_of(p, TABLE_TARGET) + copies_of(p, TABLE_CONTEXT);
    if (!p->behind) return;
    e->fixed.host += p->gpu ? 0 : copies;
    e->fixed.pinned += p->gpu ? copies + 4 * (uint64_t)TABLE_CHUNK : 0;
    e->fixed.gpu += p->gpu ? (p->plan->rows + p->plan->items) / 8 + SNAPSHOT_SPARE : 0;
}

/* Returns the backend's estimate for the plan's places and hot rows and for p->source. */
static struct estimate planning_estimate(const struct planning *p) {
    int freeze = p->config->train_freeze;
    struct estimate_request request = {.target = spec_of(p->plan, TABLE_TARGET),
                                       .context = spec_of(p->plan, TABLE_CONTEXT),
                                       .source = &p->source,
                                       .depth = (unsigned)p->config->memory_depth,
                                       .threads = p->machine->info.threads ? p->machine->info.threads : 1,
                                       .processors = p->machine->info.processors,
                                       .rule = &p->rule,
                                       .loss = config_loss(p->config),
                                       .ranks = p->plan->ranks,
                                       .frozen_targets = freeze == FREEZE_KNOWN || freeze == FREEZE_TARGET,
                                       .frozen_contexts = freeze == FREEZE_KNOWN || freeze == FREEZE_CONTEXT,
                                       .hogwild = p->hogwild};
    struct estimate estimate;
    p->machine->ops->estimate(&request, &estimate);
    add_snapshots(p, &estimate);
    return estimate;
}

static uint64_t planning_gpu(const struct estimate *e) {
    return e->tables.gpu + e->source.gpu + e->work.gpu + e->fixed.gpu;
}

static uint64_t host_bytes(const struct memory_bytes *bytes) {
    return bytes->pinned + bytes->host;
}
static uint64_t planning_host(const struct estimate *e) {
    return host_bytes(&e->tables) + host_bytes(&e->source) + host_bytes(&e->work) + host_bytes(&e->fixed);
}

static uint64_t gpu_needed(const struct planning *p) {
    struct estimate estimate = planning_estimate(p);
    return planning_gpu(&estimate);
}

/* ---- the batch ---- */

/* Returns which share of the examples is made into batches: 1, or in lock-free training the held-out share, one batch at a time. */
static double share_made(const struct planning *p) {
    return p->hogwild ? p->config->train_held_out : 1;
}

static int is_bounded(const struct planning *p) {
    struct example_sizes most;
    if (p->hogwild || (!p->gpu && p->source.mode == EXAMPLE_WINDOW)) return 0;
    return example_bound(&p->source, p->source.batch, &most);
}

/* Returns the expected size of a batch whose size has no upper bound; used in place of the largest batch's size until the whole corpus has been
 * read. */
static struct example_sizes expected_capacity(const struct planning *p) {
    double share = share_made(p);
    return (struct example_sizes){.blocks = (uint64_t)(p->batch.blocks * share),
                                  .targets = (uint64_t)(p->batch.targets.all * share),
                                  .contexts = (uint64_t)(p->batch.contexts.all * share),
                                  .terms = (uint64_t)(p->batch.terms * share)};
}

static void expect_batch(struct planning *p, uint64_t batch) {
    struct plan *plan = p->plan;
    plan->batch = batch;
    p->source.batch = examples_batch(p->examples, batch);
    INVARIANT(p->source.batch <= example_count(&p->source));
    if (host_count_rows(&p->source, 0, &p->batch)) p->failed = 1;
    p->source.capacity = is_bounded(p) ? (struct example_sizes){0} : expected_capacity(p);
    plan->batch_blocks = p->batch.blocks;
    plan->batch_pairs = p->batch.pairs;
    plan->batch_targets = p->batch.targets.distinct;
    plan->batch_contexts = p->batch.contexts.distinct;
}

static uint64_t user_batch(const struct planning *p) {
    int items = p->source.mode == EXAMPLE_ITEM;
    uint64_t batch = example_count(&p->source) / USER_STEPS, least = items ? SHARED_LEAST : USER_LEAST;
    uint64_t most = items ? SHARED_BATCH : USER_BATCH;
    return batch < least ? least : batch > most ? most : batch;
}

static uint64_t triple_batch(const struct planning *p) {
    uint64_t batch = example_count(&p->source) / TRIPLE_STEPS, most = TRIPLE_SCORES / p->source.negatives;
    if (most > TRIPLE_BATCH) most = TRIPLE_BATCH;
    if (batch > most) batch = most;
    return batch < TRIPLE_LEAST ? TRIPLE_LEAST : batch;
}

static void settle_batch(struct planning *p) {
    struct plan *plan = p->plan;
    int asked = p->config->train_batch != COUNT_AUTO, window = p->source.mode == EXAMPLE_WINDOW;
    int user = config_has_lists(p->config);
    expect_batch(p, asked        ? p->config->train_batch
                    : p->hogwild ? HOGWILD_STEP
                    : user       ? user_batch(p)
                    : p->source.mode == EXAMPLE_TRIPLE ? triple_batch(p)
                    : p->gpu     ? GPU_BATCH
                    : window     ? CPU_WINDOW_BATCH
                                 : CPU_ROW_BATCH);
    while (!asked && p->gpu && plan->batch > SMALLEST_BATCH && planning_estimate(p).work.gpu > p->budget / GPU_WORK_PART)
        expect_batch(p, plan->batch / 2);
    if (!is_bounded(p) && share_made(p) > 0) p->source.capacity = examples_capacity(p->examples, plan->batch, share_made(p));
    plan->capacity = p->source.capacity;
}

/* ---- places ---- */

/* Returns the place that a key of memory.* stands for. On the CPU, pinned and gpu are both plain memory. "auto" is the host until the batch is
 * known. */
static enum place settle(const struct planning *p, int wanted) {
    if (wanted == PLACE_FILE) return PLACE_FILE;
    return wanted == PLACE_GPU && p->gpu ? PLACE_GPU : PLACE_PINNED;
}

/* Puts the corpus on the GPU if everything fits there; otherwise the GPU reads it over the link. An id stream is read sequentially, which is cheap
 * over the link, so it may only use a small share of the budget; a graph is read at random. Returns 1 if everything fits. */
static int settle_stream(struct planning *p) {
    int graph = p->source.walks.length > 0;
    p->source.stream_on_host = !graph && example_stream_bytes(&p->source) > p->budget / GPU_STREAM_PART;
    if (gpu_needed(p) <= p->budget) return 1;
    p->source.stream_on_host = 1;
    return gpu_needed(p) <= p->budget;
}

/* Changes the place "auto" to "gpu" for each table for which the GPU has room. Contexts are tried first, since a step touches more of them. */
static void settle_auto_places(struct planning *p) {
    const struct config *config = p->config;
    struct plan *plan = p->plan;
    const struct {
        enum place *place;
        int wanted;
    } parts[] = {{&plan->context, config->memory_context},
                 {&plan->context_state, config->memory_context_state},
                 {&plan->target, config->memory_target},
                 {&plan->target_state, config->memory_target_state}};
    for (int i = 0; i < 4 && p->gpu; i++) {
        if (parts[i].wanted != PLACE_AUTO) continue;
        *parts[i].place = PLACE_GPU;
        if (!settle_stream(p)) *parts[i].place = PLACE_PINNED;
    }
    if (p->gpu) settle_stream(p);
}

/* ---- hot rows ---- */

static int fits_with_hot(const struct planning *p, uint64_t rows) {
    struct planning tried = *p;
    struct plan plan = *p->plan;
    plan.hot_rows = rows;
    tried.plan = &plan;
    return gpu_needed(&tried) <= p->budget;
}

/* Returns the most hot rows with which the plan fits the GPU budget; 0 also if it does not fit without hot rows. */
static uint64_t planning_fitting_rows(const struct planning *p) {
    uint64_t low = 0, high = p->plan->rows;
    if (fits_with_hot(p, high)) return high;
    while (high - low > 1) { /* `low` hot rows fit (or low is 0), `high` do not */
        uint64_t middle = low + (high - low) / 2;
        if (fits_with_hot(p, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int all_on_gpu(const struct plan *plan) {
    struct table_spec specs[] = {spec_of(plan, TABLE_TARGET), spec_of(plan, TABLE_CONTEXT)};
    for (int i = 0; i < 2; i++) {
        struct table_shape shape = table_shape(&specs[i], 1);
        for (unsigned j = 0; j < shape.stores; j++)
            if (shape.store[j].place != PLACE_GPU) return 0;
    }
    return 1;
}

static void settle_hot_rows(struct planning *p) {
    struct plan *plan = p->plan;
    uint64_t wanted = p->config->memory_hot_rows;
    if (!p->gpu || all_on_gpu(plan)) return;
    plan->hot_rows = wanted == COUNT_AUTO ? planning_fitting_rows(p) : wanted < plan->rows ? wanted : plan->rows;
    INVARIANT(plan->hot_rows <= plan->rows);
    if (plan->hot_rows && host_count_rows(&p->source, plan->hot_rows, &p->batch)) p->failed = 1;
    plan->hot_hits = p->batch.targets.all > 0 ? 1 - p->batch.targets.cold / p->batch.targets.all : 0;
}

/* ---- adding up ---- */

/* Adds up the bytes of a table's weights and state in each place. *one: 1 if both are in one record. */
static void measure_table(struct plan *plan, int gpu, enum table_side side, uint64_t *weights, uint64_t *state, int *one) {
    struct table_spec spec = spec_of(plan, side);
    struct table_shape shape = table_shape(&spec, gpu);
    uint64_t *parts[] = {weights, state};
    *one = shape.stores == 1;
    *state = 0;
    for (unsigned i = 0; i < shape.stores; i++) {
        const struct store_shape *store = &shape.store[i];
        uint64_t hot = store->place == PLACE_GPU ? 0 : store->on_gpu, rows = store->on_gpu + store->on_host;
        uint64_t *sum = store->place == PLACE_FILE  ? &plan->file_bytes
                        : store->place == PLACE_GPU ? &plan->gpu_bytes
                        : gpu                       ? &plan->pinned_bytes
                                                    : &plan->plain_bytes;
        *parts[i] = rows * store->stride;
        *sum += (rows - hot) * store->stride;
        plan->hot_bytes += hot * store->stride;
    }
}

static void measure_tables(struct planning *p) {
    struct plan *plan = p->plan;
    measure_table(plan, p->gpu, TABLE_TARGET, &plan->target_bytes, &plan->target_state_bytes, &plan->one_record_target);
    measure_table(plan, p->gpu, TABLE_CONTEXT, &plan->context_bytes, &plan->context_state_bytes, &plan->one_record_context);
}

/* Returns 1 if idle rows need no memory: on the CPU, with a single rank, unless train.from is set or the target table is in a file. */
static int stays_blank(const struct planning *p) {
    const char *from = p->config->train_from;
    return !p->gpu && p->plan->ranks == 1 && !(from && *from) && p->config->memory_target != PLACE_FILE;
}

/* Sets the plan's columns and record layout to those of the rank that has the most columns. */
static void settle_columns(struct planning *p, uint32_t dim) {
    struct plan *plan = p->plan;
    plan->dim = dim;
    plan->whole = record_layout_make(&p->rule, dim);
    plan->whole.complex = config_has_complex(p->config) != 0;
    plan->columns = record_columns(&plan->whole, plan->ranks, 0).count;
    plan->layout = record_layout_make(&p->rule, plan->columns);
    plan->blank_rows = stays_blank(p) ? table_blank_rows(plan->rows, p->idle, &plan->whole, 1) : 0;
}

/* Returns the bytes of both tables with another optimizer rule; 0 if that saves nothing. */
static uint64_t bytes_with(const struct planning *p, const struct rule_options *rule) {
    const struct plan *now = p->plan;
    struct planning tried = *p;
    struct plan plan = *now;
    tried.plan = &plan;
    tried.rule = *rule;
    settle_columns(&tried, now->dim);
    measure_tables(&tried);
    uint64_t bytes = plan_table_bytes(&plan);
    return bytes < plan_table_bytes(now) ? bytes : 0;
}

/* Computes how small the tables could be made, if a GPU cannot store all rows. */
static void measure_smaller(struct planning *p) {
    struct rule_options halved = p->rule, by_row = p->rule;
    if (!p->gpu || all_on_gpu(p->plan) || p->plan->hot_rows >= p->plan->rows) return;
    halved.precision = halved.state_precision = PRECISION_BFLOAT16;
    by_row.rule = RULE_ROWWISE_ADAGRAD;
    if (p->machine->ops->halves) p->plan->halved_bytes = bytes_with(p, &halved);
    if (p->rule.rule == RULE_ADAGRAD && p->plan->ranks == 1) p->plan->by_row_bytes = bytes_with(p, &by_row);
}

/* Returns how many of the needed bytes are allocated already, and so no longer part of the available memory. */
static uint64_t held_already(const struct plan *plan) {
    return plan->vocab_bytes + plan->draw_bytes;
}

static void measure_host(struct planning *p) {
    struct plan *plan = p->plan;
    uint64_t targets = plan->rows - plan->first_target, longest = targets > plan->items ? targets : plan->items;
    p->estimate = planning_estimate(p);
    p->unmeasured_host = PROGRAM_BYTES + held_already(plan) + plan->evaluate_bytes + warm_start_bytes(p->config, plan->rows) +
                         table_saving_bytes(longest, &plan->whole, plan->ranks) + p->machine->info.threads * POOL_THREAD_BYTES;
    plan->host_needed = planning_host(&p->estimate) + p->unmeasured_host;
    uint64_t before = PROGRAM_BYTES + plan->vocab_bytes + p->ordering; /* needed while n-grams are ordered */
    if (before > plan->host_needed) plan->host_needed = before;
}

/* Returns 1 if a run with `dim` columns would fit into host memory. */
static int planning_fits_host(const struct planning *p, uint32_t dim) {
    struct planning tried = *p;
    struct plan plan = *p->plan;
    tried.plan = &plan;
    settle_columns(&tried, dim);
    measure_host(&tried);
    return plan.host_needed <= plan.host_available;
}

/* Returns 1 if weights are float32, and the run would fit into host memory with weights and state in bfloat16. */
static int planning_fits_halved(const struct planning *p) {
    struct planning tried = *p;
    if (!p->machine->ops->halves || p->rule.precision == PRECISION_BFLOAT16) return 0;
    tried.rule.precision = tried.rule.state_precision = PRECISION_BFLOAT16;
    return planning_fits_host(&tried, p->plan->dim);
}

/* advice: finds changes that make a plan fit. Each change is tried before it is advised, or is computed from counted bytes. */

enum { LEAST_DIM = 4 };

/* Writes to plan->advice: "it needs A of WHAT and B can be had: ", then `format`, which says what to change. */
static void say_advice(const struct planning *p, uint64_t needed, const char *what, uint64_t available, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void say_advice(const struct planning *p, uint64_t needed, const char *what, uint64_t available, const char *format, ...) {
    char need[TEXT_BYTES], have[TEXT_BYTES], *advice = p->plan->advice;
    size_t capacity = sizeof p->plan->advice;
    size_t n = text_add(advice, capacity, 0, "it needs %s of %s and %s can be had: ", text_of_bytes(need, needed), what,
                        text_of_bytes(have, available));
    va_list args;
    va_start(args, format);
    vsnprintf(advice + n, capacity - n, format, args);
    va_end(args);
}

/* ---- the host ---- */

/* Returns the most columns, in steps of LEAST_DIM, with which the tables fit; 0 if none fits. `share`: available memory / memory that the tables
 * need now. */
static uint32_t fitting_dim(const struct planning *p, double share) {
    uint32_t dim = (uint32_t)((double)p->plan->dim * share) / LEAST_DIM * LEAST_DIM;
    while (dim && !planning_fits_host(p, dim)) dim = (dim - 1 - dim / 64) / LEAST_DIM * LEAST_DIM;
    return dim;
}

/* Writes plan->advice for a plan that does not fit into host memory. */
static void advise_host(const struct planning *p) {
    const struct plan *plan = p->plan;
    const char *files = p->gpu && p->hogwild ? "set train.update = batch and keep tables in files (memory.target = file)"
                                             : "keep tables in files (memory.target = file, memory.target_state = file; the same keys for context)";
    uint64_t tables = plan->pinned_bytes + plan->plain_bytes, rest = plan->host_needed - tables;
    uint64_t have = plan->host_available, left = have > rest ? have - rest : 0;
    uint32_t dim = tables && left < tables ? fitting_dim(p, (double)left / (double)tables) : 0;
    const char *halved = planning_fits_halved(p) ? "set model.precision = bfloat16, or " : "";
    char ids[TEXT_BYTES], budget[TEXT_BYTES];
    if (rest > have && rest - plan->stream_pinned <= have)
        say_advice(p, plan->host_needed, "memory", have,
                   "%s of it are the corpus ids, which the GPU reads from pinned memory; raise memory.gpu_budget to %s, or use device.backend = cpu",
                   text_of_bytes(ids, plan->stream_pinned), text_of_bytes(budget, GPU_STREAM_PART * plan->stream_pinned));
    else if (rest > have || (!p->gpu && plan->work_bytes > have / 2))
        say_advice(p, plan->host_needed, "memory", have, "lower train.batch (it is %" PRIu64 ") or corpus.max_vocab", plan->batch);
    else if (dim)
        say_advice(p, plan->host_needed, "memory", have, "%slower model.dim to %" PRIu32 ", or %s", halved, dim, files);
    else
        say_advice(p, plan->host_needed, "memory", have, "%s%s, or lower corpus.max_vocab", halved, files);
}

/* ---- the GPU ---- */

/* Returns 1 if the plan would fit the GPU budget without hot rows and with tables moved to the host: targets if `target` is 1, contexts if
 * `context` is 1. */
static int fits_off_gpu(const struct planning *p, int target, int context) {
    struct planning tried = *p;
    struct plan plan = *p->plan;
    plan.hot_rows = 0;
    if (target) plan.target = plan.target_state = PLACE_PINNED;
    if (context) plan.context = plan.context_state = PLACE_PINNED;
    tried.plan = &plan;
    struct estimate estimate = planning_estimate(&tried);
    return planning_gpu(&estimate) <= p->budget;
}

/* Returns the largest half, quarter, eighth .. of the batch with which the plan would fit the budget; 0 if none would. Assumes that work memory
 * shrinks in proportion. */
static uint64_t fitting_batch(const struct planning *p) {
    uint64_t work = p->estimate.work.gpu, others = p->plan->gpu_needed - work - p->plan->hot_bytes, asked = p->source.batch;
    if (others > p->budget) return 0;
    for (uint64_t batch = asked / 2; batch; batch /= 2) /* 1/64 more, since not all work memory shrinks with the batch */
        if ((double)work / (double)asked * (double)batch + (double)work / 64 <= (double)(p->budget - others)) return batch;
    return 0;
}

/* Writes plan->advice for a plan that fits into host memory but not into the GPU. */
static void advise_gpu(const struct planning *p) {
    const struct plan *plan = p->plan;
    uint64_t rows = planning_fitting_rows(p), batch = fitting_batch(p), need = plan->gpu_needed;
    if (fits_off_gpu(p, 0, 0))
        say_advice(p, need, "the GPU", p->budget, "lower memory.hot_rows to %" PRIu64 ", or set it to auto", rows);
    else if (fits_off_gpu(p, 1, 0))
        say_advice(p, need, "the GPU", p->budget, "set memory.target = pinned and memory.target_state = pinned");
    else if (fits_off_gpu(p, 0, 1))
        say_advice(p, need, "the GPU", p->budget, "set memory.context = pinned and memory.context_state = pinned");
    else if (batch)
        say_advice(p, need, "the GPU", p->budget, "lower train.batch to %" PRIu64, batch);
    else if (plan->gpu_bytes)
        say_advice(p, need, "the GPU", p->budget,
                   "set all four of memory.target, target_state, context and context_state to pinned, or lower train.batch");
    else
        say_advice(p, need, "the GPU", p->budget, "raise memory.gpu_budget, or lower train.batch or memory.depth");
}

/* Returns 1 if training shall continue while a checkpoint is written, as far as memory allows. */
static int goes_on(const struct planning *p) {
    struct table_spec target = spec_of(p->plan, TABLE_TARGET), context = spec_of(p->plan, TABLE_CONTEXT);
    uint64_t bytes = table_row_count(&target) * table_row_bytes(&target.layout, target.weights, target.state) +
                     table_row_count(&context) * table_row_bytes(&context.layout, context.weights, context.state);
    if (!p->config->run_checkpoint) return 0;
    if (p->config->run_checkpoint_wait != TRUTH_AUTO) return !p->config->run_checkpoint_wait;
    return !(p->gpu && p->hogwild) && p->plan->ranks == 1 && bytes >= BEHIND_LEAST;
}

/* Measures host memory. If it is too small for snapshots that the config does not demand, training waits for checkpoints. */
static void measure_host_for_checkpoints(struct planning *p) {
    struct plan *plan = p->plan;
    unsigned local = p->machine->local ? p->machine->local : 1;
    plan->host_available = p->machine->host_available ? p->machine->host_available / local + held_already(plan) : 0;
    measure_host(p);
    int fits = !plan->host_available || plan->host_needed <= plan->host_available;
    if (fits || !p->behind || p->config->run_checkpoint_wait != TRUTH_AUTO) return;
    p->behind = 0;
    measure_host(p);
}

static void add_up(struct planning *p) {
    struct plan *plan = p->plan;
    measure_host_for_checkpoints(p);
    plan->snapshot_bytes = p->behind ? copies_of(p, TABLE_TARGET) + copies_of(p, TABLE_CONTEXT) : 0;
    plan->work_bytes = p->gpu ? p->estimate.work.gpu : p->estimate.work.host;
    plan->stream_gpu = p->gpu && !p->source.stream_on_host ? example_stream_bytes(&p->source) : 0;
    plan->stream_pinned = p->gpu && p->source.stream_on_host ? example_stream_bytes(&p->source) : 0;
    plan->gpu_needed = planning_gpu(&p->estimate);
    plan->gpu_available = p->budget;
}

/* Returns which of a table's weights and state have rows in a file, as bits of enum hogwild_part: `weights` is the bit for the weights, the next
 * one is for the state. */
static unsigned parts_in_file(const struct plan *plan, enum table_side side, enum hogwild_part weights) {
    struct table_spec spec = spec_of(plan, side);
    unsigned bits = (spec.weights == PLACE_FILE) | (record_state_bytes(&spec.layout) && spec.state == PLACE_FILE) << 1;
    return spec.hot_rows < spec.rows ? bits << weights : 0;
}

static void judge(struct planning *p) {
    struct plan *plan = p->plan;
    plan->fits_host = !plan->host_available || plan->host_needed <= plan->host_available;
    plan->fits_gpu = plan->gpu_needed <= plan->gpu_available;
    /* Lock-free training may be unable to reach the rows where the plan stores them; the reason is then in plan->advice. */
    struct hogwild_asked asked = config_hogwild(p->config);
    asked.gpu = p->gpu;
    asked.in_file = parts_in_file(p->plan, TABLE_TARGET, HOGWILD_TARGET) | parts_in_file(p->plan, TABLE_CONTEXT, HOGWILD_CONTEXT);
    plan->fits = !(p->hogwild && hogwild_refuses(&asked, p->plan->advice)) && plan->fits_host && plan->fits_gpu;
    if (!plan->fits_host)
        advise_host(p);
    else if (!plan->fits_gpu)
        advise_gpu(p);
}

/* Computes how many bytes a run needs on the disk of run.dir. */
static void measure_disk(struct planning *p, const struct vocab *vocab) {
    struct plan *plan = p->plan;
    struct table_spec target = spec_of(plan, TABLE_TARGET), context = spec_of(plan, TABLE_CONTEXT);
    char needed[TEXT_BYTES], space[TEXT_BYTES];
    plan->checkpoint_bytes = (table_row_count(&target) + table_row_count(&context)) * plan->whole.packed + vocab->words.used + 8 * vocab->size +
                             BESIDE_BYTES;
    plan->disk_needed = plan->checkpoint_bytes + plan->file_bytes;
    plan->disk_free = p->machine->disk_free ? p->machine->disk_free : UINT64_MAX;
    plan->disk_older = p->machine->disk_older;
    plan->fits_disk = plan->disk_needed <= plan->disk_free || plan->disk_needed - plan->disk_free <= plan->disk_older;
    if (plan->fits && !plan->fits_disk)
        snprintf(plan->advice, sizeof plan->advice, "a checkpoint%s takes %s, and the disk of run.dir has %s free: free some, or choose "
                 "another run.dir", plan->file_bytes ? " with the tables' files" : "", text_of_bytes(needed, plan->disk_needed),
                 text_of_bytes(space, plan->disk_free));
}

/* ---- traffic ---- */

/* Returns the bytes that cross the link each time a step needs a row that is not among the hot rows. */
static double link_row(const struct plan *plan, enum table_side side) {
    struct table_spec spec = spec_of(plan, side);
    struct table_shape shape = table_shape(&spec, 1);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < shape.stores; i++)
        if (shape.store[i].place != PLACE_GPU) bytes += shape.store[i].stride;
    return (double)bytes;
}

/* Computes the bytes that each step must move: every distinct record is read and written once, and each further touch of its row reads the
 * weights. */
static void measure_traffic(struct planning *p) {
    struct plan *plan = p->plan;
    double weights = 4.0 * plan->layout.span;
    double target = (double)table_row_bytes(&plan->layout, plan->target, plan->target_state);
    double context = (double)table_row_bytes(&plan->layout, plan->context, plan->context_state);
    plan->memory_bytes = 2 * (plan->batch_targets * target + plan->batch_contexts * context) +
                         weights * (p->batch.targets.all - plan->batch_targets) +
                         weights * (p->batch.contexts.all - plan->batch_contexts);
    if (!p->gpu) return;
    plan->link_bytes = 2 * (p->batch.targets.distinct_cold * link_row(plan, TABLE_TARGET) +
                            p->batch.contexts.distinct_cold * link_row(plan, TABLE_CONTEXT));
    planner_set_floor(plan, &p->machine->rates);
}

void planner_set_floor(struct plan *plan, const struct bench_limits *rates) {
    plan->floor_pairs = 0;
    if (!(rates->to > 0 && rates->from > 0 && rates->both > 0 && rates->device > 0)) return;
    double each_way = plan->link_bytes / 2;
    double link = fmax(fmax(each_way / rates->to, each_way / rates->from), plan->link_bytes / rates->both);
    double memory = plan->memory_bytes / rates->device, seconds = fmax(link, memory);
    plan->floor_link = link > memory;
    if (seconds > 0) plan->floor_pairs = plan->batch_pairs / seconds;
}

/* ---- all ---- */

static uint64_t gpu_budget(const struct config *config, const struct backend_info *info) {
    if (config->memory_gpu_budget == COUNT_AUTO) return backend_gpu_budget(info->gpu_free);
    return config->memory_gpu_budget < info->gpu_free ? config->memory_gpu_budget : info->gpu_free;
}

/* Returns the bytes that train.evaluate needs: the index of all names, while its triples are looked up, and copies of the rows that it ranks. */
static uint64_t evaluate_bytes(const struct config *config, const struct vocab *vocab) {
    uint64_t entities = vocab->size - vocab->lists, ranked = entities > RANK_ALL_MOST ? RANK_SAMPLE : entities;
    return *config->train_evaluate ? words_index_bytes(vocab->size) + ranked * config->model_dim * sizeof(float) : 0;
}

static void make(struct planning *p, const struct vocab *vocab) {
    struct plan *plan = p->plan;
    p->rule = tables_rule(p->config);
    plan->rows = vocab_targets(vocab);
    plan->items = vocab->size - vocab->lists - (p->source.paths.starts != NULL);
    int no_items = config_has_documents(p->config)            ? !config_trains_words(p->config)
                   : p->config->examples_mode == MODE_TRIPLE ? p->config->model_tied
                                                             : p->config->examples_own == 1;
    plan->first_target = vocab->lists && no_items ? vocab->size - vocab->lists : 0;
    int own = vocab->lists || config_has_counts(p->config); /* 1: the rows of lists, or of the relations of triples, are not counted */
    plan->tokens = p->source.tokens - (own ? p->source.sentences : 0);
    plan->sentences = p->source.sentences;
    plan->ranks = config_ranks(p->config);
    p->idle = vocab->subwords.rows - vocab->subwords.named;
    settle_columns(p, config_columns(p->config));
    plan->vocab_bytes = vocab_bytes(vocab);
    plan->evaluate_bytes = evaluate_bytes(p->config, vocab);
    p->ordering = subwords_making_bytes(&vocab->subwords) - subwords_bytes(&vocab->subwords);
    plan->draw_bytes = examples_bytes(p->examples);
    plan->graph = p->source.walks.length > 0;
    plan->stream_bytes = plan->graph ? graph_bytes(p->source.walks.nodes, p->source.walks.arcs, p->examples->arcs || p->source.walks.labels)
                                     : idstream_bytes(p->source.tokens, p->source.mode == EXAMPLE_TRIPLE ? 1 : plan->sentences,
                                                      p->source.weights != NULL);
    const struct config *config = p->config;
    p->plan->target = settle(p, config->memory_target);
    p->plan->target_state = settle(p, config->memory_target_state);
    p->plan->context = settle(p, config->memory_context);
    p->plan->context_state = settle(p, config->memory_context_state);
    p->behind = goes_on(p);
    settle_batch(p);
    settle_auto_places(p);
    settle_hot_rows(p);
    measure_tables(p);
    measure_smaller(p);
    add_up(p);
    judge(p);
    measure_disk(p, vocab);
    measure_traffic(p);
}

int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab,
                 const struct examples *examples, const struct planner_machine *machine) {
    *plan = (struct plan){0};
    struct planning *p = mem_zalloc(1, sizeof *p, "the plan");
    if (!p) return -1;
    p->plan = plan;
    p->config = config;
    p->machine = machine;
    p->examples = examples;
    p->source = examples->source;
    p->gpu = machine->ops->has_gpu;
    p->hogwild = config->train_update == UPDATE_HOGWILD;
    p->budget = p->gpu ? gpu_budget(config, &machine->info) : 0;
    make(p, vocab);
    int failed = p->failed;
    free(p);
    if (failed) return -1;
    if (plan->snapshot_bytes && plan->ranks > 1)
        return fail_usage("run.checkpoint_wait = no is for one process, and %u train; leave the key out", plan->ranks);
    return 0;
}

/* plan_print: prints a plan, as lines for people and as one line of JSON for programs. */

/* ---- for people ---- */

static void line(int to_stdout, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line(int to_stdout, const char *name, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (to_stdout)
        printf("%-16s %s\n", name, text);
    else
        note("%-16s %s", name, text);
}

static const char *place_name(const struct plan *plan, enum place place) {
    if (place == PLACE_FILE) return "in a file";
    if (place == PLACE_GPU) return "on the GPU";
    return plan->gpu_available ? "pinned on the host" : "in memory";
}

static void print_part(const struct plan *plan, int to_stdout, const char *name, enum place place, uint64_t bytes, int shared) {
    char text[TEXT_BYTES];
    if (bytes)
        line(to_stdout, name, "%10s  %s", text_of_bytes(text, bytes), place_name(plan, place));
    else if (shared && (plan->layout.slots || plan->layout.counted))
        line(to_stdout, name, "%10s  in the same records", "");
    else
        line(to_stdout, name, "%10s", "none");
}

static void print_bytes(int to_stdout, const char *name, uint64_t bytes, const char *remark) {
    char text[TEXT_BYTES];
    line(to_stdout, name, "%10s%s%s", text_of_bytes(text, bytes), *remark ? "  " : "", remark);
}

/* Prints how small the tables of targets and of contexts would be with `key`; nothing if bytes is 0. */
static void print_smaller(const struct plan *plan, int to_stdout, const char *key, uint64_t bytes) {
    char now[TEXT_BYTES], then[TEXT_BYTES];
    if (!bytes) return;
    line(to_stdout, "  smaller", "%10s  instead of %s, both tables with their state: %s", text_of_bytes(then, bytes),
         text_of_bytes(now, plan_table_bytes(plan)), key);
}

static const char counts_lines[] = "runs of pairs"; /* with train.loss = glove, what a line of the stream is (corpus/counts.h) */

static void print_step(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES];
    int both = config->examples_mode == MODE_TRIPLE && config->triples_reciprocal;
    const char *unit = config_is_window(config)                  ? "positions"
                       : both                                    ? "directions of triples"
                       : config_has_counts(config)               ? counts_lines
                       : config->examples_targets != TARGETS_ONE ? "list positions"
                                                                 : config_lines(config);
    if (config->train_update == UPDATE_HOGWILD) {
        line(to_stdout, "a step", "lock-free; %s %s, or the rest of an epoch, are counted as one", text_of_count(a, plan->batch), unit);
        int off_gpu = plan->target != PLACE_GPU || (!plan->one_record_target && plan->target_state != PLACE_GPU);
        if (plan->gpu_available && plan->hot_rows < plan->rows && off_gpu)
            line(to_stdout, "  over the link",
                 "%.1f%% of the target rows that it reads, one by one; for text, train.update = batch with train.batch = 65536 "
                 "moves a row once a batch and is no worse",
                 100 * (1 - plan->hot_hits));
        return;
    }
    line(to_stdout, "a step", "%s %s: %s examples, %s pairs", text_of_count(a, plan->batch), unit,
         text_of_count(b, (uint64_t)(plan->batch_blocks + 0.5)), text_of_count(c, (uint64_t)(plan->batch_pairs + 0.5)));
    line(to_stdout, "  distinct rows", "%s targets, %s contexts", text_of_count(a, (uint64_t)(plan->batch_targets + 0.5)),
         text_of_count(b, (uint64_t)(plan->batch_contexts + 0.5)));
    line(to_stdout, "  traffic", "%s of memory%s%s%s", text_of_bytes(a, (uint64_t)plan->memory_bytes),
         plan->gpu_available ? ", " : "", plan->gpu_available ? text_of_bytes(b, (uint64_t)plan->link_bytes) : "",
         plan->gpu_available ? " over the link, both ways" : "");
    if (plan->floor_pairs > 0)
        line(to_stdout, "  at most", "%s pairs/s (a target with one positive is a pair): then %s is busy all the time",
             text_of_rate(d, plan->floor_pairs), plan->floor_link ? "the link" : "the GPU's memory");
    else if (plan->gpu_available)
        line(to_stdout, "  at most", "unknown: this GPU's copies are not measured (plan and bench measure them where it is)");
}

/* Returns the name of a field's type, at most three words, for printing after "optimizer state". */
static const char *name_of(const struct record_layout *layout, uint32_t field) {
    int half = layout->field[field].type == VALUE_BFLOAT16;
    if (field == RECORD_WEIGHTS) return half ? "bfloat16" : "float32";
    return half ? " in bfloat16" : " in float32";
}

void planner_print(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    int counts = config_has_counts(config);
    const char *tokens = counts ? "pairs" : "tokens", *lines = plan->graph ? "walks" : counts ? counts_lines : config_lines(config);
    line(to_stdout, "corpus", "%s %.*s, %s %.*s", text_of_count(a, plan->tokens), TEXT_NOUN(plan->tokens, tokens), text_of_count(b, plan->sentences),
         TEXT_NOUN(plan->sentences, lines));
    if (*plan->defaults) line(to_stdout, "by size", "%s ('sptx-w2v help keys' has the rule)", plan->defaults);
    const struct record_layout *layout = &plan->layout;
    line(to_stdout, "rows", "%s x %" PRIu32 " %s, %" PRIu32 " %s of optimizer state%s%s", text_of_count(a, plan->rows), plan->dim,
         name_of(layout, RECORD_WEIGHTS), layout->slots, layout->by_row ? "number" : layout->slots == 1 ? "array" : "arrays",
         layout->halves && layout->slots ? name_of(layout, RECORD_STATE) : "", layout->counted ? " and a count" : "");
    if (plan->ranks > 1)
        line(to_stdout, "ranks", "%u share out the columns; what follows is one's of %" PRIu32 " columns, and none has more",
             plan->ranks, plan->columns);
    print_part(plan, to_stdout, "target", plan->target, plan->target_bytes, 0);
    print_part(plan, to_stdout, "target_state", plan->target_state, plan->target_state_bytes, plan->one_record_target);
    print_part(plan, to_stdout, "context", plan->context, plan->context_bytes, 0);
    print_part(plan, to_stdout, "context_state", plan->context_state, plan->context_state_bytes, plan->one_record_context);
    print_smaller(plan, to_stdout, "model.precision = bfloat16", plan->halved_bytes);
    print_smaller(plan, to_stdout, "optimizer.rule = rowwise-adagrad", plan->by_row_bytes);
    print_bytes(to_stdout, "vocabulary", plan->vocab_bytes, "");
    if (plan->draw_bytes) print_bytes(to_stdout, "draw tables", plan->draw_bytes, "negatives, subsampling, a tree of words");
    if (plan->evaluate_bytes) print_bytes(to_stdout, "evaluation", plan->evaluate_bytes, "the index of names and the ranked rows of train.evaluate");
    print_bytes(to_stdout, "work", plan->work_bytes, "batches in flight and threads' scratch");
    if (plan->snapshot_bytes)
        print_bytes(to_stdout, "snapshots", plan->snapshot_bytes, "at most: copies of rows that change while a checkpoint is written");
    print_bytes(to_stdout, plan->graph ? "graph" : "corpus ids", plan->stream_bytes,
                plan->stream_pinned ? "a mapped file, pinned: the GPU reads it over the link"
                                    : "a mapped file, given back where memory is short");
    if (plan->gpu_available) {
        char share[64] = "";
        if (plan->hot_hits > 0 || !plan->hot_rows) /* otherwise only context rows are hot */
            snprintf(share, sizeof share, ": %.1f%% of the target rows that a step reads", 100 * plan->hot_hits);
        line(to_stdout, "hot rows", "%s of %s, %s on the GPU instead of the host%s", text_of_count(a, plan->hot_rows),
             text_of_count(b, plan->rows), text_of_bytes(c, plan->hot_bytes), share);
        line(to_stdout, "GPU needed", "%10s  of %s", text_of_bytes(a, plan->gpu_needed), text_of_bytes(b, plan->gpu_available));
    }
    line(to_stdout, "memory needed", "%10s  of %s", text_of_bytes(a, plan->host_needed),
         plan->host_available ? text_of_bytes(b, plan->host_available) : "an unknown amount");
    print_bytes(to_stdout, "resident", plan->host_needed - plan->stream_pinned + plan->stream_bytes,
                plan->graph ? "with the graph in memory" : "with the corpus ids in memory");
    if (plan->file_bytes) print_bytes(to_stdout, "files needed", plan->file_bytes, "");
    uint64_t kept;
    if (__builtin_mul_overflow(plan->checkpoint_bytes, config->run_keep + 1, &kept)) kept = UINT64_MAX;
    if (plan->disk_free != UINT64_MAX)
        line(to_stdout, "disk needed", "%10s  of %s free: a checkpoint%s; run.keep = %" PRIu64 " and the one being written take %s",
             text_of_bytes(a, plan->disk_needed), text_of_bytes(b, plan->disk_free), plan->file_bytes ? " and the tables' files" : "",
             config->run_keep, text_of_bytes(c, kept));
    print_step(plan, config, to_stdout);
    line(to_stdout, "fits", "%s%s", plan->fits && plan->fits_disk ? "yes" : "no: ", plan->advice);
}

/* ---- for machines ---- */

static void json_part(const struct plan *plan, const char *name, enum place place, uint64_t bytes) {
    const char *at = place == PLACE_FILE ? "file" : place == PLACE_GPU ? "gpu" : plan->gpu_available ? "pinned" : "memory";
    printf(", \"%s_place\": \"%s\", \"%s_bytes\": %" PRIu64, name, at, name, bytes);
}

void planner_print_json(const struct plan *plan) {
    static const char *const truth[] = {"false", "true"};
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"tokens", plan->tokens},
                  {"sentences", plan->sentences},
                  {"optimizer_arrays", plan->layout.slots},
                  {"counted", plan->layout.counted},
                  {"table_gpu_bytes", plan->gpu_bytes},
                  {"table_hot_bytes", plan->hot_bytes},
                  {"table_pinned_bytes", plan->pinned_bytes},
                  {"table_memory_bytes", plan->plain_bytes},
                  {"table_file_bytes", plan->file_bytes},
                  {"halved_bytes", plan->halved_bytes},
                  {"by_row_bytes", plan->by_row_bytes},
                  {"work_bytes", plan->work_bytes},
                  {"vocabulary_bytes", plan->vocab_bytes},
                  {"draw_bytes", plan->draw_bytes},
                  {"evaluate_bytes", plan->evaluate_bytes},
                  {"snapshot_bytes", plan->snapshot_bytes},
                  {"stream_bytes", plan->stream_bytes},
                  {"stream_pinned_bytes", plan->stream_pinned},
                  {"host_needed", plan->host_needed},
                  {"host_available", plan->host_available},
                  {"gpu_needed", plan->gpu_needed},
                  {"gpu_available", plan->gpu_available},
                  {"checkpoint_bytes", plan->checkpoint_bytes},
                  {"disk_needed", plan->disk_needed},
                  {"disk_free", plan->disk_free},
                  {"hot_rows", plan->hot_rows},
                  {"batch", plan->batch},
                  {"ranks", plan->ranks},
                  {"columns", plan->columns}};
    printf("{\"rows\": %" PRIu64 ", \"dim\": %" PRIu32, plan->rows, plan->dim);
    json_part(plan, "target", plan->target, plan->target_bytes);
    json_part(plan, "target_state", plan->target_state, plan->target_state_bytes);
    json_part(plan, "context", plan->context, plan->context_bytes);
    json_part(plan, "context_state", plan->context_state, plan->context_state_bytes);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) printf(", \"%s\": %" PRIu64, counts[i].name, counts[i].value);
    printf(", \"hot_hits\": %.6g, \"batch_examples\": %.6g, \"batch_pairs\": %.6g, \"batch_targets\": %.6g, "
           "\"batch_contexts\": %.6g, \"link_bytes\": %.6g, \"memory_bytes\": %.6g, \"floor_pairs\": %.6g",
           plan->hot_hits, plan->batch_blocks, plan->batch_pairs, plan->batch_targets, plan->batch_contexts,
           plan->link_bytes, plan->memory_bytes, plan->floor_pairs);
    printf(", \"by_size\": \"%s\"", plan->defaults);
    printf(", \"fits_host\": %s, \"fits_gpu\": %s, \"fits_disk\": %s, \"fits\": %s, \"advice\": \"%s\"}\n",
           truth[plan->fits_host], truth[plan->fits_gpu], truth[plan->fits_disk], truth[plan->fits && plan->fits_disk], plan->advice);
}
