#include "kernels/triples.h"
#include "choice.h"

#include "kernels/backend.h"
#include "kernels/cuda/arrays.h"

/* ---- drawing ---- */

static uint64_t below(uint64_t end) {
    return end ? random_bits() % end : 0;
}
static uint64_t between(uint64_t low, uint64_t high) {
    return low + below(high - low + 1);
}
static int one_in(uint64_t n) {
    return below(n) == 0;
}
static double share(void) {
    return (double)(random_bits() >> 11) / 9007199254740992.0;
}
#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof *(list))])

/* Returns a number near a threshold: equal to it, one less, one more, or between a third and twice of it. */
static uint64_t around(uint64_t threshold) {
    switch (below(6)) {
    case 0:
        return threshold;
    case 1:
        return threshold - 1;
    case 2:
        return threshold + 1;
    default:
        return 1 + (uint64_t)((double)threshold * (0.3 + 1.7 * share()));
    }
}

static enum place random_place(void) {
    static const enum place places[] = {PLACE_PINNED, PLACE_PINNED, PLACE_PINNED, PLACE_GPU, PLACE_FILE};
    return ONE_OF(places);
}

/* ---- parts of a choice ---- */

static void choose_rule(struct choice *c) {
    struct rule_case rules[32];
    int count = rule_cases(rules);
    c->rule = rules[below((uint64_t)count)];
    c->rule.options.step_max = 3e-3; /* bounds rprop's steps, so that a gradient of the wrong sign moves a value by little */
    c->mean = one_in(2);
}

static void choose_placing(struct choice *c, int side) {
    struct placing *p = &c->machine.placing[side];
    p->weights = random_place();
    p->state = one_in(2) ? p->weights : random_place();
    p->hot_rows = 0;
}

static void choose_machine(struct choice *c) {
    static const unsigned threads[] = {1, 2, 3, 7, 8, 8, 9, 12, 16, 16};
    c->machine.threads = ONE_OF(threads);
    c->machine.depth = (unsigned)between(1, BACKEND_STAGES);
    for (int side = 0; side < 2; side++) choose_placing(c, side);
}

static void choose_hot_rows(struct choice *c) {
    for (int side = 0; side < 2; side++) {
        uint64_t *hot = &c->machine.placing[side].hot_rows;
        if (one_in(2)) *hot = one_in(4) ? c->rows : below(c->rows / 2 + 1);
    }
}

static void choose_examples(struct choice *c, enum example_mode mode) {
    struct example_source *s = &c->source;
    static const uint64_t vocabularies[] = {1, 3, 15}, held_out[] = {0, 0, 0, UINT64_C(1) << 29};
    *s = (struct example_source){.mode = mode, .seed = (uint32_t)random_bits()};
    s->window = (uint32_t)between(1, 6);
    s->positives = (uint32_t)between(1, 4);
    s->negatives = (uint32_t)ONE_OF(vocabularies) + (uint32_t)below(3);
    s->noise = (enum noise_distribution)below(3);
    s->shrink = one_in(2);
    s->shuffle = one_in(2);
    s->shuffle_items = one_in(4);
    s->targets_all = one_in(2);
    s->replacement = one_in(3);
    s->short_repeat = one_in(2);
    s->per_pair = one_in(2);
    s->exclude = !one_in(3);
    s->distinct = one_in(3);
    s->held_out = (uint32_t)ONE_OF(held_out);
    s->stream_on_host = one_in(3);
    c->subsample = one_in(4);
    c->longest = between(2, mode == EXAMPLE_WINDOW ? 40 : 9);
    if (mode == EXAMPLE_WINDOW && one_in(3)) c->walks = (unsigned)between(1, 32);
    if (c->walks) s->shuffle = s->shuffle_items = 0;
}

static void choose_calls(struct choice *c) {
    c->loss_only = one_in(3) ? (unsigned)between(2, 6) : 0;
    c->arrays = one_in(4) ? (unsigned)between(2, 4) : 0;
    c->apart = one_in(4) ? (unsigned)between(2, 5) : 0;
    c->touched = one_in(3) ? (unsigned)between(2, 6) : 0;
    c->epochs = (unsigned)between(1, 3);
    c->flowing = one_in(2);
}

