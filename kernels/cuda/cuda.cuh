/* cuda: shared by the CUDA files: the backend, its tables as kernels see them, and a batch in its stage. kernels/README.md says what each file of
 * this folder does; begin with stage.cu, the life of a batch in order.
 *
 * Kernels read and change the rows of a batch on the GPU: in the table itself (place gpu, and hot rows), or in a copy in a slot of the stage (cold
 * rows). The distinct rows of a batch are sorted, so cold rows are at the end of the list; the row at index i is in slot i - cold_first.
 */
#ifndef SPTX_CUDA_CUH
#define SPTX_CUDA_CUH

/* Headers of C++ must come first: the C headers below are included inside extern "C", where templates are not allowed, and portable.h includes
 * headers that contain templates. */
#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/portable.h"

extern "C" {
#include "arrays.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "kernels/backend.h"
#include "kernels/losses.h"
#include "ops.h"
}

/* ==== row sets ====
 *
 * The rows that some work needs: which rows they are, where each is named, and where their records are during the work.
 * The same functions fetch, update and copy back the rows of every row set. There is one for
 *
 *   a side of a batch          its targets, or its contexts                                        stage.cu, rows.cu
 *   a call by id               one list of ids                                                     by_id.cu
 *   an announced list of ids   whose weights are fetched before a call asks for them               by_id.cu
 *
 *   ids            7  2  9  7  -      [count] as given; `-` is DRAW_NONE: it names no row, and is ignored
 *   distinct_ids   2  7  9            [rows] rising, so rows below the table's hot_rows are first
 *   distinct       1  0! 2! 1  -      [count] for each id: its index in distinct_ids; `!` is SINGLE_BIT: it occurs once
 *   order          1  0  3  2  4      [count] places in ids, sorted by row; places of the same row rise
 *   starts         0  1  3  4         [rows + 1] for each distinct row: index of its first place in `order`
 *   cold_first     1                  index of the first distinct row that is on the host
 *   slots             r7 r9           [rows - cold_first] records of the rows on the host, on the GPU, one array a store
 *   staging           r7 r9           the same records in pinned memory, for a store in a file
 *
 * Sorting finds all of this on the GPU (batch_index.cu), and the counts stay there. The host knows upper bounds. It gets ids and
 * counts only if its threads move rows, that is, for stores in a file (row_set_send).
 *
 * How the records are used differs:
 *
 *   - A batch works in the slots, since several batches are in flight at once and a batch copies rows from another batch's slots
 *     (rows.cu: forward). Its records are copied back on a separate stream.
 *   - A call by id changes rows in place: rows on the host over the link, rows of a file in staging.
 *   - A resident list (by_id.cu) has the records of all its rows in its slots, or only their weights, also those of hot rows.
 */

#define SINGLE_BIT 0x80000000u /* flag in `distinct`: the row occurs once, and has no work item in the update */

struct backend;
struct backend_table;
struct store;

/* A growing array on the GPU. */
struct gpu_array {
    void *data;
    uint64_t bytes;
};

struct row_set {
    struct backend_table *table; /* the table that the rows belong to; NULL: no table is set yet, or the table was closed */
    uint64_t count;              /* number of ids; if only the GPU knows it, an upper bound */
    uint64_t capacity;           /* number of ids for which memory is allocated, so that later sets fit, too */
    struct gpu_array ids, distinct, distinct_starts, order;
    struct gpu_array items, longs;    /* struct item: `items` has all work items of the update; `longs` one for each row with several of them */
    struct gpu_array distinct_ids[2]; /* two copies, so that a new set's ids can be written while the older ones are still read */
    int copies, copy;                 /* copies: number of copies of distinct_ids; copy: index of the copy in use */
    struct batch_counts *counts;      /* on the GPU, owned by the set's owner; the set's counts are those at index `side` */
    int side;
    struct gpu_array forward;    /* batches only: where the newest value of each cold row is: stage << 28 | slot; DRAW_NONE: in the table */
    struct gpu_array slots[2];   /* [store] the cold rows' records on the GPU */
    char *staging[2];            /* [store] the cold rows' records in pinned memory, only for a store in a file */
    uint64_t staging_bytes[2];
    uint32_t *host_ids;          /* host_ids: pinned copy of distinct_ids; host_counts: copy of the counts */
    uint64_t host_ids_bytes;
    struct batch_counts *host_counts;
    int lands[2];                /* [store] 1: the store is a file and its records were changed, so staging must be copied back to it */
    cudaEvent_t ticket;          /* of a batch or a resident list: recorded when the rows are in the slots; of a call by id: when the changed
                                  * rows are in the table */
};

