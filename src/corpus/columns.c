#define _GNU_SOURCE
#include "columns.h"

#include "base/report.h"
#include "base/text.h"
#include "scan.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const struct row_properties row_properties[LOOK_ROWS] = {
#define ROWS(rows, ...) [rows] = {__VA_ARGS__},
#include "rows.def"
};

enum { NAMES_MOST = 160 }; /* names of one meaning in columns.def */

unsigned column_rank(enum look_rows rows, enum column_meaning meaning, const char *name, uint64_t length) {
    static const struct {
        int rows, meaning;
        const char *const names[NAMES_MOST];
    } known[] = {
#define COLUMN(rows, meaning, ...) {rows, meaning, {__VA_ARGS__}},
#include "columns.def"
    };
    char plain[32];
    uint64_t n = 0;
    for (uint64_t i = 0; i < length; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 'a' - 'A') : name[i];
        int counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 128;
        if (counts && n == sizeof plain - 1) return 0;
        if (counts) plain[n++] = c;
    }
    plain[n] = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (unsigned i = 0; known[k].rows == (int)rows && known[k].meaning == (int)meaning && known[k].names[i]; i++)
            if (!strcmp(known[k].names[i], plain)) return NAMES_MOST - i;
    return 0;
}

int column_meaning(enum look_rows rows, const char *name, uint64_t length) {
    unsigned best = 0;
    int found = -1;
    for (int meaning = COLUMN_A; meaning < COLUMN_MEANINGS; meaning++) {
        unsigned rank = column_rank(rows, (enum column_meaning)meaning, name, length);
        if (rank > best) best = rank, found = meaning;
    }
    return found;
}

/* ---- field by field ---- */

/* Returns the start of the next separator, or `end` if no separator follows. */
static char *find_separator(char *at, char *end, const char *separator) {
    uint64_t length = strlen(separator);
    if (*separator == ' ') {
        while (at < end && !token_is_white(*at)) at++;
        return at;
    }
    if (length == 1) {
        char *found = memchr(at, *separator, (size_t)(end - at));
        return found ? found : end;
    }
    char *found = memmem(at, (size_t)(end - at), separator, length);
    return found ? found : end;
}

static char *pass_blanks(char *at, char *end, const char *separator) {
    while (at < end && token_is_white(*at) && (*separator == ' ' || *at != *separator)) at++;
    return at;
}

/* Returns the closing quote of the field whose opening quote is at `at`; `end` if the quote is not closed. Two quotes one after
 * the other are a quote in the text, and do not close the field. */
static char *find_closing(char *at, char *end) {
    for (at++; at < end; at++) {
        if (*at != '"') continue;
        if (at + 1 == end || at[1] != '"') return at;
        at++;
    }
    return end;
}

static void trim(struct column_field *field, char *from, char *to) {
    while (from < to && text_is_blank(*from)) from++;
    while (to > from && text_is_blank(to[-1])) to--;
    field->word = from;
    field->length = (uint64_t)(to - from);
}

/* Replaces each doubled quote by one, in place. Returns the new end of the text. */
static char *join_quotes(char *from, char *to) {
    char *out = memmem(from, (size_t)(to - from), "\"\"", 2);
    if (!out) return to;
    for (char *at = out; at < to; at++) {
        *out++ = *at;
        at += *at == '"' && at + 1 < to;
    }
    return out;
}

/* Reads a field whose first byte is a quote, and returns its end. Returns NULL if the quote is an ordinary byte of the text (QUOTES_LENIENT). */
static char *take_quoted(char *at, char *end, const struct columns_form *form, int keep, struct column_field *field) {
    char *closing = find_closing(at, end);
    char *stop = closing < end ? find_separator(closing + 1, end, form->separator) : end;
    char *rest = closing < end ? pass_blanks(closing + 1, stop, form->separator) : end;
    field->open = closing == end || rest < stop;
    if (field->open && form->quotes == QUOTES_LENIENT) return field->open = 0, NULL;
    field->quoted = closing < end;
    trim(field, at + 1, keep ? closing : join_quotes(at + 1, closing));
    return stop;
}

void column_walk_start(struct column_walk *walk, char *at, char *end, const struct columns_form *form) {
    char *first = at;
    while (first < end && token_is_white(*first)) first++;
    *walk = (struct column_walk){*form->separator == ' ' ? first : at, end, first < end};
}

