#include "columns.h"

#include <string.h>

int column_meaning(const char *name, uint64_t length) {
    static const struct {
        int meaning;
        const char *const names[40];
    } known[] = {
#define COLUMN(meaning, ...) {meaning, {__VA_ARGS__}},
#include "columns.def"
    };
    char plain[32];
    uint64_t n = 0;
    for (uint64_t i = 0; i < length; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 'a' - 'A') : name[i];
        int counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 128;
        if (counts && n == sizeof plain - 1) return -1;
        if (counts) plain[n++] = c;
    }
    plain[n] = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (const char *const *at = known[k].names; *at; at++)
            if (!strcmp(*at, plain)) return known[k].meaning;
    return -1;
}

static int is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

/* Returns where the next separator begins, or `end`. */
static char *find_separator(char *at, char *end, const char *separator) {
    uint64_t length = strlen(separator);
    while (*separator == ' ' && at < end && !is_blank(*at)) at++;
    while (*separator != ' ' && at < end) {
        char *found = memchr(at, *separator, (size_t)(end - at));
        if (!found) return end;
        if ((uint64_t)(end - found) >= length && !memcmp(found, separator, length)) return found;
        at = found + 1;
    }
    return at;
}

/* Takes what stands between double quotes, the first of which is at `at`. Returns the place behind the last one. */
static char *take_quoted(struct table_line *columns, char *at, char *end, int keep, char **word, uint64_t *length) {
    char *out = *word = ++at;
    for (; at < end; at++) {
        if (*at == '"' && (at + 1 == end || at[1] != '"')) break;
        at += *at == '"' && at + 1 < end;
        if (keep)
            out = at + 1;
        else
            *out++ = *at;
    }
    while (*word < out && is_blank(**word)) ++*word;
    while (out > *word && is_blank(out[-1])) out--;
    *length = (uint64_t)(out - *word);
    columns->quoted |= at < end;
    columns->open |= at == end;
    return at < end ? at + 1 : end;
}

static void put(struct table_line *columns, const char *word, uint64_t length) {
    columns->hole |= !length;
    if (columns->count < COLUMNS_READ) {
        columns->word[columns->count] = word;
        columns->length[columns->count] = length;
    }
    columns->count++;
}

void columns_part(struct table_line *columns, char *at, char *end, const char *separator, int keep) {
    int blanks = *separator == ' ', more = 1;
    columns->count = 0;
    columns->hole = columns->open = columns->quoted = 0;
    while (more) {
        while (at < end && is_blank(*at) && *at != *separator) at++;
        while (blanks && at < end && is_blank(*at)) at++;
        if (blanks && at == end) return;
        int quoted = at < end && *at == '"';
        char *word = at, *stop;
        uint64_t length = 0;
        if (quoted) at = take_quoted(columns, at, end, keep, &word, &length);
        stop = find_separator(at, end, separator);
        while (stop > at && is_blank(stop[-1])) stop--;
        if (quoted)
            columns->open |= stop > at;
        else
            length = (uint64_t)(stop - word);
        put(columns, word, length);
        at = find_separator(stop, end, separator);
        more = at < end;
        at += more ? strlen(separator) : 0;
    }
}

const char *columns_separator(const char *at, const char *end) {
    static const char *const separators[] = {"::", "\t", ";", "|", ","};
    uint64_t counts[5] = {0};
    int quoted = 0, best = 0;
    for (; at < end; at++) {
        quoted ^= *at == '"';
        for (int s = 0; s < 5 && !quoted; s++)
            counts[s] += *at == *separators[s] && (s || (at + 1 < end && at[1] == ':'));
    }
    for (int s = 1; s < 5; s++)
        if (counts[s] > counts[best]) best = s;
    return counts[best] ? separators[best] : " ";
}
