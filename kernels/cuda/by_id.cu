/* by_id: rows by id for other people's models: fetch, update and store in the order of the caller's stream.
 *
 *   ids          taken as 32-bit numbers, checked; those that are no rows are left out and remembered
 *   index        sorted; each distinct row with the places where it stands (index.cu)
 *   fetch        rows, where they lie -> out            each row crosses the link once, in the order of the table
 *   update       sums of gradients, rule, in place      one group of threads a row; records cross the link both ways at once
 *   store        values -> rows
 *
 * No row waits in a slot: what a call has changed is where it belongs when the stream goes on, so calls need no order of
 * their own. Rows of a file, which the GPU does not reach, go through pinned memory that the host's threads fill and empty.
 *
 * An announced list (prefetch) is indexed and its rows' weights are fetched into slots on a stream of its own. An update or
 * a store that comes before the fetch copies the rows that it shares into those slots. Whether a fetch asks for that list
 * is told by comparing ids on the GPU, so the host waits for nothing: one of two kernels finds that it has nothing to do.
 */
#include "rule.cuh"

#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LINK_BLOCKS = 64, /* enough requests for the link; more only take the GPU from others */
    RUN = 64,         /* places of a row that one warp fills */
    ANNOUNCED = 2
};
#define LIST "a list of ids" /* GPU memory for it, as gpu_take() has it */

/* set.table: NULL where none is announced here; set.slots[0]: [distinct rows x span] weights. */
struct announced {
    struct row_set set;
    uint64_t sequence;
};

struct bad_ids { /* in host memory that the GPU writes */
    unsigned long long count;
    long long id;
};

struct by_id {
    struct row_set set; /* of the call that runs; its ticket: the last call is done, whatever it was */
    struct announced announced[ANNOUNCED];
    uint64_t sequence;
    struct iota iota;
    struct sorting sorting, ahead_sorting; /* of calls; of announced lists, on `ahead` */
    struct gpu_array values, padded, partials, match;
    void *given; /* pinned: the caller's ids, on their way */
    uint64_t given_bytes;
    struct bad_ids *bad;
    cudaStream_t ahead;
    cudaEvent_t sent; /* `given` has been read */
};

/* ---- ids ---- */

template <class T> static __global__ void take_ids(const T *from, uint32_t count, uint64_t rows, uint32_t *to, struct bad_ids *bad) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long id = (long long)from[i];
    bool real = (unsigned long long)id < rows;
    to[i] = real ? (uint32_t)id : DRAW_NONE;
    if (real) return;
    bad->id = id;
    bad->count = 1;
    __threadfence_system();
}

static int open_set(struct backend *b, struct row_set *set) {
    if (gpu_take(b, (void **)&set->counts, sizeof *set->counts, LIST)) return -1;
    return row_set_open(set, 0, 1);
}

static void close_set(struct backend *b, struct row_set *set) {
    gpu_give(b, set->counts, sizeof *set->counts);
    row_set_close(b, set);
}

/* The ids where the GPU can read them. */
static int send_ids(struct backend *b, struct by_id *own, const struct rows_request *r, const void **ids) {
    uint64_t bytes = r->count * (r->id_bits / 8);
    *ids = r->ids;
    if (r->ids_on_gpu) return 0;
    CK(cudaEventSynchronize(own->sent));
    if (buffer_grow(b, &own->given, &own->given_bytes, bytes)) return -1;
    memcpy(own->given, r->ids, bytes);
    *ids = own->given; /* read over the link, once */
    return 0;
}

/* Fills set->ids. */
static int take(struct backend *b, struct by_id *own, struct row_set *set, const struct rows_request *r,
                cudaStream_t stream) {
    const void *from;
    uint32_t count = (uint32_t)r->count, blocks = blocks_for(count, THREADS);
    uint64_t rows = r->table->spec.rows;
    if (row_set_grow(b, set, r->count, LIST) || send_ids(b, own, r, &from)) return -1;
    uint32_t *to = (uint32_t *)set->ids.data;
    set->count = set->capacity = r->count;
    if (r->id_bits == 64) take_ids<<<blocks, THREADS, 0, stream>>>((const int64_t *)from, count, rows, to, own->bad);
    else take_ids<<<blocks, THREADS, 0, stream>>>((const int32_t *)from, count, rows, to, own->bad);
    CK_LAUNCH("take_ids");
    if (!r->ids_on_gpu) CK(cudaEventRecord(own->sent, stream));
    return 0;
}

