#include "list_scores.h"

#include "base/memory.h"
#include "base/report.h"
#include "corpus/fields.h"
#include "known.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- items of lists that are asked for ---- */

struct list_item {
    uint64_t list, code;
};

/* The state of reading lists. */
struct taking {
    struct list_items *items;
    const struct model *model;
    struct names *lists, *unknown;
    int64_t list; /* number of the current list; -1: the current list is skipped */
};

static int take_field(void *user, const struct corpus_field *field) {
    struct taking *taking = user;
    struct list_items *items = taking->items;
    if (field->part == PART_NAME && items->met) {
        taking->list = names_find(taking->lists, field->text, field->length);
        if (taking->list >= 0) items->met[taking->list] = 1;
        return 0;
    }
    if (field->part == PART_NAME) return (taking->list = names_add(taking->lists, field->text, field->length)) < 0 ? -1 : 0;
    if (taking->list < 0) return 0;
    int64_t row = model_named(taking->model, field->text, field->length);
    uint64_t code = row < 0 ? model_end(taking->model) : (uint64_t)row;
    if (row < 0 && taking->unknown) {
        int64_t number = names_add(taking->unknown, field->text, field->length);
        if (number < 0) return -1;
        code += (uint64_t)number;
    }
    if (mem_grow(&items->item, &items->capacity, items->count + 1, sizeof *items->item, "items of lists")) return -1;
    items->item[items->count++] = (struct list_item){(uint64_t)taking->list, code};
    return 0;
}

/* Sorts the items by list; items of the same list keep their order. */
static int group(struct list_items *items, uint64_t lists) {
    items->starts = mem_zalloc(lists + 2, sizeof *items->starts, "items of lists");
    items->codes = mem_alloc(items->count, sizeof *items->codes, "items of lists");
    if (!items->starts || !items->codes) return -1;
    for (uint64_t i = 0; i < items->count; i++) items->starts[items->item[i].list + 2]++;
    for (uint64_t list = 0; list < lists; list++) items->starts[list + 2] += items->starts[list + 1];
    for (uint64_t i = 0; i < items->count; i++) items->codes[items->starts[items->item[i].list + 1]++] = items->item[i].code;
    free(items->item);
    items->item = NULL;
    return 0;
}

int list_items_read(struct list_items *items, const char *path, const struct gathered *data, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, int add, struct names *unknown) {
    struct taking taking = {.items = items, .model = model, .lists = lists, .unknown = unknown, .list = -1};
    struct corpus_options options = *reading; /* unlike a corpus, each line begins with a name, and items have no weights */
    options.pair_weights = PAIR_WEIGHTS_NONE;
    options.path = path;
    if (!corpus_formats[options.format].names) options.format = FORMAT_LISTS;
    *items = (struct list_items){.count = 0};
    if (!add && !(items->met = mem_zalloc(lists->words.size + 1, 1, "lists"))) return -1;
    return asked_read(path, data, &options, take_field, &taking) || group(items, lists->words.size) ? -1 : 0;
}

void list_items_release(struct list_items *items) {
    mem_free(items->item, items->starts, items->codes, items->met);
    *items = (struct list_items){.count = 0};
}

static const struct {
    const char *name;
    enum model_view list, item; /* list: view whose rows are averaged to make a list's query; item: view whose rows are searched */
    enum search_metric metric;  /* with cosine, rows of both views are scaled to length 1 first */
} kinds[LIST_SCORES] = {
    [LIST_SCORE_TARGET] = {"target", VIEW_TARGET, VIEW_TARGET, METRIC_COSINE},
    [LIST_SCORE_CONTEXT] = {"context", VIEW_TARGET, VIEW_CONTEXT, METRIC_DOT},
    [LIST_SCORE_CONTEXT_COSINE] = {"context-cosine", VIEW_TARGET, VIEW_CONTEXT, METRIC_COSINE},
    [LIST_SCORE_NORMSUM] = {"normsum", VIEW_NORMSUM, VIEW_NORMSUM, METRIC_COSINE},
    [LIST_SCORE_SUM] = {"sum", VIEW_SUM, VIEW_SUM, METRIC_COSINE},
    [LIST_SCORE_PROPAGATED] = {"propagated", VIEW_PROPAGATED, VIEW_PROPAGATED, METRIC_COSINE},
    [LIST_SCORE_CONTEXT_CONTEXT] = {"context-context", VIEW_CONTEXT, VIEW_CONTEXT, METRIC_COSINE},
    /* Scores by lists' own rows. Their `list` view is only for lists that have no row and are not folded in: the query is the mean of their items'
     * rows in it. */
    [LIST_SCORE_USER] = {"user", VIEW_CONTEXT, VIEW_CONTEXT, METRIC_DOT},
    [LIST_SCORE_USER_COSINE] = {"user-cosine", VIEW_CONTEXT, VIEW_CONTEXT, METRIC_COSINE},
};

