#include "features.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "known.h"
#include "list_scores.h"
#include "search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* A field of the file, which stays in memory until its column has been judged. */
struct cell {
    const char *text;
    uint64_t length;
};

/* A file of features while it is read: cells [rows x columns], of which column `name` has the items' names. */
struct reading {
    struct feature_file *to;
    struct field_file file;
    const char *words;
    struct cell *cell, header[COLUMNS_READ];
    uint64_t rows, capacity;
    unsigned columns, name;
    char *text; /* buffer for the name of a feature */
    uint64_t text_capacity;
    uint64_t *last, last_capacity; /* last: [features] 1 + the last item that has each feature */
};

/* Adds the feature "column:value" to an item, the last one that has features so far; just "value" in a file without a header. */
static int add_feature(struct reading *r, uint64_t item, unsigned column, const char *value, uint64_t length) {
    struct feature_file *to = r->to;
    struct cell before = r->header[column];
    uint64_t at = before.length ? before.length + 1 : 0;
    while (length && text_is_blank(*value)) value++, length--;
    while (length && text_is_blank(value[length - 1])) length--;
    if (!length) return 0;
    if (mem_grow(&r->text, &r->text_capacity, at + length, 1, "features")) return -1;
    if (at) memcpy(r->text, before.text, before.length), r->text[before.length] = ':';
    memcpy(r->text + at, value, length);
    uint64_t known = to->features.words.size;
    int64_t number = names_add(&to->features, r->text, at + length);
    if (number < 0 || mem_grow(&r->last, &r->last_capacity, to->features.words.size, sizeof *r->last, "features")) return -1;
    if ((uint64_t)number == known) r->last[number] = 0;
    if (r->last[number] == item + 1) return 0;
    r->last[number] = item + 1;
    if (mem_grow(&to->of, &to->capacity, to->count + 1, sizeof *to->of, "features")) return -1;
    to->of[to->count++] = (uint32_t)number;
    return 0;
}

/* Splits a text at the bytes of `between`, and adds each part as a feature. */
static int add_parts(struct reading *r, uint64_t item, unsigned column, struct cell cell, const char *between) {
    for (uint64_t at = 0, end; at < cell.length; at = end + 1) {
        for (end = at; end < cell.length && !memchr(between, cell.text[end], strlen(between));) end++;
        if (add_feature(r, item, column, cell.text + at, end - at)) return -1;
    }
    return 0;
}

/* Says what a column was taken for. */
struct judged {
    enum { IS_CATEGORY, IS_PARTS, IS_NUMBERS, IS_NAME, IS_WORDS, IS_EMPTY } kind;
    char between[3];                 /* IS_PARTS, IS_WORDS: bytes that separate values */
    double bounds[FEATURE_BINS + 1]; /* IS_NUMBERS: range i is from bounds[i] to below bounds[i + 1] */
    unsigned bins;
    struct columns_form form; /* of the numbers: with a decimal comma, or without */
    uint64_t different, others; /* others: different values that are no numbers, such as NaN; each is a feature, too */
};

/* Chooses ranges that contain about equally many of the numbers. */
static void choose_bins(struct judged *judged, double *numbers, uint64_t count) {
    qsort(numbers, count, sizeof *numbers, mem_by_double);
    judged->bounds[0] = numbers[0];
    for (unsigned i = 1; i < FEATURE_BINS; i++) {
        double bound = numbers[count * i / FEATURE_BINS];
        if (bound > judged->bounds[judged->bins]) judged->bounds[++judged->bins] = bound;
    }
    judged->bounds[++judged->bins] = numbers[count - 1];
}

/* Reads one name of a list of names that are separated by commas, and moves *at behind it. The name has no blanks around it. Returns 1; 0: the list
 * has no more names. */
static int next_name(const char **at, struct cell *name) {
    while (text_is_blank(**at) || **at == ',') ++*at;
    *name = (struct cell){*at, strcspn(*at, ",")};
    *at += name->length;
    while (name->length && text_is_blank(name->text[name->length - 1])) name->length--;
    return name->length > 0;
}

/* Returns 1 if `words` of the caller names the column, and notes which of its names does so. */
static int is_asked(struct reading *r, unsigned column) {
    struct cell name;
    const char *at = r->words ? r->words : "";
    for (uint64_t bit = 1; next_name(&at, &name); bit <<= 1) {
        if (name.length != r->header[column].length || strncasecmp(name.text, r->header[column].text, name.length)) continue;
        r->to->met |= bit;
        return 1;
    }
    return 0;
}

/* Fails if `words` names a column that no file of features has; met: bit i: a file has the column of name i. */
static int check_words(const char *words, uint64_t met) {
    struct cell name;
    for (uint64_t bit = 1; words && bit && next_name(&words, &name); bit <<= 1)
        if (!(met & bit))
            return fail("corpus.feature_words names '%.*s', and the files of features have no column of this name in a header, other "
                        "than that of names", text_shown(name.length), name.text);
    return 0;
}

/* Decides whether a column of a table has names, numbers, categories or several values a field, and refuses a column of running text. Returns 0, or
 * -1 after fail(). */
static int judge_column(struct reading *r, unsigned column, struct judged *judged) {
    struct names values = {.capacity = 0}, others = {.capacity = 0};
    struct columns_form forms[2] = {r->file.look.form, r->file.look.form};
    uint64_t filled = 0, numbers = 0, plain = 0, commas = 0, in_order = 0, parts[2] = {0, 0}, blanks = 0;
    OWNED double *number = mem_alloc(r->rows, sizeof *number, "features");
    int result = number ? 0 : -1;
    forms[1].decimal_comma = *forms[0].separator != ',';
    *judged = (struct judged){.kind = IS_CATEGORY};
    for (uint64_t row = 0; row < r->rows && !result; row++) {
        struct cell cell = r->cell[row * r->columns + column];
        if (!cell.length) continue;
        result = names_add(&values, cell.text, cell.length) < 0 ? -1 : 0;
        filled++;
        plain += !columns_number(&forms[0], cell.text, cell.length, number);
        commas += !columns_number(&forms[1], cell.text, cell.length, number);
        for (int i = 0; i < 2; i++) parts[i] += memchr(cell.text, "|;"[i], cell.length) != NULL;
        for (uint64_t i = 0; i < cell.length; i++) blanks += text_is_blank(cell.text[i]);
    }
    judged->form = forms[commas > plain];
    for (uint64_t row = 0; row < r->rows && !result; row++) {
        struct cell cell = r->cell[row * r->columns + column];
        if (cell.length && columns_number(&judged->form, cell.text, cell.length, &number[numbers]))
            result = others.words.size <= FEATURE_BINS && names_add(&others, cell.text, cell.length) < 0 ? -1 : 0;
        else if (cell.length)
            in_order += number[numbers] == number[0] + (double)row, numbers++;
    }
    judged->different = values.words.size, judged->others = others.words.size;
    names_release(&values), names_release(&others);
    int split = parts[0] >= parts[1] ? 0 : 1, several = parts[split] * 20 >= filled;
    if (result || !filled) {
        judged->kind = IS_EMPTY;
    } else if (is_asked(r, column)) {
        judged->kind = IS_WORDS, strcpy(judged->between, " \t");
    } else if (!r->header[column].length && in_order == r->rows) {
        judged->kind = IS_NAME; /* the numbers of rows, as pandas writes them */
    } else if (numbers < filled && several) {
        judged->kind = IS_PARTS, judged->between[0] = "|;"[split];
    } else if (numbers == filled || (2 * numbers > filled && judged->others <= FEATURE_BINS)) {
        if (judged->different - judged->others > FEATURE_BINS) judged->kind = IS_NUMBERS, choose_bins(judged, number, numbers);
    } else if (judged->different == filled && filled > FEATURE_BINS) {
        judged->kind = IS_NAME;
    } else if (2 * judged->different > filled && blanks > 2 * filled) {
        uint64_t length = r->header[column].length;
        result = fail("'%s': column '%.*s' is running text: %" PRIu64 " different texts of %" PRIu64 ", %.1f words each; its words become "
                      "features by corpus.feature_words = %.*s, otherwise remove the column",
                      r->file.path, text_shown(length), r->header[column].text, judged->different, filled,
                      (double)(blanks + filled) / (double)filled, text_shown(length), r->header[column].text);
    }
    return result;
}

