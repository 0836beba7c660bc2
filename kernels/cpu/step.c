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

void cpu_apply_rule(const struct cpu_rows *rows, const struct rule_options *rule, double lr, uint64_t behind,
                    struct backend_table *table, uint32_t row, const float *gradient, float *unused_slot,
                    struct cpu_memo *memo) {
    struct rule_slot slots[RULE_SLOTS];
    float *role[RULE_SLOTS] = {unused_slot, unused_slot, unused_slot}, *base = cpu_slots(table, row);
    int count = rule_slots(rule, slots);
    for (int i = 0; i < count; i++) role[slots[i].role] = base + (uint64_t)i * table->spec.layout.span;
    if (table->spec.layout.counted) behind = (*cpu_updates(table, row))++;
    unsigned entry = behind % 64;
    if (memo->behind[entry] != behind + 1) {
        memo->behind[entry] = behind + 1;
        memo->step[entry] = rule_prepare(rule, lr, behind);
    }
    rows->rule[rule->rule](&memo->step[entry], table->spec.layout.dim, gradient, cpu_weights(table, row), role[0],
                           role[1], role[2]);
}

/* ---- 1: by block ---- */

static int measure_block(struct step *step, uint64_t number, struct cpu_scratch *scratch) {
    const struct cpu_rows *rows = step->backend->rows;
    struct cpu_stage *stage = step->stage;
    const struct cpu_block *block = &stage->all.block[number];
    const uint32_t *targets = stage->all.target + block->targets, *contexts = stage->all.context + block->contexts;
    float *logits = stage->coefficients + stage->logit_starts[number];
    if (mem_grow(&scratch->rows, &scratch->row_room, (uint64_t)block->t + block->c, sizeof *scratch->rows,
                 "row pointers"))
        return -1;
    const float **target_rows = (const float **)scratch->rows, **context_rows = target_rows + block->t;
    for (uint32_t t = 0; t < block->t; t++) target_rows[t] = cpu_weights(step->request->target, targets[t]);
    for (uint32_t c = 0; c < block->c; c++) context_rows[c] = cpu_weights(step->request->context, contexts[c]);
    rows->dots(target_rows, block->t, context_rows, block->c, step->dim, logits, block->c);
    stage->losses[number] = rows->loss(logits, block->t, block->c, block->positives);
    if (step->request->loss_only) return 0;
    rows->coefficients(logits, block->t, block->c, block->positives, step->scale);
    for (uint32_t t = 0; t < block->t; t++) {
        float *gradient = stage->target_gradient + (block->targets + t) * step->span;
        memset(gradient, 0, step->span * sizeof(float));
        rows->combine(gradient, logits + (uint64_t)t * block->c, 1, context_rows, block->c, step->dim);
    }
    return 0;
}

static int measure_blocks(void *context, unsigned worker) {
    struct step *step = context;
    uint64_t first, end;
    while (pool_take(&step->taken, step->stage->all.count, 8, &first, &end))
        for (uint64_t i = first; i < end; i++)
            if (measure_block(step, i, &step->backend->scratch[worker])) return -1;
    return 0;
}

/* ---- 2 and 3: by row ---- */

/* Shortens the gradient of a row, summed over its places, where the rule bounds it. */
static void clip_gradient(const struct step *step, float *gradient, uint64_t places) {
    float squares = 0;
    if (!(step->constants.clip > 0)) return;
    for (uint32_t column = 0; column < step->dim; column++) squares += gradient[column] * gradient[column];
    float share = rule_share(step->constants.clip, places, squares);
    for (uint32_t column = 0; share != 1 && column < step->dim; column++) gradient[column] *= share;
}

/* This worker's occurrences as row << 32 | occurrence, sorted (a stable radix sort by row: occurrences stay in order).
 */
static int64_t sort_occurrences(struct cpu_scratch *scratch, const uint32_t *ids, uint64_t count, unsigned worker,
                                unsigned workers, uint64_t rows) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < count; i++) n += ids[i] % workers == worker;
    if (mem_grow(&scratch->keys, &scratch->key_room, n, sizeof *scratch->keys, "sorting a batch") ||
        mem_grow(&scratch->spare, &scratch->spare_room, n, sizeof *scratch->spare, "sorting a batch"))
        return -1;
    uint64_t *from = scratch->keys, *to = scratch->spare;
    n = 0;
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] % workers == worker) from[n++] = (uint64_t)ids[i] << 32 | i;
    for (unsigned shift = 32; shift < 64 && (rows - 1) >> (shift - 32); shift += 11) {
        uint32_t at[2048] = {0};
        for (uint64_t i = 0; i < n; i++) at[from[i] >> shift & 2047]++;
        uint32_t sum = 0;
        for (int i = 0; i < 2048; i++) {
            uint32_t here = at[i];
            at[i] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < n; i++) to[at[from[i] >> shift & 2047]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != scratch->keys) {
        uint64_t room = scratch->key_room;
        scratch->spare = scratch->keys;
        scratch->keys = from;
        scratch->key_room = scratch->spare_room;
        scratch->spare_room = room;
    }
    return (int64_t)n;
}

