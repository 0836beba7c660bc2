#define _GNU_SOURCE
#include "look_said.h"

#include "base/report.h"
#include "base/text.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum column_set set_of(enum look_rows rows) {
    switch (rows) {
        case LOOK_EDGES: return COLUMNS_OF_EDGES;
        case LOOK_TRIPLES: return COLUMNS_OF_TRIPLES;
        case LOOK_LABELS: return COLUMNS_OF_LABELS;
        case LOOK_TITLES: return COLUMNS_OF_TITLES;
        case LOOK_WORDS: return COLUMNS_OF_WORDS;
        default: return COLUMNS_OF_PAIRS;
    }
}

/* Skips the # in front of a header such as "# user item". */
static void pass_hash(struct looking *l) {
    struct looked_line *line = l->lines.line;
    if (l->rows == LOOK_EDGES || l->lines.count < 2 || *line->at != '#' || *line[1].at == '#') return;
    do line->at++;
    while (line->at < line->end && token_is_white(*line->at));
    l->has_hash = 1;
}

/* A spreadsheet may name the separator in a first line such as "sep=;". Removes that line from `lines` and stores the separator.
 * Returns 1 if the separator is one that this program knows, otherwise 0. */
static int take_separator_line(struct looked_lines *lines, char separator[3]) {
    const struct looked_line *line = &lines->line[0];
    if (lines->count < 2 || line->end - line->at != 5 || strncasecmp(line->at, "sep=", 4)) return 0;
    separator[0] = line->at[4];
    separator[1] = 0;
    memmove(lines->line, lines->line + 1, --lines->count * sizeof *lines->line);
    return strchr("\t;|, ", separator[0]) != NULL;
}

/* If every line ends with attributes as networkx writes them, "{'weight': 3}", cuts them off all lines and returns 1; otherwise
 * changes nothing and returns 0. *weights: number of lines whose attributes have a weight. */
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

/* Returns 1 if the file is in Matrix Market format: its first line after the comments gives the matrix's size and is no edge. */
static int is_matrix_market(const char *bytes, uint64_t length) {
    static const char banner[] = "%%MatrixMarket";
    return length >= strlen(banner) && !memcmp(bytes, banner, strlen(banner));
}

/* ---- the header ---- */

/* Returns the index of the column whose name in the first line fits the meaning best, NO_COLUMN if none fits. `but`: a column that
 * is already used. */
static unsigned find_named(const struct looking *l, enum column_meaning meaning, unsigned but) {
    unsigned best = 0, column = NO_COLUMN;
    for (unsigned c = 0; c < l->first.count && c < COLUMNS_READ; c++) {
        unsigned rank = column_rank(l->set, meaning, l->first.word[c], l->first.length[c]);
        if (rank > best && c != but) best = rank, column = c;
    }
    return column;
}

/* Returns 1 if the header has known names for COLUMN_A and COLUMN_B, and for the relation of triples. */
static int names_both(const struct looking *l) {
    unsigned a = find_named(l, COLUMN_A, NO_COLUMN);
    int relation = l->rows != LOOK_TRIPLES || find_named(l, COLUMN_VALUE, NO_COLUMN) != NO_COLUMN;
    return a != NO_COLUMN && find_named(l, COLUMN_B, a) != NO_COLUMN && relation;
}

enum { NAME_MOST = 64 }; /* bytes of a field that may be a name of a column */
enum { CODED_LEAST = 4 }; /* smallest number of lines from which a pattern such as u1, u2, u3 is inferred */

/* Returns 1 if no other line has the first line's field in this column. */
static int is_alone(const struct looking *l, unsigned c) {
    for (uint64_t i = 1; i < l->lines.count; i++) {
        struct table_line parts = looked_part(&l->lines.line[i], &l->look->form);
        if (c < parts.count && parts.length[c] == l->first.length[c] && !memcmp(parts.word[c], l->first.word[c], parts.length[c])) return 0;
    }
    return 1;
}

/* Returns 1 if the first line has two fields, neither occurs again in its column, and one of them is a known column name:
 * "user,film". */
static int names_one_of_two(const struct looking *l) {
    if (l->first.count != 2 || l->columns.most != 2 || l->lines.count < 3) return 0;
    unsigned a = find_named(l, COLUMN_A, NO_COLUMN), b = find_named(l, COLUMN_B, NO_COLUMN);
    return (a != NO_COLUMN || b != NO_COLUMN) && is_alone(l, 0) && is_alone(l, 1);
}

