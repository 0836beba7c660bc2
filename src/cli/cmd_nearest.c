#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "prompt.h"
#include "vectors/list_scores.h"
#include "vectors/names.h"
#include "vectors/quantizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANSWERS = 1000000000 };

struct asking {
    struct model model;
    struct titles titles;
    enum model_view query, among;
    enum search_metric metric;
    int quantized; /* 1: the rows searched are quantized as export does it, by `type` and `columns` */
    enum export_type type;
    uint32_t columns, k;
    uint64_t searched, first; /* rows first .. searched - 1 are searched */
    const char *const *words;
    uint64_t count;
    uint32_t *rows; /* [count] the words' rows; DRAW_NONE: the word has no row, only a vector */
    float *vectors; /* [count x dim] the words' vectors, the queries */
};

/* Looks a word up: if rows of lists are searched, first as the name of a list; then as an id, then as a title. If nothing has this
 * name, its vector is the mean of its n-grams. All words are looked up before anything is printed. */
static int find_word(struct asking *asking, uint64_t i) {
    const struct model *model = &asking->model;
    const char *word = asking->words[i];
    float *vector = asking->vectors + i * model->dim;
    int64_t row = asking->first ? vocab_find_list(&model->vocab, word, strlen(word)) : -1;
    if (row < 0) row = vocab_find(&model->vocab, word, strlen(word));
    if (row < 0) row = titles_find(&asking->titles, model, word);
    if (row < 0) row = model_find_or_make(model, asking->query, word, vector);
    asking->rows[i] = (uint32_t)row;
    if (row == DRAW_NONE) return 0;
    if (row >= 0 && model->relations && ((uint64_t)row >= model_items(model)) != (asking->first > 0))
        return fail_usage("'%.100s' is %s of '%s'; entities are compared only with entities, relations only with relations: %s "
                          "--lists", word, asking->first ? "an entity" : "a relation", model->directory,
                          asking->first ? "leave out" : "add");
    if (row < 0 || model_check_row(model, asking->query, (uint64_t)row)) return -1;
    model_rows(model, asking->query, (uint64_t)row, 1, vector);
    return 0;
}

static int find_words(struct asking *asking) {
    asking->rows = mem_alloc(asking->count, sizeof *asking->rows, "queries");
    asking->vectors = mem_alloc(asking->count, asking->model.dim * sizeof *asking->vectors, "queries");
    if (!asking->rows || !asking->vectors) return -1;
    for (uint64_t i = 0; i < asking->count; i++)
        if (find_word(asking, i)) return -1;
    return 0;
}

static void print_question(const char *word, int after_others) {
    if (after_others) putchar('\n');
    terminal_print_name(word);
    puts(":");
}

static void print_answers(const struct asking *asking, const uint32_t *ids, const float *scores) {
    for (uint32_t i = 0; i < asking->k && ids[i] != DRAW_NONE; i++) {
        uint64_t length;
        const char *word = vocab_word(&asking->model.vocab, ids[i], &length);
        terminal_print(word, length);
        printf("\t%.6f", (double)scores[i]);
        if (asking->titles.title) putchar('\t'), terminal_print_name(titles_of(&asking->titles, ids[i]));
        putchar('\n');
    }
}

/* Leaves each word out of its own answer, if queries and answers come from the same table. */
static void leave_out(const struct asking *asking, uint64_t *starts, uint32_t *banned) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < asking->count; i++) {
        starts[i] = count;
        if (asking->rows[i] != DRAW_NONE && asking->query == asking->among) banned[count++] = asking->rows[i];
    }
    starts[asking->count] = count;
}

/* Opens the search among rows that are quantized and decoded, and turns the queries as these rows are turned. */
static int open_quantized(struct search *search, struct asking *asking, const struct config *config) {
    struct quantizer quantizer;
    float *turned = NULL;
    int result = quantizer_open(&quantizer, &asking->model, asking->among, asking->searched, asking->type, asking->columns, 0,
                                (unsigned)config->device_threads);
    if (!result && !(turned = mem_alloc(asking->count, quantizer.columns * sizeof *turned, "queries"))) result = -1;
    if (!result) result = quantizer_queries(&quantizer, asking->vectors, asking->count, turned);
    if (!result)
        result = search_over(search, quantizer_matrix(&quantizer, asking->searched), asking->searched, quantizer.columns,
                             asking->metric, config);
    if (!result) {
        free(asking->vectors);
        asking->vectors = turned;
        turned = NULL;
    }
    free(turned);
    quantizer_close(&quantizer);
    return result;
}

