/* config: takes any bytes as an INI file. The result must equal a plain reading of its lines, and a resolved config
 * must read back the same when it is written, with and without its help. */
#define _GNU_SOURCE
#include "config/config.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

/* ---- a simple reader of the same files, with which the program's reader is compared: lines [section] and key = value; a value goes on in lines that
 * are indented deeper than its key; comments begin with # or ; ---- */

/* Cuts off a comment, which begins with a ';' at the beginning of the line or after a blank. */
static void cut_comment(char *text) {
    for (char *at = text; *at; at++)
        if (*at == ';' && (at == text || isspace((unsigned char)at[-1]))) *at = 0;
}

static char *strip(char *text) {
    while (isspace((unsigned char)*text)) text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);) *--end = 0;
    return text;
}

/* The keys and values that were read from the file so far. */
struct plain {
    struct config *config;
    char section[64], key[64];
    char *value;   /* value of the key that was read last, which indented lines may continue; NULL: no key may be continued */
    size_t indent; /* indentation of that key */
};

/* Copies the name before '=' or ':' of a line, and points `value` behind it. Returns -1 if there is no name or it is too long. */
static int take_apart(const char *line, char name[64], const char **value) {
    size_t length = strcspn(line, "=:");
    if (!line[length]) return -1;
    snprintf(name, 64, "%.*s", length < 63 ? (int)length : 63, line);
    memmove(name, strip(name), strlen(strip(name)) + 1);
    *value = line + length + 1;
    return 0;
}

static int end_value(struct plain *plain) {
    if (!plain->value) return 0;
    int result = config_set(plain->config, plain->section, plain->key, plain->value, "plainly");
    free(plain->value);
    plain->value = NULL;
    return result;
}

static int take_setting(struct plain *plain, const char *line, size_t indent) {
    const char *value;
    if (take_apart(line, plain->key, &value)) return -1;
    plain->value = strdup(value);
    plain->indent = indent;
    cut_comment(plain->value);
    return 0;
}

static int goes_on(const struct plain *plain, const char *line, size_t indent) {
    const char *value;
    char name[64];
    if (!plain->value || indent <= plain->indent || *line == '[') return 0;
    return take_apart(line, name, &value) || strcspn(line, "=:") >= sizeof name || !config_full_name(name, 0);
}

static void take_more(struct plain *plain, char *line) {
    char *more;
    cut_comment(line);
    HOLDS(asprintf(&more, "%s %s", strip(plain->value), strip(line)) >= 0, "no memory");
    free(plain->value);
    plain->value = more;
}

/* Returns 1 if this is the name of a section. A key that is not in the section gets another message then. */
static int is_section(struct config *config, const char *name) {
    config_set(config, name, "none", "", "plainly");
    int known = !strstr(report_sentence(), "there is no section");
    report_clear();
    return known;
}

static int take_section(struct plain *plain, char *line) {
    char *end = strchr(line, ']');
    if (!end) return -1;
    *end++ = 0;
    snprintf(plain->section, sizeof plain->section, "%s", strip(line));
    end = strip(end);
    return (*end && *end != '#' && *end != ';') || strlen(line) > 60 || !is_section(plain->config, plain->section) ? -1
                                                                                                                   : 0;
}

static int take_line(struct plain *plain, char *raw) {
    char *line = strip(raw);
    size_t indent = (size_t)(line - raw);
    if (!*line || *line == '#' || *line == ';') return 0;
    if (goes_on(plain, line, indent)) return take_more(plain, line), 0;
    if (end_value(plain)) return -1;
    return *line == '[' ? take_section(plain, line + 1) : take_setting(plain, line, indent);
}

/* Reads the text in the simplest way; the text is changed. Returns -1 if a line must be refused. */
static int read_plainly(struct config *config, char *text) {
    struct plain plain = {.config = config};
    char *line;
    int result = 0;
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
    while (!result && (line = strsep(&text, "\r\n"))) result = take_line(&plain, line);
    if (!result) result = end_value(&plain);
    free(plain.value);
    return result;
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
