/* by_id: rows by id, for models of a library's caller: fetch, update and store, in the order of the caller's stream. The last
 * part of this file carries out a call from beginning to end, by these parts:
 *
 *   ids       copied as 32-bit numbers and checked; ids that are no rows are left out and recorded      below
 *   index     the sorted ids; for each distinct row its places in the list                              batch_index.cu
 *   fetch     copies rows to the caller; each row of a long list crosses the link once                  by_id_rows.cu
 *   store     copies the caller's values to rows; if a row is named twice, its last values              by_id_rows.cu
 *   claims    for a list whose rows need no order: decides which place copies each row                  by_id_rows.cu
 *   update    sums the gradients of each row, and applies the rule in place                             by_id_rows.cu
 *   prefetch  of an announced list: indexes it, and fetches its rows' weights into slots                below
 *   cache     keeps rows that are used often on the GPU                                                 below
 *
 * An update needs the index, since it sums in the order of the ids. A fetch or a store uses as few kernels as possible, by one of several
 * ways (list_way below), since apart from copying rows most of its time passes between two kernels. All ways have the same result.
 *
 * The list of a call is a row set (cuda.cuh). Its rows are not kept in slots: changed rows are in the table when the stream
 * continues, so calls need not wait for each other in any other way. The GPU cannot access rows of a file: they are copied through
 * staging, which the host's threads fill and empty.
 */
#include "by_id.cuh"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

/* ==== rows that are used often ====
 *
 * Finds the rows that calls by id use often, and keeps copies of their records on the GPU (table_spec.gpu_cache).
 *
 *   places   [rows]    slot of the row's copy; DRAW_NONE: the row is only on the host
 *   owners   [slots]   row whose copy is in the slot; DRAW_NONE: the slot is empty
 *   uses     [rows]    number of calls that named the row, halved every AGE calls
 *
 * If a row has a copy, calls read and change the copy (by_id.cuh: row_at). The record on the host is then old, until the slot is
 * given to another row or the whole table is read. Where a row is stored changes no value, so all results are the same to the byte
 * with any number of slots.
 *
 * After a long call, each of its rows without a copy is compared with one row of the cache, drawn at random, and gets that row's
 * slot if it was used more often. A call moves a limited number of rows. The GPU does all of this; the host waits for nothing.
 */

enum {
    AGE = 256,       /* calls between two halvings of `uses` */
    MOVES_SHARE = 32 /* a call of n ids moves at most n / MOVES_SHARE rows to the GPU */
};

struct cache_move {
    uint32_t slot, row, before; /* a row that moves to a slot; before: the row that had the slot until now, or DRAW_NONE */
};

struct row_cache {
    uint64_t slots, calls;
    uint32_t *places, *owners, *claims; /* claims: [slots] number of the last call in which a row took the slot */
    uint16_t *uses;
    uint32_t *moved;              /* number of rows that the current call moves */
    struct gpu_array moves;       /* the rows that the current call moves: struct cache_move */
    char *memory[2];              /* by store: the copies, [slots] records; NULL: all rows of the store are on the GPU */
    int changed;                  /* 1: a record on the host may be older than its copy on the GPU */
};

struct cache_view {
    uint32_t *places, *owners, *claims, *moved;
    uint16_t *uses;
    struct cache_move *moves;
    uint32_t slots, most, call;
};

/* ---- kernels ---- */

/* Counts the uses of a call's rows, and lists the rows to move. It does not change `places` and `owners`, so that a row that
 * loses its slot does not take another one in the same call. */
static __global__ void __launch_bounds__(THREADS) choose_moves(struct list_view v, struct cache_view cache) {
    uint32_t distinct = v.counts->distinct[0];
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < distinct; i += gridDim.x * THREADS) {
        uint32_t row = v.rows.distinct_ids[i], uses = min(cache.uses[row] + 1u, (uint32_t)UINT16_MAX);
        cache.uses[row] = (uint16_t)uses;
        if (cache.places[row] != DRAW_NONE || *(volatile uint32_t *)cache.moved >= cache.most) continue;
        uint32_t slot = __umulhi(shuffle_mix(row, cache.call), cache.slots), before = cache.owners[slot];
        uint32_t rival = before == DRAW_NONE ? 0 : cache.uses[before];
        if (uses <= rival + rival / 8 || (before != DRAW_NONE && uses < 2)) continue;
        if (atomicExch(&cache.claims[slot], cache.call) == cache.call) continue;
        uint32_t at = atomicAdd(cache.moved, 1);
        if (at < cache.most) cache.moves[at] = {slot, row, before};
    }
}

