/* by_id: shared by the files of rows by id. by_id.cu tells a call in order. */
#ifndef SPTX_CUDA_BY_ID_CUH
#define SPTX_CUDA_BY_ID_CUH

#include "values.cuh"
#include "cuda.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LINK_BLOCKS = 64, /* enough requests for the link; more only take the GPU from others */
    ANNOUNCED = 2,
    GIVEN = 8,              /* the host's lists that may be on their way at once: calls of some training steps */
    FEW = 2048,             /* ids of a call that a single kernel serves: another launch would take longer than the rows */
    CLAIMED_MOST = 1 << 24, /* ids of a call that claim their rows; for more the claims would take 24 bytes an id */
    NEAR_BYTES = 1 << 30,   /* bytes of a table's host memory below which rows move in any order as fast as in the table's; */
    DENSE_BYTES = 256 << 10 /* bytes of a larger table for each id: where ids are farther apart, no order helps */
};

/* The ids of a call from the host, in pinned memory: the GPU reads them over the link. */
struct given {
    uint32_t *ids;
    uint64_t bytes;
    cudaEvent_t sent; /* recorded when they have been read */
};

/* The arrays with which lists of this number of ids are claimed; by_id_claims.cu explains claims. */
struct claims {
    struct gpu_array ids, owners; /* uint32 [count] */
    struct gpu_array slots;       /* uint64 [a power of two of them] */
};

/* An announced list. set.table is NULL where none is announced here; set.slots[0] has [distinct rows x span]
 * weights. */
struct announced {
    struct row_set set;
    uint64_t sequence;
};

struct bad_ids { /* in host memory that the GPU writes */
    unsigned long long count;
    long long id;
};

struct by_id {
    struct row_set set; /* of the call that runs; its ticket is recorded when the last call, of any kind, is done */
    struct announced announced[ANNOUNCED];
    uint64_t sequence;
    struct iota iota;
    struct sorting sorting, ahead_sorting; /* for calls; for announced lists, on `ahead` */
    struct claims claims;
    struct gpu_array values, padded, partials, match;
    struct given given[GIVEN]; /* used in turn, so that the host does not wait for the call it has just made */
    unsigned turn;             /* the one in use */
    uint64_t step;             /* of the call that runs: by which its rounding is drawn */
    struct bad_ids *bad;
    cudaStream_t ahead;
};

/* ---- lists of ids in kernels ---- */

/* Ids as a kernel reads them: either the caller's own on the GPU, and the kernel notes ids that are not rows in `bad`; or 32-bit
 * numbers that the host or a kernel has made, with DRAW_NONE for ids that are not rows. */
struct id_view {
    const void *ids;
    struct bad_ids *bad;
    uint64_t first, rows; /* the table has rows [first, rows) */
    uint32_t count;
    enum { TAKEN, NARROW, WIDE } kind;
};

static __device__ __forceinline__ uint32_t read_id(const struct id_view &from, uint32_t i) {
    if (from.kind == id_view::TAKEN) return ((const uint32_t *)from.ids)[i];
    long long id =
        from.kind == id_view::WIDE ? (long long)((const int64_t *)from.ids)[i] : ((const int32_t *)from.ids)[i];
    if ((unsigned long long)id - from.first < from.rows - from.first) return (uint32_t)id;
    from.bad->id = id;
    from.bad->count = 1;
    __threadfence_system();
    return DRAW_NONE;
}

struct list_view {
    struct row_set_view rows;
    const struct batch_counts *counts; /* of side 0 */
    uint32_t count;
};
static inline struct list_view list_view(const struct row_set *set) {
    return {row_set_view(set), set->counts, (uint32_t)set->count};
}

/* One part of a table's records: hot rows, and the others by their number or, where a file's are in staging, by their
 * place among the distinct rows. */
struct row_part {
    char *hot, *rest;
    uint64_t hot_rows, stride;
    uint32_t staged; /* 1: `rest` is staging, whose first row is the first cold distinct one */
};

static __device__ __forceinline__ char *row_at(const struct row_part &part, uint32_t id, uint32_t distinct,
                                               uint32_t cold_first) {
    if (id < part.hot_rows) return part.hot + id * part.stride;
    return part.rest + (uint64_t)(part.staged ? distinct - cold_first : id) * part.stride;
}

/* ---- values ---- */

