#include "defaults_by_size.h"

#include "config_keys.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

/* Kinds of data, by the meaning of a training example. Each is one bit, so that a row of the table can apply to several kinds. */
enum sized_data {
    OF_WINDOWS = 1,
    OF_CBOW = 2,
    OF_SUBWORDS = 4,
    OF_TEXT = OF_WINDOWS | OF_CBOW | OF_SUBWORDS,
    OF_LISTS = 8,
    OF_ITEMS = 16,
    OF_LINES = 32,
    OF_GRAPHS = 64,
    OF_DOCUMENTS = 128,
    OF_TRIPLES = 256,
    OF_WALKED = 512
};

/* The counts of the data that a row's bounds test. NO_COUNT marks an unused bound. */
enum sized_count { NO_COUNT, TOKENS, WORDS, MEETINGS, LISTS, ITEMS, PAIRS, PER_LIST, PER_ITEM, NODES, ARCS, PER_NODE, ENTITIES, TRIPLES, RELATIONS,
                   PER_NEGATIVE, EFFORT, SHARED, SIZED_COUNTS };
static const char *const count_names[SIZED_COUNTS] = {
    [TOKENS] = "tokens",
    [WORDS] = "distinct words",
    [MEETINGS] = "tokens per distinct word in the whole run",
    [LISTS] = "lists",
    [ITEMS] = "items",
    [PAIRS] = "pairs",
    [PER_LIST] = "items per list",
    [PER_ITEM] = "lists per item",
    [NODES] = "nodes",
    [ARCS] = "arcs",
    [PER_NODE] = "arcs per node",
    [ENTITIES] = "entities",
    [TRIPLES] = "triples",
    [RELATIONS] = "rows of relations (a reciprocal has one, too)",
    [PER_NEGATIVE] = "entities per negative",
    [EFFORT] = "train.effort",
    [SHARED] = "negatives.per",
};

struct sized_bound {
    enum sized_count count;
    double from;
};

#define COUNT_ITSELF NULL
#define PLAIN        "" /* the default that config_resolve() has set */
#define WHERE(count, from)    {{count, from}}
#define BOTH(a, from, b, and) {{a, from}, {b, and}}
#define ALL(a, from, b, and, c, too) {{a, from}, {b, and}, {c, too}}
enum { BOUNDS = 3 };
struct sized_default {
    const char *section, *key;
    enum sized_data data;
    struct sized_bound bound[BOUNDS];
    const char *value; /* COUNT_ITSELF: the number that the first bound counts; PLAIN: the key does not change */
    double cube, least, most; /* if `cube` is not 0, the value is cube / (first count)^(1/3), within least .. most */
};

#define SIZED(section_name, key_name, kind, bounds, text) {#section_name, #key_name, kind, bounds, text, 0, 0, 0},
#define FALLING(section_name, key_name, kind, count, cube, least, most) {#section_name, #key_name, kind, {{count, 0}}, NULL, cube, least, most},
static const struct sized_default table[] = {
#include "defaults_by_size.def"
};
enum { ROWS = sizeof table / sizeof *table };

/* ---- what is counted ---- */

/* Returns the kind of data of a run; 0 for counts and for windows over anything but text, which have no defaults by size. */
static enum sized_data data_of(const struct config *c) {
    int text = corpus_formats[c->corpus_format].sentences;
    if (config_has_documents(c)) return OF_DOCUMENTS;
    switch (c->examples_mode) {
    case MODE_USER:
        return OF_LISTS;
    case MODE_LIST:
        return OF_ITEMS;
    case MODE_ADJACENCY:
        return OF_LINES;
    case MODE_WALK:
        return config_walks_triples(c) ? OF_WALKED : OF_GRAPHS;
    case MODE_TRIPLE:
        return OF_TRIPLES;
    case MODE_COUNTS:
        return 0;
    default:
        if (!text) return 0;
        return c->examples_mode == MODE_CBOW ? OF_CBOW : config_subwords(c).max ? OF_SUBWORDS : OF_WINDOWS;
    }
}

static double ratio(uint64_t a, uint64_t b) {
    return b ? (double)a / (double)b : 0;
}