/* Chooses the number of sentences so that an epoch has `batches` full batches and a shorter one. */
static void choose_length(struct choice *c, uint64_t batches) {
    int by_position = c->source.mode == EXAMPLE_WINDOW || (c->source.mode == EXAMPLE_LIST && c->source.targets_all);
    uint64_t examples = c->batch * batches + (c->batch > 1 ? between(1, c->batch - 1) : 0);
    c->sentences = by_position ? examples * 2 / (c->longest + 1) + 1 : examples;
}

/* Returns an estimate of the share of a batch's contexts that are the most frequent row. */
static double top_share(const struct choice *c) {
    double lowest = pow(1.0 / (double)c->rows, 1 / c->slope);              /* of the most frequent row in the corpus */
    return c->source.noise == NOISE_UNIFORM ? lowest : fmax(lowest, 0.15); /* for negatives by 1 / row, or by the logarithm */
}

/* Returns an estimate of the most gradients that are summed in a row, as if each example were one block. Windows of pairs make
 * several blocks; `places` includes these. */
static double most_summed(const struct choice *c) {
    if (c->source.mode == EXAMPLE_TRIPLE) return c->mean ? 1 : fmax(32, (double)c->batch); /* all of one relation */
    double negatives = c->source.per_batch ? 1 : (double)c->source.negatives; /* shared ones together weigh as one positive */
    double contexts = (double)c->batch * (c->source.positives + negatives);
    return fmax(32, contexts * top_share(c)) / (c->mean ? (double)c->batch : 1);
}

/* ---- aims ---- */

/* Returns the bytes of a record in the store with a side's weights, or with its state. */
static uint64_t stride_of(const struct choice *c, int side, int state) {
    const struct placing *p = &c->machine.placing[side];
    struct table_spec spec = {.layout = layout_of(&c->rule.options, c->dim), .weights = p->weights, .state = p->state};
    struct table_shape shape = table_shape(&spec, 1);
    return shape.store[state && shape.stores == 2].stride;
}

/* Chooses rows in host memory, and batches that name about as many of them as the kernels move at once (rows.cu: a warp
 * takes MOVED_ROWS), or a multiple of that. Tables have about 8 MiB in a store, so that a case takes less than a second. */
static void aim_at_moving(struct choice *c) {
    static const uint32_t dims[] = {1, 30, 32, 33, 64, 94, 128, 200, 256, 257, 384, 512, 513, 1000, 1025, 4096};
    static const uint64_t at_once[] = {256, 512, 1024, 4096, 16384};
    const uint64_t most = 8 << 20;
    int side = one_in(3), state = 0;
    uint64_t rows, stride;
    c->aim = "moving";
    choose_examples(c, one_in(3) ? EXAMPLE_WINDOW : one_in(4) ? EXAMPLE_ADJACENCY : EXAMPLE_LIST);
    if (c->source.mode == EXAMPLE_WINDOW) c->source.per_pair = !one_in(6);
    if (c->source.mode != EXAMPLE_WINDOW && one_in(3)) c->source.positives = 0; /* then sizes are counted, not bounded */
    struct placing *p = &c->machine.placing[side];
    c->dim = ONE_OF(dims);
    state = one_in(2);
    if (state ? p->state == PLACE_GPU : p->weights == PLACE_GPU) p->weights = p->state = PLACE_PINNED;
    stride = stride_of(c, side, state);
    rows = ONE_OF(at_once);
    if (rows > most / stride) rows = most / stride;
    c->source.negatives = (uint32_t)between(1, 6);
    /* named: number of rows that the ids of a batch name: about `rows`; or more, so that only the last, shorter batch of an epoch names fewer. */
    uint64_t named = one_in(2) ? around(rows) : rows + below(rows / 2 + 1), each = 1; /* each: most rows of an example */
    uint64_t positives = c->source.positives ? c->source.positives : c->longest / 2;
    if (c->source.mode == EXAMPLE_WINDOW) {
        each = (c->source.per_pair ? 2 : 1) * (uint64_t)c->source.window * (side ? 1 + c->source.negatives : 1);
        if (one_in(2)) c->source.batch = EXAMPLE_MOST_PADDED; /* its size is counted, as for a share of a large batch */
        if (c->source.batch) each = (each + 1) / 2;
    } else if (side) {
        each = positives + c->source.negatives * (c->source.per_pair ? positives : 1);
    }
    c->batch = named / each + 1;
    if (each == 1) c->batch = named;
    c->slope = 1 + share();
    c->rows = named + between(1, 2 * named);
    choose_hot_rows(c);
    uint64_t *hot = &c->machine.placing[side].hot_rows;
    if (one_in(4) && c->rows > rows) *hot = c->rows - rows + below(2); /* as few cold rows as a batch may name, or one fewer */
    choose_length(c, between(1, 4));
}

