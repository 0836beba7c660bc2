/* by_id: rows by id, for the models of programs that use libsptx: fetch, update and store, in the order of the caller's stream. The last part of this
 * file carries out a call from beginning to end, by these parts:
 *
 *   ids       copied as 32-bit numbers and checked; ids that are no rows are left out and recorded      below
 *   index     the sorted ids; for each distinct row its places in the list                              batch_index.cu
 *   fetch     copies rows to the caller; each row of a long list crosses the link once                  by_id_rows.cu
 *   store     copies the caller's values to rows; if a row is named twice, its last values              by_id_rows.cu
 *   claims    for a list whose rows need no order: decides which place copies each row                  by_id_rows.cu
 *   update    sums the gradients of each row, and applies the rule in place                             by_id_rows.cu
 *   resident  lists whose rows are on the GPU: announced by prefetch, fetched, or updated               below
 *   cache     keeps rows that are used often on the GPU                                                 below
 *
 * An update needs the index, since it sums in the order of the ids. A fetch or a store uses as few kernels as possible, by one of several
 * ways (list_way below), since apart from copying rows most of its time passes between two kernels. All ways have the same result.
 *
 * The list of a call is a row set (cuda.cuh). Changed rows are in the table when the stream continues, or in a resident list, where the
 * next call looks for them. The GPU cannot access rows of a file: they are copied through staging, which the host's threads fill and
 * empty.
 */
#include "by_id.cuh"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

/* ==== rows that are used often ====
 *
 * Finds the rows that calls by id use often, and keeps copies of their records on the GPU (table_spec.gpu_cache).
 *
 *   places   [rows]    slot of the row's copy; DRAW_NONE: the row has no copy
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

/* Counts the uses of a call's rows, and lists the rows to move. `places` and `owners` are changed later, so that a row that loses its slot does
 * not take another slot in the same call. */
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

/* Only for tables with a cache. Tells kernels in *of where the rows of store `part` are, from `offset` bytes after the beginning of a record. */
static void cuda_cache_part(const struct backend_table *table, int part, uint64_t offset, struct row_part *of) {
    of->places = has_slots(table->cache, part) ? table->cache->places : NULL;
    if (of->places) of->hot = table->cache->memory[part] + offset;
}

/* Must be called before a call changes rows of the table. */
static void cuda_cache_changed(struct backend_table *table) {
    if (table->cache) table->cache->changed = 1;
}

/* Counts the uses of the rows of own->set, which must be indexed. Moves rows that are used often to the GPU. */
static int cuda_cache_learn(struct backend *b, struct by_id *own, cudaStream_t stream) {
    const struct row_set *set = &own->set;
    struct backend_table *table = set->table;
    struct row_cache *cache = table->cache;
    uint64_t most = set->count / MOVES_SHARE + 1;
    if (!cache) return 0;
    INVARIANT(cache->slots && cache->slots <= table->spec.rows - table->spec.first_row);
    for (const struct resident &list : own->residents) /* an announced list's rows are being copied from their present places */
        if (list.set.table == table) CK(cudaStreamWaitEvent(stream, list.set.ticket, 0));
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

static __global__ void __launch_bounds__(THREADS) name_ngrams(const __grid_constant__ struct ngram_law law, struct ngram_tokens of, int64_t *rows) {
    uint64_t all = of.batch * (of.length - of.skip) * law.parts;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < all; i += (uint64_t)gridDim.x * THREADS)
        rows[i] = (int64_t)ngram_row(&law, &of, i);
}

int cuda_ngrams(struct backend *b, const struct ngram_law *law, const struct ngram_tokens *of, int64_t *rows, void *stream) {
    CK(cudaSetDevice(b->device));
    name_ngrams<<<8 * (unsigned)b->processors, THREADS, 0, (cudaStream_t)stream>>>(*law, *of, rows);
    CK_LAUNCH("name_ngrams");
    return 0;
}

/* ---- order ---- */

