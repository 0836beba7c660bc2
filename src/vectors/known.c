#include "known.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "config/config.h"
#include "corpus/fields.h"
#include "corpus/graph.h"
#include "kernels/finished.h"
#include "kernels/triples.h"
#include "names.h"
#include "search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int has_targets(const struct model *model) {
    return model->mode == MODE_ADJACENCY || model->mode == MODE_WALK;
}

/* Returns the row of a list. In a run of citations or of a graph, lists are named by papers or nodes, and the row is the target row of that paper
 * or node. In other runs lists have their own rows. */
int64_t run_lists_row(const struct model *model, const char *name, uint64_t length) {
    const struct words *added = &model->added_lists.names;
    if (!has_targets(model)) {
        int64_t list = vocab_find_list(&model->vocab, name, length);
        int64_t number = list < 0 && added->size ? words_find(added, words_hash(name, length), name, length) : -1;
        return number < 0 ? list : (int64_t)model_end(model) + number;
    }
    int64_t row = model_named(model, name, length);
    return row >= 0 && model_is_item(model, (uint64_t)row) && model_is_trained(model, TABLE_TARGET, (uint64_t)row) ? row : -1;
}

/* Fails because the run does not know a name of this kind, and suggests the most similar one: an entity or a node, or the name of a list or a
 * relation. */
static int64_t refuse_name(const struct model *model, const char *what, const char *name, int entities) {
    uint64_t items = model_items(model);
    int64_t row = model->relations || entities ? model_named(model, name, strlen(name)) : -1;
    if (row >= 0 && model_is_item(model, (uint64_t)row) != entities)
        return fail_usage("'%.100s' is %s of '%s'; wanted %s", name, entities ? "a relation" : "an entity", model->directory,
                          entities ? "an entity" : "a relation");
    const char *near = entities ? names_near(&model->vocab.words, 0, items, 0, name)
                                : names_near(&model->vocab.words, items, model->vocab.size, strlen(vocab_prefix(&model->vocab)), name);
    return fail_usage("'%s' %s '%.100s'%s%s%s", model->directory, what, name, DID_YOU_MEAN(near));
}

int64_t run_lists_find(const struct model *model, const char *name) {
    int64_t row = run_lists_row(model, name, strlen(name));
    if (row >= 0) return row;
    if (has_targets(model) || model->vocab.lists)
        return refuse_name(model, "was trained on no list", name, has_targets(model));
    return fail_usage("'%s' keeps no names of lists: with examples.mode = user lists have rows of their own; give the items of '%.100s' instead",
                      model->directory, name);
}

/* ---- their items ---- */

/* Returns the path of the run's encoded corpus or graph; the caller frees it. NULL after fail(). */
static char *path_of(const struct model *model, const char *name) {
    return file_join(*model->keys.corpus_cache ? model->keys.corpus_cache : model->directory, name);
}

/* Opens the encoded corpus on which the run was trained. Returns 1; 0 after a warning, which ends with `then`, if the file is missing or belongs
 * to another run; -1 after fail(). */
static int run_stream_open(struct idstream *stream, const struct model *model, struct pool *pool, const char *then) {
    char *path = path_of(model, "corpus.ids");
    *stream = (struct idstream){0};
    if (!path) return -1;
    int there = file_exists(path), found = there == 1 && !idstream_open_any(stream, path, model->rows, pool);
    if (there < 0 || (there == 1 && !found && idstream_has(path, model->state.corpus.stream))) { /* this is the run's file, but it cannot be read */
        free(path);
        return -1;
    }
    if (found && model->state.corpus.stream && stream->checksum != model->state.corpus.stream) {
        idstream_close(stream);
        found = 0;
    }
    if (!found) {
        report_clear();
        warn("'%s' is gone, or belongs to another run than '%s': %s", path, model->directory, then);
    }
    free(path);
    return found;
}

int run_lists_check(const struct model *model) {
    if (!model->relations) return 0;
    return fail("'%s' was trained on triples, which are no lists: tails and heads are asked for (recommend --head=X --relation=R; "
                "Run.tails(), Run.heads()), and held-out triples are evaluated (--triples=FILE; triples=)",
                model->directory);
}

