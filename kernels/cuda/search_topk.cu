/* search_topk: exact nearest rows, and exact ranks, on the GPU. The base rows are searched in slices: float32 products by cuBLAS exclude most rows of
 * a slice, and the few others get the exact score of kernels/finished.h. So neither the base table nor all products must fit into the GPU, answers do
 * not depend on the size of slices, and the CPU finds the same answers to the bit.
 *
 *   base slice -> GPU   copied while the previous slice is searched; also computes the length of its longest row
 *   queries x slice     products by cublasSgemm, without TF32
 *   select              for each query: finds the k-th best of its answers so far and its products, by radix selection over
 *                       64-bit keys; scores the rows whose products are near the k-th best or above it; keeps the k best of its
 *                       answers so far and these scores
 *   at the end          a segmented sort orders the k answers of each query
 *
 * A key is a score's bits, in rising order, then the complement of the row's id. So keys differ, and a larger key is a better answer; of equal
 * scores, the lower id is better. Key 0 means no answer: a banned row, a score of -infinity, or NaN.
 */
#include "cuda.cuh"

#include "blas.cuh"
#include "values.cuh"

extern "C" {
#include "kernels/finished.h"
}

#include <algorithm>
#include <cub/device/device_segmented_radix_sort.cuh>

namespace {

typedef unsigned long long answer_key;

enum {
    THREADS = 256,          /* threads of a thread block of select_kernel */
    QUERIES_AT_ONCE = 1024, /* number of queries of one product */
    GROUP = 1 << 16,        /* queries whose answers are on the GPU at the same time */
    BASE_BYTES = 256 << 20, /* most bytes of one slice of base rows */
    SCORES = 64 << 20,      /* most floats of one product */
    NEAR = 1024             /* most keys of scored rows of a slice that a thread block keeps in shared memory */
};

struct topk_memory {
    gpu_array base[2], queries, scores, best[2], starts, banned, sort, offsets, longest, than;
    cudaEvent_t arrived[2], used[2];
    int has_events;
};

template <class Each> void each_array(topk_memory *m, Each each) {
    gpu_array *arrays[] = {&m->base[0], &m->base[1], &m->queries, &m->scores,  &m->best[0], &m->best[1],
                           &m->starts,  &m->banned,  &m->sort,    &m->offsets, &m->longest, &m->than};
    for (gpu_array *array : arrays) each(array);
}

/* ---- keys ---- */

__device__ answer_key key_of(float score, uint32_t row) {
    if (!(score > -INFINITY)) return 0;
    uint32_t bits = __float_as_uint(score + 0.0f); /* adding 0 makes -0 equal to 0 */
    bits ^= bits >> 31 ? 0xFFFFFFFFu : 0x80000000u;
    return (answer_key)bits << 32 | (0xFFFFFFFFu - row);
}
uint32_t row_of(answer_key key) {
    return 0xFFFFFFFFu - (uint32_t)key;
}
__host__ __device__ float score_of(answer_key key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= bits >> 31 ? 0x80000000u : 0xFFFFFFFFu;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* ---- kernels ---- */

constexpr uint32_t MASKED = 0xFFC0BA2Du; /* replaces the product of a banned row; no arithmetic produces this NaN */

/* Replaces the products of each query's banned rows by MASKED, in the slice of rows first .. first + rows - 1. One thread block for each query. */
__global__ void mask_kernel(float *scores, uint64_t first, uint64_t rows, const uint64_t *starts, const uint32_t *banned, uint64_t base) {
    uint64_t low = starts[blockIdx.x] - base, end = starts[blockIdx.x + 1] - base;
    for (uint64_t i = low + threadIdx.x; i < end; i += blockDim.x)
        if (banned[i] >= first && banned[i] - first < rows) scores[blockIdx.x * rows + banned[i] - first] = __uint_as_float(MASKED);
}

/* Computes the squared length of the longest row, as the bits of a float, which for positive floats have the same order. Ignores rows with NaN,
 * which are never answers. One warp for each row. */
__global__ void lengths_kernel(const float *base, uint64_t rows, uint32_t dim, uint32_t *longest) {
    uint64_t warps = (uint64_t)gridDim.x * blockDim.x / 32;
    float most = 0;
    for (uint64_t row = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; row < rows; row += warps) {
        float sum = 0;
        for (uint32_t i = lane_number(); i < dim; i += 32) sum = fmaf(base[row * dim + i], base[row * dim + i], sum);
        for (int half = 16; half; half /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, half);
        if (sum > most) most = sum;
    }
    if (lane_number() == 0) atomicMax(longest, __float_as_uint(most));
}

/* Computes search_sum() by a warp: each lane adds its columns in order; then the lanes' sums are added pairwise. */
__device__ double sum_of(const float *a, const float *b, uint32_t dim) {
    static_assert(SEARCH_LANES == 32, "a lane a column");
    double sum = 0;
    for (uint32_t i = lane_number(); i < dim; i += 32) sum += (double)a[i] * (double)b[i];
    return warp_sum(sum);
}

/* The keys among which a query chooses its k best: `before` are the keys of its answers so far; the keys of a slice's rows are either exact (near)
 * or made from products (values). */
struct choice {
    const answer_key *before, *near;
    const float *values;
    uint64_t k, count; /* k: number of answers in `before`; count: number of all keys to choose from */
    uint32_t first;    /* id of the row of values[0] */

    __device__ answer_key at(uint64_t i) const {
        return i < k ? before[i] : near ? near[i - k] : key_of(values[i - k], first + (uint32_t)(i - k));
    }
};

/* Returns the k-th largest key; 1 if fewer than k keys are answers. Finds the key digit by digit, the highest first, by a histogram of the keys
 * that begin with the digits found so far. Stops as soon as all of these keys are among the k largest. */
__device__ answer_key find_least(const choice &c, uint64_t k) {
    __shared__ uint32_t histogram[256];
    __shared__ uint64_t wanted_shared;
    __shared__ uint32_t digit_shared, done_shared;
    answer_key found = 0;
    uint64_t wanted = k;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += THREADS) histogram[i] = 0;
        __syncthreads();
        for (uint64_t i = threadIdx.x; i < c.count; i += THREADS) {
            answer_key key = c.at(i);
            bool agrees = shift == 56 || key >> (shift + 8) == found >> (shift + 8);
            if (key && agrees) atomicAdd(&histogram[key >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            uint64_t left = wanted;
            int digit = 255;
            while (digit > 0 && histogram[digit] < left) left -= histogram[digit--];
            digit_shared = (uint32_t)digit;
            wanted_shared = left;
            done_shared = histogram[digit] <= left;
        }
        __syncthreads();
        found |= (answer_key)digit_shared << shift;
        wanted = wanted_shared;
        bool done = done_shared;
        __syncthreads();
        if (done) break;
    }
    return found ? found : 1;
}

/* A slice of the base rows. */
struct slice {
    const float *base; /* [rows x dim] */
    uint64_t rows;
    uint32_t dim, first;     /* first: id of its first row */
    const uint32_t *longest; /* on the GPU: the result of lengths_kernel */
};

/* Returns the smallest product with which a row may be among the k best: the k-th best product minus twice the margin, since a product may be
 * above or below its exact score by the margin. */
__device__ float least_product(const choice &products, const slice &s, const float *query) {
    double squares = sum_of(query, query, s.dim);
    float least = score_of(find_least(products, products.k));
    float margin = search_margin(s.dim, squares, __uint_as_float(*s.longest));
    return least > -INFINITY ? least - 2 * margin : -INFINITY;
}

/* Computes the exact scores of the rows whose products are at least `least`, one row for each warp. near != NULL: stores the keys of the first
 * NEAR of them, and counts them all. near = NULL: replaces every product by its row's score, or by MASKED. */
__device__ void score_rows(float *products, float least, const slice &s, const float *query, answer_key *near, uint32_t *count) {
    for (uint64_t base = threadIdx.x / 32 * 32; base < s.rows; base += THREADS) {
        uint64_t row = base + lane_number();
        float product = row < s.rows ? products[row] : __uint_as_float(MASKED), score = __uint_as_float(MASKED);
        bool wanted = __float_as_uint(product) != MASKED && !(product < least);
        for (unsigned left = __ballot_sync(ALL_LANES, wanted); left; left &= left - 1) {
            uint32_t lane = (uint32_t)__ffs((int)left) - 1;
            float scored = (float)sum_of(query, s.base + (base + lane) * s.dim, s.dim);
            if (lane_number() == lane) score = scored;
        }
        answer_key key = wanted ? key_of(score, s.first + (uint32_t)row) : 0;
        if (!near && row < s.rows) products[row] = score;
        if (!near || !key) continue;
        uint32_t place = atomicAdd(count, 1u);
        if (place < NEAR) near[place] = key;
    }
    __syncthreads();
}

/* Selects, for each query, the k best of its answers so far and the rows of a slice, in any order. One thread block for each query. */
__global__ void __launch_bounds__(THREADS) select_kernel(const answer_key *before, answer_key *after, uint64_t k,
                                                         float *products, const float *queries, slice s) {
    __shared__ answer_key near[NEAR];
    __shared__ uint32_t found;
    __shared__ unsigned long long used;
    const float *query = queries + blockIdx.x * (uint64_t)s.dim;
    answer_key *out = after + blockIdx.x * k;
    choice c = {before + blockIdx.x * k, NULL, products + blockIdx.x * s.rows, k, k + s.rows, s.first};
    float *own = products + blockIdx.x * s.rows, least = least_product(c, s, query);
    if (threadIdx.x == 0) found = used = 0;
    __syncthreads();
    score_rows(own, least, s, query, near, &found);
    if (found <= NEAR) {
        c.near = near;
        c.count = k + found;
    } else {
        score_rows(own, least, s, query, NULL, &found);
    }
    answer_key last = find_least(c, k);
    for (uint64_t i = threadIdx.x; i < c.count; i += THREADS) {
        answer_key key = c.at(i);
        if (key >= last) {
            uint64_t slot = atomicAdd(&used, 1ull);
            if (slot < k) out[slot] = key;
        }
    }
    __syncthreads();
    for (uint64_t i = used + threadIdx.x; i < k; i += THREADS) out[i] = 0;
}

/* Counts, for each query, the rows of a slice whose score is above `than`, and those whose score equals it; rows with MASKED products are not
 * counted. Where a product is near `than`, the exact score decides. counts: [queries x 2]. One thread block for each query. */
__global__ void __launch_bounds__(THREADS) count_kernel(const float *products, const float *queries, const float *than, slice s, answer_key *counts) {
    __shared__ unsigned long long found[2];
    const float *query = queries + blockIdx.x * (uint64_t)s.dim, *own = products + blockIdx.x * s.rows;
    float limit = than[blockIdx.x], margin = search_margin(s.dim, sum_of(query, query, s.dim), __uint_as_float(*s.longest));
    unsigned long long above = 0, level = 0;
    if (threadIdx.x < 2) found[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t base = threadIdx.x / 32 * 32; base < s.rows; base += THREADS) {
        uint64_t row = base + lane_number();
        float product = row < s.rows ? own[row] : __uint_as_float(MASKED);
        bool counts_at_all = __float_as_uint(product) != MASKED && !(product < limit - margin);
        bool is_above = counts_at_all && product > limit + margin;
        for (unsigned left = __ballot_sync(ALL_LANES, counts_at_all && !is_above); left; left &= left - 1) {
            uint32_t lane = (uint32_t)__ffs((int)left) - 1;
            float scored = (float)sum_of(query, s.base + (base + lane) * s.dim, s.dim);
            if (lane_number() == lane) {
                above += scored > limit;
                level += scored == limit;
            }
        }
        above += is_above;
    }
    atomicAdd(&found[0], above);
    atomicAdd(&found[1], level);
    __syncthreads();
    if (threadIdx.x < 2) counts[2 * (uint64_t)blockIdx.x + threadIdx.x] += found[threadIdx.x];
}

__global__ void offsets_kernel(uint64_t *offsets, uint64_t count, uint64_t step) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < count) offsets[i] = i * step;
}