static int prepare_sorting(struct backend *b, struct by_id *own, const struct row_set *set, struct sorting *sorting,
                           uint64_t rows, cudaStream_t stream, struct indexing *by) {
    uint64_t before = own->iota.count;
    if (cuda_grow_iota(b, &own->iota, set->count, LIST, stream) || cuda_grow_sorting(b, sorting, (uint32_t)set->count, rows, LIST)) return -1;
    if (own->iota.count != before) CK(cudaStreamSynchronize(stream)); /* other streams read own->iota, too, and do not wait for `stream` */
    by->sorting = sorting;
    by->ids = (const uint32_t *)set->ids.data;
    by->places = (const uint32_t *)own->iota.numbers.data;
    by->count = (uint32_t)set->count;
    by->rows = rows;
    by->least = 1;
    by->stream = stream;
    return 0;
}

/* by_id_sort() copies a list and sorts it in the table's order; of the set it fills only keys and order. by_id_index() fills the whole index. */
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
    p.known_as = set->table->spec.rounding.rows;
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

/* ==== resident lists ====
 *
 * A list of ids whose rows are on the GPU, one slot for each distinct row. A list becomes resident in one of three ways:
 *
 *   prefetch   announces it: its rows are fetched on the stream `ahead` while the caller does other work
 *   fetch      of a table that is trained: the update of these rows, which comes next, need not read them over the link again
 *   update     of rows that are on the GPU brings them into slots of their own, and updates them there. The caller's stream goes on, and
 *              the stream `homeward` copies the records home
 *
 * So the link is used in both directions while the caller's kernels run. Records of lists that were announced or fetched are always as new as the
 * table: a call that changes rows copies them into these lists' slots, too. A list that goes home is newer than the table until then, so a call that
 * reads rows looks for them in resident lists first, or waits. The GPU compares ids to find out whether a fetch is for a resident list, so the host
 * waits for nothing: two kernels are launched, and one of them has nothing to do.
 *
 * Tables whose state is wide, or in another place than the weights, keep only weights in slots; they are updated in place, where the
 * link works in both directions, too (by_id_rows.cu).
 */

enum {
    RESIDENT_LEAST = 4096, /* fewest ids of a fetch or an update for which its list becomes resident */
    ASKED_MOST = 3         /* most fetches that are compared with an announced list: if two lists are announced ahead, the third fetch is for it */
};

/* Returns the bytes of the state that is in the same records as the weights. */
static uint64_t state_beside(const struct backend_table *table) {
    return table->shared ? record_state_bytes(&table->spec.layout) : 0;
}

/* Returns 1 if resident lists of the table have whole records in their slots, 0 if only weights. If state has more than a quarter of the weights'
 * bytes, fetching it, too, costs more time than the update saves. If other processes change the table, too (spec.given), the newest values of its
 * records are only at home. */
static int holds_records(const struct backend_table *table) {
    const struct store *store = &table->stores[0];
    return store->place == PLACE_PINNED && cuda_is_cold(store) && !table->spec.given && !table->cache && !table->frozen &&
           state_beside(table) <= record_weights_bytes(&table->spec.layout) / 4 && (table->parts == 1 || table->stores[1].place == PLACE_GPU);
}

static uint32_t slot_bytes(const struct backend_table *table) {
    uint64_t bytes = record_weights_bytes(&table->spec.layout) + (holds_records(table) ? state_beside(table) : 0);
    return (uint32_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES);
}

/* ---- kernels ---- */

/* Copies a record of `chunks` chunks for each lane whose `from` is not NULL. Neighbouring lanes copy neighbouring chunks of one record, so that
 * even narrow records cross the link in large requests, many at a time. */
static __device__ __forceinline__ void copy_records(const char *from, char *to, uint32_t chunks) {
    constexpr uint32_t U = 8; /* chunks in flight */
    uint32_t all = __any_sync(ALL_LANES, from != NULL) ? 32 * chunks : 0;
    for (uint32_t first = threadIdx.x & 31; first < all; first += 32 * U) {
        uint4 x[U];
        uint4 *at[U];
#pragma unroll
        for (uint32_t u = 0; u < U; u++) {
            uint32_t i = first + 32 * u, record = i / chunks % 32, chunk = i % chunks;
            const char *source = (const char *)__shfl_sync(ALL_LANES, (unsigned long long)from, (int)record);
            char *target = (char *)__shfl_sync(ALL_LANES, (unsigned long long)to, (int)record);
            at[u] = i < all && source ? (uint4 *)target + chunk : NULL;
            if (at[u]) x[u] = ((const uint4 *)source)[chunk];
        }
#pragma unroll
        for (uint32_t u = 0; u < U; u++)
            if (at[u]) *at[u] = x[u];
    }
}

