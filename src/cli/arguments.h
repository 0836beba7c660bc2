/* arguments: reads a command's arguments: options, keys of the configuration, and all other words. */
#ifndef SPTX_ARGUMENTS_H
#define SPTX_ARGUMENTS_H

#include "config/config.h"
#include "vectors/model.h"

/* An option of a command:
 *
 *   --k=10                             {.name = "k", .text = &text}
 *   --resume                           {.name = "resume", .flag = &flag}
 *   --overwrite, --overwrite=now       both .flag and .text
 *   may be given several times         .texts[OPTION_TIMES], counted in `count`
 */
struct option {
    const char *name;
    const char **text;
    int *flag;
    const char **texts;
    int *count;
    const char *several; /* what an error adds if the option is given twice: how one value names several things; NULL: it cannot */
};
enum { OPTION_TIMES = 16 };

struct arguments {
    const char **given;    /* [count] arguments that are neither options nor keys, such as files and words */
    const char **settings; /* [setting_count] "--section.key=value" */
    int count, setting_count;
};

/* Divides argv[1..] into options, keys and other arguments; all after a lone "--" are other arguments. command: its name in error messages ("bench
 * train"). sections: the sections whose keys the command accepts ("device, memory"), ANY_SECTION, or NULL: it accepts no keys. Returns 0, or -1
 * after fail_usage(), which suggests the option most similar to an unknown one. The caller always releases. */
int arguments_read(struct arguments *arguments, const char *command, int argc, char **argv, const struct option *options,
                   const char *sections);
void arguments_release(struct arguments *arguments);
#define ANY_SECTION ""

/* Reads an option's value as a whole number from `lowest` to `highest`; *value is unchanged if `text` is NULL. Returns 0, or -1 after
 * fail_usage(), which names the option. */
int arguments_number(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest, uint64_t *value);

/* Does the same for a number from 0 to 1. */
int arguments_share(const char *command, const char *option, const char *text, double *value);

/* ---- configurations from arguments; the caller always releases them ---- */

/* Makes a resolved config from a file (NULL: the defaults) and the keys given as arguments. ranks: see config->ranks. */
int arguments_config(struct config *config, unsigned ranks, const char *path, const struct arguments *arguments);
/* Makes the config for a question to a run, without keys of [corpus]: arguments_reading() uses these for reading files. */
int arguments_config_beside(struct config *config, const struct arguments *arguments);

/* Makes a config, not resolved yet, for a command that needs a file, or keys in its place. */
int arguments_keys_wanted(struct config *config, const char *command, const struct arguments *arguments);

/* Chooses how files of lists or triples are read for a question to a finished run: as its corpus was, in the format of --format=F (`format`; NULL:
 * not given) or --corpus.format. *look: 1 if neither option is given, so that the format may be guessed from the file. run: becomes a copy of the
 * model's keys with those of the arguments, which owns strings of *reading; the caller always releases it. Returns 0, or -1 after fail(). */
int arguments_reading(struct corpus_options *reading, int *look, struct config *run, const struct model *model, const char *format,
                      const struct arguments *arguments);

#endif
