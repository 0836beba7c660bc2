/* look_form: decides whether lines are lists (name, items) or pairs (list, item[, rating]), and finds the warning if lines that
 * are read as text, lists or adjacency look like another format. */
#include "look_lines.h"

#include "base/report.h"
#include "words.h"

enum { FEW_NUMBERS = 20, MOST_FIELDS = 4, LEAST_RATINGS = 3, MANY = 4 * FEW_NUMBERS, OWN_LEAST = 5 };

/* Statistics of the first lines of a file. */
struct looks {
    uint64_t lines, shared; /* shared: number of lines whose third field is also the second field of this or an earlier line */
    struct words names, seconds, thirds;
};

static int add_word(struct words *words, const struct table_line *parts, unsigned column) {
    const char *word = parts->word[column];
    return parts->count <= column ? 0 : words_add(words, words_hash(word, parts->length[column]), word, parts->length[column]) < 0;
}

static int count_lines(struct looks *looks, const struct looked_lines *lines, uint64_t first, const struct columns_form *form) {
    int failed = 0;
    for (uint64_t i = first; i < lines->count && !failed; i++, looks->lines++) {
        struct table_line parts = looked_part(&lines->line[i], form);
        failed = add_word(&looks->names, &parts, 0) || add_word(&looks->seconds, &parts, 1) || add_word(&looks->thirds, &parts, 2);
        if (parts.count > 2)
            looks->shared += words_find(&looks->seconds, words_hash(parts.word[2], parts.length[2]), parts.word[2], parts.length[2]) >= 0;
    }
    return failed ? -1 : 0;
}

/* Judges lines of equal length whose third field is a number. They are ratings if a name is repeated, if the separator is not a
 * blank or tab, or if there are many lines with few distinct numbers. Otherwise, if there are many lines and some third field is
 * also a second field, they are lists of two items. In all other cases it is unclear. */
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
    looked_describe(&columns, lines, first, form);
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

enum look_kind look_for_pairs(const char *bytes, uint64_t length) {
    const struct look_keys keys = LOOK_AUTO;
    struct looked_lines lines;
    struct look look;
    enum look_kind kind = LINES_UNCLEAR;
    if (look_at_lines(&look, bytes, length, 1, LOOK_PAIRS, &keys, "")) {
        report_clear(); /* the lines cannot be read as pairs; judge() decides how to read them */
        look.form.named = 0;
        look.skip = 0;
    }
    if (look.form.named) return look.form.column[COLUMN_VALUE] == NO_COLUMN ? LINES_PAIRS : LINES_RATINGS;
    if (!looked_lines_collect(&lines, bytes + look.skip, length - look.skip, 1, 0)) kind = judge(&lines, &look, 0);
    looked_lines_release(&lines);
    return kind;
}

/* ---- text ---- */

/* Returns 1 if there are at least OWN_LEAST lines and each begins with a number that no other line begins with. */
static int begin_with_numbers(const struct looked_lines *lines) {
    struct columns_form form = COLUMNS_PLAIN;
    struct words names = {0};
    int all = lines->count >= OWN_LEAST;
    for (uint64_t i = 0; i < lines->count && all; i++) {
        struct table_line parts = looked_part(&lines->line[i], &form);
        double number;
        all = parts.count > 1 && !columns_number(&form, parts.word[0], parts.length[0], &number) && !add_word(&names, &parts, 0);
    }
    all = all && names.size == lines->count;
    words_release(&names);
    return all;
}

/* Returns 1 if there are at least OWN_LEAST lines and each consists of two numbers. */
static int are_two_numbers(const struct looked_lines *lines) {
    struct columns_form form = COLUMNS_PLAIN;
    struct looked_columns columns;
    looked_describe(&columns, lines, 0, &form);
    return lines->count >= OWN_LEAST && columns.least == 2 && columns.most == 2 && columns.column[0].numbers == lines->count &&
           columns.column[1].numbers == lines->count;
}

static int are_json_lines(const struct looked_lines *lines) {
    uint64_t i = 0;
    while (i < lines->count && *lines->line[i].at == '{' && lines->line[i].end[-1] == '}') i++;
    return lines->count && i == lines->count;
}

const char *look_for_rows(const char *bytes, uint64_t length, enum look_rows rows) {
    struct looked_lines lines;
    enum look_kind kind = look_for_pairs(bytes, length);
    const char *like = kind == LINES_RATINGS ? "look like ratings (list, item, rating): corpus.format = pairs reads them as such" : NULL;
    if (rows != LOOK_TEXT) return like;
    if (!looked_lines_collect(&lines, bytes, length, 1, 0)) {
        if (are_json_lines(&lines))
            like = "are JSON, which is read as words with its braces and quotes: write the text alone into a file first";
        else if (!like && kind == LINES_PAIRS && lines.count >= OWN_LEAST)
            like = "look like a table: corpus.format = pairs reads list, item[, rating]";
        else if (!like && are_two_numbers(&lines))
            like = "are two numbers each: corpus.format = graph reads edges, pairs reads list and item";
        else if (!like && begin_with_numbers(&lines))
            like = "begin with a number of their own, as lists do that have one for a name: corpus.format = lists reads name and items";
    }
    looked_lines_release(&lines);
    return like;
}
