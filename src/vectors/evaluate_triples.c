/* evaluate_triples: ranks the tails and heads of held-out triples, and tells true triples from false ones.
 *
 * The tail of each held-out triple is ranked and, if relations have reciprocals, its head, too:
 *
 *   rank   1 + number of entities with a higher score + half the number of others with the same score; among all entities, or a sample
 *
 * Other right answers to the same question, which the held-out triples, the training triples or further files have, are left out (the "filtered"
 * setting). One half of a sample is drawn evenly from the entities, the other half in proportion to how often they occur. All questions have the
 * same sample.
 */
#include "evaluate.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/fields.h"
#include "corpus/planted.h"
#include "known.h"
#include "numeric.h"
#include "triple_scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A held-out triple in one direction, as a question and its answer. */
struct question {
    uint32_t entity, relation, answer;
};

struct triples_job {
    const struct model *model;
    const struct evaluate_request *request;
    uint64_t triples, unknown; /* triples: number of held-out triples; unknown: of those with a name that the run does not know */
    uint64_t trained;     /* number of triples of the held-out file that are also in the training data; these are ranked, too */
    int filtered_trained; /* 1: the training triples are left out, too; 0: their file no longer exists */
    uint64_t among;       /* number of entities among which answers are ranked */
    double hits[3];       /* number of ranks that are at most 1, 3 and 10 */
    struct question *questions; /* [count] tails of all triples, then heads of all triples */
    uint64_t count, capacity;
    struct known_answers known;
    uint32_t *sample;     /* [among] entities among which answers are ranked, rising; NULL: all */
    double mrr[2];        /* sums over tails and over heads */
    uint64_t *counts;     /* [among] rising: how often each of these entities occurs in training */
    double popular, random; /* sums over all questions for two rankings without a model: the most frequent entities first; a random order */
    struct search search; /* the context rows of all entities, or of the sample */
    float *row;           /* [run_triples_width()] of one answer */
    struct progress progress;
};

/* ---- reading ---- */

static int add_question(struct triples_job *job, uint32_t entity, uint32_t relation, uint32_t answer) {
    if (mem_grow(&job->questions, &job->capacity, job->count + 1, sizeof *job->questions, "questions")) return -1;
    job->questions[job->count++] = (struct question){entity, relation, answer};
    return 0;
}

static int take_held_out(void *context, const uint32_t rows[3], const struct corpus_field *unused) {
    struct triples_job *job = context;
    job->triples++;
    int known = rows[TRIPLE_HEAD] != WORDS_ABSENT && rows[TRIPLE_RELATION] != WORDS_ABSENT && rows[TRIPLE_TAIL] != WORDS_ABSENT;
    job->unknown += !known;
    return known ? add_question(job, rows[TRIPLE_HEAD], rows[TRIPLE_RELATION], rows[TRIPLE_TAIL]) : 0;
}

static int read_held_out(struct triples_job *job) {
    const struct evaluate_request *request = job->request;
    const struct model *model = job->model;
    if (run_triples_read(model, request->path, request->data, &request->reading.look, 1, take_held_out, job)) return -1;
    uint64_t triples = job->count;
    for (uint64_t i = 0; i < triples && model->reciprocal; i++) {
        struct question tail = job->questions[i];
        if (add_question(job, tail.answer, tail.relation + (uint32_t)model->relations, tail.entity)) return -1;
    }
    return 0;
}

static int add_known(struct triples_job *job) {
    const struct evaluate_request *request = job->request;
    for (uint64_t i = 0; i < job->triples - job->unknown; i++) {
        const struct question *q = &job->questions[i];
        if (known_answers_add(&job->known, (const uint32_t[3]){q->entity, q->relation, q->answer}, NULL)) return -1;
    }
    const struct look_keys *look = &request->reading.look;
    if (request->known_data)
        return run_triples_read(job->model, request->known, request->known_data, look, 1, known_answers_add, &job->known);
    char **paths = NULL;
    int64_t count = request->known ? config_paths("--known", request->known, &paths) : 0;
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        result = run_triples_read(job->model, paths[i], NULL, look, 1, known_answers_add, &job->known);
    mem_free_texts(paths, count);
    return result;
}

