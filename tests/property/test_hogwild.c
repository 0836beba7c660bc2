/* Compares lock-free training on the CPU with its definition in kernels/hogwild.h, computed in float64: one worker, all modes
 * and keys, random shapes on both sides of the kernels' thresholds (8 contexts, 64 targets, 4096 examples). */
#include "tests/testing.h"

#include "base/report.h"
#include "kernels/hogwild.h"

#include "cpu_batches.h"
#include "random.h"
#include "random_tree.h"

enum { MOST_ROWS = 300, MOST_DIM = 40, MOST_TOKENS = 20000 };

static int coin(void) {
    return (int)below(2);
}

/* ---- a case ---- */

struct corpus {
    uint32_t ids[MOST_TOKENS], keep[MOST_ROWS];
    uint64_t starts[MOST_TOKENS + 1];
};

struct trial {
    struct corpus corpus;
    struct example_source source;
    struct huffman tree; /* its nodes are the contexts in some trials; if not used, the struct is zeros */
    struct rule_options rule;
    struct record_layout layout;
    struct hogwild_request request;
    int freezes;
    uint32_t frozen[2][(MOST_ROWS + 31) / 32]; /* [side] one bit a row; 1: frozen */
    char name[192];
};

static void make_corpus(struct trial *t, uint64_t rows, uint64_t tokens, uint64_t longest) {
    struct corpus *c = &t->corpus;
    uint64_t sentences = 0;
    for (uint64_t at = 0; at < tokens; at += 1 + below(longest)) c->starts[sentences++] = at;
    c->starts[sentences] = tokens;
    for (uint64_t i = 0; i < tokens; i++) c->ids[i] = (uint32_t)below(rows);
    for (uint64_t i = 0; i < rows; i++) c->keep[i] = i % 3 ? UINT32_MAX : 0x90000000u;
    t->source = (struct example_source){.ids = c->ids,
                                        .starts = c->starts,
                                        .tokens = tokens,
                                        .sentences = sentences,
                                        .rows = rows,
                                        .keep = coin() ? c->keep : NULL,
                                        .noise = NOISE_UNIFORM,
                                        .seed = (uint32_t)bits()};
}

static void choose_examples(struct trial *t) {
    struct example_source *s = &t->source;
    s->mode = (enum example_mode)below(3);
    s->window = 1 + (uint32_t)below(6);
    s->shrink = coin(), s->shuffle = coin(), s->shuffle_items = coin();
    s->positives = (uint32_t)below(5);
    s->targets_all = coin(), s->replacement = coin() && s->positives, s->short_repeat = coin();
    s->negatives = (uint32_t)below(14);
    s->per_pair = coin(), s->exclude = coin();
    s->distinct = coin() && s->rows > 60;
    s->held_out = below(3) ? 0 : 0x40000000u;
    if (s->mode != EXAMPLE_WINDOW) s->keep = NULL;
    if (s->mode != EXAMPLE_WINDOW || below(3)) return;
    s->pool = (struct example_pool){.on = 1, .own = below(3) ? 0 : 0.3f, .whole = coin()};
    s->pool.sum = !s->pool.whole && s->window % 2;
    s->per_pair = 0;
}

/* Chooses blocks of about 64 targets and more than 8 contexts. */
static void choose_wide(struct example_source *s) {
    s->mode = EXAMPLE_WINDOW, s->window = 28 + (uint32_t)below(10);
    s->shrink = 0, s->per_pair = 0, s->negatives = 5 + (uint32_t)below(9);
}

/* Chooses whether windows predict words by the nodes of their tree paths. */
static void choose_tree(struct trial *t) {
    uint64_t counts[MOST_ROWS];
    huffman_release(&t->tree);
    if (t->source.mode != EXAMPLE_WINDOW || t->source.rows < 2 || below(3)) return;
    for (uint64_t i = 0; i < t->source.rows; i++) counts[i] = below(1 + below(100000));
    t->tree = add_paths(&t->source, counts, t->source.rows);
}