static __global__ void set_places(struct cache_view cache) {
    uint32_t moves = min(*cache.moved, cache.most);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < moves; i += gridDim.x * THREADS) {
        struct cache_move move = cache.moves[i];
        if (move.before != DRAW_NONE) cache.places[move.before] = DRAW_NONE;
        cache.places[move.row] = move.slot;
        cache.owners[move.slot] = move.row;
    }
}

/* Moves rows in one store: copies the record in each slot back to the host, and then the new row's record from the host to the slot. */
static __global__ void __launch_bounds__(THREADS) move_records(struct cache_view cache, char *memory, char *home, uint64_t stride) {
    uint32_t lane = threadIdx.x & 31, moves = min(*cache.moved, cache.most);
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < moves; i += gridDim.x * WARPS) {
        struct cache_move move = cache.moves[i];
        char *slot = memory + move.slot * stride;
        for (uint32_t c = lane; c < stride / CHUNK_BYTES; c += 32) {
            float4 coming = read_chunk(home + move.row * stride, c);
            if (move.before != DRAW_NONE) copy_chunk(home + move.before * stride, slot, c);
            write_chunk(slot, c, coming);
        }
    }
}

static __global__ void __launch_bounds__(THREADS) send_home(const uint32_t *owners, uint32_t slots, const char *memory, char *home, uint64_t stride) {
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t slot = blockIdx.x * WARPS + threadIdx.x / 32; slot < slots; slot += gridDim.x * WARPS) {
        if (owners[slot] == DRAW_NONE) continue;
        for (uint32_t c = lane; c < stride / CHUNK_BYTES; c += 32) copy_chunk(home + owners[slot] * stride, memory + slot * stride, c);
    }
}

static __global__ void halve_uses(uint16_t *uses, uint64_t rows) {
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < rows; i += (uint64_t)gridDim.x * THREADS) uses[i] /= 2;
}

/* ---- opening and closing ---- */

static bool has_slots(const struct row_cache *cache, int part) {
    return cache && cache->memory[part];
}

static int take_arrays(struct backend *b, const struct backend_table *table, struct row_cache *cache) {
    const char *what = "which rows are used often";
    uint64_t rows = table->spec.rows, slots = cache->slots;
    if (gpu_take(b, (void **)&cache->places, rows * sizeof *cache->places, what) ||
        gpu_take(b, (void **)&cache->uses, rows * sizeof *cache->uses, what) ||
        gpu_take(b, (void **)&cache->owners, slots * sizeof *cache->owners, what) ||
        gpu_take(b, (void **)&cache->claims, slots * sizeof *cache->claims, what) || gpu_take(b, (void **)&cache->moved, sizeof *cache->moved, what))
        return -1;
    for (int i = 0; i < table->parts; i++)
        if (table->stores[i].host_device && gpu_take(b, (void **)&cache->memory[i], slots * table->stores[i].stride, "rows used often")) return -1;
    CK(cudaMemset(cache->places, 0xFF, rows * sizeof *cache->places));
    CK(cudaMemset(cache->owners, 0xFF, slots * sizeof *cache->owners));
    return gpu_fill(cache->uses, NULL, rows * sizeof *cache->uses) || gpu_fill(cache->claims, NULL, slots * sizeof *cache->claims) ? -1 : 0;
}

int cuda_cache_open(struct backend *b, struct backend_table *table) {
    uint64_t slots = std::min(table->spec.gpu_cache, table->spec.rows - table->spec.first_row);
    bool in_file = table->stores[0].place == PLACE_FILE || (table->parts == 2 && table->stores[1].place == PLACE_FILE);
    if (!slots || (!table->stores[0].host && !table->stores[1].host)) return 0;
    if (in_file) return fail("rows of a file are not cached on the GPU (gpu_rows); use the place 'pinned', or hot_rows");
    if (table->stores[0].gpu_rows > table->spec.first_row && table->stores[0].host) return fail("a table has either hot_rows or gpu_rows, not both");
    table->cache = (struct row_cache *)mem_zalloc(1, sizeof *table->cache, "a cache of rows");
    if (!table->cache) return -1;
    table->cache->slots = slots;
    return take_arrays(b, table, table->cache);
}

