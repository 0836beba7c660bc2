/* Properties of negatives that a batch shares, on the CPU: which rows a batch names; that a step agrees with the formulas in
 * double; that nothing depends on the number of workers. Examples are items of lists, or triples, whose target is a product. */
#include "tests/testing.h"

#include "kernels/triples.h"
#include "shared_sources.h"

enum { MOST_DIM = 70 };

/* ---- batches ---- */

static void each_item_is_an_example_once_an_epoch(void **state) {
    struct example_source source = lists(40);
    struct backend *backend = open_cpu(3);
    static int met[LISTS][ITEMS], wanted[LISTS][ITEMS];
    backend_cpu.source(backend, &source);
    assert_int_equal(example_count(&source), TOKENS);
    for (uint32_t list = 0; list < LISTS; list++)
        for (uint64_t i = starts[list] + 1; i < starts[list + 1]; i++) wanted[list][ids[i]]++;
    for (uint64_t first = 0; first < TOKENS; first += 130) {
        struct batch_view view = make(backend, 4, first, TOKENS - first < 130 ? TOKENS - first : 130, 0);
        assert_int_equal(view.shared.count, 40);
        assert_int_equal(view.shared.masked, 1);
        assert_int_equal(view.target_starts[1], 0);
        assert_int_equal(view.context_starts[1], 40);
        assert_int_equal(view.positives[0], 0);
        for (uint64_t i = 0; i < 40; i++) assert_true(view.context_ids[i] < ITEMS);
        for (uint64_t i = 1; i < view.blocks; i++) {
            assert_int_equal(view.positives[i], 1);
            assert_int_equal(view.target_starts[i], i - 1);
            assert_int_equal(view.context_starts[i], 40 + i - 1);
            met[view.target_ids[i - 1] - ITEMS][view.context_ids[40 + i - 1]]++;
        }
    }
    assert_memory_equal(met, wanted, sizeof met);
    backend_cpu.close(backend);
}

/* Negatives depend only on the epoch and on the position at which a batch begins, not on the batch's size or the number of workers. */
static void negatives_belong_to_a_place(void **state) {
    struct example_source source = lists(50);
    struct backend *one = open_cpu(1), *many = open_cpu(4);
    uint32_t first[50], other[50];
    backend_cpu.source(one, &source);
    backend_cpu.source(many, &source);
    memcpy(first, make(one, 1, 100, 64, 0).context_ids, sizeof first);
    memcpy(other, make(many, 1, 100, 900, 0).context_ids, sizeof other);
    assert_memory_equal(first, other, sizeof first);
    memcpy(other, make(one, 1, 101, 64, 0).context_ids, sizeof other);
    assert_memory_not_equal(first, other, sizeof first);
    memcpy(other, make(one, 2, 100, 64, 0).context_ids, sizeof other);
    assert_memory_not_equal(first, other, sizeof first);
    source.distinct = 1, source.negatives = 300;
    backend_cpu.source(one, &source);
    struct batch_view view = make(one, 1, 0, 10, 0);
    int met[ITEMS] = {0};
    for (uint32_t i = 0; i < view.shared.count; i++) assert_int_equal(met[view.context_ids[i]]++, 0);
    assert_int_equal(view.shared.count, 300);
    backend_cpu.close(one);
    backend_cpu.close(many);
}

/* The first place of a list is not an example. A batch of only such places, or without a held-out example, must have no
 * negatives either. */
static void a_batch_without_examples_is_empty(void **state) {
    struct example_source source = lists(40);
    struct backend *backend = open_cpu(2);
    source.shuffle = 0;
    backend_cpu.source(backend, &source);
    for (uint32_t list = 0; list < LISTS; list++) {
        struct batch_view view = make(backend, 1, starts[list], 1, 0);
        assert_int_equal(view.blocks, 0);
        assert_int_equal(view.shared.count, 0);
        assert_int_equal(view.context_starts[0], 0);
        assert_int_equal(make(backend, 1, starts[list], 2, 0).blocks, starts[list] + 1 == starts[list + 1] ? 0 : 2);
        assert_int_equal(make(backend, 1, starts[list], 5, 1).blocks, 0);
    }
    backend_cpu.close(backend);
}

/* ---- tables ---- */

