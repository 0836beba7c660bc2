/* batch: makes a batch in its stage. Workers build chunks of CPU_GRAIN examples, which are then copied one after the other, so
 * that the arrays are the same for any number of workers. */
#include "cpu.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <string.h>

struct build {
    struct backend *backend;
    struct cpu_stage *stage;
    const struct batch_request *request;
    struct cpu_chunk *chunk; /* [chunks] */
    uint64_t chunks;
    _Atomic uint64_t taken;
    atomic_int stopped; /* 1: the batch is given up, since a signal or the caller asked to stop */
};

static int build_chunks(void *context, unsigned worker) {
    struct build *build = context;
    struct backend *backend = build->backend;
    int may_stop = !build->request->held_out && ranks_count(backend->ranks) == 1;
    uint64_t chunk, end;
    while (pool_take(&build->taken, build->chunks, 1, &chunk, &end)) {
        build->stopped |= may_stop && interrupt_asked();
        if (build->stopped) break;
        uint64_t first = chunk * CPU_GRAIN, left = build->request->count - first;
        struct cpu_blocks *blocks = &build->chunk[chunk].blocks;
        cpu_blocks_clear(blocks);
        if (cpu_build(&backend->source, &backend->scratch[worker].piece, blocks, build->request->epoch,
                      build->request->first + first, left < CPU_GRAIN ? left : CPU_GRAIN, build->request->held_out))
            return -1;
    }
    return 0;
}

static int lay_out_chunks(void *context, unsigned worker) {
    struct build *build = context;
    struct cpu_stage *stage = build->stage;
    uint64_t chunk, end;
    while (pool_take(&build->taken, build->chunks, 1, &chunk, &end)) {
        const struct cpu_chunk *from = &build->chunk[chunk];
        const struct cpu_blocks *blocks = &from->blocks;
        struct cpu_block *block = stage->all.block + from->first_block;
        for (uint64_t i = 0; i < blocks->count; i++) {
            block[i] = blocks->block[i];
            block[i].targets += from->first_target;
            block[i].contexts += from->first_context;
        }
        if (blocks->targets)
            memcpy(stage->all.target + from->first_target, blocks->target, blocks->targets * sizeof *blocks->target);
        if (blocks->contexts)
            memcpy(stage->all.context + from->first_context, blocks->context, blocks->contexts * sizeof *blocks->context);
        if (blocks->contexts && stage->weighted)
            memcpy(stage->all.weight + from->first_context, blocks->weight, blocks->contexts * sizeof *blocks->weight);
    }
    return 0;
}

static int grow_blocks(struct cpu_stage *stage, uint64_t blocks, uint64_t targets, uint64_t contexts) {
    struct cpu_blocks *b = &stage->all;
    uint64_t weights = stage->weighted ? contexts : 0;
    return mem_grow(&b->block, &b->block_capacity, blocks, sizeof *b->block, "a batch's examples") ||
                   mem_grow(&b->target, &b->target_capacity, targets, sizeof *b->target, "a batch's targets") ||
                   mem_grow(&b->context, &b->context_capacity, contexts, sizeof *b->context, "a batch's contexts") ||
                   mem_grow(&b->weight, &b->weight_capacity, weights, sizeof *b->weight, "a batch's weights")
               ? -1
               : 0;
}

/* Computes for each occurrence the number of its block, and for each block the index of its first coefficient. */
int cpu_index_batch(struct cpu_stage *stage) {
    struct cpu_blocks *b = &stage->all;
    if (mem_grow(&stage->logit_starts, &stage->logit_start_capacity, b->count, sizeof(uint64_t),
                 "a batch's examples") ||
        mem_grow(&stage->target_block, &stage->target_block_capacity, b->targets, sizeof(uint64_t),
                 "a batch's targets") ||
        mem_grow(&stage->context_block, &stage->context_block_capacity, b->contexts, sizeof(uint64_t),
                 "a batch's contexts"))
        return -1;
    stage->result = (struct step_result){.words = stage->words, .examples = b->count - (stage->shared.count > 0)};
    b->logits = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        const struct cpu_block *block = &b->block[i];
        stage->logit_starts[i] = b->logits;
        uint64_t vectors = example_vectors(&stage->pool, block->t);
        b->logits += vectors * (stage->shared.count ? block->positives : block->c);
        stage->result.pairs += vectors * block->predicted;
        for (uint32_t t = 0; t < block->t; t++) stage->target_block[block->targets + t] = i;
        for (uint32_t c = 0; c < block->c; c++) stage->context_block[block->contexts + c] = i;
    }
    stage->result.terms = b->logits + stage->result.examples * stage->shared.count;
    if (b->targets > UINT32_MAX || b->contexts > UINT32_MAX)
        return fail("a batch of %llu targets and %llu contexts is more than 2^32; lower train.batch",
                    (unsigned long long)b->targets, (unsigned long long)b->contexts);
    return 0;
}

