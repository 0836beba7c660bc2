/* rows_set: see rows_set.cuh. This file has the host's functions for all row sets: of batches, of calls, and of announced lists. */
#include "cuda.cuh"

/* ---- which stores are cold ---- */

int cuda_is_cold(const struct store *store) {
    return store->place != PLACE_GPU && store->host != NULL;
}

int cuda_in_file(const struct store *store) {
    return cuda_is_cold(store) && store->place == PLACE_FILE;
}

int cuda_has_cold(const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) return 1;
    return 0;
}

uint64_t cuda_hot_rows(const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) return table->stores[i].gpu_rows;
    return table->spec.rows;
}

char *cuda_home_of(const struct store *store) {
    return store->host - store->gpu_rows * store->stride;
}

/* ---- its arrays ---- */

int row_set_open(struct row_set *set, int side, int copies) {
    set->side = side;
    set->copies = copies;
    CK(cudaEventCreateWithFlags(&set->ticket, cudaEventDisableTiming));
    return 0;
}

void row_set_close(struct backend *b, struct row_set *set) {
    struct gpu_array *arrays[] = {&set->ids,   &set->distinct, &set->distinct_ids[0], &set->distinct_ids[1],
                                  &set->order, &set->forward,  &set->distinct_starts, &set->items,
                                  &set->longs, &set->slots[0], &set->slots[1]};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (int part = 0; part < 2; part++) buffer_give(b, set->staging[part], set->staging_bytes[part]);
    buffer_give(b, set->host_ids, set->host_ids_bytes);
    buffer_give(b, set->host_counts, sizeof *set->host_counts);
    if (set->ticket) cudaEventDestroy(set->ticket);
}

int row_set_grow(struct backend *b, struct row_set *set, uint64_t count, const char *what) {
    struct row_set_bytes bytes = row_set_bytes(count);
    for (int copy = 0; copy < set->copies; copy++)
        if (gpu_grow(b, &set->distinct_ids[copy], bytes.distinct_ids, what)) return -1;
    return gpu_grow(b, &set->ids, bytes.ids, what) || gpu_grow(b, &set->distinct, bytes.distinct, what) ||
                   gpu_grow(b, &set->distinct_starts, bytes.distinct_starts, what) ||
                   gpu_grow(b, &set->order, bytes.order, what) || gpu_grow(b, &set->items, bytes.items, what) ||
                   gpu_grow(b, &set->longs, bytes.longs, what)
               ? -1
               : 0;
}

struct row_set_view row_set_view(const struct row_set *set) {
    struct row_set_view view;
    view.ids = (const uint32_t *)set->ids.data;
    view.distinct = (const uint32_t *)set->distinct.data;
    view.distinct_ids = (const uint32_t *)set->distinct_ids[set->copy].data;
    view.distinct_starts = (const uint32_t *)set->distinct_starts.data;
    view.order = (const uint32_t *)set->order.data;
    view.items = (const struct item *)set->items.data;
    view.longs = (const struct item *)set->longs.data;
    return view;
}

/* ---- rows that the host's threads move ---- */

void row_set_changes(struct row_set *set, int parts) {
    for (int part = 0; part < 2; part++)
        set->lands[part] = part < parts && part < set->table->parts && cuda_in_file(&set->table->stores[part]);
}

int row_set_send(struct backend *b, struct row_set *set, cudaStream_t stream) {
    const void *ids = set->distinct_ids[set->copy].data;
    if (buffer_grow(b, (void **)&set->host_ids, &set->host_ids_bytes, host_ids_bytes(set->capacity))) return -1;
    if (!set->host_counts && buffer_take(b, (void **)&set->host_counts, sizeof *set->host_counts)) return -1;
    CK(cudaMemcpyAsync(set->host_counts, set->counts, sizeof *set->counts, cudaMemcpyDeviceToHost, stream));
    CK(cudaMemcpyAsync(set->host_ids, ids, set->count * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
    return 0;
}

uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids) {
    uint32_t first = set->host_counts->cold_first[set->side];
    *ids = set->host_ids + first;
    return set->host_counts->distinct[set->side] - first;
}

int row_set_read_file(struct backend *b, struct row_set *set, int part, uint64_t capacity) {
    const struct store *store = &set->table->stores[part];
    const uint32_t *ids;
    uint64_t count = row_set_cold(set, &ids);
    if (!count) return 0;
    if (buffer_grow(b, (void **)&set->staging[part], &set->staging_bytes[part], capacity * store->stride)) return -1;
    return host_gather(b->pool, set->staging[part], cuda_home_of(store), ids, count, store->stride);
}

int row_set_land(struct backend *b, struct row_set *set) {
    if (!set->table) return 0; /* the table has been closed */
    for (int part = 0; part < 2; part++) {
        const struct store *store = &set->table->stores[part];
        const uint32_t *ids;
        if (!set->lands[part]) continue;
        uint64_t count = row_set_cold(set, &ids);
        if (host_scatter(b->pool, cuda_home_of(store), set->staging[part], ids, count, store->stride)) return -1;
    }
    return 0;
}
