/* cuda: what the CUDA files share: the backend, its tables as kernels see them, a batch in its stage. The files of this folder:
 *
 *   a batch's life   stage has the story; backend opens what it needs; ops: the table of all that backend.h asks for
 *   batch_*     batch makes a batch: batch_source, the corpus as the GPU reads it; batch_walks, a corpus that is drawn;
 *               batch_examples, its blocks; batch_index, its ids by row
 *   rows_*      rows_memory, tables and where they lie; rows_set, which rows a batch has and where their records are meanwhile;
 *               rows_move, to a stage's slots and home
 *   step_*      step gives the order of its kernels: first step_dots (_windows, _held) for word2vec's loss, or step_learn (_pool,
 *               _score, _gain) for the others, or step_shared where a batch shares its negatives; then step_sums, which ends in
 *               step_rule; step_widths chooses the kernels for a row's width
 *   hogwild_*   hogwild chooses among hogwild_windows, hogwild_pooled and hogwild_rows, which share hogwild_words and
 *               hogwild_pieces
 *   by_id_*     by_id has the story of rows by id
 *   ranks_*     ranks_exchange, ranks_nccl, ranks_heartbeat: several processes
 *   search_*    search_topk
 *   filter      rows of nodes, spread over a finished run's graph
 *   fold_in     rows of lists that training never saw
 *   for all     blas: products of matrices; values: how a column is stored; warp, older_cards; arrays and estimate: sizes; bench;
 *               absent, where there is no nvcc
 *
 * A row of a batch is worked on where it lies on the GPU: in its table (gpu place, hot rows) or in a slot of the stage
 * (cold rows). Distinct rows of a batch are sorted, so cold ones are the end of the list and slot = place in it - cold_first.
 */
#ifndef SPTX_CUDA_CUH
#define SPTX_CUDA_CUH

/* C++ headers first: the C headers below are read inside extern "C", where templates may not stand (portable.h has such
 * within). */
#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/portable.h"

extern "C" {
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "kernels/backend.h"
#include "kernels/host_rows.h"
#include "kernels/sgns.h"
#include "kernels/stores.h"
#include "arrays.h"
#include "ops.h"
}
#include "rows_set.cuh"

/* Turns a CUDA error into fail() with the call's text. It can be used in functions that return 0 or -1. */
int cuda_failed(cudaError_t error, const char *call); /* always -1 */
#define CK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t ck_error = (call);                                                                                 \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, #call);                                              \
    } while (0)
/* After a launch: its error, if the launch itself was refused. */
#define CK_LAUNCH(name)                                                                                                \
    do {                                                                                                               \
        cudaError_t ck_error = cudaGetLastError();                                                                     \
        if (ck_error != cudaSuccess) return cuda_failed(ck_error, "kernel " name);                                     \
    } while (0)

/* Returns how many thread blocks of `size` threads have this number of threads. */
static inline unsigned blocks_for(uint64_t threads, unsigned size) {
    return (unsigned)((threads + size - 1) / size);
}

/* ---- tables ---- */

/* One part of a table's records (the weights, or the state) as the GPU addresses it. Rows below hot_rows lie in `hot`, in HBM; the
 * others in `home`: HBM for the gpu place, host memory that the GPU reaches, or NULL for the file place. Row r is at r x stride in
 * either, so both may point to before the memory that they are of, and no row is asked for that the table does not have
 * (table_spec.first_row). For the gpu place hot == home and hot_rows == rows. Where weights and state share a record both parts
 * have its stride and the state's pointers begin behind the weights. */
struct part_view {
    char *hot, *home;
    uint64_t hot_rows, stride;
};

/* A table as kernels get it, by value. */
struct table_view {
    struct part_view weights, state; /* state: all zeros where slots == 0 */
    uint64_t rows;
    uint32_t dim, quads, slots, counted;
    uint32_t slot_at, count_at; /* bytes from where a row's state begins to its first slot; where counted, to its count */
};

static __device__ __forceinline__ char *part_at(const struct part_view &part, uint64_t row) {
    return (row < part.hot_rows ? part.hot : part.home) + row * part.stride;
}
/* Returns a row's first slot and its count at their own home, host rows over the link: for work without stages. */
static __device__ __forceinline__ char *table_slot(const struct table_view &table, uint64_t row) {
    return part_at(table.state, row) + table.slot_at;
}
static __device__ __forceinline__ uint32_t *table_updates(const struct table_view &table, uint64_t row) {
    return (uint32_t *)(part_at(table.state, row) + table.count_at);
}

