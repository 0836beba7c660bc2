/* Compares the CPU backend's estimate of a run's memory with the memory that the run holds after an epoch, for random shapes. If
 * the size of an example is bounded, both must be equal. */
#include "base/pool.h"
#include "base/report.h"
#include "run/model_files.h"
#include "tests/unit/tiny_graph.h"
#include "train/planner.h"

#include "tests/testing.h"

static uint64_t seed = 1;
static uint64_t below(uint64_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
}
static int one_of(const int *values, uint64_t count) {
    return values[below(count)];
}
#define ONE_OF(...) one_of((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* ---- a run ---- */

struct run {
    struct config config;
    struct tiny tiny;
    struct tiny_graph graph; /* the data of a run with examples.mode = walk, in place of a corpus */
    const struct vocab *vocab;
    struct examples examples;
    struct plan plan;
    struct estimate estimate;
    struct rule_options rule;
    struct backend *backend;
    struct backend_table *table[2];
    unsigned threads;
};

static struct table_spec spec_of(const struct run *run, int side) {
    static char path[2][64];
    snprintf(path[side], sizeof path[side], "/tmp/sptx-estimate-%d-%d", (int)getpid(), side);
    return (struct table_spec){.name = side ? "context" : "target",
                               .rows = run->plan.rows,
                               .layout = run->plan.layout,
                               .weights = side ? run->plan.context : run->plan.target,
                               .state = side ? run->plan.context_state : run->plan.target_state,
                               .file_path = path[side]};
}

static int make_examples(struct run *run) {
    struct pool *pool;
    if (run->config.examples_mode != MODE_WALK)
        return examples_init(&run->examples, &run->config, run->vocab, &run->tiny.stream);
    pool = pool_open(run->threads);
    assert_non_null(pool);
    int result = examples_init_walks(&run->examples, &run->config, run->vocab, &run->graph.graph, pool);
    pool_close(pool);
    return result;
}

/* Plans the run. Returns 0, or -1 if this corpus gives no example. */
static int plan_run(struct run *run) {
    struct planner_machine machine = {.ops = &backend_cpu, .info.threads = run->threads, .host_available = UINT64_MAX >> 1};
    struct example_source *source = &run->examples.source;
    if (make_examples(run)) {
        report_clear();
        return -1;
    }
    assert_int_equal(0, planner_make(&run->plan, &run->config, run->vocab, &run->examples, &machine));
    source->batch = examples_batch(&run->examples, run->plan.batch);
    source->capacity = run->plan.capacity;
    run->rule = tables_rule(&run->config);
    struct estimate_request request = {.target = spec_of(run, 0),
                                       .context = spec_of(run, 1),
                                       .source = source,
                                       .depth = (unsigned)run->config.memory_depth,
                                       .threads = run->threads,
                                       .rule = &run->rule,
                                       .loss = config_loss(&run->config),
                                       .hogwild = run->config.train_update == UPDATE_HOGWILD};
    backend_cpu.estimate(&request, &run->estimate);
    return 0;
}

static void open_run(struct run *run) {
    struct backend_options options = {.threads = run->threads, .depth = (unsigned)run->config.memory_depth};
    assert_int_equal(0, backend_cpu.open(&run->backend, &options));
    assert_int_equal(0, backend_cpu.source(run->backend, &run->examples.source));
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = spec_of(run, side);
        assert_int_equal(0, backend_cpu.table_open(run->backend, &spec, &run->table[side]));
    }
}

static void train_batch(struct run *run, unsigned stage, const struct batch_request *batch) {
    struct step_request step = {.target = run->table[0],
                                .context = run->table[1],
                                .rule = &run->rule,
                                .loss = config_loss(&run->config),
                                .lr = 0.01,
                                .loss_only = batch->held_out};
    assert_int_equal(0, backend_cpu.make_batch(run->backend, stage, batch));
    assert_int_equal(0, backend_cpu.step(run->backend, stage, &step));
}