/* The caller's [count x dim] floats. `whole`: 1 where each row is whole 16 bytes, at a multiple of 16. */
struct value_view {
    float *data;
    uint32_t dim;
    bool whole;
};
static inline struct value_view value_view(float *data, uint32_t dim) {
    return {data, dim, dim % 4 == 0 && (uintptr_t)data % 16 == 0};
}

static __device__ __forceinline__ void give_quad(const struct value_view &to, uint32_t row, uint32_t q, float4 value) {
    float *at = to.data + (uint64_t)row * to.dim + 4 * q;
    if (to.whole) {
        write_quad(at, 0, value);
        return;
    }
    for (uint32_t e = 0; e < 4 && 4 * q + e < to.dim; e++) at[e] = (&value.x)[e];
}

static __device__ __forceinline__ float4 take_quad(const struct value_view &from, uint32_t row, uint32_t q) {
    const float *at = from.data + (uint64_t)row * from.dim + 4 * q;
    if (from.whole) return read_quad(at, 0);
    float4 value = make_float4(0, 0, 0, 0);
    for (uint32_t e = 0; e < 4 && 4 * q + e < from.dim; e++) (&value.x)[e] = at[e];
    return value;
}

/* Gives a chunk of a row's weights, as it was read, to the caller. F is the form of the table's rows (values.cuh), here and in all
 * kernels of rows by id. */
template <class F>
static __device__ __forceinline__ void give_chunk(const struct value_view &to, uint32_t row, uint32_t chunk, float4 stored) {
    float4 x[F::QUADS];
    open_chunk(x, stored);
#pragma unroll
    for (int k = 0; k < F::QUADS; k++)
        if (4 * (chunk * F::QUADS + k) < to.dim) give_quad(to, row, chunk * F::QUADS + k, x[k]);
}
/* Takes the columns of a chunk from the caller's values. */
template <class F>
static __device__ __forceinline__ void take_chunk_of(const struct value_view &from, uint32_t row, uint32_t chunk,
                                                     float4 (&x)[F::QUADS]) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) {
        uint32_t quad = chunk * F::QUADS + k;
        x[k] = 4 * quad < from.dim ? take_quad(from, row, quad) : make_float4(0, 0, 0, 0);
    }
}

/* The rows of two neighbours in a list, which a warp moves at once, each in two parts, so that the link always has
 * requests waiting. NULL: that row does not move. */
struct row_pair {
    char *row[2];
    uint32_t id[2];
};

template <class F>
static __device__ __forceinline__ void fetch_pair(const struct row_pair &pair, uint32_t first, uint32_t chunks,
                                                  const struct value_view &out) {
    for (uint32_t c = threadIdx.x & 31; c < chunks; c += 64) {
        float4 value[2][2];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks) value[i / 2][i % 2] = read_chunk(pair.row[i / 2], c + i % 2 * 32);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks)
                give_chunk<F>(out, first + i / 2, c + i % 2 * 32, value[i / 2][i % 2]);
    }
}

template <class F>
static __device__ __forceinline__ void store_pair(const struct row_pair &pair, uint32_t first, uint32_t chunks,
                                                  const struct value_view &from, const struct rounding_keys &rounding) {
    for (uint32_t c = threadIdx.x & 31; c < chunks; c += 64) {
        float4 value[4][F::QUADS];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks) take_chunk_of<F>(from, first + i / 2, c + i % 2 * 32, value[i]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks)
                store_chunk(pair.row[i / 2], c + i % 2 * 32, value[i], keys_of_row(rounding, pair.id[i / 2]));
    }
}

/* ---- launching ---- */

/* Returns the thread blocks of a kernel that moves `count` rows, two a warp. */
static inline unsigned row_blocks(const struct backend *b, const struct backend_table *table, uint64_t count) {
    unsigned most = cuda_is_cold(&table->stores[0]) ? LINK_BLOCKS : 8 * (unsigned)b->processors;
    unsigned wanted = blocks_for(count, 2 * WARPS);
    return wanted < most ? wanted : most;
}

static inline bool row_halves(const struct by_id *own) {
    return has_halves(&own->set.table->spec.layout);
}
static inline uint32_t row_chunks(const struct by_id *own) {
    return record_quads(&own->set.table->spec.layout) / (row_halves(own) ? bfloat16_rows::QUADS : float32_rows::QUADS);
}
static inline struct rounding_keys rounding_of_store(const struct by_id *own) {
    return keys_of_step(&own->set.table->spec.rounding, DRAW_ROUND_STORE, own->step);
}