/* A row set as kernels receive it. */
struct row_set_view {
    const uint32_t *ids, *distinct, *distinct_ids, *distinct_starts, *order;
    const struct item *items; /* one for each work item */
    const struct item *longs; /* one for each row that has several work items: which partial sums to add */
};

/* Returns the index of the first element of the sorted ids[low .. high - 1] that is at least `id`; `high` if there is none. */
static __device__ __forceinline__ uint32_t lower_bound(const uint32_t *ids, uint32_t low, uint32_t high, uint64_t id) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- cold stores: some of their rows are on the host ---- */

int cuda_is_cold(const struct store *store);
int cuda_in_file(const struct store *store); /* returns 1 if the store's cold rows are in a file: the GPU cannot read it, so the host's threads
                                              * move them */
int cuda_has_cold(const struct backend_table *table);
uint64_t cuda_hot_rows(const struct backend_table *table); /* returns a number: all rows below it are on the GPU, in all stores */
char *cuda_home_of(const struct store *store);             /* returns the host address of row 0 of a cold store, even if row 0 itself is not there */

/* ---- the set ---- */

int row_set_open(struct row_set *set, int side, int copies);
void row_set_close(struct backend *backend, struct row_set *set);
/* Allocates the set's arrays for `count` ids, except slots and staging, which grow when they are used. `what`: see gpu_grow(). */
int row_set_grow(struct backend *backend, struct row_set *set, uint64_t count, const char *what);
struct row_set_view row_set_view(const struct row_set *set);

/* Call this before the records of the first `parts` stores change. It marks those that are files, which need row_set_land() afterwards. */
void row_set_changes(struct row_set *set, int parts);
/* Enqueues copying the distinct ids and the counts to the host. */
int row_set_send(struct backend *backend, struct row_set *set, cudaStream_t stream);
/* Returns the number of cold rows, and sets *ids to their ids. row_set_send() must have been called, and its copies be complete. */
uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids);
/* Reads the set's rows of store `part` from its file into staging, by the host's threads. Staging grows to `capacity` rows. */
int row_set_read_file(struct backend *backend, struct row_set *set, int part, uint64_t capacity);
/* Copies the records in staging, which the GPU has written, back to the file, by the host's threads. */
int row_set_land(struct backend *backend, struct row_set *set);

/* ==== the backend ==== */

int cuda_failed(cudaError_t error, const char *call); /* calls fail() with the text of the call; always returns -1 */
/* Calls a CUDA function; if it fails, calls fail() and returns -1 from the enclosing function. */
#define CK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t ck_error = (call);                                                                                 \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, #call);                                              \
    } while (0)
/* Follows a kernel launch: if the launch was refused, calls fail() and returns -1 from the enclosing function. */
#define CK_LAUNCH(name)                                                                                                \
    do {                                                                                                               \
        cudaError_t ck_error = cudaGetLastError();                                                                     \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, "kernel " name);                                     \
    } while (0)

/* Returns how many thread blocks of `size` threads are needed for `threads` threads. */
static inline unsigned blocks_for(uint64_t threads, unsigned size) {
    return (unsigned)((threads + size - 1) / size);
}

