#include "handles.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "train/trainer.h"
#include "tune/tune.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum sptx_status sptx_run_open(struct sptx_context *context, const char *path, struct sptx_run **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a run is opened into a pointer; it is NULL"));
    *out = NULL;
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    if (!path || !*path) return leave(context, fail_usage("a run is opened by its path; none was given"));
    struct sptx_run *run = mem_zalloc(1, sizeof *run, "a run");
    if (!run || model_open(&run->model, path)) {
        free(run);
        return leave(context, -1);
    }
    run->context = context;
    run->next = context->runs;
    context->runs = run;
    *out = run;
    return leave(context, 0);
}

static void close_lists(struct sptx_run *run) {
    if (run->recommending) list_scores_close(&run->lists);
    free((void *)run->candidates.rows);
    run->candidates = (struct list_candidates){.first = 0};
    run->recommending = 0;
}

void sptx_run_close(struct sptx_run *run) {
    if (!run) return;
    struct sptx_context *context = run->context;
    struct sptx_run **at = &context->runs;
    while (*at != run) at = &(*at)->next;
    *at = run->next;
    enter(context);
    if (run->searching) search_close(&run->search);
    close_lists(run);
    if (run->inferring) infer_close(&run->infer);
    if (run->answering) triple_answers_close(&run->answers);
    run_lists_close(&run->trained);
    free(run->scored);
    answer_release(&run->answer);
    model_close(&run->model);
    leave(context, 0);
    free(run);
}

uint64_t sptx_run_rows(const struct sptx_run *run) {
    return run ? run->model.rows : 0;
}

uint32_t sptx_run_dim(const struct sptx_run *run) {
    return run ? run->model.dim : 0;
}

const char *sptx_run_word(const struct sptx_run *run, uint64_t row, uint64_t *length) {
    return run && row < model_end(&run->model) ? model_name(&run->model, row, length) : NULL;
}

uint64_t sptx_run_count(const struct sptx_run *run, uint64_t row) {
    return run && row < run->model.rows ? vocab_count(&run->model.vocab, row) : 0;
}

const char *sptx_run_key(struct sptx_run *run, const char *section, const char *key) {
    if (!run || !section || !key) return NULL;
    enter(run->context);
    const struct config_key *found = config_find_key(section, key);
    const char *value = found ? config_text_of(&run->model.keys, found, run->key) : NULL;
    leave(run->context, 0);
    return value;
}

enum sptx_status sptx_run_words(struct sptx_run *run, uint64_t first, uint64_t count, uint64_t *offsets, uint64_t *counts,
                                struct sptx_tokens *words) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    const struct vocab *vocab = &run->model.vocab;
    if (!words || !offsets) return leave(run->context, fail_usage("words and their places go somewhere; a pointer is NULL"));
    if (first > run->model.rows || count > run->model.rows - first)
        return leave(run->context, fail_usage("%llu rows from %llu on are wanted; there are %llu", (unsigned long long)count,
                                              (unsigned long long)first, (unsigned long long)run->model.rows));
    for (uint64_t i = 0; i <= count; i++) offsets[i] = words_offset(&vocab->words, first + i);
    for (uint64_t i = 0; counts && i < count; i++) counts[i] = vocab_count(vocab, first + i);
    *words = (struct sptx_tokens){SPTX_TEXT, 64, vocab->words.bytes, offsets, count};
    return leave(run->context, 0);
}

enum sptx_status sptx_run_buckets(struct sptx_run *run, uint32_t *rows, uint64_t buckets) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    const struct subwords *subwords = &run->model.vocab.subwords;
    if (!rows || !subwords->starts || buckets != (uint64_t)run->model.trained.buckets)
        return leave(run->context, fail_usage("the rows of %llu buckets are wanted, and the run has %llu", (unsigned long long)buckets,
                                              subwords->starts ? (unsigned long long)run->model.trained.buckets : 0));
    memcpy(rows, subwords->row_of, buckets * sizeof *rows);
    return leave(run->context, 0);
}

