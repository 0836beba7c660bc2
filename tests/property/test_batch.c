/* Properties of batches and of the exact step on the CPU: both depend only on the random draws, not on the number of workers or
 * the division of the work. */
#include "tests/testing.h"

#include "kernels/backend.h"

#include "cpu_batches.h"
#include "random_tree.h"

enum { ROWS = 97, TOKENS = 3000, SENTENCES = 120, DIM = 20, NEGATIVES = 6, VARIANTS = 24 };

static uint32_t ids[TOKENS];
static uint64_t starts[SENTENCES + 1];
static uint32_t keep[ROWS];

/* Makes a corpus with frequent and rare words, in sentences of 1 to 49 words. */
static struct example_source corpus(void) {
    srand(7);
    for (int i = 0; i < TOKENS; i++) {
        double u = (rand() + 0.5) / (RAND_MAX + 1.0);
        ids[i] = (uint32_t)(ROWS * u * u * u);
    }
    starts[0] = 0;
    for (int i = 1; i < SENTENCES; i++) starts[i] = starts[i - 1] + 1 + (uint64_t)(rand() % 49);
    starts[SENTENCES] = TOKENS;
    for (int i = 0; i < ROWS; i++) keep[i] = i < 10 ? 0x60000000u : UINT32_MAX;
    return (struct example_source){.ids = ids,
                                   .starts = starts,
                                   .tokens = TOKENS,
                                   .sentences = SENTENCES,
                                   .rows = ROWS,
                                   .mode = EXAMPLE_WINDOW,
                                   .window = 4,
                                   .shrink = 1,
                                   .keep = keep,
                                   .positives = 3,
                                   .negatives = NEGATIVES,
                                   .exclude = 1,
                                   .noise = NOISE_UNIFORM,
                                   .seed = 11};
}

static void assert_same_blocks(const struct batch_view *a, const struct batch_view *b) {
    assert_int_equal(a->blocks, b->blocks);
    assert_memory_equal(a->target_starts, b->target_starts, (a->blocks + 1) * sizeof(uint64_t));
    assert_memory_equal(a->context_starts, b->context_starts, (a->blocks + 1) * sizeof(uint64_t));
    assert_memory_equal(a->positives, b->positives, a->blocks * sizeof(uint32_t));
    assert_memory_equal(a->target_ids, b->target_ids, a->target_starts[a->blocks] * sizeof(uint32_t));
    assert_memory_equal(a->context_ids, b->context_ids, a->context_starts[a->blocks] * sizeof(uint32_t));
    assert_true(!a->weights == !b->weights);
    for (uint64_t i = 0; i < a->blocks && a->weights; i++)
        assert_memory_equal(a->weights + a->context_starts[i], b->weights + b->context_starts[i], a->positives[i] * sizeof(float));
}

/* Gives each position of the corpus a different weight, by which the test recognizes it. */
static void weigh_places(struct example_source *s) {
    static float weights[TOKENS];
    for (int i = 0; i < TOKENS; i++) weights[i] = (float)(2 * i + 2);
    s->weights = weights;
    s->weight_scale = 0.5f;
}

enum { BUCKETS = 40, TABLE_ROWS = ROWS + BUCKETS };
static uint64_t shared_starts[ROWS + 1];
static uint32_t shared_rows[ROWS * 8];

/* Gives each word its own row and up to seven shared rows, which are after the rows of the words. */
static void share_rows(struct example_source *s, int by_window) {
    uint64_t at = 0, most = 0;
    srand(9);
    for (uint32_t word = 0; word < ROWS; word++) {
        uint64_t count = 1 + (uint64_t)(rand() % 8);
        shared_starts[word] = at;
        shared_rows[at++] = word;
        for (uint64_t i = 1; i < count; i++) shared_rows[at++] = ROWS + (uint32_t)(rand() % BUCKETS);
        if (count > most) most = count;
    }
    shared_starts[ROWS] = at;
    s->rows = ROWS + BUCKETS;
    s->target_only = BUCKETS;
    s->pool = (struct example_pool){.on = 1, .whole = 1};
    s->subwords = (struct example_subwords){shared_starts, shared_rows, ROWS, at, most, by_window};
}

