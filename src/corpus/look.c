#define _GNU_SOURCE
#include "look.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the first rows ---- */

struct looked_line {
    const char *at, *end; /* bytes of the line without the line end; for a program's row, its fields as text for messages */
    uint64_t number;      /* number of the line in the file, from 1; number of a program's row, from 0 */
    const struct look_field *fields; /* fields of a program's row; NULL: this is a line, which the format splits into fields */
    uint64_t count;                  /* number of `fields` */
};
struct looked_lines {
    struct looked_line *line; /* [count] the first lines, without empty lines and comments */
    uint64_t count;
    const char *bytes; /* the first byte of the file's first line */
};

/* Statistics of one column. Each counter is a number of the column's fields. */
struct looked_column {
    uint64_t filled;        /* number of fields that are not empty */
    uint64_t numbers;       /* number of fields that are numbers: 1.5 */
    uint64_t comma_numbers; /* number of fields that are numbers if a comma is taken as the decimal point: 1,5 or 2 */
    uint64_t digits;        /* number of fields that consist of digits and signs such as . : / - : numbers, dates, times */
    uint64_t arrows;        /* number of fields such as -> or -- (an edge's arrow) */
    uint64_t thousands;     /* number of fields such as 1,234 */
    uint64_t flags;         /* number of fields that contain 0 or 1 and nothing else */
    uint64_t zeros;         /* number of fields that are the number 0 */
    uint64_t truths, falses; /* numbers of fields that contain the word true, and the word false */
    uint64_t times;         /* number of fields that look like times: seconds or milliseconds since 1970, in the years 1986 to 2096 */
    uint64_t coded;         /* number of fields like the first one: the same letters, then digits (u17, u18) */
    uint64_t words;         /* total number of words, separated by blanks, in all fields */
    const char *letters;    /* the letters before the first digit of the column's first field: u */
    uint64_t letters_length;
};
struct looked_columns {
    struct looked_column column[COLUMNS_READ];
    uint64_t least, most; /* smallest and largest number of fields of a line */
    uint64_t lines;       /* number of lines described */
};

/* State while the format of one file, or of a program's data, is found. */
struct looking {
    struct look *look;
    struct looked_lines lines;
    struct looked_columns columns; /* statistics of the columns, without the header */
    struct table_line first;       /* fields of the first line, which may be the header */
    enum look_rows rows;
    const struct row_properties *row;
    const struct look_keys *keys;
    const char *path, *name; /* name: how messages call the data: the path in quotes, or a name */
    uint64_t length;
    int whole;       /* 1: these are all lines of the file */
    int typed;       /* 1: the rows are a program's, and `path` is the data's name for messages */
    int has_header;
    int headless;    /* 1: the keys describe another file (look_keys.hints), and that file has no header */
    int is_shifted;  /* 1: each line of data has one field more than the header, the first, as when R writes row names */
    int has_hash;    /* 1: the first line began with # and is a header */
    int has_times;   /* 1: the third column contains times, so it is not read as ratings or weights */
    uint64_t comments; /* number of comment lines that were left out before the first row */
    int has_count;   /* 1: the file's first line, which only says how many lines follow, was left out */
    int reordered;   /* 1: triples: the relation is not in the second column but in another one */
    uint64_t names;  /* lists and documents: number of distinct first fields of lines */
    char where[512]; /* the last text of where_is() */
    char happened[160]; /* text for messages: the words of a column of events, with their counts */
};

/* Returns how messages name a line: "'path' line 3"; for a program's data "row 3 of the frame". */
static const char *where_is(struct looking *l, uint64_t index) {
    uint64_t number = l->lines.line[index].number;
    if (l->typed)
        snprintf(l->where, sizeof l->where, "row %" PRIu64 " of %s", number, l->path);
    else
        snprintf(l->where, sizeof l->where, "'%s' line %" PRIu64, l->path, number);
    return l->where;
}
/* The line as messages show it, for "%.*s". */
#define SHOWN(line) text_shown((uint64_t)((line)->end - (line)->at)), (line)->at

/* Finds the first lines in `bytes`, at most LOOKED_AT. comments = 1: leaves out lines that begin with # or %. Returns 0, or -1 after fail(); the
 * caller frees lines->line in both cases. */
static int collect_lines(struct looked_lines *lines, const char *bytes, uint64_t length, int whole, int comments) {
    const char *at = bytes, *end = bytes + length;
    *lines = (struct looked_lines){.bytes = bytes, .line = mem_alloc(LOOKED_AT, sizeof *lines->line, "a file's first lines")};
    if (!lines->line) return -1;
    for (uint64_t number = 1; at < end && lines->count < LOOKED_AT; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        if (!newline && !whole) break;
        struct looked_line line = {.at = at, .end = stop, .number = number};
        at = newline ? newline + 1 : end;
        const char *first = line.at;
        while (first < line.end && token_is_white(*first)) first++;
        while (line.end > first && line.end[-1] == '\r') line.end--;
        if (first < line.end && !(comments && columns_comment(*first))) lines->line[lines->count++] = line;
    }
    return 0;
}

/* Splits a line into fields without changing its bytes. */
static struct table_line part_line(const struct looked_line *line, const struct columns_form *form) {
    struct table_line parts;
    if (!line->fields) {
        columns_part(&parts, (char *)line->at, (char *)line->end, form, 1);
        return parts;
    }
    parts = (struct table_line){.count = line->count};
    while (parts.count && line->fields[parts.count - 1].kind == FIELD_NONE) parts.count--;
    for (uint64_t c = 0; c < parts.count && c < COLUMNS_READ; c++) {
        const struct look_field *field = &line->fields[c];
        parts.word[c] = field->text ? field->text : "";
        parts.length[c] = field->kind == FIELD_MISSING || field->kind == FIELD_NONE ? 0 : field->length;
    }
    return parts;
}

/* Adds field c of a line to the set of words. Returns the word's number, or -1 after fail(). */
static int64_t add_word(struct words *words, const struct table_line *parts, uint64_t c) {
    return words_add(words, words_hash(parts->word[c], parts->length[c]), parts->word[c], parts->length[c]);
}

static int has_word(const struct words *words, const struct table_line *parts, uint64_t c) {
    return words_find(words, words_hash(parts->word[c], parts->length[c]), parts->word[c], parts->length[c]) >= 0;
}

/* Reads field c of a line as a whole number. Returns 0, or -1 if it is not one. */
static int whole_number(const struct table_line *parts, uint64_t c, uint64_t *number) {
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)(parts->length[c] < sizeof text ? parts->length[c] : 0), parts->word[c]);
    return text_count(text, number) ? -1 : 0;
}

/* ---- the separator ---- */

static const char *const separators[] = {"\t", "::", ";", "|", ",", " "};
enum { COMMA = 4, BLANKS = 5, SEPARATORS = 6 };
static const char *const separator_of_key[] = {[SEPARATOR_TAB] = "\t", [SEPARATOR_COMMA] = ",",   [SEPARATOR_SEMICOLON] = ";",
                                               [SEPARATOR_PIPE] = "|", [SEPARATOR_COLONS] = "::", [SEPARATOR_BLANK] = " "};

/* Statistics of the lines if they are split at a given separator. */
struct parting {
    uint64_t least, most; /* smallest and largest number of fields of a line; the first line, maybe a header, is not counted */
    uint64_t parted;      /* number of lines that the separator splits into at least two fields */
    uint64_t fields, words; /* in these lines: total number of fields, and of words (between blanks) */
};

static struct columns_form form_with(const char *separator, enum column_quotes quotes) {
    struct columns_form form = COLUMNS_PLAIN;
    memcpy(form.separator, separator, strlen(separator) + 1);
    form.quotes = (uint8_t)quotes;
    return form;
}

static uint64_t count_words(const struct looked_line *line) {
    struct columns_form blanks = form_with(" ", QUOTES_BYTES);
    return part_line(line, &blanks).count;
}

