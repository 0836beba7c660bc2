/* snapshot: a thread, the reader, reads all rows of a table with the values that they had when the snapshot began, while work on the GPU goes on to
 * change rows.
 *
 *   before work changes rows   keep_rows copies those that the reader has not read and that are not copied yet, on the work's stream
 *   the reader                 1. copies a chunk of rows from the table, on a stream of its own or from host memory
 *                              2. waits for all copies that were enqueued by then
 *                              3. replaces those rows of the chunk that have copies by their copies
 *
 * If step 1 reads a row that work is changing, the row was copied before that work began, so step 3 finds the copy. While a row of host memory
 * changes only in the GPU's cache (by_id.cu), its record in host memory keeps the old value.
 *
 * Copies are in pinned memory, which grows by blocks up to a limit. Work that needs more waits until the reader is done; so does a call by id on a
 * table with a part in a file, whose rows the host's threads move.
 */
#include "by_id.cuh"
#include "values.cuh"

extern "C" {
#include "kernels/backend.h"
}

#include <algorithm>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((uint64_t)64 << 20) /* fewest bytes of a block; fewer only if the limit is lower */

enum {
    BLOCKS_MOST = 128,
    CHUNK_ROWS = 1024, /* the copies of this many neighbouring rows form one list */
    NO_COPY = UINT32_MAX
};

struct snapshot {
    uint64_t first, end;        /* the table has rows first .. end - 1 */
    uint64_t taken;             /* rows below this number have been read; end: reading is over. Atomic */
    uint64_t sizes[2], stride;  /* sizes: bytes of a record in each store; stride: in both together */
    uint32_t *copied;           /* on the GPU: bit map of copied rows; bit 0 is row `first` */
    uint32_t *count;            /* on the GPU: number of copies */
    uint64_t promised;          /* upper bound, known to the host, of the number of copies; a row is copied at most once */
    uint64_t most, of_block;    /* most: limit of the number of copies; of_block: copies in a block */
    unsigned pinned;            /* number of blocks that have memory */
    char *block[BLOCKS_MOST];   /* pinned: [of_block] records, then the row of each */
    cudaEvent_t copying;        /* recorded after each launch of keep_rows */
    cudaStream_t stream;        /* the reader's */
    char *transfer[2];          /* [store] pinned buffer for rows on the GPU on their way to the reader */
    uint32_t *counted;          /* pinned: the reader's copy of `count` */
    uint64_t listed;            /* number of copies in lists */
    uint32_t *newest, *before;  /* newest: [chunks] the chunk's newest copy; before: [copies] the next older copy of the same chunk */
    pthread_mutex_t lock;       /* held from a launch of keep_rows until `copying` is recorded, and while `taken` is set to `end` */
    pthread_cond_t over;
};

/* ---- copying ---- */

/* For keep_rows: the rows that are going to change, and the memory for their copies. */
struct keeping {
    struct id_view ids;             /* ids of a call; ids.ids = NULL: the distinct rows of a batch */
    const uint32_t *distinct_ids;
    const struct batch_counts *counts;
    int side, parts;
    struct row_part part[2];
    uint64_t first, taken, sizes[2], stride, of_block;
    uint32_t *copied, *count;
    char *block[BLOCKS_MOST];
};

static __device__ __forceinline__ char *copy_at(const struct keeping &k, uint32_t copy) {
    return k.block[copy / k.of_block] + copy % k.of_block * k.stride;
}