static int answer(struct asking *asking, const struct config *config) {
    uint32_t k = asking->k, *banned = mem_alloc(asking->count, sizeof *banned, "queries");
    struct search search = {.rows = 0};
    uint64_t *starts = mem_alloc(asking->count + 1, sizeof *starts, "queries");
    uint32_t *ids = mem_alloc(asking->count, k * sizeof *ids, "answers");
    float *scores = mem_alloc(asking->count, k * sizeof *scores, "answers");
    int result = -1;
    if (!banned || !starts || !ids || !scores) goto out;
    leave_out(asking, starts, banned);
    if (asking->quantized ? open_quantized(&search, asking, config)
                          : search_open(&search, &asking->model, asking->among, asking->metric, asking->searched, config))
        goto out;
    search.first = asking->first;
    result = search_top(&search, asking->vectors, asking->count, k, starts, banned, ids, scores);
    for (uint64_t i = 0; !result && i < asking->count; i++) {
        if (asking->count > 1) print_question(asking->words[i], i > 0);
        print_answers(asking, ids + i * k, scores + i * k);
    }
out:
    search_close(&search);
    free(banned);
    free(starts);
    free(ids);
    free(scores);
    return result;
}

/* Chooses the table of the queries and the table that is searched. Without --query and --among both are the run's default. If
 * one of the two options is given, the other one is target in every run, since existing scripts rely on that. */
static int choose_tables(struct asking *asking, const char *query, const char *among, unsigned threads) {
    const char *other = query || among ? "target" : NULL;
    int query_view = answers_view_named(&asking->model, query ? query : other, threads);
    int among_view = answers_view_named(&asking->model, among ? among : other, threads);
    if (query_view < 0 || among_view < 0) return -1;
    asking->query = (enum model_view)query_view;
    asking->among = (enum model_view)among_view;
    return 0;
}

/* sptx-w2v nearest RUN WORD... [--k=10] [--metric=cosine|dot] [--table=TABLE] [--query=TABLE] [--among=TABLE] [--lists]
 * [--titles=FILE] [--type=T] [--columns=N] */
int cmd_nearest(int argc, char **argv) {
    const char *k_text = NULL, *metric_name = "cosine", *table = NULL, *query = NULL, *among = NULL;
    const char *titles = NULL, *type_name = NULL, *columns_text = NULL;
    int lists = 0;
    const struct option options[] = {{.name = "k", .text = &k_text},      {.name = "table", .text = &table},
                                     {.name = "metric", .text = &metric_name}, {.name = "lists", .flag = &lists},
                                     {.name = "query", .text = &query},   {.name = "among", .text = &among},
                                     {.name = "titles", .text = &titles},
                                     {.name = "type", .text = &type_name}, {.name = "columns", .text = &columns_text}, {0}};
    struct arguments arguments;
    struct asking asking = {.k = 0};
    struct config config = {.name = NULL};
    uint64_t k = 10, columns = 0;
    int result = -1;
    if (arguments_read(&arguments, "nearest", argc, argv, options, "device, memory") ||
        arguments_number("nearest", "k", k_text, 1, MOST_ANSWERS, &k) ||
        arguments_number("nearest", "columns", columns_text, 1, COLUMNS_MOST, &columns)) goto out;
    if (arguments.count == 1 && prompt_is_possible()) {
        result = arguments_config(&config, 0, NULL, &arguments) ? -1 : prompt_run(&(struct prompt_request){
            .path = arguments.given[0], .plain = 1, .k = (uint32_t)k, .config = &config});
        goto out;
    }
    if (arguments.count < 2) {
        fail_usage("nearest wants a run directory and at least one word; see 'sptx-w2v help nearest'");
        goto out;
    }
    if (!query) query = table;
    if (!among) among = table;
    int metric = search_metric_named(metric_name), type = type_name ? export_type_named(type_name) : EXPORT_F32;
    asking.quantized = type != EXPORT_F32 || columns;
    if (asking.quantized && metric == METRIC_DOT) {
        fail_usage("nearest: --type and --columns are for --metric=cosine, and the metric is dot");
        goto out;
    }
    if (metric < 0 || type < 0 || (query && model_view_named(query) < 0) || (among && model_view_named(among) < 0)) goto out;
    if (arguments_config(&config, 0, NULL, &arguments) || model_open(&asking.model, arguments.given[0])) goto out;
    asking.metric = (enum search_metric)metric;
    asking.type = (enum export_type)type;
    asking.columns = (uint32_t)columns;
    if (choose_tables(&asking, query, among, (unsigned)config.device_threads) ||
        !(asking.searched = answers_rows(&asking.model, lists)))
        goto out;
    asking.first = answers_first(&asking.model, lists);
    asking.k = (uint32_t)(k < asking.searched ? k : asking.searched);
    asking.words = arguments.given + 1;
    asking.count = (uint64_t)arguments.count - 1;
    if (titles && titles_read(&asking.titles, &asking.model, titles)) goto out;
    result = find_words(&asking) || answer(&asking, &config) ? -1 : 0;
out:
    titles_release(&asking.titles);
    model_close(&asking.model);
    config_release(&config);
    free(asking.rows);
    free(asking.vectors);
    arguments_release(&arguments);
    return result;
}
