/* backend: the interface between deciding which rows change (src/) and changing them (kernels/).
 *
 *   example  a block: T target rows against C context rows, the first P of them positive; all T x C pairs are trained
 *   batch    the blocks of consecutive examples; each distinct row in it gets exactly one optimizer update
 *
 * Calls work on batches. A batch passes make_batch -> step in a stage (one of `depth`), and result() waits for it. A call may
 * return before its work is done. A backend that has nothing to do for a call has an empty function, so callers never ask which
 * backend they hold. Batches of the same tables are stepped one after the other: a later one sees the rows as those before it
 * leave them. Every function returns 0, or -1 after fail().
 *
 * Pointers given to a backend are the caller's and outlive it unless said otherwise. C headers: .cu files include this inside
 * extern "C".
 */
#ifndef SPTX_BACKEND_H
#define SPTX_BACKEND_H

#include "draws.h"
#include "examples.h"
#include "filter.h"
#include "fold_in.h"
#include "losses.h"
#include "optimizers.h"
#include "record.h"
#include "rounding.h"

#include <stddef.h>
#include <stdint.h>

struct ranks;   /* ranks.h */
struct backend; /* each backend's own; begins with its `const struct backend_ops *` */
struct backend_table;
struct backend_fold;
struct bench_request; /* bench.h */
struct bench_times;
struct bench_limits;

enum { BACKEND_STAGES = 8 };

/* ---- the machine ---- */

/* How GPUs of several ranks exchange parts of sums: through one another's memory, by NCCL, or through the host. */
enum exchange_way { EXCHANGE_AUTO, EXCHANGE_GPU, EXCHANGE_NCCL, EXCHANGE_HOST };

/* The type that the factors of a step's matrix products have on a GPU (step_shared.cu): its tensor cores multiply TF32, to which
 * float32 is rounded. Searches and processors multiply float32 whatever is said here. */
enum matmul_type { MATMUL_FLOAT32, MATMUL_TF32 };

struct backend_options {
    unsigned threads;      /* 0: one a core */
    unsigned index;        /* the number of the GPU */
    unsigned depth;        /* stages, 1..BACKEND_STAGES */
    uint64_t gpu_budget;   /* bytes of the GPU that may be taken; UINT64_MAX: all free ones less a reserve */
    enum matmul_type matmul;
    struct ranks *ranks;   /* they share out the tables' columns; step() sums dot products over them; NULL: this process has all */
    enum exchange_way exchange; /* for several ranks with GPUs; auto: the first of these ways that works between them */
};

struct backend_info {
    char name[128];      /* "CPU, 2 threads, AVX2"; "NVIDIA H200" */
    unsigned threads;
    unsigned processors;          /* multiprocessors of the GPU */
    uint64_t gpu_total, gpu_free; /* bytes; 0 without a GPU */
    uint64_t gpu_used, host_used; /* bytes that this backend holds; host: of the processor's memory, without files. With a
                                   * GPU this counts what the GPU reads there, the caller's arrays included */
    int managed;         /* 1: rows on the host are managed memory for this GPU; 0: they are pinned, or there is no GPU */
    int runs;            /* 1: this program holds kernels for the GPU */
    char link[64];       /* "PCIe 5.0 x16" or "" */
    char driver[64];     /* the GPU's: "570.86.15"; or "" */
};

/* Returns the budget that the program chooses by itself: a GPU's free bytes less a reserve. */
FN uint64_t backend_gpu_budget(uint64_t gpu_free) {
    const uint64_t reserve = (uint64_t)512 << 20;
    return gpu_free > reserve ? gpu_free - reserve : 0;
}

/* ---- tables ----
 *
 * A row is a record (record.h). Where weights and state have the same place they share a record; otherwise they are two stores
 * with the same row numbers. Records are padded as stores.h says.
 *
 *   one store   [weights span][slot 0 span]..[slot n-1 span][updates] padding
 *   two stores  [weights span] padding | [slot 0 span]..[updates] padding
 */
enum place { PLACE_PINNED, PLACE_GPU, PLACE_FILE };