static void choose_rule(struct trial *t) {
    struct rule_options *o = &t->rule;
    *o = (struct rule_options){.rule = coin() ? RULE_SGD : RULE_ADAGRAD, .eps = 1e-3};
    if (below(3) == 0) o->weight_decay = 0.02;
    if (o->rule == RULE_SGD) return;
    o->initial_accumulator = coin() ? 0.1 : 0;
    o->lr_decay = below(3) ? 0.05 : 0;
    o->count_rows = coin() && rule_counts(o);
}

static int is_frozen(const struct trial *t, int side, uint32_t row) {
    return t->freezes && (t->frozen[side][row / 32] >> row % 32 & 1);
}

static void choose_frozen(struct trial *t) {
    t->freezes = below(3) == 0;
    for (int side = 0; side < 2; side++) {
        uint64_t share = below(4); /* no rows, all rows, or some rows */
        for (size_t i = 0; i < sizeof *t->frozen / sizeof **t->frozen; i++)
            t->frozen[side][i] = share == 0 ? 0 : share == 1 ? UINT32_MAX : (uint32_t)bits();
    }
}

static void name_trial(struct trial *t) {
    const struct example_source *s = &t->source;
    snprintf(
        t->name, sizeof t->name,
        "mode %d, window %u%s%s%s%s, positives %u, negatives %u%s%s%s, rows %d, dim %u, rule %d, decay %g, lr_decay %g (%s)%s",
        (int)s->mode, s->window, s->pool.on ? " pooled" : "",
        s->pool.own > 0 ? " by weight" : "", s->pool.whole ? " whole" : s->pool.sum ? " sum" : "", s->paths.starts ? " along paths" : "", s->positives, s->negatives, s->per_pair ? " a pair" : "",
        s->exclude ? " excluded" : "", s->distinct ? " distinct" : "", (int)s->rows, t->layout.dim, t->rule.rule,
        t->rule.weight_decay, t->rule.lr_decay, t->rule.count_rows ? "row" : "global", t->freezes ? ", frozen rows" : "");
}

/* ---- float64 ---- */

struct rows64 {
    double weight[2][MOST_ROWS][MOST_DIM], sum[2][MOST_ROWS][MOST_DIM];
    uint64_t updates[2][MOST_ROWS];
    double loss; /* of the examples whose loss is measured */
};

static void update64(struct rows64 *r, const struct trial *t, int side, uint32_t row, const double *gradient,
                     double rate, uint64_t example) {
    const struct rule_options *o = &t->rule;
    if (is_frozen(t, side, row)) return;
    uint64_t updates = o->count_rows ? r->updates[side][row]++ : t->request.global_step + example;
    if (o->rule == RULE_ADAGRAD) rate /= 1 + (double)updates * o->lr_decay;
    for (uint32_t i = 0; i < t->layout.dim; i++) {
        double *w = &r->weight[side][row][i], *sum = &r->sum[side][row][i], g = gradient[i] + o->weight_decay * *w;
        if (o->rule == RULE_ADAGRAD) {
            *sum += g * g;
            g /= sqrt(*sum) + o->eps;
        }
        *w -= rate * g;
    }
}

/* Computes the vectors of a block's targets: its rows, or the one vector that they are pooled into. Returns their number. */
static void vectors64(const struct rows64 *r, const struct trial *t, const uint32_t *targets, uint32_t count,
                      double (*out)[MOST_DIM]) {
    const struct example_pool *pool = &t->source.pool;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < t->layout.dim; j++) {
            double w = r->weight[0][targets[i]][j];
            if (pool->on)
                out[0][j] += w * (double)example_pool_weight(pool, count, i);
            else
                out[i][j] = w;
        }
}

