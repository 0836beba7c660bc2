/* step_shared: the first pass of an exact step whose examples share their negatives (backend.h: shared_negatives), as products of
 * matrices. B examples, each with one target and one positive, are compared with K negatives:
 *
 *   U [B x dim], V [K x dim]    targets and negatives as they were before the step; of length 1 if scores are cosines
 *   1  Z = U V^T                scores; each row of Z gives its example's loss and coefficients, C [B x K], which replace Z
 *   2  C V                      what negatives add to each target's gradient
 *   3  C^T U                    the gradient of each negative
 *
 * The target of a triple is the product of two rows, its head and its relation (products.h). Their gradients follow from the
 * gradient of the product; the penalty of cubes is added to them and to the positive's gradient.
 *
 * A positive's score is the dot product of its pair. Cosines also need the gradient of the division by a row's length: if g is the
 * gradient of the unit row u = r / |r|, the gradient of r is (g - (g.u) u) / |r|. The gradient of a negative is added to the
 * gradient of its context row.
 *
 * The bounds of tiles depend only on the sizes of the matrices, and each sum runs over columns, negatives or examples in their
 * order, so results are the same with any number of workers.
 */
#include "step.h"

#include "kernels/products.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

enum {
    TILE = 64,  /* examples whose scores a worker computes together: 2 MB of scores with 8,192 negatives */
    DEPTH = 256, /* terms of a product at a time, so that a panel, 32 KB, stays in the nearest cache */
    FACTORS = 2  /* rows that are multiplied: a head and a relation */
};

/* ---- the arrays ---- */