static struct huffman tree; /* tree of the corpus' words, made once */

/* Lets the source predict words by the nodes of their paths. */
static void predict_by_paths(struct example_source *s) {
    uint64_t counts[ROWS];
    for (uint64_t i = 0; i < ROWS; i++) counts[i] = 3000 / (i + 1);
    huffman_release(&tree);
    tree = add_paths(s, counts, ROWS);
}

/* Makes sources of every mode, with the options that change how examples are made. */
static int variants(struct example_source out[VARIANTS]) {
    struct example_source base = corpus();
    int n = 0;
    out[n++] = base;
    out[n] = base, out[n++].per_pair = 1;
    out[n] = base, out[n++].shuffle = 1;
    out[n] = base, out[n++].shuffle_items = 1;
    out[n] = base, out[n].shuffle = 1, out[n].distinct = 1, out[n++].shuffle_items = 1;
    out[n] = base, share_rows(&out[n], 0), out[n++].per_pair = 1;
    out[n] = base, share_rows(&out[n], 0), out[n].shuffle = 1, out[n++].distinct = 1;
    out[n] = base, share_rows(&out[n++], 1);
    int paths = n;
    out[n++] = base;
    out[n] = base, out[n].shuffle = 1, out[n++].pool = (struct example_pool){.on = 1};
    for (int by_window = 0; by_window < 2; by_window++) out[n] = base, share_rows(&out[n++], by_window);
    predict_by_paths(&out[paths]);
    for (int i = paths; i < n; i++) out[i].paths = out[paths].paths, out[i].negatives = 0;
    base.mode = EXAMPLE_LIST;
    out[n++] = base;
    out[n] = base, out[n].targets_all = 1, out[n++].positives = 0;
    out[n] = base, out[n].shuffle = 1, out[n].short_repeat = 1, out[n++].per_pair = 1;
    out[n] = base, out[n].replacement = 1, out[n++].distinct = 1;
    base.mode = EXAMPLE_ADJACENCY;
    out[n++] = base;
    out[n] = base, out[n].noise = NOISE_LOG_UNIFORM, out[n].log2_rows = 6.599912842187128, out[n++].shuffle = 1;
    base.pool.on = 1;
    out[n] = base, out[n].pooled = 4, out[n].shuffle = 1, out[n++].short_repeat = 1;
    out[n] = base, out[n].pool.own = 0.5f, out[n].positives = 0, out[n++].distinct = 1;
    out[n] = base, out[n].pool.own = 0.5f, out[n].mode = EXAMPLE_LIST, out[n].targets_all = 1, out[n++].per_pair = 1;
    return n;
}

static void batches_do_not_depend_on_workers(void **state) {
    struct example_source source[VARIANTS];
    struct backend *one = open_cpu(1), *many = open_cpu(5);
    for (int i = 0, n = variants(source); i < n; i++) {
        uint64_t count = example_count(&source[i]);
        if (source[i].mode != EXAMPLE_WINDOW && i % 2) weigh_places(&source[i]);
        backend_cpu.source(one, &source[i]);
        backend_cpu.source(many, &source[i]);
        struct batch_view a = make(one, 2, 0, count, 0), b = make(many, 2, 0, count, 0);
        assert_true(a.blocks > 10);
        assert_same_blocks(&a, &b);
    }
    backend_cpu.close(one);
    backend_cpu.close(many);
}

