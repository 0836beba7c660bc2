/* batch_examples: makes a batch's blocks on the GPU, with exactly the ids that the CPU would draw: kernels/examples.h defines the draws, this file
 * divides them among threads.
 *
 *   take       copies the request from the host, and zeroes the counts
 *   words      for windows, one thread for each position: is its word kept, and which sentence is it in
 *   count      one thread for each example: its numbers of blocks, targets, contexts and terms, which are then summed up
 *   fill       one thread for each example: writes its blocks, targets and positives, where the sums say
 *   worded     the same as fill, for windows whose words share rows (n-grams)
 *   split      one warp for each block: targets and positives of lists that are split into positives and a pool
 *
 *   negatives  draws the negatives of all blocks; the last part of this file
 *
 * All kernels read what to make from memory (struct example_request), so that one captured graph of them can make any batch of the same sizes.
 */
#include "values.cuh"

extern "C" {
#include "kernels/triples.h"
}

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <string.h>

/* ==== walks over a graph ====
 *
 * If the corpus is a graph, draws walks just before they are used: the walks that contain the positions of a batch, or of a part of
 * lock-free training. Kernels then read the walks as they read sentences. kernels/walks.h defines the draws; each thread draws one walk. */

namespace {

enum { WALK_THREADS = 128 };

/* The newest ids of a walk, at most eight, before they are written to memory together. Memory is written in lines of at least 32 bytes, and
 * between two steps of a walk all threads read random addresses; so a line with one new id would leave the cache before the next one was
 * written. */
struct held_places {
    enum { MOST = 8 };
    uint32_t *ids; /* where the walk's ids are written */
    uint32_t held[MOST] = {};

    __device__ explicit held_places(uint32_t *places) : ids(places) {
    }
    __device__ void write(uint32_t place, uint32_t id) {
#pragma unroll
        for (int i = 0; i < MOST - 1; i++) held[i] = held[i + 1];
        held[MOST - 1] = id;
        if (place % MOST == MOST - 1) write_whole(ids + place - (MOST - 1));
    }
    __device__ void write_whole(uint32_t *to) const {
        if ((uintptr_t)to % sizeof(uint4) == 0) {
            ((uint4 *)to)[0] = make_uint4(held[0], held[1], held[2], held[3]);
            ((uint4 *)to)[1] = make_uint4(held[4], held[5], held[6], held[7]);
            return;
        }
#pragma unroll
        for (int i = 0; i < MOST; i++) to[i] = held[i];
    }
    /* Writes the ids that are not written yet, fewer than eight. */
    __device__ void end(uint32_t length) const {
#pragma unroll
        for (uint32_t i = 1; i < MOST; i++)
            if (i <= length % MOST) ids[length - i] = held[MOST - i];
    }
};

/* Returns the number of ids before the walk's end. */
__device__ uint32_t draw_walk(const struct walks &w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t *ids) {
    struct walk walk = walk_begin(&w, seed, number, epoch);
    struct held_places places(ids);
    uint32_t place = 0;
    places.write(place++, walk.at.id);
    while (walk_go(&w, seed, epoch, &walk)) {
        if (walk.refused) continue;
        if (w.labels) places.write(place++, walk.label);
        places.write(place++, walk.at.id);
    }
    uint32_t drawn = place;
    while (place < w.length) places.write(place++, DRAW_NONE);
    places.end(w.length);
    return drawn;
}

/* Draws the walks of `s`, which cuda_walks_source() has made, into its ids and starts. Adds to *walked how many of the positions first .. first +
 * count - 1 are in walks, not after their ends; NULL: does not count. */
__device__ void draw_walks(const struct example_source &s, uint32_t epoch, uint64_t first, uint64_t count, unsigned long long *walked) {
    uint64_t number = s.first_sentence + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t *ids = (uint32_t *)(uintptr_t)s.ids;
    uint64_t *starts = (uint64_t *)(uintptr_t)s.starts;
    if (number > s.sentences) return;
    starts[number] = number * s.walks.length;
    if (number == s.sentences) return;
    uint64_t begin = number * s.walks.length, end = begin + draw_walk(s.walks, s.seed, number, epoch, ids + begin);
    if (begin < first) begin = first;
    if (end > first + count) end = first + count;
    if (walked && begin < end) atomicAdd(walked, (unsigned long long)(end - begin));
}

/* Draws a batch's walks. A captured graph must read the source from memory. It is first copied to registers, since the compiler must assume that
 * writing walks could change it in memory. */
__global__ void __launch_bounds__(WALK_THREADS) draw_for_batch(const struct example_request *request, unsigned long long *walked) {
    const struct example_source source = request->source;
    draw_walks(source, request->epoch, request->first, request->count, walked);
}
/* Draws walks for a part of lock-free training. Registers are limited so that nine thread blocks fit on a multiprocessor; without the limit the
 * code for exact steps, which runs rarely, would leave room for eight only. */
__global__ void __launch_bounds__(WALK_THREADS, 9) draw_for_part(const struct example_source source, uint32_t epoch, uint64_t first, uint64_t count,
                                                                 unsigned long long *walked) {
    draw_walks(source, epoch, first, count, walked);
}

/* Returns how many thread blocks are needed to draw all walks that may contain one of this number of positions. The last thread stores where the last
 * walk ends. */
unsigned blocks_of(const struct example_source *s, uint64_t positions) {
    return blocks_for(walks_at_most(&s->walks, positions) + 1, WALK_THREADS);
}

} // namespace

