/* fold_in: kernels/finished.h on the GPU. Lists are solved CHUNK at a time:
 *
 *   begin      directions of the lists: sums of their items' rows
 *   a step     scores of the negatives      directions x negatives, by cuBLAS
 *              learn                        coefficients from scores; the positives' part of the gradients
 *              negatives' part              coefficients x negatives, by cuBLAS
 *              move                         the new directions
 *
 * A thread block works on one list. Products always have the size of a whole chunk, even for few lists, so that cuBLAS always adds in the same order;
 * so a list's direction does not depend on the other lists of the call.
 */
#include "cuda.cuh"

#include "blas.cuh"
#include "step_learn.cuh"

namespace {

enum {
    CHUNK = 1024,
    THREADS = 256 /* number of threads that work on a list */
};

/* A chunk of lists as kernels receive it. In arrays of lists, element 0 is the chunk's first list. */
struct chunk {
    const float *items;
    const uint32_t *item_ids, *places, *ids;
    const uint64_t *starts;
    float *directions, *gains, *products; /* [CHUNK x dim] each. gains: positives' part of the gradients; products: negatives' part */
    float *scores, *coefficients;         /* [CHUNK x count] each, of the negatives */
    float *positive_scores, *positive_coefficients; /* of the positives, indexed as `places` */
    float *wholes; /* [CHUNK] sum of the absolute values of each list's coefficients */
    struct loss_options loss;
    uint32_t count, dim;
    int exclude;
    float per_negative, length, item_length;
};

/* A list's scores and coefficients, as the losses in step_learn.cuh read them. */
struct list_line {
    float *positive_score, *positive_coefficient, *score, *coefficient;
    const uint32_t *excluded; /* bit map of the negatives; 1: an item of the list, and so not one of its negatives */
    uint32_t count, positives, negatives, tid;
    float scale, inverse;

