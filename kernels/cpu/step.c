/* step: one exact step of a batch.
 *
 *   1  by block      logits from old rows, loss, coefficients; each target occurrence's gradient, from old contexts.
 *                    If all blocks have the same negatives: by products of matrices
 *   2  by context    sums coefficients x old targets over the row's occurrences, in batch order; updates the row
 *   3  by target     sums the occurrences' gradients, in batch order; updates the row
 *
 * If ranks share the columns, each computes a partial sum of each logit: 1 then passes over the blocks twice, and in between the logits are summed
 * over the ranks. With clip, 2 and 3 need the norms of rows that occur more than once: a first pass over the rows computes their squares, which are
 * summed over the ranks, and a second one updates.
 *
 * Targets keep their old values until 2 is done, contexts until 1 is. A row belongs to one worker (row mod workers), which sorts its occurrences;
 * sums are always added in the same order, so results do not depend on the number of workers.
 */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/triples.h"

#include <string.h>

struct step;

/* One side of a batch: its targets, or its contexts. */
struct side {
    const uint32_t *ids; /* [places] */
    uint64_t places;
    struct backend_table *table;
    /* Returns a row's gradient, summed over its places (in scratch->gradient if there are several). */
    const float *(*gradient)(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch);
};

struct step {
    struct backend *backend;
    struct cpu_stage *stage;
    const struct step_request *request;
    struct rule_step constants; /* for the global step count */
    int parted; /* 1: ranks share the columns */
    int plain;  /* 1: word2vec's loss of dot products */
    int halves; /* 1: weights of either table are bfloat16 */
    const struct side *side; /* the side whose rows are updated now */
    float *squares; /* [side's places] the squared norm of the gradient of each row with several places, at its first place; or NULL */
    float scale;
    uint32_t dim;
    uint64_t span;
    _Atomic uint64_t taken;
};

/* Returns 1 if the blocks' vectors are bfloat16 rows. */
static inline int cpu_kept_vectors(const struct step *step) {
    return cpu_halves(step->request->target) && !step->stage->pool.on;
}

/* Returns a block's scores [vectors x C]: first logits, later coefficients of dot products. */
static inline float *cpu_block_logits(const struct step *step, uint64_t number) {
    return step->backend->shared.coefficients + step->stage->logit_starts[number];
}
/* For cosines, return the arrays after the logits: for each place the row's sum of squares, which pass 1 replaces by the factor of the row in its
 * own gradient. A pooled block's vector uses the place of its first target. */
static inline float *cpu_target_lengths(const struct step *step) {
    return step->backend->shared.coefficients + step->stage->all.logits;
}
static inline float *cpu_context_lengths(const struct step *step) {
    return cpu_target_lengths(step) + step->stage->all.targets;
}
/* Returns how many floats of `coefficients` must be summed over ranks. */
static inline uint64_t cpu_batch_logits(const struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    return all->logits + (step->request->loss.score == SCORE_COSINE ? all->targets + all->contexts : 0);
}

/* Returns the weights of positives, from the context at `place` on; NULL: all are 1. */
static inline const float *cpu_positive_weights(const struct step *step, uint64_t place) {
    return step->request->loss.weighted && step->stage->weighted ? step->stage->all.weight + place : NULL;
}

/* Lists pointers to the vectors that a block multiplies with its contexts: its target rows, or its pooled vector. */
static inline void cpu_block_vectors(const struct step *step, uint64_t number, const void **out) {
    const struct cpu_block *block = &step->stage->all.block[number];
    const uint32_t *targets = step->stage->all.target + block->targets;
    if (step->stage->pool.on)
        out[0] = step->backend->shared.pooled + number * step->span;
    else
        for (uint32_t t = 0; t < block->t; t++) out[t] = cpu_weights(step->request->target, targets[t]);
}

/* ==== the first pass, by block ====
 *
 * The first pass of an exact step. From the old rows it computes a block's scores, and from these its loss, its
 * coefficients, and the gradient of each of its target rows.
 *
 * Cosines are dot products divided by lengths, so ranks sum partial squares as they sum partial dot products. Coefficients of
 * cosines are converted to those of dot products, and to a factor of each row in its own gradient (losses.h).
 */

/* Pointers to a block's vectors (`vectors` is their number) and context rows, in a worker's scratch. */
struct block_rows {
    const float **vector, **context;
    uint32_t vectors;
};

static int find_rows(const struct step *step, uint64_t number, struct cpu_scratch *scratch, struct block_rows *out) {
    const struct cpu_block *block = &step->stage->all.block[number];
    const uint32_t *targets = step->stage->all.target + block->targets, *contexts = step->stage->all.context + block->contexts;
    uint64_t places = (uint64_t)block->t + block->c;
    float *wide = NULL;
    if (mem_grow(&scratch->rows, &scratch->row_capacity, places, sizeof *scratch->rows, "row pointers") ||
        (step->halves && !(wide = cpu_grow_wide(scratch, places, step->span))))
        return -1;
    out->vector = (const float **)scratch->rows;
    out->context = out->vector + block->t;
    out->vectors = example_vectors(&step->stage->pool, block->t);
    cpu_block_vectors(step, number, (const void **)scratch->rows);
    for (uint32_t t = 0; t < out->vectors && cpu_kept_vectors(step); t++)
        out->vector[t] = cpu_read_row(step->backend->rows, step->request->target, targets[t], wide + t * step->span);
    for (uint32_t c = 0; c < block->c; c++)
        out->context[c] = cpu_read_row(step->backend->rows, step->request->context, contexts[c], wide + (block->t + (uint64_t)c) * step->span);
    return 0;
}

/* ---- scores ---- */

static void pool_block(const struct step *step, uint64_t number) {
    const struct cpu_block *block = &step->stage->all.block[number];
    const uint32_t *targets = step->stage->all.target + block->targets;
    float *pooled = step->backend->shared.pooled + number * step->span;
    memset(pooled, 0, step->span * sizeof(float));
    for (uint32_t t = 0; t < block->t; t++) {
        const void *row = cpu_weights(step->request->target, targets[t]);
        float weight = example_pool_weight(&step->stage->pool, block->t, t);
        cpu_combine_rows(step->backend->rows, cpu_halves(step->request->target), pooled, &weight, 1, &row, 1, step->dim);
    }
}

