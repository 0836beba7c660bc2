/* config_paths: splits a key's text into paths. */

#include "config.h"

#include "base/directory.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "config_keys.h"
#include "defaults_by_size.h"

#include <ctype.h>
#include <ini.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_path(char ***paths, uint64_t *capacity, int64_t count, const char *text, uint64_t length) {
    if (mem_grow(paths, capacity, (uint64_t)count + 1, sizeof **paths, "the corpus paths")) return -1;
    (*paths)[count] = mem_text(text, length, "the corpus paths");
    return (*paths)[count] ? 0 : -1;
}

static int separates(char c) {
    return c == ',' || isspace((unsigned char)c);
}

static int split_paths(const char *key, const char *text, char ***paths, int64_t *count) {
    uint64_t capacity = 0;
    for (const char *at = text;;) {
        while (separates(*at)) at++;
        if (!*at) return 0;
        int there = at == text ? file_exists(text) : 0, whole = there == 1, quoted = !whole && *at == '"';
        if (there < 0) return -1;
        const char *first = at + quoted, *end = first;
        while (*end && (whole || (quoted ? *end != '"' : !separates(*end)))) end++;
        if (quoted && !*end) return fail("%s = '%.200s': a double quote is not closed", key, text);
        if (quoted && end == first) return fail("%s = '%.200s': a path between double quotes is empty", key, text);
        if (add_path(paths, &capacity, *count, first, (uint64_t)(end - first))) return -1;
        ++*count;
        at = end + quoted;
    }
}

int64_t config_paths(const char *key, const char *text, char ***paths) {
    int64_t count = 0;
    *paths = NULL;
    if (!split_paths(key, text, paths, &count)) return count;
    mem_free_texts(*paths, count);
    *paths = NULL;
    return -1;
}

/* config_ini: sets keys from the text of an INI file, which inih parses (ini.h).
 *
 * inih parses sections, names and values, and appends an indented line to the value above it. It has three limits: it reads at most
 * 199 bytes of a line; its handler is not told the line's number; and it calls no handler when a section begins. Hence inih does
 * not read the file itself. The reader below gives it rewritten lines:
 *
 *   line in the file                 lines given to inih
 *
 *   [section]  ; comment             [section]          after the name was checked
 *   name = value  ; comment          name = value
 *   name = a value of any length     name=
 *                                     .a value of an.   indented, so inih appends each span to the value;
 *                                     .y length.        the dots keep blanks at its ends
 *       more of it                    .more of it.      from an indented line of the user, which continues the value
 *
 * The handler joins the spans of one line without a blank, and those of different lines with one.
 */

/* The value that is being read, which may continue in further lines. */
struct value {
    const struct config_key *key; /* NULL: no value is being read */
    char *text;
    uint64_t length, capacity;
    size_t indent; /* number of blanks before its first line */
    unsigned line;
};

struct ini_source {
    struct config *config;
    const char *path;
    char *at;            /* beginning of the next line */
    unsigned line;       /* number of the current line, from 1 */
    char *rest;          /* rest of a long value that inih has not got yet; NULL: none */
    int is_piece;        /* 1: the last line given to inih was a part of a value */
    const char *unknown; /* the last line given to inih, whose handler sets this to NULL: so a line that inih did not understand stays here */
    struct value value;
    unsigned key_lines[CONFIG_KEYS]; /* number of the line that has set each key; 0: not set */
    int failed;
};

enum { WHERE = 512 };
static const char *place_of(const struct ini_source *source, unsigned line, char out[WHERE]) {
    snprintf(out, WHERE, "%.400s line %u", source->path, line);
    return out;
}

/* ---- what inih understands: a name with its value, or more of a value ---- */

static int add_text(struct value *value, const char *text, uint64_t length) {
    if (mem_grow(&value->text, &value->capacity, value->length + length + 1, 1, "the configuration")) return -1;
    memcpy(value->text + value->length, text, length);
    value->length += length;
    value->text[value->length] = 0;
    return 0;
}

