#include "page.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "numeric.h"
#include "features.h"
#include "names.h"
#include "run/metrics.h"
#include "run/run_directory.h"
#include "search.h"
#include "sptx.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* page_files: the files of src/vectors/page, which are compiled into the program. page.html contains places {{name}}, which are replaced by the
 * other files and by texts of the caller. */

/* A text that replaces {{name}} in page.html. {{page.css}} and the like are replaced by the file of this name. */
struct page_part {
    const char *name; /* name without the braces; NULL: end of a list of texts */
    const char *text;
    uint64_t length;
};

/* page_groups: the groups that colour a page's map: labels from a file, or clusters of the rows shown. */

enum {
    PAGE_GROUPS = 12,          /* most groups on a map, since the style sheet has this many colours */
    PAGE_NO_GROUP = UINT8_MAX, /* value in `of` for a row without a label */
    PAGE_CLUSTER_ROWS = 10     /* clusters have at least this many rows on average */
};

struct page_groups {
    uint8_t *of; /* [rows of the map] group of each row, or PAGE_NO_GROUP */
    uint32_t count;
    struct names labels;         /* the file's labels, in the order of their first occurrence; empty: groups are clusters */
    uint32_t shown[PAGE_GROUPS]; /* [group] number of its label; group 0 has the most frequent label */
    uint64_t others;             /* if there are more labels than groups: number of labels in the last group, which they share; otherwise 0 */
};

/* page_rows: the most frequent rows, which a page shows, with their nearest rows and their coordinates on the map. */

enum { PAGE_NEAREST = 10 }; /* number of nearest rows that are shown: the same as the default of --k of `nearest` */

struct page_rows {
    enum model_view view; /* the table whose rows are shown */
    uint64_t all;         /* number of rows that are searched and may be shown: the items, or also the lists */
    uint64_t count;       /* number of rows that are shown with their nearest rows */
    uint64_t top;         /* number of rows on the map: the first ones of `rows` */
    uint32_t k;           /* number of nearest rows of each row: PAGE_NEAREST, or fewer if there are fewer other rows */
    uint32_t *rows;       /* [count] the shown rows, by falling count; equally frequent rows by id */
    uint32_t *near;       /* [count x k] nearest rows and scores, as `nearest` finds them */
    float *scores;        /* [count x k] cosines */
    float *xy;            /* [top x 2] coordinates on the map */
    struct page_groups groups;
};

enum field { DONE, EPOCH, SECONDS, LR, LOSS, PAIRS, WORDS, UNTRAINED, FIELDS };

/* The numbers of a line of metrics.jsonl, or means over several lines; NaN: the number is missing. */
struct point {
    double field[FIELDS];
};

struct curve {
    struct point *points;
    uint64_t count, capacity;
};

/* Returns the number after `"name":` in a line; NaN if there is none. */
static double number_of(const char *line, const char *name) {
    char quoted[48], *end;
    snprintf(quoted, sizeof quoted, "\"%s\": ", name);
    const char *at = strstr(line, quoted);
    if (!at) return NAN;
    at += strlen(quoted);
    double value = numbers_read(at, &end);
    return end == at ? NAN : value;
}

struct curves {
    struct curve trained, held_out;
    struct curve scored; /* [LOSS] is the score */
    const char *score;   /* which score: "MRR" or "recall@20"; "": the run measured none */
};

static int add(struct curve *curve, const struct point *point) {
    if (mem_grow(&curve->points, &curve->capacity, curve->count + 1, sizeof *curve->points, "the lines of metrics.jsonl"))
        return -1;
    curve->points[curve->count++] = *point;
    return 0;
}

