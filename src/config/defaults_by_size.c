#include "defaults_by_size.h"

#include "config_keys.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

/* Kinds of data, by what an example is, as bits: a row may be for several. */
enum sized_data {
    OF_WINDOWS = 1,
    OF_CBOW = 2,
    OF_SUBWORDS = 4,
    OF_TEXT = OF_WINDOWS | OF_CBOW | OF_SUBWORDS,
    OF_LISTS = 8,
    OF_ITEMS = 16,
    OF_LINES = 32,
    OF_GRAPHS = 64
};
static const struct {
    enum sized_data data;
    const char *name;
} data_names[] = {{OF_TEXT, "text"},  {OF_WINDOWS, "window"}, {OF_CBOW, "cbow"},       {OF_SUBWORDS, "subwords"},
                  {OF_LISTS, "user"}, {OF_ITEMS, "list"},     {OF_LINES, "adjacency"}, {OF_GRAPHS, "walk"}};

/* Counts that bounds compare. NO_COUNT ends a row's bounds. */
enum sized_count { NO_COUNT, TOKENS, WORDS, MEETINGS, LISTS, ITEMS, PAIRS, PER_LIST, PER_ITEM, NODES, ARCS, PER_NODE, EFFORT, SIZED_COUNTS };
static const char *const count_names[SIZED_COUNTS] = {
    [TOKENS] = "tokens",
    [WORDS] = "words",
    [MEETINGS] = "tokens a word in the whole run",
    [LISTS] = "lists",
    [ITEMS] = "items",
    [PAIRS] = "pairs",
    [PER_LIST] = "items a list",
    [PER_ITEM] = "lists an item",
    [NODES] = "nodes",
    [ARCS] = "arcs",
    [PER_NODE] = "arcs a node",
    [EFFORT] = "train.effort",
};

struct sized_bound {
    enum sized_count count;
    double from;
};

#define COUNT_ITSELF NULL
#define WHERE(count, from)    {{count, from}}
#define BOTH(a, from, b, and) {{a, from}, {b, and}}
#define ALL(a, from, b, and, c, too) {{a, from}, {b, and}, {c, too}}
enum { BOUNDS = 3 };
struct sized_default {
    const char *section, *key;
    enum sized_data data;
    struct sized_bound bound[BOUNDS];
    const char *value; /* COUNT_ITSELF: the count of the first bound */
};

#define SIZED(section_name, key_name, kind, bounds, text) {#section_name, #key_name, kind, bounds, text},
static const struct sized_default table[] = {
#include "defaults_by_size.def"
};
enum { ROWS = sizeof table / sizeof *table };

/* ---- what is counted ---- */

/* Returns 0 for windows over lists, whose defaults no size changes. */
static enum sized_data data_of(const struct config *c) {
    int text = corpus_formats[c->corpus_format].sentences;
    switch (c->examples_mode) {
    case MODE_USER:
        return OF_LISTS;
    case MODE_LIST:
        return OF_ITEMS;
    case MODE_ADJACENCY:
        return OF_LINES;
    case MODE_WALK:
        return OF_GRAPHS;
    default:
        if (!text) return 0;
        return c->examples_mode == MODE_CBOW ? OF_CBOW : config_subwords(c).max ? OF_SUBWORDS : OF_WINDOWS;
    }
}

static double ratio(uint64_t a, uint64_t b) {
    return b ? (double)a / (double)b : 0;
}

static double count_of(enum sized_count count, const struct data_size *size, const struct config *c) {
    switch (count) {
    case TOKENS:
    case PAIRS:
        return (double)size->tokens;
    case WORDS:
    case ITEMS:
    case NODES:
        return (double)size->words;
    case MEETINGS: /* a run without a bound of epochs is long */
        return c->train_epochs ? ratio(size->tokens, size->words) * (double)c->train_epochs : INFINITY;
    case LISTS:
        return (double)size->lists;
    case PER_LIST:
        return ratio(size->tokens, size->lists);
    case PER_ITEM:
        return ratio(size->tokens, size->words);
    case ARCS:
        return (double)size->arcs;
    case PER_NODE:
        return ratio(size->arcs, size->words);
    case EFFORT:
        return c->train_effort == EFFORT_THOROUGH;
    default:
        return 0;
    }
}

