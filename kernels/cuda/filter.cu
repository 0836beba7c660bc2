/* filter: spreads rows over a graph on the GPU (kernels/finished.h), as kernels/cpu/search.c does on the CPU: the graph, the rows and four arrays of
 * 32 columns are in the GPU's memory. A warp computes one node, each lane one column, so that a neighbour's row is one read of 128 bytes. The arcs of
 * a node with very many arcs are divided among the warps of a thread block.
 *
 * A library for sparse matrices (cuSPARSE) needs 64-bit numbers of nodes if there are more than 2^31 arcs, which doubles the memory for the graph.
 */
#include "cuda.cuh"

#include "values.cuh"

#include <vector>

namespace {

enum {
    COLUMNS = 32,  /* columns that are computed at a time, one by each lane */
    THREADS = 256, /* threads of a thread block, of which each warp computes one node */
    HUB_THREADS = 1024,
    HUB_ARCS = 1 << 13 /* a node with at least this many arcs (a hub) is computed by a whole thread block */
};

/* The kinds of steps of the filter. Each computes new rows of nodes from the matrix A times the input rows. */
enum step { HALVE_FIRST, FIND_FIRST, HALVE_NEXT, FIND_NEXT, GIVE };

struct filter {
    const uint64_t *starts;
    const uint32_t *neighbours;
    const float *weights; /* weights of the arcs; NULL: every arc weighs 1 */
    float loop;           /* weight of an added arc from each node to itself */
    uint64_t nodes;
    float *x;                          /* [nodes x dim] the rows */
    uint32_t dim, first;               /* first: the column that lane 0 computes */
    float *older, *newer, *half, *sum; /* [nodes x COLUMNS] each: terms T_(i-2) and T_(i-1) of the series, M T_(i-1), and the sum of the series so
                                        * far */
    float factor;                      /* factor of the current term of the series (the formula is in kernels/finished.h) */
};

struct spread_row {
    float sum, all; /* sum: the values of the neighbours in this lane's column, each multiplied by its arc's weight, added up; all: the arcs' weights,
                     * added up */
};

/* Adds to *row the rows of the neighbours of arcs at .. end - 1, in this order. */
__device__ void add_arcs(const filter &f, const float *in, uint64_t at, uint64_t end, spread_row *row) {
    for (; at < end; at += 32) {
        uint32_t count = (uint32_t)min(end - at, (uint64_t)32), neighbour = 0;
        float weight = 1;
        if (lane_number() < count) {
            neighbour = f.neighbours[at + lane_number()];
            if (f.weights) weight = f.weights[at + lane_number()];
        }
#pragma unroll 8
        for (uint32_t i = 0; i < count; i++) {
            float own = __shfl_sync(ALL_LANES, weight, i);
            uint64_t from = __shfl_sync(ALL_LANES, neighbour, i);
            row->sum += own * __ldg(in + from * COLUMNS + lane_number());
            row->all += own;
        }
    }
}

__device__ void finish(const filter &f, step what, uint64_t node, spread_row row) {
    uint64_t i = node * COLUMNS + lane_number();
    switch (what) {
    case HALVE_FIRST:
        f.half[i] = filter_product(f.older[i], row.sum, row.all);
        break;
    case HALVE_NEXT:
        f.half[i] = filter_product(f.newer[i], row.sum, row.all);
        break;
    case FIND_FIRST: {
        float next = filter_product(f.half[i], row.sum, row.all) / 2 - f.older[i];
        f.newer[i] = next;
        f.sum[i] += f.factor * next;
        break;
    }
    case FIND_NEXT: {
        float next = filter_product(f.half[i], row.sum, row.all) - 2 * f.newer[i] - f.older[i];
        f.older[i] = next;
        f.sum[i] += f.factor * next;
        break;
    }
    case GIVE:
        if (f.first + lane_number() < f.dim) f.x[node * f.dim + f.first + lane_number()] = row.sum;
    }
}

__device__ const float *input_of(const filter &f, step what) {
    return what == HALVE_FIRST ? f.older : what == HALVE_NEXT ? f.newer : f.half;
}

__global__ void __launch_bounds__(THREADS) spread(const filter f, step what) {
    uint64_t node = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    const float *in = input_of(f, what);
    if (node >= f.nodes || f.starts[node + 1] - f.starts[node] >= HUB_ARCS) return;
    spread_row row = {f.loop * in[node * COLUMNS + lane_number()], f.loop};
    add_arcs(f, in, f.starts[node], f.starts[node + 1], &row);
    finish(f, what, node, row);
}

/* Computes the hubs, one by each thread block, whose warps share a hub's arcs equally. */
__global__ void __launch_bounds__(HUB_THREADS) spread_hubs(const filter f, step what, const uint32_t *hubs) {
    __shared__ spread_row part[HUB_THREADS / 32][COLUMNS];
    const float *in = input_of(f, what);
    uint64_t node = hubs[blockIdx.x], start = f.starts[node], warps = HUB_THREADS / 32, warp = threadIdx.x / 32;
    uint64_t arcs = f.starts[node + 1] - start;
    spread_row row = {0, 0};
    add_arcs(f, in, start + arcs * warp / warps, start + arcs * (warp + 1) / warps, &row);
    part[warp][lane_number()] = row;
    __syncthreads();
    if (warp) return;
    row.sum = f.loop * in[node * COLUMNS + lane_number()], row.all = f.loop;
    for (uint64_t i = 0; i < warps; i++) row.sum += part[i][lane_number()].sum, row.all += part[i][lane_number()].all;
    finish(f, what, node, row);
}

/* Copies the current columns of x, which are the first term of the series. Columns after the last one are zeros. */
__global__ void __launch_bounds__(THREADS) take_columns(const filter f) {
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= f.nodes * COLUMNS) return;
    uint32_t column = f.first + (uint32_t)(i % COLUMNS);
    f.older[i] = column < f.dim ? f.x[i / COLUMNS * f.dim + column] : 0;
    f.sum[i] = f.factor * f.older[i];
}