struct table_spec {
    const char *name; /* "target" or "context", for sentences */
    uint64_t rows;      /* ids are below this number */
    uint64_t first_row; /* and not below this one: the table has rows [first_row, rows); 0: all */
    struct record_layout layout;
    struct rounding rounding; /* where layout.halves */
    enum place weights, state;
    const char *file_path; /* PLACE_FILE: the working file, which has no name, goes into this file's directory */
    uint64_t hot_rows;     /* rows first_row..hot_rows-1 of a pinned or file store are on the GPU instead; the CPU ignores this */
    const uint32_t *frozen; /* [table_frozen_words] a bit a row that no step changes, in weights or state; NULL: none. The
                             * caller's, and outlives the table. On a GPU of exact steps alone */
};

/* How many rows are there. */
FN uint64_t table_row_count(const struct table_spec *spec) {
    return spec->rows - spec->first_row;
}

FN uint64_t table_frozen_words(uint64_t rows) {
    return (rows + 31) / 32;
}
FN int table_is_frozen(const struct table_spec *spec, uint32_t row) {
    return row_has_bit(spec->frozen, row);
}

/* ---- a batch ---- */

enum { BATCH_STOPPED = 1 }; /* result of make_batch(): it was asked to stop, and gave up the batch */

struct batch_request {
    uint32_t epoch;
    uint64_t first, count; /* examples [first, first + count) of the epoch's order; a batch never crosses its end */
    int held_out;          /* 1: only held-out examples; 0: only the others */
};

/* The negatives that all examples of a batch share (example_source.per_batch). */
struct shared_negatives {
    uint32_t count; /* so many contexts has the first block, which has no target and no positive; 0: none are shared. All other
                     * blocks have one target and one context, their positive, and there is one at least */
    int masked;     /* 1: an example's sum leaves out negatives that are its own positive */
};

/* A batch as plain arrays, in example order: as make_batch() built it, or as a caller gives it to set_batch(). */
struct batch_view {
    uint64_t blocks;
    const uint64_t *target_starts;  /* [blocks + 1] into target_ids */
    const uint64_t *context_starts; /* [blocks + 1] into context_ids */
    const uint32_t *positives;      /* [blocks] P: so many first contexts of the block are positive */
    const uint32_t *target_ids, *context_ids;
    const float *weights; /* [contexts] what positives weigh (losses.h); nothing is read beside a negative. NULL: all weigh 1 */
    struct example_pool pool;
    struct shared_negatives shared;
};
/* Returns 0 where the view's blocks have the form that shared negatives ask for, or none are shared; -1 after fail(). */
int shared_negatives_check(const struct batch_view *view);

/* How a step treats a batch. */
struct step_request {
    struct backend_table *target, *context; /* two different tables */
    const struct rule_options *rule;
    struct loss_options loss;
    double lr;       /* the scheduled rate */
    uint64_t global_step; /* steps of the run before this one */
    int mean;        /* 1: divide gradients by the batch's blocks (examples in window mode with per_pair: by its blocks too) */
    int loss_only;   /* 1: compute the loss and change nothing */
    int apart;       /* 1: sum nothing over ranks, to measure a step without the exchange */
};

struct step_result {
    double loss;       /* the sum over the pairs */
    uint64_t examples; /* blocks */
    uint64_t pairs;    /* targets (a pool counts as one) with one positive each: the unit of speed */
    uint64_t terms;    /* scores: T x C of a block, C of a pooled one */
    uint64_t words;    /* corpus positions passed, including dropped ones */
    uint64_t link_bytes; /* bytes moved between host and GPU, both ways */
};

/* Lock-free training, word2vec's way, over examples [first, first + count) of the epoch's order (hogwild.h). */
struct hogwild_request {
    struct backend_table *target, *context;
    const struct rule_options *rule;
    uint32_t epoch;
    uint64_t first, count;
    double lr_first, lr_last; /* the rate falls linearly from one to the other */
    uint64_t global_step;     /* examples of the run before `first` */
    unsigned workers;         /* workers at once, at most; 1: one example after the other; 0: as many as pay */
};
struct hogwild_result {
    uint64_t done; /* number of examples trained, from the request's first on: `count`, or fewer if a signal or the caller asked to
                    * stop meanwhile (interrupt.h; on the CPU only) */
    uint64_t words, examples, pairs; /* of all blocks */
    double loss;                     /* of the sampled examples: the sum over their terms */
    uint64_t sampled_examples, sampled_pairs, sampled_terms;
    uint64_t link_bytes; /* bytes of rows that the GPU read from host memory and added to there */
};

