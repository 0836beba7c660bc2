/* rows_move: copies cold rows between the host and a stage's slots, and keeps them exact while several batches are in flight.
 * stage.cu shows the order of these steps.
 *
 *   plan     finds which distinct rows are cold, and which of them a batch in flight holds in its slots   its builder's stream
 *   fetch    the other cold rows, host -> slots                                                           in stream
 *   forward  cold rows that batches in flight hold, their slots -> these, after the step before               compute stream
 *   home     slots -> host; for a store in a file, which the GPU cannot access, slots -> staging         out stream
 *   land     staging -> file (rows_set.cu)                                                                the host's threads
 *
 * Rows of a store are copied back in the order of their batches: on one stream, or when their batches are finished. The kernels
 * that copy rows are small on purpose: with more thread blocks they would only take memory bandwidth from the step.
 *
 * A row is never read from the host while a batch in flight has it in its slots, which is from the batch's fetch until its rows
 * have landed. If several batches have a row, the newest has its value, since steps run one after another.
 */
#include "warp.cuh"

enum {
    ROW_THREADS = 256,
    MOVE_THREADS = 128, /* threads of a thread block: small thread blocks start sooner beside the thread blocks of a step */
    MOVED_ROWS = 8,     /* number of rows that a warp copies at a time */
    MOVED_CHUNKS = 8,   /* number of chunks that each lane has in flight at once */
    GATHER_BLOCKS = 16,
    SCATTER_BLOCKS = 8,
    STAGING_BLOCKS = 8,
    SLOT_BITS = 28
};
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

/* ---- plan ---- */

/* The batches in flight whose slots may contain rows of a new batch; the newest is first. */
struct in_flight {
    int count;
    uint32_t stage[BACKEND_STAGES];
    const uint32_t *distinct_ids[BACKEND_STAGES];
    const struct batch_counts *counts[BACKEND_STAGES];
};

/* Returns the first place in ids[count], which are sorted, whose id is at least `id`. A warp searches together, with 32 probes
 * at once. */
static __device__ uint32_t warp_lower_bound(const uint32_t *ids, uint32_t count, uint64_t id) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t step = (high - low + 31) / 32, probe = low + (threadIdx.x & 31) * step;
        uint32_t below = __popc(__ballot_sync(0xFFFFFFFFu, probe < high && ids[probe] < id));
        if (!below) return low;
        if (high - low > below * step) high = low + below * step;
        low += (below - 1) * step + 1;
    }
    return low;
}

static __global__ void find_forwards(const uint32_t *distinct_ids, uint64_t hot_rows, struct batch_counts *counts, int side,
                                     struct in_flight others, uint32_t *forward) {
    __shared__ uint32_t cold_first;
    if (threadIdx.x < 32) {
        uint32_t at = warp_lower_bound(distinct_ids, counts->distinct[side], hot_rows);
        if (threadIdx.x == 0) cold_first = at;
        if (threadIdx.x == 0 && blockIdx.x == 0) counts->cold_first[side] = at;
    }
    __syncthreads();
    uint32_t first = cold_first, end = counts->distinct[side], found = 0;
    for (uint32_t row = first + blockIdx.x * blockDim.x + threadIdx.x; row < end; row += gridDim.x * blockDim.x) {
        uint32_t id = distinct_ids[row], from = DRAW_NONE;
        for (int i = 0; i < others.count && from == DRAW_NONE; i++) {
            uint32_t low = others.counts[i]->cold_first[side], high = others.counts[i]->distinct[side];
            uint32_t at = lower_bound(others.distinct_ids[i], low, high, id);
            if (at < high && others.distinct_ids[i][at] == id) from = others.stage[i] << SLOT_BITS | (at - low);
        }
        forward[row - first] = from;
        found += from != DRAW_NONE;
    }
    if (found) atomicAdd(&counts->forwarded[side], found);
}

/* ---- moving rows ---- */

/* The records of one store that are to be copied. `home`: the address on the host that row 0 has or would have. */
struct record_move {
    char *home, *slots;
    uint64_t stride;
    const uint32_t *distinct_ids, *forward;
    const struct batch_counts *counts;
    int side;
};

/* Returns the id of cold row number `row`; DRAW_NONE if its record is not to be copied. */
template <bool OUT>
static __device__ __forceinline__ uint32_t moved_id(const struct record_move &m, uint32_t first, uint64_t row, uint32_t rows) {
    if (row >= rows || (!OUT && m.forward[row] != DRAW_NONE)) return DRAW_NONE;
    return m.distinct_ids[first + row];
}

/* Copies records between slots and host. A warp copies several neighbouring records at a time, as if they were one: each lane
 * has several chunks in flight, and the ids of the next records, so that the link always has requests waiting, however short
 * records are. */
