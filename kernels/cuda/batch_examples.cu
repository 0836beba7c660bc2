/* batch_examples: makes a batch's blocks on the GPU, with exactly the CPU's ids: kernels/examples.h defines what is drawn, this
 * file divides the work among threads.
 *
 *   take       copies the request from the host, and zeroes the counts
 *   words      for windows, a position a thread: whether it is kept, and its sentence
 *   count      an example a thread: how many blocks, targets, contexts and terms it has; then sums, whose totals go to counts
 *   fill       an example a thread: writes its blocks, targets and positives, at the places that the sums give
 *   worded     the work of fill, for windows whose words share rows
 *   split      a warp a block: targets and positives of lists that are split into positives and a pool
 *
 * batch_negatives.cu then draws the negatives. The kernels of both read the request from memory (struct example_request), so that
 * a captured graph of these kernels makes any batch of its shape.
 */
#include "batch_words.cuh"

extern "C" {
#include "kernels/triples.h"
}

#include <algorithm>
#include <cub/device/device_scan.cuh>

#include <string.h>

enum { THREADS = 256, PADDED_A_THREAD = 8 };

struct need_sum {
    __host__ __device__ struct need operator()(const struct need &a, const struct need &b) const {
        struct need sum;
        sum.blocks = a.blocks + b.blocks;
        sum.targets = a.targets + b.targets;
        sum.contexts = a.contexts + b.contexts;
        sum.terms = a.terms + b.terms;
        return sum;
    }
};

/* ---- examples ---- */

static __device__ uint64_t example_at(const struct example_request &b, uint64_t i) {
    return b.source.shuffle ? shuffle_at(&b.order, b.first + i) : b.first + i;
}

static __device__ bool is_wanted(const struct example_request &b, uint64_t example) {
    return example_held_out(&b.source, example) == b.held_out;
}

static __device__ struct example_row row_at(const struct example_source &s, uint64_t example, uint32_t epoch) {
    return example_row(&s, example_is_position(&s) ? example_sentence_of(&s, example) : example, example, epoch);
}

/* ---- count ---- */

/* Returns the sizes of the block of a window if words share rows. `around`: number of words in the window around the middle. */
static __device__ struct need count_shared(const struct example_source &s, const struct middle &middle, uint32_t own,
                                           uint32_t width, uint32_t around) {
    struct need need = {0, 0, 0, 0};
    if (!around) return need;
    need.blocks = 1;
    need.targets = s.subwords.by_window ? rows_beside(s, middle, -1, width) + rows_beside(s, middle, 1, width)
                                        : (uint32_t)example_rows_of(&s, own);
    uint32_t predicting = example_window_positives(&s, around);
    if (s.paths.starts && s.subwords.by_window) predicting = example_contexts_of(&s, own);
    else if (s.paths.starts) predicting = contexts_beside(s, middle, -1, width) + contexts_beside(s, middle, 1, width);
    need.contexts = need.terms = predicting + example_window_negatives(&s, around);
    return need;
}

static __device__ struct need count_window(const struct example_request *request, const struct kept_word *words,
                                           uint64_t position) {
    const struct example_source &s = request->source;
    struct need need = {0, 0, 0, 0};
    struct looked_up beside;
    struct middle middle(request, words, position, &beside);
    uint32_t own = middle.word();
    if (own == DRAW_NONE) return need;
    uint32_t width = strip_window(&s, position, request->epoch);
    need.targets = middle.kept(-1, width) + middle.kept(1, width) + s.documents;
    if (s.subwords.starts) return count_shared(s, middle, own, width, need.targets);
    need.blocks = s.per_pair ? need.targets : need.targets > 0;
    uint32_t contexts = example_contexts_of(&s, own) + s.negatives;
    need.contexts = (uint64_t)need.blocks * contexts;
    need.terms = (uint64_t)(s.pool.on ? need.blocks : need.targets) * contexts;
    return need;
}

