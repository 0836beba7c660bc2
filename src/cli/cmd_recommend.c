#include "base/json.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "recommend_triples.h"
#include "vectors/list_scores.h"
#include "vectors/recommend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    if (score < 0 || arguments_reading(&asked->request.reading, &asked->request.look, run, asked->model.directory, asked->format,
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