enum sptx_status sptx_run_find(struct sptx_run *run, const char *word, uint64_t *row) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!word || !row) return leave(run->context, fail_usage("a word and a place for its row are wanted; one is NULL"));
    int64_t found = model_named(&run->model, word, strlen(word));
    const char *prefix = vocab_prefix(&run->model.vocab);
    if (found < 0 && run->model.added_lists.names.size && !strncmp(word, prefix, strlen(prefix))) /* a new list */
        found = run_lists_row(&run->model, word + strlen(prefix), strlen(word) - strlen(prefix));
    if (found >= 0) {
        *row = (uint64_t)found;
        return leave(run->context, 0);
    }
    if (run->model.vocab.lists && vocab_find_list(&run->model.vocab, word, strlen(word)) >= 0)
        return leave(run->context, fail_usage("'%s' is no word of '%s', but a list: '%s%s'", word, run->model.directory, prefix, word));
    const char *near = vocab_near(&run->model.vocab, word);
    return leave(run->context, fail_usage("'%s' is no word of '%s'%s%s%s", word, run->model.directory, DID_YOU_MEAN(near)));
}

enum sptx_status sptx_run_view(struct sptx_run *run, const char *table, struct sptx_view *out) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (check_view(out)) return leave(run->context, -1);
    int target = table && !strcmp(table, "target"), context = table && !strcmp(table, "context");
    if (!target && !context)
        return leave(run->context, fail_usage("a run has the tables 'target' and 'context', not '%s'", table ? table : "NULL"));
    const struct npy *npy = target ? &run->model.target : &run->model.context;
    const struct npy_field *weights = npy_find(npy, "weights");
    const struct sptx_view all = {.data = (float *)(uintptr_t)npy_row(npy, weights, 0), /* drops const; it is read-only */
                                  .first = target ? run->model.state.target_first : 0,
                                  .rows = npy->rows,
                                  .stride = npy->record,
                                  .dim = run->model.dim,
                                  .dtype = weights->kind == 'h' ? SPTX_BFLOAT16 : SPTX_FLOAT32};
    return leave(run->context, give_view(out, &all));
}

uint64_t sptx_run_vector_rows(const struct sptx_run *run) {
    return run ? run->model.rows - (run->model.own == 0 ? run->model.vocab.lists : 0) : 0;
}

uint64_t sptx_run_items(const struct sptx_run *run) {
    return run ? model_items(&run->model) : 0;
}

uint64_t sptx_run_relations(const struct sptx_run *run) {
    return run ? run->model.relations : 0;
}

static int check_row(const struct model *model, uint64_t row) {
    return row < model->rows ? 0 : fail_usage("%" PRIu64 " is no row of a run of %" PRIu64, row, model->rows);
}

enum sptx_status sptx_run_check_trained(struct sptx_run *run, const char *table, uint64_t row) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = answers_view_named(&run->model, table, pool_threads(run->context->pool));
    int result = view < 0 || check_row(&run->model, row) || model_check_row(&run->model, (enum model_view)view, row) ? -1 : 0;
    return leave(run->context, result);
}

enum sptx_status sptx_run_vectors(struct sptx_run *run, const char *table, const uint64_t *rows, uint64_t count, float *out) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (count && !out) return leave(run->context, fail_usage("a place for vectors is wanted; it is NULL"));
    if (check_count(count, "vectors") || check_aligned(rows, sizeof *rows, "rows") || check_aligned(out, sizeof *out, "vectors"))
        return leave(run->context, -1);
    int view = answers_view_named(&run->model, table, pool_threads(run->context->pool)), result = view < 0 ? -1 : 0;
    for (uint64_t i = 0; i < count && !result; i++, out += run->model.dim) {
        uint64_t row = rows ? rows[i] : i;
        result = check_row(&run->model, row) || model_check_list(&run->model, row) ||
                         model_row(&run->model, (enum model_view)view, row, 0, out)
                     ? -1
                     : 0;
    }
    return leave(run->context, result);
}

