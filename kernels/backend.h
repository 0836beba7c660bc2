/* backend: the interface between deciding which rows change (src/) and changing them (kernels/).
 *
 * Calls are at batch grain. A batch passes make_batch -> gather -> step -> scatter in a stage (one of `depth`), and
 * result() waits for it; a call may return before its work is done, and where a backend has nothing to do it has a no-op,
 * so callers never branch on which one they hold. Batches of the same tables follow one another: the next is gathered when
 * the one before has been scattered. Every function returns 0, or -1 after fail().
 *
 *   example  a block: T target rows against C context rows, the first P of them positive; all T x C pairs are trained
 *   batch    the blocks of consecutive examples; each distinct row in it gets exactly one optimizer update
 *
 * Pointers given to a backend are the caller's and outlive it unless said otherwise. C headers: .cu files include this
 * inside extern "C".
 */
#ifndef SPTX_BACKEND_H
#define SPTX_BACKEND_H

#include "draws.h"
#include "examples.h"
#include "losses.h"
#include "optimizers.h"
#include "record.h"

#include <stddef.h>
#include <stdint.h>

struct ranks;   /* ranks.h */
struct backend; /* each backend's own; begins with its `const struct backend_ops *` */
struct backend_table;

enum { BACKEND_STAGES = 8 };

/* ---- the machine ---- */

/* How GPUs of several ranks hand over parts of sums: in one another's memory, by NCCL, or by way of the host. */
enum exchange_way { EXCHANGE_AUTO, EXCHANGE_GPU, EXCHANGE_NCCL, EXCHANGE_HOST };

struct backend_options {
    unsigned threads;      /* 0: one a core */
    unsigned index;        /* which GPU */
    unsigned depth;        /* stages, 1..BACKEND_STAGES */
    uint64_t gpu_budget;   /* bytes of the GPU that may be taken; UINT64_MAX: what is free less a reserve */
    struct ranks *ranks;   /* that share out the columns of tables: step() sums dot products over them; NULL: one has all */
    int replicas;          /* these ranks have whole tables instead, and step() knows of no other: replica_merge() */
    enum exchange_way exchange; /* of several ranks with GPUs; auto: the first of the ways that works between them */
};

struct backend_info {
    char name[128];      /* "CPU, 2 threads, AVX2"; "NVIDIA H200" */
    unsigned threads;
    unsigned processors;          /* of the GPU */
    uint64_t gpu_total, gpu_free; /* bytes; 0 without a GPU */
    uint64_t gpu_used, host_used; /* bytes that this backend holds; host: of the processor's memory, files left out. With a
                                   * GPU that is what it reads there, the caller's arrays counted */
    int managed;         /* rows on the host are managed memory for this GPU; 0: pinned, or there is none */
    int runs;            /* of a GPU: 1 where this program holds kernels for it */
    char link[64];       /* "PCIe 5.0 x16" or "" */
    char driver[64];     /* of the GPU: "570.86.15" or "" */
};

/* What is left of a GPU's free bytes where the budget is the program's to choose. */
FN uint64_t backend_gpu_budget(uint64_t gpu_free) {
    const uint64_t reserve = (uint64_t)512 << 20;
    return gpu_free > reserve ? gpu_free - reserve : 0;
}

/* ---- tables ----
 *
 * A row is a record (record.h). Where weights and state have the same place they share a record; otherwise they are two
 * stores with the same numbering.
 *
 *   one store   [weights span][slot 0 span]..[slot n-1 span][updates] padded to a multiple of 128 bytes
 *   two stores  [weights span] padded | [slot 0 span]..[updates] padded
 */
enum place { PLACE_PINNED, PLACE_GPU, PLACE_FILE };

