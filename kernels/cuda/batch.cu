/* batch: makes a batch on the GPU: its examples (batch_examples.cu), then the sorted ids of its targets and of its contexts (batch_index.cu).
 *
 * If the host knows upper bounds of a batch's sizes, it enqueues all kernels for these bounds, without waiting. Otherwise it waits until the GPU has
 * counted the sizes, and enqueues the other kernels for a capacity that is the same for all batches; unused elements contain DRAW_NONE.
 *
 * When a stage makes a second batch with the same bounds, the kernels are captured as a CUDA graph. From then on one launch makes a batch (or all of
 * it after counting): a small step takes less time than the host needs to launch its kernels one by one.
 */
#include "cuda.cuh"

#include <algorithm>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ==== the corpus, as the GPU reads it ====
 *
 * Puts a source's arrays into memory that the GPU can read. The id stream with its sentences and weights, or a graph's arcs, stay in host memory
 * if they would need too much of the GPU's. All other arrays are copied to the GPU: the chances of subsampling, the table from which negatives are
 * drawn, the known rows, a graph's nodes, the rows that words share, and paths in a tree. */

/* Copies a caller's array to the GPU. Sets *seen to the copy, or to NULL if the array is NULL. */
static int copy_to_gpu(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what, const void **seen) {
    struct cuda_source *source = &b->source;
    *seen = NULL;
    if (!from) return 0;
    if (gpu_take(b, &source->owned[which], bytes, what)) return -1;
    source->owned_bytes[which] = bytes;
    *seen = source->owned[which];
    return gpu_fill(source->owned[which], from, bytes);
}

/* Lets the GPU read a caller's array over the link: registers the caller's memory with the driver or, if the driver refuses, makes a pinned copy. */
static int share_with_gpu(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what, const void **seen) {
    struct cuda_source *source = &b->source;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uint64_t)(uintptr_t)from, start = address / page * page;
    uint64_t length = (address + bytes - start + page - 1) / page * page;
    void *device = NULL;
    if (cudaHostRegister((void *)(uintptr_t)start, length, cudaHostRegisterMapped | cudaHostRegisterReadOnly) == cudaSuccess) {
        source->pinned[which] = (void *)(uintptr_t)start;
        source->pinned_bytes[which] = length;
        source->registered[which] = 1;
        b->host_used += length;
        CK(cudaHostGetDevicePointer(&device, source->pinned[which], 0));
        *seen = (const char *)device + (address - start);
        return 0;
    }
    cudaGetLastError();
    char *host, *mapped;
    if (pinned_take(b, &host, &mapped, bytes, what)) return -1;
    memcpy(host, from, bytes);
    source->pinned[which] = host;
    source->pinned_bytes[which] = bytes;
    *seen = mapped;
    return 0;
}

/* Copies an array of the id stream or graph to the GPU, or, with stream_on_host, lets the GPU read it over the link. */
static int place_stream(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what, const void **seen) {
    if (!b->source.host.stream_on_host) return copy_to_gpu(b, which, from, bytes, what, seen);
    return share_with_gpu(b, which, from, bytes, what, seen);
}

static int place_corpus(struct backend *b, const struct example_source *from, struct example_source *view) {
    return place_stream(b, SOURCE_IDS, from->ids, from->tokens * sizeof *from->ids, "the id stream", (const void **)&view->ids) ||
                   (from->starts && place_stream(b, SOURCE_STARTS, from->starts, (from->sentences + 1) * sizeof *from->starts,
                                                 "the sentences", (const void **)&view->starts)) ||
                   (from->weights && place_stream(b, SOURCE_ITEM_WEIGHTS, from->weights, from->tokens * sizeof *from->weights,
                                                  "the weights of pairs", (const void **)&view->weights))
               ? -1
               : 0;
}

