/* cuda_batch: a batch built where it is used, identical id by id to the CPU's (cpu_examples.c says the same in plain C).
 *
 *   measure   an example a thread: how many blocks, targets, contexts, terms it makes; summed; the host reads the totals
 *   fill      an example a thread: its blocks, targets and positives, at the places that the sums give
 *   negatives a few lanes a block, or (distinct) a warp: each slot's first allowed draw
 *   index     both sides sorted by row: distinct rows, occurrences by row, rows that stand once, pieces of work
 *
 * Slots left out after DRAW_ATTEMPTS stay as DRAW_NONE, which sorts last and counts for nothing.
 */
#include "cuda.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 256, NEGATIVE_LANES = 8 };
#define MOST_NEGATIVES ((uint64_t)1 << 21) /* of one example: slot / 2 has 20 bits of the counter */

/* What one example makes. */
struct need {
    uint32_t blocks, targets;
    uint64_t contexts, terms;
};
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

struct build {
    struct example_source source;
    struct shuffle order; /* of the epoch's examples, where the source shuffles */
    uint64_t first, count;
    uint32_t epoch;
    int held_out;
};

/* The arrays that filling writes. */
struct built {
    uint32_t *target_starts, *context_starts, *term_starts, *positives, *block_slot;
    uint64_t *block_example;
    uint32_t *target_ids, *target_block, *context_ids, *context_block;
    uint32_t blocks;
    struct batch_counts *counts;
};

static unsigned grid(uint64_t threads) {
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* ---- sentences and kept words ---- */

struct sentence {
    uint64_t start, end;
    struct shuffle items;
};

static __device__ uint64_t sentence_of(const struct example_source &s, uint64_t position) {
    uint64_t low = 0, high = s.sentences;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (s.starts[middle] <= position) low = middle;
        else high = middle;
    }
    return low;
}

static __device__ struct sentence find_sentence(const struct example_source &s, uint64_t position, uint32_t epoch) {
    struct sentence out;
    uint64_t number = sentence_of(s, position);
    out.start = s.starts[number];
    out.end = s.starts[number + 1];
    if (s.shuffle_items) out.items = shuffle_make(out.end - out.start, draw_at(s.seed, DRAW_ITEMS, number, epoch, 0));
    return out;
}

/* Reads kept words, one Philox call for four neighbours. */
struct reader {
    struct draw4 drawn;
    uint64_t group;
};

static __device__ uint32_t kept_id(const struct example_source &s, const struct sentence &sentence, uint64_t position,
                                   uint32_t epoch, struct reader &reader) {
    uint64_t place = position;
    if (s.shuffle_items) place = sentence.start + shuffle_at(&sentence.items, position - sentence.start);
    uint32_t id = s.ids[place];
    if (!s.keep) return id;
    uint32_t keep = s.keep[id];
    if (keep == UINT32_MAX) return id;
    if (position >> 2 != reader.group) {
        reader.group = position >> 2;
        reader.drawn = draw_at(s.seed, DRAW_SUBSAMPLE, reader.group, epoch, 0);
    }
    uint32_t half[2] = {position & 2 ? reader.drawn.word[2] : reader.drawn.word[0],
                        position & 2 ? reader.drawn.word[3] : reader.drawn.word[1]};
    return (position & 1 ? half[1] : half[0]) <= keep ? id : DRAW_NONE;
}

/* Calls take(id, n) for the n-th kept word going from `position` (not counted) by `by`, up to `width` of them. */
template <class Take>
static __device__ uint32_t walk(const struct example_source &s, const struct sentence &sentence, uint64_t position, int by,
                                uint32_t width, uint32_t epoch, Take take) {
    struct reader reader;
    uint32_t found = 0;
    reader.group = UINT64_MAX;
    for (uint64_t at = position + by; at + 1 > sentence.start && at < sentence.end && found < width; at += by) {
        uint32_t id = kept_id(s, sentence, at, epoch, reader);
        if (id != DRAW_NONE) take(id, found++);
    }
    return found;
}

/* ---- examples ---- */

static __device__ uint64_t example_at(const struct build &b, uint64_t i) {
    return b.source.shuffle ? shuffle_at(&b.order, b.first + i) : b.first + i;
}

static __device__ bool is_wanted(const struct build &b, uint64_t example) {
    const struct example_source &s = b.source;
    int out = s.held_out && draw_word(s.seed, DRAW_HELD_OUT, example, 0) < s.held_out;
    return out == b.held_out;
}

static __device__ uint32_t window_width(const struct example_source &s, uint64_t position, uint32_t epoch) {
    return s.shrink ? draw_window(draw_word(s.seed, DRAW_WINDOW, position, epoch), s.window) : s.window;
}

struct row_example { /* of a list or an adjacency line: items[target] against the others */
    uint64_t start, count, target;
};

static __device__ struct row_example find_row(const struct example_source &s, uint64_t example, uint32_t epoch) {
    struct row_example row;
    uint64_t number = s.mode == EXAMPLE_LIST && s.targets_all ? sentence_of(s, example) : example;
    row.start = s.starts[number];
    row.count = s.starts[number + 1] - row.start;
    row.target = 0;
    if (s.mode == EXAMPLE_LIST)
        row.target = s.targets_all ? example - row.start
                                   : draw_below(draw_pair(draw_at(s.seed, DRAW_TARGET, example, epoch, 0), 0), row.count);
    return row;
}

/* ---- measure ---- */