static void train64(struct rows64 *r, const struct trial *t, const struct batch_view *v, uint64_t block,
                    uint64_t example) {
    const uint32_t *targets = v->target_ids + v->target_starts[block],
                   *contexts = v->context_ids + v->context_starts[block];
    uint64_t t_count = v->target_starts[block + 1] - v->target_starts[block];
    uint64_t c_count = v->context_starts[block + 1] - v->context_starts[block];
    const struct hogwild_request *q = &t->request;
    double rate = q->lr_first + (q->lr_last - q->lr_first) * (double)example / (double)q->count;
    const struct example_pool *pool = &t->source.pool;
    double(*gradient)[MOST_DIM] = calloc(t_count + c_count, sizeof *gradient);
    double(*vector)[MOST_DIM] = calloc(t_count, sizeof *vector);
    vectors64(r, t, targets, (uint32_t)t_count, vector);
    for (uint64_t i = 0; i < example_vectors(pool, (uint32_t)t_count); i++)
        for (uint64_t k = 0; k < c_count; k++) {
            const double *u = vector[i], *w = r->weight[1][contexts[k]];
            double logit = 0;
            for (uint32_t j = 0; j < t->layout.dim; j++) logit += u[j] * w[j];
            double y = k < v->positives[block], f = 1 / (1 + exp(-logit)) - y;
            if ((example & hogwild_loss_mask(q->count)) == 0) r->loss += log1p(exp(logit)) - y * logit;
            for (uint32_t j = 0; j < t->layout.dim; j++) {
                gradient[i][j] += f * w[j];
                gradient[t_count + k][j] += f * u[j];
            }
        }
    for (uint64_t k = 0; k < c_count; k++) update64(r, t, 1, contexts[k], gradient[t_count + k], rate, example);
    for (uint64_t i = t_count; i-- > 0 && pool->on;) /* the first row's entry contains the pooled vector, so it is written last */
        for (uint32_t j = 0; j < t->layout.dim; j++)
            gradient[i][j] = gradient[0][j] * (double)example_pool_share(pool, (uint32_t)t_count, (uint32_t)i);
    for (uint64_t i = 0; i < t_count; i++) update64(r, t, 0, targets[i], gradient[i], rate, example);
    free(gradient);
    free(vector);
}

/* ---- one trial ---- */

static struct backend *open_with_source(const struct trial *t, unsigned threads) {
    struct backend *backend = open_cpu(threads);
    assert_int_equal(backend_cpu.source(backend, &t->source), 0);
    return backend;
}

/* Opens tables of random rows, and gives the float64 reference the same rows. */
static void open_tables(struct trial *t, struct backend *backend, struct rows64 *r) {
    char *packed = calloc(t->source.rows, t->layout.packed);
    struct backend_table *tables[2];
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = {.name = side ? "context" : "target", .rows = t->source.rows, .layout = t->layout};
        if (t->freezes) spec.frozen = t->frozen[side];
        for (uint64_t row = 0; row < t->source.rows; row++) {
            float *at = (float *)(packed + row * t->layout.packed);
            for (uint32_t i = 0; i < t->layout.dim; i++) {
                r->weight[side][row][i] = at[i] = (float)((double)(bits() >> 11) / 9007199254740992.0 - 0.5);
                if (t->layout.slots) r->sum[side][row][i] = at[t->layout.dim + i] = (float)t->rule.initial_accumulator;
            }
        }
        assert_int_equal(backend_cpu.table_open(backend, &spec, &tables[side]), 0);
        assert_int_equal(backend_cpu.table_write(backend, tables[side], 0, t->source.rows, packed), 0);
    }
    t->request.target = tables[0];
    t->request.context = tables[1];
    free(packed);
}

/* Returns the distance of the backend's rows from float64, as a share of the movement of float64. */
static double distance(const struct trial *t, struct backend *backend, const struct rows64 *first,
                       const struct rows64 *want) {
    char *packed = calloc(t->source.rows, t->layout.packed);
    double apart = 0, moved = 0;
    for (int side = 0; side < 2; side++) {
        assert_int_equal(
            backend_cpu.table_read(backend, side ? t->request.context : t->request.target, 0, t->source.rows, packed),
            0);
        for (uint64_t row = 0; row < t->source.rows; row++) {
            const float *at = (const float *)(packed + row * t->layout.packed);
            for (uint32_t i = 0; i < t->layout.dim; i++) {
                double w = want->weight[side][row][i];
                apart += (at[i] - w) * (at[i] - w);
                moved += (w - first->weight[side][row][i]) * (w - first->weight[side][row][i]);
            }
            if (!t->layout.counted) continue;
            uint32_t updates;
            memcpy(&updates, at + (1 + t->layout.slots) * t->layout.dim, sizeof updates);
            assert_int_equal(updates, want->updates[side][row]);
        }
    }
    free(packed);
    return moved > 0 ? sqrt(apart / moved) : apart > 0;
}