int column_walk_next(struct column_walk *walk, const struct columns_form *form, int keep, struct column_field *field) {
    if (!walk->more) return 0;
    char *end = walk->end, *at = pass_blanks(walk->at, end, form->separator), *stop = NULL;
    *field = (struct column_field){.word = at};
    if (at < end && *at == '"' && form->quotes != QUOTES_BYTES) stop = take_quoted(at, end, form, keep, field);
    if (!stop) {
        stop = form->braces && at < end && *at == '{' ? end : find_separator(at, end, form->separator);
        trim(field, at, stop);
    }
    walk->more = stop < end;
    walk->at = stop + (walk->more ? strlen(form->separator) : 0);
    if (*form->separator == ' ') {
        walk->at = pass_blanks(walk->at < end ? walk->at : end, end, form->separator);
        walk->more = walk->at < end;
    }
    return 1;
}

/* ---- line by line ---- */

void columns_part(struct table_line *line, char *at, char *end, const struct columns_form *form, int keep) {
    struct column_walk walk;
    struct column_field field;
    line->count = 0;
    line->open = line->quoted = line->plain = 0;
    column_walk_start(&walk, at, end, form);
    for (; column_walk_next(&walk, form, keep, &field); line->count++) {
        line->open |= field.open;
        line->quoted |= field.quoted;
        if (line->count >= COLUMNS_READ) continue;
        line->word[line->count] = field.word;
        line->length[line->count] = field.length;
    }
}

/* Splits a line of at most 63 bytes by bit masks of its bytes, at a one-byte separator or at blanks, and returns 1. Returns 0 if this
 * cannot be done, and columns_part() must split the line: it is longer, contains quotes, or has blanks beside a separator of another kind. */
static int part_by_masks(struct table_line *line, struct corpus_cursor *cursor, const struct columns_form *form) {
    const char *at = cursor->at, *start = at;
    int blanks = *form->separator == ' ';
    if (cursor->end - at < SCAN_BYTES || form->braces || (blanks ? form->quotes != QUOTES_BYTES : form->separator[1] != 0)) return 0;
    uint64_t newline = 0, length = 0;
    for (; !newline && length < SCAN_BYTES; length += 16) newline = scan_byte(at + length, 1, '\n') << length;
    uint64_t stop = newline & -newline;
    cursor->at = at + __builtin_ctzll(newline | (uint64_t)1 << 63) + 1;
    if (stop > 1 && cursor->at[-2] == '\r') stop >>= 1;
    uint64_t inside = stop - 1, white = scan_white(at, length) & inside;
    uint64_t ends = blanks ? white : scan_byte(at, length, *form->separator) & inside;
    if (!newline || (!blanks && (white & ~ends)) || (form->quotes != QUOTES_BYTES && (scan_byte(at, length, '"') & inside))) {
        cursor->at = at;
        return 0;
    }
    line->count = 0;
    line->open = line->quoted = 0;
    line->plain = 1;
    for (ends |= stop; ends; ends &= ends - 1) {
        const char *end = at + __builtin_ctzll(ends);
        line->word[line->count] = start;
        line->length[line->count] = (uint64_t)(end - start);
        line->count += !blanks || end > start;
        start = end + 1;
    }
    if (!(inside & ~white)) line->count = 0;
    cursor->line++;
    return 1;
}

int columns_next(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *line) {
    if (cursor->at == cursor->end) return 0;
    if (part_by_masks(line, cursor, form)) return 1;
    char *at = (char *)cursor->at, *end = (char *)cursor->end;
    char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
    cursor->at = newline ? newline + 1 : end;
    cursor->line += newline != NULL;
    columns_part(line, at, stop, form, 0);
    return 1;
}

/* Fails: the line has too few fields, or too many. */
static int refuse_count(const struct table_line *line, const struct columns_form *form, enum look_rows rows, const char *path,
                        uint64_t number) {
    const struct row_properties *row = &row_properties[rows];
    char wanted[128] = "", where[64] = "";
    size_t names = 0, columns = 0;
    uint64_t count = line->count;
    for (unsigned i = 0; i < row->needed; i++) {
        const char *between = !i ? "" : i + 1 == row->needed ? " and " : ", ";
        names = text_add(wanted, sizeof wanted, names, "%s%s", form->named ? between : i ? ", " : "", row->names[row->order[i]]);
        columns = text_add(where, sizeof where, columns, "%s%d", between, form->column[row->order[i]] + 1);
    }
    if (form->most && count > form->most)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " fields with %s between; the first lines have %" PRIu64
                    " (corpus.separator and corpus.columns say otherwise)",
                    path, number, count, columns_separator_name(form->separator), form->most);
    if (form->named)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " column%s; %s are columns %s", path, number, count, count == 1 ? "" : "s", wanted, where);
    if (row->number) text_add(wanted, sizeof wanted, names, "[, %s]", row->names[COLUMN_VALUE]);
    uint64_t shown = count < COLUMNS_READ ? count : COLUMNS_READ;
    shown = shown ? (uint64_t)(line->word[shown - 1] + line->length[shown - 1] - line->word[0]) : 0;
    return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s with %s between; wanted %s: %.*s", path, number, count, count == 1 ? "" : "s",
                columns_separator_name(form->separator), wanted, text_shown(shown), shown ? line->word[0] : "");
}

