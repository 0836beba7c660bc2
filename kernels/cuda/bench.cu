/* bench: measures how fast rows are copied between a table and an array of rows (backend.h). The kernel only reads and writes, as a gather or
 * scatter does: a warp copies ROWS_AT_ONCE rows at a time, each lane 16 bytes of each row. */
#include <algorithm>
#include <chrono>

#include "cuda.cuh"
#include "values.cuh"

extern "C" {
#include "kernels/backend.h"
}

namespace {

enum { THREADS = 256, ROWS_AT_ONCE = 4, FILE_CHUNK = 4096 };

/* One direction of a transfer: the ids of its rows, its array of rows, and its stream. */
struct way {
    uint32_t *host_ids; /* pinned [rows] */
    gpu_array ids, dense;
    iota places;
    sorting sorted; /* sorted.keys: the sorted ids */
    row_set set;    /* set.order: the places of the sorted ids */
    char *staging[2]; /* for tables in a file: pinned buffer [FILE_CHUNK x stride] */
    cudaEvent_t staged[2];
    cudaStream_t stream;
};

struct transfer {
    struct backend *backend;
    const backend_table *table;
    uint64_t rows;
    enum bench_order order;
    way ways[2]; /* ways[0]: from the table to the array; ways[1]: from the array to the table */
};

/* ---- rows ---- */

/* TO = true: copies row ids[i] of the table to dense[places ? places[i] : i]; false: copies the other way. */
template <bool TO>
__global__ void __launch_bounds__(THREADS) swap_kernel(part_view part, const uint32_t *ids, const uint32_t *places,
                                                       char *dense, uint64_t rows, uint32_t row_bytes) {
    uint32_t lane = threadIdx.x & 31;
    uint64_t warp = (blockIdx.x * (uint64_t)THREADS + threadIdx.x) / 32, warps = (uint64_t)gridDim.x * THREADS / 32;
    for (uint64_t first = warp * ROWS_AT_ONCE; first < rows; first += warps * ROWS_AT_ONCE) {
        char *row[ROWS_AT_ONCE], *variable[ROWS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE; i++) {
            uint64_t at = first + i < rows ? first + i : rows - 1;
            row[i] = part_at(part, ids[at]);
            variable[i] = dense + (places ? places[at] : at) * row_bytes;
        }
        for (uint32_t at = lane * CHUNK_BYTES; at < row_bytes; at += 32 * CHUNK_BYTES) {
            uint4 v[ROWS_AT_ONCE];
#pragma unroll
            for (int i = 0; i < ROWS_AT_ONCE; i++)
                if (first + i < rows) v[i] = *(const uint4 *)((TO ? row[i] : variable[i]) + at);
#pragma unroll
            for (int i = 0; i < ROWS_AT_ONCE; i++)
                if (first + i < rows) *(uint4 *)((TO ? variable[i] : row[i]) + at) = v[i];
        }
    }
}

indexing sort_of(const transfer *t, const way *w) {
    return {&w->sorted, (const uint32_t *)w->ids.data, (const uint32_t *)w->places.numbers.data, (uint32_t)t->rows,
            t->table->view.rows, 0, w->stream};
}

/* Starts one direction with `blocks` thread blocks. */
int start_swap(transfer *t, bool to, unsigned blocks) {
    way *w = &t->ways[!to];
    const table_view &view = t->table->view;
    const uint32_t *ids = (const uint32_t *)w->ids.data, *places = NULL;
    CK(cudaMemcpyAsync(w->ids.data, w->host_ids, t->rows * sizeof *ids, cudaMemcpyHostToDevice, w->stream));
    if (t->order == BENCH_SORTING) {
        indexing by = sort_of(t, w);
        if (cuda_sort(&w->set, &by)) return -1;
        ids = (const uint32_t *)w->sorted.keys.data, places = (const uint32_t *)w->set.order.data;
    }
    if (to)
        swap_kernel<true><<<blocks, THREADS, 0, w->stream>>>(view.weights, ids, places, (char *)w->dense.data, t->rows,
                                                             (uint32_t)record_weights_bytes(&t->table->spec.layout));
    else
        swap_kernel<false><<<blocks, THREADS, 0, w->stream>>>(view.weights, ids, places, (char *)w->dense.data, t->rows,
                                                              (uint32_t)record_weights_bytes(&t->table->spec.layout));
    CK_LAUNCH("swap_kernel");
    return 0;
}

/* ---- rows of a file: the host's threads copy them to and from pinned memory ---- */

int swap_file(transfer *t, bool to) {
    way *w = &t->ways[!to];
    const store *s = &t->table->stores[0];
    for (uint64_t first = 0, turn = 0; first < t->rows; first += FILE_CHUNK, turn ^= 1) {
        uint64_t count = std::min<uint64_t>(t->rows - first, FILE_CHUNK), bytes = count * s->stride;
        char *dense = (char *)w->dense.data + first * s->stride, *staging = w->staging[turn];
        CK(cudaEventSynchronize(w->staged[turn]));
        if (to) {
            if (host_gather(t->backend->pool, staging, s->host, w->host_ids + first, count, s->stride)) return -1;
            CK(cudaMemcpyAsync(dense, staging, bytes, cudaMemcpyHostToDevice, w->stream));
            CK(cudaEventRecord(w->staged[turn], w->stream));
        } else {
            CK(cudaMemcpyAsync(staging, dense, bytes, cudaMemcpyDeviceToHost, w->stream));
            CK(cudaStreamSynchronize(w->stream));
            if (host_scatter(t->backend->pool, s->host, staging, w->host_ids + first, count, s->stride)) return -1;
        }
    }
    return 0;
}

/* ---- timing ---- */

enum what { TO, FROM, BOTH };

/* Thread blocks for each direction if both use the link at once. Writes over the link delay the requests of reads, so writes get fewer. */
enum { BOTH_IN = 32, BOTH_OUT = 8 };

int run_once(transfer *t, what which) {
    unsigned alone = (unsigned)t->backend->processors * 8;
    bool shared = which == BOTH && t->table->stores[0].place == PLACE_PINNED;
    unsigned in = shared ? BOTH_IN : alone, out = shared ? BOTH_OUT : alone;
    if (t->table->stores[0].place == PLACE_FILE) {
        if (swap_file(t, which == TO)) return -1;
    } else {
        if (which != FROM && start_swap(t, true, in)) return -1;
        if (which != TO && start_swap(t, false, out)) return -1;
    }
    CK(cudaStreamSynchronize(t->ways[0].stream));
    CK(cudaStreamSynchronize(t->ways[1].stream));
    return 0;
}

double now(void) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(double *seconds) {
    std::sort(seconds, seconds + BENCH_REPEATS);
    return seconds[BENCH_REPEATS / 2];
}

int time_it(transfer *t, what which, double *seconds) {
    double spent[BENCH_REPEATS];
    for (int i = -BENCH_WARM; i < BENCH_REPEATS; i++) {
        double began = now();
        if (run_once(t, which)) return -1;
        if (i >= 0) spent[i] = now() - began;
    }
    *seconds = median(spent);
    return 0;
}

/* ---- memory ---- */

/* Draws random ids. If the table has enough rows, the two directions get different ones. */
void draw_ids(transfer *t, int which) {
    uint64_t total = t->table->view.rows, offset = which && 2 * t->rows <= total ? t->rows : 0;
    struct shuffle order = shuffle_make(total, draw_at(1, DRAW_SHUFFLE, 0, 0, 0));
    uint32_t *ids = t->ways[which].host_ids;
    for (uint64_t i = 0; i < t->rows; i++) ids[i] = (uint32_t)shuffle_at(&order, offset + i);
    if (t->order == BENCH_SORTED) std::sort(ids, ids + t->rows);
}

int open_way(transfer *t, int which) {
    way *w = &t->ways[which];
    backend *b = t->backend;
    uint64_t list = t->rows * sizeof(uint32_t), stride = t->table->stores[0].stride;
    const char *what = "a measured transfer";
    w->stream = which ? b->out : b->in;
    CK(cudaHostAlloc((void **)&w->host_ids, list, cudaHostAllocDefault));
    if (gpu_grow(b, &w->ids, list, what) || gpu_grow(b, &w->dense, t->rows * stride, what)) return -1;
    if (gpu_fill(w->dense.data, NULL, t->rows * stride)) return -1;
    if (t->order == BENCH_SORTING && (cuda_grow_iota(b, &w->places, t->rows, what, w->stream) || gpu_grow(b, &w->set.order, list, what) ||
                                      cuda_grow_sorting(b, &w->sorted, (uint32_t)t->rows, t->table->view.rows, what)))
        return -1;
    for (int i = 0; i < 2 && t->table->stores[0].place == PLACE_FILE; i++) {
        CK(cudaEventCreateWithFlags(&w->staged[i], cudaEventDisableTiming));
        CK(cudaHostAlloc((void **)&w->staging[i], FILE_CHUNK * stride, cudaHostAllocDefault));
    }
    draw_ids(t, which);
    CK(cudaDeviceSynchronize());
    return 0;
}

void close_way(transfer *t, way *w) {
    for (gpu_array *array : {&w->ids, &w->dense, &w->places.numbers, &w->set.order}) gpu_drop(t->backend, array);
    cuda_drop_sorting(t->backend, &w->sorted);
    for (int i = 0; i < 2; i++) {
        if (w->staged[i]) cudaEventDestroy(w->staged[i]);
        if (w->staging[i]) cudaFreeHost(w->staging[i]);
    }
    if (w->host_ids) cudaFreeHost(w->host_ids);
}

/* ---- plain copies ---- */

struct copies {
    char *host[2], *gpu[2];
    uint64_t bytes;
};

/* Copies rows once: which = 0 to the GPU, 1 from it, 2 both at the same time, 3 within the GPU. */
int copy_once(backend *b, const copies *c, int which) {
    if (which == 0 || which == 2) CK(cudaMemcpyAsync(c->gpu[0], c->host[0], c->bytes, cudaMemcpyHostToDevice, b->in));
    if (which == 1 || which == 2) CK(cudaMemcpyAsync(c->host[1], c->gpu[1], c->bytes, cudaMemcpyDeviceToHost, b->out));
    if (which == 3) CK(cudaMemcpyAsync(c->gpu[0], c->gpu[1], c->bytes, cudaMemcpyDeviceToDevice, b->in));
    CK(cudaStreamSynchronize(b->in));
    CK(cudaStreamSynchronize(b->out));
    return 0;
}

int time_copies(backend *b, const copies *c, struct bench_limits *limits) {
    double *rates[] = {&limits->to, &limits->from, &limits->both, &limits->device};
    for (int which = 0; which < 4; which++) {
        double spent[BENCH_REPEATS];
        for (int i = -BENCH_WARM; i < BENCH_REPEATS; i++) {
            double began = now();
            if (copy_once(b, c, which)) return -1;
            if (i >= 0) spent[i] = now() - began;
        }
        *rates[which] = (double)c->bytes * (which < 2 ? 1 : 2) / median(spent);
    }
    return 0;
}

} // namespace

