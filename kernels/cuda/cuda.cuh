/* cuda: shared by the CUDA files: the backend, its tables as kernels see them, and a batch in its stage. The files of this folder:
 *
 *   backend     opens and closes a backend; ops has the table of its functions, those that backend.h asks for
 *   stage       the life of a batch, step by step; begin here
 *   batch_*     make a batch. batch calls the others: batch_source (the corpus, as the GPU reads it), batch_walks (walks over a
 *               graph), batch_words (kept words around a position), batch_examples (blocks), batch_negatives, batch_index (sorts
 *               the ids by row)
 *   rows_*      rows_memory (tables, and where they are stored), rows_set (the rows of a batch, and where their records are
 *               while it is trained), rows_move (copies rows to a stage's slots and back)
 *   step_*      step a batch; step calls the others in order. First step_dots (_windows, _held) for word2vec's loss, or
 *               step_learn (_pool, _score, _gain) for other losses, or step_shared if a batch shares its negatives. Then
 *               step_sums, which uses step_rule. step_widths chooses the kernels for a row's width
 *   hogwild_*   train lock-free. hogwild chooses hogwild_windows, hogwild_pooled, hogwild_subwords or hogwild_rows; these share
 *               hogwild_words, hogwild_pieces and hogwild_positions
 *   by_id_*     rows by id for a library's caller; by_id explains a call from beginning to end
 *   ranks_*     several processes: ranks_exchange, ranks_nccl, ranks_heartbeat
 *   search_*    nearest rows: search_topk
 *   filter      spreads rows of nodes over a finished run's graph
 *   fold_in     rows of lists that training never saw
 *   for all     blas (products of matrices), values (how a column is stored), warp, older_cards, arrays and estimate (bytes of
 *               memory), bench (measurements), absent (replaces all of this in a program that was built without nvcc)
 *
 * Kernels read and change a batch's row on the GPU: in its table (gpu place, hot rows), or in a slot of the stage (cold rows). The
 * distinct rows of a batch are sorted, so cold rows are at the end of the list; the slot of the row at place i is i - cold_first.
 */
#ifndef SPTX_CUDA_CUH
#define SPTX_CUDA_CUH

/* The headers of C++ must be included first: the C headers below are included inside extern "C", where templates are not
 * allowed, and portable.h includes headers that contain templates. */
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
 *   - A call by id changes rows in place: rows on the host over the link, rows of a file in staging. The changed rows are in the
 *     table when the caller's stream continues, so calls need not wait for each other in any other way.
 *   - An announced list has only weights in its slots, also those of hot rows: a fetch then copies from one array.
 */

#define SINGLE_BIT 0x80000000u /* flag in `distinct`: the row occurs once, and is no piece of the update's work */

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
    uint64_t capacity;           /* number of ids for which arrays are grown, so that later sets fit, too */
    struct gpu_array ids, distinct, distinct_starts, order;
    struct gpu_array items, longs;    /* struct item: items: one for each piece of the update's work; longs: one for each row of several pieces */
    struct gpu_array distinct_ids[2]; /* by copy: while a new set's ids are written to one copy, the other copy may still be read */
    int copies, copy;                 /* copies: number of copies of distinct_ids; copy: index of the copy in use */
    struct batch_counts *counts;      /* on the GPU, owned by the set's owner: counts of distinct rows and so on, at index `side` */
    int side;
    struct gpu_array forward;    /* only for a batch: for each cold row, where its newest value is: stage << 28 | slot, or DRAW_NONE: in the table */
    struct gpu_array slots[2];   /* by store: the cold rows' records, on the GPU */
    char *staging[2];            /* by store: the cold rows' records, in pinned memory; only for a store in a file */
    uint64_t staging_bytes[2];
    uint32_t *host_ids;          /* pinned: a copy of distinct_ids; host_counts: a copy of the counts */
    uint64_t host_ids_bytes;
    struct batch_counts *host_counts;
    int lands[2];                /* lands[s]: 1: store s is a file, and records of it were changed: they must be copied back through staging */
    cudaEvent_t ticket;          /* for a batch or an announced list: recorded when the rows are in the slots; for a call by id:
                                  * recorded when the call is done and changed rows are in the table */
};