static int place_graph(struct backend *b, const struct walks *from, struct walks *view) {
    if (copy_to_gpu(b, SOURCE_NODES, from->starts, (from->nodes + 1) * sizeof *from->starts, "a graph's nodes", (const void **)&view->starts) ||
        place_stream(b, SOURCE_NEIGHBOURS, from->neighbours, from->arcs * sizeof *from->neighbours, "a graph's arcs",
                     (const void **)&view->neighbours))
        return -1;
    if (copy_to_gpu(b, SOURCE_BEGINS, from->begins, from->begins ? from->begun * sizeof *from->begins : 0, "the nodes where walks begin",
                    (const void **)&view->begins))
        return -1;
    if (from->labels)
        return place_stream(b, SOURCE_LABELS, from->labels, from->arcs * sizeof *from->labels, "the relations of triples",
                            (const void **)&view->labels);
    return from->alias ? place_stream(b, SOURCE_WEIGHTS, from->alias, from->arcs * sizeof *from->alias, "a graph's weights",
                                      (const void **)&view->alias)
                       : 0;
}

static int place_subwords(struct backend *b, const struct example_subwords *from, struct example_subwords *view) {
    uint64_t starts = from->starts ? (from->words + 1) * sizeof *from->starts : 0;
    return copy_to_gpu(b, SOURCE_WORD_STARTS, from->starts, starts, "the rows of words", (const void **)&view->starts) ||
                   copy_to_gpu(b, SOURCE_WORD_ROWS, from->rows, from->listed * sizeof *from->rows, "the rows of words", (const void **)&view->rows)
               ? -1
               : 0;
}

static int place_paths(struct backend *b, const struct example_paths *from, struct example_paths *view) {
    uint64_t starts = from->starts ? (2 * from->words + 1) * sizeof *from->starts : 0;
    return copy_to_gpu(b, SOURCE_PATH_STARTS, from->starts, starts, "the tree of words", (const void **)&view->starts) ||
                   copy_to_gpu(b, SOURCE_PATH_NODES, from->nodes, from->listed * sizeof *from->nodes, "the tree of words",
                               (const void **)&view->nodes)
               ? -1
               : 0;
}

void cuda_source_drop(struct backend *b) {
    struct cuda_source *source = &b->source;
    for (int i = 0; i < SOURCE_ARRAYS; i++) gpu_give(b, source->owned[i], source->owned_bytes[i]);
    for (int i = 0; i < SOURCE_STREAM_ARRAYS; i++) {
        if (source->registered[i]) {
            cudaHostUnregister(source->pinned[i]);
            b->host_used -= source->pinned_bytes[i];
        } else
            pinned_give(b, (char *)source->pinned[i], source->pinned_bytes[i]);
    }
    memset(source, 0, sizeof *source);
}

static uint64_t longest_sentence(const struct example_source *from) {
    uint64_t longest = from->longest;
    for (uint64_t i = 0; from->starts && i < from->sentences && !from->longest; i++) {
        uint64_t length = from->starts[i + 1] - from->starts[i];
        if (length > longest) longest = length;
    }
    return longest;
}

int cuda_source_set(struct backend *b, const struct example_source *from) {
    struct cuda_source *source = &b->source;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b)) return -1;
    cuda_source_drop(b);
    b->layout++; /* captured graphs contain addresses of the freed arrays, and become invalid */
    b->capacity = cuda_sizes(&from->capacity);
    if (cuda_use_builders(b, from)) return -1;
    source->host = source->view = *from;
    source->host.longest = longest_sentence(from);
    if (from->walks.length ? place_graph(b, &from->walks, &source->view.walks) : place_corpus(b, from, &source->view)) return -1;
    if (place_subwords(b, &from->subwords, &source->view.subwords) || place_paths(b, &from->paths, &source->view.paths)) return -1;
    if (copy_to_gpu(b, SOURCE_KEEP, from->keep, from->rows * sizeof *from->keep, "subsampling", (const void **)&source->view.keep) ||
        copy_to_gpu(b, SOURCE_ALIAS, from->alias, from->rows * sizeof *from->alias, "the negatives' table", (const void **)&source->view.alias) ||
        copy_to_gpu(b, SOURCE_KNOWN, from->known, known_bytes(from->rows), "known rows", (const void **)&source->view.known))
        return -1;
    source->ready = 1;
    return 0;
}

/* ---- capacity ---- */

static int grow_side(struct backend *b, struct stage *stage, int side, uint64_t count) {
    const char *what = "a batch's rows";
    if (row_set_grow(b, &stage->side[side], count, what)) return -1;
    return gpu_grow(b, &stage->block_of[side], block_of_bytes(count), what);
}