enum sptx_status sptx_run_unseen(struct sptx_run *run, const char *table, const char *word, float *out) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!word || !out) return leave(run->context, fail_usage("a word and a place for its vector are wanted; one is NULL"));
    if (check_aligned(out, sizeof *out, "vectors")) return leave(run->context, -1);
    int view = answers_view_named(&run->model, table, pool_threads(run->context->pool));
    int made = view < 0 ? -1 : model_unseen(&run->model, (enum model_view)view, word, strlen(word), out);
    if (made == 0) made = fail_usage("'%.100s' has no n-gram with a row in '%s'", word, run->model.directory);
    return leave(run->context, made < 0 ? -1 : 0);
}

/* ---- nearest ---- */

int check_answers(const uint32_t *rows, const float *scores) {
    return check_aligned(rows, sizeof *rows, "rows") || check_aligned(scores, sizeof *scores, "scores") ? -1 : 0;
}

int device_config(const struct sptx_context *context, struct config *config) {
    if (config_init(config) || config_set(config, "device", "backend", context->ops->name, "the context")) return -1;
    config->device_threads = pool_threads(context->pool);
    config->device_index = context->index;
    return 0;
}

int open_search(struct sptx_run *run, const char *table, enum search_metric metric, uint64_t lists) {
    ENDED_BY(config_release) struct config config = {0};
    if (lists > 1) return fail_usage("lists = %" PRIu64 " is neither 0 nor 1", lists);
    int view = answers_view_named(&run->model, table, pool_threads(run->context->pool));
    uint64_t rows = view < 0 ? 0 : answers_rows(&run->model, (int)lists);
    if (!rows) return -1;
    if (run->searching && run->searched == (enum model_view)view && run->search.rows == rows && run->search.metric == metric)
        return 0;
    if (run->searching) search_close(&run->search);
    int result = device_config(run->context, &config) ||
                         search_open(&run->search, &run->model, (enum model_view)view, metric, rows, &config) ? -1 : 0;
    run->search.first = answers_first(&run->model, (int)lists);
    run->searched = (enum model_view)view;
    run->searching = !result;
    return result;
}

enum sptx_status sptx_run_nearest(struct sptx_run *run, const float *queries, uint64_t count,
                                  const struct sptx_nearest_options *given, uint32_t k, uint32_t *rows, float *scores) {
    struct sptx_nearest_options options = SPTX_NEAREST_OPTIONS;
    uint64_t *starts = NULL;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int result = take_options(&options, sizeof options, given);
    if (result || !count || !k) return leave(run->context, result);
    if (!queries || !rows || !scores) return leave(run->context, fail_usage("queries, rows and scores are wanted; one is NULL"));
    int metric = search_metric_named(options.metric ? options.metric : "cosine");
    if (metric < 0 || check_count(count, "queries") || check_aligned(queries, sizeof *queries, "queries") ||
        check_aligned(options.excluded, sizeof *options.excluded, "excluded rows") || check_answers(rows, scores) ||
        (options.excluded && !(starts = mem_alloc(count + 1, sizeof *starts, "queries"))))
        result = -1;
    for (uint64_t i = 0; starts && i <= count; i++) starts[i] = i;
    int view = result ? 0 : answers_view_named(&run->model, options.table, pool_threads(run->context->pool));
    if (!result && view >= 0)
        answers_warn_of_tables(&run->model, options.excluded, count, (enum model_view)view, (enum model_view)view, (int)options.lists,
                               (enum search_metric)metric);
    if (!result)
        result = view < 0 || open_search(run, options.table, (enum search_metric)metric, options.lists) ||
                         search_top(&run->search, queries, count, k, starts, options.excluded, rows, scores)
                     ? -1 : 0;
    free(starts);
    return leave(run->context, result);
}

/* ---- recommend ---- */