/* A row set as kernels receive it. */
struct row_set_view {
    const uint32_t *ids, *distinct, *distinct_ids, *distinct_starts, *order;
    const struct item *items; /* one for each piece of work */
    const struct item *longs; /* one for each row that has several pieces: which of its partial sums to add */
};

/* Returns the first place in ids[low .. high - 1], which are sorted, whose id is at least `id`; `high` if all ids are lower. */
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
int cuda_in_file(const struct store *store); /* returns 1 for a cold store in a file: the GPU cannot read it, so the host's threads move its rows */
int cuda_has_cold(const struct backend_table *table);
uint64_t cuda_hot_rows(const struct backend_table *table); /* returns a number of rows: rows below it are on the GPU in all stores */
char *cuda_home_of(const struct store *store);             /* returns, for a cold store, the address on the host that row 0 has or would have */

/* ---- the set ---- */

int row_set_open(struct row_set *set, int side, int copies);
void row_set_close(struct backend *backend, struct row_set *set);
/* Allocates the set's arrays for this number of ids, except slots and staging: the functions that use them grow them. `what`: see gpu_grow(). */
int row_set_grow(struct backend *backend, struct row_set *set, uint64_t count, const char *what);
struct row_set_view row_set_view(const struct row_set *set);

/* Must be called before records of the first `parts` stores change. It marks these stores if they are files, since
 * row_set_land() must then be called. */
void row_set_changes(struct row_set *set, int parts);
/* Enqueues copying the distinct ids and the counts to the host. */
int row_set_send(struct backend *backend, struct row_set *set, cudaStream_t stream);
/* Returns the number of cold rows, and sets *ids to their ids. The copying of row_set_send() must be complete. */
uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids);
/* Reads the set's rows of store `part` from its file into staging, by the host's threads. Staging is grown to `capacity` rows. */
int row_set_read_file(struct backend *backend, struct row_set *set, int part, uint64_t capacity);
/* Copies the records in staging, which the GPU has written, to their places in the file, by the host's threads. */
int row_set_land(struct backend *backend, struct row_set *set);

/* ==== the backend ==== */

int cuda_failed(cudaError_t error, const char *call); /* calls fail() with the text of the call; always returns -1 */
/* For functions that return 0 or -1: if the CUDA call fails, calls fail() and returns -1. */
#define CK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t ck_error = (call);                                                                                 \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, #call);                                              \
    } while (0)
/* For the line after a launch: if the launch was refused, calls fail() and returns -1. */
#define CK_LAUNCH(name)                                                                                                \
    do {                                                                                                               \
        cudaError_t ck_error = cudaGetLastError();                                                                     \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, "kernel " name);                                     \
    } while (0)

/* Returns how many thread blocks of `size` threads contain at least `threads` threads. */
static inline unsigned blocks_for(uint64_t threads, unsigned size) {
    return (unsigned)((threads + size - 1) / size);
}

/* ---- tables ---- */

/* One part of a table's records (the weights, or the state) as the GPU addresses it. Row r is at hot + r x stride if r < hot_rows,
 * otherwise at home + r x stride. `hot` is in HBM. `home` is in HBM for the gpu place (then hot == home, and hot_rows is the number of
 * rows), in host memory that the GPU can address for the pinned place, and NULL for the file place. If the table's first row is not row 0
 * (table_spec.first_row), both addresses are before the memory that was allocated. If weights and state share a record, both parts have the
 * record's stride, and the state's addresses are those of the weights plus the bytes of the weights. */
struct part_view {
    char *hot, *home;
    uint64_t hot_rows, stride;
};

/* A table as kernels receive it, by value. */
struct table_view {
    struct part_view weights, state; /* state: all zeros if the rule has no slots */
    uint64_t rows;
    uint32_t dim, quads, slots, counted;
    uint32_t slot_at, count_at; /* offsets in bytes from the beginning of a row's state: of its first slot, and of its count of
                                 * updates if rows have one */
};