/* Returns 1 if the first line must be a header: in some column all other lines have numbers (or codes such as u17) and the first
 * line has a word, and in no such column does the first line also have a number (or such a code). */
static int differs_from_data(const struct looking *l) {
    int differs = 0;
    uint64_t count = looked_is_of_lists(l->rows) ? 1 : l->first.count;
    for (uint64_t c = 0; c < count && c < COLUMNS_READ; c++) {
        const struct looked_column *column = &l->columns.column[c];
        uint64_t length = l->first.length[c];
        const char *word = l->first.word[c];
        if (!column->filled || !length || looked_is_missing(word, length)) continue;
        if (column->digits == column->filled) {
            if (looked_is_digits(word, length)) return 0;
            differs = 1;
        } else if (column->coded == column->filled && column->filled >= CODED_LEAST && column->letters_length) {
            if (looked_is_coded(column, word, length)) return 0;
            differs |= !strpbrk(strndupa(word, length < NAME_MOST ? length : NAME_MOST), "0123456789");
        }
    }
    return differs;
}

static int look_for_header(struct looking *l) {
    const struct looked_lines *lines = &l->lines;
    enum corpus_header key = l->keys->header;
    if (!lines->count || key == HEADER_NO) return 0;
    if (key == HEADER_YES) return 1;
    if (l->rows == LOOK_EDGES && is_matrix_market(lines->bytes, l->length)) return 1;
    if (l->has_hash) return 1;
    if (!looked_is_of_lists(l->rows) && looked_has_values(l->rows) && names_one_of_two(l)) return 1;
    return (!looked_is_of_lists(l->rows) && names_both(l)) || (lines->count > 1 && differs_from_data(l));
}

/* Returns 1 if each line has one field more than the header: R writes row names, for which the header has no name. */
static int find_shift(const struct looking *l) {
    if (!l->has_header || l->lines.count < 2 || l->first.count + 1 != l->columns.most || l->columns.least != l->columns.most) return 0;
    struct table_line second = looked_part(&l->lines.line[1], &l->look->form);
    int numbered = second.length[0] == 1 && *second.word[0] == '1';
    return (numbered || *l->lines.line[1].at == '"') && looked_begin_differently(&l->lines, &l->look->form);
}

/* ---- which column is which ---- */

static int refuse_columns(const struct looking *l, const char *why) {
    const struct columns_words *words = &columns_words[l->set];
    int triples = l->rows == LOOK_TRIPLES;
    return fail("'%s' line %" PRIu64 ": %s: %.*s; say which columns are %s%s and %s by corpus.columns, as in "
                "corpus.columns = 1,%s3 or by their names",
                l->path, l->lines.line[0].number, why, text_shown((uint64_t)(l->lines.line[0].end - l->lines.line[0].at)),
                l->lines.line[0].at, words->a, triples ? ", relation" : "", words->b, triples ? "2," : "");
}

/* Finds a column by an entry of corpus.columns: its number, from 1, or its name in the header. Returns 0, or -1 after fail(). */
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
    if (!l->has_header)
        return fail("'%s' has no header that could name the column '%s' of corpus.columns; wanted a number from 1 on, or "
                    "corpus.header = yes",
                    l->path, text);
    return fail("'%s': no column of its header is called '%s' (corpus.columns): %.*s", l->path, text,
                text_shown((uint64_t)(l->lines.line[0].end - l->lines.line[0].at)), l->lines.line[0].at);
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
    return count >= 2 && count <= COLUMN_MEANINGS ? 0 : -1;
}

static int take_given(const struct looking *l) {
    static const enum column_meaning usual[] = {COLUMN_A, COLUMN_B, COLUMN_VALUE}, of_triples[] = {COLUMN_A, COLUMN_VALUE, COLUMN_B};
    struct columns_form *form = &l->look->form;
    const char *at = l->keys->columns, *name;
    uint64_t length;
    int triples = l->rows == LOOK_TRIPLES;
    uint8_t *column = form->column;
    memset(column, NO_COLUMN, sizeof form->column);
    for (int i = 0; i < COLUMN_MEANINGS && next_given(&at, &name, &length); i++)
        if (find_given(l, name, length, &column[triples ? of_triples[i] : usual[i]])) return -1;
    if (triples && column[COLUMN_B] == NO_COLUMN)
        return fail("corpus.columns = %s names two columns, and a triple has three: head, relation, tail", l->keys->columns);
    if (column[COLUMN_A] == column[COLUMN_B] || (triples && (column[COLUMN_VALUE] == column[COLUMN_A] || column[COLUMN_VALUE] == column[COLUMN_B])))
        return fail("corpus.columns = %s names one column of '%s' twice", l->keys->columns, l->path);
    form->named = 1;
    form->most = 0;
    return 0;
}