/* Opens run->lists. If the last call opened the same, keeps it; to compare, the run has a copy of the candidates. */
static int open_lists(struct sptx_run *run, const char *name, int named, const struct list_candidates *candidates) {
    ENDED_BY(config_release) struct config config = {0};
    const struct list_candidates *last = &run->candidates;
    uint64_t bytes = candidates->rows ? candidates->count * sizeof *candidates->rows : 0, *copy = NULL;
    int score = answers_score_named(&run->model, name, named, pool_threads(run->context->pool));
    if (score < 0) return -1;
    if (run->recommending && run->lists.score == (enum list_score)score && last->first == candidates->first &&
        last->count == candidates->count && last->only_new == candidates->only_new &&
        !last->rows == !candidates->rows && (!bytes || !memcmp(last->rows, candidates->rows, bytes)))
        return 0;
    close_lists(run);
    if (candidates->rows && !(copy = mem_alloc(candidates->count, sizeof *copy, "candidates"))) return -1;
    if (bytes) memcpy(copy, candidates->rows, bytes);
    run->candidates = (struct list_candidates){candidates->first, copy, candidates->count, candidates->only_new};
    int result = device_config(run->context, &config) ||
                         list_scores_open(&run->lists, &run->model, (enum list_score)score, candidates, &config)
                     ? -1 : 0;
    run->recommending = 1;
    if (result) close_lists(run);
    return result;
}

enum sptx_status sptx_run_add_features(struct sptx_run *run, const char *items, const char *lists, const char *words, double share,
                                       uint64_t added[2]) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!added || !(share <= 1)) return leave(run->context, fail_usage("a share of at most 1 and a place for two numbers are wanted"));
    struct model_extra before[3] = {run->model.added, run->model.added_lists, run->model.features};
    struct model_content content = run->model.content, *now = &run->model.content;
    close_lists(run);
    run->model.added = run->model.added_lists = run->model.features = (struct model_extra){.capacity = 0};
    *now = (struct model_content){.items = 0};
    run->model.met_features = 0;
    const struct features_asked asked = {.path = items, .lists = lists, .words = words, .share = share};
    int result = list_scores_features(&run->model, &asked, answers_score(&run->model, 1),
                                      pool_threads(run->context->pool));
    struct model_extra *kept[3] = {&run->model.added, &run->model.added_lists, &run->model.features};
    for (int i = 0; i < 3; i++) { /* a file that is refused leaves the items of an earlier call */
        struct model_extra gone = result ? *kept[i] : before[i];
        if (result) *kept[i] = before[i];
        words_release(&gone.names);
        free(gone.rows);
    }
    struct model_content gone = result ? *now : content;
    if (result) *now = content;
    mem_free(gone.starts, gone.of, gone.part);
    added[0] = run->model.added.names.size, added[1] = run->model.added_lists.names.size;
    return leave(run->context, result);
}

/* One call of sptx_run_recommend(). A list's items are those that the caller gave and, if the list has a name, after them its items in training. */
struct recommending {
    struct sptx_run *run;
    struct list_question question;
    uint64_t *starts, *codes; /* items of all lists, those given and those from training, for `question`; owned; NULL if no list has a name */
    uint64_t count, capacity; /* of `codes`: used and allocated */
    int64_t *own; /* [question.count] row of each list that has a name, or -1; owned; NULL if none has */
    uint32_t *rows;
    float *scores;
};

/* Collects the items of all lists: those given and, of the lists that have a name, their training items. */
static int join_lists(struct recommending *r, const char *const *names) {
    struct list_question *q = &r->question;
    struct sptx_run *run = r->run;
    if (!names) return 0;
    r->starts = mem_zalloc(q->count + 1, sizeof *r->starts, "lists");
    r->own = mem_alloc(q->count, sizeof *r->own, "lists");
    if (!r->starts || !r->own) return -1;
    if (!run->lists_open && run_lists_open(&run->trained, &run->model, run->context->pool)) {
        run_lists_close(&run->trained);
        return -1;
    }
    run->lists_open = 1;
    for (uint64_t i = 0; i < q->count; i++) {
        uint64_t given = q->starts[i + 1] - q->starts[i];
        r->own[i] = -1;
        if (mem_grow(&r->codes, &r->capacity, r->count + given + 1, sizeof *r->codes, "the items of lists")) return -1;
        if (given) memcpy(r->codes + r->count, q->codes + q->starts[i], given * sizeof *r->codes);
        r->count += given;
        if (names[i] && ((r->own[i] = run_lists_find(&run->model, names[i])) < 0 ||
                         run_lists_items(&run->trained, r->own[i], &r->codes, &r->count, &r->capacity)))
            return -1;
        r->starts[i + 1] = r->count;
    }
    q->starts = r->starts;
    q->codes = r->codes;
    q->rows = r->own;
    return 0;
}

