/* repeats: which ids of a batch stand in it more than once, found before any sorting. In most batches over a large vocabulary
 * that is a few: the others need no place in an order, where no memory but the GPU's is asked for their rows. A bit a row says
 * that it has been seen, another that it has been seen again.
 */
#include "cuda.cuh"

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

enum { THREADS = 256 };

static __global__ void mark_rows(const uint32_t *ids, uint32_t count, uint32_t *seen, uint32_t *again) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, id = i < count ? ids[i] : DRAW_NONE;
    if (id == DRAW_NONE) return;
    uint32_t bit = 1u << (id & 31);
    if (atomicOr(&seen[id >> 5], bit) & bit) atomicOr(&again[id >> 5], bit);
}

/* repeated[i]: 1 where an id stands elsewhere, too. The others are single; what is repeated gets its number from sorting. */
static __global__ void tell_rows(const uint32_t *ids, uint32_t count, const uint32_t *again, uint8_t *repeated,
                                 uint32_t *distinct) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint32_t id = ids[i];
    repeated[i] = id != DRAW_NONE && (again[id >> 5] >> (id & 31) & 1);
    distinct[i] = id == DRAW_NONE ? DRAW_NONE : SINGLE_BIT;
}

static __global__ void take_ids(const uint32_t *ids, const uint32_t *places, uint32_t count, uint32_t *to) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = ids[places[i]];
}

static cudaError_t select_places(const struct repeats *r, void *temporary, size_t *bytes, uint32_t *found, uint32_t count,
                                 cudaStream_t stream) {
    return cub::DeviceSelect::Flagged(temporary, *bytes, thrust::make_counting_iterator<uint32_t>(0),
                                      (const uint8_t *)r->repeated.data, (uint32_t *)r->places.data, found, (int)count, stream);
}

int cuda_grow_repeats(struct backend *b, struct repeats *r, uint32_t count, uint64_t rows) {
    const char *what = "rows that a batch repeats";
    struct repeats_bytes bytes = repeats_bytes(count, rows);
    size_t temporary = 0;
    CK(select_places(r, NULL, &temporary, NULL, count, NULL));
    return gpu_grow(b, &r->bits, bytes.bits, what) || gpu_grow(b, &r->repeated, bytes.repeated, what) ||
                   gpu_grow(b, &r->places, bytes.places, what) || gpu_grow(b, &r->ids, bytes.ids, what) ||
                   gpu_grow(b, &r->temporary, temporary > bytes.temporary ? temporary : bytes.temporary, what)
               ? -1
               : 0;
}

void cuda_drop_repeats(struct backend *b, struct repeats *r) {
    for (struct gpu_array *array : {&r->bits, &r->repeated, &r->places, &r->ids, &r->temporary}) gpu_drop(b, array);
}

int cuda_find_repeats(struct repeats *r, const struct row_set *set, uint32_t count, uint64_t rows, uint32_t *found,
                      cudaStream_t stream) {
    uint64_t words = (rows + 31) / 32;
    const uint32_t *ids = (const uint32_t *)set->ids.data;
    uint32_t *seen = (uint32_t *)r->bits.data, *again = seen + words;
    size_t temporary = r->temporary.bytes;
    CK(cudaMemsetAsync(seen, 0, 2 * words * sizeof *seen, stream));
    mark_rows<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(ids, count, seen, again);
    CK_LAUNCH("mark_rows");
    tell_rows<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(ids, count, again, (uint8_t *)r->repeated.data,
                                                                  (uint32_t *)set->distinct.data);
    CK_LAUNCH("tell_rows");
    CK(select_places(r, r->temporary.data, &temporary, found, count, stream));
    return 0;
}

int cuda_take_repeats(struct repeats *r, const struct row_set *set, uint32_t found, cudaStream_t stream) {
    if (!found) return 0;
    take_ids<<<blocks_for(found, THREADS), THREADS, 0, stream>>>((const uint32_t *)set->ids.data,
                                                                 (const uint32_t *)r->places.data, found,
                                                                 (uint32_t *)r->ids.data);
    CK_LAUNCH("take_ids");
    return 0;
}