void cuda_cache_close(struct backend *b, struct backend_table *table) {
    struct row_cache *cache = table->cache;
    if (!cache) return;
    uint64_t rows = table->spec.rows;
    gpu_give(b, cache->places, rows * sizeof *cache->places);
    gpu_give(b, cache->uses, rows * sizeof *cache->uses);
    gpu_give(b, cache->owners, cache->slots * sizeof *cache->owners);
    gpu_give(b, cache->claims, cache->slots * sizeof *cache->claims);
    gpu_give(b, cache->moved, sizeof *cache->moved);
    gpu_drop(b, &cache->moves);
    for (int i = 0; i < 2; i++) gpu_give(b, cache->memory[i], cache->slots * table->stores[i].stride);
    free(cache);
    table->cache = NULL;
}

/* ---- calls ---- */

/* Used only if the table has a cache: sets in *of where kernels find the rows of store `part`, `offset` bytes after the beginning of a record. */
static void cuda_cache_part(const struct backend_table *table, int part, uint64_t offset, struct row_part *of) {
    of->places = has_slots(table->cache, part) ? table->cache->places : NULL;
    if (of->places) of->hot = table->cache->memory[part] + offset;
}

/* Must be called before a call changes rows of the table. */
static void cuda_cache_changed(struct backend_table *table) {
    if (table->cache) table->cache->changed = 1;
}

/* Counts the uses of the rows of own->set, which must be indexed, and moves often used rows to the GPU. */
static int cuda_cache_learn(struct backend *b, struct by_id *own, cudaStream_t stream) {
    const struct row_set *set = &own->set;
    struct backend_table *table = set->table;
    struct row_cache *cache = table->cache;
    uint64_t most = set->count / MOVES_SHARE + 1;
    if (!cache) return 0;
    INVARIANT(cache->slots && cache->slots <= table->spec.rows - table->spec.first_row);
    for (const struct announced &a : own->announced) /* an announced list's rows are being copied from where they are now */
        if (a.set.table == table) CK(cudaStreamWaitEvent(stream, a.set.ticket, 0));
    if (gpu_grow(b, &cache->moves, most * sizeof(struct cache_move), "rows that are moved")) return -1;
    struct cache_view v = {cache->places, cache->owners, cache->claims, cache->moved, cache->uses,
                           (struct cache_move *)cache->moves.data, (uint32_t)cache->slots, (uint32_t)most,
                           (uint32_t)(++cache->calls)};
    unsigned blocks = 4 * (unsigned)b->processors;
    CK(cudaMemsetAsync(cache->moved, 0, sizeof *cache->moved, stream));
    if (cache->calls % AGE == 0) halve_uses<<<blocks, THREADS, 0, stream>>>(cache->uses, table->spec.rows);
    choose_moves<<<blocks, THREADS, 0, stream>>>(list_view(set), v);
    for (int i = 0; i < table->parts; i++)
        if (has_slots(cache, i))
            move_records<<<LINK_BLOCKS, THREADS, 0, stream>>>(v, cache->memory[i], gpu_home_of(&table->stores[i]), table->stores[i].stride);
    set_places<<<blocks, THREADS, 0, stream>>>(v);
    CK_LAUNCH("set_places");
    return 0;
}

/* ---- whole tables ---- */

int cuda_cache_send_home(struct backend *b, struct backend_table *table) {
    struct row_cache *cache = table->cache;
    if (!cache || !cache->changed) return 0;
    for (int i = 0; i < table->parts; i++)
        if (has_slots(cache, i))
            send_home<<<4 * (unsigned)b->processors, THREADS>>>(cache->owners, (uint32_t)cache->slots, cache->memory[i],
                                                                gpu_home_of(&table->stores[i]), table->stores[i].stride);
    CK_LAUNCH("send_home");
    CK(cudaDeviceSynchronize());
    cache->changed = 0;
    return 0;
}

