/* commands: the table of the program's commands. One file a command; only these print results, and only main exits. */
#ifndef SPTX_COMMANDS_H
#define SPTX_COMMANDS_H

#include "arguments.h"
#include "kernels/ranks.h"

#include <stdio.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; 0, or -1 after fail() */
    const char *usage;                 /* "train [CONFIG.ini] [--section.key=value ...] [--resume]" */
    const char *summary;               /* one line */
    const char *help;                  /* paragraphs: every option, exit codes where they differ */
};
extern const struct command commands[]; /* ended by a NULL name */

extern const char command_version[]; /* "sptx-w2v 1.2.3" */

/* Prints all commands with their summaries, and what all have in common: for help, and for a call without a command. */
void command_list(FILE *out);

/* Returns the command of that name, or NULL after fail_usage() with the nearest one. */
const struct command *command_find(const char *name);

int cmd_train(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_nearest(int argc, char **argv);
int cmd_analogy(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_recommend(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_phrases(int argc, char **argv);
int cmd_word2vec(int argc, char **argv);
int cmd_word2phrase(int argc, char **argv);
int cmd_distance(int argc, char **argv);
int cmd_word_analogy(int argc, char **argv);
int cmd_compute_accuracy(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* Sets a key ("phrases.passes") to an option's value. Returns -1 after fail_usage() where the key cannot have it. */
int command_set_key(struct config *config, const char *key, const char *value);

/* Joins words of the files to phrases and writes the text to `out`; NULL: to standard output. margin: a blank begins each line. */
int command_join_words(const struct config *config, const char *const *paths, int count, const char *out, int margin);

/* Joins the processes that mpirun began for this command ("bench ranks"), by ranks_open(). */
int command_ranks(struct ranks *ranks, const char *command);

#endif