static struct parting try_separator(const struct looked_lines *lines, const char *separator) {
    struct columns_form form = form_with(separator, QUOTES_LENIENT);
    struct parting parting = {.least = UINT64_MAX};
    for (uint64_t i = 0; i < lines->count; i++) {
        uint64_t fields = part_line(&lines->line[i], &form).count;
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

/* Returns 1 if blanks separate the fields and commas occur only as the decimal comma of a last field: "ann bob 1,5". */
static int are_decimal_commas(const struct looked_lines *lines) {
    struct columns_form blanks = form_with(" ", QUOTES_BYTES);
    for (uint64_t i = 0; i < lines->count; i++) {
        const struct looked_line *line = &lines->line[i];
        struct table_line parts = part_line(line, &blanks);
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

/* Returns 1 if a comma in some line is neither between digits nor followed by a blank, so that it must separate fields. */
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

/* Returns 1 if the separator, bars or colons, is probably part of names: commas also split all lines, and into more fields. */
static int are_in_names(const struct looked_lines *lines, const char *separator, const struct parting *of, const struct parting *commas) {
    return may_be_in_names(separator) && is_uniform(lines, commas) && commas->least > of->least && have_commas_of_fields(lines);
}

/* Returns 1 if the separator is '|' or '::' and commas would do as well: they are neither decimal nor followed by blanks, and split all lines into
 * the same number of fields. */
static int has_two_separators(const struct looked_lines *lines, const struct columns_form *form) {
    struct parting of = try_separator(lines, form->separator), commas = try_separator(lines, ",");
    return lines->count > 1 && may_be_in_names(form->separator) && is_uniform(lines, &of) && is_uniform(lines, &commas) &&
           of.least == commas.least && have_commas_of_fields(lines);
}

/* Returns the separator of lines that should all have the same number of fields: the first one that splits all lines into equally many; else the
 * first one that splits all lines; else the one that splits the most lines. */
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

enum { WORDS_OF_ITEM = 8, WORDS_OF_ITEM_IN_SOME = 3 }; /* largest average number of words in an item for which a separator is accepted: if it
                                                        * splits all lines, and if only some */

/* Returns the separator of lists: the first one that splits at least half of the lines into fields of few words; a line of one field counts as
 * split. Lines such as "name TAB item item item" are split at blanks. */
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

/* Chooses what quotes mean. Where commas or semicolons separate fields, quotes enclose fields. Where blanks do, quotes enclose fields only if
 * every field that begins with a quote also ends with one. With other separators, each field is judged by itself (QUOTES_LENIENT). */
static enum column_quotes choose_quotes(const struct looked_lines *lines, const char *separator) {
    struct columns_form strict = form_with(separator, QUOTES_STRICT);
    int quoted = 0;
    if (*separator == ',' || *separator == ';') return QUOTES_STRICT;
    if (*separator != ' ') return QUOTES_LENIENT;
    for (uint64_t i = 0; i < lines->count; i++) {
        struct table_line parts = part_line(&lines->line[i], &strict);
        if (parts.open) return QUOTES_BYTES;
        quoted |= parts.quoted;
    }
    return quoted ? QUOTES_STRICT : QUOTES_BYTES;
}

/* Chooses form->separator and form->quotes to fit the lines. fixed = 1: all lines should have the same number of fields. blanks = 1: runs of
 * blanks may be the separator. `key` is corpus.separator; `written` is the separator that the file itself names in a line such as "sep=;", or "". */
static void separate(struct columns_form *form, const struct looked_lines *lines, int fixed, int blanks,
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

/* Returns 1 if the word consists of digits and signs such as . : / - and has at least one digit. */
static int is_digits(const char *word, uint64_t length) {
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

/* Returns 1 if the word begins with column->letters and a digit follows them. */
static int is_coded(const struct looked_column *column, const char *word, uint64_t length) {
    uint64_t n = count_letters(word, length);
    return n && n == column->letters_length && !memcmp(word, column->letters, n);
}

static int is_time(double value) {
    double seconds = value > 1e11 ? value / 1000 : value;
    return value == floor(value) && seconds >= 5e8 && seconds < 4e9;
}

/* Returns 1 for numbers such as 1,234 or 1,234,567, in which commas may separate thousands or the first may be a decimal comma. */
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
    column->truths += length == 4 && !strncasecmp(word, "true", 4);
    column->falses += length == 5 && !strncasecmp(word, "false", 5);
    for (uint64_t i = 0; i < length; i++) column->words += !text_is_blank(word[i]) && (!i || text_is_blank(word[i - 1]));
    if (!column->filled++) {
        column->letters = word;
        column->letters_length = count_letters(word, length);
    }
    int is_number = !columns_number(&point, word, length, &value);
    column->numbers += is_number;
    column->zeros += is_number && value == 0;
    column->times += is_number && is_time(value);
    column->comma_numbers += !columns_number(&comma, word, length, &value);
    column->digits += is_digits(word, length) || is_number;
    column->coded += is_coded(column, word, length);
}

/* Computes the statistics of all columns over the lines from index `first` on. */
static void describe_columns(struct looked_columns *columns, const struct looked_lines *lines, uint64_t first,
                     const struct columns_form *form) {
    memset(columns, 0, sizeof *columns);
    columns->least = UINT64_MAX;
    for (uint64_t i = first; i < lines->count; i++, columns->lines++) {
        struct table_line parts = part_line(&lines->line[i], form);
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

/* Returns 1 if most lines are N-Triples: apart from comments, they begin with an IRI or a blank node and end with a dot, maybe followed by a
 * comment. The other lines are errors, which are reported when they are read. */
static int are_ntriples(const struct looked_lines *lines) {
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

/* Returns 1 if the column may contain names: all its fields differ, and none is empty or long. */
static int is_of_names(const struct looking *l, unsigned column, uint64_t *different) {
    ENDED_BY(words_release) struct words words = {0};
    uint64_t lines = 0, bytes = 0, filled = 0;
    int failed = 0;
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count && !failed; i++, lines++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        if (column >= parts.count || !parts.length[column]) continue;
        failed = add_word(&words, &parts, column) < 0;
        bytes += parts.length[column];
        filled++;
    }
    *different = words.size;
    return !failed && filled == lines && *different == lines && bytes <= 200 * lines;
}

enum { NUMBERED_LEAST = 5 }; /* fewest lines for which rising first fields are taken as row numbers */

/* Returns 1 if there are at least NUMBERED_LEAST lines and their first fields are consecutive numbers, from 0 or 1 on. */
static int are_numbered(const struct looked_lines *lines, const struct columns_form *form) {
    uint64_t number, first = 0;
    if (lines->count < NUMBERED_LEAST) return 0;
    for (uint64_t i = 0; i < lines->count; i++) {
        struct table_line parts = part_line(&lines->line[i], form);
        if (whole_number(&parts, 0, &number) || (!i && number > 1) || (i && number != first + i)) return 0;
        if (!i) first = number;
    }
    return 1;
}

/* ---- files of other formats ---- */

static int is_json(const struct looked_line *line) {
    const char *at = line->at, *end = line->end;
    while (at < end && text_is_blank(*at)) at++;
    while (end > at && (text_is_blank(end[-1]) || end[-1] == ',')) end--;
    return end - at > 1 && (memchr(at, '"', (size_t)(end - at)) || memchr(at, ':', (size_t)(end - at))) &&
           ((*at == '{' && end[-1] == '}') || (*at == '[' && end[-1] == ']'));
}

static int is_json_begun(const struct looked_line *line) {
    return line->end - line->at == 1 && (*line->at == '[' || *line->at == '{');
}

static int are_json(const struct looked_lines *lines) {
    if (lines->count && is_json_begun(&lines->line[0])) return 1;
    for (uint64_t i = 0; i < lines->count; i++)
        if (!is_json(&lines->line[i])) return 0;
    return lines->count > 0;
}

enum { XML, GML }; /* the first of `others` */
/* Formats of files that are not tables: the first bytes of such a file, the format's name, and advice to the user. */
static const struct {
    const char *begin, *what, *then;
} others[] = {[XML] = {"<", "XML", "write a line for each edge or pair first"},
              [GML] = {"graph [", "GML", "in Python: sptx.fit(networkx.read_gml(path), ..)"},
              {"@prefix ", "Turtle", "write N-Triples first (rapper -i turtle -o ntriples)"},
              {"@base ", "Turtle", "write N-Triples first (rapper -i turtle -o ntriples)"},
              {"Creator ", "GML", "in Python: sptx.fit(networkx.read_gml(path), ..)"},
              {"*vertices", "a graph of Pajek's", "in Python: sptx.fit(networkx.read_pajek(path), ..)"},
              {"*network", "a graph of Pajek's", "in Python: sptx.fit(networkx.read_pajek(path), ..)"},
              {"digraph ", "a graph of Graphviz'", "write an edge on each line first"},
              {"graph {", "a graph of Graphviz'", "write an edge on each line first"},
              {"@relation", "ARFF", "write its lines of data first"}};

static int begins_with(const struct looked_line *line, const char *text) {
    return (size_t)(line->end - line->at) >= strlen(text) && !memcmp(line->at, text, strlen(text));
}

static int holds(const struct looked_line *line, const char *text) {
    return memmem(line->at, (size_t)(line->end - line->at), text, strlen(text)) != NULL;
}

/* Returns the index in `others` of the format that the first lines belong to; -1 if it is none of these. */
static int find_other_format(const struct looked_lines *lines) {
    const struct looked_line *line = &lines->line[0];
    if (begins_with(line, "graph") && line->end - line->at == 5 && lines->count > 1 && begins_with(&line[1], "[")) return GML;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((size_t)(line->end - line->at) >= strlen(others[i].begin) && !strncasecmp(line->at, others[i].begin, strlen(others[i].begin)))
            return (int)i;
    return -1;
}

static int refuse_other_formats(const struct looked_lines *lines, enum look_rows rows, const char *path) {
    const struct looked_line *line = &lines->line[0];
    if (begins_with(line, "PREFIX ") && holds(line, ": <"))
        return fail("'%s' holds Turtle, and no rows of fields: write N-Triples first (rapper -i turtle -o ntriples)", path);
    int names = rows == LOOK_TRIPLES && *line->at == '<' && !begins_with(line, "<?xml") && !begins_with(line, "<rdf"); /* <Ulm> */
    if (are_ntriples(lines)) return fail("'%s' holds N-Triples: corpus.format = triples reads them", path);
    int other = names ? -1 : find_other_format(lines);
    return other < 0 ? 0 : fail("'%s' holds %s, and no rows of fields: %s", path, others[other].what, others[other].then);
}

static int ends_with(const struct looked_line *line, const char *text) {
    return (size_t)(line->end - line->at) >= strlen(text) && !memcmp(line->end - strlen(text), text, strlen(text));
}
/* Returns 1 if the line's first word ends with a colon, as in "1: 2 3". */
static int names_with_colon(const struct looked_line *line, const char *unused) {
    const char *at = line->at;
    while (at < line->end && !token_is_white(*at)) at++;
    return at > line->at && at < line->end && at[-1] == ':';
}

/* Returns 1 for a line of a drawn table: "+----+----+" or "---+---". */
static int draws_table(const struct looked_line *line, const char *unused) {
    uint64_t dashes = 0;
    for (const char *at = line->at; at < line->end; at++) {
        if (!strchr("-+|=: ", *at)) return 0;
        dashes += *at == '-' || *at == '=';
    }
    return dashes >= 3;
}

/* Returns 1 if the line contains this text, or is a list as programs print it: [1, 2]. */
static int prints_list(const struct looked_line *line, const char *text) {
    int quote = begins_with(line, "\"");
    return holds(line, text) || (begins_with(line, quote ? "\"[" : "[") && ends_with(line, quote ? "]\"" : "]"));
}

/* Signs by which lines are recognized that are not rows of fields. */
static const struct {
    int (*is)(const struct looked_line *line, const char *text);
    const char *text;
    int one; /* 1: one line with the sign is enough; 0: all lines except a header must have it */
    int lists, tables; /* 1: this sign is looked for in lists and adjacency; 1: in all other rows */
    const char *sentence;
} marks[] = {
    {prints_list, "['", 0, 1, 0, "holds lists as a program prints them; write the items with tabs or commas between (in Python: '\\t'.join(items))"},
    {ends_with, " -2", 0, 1, 0, "ends each line with -2, as sequences of SPMF do; remove -1 and -2, which are no items"},
    {names_with_colon, "", 0, 1, 0, "has a colon behind each line's first word, which would be a part of the name; remove it (sed 's/:/ /')"},
    {begins_with, "(", 0, 0, 1, "begins each line with a bracket, as tuples are printed; write the fields with tabs or commas between"},
    {begins_with, "// ", 1, 1, 1, "is a comment; remove such lines (grep -v '^//')"},
    {begins_with, "; ", 1, 0, 1, "is a comment; remove such lines (grep -v '^;')"},
    {draws_table, "", 1, 1, 1, "draws a table, as psql and mysql print results; write CSV (psql --csv, mysql --batch)"}};

static int refuse_marks(const struct looked_lines *lines, enum look_rows rows, const char *path) {
    int lists = row_properties[rows].free;
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        uint64_t count = 0, first = 0;
        if (!(lists ? marks[m].lists : marks[m].tables)) continue;
        for (uint64_t i = 0; i < lines->count; i++)
            if (marks[m].is(&lines->line[i], marks[m].text) && !count++) first = i;
        if (marks[m].one ? count : count == lines->count || (count > 1 && first && count + 1 == lines->count))
            return fail("'%s' line %" PRIu64 " %s", path, lines->line[first].number, marks[m].sentence);
    }
    for (uint64_t i = 0; i < lines->count && rows == LOOK_EDGES; i++)
        if (begins_with(&lines->line[i], "p edge ") || begins_with(&lines->line[i], "p sp ") || begins_with(&lines->line[i], "p col "))
            return fail("'%s' line %" PRIu64 ": a graph of DIMACS, and no rows of fields; keep its lines of edges without their first "
                        "letter (awk '/^[ea] /{print $2, $3}')",
                        path, lines->line[i].number);
    return 0;
}

/* Refuses a file whose lines are not rows of fields. braces: 1 if edges end with networkx' attributes. Returns 0, or -1 after
 * fail(). */
static int refuse_lines(const struct looked_lines *lines, enum look_rows rows, int braces, const char *path) {
    if (!braces && are_json(lines))
        return fail("'%s' holds JSON; wanted %s on each line: write it so first (in Python: pandas.read_json, then to_csv)", path,
                    row_properties[rows].free ? "a list" : "fields with commas or tabs between");
    return refuse_other_formats(lines, rows, path) || refuse_marks(lines, rows, path) ? -1 : 0;
}

/* ---- columns whose fields are not names ---- */

/* Returns 1 for words that programs write in place of a missing value, such as NA or NULL. */
static int is_missing(const char *word, uint64_t length) {
    static const char *const names[] = {"NA", "N/A", "NULL", "\\N", "nan", "None", "-", "?"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncasecmp(names[i], word, length)) return 1;
    return 0;
}

static int is_null_of_sql(const char *word, uint64_t length) {
    return length == 2 && !memcmp(word, "\\N", 2);
}
static int is_in_single_quotes(const char *word, uint64_t length) {
    return length > 1 && *word == '\'' && word[length - 1] == '\'';
}
static int is_formula(const char *word, uint64_t length) {
    return length > 2 && word[0] == '=' && word[1] == '"' && word[length - 1] == '"';
}
static int is_printed_list(const char *word, uint64_t length) {
    return length > 1 && *word == '[' && word[length - 1] == ']';
}
enum { LIST_LEAST = 3 }; /* fields are taken as lists only if the longest one has at least this many items */

/* Returns 1 for a date, maybe followed by a time: 2024-01-31, 31.1.2024, 1/31/2024 10:00. */
static int is_date(const char *word, uint64_t length) {
    uint64_t digits[3] = {0}, part = 0, i = 0;
    char sign = 0;
    for (; i < length && part < 3; i++) {
        if (word[i] >= '0' && word[i] <= '9') {
            digits[part]++;
        } else if (part < 2 && digits[part] && strchr("-/.", word[i]) && (!sign || sign == word[i])) {
            sign = word[i];
            part++;
        } else {
            break;
        }
    }
    int ends = i == length || text_is_blank(word[i]) || word[i] == 'T';
    return ends && part == 2 && digits[1] <= 2 && ((digits[0] == 4 && digits[2] && digits[2] <= 2) || (digits[0] <= 2 && digits[2] == 4));
}

/* How many of a column's non-empty fields must match a rule for the column to be refused. */
enum how_many {
    ONE,              /* at least one field */
    ALL,              /* all fields */
    ONE_BESIDE_DIGITS /* at least one field, if all other fields are numbers */
};
/* The columns to which a rule applies. */
enum checked {
    BOTH,            /* COLUMN_A and COLUMN_B of any file */
    BOTH_OF_PAIRS,   /* COLUMN_A and COLUMN_B of pairs and edges */
    ITEM_BY_POSITION /* COLUMN_B of pairs and edges, if it was chosen by position and not by a name or corpus.columns */
};
static const struct {
    int (*is)(const char *word, uint64_t length);
    enum how_many how_many;
    enum checked checked;
    const char *what, *then;
} fields[] = {
    {is_null_of_sql, ONE, BOTH, "has \\N, which databases write where a value is missing", "remove such lines"},
    {is_missing, ONE_BESIDE_DIGITS, BOTH_OF_PAIRS, "has a field without a value", "remove such lines"},
    {is_in_single_quotes, ALL, BOTH, "has single quotes, which would be parts of the names", "write double quotes (sed \"s/'/\\\"/g\")"},
    {is_formula, ALL, BOTH, "has formulas of a spreadsheet", "write the values alone (sed 's/=\"/\"/g')"},
    {is_date, ALL, ITEM_BY_POSITION, "has dates", "say by corpus.columns which columns are wanted, as in corpus.columns = 1,3 or by their names"}};

static int is_checked(enum checked checked, enum column_meaning meaning, enum look_rows rows, const struct columns_form *form) {
    if (checked == BOTH) return 1;
    if (rows != LOOK_PAIRS && rows != LOOK_EDGES) return 0;
    return checked == BOTH_OF_PAIRS || (meaning == COLUMN_B && !form->named);
}

/* Fails if so many fields of the column match the rule fields[rule] that they cannot be names. */
static int refuse_column(struct looking *l, unsigned column, size_t rule) {
    uint64_t filled = 0, such = 0, digits = 0, where = 0;
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        if (column >= parts.count || column >= COLUMNS_READ || !parts.length[column]) continue;
        int is = fields[rule].is(parts.word[column], parts.length[column]);
        if (is && !such++) where = i;
        filled++;
        digits += !is && is_digits(parts.word[column], parts.length[column]);
    }
    if (!such || (fields[rule].how_many == ALL && such < filled)) return 0;
    if (fields[rule].how_many == ONE_BESIDE_DIGITS && (!digits || digits + such < filled)) return 0;
    return fail("%s: column %u %s: %.*s; %s", where_is(l, where), column + 1, fields[rule].what, SHOWN(&l->lines.line[where]),
                fields[rule].then);
}

/* Returns the number of items if the field may be a list whose items this separator separates; otherwise 0. At blanks only ids are split: letters
 * and digits, with at least one digit. Sets *ids to 0 if an item has no digit. */
static uint64_t count_items(const char *word, uint64_t length, char separator, int *ids) {
    uint64_t items = 1;
    int digit = 0;
    if (separator == '[') return is_printed_list(word, length) ? LIST_LEAST : 0;
    if (has_thousands(word, length) || is_date(word, length)) return 0;
    for (uint64_t i = 0; i <= length; i++) {
        if (i < length && word[i] != separator) {
            int letter = (word[i] >= 'a' && word[i] <= 'z') || (word[i] >= 'A' && word[i] <= 'Z') || word[i] == '_';
            digit |= word[i] >= '0' && word[i] <= '9';
            if (separator == ' ' && !letter && !(word[i] >= '0' && word[i] <= '9')) return 0;
        } else {
            int blank = i < length && separator != ' ' && separator != '|' && i + 1 < length && text_is_blank(word[i + 1]);
            if (blank || !i || word[i - 1] == separator || (separator == ' ' && !digit)) return 0;
            *ids &= digit;
            digit = 0;
            items += i < length;
        }
    }
    return items;
}

/* If the column's fields are lists themselves, of different lengths or of ids, returns what separates their items; "[" if a program printed them.
 * Otherwise returns NULL. `but`: separators that are not tried. */
static const char *find_lists_within(const struct looked_lines *lines, uint64_t first, const struct columns_form *form, unsigned column,
                                     const char *but) {
    static const char *const between[] = {"[", "|", ";", ",", " "};
    for (size_t s = 0; s < sizeof between / sizeof *between; s++) {
        uint64_t filled = 0, lists = 0, least = UINT64_MAX, most = 0;
        int all = *between[s] != *form->separator && !strchr(but, *between[s]), ids = 1;
        for (uint64_t i = first; i < lines->count && all; i++) {
            struct table_line parts = part_line(&lines->line[i], form);
            if (column >= parts.count || column >= COLUMNS_READ || !parts.length[column]) continue;
            uint64_t items = count_items(parts.word[column], parts.length[column], *between[s], &ids);
            all = items > 0;
            filled++;
            lists += items > 1;
            least = items < least ? items : least;
            most = items > most ? items : most;
        }
        if (all && filled > 1 && 2 * lists >= filled && most >= LIST_LEAST && (ids || least < most)) return between[s];
    }
    return NULL;
}

/* Fails: a column holds whole lists. */
static int refuse_lists_within(struct looking *l, const char *between, unsigned column, uint64_t line, const char *key) {
    int printed = *between == '[';
    return fail("%s: column %u holds whole lists, %s%s%s: %.*s; write a line for each item (in Python: %s%s%sframe.explode)%s", where_is(l, line),
                column + 1, printed ? "as a program prints them" : "with ", printed ? "" : columns_separator_name(between), printed ? "" : " between",
                SHOWN(&l->lines.line[line]), printed ? "" : "str.split('", printed ? "" : between, printed ? "" : "') and ", printed ? "" : key);
}

/* Refuses a table read as lists if one of its columns contains lists: id,title,"a|b|c". */
static int refuse_table_of_lists(struct looking *l) {
    if (l->keys->separator != SEPARATOR_AUTO || l->lines.count < 2) return 0;
    for (int s = 0; s < BLANKS; s++) {
        struct parting parting = try_separator(&l->lines, separators[s]);
        if (!is_uniform(&l->lines, &parting)) continue;
        struct columns_form form = form_with(separators[s], choose_quotes(&l->lines, separators[s]));
        for (unsigned c = 1; c < parting.least && c < COLUMNS_READ; c++) {
            const char *blanks = *l->look->form.separator == ' ' ? " " : "", *between = find_lists_within(&l->lines, 1, &form, c, blanks);
            if (between) return refuse_lists_within(l, between, c, 1, "; or corpus.separator says which separates the items");
        }
    }
    return 0;
}

/* Refuses the columns chosen as COLUMN_A and COLUMN_B if their fields are not names. Returns 0, or -1 after fail(). */
static int refuse_fields(struct looking *l) {
    const struct columns_form *form = &l->look->form;
    uint64_t first = (uint64_t)l->has_header;
    int given = l->keys->columns && *l->keys->columns, lists = l->rows == LOOK_PAIRS || l->rows == LOOK_EDGES;
    for (size_t rule = 0; rule < sizeof fields / sizeof *fields; rule++)
        for (int meaning = COLUMN_A; meaning <= COLUMN_B; meaning++)
            if (is_checked(fields[rule].checked, (enum column_meaning)meaning, l->rows, form) &&
                refuse_column(l, form->column[meaning], rule))
                return -1;
    const char *between = lists ? find_lists_within(&l->lines, first, form, form->column[COLUMN_B], given ? "|;, " : "") : NULL;
    return between ? refuse_lists_within(l, between, form->column[COLUMN_B], first, "; corpus.columns = .. takes them as names") : 0;
}

/* ---- lines before the header ---- */

static void leave_out(struct looked_lines *lines, uint64_t count) {
    memmove(lines->line, lines->line + count, (lines->count -= count) * sizeof *lines->line);
}

/* Leaves out comments before the rows: lines that begin with # (or %, as those of Matrix Market and KONECT). The last one may be a header, "# user
 * item", and is kept without its #. Since names may begin with # too, the lines are comments only if a blank follows a #, or if one of them
 * differs from the rows in its number of fields. */
static void pass_comments(struct looking *l) {
    struct looked_lines *lines = &l->lines, rest;
    struct columns_form form = COLUMNS_PLAIN, blanks = COLUMNS_PLAIN;
    char sign = *lines->line->at;
    uint64_t count = 0;
    int are = sign == '%';
    if (l->rows == LOOK_EDGES || l->row->text || !columns_comment(sign)) return;
    while (count < lines->count && *lines->line[count].at == sign) count++;
    for (uint64_t i = count; i < lines->count; i++)
        if (*lines->line[i].at == sign) return;
    if (count == lines->count) return;
    rest = (struct looked_lines){lines->line + count, lines->count - count, lines->bytes};
    separate(&form, &rest, !l->row->free, l->rows != LOOK_TITLES, l->keys->separator, "");
    uint64_t wanted = part_line(rest.line, &form).count;
    for (uint64_t i = 0; i < count; i++)
        are |= (lines->line[i].end - lines->line[i].at > 1 && text_is_blank(lines->line[i].at[1])) ||
               (!l->row->free && part_line(&lines->line[i], &form).count != wanted);
    if (!are && count > 1) return;
    struct looked_line last = lines->line[count - 1];
    while (last.at < last.end && (*last.at == sign || token_is_white(*last.at))) last.at++;
    int features = l->rows == LOOK_FEATURES, alike = part_line(&last, &form).count == wanted;
    int named = l->row->free && !features ? count == 1 : alike || (!features && part_line(&last, &blanks).count == wanted);
    l->has_hash = sign == '#' && named;
    if (l->has_hash) lines->line[count - 1] = last;
    l->comments = count - (uint64_t)l->has_hash;
    leave_out(lines, l->comments);
}

/* Handles a first line such as "sep=;", by which spreadsheets name the separator: removes the line from `lines` and stores the separator. Returns
 * 1 if this program knows the separator, otherwise 0. */
static int take_separator_line(struct looked_lines *lines, char separator[3]) {
    const struct looked_line *line = &lines->line[0];
    if (lines->count < 2 || line->end - line->at != 5 || strncasecmp(line->at, "sep=", 4)) return 0;
    separator[0] = line->at[4];
    separator[1] = 0;
    leave_out(lines, 1);
    return strchr("\t;|, ", separator[0]) != NULL;
}

/* If every line ends with attributes of networkx such as "{'weight': 3}", removes them from all lines and returns 1; otherwise returns 0.
 * *weights: number of lines whose attributes contain a weight. */
static int cut_braces(struct looked_lines *lines, uint64_t *weights) {
    for (uint64_t i = 0; i < lines->count; i++) {
        const struct looked_line *line = &lines->line[i];
        const char *brace = memchr(line->at, '{', (size_t)(line->end - line->at));
        if (!brace || brace == line->at || line->end[-1] != '}') return 0;
    }
    for (uint64_t i = 0; i < lines->count; i++) {
        struct looked_line *line = &lines->line[i];
        *weights += memmem(line->at, (size_t)(line->end - line->at), "weight", strlen("weight")) != NULL;
        line->end = memchr(line->at, '{', (size_t)(line->end - line->at));
        while (line->end > line->at && (token_is_white(line->end[-1]) || line->end[-1] == ',')) line->end--;
    }
    return lines->count > 0;
}

/* Returns 1 if the file is in Matrix Market format: its first line after the comments is the matrix's size, not an edge. */
static int is_matrix_market(const char *bytes, uint64_t length) {
    static const char banner[] = "%%MatrixMarket";
    return length >= strlen(banner) && !memcmp(bytes, banner, strlen(banner));
}

/* ---- the header ---- */

/* Returns the index of the column whose name in the first line fits the meaning best; NO_COLUMN if no name fits. `but`: a column that is already
 * used. */
static unsigned find_named(const struct looking *l, enum column_meaning meaning, unsigned but) {
    unsigned best = 0, column = NO_COLUMN;
    for (unsigned c = 0; c < l->first.count && c < COLUMNS_READ; c++) {
        unsigned rank = column_rank(l->rows, meaning, l->first.word[c], l->first.length[c]);
        if (rank > best && c != but) best = rank, column = c;
    }
    return column;
}

/* Returns 1 if the header names COLUMN_A and COLUMN_B, and for triples the relation, by known names (columns.def). */
static int names_both(const struct looking *l) {
    unsigned a = find_named(l, COLUMN_A, NO_COLUMN);
    int relation = l->row->needed < COLUMN_MEANINGS || find_named(l, COLUMN_VALUE, NO_COLUMN) != NO_COLUMN;
    return a != NO_COLUMN && find_named(l, COLUMN_B, a) != NO_COLUMN && relation;
}

enum { NAME_MOST = 64 }; /* most bytes of a field that may be a column's name */
enum { CODED_LEAST = 4 }; /* fewest lines from which a pattern such as u1, u2, u3 is inferred */

/* Returns the name of the column in the first line; "" and *length = 0 if the line has no such column. */
static const char *column_name(const struct looking *l, uint64_t column, uint64_t *length) {
    int there = column < l->first.count && column < COLUMNS_READ;
    *length = there ? l->first.length[column] : 0;
    return there ? l->first.word[column] : "";
}

/* Returns 1 if the first line's field in this column occurs in no other line. */
static int is_alone(const struct looking *l, unsigned c) {
    for (uint64_t i = 1; i < l->lines.count; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        if (c < parts.count && parts.length[c] == l->first.length[c] && !memcmp(parts.word[c], l->first.word[c], parts.length[c])) return 0;
    }
    return 1;
}

/* Returns 1 if the first line is a header of two fields such as "user,film": one is a known column name, and neither occurs again in its column. */
static int names_one_of_two(const struct looking *l) {
    if (l->first.count != 2 || l->columns.most != 2 || l->lines.count < 3) return 0;
    unsigned a = find_named(l, COLUMN_A, NO_COLUMN), b = find_named(l, COLUMN_B, NO_COLUMN);
    return (a != NO_COLUMN || b != NO_COLUMN) && is_alone(l, 0) && is_alone(l, 1);
}

/* Returns 1 if the first line must be a header: in some column all other lines have numbers (or codes such as u17) where the first line has a
 * word, and in no such column does the first line have one, too. */
static int differs_from_data(const struct looking *l) {
    int differs = 0;
    uint64_t count = l->row->free ? 1 : l->first.count;
    for (uint64_t c = 0; c < count && c < COLUMNS_READ; c++) {
        const struct looked_column *column = &l->columns.column[c];
        uint64_t length = l->first.length[c];
        const char *word = l->first.word[c];
        if (!column->filled || !length || is_missing(word, length)) continue;
        double number;
        if (column->digits == column->filled) {
            if (is_digits(word, length) || !columns_number(&l->look->form, word, length, &number)) return 0;
            differs = 1;
        } else if (column->coded == column->filled && column->filled >= CODED_LEAST && column->letters_length) {
            if (is_coded(column, word, length)) return 0;
            differs |= !strpbrk(strndupa(word, length < NAME_MOST ? length : NAME_MOST), "0123456789");
        }
    }
    return differs;
}

static int next_given(const char **at, const char **name, uint64_t *length);

/* Returns 1 if all entries of corpus.columns, of which at least one is a name, occur in the first line. */
static int names_given(const struct looking *l) {
    const char *at = l->keys->columns, *name;
    uint64_t length, number;
    int names = 0;
    while (at && next_given(&at, &name, &length)) {
        int there = 0;
        if (!text_count(strndupa(name, length < NAME_MOST ? length : NAME_MOST), &number)) continue;
        for (uint64_t c = 0; c < l->first.count && c < COLUMNS_READ; c++)
            there |= l->first.length[c] == length && !strncasecmp(l->first.word[c], name, length);
        if (!there) return 0;
        names++;
    }
    return names > 0;
}

static int look_for_header(const struct looking *l) {
    const struct looked_lines *lines = &l->lines;
    enum corpus_header key = l->keys->header;
    if (l->typed) return l->has_header;
    if (l->keys->hints && names_given(l)) return 1;
    if (!lines->count || key == HEADER_NO) return 0;
    if (key == HEADER_YES) return 1;
    if (l->rows == LOOK_EDGES && is_matrix_market(lines->bytes, l->length)) return 1; /* the line of sizes */
    if (l->has_hash) return 1;
    if (l->rows == LOOK_DOCUMENTS) {
        unsigned text = find_named(l, COLUMN_B, NO_COLUMN);
        if (text != NO_COLUMN) return lines->count > 1 && is_alone(l, text);
    }
    if (l->rows == LOOK_FEATURES && lines->count > 1) {
        unsigned name = find_named(l, COLUMN_A, NO_COLUMN);
        if (name != NO_COLUMN && is_alone(l, name)) return 1;
    }
    if (!l->row->free && l->row->number && names_one_of_two(l)) return 1;
    return (!l->row->free && names_both(l)) || (lines->count > 1 && differs_from_data(l));
}

/* Returns 1 if each line has one field more than the header, because R wrote row names without a column name. */
static int find_shift(const struct looking *l) {
    if (l->typed || !l->has_header || l->lines.count < 2 || l->first.count + 1 != l->columns.most || l->columns.least != l->columns.most) return 0;
    struct table_line second = part_line(&l->lines.line[1], &l->look->form);
    uint64_t different;
    int numbered = second.length[0] == 1 && *second.word[0] == '1';
    return (numbered || *l->lines.line[1].at == '"') && is_of_names(l, 0, &different);
}

/* ---- which column is which ---- */

static int refuse_columns(struct looking *l, const char *why) {
    const char *const *names = l->row->names;
    int triples = l->rows == LOOK_TRIPLES;
    return fail("%s: %s: %.*s; say which columns are %s%s and %s by corpus.columns, as in corpus.columns = 1,%s3 or by their names",
                where_is(l, 0), why, SHOWN(&l->lines.line[0]), names[COLUMN_A], triples ? ", relation" : "", names[COLUMN_B],
                triples ? "2," : "");
}

/* Fails if a line has more fields than the first one. Called where the widest lines cannot be understood. */
static int refuse_wider(struct looking *l) {
    const struct columns_form *form = &l->look->form;
    uint64_t first = (uint64_t)l->has_header, count = l->lines.count > first ? part_line(&l->lines.line[first], form).count : 0;
    for (uint64_t i = first + 1; i < l->lines.count && !l->typed; i++) {
        uint64_t found = part_line(&l->lines.line[i], form).count;
        if (found <= count) continue;
        return fail("%s: %" PRIu64 " fields with %s between; the first line%s %" PRIu64 ": %.*s", where_is(l, i), found,
                    columns_separator_name(form->separator), i - first > 1 ? "s have" : " has", count, SHOWN(&l->lines.line[i]));
    }
    return 0;
}

/* Finds the column of an entry of corpus.columns: a number, from 1, or a name in the header. Returns 0; 1 if the file lacks it but may
 * (look_keys.hints); -1 after fail(). */
static int find_given(const struct looking *l, const char *name, uint64_t length, uint8_t *column) {
    uint64_t number;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    if (!text_count(text, &number) && number >= 1 && number <= COLUMNS_READ) {
        *column = (uint8_t)(number - 1);
        return 0;
    }
    for (uint64_t c = 0; l->has_header && c < l->first.count && c < COLUMNS_READ; c++) {
        if (l->first.length[c] != length || strncasecmp(l->first.word[c], name, length)) continue;
        *column = (uint8_t)(c + (uint64_t)l->is_shifted);
        return 0;
    }
    if (l->keys->hints) return 1;
    if (!l->has_header)
        return fail("%s has no header that could name the column '%s' of corpus.columns; wanted a number from 1 on, or corpus.header = yes",
                    l->name, text);
    return fail("%s: no column of its header is called '%s' (corpus.columns): %.*s", l->name, text, SHOWN(&l->lines.line[0]));
}

/* Reads the next entry of corpus.columns and moves *at past it. Returns 1, or 0 at the end. */
static int next_given(const char **at, const char **name, uint64_t *length) {
    while (**at == ',' || text_is_blank(**at)) ++*at;
    *name = *at;
    while (**at && **at != ',') ++*at;
    const char *end = *at;
    while (end > *name && text_is_blank(end[-1])) end--;
    *length = (uint64_t)(end - *name);
    return *length > 0;
}

int look_columns_valid(const char *columns) {
    const char *name;
    uint64_t length;
    int count = 0;
    while (next_given(&columns, &name, &length)) count++;
    return count >= 1 && count <= COLUMN_MEANINGS ? 0 : -1;
}

/* Uses the columns that corpus.columns names. Returns 0; 1 if the file itself decides (look_keys.hints); -1 after fail(). */
static int take_given(const struct looking *l) {
    uint8_t *column = l->look->form.column;
    const char *at = l->keys->columns, *name, *key = l->keys->columns;
    uint64_t length;
    unsigned count = 0, given[COLUMN_MEANINGS];
    if (l->keys->hints && l->columns.least != l->columns.most) return 1; /* lines of different lengths are not a table with the columns of the
                                                                          * run's corpus */
    if (l->headless && l->has_header && names_both(l)) return 1; /* this file's header knows better than numbers of columns of the run's corpus */
    for (; count < COLUMN_MEANINGS && next_given(&at, &name, &length); count++) {
        uint8_t found = 0;
        int result = find_given(l, name, length, &found);
        if (result) return result;
        given[count] = found;
        for (unsigned i = 0; i < count; i++)
            if (given[i] == found) return fail("corpus.columns = %s names one column of %s twice", key, l->name);
    }
    int text_alone = l->rows == LOOK_DOCUMENTS && count == 1; /* the line's number names the document */
    if (count < l->row->needed && l->rows == LOOK_TRIPLES)
        return fail("corpus.columns = %s names %s, and a triple has three: head, relation, tail", key, count == 1 ? "one column" : "two columns");
    if (count < l->row->needed && !text_alone)
        return fail("corpus.columns = %s names one column, and %s has two: %s, %s", key, l->row->row, l->row->names[COLUMN_A],
                    l->row->names[COLUMN_B]);
    memset(column, NO_COLUMN, sizeof l->look->form.column);
    if (text_alone) column[COLUMN_B] = (uint8_t)given[0];
    for (unsigned i = 0; i < count && !text_alone; i++) column[l->row->order[i]] = (uint8_t)given[i];
    l->look->form.named = 1;
    l->look->form.most = 0;
    return 0;
}

/* Returns 1 if at least half of the column's fields are numbers (a field that is not a number then becomes an error when its line is read), or if
 * the file has only a header. */
static int has_numbers(const struct looking *l, unsigned column) {
    if (column >= COLUMNS_READ) return 0;
    const struct looked_column *looked = &l->columns.column[column];
    uint64_t numbers = looked->numbers > looked->comma_numbers ? looked->numbers : looked->comma_numbers;
    return !l->columns.lines || (looked->filled && 2 * numbers >= looked->filled);
}

enum { EVENTS_MOST = 12, EVENTS_SHARE = 3 }; /* events: most different words in the column, and fewest rows for each word on average */

/* Returns 1 if the column of pairs contains a few words again and again (view, cart, purchase), or only one word if the column was chosen by its
 * name. Describes them in l->happened. */
static int is_of_events(struct looking *l, unsigned column) {
    ENDED_BY(words_release) struct words words = {0};
    uint64_t count[EVENTS_MOST] = {0}, length, filled = 0;
    char first[TEXT_BYTES];
    size_t used = 0;
    int fits = l->rows == LOOK_PAIRS && column < COLUMNS_READ && !has_numbers(l, column);
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count && fits; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        if (column >= parts.count || !parts.length[column]) continue;
        int64_t number = add_word(&words, &parts, column);
        fits = number >= 0 && number < EVENTS_MOST && parts.length[column] < NAME_MOST;
        if (fits) count[number]++, filled++;
    }
    fits = fits && words.size > !l->look->form.named && EVENTS_SHARE * words.size <= filled;
    if (fits && (!l->whole || l->lines.count == LOOKED_AT))
        used = text_add(l->happened, sizeof l->happened, 0, "of the first %s %s: ", text_of_count(first, l->columns.lines),
                        l->typed ? "rows" : "lines");
    for (uint64_t i = 0; i < words.size && fits; i++) {
        const char *word = words_get(&words, i, &length);
        used = text_add(l->happened, sizeof l->happened, used, "%s%.*s %" PRIu64, i ? ", " : "", (int)length, word, count[i]);
    }
    return fits;
}

enum { POSITIONS_MOST = 4 }; /* tables without column names: most columns with which the first three are read by position */

/* Fails because the third column is not numbers. It is not ignored, since it may matter, as in "aspirin treats headache". */
static int refuse_third(struct looking *l) {
    uint64_t line = l->has_header && l->lines.count > 1;
    if (refuse_wider(l)) return -1;
    if (l->rows == LOOK_EDGES)
        return fail("%s: '%.*s' looks like a triple (head, relation, tail): its third column is no weight; "
                    "set corpus.format = triples to train triples, corpus.columns = 1,3 to read head and tail as an edge, or "
                    "graph.weights = no to ignore the third column",
                    where_is(l, line), SHOWN(&l->lines.line[line]));
    return refuse_columns(l, "the third column is no rating, and nothing tells which column is what");
}

/* Returns 1 if the first column is an index as pandas and R write it: its name is empty, or the header has no field for it, or it has row numbers
 * in pairs without a header that have at least three columns. */
static unsigned has_index(const struct looking *l) {
    if (l->rows == LOOK_FEATURES) return 0; /* the index has the names of items, unless another column has */
    if (l->is_shifted || (l->has_header && l->first.count > 2 && !l->first.length[0])) return 1;
    return l->rows == LOOK_PAIRS && !l->has_header && l->columns.least > 2 && are_numbered(&l->lines, &l->look->form);
}

/* Returns 1 if the column's name in the header is one used for values or times. */
static int is_value(const struct looking *l, unsigned column) {
    uint64_t length;
    const char *name = column_name(l, column, &length), *text = strndupa(name, length < NAME_MOST ? length : NAME_MOST);
    return l->has_header && (column_rank(l->rows, COLUMN_VALUE, name, length) || strcasestr(text, "time") || strcasestr(text, "date"));
}

/* Called if the header has a known name for only one of COLUMN_A (a) and COLUMN_B (b). In a table of two columns the other column gets the other
 * meaning. In a wider table the columns are read by position if the known name is at its usual position; otherwise this fails. */
static int take_half_named(struct looking *l, unsigned a, unsigned b) {
    uint8_t *column = l->look->form.column;
    if (l->columns.most == 2 && (a != NO_COLUMN ? a : b) < 2 && !is_value(l, a != NO_COLUMN ? 1 - a : 1 - b)) {
        column[COLUMN_A] = (uint8_t)(a != NO_COLUMN ? a : 1 - b);
        column[COLUMN_B] = (uint8_t)(1 - column[COLUMN_A]);
        return 0;
    }
    int expected = (a == 0 || b == 1) && !is_value(l, 0) && !is_value(l, 1) && l->columns.most <= POSITIONS_MOST && has_numbers(l, 2);
    return expected ? 0 : refuse_columns(l, "the header does not name all columns that are wanted");
}

/* Chooses the columns of labels. If the columns between first and last contain only 0 and 1, like the features in Planetoid's files, the label is
 * in the last column. */
static int take_last_label(struct looking *l) {
    uint64_t last = l->columns.most - 1, flags = 1;
    if (l->columns.least != l->columns.most || l->columns.most < 4 || l->columns.lines < 2) return 0;
    while (flags < last && flags < COLUMNS_READ && l->columns.column[flags].flags == l->columns.lines) flags++;
    if (flags < last && flags < COLUMNS_READ) return 0;
    if (last >= COLUMNS_READ || l->columns.column[last].flags == l->columns.lines)
        return fail("%s: %" PRIu64 " columns of 0 and 1 are no labels; keep the first column and that of the label (awk '{print $1, $NF}')",
                    where_is(l, 0), last >= COLUMNS_READ ? last - 1 : last);
    l->look->form.column[COLUMN_B] = (uint8_t)last;
    l->look->form.named = 1;
    return 0;
}

/* Fails because the header of a file of titles has a known name for only one of its two columns. */
static int refuse_titles(struct looking *l, const char *missing) {
    return fail("%s: the header names no %s among its %" PRIu64 " columns: %.*s; call that column %s", where_is(l, 0), missing,
                l->columns.most, SHOWN(&l->lines.line[0]), missing);
}

/* The different words of a column. */
struct distinct {
    struct words words[COLUMN_MEANINGS];
    int failed;
};

static void collect_distinct(const struct looking *l, unsigned index, struct distinct *of) {
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        for (unsigned c = 0; c < COLUMN_MEANINGS && !of->failed; c++)
            if (c + index < parts.count && parts.length[c + index])
                of->failed = add_word(&of->words[c], &parts, c + index) < 0;
    }
}

/* Returns how many different words two columns share. */
static uint64_t count_shared(const struct words *a, const struct words *b) {
    uint64_t shared = 0, length;
    for (uint64_t i = 0; i < a->size; i++) {
        const char *word = words_get(a, i, &length);
        shared += words_find(b, words_hash(word, length), word, length) >= 0;
    }
    return shared;
}

/* Returns how many names this column shares with the next one; 0 if memory is short. */
static uint64_t shared_names(const struct looking *l, unsigned index) {
    struct distinct of = {0};
    collect_distinct(l, index, &of);
    uint64_t shared = of.failed ? 0 : count_shared(&of.words[0], &of.words[1]);
    for (int c = 0; c < COLUMN_MEANINGS; c++) words_release(&of.words[c]);
    return shared;
}

enum { RELATIONS_FEW = 4, ORDER_LEAST = 5 }; /* the column of relations has at most a quarter as many different names as the other columns; with
                                              * fewer rows than ORDER_LEAST the usual order is assumed */
/* How the three columns of triples lie. */
enum order_of_triples { ORDER_USUAL, ORDER_RELATION_LAST, ORDER_RELATION_FIRST, ORDER_UNCLEAR };

/* Finds out which of three columns contains the relations: it has few different names, none of which occurs in the other columns, while these
 * share names. Numbers occur in all columns by chance, so with numbers only the columns' counts of different names, and of shared ones, decide; if
 * a first line says how many triples follow, the file is one of OpenKE's, which have head, tail, relation.
 * Without such signs the usual order, relation in the middle, is kept. */
static enum order_of_triples judge_order(const struct looking *l, unsigned index, const struct distinct *of) {
    uint64_t size[3] = {of->words[0].size, of->words[1].size, of->words[2].size}, filled = 0, digits = 0;
    uint64_t ends = count_shared(&of->words[0], &of->words[2]); /* of the usual order */
    for (unsigned c = index; c < index + 3; c++) filled += l->columns.column[c].filled, digits += l->columns.column[c].digits;
    if (l->columns.lines < ORDER_LEAST || !size[0] || !size[1] || !size[2]) return ORDER_USUAL;
    for (int c = 2; c >= 0; c -= 2) { /* the last column, then the first */
        int a = 2 - c; /* the other end of the line */
        uint64_t alike = count_shared(&of->words[a], &of->words[1]), middle = count_shared(&of->words[c], &of->words[1]);
        int few = RELATIONS_FEW * size[c] <= size[1], order = c ? ORDER_RELATION_LAST : ORDER_RELATION_FIRST;
        if (filled && digits == filled) {
            double shared = (double)alike / (double)(size[a] + size[1] - alike), usual = (double)ends / (double)(size[0] + size[2] - ends);
            if (few && RELATIONS_FEW * size[c] <= size[a] && shared > usual) return order;
            if (c && 2 * size[c] <= size[1] && 2 * size[c] <= size[a] && shared > 2 * usual) return order;
            if (c && l->has_count && RELATIONS_FEW * size[1] > size[c]) return order;
            if (c && size[c] < size[1] && shared > usual) return ORDER_UNCLEAR;
            continue;
        }
        int apart = !ends && !middle; /* no name of this column occurs in another one */
        if (apart && alike && size[c] < size[1]) return order;
        if (apart && few && RELATIONS_FEW * size[c] <= l->columns.lines && RELATIONS_FEW * size[c] <= size[a] && size[1] > size[a] / RELATIONS_FEW)
            return order;
    }
    return ORDER_USUAL;
}

/* Returns 1 if at least half of the column's fields say whether a triple is true; another field is an error when its line is read. */
static int are_truths(const struct looking *l, unsigned column) {
    uint64_t count = 0, lines = 0;
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count; i++, lines++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        count += column < parts.count && columns_truth(parts.word[column], parts.length[column]) >= 0;
    }
    return lines && 2 * count >= lines;
}

/* Chooses the columns of triples by position, and finds out which contains the relations. */
static int take_triple(struct looking *l, unsigned index) {
    struct columns_form *form = &l->look->form;
    uint64_t line = l->has_header && l->lines.count > 1;
    uint64_t most = l->columns.most > index ? l->columns.most - index : 0;
    while (most > 3 && most + index <= COLUMNS_READ && !l->columns.column[most - 1 + index].filled) most--; /* separators at the lines' ends */
    if (most == 4 && l->keys->labelled && are_truths(l, 3 + index)) most = 3;
    if (most < 3)
        return fail("%s: %" PRIu64 " field%s%s%s%s; wanted head, relation, tail: %.*s", where_is(l, line), most, most == 1 ? "" : "s",
                    l->typed ? "" : " with ", l->typed ? "" : columns_separator_name(form->separator), l->typed ? "" : " between",
                    SHOWN(&l->lines.line[line]));
    if (most > 3) return refuse_wider(l) ? -1 : refuse_columns(l, "nothing tells which columns are wanted");
    static const uint8_t columns[][COLUMN_MEANINGS] = {
        [ORDER_USUAL] = {[COLUMN_A] = 0, [COLUMN_VALUE] = 1, [COLUMN_B] = 2},
        [ORDER_RELATION_LAST] = {[COLUMN_A] = 0, [COLUMN_B] = 1, [COLUMN_VALUE] = 2},
        [ORDER_RELATION_FIRST] = {[COLUMN_VALUE] = 0, [COLUMN_A] = 1, [COLUMN_B] = 2}};
    struct distinct of = {0};
    collect_distinct(l, index, &of);
    enum order_of_triples order = of.failed ? ORDER_USUAL : judge_order(l, index, &of);
    uint64_t relations = of.words[1].size, last = of.words[2].size;
    for (int c = 0; c < COLUMN_MEANINGS; c++) words_release(&of.words[c]);
    if (of.failed) return -1;
    if (order == ORDER_UNCLEAR)
        return fail("%s: the order of the columns is not clear: column %u has %" PRIu64 " different relations in %" PRIu64
                    " lines, and column %u only %" PRIu64 ": %.*s; set corpus.columns = 1,3,2 if the relation is the last, corpus.columns = "
                    "1,2,3 if it is in the middle",
                    where_is(l, line), index + 2, relations, l->columns.lines, index + 3, last, SHOWN(&l->lines.line[line]));
    for (int meaning = 0; meaning < COLUMN_MEANINGS; meaning++) form->column[meaning] = (uint8_t)(columns[order][meaning] + index);
    l->reordered = order != ORDER_USUAL;
    return 0;
}

/* Chooses columns by position: the first two, and the third if it contains numbers. Returns 0, or -1 after fail(). */
static int take_positions(struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned index = has_index(l);
    if (l->rows == LOOK_TRIPLES) return l->columns.lines || l->typed ? take_triple(l, index) : 0;
    uint64_t most = l->columns.most - (l->columns.most ? index : 0);
    unsigned a = l->has_header ? find_named(l, COLUMN_A, NO_COLUMN) : NO_COLUMN;
    unsigned b = l->has_header ? find_named(l, COLUMN_B, NO_COLUMN) : NO_COLUMN;
    if (index && !l->has_header && has_numbers(l, 2))
        return refuse_columns(l, "the first column has the lines' numbers, or each list has one line");
    for (int meaning = 0; meaning < COLUMN_MEANINGS; meaning++) form->column[meaning] = (uint8_t)(meaning + (int)index);
    if (most < 3 || l->keys->no_values) form->column[COLUMN_VALUE] = NO_COLUMN;
    if (l->rows == LOOK_LABELS) return take_last_label(l);
    if (l->rows == LOOK_FEATURES && a != NO_COLUMN) form->column[COLUMN_A] = (uint8_t)(a + (unsigned)l->is_shifted);
    if (l->rows == LOOK_TITLES && most > 2 && (a == NO_COLUMN) != (b == NO_COLUMN)) return refuse_titles(l, a == NO_COLUMN ? "id" : "title");
    if (!l->row->number) return 0;
    if (l->has_header && (a != NO_COLUMN || b != NO_COLUMN) && l->rows != LOOK_WORDS) return take_half_named(l, a, b);
    if (l->rows == LOOK_WORDS)
        while (form->column[COLUMN_VALUE] < l->columns.most && form->column[COLUMN_VALUE] < NO_COLUMN && !has_numbers(l, form->column[COLUMN_VALUE]))
            form->column[COLUMN_VALUE]++;
    if (l->rows == LOOK_WORDS && (form->column[COLUMN_VALUE] >= l->columns.most || form->column[COLUMN_VALUE] == NO_COLUMN))
        form->column[COLUMN_VALUE] = (uint8_t)(2 + index);
    while (most > 2 && most + index <= COLUMNS_READ && !l->columns.column[most - 1 + index].filled) most--; /* separators at the lines' ends */
    if (most < 3 && l->rows != LOOK_WORDS) form->column[COLUMN_VALUE] = NO_COLUMN;
    if (l->rows == LOOK_EDGES && most == 3 && l->columns.column[1].filled && l->columns.column[1].arrows == l->columns.column[1].filled) {
        form->column[COLUMN_B] = 2, form->column[COLUMN_VALUE] = NO_COLUMN; /* "a -> b" */
        return 0;
    }
    if (most < 3 || l->rows == LOOK_WORDS || form->braces || l->keys->no_values) return 0;
    unsigned value = l->has_header ? find_named(l, COLUMN_VALUE, NO_COLUMN) : NO_COLUMN;
    if (value != NO_COLUMN && value != 2 + index) return refuse_columns(l, "the header names a value, but not the columns that are wanted");
    if (!has_numbers(l, 2 + index) && !is_of_events(l, 2 + index)) return refuse_third(l);
    if (most <= POSITIONS_MOST) return 0;
    if (l->rows == LOOK_EDGES && l->columns.least < l->columns.most)
        return refuse_columns(l, "lines differ in length, and corpus.format = adjacency reads a node and its neighbours");
    return refuse_wider(l) ? -1 : refuse_columns(l, "nothing tells which columns are wanted");
}

/* Sets the format to N-Triples, whose lines need no further examination. */
static int take_ntriples(const struct looking *l) {
    int header = l->keys->header == HEADER_YES, asked = !l->keys->hints; /* 0: the keys describe another file, so this one need not fit them */
    if (asked && (header || l->keys->separator != SEPARATOR_AUTO))
        return fail("'%s' holds N-Triples, whose lines have no header and blanks between their terms: leave out corpus.%s", l->path,
                    header ? "header = yes" : "separator");
    if (asked && l->keys->columns && *l->keys->columns)
        return fail("'%s' holds N-Triples, whose terms are subject, predicate and object: leave out corpus.columns = %s", l->path,
                    l->keys->columns);
    l->look->form.ntriples = 1;
    return 0;
}

static int take_columns(struct looking *l) {
    struct columns_form *form = &l->look->form;
    form->most = l->row->free || l->row->longer || l->typed ? 0 : l->columns.most;
    if (l->has_header && l->keys->header != HEADER_YES && form->most && !l->is_shifted && (*form->separator != ' ' || form->most < l->first.count))
        form->most = l->first.count;
    if (form->braces) form->most = 3;
    if (l->row->free) return 0;
    if (l->keys->columns && *l->keys->columns) {
        int result = take_given(l);
        if (result <= 0) return result;
    }
    if (l->has_header && names_both(l)) {
        unsigned shift = (unsigned)l->is_shifted, a = find_named(l, COLUMN_A, NO_COLUMN), b = find_named(l, COLUMN_B, a);
        unsigned value = find_named(l, COLUMN_VALUE, b);
        form->column[COLUMN_A] = (uint8_t)(a + shift);
        form->column[COLUMN_B] = (uint8_t)(b + shift);
        form->column[COLUMN_VALUE] = (uint8_t)(value == NO_COLUMN || value == a ? NO_COLUMN : value + shift);
        form->named = 1;
        return 0;
    }
    return take_positions(l);
}

/* Ignores the third column if all its fields are times, as in logs of events; a column that was chosen by name is used in any case. */
static void pass_over_times(struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned value = form->column[COLUMN_VALUE];
    if (form->named || form->braces || value >= COLUMNS_READ || l->rows == LOOK_WORDS || !l->row->number) return;
    const struct looked_column *column = &l->columns.column[value];
    l->has_times = column->filled && column->times == column->filled;
    if (l->has_times) form->column[COLUMN_VALUE] = NO_COLUMN;
}

/* Chooses decimal commas if all ratings or weights are numbers with decimal commas, but not all with decimal points. */
static int choose_decimals(const struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned value = form->column[COLUMN_VALUE];
    if (!l->row->number || value >= COLUMNS_READ) return 0;
    const struct looked_column *column = &l->columns.column[value];
    if (column->thousands && column->thousands == column->filled - column->numbers)
        return fail("%s: column %u has numbers such as 1,234, whose comma may be a decimal sign or separate thousands; write them "
                    "without, or with a point",
                    l->name, value + 1);
    form->decimal_comma = column->filled && column->comma_numbers == column->filled && column->numbers < column->filled;
    return 0;
}

/* ---- what names a list or a document ---- */

enum { NAMES_SHARE = 5 };

/* Returns 1 if lists seem to have no names: at least a fifth of the lines begin with a word that an earlier line also begins with, and at least
 * half begin with a word that is also a later field of some line. Returns 0 if they seem to have names, -1 after a failure. Used only for
 * corpus.names = auto. */
static int have_no_names(struct looking *l) {
    ENDED_BY(words_release) struct words firsts = {0}, items = {0};
    uint64_t begin = (uint64_t)l->has_header, count = l->lines.count - begin, within = 0;
    int failed = 0;
    if (l->keys->names != NAMES_AUTO) return l->keys->names == NAMES_NO;
    if (l->rows != LOOK_LISTS || count < 2) return 0;
    for (uint64_t i = begin; i < l->lines.count && !failed; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        for (uint64_t c = 0; c < parts.count && c < COLUMNS_READ && !failed; c++)
            failed = add_word(c ? &items : &firsts, &parts, c) < 0;
    }
    for (uint64_t i = begin; i < l->lines.count && !failed; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &l->look->form);
        within += has_word(&items, &parts, 0);
    }
    uint64_t repeated = count - firsts.size;
    l->names = firsts.size;
    return failed ? -1 : NAMES_SHARE * repeated >= count && 2 * within >= count;
}

/* Statistics of the first words of lines, which may be names of documents. */
struct firsts {
    uint64_t different, repeats; /* different: number of different first words; repeats: number of lines with the same first word as the line
                                  * before */
    uint64_t within;             /* number of lines whose first word also occurs after the first word of some line */
    uint64_t signs;              /* number of first words that contain a digit or one of _ / : */
    int coded, failed;           /* coded: 1: all first words are the same letters, then digits */
};

static struct firsts count_firsts(const struct looking *l) {
    struct columns_form blanks = COLUMNS_PLAIN;
    struct firsts of = {.coded = 1};
    ENDED_BY(words_release) struct words firsts = {0}, later = {0};
    struct looked_column column = {0};
    struct table_line before = {0};
    for (uint64_t i = 0; i < l->lines.count && !of.failed; i++) {
        struct column_walk walk;
        struct column_field field;
        struct table_line parts = part_line(&l->lines.line[i], &blanks);
        column_walk_start(&walk, (char *)l->lines.line[i].at, (char *)l->lines.line[i].end, &blanks);
        for (int first = 1; column_walk_next(&walk, &blanks, 1, &field) && !of.failed; first = 0)
            of.failed = words_add(first ? &firsts : &later, words_hash(field.word, field.length), field.word, field.length) < 0;
        if (!i) column = (struct looked_column){.letters = parts.word[0], .letters_length = count_letters(parts.word[0], parts.length[0])};
        of.coded &= is_coded(&column, parts.word[0], parts.length[0]);
        int sign = 0;
        for (uint64_t c = 0; c < parts.length[0]; c++) sign |= memchr("0123456789_/:", parts.word[0][c], 13) != NULL;
        of.signs += (uint64_t)sign;
        of.repeats += i && before.length[0] == parts.length[0] && !memcmp(before.word[0], parts.word[0], parts.length[0]);
        before = parts;
    }
    for (uint64_t i = 0; i < l->lines.count && !of.failed; i++) {
        struct table_line parts = part_line(&l->lines.line[i], &blanks);
        of.within += has_word(&later, &parts, 0);
    }
    of.different = firsts.size;
    return of;
}

/* Decides whether the first word of each line is the document's name: all first words differ, look like ids, and do not occur in the texts. Names
 * such as d1, d2 may also begin several lines in a row. */
static int take_first_words(struct looking *l) {
    struct columns_form *form = &l->look->form;
    struct firsts of = count_firsts(l);
    uint64_t count = l->lines.count;
    if (of.failed) return -1;
    int apart = 10 * of.within <= count || are_numbered(&l->lines, form);
    l->look->sure = count > 1 && apart && ((of.different == count && of.signs == count) || (of.coded && of.different + of.repeats == count));
    l->names = of.different;
    form->naming = l->keys->names == NAMES_YES || (l->keys->names == NAMES_AUTO && l->look->sure) ? NAMED_BY_FIELD : NAMED_BY_LINE;
    if (l->keys->names == NAMES_AUTO && !l->look->sure && l->keys->files > 1) form->naming = NAMED_BY_FILE;
    return 0;
}

/* Chooses the columns of a table of documents. The text is the column with a known name of texts, unless it contains only numbers; otherwise the
 * one with the most words. The name is the first other column whose fields all differ; if there is none, the line's number. */
static void take_document(struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned text = l->has_header ? find_named(l, COLUMN_B, NO_COLUMN) : NO_COLUMN, name, most = (unsigned)l->columns.least;
    uint64_t different;
    if (most > COLUMNS_READ) most = COLUMNS_READ;
    if (text < most && l->columns.column[text].filled && l->columns.column[text].digits == l->columns.column[text].filled) text = NO_COLUMN;
    int named = text != NO_COLUMN;
    for (unsigned c = 0; c < most && !named; c++)
        if (text == NO_COLUMN || l->columns.column[c].words > l->columns.column[text].words) text = c;
    name = l->has_header ? find_named(l, COLUMN_A, text) : NO_COLUMN;
    if (name != NO_COLUMN && !is_of_names(l, name, &different) && l->columns.column[name].digits < l->columns.column[name].filled) name = NO_COLUMN;
    for (unsigned c = 0; c < most && name == NO_COLUMN; c++)
        if (c != text && is_of_names(l, c, &different)) name = c;
    if (l->keys->names == NAMES_NO) name = NO_COLUMN;
    if (name != NO_COLUMN) is_of_names(l, name, &l->names);
    form->column[COLUMN_A] = (uint8_t)name;
    form->column[COLUMN_B] = (uint8_t)text;
    form->column[COLUMN_VALUE] = NO_COLUMN;
}

/* Finds the separator of a table of documents; "" if the lines are not a table. A tab in each line makes a table. Other separators also occur in
 * texts: with these, a table needs a header that names the text, or quotes, or short first fields that are ids and all differ. */
static const char *find_separator_of_documents(struct looking *l) {
    for (int s = 0; s < BLANKS; s++) {
        struct columns_form *form = &l->look->form;
        struct parting parting = try_separator(&l->lines, separators[s]);
        *form = form_with(separators[s], choose_quotes(&l->lines, separators[s]));
        l->first = part_line(&l->lines.line[0], form);
        unsigned text = find_named(l, COLUMN_B, NO_COLUMN);
        int named = l->first.count > 1 && text != NO_COLUMN && l->lines.count > 1 && is_alone(l, text), all = parting.parted == l->lines.count;
        if (all && !s) return separators[s];
        if (named) return separators[s];
        if (!all || parting.least != parting.most || parting.least < 2 || l->lines.count < 2) continue;
        uint64_t quoted = 0, ids = 0, different;
        for (uint64_t i = 0; i < l->lines.count; i++) {
            struct table_line parts = part_line(&l->lines.line[i], form);
            quoted += (uint64_t)parts.quoted;
            int digit = 0;
            for (uint64_t c = 0; c < parts.length[0]; c++) digit |= parts.word[0][c] >= '0' && parts.word[0][c] <= '9';
            ids += digit && !memchr(parts.word[0], ' ', parts.length[0]);
        }
        l->has_header = 0;
        if (2 * quoted >= l->lines.count || (ids + 1 >= l->lines.count && is_of_names(l, 0, &different))) return separators[s];
    }
    return "";
}

/* Finds which part of a line names its document, and which part is the text. */
static int look_at_documents(struct looking *l) {
    struct columns_form *form = &l->look->form;
    const struct look_keys *keys = l->keys;
    if (!l->typed && keys->names != NAMES_FILE && are_json(&l->lines))
        return fail("'%s' holds JSON, whose braces and names would be words; write its texts alone first, one on each line (in Python: "
                    "pandas.read_json(path, lines=True)[['id', 'text']].to_csv(..))", l->path);
    if (keys->names == NAMES_FILE && !l->typed) {
        form->naming = NAMED_BY_FILE;
        return 0;
    }
    int given = keys->columns && *keys->columns;
    uint64_t labelled = 0;
    for (uint64_t i = 0; i < l->lines.count; i++) labelled += holds(&l->lines.line[i], "__label__");
    if (2 * labelled > l->lines.count)
        snprintf(l->look->doubt, LOOK_LIKE, "have labels (__label__..), which are words of the texts here: a document's row learns them; remove them "
                 "for rows of the text alone (sed 's/__label__[^ ]* *//g')");
    if (!l->typed) {
        const char *separator = keys->separator != SEPARATOR_AUTO ? separator_of_key[keys->separator] : find_separator_of_documents(l);
        if (!*separator && given) separator = separator_of_fixed(&l->lines, 0);
        *form = COLUMNS_PLAIN;
        if (!*separator || *separator == ' ') {
            l->has_header = keys->header == HEADER_YES;
            for (int meaning = 0; meaning < COLUMN_MEANINGS; meaning++) form->column[meaning] = NO_COLUMN;
            return take_first_words(l);
        }
        *form = form_with(separator, choose_quotes(&l->lines, separator));
    }
    l->first = part_line(&l->lines.line[0], form);
    describe_columns(&l->columns, &l->lines, l->lines.count > 1, form);
    l->has_header = look_for_header(l);
    describe_columns(&l->columns, &l->lines, (uint64_t)l->has_header, form);
    l->look->sure = 1;
    int result = given ? take_given(l) : 1;
    if (result < 0) return -1;
    if (result) take_document(l);
    else if (form->column[COLUMN_A] != NO_COLUMN) is_of_names(l, form->column[COLUMN_A], &l->names);
    form->most = *form->separator == '\t' || l->typed ? 0 : l->first.count > l->columns.most || l->has_header ? l->first.count : l->columns.most;
    form->columns = l->columns.most < COLUMNS_READ ? l->columns.least : 0;
    form->naming = form->column[COLUMN_A] == NO_COLUMN ? NAMED_BY_LINE : NAMED_BY_FIELD;
    if (l->columns.most < 2 && keys->names != NAMES_NO && !given)
        return fail("%s: 1 field%s%s%s; wanted document, text: %.*s", where_is(l, 0), l->typed ? "" : " with ",
                    l->typed ? "" : columns_separator_name(form->separator), l->typed ? "" : " between", SHOWN(&l->lines.line[0]));
    return 0;
}

/* ---- counts and matrices, which are no rows ---- */

/* Reads a line that consists of `wanted` numbers. Returns the first number; 0 if the line is something else. */
static uint64_t number_of_line(const struct looked_line *line, unsigned wanted, uint64_t *other) {
    struct columns_form blanks = COLUMNS_PLAIN;
    struct table_line parts = part_line(line, &blanks);
    uint64_t number[2] = {0, 0};
    for (unsigned i = 0; i < 2 && i < parts.count; i++)
        if (whole_number(&parts, i, &number[i])) return 0;
    *other = number[1];
    return parts.count == wanted ? number[0] : 0;
}

/* Returns 1 if the first line is a Matrix Market size: numbers of rows, of columns, and of the lines after it. The comments before it may be
 * missing; then the other lines are checked, too. */
static int is_matrix_size(const struct looking *l) {
    struct columns_form blanks = COLUMNS_PLAIN;
    const struct looked_line *line = l->lines.line;
    double size[3] = {0}, value[3];
    int below = 1; /* 1: all values are less than the number of lines */
    for (uint64_t i = 0; i < l->lines.count; i++) {
        struct table_line parts = part_line(&line[i], &blanks);
        if (parts.count > 3 || parts.count < (i ? 2 : 3)) return 0;
        for (uint64_t c = 0; c < parts.count; c++)
            if (columns_number(&blanks, parts.word[c], parts.length[c], i ? &value[c] : &size[c])) return 0;
        if (i && (value[0] > size[0] || value[1] > size[1] || value[0] < 1 || value[1] < 1)) return 0;
        below &= !i || parts.count < 3 || value[2] < size[2];
    }
    double count = (double)(l->lines.count - 1);
    return is_matrix_market(l->lines.bytes, l->length) || (l->whole ? size[2] == count : below && size[2] > count);
}

/* Leaves out a first line that is not a row but counts: the other lines, or, for edges, the nodes and the lines. */
static int pass_count(struct looking *l) {
    struct looked_lines *lines = &l->lines;
    uint64_t rest = lines->count - 1, second, after;
    if (lines->count < 3 || l->row->free || l->row->text || l->keys->header == HEADER_NO) return 0;
    if (l->rows == LOOK_PAIRS && is_matrix_size(l)) return leave_out(lines, 1), 1;
    int all = l->whole && lines->count < LOOKED_AT;
    uint64_t one = number_of_line(&lines->line[0], 1, &second);
    int counts = one && !number_of_line(&lines->line[1], 1, &after) && (all ? one == rest : one >= rest);
    uint64_t nodes = l->rows == LOOK_EDGES && all ? number_of_line(&lines->line[0], 2, &second) : 0;
    if (nodes && second == rest) {
        uint64_t most = 0, to;
        for (uint64_t i = 1; i < lines->count && most <= nodes; i++) {
            uint64_t from = number_of_line(&lines->line[i], 2, &to);
            most = from > most ? from : most;
            most = to > most ? to : most;
        }
        counts = most && most <= nodes;
    }
    if (!counts) return 0;
    leave_out(lines, 1);
    return 1;
}

/* Refuses a graph in METIS format: the first line has the numbers of nodes and edges, each other line a node's neighbours. */
static int refuse_metis(struct looking *l) {
    const struct looked_line *line = l->lines.line, *end = line + l->lines.count;
    struct columns_form blanks = COLUMNS_PLAIN;
    uint64_t edges, entries = 0, least = UINT64_MAX, widest = 0;
    while (line < end && *line->at == '%') line++;
    uint64_t nodes = end - line > 2 ? number_of_line(line, 2, &edges) : 0;
    if (!nodes || !edges) return 0;
    uint64_t seen = end[-1].number - line->number;
    for (line++; line < end; line++) {
        struct table_line parts = part_line(line, &blanks);
        least = parts.count < least ? parts.count : least;
        widest = parts.count > widest ? parts.count : widest;
        entries += parts.count;
        for (uint64_t c = 0, number; c < parts.count && c < COLUMNS_READ; c++)
            if (whole_number(&parts, c, &number) || !number || number > nodes) return 0;
    }
    int all = l->whole && l->lines.count < LOOKED_AT && entries == 2 * edges && seen <= nodes;
    int some = !l->whole && least < widest && (double)entries / (double)seen < 4.0 * (double)edges / (double)nodes &&
               (double)entries / (double)seen > (double)edges / (double)nodes;
    if (!all && !some) return 0;
    return fail("'%s' holds a graph of METIS (%" PRIu64 " nodes, %" PRIu64 " edges, then the neighbours of each node), and no rows of fields: put "
                "each node's number before its neighbours (grep -v '^%%' FILE | awk 'NR > 1 {print NR - 1, $0}') and set corpus.format = adjacency",
                l->path, nodes, edges);
}

enum { MATRIX_LEAST = 3, MATRIX_SHARE = 3 }; /* fewest columns of a matrix; at least one value in this many must be 0 */

/* Refuses a matrix: lines of equal length whose columns have names and contain 0 and other numbers, or a square of numbers. */
static int refuse_matrix(struct looking *l) {
    uint64_t values = 0, zeros = 0, flags = 0, truths = 0, words = 0, header = 0;
    int own = 0; /* 1: the first column names the rows */
    if (l->rows != LOOK_LISTS && l->rows != LOOK_ADJACENCY && l->rows != LOOK_PAIRS && l->rows != LOOK_EDGES) return 0;
    for (uint64_t c = 0; c < l->first.count && c < COLUMNS_READ; c++) { /* is the first line one of names? */
        struct looked_column name = {.filled = 0};
        describe_field(&name, &l->look->form, l->first.word[c], l->first.length[c]);
        words += name.filled && !name.numbers && !name.truths && !name.falses;
        header += name.filled && (name.numbers || name.truths || name.falses);
    }
    int named = l->has_header || (words + 1 >= l->first.count && !header && l->lines.count > 1);
    struct looked_columns columns;
    describe_columns(&columns, &l->lines, (uint64_t)named, &l->look->form);
    uint64_t cells = columns.most < COLUMNS_READ ? columns.most : COLUMNS_READ;
    if (columns.least != columns.most || cells < MATRIX_LEAST || columns.lines < MATRIX_LEAST) return 0;
    for (uint64_t c = 0; c < cells; c++) {
        const struct looked_column *column = &columns.column[c];
        int is_value = column->filled == column->numbers || column->filled == column->truths + column->falses;
        if (c && !is_value) return 0;
        if (!is_value || (!c && named && column->flags < column->filled && !column->truths)) {
            own = !c; /* it names the rows */
            continue;
        }
        values += column->filled;
        zeros += column->zeros + column->falses;
        flags += column->flags;
        truths += column->truths + column->falses;
    }
    int few = MATRIX_SHARE * zeros >= values, two = flags + truths == values, square = columns.lines == columns.most && l->whole;
    int bare = !named && few && (square || columns.most > COLUMNS_READ) && (two || cells > MATRIX_LEAST);
    int of_names = named && few && (l->row->free ? two || cells > MATRIX_LEAST : cells > MATRIX_LEAST && !names_both(l));
    if (!values || !(bare || of_names || truths == values)) return 0;
    char way[400];
    int graph = l->rows == LOOK_EDGES || l->rows == LOOK_ADJACENCY;
    own |= !l->first.length[0];
    const char *separator = *l->look->form.separator == ' ' ? "\\s+" : l->look->form.separator;
    if (l->typed)
        snprintf(way, sizeof way, "hand over a matrix (scipy.sparse.csr_matrix(frame.values), its columns' names as items=), or a graph's edges");
    else
        snprintf(way, sizeof way, "write a line for each value that is not 0 (in Python: m = pandas.read_csv(FILE, sep='%s'%s%s).stack() * 1; "
                 "m[m != 0].reset_index().to_csv('new.csv', header=['%s'], index=False)) and set corpus.format = %s",
                 *separator == '\t' ? "\\t" : separator, named ? "" : ", header=None", named && own ? ", index_col=0" : "",
                 graph ? "source', 'target', 'weight" : "list', 'item', 'rating", graph ? "graph" : "pairs");
    return fail("%s: %" PRIu64 " columns of %s are a matrix, and no %s: %.*s; %s", where_is(l, 0), columns.most - (uint64_t)own,
                two ? "0 and 1" : "numbers", l->row->free ? "lists of names" : "rows of fields", SHOWN(&l->lines.line[0]), way);
}

/* ---- the format in words ---- */

static size_t say_column(struct looking *l, size_t at, const char *meaning, unsigned column) {
    struct look *look = l->look;
    uint64_t length, shift = (uint64_t)l->is_shifted;
    const char *name = column_name(l, column - (l->has_header ? shift : 0), &length);
    if (column >= COLUMNS_READ) {
        at = text_add(look->said, sizeof look->said, at, "%s = none", meaning);
        if (l->has_times) return text_add(look->said, sizeof look->said, at, " (the third column holds times)");
        return l->columns.most > 2 ? text_add(look->said, sizeof look->said, at, " of %" PRIu64, l->columns.most) : at;
    }
    if (l->has_header && length)
        return text_add(look->said, sizeof look->said, at, "%s = %.*s", meaning, length < 30 ? (int)length : 30, name);
    return text_add(look->said, sizeof look->said, at, "%s = column %u", meaning, column + 1);
}

/* Adds to the description how many different names the lines have, if there are fewer names than lines. */
static size_t say_names(const struct looking *l, size_t at, const char *what) {
    uint64_t lines = l->lines.count - (uint64_t)l->has_header;
    if (!l->names || l->names >= lines) return at;
    return text_add(l->look->said, LOOK_SAID, at, " (%" PRIu64 " names in %" PRIu64 " lines: lines of one name are one %s)", l->names, lines, what);
}

static size_t say_documents(struct looking *l, size_t at) {
    const struct columns_form *form = &l->look->form;
    char *out = l->look->said;
    int table = form->column[COLUMN_B] != NO_COLUMN;
    if (form->naming == NAMED_BY_FILE) return text_add(out, LOOK_SAID, at, "document = each file, named by its path");
    if (form->naming == NAMED_BY_LINE)
        at = text_add(out, LOOK_SAID, at, "document = %s's number, text = ", l->typed ? "the row" : "the line");
    if (!table && form->naming == NAMED_BY_LINE) return text_add(out, LOOK_SAID, at, "all of it (corpus.names = yes: its first word names it)");
    if (!table) return say_names(l, text_add(out, LOOK_SAID, at, "document = the first word, text = the others"), "document");
    if (form->naming == NAMED_BY_FIELD) {
        at = say_names(l, say_column(l, at, "document", form->column[COLUMN_A]), "document");
        at = text_add(out, LOOK_SAID, at, ", text = ");
    }
    at = say_column(l, at - strlen("text = "), "text", form->column[COLUMN_B]);
    if (form->column[COLUMN_VALUE] != NO_COLUMN) at = say_column(l, text_add(out, LOOK_SAID, at, " and "), "text", form->column[COLUMN_VALUE]);
    return at;
}

/* Adds to the description which columns of a table of documents are not used. */
static void say_unused(struct looking *l, size_t at) {
    unsigned unused = 0;
    for (unsigned c = 0; c < l->columns.least && c < COLUMNS_READ; c++) {
        uint64_t length;
        const char *name = column_name(l, c, &length);
        if (memchr(l->look->form.column, (int)c, sizeof l->look->form.column) || !l->columns.column[c].filled || ++unused > 4) continue;
        at = text_add(l->look->said, LOOK_SAID, at, unused == 1 ? "; unused: " : unused > 3 ? ", .." : ", ");
        if (unused < 4 && l->has_header && length) at = text_add(l->look->said, LOOK_SAID, at, "%.*s", length < 30 ? (int)length : 30, name);
        else if (unused < 4) at = text_add(l->look->said, LOOK_SAID, at, "column %u", c + 1);
    }
}

/* Stores the chosen columns as a text for corpus.columns: by their names, which also fit another file, if the header has names that the key can
 * express; otherwise by their numbers. */
static void name_columns(const struct looking *l) {
    const struct columns_form *form = &l->look->form;
    char *out = l->look->columns;
    for (int numbers = !l->has_header; numbers < 2; numbers++) {
        size_t at = 0;
        int fits = 1;
        *out = 0;
        for (unsigned i = 0; i < COLUMN_MEANINGS; i++) {
            unsigned column = form->column[l->row->order[i]];
            uint64_t length, number;
            char text[NAME_MOST];
            if (column == NO_COLUMN) continue;
            const char *name = column_name(l, column - (unsigned)(l->has_header && l->is_shifted), &length);
            snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : 0), name);
            fits &= *text && !strpbrk(text, ",\"#;") && text_count(text, &number) && strcasecmp(text, "auto") && !text_is_blank(*text);
            for (const char *byte = text; *byte; byte++) fits &= (unsigned char)*byte >= ' ';
            for (unsigned c = 0; c < l->first.count && c < COLUMNS_READ; c++)
                fits &= l->first.word[c] == name || l->first.length[c] != length || strncasecmp(l->first.word[c], name, length);
            at = numbers ? text_add(out, sizeof l->look->columns, at, "%s%u", at ? "," : "", column + 1)
                         : text_add(out, sizeof l->look->columns, at, "%s%s", at ? "," : "", text);
        }
        if (numbers || (fits && at + 1 < sizeof l->look->columns)) return;
    }
}

