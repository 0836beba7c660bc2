#include "tests/testing.h"

#include "kernels/cpu/cpu.h"
#include "train/planner.h"
#include "base/report.h"
#include "tests/unit/tiny_corpus.h"

static struct tiny tiny;
static struct examples examples;

static int release(void **state) {
    examples_release(&examples);
    tiny_free(&tiny);
    tiny = (struct tiny){.ids = NULL};
    report_clear();
    return 0;
}

#define ROOMY ((uint64_t)16 << 30) /* host memory that is enough for all plans below except one */

static struct planner_machine cpu_machine(void) {
    return (struct planner_machine){.ops = &backend_cpu, .info = {.name = "CPU", .threads = 2}, .host_available = ROOMY};
}
static struct planner_machine gpu_machine(uint64_t mebibytes) {
    return (struct planner_machine){
        .ops = &backend_cuda,
        .info = {.name = "GPU", .threads = 16, .gpu_total = mebibytes << 20, .gpu_free = mebibytes << 20},
        .host_available = ROOMY,
        .rates = {.to = 55e9, .from = 55e9, .both = 101e9, .device = 4250e9}};
}

static struct plan plan_for(const struct config *config, const struct planner_machine *machine) {
    struct plan plan;
    examples_release(&examples);
    assert_int_equal(0, examples_init(&examples, config, &tiny.vocab, &tiny.stream));
    assert_int_equal(0, planner_make(&plan, config, &tiny.vocab, &examples, machine));
    return plan;
}

/* ---- what a batch touches, against all batches of an epoch ---- */

static double count_distinct(const uint32_t *ids, uint64_t count) {
    static unsigned char met[1 << 16];
    double distinct = 0;
    memset(met, 0, sizeof met);
    for (uint64_t i = 0; i < count; i++) {
        distinct += !met[ids[i]];
        met[ids[i]] = 1;
    }
    return distinct;
}

static void close_to(const char *what, double said, double found, double within) {
    print_message("%s %.1f of %.1f\n", what, said, found);
    assert_true(fabs(said - found) <= within * found);
}

static void compare_with_built(const struct config *config, double within) {
    struct planner_machine machine = cpu_machine();
    struct plan plan = plan_for(config, &machine);
    const struct example_source *source = &examples.source;
    double blocks = 0, targets = 0, contexts = 0, pairs = 0, batches = 0;
    uint64_t full = example_count(source) / plan.batch;
    for (uint64_t number = 0; number < 8; number++) {
        uint32_t epoch = (uint32_t)(100 + number / full);
        uint64_t first = number % full * plan.batch;
        struct cpu_piece piece = {0};
        struct cpu_blocks built = {0};
        assert_int_equal(0, cpu_build_shared(source, &built, epoch, first));
        assert_int_equal(0, cpu_build(source, &piece, &built, epoch, first, plan.batch, 0));
        for (uint64_t i = 0; i < built.count; i++)
            pairs += (double)example_vectors(&source->pool, built.block[i].t) * built.block[i].predicted;
        blocks += (double)built.count - (config->negatives_per == PER_BATCH);
        targets += count_distinct(built.target, built.targets);
        contexts += count_distinct(built.context, built.contexts);
        batches++;
        cpu_blocks_release(&built);
        cpu_piece_release(&piece);
    }
    close_to("blocks", plan.batch_blocks, blocks / batches, within);
    close_to("distinct targets", plan.batch_targets, targets / batches, within);
    close_to("distinct contexts", plan.batch_contexts, contexts / batches, within);
    close_to("pairs", plan.batch_pairs, pairs / batches, within);
}

static void test_distinct_rows(void **state) {
    static const int laws[] = {NOISE_UNIGRAM, NOISE_UNIFORM, NOISE_LOG_UNIFORM};
    tiny_make(&tiny, 20000, 4000, 30, 1);
    for (int i = 0; i < 3; i++) {
        struct config config = tiny_config(EXAMPLE_WINDOW);
        config.negatives_law = laws[i];
        config.examples_subsample = i == 1 ? 1e-3 : 0;
        config.negatives_per = i == 2 ? PER_EXAMPLE : PER_PAIR;
        compare_with_built(&config, 0.02);
        config = tiny_config(EXAMPLE_LIST);
        config.negatives_law = laws[i];
        config.negatives_count = 64;
        compare_with_built(&config, 0.02);
    }
}

static void test_distinct_rows_of_unsorted_ids(void **state) { /* with corpus.order = first-seen the counts are in any order */
    tiny_make(&tiny, 20000, 2000, 30, 1);
    for (uint64_t i = 0; i < tiny.stream.tokens; i++) tiny.ids[i] = (uint32_t)((uint64_t)tiny.ids[i] * 7919 % 20000);
    memset(tiny.vocab.counts, 0, 20000 * sizeof *tiny.vocab.counts);
    for (uint64_t i = 0; i < tiny.stream.tokens; i++) tiny.vocab.counts[tiny.ids[i]]++;
    struct config config = tiny_config(EXAMPLE_WINDOW);
    compare_with_built(&config, 0.02);
}

