/* arguments: reads a command's options, its files, and keys of the configuration. */
#include "arguments.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 32 }; /* most options to which a misspelt one is compared */

static const struct option *find_option(const struct option *options, const char *name, size_t length) {
    for (; options->name; options++)
        if (strlen(options->name) == length && !strncmp(options->name, name, length)) return options;
    return NULL;
}

/* Returns 1 if the section of the key "section.key" is one of `sections`. */
static int section_among(const char *name, const char *sections) {
    size_t length = strcspn(name, ".");
    const char *at = sections;
    while (at && (strncmp(at, name, length) || (at[length] && at[length] != ','))) {
        at = strstr(at, ", ");
        if (at) at += 2;
    }
    return at != NULL;
}

/* Returns the key that "--dim=100", which lacks its section, may mean: the first "section.dim" of these sections, or NULL. */
static const char *full_name(const char *name, const char *sections) {
    const char *full = NULL;
    for (int i = 0; sections && (full = config_full_name(name, i)); i++)
        if (!*sections || section_among(full, sections)) break;
    return full;
}

static int refuse_option(const char *command, const struct option *options, const char *argument, const char *sections) {
    const char *names[NAMES_MOST];
    char name[64];
    size_t count = 0;
    for (; options[count].name && count < NAMES_MOST; count++) names[count] = options[count].name;
    strncpy(name, argument + 2, sizeof name - 1);
    name[sizeof name - 1] = 0;
    name[strcspn(name, "=")] = 0;
    const char *value = strchr(argument, '='), *full = full_name(name, sections);
    if (full) return fail_usage("%s has no option '--%s'; the key is --%s%.100s", command, name, full, value ? value : "=...");
    const char *near = text_nearest(name, names, count);
    if (near) return fail_usage("%s has no option '--%s'; did you mean '--%s'?", command, name, near);
    return fail_usage("%s has no option '--%s'; see 'sptx-w2v help %.*s'", command, name, (int)strcspn(command, " "), command);
}

static int take_option(const char *command, const struct option *option, const char *value) {
    if (option->flag) {
        if (value && !option->text) return fail_usage("%s: --%s takes no value", command, option->name);
        if (value) *option->text = value;
        *option->flag = 1;
        return 0;
    }
    if (!value || !*value) return fail_usage("%s: --%s needs a value: --%s=...", command, option->name, option->name);
    if (!option->texts) {
        *option->text = value;
        return 0;
    }
    if (*option->count == OPTION_TIMES)
        return fail_usage("%s: --%s is given more than %d times", command, option->name, OPTION_TIMES);
    option->texts[(*option->count)++] = value;
    return 0;
}

/* Fails if an earlier argument is the same option as argv[i], with a value, and may be given only once. */
static int check_twice(const char *command, char **argv, int i, const struct option *options) {
    size_t length = strcspn(argv[i], "=");
    const struct option *option = find_option(options, argv[i] + 2, length - 2);
    if (!option || option->texts || !option->text) return 0;
    for (int before = 1; before < i; before++)
        if (strcspn(argv[before], "=") == length && !strncmp(argv[before], argv[i], length))
            return fail_usage("%s: %.*s is given twice%s%s", command, (int)length, argv[i], option->several ? "; several are written " : "",
                              option->several ? option->several : "");
    return 0;
}

/* Returns 1 for "--section.key=value", whose name contains a dot. */
static int is_setting(const char *argument) {
    return memchr(argument, '.', strcspn(argument, "=")) != NULL;
}

static int take_argument(struct arguments *a, const char *command, const char *argument, const struct option *options,
                         const char *sections) {
    size_t length = strcspn(argument + 2, "=");
    const struct option *option = find_option(options, argument + 2, length);
    if (option) return take_option(command, option, argument[2 + length] ? argument + 3 + length : NULL);
    if (!sections || !is_setting(argument)) return refuse_option(command, options, argument, sections);
    a->settings[a->setting_count++] = argument;
    if (!*sections || section_among(argument + 2, sections)) return 0;
    return fail_usage("%s has no use for '%.100s': its keys are those of the sections %s; see 'sptx-w2v help %.*s'", command, argument,
                      sections, (int)strcspn(command, " "), command); /* the command would not use the key */
}

/* Fails for "--model.dim 100" and "--model.dim = 100", where 100 would be taken as a file name. */
static int check_blank(const char *command, const char *argument, const char *next) {
    if (strncmp(argument, "--", 2) || !is_setting(argument) || strchr(argument, '=') || !next || !strncmp(next, "--", 2)) return 0;
    const char *value = next + (*next == '=');
    return fail_usage("%s: '%.100s %.100s' has a blank between key and value; write %.100s=%.100s", command, argument, next,
                      argument, *value ? value : "...");
}