/* Writes the format in words to look->said, and the name of the value's column to look->value. */
static void say(struct looking *l) {
    struct look *look = l->look;
    const struct columns_form *form = &look->form;
    const char *const *names = l->row->names;
    char *out = look->said;
    size_t room = sizeof look->said, at = text_add(out, room, 0, "columns    ");
    if (form->ntriples) {
        text_add(out, room, at, "head, relation, tail = subject, predicate, object of N-Triples, without < and >");
        return;
    }
    if (l->rows == LOOK_DOCUMENTS) {
        at = say_documents(l, at);
        if (form->column[COLUMN_B] == NO_COLUMN || form->naming == NAMED_BY_FILE) return;
    } else if (l->rows == LOOK_ADJACENCY) {
        at = text_add(out, room, at, "target = the first, contexts = the others");
    } else if (l->rows == LOOK_LISTS && form->naming == NAMED_BY_LINE) {
        at = text_add(out, room, at, "items = all, and each list is named by its line's number (corpus.names = yes: by its first)");
    } else if (l->rows == LOOK_LISTS) {
        at = say_names(l, text_add(out, room, at, "list = the first, items = the others"), "list");
    } else {
        for (unsigned i = 0; i < (l->row->number ? COLUMN_MEANINGS : l->row->needed); i++) {
            enum column_meaning meaning = l->row->order[i];
            if (i) at = text_add(out, room, at, ", ");
            if (meaning == COLUMN_VALUE && form->braces && form->column[meaning] != NO_COLUMN)
                at = text_add(out, room, at, "%s = networkx' attributes", names[meaning]);
            else
                at = say_column(l, at, meaning == COLUMN_VALUE && form->events ? "event" : names[meaning], form->column[meaning]);
        }
    }
    if (form->truth) at = say_column(l, text_add(out, room, at, ", "), "true or false", form->truth - 1u);
    if (l->reordered) at = text_add(out, room, at, " (the relation has few names)");
    if (form->zeros_out) at = text_add(out, room, at, " (lines of 0 are left out)");
    if (form->events && l->keys->events && *l->keys->events)
        at = text_add(out, room, at, " (only %s)", l->keys->events);
    else if (form->events)
        at = text_add(out, room, at, " (%s: all count alike; corpus.events = WORD,.. keeps some)", l->happened);
    if (l->typed)
        at = text_add(out, room, at, "; %s", l->path);
    else
        at = text_add(out, room, at, "; %s, %s", columns_separator_name(form->separator), l->has_header ? "a header" : "no header");
    if (form->decimal_comma) at = text_add(out, room, at, ", decimal commas");
    if (l->comments) at = text_add(out, room, at, ", %" PRIu64 " comment%s left out", l->comments, l->comments > 1 ? "s" : "");
    if (l->has_count) at = text_add(out, room, at, ", a count in the first line");
    if (l->rows == LOOK_DOCUMENTS && !(l->keys->columns && *l->keys->columns)) say_unused(l, at);
    uint64_t length;
    const char *value = column_name(l, form->column[COLUMN_VALUE], &length);
    if (l->has_header && l->row->number) snprintf(look->value, sizeof look->value, "%.*s", text_shown(length), value);
}

