#include "columns.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

int column_meaning(enum column_set set, const char *name, uint64_t length) {
    static const struct {
        int set, meaning;
        const char *const names[40];
    } known[] = {
#define COLUMN(set, meaning, ...) {set, meaning, {__VA_ARGS__}},
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
        for (const char *const *at = known[k].names; *at && known[k].set == (int)set; at++)
            if (!strcmp(*at, plain)) return known[k].meaning;
    return -1;
}

/* Returns where the next separator begins, or `end`. */
static char *find_separator(char *at, char *end, const char *separator) {
    uint64_t length = strlen(separator);
    while (*separator == ' ' && at < end && !text_is_blank(*at)) at++;
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
    while (*word < out && text_is_blank(**word)) ++*word;
    while (out > *word && text_is_blank(out[-1])) out--;
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
        while (at < end && text_is_blank(*at) && *at != *separator) at++;
        while (blanks && at < end && text_is_blank(*at)) at++;
        if (blanks && at == end) return;
        int quoted = at < end && *at == '"';
        char *word = at, *stop;
        uint64_t length = 0;
        if (quoted) at = take_quoted(columns, at, end, keep, &word, &length);
        stop = find_separator(at, end, separator);
        while (stop > at && text_is_blank(stop[-1])) stop--;
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

/* ---- lines ---- */

/* The kinds of bytes in a line of the free form. */
enum { IN_WORD, BETWEEN, COMMA, LINE_END };
static const unsigned char byte_kinds[256] = {
    [' '] = BETWEEN, ['\t'] = BETWEEN, ['\r'] = BETWEEN, ['\v'] = BETWEEN, ['\f'] = BETWEEN, [','] = COMMA, ['\n'] = LINE_END};

static inline int byte_kind(char byte) {
    return byte_kinds[(unsigned char)byte];
}

/* Reads the fields of one line of the free form. */
static void read_free(struct corpus_cursor *cursor, struct table_line *fields) {
    const char *at = cursor->at, *end = cursor->end;
    uint64_t commas = 0; /* since the last field */
    fields->count = 0;
    fields->hole = fields->open = fields->quoted = 0;
    for (;;) {
        for (; at < end && (byte_kind(*at) == BETWEEN || byte_kind(*at) == COMMA); at++) commas += *at == ',';
        if (at == end || *at == '\n') break;
        if (commas > (fields->count > 0)) fields->hole = 1;
        const char *word = at;
        while (at < end && byte_kind(*at) == IN_WORD) at++;
        if (fields->count < COLUMNS_READ) {
            fields->word[fields->count] = word;
            fields->length[fields->count] = (uint64_t)(at - word);
        }
        fields->count++;
        commas = 0;
    }
    if (commas) fields->hole = 1;
    cursor->line += at < end;
    cursor->at = at + (at < end);
}

/* Reads the columns of one line. The block's bytes are its reader's to change (columns_part). */
static void read_line(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *columns) {
    char *at = (char *)cursor->at, *end = (char *)cursor->end;
    char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
    cursor->at = newline ? newline + 1 : end;
    cursor->line += newline != NULL;
    while (at < stop && token_is_white(*at)) at++;
    columns->count = 0;
    columns->hole = columns->open = columns->quoted = 0;
    if (at < stop) columns_part(columns, at, stop, form->separator, 0);
}

int columns_next(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *columns) {
    if (cursor->at == cursor->end) return 0;
    if (*form->separator)
        read_line(cursor, form, columns);
    else
        read_free(cursor, columns);
    return 1;
}

int columns_check_word(const struct table_line *columns, unsigned column, const char *path, uint64_t line) {
    const char *word = columns->word[column];
    if (!token_has_break(word, columns->length[column])) return 0;
    return fail("'%s' line %" PRIu64 ": column %u, '%.*s', has a tab or a line's end in it", path, line, column + 1,
                text_shown(columns->length[column]), word);
}

int columns_check(const struct table_line *columns, const struct columns_form *form, const struct columns_words *words,
                  const char *path, uint64_t line) {
    int list = form->column[COLUMN_LIST], item = form->column[COLUMN_ITEM];
    uint64_t least = (uint64_t)(list > item ? list : item) + 1, count = columns->count;
    if (columns->open)
        return fail("'%s' line %" PRIu64 ": a double quote is not closed in its line, or something stands behind it",
                    path, line);
    if (form->named && count >= least && columns->length[list] && columns->length[item]) return 0;
    if (form->named && count >= least)
        return fail("'%s' line %" PRIu64 ": its %s is empty", path, line,
                    columns->length[list] ? words->item : words->list);
    if (form->named)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " column%s; the header has %s and %s in columns %d and %d", path,
                    line, count, count == 1 ? "" : "s", words->list, words->item, list + 1, item + 1);
    if (columns->hole)
        return fail("'%s' line %" PRIu64 ": a field is empty; wanted %s, %s[, %s]", path, line, words->list,
                    words->item, words->rating);
    if (count >= least && count <= COLUMNS_FREE_MOST) return 0;
    return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s; wanted 2 to 4: %s, %s[, %s[, anything]]", path, line,
                count, count == 1 ? "" : "s", words->list, words->item, words->rating);
}