int run_lists_open(struct run_lists *lists, const struct model *model, struct pool *pool) {
    if (run_lists_check(model)) return -1;
    *lists = (struct run_lists){.first = model->vocab.lists ? model_items(model) : 0};
    lists->count = model->rows - lists->first;
    if (model->mode == MODE_WALK || (!model->vocab.lists && !has_targets(model))) return 0;
    const struct idstream *stream = &lists->stream;
    uint64_t first = lists->first, count = model->rows - first, *starts;
    int there = run_stream_open(&lists->stream, model, pool, "the items of its lists are not known, and may be among answers and held-out items");
    if (there <= 0) return there;
    lists->starts = starts = mem_zalloc(count + 2, sizeof *starts, "the lists of a run");
    lists->sentences = mem_alloc(stream->sentences, sizeof *lists->sentences, "the lists of a run");
    if (!starts || !lists->sentences) return -1;
    for (int fill = 0; fill < 2; fill++) { /* sorts sentences by their first id, which is the row of their list: one round counts, one stores */
        for (uint64_t i = 0; i < stream->sentences; i++) {
            uint64_t row = stream->ids[stream->starts[i]], place = row < first ? 0 : row - first;
            if (fill)
                lists->sentences[starts[place + 1]++] = i;
            else
                starts[place + 2]++;
        }
        for (uint64_t i = 0; i < count && !fill; i++) starts[i + 2] += starts[i + 1];
    }
    return 0;
}

void run_lists_close(struct run_lists *lists) {
    idstream_close(&lists->stream);
    mem_free(lists->starts, lists->sentences);
    *lists = (struct run_lists){.first = 0};
}

int run_lists_items(const struct run_lists *lists, int64_t row, uint64_t **codes, uint64_t *count, uint64_t *capacity) {
    const struct idstream *stream = &lists->stream;
    uint64_t place = (uint64_t)row - lists->first;
    if (!stream->sentences || place >= lists->count) return 0; /* a new list (features.h) has no items */
    for (uint64_t i = lists->starts[place]; i < lists->starts[place + 1]; i++) {
        uint64_t first = stream->starts[lists->sentences[i]] + 1, end = stream->starts[lists->sentences[i] + 1];
        if (mem_grow(codes, capacity, *count + (end - first), sizeof **codes, "the items of lists")) return -1;
        for (uint64_t at = first; at < end; at++) (*codes)[(*count)++] = stream->ids[at];
    }
    return 0;
}

int run_has_graph(const struct model *model) {
    return model->mode == MODE_WALK;
}

/* Reads the header of the graph's file; zeros if the file is shorter than a header. Returns 0, or -1 after fail(). */
static int read_header(const char *path, struct graph_header *header) {
    ENDED_BY(file_map_close) struct file_map map = {0};
    *header = (struct graph_header){.fingerprint = 0};
    if (file_map_open(&map, path)) return -1;
    if (map.size >= sizeof *header) memcpy(header, map.data, sizeof *header);
    return 0;
}

int run_graph_within(const struct model *model, uint64_t most) {
    struct graph_header header;
    OWNED char *path = path_of(model, "corpus.graph");
    int there = path ? file_exists(path) : -1;
    if (there > 0) there = read_header(path, &header) ? -1 : header.nodes + header.arcs <= most;
    return there;
}

int run_graph_open(struct graph *graph, const struct model *model, struct pool *pool) {
    struct graph_header header; /* its fingerprint is used to open the file; it cannot be computed again, since the corpus' files may be gone */
    uint64_t trained = model->state.corpus.stream;
    *graph = (struct graph){0};
    if (!run_has_graph(model))
        return fail("'%s' was not trained on a graph (corpus.format = graph), and has none", model->directory);
    OWNED char *path = path_of(model, "corpus.graph");
    int there = path ? file_exists(path) : -1, result = -1;
    if (!there)
        fail("'%s' is not there: it is the graph that '%s' was trained on", path, model->directory);
    else if (there > 0 && !read_header(path, &header))
        result = graph_open(graph, path, header.fingerprint, model->rows, pool);
    if (!result && trained && graph->checksum != trained) {
        graph_close(graph);
        result = fail("'%s' is not the graph that '%s' was trained on", path, model->directory);
    }
    return result;
}

int run_triples_check(const struct model *model) {
    if (model->relations) return 0;
    return config_walks_triples(&model->keys)
               ? fail("'%s' was trained on walks over triples (examples.mode = walk), and its relations are words: no head and relation ask for a "
                      "tail; evaluate --edges=FILE judges held-out triples", model->directory)
               : fail("'%s' was not trained on triples (corpus.format = triples), and knows no relations", model->directory);
}

int64_t run_triples_entity(const struct model *model, const char *name) {
    int64_t row = vocab_find(&model->vocab, name, strlen(name));
    return row >= 0 && (uint64_t)row < model_items(model) ? row : refuse_name(model, "knows no entity", name, 1);
}

