/* by_id: what by_id.cu, by_id_rows.cu and snapshot.cu share: the memory of a call, and how a kernel finds the rows of a list. by_id.cu explains a
 * call from beginning to end. */
#ifndef SPTX_CUDA_BY_ID_CUH
#define SPTX_CUDA_BY_ID_CUH

#include "values.cuh"
#include "cuda.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LINK_BLOCKS = 64, /* number of thread blocks that read rows on the host: enough to keep the link busy; more would only slow other kernels */
    RESIDENTS = 4,          /* most lists whose rows are on the GPU at the same time: two announced ones, one fetched, one going home */
    BESIDE_BLOCKS = 4,      /* number of thread blocks that move records beside the caller's own kernels. They are few, but large: while a
                             * multiprocessor runs one, it has no space for a large block of the caller's */
    BESIDE_THREADS = 1024,  /* number of their threads */
    GIVEN = 8,              /* most lists in host memory whose ids are being sent to the GPU at the same time: the lists of a few training steps */
    FEW = 2048,             /* most ids of a call that a single kernel handles: for so few, a second launch would take longer than moving the rows */
    CLAIMED_MOST = 1 << 24, /* most ids of a call that claims its rows, since claims take 24 bytes an id */
    NEAR_BYTES = 1 << 30,   /* if a table has at most this many bytes in host memory, the order of its rows does not matter for speed */
    DENSE_BYTES = 256 << 10 /* in a larger table no order helps if there are more bytes than this for each id of a call: rows are too far apart */
};

/* The ids of one call from the host, in pinned memory that the GPU reads over the link. */
struct given {
    uint32_t *ids;
    uint64_t bytes;
    cudaEvent_t sent; /* recorded when the GPU has read the ids */
};

/* Arrays in which a call claims the rows of its list; by_id_rows.cu explains claims. */
struct claims {
    struct gpu_array ids, owners; /* uint32 [count] */
    struct gpu_array slots;       /* uint64 [size of the hash table, a power of two] */
};

/* A list whose rows are on the GPU: a resident list (by_id.cu). set.slots[0]: [distinct rows x bytes] their records, or only their weights. An
 * entry without a list has set.table = NULL. */
struct resident {
    struct row_set set; /* its ticket is recorded when the rows are in the slots */
    uint32_t bytes;     /* of a slot */
    uint64_t sequence;  /* a later list has a higher number */
    int asked;          /* number of fetches to which the list was compared; after ASKED_MOST (by_id.cu) it is compared to no more */
    uint64_t hint;      /* of the list's ids: hint_of() in by_id.cu */
    int going_home;     /* 1: the rows were updated in the slots, and are being copied home */
    cudaEvent_t home;   /* recorded when they are home */
};

/* Resident lists of whole records, as kernels receive them, the newest first. The first of them that contains a row has the row's newest record;
 * if none does, it is at home. */
struct lookups {
    uint32_t count;
    struct {
        const uint32_t *ids; /* the distinct ids, rising */
        const struct batch_counts *counts;
        const char *slots;
        uint64_t bytes;
    } of[RESIDENTS];
};

struct bad_ids { /* Ids of calls that are not rows. The struct is in host memory, and the GPU writes it */
    unsigned long long count;
    long long id;
};

struct by_id {
    struct row_set set; /* set of the current call. Its ticket is recorded when the newest call, of any kind, is done */
    struct resident residents[RESIDENTS];
    uint64_t sequence;
    struct iota iota;
    struct sorting sorting, ahead_sorting; /* sorting: for calls; ahead_sorting: for announced lists, used on stream `ahead` */
    cudaEvent_t brought; /* recorded on stream `ahead` when the newest announced list's rows are in its slots */
    struct claims claims;
    struct gpu_array values, padded, partials, match;
    struct given given[GIVEN]; /* used in turn: so the host need not wait until the GPU has read the ids of earlier calls */
    unsigned turn;             /* index of the entry of given[] in use */
    uint64_t step;             /* number of the current call, from which the random bits of its rounding are drawn */
    struct bad_ids *bad;
    cudaStream_t ahead, homeward; /* ahead: announced lists are fetched; homeward: updated records are copied home */
};

/* ---- lists of ids in kernels ---- */

/* Ids as a kernel reads them. They are either the caller's array on the GPU, of which the kernel records in `bad` the ids that
 * are not rows; or 32-bit numbers that the host or a kernel has written, with DRAW_NONE for ids that are not rows. */
struct id_view {
    const void *ids;
    struct bad_ids *bad;
    uint64_t first, rows; /* the table has rows first .. rows - 1 */
    uint32_t count;
    enum { TAKEN, NARROW, WIDE } kind;
};

