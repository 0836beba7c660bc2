#include "triple_scores.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "numeric.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- scores ---- */

struct scoring {
    const struct model *model;
    const struct scored_triples *triples;
    _Atomic uint64_t next;
};

static int score_some(void *user, unsigned worker) {
    struct scoring *scoring = user;
    const struct model *model = scoring->model;
    uint64_t i, end;
    OWNED float *query = mem_alloc(2, run_triples_width(model) * sizeof *query, "a triple");
    if (!query) return -1;
    float *answer = query + run_triples_width(model);
    while (pool_take(&scoring->next, scoring->triples->count, 256, &i, &end)) {
        if (interrupt_check()) return -1;
        for (; i < end; i++) {
            struct scored_triple *triple = &scoring->triples->triple[i];
            uint32_t ends[2] = {triple->rows[TRIPLE_HEAD], triple->rows[TRIPLE_TAIL]};
            int64_t relation = triple->rows[TRIPLE_RELATION];
            double sum = 0;
            for (int back = 0; triple->is_known && back <= model->reciprocal; back++) {
                if (back) relation = run_triples_reciprocal(model, relation);
                if (run_triples_query(model, ends[back], (uint32_t)relation, query) || model_row(model, VIEW_CONTEXT, ends[!back], 0, answer))
                    return -1;
                sum += (double)run_triples_score(model, query, answer);
            }
            triple->score = triple->is_known ? (float)(sum / (1 + model->reciprocal)) : NAN;
        }
    }
    return 0;
}

static int score_all(const struct scored_triples *triples, const struct model *model, struct pool *pool) {
    struct scoring scoring = {.model = model, .triples = triples};
    return pool_run(pool, score_some, &scoring);
}

static int add_triple(struct scored_triples *triples, struct scored_triple triple) {
    if (mem_grow(&triples->triple, &triples->capacity, triples->count + 1, sizeof triple, "triples")) return -1;
    triples->triple[triples->count++] = triple;
    triples->falses += triple.is_known && !triple.is_true;
    triples->unknown += !triple.is_known;
    return 0;
}

static int take_triple(void *user, const uint32_t rows[3], const struct corpus_field fields[3]) {
    struct scored_triples *triples = user;
    struct scored_triple triple = {.is_true = fields[0].weight != 0, .is_known = 1};
    for (int i = 0; i < TRIPLE_TERMS; i++) triple.is_known &= rows[i] != WORDS_ABSENT;
    for (int i = 0; i < TRIPLE_TERMS; i++) {
        const struct corpus_field *name = &fields[i];
        int64_t number = triple.is_known ? rows[i] : words_add(&triples->others, words_hash(name->text, name->length), name->text, name->length);
        if (number < 0) return -1;
        triple.rows[i] = (uint32_t)number;
    }
    return add_triple(triples, triple);
}

int scored_triples_read(struct scored_triples *triples, const struct model *model, const char *path, const struct gathered *data,
                        const struct look_keys *look, int some, struct pool *pool) {
    struct look_keys keys = *look;
    keys.labelled = 1;
    if (run_triples_check(model) || run_triples_read(model, path, data, &keys, some, take_triple, triples)) return -1;
    if (triples->unknown)
        warn("%" PRIu64 " of %" PRIu64 " triple%s of '%s' ha%s a name that '%s' does not know", triples->unknown, triples->count,
             text_plural(triples->count), path, triples->unknown == 1 ? "s" : "ve", model->directory);
    return score_all(triples, model, pool);
}

void scored_triples_release(struct scored_triples *triples) {
    free(triples->triple);
    words_release(&triples->others);
    *triples = (struct scored_triples){.count = 0};
}

/* ---- probabilities ---- */

enum { OWN_LEAST = 20 }; /* fewest true validation triples by which a relation has a and b of its own: 20 had better log loss than 100 on CoDEx-S */

/* Adds to `triples` a false triple for each end of each true one of `validation`. Drops drawn triples that are true in training or validation.
 * Warns of triples of validation that are also in training. */
static int draw_false(struct scored_triples *triples, const struct model *model, const struct scored_triples *validation, const char *path,
                      struct pool *pool) {
    struct numpy_draws draws = numpy_draws_make(0);
    struct known_answers known = {.count = 0};
    struct idstream stream = {0};
    uint64_t *questions = NULL, kept = 0, trained = 0;
    for (uint64_t i = 0; i < validation->count; i++)
        for (int end = TRIPLE_HEAD; end <= TRIPLE_TAIL && validation->triple[i].is_known; end += TRIPLE_TAIL - TRIPLE_HEAD) {
            struct scored_triple triple = validation->triple[i];
            triple.is_true = 0;
            triple.rows[end] = numpy_draws_below(&draws, model_items(model));
            if (add_triple(triples, triple)) return -1;
        }
    if (!(questions = mem_alloc(triples->count, sizeof *questions, "questions"))) return -1;
    for (uint64_t i = 0; i < triples->count; i++)
        questions[i] = (uint64_t)triples->triple[i].rows[TRIPLE_HEAD] << 32 | triples->triple[i].rows[TRIPLE_RELATION];
    int result = known_answers_begin(&known, model, questions, triples->count) || run_triples_open(&stream, model, pool) < 0 ||
                         known_answers_add_stream(&known, &stream, pool) || known_answers_end(&known) ? -1 : 0;
    for (uint64_t i = 0; i < validation->count && !result; i++)
        if (validation->triple[i].is_known) {
            trained += (uint64_t)known_answers_has(&known, validation->triple[i].rows);
            result = known_answers_add(&known, validation->triple[i].rows, NULL);
        }
    if (trained)
        warn("%" PRIu64 " of %" PRIu64 " triples of '%s' are ones that '%s' was trained on: probabilities that are fitted to them are not those of "
             "new triples", trained, validation->count, path, model->directory);
    if (!result && !(result = known_answers_end(&known)))
        for (uint64_t i = 0; i < triples->count; i++) {
            const struct scored_triple *triple = &triples->triple[i];
            if (!known_answers_has(&known, triple->rows)) triples->triple[kept++] = *triple;
        }
    triples->count = kept;
    known_answers_release(&known);
    idstream_close(&stream);
    return result ? -1 : score_all(triples, model, pool);
}