const char *list_score_name(enum list_score score) {
    return kinds[score].name;
}

const char *list_score_said(enum list_score score, int folded) {
    return !folded ? kinds[score].name : score == LIST_SCORE_USER ? "user folded" : "user-cosine folded";
}

int list_score_named(const char *name) {
    char wanted[256] = "";
    for (int i = 0; i < LIST_SCORES; i++) {
        if (!strcmp(name, kinds[i].name)) return i;
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s",
                 !i ? "" : i + 1 < LIST_SCORES ? ", " : " or ", kinds[i].name);
    }
    return fail_usage("'%.100s' is not a score of lists; wanted %s", name, wanted);
}

int list_score_of_users(enum list_score score) {
    return score == LIST_SCORE_USER || score == LIST_SCORE_USER_COSINE;
}

int list_score_folds(const struct model *model, enum list_score score, int64_t row) {
    return row < 0 && list_score_of_users(score) && fold_in_is_for(model);
}

enum list_score list_score_of_view(enum model_view view) {
    enum list_score score = LIST_SCORE_TARGET;
    for (int i = 0; i < LIST_SCORES; i++)
        if (kinds[i].metric == METRIC_COSINE && kinds[i].list == view && kinds[i].item == view && !list_score_of_users(i))
            score = (enum list_score)i;
    return score;
}

int list_scores_open(struct list_scores *scores, const struct model *model, enum list_score score,
                     const struct list_candidates *candidates, const struct config *config) {
    enum search_metric metric = kinds[score].metric;
    uint64_t items = model_items(model), first = candidates->first, count = 0; /* rows of lists and relations are never recommended */
    int has_relations = 0; /* 1: some of the items' rows are relations */
    *scores = (struct list_scores){.model = model, .score = score, .threads = config ? (unsigned)config->device_threads : 0};
    if (run_lists_check(model)) return -1;
    uint64_t added = model->added.names.size;
    if (first && first < items) items = first;
    for (uint64_t row = 0; row < items; row++) has_relations |= !model_is_item(model, row);
    if (!candidates->rows && (first || !added) && !candidates->only_new && !has_relations)
        return search_open(&scores->search, model, kinds[score].item, metric, items, config);
    scores->chosen = candidates->rows || candidates->only_new || has_relations; /* otherwise a trained item's number among candidates is its row */
    scores->candidates = mem_alloc(candidates->rows ? candidates->count : items + added, sizeof *scores->candidates, "candidates");
    if (!scores->candidates) return -1;
    for (uint64_t i = 0; i < candidates->count && candidates->rows; i++)
        if (model_is_item(model, candidates->rows[i]))
            scores->candidates[count++] = (uint32_t)candidates->rows[i];
    for (uint64_t i = 0; i < items && !candidates->rows && !candidates->only_new; i++)
        if (model_is_item(model, i)) scores->candidates[count++] = (uint32_t)i;
    for (uint64_t i = 0; i < added && !candidates->rows; i++) scores->candidates[count++] = (uint32_t)(model->rows + i);
    count = search_distinct(scores->candidates, count);
    if (!count && candidates->only_new)
        return fail("'%s' has no new items: those are items of corpus.item_features or --item-features=FILE that it was not trained on",
                    model->directory);
    if (!count) return fail("none of the %" PRIu64 " candidates is an item of '%s'", candidates->count, model->directory);
    float *base = model_matrix_of(model, kinds[score].item, scores->candidates, count, metric == METRIC_COSINE);
    for (uint64_t i = 0; i < count && base && model->content.weight > 0; i++)
        for (uint32_t c = 0; c < model->dim && scores->candidates[i] >= model->rows; c++) base[i * model->dim + c] *= model->content.longer;
    return search_over(&scores->search, base, count, model->dim, metric, config);
}

