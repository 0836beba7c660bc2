#include "page_rows.h"

#include "base/memory.h"
#include "kernels/backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 300, /* most bytes of a shown name */
    MAP_STEPS = 65535 /* largest value of a coordinate */
};

/* ---- names ---- */

void page_print_name(struct json *json, const char *name, uint64_t length) {
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

/* The page numbers its rows: first the rows shown, then their other nearest rows. This maps both ways. */
struct names_of_page {
    const struct page_rows *rows;
    uint32_t *number; /* [rows of the model] number in the page; DRAW_NONE: not in the page */
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

/* Prints scores as whole millionths. A float32 times a million is exact in float64, so they are rounded as "%.6f" rounds them. */
static int print_nearest(struct json *json, const struct names_of_page *names) {
    const struct page_rows *rows = names->rows;
    uint64_t count = rows->count * rows->k;
    uint32_t *near = mem_alloc(count + 1, sizeof *near, "the nearest rows of a page");
    int32_t *millionths = mem_alloc(count + 1, sizeof *millionths, "the nearest rows of a page");
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
    int result = near && millionths ? 0 : -1;
    free(near);
    free(millionths);
    return result;
}

/* Prints the map's coordinates, scaled to 0 .. MAP_STEPS by one factor for both axes. */
static int print_map(struct json *json, const struct page_rows *rows) {
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    uint16_t *places = mem_alloc(rows->top, 2 * sizeof *places, "the map of a page");
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
    free(places);
    return 0;
}

int page_rows_print(struct json *json, const struct page_rows *rows, const struct model *model, const struct titles *titles) {
    struct names_of_page names = {.rows = rows};
    int result = number_rows(&names, model);
    if (!result) {
        json_print(json, ",\"table\":\"%s\",\"top\":%" PRIu64 ",\"listed\":%" PRIu64, model_view_name(rows->view),
                   rows->top, rows->count);
        print_names(json, &names, model, titles);
        result = print_nearest(json, &names) || print_map(json, rows) ? -1 : 0;
        page_groups_print(json, &rows->groups, rows->top);
    }
    free(names.number);
    free(names.row);
    return result;
}
