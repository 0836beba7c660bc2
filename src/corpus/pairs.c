#include "pairs.h"

#include "base/report.h"
#include "base/text.h"
#include "columns.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { EXACT_DIGITS = 15 }; /* decimal digits of a number that a double holds, as it holds the powers of ten up to there */

/* Reads digits with at most one point among them. Both numbers are exact, so that their quotient is the nearest double, as
 * text_real() finds it. Returns 0, or -1 where the word is something else. */
static int read_plain(const char *word, uint64_t length, double *value) {
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0, number = 0, point = length;
    if (length > EXACT_DIGITS + 1) return -1;
    for (uint64_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)word[i] - '0';
        if (word[i] == '.' && point == length) {
            point = i;
            continue;
        }
        if (digit > 9) return -1;
        number = number * 10 + digit;
        digits++;
    }
    if (!digits || digits > EXACT_DIGITS) return -1;
    *value = (double)number / powers[point < length ? length - point - 1 : 0];
    return 0;
}

int pairs_rating(const char *word, uint64_t length, double *rating) {
    char text[64];
    if (!read_plain(word, length, rating)) return 0;
    if (length >= sizeof text || memchr(word, 0, length)) return -1;
    memcpy(text, word, length);
    text[length] = 0;
    return text_real(text, rating);
}

/* Returns the column of the line's rating, or NO_COLUMN. An empty one is none, where a header tells columns apart. */
static unsigned rating_of(const struct table_line *columns, const struct columns_form *form) {
    unsigned rating = form->column[COLUMN_RATING];
    return rating < columns->count && rating < COLUMNS_READ && columns->length[rating] ? rating : NO_COLUMN;
}

int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating,
               struct pair_line *pair) {
    static const struct columns_form free_form = COLUMNS_FREE;
    static const struct columns_words words = {"list", "item", "rating"};
    const struct columns_form *form = block->form ? block->form : &free_form;
    unsigned list = form->column[COLUMN_LIST], item = form->column[COLUMN_ITEM];
    struct table_line columns;
    for (;;) {
        uint64_t line = cursor->line;
        double rating = NAN;
        if (!columns_next(cursor, form, &columns)) return 0;
        if (columns.count == 0 && !columns.hole) continue;
        if (columns_check(&columns, form, &words, block->path, line)) return -1;
        unsigned rated = rating_of(&columns, form);
        if (rated == NO_COLUMN && !isinf(min_rating))
            return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (rated != NO_COLUMN && pairs_rating(columns.word[rated], columns.length[rated], &rating))
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number%s", block->path, line,
                        text_shown(columns.length[rated]), columns.word[rated],
                        line == 1 ? "; where the line names the columns, set corpus.header = yes" : "");
        if (rated != NO_COLUMN && rating < min_rating) continue;
        if (*form->separator &&
            (columns_check_word(&columns, list, block->path, line) || columns_check_word(&columns, item, block->path, line)))
            return -1;
        *pair = (struct pair_line){
            columns.word[list], columns.word[item], columns.length[list], columns.length[item], line, rating};
        return 1;
    }
}

/* ---- headers ---- */

struct line {
    const char *at;
    uint64_t length;
};

static struct line trimmed(const char *at, const char *end) {
    while (at < end && text_is_blank(*at)) at++;
    while (end > at && text_is_blank(end[-1])) end--;
    return (struct line){at, (uint64_t)(end - at)};
}

/* Takes the next line that is not empty, and of edges no comment; *at moves past it. Length 0: there is none, or its end is not
 * among these bytes. */
static struct line next_line(const char **at, const char *end, int whole, enum column_set set) {
    while (*at < end) {
        const char *first = *at, *newline = memchr(first, '\n', (size_t)(end - first)), *stop = newline ? newline : end;
        if (!newline && !whole) break;
        *at = newline ? newline + 1 : end;
        struct line line = trimmed(first, stop);
        if (line.length && !(set == COLUMNS_OF_EDGES && columns_comment(*line.at))) return line;
    }
    return (struct line){*at, 0};
}

/* Parts a line of the front; its bytes stay. */
static struct table_line columns_of(struct line line, const char *separator) {
    struct table_line columns;
    columns_part(&columns, (char *)line.at, (char *)line.at + line.length, separator, 1);
    return columns;
}

/* Names may have blanks where commas or tabs part them, in the free form too. */
static const char *separator_of(const struct columns_form *form, struct line line) {
    if (*form->separator) return form->separator;
    return memchr(line.at, ',', line.length) ? "," : memchr(line.at, '\t', line.length) ? "\t" : " ";
}

