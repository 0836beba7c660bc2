/* by_id: rows by id, for models of a library's caller: fetch, update and store, in the order of the caller's stream. This file
 * carries out a call from beginning to end, by these parts:
 *
 *   ids       copied as 32-bit numbers and checked; ids that are no rows are left out and recorded      by_id_list.cu
 *   index     the sorted ids; for each distinct row its places in the list                              batch_index.cu
 *   fetch     copies rows to the caller; each row of a long list crosses the link once                  by_id_rows.cu
 *   update    sums the gradients of each row, and applies the rule in place                             by_id_update.cu
 *   store     copies the caller's values to rows; if a row is named twice, its last values              by_id_rows.cu
 *   claims    for a list whose rows need no order: decides which place copies each row                  by_id_claims.cu
 *   cache     keeps rows that are used often on the GPU                                                 by_id_cache.cu
 *   prefetch  of an announced list: indexes it, and fetches its rows' weights into slots                by_id_announced.cu
 *
 * An update needs the index, since it sums in the order of the ids. A fetch or a store uses as few kernels as possible, by one of
 * several ways (list_way below), since apart from copying rows most of its time passes between two kernels. All ways have the same
 * result.
 *
 * The list of a call is a row set (rows_set.cuh). Its rows are not kept in slots: changed rows are in the table when the stream
 * continues, so calls need not wait for each other in any other way. The GPU cannot access rows of a file: they are copied through
 * staging, which the host's threads fill and empty.
 */
#include "by_id.cuh"

#include <stdlib.h>
#include <string.h>

/* ---- the beginning and the end of every call ---- */

static int open_by_id(struct backend *b, struct by_id *own) {
    for (struct given &given : own->given) CK(cudaEventCreateWithFlags(&given.sent, cudaEventDisableTiming));
    CK(cudaStreamCreateWithFlags(&own->ahead, cudaStreamNonBlocking));
    if (buffer_take(b, (void **)&own->bad, sizeof *own->bad)) return -1;
    memset(own->bad, 0, sizeof *own->bad);
    for (struct announced &a : own->announced)
        if (by_id_open_set(b, &a.set)) return -1;
    return by_id_open_set(b, &own->set) || gpu_grow(b, &own->match, sizeof(uint32_t), "a list of ids") ? -1 : 0;
}

/* Waits until the rows of all batches in flight are copied back to their tables. */
static int wait_for_batches(struct backend *b) {
    for (unsigned i = 0; i < b->depth; i++)
        if (cuda_in_flight(&b->stages[i])) return cuda_drain(b);
    return 0;
}

static int find_by_id(struct backend *b, struct by_id **own) {
    CK(cudaSetDevice(b->device));
    if (!b->by_id) {
        b->by_id = mem_zalloc(1, sizeof(struct by_id), "rows by id");
        if (!b->by_id) return -1;
        if (open_by_id(b, (struct by_id *)b->by_id)) {
            cuda_by_id_close(b);
            return -1;
        }
    }
    *own = (struct by_id *)b->by_id;
    return 0;
}

int cuda_by_id_room(struct backend *b, uint64_t count, uint32_t **ids) {
    struct by_id *own;
    return find_by_id(b, &own) || by_id_room(b, own, count, ids) ? -1 : 0;
}

static int begin(struct backend *b, const struct rows_request *r, struct by_id **own, cudaStream_t *stream) {
    *stream = (cudaStream_t)r->stream;
    if (find_by_id(b, own) || wait_for_batches(b)) return -1;
    (*own)->set.table = r->table;
    (*own)->step = r->global_step;
    CK(cudaStreamWaitEvent(*stream, (*own)->set.ticket, 0)); /* all calls use the same scratch memory, but perhaps different
                                                              * streams */
    return 0;
}

static int end(struct by_id *own, cudaStream_t stream) {
    CK(cudaEventRecord(own->set.ticket, stream));
    return 0;
}

/* Makes the caller's values accessible to the GPU. If the GPU cannot read them, allocates memory for a copy. */
static int reach_values(struct backend *b, struct by_id *own, const struct rows_request *r, int filled,
                        cudaStream_t stream, struct value_view *values) {
    uint32_t dim = r->table->spec.layout.dim;
    uint64_t bytes = r->count * dim * sizeof(float);
    *values = value_view(r->values, dim);
    if (r->values_on_gpu) return 0;
    if (gpu_grow(b, &own->values, bytes, "a call's values")) return -1;
    *values = value_view((float *)own->values.data, dim);
    if (filled) CK(cudaMemcpyAsync(values->data, r->values, bytes, cudaMemcpyHostToDevice, stream));
    return 0;
}

/* ---- the ways of a fetch and a store ---- */

enum list_way {
    AS_GIVEN, /* in the order of the list, for rows on the GPU, and for few rows: by one kernel, or by two if a long list is in
               * host memory */
    CLAIMED,  /* in any order, each row once */
    SORTED,   /* in the order of the table, each row once */
    INDEXED   /* as SORTED, and the distinct rows are known: for files and caches, and if an announced list may contain the same
               * rows */
};