/* Blocks of examples made one at a time must be those of all examples in one batch: bounds on a batch's size must change nothing. */
static void batches_do_not_depend_on_their_bounds(void **state) {
    struct example_source source[VARIANTS];
    struct backend *whole = open_cpu(2), *single = open_cpu(1);
    for (int i = 0, n = variants(source); i < n; i++) {
        uint64_t count = example_count(&source[i]), block = 0;
        backend_cpu.source(whole, &source[i]);
        backend_cpu.source(single, &source[i]);
        struct batch_view a = make(whole, 1, 0, count, 0);
        for (uint64_t e = 0; e < count; e++) {
            struct batch_view b = make(single, 1, e, 1, 0);
            for (uint64_t k = 0; k < b.blocks; k++, block++) {
                uint64_t t = b.target_starts[k + 1] - b.target_starts[k],
                         c = b.context_starts[k + 1] - b.context_starts[k];
                assert_int_equal(a.target_starts[block + 1] - a.target_starts[block], t);
                assert_int_equal(a.context_starts[block + 1] - a.context_starts[block], c);
                assert_memory_equal(a.target_ids + a.target_starts[block], b.target_ids + b.target_starts[k], t * 4);
                assert_memory_equal(a.context_ids + a.context_starts[block], b.context_ids + b.context_starts[k],
                                    c * 4);
            }
        }
        assert_int_equal(block, a.blocks);
    }
    backend_cpu.close(whole);
    backend_cpu.close(single);
}

/* A positive must have the weight of a position in its list that has this item. Without replacement, two positives must have different positions. */
static void positives_have_the_weights_of_their_places(void **state) {
    struct example_source source[VARIANTS];
    struct backend *backend = open_cpu(3);
    for (int i = 0, n = variants(source); i < n; i++) {
        struct example_source *s = &source[i];
        if (s->mode == EXAMPLE_WINDOW) continue;
        weigh_places(s);
        backend_cpu.source(backend, s);
        struct batch_view view = make(backend, 0, 0, example_count(s), 0);
        for (uint64_t block = 0; block < view.blocks; block++) {
            const uint32_t *contexts = view.context_ids + view.context_starts[block];
            const float *weights = view.weights + view.context_starts[block];
            uint64_t list = example_sentence_of(s, (uint64_t)weights[0] - 1);
            for (uint32_t j = 0; j < view.positives[block]; j++) {
                uint64_t place = (uint64_t)weights[j] - 1;
                assert_int_equal(contexts[j], ids[place]);
                assert_true(place >= starts[list] && place < starts[list + 1]);
                for (uint32_t k = 0; k < j && !s->replacement && !s->short_repeat; k++) assert_true(weights[k] != weights[j]);
            }
        }
    }
    backend_cpu.close(backend);
}

static void epochs_differ(void **state) {
    struct example_source source = corpus();
    struct backend *a = open_cpu(1), *b = open_cpu(1);
    backend_cpu.source(a, &source);
    backend_cpu.source(b, &source);
    struct batch_view first = make(a, 0, 0, TOKENS, 0), second = make(b, 1, 0, TOKENS, 0);
    uint64_t n = first.context_starts[first.blocks] < second.context_starts[second.blocks]
                     ? first.context_starts[first.blocks]
                     : second.context_starts[second.blocks];
    assert_memory_not_equal(first.context_ids, second.context_ids, n * 4);
    backend_cpu.close(a);
    backend_cpu.close(b);
}

/* Asserts that the targets of block i of `shared` are the rows of words[count]. */
static void assert_rows_of(const struct batch_view *shared, uint64_t i, const uint32_t *words, uint64_t count) {
    uint64_t at = shared->target_starts[i];
    for (uint64_t j = 0; j < count; j++)
        for (uint64_t k = shared_starts[words[j]]; k < shared_starts[words[j] + 1]; k++)
            assert_int_equal(shared->target_ids[at++], shared_rows[k]);
    assert_int_equal(at, shared->target_starts[i + 1]);
}

/* Words with several rows must make the same windows as words with one row. With by_window the targets are the rows of all words in the window,
 * otherwise those of the word in the middle. */