/* ---- tables ---- */

/* Where the GPU finds one part of a table's records: the weights, or the state. Row r is at hot + r x stride if r < hot_rows, otherwise at home +
 * r x stride. `hot` is in HBM. `home` is in HBM for the gpu place (then hot == home, and hot_rows is the number of rows), in host memory that the
 * GPU can address for the pinned place, and NULL for the file place. If the table's first row is not row 0 (table_spec.first_row), both addresses
 * are before the memory that was allocated. If weights and state share a record, both parts have the record's stride, and the state's addresses
 * are those of the weights plus the bytes of the weights. */
struct part_view {
    char *hot, *home;
    uint64_t hot_rows, stride;
};

/* A table as kernels receive it, by value. */
struct table_view {
    struct part_view weights, state; /* state: all zeros if the rule has no slots */
    uint64_t rows;
    uint32_t dim, quads, slots, counted;
    uint32_t slot_at, count_at; /* offsets in bytes from the beginning of a row's state: of its first slot; of its count of updates, if it has one */
};

static __device__ __forceinline__ char *part_at(const struct part_view &part, uint64_t row) {
    return (row < part.hot_rows ? part.hot : part.home) + row * part.stride;
}
/* For code outside of batches: table_slot() returns the address in the table of a row's first slot, table_updates() that of its count of updates.
 * Rows on the host are read over the link. */
static __device__ __forceinline__ char *table_slot(const struct table_view &table, uint64_t row) {
    return part_at(table.state, row) + table.slot_at;
}
static __device__ __forceinline__ uint32_t *table_updates(const struct table_view &table, uint64_t row) {
    return (uint32_t *)(part_at(table.state, row) + table.count_at);
}

/* A store: an array of a table's records (weights, state, or both), and its memory. */
struct store {
    enum place place;
    uint64_t stride, bytes; /* stride: bytes of a record; bytes: bytes of all records on the host */
    char *host;             /* memory on the host. Place pinned: from rows_take(); place file: the mapped working file; place gpu: NULL */
    char *host_device;      /* pinned place: the GPU's address of `host` */
    char *gpu_memory;       /* GPU memory of the rows: all rows with place gpu, otherwise the hot rows; NULL: no hot rows */
    uint64_t gpu_bytes;     /* size of gpu_memory */
    char *gpu;              /* a row r that is on the GPU is at gpu + r x stride; NULL: no row is on the GPU */
    uint64_t gpu_rows;      /* rows below this number are on the GPU, the others on the host; never below the table's first row */
    int fd;                 /* file place: the open file; otherwise -1 */
    int given;              /* 1: `host` is the caller's memory (table_spec.given) */
};

/* Returns the address, for the GPU, of row 0 of a store in host memory, even if rows below gpu_rows are on the GPU instead. */
static inline char *gpu_home_of(const struct store *store) {
    return store->host_device - store->gpu_rows * store->stride;
}

/* has_halves: true if a record's weights are bfloat16. state_halves: true if its state is bfloat16. */
static inline bool has_halves(const struct record_layout *layout) {
    return layout->field[RECORD_WEIGHTS].type == VALUE_BFLOAT16;
}
static inline bool state_halves(const struct record_layout *layout) {
    return layout->slots && record_slot(layout, 0)->type == VALUE_BFLOAT16;
}

struct backend_table {
    struct table_spec spec;  /* copy of the caller's; its name points to `name` below, which the table owns */
    char *name;
    int shared;              /* 1: stores[0] contains whole records; 0: stores[1] contains the state */
    uint64_t state_offset;   /* offset in bytes of the state within a record of its store */
    int parts;               /* number of stores: 1 or 2 */
    struct store stores[2];
    struct table_view view;
    uint32_t *frozen;        /* on the GPU [table_frozen_words]: copy of table_spec.frozen; NULL: no row is frozen */
    const uint32_t *numbers; /* the caller's table_spec.rounding.rows, on the host. spec.rounding.rows is a copy on the GPU, in which table_move() renews
                              * the rows that it writes; NULL if there are no numbers, or if no field is rounded */
    int trained;             /* 1: a call by id has updated rows */
    struct row_cache *cache; /* cache of often used rows, owned by by_id.cu; NULL: the table has none */
    struct snapshot *snapshot; /* owned by snapshot.cu; NULL: no snapshot is being read */
};

