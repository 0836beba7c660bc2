#define _GNU_SOURCE
#include "text.h"

#include "memory.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Splits a text such as "11 GiB" into number and unit. Ignores underscores between digits. */
static int number_and_unit(const char *text, double *value, char unit[8]) {
    char digits[64];
    size_t n = 0;
    while (isspace((unsigned char)*text)) text++;
    if (*text == 0) return -1;
    for (; *text && n + 1 < sizeof digits; text++) {
        if (*text == '_' && n && isdigit((unsigned char)digits[n - 1]) && isdigit((unsigned char)text[1])) continue;
        digits[n++] = *text;
    }
    if (*text) return -1;
    digits[n] = 0;
    const char *first = digits + (*digits == '-' || *digits == '+');
    if (!isdigit((unsigned char)*first) && *first != '.') return -1; /* no nan, no infinity */
    if (strpbrk(digits, "xX")) return -1;                            /* no hexadecimal */
    char *end;
    errno = 0;
    *value = numbers_read(digits, &end);
    if (end == digits || !isfinite(*value)) return -1;
    while (isspace((unsigned char)*end)) end++;
    size_t length = strcspn(end, " \t\r\n");
    if (length > 7 || end[length + strspn(end + length, " \t\r\n")]) return -1;
    memcpy(unit, end, length);
    unit[length] = 0;
    return 0;
}

static int whole(double value, uint64_t *out) {
    if (value < 0 || value >= 9.2e18 || value != floor(value)) return -1;
    *out = (uint64_t)value;
    return 0;
}

int text_count(const char *text, uint64_t *value) {
    /* Plain digits are read as an integer, so that ids above 2^53 stay exact. */
    while (isspace((unsigned char)*text)) text++;
    if (isdigit((unsigned char)*text)) {
        char *end;
        errno = 0;
        unsigned long long plain = strtoull(text, &end, 10);
        while (isspace((unsigned char)*end)) end++;
        if (!*end && !errno && plain <= INT64_MAX) {
            *value = plain;
            return 0;
        }
    }
    double number;
    char unit[8];
    if (number_and_unit(text, &number, unit) || unit[0]) return -1;
    return whole(number, value);
}

int text_real(const char *text, double *value) {
    char unit[8];
    if (number_and_unit(text, value, unit)) return -1;
    return unit[0] ? -1 : 0;
}

int text_bytes(const char *text, uint64_t *value) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},          {"B", 1},          {"K", 1024.0},       {"KB", 1e3},        {"KiB", 1024.0},
                 {"M", 1048576.0}, {"MB", 1e6},       {"MiB", 1048576.0},  {"G", 1073741824.0}, {"GB", 1e9},
                 {"GiB", 1073741824.0}, {"T", 1099511627776.0}, {"TB", 1e12}, {"TiB", 1099511627776.0}};
    double number;
    char unit[8];
    if (number_and_unit(text, &number, unit)) return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(unit, units[i].name)) return whole(floor(number * units[i].bytes), value);
    return -1;
}

int text_time(const char *text, double *seconds) {
    double number;
    char unit[8];
    if (number_and_unit(text, &number, unit) || number < 0) return -1;
    if (!unit[0] || !strcmp(unit, "s")) *seconds = number;
    else if (!strcmp(unit, "m") || !strcmp(unit, "min")) *seconds = number * 60;
    else if (!strcmp(unit, "h")) *seconds = number * 3600;
    else if (!strcmp(unit, "d")) *seconds = number * 86400;
    else return -1;
    return 0;
}

int text_truth(const char *text, int *value) {
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    char word[8];
    size_t n = 0;
    while (isspace((unsigned char)*text)) text++;
    while (*text && !isspace((unsigned char)*text) && n < 7) word[n++] = *text++;
    word[n] = 0;
    while (isspace((unsigned char)*text)) text++;
    if (*text) return -1;
    for (int i = 0; i < 8; i++)
        if (!strcasecmp(word, words[i])) {
            *value = i & 1;
            return 0;
        }
    return -1;
}

size_t text_add(char *out, size_t capacity, size_t at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out + at, capacity - at, format, args);
    va_end(args);
    if (length < 0)
        out[at] = 0;
    else
        at += (size_t)length < capacity - at ? (size_t)length : capacity - at - 1;
    return at;
}

char *text_of_bytes(char *out, uint64_t bytes) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int i = 0;
    while (value >= 1024 && i < 5) value /= 1024, i++;
    snprintf(out, TEXT_BYTES, i == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, names[i]);
    return out;
}

char *text_of_count(char *out, uint64_t count) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

char *text_of_rate(char *out, double value) {
    const char *name = "";
    if (value >= 1e9) value /= 1e9, name = " G";
    else if (value >= 1e6) value /= 1e6, name = " M";
    else if (value >= 1e3) value /= 1e3, name = " k";
    snprintf(out, TEXT_BYTES, value < 10 ? "%.2f%s" : value < 100 ? "%.1f%s" : "%.0f%s", value, name);
    return out;
}

