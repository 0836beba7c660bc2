/* hogwild: lock-free training, as kernels/hogwild.h defines it. Each worker trains spans of examples and changes rows at once. If two workers change
 * a row at the same time, one change may be lost, so runs differ in their last digits.
 *
 * A block's dot products and coefficients are computed first, then each of its rows is updated. Rows are prefetched a few blocks ahead: tables are
 * larger than the caches, which nearly never contain a negative's row.
 *
 * Rows of bfloat16 are copied to floats first. Changes are summed separately; then each row is read again, changed, rounded and stored in one pass,
 * so that, as with float32, a change is lost only if another worker stores the row at the same moment.
 */
#include "cpu.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "kernels/hogwild.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRETCH = 4096,      /* number of examples that a worker trains before it asks for more */
    AHEAD = 3,           /* how many blocks ahead a block's rows are prefetched */
    AHEAD_TARGETS = 3,   /* a block's targets are prefetched only if there are so few: the targets of a window are still in the cache from the
                          * previous word */
    AHEAD_CONTEXTS = 64, /* most contexts of a block that are prefetched */
    BAND = 64,           /* targets of a wide or pooled block that are updated together */
};

struct hogwild {
    struct backend *backend;
    const struct hogwild_request *request;
    uint32_t dim;     /* columns of dot products and sums; for bfloat16, columns of the float32 copies (cpu_rows.widen_apart), padded with zeros */
    uint32_t columns; /* columns of a bfloat16 row, including padding */
    uint64_t span;
    int halves; /* 1: the tables' weights are bfloat16 */
    int linear; /* 1: the rule is linear (hogwild_is_linear), and no row is frozen */
    int fits;   /* 1: counts are trained by rows->fit(): all fields are float32, no row is frozen, and the learning rate depends on nothing but the
                 * sums */
    float lr_first, slope;
    uint32_t loss_mask;
    _Atomic uint64_t taken;
};

/* Examples that a worker builds and trains together. */
struct piece {
    const struct cpu_blocks *blocks;
    uint64_t first; /* number of the first example in the request */
    struct cpu_scratch *scratch;
    struct cpu_memo memo; /* valid for one learning rate only */
    float rate;
};

/* Pointers to the rows of a block. For bfloat16 tables they point to float32 copies, and `gain` contains the changes of contexts. */
struct rows {
    float **targets, **contexts;
    float *gain; /* [C x span] changes of contexts; NULL: float32 rows are changed in place */
};

/* ---- one block ---- */

static void prefetch_row(const struct backend_table *table, uint32_t row) {
    const char *weights = cpu_weights(table, row);
    for (uint64_t at = 0; at < record_weights_bytes(&table->spec.layout); at += 64) __builtin_prefetch(weights + at, 1, 3);
}

static void prefetch_block(const struct hogwild *run, const struct cpu_blocks *blocks, uint64_t number) {
    if (number >= blocks->count) return;
    const struct cpu_block *block = &blocks->block[number];
    if (block->t <= AHEAD_TARGETS)
        for (uint32_t t = 0; t < block->t; t++) prefetch_row(run->request->target, blocks->target[block->targets + t]);
    for (uint32_t c = 0; c < block->c && c < AHEAD_CONTEXTS; c++) prefetch_row(run->request->context, blocks->context[block->contexts + c]);
}

static int grow_scratch(struct cpu_scratch *scratch, const struct cpu_block *block, uint64_t vectors, uint64_t span) {
    return mem_grow(&scratch->rows, &scratch->row_capacity, 2 * (uint64_t)block->t + block->c, sizeof *scratch->rows, "row pointers") ||
                   mem_grow(&scratch->logits, &scratch->logit_capacity, vectors * block->c, sizeof(float), "logits") ||
                   mem_grow(&scratch->gradient, &scratch->gradient_capacity, (vectors + 2) * span, sizeof(float), "gradients") ||
                   mem_grow(&scratch->rule_scratch, &scratch->rule_scratch_capacity, CPU_FIELDS * span, sizeof(float), "gradients")
               ? -1
               : 0;
}

/* The vectors of a block: its target rows, or the one vector to which they are pooled. */
struct vectors {
    const float *const *of;
    uint32_t count;
    int pooled;
    float *gradient; /* [count x span] their gradients or changes */
    float *row;      /* memory for one more row */
};