static int take_answer(void *user, uint64_t list, const struct search_found *found) {
    struct recommending *r = user;
    const struct list_question *q = &r->question;
    uint64_t known = q->rows && q->rows[list] >= 0 && list_score_of_users(r->run->lists.score), k = q->k;
    for (uint64_t i = q->starts[list]; i < q->starts[list + 1]; i++) known += q->codes[i] < model_end(&r->run->model);
    for (uint64_t i = 0; i < k; i++) {
        r->rows[list * k + i] = known ? found->ids[i] : UINT32_MAX;
        r->scores[list * k + i] = known ? found->scores[i] : -INFINITY;
    }
    return 0;
}

static int check_lists(const struct sptx_run *run, const struct list_question *question) {
    const uint64_t *starts = question->starts, *items = question->codes;
    if (check_count(question->count, "lists") || check_aligned(starts, sizeof *starts, "starts") ||
        check_aligned(items, sizeof *items, "items"))
        return -1;
    for (uint64_t i = 0; i < question->count; i++)
        if (starts[i] > starts[i + 1])
            return fail_usage("starts fall from %" PRIu64 " to %" PRIu64 " at list %" PRIu64, starts[i], starts[i + 1], i);
    for (uint64_t i = starts[0]; i < starts[question->count]; i++)
        if (items[i] < run->model.rows && model_check_list(&run->model, items[i])) return -1;
    return 0;
}

enum sptx_status sptx_run_recommend(struct sptx_run *run, const uint64_t *starts, const uint64_t *items, uint64_t count,
                                       const struct sptx_recommend_options *given, uint32_t k, uint32_t *rows, float *scores) {
    struct sptx_recommend_options options = SPTX_RECOMMEND_OPTIONS;
    struct recommending r = {
        .run = run, .question = {.starts = starts, .codes = items, .count = count, .k = k}, .rows = rows, .scores = scores};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!count || !k) return leave(run->context, 0);
    int result = take_options(&options, sizeof options, given);
    const struct list_candidates candidates = {options.among, options.candidates, options.candidate_count, (int)options.only_new};
    r.question.seen = (int)options.seen;
    if (!result && (!starts || !items || !rows || !scores))
        result = fail_usage("starts, items, rows and scores are wanted; one is NULL");
    else if (!result && options.seen > 1)
        result = fail_usage("seen = %" PRIu64 " is neither 0 nor 1", options.seen);
    else if (!result && (options.only_new > 1 || (options.only_new && (options.candidates || options.among))))
        result = fail_usage("only_new = %" PRIu64 " is 0 or, without candidates and among, 1", options.only_new);
    else if (!result && options.candidates && options.among)
        result = fail_usage("among = %" PRIu64 " and candidates are two choices of rows; wanted one", options.among);
    else if (!result)
        result = (options.candidates && (check_count(options.candidate_count, "candidates") ||
                                         check_aligned(options.candidates, sizeof *options.candidates, "candidates"))) ||
                         check_lists(run, &r.question) || check_answers(rows, scores) || join_lists(&r, options.names) ||
                         open_lists(run, options.score, options.names != NULL, &candidates) ||
                         list_scores_ask(&run->lists, &r.question, take_answer, &r)
                     ? -1 : 0;
    mem_free(r.starts, r.codes, r.own);
    return leave(run->context, result);
}

/* ---- triples ---- */