/* Gives each word 1 to 30 of 6,000 rows of n-grams. Some of these rows belong to few words and others to very many. Words are
 * sorted by count. */
static void share_rows(struct subwords *s) {
    enum { NAMED = 6000, MOST = 30 };
    uint64_t at = 0;
    *s = (struct subwords){.words = tiny.vocab.size, .rows = NAMED + 1000, .named = NAMED, .most = 1 + MOST};
    s->starts = calloc(s->words + 1, sizeof *s->starts);
    s->row = calloc(s->words * (1 + MOST), sizeof *s->row);
    s->counts = calloc(s->rows, sizeof *s->counts);
    for (uint64_t word = 0; word < s->words; word++) {
        uint64_t count = 1 + draw_below(draw_pair(draw_at(3, DRAW_GENERATE, word, 0, 0), 0), MOST);
        s->row[at++] = (uint32_t)word;
        for (uint64_t i = 0; i < count; i++) {
            double u = ldexp((double)draw_pair(draw_at(3, DRAW_GENERATE, word, 1, (uint32_t)i), 0), -64);
            uint32_t ngram = (uint32_t)(u * u * u * NAMED);
            s->row[at++] = (uint32_t)s->words + ngram;
            s->counts[ngram] += tiny.vocab.counts[word];
        }
        s->starts[word + 1] = at;
    }
}

static void test_distinct_rows_that_words_share(void **state) {
    for (int variant = 0; variant < 4; variant++) {
        struct config config = tiny_config(EXAMPLE_WINDOW);
        tiny_make(&tiny, 20000, 4000, 30, 1);
        share_rows(&tiny.vocab.subwords);
        config.examples_subwords = "3-6";
        config.model_buckets = "used";
        config.examples_mode = variant & 1 ? MODE_CBOW : MODE_WINDOW;
        config.negatives_per = PER_EXAMPLE;
        config.examples_subsample = variant & 2 ? 1e-3 : 0;
        compare_with_built(&config, 0.02);
        subwords_release(&tiny.vocab.subwords);
        release(state);
    }
}

enum { ITEMS = 2000, LISTS = 4000, BATCH = 200 };

/* Adds rows of lists after the rows of items, as a vocabulary does. Rows of lists have no counts. */
static void give_lists_rows(void) {
    tiny.vocab.counts = realloc(tiny.vocab.counts, (ITEMS + LISTS) * sizeof *tiny.vocab.counts);
    memset(tiny.vocab.counts, 0, (ITEMS + LISTS) * sizeof *tiny.vocab.counts);
    for (uint64_t i = 0; i < LISTS; i++) {
        tiny.ids[tiny.starts[i]] = (uint32_t)(ITEMS + i);
        for (uint64_t at = tiny.starts[i] + 1; at < tiny.starts[i + 1]; at++) tiny.vocab.counts[tiny.ids[at]]++;
    }
    tiny.vocab.size = ITEMS + LISTS;
    tiny.vocab.lists = LISTS;
}

/* Tests three kinds of targets: only lists' rows; lists' rows and means of items; only means of items. */
static void lists_with_rows(void **state) {
    static const double own[] = {1, 0.5, 0};
    tiny_make(&tiny, ITEMS, LISTS, 30, 1);
    give_lists_rows();
    for (int i = 0; i < 12; i++) {
        struct config config = tiny_config(MODE_USER);
        config.negatives_law = NOISE_UNIFORM;
        config.examples_own = own[i % 3];
        config.examples_pooled = i % 3 && i / 3 % 2 ? 6 : 0;
        config.examples_positives = i / 6 ? 4 : 0;
        config.examples_shuffle = 1;
        config.train_batch = BATCH;
        compare_with_built(&config, 0.02);
    }
}

/* Tests lists in which each item makes an example. The example has negatives of its own, or shares the batch's negatives. */
static void items_as_examples(void **state) {
    tiny_make(&tiny, ITEMS, LISTS, 30, 1);
    give_lists_rows();
    for (int i = 0; i < 4; i++) {
        struct config config = tiny_config(MODE_USER);
        config.negatives_law = i / 2 ? NOISE_UNIGRAM : NOISE_UNIFORM;
        config.examples_targets = TARGETS_ALL;
        config.examples_positives = 1;
        config.examples_shuffle = 1;
        config.negatives_per = i % 2 ? PER_BATCH : PER_EXAMPLE;
        config.negatives_count = i % 2 ? 700 : 5;
        config.train_batch = BATCH;
        compare_with_built(&config, 0.02);
    }
}

static void triples(void **state) {
    tiny_make(&tiny, ITEMS, LISTS, 30, 0.6);
    tiny_make_triples(&tiny, 40);
    for (int i = 0; i < 4; i++) {
        struct config config = tiny_config(MODE_TRIPLE);
        config.model_tied = i / 2;
        config.negatives_law = NOISE_UNIFORM;
        config.negatives_per = PER_BATCH;
        config.negatives_count = i % 2 ? 700 : COUNT_ALL;
        config.triples_reciprocal = 1;
        config.examples_positives = 1;
        config.examples_shuffle = 1;
        config.train_batch = BATCH;
        compare_with_built(&config, 0.02);
    }
}

