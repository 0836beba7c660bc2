#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/known.h"
#include "vectors/list_scores.h"
#include "vectors/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* recommend: finds the items that suit lists best: all or some lists of a file, lists that the run was trained on, or lists of items given by hand.
 * For a run of triples: the tails of heads, or the heads of tails.
 *
 * Items that the run does not know are left out, and a warning counts them. A list without a known item gets an empty answer; if
 * no list has a known item, the command fails.
 */

enum { MOST_ANSWERS = 1000000000, LIVE_SECONDS = 1 };

/* The values of an option that may be given several times. */
struct texts {
    const char *of[OPTION_TIMES];
    int count;
};

/* A call of recommend: questions to a run, and how to print answers. */
struct asked {
    struct model model;
    struct titles titles;
    struct texts items, named, trained, heads, tails; /* --items, --name, --list, --head, --tail */
    const char *file, *relation, *format, *candidates;
    enum list_score score;
    uint64_t among;
    uint32_t k;
    int seen, json, only_new; /* only_new: --among=new */
    struct names lists;      /* names of the lists that are known, with their rows */
    struct list_items known; /* their items */
    uint64_t *chosen, count; /* [count] numbers of the lists to answer */
    struct json text;        /* buffer for the answer that is being printed */
};

/* ---- answers ---- */

/* Prints the found rows, each after `before`, with its score and, with --titles, its title. */
static void print_rows(const struct asked *asked, const uint32_t *rows, const float *scores, uint32_t count, const char *before,
                       uint64_t length) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes;
        const char *item = model_name(&asked->model, rows[i], &bytes);
        terminal_print(before, length);
        putchar('\t');
        terminal_print(item, bytes);
        printf("\t%.6f", (double)scores[i]);
        if (asked->titles.title) putchar('\t'), terminal_print_name(titles_of(&asked->titles, rows[i]));
        putchar('\n');
    }
}

/* Appends the found rows, [{"item": "a", "score": 0.5, "title": "A"}, ..]}, and prints the JSON object that ends with them. */
static int print_object(struct asked *asked, const uint32_t *rows, const float *scores, uint32_t count) {
    struct json *text = &asked->text;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length;
        const char *item = model_name(&asked->model, rows[i], &length), *title = titles_of(&asked->titles, rows[i]);
        json_print(text, i ? ", {\"item\": " : "{\"item\": ");
        json_string(text, item, length);
        json_print(text, ", \"score\": ");
        if (isfinite(scores[i]))
            json_print(text, "%.9g", (double)scores[i]);
        else
            json_number(text, (double)scores[i]);
        if (asked->titles.title) json_print(text, ", \"title\": "), json_string(text, title, strlen(title));
        json_print(text, "}");
    }
    json_print(text, "]}\n");
    if (text->failed) return -1;
    fwrite(text->bytes, 1, text->used, stdout);
    return 0;
}

static uint64_t known_of(const struct asked *asked, uint64_t list) {
    uint64_t known = 0;
    for (uint64_t i = asked->known.starts[list]; i < asked->known.starts[list + 1]; i++) known += asked->known.codes[i] < model_end(&asked->model);
    return known;
}

/* Prints the answer to a list; with --json as {"list": "u1", "score": "target", "known": 3, "unknown": 1, "items": [..]}. Fails, which ends the
 * work, if the reader has closed the pipe or the disk is full. */
static int print_answer(void *user, uint64_t list, const struct search_found *found) {
    struct asked *asked = user;
    uint64_t known = known_of(asked, list), unknown = asked->known.starts[list + 1] - asked->known.starts[list] - known, length;
    const char *name = words_get(&asked->lists.words, list, &length);
    int64_t row = asked->items.count ? -1 : asked->lists.row[list];
    uint32_t count = 0;
    while ((known || (row >= 0 && list_score_of_users(asked->score))) && count < asked->k && found->ids[count] != DRAW_NONE) count++;
    if (!asked->json) {
        print_rows(asked, found->ids, found->scores, count, name, length);
    } else {
        asked->text.used = 0;
        json_print(&asked->text, "{\"list\": ");
        json_string(&asked->text, name, length);
        json_print(&asked->text, ", \"score\": \"%s\", \"known\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"items\": [",
                   list_score_said(asked->score, list_score_folds(&asked->model, asked->score, row)), known, unknown);
        if (print_object(asked, found->ids, found->scores, count)) return -1;
    }
    return ferror(stdout) ? terminal_flush() : 0;
}