/* ---- rows that can be read so, but are probably something else ---- */

/* Writes to look->doubt that a table of two kinds of things, read as a graph, makes one node of a name that occurs in both columns. */
static void doubt_graph(struct looking *l) {
    const struct columns_form *form = &l->look->form;
    unsigned a = form->column[COLUMN_A], b = form->column[COLUMN_B];
    uint64_t length[2];
    const char *name[2] = {column_name(l, a, &length[0]), column_name(l, b, &length[1])};
    if (!l->has_header || l->is_shifted || a + 1 != b || !column_rank(LOOK_PAIRS, COLUMN_A, name[0], length[0]) ||
        !column_rank(LOOK_PAIRS, COLUMN_B, name[1], length[1]))
        return;
    uint64_t shared = shared_names(l, a);
    if (shared)
        snprintf(l->look->doubt, LOOK_LIKE, "have %" PRIu64 " name%s in both columns, each of which is one node; %.*s and %.*s look like two kinds, "
                 "which corpus.format = pairs keeps apart", shared, text_plural(shared), text_shown(length[0]), name[0],
                 text_shown(length[1]), name[1]);
}

/* Writes to look->doubt if items look like placeholders for missing values or items of libsvm, or if lists look like rows of a table. */
static void doubt_items(struct looking *l) {
    uint64_t missing = 0, of = 0, pairs = 0, shown = 0, numbers = 0, words = 0;
    uint64_t codes = 0, quoted = 0; /* codes: number of items of two letters, one of which may be NA; quoted: number of lines with "," */
    const struct columns_form *form = &l->look->form;
    const char *null = "";
    char *out = l->look->doubt;
    int lists = l->row->free;
    for (uint64_t i = (uint64_t)l->has_header; i < l->lines.count; i++) {
        struct table_line parts = part_line(&l->lines.line[i], form);
        quoted += holds(&l->lines.line[i], "\",\"");
        for (uint64_t c = (uint64_t)lists; c < parts.count && c < COLUMNS_READ; c++) {
            const char *word = parts.word[c], *colon = memchr(word, ':', parts.length[c]);
            if (!lists && c != form->column[COLUMN_B]) continue;
            of++;
            pairs += colon && is_digits(word, (uint64_t)(colon - word)) && is_digits(colon + 1, parts.length[c] - (uint64_t)(colon - word) - 1);
            int english = parts.length[c] == 4 && !memcmp(word, "none", 4);
            int is = parts.length[c] > 1 && is_missing(word, parts.length[c]) && !english;
            codes += !is && parts.length[c] == 2;
            if (is && !missing++) null = word, shown = parts.length[c];
        }
    }
    for (uint64_t c = 1; c < l->columns.most && c < COLUMNS_READ; c++) {
        const struct looked_column *column = &l->columns.column[c];
        numbers += column->filled && column->numbers == column->filled;
        words += column->filled && !column->digits;
    }
    if (lists && of && pairs == of)
        snprintf(out, LOOK_LIKE, "look like libsvm's, index:value, each of which is an item here; write list, index, value and set "
                 "corpus.format = pairs");
    else if (lists && l->has_header && l->columns.least == l->columns.most && numbers && words)
        snprintf(out, LOOK_LIKE, "are a table of %" PRIu64 " columns of words and of numbers, each value of which is an item here; corpus.format = "
                 "pairs reads two columns", l->columns.most);
    else if (lists && *form->separator == ' ' && 2 * quoted > l->lines.count)
        snprintf(out, LOOK_LIKE, "are CSV with quotes, whose words are items here; corpus.separator = comma takes its fields, corpus.format = "
                 "documents its texts");
    else if (missing && !(shown == 2 && codes) && (*form->separator != ' ' || 100 * missing >= of)) /* na: Namibia; None begins a sentence */
        snprintf(out, LOOK_LIKE, "have the item '%.*s' %" PRIu64 " time%s, as programs write where a value is missing; remove such lines if "
                 "it is none", text_shown(shown), null, missing, text_plural(missing));
}