static void documents(void **state) {
    for (int variant = 0; variant < 6; variant++) {
        struct config config = tiny_config(variant < 2 ? MODE_CBOW : MODE_USER);
        tiny_make(&tiny, ITEMS, LISTS, 30, 1);
        give_lists_rows();
        config.corpus_format = FORMAT_DOCUMENTS;
        config.examples_words = variant == 2 || variant == 3;
        config.negatives_per = variant == 5 ? PER_PAIR : PER_EXAMPLE;
        config.examples_subsample = variant % 2 ? 1e-3 : 0;
        config.train_batch = 4096;
        compare_with_built(&config, 0.02);
        release(state);
    }
}

static void trees_and_wide_windows(void **state) {
    tiny_make(&tiny, ITEMS, LISTS, 30, 1);
    for (int variant = 0; variant < 8; variant++) {
        struct config config = tiny_config(variant & 1 ? MODE_CBOW : EXAMPLE_WINDOW);
        config.train_loss = variant & 2 ? LOSS_HIERARCHICAL : config.train_loss;
        config.negatives_count = variant & 2 ? 0 : 5;
        config.examples_window = variant & 4 ? 100 : 5; /* 100: wider than every sentence */
        config.examples_shrink = !(variant & 4);
        config.examples_shuffle = variant & 1;
        config.train_batch = 2048;
        compare_with_built(&config, 0.02);
    }
}

/* Rows of words come first, then rows of n-grams, each sorted by count. The share of reads that the first rows answer grows with
 * their number, to 1 at the last row that is used. */
static void test_hits_of_rows_that_words_share(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    struct planner_machine machine = gpu_machine(4096);
    double before = 0;
    tiny_make(&tiny, 20000, 4000, 30, 1);
    share_rows(&tiny.vocab.subwords);
    config.examples_subwords = "3-6";
    config.model_buckets = "used";
    config.memory_target = PLACE_PINNED;
    static const uint64_t rows[] = {100, 20000, 21000, 26000, 27000};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        config.memory_hot_rows = rows[i];
        struct plan plan = plan_for(&config, &machine);
        assert_true(i == 4 ? plan.hot_hits == before : plan.hot_hits > before);
        if (rows[i] == 20000) assert_true(plan.hot_hits < 0.1); /* a word has about 16 rows */
        if (rows[i] >= 26000) assert_true(fabs(plan.hot_hits - 1) < 1e-9);
        before = plan.hot_hits;
    }
    subwords_release(&tiny.vocab.subwords);
}

/* ---- CPU ---- */

static void test_cpu_bytes(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    struct planner_machine machine = cpu_machine();
    tiny_make(&tiny, 5000, 300, 20, 1);
    config.optimizer_rule = RULE_ADAM;
    struct plan plan = plan_for(&config, &machine);
    uint64_t row = table_row_bytes(&plan.layout, PLACE_PINNED, PLACE_PINNED);
    assert_int_equal(5000, plan.rows);
    assert_int_equal(5000 * row, plan.target_bytes);
    assert_int_equal(5000 * row, plan.context_bytes);
    assert_int_equal(0, plan.target_state_bytes);
    assert_int_equal(1, plan.one_record_target);
    assert_int_equal(2 * 5000 * row, plan.plain_bytes);
    assert_int_equal(0, plan.gpu_bytes + plan.pinned_bytes + plan.file_bytes + plan.gpu_needed);
    assert_int_equal(5000 * 8, plan.draw_bytes);
    assert_int_equal(PLACE_PINNED, plan.context); /* without a GPU, gpu means plain memory */
    assert_int_equal(0, plan.hot_rows);
    assert_true(plan.host_needed >= plan.plain_bytes + plan.vocab_bytes + plan.draw_bytes + plan.work_bytes);
    assert_true(plan.host_needed < plan.plain_bytes + (300ull << 20)); /* little is needed besides the tables */
    assert_int_equal(1, plan.fits);
    assert_string_equal("", plan.advice);
    assert_true(plan.floor_pairs == 0);
    /* Without a GPU the places gpu and pinned are the same memory, so weights and state still share one record. */
    config.memory_target_state = PLACE_GPU;
    assert_int_equal(1, plan_for(&config, &machine).one_record_target);
}

static void test_files(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    struct planner_machine machine = cpu_machine();
    tiny_make(&tiny, 5000, 300, 20, 1);
    config.optimizer_rule = RULE_ADAGRAD;
    config.memory_target_state = PLACE_FILE;
    struct plan plan = plan_for(&config, &machine);
    assert_int_equal(0, plan.one_record_target);
    assert_int_equal(5000 * 512, plan.target_bytes); /* 400 bytes, padded */
    assert_int_equal(5000 * 512, plan.target_state_bytes);
    assert_int_equal(5000 * 512, plan.file_bytes);
    assert_int_equal(5000 * 512 + plan.context_bytes, plan.plain_bytes);
}

