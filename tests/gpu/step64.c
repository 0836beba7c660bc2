#include "kernels/triples.h"
#include "step64.h"
#include "common.h"
#include "losses64.h"
#include "rules64.h"

struct table64 table64_of(const struct record_layout *layout, uint64_t rows, const char *records) {
    struct table64 t = {.layout = *layout, .rows = rows};
    uint64_t floats = (uint64_t)(1 + layout->slots) * layout->dim;
    t.values = need(rows * floats * sizeof *t.values);
    t.updates = need(rows * sizeof *t.updates);
    t.gradients = need(rows * layout->dim * sizeof *t.gradients);
    t.places = need(rows * sizeof *t.places);
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t i = 0; i < floats; i++)
            t.values[row * floats + i] =
                value_of(layout, records + row * layout->packed, (uint32_t)(i / layout->dim), (uint32_t)(i % layout->dim));
        if (layout->counted) memcpy(&t.updates[row], records + (row + 1) * layout->packed - 4, 4);
    }
    return t;
}

void table64_free(struct table64 *t) {
    free(t->values);
    free(t->updates);
    free(t->gradients);
    free(t->places);
}

uint64_t table64_other_updates(const struct table64 *table, const char *records) {
    uint64_t row = table->layout.counted ? 0 : table->rows;
    while (row < table->rows && !memcmp(&table->updates[row], records + (row + 1) * table->layout.packed - 4, 4)) row++;
    return row;
}

static double *row_of(const struct table64 *t, uint64_t row) {
    return t->values + row * (1 + t->layout.slots) * t->layout.dim;
}

static void add(double *to, double factor, const double *from, uint64_t dim) {
    for (uint64_t i = 0; i < dim; i++) to[i] += factor * from[i];
}