static __device__ __forceinline__ uint32_t read_id(const struct id_view &from, uint32_t i) {
    if (from.kind == id_view::TAKEN) return ((const uint32_t *)from.ids)[i];
    long long id = from.kind == id_view::WIDE ? (long long)((const int64_t *)from.ids)[i] : ((const int32_t *)from.ids)[i];
    if ((unsigned long long)id - from.first < from.rows - from.first) return (uint32_t)id;
    from.bad->id = id;
    from.bad->count = 1;
    __threadfence_system();
    return DRAW_NONE;
}

struct list_view {
    struct row_set_view rows;
    const struct batch_counts *counts; /* counts of side 0, the only side */
    uint32_t count;
};
static inline struct list_view list_view(const struct row_set *set) {
    return {row_set_view(set), set->counts, (uint32_t)set->count};
}

/* Where kernels find one part (weights or state) of a table's records. A row on the GPU is in `hot`: its index is its id or, if
 * the table has a cache, its slot in the cache. Other rows are in `rest`: their index is their id or, if `rest` is staging for a
 * file, their place among the distinct rows. */
struct row_part {
    char *hot, *rest;
    uint64_t hot_rows, stride;
    const uint32_t *places; /* the slot of each row in the table's cache (by_id.cu); NULL: there is no cache, and rows
                             * below hot_rows are on the GPU */
    uint32_t staged; /* 1: `rest` is staging, and its first row is the first distinct row that is cold */
    const uint32_t *known_as; /* number by which each row is known to the random bits of rounding; NULL: its id */
};

static __device__ __forceinline__ uint32_t known_row(const struct row_part &part, uint32_t id) {
    return part.known_as && id != DRAW_NONE ? part.known_as[id] : id;
}

static __device__ __forceinline__ bool is_on_gpu(const struct row_part &part, uint32_t id) {
    return part.places ? part.places[id] != DRAW_NONE : id < part.hot_rows;
}

static __device__ __forceinline__ char *row_at(const struct row_part &part, uint32_t id, uint32_t distinct, uint32_t cold_first) {
    uint32_t slot = part.places ? part.places[id] : DRAW_NONE;
    if (slot != DRAW_NONE) return part.hot + slot * part.stride;
    if (id < part.hot_rows) return part.hot + id * part.stride;
    return part.rest + (uint64_t)(part.staged ? distinct - cold_first : id) * part.stride;
}

/* Returns a row's newest record on the GPU; NULL if no list has the row. */
static __device__ __forceinline__ const char *resident_record(const struct lookups &lookups, uint32_t id) {
    for (uint32_t i = 0; i < lookups.count; i++) {
        uint32_t rows = lookups.of[i].counts->distinct[0], at = lower_bound(lookups.of[i].ids, 0, rows, id);
        if (at < rows && lookups.of[i].ids[at] == id) return lookups.of[i].slots + at * lookups.of[i].bytes;
    }
    return NULL;
}

/* ---- values ---- */

/* The caller's [count x dim] floats. `whole`: 1 if each row begins at a multiple of 16 bytes, and its length is one. */
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

/* ---- rows of codes ----
 *
 * The form of coarse rows (kernels/record.h). Chunk 0 of the weights' part has the row's scale; each later chunk has the codes of four quads. Only
 * rows by id have this form: for an update a row is converted to float32 in shared memory. */

template <bool E4M3> struct code_rows {
    static constexpr int QUADS = 4;
    static constexpr bool FLOAT8 = E4M3;
};
template <class F> static constexpr bool IS_CODES = false;
template <bool E4M3> static constexpr bool IS_CODES<struct code_rows<E4M3>> = true;

template <class F> static __device__ __forceinline__ void open_codes(float4 (&x)[4], float4 stored, float scale) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t word = __float_as_uint((&stored.x)[k]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            uint8_t code = (uint8_t)(word >> 8 * e);
            (&x[k].x)[e] = __fmul_rn(F::FLOAT8 ? float8_value(code) : int8_value(code), scale);
        }
    }
}