/* Chooses windows whose batch has about EXAMPLE_MOST_PADDED terms: sizes are bounded below this number, counted above it. */
static void aim_at_padding(struct choice *c) {
    c->aim = "padding";
    choose_examples(c, EXAMPLE_WINDOW);
    c->source.window = (uint32_t)between(3, 6);
    uint64_t terms = 2 * (uint64_t)c->source.window * (1 + c->source.negatives), most = EXAMPLE_MOST_PADDED / terms;
    c->dim = (uint32_t)between(1, 60);
    c->batch = one_in(2) ? most : most + below(3);
    c->rows = between(300, 6000);
    c->slope = 1 + 2 * share();
    choose_hot_rows(c);
    choose_length(c, between(1, 2));
}

/* Chooses windows whose batch has about SMALL_BATCH contexts: each stage has a builder up to this number; above it there are two
 * builders. */
static void aim_at_builders(struct choice *c) {
    c->aim = "builders";
    choose_examples(c, EXAMPLE_WINDOW);
    c->source.per_pair = 1;
    c->dim = (uint32_t)between(1, 40);
    c->batch = SMALL_BATCH / example_most(&c->source).contexts + below(2);
    c->rows = between(300, 6000);
    c->slope = 1 + 2 * share();
    choose_hot_rows(c);
    choose_length(c, between(1, 2));
}

/* Chooses few or many blocks with few or many contexts, which decide the kernel and its number of threads. */
static void aim_at_blocks(struct choice *c) {
    static const uint64_t blocks[] = {1, 31, 127, 128, 129, 255, 256, 257, 300};
    static const uint32_t contexts[] = {27, 28, 29, 60, 90}, dims[] = {1, 31, 64, 128, 129, 256, 257, 512, 513};
    c->aim = "blocks";
    choose_examples(c, EXAMPLE_LIST);
    c->source.per_pair = 0, c->source.positives = 4, c->source.short_repeat = 1;
    c->source.negatives = ONE_OF(contexts);
    c->dim = ONE_OF(dims);
    c->batch = ONE_OF(blocks);
    c->rows = between(100, 3000);
    c->slope = 1 + 2 * share();
    choose_hot_rows(c);
    choose_length(c, between(2, 5));
}

/* Chooses small runs of all other kinds: numbers of rows near powers of two, which decide how many bits are sorted; every width
 * of the groups of threads. */
static void aim_at_anything(struct choice *c) {
    static const uint32_t dims[] = {1,   3,   4,   31,  32,  33,  50,  100, 127,  128,
                                    129, 256, 257, 300, 384, 385, 512, 513, 1024, 1025};
    static const uint64_t batches[] = {1, 2, 31, 32, 33, 100, 127, 128, 129, 200, 255, 256, 257, 513};
    c->aim = "small";
    choose_examples(c, (enum example_mode)below(3));
    if (one_in(5)) c->source.positives = 0;
    if (one_in(6)) c->source.negatives = (uint32_t)between(30, 80);
    if (c->source.mode == EXAMPLE_WINDOW && one_in(3)) c->source.batch = EXAMPLE_MOST_PADDED;
    if (one_in(3))
        c->source.capacity =
            (struct example_sizes){between(1, 300), between(1, 900), between(1, 3000), between(1, 9000)};
    c->dim = ONE_OF(dims);
    c->batch = ONE_OF(batches);
    c->rows = (UINT64_C(1) << between(1, 12)) + between(0, 2) - 1;
    if (c->rows < 2) c->rows = 2;
    c->slope = 1 + 2 * share();
    choose_hot_rows(c);
    choose_length(c, between(2, 8));
    if (c->dim > 300 && c->sentences > 2000) c->sentences = 2000;
}