static void take_named(const struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned shift = (unsigned)l->is_shifted, a = find_named(l, COLUMN_A, NO_COLUMN), b = find_named(l, COLUMN_B, a);
    unsigned value = find_named(l, COLUMN_VALUE, b);
    form->column[COLUMN_A] = (uint8_t)(a + shift);
    form->column[COLUMN_B] = (uint8_t)(b + shift);
    form->column[COLUMN_VALUE] = (uint8_t)(value == NO_COLUMN || value == a ? NO_COLUMN : value + shift);
    form->named = 1;
}

/* Returns 1 if at least half of the column's fields are numbers; a line whose field is not a number is an error later, when it is
 * read. Also returns 1 if the file has only a header. */
static int has_numbers(const struct looking *l, unsigned column) {
    if (column >= COLUMNS_READ) return 0;
    const struct looked_column *looked = &l->columns.column[column];
    uint64_t numbers = looked->numbers > looked->comma_numbers ? looked->numbers : looked->comma_numbers;
    return !l->columns.lines || (looked->filled && 2 * numbers >= looked->filled);
}

enum { POSITIONS_MOST = 4 }; /* largest number of columns with which, without column names, the first three are read by position */

/* Fails: the third column has no numbers. It is not just ignored, since it may matter, as in "aspirin treats headache". */
static int refuse_third(const struct looking *l) {
    const struct looked_line *line = &l->lines.line[l->has_header && l->lines.count > 1];
    if (l->rows == LOOK_EDGES)
        return fail("'%s' line %" PRIu64 ": '%.*s' looks like a triple (head, relation, tail): its third column is no weight; "
                    "set corpus.format = triples to train triples, corpus.columns = 1,3 to read head and tail as an edge, or "
                    "graph.weights = no to ignore the third column",
                    l->path, line->number, text_shown((uint64_t)(line->end - line->at)), line->at);
    return refuse_columns(l, "the third column is no rating, and nothing tells which column is what");
}

/* Returns 1 if the first column is an index, as pandas and R write it: its name is empty, the header has no field for it, or pairs
 * without a header have three columns or more, of which the first has row numbers. */
static unsigned has_index(const struct looking *l) {
    if (l->is_shifted || (l->has_header && l->first.count > 2 && !l->first.length[0])) return 1;
    return l->rows == LOOK_PAIRS && !l->has_header && l->columns.least > 2 && looked_are_numbered(&l->lines, &l->look->form);
}

/* Returns 1 if the header's name of the column is that of a value or a time. */
static int is_value(const struct looking *l, unsigned column) {
    uint64_t length;
    const char *name = looked_name(l, column, &length), *text = strndupa(name, length < NAME_MOST ? length : NAME_MOST);
    return l->has_header && (column_rank(l->set, COLUMN_VALUE, name, length) || strcasestr(text, "time") || strcasestr(text, "date"));
}

/* Called if the header has a known name for only one of COLUMN_A (a) and COLUMN_B (b). With two columns, the other meaning is the
 * other column. With more columns, they are read by position if the known name is at its usual position; if not, this fails. */
static int take_half_named(const struct looking *l, unsigned a, unsigned b) {
    uint8_t *column = l->look->form.column;
    if (l->columns.most == 2 && (a != NO_COLUMN ? a : b) < 2 && !is_value(l, a != NO_COLUMN ? 1 - a : 1 - b)) {
        column[COLUMN_A] = (uint8_t)(a != NO_COLUMN ? a : 1 - b);
        column[COLUMN_B] = (uint8_t)(1 - column[COLUMN_A]);
        return 0;
    }
    int expected = (a == 0 || b == 1) && !is_value(l, 0) && !is_value(l, 1) && l->columns.most <= POSITIONS_MOST && has_numbers(l, 2);
    return expected ? 0 : refuse_columns(l, "the header does not name all columns that are wanted");
}

/* Chooses the columns of labels. If the columns between the first and the last have only 0 and 1, as features in Planetoid's
 * files do, the last column is the label. */