/* Writes a row's scale and codes; all lanes of a warp call it. quad(q) returns four of the row's columns. row: the key of the row's weights. */
template <class F, typename Quad>
static __device__ __forceinline__ void close_codes(char *weights, uint32_t chunks, const struct rounding_keys &row, Quad quad) {
    uint32_t lane = threadIdx.x & 31, largest = 0;
    for (uint32_t q = lane; q < 4 * (chunks - 1); q += 32) {
        float4 x = quad(q);
#pragma unroll
        for (int e = 0; e < 4; e++) largest = max(largest, __float_as_uint((&x.x)[e]) & 0x7FFFFFFFu);
    }
    for (int width = 16; width; width /= 2) largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, width));
    float scale = code_scale(largest, F::FLOAT8);
    for (uint32_t c = lane; c < chunks; c += 32) {
        uint4 stored = make_uint4(c ? 0 : __float_as_uint(scale), 0, 0, 0);
        for (int k = 0; c && scale > 0 && k < 4; k++) {
            float4 x = quad(4 * (c - 1) + k);
            struct draw4 words = round_words(row.weights, row.group + 2 * (c - 1) + k / 2);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float of_scale = __fdiv_rn((&x.x)[e], scale), chance = code_chance(round_bits(words, 4 * (k & 1) + e));
                (&stored.x)[k] |= (uint32_t)(F::FLOAT8 ? float8_code(of_scale, chance) : int8_code(of_scale, chance)) << 8 * e;
            }
        }
        ((uint4 *)weights)[c] = stored;
    }
}

/* ---- stored rows and values ---- */

/* Converts a chunk of a row's stored weights to the caller's values. F: form of the table's rows, in all kernels of rows by id: one of values.cuh,
 * or code_rows. scale: that of the row, if it has codes. */
template <class F>
static __device__ __forceinline__ void give_chunk(const struct value_view &to, uint32_t row, uint32_t chunk, float4 stored, float scale = 0) {
    float4 x[F::QUADS];
    if constexpr (IS_CODES<F>) {
        if (chunk-- == 0) return;
        open_codes<F>(x, stored, scale);
    } else {
        open_chunk(x, stored);
    }
#pragma unroll
    for (int k = 0; k < F::QUADS; k++)
        if (4 * (chunk * F::QUADS + k) < to.dim) give_quad(to, row, chunk * F::QUADS + k, x[k]);
}
/* Returns the scale of a row in the GPU's memory; 0 if its form has none. */
template <class F> static __device__ __forceinline__ float scale_of(const char *row) {
    return IS_CODES<F> ? *(const float *)row : 0;
}
static __device__ __forceinline__ float4 take_quad_or_zeros(const struct value_view &from, uint32_t row, uint32_t quad) {
    return 4 * quad < from.dim ? take_quad(from, row, quad) : make_float4(0, 0, 0, 0);
}
/* Reads the columns of one chunk from the caller's values. */
template <class F>
static __device__ __forceinline__ void take_chunk_of(const struct value_view &from, uint32_t row, uint32_t chunk, float4 (&x)[F::QUADS]) {
#pragma unroll
    for (int k = 0; k < F::QUADS; k++) x[k] = take_quad_or_zeros(from, row, chunk * F::QUADS + k);
}

/* Two rows of a list, which a warp moves at the same time, each in two halves, so that the link always has requests. */
struct row_pair {
    char *row[2];      /* addresses of the two rows; NULL: this row is not moved */
    uint32_t id[2];
    uint32_t place[2]; /* places of the two rows in the list, which are also their row numbers in the caller's values */
};

/* All lanes of the warp call it. Lane 0 reads chunk 0 of each row together with the first other chunks, and passes the scale to the other lanes. */
template <class F> static __device__ __forceinline__ void fetch_pair(const struct row_pair &pair, uint32_t chunks, const struct value_view &out) {
    float scale[2] = {0, 0};
    for (uint32_t first = 0; first < chunks; first += 64) {
        uint32_t c = first + (threadIdx.x & 31);
        float4 value[2][2];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks) value[i / 2][i % 2] = read_chunk(pair.row[i / 2], c + i % 2 * 32);
#pragma unroll
        for (int i = 0; IS_CODES<F> && first == 0 && i < 2; i++) scale[i] = __shfl_sync(ALL_LANES, value[i][0].x, 0);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (pair.row[i / 2] && c + i % 2 * 32 < chunks)
                give_chunk<F>(out, pair.place[i / 2], c + i % 2 * 32, value[i / 2][i % 2], scale[i / 2]);
    }
}