static int begin_value(struct ini_source *source, const char *section, const char *name, const char *text) {
    char place[WHERE];
    const char *dot = strchr(name, '.'), *where = place_of(source, source->line, place);
    if (!*section)
        return fail("%s: '%.100s' stands under no section; write [%.*s] above it", where, name,
                    dot ? (int)(dot - name) : 7, dot ? name : "section");
    const struct config_key *key = config_find_key(section, name);
    if (!key) return config_set(source->config, section, name, text, where); /* fails with the nearest known name */
    source->value.key = key;
    source->value.line = source->line;
    source->value.length = 0;
    return add_text(&source->value, text, strlen(text));
}

/* inih's handler: called for a name with its value, and again for each further line of the value. Returns 1, or 0 after fail(). */
static int take_text(void *user, const char *section, const char *name, const char *text) {
    struct ini_source *source = user;
    source->unknown = NULL;
    int result = source->is_piece ? add_text(&source->value, text + 1, strlen(text) - 2) : begin_value(source, section, name, text);
    if (result) source->failed = 1;
    return !result;
}

/* If a value was being read, it is complete now: sets its key. */
static int end_value(struct ini_source *source) {
    char place[WHERE];
    const struct config_key *key = source->value.key;
    if (!key) return 0;
    unsigned line = source->value.line, *before = &source->key_lines[key - config_keys];
    source->value.key = NULL;
    if (config_set(source->config, key->section, key->key, source->value.text, place_of(source, line, place))) return -1;
    if (*before) warn("%s: %s was set on line %u already; this line counts", place_of(source, line, place), key->name, *before);
    *before = line;
    return 0;
}

/* ---- the lines of the file ---- */

/* Returns the next line, or NULL after the last. LF, CR and CRLF end a line. */
static char *next_line(struct ini_source *source) {
    char *line = source->at, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    source->at = *end ? end + 1 + (end[0] == '\r' && end[1] == '\n') : end;
    source->line++;
    *end = 0;
    return line;
}

/* Returns 1 if a line of an INI file is a comment. `text`: its first byte that is not blank. */
static int config_is_comment(const char *text) {
    return *text == '#' || *text == ';';
}

/* Removes a comment from a value: it begins at a ';' after a blank, as in most INI files. */
static char *without_comment(char *value) {
    for (char *at = strchr(value, ';'); at; at = strchr(at + 1, ';'))
        if (at == value || isspace((unsigned char)at[-1])) {
            *at = 0;
            break;
        }
    return text_strip(value);
}

static int refuse_line(const struct ini_source *source, const char *line) {
    char place[WHERE];
    return fail("%s: '%.100s' is neither [section] nor key = value", place_of(source, source->line, place), line);
}

/* Finds the name in "[name]". */
static int read_section(const struct ini_source *source, char *line, const char **name) {
    char place[WHERE], *end = strchr(line, ']');
    const char *where = place_of(source, source->line, place);
    if (!end) return refuse_line(source, line);
    char *rest = text_strip(end + 1);
    if (*rest && !config_is_comment(rest))
        return fail("%s: '%.100s' stands after the section; write it on a line of its own", where, rest);
    *end = 0;
    *name = text_strip(line + 1);
    return config_is_section(*name) ? 0 : config_refuse_section(*name, where, fail);
}

/* Returns 1 if an indented line sets a key instead of continuing the value above it, since people also indent keys. An unknown name counts, too:
 * it is then refused, and does not silently become part of a value. But "lang=en/a.txt" is a path. */
static int sets_a_key(const char *line) {
    char name[64];
    size_t length = strcspn(line, "=: \t\v\f\"/"), gap = strspn(line + length, " \t\v\f");
    const char *sign = line + length + gap;
    if (!length || (*sign != '=' && *sign != ':')) return 0;
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    return gap || isspace((unsigned char)sign[1]) || !strchr(sign, '/') || config_full_name(name, 0);
}