/* Finds the known answers to all questions. */
static int find_known(struct triples_job *job, unsigned threads) {
    uint64_t *asked = mem_alloc(job->count, sizeof *asked, "questions");
    ENDED_BY(pool_end) struct pool *pool = asked ? pool_open(threads) : NULL;
    for (uint64_t i = 0; asked && i < job->count; i++)
        asked[i] = (uint64_t)job->questions[i].entity << 32 | job->questions[i].relation;
    int result = !pool || known_answers_begin(&job->known, job->model, asked, job->count) ? -1 : 0;
    if (!pool) free(asked);
    ENDED_BY(idstream_close) struct idstream stream = {0};
    int there = result ? -1 : run_triples_open(&stream, job->model, pool);
    if (there < 0 || known_answers_add_stream(&job->known, &stream, pool) || known_answers_end(&job->known)) return -1;
    job->filtered_trained = there > 0;
    job->trained = 0; /* counted while only the run's triples are among the known answers */
    for (uint64_t i = 0; i < job->triples - job->unknown; i++) {
        const struct question *q = &job->questions[i];
        job->trained += (uint64_t)known_answers_has(&job->known, (const uint32_t[3]){q->entity, q->relation, q->answer});
    }
    return add_known(job) || known_answers_end(&job->known) ? -1 : 0;
}

/* ---- the sample ---- */

/* Draws `count` entities by how often they occur: draws numbers of tokens and sorts them, so that the counts are read once. */
static int draw_by_count(const struct model *model, struct numpy_draws *draws, uint32_t *out, uint64_t count) {
    uint64_t *places = mem_alloc(count + 1, sizeof *places, "a sample"), total = 0, passed = 0, entity = 0;
    if (!places) return -1;
    for (uint64_t i = 0; i < model_items(model); i++) total += vocab_count(&model->vocab, i);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t high = numpy_draws_below(draws, (uint64_t)1 << 32), low = numpy_draws_below(draws, (uint64_t)1 << 32);
        places[i] = draw_below(high << 32 | low, total);
    }
    qsort(places, count, sizeof *places, mem_by_number);
    for (uint64_t i = 0; i < count; i++) {
        while (places[i] >= passed + vocab_count(&model->vocab, entity)) passed += vocab_count(&model->vocab, entity++);
        out[i] = (uint32_t)entity;
    }
    free(places);
    return 0;
}

static int choose_sample(struct triples_job *job) {
    const struct model *model = job->model;
    uint64_t entities = model_items(model), wanted = job->request->options.sample;
    if (!wanted && entities > RANK_ALL_MOST) wanted = RANK_SAMPLE;
    struct numpy_draws draws = numpy_draws_make(0);
    job->among = entities;
    if (!wanted || wanted >= entities) return 0;
    job->sample = mem_alloc(wanted, sizeof *job->sample, "a sample");
    if (!job->sample) return -1;
    for (uint64_t i = 0; i < wanted / 2; i++) job->sample[i] = numpy_draws_below(&draws, entities);
    if (draw_by_count(model, &draws, job->sample + wanted / 2, wanted - wanted / 2)) return -1;
    job->among = search_distinct(job->sample, wanted);
    return 0;
}

/* ---- ranking ---- */

static uint64_t count_above(const struct triples_job *job, uint64_t count) {
    return job->among - mem_first_from(job->counts, job->among, sizeof *job->counts, count + 1);
}

/* Adds an answer's reciprocal ranks in two rankings without a model: entities by how often they occur, and a random order. answers: [count] the other
 * known answers, which both rankings leave out. */
static void add_plain_ranks(struct triples_job *job, uint32_t answer, const uint32_t *answers, uint64_t count) {
    const struct vocab *vocab = &job->model->vocab;
    uint64_t own = vocab_count(vocab, answer), above = count_above(job, own), level = (own ? count_above(job, own - 1) : job->among) - above;
    uint64_t left = job->among;
    for (uint64_t i = 0; i < count; i++) {
        if (job->sample && !bsearch(&answers[i], job->sample, job->among, sizeof *job->sample, mem_by_id)) continue;
        uint64_t its = vocab_count(vocab, answers[i]);
        above -= its > own, level -= its == own, left--;
    }
    job->popular += 1 / (1 + (double)above + (double)level / 2);
    double n = (double)left + 1; /* the answer is one more; the mean of 1/1 .. 1/n follows, by Euler's expansion */
    job->random += (log(n) + .57721566490153286 + 1 / (2 * n) - 1 / (12 * n * n)) / n;
}

