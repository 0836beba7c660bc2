/* step: shared by the files of an exact step: step.c, which runs it, and step_blocks.c and step_shared.c, its first pass. */
#ifndef SPTX_CPU_STEP_H
#define SPTX_CPU_STEP_H

#include "cpu.h"

struct step;

/* One side of a batch: its targets, or its contexts. */
struct side {
    const uint32_t *ids; /* [places] */
    uint64_t places;
    struct backend_table *table;
    /* Returns a row's gradient, summed over its places; in scratch->gradient if there are several. */
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
    float *squares; /* [side's places] for each row with several places, the squared norm of its gradient, at its first place; or
                     * NULL */
    float scale;
    uint32_t dim;
    uint64_t span;
    _Atomic uint64_t taken;
};

/* Returns 1 if the vectors of blocks are bfloat16 rows. */
FN int cpu_kept_vectors(const struct step *step) {
    return cpu_halves(step->request->target) && !step->stage->pool.on;
}

/* Pass 1 with shared negatives (step_shared.c): computes every example's loss, its target's gradient, and the gradient of each
 * context's place. */
int cpu_pass_shared(struct step *step);

/* Pass 1: computes every block's loss, the gradients of its targets, and its coefficients, which replace its logits. */
int cpu_pass_blocks(struct step *step);

/* Returns a block's scores [vectors x C]: first logits, then coefficients of dot products. */
FN float *cpu_block_logits(const struct step *step, uint64_t number) {
    return step->backend->shared.coefficients + step->stage->logit_starts[number];
}
/* For cosine scores, return the arrays behind the logits. They hold each place's sum of squares; pass 1 replaces it by the factor
 * with which the row itself is added to its gradient. A pooled block's vector uses the place of its first target. */
FN float *cpu_target_lengths(const struct step *step) {
    return step->backend->shared.coefficients + step->stage->all.logits;
}
FN float *cpu_context_lengths(const struct step *step) {
    return cpu_target_lengths(step) + step->stage->all.targets;
}
/* Returns how many floats of `coefficients` are summed over ranks. */
FN uint64_t cpu_batch_logits(const struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    return all->logits + (step->request->loss.score == SCORE_COSINE ? all->targets + all->contexts : 0);
}

/* Returns the weights of positives, from the context at `place` on; NULL: all weigh 1. */
FN const float *cpu_positive_weights(const struct step *step, uint64_t place) {
    return step->request->loss.weighted && step->stage->weighted ? step->stage->all.weight + place : NULL;
}

/* Lists pointers to the vectors that a block multiplies with its contexts: its target rows in the table, or its pooled vector. */
FN void cpu_block_vectors(const struct step *step, uint64_t number, const void **out) {
    const struct cpu_block *block = &step->stage->all.block[number];
    const uint32_t *targets = step->stage->all.target + block->targets;
    if (step->stage->pool.on)
        out[0] = step->backend->shared.pooled + number * step->span;
    else
        for (uint32_t t = 0; t < block->t; t++) out[t] = cpu_weights(step->request->target, targets[t]);
}

#endif
