/* estimate: lists every array of the backend in one place. With these lists it computes the memory of a run in advance, allocates the arrays,
 * counts their bytes, and frees them. */
#include "cpu.h"

#include "base/memory.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"

#include <stdlib.h>

enum {
    ARRAYS = 13, /* most arrays of a list */
    /* For an array of unknown size, mem_grow() allocates at least this many items, and this multiple of those needed. */
    GROWN_LEAST = 64,
    GROWN_TIMES = 2
};

struct array {
    void *block;    /* address of the array's pointer */
    uint64_t *capacity; /* number of items for which memory is allocated */
    uint64_t size;  /* bytes of an item */
    uint64_t need;  /* number of items that will be needed; 0: unknown */
};
struct list {
    struct array array[ARRAYS];
    unsigned count;
};

static void put(struct list *list, void *block, uint64_t *capacity, uint64_t size, uint64_t need) {
    list->array[list->count++] = (struct array){block, capacity, size, need};
}

/* ---- the arrays ---- */

static void put_blocks(struct list *list, struct cpu_blocks *b, uint64_t blocks, uint64_t targets, uint64_t contexts, int weighted) {
    put(list, &b->block, &b->block_capacity, sizeof *b->block, blocks);
    put(list, &b->target, &b->target_capacity, sizeof *b->target, targets);
    put(list, &b->context, &b->context_capacity, sizeof *b->context, contexts);
    put(list, &b->weight, &b->weight_capacity, sizeof *b->weight, weighted ? contexts : 0);
}

static struct list stage_arrays(struct cpu_stage *s, const struct cpu_sizes *sizes) {
    struct list list = {.count = 0};
    const struct example_sizes *batch = &sizes->batch;
    put_blocks(&list, &s->all, batch->blocks, batch->targets, batch->contexts, sizes->weighted);
    put(&list, &s->logit_starts, &s->logit_start_capacity, sizeof *s->logit_starts, batch->blocks);
    put(&list, &s->target_block, &s->target_block_capacity, sizeof *s->target_block, batch->targets);
    put(&list, &s->context_block, &s->context_block_capacity, sizeof *s->context_block, batch->contexts);
    put(&list, &s->target_starts, &s->view_capacity, sizeof *s->target_starts, 0); /* 0, since training never asks for batch_view() */
    put(&list, &s->context_starts, &s->view_capacity, sizeof *s->context_starts, 0);
    put(&list, &s->positives, &s->view_capacity, sizeof *s->positives, 0);
    return list;
}

static struct list chunk_arrays(struct cpu_chunk *chunk, const struct cpu_sizes *sizes) {
    struct list list = {.count = 0};
    const struct example_sizes *each = &sizes->example;
    uint64_t examples = sizes->alike ? CPU_GRAIN : 0;
    put_blocks(&list, &chunk->blocks, examples * each->blocks, examples * each->targets, examples * each->contexts, sizes->weighted);
    return list;
}

static uint64_t most_candidates(const struct cpu_sizes *sizes) {
    return sizes->relations > sizes->shared ? sizes->relations : sizes->shared;
}