/* Writes a question's query and its answer's score, and bans the other known answers, as rows of the search. */
static int fill_question(void *user, uint64_t i, float *query, struct search_block *block) {
    struct triples_job *job = user;
    const struct known_answers *known = &job->known;
    const struct question *q = &job->questions[i];
    uint64_t at = (uint64_t)known_answers_find(known, q->entity, q->relation), count = known->counts[at];
    const uint32_t *answers = known->answers + known->starts[at];
    if (run_triples_query(job->model, q->entity, q->relation, query) || run_triples_candidate(job->model, q->answer, job->row)) return -1;
    block->than[block->filled] = search_score(query, job->row, run_triples_width(job->model));
    add_plain_ranks(job, q->answer, answers, count);
    if (!job->sample) return search_ban(block, answers, count);
    for (uint64_t j = 0; j < count; j++) {
        const uint32_t *place = bsearch(&answers[j], job->sample, job->among, sizeof *place, mem_by_id);
        if (place && search_ban(block, &(uint32_t){(uint32_t)(place - job->sample)}, 1)) return -1;
    }
    return 0;
}

static int add_rank(void *user, uint64_t i, const struct search_found *found) {
    struct triples_job *job = user;
    double rank = 1 + (double)found->above + (double)found->level / 2;
    job->mrr[i >= job->triples - job->unknown] += 1 / rank;
    job->hits[0] += rank <= 1, job->hits[1] += rank <= 3, job->hits[2] += rank <= 10;
    progress_show(&job->progress, i + 1, job->count, "questions");
    return 0;
}

/* Ranks the answers to all questions by the model's present rows. */
static int rank_all(struct triples_job *job, const struct config *config) {
    static const struct search_calls calls = {.fill = fill_question, .take = add_rank};
    memset(job->mrr, 0, sizeof job->mrr);
    memset(job->hits, 0, sizeof job->hits);
    job->popular = job->random = 0;
    float *base = run_triples_candidates(job->model, job->sample, job->among);
    int result = search_over(&job->search, base, job->among, run_triples_width(job->model), METRIC_DOT, config);
    if (!result && !(job->row = mem_alloc(run_triples_width(job->model), sizeof *job->row, "a row"))) result = -1;
    if (!result && !(job->counts = mem_alloc(job->among, sizeof *job->counts, "the counts of entities"))) result = -1;
    for (uint64_t i = 0; i < job->among && !result; i++) job->counts[i] = vocab_count(&job->model->vocab, job->sample ? job->sample[i] : i);
    if (!result) qsort(job->counts, job->among, sizeof *job->counts, mem_by_number);
    progress_start(&job->progress, "ranking", 1);
    if (!result) result = search_each(&job->search, job->count, 0, &calls, job);
    progress_end(&job->progress);
    search_close(&job->search);
    mem_free(job->row, job->counts);
    job->row = NULL, job->counts = NULL;
    return result;
}

/* Adds the numbers: of all triples, where unknown names count as missed, then of the known ones alone. */
static int add_numbers(const struct triples_job *job, struct answer *answer) {
    uint64_t asked = job->count, ways = job->model->reciprocal ? 2 : 1, all = job->triples * ways;
    uint64_t entities = model_items(job->model), known = job->triples - job->unknown;
    double sum = job->mrr[0] + job->mrr[1], heads = ways == 2 ? job->mrr[1] / (double)job->triples : NAN;
    int more = job->unknown > 0; /* 0: no name is unknown, so the second numbers would be the same, and are not printed */
    char misses[128] = "";
    if (more)
        snprintf(misses, sizeof misses, " triples %" PRIu64 ", without those of unknown names, which the line above counts as misses", known);
    if (answer_add(answer, "", "mrr", sum / (double)all, all, " mrr #") ||
        answer_add(answer, "", "hits1", job->hits[0] / (double)all, all, " hits@1 #") ||
        answer_add(answer, "", "hits3", job->hits[1] / (double)all, all, " hits@3 #") ||
        answer_add(answer, "", "hits10", job->hits[2] / (double)all, all, " hits@10 #") ||
        answer_add(answer, "", "mrr_tails", job->mrr[0] / (double)job->triples, job->triples, " tails #") ||
        answer_add(answer, "", "mrr_heads", heads, ways == 2 ? job->triples : 0, "%s", ways == 2 ? " heads #" : "") ||
        answer_add(answer, "", "triples", (double)job->triples, 0, " triples #") ||
        answer_add(answer, "", "asked", (double)asked, 0, " asked #") ||
        answer_add(answer, "", "unknown", (double)job->unknown, 0, " unknown #") ||
        answer_add(answer, "", "trained", (double)job->trained, 0, " trained #") ||
        answer_add(answer, "", "among", (double)job->among, 0, " among #") ||
        answer_add(answer, "", "entities", (double)entities, 0, "%s", "") ||
        answer_add(answer, "", "filtered_trained", job->filtered_trained, 0, "%s", ""))
        return -1;
    return answer_add(answer, "", "mrr_known", sum / (double)asked, asked, "%s", more ? "\n known mrr #" : "") ||
                   answer_add(answer, "", "hits1_known", job->hits[0] / (double)asked, asked, "%s", more ? " hits@1 #" : "") ||
                   answer_add(answer, "", "hits3_known", job->hits[1] / (double)asked, asked, "%s", more ? " hits@3 #" : "") ||
                   answer_add(answer, "", "hits10_known", job->hits[2] / (double)asked, asked, "%s%s", more ? " hits@10 #" : "", misses) ||
                   answer_add(answer, "", "mrr_popular", job->popular / (double)all, all, "\n popularity mrr #") ||
                   answer_add(answer, "", "mrr_random", job->random / (double)all, all, " random mrr #")
               ? -1 : 0;
}