static __device__ __forceinline__ char *part_at(const struct part_view &part, uint64_t row) {
    return (row < part.hot_rows ? part.hot : part.home) + row * part.stride;
}
/* For work without stages. table_slot() returns the address of a row's first slot in the table, table_updates() that of its
 * count of updates. Rows on the host are read over the link. */
static __device__ __forceinline__ char *table_slot(const struct table_view &table, uint64_t row) {
    return part_at(table.state, row) + table.slot_at;
}
static __device__ __forceinline__ uint32_t *table_updates(const struct table_view &table, uint64_t row) {
    return (uint32_t *)(part_at(table.state, row) + table.count_at);
}

/* A store of a table: an array of records that contain weights, state, or both; and its memory. */
struct store {
    enum place place;
    uint64_t stride, bytes; /* stride: bytes of a record; bytes: of all records on the host */
    char *host;             /* pinned place: memory of rows_take(); file place: the working file, mapped; gpu place: NULL */
    char *host_device;      /* pinned place: the GPU's address of `host` */
    char *gpu_memory;       /* memory of the rows on the GPU: all rows for the gpu place, otherwise the hot rows; NULL if there are no hot rows */
    uint64_t gpu_bytes;     /* size of gpu_memory */
    char *gpu;              /* row r, if it is on the GPU, is at gpu + r x stride; NULL: no row is on the GPU */
    uint64_t gpu_rows;      /* rows below this number are on the GPU, the others on the host; at least the table's first row */
    int fd;                 /* file place: the open file; otherwise -1 */
};

/* Returns the GPU's address of row 0 of a store in host memory. If the rows below gpu_rows are on the GPU instead, it is the
 * address that row 0 would have. */
static inline char *gpu_home_of(const struct store *store) {
    return store->host_device - store->gpu_rows * store->stride;
}

/* has_halves: returns true if a record's weights are bfloat16. state_halves: returns true if its slots are bfloat16. */
static inline bool has_halves(const struct record_layout *layout) {
    return layout->field[RECORD_WEIGHTS].type == VALUE_BFLOAT16;
}
static inline bool state_halves(const struct record_layout *layout) {
    return layout->slots && record_slot(layout, 0)->type == VALUE_BFLOAT16;
}

struct backend_table {
    struct table_spec spec;  /* a copy of the caller's; spec.name points to `name`, which the table owns */
    char *name;
    int shared;              /* 1: stores[0] has all of a record; 0: the state is in stores[1] */
    uint64_t state_offset;   /* offset in bytes of the state in a record of the store that contains the state */
    int parts;               /* number of stores: 1 or 2 */
    struct store stores[2];
    struct table_view view;
    uint32_t *frozen;        /* on the GPU: [table_frozen_words] a copy of table_spec.frozen; NULL: no row is frozen */
    struct row_cache *cache; /* owned by by_id.cu; NULL: the table has no cache of often used rows */
    struct snapshot *snapshot; /* owned by snapshot.cu; NULL: the table has none */
};

/* ---- a batch in its stage ---- */

enum { SIDE_TARGET, SIDE_CONTEXT };

/* Upper bounds of a batch's sizes, known to the host; launch grids and array capacities use them. If all examples have the same
 * shape, or a batch is small, the host knows the bounds before anything is drawn, and waits for nothing. Otherwise it waits
 * until the GPU has counted the sizes. */
struct batch_sizes {
    uint32_t blocks, targets, contexts, terms; /* terms: the sum over blocks of targets x contexts, including slots that are left out */
};

static inline uint32_t cuda_count(uint64_t n) {
    return n < INT32_MAX ? (uint32_t)n : INT32_MAX;
}
static inline struct batch_sizes cuda_sizes(const struct example_sizes *sizes) {
    return {cuda_count(sizes->blocks), cuda_count(sizes->targets), cuda_count(sizes->contexts), cuda_count(sizes->terms)};
}

/* The batches that a captured graph can make: batches of `count` examples, as long as no array has moved and the capacity is
 * unchanged (then `layout` is the same). */
struct graph_key {
    uint64_t layout, count;
};
struct making {
    cudaGraphExec_t graph;      /* NULL: no graph is captured */
    struct graph_key key, last; /* last: the key of the last batch that was made without the graph */
};