template <bool OUT> static __global__ void __launch_bounds__(MOVE_THREADS) move_records(struct record_move m) {
    uint32_t lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    uint32_t first = m.counts->cold_first[m.side], rows = m.counts->distinct[m.side] - first;
    uint32_t chunks = (uint32_t)(m.stride / CHUNK_BYTES), next = DRAW_NONE;
    uint64_t step = (uint64_t)warps * MOVED_ROWS, row = (uint64_t)warp * MOVED_ROWS;
    if (lane < MOVED_ROWS) next = moved_id<OUT>(m, first, row + lane, rows);
    for (; row < rows; row += step) {
        uint32_t ids = next;
        if (lane < MOVED_ROWS) next = moved_id<OUT>(m, first, row + step + lane, rows);
        for (uint32_t begin = 0; begin < MOVED_ROWS * chunks; begin += 32 * MOVED_CHUNKS) {
            uint4 value[MOVED_CHUNKS], *to[MOVED_CHUNKS];
#pragma unroll
            for (int i = 0; i < MOVED_CHUNKS; i++) {
                uint32_t at = begin + i * 32 + lane, of = at / chunks, chunk = at - of * chunks;
                uint32_t id = __shfl_sync(ALL_LANES, ids, of % MOVED_ROWS);
                to[i] = NULL;
                if (of >= MOVED_ROWS || id == DRAW_NONE) continue;
                uint4 *slot = (uint4 *)(m.slots + (row + of) * m.stride) + chunk, *home = (uint4 *)(m.home + id * m.stride) + chunk;
                value[i] = OUT ? *slot : *home;
                to[i] = OUT ? home : slot;
            }
#pragma unroll
            for (int i = 0; i < MOVED_CHUNKS; i++)
                if (to[i]) *to[i] = value[i];
        }
    }
}

/* Copies all records in the slots to staging, which is pinned memory with the same layout. */
static __global__ void copy_slots(uint4 *to, const uint4 *from, uint64_t chunks, const struct batch_counts *counts, int side) {
    uint64_t all = (counts->distinct[side] - counts->cold_first[side]) * chunks, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) to[i] = from[i];
}

struct all_slots {
    char *slots[BACKEND_STAGES];
};

static __global__ void forward_records(char *slots, struct all_slots from, uint64_t stride, const uint32_t *forward,
                                       const struct batch_counts *counts, int side) {
    uint32_t lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    uint32_t rows = counts->distinct[side] - counts->cold_first[side], chunks = (uint32_t)(stride / CHUNK_BYTES);
    for (uint32_t row = warp; row < rows; row += warps) {
        uint32_t code = forward[row];
        if (code == DRAW_NONE) continue;
        const char *source = from.slots[code >> SLOT_BITS] + (code & SLOT_MASK) * stride;
        for (uint32_t i = lane; i < chunks; i += 32) copy_chunk(slots + row * stride, source, i);
    }
}

/* ---- plan, the host's side ---- */

/* Returns an upper bound of the number of cold rows that `ids` ids can name. */
static uint64_t most_cold(const struct row_set *set, uint64_t ids) {
    uint64_t cold = set->table->spec.rows - cuda_hot_rows(set->table);
    return ids < cold ? ids : cold;
}

static struct in_flight others_of(struct backend *b, const struct stage *stage, int side) {
    struct in_flight others;
    uint64_t below = UINT64_MAX;
    others.count = 0;
    for (;;) {
        struct stage *newest = NULL;
        for (unsigned i = 0; i < b->depth; i++) {
            struct stage *s = &b->stages[i];
            if (s == stage || !cuda_in_flight(s) || s->sequence >= below) continue;
            if (s->side[side].table != stage->side[side].table) continue;
            if (!newest || s->sequence > newest->sequence) newest = s;
        }
        if (!newest) return others;
        others.stage[others.count] = (uint32_t)(newest - b->stages);
        others.distinct_ids[others.count] = row_set_view(&newest->side[side]).distinct_ids;
        others.counts[others.count++] = newest->counts;
        below = newest->sequence;
    }
}

static int find_others(struct backend *b, struct stage *stage, int side, uint64_t rows) {
    struct row_set *set = &stage->side[side];
    cudaStream_t stream = stage->builder->stream;
    struct in_flight others = others_of(b, stage, side);
    /* Each of these batches may have another builder, so each is waited for. Waiting for the newest is not enough: if it has no
     * cold rows, it has not waited for the batches before it. */
    for (int i = 0; i < others.count; i++) CK(cudaStreamWaitEvent(stream, b->stages[others.stage[i]].prepared, 0));
    find_forwards<<<blocks_for(rows, ROW_THREADS), ROW_THREADS, 0, stream>>>(
        row_set_view(set).distinct_ids, cuda_hot_rows(set->table), set->counts, side, others,
        (uint32_t *)set->forward.data);
    CK_LAUNCH("find_forwards");
    return 0;
}

/* Returns 1 if a store of the set's table is in a file: then the host needs the ids, since its threads move the rows. */
static int needs_ids(const struct row_set *set) {
    for (int i = 0; i < set->table->parts; i++)
        if (cuda_in_file(&set->table->stores[i])) return 1;
    return 0;
}

