/* backend: the interface between deciding which rows change (src/) and changing them (kernels/).
 *
 *   example  a block: T target rows against C context rows, the first P of them positive; all T x C pairs are trained
 *   batch    the blocks of consecutive examples; each distinct row in it gets exactly one optimizer update
 *
 * Calls work on batches. A batch passes make_batch -> step in a stage (one of `depth`), and result() waits for it. A call may
 * return before its work is done. If a backend has nothing to do in a call, the call is an empty function, so callers never ask
 * which backend they use. Batches of the same tables are stepped one after the other: each sees the rows as the batch before it
 * left them. Every function returns 0, or -1 after fail().
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

/* How GPUs of several ranks exchange partial dot products: by writing into each other's memory, by NCCL, or through the host. */
enum exchange_way { EXCHANGE_AUTO, EXCHANGE_GPU, EXCHANGE_NCCL, EXCHANGE_HOST };

/* The type of the factors of a step's matrix products on a GPU (step_shared.cu). TF32: float32 rounded to the TF32 that tensor
 * cores multiply. Searches and the CPU backend always multiply float32. */
enum matmul_type { MATMUL_FLOAT32, MATMUL_TF32 };

struct backend_options {
    unsigned threads;      /* 0: one thread a core */
    unsigned index;        /* the number of the GPU */
    unsigned depth;        /* number of stages, 1..BACKEND_STAGES */
    uint64_t gpu_budget;   /* bytes of GPU memory that the backend may take; UINT64_MAX: all free bytes less a reserve */
    enum matmul_type matmul;
    struct ranks *ranks;   /* the processes of the run, each with some columns of every row; step() sums dot products over them.
                            * NULL: this process has all columns */
    enum exchange_way exchange; /* for several ranks with GPUs; EXCHANGE_AUTO: the first way that works between them */
};

struct backend_info {
    char name[128];      /* "CPU, 2 threads, AVX2"; "NVIDIA H200" */
    unsigned threads;
    unsigned processors;          /* multiprocessors of the GPU */
    uint64_t gpu_total, gpu_free; /* bytes; 0 without a GPU */
    uint64_t gpu_used, host_used; /* bytes that this backend holds on the GPU, and in host memory (without files). With a GPU,
                                   * host_used counts only memory that the GPU reads, the caller's arrays included */
    int managed;         /* 1: rows on the host are managed memory for this GPU; 0: they are pinned, or there is no GPU */
    int runs;            /* 1: this program contains kernels that run on the GPU */
    char link[64];       /* "PCIe 5.0 x16" or "" */
    char driver[64];     /* the GPU's: "570.86.15"; or "" */
};

/* Returns the default GPU budget in bytes: the free bytes less a reserve. */
FN uint64_t backend_gpu_budget(uint64_t gpu_free) {
    const uint64_t reserve = (uint64_t)512 << 20;
    return gpu_free > reserve ? gpu_free - reserve : 0;
}

/* ---- tables ----
 *
 * A row is a record (record.h). If weights and state have the same place they share a record; otherwise they are two stores
 * with the same row numbers. Records are padded as stores.h says.
 *
 *   one store   [weights span][slot 0 span]..[slot n-1 span][updates] padding
 *   two stores  [weights span] padding | [slot 0 span]..[updates] padding
 */
enum place { PLACE_PINNED, PLACE_GPU, PLACE_FILE };

struct table_spec {
    const char *name; /* "target" or "context", for error messages */
    uint64_t rows;      /* ids are below this number */
    uint64_t first_row; /* lowest id: the table has rows [first_row, rows); 0: all */
    struct record_layout layout;
    struct rounding rounding; /* how bfloat16 fields are rounded; used if layout.halves */
    enum place weights, state;
    const char *file_path; /* PLACE_FILE: the working file, which has no name, is created in this file's directory */
    uint64_t hot_rows;     /* rows first_row..hot_rows-1 of a pinned or file store are kept on the GPU; the CPU backend ignores
                            * this */
    uint64_t gpu_cache;    /* number of rows of a pinned store that are kept on the GPU because calls by id use them often; 0: none.
                            * Not beside hot_rows; the CPU backend ignores this, and batches refuse such a table */
    const uint32_t *frozen; /* [table_frozen_words] one bit a row: if it is set, no step changes the row's weights or state; NULL:
                             * no row is frozen. The caller's; outlives the table. On a GPU only exact steps heed it */
};

/* Returns how many rows the table has. */
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

enum { BATCH_STOPPED = 1 }; /* make_batch() returns this if it was asked to stop and gave up the batch */

struct batch_request {
    uint32_t epoch;
    uint64_t first, count; /* examples [first, first + count) in the epoch's order, all of one epoch */
    int held_out;          /* 1: only held-out examples; 0: only the others */
};

/* The negatives that all examples of a batch share (example_source.per_batch). */
struct shared_negatives {
    uint32_t count; /* number of negatives: they are the contexts of the first block, which has no target and no positive; 0:
                     * nothing is shared. All other blocks, at least one, have one target and one context, their positive */
    int masked;     /* 1: an example's loss leaves out negatives that are its own positive */
};

