/* replicas: whole tables on the GPUs of several ranks. What the rows of each have moved by goes from GPU to GPU as the parts of a
 * step's sums do (exchange.cuh), without a word between the processes:
 *
 *   post_moved     row - base, to every rank        (far: into an array, which exchange_sum() adds up)
 *   take_moved     the sum over all ranks, in the ranks' order: the same bits on each. base and row become base + sum
 *
 * Rows move in no stream but the compute stream, so both see the same. A rank's words are all on their way before it waits for
 * another's.
 */
#include "exchange.cuh"

extern "C" {
#include "kernels/stores.h"
}

namespace {

enum {
    THREADS = 256,
    BLOCKS_PER_PROCESSOR = 4,
    CHUNKS_AT_ONCE = 32 /* enqueued before the host waits for them: a rank that hangs is found after as many */
};

/* Rows [first, first + floats / span) of a table, whose floats have slots from `slot` on. */
struct moved_rows {
    part_view rows, base;
    uint64_t first;
    uint32_t slot, floats;
};
struct moved_view {
    exchange_view exchange;
    moved_rows side[2];
    uint32_t span;
};

struct moved_float {
    float *row, *base;
    __device__ moved_float(const moved_view &v, const moved_rows &side, uint32_t i) {
        uint64_t number = side.first + i / v.span;
        row = (float *)part_at(side.rows, number) + i % v.span;
        base = (float *)part_at(side.base, number) + i % v.span;
    }
};

__global__ void __launch_bounds__(THREADS) post_moved(const __grid_constant__ moved_view v) {
    const moved_rows &side = v.side[blockIdx.y];
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < side.floats; i += gridDim.x * THREADS) {
        moved_float at(v, side, i);
        exchange_post(v.exchange, side.slot + i, *at.row - *at.base);
    }
}

__global__ void __launch_bounds__(THREADS) take_moved(const __grid_constant__ moved_view v) {
    const moved_rows &side = v.side[blockIdx.y];
    if (*(volatile unsigned *)v.exchange.gave_up) return; /* nobody comes any more */
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < side.floats; i += gridDim.x * THREADS) {
        moved_float at(v, side, i);
        float moved = exchange_collect(v.exchange, side.slot + i, *at.row - *at.base);
        if (moved != 0) *at.base += moved; /* what has not moved stays as it is, -0 too */
        *at.row = *at.base;
    }
}

__global__ void __launch_bounds__(THREADS) copy_rows(part_view from, part_view to, uint64_t first, uint64_t rows, uint32_t span) {
    uint64_t floats = (rows - first) * span, stride = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < floats; i += stride)
        ((float *)part_at(to, first + i / span))[i % span] = ((const float *)part_at(from, first + i / span))[i % span];
}

unsigned blocks_of(const backend *b, uint64_t floats) {
    uint64_t most = (uint64_t)BLOCKS_PER_PROCESSOR * b->processors, wanted = (floats + THREADS - 1) / THREADS;
    return (unsigned)(wanted < most ? wanted : most);
}

uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Those of rows [first, first + most) that a table has. */
moved_rows rows_from(const backend_table *table, uint64_t first, uint64_t most, uint32_t slot) {
    uint64_t end = smaller(first + most, table->spec.rows);
    if (first < table->spec.first_row) first = table->spec.first_row;
    moved_rows side = {table->view.weights, table->base->view.weights, first, slot, 0};
    side.floats = first < end ? (uint32_t)((end - first) * table->view.span) : 0;
    return side;
}

int merge_chunk(backend *b, moved_view *v) {
    uint32_t floats = v->side[0].floats + v->side[1].floats;
    uint32_t widest = v->side[0].floats > v->side[1].floats ? v->side[0].floats : v->side[1].floats;
    if (exchange_begin(b, floats, &v->exchange)) return -1;
    dim3 grid(blocks_of(b, widest), 2);
    post_moved<<<grid, THREADS, 0, b->compute>>>(*v);
    CK_LAUNCH("post_moved");
    if (!exchange_is_near(b->exchange) && exchange_sum(b, 0, floats)) return -1;
    take_moved<<<grid, THREADS, 0, b->compute>>>(*v);
    CK_LAUNCH("take_moved");
    return 0;
}

} // namespace

static int await_chunks(backend *b) {
    CK(cudaEventRecord(b->merged, b->compute));
    return exchange_await(b, b->merged);
}

int cuda_replica_open(struct backend *b, struct backend_table *table) {
    struct table_spec spec = replica_base(&table->spec);
    if (cuda_hogwild_check_table(table) || cuda_table_open(b, &spec, &table->base)) return -1;
    const table_view &view = table->view;
    copy_rows<<<blocks_of(b, table_row_count(&spec) * view.span), THREADS, 0, b->compute>>>(
        view.weights, table->base->view.weights, spec.first_row, spec.rows, view.span);
    CK_LAUNCH("copy_rows");
    CK(cudaStreamSynchronize(b->compute));
    return 0;
}

int cuda_replica_merge(struct backend *b, struct backend_table *target, struct backend_table *context, uint64_t rows) {
    uint64_t longest = target->view.rows > context->view.rows ? target->view.rows : context->view.rows;
    uint64_t end = smaller(rows, longest), most = replica_rows(target->view.span), chunks = 0;
    moved_view v = {};
    v.span = target->view.span;
    if (!b->exchange) return 0;
    CK(cudaSetDevice(b->device));
    for (uint64_t first = 0; first < end; first += most) {
        uint64_t count = smaller(most, end - first);
        v.side[0] = rows_from(target, first, count, 0);
        v.side[1] = rows_from(context, first, count, v.side[0].floats);
        if (merge_chunk(b, &v) || (++chunks % CHUNKS_AT_ONCE == 0 && await_chunks(b))) return -1;
    }
    return await_chunks(b);
}
