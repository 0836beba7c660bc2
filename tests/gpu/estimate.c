/* Compares the CUDA backend's estimate of a run's memory with the memory used after training: the estimate must not be lower,
 * and at most a twentieth higher. */
#include "choice.h"

#include "train/examples.h"

enum { BATCH_RUNS = 60, HOGWILD_RUNS = 20, PAGE = 2 << 20 };

struct run {
    struct choice choice;
    struct corpus corpus;
    struct example_source source;
    struct estimate estimate;
    struct tables tables;
    int hogwild;
};

static struct table_spec spec_of(const struct run *run, int side) {
    const struct choice *c = &run->choice;
    const struct placing *placing = &c->machine.placing[side];
    return (struct table_spec){.name = side ? "context" : "target",
                               .rows = c->rows,
                               .first_row = placing->first_row,
                               .layout = layout_of(&c->rule.options, c->dim),
                               .weights = placing->weights,
                               .state = placing->state,
                               .hot_rows = placing->hot_rows};
}

static void estimate_run(struct run *run, unsigned processors) {
    const struct machine *machine = &run->choice.machine;
    struct estimate_request request = {.target = spec_of(run, 0),
                                       .context = spec_of(run, 1),
                                       .source = &run->source,
                                       .depth = machine->depth,
                                       .threads = machine->threads,
                                       .processors = processors,
                                       .rule = &run->choice.rule.options,
                                       .loss = run->choice.loss,
                                       .frozen_targets = run->choice.frozen[0] != 0,
                                       .frozen_contexts = run->choice.frozen[1] != 0,
                                       .hogwild = run->hogwild};
    backend_cuda.estimate(&request, &run->estimate);
}

/* Reads all rows, through pinned memory, as filling tables does. */
static int read_rows(struct run *run) {
    char *row = need(run->tables.layout.packed);
    int wrong = 0;
    for (int side = 0; side < 2 && !wrong; side++)
        wrong = backend_cuda.table_read(run->tables.backend, run->tables.side[side], run->tables.first_row[side], 1, row);
    free(row);
    return wrong;
}

/* Returns a request for a full batch; the last one of an epoch may be shorter. */
static struct batch_request batch_at(const struct run *run, uint64_t number, int held_out) {
    uint64_t batch = run->source.batch, whole = example_count(&run->source) / batch;
    return (struct batch_request){(uint32_t)(number / whole), number % whole * batch, batch, held_out};
}

/* Makes two batches in every stage, so that every builder has made at least one. */
static int train_batches(struct run *run) {
    unsigned depth = run->choice.machine.depth;
    struct step_request step = {.rule = &run->choice.rule.options, .loss = run->choice.loss, .lr = 1e-3, .mean = 1};
    for (uint64_t i = 0; i < 2 * (uint64_t)depth; i++) {
        struct batch_request batch = batch_at(run, i, 0);
        if (backend_cuda.make_batch(run->tables.backend, (unsigned)(i % depth), &batch) ||
            one_step(&run->tables, (unsigned)(i % depth), &step))
            return -1;
    }
    return backend_cuda.drain(run->tables.backend);
}

static int step_held_out(struct run *run) {
    struct step_request step = {.rule = &run->choice.rule.options, .loss = run->choice.loss, .loss_only = 1};
    struct step_result result;
    for (uint64_t i = 0; i < 3 && run->source.held_out; i++) {
        struct batch_request batch = batch_at(run, i, 1);
        if (backend_cuda.make_batch(run->tables.backend, 0, &batch) || one_step(&run->tables, 0, &step) ||
            backend_cuda.result(run->tables.backend, 0, &result))
            return -1;
    }
    return 0;
}

static int train_lock_free(struct run *run) {
    struct hogwild_result result;
    struct hogwild_request request = {.target = run->tables.side[0],
                                      .context = run->tables.side[1],
                                      .rule = &run->choice.rule.options,
                                      .count = example_count(&run->source),
                                      .lr_first = 1e-3,
                                      .lr_last = 1e-3};
    return backend_cuda.hogwild(run->tables.backend, &request, &result);
}

static int train(struct run *run) {
    if (run->hogwild ? train_lock_free(run) : train_batches(run)) return -1;
    return step_held_out(run);
}