/* ---- output: each function writes a line of at most size - 1 bytes to `out`, and returns 0, or -1 after fail() ---- */

static int put_piece(struct ini_source *source, char *out, int size) {
    size_t length = strnlen(source->rest, (size_t)size - sizeof " ..");
    sprintf(out, " .%.*s.", (int)length, source->rest);
    source->rest = source->rest[length] ? source->rest + length : NULL;
    source->is_piece = 1;
    return 0;
}

static int put_section(struct ini_source *source, char *line, char *out, int size) {
    const char *name;
    if (read_section(source, line, &name)) return -1;
    snprintf(out, (size_t)size, "[%s]", name);
    return 0;
}

/* Writes "name=value". Cuts off a line without '=', or a name longer than any key's, since inih does not understand it anyway. */
static int put_key(struct ini_source *source, char *line, size_t indent, char *out, int size) {
    size_t name = strcspn(line, "=:");
    source->unknown = line;
    source->value.indent = indent;
    if (!line[name]) {
        snprintf(out, (size_t)size, "%s", line);
        return 0;
    }
    char *value = without_comment(line + name + 1);
    line[name] = 0;
    if (snprintf(out, (size_t)size, "%.100s=%s", text_strip(line), value) < size) return 0;
    snprintf(out, (size_t)size, "%.100s=", text_strip(line));
    source->rest = value;
    return 0;
}

/* Beginning of the comment that says what was found in the corpus. */
static const char said_mark[] = "# columns    ";

/* Writes the next line that is neither empty nor a comment; writes nothing at the end of the file. */
static int put_line(struct ini_source *source, char *out, int size) {
    for (char *raw; (raw = next_line(source));) {
        size_t indent = strspn(raw, " \t\v\f");
        char *line = text_strip(raw);
        if (!strncmp(line, said_mark, strlen(said_mark)))
            snprintf(source->config->said, sizeof source->config->said, "%s", line + strlen(said_mark) - strlen("columns    "));
        if (!*line || config_is_comment(line)) continue;
        if (source->value.key && indent > source->value.indent && *line != '[' && !sets_a_key(line)) {
            source->rest = without_comment(line);
            return add_text(&source->value, " ", 1) ? -1 : put_piece(source, out, size);
        }
        if (end_value(source)) return -1;
        return *line == '[' ? put_section(source, line, out, size) : put_key(source, line, indent, out, size);
    }
    return end_value(source);
}

/* inih's reader: writes the next line to `out`. Returns NULL at the end of the file, or after an error. */
static char *hand_over(char *out, int size, void *user) {
    struct ini_source *source = user;
    if (source->failed || source->unknown) return NULL;
    source->is_piece = 0;
    *out = 0;
    source->failed = source->rest ? put_piece(source, out, size) : put_line(source, out, size);
    return *out && !source->failed ? out : NULL;
}

int config_read_text(struct config *config, char *text, const char *path) {
    struct ini_source source = {.config = config, .path = path, .at = text};
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) source.at += 3; /* a byte order mark */
    int result = ini_parse_stream(hand_over, &source, take_text, &source);
    free(source.value.text);
    if (source.unknown) return refuse_line(&source, source.unknown);
    if (source.failed) return -1;
    return result ? fail("'%s' cannot be read as an INI file", path) : 0;
}

/* config_read: reads an INI file, if it looks like one, and names a run that has no run.dir. */

/* ---- what a run is called ---- */

static int ends_with(const char *text, size_t length, const char *ending) {
    size_t n = strlen(ending);
    return length > n && !strncmp(text + length - n, ending, n);
}

/* Sets config->name to the last part of `path`, without these endings; not to a name such as "..", which would lead out of runs/. */
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

