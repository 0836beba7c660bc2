/* step: what the parts of an exact step share: step.c, which says the whole, and step_blocks.c, which goes over blocks. */
#ifndef SPTX_CPU_STEP_H
#define SPTX_CPU_STEP_H

#include "cpu.h"

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
    int plain;  /* word2vec's loss of dot products */
    const struct side *side; /* whose rows are passed over */
    float *squares; /* [side's places] NULL, or of a row that stands in more than one, at its first: of its gradient's columns */
    float scale;
    uint32_t dim;
    uint64_t span;
    _Atomic uint64_t taken;
};

/* Pass 1: every block's loss, coefficients in place of its logits, gradients of its targets. */
int cpu_pass_blocks(struct step *step);

/* A block's scores [vectors x C]: logits, then coefficients of dot products. */
FN float *cpu_block_logits(const struct step *step, uint64_t number) {
    return step->backend->shared.coefficients + step->stage->logit_starts[number];
}
/* With cosines, behind all logits: a place's squares, and after pass 1 its factor for itself. A pooled block's vector has the
 * place of its first target. */
FN float *cpu_target_lengths(const struct step *step) {
    return step->backend->shared.coefficients + step->stage->all.logits;
}
FN float *cpu_context_lengths(const struct step *step) {
    return cpu_target_lengths(step) + step->stage->all.targets;
}
/* Numbers in `coefficients`, all of which are summed over ranks. */
FN uint64_t cpu_batch_logits(const struct step *step) {
    const struct cpu_blocks *all = &step->stage->all;
    return all->logits + (step->request->loss.score == SCORE_COSINE ? all->targets + all->contexts : 0);
}

/* The vectors that a block sets against its contexts: its targets' rows, or the pooled one. */
FN void cpu_block_vectors(const struct step *step, uint64_t number, const float **out) {
    const struct cpu_block *block = &step->stage->all.block[number];
    const uint32_t *targets = step->stage->all.target + block->targets;
    if (step->stage->pool.on)
        out[0] = step->backend->shared.pooled + number * step->span;
    else
        for (uint32_t t = 0; t < block->t; t++) out[t] = cpu_weights(step->request->target, targets[t]);
}

#endif
