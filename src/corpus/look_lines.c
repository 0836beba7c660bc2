#define _GNU_SOURCE
#include "look_lines.h"

#include "base/memory.h"
#include "base/text.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int looked_lines_collect(struct looked_lines *lines, const char *bytes, uint64_t length, int whole, int comments) {
    const char *at = bytes, *end = bytes + length;
    *lines = (struct looked_lines){.bytes = bytes, .line = mem_alloc(LOOKED_AT, sizeof *lines->line, "a file's first lines")};
    if (!lines->line) return -1;
    for (uint64_t number = 1; at < end && lines->count < LOOKED_AT; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        if (!newline && !whole) break;
        struct looked_line line = {at, stop, number};
        at = newline ? newline + 1 : end;
        const char *first = line.at;
        while (first < line.end && token_is_white(*first)) first++;
        while (line.end > first && line.end[-1] == '\r') line.end--;
        if (first < line.end && !(comments && columns_comment(*first))) lines->line[lines->count++] = line;
    }
    return 0;
}

void looked_lines_release(struct looked_lines *lines) {
    free(lines->line);
}

struct table_line looked_part(const struct looked_line *line, const struct columns_form *form) {
    struct table_line parts;
    columns_part(&parts, (char *)line->at, (char *)line->end, form, 1);
    return parts;
}

/* ---- the separator ---- */

static const char *const separators[] = {"\t", "::", ";", "|", ",", " "};
enum { COMMA = 4, BLANKS = 5, SEPARATORS = 6 };
static const char *const separator_of_key[] = {[SEPARATOR_TAB] = "\t", [SEPARATOR_COMMA] = ",",   [SEPARATOR_SEMICOLON] = ";",
                                               [SEPARATOR_PIPE] = "|", [SEPARATOR_COLONS] = "::", [SEPARATOR_BLANK] = " "};

/* The fields of the lines if they are split at one separator. */
struct parting {
    uint64_t least, most; /* smallest and largest number of fields in a line; the first line, maybe a header, is not counted */
    uint64_t parted;      /* number of lines with at least two fields */
    uint64_t fields, words; /* in these lines: total number of fields, and of words separated by blanks */
};

static struct columns_form form_with(const char *separator, enum column_quotes quotes) {
    struct columns_form form = COLUMNS_PLAIN;
    memcpy(form.separator, separator, strlen(separator) + 1);
    form.quotes = (uint8_t)quotes;
    return form;
}

static uint64_t count_words(const struct looked_line *line) {
    struct columns_form blanks = form_with(" ", QUOTES_BYTES);
    return looked_part(line, &blanks).count;
}

static struct parting try_separator(const struct looked_lines *lines, const char *separator) {
    struct columns_form form = form_with(separator, QUOTES_LENIENT);
    struct parting parting = {.least = UINT64_MAX};
    for (uint64_t i = 0; i < lines->count; i++) {
        uint64_t fields = looked_part(&lines->line[i], &form).count;
        if (i || lines->count == 1) {
            parting.least = fields < parting.least ? fields : parting.least;
            parting.most = fields > parting.most ? fields : parting.most;
        }
        if (fields < 2) continue;
        parting.parted++;
        parting.fields += fields;
        parting.words += count_words(&lines->line[i]);
    }
    return parting;
}

static int is_comma_number(const char *word, uint64_t length) {
    struct columns_form form = {.decimal_comma = 1};
    double value;
    return memchr(word, ',', length) && !columns_number(&form, word, length, &value);
}

/* Returns 1 if the lines are separated by blanks and no line has a comma except as decimal comma of its last field: "ann bob 1,5".
 * */
static int are_decimal_commas(const struct looked_lines *lines) {
    struct columns_form blanks = form_with(" ", QUOTES_BYTES);
    for (uint64_t i = 0; i < lines->count; i++) {
        const struct looked_line *line = &lines->line[i];
        struct table_line parts = looked_part(line, &blanks);
        uint64_t last = parts.count - 1;
        if (parts.count < 3 || parts.count > COLUMNS_READ) return 0;
        const char *comma = memchr(line->at, ',', (size_t)(line->end - line->at));
        if (comma && (comma < parts.word[last] || !is_comma_number(parts.word[last], parts.length[last]))) return 0;
    }
    return 1;
}

static int is_uniform(const struct looked_lines *lines, const struct parting *parting) {
    return parting->parted == lines->count && parting->least == parting->most && parting->least > 1;
}

/* Returns 1 if in some line a comma is neither between digits nor followed by a blank: it separates fields. */
static int have_commas_of_fields(const struct looked_lines *lines) {
    for (uint64_t i = 0; i < lines->count; i++) {
        const struct looked_line *line = &lines->line[i];
        for (const char *at = line->at; at < line->end; at++) {
            int digits = at > line->at && at + 1 < line->end && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9';
            if (*at == ',' && !digits && !(at + 1 < line->end && text_is_blank(at[1]))) return 1;
        }
    }
    return 0;
}