static struct list step_arrays(struct cpu_shared *s, const struct cpu_sizes *sizes, const struct cpu_step_needs *needs) {
    struct list list = {.count = 0};
    const struct example_sizes *batch = &sizes->batch;
    uint64_t targets = needs->loss_only ? 0 : batch->targets, contexts = needs->loss_only ? 0 : batch->contexts;
    uint64_t span = needs->span, lengths = 0;
    if (needs->loss.score == SCORE_COSINE && batch->terms) lengths = batch->targets + batch->contexts;
    put(&list, &s->coefficients, &s->coefficient_capacity, sizeof *s->coefficients, batch->terms + lengths);
    put(&list, &s->pooled, &s->pooled_capacity, sizeof *s->pooled, cpu_adds_targets(&needs->pool) ? batch->blocks * span : 0);
    put(&list, &s->losses, &s->loss_capacity, sizeof *s->losses, batch->blocks);
    put(&list, &s->target_gradient, &s->gradient_capacity, sizeof *s->target_gradient, targets * span);
    put(&list, &s->keys, &s->key_capacity, sizeof *s->keys, targets > contexts ? targets : contexts);
    put(&list, &s->spare, &s->spare_capacity, sizeof *s->spare, targets > contexts ? targets : contexts);
    uint64_t most = targets > contexts ? targets : contexts;
    put(&list, &s->squares, &s->square_capacity, sizeof *s->squares, needs->norms ? 2 * most : 0);
    struct cpu_shared_needs shared = {0};
    uint64_t examples = batch->targets ? (batch->targets - sizes->relations) / example_shared_targets(&needs->pool) : 0;
    if (sizes->shared && examples) shared = cpu_shared_needs(examples, most_candidates(sizes), needs->dim);
    put(&list, &s->shared_scores, &s->shared_score_capacity, sizeof *s->shared_scores, shared.scores);
    put(&list, &s->shared_rows, &s->shared_row_capacity, sizeof *s->shared_rows, shared.rows);
    put(&list, &s->context_gradient, &s->context_gradient_capacity, sizeof *s->context_gradient, sizes->shared ? contexts * span : 0);
    return list;
}

/* learn = 1: exact steps with a loss other than word2vec's. */
static struct list worker_arrays(struct cpu_scratch *s, const struct cpu_sizes *sizes, uint64_t span, int lock_free, int learn, int halves) {
    struct list list = {.count = 0};
    const struct example_sizes *each = &sizes->example;
    uint64_t blocks = each->blocks ? each->blocks : 1; /* each->blocks is 0 while no source is set */
    uint64_t t = each->targets / blocks, c = each->contexts / blocks, scores = each->terms / blocks; /* numbers of one block */
    uint64_t vectors = c ? scores / c : 0; /* number of vectors of a block: 1 if targets are pooled */
    uint64_t examples = lock_free ? sizes->piece : 0;
    uint64_t built = lock_free ? sizes->piece : CPU_GRAIN, kept = sizes->beside ? built + sizes->beside : 0;
    uint64_t walks = sizes->walks.length ? walks_at_most(&sizes->walks, built) : 0;
    put(&list, &s->piece.id, &s->piece.capacity, sizeof *s->piece.id, kept);
    put(&list, &s->piece.at, &s->piece.at_capacity, sizeof *s->piece.at, kept);
    put(&list, &s->piece.walk, &s->piece.walk_capacity, sizeof *s->piece.walk, walks * sizes->walks.length);
    put(&list, &s->piece.start, &s->piece.start_capacity, sizeof *s->piece.start, walks ? walks + 1 : 0);
    put(&list, &s->rows, &s->row_capacity, sizeof *s->rows, t * (lock_free ? 2 : 1) + c);
    put(&list, &s->gradient, &s->gradient_capacity, sizeof *s->gradient, (lock_free ? vectors + 2 : 1) * span);
    put(&list, &s->rule_scratch, &s->rule_scratch_capacity, sizeof *s->rule_scratch, CPU_FIELDS * span);
    put(&list, &s->wide, &s->wide_capacity, sizeof *s->wide, halves ? (t + (lock_free ? 2 : 1) * c) * span + CPU_WIDE_SPARE : 0);
    uint64_t tile = sizes->shared ? cpu_shared_needs(0, most_candidates(sizes), (uint32_t)span).of_worker : 0;
    put(&list, &s->logits, &s->logit_capacity, sizeof *s->logits, lock_free ? scores : tile ? tile : learn ? scores + 2 * c : 0);
    put_blocks(&list, &s->blocks, examples * each->blocks, examples * each->targets, examples * each->contexts, 0);
    return list;
}

/* ---- how many items are enough ---- */