/* ---- finding the format ---- */

/* Returns the index of a column of 0 and 1 whose name says that 1 stands for something that happened (is_click), or NO_COLUMN. */
static unsigned find_happened(const struct looking *l) {
    static const char *const parts[] = {"click", "like", "label", "target", "purchase", "bought", "buy",
                                        "convers", "converted", "positive", "finish"};
    for (unsigned c = 0; l->has_header && c < l->first.count && c < COLUMNS_READ; c++) {
        const struct looked_column *column = &l->columns.column[c];
        const char *name = strndupa(l->first.word[c], l->first.length[c] < NAME_MOST ? l->first.length[c] : 0);
        int taken = c == l->look->form.column[COLUMN_A] || c == l->look->form.column[COLUMN_B];
        int two = column->zeros && column->flags > column->zeros && column->flags == column->filled;
        int truths = column->truths && column->falses && column->truths + column->falses == column->filled;
        for (size_t i = 0; !taken && (two || truths) && i < sizeof parts / sizeof *parts; i++)
            if (strcasestr(name, parts[i])) return c;
    }
    return NO_COLUMN;
}

/* Decides what the ratings column of pairs contains: numbers, whether something happened (0 or 1), or words of events. */
static int judge_values(struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned value = form->column[COLUMN_VALUE];
    if (l->rows != LOOK_PAIRS) return 0;
    int asked = l->keys->events && *l->keys->events;
    if (value >= COLUMNS_READ && !(l->keys->columns && *l->keys->columns)) value = form->column[COLUMN_VALUE] = (uint8_t)find_happened(l);
    if (value >= COLUMNS_READ) {
        if (!asked) return 0;
        return fail("%s: corpus.events = %s, and no column is known as one of events; name it as the third of corpus.columns", l->name,
                    l->keys->events);
    }
    const struct looked_column *column = &l->columns.column[value];
    form->events = (uint8_t)is_of_events(l, value);
    int truths = column->truths && column->truths + column->falses == column->filled;
    int flags = column->flags == column->filled && column->zeros && column->zeros < column->filled;
    form->zeros_out = (uint8_t)((truths && column->falses) || flags);
    if (truths) form->events = 0;
    if (asked) form->events = 1, form->zeros_out = 0;
    if (!form->events && !truths && form->named && !(l->keys->columns && *l->keys->columns) && column->filled && !has_numbers(l, value))
        form->column[COLUMN_VALUE] = NO_COLUMN; /* a text column, such as a note, with a name that ratings often have */
    return 0;
}