static int grow_stage(struct backend *b, struct stage *stage, const struct batch_sizes *sizes) {
    const char *what = "a batch's blocks";
    struct batch_bytes bytes = batch_bytes(sizes->blocks, sizes->targets, sizes->terms);
    if (gpu_grow(b, &stage->weights, weight_bytes(sizes->contexts, stage->weighted), "a batch's weights")) return -1;
    return gpu_grow(b, &stage->target_starts, bytes.target_starts, what) || gpu_grow(b, &stage->context_starts, bytes.context_starts, what) ||
                   gpu_grow(b, &stage->term_starts, bytes.term_starts, what) || gpu_grow(b, &stage->positives, bytes.positives, what) ||
                   gpu_grow(b, &stage->block_slot, bytes.block_slot, what) || gpu_grow(b, &stage->block_example, bytes.block_example, what) ||
                   gpu_grow(b, &stage->coefficients, bytes.coefficients, "a batch's coefficients") ||
                   gpu_grow(b, &stage->losses, bytes.losses, "a batch's losses") || grow_side(b, stage, SIDE_TARGET, sizes->targets) ||
                   grow_side(b, stage, SIDE_CONTEXT, sizes->contexts)
               ? -1
               : 0;
}

/* ---- make ---- */

static int reserve(struct backend *b, struct stage *stage, const struct batch_sizes *capacity, uint64_t rows) {
    stage->capacity = *capacity;
    return grow_stage(b, stage, capacity) || cuda_index_reserve(b, stage->builder, capacity, rows) ? -1 : 0;
}

/* Writes the stage's request. The stage is free, so no kernel still reads the request of its last batch. */
static void write_request(struct backend *b, struct stage *stage, const struct batch_request *request) {
    struct example_request *to = stage->request_host;
    to->source = b->source.view;
    if (to->source.walks.length) to->source = cuda_walks_source(b, &stage->builder->scratch.walks, request->first, request->count);
    to->first = request->first;
    to->count = request->count;
    to->epoch = request->epoch;
    to->held_out = request->held_out;
    if (to->source.shuffle) to->order = example_order(&to->source, request->epoch);
}

/* Enqueues making a batch. `counted`: 1: the kernels that count its sizes have run, and the host knows the sizes. */
static int enqueue_making(struct stage *stage, int counted) {
    if (!counted && cuda_examples_count(stage, 1)) return -1;
    return cuda_examples_fill(stage) || cuda_index_sides(stage, stage->request_host->source.rows) ? -1 : 0;
}

static struct graph_key key_of(const struct backend *b, const struct stage *stage) {
    return {b->layout, stage->request_host->count};
}
static int same_key(const struct graph_key *a, const struct graph_key *b) {
    return a->layout == b->layout && a->count == b->count;
}
static int is_captured(const struct backend *b, const struct stage *stage) {
    const struct making *making = &stage->making[stage->copy];
    struct graph_key key = key_of(b, stage);
    return making->graph && same_key(&key, &making->key);
}

