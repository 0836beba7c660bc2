/* key_index: the index of a keyed table on the GPU. It finds the rows of keys. If all keys of a call have rows, the host only starts the kernels.
 *
 *   places  [2 ^ bits]  a hash table with open addressing: a key is searched place by place, from the place that its hash names. `after` is 1 + the
 *                       key's row; 0: nothing was ever here, and a search ends; GONE: a key was here, and a search goes on
 *   rows    [capacity]  struct key_row (rows/keys.h) of each row
 *
 * The host has the same index (rows/keys.c), and decides which keys get rows; only the counts and the numbers of calls of keys are newer here
 * (cuda_keys_counts). A call has three parts:
 *
 *   cuda_keys_find     finds the keys, marks the rows of those that have one, and sends the others to the host
 *   cuda_keys_victims  if the host needs rows: the keys that leave first
 *   cuda_keys_commit   removes the victims, adds the new keys, counts
 *
 * Nothing depends on the order in which threads run: the list of found rows is in the order of the call, and the host sorts the lists of keys. */
#include "cuda.cuh"
#include "values.cuh"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull; /* what CUDA's atomic functions take */

enum {
    THREADS = 256,
    DIGIT = 11,             /* bits of a digit, by which victims are selected */
    DIGITS = 12,            /* of a rank and a key: six each */
    VALUES = 1 << DIGIT     /* of a digit */
};
#define NO_ROW UINT32_MAX
#define GONE   UINT32_MAX

struct __align__(16) key_place {
    uint64_t key;
    uint32_t after, nothing;
};

/* Selects the keys that leave: all keys whose (rank, key) is at most this one. */
struct selection {
    uint64_t rank, key; /* the digits that are chosen so far. All later bits of both numbers are 0; when `done` is set, they become 1 */
    uint64_t wanted;    /* the number of keys that leave among the keys that have these digits */
    uint32_t done;      /* 1: all keys that have these digits leave */
    uint32_t found;     /* number of keys in the list of victims so far */
    uint32_t histogram[VALUES];
};

struct counters {
    ull named, hash; /* number of different rows that the call names; a hash of its keys */
    uint32_t missed; /* number of its keys without a row */
};

struct victim {
    uint64_t rank, key;
    uint32_t row, nothing;
};

struct index_view {
    struct key_place *places;
    struct key_row *rows;
    uint64_t secret, used;
    unsigned bits;
    enum keys_evict evict;
};

struct key_index {
    struct index_view view;
    uint64_t capacity;
    uint64_t filled;                     /* the number of places with `after` != 0 is at most this */
    struct gpu_array keys, found, lists; /* of a call: its keys, if they come from the host; their rows; keys that go to the host or come from it */
    struct selection *selection;
    struct counters *counters, *on_host; /* on_host: a copy in pinned memory */
    uint64_t *missed, missed_capacity;   /* on the host: the call's keys without a row */
};

/* ---- kernels ---- */

static __device__ __forceinline__ uint64_t home_of(const struct index_view &v, uint64_t key) {
    return key_mix(key ^ v.secret) >> (64 - v.bits);
}

static __device__ uint32_t row_with(const struct index_view &v, uint64_t key) {
    uint64_t mask = (1ull << v.bits) - 1;
    for (uint64_t at = home_of(v, key);; at = (at + 1) & mask) {
        struct key_place place = v.places[at];
        if (!place.after) return NO_ROW;
        if (place.after != GONE && place.key == key) return place.after - 1;
    }
}

/* Adds a key that has no place. Other threads add other keys. */
static __device__ void add_key(const struct index_view &v, uint64_t key, uint32_t row) {
    uint64_t mask = (1ull << v.bits) - 1;
    for (uint64_t at = home_of(v, key);; at = (at + 1) & mask) {
        uint32_t seen = *(volatile uint32_t *)&v.places[at].after;
        if (seen && seen != GONE) continue;
        if (atomicCAS(&v.places[at].after, seen, row + 1) != seen) continue; /* another key has taken the place */
        v.places[at].key = key;
        return;
    }
}