__global__ void __launch_bounds__(THREADS) find_rest(const filter f) {
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= f.nodes * COLUMNS) return;
    uint32_t column = f.first + (uint32_t)(i % COLUMNS);
    f.half[i] = column < f.dim ? f.x[i / COLUMNS * f.dim + column] - f.sum[i] : 0;
}

struct hub_list {
    uint32_t *ids; /* [count] the hubs, on the GPU */
    unsigned count;
};

int each_node(const filter &f, const hub_list &hubs, step what, int term) {
    filter now = f;
    now.factor = (float)filter_coefficient(term);
    spread<<<blocks_for(f.nodes * 32, THREADS), THREADS>>>(now, what);
    CK_LAUNCH("spread");
    if (hubs.count) spread_hubs<<<hubs.count, HUB_THREADS>>>(now, what, hubs.ids);
    CK_LAUNCH("spread_hubs");
    return 0;
}

int pass_columns(filter f, const hub_list &hubs) {
    f.factor = (float)filter_coefficient(0);
    take_columns<<<blocks_for(f.nodes * COLUMNS, THREADS), THREADS>>>(f);
    CK_LAUNCH("take_columns");
    if (each_node(f, hubs, HALVE_FIRST, 1) || each_node(f, hubs, FIND_FIRST, 1)) return -1;
    for (int term = 2; term < FILTER_TERMS; term++) {
        if (each_node(f, hubs, HALVE_NEXT, term) || each_node(f, hubs, FIND_NEXT, term)) return -1;
        std::swap(f.older, f.newer);
    }
    find_rest<<<blocks_for(f.nodes * COLUMNS, THREADS), THREADS>>>(f);
    CK_LAUNCH("find_rest");
    return each_node(f, hubs, GIVE, 0);
}

/* An array on the GPU that is freed when the call ends. */
struct lent_array {
    void *data;
    uint64_t bytes;
    const void *from; /* the caller's data, copied into the array; NULL: the array is not filled */
};

enum { X, STARTS, NEIGHBOURS, WEIGHTS, HUBS, WORK, ARRAYS };

int lend(backend *b, lent_array *arrays) {
    for (int i = 0; i < ARRAYS; i++) {
        if (arrays[i].bytes && gpu_take(b, &arrays[i].data, arrays[i].bytes, "the rows that are spread over a graph")) return -1;
        if (arrays[i].from && arrays[i].bytes) CK(cudaMemcpy(arrays[i].data, arrays[i].from, arrays[i].bytes, cudaMemcpyHostToDevice));
    }
    return 0;
}

int spread_all(const filter_request *r, const lent_array *arrays, unsigned hub_count) {
    uint64_t size = r->nodes * COLUMNS;
    hub_list hubs = {(uint32_t *)arrays[HUBS].data, hub_count};
    filter f = {(const uint64_t *)arrays[STARTS].data,
                (const uint32_t *)arrays[NEIGHBOURS].data,
                (const float *)arrays[WEIGHTS].data,
                r->loop,
                r->nodes,
                (float *)arrays[X].data,
                r->dim};
    f.older = (float *)arrays[WORK].data;
    f.newer = f.older + size, f.half = f.newer + size, f.sum = f.half + size;
    for (; f.first < r->dim; f.first += COLUMNS)
        if (pass_columns(f, hubs)) return -1;
    CK(cudaMemcpy(r->x, f.x, arrays[X].bytes, cudaMemcpyDeviceToHost));
    return 0;
}

} // namespace

int cuda_filter(struct backend *b, const struct filter_request *r) {
    std::vector<uint32_t> hubs;
    for (uint64_t node = 0; node < r->nodes; node++)
        if (r->starts[node + 1] - r->starts[node] >= HUB_ARCS) hubs.push_back((uint32_t)node);
    lent_array arrays[ARRAYS] = {};
    arrays[X] = {NULL, r->nodes * r->dim * sizeof(float), r->x};
    arrays[STARTS] = {NULL, (r->nodes + 1) * sizeof(uint64_t), r->starts};
    arrays[NEIGHBOURS] = {NULL, r->arcs * sizeof(uint32_t), r->neighbours};
    arrays[WEIGHTS] = {NULL, r->weights ? r->arcs * sizeof(float) : 0, r->weights};
    arrays[HUBS] = {NULL, hubs.size() * sizeof(uint32_t), hubs.data()};
    arrays[WORK] = {NULL, 4 * r->nodes * COLUMNS * sizeof(float), NULL};
    uint64_t bytes = 0;
    int fits;
    CK(cudaSetDevice(b->device));
    for (const lent_array &array : arrays) bytes += array.bytes;
    if (gpu_has_room(b, bytes, &fits)) return -1;
    if (!fits) return 1;
    int result = lend(b, arrays) || spread_all(r, arrays, (unsigned)hubs.size()) ? -1 : 0;
    for (lent_array &array : arrays)
        if (array.data) gpu_give(b, array.data, array.bytes);
    return result;
}
