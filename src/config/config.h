/* config: the keys of config.def, read from an INI file and the command line, checked, resolved and written.
 *
 * Call config_read(), then config_set() for each --section.key=value, then config_resolve(). This replaces each "auto" that
 * depends only on other keys. device.backend, train.batch and memory.* depend on the machine: they stay "auto" until the trainer
 * sets them by config_set(). corpus.header depends on each file, and stays "auto".
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

/* The choices of these keys are enums of the kernels (kernels/backend.h, kernels/optimizers.h). config.def lists their names in
 * the kernels' order and "auto" after them; these are the numbers of "auto". The kernels have no loss of LOSS_HIERARCHICAL: for
 * them it is the logistic loss over other contexts (example_paths). */
enum { PLACE_AUTO = 3, RULE_AUTO = 13, LAW_AUTO = 3, LOSS_HIERARCHICAL = 5 /* LOSS_KINDS */, LOSS_AUTO, SCORE_AUTO = 2, MATMUL_AUTO = 2 };

/* Choices of the other keys, in the order of their lists in config.def. */
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
enum config_backend { BACKEND_AUTO }; /* followed by the names of the backends (kernels/backend.h) */
enum config_count { COUNT_GLOBAL, COUNT_ROW };
enum config_share { SHARE_AUTO, SHARE_COLUMNS, SHARE_COPIES };
enum config_product { TRAIN_COMPLEX, TRAIN_REAL };
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

/* The values of all keys, in fields named section_key, and values that are computed from them. */
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
    unsigned ranks; /* number of processes that mpirun started, set before config_resolve(); 0: not known, use device.ranks */
    unsigned copies; /* number of GPUs of this process that train copies of the tables (train/gpus.h); 0 or 1: one GPU */
    unsigned char given[CONFIG_KEYS]; /* one per key, in the order of config.def; 1: the user has set the key to a value other
                                       * than auto */
    char *name; /* NAME of the default run directory runs/NAME: the config file's name without directory and .ini, or else the
                 * corpus's; NULL: neither has one */
    char said[LOOK_SAID]; /* what the look found in the corpus (look.said), for config.ini, which has it in a comment; "": nothing */
    /* The parts of run.checkpoint_every, set by config_resolve(). 0: that part sets no limit. A checkpoint is always written at
     * the end. */
    double checkpoint_seconds;
    double checkpoint_share; /* share of the time that writing may take, if checkpoint_every = auto; 0: the user has set
                              * checkpoint_seconds, which then holds without this limit */
    uint64_t checkpoint_steps;
    int checkpoint_epochs; /* 1: after every epoch */
};

/* Sets every key to its default. Returns 0, or -1 after fail(). Call config_release() in any case. */
int config_init(struct config *config);
void config_release(struct config *config);

/* Copies a config, resolved or not. Returns 0, or -1 after fail(). Call config_release() in any case. */
int config_copy(struct config *copy, const struct config *config);

/* Sets keys from an INI file. Fails at an unknown section, key or value, with a message that names the file, the line and the
 * nearest known name. */
int config_read(struct config *config, const char *path);
/* The two steps of config_read(). config_file() returns the file's text, for the caller to free, or NULL after fail().
 * config_read_text() parses a text and sets its keys; `path` is used in messages. */
char *config_file(const char *path);
int config_read_text(struct config *config, char *text, const char *path);

/* Returns 1 if the user set this key to a value other than auto, otherwise 0. */
int config_is_given(const struct config *config, const char *section, const char *key);

/* Sets one key. `where` is the beginning of an error message ("config.ini line 3", "command line"). */
int config_set(struct config *config, const char *section, const char *key, const char *value, const char *where);

/* Sets a key from an argument "--section.key=value". Returns 0; 1 if the argument is not of that form; -1 after fail_usage(). */
int config_argument(struct config *config, const char *argument);

/* Replaces "auto" by values, splits run.checkpoint_every, and refuses combinations of keys that cannot work. */
int config_resolve(struct config *config);

/* Returns the loss in the kernels' form. */
struct loss_options config_loss(const struct config *config);

/* Returns 1 if contexts are inner nodes of a Huffman tree of the words (train.loss = hierarchical). */
int config_has_tree(const struct config *config);

/* Returns 1 if the run fits counts of pairs (train.loss = glove). */
int config_has_counts(const struct config *config);
/* Returns the number of columns of a row: model.dim, and two of biases with train.loss = glove. */
uint32_t config_columns(const struct config *config);

/* Returns the name of a line of the corpus in messages: "sentences"; "lists"; or "lines" if each line begins with a target. */
const char *config_lines(const struct config *config);

/* Returns how words are split into n-grams (examples.subwords, model.buckets). */
struct subword_form config_subwords(const struct config *config);

