#include "history.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "run/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field { DONE, EPOCH, SECONDS, LR, LOSS, PAIRS, WORDS, UNTRAINED, FIELDS };

/* The numbers of a line, or the means of several lines; NaN: the line lacks the number. */
struct point {
    double field[FIELDS];
};

struct curve {
    struct point *points;
    uint64_t count, capacity;
};

/* Returns the number of `"name": number` in a line; NaN if it is not there. */
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
};

static int add(struct curve *curve, const struct point *point) {
    if (mem_grow(&curve->points, &curve->capacity, curve->count + 1, sizeof *curve->points, "the lines of metrics.jsonl"))
        return -1;
    curve->points[curve->count++] = *point;
    return 0;
}

static int add_line(struct curve *trained, struct curve *held_out, const char *line) {
    struct point point = {{[DONE] = number_of(line, "done"),
                           [EPOCH] = number_of(line, "epoch"),
                           [SECONDS] = number_of(line, "seconds"),
                           [LR] = number_of(line, "lr"),
                           [LOSS] = number_of(line, "held_out_loss_pair"),
                           [PAIRS] = number_of(line, "pairs_per_second"),
                           [WORDS] = number_of(line, "words_per_second"),
                           [UNTRAINED] = NAN}};
    if (isnan(point.field[DONE])) return 0;
    if (!isnan(point.field[LOSS])) return add(held_out, &point);
    point.field[LOSS] = number_of(line, "loss_pair");
    if (isnan(point.field[LOSS])) return 0;
    /* loss_untrained is a loss per example; this converts it to a loss per pair. */
    point.field[UNTRAINED] = number_of(line, "loss_untrained") / number_of(line, "loss") * point.field[LOSS];
    return add(trained, &point);
}

/* Adds a line, unless it does not end in a brace: then a killed process wrote its beginning and another process appended to it. */
static int take_line(void *user, const char *line, uint64_t length) {
    struct curves *curves = user;
    return length > 1 && line[length - 2] == '}' ? add_line(&curves->trained, &curves->held_out, line) : 0;
}

/* ---- fewer points ---- */

static int is_mean(enum field field) {
    return field == LOSS || field == PAIRS || field == WORDS || field == UNTRAINED;
}

/* Returns one point for a group of lines: the means of losses and speeds, and the last line's other numbers. */
static struct point summed_up(const struct point *points, uint64_t count) {
    struct point whole = points[count - 1];
    for (int field = 0; field < FIELDS; field++) {
        double sum = 0;
        uint64_t told = 0;
        for (uint64_t i = 0; is_mean((enum field)field) && i < count; i++) {
            if (!isfinite(points[i].field[field])) continue;
            sum += points[i].field[field];
            told++;
        }
        if (told) whole.field[field] = sum / (double)told;
    }
    return whole;
}

static void thin(struct curve *curve) {
    if (!curve->count) return;
    uint64_t group = (curve->count + HISTORY_POINTS - 1) / HISTORY_POINTS, points = 0;
    for (uint64_t first = 0; first < curve->count; first += group) {
        uint64_t left = curve->count - first;
        curve->points[points++] = summed_up(curve->points + first, left < group ? left : group);
    }
    curve->count = points;
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

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median of the untrained losses per pair, which differ slightly from line to line. NaN if no line has one; losses
 * of 0 are ignored. */
static double untrained(const struct curve *curve) {
    double told[HISTORY_POINTS];
    uint64_t count = 0;
    for (uint64_t i = 0; i < curve->count; i++)
        if (curve->points[i].field[UNTRAINED] > 0) told[count++] = curve->points[i].field[UNTRAINED];
    qsort(told, count, sizeof *told, by_value);
    return count ? told[count / 2] : NAN;
}

static void print_curves(struct json *json, const struct curve *trained, const struct curve *held_out) {
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
    json_print(json, "},\"untrained\":");
    json_number(json, untrained(trained));
    json_print(json, "}");
}

int history_print(struct json *json, const char *path) {
    struct curves curves = {.trained.count = 0};
    int there = file_exists(path), result = there == 1 ? metrics_lines(path, take_line, &curves) : there;
    if (!result) {
        thin(&curves.trained);
        thin(&curves.held_out);
        print_curves(json, &curves.trained, &curves.held_out);
    }
    free(curves.trained.points);
    free(curves.held_out.points);
    return result;
}