static double count_of(enum sized_count count, const struct data_size *size, const struct config *c) {
    int thorough = c->train_effort == EFFORT_THOROUGH;
    double a_word = ratio(size->tokens, size->words);
    const double counts[SIZED_COUNTS] = {
        [TOKENS] = (double)size->tokens,
        [WORDS] = (double)size->words,
        [MEETINGS] = c->train_epochs ? a_word * (double)c->train_epochs : INFINITY, /* no limit: assume a long run */
        [LISTS] = (double)size->lists,
        [ITEMS] = (double)size->words,
        [PAIRS] = (double)size->tokens,
        [PER_LIST] = ratio(size->tokens, size->lists),
        [PER_ITEM] = a_word,
        [NODES] = (double)size->words,
        [ARCS] = (double)size->arcs,
        [PER_NODE] = ratio(size->arcs, size->words),
        [ENTITIES] = (double)size->words,
        [TRIPLES] = (double)size->lists,
        [RELATIONS] = (double)size->relations,
        [PER_NEGATIVE] = fmax(1, ratio(size->words, c->negatives_count)),
        [EFFORT] = thorough,
        [SHARED] = c->negatives_per == PER_BATCH && (thorough || config_is_given(c, "negatives", "per")),
    };
    return counts[count];
}

static int holds(const struct sized_default *row, const struct data_size *size, const struct config *c) {
    for (const struct sized_bound *bound = row->bound; bound < row->bound + BOUNDS && bound->count != NO_COUNT; bound++)
        if (count_of(bound->count, size, c) < bound->from) return 0;
    return 1;
}

/* ---- choosing ---- */

static int is_key(const struct sized_default *row, const char *section, const char *key) {
    return !strcmp(row->section, section) && !strcmp(row->key, key);
}

/* Returns 1 if the table's temperatures do not fit: they were measured for a softmax of cosines. */
static int has_own_temperature(const struct config *c) {
    return c->train_loss != LOSS_SOFTMAX || c->train_score != SCORE_COSINE;
}

static int is_any_given(const struct config *c, const char *const (*keys)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (config_is_given(c, keys[i][0], keys[i][1])) return 1;
    return 0;
}

/* Returns 1 if the defaults may make a batch share its negatives. They then also change other keys, such as examples.targets, so
 * the user must have set none of these keys. */
static int may_share(const struct config *c) {
    static const char *const keys[][2] = {{"negatives", "per"},      {"negatives", "count"},      {"examples", "targets"},
                                          {"examples", "positives"}, {"examples", "replacement"}, {"train", "batch"}};
    return !is_any_given(c, keys, sizeof keys / sizeof *keys) && c->examples_own == 1 && c->train_loss == LOSS_SOFTMAX &&
           c->train_update == UPDATE_BATCH && config_ranks(c) == 1;
}

/* Returns 1 for exact sgd without gradient clipping. On text and walks it diverges if all frequent words are kept, or at learning
 * rates that suit lock-free training. */
static int is_unbounded(const struct config *c) {
    return (data_of(c) & (OF_TEXT | OF_GRAPHS)) && c->train_update == UPDATE_BATCH && c->optimizer_rule == RULE_SGD && c->optimizer_clip == 0;
}

/* Returns 1 for the keys of triples whose values were chosen for dot products, not for distances. */
static int is_of_products(const struct sized_default *row) {
    return strstr(row->key, "_init") || !strncmp(row->key, "n3", 2) || !strcmp(row->section, "optimizer");
}

/* Returns 1 if the key of this row of the table may be set. For lists, rows of [examples] and of negatives.per require may_share().
 *
 * The learning rate is not set if the user has set optimizer.rule, whose own default then applies; nor with a tree, since the
 * table's rates were measured with negatives: along the paths of a tree, 0.05 made no better vectors of 16.7 million words than
 * 0.025 (analogies .342 for .360).
 */
static int may_choose(const struct config *c, const struct sized_default *row) {
    int rate = is_key(row, "optimizer", "lr");
    int examples = !strcmp(row->section, "examples");
    if (!(data_of(c) & row->data) || config_is_given(c, row->section, row->key)) return 0;
    if (row->data == OF_LISTS && (examples || is_key(row, "negatives", "per"))) return may_share(c);
    if (is_key(row, "train", "temperature")) return !has_own_temperature(c);
    if (row->data == OF_TRIPLES && c->train_score == SCORE_DISTANCE && is_of_products(row)) return 0;
    if (is_key(row, "optimizer", "initial_accumulator") && config_is_given(c, "optimizer", "rule")) return 0;
    if (is_key(row, "train", "n3_warmup") && config_is_given(c, "train", "n3") && c->train_n3 == 0) return 0;
    if (is_key(row, "model", "relation_init") && config_is_given(c, "model", "target_init")) return 0;
    if (is_key(row, "train", "relations")) return c->train_score != SCORE_COSINE;
    if (is_key(row, "train", "negative_weight")) return c->train_loss == LOSS_SOFTMAX && c->train_negative_power == 0;
    if (is_unbounded(c) && (rate || is_key(row, "examples", "subsample"))) return 0;
    return !rate || (!config_is_given(c, "optimizer", "rule") && !config_has_tree(c));
}