/* A warp examines 32 rows at a time, and copies those whose bit it is the first to set. */
static __global__ void __launch_bounds__(THREADS) keep_rows(const __grid_constant__ struct keeping k) {
    uint32_t lane = threadIdx.x & 31, count = k.ids.ids ? k.ids.count : k.counts->distinct[k.side];
    uint32_t cold_first = k.ids.ids ? 0 : k.counts->cold_first[k.side];
    for (uint64_t at = (uint64_t)(blockIdx.x * WARPS + threadIdx.x / 32) * 32; at < count; at += (uint64_t)gridDim.x * WARPS * 32) {
        uint32_t place = (uint32_t)at + lane, id = DRAW_NONE, number = 0;
        if (place < count) id = k.ids.ids ? read_id(k.ids, place) : k.distinct_ids[place];
        bool wanted = id != DRAW_NONE && id >= k.taken;
        if (wanted) {
            number = (uint32_t)(id - k.first);
            uint32_t bit = 1u << number % 32;
            wanted = !(atomicOr(&k.copied[number / 32], bit) & bit);
        }
        uint32_t left = __ballot_sync(ALL_LANES, wanted), copy = 0;
        if (lane == 0 && left) copy = atomicAdd(k.count, (uint32_t)__popc(left));
        copy = __shfl_sync(ALL_LANES, copy, 0);
        for (; left; left &= left - 1, copy++) {
            int from = __ffs((int)left) - 1;
            uint32_t row = __shfl_sync(ALL_LANES, id, from), which = __shfl_sync(ALL_LANES, number, from);
            char *to = copy_at(k, copy);
            if (lane == 0) ((uint32_t *)(k.block[copy / k.of_block] + k.of_block * k.stride))[copy % k.of_block] = which;
            for (int part = 0; part < k.parts; to += k.sizes[part++]) {
                const char *record = row_at(k.part[part], row, (uint32_t)at + (uint32_t)from, cold_first);
                for (uint32_t c = lane; c < k.sizes[part] / CHUNK_BYTES; c += 32) copy_chunk(to, record, c);
            }
        }
    }
}