/* Finds the rows of a call's keys. plan: the number of the call, which is written to each row that is found; 0: it is not. */
static __global__ void __launch_bounds__(THREADS)
    find_keys(struct index_view v, const uint64_t *keys, uint32_t count, uint64_t plan, uint32_t *found, uint64_t *missed,
              struct counters *counters) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x & 31, named = 0;
    uint64_t key = i < count ? keys[i] : 0, hash = i < count ? key_mix(key ^ key_mix(i + 1)) : 0;
    uint32_t row = i < count ? row_with(v, key) : NO_ROW;
    if (i < count) found[i] = row;
    if (row != NO_ROW && plan) {
        ull *mark = (ull *)&v.rows[row].named;
        if (*(volatile ull *)mark != plan) named = atomicExch(mark, plan) != plan;
    }
    bool misses = i < count && row == NO_ROW;
    uint32_t missing = __ballot_sync(ALL_LANES, misses), first = 0;
    if (missing && lane == 0) first = atomicAdd(&counters->missed, (uint32_t)__popc(missing));
    first = __shfl_sync(ALL_LANES, first, 0);
    if (misses) missed[first + __popc(missing & ((1u << lane) - 1))] = key;
    named = __popc(__ballot_sync(ALL_LANES, named));
    for (int width = 16; width; width /= 2) hash += __shfl_xor_sync(ALL_LANES, hash, width);
    if (lane) return;
    if (named) atomicAdd(&counters->named, (ull)named);
    atomicAdd(&counters->hash, (ull)hash);
}

/* Counts a call's keys. sights: 1 if each place of a key is a sight. finds: 1 if the call has given rows to keys. */
static __global__ void __launch_bounds__(THREADS)
    count_keys(struct index_view v, const uint64_t *keys, uint32_t count, uint64_t clock, bool sights, bool finds, uint32_t *found) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, row = i < count ? found[i] : NO_ROW;
    if (finds && i < count && row == NO_ROW) found[i] = row = row_with(v, keys[i]);
    uint32_t same = __match_any_sync(ALL_LANES, row); /* of a key that is often in the call one lane counts for all */
    if (row == NO_ROW || (threadIdx.x & 31) != (uint32_t)__ffs((int)same) - 1) return;
    if (sights) atomicAdd((ull *)&v.rows[row].count, (ull)__popc(same));
    v.rows[row].last = clock;
}

static __global__ void __launch_bounds__(THREADS) remove_keys(struct index_view v, const uint32_t *rows, uint32_t count) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    struct key_row *row = &v.rows[rows[i]];
    uint64_t mask = (1ull << v.bits) - 1, at = home_of(v, row->key);
    while (v.places[at].after != rows[i] + 1) at = (at + 1) & mask;
    v.places[at].after = GONE;
    *row = {0, 0, 0, 0, 0};
}

static __global__ void __launch_bounds__(THREADS)
    add_keys(struct index_view v, const uint64_t *keys, const uint32_t *rows, uint32_t count, uint64_t clock) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    v.rows[rows[i]] = {keys[i], 0, clock, clock, 0};
    add_key(v, keys[i], rows[i]);
}

/* Adds the keys of all rows to an empty hash table. */
static __global__ void __launch_bounds__(THREADS) index_rows(struct index_view v) {
    for (uint64_t row = (uint64_t)blockIdx.x * THREADS + threadIdx.x; row < v.used; row += (uint64_t)gridDim.x * THREADS)
        if (v.rows[row].born) add_key(v, v.rows[row].key, (uint32_t)row);
}

/* ---- which keys leave ---- */

static __host__ __device__ __forceinline__ unsigned shift_of(int digit) {
    return DIGIT * (DIGITS / 2 - 1 - digit % (DIGITS / 2));
}