static int grow_chunks(struct cpu_shared *shared, uint64_t chunks) {
    uint64_t before = shared->chunk_capacity;
    if (mem_reserve(&shared->chunk, &shared->chunk_capacity, chunks, sizeof *shared->chunk, "a batch's chunks"))
        return -1;
    if (shared->chunk_capacity > before)
        memset(shared->chunk + before, 0, (shared->chunk_capacity - before) * sizeof *shared->chunk);
    return 0;
}

int cpu_make_batch(struct backend *backend, unsigned number, const struct batch_request *request) {
    struct cpu_stage *stage = &backend->stage[number];
    struct cpu_blocks *all = &stage->all;
    struct build build = {.backend = backend, .stage = stage, .request = request};
    uint64_t examples = 0;
    build.chunks = (request->count + CPU_GRAIN - 1) / CPU_GRAIN;
    stage->pool = backend->source.pool;
    stage->shared = (struct shared_negatives){0};
    stage->weighted = backend->source.weights != NULL;
    stage->words = backend->source.mode == EXAMPLE_WINDOW ? request->count : 0;
    if (grow_chunks(&backend->shared, build.chunks) || cpu_reserve_batch(backend, stage)) return -1;
    build.chunk = backend->shared.chunk;
    if (pool_run(backend->pool, build_chunks, &build)) return -1;
    if (build.stopped) return BATCH_STOPPED;
    cpu_blocks_clear(all);
    for (uint64_t i = 0; i < build.chunks; i++) examples += build.chunk[i].blocks.count;
    if (examples) {
        if (cpu_build_shared(&backend->source, all, request->epoch, request->first)) return -1;
        stage->shared = (struct shared_negatives){(uint32_t)all->contexts, backend->source.exclude};
    }
    for (uint64_t i = 0; i < build.chunks; i++) {
        struct cpu_chunk *chunk = &build.chunk[i];
        chunk->first_block = all->count;
        chunk->first_target = all->targets;
        chunk->first_context = all->contexts;
        all->count += chunk->blocks.count;
        all->targets += chunk->blocks.targets;
        all->contexts += chunk->blocks.contexts;
    }
    if (grow_blocks(stage, all->count, all->targets, all->contexts)) return -1;
    atomic_store(&build.taken, 0);
    if (pool_run(backend->pool, lay_out_chunks, &build)) return -1;
    return cpu_index_batch(stage);
}

int cpu_set_batch(struct backend *backend, unsigned number, const struct batch_view *view) {
    struct cpu_stage *stage = &backend->stage[number];
    uint64_t targets = view->target_starts[view->blocks], contexts = view->context_starts[view->blocks];
    if (shared_negatives_check(view)) return -1;
    stage->pool = view->pool;
    stage->shared = view->shared;
    stage->weighted = view->weights != NULL;
    stage->words = 0;
    if (grow_blocks(stage, view->blocks, targets, contexts)) return -1;
    cpu_blocks_clear(&stage->all);
    for (uint64_t i = 0; i < view->blocks; i++)
        stage->all.block[i] = (struct cpu_block){
            .targets = view->target_starts[i],
            .contexts = view->context_starts[i],
            .t = (uint32_t)(view->target_starts[i + 1] - view->target_starts[i]),
            .c = (uint32_t)(view->context_starts[i + 1] - view->context_starts[i]),
            .positives = view->positives[i],
            .predicted = view->positives[i],
        };
    memcpy(stage->all.target, view->target_ids, targets * sizeof(uint32_t));
    memcpy(stage->all.context, view->context_ids, contexts * sizeof(uint32_t));
    if (view->weights) memcpy(stage->all.weight, view->weights, contexts * sizeof(float));
    stage->all.count = view->blocks;
    stage->all.targets = targets;
    stage->all.contexts = contexts;
    return cpu_index_batch(stage);
}

int cpu_batch_view(struct backend *backend, unsigned number, struct batch_view *view) {
    struct cpu_stage *stage = &backend->stage[number];
    const struct cpu_blocks *b = &stage->all;
    uint64_t capacity = stage->view_capacity, other = capacity, third = capacity;
    if (mem_grow(&stage->target_starts, &capacity, b->count + 1, sizeof(uint64_t), "a view of a batch") ||
        mem_grow(&stage->context_starts, &other, b->count + 1, sizeof(uint64_t), "a view of a batch") ||
        mem_grow(&stage->positives, &third, b->count + 1, sizeof(uint32_t), "a view of a batch"))
        return -1;
    stage->view_capacity = capacity;
    for (uint64_t i = 0; i < b->count; i++) {
        stage->target_starts[i] = b->block[i].targets;
        stage->context_starts[i] = b->block[i].contexts;
        stage->positives[i] = b->block[i].positives;
    }
    stage->target_starts[b->count] = b->targets;
    stage->context_starts[b->count] = b->contexts;
    *view = (struct batch_view){.blocks = b->count,
                                .target_starts = stage->target_starts,
                                .context_starts = stage->context_starts,
                                .positives = stage->positives,
                                .target_ids = b->target,
                                .context_ids = b->context,
                                .weights = stage->weighted ? b->weight : NULL,
                                .pool = stage->pool,
                                .shared = stage->shared};
    return 0;
}
