/* index: the two sides of a batch sorted by row: distinct rows, occurrences by row, rows that stand once, pieces
 * of work. DRAW_NONE, a slot left out or capacity that a batch did not fill, sorts last and counts for nothing.
 */
#include "cuda.cuh"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

enum { THREADS = 256 };

static __global__ void count_up(uint32_t *to, uint64_t count) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = (uint32_t)i;
}

/* Of sorted rows, which begin a run: 1 or 0, so that their running sum numbers the runs from 1. */
struct is_head {
    const uint32_t *keys;
    __host__ __device__ uint32_t operator()(uint32_t i) const {
        return keys[i] != DRAW_NONE && (i == 0 || keys[i - 1] != keys[i]);
    }
};

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
        struct item item = {row, start + i * UPDATE_PIECE,
                            n - i * UPDATE_PIECE < UPDATE_PIECE ? n - i * UPDATE_PIECE : UPDATE_PIECE, partial + i};
        to.items[at + i] = item;
    }
}

/* ---- the host's side ---- */

/* Bits of a row's id that sorting must look at; DRAW_NONE, all ones in them, must come behind the last row. */
static int key_bits(uint64_t rows) {
    int bits = 1;
    while (bits < 32 && ((uint64_t)1 << bits) - 1 < rows) bits++;
    return bits;
}

/* 0, 1, 2 ..: what is sorted along with the ids. */
static int grow_iota(struct backend *b, struct batch_builder *builder, uint64_t count) {
    struct scratch *s = &builder->scratch;
    if (count <= s->iota_count) return 0;
    if (gpu_grow(b, &s->iota, sorted_bytes(count), "sorting a batch")) return -1;
    s->iota_count = s->iota.bytes / 4;
    count_up<<<blocks_for(s->iota_count, THREADS), THREADS, 0, builder->stream>>>((uint32_t *)s->iota.data,
                                                                                  s->iota_count);
    CK_LAUNCH("count_up");
    return 0;
}

struct sorting {
    const uint32_t *ids, *iota;
    uint32_t *keys, *order, *ranks;
    uint32_t count;
    int bits;
    cudaStream_t stream;
};

static cudaError_t sort_ids(const struct sorting *s, void *temporary, size_t *bytes) {
    return cub::DeviceRadixSort::SortPairs(temporary, *bytes, s->ids, s->keys, s->iota, s->order, (int)s->count, 0,
                                           s->bits, s->stream);
}

static cudaError_t rank_runs(const struct sorting *s, void *temporary, size_t *bytes) {
    auto heads = thrust::make_transform_iterator(thrust::make_counting_iterator<uint32_t>(0), is_head{s->keys});
    return cub::DeviceScan::InclusiveSum(temporary, *bytes, heads, s->ranks, (int)s->count, s->stream);
}

int cuda_index_temporary(uint32_t count, uint64_t rows, size_t *bytes) {
    struct sorting sorting = {NULL, NULL, NULL, NULL, NULL, count, key_bits(rows), NULL};
    size_t sort = 0, rank = 0;
    CK(sort_ids(&sorting, NULL, &sort));
    CK(rank_runs(&sorting, NULL, &rank));
    *bytes = count ? std::max<size_t>(sort_bytes(count), std::max(sort, rank)) : 0;
    return 0;
}

static int reserve_side(struct backend *b, struct batch_builder *builder, int side, uint32_t count, uint64_t rows) {
    struct scratch *s = &builder->scratch;
    const char *what = "sorting a batch";
    size_t temporary = 0;
    if (cuda_index_temporary(count, rows, &temporary)) return -1;
    return grow_iota(b, builder, count) || gpu_grow(b, &s->keys[side], sorted_bytes(count), what) ||
                   gpu_grow(b, &s->ranks[side], sorted_bytes(count), what) ||
                   gpu_grow(b, &s->sorting[side], temporary, what)
               ? -1
               : 0;
}

int cuda_index_reserve(struct backend *b, struct batch_builder *builder, const struct batch_sizes *capacity,
                       uint64_t rows) {
    return reserve_side(b, builder, SIDE_TARGET, capacity->targets, rows) ||
                   reserve_side(b, builder, SIDE_CONTEXT, capacity->contexts, rows)
               ? -1
               : 0;
}

int cuda_index_ids(const struct id_index *x, cudaStream_t stream) {
    size_t capacity = x->temporary_bytes;
    if (!x->count) return 0;
    struct sorting sorting = {x->ids, x->iota, x->keys, x->order, x->ranks, x->count, key_bits(x->rows), stream};
    CK(sort_ids(&sorting, x->temporary, &capacity));
    CK(rank_runs(&sorting, x->temporary, &capacity));
    struct indexed to;
    to.distinct = x->distinct;
    to.distinct_ids = x->distinct_ids;
    to.distinct_starts = x->distinct_starts;
    to.items = x->items;
    to.longs = x->longs;
    to.counts = x->counts;
    to.side = x->side;
    place_runs<<<blocks_for(x->count, THREADS), THREADS, 0, stream>>>(x->keys, x->order, x->ranks, x->count, to);
    CK_LAUNCH("place_runs");
    cut_pieces<<<blocks_for(x->count < x->rows ? x->count : x->rows, THREADS), THREADS, 0, stream>>>(to, x->least);
    CK_LAUNCH("cut_pieces");
    return 0;
}

static int index_side(struct stage *stage, int side, uint32_t count, uint64_t rows, cudaStream_t stream) {
    struct side_arrays *a = &stage->side[side];
    struct scratch *s = &stage->builder->scratch;
    struct id_index x;
    x.ids = (const uint32_t *)a->ids.data;
    x.iota = (const uint32_t *)s->iota.data;
    x.keys = (uint32_t *)s->keys[side].data;
    x.ranks = (uint32_t *)s->ranks[side].data;
    x.order = (uint32_t *)a->order.data;
    x.distinct = (uint32_t *)a->distinct.data;
    x.distinct_ids = (uint32_t *)a->distinct_ids[stage->copy].data;
    x.distinct_starts = (uint32_t *)a->distinct_starts.data;
    x.items = (struct item *)a->items.data;
    x.longs = (struct item *)a->longs.data;
    x.counts = stage->counts;
    x.side = side;
    /* Contexts of one-target blocks that stand once are updated where they are first read. */
    x.least = side == SIDE_CONTEXT && stage->one_target ? 2 : 1;
    x.count = count;
    x.rows = rows;
    x.temporary = s->sorting[side].data;
    x.temporary_bytes = s->sorting[side].bytes;
    return cuda_index_ids(&x, stream);
}

int cuda_index(struct stage *stage, uint64_t rows) {
    struct batch_builder *builder = stage->builder;
    CK(cudaEventRecord(builder->forked, builder->stream));
    CK(cudaStreamWaitEvent(builder->beside, builder->forked, 0));
    if (index_side(stage, SIDE_TARGET, stage->sizes.targets, rows, builder->beside) ||
        index_side(stage, SIDE_CONTEXT, stage->sizes.contexts, rows, builder->stream))
        return -1;
    CK(cudaEventRecord(builder->joined, builder->beside));
    CK(cudaStreamWaitEvent(builder->stream, builder->joined, 0));
    return 0;
}