static int index_set(struct backend *b, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows,
                     cudaStream_t stream) {
    uint64_t before = own->iota.count;
    if (cuda_grow_iota(b, &own->iota, set->count, LIST, stream) ||
        cuda_grow_sorting(b, sorting, (uint32_t)set->count, rows, LIST))
        return -1;
    if (own->iota.count != before) CK(cudaStreamSynchronize(stream)); /* other streams read it without asking */
    CK(cudaMemsetAsync(set->counts, 0, sizeof *set->counts, stream));
    struct indexing by;
    by.sorting = sorting;
    by.iota = &own->iota;
    by.count = (uint32_t)set->count;
    by.rows = rows;
    by.least = 1;
    by.stream = stream;
    return cuda_index(set, &by);
}

/* ---- where rows lie ---- */

/* One part of a table's records: hot rows, and the others by their number or, where a file's are in staging, by their place
 * among the distinct ones. */
struct row_part {
    char *hot, *rest;
    uint64_t hot_rows, stride;
    uint32_t staged; /* rest is staging: its first row is the first cold distinct one */
};

static __device__ __forceinline__ char *row_at(const struct row_part &part, uint32_t id, uint32_t distinct, uint32_t cold_first) {
    if (id < part.hot_rows) return part.hot + id * part.stride;
    return part.rest + (uint64_t)(part.staged ? distinct - cold_first : id) * part.stride;
}

static struct row_part part_of(const struct backend_table *table, const struct row_set *set, int part, uint64_t offset) {
    const struct store *store = &table->stores[part];
    struct row_part p;
    p.hot = store->gpu + offset;
    p.hot_rows = store->gpu_rows;
    p.stride = store->stride;
    p.staged = cuda_in_file(store);
    p.rest = p.staged      ? set->staging[part] + offset
             : store->host ? store->host_device - store->gpu_rows * store->stride + offset
                           : p.hot;
    return p;
}

static struct row_part weights_of(const struct backend_table *table, const struct row_set *set) {
    return part_of(table, set, 0, 0);
}
static struct row_part state_of(const struct backend_table *table, const struct row_set *set) {
    uint64_t behind_weights = (uint64_t)table->spec.layout.span * 4;
    return table->shared ? part_of(table, set, 0, behind_weights) : part_of(table, set, 1, 0);
}

static __global__ void find_cold(const uint32_t *distinct_ids, uint64_t hot_rows, struct batch_counts *counts) {
    counts->cold_first[0] = lower_bound(distinct_ids, 0, counts->distinct[0], hot_rows);
}