/* ---- with --relation ---- */

/* Prints the answer to head, relation, ? or ?, relation, tail as triples; with --json as {"head": "ulm", "relation": "in", "tails": [..]}. */
static int print_triples(struct asked *asked, const char *entity, const uint32_t *rows, const float *scores) {
    int heads = asked->tails.count > 0; /* heads are found */
    uint32_t count = 0;
    while (count < asked->k && rows[count] != DRAW_NONE) count++;
    if (asked->json) {
        asked->text.used = 0;
        json_print(&asked->text, "{\"%s\": ", heads ? "tail" : "head");
        json_string(&asked->text, entity, strlen(entity));
        json_print(&asked->text, ", \"relation\": ");
        json_string(&asked->text, asked->relation, strlen(asked->relation));
        json_print(&asked->text, ", \"%s\": [", heads ? "heads" : "tails");
        return print_object(asked, rows, scores, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length, all = strlen(entity);
        const char *found = vocab_word(&asked->model.vocab, rows[i], &length);
        terminal_print(heads ? found : entity, heads ? length : all);
        putchar('\t');
        terminal_print_name(asked->relation);
        putchar('\t');
        terminal_print(heads ? entity : found, heads ? all : length);
        printf("\t%.6f", (double)scores[i]);
        if (asked->titles.title) putchar('\t'), terminal_print_name(titles_of(&asked->titles, rows[i]));
        putchar('\n');
    }
    return 0;
}

static int recommend_triples(struct asked *asked, const struct config *config) {
    const struct texts *given = asked->tails.count ? &asked->tails : &asked->heads;
    ENDED_BY(triple_answers_close) struct triple_answers answers = {.model = NULL};
    uint32_t entities[OPTION_TIMES], relations[OPTION_TIMES];
    uint64_t count = (uint64_t)given->count;
    int64_t relation = run_triples_check(&asked->model) ? -1 : run_triples_relation(&asked->model, asked->relation);
    if (relation >= 0 && asked->tails.count) relation = run_triples_reciprocal(&asked->model, relation);
    if (relation < 0) return -1;
    for (uint64_t i = 0; i < count; i++) {
        const char *name = given->of[i];
        int64_t row = vocab_find(&asked->model.vocab, name, strlen(name));
        if (row < 0) row = titles_find(&asked->titles, &asked->model, name);
        if ((row < 0 || (uint64_t)row >= model_items(&asked->model)) && (row = run_triples_entity(&asked->model, name)) < 0) return -1;
        entities[i] = (uint32_t)row;
        relations[i] = (uint32_t)relation;
    }
    OWNED uint32_t *rows = mem_alloc(count, asked->k * sizeof *rows, "answers");
    OWNED float *scores = mem_alloc(count, asked->k * sizeof *scores, "answers");
    ENDED_BY(pool_end) struct pool *pool = rows && scores ? pool_open((unsigned)config->device_threads) : NULL;
    int result = !pool || triple_answers_open(&answers, &asked->model, config) ||
                         triple_answers_ask(&answers, entities, relations, count, asked->k, asked->seen, pool, rows, scores)
                     ? -1 : 0;
    for (uint64_t i = 0; i < count && !result; i++) result = print_triples(asked, given->of[i], rows + i * asked->k, scores + i * asked->k);
    return result;
}

/* ---- items by hand ---- */

/* Returns the row of an item, given by its id or title; -1 if there is none. */
static int64_t find_item(const struct asked *asked, const char *text, uint64_t length) {
    int64_t row = model_named(&asked->model, text, length);
    if (row >= 0 || !asked->titles.title) return row;
    OWNED char *title = mem_text(text, length, "a title");
    if (title) row = titles_find(&asked->titles, &asked->model, title);
    return row;
}

/* Removes blanks at both ends of a text: moves *text past leading ones, and returns the new length. */
static uint64_t trim(const char **text, uint64_t length) {
    for (; length && text_is_blank(**text); length--) ++*text;
    while (length && text_is_blank((*text)[length - 1])) length--;
    return length;
}

/* An item given by hand. */
struct given {
    const char *text;
    uint64_t length;
    int64_t row; /* row of the item; -1: unknown */
};

static int add_given(struct given **given, uint64_t *count, uint64_t *capacity, struct given one) {
    if (mem_grow(given, capacity, *count + 1, sizeof **given, "items")) return -1;
    (*given)[(*count)++] = one;
    return 0;
}

/* Reads --items: an item or title as a whole, otherwise items separated by commas. */
static int read_given(const struct asked *asked, struct given **given, uint64_t *count) {
    uint64_t capacity = 0;
    for (int i = 0; i < asked->items.count; i++) {
        const char *text = asked->items.of[i];
        uint64_t all = strlen(text), length;
        int64_t row = find_item(asked, text, all);
        if (row >= 0 && add_given(given, count, &capacity, (struct given){text, all, row})) return -1;
        for (; row < 0 && *text; text += length + (text[length] == ',')) {
            length = strcspn(text, ",");
            const char *item = text;
            uint64_t bytes = trim(&item, length);
            if (bytes && add_given(given, count, &capacity, (struct given){item, bytes, find_item(asked, item, bytes)})) return -1;
        }
    }
    return *count ? 0 : fail_usage("--items = '%.100s' names no item", asked->items.of[0]);
}

/* Reports an unknown item: go_on = 1: as a warning, since other items are known; 0: as a failure. */
static int tell_unknown(const struct asked *asked, const struct given *item, int go_on) {
    OWNED char *name = mem_text(item->text, item->length, "an item");
    if (!name) return -1;
    const char *near = go_on ? vocab_near(&asked->model.vocab, name) : NULL;
    if (go_on)
        warn("'%.100s' is not in the vocabulary of '%s' and is left out%s%s%s", name, asked->model.directory, DID_YOU_MEAN(near));
    else
        model_find(&asked->model, VIEW_SUM, name);
    return go_on ? 0 : -1;
}

/* Makes a list named "items" of the items given by hand. */
static int take_given(struct asked *asked) {
    struct list_items *items = &asked->known;
    OWNED struct given *given = NULL;
    uint64_t count = 0, known = 0;
    int result = read_given(asked, &given, &count) || names_add(&asked->lists, "items", 5) < 0 ? -1 : 0;
    for (uint64_t i = 0; i < count; i++) known += given[i].row >= 0;
    for (uint64_t i = 0; i < count && !result; i++)
        result = given[i].row < 0 ? tell_unknown(asked, &given[i], known > 0) : model_check_list(&asked->model, (uint64_t)given[i].row);
    items->starts = result ? NULL : mem_zalloc(2, sizeof *items->starts, "items");
    items->codes = result ? NULL : mem_alloc(count, sizeof *items->codes, "items");
    if (!items->starts || !items->codes) result = -1;
    for (uint64_t i = 0; i < count && !result; i++) items->codes[i] = given[i].row < 0 ? model_end(&asked->model) : (uint64_t)given[i].row;
    if (!result) items->starts[1] = count;
    return result;
}

/* ---- lists of a file, or of the run ---- */

/* Warns about unknown lists and items; fails if the run knows none. */
static int check_lists(const struct asked *asked) {
    const char *file = asked->file, *run = asked->model.directory;
    uint64_t items = 0, known = 0, empty = 0;
    for (uint64_t i = 0; i < asked->count; i++) {
        uint64_t list = asked->chosen[i], of_list = known_of(asked, list);
        items += asked->known.starts[list + 1] - asked->known.starts[list];
        known += of_list;
        empty += !of_list;
    }
    if (!asked->count) return fail("'%s' has no list", file);
    if (!items) return fail("%s lists of '%s' have no items", asked->named.count ? "these" : "the", file);
    if (!known)
        return fail("none of the %" PRIu64 " items of %s'%s' is in the vocabulary of '%s'", items,
                    asked->named.count ? "these lists of " : "", file, run);
    if (items > known)
        warn("%" PRIu64 " of %" PRIu64 " items of '%s' are not in the vocabulary of '%s' and are left out",
             items - known, items, file, run);
    if (empty)
        warn("%" PRIu64 " of %" PRIu64 " lists of '%s' have no item that '%s' knows: nothing is recommended for them",
             empty, asked->count, file, run);
    return 0;
}

/* Adds the lists of --list, with the items on which they were trained. */
static int take_trained(struct asked *asked) {
    struct list_items *items = &asked->known;
    struct run_lists trained = {.first = 0};
    ENDED_BY(pool_end) struct pool *pool = pool_open(0);
    int result = !pool || run_lists_open(&trained, &asked->model, pool) ||
                         !(items->starts = mem_zalloc((uint64_t)asked->trained.count + 1, sizeof *items->starts, "lists"))
                     ? -1 : 0;
    for (int i = 0; i < asked->trained.count && !result; i++) {
        const char *name = asked->trained.of[i];
        int64_t row = run_lists_find(&asked->model, name), number = row < 0 ? -1 : names_add(&asked->lists, name, strlen(name));
        result = number < 0 ? -1 : 0;
        if (result || (uint64_t)number + 1 < asked->lists.words.size || items->starts[number + 1]) continue; /* the name is given twice */
        result = run_lists_items(&trained, row, &items->codes, &items->count, &items->capacity);
        items->starts[number + 1] = items->count;
    }
    run_lists_close(&trained);
    return result;
}

static int take_file(struct asked *asked, const struct arguments *arguments) {
    struct corpus_options reading;
    ENDED_BY(config_release) struct config run = {0};
    int look;
    return arguments_reading(&reading, &look, &run, &asked->model, asked->format, arguments) || (look && list_form_look(&reading, asked->file)) ||
                   list_items_read(&asked->known, asked->file, NULL, &reading, &asked->model, &asked->lists, 1, NULL)
               ? -1 : 0;
}

/* Chooses the lists to answer: those named by the user, in this order, or all. */
static int choose_lists(struct asked *asked) {
    const struct texts *names = asked->trained.count ? &asked->trained : &asked->named;
    asked->count = names->count ? (uint64_t)names->count : asked->lists.words.size;
    asked->chosen = mem_alloc(asked->count, sizeof *asked->chosen, "lists");
    if (!asked->chosen) return -1;
    for (uint64_t i = 0; i < asked->count; i++) {
        int64_t list = names->count ? names_find(&asked->lists, names->of[i], strlen(names->of[i])) : (int64_t)i;
        const char *near = list < 0 ? names_near(&asked->lists.words, 0, asked->lists.words.size, 0, names->of[i]) : NULL;
        if (list < 0) return fail("'%s' has no list '%.100s'%s%s%s", asked->file, names->of[i], DID_YOU_MEAN(near));
        asked->chosen[i] = (uint64_t)list;
    }
    return asked->file ? check_lists(asked) : 0;
}

/* Reads --candidates, one item on each line. *rows: their rows, which the caller frees. */
static int read_candidates(const struct asked *asked, struct list_candidates *candidates, uint64_t **rows) {
    const char *path = asked->candidates;
    uint64_t capacity = 0, unknown = 0;
    struct lines lines;
    char *text = lines_open(&lines, path);
    int result = text ? 0 : -1;
    while (!result && lines_next(&lines)) {
        const char *item = lines.line;
        uint64_t length = trim(&item, (uint64_t)(lines.stop - lines.line));
        int64_t row = length ? find_item(asked, item, length) : -1;
        int is_item = model_is_item(&asked->model, (uint64_t)row);
        unknown += length && !is_item;
        if (!is_item) continue;
        result = mem_grow(rows, &capacity, candidates->count + 1, sizeof **rows, "candidates");
        if (!result) (*rows)[candidates->count++] = (uint64_t)row;
    }
    free(text);
    candidates->rows = *rows;
    if (!result && !candidates->count) return fail("'%s' has no item that '%s' knows; wanted one a line", path, asked->model.directory);
    if (!result && unknown)
        warn("%" PRIu64 " candidates of '%s' are no items of '%s' and are left out", unknown, path, asked->model.directory);
    return result;
}

static int recommend_lists(struct asked *asked, const struct arguments *arguments, const struct config *config) {
    struct list_scores scores = {.model = NULL};
    struct list_candidates candidates = {.first = asked->among, .only_new = asked->only_new};
    struct progress progress;
    OWNED uint64_t *rows = NULL;
    if (asked->file ? take_file(asked, arguments) : asked->items.count ? take_given(asked) : take_trained(asked)) return -1;
    if (choose_lists(asked)) return -1;
    if (!asked->items.count) names_locate_lists(&asked->lists, &asked->model);
    struct list_question question = {.starts = asked->known.starts,
                                     .codes = asked->known.codes,
                                     .rows = asked->items.count ? NULL : asked->lists.row,
                                     .lists = asked->chosen,
                                     .count = asked->count,
                                     .k = asked->k,
                                     .seen = asked->seen};
    progress_start(&progress, "recommending", LIVE_SECONDS);
    if (!isatty(STDOUT_FILENO)) question.progress = &progress; /* on a terminal, answers and the progress line would mix */
    int result = (asked->candidates && read_candidates(asked, &candidates, &rows)) ||
                         list_scores_open(&scores, &asked->model, asked->score, &candidates, config) ||
                         list_scores_ask(&scores, &question, print_answer, asked)
                     ? -1 : 0;
    if (question.progress) progress_end(&progress);
    list_scores_close(&scores);
    return result;
}

static int check_asked(const struct asked *asked, const char *score, const char *among, const char *features, int given) {
    if (given != 1) return fail_usage("recommend wants one run directory, %d given; see 'sptx-w2v help recommend'", given);
    if (asked->heads.count && asked->tails.count)
        return fail_usage("recommend: --head = '%.100s' and --tail = '%.100s' are both given; wanted one of them, and --relation=R: the other one is "
                          "asked for (score --triples=FILE judges whole triples)", asked->heads.of[0], asked->tails.of[0]);
    if (!asked->relation != !(asked->heads.count + asked->tails.count))
        return fail_usage("recommend wants --relation=R with --head=X, which asks for tails, or with --tail=Y, which asks for heads");
    if (asked->relation && (score || among || asked->candidates || features))
        return fail_usage("recommend: --score, --among, --candidates and --item-features are for lists, not for triples (--relation)");
    if (!!asked->file + !!asked->items.count + !!asked->trained.count + !!asked->relation != 1)
        return fail_usage("recommend wants either --lists=FILE, --list=NAME, --items=A,B,.. or, of triples, --relation=R; see 'sptx-w2v "
                          "help recommend'");
    if (asked->candidates && among)
        return fail_usage("recommend wants either --among=N or --candidates=FILE; see 'sptx-w2v help recommend'");
    if (asked->named.count && !asked->file)
        return fail_usage("recommend: --name = '%.100s' is a list of a file; wanted --lists=FILE, too, or --list=NAME "
                          "for one that the run was trained on",
                          asked->named.of[0]);
    if (asked->format && !asked->file)
        return fail_usage("recommend: --format is how a file is read; wanted --lists=FILE, too");
    return 0;
}

/* sptx-w2v recommend RUN --lists=FILE [--format=F] [--name=LIST ...] | --list=NAME ... | --items=A,B,... | --head=X ... --relation=R |
 * --tail=Y ... --relation=R [--k=20] [--score=SCORE] [--titles=FILE] [--among=N|new | --candidates=FILE] [--item-features=FILE]
 * [--list-features=FILE] [--feature-words=COLUMNS] [--new-share=S] [--seen] [--json] */
int cmd_recommend(int argc, char **argv) {
    struct asked asked = {.k = 0};
    const char *k_text = NULL, *score_name = NULL, *titles = NULL, *among = NULL, *new_share = NULL;
    struct features_asked features = {.share = FEATURES_AUTO};
    const struct option options[] = {{.name = "lists", .text = &asked.file},
                                     {.name = "format", .text = &asked.format},
                                     {.name = "name", .texts = asked.named.of, .count = &asked.named.count},
                                     {.name = "list", .texts = asked.trained.of, .count = &asked.trained.count},
                                     {.name = "candidates", .text = &asked.candidates},
                                     {.name = "items", .texts = asked.items.of, .count = &asked.items.count},
                                     {.name = "head", .texts = asked.heads.of, .count = &asked.heads.count},
                                     {.name = "tail", .texts = asked.tails.of, .count = &asked.tails.count},
                                     {.name = "relation", .text = &asked.relation},
                                     {.name = "k", .text = &k_text},
                                     {.name = "score", .text = &score_name},
                                     {.name = "titles", .text = &titles},
                                     {.name = "among", .text = &among},
                                     {.name = "item-features", .text = &features.path}, {.name = "list-features", .text = &features.lists},
                                     {.name = "feature-words", .text = &features.words}, {.name = "new-share", .text = &new_share},
                                     {.name = "seen", .flag = &asked.seen},
                                     {.name = "json", .flag = &asked.json},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    uint64_t k = 20;
    int result = -1;
    if (arguments_read(&arguments, "recommend", argc, argv, options, "device, memory, corpus")) goto out;
    if (arguments_share("recommend", "new-share", new_share, &features.share)) goto out;
    if (check_asked(&asked, score_name, among, features.path, arguments.count)) goto out;
    for (int i = 0; !asked.file && i < arguments.setting_count; i++)
        if (!strncmp(arguments.settings[i], "--corpus.", strlen("--corpus."))) {
            fail_usage("recommend: %.100s says how a file of lists is read; wanted --lists=FILE, too", arguments.settings[i]);
            goto out;
        }
    if (arguments_config_beside(&config, &arguments) || model_open(&asked.model, arguments.given[0])) goto out;
    if (arguments_number("recommend", "k", k_text, 1, MOST_ANSWERS, &k) ||
        (!(asked.only_new = among && !strcmp(among, "new")) && arguments_number("recommend", "among", among, 0, UINT32_MAX, &asked.among)))
        goto out;
    int score = asked.relation ? 0 : answers_score_named(&asked.model, score_name, !asked.items.count, (unsigned)config.device_threads);
    if (score < 0 || (!asked.relation && list_scores_features(&asked.model, &features, (enum list_score)score, (unsigned)config.device_threads)) ||
        (titles && titles_read(&asked.titles, &asked.model, titles))) goto out;
    asked.k = (uint32_t)(k < model_end(&asked.model) ? k : model_end(&asked.model));
    asked.score = (enum list_score)score;
    result = asked.relation ? recommend_triples(&asked, &config) : recommend_lists(&asked, &arguments, &config);
out:
    json_release(&asked.text);
    titles_release(&asked.titles);
    free(asked.chosen);
    names_release(&asked.lists);
    list_items_release(&asked.known);
    model_close(&asked.model);
    return result;
}