/* Finds the format of lines or rows that are not documents. */
static int decide_rows(struct looking *l, const char *separator) {
    struct columns_form *form = &l->look->form;
    uint64_t weights = 0;
    if (!l->typed) {
        if (refuse_metis(l)) return -1;
        form->braces = l->rows == LOOK_EDGES && cut_braces(&l->lines, &weights);
        if (refuse_lines(&l->lines, l->rows, form->braces, l->path)) return -1;
        separate(form, &l->lines, !l->row->free, l->rows != LOOK_TITLES, l->keys->separator, separator);
        if (l->row->free && refuse_table_of_lists(l)) return -1;
        if (!l->row->free && l->keys->separator == SEPARATOR_AUTO && has_two_separators(&l->lines, form))
            return fail("%s: both %s and commas split all lines: %.*s; say which by corpus.separator", where_is(l, 0),
                        columns_separator_name(form->separator), SHOWN(&l->lines.line[0]));
    }
    if (l->lines.count) l->first = part_line(&l->lines.line[0], form);
    describe_columns(&l->columns, &l->lines, l->typed ? (uint64_t)l->has_header : l->lines.count > 1, form);
    l->has_header = look_for_header(l);
    describe_columns(&l->columns, &l->lines, (uint64_t)l->has_header, form);
    l->look->shifted = l->is_shifted = find_shift(l);
    if (!(l->keys->columns && *l->keys->columns) && refuse_matrix(l)) return -1;
    if (l->first.count == 1 && l->row->needed > 1 && !l->row->longer && l->lines.count > 2 && l->columns.least > 1 && !l->typed &&
        l->keys->header == HEADER_AUTO)
        return fail("%s: 1 field with %s between, and each line after it has %" PRIu64 ": %.*s; remove it if it is no data", where_is(l, 0),
                    columns_separator_name(form->separator), l->columns.least, SHOWN(&l->lines.line[0]));
    uint64_t rows = 0, columns = 0;
    if (l->rows == LOOK_EDGES && l->has_header && is_matrix_market(l->lines.bytes, l->length))
        rows = number_of_line(&l->lines.line[0], 3, &columns);
    if (rows != columns)
        return fail("%s: a matrix of %" PRIu64 " rows and %" PRIu64 " columns is no graph, in which row 1 and column 1 would be one node; "
                    "corpus.format = pairs reads it as lists and items",
                    where_is(l, 0), rows, columns);
    if (take_columns(l)) return -1;
    for (unsigned c = 0; l->keys->labelled && c < l->columns.most && c < COLUMNS_READ; c++)
        if (c != form->column[COLUMN_A] && c != form->column[COLUMN_B] && c != form->column[COLUMN_VALUE] && are_truths(l, c))
            form->truth = (uint8_t)(c + 1);
    pass_over_times(l);
    if (!l->row->free && refuse_fields(l)) return -1;
    if (form->braces) form->column[COLUMN_VALUE] = l->keys->no_values || !weights ? NO_COLUMN : 2;
    if (choose_decimals(l) || judge_values(l)) return -1;
    if (l->rows == LOOK_EDGES) doubt_graph(l);
    if (l->rows == LOOK_PAIRS || l->rows == LOOK_LISTS) doubt_items(l);
    int unnamed = l->row->free ? have_no_names(l) : 0;
    if (unnamed < 0) return -1;
    form->naming = unnamed ? NAMED_BY_LINE : NAMED_BY_FIELD;
    return 0;
}