/* A batch as plain arrays, in the order of its examples: built by make_batch(), or given to set_batch() by a caller. */
struct batch_view {
    uint64_t blocks;
    const uint64_t *target_starts;  /* [blocks + 1] into target_ids */
    const uint64_t *context_starts; /* [blocks + 1] into context_ids */
    const uint32_t *positives;      /* [blocks] P: the block's first P contexts are positive */
    const uint32_t *target_ids, *context_ids;
    const float *weights; /* [contexts] weights of positives (losses.h); values of negatives are not read. NULL: every positive
                           * weighs 1 */
    struct example_pool pool;
    struct shared_negatives shared;
};
/* Checks the blocks of a view with shared negatives. Returns 0 if they have the form that struct shared_negatives describes, or
 * if nothing is shared; -1 after fail(). */
int shared_negatives_check(const struct batch_view *view);

/* How a step treats a batch. */
struct step_request {
    struct backend_table *target, *context; /* two different tables */
    const struct rule_options *rule;
    struct loss_options loss;
    double lr;       /* the scheduled learning rate */
    uint64_t global_step; /* steps of the run before this one */
    int mean;        /* 1: divide gradients by the batch's blocks (examples in window mode with per_pair: by its blocks too) */
    int loss_only;   /* 1: compute the loss and change nothing */
    int apart;       /* 1: do not sum dot products over ranks; measures a step without the exchange */
};

struct step_result {
    double loss;       /* the sum over the pairs */
    uint64_t examples; /* blocks */
    uint64_t pairs;    /* pairs of a target (a pool is one target) with a positive: the unit of speed */
    uint64_t terms;    /* scores: T x C for a block, C for a pooled block */
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
    uint64_t global_step;     /* examples that the run has trained before `first` */
    unsigned workers;         /* most workers at once; 1: examples are trained one after the other; 0: the backend chooses */
};
struct hogwild_result {
    uint64_t done; /* number of examples trained, from the request's first on: `count`, or fewer if a signal or the caller asked to
                    * stop meanwhile (interrupt.h; on the CPU only) */
    uint64_t words, examples, pairs; /* of all blocks */
    double loss;                     /* loss summed over the terms of the sampled examples */
    uint64_t sampled_examples, sampled_pairs, sampled_terms;
    uint64_t link_bytes; /* bytes of rows in host memory that the GPU read or added to */
};

/* ---- rows by id: other people's models ----
 *
 * Ids may be in any order and may repeat. Host memory may be used again when a call returns. Arrays in the GPU's memory are read
 * and written in the order of `stream`; if all arrays of a call are there, it returns at once.
 */
struct rows_request {
    struct backend_table *table;
    const void *ids;   /* [count] ids of id_bits each. On the GPU: int32 or int64. On the host: uint32 in the memory that
                        * rows_ids() gave, each the id of a row of the table */
    uint64_t count;
    unsigned id_bits;  /* 32 or 64 */
    int ids_on_gpu, values_on_gpu;
    float *values;     /* [count x dim] fetch writes rows to it, store reads rows from it, update reads gradients from it */
    void *stream;      /* a cudaStream_t; NULL: the default one. The CPU has no streams */
    const struct rule_options *rule; /* this and the fields below are for updates; a store reads global_step too */
    double lr;
    uint64_t global_step; /* number of updates of the table before this one; for a store, of updates and stores
                           * (DRAW_ROUND_STORE) */
};

/* One field of a table's records, for the rows in host memory. */
struct rows_view {
    void *data;     /* address of row `first`; NULL if no row is on the host */
    uint64_t first; /* id of the first row in host memory; lower rows are on the GPU, or not in this table */
    uint64_t stride; /* bytes from one row's field to the next row's */
    int gpu_reads;   /* 1: a GPU reads and writes this memory, at the same addresses */
};

/* ---- exact nearest rows ---- */

struct topk_request {
    const float *base; /* [base_rows x dim] on the host, row after row */
    uint64_t base_rows;
    const float *queries; /* [query_rows x dim] on the host */
    uint64_t query_rows;
    uint32_t dim, k;
    const uint64_t *banned_starts; /* [query_rows + 1] into banned: rows that a query must not return; NULL: no row is banned */
    const uint32_t *banned;        /* ids, rising within a query */
    uint32_t *ids;                 /* out [query_rows x k]; DRAW_NONE if there are fewer than k rows */
    float *scores;                 /* out [query_rows x k], falling; rows with equal scores are in rising order of id */
};

/* ---- the memory that a run takes ---- */

/* Bytes, by kind of memory. */
struct memory_bytes {
    uint64_t gpu, pinned, host, file; /* pinned: host memory that the GPU reads; host: plain host memory */
};