/* Returns 1 if the link is faster with rows in the order of the table. 512-byte rows of 16 GiB are fetched at 50 GB/s in any
 * order, and stored at 46 unsorted and 51 sorted, including sorting. Pinned rows reach 15 unsorted; sorted, 20 with 8,192 rows,
 * 26 with 262,144, 52 with 1,048,576. Rows of 1 GiB always reach 50. */
static int order_helps(const struct store *store, uint64_t count) {
    return cuda_is_cold(store) && store->bytes > NEAR_BYTES && count >= store->bytes / DENSE_BYTES;
}

static enum list_way long_way(const struct rows_request *r) {
    return r->count > CLAIMED_MOST || order_helps(&r->table->stores[0], r->count) ? SORTED : CLAIMED;
}

static enum list_way fetch_way(const struct rows_request *r) {
    const struct store *store = &r->table->stores[0];
    if (cuda_in_file(store) || (r->table->cache && r->count > FEW)) return INDEXED;
    return r->count <= FEW || !cuda_is_cold(store) ? AS_GIVEN : long_way(r);
}

static enum list_way store_way(const struct by_id *own, const struct rows_request *r) {
    if (cuda_in_file(&r->table->stores[0]) || by_id_is_announced(own, r->table)) return INDEXED;
    return r->count <= FEW ? AS_GIVEN : long_way(r);
}

static int take_sorted(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    return by_id_take(b, own, &own->set, r, stream) ||
                   by_id_sort(b, own, &own->set, &own->sorting, r->table->spec.rows, stream)
               ? -1
               : 0;
}

/* Indexes the list. If some of the first `parts` stores are in files, reads the list's rows from these files into staging. */
static int take_indexed(struct backend *b, struct by_id *own, const struct rows_request *r, int parts,
                        cudaStream_t stream) {
    return by_id_take(b, own, &own->set, r, stream) ||
                   by_id_index(b, own, &own->set, &own->sorting, r->table->spec.rows, stream) ||
                   by_id_stage_file(b, &own->set, parts, stream)
               ? -1
               : 0;
}

/* ---- fetch ---- */

static int fetch_taken(struct backend *b, struct by_id *own, const struct rows_request *r, struct announced *announced,
                       struct value_view out, cudaStream_t stream) {
    if (by_id_take(b, own, &own->set, r, stream)) return -1;
    struct id_view ids = by_id_taken(&own->set);
    if (!announced) return by_id_fetch_plain(b, own, &ids, NULL, NULL, out, stream);
    /* The GPU decides which of these two kernels does the work; the other one does nothing. */
    return by_id_fetch_announced(b, own, announced, out, stream) ||
                   by_id_fetch_plain(b, own, &ids, NULL, (const uint32_t *)own->match.data, out, stream)
               ? -1
               : 0;
}

static int fetch_as_given(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out,
                          cudaStream_t stream) {
    struct id_view ids = by_id_given(own, r);
    if (r->count > FEW && !r->ids_on_gpu)
        return fetch_taken(b, own, r, NULL, out, stream); /* so that ids cross the link in large requests */
    return by_id_fetch_plain(b, own, &ids, NULL, NULL, out, stream) ||
                   by_id_have_read(own, r, stream)
               ? -1
               : 0;
}

static int fetch(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out,
                 cudaStream_t stream) {
    struct announced *announced = by_id_find_announced(own, r);
    enum list_way way = fetch_way(r);
    if (announced) return fetch_taken(b, own, r, announced, out, stream);
    if (way == AS_GIVEN) return fetch_as_given(b, own, r, out, stream);
    if (way == CLAIMED) return by_id_fetch_claimed(b, own, r, out, stream);
    int failed = way == SORTED ? take_sorted(b, own, r, stream) : take_indexed(b, own, r, 1, stream);
    if (failed || by_id_fetch_sorted(b, own, out, stream)) return -1;
    return way == INDEXED ? cuda_cache_learn(b, own, stream) : 0;
}

int cuda_by_id_fetch(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view out;
    if (begin(b, r, &own, &stream) || reach_values(b, own, r, 0, stream, &out) || fetch(b, own, r, out, stream))
        return -1;
    if (!r->values_on_gpu) {
        uint64_t bytes = r->count * r->table->spec.layout.dim * sizeof(float);
        CK(cudaMemcpyAsync(r->values, out.data, bytes, cudaMemcpyDeviceToHost, stream));
        CK(cudaStreamSynchronize(stream));
    }
    return end(own, stream);
}

/* Announces a list. Does nothing for a table on the GPU, where rows need no fetching ahead, and for a table in a file, since
 * this call would have to wait for the host's threads. */
