/* config_keys: the one table of keys, made from config.def, and what the config_*.c files share. It serves every
 * direction: in from INI and arguments (config.c, config_ini.c), out to the resolved file and the help
 * (config_write.c), and what "auto" comes to (config_resolve.c). For nobody else.
 */
#ifndef SPTX_CONFIG_KEYS_H
#define SPTX_CONFIG_KEYS_H

#include "config.h"

#include <stddef.h>

/* ---- the table ---- */

/* The form that a text must have. Paths may hold double quotes; the file is looked at when it is opened. */
enum config_form { FORM_ANY, FORM_PATHS, FORM_RATING, FORM_COLUMNS, FORM_TIMES, FORM_SUBWORDS, FORM_BUCKETS, FORM_THRESHOLDS };

enum config_type { TYPE_TEXT, TYPE_COUNT, TYPE_REAL, TYPE_BYTES, TYPE_TRUTH, TYPE_CHOICE };

struct config_key {
    enum config_type type;
    const char *name; /* "model.dim" */
    const char *section, *key;
    const char *fallback;
    const char *list; /* TYPE_CHOICE: "a|b|c" */
    const char *help;
    size_t offset;          /* of its value in struct config */
    uint64_t least, most;   /* TYPE_COUNT, TYPE_BYTES */
    double lowest, highest; /* TYPE_REAL */
    enum config_form form;  /* TYPE_TEXT */
};

struct config_section {
    const char *name, *help;
};

enum {
    CONFIG_SECTIONS = 0
#define SECTION(name, help) +1
#define TEXT(section, key, fallback, help)
#define FORM(section, key, fallback, form, help)
#define COUNT(section, key, fallback, lowest, highest, help)
#define REAL(section, key, fallback, lowest, highest, help)
#define BYTES(section, key, fallback, lowest, highest, help)
#define TRUTH(section, key, fallback, help)
#define CHOICE(section, key, fallback, list, help)
#include "config.def"
    ,
    CONFIG_CHOICES = 16 /* most of a list */
};

extern const struct config_key config_keys[CONFIG_KEYS];
extern const struct config_section config_sections[CONFIG_SECTIONS];

/* NULL where there is none. */
const struct config_key *config_find_key(const char *section, const char *key);
int config_is_section(const char *name);
int config_has_auto(const struct config_key *key);

/* A list of choices taken apart. */
struct config_choices {
    const char *name[CONFIG_CHOICES];
    int count;
};
const struct config_choices *config_choices(const struct config_key *key);

/* Describes the values of a key, for sentences and help: "a whole number from 1 to 4,096, or auto". */
void config_describe(const struct config_key *key, char *out, size_t capacity);

/* ---- a key's place in a config, by its type ---- */

char **config_text(const struct config *config, const struct config_key *key);
uint64_t *config_count(const struct config *config, const struct config_key *key); /* TYPE_BYTES too */
double *config_real(const struct config *config, const struct config_key *key);
int *config_int(const struct config *config, const struct config_key *key); /* TYPE_TRUTH, TYPE_CHOICE */

/* Its value as config_read() takes it: in `text`, or the key's own text. */
enum { CONFIG_BYTES = 64 };
const char *config_text_of(const struct config *config, const struct config_key *key, char text[CONFIG_BYTES]);

/* ---- texts with a form of their own ---- */

/* corpus.min_rating: -infinity for "none". */
int config_read_rating(const char *text, double *rating);

/* run.checkpoint_every: several, separated by commas, may stand together. */
struct config_times {
    double seconds, share;
    uint64_t steps;
    int epochs;
};
int config_read_times(const char *text, struct config_times *times);

/* ---- between the files ---- */

/* fail() or fail_usage(): whether the file or the command line is wrong. */
typedef int config_refuser(const char *format, ...) __attribute__((format(printf, 1, 2)));
int config_refuse_section(const char *section, const char *where, config_refuser *refuse);
/* 1 for a line of an INI that is a comment; it has no blanks before it. */
int config_is_comment(const char *line);

/* Sets a key to a default: config_is_given() does not change, as the user did not set the key. Returns 0, or -1 after fail(). */
int config_choose(struct config *config, const struct config_key *key, const char *value);

/* Parts of config_resolve(): the first puts a number where "auto" (NaN) still stands, the others see to the keys of the loss. */
void config_choose_real(double *value, double chosen);

/* Copies the value of a key that is no text. */
void config_copy_number(struct config *to, const struct config *from, const struct config_key *key);

/* ---- config_effort.c ---- */

/* The values that examples.mode = user sets for keys that no one has set. */
struct effort {
    uint64_t dim, epochs, negatives; /* negatives: of a list that shares them with no other */
    double lr, temperature;
    int shared; /* 1: a batch shares its negatives where it can */
};

/* Resolves train.effort, once examples.mode is known. 0, or -1 after fail(). */
int config_resolve_effort(struct config *c);
const struct effort *config_effort(const struct config *c);
int config_resolve_loss(struct config *config);
int config_check_loss(const struct config *config);

/* Names the run by its corpus. */
int config_take_corpus_name(struct config *config);

#endif
