/* hogwild: lock-free training, as kernels/hogwild.h defines it. Workers take stretches of examples and change rows as
 * they go. If two workers change a row at once, one of the changes may be lost, so runs differ in their last digits.
 *
 * Dot products and coefficients of a block are computed first, then each of its rows is updated. The rows of a few blocks
 * ahead are prefetched: the tables are larger than the caches, and a negative's row is nearly always a miss.
 *
 * Rows of bfloat16 are copied to floats first. Their changes are summed in other memory; then each row is read
 * again, changed, rounded and stored in one pass: as with float32, only a race with another worker can lose a
 * change.
 */
#include "cpu.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "kernels/hogwild.h"

#include <string.h>

enum {
    STRETCH = 4096,      /* examples that a worker takes at a time */
    AHEAD = 3,           /* how many blocks ahead rows are prefetched */
    AHEAD_TARGETS = 3,   /* targets that are prefetched of a block, if it has no more; a window's targets are still in the cache
                          * from the word before */
    AHEAD_CONTEXTS = 64, /* contexts that are prefetched of each block, at most */
    BAND = 64,           /* targets of a wide or pooled block that are updated together */
};

struct hogwild {
    struct backend *backend;
    const struct hogwild_request *request;
    uint32_t dim;     /* columns over which dot products and sums run; for bfloat16 those of copies (cpu_rows.widen_apart), with
                       * their zeros */
    uint32_t columns; /* columns of a bfloat16 row, with padding */
    uint64_t span;
    int halves; /* 1: the tables' weights are bfloat16 */
    int linear; /* 1: the rule is linear (hogwild_is_linear) and no row is frozen */
    float lr_first, slope;
    uint32_t loss_mask;
    _Atomic uint64_t taken;
};

/* Examples that a worker builds and trains together. */
struct piece {
    const struct cpu_blocks *blocks;
    uint64_t first; /* number of the first example in the request */
    struct cpu_scratch *scratch;
    struct cpu_memo memo; /* valid for one learning rate */
    float rate;
};

/* Pointers to a block's rows. For bfloat16 tables they point to copies, and the gradients of all rows are behind the copies. */
struct rows {
    float **targets, **contexts;
    float *gain; /* [T x span] gradients of targets, then [C x span] of contexts; NULL: float32 rows are changed in place */
};

/* ---- one block ---- */

static void prefetch_row(const struct backend_table *table, uint32_t row) {
    const char *weights = cpu_weights(table, row);
    for (uint64_t at = 0; at < record_weights_bytes(&table->spec.layout); at += 64)
        __builtin_prefetch(weights + at, 1, 3);
}

static void prefetch_block(const struct hogwild *run, const struct cpu_blocks *blocks, uint64_t number) {
    if (number >= blocks->count) return;
    const struct cpu_block *block = &blocks->block[number];
    if (block->t <= AHEAD_TARGETS)
        for (uint32_t t = 0; t < block->t; t++) prefetch_row(run->request->target, blocks->target[block->targets + t]);
    for (uint32_t c = 0; c < block->c && c < AHEAD_CONTEXTS; c++)
        prefetch_row(run->request->context, blocks->context[block->contexts + c]);
}

static int grow_scratch(struct cpu_scratch *scratch, const struct cpu_block *block, uint64_t vectors, uint64_t span) {
    return mem_grow(&scratch->rows, &scratch->row_capacity, 2 * (uint64_t)block->t + block->c, sizeof *scratch->rows,
                    "row pointers") ||
                   mem_grow(&scratch->logits, &scratch->logit_capacity, vectors * block->c, sizeof(float), "logits") ||
                   mem_grow(&scratch->gradient, &scratch->gradient_capacity, (vectors + 2) * span, sizeof(float),
                            "gradients") ||
                   mem_grow(&scratch->unused_slot, &scratch->unused_capacity, CPU_FIELDS * span, sizeof(float),
                            "gradients")
               ? -1
               : 0;
}

/* Updates the rows of a block with few contexts: coefficients of all pairs first, then all rows in one pass. */
static void move_narrow(const struct hogwild *run, const struct cpu_block *block, float **targets, float **contexts,
                        float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    rows->coefficients(logits, block->t, block->c, block->positives, -lr);
    rows->update((const float *const *)targets, targets, block->t, contexts, block->c, run->dim, logits);
}