static void test_batches(void **state) {
    struct planner_machine machine = cpu_machine(), gpu = gpu_machine(80000);
    struct config config = tiny_config(EXAMPLE_WINDOW);
    tiny_make(&tiny, 500, 300, 20, 1);
    assert_int_equal(8192, plan_for(&config, &machine).batch);
    assert_int_equal(16384, plan_for(&config, &gpu).batch);
    config.train_batch = 77;
    assert_int_equal(77, plan_for(&config, &machine).batch);
    config = tiny_config(EXAMPLE_ADJACENCY);
    assert_int_equal(1024, plan_for(&config, &machine).batch);
    config = tiny_config(EXAMPLE_WINDOW);
    config.train_update = UPDATE_HOGWILD;
    struct plan plan = plan_for(&config, &machine);
    assert_true(plan.batch > 8192);
    assert_true(plan.work_bytes < 10 << 20); /* lock-free training has no stages */
}

static void test_cpu_does_not_fit(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    struct planner_machine machine = cpu_machine();
    tiny_make(&tiny, 1000, 300, 20, 1);
    examples_release(&examples);
    assert_int_equal(0, examples_init(&examples, &config, &tiny.vocab, &tiny.stream));
    struct vocab huge = tiny.vocab;
    huge.size = 20000000;
    huge.counts = calloc(huge.size, sizeof *huge.counts);
    if (!huge.counts) skip();
    config.model_dim = 4096;
    struct plan plan;
    assert_int_equal(0, planner_make(&plan, &config, &huge, &examples, &machine));
    free(huge.counts);
    assert_int_equal(0, plan.fits);
    assert_true(plan.plain_bytes == 2ull * 20000000 * 16384);
    assert_non_null(strstr(plan.advice, "model.dim"));
    assert_non_null(strstr(plan.advice, "file"));
    assert_string_equal("", report_sentence()); /* planning itself has not failed, so there is no message */
}

/* ---- CUDA ---- */

/* Lock-free training has no batches in flight, but it measures its held-out examples in batches. */
static void test_held_out_examples_of_lock_free_training(void **state) {
    struct config config = tiny_config(EXAMPLE_WINDOW);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 5000, 3000, 20, 1);
    uint64_t batches = plan_for(&config, &machine).work_bytes;
    config.train_update = UPDATE_HOGWILD;
    assert_int_equal(0, plan_for(&config, &machine).work_bytes);
    config.train_batch = 16384; /* as the other had by default */
    config.train_held_out = 0.01;
    uint64_t few = plan_for(&config, &machine).work_bytes;
    config.train_held_out = 0.2;
    uint64_t many = plan_for(&config, &machine).work_bytes;
    assert_true(0 < few && few < many / 2 && many < batches / 2);
}

static void test_gpu_split(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 200000, 20000, 12, 1);
    config.optimizer_rule = RULE_ADAGRAD;
    struct plan plan = plan_for(&config, &machine);
    uint64_t row = table_row_bytes(&plan.layout, PLACE_GPU, PLACE_GPU);
    assert_int_equal(200000 * row, plan.gpu_bytes);
    assert_int_equal(200000, plan.hot_rows); /* all rows fit */
    assert_int_equal(200000 * row, plan.hot_bytes);
    assert_int_equal(0, plan.pinned_bytes);
    assert_true(plan.hot_hits == 1);
    assert_true(plan.link_bytes < 1);
    assert_true(plan.floor_pairs > 0);
    assert_int_equal(1, plan.fits);

    config.memory_hot_rows = 0;
    struct plan cold = plan_for(&config, &machine);
    assert_int_equal(0, cold.hot_rows);
    assert_true(cold.hot_hits == 0);
    assert_true(fabs(cold.link_bytes - 2 * cold.batch_targets * (double)row) < 1);
    assert_true(cold.floor_pairs <= plan.floor_pairs);

    config.memory_hot_rows = 2000; /* 1% of the rows gets far more than 1% of the reads, since counts follow Zipf's law */
    struct plan warm = plan_for(&config, &machine);
    double hits = 0;
    for (int i = 0; i < 2000; i++) hits += (double)tiny.vocab.counts[i] / (double)tiny.vocab.kept;
    assert_float_equal(hits, warm.hot_hits, 0.01);
    assert_true(warm.link_bytes < cold.link_bytes && warm.link_bytes > 0);
    assert_int_equal(cold.gpu_needed + 2000 * row, warm.gpu_needed);
}