/* Copies the list's records into slots, each from the newest resident list that contains the row, otherwise from home. */
static __global__ void __launch_bounds__(BESIDE_THREADS)
    bring_records(struct list_view v, const __grid_constant__ struct lookups lookups, struct row_part home, uint32_t bytes, char *slots) {
    uint32_t lane = threadIdx.x & 31, of_block = blockDim.x / 32, warps = gridDim.x * of_block, rows = v.counts->distinct[0];
    for (uint32_t first = (blockIdx.x * of_block + threadIdx.x / 32) * 32; first < rows; first += warps * 32) {
        uint32_t row = first + lane;
        const char *from = NULL;
        if (row < rows) {
            uint32_t id = v.rows.distinct_ids[row];
            from = resident_record(lookups, id);
            if (!from) from = row_at(home, id, row, 0);
        }
        copy_records(from, slots + (uint64_t)row * bytes, bytes / CHUNK_BYTES);
    }
}

static __global__ void __launch_bounds__(BESIDE_THREADS) send_records(struct list_view v, struct row_part home, uint32_t bytes, const char *slots) {
    uint32_t lane = threadIdx.x & 31, of_block = blockDim.x / 32, warps = gridDim.x * of_block, rows = v.counts->distinct[0];
    for (uint32_t first = (blockIdx.x * of_block + threadIdx.x / 32) * 32; first < rows; first += warps * 32) {
        uint32_t row = first + lane;
        char *to = row < rows ? row_at(home, v.rows.distinct_ids[row], row, 0) : NULL;
        copy_records(row < rows ? slots + (uint64_t)row * bytes : NULL, to, bytes / CHUNK_BYTES);
    }
}

/* Copies rows that are in `changed`, and also in list v, to the slots of v. `part`: where `changed` has them. */
static __global__ void __launch_bounds__(THREADS)
    renew_slots(struct list_view changed, struct list_view v, struct row_part part, uint32_t bytes, char *slots) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS, rows = changed.counts->distinct[0], known = v.counts->distinct[0];
    uint32_t cold_first = changed.counts->cold_first[0];
    for (uint32_t first = (blockIdx.x * WARPS + threadIdx.x / 32) * 32; first < rows; first += warps * 32) {
        uint32_t row = first + lane, id = row < rows ? changed.rows.distinct_ids[row] : DRAW_NONE;
        uint32_t at = row < rows ? lower_bound(v.rows.distinct_ids, 0, known, id) : known;
        bool has = at < known && v.rows.distinct_ids[at] == id;
        copy_records(has ? row_at(part, id, row, cold_first) : NULL, slots + (uint64_t)at * bytes, bytes / CHUNK_BYTES);
    }
}

/* The resident lists to which a fetch is compared. match: on the GPU: [RESIDENTS] 1 if the ids of the list and the fetch are equal; 0 for entries
 * past `count`. */
struct candidates {
    uint32_t count, *match;
    struct {
        struct list_view list;
        const char *slots;
        cudaEvent_t ticket;
    } of[RESIDENTS];
};

static __global__ void begin_match(struct candidates c) {
    if (threadIdx.x < RESIDENTS) c.match[threadIdx.x] = threadIdx.x < c.count;
}

static __global__ void compare_ids(const __grid_constant__ struct candidates c, const uint32_t *ids, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && ids[i] != c.of[blockIdx.y].list.rows.ids[i]) c.match[blockIdx.y] = 0;
}

/* Copies the rows of the first matching candidate to the caller's values, in the order of the list. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    give_slots(const __grid_constant__ struct candidates c, uint32_t bytes, uint32_t chunks, struct value_view out) {
    uint32_t which = 0;
    while (c.match && which < c.count && !c.match[which]) which++;
    if (which == c.count) return;
    uint64_t all = (uint64_t)c.of[which].list.count * chunks, step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < all; i += step) {
        uint32_t place = (uint32_t)(i / chunks), chunk = (uint32_t)(i % chunks), row = c.of[which].list.rows.distinct[place];
        const char *from = c.of[which].slots + (uint64_t)(row & ~SINGLE_BIT) * bytes;
        if (row != DRAW_NONE) give_chunk<F>(out, place, chunk, read_chunk(from, chunk), scale_of<F>(from));
    }
}

/* ---- which lists ---- */