/* Names the config after its file: "configs/Gowalla.ini" becomes "Gowalla". A pipe has no useful name. */
static int take_file_name(struct config *config, const char *path) {
    static const char *const endings[] = {".ini", NULL};
    struct stat about;
    return stat(path, &about) || !S_ISREG(about.st_mode) ? 0 : take_name(config, path, endings);
}

/* Names the config after its corpus: "data/books.csv.gz" becomes "books". */
int config_take_corpus_name(struct config *config) {
    static const char *const endings[] = {".gz", ".zst", ".xz", ".bz2", ".txt", ".csv", ".tsv", ".ids", NULL};
    char **paths;
    int64_t count = config_paths("corpus.path", config->corpus_path, &paths);
    int result = count < 0 ? -1 : 0;
    if (count > 0 && strcmp(paths[0], CORPUS_INPUT)) result = take_name(config, paths[0], endings);
    mem_free_texts(paths, count);
    return result;
}

/* ---- from a file ---- */

enum { LONGEST_FILE = 16 << 20 }; /* bytes; a longer file is no configuration */

/* Returns 1 if a line may set a key: one word before '=' or ':'. */
static int is_key_line(const char *line, size_t length) {
    size_t name = strcspn(line, "=:");
    if (name >= length) return 0;
    while (name && isspace((unsigned char)line[name - 1])) name--;
    for (size_t i = 0; i < name; i++)
        if (isspace((unsigned char)line[i]) || iscntrl((unsigned char)line[i])) return 0;
    return name > 0;
}

/* Returns 1 if the first line of `head` that is neither empty nor a comment may be one of an INI file, or if there is no such line. */
static int begins_as_ini(const char *head) {
    if (!strncmp(head, "\xEF\xBB\xBF", 3)) head += 3;
    for (;;) {
        head += strspn(head, " \t\v\f\r\n");
        size_t length = strcspn(head, "\r\n");
        if (!*head || *head == '[') return 1;
        if (!config_is_comment(head)) return is_key_line(head, length);
        head += length;
    }
}

/* Refuses a file that does not look like a configuration; most likely the user named the corpus, which may be long and compressed. */
static int check_head(const char *path) {
    char head[4096] = "";
    int kind = file_head(path, head, sizeof head);
    OWNED char *of_run = kind == 2 && directory_exists(path) == 1 ? file_join(path, "config.ini") : NULL;
    if (of_run && file_exists(of_run) == 1)
        return fail("'%s' is a directory, and the configuration of the run in it is '%s': write that instead", path, of_run);
    if (of_run)
        return fail("'%s' is a directory and no configuration; if its files are what is to be trained, write --corpus.path=%s",
                    path, path);
    if (kind != 1 || begins_as_ini(head)) return kind < 0 ? -1 : 0;
    return fail("'%s' is no configuration: it does not begin with [section]; if it is what is to be trained, write --corpus.path=%s",
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

int config_read(struct config *config, const char *path) {
    OWNED char *text = config_file(path);
    int result = text ? config_read_text(config, text, path) : -1;
    return result ? -1 : take_file_name(config, path);
}

/* config_write: writes keys as an INI file and as help, and compares them with those of another config. */

/* Writes a text in lines of at most `width` bytes, each after `indent`. */
static void put_wrapped(struct json *out, const char *indent, size_t width, const char *text) {
    size_t column = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t word = strcspn(text, " ");
        int breaks = column && column + 1 + word > width;
        if (breaks) json_print(out, "\n"), column = 0;
        json_print(out, "%s%.*s", column ? " " : indent, (int)word, text);
        column += (column ? 1 : strlen(indent)) + word;
        text += word;
    }
    if (column) json_print(out, "\n");
}

/* Writes a number with the fewest digits from which the same number is read back. */
static void format_real(double value, char *out, size_t capacity) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, capacity, "%.*g", digits, value);
        if (numbers_read(out, NULL) == value) return;
    }
}

static void format_bytes(uint64_t bytes, char *out, size_t capacity) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (unit < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, unit++;
    snprintf(out, capacity, "%" PRIu64 "%s", bytes, units[unit]);
}