/* Hot rows are on the GPU and not on the host, for pinned tables and for tables in files. Tries no hot rows, some, all but one, all, and too many. */
static void test_hot_rows_leave_the_host(void **state) {
    enum { ROWS = 200000 };
    static const uint64_t hot[] = {0, 1, 12345, ROWS - 1, ROWS, ROWS + 10000};
    static const int places[][2] = {{PLACE_PINNED, PLACE_PINNED}, {PLACE_FILE, PLACE_FILE}, {PLACE_PINNED, PLACE_FILE},
                                    {PLACE_FILE, PLACE_PINNED}, {PLACE_GPU, PLACE_FILE}};
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, ROWS, 2000, 12, 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct config config = tiny_config(EXAMPLE_LIST);
        config.optimizer_rule = RULE_ADAGRAD;
        config.memory_target = places[i][0], config.memory_target_state = places[i][1];
        config.memory_hot_rows = 0;
        struct plan cold = plan_for(&config, &machine);
        uint64_t row = (cold.pinned_bytes + cold.file_bytes) / ROWS, spare = 40 << 20; /* tolerance: buffers, and rounding to
                                                                                        * whole pages */
        assert_true(row > 0 && cold.hot_bytes == 0);
        for (size_t j = 0; j < sizeof hot / sizeof *hot; j++) {
            uint64_t rows = hot[j] < ROWS ? hot[j] : ROWS;
            config.memory_hot_rows = hot[j];
            struct plan plan = plan_for(&config, &machine);
            assert_int_equal(rows, plan.hot_rows);
            assert_int_equal(rows * row, plan.hot_bytes);
            assert_int_equal(cold.gpu_bytes, plan.gpu_bytes);
            assert_int_equal(cold.pinned_bytes / ROWS * (ROWS - rows), plan.pinned_bytes);
            assert_int_equal(cold.file_bytes / ROWS * (ROWS - rows), plan.file_bytes);
            assert_true(plan.gpu_needed <= cold.gpu_needed + rows * row); /* less is needed if the last rows need no slots */
            assert_true(plan.gpu_needed > rows * row + plan.gpu_bytes);
            assert_true(plan.host_needed <= cold.host_needed - cold.pinned_bytes + plan.pinned_bytes + spare);
            assert_int_equal(cold.target_bytes, plan.target_bytes); /* target_bytes counts the whole table, wherever its rows are */
            assert_true(rows == ROWS ? plan.link_bytes == 0 : rows > 12345 || plan.link_bytes > 0);
        }
        config.memory_hot_rows = COUNT_AUTO; /* auto keeps as many rows on the GPU as fit there, even if the table is in a file */
        assert_int_equal(ROWS, plan_for(&config, &machine).hot_rows);
    }
}

/* The host has exactly the memory that is needed, and then one byte less. */
static void test_the_host_just_fits(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine gpu = gpu_machine(80000), cpu = cpu_machine();
    tiny_make(&tiny, 200000, 2000, 12, 1);
    for (int i = 0; i < 4; i++) {
        struct planner_machine *machine = i < 2 ? &gpu : &cpu;
        config.memory_hot_rows = i == 1 ? 150000 : 0;
        machine->host_available = ROOMY;
        struct plan plan = plan_for(&config, machine);
        uint64_t held = plan.host_available - ROOMY; /* memory that is already in use */
        machine->host_available = plan.host_needed - held;
        assert_int_equal(1, plan_for(&config, machine).fits);
        machine->host_available--;
        plan = plan_for(&config, machine);
        assert_true(!plan.fits && !plan.fits_host && *plan.advice);
        machine->host_available = 0; /* available memory is unknown, so no plan is refused for it */
        assert_int_equal(1, plan_for(&config, machine).fits);
    }
}

/* A run with the number of columns that the advice names fits; with a twentieth more it does not. A GPU that trains lock-free is
 * never advised to keep tables in files. */
static void test_advice_is_enough(void **state) {
    struct planner_machine gpu = gpu_machine(4000), cpu = cpu_machine();
    tiny_make(&tiny, 300000, 2000, 12, 1);
    for (int i = 0; i < 2; i++) {
        struct config config = tiny_config(EXAMPLE_WINDOW);
        struct planner_machine *machine = i ? &gpu : &cpu;
        config.train_update = UPDATE_HOGWILD;
        config.optimizer_rule = RULE_SGD;
        config.memory_hot_rows = 0;
        config.memory_target = config.memory_context = PLACE_PINNED;
        config.model_dim = 4096;
        machine->host_available = (uint64_t)3 << 30;
        struct plan plan = plan_for(&config, machine);
        unsigned long dim = 0;
        assert_false(plan.fits);
        const char *at = strstr(plan.advice, "lower model.dim to ");
        assert_true(at && sscanf(at, "lower model.dim to %lu", &dim) == 1);
        assert_true((i == 0) == !strstr(plan.advice, "train.update = batch and keep tables in files"));
        config.model_dim = dim;
        assert_true(plan_for(&config, machine).fits);
        config.model_dim = dim + dim / 20 + 4;
        assert_false(plan_for(&config, machine).fits);
    }
}