static void warn_of_trained(const struct triples_job *job) {
    if (job->trained)
        warn("%" PRIu64 " of %" PRIu64 " triples of '%s' are ones that '%s' was trained on: finding them shows nothing; train without them",
             job->trained, job->triples, job->request->path, job->model->directory);
}

/* Prints which answers are left out, and among how many entities answers are ranked. */
static void say_how(const struct triples_job *job) {
    const char *known = job->request->known;
    note("filtered   by '%s'%s%s%s%s", job->request->path, job->filtered_trained ? ", the triples that the run was trained on" : "",
         known ? ", '" : "", known ? known : "", known ? "'" : "");
    if (!known && !job->request->known_data)
        note("known      no --known=FILE is given: a true answer that only another file has, such as that for validation, counts as a wrong one");
    warn_of_trained(job);
    if (!job->model->reciprocal) note("tails      only: the run was trained with triples.reciprocal = no");
    if (job->sample)
        note("sample     of %" PRIu64 " of %" PRIu64 " entities, half of them drawn evenly and half by how often they occur", job->among,
             model_items(job->model));
}

static int prepare_job(struct triples_job *job, const struct config *config) {
    return run_triples_check(job->model) || read_held_out(job) || find_known(job, config ? (unsigned)config->device_threads : 0) || choose_sample(job)
               ? -1 : 0;
}

static void release_job(struct triples_job *job) {
    known_answers_release(&job->known);
    mem_free(job->questions, job->sample);
}

int evaluate_triples(struct answer *answer, const struct model *model, const struct evaluate_request *request,
                     const struct config *config) {
    ENDED_BY(release_job) struct triples_job job = {.model = model, .request = request};
    int result = prepare_job(&job, config) || rank_all(&job, config) || add_numbers(&job, answer) ? -1 : 0;
    if (!result) say_how(&job);
    return result;
}

/* ---- labelled triples ---- */

static int by_relation_and_score(const void *a, const void *b) {
    const struct scored_triple *x = a, *y = b;
    if (x->is_known != y->is_known) return y->is_known - x->is_known; /* unknown triples are last */
    if (x->rows[TRIPLE_RELATION] != y->rows[TRIPLE_RELATION]) return x->rows[TRIPLE_RELATION] < y->rows[TRIPLE_RELATION] ? -1 : 1;
    return (x->score > y->score) - (x->score < y->score);
}