    __device__ float &score_at(uint32_t i) const {
        return i < positives ? positive_score[i] : score[i - positives];
    }
    __device__ float &coefficient_at(uint32_t i) const {
        return i < positives ? positive_coefficient[i] : coefficient[i - positives];
    }
    __device__ bool is_there(uint32_t i) const {
        return i < positives || !row_has_bit(excluded, i - positives);
    }
    __device__ bool adds_loss(uint32_t) const {
        return true;
    }
    __device__ const float *positive_weights() const {
        return NULL;
    }
};

__device__ const float *item_row(const chunk &c, uint64_t at) {
    return c.items + (uint64_t)c.places[at] * c.dim;
}

/* Scales a direction to length 1; zeros stay zeros. squares: this thread's summand of the squared length. */
__device__ void make_unit(float *direction, uint32_t dim, double squares) {
    float inverse = loss_inverse_length((float)across<THREADS>(squares, plus()));
    for (uint32_t i = threadIdx.x; i < dim; i += THREADS) direction[i] *= inverse;
}

__global__ void __launch_bounds__(THREADS) begin_kernel(const __grid_constant__ chunk c) {
    uint64_t start = c.starts[blockIdx.x], end = c.starts[blockIdx.x + 1];
    float *direction = c.directions + (uint64_t)blockIdx.x * c.dim;
    double squares = 0;
    for (uint32_t i = threadIdx.x; i < c.dim; i += THREADS) {
        float sum = 0;
        for (uint64_t at = start; at < end; at++) sum += item_row(c, at)[i];
        direction[i] = sum;
        squares += (double)sum * (double)sum;
    }
    make_unit(direction, c.dim, squares);
}

/* Sets the bits of negatives that are items of the list, and so are excluded. Returns how many negatives are left. */
__device__ uint32_t exclude_items(const chunk &c, uint64_t start, uint64_t end, uint32_t *excluded) {
    uint32_t words = (c.count + 31) / 32, left_out = 0;
    for (uint32_t i = threadIdx.x; i < words; i += THREADS) excluded[i] = 0;
    __syncthreads();
    for (uint64_t at = start + threadIdx.x; c.exclude && at < end; at += THREADS) {
        uint32_t id = c.item_ids[c.places[at]];
        for (uint32_t i = fold_first_place(c.ids, c.count, id); i < c.count && c.ids[i] == id; i++) atomicOr(&excluded[i / 32], 1u << i % 32);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < words; i += THREADS) left_out += (uint32_t)__popc(excluded[i]);
    return c.count - across<THREADS>(left_out, plus());
}

/* Computes the scores of the list's positives, each by a warp; and multiplies the scores of its negatives by their scale. */
__device__ void find_scores(const chunk &c, const list_line &s, uint64_t start, const float *direction) {
    for (uint32_t i = threadIdx.x / 32; i < s.positives; i += THREADS / 32) {
        const float *row = item_row(c, start + i);
        float sum = 0;
        for (uint32_t j = lane_number(); j < c.dim; j += 32) sum = fmaf(direction[j], row[j], sum);
        sum = across<32>(sum, plus());
        if (lane_number() == 0) s.positive_score[i] = c.length * sum;
    }
    for (uint32_t i = threadIdx.x; c.length != 1 && i < c.count; i += THREADS) s.score[i] *= c.length;
    __syncthreads();
}

/* Multiplies the coefficients of negatives by their weight. Returns the sum of the absolute values of all coefficients. */
__device__ float weigh(const chunk &c, const list_line &s) {
    float sum = 0;
    for (uint32_t i = threadIdx.x; i < s.positives; i += THREADS) sum += fabsf(s.positive_coefficient[i]);
    for (uint32_t i = threadIdx.x; i < c.count; i += THREADS) {
        s.coefficient[i] *= c.per_negative;
        sum += fabsf(s.coefficient[i]);
    }
    return across<THREADS>(sum, plus());
}

__global__ void __launch_bounds__(THREADS) learn_kernel(const __grid_constant__ chunk c) {
    extern __shared__ uint32_t excluded[];
    uint64_t start = c.starts[blockIdx.x], end = c.starts[blockIdx.x + 1], first = (uint64_t)blockIdx.x * c.count;
    const float *direction = c.directions + (uint64_t)blockIdx.x * c.dim;
    uint32_t positives = (uint32_t)(end - start), negatives = exclude_items(c, start, end, excluded);
    list_line s = {c.positive_scores + start, c.positive_coefficients + start, c.scores + first, c.coefficients + first, excluded,
                   positives + c.count, positives, negatives, threadIdx.x, 1, loss_inverse_temperature(&c.loss)};
    find_scores(c, s, start, direction);
    learn_line<THREADS>(c.loss, s);
    __syncthreads();
    float whole = weigh(c, s);
    if (threadIdx.x == 0) c.wholes[blockIdx.x] = whole;
    for (uint32_t i = threadIdx.x; i < c.dim; i += THREADS) {
        float sum = 0;
        for (uint64_t at = start; at < end; at++) sum = fmaf(c.positive_coefficients[at], item_row(c, at)[i], sum);
        c.gains[(uint64_t)blockIdx.x * c.dim + i] = sum;
    }
}

/* Moves each list's direction by one step, unless the direction is zero or all coefficients are 0. */
__global__ void __launch_bounds__(THREADS) move_kernel(const __grid_constant__ chunk c) {
    uint64_t first = (uint64_t)blockIdx.x * c.dim;
    float *direction = c.directions + first, whole = c.wholes[blockIdx.x] * c.item_length;
    double before = 0, after = 0;
    for (uint32_t i = threadIdx.x; i < c.dim; i += THREADS) before += (double)direction[i] * (double)direction[i];
    before = across<THREADS>(before, plus());
    if (!(whole > 0) || !(before > 0)) return;
    for (uint32_t i = threadIdx.x; i < c.dim; i += THREADS) {
        float moved = fmaf(-2 / whole, c.gains[first + i] + c.products[first + i], direction[i]);
        direction[i] = moved;
        after += (double)moved * (double)moved;
    }
    make_unit(direction, c.dim, after);
}

} // namespace