template <class F>
static __device__ __forceinline__ void store_pair(const struct row_pair &pair, uint32_t chunks, const struct value_view &from,
                                                  const struct rounding_keys &rounding) {
    if constexpr (IS_CODES<F>) {
        for (int i = 0; i < 2; i++)
            if (pair.row[i])
                close_codes<F>(pair.row[i], chunks, keys_of_row(rounding, pair.id[i]),
                               [&](uint32_t quad) { return take_quad_or_zeros(from, pair.place[i], quad); });
    } else {
        for (uint32_t c = threadIdx.x & 31; c < chunks; c += 64) {
            float4 value[4][F::QUADS];
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (pair.row[i / 2] && c + i % 2 * 32 < chunks) take_chunk_of<F>(from, pair.place[i / 2], c + i % 2 * 32, value[i]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (pair.row[i / 2] && c + i % 2 * 32 < chunks)
                    store_chunk(pair.row[i / 2], c + i % 2 * 32, value[i], keys_of_row(rounding, pair.id[i / 2]));
        }
    }
}

/* ---- launching ---- */

/* Returns the number of thread blocks that move `count` rows, if each warp moves two rows at a time. */
static inline unsigned row_blocks(const struct backend *b, const struct backend_table *table, uint64_t count) {
    unsigned most = cuda_is_cold(&table->stores[0]) ? LINK_BLOCKS : 8 * (unsigned)b->processors;
    unsigned wanted = blocks_for(count, 2 * WARPS);
    return wanted < most ? wanted : most;
}

/* Returns the kernel for the form of the rows of own->set. */
#define BY_FORM(own, kernel)                                                                                           \
    (weights_type(own) == VALUE_BFLOAT16 ? kernel<bfloat16_rows>                                                       \
     : weights_type(own) == VALUE_INT8   ? kernel<code_rows<false>>                                                    \
     : weights_type(own) == VALUE_FLOAT8 ? kernel<code_rows<true>>                                                     \
                                         : kernel<float32_rows>)

static inline enum value_type weights_type(const struct by_id *own) {
    return own->set.table->spec.layout.field[RECORD_WEIGHTS].type;
}
static inline uint32_t row_chunks(const struct by_id *own) {
    return (uint32_t)(record_weights_bytes(&own->set.table->spec.layout) / CHUNK_BYTES);
}
static inline struct rounding_keys rounding_of_store(const struct by_id *own) {
    return keys_of_step(&own->set.table->spec.rounding, DRAW_ROUND_STORE, own->step);
}

/* ---- by_id.cu ---- */

/* Returns how kernels read a request's ids: from the memory that rows_ids() returned, or from the caller's array on the GPU. When the kernel that
 * reads them is enqueued, by_id_have_read() must be called. */
struct id_view by_id_given(const struct by_id *own, const struct rows_request *request);
int by_id_have_read(struct by_id *own, const struct rows_request *request, cudaStream_t stream);
/* Return where kernels find weights, and state. Rows of a file must be in staging before. */
struct row_part by_id_weights(const struct row_set *set);
struct row_part by_id_state(const struct row_set *set);
/* Returns where kernels find a resident list's records, `offset` bytes after each record's beginning: in its slots. */
struct row_part by_id_slots(const struct resident *resident, uint64_t offset);

/* ---- by_id_rows.cu: enqueues work on `stream` ---- */

/* Fetches rows in the order of the ids. owners: on the GPU: for each place of the list the place that fetches its row; NULL: every place fetches
 * its own. skip: on the GPU: [RESIDENTS] numbers: nothing is fetched if one of them is not 0; NULL: always fetch. lookups: lists with newer
 * records of some rows, or NULL. */
int by_id_fetch_plain(struct backend *backend, struct by_id *own, const struct id_view *ids, const uint32_t *owners,
                      const uint32_t *skip, const struct lookups *lookups, struct value_view out, cudaStream_t stream);
/* Stores at most FEW rows. */
int by_id_store_few(struct backend *backend, struct by_id *own, const struct id_view *ids, struct value_view from, cudaStream_t stream);
/* Fetches rows in the order of the table. The set must be sorted or indexed before, and rows of a file must be in staging. */
int by_id_fetch_sorted(struct backend *backend, struct by_id *own, struct value_view out, cudaStream_t stream);
int by_id_store_sorted(struct backend *backend, struct by_id *own, struct value_view from, cudaStream_t stream);

/* Fetch or store a list whose rows need no order. Each row is moved once. */
int by_id_fetch_claimed(struct backend *backend, struct by_id *own, const struct rows_request *request, struct value_view out, cudaStream_t stream);
int by_id_store_claimed(struct backend *backend, struct by_id *own, const struct rows_request *request, struct value_view from, cudaStream_t stream);

/* Sums the gradients of each row of the request's list, which is indexed in `set`, and updates the row by the optimizer's rule: in the table, or
 * in the slots of a resident list if one is given. */
int by_id_update_rows(struct backend *backend, struct by_id *own, const struct row_set *set, const struct resident *resident,
                      const struct rows_request *request, struct value_view gradients, cudaStream_t stream);

/* ---- snapshot.cu ---- */

/* If the table has a snapshot, copies the records of the request's rows for it. own->set must belong to this table. */
int cuda_snapshot_keep(struct backend *backend, struct by_id *own, const struct rows_request *request, cudaStream_t stream);

#endif