static __device__ struct need measure_window(const struct build &b, uint64_t position) {
    const struct example_source &s = b.source;
    struct need need = {0, 0, 0, 0};
    struct sentence sentence = find_sentence(s, position, b.epoch);
    struct reader reader;
    reader.group = UINT64_MAX;
    if (kept_id(s, sentence, position, b.epoch, reader) == DRAW_NONE) return need;
    uint32_t width = window_width(s, position, b.epoch);
    auto ignore = [](uint32_t, uint32_t) {};
    need.targets = walk(s, sentence, position, -1, width, b.epoch, ignore) + walk(s, sentence, position, 1, width, b.epoch, ignore);
    need.blocks = s.per_pair ? need.targets : need.targets > 0;
    need.contexts = (uint64_t)need.blocks * (1 + s.negatives);
    need.terms = (uint64_t)need.targets * (1 + s.negatives);
    return need;
}

static __device__ struct need measure_row(const struct build &b, uint64_t example, uint32_t *too_long) {
    const struct example_source &s = b.source;
    struct need need = {0, 0, 0, 0};
    struct row_example row = find_row(s, example, b.epoch);
    if (row.count < 2) return need;
    uint64_t wanted = s.positives ? s.positives : row.count - 1;
    if (row.count - 1 < wanted && !s.short_repeat) return need;
    uint64_t negatives = s.per_pair ? wanted * s.negatives : s.negatives;
    if (negatives > MOST_NEGATIVES || wanted > UINT32_MAX / 2) {
        atomicMax(too_long, (uint32_t)(wanted < UINT32_MAX ? wanted : UINT32_MAX));
        return need;
    }
    need.blocks = need.targets = 1;
    need.contexts = need.terms = wanted + negatives;
    return need;
}

static __global__ void measure(struct build b, struct need *needs, uint32_t *too_long) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > b.count) return;
    struct need need = {0, 0, 0, 0}; /* also behind the last example, where the sums end */
    if (i < b.count) {
        uint64_t example = example_at(b, i);
        if (is_wanted(b, example))
            need = b.source.mode == EXAMPLE_WINDOW ? measure_window(b, example) : measure_row(b, example, too_long);
    }
    needs[i] = need;
}

/* What the host waits for. */
struct measured {
    struct need total;
    uint32_t too_long;
};
static __global__ void tell(const struct need *total, const uint32_t *too_long, struct measured *to) {
    to->total = *total;
    to->too_long = *too_long;
    __threadfence_system();
}

/* ---- fill ---- */

static __device__ void fill_window(const struct build &b, const struct built &to, uint64_t position, const struct need &at,
                                   uint32_t targets) {
    const struct example_source &s = b.source;
    struct sentence sentence = find_sentence(s, position, b.epoch);
    struct reader reader;
    reader.group = UINT64_MAX;
    uint32_t middle = kept_id(s, sentence, position, b.epoch, reader), width = window_width(s, position, b.epoch);
    uint32_t *ids = to.target_ids + at.targets;
    uint32_t left = walk(s, sentence, position, -1, width, b.epoch, [=](uint32_t id, uint32_t n) { ids[n] = id; });
    for (uint32_t i = 0; i < left / 2; i++) {
        uint32_t id = ids[i];
        ids[i] = ids[left - 1 - i];
        ids[left - 1 - i] = id;
    }
    walk(s, sentence, position, 1, width, b.epoch, [=](uint32_t id, uint32_t n) { ids[left + n] = id; });
    uint32_t blocks = s.per_pair ? targets : 1, each = s.per_pair ? 1 : targets, contexts = 1 + s.negatives;
    for (uint32_t i = 0; i < targets; i++) to.target_block[at.targets + i] = at.blocks + (s.per_pair ? i : 0);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t block = at.blocks + i;
        to.target_starts[block] = at.targets + i * each;
        to.context_starts[block] = (uint32_t)at.contexts + i * contexts;
        to.term_starts[block] = (uint32_t)at.terms + i * each * contexts;
        to.positives[block] = 1;
        to.block_example[block] = position;
        to.block_slot[block] = i * s.negatives;
        to.context_ids[at.contexts + (uint64_t)i * contexts] = middle;
    }
}

static __device__ bool among(uint32_t id, const uint32_t *ids, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

static __device__ void fill_positives(const struct build &b, const struct row_example &row, uint64_t example,
                                      uint32_t *contexts) {
    const struct example_source &s = b.source;
    const uint32_t *items = s.ids + row.start;
    uint64_t others = row.count - 1;
    if (s.positives == 0) {
        for (uint64_t i = 0; i < others; i++) contexts[i] = items[i + (i >= row.target)];
        return;
    }
    uint32_t wanted = s.positives;
    bool replacement = s.replacement || others < wanted;
    struct draw4 drawn;
    for (uint32_t j = 0; j < wanted; j++) {
        if (j % 2 == 0) drawn = draw_at(s.seed, DRAW_POSITIVE, example, b.epoch, j / 2);
        uint64_t bits = j & 1 ? draw_pair(drawn, 1) : draw_pair(drawn, 0), last = others - wanted + j;
        uint64_t place = draw_below(bits, replacement ? others : last + 1);
        if (!replacement && among((uint32_t)place, contexts, j)) place = last;
        contexts[j] = (uint32_t)place; /* places until all are drawn */
    }
    for (uint32_t j = 0; j < wanted; j++) contexts[j] = items[contexts[j] + (contexts[j] >= row.target)];
}

static __device__ void fill_row(const struct build &b, const struct built &to, uint64_t example, const struct need &at) {
    const struct example_source &s = b.source;
    struct row_example row = find_row(s, example, b.epoch);
    to.target_ids[at.targets] = s.ids[row.start + row.target];
    to.target_block[at.targets] = at.blocks;
    to.target_starts[at.blocks] = at.targets;
    to.context_starts[at.blocks] = (uint32_t)at.contexts;
    to.term_starts[at.blocks] = (uint32_t)at.terms;
    to.positives[at.blocks] = (uint32_t)(s.positives ? s.positives : row.count - 1);
    to.block_example[at.blocks] = example;
    to.block_slot[at.blocks] = 0;
    fill_positives(b, row, example, to.context_ids + at.contexts);
}

static __global__ void fill(struct build b, struct built to, const struct need *starts) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > b.count) return;
    struct need at = starts[i];
    if (i == b.count) {
        to.target_starts[at.blocks] = at.targets;
        to.context_starts[at.blocks] = (uint32_t)at.contexts;
        to.term_starts[at.blocks] = (uint32_t)at.terms;
        return;
    }
    uint32_t targets = starts[i + 1].targets - at.targets;
    if (!targets) return;
    uint64_t example = example_at(b, i);
    if (b.source.mode == EXAMPLE_WINDOW) fill_window(b, to, example, at, targets);
    else fill_row(b, to, example, at);
}