static void await_end(struct snapshot *s) {
    pthread_mutex_lock(&s->lock);
    while (s->taken < s->end) pthread_cond_wait(&s->over, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static uint64_t taken_of(const struct snapshot *s) {
    return __atomic_load_n(&s->taken, __ATOMIC_ACQUIRE);
}

/* Returns the bytes of a copy: a record, and the number of its row. */
static uint64_t bytes_of_copy(const struct snapshot *s) {
    return s->stride + sizeof(uint32_t);
}

static int add_block(struct backend *b, struct snapshot *s) {
    if (buffer_take(b, (void **)&s->block[s->pinned], s->of_block * bytes_of_copy(s))) return -1;
    s->pinned++;
    return 0;
}

/* Returns an upper bound of the number of copies if `rows` more rows are copied. */
static uint64_t copies_with(const struct snapshot *s, uint64_t rows) {
    return std::min(s->promised + rows, s->end - s->first);
}

/* Allocates memory for copies of `rows` more rows. If that would exceed the limit, waits until the reader is done, and sets *over to true: copies
 * are no longer needed. */
static int make_room(struct backend *b, struct snapshot *s, uint64_t rows, bool *over) {
    *over = taken_of(s) >= s->end;
    if (!*over && copies_with(s, rows) > s->most) {
        uint32_t count;
        CK(cudaEventSynchronize(s->copying));
        CK(cudaMemcpy(&count, s->count, sizeof count, cudaMemcpyDeviceToHost));
        s->promised = count;
    }
    if (!*over && copies_with(s, rows) > s->most) {
        await_end(s);
        *over = true;
    }
    while (!*over && s->pinned * s->of_block < copies_with(s, rows))
        if (add_block(b, s)) return -1;
    return 0;
}

/* Launches keep_rows for at most `rows` rows. */
static int launch(struct backend *b, struct snapshot *s, struct keeping *k, uint64_t rows, cudaStream_t stream) {
    bool over;
    if (make_room(b, s, rows, &over)) return -1;
    if (over) return 0;
    s->promised = copies_with(s, rows);
    k->first = s->first;
    k->taken = taken_of(s);
    memcpy(k->sizes, s->sizes, sizeof k->sizes);
    k->stride = s->stride;
    k->of_block = s->of_block;
    k->copied = s->copied;
    k->count = s->count;
    memcpy(k->block, s->block, sizeof k->block);
    pthread_mutex_lock(&s->lock);
    keep_rows<<<std::min(blocks_for(rows, THREADS), 4 * (unsigned)b->processors), THREADS, 0, stream>>>(*k);
    cudaError_t error = cudaGetLastError(), recorded = cudaEventRecord(s->copying, stream);
    pthread_mutex_unlock(&s->lock);
    CK(error);
    CK(recorded);
    return 0;
}

void cuda_snapshot_await(const struct backend_table *table) {
    if (table->snapshot) await_end(table->snapshot);
}

int cuda_snapshot_keep(struct backend *b, struct by_id *own, const struct rows_request *r, cudaStream_t stream) {
    struct backend_table *table = r->table;
    struct snapshot *s = table->snapshot;
    struct keeping k;
    if (!s) return 0;
    for (int i = 0; i < table->parts; i++)
        if (cuda_in_file(&table->stores[i])) {
            await_end(s);
            return 0;
        }
    memset(&k, 0, sizeof k);
    k.ids = by_id_given(own, r);
    k.parts = table->parts;
    k.part[0] = by_id_weights(&own->set);
    if (table->parts == 2) k.part[1] = by_id_state(&own->set);
    return launch(b, s, &k, r->count, stream);
}

int cuda_snapshot_keep_batch(struct backend *b, struct stage *stage, int side) {
    const struct row_set *set = &stage->side[side];
    struct snapshot *s = set->table->snapshot;
    struct keeping k;
    if (!s || stage->loss_only) return 0;
    memset(&k, 0, sizeof k);
    k.distinct_ids = row_set_view(set).distinct_ids;
    k.counts = set->counts;
    k.side = set->side;
    k.parts = set->table->parts;
    for (int part = 0; part < k.parts; part++) {
        const struct store *store = &set->table->stores[part];
        k.part[part] = {store->gpu, (char *)set->slots[part].data, store->gpu_rows, store->stride, NULL, 1};
    }
    return launch(b, s, &k, set->count, b->compute);
}

/* ---- reading ---- */

/* Packs rows first .. first + count - 1 as the table has them now. In each store, these rows must be all on the GPU or all on the host. */
static int read_rows(struct snapshot *s, const struct backend_table *table, uint64_t first, uint64_t count, char *packed) {
    char *at[2];
    for (int i = 0; i < table->parts; i++) {
        const struct store *store = &table->stores[i];
        at[i] = first < store->gpu_rows ? s->transfer[i] : cuda_home_of(store) + first * store->stride;
        if (first < store->gpu_rows)
            CK(cudaMemcpyAsync(at[i], store->gpu + first * store->stride, count * store->stride, cudaMemcpyDeviceToHost, s->stream));
    }
    CK(cudaStreamSynchronize(s->stream));
    struct host_records records = {at[0], at[table->shared ? 0 : 1] + table->state_offset, s->sizes[0], s->sizes[table->parts - 1]};
    return host_pack(NULL, &table->spec.layout, &records, count, packed);
}

/* Returns the row of a copy, relative to the table's first row. */
static uint32_t row_of_copy(const struct snapshot *s, uint64_t copy) {
    return ((const uint32_t *)(s->block[copy / s->of_block] + s->of_block * s->stride))[copy % s->of_block];
}

/* Waits for all copies enqueued so far, and adds them to the lists of their chunks. */
static int list_copies(struct snapshot *s) {
    CK(cudaEventSynchronize(s->copying));
    CK(cudaMemcpyAsync(s->counted, s->count, sizeof *s->counted, cudaMemcpyDeviceToHost, s->stream));
    CK(cudaStreamSynchronize(s->stream));
    pthread_mutex_lock(&s->lock); /* copies that are enqueued meanwhile may be counted too, and are waited for */
    pthread_mutex_unlock(&s->lock);
    CK(cudaEventSynchronize(s->copying));
    for (uint64_t copy = s->listed; copy < *s->counted; copy++) {
        uint32_t *newest = &s->newest[row_of_copy(s, copy) / CHUNK_ROWS];
        s->before[copy] = *newest;
        *newest = (uint32_t)copy;
    }
    s->listed = *s->counted;
    return 0;
}

/* Replaces rows from .. end - 1 (relative to the table's first row) by their copies, if they have one. */
static void put_copies(const struct snapshot *s, const struct backend_table *table, uint64_t from, uint64_t end, char *packed) {
    const struct record_layout *layout = &table->spec.layout;
    for (uint64_t chunk = from / CHUNK_ROWS; chunk * CHUNK_ROWS < end; chunk++)
        for (uint32_t copy = s->newest[chunk]; copy != NO_COPY; copy = s->before[copy]) {
            uint64_t row = row_of_copy(s, copy);
            char *record = s->block[copy / s->of_block] + copy % s->of_block * s->stride;
            struct host_records one = {record, record + (table->shared ? table->state_offset : s->sizes[0]), 0, 0};
            if (row >= from && row < end) host_pack(NULL, layout, &one, 1, packed + (row - from) * layout->packed);
        }
}

int cuda_snapshot_read(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, void *packed) {
    struct snapshot *s = table->snapshot;
    uint64_t end = first + count, most = TRANSFER_BYTES / std::max(s->sizes[0], s->sizes[1]);
    char *to = (char *)packed;
    CK(cudaSetDevice(b->device));
    if (host_check_rows(&table->spec, first, count)) return -1;
    for (uint64_t rows; first < end; first += rows, to += rows * table->spec.layout.packed) {
        rows = std::min(end - first, most);
        for (int i = 0; i < table->parts; i++)
            if (first < table->stores[i].gpu_rows) rows = std::min(rows, table->stores[i].gpu_rows - first);
        if (read_rows(s, table, first, rows, to) || list_copies(s)) return -1;
        put_copies(s, table, first - s->first, first - s->first + rows, to);
        if (first + rows < s->end) __atomic_store_n(&s->taken, first + rows, __ATOMIC_RELEASE);
        else cuda_snapshot_stop(table);
    }
    return 0;
}

/* ---- beginning and ending ---- */

/* Returns the bytes of the bit map. */
static uint64_t bits_of(const struct snapshot *s) {
    return ((s->end - s->first) / 32 + 1) * sizeof *s->copied;
}

static int take_arrays(struct backend *b, const struct backend_table *table, struct snapshot *s) {
    const char *what = "rows that change while a table is saved";
    uint64_t chunks = (s->end - s->first) / CHUNK_ROWS + 1;
    s->newest = (uint32_t *)mem_alloc(chunks, sizeof *s->newest, what);
    s->before = (uint32_t *)mem_alloc(s->most, sizeof *s->before, what);
    if (!s->newest || !s->before) return -1;
    memset(s->newest, 0xFF, chunks * sizeof *s->newest);
    CK(cudaEventCreateWithFlags(&s->copying, cudaEventDisableTiming | cudaEventBlockingSync));
    CK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    for (int i = 0; i < table->parts; i++)
        if (table->stores[i].gpu_memory && buffer_take(b, (void **)&s->transfer[i], TRANSFER_BYTES)) return -1;
    if (buffer_take(b, (void **)&s->counted, sizeof *s->counted) || gpu_take(b, (void **)&s->copied, bits_of(s), what) ||
        gpu_take(b, (void **)&s->count, sizeof *s->count, what))
        return -1;
    return gpu_fill(s->copied, NULL, bits_of(s)) || gpu_fill(s->count, NULL, sizeof *s->count) ? -1 : 0;
}

int cuda_snapshot_begin(struct backend *b, struct backend_table *table, uint64_t most) {
    struct snapshot *s = (struct snapshot *)mem_zalloc(1, sizeof *s, "a snapshot of a table");
    if (!s) return -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->over, NULL);
    table->snapshot = s;
    s->first = s->taken = table->spec.first_row;
    s->end = table->spec.rows;
    for (int i = 0; i < table->parts; i++) s->stride += s->sizes[i] = table->stores[i].stride;
    s->most = std::min(most / bytes_of_copy(s) + 1, std::min(s->end - s->first, (uint64_t)NO_COPY - 1));
    s->of_block = std::min(s->most, std::max(BLOCK_BYTES / bytes_of_copy(s), s->most / BLOCKS_MOST + 1));
    int failed = cudaSetDevice(b->device) != cudaSuccess || cuda_drain(b) || cuda_by_id_wait(b) || cuda_cache_send_home(b, table);
    if (!failed && !take_arrays(b, table, s)) return 0;
    cuda_snapshot_end(b, table);
    return -1;
}

void cuda_snapshot_stop(struct backend_table *table) {
    struct snapshot *s = table->snapshot;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->taken, s->end, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&s->over);
    pthread_mutex_unlock(&s->lock);
}

void cuda_snapshot_end(struct backend *b, struct backend_table *table) {
    struct snapshot *s = table->snapshot;
    if (!s) return;
    cudaSetDevice(b->device);
    if (s->copying) cudaEventSynchronize(s->copying);
    gpu_give(b, s->copied, bits_of(s));
    gpu_give(b, s->count, sizeof *s->count);
    for (unsigned i = 0; i < s->pinned; i++) buffer_give(b, s->block[i], s->of_block * bytes_of_copy(s));
    buffer_give(b, s->counted, sizeof *s->counted);
    for (char *transfer : s->transfer) buffer_give(b, transfer, TRANSFER_BYTES);
    if (s->copying) cudaEventDestroy(s->copying);
    if (s->stream) cudaStreamDestroy(s->stream);
    free(s->newest);
    free(s->before);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->over);
    free(s);
    table->snapshot = NULL;
}
