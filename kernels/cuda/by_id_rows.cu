/* by_id_rows: rows of a list, from the table to the caller's values and back. Rows that cross the link go in the order
 * of the table, each once.
 */
#include "by_id.cuh"

enum { RUN = 64 /* places of a row that one warp fills */ };

/* The list as sorting leaves it. */
struct sorted_view {
    struct list_view list;
    const uint32_t *keys, *ranks; /* [count] ids in order; 1 + the place of each in distinct_ids */
};

static struct sorted_view sorted_view(const struct by_id *own) {
    return {list_view(&own->set), (const uint32_t *)own->sorting.keys.data, (const uint32_t *)own->sorting.ranks.data};
}

/* ---- kernels ---- */

/* A warp reads the rows of two neighbours in the sorted list, so that the link always has requests waiting, and writes
 * each to all its places. A row that stands often is read again every RUN places, so that no warp has all the work. */
static __global__ void __launch_bounds__(THREADS)
    fetch_sorted(struct sorted_view v, struct row_part part, uint32_t quads, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    uint32_t cold_first = v.list.counts->cold_first[0];
    for (uint64_t pair = (uint64_t)warp * 2; pair < v.list.count; pair += (uint64_t)warps * 2) {
        const float4 *row[2];
        uint32_t end[2];
        for (int i = 0; i < 2; i++) {
            uint32_t at = (uint32_t)pair + i, key = at < v.list.count ? v.keys[at] : DRAW_NONE;
            bool head = key != DRAW_NONE && (at % RUN == 0 || v.keys[at - 1] != key);
            end[i] = at;
            row[i] = NULL;
            if (!head) continue;
            row[i] = (const float4 *)row_at(part, key, v.ranks[at] - 1, cold_first);
            do end[i]++;
            while (end[i] < v.list.count && end[i] % RUN != 0 && v.keys[end[i]] == key);
        }
        for (uint32_t q = lane; q < quads; q += 32) {
            float4 value[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i]) value[i] = row[i][q];
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i])
                    for (uint32_t at = (uint32_t)pair + i; at < end[i]; at++)
                        write_quad(out, v.list.rows.order[at], q, value[i]);
        }
    }
}

/* As the ids come: for rows on the GPU, which gain nothing from an order. */
static __global__ void __launch_bounds__(THREADS)
    fetch_plain(struct list_view v, struct row_part part, uint32_t quads, struct value_view out, const uint32_t *skip) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    if (skip && *skip) return;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < v.count; i += warps) {
        uint32_t id = v.rows.ids[i];
        if (id == DRAW_NONE) continue;
        const float4 *row = (const float4 *)row_at(part, id, 0, 0);
        for (uint32_t q = lane; q < quads; q += 32) write_quad(out, i, q, row[q]);
    }
}

static __global__ void __launch_bounds__(THREADS)
    store_sorted(struct sorted_view v, struct row_part part, uint32_t quads, struct value_view from) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, cold_first = v.list.counts->cold_first[0];
    for (uint32_t at = blockIdx.x * WARPS + threadIdx.x / 32; at < v.list.count; at += warps) {
        uint32_t key = v.keys[at];
        if (key == DRAW_NONE || (at + 1 < v.list.count && v.keys[at + 1] == key))
            continue; /* the last of a row's places */
        float4 *row = (float4 *)row_at(part, key, v.ranks[at] - 1, cold_first);
        for (uint32_t q = lane; q < quads; q += 32) row[q] = read_quad(from, v.list.rows.order[at], q);
    }
}

/* ---- launching ---- */

static unsigned blocks_of(const struct backend *b, const struct backend_table *table) {
    return table->stores[0].place == PLACE_GPU ? 8 * (unsigned)b->processors : LINK_BLOCKS;
}

static uint32_t quads_of(const struct by_id *own) {
    return own->set.table->spec.layout.span / 4;
}

int by_id_fetch_plain(struct backend *b, struct by_id *own, struct value_view out, const uint32_t *skip,
                      cudaStream_t stream) {
    fetch_plain<<<blocks_of(b, own->set.table), THREADS, 0, stream>>>(list_view(&own->set), by_id_weights(&own->set),
                                                                      quads_of(own), out, skip);
    CK_LAUNCH("fetch_plain");
    return 0;
}

int by_id_fetch_sorted(struct by_id *own, struct value_view out, cudaStream_t stream) {
    fetch_sorted<<<LINK_BLOCKS, THREADS, 0, stream>>>(sorted_view(own), by_id_weights(&own->set), quads_of(own), out);
    CK_LAUNCH("fetch_sorted");
    return 0;
}

int by_id_store_sorted(struct backend *b, struct by_id *own, struct value_view from, cudaStream_t stream) {
    store_sorted<<<blocks_of(b, own->set.table), THREADS, 0, stream>>>(sorted_view(own), by_id_weights(&own->set),
                                                                       quads_of(own), from);
    CK_LAUNCH("store_sorted");
    return 0;
}