int cuda_bench_transfer(struct backend *backend, const struct bench_request *request, struct bench_times *times) {
    transfer t = {};
    t.backend = backend;
    t.table = request->table;
    t.rows = std::min(request->rows, request->table->view.rows);
    t.order = request->order;
    *times = {};
    CK(cudaSetDevice(backend->device));
    int result = open_way(&t, 0) || open_way(&t, 1) || time_it(&t, TO, &times->to) || time_it(&t, FROM, &times->from) ? -1 : 0;
    if (!result && t.table->stores[0].place != PLACE_FILE) result = time_it(&t, BOTH, &times->both);
    for (way &w : t.ways) close_way(&t, &w);
    return result;
}

int cuda_bench_limits(struct backend *backend, struct bench_limits *limits) {
    uint64_t most = (uint64_t)256 << 20, capacity = (backend->gpu_budget - backend->gpu_used) / 4;
    copies c = {{NULL, NULL}, {NULL, NULL}, capacity < most ? capacity >> 20 << 20 : most};
    char *device;
    int result = 0;
    if (!c.bytes) return fail("memory.gpu_budget leaves less than 4 MiB of the GPU, too little to measure a copy with");
    CK(cudaSetDevice(backend->device));
    for (int i = 0; i < 2 && !result; i++)
        if (pinned_take(backend, &c.host[i], &device, c.bytes, "a measured copy") ||
            gpu_take(backend, (void **)&c.gpu[i], c.bytes, "a measured copy"))
            result = -1;
    if (!result) result = time_copies(backend, &c, limits);
    for (int i = 0; i < 2; i++) {
        pinned_give(backend, c.host[i], c.bytes);
        gpu_give(backend, c.gpu[i], c.bytes);
    }
    return result;
}
