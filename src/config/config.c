/* config: see config.h. This part reads and checks single values, from a file or an argument. */

#include "config.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/text.h"
#include "config_keys.h"
#include "corpus/corpus.h"
#include "corpus/words.h"
#include "kernels/backend.h"
#include "kernels/record.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- texts with a form of their own ---- */

/* Parses corpus.min_rating; "none" gives -infinity. */
static int config_read_rating(const char *text, double *rating) {
    *rating = -INFINITY;
    return strcmp(text, "none") ? text_real(text, rating) : 0;
}

/* For run.checkpoint_every = auto: a kill loses at most half an hour of work, unless writing would then take more than this share of the time, as
 * with tables that take minutes to write. */
static const double auto_seconds = 30 * 60, auto_share = 0.03;

/* Reads one of "auto", "10m", "5000 steps", "epoch", "end". Refuses a number without a unit, which might mean steps or seconds. */
static int read_time_of_checkpoint(char *text, struct config_times *times) {
    char *word = text_strip(text);
    size_t length = strlen(word);
    if (!strcmp(word, "end")) return 0;
    if (!strcmp(word, "auto")) {
        if (times->seconds > 0) return 0; /* a time that the user has set is used instead */
        times->seconds = auto_seconds;
        times->share = auto_share;
        return 0;
    }
    if (!strcmp(word, "epoch")) {
        times->epochs = 1;
        return 0;
    }
    if (!length || !isalpha((unsigned char)word[length - 1])) return -1;
    size_t unit = length > 5 && !strcmp(word + length - 5, "steps") ? 5 : length > 4 && !strcmp(word + length - 4, "step") ? 4 : 0;
    if (unit) {
        word[length - unit] = 0;
        return text_count(word, &times->steps) || !times->steps ? -1 : 0;
    }
    times->share = 0;
    return text_time(word, &times->seconds) || !(times->seconds > 0) ? -1 : 0;
}

int config_read_times(const char *text, struct config_times *times) {
    char copy[256], *rest = copy, *part;
    *times = (struct config_times){0};
    if (strlen(text) >= sizeof copy) return -1;
    strcpy(copy, text);
    while ((part = strsep(&rest, ",")))
        if (read_time_of_checkpoint(part, times)) return -1;
    return 0;
}

/* Returns NULL if a text has the key's form, and can be written to an INI file and read back unchanged; otherwise a description of the texts that
 * can be written, for an error message. */
static const char *refuse_text(const struct config_key *key, const char *text) {
    for (const char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at) && *at != '\t') return "a text of one line";
    for (const char *at = strchr(text, ';'); at; at = strchr(at + 1, ';'))
        if (at == text || isspace((unsigned char)at[-1])) return "free of ' ;', which begins a comment in an INI file";
    if (key->form == FORM_PATHS) return NULL;
    if (strchr(text, '"')) return "free of double quotes within it";
    double rating;
    struct config_times times;
    struct subword_form subwords;
    if (key->form == FORM_RATING && config_read_rating(text, &rating)) return "a number or none";
    if (key->form == FORM_TIMES && config_read_times(text, &times))
        return "a time (10m), a number of steps (5000 steps), epoch, end or auto";
    if (key->form == FORM_COLUMNS && strcmp(text, "auto") && look_columns_valid(text))
        return "auto, or two or three names or numbers of columns with commas between, such as user,item or 1,3";
    if (key->form == FORM_SUBWORDS && subwords_read_lengths(text, &subwords))
        return "none, or two lengths such as 3-6: the fewest and the most characters of an n-gram, from 1 to 255, the fewest first";
    if (key->form == FORM_THRESHOLDS && strcmp(text, "auto") && phrase_thresholds(text, (double[PHRASE_PASSES]){0}) < 0)
        return "auto, or numbers with commas between, 16 at most, such as 200,100";
    if (key->form == FORM_BUCKETS && subwords_read_buckets(text, &subwords)) return "a whole number from 1 to 2,147,483,647, or used";
    return NULL;
}

