/* step: one exact step of a batch.
 *
 *   1  by block      logits from old rows, loss, coefficients; each target occurrence's gradient, from old contexts
 *   2  by context    coefficients x old targets, summed over the row's occurrences in batch order; rule, in place
 *   3  by target     the occurrences' gradients summed in batch order; rule, in place
 *
 * Targets keep their old values until 2 is done, contexts until 1 is. A row belongs to one worker (row mod workers),
 * which sorts that row's occurrences; sums have one order, so the number of workers changes nothing.
 */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

struct step {
    struct backend *backend;
    struct cpu_stage *stage;
    const struct step_request *request;
    struct rule_step constants; /* of the global step count */
    float scale;
    uint32_t dim;
    uint64_t span;
    _Atomic uint64_t taken;
};

/* ---- 1: by block ---- */

static int dot_block(struct step *step, uint64_t number, struct cpu_scratch *scratch) {
    const struct cpu_rows *rows = step->backend->rows;
    struct cpu_stage *stage = step->stage;
    const struct cpu_block *block = &stage->all.block[number];
    const uint32_t *targets = stage->all.target + block->targets, *contexts = stage->all.context + block->contexts;
    struct cpu_shared *shared = &step->backend->shared;
    float *logits = shared->coefficients + stage->logit_starts[number];
    if (mem_grow(&scratch->rows, &scratch->row_capacity, (uint64_t)block->t + block->c, sizeof *scratch->rows,
                 "row pointers"))
        return -1;
    const float **target_rows = (const float **)scratch->rows, **context_rows = target_rows + block->t;
    for (uint32_t t = 0; t < block->t; t++) target_rows[t] = cpu_weights(step->request->target, targets[t]);
    for (uint32_t c = 0; c < block->c; c++) context_rows[c] = cpu_weights(step->request->context, contexts[c]);
    rows->dots(target_rows, block->t, context_rows, block->c, step->dim, logits, block->c);
    shared->losses[number] = rows->loss(logits, block->t, block->c, block->positives);
    if (step->request->loss_only) return 0;
    rows->coefficients(logits, block->t, block->c, block->positives, step->scale);
    for (uint32_t t = 0; t < block->t; t++) {
        float *gradient = shared->target_gradient + (block->targets + t) * step->span;
        memset(gradient, 0, step->span * sizeof(float));
        rows->combine(gradient, logits + (uint64_t)t * block->c, 1, context_rows, block->c, step->dim);
    }
    return 0;
}

static int dot_blocks(void *context, unsigned worker) {
    struct step *step = context;
    uint64_t first, end;
    while (pool_take(&step->taken, step->stage->all.count, 8, &first, &end))
        for (uint64_t i = first; i < end; i++)
            if (dot_block(step, i, &step->backend->scratch[worker])) return -1;
    return 0;
}

/* ---- 2 and 3: by row ---- */

static void add_context_occurrence(struct step *step, struct cpu_scratch *scratch, uint64_t occurrence,
                                   const float **target_rows) {
    struct cpu_stage *stage = step->stage;
    uint64_t number = stage->context_block[occurrence];
    const struct cpu_block *block = &stage->all.block[number];
    const uint32_t *targets = stage->all.target + block->targets;
    for (uint32_t t = 0; t < block->t; t++) target_rows[t] = cpu_weights(step->request->target, targets[t]);
    step->backend->rows->combine(scratch->gradient,
                                 step->backend->shared.coefficients + stage->logit_starts[number] +
                                     (occurrence - block->contexts),
                                 block->c, target_rows, block->t, step->dim);
}