/* Returns the vectors of a block. *pooled: pointer to the pooled vector, if there is one. */
static struct vectors vectors_of(const struct hogwild *run, struct cpu_scratch *scratch, float *const *targets, uint32_t count,
                                 const float **pooled) {
    const struct example_pool *pool = &run->backend->source.pool;
    const struct cpu_rows *rows = run->backend->rows;
    const float *const *of = (const float *const *)targets;
    if (!pool->on) return (struct vectors){of, count, 0, scratch->gradient, scratch->gradient + count * run->span};
    const float first = example_pool_weight(pool, count, 0), others = example_pool_weight(pool, count, 1);
    uint32_t apart = pool->own > 0; /* 1: the first row has its own weight; the others have equal weights and are summed in one pass */
    memset(scratch->gradient, 0, run->span * sizeof(float));
    if (apart) rows->combine(scratch->gradient, &first, 0, of, 1, run->dim);
    rows->combine(scratch->gradient, &others, 0, of + apart, count - apart, run->dim);
    *pooled = scratch->gradient;
    return (struct vectors){pooled, 1, 1, scratch->gradient + run->span, scratch->gradient + 2 * run->span};
}

/* Returns with which factor the change of its vector is added to a target. */
static float share_of(const struct hogwild *run, const struct cpu_block *block, uint32_t target) {
    return run->backend->source.pool.on ? example_pool_share(&run->backend->source.pool, block->t, target) : 1;
}

/* Updates the rows of a block with many contexts or with a pooled vector, eight contexts at a time, from the old vectors, whose changes are summed
 * separately. */
static void move_wide(const struct hogwild *run, const struct cpu_block *block, const struct vectors *v, float **targets,
                      float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    float **moves = contexts + block->c, factors[BAND * CPU_ROWS_CONTEXTS];
    rows->coefficients(logits, v->count, block->c, block->positives, -lr);
    memset(v->gradient, 0, v->count * run->span * sizeof(float));
    for (uint32_t t = 0; t < v->count; t++) moves[t] = v->gradient + t * run->span;
    for (uint32_t c = 0; c < block->c; c += CPU_ROWS_CONTEXTS) {
        uint32_t count = block->c - c < CPU_ROWS_CONTEXTS ? block->c - c : CPU_ROWS_CONTEXTS;
        for (uint32_t t = 0; t < v->count; t += BAND) {
            uint32_t band = v->count - t < BAND ? v->count - t : BAND;
            for (uint32_t i = 0; i < band; i++) memcpy(factors + i * count, logits + (uint64_t)(t + i) * block->c + c, count * sizeof(float));
            rows->gain(v->of + t, moves + t, band, (const float *const *)contexts + c, contexts + c, count, run->dim, factors, 0, 0);
        }
    }
    for (uint32_t t = 0; t < block->t; t += v->pooled ? BAND : 1) {
        uint32_t band = !v->pooled ? 1 : block->t - t < BAND ? block->t - t : BAND;
        float shares[BAND];
        for (uint32_t i = 0; i < band; i++) shares[i] = share_of(run, block, t + i);
        rows->spread(moves[v->pooled ? 0 : t], shares, targets + t, band, run->dim);
    }
}

/* ---- rows of bfloat16 ---- */

/* Sums the changes of a block's vectors and contexts, all from old rows, eight contexts and BAND vectors at a time. */
static void gain_all(const struct hogwild *run, const struct cpu_block *block, const struct vectors *v, const struct rows *of, const float *factors) {
    const float *const *contexts = (const float *const *)of->contexts;
    float *moved[BAND], *gained[CPU_ROWS_CONTEXTS], some[BAND * CPU_ROWS_CONTEXTS];
    for (uint32_t c = 0; c < block->c; c += CPU_ROWS_CONTEXTS) {
        uint32_t few = block->c - c < CPU_ROWS_CONTEXTS ? block->c - c : CPU_ROWS_CONTEXTS;
        for (uint32_t k = 0; k < few; k++) gained[k] = of->gain + ((uint64_t)c + k) * run->span;
        for (uint32_t t = 0; t < v->count; t += BAND) {
            uint32_t band = v->count - t < BAND ? v->count - t : BAND;
            for (uint32_t i = 0; i < band; i++) {
                moved[i] = v->gradient + (uint64_t)(t + i) * run->span;
                memcpy(some + i * few, factors + (uint64_t)(t + i) * block->c + c, few * sizeof *some);
            }
            run->backend->rows->gain(v->of + t, moved, band, contexts + c, gained, few, run->dim, some, c == 0, t == 0);
        }
    }
}