static int capture_making(struct stage *stage, const struct graph_key *key, int counted) {
    struct making *making = &stage->making[stage->copy];
    cudaStream_t stream = stage->builder->stream;
    cudaGraph_t graph = NULL;
    if (making->graph) cudaGraphExecDestroy(making->graph);
    making->graph = NULL;
    CK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    int failed = enqueue_making(stage, counted);
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (!failed && error == cudaSuccess) error = cudaGraphInstantiateWithFlags(&making->graph, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (failed) return -1;
    if (error != cudaSuccess) return cuda_failed(error, "capturing a batch");
    making->key = *key;
    return 0;
}

/* Makes a batch of the sizes stage->sizes, by a captured graph if one was captured for these sizes. */
static int make_alike(struct backend *b, struct stage *stage, int counted) {
    struct making *making = &stage->making[stage->copy];
    struct graph_key key = key_of(b, stage), last = making->last;
    making->last = key; /* the epoch's last, smaller batch does not replace the graph */
    if (!is_captured(b, stage)) {
        if (!same_key(&key, &last)) return enqueue_making(stage, counted);
        if (capture_making(stage, &key, counted)) return -1;
    }
    CK(cudaGraphLaunch(making->graph, stage->builder->stream));
    return 0;
}

static int reserve_alike(struct backend *b, struct stage *stage, const struct batch_sizes *capacity) {
    stage->capacity = stage->sizes = *capacity;
    if (is_captured(b, stage)) return 0;
    return cuda_examples_reserve(b, stage->builder, stage->request_host->count) || reserve(b, stage, capacity, stage->request_host->source.rows) ? -1
                                                                                                                                                 : 0;
}

/* Returns a capacity for at least `count` elements: an eighth more than the first batch needs, later a thirty-second more. */
static uint32_t capacity_for(uint32_t capacity, uint32_t count) {
    if (count <= capacity) return capacity;
    return count < UINT32_MAX / 4 ? count + count / (capacity ? 32 : 8) + 1 : count;
}

static int fits(const struct batch_sizes *sizes, const struct batch_sizes *capacity) {
    return sizes->blocks <= capacity->blocks && sizes->targets <= capacity->targets &&
           sizes->contexts <= capacity->contexts && sizes->terms <= capacity->terms;
}

/* Enlarges the capacity of all stages together, so that each of them can use each builder's scratch. */
static void widen_capacity(struct backend *b, const struct batch_sizes *sizes) {
    if (fits(sizes, &b->capacity)) return;
    b->capacity = {capacity_for(b->capacity.blocks, sizes->blocks), capacity_for(b->capacity.targets, sizes->targets),
                   capacity_for(b->capacity.contexts, sizes->contexts), capacity_for(b->capacity.terms, sizes->terms)};
    b->layout++; /* graphs that were captured for the old capacity are no longer valid */
}

static int count_batch(struct backend *b, struct stage *stage, int padded, struct batch_sizes *sizes) {
    return cuda_examples_count(stage, padded) || cuda_examples_counted(b, stage, sizes) ? -1 : 0;
}

/* Makes a batch whose sizes the GPU must count first. Its kernels are enqueued for the capacity that all batches share; for the first batches, and
 * for a batch larger than the capacity, they are enqueued for the batch's own sizes. */
static int make_counted(struct backend *b, struct stage *stage) {
    struct batch_sizes sizes;
    int padded = b->capacity.blocks > 0;
    if (padded ? reserve_alike(b, stage, &b->capacity) : cuda_examples_reserve(b, stage->builder, stage->request_host->count)) return -1;
    if (count_batch(b, stage, padded, &sizes)) return -1;
    if (padded && fits(&sizes, &b->capacity)) {
        if (make_alike(b, stage, 1)) return -1;
        stage->sizes = sizes;
        return 0;
    }
    widen_capacity(b, &sizes);
    INVARIANT(fits(&sizes, &b->capacity));
    stage->sizes = sizes;
    return reserve(b, stage, &b->capacity, stage->request_host->source.rows) || enqueue_making(stage, 1) ? -1 : 0;
}

/* Makes a batch of held-out examples. There are few, of different sizes, so its kernels are enqueued for its own size. If examples have upper
 * bounds, arrays grow no further than these. */
static int make_held_out(struct backend *b, struct stage *stage) {
    const struct example_request *request = stage->request_host;
    struct example_sizes most;
    if (cuda_examples_reserve(b, stage->builder, request->count) || count_batch(b, stage, 0, &stage->sizes)) return -1;
    widen_capacity(b, &stage->sizes);
    struct batch_sizes capacity = b->capacity;
    if (example_bound(&request->source, request->count, &most)) {
        struct batch_sizes bound = cuda_sizes(&most);
        capacity = {std::min(capacity.blocks, bound.blocks), std::min(capacity.targets, bound.targets),
                    std::min(capacity.contexts, bound.contexts), std::min(capacity.terms, bound.terms)};
    }
    return reserve(b, stage, &capacity, request->source.rows) || enqueue_making(stage, 1) ? -1 : 0;
}

static int make_nothing(struct backend *b, struct stage *stage) {
    memset(&stage->sizes, 0, sizeof stage->sizes);
    stage->capacity = stage->sizes;
    CK(cudaMemsetAsync(stage->counts, 0, sizeof *stage->counts, stage->builder->stream));
    return grow_stage(b, stage, &stage->capacity);
}

/* Sets the stage's pool of negatives. stage->one_target and stage->shared must be set before. */
static void use_pool(const struct backend *b, struct stage *stage, const struct example_pool *pool) {
    stage->pool = *pool;
    stage->one_vector = !stage->shared.count && (stage->one_target || pool->on);
    stage->early_singles = stage->one_vector && !b->by_row;
}

/* Checks that 31 bits are enough to number the batch's examples and, if words share rows, its target rows. Without shared rows a batch has no more
 * target rows than scores, which are checked when they are counted. */
static int check_count(const struct example_source *s, uint64_t count) {
    const uint64_t most = ((uint64_t)1 << 31) - 1;
    if (count > most) return fail("a batch of %llu examples is more than 2^31; lower train.batch", (unsigned long long)count);
    if (s->subwords.starts && count > most / example_most(s).targets)
        return fail("a batch of %llu examples may have more than 2^31 target rows; lower train.batch", (unsigned long long)count);
    return 0;
}

int cuda_make_batch(struct backend *b, unsigned number, const struct batch_request *request) {
    const struct example_source *s = &b->source.view;
    struct stage *stage = NULL;
    struct example_sizes most;
    struct batch_sizes bound;
    if (!b->source.ready) return fail("a batch was asked for before its source was given");
    if (check_count(s, request->count) || cuda_stage_begin(b, number, &stage)) return -1;
    if (s->walks.length && cuda_walks_grow(b, &stage->builder->scratch.walks, request->count)) return -1;
    write_request(b, stage, request);
    stage->one_target = example_one_target(s);
    stage->shared = {request->count ? example_batch_negatives(s) : 0, s->exclude, request->count ? example_batch_relations(s) : 0};
    use_pool(b, stage, &s->pool);
    stage->weighted = s->weights != NULL;
    stage->words = s->mode == EXAMPLE_WINDOW && !s->walks.length ? request->count : 0; /* walks count theirs on the GPU */
    int failed = !request->count                           ? make_nothing(b, stage)
                 : request->held_out                       ? make_held_out(b, stage)
                 : example_bound(s, request->count, &most) ? (bound = cuda_sizes(&most), reserve_alike(b, stage, &bound) || make_alike(b, stage, 0))
                                                           : make_counted(b, stage);
    return failed ? -1 : cuda_stage_built(stage);
}

/* ---- set and view ---- */

/* Writes a caller's batch as arrays of 32-bit numbers, and adds the block of each occurrence and the number of each block's first term. */
static int pack_view(const struct batch_view *view, struct batch_counts *counts, uint32_t **packed, struct stage *stage) {
    uint64_t blocks = view->blocks, targets = view->target_starts[blocks], contexts = view->context_starts[blocks];
    uint32_t *starts[3], *target_block, *context_block;
    uint64_t terms = 0;
    *packed = (uint32_t *)mem_alloc(3 * (blocks + 1) + targets + contexts, 4, "a batch");
    if (!*packed) return -1;
    for (int i = 0; i < 3; i++) starts[i] = *packed + (uint64_t)i * (blocks + 1);
    target_block = starts[2] + blocks + 1;
    context_block = target_block + targets;
    stage->one_target = 1;
    memset(counts, 0, sizeof *counts);
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t t = view->target_starts[i + 1] - view->target_starts[i], c = view->context_starts[i + 1] - view->context_starts[i];
        starts[0][i] = (uint32_t)view->target_starts[i];
        starts[1][i] = (uint32_t)view->context_starts[i];
        starts[2][i] = (uint32_t)terms;
        for (uint64_t j = 0; j < t; j++) target_block[view->target_starts[i] + j] = (uint32_t)i;
        for (uint64_t j = 0; j < c; j++) context_block[view->context_starts[i] + j] = (uint32_t)i;
        uint64_t vectors = example_vectors(&view->pool, (uint32_t)t);
        int adds = view->pool.on && !view->pool.product; /* a block has one score for each context, even if it has no target */
        terms += adds ? c : vectors * (view->shared.count ? view->positives[i] : c);
        if (adds && !t) counts->empty_terms += c;
        counts->pairs += vectors * view->positives[i];
        if (t != 1) stage->one_target = 0;
    }
    starts[0][blocks] = (uint32_t)targets;
    starts[1][blocks] = (uint32_t)contexts;
    starts[2][blocks] = (uint32_t)terms;
    counts->blocks = (uint32_t)blocks;
    counts->targets = (uint32_t)targets;
    counts->contexts = (uint32_t)contexts;
    counts->terms = (uint32_t)terms;
    return cuda_check_sizes(contexts, terms);
}