/* Training goes on while a checkpoint is written, by default, if there is memory for copies of rows. */
static void test_copies_of_rows_take_memory(void **state) {
    struct planner_machine cpu = cpu_machine(), gpu = gpu_machine(80000);
    tiny_make(&tiny, 300000, 2000, 12, 1);
    struct config config = tiny_config(EXAMPLE_WINDOW);
    config.optimizer_rule = RULE_ADAM;
    config.model_dim = 400;
    struct plan goes_on = plan_for(&config, &cpu);
    assert_true(goes_on.snapshot_bytes > goes_on.plain_bytes / 8 && goes_on.snapshot_bytes < goes_on.plain_bytes / 7);
    config.run_checkpoint_wait = 1;
    struct plan waits = plan_for(&config, &cpu);
    assert_int_equal(0, waits.snapshot_bytes);
    assert_true(goes_on.host_needed == waits.host_needed + goes_on.snapshot_bytes);
    config.run_checkpoint_wait = TRUTH_AUTO;
    assert_true(plan_for(&config, &gpu).snapshot_bytes == goes_on.snapshot_bytes);
    config.train_update = UPDATE_HOGWILD;
    assert_true(plan_for(&config, &cpu).snapshot_bytes && !plan_for(&config, &gpu).snapshot_bytes);
    config.train_update = UPDATE_BATCH;
    cpu.host_available = goes_on.host_needed - (goes_on.host_available - ROOMY);
    assert_true(plan_for(&config, &cpu).snapshot_bytes == goes_on.snapshot_bytes);
    cpu.host_available--;
    struct plan narrow = plan_for(&config, &cpu);
    assert_true(narrow.fits && !narrow.snapshot_bytes);
    config.run_checkpoint_wait = 0;
    assert_int_equal(0, plan_for(&config, &cpu).fits);
    struct plan on_gpu = plan_for(&config, &gpu);
    assert_true(on_gpu.snapshot_bytes == goes_on.snapshot_bytes && on_gpu.host_needed > goes_on.snapshot_bytes);
    config.model_dim = 20; /* small tables */
    config.run_checkpoint_wait = TRUTH_AUTO;
    assert_int_equal(0, plan_for(&config, &cpu).snapshot_bytes);
}

/* bfloat16 is advised if it makes the run fit and the rows are not bfloat16 yet. */
static void test_bfloat16_is_advised(void **state) {
    struct planner_machine cpu = cpu_machine();
    tiny_make(&tiny, 300000, 2000, 12, 1);
    struct config config = tiny_config(EXAMPLE_WINDOW);
    config.optimizer_rule = RULE_ADAM;
    config.model_dim = 400;
    cpu.host_available = (uint64_t)2 << 30; /* 2 x 300,000 records of 4,800 bytes are 2.7 GiB; in bfloat16 they are half of that */
    struct plan plan = plan_for(&config, &cpu);
    assert_true(!plan.fits && strstr(plan.advice, "set model.precision = bfloat16, or lower model.dim to "));
    config.model_precision = config.model_state_precision = PRECISION_BFLOAT16;
    assert_true(plan_for(&config, &cpu).fits);
    config.model_dim = 1000;
    plan = plan_for(&config, &cpu);
    assert_true(!plan.fits && !strstr(plan.advice, "bfloat16"));
    config.model_precision = config.model_state_precision = PRECISION_FLOAT32;
    plan = plan_for(&config, &cpu);
    assert_true(!plan.fits && !strstr(plan.advice, "bfloat16"));
}

/* The run is planned with four budgets: the bytes that it needs; one byte less; the bytes for one more hot row; one byte less
 * than for that row. */
static void test_the_gpu_just_fits(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 20000, 400000, 12, 1);
    config.train_batch = 256;
    config.memory_hot_rows = 0;
    config.memory_gpu_budget = 64 << 20; /* the ids do not fit a quarter of this budget, so they stay on the host */
    struct plan plan = plan_for(&config, &machine);
    assert_true(plan.fits && plan.stream_pinned > 0 && plan.gpu_needed < 64 << 20);
    config.memory_gpu_budget = plan.gpu_needed;
    plan = plan_for(&config, &machine);
    assert_true(plan.fits && plan.gpu_needed == plan.gpu_available);
    config.memory_gpu_budget--;
    plan = plan_for(&config, &machine);
    assert_true(!plan.fits && !plan.fits_gpu && plan.fits_host && *plan.advice);
    config.memory_hot_rows = COUNT_AUTO;
    uint64_t row = table_row_bytes(&plan.layout, PLACE_PINNED, PLACE_PINNED);
    for (uint64_t rows = 0; rows < 4; rows++) {
        config.memory_gpu_budget = plan.gpu_needed + rows * row;
        assert_int_equal(rows, plan_for(&config, &machine).hot_rows);
        config.memory_gpu_budget += row - 1;
        assert_int_equal(rows, plan_for(&config, &machine).hot_rows);
    }
}

/* For managed rows the system itself needs one byte in 188: page tables, and the driver's records. */
static void test_what_the_system_keeps_of_host_rows_is_counted(void **state) {
    enum { ROWS = 200000 };
    struct planner_machine machine = gpu_machine(80000);
    struct config config = tiny_config(EXAMPLE_LIST);
    struct plan plan[2];
    tiny_make(&tiny, ROWS, 2000, 12, 1);
    config.memory_hot_rows = 0;
    config.run_checkpoint_wait = 1;
    for (int i = 0; i < 2; i++) {
        config.model_dim = i ? 4096 : 1024;
        plan[i] = plan_for(&config, &machine);
    }
    uint64_t rows = plan[1].pinned_bytes - plan[0].pinned_bytes, more = plan[1].host_needed - plan[0].host_needed;
    assert_in_range(more - rows, rows / 188, rows / 188 + (1 << 20)); /* tolerance: buffers, whose size depends on the width of
                                                                       * rows */
}

