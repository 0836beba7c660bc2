/* recommend with --relation: the tails of heads, or the heads of tails. */
#include "recommend_triples.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "vectors/known.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_line(const struct triples_asked *asked, const char *entity, uint32_t row, float score) {
    uint64_t length;
    const char *found = vocab_word(&asked->model->vocab, row, &length);
    if (asked->backwards)
        terminal_print(found, length);
    else
        terminal_print_name(entity);
    putchar('\t');
    terminal_print_name(asked->relation);
    putchar('\t');
    if (asked->backwards)
        terminal_print_name(entity);
    else
        terminal_print(found, length);
    printf("\t%.6f", (double)score);
    if (asked->titles->title) putchar('\t'), terminal_print_name(titles_of(asked->titles, row));
    putchar('\n');
}

/* Prints {"head": "ulm", "relation": "in", "tails": [{"item": "germany", "score": 3.5}, ..]}. */
static int print_object(const struct triples_asked *asked, const char *entity, const uint32_t *rows, const float *scores) {
    struct json text = {0};
    json_print(&text, "{\"%s\": ", asked->backwards ? "tail" : "head");
    json_string(&text, entity, strlen(entity));
    json_print(&text, ", \"relation\": ");
    json_string(&text, asked->relation, strlen(asked->relation));
    json_print(&text, ", \"%s\": [", asked->backwards ? "heads" : "tails");
    for (uint32_t i = 0; i < asked->k && rows[i] != DRAW_NONE; i++) {
        uint64_t length;
        const char *item = vocab_word(&asked->model->vocab, rows[i], &length), *title = titles_of(asked->titles, rows[i]);
        json_print(&text, i ? ", {\"item\": " : "{\"item\": ");
        json_string(&text, item, length);
        json_print(&text, ", \"score\": %.9g", (double)scores[i]);
        if (asked->titles->title) {
            json_print(&text, ", \"title\": ");
            json_string(&text, title, strlen(title));
        }
        json_print(&text, "}");
    }
    json_print(&text, "]}\n");
    int result = text.failed ? -1 : 0;
    if (!result) fwrite(text.bytes, 1, text.used, stdout);
    json_release(&text);
    return result;
}

static int print_all(const struct triples_asked *asked, const uint32_t *rows, const float *scores) {
    for (uint64_t i = 0; i < asked->count; i++, rows += asked->k, scores += asked->k) {
        if (asked->json && print_object(asked, asked->entities[i], rows, scores)) return -1;
        for (uint32_t j = 0; !asked->json && j < asked->k && rows[j] != DRAW_NONE; j++)
            print_line(asked, asked->entities[i], rows[j], scores[j]);
    }
    return 0;
}

/* Finds the rows of the question: entities by name or title, and the relation or its reciprocal. */
static int find_terms(const struct triples_asked *asked, uint32_t *entities, uint32_t *relations) {
    int64_t relation = run_triples_relation(asked->model, asked->relation);
    if (relation >= 0 && asked->backwards) relation = run_triples_reciprocal(asked->model, relation);
    if (relation < 0) return -1;
    for (uint64_t i = 0; i < asked->count; i++) {
        const char *name = asked->entities[i];
        int64_t row = vocab_find(&asked->model->vocab, name, strlen(name));
        if (row < 0) row = titles_find(asked->titles, asked->model, name);
        if ((row < 0 || (uint64_t)row >= model_items(asked->model)) && (row = run_triples_entity(asked->model, name)) < 0)
            return -1;
        entities[i] = (uint32_t)row;
        relations[i] = (uint32_t)relation;
    }
    return 0;
}

int recommend_triples(const struct triples_asked *asked, const struct config *config) {
    struct triple_answers answers = {.model = NULL};
    uint32_t entities[OPTION_TIMES], relations[OPTION_TIMES];
    if (run_triples_check(asked->model) || find_terms(asked, entities, relations)) return -1;
    uint32_t *rows = mem_alloc(asked->count, asked->k * sizeof *rows, "answers");
    float *scores = mem_alloc(asked->count, asked->k * sizeof *scores, "answers");
    struct pool *pool = rows && scores ? pool_open((unsigned)config->device_threads) : NULL;
    int result =
        !pool || triple_answers_open(&answers, asked->model, config) ||
                triple_answers_ask(&answers, entities, relations, asked->count, asked->k, asked->seen, pool, rows, scores) ||
                print_all(asked, rows, scores)
            ? -1
            : 0;
    triple_answers_close(&answers);
    if (pool) pool_close(pool);
    free(rows);
    free(scores);
    return result;
}