/* ---- the call ---- */

int open_memory(backend *backend, topk_memory **out) {
    if (!backend->topk) {
        backend->topk = mem_zalloc(1, sizeof(topk_memory), "a search");
        if (!backend->topk) return -1;
    }
    topk_memory *m = (topk_memory *)backend->topk;
    if (cuda_blas_open(backend)) return -1;
    for (int i = 0; i < 2 && !m->has_events; i++) {
        CK(cudaEventCreateWithFlags(&m->arrived[i], cudaEventDisableTiming));
        CK(cudaEventCreateWithFlags(&m->used[i], cudaEventDisableTiming));
    }
    m->has_events = 1;
    *out = m;
    return 0;
}

/* The queries whose answers are on the GPU at the same time; every slice is searched for all of them. */
struct group {
    const topk_request *request;
    uint64_t first, count; /* queries first .. first + count - 1 of the call */
    uint64_t k, slice, chunk; /* k: with 2 rows are counted instead, and best[0] contains the counts */
    int newest; /* index in best[] of the newest answers */
};

int size_memory(backend *backend, topk_memory *m, const group &g) {
    const topk_request *r = g.request;
    uint64_t banned = r->banned_starts ? r->banned_starts[g.first + g.count] - r->banned_starts[g.first] : 0;
    int slices = g.slice < r->base_rows ? 2 : 1;
    for (int i = 0; i < slices; i++)
        if (gpu_grow(backend, &m->base[i], g.slice * r->dim * sizeof(float), "a slice of the rows that are searched")) return -1;
    for (int i = 0; i < 2; i++)
        if (gpu_grow(backend, &m->best[i], g.count * g.k * sizeof(answer_key), "the answers of a search")) return -1;
    if (gpu_grow(backend, &m->queries, g.count * r->dim * sizeof(float), "the queries of a search")) return -1;
    if (gpu_grow(backend, &m->scores, g.chunk * g.slice * sizeof(float), "the scores of a search")) return -1;
    if (gpu_grow(backend, &m->offsets, (g.count + 1) * sizeof(uint64_t), "a search")) return -1;
    if (gpu_grow(backend, &m->longest, sizeof(uint32_t), "a search")) return -1;
    if (r->than && gpu_grow(backend, &m->than, g.count * sizeof(float), "the scores to rank")) return -1;
    if (!r->banned_starts) return 0;
    if (gpu_grow(backend, &m->starts, (g.count + 1) * sizeof(uint64_t), "the banned rows of a search")) return -1;
    return banned ? gpu_grow(backend, &m->banned, banned * sizeof(uint32_t), "the banned rows of a search") : 0;
}