/* Adds a line, unless it does not end in a brace: then a killed process wrote its beginning, and another process appended to it. */
static int take_line(void *user, const char *line, uint64_t length) {
    struct curves *curves = user;
    struct point point = {{[DONE] = number_of(line, "done"),
                           [EPOCH] = number_of(line, "epoch"),
                           [SECONDS] = number_of(line, "seconds"),
                           [LR] = number_of(line, "lr"),
                           [LOSS] = number_of(line, "held_out_loss_pair"),
                           [PAIRS] = number_of(line, "pairs_per_second"),
                           [WORDS] = number_of(line, "words_per_second"),
                           [UNTRAINED] = NAN}};
    if (length < 2 || line[length - 2] != '}' || isnan(point.field[DONE])) return 0;
    if (!isnan(point.field[LOSS])) return add(&curves->held_out, &point);
    double mrr = number_of(line, "held_out_mrr"), recall = number_of(line, "held_out_recall");
    point.field[LOSS] = isnan(mrr) ? recall : mrr;
    if (!isnan(point.field[LOSS])) {
        curves->score = isnan(mrr) ? "recall@20" : "MRR";
        return add(&curves->scored, &point);
    }
    point.field[LOSS] = number_of(line, "loss_pair");
    if (isnan(point.field[LOSS])) return 0;
    /* loss_untrained is per example, and is converted to a loss per pair */
    point.field[UNTRAINED] = number_of(line, "loss_untrained") / number_of(line, "loss") * point.field[LOSS];
    return add(&curves->trained, &point);
}

/* ---- fewer points ---- */

/* Makes one point of each group of lines: losses and speeds are averaged, other numbers are those of the last line. */
static void thin(struct curve *curve) {
    uint64_t group = (curve->count + HISTORY_POINTS - 1) / HISTORY_POINTS, made = 0;
    for (uint64_t first = 0, count; first < curve->count; first += count) {
        const struct point *points = curve->points + first;
        count = curve->count - first < group ? curve->count - first : group;
        struct point whole = points[count - 1];
        for (int field = 0; field < FIELDS; field++) {
            double sum = 0;
            uint64_t told = 0;
            int is_mean = field == LOSS || field == PAIRS || field == WORDS || field == UNTRAINED;
            for (uint64_t i = 0; is_mean && i < count; i++)
                if (isfinite(points[i].field[field])) sum += points[i].field[field], told++;
            if (told) whole.field[field] = sum / (double)told;
        }
        curve->points[made++] = whole;
    }
    curve->count = made;
}

/* ---- as JSON ---- */

static void print_field(struct json *json, const char *before, const struct curve *curve, enum field field) {
    json_print(json, "%s[", before);
    for (uint64_t i = 0; i < curve->count; i++) {
        if (i) json_print(json, ",");
        json_number(json, curve->points[i].field[field]);
    }
    json_print(json, "]");
}

/* Returns the median of all untrained losses per pair, which differ slightly from line to line; losses of 0 are ignored. NaN if no line has one. */
static double untrained(const struct curve *curve) {
    double told[HISTORY_POINTS];
    uint64_t count = 0;
    for (uint64_t i = 0; i < curve->count; i++)
        if (curve->points[i].field[UNTRAINED] > 0) told[count++] = curve->points[i].field[UNTRAINED];
    qsort(told, count, sizeof *told, mem_by_double);
    return count ? told[count / 2] : NAN;
}

int history_print(struct json *json, const char *path) {
    struct curves curves = {.score = ""};
    int there = file_exists(path), result = there == 1 ? metrics_lines(path, take_line, &curves) : there;
    if (!result) {
        thin(&curves.trained);
        thin(&curves.held_out);
        thin(&curves.scored);
        const struct curve *trained = &curves.trained, *held_out = &curves.held_out, *scored = &curves.scored;
        print_field(json, "{\"trained\":{\"done\":", trained, DONE);
        print_field(json, ",\"epoch\":", trained, EPOCH);
        print_field(json, ",\"seconds\":", trained, SECONDS);
        print_field(json, ",\"loss\":", trained, LOSS);
        print_field(json, ",\"lr\":", trained, LR);
        print_field(json, ",\"pairs\":", trained, PAIRS);
        print_field(json, ",\"words\":", trained, WORDS);
        print_field(json, "},\"held_out\":{\"done\":", held_out, DONE);
        print_field(json, ",\"epoch\":", held_out, EPOCH);
        print_field(json, ",\"loss\":", held_out, LOSS);
        json_print(json, "},\"scored\":{\"name\":\"%s\"", curves.score);
        print_field(json, ",\"done\":", scored, DONE);
        print_field(json, ",\"score\":", scored, LOSS);
        json_print(json, "},\"untrained\":");
        json_number(json, untrained(trained));
        json_print(json, "}");
    }
    mem_free(curves.trained.points, curves.held_out.points, curves.scored.points);
    return result;
}