static void dot_block(struct step *step, uint64_t number, const struct block_rows *of_block) {
    const struct cpu_rows *rows = step->backend->rows;
    const struct cpu_block *block = &step->stage->all.block[number];
    if (step->stage->pool.on) pool_block(step, number);
    rows->dots(of_block->vector, of_block->vectors, of_block->context, block->c, step->dim, cpu_block_logits(step, number), block->c);
    if (step->request->loss.score != SCORE_COSINE) return;
    rows->squares(of_block->vector, of_block->vectors, step->dim, cpu_target_lengths(step) + block->targets);
    rows->squares(of_block->context, block->c, step->dim, cpu_context_lengths(step) + block->contexts);
}

/* ---- loss and coefficients ---- */

static void invert(float *squares, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) squares[i] = loss_inverse_length(squares[i]);
}

/* Replaces each row's 1 / length by the row's factor in its own gradient, computed from coefficient x cosine of its pairs. */
static void make_own(const float *products, float *t_lengths, uint32_t t_count, float *c_lengths, uint32_t c_count) {
    for (uint32_t t = 0; t < t_count; t++) {
        float sum = 0;
        for (uint32_t c = 0; c < c_count; c++) sum += products[(uint64_t)t * c_count + c];
        t_lengths[t] = loss_own(sum, t_lengths[t]);
    }
    for (uint32_t c = 0; c < c_count; c++) {
        float sum = 0;
        for (uint32_t t = 0; t < t_count; t++) sum += products[(uint64_t)t * c_count + c];
        c_lengths[c] = loss_own(sum, c_lengths[c]);
    }
}

/* Computes loss and coefficients from dot products and squares. work: the block's cosines, later cosine x coefficient. */
static double learn_cosines(struct step *step, const struct cpu_block *block, uint32_t vectors, float *scores, float *work) {
    const struct cpu_rows *rows = step->backend->rows;
    float *t_lengths = cpu_target_lengths(step) + block->targets, *c_lengths = cpu_context_lengths(step) + block->contexts;
    uint64_t pairs = (uint64_t)vectors * block->c;
    const float *weights = cpu_positive_weights(step, block->contexts);
    invert(t_lengths, vectors);
    invert(c_lengths, block->c);
    rows->scale(scores, t_lengths, vectors, c_lengths, block->c);
    memcpy(work, scores, pairs * sizeof *work);
    double loss = rows->learn(&step->request->loss, scores, vectors, block->c, block->positives, weights, step->scale, work + pairs);
    for (uint64_t i = 0; i < pairs; i++) work[i] *= scores[i];
    rows->scale(scores, t_lengths, vectors, c_lengths, block->c);
    make_own(work, t_lengths, vectors, c_lengths, block->c);
    return loss;
}

/* Replaces a block's scores, summed over ranks, by coefficients of dot products. */
static int learn_scores(struct step *step, uint64_t number, const struct block_rows *of_block, struct cpu_scratch *scratch) {
    const struct cpu_rows *rows = step->backend->rows;
    const struct cpu_block *block = &step->stage->all.block[number];
    float *scores = cpu_block_logits(step, number);
    double *loss = step->backend->shared.losses + number;
    if (step->plain) {
        *loss = rows->loss(scores, of_block->vectors, block->c, block->positives);
        if (!step->request->loss_only) rows->coefficients(scores, of_block->vectors, block->c, block->positives, step->scale);
        return 0;
    }
    uint64_t work = ((uint64_t)of_block->vectors + 2) * block->c;
    if (mem_grow(&scratch->logits, &scratch->logit_capacity, work, sizeof(float), "a block's scores")) return -1;
    *loss = step->request->loss.score == SCORE_COSINE ? learn_cosines(step, block, of_block->vectors, scores, scratch->logits)
                                                      : rows->learn(&step->request->loss, scores, of_block->vectors, block->c, block->positives,
                                                                    cpu_positive_weights(step, block->contexts), step->scale, scratch->logits);
    return 0;
}

/* ---- gradients of targets ---- */

/* Computes the gradient of a vector from the old context rows. */
static void vector_gradient(const struct step *step, uint64_t number, const struct block_rows *of_block, uint32_t vector, float *gradient) {
    const struct cpu_rows *rows = step->backend->rows;
    const struct cpu_block *block = &step->stage->all.block[number];
    memset(gradient, 0, step->span * sizeof(float));
    rows->combine(gradient, cpu_block_logits(step, number) + (uint64_t)vector * block->c, 1, of_block->context, block->c, step->dim);
    if (step->request->loss.score == SCORE_COSINE)
        rows->combine(gradient, cpu_target_lengths(step) + block->targets + vector, 1, of_block->vector + vector, 1, step->dim);
}

/* Distributes the gradient of a pooled vector, stored at its block's first target, to the block's target rows. */
static void share_gradient(const struct step *step, const struct cpu_block *block, float *gradient) {
    const struct example_pool *pool = &step->stage->pool;
    for (uint32_t t = block->t; t-- > 0 && !pool->whole;) {
        float share = example_pool_share(pool, block->t, t), *of_row = gradient + t * step->span;
        for (uint32_t j = 0; j < step->span; j++) of_row[j] = share * gradient[j];
    }
    for (uint32_t t = 1; t < block->t && pool->whole; t++) memcpy(gradient + t * step->span, gradient, step->span * sizeof(float));
}

static void target_gradients(const struct step *step, uint64_t number, const struct block_rows *of_block) {
    const struct cpu_block *block = &step->stage->all.block[number];
    float *gradient = step->backend->shared.target_gradient + block->targets * step->span;
    const uint32_t *targets = step->stage->all.target + block->targets;
    for (uint32_t v = 0; v < of_block->vectors; v++)
        if (step->stage->pool.on || !table_is_frozen(&step->request->target->spec, targets[v]))
            vector_gradient(step, number, of_block, v, gradient + v * step->span);
    if (step->stage->pool.on) share_gradient(step, block, gradient);
}

/* ---- the pass ---- */

/* Computes, for each block, dot products (dot = 1), loss and gradients (learn = 1), or both while its rows are in the cache. */
static int work_blocks(struct step *step, unsigned worker, int dot, int learn) {
    struct cpu_scratch *scratch = &step->backend->scratch[worker];
    struct block_rows rows;
    uint64_t first, end;
    while (pool_take(&step->taken, step->stage->all.count, 8, &first, &end))
        for (uint64_t i = first; i < end; i++) {
            if (find_rows(step, i, scratch, &rows)) return -1;
            if (dot) dot_block(step, i, &rows);
            if (learn && learn_scores(step, i, &rows, scratch)) return -1;
            if (learn && !step->request->loss_only) target_gradients(step, i, &rows);
        }
    return 0;
}
static int dot_blocks(void *step, unsigned worker) {
    return work_blocks(step, worker, 1, 0);
}
static int learn_blocks(void *step, unsigned worker) {
    return work_blocks(step, worker, 0, 1);
}
static int dot_and_learn_blocks(void *step, unsigned worker) {
    return work_blocks(step, worker, 1, 1);
}