/* Updates the rows of a block with many contexts: eight contexts at a time with the old targets, whose changes are summed in
 * other memory. */
static void move_wide(const struct hogwild *run, struct cpu_scratch *scratch, const struct cpu_block *block,
                      float **targets, float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    float **moves = contexts + block->c, factors[BAND * CPU_ROWS_CONTEXTS];
    const float whole = 1;
    rows->coefficients(logits, block->t, block->c, block->positives, -lr);
    memset(scratch->gradient, 0, block->t * run->span * sizeof(float));
    for (uint32_t t = 0; t < block->t; t++) moves[t] = scratch->gradient + t * run->span;
    for (uint32_t c = 0; c < block->c; c += CPU_ROWS_CONTEXTS) {
        uint32_t count = block->c - c < CPU_ROWS_CONTEXTS ? block->c - c : CPU_ROWS_CONTEXTS;
        for (uint32_t t = 0; t < block->t; t += BAND) {
            uint32_t band = block->t - t < BAND ? block->t - t : BAND;
            for (uint32_t i = 0; i < band; i++)
                memcpy(factors + i * count, logits + (uint64_t)(t + i) * block->c + c, count * sizeof(float));
            rows->update((const float *const *)targets + t, moves + t, band, contexts + c, count, run->dim, factors);
        }
    }
    for (uint32_t t = 0; t < block->t; t++) rows->combine(targets[t], &whole, 1, (const float *const *)moves + t, 1, run->dim);
}

/* ---- rows of bfloat16 ---- */

/* Sums the changes of a block's rows, all computed from the old rows: eight contexts and BAND vectors at a time. */
static void gain_all(const struct hogwild *run, const struct cpu_block *block, const float *const *vectors,
                     uint32_t count, const struct rows *of, float *vector_gain, const float *factors) {
    const float *const *contexts = (const float *const *)of->contexts;
    float *moved[BAND], *gained[CPU_ROWS_CONTEXTS], some[BAND * CPU_ROWS_CONTEXTS];
    for (uint32_t c = 0; c < block->c; c += CPU_ROWS_CONTEXTS) {
        uint32_t few = block->c - c < CPU_ROWS_CONTEXTS ? block->c - c : CPU_ROWS_CONTEXTS;
        for (uint32_t k = 0; k < few; k++) gained[k] = of->gain + (block->t + (uint64_t)c + k) * run->span;
        for (uint32_t t = 0; t < count; t += BAND) {
            uint32_t band = count - t < BAND ? count - t : BAND;
            for (uint32_t i = 0; i < band; i++) {
                moved[i] = vector_gain + (uint64_t)(t + i) * run->span;
                memcpy(some + i * few, factors + (uint64_t)(t + i) * block->c + c, few * sizeof *some);
            }
            run->backend->rows->gain(vectors + t, moved, band, contexts + c, gained, few, run->dim, some, c == 0, t == 0);
        }
    }
}

/* Adds a change to a row of the table, with rounding. */
static void add_gain(const struct hogwild *run, const struct backend_table *table, uint32_t row, const float *gain,
                     uint32_t key) {
    run->backend->rows->add_apart(cpu_weights(table, row), gain, run->columns, round_row_key(key, row));
}

static void add_gains(const struct hogwild *run, const struct backend_table *table, const uint32_t *ids, uint32_t count,
                      const float *gains, uint64_t global_step) {
    uint32_t key = round_step_key(&table->spec.rounding, DRAW_ROUND_WEIGHTS, global_step);
    for (uint32_t i = 0; i < count; i++) add_gain(run, table, ids[i], gains + i * run->span, key);
}

static void move_halves(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block,
                        const struct rows *of, float *logits, float lr) {
    const struct hogwild_request *request = run->request;
    const struct cpu_blocks *blocks = piece->blocks;
    uint64_t global_step = request->global_step + piece->first + block->example;
    run->backend->rows->coefficients(logits, block->t, block->c, block->positives, -lr);
    if (!block->c) return; /* nothing changes, and gradients of targets would stay unset */
    gain_all(run, block, (const float *const *)of->targets, block->t, of, of->gain, logits);
    add_gains(run, request->context, blocks->context + block->contexts, block->c, of->gain + block->t * run->span,
              global_step);
    add_gains(run, request->target, blocks->target + block->targets, block->t, of->gain, global_step);
}