int cuda_cache_empty(struct backend *b, struct backend_table *table) {
    struct row_cache *cache = table->cache;
    if (!cache) return 0;
    if (cuda_cache_send_home(b, table)) return -1;
    CK(cudaMemset(cache->places, 0xFF, table->spec.rows * sizeof *cache->places));
    CK(cudaMemset(cache->owners, 0xFF, cache->slots * sizeof *cache->owners));
    CK(cudaDeviceSynchronize());
    return 0;
}

int cuda_cache_rows(struct backend *b, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count) {
    const struct row_cache *cache = table->cache;
    *count = 0;
    if (!cache) return 0;
    CK(cudaSetDevice(b->device));
    CK(cudaDeviceSynchronize());
    uint32_t *owners = (uint32_t *)mem_alloc(cache->slots, sizeof *owners, "cached rows");
    if (!owners) return -1;
    cudaError_t error = cudaMemcpy(owners, cache->owners, cache->slots * sizeof *owners, cudaMemcpyDeviceToHost);
    for (uint64_t i = 0; error == cudaSuccess && i < cache->slots; i++) {
        if (owners[i] == DRAW_NONE) continue;
        if (*count < most) rows[*count] = owners[i];
        ++*count;
    }
    free(owners);
    CK(error);
    return 0;
}

/* ==== ids of a list ====
 *
 * Turns a list of ids into a row set: copies the ids as 32-bit numbers, checks and sorts them, and finds where
 * kernels can read the rows. Rows of a file are read into staging, since the GPU cannot read files. */

#define LIST "a list of ids" /* what gpu_take() says the memory is for */

static int by_id_open_set(struct backend *b, struct row_set *set) {
    if (gpu_take(b, (void **)&set->counts, sizeof *set->counts, LIST)) return -1;
    return row_set_open(set, 0, 1);
}

static void by_id_close_set(struct backend *b, struct row_set *set) {
    gpu_give(b, set->counts, sizeof *set->counts);
    row_set_close(b, set);
}

/* ---- ids ---- */

static __global__ void take_ids(struct id_view from, uint32_t *to) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < from.count) to[i] = read_id(from, i);
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

/* Copies a request's ids to set->ids. */
static int by_id_take(struct backend *b, struct by_id *own, struct row_set *set, const struct rows_request *r, cudaStream_t stream) {
    struct id_view from = by_id_given(own, r);
    if (row_set_grow(b, set, r->count, LIST)) return -1;
    set->count = set->capacity = r->count;
    take_ids<<<blocks_for(from.count, THREADS), THREADS, 0, stream>>>(from, (uint32_t *)set->ids.data);
    CK_LAUNCH("take_ids");
    return by_id_have_read(own, r, stream);
}

/* ---- order ---- */