/* ---- negatives ---- */

static __device__ __forceinline__ uint32_t draw_negative(const struct example_source &s, uint64_t bits) {
    switch (s.law) {
    case NEGATIVE_UNIGRAM: return draw_alias(bits, s.alias, s.rows);
    case NEGATIVE_LOG_UNIFORM: return draw_log_uniform(bits, s.rows, s.log2_rows);
    default: return (uint32_t)draw_below(bits, s.rows);
    }
}

/* One block's own rows, which its negatives may not be where the source excludes. */
struct own_rows {
    const uint32_t *positives;
    uint32_t count, target; /* target: DRAW_NONE in window mode */
};

static __device__ __forceinline__ bool is_excluded(const struct own_rows &own, uint32_t id) {
    return id == own.target || among(id, own.positives, own.count);
}

/* The draw of a slot at an attempt. `drawn` is the slot pair's first attempt, which most slots end with. */
static __device__ __forceinline__ uint32_t negative_at(const struct build &b, uint64_t example, uint32_t slot, uint32_t attempt,
                                                       const struct draw4 &first) {
    struct draw4 drawn = first;
    if (attempt) drawn = draw_at(b.source.seed, DRAW_NEGATIVE, example, b.epoch, slot / 2 + (attempt << 20));
    return draw_negative(b.source, slot & 1 ? draw_pair(drawn, 1) : draw_pair(drawn, 0));
}

static __device__ struct own_rows own_rows_of(const struct build &b, const struct built &to, uint32_t block) {
    struct own_rows own;
    own.positives = to.context_ids + to.context_starts[block];
    own.count = to.positives[block];
    own.target = b.source.mode == EXAMPLE_WINDOW ? DRAW_NONE : to.target_ids[to.target_starts[block]];
    if (!b.source.exclude) own.count = 0, own.target = DRAW_NONE;
    return own;
}

static __device__ __forceinline__ void note_empty(const struct built &to, uint32_t block) {
    atomicAdd(&to.counts->empty_terms, (unsigned long long)(to.target_starts[block + 1] - to.target_starts[block]));
}

/* NEGATIVE_LANES lanes a block, each a pair of slots at a time. */
static __global__ void fill_negatives(struct build b, struct built to) {
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t number = thread / NEGATIVE_LANES;
    uint32_t lane = (uint32_t)(thread % NEGATIVE_LANES);
    if (number >= to.blocks) return;
    uint32_t block = (uint32_t)number, start = to.context_starts[block], end = to.context_starts[block + 1];
    uint32_t positives = to.positives[block], first = to.block_slot[block], count = end - start - positives;
    uint64_t example = to.block_example[block];
    struct own_rows own = own_rows_of(b, to, block);
    for (uint32_t i = start + lane; i < end; i += NEGATIVE_LANES) to.context_block[i] = block;
    for (uint32_t pair = first / 2 + lane; count && pair <= (first + count - 1) / 2; pair += NEGATIVE_LANES) {
        struct draw4 drawn = draw_at(b.source.seed, DRAW_NEGATIVE, example, b.epoch, pair);
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t slot = 2 * pair + half, id = DRAW_NONE;
            if (slot < first || slot >= first + count) continue;
            for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
                uint32_t tried = negative_at(b, example, slot, attempt, drawn);
                if (is_excluded(own, tried)) continue;
                id = tried;
                break;
            }
            if (id == DRAW_NONE) note_empty(to, block);
            to.context_ids[start + positives + slot - first] = id;
        }
    }
}

/* A warp a block. 32 slots at a time; within them the lowest slot that repeats an earlier one goes on to its next attempt
 * until none does: the ids are those of drawing slot after slot. */