/* Arrays for sorting the ids of a row set. */
struct sorting {
    struct gpu_array keys, ranks; /* uint32 [count] keys: sorted ids; ranks: for each sorted id, 1 + its place in distinct_ids */
    struct gpu_array temporary;
    uint32_t count; /* `temporary` was last grown for this number of ids */
    uint64_t rows;  /* and for a table of this many rows; both are kept since asking CUB for the size takes longer than a launch */
};
/* The numbers 0, 1, 2 .. When they are sorted together with the ids, they become the set's order. */
struct iota {
    struct gpu_array numbers;
    uint64_t count;
};

/* The walks of a batch, or of a part of lock-free training. */
struct drawn_walks {
    struct gpu_array ids;    /* uint32 [walks x length] */
    struct gpu_array starts; /* uint64 [walks + 1] the position at which each walk begins */
};

/* Scratch for sorting and scanning on a builder's stream. Each side has its arrays for sorting, since both sides are sorted at
 * the same time, on two streams. */
struct scratch {
    struct gpu_array sizes, offsets, words, scanning;
    struct iota iota;
    struct sorting sorting[2]; /* by side */
    struct drawn_walks walks;
};

/* A builder: streams and scratch for making batches, one batch at a time. There are several builders (arrays.h: batch_builders). Distinct
 * ids and counts are double-buffered in a stage: while a builder makes the stage's next batch, the older one may still be read. */
struct batch_builder {
    cudaStream_t stream, beside; /* `beside` sorts a batch's targets while `stream` sorts its contexts */
    cudaEvent_t forked, joined;
    struct scratch scratch;
};

/* The states of a stage's batch; stage.cu draws which call changes them. */
enum stage_state {
    STAGE_EMPTY,      /* no batch */
    STAGE_BUILT,      /* the batch is made; none of its rows has been fetched */
    STAGE_STEPPING,   /* its step is being enqueued; a batch remains in this state if enqueueing fails */
    STAGE_GOING_HOME, /* its cold rows are being copied back to the table */
    STAGE_HOME        /* all rows are copied back; the result and the batch may be read */
};

struct stage {
    enum stage_state state;
    int loss_only;     /* 1: the batch only computes a loss, and changes nothing */
    uint64_t sequence; /* number of the call of step(), by which batches in flight are ordered */
    struct batch_sizes sizes, capacity; /* capacity: the sizes for which arrays are grown, so that later batches fit, too */
    uint64_t words;
    struct example_request *request, *request_host; /* request: on the GPU; request_host: its pinned copy, which the host writes */
    struct batch_builder *builder;                  /* the builder that made the batch */
    int copy;                /* index of the copy of distinct ids and counts that the batch uses: 0 or 1 */
    struct making making[2]; /* by copy, since a captured graph writes to one of the copies, and uses the scratch of one builder */
    int one_target;          /* 1: every block has one target */
    int one_vector;          /* 1: one target, or pooled ones, in every block: a context's gradient is the sum of coefficient x its block's vector */
    int early_singles;       /* 1: contexts that occur once are updated in the first half of a step; 0: in the second, which
                              * computes the squares that a rule with RULE_BY_ROW needs */
    struct example_pool pool;
    struct shared_negatives shared; /* its count includes slots that were left out; they contain DRAW_NONE */
    struct gpu_array target_starts, context_starts, term_starts, positives; /* uint32: starts [blocks + 1], positives [blocks] */
    int weighted;            /* 1: `weights` contains the weights of positives */
    struct gpu_array weights; /* float [contexts]; of negatives undefined */
    struct gpu_array block_example, block_slot; /* uint64 and uint32 [blocks]: the example and the slot from which a block's negatives are drawn */
    struct row_set side[2];
    struct gpu_array block_of[2]; /* by side: uint32 [ids of the side]: the block that contains each id */
    struct gpu_array coefficients; /* float [terms] */
    struct gpu_array losses;       /* double [targets or blocks, whichever are more] */
    struct batch_counts *both_counts, *counts; /* on the GPU; both_counts: both copies; counts: the copy that the batch uses */
    struct step_result *result;    /* pinned, mapped */
    cudaEvent_t prepared, stepped, done; /* done: recorded after all work of the GPU for the batch. Cold rows have arrived in
                                          * their slots when side[].ticket is recorded */
    void *view_memory[7]; /* for batch_view(): host copies of the batch's arrays, and the starts computed from them */
};