struct row_part by_id_slots(const struct resident *resident, uint64_t offset) {
    struct row_part p;
    memset(&p, 0, sizeof p);
    p.rest = (char *)resident->set.slots[0].data + offset;
    p.stride = resident->bytes;
    p.staged = 1; /* a row's slot is its number among the distinct rows */
    p.known_as = resident->set.table->spec.rounding.rows;
    return p;
}

/* Returns the table's resident lists of whole records, those with the newest records first (records in lists that go home may be old). homeward:
 * only lists that go home, which alone may have a record that is not at home yet. */
static struct lookups lookups_of(const struct by_id *own, const struct backend_table *table, bool homeward) {
    struct lookups found;
    const struct resident *lists[RESIDENTS];
    found.count = 0;
    for (const struct resident &list : own->residents) {
        if (list.set.table != table || (homeward && !list.going_home) || !holds_records(table)) continue;
        uint32_t at = found.count++;
        for (; at && lists[at - 1]->going_home && (!list.going_home || lists[at - 1]->sequence < list.sequence); at--) lists[at] = lists[at - 1];
        lists[at] = &list;
    }
    for (uint32_t i = 0; i < found.count; i++)
        found.of[i] = {row_set_view(&lists[i]->set).distinct_ids, lists[i]->set.counts, (const char *)lists[i]->set.slots[0].data,
                       lists[i]->bytes};
    return found;
}

/* Makes `stream` wait until all records of the table that go home have arrived. For calls that read or change rows at home. */
static int settle(struct by_id *own, const struct backend_table *table, cudaStream_t stream) {
    for (struct resident &list : own->residents) {
        if (list.set.table != table || !list.going_home) continue;
        CK(cudaStreamWaitEvent(stream, list.home, 0));
        list.set.table = NULL;
    }
    return 0;
}

/* Returns a number that differs for most other lists: for ids on the GPU their address, otherwise a mix of some ids. If two hints are equal, the
 * lists may still differ. */
static uint64_t hint_of(const struct rows_request *r) {
    uint64_t hint = r->ids_on_gpu ? (uint64_t)(uintptr_t)r->ids : 1;
    for (uint64_t i = 0; !r->ids_on_gpu && i < 64; i++) hint = hint * 0x9E3779B97F4A7C15u + ((const uint32_t *)r->ids)[i * r->count / 64];
    return hint;
}

/* Chooses the entry for a new list: a free one, otherwise the oldest of its kind. For an update an entry that goes home is preferred: it has had
 * the time of a training step to arrive. An announced or fetched list would have to wait for the update that comes right before it. */
static struct resident *choose_entry(struct by_id *own, bool for_update) {
    struct resident *oldest[2] = {NULL, NULL}; /* by going_home */
    int homeward = 0;
    for (struct resident &list : own->residents) {
        struct resident **old = &oldest[list.going_home];
        if (!list.set.table) return &list;
        if (!*old || list.sequence < (*old)->sequence) *old = &list;
        homeward += list.going_home;
    }
    return homeward > !for_update || !oldest[0] ? oldest[1] : oldest[0];
}

/* Makes the request's list resident: indexes it, and copies its rows into slots, on the caller's stream or ahead of it. If there is no memory for
 * it, sets *out to NULL and does nothing; ahead: that is an error. */