/* A file's rows of the first `parts` stores come to staging. The host waits for the GPU: its threads move them. */
static int stage_file(struct backend *b, struct row_set *set, int parts, cudaStream_t stream) {
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

/* ---- values ---- */

/* [count x dim] floats of the caller; `whole`: rows are whole 16 bytes at a multiple of 16. */
struct value_view {
    float *data;
    uint32_t dim;
    bool whole;
};

static __device__ __forceinline__ void write_quad(const struct value_view &to, uint32_t row, uint32_t q, float4 value) {
    float *at = to.data + (uint64_t)row * to.dim + 4 * q;
    if (to.whole) {
        *(float4 *)at = value;
        return;
    }
    for (uint32_t e = 0; e < 4 && 4 * q + e < to.dim; e++) at[e] = (&value.x)[e];
}

static __device__ __forceinline__ float4 read_quad(const struct value_view &from, uint32_t row, uint32_t q) {
    const float *at = from.data + (uint64_t)row * from.dim + 4 * q;
    if (from.whole) return *(const float4 *)at;
    float4 value = make_float4(0, 0, 0, 0);
    for (uint32_t e = 0; e < 4 && 4 * q + e < from.dim; e++) (&value.x)[e] = at[e];
    return value;
}

static struct value_view view_of(float *data, uint32_t dim) {
    struct value_view view;
    view.data = data;
    view.dim = dim;
    view.whole = dim % 4 == 0 && (uintptr_t)data % 16 == 0;
    return view;
}

/* The caller's values where the GPU reads them, or memory for them. */
static int reach_values(struct backend *b, struct by_id *own, const struct rows_request *r, int filled, cudaStream_t stream, float **at) {
    uint64_t bytes = r->count * r->table->spec.layout.dim * 4;
    *at = r->values;
    if (r->values_on_gpu) return 0;
    if (gpu_grow(b, &own->values, bytes, "a call's values")) return -1;
    *at = (float *)own->values.data;
    if (filled) CK(cudaMemcpyAsync(*at, r->values, bytes, cudaMemcpyHostToDevice, stream));
    return 0;
}

/* ---- fetch ---- */

/* keys, ranks: as sorting leaves them. */
struct list_view {
    struct row_set_view rows;
    const uint32_t *keys, *ranks;
    const struct batch_counts *counts;
    uint32_t count;
};

static struct list_view view_of_list(const struct row_set *set, const struct sorting *sorting) {
    struct list_view v;
    v.rows = row_set_view(set);
    v.keys = (const uint32_t *)sorting->keys.data;
    v.ranks = (const uint32_t *)sorting->ranks.data;
    v.counts = set->counts;
    v.count = (uint32_t)set->count;
    return v;
}

/* A warp reads the rows of two neighbours in the sorted list, so that the link always has requests waiting, and writes each to
 * all its places. A row that stands often is read again every RUN places, so that no warp has all the work. */
static __global__ void __launch_bounds__(THREADS) fetch_sorted(struct list_view v, struct row_part part, uint32_t quads, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    uint32_t cold_first = v.counts->cold_first[0];
    for (uint64_t pair = (uint64_t)warp * 2; pair < v.count; pair += (uint64_t)warps * 2) {
        const float4 *row[2];
        uint32_t end[2];
        for (int i = 0; i < 2; i++) {
            uint32_t at = (uint32_t)pair + i, key = at < v.count ? v.keys[at] : DRAW_NONE;
            bool head = key != DRAW_NONE && (at % RUN == 0 || v.keys[at - 1] != key);
            end[i] = at;
            row[i] = NULL;
            if (!head) continue;
            row[i] = (const float4 *)row_at(part, key, v.ranks[at] - 1, cold_first);
            do end[i]++;
            while (end[i] < v.count && end[i] % RUN != 0 && v.keys[end[i]] == key);
        }
        for (uint32_t q = lane; q < quads; q += 32) {
            float4 value[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i]) value[i] = row[i][q];
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (row[i])
                    for (uint32_t at = (uint32_t)pair + i; at < end[i]; at++) write_quad(out, v.rows.order[at], q, value[i]);
        }
    }
}

/* As the ids come: for rows on the GPU, which gain nothing from an order. `skip`: nothing is to be done where it is 1. */
static __global__ void __launch_bounds__(THREADS) fetch_plain(struct list_view v, struct row_part part, uint32_t quads, struct value_view out,
                                                              const uint32_t *skip) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    if (skip && *skip) return;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < v.count; i += warps) {
        uint32_t id = v.rows.ids[i];
        if (id == DRAW_NONE) continue;
        const float4 *row = (const float4 *)row_at(part, id, 0, 0);
        for (uint32_t q = lane; q < quads; q += 32) write_quad(out, i, q, row[q]);
    }
}

/* ---- announced lists ---- */

static __global__ void fetch_slots(struct list_view v, struct row_part part, uint32_t quads, float4 *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = v.counts->distinct[0];
    for (uint32_t row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        const float4 *from = (const float4 *)row_at(part, v.rows.distinct_ids[row], row, 0);
        for (uint32_t q = lane; q < quads; q += 32) slots[(uint64_t)row * quads + q] = from[q];
    }
}

static __global__ void compare_ids(const uint32_t *a, const uint32_t *b, uint32_t count, uint32_t *match) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && a[i] != b[i]) *match = 0;
}

static __global__ void set_match(uint32_t *match) {
    *match = 1;
}