int64_t run_triples_relation(const struct model *model, const char *name) {
    int64_t row = run_lists_row(model, name, strlen(name));
    return row >= 0 ? row : refuse_name(model, "knows no relation", name, 0);
}

int64_t run_triples_reciprocal(const struct model *model, int64_t relation) {
    uint64_t end = model_items(model) + model->relations;
    if (!model->reciprocal)
        return fail_usage(
            "'%s' was trained with triples.reciprocal = no: it answers which tails a head has, not which heads a tail has",
            model->directory);
    return (uint64_t)relation < end ? relation + (int64_t)model->relations : relation - (int64_t)model->relations;
}

uint32_t run_triples_width(const struct model *model) {
    return model->dim + product_is_distance(model->product);
}

int run_triples_query(const struct model *model, uint32_t entity, uint32_t relation, float *out) {
    enum example_product product = model->product;
    uint32_t dim = model->dim;
    OWNED float *rows = mem_alloc(2, dim * sizeof *rows, "a question");
    if (!rows || model_row(model, VIEW_TARGET, entity, 0, rows) || model_row(model, VIEW_TARGET, relation, 0, rows + dim))
        return -1;
    for (uint32_t i = 0; i < dim; i++)
        out[i] = product_value(product, product_is_imaginary(product, dim, i), product_at(product, dim, rows, i),
                               product_unit(product, product_at(product, dim, rows + dim, i)));
    if (product_is_distance(product)) out[dim] = 1;
    return 0;
}

int run_triples_candidate(const struct model *model, uint32_t entity, float *out) {
    if (model_row(model, VIEW_CONTEXT, entity, 0, out)) return -1;
    if (product_is_distance(model->product)) out[model->dim] = (float)(-0.5 * (double)search_score(out, out, model->dim));
    return 0;
}

float *run_triples_candidates(const struct model *model, const uint32_t *rows, uint64_t count) {
    uint64_t width = run_triples_width(model);
    float *matrix = mem_aligned(count > UINT64_MAX / width ? UINT64_MAX : count * width, sizeof *matrix, "the rows of a model");
    for (uint64_t i = 0; matrix && i < count; i++)
        if (run_triples_candidate(model, rows ? rows[i] : (uint32_t)i, matrix + i * width)) {
            free(matrix);
            return NULL;
        }
    return matrix;
}

float run_triples_score(const struct model *model, const float *query, const float *answer) {
    double squares = 0;
    if (!product_is_distance(model->product)) return search_score(query, answer, model->dim);
    for (uint32_t j = 0; j < model->dim; j++) squares += ((double)query[j] - (double)answer[j]) * ((double)query[j] - (double)answer[j]);
    return (float)-sqrt(squares);
}

/* ---- triples of files and programs ---- */

/* State of reading triples: the rows of the current triple. */
struct triples_reading {
    const struct model *model;
    struct words relations; /* names of the relations, in the order of their rows */
    uint32_t rows[TRIPLE_TERMS];
    struct corpus_field fields[TRIPLE_TERMS];
    int terms, falses; /* falses: 1: triples whose label says that they are false are taken, too */
    uint64_t count, known; /* count: number of triples that were read; known: number of those of which the run knows all names */
    triple_take *take;
    void *user;
};

static int take_term(void *user, const struct corpus_field *field) {
    struct triples_reading *reading = user;
    uint64_t items = model_items(reading->model);
    int is_relation = field->part == PART_NAME;
    int64_t row = is_relation ? words_find(&reading->relations, words_hash(field->text, field->length), field->text, field->length)
                              : vocab_find(&reading->model->vocab, field->text, field->length);
    if (is_relation && row >= 0) row += (int64_t)items;
    reading->fields[reading->terms] = *field;
    reading->rows[reading->terms] = row < 0 || (!is_relation && (uint64_t)row >= items) ? WORDS_ABSENT : (uint32_t)row;
    if (++reading->terms < TRIPLE_TERMS) return 0;
    reading->terms = 0;
    int known = 1;
    for (int i = 0; i < TRIPLE_TERMS; i++) known &= reading->rows[i] != WORDS_ABSENT;
    reading->count++;
    if (!reading->falses && field->weight == 0) return 0;
    reading->known += (uint64_t)known;
    return reading->take(reading->user, reading->rows, reading->fields);
}

