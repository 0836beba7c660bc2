/* copies: the tables that several GPUs train lock-free, merged (kernels/hogwild.h). Each GPU merges its share of the rows: it reads
 * them from the memory of all GPUs, over NVLink or PCIe, and writes the merged rows to all of them. So a row crosses the link once
 * to the GPU that merges it and once back.
 */
#include "cuda.cuh"
#include "values.cuh"

extern "C" {
#include "base/memory.h"
#include "base/report.h"
#include "kernels/hogwild.h"
}

#include <stdlib.h>

/* One GPU's share of the rows of all copies. */
struct share {
    char *rows[COPIES_MOST]; /* address of row 0 in each copy */
    uint64_t stride, first, end;
    float4 *base; /* [end - first][quads] the rows after the last merge */
    uint32_t quads;
    unsigned count;
};

struct backend_copies {
    struct backend *backends[COPIES_MOST];
    struct share shares[COPIES_MOST];
    unsigned count;
    bool halves;
};

namespace {

enum { THREADS = 256 };

template <bool HALVES> __device__ float4 read_values(const char *row, uint32_t quad) {
    return HALVES ? values_of(((const uint2 *)row)[quad]) : ((const float4 *)row)[quad];
}
template <bool HALVES> __device__ void write_values(char *row, uint32_t quad, const float *x) {
    if (HALVES) {
        uint32_t first = bfloat16_nearest(x[0]) | (uint32_t)bfloat16_nearest(x[1]) << 16;
        ((uint2 *)row)[quad] = make_uint2(first, bfloat16_nearest(x[2]) | (uint32_t)bfloat16_nearest(x[3]) << 16);
    } else {
        ((float4 *)row)[quad] = make_float4(x[0], x[1], x[2], x[3]);
    }
}

/* A thread merges four columns of a row. `begin`: copies the first table's rows to the others instead. */
template <bool HALVES> __global__ void __launch_bounds__(THREADS) merge_rows(const __grid_constant__ struct share s, bool begin) {
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, offset = (s.first + at / s.quads) * s.stride;
    uint32_t quad = (uint32_t)(at % s.quads);
    if (at >= (s.end - s.first) * s.quads) return;
    alignas(16) float rows[COPIES_MOST * COPIES_GROUP], base[COPIES_GROUP];
    if (begin) {
        *(float4 *)base = read_values<HALVES>(s.rows[0] + offset, quad);
    } else {
        for (unsigned r = 0; r < s.count; r++) *(float4 *)(rows + r * COPIES_GROUP) = read_values<HALVES>(s.rows[r] + offset, quad);
        *(float4 *)base = s.base[at];
        copies_merge_group(base, rows, s.count);
    }
    for (unsigned r = 0; r < s.count; r++) write_values<HALVES>(s.rows[r] + offset, quad, base);
    s.base[at] = HALVES ? read_values<HALVES>(s.rows[0] + offset, quad) : *(float4 *)base;
}

int merge(struct backend_copies *c, bool begin) {
    for (unsigned g = 0; g < c->count; g++) {
        const struct share &s = c->shares[g];
        uint64_t threads = (s.end - s.first) * s.quads;
        if (!threads) continue;
        CK(cudaSetDevice(c->backends[g]->device));
        (c->halves ? merge_rows<true> : merge_rows<false>)<<<blocks_for(threads, THREADS), THREADS, 0, c->backends[g]->compute>>>(s, begin);
        CK_LAUNCH("merge_rows");
    }
    for (unsigned g = 0; g < c->count; g++) {
        CK(cudaSetDevice(c->backends[g]->device));
        CK(cudaStreamSynchronize(c->backends[g]->compute));
    }
    return 0;
}

/* Lets each GPU address the memory of the others. Returns 1 if the machine cannot. */
int connect(struct backend *const *backends, unsigned count) {
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = 0; b < count; b++) {
            int can = 1;
            if (backends[a]->device == backends[b]->device) continue;
            CK(cudaDeviceCanAccessPeer(&can, backends[a]->device, backends[b]->device));
            if (!can) return 1;
            CK(cudaSetDevice(backends[a]->device));
            cudaError_t error = cudaDeviceEnablePeerAccess(backends[b]->device, 0);
            if (error == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
            else if (error != cudaSuccess) return cuda_failed(error, "cudaDeviceEnablePeerAccess");
        }
    return 0;
}

int open_shares(struct backend_copies *c, struct backend_table *const *tables) {
    const struct table_spec *spec = &tables[0]->spec;
    uint64_t rows = table_row_count(spec);
    for (unsigned g = 0; g < c->count; g++) {
        struct share *s = &c->shares[g];
        s->count = c->count;
        s->quads = tables[0]->view.quads;
        s->stride = tables[0]->view.weights.stride;
        s->first = spec->first_row + rows * g / c->count;
        s->end = spec->first_row + rows * (g + 1) / c->count;
        for (unsigned r = 0; r < c->count; r++) s->rows[r] = tables[r]->view.weights.hot;
        CK(cudaSetDevice(c->backends[g]->device));
        if (gpu_take(c->backends[g], (void **)&s->base, (s->end - s->first) * s->quads * sizeof *s->base, "copies of a table")) return -1;
    }
    return 0;
}

} // namespace

int cuda_copies_open(struct backend *const *backends, struct backend_table *const *tables, unsigned count,
                     struct backend_copies **out) {
    *out = NULL;
    for (unsigned r = 0; r < count; r++)
        if (tables[r]->view.weights.hot_rows < tables[r]->view.rows) return 1;
    int cannot = connect(backends, count);
    if (cannot) return cannot;
    struct backend_copies *c = (struct backend_copies *)mem_zalloc(1, sizeof *c, "copies of a table");
    *out = c;
    if (!c) return -1;
    c->count = count;
    c->halves = has_halves(&tables[0]->spec.layout);
    for (unsigned r = 0; r < count; r++) {
        c->backends[r] = backends[r];
        if (cuda_drain(backends[r])) return -1;
    }
    return open_shares(c, tables) || merge(c, true) ? -1 : 0;
}

int cuda_copies_merge(struct backend_copies *copies) {
    return merge(copies, false);
}

void cuda_copies_close(struct backend_copies *c) {
    for (unsigned g = 0; c && g < c->count; g++) {
        struct share *s = &c->shares[g];
        if (!s->base) continue;
        cudaSetDevice(c->backends[g]->device);
        gpu_give(c->backends[g], s->base, (s->end - s->first) * s->quads * sizeof *s->base);
    }
    free(c);
}