int cuda_walks_grow(struct backend *b, struct drawn_walks *drawn, uint64_t positions) {
    const struct walks *w = &b->source.view.walks;
    struct walks_bytes bytes = walks_bytes(w, positions);
    return gpu_grow(b, &drawn->ids, bytes.ids, "walks") || gpu_grow(b, &drawn->starts, bytes.starts, "walks") ? -1 : 0;
}

void cuda_walks_drop(struct backend *b, struct drawn_walks *drawn) {
    gpu_drop(b, &drawn->ids);
    gpu_drop(b, &drawn->starts);
}

struct example_source cuda_walks_source(const struct backend *b, const struct drawn_walks *drawn, uint64_t first, uint64_t count) {
    const struct example_source *s = &b->source.view;
    return example_of_walks(s, walks_of(&s->walks, first, count), (const uint32_t *)drawn->ids.data, (const uint64_t *)drawn->starts.data);
}

int cuda_walks_draw_batch(const struct stage *stage) {
    const struct example_request *on_host = stage->request_host;
    draw_for_batch<<<blocks_of(&on_host->source, on_host->count), WALK_THREADS, 0, stage->builder->stream>>>(stage->request, &stage->counts->walked);
    CK_LAUNCH("draw_for_batch");
    return 0;
}

int cuda_walks_draw_part(const struct example_source *source, uint32_t epoch, uint64_t first, uint64_t count, unsigned long long *walked,
                         cudaStream_t stream) {
    draw_for_part<<<blocks_of(source, count), WALK_THREADS, 0, stream>>>(*source, epoch, first, count, walked);
    CK_LAUNCH("draw_for_part");
    return 0;
}

int cuda_draw_walks(struct backend *b, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids) {
    uint64_t length = b->source.view.walks.length, most = WALKED_AT_ONCE / length + 1;
    struct drawn_walks *drawn = &b->builders[0].scratch.walks;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b) || cuda_walks_grow(b, drawn, (count < most ? count : most) * length)) return -1;
    for (uint64_t at = 0; at < count; at += most) {
        uint64_t walks = count - at < most ? count - at : most;
        struct example_source source = cuda_walks_source(b, drawn, (first + at) * length, walks * length);
        if (cuda_walks_draw_part(&source, epoch, (first + at) * length, walks * length, NULL, b->compute)) return -1;
        if (!ids) continue;
        CK(cudaMemcpyAsync(ids + at * length, drawn->ids.data, walks * length * sizeof *ids, cudaMemcpyDeviceToHost, b->compute));
        CK(cudaStreamSynchronize(b->compute)); /* waits, since the next part's walks are drawn into the same memory */
    }
    CK(cudaStreamSynchronize(b->compute));
    return 0;
}

/* ==== the kept words around a position ====
 *
 * Finds the words around a position that subsampling keeps, for kernels that make windows.
 *
 * A word is in many windows, and each must know whether the word is kept and where its sentence ends. If positions are trained in order, this is
 * looked up once for each position of the batch, and for some before and after it, and all windows read the results. A position further away, and
 * every position if they are shuffled, is looked up by each window itself.
 */