static void shared_rows_make_the_same_windows(void **state) {
    struct backend *plain = open_cpu(2), *shared = open_cpu(3);
    for (int variant = 0; variant < 4; variant++) {
        int by_window = variant & 1, per_pair = variant >> 1 && !by_window;
        struct example_source source = corpus(), other = source;
        source.pool.on = 1;
        share_rows(&other, by_window);
        other.per_pair = per_pair;
        backend_cpu.source(plain, &source);
        backend_cpu.source(shared, &other);
        struct batch_view a = make(plain, 1, 0, TOKENS, 0), b = make(shared, 1, 0, TOKENS, 0);
        assert_int_equal(a.blocks, b.blocks);
        for (uint64_t i = 0; i < a.blocks; i++) {
            const uint32_t *window = a.target_ids + a.target_starts[i], *middle = a.context_ids + a.context_starts[i];
            const uint32_t *contexts = b.context_ids + b.context_starts[i];
            uint64_t words = a.target_starts[i + 1] - a.target_starts[i], count = b.context_starts[i + 1] - b.context_starts[i];
            assert_rows_of(&b, i, by_window ? window : middle, by_window ? words : 1);
            assert_int_equal(b.positives[i], by_window ? 1 : words);
            assert_memory_equal(contexts, by_window ? middle : window, b.positives[i] * sizeof *contexts);
            assert_int_equal(count, b.positives[i] + (per_pair ? words : 1) * NEGATIVES);
            for (uint64_t j = b.positives[i]; j < count; j++) {
                assert_true(contexts[j] < ROWS);
                for (uint32_t k = 0; k < b.positives[i]; k++) assert_int_not_equal(contexts[j], contexts[k]);
            }
            if (by_window) assert_memory_equal(contexts, middle, count * sizeof *contexts);
        }
    }
    backend_cpu.close(plain);
    backend_cpu.close(shared);
}

/* Asserts that the contexts from `at` on are the nodes of one code (0 or 1) on the words' paths. Returns the index after the
 * last of them. */
static uint64_t assert_nodes_of(const struct batch_view *v, uint64_t at, const uint32_t *words, uint64_t count, uint64_t code) {
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = tree.starts[2 * words[i] + code]; k < tree.starts[2 * words[i] + code + 1]; k++)
            assert_int_equal(v->context_ids[at++], tree.nodes[k]);
    return at;
}

/* Windows must have the same targets with and without paths. Each positive is replaced by the nodes of its path, nodes of code 0
 * first. */
static void paths_are_those_of_the_words_that_are_predicted(void **state) {
    struct backend *plain = open_cpu(2), *along = open_cpu(3);
    for (int variant = 0; variant < 4; variant++) {
        struct example_source source = corpus(), other;
        if (variant) source.pool.on = 1;
        if (variant > 1) share_rows(&source, variant == 2);
        source.negatives = 0;
        other = source;
        predict_by_paths(&other);
        backend_cpu.source(plain, &source);
        backend_cpu.source(along, &other);
        struct batch_view a = make(plain, 1, 0, TOKENS, 0), b = make(along, 1, 0, TOKENS, 0);
        assert_true(a.blocks > 1000);
        assert_int_equal(a.blocks, b.blocks);
        assert_memory_equal(a.target_starts, b.target_starts, (a.blocks + 1) * sizeof *a.target_starts);
        assert_memory_equal(a.target_ids, b.target_ids, a.target_starts[a.blocks] * sizeof *a.target_ids);
        for (uint64_t i = 0; i < a.blocks; i++) {
            const uint32_t *words = a.context_ids + a.context_starts[i];
            uint64_t first = b.context_starts[i], negative = assert_nodes_of(&b, first, words, a.positives[i], 0);
            assert_int_equal(b.positives[i], negative - first);
            assert_int_equal(b.context_starts[i + 1], assert_nodes_of(&b, negative, words, a.positives[i], 1));
        }
    }
    backend_cpu.close(plain);
    backend_cpu.close(along);
}

