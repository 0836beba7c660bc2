#include "common.h"

#include <time.h>

int passed, failed, skipped;
char directory[256];

/* Allocates whole pages, as a mapped file has them. A backend may pin the pages of ids and starts; if another allocation shared
 * such a page, copies that cross the page's end would fail. */
static void *need_pages(uint64_t bytes) {
    uint64_t page = 65536, whole = (bytes + page - 1) / page * page;
    void *memory = aligned_alloc(page, whole ? whole : page);
    if (!memory) exit(3);
    memset(memory, 0, whole);
    return memory;
}

void *need(uint64_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) {
        printf("no memory for the tests\n");
        exit(1);
    }
    return memory;
}

static uint64_t random_state = 88172645463325252ull;
/* Mixes the seed as SplitMix64 does, since the first numbers of neighbouring seeds must not be alike. */
void random_seed(uint64_t seed) {
    seed += 0x9E3779B97F4A7C15u;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EBu;
    random_state = (seed ^ seed >> 31) | 1;
}
uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
float random_float(void) {
    return (float)(random_bits() >> 40) / 16777216.0f - 0.5f;
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a corpus ---- */

/* Makes Vose's alias table for drawing rows with weights 1 / (row + 1). */
static void make_alias(struct alias *table, uint64_t rows) {
    double *share = need(rows * sizeof *share), sum = 0;
    uint32_t *small = need(rows * 4), *large = need(rows * 4);
    uint64_t smalls = 0, larges = 0;
    for (uint64_t i = 0; i < rows; i++) sum += 1.0 / (double)(i + 1);
    for (uint64_t i = 0; i < rows; i++) {
        share[i] = (double)rows / (double)(i + 1) / sum;
        if (share[i] < 1)
            small[smalls++] = (uint32_t)i;
        else
            large[larges++] = (uint32_t)i;
    }
    while (smalls && larges) {
        uint32_t a = small[--smalls], b = large[larges - 1];
        table[a] = (struct alias){(uint32_t)(share[a] * 4294967295.0), b};
        share[b] -= 1 - share[a];
        if (share[b] < 1) small[smalls++] = b, larges--;
    }
    for (; smalls; smalls--) table[small[smalls - 1]] = (struct alias){UINT32_MAX, small[smalls - 1]};
    for (; larges; larges--) table[large[larges - 1]] = (struct alias){UINT32_MAX, large[larges - 1]};
    free(share);
    free(small);
    free(large);
}

void corpus_make(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest) {
    corpus_make_sloped(c, rows, sentences, longest, 3);
}

void corpus_make_sloped(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest, double slope) {
    *c = (struct corpus){.rows = rows, .sentences = sentences};
    c->starts = need_pages((sentences + 1) * 8);
    c->ids = need_pages(sentences * longest * 4);
    c->keep = need((rows + shared_rows(rows)) * 4);
    c->alias = need((rows + shared_rows(rows)) * sizeof *c->alias);
    c->tokens = 0;
    for (uint64_t i = 0; i < sentences; i++) {
        uint64_t length = 1 + random_bits() % longest;
        c->starts[i] = c->tokens;
        for (uint64_t j = 0; j < length; j++) {
            double u = (double)(random_bits() >> 11) / 9007199254740992.0;
            c->ids[c->tokens++] = (uint32_t)((slope == 3 ? u * u * u : pow(u, slope)) * (double)rows);
        }
    }
    c->starts[sentences] = c->tokens;
    for (uint64_t i = 0; i < rows; i++)
        c->keep[i] = i > rows / 2 ? UINT32_MAX : (uint32_t)(random_bits() >> 32) | 1u << 30;
    make_alias(c->alias, rows);
}

uint64_t corpus_longest(const struct corpus *c) {
    uint64_t longest = 0;
    for (uint64_t i = 0; i < c->sentences; i++)
        if (c->starts[i + 1] - c->starts[i] > longest) longest = c->starts[i + 1] - c->starts[i];
    return longest;
}

void corpus_free(struct corpus *c) {
    free(c->ids);
    free(c->starts);
    free(c->keep);
    free(c->alias);
    free(c->nodes);
    free(c->neighbours);
    free(c->labels);
    free(c->begins);
    free(c->weights);
    free(c->word_starts);
    free(c->word_rows);
    free(c->item_weights);
    huffman_release(&c->tree);
}

void source_weigh(struct example_source *s, struct corpus *c) {
    if (!c->item_weights) c->item_weights = need_pages(c->tokens * sizeof *c->item_weights);
    for (uint64_t i = 0; i < c->tokens; i++) c->item_weights[i] = 0.2f + (float)(i * 2654435761u % 1000) / 500;
    s->weights = c->item_weights;
    s->weight_scale = 1 / 1.2f;
}

/* ---- words of several rows ---- */

enum { FEW_SHARED = 8, MANY_SHARED = 70, SELDOM = 20 };

static void make_word_rows(struct corpus *c) {
    uint64_t at = 0;
    c->word_starts = need((c->rows + 1) * sizeof *c->word_starts);
    c->word_rows = need(c->rows * MANY_SHARED * sizeof *c->word_rows);
    for (uint64_t word = 0; word < c->rows; word++) {
        uint64_t count = random_bits() % (random_bits() % SELDOM ? FEW_SHARED : MANY_SHARED);
        c->word_rows[at++] = (uint32_t)word;
        for (uint64_t i = 0; i < count; i++) c->word_rows[at++] = (uint32_t)(c->rows + random_bits() % shared_rows(c->rows));
        c->word_starts[word + 1] = at;
    }
}

void source_shares(struct example_source *s, struct corpus *c, int by_window) {
    if (!c->word_starts) make_word_rows(c);
    s->rows = c->rows + shared_rows(c->rows);
    s->target_only = shared_rows(c->rows);
    s->pool.on = 1;
    s->subwords = (struct example_subwords){.starts = c->word_starts,
                                            .rows = c->word_rows,
                                            .words = c->rows,
                                            .listed = c->word_starts[c->rows],
                                            .by_window = by_window};
    for (uint64_t word = 0; word < c->rows; word++) {
        uint64_t count = c->word_starts[word + 1] - c->word_starts[word];
        if (count > s->subwords.most) s->subwords.most = count;
    }
}

/* ---- a tree of words ---- */

static void make_tree(struct corpus *c) {
    uint64_t *counts = need(c->rows * sizeof *counts);
    for (uint64_t i = 0; i < c->tokens; i++) counts[c->ids[i]]++;
    if (huffman_make(&c->tree, counts, c->rows)) exit(1);
    free(counts);
}

void source_paths(struct example_source *s, struct corpus *c) {
    if (!c->tree.words) make_tree(c);
    s->paths = (struct example_paths){.starts = c->tree.starts,
                                      .nodes = c->tree.nodes,
                                      .words = c->rows,
                                      .listed = c->tree.starts[2 * c->rows],
                                      .most = c->tree.longest};
    s->negatives = 0;
    s->per_pair = 0;
}

/* ---- triples ---- */

void source_triples(struct example_source *s, struct corpus *c, const struct example_pool *pool, int reciprocal) {
    uint64_t relations = c->rows < 32 ? 2 : c->rows / 16 * 2, entities = c->rows - relations;
    for (uint64_t i = 0; i < c->tokens; i++) {
        if (i % 3 == 1) c->ids[i] = (uint32_t)(entities + c->ids[i] % (reciprocal ? relations / 2 : relations));
        else if (c->ids[i] >= entities) c->ids[i] -= (uint32_t)relations;
    }
    s->mode = EXAMPLE_TRIPLE;
    s->starts = NULL;
    s->sentences = c->tokens / 3, s->tokens = 3 * s->sentences, s->longest = 3;
    s->target_only = relations, s->log2_rows = log2((double)entities);
    s->pool = *pool;
    s->reciprocal = reciprocal;
    s->per_pair = s->replacement = 0, s->per_batch = 1, s->positives = 1;
    if (s->noise == NOISE_UNIGRAM) s->noise = NOISE_UNIFORM; /* the corpus' alias table is of all rows */
    if (s->noise == NOISE_EVERY) s->negatives = (uint32_t)entities, s->distinct = 0;
}

/* ---- a graph ---- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Lists the arcs as node << 32 | neighbour, sorted, without repeats; returns their number. */
static uint64_t list_arcs(const struct corpus *c, int directed, uint64_t *arcs) {
    uint64_t count = 0, kept = 0;
    for (uint64_t i = 0; i + 1 < c->tokens; i++) {
        uint64_t a = c->ids[i], b = c->ids[i + 1];
        if (a == b) continue;
        arcs[count++] = a << 32 | b;
        if (!directed) arcs[count++] = b << 32 | a;
    }
    qsort(arcs, count, sizeof *arcs, by_value);
    for (uint64_t i = 0; i < count; i++)
        if (!i || arcs[i] != arcs[i - 1]) arcs[kept++] = arcs[i];
    return kept;
}

static void make_graph(struct corpus *c, int directed) {
    uint64_t *arcs = need(2 * (c->tokens + 1) * sizeof *arcs), count = list_arcs(c, directed, arcs), at = 0;
    c->nodes = need((c->rows + 1) * sizeof *c->nodes);
    c->neighbours = need_pages(count * sizeof *c->neighbours);
    c->weights = need_pages(count * sizeof *c->weights);
    c->labels = need_pages(count * sizeof *c->labels);
    c->begins = need(c->rows * sizeof *c->begins);
    for (uint64_t row = 0; row < c->rows; row++) {
        c->nodes[row] = at;
        while (at < count && arcs[at] >> 32 == row) at++;
        for (uint64_t i = c->nodes[row]; i < at; i++) {
            c->neighbours[i] = (uint32_t)arcs[i];
            c->labels[i] = c->ids[random_bits() % c->tokens]; /* a row that may be a target, too */
            c->weights[i] = (struct alias){(uint32_t)(random_bits() >> 32), (uint32_t)(random_bits() % (at - c->nodes[row]))};
        }
    }
    c->nodes[c->rows] = at;
    free(arcs);
}

void source_walks(struct example_source *s, struct corpus *c, uint32_t length, unsigned kind) {
    /* p and q of each kind of walk; the last pair makes some steps be drawn exactly instead of by rejection */
    static const double biases[][2] = {{1, 1}, {0.25, 2}, {3, 0.5}, {1000, 0.001}};
    int directed = (int)(kind >> 3 & 1);
    if (!c->nodes) make_graph(c, directed);
    s->walks = (struct walks){.starts = c->nodes,
                              .neighbours = c->neighbours,
                              .alias = (kind & 17) == 1 ? c->weights : NULL,
                              .labels = kind & 16 ? c->labels : NULL,
                              .nodes = c->rows,
                              .begun = c->rows,
                              .arcs = c->nodes[c->rows],
                              .length = length,
                              .per_node = (uint32_t)(c->sentences / c->rows + 1)};
    if (kind & 16 && length % 2 == 0) s->walks.length = ++length; /* a walk ends with a node */
    if (kind & 16) {
        s->walks.begins = c->begins;
        s->walks.begun = (c->rows + 1) / 2;
        for (uint64_t i = 0; i < s->walks.begun; i++) c->begins[i] = (uint32_t)(2 * i);
        s->walks.per_node = (uint32_t)(c->sentences / s->walks.begun + 1);
    }
    walks_set_biases(&s->walks, biases[kind >> 1 & 3][0], biases[kind >> 1 & 3][1], directed);
    s->ids = NULL;
    s->starts = NULL;
    s->sentences = c->sentences;
    s->tokens = s->sentences * length;
    s->longest = length;
    s->shuffle = s->shuffle_items = 0;
}

struct example_source source_of(const struct corpus *c, enum example_mode mode) {
    return (struct example_source){
        .ids = c->ids,
        .starts = c->starts,
        .tokens = c->tokens,
        .sentences = c->sentences,
        .rows = c->rows,
        .mode = mode,
        .window = 5,
        .shrink = 1,
        .positives = 4,
        .negatives = 5,
        .exclude = 1,
        .noise = NOISE_UNIGRAM,
        .alias = c->alias,
        .log2_rows = log2((double)c->rows),
        .seed = 7,
    };
}

/* ---- backends ---- */

enum matmul_type matmul = MATMUL_FLOAT32;

struct backend *open_or_stop(const struct backend_ops *ops, unsigned depth) {
    return open_with_threads(ops, depth, 2);
}

struct backend *open_with_threads(const struct backend_ops *ops, unsigned depth, unsigned threads) {
    struct backend *backend = NULL;
    struct backend_options options = {.threads = threads, .depth = depth, .gpu_budget = UINT64_MAX, .matmul = matmul};
    if (ops->open(&backend, &options)) {
        printf("cannot open %s: %s\n", ops->name, report_sentence());
        exit(1);
    }
    return backend;
}

/* ---- tables ---- */

uint32_t *frozen_of(uint64_t rows, unsigned every) {
    uint32_t *bits = need(table_frozen_words(rows) * sizeof *bits);
    for (uint64_t row = 0; row < rows; row += every) bits[row / 32] |= 1u << row % 32;
    return bits;
}

/* eps is large: with a small one, a nearly vanishing gradient would magnify the rounding of its sum. */
struct rule_options options_of(int rule) {
    return (struct rule_options){
        .rule = rule,
        .eps = 1e-3,
        .rho = 0.9,
        .alpha = rule == RULE_ASGD ? 0.75 : 0.99,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .lambd = 1e-4,
        .beta = rule == RULE_FTRL,
        .t0 = 2,
        .eta_minus = 0.5,
        .eta_plus = 1.2,
        .step_min = 1e-6,
        .step_max = 50,
        .lr = 0.05,
    };
}

double rate_of(const struct rule_options *rule, double summed) {
    switch (rule->rule) {
    case RULE_SGD:
    case RULE_ASGD:
        return (rule->momentum != 0 ? 0.05 : 0.5) / summed;
    case RULE_ADAGRAD:
        if (rule->lr_decay != 0) return summed > 1 ? 0.05 : 0.5; /* the first gradients may be large sums */
        return 0.01;
    case RULE_ROWWISE_ADAGRAD:
        return 0.01;
    case RULE_ADADELTA:
        return 0.5;
    case RULE_ADAMAX:
        return 8e-3;
    case RULE_RPROP:
        return 2e-3;
    default:
        return rule->momentum != 0 ? 1e-3 : 4e-3;
    }
}

int rule_cases(struct rule_case cases[32]) {
    int n = 0;
#define PLAIN(text, enumerator) cases[n].name = #text, cases[n++].options = options_of(enumerator);
    RULES(PLAIN)
#undef PLAIN
    cases[n] = (struct rule_case){"sgd momentum nesterov decay", options_of(RULE_SGD)};
    cases[n].options.momentum = 0.9, cases[n].options.nesterov = 1, cases[n++].options.weight_decay = 0.01;
    cases[n] = (struct rule_case){"sgd clip", options_of(RULE_SGD)};
    cases[n++].options.clip = 0.05; /* clips the gradients of some rows if they are averaged over a batch, and of most rows if
                                     * they are summed */
    cases[n] = (struct rule_case){"adamax clip", options_of(RULE_ADAMAX)};
    cases[n++].options.clip = 0.5;
    cases[n] = (struct rule_case){"adagrad lr_decay counted", options_of(RULE_ADAGRAD)};
    cases[n].options.lr_decay = 0.1, cases[n].options.initial_accumulator = 0.1, cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"rowwise_adagrad clip", options_of(RULE_ROWWISE_ADAGRAD)};
    cases[n].options.clip = 0.5, cases[n++].options.initial_accumulator = 0.1;
    cases[n] = (struct rule_case){"rowwise_adam clip counted", options_of(RULE_ROWWISE_ADAM)};
    cases[n].options.clip = 0.5, cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"rmsprop centered", options_of(RULE_RMSPROP)};
    cases[n++].options.centered = 1;
    cases[n] = (struct rule_case){"rmsprop momentum", options_of(RULE_RMSPROP)};
    cases[n++].options.momentum = 0.9;
    cases[n] = (struct rule_case){"rmsprop centered momentum", options_of(RULE_RMSPROP)};
    cases[n].options.momentum = 0.9, cases[n++].options.centered = 1;
    cases[n] = (struct rule_case){"adam amsgrad counted", options_of(RULE_ADAM)};
    cases[n].options.amsgrad = 1, cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"adamw decay amsgrad", options_of(RULE_ADAMW)};
    cases[n].options.amsgrad = 1, cases[n++].options.weight_decay = 0.01;
    cases[n] = (struct rule_case){"adamax counted", options_of(RULE_ADAMAX)};
    cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"sparse_adam counted", options_of(RULE_SPARSE_ADAM)};
    cases[n++].options.count_rows = 1;
    cases[n] = (struct rule_case){"asgd counted", options_of(RULE_ASGD)};
    cases[n++].options.count_rows = 1;
    return n;
}