static int holds(const struct sized_default *row, const struct data_size *size, const struct config *c) {
    for (const struct sized_bound *bound = row->bound; bound < row->bound + BOUNDS && bound->count != NO_COUNT; bound++)
        if (count_of(bound->count, size, c) < bound->from) return 0;
    return 1;
}

/* ---- choosing ---- */

/* A rule that the user names has a rate of its own, and sgd in exact steps without a bound of its gradients diverges at rates that
 * lock-free training is glad of. */
static int has_own_rate(const struct config *c) {
    int words = (data_of(c) & (OF_TEXT | OF_GRAPHS)) != 0;
    return config_is_given(c, "optimizer", "rule") || (words && c->train_update == UPDATE_BATCH && c->optimizer_clip == 0);
}

static int may_choose(const struct config *c, const struct sized_default *row) {
    if (!(data_of(c) & row->data) || config_is_given(c, row->section, row->key)) return 0;
    return strcmp(row->section, "optimizer") || strcmp(row->key, "lr") || !has_own_rate(c);
}

/* Returns 1 for the first of the rows of its key and its kind of data. */
static int is_first(const struct sized_default *row) {
    for (const struct sized_default *other = table; other < row; other++)
        if (other->data == row->data && !strcmp(other->section, row->section) && !strcmp(other->key, row->key)) return 0;
    return 1;
}

/* Returns the last row of the key and the kind of `first` that holds, or NULL. */
static const struct sized_default *row_for(const struct sized_default *first, const struct data_size *size, const struct config *c) {
    const struct sized_default *found = NULL;
    for (const struct sized_default *row = first; row < table + ROWS; row++)
        if (row->data == first->data && !strcmp(row->section, first->section) && !strcmp(row->key, first->key) && holds(row, size, c))
            found = row;
    return found;
}

static int choose(struct config *config, const struct sized_default *row, const struct data_size *size, char chosen[DEFAULTS_TEXT]) {
    char itself[32], before[CONFIG_BYTES], now[CONFIG_BYTES];
    const struct config_key *key = config_find_key(row->section, row->key);
    snprintf(itself, sizeof itself, "%.0f", count_of(row->bound[0].count, size, config));
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
        const struct sized_default *row = row_for(first, size, config);
        if (row && choose(config, row, size, chosen)) return -1;
    }
    return 0;
}

void defaults_keep(struct config *config, const struct config *before) {
    for (const struct sized_default *row = table; row < table + ROWS; row++)
        if ((data_of(config) & row->data) && !config_is_given(config, row->section, row->key))
            config_copy_number(config, before, config_find_key(row->section, row->key));
}

/* ---- help ---- */

static size_t describe_bound(const struct sized_bound *bound, const char *before, char *out, size_t used) {
    char from[TEXT_BYTES];
    if (bound->count == EFFORT) return text_add(out, DEFAULTS_HELP, used, " with train.effort = thorough");
    if (bound->count == NO_COUNT || bound->from <= 0) return used;
    return text_add(out, DEFAULTS_HELP, used, " %s %s %s", before, text_of_count(from, (uint64_t)bound->from), count_names[bound->count]);
}

static const char *name_of(enum sized_data data) {
    for (size_t i = 0; i < sizeof data_names / sizeof *data_names; i++)
        if (data_names[i].data == data) return data_names[i].name;
    return "?";
}

static size_t describe_row(const struct sized_default *row, char *out, size_t used) {
    if (row->value)
        used = text_add(out, DEFAULTS_HELP, used, "%s", row->value);
    else
        used = text_add(out, DEFAULTS_HELP, used, "as many as %s", count_names[row->bound[0].count]);
    for (int i = 0; i < BOUNDS; i++) used = describe_bound(&row->bound[i], i && row->bound[i - 1].from > 0 ? "and" : "from", out, used);
    return used;
}

void defaults_describe(const char *name, char out[DEFAULTS_HELP]) {
    size_t used = 0;
    enum sized_data last = 0;
    *out = 0;
    for (const struct sized_default *row = table; row < table + ROWS; row++) {
        if (strcmp(config_find_key(row->section, row->key)->name, name)) continue;
        if (row->data == last)
            used = text_add(out, DEFAULTS_HELP, used, ", ");
        else
            used = text_add(out, DEFAULTS_HELP, used, "%s%s ", used ? "; " : "", name_of(row->data));
        used = describe_row(row, out, used);
        last = row->data;
    }
}