/* Returns a dot product, summed in four lanes, so that additions need not wait for each other. */
static double dot(const double *x, const double *y, uint64_t dim) {
    double sum[4] = {0};
    uint64_t i = 0;
    for (; i + 4 <= dim; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < dim; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Rounds a row's bfloat16 fields, by the random bits of each value's position. */
static void round_record(const struct table64 *t, uint64_t row, uint64_t global_step) {
    uint32_t dim = t->layout.dim;
    for (uint32_t part = 0; part <= t->layout.slots; part++) {
        double *values = row_of(t, row) + (uint64_t)part * dim;
        uint32_t purpose = part ? DRAW_ROUND_STATE : DRAW_ROUND_WEIGHTS;
        uint32_t key = round_row_key(round_step_key(&t->rounding, purpose, global_step), (uint32_t)row);
        if (t->layout.field[part].type != VALUE_BFLOAT16) continue;
        for (uint32_t i = 0; i < dim; i++) {
            struct draw4 words = round_words(key, round_index(&t->rounding, i, part ? part - 1 : 0));
            values[i] = (double)bfloat16_value(bfloat16_round((float)values[i], round_bits(words, i)));
        }
    }
}

/* Updates the rows of a side, and sets their gradients to zero for the next step. */
static void update_side(struct table64 *t, const struct step_request *request) {
    uint64_t dim = t->layout.dim;
    for (uint64_t row = 0; row < t->rows; row++) {
        double *w = row_of(t, row), *g = t->gradients + row * dim;
        uint64_t updates = t->layout.counted ? t->updates[row] : request->global_step;
        if (!t->places[row]) continue;
        if (!request->loss_only && !row_has_bit(t->frozen, (uint32_t)row)) {
            rules64_update(request->rule, request->lr, updates, t->places[row], dim, g, w, w + dim);
            round_record(t, row, request->global_step);
            t->updates[row]++;
        }
        memset(g, 0, dim * sizeof *g);
        t->places[row] = 0;
    }
}

/* A block, and scratch arrays for one of its vectors. */
struct block64 {
    struct table64 *target, *context;
    const struct example_pool *pool;
    const uint32_t *targets, *contexts;
    const float *weights; /* weights of the positives; NULL: all 1 */
    uint32_t head;        /* the row of a triple's head, if the head is a context */
    uint64_t t, c, positives;
    uint32_t relation;    /* the relation that takes the place of the triple's own; DRAW_NONE: none does */
    double *vector, *gradient, *unit; /* [dim]; unit: [2 x dim] */
    double *scores, *coefficients, *distances; /* [c] */
    double scale;
};

/* to += a x b. conjugated: 1: b's imaginary parts have the other sign. */
static void add_product(enum example_product product, double *to, const double *a, const double *b, uint64_t dim, int conjugated) {
    uint64_t half = dim / 2;
    double sign = conjugated ? -1 : 1;
    for (uint64_t i = 0; i < dim && product == PRODUCT_REAL; i++) to[i] += a[i] * b[i];
    for (uint64_t i = 0; i < dim && product == PRODUCT_TRANSLATION; i++) to[i] += a[i] + (conjugated ? 0 : b[i]);
    for (uint64_t i = 0; i < half && product_is_complex(product); i++) {
        to[i] += a[i] * b[i] - sign * a[i + half] * b[i + half];
        to[i + half] += sign * a[i] * b[i + half] + a[i + half] * b[i];
    }
}

/* to += factor x the gradient of the sum of |x|^3 */
static void add_cubes(enum example_product product, double *to, double factor, const double *x, uint64_t dim) {
    for (uint64_t i = 0; i < dim && factor > 0; i++) {
        double partner = product_is_complex(product) ? x[(i + dim / 2) % dim] : 0;
        to[i] += 3 * factor * sqrt(x[i] * x[i] + partner * partner) * x[i];
    }
}

/* The two rows that are combined, and their gradients. head: the context row that is the head, if heads are contexts. For a rotation, the
 * relation's row and gradient are scratch copies scaled to numbers of length 1: turn_back() adds their gradient to that of the stored row. */
struct factors64 {
    double *row[2], *gradient[2];
};
static void make_unit(const struct block64 *b, struct factors64 *f) {
    uint64_t dim = b->target->layout.dim, half = dim / 2;
    for (uint64_t i = 0; i < dim; i++) {
        double length = hypot(f->row[1][i % half], f->row[1][i % half + half]);
        b->unit[i] = f->row[1][i] / length, b->unit[dim + i] = 0;
    }
    f->row[1] = b->unit, f->gradient[1] = b->unit + dim;
}
static void turn_back(const struct block64 *b, const double *row, double *gradient) {
    uint64_t dim = b->target->layout.dim, half = dim / 2;
    for (uint64_t i = 0; i < half; i++) { /* only what turns the number changes it */
        double re = b->unit[i], im = b->unit[i + half], turn = (b->unit[dim + i + half] * re - b->unit[dim + i] * im) / hypot(row[i], row[i + half]);
        gradient[i] -= turn * im, gradient[i + half] += turn * re;
    }
}
static struct factors64 factors_of(const struct block64 *b) {
    uint64_t dim = b->target->layout.dim;
    struct factors64 f;
    for (int k = 0; k < 2; k++) {
        struct table64 *table = b->pool->tied && !k ? b->context : b->target;
        uint32_t row = b->pool->tied ? (k ? b->targets[0] : b->head) : b->targets[k];
        if (k && b->relation != DRAW_NONE) row = b->relation;
        f.row[k] = row_of(table, row), f.gradient[k] = table->gradients + row * dim;
    }
    return f;
}

static void make_vector(const struct block64 *b, uint64_t number) {
    uint64_t dim = b->target->layout.dim;
    enum example_product product = b->pool->product;
    memset(b->vector, 0, dim * sizeof(double));
    if (product) {
        struct factors64 f = factors_of(b);
        if (product == PRODUCT_ROTATION) make_unit(b, &f);
        add_product(product, b->vector, f.row[0], f.row[1], dim, 0);
    }
    for (uint64_t i = 0; i < b->t && !product; i++) {
        double weight = b->pool->on ? (double)example_pool_weight(b->pool, (uint32_t)b->t, (uint32_t)i) : i == number;
        add(b->vector, weight, row_of(b->target, b->targets[i]), dim);
    }
    memset(b->gradient, 0, dim * sizeof(double));
}

/* Adds the vector's gradient to the gradients of the rows that it was pooled from. cubes: factor of the penalty of cubes. */
static void share_gradient(const struct block64 *b, uint64_t number, double cubes) {
    uint64_t dim = b->target->layout.dim;
    if (b->pool->product) {
        struct factors64 stored = factors_of(b), f = stored;
        if (b->pool->product == PRODUCT_ROTATION) make_unit(b, &f);
        for (int k = 0; k < 2; k++) {
            add_product(b->pool->product, f.gradient[k], b->gradient, f.row[1 - k], dim, 1);
            add_cubes(b->pool->product, f.gradient[k], cubes, f.row[k], dim);
        }
        if (b->pool->product == PRODUCT_ROTATION) turn_back(b, stored.row[1], stored.gradient[1]);
    }
    for (uint64_t i = 0; i < b->t && !b->pool->product; i++) {
        double weight = (double)example_pool_share(b->pool, (uint32_t)b->t, (uint32_t)i);
        if (!b->pool->on) weight = i == number;
        if (weight != 0) add(b->target->gradients + b->targets[i] * dim, weight, b->gradient, dim);
    }
}

/* Adds each score's coefficient x d score / d row to the gradients of its rows. */
static void gain(const struct block64 *b, const struct loss_options *loss) {
    uint64_t dim = b->target->layout.dim;
    double own = dot(b->vector, b->vector, dim);
    for (uint64_t c = 0; c < b->c; c++) {
        const double *y = row_of(b->context, b->contexts[c]);
        double *g = b->context->gradients + b->contexts[c] * dim, k = b->coefficients[c], by = k, squares = dot(y, y, dim);
        if (loss->score == SCORE_DISTANCE) {
            by = k / b->distances[c];
            add(b->gradient, -by, b->vector, dim);
            add(g, -by, y, dim);
        }
        if (loss->score == SCORE_COSINE) {
            by = own > 0 && squares > 0 ? k / sqrt(own * squares) : 0;
            if (own > 0) add(b->gradient, -k * b->scores[c] / own, b->vector, dim);
            if (squares > 0) add(g, -k * b->scores[c] / squares, y, dim);
        }
        add(b->gradient, by, y, dim);
        add(g, by, b->vector, dim);
    }
}

/* The logistic loss of one positive and of negatives that share a weight of 1 (losses.h). */
static double adversarial64(const struct block64 *b, const struct loss_options *loss) {
    double t = loss->temperature > 0 ? (double)loss->temperature : 1, sum = 0, all = log1p(exp(-b->scores[0] / t));
    b->coefficients[0] = (1 / (1 + exp(-b->scores[0] / t)) - 1) / t * b->scale;
    for (uint64_t c = 1; c < b->c; c++) sum += exp((double)loss->adversarial * b->scores[c] / t);
    for (uint64_t c = 1; c < b->c; c++) {
        double share = exp((double)loss->adversarial * b->scores[c] / t) / sum;
        all += share * log1p(exp(b->scores[c] / t));
        b->coefficients[c] = share / (1 + exp(-b->scores[c] / t)) / t * b->scale;
    }
    return all;
}

static double meet(const struct block64 *b, const struct loss_options *loss) {
    uint64_t dim = b->target->layout.dim;
    double own = dot(b->vector, b->vector, dim);
    for (uint64_t c = 0; c < b->c; c++) {
        const double *y = row_of(b->context, b->contexts[c]);
        double length = loss->score == SCORE_COSINE ? sqrt(own * dot(y, y, dim)) : 1;
        b->scores[c] = length > 0 ? dot(b->vector, y, dim) / length : 0;
        if (loss->score != SCORE_DISTANCE) continue;
        double squares = own + dot(y, y, dim), apart = squares - 2 * b->scores[c], least = c ? (double)LOSS_NEAR * squares : 0;
        b->distances[c] = sqrt(fmax(apart, least + 1e-12));
        b->scores[c] = (double)loss->margin - b->distances[c];
    }
    if (loss->kind == LOSS_LOGISTIC && loss->adversarial > 0) return adversarial64(b, loss);
    return losses64(loss, b->scores, b->coefficients, b->c, b->positives, b->weights, b->scale);
}

/* Lists the contexts of a block: its positive, and the shared negatives that are in its sum. Returns their number. */
static uint64_t compare_with_shared(const struct batch_view *view, uint64_t block, uint32_t *contexts) {
    uint32_t positive = view->context_ids[view->context_starts[block]];
    uint64_t count = 0;
    contexts[count++] = positive;
    for (uint32_t i = 0; i < view->shared.count; i++)
        if (!view->shared.masked || view->context_ids[i] != positive) contexts[count++] = view->context_ids[i];
    return count;
}

/* The softmax over relations, each of which takes the place of the triple's own. Returns its loss. */
static double meet_relations(struct block64 *b, const struct batch_view *view, const struct step_request *request) {
    struct loss_options plain = {.score = request->loss.score, .margin = request->loss.margin};
    uint32_t own = b->targets[b->t - 1], count = view->shared.relations, tail = b->contexts[0];
    double t = request->loss.temperature > 0 ? (double)request->loss.temperature : 1, weight = (double)request->loss.relations, sum = 0, loss = 0;
    double *score = need((uint64_t)count * sizeof *score), scale = b->scale;
    b->c = 1, b->positives = 1, b->contexts = &tail;
    for (uint32_t i = 0; i < count; i++) {
        b->relation = view->target_ids[i];
        make_vector(b, 0);
        meet(b, &plain);
        score[i] = b->scores[0] / t;
        sum += exp(score[i]);
    }
    for (uint32_t i = 0; i < count && count > 1; i++) {
        b->relation = view->target_ids[i];
        if (b->relation == own) loss = weight * (log(sum) - score[i]);
        if (request->loss_only) continue;
        make_vector(b, 0);
        meet(b, &plain);
        b->coefficients[0] = scale * weight / t * (exp(score[i]) / sum - (b->relation == own));
        gain(b, &plain);
        share_gradient(b, 0, 0);
    }
    b->relation = DRAW_NONE;
    free(score);
    return loss;
}

double step64(struct table64 *target, struct table64 *context, const struct batch_view *view,
              const struct step_request *request) {
    uint64_t dim = target->layout.dim, contexts = view->context_starts[view->blocks];
    double loss = 0, *memory = need((4 * dim + 3 * contexts) * sizeof *memory);
    struct block64 b = {.target = target,
                        .context = context,
                        .pool = &view->pool,
                        .vector = memory,
                        .gradient = memory + dim,
                        .scores = memory + 2 * dim,
                        .coefficients = memory + 2 * dim + contexts,
                        .distances = memory + 2 * dim + 2 * contexts,
                        .unit = memory + 2 * dim + 3 * contexts,
                        .relation = DRAW_NONE,
                        .scale = request->mean ? 1.0 / (double)(view->blocks - (view->shared.count > 0)) : 1};
    uint32_t *compared = need((1 + (uint64_t)view->shared.count) * sizeof *compared);
    for (uint64_t t = 0; t < view->target_starts[view->blocks]; t++) target->places[view->target_ids[t]]++;
    for (uint64_t c = 0; c < contexts; c++) context->places[view->context_ids[c]]++;
    for (uint64_t block = 0; block < view->blocks; block++) {
        b.targets = view->target_ids + view->target_starts[block];
        b.contexts = view->context_ids + view->context_starts[block];
        b.weights = view->weights ? view->weights + view->context_starts[block] : NULL;
        b.t = block || !view->shared.count ? view->target_starts[block + 1] - view->target_starts[block] : 0;
        b.c = view->context_starts[block + 1] - view->context_starts[block];
        b.positives = view->positives[block];
        b.head = view->pool.tied && b.t ? b.contexts[1] : DRAW_NONE;
        if (view->shared.count && block) b.c = compare_with_shared(view, block, compared), b.contexts = compared;
        for (uint64_t k = 0; k < example_vectors(&view->pool, (uint32_t)b.t); k++) {
            make_vector(&b, k);
            loss += meet(&b, &request->loss);
            if (request->loss_only) continue;
            gain(&b, &request->loss);
            double cubes = (double)request->loss.cubes * b.scale;
            share_gradient(&b, k, cubes);
            if (!view->pool.product) continue;
            add_cubes(view->pool.product, context->gradients + b.contexts[0] * dim, cubes, row_of(context, b.contexts[0]), dim);
        }
        if (block && view->shared.relations && request->loss.relations > 0) loss += meet_relations(&b, view, request);
    }
    update_side(target, request);
    update_side(context, request);
    free(memory);
    free(compared);
    return loss;
}