/* Trains one epoch, or more until all stages have been filled. Then computes the loss of the run's held-out examples. */
static void train_run(struct run *run) {
    const struct example_source *source = &run->examples.source;
    uint64_t count = example_count(source), batch = source->batch, number = 0, epoch = 0;
    int hogwild = run->config.train_update == UPDATE_HOGWILD;
    for (uint64_t at = 0; at < count || number < run->config.memory_depth; at += batch) {
        if (at >= count) epoch++, at = 0;
        struct batch_request request = {(uint32_t)epoch, at, count - at < batch ? count - at : batch, 0};
        struct hogwild_request piece = {.target = run->table[0],
                                        .context = run->table[1],
                                        .rule = &run->rule,
                                        .epoch = (uint32_t)epoch,
                                        .first = at,
                                        .count = request.count,
                                        .lr_first = 0.01,
                                        .lr_last = 0.01};
        struct hogwild_result result;
        number++;
        if (hogwild)
            assert_int_equal(0, backend_cpu.hogwild(run->backend, &piece, &result));
        else
            train_batch(run, (unsigned)(number % run->config.memory_depth), &request);
    }
    for (uint64_t at = 0; at < count && source->held_out; at += batch) {
        struct batch_request request = {.first = at, .count = count - at < batch ? count - at : batch, .held_out = 1};
        train_batch(run, 0, &request);
    }
}

static uint64_t held(struct run *run) {
    struct backend_info info;
    assert_int_equal(0, backend_cpu.info(run->backend, &info));
    return info.host_used;
}

/* ---- shapes ---- */

/* Chooses lists that have rows and in which each item makes an example. The example has negatives of its own, or shares the
 * batch's negatives. */
static void choose_items(struct config *c) {
    c->examples_mode = MODE_USER, c->examples_targets = TARGETS_ALL;
    c->examples_positives = 1, c->examples_own = 1, c->examples_replacement = 0;
    c->negatives_count = 1 + below(200);
    c->negatives_per = ONE_OF(PER_EXAMPLE, PER_BATCH);
    if (c->negatives_per == PER_BATCH) c->train_loss = LOSS_SOFTMAX;
}

/* Chooses triples; tiny_make_triples() must make the corpus. */
static void choose_triples(struct config *c) {
    c->examples_mode = MODE_TRIPLE, c->examples_targets = TARGETS_ONE;
    c->examples_positives = 1, c->examples_own = 1, c->examples_replacement = 0;
    c->negatives_per = PER_BATCH, c->negatives_law = NOISE_UNIFORM;
    c->negatives_count = below(2) ? COUNT_ALL : 1 + below(200);
    c->triples_reciprocal = (int)below(2);
    c->model_tied = (int)below(2);
    c->train_product = (int)below(4), c->train_n3 = c->train_product < TRAIN_ROTATION ? 0.01 * (double)below(2) : 0;
    c->train_score = c->train_product < TRAIN_ROTATION ? SCORE_DOT : SCORE_DISTANCE;
    c->train_relations = (double)below(2);
    c->model_dim = 2 * (1 + below(65));
    c->train_loss = ONE_OF(LOSS_SOFTMAX, LOSS_LOGISTIC);
}

