/* by_id_list: turns a list of ids into a row set: copies the ids as 32-bit numbers, checks and sorts them, and finds where
 * kernels can read the rows. Rows of a file are read into staging, since the GPU cannot read files. */
#include "by_id.cuh"

#define LIST "a list of ids" /* what gpu_take() says the memory is for */

int by_id_open_set(struct backend *b, struct row_set *set) {
    if (gpu_take(b, (void **)&set->counts, sizeof *set->counts, LIST)) return -1;
    return row_set_open(set, 0, 1);
}

void by_id_close_set(struct backend *b, struct row_set *set) {
    gpu_give(b, set->counts, sizeof *set->counts);
    row_set_close(b, set);
}

/* ---- ids ---- */

static __global__ void take_ids(struct id_view from, uint32_t *to) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < from.count) to[i] = read_id(from, i);
}

/* Returns the bytes to allocate for a list of this length. They are a power of two, so that a slightly longer list needs no new
 * memory: allocating would stop the GPU. */
static uint64_t given_bytes(uint64_t count) {
    uint64_t bytes = 4096;
    while (bytes < count * sizeof(uint32_t)) bytes *= 2;
    return bytes;
}

int by_id_room(struct backend *b, struct by_id *own, uint64_t count, uint32_t **ids) {
    own->turn = (own->turn + 1) % GIVEN;
    struct given *given = &own->given[own->turn];
    CK(cudaEventSynchronize(given->sent));
    if (buffer_grow(b, (void **)&given->ids, &given->bytes, given_bytes(count))) return -1;
    *ids = given->ids;
    return 0;
}

struct id_view by_id_given(const struct by_id *own, const struct rows_request *r) {
    const struct table_spec *spec = &r->table->spec;
    struct id_view ids = {r->ids, own->bad, spec->first_row, spec->rows, (uint32_t)r->count, id_view::TAKEN};
    if (r->ids_on_gpu) ids.kind = r->id_bits == 64 ? id_view::WIDE : id_view::NARROW;
    return ids;
}

int by_id_have_read(struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    if (!r->ids_on_gpu) CK(cudaEventRecord(own->given[own->turn].sent, stream));
    return 0;
}

int by_id_take(struct backend *b, struct by_id *own, struct row_set *set, const struct rows_request *r,
               cudaStream_t stream) {
    struct id_view from = by_id_given(own, r);
    if (row_set_grow(b, set, r->count, LIST)) return -1;
    set->count = set->capacity = r->count;
    take_ids<<<blocks_for(from.count, THREADS), THREADS, 0, stream>>>(from, (uint32_t *)set->ids.data);
    CK_LAUNCH("take_ids");
    return by_id_have_read(own, r, stream);
}

struct id_view by_id_taken(const struct row_set *set) {
    const struct table_spec *spec = &set->table->spec;
    return {set->ids.data, NULL, spec->first_row, spec->rows, (uint32_t)set->count, id_view::TAKEN};
}

/* ---- order ---- */

static int prepare_sorting(struct backend *b, struct by_id *own, const struct row_set *set, struct sorting *sorting,
                           uint64_t rows, cudaStream_t stream, struct indexing *by) {
    uint64_t before = own->iota.count;
    if (cuda_grow_iota(b, &own->iota, set->count, LIST, stream) ||
        cuda_grow_sorting(b, sorting, (uint32_t)set->count, rows, LIST))
        return -1;
    if (own->iota.count != before) CK(cudaStreamSynchronize(stream)); /* other streams read iota, and do not wait for `stream` */
    by->sorting = sorting;
    by->ids = (const uint32_t *)set->ids.data;
    by->places = (const uint32_t *)own->iota.numbers.data;
    by->count = (uint32_t)set->count;
    by->rows = rows;
    by->least = 1;
    by->stream = stream;
    return 0;
}

int by_id_sort(struct backend *b, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows,
               cudaStream_t stream) {
    struct indexing by;
    return prepare_sorting(b, own, set, sorting, rows, stream, &by) || cuda_sort(set, &by) ? -1 : 0;
}

int by_id_index(struct backend *b, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows,
                cudaStream_t stream) {
    struct indexing by;
    if (prepare_sorting(b, own, set, sorting, rows, stream, &by)) return -1;
    CK(cudaMemsetAsync(set->counts, 0, sizeof *set->counts, stream));
    return cuda_index(set, &by);
}

/* ---- where rows are stored ---- */

static struct row_part part_of(const struct row_set *set, int part, uint64_t offset) {
    const struct store *store = &set->table->stores[part];
    struct row_part p;
    p.hot = store->gpu + offset;
    p.hot_rows = store->gpu_rows;
    p.stride = store->stride;
    p.staged = cuda_in_file(store);
    p.rest = p.staged      ? set->staging[part] + offset
             : store->host ? gpu_home_of(store) + offset
                           : p.hot;
    cuda_cache_part(set->table, part, offset, &p);
    return p;
}

struct row_part by_id_weights(const struct row_set *set) {
    return part_of(set, 0, 0);
}

struct row_part by_id_state(const struct row_set *set) {
    return part_of(set, set->table->shared ? 0 : 1, set->table->state_offset);
}

static __global__ void find_cold(const uint32_t *distinct_ids, uint64_t hot_rows, struct batch_counts *counts) {
    counts->cold_first[0] = lower_bound(distinct_ids, 0, counts->distinct[0], hot_rows);
}

int by_id_stage_file(struct backend *b, struct row_set *set, int parts, cudaStream_t stream) {
    int in_file[2] = {0, 0};
    for (int part = 0; part < parts && part < set->table->parts; part++)
        in_file[part] = cuda_in_file(&set->table->stores[part]);
    if (!in_file[0] && !in_file[1]) return 0;
    find_cold<<<1, 1, 0, stream>>>(row_set_view(set).distinct_ids, cuda_hot_rows(set->table), set->counts);
    CK_LAUNCH("find_cold");
    if (row_set_send(b, set, stream)) return -1;
    CK(cudaStreamSynchronize(stream));
    const uint32_t *ids;
    uint64_t cold = row_set_cold(set, &ids);
    for (int part = 0; part < 2; part++)
        if (in_file[part] && row_set_read_file(b, set, part, cold)) return -1;
    return 0;
}