static int take_last_label(const struct looking *l) {
    uint64_t last = l->columns.most - 1, flags = 1;
    if (l->columns.least != l->columns.most || l->columns.most < 4 || l->columns.lines < 2) return 0;
    while (flags < last && flags < COLUMNS_READ && l->columns.column[flags].flags == l->columns.lines) flags++;
    if (flags < last && flags < COLUMNS_READ) return 0;
    if (last >= COLUMNS_READ || l->columns.column[last].flags == l->columns.lines)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " columns of 0 and 1 are no labels; keep the first column and that of the label "
                    "(awk '{print $1, $NF}')",
                    l->path, l->lines.line[0].number, last >= COLUMNS_READ ? last - 1 : last);
    l->look->form.column[COLUMN_B] = (uint8_t)last;
    l->look->form.named = 1;
    return 0;
}

/* Fails: the header of a file of titles has a known name for only one of the two columns. */
static int refuse_titles(const struct looking *l, const char *missing) {
    const struct looked_line *line = &l->lines.line[0];
    return fail("'%s' line %" PRIu64 ": the header names no %s among its %" PRIu64 " columns: %.*s; call that column %s", l->path,
                line->number, missing, l->columns.most, text_shown((uint64_t)(line->end - line->at)), line->at, missing);
}

/* Chooses the columns of triples by position: head, relation, tail. */
static int take_triple(const struct looking *l, unsigned index) {
    struct columns_form *form = &l->look->form;
    const struct looked_line *line = &l->lines.line[l->has_header && l->lines.count > 1];
    uint64_t most = l->columns.most > index ? l->columns.most - index : 0;
    while (most > 3 && most + index <= COLUMNS_READ && !l->columns.column[most - 1 + index].filled) most--; /* separators at the lines' ends */
    if (most < 3)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s with %s between; wanted head, relation, tail: %.*s", l->path, line->number,
                    most, most == 1 ? "" : "s", columns_separator_name(form->separator), text_shown((uint64_t)(line->end - line->at)), line->at);
    form->column[COLUMN_A] = (uint8_t)index;
    form->column[COLUMN_VALUE] = (uint8_t)(index + 1);
    form->column[COLUMN_B] = (uint8_t)(index + 2);
    return most > 3 ? refuse_columns(l, "nothing tells which columns are wanted") : 0;
}

/* Chooses columns by position: the first two, and the third if it has numbers. Returns 0, or -1 after fail(). */
static int take_positions(const struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned index = has_index(l);
    if (l->rows == LOOK_TRIPLES) return l->columns.lines ? take_triple(l, index) : 0;
    uint64_t most = l->columns.most - (l->columns.most ? index : 0);
    unsigned a = l->has_header ? find_named(l, COLUMN_A, NO_COLUMN) : NO_COLUMN;
    unsigned b = l->has_header ? find_named(l, COLUMN_B, NO_COLUMN) : NO_COLUMN;
    if (index && !l->has_header && has_numbers(l, 2))
        return refuse_columns(l, "the first column has the lines' numbers, or each list has one line");
    for (int meaning = 0; meaning < COLUMN_MEANINGS; meaning++) form->column[meaning] = (uint8_t)(meaning + (int)index);
    if (most < 3 || l->keys->no_values) form->column[COLUMN_VALUE] = NO_COLUMN;
    if (l->rows == LOOK_LABELS) return take_last_label(l);
    if (l->rows == LOOK_TITLES && most > 2 && (a == NO_COLUMN) != (b == NO_COLUMN)) return refuse_titles(l, a == NO_COLUMN ? "id" : "title");
    if (!looked_has_values(l->rows)) return 0;
    if (l->has_header && (a != NO_COLUMN || b != NO_COLUMN) && l->rows != LOOK_WORDS) return take_half_named(l, a, b);
    if (l->rows == LOOK_WORDS)
        while (form->column[COLUMN_VALUE] < l->columns.most && form->column[COLUMN_VALUE] < NO_COLUMN && !has_numbers(l, form->column[COLUMN_VALUE]))
            form->column[COLUMN_VALUE]++;
    if (l->rows == LOOK_WORDS && (form->column[COLUMN_VALUE] >= l->columns.most || form->column[COLUMN_VALUE] == NO_COLUMN)) form->column[COLUMN_VALUE] = (uint8_t)(2 + index);
    while (most > 2 && most + index <= COLUMNS_READ && !l->columns.column[most - 1 + index].filled) most--; /* separators at the lines' ends */
    if (most < 3 && l->rows != LOOK_WORDS) form->column[COLUMN_VALUE] = NO_COLUMN;
    if (l->rows == LOOK_EDGES && most == 3 && l->columns.column[1].filled && l->columns.column[1].arrows == l->columns.column[1].filled) {
        form->column[COLUMN_B] = 2, form->column[COLUMN_VALUE] = NO_COLUMN; /* "a -> b" */
        return 0;
    }
    if (most < 3 || l->rows == LOOK_WORDS || form->braces || l->keys->no_values) return 0;
    unsigned value = l->has_header ? find_named(l, COLUMN_VALUE, NO_COLUMN) : NO_COLUMN;
    if (value != NO_COLUMN && value != 2 + index) return refuse_columns(l, "the header names a value, but not the columns that are wanted");
    if (!has_numbers(l, 2 + index)) return refuse_third(l);
    return most <= POSITIONS_MOST ? 0 : refuse_columns(l, "nothing tells which columns are wanted");
}