/* ---- a batch in its stage ---- */

enum { SIDE_TARGET, SIDE_CONTEXT };

/* Upper bounds of a batch's sizes, known to the host; launch grids and array capacities use them. If all examples have the same shape, or a batch
 * is small, the host knows the bounds before the examples are drawn, and need not wait. Otherwise it waits until the GPU has counted the sizes. */
struct batch_sizes {
    uint32_t blocks, targets, contexts, terms; /* terms: targets x contexts, summed over blocks, including empty slots */
};

static inline uint32_t cuda_count(uint64_t n) {
    return n < INT32_MAX ? (uint32_t)n : INT32_MAX;
}
static inline struct batch_sizes cuda_sizes(const struct example_sizes *sizes) {
    return {cuda_count(sizes->blocks), cuda_count(sizes->targets), cuda_count(sizes->contexts), cuda_count(sizes->terms)};
}

/* Which batches a captured graph can make: those of `count` examples, as long as `layout` is the same, since then no array has moved and the
 * capacity is unchanged. */
struct graph_key {
    uint64_t layout, count;
};
struct making {
    cudaGraphExec_t graph;      /* NULL: no graph is captured */
    struct graph_key key, last; /* last: key of the last batch that was made without the graph */
};

/* Arrays for sorting the ids of a row set. */
struct sorting {
    struct gpu_array keys, ranks; /* uint32 [count] keys: sorted ids; ranks: for each sorted id 1 + its index in distinct_ids */
    struct gpu_array temporary;
    uint32_t count; /* number of ids for which `temporary` was last grown */
    uint64_t rows;  /* and the table's number of rows then; both are kept, since asking CUB for the size takes longer than a launch */
};
/* The numbers 0, 1, 2 .., sorted together with the ids; so they become the row set's order. */
struct iota {
    struct gpu_array numbers;
    uint64_t count;
};

/* The walks of a batch, or of a part of lock-free training. */
struct drawn_walks {
    struct gpu_array ids;    /* uint32 [walks x length] */
    struct gpu_array starts; /* uint64 [walks + 1] the position at which each walk begins */
};

/* Scratch for sorting and scanning on a builder's streams. Each side has its own arrays for sorting, since both sides are sorted at the same time. */
struct scratch {
    struct gpu_array sizes, offsets, words, scanning;
    struct iota iota;
    struct sorting sorting[2]; /* by side */
    struct drawn_walks walks;
};

/* A builder: streams and scratch for making one batch at a time. There are several (arrays.h: batch_builders). A stage has two copies of distinct
 * ids and counts, since an older batch's may still be read while a builder makes the next batch. */
struct batch_builder {
    cudaStream_t stream, beside; /* `beside` sorts a batch's targets while `stream` sorts its contexts */
    cudaEvent_t forked, joined;
    struct scratch scratch;
};

/* The states of a batch in its stage; stage.cu draws which call changes them. */
enum stage_state {
    STAGE_EMPTY,      /* no batch */
    STAGE_BUILT,      /* the batch is made; its rows are not fetched yet */
    STAGE_STEPPING,   /* its step is being enqueued; it stays in this state if that fails */
    STAGE_GOING_HOME, /* the cold rows that it changed are being copied back to the table */
    STAGE_HOME        /* all rows are in the table again; the result and the batch may be read */
};