static int decide(struct looking *l) {
    struct look *look = l->look;
    char separator[3] = "";
    const char *before = l->lines.line[0].at;
    if (!l->typed && l->rows == LOOK_TRIPLES && are_ntriples(&l->lines)) {
        if (take_ntriples(l)) return -1;
    } else {
        if (!l->typed) pass_comments(l);
        if (!l->typed && !take_separator_line(&l->lines, separator)) *separator = 0;
        if (!l->typed) l->has_count = pass_count(l);
        if (l->rows == LOOK_DOCUMENTS ? look_at_documents(l) : decide_rows(l, separator)) return -1;
        look->header = l->has_header;
        look->counted = l->has_count;
        if (!l->row->free) name_columns(l);
    }
    if (!l->typed && (l->has_header || before != l->lines.line[0].at)) {
        const char *first = l->lines.line[0].at, *end = l->lines.bytes + l->length;
        const char *newline = l->has_header ? memchr(first, '\n', (size_t)(end - first)) : first - 1;
        look->skip = newline ? (uint64_t)(newline - l->lines.bytes) + 1 : l->length;
    }
    say(l);
    return 0;
}

int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path) {
    char name[512];
    struct look_keys own = *keys;
    struct looking l = {.look = look, .rows = rows, .row = &row_properties[rows], .keys = &own, .path = path, .name = name,
                        .length = length, .whole = whole};
    *look = (struct look){.form = COLUMNS_PLAIN, .rows = rows};
    if (rows == LOOK_TEXT) return 0;
    snprintf(name, sizeof name, "'%s'", path);
    int result = collect_lines(&l.lines, bytes, length, whole, l.row->comments);
    if (!result && keys->header == HEADER_YES && !keys->hints && !l.lines.count && !whole)
        result = fail("the first line of '%s' is longer than %" PRIu64 " bytes: corpus.header = yes has no header to leave out",
                      path, length);
    if (!result && rows == LOOK_TRIPLES && !l.lines.count && !whole)
        result = fail("the first line of '%s' is longer than %" PRIu64 " bytes, by which nobody can tell how triples are written: "
                      "begin with a shorter one",
                      path, length);
    if (!result && keys->hints) {
        l.headless = keys->header == HEADER_NO;
        own.header = HEADER_AUTO;
        /* Lists without names may have one item each, so no separator occurs. */
        int written = keys->separator != SEPARATOR_AUTO && keys->separator != SEPARATOR_BLANK, single = l.row->free && keys->names == NAMES_NO;
        int parted = written && 2 * try_separator(&l.lines, separator_of_key[keys->separator]).parted >= l.lines.count;
        if (!parted && !(written && single && *separator_of_lists(&l.lines) == ' ')) own.separator = SEPARATOR_AUTO;
    }
    uint64_t blanks = 0;
    while (blanks < length && token_is_white(bytes[blanks])) blanks++;
    int cut = !result && !l.lines.count && !whole && blanks < length && (l.row->free || l.row->text); /* 1: even the first line does not end within
                                                                                                       * the examined bytes, as may happen with
                                                                                                       * lists */
    if (cut) l.lines.line[l.lines.count++] = (struct looked_line){.at = bytes, .end = bytes + length, .number = 1};
    if (!result && l.lines.count) result = decide(&l);
    free(l.lines.line);
    return result;
}

/* ---- rows that a program hands over ---- */

/* What the fields of a program's rows are, counted by column. */
struct kinds {
    uint64_t filled[COLUMNS_READ], texts[COLUMNS_READ]; /* [column] number of fields with a value, and how many of these values are text */
};

/* Guesses the kind of rows if the user has not named one: by the columns' names, or, without them, if only one kind is possible. Returns LOOK_ANY
 * if several are. */