/* Sets the format of N-Triples. Their lines need no further examination. */
static int take_ntriples(struct looking *l) {
    struct look *look = l->look;
    int header = l->keys->header == HEADER_YES;
    if (header || l->keys->separator != SEPARATOR_AUTO)
        return fail("'%s' holds N-Triples, whose lines have no header and blanks between their terms: leave out corpus.%s", l->path,
                    header ? "header = yes" : "separator");
    if (l->keys->columns && *l->keys->columns)
        return fail("'%s' holds N-Triples, whose terms are subject, predicate and object: leave out corpus.columns = %s", l->path,
                    l->keys->columns);
    look->form.ntriples = 1;
    looked_say(l);
    return 0;
}

static int take_columns(const struct looking *l) {
    struct columns_form *form = &l->look->form;
    form->most = looked_is_of_lists(l->rows) || l->rows == LOOK_LABELS || l->rows == LOOK_TITLES ? 0 : l->columns.most;
    if (l->has_header && l->keys->header != HEADER_YES && form->most && !l->is_shifted && (*form->separator != ' ' || form->most < l->first.count))
        form->most = l->first.count;
    if (form->braces) form->most = 3;
    if (looked_is_of_lists(l->rows)) return 0;
    if (l->keys->columns && *l->keys->columns) return take_given(l);
    if (l->has_header && names_both(l)) {
        take_named(l);
        return 0;
    }
    return take_positions(l);
}

/* Leaves out the third column if all its fields are times, as in logs of events: times are no ratings or weights. Columns that were
 * chosen by name stay. */
static void pass_over_times(struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned value = form->column[COLUMN_VALUE];
    if (form->named || form->braces || value >= COLUMNS_READ || l->rows == LOOK_WORDS || l->rows == LOOK_TRIPLES) return;
    const struct looked_column *column = &l->columns.column[value];
    l->has_times = column->filled && column->times == column->filled;
    if (l->has_times) form->column[COLUMN_VALUE] = NO_COLUMN;
}

/* Chooses decimal commas if all ratings or weights are numbers when read with commas, and not all are when read with points. */
static int choose_decimals(const struct looking *l) {
    struct columns_form *form = &l->look->form;
    unsigned value = form->column[COLUMN_VALUE];
    if (!looked_has_values(l->rows) || value >= COLUMNS_READ) return 0;
    const struct looked_column *column = &l->columns.column[value];
    if (column->thousands && column->thousands == column->filled - column->numbers)
        return fail("'%s': column %u has numbers such as 1,234, whose comma may be a decimal sign or separate thousands; write them "
                    "without, or with a point",
                    l->path, value + 1);
    form->decimal_comma = column->filled && column->comma_numbers == column->filled && column->numbers < column->filled;
    return 0;
}

enum { NAMES_SHARE = 5 };

/* Returns 1 if lists have no names: at least a fifth of the lines begin with the same word as an earlier line, and at least half
 * begin with a word that is also a later field of some line. corpus.names = yes or no decides instead. Returns 0 if lists have
 * names, -1 after a failure. */
static int have_no_names(struct looking *l) {
    struct words firsts = {0}, items = {0};
    uint64_t begin = (uint64_t)l->has_header, count = l->lines.count - begin, within = 0;
    int failed = 0;
    if (l->keys->names != NAMES_AUTO) return l->keys->names == NAMES_NO;
    if (l->rows != LOOK_LISTS || count < 2) return 0;
    for (uint64_t i = begin; i < l->lines.count && !failed; i++) {
        struct table_line parts = looked_part(&l->lines.line[i], &l->look->form);
        for (uint64_t c = 0; c < parts.count && c < COLUMNS_READ && !failed; c++)
            failed = words_add(c ? &items : &firsts, words_hash(parts.word[c], parts.length[c]), parts.word[c], parts.length[c]) < 0;
    }
    for (uint64_t i = begin; i < l->lines.count && !failed; i++) {
        struct table_line parts = looked_part(&l->lines.line[i], &l->look->form);
        within += words_find(&items, words_hash(parts.word[0], parts.length[0]), parts.word[0], parts.length[0]) >= 0;
    }
    uint64_t repeated = count - firsts.size;
    l->names = firsts.size;
    words_release(&firsts);
    words_release(&items);
    return failed ? -1 : NAMES_SHARE * repeated >= count && 2 * within >= count;
}