/* Adds a change to a row of the table; rounds if the row is bfloat16. */
static void add_gain(const struct hogwild *run, const struct backend_table *table, uint32_t row, const float *gain, uint32_t key) {
    run->backend->rows->add_apart(cpu_weights(table, row), gain, run->columns, round_row_key(key, row));
}

static void move_halves(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block,
                        const struct vectors *v, const struct rows *of, float *logits, float lr) {
    const struct hogwild_request *request = run->request;
    const uint32_t *targets = piece->blocks->target + block->targets, *contexts = piece->blocks->context + block->contexts;
    uint64_t global_step = request->global_step + piece->first + block->example;
    uint32_t keys[2] = {round_step_key(&request->target->spec.rounding, DRAW_ROUND_WEIGHTS, global_step),
                        round_step_key(&request->context->spec.rounding, DRAW_ROUND_WEIGHTS, global_step)};
    run->backend->rows->coefficients(logits, v->count, block->c, block->positives, -lr);
    if (!block->c) return; /* without contexts no row changes, and v->gradient is undefined */
    gain_all(run, block, v, of, logits);
    for (uint32_t c = 0; c < block->c; c++) add_gain(run, request->context, contexts[c], of->gain + c * run->span, keys[1]);
    for (uint32_t t = 0; t < block->t; t++) {
        const float *move = v->gradient + (v->pooled ? 0 : t * run->span);
        float share = share_of(run, block, t);
        for (uint32_t j = 0; v->pooled && j < run->span; j++) v->row[j] = share * move[j];
        add_gain(run, request->target, targets[t], v->pooled ? v->row : move, keys[0]);
    }
}

/* Replaces a block's scores by coefficients, and adds their loss to the worker's sum if its example is sampled. */
static void learn_counts(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block, float *logits) {
    double loss = run->backend->rows->learn(&run->request->loss, logits, 1, block->c, block->c, piece->blocks->weight + block->contexts, 1, NULL);
    if (!((piece->first + block->example) & run->loss_mask)) piece->scratch->part.loss += loss;
}

/* Copies the block's rows for the tables' snapshots, if there are any. Not needed with optimizer rules, since cpu_apply_rule() does it. */
static void before_changes(const struct hogwild *run, const struct cpu_blocks *blocks, const struct cpu_block *block) {
    const struct hogwild_request *request = run->request;
    for (uint32_t t = 0; request->target->snapshot && t < block->t; t++) cpu_before_change(request->target, blocks->target[block->targets + t]);
    for (uint32_t c = 0; request->context->snapshot && c < block->c; c++) cpu_before_change(request->context, blocks->context[block->contexts + c]);
}

/* Trains a block by LOSS_GLOVE, CPU_FIT contexts at a time, while the rows of the next block are prefetched. */
static void fit_block(const struct hogwild *run, struct piece *piece, uint64_t number, float lr) {
    const struct hogwild_request *request = run->request;
    const struct cpu_blocks *blocks = piece->blocks;
    const struct cpu_block *block = &blocks->block[number];
    const uint32_t *contexts = blocks->context + block->contexts;
    const struct backend_table *target = request->target, *context = request->context;
    const char *ahead[CPU_FIT];
    float *weights[CPU_FIT], *sums[CPU_FIT];
    struct cpu_fit fit = {.weights = cpu_weights(target, blocks->target[block->targets]),
                          .sums = cpu_slot(target, blocks->target[block->targets], 0),
                          .context_weights = weights, .context_sums = sums, .span = (uint32_t)run->span, .ahead = ahead,
                          .ahead_bytes = (uint32_t)context->weights.stride};
    double loss = 0;
    before_changes(run, blocks, block);
    for (uint32_t c = 0; c < block->c; c += CPU_FIT) {
        fit.count = block->c - c < CPU_FIT ? block->c - c : CPU_FIT;
        fit.counts = blocks->weight + block->contexts + c;
        for (uint32_t i = 0; i < fit.count; i++)
            weights[i] = cpu_weights(context, contexts[c + i]), sums[i] = cpu_slot(context, contexts[c + i], 0);
        for (fit.ahead_count = 0; !c && number + 1 < blocks->count && fit.ahead_count < block[1].c && fit.ahead_count < CPU_FIT; fit.ahead_count++)
            ahead[fit.ahead_count] = cpu_weights(context, blocks->context[block[1].contexts + fit.ahead_count]);
        loss += run->backend->rows->fit(&request->loss, &fit, lr);
    }
    if (!((piece->first + block->example) & run->loss_mask)) piece->scratch->part.loss += loss;
}