/* The id stream is on the GPU if it takes at most a quarter of the budget. Otherwise it is in pinned host memory. */
static void test_an_id_stream_is_on_the_gpu_or_pinned(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 200, 400000, 12, 1);
    config.train_batch = 256;
    config.memory_hot_rows = 0;
    uint64_t ids = 4 * tiny.stream.tokens + 8 * (tiny.stream.sentences + 1);
    config.memory_gpu_budget = 4 * ids;
    struct plan here = plan_for(&config, &machine);
    assert_int_equal(ids, here.stream_gpu);
    assert_int_equal(0, here.stream_pinned);
    config.memory_gpu_budget--;
    struct plan there = plan_for(&config, &machine);
    assert_int_equal(0, there.stream_gpu);
    assert_int_equal(ids, there.stream_pinned);
    assert_int_equal(here.gpu_needed - ids, there.gpu_needed);
    assert_in_range(there.host_needed - here.host_needed, ids, ids + (4 << 20)); /* tolerance: two arrays, rounded to whole pages */
}

static void test_hot_rows_fill_the_budget(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 200000, 5000, 12, 1);
    config.memory_gpu_budget = 180ull << 20; /* the contexts take 98 MiB of this budget */
    config.train_batch = 512;
    struct plan plan = plan_for(&config, &machine);
    uint64_t row = table_row_bytes(&plan.layout, PLACE_PINNED, PLACE_PINNED);
    assert_true(plan.hot_rows > 0 && plan.hot_rows < 200000);
    assert_true(plan.gpu_needed <= 180ull << 20);
    assert_true(plan.gpu_needed + row > 180ull << 20);
    assert_int_equal(1, plan.fits);
}

static void test_auto_places(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 200000, 5000, 12, 1);
    config.optimizer_rule = RULE_ADAGRAD;
    config.memory_target = config.memory_target_state = config.memory_context = config.memory_context_state = PLACE_AUTO;
    config.train_batch = 512;
    struct plan plan = plan_for(&config, &machine);
    assert_int_equal(PLACE_GPU, plan.target);
    assert_int_equal(PLACE_GPU, plan.target_state);
    assert_int_equal(PLACE_GPU, plan.context);
    assert_int_equal(0, plan.hot_rows);
    assert_int_equal(0, plan.pinned_bytes);
    config.memory_gpu_budget = 260ull << 20; /* enough for one table of 171 MiB with its state, but not for two */
    plan = plan_for(&config, &machine);
    assert_int_equal(PLACE_GPU, plan.context);
    assert_int_equal(PLACE_GPU, plan.context_state);
    assert_int_equal(PLACE_PINNED, plan.target);
    assert_int_equal(1, plan.fits);
    machine = cpu_machine();
    plan = plan_for(&config, &machine);
    assert_int_equal(PLACE_PINNED, plan.context);
    assert_int_equal(1, plan.one_record_context);
}

static void test_gpu_advice(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    tiny_make(&tiny, 200000, 5000, 12, 1);
    config.memory_gpu_budget = 99ull << 20; /* the contexts alone take 98 MiB */
    config.train_batch = 512;
    struct plan plan = plan_for(&config, &machine);
    assert_int_equal(0, plan.fits);
    assert_non_null(strstr(plan.advice, "memory.context = pinned"));
    config.memory_context = config.memory_context_state = PLACE_PINNED; /* follows the advice of the message */
    assert_int_equal(1, plan_for(&config, &machine).fits);

    config = tiny_config(EXAMPLE_LIST);
    config.memory_gpu_budget = 180ull << 20;
    config.memory_hot_rows = 199999;
    config.train_batch = 512;
    plan = plan_for(&config, &machine);
    assert_int_equal(0, plan.fits);
    const char *rows = strstr(plan.advice, "memory.hot_rows to ");
    assert_non_null(rows);
    config.memory_hot_rows = strtoull(rows + strlen("memory.hot_rows to "), NULL, 10);
    assert_int_equal(1, plan_for(&config, &machine).fits);
    config.memory_hot_rows = COUNT_AUTO;
    config.train_batch = 1 << 20;
    config.negatives_count = 1000;
    plan = plan_for(&config, &machine);
    assert_int_equal(0, plan.fits);
    const char *at = strstr(plan.advice, "train.batch to ");
    assert_non_null(at);
    config.train_batch = strtoull(at + strlen("train.batch to "), NULL, 10);
    assert_int_equal(1, plan_for(&config, &machine).fits);
}

/* ---- floors ---- */

/* Tests the plan's highest speed. It is the smallest of these: the pairs a second that the link carries in one direction, that it carries in both
 * at once, and that the GPU's memory carries; 0 if one of these rates is unknown. */