static __global__ void fill_distinct_negatives(struct build b, struct built to) {
    uint64_t number = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    uint32_t lane = threadIdx.x & 31;
    if (number >= to.blocks) return;
    uint32_t block = (uint32_t)number, start = to.context_starts[block], end = to.context_starts[block + 1];
    uint32_t positives = to.positives[block], first = to.block_slot[block], count = end - start - positives;
    uint64_t example = to.block_example[block];
    struct own_rows own = own_rows_of(b, to, block);
    uint32_t *out = to.context_ids + start + positives;
    for (uint32_t i = start + lane; i < end; i += 32) to.context_block[i] = block;
    for (uint32_t base = 0; base < count; base += 32) {
        uint32_t slot = first + base + lane, attempt = 0, id = DRAW_NONE;
        bool mine = base + lane < count;
        struct draw4 drawn = draw_at(b.source.seed, DRAW_NEGATIVE, example, b.epoch, slot / 2);
        auto advance = [&]() { /* from `attempt` on, the first draw that no rule forbids but those of these 32 slots */
            for (id = DRAW_NONE; attempt < DRAW_ATTEMPTS; attempt++) {
                uint32_t tried = negative_at(b, example, slot, attempt, drawn);
                if (is_excluded(own, tried) || among(tried, out, base)) continue;
                id = tried;
                break;
            }
        };
        if (mine) advance();
        for (;;) {
            uint32_t same = __match_any_sync(0xFFFFFFFFu, mine ? id : DRAW_NONE);
            bool repeats = mine && id != DRAW_NONE && (same & ((1u << lane) - 1));
            uint32_t repeating = __ballot_sync(0xFFFFFFFFu, repeats);
            if (!repeating) break;
            if (lane == (uint32_t)__ffs(repeating) - 1) {
                attempt++;
                advance();
            }
        }
        if (mine && id == DRAW_NONE) note_empty(to, block);
        if (mine) out[base + lane] = id;
        __syncwarp();
    }
}

/* ---- index ---- */

static __global__ void count_up(uint32_t *to, uint64_t count) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = (uint32_t)i;
}

/* Of the sorted rows, which begin a run. */
static __global__ void mark_heads(const uint32_t *keys, uint32_t *heads, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) heads[i] = keys[i] != DRAW_NONE && (i == 0 || keys[i - 1] != keys[i]);
}

struct indexed {
    uint32_t *distinct, *distinct_ids, *distinct_starts;
    struct item *items, *longs;
    struct batch_counts *counts;
    int side;
};

static __global__ void place_runs(const uint32_t *keys, const uint32_t *order, const uint32_t *ranks, uint32_t count,
                                  struct indexed to) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint32_t key = keys[i];
    if (key == DRAW_NONE) {
        to.distinct[order[i]] = DRAW_NONE;
        return;
    }
    uint32_t row = ranks[i] - 1;
    bool head = i == 0 || keys[i - 1] != key, tail = i + 1 == count || keys[i + 1] != key;
    if (head) {
        to.distinct_ids[row] = key;
        to.distinct_starts[row] = i;
    }
    if (i + 1 == count || (tail && keys[i + 1] == DRAW_NONE)) {
        to.counts->distinct[to.side] = row + 1;
        to.distinct_starts[row + 1] = i + 1;
    }
    to.distinct[order[i]] = row | (head && tail ? SINGLE_BIT : 0);
}

/* Pieces of work, for rows with at least `least` occurrences. Where they stand in the list changes nothing but where
 * partial sums lie, so counters may hand out the places. */
static __global__ void cut_pieces(struct indexed to, uint32_t least) {
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    struct batch_counts *counts = to.counts;
    bool real = row < counts->distinct[to.side];
    uint32_t start = real ? to.distinct_starts[row] : 0, n = real ? to.distinct_starts[row + 1] - start : 0;
    if (n < least) n = 0;
    uint32_t whole = __ballot_sync(0xFFFFFFFFu, n > 0 && n <= UPDATE_PIECE), at = 0;
    if (lane == 0 && whole) at = atomicAdd(&counts->items[to.side], (uint32_t)__popc(whole));
    at = __shfl_sync(0xFFFFFFFFu, at, 0) + __popc(whole & ((1u << lane) - 1));
    if (n > 0 && n <= UPDATE_PIECE) {
        struct item item = {row, start, n, DRAW_NONE};
        to.items[at] = item;
    }
    if (n <= UPDATE_PIECE) return;
    uint32_t pieces = (n + UPDATE_PIECE - 1) / UPDATE_PIECE;
    uint32_t partial = atomicAdd(&counts->partials[to.side], pieces);
    at = atomicAdd(&counts->items[to.side], pieces);
    struct item all = {row, partial, pieces, DRAW_NONE};
    to.longs[atomicAdd(&counts->longs[to.side], 1u)] = all;
    for (uint32_t i = 0; i < pieces; i++) {
        struct item item = {row, start + i * UPDATE_PIECE, n - i * UPDATE_PIECE < UPDATE_PIECE ? n - i * UPDATE_PIECE : UPDATE_PIECE, partial + i};
        to.items[at + i] = item;
    }
}

/* ---- the host's side: room ---- */

static int grow_iota(struct backend *b, uint64_t count) {
    struct scratch *s = &b->scratch;
    if (count <= s->iota_count) return 0;
    if (gpu_grow(b, &s->iota, count * 4, "sorting a batch")) return -1;
    s->iota_count = s->iota.bytes / 4;
    count_up<<<grid(s->iota_count), THREADS, 0, b->prepare>>>((uint32_t *)s->iota.data, s->iota_count);
    CK_LAUNCH("count_up");
    return 0;
}

static int grow_side(struct backend *b, struct side_arrays *a, uint64_t n) {
    const char *what = "a batch's rows";
    uint64_t longs = n / UPDATE_PIECE + 1;
    return gpu_grow(b, &a->ids, n * 4, what) || gpu_grow(b, &a->block, n * 4, what) || gpu_grow(b, &a->distinct, n * 4, what) ||
                   gpu_grow(b, &a->distinct_ids, n * 4, what) || gpu_grow(b, &a->distinct_starts, (n + 1) * 4, what) ||
                   gpu_grow(b, &a->order, n * 4, what) || gpu_grow(b, &a->items, n * sizeof(struct item), what) ||
                   gpu_grow(b, &a->longs, longs * sizeof(struct item), what)
               ? -1
               : 0;
}