int cuda_rows_plan(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    set->count = side == SIDE_TARGET ? stage->sizes.targets : stage->sizes.contexts;
    set->capacity = side == SIDE_TARGET ? stage->capacity.targets : stage->capacity.contexts;
    uint64_t rows = most_cold(set, set->count), capacity = most_cold(set, set->capacity);
    if (rows > SLOT_MASK)
        return fail("a batch of %llu host rows is more than 2^28; lower train.batch", (unsigned long long)rows);
    if (gpu_grow(b, &set->forward, forward_bytes(capacity), "a batch's rows")) return -1;
    for (int i = 0; i < set->table->parts; i++) {
        const struct store *store = &set->table->stores[i];
        if (cuda_is_cold(store) && gpu_grow(b, &set->slots[i], capacity * store->stride, "rows in flight")) return -1;
    }
    row_set_changes(set, rows && !stage->loss_only ? set->table->parts : 0);
    if (!rows) return 0;
    if (find_others(b, stage, side, rows)) return -1;
    return needs_ids(set) ? row_set_send(b, set, stage->builder->stream) : 0;
}

/* ---- fetch ---- */

static struct record_move move_of(const struct row_set *set, int part) {
    const struct store *store = &set->table->stores[part];
    struct record_move m;
    m.home = gpu_home_of(store);
    m.slots = (char *)set->slots[part].data;
    m.stride = store->stride;
    m.distinct_ids = row_set_view(set).distinct_ids;
    m.forward = (const uint32_t *)set->forward.data;
    m.counts = set->counts;
    m.side = set->side;
    return m;
}

/* Fetches rows of a file: the host's threads read them into staging once they have the ids, and the GPU copies them to the
 * slots. Rows that will be forwarded are read, too, but not used. */
static int fetch_file(struct backend *b, struct stage *stage, struct row_set *set, int part) {
    const uint32_t *ids;
    CK(cudaEventSynchronize(stage->prepared));
    if (row_set_read_file(b, set, part, most_cold(set, set->capacity))) return -1;
    uint64_t bytes = row_set_cold(set, &ids) * set->table->stores[part].stride;
    if (bytes) CK(cudaMemcpyAsync(set->slots[part].data, set->staging[part], bytes, cudaMemcpyHostToDevice, b->in));
    return 0;
}

int cuda_rows_fetch(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (!most_cold(set, set->count)) return 0;
    for (int part = 0; part < set->table->parts; part++) {
        const struct store *store = &set->table->stores[part];
        if (!cuda_is_cold(store)) continue;
        if (cuda_in_file(store)) {
            if (fetch_file(b, stage, set, part)) return -1;
            continue;
        }
        move_records<false><<<GATHER_BLOCKS, MOVE_THREADS, 0, b->in>>>(move_of(set, part));
        CK_LAUNCH("fetch");
    }
    CK(cudaEventRecord(set->ticket, b->in));
    return 0;
}

/* ---- forward ---- */

int cuda_rows_forward(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (!most_cold(set, set->count)) return 0;
    CK(cudaStreamWaitEvent(b->compute, set->ticket, 0));
    for (int part = 0; part < set->table->parts && b->depth > 1; part++) {
        const struct store *store = &set->table->stores[part];
        struct all_slots from;
        if (!cuda_is_cold(store)) continue;
        for (unsigned i = 0; i < b->depth; i++) from.slots[i] = (char *)b->stages[i].side[side].slots[part].data;
        forward_records<<<2 * b->processors, ROW_THREADS, 0, b->compute>>>((char *)set->slots[part].data, from,
                                                                           store->stride,
                                                                           (const uint32_t *)set->forward.data,
                                                                           set->counts, side);
        CK_LAUNCH("forward_records");
    }
    return 0;
}

/* ---- copying back ---- */

/* Copies the slots to staging. If blocks have one target, a batch has nearly as many distinct targets as blocks: then the copy
 * engine copies all slots, which does not slow the step. Otherwise a kernel copies only the slots in use, whose number the GPU
 * knows. */
static int copy_to_staging(struct backend *b, const struct stage *stage, struct row_set *set, int part) {
    uint64_t stride = set->table->stores[part].stride;
    uint64_t most = most_cold(set, set->count) * stride, capacity = most_cold(set, set->capacity) * stride;
    const void *slots = set->slots[part].data;
    if (buffer_grow(b, (void **)&set->staging[part], &set->staging_bytes[part], capacity)) return -1;
    if (stage->one_target && set->side == SIDE_TARGET) {
        CK(cudaMemcpyAsync(set->staging[part], slots, most, cudaMemcpyDeviceToHost, b->out));
        return 0;
    }
    copy_slots<<<STAGING_BLOCKS, ROW_THREADS, 0, b->out>>>((uint4 *)set->staging[part], (const uint4 *)slots,
                                                           stride / CHUNK_BYTES, set->counts, set->side);
    CK_LAUNCH("copy_slots");
    return 0;
}

int cuda_rows_home(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (stage->loss_only || !most_cold(set, set->count)) return 0;
    for (int part = 0; part < set->table->parts; part++) {
        if (!cuda_is_cold(&set->table->stores[part])) continue;
        if (set->lands[part]) {
            if (copy_to_staging(b, stage, set, part)) return -1;
            continue;
        }
        move_records<true><<<SCATTER_BLOCKS, MOVE_THREADS, 0, b->out>>>(move_of(set, part));
        CK_LAUNCH("home");
    }
    return 0;
}