int arguments_read(struct arguments *a, const char *command, int argc, char **argv, const struct option *options,
                   const char *sections) {
    int only_given = 0;
    *a = (struct arguments){.given = mem_zalloc(2 * (uint64_t)argc, sizeof *a->given, "arguments")};
    if (!a->given) return -1;
    a->settings = a->given + argc;
    for (int i = 1; i < argc; i++) {
        if (only_given || strncmp(argv[i], "--", 2))
            a->given[a->count++] = argv[i];
        else if (!argv[i][2])
            only_given = 1;
        else if (check_blank(command, argv[i], i + 1 < argc ? argv[i + 1] : NULL) ||
                 take_argument(a, command, argv[i], options, sections) || check_twice(command, argv, i, options))
            return -1;
    }
    return 0;
}

void arguments_release(struct arguments *a) {
    free(a->given);
    *a = (struct arguments){.given = NULL};
}

int arguments_number(const char *command, const char *option, const char *text, uint64_t lowest, uint64_t highest,
                     uint64_t *value) {
    char low[TEXT_BYTES], high[TEXT_BYTES];
    uint64_t number;
    if (!text) return 0;
    if (text_count(text, &number) || number < lowest || number > highest)
        return fail_usage("%s: --%s = '%.100s' is not a whole number from %s to %s", command, option, text,
                          text_of_count(low, lowest), text_of_count(high, highest));
    *value = number;
    return 0;
}

/* ---- configs ---- */

/* Sets the keys given as arguments in a config, which contains its defaults or a run's keys. */
static int set_settings(struct config *config, const struct arguments *a) {
    for (int i = 0; i < a->setting_count; i++) {
        int result = config_argument(config, a->settings[i], "command line");
        if (result > 0) return fail_usage("'%s' is not of the form --section.key=value", a->settings[i]);
        if (result) return -1;
    }
    return 0;
}

static int set_keys(struct config *config, const char *path, const struct arguments *a) {
    return config_init(config) || (path && config_read(config, path)) || set_settings(config, a) ? -1 : 0;
}

int arguments_config(struct config *config, unsigned ranks, const char *path, const struct arguments *a) {
    if (set_keys(config, path, a)) return -1;
    config->ranks = ranks;
    return config_resolve(config);
}

int arguments_config_beside(struct config *config, const struct arguments *a) {
    struct arguments own = *a;
    own.settings = mem_alloc((uint64_t)a->setting_count + 1, sizeof *own.settings, "arguments");
    own.setting_count = 0;
    if (!own.settings) return -1;
    for (int i = 0; i < a->setting_count; i++)
        if (strncmp(a->settings[i], "--corpus.", 9)) own.settings[own.setting_count++] = a->settings[i];
    int result = arguments_config(config, 0, NULL, &own);
    free(own.settings);
    return result;
}

/* Refuses "model.dim=8", which lacks its dashes, among the files that were given. */
static int check_dashes(const char *command, const struct arguments *a) {
    for (int i = 0; i < a->count; i++) {
        const char *given = a->given[i];
        if (given[strcspn(given, "/=")] == '=' && is_setting(given) && file_exists(given) == 0)
            return fail_usage("%s: the key '%.100s' lacks its dashes; write --%.100s", command, given, given);
    }
    return 0;
}

int arguments_keys_wanted(struct config *config, const char *command, const struct arguments *a) {
    if (check_dashes(command, a)) return -1;
    if (a->count > 1)
        return fail_usage("%s wants one configuration file, %d given; see 'sptx-w2v help %s'", command, a->count, command);
    if (a->count && *a->given[0] == '-')
        return fail_usage("%s has no option '%.100s'; see 'sptx-w2v help %s'", command, a->given[0], command);
    if (!a->count && !a->setting_count)
        return fail_usage("%s wants a configuration file, or keys such as --corpus.path=FILE; see 'sptx-w2v help %s'",
                          command, command);
    return set_keys(config, a->count ? a->given[0] : NULL, a);
}

static int is_set(const struct arguments *a, const char *option) {
    int i = 0;
    while (i < a->setting_count && strncmp(a->settings[i], option, strlen(option))) i++;
    return i < a->setting_count;
}

int arguments_reading(struct corpus_options *reading, int *look, struct config *run, const struct model *model, const char *format,
                      const struct arguments *a) {
    if (model_copy_keys(run, model) || set_settings(run, a)) return -1;
    if (format && config_set(run, "corpus", "format", format, "--format")) return -1;
    *reading = config_corpus(run);
    reading->look.hints = !is_set(a, "--corpus.columns=") && !is_set(a, "--corpus.separator=") && !is_set(a, "--corpus.header=") &&
                          !is_set(a, "--corpus.names=");
    *look = !format && !is_set(a, "--corpus.format=");
    return 0;
}

int arguments_share(const char *command, const char *option, const char *text, double *value) {
    if (!text || (!text_real(text, value) && *value >= 0 && *value <= 1)) return 0;
    return fail_usage("%s: --%s = '%.100s' is not a number from 0 to 1", command, option, text);
}