/* Memory of one store. */
struct store {
    enum place place;
    uint64_t stride, bytes; /* stride: bytes of a record; bytes: of the whole host part */
    char *host;             /* pinned: rows_take()'s; file: the working file, mapped; else NULL */
    char *host_device;      /* pinned: the GPU's address of `host` */
    char *gpu_memory;       /* gpu: all rows; pinned and file: the hot ones; or NULL */
    uint64_t gpu_bytes;     /* of it */
    char *gpu;              /* row r on the GPU is at gpu + r x stride; NULL if no row is there */
    uint64_t gpu_rows;      /* rows of the table below this number are on the GPU, the others on the host; at least the table's
                             * first row */
    int fd;                 /* file: open; else -1 */
};

/* These return true where the weights of a record are bfloat16, and where its slots are. */
static inline bool has_halves(const struct record_layout *layout) {
    return layout->field[RECORD_WEIGHTS].type == VALUE_BFLOAT16;
}
static inline bool state_halves(const struct record_layout *layout) {
    return layout->slots && record_slot(layout, 0)->type == VALUE_BFLOAT16;
}

struct backend_table {
    struct table_spec spec;  /* name is a copy */
    char *name;
    int shared;              /* weights and state in one record: stores[0] alone */
    uint64_t state_offset;   /* bytes from the start of a record of the state's store to the state */
    int parts;               /* stores in use: 1 or 2 */
    struct store stores[2];
    struct table_view view;
    uint32_t *frozen;        /* on the GPU: [table_frozen_words] like table_spec's; NULL: none */
};

/* ---- a batch in its stage ---- */

enum { SIDE_TARGET, SIDE_CONTEXT };

/* Upper bounds known to the host; launch grids and array capacities use them. If examples have a fixed shape, or a batch is
 * small, they are known before anything is drawn, so that the host waits for nothing; otherwise they are the counted sizes. */
struct batch_sizes {
    uint32_t blocks, targets, contexts, terms; /* terms: T x C summed, slots left out counted */
};

static inline uint32_t cuda_count(uint64_t n) {
    return n < INT32_MAX ? (uint32_t)n : INT32_MAX;
}
static inline struct batch_sizes cuda_sizes(const struct example_sizes *sizes) {
    return {cuda_count(sizes->blocks), cuda_count(sizes->targets), cuda_count(sizes->contexts), cuda_count(sizes->terms)};
}

/* A captured graph makes batches of one count of examples, as long as no array has moved and capacity is the same. */
struct graph_key {
    uint64_t layout, count;
};
struct making {
    cudaGraphExec_t graph;      /* NULL: none is captured */
    struct graph_key key, last; /* last: the key of the last batch that was made without it */
};

/* The arrays in which the ids of a row set are sorted. */
struct sorting {
    struct gpu_array keys, ranks; /* [count] sorted ids; 1 + the place of each in distinct_ids */
    struct gpu_array temporary;
    uint32_t count; /* the count that it was grown for last, */
    uint64_t rows;  /* and that table's rows: asking the sort for its needs takes longer than a launch */
};
/* The numbers 0, 1, 2 .., which are sorted along with the ids. */
struct iota {
    struct gpu_array numbers;
    uint64_t count;
};

/* Walks that are drawn for a batch, or for a part of lock-free training. */
struct drawn_walks {
    struct gpu_array ids;    /* uint32 [walks x length] */
    struct gpu_array starts; /* uint64 [walks + 1] the first position of each */
};

/* Memory for sorting and scanning. A builder's stream uses it; the arrays of a side are for what runs beside that
 * stream. */
struct scratch {
    struct gpu_array sizes, offsets, words, scanning;
    struct iota iota;
    struct sorting sorting[2]; /* by side */
    struct drawn_walks walks;
};

/* Streams and scratch memory that batches are made with. There are several builders (arrays.h: batch_builders). Distinct ids and
 * counts are double-buffered in a stage: while a builder makes its next batch, the older one may still be read. */
