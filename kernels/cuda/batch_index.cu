/* batch_index: sorts the ids of a row set, and finds its distinct rows, the places of each row, the rows that occur once, and the work items of
 * the update. The id DRAW_NONE (an empty slot, an id without a row, unused capacity) is sorted to the end and ignored. */
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

/* Returns 1 for a sorted id that differs from the one before it, otherwise 0. The prefix sum of these values is 1 + the index of the id's distinct
 * row. */
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
                                  uint32_t least, struct indexed to) {
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
    to.distinct[order[i]] = row | (head && tail && least > 1 ? SINGLE_BIT : 0);
}

/* Returns a different index of a list to each thread whose `wants` is true. One thread adds to the counter for its whole thread block, since
 * otherwise many warps would wait for the counter one after the other. */
static __device__ uint32_t take_place(uint32_t *counter, bool wants) {
    __shared__ uint32_t first, taken;
    uint32_t lane = threadIdx.x & 31, wanting = __ballot_sync(0xFFFFFFFFu, wants), of_warp = 0;
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    if (lane == 0 && wanting) of_warp = atomicAdd(&taken, (uint32_t)__popc(wanting));
    __syncthreads();
    if (threadIdx.x == 0) first = taken ? atomicAdd(counter, taken) : 0;
    __syncthreads();
    return first + __shfl_sync(0xFFFFFFFFu, of_warp, 0) + __popc(wanting & ((1u << lane) - 1));
}

/* Divides the work on a row with n places into items. start: index in the order of the row's first place. */
static __device__ void cut_row(const struct indexed &to, uint32_t row, uint32_t start, uint32_t n) {
    struct batch_counts *counts = to.counts;
    uint32_t items = (n + ITEM_MOST - 1) / ITEM_MOST, partial = atomicAdd(&counts->partials[to.side], items);
    uint32_t at = atomicAdd(&counts->items[to.side], items);
    to.longs[atomicAdd(&counts->longs[to.side], 1u)] = {row, partial, items, DRAW_NONE};
    for (uint32_t i = 0; i < items; i++) {
        uint32_t left = n - i * ITEM_MOST;
        to.items[at + i] = {row, start + i * ITEM_MOST, left < ITEM_MOST ? left : (uint32_t)ITEM_MOST, partial + i};
    }
}

/* Makes work items for rows with at least `least` occurrences. Their order may differ from run to run, but it only decides where partial sums are
 * stored. */
static __global__ void cut_items(struct indexed to, uint32_t least) {
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x, rows = to.counts->distinct[to.side];
    bool real = row < rows;
    if (row - threadIdx.x >= rows) return;
    uint32_t start = real ? to.distinct_starts[row] : 0, n = real ? to.distinct_starts[row + 1] - start : 0;
    if (n < least) n = 0;
    bool whole = n > 0 && n <= ITEM_MOST;
    uint32_t at = take_place(&to.counts->items[to.side], whole);
    if (whole) to.items[at] = {row, start, n, DRAW_NONE};
    if (n > ITEM_MOST) cut_row(to, row, start, n);
}

/* ---- the host's side ---- */

/* Returns the number of low bits by which ids must be sorted so that DRAW_NONE, whose bits are all ones, is sorted after all rows. */
static int key_bits(uint64_t rows) {
    int bits = 1;
    while (bits < 32 && ((uint64_t)1 << bits) - 1 < rows) bits++;
    return bits;
}

int cuda_grow_iota(struct backend *b, struct iota *iota, uint64_t count, const char *what, cudaStream_t stream) {
    if (count <= iota->count) return 0;
    if (gpu_grow(b, &iota->numbers, sorted_bytes(count), what)) return -1;
    iota->count = iota->numbers.bytes / sizeof(uint32_t);
    count_up<<<blocks_for(iota->count, THREADS), THREADS, 0, stream>>>((uint32_t *)iota->numbers.data, iota->count);
    CK_LAUNCH("count_up");
    return 0;
}

struct sort {
    const uint32_t *ids, *places;
    uint32_t *keys, *order, *ranks;
    uint32_t count;
    int bits;
    cudaStream_t stream;
};

static cudaError_t sort_ids(const struct sort *s, void *temporary, size_t *bytes) {
    return cub::DeviceRadixSort::SortPairs(temporary, *bytes, s->ids, s->keys, s->places, s->order, (int)s->count, 0, s->bits, s->stream);
}

static cudaError_t rank_runs(const struct sort *s, void *temporary, size_t *bytes) {
    auto heads = thrust::make_transform_iterator(thrust::make_counting_iterator<uint32_t>(0), is_head{s->keys});
    return cub::DeviceScan::InclusiveSum(temporary, *bytes, heads, s->ranks, (int)s->count, s->stream);
}

