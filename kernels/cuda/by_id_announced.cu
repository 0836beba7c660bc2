/* by_id_announced: announced lists of ids. Their rows' weights are fetched into slots on a separate stream, while the
 * caller does other work.
 *
 * If an update or a store changes rows before the fetch, it also copies them into the slots. The GPU compares ids to find out
 * whether a fetch is for the announced list, so the host waits for nothing: two kernels are launched, and one of them has
 * nothing to do.
 */
#include "by_id.cuh"

static __global__ void fetch_slots(struct list_view v, struct row_part part, uint32_t bytes, char *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = v.counts->distinct[0];
    for (uint32_t row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        const char *from = row_at(part, v.rows.distinct_ids[row], row, 0);
        for (uint32_t i = lane; i < bytes / CHUNK_BYTES; i += 32) copy_chunk(slots + (uint64_t)row * bytes, from, i);
    }
}

static __global__ void compare_ids(const uint32_t *a, const uint32_t *b, uint32_t count, uint32_t *match) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && a[i] != b[i]) *match = 0;
}

static __global__ void set_match(uint32_t *match) {
    *match = 1;
}

template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_announced(struct list_view v, const char *slots, uint32_t bytes, uint32_t chunks, struct value_view out,
                    const uint32_t *match) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    if (!*match) return;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < v.count; i += warps) {
        uint32_t row = v.rows.distinct[i];
        if (row == DRAW_NONE) continue;
        const char *from = slots + (uint64_t)(row & ~SINGLE_BIT) * bytes;
        for (uint32_t c = lane; c < chunks; c += 32) give_chunk<F>(out, i, c, read_chunk(from, c));
    }
}

static __global__ void renew_slots(struct list_view changed, struct list_view v, struct row_part part, uint32_t bytes,
                                   char *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = changed.counts->distinct[0],
             known = v.counts->distinct[0];
    uint32_t cold_first = changed.counts->cold_first[0];
    for (uint32_t row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        uint32_t id = changed.rows.distinct_ids[row], low = lower_bound(v.rows.distinct_ids, 0, known, id);
        if (low == known || v.rows.distinct_ids[low] != id) continue;
        const char *from = row_at(part, id, row, cold_first);
        for (uint32_t i = lane; i < bytes / CHUNK_BYTES; i += 32) copy_chunk(slots + (uint64_t)low * bytes, from, i);
    }
}

int by_id_announce(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    uint64_t bytes = record_weights_bytes(&r->table->spec.layout);
    struct announced *a = &own->announced[0];
    for (struct announced &other : own->announced)
        if (!other.set.table || (a->set.table && other.sequence < a->sequence)) a = &other;
    if (gpu_grow(b, &a->set.slots[0], r->count * bytes, "announced rows")) return -1;
    a->set.table = NULL;
    /* The ids are read in the order of the caller's stream, once the list that this entry had before is finished. */
    CK(cudaStreamWaitEvent(stream, a->set.ticket, 0));
    if (by_id_take(b, own, &a->set, r, stream)) return -1;
    CK(cudaEventRecord(own->set.ticket, stream));
    /* The rest waits for all work that was requested before. After it, rows that it changes are in the table, and nothing reads
     * the entry's slots any more. */
    CK(cudaStreamWaitEvent(own->ahead, own->set.ticket, 0));
    if (by_id_index(b, own, &a->set, &own->ahead_sorting, r->table->spec.rows, own->ahead)) return -1;
    fetch_slots<<<LINK_BLOCKS, THREADS, 0, own->ahead>>>(list_view(&a->set), by_id_weights(&own->set),
                                                         (uint32_t)bytes, (char *)a->set.slots[0].data);
    CK_LAUNCH("fetch_slots");
    CK(cudaEventRecord(a->set.ticket, own->ahead));
    a->set.table = r->table;
    a->sequence = ++own->sequence;
    return 0;
}

/* Returns the oldest announced list with the same number of ids, or NULL. */
struct announced *by_id_find_announced(struct by_id *own, const struct rows_request *r) {
    struct announced *found = NULL;
    for (struct announced &a : own->announced)
        if (a.set.table == r->table && a.set.count == r->count && (!found || a.sequence < found->sequence)) found = &a;
    return found;
}

int by_id_is_announced(const struct by_id *own, const struct backend_table *table) {
    for (const struct announced &a : own->announced)
        if (a.set.table == table) return 1;
    return 0;
}

int by_id_fetch_announced(struct backend *b, struct by_id *own, struct announced *a, struct value_view out,
                          cudaStream_t stream) {
    uint32_t *match = (uint32_t *)own->match.data, count = (uint32_t)own->set.count;
    const uint32_t *asked = (const uint32_t *)own->set.ids.data, *there = (const uint32_t *)a->set.ids.data;
    set_match<<<1, 1, 0, stream>>>(match);
    compare_ids<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(asked, there, count, match);
    CK_LAUNCH("compare_ids");
    CK(cudaStreamWaitEvent(stream, a->set.ticket, 0));
    auto kernel = row_halves(own) ? fetch_announced<bfloat16_rows> : fetch_announced<float32_rows>;
    kernel<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(
        list_view(&a->set), (const char *)a->set.slots[0].data, (uint32_t)record_weights_bytes(&own->set.table->spec.layout),
        row_chunks(own), out, match);
    CK_LAUNCH("fetch_announced");
    a->set.table = NULL;
    return 0;
}

int by_id_renew_announced(struct by_id *own, cudaStream_t stream) {
    uint32_t bytes = (uint32_t)record_weights_bytes(&own->set.table->spec.layout);
    for (struct announced &a : own->announced) {
        if (a.set.table != own->set.table) continue;
        CK(cudaStreamWaitEvent(stream, a.set.ticket, 0));
        renew_slots<<<LINK_BLOCKS, THREADS, 0, stream>>>(
            list_view(&own->set), list_view(&a.set), by_id_weights(&own->set), bytes, (char *)a.set.slots[0].data);
        CK_LAUNCH("renew_slots");
    }
    return 0;
}
