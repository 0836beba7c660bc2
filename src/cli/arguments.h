/* arguments: reads a command's arguments: options, keys of the configuration, and the rest. */
#ifndef SPTX_ARGUMENTS_H
#define SPTX_ARGUMENTS_H

#include "config/config.h"

/* An option of a command:
 *
 *   --k=10                             {.name = "k", .text = &text}
 *   --resume                           {.name = "resume", .flag = &flag}
 *   --overwrite, --overwrite=now       both .flag and .text
 *   may come several times             .texts[OPTION_TIMES], counted in `count`
 */
struct option {
    const char *name;
    const char **text;
    int *flag;
    const char **texts;
    int *count;
};
enum { OPTION_TIMES = 16 };

struct arguments {
    const char **given;    /* [count] arguments that are neither options nor keys: files, words */
    const char **settings; /* [setting_count] "--section.key=value" */
    int count, setting_count;
};

/* Sorts argv[1..]; after a lone "--" nothing is an option. `command` is its name in sentences ("bench train"). `sections`: the
 * sections whose keys the command takes ("device, memory"), ANY_SECTION, or NULL if it takes no keys. Returns 0, or -1 after
 * fail_usage(), whose sentence has the nearest name to an unknown option. The caller releases always. */
int arguments_read(struct arguments *arguments, const char *command, int argc, char **argv, const struct option *options,
                   const char *sections);
void arguments_release(struct arguments *arguments);
#define ANY_SECTION ""

/* Reads an option that is a whole number. Returns -1 after fail_usage(), which names the option. A NULL text leaves
 * *value. */
int arguments_number(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest,
                     uint64_t *value);

/* ---- configurations from arguments; the caller always releases them ---- */

/* Makes a resolved config from a file (NULL: only defaults) and the keys. ranks: as config->ranks. */
int arguments_config(struct config *config, unsigned ranks, const char *path, const struct arguments *arguments);

/* Makes a config for a command that demands one file, or keys instead. */
int arguments_config_wanted(struct config *config, unsigned ranks, const char *command, const struct arguments *arguments);

/* Makes the same config without resolving it, for a command that sets more keys before. */
int arguments_keys_wanted(struct config *config, const char *command, const struct arguments *arguments);

/* Reads a finished run's config.ini, with the keys over it, for how its lists are read and scored. It is not resolved
 * again. */
int arguments_config_of_run(struct config *config, const char *run_directory, const struct arguments *arguments);

/* Says how files of lists are read that a finished run is asked with: as its corpus was, in the format that --format=F
 * (NULL: not given) or --corpus.format names. *look: 1 where neither does, so that a file may have another form than
 * the corpus. `run` is the run's configuration, which owns the options' texts, for the caller to release always.
 * Returns 0, or -1 after fail(). */
int arguments_reading(struct corpus_options *reading, int *look, struct config *run, const char *run_directory,
                      const char *format, const struct arguments *arguments);

#endif