/* Returns 1 if no earlier row of the table has this row's key and kind of data. */
static int is_first(const struct sized_default *row) {
    for (const struct sized_default *other = table; other < row; other++)
        if (other->data == row->data && is_key(other, row->section, row->key)) return 0;
    return 1;
}

static int is_plain(const struct sized_default *row) {
    return row->value && !*row->value;
}

static int choose(struct config *config, const struct sized_default *row, const struct data_size *size, char chosen[DEFAULTS_TEXT]) {
    char itself[32], before[CONFIG_BYTES], now[CONFIG_BYTES];
    const struct config_key *key = config_find_key(row->section, row->key);
    double count = count_of(row->bound[0].count, size, config);
    snprintf(itself, sizeof itself, "%.0f", row->cube > 0 ? fmin(fmax(row->cube / cbrt(count), row->least), row->most) : count);
    snprintf(before, sizeof before, "%s", config_text_of(config, key, now));
    if (config_choose(config, key, row->value ? row->value : itself)) return -1;
    const char *value = config_text_of(config, key, now);
    size_t used = strlen(chosen);
    if (strcmp(before, value)) text_add(chosen, DEFAULTS_TEXT, used, "%s%s = %s", used ? ", " : "", key->name, value);
    return 0;
}

int defaults_by_size(struct config *config, const struct data_size *size, char chosen[DEFAULTS_TEXT]) {
    *chosen = 0;
    for (const struct sized_default *first = table; first < table + ROWS; first++) {
        if (!is_first(first) || !may_choose(config, first)) continue;
        const struct sized_default *row = NULL; /* the last row with the key and kind of data of `first` whose bounds are all met */
        for (const struct sized_default *other = first; other < table + ROWS; other++)
            if (other->data == first->data && is_key(other, first->section, first->key) && holds(other, size, config)) row = other;
        if (row && !is_plain(row) && choose(config, row, size, chosen)) return -1;
    }
    return 0;
}

void defaults_keep(struct config *config, const struct config *before) {
    for (const struct sized_default *row = table; row < table + ROWS; row++)
        if ((data_of(config) & row->data) && !config_is_given(config, row->section, row->key))
            config_copy_value(config, before, config_find_key(row->section, row->key));
}

/* ---- help ---- */

/* The keys that make a run of one kind of data, from which its default of config_resolve() is read. */
static const struct {
    enum sized_data data;
    const char *name, *format, *mode, *subwords;
} kinds[] = {{OF_TEXT, "corpus.format = text", "text", "window", "none"},
             {OF_DOCUMENTS, "corpus.format = documents", "documents", "user", "none"},
             {OF_SUBWORDS, "examples.mode = window with examples.subwords", "text", "window", "3-6"},
             {OF_WINDOWS, "examples.mode = window", "text", "window", "none"},
             {OF_CBOW, "examples.mode = cbow", "text", "cbow", "none"},
             {OF_LISTS, "examples.mode = user", "pairs", "user", "none"},
             {OF_ITEMS, "examples.mode = list", "pairs", "list", "none"},
             {OF_LINES, "examples.mode = adjacency", "adjacency", "adjacency", "none"},
             {OF_GRAPHS, "examples.mode = walk", "graph", "walk", "none"},
             {OF_WALKED, "examples.mode = walk with corpus.format = triples", "triples", "walk", "none"},
             {OF_TRIPLES, "examples.mode = triple", "triples", "triple", "none"}};

static int kind_of(enum sized_data data) {
    int kind = 0;
    while (kinds[kind].data != data) kind++;
    return kind;
}

static int tests(const struct sized_default *row, enum sized_count count) {
    for (int i = 0; i < BOUNDS; i++)
        if (row->bound[i].count == count) return 1;
    return 0;
}