/* Finds the rows of questions. Fails if a number that the caller gave is not the row of an entity, or of a relation. */
static int take_questions(const struct model *model, const uint64_t *entities, const uint64_t *relations, uint64_t count, int heads,
                          uint32_t *out_entities, uint32_t *out_relations) {
    uint64_t items = model_items(model);
    for (uint64_t i = 0; i < count; i++) {
        int64_t relation = (int64_t)relations[i];
        if (entities[i] >= items)
            return entities[i] < model->rows
                       ? fail_usage("row %" PRIu64 " is that of '%.100s'; wanted an entity's, of which '%s' has 0 to %" PRIu64, entities[i],
                                    vocab_word(&model->vocab, entities[i], NULL), model->directory, items - 1)
                       : fail_usage("%" PRIu64 " is no row of an entity; those of '%s' are 0 to %" PRIu64, entities[i], model->directory, items - 1);
        if (relations[i] < items || relations[i] >= model->rows)
            return fail_usage("%" PRIu64 " is no row of a relation; those of '%s' are %" PRIu64 " to %" PRIu64, relations[i], model->directory,
                              items, model->rows - 1);
        if (heads && (relation = run_triples_reciprocal(model, relation)) < 0) return -1;
        out_entities[i] = (uint32_t)entities[i];
        out_relations[i] = (uint32_t)relation;
    }
    return 0;
}

enum sptx_status sptx_run_answers(struct sptx_run *run, const uint64_t *entities, const uint64_t *relations, uint64_t count,
                                  const struct sptx_answers_options *given, uint32_t k, uint32_t *rows, float *scores) {
    struct sptx_answers_options options = SPTX_ANSWERS_OPTIONS;
    struct config config = {.name = NULL};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int result = take_options(&options, sizeof options, given);
    if (result || !count || !k) return leave(run->context, result);
    if (!entities || !relations || !rows || !scores)
        return leave(run->context, fail_usage("entities, relations, rows and scores are wanted; one is NULL"));
    if (options.heads > 1 || options.seen > 1) return leave(run->context, fail_usage("heads and seen are 0 or 1"));
    if (check_count(count, "questions") || check_aligned(entities, sizeof *entities, "entities") ||
        check_aligned(relations, sizeof *relations, "relations") || check_answers(rows, scores) || run_triples_check(&run->model))
        return leave(run->context, -1);
    OWNED uint32_t *asked = mem_alloc(2 * count, sizeof *asked, "questions");
    result = !asked || take_questions(&run->model, entities, relations, count, (int)options.heads, asked, asked + count) ? -1 : 0;
    if (!result && !run->answering) {
        result = device_config(run->context, &config) || triple_answers_open(&run->answers, &run->model, &config) ? -1 : 0;
        config_release(&config);
        if (result) triple_answers_close(&run->answers);
        run->answering = !result;
    }
    if (!result)
        result = triple_answers_ask(&run->answers, asked, asked + count, count, k, (int)options.seen, run->context->pool, rows, scores);
    return leave(run->context, result);
}

/* ---- infer ---- */

/* Folds lists in, whatever their number: rows [count x dim]. */
static int infer_lists(struct sptx_run *run, const struct list_question *question, float *out) {
    const struct list_candidates all = {.first = 0};
    struct fold_list *lists = mem_alloc(question->count, sizeof *lists, "new lists");
    for (uint64_t i = 0; lists && i < question->count; i++)
        lists[i] = (struct fold_list){question->codes + question->starts[i], question->starts[i + 1] - question->starts[i],
                                      out + i * run->model.dim};
    int result = !lists || open_lists(run, NULL, 0, &all) || list_scores_fold(&run->lists, lists, question->count) ? -1 : 0;
    free(lists);
    return result;
}