/* Counts the keys that have the selection's digits, by their next digit. plan: rows that are marked with this number stay. */
static __global__ void __launch_bounds__(THREADS) count_digits(struct index_view v, uint64_t plan, int digit, struct selection *selection) {
    __shared__ uint32_t counts[VALUES];
    if (selection->done) return;
    for (uint32_t i = threadIdx.x; i < VALUES; i += THREADS) counts[i] = 0;
    __syncthreads();
    bool of_key = digit >= DIGITS / 2;
    unsigned shift = shift_of(digit), above = shift + DIGIT;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < v.used; i += (uint64_t)gridDim.x * THREADS) {
        const struct key_row row = v.rows[i];
        if (!row.born || row.named == plan || (of_key && key_rank_of(&row, v.evict) != selection->rank)) continue;
        uint64_t number = of_key ? row.key : key_rank_of(&row, v.evict), known = of_key ? selection->key : selection->rank;
        if (above < 64 && number >> above != known >> above) continue;
        atomicAdd(&counts[number >> shift & (VALUES - 1)], 1);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < VALUES; i += THREADS)
        if (counts[i]) atomicAdd(&selection->histogram[i], counts[i]);
}

static __global__ void choose_digit(int digit, struct selection *selection) {
    if (selection->done) return;
    uint64_t *number = digit >= DIGITS / 2 ? &selection->key : &selection->rank;
    uint32_t value = 0;
    while (value < VALUES - 1 && selection->histogram[value] < selection->wanted) selection->wanted -= selection->histogram[value++];
    *number |= (uint64_t)value << shift_of(digit);
    if (selection->histogram[value] == selection->wanted || digit == DIGITS - 1) {
        selection->done = 1;
        *number |= (1ull << shift_of(digit)) - 1;
        if (digit < DIGITS / 2) selection->key = UINT64_MAX;
    }
    for (uint32_t i = 0; i < VALUES; i++) selection->histogram[i] = 0;
}

static __global__ void __launch_bounds__(THREADS)
    list_victims(struct index_view v, uint64_t plan, uint32_t most, struct selection *selection, struct victim *victims) {
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < v.used; i += (uint64_t)gridDim.x * THREADS) {
        const struct key_row row = v.rows[i];
        uint64_t rank = key_rank_of(&row, v.evict);
        if (!row.born || row.named == plan || rank > selection->rank || (rank == selection->rank && row.key > selection->key)) continue;
        uint32_t at = atomicAdd(&selection->found, 1);
        if (at < most) victims[at] = {rank, row.key, (uint32_t)i, 0};
    }
}

/* ---- opening and closing ---- */

static uint64_t places_bytes(const struct index_view *v) {
    return sizeof(struct key_place) << v->bits;
}

void cuda_keys_close(struct backend *b, struct key_index *index) {
    if (!index) return;
    cudaSetDevice(b->device);
    cudaDeviceSynchronize();
    gpu_give(b, index->view.places, places_bytes(&index->view));
    gpu_give(b, index->view.rows, index->capacity * sizeof *index->view.rows);
    gpu_give(b, index->selection, sizeof *index->selection);
    gpu_give(b, index->counters, sizeof *index->counters);
    for (struct gpu_array *array : {&index->keys, &index->found, &index->lists}) gpu_drop(b, array);
    buffer_give(b, index->on_host, sizeof *index->on_host);
    free(index->missed);
    free(index);
}

int cuda_keys_open(struct backend *b, uint64_t capacity, uint64_t secret, enum keys_evict evict, struct key_index **out) {
    const char *what = "the index of a table's keys";
    int fits = 0;
    unsigned bits = 4;
    *out = NULL;
    while ((uint64_t)1 << bits < capacity + capacity / 2) bits++;
    CK(cudaSetDevice(b->device));
    if (gpu_has_room(b, (sizeof(struct key_place) << bits) + capacity * sizeof(struct key_row), &fits)) return -1;
    if (!fits) return 0;
    struct key_index *index = (struct key_index *)mem_zalloc(1, sizeof *index, what);
    if (!index) return -1;
    index->capacity = capacity;
    index->view.secret = secret;
    index->view.bits = bits;
    index->view.evict = evict;
    if (gpu_take(b, (void **)&index->view.places, places_bytes(&index->view), what) ||
        gpu_take(b, (void **)&index->view.rows, capacity * sizeof *index->view.rows, what) ||
        gpu_take(b, (void **)&index->selection, sizeof *index->selection, what) ||
        gpu_take(b, (void **)&index->counters, sizeof *index->counters, what) ||
        buffer_take(b, (void **)&index->on_host, sizeof *index->on_host) ||
        gpu_fill(index->view.places, NULL, places_bytes(&index->view)) ||
        gpu_fill(index->view.rows, NULL, capacity * sizeof *index->view.rows)) {
        cuda_keys_close(b, index);
        return -1;
    }
    *out = index;
    return 0;
}