static int make_resident(struct backend *b, struct by_id *own, const struct rows_request *r, bool ahead, bool for_update, cudaStream_t caller,
                         struct resident **out) {
    struct backend_table *table = r->table;
    int fits = 1;
    uint64_t bytes = slot_bytes(table), wanted = r->count * bytes;
    struct resident *list = choose_entry(own, for_update);
    cudaStream_t stream = ahead ? own->ahead : caller;
    *out = NULL;
    if (!ahead && wanted > list->set.slots[0].bytes && gpu_has_room(b, wanted + r->count * 64, &fits)) return -1; /* 64: an id in the index */
    if (!fits) return 0;
    /* The entry's memory may still be used: records in it go home, or lists that are fetched ahead copy from it. Both streams wait until its
     * records are home, since its rows can then no longer be found here. */
    if (list->set.table && list->going_home) {
        CK(cudaStreamWaitEvent(caller, list->home, 0));
        CK(cudaStreamWaitEvent(own->ahead, list->home, 0));
    }
    list->set.table = NULL;
    CK(cudaStreamWaitEvent(caller, list->set.ticket, 0));
    if (!ahead) CK(cudaStreamWaitEvent(caller, own->brought, 0)); /* lists that are fetched ahead may read slots that this call will change */
    struct lookups lookups = lookups_of(own, table, false);
    if (gpu_grow(b, &list->set.slots[0], wanted, "rows of a list") || by_id_take(b, own, &list->set, r, caller)) return -1;
    if (ahead) { /* the ids are read on the caller's stream; everything else waits for work that was requested earlier */
        CK(cudaEventRecord(own->set.ticket, caller));
        CK(cudaStreamWaitEvent(own->ahead, own->set.ticket, 0));
    }
    if (by_id_index(b, own, &list->set, ahead ? &own->ahead_sorting : &own->sorting, table->spec.rows, stream)) return -1;
    own->set.table = table;
    unsigned blocks = ahead ? BESIDE_BLOCKS : LINK_BLOCKS, threads = ahead ? BESIDE_THREADS : THREADS;
    bring_records<<<blocks, threads, 0, stream>>>(list_view(&list->set), lookups, by_id_weights(&own->set), (uint32_t)bytes,
                                                  (char *)list->set.slots[0].data);
    CK_LAUNCH("bring_records");
    CK(cudaEventRecord(list->set.ticket, stream));
    if (ahead) CK(cudaEventRecord(own->brought, stream));
    list->set.table = table;
    list->bytes = (uint32_t)bytes;
    list->asked = ahead ? 0 : ASKED_MOST;
    list->hint = hint_of(r);
    list->going_home = 0;
    list->sequence = ++own->sequence;
    *out = list;
    return 0;
}

/* Returns 1 if a list of the table was fetched into slots but not updated yet, and perhaps never will be. */
static int is_fetched(const struct by_id *own, const struct backend_table *table) {
    for (const struct resident &list : own->residents)
        if (list.set.table == table && !list.going_home && list.asked == ASKED_MOST) return 1;
    return 0;
}

/* Returns 1 if the rows of an update are probably in the slots of a resident list. */
static int is_here(const struct by_id *own, const struct rows_request *r) {
    for (const struct resident &list : own->residents)
        if (list.set.table == r->table && !list.going_home && list.set.count == r->count && list.hint == hint_of(r)) return 1;
    return 0;
}

/* Returns 1 if a list of the table is resident and must stay as new as the table. */
static int is_resident(const struct by_id *own, const struct backend_table *table) {
    for (const struct resident &list : own->residents)
        if (list.set.table == table && !list.going_home) return 1;
    return 0;
}

/* Returns the announced lists of the table that may have the ids of this fetch: the list that has the same hint. If no list has it, returns all
 * announced lists. */
static struct candidates candidates_of(struct by_id *own, const struct rows_request *r) {
    struct candidates c;
    c.count = 0;
    c.match = (uint32_t *)own->match.data;
    for (int hinted = 1; hinted >= 0 && !c.count; hinted--)
        for (struct resident &list : own->residents) {
            if (list.set.table != r->table || list.going_home || list.set.count != r->count || list.asked == ASKED_MOST) continue;
            if (hinted && (c.count || list.hint != hint_of(r))) continue;
            c.of[c.count++] = {list_view(&list.set), (const char *)list.set.slots[0].data, list.set.ticket};
            list.asked++;
        }
    return c;
}

static int give(struct backend *b, const struct by_id *own, const struct candidates *c, struct value_view out, cudaStream_t stream) {
    auto kernel = BY_FORM(own, give_slots);
    kernel<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(*c, slot_bytes(own->set.table), row_chunks(own), out);
    CK_LAUNCH("give_slots");
    return 0;
}