static int may_be_in_names(const char *separator) {
    return *separator == '|' || *separator == ':';
}

/* Returns 1 if bars or colons are probably part of names: commas also split all lines, and into more fields. */
static int are_in_names(const struct looked_lines *lines, const char *separator, const struct parting *of, const struct parting *commas) {
    return may_be_in_names(separator) && is_uniform(lines, commas) && commas->least > of->least && have_commas_of_fields(lines);
}

int looked_has_two_separators(const struct looked_lines *lines, const struct columns_form *form) {
    struct parting of = try_separator(lines, form->separator), commas = try_separator(lines, ",");
    return lines->count > 1 && may_be_in_names(form->separator) && is_uniform(lines, &of) && is_uniform(lines, &commas) &&
           of.least == commas.least && have_commas_of_fields(lines);
}

/* Returns the separator of lines that should have the same number of fields: the first that splits all lines into the same number
 * of fields; else the first that splits all lines; else the one that splits the most lines. */
static const char *separator_of_fixed(const struct looked_lines *lines, int blanks) {
    struct parting parting[SEPARATORS];
    int best = blanks ? BLANKS : COMMA, count = blanks ? SEPARATORS : BLANKS;
    for (int s = 0; s < count; s++) parting[s] = try_separator(lines, separators[s]);
    if (blanks && are_decimal_commas(lines)) parting[COMMA] = (struct parting){.least = 0};
    for (int s = 0; s < count; s++)
        if (is_uniform(lines, &parting[s]) && !are_in_names(lines, separators[s], &parting[s], &parting[COMMA])) return separators[s];
    for (int s = 0; s < count; s++)
        if (parting[s].parted == lines->count && parting[s].least > 1) return separators[s];
    for (int s = count - 1; s >= 0; s--)
        if (parting[s].parted >= parting[best].parted) best = s;
    return separators[best];
}

enum { WORDS_OF_ITEM = 8, WORDS_OF_ITEM_IN_SOME = 3 }; /* largest average number of words in an item, if all or only some lines
                                                        * are split */

/* Returns the separator of lists: the first that splits at least half of the lines (a line with one field has no separator) into
 * fields of few words. Lines such as "name TAB item item item" are split at blanks. */
static const char *separator_of_lists(const struct looked_lines *lines) {
    for (int s = 0; s < BLANKS; s++) {
        struct parting parting = try_separator(lines, separators[s]);
        int half = parting.parted && 2 * parting.parted >= lines->count, two = parting.fields == 2 * parting.parted;
        int blanks_follow = (s != COMMA || lines->count == 1) && two && 4 * parting.words > 5 * parting.fields;
        uint64_t words = parting.parted == lines->count ? WORDS_OF_ITEM : WORDS_OF_ITEM_IN_SOME;
        if (half && parting.words <= words * parting.fields && !blanks_follow) return separators[s];
    }
    return separators[BLANKS];
}

/* Chooses what quotes mean. With commas or semicolons, quotes enclose fields. With blanks they do so only if every field that
 * begins with a quote also ends with one. With other separators, each field is judged by itself (QUOTES_LENIENT). */
static enum column_quotes choose_quotes(const struct looked_lines *lines, const char *separator) {
    struct columns_form strict = form_with(separator, QUOTES_STRICT);
    int quoted = 0;
    if (*separator == ',' || *separator == ';') return QUOTES_STRICT;
    if (*separator != ' ') return QUOTES_LENIENT;
    for (uint64_t i = 0; i < lines->count; i++) {
        struct table_line parts = looked_part(&lines->line[i], &strict);
        if (parts.open) return QUOTES_BYTES;
        quoted |= parts.quoted;
    }
    return quoted ? QUOTES_STRICT : QUOTES_BYTES;
}

void looked_separate(struct columns_form *form, const struct looked_lines *lines, int fixed, int blanks,
                     enum corpus_separator key, const char *written) {
    const char *separator = separators[BLANKS];
    if (key != SEPARATOR_AUTO)
        separator = separator_of_key[key];
    else if (*written)
        separator = written;
    else if (lines->count)
        separator = fixed ? separator_of_fixed(lines, blanks) : separator_of_lists(lines);
    memcpy(form->separator, separator, strlen(separator) + 1);
    form->quotes = (uint8_t)choose_quotes(lines, separator);
}

/* ---- columns ---- */

int looked_is_digits(const char *word, uint64_t length) {
    int digits = 0;
    for (uint64_t i = 0; i < length; i++) {
        int digit = word[i] >= '0' && word[i] <= '9';
        digits |= digit;
        if (!digit && !strchr(".,:/+- TZ", word[i])) return 0;
    }
    return digits;
}

static uint64_t count_letters(const char *word, uint64_t length) {
    uint64_t n = 0;
    while (n < length && !(word[n] >= '0' && word[n] <= '9')) n++;
    return n < length ? n : 0;
}