const char *config_text_of(const struct config *config, const struct config_key *key, char text[CONFIG_BYTES]) {
    switch (key->type) {
    case TYPE_TEXT:
        return *config_text(config, key);
    case TYPE_COUNT:
    case TYPE_BYTES:
        if (*config_count(config, key) == COUNT_AUTO) return "auto";
        if (*config_count(config, key) == COUNT_ALL && config_has_all(key)) return "all";
        if (key->type == TYPE_BYTES)
            format_bytes(*config_count(config, key), text, CONFIG_BYTES);
        else
            snprintf(text, CONFIG_BYTES, "%" PRIu64, *config_count(config, key));
        break;
    case TYPE_REAL:
        if (isnan(*config_real(config, key))) return "auto";
        format_real(*config_real(config, key), text, CONFIG_BYTES);
        break;
    case TYPE_TRUTH:
        return *config_int(config, key) == TRUTH_AUTO ? "auto" : *config_int(config, key) ? "yes" : "no";
    case TYPE_CHOICE:
        return config_choices(key)->name[*config_int(config, key)];
    }
    return text;
}

/* Writes each line of a text, wrapped; changes the text. Lines that begin with two blanks are indented deeper. */
static void put_lines(struct json *out, const char *indent, size_t width, char *text) {
    char deeper[16];
    snprintf(deeper, sizeof deeper, "%s  ", indent);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        put_wrapped(out, strncmp(line, "  ", 2) ? indent : deeper, width, line);
    }
}

/* Writes a key's help, its possible values (after the first line of the help), and its defaults by the size of the data: at the
 * beginning of the help's own list of defaults, if it has one. */
static void put_key_help(struct json *out, const struct config_key *key, const char *indent, size_t width) {
    char kind[256], text[2048], sizes[DEFAULTS_HELP];
    int first = (int)strcspn(key->help, "\n");
    config_describe(key, kind, sizeof kind);
    if (key->type == TYPE_TEXT)
        snprintf(text, sizeof text, "%s", key->help);
    else
        snprintf(text, sizeof text, "%.*s (%s)%s", first, key->help, kind, key->help + first);
    if (defaults_describe(key->name, sizes)) out->failed = 1;
    static const char head[] = "by the first of these lines that fits the run:\n";
    char *list = strstr(text, head), *rest = list ? list + strlen(head) : NULL;
    if (*sizes && !list)
        put_lines(out, indent, width, text),
            put_wrapped(out, indent, width, "default by the size of the data: the first of these lines that fits; if none does, the default above:");
    if (*sizes && list) rest[-1] = 0, put_lines(out, indent, width, text);
    put_lines(out, indent, width, *sizes ? sizes : text);
    if (*sizes && list) put_lines(out, indent, width, rest);
}

static void put_keys(struct json *out, const struct config *config, int help, int section) {
    char text[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++) {
        if (strcmp(config_keys[i].section, config_sections[section].name)) continue;
        if (help) json_print(out, "\n"), put_key_help(out, &config_keys[i], "# ", 110);
        const char *value = config_text_of(config, &config_keys[i], text);
        json_print(out, "%s =%s%s\n", config_keys[i].key, *value ? " " : "", value);
    }
}

int config_format(const struct config *config, int help, char **text) {
    struct json out = {.used = 0};
    for (int i = 0; i < CONFIG_SECTIONS; i++) {
        if (i) json_print(&out, "\n");
        if (help) json_print(&out, "# %s\n", config_sections[i].help);
        json_print(&out, "[%s]\n", config_sections[i].name);
        if (!i && *config->said) json_print(&out, "# %s\n", config->said);
        put_keys(&out, config, help, i);
    }
    int failed = out.failed;
    if (failed)
        json_release(&out);
    else
        *text = out.bytes;
    return failed ? -1 : 0;
}