/* ---- losses ---- */

/* Chooses a smooth loss, so that rounding errors stay small: its margin is one that all negatives are past. No cosines for few
 * columns, where their gradients nearly vanish, nor for rprop, which uses the gradient's sign. Called last, so that the same
 * seed makes the same other choices as before losses were added. */
static void choose_loss(struct choice *c) {
    struct loss_options *o = &c->loss;
    if (one_in(2)) return;
    o->kind = (enum loss_kind)below(4);
    o->score = c->dim >= 8 && c->rule.options.rule != RULE_RPROP && one_in(2) ? SCORE_COSINE : SCORE_DOT;
    o->temperature = o->kind == LOSS_CONTRASTIVE || one_in(2) ? 1 : 0.5f;
    o->negative_weight = o->kind == LOSS_SOFTMAX || o->kind == LOSS_CONTRASTIVE ? (float)between(1, 3) : 1;
    o->margin = o->kind == LOSS_CONTRASTIVE ? -20 : 0;
    o->negative_power = o->kind == LOSS_SOFTMAX && one_in(3) ? 1.2f : 0;
}

static void choose_pool(struct choice *c) {
    struct example_pool *pool = &c->source.pool;
    if (c->source.mode == EXAMPLE_WINDOW ? one_in(2) : !one_in(3)) return;
    pool->on = 1;
    pool->own = one_in(3) ? 0.3f : 0;
    pool->whole = one_in(3);
    if (c->source.mode != EXAMPLE_WINDOW) c->source.pooled = (uint32_t)below(4);
}

static void choose_frozen(struct choice *c) {
    for (int side = 0; side < 2; side++)
        if (one_in(6)) c->frozen[side] = (unsigned)between(1, 4);
}

/* Lets the target table begin after some rows that are only contexts. These are at most half of the rows: with fewer targets,
 * more gradients would be summed in each. */
static void choose_first_row(struct choice *c) {
    if (!one_in(3)) return;
    c->first_row = c->machine.placing[0].first_row = between(1, c->rows / 2);
}

/* Chooses bfloat16 weights, with state of either type. Not for rprop, whose use of the sign magnifies rounding. */
static void choose_precision(struct choice *c) {
    struct rule_options *rule = &c->rule.options;
    if (rule->rule == RULE_RPROP || !one_in(3)) return;
    rule->precision = PRECISION_BFLOAT16;
    rule->state_precision = one_in(2) ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
}

/* Makes each item of a list an example, mostly with negatives that all examples of a batch share; only the softmax loss allows
 * these. */
static void choose_items(struct choice *c) {
    struct example_source *s = &c->source;
    struct loss_options *o = &c->loss;
    if (s->mode == EXAMPLE_WINDOW || !one_in(3)) return;
    s->mode = EXAMPLE_ITEM;
    s->pool = (struct example_pool){.on = 0};
    s->positives = 1, s->replacement = s->per_pair = 0;
    if (one_in(4)) return;
    s->per_batch = 1;
    if (!s->distinct) s->negatives = (uint32_t)between(1, 600);
    if (o->kind != LOSS_SOFTMAX) *o = (struct loss_options){.kind = LOSS_SOFTMAX, .score = SCORE_DOT, .temperature = 0.5f, .negative_weight = 1,
                                                               .negative_power = one_in(2) ? 1.2f : 0};
}