static int by_relation(const void *a, const void *b) {
    const struct scored_triple *x = a, *y = b;
    return (x->rows[TRIPLE_RELATION] > y->rows[TRIPLE_RELATION]) - (x->rows[TRIPLE_RELATION] < y->rows[TRIPLE_RELATION]);
}

int calibration_fit(struct calibration *calibration, const struct model *model, const struct scored_triples *validation, const char *path,
                    struct pool *pool) {
    ENDED_BY(scored_triples_release) struct scored_triples all = {.count = 0};
    uint64_t items = model_items(model), relations = model->relations, count, own = 0, trues = 0;
    int draws = !validation->falses;
    *calibration = (struct calibration){.items = items, .relations = relations};
    if (draws && draw_false(&all, model, validation, path, pool)) return -1;
    for (int times = 0; times <= draws; times++) /* with false triples that are drawn, each true one is there twice */
        for (uint64_t i = 0; i < validation->count; i++)
            if (validation->triple[i].is_known && add_triple(&all, validation->triple[i])) return -1;
    count = all.count;
    qsort(all.triple, count, sizeof *all.triple, by_relation);
    OWNED float *x = mem_alloc(count, sizeof *x, "a regression");
    OWNED uint8_t *is_true = mem_alloc(count, 1, "a regression");
    if (!x || !is_true || !(calibration->line = mem_alloc(relations + 1, sizeof *calibration->line, "a regression"))) return -1;
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        is_true[i] = all.triple[i].is_true, trues += is_true[i];
        sum += (double)all.triple[i].score, squares += (double)all.triple[i].score * (double)all.triple[i].score;
    }
    if (!trues || trues == count)
        return fail("'%s': all triples that '%s' knows are %s; wanted true ones and, if they have labels, false ones, too", path, model->directory,
                    trues ? "true" : "false");
    double spread = sqrt(squares / (double)count - sum / (double)count * (sum / (double)count));
    calibration->mean = (float)(sum / (double)count), calibration->scale = spread > 0 ? (float)(1 / spread) : 1;
    for (uint64_t i = 0; i < count; i++) x[i] = (all.triple[i].score - calibration->mean) * calibration->scale;
    struct logistic_samples samples = {.x = x, .of_class = is_true, .count = count, .dim = 1};
    if (logistic_fit(calibration->line[relations], &samples)) return -1;
    for (uint64_t r = 0, i = 0, end; r < relations; r++, i = end) {
        uint64_t of = 0;
        for (end = i; end < count && all.triple[end].rows[TRIPLE_RELATION] == items + r; end++) of += is_true[end];
        int enough = of >= (uint64_t)OWN_LEAST * (1 + (uint64_t)draws) && end - i - of >= OWN_LEAST;
        samples = (struct logistic_samples){.x = x + i, .of_class = is_true + i, .count = end - i, .dim = 1};
        own += (uint64_t)enough;
        if (enough && logistic_fit(calibration->line[r], &samples)) return -1;
        if (!enough) calibration->line[r][0] = calibration->line[r][1] = NAN;
    }
    note("calibrated by %" PRIu64 " triples of '%s' and %" PRIu64 " false ones, %s; %" PRIu64 " of %" PRIu64 " relations have at least %d, and a "
         "regression of their own", trues / (1 + (uint64_t)draws), path, count - trues,
         draws ? "in which another head or tail was drawn" : "as their labels say", own, relations, OWN_LEAST);
    return 0;
}

double calibration_probability(const struct calibration *calibration, const struct scored_triple *triple) {
    if (!triple->is_known) return NAN;
    const float *line = calibration->line[(triple->rows[TRIPLE_RELATION] - calibration->items) % calibration->relations];
    if (isnan(line[0])) line = calibration->line[calibration->relations];
    return 1 / (1 + exp(-(double)logistic_score(line, &(float){(triple->score - calibration->mean) * calibration->scale}, 1)));
}

void calibration_release(struct calibration *calibration) {
    free(calibration->line);
    *calibration = (struct calibration){.items = 0};
}