struct model {
    struct backend *backend;
    struct backend_table *table[2];
    struct rule_options rule;
    struct record_layout layout;
};

static struct model open_model(unsigned threads, struct rule_options rule, uint32_t dim, const uint32_t *frozen) {
    struct model m = {.backend = open_cpu(threads), .rule = rule, .layout = record_layout_make(&rule, dim)};
    char *packed = calloc(ROWS, m.layout.packed);
    srand(3);
    for (int side = 0; side < 2; side++) {
        struct table_spec spec = {.name = side ? "context" : "target",
                                  .rows = ROWS,
                                  .layout = m.layout,
                                  .rounding = {.seed = 1},
                                  .frozen = frozen};
        assert_int_equal(backend_cpu.table_open(m.backend, &spec, &m.table[side]), 0);
        for (int row = 0; row < ROWS && !m.layout.halves; row++)
            for (uint32_t j = 0; j < dim; j++)
                ((float *)(packed + (uint64_t)row * m.layout.packed))[j] = (float)rand() / (float)RAND_MAX - 0.5f;
        for (uint64_t i = 0; i < ROWS * m.layout.packed / 2 && m.layout.halves; i++) /* numbers of moderate size and either sign */
            ((uint16_t *)packed)[i] = (uint16_t)(0x3E00 + rand() % 256 + (rand() % 2 << 15));
        assert_int_equal(backend_cpu.table_write(m.backend, m.table[side], 0, ROWS, packed), 0);
    }
    free(packed);
    return m;
}

static char *read_model(struct model *m) {
    char *packed = malloc(2 * ROWS * m->layout.packed);
    for (int side = 0; side < 2; side++)
        assert_int_equal(backend_cpu.table_read(m->backend, m->table[side], 0, ROWS, packed + side * ROWS * m->layout.packed), 0);
    return packed;
}

static double step_model(struct model *m, struct loss_options loss, double lr, uint64_t number, int loss_only) {
    struct step_request go = {.target = m->table[0],
                              .context = m->table[1],
                              .rule = &m->rule,
                              .loss = loss,
                              .lr = lr,
                              .global_step = number,
                              .loss_only = loss_only};
    struct step_result result;
    assert_int_equal(backend_cpu.step(m->backend, number % 3, &go), 0);
    assert_int_equal(backend_cpu.result(m->backend, number % 3, &result), 0);
    assert_int_equal(result.pairs, result.examples);
    assert_int_equal(result.examples > 0, result.terms > 0);
    return result.loss;
}

/* ---- double precision ---- */

static double rows64[2][ROWS][MOST_DIM], gradient[2][ROWS][MOST_DIM], length[ROWS]; /* length: of context rows */

/* The target of an example, one row or the product of two rows, and its gradient. */
static struct {
    double vector[MOST_DIM], gradient[MOST_DIM], length;
    const double *row[2]; /* the rows that are multiplied: head and relation. If the target is a single row, only row[0] is used */
    double *row_gradient[2];
    double relation[MOST_DIM]; /* the relation's numbers with length 1, if they are rotations */
    enum example_product product;
} target;
static double relation_length64[MOST_DIM]; /* lengths of the relation's complex numbers */
static double margin64; /* of distances; < 0: scores are no distances */

static void begin64(const char *packed, uint32_t dim, int cosine) {
    memset(gradient, 0, sizeof gradient);
    for (int side = 0; side < 2; side++)
        for (int row = 0; row < ROWS; row++) {
            double squares = 0;
            for (uint32_t j = 0; j < dim; j++) {
                double value = ((const float *)packed)[((uint64_t)side * ROWS + (uint64_t)row) * dim + j];
                rows64[side][row][j] = value;
                squares += value * value;
            }
            if (side) length[row] = cosine ? sqrt(squares) : 1;
        }
}

/* out += factor x a x b of complex numbers; conjugated: b's imaginary parts have the other sign. */
static void add_product64(enum example_product product, uint32_t dim, const double *a, const double *b, int conjugated, double *out) {
    uint32_t half = dim / 2;
    double sign = conjugated ? -1 : 1;
    if (product == PRODUCT_TRANSLATION)
        for (uint32_t j = 0; j < dim; j++) out[j] += a[j] + (conjugated ? 0 : b[j]);
    else if (product == PRODUCT_REAL)
        for (uint32_t j = 0; j < dim; j++) out[j] += a[j] * b[j];
    else
        for (uint32_t j = 0; j < half; j++) {
            out[j] += a[j] * b[j] - a[j + half] * sign * b[j + half];
            out[j + half] += a[j] * sign * b[j + half] + a[j + half] * b[j];
        }
}