/* A run's tables, examples and options, known before anything is open. */
struct estimate_request {
    struct table_spec target, context;
    const struct example_source *source; /* `batch` must be set; the arrays are not read */
    unsigned depth, threads;
    unsigned processors; /* multiprocessors of the GPU; 0: not known */
    const struct rule_options *rule;
    struct loss_options loss;
    unsigned ranks;      /* number of ranks; above 1 the layouts have one rank's columns only */
    int frozen_targets, frozen_contexts; /* 1: the table will have a bit map of frozen rows */
    int hogwild;         /* 1: lock-free training; only held-out examples are made into batches, one at a time */
};

/* Upper bounds of the bytes that the backend will hold. */
struct estimate {
    struct memory_bytes tables; /* hot rows count as gpu */
    struct memory_bytes source; /* arrays from which examples are made, without the caller's arrays */
    struct memory_bytes work;   /* batches in flight, scratch, rows that are being copied */
    struct memory_bytes fixed;  /* threads, and the driver's memory: the same for every run */
};

struct backend_ops {
    const char *name; /* as device.backend names it: "cpu", "cuda" */
    int has_gpu;      /* 1: tables, batches, and the ids and values of a rows_request can be on a GPU, whose memory has a budget,
                       * and a request has a stream; 0: all memory is the host's */
    int halves;       /* 1: tables may have bfloat16 fields; 0: callers must refuse such tables */
    /* Returns 1 if this machine can open the backend; otherwise 0, with the reason as a sentence in `why`, or kept as by fail()
     * if `why` is NULL. */
    int (*present)(char *why, size_t capacity);
    /* Describes at most `capacity` of this machine's devices in `info`, and opens none. Returns how many devices there are, or
     * -1 after fail(). */
    int (*devices)(struct backend_info *info, int capacity);
    /* Computes upper bounds without using a device. Cannot fail, even for a backend that this machine cannot open. */
    void (*estimate)(const struct estimate_request *request, struct estimate *estimate);
    int (*open)(struct backend **backend, const struct backend_options *options);
    void (*close)(struct backend *backend);
    int (*info)(struct backend *backend, struct backend_info *info);

    int (*table_open)(struct backend *backend, const struct table_spec *spec, struct backend_table **table);
    void (*table_close)(struct backend *backend, struct backend_table *table);
    /* Copies rows [first, first + count) as packed records into host memory; table_write() copies the other way. Both wait for
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
    /* Copies the batch's rows to where they are computed, trains them, and copies them back. */
    int (*step)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*result)(struct backend *backend, unsigned stage, struct step_result *result);
    int (*drain)(struct backend *backend); /* waits until all stages are done and host rows are current */

    /* Sets *ids to the backend's memory for the `count` ids of the next request, if these are on the host. The caller fills it;
     * it is valid until that request returns. */
    int (*rows_ids)(struct backend *backend, uint64_t count, uint32_t **ids);
    int (*rows_fetch)(struct backend *backend, const struct rows_request *request);
    int (*rows_prefetch)(struct backend *backend, const struct rows_request *request); /* ignores values */
    int (*rows_update)(struct backend *backend, const struct rows_request *request);
    int (*rows_store)(struct backend *backend, const struct rows_request *request);
    int (*rows_wait)(struct backend *backend); /* waits for all requests; -1 after fail() if an id on the GPU was not a row */
    /* `field`: one of the fields of the table's layout. */
    struct rows_view (*rows_view)(struct backend *backend, const struct backend_table *table,
                                  const struct record_field *field);

    /* Sets rows[..] to the ids of at most `most` rows that table_spec.gpu_cache keeps on the GPU now, in any order, and *count to
     * how many there are. */
    int (*rows_cached)(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count);

    /* Draws walks [first, first + count) of an epoch over the source's graph into ids [count x length], on the host; NULL: into
     * the backend's own memory, to measure the time. Returns when all are drawn. */
    int (*draw_walks)(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

    int (*hogwild)(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
    int (*topk)(struct backend *backend, const struct topk_request *request);
    /* Spreads rows over a graph (filter.h). Returns 1, with nothing changed, if the GPU does not have enough free memory. */
    int (*filter)(struct backend *backend, const struct filter_request *request);

    /* Rows for lists that training never saw (fold_in.h). fold_open() copies the problem's arrays; it returns 1, with nothing
     * opened, if the GPU does not have enough free memory. */
    int (*fold_open)(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
    int (*fold_solve)(struct backend_fold *fold, const struct fold_lists *lists);
    void (*fold_close)(struct backend_fold *fold);

    /* Measuring (bench.h); NULL without a GPU. */
    int (*bench_transfer)(struct backend *backend, const struct bench_request *request, struct bench_times *times);
    int (*bench_limits)(struct backend *backend, struct bench_limits *limits);
};

extern const struct backend_ops backend_cpu, backend_cuda;

/* ---- all backends (backends.c) ---- */

extern const struct backend_ops *const backends[]; /* best first; NULL ends the list; any machine can open the last backend */

const struct backend_ops *backend_named(const char *name); /* NULL if no backend has this name */
const struct backend_ops *backend_best(void);              /* the first one that this machine can open */
const struct backend_ops *backend_without_gpu(void);       /* the first that needs no GPU */

#endif