/* ---- the backend ---- */

/* Arrays of a source. A corpus has ids, starts and, if pairs are weighted, weights; a graph has neighbours, weights and nodes.
 * The first SOURCE_STREAM_ARRAYS of these may stay on the host. */
enum source_array {
    SOURCE_IDS,
    SOURCE_NEIGHBOURS = SOURCE_IDS,
    SOURCE_STARTS,
    SOURCE_WEIGHTS = SOURCE_STARTS,
    SOURCE_ITEM_WEIGHTS,
    SOURCE_STREAM_ARRAYS,
    SOURCE_KEEP = SOURCE_STREAM_ARRAYS,
    SOURCE_ALIAS,
    SOURCE_KNOWN,
    SOURCE_NODES,
    SOURCE_WORD_STARTS,
    SOURCE_WORD_ROWS,
    SOURCE_PATH_STARTS,
    SOURCE_PATH_NODES,
    SOURCE_ARRAYS
};

/* The source, with its arrays in memory that the GPU can read (HBM, or mapped host memory). */
struct cuda_source {
    struct example_source view; /* the source for kernels: its pointers are addresses on the GPU */
    struct example_source host; /* the caller's source, copied */
    int ready;
    void *owned[SOURCE_ARRAYS]; /* by enum source_array: memory on the GPU */
    uint64_t owned_bytes[SOURCE_ARRAYS];
    void *pinned[SOURCE_STREAM_ARRAYS]; /* the addresses of arrays that stay on the host: the caller's array if it is registered,
                                         * otherwise a copy in pinned memory */
    uint64_t pinned_bytes[SOURCE_STREAM_ARRAYS];
    int registered[SOURCE_STREAM_ARRAYS]; /* 1: the caller's array is registered; 0: pinned[] is a copy */
};

struct backend {
    const struct backend_ops *ops;
    struct pool *pool;
    int device;
    unsigned sharers; /* number of ranks that use this GPU */
    unsigned depth;
    int processors; /* number of the GPU's multiprocessors */
    uint32_t shared_most; /* most bytes of shared memory that a thread block may request */
    int manages_rows; /* the result of cuda_manages_rows(): 1: rows on the host are in managed memory */
    char name[128];
    uint64_t gpu_budget, gpu_used, host_used;
    struct batch_sizes capacity; /* for batches whose sizes must be counted; the same in every stage */
    uint64_t layout; /* changes when `capacity` does, and when an array moves whose address a captured graph contains */
    cudaStream_t in, compute, out;
    struct batch_builder builders[BACKEND_STAGES];
    unsigned builders_in_use; /* number of builders that make batches of this source; these are the first ones */
    struct cuda_source source;
    struct stage stages[BACKEND_STAGES];
    struct gpu_array gradients, context_gradients, partials; /* float arrays, used only on the compute stream */
    struct gpu_array row_sums;     /* float array; used only if ranks sum the squares of rows */
    struct gpu_array scores, lengths, pooled; /* float arrays; used only by step_learn*.cu */
    struct gpu_array shared_rows, shared_scores, shared_lengths, shared_gains; /* float arrays; used only by step_shared.cu */
    void *blas;                    /* owned by blas.cu; NULL: cuBLAS is not loaded */
    enum matmul_type matmul;       /* the arithmetic of a step's matrix products */
    struct exchange *exchange;     /* connects to other ranks (ranks.cuh); NULL: there is only this rank */
    struct gpu_array corrections; /* float4 [CORRECTIONS]: a rule's constants, indexed by a row's number of updates */
    struct rule_options corrections_rule; /* the rule whose constants are in `corrections` */
    double corrections_lr;
    int corrections_ready;
    int by_row; /* number of open tables with layout.by_row */
    char *transfer[2];         /* pinned, by store: a buffer for rows that table_read and table_write copy */
    struct counted_sizes *counted; /* pinned, mapped: a batch's sizes, if the host must wait for them */
    cudaEvent_t sized, last_forward; /* last_forward: the newest step has finished reading other stages' slots */
    uint64_t sequence;
    void *hogwild; /* owned by hogwild.cu: allocated by the first call; freed by cuda_hogwild_close() */
    void *topk;    /* owned by search_topk.cu */
    void *by_id;   /* owned by by_id.cu */
};