static size_t say_judged(char *said, size_t room, size_t at, const struct reading *r, unsigned column, const struct judged *j) {
    char different[TEXT_BYTES];
    text_of_count(different, j->different);
    at = text_add(said, room, at, "%s%.*s", at ? ", " : "", text_shown(r->header[column].length), r->header[column].text);
    if (!r->header[column].length) at = text_add(said, room, at, "column %u", column + 1);
    at = text_add(said, room, at, " = ");
    switch (j->kind) {
    case IS_EMPTY:
        return text_add(said, room, at, "empty");
    case IS_NAME:
        return text_add(said, room, at, "a name, as all values differ (left out)");
    case IS_NUMBERS:
        at = text_add(said, room, at, "numbers in %u ranges", j->bins);
        return j->others ? text_add(said, room, at, " and %" PRIu64 " other value%s", j->others, text_plural(j->others)) : at;
    case IS_WORDS:
        return text_add(said, room, at, "words");
    case IS_PARTS:
        return text_add(said, room, at, "values separated by %s", j->between);
    default:
        return text_add(said, room, at, "%s values", different);
    }
}

static int add_number(struct reading *r, uint64_t item, unsigned column, struct cell cell, const struct judged *j) {
    char range[80];
    double number;
    unsigned bin = 0;
    if (columns_number(&j->form, cell.text, cell.length, &number)) return add_feature(r, item, column, cell.text, cell.length);
    while (bin + 1 < j->bins && number >= j->bounds[bin + 1]) bin++;
    snprintf(range, sizeof range, "%.15g..%.15g", j->bounds[bin], j->bounds[bin + 1]);
    return add_feature(r, item, column, range, strlen(range));
}

/* Judges the columns of a table, and adds the features of all items. A file without a header has no columns: all fields are
 * features. */
static int take_cells(struct reading *r) {
    struct judged judged[COLUMNS_READ];
    char said[LOOK_SAID * 2] = "", items[TEXT_BYTES], features[TEXT_BYTES];
    int table = r->file.look.header;
    size_t at = 0;
    for (unsigned c = 0; c < r->columns && table; c++) {
        if (c == r->name) continue;
        if (judge_column(r, c, &judged[c])) return -1;
        at = say_judged(said, sizeof said, at, r, c, &judged[c]);
    }
    struct feature_file *to = r->to;
    OWNED uint64_t *rows = mem_alloc(r->rows, sizeof *rows, "features"), *ends = NULL; /* rows: [rows] rows of the file, item after item */
    OWNED int64_t *item = mem_alloc(r->rows, sizeof *item, "features"); /* [rows] number of each row's item; -1: the row has no name */
    for (uint64_t row = 0; row < r->rows; row++) {
        struct cell name = r->cell[row * r->columns + r->name];
        if (!rows || !item || (item[row] = name.length ? names_add(&to->items, name.text, name.length) : -1) < -!name.length)
            return -1;
    }
    to->starts = mem_zalloc(to->items.words.size + 1, sizeof *to->starts, "features");
    ends = mem_zalloc(to->items.words.size + 2, sizeof *ends, "features");
    if (!to->starts || !ends) return -1;
    for (uint64_t row = 0; row < r->rows; row++)
        if (item[row] >= 0) ends[item[row] + 2]++;
    for (uint64_t i = 0; i < to->items.words.size; i++) ends[i + 2] += ends[i + 1];
    for (uint64_t row = 0; row < r->rows; row++)
        if (item[row] >= 0) rows[ends[item[row] + 1]++] = row; /* now ends[i + 1] is the end of item i's rows */
    for (uint64_t i = 0; i < to->items.words.size; i++) {
        to->starts[i] = to->count;
        for (uint64_t j = ends[i]; j < ends[i + 1]; j++)
            for (unsigned c = 0; c < r->columns; c++) {
                const struct cell *cell = &r->cell[rows[j] * r->columns + c];
                if (c == r->name || !cell->length) continue;
                int kind = table ? (int)judged[c].kind : IS_PARTS, result = 0;
                if (kind == IS_CATEGORY) result = add_feature(r, i, c, cell->text, cell->length);
                if (kind == IS_NUMBERS) result = add_number(r, i, c, *cell, &judged[c]);
                if (kind == IS_PARTS || kind == IS_WORDS)
                    result = add_parts(r, i, c, *cell, table ? judged[c].between : r->columns == 2 ? " \t" : "");
                if (result) return -1;
            }
        to->starts[i + 1] = to->count;
    }
    if (!r->to->count) return fail("'%s' has no feature of any item; wanted a name and its features on each line", r->file.path);
    if (table) remark("features   %s ('%s')", said, r->file.path);
    remark("features   %s items, %s features ('%s')", text_of_count(items, r->to->items.words.size),
           text_of_count(features, r->to->features.words.size), r->file.path);
    return 0;
}

int features_read(struct feature_file *to, const char *path, const char *words) {
    struct reading r = {.to = to, .words = words};
    *to = (struct feature_file){.count = 0};
    int more = 0, result = field_file_open(&r.file, path, LOOK_FEATURES);
    if (!result && r.file.look.header) {
        struct table_line line;
        char *at = r.file.text + text_mark(r.file.text, 3), *end = (char *)r.file.cursor.at;
        while (end > at && (end[-1] == '\n' || end[-1] == '\r')) end--;
        for (char *byte = at; byte < end; byte++)
            if (*byte == '\n') at = byte + 1; /* a line "sep=;" may precede the header */
        while (at < end && (*at == '#' || text_is_blank(*at))) at++; /* "#item,genre" */
        columns_part(&line, at, end, &r.file.look.form, 0);
        r.columns = (unsigned)r.file.look.shifted;
        for (unsigned c = 0; c < line.count && r.columns < COLUMNS_READ; c++) r.header[r.columns++] = (struct cell){line.word[c], line.length[c]};
    }
    r.name = result ? 0 : r.file.look.form.column[COLUMN_A];
    while (!result && (more = field_file_next(&r.file)) > 0) {
        const struct table_line *line = &r.file.line;
        if (!r.columns)
            r.columns = *r.file.look.form.separator == ' ' ? COLUMNS_READ
                                                           : (unsigned)(line->count < COLUMNS_READ ? line->count : COLUMNS_READ);
        if (line->count > r.columns && (r.file.look.header || line->count > COLUMNS_READ || *r.file.look.form.separator != ' '))
            result = fail("'%s' line %" PRIu64 ": %" PRIu64 " fields, wanted at most %u; many features are written as words after a tab: NAME TAB "
                          "feature feature",
                          path, r.file.number, line->count, r.columns);
        if (result || mem_grow(&r.cell, &r.capacity, (r.rows + 1) * r.columns, sizeof *r.cell, "features")) break;
        for (unsigned c = 0; c < r.columns; c++)
            r.cell[r.rows * r.columns + c] = c < line->count ? (struct cell){line->word[c], line->length[c]} : (struct cell){"", 0};
        r.rows++;
    }
    if (!result && (more || r.columns < 2 || take_cells(&r)))
        result = more || r.columns >= 2 ? -1
                 : r.rows               ? fail("'%s' has no features: its lines have one field", path)
                                        : fail("'%s' has no lines; wanted a name and its features on each", path);
    field_file_close(&r.file);
    mem_free(r.cell, r.text, r.last);
    return result;
}

void features_release(struct feature_file *file) {
    names_release(&file->items);
    names_release(&file->features);
    mem_free(file->starts, file->of);
    *file = (struct feature_file){.count = 0};
}

/* ---- the rows of features ---- */