/* Removes one pair of double quotes around the whole text. */
static void unquote(char *text) {
    size_t length = strlen(text);
    if (length < 2 || text[0] != '"' || text[length - 1] != '"') return;
    memmove(text, text + 1, length - 2);
    text[length - 2] = 0;
}

static int config_has_auto(const struct config_key *key) {
    return !strcmp(key->fallback, "auto");
}

/* ---- one value in ---- */

static int set_number(struct config *config, const struct config_key *key, const char *value) {
    int automatic = config_has_auto(key) && !strcasecmp(value, "auto");
    uint64_t count = COUNT_AUTO;
    double real = NAN;
    int truth = TRUTH_AUTO;
    switch (key->type) {
    case TYPE_COUNT:
        if (config_has_all(key) && !strcasecmp(value, "all")) count = COUNT_ALL;
        else if (!automatic && (text_count(value, &count) || count < key->least || count > key->most)) return -1;
        *config_count(config, key) = count;
        return 0;
    case TYPE_BYTES:
        if (!automatic && (text_bytes(value, &count) || count < key->least || count > key->most)) return -1;
        *config_count(config, key) = count;
        return 0;
    case TYPE_REAL:
        if (!automatic && (text_real(value, &real) || real < key->lowest || real > key->highest)) return -1;
        *config_real(config, key) = real;
        return 0;
    case TYPE_TRUTH:
        if (!automatic && text_truth(value, &truth)) return -1;
        *config_int(config, key) = truth;
        return 0;
    case TYPE_CHOICE:
        for (int i = 0; i < config_choices(key)->count; i++)
            if (!strcasecmp(value, config_choices(key)->name[i])) {
                *config_int(config, key) = i;
                return 0;
            }
        return -1;
    case TYPE_TEXT:
        break;
    }
    return -1;
}

static int refuse_value(const struct config_key *key, const char *value, const char *wanted, const char *where,
                        config_refuser *refuse) {
    const char *near =
        key->type == TYPE_CHOICE ? text_nearest(value, config_choices(key)->name, (size_t)config_choices(key)->count) : NULL;
    return refuse("%s: %s = '%.200s' is not %s%s%s%s", where, key->name, value, wanted, near ? "; did you mean '" : "",
                  near ? near : "", near ? "'?" : "");
}

int config_put_text(char **text, const char *value) {
    char *copy = mem_text(value, strlen(value), "the configuration");
    if (!copy) return -1;
    free(*text);
    *text = copy;
    return 0;
}

static int set_text(struct config *config, const struct config_key *key, char *value, const char *where, config_refuser *refuse) {
    if (key->form != FORM_PATHS) unquote(value);
    const char *wanted = refuse_text(key, value);
    if (wanted) return refuse_value(key, value, wanted, where, refuse);
    return config_put_text(config_text(config, key), value);
}

static int set_value(struct config *config, const struct config_key *key, const char *given, const char *where,
                     config_refuser *refuse) {
    char wanted[256], *copy = mem_text(given, strlen(given), "the configuration");
    if (!copy) return -1;
    char *value = text_strip(copy);
    int result = 0;
    if (key->type == TYPE_TEXT) {
        result = set_text(config, key, value, where, refuse);
    } else if (set_number(config, key, value)) {
        config_describe(key, wanted, sizeof wanted);
        result = refuse_value(key, value, wanted, where, refuse);
    }
    free(copy);
    return result;
}

/* ---- names that are not there ---- */