/* Trains all examples of the request in float64; their blocks are taken from batches of one example each. */
static uint64_t train_all64(struct trial *t, struct rows64 *r) {
    struct backend *maker = open_with_source(t, 1);
    uint64_t pairs = 0;
    for (uint64_t i = 0; i < t->request.count; i++) {
        struct batch_request one = {t->request.epoch, t->request.first + i, 1, 0};
        struct batch_view view;
        assert_int_equal(backend_cpu.make_batch(maker, 0, &one), 0);
        assert_int_equal(backend_cpu.batch_view(maker, 0, &view), 0);
        for (uint64_t block = 0; block < view.blocks; block++) {
            train64(r, t, &view, block, i);
            uint64_t targets = view.target_starts[block + 1] - view.target_starts[block];
            uint32_t predicted = t->source.paths.starts ? 1 : view.positives[block];
            pairs += (uint64_t)example_vectors(&t->source.pool, (uint32_t)targets) * predicted;
        }
    }
    backend_cpu.close(maker);
    return pairs;
}

static double run_trial(struct trial *t) {
    static struct rows64 first, want;
    struct backend *backend = open_with_source(t, 1 + (unsigned)below(3));
    struct hogwild_result result;
    memset(&first, 0, sizeof first);
    open_tables(t, backend, &first);
    want = first;
    uint64_t pairs = train_all64(t, &want);
    assert_int_equal(backend_cpu.hogwild(backend, &t->request, &result), 0);
    assert_int_equal(result.pairs, pairs);
    assert_true(fabs(result.loss - want.loss) <= 1e-3 * want.loss);
    double apart = distance(t, backend, &first, &want);
    backend_cpu.close(backend);
    return apart;
}

/* ---- the tests ---- */

/* Updates of linear rules (hogwild_is_linear) may be computed in any order, and from rows that earlier updates have moved. Their learning rate is
 * so small that this changes little, while a lost or doubled update would be a large part of the movement. Other rules must follow float64
 * closely. */
static void trains_as_it_says(void **state) {
    static struct trial t;
    double worst[2] = {0, 0};
    for (int i = 0; i < 400; i++) {
        uint64_t rows = below(3) ? 3 + below(60) : 61 + below(MOST_ROWS - 60);
        make_corpus(&t, rows, 1 + below(i % 10 ? 600 : 6000), 1 + below(i % 5 == 4 ? 200 : i % 2 ? 30 : 6));
        choose_examples(&t);
        int wide = i % 5 == 4; /* wide trials have larger updates */
        if (wide) choose_wide(&t.source);
        choose_tree(&t);
        if (i % 2 && t.source.mode != EXAMPLE_WINDOW) t.source.positives = 1 + (uint32_t)below(5);
        choose_rule(&t);
        choose_frozen(&t);
        t.layout = record_layout_make(&t.rule, 1 + (uint32_t)below(MOST_DIM));
        int linear = hogwild_is_linear(&t.rule);
        uint64_t examples = example_count(&t.source), first = below(examples);
        t.request = (struct hogwild_request){.rule = &t.rule,
                                             .epoch = (uint32_t)below(3),
                                             .first = first,
                                             .count = examples - first,
                                             .lr_first = linear ? (wide ? 2e-4 : 1e-3) : 0.05,
                                             .lr_last = linear ? (wide ? 1e-4 : 5e-4) : 0.01,
                                             .global_step = below(100),
                                             .workers = 1};
        name_trial(&t);
        double apart = run_trial(&t);
        if (!(apart <= (linear ? 4e-3 : 3e-5))) print_message("%s: %g of the movement apart\n", t.name, apart);
        assert_true(apart <= (linear ? 4e-3 : 3e-5));
        if (apart > worst[linear]) worst[linear] = apart;
    }
    print_message("at most %.2g of the movement apart; in any order %.2g\n", worst[0], worst[1]);
}