struct cpu_sizes cpu_sizes(const struct example_source *source) {
    struct cpu_sizes sizes = {.example = example_most(source),
                              .shared = example_batch_negatives(source),
                              .relations = example_batch_relations(source),
                              .weighted = source->weights != NULL,
                              .alike = source->mode == EXAMPLE_WINDOW ? !source->subwords.starts
                                                                      : source->positives && !cpu_adds_targets(&source->pool),
                              .chunks = (source->batch + CPU_GRAIN - 1) / CPU_GRAIN,
                              .piece = CPU_PIECE,
                              .beside = source->mode == EXAMPLE_WINDOW ? 2 * (uint64_t)source->window + 1 : 0,
                              .walks = source->walks};
    uint64_t most = sizes.example.contexts > sizes.example.targets ? sizes.example.contexts : sizes.example.targets;
    if (!sizes.alike && most > CPU_PIECE_CONTEXTS / CPU_PIECE) {
        sizes.piece = CPU_PIECE_CONTEXTS / most;
        if (!sizes.piece) sizes.piece = 1;
    }
    if (source->capacity.blocks)
        sizes.batch = source->capacity;
    else if (source->batch && !example_bound(source, source->batch, &sizes.batch))
        sizes.batch = (struct example_sizes){0};
    return sizes;
}

/* ---- making, counting and freeing them ---- */

static int reserve(struct list list) {
    for (unsigned i = 0; i < list.count; i++) {
        const struct array *a = &list.array[i];
        if (mem_reserve(a->block, a->capacity, a->need, a->size, "a batch")) return -1;
    }
    return 0;
}

static uint64_t held(struct list list) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < list.count; i++) bytes += *list.array[i].capacity * list.array[i].size;
    return bytes;
}

static uint64_t needed(struct list list) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < list.count; i++) bytes += list.array[i].need * list.array[i].size;
    return bytes;
}

static void drop(struct list list) {
    for (unsigned i = 0; i < list.count; i++) free(*(void **)list.array[i].block);
}

int cpu_reserve_batch(struct backend *backend, struct cpu_stage *stage) {
    const struct cpu_sizes *sizes = &backend->sizes;
    if (reserve(stage_arrays(stage, sizes))) return -1;
    for (uint64_t i = 0; i < backend->shared.chunk_capacity; i++)
        if (reserve(chunk_arrays(&backend->shared.chunk[i], sizes))) return -1;
    return 0;
}

static int reserve_workers(struct backend *backend, uint64_t span, int lock_free, int learn, int halves) {
    for (unsigned i = 0; i < pool_threads(backend->pool); i++)
        if (reserve(worker_arrays(&backend->scratch[i], &backend->sizes, span, lock_free, learn, halves))) return -1;
    return 0;
}

int cpu_reserve_step(struct backend *backend, const struct cpu_step_needs *needs) {
    if (reserve(step_arrays(&backend->shared, &backend->sizes, needs))) return -1;
    return reserve_workers(backend, needs->span, 0, !loss_is_plain(&needs->loss), needs->halves);
}

int cpu_reserve_hogwild(struct backend *backend, uint64_t span, int halves) {
    return reserve_workers(backend, span, 1, 0, halves);
}

uint64_t cpu_allocated(struct backend *backend) {
    const struct cpu_sizes *sizes = &backend->sizes;
    struct cpu_shared *shared = &backend->shared;
    const struct cpu_step_needs none = {.span = 0};
    uint64_t bytes = sizeof *backend + pool_threads(backend->pool) * sizeof *backend->scratch;
    bytes += held(step_arrays(shared, sizes, &none)) + shared->chunk_capacity * sizeof *shared->chunk;
    bytes += backend->id_capacity * sizeof *backend->ids;
    for (unsigned i = 0; i < BACKEND_STAGES; i++) bytes += held(stage_arrays(&backend->stage[i], sizes));
    for (uint64_t i = 0; i < shared->chunk_capacity; i++) bytes += held(chunk_arrays(&shared->chunk[i], sizes));
    for (unsigned i = 0; i < pool_threads(backend->pool); i++) bytes += held(worker_arrays(&backend->scratch[i], sizes, 0, 0, 0, 0));
    return bytes;
}

