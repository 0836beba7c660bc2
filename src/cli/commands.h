/* commands: the table of the program's commands, each in its own file. Only commands print results, and only main exits. */
#ifndef SPTX_COMMANDS_H
#define SPTX_COMMANDS_H

#include "arguments.h"
#include "kernels/ranks.h"

#include <stdio.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* runs the command; argv[0] is its name. Returns 0, or -1 after fail() */
    const char *usage;                 /* such as "train [CONFIG.ini] [--section.key=value ...] [--resume]" */
    const char *summary;               /* one line, for the list of commands */
    const char *help;                  /* paragraphs: every option, and exit codes if they differ from other commands' */
};
extern const struct command commands[]; /* the last entry has the name NULL */

extern const char command_version[]; /* "sptx-w2v 1.2.3" */

/* Prints all commands with summaries and options, for `help`, or if no command is given. Returns 0. */
int command_list(FILE *out);

/* Returns the command with this name; NULL after fail_usage(), which suggests the most similar one. */
const struct command *command_find(const char *name);

int cmd_train(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_nearest(int argc, char **argv);
int cmd_analogy(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_recommend(int argc, char **argv);
int cmd_score(int argc, char **argv);
int cmd_infer(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_phrases(int argc, char **argv);
int cmd_word2vec(int argc, char **argv);
int cmd_word2phrase(int argc, char **argv);
int cmd_distance(int argc, char **argv);
int cmd_word_analogy(int argc, char **argv);
int cmd_compute_accuracy(int argc, char **argv);
int cmd_vocab_count(int argc, char **argv);
int cmd_cooccur(int argc, char **argv);
int cmd_shuffle(int argc, char **argv);
int cmd_glove(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* Sets a key ("phrases.passes") to an option's value. Returns 0, or -1 after fail_usage() if the value is not valid. */
int command_set_key(struct config *config, const char *key, const char *value);

/* Joins words of the files into phrases, and writes the text to the file `out` (NULL: stdout). margin = 1: each line begins with a blank. Returns
 * 0, or -1 after fail(). */
int command_join_words(const struct config *config, const char *const *paths, int count, const char *out, int margin);

/* Reads questions from standard input, one on each line, until EXIT or the end, and answers each with the k nearest words of a run or a file of
 * vectors, like word2vec's distance and word-analogy. analogy: 1: a question is three words, A is to B as C is to ?; 0: it is words whose vectors
 * are added. plain: 1: prints lines of word TAB score, as `nearest` does; 0: prints as word2vec's programs do. Returns 0, or -1 after fail(). */
int command_prompt(const char *path, int analogy, int plain, uint32_t k, const struct config *config);

/* Connects the processes that mpirun has started (ranks_open()); all must run `command` ("bench ranks"). Returns 0, or -1 after fail(). */
int command_ranks(struct ranks *ranks, const char *command);

#endif