static uint64_t rows_of(const struct batch_view *view) {
    uint32_t most = 0;
    for (uint64_t i = 0; i < view->target_starts[view->blocks]; i++)
        if (view->target_ids[i] > most) most = view->target_ids[i];
    for (uint64_t i = 0; i < view->context_starts[view->blocks]; i++)
        if (view->context_ids[i] > most) most = view->context_ids[i];
    return (uint64_t)most + 1;
}

static int upload(const struct stage *stage, const struct gpu_array *to, const void *from, uint64_t count) {
    if (count) CK(cudaMemcpyAsync(to->data, from, count * 4, cudaMemcpyHostToDevice, stage->builder->stream));
    return 0;
}

static int upload_view(struct stage *stage, const struct batch_view *view, const uint32_t *packed, const struct batch_counts *counts) {
    uint64_t blocks = view->blocks, targets = stage->sizes.targets, contexts = stage->sizes.contexts;
    const uint32_t *target_block = packed + 3 * (blocks + 1);
    if (upload(stage, &stage->target_starts, packed, blocks + 1) || upload(stage, &stage->context_starts, packed + blocks + 1, blocks + 1) ||
        upload(stage, &stage->term_starts, packed + 2 * (blocks + 1), blocks + 1) || upload(stage, &stage->positives, view->positives, blocks) ||
        upload(stage, &stage->side[SIDE_TARGET].ids, view->target_ids, targets) ||
        upload(stage, &stage->block_of[SIDE_TARGET], target_block, targets) ||
        upload(stage, &stage->side[SIDE_CONTEXT].ids, view->context_ids, contexts) ||
        upload(stage, &stage->block_of[SIDE_CONTEXT], target_block + targets, contexts) ||
        (view->weights && upload(stage, &stage->weights, view->weights, contexts)))
        return -1;
    CK(cudaMemcpyAsync(stage->counts, counts, sizeof *counts, cudaMemcpyHostToDevice, stage->builder->stream));
    CK(cudaStreamSynchronize(stage->builder->stream)); /* now the caller may free its arrays */
    return 0;
}