/* Returns 1 if a word, as the mean of the rows of its n-grams, predicts the words of its window. */
int config_predicts_window(const struct config *config);

/* Returns 1 if the corpus consists of documents, whose rows are targets of all their windows. */
int config_has_documents(const struct config *config);
/* Returns 0 if only the rows of documents are targets; 1 if words are targets, too, and for all other corpora. */
int config_trains_words(const struct config *config);
/* Returns 1 if lists have rows of their own, which predict their items (examples.mode = user, and no documents). */
int config_has_lists(const struct config *config);

/* Returns 1 if lists have rows of their own and each item of a list is an example. */
int config_is_by_item(const struct config *config);

/* Returns 1 if examples are windows over sentences or walks. */
int config_is_window(const struct config *config);

/* Sets *ops to the backend that device.backend names; "auto" means the best one of this machine. Returns 0, or -1 after fail()
 * if it cannot be opened. */
int config_backend(const struct config *config, const struct backend_ops **ops);
/* Returns the backend that device.backend names, whether or not it can be opened here; NULL for "auto". */
const struct backend_ops *config_named_backend(const struct config *config);

/* Returns the number of processes that share out the columns of the tables. */
unsigned config_ranks(const struct config *config);

/* Returns the features of lock-free training that this config needs. The device and the places of the tables are not known yet,
 * so the caller sets these fields. */
struct hogwild_asked config_hogwild(const struct config *config);
/* Returns 1, with a sentence in `why`, if the config asks for lock-free training together with a key that lock-free training
 * does not support; otherwise 0. `gpu`: 1 if it is to run on a GPU. */
int config_refuses_hogwild(const struct config *config, int gpu, char why[HOGWILD_WHY]);

/* Returns the keys of [corpus] in the form that the modules of corpus/ take. Only min_count must be resolved. The texts remain
 * the config's. */
struct corpus_options config_corpus(const struct config *config);

/* Writes all keys as an INI file, from which config_read() restores the same values. `help`: 1: with a comment for each key.
 * config_format() writes to `text`, which it reallocates. */
int config_format(const struct config *config, int help, char **text);
int config_write(const struct config *config, int help, struct file_writer *writer);

/* Returns the value of one key as config_format() writes it, for the caller to free; NULL after fail(). */
char *config_value(const struct config *config, const char *section, const char *key);

/* For each key that changes the numbers and is still "auto" (train.batch, for example), copies its value from `settled`, a
 * config in which the session has replaced "auto". */
void config_settle(struct config *config, const struct config *settled);

/* For the config.ini of a run of a version that had no train.effort: sets the keys that this version lacked to the values that
 * it used. Called before the keys are resolved. */
void config_fill_older(struct config *before);

/* For a resumed run: copies from `before`, the config that it began with, the keys that the user has not set and that depend on
 * the machine, on the number of ranks or on the program's version. */
void config_keep_effort(struct config *config, const struct config *before);

/* Returns the name ("model.dim") of the first key that changes numbers and differs between two resolved configs, or NULL.
 * --resume compares configs by it. Not compared: run.*, device.*, memory.*, train.epochs, train.steps, train.report_seconds,
 * corpus.cache. */
const char *config_difference(const struct config *a, const struct config *b);

/* Writes all keys that differ, each with its value in a and, in brackets, its value in b, to out[capacity]. Returns 1 if a key
 * differs. */
int config_differences(const struct config *a, const struct config *b, char *out, size_t capacity);

/* Returns the name of choice number `value` of "section.key", as config.def lists it ("adamax"). Static memory. */
const char *config_choice_name(const char *section, const char *key, int value);

/* Finds the keys named `key` in all sections. Returns the full name of match number `nth`, from 0 ("dim": "model.dim"), or NULL.
 * Static memory. */
const char *config_full_name(const char *key, int nth);

/* Returns the full name of key number `index` in the order of config.def, or NULL after the last. Sets *choices to its possible
 * values as "a|b|c", or to NULL if it is not a choice. Static memory. */
const char *config_key_at(int index, const char **choices);

/* Prints all keys with default, range and help, for `sptx-w2v help keys`: first the ten that matter most, then each section.
 * Returns 0, or -1 after fail(). */
int config_print_help(FILE *out);
int config_print_formats(FILE *out); /* the keys that say how a file of data is read */

/* Splits the text of a key that holds paths (`key`: corpus.path or train.from). Paths are separated by blanks or commas. A path
 * that contains one of these is quoted, unless the whole text is the path of an existing file. Returns their number, or -1 after
 * fail(); mem_free_texts() frees them. */
int64_t config_paths(const char *key, const char *text, char ***paths);

#endif