/* relation: row of the relation that takes the place of the triple's own; DRAW_NONE: its own. */
static void begin_target64(const struct batch_view *view, uint64_t block, uint32_t dim, int cosine, uint32_t relation) {
    const uint32_t *targets = view->target_ids + view->target_starts[block], *contexts = view->context_ids + view->context_starts[block];
    double squares = 0;
    memset(&target, 0, sizeof target);
    target.product = view->pool.product;
    for (int k = 0; k < (target.product ? 2 : 1); k++) {
        int side = view->pool.tied && !k;
        uint32_t row = side ? contexts[1] : targets[view->pool.tied ? 0 : k];
        if (k && relation != DRAW_NONE) row = relation;
        target.row[k] = rows64[side][row], target.row_gradient[k] = gradient[side][row];
    }
    for (uint32_t j = 0; j < dim && target.product == PRODUCT_ROTATION; j++) {
        double own = target.row[1][j], partner = target.row[1][(j + dim / 2) % dim];
        relation_length64[j] = sqrt(own * own + partner * partner);
        target.relation[j] = own / relation_length64[j];
    }
    if (target.product == PRODUCT_ROTATION) target.row[1] = target.relation;
    if (target.product) add_product64(target.product, dim, target.row[0], target.row[1], 0, target.vector);
    else memcpy(target.vector, target.row[0], sizeof target.vector);
    for (uint32_t j = 0; j < dim; j++) squares += target.vector[j] * target.vector[j];
    target.length = cosine ? sqrt(squares) : 1;
}

/* Adds the target's gradient to the gradients of the target's rows. */
static void end_target64(uint32_t dim) {
    for (uint32_t j = 0; j < dim && !target.product; j++) target.row_gradient[0][j] += target.gradient[j];
    for (int k = 0; k < 2 && target.product && target.product != PRODUCT_ROTATION; k++)
        add_product64(target.product, dim, target.gradient, target.row[1 - k], 1, target.row_gradient[k]);
    if (target.product != PRODUCT_ROTATION) return;
    add_product64(target.product, dim, target.gradient, target.row[1], 1, target.row_gradient[0]);
    double of_unit[MOST_DIM] = {0};
    uint32_t half = dim / 2;
    add_product64(target.product, dim, target.gradient, target.row[0], 1, of_unit);
    for (uint32_t j = 0; j < half; j++) { /* only what turns the number changes it */
        double re = target.relation[j], im = target.relation[j + half], turn = (of_unit[j + half] * re - of_unit[j] * im) / relation_length64[j];
        target.row_gradient[1][j] -= turn * im, target.row_gradient[1][j + half] += turn * re;
    }
}

static void add_cubes64(enum example_product product, uint32_t dim, double cubes, const double *row, double *to) {
    for (uint32_t j = 0; j < dim; j++) {
        double partner = product == PRODUCT_COMPLEX ? row[(j + dim / 2) % dim] : 0;
        to[j] += 3 * cubes * sqrt(row[j] * row[j] + partner * partner) * row[j];
    }
}

static double distance64(uint32_t context, uint32_t dim) {
    double sum = 0;
    for (uint32_t j = 0; j < dim; j++) sum += pow(target.vector[j] - rows64[1][context][j], 2);
    return sqrt(sum);
}

static double score64(uint32_t context, uint32_t dim) {
    double sum = 0;
    if (margin64 >= 0) return margin64 - distance64(context, dim);
    for (uint32_t j = 0; j < dim; j++) sum += target.vector[j] * rows64[1][context][j];
    return sum / target.length / length[context];
}