struct record_layout layout_of(const struct rule_options *rule, uint32_t dim) {
    struct rule_options counted = *rule;
    counted.count_rows = rule->count_rows && rule_counts(rule);
    return record_layout_make(&counted, dim);
}

int tables_open(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2]) {
    const uint32_t *const none[2] = {NULL, NULL};
    return tables_open_frozen(t, ops, backend, rule, dim, rows, placing, none);
}

int tables_open_frozen(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                       const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2],
                       const uint32_t *const frozen[2]) {
    *t = (struct tables){.ops = ops, .backend = backend, .layout = layout_of(rule, dim), .rows = rows};
    for (int side = 0; side < 2; side++) {
        char path[sizeof directory + 16];
        snprintf(path, sizeof path, "%s/%s", directory, side ? "context" : "target");
        struct table_spec spec = {.name = side ? "context" : "target",
                                  .rows = rows,
                                  .first_row = placing[side].first_row,
                                  .layout = t->layout,
                                  .rounding = rounding_of_side(side),
                                  .weights = placing[side].weights,
                                  .state = placing[side].state,
                                  .file_path = path,
                                  .hot_rows = placing[side].hot_rows,
                                  .frozen = frozen[side]};
        t->first_row[side] = spec.first_row;
        if (ops->table_open(backend, &spec, &t->side[side])) return -1;
    }
    return 0;
}

