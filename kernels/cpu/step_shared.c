/* step_shared: the first pass of an exact step whose examples share their negatives (backend.h: shared_negatives), as products of
 * matrices. B examples, each with one target and one positive, are compared with K negatives:
 *
 *   U [B x dim], V [K x dim]    targets and negatives as they were before the step; of length 1 if scores are cosines
 *   1  Z = U V^T                scores; each row of Z gives its example's loss and coefficients, C [B x K], which replace Z
 *   2  C V                      what negatives add to each target's gradient
 *   3  C^T U                    the gradient of each negative
 *
 * A positive's score is the dot product of its pair. Cosines also need the gradient of the division by a row's length: if g is the
 * gradient of the unit row u = r / |r|, that of r is (g - (g.u) u) / |r|. A negative is one more place of its context row.
 *
 * Tiles are cut by place alone, and each sum runs over columns, negatives or examples in their order, so results are
 * the same with any number of workers.
 */
#include "step.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

enum {
    TILE = 64,  /* examples whose scores a worker computes together: 2 MB of scores with 8,192 negatives */
    DEPTH = 256 /* terms of a product at a time, so that a panel, 32 KB, stays in the nearest cache */
};

/* ---- the arrays ---- */

static uint64_t whole_panels(uint64_t rows) {
    return (rows + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

/* The arrays of one batch. A panel stores CPU_PANEL floats side by side, for each term of a product's sum. */
struct product {
    struct step *step;
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

struct cpu_shared_needs cpu_shared_needs(uint64_t examples, uint64_t negatives, uint32_t dim, uint64_t span) {
    uint64_t width = whole_panels(dim), stride = whole_panels(negatives);
    return (struct cpu_shared_needs){.scores = examples * stride,
                                     .rows = 2 * examples * width + stride * (dim + width) + examples + negatives,
                                     .context_gradient = (examples + negatives) * span,
                                     .of_worker = TILE * width + CPU_PANEL * DEPTH + width};
}

static int grow(struct product *p, int loss_only) {
    struct step *step = p->step;
    struct cpu_shared *s = &step->backend->shared;
    struct cpu_shared_needs needs = cpu_shared_needs(p->examples, p->negatives, step->dim, step->span);
    if (mem_grow(&s->shared_scores, &s->shared_score_capacity, needs.scores, sizeof(float), "the scores of shared negatives") ||
        mem_grow(&s->shared_rows, &s->shared_row_capacity, needs.rows, sizeof(float), "shared negatives") ||
        (!loss_only && mem_grow(&s->context_gradient, &s->context_gradient_capacity, needs.context_gradient, sizeof(float),
                                "the gradients of shared negatives")))
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

/* Reads a row into unit[width], scaled to length 1 if scores are cosines. Returns 1 / length, or 1 for dot products. */
static float read_unit(const struct product *p, const struct backend_table *table, uint32_t id, float *unit) {
    const struct step *step = p->step;
    const struct cpu_rows *rows = step->backend->rows;
    const float *row = unit;
    float inverse = 1;
    memset(unit, 0, p->width * sizeof(float));
    if (cpu_halves(table)) rows->widen(cpu_weights(table, id), step->dim, unit);
    else memcpy(unit, cpu_weights(table, id), step->dim * sizeof(float));
    if (step->request->loss.score != SCORE_COSINE) return inverse;
    rows->squares(&row, 1, step->dim, &inverse);
    inverse = loss_inverse_length(inverse);
    for (uint32_t j = 0; j < step->dim; j++) unit[j] *= inverse;
    return inverse;
}

static void read_targets(const struct product *p, uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; i++) {
        float *unit = p->target + i * p->width;
        p->target_inverse[i] = read_unit(p, p->step->request->target, p->target_ids[i], unit);
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
    float *unit = p->step->backend->scratch[worker].logits;
    uint64_t tiles = (p->examples + CPU_PANEL - 1) / CPU_PANEL, panels = p->stride / CPU_PANEL, at, end;
    while (pool_take(&p->taken, tiles + panels, 1, &at, &end)) {
        uint64_t first = at * CPU_PANEL, last = first + CPU_PANEL;
        if (at < tiles) read_targets(p, first, last < p->examples ? last : p->examples);
        else read_negatives(p, at - tiles, unit);
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
    uint32_t id = p->context_ids[p->negatives + i];
    struct positive positive = {.inverse = read_unit(p, step->request->context, id, unit)};
    rows->dots(&target, 1, &other, 1, step->dim, &positive.score, 1);
    positive.coefficient = positive.score;
    step->backend->shared.losses[1 + i] =
        rows->learn_shared(&step->request->loss, &positive.coefficient, cpu_positive_weights(step, p->negatives + i),
                           p->scores + i * p->stride, p->context_ids, (uint32_t)p->negatives,
                           step->stage->shared.masked ? id : DRAW_NONE, step->scale);
    return positive;
}

/* Adds the positive's contribution to the target's gradient, and writes the positive's gradient. */
static void gain_positive(const struct product *p, uint64_t i, const struct positive *positive, const float *unit, float *gain) {
    const struct step *step = p->step;
    const float *target = p->target + i * p->width;
    float *gradient = p->context_gradient + (p->negatives + i) * step->span;
    float along = step->request->loss.score == SCORE_COSINE ? positive->score : 0;
    float factor = positive->coefficient * positive->inverse;
    memset(gradient, 0, step->span * sizeof(float));
    for (uint32_t j = 0; j < step->dim; j++) gradient[j] = factor * (target[j] - along * unit[j]);
    for (uint32_t j = 0; j < step->dim; j++) gain[j] += positive->coefficient * unit[j];
    through_length(p, gain, target, p->target_inverse[i], p->target_gradient + i * step->span);
}

static void work_tile(const struct product *p, uint64_t first, uint64_t count, struct cpu_scratch *scratch) {
    float *gains = scratch->logits, *unit = gains + TILE * p->width;
    score_tile(p, first, count);
    struct positive positive[TILE];
    for (uint64_t i = 0; i < count; i++) positive[i] = learn_example(p, first + i, unit);
    if (p->step->request->loss_only) return;
    gain_of_tile(p, first, count, gains);
    for (uint64_t i = 0; i < count; i++) {
        read_unit(p, p->step->request->context, p->context_ids[p->negatives + first + i], unit);
        gain_positive(p, first + i, &positive[i], unit, gains + i * p->width);
    }
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
    if (step->request->loss.kind != LOSS_SOFTMAX || step->parted)
        return fail("shared negatives are trained by the softmax, in one process");
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
                        .examples = all->targets,
                        .negatives = step->stage->shared.count,
                        .width = whole_panels(step->dim),
                        .stride = whole_panels(step->stage->shared.count),
                        .target_ids = all->target,
                        .context_ids = all->context};
    if (check(step) || grow(&p, loss_only)) return -1;
    step->backend->shared.losses[0] = 0;
    return run(&p, read_rows) || run(&p, work_tiles) || (!loss_only && run(&p, gain_panels)) ? -1 : 0;
}