/* Fetches from the slots of the candidate that has the ids of own->set. If there is one, its `match` on the GPU is 1, and the call is complete. */
static int fetch_resident(struct backend *b, struct by_id *own, const struct candidates *c, struct value_view out, cudaStream_t stream) {
    uint32_t count = (uint32_t)own->set.count;
    for (uint32_t i = 0; i < c->count; i++) CK(cudaStreamWaitEvent(stream, c->of[i].ticket, 0));
    begin_match<<<1, 32, 0, stream>>>(*c);
    compare_ids<<<dim3(blocks_for(count, THREADS), c->count), THREADS, 0, stream>>>(*c, (const uint32_t *)own->set.ids.data, count);
    CK_LAUNCH("compare_ids");
    return give(b, own, c, out, stream);
}

/* Copies rows that the current call has changed (they are indexed in `changed`, at the places that `part` says) into the slots of the table's
 * other lists. Two lists are forgotten instead: the one that was probably changed itself, by its hint, and one that was fetched but not updated. */
static int renew_lists(struct backend *b, struct by_id *own, const struct row_set *changed, struct row_part part, const struct rows_request *r,
                       cudaStream_t stream) {
    for (struct resident &list : own->residents) {
        if (list.set.table != changed->table || list.going_home || &list.set == changed) continue;
        if (list.asked == ASKED_MOST || (list.asked && list.hint == hint_of(r) && list.set.count == r->count)) {
            list.set.table = NULL;
            continue;
        }
        CK(cudaStreamWaitEvent(stream, list.set.ticket, 0));
        renew_slots<<<4 * (unsigned)b->processors, THREADS, 0, stream>>>(list_view(changed), list_view(&list.set), part, list.bytes,
                                                                         (char *)list.set.slots[0].data);
        CK_LAUNCH("renew_slots");
    }
    return 0;
}

/* Updates the request's rows in slots, and copies them home after the kernels of the caller's stream. *done: set to 0 if there is no memory for
 * the list. */
static int update_resident(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view gradients, int *done,
                           cudaStream_t stream) {
    struct resident *list;
    *done = 0;
    if (make_resident(b, own, r, false, true, stream, &list)) return -1;
    if (!list) return 0;
    *done = 1;
    if (by_id_update_rows(b, own, &list->set, list, r, gradients, stream) ||
        renew_lists(b, own, &list->set, by_id_slots(list, 0), r, stream))
        return -1;
    list->going_home = 1;
    CK(cudaEventRecord(list->set.ticket, stream));
    CK(cudaStreamWaitEvent(own->homeward, list->set.ticket, 0));
    send_records<<<BESIDE_BLOCKS, BESIDE_THREADS, 0, own->homeward>>>(list_view(&list->set), by_id_weights(&own->set), list->bytes,
                                                                      (const char *)list->set.slots[0].data);
    CK_LAUNCH("send_records");
    CK(cudaEventRecord(list->home, own->homeward));
    return 0;
}

/* ==== a call ==== */

/* ---- the beginning and the end of every call ---- */

static int open_by_id(struct backend *b, struct by_id *own) {
    for (struct given &given : own->given) CK(cudaEventCreateWithFlags(&given.sent, cudaEventDisableTiming));
    CK(cudaStreamCreateWithFlags(&own->ahead, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&own->homeward, cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&own->brought, cudaEventDisableTiming));
    if (buffer_take(b, (void **)&own->bad, sizeof *own->bad)) return -1;
    memset(own->bad, 0, sizeof *own->bad);
    for (struct resident &list : own->residents) {
        CK(cudaEventCreateWithFlags(&list.home, cudaEventDisableTiming));
        if (by_id_open_set(b, &list.set)) return -1;
    }
    return by_id_open_set(b, &own->set) || gpu_grow(b, &own->match, RESIDENTS * sizeof(uint32_t), "a list of ids") ? -1 : 0;
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
    uint64_t bytes = 4096; /* a power of two: a slightly longer list then needs no new memory, whose allocation would stop the GPU */
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

/* Gives the GPU access to the caller's values. If the GPU cannot read their memory, allocates memory for a copy. */
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
    INDEXED   /* as SORTED, and the distinct rows are known: for files and caches, and if a resident list may contain the same rows */
};