static void compare(const struct run *run, const struct backend_info *info, const char *text) {
    const struct estimate *e = &run->estimate;
    uint64_t gpu = e->tables.gpu + e->source.gpu + e->work.gpu + e->fixed.gpu;
    uint64_t pinned = e->tables.pinned + e->source.pinned + e->work.pinned + e->fixed.pinned;
    struct example_sizes most;
    int bounded = example_bound(&run->source, run->source.batch, &most);
    CHECK(info->gpu_used <= gpu && gpu - gpu / 20 <= info->gpu_used, "%s: %llu bytes of the GPU, said %llu", text,
          (unsigned long long)info->gpu_used, (unsigned long long)gpu);
    /* A file's rows pass through pinned memory, less of it where batches are counted. */
    uint64_t spare = pinned / 20 + (run->source.stream_on_host ? (run->source.weights ? 3 : 2) * PAGE : 0); /* whole pages of each array */
    CHECK(info->host_used <= pinned && (pinned - spare <= info->host_used || !bounded),
          "%s: %llu pinned bytes, said %llu", text, (unsigned long long)info->host_used, (unsigned long long)pinned);
}

static void check_run(struct run *run) {
    const struct choice *c = &run->choice;
    struct backend *backend = open_with_threads(&backend_cuda, c->machine.depth, c->machine.threads);
    struct examples examples = {.source = run->source};
    struct backend_info info;
    struct example_sizes most;
    char text[1200];
    double share = run->hogwild ? (double)run->source.held_out / 4294967296.0 : 1;
    choice_describe(c, text, sizeof text);
    choice_freeze(&run->choice);
    run->source.batch = examples_batch(&examples, c->batch);
    if (share > 0 && (run->hogwild || !example_bound(&run->source, run->source.batch, &most)))
        run->source.capacity = examples_capacity(&examples, c->batch, share);
    int ok = !backend_cuda.info(backend, &info);
    estimate_run(run, info.processors);
    ok = ok && !backend_cuda.source(backend, &run->source) &&
         !tables_open_frozen(&run->tables, &backend_cuda, backend, &c->rule.options, c->dim, c->rows, c->machine.placing,
                             c->frozen_rows) &&
         !read_rows(run) && !train(run) && !backend_cuda.info(backend, &info);
    CHECK(ok, "%s%s", run->hogwild ? "lock-free, " : "", text);
    if (ok) compare(run, &info, text);
    tables_close(&run->tables);
    backend_cuda.close(backend);
    choice_thaw(&run->choice);
}

static struct run run_for(uint64_t seed, int hogwild) {
    struct run run = {.choice = choice_make(seed), .hogwild = hogwild};
    struct choice *c = &run.choice;
    if (hogwild) choice_without_items(c);
    choice_corpus(c, &run.corpus);
    run.source = choice_source(c, &run.corpus);
    run.source.longest = corpus_longest(&run.corpus);
    run.source.stream_on_host = seed % 3 == 0;
    return run;
}

/* Makes the words of windows share rows. */
static void share_rows(struct run *run, int by_window) {
    source_shares(&run->source, &run->corpus, by_window);
    run->choice.rows = run->source.rows;
}

/* Changes the run to one that lock-free training allows: sgd or adagrad, the logistic loss of dot products, no frozen rows, no rows in files. */
static void make_lock_free(struct run *run, uint64_t seed) {
    struct choice *c = &run->choice;
    run->source.pool = (struct example_pool){.on = seed % 4 < 2};
    if (run->source.pool.on && run->source.mode == EXAMPLE_WINDOW) run->source.per_pair = 0;
    c->rule = (struct rule_case){"lock-free", options_of(seed % 2 ? RULE_SGD : RULE_ADAGRAD)};
    c->loss = (struct loss_options){0};
    for (int side = 0; side < 2; side++) {
        struct placing *p = &c->machine.placing[side];
        c->frozen[side] = 0;
        if (p->weights == PLACE_FILE) p->weights = PLACE_PINNED;
        if (p->state == PLACE_FILE) p->state = PLACE_PINNED;
    }
}

void test_estimate(void) {
    for (uint64_t seed = 1; seed <= BATCH_RUNS + HOGWILD_RUNS; seed++) {
        struct run run = run_for(seed, seed > BATCH_RUNS);
        if (run.hogwild) make_lock_free(&run, seed);
        if (run.source.mode == EXAMPLE_WINDOW && !run.choice.walks && seed % 3 == 0) share_rows(&run, seed % 2);
        if (run.source.mode == EXAMPLE_WINDOW && run.choice.rows > 1 && seed % 4 == 1) source_paths(&run.source, &run.corpus);
        check_run(&run);
        corpus_free(&run.corpus);
    }
}