int cuda_set_batch(struct backend *b, unsigned number, const struct batch_view *view) {
    struct stage *stage = NULL;
    struct batch_counts counts;
    uint32_t *packed = NULL;
    uint64_t rows = rows_of(view);
    int result = -1;
    if (view->blocks >= (uint64_t)1 << 31 || view->target_starts[view->blocks] >= (uint64_t)1 << 31)
        return fail("a batch of %llu blocks is more than 2^31", (unsigned long long)view->blocks);
    if (shared_negatives_check(view)) return -1;
    if (cuda_stage_begin(b, number, &stage) || pack_view(view, &counts, &packed, stage)) goto out;
    stage->shared = view->shared;
    use_pool(b, stage, &view->pool);
    stage->weighted = view->weights != NULL;
    stage->sizes = {counts.blocks, counts.targets, counts.contexts, counts.terms};
    stage->words = 0;
    if (reserve(b, stage, &stage->sizes, rows) || upload_view(stage, view, packed, &counts) || cuda_index_sides(stage, rows)) goto out;
    result = cuda_stage_built(stage);
out:
    free(packed);
    return result;
}

static int download(const struct stage *stage, void *to, const struct gpu_array *from, uint64_t bytes) {
    if (bytes) CK(cudaMemcpyAsync(to, from->data, bytes, cudaMemcpyDeviceToHost, stage->builder->stream));
    return 0;
}

/* Host copies of a batch's arrays, owned by the stage. starts: [2 x (blocks + 1)] for each block the index of its first target, then for each
 * block of its first context. */
struct view_arrays {
    uint64_t *target_starts, *context_starts;
    uint32_t *positives, *target_ids, *context_ids, *starts;
    float *weights;
};