/* Pass 1: computes every block's loss, the gradients of its targets, and its coefficients, which replace its logits. */
static int cpu_pass_blocks(struct step *step) {
    struct backend *backend = step->backend;
    if (!step->parted) return pool_run(backend->pool, dot_and_learn_blocks, step);
    if (pool_run(backend->pool, dot_blocks, step) || ranks_sum(backend->ranks, backend->shared.coefficients, cpu_batch_logits(step))) return -1;
    step->taken = 0;
    return pool_run(backend->pool, learn_blocks, step);
}

/* ==== the first pass with shared negatives ====
 *
 * The first pass of an exact step whose examples share their negatives (backend.h: shared_negatives), as products of
 * matrices. B examples, each with one target and one positive, are compared with K negatives:
 *
 *   U [B x dim], V [K x dim]    targets and negatives as they were before the step; of length 1 if scores are cosines
 *   1  Z = U V^T                scores; each row of Z gives its example's loss and coefficients, C [B x K], which replace Z
 *   2  C V                      what negatives add to each target's gradient
 *   3  C^T U                    the gradient of each negative
 *
 * The target of a triple is the product of two rows, its head and its relation (kernels/triples.h). Their gradients follow from the
 * gradient of the product; the penalty of cubes is added to them and to the positive's gradient. If relations are predicted, too, the same three
 * parts run once more: U has the pairs of head and tail, V has all relations, and an example's positive is one of these.
 *
 * A positive's score is the dot product of its pair. Cosines also need the gradient of the division by a row's length: if g is the
 * gradient of the unit row u = r / |r|, the gradient of r is (g - (g.u) u) / |r|. For distances d, Z becomes margin - d before coefficients are
 * computed, and these are divided by d afterwards; each row then has a factor in its own gradient, minus the sum of its coefficients. The gradient
 * of a negative is added to the gradient of its context row.
 *
 * If ranks share the columns, Z, the positives' scores (for distances: their squared distances) and the squares of rows are partial sums, which are
 * summed over the ranks before the coefficients are computed. All else is local, since both parts of a complex number are on one rank. Cosines would
 * need two more sums, of lengths and of gradients along rows, and are refused.
 *
 * The bounds of tiles depend only on the sizes of the matrices, and each sum runs over columns, negatives or examples in their
 * order, so results are the same with any number of workers.
 */

enum {
    TILE = 64,  /* examples whose scores a worker computes together: 2 MB with 8,192 negatives */
    DEPTH = 256, /* terms of a product at a time: a panel of them, 32 KB, stays in the nearest cache */
    TRIPLE_ROWS = 4 /* rows that read_triple() writes: the fields of struct triple_rows */
};

/* ---- the arrays ---- */