static __device__ struct need count_row(const struct example_request &b, uint64_t example, uint32_t *too_long) {
    struct need need = {0, 0, 0, 0};
    const struct example_pool &pool = b.source.pool;
    if (b.source.mode == EXAMPLE_TRIPLE) return {1, example_shared_targets(&pool), example_shared_contexts(&pool), 1};
    if (b.source.known && row_has_bit(b.source.known, b.source.ids[example])) return need;
    struct example_row row = row_at(b.source, example, b.epoch);
    if (!row.wanted) return need;
    if (!example_row_fits(&row)) {
        atomicMax(too_long, (uint32_t)(row.wanted < UINT32_MAX ? row.wanted : UINT32_MAX));
        return need;
    }
    need.blocks = 1;
    need.targets = (uint32_t)row.targets;
    need.contexts = need.terms = row.wanted + row.negatives;
    return need;
}

/* The ids of both sides, which are set to DRAW_NONE before examples write theirs. */
struct padding {
    uint32_t *ids[2];
    uint64_t count[2];
};

/* Copies the request to the GPU and sets the counts to zero. One launch does both, since a small batch would wait for a copy and
 * for a memset. */
static __global__ void take_request(const struct example_request *from, struct example_request *to,
                                    struct batch_counts *counts) {
    static_assert(sizeof *from % 4 == 0 && sizeof *counts % 4 == 0, "they are copied by words");
    for (uint32_t i = threadIdx.x; i < sizeof *from / 4; i += blockDim.x)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    for (uint32_t i = threadIdx.x; i < sizeof *counts / 4; i += blockDim.x) ((uint32_t *)counts)[i] = 0;
}

/* Counts the sizes of each example. words: the result of look_up_words(), used only for windows. */
static __global__ void count_examples(const struct example_request *request, const struct kept_word *words, struct need *needs,
                                      struct batch_counts *counts, struct padding padding) {
    const struct example_request b = *request;
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (uint64_t)gridDim.x * blockDim.x;
    for (int side = 0; side < 2; side++)
        for (uint64_t at = i; at < padding.count[side]; at += threads) padding.ids[side][at] = DRAW_NONE;
    if (i > b.count) return;
    struct need need = {0, 0, 0, 0}; /* zeros for the entry after the last example, too, which gets the totals */
    if (i < b.count) {
        uint64_t example = example_at(b, i);
        if (is_wanted(b, example))
            need = b.source.mode == EXAMPLE_WINDOW ? count_window(request, words, example)
                                                   : count_row(b, example, &counts->too_long);
    }
    needs[i] = need;
}

/* Returns an example's number of pairs: of a target (or the pooled vector) with one positive. If positives are on paths of
 * several words, fill_worded() counts the pairs instead. */
static __device__ uint64_t pairs_of(const struct example_source &s, const struct need &n) {
    if (s.paths.starts && example_predicts_window(&s)) return 0;
    if (s.mode == EXAMPLE_WINDOW && !example_predicts_window(&s)) return s.pool.on ? n.blocks : n.targets;
    if (s.per_batch) return n.targets / example_shared_targets(&s.pool);
    if (s.per_pair) return n.contexts / (1 + s.negatives);
    return n.contexts - (uint64_t)s.negatives * n.blocks;
}

/* Returns the sizes of a batch. end: the sums over its examples, which include the block of shared negatives; a batch without
 * examples has no such block. */
static __device__ struct need sizes_of_batch(const struct example_source &s, const struct need &end) {
    struct need nothing = {0, 0, 0, 0};
    return s.per_batch && !end.targets ? nothing : end;
}

/* Writes the sizes to host memory, if the host waits for them. */
static __global__ void tell_sizes(const struct example_request *request, const struct need *end,
                                  const struct batch_counts *counts, struct counted_sizes *host) {
    host->total = sizes_of_batch(request->source, *end);
    host->too_long = counts->too_long;
    __threadfence_system();
}

/* ---- fill ---- */

/* Writes the path nodes of a word whose code is `code` as contexts, from place `at` on. Returns how many there are. */
static __device__ uint32_t fill_nodes_of(const struct example_source &s, uint32_t *contexts, uint32_t word, uint32_t at, int code) {
    const struct example_path path = example_path(&s, word);
    for (uint32_t i = 0; i < path.count[code]; i++)
        contexts[at + i] = portable_load32_at(s.paths.nodes, path.first[code] + i);
    return path.count[code];
}