static int is_number(const struct table_line *columns, unsigned column) {
    double value;
    return !pairs_rating(columns->word[column], columns->length[column], &value);
}

/* Finds the columns of a line that names its list and its item. Returns 1 where it does. */
static int find_names(const struct table_line *columns, struct columns_form *form, enum column_set set) {
    uint8_t found[COLUMN_MEANINGS] = {NO_COLUMN, NO_COLUMN, NO_COLUMN};
    for (unsigned i = 0; i < columns->count && i < COLUMNS_READ; i++) {
        int meaning = column_meaning(set, columns->word[i], columns->length[i]);
        if (meaning >= 0 && found[meaning] == NO_COLUMN) found[meaning] = (uint8_t)i;
    }
    if (found[COLUMN_LIST] == NO_COLUMN || found[COLUMN_ITEM] == NO_COLUMN) return 0;
    memcpy(form->column, found, sizeof found);
    return 1;
}

static int names_columns(const struct table_line *first, const struct table_line *second, enum column_set set) {
    int edges = set == COLUMNS_OF_EDGES; /* the third column of edges may be a word, and may be missing in some lines */
    if (first->hole || first->count > COLUMNS_FREE_MOST) return 0;
    if (first->count > 2 && !is_number(first, 2) && (second->count < 3 ? !edges : is_number(second, 2))) return 1;
    int two = first->count == 2 && second->count == 2, more = edges && first->count >= 2 && second->count >= 2;
    return (two || more) && !is_number(first, 0) && !is_number(first, 1) && is_number(second, 0) && is_number(second, 1);
}

/* 1 where blanks or commas part a line of the free form. */
static int is_free(struct line line) {
    struct corpus_cursor cursor = {line.at, line.at + line.length, 1};
    const char *word;
    uint64_t length;
    return corpus_token(&cursor, ",", &word, &length) == TOKEN_WORD && word + length < line.at + line.length;
}

/* 1 where the last column of a line is quoted and ends as the first one of the next line. */
static int is_broken(struct line line, struct line next, const char *separator) {
    struct line both = {line.at, (uint64_t)(next.at - line.at) + next.length};
    struct table_line columns = columns_of(both, separator);
    uint64_t apart = columns_of(line, separator).count + columns_of(next, separator).count;
    return columns.quoted && !columns.open && columns.count + 1 == apart;
}

/* 1 where one of the lines is quoted. A quote that is only a part of a word, or a word of its own, does not count. */
static int has_quotes(const char *at, const char *end, int whole, const char *separator, enum column_set set) {
    struct line line, before = {at, 0};
    if (!memchr(at, '"', (size_t)(end - at))) return 0;
    for (; (line = next_line(&at, end, whole, set)).length; before = line)
        if (columns_of(line, separator).quoted || (before.length && is_broken(before, line, separator))) return 1;
    return 0;
}

/* Chooses the separator. White space and commas part fields unless quotes, a header's names or another separator say
 * otherwise. */
static void choose_separator(struct columns_form *form, struct line first, const char *end, int whole, enum column_set set) {
    const char *separator = columns_separator(first.at, first.at + first.length);
    int free = !form->named && is_free(first) && !has_quotes(first.at, end, whole, separator, set);
    if (*separator == ' ' || free) separator = "";
    memcpy(form->separator, separator, strlen(separator) + 1);
}

/* 1 where a file begins as one of Matrix Market does, whose first line behind the comments tells only sizes. */
static int is_matrix_market(const char *bytes, uint64_t length) {
    static const char banner[] = "%%MatrixMarket";
    return length >= strlen(banner) && !memcmp(bytes, banner, strlen(banner));
}

struct pairs_front pairs_front(const char *bytes, uint64_t length, int whole, int may_name, enum column_set set) {
    const char *at = bytes, *end = bytes + length;
    struct line first = next_line(&at, end, whole, set);
    struct pairs_front front = {
        .first = first.at, .first_length = first.length, .data = (uint64_t)(at - bytes), .form = COLUMNS_FREE};
    struct line second = next_line(&at, end, whole, set);
    if (!first.length) return front;
    front.is_header = set == COLUMNS_OF_EDGES && is_matrix_market(bytes, length);
    if (front.is_header) return front;
    struct table_line names = columns_of(first, columns_separator(first.at, first.at + first.length));
    front.names = front.form.named = may_name && second.length && find_names(&names, &front.form, set);
    choose_separator(&front.form, first, end, whole, set);
    names = columns_of(first, separator_of(&front.form, first));
    struct table_line values = columns_of(second, separator_of(&front.form, second));
    front.is_header = front.names || names_columns(&names, &values, set);
    return front;
}