/* Writes the value that config_resolve() gives a key for one kind of data, on the CPU. Returns 1; 0 if this kind has no such
 * train.effort; -1 after fail(). */
static int plain_value(const struct sized_default *row, const char *effort, char value[CONFIG_BYTES]) {
    ENDED_BY(config_release) struct config config = {0};
    char text[CONFIG_BYTES];
    int kind = kind_of(row->data);
    const char *const set[][3] = {{"corpus", "path", "data"},  {"corpus", "format", kinds[kind].format}, {"examples", "mode", kinds[kind].mode},
                                  {"train", "effort", effort}, {"device", "backend", "cpu"},
                                  {"examples", "subwords", kinds[kind].subwords},
                                  {"negatives", "per", tests(row, SHARED) ? "batch" : "auto"}};
    if (!strcmp(effort, "thorough") && strcmp(kinds[kind].mode, "user") && strcmp(kinds[kind].mode, "walk") && strcmp(kinds[kind].mode, "triple"))
        return 0;
    int result = config_init(&config);
    for (size_t i = 0; i < sizeof set / sizeof *set && !result; i++) result = config_set(&config, set[i][0], set[i][1], set[i][2], "help");
    if (!result) result = config_resolve(&config);
    if (!result) snprintf(value, CONFIG_BYTES, "%s", config_text_of(&config, config_find_key(row->section, row->key), text));
    return result ? -1 : 1;
}

/* Returns the number with two digits that count. */
static uint64_t rounded(double number) {
    double unit = pow(10, floor(log10(number)) - 1);
    return (uint64_t)(round(number / unit) * unit);
}

static size_t describe_row(const struct sized_default *row, const char *effort, const char *value, char *out, size_t used) {
    char from[TEXT_BYTES];
    int bounds = 0;
    used = text_add(out, DEFAULTS_HELP, used, "%s  for %s", used ? "\n" : "", kinds[kind_of(row->data)].name);
    for (int i = 0; i < BOUNDS && row->bound[i].count != NO_COUNT; i++) {
        const struct sized_bound *bound = &row->bound[i];
        if (bound->count == EFFORT) effort = ", with train.effort = thorough";
        if (bound->count == SHARED) effort = ", with negatives.per = batch";
        if (bound->count == EFFORT || bound->count == SHARED || bound->from <= 0) continue;
        text_of_count(from, (uint64_t)bound->from);
        used = text_add(out, DEFAULTS_HELP, used, "%s %s %s", bounds++ ? " and" : ", at least", from, count_names[bound->count]);
    }
    used = text_add(out, DEFAULTS_HELP, used, "%s", effort);
    if (row->cube > 0) {
        char first[TEXT_BYTES], last[TEXT_BYTES];
        text_of_count(first, rounded(pow(row->cube / row->most, 3)));
        text_of_count(last, rounded(pow(row->cube / row->least, 3)));
        return text_add(out, DEFAULTS_HELP, used, ": %.0f for at most %s %s, %.0f for at least %s; between them %.0f / the cube root of their number",
                        row->most, first, count_names[row->bound[0].count], row->least, last, row->cube);
    }
    return value ? text_add(out, DEFAULTS_HELP, used, ": %s", value)
                 : text_add(out, DEFAULTS_HELP, used, ": the number of %s", count_names[row->bound[0].count]);
}

int defaults_describe(const char *name, char out[DEFAULTS_HELP]) {
    size_t used = 0;
    *out = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (const struct sized_default *row = table + ROWS; row-- > table;) {
            char quick[CONFIG_BYTES], thorough[CONFIG_BYTES];
            if (row->data != kinds[kind].data || strcmp(config_find_key(row->section, row->key)->name, name)) continue;
            if (!is_plain(row)) {
                used = describe_row(row, "", row->value, out, used);
                continue;
            }
            int has_thorough = tests(row, SHARED) ? 0 : plain_value(row, "thorough", thorough);
            if (has_thorough < 0 || plain_value(row, "quick", quick) < 0) return -1;
            int both = has_thorough && strcmp(quick, thorough);
            if (both) used = describe_row(row, ", with train.effort = thorough", thorough, out, used);
            if (!both || !tests(row, EFFORT)) used = describe_row(row, "", quick, out, used);
        }
    return 0;
}