int list_scores_features(struct model *model, const struct features_asked *asked, enum list_score score, unsigned threads) {
    struct features_asked of = *asked;
    of.content = 1;
    return features_open_of(model, &of, kinds[score].item, kinds[score].metric == METRIC_COSINE, threads);
}

void list_scores_close(struct list_scores *scores) {
    fold_in_close(&scores->fold); /* closed first, since it uses the backend of the search */
    search_close(&scores->search);
    if (scores->pool) pool_close(scores->pool);
    free(scores->candidates);
    scores->candidates = NULL, scores->pool = NULL;
    graph_close(&scores->graph);
}

/* ---- asking ---- */

struct asking {
    struct list_scores *scores;
    const struct list_question *question;
    list_answer *answer;
    void *user;
    struct fold_list *folds; /* [folded] the lists of the current block whose rows are folded in */
    uint64_t folded, folds_capacity, also_capacity;
    int64_t *also; /* [folded] row of a new list with features (features.h), to be mixed with the folded one; -1: none */
    float *row; /* [dim] buffer for one item's row */
    uint32_t *ids; /* [k] if there are candidates: the found rows, as rows of the model */
};

static int64_t row_of_list(const struct list_question *question, uint64_t list) {
    return question->rows ? question->rows[list] : -1;
}

/* Makes a list's query: its own row, or the mean of its items' rows (zeros if no item is known). If the score uses lists' rows and examples.own is
 * below 1, both are mixed as in training. */
static int ask_list(struct asking *asking, uint64_t list, float *query) {
    const struct list_question *question = asking->question;
    const struct model *model = asking->scores->model;
    int users = list_score_of_users(asking->scores->score), means = users && model->own < 1;
    int unit = !means && asking->scores->search.metric == METRIC_COSINE;
    enum model_view view = means ? VIEW_TARGET : kinds[asking->scores->score].list;
    uint64_t known = 0;
    int64_t named = row_of_list(question, list);
    memset(query, 0, model->dim * sizeof *query);
    for (uint64_t at = question->starts[list]; at < question->starts[list + 1]; at++) {
        if (question->codes[at] >= model_end(model)) continue;
        if (model_row(model, view, question->codes[at], unit, asking->row)) return -1;
        for (uint32_t column = 0; column < model->dim; column++) query[column] += asking->row[column];
        known++;
    }
    for (uint32_t column = 0; known && column < model->dim; column++) query[column] /= (float)known;
    if (named < 0 || !users) return 0;
    float own = known ? (float)model->own : 1;
    if (model_row(model, VIEW_TARGET, (uint64_t)named, 0, asking->row)) return -1;
    for (uint32_t i = 0; i < model->dim; i++) query[i] = own < 1 ? own * asking->row[i] + (1 - own) * query[i] : asking->row[i];
    return 0;
}

/* Bans a row from a list's answer; with around = 1 also the row's neighbours in the run's graph. */
static int ban_row(const struct asking *asking, struct search_block *block, uint64_t row, int around) {
    const struct graph *graph = &asking->scores->graph;
    uint64_t first = around && graph->nodes ? graph->starts[row] : 0, end = around && graph->nodes ? graph->starts[row + 1] : 0;
    return search_ban(block, &(uint32_t){(uint32_t)row}, 1) || search_ban(block, graph->neighbours + first, end - first) ? -1 : 0;
}