/* ---- the call ---- */

enum { NEGATIVES, IDS, DIRECTIONS, GAINS, PRODUCTS, SCORES, COEFFICIENTS, WHOLES, FIXED };
enum { ITEMS = FIXED, ITEM_IDS, STARTS, PLACES, POSITIVE_SCORES, POSITIVE_COEFFICIENTS, ARRAYS };

struct backend_fold {
    struct backend *backend;
    struct fold_problem problem; /* only cuda_fold_open() reads its pointers */
    struct gpu_array arrays[ARRAYS];
};

namespace {

const char what[] = "rows of new lists";

float *floats(const backend_fold *fold, int array) {
    return (float *)fold->arrays[array].data;
}

void fixed_bytes(const fold_problem *p, uint64_t bytes[FIXED]) {
    const uint64_t row = p->dim * sizeof(float), line = p->count * sizeof(float);
    bytes[NEGATIVES] = p->count * row;
    bytes[IDS] = p->count * sizeof(uint32_t);
    bytes[DIRECTIONS] = bytes[GAINS] = bytes[PRODUCTS] = CHUNK * row;
    bytes[SCORES] = bytes[COEFFICIENTS] = CHUNK * line;
    bytes[WHOLES] = CHUNK * sizeof(float);
}

int send(backend_fold *fold, int array, const void *from, uint64_t bytes) {
    gpu_array *to = &fold->arrays[array];
    if (gpu_grow(fold->backend, to, bytes, what)) return -1;
    if (bytes) CK(cudaMemcpyAsync(to->data, from, bytes, cudaMemcpyHostToDevice, fold->backend->compute));
    return 0;
}

int send_lists(backend_fold *fold, const fold_lists *lists) {
    uint64_t places = lists->starts[lists->count], row = fold->problem.dim * sizeof(float);
    gpu_array *scores = &fold->arrays[POSITIVE_SCORES], *coefficients = scores + 1;
    return send(fold, ITEMS, lists->items, lists->item_count * row) ||
                   send(fold, ITEM_IDS, lists->item_ids, lists->item_count * sizeof *lists->item_ids) ||
                   send(fold, STARTS, lists->starts, (lists->count + 1) * sizeof *lists->starts) ||
                   send(fold, PLACES, lists->places, places * sizeof *lists->places) ||
                   gpu_grow(fold->backend, scores, places * sizeof(float), what) ||
                   gpu_grow(fold->backend, coefficients, places * sizeof(float), what)
               ? -1
               : 0;
}

chunk chunk_from(const backend_fold *fold, uint64_t first) {
    const fold_problem *p = &fold->problem;
    chunk c = {};
    c.items = floats(fold, ITEMS);
    c.item_ids = (const uint32_t *)fold->arrays[ITEM_IDS].data;
    c.places = (const uint32_t *)fold->arrays[PLACES].data;
    c.ids = (const uint32_t *)fold->arrays[IDS].data;
    c.starts = (const uint64_t *)fold->arrays[STARTS].data + first;
    c.directions = floats(fold, DIRECTIONS), c.gains = floats(fold, GAINS), c.products = floats(fold, PRODUCTS);
    c.scores = floats(fold, SCORES), c.coefficients = floats(fold, COEFFICIENTS);
    c.positive_scores = floats(fold, POSITIVE_SCORES), c.positive_coefficients = floats(fold, POSITIVE_COEFFICIENTS);
    c.wholes = floats(fold, WHOLES);
    c.loss = p->loss, c.count = p->count, c.dim = p->dim, c.exclude = p->exclude;
    c.per_negative = p->per_negative, c.length = p->length, c.item_length = p->item_length;
    return c;
}

/* Does one step for all lists of the chunk. cuBLAS stores matrices by columns, so it is given the rows' matrices as transposed ones. */
int take_step(const backend_fold *fold, const chunk &c, unsigned lists) {
    cudaStream_t stream = fold->backend->compute;
    const float *negatives = floats(fold, NEGATIVES);
    const int dim = (int)c.dim, count = (int)c.count;
    const blas_product scores = {{negatives, dim, 1}, {c.directions, dim, 0}, c.scores, count, count, CHUNK, dim};
    const blas_product gains = {{negatives, dim, 0}, {c.coefficients, count, 0}, c.products, dim, dim, CHUNK, count};
    if (cuda_multiply(fold->backend, &scores)) return -1;
    learn_kernel<<<lists, THREADS, (c.count + 31) / 32 * sizeof(uint32_t), stream>>>(c);
    CK_LAUNCH("learn_kernel");
    if (cuda_multiply(fold->backend, &gains)) return -1;
    move_kernel<<<lists, THREADS, 0, stream>>>(c);
    CK_LAUNCH("move_kernel");
    return 0;
}

int solve_chunk(const backend_fold *fold, const fold_lists *lists, uint64_t first) {
    uint64_t left = lists->count - first, row = fold->problem.dim;
    unsigned count = (unsigned)(left < CHUNK ? left : CHUNK);
    cudaStream_t stream = fold->backend->compute;
    chunk c = chunk_from(fold, first);
    begin_kernel<<<count, THREADS, 0, stream>>>(c);
    CK_LAUNCH("begin_kernel");
    for (uint32_t i = 0; i < fold->problem.steps; i++)
        if (take_step(fold, c, count)) return -1;
    CK(cudaMemcpyAsync(lists->directions + first * row, c.directions, count * row * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CK(cudaStreamSynchronize(stream));
    return 0;
}

/* Allocates and zeroes the memory that all calls share, and copies the negatives into it. */
int fill(backend_fold *fold, const fold_problem *p, const uint64_t bytes[FIXED]) {
    for (int i = 0; i < FIXED; i++)
        if (gpu_grow(fold->backend, &fold->arrays[i], bytes[i], what) || gpu_fill(fold->arrays[i].data, NULL, bytes[i])) return -1;
    return gpu_fill(fold->arrays[NEGATIVES].data, p->negatives, bytes[NEGATIVES]) ||
                   gpu_fill(fold->arrays[IDS].data, p->ids, bytes[IDS]) || cuda_blas_open(fold->backend)
               ? -1
               : 0;
}

} // namespace

int cuda_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **out) {
    uint64_t bytes[FIXED], all = FOLD_ITEMS * (uint64_t)problem->dim * sizeof(float);
    int fits;
    *out = NULL;
    fixed_bytes(problem, bytes);
    for (uint64_t of : bytes) all += of;
    CK(cudaSetDevice(backend->device));
    if (gpu_has_room(backend, all, &fits)) return -1;
    if (!fits) return 1;
    backend_fold *fold = (backend_fold *)mem_zalloc(1, sizeof *fold, what);
    if (!fold) return -1;
    fold->backend = backend;
    fold->problem = *problem;
    if (fill(fold, problem, bytes)) {
        cuda_fold_close(fold);
        return -1;
    }
    *out = fold;
    return 0;
}

int cuda_fold_solve(struct backend_fold *fold, const struct fold_lists *lists) {
    CK(cudaSetDevice(fold->backend->device));
    if (lists->count && send_lists(fold, lists)) return -1;
    for (uint64_t first = 0; first < lists->count; first += CHUNK)
        if (solve_chunk(fold, lists, first)) return -1;
    return 0;
}

void cuda_fold_close(struct backend_fold *fold) {
    for (gpu_array &array : fold->arrays) gpu_drop(fold->backend, &array);
    free(fold);
}