int send_queries(backend *backend, topk_memory *m, const group &g) {
    const topk_request *r = g.request;
    CK(cudaMemcpyAsync(m->queries.data, r->queries + g.first * r->dim, g.count * r->dim * sizeof(float), cudaMemcpyHostToDevice, backend->compute));
    CK(cudaMemsetAsync(m->best[0].data, 0, g.count * g.k * sizeof(answer_key), backend->compute));
    if (r->than) CK(cudaMemcpyAsync(m->than.data, r->than + g.first, g.count * sizeof(float), cudaMemcpyHostToDevice, backend->compute));
    if (!r->banned_starts) return 0;
    uint64_t from = r->banned_starts[g.first], banned = r->banned_starts[g.first + g.count] - from;
    CK(cudaMemcpyAsync(m->starts.data, r->banned_starts + g.first, (g.count + 1) * sizeof(uint64_t), cudaMemcpyHostToDevice, backend->compute));
    if (banned) CK(cudaMemcpyAsync(m->banned.data, r->banned + from, banned * sizeof(uint32_t), cudaMemcpyHostToDevice, backend->compute));
    return 0;
}

/* Multiplies all queries of the group with a slice on the GPU; then selects each query's best answers from the slice and its answers so far. */
int search_slice(backend *backend, topk_memory *m, group *g, const float *base, uint64_t first, uint64_t rows) {
    const topk_request *r = g->request;
    float *scores = (float *)m->scores.data;
    slice s = {base, rows, r->dim, (uint32_t)first, (uint32_t *)m->longest.data};
    CK(cudaMemsetAsync(m->longest.data, 0, sizeof(uint32_t), backend->compute));
    lengths_kernel<<<(unsigned)std::min<uint64_t>(rows / 8 + 1, 4 * (uint64_t)backend->processors), THREADS, 0,
                     backend->compute>>>(base, rows, r->dim, (uint32_t *)m->longest.data);
    CK_LAUNCH("lengths_kernel");
    for (uint64_t query = 0; query < g->count; query += g->chunk) {
        uint64_t queries = std::min(g->count - query, g->chunk);
        const struct blas_product products = {{base, (int)r->dim, 1},
                                              {(const float *)m->queries.data + query * r->dim, (int)r->dim, 0},
                                              scores,
                                              (int)rows,
                                              (int)rows,
                                              (int)queries,
                                              (int)r->dim};
        if (cuda_multiply(backend, &products)) return -1;
        if (r->banned_starts) {
            mask_kernel<<<(unsigned)queries, 128, 0, backend->compute>>>(scores, first, rows, (const uint64_t *)m->starts.data + query,
                                                                         (const uint32_t *)m->banned.data, r->banned_starts[g->first]);
            CK_LAUNCH("mask_kernel");
        }
        if (r->than) {
            count_kernel<<<(unsigned)queries, THREADS, 0, backend->compute>>>(
                scores, (const float *)m->queries.data + query * r->dim, (const float *)m->than.data + query, s,
                (answer_key *)m->best[0].data + query * g->k);
            CK_LAUNCH("count_kernel");
            continue;
        }
        const answer_key *before = (const answer_key *)m->best[g->newest].data + query * g->k;
        answer_key *after = (answer_key *)m->best[!g->newest].data + query * g->k;
        const float *asked = (const float *)m->queries.data + query * r->dim;
        select_kernel<<<(unsigned)queries, THREADS, 0, backend->compute>>>(before, after, g->k, scores, asked, s);
        CK_LAUNCH("select_kernel");
    }
    if (!r->than) g->newest = !g->newest;
    return 0;
}

