#include "run_triples.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/triples.h"
#include "kernels/products.h"
#include "run_lists.h"
#include "search.h"

#include <stdlib.h>
#include <string.h>

int run_triples_check(const struct model *model) {
    return model->relations
               ? 0
               : fail("'%s' was not trained on triples (corpus.format = triples), and knows no relations", model->directory);
}

int64_t run_triples_entity(const struct model *model, const char *name) {
    int64_t row = vocab_find(&model->vocab, name, strlen(name));
    if (row >= 0 && (uint64_t)row < model_items(model)) return row;
    const char *near = vocab_near(&model->vocab, name);
    return fail_usage("'%s' knows no entity '%.100s'%s%s%s", model->directory, name, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "");
}

int64_t run_triples_relation(const struct model *model, const char *name) {
    int64_t row = run_lists_row(model, name, strlen(name));
    if (row >= 0) return row;
    const char *near = run_lists_near(model, name);
    return fail_usage("'%s' knows no relation '%.100s'%s%s%s", model->directory, name, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "");
}

int64_t run_triples_reciprocal(const struct model *model, int64_t relation) {
    uint64_t end = model_items(model) + model->relations;
    if (!model->reciprocal)
        return fail_usage(
            "'%s' was trained with triples.reciprocal = no: it answers which tails a head has, not which heads a tail has",
            model->directory);
    return (uint64_t)relation < end ? relation + (int64_t)model->relations : relation - (int64_t)model->relations;
}

int run_triples_query(const struct model *model, uint32_t entity, uint32_t relation, float *out) {
    enum example_product product = model->product;
    uint32_t dim = model->dim;
    float *rows = mem_alloc(2, dim * sizeof *rows, "a question");
    if (!rows || model_row(model, VIEW_TARGET, entity, 0, rows) || model_row(model, VIEW_TARGET, relation, 0, rows + dim)) {
        free(rows);
        return -1;
    }
    for (uint32_t i = 0; i < dim; i++) {
        uint32_t partner = product_partner(product, dim, i);
        int alone = partner == i;
        out[i] = product_value(product_is_imaginary(product, dim, i), rows[i], alone ? 0 : rows[partner], rows[dim + i],
                               alone ? 0 : rows[dim + partner]);
    }
    free(rows);
    return 0;
}

/* ---- triples of files and programs ---- */

/* Finds the rows of terms. */
struct finding {
    const struct model *model;
    struct words relations; /* names of the relations, in the order of their rows */
};

static int open_finding(struct finding *finding, const struct model *model) {
    uint64_t first = model_items(model), length;
    *finding = (struct finding){.model = model};
    for (uint64_t i = 0; i < model->relations; i++) {
        const char *name = vocab_word(&model->vocab, first + i, &length) + strlen(VOCAB_RELATION);
        length -= strlen(VOCAB_RELATION);
        if (words_add(&finding->relations, words_hash(name, length), name, length) < 0) return -1;
    }
    return 0;
}

static uint32_t find_term(const struct finding *finding, int term, const char *name, uint64_t length) {
    uint64_t items = model_items(finding->model);
    if (term == TRIPLE_RELATION) {
        int64_t number = words_find(&finding->relations, words_hash(name, length), name, length);
        return number < 0 ? WORDS_ABSENT : (uint32_t)(items + (uint64_t)number);
    }
    int64_t row = vocab_find(&finding->model->vocab, name, length);
    return row < 0 || (uint64_t)row >= items ? WORDS_ABSENT : (uint32_t)row;
}

static int take_lines_of(const struct finding *finding, const struct corpus_block *block, triple_take *take, void *user) {
    struct corpus_cursor cursor;
    struct triple_line triple;
    uint32_t rows[TRIPLE_TERMS];
    int more;
    corpus_cursor_start(&cursor, block);
    while ((more = triples_next(&cursor, block, &triple)) > 0) {
        for (int i = 0; i < TRIPLE_TERMS; i++) rows[i] = find_term(finding, i, triple.term[i], triple.length[i]);
        if (take(user, rows)) return -1;
    }
    return more;
}