static int grow_gradient(struct cpu_scratch *scratch, uint64_t span) {
    return mem_grow(&scratch->gradient, &scratch->gradient_room, span, sizeof(float), "a gradient") ||
                   mem_grow(&scratch->unused_slot, &scratch->unused_room, span, sizeof(float), "a gradient")
               ? -1
               : 0;
}

static void add_context_occurrence(struct step *step, struct cpu_scratch *scratch, uint64_t occurrence,
                                   const float **target_rows) {
    struct cpu_stage *stage = step->stage;
    uint64_t number = stage->context_block[occurrence];
    const struct cpu_block *block = &stage->all.block[number];
    const uint32_t *targets = stage->all.target + block->targets;
    for (uint32_t t = 0; t < block->t; t++) target_rows[t] = cpu_weights(step->request->target, targets[t]);
    step->backend->rows->combine(scratch->gradient,
                                 stage->coefficients + stage->logit_starts[number] + (occurrence - block->contexts),
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
    int64_t n = sort_occurrences(scratch, stage->all.context, stage->all.contexts, worker, pool_threads(backend->pool),
                                 step->request->context->spec.rows);
    if (n < 0 || grow_gradient(scratch, step->span) ||
        mem_grow(&scratch->rows, &scratch->row_room, most, sizeof *scratch->rows, "row pointers"))
        return -1;
    for (int64_t i = 0; i < n;) {
        uint32_t row = (uint32_t)(scratch->keys[i] >> 32);
        int64_t first = i;
        memset(scratch->gradient, 0, step->span * sizeof(float));
        for (; i < n && scratch->keys[i] >> 32 == row; i++)
            add_context_occurrence(step, scratch, (uint32_t)scratch->keys[i], (const float **)scratch->rows);
        clip_gradient(step, scratch->gradient, (uint64_t)(i - first));
        cpu_apply_rule(backend->rows, step->request->rule, step->request->lr, step->request->behind,
                       step->request->context, row, scratch->gradient, scratch->unused_slot, &memo);
    }
    return 0;
}

static int update_targets(void *context, unsigned worker) {
    struct step *step = context;
    struct backend *backend = step->backend;
    struct cpu_scratch *scratch = &backend->scratch[worker];
    struct cpu_stage *stage = step->stage;
    struct cpu_memo memo = {0};
    int64_t n = sort_occurrences(scratch, stage->all.target, stage->all.targets, worker, pool_threads(backend->pool),
                                 step->request->target->spec.rows);
    if (n < 0 || grow_gradient(scratch, step->span)) return -1;
    for (int64_t i = 0; i < n;) {
        uint32_t row = (uint32_t)(scratch->keys[i] >> 32);
        const float *gradient = stage->target_gradient + (uint32_t)scratch->keys[i] * step->span;
        int64_t end = i + 1;
        while (end < n && scratch->keys[end] >> 32 == row) end++;
        if (end - i > 1) {
            memcpy(scratch->gradient, gradient, step->span * sizeof(float));
            for (int64_t j = i + 1; j < end; j++) {
                const float *more = stage->target_gradient + (uint32_t)scratch->keys[j] * step->span;
                for (uint64_t column = 0; column < step->span; column++) scratch->gradient[column] += more[column];
            }
            clip_gradient(step, scratch->gradient, (uint64_t)(end - i));
            gradient = scratch->gradient;
        }
        cpu_apply_rule(backend->rows, step->request->rule, step->request->lr, step->request->behind,
                       step->request->target, row, gradient, scratch->unused_slot, &memo);
        i = end;
    }
    return 0;
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
    if (!request->loss_only && mem_grow(&stage->target_gradient, &stage->gradient_room, stage->all.targets * step.span,
                                        sizeof(float), "a batch's gradients"))
        return -1;
    if (pool_run(backend->pool, measure_blocks, &step)) return -1;
    stage->result.loss = 0;
    for (uint64_t i = 0; i < blocks; i++) stage->result.loss += stage->losses[i];
    if (request->loss_only) return 0;
    step.constants = rule_prepare(request->rule, request->lr, request->behind);
    if (pool_run(backend->pool, update_contexts, &step)) return -1;
    return pool_run(backend->pool, update_targets, &step);
}