int search_slices(backend *backend, topk_memory *m, group *g) {
    const topk_request *r = g->request;
    int turn = 0, used[2] = {0, 0};
    for (uint64_t first = 0; first < r->base_rows; first += g->slice, turn = !turn) {
        uint64_t rows = std::min(r->base_rows - first, g->slice);
        if (used[turn]) CK(cudaStreamWaitEvent(backend->in, m->used[turn], 0));
        CK(cudaMemcpyAsync(m->base[turn].data, r->base + first * r->dim, rows * r->dim * sizeof(float), cudaMemcpyHostToDevice, backend->in));
        CK(cudaEventRecord(m->arrived[turn], backend->in));
        CK(cudaStreamWaitEvent(backend->compute, m->arrived[turn], 0));
        if (search_slice(backend, m, g, (const float *)m->base[turn].data, first, rows)) return -1;
        CK(cudaEventRecord(m->used[turn], backend->compute));
        used[turn] = 1;
    }
    return 0;
}

int fetch_counts(backend *backend, topk_memory *m, const group &g) {
    const topk_request *r = g.request;
    answer_key *counts = (answer_key *)mem_alloc(g.count * g.k, sizeof *counts, "the ranks of a search");
    if (!counts) return -1;
    cudaError_t error = cudaMemcpyAsync(counts, m->best[0].data, g.count * g.k * sizeof *counts, cudaMemcpyDeviceToHost, backend->compute);
    if (error == cudaSuccess) error = cudaStreamSynchronize(backend->compute);
    for (uint64_t q = 0; q < g.count && error == cudaSuccess; q++) {
        r->above[g.first + q] = counts[2 * q];
        r->level[g.first + q] = counts[2 * q + 1];
    }
    free(counts);
    return error == cudaSuccess ? 0 : cuda_failed(error, "a search");
}