/* rows.cu. Allocates GPU memory within the budget. `what` completes the message "GPU memory for ..". */
int gpu_take(struct backend *backend, void **data, uint64_t bytes, const char *what);
void gpu_give(struct backend *backend, void *data, uint64_t bytes);
/* Grows an array to at least `bytes`. If the array is smaller, its contents are lost, and the call waits for the GPU. */
int gpu_grow(struct backend *backend, struct gpu_array *array, uint64_t bytes, const char *what);
void gpu_drop(struct backend *backend, struct gpu_array *array);
/* Sets *fits to 1 if this number of bytes is free in the budget and on the GPU, with some bytes to spare for the driver; otherwise to 0. */
int gpu_has_room(const struct backend *backend, uint64_t bytes, int *fits);
/* Copies host memory to GPU memory; from = NULL: fills with zeros. When it returns, any stream may read the GPU memory. */
int gpu_fill(void *to, const void *from, uint64_t bytes);
/* Returns 1 if rows on the host are to be managed memory: if the host and this GPU can use it at the same time, and SPTX_PIN_ROWS does not
 * forbid it. The driver maps managed memory into the GPU by pages of 2 MiB, pinned memory by smaller pages, and the GPU must look each page
 * up: random rows of 512 bytes in 16 GiB are read at 50 GB/s if managed, at 15 GB/s if pinned. */
int cuda_manages_rows(int device);
/* Allocates host memory for a table's rows; the GPU reads and writes rows in it. All threads zero it. */
int rows_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void rows_give(struct backend *backend, char *host, uint64_t bytes);
/* Allocates pinned host memory for long arrays, in huge pages, mapped into the GPU. All threads zero it. */
int pinned_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void pinned_give(struct backend *backend, char *host, uint64_t bytes);
/* Allocates pinned host memory for small arrays and transfer buffers, by the driver, mapped into the GPU. */
int buffer_take(struct backend *backend, void **host, uint64_t bytes);
void buffer_give(struct backend *backend, void *host, uint64_t bytes);
/* Grows memory of buffer_take() to at least `bytes`; *have: its size. If it is smaller, its contents are lost. Nothing may be using it. */
int buffer_grow(struct backend *backend, void **host, uint64_t *have, uint64_t bytes);

/* backend.cu: opens all builders that are needed to make batches of the source, in several stages at the same time. */
int cuda_use_builders(struct backend *backend, const struct example_source *source);

/* batch.cu */
void cuda_source_drop(struct backend *backend);

/* The arrays of a batch's blocks, which the kernels of batch_examples.cu and batch_examples.cu write. */
struct built {
    uint32_t *target_starts, *context_starts, *term_starts, *positives, *block_slot;
    uint64_t *block_example;
    uint32_t *target_ids, *target_block, *context_ids, *context_block;
    float *weights; /* NULL: every positive weighs 1 */
    struct batch_counts *counts;
};
/* batch_examples.cu: enqueues drawing the negatives of all blocks. */
int cuda_negatives_draw(struct stage *stage, const struct built *to);

/* batch_examples.cu. Both only enqueue work that reads stage->request, on the builder's stream. */
int cuda_examples_reserve(struct backend *backend, struct batch_builder *builder, uint64_t count);
/* padded: 1: stage->sizes are upper bounds; entries of arrays that the batch does not use are set to DRAW_NONE. */
int cuda_examples_count(struct stage *stage, int padded);
int cuda_examples_fill(struct stage *stage);
/* Waits until the batch's sizes are counted. Returns -1 after fail() if an example has too many positives for a block. */
int cuda_examples_counted(struct backend *backend, struct stage *stage, struct batch_sizes *sizes);
int cuda_check_sizes(uint64_t contexts, uint64_t terms);