/* The only pair has four negatives, drawn among two other words. Each of these must get the sum of the updates of all its draws. */
static void no_negative_is_lost(void **state) {
    static const uint64_t starts[2] = {0, 2};
    static const uint32_t ids[2] = {0, 1};
    float packed[3][4] = {{0.5f, -0.25f, 0.125f, 1}, {0.1f, 0.2f, 0.3f, 0.4f}, {0, 0, 0, 0}}, after[3][4];
    struct trial t = {.rule = {.rule = RULE_SGD}};
    t.source = (struct example_source){.ids = ids,
                                       .starts = starts,
                                       .tokens = 2,
                                       .sentences = 1,
                                       .rows = 3,
                                       .window = 1,
                                       .negatives = 4,
                                       .exclude = 1,
                                       .noise = NOISE_UNIFORM};
    t.layout = record_layout_make(&t.rule, 4);
    t.request = (struct hogwild_request){.rule = &t.rule, .count = 1, .lr_first = 0.1, .lr_last = 0.1};
    for (uint32_t seed = 0; seed < 20; seed++) {
        struct hogwild_result result;
        struct batch_request one = {0, 0, 1, 0};
        struct batch_view view;
        int drawn[3] = {0, 0, 0};
        t.source.seed = seed;
        struct backend *backend = open_with_source(&t, 1);
        open_tables(&t, backend, &(struct rows64){.updates = {{0}}});
        assert_int_equal(backend_cpu.table_write(backend, t.request.target, 0, 3, packed), 0);
        memset(after, 0, sizeof after);
        assert_int_equal(backend_cpu.table_write(backend, t.request.context, 0, 3, after), 0);
        assert_int_equal(backend_cpu.make_batch(backend, 0, &one), 0);
        assert_int_equal(backend_cpu.batch_view(backend, 0, &view), 0);
        for (uint64_t c = 1; c < view.context_starts[1]; c++) drawn[view.context_ids[c]]++;
        assert_int_equal(drawn[0], 0); /* drawn[0] is the positive, the word in the middle */
        assert_int_equal(drawn[1] + drawn[2], 4);
        assert_int_equal(backend_cpu.hogwild(backend, &t.request, &result), 0);
        assert_int_equal(backend_cpu.table_read(backend, t.request.context, 0, 3, after), 0);
        for (int row = 1; row < 3; row++)
            for (int i = 0; i < 4; i++) /* all dot products are 0, so each coefficient is one half */
                assert_float_equal(after[row][i], -0.1 * 0.5 * drawn[row] * (double)packed[1][i], 1e-7);
        backend_cpu.close(backend);
    }
}

/* Neither an example's learning rate, nor whether its loss is measured, may depend on the worker that trains it. */
static void the_sample_is_of_the_request(void **state) {
    static struct trial t;
    for (int long_one = 0; long_one < 2; long_one++) {
        struct hogwild_result result[2];
        make_corpus(&t, 50, MOST_TOKENS, 20);
        choose_examples(&t);
        t.source.mode = EXAMPLE_WINDOW, t.source.held_out = 0, t.source.shuffle = 0;
        t.rule = (struct rule_options){.rule = RULE_SGD};
        t.layout = record_layout_make(&t.rule, 8);
        t.request = (struct hogwild_request){.rule = &t.rule, .lr_first = 1e-3, .lr_last = 1e-3};
        for (unsigned workers = 0; workers < 2; workers++) {
            static struct rows64 first;
            struct backend *backend = open_with_source(&t, 3);
            open_tables(&t, backend, &first);
            t.request.workers = workers;
            t.request.count = long_one ? HOGWILD_LOSS_OF_ALL + 100 : HOGWILD_LOSS_OF_ALL - 1;
            assert_int_equal(backend_cpu.hogwild(backend, &t.request, &result[workers]), 0);
            backend_cpu.close(backend);
        }
        assert_int_equal(result[0].sampled_examples, result[1].sampled_examples);
        assert_int_equal(result[0].sampled_pairs, result[1].sampled_pairs);
        assert_int_equal(result[0].sampled_terms, result[1].sampled_terms);
        assert_int_equal(result[0].examples, result[1].examples);
        uint64_t every = long_one ? HOGWILD_LOSS_EVERY : 1, about = result[0].examples / every;
        assert_in_range(result[0].sampled_examples, about - (every - 1) * about / 100,
                        about + (every - 1) * about / 100);
    }
}

