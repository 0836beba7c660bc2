/* step: one exact step of a batch.
 *
 *   1  by block      logits from old rows, loss, coefficients; each target occurrence's gradient, from old contexts
 *   2  by context    coefficients x old targets, summed over the row's occurrences in batch order; rule, in place
 *   3  by target     the occurrences' gradients summed in batch order; rule, in place
 *
 * Where ranks share out the columns, a rank has a part of each logit: 1 is done in two passes over the blocks, with the sum
 * of all logits over the ranks in between. So is the norm that clip asks for in 2 and 3, of rows that stand in the batch more
 * than once: a first pass over the rows has their squares, the second one updates.
 *
 * Targets keep their old values until 2 is done, contexts until 1 is. A row belongs to one worker (row mod workers),
 * which sorts that row's occurrences; sums have one order, so the number of workers changes nothing.
 */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

struct step;

/* The targets of a batch, or its contexts. */
struct side {
    const uint32_t *ids; /* [places] */
    uint64_t places;
    struct backend_table *table;
    /* The gradient of a row, summed over its places; in scratch->gradient where there are several. */
    const float *(*gradient)(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch);
};

struct step {
    struct backend *backend;
    struct cpu_stage *stage;
    const struct step_request *request;
    struct rule_step constants; /* of the global step count */
    int parted; /* ranks share out the columns */
    const struct side *side; /* whose rows are passed over */
    float *squares; /* [side's places] NULL, or of a row that stands in more than one, at its first: of its gradient's columns */
    float scale;
    uint32_t dim;
    uint64_t span;
    _Atomic uint64_t taken;
};

/* ---- 1: by block ---- */

/* A block's rows, by pointers in a worker's memory. */
struct block_rows {
    const float **target, **context;
};

static int find_rows(const struct step *step, const struct cpu_block *block, struct cpu_scratch *scratch,
                     struct block_rows *out) {
    const struct cpu_blocks *all = &step->stage->all;
    const uint32_t *targets = all->target + block->targets, *contexts = all->context + block->contexts;
    if (mem_grow(&scratch->rows, &scratch->row_capacity, (uint64_t)block->t + block->c, sizeof *scratch->rows,
                 "row pointers"))
        return -1;
    out->target = (const float **)scratch->rows;
    out->context = out->target + block->t;
    for (uint32_t t = 0; t < block->t; t++) out->target[t] = cpu_weights(step->request->target, targets[t]);
    for (uint32_t c = 0; c < block->c; c++) out->context[c] = cpu_weights(step->request->context, contexts[c]);
    return 0;
}

static float *logits_of(const struct step *step, uint64_t number) {
    return step->backend->shared.coefficients + step->stage->logit_starts[number];
}

static void dot_block(struct step *step, uint64_t number, const struct block_rows *rows) {
    const struct cpu_block *block = &step->stage->all.block[number];
    step->backend->rows->dots(rows->target, block->t, rows->context, block->c, step->dim, logits_of(step, number), block->c);
}

/* From whole logits: the block's loss, its coefficients in their place, its targets' gradients. */
static void learn_block(struct step *step, uint64_t number, const struct block_rows *of_block) {
    const struct cpu_rows *rows = step->backend->rows;
    const struct cpu_block *block = &step->stage->all.block[number];
    struct cpu_shared *shared = &step->backend->shared;
    float *logits = logits_of(step, number);
    shared->losses[number] = rows->loss(logits, block->t, block->c, block->positives);
    if (step->request->loss_only) return;
    rows->coefficients(logits, block->t, block->c, block->positives, step->scale);
    for (uint32_t t = 0; t < block->t; t++) {
        float *gradient = shared->target_gradient + (block->targets + t) * step->span;
        memset(gradient, 0, step->span * sizeof(float));
        rows->combine(gradient, logits + (uint64_t)t * block->c, 1, of_block->context, block->c, step->dim);
    }
}