enum {
    WIDTH = 16,      /* columns that are solved together */
    ROUNDS = 64,     /* most rounds of conjugate gradients */
    AHEAD = 24,      /* a row of features is fetched this number of parts early */
    JUDGED = 2,      /* number of blocks of columns by which the ridge is chosen */
    LEFT_OUT = 1000, /* most items that are left out while the ridge is chosen */
    ASKED = 300,     /* most lists by whose answers the length of new items' vectors is chosen */
    ASKED_LEFT_OUT = 2000, /* most lists by whose left-out items the weight of content is chosen */
    ASKED_FOLDED = 1000, /* most lists that are folded in to see whether trained items are kept */
    FEW_ITEMS = 30000, /* with more items, ASKED lists are */
    SCALED = 100,    /* number of these whose scores tell the unit of the weight */
    PLACES = 20      /* number of places of such an answer */
};
typedef float lanes __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4), may_alias)); /* some columns of a row */
static const float ridges[] = {0.1f, 0.3f, 1, 3, 10, 30, 100};
static const double KEPT = 0.98; /* share of the trained items found without content that content must find, too */
static const float weights[] = {0, 0.25f, 0.5f, 1, 2, 4, 8}; /* of content, in standard deviations of learnt scores */
enum { RIDGES = sizeof ridges / sizeof *ridges, WEIGHTS = sizeof weights / sizeof *weights };

/* The least squares problem: items x features, in compressed rows, and the trained rows less their mean. */
struct fit {
    uint64_t items, features; /* items: trained items with a feature */
    uint64_t *starts;         /* [items + 1] */
    uint32_t *of;             /* [starts[items]] number of a feature */
    float *part;              /* [starts[items]] */
    const float *rows;        /* [items x dim] */
    uint64_t *row;            /* [items] each item's row in the model */
    uint64_t each, left;      /* items each - 1, 2 each - 1, .., `left` in all, are left out while the ridge is chosen */
    uint32_t dim;
    float *solved; /* [features x dim] result */
    float *guessed; /* rows of the items that are left out, by their features: [RIDGES][left][JUDGED x WIDTH] for each ridge, of which unused
                     * columns are 0; afterwards [left][dim] for the chosen one */
    enum { JUDGE_RIDGES, GUESS, FIT } stage; /* the first two leave items out */
    int ridge, first, end; /* ridge: the best one; JUDGE_RIDGES: ridges first .. end - 1 are tried */
    _Atomic uint64_t taken;
};

static int is_left_out(const struct fit *f, uint64_t item) {
    return f->stage != FIT && (item + 1) % f->each == 0 && item / f->each < f->left;
}

static void add_scaled(float *to, const float *from, float by, uint32_t count) {
    for (uint32_t c = 0; c < count; c++) to[c] += by * from[c];
}

/* Writes X^T X p + ridge p to `out`, both [features]. */
static void apply(const struct fit *f, const lanes *p, lanes *out, float ridge) {
    for (uint64_t i = 0; i < f->features; i++) out[i] = ridge * p[i];
    for (uint64_t item = 0; item < f->items; item++) {
        lanes row = {0};
        if (is_left_out(f, item)) continue;
        for (uint64_t at = f->starts[item]; at < f->starts[item + 1]; at++) {
            __builtin_prefetch(&p[f->of[at + AHEAD < f->starts[f->items] ? at + AHEAD : at]]);
            row += f->part[at] * p[f->of[at]];
        }
        for (uint64_t at = f->starts[item]; at < f->starts[item + 1]; at++) out[f->of[at]] += f->part[at] * row;
    }
}

/* Computes the dot product of each column of a and b, [rows]. */
static void dots(const lanes *a, const lanes *b, uint64_t rows, double out[WIDTH]) {
    for (unsigned c = 0; c < WIDTH; c++) out[c] = 0;
    for (uint64_t i = 0; i < rows; i++)
        for (unsigned c = 0; c < WIDTH; c++) out[c] += (double)a[i][c] * b[i][c];
}

/* Solves columns first .. first + width - 1 for one ridge by conjugate gradients, preconditioned by the diagonal. x, r, p, q: [features], whose
 * columns from `width` on are zeros; x is the result. inverse: [features] 1 / the diagonal. */
static void solve(const struct fit *f, float ridge, uint32_t first, unsigned width, lanes *x, lanes *r, lanes *p, lanes *q, float *inverse) {
    uint64_t count = f->features;
    double now[WIDTH], begun[WIDTH], of[WIDTH], next[WIDTH],
        least = f->stage == FIT ? 1e-6 : 1e-4; /* least squared error, relative to that of zeros */
    memset(x, 0, count * sizeof *x), memset(r, 0, count * sizeof *r);
    for (uint64_t i = 0; i < count; i++) inverse[i] = ridge;
    for (uint64_t item = 0; item < f->items; item++) {
        lanes row = {0};
        memcpy(&row, f->rows + item * f->dim + first, width * sizeof(float));
        for (uint64_t at = f->starts[item]; at < f->starts[item + 1] && !is_left_out(f, item); at++)
            r[f->of[at]] += f->part[at] * row, inverse[f->of[at]] += f->part[at] * f->part[at];
    }
    for (uint64_t i = 0; i < count; i++) inverse[i] = 1 / inverse[i], q[i] = p[i] = inverse[i] * r[i];
    dots(r, q, count, now);
    memcpy(begun, now, sizeof begun);
    for (int round = 0, open = 1; round < ROUNDS && open; round++) {
        lanes step, turn;
        apply(f, p, q, ridge);
        dots(p, q, count, of);
        for (unsigned c = 0; c < WIDTH; c++) step[c] = of[c] > 0 ? (float)(now[c] / of[c]) : 0;
        for (uint64_t i = 0; i < count; i++) x[i] += step * p[i], r[i] -= step * q[i], q[i] = inverse[i] * r[i];
        dots(r, q, count, next);
        open = 0;
        for (unsigned c = 0; c < WIDTH; c++)
            turn[c] = now[c] > 0 ? (float)(next[c] / now[c]) : 0, now[c] = next[c], open |= now[c] > least * begun[c];
        for (uint64_t i = 0; i < count; i++) p[i] = q[i] + turn * p[i];
    }
}

/* Solves blocks of columns: of the chosen ridge all, or of each ridge the first ones. */
static int solve_blocks(void *context, unsigned worker) {
    struct fit *f = context;
    uint64_t blocks = (f->dim + WIDTH - 1) / WIDTH, judged = blocks < JUDGED ? blocks : JUDGED, count = f->features, at, end;
    int each = f->stage == JUDGE_RIDGES;
    OWNED lanes *x = mem_aligned(count, 4 * sizeof *x + sizeof(float), "the rows of features");
    if (!x) return -1;
    while (pool_take(&f->taken, each ? judged * (uint64_t)(f->end - f->first) : blocks, 1, &at, &end)) {
        uint64_t block = each ? at % judged : at, ridge = (uint64_t)(each ? f->first + (int)(at / judged) : f->ridge);
        uint32_t first = (uint32_t)block * WIDTH;
        unsigned width = f->dim - first < WIDTH ? f->dim - first : WIDTH;
        solve(f, ridges[ridge], first, width, x, x + count, x + 2 * count, x + 3 * count, (float *)(x + 4 * count));
        for (uint64_t i = 0; i < count && f->stage == FIT; i++) memcpy(f->solved + i * f->dim + first, &x[i], width * sizeof(float));
        for (uint64_t i = 0; i < f->left && f->stage != FIT; i++) {
            uint64_t item = (i + 1) * f->each - 1;
            lanes row = {0};
            for (uint64_t j = f->starts[item]; j < f->starts[item + 1]; j++) row += f->part[j] * x[f->of[j]];
            memcpy(f->guessed + (each ? (ridge * f->left + i) * JUDGED * WIDTH : i * f->dim) + first, &row, width * sizeof(float));
        }
    }
    return 0;
}

/* Finds the features of an item that trained items have, too, and writes the parts of these features, scaled to length 1 together. Returns the
 * number of these features. */
