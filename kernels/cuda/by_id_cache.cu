/* by_id_cache: finds the rows that calls by id use often, and keeps copies of their records on the GPU (table_spec.gpu_cache).
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
#include "by_id.cuh"
#include "warp.cuh"

#include <algorithm>
#include <stdlib.h>

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

/* Moves rows in one store: copies the record in each slot back to the host, and then the new row's record from the host to the
 * slot. */
static __global__ void __launch_bounds__(THREADS)
    move_records(struct cache_view cache, char *memory, char *home, uint64_t stride) {
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

static __global__ void __launch_bounds__(THREADS)
    send_home(const uint32_t *owners, uint32_t slots, const char *memory, char *home, uint64_t stride) {
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t slot = blockIdx.x * WARPS + threadIdx.x / 32; slot < slots; slot += gridDim.x * WARPS) {
        if (owners[slot] == DRAW_NONE) continue;
        for (uint32_t c = lane; c < stride / CHUNK_BYTES; c += 32)
            copy_chunk(home + owners[slot] * stride, memory + slot * stride, c);
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
        gpu_take(b, (void **)&cache->claims, slots * sizeof *cache->claims, what) ||
        gpu_take(b, (void **)&cache->moved, sizeof *cache->moved, what))
        return -1;
    for (int i = 0; i < table->parts; i++)
        if (table->stores[i].host_device && gpu_take(b, (void **)&cache->memory[i], slots * table->stores[i].stride, "rows used often"))
            return -1;
    CK(cudaMemset(cache->places, 0xFF, rows * sizeof *cache->places));
    CK(cudaMemset(cache->owners, 0xFF, slots * sizeof *cache->owners));
    return gpu_fill(cache->uses, NULL, rows * sizeof *cache->uses) ||
                   gpu_fill(cache->claims, NULL, slots * sizeof *cache->claims)
               ? -1
               : 0;
}

int cuda_cache_open(struct backend *b, struct backend_table *table) {
    uint64_t slots = std::min(table->spec.gpu_cache, table->spec.rows - table->spec.first_row);
    bool in_file = table->stores[0].place == PLACE_FILE || (table->parts == 2 && table->stores[1].place == PLACE_FILE);
    if (!slots || (!table->stores[0].host && !table->stores[1].host)) return 0;
    if (in_file) return fail("rows of a file are not cached on the GPU (gpu_rows); use the place 'pinned', or hot_rows");
    if (table->stores[0].gpu_rows > table->spec.first_row && table->stores[0].host)
        return fail("a table has either hot_rows or gpu_rows, not both");
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

void cuda_cache_part(const struct backend_table *table, int part, uint64_t offset, struct row_part *of) {
    of->places = has_slots(table->cache, part) ? table->cache->places : NULL;
    if (of->places) of->hot = table->cache->memory[part] + offset;
}

void cuda_cache_changed(struct backend_table *table) {
    if (table->cache) table->cache->changed = 1;
}

int cuda_cache_learn(struct backend *b, struct by_id *own, cudaStream_t stream) {
    const struct row_set *set = &own->set;
    struct backend_table *table = set->table;
    struct row_cache *cache = table->cache;
    uint64_t most = set->count / MOVES_SHARE + 1;
    if (!cache) return 0;
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
            move_records<<<LINK_BLOCKS, THREADS, 0, stream>>>(v, cache->memory[i], gpu_home_of(&table->stores[i]),
                                                              table->stores[i].stride);
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