struct table_spec {
    const char *name; /* "target", "context": for sentences */
    uint64_t rows;      /* its ids are below this number */
    uint64_t first_row; /* and not below this one: rows [first_row, rows) are there. 0: all */
    struct record_layout layout;
    enum place weights, state;
    const char *file_path; /* PLACE_FILE: its working file, which has no name, lies in this one's directory */
    uint64_t hot_rows;     /* rows first_row..hot_rows-1 of a pinned or file store lie on the GPU instead; ignored by the CPU */
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

struct batch_request {
    uint32_t epoch;
    uint64_t first, count; /* examples [first, first + count) of the epoch's order; never across its end */
    int held_out;          /* 1: only the held-out ones; 0: only the others */
    const struct backend_table *context; /* whose rows its contexts will be: a backend may leave out of a batch what this
                                          * table does not need. NULL: any table's */
};

/* A batch as plain arrays, in example order: what make_batch() built, or what a caller gives to set_batch(). */
struct batch_view {
    uint64_t blocks;
    const uint64_t *target_starts;  /* [blocks + 1] into target_ids */
    const uint64_t *context_starts; /* [blocks + 1] into context_ids */
    const uint32_t *positives;      /* [blocks] P: the first P contexts of the block are positive */
    const uint32_t *target_ids, *context_ids;
    struct example_pool pool;
};

/* The same for gather, step and scatter of a batch. */
struct step_request {
    struct backend_table *target, *context; /* two tables */
    const struct rule_options *rule;
    struct loss_options loss;
    double lr;       /* scheduled */
    uint64_t global_step; /* steps of the run before this one */
    int mean;        /* divide gradients by the batch's blocks (examples in window mode with per_pair: by its blocks too) */
    int loss_only;   /* the loss, and nothing changes */
    int apart;       /* nothing is summed over ranks: for measuring what a step takes without */
};

struct step_result {
    double loss;       /* summed over the pairs */
    uint64_t examples; /* blocks */
    uint64_t pairs;    /* targets (pooled ones are one) with one positive each: the unit of speed */
    uint64_t terms;    /* scores: all T x C of the loss, C of a pooled block */
    uint64_t words;    /* corpus positions passed, dropped ones counted */
    uint64_t link_bytes; /* moved between host and GPU, both ways */
};

/* word2vec's lock-free way over examples [first, first + count) of the epoch's order; hogwild.h says what it means. */
struct hogwild_request {
    struct backend_table *target, *context;
    const struct rule_options *rule;
    uint32_t epoch;
    uint64_t first, count;
    double lr_first, lr_last; /* the rate falls linearly from one to the other */
    uint64_t global_step;     /* examples of the run before `first` */
    unsigned workers;         /* at most so many at once, 1: one example after the other; 0: as many as are worth it */
};
struct hogwild_result {
    uint64_t words, examples, pairs; /* of all blocks */
    double loss;                     /* of the sampled examples, summed over their terms */
    uint64_t sampled_examples, sampled_pairs, sampled_terms;
    uint64_t link_bytes; /* of rows that the GPU read from host memory and added to there */
};

/* ---- rows by id: other people's models ----
 *
 * Ids come in any order and may repeat. Host memory may be used again when a call returns. What lies in the GPU's memory is
 * read and written in the order of `stream`, and the call returns at once where all of it does.
 */
struct rows_request {
    struct backend_table *table;
    const void *ids;   /* [count] int32 or int64, by id_bits; on the host all are rows that the table has */
    uint64_t count;
    unsigned id_bits;  /* 32 or 64 */
    int ids_on_gpu, values_on_gpu;
    float *values;     /* [count x dim]: fetch fills it; store reads rows from it, update gradients */
    void *stream;      /* a cudaStream_t; NULL: the default one. The CPU has none */
    const struct rule_options *rule; /* of an update, with what follows */
    double lr;
    uint64_t global_step; /* updates of the table before this one */
};

/* One field of a table's records, as far as it lies on the host. */
struct rows_view {
    void *data;     /* of row `first`; NULL where none lies there */
    uint64_t first; /* rows below lie on the GPU, or are none of the table's */
    uint64_t stride; /* bytes */
};

/* ---- exact nearest rows ---- */

struct topk_request {
    const float *base; /* [base_rows x dim] on the host, row after row */
    uint64_t base_rows;
    const float *queries; /* [query_rows x dim] on the host */
    uint64_t query_rows;
    uint32_t dim, k;
    const uint64_t *banned_starts; /* [query_rows + 1] into banned, or NULL: rows that a query may not find */
    const uint32_t *banned;        /* increasing within a query */
    uint32_t *ids;                 /* out [query_rows x k]; DRAW_NONE where fewer rows are left */
    float *scores;                 /* out [query_rows x k], falling; equal scores by rising id */
};

/* ---- what a run will take ---- */

/* Bytes by where they lie. */
struct memory_bytes {
    uint64_t gpu, pinned, host, file; /* pinned: host memory that the GPU reads; host: plain */
};

/* A run of which nothing is open yet, as the backend will be given it. */
struct estimate_request {
    struct table_spec target, context;
    const struct example_source *source; /* with its batch; its arrays are not read */
    unsigned depth, threads;
    unsigned processors; /* of the GPU; 0: not known */
    const struct rule_options *rule;
    struct loss_options loss;
    unsigned ranks;      /* that share out the columns; 0 or 1: the layouts are whole */
    unsigned replicas;   /* ranks that have whole tables, both of them open as replicas; 0 or 1: there are none */
    int frozen_targets, frozen_contexts; /* the tables will say which of their rows are frozen */
    int hogwild;         /* lock-free training; batches are made of held-out examples alone, one at a time */
};

/* The most that the backend will hold of each. */
struct estimate {
    struct memory_bytes tables; /* hot rows counted as gpu */
    struct memory_bytes source; /* what examples are made of, beside the caller's own arrays */
    struct memory_bytes work;   /* batches in flight, scratch, rows on their way */
    struct memory_bytes replicas; /* what those keep beside their tables, and hand over: whatever the batch is */
    struct memory_bytes fixed;  /* threads, the driver's own: whatever the run is */
};

struct backend_ops {
    const char *name; /* "cpu", "cuda" */
    /* Touches no device and fails at nothing: it can be asked of a backend that this machine cannot open. */
    void (*estimate)(const struct estimate_request *request, struct estimate *estimate);
    int (*open)(struct backend **backend, const struct backend_options *options);
    void (*close)(struct backend *backend);
    int (*info)(struct backend *backend, struct backend_info *info);

