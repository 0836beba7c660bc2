/* by_id_rows: copies rows of a list between the table and the caller's values, in the order of the ids or in the order of the
 * table. In the order of the table, each row crosses the link once. */
#include "by_id.cuh"
#include "warp.cuh"

#include <algorithm>

/* A sorted list of ids. */
struct sorted_view {
    struct list_view list;
    const uint32_t *keys, *ranks; /* [count] keys: sorted ids; ranks: 1 + the place of each in distinct_ids, only if the list is
                                   * indexed */
};

static struct sorted_view sorted_view(const struct by_id *own) {
    return {list_view(&own->set), (const uint32_t *)own->sorting.keys.data, (const uint32_t *)own->sorting.ranks.data};
}

/* Returns the address of row number `at` of the sorted list. If rows are in staging, the list must be indexed, since a row in
 * staging is found by its place among the distinct rows. */
static __device__ __forceinline__ char *sorted_row(const struct sorted_view &v, const struct row_part &part,
                                                   uint32_t at) {
    return row_at(part, v.keys[at], part.staged ? v.ranks[at] - 1 : 0, part.staged ? v.list.counts->cold_first[0] : 0);
}

/* ---- in the order of the ids ---- */

template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_plain(struct id_view ids, const uint32_t *owners, const uint32_t *skip, struct row_part part, uint32_t chunks,
                struct value_view out) {
    uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    if (skip && *skip) return;
    for (uint64_t first = (uint64_t)warp * 2; first < ids.count; first += (uint64_t)warps * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = (uint32_t)first + i, id = first + i < ids.count ? read_id(ids, at) : DRAW_NONE;
            bool moves = id != DRAW_NONE && (!owners || owners[at] == at);
            pair.row[i] = moves ? row_at(part, id, 0, 0) : NULL;
            pair.place[i] = at;
        }
        fetch_pair<F>(pair, chunks, out);
    }
}

/* Stores a list of at most FEW rows. Each thread block has all ids in shared memory, and checks for every place whether a later
 * place has the same row. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    store_few(struct id_view ids, struct row_part part, uint32_t chunks, struct value_view from, struct rounding_keys rounding) {
    __shared__ uint32_t all[FEW];
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t i = threadIdx.x; i < ids.count; i += THREADS) all[i] = read_id(ids, i);
    __syncthreads();
    for (uint32_t first = (blockIdx.x * WARPS + threadIdx.x / 32) * 2; first < ids.count;
         first += gridDim.x * WARPS * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = first + i, id = at < ids.count ? all[at] : DRAW_NONE;
            bool again = false;
            for (uint32_t later = at + 1 + lane; later < ids.count; later += 32) again |= all[later] == id;
            bool moves = !__any_sync(ALL_LANES, again) && id != DRAW_NONE;
            pair.row[i] = moves ? row_at(part, id, 0, 0) : NULL;
            pair.id[i] = id;
            pair.place[i] = at;
        }
        store_pair<F>(pair, chunks, from, rounding);
    }
}

/* ---- in the order of the table ---- */

/* One of 32 neighbouring places of a sorted list, which the lanes of a warp look at together. */
struct lane_place {
    uint32_t at, key, place; /* at: index in the sorted list; key: the row's id, or DRAW_NONE; place: place in the caller's list */
    bool head;               /* true: this is the first place of its row in the sorted list */
};

static __device__ __forceinline__ struct lane_place place_of_lane(const struct sorted_view &v, uint32_t first) {
    uint32_t lane = threadIdx.x & 31;
    struct lane_place p = {first + lane, DRAW_NONE, 0, false};
    if (lane >= v.list.count - first) return p;
    p.key = v.keys[p.at];
    p.place = v.list.rows.order[p.at];
    p.head = p.key != DRAW_NONE && (p.at == 0 || v.keys[p.at - 1] != p.key);
    return p;
}

/* Fetches the rows that are on the host. Each crosses the link once, to the first place in `out` that wants it. block: number of
 * this thread block among the `blocks` that fetch. */