int run_triples_read(const struct model *model, const char *path, const struct gathered *data, const struct look_keys *look, int some,
                     triple_take *take, void *user) {
    char said[LOOK_SAID];
    struct corpus_options options = {.format = FORMAT_TRIPLES, .look = *look, .said = said};
    struct triples_reading reading = {.model = model, .falses = look->labelled, .take = take, .user = user};
    options.look.labelled = 1;
    memcpy(said, model->keys.said, sizeof said); /* a run in training has printed how its own files are read */
    int result = 0;
    for (uint64_t i = 0; i < model->relations && !result; i++) {
        uint64_t length;
        const char *name = vocab_word(&model->vocab, model_items(model) + i, &length) + strlen(VOCAB_RELATION);
        length -= strlen(VOCAB_RELATION);
        result = words_add(&reading.relations, words_hash(name, length), name, length) < 0 ? -1 : 0;
    }
    if (!result) result = asked_read(path, data, &options, take_term, &reading);
    words_release(&reading.relations);
    if (!result && !reading.count) return fail("'%s' has no triples", path);
    if (!result && some && !reading.known)
        return fail("'%s' has no triple whose head, relation and tail '%s' knows, among %" PRIu64, path, model->directory, reading.count);
    return result;
}

/* ---- known answers ---- */

int known_answers_begin(struct known_answers *known, const struct model *model, uint64_t *questions, uint64_t count) {
    *known = (struct known_answers){.model = model, .questions = questions};
    if (count >= UINT32_MAX) return fail("%llu questions of triples are more than 32 bits can number", (unsigned long long)count);
    qsort(questions, count, sizeof *questions, mem_by_number);
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
    const uint64_t *at = bsearch(&question, known->questions, known->count, sizeof question, mem_by_number);
    return at ? at - known->questions : -1;
}

int known_answers_has(const struct known_answers *known, const uint32_t rows[3]) {
    uint64_t at = (uint64_t)known_answers_find(known, rows[TRIPLE_HEAD], rows[TRIPLE_RELATION]);
    return bsearch(&rows[TRIPLE_TAIL], known->answers + known->starts[at], known->counts[at], sizeof *rows, mem_by_id) != NULL;
}

/* Adds the triple's tail and head to `to`, each only if it answers one of the questions. */
static int add_triple(const struct known_answers *known, struct known_pairs *to, const uint32_t rows[3]) {
    const struct model *model = known->model;
    for (int back = 0; back <= model->reciprocal; back++) {
        uint32_t relation = rows[TRIPLE_RELATION] + (back ? (uint32_t)model->relations : 0);
        int64_t question = known_answers_find(known, rows[back ? TRIPLE_TAIL : TRIPLE_HEAD], relation);
        if (question < 0) continue;
        if (mem_grow(&to->pair, &to->capacity, to->count + 1, sizeof *to->pair, "known triples")) return -1;
        to->pair[to->count++] = (struct known_pair){(uint32_t)question, rows[back ? TRIPLE_HEAD : TRIPLE_TAIL]};
    }
    return 0;
}

int known_answers_add(void *context, const uint32_t rows[3], const struct corpus_field *unused) {
    struct known_answers *known = context;
    for (int i = 0; i < TRIPLE_TERMS; i++)
        if (rows[i] == WORDS_ABSENT) return 0;
    return add_triple(known, &known->pairs, rows);
}

/* The triples of a run, among which all threads look for known answers. */
struct trained {
    struct known_answers *known;
    const struct idstream *stream;
    _Atomic uint64_t next;
    pthread_mutex_t lock; /* held while the workers' pairs are appended */
};

static int take_trained(void *context, unsigned worker) {
    enum { GRAIN = 1 << 16 };
    struct trained *trained = context;
    struct known_pairs own = {.count = 0}, *all = &trained->known->pairs;
    uint64_t i, end;
    int result = 0;
    while (!result && pool_take(&trained->next, trained->stream->triples, GRAIN, &i, &end)) {
        result = interrupt_check() ? -1 : 0;
        for (; !result && i < end; i++) result = add_triple(trained->known, &own, trained->stream->ids + 3 * i);
    }
    pthread_mutex_lock(&trained->lock);
    if (!result) result = mem_grow(&all->pair, &all->capacity, all->count + own.count, sizeof *all->pair, "known triples");
    if (!result && own.count) memcpy(all->pair + all->count, own.pair, own.count * sizeof *own.pair);
    if (!result) all->count += own.count;
    pthread_mutex_unlock(&trained->lock);
    free(own.pair);
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
    mem_free(known->starts, known->counts, known->answers);
    known->starts = mem_zalloc(known->count + 1, sizeof *known->starts, "known triples");
    known->counts = mem_zalloc(known->count + 1, sizeof *known->counts, "known triples");
    known->answers = mem_alloc(known->pairs.count + 1, sizeof *known->answers, "known triples");
    if (!known->starts || !known->counts || !known->answers) return -1;
    for (uint64_t i = 0; i < known->pairs.count; i++) known->counts[known->pairs.pair[i].question]++;
    for (uint64_t i = 1; i < known->count; i++) known->starts[i] = known->starts[i - 1] + known->counts[i - 1];
    memset(known->counts, 0, known->count * sizeof *known->counts);
    for (uint64_t i = 0; i < known->pairs.count; i++) {
        const struct known_pair *pair = &known->pairs.pair[i];
        known->answers[known->starts[pair->question] + known->counts[pair->question]++] = pair->answer;
    }
    for (uint64_t i = 0; i < known->count; i++)
        known->counts[i] = search_distinct(known->answers + known->starts[i], known->counts[i]);
    return 0;
}