/* batch_index.cu: how to sort the ids of a row set. */
struct indexing {
    const struct sorting *sorting; /* its arrays must be grown for `count` ids */
    const uint32_t *ids, *places;  /* [count] the ids to sort, and their places in the row set's ids */
    uint32_t count;
    uint64_t rows;  /* number of the table's rows; ids are lower, or DRAW_NONE */
    uint32_t least; /* rows with fewer occurrences get no piece of the update's work */
    cudaStream_t stream;
};
int cuda_grow_iota(struct backend *backend, struct iota *iota, uint64_t count, const char *what, cudaStream_t stream);
int cuda_grow_sorting(struct backend *backend, struct sorting *sorting, uint32_t count, uint64_t rows, const char *what);
void cuda_drop_sorting(struct backend *backend, struct sorting *sorting);
/* Enqueues sorting: fills the row set's order, and the keys of by->sorting. */
int cuda_sort(struct row_set *set, const struct indexing *by);
/* Enqueues indexing: fills the row set's distinct, distinct_ids, distinct_starts, order, items and longs, and its counts
 * distinct, items, partials and longs. The counts must be zero before. */
int cuda_index(struct row_set *set, const struct indexing *by);
/* Indexes both sides of a batch: one on the builder's stream, the other on its stream `beside`. */
int cuda_index_reserve(struct backend *backend, struct batch_builder *builder, const struct batch_sizes *capacity, uint64_t rows);
int cuda_index_sides(struct stage *stage, uint64_t rows);

/* batch_examples.cu: walks over a graph. */
int cuda_walks_grow(struct backend *backend, struct drawn_walks *drawn, uint64_t positions);
void cuda_walks_drop(struct backend *backend, struct drawn_walks *drawn);
/* Returns a copy of the backend's source whose sentences are the walks that contain positions [first, first + count). The walks
 * must then be drawn into `drawn`. */
struct example_source cuda_walks_source(const struct backend *backend, const struct drawn_walks *drawn, uint64_t first, uint64_t count);
/* Enqueue drawing the walks of a source of cuda_walks_source(): for a batch, and for a part of lock-free training. */
int cuda_walks_draw_batch(const struct example_request *request, const struct example_request *on_host, cudaStream_t stream);
int cuda_walks_draw_part(const struct example_source *source, uint32_t epoch, uint64_t count, cudaStream_t stream);

/* stage.cu: begins and ends the making of a batch. */
int cuda_stage_begin(struct backend *backend, unsigned number, struct stage **stage); /* waits until the rows of the stage's last
                                                                                       * batch are copied back */
int cuda_stage_built(struct stage *stage);
void cuda_stage_use(struct stage *stage, int copy); /* sets which copy of its distinct ids and counts the stage uses */
/* Returns 1 if rows of the batch may not have been copied back to the table yet: then readers use the batch's slots. */
static inline int cuda_in_flight(const struct stage *stage) {
    return stage->state == STAGE_STEPPING || stage->state == STAGE_GOING_HOME;
}

/* rows.cu: the cold rows of one side of a batch. These calls only enqueue work, except that rows of a file are read at
 * once. When all of the work is done, row_set_land() must be called. */
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

/* snapshot.cu. Must be called before work changes rows of a table that may have a snapshot. cuda_snapshot_keep_batch() copies, on the
 * compute stream, the records of the batch's rows of one table (side). Work that cannot copy rows calls cuda_snapshot_await(),
 * which waits until the snapshot was read. */
int cuda_snapshot_keep_batch(struct backend *backend, struct stage *stage, int side);
void cuda_snapshot_await(const struct backend_table *table);

/* by_id.cu: rows that are used often */
int cuda_cache_open(struct backend *backend, struct backend_table *table);  /* only if table_spec.gpu_cache is above 0 */
void cuda_cache_close(struct backend *backend, struct backend_table *table);
int cuda_cache_send_home(struct backend *backend, struct backend_table *table); /* copies changed records from the cache to the host */
int cuda_cache_empty(struct backend *backend, struct backend_table *table);     /* copies them, too, and then empties the cache */

/* hogwild.cu, search_topk.cu */
void cuda_hogwild_close(struct backend *backend);
void cuda_topk_close(struct backend *backend);

#endif