/* Writes the contexts of a block that predicts one word: that word, or the nodes of its path. Returns how many of them are
 * positive. */
static __device__ uint32_t fill_word(const struct example_source &s, uint32_t *contexts, uint32_t word) {
    uint32_t positives = 1;
    if (!s.paths.starts) {
        contexts[0] = word;
    } else {
        positives = fill_nodes_of(s, contexts, word, 0, 0);
        fill_nodes_of(s, contexts, word, positives, 1);
    }
    return positives;
}

static __device__ void fill_window(const struct example_request *request, const struct kept_word *words, const struct built &to,
                                   uint64_t position, const struct need &at, uint32_t targets) {
    const struct example_source &s = request->source;
    struct looked_up beside;
    struct middle middle(request, words, position, &beside);
    uint32_t own = middle.word(), width = strip_window(&s, position, request->epoch);
    if (s.documents) to.target_ids[at.targets] = middle.document();
    list_around(middle, width, to.target_ids + at.targets + s.documents);
    uint32_t blocks = s.per_pair ? targets : 1, each = s.per_pair ? 1 : targets;
    uint32_t contexts = example_contexts_of(&s, own) + s.negatives;
    for (uint32_t i = 0; i < targets; i++) to.target_block[at.targets + i] = at.blocks + (s.per_pair ? i : 0);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t block = at.blocks + i;
        to.target_starts[block] = at.targets + i * each;
        to.context_starts[block] = (uint32_t)at.contexts + i * contexts;
        to.term_starts[block] = (uint32_t)at.terms + i * example_vectors(&s.pool, each) * contexts;
        to.positives[block] = fill_word(s, to.context_ids + at.contexts + (uint64_t)i * contexts, own);
        to.block_example[block] = position;
        to.block_slot[block] = i * s.negatives;
    }
}

/* Writes a word's rows as targets, from place `at` on. Returns how many there are. */
static __device__ uint32_t fill_rows_of(const struct example_source &s, const struct built &to, uint32_t word, uint32_t at,
                                        uint32_t block) {
    uint64_t first = portable_load64_at(s.subwords.starts, word);
    uint32_t count = (uint32_t)example_rows_of(&s, word);
    for (uint32_t i = 0; i < count; i++) {
        to.target_ids[at + i] = portable_load32_at(s.subwords.rows, first + i);
        to.target_block[at + i] = block;
    }
    return count;
}

/* Writes the block of shared negatives, without their ids: these are drawn like the negatives of other blocks. */
static __device__ void fill_shared_block(const struct example_request &b, const struct built &to) {
    to.target_starts[0] = to.context_starts[0] = to.term_starts[0] = 0;
    to.positives[0] = to.block_slot[0] = 0;
    to.block_example[0] = b.first;
}

static __device__ void fill_triple(const struct example_source &s, const struct built &to, uint64_t example,
                                   const struct need &at) {
    example_put_triple(&s, example, to.target_ids + at.targets, to.context_ids + at.contexts);
    for (uint32_t i = 0; i < example_shared_targets(&s.pool); i++) to.target_block[at.targets + i] = at.blocks;
    for (uint32_t i = 0; i < example_shared_contexts(&s.pool); i++) to.context_block[at.contexts + i] = at.blocks;
    to.positives[at.blocks] = 1;
}

