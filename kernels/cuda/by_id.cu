/* by_id: rows by id for other people's models: fetch, update and store in the order of the caller's stream. Here is the
 * life of a call; its words are in the files named at the right.
 *
 *   ids       taken as 32-bit numbers, checked; those that are no rows are left out and remembered   by_id_list.cu
 *   index     sorted; each distinct row with the places where it stands                              index.cu
 *   fetch     rows, where they lie -> out: each crosses the link once, in the order of the table     by_id_rows.cu
 *   update    sums of gradients, rule, in place                                                      by_id_update.cu
 *   store     values -> rows                                                                         by_id_rows.cu
 *   prefetch  an announced list: indexed, and its rows' weights fetched into slots                   by_id_announced.cu
 *
 * The list of a call is a row set (row_set.cuh). No row of it waits in a slot: what a call has changed is where it
 * belongs when the stream goes on, so calls need no order of their own. Rows of a file, which the GPU does not reach,
 * go through staging that the host's threads fill and empty.
 */
#include "by_id.cuh"

#include <stdlib.h>
#include <string.h>

/* ---- what every call begins and ends with ---- */

static int open_by_id(struct backend *b, struct by_id *own) {
    CK(cudaEventCreateWithFlags(&own->sent, cudaEventDisableTiming));
    CK(cudaStreamCreateWithFlags(&own->ahead, cudaStreamNonBlocking));
    if (buffer_take(b, (void **)&own->bad, sizeof *own->bad)) return -1;
    memset(own->bad, 0, sizeof *own->bad);
    for (struct announced &a : own->announced)
        if (by_id_open_set(b, &a.set)) return -1;
    return by_id_open_set(b, &own->set) || gpu_grow(b, &own->match, sizeof(uint32_t), "a list of ids") ? -1 : 0;
}

/* Rows of batches in flight may not be home yet. */
static int wait_for_batches(struct backend *b) {
    for (unsigned i = 0; i < b->depth; i++)
        if (cuda_in_flight(&b->stages[i])) return cuda_drain(b);
    return 0;
}

static int begin(struct backend *b, const struct rows_request *r, struct by_id **own, cudaStream_t *stream) {
    *stream = (cudaStream_t)r->stream;
    CK(cudaSetDevice(b->device));
    if (wait_for_batches(b)) return -1;
    if (!b->by_id) {
        b->by_id = mem_zalloc(1, sizeof(struct by_id), "rows by id");
        if (!b->by_id) return -1;
        if (open_by_id(b, (struct by_id *)b->by_id)) {
            cuda_by_id_close(b);
            return -1;
        }
    }
    *own = (struct by_id *)b->by_id;
    (*own)->set.table = r->table;
    CK(cudaStreamWaitEvent(*stream, (*own)->set.ticket, 0)); /* scratch is one; calls may come on several streams */
    return 0;
}

static int end(struct by_id *own, cudaStream_t stream) {
    CK(cudaEventRecord(own->set.ticket, stream));
    return 0;
}

/* The caller's values where the GPU reads them, or memory for them. */
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

/* ---- fetch ---- */

static int fetch(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out,
                 cudaStream_t stream) {
    struct announced *announced = by_id_find_announced(own, r);
    if (by_id_take(b, own, &own->set, r, stream)) return -1;
    if (announced) /* the one of the two kernels that has nothing to do sees so */
        return by_id_fetch_announced(b, own, announced, out, stream) ||
                       by_id_fetch_plain(b, own, out, (const uint32_t *)own->match.data, stream)
                   ? -1
                   : 0;
    if (r->table->stores[0].place == PLACE_GPU) return by_id_fetch_plain(b, own, out, NULL, stream);
    return by_id_index(b, own, &own->set, &own->sorting, r->table->spec.rows, stream) ||
                   by_id_stage_file(b, &own->set, 1, stream) || by_id_fetch_sorted(own, out, stream)
               ? -1
               : 0;
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

/* A file's rows cannot come without the host, which would have to wait: they come when they are fetched. */
int cuda_by_id_prefetch(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    const struct store *store = &r->table->stores[0];
    if (store->place == PLACE_GPU || cuda_in_file(store)) return 0;
    return begin(b, r, &own, &stream) || by_id_announce(b, own, r, stream) ? -1 : 0;
}

/* ---- store and update ---- */

/* The list of a call that changes rows of the first `parts` stores: indexed, a file's rows in staging. */
static int begin_change(struct backend *b, const struct rows_request *r, int parts, struct by_id **by_id,
                        cudaStream_t *stream) {
    if (begin(b, r, by_id, stream)) return -1;
    struct by_id *own = *by_id;
    for (int part = 0; part < 2; part++) {
        const struct store *store = &r->table->stores[part];
        int changed = part < parts && part < r->table->parts && cuda_is_cold(store);
        own->set.way[part] = !changed ? HOME_NOTHING : cuda_in_file(store) ? HOME_STAGED : HOME_DIRECT;
    }
    return by_id_take(b, own, &own->set, r, *stream) ||
                   by_id_index(b, own, &own->set, &own->sorting, r->table->spec.rows, *stream) ||
                   by_id_stage_file(b, &own->set, parts, *stream)
               ? -1
               : 0;
}

/* Host memory that was given may be used again: its copy is done. */
static int end_change(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    int staged = own->set.way[0] == HOME_STAGED || own->set.way[1] == HOME_STAGED;
    if (by_id_renew_announced(own, stream)) return -1;
    if (staged) CK(cudaStreamSynchronize(stream));
    if (staged && row_set_land(b, &own->set)) return -1;
    if (end(own, stream)) return -1;
    if (!r->values_on_gpu) CK(cudaStreamSynchronize(stream));
    return 0;
}

int cuda_by_id_store(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view values;
    return begin_change(b, r, 1, &own, &stream) || reach_values(b, own, r, 1, stream, &values) ||
                   by_id_store_sorted(b, own, values, stream) || end_change(b, own, r, stream)
               ? -1
               : 0;
}

int cuda_by_id_update(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view gradients;
    return begin_change(b, r, 2, &own, &stream) || reach_values(b, own, r, 1, stream, &gradients) ||
                   by_id_update_rows(b, own, r, gradients, stream) || end_change(b, own, r, stream)
               ? -1
               : 0;
}

/* ---- besides ---- */

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
    view.data = store->host ? store->host + (weights ? 0 : table->state_offset) + field->offset : NULL;
    view.first = store->gpu_rows;
    view.stride = store->stride;
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
    struct gpu_array *arrays[] = {&own->iota.numbers, &own->values, &own->padded, &own->partials, &own->match};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (struct sorting *sorting : {&own->sorting, &own->ahead_sorting}) cuda_drop_sorting(b, sorting);
    by_id_close_set(b, &own->set);
    for (struct announced &a : own->announced) by_id_close_set(b, &a.set);
    if (own->sent) cudaEventDestroy(own->sent);
    buffer_give(b, own->given, own->given_bytes);
    buffer_give(b, own->bad, sizeof *own->bad);
    if (own->ahead) cudaStreamDestroy(own->ahead);
    free(own);
    b->by_id = NULL;
}