/* ---- rows by id: other people's models ----
 *
 * Ids come in any order and may repeat. Host memory may be used again when a call returns. Arrays in the GPU's memory are read
 * and written in the order of `stream`; a call all of whose arrays are there returns at once.
 */
struct rows_request {
    struct backend_table *table;
    const void *ids;   /* [count] of id_bits: on the GPU int32 or int64; on the host uint32 where rows_ids() said, all of them rows
                        * that the table has */
    uint64_t count;
    unsigned id_bits;  /* 32 or 64 */
    int ids_on_gpu, values_on_gpu;
    float *values;     /* [count x dim]: fetch fills it, store reads rows from it, update reads gradients */
    void *stream;      /* a cudaStream_t; NULL: the default one. The CPU has no streams */
    const struct rule_options *rule; /* this and the fields below: for an update */
    double lr;
    uint64_t global_step; /* updates of the table before this one; for a store, updates and stores (DRAW_ROUND_STORE) */
};

/* One field of a table's records, for the rows that are on the host. */
struct rows_view {
    void *data;     /* address of row `first`; NULL if no row is on the host */
    uint64_t first; /* rows below this number are on the GPU, or are not of this table */
    uint64_t stride; /* bytes */
    int gpu_reads;   /* a GPU reads and writes the same memory at the same addresses */
};

/* ---- exact nearest rows ---- */

struct topk_request {
    const float *base; /* [base_rows x dim] on the host, row after row */
    uint64_t base_rows;
    const float *queries; /* [query_rows x dim] on the host */
    uint64_t query_rows;
    uint32_t dim, k;
    const uint64_t *banned_starts; /* [query_rows + 1] into banned: rows that a query may not find; or NULL */
    const uint32_t *banned;        /* ids, increasing within a query */
    uint32_t *ids;                 /* out [query_rows x k]; DRAW_NONE where there are fewer than k rows */
    float *scores;                 /* out [query_rows x k], falling; rows of equal scores by rising id */
};

/* ---- the memory that a run takes ---- */

/* Bytes, by where they lie. */
struct memory_bytes {
    uint64_t gpu, pinned, host, file; /* pinned: host memory that the GPU reads; host: plain host memory */
};

/* A run as the backend will be given it, before anything is open. */
struct estimate_request {
    struct table_spec target, context;
    const struct example_source *source; /* with its batch; the arrays are not read */
    unsigned depth, threads;
    unsigned processors; /* multiprocessors of the GPU; 0: not known */
    const struct rule_options *rule;
    struct loss_options loss;
    unsigned ranks;      /* that share out the columns; 0 or 1: the layouts are whole */
    int frozen_targets, frozen_contexts; /* the tables will say which of their rows are frozen */
    int hogwild;         /* lock-free training; batches are made of held-out examples alone, one at a time */
};

/* Upper bounds of the bytes that the backend will hold. */
struct estimate {
    struct memory_bytes tables; /* hot rows count as gpu */
    struct memory_bytes source; /* arrays that examples are made from, without the caller's own */
    struct memory_bytes work;   /* batches in flight, scratch, rows on their way */
    struct memory_bytes fixed;  /* threads, and the driver's own: the same for every run */
};

struct backend_ops {
    const char *name; /* as device.backend names it: "cpu", "cuda" */
    int has_gpu;      /* 1: rows and batches can lie on a GPU, whose memory has a budget, and so can ids and values of a
                       * rows_request, with a stream; 0: all memory is the processor's */
    int halves;       /* 1: it has tables with bfloat16 fields; 0: their opening is refused before it is asked */
    /* Returns 1 where this machine can open it; otherwise 0, with the reason as a sentence in `why`. With `why` NULL the
     * sentence is kept as after fail(). */
    int (*present)(char *why, size_t capacity);
    /* Fills `info` with its devices on this machine, at most `capacity`, and opens none of them. Returns how many there are,
     * or -1 after fail(). */
    int (*devices)(struct backend_info *info, int capacity);
    /* Estimates without touching a device, and cannot fail: it may be asked of a backend that this machine cannot open. */
    void (*estimate)(const struct estimate_request *request, struct estimate *estimate);
    int (*open)(struct backend **backend, const struct backend_options *options);
    void (*close)(struct backend *backend);
    int (*info)(struct backend *backend, struct backend_info *info);