int config_write(const struct config *config, int help, struct file_writer *writer) {
    OWNED char *text = NULL;
    if (config_format(config, help, &text)) return -1;
    return file_write(writer, text, strlen(text));
}

char *config_value(const struct config *config, const char *section, const char *key) {
    char text[CONFIG_BYTES];
    const struct config_key *found = config_find_key(section, key);
    if (!found) {
        fail("there is no key %s.%s", section, key);
        return NULL;
    }
    const char *value = config_text_of(config, found, text);
    return mem_text(value, strlen(value), "the configuration");
}

/* The keys that nearly every run sets, in the order in which newcomers ask for them. */
static const char *const matter_most[] = {"corpus.path",      "corpus.format",    "run.dir",         "model.dim",
                                          "train.epochs",     "optimizer.lr",     "examples.window", "negatives.count",
                                          "corpus.min_count", "memory.gpu_budget"};
enum { MATTER_MOST = sizeof matter_most / sizeof *matter_most };

static int matters_most(const struct config_key *key) {
    for (int i = 0; i < MATTER_MOST; i++)
        if (!strcmp(key->name, matter_most[i])) return 1;
    return 0;
}

static void put_manual_key(struct json *out, const struct config_key *key) {
    json_print(out, "\n  %s = %s\n", key->name, *key->fallback ? key->fallback : "\"\"");
    put_key_help(out, key, "      ", 118);
}

static void put_named(struct json *out, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < CONFIG_KEYS; k++)
            if (!strcmp(config_keys[k].name, names[i])) put_manual_key(out, &config_keys[k]);
}

static int put_out(struct json *out, FILE *file) {
    int failed = out->failed;
    if (!failed) fputs(out->bytes, file);
    json_release(out);
    return failed ? -1 : 0;
}

/* Prints the keys of a section. all = 0: of the keys that matter most only the names. */
static void put_group(struct json *out, const struct config_section *section, int all) {
    json_print(out, "\n[%s]  %s\n", section->name, section->help);
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct config_key *key = &config_keys[k];
        if (strcmp(key->section, section->name)) continue;
        if (!all && matters_most(key))
            json_print(out, "\n  %s: above\n", key->name);
        else
            put_manual_key(out, key);
    }
}

int config_print_help(FILE *file) {
    struct json out = {.used = 0};
    put_wrapped(&out, "", 118,
                "Keys of a configuration file (INI): [section], then lines key = value; '#' or ';' begins a comment, and a value may continue in "
                "lines that are indented deeper. On the command line --section.key=value sets a key. Numbers may be written 1e6 or 2_000_000, "
                "sizes 11GiB or 512MB, yes and no also true, false, on, off.");
    json_print(&out, "\n");
    put_wrapped(&out, "", 118,
                "The value after '=' here is a key's default. If it is auto, the program chooses the value by other keys, the data or the machine, "
                "as the key's help says. In these texts window, cbow, list, adjacency, user, walk, triple and counts are runs with this "
                "examples.mode; documents are runs with corpus.format = documents (user then means lists only); subwords are window or cbow "
                "with examples.subwords. In a list of defaults, a line for examples.mode = user is not for documents, and a line for window is "
                "not for subwords. The ten keys that matter most come first, then all others by section.");
    json_print(&out, "\nThe ten that matter most\n");
    put_named(&out, matter_most, MATTER_MOST);
    for (int i = 0; i < CONFIG_SECTIONS; i++) put_group(&out, &config_sections[i], 0);
    return put_out(&out, file);
}

int config_print_key(FILE *file, const char *name) {
    struct json out = {.used = 0};
    const char *names[CONFIG_KEYS];
    for (int k = 0; k < CONFIG_KEYS; k++) names[k] = config_keys[k].name;
    put_named(&out, &name, 1);
    for (int i = 0; i < CONFIG_SECTIONS; i++)
        if (!strcmp(config_sections[i].name, name)) put_group(&out, &config_sections[i], 1);
    if (out.used || out.failed) return put_out(&out, file);
    const char *near = text_nearest(name, names, CONFIG_KEYS);
    if (near) return fail_usage("there is no key '%.100s'; did you mean '%s'?", name, near);
    return fail_usage("there is no key '%.100s'; 'sptx-w2v help keys' lists them", name);
}

