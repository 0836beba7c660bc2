/* config_read: an INI file into keys, line by line, and what a run without run.dir is called. */
#include "config_keys.h"

#include "base/directory.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what a run is called ---- */

static int ends_with(const char *text, size_t length, const char *ending) {
    size_t n = strlen(ending);
    return length > n && !strncmp(text + length - n, ending, n);
}

/* Names the config by the last part of `path`, without these endings. A name that would lead out of runs/ is none. */
static int take_name(struct config *config, const char *path, const char *const *endings) {
    size_t end = strlen(path), start;
    while (end && path[end - 1] == '/') end--;
    for (start = end; start && path[start - 1] != '/';) start--;
    for (; *endings; endings++)
        if (ends_with(path + start, end - start, *endings)) end -= strlen(*endings);
    size_t length = end - start;
    if (!length || (length < 3 && strspn(path + start, ".") >= length)) return 0;
    char *name = mem_text(path + start, length, "the configuration");
    if (!name) return -1;
    free(config->name);
    config->name = name;
    return 0;
}

/* "configs/Gowalla.ini" -> "Gowalla". A pipe has a number for a name. */
static int take_file_name(struct config *config, const char *path) {
    static const char *const endings[] = {".ini", NULL};
    struct stat about;
    return stat(path, &about) || !S_ISREG(about.st_mode) ? 0 : take_name(config, path, endings);
}

/* "data/books.csv.gz" -> "books". */
int config_take_corpus_name(struct config *config) {
    static const char *const endings[] = {".gz", ".zst", ".xz", ".bz2", ".txt", ".csv", ".tsv", ".ids", NULL};
    char **paths;
    int64_t count = config_paths("corpus.path", config->corpus_path, &paths);
    int result = count < 0 ? -1 : 0;
    if (count > 0) result = take_name(config, paths[0], endings);
    mem_free_texts(paths, count);
    return result;
}

/* ---- from a file ---- */

enum { LONGEST_FILE = 16 << 20 }; /* bytes: whatever is longer is no configuration */

/* The INI that is being read, line by line, each of any length. */
struct ini_source {
    const char *path;
    char *at;            /* what follows the current line */
    unsigned line;       /* number of the current one */
    const char *section; /* in the text; NULL before the first */
    unsigned *key_lines; /* [CONFIG_KEYS] where a key was set, 0: not yet */
    struct config *config;
};

/* The next line as a string without blanks at its ends, or NULL after the last. LF, CR and CRLF end a line. */
static char *next_line(struct ini_source *source) {
    char *line = source->at, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    source->at = *end ? end + 1 + (end[0] == '\r' && end[1] == '\n') : end;
    source->line++;
    *end = 0;
    return text_strip(line);
}

static int is_comment(const char *text) {
    return *text == '#' || *text == ';';
}

/* Ends the value where a comment begins: a ';' after a blank, as in most INI files. */
static void cut_comment(char *value) {
    for (char *at = strchr(value, ';'); at; at = strchr(at + 1, ';'))
        if (at == value || isspace((unsigned char)at[-1])) {
            *at = 0;
            return;
        }
}

static int refuse_line(const char *line, const char *where) {
    return fail("%s: '%.100s' is neither [section] nor key = value", where, line);
}

static int take_section(struct ini_source *source, char *line, const char *where) {
    char *end = strchr(line, ']');
    if (!end) return refuse_line(line, where);
    char *rest = text_strip(end + 1);
    if (*rest && !is_comment(rest))
        return fail("%s: '%.100s' stands after the section; write it on a line of its own", where, rest);
    *end = 0;
    source->section = text_strip(line + 1);
    return config_is_section(source->section) ? 0 : config_refuse_section(source->section, where, fail);
}

static int take_key(struct ini_source *source, char *line, const char *where) {
    size_t name_length = strcspn(line, "=:");
    if (!line[name_length]) return refuse_line(line, where);
    char *value = line + name_length + 1;
    line[name_length] = 0;
    const char *name = text_strip(line), *dot = strchr(name, '.');
    if (!source->section)
        return fail("%s: '%.100s' stands under no section; write [%.*s] above it", where, name,
                    dot ? (int)(dot - name) : 7, dot ? name : "section");
    cut_comment(value);
    if (config_set(source->config, source->section, name, value, where)) return -1;
    const struct config_key *key = config_find_key(source->section, name);
    unsigned *before = &source->key_lines[key - config_keys];
    if (*before) warn("%s: %s was set on line %u already; this line counts", where, key->name, *before);
    *before = source->line;
    return 0;
}

static int take_lines(struct ini_source *source) {
    char where[512], *line;
    while ((line = next_line(source))) {
        snprintf(where, sizeof where, "%.400s line %u", source->path, source->line);
        if (!*line || is_comment(line)) continue;
        if (*line == '[' ? take_section(source, line, where) : take_key(source, line, where)) return -1;
    }
    return 0;
}

/* A line with a key has one word before its '=' or ':'. */
static int is_key_line(const char *line, size_t length) {
    size_t name = strcspn(line, "=:");
    if (name >= length) return 0;
    while (name && isspace((unsigned char)line[name - 1])) name--;
    for (size_t i = 0; i < name; i++)
        if (isspace((unsigned char)line[i]) || iscntrl((unsigned char)line[i])) return 0;
    return name > 0;
}

/* 1 where the first line that is neither empty nor a comment could be one of an INI file, or none such is among these bytes. */
static int begins_as_ini(const char *head) {
    if (!strncmp(head, "\xEF\xBB\xBF", 3)) head += 3;
    for (;;) {
        head += strspn(head, " \t\v\f\r\n");
        size_t length = strcspn(head, "\r\n");
        if (!*head || *head == '[') return 1;
        if (!is_comment(head)) return is_key_line(head, length);
        head += length;
    }
}

/* A corpus in the place of the configuration is the likeliest slip; it may be long, and packed. */
static int check_head(const char *path) {
    char head[4096] = "";
    int kind = file_head(path, head, sizeof head);
    if (kind == 2 && directory_exists(path) == 1)
        return fail("'%s' is a directory and no configuration; if its files are what is to be trained, write --corpus.path=%s",
                    path, path);
    if (kind != 1 || begins_as_ini(head)) return kind < 0 ? -1 : 0;
    return fail("'%s' is no configuration: it does not begin with [section]; if it is what is to be trained, write "
                "--corpus.path=%s",
                path, path);
}

char *config_file(const char *path) {
    uint64_t length;
    if (check_head(path)) return NULL;
    char *text = file_read_given(path, LONGEST_FILE, &length);
    if (!text || strlen(text) == length) return text;
    fail("'%s' holds a NUL byte at %" PRIu64 ": it is not an INI file", path, (uint64_t)strlen(text));
    free(text);
    return NULL;
}

int config_read_text(struct config *config, char *text, const char *path) {
    unsigned key_lines[CONFIG_KEYS] = {0};
    struct ini_source source = {.path = path, .at = text, .config = config, .key_lines = key_lines};
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) source.at += 3; /* a byte order mark */
    return take_lines(&source);
}

int config_read(struct config *config, const char *path) {
    char *text = config_file(path);
    int result = text ? config_read_text(config, text, path) : -1;
    free(text);
    return result ? -1 : take_file_name(config, path);
}
