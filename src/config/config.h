/* config: the keys of config.def, read from an INI file and the command line, checked, resolved and written.
 *
 * Call config_read(), then config_set() for each --section.key=value, then config_resolve(), which replaces each "auto" that depends only on other
 * keys. device.backend, train.batch and memory.* depend on the machine: they stay "auto" until the trainer sets them by config_set(). corpus.header
 * depends on each file, and stays "auto".
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
#define COUNT_ALL  (UINT64_MAX - 1) /* negatives.count = all */
enum { TRUTH_AUTO = 2 };

/* The choices of these keys are enums of the kernels (kernels/backend.h, kernels/optimizers.h). config.def lists their names in the kernels' order
 * and then "auto", whose numbers these are. Kernels have no LOSS_HIERARCHICAL: to them it is the logistic loss with other contexts
 * (example_paths). */
enum { PLACE_AUTO = 3, RULE_AUTO = 13, LAW_AUTO = 3, LOSS_HIERARCHICAL = 5 /* LOSS_KINDS */, LOSS_AUTO, SCORE_AUTO = 3, MATMUL_AUTO = 2 };

/* Choices of the other keys, in the order in which config.def lists them. */
enum config_mode { MODE_WINDOW, MODE_LIST, MODE_ADJACENCY, MODE_USER, MODE_CBOW, MODE_WALK, MODE_TRIPLE, MODE_COUNTS, MODE_AUTO }; /* the
                                                                                                   kernels' first */
enum config_pooled_gradient { POOLED_MEAN, POOLED_WHOLE, POOLED_SUM, POOLED_AUTO };
enum config_targets { TARGETS_ONE, TARGETS_ALL, TARGETS_NEW, TARGETS_AUTO };
enum config_short { SHORT_SKIP, SHORT_REPEAT, SHORT_AUTO };
enum config_per { PER_PAIR, PER_EXAMPLE, PER_BATCH, PER_AUTO };
enum config_schedule { SCHEDULE_AUTO, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_COSINE };
enum config_update { UPDATE_AUTO, UPDATE_BATCH, UPDATE_HOGWILD };
enum config_reduction { REDUCTION_SUM, REDUCTION_MEAN };
enum config_from_words { FROM_WORDS_KEEP, FROM_WORDS_DROP };
enum config_freeze { FREEZE_NONE, FREEZE_KNOWN, FREEZE_TARGET, FREEZE_CONTEXT };
enum config_backend { BACKEND_AUTO }; /* the names of the backends follow (kernels/backend.h) */
enum config_count { COUNT_GLOBAL, COUNT_ROW };
enum config_share { SHARE_AUTO, SHARE_COLUMNS, SHARE_COPIES };
enum config_product { TRAIN_COMPLEX, TRAIN_REAL, TRAIN_ROTATION, TRAIN_TRANSLATION }; /* in the order of enum example_product */
enum config_effort { EFFORT_QUICK, EFFORT_THOROUGH, EFFORT_AUTO };
enum { PRECISION_AUTO = 2 }; /* follows the kernels' precisions (kernels/optimizers.h) */

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

/* The values of all keys, in fields named section_key, and values computed from them. */
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
    int update_auto, clip_auto, per_auto; /* 1: train.update, optimizer.clip, negatives.per was "auto" before config_resolve() */
    unsigned ranks; /* number of processes that mpirun has started, set before config_resolve(); 0: unknown, see device.ranks */
    unsigned copies; /* number of GPUs of this process that train copies of the tables (train/gpus.h); 0 or 1: one GPU */
    unsigned char given[CONFIG_KEYS]; /* [key, in the order of config.def] 1: the user has set the key to a value other than auto */
    char *name; /* NAME in the default run directory runs/NAME: the config file's name without directory and .ini, otherwise the corpus's; NULL:
                 * neither has one */
    char said[LOOK_SAID]; /* what was found in the corpus (look.said), which config.ini contains as a comment; "": nothing */
    /* The parts of run.checkpoint_every, set by config_resolve(); 0: no limit. A checkpoint is always written at the end. */
    double checkpoint_seconds;
    double checkpoint_share; /* with checkpoint_every = auto: share of the time that writing may take; 0: the user has set checkpoint_seconds,
                              * which holds without this limit */
    uint64_t checkpoint_steps;
    int checkpoint_epochs; /* 1: after every epoch */
};

/* Sets every key to its default. Returns 0, or -1 after fail(). Call config_release() in any case. */
int config_init(struct config *config);
void config_release(struct config *config);

/* Copies a config, resolved or not. Returns 0, or -1 after fail(). Call config_release() in any case. */
int config_copy(struct config *copy, const struct config *config);

/* Sets keys from an INI file. Fails at an unknown section, key or value; the message names file, line and the nearest known name. */
int config_read(struct config *config, const char *path);
/* The two steps of config_read(). config_file() returns the file's text, which the caller frees; NULL after fail(). config_read_text() parses a
 * text and sets its keys; `path` is for messages. */
char *config_file(const char *path);
int config_read_text(struct config *config, char *text, const char *path);

/* Returns 1 if the user has set this key to a value other than auto, otherwise 0. */
int config_is_given(const struct config *config, const char *section, const char *key);

/* Sets one key. where: how an error message begins ("config.ini line 3", "command line"). */
int config_set(struct config *config, const char *section, const char *key, const char *value, const char *where);

/* Sets a key from an argument "--section.key=value". Returns 0; 1 if the argument has another form; -1 after fail_usage(). */
int config_argument(struct config *config, const char *argument);

/* Replaces "auto" by values, splits run.checkpoint_every, and refuses keys that do not work together. */
int config_resolve(struct config *config);