/* Makes the assembler include a file's bytes and a NUL, between the symbols FILE_BEGIN and FILE_END. Its path is relative to the top of the tree,
 * where make runs. */
#define CARRY(name, file)                                                                                              \
    __asm__(".section .rodata\n"                                                                                       \
            ".hidden " #name "_begin\n.global " #name "_begin\n" #name "_begin:\n"                                     \
            ".incbin \"src/vectors/page/" file "\"\n"                                                                  \
            ".hidden " #name "_end\n.global " #name "_end\n" #name "_end:\n"                                           \
            ".byte 0\n"                                                                                                \
            ".previous\n");                                                                                            \
    extern const char name##_begin[], name##_end[]

CARRY(page_html, "page.html");
CARRY(page_css, "page.css");
CARRY(page_data, "data.js");
CARRY(page_charts, "charts.js");
CARRY(page_map, "map.js");
CARRY(page_search, "search.js");
CARRY(page_main, "main.js");

static const struct {
    const char *name, *begin, *end;
} files[] = {{"page.css", page_css_begin, page_css_end},        {"data.js", page_data_begin, page_data_end},
             {"charts.js", page_charts_begin, page_charts_end}, {"map.js", page_map_begin, page_map_end},
             {"search.js", page_search_begin, page_search_end}, {"main.js", page_main_begin, page_main_end}};

static int find_part(const struct page_part *parts, const char *name, uint64_t length, struct page_part *found) {
    for (uint64_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].name) == length && !memcmp(files[i].name, name, length)) {
            *found = (struct page_part){files[i].name, files[i].begin, (uint64_t)(files[i].end - files[i].begin)};
            return 0;
        }
    for (; parts->name; parts++)
        if (strlen(parts->name) == length && !memcmp(parts->name, name, length)) {
            *found = *parts;
            return 0;
        }
    return fail("nothing stands for {{%.*s}} in page.html", (int)length, name);
}

/* Returns the next part of the page in *piece: the text before a {{name}}, or the text that replaces a {{name}}. Returns 1; 0 at the end; -1 after
 * fail(). */
static int next(const struct page_part *parts, const char **at, struct page_part *piece) {
    const char *end = page_html_end;
    if (*at == end) return 0;
    const char *place = strstr(*at, "{{");
    if (place != *at) {
        *piece = (struct page_part){"page.html", *at, (uint64_t)((place ? place : end) - *at)};
        *at += piece->length;
        return 1;
    }
    const char *close = strstr(place, "}}");
    if (!close) return fail("page.html has a {{ without its }}");
    *at = close + 2;
    return find_part(parts, place + 2, (uint64_t)(close - place - 2), piece) ? -1 : 1;
}

/* Writes the filled page (writer = NULL: only counts its bytes). Returns the number of bytes; 0 after fail(), for example if nothing replaces some
 * {{name}}. */
static uint64_t write_filled(const struct page_part *parts, struct file_writer *writer) {
    const char *at = page_html_begin;
    struct page_part piece = {0};
    uint64_t bytes = 0;
    int more;
    while ((more = next(parts, &at, &piece)) > 0) {
        bytes += piece.length;
        if (writer && file_write(writer, piece.text, piece.length)) return 0;
    }
    return more ? 0 : bytes;
}

/* ---- labels ---- */

/* The label of each row of the model, while the file is read. */
struct labelling {
    struct page_groups *groups;
    const struct model *model;
    uint32_t *label; /* [rows of the model] number of the row's label, plus 1; 0: no label */
};

/* Stores a row's label, unless the row has one already. */
static int take_label(void *user, const struct token *name, const struct token *label) {
    struct labelling *l = user;
    int64_t row = vocab_find(&l->model->vocab, name->text, name->length);
    if (row < 0 || l->label[row]) return 0;
    int64_t number = names_add(&l->groups->labels, label->text, label->length);
    if (number < 0) return -1;
    l->label[row] = (uint32_t)number + 1;
    return 0;
}