/* Results of looking up the words at positions first .. first + count - 1. */
struct found_words {
    const struct kept_word *word;
    uint64_t first, count;
};

static __device__ struct found_words found_words(const struct example_request &b, const struct kept_word *word) {
    uint64_t before = b.first - b.source.first, behind = b.source.tokens - b.first - b.count;
    if (before > KEPT_BESIDE) before = KEPT_BESIDE;
    if (b.source.shuffle) return {word, 0, 0};
    return {word, b.first - before, before + b.count + (behind < KEPT_BESIDE ? behind : KEPT_BESIDE)};
}

static __global__ void look_up_words(const struct example_request *request, struct kept_word *to) {
    const struct example_request &b = *request;
    struct found_words words = found_words(b, to);
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, of_warp = i - lane_number();
    if (of_warp >= words.count) return;
    uint64_t position = words.first + (i < words.count ? i : words.count - 1);
    uint64_t number = sentence_of(b.source, words.first + of_warp);
    while (__ldg(b.source.starts + number + 1) <= position) number++;
    const struct strip strip = strip_of(&b.source, number, b.epoch);
    struct strip_draws draws = strip_draws();
    if (i < words.count) to[i] = {strip_word(&b.source, &strip, position, b.epoch, &draws), (uint32_t)number};
}

/* What a thread needs to look up neighbours itself. These values are in memory, since their address is taken; values that each step reads are
 * separate variables, in registers. */
struct looked_up {
    int begun;
    struct strip strip;
    struct strip_walk walk;
    struct strip_draws draws;
};

/* Returns the id of the next kept word in the walk's direction, DRAW_NONE if the sentence has no more; by = 0: the word at the walk's position.
 * `position` is in the strip. */
static __device__ __noinline__ uint32_t look_up(const struct example_request *request, struct looked_up *own, uint64_t position) {
    const struct example_source &s = request->source;
    if (!own->begun) {
        own->begun = 1;
        own->strip = strip_of(&s, example_sentence_of(&s, position), request->epoch);
        own->draws = strip_draws();
    }
    if (!own->walk.by) return strip_word(&s, &own->strip, position, request->epoch, &own->draws);
    return strip_next(&s, &own->strip, &own->walk, request->epoch, &own->draws);
}

/* The word in the middle of a window, with access to the words before and after it. */
struct middle {
    const struct example_request *request;
    struct looked_up *own;
    uint64_t position;
    const struct kept_word *here; /* the result of looking up the middle word; NULL: no words were looked up */
    uint32_t sentence, before, behind;

    __device__ middle(const struct example_request *request, const struct kept_word *words, uint64_t position, struct looked_up *own)
        : request(request), own(own), position(position), here(NULL), sentence(0), before(0), behind(0) {
        struct found_words found = found_words(*request, words);
        own->begun = 0;
        if (!found.count) return;
        before = (uint32_t)(position - found.first);
        behind = (uint32_t)found.count - 1 - before;
        here = found.word + before;
        sentence = here->sentence;
    }
    __device__ __forceinline__ uint32_t word(void) const {
        if (here) return here->id;
        own->walk = {position, 0};
        return look_up(request, own, position);
    }
    /* Calls take(id, n) for kept words n = 0, 1 .. in direction `by` from the middle, at most `width` words. */
    template <class Take> __device__ __forceinline__ uint32_t walk(int by, uint32_t width, Take take) const {
        uint32_t count = 0, step = 1, found = by < 0 ? before : behind;
        for (const struct kept_word *at = here; step <= found && count < width; step++) {
            struct kept_word there = *(at += by);
            if (there.sentence != sentence) return count;
            if (there.id != DRAW_NONE) take(there.id, count++);
        }
        if (count < width) own->walk = {position + (int64_t)by * (step - 1), by};
        for (uint32_t id; count < width && (id = look_up(request, own, position)) != DRAW_NONE;) take(id, count++);
        return count;
    }
    /* Returns the row of the document that contains the middle word. */
    __device__ __forceinline__ uint32_t document(void) const {
        return example_document(&request->source, here ? sentence : example_sentence_of(&request->source, position));
    }
    __device__ __forceinline__ uint32_t kept(int by, uint32_t width) const {
        return walk(by, width, [](uint32_t, uint32_t) {});
    }
};