static int grow_stage(struct backend *b, struct stage *stage, const struct batch_sizes *sizes) {
    const char *what = "a batch's blocks";
    uint64_t blocks = (uint64_t)sizes->blocks + 1;
    return gpu_grow(b, &stage->target_starts, blocks * 4, what) || gpu_grow(b, &stage->context_starts, blocks * 4, what) ||
                   gpu_grow(b, &stage->term_starts, blocks * 4, what) || gpu_grow(b, &stage->positives, blocks * 4, what) ||
                   gpu_grow(b, &stage->block_slot, blocks * 4, what) || gpu_grow(b, &stage->block_example, blocks * 8, what) ||
                   gpu_grow(b, &stage->coefficients, (uint64_t)sizes->terms * 4, "a batch's coefficients") ||
                   gpu_grow(b, &stage->losses, (uint64_t)sizes->targets * 8, "a batch's losses") ||
                   grow_side(b, &stage->side[SIDE_TARGET], sizes->targets) ||
                   grow_side(b, &stage->side[SIDE_CONTEXT], sizes->contexts)
               ? -1
               : 0;
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
    to.target_block = (uint32_t *)stage->side[SIDE_TARGET].block.data;
    to.context_ids = (uint32_t *)stage->side[SIDE_CONTEXT].ids.data;
    to.context_block = (uint32_t *)stage->side[SIDE_CONTEXT].block.data;
    to.blocks = stage->sizes.blocks;
    to.counts = stage->counts;
    return to;
}

struct side_view cuda_side(const struct stage *stage, int side) {
    const struct side_arrays *a = &stage->side[side];
    struct side_view view;
    view.ids = (const uint32_t *)a->ids.data;
    view.block = (const uint32_t *)a->block.data;
    view.distinct = (const uint32_t *)a->distinct.data;
    view.distinct_ids = (const uint32_t *)a->distinct_ids.data;
    view.distinct_starts = (const uint32_t *)a->distinct_starts.data;
    view.order = (const uint32_t *)a->order.data;
    view.items = (const struct item *)a->items.data;
    view.longs = (const struct item *)a->longs.data;
    return view;
}

/* ---- the host's side: index ---- */

/* Bits of a row's id that sorting must look at; DRAW_NONE, all ones in them, must come behind the last row. */
static int key_bits(uint64_t rows) {
    int bits = 1;
    while (bits < 32 && ((uint64_t)1 << bits) - 1 < rows) bits++;
    return bits;
}

static int index_side(struct backend *b, struct stage *stage, int side, uint32_t n, uint64_t rows) {
    struct side_arrays *a = &stage->side[side];
    struct scratch *s = &b->scratch;
    size_t sorting = 0, scanning = 0;
    int bits = key_bits(rows);
    if (!n) return 0;
    const uint32_t *ids = (const uint32_t *)a->ids.data;
    uint32_t *order = (uint32_t *)a->order.data;
    if (grow_iota(b, n) || gpu_grow(b, &s->keys, (uint64_t)n * 4, "sorting a batch") ||
        gpu_grow(b, &s->ranks, (uint64_t)n * 4, "sorting a batch"))
        return -1;
    uint32_t *keys = (uint32_t *)s->keys.data, *ranks = (uint32_t *)s->ranks.data;
    const uint32_t *iota = (const uint32_t *)s->iota.data;
    CK(cub::DeviceRadixSort::SortPairs(NULL, sorting, ids, keys, iota, order, (int)n, 0, bits, b->prepare));
    CK(cub::DeviceScan::InclusiveSum(NULL, scanning, ranks, ranks, (int)n, b->prepare));
    if (gpu_grow(b, &s->temporary, sorting > scanning ? sorting : scanning, "sorting a batch")) return -1;
    CK(cub::DeviceRadixSort::SortPairs(s->temporary.data, sorting, ids, keys, iota, order, (int)n, 0, bits, b->prepare));
    mark_heads<<<grid(n), THREADS, 0, b->prepare>>>(keys, ranks, n);
    CK_LAUNCH("mark_heads");
    CK(cub::DeviceScan::InclusiveSum(s->temporary.data, scanning, ranks, ranks, (int)n, b->prepare));
    struct indexed to;
    to.distinct = (uint32_t *)a->distinct.data;
    to.distinct_ids = (uint32_t *)a->distinct_ids.data;
    to.distinct_starts = (uint32_t *)a->distinct_starts.data;
    to.items = (struct item *)a->items.data;
    to.longs = (struct item *)a->longs.data;
    to.counts = stage->counts;
    to.side = side;
    place_runs<<<grid(n), THREADS, 0, b->prepare>>>(keys, order, ranks, n, to);
    CK_LAUNCH("place_runs");
    /* Contexts of one-target blocks that stand once are updated where they are first read. */
    uint32_t least = side == SIDE_CONTEXT && stage->one_target ? 2 : 1;
    cut_pieces<<<grid(n < rows ? n : rows), THREADS, 0, b->prepare>>>(to, least);
    CK_LAUNCH("cut_pieces");
    return 0;
}