static enum look_rows guess(struct looking *l, const struct kinds *kinds) {
    static const enum look_rows named[] = {LOOK_TRIPLES, LOOK_PAIRS, LOOK_EDGES, LOOK_DOCUMENTS};
    uint64_t columns = l->columns.most;
    const struct looked_column *column = l->columns.column;
    for (size_t i = 0; l->has_header && i < sizeof named / sizeof *named; i++) {
        l->rows = named[i];
        l->row = &row_properties[l->rows];
        if (names_both(l)) return l->rows;
    }
    if (columns < 2 || columns > 3 || l->columns.least != columns) return LOOK_ANY;
    int texts[3] = {0}, words[3] = {0};
    for (unsigned c = 0; c < columns; c++) {
        texts[c] = kinds->texts[c] && kinds->texts[c] == kinds->filled[c];
        words[c] = texts[c] && column[c].words > 4 * column[c].filled; /* running text */
    }
    if (columns == 2 && words[0] != words[1]) return LOOK_DOCUMENTS;
    if (words[0] || words[1] || (!texts[0] && !texts[1])) return LOOK_ANY;
    if (columns == 3 && texts[0] && texts[1] && texts[2] && !is_of_events(l, 2)) return LOOK_TRIPLES;
    return shared_names(l, 0) ? LOOK_EDGES : LOOK_PAIRS;
}

/* Fails because several kinds of rows are possible. */
static int refuse_guess(const struct looking *l, uint64_t rows) {
    return fail("%s: %" PRIu64 " rows of %" PRIu64 " columns could be several things; say which by corpus.format: pairs (list, item[, rating]), "
                "graph (source, target[, weight]), triples (head, relation, tail)%s",
                l->path, rows, l->columns.most,
                l->has_header ? " or documents (document, text)" : ", documents (document, text), lists (a row is a list) or text");
}

/* Writes the rows as text for messages, and sets the lines' pointers to it. */
static char *show_rows(struct looking *l) {
    enum { MOST = 120 };
    char *text = mem_alloc(l->lines.count + 1, MOST, "rows of data");
    for (uint64_t i = 0; text && i < l->lines.count; i++) {
        struct looked_line *line = &l->lines.line[i];
        size_t at = 0;
        char *out = text + i * MOST;
        *out = 0;
        for (uint64_t c = 0; c < line->count && line->fields[c].kind != FIELD_NONE && at + 1 < MOST; c++)
            at = text_add(out, MOST, at, "%s%.*s", c ? ", " : "", text_shown(line->fields[c].length),
                          line->fields[c].text ? line->fields[c].text : "");
        line->at = out;
        line->end = out + strlen(out);
    }
    return text;
}

int look_at_rows(struct look *look, const struct look_data *data, enum look_rows rows, const struct look_keys *keys) {
    struct looking l = {.look = look, .rows = rows, .row = &row_properties[rows == LOOK_ANY ? LOOK_PAIRS : rows], .keys = keys,
                        .path = data->what, .name = data->what, .typed = 1, .whole = 1, .has_header = data->names != NULL};
    struct kinds kinds = {.filled = {0}};
    uint64_t count = data->rows < LOOKED_AT ? data->rows : LOOKED_AT, header = (uint64_t)l.has_header;
    *look = (struct look){.form = {.separator = "\t", .column = {0, 1, 2}}, .rows = rows};
    if (rows == LOOK_TEXT) return 0;
    OWNED struct look_field *names = mem_zalloc(data->columns + 1, sizeof *names, "names of columns");
    l.lines.line = mem_zalloc(count + 1, sizeof *l.lines.line, "rows of data");
    for (uint64_t c = 0; names && header && c < data->columns; c++) {
        const char *name = data->names[c] ? data->names[c] : "";
        names[c] = (struct look_field){name, strlen(name), FIELD_TEXT};
    }
    if (header && l.lines.line) l.lines.line[l.lines.count++] = (struct looked_line){.fields = names, .count = data->columns};
    for (uint64_t i = 0; l.lines.line && i < count; i++)
        l.lines.line[l.lines.count++] = (struct looked_line){.number = i, .fields = data->fields + i * data->columns, .count = data->columns};
    for (uint64_t i = 0; i < count * data->columns; i++) {
        const struct look_field *field = &data->fields[i];
        uint64_t c = i % data->columns;
        if (c >= COLUMNS_READ || field->kind == FIELD_NONE || field->kind == FIELD_MISSING) continue;
        kinds.filled[c]++;
        kinds.texts[c] += field->kind == FIELD_TEXT;
    }
    OWNED char *shown = names && l.lines.line ? show_rows(&l) : NULL;
    int result = shown ? 0 : -1;
    if (!result && rows == LOOK_ANY && l.lines.count) {
        l.first = part_line(&l.lines.line[0], &look->form);
        describe_columns(&l.columns, &l.lines, header, &look->form);
        look->rows = l.rows = guess(&l, &kinds);
        if (l.rows == LOOK_ANY) result = refuse_guess(&l, data->rows);
        else l.row = &row_properties[l.rows];
    }
    if (!result && l.lines.count) result = decide(&l);
    free(l.lines.line);
    return result;
}

/* ---- are lists pairs, is text a table? ---- */

enum { FEW_NUMBERS = 20, MOST_FIELDS = 4, LEAST_RATINGS = 3, MANY = 4 * FEW_NUMBERS, OWN_LEAST = 5 };

/* Statistics of the first lines of a file, to tell lists from pairs. */
struct looks {
    uint64_t lines, shared; /* shared: number of lines whose third field was also the second field of this or an earlier line */
    struct words names, seconds, thirds;
};

static int count_lines(struct looks *looks, const struct looked_lines *lines, uint64_t first, const struct columns_form *form) {
    int failed = 0;
    for (uint64_t i = first; i < lines->count && !failed; i++, looks->lines++) {
        struct table_line parts = part_line(&lines->line[i], form);
        failed = (parts.count && add_word(&looks->names, &parts, 0) < 0) || (parts.count > 1 && add_word(&looks->seconds, &parts, 1) < 0) ||
                 (parts.count > 2 && add_word(&looks->thirds, &parts, 2) < 0);
        looks->shared += parts.count > 2 && has_word(&looks->seconds, &parts, 2);
    }
    return failed ? -1 : 0;
}

/* Judges lines of equal length whose third field is a number. They are ratings if a name is repeated, if the separator is not a blank or tab, or
 * if many lines share few distinct numbers. They are lists of two items if there are many lines and some third field is also a second field.
 * Otherwise it is unclear. */
static enum look_kind judge_counts(const struct looks *looks, int blanks) {
    int again = looks->names.size < looks->lines, many = looks->lines > MANY;
    if (again || !blanks || (many && looks->thirds.size <= FEW_NUMBERS)) return LINES_RATINGS;
    return many && looks->shared ? LINES_LISTS : LINES_UNCLEAR;
}

static enum look_kind judge(const struct looked_lines *lines, const struct look *look, uint64_t first) {
    struct looked_columns columns;
    struct looks looks = {.lines = 0};
    const struct columns_form *form = &look->form;
    int blanks = *form->separator == ' ' || *form->separator == '\t';
    describe_columns(&columns, lines, first, form);
    if (!columns.lines) return LINES_UNCLEAR;
    if (columns.least != columns.most || columns.most < 2 || columns.most > MOST_FIELDS) return LINES_LISTS;
    const struct looked_column *third = &columns.column[2];
    int numbers = columns.most > 2 && third->filled && (third->numbers == third->filled || third->comma_numbers == third->filled);
    if (columns.most == 2) return blanks || columns.lines < 2 ? LINES_UNCLEAR : LINES_PAIRS;
    if (!numbers) return LINES_LISTS;
    enum look_kind kind = count_lines(&looks, lines, first, form) ? LINES_UNCLEAR : judge_counts(&looks, blanks);
    words_release(&looks.names);
    words_release(&looks.seconds);
    words_release(&looks.thirds);
    return kind == LINES_RATINGS && (columns.lines < LEAST_RATINGS || *form->separator == ' ') ? LINES_PAIRS : kind;
}

enum look_kind look_for_pairs(const char *bytes, uint64_t length, int *named) {
    const struct look_keys keys = LOOK_AUTO;
    struct looked_lines lines;
    struct look look;
    enum look_kind kind = LINES_UNCLEAR;
    int failed_before = report_exit_code();
    if (look_at_lines(&look, bytes, length, 1, LOOK_PAIRS, &keys, "")) {
        if (!failed_before) report_clear(); /* lines that cannot be read as pairs are no error here: judge() decides how to read them */
        look.form.named = 0;
        look.skip = 0;
    }
    if (named) *named = look.form.named;
    if (look.form.named) return look.form.column[COLUMN_VALUE] == NO_COLUMN ? LINES_PAIRS : LINES_RATINGS;
    if (!collect_lines(&lines, bytes + look.skip, length - look.skip, 1, 0)) kind = judge(&lines, &look, 0);
    free(lines.line);
    return kind;
}

/* ---- text ---- */

/* Returns 1 if there are at least OWN_LEAST lines and each begins with a number that no other line begins with. */
static int begin_with_numbers(const struct looked_lines *lines) {
    struct columns_form form = COLUMNS_PLAIN;
    ENDED_BY(words_release) struct words names = {0};
    int all = lines->count >= OWN_LEAST;
    for (uint64_t i = 0; i < lines->count && all; i++) {
        struct table_line parts = part_line(&lines->line[i], &form);
        double number;
        all = parts.count > 1 && !columns_number(&form, parts.word[0], parts.length[0], &number) && add_word(&names, &parts, 0) >= 0;
    }
    return all && names.size == lines->count;
}

/* Returns 1 if there are at least OWN_LEAST lines and each consists of two numbers. */
static int are_two_numbers(const struct looked_lines *lines) {
    struct columns_form form = COLUMNS_PLAIN;
    struct looked_columns columns;
    describe_columns(&columns, lines, 0, &form);
    return lines->count >= OWN_LEAST && columns.least == 2 && columns.most == 2 && columns.column[0].numbers == lines->count &&
           columns.column[1].numbers == lines->count;
}

/* Returns 1 if some line has this byte followed by a blank, as in a sentence. */
static int have_in_sentences(const struct looked_lines *lines, char byte) {
    for (uint64_t i = 0; i < lines->count; i++)
        for (const char *at = lines->line[i].at; at + 1 < lines->line[i].end; at++)
            if (*at == byte && text_is_blank(at[1])) return 1;
    return 0;
}

/* Returns the end of a warning that names the format which a text's lines fit; NULL if they are not a table. *sure: 1 if the columns leave only
 * one format. */
static const char *look_for_table(const struct looked_lines *lines, int *sure) {
    static const char *const reads[LOOK_ROWS] = {[LOOK_PAIRS] = "look like pairs: corpus.format = pairs reads list, item[, rating]",
                                                 [LOOK_EDGES] = "look like edges: corpus.format = graph reads source, target[, weight]",
                                                 [LOOK_TRIPLES] = "look like triples: corpus.format = triples reads head, relation, tail",
                                                 [LOOK_DOCUMENTS] = "look like a table with texts: corpus.format = documents reads document, text"};
    const struct columns_form blanks = COLUMNS_PLAIN;
    uint64_t second, wide = lines->count > 1 ? part_line(&lines->line[1], &blanks).count : 0;
    *sure = 1;
    if (lines->count > 2 && number_of_line(&lines->line[0], 1, &second) >= lines->count - 1 &&
        (wide == 3 || number_of_line(&lines->line[1], 2, &second)))
        return reads[wide == 3 ? LOOK_TRIPLES : LOOK_EDGES];
    for (int s = 0; s < BLANKS; s++) {
        struct parting parting = try_separator(lines, separators[s]);
        uint64_t quoted = 0;
        int prose = lines->count < 3 || ((*separators[s] == ';' || s == COMMA) && have_in_sentences(lines, *separators[s]));
        if (!is_uniform(lines, &parting) || (s == COMMA && !have_commas_of_fields(lines))) continue;
        struct look look = {.form = form_with(separators[s], choose_quotes(lines, separators[s]))};
        const struct look_keys keys = LOOK_AUTO;
        struct looking l = {.look = &look, .lines = *lines, .keys = &keys, .has_header = 1, .first = part_line(&lines->line[0], &look.form)};
        struct kinds kinds = {.filled = {0}};
        for (uint64_t i = 0; i < lines->count; i++) quoted += part_line(&lines->line[i], &look.form).quoted;
        if (prose && 2 * quoted < lines->count) continue;
        describe_columns(&l.columns, lines, 1, &look.form);
        int texts = 0;
        for (uint64_t c = 0; c < COLUMNS_READ; c++) {
            kinds.filled[c] = l.columns.column[c].filled;
            kinds.texts[c] = kinds.filled[c] - l.columns.column[c].numbers;
            texts |= kinds.texts[c] && l.columns.column[c].words >= 3 * kinds.filled[c];
        }
        enum look_rows rows = guess(&l, &kinds);
        if (rows == LOOK_ANY && texts) return reads[LOOK_DOCUMENTS];
        *sure = rows == LOOK_TRIPLES || rows == LOOK_DOCUMENTS || (l.rows == rows && names_both(&l));
        return *sure ? reads[rows] : "look like a table: corpus.format = pairs reads list, item[, rating], graph edges, documents a name and a text";
    }
    return NULL;
}

void look_for_rows(char like[LOOK_LIKE], const char *bytes, uint64_t length, enum look_rows rows) {
    struct looked_lines lines;
    enum look_kind kind = look_for_pairs(bytes, length, NULL);
    const char *found = kind == LINES_RATINGS ? "look like ratings (list, item, rating): corpus.format = pairs reads them as such" : NULL;
    *like = 0;
    if (rows == LOOK_TEXT && !collect_lines(&lines, bytes, length, 1, 0) && lines.count) {
        int sure, other = find_other_format(&lines);
        const char *table = look_for_table(&lines, &sure);
        const struct looked_line *line = &lines.line[0];
        if (other == XML && !begins_with(line, "<?xml") && !begins_with(line, "<!") && !begins_with(line, "<mediawiki")) other = -1;
        if (other > GML && !strchr("*@", *line->at) && !holds(line, "\"") && !holds(line, "{")) other = -1; /* "Creator of worlds" */
        if (is_json(line) && are_json(&lines))
            found = "are JSON, which is read as words with its braces and quotes: write the text alone into a file first";
        else if (are_ntriples(&lines))
            found = "are N-Triples: corpus.format = triples reads them";
        else if (other >= 0)
            snprintf(like, LOOK_LIKE, "are %s, and no text: %s", others[other].what,
                     other == XML ? "write its text alone into a file first" : others[other].then);
        else if (table && (!found || (sure && !strstr(table, "look like pairs"))))
            found = table;
        else if (!found && kind == LINES_PAIRS && lines.count >= OWN_LEAST)
            found = "look like a table: corpus.format = pairs reads list, item[, rating]";
        else if (!found && are_two_numbers(&lines))
            found = "are two numbers each: corpus.format = graph reads edges, pairs reads list and item";
        else if (!found && begin_with_numbers(&lines))
            found = "begin with a number of their own, as lists do that have one for a name: corpus.format = lists reads name and items";
    }
    if (rows == LOOK_TEXT) free(lines.line);
    if (found && !*like) snprintf(like, LOOK_LIKE, "%s", found);
}