static uint64_t whole_panels(uint64_t rows) {
    return (rows + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

/* The arrays of one batch. A panel stores CPU_PANEL floats side by side, for each term of a product's sum. */
struct product {
    struct step *step;
    enum example_product of; /* how the two rows of an example's target are multiplied; PRODUCT_NONE: the target is one row */
    const struct example_pool *pool;
    uint64_t examples, negatives, width; /* width: number of columns, rounded up to whole panels; stride: number of negatives,
                                          * rounded up to whole panels; the additional ones are zeros */
    uint64_t stride;
    float *scores;           /* [examples x stride] Z, then C */
    float *target;           /* [examples x width] U */
    float *target_columns;   /* [width / CPU_PANEL][examples x CPU_PANEL] the columns of U, in panels */
    float *negative_rows;    /* [stride / CPU_PANEL][dim x CPU_PANEL] the rows of V, in panels */
    float *negative_columns; /* [width / CPU_PANEL][stride x CPU_PANEL] the columns of V, in panels */
    float *target_inverse, *negative_inverse; /* [examples], [negatives] 1 / length; 1 for dot products */
    float *target_gradient, *context_gradient;
    const uint32_t *target_ids, *context_ids;
    _Atomic uint64_t taken;
};

struct cpu_shared_needs cpu_shared_needs(uint64_t examples, uint64_t negatives, uint32_t dim) {
    uint64_t width = whole_panels(dim), stride = whole_panels(negatives);
    return (struct cpu_shared_needs){.scores = examples * stride,
                                     .rows = 2 * examples * width + stride * (dim + width) + examples + negatives,
                                     .of_worker = TILE * width + CPU_PANEL * DEPTH + FACTORS * width};
}

static int grow(struct product *p, int loss_only) {
    struct step *step = p->step;
    struct cpu_shared *s = &step->backend->shared;
    struct cpu_shared_needs needs = cpu_shared_needs(p->examples, p->negatives, step->dim);
    if (mem_grow(&s->shared_scores, &s->shared_score_capacity, needs.scores, sizeof(float), "the scores of shared negatives") ||
        mem_grow(&s->shared_rows, &s->shared_row_capacity, needs.rows, sizeof(float), "shared negatives") ||
        (!loss_only && mem_grow(&s->context_gradient, &s->context_gradient_capacity, step->stage->all.contexts * step->span,
                                sizeof(float), "the gradients of shared negatives")))
        return -1;
    for (unsigned i = 0; i < pool_threads(step->backend->pool); i++) {
        struct cpu_scratch *scratch = &step->backend->scratch[i];
        if (mem_grow(&scratch->logits, &scratch->logit_capacity, needs.of_worker, sizeof(float), "a tile of scores")) return -1;
    }
    p->scores = s->shared_scores;
    p->target = s->shared_rows;
    p->target_columns = p->target + p->examples * p->width;
    p->negative_rows = p->target_columns + p->examples * p->width;
    p->negative_columns = p->negative_rows + p->stride * step->dim;
    p->target_inverse = p->negative_columns + p->stride * p->width;
    p->negative_inverse = p->target_inverse + p->examples;
    p->target_gradient = s->target_gradient;
    p->context_gradient = s->context_gradient;
    return 0;
}

/* Copies a row into column panels of `rows` rows each, as row `at`. */
static void put_columns(const struct product *p, const float *row, float *panels, uint64_t rows, uint64_t at) {
    for (uint64_t column = 0; column < p->width; column += CPU_PANEL)
        memcpy(panels + (column * rows + at * CPU_PANEL), row + column, CPU_PANEL * sizeof(float));
}

/* ---- rows ---- */

/* Reads a row into row[width]. */
static void read_row(const struct product *p, const struct backend_table *table, uint32_t id, float *row) {
    uint32_t dim = p->step->dim;
    memset(row, 0, p->width * sizeof(float));
    if (cpu_halves(table)) p->step->backend->rows->widen(cpu_weights(table, id), dim, row);
    else memcpy(row, cpu_weights(table, id), dim * sizeof(float));
}

/* Scales a row to length 1 if scores are cosines. Returns 1 / its old length, or 1 for dot products. */
static float make_unit(const struct product *p, float *unit) {
    const struct step *step = p->step;
    const float *row = unit;
    float inverse = 1;
    if (step->request->loss.score != SCORE_COSINE) return inverse;
    step->backend->rows->squares(&row, 1, step->dim, &inverse);
    inverse = loss_inverse_length(inverse);
    for (uint32_t j = 0; j < step->dim; j++) unit[j] *= inverse;
    return inverse;
}
static float read_unit(const struct product *p, const struct backend_table *table, uint32_t id, float *unit) {
    read_row(p, table, id, unit);
    return make_unit(p, unit);
}

/* Returns the place of an example's positive among the contexts. */
static uint64_t positive_place(const struct product *p, uint64_t i) {
    return p->negatives + i * example_shared_contexts(p->pool);
}

/* The two rows of the target of example i, head and relation, in a worker's scratch; and where their gradients are written. */
struct factors {
    float *row[FACTORS], *gradient[FACTORS];
};
static struct factors read_factors(const struct product *p, uint64_t i, struct cpu_scratch *scratch) {
    float *rows = scratch->logits + TILE * p->width + CPU_PANEL * DEPTH;
    struct factors f = {.row = {rows, rows + p->width}};
    for (uint64_t k = 0; k < FACTORS; k++) {
        int of_context = p->pool->tied && !k;
        uint64_t place = of_context ? positive_place(p, i) + 1 : p->pool->tied ? i : FACTORS * i + k;
        read_row(p, of_context ? p->step->request->context : p->step->request->target,
                 (of_context ? p->context_ids : p->target_ids)[place], f.row[k]);
        f.gradient[k] = (of_context ? p->context_gradient : p->target_gradient) + place * p->step->span;
    }
    return f;
}

/* The value of a column of a row, and the value of the column's partner (products.h). */
struct number {
    float own, partner;
};
static struct number number_at(const struct product *p, const float *row, uint32_t j) {
    return (struct number){row[j], p->of == PRODUCT_COMPLEX ? row[product_partner(p->of, p->step->dim, j)] : 0};
}

/* out = a x b */
static void multiply_rows(const struct product *p, const float *a, const float *b, float *out) {
    memset(out, 0, p->width * sizeof(float));
    for (uint32_t j = 0; j < p->step->dim; j++) {
        struct number x = number_at(p, a, j), y = number_at(p, b, j);
        out[j] = product_value(product_is_imaginary(p->of, p->step->dim, j), x.own, x.partner, y.own, y.partner);
    }
}

static void read_targets(const struct product *p, uint64_t first, uint64_t end, struct cpu_scratch *scratch) {
    for (uint64_t i = first; i < end; i++) {
        float *unit = p->target + i * p->width;
        if (p->of) {
            struct factors f = read_factors(p, i, scratch);
            multiply_rows(p, f.row[0], f.row[1], unit);
        } else {
            read_row(p, p->step->request->target, p->target_ids[i], unit);
        }
        p->target_inverse[i] = make_unit(p, unit);
        put_columns(p, unit, p->target_columns, p->examples, i);
    }
}

/* Reads the negatives of one panel of rows; rows of zeros follow the last negative. */
static void read_negatives(const struct product *p, uint64_t panel, float *unit) {
    float *rows = p->negative_rows + panel * CPU_PANEL * p->step->dim;
    for (uint64_t r = 0, at = panel * CPU_PANEL; r < CPU_PANEL; r++, at++) {
        memset(unit, 0, p->width * sizeof(float));
        if (at < p->negatives) p->negative_inverse[at] = read_unit(p, p->step->request->context, p->context_ids[at], unit);
        for (uint32_t j = 0; j < p->step->dim; j++) rows[j * CPU_PANEL + r] = unit[j];
        put_columns(p, unit, p->negative_columns, p->stride, at);
    }
}

static int read_rows(void *context, unsigned worker) {
    struct product *p = context;
    struct cpu_scratch *scratch = &p->step->backend->scratch[worker];
    uint64_t tiles = (p->examples + CPU_PANEL - 1) / CPU_PANEL, panels = p->stride / CPU_PANEL, at, end;
    while (pool_take(&p->taken, tiles + panels, 1, &at, &end)) {
        uint64_t first = at * CPU_PANEL, last = first + CPU_PANEL;
        if (at < tiles) read_targets(p, first, last < p->examples ? last : p->examples, scratch);
        else read_negatives(p, at - tiles, scratch->logits);
    }
    return 0;
}

/* ---- products ---- */

/* out[rows x width] = factors [rows x count] x a matrix of `count` rows, whose columns are in panels. */
static void multiply(const struct product *p, const float *const *factors, uint32_t rows, const float *columns, uint64_t count,
                     uint64_t panel_rows, uint64_t first, float *out) {
    for (uint64_t column = 0; column < p->width; column += CPU_PANEL)
        p->step->backend->rows->products(factors, rows, columns + column * panel_rows + first * CPU_PANEL, (uint32_t)count,
                                         out + column, p->width, first > 0);
}

/* Sets gradient[span] to (g - (g.unit) unit) x inverse for cosines, or to g for dot products. */
static void through_length(const struct product *p, const float *g, const float *unit, float inverse, float *gradient) {
    const struct step *step = p->step;
    float along = 0;
    memset(gradient, 0, step->span * sizeof(float));
    if (step->request->loss.score == SCORE_COSINE) step->backend->rows->dots(&g, 1, &unit, 1, step->dim, &along, 1);
    for (uint32_t j = 0; j < step->dim; j++) gradient[j] = (g[j] - along * unit[j]) * inverse;
}

/* ---- 1 and 2: by example ---- */

/* Multiplies the targets of a tile of examples with all negatives. */
static void score_tile(const struct product *p, uint64_t first, uint64_t count) {
    const float *target[TILE];
    for (uint64_t i = 0; i < count; i++) target[i] = p->target + (first + i) * p->width;
    for (uint64_t at = 0; at < p->stride; at += CPU_PANEL)
        p->step->backend->rows->products(target, (uint32_t)count, p->negative_rows + at * p->step->dim, p->step->dim,
                                         p->scores + first * p->stride + at, p->stride, 0);
}

/* Writes the negatives' part of the gradients of a tile's targets to gains[count x width]. */
static void gain_of_tile(const struct product *p, uint64_t first, uint64_t count, float *gains) {
    const float *factors[TILE];
    for (uint64_t k = 0; k < p->negatives; k += DEPTH) {
        uint64_t summands = p->negatives - k < DEPTH ? p->negatives - k : DEPTH;
        for (uint64_t i = 0; i < count; i++) factors[i] = p->scores + (first + i) * p->stride + k;
        multiply(p, factors, (uint32_t)count, p->negative_columns, summands, p->stride, k, gains);
    }
}

struct positive {
    float inverse, score, coefficient; /* inverse: 1 / length of the positive's row; 1 for dot products */
};

/* Replaces an example's scores by coefficients. unit[width] receives the row of its positive. */
static struct positive learn_example(const struct product *p, uint64_t i, float *unit) {
    const struct step *step = p->step;
    const struct cpu_rows *rows = step->backend->rows;
    const float *target = p->target + i * p->width, *other = unit;
    uint32_t id = p->context_ids[positive_place(p, i)];
    struct positive positive = {.inverse = read_unit(p, step->request->context, id, unit)};
    rows->dots(&target, 1, &other, 1, step->dim, &positive.score, 1);
    positive.coefficient = positive.score;
    step->backend->shared.losses[1 + i] =
        rows->learn_shared(&step->request->loss, &positive.coefficient, cpu_positive_weights(step, positive_place(p, i)),
                           p->scores + i * p->stride, p->context_ids, (uint32_t)p->negatives,
                           step->stage->shared.masked ? id : DRAW_NONE, step->scale);
    return positive;
}

/* Adds the gradient of the penalty of cubes to a row's gradient. */
static void add_cubes(const struct product *p, const float *row, float *gradient) {
    float factor = p->step->request->loss.cubes * p->step->scale;
    for (uint32_t j = 0; j < p->step->dim && factor > 0; j++) {
        struct number x = number_at(p, row, j);
        gradient[j] += factor * product_cube_gradient(x.own, x.partner);
    }
}

/* Writes the gradients of an example's head and relation. gain[width]: the gradient of their product. */
static void gain_factors(const struct product *p, uint64_t i, const float *gain, struct cpu_scratch *scratch) {
    struct factors f = read_factors(p, i, scratch);
    uint32_t dim = p->step->dim;
    for (int k = 0; k < FACTORS; k++) {
        float *gradient = f.gradient[k];
        memset(gradient, 0, p->step->span * sizeof(float));
        for (uint32_t j = 0; j < dim; j++) {
            struct number g = number_at(p, gain, j), y = number_at(p, f.row[1 - k], j);
            gradient[j] = product_gradient(product_is_imaginary(p->of, dim, j), g.own, g.partner, y.own, y.partner);
        }
        add_cubes(p, f.row[k], gradient);
    }
}

/* Adds the positive's contribution to the target's gradient, and writes the positive's gradient. */
static void gain_positive(const struct product *p, uint64_t i, const struct positive *positive, const float *unit, float *gain) {
    const struct step *step = p->step;
    const float *target = p->target + i * p->width;
    float *gradient = p->context_gradient + positive_place(p, i) * step->span;
    float along = step->request->loss.score == SCORE_COSINE ? positive->score : 0;
    float factor = positive->coefficient * positive->inverse;
    memset(gradient, 0, step->span * sizeof(float));
    for (uint32_t j = 0; j < step->dim; j++) gradient[j] = factor * (target[j] - along * unit[j]);
    for (uint32_t j = 0; j < step->dim; j++) gain[j] += positive->coefficient * unit[j];
}

/* Writes the gradients of the target and the positive of an example. gain[width]: the negatives' part of the target's gradient. */
static void gain_example(const struct product *p, uint64_t i, const struct positive *positive, float *gain,
                         struct cpu_scratch *scratch) {
    const struct step *step = p->step;
    float *unit = scratch->logits + TILE * p->width, *product = unit;
    uint64_t place = positive_place(p, i);
    read_unit(p, step->request->context, p->context_ids[place], unit);
    gain_positive(p, i, positive, unit, gain);
    if (p->of && step->request->loss.cubes > 0) {
        read_row(p, step->request->context, p->context_ids[place], unit);
        add_cubes(p, unit, p->context_gradient + place * step->span);
    }
    if (!p->of) product = p->target_gradient + i * step->span;
    through_length(p, gain, p->target + i * p->width, p->target_inverse[i], product);
    if (p->of) gain_factors(p, i, product, scratch);
}

static void work_tile(const struct product *p, uint64_t first, uint64_t count, struct cpu_scratch *scratch) {
    float *gains = scratch->logits, *unit = gains + TILE * p->width;
    score_tile(p, first, count);
    struct positive positive[TILE];
    for (uint64_t i = 0; i < count; i++) positive[i] = learn_example(p, first + i, unit);
    if (p->step->request->loss_only) return;
    gain_of_tile(p, first, count, gains);
    for (uint64_t i = 0; i < count; i++) gain_example(p, first + i, &positive[i], gains + i * p->width, scratch);
}

static int work_tiles(void *context, unsigned worker) {
    struct product *p = context;
    uint64_t at, end;
    while (pool_take(&p->taken, (p->examples + TILE - 1) / TILE, 1, &at, &end)) {
        uint64_t first = at * TILE, left = p->examples - first;
        work_tile(p, first, left < TILE ? left : TILE, &p->step->backend->scratch[worker]);
    }
    return 0;
}

/* ---- 3: by negative ---- */

/* Transposes a panel's columns of C: turned[CPU_PANEL x DEPTH], for examples [first, first + count). */
static void turn(const struct product *p, uint64_t panel, uint64_t first, uint64_t count, float *turned) {
    const float *from = p->scores + first * p->stride + panel * CPU_PANEL;
    for (uint64_t i = 0; i < count; i++, from += p->stride)
        for (uint64_t r = 0; r < CPU_PANEL; r++) turned[r * DEPTH + i] = from[r];
}

static void gain_panel(const struct product *p, uint64_t panel, struct cpu_scratch *scratch) {
    float *gains = scratch->logits, *unit = gains + CPU_PANEL * p->width, *turned = gains + TILE * p->width;
    const float *factors[CPU_PANEL];
    uint64_t at = panel * CPU_PANEL, left = p->negatives - at, count = left < CPU_PANEL ? left : CPU_PANEL;
    for (uint64_t r = 0; r < CPU_PANEL; r++) factors[r] = turned + r * DEPTH;
    memset(gains, 0, CPU_PANEL * p->width * sizeof(float));
    for (uint64_t i = 0; i < p->examples; i += DEPTH) {
        uint64_t summands = p->examples - i < DEPTH ? p->examples - i : DEPTH;
        turn(p, panel, i, summands, turned);
        multiply(p, factors, (uint32_t)count, p->target_columns, summands, p->examples, i, gains);
    }
    for (uint64_t r = 0; r < count; r++, at++) {
        for (uint64_t column = 0; column < p->width; column += CPU_PANEL)
            memcpy(unit + column, p->negative_columns + column * p->stride + at * CPU_PANEL, CPU_PANEL * sizeof(float));
        through_length(p, gains + r * p->width, unit, p->negative_inverse[at], p->context_gradient + at * p->step->span);
    }
}

static int gain_panels(void *context, unsigned worker) {
    struct product *p = context;
    uint64_t panel, end;
    while (pool_take(&p->taken, p->stride / CPU_PANEL, 1, &panel, &end))
        gain_panel(p, panel, &p->step->backend->scratch[worker]);
    return 0;
}

/* ---- the pass ---- */

static int check(const struct step *step) {
    int kind = step->request->loss.kind;
    if ((kind != LOSS_SOFTMAX && kind != LOSS_LOGISTIC) || step->parted)
        return fail("shared negatives are trained by the softmax or the logistic loss, in one process");
    if (step->stage->pool.product == PRODUCT_COMPLEX && step->dim % 2)
        return fail("complex numbers need an even number of columns, and the tables have %u", step->dim);
    return 0;
}

static int run(struct product *p, pool_job *job) {
    atomic_store(&p->taken, 0);
    return pool_run(p->step->backend->pool, job, p);
}

int cpu_pass_shared(struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    int loss_only = step->request->loss_only;
    struct product p = {.step = step,
                        .of = step->stage->pool.product,
                        .pool = &step->stage->pool,
                        .examples = all->targets / example_shared_targets(&step->stage->pool),
                        .negatives = step->stage->shared.count,
                        .width = whole_panels(step->dim),
                        .stride = whole_panels(step->stage->shared.count),
                        .target_ids = all->target,
                        .context_ids = all->context};
    if (check(step) || grow(&p, loss_only)) return -1;
    step->backend->shared.losses[0] = 0;
    return run(&p, read_rows) || run(&p, work_tiles) || (!loss_only && run(&p, gain_panels)) ? -1 : 0;
}