static void read_table(struct backend *backend, const struct trial *t, int side, int snapshot, char *packed) {
    struct backend_table *table = side ? t->request.context : t->request.target;
    assert_int_equal((snapshot ? backend_cpu.snapshot_read : backend_cpu.table_read)(backend, table, 0, t->source.rows, packed), 0);
}

/* Several workers change rows of both tables; each row must be copied before its first change. */
static void a_snapshot_is_of_the_rows_before_training(void **state) {
    static struct trial t;
    static struct rows64 first;
    static char before[2][MOST_ROWS * 4 * (2 * MOST_DIM + 1)], read[sizeof *before];
    for (int i = 0; i < 60; i++) {
        struct hogwild_result result;
        make_corpus(&t, 3 + below(MOST_ROWS - 3), 1 + below(6000), 1 + below(30));
        choose_examples(&t);
        choose_tree(&t);
        choose_rule(&t);
        choose_frozen(&t);
        t.layout = record_layout_make(&t.rule, 1 + (uint32_t)below(MOST_DIM));
        t.request = (struct hogwild_request){.rule = &t.rule, .count = example_count(&t.source), .lr_first = 1e-2, .lr_last = 1e-3};
        struct backend *backend = open_with_source(&t, 3);
        memset(&first, 0, sizeof first);
        open_tables(&t, backend, &first);
        for (int side = 0; side < 2; side++) read_table(backend, &t, side, 0, before[side]);
        assert_int_equal(backend_cpu.snapshot_begin(backend, t.request.target, UINT64_MAX), 0);
        assert_int_equal(backend_cpu.snapshot_begin(backend, t.request.context, UINT64_MAX), 0);
        assert_int_equal(backend_cpu.hogwild(backend, &t.request, &result), 0);
        for (int side = 0; side < 2; side++) {
            read_table(backend, &t, side, 1, read);
            assert_memory_equal(read, before[side], t.source.rows * t.layout.packed);
        }
        backend_cpu.close(backend);
    }
}

/* The backend must refuse before it changes a row. tests/unit/kernels/test_hogwild.c tests all reasons for refusing. */
static void the_backend_refuses_what_it_cannot_mean(void **state) {
    static struct trial t;
    static struct rows64 first;
    struct hogwild_result result;
    struct rule_options rules[] = {{.rule = RULE_ADAM}, {.rule = RULE_SGD, .momentum = 0.9}, {.rule = RULE_ADAGRAD, .clip = 1}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        make_corpus(&t, 50, 600, 20);
        choose_examples(&t);
        t.rule = rules[i];
        t.layout = record_layout_make(&t.rule, 8);
        t.request = (struct hogwild_request){.rule = &t.rule, .count = 100, .lr_first = 1e-3, .lr_last = 1e-3};
        struct backend *backend = open_with_source(&t, 1);
        open_tables(&t, backend, &first);
        assert_int_equal(backend_cpu.hogwild(backend, &t.request, &result), -1);
        assert_non_null(strstr(report_sentence(), "train.update = hogwild"));
        report_clear();
        backend_cpu.close(backend);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_as_it_says),
        cmocka_unit_test(no_negative_is_lost),
        cmocka_unit_test(the_sample_is_of_the_request),
        cmocka_unit_test(a_snapshot_is_of_the_rows_before_training),
        cmocka_unit_test(the_backend_refuses_what_it_cannot_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