static int is_frozen(const struct backend_table *table, const uint32_t *ids, uint64_t at) {
    return table_is_frozen(&table->spec, ids[at]);
}

/* Updates the rows of a block by any rule: gradients of all targets first, then each context's update, then each target's. */
static void move_by_rule(const struct hogwild *run, struct piece *piece, const struct cpu_block *block, float **targets,
                         float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    const struct hogwild_request *request = run->request;
    const struct cpu_blocks *blocks = piece->blocks;
    struct cpu_scratch *scratch = piece->scratch;
    uint64_t global_step = request->global_step + piece->first + block->example;
    float *context_gradient = scratch->gradient + block->t * run->span;
    if (piece->rate != lr) memset(piece->memo.updates, 0, sizeof piece->memo.updates);
    piece->rate = lr;
    rows->coefficients(logits, block->t, block->c, block->positives, 1.0f);
    memset(scratch->gradient, 0, block->t * run->span * sizeof(float));
    for (uint32_t t = 0; t < block->t; t++)
        if (!is_frozen(request->target, blocks->target, block->targets + t))
            rows->combine(scratch->gradient + t * run->span, logits + (uint64_t)t * block->c, 1,
                          (const float *const *)contexts, block->c, run->dim);
    for (uint32_t c = 0; c < block->c; c++) {
        if (is_frozen(request->context, blocks->context, block->contexts + c)) continue;
        memset(context_gradient, 0, run->span * sizeof(float));
        rows->combine(context_gradient, logits + c, block->c, (const float *const *)targets, block->t, run->dim);
        cpu_apply_rule(rows, request->rule, lr, global_step, request->context, blocks->context[block->contexts + c],
                       context_gradient, scratch->unused_slot, &piece->memo);
    }
    for (uint32_t t = 0; t < block->t; t++)
        cpu_apply_rule(rows, request->rule, lr, global_step, request->target, blocks->target[block->targets + t],
                       scratch->gradient + t * run->span, scratch->unused_slot, &piece->memo);
}

/* Memory for a pooled block: its vector, the vector's gradient or change, and one more row. */
struct pooled {
    float *vector, *gradient, *row;
};

static struct pooled pool_targets(const struct hogwild *run, struct cpu_scratch *scratch, float *const *targets,
                                  uint32_t count) {
    const struct example_pool *pool = &run->backend->source.pool;
    const struct cpu_rows *rows = run->backend->rows;
    const float *const *of = (const float *const *)targets;
    const float first = example_pool_weight(pool, count, 0), others = example_pool_weight(pool, count, 1);
    struct pooled p = {scratch->gradient, scratch->gradient + run->span, scratch->gradient + 2 * run->span};
    uint32_t apart = pool->own > 0; /* 1: the first row has a weight of its own; rows of equal weight are summed in one pass */
    memset(scratch->gradient, 0, 2 * run->span * sizeof(float));
    if (apart) rows->combine(p.vector, &first, 0, of, 1, run->dim);
    rows->combine(p.vector, &others, 0, of + apart, count - apart, run->dim);
    return p;
}

static void move_pooled(const struct hogwild *run, const struct cpu_block *block, const struct pooled *pooled, float **targets,
                        float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    const float *vector = pooled->vector, *move = pooled->gradient;
    float *moved = pooled->gradient;
    rows->coefficients(logits, 1, block->c, block->positives, -lr);
    for (uint32_t c = 0; c < block->c; c += CPU_ROWS_CONTEXTS) {
        uint32_t count = block->c - c < CPU_ROWS_CONTEXTS ? block->c - c : CPU_ROWS_CONTEXTS;
        rows->update(&vector, &moved, 1, contexts + c, count, run->dim, logits + c);
    }
    for (uint32_t t = 0; t < block->t; t += BAND) {
        uint32_t band = block->t - t < BAND ? block->t - t : BAND;
        float shares[BAND];
        for (uint32_t i = 0; i < band; i++) shares[i] = example_pool_share(&run->backend->source.pool, block->t, t + i);
        rows->spread(move, shares, targets + t, band, run->dim);
    }
}