/* Stores the kept words before the middle and after it, in order; returns their number. */
static __device__ __forceinline__ uint32_t list_around(const struct middle &middle, uint32_t width, uint32_t *ids) {
    uint32_t left = middle.kept(-1, width);
    middle.walk(-1, left, [=](uint32_t id, uint32_t n) { ids[left - 1 - n] = id; });
    return left + middle.walk(1, width, [=](uint32_t id, uint32_t n) { ids[left + n] = id; });
}

/* Returns the number of target rows of the window's kept words before the middle (by = -1) or after it (by = 1). */
static __device__ uint32_t rows_beside(const struct example_source &s, const struct middle &middle, int by, uint32_t width) {
    uint32_t rows = 0;
    middle.walk(by, width, [&](uint32_t id, uint32_t) { rows += (uint32_t)example_rows_of(&s, id); });
    return rows;
}

/* Returns the number of contexts by which the window's kept words before the middle (by = -1) or after it (by = 1) are predicted. */
static __device__ uint32_t contexts_beside(const struct example_source &s, const struct middle &middle, int by, uint32_t width) {
    uint32_t contexts = 0;
    middle.walk(by, width, [&](uint32_t id, uint32_t) { contexts += example_contexts_of(&s, id); });
    return contexts;
}

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

/* Returns the sizes of a window's block if words share rows. `around`: number of words in the window besides the middle one. */
static __device__ struct need count_shared(const struct example_source &s, const struct middle &middle, uint32_t own,
                                           uint32_t width, uint32_t around) {
    struct need need = {0, 0, 0, 0};
    if (!around) return need;
    need.blocks = 1;
    need.targets = s.subwords.by_window ? rows_beside(s, middle, -1, width) + rows_beside(s, middle, 1, width) : (uint32_t)example_rows_of(&s, own);
    uint32_t predicting = example_window_positives(&s, around);
    if (s.paths.starts && s.subwords.by_window) predicting = example_contexts_of(&s, own);
    else if (s.paths.starts) predicting = contexts_beside(s, middle, -1, width) + contexts_beside(s, middle, 1, width);
    need.contexts = need.terms = predicting + example_window_negatives(&s, around);
    return need;
}