static struct config random_config(int hogwild) {
    int mode = ONE_OF(EXAMPLE_WINDOW, EXAMPLE_LIST, EXAMPLE_ADJACENCY), cbow = mode == EXAMPLE_WINDOW && below(2);
    struct config c = tiny_config(mode);
    int walk = mode == EXAMPLE_WINDOW && !cbow && below(2);
    if (cbow || walk) c.examples_mode = walk ? MODE_WALK : MODE_CBOW;
    c.walks_length = 2 + below(90), c.walks_per_node = 1 + below(2);
    c.walks_p = ONE_OF(1, 2), c.walks_q = ONE_OF(1, 3);
    if (!hogwild) c.train_loss = (int)below(LOSS_GLOVE + 1), c.train_score = (int)below(SCORE_DISTANCE);
    if (c.train_loss == (int)LOSS_GLOVE) c.train_loss = LOSS_HIERARCHICAL; /* none of the modes chosen here trains on counts */
    c.examples_window = 1 + below(12);
    c.examples_shrink = (int)below(2);
    c.examples_subsample = mode == EXAMPLE_WINDOW && below(2) ? 1e-3 : 0;
    c.examples_shuffle = !walk && below(2);
    c.examples_targets = mode == EXAMPLE_LIST && below(2) ? TARGETS_ALL : TARGETS_ONE;
    c.examples_positives = below(7);
    c.examples_replacement = (int)below(2);
    if (mode != EXAMPLE_WINDOW && below(2)) c.examples_own = 0.5 * (double)below(2), c.examples_pooled = below(4);
    c.examples_short = ONE_OF(SHORT_SKIP, SHORT_REPEAT);
    c.negatives_count = below(30);
    c.negatives_per = cbow ? PER_EXAMPLE : ONE_OF(PER_PAIR, PER_EXAMPLE);
    c.negatives_law = ONE_OF(NOISE_UNIGRAM, NOISE_UNIFORM);
    c.model_dim = 1 + below(130);
    c.optimizer_rule = hogwild ? ONE_OF(RULE_SGD, RULE_ADAGRAD) : ONE_OF(RULE_SGD, RULE_ADAGRAD, RULE_ADAM, RULE_ADAMAX);
    c.optimizer_eps = 1e-8;
    c.optimizer_beta1 = 0.9, c.optimizer_beta2 = 0.999;
    c.train_update = hogwild ? UPDATE_HOGWILD : UPDATE_BATCH;
    c.train_batch = 1 + below(700);
    c.train_held_out = below(3) ? 0 : 0.1;
    c.memory_depth = 1 + below(8);
    c.memory_target_state = ONE_OF(PLACE_PINNED, PLACE_GPU, PLACE_FILE);
    c.memory_context = ONE_OF(PLACE_PINNED, PLACE_FILE);
    if (mode == EXAMPLE_ADJACENCY && !hogwild && below(2)) choose_items(&c);
    else if (mode == EXAMPLE_ADJACENCY && !hogwild && below(2)) choose_triples(&c);
    return c;
}

static void compare(struct run *run) {
    open_run(run);
    uint64_t tables = run->estimate.tables.host, before = held(run), said = run->estimate.work.host;
    assert_int_equal(run->estimate.fixed.host - run->threads * POOL_THREAD_BYTES, before - tables);
    train_run(run);
    uint64_t work = held(run) - before;
    int hogwild = run->config.train_update == UPDATE_HOGWILD, held_out = run->config.train_held_out > 0;
    int alike = config_is_window(&run->config) || (run->config.examples_positives && run->config.examples_own == 1);
    int bounded = alike || (hogwild && !held_out);
    if (bounded ? work != said : work > said || work < said / 2)
        print_error("work takes %llu bytes and not %llu\n", (unsigned long long)work, (unsigned long long)said);
    if (bounded)
        assert_int_equal(said, work);
    else
        assert_in_range(work, said / 2, said);
    backend_cpu.close(run->backend);
}

static void compare_shapes(int hogwild) {
    int compared = 0;
    for (int i = 0; i < 60; i++) {
        struct run run = {.config = random_config(hogwild), .threads = 1 + (unsigned)below(5)};
        int walk = run.config.examples_mode == MODE_WALK;
        run.vocab = walk ? &run.graph.vocab : &run.tiny.vocab;
        if (walk) tiny_graph_make(&run.graph, 50 + below(300), 2 + below(9), (int)below(2));
        else tiny_make(&run.tiny, 50 + below(3000), 150 + below(150), 4 + below(12), 1);
        if (run.config.examples_mode == MODE_USER) run.tiny.vocab.lists = 5;
        if (run.config.examples_mode == MODE_TRIPLE) tiny_make_triples(&run.tiny, 8);
        if (!plan_run(&run)) compare(&run), compared++;
        examples_release(&run.examples);
        if (walk) tiny_graph_free(&run.graph);
        else tiny_free(&run.tiny);
    }
    assert_true(compared > 50);
}

static void batches_hold_what_was_said(void **state) {
    compare_shapes(0);
}
static void lock_free_training_holds_what_was_said(void **state) {
    compare_shapes(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_hold_what_was_said),
                                       cmocka_unit_test(lock_free_training_holds_what_was_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