/* Returns the loss in the kernels' form. */
struct loss_options config_loss(const struct config *config);
enum example_product config_product(const struct config *config); /* how triples combine head and relation */
int config_has_complex(const struct config *config); /* returns 1 if the columns of a row are complex numbers (kernels/triples.h) */

/* Returns 1 if contexts are inner nodes of a Huffman tree of the words (train.loss = hierarchical). */
int config_has_tree(const struct config *config);

/* Returns 1 if the run trains counts of pairs (train.loss = glove). */
int config_has_counts(const struct config *config);
/* Returns the columns of a row: model.dim; with train.loss = glove two more, for biases. */
uint32_t config_columns(const struct config *config);

/* Returns what messages call a line of the corpus: "sentences"; "lists"; or "lines" if each begins with a target. */
const char *config_lines(const struct config *config);

/* Returns how n-grams of words are made (examples.subwords, model.buckets). */
struct subword_form config_subwords(const struct config *config);

/* Returns 1 if the mean of a word's n-gram rows predicts the words of its window. */
int config_predicts_window(const struct config *config);

/* Returns 1 if the corpus is documents, whose rows are targets in all of their windows. */
int config_has_documents(const struct config *config);
/* Returns 0 if only documents' rows are targets; 1 if words are targets, too, and for other corpora. */
int config_trains_words(const struct config *config);
/* Returns 1 if lists have their own rows, which predict their items (examples.mode = user, without documents). */
int config_has_lists(const struct config *config);

/* Returns 1 if lists have their own rows, and each item of a list is an example. */
int config_is_by_item(const struct config *config);

/* Returns 1 if examples are walks over triples. */
int config_walks_triples(const struct config *c);
/* Returns 1 if examples are windows over sentences or walks. */
int config_is_window(const struct config *config);

/* Sets *ops to the backend that device.backend names; for "auto", to the best one of this machine. Returns 0, or -1 after fail() if it cannot be
 * opened. */
int config_backend(const struct config *config, const struct backend_ops **ops);
/* Returns the backend that device.backend names, even if this machine cannot open it; NULL for "auto". */
const struct backend_ops *config_named_backend(const struct config *config);

/* Returns the number of processes that divide the columns of the tables. */
unsigned config_ranks(const struct config *config);

/* Returns what this config needs of lock-free training, without the device and the places of the tables, which the caller sets. */
struct hogwild_asked config_hogwild(const struct config *config);
/* Returns 1, and a sentence in `why`, if the config asks for lock-free training with a key that this does not support; otherwise 0. gpu = 1: on a
 * GPU. */
int config_refuses_hogwild(const struct config *config, int gpu, char why[HOGWILD_WHY]);

/* Returns the keys of [corpus] in the form that modules of corpus/ use. Only min_count must be resolved. The texts belong to the config. */
struct corpus_options config_corpus(const struct config *config);

/* Writes all keys as an INI file, from which config_read() restores the same values; help = 1: with a comment for each key. config_format() writes
 * to `text`, which it reallocates. */
int config_format(const struct config *config, int help, char **text);
int config_write(const struct config *config, int help, struct file_writer *writer);

/* Returns the value of a key as config_format() writes it; the caller frees it. NULL after fail(). */
char *config_value(const struct config *config, const char *section, const char *key);

/* Copies from `settled`, a config in which the session has replaced "auto", the value of each key that changes the result and is still "auto" here
 * (train.batch, for example). */
void config_settle(struct config *config, const struct config *settled);

/* For a run of a version without train.effort: sets keys that this version did not have to the values that it used. Called before the keys are
 * resolved. */
void config_fill_older(struct config *before);

/* For a resumed run: copies from `before`, its first config, keys that the user has not set and that depend on the machine, the number of ranks or
 * the program's version. */
void config_keep_effort(struct config *config, const struct config *before);

/* Returns the name ("model.dim") of the first key that changes the result, differs between two resolved configs and is set by the user in `b`, or
 * NULL. --resume uses it. Not compared: run.*, device.*, memory.*, train.epochs, train.steps, train.report_seconds, corpus.cache,
 * corpus.item_features and its like. */
const char *config_difference(const struct config *a, const struct config *b);

/* Writes all such keys that differ, set by the user or not, to out[capacity], each with its value in a and, in brackets, in b. Returns 1 if there
 * is one. */
int config_differences(const struct config *a, const struct config *b, char *out, size_t capacity);

/* Returns the name of choice number `value` of a key, as config.def lists it ("adamax"). Static memory. */
const char *config_choice_name(const char *section, const char *key, int value);

/* Searches all sections for keys named `key`. Returns the full name of match number `nth`, from 0 ("dim": "model.dim"), or NULL. Static memory. */
const char *config_full_name(const char *key, int nth);

/* Returns the full name of key number `index`, in the order of config.def; NULL after the last. *choices: its possible values, "a|b|c"; NULL if it
 * is not a choice. Static memory. */
const char *config_key_at(int index, const char **choices);

/* Prints all keys with defaults, ranges and help for `sptx-w2v help keys`: the ten that matter most, then each section. Returns 0, or -1 after
 * fail(). */
int config_print_help(FILE *out);
int config_is_section(const char *name);
/* Prints one key, such as "train.epochs", or the keys of a section, as config_print_help() does. Returns 0, or -1 after fail_usage(). */
int config_print_key(FILE *out, const char *name);
int config_print_formats(FILE *out); /* prints the keys that say how data files are read */

/* Splits the text of a key that contains paths (`key`: corpus.path or train.from). Paths are separated by blanks or commas. A path that contains
 * one of these is quoted, unless the whole text is the path of an existing file. Returns their number, or -1 after fail(); mem_free_texts() frees
 * them. */
int64_t config_paths(const char *key, const char *text, char ***paths);

#endif
