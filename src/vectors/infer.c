#include "infer.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "kernels/losses.h"
#include "kernels/examples.h"
#include "numeric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

int infer_open(struct infer *infer, const struct model *model, struct pool *pool) {
    *infer = (struct infer){.model = model, .pool = pool, .ids = {(uint32_t)model_items(model)}, .starts = {0, 2}};
    const struct idstream one = {.ids = infer->ids, .starts = infer->starts, .tokens = 2, .sentences = 1};
    if (!model->documents)
        return fail("'%s' was not trained on documents (corpus.format = documents), so that it has no row to infer", model->directory);
    if (!loss_is_plain(&model->loss))
        return fail("'%s' was trained with another loss than the logistic one of dot products, by which rows of documents are inferred",
                    model->directory);
    return examples_init(&infer->examples, &model->keys, &model->vocab, &one);
}

void infer_close(struct infer *infer) {
    examples_release(&infer->examples);
    *infer = (struct infer){.model = NULL};
}

/* ---- one document ---- */

/* A document whose row is being computed. */
struct document {
    const struct model *model;
    struct example_source source; /* a source with one document: its row, then its words */
    struct strip strip;
    uint32_t epoch;
    float rate;
    float *row;                                       /* [dim] the result */
    float vector[COLUMNS_MOST], moved[COLUMNS_MOST]; /* vector: predicts a word; moved: the vector's gradient x the learning rate */
    float copy[COLUMNS_MOST];
};

static void add_row(float *to, const float *row, float factor, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++) to[i] += factor * row[i];
}

/* Adds the target rows of the words in one half of the window to the vector. by: -1: the half before the middle of the window; 1: the half after it.
 * Returns the number of these words. */
static uint32_t add_side(struct document *d, uint64_t position, int by, uint32_t width) {
    struct strip_draws draws = strip_draws();
    struct strip_walk walk = {position, by};
    uint32_t count = 0, id;
    while (count < width && (id = strip_next(&d->source, &d->strip, &walk, d->epoch, &draws)) != DRAW_NONE) {
        add_row(d->vector, model_table_floats(d->model, TABLE_TARGET, id, d->copy), 1, d->model->dim);
        count++;
    }
    return count;
}

/* Sets the vector to the document's row, or to the mean of that row and the rows of the window's words. Returns the number of rows. */
static uint32_t make_vector(struct document *d, uint64_t position) {
    const struct example_pool *pool = &d->source.pool;
    uint32_t rows = 1, dim = d->model->dim;
    memcpy(d->vector, d->row, dim * sizeof *d->row);
    if (!pool->on) return rows;
    uint32_t width = strip_window(&d->source, position, d->epoch);
    rows += add_side(d, position, -1, width);
    rows += add_side(d, position, 1, width);
    float weight = example_pool_weight(pool, rows, 0);
    for (uint32_t i = 0; i < dim; i++) d->vector[i] *= weight;
    return rows;
}

static void train_context(struct document *d, uint32_t id, float y) {
    const float *row = model_table_floats(d->model, TABLE_CONTEXT, id, d->copy);
    add_row(d->moved, row, -d->rate * sgns_coefficient(dot(d->vector, row, d->model->dim), y), d->model->dim);
}

static void train_word(struct document *d, uint64_t position, uint32_t word) {
    uint32_t rows = make_vector(d, position);
    memset(d->moved, 0, d->model->dim * sizeof *d->moved);
    if (d->source.paths.starts) {
        const struct example_path path = example_path(&d->source, word);
        for (int code = 0; code < 2; code++)
            for (uint32_t i = 0; i < path.count[code]; i++)
                train_context(d, d->source.paths.nodes[path.first[code] + i], code ? 0.0f : 1.0f);
    } else {
        train_context(d, word, 1);
        const struct example_source *s = &d->source;
        const struct example_own own = example_own(s, &word, 1, &word, 0);
        for (uint32_t slot = 0; slot < s->negatives; slot++)
            for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
                uint32_t id = example_negative(s, d->epoch, position, slot, attempt);
                if (example_excludes(&own, id)) continue;
                train_context(d, id, 0);
                break;
            }
    }
    add_row(d->row, d->moved, example_pool_share(&d->source.pool, rows, 0), d->model->dim);
}

