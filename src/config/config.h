/* config: the keys of config.def, from an INI file and the command line, checked, resolved and written back.
 *
 * config_read() -> config_set() for each --section.key=value -> config_resolve(). After resolving, every "auto" that
 * depends on other keys only has its value; device.backend, train.batch and memory.* keep "auto" (they depend on the
 * machine) until the trainer settles them through config_set(), and corpus.header does (it depends on each file).
 */
#ifndef SPTX_CONFIG_H
#define SPTX_CONFIG_H

#include "base/file.h"
#include "corpus/corpus.h"
#include "corpus/subwords.h"
#include "kernels/hogwild.h"

#include <stdint.h>
#include <stdio.h>

#define COUNT_AUTO UINT64_MAX
enum { TRUTH_AUTO = 2 };

/* Lists of config.def that the kernels have (kernels/backend.h, kernels/optimizers.h): their names stand first, in the
 * kernels' order, and "auto" after them. To the kernels, train.loss = hierarchical is the logistic loss of other contexts
 * (example_paths). */
enum { PLACE_AUTO = 3, RULE_AUTO = 10, LAW_AUTO = 3, LOSS_HIERARCHICAL = 4, LOSS_AUTO, SCORE_AUTO = 2 };

/* The others, in the order of their lists. */
enum config_mode { MODE_WINDOW, MODE_LIST, MODE_ADJACENCY, MODE_USER, MODE_CBOW, MODE_WALK, MODE_AUTO }; /* the kernels' first */
enum config_pooled_gradient { POOLED_MEAN, POOLED_WHOLE, POOLED_SUM, POOLED_AUTO };
enum config_targets { TARGETS_ONE, TARGETS_ALL, TARGETS_NEW, TARGETS_AUTO };
enum config_short { SHORT_SKIP, SHORT_REPEAT, SHORT_AUTO };
enum config_per { PER_PAIR, PER_EXAMPLE, PER_BATCH, PER_AUTO };
enum config_schedule { SCHEDULE_AUTO, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_COSINE };
enum config_update { UPDATE_AUTO, UPDATE_BATCH, UPDATE_HOGWILD };
enum config_reduction { REDUCTION_SUM, REDUCTION_MEAN };
enum config_from_words { FROM_WORDS_KEEP, FROM_WORDS_DROP };
enum config_freeze { FREEZE_NONE, FREEZE_KNOWN, FREEZE_TARGET, FREEZE_CONTEXT };
enum config_backend { BACKEND_AUTO }; /* then the backends' own names (kernels/backend.h) */
enum config_count { COUNT_GLOBAL, COUNT_ROW };
enum config_effort { EFFORT_QUICK, EFFORT_THOROUGH, EFFORT_AUTO };
enum { PRECISION_AUTO = 2 }; /* behind the kernels' own (kernels/optimizers.h) */

enum {
    CONFIG_KEYS = 0
#define SECTION(name, help)
#define TEXT(section, key, fallback, help)                   +1
#define FORM(section, key, fallback, form, help)             +1
#define COUNT(section, key, fallback, lowest, highest, help) +1
#define REAL(section, key, fallback, lowest, highest, help)  +1
#define BYTES(section, key, fallback, lowest, highest, help) +1
#define TRUTH(section, key, fallback, help)                  +1
#define CHOICE(section, key, fallback, list, help)           +1
#include "config.def"
};

struct config {
#define SECTION(name, help)
#define TEXT(section, key, fallback, help) char *section##_##key;
#define FORM(section, key, fallback, form, help) char *section##_##key;
#define COUNT(section, key, fallback, lowest, highest, help) uint64_t section##_##key;
#define REAL(section, key, fallback, lowest, highest, help) double section##_##key;
#define BYTES(section, key, fallback, lowest, highest, help) uint64_t section##_##key;
#define TRUTH(section, key, fallback, help) int section##_##key;
#define CHOICE(section, key, fallback, list, help) int section##_##key;
#include "config.def"
    int update_auto, clip_auto, per_auto; /* 1: train.update, optimizer.clip or negatives.per was "auto" before
                                             config_resolve() */
    unsigned ranks; /* processes that mpirun began: set before config_resolve(); 0: not known, as device.ranks says */
    unsigned char given[CONFIG_KEYS]; /* keys in the order of config.def; 1: the user set the key, to another value than auto */
    char *name; /* what runs/NAME is called by: the file, without directory and .ini, or else the corpus; NULL: neither */
    /* run.checkpoint_every, taken apart by config_resolve(); 0: not bound by it. One is always written at the end. */
    double checkpoint_seconds;
    double checkpoint_share; /* of the time that writing may take, with the seconds above; 0: they are the user's own, and hold */
    uint64_t checkpoint_steps;
    int checkpoint_epochs; /* 1: after every epoch */
};

/* Every key at its default. 0, or -1 after fail(). The caller releases in any case. */
int config_init(struct config *config);
void config_release(struct config *config);

/* Makes a copy that is as little or as much resolved. 0, or -1 after fail(). The caller releases in any case. */
int config_copy(struct config *copy, const struct config *config);

