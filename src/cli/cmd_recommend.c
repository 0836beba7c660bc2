#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/known.h"
#include "vectors/list_scores.h"
#include "vectors/names.h"
#include "vectors/recommend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- with --relation: the tails of heads, or the heads of tails ---- */

/* A question to a run of triples. */
struct triples_asked {
    const struct model *model;
    const struct titles *titles;
    const char *const *entities; /* [count] names or titles; at most OPTION_TIMES */
    uint64_t count;
    const char *relation;
    int backwards, seen, json; /* backwards: 1: entities are tails, and heads are wanted */
    uint32_t k;
};

static void print_triple(const struct triples_asked *asked, const char *entity, uint32_t row, float score) {
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
static int print_triples_object(const struct triples_asked *asked, const char *entity, const uint32_t *rows, const float *scores) {
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

static int print_triples(const struct triples_asked *asked, const uint32_t *rows, const float *scores) {
    for (uint64_t i = 0; i < asked->count; i++, rows += asked->k, scores += asked->k) {
        if (asked->json && print_triples_object(asked, asked->entities[i], rows, scores)) return -1;
        for (uint32_t j = 0; !asked->json && j < asked->k && rows[j] != DRAW_NONE; j++)
            print_triple(asked, asked->entities[i], rows[j], scores[j]);
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

/* Prints lines of head, relation, tail and score; with `json`, an object for each question. Returns 0, or -1 after fail(). */
static int recommend_triples(const struct triples_asked *asked, const struct config *config) {
    struct triple_answers answers = {.model = NULL};
    uint32_t entities[OPTION_TIMES], relations[OPTION_TIMES];
    if (run_triples_check(asked->model) || find_terms(asked, entities, relations)) return -1;
    uint32_t *rows = mem_alloc(asked->count, asked->k * sizeof *rows, "answers");
    float *scores = mem_alloc(asked->count, asked->k * sizeof *scores, "answers");
    struct pool *pool = rows && scores ? pool_open((unsigned)config->device_threads) : NULL;
    int result =
        !pool || triple_answers_open(&answers, asked->model, config) ||
                triple_answers_ask(&answers, entities, relations, asked->count, asked->k, asked->seen, pool, rows, scores) ||
                print_triples(asked, rows, scores)
            ? -1
            : 0;
    triple_answers_close(&answers);
    if (pool) pool_close(pool);
    free(rows);
    free(scores);
    return result;
}

/* ---- lists ---- */

enum { MOST_ANSWERS = 1000000000, LIVE_SECONDS = 1 };

/* A call of recommend: the questions to a run, and how answers are printed. */
struct asked {
    struct model model;
    struct titles titles;
    struct recommend_request request;
    const char *items[OPTION_TIMES], *names[OPTION_TIMES], *trained[OPTION_TIMES], *heads[OPTION_TIMES], *tails[OPTION_TIMES];
    int items_count, names_count, trained_count, heads_count, tails_count, json;
    const char *relation, *format, *k, *score, *titles_path, *among;
    struct json text; /* buffer for the answer that is being printed */
};

static void print_lines(const struct asked *asked, const struct recommended *answer) {
    for (uint32_t i = 0; i < answer->count; i++) {
        uint64_t length;
        const char *item = vocab_word(&asked->model.vocab, answer->ids[i], &length);
        terminal_print(answer->list, answer->length);
        putchar('\t');
        terminal_print(item, length);
        printf("\t%.6f", (double)answer->scores[i]);
        if (asked->titles.title) putchar('\t'), terminal_print_name(titles_of(&asked->titles, answer->ids[i]));
        putchar('\n');
    }
}

/* Prints {"list": "u1", "score": "target", "known": 3, "unknown": 1, "items": [{"item": "a", "score": 0.5, "title":
 * "A"}]}. */
static int print_object(struct asked *asked, const struct recommended *answer) {
    struct json *text = &asked->text;
    text->used = 0;
    json_print(text, "{\"list\": ");
    json_string(text, answer->list, answer->length);
    json_print(text, ", \"score\": \"%s\", \"known\": %llu, \"unknown\": %llu, \"items\": [",
               list_score_said(asked->request.score, answer->folded), (unsigned long long)answer->known,
               (unsigned long long)answer->unknown);
    for (uint32_t i = 0; i < answer->count; i++) {
        uint64_t length;
        const char *item = vocab_word(&asked->model.vocab, answer->ids[i], &length);
        const char *title = titles_of(&asked->titles, answer->ids[i]);
        json_print(text, i ? ", {\"item\": " : "{\"item\": ");
        json_string(text, item, length);
        json_print(text, ", \"score\": ");
        if (isfinite(answer->scores[i]))
            json_print(text, "%.9g", (double)answer->scores[i]);
        else
            json_number(text, (double)answer->scores[i]);
        if (asked->titles.title) {
            json_print(text, ", \"title\": ");
            json_string(text, title, strlen(title));
        }
        json_print(text, "}");
    }
    json_print(text, "]}\n");
    if (text->failed) return -1;
    fwrite(text->bytes, 1, text->used, stdout);
    return 0;
}

/* Prints an answer. If the reader has closed the pipe or the disk is full, it fails, which ends the work: the remaining answers
 * could not be read. */
static int print_answer(void *user, const struct recommended *answer) {
    struct asked *asked = user;
    if (asked->json ? print_object(asked, answer) : (print_lines(asked, answer), 0)) return -1;
    return ferror(stdout) ? terminal_flush() : 0;
}

static int check_asked(const struct asked *asked, int given) {
    if (given != 1) return fail_usage("recommend wants one run directory, %d given; see 'sptx-w2v help recommend'", given);
    if (!asked->relation != !(asked->heads_count + asked->tails_count) || (asked->heads_count && asked->tails_count))
        return fail_usage("recommend wants --relation=R with --head=X, which asks for tails, or with --tail=Y, which asks for heads");
    if (asked->relation && (asked->score || asked->among || asked->request.candidates))
        return fail_usage("recommend: --score, --among and --candidates are for lists, not for triples (--relation)");
    if (!!asked->request.lists + !!asked->items_count + !!asked->trained_count + !!asked->relation != 1)
        return fail_usage("recommend wants either --lists=FILE, --list=NAME, --items=A,B,.. or, of triples, --relation=R; see 'sptx-w2v "
                          "help recommend'");
    if (asked->request.candidates && asked->among)
        return fail_usage("recommend wants either --among=N or --candidates=FILE; see 'sptx-w2v help recommend'");
    if (asked->names_count && !asked->request.lists)
        return fail_usage("recommend: --name = '%.100s' is a list of a file; wanted --lists=FILE, too, or --list=NAME "
                          "for one that the run was trained on",
                          asked->names[0]);
    if (asked->format && !asked->request.lists)
        return fail_usage("recommend: --format is how a file is read; wanted --lists=FILE, too");
    return 0;
}

/* Finds out how lists are read, and how they are scored: by --score, else by the run's default. */
static int read_run(struct asked *asked, struct config *run, unsigned threads, const struct arguments *arguments) {
    int score = answers_score_named(&asked->model, asked->score, !asked->items_count, threads);
    if (score < 0 || arguments_reading(&asked->request.reading, &asked->request.look, run, &asked->model, asked->format,
                                       arguments))
        return -1;
    asked->request.score = (enum list_score)score;
    return 0;
}

static int take_numbers(struct asked *asked) {
    uint64_t k = 20, rows = asked->model.rows;
    if (arguments_number("recommend", "k", asked->k, 1, MOST_ANSWERS, &k)) return -1;
    if (arguments_number("recommend", "among", asked->among, 0, UINT32_MAX, &asked->request.among)) return -1;
    asked->request.k = (uint32_t)(k < rows ? k : rows);
    return 0;
}

static int ask_triples(struct asked *asked, const struct config *config) {
    int backwards = asked->tails_count > 0;
    const struct triples_asked question = {.model = &asked->model,
                                           .titles = &asked->titles,
                                           .entities = backwards ? asked->tails : asked->heads,
                                           .count = (uint64_t)(backwards ? asked->tails_count : asked->heads_count),
                                           .relation = asked->relation,
                                           .backwards = backwards,
                                           .seen = asked->request.seen,
                                           .json = asked->json,
                                           .k = asked->request.k};
    if (asked->titles_path && titles_read(&asked->titles, &asked->model, asked->titles_path)) return -1;
    return recommend_triples(&question, config);
}

static int ask_model(struct asked *asked, const struct config *config) {
    struct recommend_request *request = &asked->request;
    if (asked->titles_path && titles_read(&asked->titles, &asked->model, asked->titles_path)) return -1;
    request->names = asked->trained_count ? asked->trained : asked->names;
    request->names_count = (uint64_t)(asked->trained_count ? asked->trained_count : asked->names_count);
    request->items = asked->items;
    request->items_count = (uint64_t)asked->items_count;
    request->titles = asked->titles.title ? &asked->titles : NULL;
    /* No live line if answers go to a terminal: they would mix. */
    struct progress progress;
    progress_start(&progress, "recommending", LIVE_SECONDS);
    if (!isatty(STDOUT_FILENO)) request->progress = &progress;
    int result = recommend(&asked->model, request, config, print_answer, asked);
    if (request->progress) progress_end(&progress);
    return result;
}

/* sptx-w2v recommend RUN --lists=FILE [--format=F] [--name=LIST ...] | --list=NAME ... | --items=A,B,... | --head=X ... --relation=R |
 * --tail=Y ... --relation=R [--k=20] [--score=SCORE] [--titles=FILE] [--among=N | --candidates=FILE] [--seen] [--json] */
int cmd_recommend(int argc, char **argv) {
    struct asked asked = {.k = NULL};
    const struct option options[] = {{.name = "lists", .text = &asked.request.lists},
                                     {.name = "format", .text = &asked.format},
                                     {.name = "name", .texts = asked.names, .count = &asked.names_count},
                                     {.name = "list", .texts = asked.trained, .count = &asked.trained_count},
                                     {.name = "candidates", .text = &asked.request.candidates},
                                     {.name = "items", .texts = asked.items, .count = &asked.items_count},
                                     {.name = "head", .texts = asked.heads, .count = &asked.heads_count},
                                     {.name = "tail", .texts = asked.tails, .count = &asked.tails_count},
                                     {.name = "relation", .text = &asked.relation},
                                     {.name = "k", .text = &asked.k},
                                     {.name = "score", .text = &asked.score},
                                     {.name = "titles", .text = &asked.titles_path},
                                     {.name = "among", .text = &asked.among},
                                     {.name = "seen", .flag = &asked.request.seen},
                                     {.name = "json", .flag = &asked.json},
                                     {0}};
    struct arguments arguments;
    struct config config = {.name = NULL}, run = {.name = NULL};
    int result = -1;
    if (arguments_read(&arguments, "recommend", argc, argv, options, "device, memory, corpus")) goto out;
    if (check_asked(&asked, arguments.count)) goto out;
    if (arguments_config_beside(&config, &arguments) || model_open(&asked.model, arguments.given[0])) goto out;
    if (take_numbers(&asked)) goto out;
    if (asked.relation)
        result = ask_triples(&asked, &config);
    else if (!read_run(&asked, &run, (unsigned)config.device_threads, &arguments))
        result = ask_model(&asked, &config);
out:
    json_release(&asked.text);
    titles_release(&asked.titles);
    model_close(&asked.model);
    config_release(&config);
    config_release(&run);
    arguments_release(&arguments);
    return result;
}