/* Both on each block while its rows are in the cache, or one of them. */
static int work_blocks(struct step *step, unsigned worker, int dot, int learn) {
    struct block_rows rows;
    uint64_t first, end;
    while (pool_take(&step->taken, step->stage->all.count, 8, &first, &end))
        for (uint64_t i = first; i < end; i++) {
            if (find_rows(step, &step->stage->all.block[i], &step->backend->scratch[worker], &rows)) return -1;
            if (dot) dot_block(step, i, &rows);
            if (learn) learn_block(step, i, &rows);
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

static int pass_blocks(struct step *step) {
    struct backend *backend = step->backend;
    if (!step->parted) return pool_run(backend->pool, dot_and_learn_blocks, step);
    if (pool_run(backend->pool, dot_blocks, step) ||
        ranks_sum(backend->ranks, backend->shared.coefficients, step->stage->all.logits))
        return -1;
    step->taken = 0;
    return pool_run(backend->pool, learn_blocks, step);
}

/* ---- 2 and 3: by row ---- */

static void add_context_occurrence(struct step *step, struct cpu_scratch *scratch, uint64_t occurrence,
                                   const float **target_rows) {
    struct cpu_stage *stage = step->stage;
    uint64_t number = stage->context_block[occurrence];
    const struct cpu_block *block = &stage->all.block[number];
    const uint32_t *targets = stage->all.target + block->targets;
    for (uint32_t t = 0; t < block->t; t++) target_rows[t] = cpu_weights(step->request->target, targets[t]);
    step->backend->rows->combine(scratch->gradient, logits_of(step, number) + (occurrence - block->contexts), block->c,
                                 target_rows, block->t, step->dim);
}

static const float *context_gradient(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    memset(scratch->gradient, 0, step->span * sizeof(float));
    for (uint64_t i = 0; i < row->places; i++)
        add_context_occurrence(step, scratch, (uint32_t)row->key[i], (const float **)scratch->rows);
    return scratch->gradient;
}

static const float *target_gradient(struct step *step, const struct cpu_named_row *row, struct cpu_scratch *scratch) {
    const float *gradients = step->backend->shared.target_gradient;
    if (row->places == 1) return gradients + (uint32_t)row->key[0] * step->span;
    cpu_sum_places(row, gradients, step->span, step->dim, scratch->gradient);
    return scratch->gradient;
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
        const float *gradient = step->side->gradient(step, &row, scratch);
        if (row.places > 1 && step->constants.clip > 0) {
            float squares = step->squares ? step->squares[(uint32_t)row.key[0]] : cpu_squares(step->dim, gradient);
            cpu_shorten(&step->constants, step->dim, scratch->gradient, row.places, squares);
        }
        cpu_apply_rule(step->backend->rows, request->rule, request->lr, request->global_step, step->side->table, row.row,
                       gradient, scratch->unused_slot, &memo);
    }
    return 0;
}

/* The squares of the own columns; -1 in a place that is no first one of several. */
static int square_rows(void *context, unsigned worker) {
    struct step *step = context;
    struct cpu_scratch *scratch = &step->backend->scratch[worker];
    struct cpu_row_set set = rows_of(step, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        float *first = step->squares + (uint32_t)row.key[0];
        for (uint64_t i = 0; i < row.places; i++) step->squares[(uint32_t)row.key[i]] = -1;
        if (row.places > 1) *first = cpu_squares(step->dim, step->side->gradient(step, &row, scratch));
    }
    return 0;
}

/* Squares over the columns of all ranks. Which rows they are of is the same on every rank, whatever their numbers of threads;
 * they are sent without the places between them. */
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

/* For this batch, where it is larger than any that was foreseen or none was. */
static int grow_arrays(const struct step *step) {
    struct cpu_shared *s = &step->backend->shared;
    const struct cpu_blocks *all = &step->stage->all;
    uint64_t most = all->targets > all->contexts ? all->targets : all->contexts;
    if (cpu_reserve_step(step->backend, step->span, step->request->loss_only,
                         step->parted && step->request->rule->clip > 0) ||
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

/* Pointers for the targets of any block: a worker may have found no block's rows. */
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
                        .parted = ranks_count(backend->ranks) > 1,
                        .dim = request->target->spec.layout.dim,
                        .span = request->target->spec.layout.span};
    const struct side contexts = {all->context, all->contexts, request->context, context_gradient},
                      targets = {all->target, all->targets, request->target, target_gradient};
    step.scale = request->mean && all->count ? (float)(1.0 / (double)all->count) : 1.0f;
    if (grow_arrays(&step) || pass_blocks(&step)) return -1;
    stage->result.loss = 0;
    for (uint64_t i = 0; i < all->count; i++) stage->result.loss += backend->shared.losses[i];
    if (request->loss_only) return 0;
    step.constants = rule_prepare(request->rule, request->lr, request->global_step);
    return grow_pointers(&step) || pass_rows(&step, &contexts) || pass_rows(&step, &targets) ? -1 : 0;
}