static __device__ void fill_row(const struct example_request &b, const struct built &to, uint64_t example,
                                const struct need &at) {
    const struct example_source &s = b.source;
    to.target_starts[at.blocks] = at.targets;
    to.context_starts[at.blocks] = (uint32_t)at.contexts;
    to.term_starts[at.blocks] = (uint32_t)at.terms;
    to.block_example[at.blocks] = example;
    to.block_slot[at.blocks] = 0;
    if (s.mode == EXAMPLE_TRIPLE) {
        fill_triple(s, to, example, at);
        return;
    }
    struct example_row row = row_at(s, example, b.epoch);
    to.positives[at.blocks] = (uint32_t)row.wanted;
    if (row.split) return; /* fill_split() writes the blocks of a row that is split */
    to.target_ids[at.targets] = s.ids[row.start + row.target];
    to.target_block[at.targets] = at.blocks;
    if (s.per_batch) to.context_block[at.contexts] = at.blocks;
    example_positives(&s, &row, example, b.epoch, to.context_ids + at.contexts, to.weights ? to.weights + at.contexts : NULL);
}

static __global__ void fill(const struct example_request *request, const struct kept_word *words, struct built to,
                            const struct need *starts) {
    const struct example_request b = *request;
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > b.count) return;
    struct need at = starts[i];
    if (i == b.count) {
        at = sizes_of_batch(b.source, at);
        to.target_starts[at.blocks] = at.targets;
        to.context_starts[at.blocks] = (uint32_t)at.contexts;
        to.term_starts[at.blocks] = (uint32_t)at.terms;
        to.counts->blocks = at.blocks;
        to.counts->targets = at.targets;
        to.counts->contexts = (uint32_t)at.contexts;
        to.counts->terms = (uint32_t)at.terms;
        to.counts->pairs = pairs_of(b.source, at);
        if (b.source.per_batch) fill_shared_block(b, to);
        return;
    }
    uint32_t targets = starts[i + 1].targets - at.targets;
    if (!targets) return;
    uint64_t example = example_at(b, i);
    if (b.source.mode != EXAMPLE_WINDOW)
        fill_row(b, to, example, at);
    else if (!b.source.subwords.starts)
        fill_window(request, words, to, example, at, targets);
}

/* Writes the path nodes of a window's words as contexts: first all nodes of code 0, word after word in the window's order, then
 * all nodes of code 1. Returns how many are positive (code 0). */
static __device__ uint32_t fill_paths_beside(const struct example_source &s, const struct middle &middle, uint32_t width,
                                             uint32_t *contexts) {
    uint32_t count = 0, positives = 0;
    for (int code = 0; code < 2; code++) {
        uint32_t before = count;
        middle.walk(-1, width, [&](uint32_t id, uint32_t) { before += example_path(&s, id).count[code]; });
        count = before;
        middle.walk(-1, width, [&](uint32_t id, uint32_t) {
            before -= example_path(&s, id).count[code];
            fill_nodes_of(s, contexts, id, before, code);
        });
        middle.walk(1, width, [&](uint32_t id, uint32_t) { count += fill_nodes_of(s, contexts, id, count, code); });
        if (!code) positives = count;
    }
    return positives;
}

/* Writes the blocks of windows whose words share rows, one example a thread. This is a separate kernel so that the kernel for
 * other windows needs fewer registers. */
static __global__ void fill_worded(const struct example_request *request, const struct kept_word *words, struct built to,
                                   const struct need *starts) {
    const struct example_source &s = request->source;
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= request->count || starts[i].targets == starts[i + 1].targets) return;
    struct need at = starts[i];
    uint64_t position = example_at(*request, i);
    struct looked_up beside;
    struct middle middle(request, words, position, &beside);
    uint32_t own = middle.word(), width = strip_window(&s, position, request->epoch), block = at.blocks, positives = 1;
    uint32_t *contexts = to.context_ids + at.contexts;
    if (s.subwords.by_window) {
        uint32_t before = at.targets + rows_beside(s, middle, -1, width), behind = before;
        middle.walk(-1, width, [&](uint32_t id, uint32_t) {
            before -= (uint32_t)example_rows_of(&s, id);
            fill_rows_of(s, to, id, before, block);
        });
        middle.walk(1, width, [&](uint32_t id, uint32_t) { behind += fill_rows_of(s, to, id, behind, block); });
        positives = fill_word(s, contexts, own);
    } else {
        fill_rows_of(s, to, own, at.targets, block);
        if (s.paths.starts) {
            positives = fill_paths_beside(s, middle, width, contexts);
            atomicAdd(&to.counts->pairs, (unsigned long long)(middle.kept(-1, width) + middle.kept(1, width)));
        } else {
            positives = list_around(middle, width, contexts);
        }
    }
    to.target_starts[block] = at.targets;
    to.context_starts[block] = (uint32_t)at.contexts;
    to.term_starts[block] = (uint32_t)at.terms;
    to.positives[block] = positives;
    to.block_example[block] = position;
    to.block_slot[block] = 0;
}