/* ---- by_id_list.cu: all of it is enqueued, on `stream` where that is an argument ---- */

int by_id_open_set(struct backend *backend, struct row_set *set);
void by_id_close_set(struct backend *backend, struct row_set *set);
/* Returns the place where the host's ids are to be written, as rows_ids() does. The kernels then read a request's ids from
 * there, or from the caller's array on the GPU; call by_id_have_read() once the kernel that reads them is enqueued. */
int by_id_room(struct backend *backend, struct by_id *own, uint64_t count, uint32_t **ids);
struct id_view by_id_given(const struct by_id *own, const struct rows_request *request);
int by_id_have_read(struct by_id *own, const struct rows_request *request, cudaStream_t stream);
/* Fills set->ids, from which by_id_taken() then reads. */
int by_id_take(struct backend *backend, struct by_id *own, struct row_set *set, const struct rows_request *request,
               cudaStream_t stream);
struct id_view by_id_taken(const struct row_set *set);
/* Sorts a list that was taken in the order of the table: only its keys and its order, or all that an index has. */
int by_id_sort(struct backend *backend, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows,
               cudaStream_t stream);
int by_id_index(struct backend *backend, struct by_id *own, struct row_set *set, struct sorting *sorting, uint64_t rows,
                cudaStream_t stream);
/* These say where weights and state lie, once by_id_stage_file() has been called for the set. */
struct row_part by_id_weights(const struct row_set *set);
struct row_part by_id_state(const struct row_set *set);
/* Brings a file's rows of the first `parts` stores into staging. The host's threads move them, so the host waits for
 * the GPU. */
int by_id_stage_file(struct backend *backend, struct row_set *set, int parts, cudaStream_t stream);

/* ---- by_id_announced.cu ---- */

/* Begins to fetch the rows of the request's list, behind everything that was asked before. */
int by_id_announce(struct backend *backend, struct by_id *own, const struct rows_request *request, cudaStream_t stream);
/* Returns the list that this fetch may be asking for, or NULL. */
struct announced *by_id_find_announced(struct by_id *own, const struct rows_request *request);
/* Returns true where a list of the table is announced: a call that changes rows must know its distinct ones. */
int by_id_is_announced(const struct by_id *own, const struct backend_table *table);
/* Fetches from that list's slots where it is that list. *match on the GPU says so: 1 where nothing is left to do. */
int by_id_fetch_announced(struct backend *backend, struct by_id *own, struct announced *announced,
                          struct value_view out, cudaStream_t stream);
/* Copies rows that the call has changed into the slots of announced lists. */
int by_id_renew_announced(struct by_id *own, cudaStream_t stream);

/* ---- by_id_rows.cu: moves own->set between the table and the caller's values ---- */

/* Fetches in the order in which the ids come. `owners`: on the GPU; the place that fetches each row, NULL: every place its own.
 * `skip`: on the GPU; nothing is to be done where it is 1. NULL: all is. */
int by_id_fetch_plain(struct backend *backend, struct by_id *own, const struct id_view *ids, const uint32_t *owners,
                      const uint32_t *skip, struct value_view out, cudaStream_t stream);
/* Fetches at most FEW rows. */
int by_id_store_few(struct backend *backend, struct by_id *own, const struct id_view *ids, struct value_view from,
                    cudaStream_t stream);
/* Fetches in the order of the table; the set is sorted or indexed, a file's rows are in staging. */
int by_id_fetch_sorted(struct by_id *own, struct value_view out, cudaStream_t stream);
int by_id_store_sorted(struct backend *backend, struct by_id *own, struct value_view from, cudaStream_t stream);

/* ---- by_id_claims.cu: a call whose rows need no order, each moved once ---- */

int by_id_fetch_claimed(struct backend *backend, struct by_id *own, const struct rows_request *request,
                        struct value_view out, cudaStream_t stream);
int by_id_store_claimed(struct backend *backend, struct by_id *own, const struct rows_request *request,
                        struct value_view from, cudaStream_t stream);

/* ---- by_id_update.cu ---- */

/* Sums the gradients by row, and applies the rule in place. */
int by_id_update_rows(struct backend *backend, struct by_id *own, const struct rows_request *request,
                      struct value_view gradients, cudaStream_t stream);

#endif