/* Updates a pooled block of bfloat16 rows: each row's change is its share of the vector's change. */
static void move_pooled_halves(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block,
                               const struct pooled *pooled, const struct rows *of, float *logits, float lr) {
    const struct hogwild_request *request = run->request;
    const float *vector = pooled->vector, *move = pooled->gradient;
    const uint32_t *targets = piece->blocks->target + block->targets;
    uint64_t global_step = request->global_step + piece->first + block->example;
    uint32_t key = round_step_key(&request->target->spec.rounding, DRAW_ROUND_WEIGHTS, global_step);
    float *gains = of->gain + block->t * run->span;
    run->backend->rows->coefficients(logits, 1, block->c, block->positives, -lr);
    gain_all(run, block, &vector, 1, of, pooled->gradient, logits);
    add_gains(run, request->context, piece->blocks->context + block->contexts, block->c, gains, global_step);
    for (uint32_t t = 0; t < block->t; t++) {
        float share = example_pool_share(&run->backend->source.pool, block->t, t);
        for (uint32_t j = 0; j < run->span; j++) pooled->row[j] = share * move[j];
        add_gain(run, request->target, targets[t], pooled->row, key);
    }
}

static void move_pooled_by_rule(const struct hogwild *run, struct piece *piece, const struct cpu_block *block,
                                const struct pooled *pooled, float **contexts, float *logits, float lr) {
    const struct cpu_rows *rows = run->backend->rows;
    const struct hogwild_request *request = run->request;
    const struct cpu_blocks *blocks = piece->blocks;
    const float *vector = pooled->vector, *gradient = pooled->gradient;
    float *unused = piece->scratch->unused_slot;
    uint64_t global_step = request->global_step + piece->first + block->example;
    if (piece->rate != lr) memset(piece->memo.updates, 0, sizeof piece->memo.updates);
    piece->rate = lr;
    rows->coefficients(logits, 1, block->c, block->positives, 1.0f);
    rows->combine(pooled->gradient, logits, 1, (const float *const *)contexts, block->c, run->dim);
    for (uint32_t c = 0; c < block->c; c++) {
        memset(pooled->row, 0, run->span * sizeof(float));
        rows->combine(pooled->row, logits + c, 1, &vector, 1, run->dim);
        cpu_apply_rule(rows, request->rule, lr, global_step, request->context, blocks->context[block->contexts + c], pooled->row,
                       unused, &piece->memo);
    }
    for (uint32_t t = 0; t < block->t; t++) {
        float share = example_pool_share(&run->backend->source.pool, block->t, t);
        memset(pooled->row, 0, run->span * sizeof(float));
        rows->combine(pooled->row, &share, 1, &gradient, 1, run->dim);
        cpu_apply_rule(rows, request->rule, lr, global_step, request->target, blocks->target[block->targets + t], pooled->row,
                       unused, &piece->memo);
    }
}

/* Adds a block to the counts, and to the loss if its example is sampled. */
static void count_block(const struct hogwild *run, const struct piece *piece, const struct cpu_block *block, uint32_t vectors,
                        const float *logits) {
    struct hogwild_result *part = &piece->scratch->part;
    part->examples++;
    part->pairs += (uint64_t)vectors * block->predicted;
    if ((piece->first + block->example) & run->loss_mask) return;
    part->loss += run->backend->rows->loss(logits, vectors, block->c, block->positives);
    part->sampled_examples++;
    part->sampled_pairs += (uint64_t)vectors * block->predicted;
    part->sampled_terms += (uint64_t)vectors * block->c;
}

/* Lists pointers to a block's rows in the tables. */
static struct rows list_rows(const struct hogwild *run, struct cpu_scratch *scratch, const struct cpu_blocks *blocks,
                             const struct cpu_block *block) {
    void **rows = scratch->rows;
    for (uint32_t t = 0; t < block->t; t++)
        rows[t] = cpu_weights(run->request->target, blocks->target[block->targets + t]);
    for (uint32_t c = 0; c < block->c; c++)
        rows[block->t + c] = cpu_weights(run->request->context, blocks->context[block->contexts + c]);
    return (struct rows){(float **)rows, (float **)rows + block->t, NULL};
}