/* Bans what must not be recommended to a list: its items, and the item with the list's name, if there is one. */
static int ban(const struct asking *asking, struct search_block *block, uint64_t list) {
    const struct list_question *question = asking->question;
    const struct list_scores *scores = asking->scores;
    int64_t named = row_of_list(question, list);
    int is_node = named >= 0 && (uint64_t)named < model_items(scores->model); /* 1: ban its neighbours, not its items' */
    uint64_t first = block->banned_starts[block->filled], *end = &block->banned_starts[block->filled + 1], kept = first;
    for (uint64_t at = question->starts[list]; at < question->starts[list + 1]; at++)
        if (question->codes[at] < model_end(scores->model) &&
            ban_row(asking, block, question->codes[at], !is_node && question->codes[at] < scores->model->rows))
            return -1;
    if (is_node && ban_row(asking, block, (uint64_t)named, 1)) return -1;
    *end = first + search_distinct(block->banned + first, *end - first);
    for (uint64_t i = first; scores->candidates && i < *end; i++) { /* their numbers among the candidates */
        const uint32_t *at = bsearch(&block->banned[i], scores->candidates, scores->search.rows, sizeof *at, mem_by_id);
        if (at) block->banned[kept++] = (uint32_t)(at - scores->candidates);
    }
    if (scores->candidates) *end = kept;
    return 0;
}

static uint64_t list_at(const struct list_question *question, uint64_t i) {
    return question->lists ? question->lists[i] : i;
}

static int fill_list(void *user, uint64_t i, float *query, struct search_block *block) {
    struct asking *asking = user;
    const struct list_question *question = asking->question;
    uint64_t list = list_at(question, i), start = question->starts[list], end = question->starts[list + 1], trained = start;
    uint64_t rows = asking->scores->model->rows;
    while (trained < end && question->codes[trained] >= rows && question->codes[trained] < model_end(asking->scores->model)) trained++;
    int64_t row = row_of_list(question, list);
    int also = row >= (int64_t)model_end(asking->scores->model) && end > start; /* a new list with features and items: both tell what suits it */
    int all_new = end > start && trained == end; /* such a list cannot be folded in: its query is the mean of its items */
    if (all_new || !list_score_folds(asking->scores->model, asking->scores->score, also ? -1 : row)) {
        if (ask_list(asking, list, query)) return -1;
    } else {
        if (mem_grow(&asking->folds, &asking->folds_capacity, asking->folded + 1, sizeof *asking->folds, "new lists") ||
            mem_grow(&asking->also, &asking->also_capacity, asking->folded + 1, sizeof *asking->also, "new lists"))
            return -1;
        asking->also[asking->folded] = also ? row : -1;
        asking->folds[asking->folded++] = (struct fold_list){question->codes + start, end - start, query};
    }
    return question->seen ? 0 : ban(asking, block, list);
}

int list_scores_fold(struct list_scores *scores, const struct fold_list *lists, uint64_t count) {
    if (!count) return 0;
    if (!scores->fold.model && fold_in_open(&scores->fold, scores->model, scores->search.ops, scores->search.backend, scores->threads))
        return -1;
    return fold_in_solve(&scores->fold, lists, count);
}

/* Folds in all new lists of the block by one call. */
static int fold_lists(void *user, uint64_t first, uint64_t count) {
    struct asking *asking = user;
    uint64_t folded = asking->folded;
    asking->folded = 0;
    if (list_scores_fold(asking->scores, asking->folds, folded)) return -1;
    const struct model *model = asking->scores->model;
    for (uint64_t i = 0; i < folded; i++) {
        const struct fold_list *fold = &asking->folds[i];
        double squares[2] = {1e-30, 1e-30};
        if (asking->also[i] < 0) continue;
        if (model_row(model, VIEW_TARGET, (uint64_t)asking->also[i], 0, asking->row)) return -1;
        for (uint32_t c = 0; c < model->dim; c++)
            squares[0] += (double)fold->row[c] * fold->row[c], squares[1] += (double)asking->row[c] * asking->row[c];
        float by = (float)(FEATURES_ITEMS / (double)fold->count * sqrt(squares[0] / squares[1]));
        for (uint32_t c = 0; c < model->dim; c++) fold->row[c] += by * asking->row[c];
    }
    return 0;
}