static int by_triple_score(const void *a, const void *b) {
    const struct scored_triple *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

/* Returns the threshold that tells most of these triples, sorted by score, apart: triples with at least this score are called true. It is in the
 * middle between two scores, the lowest one of equally good ones. NaN if not both true and false triples are there. */
static double choose_threshold(const struct scored_triple *triples, uint64_t count) {
    uint64_t right = 0, trues = 0, best;
    double threshold = -INFINITY;
    for (uint64_t i = 0; i < count; i++) trues += triples[i].is_true;
    best = right = trues;
    for (uint64_t i = 0; i < count; i++) {
        right += triples[i].is_true ? (uint64_t)-1 : 1;
        if (right <= best || (i + 1 < count && triples[i].score == triples[i + 1].score)) continue;
        best = right;
        threshold = i + 1 < count ? ((double)triples[i].score + (double)triples[i + 1].score) / 2 : INFINITY;
    }
    return trues && trues < count ? threshold : NAN;
}

int evaluate_labelled(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    ENDED_BY(scored_triples_release) struct scored_triples chosen = {.count = 0}, asked = {.count = 0};
    ENDED_BY(pool_end) struct pool *pool = pool_open(config ? (unsigned)config->device_threads : 0);
    const struct look_keys *look = &request->reading.look;
    uint64_t items = model_items(model), relations = model->relations, own = 0, right = 0, found = 0, trues = 0, called = 0, missed = 0;
    OWNED double *thresholds = mem_alloc(relations + 1, sizeof *thresholds, "thresholds");
    if (!pool || !thresholds || scored_triples_read(&chosen, model, request->known, NULL, look, 1, pool) ||
        scored_triples_read(&asked, model, request->path, NULL, look, 1, pool))
        return -1;
    uint64_t known = chosen.count - chosen.unknown;
    qsort(chosen.triple, chosen.count, sizeof *chosen.triple, by_relation_and_score);
    for (uint64_t r = 0, i = 0, end; r < relations; r++, i = end) {
        for (end = i; end < known && chosen.triple[end].rows[TRIPLE_RELATION] == items + r; end++) {}
        thresholds[r] = choose_threshold(chosen.triple + i, end - i);
        own += !isnan(thresholds[r]);
    }
    qsort(chosen.triple, known, sizeof *chosen.triple, by_triple_score);
    if (isnan(thresholds[relations] = choose_threshold(chosen.triple, known)))
        return fail("'%s': all triples that '%s' knows are %s; thresholds are chosen by true and false ones, with a label 1, -1, 0, true or "
                    "false in a fourth column", request->known, model->directory, chosen.falses ? "false" : "true");
    for (uint64_t i = 0; i < asked.count; i++) {
        const struct scored_triple *triple = &asked.triple[i];
        double threshold = triple->is_known ? thresholds[triple->rows[TRIPLE_RELATION] - items] : NAN;
        int is = triple->is_known && (double)triple->score >= (isnan(threshold) ? thresholds[relations] : threshold);
        right += triple->is_known && is == triple->is_true, found += is && triple->is_true, trues += triple->is_true, called += (uint64_t)is;
        missed += !triple->is_known && triple->is_true;
    }
    known = asked.count - asked.unknown;
    int more = asked.unknown > 0;
    if (answer_add(answer, "", "accuracy", (double)right / (double)asked.count, asked.count, " accuracy #") ||
        answer_add(answer, "", "f1", called + trues ? 2 * (double)found / (double)(called + trues) : 0, asked.count, " f1 #") ||
        answer_add(answer, "", "labelled", (double)asked.count, 0, " labelled #") || answer_add(answer, "", "true", (double)trues, 0, " true #") ||
        answer_add(answer, "", "unknown", (double)asked.unknown, 0, " unknown #") ||
        answer_add(answer, "", "thresholds", (double)own, 0, " thresholds #") ||
        answer_add(answer, "", "relations", (double)relations, 0, " relations #") ||
        answer_add(answer, "", "accuracy_known", (double)right / (double)known, known, "%s", more ? "\n known accuracy #" : "") ||
        answer_add(answer, "", "f1_known", called + trues > missed ? 2 * (double)found / (double)(called + trues - missed) : 0, known, "%s",
                   more ? " f1 #, without triples of unknown names, which the line above counts as wrong" : ""))
        return -1;
    note("thresholds of %" PRIu64 " of %" PRIu64 " relations, chosen by the labelled triples of '%s'; the others have the one of all, %.4g", own,
         relations, request->known, thresholds[relations]);
    return 0;
}

int evaluate_live(struct triples_job **kept, const struct model *model, double found[4]) {
    static const char *const names[] = {"mrr", "hits10", "triples", "among"};
    ENDED_BY(answer_release) struct answer answer = {.count = 0};
    struct triples_job *job = *kept;
    if (!model) {
        if (job) release_job(job);
        free(job);
        *kept = NULL;
        return 0;
    }
    struct evaluate_request request = {.path = model->keys.train_evaluate, .reading = config_corpus(&model->keys)};
    request.reading.look.hints = 1;
    int is_first = !job;
    if (is_first && !(job = *kept = mem_zalloc(1, sizeof *job, "held-out triples"))) return -1;
    job->model = job->known.model = model;
    job->request = &request;
    if (is_first && prepare_job(job, NULL)) return -1;
    if (is_first && job->unknown)
        warn("%" PRIu64 " of %" PRIu64 " triple%s of '%s' ha%s a name that '%s' does not know: these count as misses", job->unknown, job->triples,
             text_plural(job->triples), request.path, job->unknown == 1 ? "s" : "ve", model->directory);
    if (is_first) warn_of_trained(job);
    if (!found) return 0;
    if (rank_all(job, NULL) || add_numbers(job, &answer)) return -1;
    for (int i = 0; i < 4; i++) found[i] = answer_value(&answer, "", names[i]);
    return 0;
}