static __device__ struct need count_window(const struct example_request *request, const struct kept_word *words, uint64_t position) {
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

/* The ids of both sides, all set to DRAW_NONE before the examples' ids are written. */
struct padding {
    uint32_t *ids[2];
    uint64_t count[2];
};

/* Copies the request to the GPU and zeroes the counts. One launch does both, since in a small batch a separate copy and memset would take time. */
static __global__ void take_request(const struct example_request *from, struct example_request *to, struct batch_counts *counts) {
    static_assert(sizeof *from % 4 == 0 && sizeof *counts % 4 == 0, "they are copied by words");
    for (uint32_t i = threadIdx.x; i < sizeof *from / 4; i += blockDim.x) ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    for (uint32_t i = threadIdx.x; i < sizeof *counts / 4; i += blockDim.x) ((uint32_t *)counts)[i] = 0;
}

/* Counts the sizes of each example. words: result of look_up_words(), for windows only. */
static __global__ void count_examples(const struct example_request *request, const struct kept_word *words, struct need *needs,
                                      struct batch_counts *counts, struct padding padding) {
    const struct example_request b = *request;
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (uint64_t)gridDim.x * blockDim.x;
    for (int side = 0; side < 2; side++)
        for (uint64_t at = i; at < padding.count[side]; at += threads) padding.ids[side][at] = DRAW_NONE;
    if (i > b.count) return;
    struct need need = {0, 0, 0, 0}; /* stays zero for the entry after the last example, which will contain the totals */
    if (i < b.count) {
        uint64_t example = example_at(b, i);
        if (is_wanted(b, example))
            need = b.source.mode == EXAMPLE_WINDOW ? count_window(request, words, example) : count_row(b, example, &counts->too_long);
    }
    needs[i] = need;
}

/* Returns an example's number of pairs, each of a target (or the pooled vector) with one positive. If positives are nodes on the paths of several
 * words, fill_worded() counts the pairs instead. */
static __device__ uint64_t pairs_of(const struct example_source &s, const struct need &n) {
    if (s.paths.starts && example_predicts_window(&s)) return 0;
    if (s.mode == EXAMPLE_WINDOW && !example_predicts_window(&s)) return s.pool.on ? n.blocks : n.targets;
    if (s.per_batch) return n.targets ? (n.targets - example_batch_relations(&s)) / example_shared_targets(&s.pool) : 0;
    if (s.per_pair) return n.contexts / (1 + s.negatives);
    return n.contexts - (uint64_t)s.negatives * n.blocks;
}

/* Returns the sizes of a batch. end: the sums over its examples, including the block of shared negatives, which a batch without examples does not
 * have. */
static __device__ struct need sizes_of_batch(const struct example_source &s, const struct need &end) {
    struct need nothing = {0, 0, 0, 0};
    return s.per_batch && end.blocks < 2 ? nothing : end;
}

/* Writes the batch's sizes to host memory, if the host waits for them. */
static __global__ void tell_sizes(const struct example_request *request, const struct need *end,
                                  const struct batch_counts *counts, struct counted_sizes *host) {
    host->total = sizes_of_batch(request->source, *end);
    host->too_long = counts->too_long;
    __threadfence_system();
}

/* ---- fill ---- */

/* Writes the nodes of a word's path at which it takes code `code`, as contexts from index `at` on. Returns their number. */
static __device__ uint32_t fill_nodes_of(const struct example_source &s, uint32_t *contexts, uint32_t word, uint32_t at, int code) {
    const struct example_path path = example_path(&s, word);
    for (uint32_t i = 0; i < path.count[code]; i++) contexts[at + i] = portable_load32_at(s.paths.nodes, path.first[code] + i);
    return path.count[code];
}

/* Writes the contexts of a block that predicts one word: the word itself, or the nodes of its path. Returns how many contexts are positives. */
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

/* Writes the rows of a word as targets, from index `at` on. Returns their number. */
static __device__ uint32_t fill_rows_of(const struct example_source &s, const struct built &to, uint32_t word, uint32_t at, uint32_t block) {
    uint64_t first = portable_load64_at(s.subwords.starts, word);
    uint32_t count = (uint32_t)example_rows_of(&s, word);
    for (uint32_t i = 0; i < count; i++) {
        to.target_ids[at + i] = portable_load32_at(s.subwords.rows, first + i);
        to.target_block[at + i] = block;
    }
    return count;
}

/* Writes the sizes of the block of shared negatives. The negatives are drawn like those of other blocks, and fill() writes the relations. */
static __device__ void fill_shared_block(const struct example_request &b, const struct built &to) {
    to.target_starts[0] = to.context_starts[0] = to.term_starts[0] = 0;
    to.positives[0] = to.block_slot[0] = 0;
    to.block_example[0] = b.first;
}

static __device__ void fill_triple(const struct example_source &s, const struct built &to, uint64_t example, const struct need &at) {
    example_put_triple(&s, example, to.target_ids + at.targets, to.context_ids + at.contexts);
    for (uint32_t i = 0; i < example_shared_targets(&s.pool); i++) to.target_block[at.targets + i] = at.blocks;
    for (uint32_t i = 0; i < example_shared_contexts(&s.pool); i++) to.context_block[at.contexts + i] = at.blocks;
    to.positives[at.blocks] = 1;
}

static __device__ void fill_row(const struct example_request &b, const struct built &to, uint64_t example, const struct need &at) {
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
    if (row.split) return; /* this row's blocks are written by fill_split() */
    to.target_ids[at.targets] = s.ids[row.start + row.target];
    to.target_block[at.targets] = at.blocks;
    if (s.per_batch) to.context_block[at.contexts] = at.blocks;
    example_positives(&s, &row, example, b.epoch, to.context_ids + at.contexts, to.weights ? to.weights + at.contexts : NULL);
}

static __global__ void fill(const struct example_request *request, const struct kept_word *words, struct built to, const struct need *starts) {
    const struct example_request b = *request;
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t relations = starts[b.count].blocks > 1 ? example_batch_relations(&b.source) : 0; /* 0: the batch has no example */
    for (uint64_t r = i; r < relations; r += (uint64_t)gridDim.x * blockDim.x)
        to.target_ids[r] = (uint32_t)(b.source.rows - relations + r), to.target_block[r] = 0;
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

/* Writes the path nodes of a window's words as contexts: first all nodes of code 0, word after word in the window's order, then all nodes of code
 * 1. Returns the number of the former, which are positives. */
static __device__ uint32_t fill_paths_beside(const struct example_source &s, const struct middle &middle, uint32_t width, uint32_t *contexts) {
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

/* Writes the blocks of windows whose words share rows, one thread for each example. A separate kernel, so that the kernel for other windows needs
 * fewer registers. */
static __global__ void fill_worded(const struct example_request *request, const struct kept_word *words, struct built to, const struct need *starts) {
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

/* Writes the blocks of lists that are split into positives and a pool, one warp for each block: lists are long, and each element of a shuffled
 * order can be computed on its own. */
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
    for (uint32_t j = lane; j < row.wanted; j += 32) example_put_positive(&s, &row, shuffle_at(&order, j), j, to.context_ids + context, weights);
}

/* ---- the host's side ---- */

/* Computes, for each example, the sums of the sizes of all examples before it. If negatives are shared, adds the size of their block to each sum. */
static cudaError_t scan(const struct example_source *s, struct batch_builder *builder, void *temporary, size_t *bytes, uint64_t count) {
    struct need front = {s->per_batch ? 1u : 0u, example_batch_relations(s), example_batch_negatives(s), 0};
    return cub::DeviceScan::ExclusiveScan(temporary, *bytes, (struct need *)builder->scratch.sizes.data, (struct need *)builder->scratch.offsets.data,
                                          need_sum(), front, (int)(count + 1), builder->stream);
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
    if (request->source.walks.length && cuda_walks_draw_batch(stage)) return -1;
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
    tell_sizes<<<1, 1, 0, builder->stream>>>(stage->request, (const struct need *)builder->scratch.offsets.data + stage->request_host->count,
                                             stage->counts, b->counted);
    CK_LAUNCH("tell_sizes");
    CK(cudaEventRecord(b->sized, builder->stream));
    CK(cudaEventSynchronize(b->sized));
    if (counted->too_long)
        return fail("an example with %u positives is too long; set examples.positives, or negatives.per = example", counted->too_long);
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

/* ==== negatives ====
 *
 * Draws the negatives of a batch's blocks on the GPU: for each slot the first draw that is allowed (kernels/examples.h). A block's negatives are
 * drawn by 2^n threads, or by a thread block if they must be distinct; for shared negatives each thread draws two slots. A slot stays empty
 * (DRAW_NONE) if none of DRAW_ATTEMPTS draws is allowed. */

enum {
    SLOT_THREAD_BITS = 8,
    SLOT_THREADS = 1 << SLOT_THREAD_BITS,
    NEGATIVE_LANE_BITS = 3,     /* log2 of the most threads that draw one block's negatives if there are many blocks */
    NEGATIVE_THREADS = 1 << 16, /* number of threads that draw a batch's negatives, if it has at least this many pairs of slots */
    DISTINCT_THREADS = 128,
    DISTINCT_SLOTS = 512
};

/* draws_at: returns draw number `attempt` of `slot` and of the slot that shares its draw. row_of: returns the row that a slot gets from a draw. */
static __device__ __forceinline__ struct draw4 draws_at(const struct example_request &b, uint64_t example, uint32_t slot, uint32_t attempt) {
    return example_negative_draws(&b.source, b.epoch, example, slot, attempt);
}
static __device__ __forceinline__ uint32_t row_of(const struct example_request &b, const struct draw4 &drawn, uint32_t slot) {
    return example_negative_of(&b.source, drawn, slot);
}

static __device__ struct example_own own_rows_of(const struct example_request &b, const struct built &to, uint32_t block) {
    uint32_t first = to.target_starts[block], targets = b.source.per_batch ? 0 : to.target_starts[block + 1] - first;
    return example_own(&b.source, to.context_ids + to.context_starts[block], to.positives[block], to.target_ids + first, targets);
}

/* Counts the scores that are not computed because a slot is empty: one for each vector of its block, or, for a shared slot, one for each example
 * of the batch. */
static __device__ __forceinline__ void note_empty(const struct example_request &b, const struct built &to, uint32_t block) {
    const struct example_pool &pool = b.source.pool;
    uint32_t scores = b.source.per_batch ? (to.counts->targets - example_batch_relations(&b.source)) / example_shared_targets(&pool)
                                         : example_vectors(&pool, to.target_starts[block + 1] - to.target_starts[block]);
    atomicAdd(&to.counts->empty_terms, (unsigned long long)scores);
}

/* Draws negatives with 2^lane_bits threads for each block. A thread draws for one pair of slots at a time. */
static __global__ void fill_negatives(const struct example_request *request, struct built to, uint32_t lane_bits) {
    const struct example_request b = *request;
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, number = thread >> lane_bits;
    uint32_t lanes = 1u << lane_bits, lane = (uint32_t)thread & (lanes - 1);
    if (number >= to.counts->blocks) return;
    uint32_t block = (uint32_t)number, start = to.context_starts[block], end = to.context_starts[block + 1];
    uint32_t positives = to.positives[block], first = to.block_slot[block];
    uint32_t count = b.source.paths.starts ? 0 : end - start - positives; /* with paths in a tree there are no negatives to draw */
    uint64_t example = to.block_example[block];
    struct example_own own = own_rows_of(b, to, block);
    for (uint32_t i = start + lane; i < end; i += lanes) to.context_block[i] = block;
    for (uint32_t pair = first / 2 + lane; count && pair <= (first + count - 1) / 2; pair += lanes) {
        struct draw4 first_draws = draws_at(b, example, 2 * pair, 0); /* most slots need no further attempt */
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t slot = 2 * pair + half, id = DRAW_NONE;
            if (slot < first || slot >= first + count) continue;
            for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
                uint32_t tried = row_of(b, attempt ? draws_at(b, example, slot, attempt) : first_draws, slot);
                if (example_excludes(&own, tried)) continue;
                id = tried;
                break;
            }
            if (id == DRAW_NONE) note_empty(b, to, block);
            to.context_ids[start + positives + slot - first] = id;
        }
    }
}

/* ---- distinct negatives ----
 *
 * By definition slots draw one after the other, and each keeps its first draw that no earlier slot keeps. The result is the same if all slots draw
 * at once, a row belongs to the lowest slot that has drawn it, and a slot that loses its row draws again: a row of an earlier slot never becomes
 * free for a later one (Gale and Shapley 1962, where all rows rank the slots in the same order). */

/* Hash table (open addressing) of the rows of slots that are drawing at the same time: which slot holds which row. */
struct claims {
    uint32_t row[2 * DISTINCT_SLOTS], holder[2 * DISTINCT_SLOTS]; /* an entry: a row, and the slot that holds it; row = DRAW_NONE: the entry is
                                                                   * free */
    uint32_t chosen[DISTINCT_SLOTS];
    volatile uint32_t attempts[DISTINCT_SLOTS]; /* number of draws that each slot has made so far */
};

static __device__ uint32_t place_of(struct claims &c, uint32_t row, uint32_t mask) {
    for (uint32_t at = row * 0x9E3779B9u >> 16;; at++) {
        uint32_t there = atomicCAS(&c.row[at & mask], DRAW_NONE, row);
        if (there == DRAW_NONE || there == row) return at & mask;
    }
}

/* Draws for `slot` until it gets a row. If a higher slot held that row, that slot loses it, and this thread then draws for that slot, and so on.
 * Slots below `base` are final; their ids are in `out`. */
static __device__ void claim(struct claims &c, const struct example_request &b, const struct example_own &own, uint64_t example, uint32_t first,
                             const uint32_t *out, uint32_t base, uint32_t slot, uint32_t mask) {
    uint32_t attempt = 0;
    while (attempt < DRAW_ATTEMPTS) {
        uint32_t number = first + base + slot, row = row_of(b, draws_at(b, example, number, attempt), number);
        attempt++;
        if (example_excludes(&own, row) || example_among(row, out, base)) continue;
        uint32_t place = place_of(c, row, mask);
        c.attempts[slot] = attempt;
        __threadfence_block();
        uint32_t other = atomicMin(&c.holder[place], slot);
        if (other == DRAW_NONE) return;
        if (other < slot) continue;
        __threadfence_block();
        slot = other;
        attempt = c.attempts[slot];
    }
}

/* Draws distinct negatives; each thread block works on one block of the batch. */
static __global__ void __launch_bounds__(DISTINCT_THREADS) fill_distinct_negatives(const struct example_request *request, struct built to) {
    __shared__ struct claims c;
    const struct example_request b = *request;
    uint32_t block = blockIdx.x;
    if (block >= to.counts->blocks) return;
    uint32_t start = to.context_starts[block], end = to.context_starts[block + 1], positives = to.positives[block];
    uint32_t count = end - start - positives, *out = to.context_ids + start + positives;
    uint64_t example = to.block_example[block];
    struct example_own own = own_rows_of(b, to, block);
    for (uint32_t i = start + threadIdx.x; i < end; i += DISTINCT_THREADS) to.context_block[i] = block;
    for (uint32_t base = 0; base < count; base += DISTINCT_SLOTS) {
        uint32_t here = count - base < DISTINCT_SLOTS ? count - base : DISTINCT_SLOTS, places = 2;
        while (places < 2 * here) places *= 2;
        for (uint32_t i = threadIdx.x; i < places; i += DISTINCT_THREADS) c.row[i] = c.holder[i] = DRAW_NONE;
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS) c.chosen[i] = DRAW_NONE;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS) claim(c, b, own, example, to.block_slot[block], out, base, i, places - 1);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < places; i += DISTINCT_THREADS)
            if (c.holder[i] != DRAW_NONE) c.chosen[c.holder[i]] = c.row[i];
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < here; i += DISTINCT_THREADS) {
            out[base + i] = c.chosen[i];
            if (c.chosen[i] == DRAW_NONE) note_empty(b, to, block);
        }
        __syncthreads();
    }
}