/* Adds a score's coefficient c to the gradients of the target and of the context. */
static void add64(uint32_t context, uint32_t dim, double c, double score, int cosine) {
    double both = target.length * length[context], distance = margin64 >= 0 ? distance64(context, dim) : 1;
    for (uint32_t j = 0; j < dim && margin64 >= 0; j++) {
        double apart = c * (target.vector[j] - rows64[1][context][j]) / distance;
        target.gradient[j] -= apart;
        gradient[1][context][j] += apart;
    }
    for (uint32_t j = 0; j < dim && margin64 < 0; j++) {
        double u = target.vector[j], v = rows64[1][context][j];
        target.gradient[j] += c * (v / both - (cosine ? score * u / target.length / target.length : 0));
        gradient[1][context][j] += c * (u / both - (cosine ? score * v / length[context] / length[context] : 0));
    }
}

static double learn_logistic64(const struct batch_view *view, uint64_t block, struct loss_options o, uint32_t dim) {
    uint32_t positive = view->context_ids[view->context_starts[block]];
    double t = o.temperature > 0 ? o.temperature : 1, own = score64(positive, dim), powers = 0;
    double weight = o.weighted ? (double)view->weights[view->context_starts[block]] : 1, loss = weight * log1p(exp(-own / t));
    for (uint32_t i = 0; i < view->shared.count; i++) {
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        powers += exp(o.adversarial * score64(view->context_ids[i], dim) / t);
    }
    for (uint32_t i = 0; i < view->shared.count; i++) {
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        double s = score64(view->context_ids[i], dim), share = o.adversarial > 0 ? exp(o.adversarial * s / t) / powers : 1;
        loss += share * log1p(exp(s / t));
        add64(view->context_ids[i], dim, share / (1 + exp(-s / t)) / t, s, o.score == SCORE_COSINE);
    }
    add64(positive, dim, weight * (1 / (1 + exp(-own / t)) - 1) / t, own, o.score == SCORE_COSINE);
    return loss;
}

static double learn_softmax64(const struct batch_view *view, uint64_t block, struct loss_options o, uint32_t dim) {
    uint32_t positive = view->context_ids[view->context_starts[block]], negatives = 0;
    int cosine = o.score == SCORE_COSINE;
    double own = score64(positive, dim), sum = 0, t = o.temperature > 0 ? o.temperature : 1;
    for (uint32_t i = 0; i < view->shared.count; i++) {
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        sum += exp(score64(view->context_ids[i], dim) / t);
        negatives++;
    }
    if (!negatives) return 0;
    double power = o.negative_power, against = log(power > 0 ? sum / negatives : o.negative_weight * sum);
    double weight = o.weighted ? (double)view->weights[view->context_starts[block]] : 1;
    double pulled = weight * (power > 0 ? 1 : 1 / (1 + exp(own / t - against))), push = power > 0 ? power : 1;
    for (uint32_t i = 0; i < view->shared.count; i++) {
        double s = score64(view->context_ids[i], dim);
        if (view->shared.masked && view->context_ids[i] == positive) continue;
        add64(view->context_ids[i], dim, push * pulled * exp(s / t) / sum / t, s, cosine);
    }
    add64(positive, dim, -pulled / t, own, cosine);
    return weight * (power > 0 ? power * against - own / t : log1p(exp(against - own / t)));
}

/* The softmax over relations, each of which takes the place of the triple's own. Returns its loss. */
static double learn_relations64(const struct batch_view *view, uint64_t block, struct loss_options o, uint32_t dim) {
    uint32_t tail = view->context_ids[view->context_starts[block]], own = view->target_ids[view->target_starts[block + 1] - 1];
    double sum = 0, of_own = 0, t = o.temperature > 0 ? o.temperature : 1;
    for (uint32_t i = 0; i < view->shared.relations; i++) {
        begin_target64(view, block, dim, 0, view->target_ids[i]);
        double s = score64(tail, dim) / t;
        sum += exp(s);
        if (view->target_ids[i] == own) of_own = s;
    }
    if (view->shared.relations < 2) return 0;
    for (uint32_t i = 0; i < view->shared.relations; i++) {
        begin_target64(view, block, dim, 0, view->target_ids[i]);
        double share = exp(score64(tail, dim) / t) / sum - (view->target_ids[i] == own);
        add64(tail, dim, o.relations * share / t, 0, 0);
        end_target64(dim);
    }
    return o.relations * (log(sum) - of_own);
}