struct batch_builder {
    cudaStream_t stream, beside; /* beside: for the other side of a batch while the batch is made */
    cudaEvent_t forked, joined;
    struct scratch scratch;
};

/* The states of a batch's life; stage.cu has the drawing of who moves it on. */
enum stage_state {
    STAGE_EMPTY,      /* no batch */
    STAGE_BUILT,      /* there is a batch; none of its rows has been asked for */
    STAGE_STEPPING,   /* its step is being enqueued, or that has failed */
    STAGE_GOING_HOME, /* its cold rows are on their way to their places */
    STAGE_HOME        /* they have landed; the result and the batch may be read */
};

struct stage {
    enum stage_state state;
    int loss_only;     /* 1: the batch is only for its loss, and changes nothing */
    uint64_t sequence; /* order of step() */
    struct batch_sizes sizes, capacity; /* capacity: the sizes that arrays are grown to, so that later batches fit */
    uint64_t words;
    struct example_request *request, *request_host; /* on the GPU; pinned, where the host writes it */
    struct batch_builder *builder;                  /* made the batch */
    int copy;                /* which of the two copies of distinct ids and counts is the batch's */
    struct making making[2]; /* by copy: a graph writes to one of them, with one builder's scratch */
    int one_target;          /* 1: every block has one target */
    int one_vector;          /* 1: one target, or pooled ones: a context's gradient is coefficients x vectors of blocks */
    struct example_pool pool;
    struct shared_negatives shared; /* count: slots; a slot that was left out holds DRAW_NONE */
    struct gpu_array target_starts, context_starts, term_starts, positives; /* uint32 [blocks + 1], positives [blocks] */
    int weighted;            /* 1: `weights` has what positives weigh */
    struct gpu_array weights; /* float [contexts]; only of positives */
    struct gpu_array block_example, block_slot; /* uint64, uint32 [blocks]: the negatives' counter */
    struct row_set side[2];
    struct gpu_array block_of[2]; /* uint32 [ids of the side]: the block of each */
    struct gpu_array coefficients; /* float [terms] */
    struct gpu_array losses;       /* double [targets], or blocks where they are more */
    struct batch_counts *both_counts, *counts; /* on the GPU; counts: the batch's own of both_counts */
    struct step_result *result;    /* pinned, mapped */
    cudaEvent_t prepared, stepped, done; /* done: all that the GPU does. Rows are in their slots when side[].ticket is recorded */
    void *view_memory[7]; /* for batch_view(): its arrays on the host, and the starts that they are made from */
};

/* ---- the backend ---- */

/* A corpus has ids, starts and perhaps weights; a graph has neighbours, weights and nodes. The first ones may stay on the host. */
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

/* The source, with its arrays where the GPU reads them (HBM, or host memory mapped into it). */
struct cuda_source {
    struct example_source view; /* pointers are the GPU's; all else as the caller gave it */
    struct example_source host; /* as the caller gave it */
    int ready;
    void *owned[SOURCE_ARRAYS]; /* on the GPU, by enum source_array */
    uint64_t owned_bytes[SOURCE_ARRAYS];
    void *pinned[SOURCE_STREAM_ARRAYS]; /* the first ones, registered or copied to pinned memory where they stay on the host */
    uint64_t pinned_bytes[SOURCE_STREAM_ARRAYS];
    int registered[SOURCE_STREAM_ARRAYS]; /* 1: the caller's memory was registered; 0: a copy */
};

