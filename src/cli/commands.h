/* commands: the table of what the program can be asked. One file a command; only these print results and main exits. */
#ifndef SPTX_COMMANDS_H
#define SPTX_COMMANDS_H

#include "kernels/ranks.h"
#include "train/config.h"

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

/* All commands with their summaries, and what holds for each: what help prints, and a call without a command. */
void command_list(FILE *out);

/* The command of that name, or NULL after fail_usage() with the nearest one. */
const struct command *command_find(const char *name);

int cmd_train(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_nearest(int argc, char **argv);
int cmd_analogy(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_recommend(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* ---- arguments ---- */

/* An option of a command: "--k=10" is {"k", &text}; a flag is {"resume", NULL, &flag}, and one that may have a value
 * (--overwrite, --overwrite=now) has both; an option that may come several times gives its texts to `texts` (capacity
 * 16), counted in `count`. */
struct option {
    const char *name;
    const char **text;
    int *flag;
    const char **texts;
    int *count;
};
enum { OPTION_TIMES = 16 };

/* Sorts argv[1..] into options and the rest: positionals go to positional[] (room for argc). "--section.key=value" goes to
 * config where that is not NULL (kept until after the file is read: see command_config). Returns how many positionals, or
 * -1 after fail_usage() (unknown option with the nearest name, missing value). */
int command_arguments(int argc, char **argv, const struct option *options, const char **positional, const char **settings,
                      int *setting_count);

/* A resolved config from a file (NULL: defaults only) and settings. 0, or -1 after fail(). The caller releases always. */
int command_config(struct config *config, const char *path, const char **settings, int setting_count);

/* The configuration of a finished run, of its config.ini, with the settings over it: how its lists are read and scored. Not
 * resolved anew. The caller releases always. */
int command_run_config(struct config *config, const char *run_directory, const char **settings, int setting_count);

/* A resolved config for a command that wants one file, or settings instead. given: how many files there are. ranks: as
 * config->ranks. */
int command_config_wanted(struct config *config, unsigned ranks, const char *command, const char **paths, int given,
                          const char **settings, int setting_count);

/* 0 where all settings are keys of these sections ("device, memory"); otherwise -1 after fail_usage(): what a command would
 * not look at is not taken. */
int command_settings_of(const char *command, const char *sections, const char **settings, int setting_count);

/* Joins the processes that mpirun began for this command ("bench ranks"), as ranks_open(). */
int command_ranks(struct ranks *ranks, const char *command);

/* A whole number option: -1 after fail_usage() naming the option. NULL text leaves *value. */
int command_count(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest, uint64_t *value);

#endif