void known_answers_release(struct known_answers *known) {
    mem_free(known->questions, known->answers, known->starts, known->counts, known->pairs.pair, known->asked);
    *known = (struct known_answers){.count = 0};
}

int triple_answers_open(struct triple_answers *answers, const struct model *model, const struct config *config) {
    *answers = (struct triple_answers){.model = model};
    if (run_triples_check(model)) return -1;
    float *candidates = run_triples_candidates(model, NULL, model_items(model));
    return search_over(&answers->search, candidates, model_items(model), run_triples_width(model), METRIC_DOT, config);
}

void triple_answers_close(struct triple_answers *answers) {
    search_close(&answers->search);
    idstream_close(&answers->stream);
}

/* Questions that are asked. */
struct triples_asked {
    const struct model *model;
    struct known_answers known; /* empty: known answers may be found again */
    const uint32_t *entities, *relations;
    uint32_t k, *ids;
    float *scores;
};

static int fill_question(void *user, uint64_t i, float *query, struct search_block *block) {
    const struct triples_asked *asked = user;
    const struct known_answers *known = &asked->known;
    if (run_triples_query(asked->model, asked->entities[i], asked->relations[i], query)) return -1;
    if (!known->count) return 0;
    uint64_t at = (uint64_t)known_answers_find(known, asked->entities[i], asked->relations[i]);
    return search_ban(block, known->answers + known->starts[at], known->counts[at]);
}

static int take_answer(void *user, uint64_t i, const struct search_found *found) {
    struct triples_asked *asked = user;
    memcpy(asked->ids + i * asked->k, found->ids, asked->k * sizeof *found->ids);
    memcpy(asked->scores + i * asked->k, found->scores, asked->k * sizeof *found->scores);
    if (!product_is_distance(asked->model->product)) return 0;
    OWNED float *query = mem_alloc(run_triples_width(asked->model), sizeof *query, "a question");
    if (!query || run_triples_query(asked->model, asked->entities[i], asked->relations[i], query)) return -1;
    double squares = (double)search_score(query, query, asked->model->dim);
    for (uint32_t k = 0; k < asked->k && found->ids[k] != DRAW_NONE; k++) { /* the dot product u.t - |t|^2 / 2 tells the distance of u and t */
        double apart = squares - 2 * (double)found->scores[k];
        asked->scores[i * asked->k + k] = apart > 0 ? (float)-sqrt(apart) : 0;
    }
    return 0;
}

int triple_answers_ask(struct triple_answers *answers, const uint32_t *entities, const uint32_t *relations, uint64_t count,
                       uint32_t k, int seen, struct pool *pool, uint32_t *ids, float *scores) {
    static const struct search_calls calls = {.fill = fill_question, .take = take_answer};
    struct triples_asked asked = {.model = answers->model, .entities = entities, .relations = relations, .k = k, .ids = ids, .scores = scores};
    uint64_t *questions = seen ? NULL : mem_alloc(count, sizeof *questions, "questions");
    for (uint64_t i = 0; questions && i < count; i++) questions[i] = (uint64_t)entities[i] << 32 | relations[i];
    int result = seen || (questions && !known_answers_begin(&asked.known, answers->model, questions, count)) ? 0 : -1;
    if (!result && !seen && !answers->looked) result = run_triples_open(&answers->stream, answers->model, pool) < 0 ? -1 : 0;
    answers->looked |= !result && !seen;
    if (!result && !seen) /* the answers that the run was trained on */
        result = known_answers_add_stream(&asked.known, &answers->stream, pool) || known_answers_end(&asked.known) ? -1 : 0;
    if (!result) result = search_each(&answers->search, count, k, &calls, &asked);
    known_answers_release(&asked.known);
    return result;
}