void cpu_release_arrays(struct backend *backend) {
    const struct cpu_sizes *sizes = &backend->sizes;
    struct cpu_shared *shared = &backend->shared;
    const struct cpu_step_needs none = {.span = 0};
    for (unsigned i = 0; i < BACKEND_STAGES; i++) drop(stage_arrays(&backend->stage[i], sizes));
    for (uint64_t i = 0; i < shared->chunk_capacity; i++) drop(chunk_arrays(&shared->chunk[i], sizes));
    for (unsigned i = 0; backend->scratch && i < pool_threads(backend->pool); i++) drop(worker_arrays(&backend->scratch[i], sizes, 0, 0, 0, 0));
    drop(step_arrays(shared, sizes, &none));
    mem_free(shared->chunk, backend->scratch);
}

/* ---- the memory that a run takes ---- */

static void add_table(const struct table_spec *spec, struct memory_bytes *to) {
    struct table_shape shape = table_shape(spec, 0);
    for (unsigned i = 0; i < shape.stores; i++)
        *(shape.store[i].place == PLACE_FILE ? &to->file : &to->host) += shape.store[i].on_host * shape.store[i].stride;
}

/* Returns the bytes of a batch's chunks. If examples differ in size, their arrays grow while they are filled, to at most twice what is needed. */
static uint64_t chunk_bytes(const struct cpu_sizes *sizes) {
    struct cpu_chunk chunk = {.first_block = 0};
    struct list list = {.count = 0};
    uint64_t each = sizeof chunk + needed(chunk_arrays(&chunk, sizes));
    if (sizes->alike) return sizes->chunks * each;
    put_blocks(&list, &chunk.blocks, sizes->chunks * GROWN_LEAST + GROWN_TIMES * sizes->batch.blocks,
               sizes->chunks * GROWN_LEAST + GROWN_TIMES * sizes->batch.targets,
               sizes->chunks * GROWN_LEAST + GROWN_TIMES * sizes->batch.contexts, sizes->weighted);
    return sizes->chunks * each + needed(list);
}

void cpu_estimate(const struct estimate_request *request, struct estimate *estimate) {
    const struct example_source *source = request->source;
    struct cpu_sizes sizes = cpu_sizes(source);
    struct cpu_stage stage = {.words = 0};
    struct cpu_shared shared = {.chunk_capacity = 0};
    struct cpu_scratch scratch = {.gradient_capacity = 0};
    const struct cpu_step_needs needs = {.span = request->target.layout.span,
                                         .dim = request->target.layout.dim,
                                         .loss = request->loss,
                                         .pool = source->pool,
                                         .loss_only = request->hogwild,
                                         .norms = request->ranks > 1 && request->rule->clip > 0,
                                         .halves = request->target.layout.field[RECORD_WEIGHTS].type == VALUE_BFLOAT16};
    uint64_t span = request->hogwild ? cpu_lock_free_span(&request->target.layout) : needs.span, work = 0;
    *estimate = (struct estimate){.fixed.host = sizeof(struct backend) + request->threads * (sizeof scratch + POOL_THREAD_BYTES)};
    if (request->ranks > 1) estimate->fixed.host += RANKS_BYTES;
    add_table(&request->target, &estimate->tables);
    add_table(&request->context, &estimate->tables);
    if (!request->hogwild || source->held_out)
        work = (request->hogwild ? 1 : request->depth) * needed(stage_arrays(&stage, &sizes)) + chunk_bytes(&sizes) +
               needed(step_arrays(&shared, &sizes, &needs));
    work += request->threads * needed(worker_arrays(&scratch, &sizes, span, request->hogwild, !loss_is_plain(&needs.loss), needs.halves));
    estimate->work.host = work;
}