static int take_corpus(const struct finding *finding, struct corpus *corpus, const char *path, const struct look_keys *look,
                       triple_take *take, void *user) {
    const struct corpus_options options = {.format = FORMAT_TRIPLES, .look = *look};
    struct corpus_block block = {0};
    int more;
    if (corpus_stream(corpus)) return fail("'%s' is an id stream; wanted lines of head, relation, tail", path);
    corpus_read_as(corpus, &options);
    while ((more = corpus_next(corpus, &block)) > 0)
        if ((more = take_lines_of(finding, &block, take, user)) < 0) break;
    corpus_block_release(&block);
    return more;
}

int run_triples_read(const struct model *model, const char *path, const struct look_keys *look, triple_take *take, void *user) {
    char *paths[] = {(char *)path};
    struct finding finding;
    struct corpus *corpus = corpus_open(paths, 1);
    int result = !corpus ? -1 : open_finding(&finding, model) || take_corpus(&finding, corpus, path, look, take, user) ? -1 : 0;
    if (corpus) words_release(&finding.relations);
    corpus_close(corpus);
    return result;
}

int run_triples_gathered(const struct model *model, const struct gathered *data, triple_take *take, void *user) {
    struct finding finding;
    int result = open_finding(&finding, model);
    for (uint64_t i = 0; !result && i < data->named; i++) {
        uint64_t length[TRIPLE_TERMS];
        const char *const term[TRIPLE_TERMS] = {words_get(&data->items.words, data->ids[2 * i], &length[TRIPLE_HEAD]),
                                                words_get(&data->lists.words, data->names[i], &length[TRIPLE_RELATION]),
                                                words_get(&data->items.words, data->ids[2 * i + 1], &length[TRIPLE_TAIL])};
        uint32_t rows[TRIPLE_TERMS];
        for (int j = 0; j < TRIPLE_TERMS; j++) rows[j] = find_term(&finding, j, term[j], length[j]);
        result = take(user, rows);
    }
    words_release(&finding.relations);
    return result;
}

/* ---- known answers ---- */

/* An answer to the question of this index. */
struct known_pair {
    uint32_t question, answer;
};

int known_answers_begin(struct known_answers *known, const struct model *model, uint64_t *questions, uint64_t count) {
    *known = (struct known_answers){.model = model, .questions = questions};
    if (count >= UINT32_MAX) return fail("%llu questions of triples are more than 32 bits can number", (unsigned long long)count);
    qsort(questions, count, sizeof *questions, search_by_place);
    for (uint64_t i = 0; i < count; i++)
        if (!i || questions[i] != questions[i - 1]) questions[known->count++] = questions[i];
    known->asked = mem_zalloc(model_items(model) / 8 + 1, 1, "the entities that are asked for");
    for (uint64_t i = 0; known->asked && i < known->count; i++) {
        uint32_t entity = (uint32_t)(questions[i] >> 32);
        known->asked[entity / 8] |= (uint8_t)(1 << entity % 8);
    }
    return known->asked ? 0 : -1;
}

int64_t known_answers_find(const struct known_answers *known, uint32_t entity, uint32_t relation) {
    uint64_t question = (uint64_t)entity << 32 | relation;
    if (!(known->asked[entity / 8] >> entity % 8 & 1)) return -1;
    const uint64_t *at = bsearch(&question, known->questions, known->count, sizeof question, search_by_place);
    return at ? at - known->questions : -1;
}

/* An array of pairs that grows. */
struct pairs {
    struct known_pair **pairs;
    uint64_t *count, *capacity;
};

static int add_answer(const struct known_answers *known, const struct pairs *to, uint32_t entity, uint32_t relation,
                      uint32_t answer) {
    int64_t question = known_answers_find(known, entity, relation);
    if (question < 0) return 0;
    if (mem_grow(to->pairs, to->capacity, *to->count + 1, sizeof **to->pairs, "known triples")) return -1;
    (*to->pairs)[(*to->count)++] = (struct known_pair){(uint32_t)question, answer};
    return 0;
}