/* Chooses the way for a long list. The order of the table is used where it makes the link faster. Rows of 512 bytes of a table of 16 GiB are
 * fetched at 50 GB/s in any order; they are stored at 46 unsorted and at 51 sorted, including the time of sorting. Pinned rows are stored at 15
 * unsorted; sorted at 20 with 8,192 rows, 26 with 262,144, 52 with 1,048,576. Rows of a table of 1 GiB always reach 50. */
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

static int fetch_taken(struct backend *b, struct by_id *own, const struct rows_request *r, const struct candidates *c,
                       struct value_view out, cudaStream_t stream) {
    if (by_id_take(b, own, &own->set, r, stream)) return -1;
    const struct table_spec *spec = &r->table->spec;
    struct id_view ids = {own->set.ids.data, NULL, spec->first_row, spec->rows, (uint32_t)own->set.count, id_view::TAKEN};
    if (!c->count) return by_id_fetch_plain(b, own, &ids, NULL, NULL, NULL, out, stream);
    /* The GPU decides which of these two kernels does the work; the other one does nothing. */
    struct lookups lookups = lookups_of(own, r->table, true);
    return fetch_resident(b, own, c, out, stream) ||
                   by_id_fetch_plain(b, own, &ids, NULL, (const uint32_t *)own->match.data, &lookups, out, stream)
               ? -1
               : 0;
}

static int fetch_as_given(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
    struct id_view ids = by_id_given(own, r);
    struct candidates none;
    none.count = 0;
    if (r->count > FEW && !r->ids_on_gpu) return fetch_taken(b, own, r, &none, out, stream); /* so that ids cross the link in large requests */
    return by_id_fetch_plain(b, own, &ids, NULL, NULL, NULL, out, stream) || by_id_have_read(own, r, stream) ? -1 : 0;
}

static int fetch(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
    struct candidates c = candidates_of(own, r);
    struct resident *list;
    enum list_way way = fetch_way(r);
    if (c.count) {
        int failed = fetch_taken(b, own, r, &c, out, stream);
        for (struct resident &old : own->residents) /* rows that are not updated have been used */
            if (!r->table->trained && old.set.table == r->table && old.hint == hint_of(r)) old.set.table = NULL;
        return failed;
    }
    if (r->table->trained && r->count >= RESIDENT_LEAST && holds_records(r->table) && !is_fetched(own, r->table)) {
        if (make_resident(b, own, r, false, false, stream, &list)) return -1;
        if (list) {
            c.count = 1;
            c.match = NULL;
            c.of[0] = {list_view(&list->set), (const char *)list->set.slots[0].data, list->set.ticket};
            return give(b, own, &c, out, stream);
        }
    }
    if (settle(own, r->table, stream)) return -1;
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
    struct resident *list;
    return begin(b, r, &own, &stream) || make_resident(b, own, r, true, false, stream, &list) ? -1 : 0;
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
    enum list_way way = cuda_in_file(&r->table->stores[0]) || is_resident(own, r->table) ? INDEXED : r->count <= FEW ? AS_GIVEN : long_way(r);
    struct id_view ids = by_id_given(own, r);
    if (way == AS_GIVEN) return by_id_store_few(b, own, &ids, values, stream) || by_id_have_read(own, r, stream) ? -1 : 0;
    if (way == CLAIMED) return by_id_store_claimed(b, own, r, values, stream);
    int failed = way == SORTED ? take_sorted(b, own, r, stream) : take_indexed(b, own, r, 1, stream);
    if (failed || by_id_store_sorted(b, own, values, stream)) return -1;
    return way == INDEXED ? renew_lists(b, own, &own->set, by_id_weights(&own->set), r, stream) : 0;
}