static unsigned grid_of(const struct backend *b, uint64_t count) {
    return (unsigned)std::min<uint64_t>(8 * (uint64_t)b->processors, (count + THREADS - 1) / THREADS + 1);
}

/* Makes the hash table anew from the rows: it has no places of keys that are gone then. */
static int index_again(struct backend *b, struct key_index *index, uint64_t keys, cudaStream_t stream) {
    CK(cudaMemsetAsync(index->view.places, 0, places_bytes(&index->view), stream));
    index_rows<<<grid_of(b, index->view.used), THREADS, 0, stream>>>(index->view);
    CK_LAUNCH("index_rows");
    index->filled = keys;
    return 0;
}

int cuda_keys_set(struct backend *b, struct key_index *index, const struct key_row *rows, uint64_t used, uint64_t keys) {
    CK(cudaSetDevice(b->device));
    CK(cudaDeviceSynchronize());
    if (gpu_fill(index->view.rows, NULL, index->capacity * sizeof *rows) || gpu_fill(index->view.rows, rows, used * sizeof *rows)) return -1;
    index->view.used = used;
    if (index_again(b, index, keys, NULL)) return -1;
    CK(cudaDeviceSynchronize());
    return 0;
}

int cuda_keys_counts(struct backend *b, const struct key_index *index, struct key_row *rows) {
    CK(cudaSetDevice(b->device));
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpy(rows, index->view.rows, index->view.used * sizeof *rows, cudaMemcpyDeviceToHost));
    return 0;
}

/* ---- a call ---- */

int cuda_keys_find(struct backend *b, struct key_index *index, const uint64_t *keys, uint64_t count, uint64_t plan, void *caller,
                   struct key_finding *out) {
    cudaStream_t stream = (cudaStream_t)caller;
    struct cudaPointerAttributes about;
    CK(cudaSetDevice(b->device));
    CK(cudaPointerGetAttributes(&about, keys));
    out->keys_on_gpu = about.type == cudaMemoryTypeDevice || about.type == cudaMemoryTypeManaged;
    out->keys = keys;
    if (gpu_grow(b, &index->found, count * sizeof(uint32_t), "rows of keys") ||
        gpu_grow(b, &index->lists, count * sizeof(struct victim), "keys that get rows") || /* enough for the rest of the call */
        (!out->keys_on_gpu && gpu_grow(b, &index->keys, count * sizeof *keys, "keys of a call")))
        return -1;
    if (!out->keys_on_gpu) {
        CK(cudaMemcpyAsync(index->keys.data, keys, count * sizeof *keys, cudaMemcpyHostToDevice, stream));
        out->keys = (const uint64_t *)index->keys.data;
    }
    CK(cudaMemsetAsync(index->counters, 0, sizeof *index->counters, stream));
    find_keys<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(index->view, out->keys, (uint32_t)count, plan, (uint32_t *)index->found.data,
                                                                  (uint64_t *)index->lists.data, index->counters);
    CK_LAUNCH("find_keys");
    CK(cudaMemcpyAsync(index->on_host, index->counters, sizeof *index->counters, cudaMemcpyDeviceToHost, stream));
    CK(cudaStreamSynchronize(stream));
    uint64_t missed = index->on_host->missed;
    if (mem_grow(&index->missed, &index->missed_capacity, missed, sizeof *index->missed, "keys without a row")) return -1;
    if (missed) CK(cudaMemcpy(index->missed, index->lists.data, missed * sizeof *keys, cudaMemcpyDeviceToHost));
    out->rows = (const uint32_t *)index->found.data;
    out->missed = index->missed;
    out->missed_count = missed;
    out->named = index->on_host->named;
    out->hash = index->on_host->hash;
    return 0;
}