/* ---- the host's side ---- */

/* Returns log2 of the number of threads that draw a block's negatives: about one thread for each pair of slots, but at most 2^NEGATIVE_LANE_BITS
 * threads. With few blocks more threads are allowed, since a block may have a thousand negatives, and each must be compared with as many
 * positives. */
static uint32_t negative_lane_bits(const struct batch_sizes *sizes) {
    uint32_t bits = 0, most = NEGATIVE_LANE_BITS, pairs = sizes->contexts / sizes->blocks / 2 + 1;
    while (most < SLOT_THREAD_BITS && ((uint64_t)sizes->blocks << most) < NEGATIVE_THREADS) most++;
    while (bits < most && (uint64_t)1 << bits < pairs) bits++;
    return bits;
}

/* Enqueues drawing the negatives of the first `blocks` blocks, with 2^bits threads for each block, or with a thread block for each if negatives
 * are distinct. */
static int fill_slots(struct stage *stage, const struct built &to, uint32_t blocks, uint32_t bits) {
    cudaStream_t stream = stage->builder->stream;
    if (stage->request_host->source.distinct && !stage->request_host->source.paths.starts) {
        fill_distinct_negatives<<<blocks, DISTINCT_THREADS, 0, stream>>>(stage->request, to);
        CK_LAUNCH("fill_distinct_negatives");
    } else {
        fill_negatives<<<blocks_for((uint64_t)blocks << bits, SLOT_THREADS), SLOT_THREADS, 0, stream>>>(stage->request, to, bits);
        CK_LAUNCH("fill_negatives");
    }
    return 0;
}

/* Returns log2 of the number of threads that draw shared negatives, at least one for each pair of slots. */
static uint32_t shared_lane_bits(uint32_t negatives) {
    uint32_t bits = SLOT_THREAD_BITS;
    while ((uint64_t)2 << bits < negatives) bits++;
    return bits;
}

int cuda_negatives_draw(struct stage *stage, const struct built *to) {
    uint32_t shared = example_batch_negatives(&stage->request_host->source);
    return shared ? fill_slots(stage, *to, 1, shared_lane_bits(shared))
                  : fill_slots(stage, *to, stage->sizes.blocks, negative_lane_bits(&stage->sizes));
}