struct stage {
    enum stage_state state;
    int loss_only;     /* 1: the batch only computes a loss, and changes no row */
    uint64_t sequence; /* number of the call of step(), which orders the batches in flight */
    struct batch_sizes sizes, capacity; /* capacity: sizes for which memory is allocated, so that later batches fit, too */
    uint64_t words;
    struct example_request *request, *request_host; /* request: on the GPU; request_host: its pinned copy, written by the host */
    struct batch_builder *builder;                  /* the builder that made the batch */
    int copy;                /* which copy of distinct ids and counts the batch uses: 0 or 1 */
    struct making making[2]; /* one for each copy, since a captured graph writes to that copy, and uses the scratch of one builder */
    int one_target;          /* 1: every block has one target */
    int one_vector;          /* 1: each block has one target, or its targets are pooled; so a context's gradient is the sum of coefficient x vector
                              * over its blocks */
    int early_singles;       /* 1: contexts that occur once are updated in the first half of a step; 0: in the second half, which computes the
                              * squares that rules with RULE_BY_ROW need */
    struct example_pool pool;
    struct shared_negatives shared; /* its count includes empty slots, which contain DRAW_NONE */
    struct gpu_array target_starts, context_starts, term_starts, positives; /* uint32: starts [blocks + 1], positives [blocks] */
    int weighted;            /* 1: `weights` contains the weights of positives */
    struct gpu_array weights; /* float [contexts]; of negatives undefined */
    struct gpu_array block_example, block_slot; /* uint64 and uint32 [blocks]: example and slot of the draws of a block's negatives */
    struct row_set side[2];
    struct gpu_array block_of[2]; /* [side] uint32 [ids of the side]: the block that contains each id */
    struct gpu_array coefficients; /* float [terms] */
    struct gpu_array losses;       /* double [targets or blocks, whichever are more] */
    struct batch_counts *both_counts, *counts; /* on the GPU. both_counts: both copies; counts: the copy that this batch uses */
    struct step_result *result;    /* pinned, mapped */
    cudaEvent_t prepared, stepped, done; /* done: recorded after all work of the GPU for the batch. side[].ticket: recorded when cold rows are in
                                          * their slots */
    void *view_memory[7]; /* for batch_view(): copies of the batch's arrays on the host, and starts computed from them */
};

/* ---- the backend ---- */

/* Arrays of a source. A corpus has ids, starts and, if pairs are weighted, weights; a graph has nodes, neighbours, weights or labels,
 * and perhaps the nodes where walks begin. Only the first SOURCE_STREAM_ARRAYS may stay on the host. */
enum source_array {
    SOURCE_IDS,
    SOURCE_NEIGHBOURS = SOURCE_IDS,
    SOURCE_STARTS,
    SOURCE_WEIGHTS = SOURCE_STARTS,
    SOURCE_LABELS = SOURCE_STARTS,
    SOURCE_ITEM_WEIGHTS,
    SOURCE_STREAM_ARRAYS,
    SOURCE_KEEP = SOURCE_STREAM_ARRAYS,
    SOURCE_ALIAS,
    SOURCE_KNOWN,
    SOURCE_NODES,
    SOURCE_BEGINS,
    SOURCE_WORD_STARTS,
    SOURCE_WORD_ROWS,
    SOURCE_PATH_STARTS,
    SOURCE_PATH_NODES,
    SOURCE_ARRAYS
};

/* The source, with its arrays in memory that the GPU can read (HBM, or mapped host memory). */
struct cuda_source {
    struct example_source view; /* the source as kernels use it: its pointers are addresses on the GPU */
    struct example_source host; /* the caller's source, copied */
    int ready;
    void *owned[SOURCE_ARRAYS]; /* by enum source_array: memory on the GPU */
    uint64_t owned_bytes[SOURCE_ARRAYS];
    void *pinned[SOURCE_STREAM_ARRAYS]; /* the arrays that stay on the host: the caller's if it is registered, otherwise a pinned copy */
    uint64_t pinned_bytes[SOURCE_STREAM_ARRAYS];
    int registered[SOURCE_STREAM_ARRAYS]; /* 1: the caller's array is registered with the driver; 0: pinned[] is a copy */
};