static int add_triple(const struct known_answers *known, const struct pairs *to, const uint32_t rows[3]) {
    const struct model *model = known->model;
    uint32_t head = rows[TRIPLE_HEAD], relation = rows[TRIPLE_RELATION], tail = rows[TRIPLE_TAIL];
    if (add_answer(known, to, head, relation, tail)) return -1;
    return model->reciprocal ? add_answer(known, to, tail, relation + (uint32_t)model->relations, head) : 0;
}

int known_answers_add(void *context, const uint32_t rows[3]) {
    struct known_answers *known = context;
    const struct pairs to = {&known->pairs, &known->pair_count, &known->pairs_capacity};
    if (rows[TRIPLE_HEAD] == WORDS_ABSENT || rows[TRIPLE_RELATION] == WORDS_ABSENT || rows[TRIPLE_TAIL] == WORDS_ABSENT) return 0;
    return add_triple(known, &to, rows);
}

/* The triples of a run, from which all threads take known answers. */
struct trained {
    struct known_answers *known;
    const struct idstream *stream;
    _Atomic uint64_t next;
    pthread_mutex_t lock; /* held while the workers' pairs are appended */
};

static int append_pairs(struct trained *trained, const struct known_pair *pairs, uint64_t count) {
    struct known_answers *known = trained->known;
    pthread_mutex_lock(&trained->lock);
    int result = mem_grow(&known->pairs, &known->pairs_capacity, known->pair_count + count, sizeof *pairs, "known triples");
    if (!result && count) memcpy(known->pairs + known->pair_count, pairs, count * sizeof *pairs);
    if (!result) known->pair_count += count;
    pthread_mutex_unlock(&trained->lock);
    return result;
}

static int take_trained(void *context, unsigned worker) {
    enum { GRAIN = 1 << 16 };
    struct trained *trained = context;
    struct known_pair *pairs = NULL;
    uint64_t count = 0, capacity = 0, i, end;
    const struct pairs to = {&pairs, &count, &capacity};
    int result = 0;
    while (!result && pool_take(&trained->next, trained->stream->triples, GRAIN, &i, &end)) {
        result = interrupt_check() ? -1 : 0;
        for (; !result && i < end; i++) result = add_triple(trained->known, &to, trained->stream->ids + 3 * i);
    }
    if (!result) result = append_pairs(trained, pairs, count);
    free(pairs);
    return result;
}

int run_triples_open(struct idstream *stream, const struct model *model, struct pool *pool) {
    return run_stream_open(stream, model, pool, "the triples that it was trained on are not known, and may be among the answers");
}

int known_answers_add_stream(struct known_answers *known, const struct idstream *stream, struct pool *pool) {
    struct trained trained = {.known = known, .stream = stream};
    pthread_mutex_init(&trained.lock, NULL);
    int result = pool_run(pool, take_trained, &trained);
    pthread_mutex_destroy(&trained.lock);
    return result;
}

int known_answers_end(struct known_answers *known) {
    free(known->starts);
    free(known->counts);
    free(known->answers);
    known->starts = mem_zalloc(known->count + 1, sizeof *known->starts, "known triples");
    known->counts = mem_zalloc(known->count + 1, sizeof *known->counts, "known triples");
    known->answers = mem_alloc(known->pair_count + 1, sizeof *known->answers, "known triples");
    if (!known->starts || !known->counts || !known->answers) return -1;
    for (uint64_t i = 0; i < known->pair_count; i++) known->counts[known->pairs[i].question]++;
    for (uint64_t i = 1; i < known->count; i++) known->starts[i] = known->starts[i - 1] + known->counts[i - 1];
    memset(known->counts, 0, known->count * sizeof *known->counts);
    for (uint64_t i = 0; i < known->pair_count; i++) {
        const struct known_pair *pair = &known->pairs[i];
        known->answers[known->starts[pair->question] + known->counts[pair->question]++] = pair->answer;
    }
    for (uint64_t i = 0; i < known->count; i++)
        known->counts[i] = search_distinct(known->answers + known->starts[i], known->counts[i]);
    return 0;
}

void known_answers_release(struct known_answers *known) {
    free(known->questions);
    free(known->answers);
    free(known->starts);
    free(known->counts);
    free(known->pairs);
    free(known->asked);
    *known = (struct known_answers){.count = 0};
}