/* Makes each window as the documentation describes it, and compares the blocks. */
static void windows_are_word2vecs(void **state) {
    struct example_source s = corpus();
    struct backend *backend = open_cpu(2);
    backend_cpu.source(backend, &s);
    struct batch_view v = make(backend, 3, 0, TOKENS, 0);
    uint64_t block = 0;
    for (int k = 0; k < SENTENCES; k++) {
        uint32_t kept[64], at[64], n = 0;
        for (uint64_t p = starts[k]; p < starts[k + 1]; p++)
            if (draw_word(s.seed, DRAW_SUBSAMPLE, p, 3) <= keep[ids[p]]) {
                if (n < 64) kept[n] = ids[p], at[n] = (uint32_t)p;
                n++;
            }
        if (n > 64) n = 0, block = UINT64_MAX; /* the last sentence may be long and is not compared */
        if (block == UINT64_MAX) break;
        for (uint32_t m = 0; m < n; m++) {
            uint32_t w = draw_window(draw_word(s.seed, DRAW_WINDOW, at[m], 3), s.window), t = 0;
            for (int64_t j = (int64_t)m - w; j <= (int64_t)m + w; j++)
                if (j >= 0 && j < n && j != m) assert_int_equal(v.target_ids[v.target_starts[block] + t++], kept[j]);
            if (!t) continue;
            assert_int_equal(v.target_starts[block + 1] - v.target_starts[block], t);
            const uint32_t *c = v.context_ids + v.context_starts[block];
            assert_int_equal(c[0], kept[m]);
            for (uint32_t slot = 0; slot < s.negatives; slot++) {
                uint32_t id = kept[m];
                for (uint32_t attempt = 0; id == kept[m]; attempt++)
                    id = (uint32_t)draw_below(
                        draw_pair(draw_at(s.seed, DRAW_NEGATIVE, at[m], 3, slot / 2 + (attempt << 20)), slot % 2),
                        ROWS);
                assert_int_equal(c[1 + slot], id);
            }
            block++;
        }
    }
    assert_true(block > 100);
    backend_cpu.close(backend);
}

/* With `distinct`, no row may occur twice in the whole example of a list, for whichever positive a negative was drawn. */
static void check_lists_repeat_nothing(int per_pair) {
    struct example_source s = corpus();
    s.mode = EXAMPLE_LIST, s.targets_all = 1, s.distinct = 1, s.per_pair = per_pair;
    for (int i = 0; i < TOKENS; i++) ids[i] = (uint32_t)i % ROWS; /* a list shorter than ROWS has no item twice */
    struct backend *backend = open_cpu(2);
    backend_cpu.source(backend, &s);
    struct batch_view v = make(backend, 0, 0, TOKENS - 100, 0);
    assert_true(v.blocks > 1000);
    for (uint64_t b = 0; b < v.blocks; b++) {
        const uint32_t *c = v.context_ids + v.context_starts[b];
        uint64_t n = v.context_starts[b + 1] - v.context_starts[b];
        assert_int_equal(v.positives[b], 3);
        assert_int_equal(n, 3 + (per_pair ? 3 : 1) * NEGATIVES);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_not_equal(c[i], v.target_ids[v.target_starts[b]]);
            for (uint64_t j = 0; j < i; j++) assert_int_not_equal(c[i], c[j]);
        }
    }
    backend_cpu.close(backend);
}
static void lists_exclude_and_do_not_repeat(void **state) {
    for (int per_pair = 0; per_pair < 2; per_pair++) check_lists_repeat_nothing(per_pair);
}

/* Each example is either held out or trained, and this is the same in every epoch. */
static void held_out_is_a_partition(void **state) {
    struct example_source s = corpus();
    s.mode = EXAMPLE_ADJACENCY, s.positives = 0, s.negatives = 0;
    struct backend *backend = open_cpu(2);
    backend_cpu.source(backend, &s);
    uint64_t all = make(backend, 0, 0, SENTENCES, 0).blocks;
    s.held_out = 0x40000000u;
    backend_cpu.source(backend, &s);
    uint64_t trained = make(backend, 0, 0, SENTENCES, 0).blocks, held = make(backend, 0, 0, SENTENCES, 1).blocks;
    assert_int_equal(all, trained + held);
    assert_true(held > SENTENCES / 8 && held < SENTENCES / 2);
    uint32_t first = make(backend, 0, 0, SENTENCES, 1).target_ids[0];
    assert_int_equal(first, make(backend, 5, 0, SENTENCES, 1).target_ids[0]);
    backend_cpu.close(backend);
}