/* Adds content (features.h) to the scores of a block's answers. */
static int mix_block(void *user, uint64_t first, const struct search_block *block) {
    const struct asking *asking = user;
    struct list_scores *scores = asking->scores;
    const struct list_question *question = asking->question;
    if (!(scores->model->content.weight > 0)) return 0;
    OWNED uint64_t *starts = mem_alloc(block->filled, 2 * sizeof *starts, "lists");
    if (!starts || (!scores->pool && !(scores->pool = pool_open(scores->threads)))) return -1;
    for (uint64_t i = 0; i < 2 * block->filled; i++)
        starts[i] = question->starts[list_at(question, first + i % block->filled) + i / block->filled]; /* first all starts, then all ends */
    struct features_mixed mixed = {.model = scores->model, .search = &scores->search, .rows = scores->candidates, .codes = question->codes,
                                   .starts = starts, .ends = starts + block->filled, .block = block, .k = question->k};
    return features_mix(&mixed, scores->pool);
}

static int take_list(void *user, uint64_t i, const struct search_found *place) {
    const struct asking *asking = user;
    const struct list_question *question = asking->question;
    const uint32_t *candidates = asking->scores->candidates;
    struct search_found found = *place;
    for (uint32_t j = 0; candidates && j < question->k; j++) asking->ids[j] = found.ids[j] == DRAW_NONE ? DRAW_NONE : candidates[found.ids[j]];
    if (candidates) found.ids = asking->ids;
    if (asking->scores->chosen) found.banned_count = 0;
    if (question->progress) progress_show(question->progress, i + 1, question->count, "lists");
    return asking->answer(asking->user, list_at(question, i), &found);
}

int list_scores_ask(struct list_scores *scores, const struct list_question *question, list_answer *answer, void *user) {
    static const struct search_calls calls = {.fill = fill_list, .ready = fold_lists, .answered = mix_block, .take = take_list};
    struct asking asking = {.scores = scores, .question = question, .answer = answer, .user = user};
    asking.row = mem_alloc(scores->model->dim, sizeof *asking.row, "a row");
    asking.ids = scores->candidates ? mem_alloc(question->k, sizeof *asking.ids, "answers") : NULL;
    int result = asking.row && (asking.ids || !scores->candidates) ? 0 : -1;
    if (!result && !question->seen && !scores->graph.nodes && run_has_graph(scores->model)) { /* neighbours must be banned */
        ENDED_BY(pool_end) struct pool *pool = pool_open(scores->threads);
        result = pool ? run_graph_open(&scores->graph, scores->model, pool) : -1;
    }
    if (!result) result = search_each(&scores->search, question->count, question->k, &calls, &asking);
    mem_free(asking.row, asking.ids, asking.folds, asking.also);
    return result;
}

/* ---- the defaults of questions ---- */

enum { SPREAD_AT_ONCE = 1 << 22 }; /* most nodes and arcs of a graph for which `propagated` is the default table: computing it then takes up to 5 s
                                    * on two cores */

/* Returns the default table (enum model_view), or -1 after fail(). */
static int default_view(const struct model *model) {
    if (model->vocab.lists) return model->documents && model->item_targets ? VIEW_TARGET : VIEW_CONTEXT;
    if (model->mode == MODE_ADJACENCY || model->mode == MODE_COUNTS) return VIEW_SUM;
    if (!run_has_graph(model)) return VIEW_TARGET;
    int within = run_graph_within(model, SPREAD_AT_ONCE);
    return within < 0 ? -1 : within ? VIEW_PROPAGATED : VIEW_NORMSUM;
}

enum list_score answers_score(const struct model *model, int named) {
    if (model->tree) return LIST_SCORE_TARGET;
    if (model->vocab.lists) return model->cosine ? LIST_SCORE_USER_COSINE : LIST_SCORE_USER;
    if (model->mode == MODE_ADJACENCY || model->mode == MODE_COUNTS) return named ? LIST_SCORE_USER : LIST_SCORE_SUM;
    if (model->mode == MODE_WALK) return named ? LIST_SCORE_USER : LIST_SCORE_CONTEXT;
    return model->cosine ? LIST_SCORE_CONTEXT_COSINE : LIST_SCORE_TARGET;
}