int looked_is_coded(const struct looked_column *column, const char *word, uint64_t length) {
    uint64_t n = count_letters(word, length);
    return n && n == column->letters_length && !memcmp(word, column->letters, n);
}

static int is_time(double value) {
    double seconds = value > 1e11 ? value / 1000 : value;
    return value == floor(value) && seconds >= 5e8 && seconds < 4e9;
}

/* Returns 1 for 1,234 or 1,234,567: the commas may separate thousands, or the first may be a decimal sign. */
static int has_thousands(const char *word, uint64_t length) {
    uint64_t digits = 0, commas = 0;
    for (uint64_t i = 0; i < length; i++) {
        if (word[i] == ',') {
            if (!digits || digits > 3 || (commas && digits != 3)) return 0;
            commas++;
            digits = 0;
        } else if (word[i] < '0' || word[i] > '9') {
            return 0;
        } else {
            digits++;
        }
    }
    return commas && digits == 3;
}

static void describe_field(struct looked_column *column, const struct columns_form *form, const char *word, uint64_t length) {
    struct columns_form point = *form, comma = *form;
    double value;
    point.decimal_comma = 0;
    comma.decimal_comma = 1;
    if (!length) return;
    static const char *const arrows[] = {"->", "--", "=>", "→", "<->"};
    for (size_t i = 0; i < sizeof arrows / sizeof *arrows; i++)
        column->arrows += strlen(arrows[i]) == length && !memcmp(arrows[i], word, length);
    column->thousands += has_thousands(word, length);
    column->flags += length == 1 && (*word == '0' || *word == '1');
    if (!column->filled++) {
        column->letters = word;
        column->letters_length = count_letters(word, length);
    }
    int is_number = !columns_number(&point, word, length, &value);
    column->numbers += is_number;
    column->times += is_number && is_time(value);
    column->comma_numbers += !columns_number(&comma, word, length, &value);
    column->digits += looked_is_digits(word, length) || is_number;
    column->coded += looked_is_coded(column, word, length);
}

void looked_describe(struct looked_columns *columns, const struct looked_lines *lines, uint64_t first,
                     const struct columns_form *form) {
    memset(columns, 0, sizeof *columns);
    columns->least = UINT64_MAX;
    for (uint64_t i = first; i < lines->count; i++, columns->lines++) {
        struct table_line parts = looked_part(&lines->line[i], form);
        columns->least = parts.count < columns->least ? parts.count : columns->least;
        columns->most = parts.count > columns->most ? parts.count : columns->most;
        for (uint64_t c = 0; c < parts.count && c < COLUMNS_READ; c++)
            describe_field(&columns->column[c], form, parts.word[c], parts.length[c]);
    }
    if (!columns->lines) columns->least = 0;
}

/* ---- what columns have in all lines ---- */

static int is_ntriple(const char *at, const char *end) {
    if (end - at < 4 || !(*at == '<' || (at[0] == '_' && at[1] == ':'))) return 0;
    return end[-1] == '.' || memmem(at, (size_t)(end - at), ". #", 3);
}

int looked_are_ntriples(const struct looked_lines *lines) {
    uint64_t triples = 0, others = 0;
    for (uint64_t i = 0; i < lines->count; i++) {
        const char *at = lines->line[i].at, *end = lines->line[i].end;
        while (at < end && token_is_white(*at)) at++;
        while (end > at && token_is_white(end[-1])) end--;
        if (*at == '#') continue;
        int is = is_ntriple(at, end);
        triples += (uint64_t)is;
        others += (uint64_t)!is;
    }
    return triples > others;
}

int looked_begin_differently(const struct looked_lines *lines, const struct columns_form *form) {
    struct words firsts = {0};
    int failed = 0;
    for (uint64_t i = 1; i < lines->count && !failed; i++) {
        struct table_line parts = looked_part(&lines->line[i], form);
        failed = words_add(&firsts, words_hash(parts.word[0], parts.length[0]), parts.word[0], parts.length[0]) < 0;
    }
    uint64_t different = firsts.size;
    words_release(&firsts);
    return !failed && different + 1 == lines->count;
}

enum { NUMBERED_LEAST = 5 }; /* smallest number of lines for which rising first fields count as row numbers */

int looked_are_numbered(const struct looked_lines *lines, const struct columns_form *form) {
    uint64_t number, first = 0;
    if (lines->count < NUMBERED_LEAST) return 0;
    for (uint64_t i = 0; i < lines->count; i++) {
        struct table_line parts = looked_part(&lines->line[i], form);
        char text[24];
        snprintf(text, sizeof text, "%.*s", (int)(parts.length[0] < sizeof text ? parts.length[0] : 0), parts.word[0]);
        if (text_count(text, &number) || (!i && number > 1) || (i && number != first + i)) return 0;
        if (!i) first = number;
    }
    return 1;
}