/* Turns most of the runs whose batches share their negatives into runs of triples. */
static void choose_triples(struct choice *c) {
    struct example_source *s = &c->source;
    struct loss_options *o = &c->loss;
    if (!s->per_batch || c->rows < 8 || c->sentences < 8 || one_in(3)) return;
    s->mode = EXAMPLE_TRIPLE;
    const enum example_product product = c->dim >= 32 && one_in(4)      ? PRODUCT_TRANSLATION
                                         : c->dim % 2 || one_in(3)      ? PRODUCT_REAL
                                         : c->dim >= 32 && one_in(3)    ? PRODUCT_ROTATION
                                                                        : PRODUCT_COMPLEX;
    s->pool = (struct example_pool){.on = 1, .product = product, .tied = one_in(2)};
    s->reciprocal = one_in(2);
    s->noise = one_in(3) ? NOISE_EVERY : NOISE_UNIFORM;
    o->cubes = one_in(2) && !product_is_distance(product) ? 0.05f : 0;
    if (product_is_distance(product)) o->score = SCORE_DISTANCE, o->margin = one_in(2) ? 2 : 0;
    if (one_in(3)) o->kind = LOSS_LOGISTIC, o->negative_power = 0, o->negative_weight = 1, o->adversarial = one_in(2) ? 0.5f : 0;
    if (one_in(2) && o->score != SCORE_COSINE) s->relations_too = 1, o->relations = 0.5f;
}

static void choose_weights(struct choice *c) {
    c->loss.weighted = c->source.mode != EXAMPLE_WINDOW && c->source.mode != EXAMPLE_TRIPLE && one_in(3);
}

/* ---- the whole ---- */

struct choice choice_make(uint64_t seed) {
    struct choice c = {.seed = seed};
    random_seed(seed);
    choose_machine(&c);
    choose_rule(&c);
    switch (below(8)) {
    case 0:
        aim_at_padding(&c);
        break;
    case 1:
        aim_at_blocks(&c);
        break;
    case 2:
    case 3:
        aim_at_anything(&c);
        break;
    case 4:
        aim_at_builders(&c);
        break;
    default:
        aim_at_moving(&c);
    }
    choose_calls(&c);
    choose_loss(&c);
    choose_pool(&c);
    choose_frozen(&c);
    choose_first_row(&c);
    choose_precision(&c);
    choose_items(&c);
    choose_triples(&c);
    choose_weights(&c);
    if (!c.source.batch) c.source.batch = c.batch;
    c.summed = most_summed(&c);
    c.places = (double)c.batch * (double)example_most(&c.source).contexts * top_share(&c);
    c.rule.options.lr = rate_of(&c.rule.options, c.summed);
    return c;
}

void choice_without_items(struct choice *c) {
    struct example_source *s = &c->source;
    if (s->mode != EXAMPLE_ITEM && s->mode != EXAMPLE_TRIPLE) return;
    if (s->mode == EXAMPLE_TRIPLE) s->pool = (struct example_pool){.on = 0}, s->noise = NOISE_UNIFORM;
    s->mode = EXAMPLE_ADJACENCY, s->per_batch = 0;
    c->loss = (struct loss_options){0};
}

struct machine machine_other(const struct machine *machine, uint64_t seed) {
    struct machine other = *machine;
    random_seed(~seed);
    other.threads = (unsigned)between(1, 16);
    other.depth = one_in(3) ? 1 : (unsigned)between(1, BACKEND_STAGES);
    if (one_in(2)) other.placing[0].first_row = 0;
    return other;
}

struct machine machine_plain(const struct machine *machine) {
    struct machine plain = {.threads = machine->threads % 7 + 1, .depth = 1};
    for (int side = 0; side < 2; side++) plain.placing[side] = (struct placing){"gpu", PLACE_GPU, PLACE_GPU, 0, 0};
    return plain;
}

void choice_corpus(const struct choice *c, struct corpus *corpus) {
    random_seed(c->seed * 2 + 1);
    corpus_make_sloped(corpus, c->rows, c->sentences, c->longest, c->slope);
    for (uint64_t i = 0; i < corpus->tokens; i++)
        corpus->ids[i] = (uint32_t)(c->first_row + corpus->ids[i] * (c->rows - c->first_row) / c->rows);
}