int columns_check(const struct table_line *line, const struct columns_form *form, enum look_rows rows, const char *path,
                  uint64_t number) {
    const struct row_properties *row = &row_properties[rows];
    if (line->open)
        return fail("'%s' line %" PRIu64 ": a double quote is not closed in its line, or something follows it%s", path, number,
                    rows == LOOK_DOCUMENTS ? "; line ends within a text must be blanks (in Python: frame.replace('\\n', ' ', regex=True))" : "");
    unsigned last = 0;
    for (unsigned i = 0; i < row->needed; i++) {
        unsigned column = form->column[row->order[i]];
        if (column < NO_COLUMN && column > last) last = column;
    }
    if (line->count <= last || (form->most && line->count > form->most)) return refuse_count(line, form, rows, path, number);
    for (unsigned i = 0; i < row->needed; i++) {
        unsigned column = form->column[row->order[i]];
        const char *word = line->word[column], *name = row->names[row->order[i]];
        if (column == NO_COLUMN || (row->text && row->order[i] != COLUMN_A)) continue;
        if (!line->length[column]) return fail("'%s' line %" PRIu64 ": its %s is empty (column %u)", path, number, name, column + 1);
        if (line->length[column] == 2 && word[0] == '\\' && word[1] == 'N')
            return fail("'%s' line %" PRIu64 ": its %s is \\N, which databases write where a value is missing; remove such lines", path, number,
                        name);
        if (!line->plain && *form->separator != ' ' && token_has_break(word, line->length[column]))
            return fail("'%s' line %" PRIu64 ": column %u, '%.*s', has a tab or a line's end in it", path, number,
                        column + 1, text_shown(line->length[column]), word);
    }
    return 0;
}

unsigned columns_value(const struct table_line *line, const struct columns_form *form) {
    unsigned column = form->column[COLUMN_VALUE];
    return column < line->count && column < COLUMNS_READ && line->length[column] ? column : NO_COLUMN;
}

/* ---- numbers ---- */

enum { EXACT_DIGITS = 15 }; /* a double can store every whole number of this many decimal digits, and 10^0 .. 10^15, exactly */

/* Reads digits with at most one `point` among them, such as 4.25. All digits as one integer, and the power of ten by which it is divided, are
 * exact doubles, so the quotient is the nearest double, as from text_real(). Returns 0, or -1 if the word is not of this form. */
static int read_plain(const char *word, uint64_t length, char point, double *value) {
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0, number = 0, place = length;
    if (length > EXACT_DIGITS + 1) return -1;
    for (uint64_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)word[i] - '0';
        if (word[i] == point && place == length) {
            place = i;
            continue;
        }
        if (digit > 9) return -1;
        number = number * 10 + digit;
        digits++;
    }
    if (!digits || digits > EXACT_DIGITS) return -1;
    *value = (double)number / powers[place < length ? length - place - 1 : 0];
    return 0;
}

/* Finds the weight in the attributes of networkx: sets *word and *length to the number after 'weight':. Returns 1; 0 if there is
 * no weight. */
static int find_weight(const char **word, uint64_t *length) {
    static const char *const names[] = {"'weight':", "\"weight\":"};
    const char *end = *word + *length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = memmem(*word, *length, names[i], strlen(names[i]));
        if (!at) continue;
        at += strlen(names[i]);
        while (at < end && text_is_blank(*at)) at++;
        *word = at;
        while (at < end && *at != ',' && *at != '}' && !text_is_blank(*at)) at++;
        *length = (uint64_t)(at - *word);
        return 1;
    }
    return 0;
}

int columns_number(const struct columns_form *form, const char *word, uint64_t length, double *value) {
    char text[64];
    if (form->braces && length && *word == '{' && !find_weight(&word, &length)) return -1;
    if (!read_plain(word, length, form->decimal_comma ? ',' : '.', value)) return 0;
    if (length >= sizeof text || memchr(word, 0, length)) return -1;
    memcpy(text, word, length);
    text[length] = 0;
    char *comma = form->decimal_comma ? strchr(text, ',') : NULL;
    if (comma) *comma = '.';
    return text_real(text, value);
}

const char *columns_separator_name(const char *separator) {
    switch (*separator) {
        case '\t': return "tabs";
        case ':': return "'::'";
        case ';': return "semicolons";
        case '|': return "'|'";
        case ',': return "commas";
        default: return "blanks";
    }
}

int columns_truth(const char *word, uint64_t length) {
    static const char *const texts[] = {"0", "-1", "false", "1", "+1", "true"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) == length && !strncasecmp(texts[i], word, length)) return i >= 3;
    return -1;
}