static __global__ void __launch_bounds__(THREADS) fetch_announced(struct list_view v, const float4 *slots, uint32_t quads,
                                                                  struct value_view out, const uint32_t *match) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    if (!*match) return;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < v.count; i += warps) {
        uint32_t row = v.rows.distinct[i];
        if (row == DRAW_NONE) continue;
        const float4 *from = slots + (uint64_t)(row & ~SINGLE_BIT) * quads;
        for (uint32_t q = lane; q < quads; q += 32) write_quad(out, i, q, from[q]);
    }
}

/* Rows that a call has changed come into the slots of a list that was announced before. */
static __global__ void renew_slots(struct list_view changed, struct list_view v, struct row_part part, uint32_t quads, float4 *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = changed.counts->distinct[0], known = v.counts->distinct[0];
    uint32_t cold_first = changed.counts->cold_first[0];
    for (uint32_t row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        uint32_t id = changed.rows.distinct_ids[row], low = lower_bound(v.rows.distinct_ids, 0, known, id);
        if (low == known || v.rows.distinct_ids[low] != id) continue;
        const float4 *from = (const float4 *)row_at(part, id, row, cold_first);
        for (uint32_t q = lane; q < quads; q += 32) slots[(uint64_t)low * quads + q] = from[q];
    }
}

static int renew_announced(struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    uint32_t quads = r->table->spec.layout.span / 4;
    for (struct announced &a : own->announced) {
        if (a.set.table != r->table) continue;
        CK(cudaStreamWaitEvent(stream, a.set.ticket, 0));
        renew_slots<<<LINK_BLOCKS, THREADS, 0, stream>>>(view_of_list(&own->set, &own->sorting), view_of_list(&a.set, &own->ahead_sorting), weights_of(r->table, &own->set), quads,
                                                         (float4 *)a.set.slots[0].data);
        CK_LAUNCH("renew_slots");
    }
    return 0;
}

/* The list that this fetch may be asking for: the oldest of as many ids. */
static struct announced *find_announced(struct by_id *own, const struct rows_request *r) {
    struct announced *found = NULL;
    for (struct announced &a : own->announced)
        if (a.set.table == r->table && a.set.count == r->count && (!found || a.sequence < found->sequence)) found = &a;
    return found;
}

/* ---- store ---- */

static __global__ void __launch_bounds__(THREADS) store_sorted(struct list_view v, struct row_part part, uint32_t quads, struct value_view from) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, cold_first = v.counts->cold_first[0];
    for (uint32_t at = blockIdx.x * WARPS + threadIdx.x / 32; at < v.count; at += warps) {
        uint32_t key = v.keys[at];
        if (key == DRAW_NONE || (at + 1 < v.count && v.keys[at + 1] == key)) continue; /* the last of a row's places */
        float4 *row = (float4 *)row_at(part, key, v.ranks[at] - 1, cold_first);
        for (uint32_t q = lane; q < quads; q += 32) row[q] = read_quad(from, v.rows.order[at], q);
    }
}

/* ---- update ---- */

static __global__ void pad_values(struct value_view from, uint32_t quads, uint64_t count, float4 *to) {
    uint64_t all = count * quads, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step)
        to[i] = read_quad(from, (uint32_t)(i / quads), (uint32_t)(i % quads));
}

struct update {
    struct list_view ids;
    struct row_part weights, state;
    const struct item *items;
    const uint32_t *item_count;
    const float *summands; /* gradients in the order of the ids, or partial sums: rows of span floats */
    const uint32_t *places; /* order of the gradients; NULL: partial sums lie as they are */
    float *partials;
};

/* A piece of a row's gradients summed in the order of the ids; the rule, where the piece is all of it. The same sums in the same
 * order as a step's accumulate. */
