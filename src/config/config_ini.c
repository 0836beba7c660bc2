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
#include "config_keys.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char *rest;          /* rest of a long value, not yet given to inih; NULL: nothing is left */
    int is_piece;        /* 1: the last line given to inih was a span of a value */
    const char *unknown; /* the last line given to inih; its handler sets this to NULL, so a line that inih did not understand is
                          * left here */
    struct value value;
    unsigned key_lines[CONFIG_KEYS]; /* number of the line that set each key; 0: not set */
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

/* inih's handler, called for a name with its value, and again for each further line of a value. Returns 1, or 0 after fail(). */
static int take_text(void *user, const char *section, const char *name, const char *text) {
    struct ini_source *source = user;
    source->unknown = NULL;
    int result = source->is_piece ? add_text(&source->value, text + 1, strlen(text) - 2) : begin_value(source, section, name, text);
    if (result) source->failed = 1;
    return !result;
}

/* Sets the key whose value has ended, if a value was being read. */
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

int config_is_comment(const char *text) {
    return *text == '#' || *text == ';';
}

/* Removes a comment from a value: a ';' after a blank begins one, as in most INI files. */
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

/* Returns 1 if an indented line sets a key and does not continue the value above it, since people also indent keys. A name that
 * is no key counts, too: it is then refused, and does not silently become part of a value. But "lang=en/a.txt" is a path. */
static int sets_a_key(const char *line) {
    char name[64];
    size_t length = strcspn(line, "=: \t\v\f\"/"), gap = strspn(line + length, " \t\v\f");
    const char *sign = line + length + gap;
    if (!length || (*sign != '=' && *sign != ':')) return 0;
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    return gap || isspace((unsigned char)sign[1]) || !strchr(sign, '/') || config_full_name(name, 0);
}

/* Returns 1 if a line continues the value above: if it is indented more than the value's first line. */
static int goes_on(const struct ini_source *source, const char *line, size_t indent) {
    return source->value.key && indent > source->value.indent && *line != '[' && !sets_a_key(line);
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

/* Writes "name=value". A line without '=' is truncated, since inih does not understand it anyway; so is a name longer than any
 * key's. */
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

/* Writes the next line that is neither empty nor a comment; writes nothing at the end of the file. */
static int put_line(struct ini_source *source, char *out, int size) {
    for (char *raw; (raw = next_line(source));) {
        size_t indent = strspn(raw, " \t\v\f");
        char *line = text_strip(raw);
        if (!*line || config_is_comment(line)) continue;
        if (goes_on(source, line, indent)) {
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
