/* by_id_rows: copies rows of a list between the table and the caller's values: in the order of the ids, or in the order of the
 * table, where each row crosses the link once. */
#include "by_id.cuh"
#include "warp.cuh"

enum { RUN = 64 /* places of a row that one warp writes */ };

/* A sorted list. */
struct sorted_view {
    struct list_view list;
    const uint32_t *keys, *ranks; /* [count] sorted ids; 1 + the place of each in distinct_ids, if the list is indexed */
};

static struct sorted_view sorted_view(const struct by_id *own) {
    return {list_view(&own->set), (const uint32_t *)own->sorting.keys.data, (const uint32_t *)own->sorting.ranks.data};
}

/* Returns the address of row number `at` of the sorted list. Rows in staging are found by their place among the distinct rows,
 * so the list must then be indexed. */
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
        }
        fetch_pair<F>(pair, (uint32_t)first, chunks, out);
    }
}

/* Each thread block has the whole list in shared memory; every place checks whether a later place has the same row. */
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
        }
        store_pair<F>(pair, first, chunks, from, rounding);
    }
}

/* ---- in the order of the table ---- */

/* A warp reads two neighbouring rows of the sorted list at a time, so that the link always has requests waiting, and writes each
 * row to all its places. A frequent row is read again after every RUN places, so that the work is divided among warps. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_sorted(struct sorted_view v, struct row_part part, uint32_t chunks, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    for (uint64_t pair = (uint64_t)warp * 2; pair < v.list.count; pair += (uint64_t)warps * 2) {
        const char *row[2];
        uint32_t end[2];
        for (int i = 0; i < 2; i++) {
            uint32_t at = (uint32_t)pair + i, key = at < v.list.count ? v.keys[at] : DRAW_NONE;
            bool head = key != DRAW_NONE && (at % RUN == 0 || v.keys[at - 1] != key);
            end[i] = at;
            row[i] = NULL;
            if (!head) continue;
            row[i] = sorted_row(v, part, at);
            do end[i]++;
            while (end[i] < v.list.count && end[i] % RUN != 0 && v.keys[end[i]] == key);
        }
        for (uint32_t c = lane; c < chunks; c += 32) {
            float4 value[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i]) value[i] = read_chunk(row[i], c);
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i])
                    for (uint32_t at = (uint32_t)pair + i; at < end[i]; at++)
                        give_chunk<F>(out, v.list.rows.order[at], c, value[i]);
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

int by_id_fetch_sorted(struct by_id *own, struct value_view out, cudaStream_t stream) {
    auto kernel = row_halves(own) ? fetch_sorted<bfloat16_rows> : fetch_sorted<float32_rows>;
    kernel<<<LINK_BLOCKS, THREADS, 0, stream>>>(sorted_view(own), by_id_weights(&own->set), row_chunks(own), out);
    CK_LAUNCH("fetch_sorted");
    return 0;
}

int by_id_store_sorted(struct backend *b, struct by_id *own, struct value_view from, cudaStream_t stream) {
    auto kernel = row_halves(own) ? store_sorted<bfloat16_rows> : store_sorted<float32_rows>;
    kernel<<<row_blocks(b, own->set.table, own->set.count), THREADS, 0, stream>>>(
        sorted_view(own), by_id_weights(&own->set), row_chunks(own), from, rounding_of_store(own));
    CK_LAUNCH("store_sorted");
    return 0;
}