template <int G, int VEC, int NS>
static __global__ void __launch_bounds__(CTA) update_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    constexpr uint32_t GROUPS = CTA / G;
    uint32_t tid = threadIdx.x % G, count = *u.item_count, cold_first = u.ids.counts->cold_first[0];
    for (uint32_t at = blockIdx.x * GROUPS + threadIdx.x / G; at < count; at += gridDim.x * GROUPS) {
        struct item item = u.items[at];
        uint32_t id = u.ids.rows.distinct_ids[item.row];
        char *weights = row_at(u.weights, id, item.row, cold_first), *state = row_at(u.state, id, item.row, cold_first);
        struct held_row<VEC, NS> held;
        float4 w[VEC], sum[VEC];
        bool last = item.partial == DRAW_NONE;
        held.updates = 0;
        if (last) {
            read_row<G, VEC>(w, weights, tid, v.quads);
            read_state<G, VEC, NS>(held, state, tid, v);
        }
        clear_row<VEC>(sum);
        for (uint32_t i = 0; i < item.count; i++) {
            uint32_t place = u.places ? u.places[item.first + i] : item.first + i;
            float4 row[VEC];
            read_row<G, VEC>(row, (const char *)(u.summands + place * v.span), tid, v.quads);
            add_row<VEC>(sum, 1, row);
        }
        group_wait<G>(); /* all have read the row's update count */
        if (last && v.rule.constants.clip > 0) {
            const uint32_t *first = u.ids.rows.distinct_starts + item.row;
            float squares[1] = {dot_rows<VEC>(sum, sum)};
            group_sum<G, 1>(squares);
            scale_row<VEC>(sum, rule_share(v.rule.constants.clip, first[1] - first[0], squares[0]));
        }
        if (last) update_row<G, VEC, NS>(held, sum, w, weights, state, tid, v);
        else write_row<G, VEC>(sum, (char *)(u.partials + item.partial * v.span), tid, v.quads);
    }
}

typedef void update_kernel(const struct step_view, const struct update);
struct updates {
    update_kernel *kernel;
    uint32_t group;
};
template <int G, int VEC, int NS> struct update_family {
    static struct updates get(void) {
        return {update_rows<G, VEC, NS>, G};
    }
};

static int launch_updates(struct backend *b, struct by_id *own, const struct rows_request *r, const float *gradients, cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    struct updates k = kernels_for<update_family>(layout->span / 4, layout->slots);
    uint64_t count = r->count, pieces = 2 * count / UPDATE_PIECE + 2;
    struct step_view v;
    struct update u;
    memset(&v, 0, sizeof v);
    v.quads = layout->span / 4;
    v.dim = layout->dim;
    v.span = layout->span;
    if (gpu_grow(b, &own->partials, pieces * layout->span * 4, "a call's partial sums") ||
        cuda_prepare_rule(b, r->rule, r->lr, r->global_step, layout->counted, stream, &v.rule))
        return -1;
    u.ids = view_of_list(&own->set, &own->sorting);
    u.weights = weights_of(r->table, &own->set);
    u.state = state_of(r->table, &own->set);
    u.items = (const struct item *)own->set.items.data;
    u.item_count = &own->set.counts->items[0];
    u.summands = gradients;
    u.places = u.ids.rows.order;
    u.partials = (float *)own->partials.data;
    uint32_t groups = CTA / k.group, most = 16 * (uint32_t)b->processors, grid = (uint32_t)((count + groups - 1) / groups);
    k.kernel<<<grid < most ? grid : most, CTA, 0, stream>>>(v, u);
    CK_LAUNCH("update_rows");
    if (count <= UPDATE_PIECE) return 0;
    u.items = (const struct item *)own->set.longs.data;
    u.item_count = &own->set.counts->longs[0];
    u.summands = u.partials;
    u.places = NULL;
    grid = (uint32_t)((count / UPDATE_PIECE + groups) / groups);
    k.kernel<<<grid < most ? grid : most, CTA, 0, stream>>>(v, u);
    CK_LAUNCH("update_rows");
    return 0;
}

/* ---- the calls ---- */

static int open_by_id(struct backend *b, struct by_id *own) {
    CK(cudaEventCreateWithFlags(&own->sent, cudaEventDisableTiming));
    CK(cudaStreamCreateWithFlags(&own->ahead, cudaStreamNonBlocking));
    if (buffer_take(b, (void **)&own->bad, sizeof *own->bad)) return -1;
    memset(own->bad, 0, sizeof *own->bad);
    for (struct announced &a : own->announced)
        if (open_set(b, &a.set)) return -1;
    return open_set(b, &own->set) || gpu_grow(b, &own->match, 4, LIST) ? -1 : 0;
}