template <class F>
static __device__ __forceinline__ void fetch_heads(const struct sorted_view &v, const struct row_part &part, uint32_t chunks,
                                                   const struct value_view &out, uint32_t block, uint32_t blocks) {
    for (uint64_t first = (uint64_t)(block * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += blocks * WARPS * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool cold = p.head && !is_on_gpu(part, p.key);
        char *row = cold ? sorted_row(v, part, p.at) : NULL;
        uint32_t left = __ballot_sync(ALL_LANES, cold);
        while (left) {
            struct row_pair pair;
            for (int i = 0; i < 2; i++) {
                int lane = left ? __ffs((int)left) - 1 : 0;
                char *found = (char *)__shfl_sync(ALL_LANES, (unsigned long long)row, lane);
                pair.place[i] = __shfl_sync(ALL_LANES, p.place, lane);
                pair.row[i] = left ? found : NULL;
                left &= left - 1; /* if no place was left, it stays 0 */
            }
            fetch_pair<F>(pair, chunks, out);
        }
    }
}

/* Copies the rows that are on the GPU to all places in `out` that want them. */
template <class F>
static __device__ __forceinline__ void fetch_hot(const struct sorted_view &v, const struct row_part &part, uint32_t chunks,
                                                 const struct value_view &out, uint32_t block, uint32_t blocks) {
    for (uint64_t first = (uint64_t)(block * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += blocks * WARPS * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool hot = p.key != DRAW_NONE && is_on_gpu(part, p.key);
        char *row = hot ? row_at(part, p.key, 0, 0) : NULL;
        for (uint32_t left = __ballot_sync(ALL_LANES, hot); left; left &= left - 1) {
            int next = __ffs((int)left) - 1;
            uint32_t to = __shfl_sync(ALL_LANES, p.place, next);
            const char *found = (const char *)__shfl_sync(ALL_LANES, (unsigned long long)row, next);
            for (uint32_t c = threadIdx.x & 31; c < chunks; c += 32) give_chunk<F>(out, to, c, read_chunk(found, c));
        }
    }
}

/* The first LINK_BLOCKS thread blocks fetch rows over the link. At the same time the other blocks copy the rows that are on the
 * GPU, which needs only the GPU's memory. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_rows(struct sorted_view v, struct row_part part, uint32_t chunks, struct value_view out) {
    if (blockIdx.x < LINK_BLOCKS) fetch_heads<F>(v, part, chunks, out, blockIdx.x, LINK_BLOCKS);
    else fetch_hot<F>(v, part, chunks, out, blockIdx.x - LINK_BLOCKS, gridDim.x - LINK_BLOCKS);
}

/* Copies each row of the host from its first place in `out`, which fetch_rows() has filled, to its other places. Each warp works on
 * 32 places at a time, however often a row is named. */
static __global__ void __launch_bounds__(THREADS)
    spread_heads(struct sorted_view v, struct row_part part, uint32_t quads, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    for (uint64_t first = (uint64_t)(blockIdx.x * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += warps * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool again = p.key != DRAW_NONE && !p.head && !is_on_gpu(part, p.key);
        uint32_t heads = __ballot_sync(ALL_LANES, p.head) & (~0u >> (31 - lane));
        uint32_t source = __shfl_sync(ALL_LANES, p.place, heads ? 31 - __clz((int)heads) : 0);
        if (!heads && again) /* an earlier warp has the row's first place */
            source = v.list.rows.order[lower_bound(v.keys, 0, (uint32_t)first, p.key)];
        for (uint32_t left = __ballot_sync(ALL_LANES, again); left; left &= left - 1) {
            int next = __ffs((int)left) - 1;
            uint32_t to = __shfl_sync(ALL_LANES, p.place, next), from = __shfl_sync(ALL_LANES, source, next);
            for (uint32_t q = lane; q < quads; q += 32) give_quad(out, to, q, take_quad(out, from, q));
        }
    }
}

template <class F>
static __global__ void __launch_bounds__(THREADS)
    store_sorted(struct sorted_view v, struct row_part part, uint32_t chunks, struct value_view from,
                 struct rounding_keys rounding) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    for (uint32_t at = blockIdx.x * WARPS + threadIdx.x / 32; at < v.list.count; at += warps) {
        uint32_t key = v.keys[at];
        if (key == DRAW_NONE || (at + 1 < v.list.count && v.keys[at + 1] == key))
            continue; /* this was the last of the row's places */
        char *row = sorted_row(v, part, at);
        for (uint32_t c = lane; c < chunks; c += 32) {
            float4 value[F::QUADS];
            take_chunk_of<F>(from, v.list.rows.order[at], c, value);
            store_chunk(row, c, value, keys_of_row(rounding, key));
        }
    }
}

/* ---- launching ---- */

int by_id_fetch_plain(struct backend *b, struct by_id *own, const struct id_view *ids, const uint32_t *owners,
                      const uint32_t *skip, struct value_view out, cudaStream_t stream) {
    auto kernel = row_halves(own) ? fetch_plain<bfloat16_rows> : fetch_plain<float32_rows>;
    kernel<<<row_blocks(b, own->set.table, ids->count), THREADS, 0, stream>>>(*ids, owners, skip, by_id_weights(&own->set),
                                                                              row_chunks(own), out);
    CK_LAUNCH("fetch_plain");
    return 0;
}

int by_id_store_few(struct backend *b, struct by_id *own, const struct id_view *ids, struct value_view from,
                    cudaStream_t stream) {
    auto kernel = row_halves(own) ? store_few<bfloat16_rows> : store_few<float32_rows>;
    kernel<<<row_blocks(b, own->set.table, ids->count), THREADS, 0, stream>>>(*ids, by_id_weights(&own->set), row_chunks(own), from,
                                                                              rounding_of_store(own));
    CK_LAUNCH("store_few");
    return 0;
}

int by_id_fetch_sorted(struct backend *b, struct by_id *own, struct value_view out, cudaStream_t stream) {
    auto fetch = row_halves(own) ? fetch_rows<bfloat16_rows> : fetch_rows<float32_rows>;
    struct sorted_view v = sorted_view(own);
    struct row_part part = by_id_weights(&own->set);
    unsigned blocks = std::min(blocks_for(v.list.count, THREADS), 8 * (unsigned)b->processors);
    bool hot = part.places || part.hot_rows > own->set.table->spec.first_row;
    fetch<<<LINK_BLOCKS + (hot ? blocks : 0), THREADS, 0, stream>>>(v, part, row_chunks(own), out);
    CK_LAUNCH("fetch_rows");
    spread_heads<<<blocks, THREADS, 0, stream>>>(v, part, blocks_for(out.dim, 4), out);
    CK_LAUNCH("spread_heads");
    return 0;
}

int by_id_store_sorted(struct backend *b, struct by_id *own, struct value_view from, cudaStream_t stream) {
    auto kernel = row_halves(own) ? store_sorted<bfloat16_rows> : store_sorted<float32_rows>;
    kernel<<<row_blocks(b, own->set.table, own->set.count), THREADS, 0, stream>>>(
        sorted_view(own), by_id_weights(&own->set), row_chunks(own), from, rounding_of_store(own));
    CK_LAUNCH("store_sorted");
    return 0;
}