void tables_close(struct tables *t) {
    for (int side = 0; side < 2; side++)
        if (t->side[side]) t->ops->table_close(t->backend, t->side[side]);
}

/* Returns the offset of a value in a packed record. */
static uint64_t place_of(const struct record_layout *layout, uint32_t part, uint32_t column) {
    const struct record_field *field = &layout->field[part];
    return field->packed + column * value_bytes(field->type);
}

double value_of(const struct record_layout *layout, const char *record, uint32_t part, uint32_t column) {
    if (column >= layout->field[part].columns) return 0; /* a slot with one number for the whole row has no such column */
    const char *at = record + place_of(layout, part, column);
    uint16_t kept;
    float value;
    if (layout->field[part].type == VALUE_BFLOAT16) {
        memcpy(&kept, at, sizeof kept);
        return (double)bfloat16_value(kept);
    }
    memcpy(&value, at, sizeof value);
    return (double)value;
}

void set_value(const struct record_layout *layout, char *record, uint32_t part, uint32_t column, float value) {
    if (column >= layout->field[part].columns) return;
    char *at = record + place_of(layout, part, column);
    uint16_t kept = bfloat16_nearest(value);
    if (layout->field[part].type == VALUE_BFLOAT16) memcpy(at, &kept, sizeof kept);
    else memcpy(at, &value, sizeof value);
}

