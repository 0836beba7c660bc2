#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "vectors/features.h"
#include "vectors/list_scores.h"
#include "vectors/names.h"
#include "vectors/quantizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* nearest, analogy, and the prompt that asks for words at the terminal. */

enum { MOST_ANSWERS = 1000000000 };

/* Prints the k rows found, or fewer if there are no more: word TAB score, and a title if there are titles. */
static void print_answers(const struct model *model, const struct titles *titles, const uint32_t *ids, const float *scores, uint32_t k) {
    for (uint32_t i = 0; i < k && ids[i] != DRAW_NONE; i++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, ids[i], &length);
        terminal_print(word, length);
        printf("\t%.6f", (double)scores[i]);
        if (titles && titles->title) putchar('\t'), terminal_print_name(titles_of(titles, ids[i]));
        putchar('\n');
    }
}

/* Makes the config for a question about words. Returns 1; 0 if no word was given and the prompt has answered instead; -1 after fail(). */
static int begin_asking(struct config *config, const struct arguments *arguments, int analogy, uint64_t k) {
    if (arguments_config(config, 0, NULL, arguments)) return -1;
    if (arguments->count != 1 || !isatty(STDIN_FILENO)) return 1;
    return command_prompt(arguments->given[0], analogy, 1, (uint32_t)k, config);
}

/* ---- nearest ---- */

struct asking {
    struct model model;
    struct titles titles;
    enum model_view query, among; /* table of the queries; table that is searched */
    enum search_metric metric;
    int quantized; /* 1: rows are searched in the reduced form that export would write by `type` and `columns` */
    enum export_type type;
    uint32_t columns, k;
    uint64_t searched, first; /* the rows that are searched: first .. searched - 1 */
    int lists;                /* 1: rows of lists are searched */
    const char *const *words;
    uint64_t count;
    uint32_t *rows; /* [count] rows of the words; DRAW_NONE: a word without a row, which has only a vector */
    float *vectors; /* [count x dim] vectors of the words: the queries */
};

/* Finds a word: as the name of a list (if rows of lists are searched), as an id, as a title. Otherwise its vector is the mean of its n-grams. All
 * words are looked up before anything is printed. */