int cuda_by_id_store(struct backend *b, const struct rows_request *r) {
    struct by_id *own;
    cudaStream_t stream;
    struct value_view values;
    if (begin(b, r, &own, &stream) || settle(own, r->table, stream)) return -1;
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
    int done = 0;
    if (begin(b, r, &own, &stream)) return -1;
    r->table->trained = 1;
    row_set_changes(&own->set, 2);
    if (r->count >= RESIDENT_LEAST && holds_records(r->table) && !r->table->snapshot && is_here(own, r) &&
        (reach_values(b, own, r, 1, stream, &gradients) || update_resident(b, own, r, gradients, &done, stream)))
        return -1;
    if (done) return end_change(b, own, r, stream);
    if (settle(own, r->table, stream)) return -1;
    cuda_cache_changed(r->table);
    return cuda_snapshot_keep(b, own, r, stream) || take_indexed(b, own, r, 2, stream) || reach_values(b, own, r, 1, stream, &gradients) ||
                   by_id_update_rows(b, own, &own->set, NULL, r, gradients, stream) ||
                   renew_lists(b, own, &own->set, by_id_weights(&own->set), r, stream) || cuda_cache_learn(b, own, stream) ||
                   end_change(b, own, r, stream)
               ? -1
               : 0;
}

/* ---- to memory that processes share ---- */

static __global__ void __launch_bounds__(THREADS) send_rows(struct value_view from, const uint32_t *places, uint64_t count, struct value_view home) {
    uint64_t quads = (from.dim + 3) / 4, all = count * quads;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < all; i += (uint64_t)gridDim.x * THREADS) {
        uint32_t row = (uint32_t)(i / quads), q = (uint32_t)(i % quads), place = places[row];
        if (place != DRAW_NONE) give_quad(home, place, q, take_quad(from, row, q));
    }
}

int cuda_rows_send(struct backend *b, const struct rows_request *r, const uint32_t *places, float *home) {
    struct by_id *own;
    cudaStream_t stream;
    uint64_t bytes = r->count * sizeof *places;
    uint32_t *given, dim = r->table->spec.layout.dim;
    if (!r->count) return 0;
    if (cuda_by_id_room(b, r->count, &given) || begin(b, r, &own, &stream) || gpu_grow(b, &own->claims.ids, bytes, LIST)) return -1;
    memcpy(given, places, bytes);
    CK(cudaMemcpyAsync(own->claims.ids.data, given, bytes, cudaMemcpyHostToDevice, stream));
    send_rows<<<LINK_BLOCKS, THREADS, 0, stream>>>(value_view(r->values, dim), (const uint32_t *)own->claims.ids.data, r->count,
                                                   value_view(home, dim));
    CK_LAUNCH("send_rows");
    CK(cudaStreamSynchronize(stream));
    return end(own, stream);
}

/* ---- waiting and closing ---- */

int cuda_by_id_wait(struct backend *b) {
    struct by_id *own = (struct by_id *)b->by_id;
    CK(cudaSetDevice(b->device));
    if (!own) return 0;
    CK(cudaEventSynchronize(own->set.ticket));
    CK(cudaStreamSynchronize(own->ahead));
    CK(cudaStreamSynchronize(own->homeward));
    for (struct resident &list : own->residents) /* the caller may change rows in place, which a list would not see */
        if (list.going_home || list.asked) list.set.table = NULL;
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
    for (struct resident &list : own->residents)
        if (list.set.table == table) list.set.table = NULL;
}

void cuda_by_id_close(struct backend *b) {
    struct by_id *own = (struct by_id *)b->by_id;
    if (!own) return;
    struct gpu_array *arrays[] = {&own->iota.numbers, &own->values,     &own->padded,        &own->partials,
                                  &own->match,        &own->claims.ids, &own->claims.owners, &own->claims.slots};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (struct sorting *sorting : {&own->sorting, &own->ahead_sorting}) cuda_drop_sorting(b, sorting);
    by_id_close_set(b, &own->set);
    for (struct resident &list : own->residents) {
        by_id_close_set(b, &list.set);
        if (list.home) cudaEventDestroy(list.home);
    }
    for (struct given &given : own->given) {
        if (given.sent) cudaEventDestroy(given.sent);
        buffer_give(b, given.ids, given.bytes);
    }
    buffer_give(b, own->bad, sizeof *own->bad);
    if (own->ahead) cudaStreamDestroy(own->ahead);
    if (own->homeward) cudaStreamDestroy(own->homeward);
    if (own->brought) cudaEventDestroy(own->brought);
    free(own);
    b->by_id = NULL;
}