static uint64_t parts_of(const struct feature_file *file, const float *idf, uint64_t item, uint32_t *of, float *part) {
    uint64_t count = 0;
    double squares = 0;
    for (uint64_t at = file->starts[item]; at < file->starts[item + 1]; at++) {
        float weight = idf[file->of[at]];
        if (!(weight > 0)) continue;
        of[count] = file->of[at];
        part[count++] = weight;
        squares += (double)weight * weight;
    }
    for (uint64_t i = 0; i < count; i++) part[i] /= (float)sqrt(squares);
    return count;
}

/* Sums `count` features' rows onto the mean. */
static void sum_parts(const struct fit *f, const float *mean, const uint32_t *of, const float *part, uint64_t count, float *out) {
    memcpy(out, mean, f->dim * sizeof *out);
    for (uint64_t i = 0; i < count; i++) add_scaled(out, f->solved + of[i] * (uint64_t)f->dim, part[i], f->dim);
}

/* Adds name number `at` of `names` to `extra`, with the row that sum_parts() makes. Returns 0, or -1 after fail(). */
static int add_summed(const struct fit *f, struct model_extra *extra, const struct words *names, uint64_t at, const float *mean, const uint32_t *of,
                      const float *part, uint64_t count) {
    uint64_t length;
    const char *name = words_get(names, at, &length);
    if (mem_grow(&extra->rows, &extra->capacity, (extra->names.size + 1) * f->dim, sizeof *extra->rows, "new items and features")) return -1;
    sum_parts(f, mean, of, part, count, extra->rows + extra->names.size * f->dim);
    return words_add(&extra->names, words_hash(name, length), name, length) < 0 ? -1 : 0;
}

/* Ranks the trained rows of all left-out items by their cosine with the row that features guess for one of them. Returns the mean, over these
 * items, of 1 / the rank of the item's own row. */
static double rank_guesses(const struct fit *f, const float *guessed) {
    unsigned columns = JUDGED * WIDTH < f->dim ? JUDGED * WIDTH : f->dim;
    double sum = 0;
    for (uint64_t i = 0; i < f->left; i++) {
        double own = 0;
        uint64_t above = 0;
        for (uint64_t turn = 0; turn <= f->left; turn++) { /* its own row first */
            uint64_t j = turn ? turn - 1 : i;
            const float *row = f->rows + ((j + 1) * f->each - 1) * f->dim, *guess = guessed + i * JUDGED * WIDTH;
            double product = 0, squares = 1e-30;
            for (unsigned c = 0; c < columns; c++) product += (double)row[c] * guess[c], squares += (double)row[c] * row[c];
            product /= sqrt(squares);
            if (!turn)
                own = product;
            else
                above += j != i && product >= own;
        }
        sum += 1 / (1.0 + (double)above);
    }
    return sum / (double)f->left;
}

/* Sets f->ridge to the one whose guesses are best, and says how good they are. Small ridges, which take many rounds, are tried only if the smallest
 * of the others is best. Returns 1 if guesses are better than by chance, 0 if not; -1 after fail(). */
static int choose_ridge(struct fit *f, const char *path, struct pool *pool) {
    double best = -1, chance = 0;
    for (f->end = RIDGES, f->first = f->ridge = RIDGES / 2; f->end && (f->ridge == f->end || f->end == RIDGES); f->end = f->first, f->first = 0) {
        atomic_store(&f->taken, 0);
        if (pool_run(pool, solve_blocks, f)) return -1;
        for (int i = f->end; i-- > f->first;) {
            double rank = rank_guesses(f, f->guessed + (uint64_t)i * f->left * JUDGED * WIDTH);
            if (rank >= best) best = rank, f->ridge = i;
        }
    }
    for (uint64_t i = 1; i <= f->left; i++) chance += 1 / (double)i / (double)f->left;
    int tells = best >= chance + 4 * 1.28 / (double)f->left;
    if (tells) /* by chance the mean has a standard deviation of 1.28 / left */
        remark("features   find the row of an item that was left out among %" PRIu64 ": mean reciprocal rank %.3f, by chance %.3f (ridge %g)",
               f->left, best, chance, (double)ridges[f->ridge]);
    else
        warn("the features of '%s' hardly tell anything about trained items (mean reciprocal rank %.3f, by chance %.3f): answers with new items are "
             "nearly random",
             path, best, chance);
    return tells;
}

/* Some lists of the training data, evenly spaced, or, in a run whose lists have no rows, items that take their part. */
struct asked_lists {
    uint64_t count, *starts, *codes; /* [count + 1], and the items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1], rising */
    uint32_t *banned;                /* the same as `codes` */
    float *queries;                  /* [count x dim] */
};

static void asked_lists_release(struct asked_lists *asked) {
    mem_free(asked->starts, asked->codes, asked->banned, asked->queries);
}

static int asked_lists_read(struct asked_lists *asked, const struct model *model, enum model_view view, uint64_t most, struct pool *pool) {
    uint64_t items = model_items(model), lists = model->own > 0 ? model->vocab.lists : 0, all = lists ? lists : items, capacity = 0, banned = 0;
    struct run_lists trained = {.first = 0};
    *asked = (struct asked_lists){.count = all < most ? all : most};
    asked->starts = mem_zalloc(asked->count + 1, sizeof *asked->starts, "lists");
    asked->queries = mem_aligned(asked->count, model->dim * sizeof *asked->queries, "lists");
    int result = !asked->starts || !asked->queries || (lists && run_lists_open(&trained, model, pool)) ? -1 : 0;
    for (uint64_t i = 0; i < asked->count && !result; i++) {
        uint64_t number = i * all / asked->count, list = lists ? model->rows - lists + number : number, start = asked->starts[i], end = start;
        result = model_row(model, lists ? VIEW_TARGET : view, list, 0, asked->queries + i * model->dim);
        if (!result && lists) result = run_lists_items(&trained, (int64_t)list, &asked->codes, &end, &capacity);
        if (!lists && !result && !(result = mem_grow(&asked->codes, &capacity, end + 1, sizeof *asked->codes, "lists"))) asked->codes[end++] = list;
        if (result || mem_grow(&asked->banned, &banned, end + 1, sizeof *asked->banned, "lists")) result = -1;
        for (uint64_t j = start; j < end && !result; j++) asked->banned[j] = (uint32_t)asked->codes[j];
        if (!result) asked->starts[i + 1] = start + search_distinct(asked->banned + start, end - start);
        for (uint64_t j = start; j < asked->starts[i + 1] && !result; j++) asked->codes[j] = asked->banned[j];
    }
    run_lists_close(&trained);
    return result;
}

/* ---- content ---- */

/* Builds the graph of items and features. number: [items of the file] number of each item among the trained items and, after them, the new ones; -1:
 * none of its features is known. */
static int build_content(struct model_content *content, const struct feature_file *file, const float *idf, const int64_t *number, uint64_t items,
                         uint32_t *of, float *part) {
    uint64_t nodes = items + file->features.words.size;
    *content = (struct model_content){.items = items, .features = file->features.words.size, .longer = 1};
    content->starts = mem_zalloc(nodes + 2, sizeof *content->starts, "features");
    content->of = mem_alloc(file->count, 2 * sizeof *content->of, "features");
    content->part = mem_alloc(file->count, 2 * sizeof *content->part, "features");
    if (!content->starts || !content->of || !content->part) return -1;
    for (int fill = 0; fill < 2; fill++) { /* counts the arcs of each node first */
        for (uint64_t i = 0; i < file->items.words.size; i++)
            for (uint64_t j = 0, count = number[i] < 0 ? 0 : parts_of(file, idf, i, of, part); j < count; j++)
                for (int side = 0; side < 2; side++) {
                    uint64_t from = side ? items + of[j] : (uint64_t)number[i], *at = &content->starts[from + 2 - (uint64_t)fill];
                    if (fill) content->of[*at] = side ? (uint32_t)number[i] : of[j], content->part[*at] = part[j];
                    ++*at;
                }
        for (uint64_t node = 0; node < nodes && !fill; node++) content->starts[node + 2] += content->starts[node + 1];
    }
    return 0;
}