static int find_word(struct asking *asking, uint64_t i) {
    const struct model *model = &asking->model;
    const char *word = asking->words[i];
    float *vector = asking->vectors + i * model->dim;
    int64_t list = asking->lists ? vocab_find_list(&model->vocab, word, strlen(word)) : -1, row = asking->first ? list : -1;
    if (row < 0) row = vocab_find(&model->vocab, word, strlen(word));
    if (row < 0) row = list;
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

/* Opens the search among rows that are quantized and decoded, and multiplies the queries by the same rotation. */
static int open_quantized(struct search *search, struct asking *asking, const struct config *config) {
    ENDED_BY(quantizer_close) struct quantizer quantizer = {0};
    float *own = asking->vectors, *turned;
    if (quantizer_open(&quantizer, &asking->model, asking->among, asking->searched, asking->type, asking->columns, 0,
                       (unsigned)config->device_threads) ||
        !(turned = mem_alloc(asking->count, quantizer.columns * sizeof *turned, "queries")))
        return -1;
    asking->vectors = turned;
    int result = quantizer_queries(&quantizer, own, asking->count, turned);
    free(own);
    if (result) return -1;
    return search_over(search, quantizer_matrix(&quantizer, asking->searched), asking->searched, quantizer.columns, asking->metric, config);
}

static int answer_words(struct asking *asking, const struct config *config) {
    uint64_t count = asking->count, banned_count = 0;
    uint32_t k = asking->k, *banned = mem_alloc(count, sizeof *banned, "queries");
    ENDED_BY(search_close) struct search search = {.rows = 0};
    OWNED uint64_t *starts = mem_zalloc(count + 1, sizeof *starts, "queries");
    OWNED uint32_t *ids = mem_alloc(count, k * sizeof *ids, "answers");
    OWNED float *scores = mem_alloc(count, k * sizeof *scores, "answers");
    asking->rows = mem_alloc(count, sizeof *asking->rows, "queries");
    asking->vectors = mem_alloc(count, asking->model.dim * sizeof *asking->vectors, "queries");
    int result = banned && starts && ids && scores && asking->rows && asking->vectors ? 0 : -1;
    for (uint64_t i = 0; i < count && !result; i++) {
        result = find_word(asking, i); /* if queries and answers come from the same table, a word is not in its own answer */
        if (!result && asking->rows[i] != DRAW_NONE && asking->query == asking->among) banned[banned_count++] = asking->rows[i];
        starts[i + 1] = banned_count;
    }
    if (!result)
        answers_warn_of_tables(&asking->model, asking->rows, count, asking->query, asking->among, asking->lists, asking->metric);
    if (!result)
        result = asking->quantized ? open_quantized(&search, asking, config)
                                   : search_open(&search, &asking->model, asking->among, asking->metric, asking->searched, config);
    search.first = asking->first;
    if (!result) result = search_top(&search, asking->vectors, count, k, starts, banned, ids, scores);
    for (uint64_t i = 0; !result && i < count; i++) {
        if (i) putchar('\n');
        if (count > 1) terminal_print_name(asking->words[i]), puts(":");
        print_answers(&asking->model, &asking->titles, ids + i * k, scores + i * k, k);
    }
    free(banned);
    return result;
}

/* sptx-w2v nearest RUN WORD... [--k=10] [--metric=cosine|dot] [--table=TABLE] [--query=TABLE] [--among=TABLE] [--lists]
 * [--titles=FILE] [--item-features=FILE] [--type=T] [--columns=N] */
static void asking_release(struct asking *asking) {
    titles_release(&asking->titles);
    model_close(&asking->model);
    mem_free(asking->rows, asking->vectors);
}

int cmd_nearest(int argc, char **argv) {
    const char *k_text = NULL, *metric_name = "cosine", *table = NULL, *query = NULL, *among = NULL;
    const char *titles = NULL, *type_name = NULL, *columns_text = NULL, *features = NULL, *words = NULL;
    int lists = 0;
    const struct option options[] = {{.name = "k", .text = &k_text},      {.name = "table", .text = &table},
                                     {.name = "metric", .text = &metric_name}, {.name = "lists", .flag = &lists},
                                     {.name = "query", .text = &query},   {.name = "among", .text = &among},
                                     {.name = "titles", .text = &titles}, {.name = "item-features", .text = &features},
                                     {.name = "feature-words", .text = &words},
                                     {.name = "type", .text = &type_name}, {.name = "columns", .text = &columns_text}, {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(asking_release) struct asking asking = {.k = 0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    uint64_t k = 10, columns = 0;
    if (arguments_read(&arguments, "nearest", argc, argv, options, "device, memory") ||
        arguments_number("nearest", "k", k_text, 1, MOST_ANSWERS, &k) ||
        arguments_number("nearest", "columns", columns_text, 1, COLUMNS_MOST, &columns)) return -1;
    if (arguments.count < 2 && (arguments.count < 1 || !isatty(STDIN_FILENO)))
        return fail_usage("nearest wants a run directory and at least one word; see 'sptx-w2v help nearest'");
    if (!query) query = table;
    if (!among) among = table;
    int metric = search_metric_named(metric_name), type = type_name ? export_type_named(type_name) : EXPORT_F32;
    asking.quantized = type != EXPORT_F32 || columns;
    if (asking.quantized && metric == METRIC_DOT)
        return fail_usage("nearest: --type and --columns are for --metric=cosine, and the metric is dot");
    if (metric < 0 || type < 0 || (query && model_view_named(query) < 0) || (among && model_view_named(among) < 0)) return -1;
    int begun = begin_asking(&config, &arguments, 0, k);
    if (begun <= 0) return begun;
    if (model_open(&asking.model, arguments.given[0])) return -1;
    /* Without --query and --among both tables are the run's default. With only one of them, the other table is always target, since existing
     * scripts rely on that. */
    const char *other = query || among ? "target" : NULL;
    unsigned threads = (unsigned)config.device_threads;
    int query_view = answers_view_named(&asking.model, query ? query : other, threads);
    int among_view = answers_view_named(&asking.model, among ? among : other, threads);
    const struct features_asked asked = {.path = features, .words = words, .share = FEATURES_AUTO};
    if (query_view < 0 || among_view < 0 || !(asking.searched = answers_rows(&asking.model, lists))) return -1;
    if (features_open_of(&asking.model, &asked, (enum model_view)query_view, metric == METRIC_COSINE, threads)) return -1;
    asking.query = (enum model_view)query_view;
    asking.among = (enum model_view)among_view;
    asking.metric = (enum search_metric)metric;
    asking.type = (enum export_type)type;
    asking.columns = (uint32_t)columns;
    asking.first = answers_first(&asking.model, lists);
    asking.lists = lists;
    asking.k = (uint32_t)(k < asking.searched ? k : asking.searched);
    asking.words = arguments.given + 1;
    asking.count = (uint64_t)arguments.count - 1;
    if (titles && titles_read(&asking.titles, &asking.model, titles)) return -1;
    return answer_words(&asking, &config);
}

/* ---- analogy ---- */

/* Prints the words nearest to word 1 - word 0 + word 2. The vector of a word without a row is the mean of its n-grams. */
static int answer_analogy(const struct model *model, enum model_view view, const char *const words[3], uint32_t k,
                          const struct config *config) {
    ENDED_BY(search_close) struct search search = {.rows = 0};
    uint64_t starts[2] = {0, 0};
    uint32_t banned[3], rows[3], *ids = mem_alloc(k, sizeof *ids, "answers");
    float *query = mem_alloc(4, model->dim * sizeof *query, "a query"), *unseen = query + model->dim;
    OWNED float *scores = mem_alloc(k, sizeof *scores, "answers");
    int result = ids && query && scores ? 0 : -1;
    for (int i = 0; i < 3 && !result; i++) {
        float *vector = unseen + (uint64_t)i * model->dim;
        int64_t row = model_find_or_make(model, view, words[i], vector);
        if (row < 0) result = -1;
        if (row == DRAW_NONE) model_make_unit(vector, model->dim);
        rows[i] = (uint32_t)row;
    }
    if (!result) result = search_open(&search, model, view, METRIC_COSINE, answers_rows(model, 0), config);
    int64_t excluded = result ? -1 : search_analogy(&search, rows, unseen, query, banned);
    starts[1] = (uint64_t)excluded;
    if (excluded < 0 || search_top(&search, query, 1, k, starts, banned, ids, scores)) result = -1;
    if (!result) print_answers(model, NULL, ids, scores, k);
    mem_free(query, ids);
    return result;
}

/* sptx-w2v analogy RUN A B C [--k=10] */
int cmd_analogy(int argc, char **argv) {
    const char *k_text = NULL;
    const struct option options[] = {{.name = "k", .text = &k_text}, {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(model_close) struct model model = {.rows = 0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    uint64_t k = 10;
    if (arguments_read(&arguments, "analogy", argc, argv, options, "device, memory") ||
        arguments_number("analogy", "k", k_text, 1, MOST_ANSWERS, &k)) return -1;
    if (arguments.count != 4 && (arguments.count != 1 || !isatty(STDIN_FILENO)))
        return fail_usage("analogy wants a run directory and three words: four arguments, %d given; see 'sptx-w2v help analogy'", arguments.count);
    int begun = begin_asking(&config, &arguments, 1, k);
    if (begun <= 0) return begun;
    int view = model_open(&model, arguments.given[0]) ? -1 : answers_view_named(&model, NULL, (unsigned)config.device_threads);
    if (view < 0) return -1;
    return answer_analogy(&model, (enum model_view)view, arguments.given + 1, (uint32_t)(k < model.rows ? k : model.rows), &config);
}

/* ---- the prompt ---- */

enum { WORDS_MOST_ASKED = 100, NAME_WIDTH = 50 };

struct prompt {
    int analogy, plain; /* as for command_prompt() */
    struct model model;
    struct search search;
    uint32_t k;
    char *words[WORDS_MOST_ASKED]; /* words of the question */
    uint32_t rows[WORDS_MOST_ASKED];
    int count;
    float *query, *scores;
    uint32_t *ids;
};

/* Finds the words' rows, and prints each word's position. Returns 1 if all words are known. */
static int find_words(struct prompt *p) {
    for (int i = 0; i < p->count; i++) {
        int64_t row = model_named(&p->model, p->words[i], strlen(p->words[i]));
        int known = row >= 0 && (uint64_t)row < p->search.rows;
        if (!p->plain) {
            printf("\nWord: ");
            terminal_print_name(p->words[i]);
            printf("  Position in vocabulary: %lld\n", known ? (long long)row : -1);
        }
        if (!known) {
            puts(p->plain ? "a word is not known" : "Out of dictionary word!");
            return 0;
        }
        p->rows[i] = (uint32_t)row;
    }
    return p->count > 0;
}

static int answer_question(struct prompt *p) {
    static const char *const heads[] = {"Word       Cosine distance", "Word              Distance"};
    uint32_t banned[3], dim = p->model.dim;
    if (p->analogy && p->count < 3) {
        printf("Only %d words were entered.. three words are needed at the input to perform the calculation\n", p->count);
        return 0;
    }
    if (!find_words(p)) return 0;
    memset(p->query, 0, dim * sizeof *p->query);
    if (p->analogy && search_analogy(&p->search, p->rows, NULL, p->query, banned) < 0) return -1;
    for (int i = 0; i < p->count && !p->analogy; i++)
        for (uint32_t column = 0; column < dim; column++) p->query[column] += p->search.base[(uint64_t)p->rows[i] * dim + column];
    uint64_t starts[2] = {0, search_distinct(p->rows, (uint64_t)p->count)};
    if (search_top(&p->search, p->query, 1, p->k, starts, p->rows, p->ids, p->scores)) return -1;
    if (p->plain) {
        print_answers(&p->model, NULL, p->ids, p->scores, p->k);
        return 0;
    }
    printf("\n%46s%s\n------------------------------------------------------------------------\n", "", heads[p->analogy]);
    for (uint32_t i = 0; i < p->k && p->ids[i] != DRAW_NONE; i++) {
        uint64_t length;
        const char *word = vocab_word(&p->model.vocab, p->ids[i], &length);
        if (length < NAME_WIDTH) printf("%*s", (int)(NAME_WIDTH - length), "");
        terminal_print(word, length);
        printf("\t\t%f\n", (double)p->scores[i]);
    }
    return 0;
}

static int ask_terminal(struct prompt *p) {
    OWNED char *line = NULL;
    size_t capacity = 0;
    int result = 0;
    for (;;) {
        fputs(p->analogy ? "Enter three words (EXIT to break): " : "Enter word or sentence (EXIT to break): ", stdout);
        if ((result = terminal_flush())) break;
        if (getline(&line, &capacity, stdin) < 0) break;
        char *rest = line, *word;
        p->count = 0;
        while ((word = strsep(&rest, " \t\r\n")))
            if (*word && p->count < WORDS_MOST_ASKED) p->words[p->count++] = word;
        if (p->count == 1 && !strcmp(p->words[0], "EXIT")) break;
        if (p->count && (result = answer_question(p))) break;
    }
    return result;
}

int command_prompt(const char *path, int analogy, int plain, uint32_t k, const struct config *config) {
    struct prompt p = {.analogy = analogy, .plain = plain};
    int view = model_open(&p.model, path) ? -1 : answers_view_named(&p.model, NULL, (unsigned)config->device_threads);
    uint64_t rows = view < 0 ? 0 : answers_rows(&p.model, 0);
    p.k = k < rows ? k : (uint32_t)rows;
    p.query = mem_alloc(p.model.dim, sizeof *p.query, "a query");
    p.scores = mem_alloc(p.k, sizeof *p.scores, "answers");
    p.ids = mem_alloc(p.k, sizeof *p.ids, "answers");
    int result = !rows || !p.query || !p.scores || !p.ids ||
                         search_open(&p.search, &p.model, (enum model_view)view, METRIC_COSINE, rows, config) || ask_terminal(&p)
                     ? -1 : 0;
    search_close(&p.search);
    model_close(&p.model);
    mem_free(p.query, p.scores, p.ids);
    return result;
}