enum {
    NAME_BYTES = 300, /* most bytes of a shown name */
    MAP_STEPS = 65535 /* largest value of a coordinate */
};

/* Appends a name to the JSON. A long name is cut, but never within a character. */
static void page_print_name(struct json *json, const char *name, uint64_t length) {
    char cut[NAME_BYTES + 4];
    if (length <= NAME_BYTES) {
        json_string(json, name, length);
        return;
    }
    length = NAME_BYTES;
    while (length > NAME_BYTES - 4 && ((unsigned char)name[length] & 0xC0) == 0x80) length--;
    memcpy(cut, name, length);
    memcpy(cut + length, "\xE2\x80\xA6", 3);
    json_string(json, cut, length + 3);
}

/* Makes groups of the labels that are most frequent on the map. If there are too many labels, the last group contains all others. */
static int choose_labels(struct page_groups *groups, const uint32_t *labels, uint64_t count, const char *path) {
    uint64_t all = groups->labels.words.size, met = 0;
    OWNED struct mem_counted *counted = mem_alloc(all + 1, sizeof *counted, "labels");
    OWNED uint8_t *group = mem_alloc(all + 1, sizeof *group, "labels");
    int result = counted && group ? 0 : -1;
    for (uint64_t i = 0; !result && i < all; i++) counted[i] = (struct mem_counted){0, (uint32_t)i};
    for (uint64_t i = 0; !result && i < count; i++)
        if (labels[i]) counted[labels[i] - 1].count++;
    if (!result && all) qsort(counted, all, sizeof *counted, mem_by_falling_count);
    while (!result && met < all && counted[met].count) met++;
    if (!result && !met) result = fail("'%s' has no label of any of the %" PRIu64 " rows of the map", path, count);
    groups->count = met < PAGE_GROUPS ? (uint32_t)met : PAGE_GROUPS;
    groups->others = met > PAGE_GROUPS ? met - PAGE_GROUPS + 1 : 0;
    for (uint64_t i = 0; !result && i < met; i++) {
        group[counted[i].id] = (uint8_t)(i < PAGE_GROUPS ? i : PAGE_GROUPS - 1);
        if (i < PAGE_GROUPS) groups->shown[i] = counted[i].id;
    }
    for (uint64_t i = 0; !result && i < count; i++) groups->of[i] = labels[i] ? group[labels[i] - 1] : PAGE_NO_GROUP;
    return result;
}

/* Groups the rows of the map by their first label in the request's file, by their first value of its column of features, or by clusters. */
static int group_rows(struct page_rows *rows, const struct model *model, const struct page_request *asked) {
    struct page_groups *groups = &rows->groups;
    uint64_t count = rows->top, most = count / PAGE_CLUSTER_ROWS < PAGE_GROUPS ? count / PAGE_CLUSTER_ROWS : PAGE_GROUPS;
    int labelled = asked->labels || asked->colour;
    struct labelling l = {groups, model, labelled ? mem_zalloc(model->rows, sizeof *l.label, "labels") : NULL};
    OWNED uint32_t *of = mem_alloc(count, sizeof *of, "the groups of a map"); /* each row's label, or its cluster */
    float *unit = NULL;
    groups->of = mem_alloc(count, sizeof *groups->of, "the groups of a map");
    int result = of && groups->of && (l.label || !labelled) ? 0 : -1;
    if (!result && labelled) {
        const char *path = asked->labels ? asked->labels : asked->features ? asked->features : model->keys.corpus_item_features;
        result = asked->labels ? labels_read(path, take_label, &l)
                                 : features_labels(model, asked->features, asked->words, asked->colour, take_label, &l);
        for (uint64_t i = 0; !result && i < count; i++) of[i] = l.label[rows->rows[i]];
        if (!result) result = choose_labels(groups, of, count, path);
    } else if (!result) {
        unit = model_matrix_of(model, rows->view, rows->rows, count, 1);
        const struct clusters_request request = {
            .rows = unit, .count = count, .dim = model->dim, .most = most ? (uint32_t)most : 1, .tries = 4, .rounds = 30};
        result = unit ? clusters_find(of, &groups->count, &request) : -1;
        for (uint64_t i = 0; !result && i < count; i++) groups->of[i] = (uint8_t)of[i];
    }
    mem_free(l.label, unit);
    return result;
}

