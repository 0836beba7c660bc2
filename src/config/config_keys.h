/* config_keys: the table of all keys, made from config.def, and other declarations that the config_*.c files share. Keys are read
 * from INI files and arguments (config_file.c), "auto" is replaced by values (config_resolve.c), and keys are written to
 * the resolved file and the help (config_file.c). No other file includes it.
 */
#ifndef SPTX_CONFIG_KEYS_H
#define SPTX_CONFIG_KEYS_H

#include "config.h"

#include <stddef.h>

/* ---- the table ---- */

/* The form that a key's text must have. FORM_PATHS may contain double quotes; that the files exist is checked when they are opened. */
enum config_form { FORM_ANY, FORM_PATHS, FORM_RATING, FORM_COLUMNS, FORM_TIMES, FORM_SUBWORDS, FORM_BUCKETS, FORM_THRESHOLDS };

enum config_type { TYPE_TEXT, TYPE_COUNT, TYPE_REAL, TYPE_BYTES, TYPE_TRUTH, TYPE_CHOICE };

/* A key of config.def. Where a comment begins with a type, the field is used for keys of that type. */
struct config_key {
    enum config_type type;
    const char *name; /* with its section: "model.dim" */
    const char *section, *key;
    const char *fallback;
    const char *list; /* TYPE_CHOICE: the choices, as "a|b|c" */
    const char *help;
    size_t offset;          /* offset of the value in struct config */
    uint64_t least, most;   /* TYPE_COUNT, TYPE_BYTES: bounds */
    double lowest, highest; /* TYPE_REAL: bounds */
    enum config_form form;  /* TYPE_TEXT */
};

/* One section of config.def. */
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
    CONFIG_CHOICES = 16 /* largest number of choices of a key */
};

extern const struct config_key config_keys[CONFIG_KEYS];
extern const struct config_section config_sections[CONFIG_SECTIONS];

/* Returns the key with this name; NULL if there is none. */
const struct config_key *config_find_key(const char *section, const char *key);
int config_has_all(const struct config_key *key); /* returns 1 if the key accepts "all", which is COUNT_ALL */

/* The choices of a key, split into names. */
struct config_choices {
    const char *name[CONFIG_CHOICES];
    int count;
};
const struct config_choices *config_choices(const struct config_key *key);

/* Describes a key's possible values, for messages and help: "a whole number from 1 to 4,096, or auto". */
void config_describe(const struct config_key *key, char *out, size_t capacity);

/* ---- a key's place in a config, by its type ---- */

char **config_text(const struct config *config, const struct config_key *key);
uint64_t *config_count(const struct config *config, const struct config_key *key); /* for TYPE_COUNT and TYPE_BYTES */
double *config_real(const struct config *config, const struct config_key *key);
int *config_int(const struct config *config, const struct config_key *key); /* for TYPE_TRUTH and TYPE_CHOICE */

/* Returns a key's value in the form that config_read() accepts: in `text`, or a pointer to the value itself if it is a text. */
enum { CONFIG_BYTES = 64 };
const char *config_text_of(const struct config *config, const struct config_key *key, char text[CONFIG_BYTES]);

/* ---- texts with a form of their own ---- */

/* Parses run.checkpoint_every: one or several limits, separated by commas. */
struct config_times {
    double seconds, share;
    uint64_t steps;
    int epochs;
};
int config_read_times(const char *text, struct config_times *times);

/* ---- between the files ---- */

/* fail() if a file is wrong; fail_usage() if the command line is. */
typedef int config_refuser(const char *format, ...) __attribute__((format(printf, 1, 2)));
int config_refuse_section(const char *section, const char *where, config_refuser *refuse);

/* Sets a key to a default, which does not change config_is_given(). Returns 0, or -1 after fail(). */
int config_choose(struct config *config, const struct config_key *key, const char *value);

/* Replaces *text, which mem_free() can free, by a copy of `value`. Returns 0; -1 after fail(), and the older text stays. */
int config_put_text(char **text, const char *value);

/* Copies the value of a key. If there is no memory for a text, the older value stays. */
void config_copy_value(struct config *to, const struct config *from, const struct config_key *key);

/* ---- config_resolve.c ---- */

/* Defaults for examples.mode = user that depend on train.effort. */
struct effort {
    uint64_t dim, epochs, negatives; /* negatives: for batches that do not share them */
    double lr, temperature;
    int shared; /* 1: a batch shares its negatives, if no other key prevents it */
};

const struct effort *config_effort(const struct config *c);

/* Sets config->name to the name of the corpus. */
int config_take_corpus_name(struct config *config);

#endif