struct backend {
    const struct backend_ops *ops;
    struct pool *pool;
    int device;
    unsigned sharers; /* ranks that use this GPU */
    unsigned depth;
    int processors; /* multiprocessors */
    uint32_t shared_most; /* bytes of shared memory that a thread block may ask for */
    int manages_rows; /* rows on the host are managed memory: cuda_manages_rows() */
    char name[128];
    uint64_t gpu_budget, gpu_used, host_used;
    struct batch_sizes capacity; /* for counted batches, the same in every stage */
    uint64_t layout; /* changes with `capacity`, and when an array moves whose address captured graphs hold */
    cudaStream_t in, compute, out;
    struct batch_builder builders[BACKEND_STAGES];
    unsigned builders_in_use; /* number of first builders that make the source's batches */
    struct cuda_source source;
    struct stage stages[BACKEND_STAGES];
    struct gpu_array gradients, context_gradients, partials; /* floats; only the compute stream uses them */
    struct gpu_array row_sums;     /* floats; only where ranks sum the squares of rows */
    struct gpu_array scores, lengths, pooled; /* floats; only for step_learn.cuh */
    struct gpu_array shared_rows, shared_scores, shared_lengths; /* floats; only for step_shared.cu */
    void *blas;                    /* blas.cu's own; NULL: nothing has been multiplied */
    enum matmul_type matmul;       /* of products in a step */
    struct exchange *exchange;     /* the exchange with other ranks (ranks_exchange.cuh); NULL: this is the only rank */
    struct gpu_array corrections; /* float4 [CORRECTIONS]: a rule's constants by a row's updates */
    struct rule_options corrections_rule; /* the rule that they are for */
    double corrections_lr;
    int corrections_ready;
    char *transfer[2];         /* pinned, by store: the GPU's rows on their way to and from table_read and table_write */
    struct counted_sizes *counted; /* pinned, mapped: a batch's sizes, where the host must wait for them */
    cudaEvent_t sized, last_forward; /* last_forward: the newest step has read other stages' slots */
    uint64_t sequence;
    void *hogwild; /* hogwild.cu's own, made at the first call; freed by cuda_hogwild_close() */
    void *topk;    /* search_topk.cu's own */
    void *by_id;   /* by_id.cu's own */
};

/* rows_memory.cu. Takes GPU memory within the budget. `what` completes "GPU memory for WHAT". */
int gpu_take(struct backend *backend, void **data, uint64_t bytes, const char *what);
void gpu_give(struct backend *backend, void *data, uint64_t bytes);
/* Makes an array hold at least `bytes`. When it grows, its contents are lost, and the call waits for the GPU. */
int gpu_grow(struct backend *backend, struct gpu_array *array, uint64_t bytes, const char *what);
void gpu_drop(struct backend *backend, struct gpu_array *array);
/* Sets *fits to 1 if the budget and the GPU have this number of bytes and some for the driver; else to 0. */
int gpu_has_room(const struct backend *backend, uint64_t bytes, int *fits);
/* Fills the GPU's memory from the host's (NULL: with zeros). Any stream may read it from then on. */
int gpu_fill(void *to, const void *from, uint64_t bytes);
/* Returns 1 where rows on the host are managed memory: the host and this GPU can use it at once, and SPTX_PIN_ROWS does not forbid
 * it. The driver maps it into the GPU by pages of 2 MiB, and memory that is pinned by smaller ones. The GPU looks each page up, so
 * random rows of 512 bytes over 16 GiB cross at 50 GB/s when managed and at 15 when pinned. */
int cuda_manages_rows(int device);
/* Takes host memory for a table's rows, zeroed by all threads, that the GPU reads and writes in place. */
int rows_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void rows_give(struct backend *backend, char *host, uint64_t bytes);
/* Takes pinned host memory in huge pages, zeroed by all threads and mapped into the GPU: for long arrays. */
int pinned_take(struct backend *backend, char **host, char **device, uint64_t bytes, const char *what);
void pinned_give(struct backend *backend, char *host, uint64_t bytes);
/* Takes pinned memory from the driver, mapped into the GPU: for small arrays, and for bytes that only pass through. */
int buffer_take(struct backend *backend, void **host, uint64_t bytes);
void buffer_give(struct backend *backend, void *host, uint64_t bytes);
/* Makes such memory hold at least `bytes`; nothing may use it then, and its contents are lost when it grows. */
int buffer_grow(struct backend *backend, void **host, uint64_t *have, uint64_t bytes);

/* backend.cu: opens as many builders as make batches of the source at once. */
int cuda_use_builders(struct backend *backend, const struct example_source *source);

/* batch_source.cu */
void cuda_source_drop(struct backend *backend);

/* batch_examples.cu. Both only enqueue work on the builder's stream, which reads stage->request. */
int cuda_examples_reserve(struct backend *backend, struct batch_builder *builder, uint64_t count);
/* padded: 1 if stage->sizes are a bound; entries that a batch does not fill must then hold DRAW_NONE. */
int cuda_examples_count(struct stage *stage, int padded);
int cuda_examples_fill(struct stage *stage);
/* Waits for the counted sizes. Returns -1 after fail() where an example is too long. */
int cuda_examples_counted(struct backend *backend, struct stage *stage, struct batch_sizes *sizes);
int cuda_check_sizes(uint64_t contexts, uint64_t terms);