enum sptx_status sptx_run_infer(struct sptx_run *run, const uint64_t *starts, const uint64_t *words, uint64_t count,
                                const struct sptx_infer_options *given, float *out) {
    struct sptx_infer_options options = SPTX_INFER_OPTIONS;
    const struct list_question question = {.starts = starts, .codes = words, .count = count};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int result = take_options(&options, sizeof options, given);
    if (result || !count) return leave(run->context, result);
    if (!starts || !words || !out) return leave(run->context, fail_usage("starts, words and a place for rows are wanted; one is NULL"));
    if (check_lists(run, &question) || check_aligned(out, sizeof *out, "rows")) return leave(run->context, -1);
    if (!(options.lr >= 0 && options.lr < 1e6 && options.min_lr >= 0 && options.min_lr <= options.lr))
        result = fail_usage("lr = %g and min_lr = %g; wanted rates of which the second is not above the first", options.lr, options.min_lr);
    else if (options.epochs > UINT32_MAX)
        result = fail_usage("epochs = %" PRIu64 " is above %u", options.epochs, UINT32_MAX);
    else if (!run->model.documents && fold_in_is_for(&run->model)) {
        if (options.epochs || options.lr > 0)
            return leave(run->context, fail_usage("epochs and lr are those of documents; the row of a list is solved by a fixed number of steps"));
        return leave(run->context, infer_lists(run, &question, out));
    } else if (!run->inferring && (result = infer_open(&run->infer, &run->model, run->context->pool)))
        infer_close(&run->infer);
    if (result) return leave(run->context, -1);
    run->inferring = 1;
    const struct infer_passes passes = {options.epochs, options.lr, options.min_lr};
    return leave(run->context, infer_rows(&run->infer, &passes, starts, words, count, out));
}

/* ---- training ---- */

/* The caller's function that is called during training or tuning. */
struct listener {
    struct sptx_context *context;
    sptx_progress_fn *progress;
    void *user;
};

static int hear(void *user, const struct sptx_progress *report) {
    const struct listener *listener = user;
    step_out(listener->context);
    int stop = listener->progress(listener->user, report);
    step_in();
    report_clear(); /* a call that failed in the callback is not why training ends */
    return stop;
}

int set_key(struct config *config, const char *setting) {
    if (!setting) return fail_usage("a setting is NULL");
    uint64_t capacity = strlen(setting) + sizeof "--";
    OWNED char *argument = mem_alloc(capacity, 1, "a setting");
    if (!argument) return -1;
    snprintf(argument, capacity, "--%s", setting);
    int result = config_argument(config, argument, "settings");
    return result > 0 ? fail_usage("'%s' is not of the form section.key=value", setting) : result;
}

int read_keys(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
              uint64_t count) {
    if (count && !settings) return fail_usage("%llu settings at NULL", (unsigned long long)count);
    if (config_init(config) || (path && config_read(config, path))) return -1;
    for (uint64_t i = 0; i < count; i++)
        if (set_key(config, settings[i])) return -1;
    if (config->device_backend == BACKEND_AUTO && config_set(config, "device", "backend", context->ops->name, "the context"))
        return -1;
    if (!config->device_threads) config->device_threads = pool_threads(context->pool);
    return 0;
}

/* Reads and resolves the config of a run. Its device is that of the context unless the config names one. The caller releases it even if this
 * fails. */
static int read_config(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
                uint64_t count) {
    return read_keys(config, context, path, settings, count) || config_resolve(config) ? -1 : 0;
}

const char *sptx_trained(const struct sptx_context *context) {
    return context && context->trained ? context->trained : "";
}

int train(struct sptx_context *context, struct config *config, struct gathered *data, int beginning,
          sptx_progress_fn *progress, void *user) {
    struct listener listener = {context, progress, user};
    struct trainer_options options = {.data = data,
                                      .resume = beginning == SPTX_RESUME,
                                      .overwrite = beginning == SPTX_OVERWRITE,
                                      .keep_signals = 1,
                                      .judge = judge_checkpoint,
                                      .evaluate = evaluate_live,
                                      .hear = progress ? hear : NULL,
                                      .user = &listener};
    if (beginning < SPTX_ANEW || beginning > SPTX_OVERWRITE)
        return fail_usage("beginning = %d is not one of SPTX_ANEW, SPTX_RESUME and SPTX_OVERWRITE", beginning);
    interrupt_flag *before = interrupt_use(&context->stop);
    int result = features_check(config) ? -1 : trainer_run(config, &options);
    interrupt_use(before);
    free(context->trained);
    context->trained = config->run_dir ? mem_text(config->run_dir, strlen(config->run_dir), "a run directory") : NULL;
    return config->run_dir && !context->trained ? -1 : result;
}

