#include "pairs.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int pairs_rating(const char *word, uint64_t length, double *rating) {
    char text[64];
    if (length == 1 && *word >= '0' && *word <= '9') {
        *rating = *word - '0';
        return 0;
    }
    if (length >= sizeof text || memchr(word, 0, length)) return -1;
    memcpy(text, word, length);
    text[length] = 0;
    return text_real(text, rating);
}

static uint64_t commas(const char *from, const char *to) {
    uint64_t count = 0;
    for (; from < to; from++) count += *from == ',';
    return count;
}

enum { PAIR_FIELDS = 4 };
struct fields {
    const char *word[PAIR_FIELDS];
    uint64_t length[PAIR_FIELDS];
    uint64_t count; /* fields of the line; where it passes PAIR_FIELDS, further ones are not kept */
    int hole;       /* 1: an empty field: two commas, or one at an end of the line, with nothing between */
};

/* Reads the fields of one line. Returns 1, or 0 at the block's end. */
static int read_fields(struct corpus_cursor *cursor, struct fields *fields) {
    const char *word, *previous = cursor->at;
    uint64_t length;
    int kind;
    fields->count = 0;
    fields->hole = 0;
    if (cursor->at == cursor->end) return 0;
    while ((kind = corpus_token(cursor, ",", &word, &length)) == TOKEN_WORD) {
        if (commas(previous, word) > (fields->count > 0)) fields->hole = 1;
        if (fields->count < PAIR_FIELDS) {
            fields->word[fields->count] = word;
            fields->length[fields->count] = length;
        }
        fields->count++;
        previous = word + length;
    }
    if (commas(previous, cursor->at)) fields->hole = 1;
    return 1;
}

int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating,
               struct pair_line *pair) {
    struct fields fields;
    for (;;) {
        uint64_t line = cursor->line;
        double rating = NAN;
        if (!read_fields(cursor, &fields)) return 0;
        if (fields.hole)
            return fail("'%s' line %" PRIu64 ": a field is empty; wanted list, item[, rating]", block->path, line);
        if (fields.count == 0) continue;
        if (fields.count < 2 || fields.count > PAIR_FIELDS)
            return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s; wanted 2 to 4: list, item[, rating[, anything]]",
                        block->path, line, fields.count, fields.count == 1 ? "" : "s");
        if (fields.count == 2 && !isinf(min_rating))
            return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (fields.count > 2 && pairs_rating(fields.word[2], fields.length[2], &rating))
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number%s", block->path, line,
                        text_shown(fields.length[2]), fields.word[2],
                        line == 1 ? "; where the line names the columns, set corpus.header = yes" : "");
        if (fields.count > 2 && rating < min_rating) continue;
        *pair = (struct pair_line){fields.word[0], fields.word[1], fields.length[0], fields.length[1], line, rating};
        return 1;
    }
}

/* ---- headers ---- */

struct line {
    const char *at;
    uint64_t length;
};

static int is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

static struct line trimmed(const char *at, const char *end) {
    while (at < end && is_blank(*at)) at++;
    while (end > at && is_blank(end[-1])) end--;
    return (struct line){at, (uint64_t)(end - at)};
}

/* Takes the next line that is not empty; *at moves past it. Length 0: there is none, or its end is not among these
 * bytes. */
static struct line next_line(const char **at, const char *end, int whole) {
    while (*at < end) {
        const char *first = *at, *newline = memchr(first, '\n', (size_t)(end - first)), *stop = newline ? newline : end;
        if (!newline && !whole) break;
        *at = newline ? newline + 1 : end;
        struct line line = trimmed(first, stop);
        if (line.length) return line;
    }
    return (struct line){*at, 0};
}

struct columns {
    struct line name[PAIR_FIELDS];
    uint64_t count; /* may pass PAIR_FIELDS */
    int hole;       /* 1: a field is empty */
};

/* Splits at commas where the line has one, else at tabs, else at blanks. */
static struct columns columns_of(struct line line) {
    char separator = memchr(line.at, ',', line.length) ? ',' : memchr(line.at, '\t', line.length) ? '\t' : ' ';
    const char *at = line.at, *end = line.at + line.length;
    struct columns columns = {.count = 0};
    while (at <= end) {
        const char *stop = memchr(at, separator, (size_t)(end - at));
        struct line name = trimmed(at, stop ? stop : end);
        at = stop ? stop + 1 : end + 1;
        if (!name.length && separator == ' ') continue;
        columns.hole |= !name.length;
        if (columns.count < PAIR_FIELDS) columns.name[columns.count] = name;
        columns.count++;
    }
    return columns;
}

static int is_number(struct line text) {
    double value;
    return !pairs_rating(text.at, text.length, &value);
}

static int names_columns(struct line first_line, struct line second_line) {
    struct columns first = columns_of(first_line), second = columns_of(second_line);
    if (first.hole || first.count > PAIR_FIELDS) return 0;
    if (first.count > 2) return !is_number(first.name[2]) && (second.count < 3 || is_number(second.name[2]));
    return first.count == 2 && second.count == 2 && !is_number(first.name[0]) && !is_number(first.name[1]) &&
           is_number(second.name[0]) && is_number(second.name[1]);
}

struct pairs_front pairs_front(const char *bytes, uint64_t length, int whole) {
    const char *at = bytes, *end = bytes + length;
    struct line first = next_line(&at, end, whole);
    struct pairs_front front = {.first = first.at, .first_length = first.length, .data = (uint64_t)(at - bytes)};
    struct line second = next_line(&at, end, whole);
    front.is_header = first.length && names_columns(first, second);
    return front;
}