/* ---- as JSON ---- */

/* Appends the key "groups": {"by": "labels" or "clusters", "names": [..], "of": uint8 group of each row, as base64}. Clusters
 * have no names: the page names them by their most frequent rows. */
static void page_groups_print(struct json *json, const struct page_groups *groups, uint64_t count) {
    int labels = groups->labels.words.size > 0;
    json_print(json, ",\"groups\":{\"by\":\"%s\",\"count\":%u,\"names\":[", labels ? "labels" : "clusters", groups->count);
    for (uint32_t group = 0; labels && group < groups->count; group++) {
        uint64_t length;
        const char *name = words_get(&groups->labels.words, groups->shown[group], &length);
        if (group) json_print(json, ",");
        if (group + 1 == groups->count && groups->others)
            json_print(json, "\"%" PRIu64 " other labels\"", groups->others);
        else
            page_print_name(json, name, length);
    }
    json_print(json, "],\"of\":");
    json_base64(json, groups->of, count);
    json_print(json, "}");
}

/* ---- names ---- */

/* Numbers of the rows in a page, and the reverse. First come the rows shown, then the other rows among their nearest. */
struct names_of_page {
    const struct page_rows *rows;
    uint32_t *number; /* [rows of the model] number of the row in the page; DRAW_NONE: it is not in the page */
    uint32_t *row;    /* [count] row of each number */
    uint32_t count;
};

static void number_row(struct names_of_page *names, uint32_t row) {
    if (names->number[row] != DRAW_NONE) return;
    names->number[row] = names->count;
    names->row[names->count++] = row;
}

static int number_rows(struct names_of_page *names, const struct model *model) {
    const struct page_rows *rows = names->rows;
    uint64_t most = rows->count * (rows->k + 1);
    names->number = mem_alloc(model->rows, sizeof *names->number, "the names of a page");
    names->row = mem_alloc(most < model->rows ? most : model->rows, sizeof *names->row, "the names of a page");
    if (!names->number || !names->row) return -1;
    for (uint64_t row = 0; row < model->rows; row++) names->number[row] = DRAW_NONE;
    for (uint64_t i = 0; i < rows->count; i++) number_row(names, rows->rows[i]);
    for (uint64_t i = 0; i < rows->count * rows->k; i++)
        if (rows->near[i] != DRAW_NONE) number_row(names, rows->near[i]);
    return 0;
}

static void print_names(struct json *json, const struct names_of_page *names, const struct model *model,
                        const struct titles *titles) {
    json_print(json, ",\"names\":[");
    for (uint32_t i = 0; i < names->count; i++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, names->row[i], &length);
        if (i) json_print(json, ",");
        page_print_name(json, word, length);
    }
    json_print(json, "],\"counts\":[");
    for (uint32_t i = 0; i < names->count; i++) json_print(json, "%s%" PRIu64, i ? "," : "", vocab_count(&model->vocab, names->row[i]));
    json_print(json, "],\"titles\":[");
    for (uint32_t i = 0; titles->title && i < names->count; i++) {
        const char *title = titles->title[names->row[i]];
        if (i) json_print(json, ",");
        if (title)
            page_print_name(json, title, strlen(title));
        else
            json_print(json, "null");
    }
    json_print(json, "]");
}

/* ---- nearest rows and the map ---- */

/* Prints scores as whole millionths. A float32 times a million is exact in float64, so this rounds as "%.6f" does. */
static int print_nearest(struct json *json, const struct names_of_page *names) {
    const struct page_rows *rows = names->rows;
    uint64_t count = rows->count * rows->k;
    OWNED uint32_t *near = mem_alloc(count + 1, sizeof *near, "the nearest rows of a page");
    OWNED int32_t *millionths = mem_alloc(count + 1, sizeof *millionths, "the nearest rows of a page");
    for (uint64_t i = 0; near && millionths && i < count; i++) {
        int found = rows->near[i] != DRAW_NONE;
        near[i] = found ? names->number[rows->near[i]] : DRAW_NONE;
        millionths[i] = found ? (int32_t)lrint((double)rows->scores[i] * 1e6) : 0;
    }
    if (near && millionths) {
        json_print(json, ",\"k\":%u,\"near\":", rows->k);
        json_base64(json, near, count * sizeof *near);
        json_print(json, ",\"scores\":");
        json_base64(json, millionths, count * sizeof *millionths);
    }
    return near && millionths ? 0 : -1;
}