enum sptx_status leave_training(struct sptx_context *context, int result) {
    context->stop = 0;
    enum sptx_status status = leave(context, result < 0 ? -1 : 0);
    return result > 0 ? SPTX_STOPPED : status;
}

enum sptx_status sptx_train(struct sptx_context *context, const char *path, const char *const *settings, uint64_t count,
                            int beginning, sptx_progress_fn *progress, void *user) {
    ENDED_BY(config_release) struct config config = {0};
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    int result =
        read_config(&config, context, path, settings, count) ? -1 : train(context, &config, NULL, beginning, progress, user);
    return leave_training(context, result);
}

/* ---- tuning: structs of sptx.h become those of tune/tune.h ---- */

/* Calls the caller's progress function after a training, and asks the search to end if that function says so. */
static void took(void *user, const struct tune_tried *tried) {
    struct listener *listener = user;
    char line[1024];
    struct sptx_progress told = {.size = sizeof told,
                                 .step = tried->trial,
                                 .epoch = tried->epochs,
                                 .loss = tried->score == tried->score ? tried->shown : tried->score,
                                 .seconds = tried->seconds,
                                 .line = line};
    if (!listener->progress) return;
    tune_line(tried, line, sizeof line);
    step_out(listener->context);
    int stop = listener->progress(listener->user, &told);
    step_in();
    report_clear();
    if (stop) listener->context->stop = 1;
}

int tune(struct sptx_context *context, const struct config *config, struct gathered *data,
         const struct sptx_tune_options *given, sptx_progress_fn *progress, void *user, struct sptx_tuned *tuned) {
    struct sptx_tune_options options = SPTX_TUNE_OPTIONS;
    struct listener listener = {context, progress, user};
    if (!tuned) return fail_usage("what is found goes to a struct sptx_tuned; it is NULL");
    if (take_options(&options, sizeof options, given)) return -1;
    if (!(options.minutes >= 0 && options.minutes <= TUNE_MINUTES))
        return fail_usage("minutes = %g is not a number from 0 to %g", options.minutes, TUNE_MINUTES);
    if (options.pair_count > INT_MAX || options.analogy_count > INT_MAX) return fail_usage("so many files cannot be meant");
    if (!context->tuned && !(context->tuned = mem_zalloc(1, sizeof *context->tuned, "what is found"))) return -1;
    const struct tune_request request = {.config = config,
                                         .data = data,
                                         .seconds = 60 * options.minutes,
                                         .trials = options.trials,
                                         .pairs = options.pairs,
                                         .analogies = options.analogies,
                                         .pair_count = (int)options.pair_count,
                                         .analogy_count = (int)options.analogy_count,
                                         .out = options.out,
                                         .took = took,
                                         .user = &listener};
    interrupt_flag *before = interrupt_use(&context->stop);
    int result = tune_run(context->tuned, &request);
    interrupt_use(before);
    const struct tune_answer *a = context->tuned;
    if (!result)
        *tuned = (struct sptx_tuned){.trials = a->trials, .epochs = a->epochs, .score = a->shown, .own = a->own,
                                      .measure = a->measure, .keys = a->keys};
    return result ? -1 : 0;
}

enum sptx_status sptx_tune(struct sptx_context *context, const char *path, const char *const *settings, uint64_t count,
                           const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user,
                           struct sptx_tuned *tuned) {
    ENDED_BY(config_release) struct config config = {0};
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    int result =
        read_keys(&config, context, path, settings, count) ? -1 : tune(context, &config, NULL, options, progress, user, tuned);
    context->stop = 0;
    return leave(context, result);
}
