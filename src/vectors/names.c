#include "names.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/first_bytes.h"
#include "corpus/look.h"
#include "known.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int field_file_open(struct field_file *file, const char *path, enum look_rows rows) {
    const struct look_keys keys = LOOK_AUTO;
    uint64_t length = 0;
    *file = (struct field_file){.path = path, .text = file_read_given(path, mem_available(), &length)};
    if (!file->text || kind_check(path, file->text, length < FIRST_BYTES ? length : FIRST_BYTES, 0)) return -1;
    for (uint64_t i = 0; i < length; i++) /* a lone CR ends a line, too */
        if (file->text[i] == '\r' && (i + 1 == length || file->text[i + 1] != '\n')) file->text[i] = '\n';
    char *at = file->text + text_mark(file->text, length), *end = file->text + length;
    if (look_at_lines(&file->look, at, (uint64_t)(end - at), 1, rows, &keys, path)) return -1;
    if (*file->look.said) remark("%s ('%s')", file->look.said, path);
    file->cursor = (struct corpus_cursor){at + file->look.skip, end, 1};
    for (char *byte = at; byte < at + file->look.skip; byte++) file->cursor.line += *byte == '\n';
    return 0;
}

void field_file_close(struct field_file *file) {
    free(file->text);
    file->text = NULL;
}

int field_file_next(struct field_file *file) {
    do {
        file->number = file->cursor.line;
        if (!columns_next(&file->cursor, &file->look.form, &file->line)) return 0;
    } while (!file->line.count);
    file->end = (char *)file->cursor.at;
    if (file->end > file->text && file->end[-1] == '\n') file->end--;
    if (!file->line.open) return 1;
    return fail("'%s' line %" PRIu64 ": a double quote is not closed in its line, or something follows it", file->path, file->number);
}

const char *field_file_field(const struct field_file *file, enum column_meaning meaning, uint64_t *length) {
    unsigned column = file->look.form.column[meaning];
    *length = column < file->line.count && column < COLUMNS_READ ? file->line.length[column] : 0;
    return *length ? file->line.word[column] : NULL;
}

int lines_next(struct lines *lines) {
    if (lines->at == lines->end) return 0;
    char *stop = lines->at;
    while (stop < lines->end && *stop != '\n' && *stop != '\r') stop++;
    lines->line = lines->at;
    lines->stop = stop;
    if (stop < lines->end) stop += stop + 1 < lines->end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1;
    lines->at = stop;
    lines->number++;
    return 1;
}

int lines_token(struct lines *lines, struct token *token) {
    while (lines->line < lines->stop && text_is_blank(*lines->line)) lines->line++;
    token->text = lines->line;
    while (lines->line < lines->stop && !text_is_blank(*lines->line)) lines->line++;
    token->length = (uint64_t)(lines->line - token->text);
    return token->length > 0;
}

char *lines_open(struct lines *lines, const char *path) {
    uint64_t length = 0;
    char *text = file_read_given(path, mem_available(), &length);
    if (!text || kind_check(path, text, length < FIRST_BYTES ? length : FIRST_BYTES, 0)) {
        free(text);
        return NULL;
    }
    *lines = (struct lines){.at = text + text_mark(text, length), .end = text + length};
    return text;
}

void names_release(struct names *names) {
    words_release(&names->words);
    free(names->row);
    *names = (struct names){.capacity = 0};
}

int64_t names_find(const struct names *names, const char *text, uint64_t length) {
    return words_find(&names->words, words_hash(text, length), text, length);
}

int64_t names_add(struct names *names, const char *text, uint64_t length) {
    uint64_t before = names->words.size;
    if (mem_grow(&names->row, &names->capacity, before + 1, sizeof *names->row, "the names of a file")) return -1;
    int64_t number = words_add(&names->words, words_hash(text, length), text, length);
    if (names->words.size > before) names->row[before] = -1;
    return number;
}

const char *names_near(const struct words *words, uint64_t first, uint64_t end, uint64_t skip, const char *name) {
    enum { MOST = 100000 };
    uint64_t count = end - first < MOST ? end - first : MOST;
    const char **names = mem_alloc(count, sizeof *names, "the nearest name"), *near = NULL;
    if (!names) report_clear(); /* memory is short: no name is suggested */
    for (uint64_t i = 0; names && i < count; i++) names[i] = words_get(words, first + i, NULL) + skip;
    if (names) near = text_nearest(name, names, count);
    free(names);
    return near;
}

/* Copies a text in lower case. Changes only ASCII letters, so UTF-8 stays valid. */
static void copy_lower(char *to, const char *from, uint64_t length) {
    for (uint64_t i = 0; i < length; i++) to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
}

int64_t names_add_lower(struct names *names, char *text, uint64_t length) {
    copy_lower(text, text, length);
    return names_add(names, text, length);
}

void names_locate_lists(struct names *names, const struct model *model) {
    for (uint64_t i = 0; i < names->words.size; i++) {
        uint64_t length;
        const char *name = words_get(&names->words, i, &length);
        names->row[i] = run_lists_row(model, name, length);
    }
}