static double learn64(const struct batch_view *view, uint64_t block, struct loss_options o, uint32_t dim) {
    double of_relations = o.relations > 0 ? learn_relations64(view, block, o, dim) : 0;
    begin_target64(view, block, dim, o.score == SCORE_COSINE, DRAW_NONE);
    double loss = o.kind == LOSS_SOFTMAX ? learn_softmax64(view, block, o, dim) : learn_logistic64(view, block, o, dim);
    end_target64(dim);
    uint32_t positive = view->context_ids[view->context_starts[block]];
    for (int k = 0; k < 2 && target.product; k++)
        add_cubes64(target.product, dim, o.cubes, target.row[k], target.row_gradient[k]);
    if (target.product) add_cubes64(target.product, dim, o.cubes, rows64[1][positive], gradient[1][positive]);
    return loss + of_relations;
}

static void check_step(struct example_source source, uint32_t dim, uint64_t count, int exclude, struct loss_options loss) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct model m = open_model(2, rule, dim, NULL);
    double want = 0, most = 0, error = 0;
    char *before = read_model(&m);
    source.exclude = exclude;
    float *weights = calloc(source.tokens, sizeof *weights);
    for (uint64_t i = 0; i < source.tokens; i++) weights[i] = 0.2f + (float)(i * 7 % 10) / 4;
    if (loss.weighted) source.weights = weights, source.weight_scale = 0.75f;
    backend_cpu.source(m.backend, &source);
    struct batch_view view = make(m.backend, 0, 0, count, 0);
    begin64(before, dim, loss.score == SCORE_COSINE);
    margin64 = loss.score == SCORE_DISTANCE ? (double)loss.margin : -1;
    for (uint64_t block = 1; block < view.blocks; block++) want += learn64(&view, block, loss, dim);
    double only = step_model(&m, loss, 1, 0, 1), got = step_model(&m, loss, 1, 0, 0);
    assert_true(only == got);
    assert_true(fabs(got - want) <= 2e-6 * (fabs(want) + (double)view.blocks));
    char *after = read_model(&m);
    for (int side = 0; side < 2; side++)
        for (int row = 0; row < ROWS; row++)
            for (uint32_t j = 0; j < dim; j++) {
                uint64_t at = ((uint64_t)side * ROWS + (uint64_t)row) * dim + j;
                double moved = (double)((float *)before)[at] - ((float *)after)[at];
                most = fmax(most, fabs(gradient[side][row][j]));
                error = fmax(error, fabs(moved - gradient[side][row][j]));
            }
    assert_true(most > 0 && error <= 1e-5 * most + 1e-6);
    free(before);
    free(after);
    free(weights);
    backend_cpu.close(m.backend);
}

static void steps_follow_the_formulas(void **state) {
    const uint32_t dims[] = {2, 7, 32, 33, 70}, negatives[] = {1, 31, 32, 300, 700};
    for (int i = 0; i < 60; i++) {
        struct loss_options loss = {.kind = i < 40 ? LOSS_SOFTMAX : LOSS_LOGISTIC,
                                    .score = i % 2 ? SCORE_DOT : SCORE_COSINE,
                                    .temperature = i % 4 < 2 ? 0.1f : 0.7f,
                                    .negative_weight = i % 5 ? 1 : 0.5f,
                                    .negative_power = i / 2 % 2 ? 1.15f : 0,
                                    .weighted = i % 3 == 0};
        check_step(lists(negatives[i / 3 % 5]), dims[i % 5], i % 7 ? 1 + (uint64_t)(i * 37) % 600 : 1, i / 4 % 2, loss);
    }
}

