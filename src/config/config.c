/* config: see config.h. This file reads and checks single values, whether from a file or an argument. */
#include "config_keys.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- texts with a form of their own ---- */

int config_read_rating(const char *text, double *rating) {
    *rating = -INFINITY;
    return strcmp(text, "none") ? text_real(text, rating) : 0;
}

/* For run.checkpoint_every = auto: a kill loses at most half an hour of work, but writing may take at most this share of the
 * time, so that tables that take minutes to write do not slow the run. */
static const double auto_seconds = 30 * 60, auto_share = 0.03;

/* Reads one of "auto", "10m", "5000 steps", "epoch", "end". Refuses a number without a unit, which could be steps or seconds. */
static int read_time_of_checkpoint(char *text, struct config_times *times) {
    char *word = text_strip(text);
    size_t length = strlen(word);
    if (!strcmp(word, "end")) return 0;
    if (!strcmp(word, "auto")) {
        if (times->seconds > 0) return 0; /* the user has also set a time, which then holds */
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

/* Returns NULL if a text has the required form; otherwise a description of the form, for an error message. */
static const char *refuse_form(enum config_form form, const char *text) {
    double rating;
    struct config_times times;
    struct subword_form subwords;
    if (form == FORM_RATING && config_read_rating(text, &rating)) return "a number or none";
    if (form == FORM_TIMES && config_read_times(text, &times))
        return "a time (10m), a number of steps (5000 steps), epoch, end or auto";
    if (form == FORM_COLUMNS && strcmp(text, "auto") && look_columns_valid(text))
        return "auto, or two or three names or numbers of columns with commas between, such as user,item or 1,3";
    if (form == FORM_SUBWORDS && subwords_read_lengths(text, &subwords))
        return "none, or two lengths such as 3-6: the fewest and the most characters of an n-gram, from 1 to 255, the fewest first";
    if (form == FORM_THRESHOLDS && strcmp(text, "auto") && phrase_thresholds(text, (double[PHRASE_PASSES]){0}) < 0)
        return "auto, or numbers with commas between, 16 at most, such as 200,100";
    if (form == FORM_BUCKETS && subwords_read_buckets(text, &subwords)) return "a whole number from 1 to 2,147,483,647, or used";
    return NULL;
}

/* Returns NULL if a text can be written to an INI file and read back unchanged; otherwise a description of texts that can, for
 * an error message. */
static const char *refuse_text(const struct config_key *key, const char *text) {
    for (const char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at) && *at != '\t') return "a text of one line";
    for (const char *at = strchr(text, ';'); at; at = strchr(at + 1, ';'))
        if (at == text || isspace((unsigned char)at[-1])) return "free of ' ;', which begins a comment in an INI file";
    if (key->form == FORM_PATHS) return NULL;
    if (strchr(text, '"')) return "free of double quotes within it";
    return refuse_form(key->form, text);
}

/* Removes one pair of double quotes around the whole text. */
static void unquote(char *text) {
    size_t length = strlen(text);
    if (length < 2 || text[0] != '"' || text[length - 1] != '"') return;
    memmove(text, text + 1, length - 2);
    text[length - 2] = 0;
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

static int set_text(struct config *config, const struct config_key *key, char *value, const char *where, config_refuser *refuse) {
    if (key->form != FORM_PATHS) unquote(value);
    const char *wanted = refuse_text(key, value);
    if (wanted) return refuse_value(key, value, wanted, where, refuse);
    char *copy = mem_text(value, strlen(value), "the configuration");
    if (!copy) return -1;
    free(*config_text(config, key));
    *config_text(config, key) = copy;
    return 0;
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
    if (!near || strlen(key) < 3) /* the key may be one of another section */
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

int config_argument(struct config *config, const char *argument) {
    static const char where[] = "command line";
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
    for (int i = 0; i < CONFIG_KEYS; i++) /* first clear the texts, which are still the original's: a failed copy is released too */
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
