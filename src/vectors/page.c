#include "page.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "history.h"
#include "kernels/backend.h"
#include "page_files.h"
#include "page_rows.h"
#include "sptx.h"
#include "train/run_owns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    NAME_BYTES = 300, /* most of a name that is shown */
    EVALUATION_BYTES = 64 << 10,
    MAP_STEPS = 65535, /* of a coordinate */
    NONCE_BYTES = 33
};

/* ---- names ---- */

/* A name, cut where it is long, never inside a character. */
static void print_name(struct json *json, const char *name, uint64_t length) {
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

/* The page numbers its names: shown rows first, then those that are only near to one. */
struct names_of_page {
    const struct page_rows *rows;
    uint32_t *number; /* [model's rows], DRAW_NONE where the page has no such row */
    uint32_t *row;    /* [count] by number */
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
        print_name(json, word, length);
    }
    json_print(json, "],\"counts\":[");
    for (uint32_t i = 0; i < names->count; i++)
        json_print(json, "%s%" PRIu64, i ? "," : "", model->vocab.counts[names->row[i]]);
    json_print(json, "],\"titles\":[");
    for (uint32_t i = 0; titles->title && i < names->count; i++) {
        const char *title = titles->title[names->row[i]];
        if (i) json_print(json, ",");
        if (title)
            print_name(json, title, strlen(title));
        else
            json_print(json, "null");
    }
    json_print(json, "]");
}

/* ---- nearest rows and the map ---- */

/* Scores as whole millionths: a float32 times a million is exact in float64, so they round as "%.6f" does. */
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

/* Both coordinates by the same measure, from 0 to MAP_STEPS. */
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

/* ---- the run ---- */

static void print_run(struct json *json, const struct model *model, const struct page_request *request,
                      const struct page_rows *rows) {
    const struct progress_state *state = &model->state.progress;
    json_print(json, "{\"version\":\"%s\",\"run\":", SPTX_VERSION);
    print_name(json, request->run, strlen(request->run));
    json_print(json, ",\"rows\":%" PRIu64 ",\"dim\":%u,\"tokens\":%" PRIu64, model->rows, model->dim,
               model->vocab.kept);
    json_print(json, ",\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"words\":%" PRIu64 ",\"pairs\":%" PRIu64,
               state->step, state->epoch, state->words, state->pairs);
    json_print(json, ",\"seconds\":");
    json_number(json, state->seconds);
    json_print(json, ",\"finished\":%s,\"top\":%" PRIu64 ",\"listed\":%" PRIu64, state->finished ? "true" : "false",
               rows->top, rows->count);
}

/* A text file that need not be there. */
static int print_text(struct json *json, const char *name, const char *path) {
    int there = file_exists(path);
    uint64_t length = 0;
    char *text = there == 1 ? file_read(path, &length) : NULL;
    json_print(json, ",\"%s\":", name);
    json_string(json, text ? text : "", length);
    free(text);
    return there < 0 || (there && !text) ? -1 : 0;
}

static int print_files(struct json *json, const struct model *model) {
    char *config = file_join(model->directory, "config.ini"), *metrics = file_join(model->directory, "metrics.jsonl");
    int result = config && metrics ? print_text(json, "config", config) : -1;
    json_print(json, ",\"history\":");
    if (!result) result = history_print(json, metrics);
    free(config);
    free(metrics);
    return result;
}

static int print_evaluations(struct json *json, const struct page_request *request) {
    json_print(json, ",\"evaluations\":[");
    for (int i = 0; i < request->evaluation_count; i++) {
        uint64_t length;
        char *text = file_read_given(request->evaluations[i], EVALUATION_BYTES, &length);
        if (!text) return -1;
        if (i) json_print(json, ",");
        json_string(json, text, length);
        free(text);
    }
    json_print(json, "]");
    return 0;
}

/* All that the page shows. What is quick and may be wrong comes before the search. */
static int print_all(struct json *json, struct page_rows *rows, const struct model *model,
                     const struct page_request *request, const struct config *config) {
    struct names_of_page names = {.rows = rows};
    uint64_t listed = request->listed > request->top ? request->listed : request->top;
    rows->count = listed < model->rows ? listed : model->rows;
    rows->top = request->top < model->rows ? request->top : model->rows;
    print_run(json, model, request, rows);
    int result = print_evaluations(json, request) || print_files(json, model) || page_rows_find(rows, model, config) ||
                         number_rows(&names, model)
                     ? -1
                     : 0;
    if (!result) {
        print_names(json, &names, model, request->titles);
        result = print_nearest(json, &names) || print_map(json, rows) ? -1 : 0;
    }
    json_print(json, "}");
    free(names.number);
    free(names.row);
    return result || json->failed ? -1 : 0;
}

/* ---- the page ---- */

/* Scripts run that carry this number. It comes of all that the page shows, so that nothing shown can name it. */
static void make_nonce(char nonce[NONCE_BYTES], const struct json *json) {
    XXH128_hash_t hash = XXH3_128bits(json->bytes, json->used);
    snprintf(nonce, NONCE_BYTES, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

/* Names differ in length: a tenth less than what would fit on the average. */
static int check_bytes(uint64_t bytes, const struct page_rows *rows) {
    uint64_t fewer = rows->count * PAGE_BYTES / bytes * 9 / 10;
    if (bytes <= PAGE_BYTES) return 0;
    return fail(
        "the page would take %.1f MB, more than the %d MB that a browser opens at once: ask for fewer rows, such as "
        "--search=%" PRIu64 "%s",
        (double)bytes / 1e6, PAGE_BYTES / 1000000, fewer, fewer < rows->top ? " and as many for --top" : "");
}

static int write_page(const struct json *json, const struct page_rows *rows, struct file_writer *writer,
                      uint64_t *bytes) {
    char nonce[NONCE_BYTES];
    make_nonce(nonce, json);
    const struct page_part parts[] = {{"nonce", nonce, strlen(nonce)}, {"json", json->bytes, json->used}, {0}};
    *bytes = page_files_bytes(parts);
    return !*bytes || check_bytes(*bytes, rows) || page_files_write(parts, writer) ? -1 : 0;
}

int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, uint64_t *bytes) {
    struct page_rows rows = {.count = 0};
    struct json json = {.used = 0};
    struct file_writer writer;
    if (run_owns_refuse(path, "--out") || file_writer_open_given(&writer, path)) return -1;
    int result = print_all(&json, &rows, model, request, config) || write_page(&json, &rows, &writer, bytes) ? -1 : 0;
    if (!result)
        result = file_commit(&writer);
    else
        file_abandon(&writer);
    page_rows_release(&rows);
    json_release(&json);
    return result;
}
