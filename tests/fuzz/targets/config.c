/* config: takes any bytes as an INI file. The result must equal a plain reading of its lines, and a resolved config
 * must read back the same when it is written, with and without its help. */
#include "config/config.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

/* ---- a plain reading: lines of [section], key = value, comments behind # and ; ---- */

/* Cuts a comment off: it begins with ';' at the front or behind a blank. */
static void cut_comment(char *text) {
    for (char *at = text; *at; at++)
        if (*at == ';' && (at == text || isspace((unsigned char)at[-1]))) *at = 0;
}

static char *strip(char *text) {
    while (isspace((unsigned char)*text)) text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);) *--end = 0;
    return text;
}

static int take_setting(struct config *config, const char *section, char *line) {
    char *value = line + strcspn(line, "=:");
    if (!*value) return -1;
    *value++ = 0;
    cut_comment(value);
    return config_set(config, section, strip(line), strip(value), "plainly");
}

/* Returns 1 for a section's name: the sentence about a key that the section lacks is another one. */
static int is_section(struct config *config, const char *name) {
    config_set(config, name, "none", "", "plainly");
    int known = !strstr(report_sentence(), "there is no section");
    report_clear();
    return known;
}

static int take_line(struct config *config, char section[64], char *line) {
    line = strip(line);
    if (!*line || *line == '#' || *line == ';') return 0;
    if (*line != '[') return take_setting(config, section, line);
    char *end = strchr(++line, ']');
    if (!end) return -1;
    *end++ = 0;
    snprintf(section, 64, "%s", strip(line));
    end = strip(end);
    return (*end && *end != '#' && *end != ';') || strlen(line) > 60 || !is_section(config, section) ? -1 : 0;
}

/* Reads the text, and takes it apart. Returns -1 where a line is refused. */
static int read_plainly(struct config *config, char *text) {
    char section[64] = "", *line;
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
    while ((line = strsep(&text, "\r\n")))
        if (take_line(config, section, line)) return -1;
    return 0;
}

static char *format_of(const struct config *config, int help) {
    char *text = NULL;
    HOLDS(!config_format(config, help, &text), "it cannot be written");
    return text;
}

static void check_plainly(const struct config *read, int accepted, const uint8_t *bytes, size_t length) {
    struct config plain;
    char *text = malloc(length + 1);
    memcpy(text, bytes, length);
    text[length] = 0;
    if (strlen(text) == length) {
        HOLDS(!config_init(&plain), "no defaults");
        int wanted = !read_plainly(&plain, text);
        HOLDS(wanted == accepted, "it is %s, read plainly it is %s", accepted ? "accepted" : "refused",
              wanted ? "accepted" : "refused");
        report_clear();
        if (accepted) {
            char *a = format_of(read, 0), *b = format_of(&plain, 0);
            HOLDS(!strcmp(a, b), "read:\n%s\nplainly:\n%s", a, b);
            free(a);
            free(b);
        }
        config_release(&plain);
    }
    free(text);
}

/* ---- written and read ---- */

static void write_and_read(const struct config *config, int help) {
    struct config again;
    char *text = format_of(config, help), *path = scratch_file("again.ini", text, strlen(text));
    HOLDS(!config_init(&again) && !config_read(&again, path) && !config_resolve(&again), "what was written is refused");
    const char *key = config_difference(config, &again);
    HOLDS(!key, "%s reads back as something else", key);
    char *second = format_of(&again, help);
    HOLDS(!strcmp(text, second), "written:\n%s\nread back:\n%s", text, second);
    free(text);
    free(second);
    config_release(&again);
}

static void check_paths(const struct config *config) {
    char **paths;
    int64_t count = config_paths("corpus.path", config->corpus_path, &paths);
    if (!fuzz_accepted(count < 0 ? -1 : 0)) return;
    for (int64_t i = 0; i < count; i++) {
        HOLDS(*paths[i], "path %lld is empty", (long long)i);
        free(paths[i]);
    }
    free(paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct config config;
    HOLDS(!config_init(&config), "no defaults");
    int accepted = fuzz_accepted(config_read(&config, scratch_file("given.ini", bytes, length)));
    check_plainly(&config, accepted, bytes, length);
    if (accepted) check_paths(&config);
    if (accepted && fuzz_accepted(config_resolve(&config))) {
        write_and_read(&config, 0);
        write_and_read(&config, 1);
    }
    config_release(&config);
    return 0;
}