/* ---- the step ---- */

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct rule_options rule;
    struct record_layout layout;
};

static struct model open_model(unsigned threads, struct rule_options rule, enum place place, enum place state_place) {
    struct model m = {.backend = open_cpu(threads), .rule = rule};
    m.layout = record_layout_make(&rule, DIM);
    char *packed = calloc(TABLE_ROWS, m.layout.packed);
    srand(3);
    for (int side = 0; side < 2; side++) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/sptx-property-%d-%d", (int)getpid(), side);
        struct table_spec spec = {.name = side ? "context" : "target",
                                  .rows = TABLE_ROWS,
                                  .layout = m.layout,
                                  .weights = place,
                                  .state = state_place,
                                  .file_path = path};
        assert_int_equal(backend_cpu.table_open(m.backend, &spec, &m.table[side]), 0);
        for (int row = 0; row < TABLE_ROWS; row++)
            for (int j = 0; j < DIM; j++)
                ((float *)(packed + (uint64_t)row * m.layout.packed))[j] = (float)rand() / (float)RAND_MAX - 0.5f;
        assert_int_equal(backend_cpu.table_write(m.backend, m.table[side], 0, TABLE_ROWS, packed), 0);
    }
    free(packed);
    return m;
}

static void train_model(struct model *m, const struct example_source *source, uint64_t batch, uint64_t end) {
    backend_cpu.source(m->backend, source);
    for (uint64_t first = 0, step = 0; first < end; first += batch, step++) {
        struct batch_request request = {0, first, end - first < batch ? end - first : batch, 0};
        struct step_request go = {.target = m->table[0],
                                  .context = m->table[1],
                                  .rule = &m->rule,
                                  .lr = 0.01,
                                  .global_step = step,
                                  .mean = 1};
        struct step_result result;
        unsigned stage = step % 3;
        assert_int_equal(backend_cpu.make_batch(m->backend, stage, &request), 0);
        assert_int_equal(backend_cpu.step(m->backend, stage, &go), 0);
        assert_int_equal(backend_cpu.result(m->backend, stage, &result), 0);
        assert_true(result.loss > 0 && result.loss < 1e6);
    }
}

static char *read_model(struct model *m) {
    char *packed = malloc(2 * TABLE_ROWS * m->layout.packed);
    for (int side = 0; side < 2; side++)
        assert_int_equal(
            backend_cpu.table_read(m->backend, m->table[side], 0, TABLE_ROWS, packed + side * TABLE_ROWS * m->layout.packed), 0);
    return packed;
}

static void steps_do_not_depend_on_workers_or_places(void **state) {
    struct example_source source[VARIANTS];
    for (int i = 0, n = variants(source); i < n; i++) {
        struct rule_options rule = {.rule = i % RULE_COUNT,
                                    .eps = 1e-8,
                                    .rho = 0.9,
                                    .alpha = 0.9,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .lr = 0.01,
                                    .eta_minus = 0.5,
                                    .eta_plus = 1.2,
                                    .step_min = 1e-6,
                                    .step_max = 50,
                                    .t0 = 1e6,
                                    .clip = i % 3};
        rule.count_rows = rule_counts(&rule);
        char *want = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            struct model m = open_model((unsigned)threads, rule, threads == 2 ? PLACE_FILE : PLACE_PINNED,
                                        threads == 3 ? PLACE_FILE : PLACE_GPU);
            train_model(&m, &source[i], 50, example_count(&source[i]));
            char *got = read_model(&m);
            if (want)
                assert_memory_equal(want, got, 2 * TABLE_ROWS * m.layout.packed);
            else
                want = got, got = NULL;
            free(got);
            backend_cpu.close(m.backend);
        }
        free(want);
    }
}