/* Sorts the answers of each query, from best[newest] to the other array of best[]. */
int sort_answers(backend *backend, topk_memory *m, group *g) {
    uint64_t *offsets = (uint64_t *)m->offsets.data;
    const answer_key *in = (const answer_key *)m->best[g->newest].data;
    answer_key *out = (answer_key *)m->best[!g->newest].data;
    size_t bytes = 0;
    offsets_kernel<<<(unsigned)(g->count / 256 + 1), 256, 0, backend->compute>>>(offsets, g->count + 1, g->k);
    CK_LAUNCH("offsets_kernel");
    CK(cub::DeviceSegmentedRadixSort::SortKeysDescending(NULL, bytes, in, out, (int64_t)(g->count * g->k), (int64_t)g->count,
                                                    offsets, offsets + 1, 0, 64, backend->compute));
    if (gpu_grow(backend, &m->sort, bytes, "a search's sort")) return -1;
    CK(cub::DeviceSegmentedRadixSort::SortKeysDescending(m->sort.data, bytes, in, out, (int64_t)(g->count * g->k),
                                                    (int64_t)g->count, offsets, offsets + 1, 0, 64, backend->compute));
    g->newest = !g->newest;
    return 0;
}

int fetch_answers(backend *backend, topk_memory *m, const group &g) {
    const topk_request *r = g.request;
    answer_key *keys = (answer_key *)mem_alloc(g.count * g.k, sizeof *keys, "the answers of a search");
    if (!keys) return -1;
    cudaError_t error = cudaMemcpyAsync(keys, m->best[g.newest].data, g.count * g.k * sizeof *keys, cudaMemcpyDeviceToHost, backend->compute);
    if (error == cudaSuccess) error = cudaStreamSynchronize(backend->compute);
    for (uint64_t q = 0; q < g.count && error == cudaSuccess; q++)
        for (uint64_t i = 0; i < r->k; i++) {
            answer_key key = i < g.k ? keys[q * g.k + i] : 0;
            r->ids[(g.first + q) * r->k + i] = key ? row_of(key) : DRAW_NONE;
            r->scores[(g.first + q) * r->k + i] = key ? score_of(key) : -INFINITY;
        }
    free(keys);
    return error == cudaSuccess ? 0 : cuda_failed(error, "a search");
}