/* Prints the map's coordinates, scaled to 0 .. MAP_STEPS by one factor for both axes. */
static int print_map(struct json *json, const struct page_rows *rows) {
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    OWNED uint16_t *places = mem_alloc(rows->top, 2 * sizeof *places, "the map of a page");
    if (!places) return -1;
    for (uint64_t i = 0; i < 2 * rows->top; i++) {
        low[i % 2] = fminf(low[i % 2], rows->xy[i]);
        high[i % 2] = fmaxf(high[i % 2], rows->xy[i]);
    }
    float span = fmaxf(high[0] - low[0], high[1] - low[1]);
    for (uint64_t i = 0; i < 2 * rows->top; i++)
        places[i] = span > 0 ? (uint16_t)lrintf((rows->xy[i] - low[i % 2]) / span * MAP_STEPS) : MAP_STEPS / 2;
    json_print(json, ",\"map\":");
    json_base64(json, places, rows->top * 2 * sizeof *places);
    return 0;
}

/* Appends these keys of an object; arrays are base64:
 *
 *   table, top, listed, k    table shown; numbers of rows on the map, of rows listed, and of nearest rows of each
 *   names, counts, titles    of each row, by its number in the page: first the rows shown, then the other rows among their nearest
 *   near                     uint32, the numbers of each shown row's nearest rows
 *   scores                   int32, their scores in millionths
 *   map                      uint16, x and y of each row on the map
 *   groups                   the groups of the rows on the map
 *
 * Returns 0, or -1 after fail().
 */
static int page_rows_print(struct json *json, const struct page_rows *rows, const struct model *model, const struct titles *titles) {
    struct names_of_page names = {.rows = rows};
    int result = number_rows(&names, model);
    if (!result) {
        json_print(json, ",\"table\":\"%s\",\"top\":%" PRIu64 ",\"listed\":%" PRIu64, model_view_name(rows->view),
                   rows->top, rows->count);
        print_names(json, &names, model, titles);
        result = print_nearest(json, &names) || print_map(json, rows) ? -1 : 0;
        page_groups_print(json, &rows->groups, rows->top);
    }
    mem_free(names.number, names.row);
    return result;
}

enum { QUERIES = 256 }; /* number of queries of a search: few, so that Ctrl-C is noticed soon */

/* ---- which rows ---- */

/* Chooses the most frequent rows. Usually counts fall with the id (corpus.order = frequency), and millions of rows need no sorting. */
static int choose_shown_rows(struct page_rows *rows, const struct vocab *vocab) {
    uint64_t size = rows->all, sorted = 1;
    rows->rows = mem_alloc(rows->count, sizeof *rows->rows, "the most frequent rows");
    if (!rows->rows) return -1;
    while (sorted < size && vocab_count(vocab, sorted) <= vocab_count(vocab, sorted - 1)) sorted++;
    OWNED struct mem_counted *all = sorted < size ? mem_alloc(size, sizeof *all, "the most frequent rows") : NULL;
    if (sorted < size && !all) return -1;
    for (uint64_t row = 0; all && row < size; row++) all[row] = (struct mem_counted){vocab_count(vocab, row), (uint32_t)row};
    if (all) qsort(all, size, sizeof *all, mem_by_falling_count);
    for (uint64_t i = 0; i < rows->count; i++) rows->rows[i] = all ? all[i].id : (uint32_t)i;
    return 0;
}

/* ---- nearest rows ---- */

/* Searches for the k nearest rows of each query [count x dim], other than the query's own row, own[count]. ids, scores: results [count x k]. what:
 * name of the search in the progress line. */