    int (*table_open)(struct backend *backend, const struct table_spec *spec, struct backend_table **table);
    void (*table_close)(struct backend *backend, struct backend_table *table);
    /* Packed records of rows [first, first + count), in host memory. Both wait for all stages. */
    int (*table_read)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
    int (*table_write)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count,
                       const void *packed);

    int (*source)(struct backend *backend, const struct example_source *source); /* once, before make_batch */
    int (*make_batch)(struct backend *backend, unsigned stage, const struct batch_request *request);
    int (*set_batch)(struct backend *backend, unsigned stage, const struct batch_view *view);
    int (*batch_view)(struct backend *backend, unsigned stage, struct batch_view *view); /* valid until the stage is made anew */
    int (*gather)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*step)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*scatter)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*result)(struct backend *backend, unsigned stage, struct step_result *result);
    int (*drain)(struct backend *backend); /* all stages done, host rows current */

    int (*rows_fetch)(struct backend *backend, const struct rows_request *request);
    int (*rows_prefetch)(struct backend *backend, const struct rows_request *request); /* values are not looked at */
    int (*rows_update)(struct backend *backend, const struct rows_request *request);
    int (*rows_store)(struct backend *backend, const struct rows_request *request);
    int (*rows_wait)(struct backend *backend); /* all of them done; -1 after fail() where ids on the GPU were no rows */
    /* `field`: of the table's layout. */
    struct rows_view (*rows_view)(struct backend *backend, const struct backend_table *table,
                                  const struct record_field *field);

    int (*hogwild)(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
    /* Tables without state that all ranks have whole (backend_options.replicas), and move rows of in their own ways.
     * replica_open: of a table whose rows are the same on all ranks now. replica_merge: by all ranks at once; each of the first
     * `rows` rows of both tables, of those that have as many, becomes
     *     row = base + (row of rank 0 - base) + (row of rank 1 - base) + ..     base: as it was on all ranks last
     * the same bits on each. Where a rank does not come within the ranks' patience, -1 after fail(). */
    int (*replica_open)(struct backend *backend, struct backend_table *table);
    int (*replica_merge)(struct backend *backend, struct backend_table *target, struct backend_table *context, uint64_t rows);
    unsigned replica_merges; /* made at most before the processes meet, a power of two: 1 on CPUs, where each is a meeting */
    int (*topk)(struct backend *backend, const struct topk_request *request);
};

extern const struct backend_ops backend_cpu, backend_cuda;

/* Whether a backend can be opened on this machine: 1, or 0 with the reason as a sentence in `why` (kept where NULL). */
int backend_cuda_present(char *why, size_t capacity);
/* Lines for `devices`: what each GPU is; -1 after fail(), otherwise how many there are. `info` has `capacity` of them.
 */
int backend_cuda_devices(struct backend_info *info, int capacity);

#endif