static int update_contexts(void *context, unsigned worker) {
    struct step *step = context;
    struct backend *backend = step->backend;
    struct cpu_scratch *scratch = &backend->scratch[worker];
    struct cpu_stage *stage = step->stage;
    struct cpu_memo memo = {0};
    uint32_t most = 0;
    for (uint64_t i = 0; i < stage->all.count; i++)
        if (stage->all.block[i].t > most) most = stage->all.block[i].t;
    if (mem_grow(&scratch->rows, &scratch->row_capacity, most, sizeof *scratch->rows, "row pointers")) return -1;
    struct cpu_row_set set = cpu_row_set(&backend->shared, stage->all.context, stage->all.contexts, worker,
                                         pool_threads(backend->pool), step->request->context->spec.rows);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        memset(scratch->gradient, 0, step->span * sizeof(float));
        for (uint64_t i = 0; i < row.places; i++)
            add_context_occurrence(step, scratch, (uint32_t)row.key[i], (const float **)scratch->rows);
        cpu_clip(&step->constants, step->dim, scratch->gradient, row.places);
        cpu_apply_rule(backend->rows, step->request->rule, step->request->lr, step->request->global_step,
                       step->request->context, row.row, scratch->gradient, scratch->unused_slot, &memo);
    }
    return 0;
}

static int update_targets(void *context, unsigned worker) {
    struct step *step = context;
    struct backend *backend = step->backend;
    struct cpu_scratch *scratch = &backend->scratch[worker];
    struct cpu_stage *stage = step->stage;
    const float *gradients = backend->shared.target_gradient;
    struct cpu_memo memo = {0};
    struct cpu_row_set set = cpu_row_set(&backend->shared, stage->all.target, stage->all.targets, worker,
                                         pool_threads(backend->pool), step->request->target->spec.rows);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        const float *gradient = gradients + (uint32_t)row.key[0] * step->span;
        if (row.places > 1) {
            cpu_sum_places(&row, gradients, step->span, step->dim, scratch->gradient);
            cpu_clip(&step->constants, step->dim, scratch->gradient, row.places);
            gradient = scratch->gradient;
        }
        cpu_apply_rule(backend->rows, step->request->rule, step->request->lr, step->request->global_step,
                       step->request->target, row.row, gradient, scratch->unused_slot, &memo);
    }
    return 0;
}

/* For this batch, where it is larger than any that was foreseen or none was. */
static int grow_arrays(const struct step *step) {
    struct cpu_shared *s = &step->backend->shared;
    const struct cpu_blocks *all = &step->stage->all;
    uint64_t most = all->targets > all->contexts ? all->targets : all->contexts;
    if (cpu_reserve_step(step->backend, step->span, step->request->loss_only) ||
        mem_grow(&s->coefficients, &s->coefficient_capacity, all->logits, sizeof *s->coefficients,
                 "a batch's coefficients") ||
        mem_grow(&s->losses, &s->loss_capacity, all->count, sizeof *s->losses, "a batch's losses"))
        return -1;
    if (step->request->loss_only) return 0;
    return mem_grow(&s->target_gradient, &s->gradient_capacity, all->targets * step->span, sizeof(float),
                    "a batch's gradients") ||
                   cpu_grow_keys(s, most)
               ? -1
               : 0;
}

int cpu_step(struct backend *backend, unsigned number, const struct step_request *request) {
    struct cpu_stage *stage = &backend->stage[number];
    struct step step = {.backend = backend,
                        .stage = stage,
                        .request = request,
                        .dim = request->target->spec.layout.dim,
                        .span = request->target->spec.layout.span};
    uint64_t blocks = stage->all.count;
    step.scale = request->mean && blocks ? (float)(1.0 / (double)blocks) : 1.0f;
    if (grow_arrays(&step)) return -1;
    if (pool_run(backend->pool, dot_blocks, &step)) return -1;
    stage->result.loss = 0;
    for (uint64_t i = 0; i < blocks; i++) stage->result.loss += backend->shared.losses[i];
    if (request->loss_only) return 0;
    step.constants = rule_prepare(request->rule, request->lr, request->global_step);
    if (pool_run(backend->pool, update_contexts, &step)) return -1;
    return pool_run(backend->pool, update_targets, &step);
}