/* ---- finding the format ---- */

static int decide(struct looking *l, uint64_t length) {
    struct look *look = l->look;
    struct columns_form *form = &look->form;
    int lists = looked_is_of_lists(l->rows);
    uint64_t weights = 0;
    char separator[3] = "";
    const char *before = l->lines.line[0].at;
    if (l->rows == LOOK_TRIPLES && looked_are_ntriples(&l->lines)) return take_ntriples(l);
    if (!take_separator_line(&l->lines, separator)) *separator = 0;
    form->braces = l->rows == LOOK_EDGES && cut_braces(&l->lines, &weights);
    if (looked_refuse_lines(&l->lines, l->rows, form->braces, l->path)) return -1;
    pass_hash(l);
    looked_separate(form, &l->lines, !lists, l->rows != LOOK_TITLES, l->keys->separator, separator);
    if (!lists && l->keys->separator == SEPARATOR_AUTO && looked_has_two_separators(&l->lines, form))
        return fail("'%s' line %" PRIu64 ": both %s and commas split all lines: %.*s; say which by corpus.separator", l->path,
                    l->lines.line[0].number, columns_separator_name(form->separator),
                    text_shown((uint64_t)(l->lines.line[0].end - l->lines.line[0].at)), l->lines.line[0].at);
    if (l->lines.count) l->first = looked_part(&l->lines.line[0], form);
    looked_describe(&l->columns, &l->lines, l->lines.count > 1, form);
    l->has_header = look_for_header(l);
    looked_describe(&l->columns, &l->lines, (uint64_t)l->has_header, form);
    l->is_shifted = find_shift(l);
    if (take_columns(l)) return -1;
    pass_over_times(l);
    if (!lists && looked_refuse_fields(&l->lines, (uint64_t)l->has_header, form, l->rows, l->path)) return -1;
    if (form->braces) form->column[COLUMN_VALUE] = l->keys->no_values || !weights ? NO_COLUMN : 2;
    if (choose_decimals(l)) return -1;
    int unnamed = lists ? have_no_names(l) : 0;
    if (unnamed < 0) return -1;
    form->unnamed = (uint8_t)unnamed;
    if (l->has_header || before != l->lines.line[0].at) {
        const char *end = l->lines.bytes + length, *last = l->has_header ? l->lines.line[0].at : before;
        const char *newline = memchr(last, '\n', (size_t)(end - last));
        look->skip = newline ? (uint64_t)(newline - l->lines.bytes) + 1 : length;
    }
    looked_say(l);
    return 0;
}

int look_at_lines(struct look *look, const char *bytes, uint64_t length, int whole, enum look_rows rows,
                  const struct look_keys *keys, const char *path) {
    struct looking l = {.look = look, .rows = rows, .set = set_of(rows), .keys = keys, .path = path, .length = length};
    *look = (struct look){.form = COLUMNS_PLAIN};
    if (rows == LOOK_TEXT) return 0;
    int result = looked_lines_collect(&l.lines, bytes, length, whole, rows == LOOK_EDGES);
    if (!result && keys->header == HEADER_YES && !l.lines.count && !whole)
        result = fail("the first line of '%s' is longer than %" PRIu64 " bytes: corpus.header = yes has no header to leave out",
                      path, length);
    if (!result && rows == LOOK_TRIPLES && !l.lines.count && !whole)
        result = fail("the first line of '%s' is longer than %" PRIu64 " bytes, by which nobody can tell how triples are written: "
                      "begin with a shorter one",
                      path, length);
    int cut = !result && !l.lines.count && !whole && length && looked_is_of_lists(rows); /* a list's line may be longer than the look */
    if (cut) l.lines.line[l.lines.count++] = (struct looked_line){bytes, bytes + length, 1};
    if (!result && l.lines.count) result = decide(&l, length);
    looked_lines_release(&l.lines);
    return result;
}