static void steps_of_triples_follow_the_formulas(void **state) {
    const uint32_t dims[] = {2, 6, 34, 64, 70, 1, 7, 33}, negatives[] = {1, 31, 300, ITEMS}; /* the last three dims are odd */
    const enum example_product products[] = {PRODUCT_COMPLEX, PRODUCT_REAL, PRODUCT_ROTATION, PRODUCT_TRANSLATION};
    for (int i = 0; i < 240; i++) {
        enum example_product product = products[i / 8 % 4];
        int real = !product_is_complex(product);
        struct loss_options loss = {.kind = i % 3 ? LOSS_SOFTMAX : LOSS_LOGISTIC,
                                    .score = i % 5 ? SCORE_DOT : SCORE_COSINE,
                                    .temperature = i % 4 ? 1 : 0.3f,
                                    .negative_weight = i % 7 ? 1 : 12.5f,
                                    .cubes = i % 2 && !product_is_distance(product) ? 0.05f : 0};
        struct example_source source = triples(negatives[i % 4], product, i / 60 % 2);
        if (product_is_distance(product)) loss.score = SCORE_DISTANCE, loss.margin = i % 3 ? 0 : 4.5f;
        if (loss.kind == LOSS_LOGISTIC) loss.adversarial = i / 4 % 2 ? 0.5f : 0;
        if (i / 2 % 3 && loss.score != SCORE_COSINE) source.relations_too = 1, loss.relations = i % 2 ? 0.25f : 4;
        if (i % 4 == 3) source.noise = NOISE_EVERY;
        uint32_t dim = dims[i % (real ? 8 : 5)];
        if (loss.score == SCORE_COSINE && dim < 6) dim = 6;
        if (loss.score == SCORE_DISTANCE && dim < 32) dim += 32; /* in few columns some rows are nearer than LOSS_NEAR */
        check_step(source, dim, 1 + (uint64_t)(i * 37) % 600, i % 3 > 0, loss);
    }
}

/* ---- what nothing depends on ---- */

static char *train(unsigned threads, struct rule_options rule, uint32_t dim, const struct example_source *source,
                   const uint32_t *frozen, struct record_layout *layout) {
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_power = 1.15f, .cubes = 0.1f};
    if (source->relations_too) loss = (struct loss_options){.kind = LOSS_SOFTMAX, .temperature = 1, .negative_weight = 1, .relations = 0.5f};
    if (product_is_distance(source->pool.product)) loss.score = SCORE_DISTANCE;
    struct model m = open_model(threads, rule, dim, frozen);
    uint64_t count = example_count(source);
    backend_cpu.source(m.backend, source);
    for (uint64_t first = 0, number = 0; first < count; first += 400, number++) {
        struct batch_request request = {0, first, count - first < 400 ? count - first : 400, 0};
        assert_int_equal(backend_cpu.make_batch(m.backend, number % 3, &request), 0);
        step_model(&m, loss, 0.01, number, 0);
    }
    char *trained = read_model(&m);
    *layout = m.layout;
    backend_cpu.close(m.backend);
    return trained;
}

static void steps_do_not_depend_on_workers(void **state) {
    struct rule_options rule = {.rule = RULE_ADAM, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999, .lr = 0.01, .count_rows = 1};
    const enum example_product products[] = {PRODUCT_REAL, PRODUCT_COMPLEX, PRODUCT_COMPLEX, PRODUCT_ROTATION, PRODUCT_TRANSLATION};
    for (int kind = 0; kind < 12; kind++) {
        struct record_layout layout;
        struct example_source source = kind < 2 ? lists(600) : triples(600, products[kind / 2 - 1], kind >= 6);
        source.relations_too = kind >= 6;
        int halves = kind % 2;
        rule.precision = rule.state_precision = halves ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        rule.clip = halves;
        char *one = train(1, rule, 50, &source, NULL, &layout);
        for (unsigned threads = 2; threads <= 4; threads++) {
            char *many = train(threads, rule, 50, &source, NULL, &layout);
            assert_memory_equal(one, many, 2 * ROWS * layout.packed);
            free(many);
        }
        free(one);
    }
}

/* After one step, frozen rows must be unchanged, and all other rows must equal those of a step without frozen rows. */
static void frozen_rows_stay(void **state) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_weight = 1};
    struct example_source source = lists(100);
    uint32_t frozen[(ROWS + 31) / 32];
    char *after[2], *before = NULL;
    for (uint64_t i = 0; i < sizeof frozen / sizeof *frozen; i++) frozen[i] = 0x0F0F3355u;
    for (int freezes = 0; freezes < 2; freezes++) {
        struct model m = open_model(2, rule, 16, freezes ? frozen : NULL);
        if (!freezes) before = read_model(&m);
        backend_cpu.source(m.backend, &source);
        make(m.backend, 0, 0, 500, 0);
        step_model(&m, loss, 0.1, 0, 0);
        after[freezes] = read_model(&m);
        backend_cpu.close(m.backend);
    }
    for (uint64_t row = 0; row < 2 * ROWS; row++) {
        const char *want = row_has_bit(frozen, (uint32_t)(row % ROWS)) ? before : after[0];
        assert_memory_equal(want + row * 64, after[1] + row * 64, 64);
    }
    free(before);
    free(after[0]);
    free(after[1]);
}