static int ask_nearest(struct search *search, const char *what, const float *queries, const uint32_t *own, uint64_t count, uint32_t k,
                       uint32_t *ids, float *scores) {
    uint64_t starts[QUERIES + 1];
    struct progress progress;
    int result = 0;
    for (uint64_t i = 0; i <= QUERIES; i++) starts[i] = i;
    progress_start(&progress, what, 1);
    for (uint64_t first = 0; !result && first < count; first += QUERIES) {
        uint64_t n = count - first < QUERIES ? count - first : QUERIES;
        result = search_top(search, queries + first * search->dim, n, k, starts, own + first, ids + first * k, scores + first * k);
        if (!result && interrupt_asked()) result = fail("stopped by a signal: nothing was written");
        progress_show(&progress, first + n, count, "rows");
    }
    progress_end(&progress);
    return result;
}

/* Finds the nearest rows of each row shown, as `nearest` does. */
static int find_nearest(struct page_rows *rows, const struct model *model, const struct config *config) {
    ENDED_BY(search_close) struct search search = {.rows = 0};
    OWNED float *queries = model_matrix_of(model, rows->view, rows->rows, rows->count, 0);
    rows->near = mem_alloc(rows->count, (rows->k + 1) * sizeof *rows->near, "nearest rows");
    rows->scores = mem_alloc(rows->count, (rows->k + 1) * sizeof *rows->scores, "nearest rows");
    int result = queries && rows->near && rows->scores ? 0 : -1;
    if (!result && rows->k) result = search_open(&search, model, rows->view, METRIC_COSINE, rows->all, config);
    if (!result && rows->k)
        result = ask_nearest(&search, "nearest rows", queries, rows->rows, rows->count, rows->k, rows->near, rows->scores);
    return result;
}

/* ---- the map ---- */

/* Computes the map from the nearest neighbours of its rows among each other, by cosine. */
static int place(struct page_rows *rows, const struct model *model, const struct config *config) {
    uint64_t count = rows->top;
    uint32_t k = count > MAP_NEAR ? MAP_NEAR : (uint32_t)count - 1;
    OWNED uint32_t *own = mem_alloc(count, sizeof *own, "the map");
    OWNED uint32_t *near = mem_alloc(count, (k + 1) * sizeof *near, "the map");
    OWNED float *cosines = mem_alloc(count, (k + 1) * sizeof *cosines, "the map");
    ENDED_BY(search_close) struct search search = {.rows = 0};
    rows->xy = mem_alloc(count, 2 * sizeof *rows->xy, "the map");
    if (!own || !near || !cosines || !rows->xy) return -1;
    float *unit = model_matrix_of(model, rows->view, rows->rows, count, 1);
    if (search_over(&search, unit, count, model->dim, METRIC_COSINE, config)) return -1;
    for (uint64_t i = 0; i < count; i++) own[i] = (uint32_t)i;
    if (k && ask_nearest(&search, "neighbours on the map", unit, own, count, k, near, cosines)) return -1;
    ENDED_BY(pool_end) struct pool *pool = pool_open((unsigned)config->device_threads);
    struct map_request request = {unit, count, model->dim, near, cosines, k};
    return pool ? map_make(rows->xy, &request, pool) : -1;
}

enum { EVALUATION_BYTES = 64 << 10, NONCE_BYTES = 33 };

/* ---- the run ---- */

/* Prints the contents of a text file, or nothing if it does not exist. */
static int print_text(struct json *json, const char *name, const char *path) {
    int there = file_exists(path);
    uint64_t length = 0;
    OWNED char *text = there == 1 ? file_read(path, &length) : NULL;
    json_print(json, ",\"%s\":", name);
    json_string(json, text ? text : "", length);
    return there < 0 || (there && !text) ? -1 : 0;
}

