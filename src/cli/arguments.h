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
    const char **given;    /* [count] arguments that are neither options nor keys, such as files and words */
    const char **settings; /* [setting_count] "--section.key=value" */
    int count, setting_count;
};

/* Divides argv[1..] into options, keys and other arguments; after a lone "--" all are other arguments. command: its name in
 * error messages ("bench train"). sections: the sections whose keys the command accepts ("device, memory"), ANY_SECTION, or
 * NULL: it accepts no keys. Returns 0, or -1 after fail_usage(), which suggests the option most similar to an unknown one. The
 * caller always releases. */
int arguments_read(struct arguments *arguments, const char *command, int argc, char **argv, const struct option *options,
                   const char *sections);
void arguments_release(struct arguments *arguments);
#define ANY_SECTION ""

/* Reads an option's value as a whole number from `lowest` to `highest`. If `text` is NULL, *value is unchanged. Returns 0, or -1
 * after fail_usage(), which names the option. */
int arguments_number(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest, uint64_t *value);

/* ---- configurations from arguments; the caller always releases them ---- */

/* Makes a resolved config from a file (NULL: the defaults) and the keys of the arguments. ranks: as config->ranks. */
int arguments_config(struct config *config, unsigned ranks, const char *path, const struct arguments *arguments);
/* Makes the config of a command that asks a run: without keys of [corpus], which say how the run's kind of files is read
 * (arguments_reading). */
int arguments_config_beside(struct config *config, const struct arguments *arguments);

/* Makes a resolved config for a command that needs one file, or keys in its place. */
int arguments_config_wanted(struct config *config, unsigned ranks, const char *command, const struct arguments *arguments);

/* Does what arguments_config_wanted() does, but does not resolve the config, so that the command can set more keys. */
int arguments_keys_wanted(struct config *config, const char *command, const struct arguments *arguments);

/* Chooses how files of lists or triples are read when a finished run is asked with them: as its corpus was, in the format of
 * --format=F (`format`; NULL: not given) or --corpus.format. *look: 1 if neither option is given, so that the format may be
 * guessed from the file. run: becomes a copy of the model's keys with those of the arguments, which owns strings of *reading; the caller
 * always releases it. Returns 0, or -1 after fail(). */
int arguments_reading(struct corpus_options *reading, int *look, struct config *run, const struct model *model, const char *format,
                      const struct arguments *arguments);

#endif