/* Returns the number of a row among trained items and, after them, new ones; content->items or more: the row is neither. */
static uint64_t content_number(const struct model *model, uint64_t row) {
    uint64_t items = model_items(model);
    return row < items ? row : row >= model->rows ? row - model->rows + items : model->content.items;
}

/* Computes P . X for each item (features.h), in room[items + features], which is all zeros before. Returns sqrt |P|; 0 if the list's items have no
 * features. */
static float sum_content(const struct model *model, const uint64_t *codes, uint64_t count, float *room) {
    const struct model_content *c = &model->content;
    double squares = 0;
    for (int pass = 0; pass < 2; pass++) /* the list's features, then the items that have them */
        for (uint64_t i = 0; i < count; i++) {
            uint64_t number = codes[i] < model_end(model) ? content_number(model, codes[i]) : c->items;
            if (number >= c->items) continue;
            for (uint64_t at = c->starts[number]; at < c->starts[number + 1]; at++) {
                float *list = &room[c->items + c->of[at]];
                if (!pass) *list += c->part[at];
                if (!pass || !(*list > 0)) continue;
                squares += (double)*list * *list;
                for (uint64_t j = c->starts[c->items + c->of[at]]; j < c->starts[c->items + c->of[at] + 1]; j++) room[c->of[j]] += *list * c->part[j];
                *list = 0;
            }
        }
    return (float)sqrt(sqrt(squares));
}

struct scored {
    float score;
    uint32_t id;
};

static int by_score(const void *a, const void *b) {
    const struct scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->id > y->id) - (x->id < y->id);
}

static double dot_of(const float *a, const float *b, uint32_t dim) {
    lanes sums = {0};
    double sum = 0;
    uint32_t c = 0;
    for (; c + WIDTH <= dim; c += WIDTH) sums += *(const lanes *)(a + c) * *(const lanes *)(b + c);
    for (; c < dim; c++) sum += (double)a[c] * b[c];
    for (uint32_t i = 0; i < WIDTH; i++) sum += (double)sums[i];
    return sum;
}

/* Moves the element at the root of a heap, whose root is the last by_score(), to its place. */
static void sift(struct scored *heap, uint64_t count, uint64_t at) {
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && by_score(&heap[child], &heap[child + 1]) < 0) child++;
        if (by_score(&heap[at], &heap[child]) >= 0) return;
        struct scored moved = heap[at];
        heap[at] = heap[child], heap[child] = moved;
    }
}

/* Adds content to the scores of the answers to question `at`. room: [items + features] scratch; all zeros when called and when it returns. Returns 0,
 * or -1 after fail(). */
static int mix(const struct features_mixed *m, uint64_t at, float *room) {
    const struct model *model = m->model;
    const struct search *search = m->search;
    const struct search_block *block = m->block;
    const uint32_t *rows = m->rows, k = m->k;
    const struct model_content *c = &model->content;
    const float *query = block->queries + at * search->dim;
    uint64_t items = model_items(model);
    uint32_t found = 0, *ids = block->ids + at * k;
    float *scores = block->scores + at * k, most = 0, divisor = sum_content(model, m->codes + m->starts[at], m->ends[at] - m->starts[at], room);
    double length = search->metric == METRIC_COSINE ? sqrt(dot_of(query, query, search->dim)) : 1;
    if (!(divisor > 0)) return 0;
    while (found < k && ids[found] != DRAW_NONE) found++;
    OWNED struct scored *best = mem_alloc(found, sizeof *best, "answers"); /* a heap */
    for (uint64_t number = 0; number < c->items; number++) room[number] *= c->weight / divisor * (number < items ? 1 : c->longer);
    for (uint32_t i = 0; i < found && best; i++) {
        float *content = &room[content_number(model, rows ? rows[ids[i]] : ids[i])];
        best[i] = (struct scored){scores[i] + *content, ids[i]};
        *content = 0; /* it is among the best already */
    }
    for (uint64_t i = found; i && best; i--) sift(best, found, i - 1);
    for (uint64_t number = 0; number < c->items; number++) most = room[number] > most ? room[number] : most;
    /* No other item has a higher learnt score than the last item found, so only content can bring it among the best. Items with much content are
     * tried first: if they get among the best, items with little content need not be scored. */
    for (float over = most / 4; found == k && best && most > 0 && scores[k - 1] + most >= best->score;
         most = over, over = over > 1e-6f ? over / 4 : 0)
        for (uint64_t number = 0; number < c->items; number++) {
            if (!(room[number] > over) || room[number] > most || scores[k - 1] + room[number] < best->score) continue;
            uint32_t row = (uint32_t)(number < items ? number : model->rows + number - items);
            const uint32_t *place = rows ? bsearch(&row, rows, search->rows, sizeof *rows, mem_by_id) : number < search->rows ? &row : NULL;
            uint32_t id = !place ? 0 : rows ? (uint32_t)(place - rows) : row;
            uint64_t banned = block->banned ? block->banned_starts[at + 1] - block->banned_starts[at] : 0;
            if (!place || (banned && bsearch(&id, block->banned + block->banned_starts[at], banned, sizeof id, mem_by_id))) continue;
            double score = dot_of(query, search->base + (uint64_t)id * search->dim, search->dim) / (length > 0 ? length : 1);
            struct scored other = {(float)score + room[number], id};
            if (by_score(&other, best) < 0) *best = other, sift(best, found, 0);
        }
    memset(room, 0, c->items * sizeof *room);
    if (found && best) qsort(best, found, sizeof *best, by_score);
    for (uint32_t i = 0; i < found && best; i++) ids[i] = best[i].id, scores[i] = best[i].score;
    return best ? 0 : -1;
}

static int mix_some(void *context, unsigned worker) {
    struct features_mixed *m = context;
    uint64_t at, end;
    OWNED float *room = mem_zalloc(m->model->content.items + m->model->content.features, sizeof *room, "features of lists");
    while (room && pool_take(&m->taken, m->block->filled, 1, &at, &end))
        if (mix(m, at, room)) return -1;
    return room ? 0 : -1;
}

int features_mix(struct features_mixed *mixed, struct pool *pool) {
    atomic_store(&mixed->taken, 0);
    return mixed->model->content.weight > 0 ? pool_run(pool, mix_some, mixed) : 0;
}

/* The choice of content's weight. */
struct weighing {
    const struct model *model;
    const struct fit *fit;
    const struct asked_lists *asked;
    float scale;     /* standard deviation of learnt scores */
    float *recall;   /* [asked->count][WEIGHTS] share of a list's left-out items that are among the first PLACES; -1: the list has none */
    _Atomic uint64_t taken;
};

/* Scores all left-out items for a list by the rows that features guess, and finds where the list's own ones are with each weight of content. */
static int weigh_lists(void *context, unsigned worker) {
    struct weighing *w = context;
    const struct fit *f = w->fit;
    const struct model_content *c = &w->model->content;
    uint64_t left = f->left, at, end;
    OWNED float *room = mem_zalloc(c->items + c->features, sizeof *room, "features of lists");
    OWNED float *scores = mem_alloc(left, 2 * sizeof *scores, "items left out");
    OWNED unsigned char *own = mem_alloc(left, 1, "items left out");
    if (!room || !scores || !own) return -1;
    while (pool_take(&w->taken, w->asked->count, 1, &at, &end)) {
        const float *query = w->asked->queries + at * f->dim;
        const uint64_t *codes = w->asked->codes + w->asked->starts[at], count = w->asked->starts[at + 1] - w->asked->starts[at];
        uint64_t owned = 0;
        float divisor = sum_content(w->model, codes, count, room);
        for (uint64_t i = 0; i < left; i++) {
            uint64_t row = f->row[(i + 1) * f->each - 1];
            own[i] = bsearch(&row, codes, count, sizeof row, mem_by_number) != NULL;
            owned += own[i];
            scores[i] = (float)dot_of(query, f->guessed + i * f->dim, f->dim);
            scores[left + i] = divisor > 0 ? (room[row] - (float)own[i]) / divisor : 0; /* an item's own parts have length 1 */
        }
        memset(room, 0, c->items * sizeof *room);
        for (int weight = 0; weight < WEIGHTS; weight++) {
            float by = weights[weight] * w->scale, hits = 0;
            for (uint64_t i = 0; i < left; i++) {
                uint64_t above = 0;
                for (uint64_t j = 0; j < left && own[i] && above <= PLACES; j++)
                    above += j != i && scores[j] + by * scores[left + j] >= scores[i] + by * scores[left + i];
                hits += own[i] && above < PLACES;
            }
            w->recall[at * WEIGHTS + (uint64_t)weight] = owned ? hits / (float)(owned < PLACES ? owned : PLACES) : -1;
        }
    }
    return 0;
}

