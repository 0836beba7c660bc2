/* config_keys: the table of keys made from config.def; finds and describes keys. */
#include "config_keys.h"

#include "kernels/backend.h"
#include "kernels/record.h"
#include "base/pool.h"
#include "base/text.h"
#include "corpus/format.h"
#include "corpus/words.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

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
_Static_assert((int)LOSS_HIERARCHICAL == (int)LOSS_CONTRASTIVE + 1, "the kernels' losses come first");
_Static_assert((int)SCORE_AUTO == (int)SCORE_COSINE + 1, "auto stands after the scores");
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

/* The choices of every key, split once into names that stay valid, so config_choice_name() can return them. */
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

int config_has_auto(const struct config_key *key) {
    return !strcmp(key->fallback, "auto");
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