struct backend {
    const struct backend_ops *ops;
    struct pool *pool;
    int device;
    unsigned sharers; /* number of ranks that use this GPU */
    unsigned depth;
    int processors; /* number of the GPU's multiprocessors */
    uint32_t shared_most; /* most bytes of shared memory that a thread block may request */
    int manages_rows; /* result of cuda_manages_rows(); 1: rows on the host are in managed memory */
    char name[128];
    uint64_t gpu_budget, gpu_used, host_used;
    struct batch_sizes capacity; /* sizes for which the kernels of batches with counted sizes are enqueued; the same in every stage */
    uint64_t layout; /* increased when `capacity` changes, or when an array moves whose address a captured graph contains */
    cudaStream_t in, compute, out;
    struct batch_builder builders[BACKEND_STAGES];
    unsigned builders_in_use; /* number of builders that make batches of this source: the first ones of the array */
    struct cuda_source source;
    struct stage stages[BACKEND_STAGES];
    struct gpu_array gradients, context_gradients, partials; /* arrays of float, used only on the compute stream */
    struct gpu_array row_sums;     /* array of float; used only if ranks sum the squares of rows */
    struct gpu_array scores, lengths, pooled; /* float arrays; used only by step_learn*.cu */
    struct gpu_array shared_rows, shared_scores, shared_lengths, shared_gains; /* float arrays; used only by step_shared.cu */
    void *blas;                    /* cuBLAS, owned by blas.cu; NULL: not loaded */
    enum matmul_type matmul;       /* the arithmetic of a step's matrix products */
    struct exchange *exchange;     /* connection to other ranks (ranks.cuh); NULL: there is only one rank */
    struct gpu_array corrections; /* float4 [CORRECTIONS] constants of the rule, by a row's number of updates */
    struct rule_options corrections_rule; /* the rule whose constants are in `corrections` */
    double corrections_lr;
    int corrections_ready;
    int by_row; /* number of open tables with layout.by_row */
    char *transfer[2];         /* [store] pinned buffer for rows that table_read and table_write copy */
    struct counted_sizes *counted; /* mapped pinned memory for a batch's sizes, if the host must wait for them */
    cudaEvent_t sized, last_forward; /* last_forward: recorded when the newest step has finished reading other stages' slots */
    uint64_t sequence;
    void *hogwild; /* owned by hogwild.cu: allocated by its first call, freed by cuda_hogwild_close() */
    void *topk;    /* owned by search_topk.cu */
    void *by_id;   /* owned by by_id.cu */
};

/* Allocates GPU memory within the budget (rows.cu). `what` ends the message "GPU memory for ..". */
int gpu_take(struct backend *backend, void **data, uint64_t bytes, const char *what);
void gpu_give(struct backend *backend, void *data, uint64_t bytes);
/* Grows an array to at least `bytes`: does nothing if it is large enough; otherwise its contents are lost, and the call waits for the GPU. */
int gpu_grow(struct backend *backend, struct gpu_array *array, uint64_t bytes, const char *what);
void gpu_drop(struct backend *backend, struct gpu_array *array);
/* Sets *fits to 1 if `bytes` are free both in the budget and on the GPU, with some left for the driver; otherwise to 0. */
int gpu_has_room(const struct backend *backend, uint64_t bytes, int *fits);
/* Copies host memory to GPU memory, or zeroes it if from = NULL. When it returns, any stream may read the GPU memory. */
int gpu_fill(void *to, const void *from, uint64_t bytes);
/* Returns 1 if rows on the host should be in managed memory: the host and this GPU can use it at the same time, and SPTX_PIN_ROWS does not forbid
 * it. The GPU must look up the page of each row, and managed memory has pages of 2 MiB, pinned memory smaller ones: random rows of 512 bytes in 16
 * GiB are read at 50 GB/s if managed, at 15 GB/s if pinned. */