/* Sets content.weight to the weight of the greatest gain that keeps trained items, or to 0. Each fifth item is taken out of some lists, and the other
 * items are folded in; a weight keeps trained items if it finds nearly as many of those taken out as learnt scores do. Since trained rows know these
 * lists, learnt scores look better here than they are; if they find more than half, nothing can be told, and the weight is 0. Returns 0, or -1 after
 * fail(). */
static int keep_trained(struct model *model, enum model_view view, int unit, double gain[WEIGHTS], float scale, struct pool *pool) {
    ENDED_BY(asked_lists_release) struct asked_lists asked = {.count = 0};
    struct fold_in fold = {.model = NULL};
    struct search old = {.rows = 0};
    if (asked_lists_read(&asked, model, view, model_items(model) > FEW_ITEMS ? ASKED : ASKED_FOLDED, pool)) return -1;
    uint64_t count = asked.count, places = count * PLACES, kept = 0, out = 0, hits = 0, found = 0;
    OWNED uint64_t *starts = mem_zalloc(count + 1, 2 * sizeof *starts, "lists");
    OWNED uint32_t *taken = mem_alloc(asked.starts[count] + 1, sizeof *taken, "lists"), *ids = mem_alloc(places, 2 * sizeof *ids, "lists");
    OWNED float *scores = mem_alloc(places, 2 * sizeof *scores, "lists");
    OWNED struct fold_list *lists = mem_alloc(count, sizeof *lists, "lists");
    uint64_t *outs = starts ? starts + count + 1 : NULL; /* taken[outs[i]] .. taken[outs[i + 1] - 1]: taken out of list i */
    int result = starts && taken && ids && scores && lists ? 0 : -1, best;
    for (uint64_t i = 0; i < count && !result; i++) {
        lists[i] = (struct fold_list){asked.codes + kept, kept, asked.queries + i * model->dim};
        for (uint64_t at = asked.starts[i]; at < asked.starts[i + 1]; at++)
            if ((at - asked.starts[i]) % 5 == 4)
                taken[out++] = asked.banned[at];
            else
                asked.banned[kept] = asked.banned[at], asked.codes[kept++] = asked.codes[at];
        lists[i].count = kept - lists[i].count;
        starts[i + 1] = kept, outs[i + 1] = out;
    }
    struct search_block block = {.queries = asked.queries, .filled = count, .banned_starts = starts, .banned = asked.banned, .ids = ids,
                                 .scores = scores};
    struct features_mixed mixed = {.model = model, .search = &old, .codes = asked.codes, .starts = starts, .ends = starts + 1, .block = &block,
                                   .k = PLACES};
    model->content.weight = 0;
    if (result || search_open(&old, model, view, unit ? METRIC_COSINE : METRIC_DOT, model_items(model), NULL) ||
        fold_in_open(&fold, model, old.ops, old.backend, pool_threads(pool)) || fold_in_solve(&fold, lists, count) ||
        search_top(&old, asked.queries, count, PLACES, starts, asked.banned, ids + places, scores + places))
        result = -1;
    do {
        best = 0;
        memcpy(ids, ids + places, result ? 0 : places * sizeof *ids), memcpy(scores, scores + places, result ? 0 : places * sizeof *scores);
        if (!result) result = features_mix(&mixed, pool);
        found = 0;
        for (uint64_t i = 0; i < places && !result; i++) {
            const uint32_t *own = taken + outs[i / PLACES];
            found += outs[i / PLACES + 1] > outs[i / PLACES] &&
                     bsearch(&ids[i], own, outs[i / PLACES + 1] - outs[i / PLACES], sizeof *own, mem_by_id) != NULL;
        }
        if (!(model->content.weight > 0) && 2 * (hits = found) > out) break;
        if (model->content.weight > 0 && (double)found >= KEPT * (double)hits) break;
        for (int weight = 1; weight < WEIGHTS; weight++)
            if (gain[weight] > gain[best]) best = weight;
        model->content.weight = weights[best] * scale;
        gain[best] = 0;
    } while (best && !result);
    fold_in_close(&fold);
    search_close(&old);
    return result;
}

/* Chooses the weight of content with which the most left-out items are found. It is 0 if no weight finds three standard errors more than 0 does.
 * Queries are scaled to length 1 if cosines are compared, and the mean is added to the guessed rows. Says what it chose. Returns 0, or -1 after
 * fail(). */
static int choose_content(struct model *model, struct fit *f, enum model_view view, int unit, const float *mean, struct pool *pool) {
    ENDED_BY(asked_lists_release) struct asked_lists asked = {.count = 0};
    struct weighing w = {.model = model, .fit = f, .asked = &asked};
    if (asked_lists_read(&asked, model, view, ASKED_LEFT_OUT, pool)) return -1;
    OWNED float *recall = w.recall = mem_alloc(asked.count, WEIGHTS * sizeof *recall, "lists");
    double sums[2] = {0, 0}, scored = 1e-30, gain[WEIGHTS] = {0}, found[WEIGHTS] = {0};
    if (!recall) return -1;
    for (uint64_t i = 0; i < asked.count && unit; i++) model_make_unit(asked.queries + i * f->dim, f->dim);
    for (uint64_t i = 0; i < f->left; i++) add_scaled(f->guessed + i * f->dim, mean, 1, f->dim);
    for (uint64_t i = 0; i < asked.count; i += asked.count / SCALED + 1)
        for (uint64_t j = 0; j < f->left; j++, scored++) {
            double score = dot_of(asked.queries + i * f->dim, f->guessed + j * f->dim, f->dim);
            sums[0] += score, sums[1] += score * score;
        }
    w.scale = (float)sqrt(fmax(0, sums[1] / scored - sums[0] / scored * (sums[0] / scored)));
    if (pool_run(pool, weigh_lists, &w)) return -1;
    for (int weight = 0; weight < WEIGHTS; weight++) {
        double more = 0, squares = 0, lists = 1e-30;
        for (uint64_t i = 0; i < asked.count; i++) {
            const float *r = recall + i * WEIGHTS;
            double difference = (double)r[weight] - r[0];
            if (*r < 0) continue;
            more += difference, squares += difference * difference, lists++, found[weight] += r[weight];
        }
        if (more > 0 && more * more >= 4 * squares) gain[weight] = more;
        found[weight] /= lists;
    }
    if (keep_trained(model, view, unit, gain, w.scale, pool)) return -1;
    for (int weight = 1; weight < WEIGHTS; weight++)
        if (model->content.weight == weights[weight] * w.scale && w.scale > 0)
            remark("features   what items have in common with a list's items counts %.3g beside learnt scores: left-out items have recall@%d %.3f "
                   "among each other (%.3f without)", (double)model->content.weight, PLACES, found[weight], found[0]);
    return 0;
}