/* batch_index.cu: sorts the ids of a row set. */
struct indexing {
    const struct sorting *sorting; /* grown for `count` */
    const uint32_t *ids, *places;  /* [count] the ids that are sorted, and their places in the set's ids */
    uint32_t count;
    uint64_t rows;  /* all ids are below it */
    uint32_t least; /* rows that are named less often make no piece of work */
    cudaStream_t stream;
};
int cuda_grow_iota(struct backend *backend, struct iota *iota, uint64_t count, const char *what, cudaStream_t stream);
int cuda_grow_sorting(struct backend *backend, struct sorting *sorting, uint32_t count, uint64_t rows,
                      const char *what);
void cuda_drop_sorting(struct backend *backend, struct sorting *sorting);
/* Enqueues that the set's order and the sorting's keys are filled, from such ids. */
int cuda_sort(struct row_set *set, const struct indexing *by);
/* Enqueues that the set's distinct, distinct_ids, distinct_starts, order, items and longs are filled from such ids, and
 * its counts distinct, items, partials and longs, which are zeros before. */
int cuda_index(struct row_set *set, const struct indexing *by);
/* Indexes both sides of a batch: on the builder's stream and, for one of them, beside it. */
int cuda_index_reserve(struct backend *backend, struct batch_builder *builder, const struct batch_sizes *capacity,
                       uint64_t rows);
int cuda_index_sides(struct stage *stage, uint64_t rows);

/* batch_walks.cu: walks over a graph. */
int cuda_walks_grow(struct backend *backend, struct drawn_walks *drawn, uint64_t positions);
void cuda_walks_drop(struct backend *backend, struct drawn_walks *drawn);
/* Returns the source whose sentences are the walks that hold positions [first, first + count), once these are drawn there. */
struct example_source cuda_walks_source(const struct backend *backend, const struct drawn_walks *drawn, uint64_t first,
                                        uint64_t count);
/* Enqueues the drawing of that source's walks. */
int cuda_walks_draw_batch(const struct example_request *request, const struct example_request *on_host, cudaStream_t stream);
int cuda_walks_draw_part(const struct example_source *source, uint32_t epoch, uint64_t count, cudaStream_t stream);

/* stage.cu: the beginning and the end of making a batch. */
int cuda_stage_begin(struct backend *backend, unsigned number, struct stage **stage); /* waits until its last batch is home */
int cuda_stage_built(struct stage *stage);
void cuda_stage_use(struct stage *stage, int copy); /* chooses the copy of its distinct ids and counts */
/* Returns 1 if the batch's rows may not be written back to the table yet: readers then take them from the batch's slots. */
static inline int cuda_in_flight(const struct stage *stage) {
    return stage->state == STAGE_STEPPING || stage->state == STAGE_GOING_HOME;
}

/* rows_move.cu: the cold rows of one side of a batch. These only enqueue work, except that a file's rows are read at once.
 * When all of it is done, row_set_land() comes last. */
int cuda_rows_plan(struct backend *backend, struct stage *stage, int side);    /* on the builder's stream */
int cuda_rows_fetch(struct backend *backend, struct stage *stage, int side);   /* on stream `in`; records the side's ticket */
int cuda_rows_forward(struct backend *backend, struct stage *stage, int side); /* on the compute stream, before the step */
int cuda_rows_home(struct backend *backend, struct stage *stage, int side);    /* out */

/* step.cu */
int cuda_launch_step(struct backend *backend, struct stage *stage, const struct step_request *request); /* compute */
int cuda_launch_result(struct backend *backend, struct stage *stage, const struct step_request *request); /* out */

/* by_id.cu */
void cuda_by_id_forget(struct backend *backend, const struct backend_table *table); /* the table is closed */
void cuda_by_id_close(struct backend *backend);

/* hogwild.cu, search_topk.cu */
void cuda_hogwild_close(struct backend *backend);
void cuda_topk_close(struct backend *backend);

#endif