int cuda_manages_rows(int device);
/* Allocates and zeroes host memory for a table's rows, which the GPU can read and write. All threads zero it. */
int rows_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void rows_give(struct backend *backend, char *host, uint64_t bytes);
/* Allocates and zeroes pinned host memory for long arrays: in huge pages, mapped into the GPU. All threads zero it. */
int pinned_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void pinned_give(struct backend *backend, char *host, uint64_t bytes);
/* Allocates pinned host memory for small arrays and transfer buffers, from the driver, mapped into the GPU. */
int buffer_take(struct backend *backend, void **host, uint64_t bytes);
void buffer_give(struct backend *backend, void *host, uint64_t bytes);
/* Grows memory of buffer_take(), whose size is *have, to at least `bytes`. Its contents are lost if it grows, so nothing may be using it. */
int buffer_grow(struct backend *backend, void **host, uint64_t *have, uint64_t bytes);

/* backend.cu: opens all builders that are needed to make batches of the source in several stages at the same time. */
int cuda_use_builders(struct backend *backend, const struct example_source *source);

/* batch.cu */
void cuda_source_drop(struct backend *backend);

/* The arrays of a batch's blocks, written by the kernels of batch_examples.cu. */
struct built {
    uint32_t *target_starts, *context_starts, *term_starts, *positives, *block_slot;
    uint64_t *block_example;
    uint32_t *target_ids, *target_block, *context_ids, *context_block;
    float *weights; /* NULL: every positive weighs 1 */
    struct batch_counts *counts;
};
/* batch_examples.cu: enqueues drawing the negatives of all blocks. */
int cuda_negatives_draw(struct stage *stage, const struct built *to);

/* batch_examples.cu. These only enqueue work that reads stage->request, on the builder's stream. */
int cuda_examples_reserve(struct backend *backend, struct batch_builder *builder, uint64_t count);
/* padded = 1: stage->sizes are upper bounds, and elements of arrays that the batch does not use are set to DRAW_NONE. */
int cuda_examples_count(struct stage *stage, int padded);
int cuda_examples_fill(struct stage *stage);
/* Waits until the batch's sizes are counted, and stores them. Returns -1 after fail() if an example has too many positives for a block. */
int cuda_examples_counted(struct backend *backend, struct stage *stage, struct batch_sizes *sizes);
int cuda_check_sizes(uint64_t contexts, uint64_t terms);

/* batch_index.cu: how to sort the ids of a row set. */
struct indexing {
    const struct sorting *sorting; /* scratch, grown for at least `count` ids */
    const uint32_t *ids, *places;  /* [count] the ids to sort, and the place of each in the row set's ids */
    uint32_t count;
    uint64_t rows;  /* number of the table's rows; each id is lower, or DRAW_NONE */
    uint32_t least; /* rows with fewer occurrences get no work item in the update */
    cudaStream_t stream;
};
int cuda_grow_iota(struct backend *backend, struct iota *iota, uint64_t count, const char *what, cudaStream_t stream);
int cuda_grow_sorting(struct backend *backend, struct sorting *sorting, uint32_t count, uint64_t rows, const char *what);
void cuda_drop_sorting(struct backend *backend, struct sorting *sorting);
/* Enqueues sorting the ids: fills the row set's order, and the keys of by->sorting. */
int cuda_sort(struct row_set *set, const struct indexing *by);
/* Enqueues finding the row set's distinct, distinct_ids, distinct_starts, order, items and longs, and its counts distinct, items, partials and
 * longs, which must be zero before. */
int cuda_index(struct row_set *set, const struct indexing *by);
/* Allocates what indexing both sides of a batch needs: one is indexed on the builder's stream, the other on its stream `beside`. */
int cuda_index_reserve(struct backend *backend, struct batch_builder *builder, const struct batch_sizes *capacity, uint64_t rows);
int cuda_index_sides(struct stage *stage, uint64_t rows);