/* Writes the blocks of lists that are split into positives and a pool, one block a warp: lists are long, and each place of a
 * drawn order can be computed without the others. */
static __global__ void fill_split(const struct example_request *request, struct built to) {
    const struct example_request b = *request;
    const struct example_source &s = b.source;
    uint64_t block = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (block >= to.counts->blocks) return;
    uint64_t example = to.block_example[block];
    struct example_row row = row_at(s, example, b.epoch);
    if (!row.split) return;
    struct shuffle order = example_split(&s, &row, example, b.epoch);
    uint32_t lane = threadIdx.x % 32, target = to.target_starts[block], context = to.context_starts[block];
    float *weights = to.weights ? to.weights + context : NULL;
    for (uint32_t i = lane; i < row.targets; i += 32) {
        to.target_ids[target + i] = example_split_target(&s, &row, &order, i);
        to.target_block[target + i] = (uint32_t)block;
    }
    for (uint32_t j = lane; j < row.wanted; j += 32)
        example_put_positive(&s, &row, shuffle_at(&order, j), j, to.context_ids + context, weights);
}

/* ---- the host's side ---- */

/* Computes for each example the sum of the sizes of all examples before it. With shared negatives, their block's sizes are added
 * to each sum. */
static cudaError_t scan(const struct example_source *s, struct batch_builder *builder, void *temporary, size_t *bytes,
                        uint64_t count) {
    struct need front = {s->per_batch ? 1u : 0u, 0, example_batch_negatives(s), 0};
    return cub::DeviceScan::ExclusiveScan(temporary, *bytes, (struct need *)builder->scratch.sizes.data,
                                          (struct need *)builder->scratch.offsets.data, need_sum(), front,
                                          (int)(count + 1), builder->stream);
}

int cuda_examples_reserve(struct backend *b, struct batch_builder *builder, uint64_t count) {
    struct scratch *s = &builder->scratch;
    const char *what = "a batch's sizes";
    size_t scanning = 0;
    if (gpu_grow(b, &s->sizes, need_bytes(count), what) || gpu_grow(b, &s->offsets, need_bytes(count), what) ||
        gpu_grow(b, &s->words, kept_bytes(&b->source.view, count), what))
        return -1;
    CK(scan(&b->source.view, builder, NULL, &scanning, count));
    return gpu_grow(b, &s->scanning, std::max<uint64_t>(scan_bytes(count), scanning), what);
}

int cuda_examples_count(struct stage *stage, int padded) {
    const struct example_request *request = stage->request_host;
    struct batch_builder *builder = stage->builder;
    size_t scanning = builder->scratch.scanning.bytes;
    uint64_t threads = request->count + 1;
    struct padding padding = {{NULL, NULL}, {0, 0}};
    for (int side = 0; side < 2 && padded; side++) {
        padding.ids[side] = (uint32_t *)stage->side[side].ids.data;
        padding.count[side] = side == SIDE_TARGET ? stage->sizes.targets : stage->sizes.contexts;
        if (padding.count[side] / PADDED_A_THREAD > threads) threads = padding.count[side] / PADDED_A_THREAD;
    }
    take_request<<<1, THREADS, 0, builder->stream>>>(request, stage->request, stage->counts);
    CK_LAUNCH("take_request");
    if (request->source.walks.length && cuda_walks_draw_batch(stage->request, request, builder->stream)) return -1;
    struct kept_word *words = (struct kept_word *)builder->scratch.words.data;
    if (kept_bytes(&request->source, request->count)) {
        unsigned blocks = blocks_for(request->count + 2 * KEPT_BESIDE, THREADS);
        look_up_words<<<blocks, THREADS, 0, builder->stream>>>(stage->request, words);
        CK_LAUNCH("look_up_words");
    }
    count_examples<<<blocks_for(threads, THREADS), THREADS, 0, builder->stream>>>(
        stage->request, words, (struct need *)builder->scratch.sizes.data, stage->counts, padding);
    CK_LAUNCH("count_examples");
    CK(scan(&request->source, builder, builder->scratch.scanning.data, &scanning, request->count));
    return 0;
}