/* Sets keys from an INI file; an unknown section, key or value fails with file, line and the nearest name. */
int config_read(struct config *config, const char *path);
/* config_read() in two parts. config_file() gives the file's text, for the caller to free, or NULL after fail();
 * config_read_text() takes it apart and sets its keys. `path` is for sentences. */
char *config_file(const char *path);
int config_read_text(struct config *config, char *text, const char *path);

/* Returns 1 if the user set this key to a value other than auto, otherwise 0. */
int config_is_given(const struct config *config, const char *section, const char *key);

/* Sets one key. `where` opens the sentence of a failure ("config.ini line 3", "command line"). */
int config_set(struct config *config, const char *section, const char *key, const char *value, const char *where);

/* Sets from an argument "--section.key=value". 0 done; 1: not of that form; -1 after fail_usage(). */
int config_argument(struct config *config, const char *argument);

/* Puts values in the place of "auto", takes run.checkpoint_every apart, refuses combinations that cannot work. */
int config_resolve(struct config *config);

/* The loss as the kernels take it. */
struct loss_options config_loss(const struct config *config);

/* 1 where contexts are nodes of a tree of the words: train.loss = hierarchical. */
int config_has_tree(const struct config *config);

/* A word for the lines of its corpus: "sentences", "lists" or, where each names a target first, "lines". */
const char *config_lines(const struct config *config);

/* The n-grams of words, by examples.subwords and model.buckets. */
struct subword_form config_subwords(const struct config *config);

/* 1 where a word, as the mean of its n-grams' rows, is set against the words of its window. */
int config_predicts_window(const struct config *config);

/* 1 where lists have rows of their own, and each of their items is an example. */
int config_is_by_item(const struct config *config);

/* 1 where examples are windows over sentences or walks. */
int config_is_window(const struct config *config);

/* The backend that device.backend names, "auto" being the best of this machine. 0, or -1 after fail() where it cannot be opened. */
int config_backend(const struct config *config, const struct backend_ops **ops);
/* Returns the backend that device.backend names, whether or not it can be opened here; NULL for "auto". */
const struct backend_ops *config_named_backend(const struct config *config);

/* Processes that share out the columns of this config's tables. */
unsigned config_ranks(const struct config *config);

/* Returns what this config would ask of lock-free training. The device and the places of tables are known later. */
struct hogwild_asked config_hogwild(const struct config *config);
/* Returns 1, with a sentence in `why`, if the config wants lock-free training and something that lock-free training cannot do.
 * `gpu`: whether it is to run on a GPU. */
int config_refuses_hogwild(const struct config *config, int gpu, char why[HOGWILD_WHY]);

/* The keys of [corpus] as the corpus' own modules take them, of a config that need not be resolved but for min_count. Texts
 * stay the config's. */
struct corpus_options config_corpus(const struct config *config);

/* Writes all keys as an INI that config_read() reads back to the same bytes; with `help`, comments. `text` is grown. */
int config_format(const struct config *config, int help, char **text);
int config_write(const struct config *config, int help, struct file_writer *writer);

/* The value of one key as config_format() writes it, in memory that the caller frees. NULL after fail(). */
char *config_value(const struct config *config, const char *section, const char *key);

/* Gives each key that changes the numbers and is still "auto" in a resolved config, for the machine to settle, its value in a
 * config where that has been done. */
void config_settle(struct config *config, const struct config *settled);

/* Gives keys of a run's config.ini that a version without train.effort wrote the values that this one took, before they are
 * resolved. */
void config_fill_older(struct config *before);

/* Sets keys that no one has set in the resolved config of a run that goes on, if another machine, other ranks or this version
 * would choose another value. */
void config_keep_effort(struct config *config, const struct config *before);

/* Returns the name ("model.dim") of the first key that changes numbers and differs between two resolved configs, or NULL.
 * --resume compares configs by it. Not compared: run.*, device.*, memory.*, train.epochs, train.steps, train.report_seconds,
 * corpus.cache. */
const char *config_difference(const struct config *a, const struct config *b);

/* The name of choice `value` of "section.key", as config.def lists it ("adamax"). Static memory. */
const char *config_choice_name(const char *section, const char *key, int value);

/* The name with its section of key number `nth` (from 0) that is called so ("dim": "model.dim"), or NULL. Static memory. */
const char *config_full_name(const char *key, int nth);

/* The full name of key number `index` in the order of config.def, or NULL behind the last. *choices: its values as
 * "a|b|c", or NULL where it takes others. Static memory. */
const char *config_key_at(int index, const char **choices);

/* All keys with default, range and help, for `sptx-w2v help keys`: the ten that matter most, then the sections. Returns
 * 0, or -1 after fail(). */
int config_print_help(FILE *out);

/* A list of paths as corpus.path and train.from (`key`) hold them: separated by blanks or commas, quoted where they hold one, or
 * one path that exists as it stands. mem_free_texts() frees them. -1 after fail(). */
int64_t config_paths(const char *key, const char *text, char ***paths);

#endif