/* batch_examples.cu: walks over a graph. */
int cuda_walks_grow(struct backend *backend, struct drawn_walks *drawn, uint64_t positions);
void cuda_walks_drop(struct backend *backend, struct drawn_walks *drawn);
/* Returns a copy of the backend's source whose sentences are the walks that contain positions first .. first + count - 1. These walks must then be
 * drawn into `drawn`. */
struct example_source cuda_walks_source(const struct backend *backend, const struct drawn_walks *drawn, uint64_t first, uint64_t count);
/* Enqueue drawing the walks of a source that cuda_walks_source() returned: for a batch, and for a part of lock-free training. walked: on the GPU;
 * the number of positions that are in walks, not after their ends, is added to it; NULL: not counted. */
int cuda_walks_draw_batch(const struct stage *stage);
int cuda_walks_draw_part(const struct example_source *source, uint32_t epoch, uint64_t first, uint64_t count, unsigned long long *walked,
                         cudaStream_t stream);

/* stage.cu: beginning and end of making a batch. */
int cuda_stage_begin(struct backend *backend, unsigned number, struct stage **stage); /* waits until the changed rows of the stage's last batch are
                                                                                       * in the table */
int cuda_stage_built(struct stage *stage);
void cuda_stage_use(struct stage *stage, int copy); /* chooses which of the stage's two copies of distinct ids and counts is used */
/* Returns 1 if changed rows of the batch may not be in the table yet, so that the batch's slots must be read instead. */
static inline int cuda_in_flight(const struct stage *stage) {
    return stage->state == STAGE_STEPPING || stage->state == STAGE_GOING_HOME;
}

/* rows.cu: the cold rows of one side of a batch. These calls only enqueue work, except that rows of a file are read at once. When all of that work
 * is done, row_set_land() must be called. */
int cuda_rows_plan(struct backend *backend, struct stage *stage, int side);    /* on the builder's stream */
int cuda_rows_fetch(struct backend *backend, struct stage *stage, int side);   /* on stream `in`; records the side's ticket */
int cuda_rows_forward(struct backend *backend, struct stage *stage, int side); /* on the compute stream, before the step */
int cuda_rows_home(struct backend *backend, struct stage *stage, int side);    /* on stream `out` */

/* step.cu */
int cuda_launch_step(struct backend *backend, struct stage *stage, const struct step_request *request); /* on the compute stream */
int cuda_launch_result(struct backend *backend, struct stage *stage, const struct step_request *request); /* on stream `out` */

/* by_id.cu */
void cuda_by_id_forget(struct backend *backend, const struct backend_table *table); /* the table is closed */
void cuda_by_id_close(struct backend *backend);

/* snapshot.cu. Must be called before any work changes rows of a table that may have a snapshot: cuda_snapshot_keep_batch() copies, on the compute
 * stream, the old records of the batch's rows of one table (side). Where that is impossible, cuda_snapshot_await() waits until the snapshot has
 * been read. */
int cuda_snapshot_keep_batch(struct backend *backend, struct stage *stage, int side);
void cuda_snapshot_await(const struct backend_table *table);

/* by_id.cu: rows that are used often */
int cuda_cache_open(struct backend *backend, struct backend_table *table);  /* only if table_spec.gpu_cache is above 0 */
void cuda_cache_close(struct backend *backend, struct backend_table *table);
int cuda_cache_send_home(struct backend *backend, struct backend_table *table); /* copies changed records of the cache to the host */
int cuda_cache_empty(struct backend *backend, struct backend_table *table);     /* does the same, and then empties the cache */

/* hogwild.cu, search_topk.cu */
void cuda_hogwild_close(struct backend *backend);
void cuda_topk_close(struct backend *backend);

#endif
