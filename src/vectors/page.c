#include "page.h"

#include "base/file.h"
#include "base/json.h"
#include "base/report.h"
#include "history.h"
#include "page_files.h"
#include "page_rows.h"
#include "sptx.h"
#include "run/run_owns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { EVALUATION_BYTES = 64 << 10, NONCE_BYTES = 33 };

/* ---- the run ---- */

static void print_run(struct json *json, const struct model *model, const struct page_request *request) {
    const struct progress_state *state = &model->state.progress;
    json_print(json, "{\"version\":\"%s\",\"run\":", SPTX_VERSION);
    page_print_name(json, request->run, strlen(request->run));
    json_print(json, ",\"rows\":%" PRIu64 ",\"dim\":%u,\"tokens\":%" PRIu64, model->rows, model->dim, model->vocab.kept);
    json_print(json, ",\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"words\":%" PRIu64 ",\"pairs\":%" PRIu64, state->step,
               state->epoch, state->words, state->pairs);
    json_print(json, ",\"seconds\":");
    json_number(json, state->seconds);
    json_print(json, ",\"finished\":%s", state->finished ? "true" : "false");
}

/* Prints a text file, which need not exist. */
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

/* Prints everything in the page except rows. */
static int print_head(struct json *json, const struct model *model, const struct page_request *request) {
    print_run(json, model, request);
    return print_evaluations(json, request) || print_files(json, model) || json->failed ? -1 : 0;
}

/* ---- the page ---- */

/* Makes the nonce of the page's content security policy, which allows only scripts that have it. It is a hash of all shown data,
 * so the data cannot contain it. */
static void make_nonce(char nonce[NONCE_BYTES], const struct json *json) {
    XXH128_hash_t hash = XXH3_128bits(json->bytes, json->used);
    snprintf(nonce, NONCE_BYTES, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

/* The texts that fill page.html, and the nonce that one of them points to. */
struct filling {
    char nonce[NONCE_BYTES];
    struct page_part parts[3];
};

static void fill_page(struct filling *filling, const struct json *json) {
    make_nonce(filling->nonce, json);
    filling->parts[0] = (struct page_part){"nonce", filling->nonce, strlen(filling->nonce)};
    filling->parts[1] = (struct page_part){"json", json->bytes, json->used};
    filling->parts[2] = (struct page_part){0};
}

/* Appends the rows to `json`. If the page gets too large, tries again with fewer listed rows. Names differ in length, so each
 * try takes a tenth less than the average size suggests. */
static int print_rows(struct json *json, struct page_rows *rows, const struct model *model,
                      const struct page_request *request, struct filling *filling, uint64_t *bytes) {
    uint64_t head = json->used;
    for (;;) {
        int result = page_rows_print(json, rows, model, request->titles);
        json_print(json, "}");
        if (result || json->failed) return -1;
        fill_page(filling, json);
        if (!(*bytes = page_files_bytes(filling->parts))) return -1;
        if (*bytes <= PAGE_BYTES) return 0;
        if (rows->count == rows->top)
            return fail("the page would take %.1f MB, more than the %d MB that a browser opens at once: ask for fewer "
                        "rows than "
                        "--top=%" PRIu64,
                        (double)*bytes / 1e6, PAGE_BYTES / 1000000, rows->top);
        uint64_t fewer = rows->count * PAGE_BYTES / *bytes * 9 / 10;
        rows->count = fewer > rows->top ? fewer : rows->top;
        json->used = head;
    }
}

/* Prints the head first: it takes little time, finds most mistakes, and the search for nearest rows is slow. */
static int write_page(struct page_rows *rows, const struct model *model, const struct page_request *request,
                      const struct config *config, struct file_writer *writer, uint64_t *bytes) {
    struct json json = {.used = 0};
    struct filling filling;
    int result = print_head(&json, model, request) || page_rows_find(rows, model, config) ||
                         print_rows(&json, rows, model, request, &filling, bytes) || page_files_write(filling.parts, writer)
                     ? -1 : 0;
    json_release(&json);
    return result;
}

int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, struct page_size *size) {
    struct page_rows rows = page_rows_of(request->view, request->rows, request->top, request->listed, request->labels);
    struct file_writer writer;
    if (run_owns_refuse(path, "--out") || file_writer_open_given(&writer, path)) return -1;
    uint64_t bytes;
    int result = write_page(&rows, model, request, config, &writer, &bytes);
    if (!result)
        result = file_commit(&writer);
    else
        file_abandon(&writer);
    if (!result) *size = (struct page_size){bytes, rows.top, rows.count};
    page_rows_release(&rows);
    return result;
}