/* ---- all documents ---- */

struct call {
    const struct infer *infer;
    struct infer_passes passes;
    const uint64_t *starts, *words;
    uint64_t count;
    float *out;
    _Atomic uint64_t taken;
};

static int infer_some(void *context, unsigned worker) {
    struct call *call = context;
    OWNED struct document *d = mem_alloc(1, sizeof *d, "a document");
    OWNED uint32_t *ids = NULL;
    uint64_t capacity = 0, items = model_items(call->infer->model), i, end;
    int result = d ? 0 : -1;
    if (d) d->model = call->infer->model, d->source = call->infer->examples.source;
    while (!result && pool_take(&call->taken, call->count, 1, &i, &end)) {
        uint64_t length = 1;
        result = mem_grow(&ids, &capacity, 1 + call->starts[i + 1] - call->starts[i], sizeof *ids, "the words of a document");
        if (result) break;
        ids[0] = (uint32_t)items;
        for (uint64_t at = call->starts[i]; at < call->starts[i + 1]; at++)
            if (call->words[at] < items) ids[length++] = (uint32_t)call->words[at];
        d->row = call->out + i * d->model->dim;
        /* The document is ids[length]: ids[0] is the number of its row, the others are words. */
        const uint64_t starts[] = {0, length};
        double steps = (double)(call->passes.epochs * length), fall = call->passes.first - call->passes.last;
        d->source.ids = ids;
        d->source.starts = starts;
        d->source.tokens = length;
        memset(d->row, 0, d->model->dim * sizeof *d->row);
        for (d->epoch = 0; d->epoch < call->passes.epochs; d->epoch++) {
            struct strip_draws draws = strip_draws();
            d->strip = strip_of(&d->source, 0, d->epoch);
            for (uint64_t at = 1; at < length; at++) {
                uint32_t word = strip_word(&d->source, &d->strip, at, d->epoch, &draws);
                d->rate = (float)(call->passes.first - fall * (double)(d->epoch * length + at) / steps);
                if (word != DRAW_NONE) train_word(d, at, word);
            }
        }
    }
    return result;
}

static struct infer_passes passes_of(const struct config *c, const struct infer_passes *asked) {
    struct infer_passes passes = *asked;
    int sgd = c->optimizer_rule == RULE_SGD;
    if (!passes.epochs) passes.epochs = c->train_epochs ? c->train_epochs : 10;
    if (passes.first > 0) return passes;
    passes.first = sgd ? c->optimizer_lr : 0.025;
    passes.last = sgd ? c->optimizer_lr * c->optimizer_min_lr_ratio : 0;
    return passes;
}

/* Warns of documents whose rows are zeros. */
static void warn_of_zeros(const struct call *call) {
    uint64_t unknown = 0, dropped = 0, words = model_items(call->infer->model), dim = call->infer->model->dim;
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t known = 0, j = 0;
        for (uint64_t k = call->starts[i]; k < call->starts[i + 1]; k++) known += call->words[k] < words;
        while (j < dim && call->out[i * dim + j] == 0) j++;
        unknown += !known;
        dropped += known && j == dim;
    }
    if (unknown)
        warn("%" PRIu64 " of %" PRIu64 " documents have no word of the vocabulary; their rows are zeros", unknown, call->count);
    if (dropped)
        warn("%" PRIu64 " of %" PRIu64 " documents have only words that the run's examples.subsample left out each time; their rows are "
             "zeros; raise the epochs",
             dropped, call->count);
}

int infer_rows(const struct infer *infer, const struct infer_passes *passes, const uint64_t *starts, const uint64_t *words, uint64_t count,
               float *out) {
    struct call call = {
        .infer = infer, .passes = passes_of(&infer->model->keys, passes), .starts = starts, .words = words, .count = count, .out = out};
    if (pool_run(infer->pool, infer_some, &call)) return -1;
    warn_of_zeros(&call);
    return 0;
}
