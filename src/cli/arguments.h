/* arguments: what stands behind a command's name: options, keys of the configuration, and the rest. */
#ifndef SPTX_ARGUMENTS_H
#define SPTX_ARGUMENTS_H

#include "config/config.h"

/* An option of a command: "--k=10" is {.name = "k", .text = &text}; a flag is {.name = "resume", .flag = &flag}, and one that
 * may have a value (--overwrite, --overwrite=now) has both; one that may come several times gives its values to
 * texts[OPTION_TIMES], counted in `count`. */
struct option {
    const char *name;
    const char **text;
    int *flag;
    const char **texts;
    int *count;
};
enum { OPTION_TIMES = 16 };

struct arguments {
    const char **given;    /* [count] files, words: what is neither option nor key */
    const char **settings; /* [setting_count] "--section.key=value" */
    int count, setting_count;
};

/* Sorts argv[1..]; what stands behind a lone "--" is no option. `command` is what sentences call it ("bench train").
 * sections: whose keys it takes ("device, memory"), ANY_SECTION, or NULL: none. 0, or -1 after fail_usage(), with the nearest
 * name for an unknown option. The caller releases always. */
int arguments_read(struct arguments *arguments, const char *command, int argc, char **argv, const struct option *options,
                   const char *sections);
void arguments_release(struct arguments *arguments);
#define ANY_SECTION ""

/* A whole number option: -1 after fail_usage() naming the option. NULL text leaves *value. */
int arguments_number(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest,
                     uint64_t *value);

/* ---- a config of them; the caller releases it always ---- */

/* A resolved config from a file (NULL: defaults only) and the keys. ranks: as config->ranks. */
int arguments_config(struct config *config, unsigned ranks, const char *path, const struct arguments *arguments);

/* The same for a command that wants one file, or keys instead. */
int arguments_config_wanted(struct config *config, unsigned ranks, const char *command, const struct arguments *arguments);

/* The configuration of a finished run, of its config.ini, with the keys over it: how its lists are read and scored. Not
 * resolved anew. */
int arguments_config_of_run(struct config *config, const char *run_directory, const struct arguments *arguments);

/* How files of lists are read that a finished run is asked with: as its corpus was, in the format that --format=F (NULL: not
 * given) or --corpus.format names. *look: 1 where neither does, and a file may have another form than the corpus. `run` is the
 * configuration of the run, whose texts the options are, for the caller to release always. 0, or -1 after fail(). */
int arguments_reading(struct corpus_options *reading, int *look, struct config *run, const char *run_directory,
                      const char *format, const struct arguments *arguments);

#endif