static int temporary_bytes(uint32_t count, uint64_t rows, size_t *bytes) {
    struct sort s = {NULL, NULL, NULL, NULL, NULL, count, key_bits(rows), NULL};
    size_t sort = 0, rank = 0;
    CK(sort_ids(&s, NULL, &sort));
    CK(rank_runs(&s, NULL, &rank));
    *bytes = count ? std::max<size_t>(sort_bytes(count), std::max(sort, rank)) : 0;
    return 0;
}

int cuda_grow_sorting(struct backend *b, struct sorting *sorting, uint32_t count, uint64_t rows, const char *what) {
    size_t temporary = 0;
    if (sorting->count == count && sorting->rows == rows) return 0;
    sorting->count = 0;
    if (temporary_bytes(count, rows, &temporary) || gpu_grow(b, &sorting->keys, sorted_bytes(count), what) ||
        gpu_grow(b, &sorting->ranks, sorted_bytes(count), what) || gpu_grow(b, &sorting->temporary, temporary, what))
        return -1;
    sorting->count = count;
    sorting->rows = rows;
    return 0;
}

void cuda_drop_sorting(struct backend *b, struct sorting *sorting) {
    for (struct gpu_array *array : {&sorting->keys, &sorting->ranks, &sorting->temporary}) gpu_drop(b, array);
    sorting->count = 0;
}

static struct sort sort_of(const struct row_set *set, const struct indexing *by) {
    const struct sorting *sorting = by->sorting;
    return {by->ids,
            by->places,
            (uint32_t *)sorting->keys.data,
            (uint32_t *)set->order.data,
            (uint32_t *)sorting->ranks.data,
            by->count,
            key_bits(by->rows),
            by->stream};
}

int cuda_sort(struct row_set *set, const struct indexing *by) {
    size_t temporary = by->sorting->temporary.bytes;
    struct sort s = sort_of(set, by);
    if (by->count) CK(sort_ids(&s, by->sorting->temporary.data, &temporary));
    return 0;
}

int cuda_index(struct row_set *set, const struct indexing *by) {
    size_t temporary = by->sorting->temporary.bytes;
    struct sort s = sort_of(set, by);
    uint32_t count = by->count;
    struct indexed to;
    if (!count) return 0;
    if (cuda_sort(set, by)) return -1;
    CK(rank_runs(&s, by->sorting->temporary.data, &temporary));
    to.distinct = (uint32_t *)set->distinct.data;
    to.distinct_ids = (uint32_t *)set->distinct_ids[set->copy].data;
    to.distinct_starts = (uint32_t *)set->distinct_starts.data;
    to.items = (struct item *)set->items.data;
    to.longs = (struct item *)set->longs.data;
    to.counts = set->counts;
    to.side = set->side;
    place_runs<<<blocks_for(count, THREADS), THREADS, 0, by->stream>>>(s.keys, s.order, s.ranks, count, by->least, to);
    CK_LAUNCH("place_runs");
    cut_items<<<blocks_for(count < by->rows ? count : by->rows, THREADS), THREADS, 0, by->stream>>>(to, by->least);
    CK_LAUNCH("cut_items");
    return 0;
}

/* ---- both sides of a batch ---- */

int cuda_index_reserve(struct backend *b, struct batch_builder *builder, const struct batch_sizes *capacity, uint64_t rows) {
    const char *what = "sorting a batch";
    struct scratch *s = &builder->scratch;
    uint32_t targets = capacity->targets, contexts = capacity->contexts;
    return cuda_grow_iota(b, &s->iota, std::max(targets, contexts), what, builder->stream) ||
                   cuda_grow_sorting(b, &s->sorting[SIDE_TARGET], targets, rows, what) ||
                   cuda_grow_sorting(b, &s->sorting[SIDE_CONTEXT], contexts, rows, what)
               ? -1
               : 0;
}

static int index_side(struct stage *stage, int side, uint32_t count, uint64_t rows, cudaStream_t stream) {
    struct indexing by;
    by.sorting = &stage->builder->scratch.sorting[side];
    by.ids = (const uint32_t *)stage->side[side].ids.data;
    by.places = (const uint32_t *)stage->builder->scratch.iota.numbers.data;
    by.count = count;
    by.rows = rows;
    by.least = side == SIDE_CONTEXT && stage->early_singles ? 2 : 1;
    by.stream = stream;
    return cuda_index(&stage->side[side], &by);
}

/* Indexes the targets on the stream `beside` while the builder's stream indexes the contexts; then lets the builder's stream wait for both. */
int cuda_index_sides(struct stage *stage, uint64_t rows) {
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