void answer_nothing(const topk_request *r) {
    for (uint64_t i = 0; r->than && i < r->query_rows; i++) r->above[i] = r->level[i] = 0;
    for (uint64_t i = 0; !r->than && i < r->query_rows * r->k; i++) {
        r->ids[i] = DRAW_NONE;
        r->scores[i] = -INFINITY;
    }
}

} // namespace

int cuda_topk(struct backend *backend, const struct topk_request *request) {
    topk_memory *m = NULL;
    if (!request->query_rows || (!request->k && !request->than)) return 0;
    if (!request->dim || request->dim > INT32_MAX || request->base_rows > DRAW_NONE)
        return fail("a search over %llu rows of %u columns is more than row numbers of 32 bits allow",
                    (unsigned long long)request->base_rows, request->dim);
    if (!request->base_rows) {
        answer_nothing(request);
        return 0;
    }
    CK(cudaSetDevice(backend->device));
    if (open_memory(backend, &m)) return -1;
    group g = {};
    g.request = request;
    g.k = request->than ? 2 : std::min<uint64_t>(request->k, request->base_rows);
    /* With few queries slices are long; with many they are shorter, to leave memory for the scores. cuBLAS limits them to 2^31 - 1 rows. If tables
     * use up the budget, slices and scores share the memory that is left. */
    uint64_t capacity = backend->gpu_budget - backend->gpu_used;
    each_array(m, [&](gpu_array *array) { capacity += array->bytes; });
    uint64_t kept = std::min<uint64_t>(512u << 20, capacity / 16), slice = std::min<uint64_t>(BASE_BYTES, capacity / 4);
    uint64_t scores = std::min<uint64_t>(SCORES, capacity / 8 / sizeof(float));
    uint64_t most = std::max<uint64_t>(std::min<uint64_t>(GROUP, kept / (g.k * sizeof(answer_key))), 1);
    g.chunk = std::min<uint64_t>(std::min<uint64_t>(request->query_rows, QUERIES_AT_ONCE), most);
    g.slice = std::max<uint64_t>(std::min<uint64_t>(slice / (request->dim * sizeof(float)), scores / g.chunk), 1);
    g.slice = std::min(g.slice, request->base_rows);
    for (g.first = 0; g.first < request->query_rows; g.first += g.count) {
        g.count = std::min(request->query_rows - g.first, most);
        g.newest = 0;
        if (size_memory(backend, m, g) || send_queries(backend, m, g) || search_slices(backend, m, &g)) return -1;
        if (request->than ? fetch_counts(backend, m, g) : sort_answers(backend, m, &g) || fetch_answers(backend, m, g)) return -1;
    }
    return 0;
}

void cuda_topk_close(struct backend *backend) {
    topk_memory *m = (topk_memory *)backend->topk;
    if (!m) return;
    each_array(m, [=](gpu_array *array) { gpu_drop(backend, array); });
    for (int i = 0; i < 2 && m->has_events; i++) {
        cudaEventDestroy(m->arrived[i]);
        cudaEventDestroy(m->used[i]);
    }
    free(m);
    backend->topk = NULL;
}
