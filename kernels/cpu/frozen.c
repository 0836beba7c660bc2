/* frozen: leaves out of a batch what cannot change a row, if rows of a table are frozen (table_spec).
 *
 * A pair of a frozen target with a frozen context changes nothing. In a block
 *
 *   targets that change   contexts that change   the part that is kept
 *   none                  none                   nothing
 *   none                  some                   all its targets x the contexts that change
 *   some                  none                   the targets that change x all its contexts
 *   some                  some                   all of it
 *
 * Every row that changes keeps all its places and pairs, in order, so its bytes are the same as after the whole batch. If a tenth
 * of a run's words is new, about a fifth of the pairs is kept. The loss is that of the kept pairs.
 * Losses that compare a pair with others of its block, and pooled targets, need whole blocks: only the first line applies to them.
 * Shared negatives are one product with all targets, so nothing is left out of such a batch.
 */
#include "cpu.h"

/* Returns how many of these rows can change. */
static uint32_t count_changing(const struct table_spec *spec, const uint32_t *ids, uint32_t count) {
    uint32_t changing = 0;
    for (uint32_t i = 0; i < count; i++) changing += !table_is_frozen(spec, ids[i]);
    return changing;
}

/* Copies ids to `to`: all ids or, if `changing` is 1, only ids of rows that can change. Returns how many ids were copied.
 * weights: [count] the ids' weights, copied to weights_to in the same way; NULL: ids have no weights. */
static uint32_t move_ids(const struct table_spec *spec, uint32_t *to, const uint32_t *ids, uint32_t count, int changing,
                         float *weights_to, const float *weights) {
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (changing && table_is_frozen(spec, ids[i])) continue;
        if (weights) weights_to[moved] = weights[i];
        to[moved++] = ids[i];
    }
    return moved;
}

/* Appends the kept part of a block after the kept parts of earlier blocks. */
static void leave_out(struct cpu_blocks *left, struct cpu_block block, const struct step_request *request, int by_pairs,
                      int weighted) {
    const struct table_spec *target = &request->target->spec, *context = &request->context->spec;
    const uint32_t *targets = left->target + block.targets, *contexts = left->context + block.contexts;
    uint32_t t = count_changing(target, targets, block.t), c = count_changing(context, contexts, block.c);
    float *weights_to = weighted ? left->weight + left->contexts : NULL, *weights = weighted ? left->weight + block.contexts : NULL;
    int some_targets = by_pairs && !c, some_contexts = by_pairs && !t;
    if (!t && !c) return;
    if (some_contexts) {
        uint32_t changing = count_changing(context, contexts, block.positives);
        block.predicted -= block.positives - changing; /* either all nodes of a tree can change, or none */
        block.positives = changing;
    }
    block.t = move_ids(target, left->target + left->targets, targets, block.t, some_targets, NULL, NULL);
    block.c = move_ids(context, left->context + left->contexts, contexts, block.c, some_contexts, weights_to, weights);
    block.targets = left->targets;
    block.contexts = left->contexts;
    left->targets += block.t;
    left->contexts += block.c;
    left->block[left->count++] = block;
}

int cpu_leave_out_frozen(struct cpu_stage *stage, const struct step_request *request) {
    int by_pairs = request->loss.kind == LOSS_LOGISTIC && !stage->pool.on;
    if (stage->shared.count || (!request->target->spec.frozen && !request->context->spec.frozen)) return 0;
    uint64_t examples = stage->result.examples, blocks = stage->all.count;
    cpu_blocks_clear(&stage->all);
    for (uint64_t i = 0; i < blocks; i++) leave_out(&stage->all, stage->all.block[i], request, by_pairs, stage->weighted);
    if (cpu_index_batch(stage)) return -1;
    stage->result.examples = examples; /* a mean divides by all examples of the batch */
    return 0;
}