/* A batch without examples must not move the negatives' rows, though Adam's momentum would, even with zero gradients. */
static void a_batch_without_examples_changes_nothing(void **state) {
    struct rule_options rule = {.rule = RULE_ADAM, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999, .lr = 0.01, .count_rows = 1};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_DOT, .temperature = 1, .negative_weight = 1};
    struct example_source source = lists(300);
    struct model m = open_model(2, rule, 20, NULL);
    source.shuffle = 0;
    backend_cpu.source(m.backend, &source);
    make(m.backend, 0, 0, TOKENS, 0);
    step_model(&m, loss, 0.01, 0, 0); /* so that momentum is not zero */
    char *before = read_model(&m);
    for (uint32_t list = 0; list < LISTS; list++) {
        make(m.backend, 0, starts[list], 1, 0);
        assert_true(step_model(&m, loss, 0.01, 3, 0) == 0);
    }
    char *after = read_model(&m);
    assert_memory_equal(before, after, 2 * ROWS * m.layout.packed);
    free(before);
    free(after);
    backend_cpu.close(m.backend);
}

static void complex_numbers_have_two_columns(void **state) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct example_source source = triples(20, PRODUCT_COMPLEX, 0);
    struct model m = open_model(1, rule, 7, NULL);
    struct step_request go = {.target = m.table[0], .context = m.table[1], .rule = &rule, .loss = {.kind = LOSS_SOFTMAX}, .lr = 1};
    backend_cpu.source(m.backend, &source);
    make(m.backend, 0, 0, 10, 0);
    assert_int_equal(backend_cpu.step(m.backend, 0, &go), -1);
    backend_cpu.close(m.backend);
}

/* A batch given as arrays with the same ids must have the same effect; one with blocks of another form must be refused. */
static void a_callers_batch_is_the_same(void **state) {
    struct rule_options rule = {.rule = RULE_SGD};
    struct loss_options loss = {.kind = LOSS_SOFTMAX, .score = SCORE_COSINE, .temperature = 0.1f, .negative_weight = 1};
    struct example_source source = lists(90);
    struct model a = open_model(1, rule, 24, NULL), b = open_model(2, rule, 24, NULL);
    backend_cpu.source(a.backend, &source);
    struct batch_view view = make(a.backend, 0, 0, 333, 0);
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), 0);
    assert_true(step_model(&a, loss, 0.1, 0, 0) == step_model(&b, loss, 0.1, 0, 0));
    char *one = read_model(&a), *other = read_model(&b);
    assert_memory_equal(one, other, 2 * ROWS * a.layout.packed);
    struct step_request go = {.target = b.table[0], .context = b.table[1], .rule = &rule, .loss = loss, .lr = 1};
    go.loss.kind = LOSS_BPR;
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), 0);
    assert_int_equal(backend_cpu.step(b.backend, 0, &go), -1);
    view.shared.count--;
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), -1);
    view.shared.count++;
    view.pool = (struct example_pool){.on = 1, .product = PRODUCT_REAL}; /* its examples have one target */
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), -1);
    view.pool = (struct example_pool){.on = 0};
    view.blocks = 1; /* shared negatives without any example */
    assert_int_equal(backend_cpu.set_batch(b.backend, 0, &view), -1);
    free(one);
    free(other);
    backend_cpu.close(a.backend);
    backend_cpu.close(b.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_an_example_once_an_epoch),
        cmocka_unit_test(negatives_belong_to_a_place),
        cmocka_unit_test(a_batch_without_examples_is_empty),
        cmocka_unit_test(steps_follow_the_formulas),
        cmocka_unit_test(steps_of_triples_follow_the_formulas),
        cmocka_unit_test(complex_numbers_have_two_columns),
        cmocka_unit_test(steps_do_not_depend_on_workers),
        cmocka_unit_test(frozen_rows_stay),
        cmocka_unit_test(a_batch_without_examples_changes_nothing),
        cmocka_unit_test(a_callers_batch_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