int config_refuse_section(const char *section, const char *where, config_refuser *refuse) {
    const char *names[CONFIG_SECTIONS];
    char all[256] = "";
    for (int i = 0; i < CONFIG_SECTIONS; i++) {
        names[i] = config_sections[i].name;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = text_nearest(section, names, CONFIG_SECTIONS);
    if (near) return refuse("%s: there is no section '%.100s'; did you mean '%s'?", where, section, near);
    return refuse("%s: there is no section '%.100s'; the sections are %s", where, section, all);
}

static int refuse_key(const char *section, const char *key, const char *where, config_refuser *refuse) {
    const char *names[CONFIG_KEYS];
    size_t count = 0;
    if (!config_is_section(section)) return config_refuse_section(section, where, refuse);
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (!strcmp(config_keys[i].section, section)) names[count++] = config_keys[i].key;
    const char *near = text_nearest(key, names, count);
    if (!near || strlen(key) < 3) /* perhaps the key belongs to another section */
        for (int i = 0; i < CONFIG_KEYS; i++)
            if (!strcmp(config_keys[i].key, key))
                return refuse("%s: [%s] has no key '%.100s'; did you mean %s?", where, section, key, config_keys[i].name);
    if (near) return refuse("%s: [%s] has no key '%.100s'; did you mean '%s'?", where, section, key, near);
    return refuse("%s: [%s] has no key '%.100s'; 'sptx-w2v help keys' lists them all", where, section, key);
}

static int is_automatic(const struct config *config, const struct config_key *key) {
    char text[CONFIG_BYTES];
    return config_has_auto(key) && !strcmp(config_text_of(config, key, text), "auto");
}

static int set_named(struct config *config, const char *section, const char *key, const char *value, const char *where,
                     config_refuser *refuse) {
    const struct config_key *found = config_find_key(section, key);
    if (!found) return refuse_key(section, key, where, refuse);
    if (set_value(config, found, value, where, refuse)) return -1;
    config->given[found - config_keys] = !is_automatic(config, found);
    return 0;
}

int config_choose(struct config *config, const struct config_key *key, const char *value) {
    return set_value(config, key, value, "default", fail);
}

int config_set(struct config *config, const char *section, const char *key, const char *value, const char *where) {
    return set_named(config, section, key, value, where, fail);
}

int config_is_given(const struct config *config, const char *section, const char *key) {
    const struct config_key *found = config_find_key(section, key);
    return found && config->given[found - config_keys];
}

int config_argument(struct config *config, const char *argument, const char *where) {
    char section[64], key[64];
    size_t name = strcspn(argument, "=");
    const char *dot = memchr(argument, '.', name);
    if (strncmp(argument, "--", 2) || !dot || dot == argument + 2) return 1;
    snprintf(section, sizeof section, "%.*s", (int)(dot - argument - 2), argument + 2);
    snprintf(key, sizeof key, "%.*s", (int)(argument + name - dot - 1), dot + 1);
    if (!argument[name] && config_find_key(section, key)) return fail_usage("%s needs a value: %s=...", argument, argument);
    return set_named(config, section, key, argument[name] ? argument + name + 1 : "", where, fail_usage);
}

/* ---- defaults ---- */

int config_init(struct config *config) {
    *config = (struct config){0};
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (set_value(config, &config_keys[i], config_keys[i].fallback, "default", fail)) return -1;
    return 0;
}

int config_copy(struct config *copy, const struct config *config) {
    *copy = *config;
    copy->name = NULL;
    for (int i = 0; i < CONFIG_KEYS; i++) /* first clears the texts, which still belong to the original, since a failed copy is released, too */
        if (config_keys[i].type == TYPE_TEXT) *config_text(copy, &config_keys[i]) = NULL;
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const char *text = config_keys[i].type == TYPE_TEXT ? *config_text(config, &config_keys[i]) : NULL;
        if (text && !(*config_text(copy, &config_keys[i]) = mem_text(text, strlen(text), "the configuration"))) return -1;
    }
    if (config->name) copy->name = mem_text(config->name, strlen(config->name), "the configuration");
    return config->name && !copy->name ? -1 : 0;
}

void config_release(struct config *config) {
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (config_keys[i].type == TYPE_TEXT) free(*config_text(config, &config_keys[i]));
    free(config->name);
    *config = (struct config){0};
}

/* config_keys: the table of keys, made from config.def; finds and describes keys. */