char *text_of_time(char *out, double seconds) {
    if (!(seconds >= 0) || seconds > 1e9)
        snprintf(out, TEXT_BYTES, "?");
    else if (seconds < 9.95)
        snprintf(out, TEXT_BYTES, "%.1fs", seconds);
    else if (seconds < 60)
        snprintf(out, TEXT_BYTES, "%.0fs", seconds);
    else if (seconds < 3600)
        snprintf(out, TEXT_BYTES, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(out, TEXT_BYTES, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    return out;
}

unsigned text_utf8(const char *text, uint64_t left) {
    const unsigned char *at = (const unsigned char *)text;
    if (*at < 0x80) return 1;
    unsigned length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;
    if (*at < 0xC2 || *at > 0xF4 || left < length) return 0;
    for (unsigned i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F)) return 0;
    if ((*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F)) return 0;
    return length;
}

uint64_t text_mark(const char *text, uint64_t length) {
    static const char mark[] = "\xEF\xBB\xBF";
    return length >= sizeof mark - 1 && !memcmp(text, mark, sizeof mark - 1) ? sizeof mark - 1 : 0;
}

char *text_strip(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) n--;
    text[n] = 0;
    return text;
}

/* Returns how many edits one word needs to become the other: insertions, deletions, changes, swaps of neighbouring letters (optimal string
 * alignment). */
static unsigned edits(const char *a, const char *b) {
    enum { LONGEST = 63 };
    size_t n = strlen(a), m = strlen(b);
    unsigned rows[3][LONGEST + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    if (n > LONGEST || m > LONGEST) return 1000;
    for (size_t j = 0; j <= m; j++) above[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        unsigned *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[m];
}

const char *text_nearest(const char *word, const char *const *names, size_t count) {
    const char *best = NULL;
    unsigned fewest = (unsigned)strlen(word) / 2 + 1;
    if (fewest > 4) fewest = 4;
    for (size_t i = 0; i < count; i++) {
        unsigned n = edits(word, names[i]);
        if (n && n < fewest) fewest = n, best = names[i];
    }
    return best;
}

/* Returns the C library's built-in C locale: nothing is allocated, so this cannot fail and nothing must be freed. */
static locale_t c_locale(void) {
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t numbers_enter(void) {
    return uselocale(c_locale());
}

void numbers_leave(locale_t before) {
    uselocale(before);
}

double numbers_read(const char *text, char **end) {
    return strtod_l(text, end, c_locale());
}

float numbers_read_float(const char *text, char **end) {
    return strtof_l(text, end, c_locale());
}

enum { ESCAPED_BYTES = 6 }; /* \u003c */

void json_release(struct json *json) {
    free(json->bytes);
    *json = (struct json){.used = 0};
}

/* Makes room for `length` more bytes and a NUL. Returns where they begin; NULL if memory is short. */
static char *more(struct json *json, uint64_t length) {
    if (!json->failed && mem_grow(&json->bytes, &json->capacity, json->used + length + 1, 1, "a text")) json->failed = 1;
    return json->failed ? NULL : json->bytes + json->used;
}

void json_print(struct json *json, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = length < 0 ? NULL : more(json, (uint64_t)length);
    if (!at) return;
    va_start(args, format);
    vsnprintf(at, (size_t)length + 1, format, args);
    va_end(args);
    json->used += (uint64_t)length;
}

/* ---- strings ---- */

/* Returns 1 for characters that are written as \u escapes: control characters, quotes, backslashes, <, > and &. The last byte of each is its
 * Unicode number, even for a C1 control character, which has two bytes. */
static int is_escaped(const unsigned char *at) {
    return *at < 0x20 || *at == 0x7F || *at == '"' || *at == '\\' || *at == '<' || *at == '>' || *at == '&' ||
           (*at == 0xC2 && at[1] < 0xA0);
}

void json_string(struct json *json, const char *text, uint64_t length) {
    uint64_t most;
    if (__builtin_mul_overflow(length, (uint64_t)ESCAPED_BYTES, &most)) most = UINT64_MAX / 2;
    char *out = more(json, most + 2);
    if (!out) return;
    *out++ = '"';
    for (const unsigned char *at = (const unsigned char *)text, *end = at + length; at < end;) {
        unsigned bytes = text_utf8((const char *)at, (uint64_t)(end - at));
        if (!bytes || is_escaped(at)) {
            out += snprintf(out, ESCAPED_BYTES + 1, "\\u%04x", bytes ? at[bytes - 1] : 0xFFFD);
            at += bytes ? bytes : 1;
        } else {
            memcpy(out, at, bytes);
            out += bytes;
            at += bytes;
        }
    }
    *out++ = '"';
    *out = 0;
    json->used = (uint64_t)(out - json->bytes);
}

char *json_of(char *out, double value) {
    if (isfinite(value))
        snprintf(out, JSON_NUMBER, "%.6g", value);
    else
        strcpy(out, "null");
    return out;
}

void json_number(struct json *json, double value) {
    char number[JSON_NUMBER];
    json_print(json, "%s", json_of(number, value));
}

void json_decimals(struct json *json, double value, int decimals) {
    if (isfinite(value))
        json_print(json, "%.*f", decimals, value);
    else
        json_print(json, "null");
}

void json_base64(struct json *json, const void *data, uint64_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = data;
    char *out = more(json, length / 3 * 4 + 4 + 2);
    if (!out) return;
    *out++ = '"';
    for (uint64_t i = 0; i < length; i += 3) {
        uint64_t left = length - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[three & 63] : '=';
    }
    *out++ = '"';
    *out = 0;
    json->used = (uint64_t)(out - json->bytes);
}
