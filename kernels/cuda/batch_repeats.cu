/* batch_repeats: finds the ids of a batch that come more than once, before any sorting. In most batches over a large
 * vocabulary these are few: the other ids need no place in an order, if their rows lie on the GPU. One bit a row says
 * that it has been seen, another that it has been seen again. */
#include "cuda.cuh"

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

enum {
    THREADS = 256,
    MARKED = 4 /* ids of a thread, so that it waits for that many answers at once */
};

/* Marks rows. All ids count as single until the repeated ones are sorted and place_runs (batch_index.cu) corrects them. */
static __global__ void mark_rows(const uint32_t *ids, uint32_t count, uint32_t *seen, uint32_t *again, uint32_t *distinct) {
    uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * MARKED, id[MARKED], before[MARKED];
#pragma unroll
    for (uint32_t k = 0; k < MARKED; k++) id[k] = first + k < count ? ids[first + k] : DRAW_NONE;
#pragma unroll
    for (uint32_t k = 0; k < MARKED; k++) before[k] = id[k] == DRAW_NONE ? 0 : atomicOr(&seen[id[k] >> 5], 1u << (id[k] & 31));
#pragma unroll
    for (uint32_t k = 0; k < MARKED; k++) {
        if (before[k] >> (id[k] & 31) & 1) atomicOr(&again[id[k] >> 5], 1u << (id[k] & 31));
        if (first + k < count) distinct[first + k] = id[k] == DRAW_NONE ? DRAW_NONE : SINGLE_BIT;
    }
}

/* Tells of a {place, id} if the id comes elsewhere, too. */
struct is_repeated {
    const uint32_t *again;
    __device__ bool operator()(const thrust::tuple<uint32_t, uint32_t> &at) const {
        uint32_t id = thrust::get<1>(at);
        return id != DRAW_NONE && (again[id >> 5] >> (id & 31) & 1);
    }
};

static uint32_t *again_of(const struct repeats *r, uint64_t rows) {
    return (uint32_t *)r->bits.data + (rows + 31) / 32;
}

static cudaError_t select_repeated(const struct repeats *r, void *temporary, size_t *bytes, const uint32_t *ids, uint32_t *found,
                                   uint32_t count, uint64_t rows, cudaStream_t stream) {
    auto from = thrust::make_zip_iterator(thrust::make_counting_iterator<uint32_t>(0), ids);
    auto to = thrust::make_zip_iterator((uint32_t *)r->places.data, (uint32_t *)r->ids.data);
    return cub::DeviceSelect::If(temporary, *bytes, from, to, found, (int)count, is_repeated{again_of(r, rows)}, stream);
}

int cuda_grow_repeats(struct backend *b, struct repeats *r, uint32_t count, uint64_t rows) {
    const char *what = "rows that a batch repeats";
    struct repeats_bytes bytes = repeats_bytes(count, rows);
    size_t temporary = 0;
    CK(select_repeated(r, NULL, &temporary, NULL, NULL, count, rows, NULL));
    return gpu_grow(b, &r->bits, bytes.bits, what) || gpu_grow(b, &r->places, bytes.places, what) ||
                   gpu_grow(b, &r->ids, bytes.ids, what) ||
                   gpu_grow(b, &r->temporary, temporary > bytes.temporary ? temporary : bytes.temporary, what)
               ? -1
               : 0;
}

void cuda_drop_repeats(struct backend *b, struct repeats *r) {
    for (struct gpu_array *array : {&r->bits, &r->places, &r->ids, &r->temporary}) gpu_drop(b, array);
}

int cuda_find_repeats(struct repeats *r, const struct row_set *set, uint32_t count, uint64_t rows, uint32_t *found,
                      cudaStream_t stream) {
    const uint32_t *ids = (const uint32_t *)set->ids.data;
    uint32_t *seen = (uint32_t *)r->bits.data, *again = again_of(r, rows);
    size_t temporary = r->temporary.bytes;
    CK(cudaMemsetAsync(seen, 0, 2 * (uint64_t)(again - seen) * sizeof *seen, stream));
    mark_rows<<<blocks_for(count, THREADS * MARKED), THREADS, 0, stream>>>(ids, count, seen, again,
                                                                          (uint32_t *)set->distinct.data);
    CK_LAUNCH("mark_rows");
    CK(select_repeated(r, r->temporary.data, &temporary, ids, found, count, rows, stream));
    return 0;
}