/* Chooses *factor, by which new items' scores are to be multiplied so that new items get the share `share` of the first places of the answers for
 * trained lists. A list's own items do not count. In a run whose lists have no rows, items take the part of lists. A factor brings no
 * item to a list for which it scores below 0, as nearly all do in small shops, where lists keep away from the mean of all items. If no factor reaches
 * the share, that mean is taken out of the vectors, which leaves the order of new items for each list. mean: NULL: it stays, and the default share is
 * a third if features tell nothing. Returns 0, or -1 after fail(). */
static int choose_length(struct model *model, enum model_view view, int unit, double share, const float *mean, struct pool *pool,
                         float *factor) {
    ENDED_BY(asked_lists_release) struct asked_lists asked = {.count = 0};
    uint64_t ratios = 0, items = model_items(model), added = model->added.names.size, values = added * model->dim;
    enum search_metric metric = unit ? METRIC_COSINE : METRIC_DOT;
    struct search old = {.rows = 0}, new = {.rows = 0};
    if (asked_lists_read(&asked, model, view, ASKED, pool)) return -1;
    OWNED uint32_t *ids = mem_alloc(asked.count, PLACES * sizeof *ids, "new items"), *rows = mem_alloc(added, sizeof *rows, "new items");
    OWNED float *best = mem_alloc(asked.count, 3 * PLACES * sizeof *best, "new items");
    float *nearest = best + asked.count * PLACES, *ratio = best + 2 * asked.count * PLACES;
    struct search_block block = {.queries = asked.queries, .filled = asked.count, .banned_starts = asked.starts, .banned = asked.banned, .ids = ids,
                                 .scores = best};
    struct features_mixed mixed = {.model = model, .search = &old, .codes = asked.codes, .starts = asked.starts, .ends = asked.starts + 1,
                                   .block = &block, .k = PLACES};
    int result = !ids || !rows || !best || search_open(&old, model, view, metric, items, NULL) ||
                         search_top(&old, asked.queries, asked.count, PLACES, asked.starts, asked.banned, ids, best) ||
                         features_mix(&mixed, pool) ? -1 : 0;
    for (uint64_t i = 0; i < added && !result; i++) rows[i] = (uint32_t)(model->rows + i);
    block.scores = nearest, block.banned = NULL, mixed.search = &new, mixed.rows = rows;
    double of_all = (double)added / (double)(items + added);
    if (share < 0) share = fmin(model->content.weight > 0 ? FEATURES_SHARE_CONTENT : mean ? FEATURES_SHARE : FEATURES_SHARE / 3, of_all);
    uint64_t wanted = (uint64_t)(share * (double)asked.count * PLACES);
    for (int less = 0; less < (mean ? 2 : 1) && !result && ratios <= wanted; less++) { /* less: 1: without the mean */
        for (uint64_t i = 0; i < added && less; i++) add_scaled(model->added.rows + i * model->dim, mean, -1, model->dim);
        float *base = mem_aligned(values, sizeof *base, "new items"); /* `new` frees it */
        if (base) memcpy(base, model->added.rows, values * sizeof *base);
        search_close(&new);
        if (search_over(&new, base, added, model->dim, metric, NULL) ||
            search_top(&new, asked.queries, asked.count, PLACES, NULL, NULL, ids, nearest) || features_mix(&mixed, pool))
            result = -1;
        ratios = 0;
        for (uint64_t i = 0; i < asked.count * PLACES && !result; i++) { /* a list whose items all score below 0 is not counted */
            float last = best[i / PLACES * PLACES + PLACES - 1];
            if (last > 0 && nearest[i] > 0) ratio[ratios++] = last / nearest[i];
        }
    }
    if (ratios) qsort(ratio, ratios, sizeof *ratio, mem_by_float), *factor = ratio[wanted < ratios ? wanted : ratios - 1];
    search_close(&old), search_close(&new);
    return result;
}

/* Fits the features of a file to the rows of items or, with lists = 1, of lists, and adds the new ones and the features to the
 * model. */
static int fit_file(struct model *model, const struct features_asked *asked, int lists, enum model_view view, int unit,
                    unsigned threads, uint64_t *met) {
    const char *path = lists ? asked->lists : asked->path, *what = lists ? "lists" : "items";
    struct feature_file file;
    struct fit f = {.dim = model->dim};
    struct model_extra *added = lists ? &model->added_lists : &model->added, *features = &model->features;
    struct pool *pool = NULL;
    float *idf = NULL, *mean = NULL, *rows = NULL, *part = NULL;
    uint32_t *of = NULL;
    int64_t *number = NULL; /* build_content() */
    uint64_t first = lists ? model_items(model) : 0, items = lists ? model->vocab.lists : model_items(model), known = 0,
             without = 0, most = 1, new = 0;
    int tells = 0, result = features_read(&file, path, asked->words);
    *met |= file.met;
    if (!result && model_end(model) + file.items.words.size > WORDS_MOST) result = fail("'%s' has too many %s", path, what);
    for (uint64_t i = 0; i < file.items.words.size && !result; i++) {
        uint64_t length;
        const char *name = words_get(&file.items.words, i, &length);
        int64_t row = lists ? vocab_find_list(&model->vocab, name, length) : vocab_find(&model->vocab, name, length);
        file.items.row[i] = row >= 0 && (uint64_t)row >= first && (uint64_t)row < first + items ? row : -1;
        known += file.items.row[i] >= 0 && file.starts[i + 1] > file.starts[i];
        if (file.starts[i + 1] - file.starts[i] > most) most = file.starts[i + 1] - file.starts[i];
    }
    if (!result && known < 20)
        result = fail("'%s' has features of %" PRIu64 " %s that '%s' was trained on; at least 20 are needed to learn what features mean, and its "
                      "%s are named as in the training data",
                      path, known, what, model->directory, what);
    f.features = result ? 0 : file.features.words.size;
    if (!result) {
        idf = mem_zalloc(f.features, sizeof *idf, "features");
        mean = mem_zalloc(f.dim, sizeof *mean, "features");
        of = mem_alloc(most, sizeof *of, "features");
        part = mem_alloc(most, sizeof *part, "features");
        f.starts = mem_zalloc(known + 1, sizeof *f.starts, "features");
        f.row = mem_alloc(known, sizeof *f.row, "features");
        number = mem_alloc(file.items.words.size, sizeof *number, "features");
        f.of = mem_alloc(file.count, sizeof *f.of, "features");
        f.part = mem_alloc(file.count, sizeof *f.part, "features");
        rows = mem_alloc(known, f.dim * sizeof *rows, "the rows of items");
        f.solved = mem_zalloc(f.features, f.dim * sizeof *f.solved, "the rows of features");
        pool = pool_open(threads);
        if (!idf || !mean || !of || !part || !f.starts || !f.row || !number || !f.of || !f.part || !rows || !f.solved || !pool) result = -1;
    }
    for (uint64_t i = 0; i < file.items.words.size && !result; i++)
        for (uint64_t at = file.starts[i]; at < file.starts[i + 1] && file.items.row[i] >= 0; at++) idf[file.of[at]]++;
    for (uint64_t i = 0; i < f.features && !result; i++)
        if (idf[i] > 0) idf[i] = logf((1 + (float)known) / idf[i]); /* 1 +: a feature that every item has keeps a small part */
    for (uint64_t row = 0; row < items && !result; row++) {
        float one[COLUMNS_MOST];
        result = model_row(model, view, first + row, unit, one);
        add_scaled(mean, one, 1 / (float)items, f.dim);
    }
    for (uint64_t i = 0; i < file.items.words.size && !result; i++) {
        if (file.items.row[i] < 0) continue;
        uint64_t at = f.starts[f.items], count = parts_of(&file, idf, i, f.of + at, f.part + at);
        if (!count) continue;
        float *row = rows + f.items * f.dim;
        f.row[f.items] = (uint64_t)file.items.row[i];
        result = model_row(model, view, f.row[f.items], unit, row);
        add_scaled(row, mean, -1, f.dim);
        f.starts[++f.items] = at + count;
    }
    f.rows = rows;
    f.each = f.items < 300 ? 3 : f.items / 10 < LEFT_OUT ? 10 : f.items / LEFT_OUT;
    f.left = f.items / f.each < LEFT_OUT ? f.items / f.each : LEFT_OUT;
    if (!result && !(f.guessed = mem_zalloc(f.left + 1, (RIDGES * JUDGED * WIDTH + f.dim) * sizeof *f.guessed, "features"))) result = -1;
    if (!result && (tells = choose_ridge(&f, path, pool)) < 0) result = -1;
    const int by_content = tells && asked->content && !lists && fold_in_is_for(model);
    if (!result) memset(f.guessed, 0, f.left * f.dim * sizeof *f.guessed);
    for (f.stage = by_content ? GUESS : FIT; f.stage <= FIT && !result; f.stage++) {
        atomic_store(&f.taken, 0);
        result = pool_run(pool, solve_blocks, &f);
    }
    /* the new items, and each feature as an item that has this feature alone */
    for (uint64_t i = 0; i < file.items.words.size && !result; i++) {
        uint64_t count = file.items.row[i] >= 0 ? 0 : parts_of(&file, idf, i, of, part);
        new += file.items.row[i] < 0;
        without += file.items.row[i] < 0 && !count;
        number[i] = file.items.row[i] >= 0 ? file.items.row[i] : count ? (int64_t)(items + added->names.size) : -1;
        if (count) result = add_summed(&f, added, &file.items.words, i, mean, of, part, count);
    }
    for (uint32_t i = 0; i < f.features && !result; i++)
        if (idf[i] > 0) result = add_summed(&f, features, &file.features.words, i, mean, &i, &(float){1}, 1);
    if (by_content && !result)
        result = build_content(&model->content, &file, idf, number, items + added->names.size, of, part) ||
                         choose_content(model, &f, view, unit, mean, pool) ? -1 : 0;
    char counts[4][TEXT_BYTES];
    float factor = 1, weight = model->content.weight;
    if (!result && added->names.size && !lists) { /* features that tell nothing need not reach the share */
        model->content.weight = 0; /* the vectors' own length is for learnt scores */
        result = choose_length(model, view, unit, asked->share, tells ? mean : NULL, pool, &factor);
        for (uint64_t i = 0; i < added->names.size * f.dim; i++) added->rows[i] *= factor;
        model->content.weight = weight;
        if (weight > 0 && !result) result = choose_length(model, view, unit, asked->share, NULL, pool, &model->content.longer);
    }
    if (!result)
        remark("new %s  %s; of %s trained %s %s have features%s%s%s", what, text_of_count(counts[0], added->names.size),
               text_of_count(counts[1], items), what, text_of_count(counts[2], f.items), without ? "; left out: " : "",
               without ? text_of_count(counts[3], without) : "",
               without ? " new ones that share no feature with a trained one" : "");
    if (pool) pool_close(pool);
    features_release(&file);
    mem_free(idf, mean, of, part, rows, number, f.row, f.starts, f.of, f.part, f.solved, f.guessed);
    return result;
}