static int begin(struct backend *b, const struct rows_request *r, struct by_id **own, cudaStream_t *stream) {
    *stream = (cudaStream_t)r->stream;
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
    (*own)->set.table = r->table;
    CK(cudaStreamWaitEvent(*stream, (*own)->set.ticket, 0)); /* scratch is one; calls may come on several streams */
    return 0;
}

static int end(struct by_id *own, cudaStream_t stream) {
    CK(cudaEventRecord(own->set.ticket, stream));
    return 0;
}

static unsigned blocks_of(const struct backend *b, const struct backend_table *table) {
    return table->stores[0].place == PLACE_GPU ? 8 * (unsigned)b->processors : LINK_BLOCKS;
}

/* From the announced list's slots, where it is that list, and otherwise as the ids come. */
static int fetch_from_announced(struct backend *b, struct by_id *own, struct announced *a, const struct rows_request *r,
                                struct value_view out, cudaStream_t stream) {
    uint32_t *match = (uint32_t *)own->match.data, count = (uint32_t)r->count, quads = r->table->spec.layout.span / 4;
    unsigned blocks = 8 * (unsigned)b->processors;
    set_match<<<1, 1, 0, stream>>>(match);
    compare_ids<<<blocks_for(count, THREADS), THREADS, 0, stream>>>((const uint32_t *)own->set.ids.data, (const uint32_t *)a->set.ids.data, count, match);
    CK_LAUNCH("compare_ids");
    CK(cudaStreamWaitEvent(stream, a->set.ticket, 0));
    fetch_announced<<<blocks, THREADS, 0, stream>>>(view_of_list(&a->set, &own->ahead_sorting), (const float4 *)a->set.slots[0].data, quads, out, match);
    CK_LAUNCH("fetch_announced");
    fetch_plain<<<blocks_of(b, r->table), THREADS, 0, stream>>>(view_of_list(&own->set, &own->sorting), weights_of(r->table, &own->set), quads, out, match);
    CK_LAUNCH("fetch_plain");
    a->set.table = NULL;
    return 0;
}

static int fetch(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
    uint32_t quads = r->table->spec.layout.span / 4;
    struct announced *announced = find_announced(own, r);
    if (take(b, own, &own->set, r, stream)) return -1;
    if (announced) return fetch_from_announced(b, own, announced, r, out, stream);
    if (r->table->stores[0].place == PLACE_GPU) {
        fetch_plain<<<blocks_of(b, r->table), THREADS, 0, stream>>>(view_of_list(&own->set, &own->sorting), weights_of(r->table, &own->set), quads, out, NULL);
        CK_LAUNCH("fetch_plain");
        return 0;
    }
    if (index_set(b, own, &own->set, &own->sorting, r->table->spec.rows, stream) ||
        stage_file(b, &own->set, 1, stream))
        return -1;
    fetch_sorted<<<LINK_BLOCKS, THREADS, 0, stream>>>(view_of_list(&own->set, &own->sorting), weights_of(r->table, &own->set), quads, out);
    CK_LAUNCH("fetch_sorted");
    return 0;
}

int cuda_by_id_fetch(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    float *out;
    if (begin(b, r, &own, &stream) || reach_values(b, own, r, 0, stream, &out)) return -1;
    if (fetch(b, own, r, view_of(out, r->table->spec.layout.dim), stream)) return -1;
    if (!r->values_on_gpu) {
        CK(cudaMemcpyAsync(r->values, out, r->count * r->table->spec.layout.dim * 4, cudaMemcpyDeviceToHost, stream));
        CK(cudaStreamSynchronize(stream));
    }
    return end(own, stream);
}