#define BEGIN(kind, s, k, default_text, help_text)                                                                     \
    .type = kind, .name = #s "." #k, .section = #s, .key = #k, .fallback = default_text, .help = help_text,            \
    .offset = offsetof(struct config, s##_##k)
#define SECTION(name, help)
#define TEXT(s, k, fallback, help)             {BEGIN(TYPE_TEXT, s, k, fallback, help)},
#define FORM(s, k, fallback, reads_as, help)   {BEGIN(TYPE_TEXT, s, k, fallback, help), .form = reads_as},
#define COUNT(s, k, fallback, low, high, help) {BEGIN(TYPE_COUNT, s, k, fallback, help), .least = low, .most = high},
#define REAL(s, k, fallback, low, high, help)  {BEGIN(TYPE_REAL, s, k, fallback, help), .lowest = low, .highest = high},
#define BYTES(s, k, fallback, low, high, help) {BEGIN(TYPE_BYTES, s, k, fallback, help), .least = low, .most = high},
#define TRUTH(s, k, fallback, help)            {BEGIN(TYPE_TRUTH, s, k, fallback, help)},
#define CHOICE(s, k, fallback, choices, help)  {BEGIN(TYPE_CHOICE, s, k, fallback, help), .list = choices},
_Static_assert((int)HEADER_NO == 0 && (int)HEADER_YES == 1 && (int)HEADER_AUTO == (int)TRUTH_AUTO, "corpus.header is a truth");
_Static_assert((int)RULE_AUTO == (int)RULE_COUNT, "auto stands after the rules");
_Static_assert((int)MODE_ADJACENCY == (int)EXAMPLE_ADJACENCY, "modes stand in the kernels' order");
_Static_assert((int)LOSS_HIERARCHICAL == (int)LOSS_KINDS, "the kernels' losses come first");
_Static_assert((int)SCORE_AUTO == (int)SCORE_DISTANCE + 1, "auto stands after the scores");
_Static_assert((int)PLACE_AUTO == (int)PLACE_FILE + 1, "auto stands after the places");
const struct config_key config_keys[CONFIG_KEYS] = {
#include "config.def"
};

#define SECTION(section, text) {#section, text},
#define TEXT(s, k, fallback, help)
#define FORM(s, k, fallback, form, help)
#define COUNT(s, k, fallback, low, high, help)
#define REAL(s, k, fallback, low, high, help)
#define BYTES(s, k, fallback, low, high, help)
#define TRUTH(s, k, fallback, help)
#define CHOICE(s, k, fallback, choices, help)
const struct config_section config_sections[CONFIG_SECTIONS] = {
#include "config.def"
};

/* The choices of each key, split only once, so that the names that config_choice_name() returns stay valid. */
static struct {
    char text[128];
    struct config_choices list;
} choices[CONFIG_KEYS];
static pthread_once_t choices_made = PTHREAD_ONCE_INIT;

static void make_choices(void) {
    for (int i = 0; i < CONFIG_KEYS; i++) {
        struct config_choices *c = &choices[i].list;
        char *rest = choices[i].text, *name;
        if (!config_keys[i].list) continue;
        snprintf(rest, sizeof choices[i].text, "%s", config_keys[i].list);
        while (c->count < CONFIG_CHOICES && (name = strsep(&rest, "|"))) c->name[c->count++] = name;
    }
}

const struct config_choices *config_choices(const struct config_key *key) {
    pthread_once(&choices_made, make_choices);
    return &choices[key - config_keys].list;
}

const struct config_key *config_find_key(const char *section, const char *key) {
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (!strcmp(config_keys[i].section, section) && !strcmp(config_keys[i].key, key)) return &config_keys[i];
    return NULL;
}

const char *config_full_name(const char *key, int nth) {
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (!strcmp(config_keys[i].key, key) && nth-- == 0) return config_keys[i].name;
    return NULL;
}

int config_is_section(const char *name) {
    for (int i = 0; i < CONFIG_SECTIONS; i++)
        if (!strcmp(name, config_sections[i].name)) return 1;
    return 0;
}

int config_has_all(const struct config_key *key) {
    return key->offset == offsetof(struct config, negatives_count);
}

char **config_text(const struct config *config, const struct config_key *key) {
    return (char **)((char *)config + key->offset);
}
uint64_t *config_count(const struct config *config, const struct config_key *key) {
    return (uint64_t *)((char *)config + key->offset);
}
double *config_real(const struct config *config, const struct config_key *key) {
    return (double *)((char *)config + key->offset);
}
int *config_int(const struct config *config, const struct config_key *key) {
    return (int *)((char *)config + key->offset);
}

const char *config_choice_name(const char *section, const char *key, int value) {
    const struct config_key *found = config_find_key(section, key);
    if (!found || found->type != TYPE_CHOICE || value < 0 || value >= config_choices(found)->count) return "?";
    return config_choices(found)->name[value];
}

void config_describe(const struct config_key *key, char *out, size_t capacity) {
    char low[TEXT_BYTES], high[TEXT_BYTES];
    const char *automatic = config_has_auto(key) && key->type != TYPE_CHOICE ? ", or auto" : "";
    switch (key->type) {
    case TYPE_TEXT:
        snprintf(out, capacity, "text");
        break;
    case TYPE_COUNT:
        if (key->most == UINT64_MAX / 4)
            snprintf(out, capacity, "a whole number from %s on, below 2^62%s", text_of_count(low, key->least), automatic);
        else
            snprintf(out, capacity, "a whole number from %s to %s%s%s", text_of_count(low, key->least),
                     text_of_count(high, key->most), config_has_all(key) ? ", all" : "", automatic);
        break;
    case TYPE_REAL:
        snprintf(out, capacity, "a number from %g to %g%s", key->lowest, key->highest, automatic);
        break;
    case TYPE_BYTES:
        if (key->most == UINT64_MAX)
            snprintf(out, capacity, "a size such as 512MB or 11GiB%s", automatic);
        else
            snprintf(out, capacity, "a size from %s to %s%s", text_of_bytes(low, key->least),
                     text_of_bytes(high, key->most), automatic);
        break;
    case TYPE_TRUTH:
        snprintf(out, capacity, "yes or no%s", automatic);
        break;
    case TYPE_CHOICE: {
        const struct config_choices *c = config_choices(key);
        size_t used = 0;
        for (int i = 0; i < c->count; i++)
            used = text_add(out, capacity, used, "%s%s", i == 0 ? "" : i + 1 < c->count ? ", " : " or ", c->name[i]);
        break;
    }
    }
}

/* config_about: answers questions about a config that depend on several keys. */

int config_has_counts(const struct config *c) {
    return c->train_loss == (int)LOSS_GLOVE;
}

uint32_t config_columns(const struct config *c) {
    return (uint32_t)c->model_dim + (config_has_counts(c) ? LOSS_GLOVE_BIASES : 0);
}

const char *config_lines(const struct config *c) {
    return corpus_formats[c->corpus_format].lines;
}

const char *config_key_at(int index, const char **list) {
    if (index < 0 || index >= CONFIG_KEYS) return NULL;
    const struct config_key *key = &config_keys[index];
    *list = key->type == TYPE_CHOICE ? key->list : key->type == TYPE_TRUTH ? "yes|no" : NULL;
    return key->name;
}

int config_has_documents(const struct config *c) {
    return corpus_formats[c->corpus_format].documents;
}

int config_trains_words(const struct config *c) {
    return !config_has_documents(c) || c->examples_mode == MODE_CBOW || c->examples_words;
}

int config_has_lists(const struct config *c) {
    return c->examples_mode == MODE_USER && !config_has_documents(c);
}

int config_predicts_window(const struct config *c) {
    return c->examples_mode == MODE_WINDOW && config_subwords(c).max;
}

int config_is_by_item(const struct config *c) {
    return config_has_lists(c) && c->examples_targets == TARGETS_ALL;
}

int config_is_window(const struct config *c) {
    return c->examples_mode == MODE_WINDOW || c->examples_mode == MODE_CBOW || c->examples_mode == MODE_WALK ||
           config_has_documents(c);
}

int config_walks_triples(const struct config *c) {
    return c->examples_mode == MODE_WALK && corpus_formats[c->corpus_format].triples;
}

unsigned config_ranks(const struct config *c) {
    if (c->ranks) return c->ranks;
    return c->device_ranks ? (unsigned)c->device_ranks : c->device_gpus ? (unsigned)c->device_gpus : 1;
}

struct hogwild_asked config_hogwild(const struct config *c) {
    return (struct hogwild_asked){
        .rule = {.rule = c->optimizer_rule, .momentum = c->optimizer_momentum, .clip = c->optimizer_clip,
                 .weight_decay = c->optimizer_weight_decay, .lr_decay = c->optimizer_lr_decay},
        .columns = config_columns(c),
        .halves = c->model_precision == PRECISION_BFLOAT16 || c->model_state_precision == PRECISION_BFLOAT16,
        .rule_name = config_choice_name("optimizer", "rule", c->optimizer_rule),
        .loss = config_loss(c),
        .loss_name = config_choice_name("train", "loss", c->train_loss),
        .score_name = config_choice_name("train", "score", c->train_score),
        .mean = c->train_reduction == REDUCTION_MEAN,
        .ranks = config_ranks(c),
        .frozen = c->train_freeze != FREEZE_NONE};
}

int config_refuses_hogwild(const struct config *c, int gpu, char why[HOGWILD_WHY]) {
    struct hogwild_asked asked = config_hogwild(c);
    asked.gpu = gpu;
    return c->train_update == UPDATE_HOGWILD && hogwild_refuses(&asked, why);
}

/* config_corpus: the keys of [corpus] in the form that modules of corpus/ use. */

struct subword_form config_subwords(const struct config *config) {
    struct subword_form form = {.max = 0};
    if (!config->examples_subwords) return form; /* NULL only if config_init() was not called */
    subwords_read_lengths(config->examples_subwords, &form); /* cannot fail: set_text() has checked the text */
    subwords_read_buckets(config->model_buckets, &form);
    return form;
}

struct corpus_options config_corpus(const struct config *config) {
    double min_rating = -INFINITY;
    int walked = config_walks_triples(config);
    config_read_rating(config->corpus_min_rating, &min_rating); /* cannot fail: set_text() has checked the text */
    return (struct corpus_options){.path = config->corpus_path,
                                   .vocab = config->corpus_vocab,
                                   .format = config->corpus_format,
                                   .order = config->corpus_order,
                                   .look = {.header = config->corpus_header,
                                            .names = config->corpus_names,
                                            .separator = config->corpus_separator,
                                            .columns = strcmp(config->corpus_columns, "auto") ? config->corpus_columns : NULL,
                                            .events = config->corpus_events,
                                            .literals = config->corpus_literals,
                                            .no_values = config->graph_weights == WEIGHTS_NO},
                                   .phrases = {.joins = config->corpus_phrases,
                                               .score = config->phrases_score,
                                               .min_count = config->phrases_min_count,
                                               .passes = config->phrases_passes,
                                               .threshold = config->phrases_threshold,
                                               .delimiter = config->phrases_delimiter,
                                               .connectors = config->phrases_connectors,
                                               .memory = config->phrases_memory},
                                   .max_sentence = config->corpus_max_sentence,
                                   .max_word = config->corpus_max_word,
                                   .min_count = config->corpus_min_count,
                                   .max_vocab = config->corpus_max_vocab,
                                   .forget = (enum corpus_forget)config->corpus_forget,
                                   .min_rating = min_rating,
                                   .pair_weights = (enum pair_weights)config->corpus_weights,
                                   .directed = config->graph_directed,
                                   .weights = walked ? WEIGHTS_NO : config->graph_weights,
                                   .list_rows = config->examples_mode == MODE_USER || config_has_documents(config) ||
                                                (corpus_formats[config->corpus_format].triples && (!walked || config->walks_relations)),
                                   .walked = walked,
                                   .reciprocal = config->triples_reciprocal && !walked,
                                   .report_seconds = config->train_report_seconds};
}

const struct backend_ops *config_named_backend(const struct config *config) {
    int asked = config->device_backend;
    return asked == BACKEND_AUTO ? NULL : backend_named(config_choice_name("device", "backend", asked));
}

int config_backend(const struct config *config, const struct backend_ops **ops) {
    char why[512] = "";
    const struct backend_ops *named = config_named_backend(config);
    *ops = named ? named : backend_best();
    return !named || named->present(why, sizeof why) ? 0 : fail("device.backend = %s: %s", named->name, why);
}