/* The names are few, so each word of the vocabulary is looked up among them, and the vocabulary need not be copied. */
int names_locate(struct names *names, const struct model *model, uint64_t rows) {
    uint64_t longest = 0, length;
    for (uint64_t i = 0; i < names->words.size; i++) {
        words_get(&names->words, i, &length);
        if (length > longest) longest = length;
    }
    OWNED char *lower = mem_alloc(longest, 1, "a word");
    if (!lower) return -1;
    for (uint64_t row = 0; row < rows; row++) {
        const char *word = vocab_word(&model->vocab, row, &length);
        if (length > longest) continue;
        copy_lower(lower, word, length);
        int64_t at = names_find(names, lower, length);
        if (at >= 0 && names->row[at] < 0) names->row[at] = (int64_t)row;
    }
    return 0;
}

/* Passes the labels in a field to take(): each number, if the field consists of numbers separated by blanks; otherwise the whole field, such as
 * "Neural networks". */
static int take_field(const struct token *name, const char *field, uint64_t length, labels_take *take, void *user) {
    static const struct columns_form blanks = COLUMNS_PLAIN;
    static const char *const marks[] = {"train", "val", "test", "-"}; /* of a data set's split: no labels */
    struct table_line parts;
    struct token label = {(char *)field, length};
    double value;
    int result = 0, is_label = length > 0;
    columns_part(&parts, (char *)field, (char *)field + length, &blanks, 1);
    int numbers = parts.count >= 2 && parts.count <= COLUMNS_READ;
    for (uint64_t i = 0; numbers && i < parts.count; i++) numbers = !columns_number(&blanks, parts.word[i], parts.length[i], &value);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strlen(marks[i]) == length && !memcmp(marks[i], field, length)) is_label = 0;
    if (!numbers) return is_label ? take(user, name, &label) : 0;
    for (uint64_t i = 0; i < parts.count && !result; i++) {
        label = (struct token){(char *)parts.word[i], parts.length[i]};
        result = take(user, name, &label);
    }
    return result;
}

static int take_line(const struct field_file *file, labels_take *take, void *user) {
    struct token name;
    unsigned own = file->look.form.column[COLUMN_A], only = file->look.form.named ? file->look.form.column[COLUMN_B] : NO_COLUMN;
    int result = 0;
    name.text = (char *)field_file_field(file, COLUMN_A, &name.length);
    if (file->line.count > COLUMNS_READ)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " fields; wanted a name and %d labels at most", file->path, file->number,
                    file->line.count, COLUMNS_READ - 1);
    for (unsigned c = 0; name.text && c < file->line.count && !result; c++)
        if (c != own && (only == NO_COLUMN || c == only))
            result = take_field(&name, file->line.word[c], file->line.length[c], take, user);
    return result;
}

int labels_read(const char *path, labels_take *take, void *user) {
    struct field_file file;
    int result = field_file_open(&file, path, LOOK_LABELS), more = 0;
    while (!result && (more = field_file_next(&file)) > 0) result = take_line(&file, take, user);
    field_file_close(&file);
    return result || more ? -1 : 0;
}

/* Returns the title in the current line, ended by a NUL; NULL if there is none. In a file with commas and without a header, further commas of a
 * line without quotes are part of the title: "7,Dune, revised". */
static const char *take_title(const struct field_file *file) {
    uint64_t length;
    char *title = (char *)field_file_field(file, COLUMN_B, &length);
    const struct columns_form *form = &file->look.form;
    int loose = *form->separator == ',' && !form->named && !file->line.quoted && file->line.count > 2;
    if (!title) return NULL;
    if (loose) length = (uint64_t)(file->end - title);
    while (length && token_is_white(title[length - 1])) length--;
    title[length] = 0; /* within bounds: a title is followed by a separator, a quote, a line end, or the NUL after the file */
    return title;
}

/* Exchanges the columns of ids and titles if, in the first lines, no id is a word of the run but some title is. */
static void turn_titles(struct field_file *file, const struct model *model) {
    struct columns_form *form = &file->look.form;
    uint8_t *column = form->column, own = column[COLUMN_A];
    uint64_t known[2] = {0, 0}, lines = 0;
    for (const char *at = file->cursor.at, *stop; at < file->cursor.end && lines < LOOKED_AT; at = stop + 1, lines++) {
        struct table_line line;
        stop = memchr(at, '\n', (size_t)(file->cursor.end - at));
        if (!stop) stop = file->cursor.end;
        columns_part(&line, (char *)at, (char *)stop, form, 1);
        for (int i = 0; i < 2; i++)
            known[i] +=
                column[i] < line.count && line.length[column[i]] && vocab_find(&model->vocab, line.word[column[i]], line.length[column[i]]) >= 0;
    }
    if (known[0] || !known[1]) return;
    column[COLUMN_A] = column[COLUMN_B];
    column[COLUMN_B] = own;
    form->named = 1;
    remark("titles     of '%s' are in column %u, since '%s' has the names in column %u", file->path, own + 1, model->directory, column[COLUMN_A] + 1);
}