int features_open_of(struct model *model, const struct features_asked *asked, enum model_view view, int unit, unsigned threads) {
    struct features_asked of = *asked;
    uint64_t met = 0, read = 0, gone = 0;
    const char *own[2] = {model->keys.corpus_item_features, model->keys.corpus_list_features}, **path[2] = {&of.path, &of.lists};
    if (model->met_features) return 0;
    model->met_features = 1;
    if (!of.words) of.words = model->keys.corpus_feature_words;
    for (int lists = 0; lists < 2; lists++) {
        const char *kept = *path[lists] || !own[lists] || !*own[lists] ? NULL : own[lists]; /* the run's own file, if no other is given */
        int there = kept ? file_exists(kept) : *path[lists] != NULL;
        if (kept && !there)
            warn("'%s' is not there: it has the features of this run's %s (corpus.%s_features), so answers have no new ones; "
                 "--%s-features=FILE names another file",
                 kept, lists ? "lists" : "items", lists ? "list" : "item", lists ? "list" : "item");
        if (there < 0) return -1;
        gone += kept && !there;
        if (!there) continue;
        read++;
        if (kept) *path[lists] = kept;
        if (lists && (!model->vocab.lists || !(model->own > 0) || model->documents || model->relations))
            return fail("'%s' has features of lists, and the lists of '%s' have no rows of their own (examples.mode = user)",
                        of.lists, model->directory);
        if (fit_file(model, &of, lists, lists ? VIEW_TARGET : view, unit, threads, &met)) return -1;
    }
    return read && !gone ? check_words(of.words, met) : 0;
}

static int refuse_without(const struct model *model) {
    return fail("'%s' has no features: train it with corpus.item_features, or name a file by --item-features=FILE", model->directory);
}

int features_check(const struct config *config) {
    const char *paths[2] = {config->corpus_item_features, config->corpus_list_features};
    uint64_t met = 0;
    for (int i = 0; i < 2; i++) {
        ENDED_BY(features_release) struct feature_file file = {.count = 0};
        if (paths[i] && *paths[i] && features_read(&file, paths[i], config->corpus_feature_words)) return -1;
        met |= file.met;
    }
    return check_words(config->corpus_feature_words, met);
}

int features_labels(const struct model *model, const char *path, const char *words, const char *column, labels_take *take, void *user) {
    ENDED_BY(features_release) struct feature_file file = {.count = 0};
    ENDED_BY(names_release) struct names columns = {.capacity = 0};
    char said[LOOK_SAID * 2] = "none";
    size_t taken = 0, at = 0, own = strlen(column);
    if (!path) path = model->keys.corpus_item_features;
    if (!path || !*path) return refuse_without(model);
    if (features_read(&file, path, words ? words : model->keys.corpus_feature_words) || check_words(words, file.met)) return -1;
    for (uint64_t i = 0; i < file.items.words.size; i++)
        for (uint64_t f = file.starts[i]; f < file.starts[i + 1]; f++) {
            struct token item, label;
            item.text = (char *)words_get(&file.items.words, i, &item.length);
            label.text = (char *)words_get(&file.features.words, file.of[f], &label.length);
            if (label.length <= own || label.text[own] != ':' || strncasecmp(label.text, column, own)) continue;
            label.text += own + 1, label.length -= own + 1, taken++;
            if (take(user, &item, &label)) return -1;
            break;
        }
    for (uint64_t i = 0; !taken && i < file.features.words.size; i++) {
        uint64_t length, before = columns.words.size;
        const char *feature = words_get(&file.features.words, i, &length), *colon = memchr(feature, ':', length);
        if (!colon) continue;
        if (names_add(&columns, feature, (uint64_t)(colon - feature)) < 0) return -1;
        if (columns.words.size > before)
            at = text_add(said, sizeof said, at, "%s%.*s", at ? ", " : "", text_shown((uint64_t)(colon - feature)), feature);
    }
    return taken ? 0 : fail("'%s' has no features of a column '%s'; columns with features: %s", path, column, said);
}

int features_model(struct model *out, struct model *model) {
    struct model_extra *from = &model->features;
    struct vocab *vocab = &out->vocab;
    uint64_t rows = from->names.size, record = model->dim * sizeof(float);
    *out = (struct model){.rows = rows, .dim = model->dim, .mode = MODE_AUTO, .own = 1};
    if (!rows) return refuse_without(model);
    vocab->counts = mem_zalloc(rows, sizeof *vocab->counts, "the features' counts");
    vocab->words = from->names;
    vocab->size = vocab->distinct = rows;
    from->names = (struct words){0};
    out->target = (struct npy){.rows = rows, .record = record, .fields = 1, .field[0] = {.columns = model->dim, .kind = 'f'}};
    float *at = vocab->counts ? (float *)file_map_memory(&out->target.map, rows * record, "the rows of features") : NULL;
    if (!at || !(out->directory = mem_text(model->directory, strlen(model->directory), "a path"))) return -1;
    memcpy(at, from->rows, rows * record);
    out->context = out->target; /* the same mapping; model_close() unmaps it once */
    return 0;
}