/* Compares a step of sgd with the formulas in double, for rows that occur many times in the batch; optimizer.clip bounds the
 * length of their summed gradients. */
static void step_sums_duplicates(void **state) {
    for (int clip = 0; clip <= 2; clip++) {
        struct rule_options rule = {.rule = RULE_SGD, .clip = clip};
        struct model m = open_model(2, rule, PLACE_PINNED, PLACE_PINNED);
        struct example_source source = corpus();
        static double old[2][TABLE_ROWS][DIM], sum[2][TABLE_ROWS][DIM];
        int places[2][TABLE_ROWS] = {{0}}, cut = 0, whole = 0;
        char *packed = read_model(&m);
        for (int side = 0; side < 2; side++)
            for (int r = 0; r < TABLE_ROWS; r++)
                for (int j = 0; j < DIM; j++)
                    old[side][r][j] = ((float *)packed)[((uint64_t)side * TABLE_ROWS + (uint64_t)r) * DIM + (uint64_t)j];
        memset(sum, 0, sizeof sum);
        free(packed);
        backend_cpu.source(m.backend, &source);
        struct batch_view v = make(m.backend, 0, 0, 500, 0);
        struct step_request go = {.target = m.table[0], .context = m.table[1], .rule = &m.rule, .lr = 0.02};
        struct step_result result;
        double loss = 0;
        for (uint64_t t = 0; t < v.target_starts[v.blocks]; t++) places[0][v.target_ids[t]]++;
        for (uint64_t c = 0; c < v.context_starts[v.blocks]; c++) places[1][v.context_ids[c]]++;
        for (uint64_t b = 0; b < v.blocks; b++)
            for (uint64_t t = v.target_starts[b]; t < v.target_starts[b + 1]; t++)
                for (uint64_t c = v.context_starts[b]; c < v.context_starts[b + 1]; c++) {
                    double *u = old[0][v.target_ids[t]], *w = old[1][v.context_ids[c]], s = 0,
                           y = c - v.context_starts[b] < v.positives[b];
                    for (int j = 0; j < DIM; j++) s += u[j] * w[j];
                    double g = 1 / (1 + exp(-s)) - y;
                    loss += log1p(exp(s)) - y * s;
                    for (int j = 0; j < DIM; j++)
                        sum[0][v.target_ids[t]][j] += g * w[j], sum[1][v.context_ids[c]][j] += g * u[j];
                }
        assert_int_equal(backend_cpu.step(m.backend, 0, &go), 0);
        assert_int_equal(backend_cpu.result(m.backend, 0, &result), 0);
        assert_true(fabs(result.loss - loss) < 1e-5 * loss);
        packed = read_model(&m);
        for (int side = 0; side < 2; side++)
            for (int r = 0; r < TABLE_ROWS; r++) {
                double squares = 0, share = 1;
                for (int j = 0; j < DIM; j++) squares += sum[side][r][j] * sum[side][r][j];
                if (clip && places[side][r] > 1 && squares > clip * clip) share = clip / sqrt(squares);
                if (share < 1)
                    cut++;
                else
                    whole++;
                for (int j = 0; j < DIM; j++)
                    assert_true(fabs(((float *)packed)[((uint64_t)side * TABLE_ROWS + (uint64_t)r) * DIM + (uint64_t)j] -
                                     (old[side][r][j] - 0.02 * share * sum[side][r][j])) < 2e-5);
            }
        assert_true(whole > 0 && (cut > 0) == (clip > 0));
        free(packed);
        backend_cpu.close(m.backend);
    }
}