/* A file's rows cannot come without the host, which would have to wait: they come when they are fetched. */
int cuda_by_id_prefetch(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    uint64_t span = r->table->spec.layout.span;
    if (r->table->stores[0].place == PLACE_GPU || cuda_in_file(&r->table->stores[0])) return 0;
    if (begin(b, r, &own, &stream)) return -1;
    struct announced *a = &own->announced[0];
    for (struct announced &other : own->announced)
        if (!other.set.table || (a->set.table && other.sequence < a->sequence)) a = &other;
    if (gpu_grow(b, &a->set.slots[0], r->count * span * 4, "announced rows")) return -1;
    a->set.table = NULL;
    /* The caller's ids are read in the order of the caller's stream; what was announced here before is done with. */
    CK(cudaStreamWaitEvent(stream, a->set.ticket, 0));
    if (take(b, own, &a->set, r, stream) || end(own, stream)) return -1;
    /* Behind all that was asked before: rows that it changes are home then, and the slots are no longer read. */
    CK(cudaStreamWaitEvent(own->ahead, own->set.ticket, 0));
    if (index_set(b, own, &a->set, &own->ahead_sorting, r->table->spec.rows, own->ahead)) return -1;
    fetch_slots<<<LINK_BLOCKS, THREADS, 0, own->ahead>>>(view_of_list(&a->set, &own->ahead_sorting), weights_of(r->table, &own->set), (uint32_t)(span / 4), (float4 *)a->set.slots[0].data);
    CK_LAUNCH("fetch_slots");
    CK(cudaEventRecord(a->set.ticket, own->ahead));
    a->set.table = r->table;
    a->sequence = ++own->sequence;
    return 0;
}

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
    return take(b, own, &own->set, r, *stream) ||
                   index_set(b, own, &own->set, &own->sorting, r->table->spec.rows, *stream) ||
                   stage_file(b, &own->set, parts, *stream)
               ? -1
               : 0;
}

/* Host memory that was given may be used again: its copy is done. */
static int end_change(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    int staged = own->set.way[0] == HOME_STAGED || own->set.way[1] == HOME_STAGED;
    if (renew_announced(own, r, stream)) return -1;
    if (staged) CK(cudaStreamSynchronize(stream));
    if (staged && row_set_land(b, &own->set)) return -1;
    if (end(own, stream)) return -1;
    if (!r->values_on_gpu) CK(cudaStreamSynchronize(stream));
    return 0;
}

int cuda_by_id_store(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    float *values;
    if (begin_change(b, r, 1, &own, &stream) || reach_values(b, own, r, 1, stream, &values)) return -1;
    store_sorted<<<blocks_of(b, r->table), THREADS, 0, stream>>>(view_of_list(&own->set, &own->sorting), weights_of(r->table, &own->set),
                                                                 r->table->spec.layout.span / 4, view_of(values, r->table->spec.layout.dim));
    CK_LAUNCH("store_sorted");
    return end_change(b, own, r, stream);
}

int cuda_by_id_update(struct backend *b, const struct rows_request *r) {
    const struct record_layout *layout = &r->table->spec.layout;
    struct by_id *own;
    cudaStream_t stream;
    float *gradients;
    if (begin_change(b, r, 2, &own, &stream) || reach_values(b, own, r, 1, stream, &gradients)) return -1;
    struct value_view given = view_of(gradients, layout->dim);
    if (!given.whole) {
        if (gpu_grow(b, &own->padded, r->count * layout->span * 4, "a call's values")) return -1;
        pad_values<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(given, layout->span / 4, r->count, (float4 *)own->padded.data);
        CK_LAUNCH("pad_values");
        gradients = (float *)own->padded.data;
    }
    if (launch_updates(b, own, r, gradients, stream)) return -1;
    return end_change(b, own, r, stream);
}

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
    return found ? fail("ids on the GPU were no rows of their table (%lld, for one); what named them was left out", id) : 0;
}

struct rows_view cuda_by_id_view(struct backend *b, const struct backend_table *table, int slot) {
    const struct store *store = slot < 0 ? &table->stores[0] : &table->stores[table->parts - 1];
    struct rows_view view;
    uint64_t span = (uint64_t)table->spec.layout.span * 4, offset = slot < 0 ? 0 : (uint64_t)slot * span + (table->shared ? span : 0);
    view.data = store->host ? (float *)(store->host + offset) : NULL;
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
    close_set(b, &own->set);
    for (struct announced &a : own->announced) close_set(b, &a.set);
    if (own->sent) cudaEventDestroy(own->sent);
    buffer_give(b, own->given, own->given_bytes);
    buffer_give(b, own->bad, sizeof *own->bad);
    if (own->ahead) cudaStreamDestroy(own->ahead);
    free(own);
    b->by_id = NULL;
}