struct rounding rounding_of_side(int side) {
    return (struct rounding){.seed = 12345, .table = (uint32_t)side};
}

char *first_records(const struct rule_options *rule, const struct record_layout *layout, uint64_t rows) {
    struct rule_slot slots[RULE_SLOTS];
    char *records = need(rows * layout->packed);
    rule_slots(rule, slots);
    for (uint64_t row = 0; row < rows; row++) {
        char *at = records + row * layout->packed;
        for (uint32_t i = 0; i < layout->dim; i++) set_value(layout, at, 0, i, random_float() * 0.5f);
        for (uint32_t s = 0; s < layout->slots; s++)
            for (uint32_t i = 0; i < layout->dim; i++) set_value(layout, at, s + 1, i, slots[s].initial);
    }
    return records;
}

int tables_fill(struct tables *t, const char *const records[2]) {
    for (int side = 0; side < 2; side++) {
        uint64_t first = t->first_row[side];
        const char *from = records[side] + first * t->layout.packed;
        if (t->ops->table_write(t->backend, t->side[side], first, t->rows - first, from)) return -1;
    }
    return 0;
}

int tables_read(const struct tables *t, int side, char *records) {
    uint64_t first = t->first_row[side];
    return t->ops->table_read(t->backend, t->side[side], first, t->rows - first, records + first * t->layout.packed);
}