/* Returns the loss per term after `epochs` passes of sgd in batches of `batch` positions. */
static double loss_after(uint64_t batch, double clip, int epochs) {
    struct rule_options rule = {.rule = RULE_SGD, .clip = clip};
    struct model m = open_model(2, rule, PLACE_PINNED, PLACE_PINNED);
    struct example_source source = corpus();
    struct step_result result = {.loss = 0};
    double loss = 0;
    uint64_t terms = 0;
    backend_cpu.source(m.backend, &source);
    for (int epoch = 0; epoch < epochs; epoch++)
        for (uint64_t first = loss = terms = 0; first < TOKENS; first += batch) {
            struct batch_request request = {(uint32_t)epoch, first, TOKENS - first < batch ? TOKENS - first : batch, 0};
            struct step_request go = {.target = m.table[0], .context = m.table[1], .rule = &m.rule, .lr = 0.05};
            assert_int_equal(backend_cpu.make_batch(m.backend, 0, &request), 0);
            assert_int_equal(backend_cpu.step(m.backend, 0, &go), 0);
            assert_int_equal(backend_cpu.result(m.backend, 0, &result), 0);
            loss += result.loss;
            terms += result.terms;
        }
    backend_cpu.close(m.backend);
    return loss / (double)terms;
}

/* In one batch, all gradients of a frequent row are computed from the same weights. If a batch has too many such
 * gradients, their sum moves the row past its best value, and the next batch moves the row even further. */
static void large_batches_diverge_unless_clipped(void **state) {
    double small = loss_after(10, 0, 40), large = loss_after(TOKENS, 0, 40), clipped = loss_after(TOKENS, 10, 40);
    print_message("loss a term after 40 epochs: batches of 10 %.4f; of %d %.4g, clipped %.4f\n", small, TOKENS, large,
                  clipped);
    assert_true(small < 0.6);
    assert_false(large < 2); /* also true for NaN */
    assert_true(clipped < 0.65);
}

/* Lock-free training with one worker must lower the loss in every mode, and visit every word once. */
static void hogwild_learns(void **state) {
    struct example_source source[VARIANTS];
    for (int i = 0, n = variants(source); i < n; i++)
        for (int adagrad = 0; adagrad < 2; adagrad++) {
            struct rule_options rule = {.rule = adagrad ? RULE_ADAGRAD : RULE_SGD, .eps = 1e-10};
            struct model m = open_model(2, rule, PLACE_PINNED, PLACE_PINNED);
            struct hogwild_result first, last;
            uint64_t count = example_count(&source[i]);
            struct hogwild_request request = {.target = m.table[0],
                                              .context = m.table[1],
                                              .rule = &m.rule,
                                              .count = count,
                                              .lr_first = 0.05,
                                              .lr_last = 0.05};
            backend_cpu.source(m.backend, &source[i]);
            assert_int_equal(backend_cpu.hogwild(m.backend, &request, &first), 0);
            for (request.epoch = 1; request.epoch < 20; request.epoch++)
                assert_int_equal(backend_cpu.hogwild(m.backend, &request, &last), 0);
            assert_true(first.pairs > 0 && first.sampled_terms > 0);
            assert_true(last.loss / (double)last.sampled_terms < 0.97 * first.loss / (double)first.sampled_terms);
            backend_cpu.close(m.backend);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_do_not_depend_on_workers),
        cmocka_unit_test(batches_do_not_depend_on_their_bounds),
        cmocka_unit_test(positives_have_the_weights_of_their_places),
        cmocka_unit_test(epochs_differ),
        cmocka_unit_test(windows_are_word2vecs),
        cmocka_unit_test(shared_rows_make_the_same_windows),
        cmocka_unit_test(paths_are_those_of_the_words_that_are_predicted),
        cmocka_unit_test(lists_exclude_and_do_not_repeat),
        cmocka_unit_test(held_out_is_a_partition),
        cmocka_unit_test(steps_do_not_depend_on_workers_or_places),
        cmocka_unit_test(step_sums_duplicates),
        cmocka_unit_test(large_batches_diverge_unless_clipped),
        cmocka_unit_test(hogwild_learns),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    huffman_release(&tree);
    return failed;
}