struct example_source choice_source(const struct choice *c, struct corpus *corpus) {
    struct example_source s = c->source, of = source_of(corpus, s.mode);
    s.ids = of.ids, s.starts = of.starts, s.tokens = of.tokens, s.sentences = of.sentences, s.rows = of.rows;
    s.alias = of.alias, s.log2_rows = of.log2_rows;
    if (c->subsample) s.keep = corpus->keep;
    if (c->loss.weighted) source_weigh(&s, corpus);
    if (c->walks) source_walks(&s, corpus, (uint32_t)c->longest, c->walks - 1);
    if (s.mode == EXAMPLE_TRIPLE) source_triples(&s, corpus, &c->source.pool, s.reciprocal);
    return s;
}

void choice_freeze(struct choice *c) {
    for (int side = 0; side < 2; side++)
        if (c->frozen[side]) c->frozen_rows[side] = frozen_of(c->rows, c->frozen[side]);
}
void choice_thaw(struct choice *c) {
    for (int side = 0; side < 2; side++) free((void *)(uintptr_t)c->frozen_rows[side]);
}

static const char *name_of(enum place place) {
    return place == PLACE_PINNED ? "pinned" : place == PLACE_GPU ? "gpu" : "file";
}

void choice_describe(const struct choice *c, char *text, size_t capacity) {
    static const char *modes[] = {"window", "list", "adjacency", "item", "triple"};
    const struct example_source *s = &c->source;
    const struct placing *t = &c->machine.placing[0], *o = &c->machine.placing[1];
    snprintf(
        text, capacity,
        "SPTX_RANDOM_SEED=%llu (%s: %s%s%s, window %u%s, positives %u%s%s, negatives %u by %s%s%s, law %d%s%s%s%s; "
        "rows %llu, targets from %llu on, sentences %llu to %llu; %s%s, dim %u, %s; batch %llu of %llu, %u epochs; "
        "threads %u, "
        "depth %u, "
        "targets %s/%s hot %llu, contexts %s/%s hot %llu; loss only %u, arrays %u, apart %u, touched %u%s; loss %d of "
        "%s%s%s, "
        "frozen %u and %u)",
        (unsigned long long)c->seed, c->aim, c->walks ? "walk" : modes[s->mode],
        s->mode == EXAMPLE_LIST && s->targets_all ? " all" : "", s->shuffle ? " shuffled" : "", s->window,
        s->shrink ? " shrinking" : "", s->positives, s->replacement ? " with replacement" : "",
        s->short_repeat ? " repeating" : "", s->negatives, s->per_pair ? "pair" : s->per_batch ? "batch" : "example",
        s->exclude ? ", excluding" : "", s->distinct ? ", distinct" : "", s->noise,
        s->shuffle_items ? ", items shuffled" : "", c->subsample ? ", subsampled" : "", s->held_out ? ", held out" : "",
        s->stream_on_host ? ", far" : "", (unsigned long long)c->rows, (unsigned long long)c->first_row,
        (unsigned long long)c->sentences, (unsigned long long)c->longest, c->rule.name,
        !c->rule.options.precision          ? ""
        : c->rule.options.state_precision ? ", all bfloat16"
                                          : ", bfloat16 weights",
        c->dim,
        c->mean ? "mean" : "sum", (unsigned long long)c->batch, (unsigned long long)s->batch, c->epochs,
        c->machine.threads, c->machine.depth, name_of(t->weights), name_of(t->state), (unsigned long long)t->hot_rows,
        name_of(o->weights), name_of(o->state), (unsigned long long)o->hot_rows, c->loss_only, c->arrays, c->apart,
        c->touched, c->flowing ? ", flowing" : "", (int)c->loss.kind, c->loss.score ? "cosines" : "dots",
        s->pool.tied ? ", tied" : s->pool.on ? ", pooled" : "", c->loss.weighted ? ", weighted" : "", c->frozen[0], c->frozen[1]);
}