    int (*table_open)(struct backend *backend, const struct table_spec *spec, struct backend_table **table);
    void (*table_close)(struct backend *backend, struct backend_table *table);
    /* Reads packed records of rows [first, first + count) into host memory; table_write does the reverse. Both wait for
     * all stages. */
    int (*table_read)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
    int (*table_write)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count,
                       const void *packed);

    int (*source)(struct backend *backend, const struct example_source *source); /* called once, before make_batch */
    /* Returns 0; -1 after fail(); BATCH_STOPPED, with the stage left empty, if a signal or the caller asks to stop (interrupt.h).
     * Only the CPU backend gives up a batch, only one of training (held_out = 0), and only if there is one rank. */
    int (*make_batch)(struct backend *backend, unsigned stage, const struct batch_request *request);
    int (*set_batch)(struct backend *backend, unsigned stage, const struct batch_view *view);
    int (*batch_view)(struct backend *backend, unsigned stage, struct batch_view *view); /* valid until the stage's next batch */
    /* Brings the batch's rows to where they are computed, trains them, and brings them home. */
    int (*step)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*result)(struct backend *backend, unsigned stage, struct step_result *result);
    int (*drain)(struct backend *backend); /* waits until all stages are done and host rows are current */

    /* Says where the `count` ids of the next request are to be written that has its ids on the host: memory of the backend's own,
     * until the request returns. */
    int (*rows_ids)(struct backend *backend, uint64_t count, uint32_t **ids);
    int (*rows_fetch)(struct backend *backend, const struct rows_request *request);
    int (*rows_prefetch)(struct backend *backend, const struct rows_request *request); /* does not look at values */
    int (*rows_update)(struct backend *backend, const struct rows_request *request);
    int (*rows_store)(struct backend *backend, const struct rows_request *request);
    int (*rows_wait)(struct backend *backend); /* waits for all of them; -1 after fail() where ids on the GPU were no rows */
    /* `field` is one of the table's layout. */
    struct rows_view (*rows_view)(struct backend *backend, const struct backend_table *table,
                                  const struct record_field *field);

    /* Draws walks [first, first + count) of an epoch over the source's graph into ids [count x length], on the host. NULL: into
     * memory of the backend's own, to measure how long that takes. It returns when they are drawn. */
    int (*draw_walks)(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

    int (*hogwild)(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
    int (*topk)(struct backend *backend, const struct topk_request *request);
    /* Spreads rows over a graph (filter.h). Returns 1, with nothing changed, where the GPU has not the memory for it. */
    int (*filter)(struct backend *backend, const struct filter_request *request);

    /* Rows for lists that training never saw (fold_in.h). fold_open() copies the problem's arrays; it returns 1, with nothing opened,
     * where the GPU has not the memory for it. */
    int (*fold_open)(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
    int (*fold_solve)(struct backend_fold *fold, const struct fold_lists *lists);
    void (*fold_close)(struct backend_fold *fold);

    /* Measuring (bench.h); NULL without a GPU. */
    int (*bench_transfer)(struct backend *backend, const struct bench_request *request, struct bench_times *times);
    int (*bench_limits)(struct backend *backend, struct bench_limits *limits);
};

extern const struct backend_ops backend_cpu, backend_cuda;

/* ---- all backends (backends.c) ---- */

extern const struct backend_ops *const backends[]; /* the best first, NULL at the end; every machine can open the last one */

const struct backend_ops *backend_named(const char *name); /* NULL: there is none of that name */
const struct backend_ops *backend_best(void);              /* the first that is present */
const struct backend_ops *backend_without_gpu(void);       /* the first that needs no GPU */

#endif