int cuda_check_sizes(uint64_t contexts, uint64_t terms) {
    if (terms >= (uint64_t)1 << 31 || contexts >= (uint64_t)1 << 31)
        return fail("a batch of %llu contexts and %llu pairs of rows is more than 2^31; lower train.batch",
                    (unsigned long long)contexts, (unsigned long long)terms);
    return 0;
}

int cuda_examples_counted(struct backend *b, struct stage *stage, struct batch_sizes *sizes) {
    const struct counted_sizes *counted = b->counted;
    struct batch_builder *builder = stage->builder;
    tell_sizes<<<1, 1, 0, builder->stream>>>(
        stage->request, (const struct need *)builder->scratch.offsets.data + stage->request_host->count, stage->counts,
        b->counted);
    CK_LAUNCH("tell_sizes");
    CK(cudaEventRecord(b->sized, builder->stream));
    CK(cudaEventSynchronize(b->sized));
    if (counted->too_long)
        return fail("an example with %u positives is too long; set examples.positives, or negatives.per = example",
                    counted->too_long);
    if (cuda_check_sizes(counted->total.contexts, counted->total.terms)) return -1;
    sizes->blocks = counted->total.blocks;
    sizes->targets = counted->total.targets;
    sizes->contexts = (uint32_t)counted->total.contexts;
    sizes->terms = (uint32_t)counted->total.terms;
    return 0;
}

static struct built built_of(struct stage *stage) {
    struct built to;
    to.target_starts = (uint32_t *)stage->target_starts.data;
    to.context_starts = (uint32_t *)stage->context_starts.data;
    to.term_starts = (uint32_t *)stage->term_starts.data;
    to.positives = (uint32_t *)stage->positives.data;
    to.block_slot = (uint32_t *)stage->block_slot.data;
    to.block_example = (uint64_t *)stage->block_example.data;
    to.target_ids = (uint32_t *)stage->side[SIDE_TARGET].ids.data;
    to.target_block = (uint32_t *)stage->block_of[SIDE_TARGET].data;
    to.context_ids = (uint32_t *)stage->side[SIDE_CONTEXT].ids.data;
    to.context_block = (uint32_t *)stage->block_of[SIDE_CONTEXT].data;
    to.weights = stage->weighted ? (float *)stage->weights.data : NULL;
    to.counts = stage->counts;
    return to;
}

int cuda_examples_fill(struct stage *stage) {
    const struct example_request *request = stage->request_host;
    const struct need *starts = (const struct need *)stage->builder->scratch.offsets.data;
    cudaStream_t stream = stage->builder->stream;
    struct built to = built_of(stage);
    uint32_t blocks = stage->sizes.blocks;
    if (!blocks) return 0;
    const struct kept_word *words = (const struct kept_word *)stage->builder->scratch.words.data;
    fill<<<blocks_for(request->count + 1, THREADS), THREADS, 0, stream>>>(stage->request, words, to, starts);
    CK_LAUNCH("fill");
    if (request->source.subwords.starts) {
        fill_worded<<<blocks_for(request->count, THREADS), THREADS, 0, stream>>>(stage->request, words, to, starts);
        CK_LAUNCH("fill_worded");
    }
    if (request->source.pool.on && !request->source.pool.product && request->source.mode != EXAMPLE_WINDOW) {
        fill_split<<<blocks_for((uint64_t)blocks * 32, THREADS), THREADS, 0, stream>>>(stage->request, to);
        CK_LAUNCH("fill_split");
    }
    return cuda_negatives_draw(stage, &to);
}
