/* step: one exact step of a batch.
 *
 *   1  by block      logits from old rows, loss, coefficients; each target occurrence's gradient, from old contexts
 *                    (step_blocks.c; step_shared.c, where all blocks have the same negatives)
 *   2  by context    coefficients x old targets, summed over the row's occurrences in batch order; rule, in place
 *   3  by target     the occurrences' gradients summed in batch order; rule, in place
 *
 * If ranks share the columns, each rank computes a part of each logit: 1 then makes two passes over the blocks, and between them
 * all logits are summed over the ranks. With clip, 2 and 3 need the norms of rows that occur more than once in the batch: a first
 * pass over the rows computes their squares, which are summed over the ranks, and a second pass updates.
 *
 * Targets keep their old values until 2 is done, contexts until 1 is. A row belongs to one worker (row mod workers), which sorts
 * that row's occurrences; sums have one order, so results are the same with any number of workers.
 */
#include "step.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

/* ---- 2 and 3: by row ---- */

/* Vectors that are added to a row's gradient in order, each with a factor; up to TERMS of them in one call. */
enum { TERMS = 64 };
struct terms {
    const void *vector[TERMS];
    float factor[TERMS];
    uint32_t count;
};

static void add_terms(const struct step *step, struct terms *terms, float *gradient) {
    cpu_combine_rows(step->backend->rows, cpu_kept_vectors(step), gradient, terms->factor, 1, terms->vector, terms->count,
                     step->dim);
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
    for (uint32_t v = 0; v < count; v++) {
        if (terms->count == TERMS) add_terms(step, terms, scratch->gradient);
        terms->vector[terms->count] = vectors[v];
        terms->factor[terms->count++] = factors[(uint64_t)v * block->c];
    }
}

/* If scores are cosines, adds to a row's gradient the row itself x its factor. */
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

/* Returns the sum of the gradients of a row's occurrences in the batch. `gradients`: [occurrences x span]. */
static const float *sum_gradients(const struct step *step, const float *gradients, const struct cpu_named_row *row,
                                  struct cpu_scratch *scratch) {
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

/* Writes the squared norm of each row's gradient, over this rank's columns, to the row's first place; -1 to its other places,
 * and to rows that do not change. */
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

/* Sums the squares over all ranks. Places with -1 are not sent, so every rank sends the same rows, whatever its number of
 * threads. */
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
    return 0;
}

static int pass_rows(struct step *step, const struct side *side) {
    step->side = side;
    step->squares = NULL;
    if (step->parted && step->constants.clip > 0 && sum_squares(step)) return -1;
    return pool_run(step->backend->pool, update_rows, step);
}

/* ---- the whole ---- */

/* Grows the arrays if this batch is larger than expected, or nothing was expected. */
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
        mem_grow(&s->coefficients, &s->coefficient_capacity, cpu_batch_logits(step), sizeof *s->coefficients,
                 "a batch's coefficients") ||
        mem_grow(&s->pooled, &s->pooled_capacity, pooled, sizeof *s->pooled, "a batch's pooled targets") ||
        mem_grow(&s->losses, &s->loss_capacity, all->count, sizeof *s->losses, "a batch's losses"))
        return -1;
    if (step->request->loss_only) return 0;
    return mem_grow(&s->target_gradient, &s->gradient_capacity, all->targets * step->span, sizeof(float),
                    "a batch's gradients") ||
                   cpu_grow_keys(s, most)
               ? -1
               : 0;
}

/* Makes space for pointers to the targets of any block, since a worker may not have seen the largest block yet. */
static int grow_pointers(const struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    uint32_t most = 0;
    for (uint64_t i = 0; i < all->count; i++)
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
    for (uint64_t i = 0; i < all->count; i++) stage->result.loss += backend->shared.losses[i];
    if (request->loss_only) return 0;
    step.constants = rule_prepare(request->rule, request->lr, request->global_step);
    return grow_pointers(&step) || pass_rows(&step, &contexts) || pass_rows(&step, &targets) ? -1 : 0;
}