/* Copies bfloat16 rows to floats, and lists the copies instead. Rules need columns in their order; sums do not. */
static int copy_rows(const struct hogwild *run, struct cpu_scratch *scratch, const struct cpu_block *block, struct rows *of) {
    const struct cpu_rows *rows = run->backend->rows;
    uint64_t places = (uint64_t)block->t + block->c;
    float *wide = cpu_grow_wide(scratch, 2 * places, run->span);
    if (!wide) return -1;
    of->gain = wide + places * run->span;
    for (uint64_t i = 0; i < places; i++) {
        float *copy = wide + i * run->span;
        (run->linear ? rows->widen_apart : rows->widen)(scratch->rows[i], run->columns, copy);
        scratch->rows[i] = copy;
    }
    return 0;
}

static int train_block(const struct hogwild *run, struct piece *piece, const struct cpu_block *block) {
    const struct cpu_rows *rows = run->backend->rows;
    const struct cpu_blocks *blocks = piece->blocks;
    struct cpu_scratch *scratch = piece->scratch;
    float lr = hogwild_rate(run->lr_first, run->slope, piece->first + block->example);
    int pool = run->backend->source.pool.on;
    uint32_t vectors = example_vectors(&run->backend->source.pool, block->t);
    if (grow_scratch(scratch, block, vectors, run->span)) return -1;
    struct rows of = list_rows(run, scratch, blocks, block);
    float **targets = of.targets, **contexts = of.contexts, *logits = scratch->logits;
    struct pooled pooled = {NULL, NULL, NULL};
    if (run->halves && copy_rows(run, scratch, block, &of)) return -1;
    if (pool) pooled = pool_targets(run, scratch, targets, block->t);
    const float *vector = pooled.vector, *const *of_targets = pool ? &vector : (const float *const *)targets;
    rows->dots(of_targets, vectors, (const float *const *)contexts, block->c, run->dim, logits, block->c);
    count_block(run, piece, block, vectors, logits);
    if (run->halves && run->linear && pool)
        move_pooled_halves(run, piece, block, &pooled, &of, logits, lr);
    else if (run->halves && run->linear)
        move_halves(run, piece, block, &of, logits, lr);
    else if (pool && run->linear)
        move_pooled(run, block, &pooled, targets, contexts, logits, lr);
    else if (pool)
        move_pooled_by_rule(run, piece, block, &pooled, contexts, logits, lr);
    else if (!run->linear)
        move_by_rule(run, piece, block, targets, contexts, logits, lr);
    else if (block->c <= CPU_ROWS_CONTEXTS)
        move_narrow(run, block, targets, contexts, logits, lr);
    else
        move_wide(run, scratch, block, targets, contexts, logits, lr);
    return 0;
}

/* ---- a worker ---- */

/* Trains examples [first, first + count) of the request. */
static int train_piece(const struct hogwild *run, struct cpu_scratch *scratch, uint64_t first, uint64_t count) {
    struct cpu_blocks *blocks = &scratch->blocks;
    struct piece piece = {.blocks = blocks, .first = first, .scratch = scratch};
    cpu_blocks_clear(blocks);
    if (cpu_build(&run->backend->source, &scratch->piece, blocks, run->request->epoch, run->request->first + first,
                  count, 0))
        return -1;
    for (uint64_t i = 0; i < AHEAD; i++) prefetch_block(run, blocks, i);
    for (uint64_t i = 0; i < blocks->count; i++) {
        prefetch_block(run, blocks, i + AHEAD);
        if (train_block(run, &piece, &blocks->block[i])) return -1;
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
                          .linear = hogwild_is_linear(request->rule) && !request->target->spec.frozen &&
                                    !request->context->spec.frozen,
                          .lr_first = (float)request->lr_first,
                          .slope = hogwild_slope(request),
                          .loss_mask = hogwild_loss_mask(request->count)};
    if (run.halves && run.linear) run.dim = (uint32_t)run.span;
    *result = (struct hogwild_result){0};
    if (hogwild_refuses(&(struct hogwild_asked){.rule = *request->rule}, why)) return fail("%s", why);
    if (cpu_reserve_hogwild(backend, run.span, run.halves)) return -1;
    if (pool_run(backend->pool, train_stretches, &run)) return -1;
    for (unsigned i = 0; i < pool_threads(backend->pool); i++) hogwild_add(result, &backend->scratch[i].part);
    result->done = run.taken < request->count ? run.taken : request->count;
    result->words = backend->source.mode == EXAMPLE_WINDOW ? result->done : 0;
    return 0;
}