int cuda_by_id_prefetch(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    const struct store *store = &r->table->stores[0];
    if (store->place == PLACE_GPU || cuda_in_file(store)) return 0;
    return begin(b, r, &own, &stream) || by_id_announce(b, own, r, stream) ? -1 : 0;
}

/* ---- store and update ---- */

/* Ends a call that changes rows. When it returns, the caller may use its host memory again. */
static int end_change(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    int lands = own->set.lands[0] || own->set.lands[1];
    if (lands) CK(cudaStreamSynchronize(stream));
    if (lands && row_set_land(b, &own->set)) return -1;
    if (end(own, stream)) return -1;
    if (!r->values_on_gpu) CK(cudaStreamSynchronize(stream));
    return 0;
}

static int store(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view values,
                 cudaStream_t stream) {
    enum list_way way = store_way(own, r);
    struct id_view ids = by_id_given(own, r);
    if (way == AS_GIVEN)
        return by_id_store_few(b, own, &ids, values, stream) || by_id_have_read(own, r, stream) ? -1 : 0;
    if (way == CLAIMED) return by_id_store_claimed(b, own, r, values, stream);
    int failed = way == SORTED ? take_sorted(b, own, r, stream) : take_indexed(b, own, r, 1, stream);
    if (failed || by_id_store_sorted(b, own, values, stream)) return -1;
    return way == INDEXED ? by_id_renew_announced(own, stream) : 0;
}

int cuda_by_id_store(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view values;
    if (begin(b, r, &own, &stream)) return -1;
    row_set_changes(&own->set, 1);
    cuda_cache_changed(r->table);
    return cuda_snapshot_keep(b, own, r, stream) || reach_values(b, own, r, 1, stream, &values) || store(b, own, r, values, stream) ||
                   end_change(b, own, r, stream)
               ? -1
               : 0;
}

int cuda_by_id_update(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view gradients;
    if (r->table->frozen) return fail("rows of a table with frozen ones are not updated by id on a GPU");
    if (begin(b, r, &own, &stream)) return -1;
    row_set_changes(&own->set, 2);
    cuda_cache_changed(r->table);
    return cuda_snapshot_keep(b, own, r, stream) || take_indexed(b, own, r, 2, stream) || reach_values(b, own, r, 1, stream, &gradients) ||
                   by_id_update_rows(b, own, r, gradients, stream) || by_id_renew_announced(own, stream) ||
                   cuda_cache_learn(b, own, stream) || end_change(b, own, r, stream)
               ? -1
               : 0;
}

/* ---- waiting and closing ---- */

int cuda_by_id_wait(struct backend *b) {
    struct by_id *own = (struct by_id *)b->by_id;
    CK(cudaSetDevice(b->device));
    if (!own) return 0;
    CK(cudaEventSynchronize(own->set.ticket));
    CK(cudaStreamSynchronize(own->ahead));
    const volatile struct bad_ids *bad = own->bad;
    long long id = bad->id;
    int found = bad->count != 0;
    memset(own->bad, 0, sizeof *own->bad);
    return found ? fail("ids on the GPU were no rows of their table (%lld, for one); what named them was left out", id)
                 : 0;
}

struct rows_view cuda_by_id_view(struct backend *b, const struct backend_table *table,
                                 const struct record_field *field) {
    int weights = record_is_weights(field);
    const struct store *store = &table->stores[weights ? 0 : table->parts - 1];
    struct rows_view view;
    view.data = store->host && !table->cache ? store->host + (weights ? 0 : table->state_offset) + field->offset : NULL;
    view.first = store->gpu_rows;
    view.stride = store->stride;
    view.gpu_reads = view.data && store->place == PLACE_PINNED;
    return view;
}

void cuda_by_id_forget(struct backend *b, const struct backend_table *table) {
    struct by_id *own = (struct by_id *)b->by_id;
    if (!own) return;
    if (own->set.table == table) own->set.table = NULL;
    for (struct announced &a : own->announced)
        if (a.set.table == table) a.set.table = NULL;
}

void cuda_by_id_close(struct backend *b) {
    struct by_id *own = (struct by_id *)b->by_id;
    if (!own) return;
    struct gpu_array *arrays[] = {&own->iota.numbers, &own->values,     &own->padded,        &own->partials,
                                  &own->match,        &own->claims.ids, &own->claims.owners, &own->claims.slots};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (struct sorting *sorting : {&own->sorting, &own->ahead_sorting}) cuda_drop_sorting(b, sorting);
    by_id_close_set(b, &own->set);
    for (struct announced &a : own->announced) by_id_close_set(b, &a.set);
    for (struct given &given : own->given) {
        if (given.sent) cudaEventDestroy(given.sent);
        buffer_give(b, given.ids, given.bytes);
    }
    buffer_give(b, own->bad, sizeof *own->bad);
    if (own->ahead) cudaStreamDestroy(own->ahead);
    free(own);
    b->by_id = NULL;
}