static int index_batch(struct backend *b, struct stage *stage, uint64_t rows) {
    if (index_side(b, stage, SIDE_TARGET, stage->sizes.targets, rows) ||
        index_side(b, stage, SIDE_CONTEXT, stage->sizes.contexts, rows))
        return -1;
    CK(cudaEventRecord(stage->prepared, b->prepare));
    stage->built = 1;
    return 0;
}

/* ---- the host's side: make ---- */

static struct build build_of(struct backend *b, const struct batch_request *request) {
    struct build build;
    memset(&build, 0, sizeof build);
    build.source = b->source.view;
    build.first = request->first;
    build.count = request->count;
    build.epoch = request->epoch;
    build.held_out = request->held_out;
    if (build.source.shuffle)
        build.order = shuffle_make(example_count(&build.source), draw_at(build.source.seed, DRAW_SHUFFLE, 0, request->epoch, 0));
    return build;
}

/* Where each example's blocks begin, in scratch.offsets; the totals in *total. Waits for them. */
static int measure_batch(struct backend *b, const struct build *build, struct need *total) {
    struct scratch *s = &b->scratch;
    uint64_t n = build->count + 1;
    size_t scanning = 0;
    struct need zero = {0, 0, 0, 0};
    if (gpu_grow(b, &s->sizes, n * sizeof(struct need) + 16, "a batch's sizes") ||
        gpu_grow(b, &s->offsets, n * sizeof(struct need), "a batch's sizes"))
        return -1;
    uint32_t *too_long = (uint32_t *)s->sizes.data; /* in front of the sizes */
    struct need *needs = (struct need *)((char *)s->sizes.data + 16), *offsets = (struct need *)s->offsets.data;
    CK(cub::DeviceScan::ExclusiveScan(NULL, scanning, needs, offsets, need_sum(), zero, (int)n, b->prepare));
    if (gpu_grow(b, &s->temporary, scanning, "a batch's sizes")) return -1;
    CK(cudaMemsetAsync(too_long, 0, 4, b->prepare));
    measure<<<grid(n), THREADS, 0, b->prepare>>>(*build, needs, too_long);
    CK_LAUNCH("measure");
    CK(cub::DeviceScan::ExclusiveScan(s->temporary.data, scanning, needs, offsets, need_sum(), zero, (int)n, b->prepare));
    struct measured *measured = (struct measured *)b->measured;
    tell<<<1, 1, 0, b->prepare>>>(offsets + build->count, too_long, measured);
    CK_LAUNCH("tell");
    CK(cudaEventRecord(b->sized, b->prepare));
    CK(cudaEventSynchronize(b->sized));
    if (measured->too_long)
        return fail("an example with %u positives is too long; set examples.positives, or negatives.per = example",
                    measured->too_long);
    *total = measured->total;
    return 0;
}

static int take_sizes(struct stage *stage, const struct need *total) {
    if (total->terms >= (uint64_t)1 << 31 || total->contexts >= (uint64_t)1 << 31)
        return fail("a batch of %llu contexts and %llu pairs of rows is more than 2^31; lower train.batch",
                    (unsigned long long)total->contexts, (unsigned long long)total->terms);
    stage->sizes.blocks = total->blocks;
    stage->sizes.targets = total->targets;
    stage->sizes.contexts = (uint32_t)total->contexts;
    stage->sizes.terms = (uint32_t)total->terms;
    return 0;
}

/* Targets with one positive each, summed over the blocks. */
static uint64_t pairs_of(const struct example_source *s, const struct batch_sizes *sizes) {
    if (s->mode == EXAMPLE_WINDOW) return sizes->targets;
    if (s->per_pair) return sizes->contexts / (1 + s->negatives);
    return sizes->contexts - (uint64_t)s->negatives * sizes->blocks;
}

static int begin_batch(struct backend *b, unsigned number, struct stage **out) {
    struct stage *stage = &b->stages[number];
    if (number >= b->depth) return fail("stage %u of a backend with %u", number, b->depth);
    CK(cudaSetDevice(b->device));
    if (cuda_finish(b, stage)) return -1;
    stage->built = stage->gathered = 0;
    CK(cudaMemsetAsync(stage->counts, 0, sizeof *stage->counts, b->prepare));
    *out = stage;
    return 0;
}

int cuda_make_batch(struct backend *b, unsigned number, const struct batch_request *request) {
    struct stage *stage;
    struct build build;
    struct need total = {0, 0, 0, 0};
    if (!b->source.ready) return fail("a batch was asked for before its source was given");
    if (request->count >= (uint64_t)1 << 31) return fail("a batch of %llu examples is more than 2^31; lower train.batch", (unsigned long long)request->count);
    if (begin_batch(b, number, &stage)) return -1;
    build = build_of(b, request);
    const struct example_source *s = &build.source;
    if (request->count && measure_batch(b, &build, &total)) return -1;
    if (take_sizes(stage, &total) || grow_stage(b, stage, &stage->sizes)) return -1;
    stage->one_target = s->mode != EXAMPLE_WINDOW || s->per_pair;
    stage->words = s->mode == EXAMPLE_WINDOW ? request->count : 0;
    stage->pairs = pairs_of(s, &stage->sizes);
    if (!stage->sizes.blocks) return index_batch(b, stage, s->rows);
    struct built to = built_of(stage);
    fill<<<grid(build.count + 1), THREADS, 0, b->prepare>>>(build, to, (const struct need *)b->scratch.offsets.data);
    CK_LAUNCH("fill");
    if (s->distinct) {
        fill_distinct_negatives<<<grid((uint64_t)to.blocks * 32), THREADS, 0, b->prepare>>>(build, to);
        CK_LAUNCH("fill_distinct_negatives");
    } else {
        fill_negatives<<<grid((uint64_t)to.blocks * NEGATIVE_LANES), THREADS, 0, b->prepare>>>(build, to);
        CK_LAUNCH("fill_negatives");
    }
    return index_batch(b, stage, s->rows);
}