static int prepare_sorting(struct backend *b, struct by_id *own, const struct row_set *set, struct sorting *sorting,
                           uint64_t rows, cudaStream_t stream, struct indexing *by) {
    uint64_t before = own->iota.count;
    if (cuda_grow_iota(b, &own->iota, set->count, LIST, stream) || cuda_grow_sorting(b, sorting, (uint32_t)set->count, rows, LIST)) return -1;
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

/* by_id_sort() sorts a copied list in the table's order, and fills only the set's keys and order. by_id_index() fills the whole index. */
static int by_id_sort(struct backend *b, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows, cudaStream_t stream) {
    struct indexing by;
    return prepare_sorting(b, own, set, sorting, rows, stream, &by) || cuda_sort(set, &by) ? -1 : 0;
}

static int by_id_index(struct backend *b, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows, cudaStream_t stream) {
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
    p.rest = p.staged ? set->staging[part] + offset : store->host ? gpu_home_of(store) + offset : p.hot;
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

/* Reads rows of the first `parts` stores from their files into staging. The host's threads do this, so this call waits until the
 * GPU has sent the host the ids. */
static int by_id_stage_file(struct backend *b, struct row_set *set, int parts, cudaStream_t stream) {
    int in_file[2] = {0, 0};
    for (int part = 0; part < parts && part < set->table->parts; part++) in_file[part] = cuda_in_file(&set->table->stores[part]);
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

/* ==== announced lists ====
 *
 * Announced lists of ids. Their rows' weights are fetched into slots on a separate stream, while the
 * caller does other work.
 *
 * If an update or a store changes rows before the fetch, it also copies them into the slots. The GPU compares ids to find out whether a
 * fetch is for the announced list, so the host waits for nothing: two kernels are launched, and one of them has nothing to do.
 */

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
    fetch_announced(struct list_view v, const char *slots, uint32_t bytes, uint32_t chunks, struct value_view out, const uint32_t *match) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    if (!*match) return;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32; i < v.count; i += warps) {
        uint32_t row = v.rows.distinct[i];
        if (row == DRAW_NONE) continue;
        const char *from = slots + (uint64_t)(row & ~SINGLE_BIT) * bytes;
        for (uint32_t c = lane; c < chunks; c += 32) give_chunk<F>(out, i, c, read_chunk(from, c));
    }
}

static __global__ void renew_slots(struct list_view changed, struct list_view v, struct row_part part, uint32_t bytes, char *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = changed.counts->distinct[0], known = v.counts->distinct[0];
    uint32_t cold_first = changed.counts->cold_first[0];
    for (uint32_t row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        uint32_t id = changed.rows.distinct_ids[row], low = lower_bound(v.rows.distinct_ids, 0, known, id);
        if (low == known || v.rows.distinct_ids[low] != id) continue;
        const char *from = row_at(part, id, row, cold_first);
        for (uint32_t i = lane; i < bytes / CHUNK_BYTES; i += 32) copy_chunk(slots + (uint64_t)low * bytes, from, i);
    }
}

/* Begins to fetch the rows of the request's list, after all work that was requested before. */
static int by_id_announce(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
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
    fetch_slots<<<LINK_BLOCKS, THREADS, 0, own->ahead>>>(list_view(&a->set), by_id_weights(&own->set), (uint32_t)bytes, (char *)a->set.slots[0].data);
    CK_LAUNCH("fetch_slots");
    CK(cudaEventRecord(a->set.ticket, own->ahead));
    a->set.table = r->table;
    a->sequence = ++own->sequence;
    return 0;
}

/* Returns an announced list that may have the ids of this fetch, or NULL. */
static struct announced *by_id_find_announced(struct by_id *own, const struct rows_request *r) {
    struct announced *found = NULL;
    for (struct announced &a : own->announced)
        if (a.set.table == r->table && a.set.count == r->count && (!found || a.sequence < found->sequence)) found = &a;
    return found;
}

/* Returns 1 if a list of the table is announced: a call that changes rows must then find its distinct rows, too. */
static int by_id_is_announced(const struct by_id *own, const struct backend_table *table) {
    for (const struct announced &a : own->announced)
        if (a.set.table == table) return 1;
    return 0;
}

/* Fetches from the announced list's slots if the fetch has the same ids; then *match, on the GPU, is set to 1, and the call is complete. */
static int by_id_fetch_announced(struct backend *b, struct by_id *own, struct announced *a, struct value_view out, cudaStream_t stream) {
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

/* Copies the rows that the current call has changed into the slots of announced lists. */
static int by_id_renew_announced(struct by_id *own, cudaStream_t stream) {
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

/* ==== a call ==== */

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
    uint64_t bytes = 4096; /* a power of two, so that a slightly longer list needs no new memory: allocating would stop the GPU */
    if (find_by_id(b, &own)) return -1;
    own->turn = (own->turn + 1) % GIVEN;
    INVARIANT(count <= UINT32_MAX && bytes % sizeof(uint32_t) == 0);
    struct given *given = &own->given[own->turn];
    CK(cudaEventSynchronize(given->sent));
    while (bytes < count * sizeof(uint32_t)) bytes *= 2;
    if (buffer_grow(b, (void **)&given->ids, &given->bytes, bytes)) return -1;
    *ids = given->ids;
    return 0;
}

static int begin(struct backend *b, const struct rows_request *r, struct by_id **own, cudaStream_t *stream) {
    *stream = (cudaStream_t)r->stream;
    if (find_by_id(b, own)) return -1;
    bool in_flight = false; /* rows of batches in flight must be copied back to their tables first */
    for (unsigned i = 0; i < b->depth; i++) in_flight |= cuda_in_flight(&b->stages[i]) != 0;
    if (in_flight && cuda_drain(b)) return -1;
    (*own)->set.table = r->table;
    (*own)->step = r->global_step;
    CK(cudaStreamWaitEvent(*stream, (*own)->set.ticket, 0)); /* all calls use the same scratch memory, but perhaps different streams */
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
    AS_GIVEN, /* in the order of the list, for rows on the GPU, and for few rows: by one kernel, or by two if a long list is in host memory */
    CLAIMED,  /* in any order, each row once */
    SORTED,   /* in the order of the table, each row once */
    INDEXED   /* as SORTED, and the distinct rows are known: for files and caches, and if an announced list may contain the same rows */
};

/* The way of a long list. The order of the table helps where the link is faster with it: 512-byte rows of 16 GiB are fetched at 50 GB/s in any
 * order, and stored at 46 unsorted and 51 sorted, including sorting. Pinned rows reach 15 unsorted; sorted, 20 with 8,192 rows,
 * 26 with 262,144, 52 with 1,048,576. Rows of 1 GiB always reach 50. */
static enum list_way long_way(const struct rows_request *r) {
    const struct store *store = &r->table->stores[0];
    bool order_helps = cuda_is_cold(store) && store->bytes > NEAR_BYTES && r->count >= store->bytes / DENSE_BYTES;
    return r->count > CLAIMED_MOST || order_helps ? SORTED : CLAIMED;
}

static enum list_way fetch_way(const struct rows_request *r) {
    const struct store *store = &r->table->stores[0];
    if (cuda_in_file(store) || (r->table->cache && r->count > FEW)) return INDEXED;
    return r->count <= FEW || !cuda_is_cold(store) ? AS_GIVEN : long_way(r);
}

static int take_sorted(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    return by_id_take(b, own, &own->set, r, stream) || by_id_sort(b, own, &own->set, &own->sorting, r->table->spec.rows, stream) ? -1 : 0;
}

/* Indexes the list. If some of the first `parts` stores are in files, reads the list's rows from these files into staging. */
static int take_indexed(struct backend *b, struct by_id *own, const struct rows_request *r, int parts, cudaStream_t stream) {
    return by_id_take(b, own, &own->set, r, stream) || by_id_index(b, own, &own->set, &own->sorting, r->table->spec.rows, stream) ||
                   by_id_stage_file(b, &own->set, parts, stream)
               ? -1
               : 0;
}

/* ---- fetch ---- */

static int fetch_taken(struct backend *b, struct by_id *own, const struct rows_request *r, struct announced *announced,
                       struct value_view out, cudaStream_t stream) {
    if (by_id_take(b, own, &own->set, r, stream)) return -1;
    const struct table_spec *spec = &r->table->spec;
    struct id_view ids = {own->set.ids.data, NULL, spec->first_row, spec->rows, (uint32_t)own->set.count, id_view::TAKEN};
    if (!announced) return by_id_fetch_plain(b, own, &ids, NULL, NULL, out, stream);
    /* The GPU decides which of these two kernels does the work; the other one does nothing. */
    return by_id_fetch_announced(b, own, announced, out, stream) ||
                   by_id_fetch_plain(b, own, &ids, NULL, (const uint32_t *)own->match.data, out, stream)
               ? -1
               : 0;
}

static int fetch_as_given(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
    struct id_view ids = by_id_given(own, r);
    if (r->count > FEW && !r->ids_on_gpu) return fetch_taken(b, own, r, NULL, out, stream); /* so that ids cross the link in large requests */
    return by_id_fetch_plain(b, own, &ids, NULL, NULL, out, stream) || by_id_have_read(own, r, stream) ? -1 : 0;
}

static int fetch(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
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
    if (begin(b, r, &own, &stream) || reach_values(b, own, r, 0, stream, &out) || fetch(b, own, r, out, stream)) return -1;
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

static int store(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view values, cudaStream_t stream) {
    enum list_way way = cuda_in_file(&r->table->stores[0]) || by_id_is_announced(own, r->table) ? INDEXED : r->count <= FEW ? AS_GIVEN : long_way(r);
    struct id_view ids = by_id_given(own, r);
    if (way == AS_GIVEN) return by_id_store_few(b, own, &ids, values, stream) || by_id_have_read(own, r, stream) ? -1 : 0;
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
    return found ? fail("ids on the GPU were no rows of their table (%lld, for one); what named them was left out", id) : 0;
}

struct rows_view cuda_by_id_view(struct backend *b, const struct backend_table *table, const struct record_field *field) {
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