static void test_floor(void **state) {
    struct plan plan = {.batch_pairs = 1000, .link_bytes = 2e9, .memory_bytes = 8e9};
    static const struct {
        struct bench_limits rates;
        double pairs;
        int link;
    } cases[] = {{{50e9, 50e9, 100e9, 1000e9}, 50000, 1}, {{10e9, 50e9, 100e9, 1000e9}, 10000, 1},
                 {{50e9, 20e9, 100e9, 1000e9}, 20000, 1}, {{50e9, 50e9, 60e9, 1000e9}, 30000, 1},
                 {{50e9, 50e9, 100e9, 399e9}, 49875, 0},  {{50e9, 50e9, 100e9, 401e9}, 50000, 1},
                 {{50e9, 50e9, 100e9, 0}, 0, 0},          {{0, 0, 0, 0}, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan.floor_link = 0;
        planner_set_floor(&plan, &cases[i].rates);
        assert_float_equal(cases[i].pairs, plan.floor_pairs, 1e-6 * cases[i].pairs);
        assert_int_equal(cases[i].link, plan.floor_link);
    }
}

/* ---- printing ---- */

static void print_to(char text[4096], const struct plan *plan, const struct config *config) {
    FILE *file = tmpfile();
    fflush(stdout);
    int kept = dup(1);
    dup2(fileno(file), 1);
    planner_print(plan, config, 1);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    rewind(file);
    text[fread(text, 1, 4095, file)] = 0;
    fclose(file);
}

static void test_print(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine machine = gpu_machine(80000);
    char text[4096] = "";
    tiny_make(&tiny, 2000, 500, 12, 1);
    struct plan plan = plan_for(&config, &machine);
    print_to(text, &plan, &config);
    assert_true(strlen(text) > 200);
    static const char *const parts[] = {"2,000 x 100 float32", "target ", "context_state", "hot rows", "GPU needed",
                                        "memory needed", "pairs/s", "fits", "yes"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_non_null(strstr(text, parts[i]));
    machine.rates = (struct bench_limits){0};
    plan = plan_for(&config, &machine);
    print_to(text, &plan, &config);
    assert_null(strstr(text, "pairs/s"));
    assert_non_null(strstr(text, "at most        unknown"));
}

/* A plan whose rows are not all on the GPU tells how small the tables would be in bfloat16, and with one number of state a row. */
static void test_smaller_tables(void **state) {
    struct config config = tiny_config(EXAMPLE_LIST);
    struct planner_machine gpu = gpu_machine(80000), cpu = cpu_machine();
    char text[4096] = "";
    tiny_make(&tiny, 20000, 2000, 12, 1);
    config.optimizer_rule = RULE_ADAGRAD;
    config.memory_hot_rows = 100;
    struct plan plan = plan_for(&config, &gpu), other = plan;
    print_to(text, &plan, &config);
    assert_non_null(strstr(text, "optimizer.rule = rowwise-adagrad"));
    config.optimizer_rule = RULE_ROWWISE_ADAGRAD;
    other = plan_for(&config, &gpu);
    assert_true(other.by_row_bytes == 0 && plan_table_bytes(&other) < plan_table_bytes(&plan));
    assert_int_equal(plan_table_bytes(&other), plan.by_row_bytes);
    config.optimizer_rule = RULE_ADAGRAD;
    config.model_precision = config.model_state_precision = PRECISION_BFLOAT16;
    other = plan_for(&config, &gpu);
    assert_int_equal(gpu.ops->halves ? plan_table_bytes(&other) : 0, plan.halved_bytes);
    assert_int_equal(0, other.halved_bytes);
    config.model_precision = config.model_state_precision = PRECISION_FLOAT32;
    assert_int_equal(0, plan_for(&config, &cpu).by_row_bytes);
    config.memory_hot_rows = COUNT_AUTO; /* all rows are on the GPU */
    other = plan_for(&config, &gpu);
    assert_true(other.by_row_bytes == 0 && other.halved_bytes == 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, release)
    const struct CMUnitTest tests[] = {
        TEST(test_distinct_rows),
        TEST(test_distinct_rows_of_unsorted_ids),
        TEST(test_distinct_rows_that_words_share), TEST(lists_with_rows), TEST(items_as_examples), TEST(triples), TEST(documents),
        TEST(trees_and_wide_windows),
        TEST(test_hits_of_rows_that_words_share),
        TEST(test_cpu_bytes),
        TEST(test_files),
        TEST(test_batches),
        TEST(test_cpu_does_not_fit),
        TEST(test_held_out_examples_of_lock_free_training),
        TEST(test_gpu_split),
        TEST(test_hot_rows_leave_the_host),
        TEST(test_the_host_just_fits),
        TEST(test_the_gpu_just_fits),
        TEST(test_what_the_system_keeps_of_host_rows_is_counted),
        TEST(test_an_id_stream_is_on_the_gpu_or_pinned),
        TEST(test_hot_rows_fill_the_budget),
        TEST(test_auto_places),
        TEST(test_gpu_advice),
        TEST(test_advice_is_enough),
        TEST(test_copies_of_rows_take_memory),
        TEST(test_bfloat16_is_advised),
        TEST(test_smaller_tables),
        cmocka_unit_test(test_floor),
        TEST(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