/* ---- the host's side: set and view ---- */

/* The arrays of a batch in 32 bits, with the blocks of occurrences and the places of terms. */
static int pack_view(const struct batch_view *view, struct need *total, uint32_t **packed, int *one_target, uint64_t *pairs) {
    uint64_t blocks = view->blocks, targets = view->target_starts[blocks], contexts = view->context_starts[blocks];
    uint32_t *starts[3], *target_block, *context_block;
    uint64_t terms = 0;
    *packed = (uint32_t *)mem_alloc(3 * (blocks + 1) + targets + contexts, 4, "a batch");
    if (!*packed) return -1;
    for (int i = 0; i < 3; i++) starts[i] = *packed + (uint64_t)i * (blocks + 1);
    target_block = starts[2] + blocks + 1;
    context_block = target_block + targets;
    *one_target = 1;
    *pairs = 0;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t t = view->target_starts[i + 1] - view->target_starts[i], c = view->context_starts[i + 1] - view->context_starts[i];
        starts[0][i] = (uint32_t)view->target_starts[i];
        starts[1][i] = (uint32_t)view->context_starts[i];
        starts[2][i] = (uint32_t)terms;
        for (uint64_t j = 0; j < t; j++) target_block[view->target_starts[i] + j] = (uint32_t)i;
        for (uint64_t j = 0; j < c; j++) context_block[view->context_starts[i] + j] = (uint32_t)i;
        terms += t * c;
        *pairs += t * view->positives[i];
        if (t != 1) *one_target = 0;
    }
    starts[0][blocks] = (uint32_t)targets;
    starts[1][blocks] = (uint32_t)contexts;
    starts[2][blocks] = (uint32_t)terms;
    total->blocks = (uint32_t)blocks;
    total->targets = (uint32_t)targets;
    total->contexts = contexts;
    total->terms = terms;
    return 0;
}

static uint64_t rows_of(const struct batch_view *view) {
    uint32_t most = 0;
    for (uint64_t i = 0; i < view->target_starts[view->blocks]; i++)
        if (view->target_ids[i] > most) most = view->target_ids[i];
    for (uint64_t i = 0; i < view->context_starts[view->blocks]; i++)
        if (view->context_ids[i] > most) most = view->context_ids[i];
    return (uint64_t)most + 1;
}

static int upload(struct backend *b, const struct gpu_array *to, const uint32_t *from, uint64_t count) {
    if (count) CK(cudaMemcpyAsync(to->data, from, count * 4, cudaMemcpyHostToDevice, b->prepare));
    return 0;
}

static int upload_view(struct backend *b, struct stage *stage, const struct batch_view *view, const uint32_t *packed) {
    uint64_t blocks = view->blocks, targets = stage->sizes.targets, contexts = stage->sizes.contexts;
    const uint32_t *target_block = packed + 3 * (blocks + 1);
    if (upload(b, &stage->target_starts, packed, blocks + 1) ||
        upload(b, &stage->context_starts, packed + blocks + 1, blocks + 1) ||
        upload(b, &stage->term_starts, packed + 2 * (blocks + 1), blocks + 1) ||
        upload(b, &stage->positives, view->positives, blocks) ||
        upload(b, &stage->side[SIDE_TARGET].ids, view->target_ids, targets) ||
        upload(b, &stage->side[SIDE_TARGET].block, target_block, targets) ||
        upload(b, &stage->side[SIDE_CONTEXT].ids, view->context_ids, contexts) ||
        upload(b, &stage->side[SIDE_CONTEXT].block, target_block + targets, contexts))
        return -1;
    CK(cudaStreamSynchronize(b->prepare)); /* the caller's arrays may go */
    return 0;
}

int cuda_set_batch(struct backend *b, unsigned number, const struct batch_view *view) {
    struct stage *stage;
    struct need total;
    uint32_t *packed = NULL;
    int result = -1;
    if (view->blocks >= (uint64_t)1 << 31 || view->target_starts[view->blocks] >= (uint64_t)1 << 31)
        return fail("a batch of %llu blocks is more than 2^31", (unsigned long long)view->blocks);
    if (begin_batch(b, number, &stage) || pack_view(view, &total, &packed, &stage->one_target, &stage->pairs)) goto out;
    if (take_sizes(stage, &total) || grow_stage(b, stage, &stage->sizes) || upload_view(b, stage, view, packed)) goto out;
    stage->words = 0;
    result = index_batch(b, stage, rows_of(view));
out:
    free(packed);
    return result;
}

static int download(struct backend *b, void *to, const struct gpu_array *from, uint64_t bytes) {
    if (bytes) CK(cudaMemcpyAsync(to, from->data, bytes, cudaMemcpyDeviceToHost, b->prepare));
    return 0;
}