char *tables_records(const struct tables *t, int side, const char *name) {
    char *records = need(t->rows * t->layout.packed);
    CHECK(!tables_read(t, side, records), "%s: reading", name);
    return records;
}

int one_step(struct tables *t, unsigned stage, const struct step_request *request) {
    struct step_request r = *request;
    r.target = t->side[0], r.context = t->side[1];
    return t->ops->step(t->backend, stage, &r);
}

const struct placing PLACES[PLACE_PAIRS][2] = {
    {{"gpu", PLACE_GPU, PLACE_GPU, 0, 0}, {"gpu", PLACE_GPU, PLACE_GPU, 0, 0}},
    {{"pinned", PLACE_PINNED, PLACE_PINNED, 0, 0}, {"gpu", PLACE_GPU, PLACE_GPU, 0, 0}},
    {{"pinned", PLACE_PINNED, PLACE_PINNED, 17, 0}, {"pinned", PLACE_PINNED, PLACE_PINNED, 17, 0}},
    {{"gpu+pinned", PLACE_GPU, PLACE_PINNED, 5, 0}, {"pinned+gpu", PLACE_PINNED, PLACE_GPU, 5, 0}},
    {{"file", PLACE_FILE, PLACE_FILE, 9, 0}, {"file+pinned", PLACE_FILE, PLACE_PINNED, 9, 0}},
};