static uint64_t whole_panels(uint64_t rows) {
    return (rows + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

/* The arrays of one batch, for one of the two parts: candidates are negatives, or relations. A panel stores CPU_PANEL floats side by side for each
 * term of a product's sum. */
struct product {
    struct step *step;
    enum example_product of; /* how the two rows of an example's target are multiplied; PRODUCT_NONE: a target is one row */
    const struct example_pool *pool;
    int relations; /* 1: candidates are relations */
    enum loss_score score;
    uint64_t examples, negatives, width; /* negatives: number of candidates. width: columns, rounded up to whole panels */
    uint64_t stride; /* candidates, rounded up to whole panels, padded with zeros */
    const struct backend_table *candidates; /* the table of their rows, whose ids are candidate_ids[negatives] */
    const uint32_t *candidate_ids;
    float *scores;           /* [examples x stride] Z, then C */
    float *target;           /* [examples x width] U */
    float *target_columns;   /* [width / CPU_PANEL][examples x CPU_PANEL] panels of the columns of U */
    float *negative_rows;    /* [stride / CPU_PANEL][dim x CPU_PANEL] panels of the rows of V */
    float *negative_columns; /* [width / CPU_PANEL][stride x CPU_PANEL] panels of the columns of V */
    float *target_inverse, *negative_inverse; /* [examples] and [negatives] 1 / length; 1 for dot products; for distances squares, and after part 1
                                               * the target's factor in its own gradient */
    float *positive; /* [examples] each positive's dot product; for distances its squared distance. Comes after the two arrays above */
    float *target_gradient, *context_gradient;
    const uint32_t *target_ids, *context_ids;
    _Atomic uint64_t taken;
};

struct cpu_shared_needs cpu_shared_needs(uint64_t examples, uint64_t candidates, uint32_t dim) {
    uint64_t width = whole_panels(dim), stride = whole_panels(candidates);
    return (struct cpu_shared_needs){.scores = examples * stride,
                                     .rows = 2 * examples * width + stride * (dim + width) + 2 * examples + candidates,
                                     .of_worker = TILE * width + CPU_PANEL * DEPTH + TRIPLE_ROWS * width + stride};
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
    INVARIANT(p->width >= step->dim && p->stride >= p->negatives && p->stride % CPU_PANEL == 0 && p->width <= step->span + CPU_PANEL);
    p->scores = s->shared_scores;
    p->target = s->shared_rows;
    p->target_columns = p->target + p->examples * p->width;
    p->negative_rows = p->target_columns + p->examples * p->width;
    p->negative_columns = p->negative_rows + p->stride * step->dim;
    p->target_inverse = p->negative_columns + p->stride * p->width;
    p->negative_inverse = p->target_inverse + p->examples;
    p->positive = p->negative_inverse + p->negatives;
    p->target_gradient = s->target_gradient;
    p->context_gradient = s->context_gradient;
    return 0;
}

/* Copies a row into panels of columns, as row `at` of `rows`. */
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

static float squares_of(const struct product *p, const float *row) {
    float squares;
    p->step->backend->rows->squares(&row, 1, p->step->dim, &squares);
    return squares;
}

/* For cosines: scales a row to length 1, and returns 1 / its old length; for dot products returns 1; for distances the row's squares. */
static float make_unit(const struct product *p, float *unit) {
    if (p->score == SCORE_DOT) return 1;
    float squares = squares_of(p, unit), inverse = loss_inverse_length(squares);
    if (p->score == SCORE_DISTANCE) return squares;
    for (uint32_t j = 0; j < p->step->dim; j++) unit[j] *= inverse;
    return inverse;
}
static float read_unit(const struct product *p, const struct backend_table *table, uint32_t id, float *unit) {
    read_row(p, table, id, unit);
    return make_unit(p, unit);
}

/* Returns the index of an example's positive among the contexts. */
static uint64_t positive_place(const struct product *p, uint64_t i) {
    return p->step->stage->shared.count + i * example_shared_contexts(p->pool);
}
/* Returns the index of an example's relation among the targets. */
static uint64_t relation_place(const struct product *p, uint64_t i) {
    return p->step->stage->shared.relations + (p->pool->tied ? i : 2 * i + 1);
}

/* A column's value in a row, and the value of the column's partner (kernels/triples.h). */
static struct product_number number_at(const struct product *p, const float *row, uint32_t j) {
    return product_at(p->of, p->step->dim, row, j);
}

/* Copies a relation's row; if relations are rotations, scales each of its complex numbers to length 1. */
static void make_relation(const struct product *p, const float *stored, float *out) {
    for (uint32_t j = 0; j < p->step->dim; j++) out[j] = product_unit(p->of, number_at(p, stored, j)).own;
}

/* The rows of example i, a triple, in a worker's scratch, and where their gradients are written. */
struct triple_rows {
    float *head, *relation, *tail, *stored; /* relation: what kernels/triples.h takes as b; stored: its row */
    float *of_head, *of_relation, *of_tail;
};
static struct triple_rows read_triple(const struct product *p, uint64_t i, struct cpu_scratch *scratch) {
    float *rows = scratch->logits + TILE * p->width + CPU_PANEL * DEPTH;
    const struct step_request *request = p->step->request;
    uint64_t tail = positive_place(p, i), relation = relation_place(p, i), head = p->pool->tied ? tail + 1 : relation - 1, span = p->step->span;
    struct triple_rows t = {.head = rows, .relation = rows + p->width, .tail = rows + 2 * p->width, .stored = rows + 3 * p->width};
    read_row(p, p->pool->tied ? request->context : request->target, (p->pool->tied ? p->context_ids : p->target_ids)[head], t.head);
    read_row(p, request->target, p->target_ids[relation], t.stored);
    read_row(p, request->context, p->context_ids[tail], t.tail);
    make_relation(p, t.stored, t.relation);
    t.of_head = (p->pool->tied ? p->context_gradient : p->target_gradient) + head * span;
    t.of_relation = p->target_gradient + relation * span;
    t.of_tail = p->context_gradient + tail * span;
    return t;
}

/* Writes the target of a triple to out[width]. Returns what make_unit() returns. */
static float make_target(const struct product *p, uint64_t i, float *out, struct cpu_scratch *scratch) {
    struct triple_rows t = read_triple(p, i, scratch);
    memset(out, 0, p->width * sizeof(float));
    for (uint32_t j = 0; j < p->step->dim; j++) {
        struct product_number a = number_at(p, t.head, j);
        int imaginary = product_is_imaginary(p->of, p->step->dim, j);
        out[j] = p->relations ? product_pair(p->of, imaginary, a, number_at(p, t.tail, j))
                              : product_value(p->of, imaginary, a, number_at(p, t.relation, j));
    }
    return p->relations && p->of == PRODUCT_ROTATION ? squares_of(p, t.head) + squares_of(p, t.tail) : make_unit(p, out);
}

static void read_targets(const struct product *p, uint64_t first, uint64_t end, struct cpu_scratch *scratch) {
    for (uint64_t i = first; i < end; i++) {
        float *unit = p->target + i * p->width;
        if (p->of) p->target_inverse[i] = make_target(p, i, unit, scratch);
        else p->target_inverse[i] = read_unit(p, p->step->request->target, p->target_ids[i], unit);
        put_columns(p, unit, p->target_columns, p->examples, i);
    }
}

/* Reads the candidates of one panel; rows after the last candidate are zeros. */
static void read_negatives(const struct product *p, uint64_t panel, struct cpu_scratch *scratch) {
    float *rows = p->negative_rows + panel * CPU_PANEL * p->step->dim, *unit = scratch->logits, *stored = unit + p->width;
    int rotations = p->relations && p->of == PRODUCT_ROTATION;
    for (uint64_t r = 0, at = panel * CPU_PANEL; r < CPU_PANEL; r++, at++) {
        memset(unit, 0, p->width * sizeof(float));
        if (at < p->negatives) p->negative_inverse[at] = read_unit(p, p->candidates, p->candidate_ids[at], unit);
        if (at < p->negatives && rotations) {
            memcpy(stored, unit, p->width * sizeof(float));
            make_relation(p, stored, unit);
            p->negative_inverse[at] = 0;
        }
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
        else read_negatives(p, at - tiles, scratch);
    }
    return 0;
}

/* ---- products ---- */

/* out[rows x width] = factors [rows x count] x a matrix of `count` rows, given as panels of columns. */
static void multiply(const struct product *p, const float *const *factors, uint32_t rows, const float *columns, uint64_t count,
                     uint64_t panel_rows, uint64_t first, float *out) {
    for (uint64_t column = 0; column < p->width; column += CPU_PANEL)
        p->step->backend->rows->products(factors, rows, columns + column * panel_rows + first * CPU_PANEL, (uint32_t)count,
                                         out + column, p->width, first > 0);
}

/* Sets the row's gradient[span]. Cosines: (g - dot(g, unit) x unit) x inverse; inverse: 1 / length of the row. Distances: g + inverse x unit;
 * inverse: the row's factor in its own gradient. Dot products: g. */
static void through_length(const struct product *p, const float *g, const float *unit, float inverse, float *gradient) {
    const struct step *step = p->step;
    float along = 0, factor = p->score == SCORE_COSINE ? inverse : 1, own = p->score == SCORE_DISTANCE ? inverse : 0;
    memset(gradient, 0, step->span * sizeof(float));
    if (p->score == SCORE_COSINE) step->backend->rows->dots(&g, 1, &unit, 1, step->dim, &along, 1);
    for (uint32_t j = 0; j < step->dim; j++) gradient[j] = (g[j] - along * unit[j]) * factor + own * unit[j];
}

/* ---- 1 and 2: by example ---- */

/* Multiplies an example's target with its positive. unit[width]: scratch. */
static void score_positive(const struct product *p, uint64_t i, float *unit) {
    const struct step *step = p->step;
    const float *target = p->target + i * p->width, *other = unit;
    float score = 0;
    read_unit(p, step->request->context, p->context_ids[positive_place(p, i)], unit);
    if (p->score != SCORE_DISTANCE) step->backend->rows->dots(&target, 1, &other, 1, step->dim, &score, 1);
    for (uint32_t j = 0; j < step->dim && p->score == SCORE_DISTANCE; j++) score += (target[j] - unit[j]) * (target[j] - unit[j]);
    p->positive[i] = score;
}

/* Multiplies the targets of a tile of examples with all negatives, and with their positives. unit[width]: scratch. */
static void score_tile(const struct product *p, uint64_t first, uint64_t count, float *unit) {
    const float *target[TILE];
    for (uint64_t i = 0; i < count; i++) target[i] = p->target + (first + i) * p->width;
    for (uint64_t at = 0; at < p->stride; at += CPU_PANEL)
        p->step->backend->rows->products(target, (uint32_t)count, p->negative_rows + at * p->step->dim, p->step->dim,
                                         p->scores + first * p->stride + at, p->stride, 0);
    for (uint64_t i = 0; i < count && !p->relations; i++) score_positive(p, first + i, unit);
}

/* Writes the negatives' part of the gradients of a tile of targets to gains[count x width]. */
static void gain_of_tile(const struct product *p, uint64_t first, uint64_t count, float *gains) {
    const float *factors[TILE];
    for (uint64_t k = 0; k < p->negatives; k += DEPTH) {
        uint64_t summands = p->negatives - k < DEPTH ? p->negatives - k : DEPTH;
        for (uint64_t i = 0; i < count; i++) factors[i] = p->scores + (first + i) * p->stride + k;
        multiply(p, factors, (uint32_t)count, p->negative_columns, summands, p->stride, k, gains);
    }
}

/* Replaces an example's dot products with all candidates by margin - distance; apart[negatives]: receives the distances. */
static void make_distances(const struct product *p, uint64_t i, float *apart) {
    float *scores = p->scores + i * p->stride, own = p->target_inverse[i], margin = p->step->request->loss.margin;
    for (uint64_t k = 0; k < p->negatives; k++) {
        apart[k] = loss_distance(own + p->negative_inverse[k], scores[k]);
        scores[k] = margin - apart[k];
    }
}
/* Divides an example's coefficients by their distances, and sums them: `sum` comes in as the positive's, if this is not a candidate. */
static void end_distances(const struct product *p, uint64_t i, const float *apart, float sum) {
    float *scores = p->scores + i * p->stride;
    for (uint64_t k = 0; k < p->negatives; k++) scores[k] /= apart[k], sum += scores[k];
    p->target_inverse[i] = -sum;
}

/* Replaces an example's scores by the coefficients of its gradients (losses.h). Returns the positive's coefficient. apart[negatives]: scratch for
 * distances. */
static float learn_example(const struct product *p, uint64_t i, float *apart) {
    const struct step *step = p->step;
    uint32_t id = p->context_ids[positive_place(p, i)];
    float coefficient = p->positive[i], distance = 0;
    if (p->score == SCORE_DISTANCE) {
        distance = loss_distance(p->positive[i], 0);
        coefficient = step->request->loss.margin - distance;
        make_distances(p, i, apart);
    }
    step->backend->shared.losses[1 + i] =
        step->backend->rows->learn_shared(&step->request->loss, &coefficient, cpu_positive_weights(step, positive_place(p, i)),
                                          p->scores + i * p->stride, p->context_ids, (uint32_t)p->negatives,
                                          step->stage->shared.masked ? id : DRAW_NONE, step->scale);
    if (p->score == SCORE_DISTANCE) end_distances(p, i, apart, coefficient /= distance);
    return coefficient;
}

/* Does for relations what learn_example() does for negatives: a softmax over all relations, in which the triple's own relation is the positive. */
static void learn_relation(const struct product *p, uint64_t i, float *apart) {
    const struct step *step = p->step;
    const struct loss_options loss = {.kind = LOSS_SOFTMAX, .temperature = step->request->loss.temperature, .negative_weight = 1};
    uint64_t own = p->target_ids[relation_place(p, i)] - p->candidate_ids[0]; /* which candidate is its relation */
    float *scores = p->scores + i * p->stride, weight = step->request->loss.relations;
    if (p->score == SCORE_DISTANCE) make_distances(p, i, apart);
    float coefficient = scores[own];
    step->backend->shared.losses[1 + i] +=
        (double)weight * step->backend->rows->learn_shared(&loss, &coefficient, NULL, scores, p->candidate_ids, (uint32_t)p->negatives,
                                                           p->candidate_ids[own], step->scale * weight);
    scores[own] = coefficient;
    if (p->score == SCORE_DISTANCE) end_distances(p, i, apart, 0);
}

/* Adds the gradient of the penalty of cubes to a row's gradient. */
static void add_cubes(const struct product *p, const float *row, float *gradient) {
    float factor = p->step->request->loss.cubes * p->step->scale;
    for (uint32_t j = 0; j < p->step->dim && factor > 0; j++) {
        gradient[j] += factor * product_cube_gradient(number_at(p, row, j));
    }
}

/* Turns the gradient of a relation's numbers of length 1 into that of its row, if these are rotations. */
static void through_unit(const struct product *p, const float *stored, float *gradient) {
    uint32_t dim = p->step->dim, half = dim / 2;
    for (uint32_t j = 0; j < half && p->of == PRODUCT_ROTATION; j++) {
        struct product_number g = number_at(p, gradient, j), other = number_at(p, gradient, j + half);
        gradient[j] = product_unit_gradient(g, number_at(p, stored, j));
        gradient[j + half] = product_unit_gradient(other, number_at(p, stored, j + half));
    }
}

/* Writes the gradients of an example's head and relation. gain[width]: gradient of their product. */
static void gain_factors(const struct product *p, uint64_t i, const float *gain, struct cpu_scratch *scratch) {
    struct triple_rows t = read_triple(p, i, scratch);
    uint32_t dim = p->step->dim;
    memset(t.of_head, 0, p->step->span * sizeof(float));
    memset(t.of_relation, 0, p->step->span * sizeof(float));
    for (uint32_t j = 0; j < dim; j++) {
        struct product_number g = number_at(p, gain, j);
        int imaginary = product_is_imaginary(p->of, dim, j);
        t.of_head[j] = product_gradient(p->of, imaginary, g, number_at(p, t.relation, j));
        t.of_relation[j] = product_gradient(p->of, imaginary, g, number_at(p, t.head, j));
    }
    through_unit(p, t.stored, t.of_relation);
    add_cubes(p, t.head, t.of_head);
    add_cubes(p, t.stored, t.of_relation);
}

/* Adds to the gradients of an example's head and tail. gain[width]: the candidates' part of the gradient of their pair. */
static void gain_pair(const struct product *p, uint64_t i, float *gain, struct cpu_scratch *scratch) {
    struct triple_rows t = read_triple(p, i, scratch);
    uint32_t dim = p->step->dim;
    float own = p->score == SCORE_DISTANCE ? p->target_inverse[i] : 0, of_rows = p->of == PRODUCT_ROTATION ? own : 0;
    for (uint32_t j = 0; j < dim && p->of == PRODUCT_TRANSLATION; j++) gain[j] += own * p->target[i * p->width + j];
    for (uint32_t j = 0; j < dim; j++) {
        struct product_number g = number_at(p, gain, j);
        int imaginary = product_is_imaginary(p->of, dim, j);
        t.of_head[j] += product_pair_head(p->of, imaginary, number_at(p, t.tail, j), g) + of_rows * t.head[j];
        t.of_tail[j] += product_pair_tail(p->of, imaginary, number_at(p, t.head, j), g) + of_rows * t.tail[j];
    }
}

/* Adds the positive's part to the target's gradient, and writes the positive's own gradient. inverse: what make_unit() returned for unit[width]. */
static void gain_positive(const struct product *p, uint64_t i, float coefficient, float inverse, const float *unit, float *gain) {
    const struct step *step = p->step;
    const float *target = p->target + i * p->width;
    float *gradient = p->context_gradient + positive_place(p, i) * step->span;
    float along = p->score == SCORE_COSINE ? p->positive[i] : p->score == SCORE_DISTANCE;
    float factor = coefficient * (p->score == SCORE_DISTANCE ? 1 : inverse);
    memset(gradient, 0, step->span * sizeof(float));
    for (uint32_t j = 0; j < step->dim; j++) gradient[j] = factor * (target[j] - along * unit[j]), gain[j] += coefficient * unit[j];
}

/* Writes the gradients of an example's target and positive. coefficient: d loss / d score of the positive. gain[width]: comes in as the part of the
 * target's gradient that negatives give; the positive's part is added to it. */
static void gain_example(const struct product *p, uint64_t i, float coefficient, float *gain, struct cpu_scratch *scratch) {
    const struct step *step = p->step;
    float *unit = scratch->logits + TILE * p->width, *product = unit;
    uint64_t place = positive_place(p, i);
    float inverse = read_unit(p, step->request->context, p->context_ids[place], unit);
    gain_positive(p, i, coefficient, inverse, unit, gain);
    if (p->of && step->request->loss.cubes > 0) {
        read_row(p, step->request->context, p->context_ids[place], unit);
        add_cubes(p, unit, p->context_gradient + place * step->span);
    }
    if (!p->of) product = p->target_gradient + i * step->span;
    through_length(p, gain, p->target + i * p->width, p->target_inverse[i], product);
    if (p->of) gain_factors(p, i, product, scratch);
}

static void learn_tile(const struct product *p, uint64_t first, uint64_t count, struct cpu_scratch *scratch) {
    float *gains = scratch->logits, *apart = gains + TILE * p->width + CPU_PANEL * DEPTH + TRIPLE_ROWS * p->width;
    float coefficient[TILE];
    for (uint64_t i = 0; i < count; i++)
        if (p->relations) learn_relation(p, first + i, apart);
        else coefficient[i] = learn_example(p, first + i, apart);
    if (p->step->request->loss_only) return;
    gain_of_tile(p, first, count, gains);
    for (uint64_t i = 0; i < count; i++)
        if (p->relations) gain_pair(p, first + i, gains + i * p->width, scratch);
        else gain_example(p, first + i, coefficient[i], gains + i * p->width, scratch);
}

/* Computes, for each tile of examples, scores (score = 1), loss and gradients (learn = 1), or both while the scores are in the cache. */
static int work_tiles(struct product *p, unsigned worker, int score, int learn) {
    struct cpu_scratch *scratch = &p->step->backend->scratch[worker];
    uint64_t at, end;
    while (pool_take(&p->taken, (p->examples + TILE - 1) / TILE, 1, &at, &end)) {
        uint64_t first = at * TILE, left = p->examples - first, count = left < TILE ? left : TILE;
        if (score) score_tile(p, first, count, scratch->logits);
        if (learn) learn_tile(p, first, count, scratch);
    }
    return 0;
}
static int score_tiles(void *product, unsigned worker) {
    return work_tiles(product, worker, 1, 0);
}
static int learn_tiles(void *product, unsigned worker) {
    return work_tiles(product, worker, 0, 1);
}
static int score_and_learn_tiles(void *product, unsigned worker) {
    return work_tiles(product, worker, 1, 1);
}

/* ---- 3: by negative ---- */

/* Transposes the columns of C that belong to a panel, for examples first .. first + count - 1: turned[CPU_PANEL x DEPTH]. */
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
    float sums[CPU_PANEL] = {0}, *gradients = p->relations ? p->target_gradient : p->context_gradient, *stored = unit + p->width;
    memset(gains, 0, CPU_PANEL * p->width * sizeof(float));
    for (uint64_t i = 0; i < p->examples; i += DEPTH) {
        uint64_t summands = p->examples - i < DEPTH ? p->examples - i : DEPTH;
        turn(p, panel, i, summands, turned);
        multiply(p, factors, (uint32_t)count, p->target_columns, summands, p->examples, i, gains);
        for (uint64_t r = 0; r < count && p->score == SCORE_DISTANCE; r++)
            for (uint64_t k = 0; k < summands; k++) sums[r] += factors[r][k];
    }
    for (uint64_t r = 0; r < count; r++, at++) {
        float *gradient = gradients + at * p->step->span;
        for (uint64_t column = 0; column < p->width; column += CPU_PANEL)
            memcpy(unit + column, p->negative_columns + column * p->stride + at * CPU_PANEL, CPU_PANEL * sizeof(float));
        float own = p->relations && p->of == PRODUCT_ROTATION ? 0 : -sums[r];
        through_length(p, gains + r * p->width, unit, p->score == SCORE_DISTANCE ? own : p->negative_inverse[at], gradient);
        if (!p->relations || p->of != PRODUCT_ROTATION) continue;
        read_row(p, p->candidates, p->candidate_ids[at], stored);
        through_unit(p, stored, gradient);
    }
}

static int gain_panels(void *context, unsigned worker) {
    struct product *p = context;
    uint64_t panel, end;
    while (pool_take(&p->taken, p->stride / CPU_PANEL, 1, &panel, &end)) gain_panel(p, panel, &p->step->backend->scratch[worker]);
    return 0;
}

/* ---- the pass ---- */

static int run(struct product *p, pool_job *job) {
    atomic_store(&p->taken, 0);
    return pool_run(p->step->backend->pool, job, p);
}

/* Replaces scores and squared lengths, which each rank computed from its own columns, by their sums over all ranks. */
static int sum_scores(const struct product *p) {
    struct ranks *ranks = p->step->backend->ranks;
    uint64_t squares = p->score == SCORE_DISTANCE ? p->examples + p->negatives : 0, positives = p->relations ? 0 : p->examples;
    return ranks_sum(ranks, p->scores, p->examples * p->stride) || ranks_sum(ranks, p->positive - squares, squares + positives) ? -1 : 0;
}

/* Multiplies all tiles, and computes their loss and gradients. */
static int run_tiles(struct product *p) {
    if (!p->step->parted) return run(p, score_and_learn_tiles);
    return run(p, score_tiles) || sum_scores(p) || run(p, learn_tiles) ? -1 : 0;
}

/* Pass 1 with shared negatives: computes every example's loss, its target's gradient, and the gradient of each context's place. */
static int cpu_pass_shared(struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    const struct shared_negatives *shared = &step->stage->shared;
    const struct loss_options *loss = &step->request->loss;
    int loss_only = step->request->loss_only, relations = shared->relations && loss->relations > 0;
    if (shared_product_check(&step->stage->pool, loss, step->dim, step->parted)) return -1;
    step->backend->shared.losses[0] = 0;
    for (int part = 0; part < 1 + relations; part++) {
        struct product p = {.step = step,
                            .of = step->stage->pool.product,
                            .pool = &step->stage->pool,
                            .relations = part,
                            .score = loss->score,
                            .examples = (all->targets - shared->relations) / example_shared_targets(&step->stage->pool),
                            .negatives = part ? shared->relations : shared->count,
                            .width = whole_panels(step->dim),
                            .candidates = part ? step->request->target : step->request->context,
                            .candidate_ids = part ? all->target : all->context,
                            .target_ids = all->target,
                            .context_ids = all->context};
        p.stride = whole_panels(p.negatives);
        if (grow(&p, loss_only) || run(&p, read_rows) || run_tiles(&p) || (!loss_only && run(&p, gain_panels))) return -1;
    }
    if (!relations && !loss_only && shared->relations)
        memset(step->backend->shared.target_gradient, 0, shared->relations * step->span * sizeof(float));
    return 0;
}

/* ---- 2 and 3: by row ---- */

/* Vectors, each with a factor, that are added to a row's gradient in order; at most TERMS in one call. */
enum { TERMS = 64 };
struct terms {
    const void *vector[TERMS];
    float factor[TERMS];
    uint32_t count;
};

static void add_terms(const struct step *step, struct terms *terms, float *gradient) {
    INVARIANT(terms->count <= TERMS);
    cpu_combine_rows(step->backend->rows, cpu_kept_vectors(step), gradient, terms->factor, 1, terms->vector, terms->count, step->dim);
    terms->count = 0;
}

static void add_context_occurrence(struct step *step, struct cpu_scratch *scratch, uint64_t occurrence, struct terms *terms) {
    struct cpu_stage *stage = step->stage;
    uint64_t number = stage->context_block[occurrence];
    const struct cpu_block *block = &stage->all.block[number];
    const void **vectors = (const void **)scratch->rows;
    const float *factors = cpu_block_logits(step, number) + (occurrence - block->contexts);
    uint32_t count = example_vectors(&stage->pool, block->t);
    cpu_block_vectors(step, number, vectors);
    INVARIANT(occurrence >= block->contexts && occurrence - block->contexts < block->c); /* context_block names its block */
    for (uint32_t v = 0; v < count; v++) {
        if (terms->count == TERMS) add_terms(step, terms, scratch->gradient);
        terms->vector[terms->count] = vectors[v];
        terms->factor[terms->count++] = factors[(uint64_t)v * block->c];
    }
}

/* For cosines, adds the row itself x its factor to its gradient. */
static void add_own(struct step *step, const struct cpu_named_row *row, float *gradient) {
    const struct backend_table *table = step->request->context;
    const float *own = cpu_context_lengths(step);
    const void *weights = cpu_weights(table, row->row);
    float sum = 0;
    for (uint64_t i = 0; i < row->places; i++) sum += own[(uint32_t)row->key[i]];
    cpu_combine_rows(step->backend->rows, cpu_halves(table), gradient, &sum, 1, &weights, 1, step->dim);
}

static const float *context_gradient(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    memset(scratch->gradient, 0, step->span * sizeof(float));
    struct terms terms;
    terms.count = 0;
    for (uint64_t i = 0; i < row->places; i++) add_context_occurrence(step, scratch, (uint32_t)row->key[i], &terms);
    add_terms(step, &terms, scratch->gradient);
    if (step->request->loss.score == SCORE_COSINE) add_own(step, row, scratch->gradient);
    return scratch->gradient;
}

/* Returns the sum of the gradients of a row's occurrences. gradients: [occurrences x span]. */
static const float *sum_gradients(const struct step *step, const float *gradients, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    if (row->places == 1) return gradients + (uint32_t)row->key[0] * step->span;
    cpu_sum_places(row, gradients, step->span, step->dim, scratch->gradient);
    return scratch->gradient;
}

static const float *shared_gradient(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    return sum_gradients(step, step->backend->shared.context_gradient, row, scratch);
}

static const float *target_gradient(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    return sum_gradients(step, step->backend->shared.target_gradient, row, scratch);
}

static struct cpu_row_set rows_of(const struct step *step, unsigned worker) {
    const struct backend *backend = step->backend;
    const struct side *side = step->side;
    return cpu_row_set(&backend->shared, side->ids, side->places, worker, pool_threads(backend->pool), side->table->spec.rows);
}

static int update_rows(void *context, unsigned worker) {
    struct step *step = context;
    const struct step_request *request = step->request;
    struct cpu_scratch *scratch = &step->backend->scratch[worker];
    struct cpu_memo memo = {0};
    struct cpu_row_set set = rows_of(step, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        if (table_is_frozen(&step->side->table->spec, row.row)) continue;
        const float *gradient = step->side->gradient(step, &row, scratch);
        if (row.places > 1 && step->constants.clip > 0) {
            float squares = step->squares ? step->squares[(uint32_t)row.key[0]] : cpu_squares(step->dim, gradient);
            cpu_shorten(&step->constants, step->dim, scratch->gradient, row.places, squares);
        }
        cpu_apply_rule(step->backend->rows, request->rule, request->lr, request->global_step, step->side->table, row.row,
                       gradient, scratch->rule_scratch, &memo);
    }
    return 0;
}

/* Writes the squared norm of each row's gradient, over this rank's columns, at the row's first place; -1 at its other places, and for rows that do
 * not change. */
static int square_rows(void *context, unsigned worker) {
    struct step *step = context;
    struct cpu_scratch *scratch = &step->backend->scratch[worker];
    struct cpu_row_set set = rows_of(step, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        float *first = step->squares + (uint32_t)row.key[0];
        for (uint64_t i = 0; i < row.places; i++) step->squares[(uint32_t)row.key[i]] = -1;
        if (row.places > 1 && !table_is_frozen(&step->side->table->spec, row.row))
            *first = cpu_squares(step->dim, step->side->gradient(step, &row, scratch));
    }
    return 0;
}

/* Sums the squares over all ranks. Places with -1 are not sent, so all ranks send the same rows, for any number of threads. */
static int sum_squares(struct step *step) {
    struct cpu_shared *shared = &step->backend->shared;
    uint64_t places = step->side->places, sent = 0, back = 0;
    if (mem_grow(&shared->squares, &shared->square_capacity, 2 * places, sizeof *shared->squares, "a batch's norms")) return -1;
    float *squares = step->squares = shared->squares, *dense = squares + places;
    if (pool_run(step->backend->pool, square_rows, step)) return -1;
    for (uint64_t i = 0; i < places; i++)
        if (squares[i] != -1) dense[sent++] = squares[i];
    if (ranks_sum(step->backend->ranks, dense, sent)) return -1;
    for (uint64_t i = 0; i < places; i++)
        if (squares[i] != -1) squares[i] = dense[back++];
    INVARIANT(back == sent);
    return 0;
}

static int pass_rows(struct step *step, const struct side *side) {
    step->side = side;
    step->squares = NULL;
    if (step->parted && step->constants.clip > 0 && sum_squares(step)) return -1;
    return pool_run(step->backend->pool, update_rows, step);
}

/* ---- the whole ---- */

/* Enlarges the arrays if this batch is larger than expected. */
static int grow_arrays(const struct step *step) {
    struct cpu_shared *s = &step->backend->shared;
    const struct cpu_blocks *all = &step->stage->all;
    uint64_t most = all->targets > all->contexts ? all->targets : all->contexts;
    const struct cpu_step_needs needs = {.span = step->span,
                                         .dim = step->dim,
                                         .loss = step->request->loss,
                                         .pool = step->stage->pool,
                                         .loss_only = step->request->loss_only,
                                         .norms = step->parted && step->request->rule->clip > 0,
                                         .halves = step->halves};
    uint64_t pooled = cpu_adds_targets(&step->stage->pool) ? all->count * step->span : 0;
    if (cpu_reserve_step(step->backend, &needs) ||
        mem_grow(&s->coefficients, &s->coefficient_capacity, cpu_batch_logits(step), sizeof *s->coefficients, "a batch's coefficients") ||
        mem_grow(&s->pooled, &s->pooled_capacity, pooled, sizeof *s->pooled, "a batch's pooled targets") ||
        mem_grow(&s->losses, &s->loss_capacity, all->count, sizeof *s->losses, "a batch's losses"))
        return -1;
    if (step->request->loss_only) return 0;
    return mem_grow(&s->target_gradient, &s->gradient_capacity, all->targets * step->span, sizeof(float), "a batch's gradients") ||
                   cpu_grow_keys(s, most)
               ? -1
               : 0;
}

/* Makes memory for pointers to the targets of any block, since a worker may not have worked on the largest block yet. */
static int grow_pointers(const struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    uint32_t most = 0;
    for (uint64_t i = 0; i < all->count && !step->stage->shared.count; i++) /* rows of shared negatives are copied into panels */
        if (all->block[i].t > most) most = all->block[i].t;
    for (unsigned i = 0; i < pool_threads(step->backend->pool); i++) {
        struct cpu_scratch *scratch = &step->backend->scratch[i];
        if (mem_grow(&scratch->rows, &scratch->row_capacity, most, sizeof *scratch->rows, "row pointers")) return -1;
    }
    return 0;
}

int cpu_step(struct backend *backend, unsigned number, const struct step_request *request) {
    struct cpu_stage *stage = &backend->stage[number];
    const struct cpu_blocks *all = &stage->all;
    struct step step = {.backend = backend,
                        .stage = stage,
                        .request = request,
                        .parted = ranks_count(backend->ranks) > 1 && !request->apart,
                        .plain = loss_is_plain(&request->loss),
                        .halves = cpu_halves(request->target) || cpu_halves(request->context),
                        .dim = request->target->spec.layout.dim,
                        .span = request->target->spec.layout.span};
    if (!request->loss_only && cpu_leave_out_frozen(stage, request)) return -1;
    int shared = stage->shared.count > 0;
    const struct side contexts = {all->context, all->contexts, request->context, shared ? shared_gradient : context_gradient},
                      targets = {all->target, all->targets, request->target, target_gradient};
    uint64_t examples = stage->result.examples;
    step.scale = request->mean && examples ? (float)(1.0 / (double)examples) : 1.0f;
    if (grow_arrays(&step) || (shared ? cpu_pass_shared(&step) : cpu_pass_blocks(&step))) return -1;
    stage->result.loss = 0;
    INVARIANT(all->count <= backend->shared.loss_capacity);
    for (uint64_t i = 0; i < all->count; i++) stage->result.loss += backend->shared.losses[i];
    if (request->loss_only) return 0;
    step.constants = rule_prepare(request->rule, request->lr, request->global_step);
    return grow_pointers(&step) || pass_rows(&step, &contexts) || pass_rows(&step, &targets) ? -1 : 0;
}