/* The host's copy, slots left out taken away. */
int cuda_batch_view(struct backend *b, unsigned number, struct batch_view *view) {
    struct stage *stage = &b->stages[number];
    uint64_t blocks = stage->sizes.blocks, targets = stage->sizes.targets, contexts = stage->sizes.contexts, kept = 0;
    uint64_t sizes[5] = {(blocks + 1) * 8, (blocks + 1) * 8, (blocks + 1) * 4, (targets + 1) * 4, (contexts + 1) * 4};
    uint32_t *starts = NULL;
    int result = -1;
    if (number >= b->depth || !stage->built) return fail("stage %u has no batch to look at", number);
    for (int i = 0; i < 5; i++) {
        free(stage->view_memory[i]);
        stage->view_memory[i] = mem_zalloc(sizes[i], 1, "a view of a batch");
        if (!stage->view_memory[i]) return -1;
    }
    uint64_t *target_starts = (uint64_t *)stage->view_memory[0], *context_starts = (uint64_t *)stage->view_memory[1];
    uint32_t *positives = (uint32_t *)stage->view_memory[2], *target_ids = (uint32_t *)stage->view_memory[3];
    uint32_t *context_ids = (uint32_t *)stage->view_memory[4];
    starts = (uint32_t *)mem_zalloc(2 * (blocks + 1), 4, "a view of a batch");
    if (!starts) return -1;
    if (blocks && (download(b, starts, &stage->target_starts, (blocks + 1) * 4) ||
                   download(b, starts + blocks + 1, &stage->context_starts, (blocks + 1) * 4) ||
                   download(b, positives, &stage->positives, blocks * 4) ||
                   download(b, target_ids, &stage->side[SIDE_TARGET].ids, targets * 4) ||
                   download(b, context_ids, &stage->side[SIDE_CONTEXT].ids, contexts * 4)))
        goto out;
    if (cudaStreamSynchronize(b->prepare) != cudaSuccess) {
        cuda_failed(cudaGetLastError(), "copying a batch to the host");
        goto out;
    }
    for (uint64_t i = 0; i <= blocks; i++) target_starts[i] = starts[i];
    for (uint64_t i = 0; i < blocks; i++) {
        uint32_t first = starts[blocks + 1 + i], end = starts[blocks + 2 + i];
        context_starts[i] = kept;
        for (uint32_t j = first; j < end; j++)
            if (context_ids[j] != DRAW_NONE) context_ids[kept++] = context_ids[j];
    }
    context_starts[blocks] = kept;
    view->blocks = blocks;
    view->target_starts = target_starts;
    view->context_starts = context_starts;
    view->positives = positives;
    view->target_ids = target_ids;
    view->context_ids = context_ids;
    result = 0;
out:
    free(starts);
    return result;
}

/* ---- the source ---- */

static int copy_to_gpu(struct backend *b, void **owned, uint64_t *owned_bytes, const void *from, uint64_t bytes, const char *what) {
    if (gpu_take(b, owned, bytes, what)) return -1;
    *owned_bytes = bytes;
    if (bytes) CK(cudaMemcpy(*owned, from, bytes, cudaMemcpyHostToDevice));
    return 0;
}

/* An array that the GPU reads over the link: the caller's memory where the driver takes it, a pinned copy otherwise. */
static int share_with_gpu(struct backend *b, int which, const void *from, uint64_t bytes, const char *what, const void **seen) {
    struct cuda_source *source = &b->source;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uint64_t)(uintptr_t)from, start = address / page * page;
    uint64_t length = (address + bytes - start + page - 1) / page * page;
    void *device = NULL;
    if (cudaHostRegister((void *)(uintptr_t)start, length, cudaHostRegisterMapped | cudaHostRegisterReadOnly) == cudaSuccess) {
        source->pinned[which] = (void *)(uintptr_t)start;
        source->registered[which] = 1;
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

/* On the GPU where it takes at most a quarter of what is left; over the link otherwise. */
static int place_stream(struct backend *b, int which, const void *from, uint64_t bytes, const char *what, const void **seen) {
    struct cuda_source *source = &b->source;
    if (bytes <= (b->gpu_budget - b->gpu_used) / 4) {
        if (copy_to_gpu(b, &source->owned[which], &source->owned_bytes[which], from, bytes, what)) return -1;
        *seen = source->owned[which];
        return 0;
    }
    return share_with_gpu(b, which, from, bytes, what, seen);
}

void cuda_source_drop(struct backend *b) {
    struct cuda_source *source = &b->source;
    for (int i = 0; i < 4; i++) gpu_give(b, source->owned[i], source->owned_bytes[i]);
    for (int i = 0; i < 2; i++) {
        if (source->registered[i]) cudaHostUnregister(source->pinned[i]);
        else pinned_give(b, (char *)source->pinned[i], source->pinned_bytes[i]);
    }
    memset(source, 0, sizeof *source);
}

int cuda_source_set(struct backend *b, const struct example_source *from) {
    struct cuda_source *source = &b->source;
    const void *seen = NULL;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b)) return -1;
    cuda_source_drop(b);
    source->host = source->view = *from;
    source->view.keep = NULL;
    source->view.alias = NULL;
    if (place_stream(b, 0, from->ids, from->tokens * 4, "the id stream", &seen)) return -1;
    source->view.ids = (const uint32_t *)seen;
    if (place_stream(b, 1, from->starts, (from->sentences + 1) * 8, "the sentences", &seen)) return -1;
    source->view.starts = (const uint64_t *)seen;
    if (from->keep) {
        if (copy_to_gpu(b, &source->owned[2], &source->owned_bytes[2], from->keep, from->rows * 4, "subsampling")) return -1;
        source->view.keep = (const uint32_t *)source->owned[2];
    }
    if (from->alias) {
        if (copy_to_gpu(b, &source->owned[3], &source->owned_bytes[3], from->alias, from->rows * sizeof *from->alias, "the negatives' table"))
            return -1;
        source->view.alias = (const struct alias *)source->owned[3];
    }
    source->ready = 1;
    return 0;
}
