/* step_blocks: the first pass of an exact step. From the old rows it computes a block's scores, and from these its loss, its
 * coefficients, and the gradient of each of its target rows.
 *
 * Cosines are dot products divided by lengths, so ranks sum partial squares as they sum partial dot products. Coefficients of
 * cosines are converted to those of dot products, and to a factor of each row in its own gradient (losses.h).
 */
#include "step.h"

#include "base/memory.h"

#include <string.h>

/* Pointers to a block's vectors and context rows, in a worker's scratch; `vectors`: how many vectors. */
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
        out->context[c] = cpu_read_row(step->backend->rows, step->request->context, contexts[c],
                                       wide + (block->t + (uint64_t)c) * step->span);
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
    rows->dots(of_block->vector, of_block->vectors, of_block->context, block->c, step->dim, cpu_block_logits(step, number),
               block->c);
    if (step->request->loss.score != SCORE_COSINE) return;
    rows->squares(of_block->vector, of_block->vectors, step->dim, cpu_target_lengths(step) + block->targets);
    rows->squares(of_block->context, block->c, step->dim, cpu_context_lengths(step) + block->contexts);
}

/* ---- loss and coefficients ---- */

static void invert(float *squares, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) squares[i] = loss_inverse_length(squares[i]);
}

/* Replaces 1 / length of a block's rows by the factor of each row in its own gradient, from coefficient x cosine of the pairs. */
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

/* Computes loss and coefficients from dot products and squares. `work` holds the block's cosines, later cosine x coefficient. */
static double learn_cosines(struct step *step, const struct cpu_block *block, uint32_t vectors, float *scores, float *work) {
    const struct cpu_rows *rows = step->backend->rows;
    float *t_lengths = cpu_target_lengths(step) + block->targets, *c_lengths = cpu_context_lengths(step) + block->contexts;
    uint64_t pairs = (uint64_t)vectors * block->c;
    const float *weights = cpu_positive_weights(step, block->contexts);
    invert(t_lengths, vectors);
    invert(c_lengths, block->c);
    rows->scale(scores, t_lengths, vectors, c_lengths, block->c);
    memcpy(work, scores, pairs * sizeof *work);
    double loss =
        rows->learn(&step->request->loss, scores, vectors, block->c, block->positives, weights, step->scale, work + pairs);
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
    *loss = step->request->loss.score == SCORE_COSINE
                ? learn_cosines(step, block, of_block->vectors, scores, scratch->logits)
                : rows->learn(&step->request->loss, scores, of_block->vectors, block->c, block->positives,
                              cpu_positive_weights(step, block->contexts), step->scale, scratch->logits);
    return 0;
}

/* ---- gradients of targets ---- */

/* Computes the gradient of a vector from the context rows as they were before this step. */
static void vector_gradient(const struct step *step, uint64_t number, const struct block_rows *of_block, uint32_t vector,
                            float *gradient) {
    const struct cpu_rows *rows = step->backend->rows;
    const struct cpu_block *block = &step->stage->all.block[number];
    memset(gradient, 0, step->span * sizeof(float));
    rows->combine(gradient, cpu_block_logits(step, number) + (uint64_t)vector * block->c, 1, of_block->context, block->c,
                  step->dim);
    if (step->request->loss.score == SCORE_COSINE)
        rows->combine(gradient, cpu_target_lengths(step) + block->targets + vector, 1, of_block->vector + vector, 1, step->dim);
}

/* Distributes the pooled vector's gradient, which is at its block's first target, to the block's target rows. */
static void share_gradient(const struct step *step, const struct cpu_block *block, float *gradient) {
    const struct example_pool *pool = &step->stage->pool;
    for (uint32_t t = block->t; t-- > 0 && !pool->whole;) {
        float share = example_pool_share(pool, block->t, t), *of_row = gradient + t * step->span;
        for (uint32_t j = 0; j < step->span; j++) of_row[j] = share * gradient[j];
    }
    for (uint32_t t = 1; t < block->t && pool->whole; t++)
        memcpy(gradient + t * step->span, gradient, step->span * sizeof(float));
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

/* Computes for each block the dot products, or loss and gradients, or both while its rows are in the cache. */
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

int cpu_pass_blocks(struct step *step) {
    struct backend *backend = step->backend;
    if (!step->parted) return pool_run(backend->pool, dot_and_learn_blocks, step);
    if (pool_run(backend->pool, dot_blocks, step) ||
        ranks_sum(backend->ranks, backend->shared.coefficients, cpu_batch_logits(step)))
        return -1;
    step->taken = 0;
    return pool_run(backend->pool, learn_blocks, step);
}