int cuda_keys_victims(struct backend *b, struct key_index *index, uint64_t wanted, uint64_t plan, uint64_t highest, uint32_t *rows) {
    struct selection *selection = index->selection;
    uint64_t bytes = wanted * sizeof(struct victim);
    uint32_t found;
    int digit = 0;
    CK(cudaSetDevice(b->device));
    CK(cudaDeviceSynchronize());
    struct victim *victims = (struct victim *)mem_alloc(wanted, sizeof *victims, "keys that leave");
    if (!victims || gpu_fill(selection, NULL, sizeof *selection) || gpu_fill(&selection->wanted, &wanted, sizeof wanted) ||
        gpu_grow(b, &index->lists, bytes, "keys that leave")) {
        free(victims);
        return -1;
    }
    while (shift_of(digit) && !(highest >> shift_of(digit))) digit++; /* all ranks have the digit 0 here */
    for (; digit < DIGITS; digit++) {
        count_digits<<<grid_of(b, index->view.used), THREADS>>>(index->view, plan, digit, selection);
        choose_digit<<<1, 1>>>(digit, selection);
    }
    list_victims<<<grid_of(b, index->view.used), THREADS>>>(index->view, plan, (uint32_t)wanted, selection, (struct victim *)index->lists.data);
    cudaError_t error = cudaMemcpy(&found, &selection->found, sizeof found, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess) error = cudaMemcpy(victims, index->lists.data, bytes, cudaMemcpyDeviceToHost);
    INVARIANT(error != cudaSuccess || found == wanted);
    std::sort(victims, victims + (error == cudaSuccess ? wanted : 0),
              [](const struct victim &a, const struct victim &c) { return a.rank != c.rank ? a.rank < c.rank : a.key < c.key; });
    for (uint64_t i = 0; i < wanted && error == cudaSuccess; i++) rows[i] = victims[i].row;
    free(victims);
    CK(error);
    return 0;
}

int cuda_keys_commit(struct backend *b, struct key_index *index, const struct key_change *change, void *caller) {
    cudaStream_t stream = (cudaStream_t)caller;
    uint64_t keys_bytes = change->added * sizeof(uint64_t), rows_bytes = change->added * sizeof(uint32_t);
    CK(cudaSetDevice(b->device));
    if (change->added || change->removed) {
        if (gpu_grow(b, &index->lists, keys_bytes + rows_bytes + change->removed * sizeof(uint32_t), "keys that get rows")) return -1;
        uint64_t *keys = (uint64_t *)index->lists.data;
        uint32_t *rows = (uint32_t *)(keys + change->added), *removed = rows + change->added;
        CK(cudaMemcpyAsync(keys, change->keys, keys_bytes, cudaMemcpyHostToDevice, stream));
        CK(cudaMemcpyAsync(rows, change->rows, rows_bytes, cudaMemcpyHostToDevice, stream));
        CK(cudaMemcpyAsync(removed, change->removed_rows, change->removed * sizeof(uint32_t), cudaMemcpyHostToDevice, stream));
        unsigned blocks[2] = {blocks_for(change->removed, THREADS), blocks_for(change->added, THREADS)};
        if (change->removed) remove_keys<<<blocks[0], THREADS, 0, stream>>>(index->view, removed, (uint32_t)change->removed);
        index->view.used = change->used;
        index->filled += change->added;
        if (index->filled > ((uint64_t)13 << index->view.bits) / 16 && index_again(b, index, change->keys_now, stream)) return -1;
        if (change->added) add_keys<<<blocks[1], THREADS, 0, stream>>>(index->view, keys, rows, (uint32_t)change->added, change->clock);
        CK_LAUNCH("add_keys");
        CK(cudaStreamSynchronize(stream)); /* the host may change its lists now */
    }
    if (!change->count) return 0;
    count_keys<<<blocks_for(change->count, THREADS), THREADS, 0, stream>>>(index->view, change->call_keys, (uint32_t)change->count, change->clock,
                                                                          change->sights, change->added != 0, (uint32_t *)index->found.data);
    CK_LAUNCH("count_keys");
    return 0;
}