/* Updates the rows of a block by any optimizer rule: first computes the gradients of all vectors, then updates contexts, then targets. */
static void move_by_rule(const struct hogwild *run, struct piece *piece, const struct cpu_block *block, const struct vectors *v,
                         float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    const struct hogwild_request *request = run->request;
    const uint32_t *targets = piece->blocks->target + block->targets, *context = piece->blocks->context + block->contexts;
    float *rule_scratch = piece->scratch->rule_scratch;
    uint64_t global_step = request->global_step + piece->first + block->example;
    if (piece->rate != lr) memset(piece->memo.updates, 0, sizeof piece->memo.updates);
    piece->rate = lr;
    if (request->loss.kind == LOSS_GLOVE) learn_counts(run, piece, block, logits);
    else rows->coefficients(logits, v->count, block->c, block->positives, 1.0f);
    memset(v->gradient, 0, v->count * run->span * sizeof(float));
    for (uint32_t t = 0; t < v->count; t++)
        if (v->pooled || !table_is_frozen(&request->target->spec, targets[t]))
            rows->combine(v->gradient + t * run->span, logits + (uint64_t)t * block->c, 1, (const float *const *)contexts, block->c, run->dim);
    for (uint32_t c = 0; c < block->c; c++) {
        if (table_is_frozen(&request->context->spec, context[c])) continue;
        memset(v->row, 0, run->span * sizeof(float));
        rows->combine(v->row, logits + c, block->c, v->of, v->count, run->dim);
        cpu_apply_rule(rows, request->rule, lr, global_step, request->context, context[c], v->row, rule_scratch, &piece->memo);
    }
    for (uint32_t t = 0; t < block->t; t++) {
        const float *gradient = v->gradient + (v->pooled ? 0 : t * run->span);
        float share = share_of(run, block, t);
        if (v->pooled) memset(v->row, 0, run->span * sizeof(float));
        if (v->pooled) rows->combine(v->row, &share, 1, &gradient, 1, run->dim);
        cpu_apply_rule(rows, request->rule, lr, global_step, request->target, targets[t], v->pooled ? v->row : gradient, rule_scratch, &piece->memo);
    }
}

/* Adds a block to the counts, and to the loss if its example is sampled. */
static void count_block(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block, uint32_t vectors, const float *logits) {
    struct hogwild_result *part = &piece->scratch->part;
    part->examples++;
    part->pairs += (uint64_t)vectors * block->predicted;
    if ((piece->first + block->example) & run->loss_mask) return;
    if (run->request->loss.kind != LOSS_GLOVE) part->loss += run->backend->rows->loss(logits, vectors, block->c, block->positives);
    part->sampled_examples++;
    part->sampled_pairs += (uint64_t)vectors * block->predicted;
    part->sampled_terms += (uint64_t)vectors * block->c;
}

/* Lists pointers to a block's rows in the tables. */
static struct rows list_rows(const struct hogwild *run, struct cpu_scratch *scratch, const struct cpu_blocks *blocks, const struct cpu_block *block) {
    void **rows = scratch->rows;
    for (uint32_t t = 0; t < block->t; t++) rows[t] = cpu_weights(run->request->target, blocks->target[block->targets + t]);
    for (uint32_t c = 0; c < block->c; c++) rows[block->t + c] = cpu_weights(run->request->context, blocks->context[block->contexts + c]);
    return (struct rows){(float **)rows, (float **)rows + block->t, NULL};
}

/* Copies bfloat16 rows to floats, and lists pointers to the copies instead. Rules need the columns in order; sums do not. */
static int copy_rows(const struct hogwild *run, struct cpu_scratch *scratch, const struct cpu_block *block, struct rows *of) {
    const struct cpu_rows *rows = run->backend->rows;
    uint64_t places = (uint64_t)block->t + block->c;
    float *wide = cpu_grow_wide(scratch, places + block->c, run->span);
    if (!wide) return -1;
    of->gain = wide + places * run->span;
    for (uint64_t i = 0; i < places; i++) {
        float *copy = wide + i * run->span;
        (run->linear ? rows->widen_apart : rows->widen)(scratch->rows[i], run->columns, copy);
        scratch->rows[i] = copy;
    }
    return 0;
}