static void *view_array(struct stage *stage, int which, uint64_t bytes) {
    free(stage->view_memory[which]);
    stage->view_memory[which] = mem_zalloc(bytes, 1, "a view of a batch");
    return stage->view_memory[which];
}

static int make_view_arrays(struct stage *stage, const struct batch_counts *counts, struct view_arrays *a) {
    uint64_t starts = (uint64_t)counts->blocks + 1;
    a->target_starts = (uint64_t *)view_array(stage, 0, starts * sizeof *a->target_starts);
    a->context_starts = (uint64_t *)view_array(stage, 1, starts * sizeof *a->context_starts);
    a->positives = (uint32_t *)view_array(stage, 2, starts * sizeof *a->positives);
    a->target_ids = (uint32_t *)view_array(stage, 3, ((uint64_t)counts->targets + 1) * sizeof *a->target_ids);
    a->context_ids = (uint32_t *)view_array(stage, 4, ((uint64_t)counts->contexts + 1) * sizeof *a->context_ids);
    a->starts = (uint32_t *)view_array(stage, 5, 2 * starts * sizeof *a->starts);
    a->weights = (float *)view_array(stage, 6, stage->weighted ? ((uint64_t)counts->contexts + 1) * sizeof *a->weights : 1);
    for (void *memory : stage->view_memory)
        if (!memory) return -1;
    return 0;
}

static int download_view(const struct stage *stage, const struct batch_counts *counts, const struct view_arrays *a) {
    uint64_t blocks = counts->blocks;
    if (!blocks) return 0;
    if (download(stage, a->starts, &stage->target_starts, (blocks + 1) * 4) ||
        download(stage, a->starts + blocks + 1, &stage->context_starts, (blocks + 1) * 4) ||
        download(stage, a->positives, &stage->positives, blocks * 4) ||
        download(stage, a->target_ids, &stage->side[SIDE_TARGET].ids, counts->targets * (uint64_t)4) ||
        download(stage, a->context_ids, &stage->side[SIDE_CONTEXT].ids, counts->contexts * (uint64_t)4) ||
        download(stage, a->weights, &stage->weights, weight_bytes(counts->contexts, stage->weighted)))
        return -1;
    CK(cudaStreamSynchronize(stage->builder->stream));
    return 0;
}

/* Converts starts to 64 bits, and removes slots without a row from the contexts and from the arrays that belong to them. */
static void close_gaps(const struct view_arrays *a, uint64_t blocks, int weighted) {
    const uint32_t *context_starts = a->starts + blocks + 1;
    uint64_t kept = 0;
    for (uint64_t i = 0; i <= blocks; i++) a->target_starts[i] = a->starts[i];
    for (uint64_t i = 0; i < blocks; i++) {
        a->context_starts[i] = kept;
        for (uint32_t j = context_starts[i]; j < context_starts[i + 1]; j++) {
            if (a->context_ids[j] == DRAW_NONE) continue;
            if (weighted) a->weights[kept] = a->weights[j];
            a->context_ids[kept++] = a->context_ids[j];
        }
    }
    a->context_starts[blocks] = kept;
}

int cuda_batch_view(struct backend *b, unsigned number, struct batch_view *view) {
    struct stage *stage = &b->stages[number];
    struct batch_counts counts;
    struct view_arrays a;
    if (number >= b->depth || stage->state == STAGE_EMPTY) return fail("stage %u has no batch to look at", number);
    CK(cudaMemcpyAsync(&counts, stage->counts, sizeof counts, cudaMemcpyDeviceToHost, stage->builder->stream));
    CK(cudaStreamSynchronize(stage->builder->stream));
    if (make_view_arrays(stage, &counts, &a) || download_view(stage, &counts, &a)) return -1;
    close_gaps(&a, counts.blocks, stage->weighted);
    view->blocks = counts.blocks;
    view->target_starts = a.target_starts;
    view->context_starts = a.context_starts;
    view->positives = a.positives;
    view->target_ids = a.target_ids;
    view->context_ids = a.context_ids;
    view->weights = stage->weighted ? a.weights : NULL;
    view->pool = stage->pool;
    view->shared = stage->shared;
    if (!counts.blocks) view->shared = {0, 0, 0};
    if (view->shared.count) view->shared.count = (uint32_t)a.context_starts[1];
    return 0;
}