uint64_t answers_rows(const struct model *model, int lists) {
    uint64_t items = model_items(model);
    if (!lists && !items) fail("'%s' has no row but those of lists; wanted items", model->directory);
    if (lists && !model->vocab.lists && config_walks_triples(&model->keys))
        fail("'%s' was trained on walks over triples: its relations are words, which are answers without --lists (lists=True), too",
             model->directory);
    else if (lists && !model->vocab.lists)
        fail("no list has a row in '%s': lists have some with examples.mode = user", model->directory);
    return !lists ? items : model->vocab.lists && !model_check_list(model, items) ? model->rows : 0;
}

/* Prepares a table. Only `propagated` needs work, at its first use: each node's row of `normsum` (unit target row + unit context row) is spread
 * over the graph, by the backend that trained the run, or by the CPU if this machine lacks that backend. Fails also for context rows that do not
 * belong to words. */
static int make_view(struct model *model, enum model_view view, unsigned threads) {
    const struct backend_ops *named = config_named_backend(&model->keys), *ops = named ? named : backend_best();
    ENDED_BY(graph_close) struct graph graph = {0};
    if (view == VIEW_CONTEXT && model->tree)
        return fail("'%s' was trained with train.loss = hierarchical: its context rows are nodes of a tree, and no word has one; ask the "
                    "table target",
                    model->directory);
    if (view != VIEW_PROPAGATED || model->propagated) return 0;
    ENDED_BY(pool_end) struct pool *pool = pool_open(threads);
    float *rows = pool && !run_graph_open(&graph, model, pool) ? model_matrix(model, VIEW_NORMSUM, 0, 0) : NULL;
    if (rows && !propagate(rows, model->dim, &graph, ops->present(NULL, 0) ? ops : backend_without_gpu(), pool))
        model->propagated = rows;
    else
        free(rows);
    return model->propagated ? 0 : -1;
}

uint64_t answers_first(const struct model *model, int lists) {
    return lists && (model->documents || model->relations) ? model_items(model) : 0;
}

void answers_warn_of_tables(const struct model *model, const uint32_t *rows, uint64_t count, enum model_view query, enum model_view among,
                            int lists, enum search_metric metric) {
    if (metric != METRIC_COSINE || !model->vocab.lists || model->relations || model->tree || model->cosine) return;
    if (!rows && !lists && !model->documents) return; /* a caller's vector is most often an item's, for which nothing is to be said */
    for (uint64_t i = 0; i < (rows ? count : 1); i++) {
        if (rows && rows[i] >= model->vocab.size) continue; /* a question without a row */
        int list = !rows || rows[i] >= model_items(model), meets_others = list ? !answers_first(model, lists) : lists;
        if (!meets_others || (model->item_targets && (list ? among : query) == VIEW_TARGET)) continue;
        const char *word = model->documents ? "word" : "item", *other = model->documents ? "document" : "list";
        warn("%s%.100s%s is compared with %ss of '%s': each %s has a context row and each %s a target row, which are trained by their dot product, so "
             "that cosines between them are not those between two %ss; the metric dot ranks as training does%s", rows ? "'" : "a vector that may be of a ",
             rows ? vocab_word(&model->vocab, rows[i], NULL) : other, rows ? "'" : "", list ? word : other, model->directory, word, other, word,
             model->documents && !model->item_targets ? ", and examples.words = yes trains target rows of words, too" : "");
        return;
    }
}

int answers_view_named(struct model *model, const char *name, unsigned threads) {
    int view = name ? model_view_named(name) : default_view(model);
    return view < 0 || make_view(model, (enum model_view)view, threads) ? -1 : view;
}

int answers_score_named(struct model *model, const char *name, int named, unsigned threads) {
    int score = name ? list_score_named(name) : (int)answers_score(model, named);
    return score < 0 || make_view(model, kinds[score].item, threads) ? -1 : score;
}