int config_print_formats(FILE *file) {
    static const char *const names[] = {"corpus.format", "corpus.columns", "corpus.separator", "corpus.header", "corpus.names", "corpus.events",
                                        "corpus.min_rating", "corpus.weights", "corpus.literals", "graph.directed", "graph.weights"};
    struct json out = {.used = 0};
    put_wrapped(&out, "", 118,
                "What a file of data may look like. corpus.format says what its lines are; the other keys below are found in the first lines of "
                "each file, and the line 'columns' of train, plan and evaluate says what was found. A key that is set replaces what would be found.");
    json_print(&out, "\n  sptx-w2v plan --corpus.path=FILE --corpus.format=pairs      only looks, and trains nothing\n");
    put_named(&out, names, sizeof names / sizeof *names);
    return put_out(&out, file);
}

/* ---- comparing ---- */

static int changes_numbers(const struct config_key *key) {
    static const char *const others[] = {"train.epochs", "train.steps", "train.report_seconds", "train.merge_every", "corpus.cache",
        "corpus.max_word", "corpus.item_features", "corpus.list_features", "corpus.feature_words", "train.evaluate"};
    if (!strcmp(key->section, "run") || !strcmp(key->section, "device") || !strcmp(key->section, "memory")) return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(key->name, others[i])) return 0;
    return 1;
}

const char *config_difference(const struct config *a, const struct config *b) {
    char text_a[CONFIG_BYTES], text_b[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (b->given[i] && changes_numbers(&config_keys[i]) &&
            strcmp(config_text_of(a, &config_keys[i], text_a), config_text_of(b, &config_keys[i], text_b)))
            return config_keys[i].name;
    return NULL;
}

int config_differences(const struct config *a, const struct config *b, char *out, size_t capacity) {
    char text_a[CONFIG_BYTES], text_b[CONFIG_BYTES];
    size_t used = 0;
    int left = 0; /* number of differing keys that do not fit into `out` */
    *out = 0;
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const char *of_a = config_text_of(a, &config_keys[i], text_a), *of_b = config_text_of(b, &config_keys[i], text_b);
        if (!changes_numbers(&config_keys[i]) || !strcmp(of_a, of_b)) continue;
        size_t length = strlen(config_keys[i].name) + strlen(of_a) + strlen(of_b) + sizeof ",  =  ()" + sizeof ", and 200 others";
        if (used + length > capacity) left++;
        else used = text_add(out, capacity, used, "%s%s = %s (%s)", used ? ", " : "", config_keys[i].name, of_a, of_b);
    }
    if (left) used = text_add(out, capacity, used, "%s%d other%s", used ? ", and " : "", left, text_plural((uint64_t)left));
    return used > 0;
}

void config_copy_value(struct config *to, const struct config *from, const struct config_key *key) {
    if (key->type == TYPE_TEXT)
        config_put_text(config_text(to, key), *config_text(from, key));
    else if (key->type == TYPE_COUNT || key->type == TYPE_BYTES)
        *config_count(to, key) = *config_count(from, key);
    else if (key->type == TYPE_REAL)
        *config_real(to, key) = *config_real(from, key);
    else
        *config_int(to, key) = *config_int(from, key);
}

void config_settle(struct config *config, const struct config *settled) {
    char text[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_key *key = &config_keys[i];
        if (!changes_numbers(key) || strcmp(config_text_of(config, key, text), "auto")) continue;
        if (key->type != TYPE_TEXT || !strcmp(key->name, "corpus.columns")) config_copy_value(config, settled, key);
    }
}