int titles_read(struct titles *titles, const struct model *model, const char *path) {
    struct field_file file;
    uint64_t found = 0;
    int more = 0, result = field_file_open(&file, path, LOOK_TITLES);
    if (!result) turn_titles(&file, model);
    titles->text = file.text;
    titles->title = mem_zalloc(model_end(model), sizeof *titles->title, "titles");
    if (!titles->title) result = -1;
    while (!result && (more = field_file_next(&file)) > 0) {
        uint64_t length;
        const char *id = field_file_field(&file, COLUMN_A, &length);
        if (!id || file.line.count < 2)
            return fail("'%s' line %" PRIu64 ": %s; wanted an id and a title with a tab, a comma, ';', '|' or '::' between", path,
                        file.number, id ? "one field" : "its id is empty");
        int64_t row = model_named(model, id, length);
        const char *title = row >= 0 && !titles->title[row] ? take_title(&file) : NULL;
        if (title) titles->title[row] = title, found++;
    }
    if (!result && !more && !found) warn("'%s' has a title for no row of '%s': its ids are others", path, model->directory);
    return result || more ? -1 : 0;
}

void titles_release(struct titles *titles) {
    mem_free(titles->text, titles->title);
    *titles = (struct titles){NULL, NULL};
}

const char *titles_of(const struct titles *titles, uint64_t row) {
    return titles->title && titles->title[row] ? titles->title[row] : "";
}

int64_t titles_find(const struct titles *titles, const struct model *model, const char *title) {
    for (uint64_t row = 0; titles->title && row < model_end(model); row++)
        if (titles->title[row] && !strcmp(titles->title[row], title)) return (int64_t)row;
    return -1;
}

enum { FILES = 8 }; /* most files of a directory whose lines are examined */

/* The format that the files of a directory seem to have. */
struct list_form {
    enum look_kind kind;
    int named; /* 1: a header names the columns of pairs */
};

static int look_at_file(void *user, const struct corpus_block *block) {
    struct list_form *form = user;
    if (form->kind == LINES_UNCLEAR) form->kind = look_for_pairs(block->bytes + block->skip, block->length - block->skip, &form->named);
    return 0;
}

/* Keeps the run's format unless the lines clearly have the other one, pairs or lists: lines that are not pairs are read as lists. If the run's
 * lists have no names, two or three fields are items, unless a header names them. When the format changes, keys about columns are set to auto,
 * since they were meant for the old one. */
int list_form_look(struct corpus_options *reading, const char *path) {
    struct list_form form = {LINES_UNCLEAR, 0};
    if (!strcmp(path, CORPUS_INPUT))
        return fail("standard input comes once, so that nobody can look at it first: say --format=lists or --format=pairs");
    const struct corpus_options options = {.format = FORMAT_TEXT}; /* any line is valid as text */
    char *paths[] = {(char *)path};
    ENDED_BY(corpus_end) struct corpus *corpus = corpus_open(paths, 1);
    /* Any of the files may show the format. An encoded stream has no lines. */
    if (!corpus || (!corpus_stream(corpus) && corpus_look(corpus, &options, FILES, look_at_file, &form))) return -1;
    int pairs = form.kind == LINES_PAIRS || form.kind == LINES_RATINGS;
    if (form.kind == LINES_UNCLEAR || pairs == corpus_formats[reading->format].scattered) return 0;
    if (pairs && reading->format == FORMAT_LISTS && reading->look.names == NAMES_NO && !form.named) return 0;
    reading->format = pairs ? FORMAT_PAIRS : FORMAT_LISTS;
    reading->look = LOOK_AUTO;
    if (pairs)
        note("read       '%s' as pairs: list, item[, rating] on each line; --format=lists reads lines of lists", path);
    else
        note("read       '%s' as lists: a name and its items on each line; --format=pairs reads list, item[, rating]", path);
    return 0;
}

int asked_read(const char *path, const struct gathered *data, const struct corpus_options *options, asked_take *take, void *user) {
    return data ? gathered_fields(data, take, user) : fields_read_file(path, options, take, user);
}

/* The columns of a file of pairs, as its first lines are examined. */
struct columns_asked {
    const struct corpus_options *reading;
    char *columns;
};

static int look_at_columns(void *user, const struct corpus_block *block) {
    struct columns_asked *asked = user;
    struct look look;
    if (*asked->columns) return 0;
    if (look_at_lines(&look, block->bytes, block->length, 0, LOOK_PAIRS, &asked->reading->look, block->path)) return -1;
    snprintf(asked->columns, LIST_FORM_COLUMNS, "%s", look.columns);
    return 0;
}

int list_form_columns(const struct corpus_options *reading, const char *path, char columns[LIST_FORM_COLUMNS]) {
    const struct corpus_options options = {.format = FORMAT_TEXT}; /* any line is valid as text */
    char *paths[] = {(char *)path};
    struct columns_asked asked = {reading, columns};
    *columns = 0;
    if (!strcmp(path, CORPUS_INPUT) || !corpus_formats[reading->format].scattered) return 0;
    ENDED_BY(corpus_end) struct corpus *corpus = corpus_open(paths, 1);
    if (!corpus) return -1;
    return corpus_stream(corpus) ? 0 : corpus_look(corpus, &options, 1, look_at_columns, &asked);
}