/* Prints everything in the page except rows. */
static int print_head(struct json *json, const struct model *model, const struct page_request *request) {
    const struct progress_state *state = &model->state.progress;
    OWNED char *config = file_join(model->directory, "config.ini"), *metrics = file_join(model->directory, "metrics.jsonl");
    int result = config && metrics ? 0 : -1;
    json_print(json, "{\"version\":\"%s\",\"run\":", SPTX_VERSION);
    page_print_name(json, request->run, strlen(request->run));
    json_print(json, ",\"rows\":%" PRIu64 ",\"dim\":%u,\"tokens\":%" PRIu64, model->rows, model->dim, model->vocab.kept);
    json_print(json, ",\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"words\":%" PRIu64 ",\"pairs\":%" PRIu64, state->step,
               state->epoch, state->words, state->pairs);
    json_print(json, ",\"seconds\":");
    json_number(json, state->seconds);
    json_print(json, ",\"finished\":%s,\"evaluations\":[", state->finished ? "true" : "false");
    for (int i = 0; i < request->evaluation_count && !result; i++) {
        uint64_t length;
        OWNED char *text = file_read_given(request->evaluations[i], EVALUATION_BYTES, &length);
        if (i) json_print(json, ",");
        if (text) json_string(json, text, length);
        result = text ? 0 : -1;
    }
    json_print(json, "]");
    if (!result) result = print_text(json, "config", config);
    json_print(json, ",\"history\":");
    if (!result) result = history_print(json, metrics);
    return result || json->failed ? -1 : 0;
}

/* ---- the page ---- */

/* The texts that replace {{name}} in page.html, and the nonce, to which one of them points. */
struct filling {
    char nonce[NONCE_BYTES];
    struct page_part parts[3];
};

/* Appends the rows to `json`. If the page becomes too large, tries again with fewer listed rows: a tenth less than the average size suggests,
 * since names differ in length. */
static int print_rows(struct json *json, struct page_rows *rows, const struct model *model,
                      const struct page_request *request, struct filling *filling, uint64_t *bytes) {
    uint64_t head = json->used;
    for (;;) {
        int result = page_rows_print(json, rows, model, request->titles);
        json_print(json, "}");
        if (result || json->failed) return -1;
        XXH128_hash_t hash = XXH3_128bits(json->bytes, json->used);
        snprintf(filling->nonce, NONCE_BYTES, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
        filling->parts[0] = (struct page_part){"nonce", filling->nonce, strlen(filling->nonce)};
        filling->parts[1] = (struct page_part){"json", json->bytes, json->used};
        filling->parts[2] = (struct page_part){0};
        if (!(*bytes = write_filled(filling->parts, NULL))) return -1;
        if (*bytes <= PAGE_BYTES) return 0;
        if (rows->count == rows->top)
            return fail("the page would take %.1f MB, more than the %d MB that a browser opens at once: ask for fewer rows than --top=%" PRIu64,
                        (double)*bytes / 1e6, PAGE_BYTES / 1000000, rows->top);
        uint64_t fewer = rows->count * PAGE_BYTES / *bytes * 9 / 10;
        rows->count = fewer > rows->top ? fewer : rows->top;
        json->used = head;
    }
}

/* Prints the head before it searches, since the head is fast and finds most mistakes, and the search for nearest rows is slow. */
int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, struct page_size *size) {
    uint64_t all = request->rows, listed = request->listed < request->top ? request->top : request->listed, bytes = 0;
    struct page_rows rows = {.view = request->view,
                             .all = all,
                             .count = listed < all ? listed : all,
                             .top = request->top < all ? request->top : all,
                             .k = all > PAGE_NEAREST ? PAGE_NEAREST : (uint32_t)(all - (all > 0))};
    ENDED_BY(json_release) struct json json = {.used = 0};
    struct filling filling;
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    if (run_owns_refuse(path, "--out") || file_writer_open_given(&writer, path)) return -1;
    int result = print_head(&json, model, request) || choose_shown_rows(&rows, &model->vocab) || group_rows(&rows, model, request) ||
                         find_nearest(&rows, model, config) || place(&rows, model, config) ||
                         print_rows(&json, &rows, model, request, &filling, &bytes) || !write_filled(filling.parts, &writer)
                     ? -1 : file_commit(&writer);
    if (!result) *size = (struct page_size){bytes, rows.top, rows.count};
    mem_free(rows.rows, rows.near, rows.scores, rows.xy, rows.groups.of);
    names_release(&rows.groups.labels);
    return result;
}