static int train_block(const struct hogwild *run, struct piece *piece, uint64_t number) {
    const struct cpu_rows *rows = run->backend->rows;
    const struct cpu_blocks *blocks = piece->blocks;
    const struct cpu_block *block = &blocks->block[number];
    struct cpu_scratch *scratch = piece->scratch;
    float lr = hogwild_rate(run->lr_first, run->slope, piece->first + block->example);
    if (run->fits) {
        count_block(run, piece, block, 1, NULL);
        fit_block(run, piece, number, lr);
        return 0;
    }
    if (grow_scratch(scratch, block, example_vectors(&run->backend->source.pool, block->t), run->span)) return -1;
    if (run->linear) before_changes(run, blocks, block);
    struct rows of = list_rows(run, scratch, blocks, block);
    float *logits = scratch->logits;
    const float *pooled;
    if (run->halves && copy_rows(run, scratch, block, &of)) return -1;
    struct vectors v = vectors_of(run, scratch, of.targets, block->t, &pooled);
    rows->dots(v.of, v.count, (const float *const *)of.contexts, block->c, run->dim, logits, block->c);
    count_block(run, piece, block, v.count, logits);
    if (!run->linear) move_by_rule(run, piece, block, &v, of.contexts, logits, lr);
    else if (run->halves) move_halves(run, piece, block, &v, &of, logits, lr);
    else if (v.pooled || block->c > CPU_ROWS_CONTEXTS) move_wide(run, block, &v, of.targets, of.contexts, logits, lr);
    else {
        rows->coefficients(logits, block->t, block->c, block->positives, -lr);
        rows->gain((const float *const *)of.targets, of.targets, block->t, (const float *const *)of.contexts, of.contexts, block->c, run->dim, logits,
                   0, 0);
    }
    return 0;
}

/* ---- a worker ---- */

/* Trains examples first .. first + count - 1 of the request. */
static int train_piece(const struct hogwild *run, struct cpu_scratch *scratch, uint64_t first, uint64_t count) {
    struct cpu_blocks *blocks = &scratch->blocks;
    struct piece piece = {.blocks = blocks, .first = first, .scratch = scratch};
    cpu_blocks_clear(blocks);
    if (cpu_build(&run->backend->source, &scratch->piece, blocks, run->request->epoch, run->request->first + first, count, 0)) return -1;
    scratch->part.words += blocks->words;
    for (uint64_t i = 0; i < AHEAD && !run->fits; i++) prefetch_block(run, blocks, i);
    for (uint64_t i = 0; i < blocks->count; i++) {
        if (!run->fits) prefetch_block(run, blocks, i + AHEAD);
        if (train_block(run, &piece, i)) return -1;
    }
    return 0;
}

static int train_stretches(void *context, unsigned worker) {
    struct hogwild *run = context;
    const struct hogwild_request *request = run->request;
    struct cpu_scratch *scratch = &run->backend->scratch[worker];
    uint64_t at, end, piece = run->backend->sizes.piece;
    scratch->part = (struct hogwild_result){0};
    if (request->workers && worker >= request->workers) return 0;
    while (!interrupt_asked() && pool_take(&run->taken, request->count, STRETCH, &at, &end))
        for (; at < end; at += piece)
            if (train_piece(run, scratch, at, end - at < piece ? end - at : piece)) return -1;
    return 0;
}

int cpu_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result) {
    char why[HOGWILD_WHY];
    const struct record_layout *layout = &request->target->spec.layout;
    struct hogwild run = {.backend = backend,
                          .request = request,
                          .dim = layout->dim,
                          .columns = layout->span,
                          .span = cpu_lock_free_span(layout),
                          .halves = cpu_halves(request->target),
                          .linear = hogwild_is_linear(request->rule) && !request->target->spec.frozen && !request->context->spec.frozen,
                          .lr_first = (float)request->lr_first,
                          .slope = hogwild_slope(request),
                          .loss_mask = hogwild_loss_mask(request->count)};
    run.fits = request->loss.kind == LOSS_GLOVE && !layout->halves && !request->target->spec.frozen && !request->context->spec.frozen &&
               request->rule->rule == RULE_ADAGRAD && !(request->rule->lr_decay > 0) && !(request->rule->weight_decay > 0) &&
               request->rule->initial_accumulator >= 1e-3 && request->rule->eps <= 1e-8;
    if (run.halves && run.linear) run.dim = (uint32_t)run.span;
    *result = (struct hogwild_result){0};
    if (hogwild_refuses(&(struct hogwild_asked){.rule = *request->rule}, why)) return fail("%s", why);
    if (cpu_reserve_hogwild(backend, run.span, run.halves)) return -1;
    if (pool_run(backend->pool, train_stretches, &run)) return -1;
    for (unsigned i = 0; i < pool_threads(backend->pool); i++) hogwild_add(result, &backend->scratch[i].part);
    result->done = run.taken < request->count ? run.taken : request->count;
    return 0;
}
