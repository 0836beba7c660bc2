/* backend: the interface between deciding which rows change (src/) and changing them (kernels/).
 *
 *   example  a block: T target rows against C context rows, the first P of them positive; all T x C pairs are trained
 *   batch    the blocks of consecutive examples; each distinct row in it gets exactly one optimizer update
 *
 * Calls work on batches. A batch is in a stage (there are `depth` of them): make_batch() and step() work on it, and result() waits for it. A call may
 * return before its work is done. Where a backend has nothing to do, its function is empty, so callers need not ask which backend they use. Batches
 * of the same tables are stepped one after the other: each uses the rows as the previous batch has changed them. Every function returns 0, or -1
 * after fail().
 *
 * Pointers given to a backend are the caller's and outlive it unless said otherwise. C headers: .cu files include this inside extern "C".
 */
#ifndef SPTX_BACKEND_H
#define SPTX_BACKEND_H

#include "draws.h"
#include "examples.h"
#include "finished.h"
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
struct backend_copies;
struct bench_request; /* below */
struct bench_times;
struct bench_limits;

enum { BACKEND_STAGES = 8 };

/* ---- the machine ---- */

/* How the GPUs of several ranks exchange partial dot products: in each other's memory, by NCCL, or through the host. */
enum exchange_way { EXCHANGE_AUTO, EXCHANGE_GPU, EXCHANGE_NCCL, EXCHANGE_HOST };

/* Type of the factors of matrix products in a step on a GPU (step_shared.cu). TF32: float32 rounded to 11 bits, as tensor cores multiply it.
 * Searches and the CPU backend always multiply float32. */
enum matmul_type { MATMUL_FLOAT32, MATMUL_TF32 };

struct backend_options {
    unsigned threads;      /* threads of the host; 0: one for each core */
    unsigned index;        /* number of the GPU; ignored by the CPU backend */
    unsigned depth;        /* number of stages, 1..BACKEND_STAGES */
    uint64_t gpu_budget;   /* most bytes of GPU memory that the backend may allocate; UINT64_MAX: all free ones, less a reserve */
    enum matmul_type matmul;
    struct ranks *ranks;   /* processes of the run, each with some columns of every row; step() sums dot products over them. NULL: this process has
                            * all columns */
    enum exchange_way exchange; /* for several ranks with GPUs; EXCHANGE_AUTO: the first way that works between them */
};

struct backend_info {
    char name[128];      /* for people: "CPU, 2 threads, AVX2"; "NVIDIA H200" */
    unsigned threads;
    unsigned processors;          /* number of the GPU's multiprocessors */
    uint64_t gpu_total, gpu_free; /* bytes of GPU memory, and of these the free ones; 0 without a GPU */
    uint64_t gpu_used, host_used; /* bytes that this backend has allocated on the GPU; in host memory, without files. With a GPU, host_used is all
                                   * host memory that the GPU reads, including the caller's arrays */
    int managed;         /* 1: rows on the host are in managed memory; 0: they are pinned, or there is no GPU */
    int runs;            /* 1: this program contains kernels that run on the GPU */
    char link[64];       /* the GPU's connection, as in "PCIe 5.0 x16"; "": unknown */
    char driver[64];     /* version of the GPU's driver: "570.86.15"; "" if it is unknown */
};

/* Returns the default GPU budget in bytes: the free bytes, less a reserve. */
FN uint64_t backend_gpu_budget(uint64_t gpu_free) {
    const uint64_t reserve = (uint64_t)512 << 20;
    return gpu_free > reserve ? gpu_free - reserve : 0;
}

/* ---- tables ----
 *
 * A row is a record (record.h). If weights and state are in the same place, they share a record; otherwise there are two stores with the same row
 * numbers. Records are padded (store_stride() below).
 *
 *   one store   [weights span][slot 0 span]..[slot n-1 span][updates] padding
 *   two stores  [weights span] padding | [slot 0 span]..[updates] padding
 */
enum place { PLACE_PINNED, PLACE_GPU, PLACE_FILE };

struct table_spec {
    const char *name; /* "target" or "context"; for error messages */
    uint64_t rows;      /* ids of rows are below this number */
    uint64_t first_row; /* lowest id of a row; the table has rows first_row .. rows - 1 */
    struct record_layout layout;
    struct rounding rounding; /* how bfloat16 fields are rounded, if layout.halves is 1 */
    enum place weights, state;
    const char *file_path; /* PLACE_FILE: the working file is created, without a name, in the directory of this path */
    uint64_t hot_rows;     /* rows first_row .. hot_rows - 1 of a store in pinned memory or a file are kept on the GPU; ignored by the CPU backend */
    uint64_t gpu_cache;    /* most rows of a store in pinned memory that are kept on the GPU because calls by id use them often; 0: none. Excludes
                            * hot_rows; such a table cannot be used in batches. Ignored by the CPU backend */
    char *given;            /* memory for all rows, weights beside state, in which the rows stay (place: pinned). The caller owns it, and closes
                             * the table before freeing it. NULL: the backend allocates it. With `given` no row is hot or cached */
    const uint32_t *frozen; /* [table_frozen_words] bit map of frozen rows, whose weights and state no step changes; NULL: none. Owned by the
                             * caller, as long as the table exists. On a GPU only exact steps support it */
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

enum { BATCH_STOPPED = 1 }; /* returned by make_batch() if it was asked to stop and has made no batch */

struct batch_request {
    uint32_t epoch;
    uint64_t first, count; /* the examples at places first .. first + count - 1 in the epoch's order */
    int held_out;          /* 1: only the held-out ones of these examples; 0: only the others */
};

/* Negatives that all examples of a batch share (example_source.per_batch). They are the contexts of the batch's first block, which has no
 * positive, and no target or all relations (example_source.relations_too). There is at least one other block. Each belongs to an example and has one
 * target and one context, the positive, or the targets and contexts of a triple (example_put_triple()). */
struct shared_negatives {
    uint32_t count; /* number of negatives; 0: negatives are not shared */
    int masked;     /* 1: a negative that is an example's own positive is left out of that example's loss */
    uint32_t relations; /* number of targets of the first block: all relations, in the order of their rows, or 0 */
};

/* A batch as plain arrays, in the order of its examples: made by make_batch(), or passed to set_batch() by a caller. */
struct batch_view {
    uint64_t blocks;
    const uint64_t *target_starts;  /* [blocks + 1] targets of block b: target_ids[target_starts[b]] .. target_ids[target_starts[b + 1] - 1] */
    const uint64_t *context_starts; /* [blocks + 1] the same for context_ids */
    const uint32_t *positives;      /* [blocks] how many of the block's contexts are positives: the first P */
    const uint32_t *target_ids, *context_ids;
    const float *weights; /* [contexts] weights of positives (losses.h); weights of negatives are not read. NULL: every positive weighs 1 */
    struct example_pool pool;
    struct shared_negatives shared;
};
/* Returns 0 if no negatives are shared, or if the batch's blocks have the form that struct shared_negatives describes; -1 after fail(). */
int shared_negatives_check(const struct batch_view *view);
/* Returns 0 if examples that share negatives, and whose targets are combined by `pool`, can have this loss and this number of columns; -1 after
 * fail(). parted: 1 if ranks share the columns. */
int shared_product_check(const struct example_pool *pool, const struct loss_options *loss, uint32_t dim, int parted);

/* How to step a batch. */
struct step_request {
    struct backend_table *target, *context; /* two different tables */
    const struct rule_options *rule;
    struct loss_options loss;
    double lr;       /* learning rate of this step, after the schedule */
    uint64_t global_step; /* number of earlier steps of the run */
    int mean;        /* 1: gradients are divided by the batch's number of blocks (in window mode with per_pair: one block for each target); 0: they
                      * are summed */
    int loss_only;   /* 1: only the loss is computed, and no row changes */
    int apart;       /* 1: does not sum dot products over the ranks, to measure the time of a step without this exchange */
};

struct step_result {
    double loss;       /* sum of the losses of all pairs */
    uint64_t examples; /* number of blocks */
    uint64_t pairs;    /* number of pairs of a target (or a pool of targets) with a positive, in which speed is measured */
    uint64_t terms;    /* number of scores: T x C for a block, C if its targets are pooled */
    uint64_t words;    /* number of positions of the batch in text or walks, including those of dropped words but not those
                        * after the end of a walk */
    uint64_t link_bytes; /* bytes copied between host and GPU, in both directions */
};

/* A request to train, lock-free like word2vec, the examples at places first .. first + count - 1 in the epoch's order (hogwild.h). */
struct hogwild_request {
    struct backend_table *target, *context;
    const struct rule_options *rule;
    struct loss_options loss;
    uint32_t epoch;
    uint64_t first, count;
    double lr_first, lr_last; /* learning rates of the first and last example; linear in between */
    uint64_t global_step;     /* number of examples that the run has trained before these */
    unsigned workers;         /* most workers at the same time; 1: examples are trained in order; 0: the backend chooses */
};
struct hogwild_result {
    uint64_t done; /* number of examples trained: `count`, or fewer if a signal or the caller asked to stop (interrupt.h; only the CPU backend
                    * stops early) */
    uint64_t words, examples, pairs; /* numbers for all trained examples */
    double loss;                     /* sum of the losses of the terms of the sampled examples */
    uint64_t sampled_examples, sampled_pairs, sampled_terms;
    uint64_t link_bytes; /* bytes of rows in host memory that the GPU read or changed */
};

/* ---- rows by id: other people's models ----
 *
 * Ids may be in any order and may repeat. The caller may change its host arrays as soon as a call returns. Arrays in GPU memory are read and written
 * in the order of `stream`; if all arrays of a call are there, it returns at once.
 */
struct rows_request {
    struct backend_table *table;
    const void *ids;   /* [count] ids of id_bits bits each. On the GPU: int32 or int64 in the caller's array. On the host: uint32 in memory from
                        * rows_ids(), and each a row of the table */
    uint64_t count;
    unsigned id_bits;  /* 32 or 64 */
    int ids_on_gpu, values_on_gpu;
    float *values;     /* [count x dim] rows: written by a fetch, read by a store; gradients, read by an update */
    void *stream;      /* a cudaStream_t; NULL: the default stream. The CPU backend has no streams */
    const struct rule_options *rule; /* only for updates, like the fields below; a store uses only global_step */
    double lr;
    uint64_t global_step; /* number of earlier updates of the table; for a store, of earlier updates and stores (DRAW_ROUND_STORE) */
};

/* Says where a field's values are. It covers only rows that are in host memory. */
struct rows_view {
    void *data;     /* address of the field in row `first`; NULL: no row is in host memory */
    uint64_t first; /* lowest id in host memory; rows below it are on the GPU, or not in this table */
    uint64_t stride; /* bytes from one row's field to the next one's */
    int gpu_reads;   /* 1: a GPU can read and write this memory at these addresses */
};

/* ---- exact nearest rows ---- */

struct topk_request {
    const float *base; /* [base_rows x dim] rows to search, on the host */
    uint64_t base_rows;
    const float *queries; /* [query_rows x dim] on the host */
    uint64_t query_rows;
    uint32_t dim, k;
    const uint64_t *banned_starts; /* [query_rows + 1] rows banned[banned_starts[q]] .. banned[banned_starts[q + 1] - 1] are never answers to query
                                    * q; NULL: none */
    const uint32_t *banned;        /* row ids, rising within a query */
    uint32_t *ids;                 /* result [query_rows x k] row ids; DRAW_NONE after the last one if there are fewer than k */
    float *scores;                 /* result [query_rows x k] scores, falling; of equal scores, the lower id is first */
    const float *than;             /* NULL: find the k best rows of each query. Otherwise [query_rows] scores: only count, in `above` and `level`, the
                                    * rows with higher and with equal scores; k is not used */
    uint64_t *above, *level;       /* [query_rows] results if `than` is given: the numbers of rows, without banned ones, with a score above
                                    * than[query], and with a score equal to it */
};

/* ---- the memory that a run takes ---- */

/* Numbers of bytes, by kind of memory. */
struct memory_bytes {
    uint64_t gpu, pinned, host, file; /* pinned: host memory that the GPU reads; host: all other host memory */
};

/* Describes a run before anything is opened: its tables, examples and options. */
struct estimate_request {
    struct table_spec target, context;
    const struct example_source *source; /* its `batch` must be set; its arrays are not read */
    unsigned depth, threads;
    unsigned processors; /* number of the GPU's multiprocessors; 0: unknown */
    const struct rule_options *rule;
    struct loss_options loss;
    unsigned ranks;      /* number of ranks; if there are several, the layouts are for one rank's columns */
    int frozen_targets, frozen_contexts; /* 1: the table has a bit map of frozen rows */
    int hogwild;         /* 1: lock-free training, in which only held-out examples are made into batches, one at a time */
};

/* Upper bounds of the bytes that the backend allocates. */
struct estimate {
    struct memory_bytes tables; /* rows of both tables; hot rows are counted as gpu */
    struct memory_bytes source; /* copies of the arrays for making examples; the caller's arrays are not counted */
    struct memory_bytes work;   /* batches in flight, scratch, and buffers for copying rows */
    struct memory_bytes fixed;  /* threads and the driver's memory, which are the same for every run */
};

/* ---- keys of rows (rows/keys.h) ---- */

/* The key of a row. */
struct key_row {
    uint64_t key;
    uint64_t count; /* sights since the key has the row */
    uint64_t last;  /* number of the last call that named the key */
    uint64_t born;  /* number of the call that gave the key the row; 0: the row is free */
    uint64_t named; /* number of the last plan that named the key, even if the plan failed */
};

/* Says which key leaves when a new key needs a row: the key with the least rank; of equal ranks, the least key. */
enum keys_evict {
    KEYS_STAY,  /* none leaves */
    KEYS_LRU,   /* rank: the number of the last call that named the key */
    KEYS_LFU,   /* rank: the count of its sights */
    KEYS_AGE,   /* rank: the number of the call that gave the key its row */
    KEYS_EVICTS /* number of values */
};
FN uint64_t key_rank_of(const struct key_row *row, enum keys_evict evict) {
    return evict == KEYS_LFU ? row->count : evict == KEYS_AGE ? row->born : row->last;
}

/* Mixes x so that every bit of the result depends on every bit of x (murmur3's finalizer). Different x give different results. */
FN uint64_t key_mix(uint64_t x) {
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

struct key_index; /* on a GPU */

/* The result of keys_find(). `rows` and `keys` are on the GPU. The arrays stay valid until the next call. */
struct key_finding {
    const uint32_t *rows;   /* [count] row of each key of the call, or UINT32_MAX */
    const uint64_t *keys;   /* [count] the call's keys */
    const uint64_t *missed; /* [missed_count] on the host: the keys without a row, in any order; a key is as often here as in the call */
    uint64_t missed_count, named, hash; /* named: number of different rows; hash: of the keys and their order */
    int keys_on_gpu;        /* 1: the caller's keys are on the GPU */
};

/* How a call changes the index. Lists are on the host, except call_keys. */
struct key_change {
    uint64_t clock, used, keys_now; /* used: rows 0 .. used - 1 have or had a key, after the change; keys_now: keys that stay */
    const uint64_t *call_keys;      /* [count] the keys that the call names; count = 0: it only removes keys */
    uint64_t count;
    int sights;                     /* 1: each place of a key is a sight */
    const uint64_t *keys;           /* [added] keys that get rows */
    const uint32_t *rows;           /* [added] these rows */
    const uint32_t *removed_rows;   /* [removed] rows whose keys leave */
    uint64_t added, removed;
};

struct backend_ops {
    const char *name; /* its name in device.backend: "cpu" or "cuda" */
    int has_gpu;      /* 1: tables, batches and requests may be on a GPU, which has a memory budget and streams; 0: all memory is the host's */
    int halves;       /* 1: tables may have bfloat16 fields; 0: callers must refuse these */
    /* Returns 1 if this machine can open the backend; otherwise 0, and writes a sentence with the reason to `why`, or, if `why` is NULL, stores it
     * like fail(). */
    int (*present)(char *why, size_t capacity);
    /* Describes this machine's devices, without opening them, in info[..], at most `capacity`. Returns the number of devices, or -1 after fail(). */
    int (*devices)(struct backend_info *info, int capacity);
    /* Computes upper bounds of the memory, without a device; works even if this machine cannot open the backend. */
    void (*estimate)(const struct estimate_request *request, struct estimate *estimate);
    int (*open)(struct backend **backend, const struct backend_options *options);
    void (*close)(struct backend *backend);
    int (*info)(struct backend *backend, struct backend_info *info);

    int (*table_open)(struct backend *backend, const struct table_spec *spec, struct backend_table **table);
    void (*table_close)(struct backend *backend, struct backend_table *table);
    /* table_read() copies rows first .. first + count - 1 to packed records in host memory; table_write() copies packed records
     * to these rows; table_move() does either with the records of the rows row[0 .. count - 1], which are all different. All wait for all stages. */
    int (*table_read)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
    int (*table_write)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, const void *packed);
    int (*table_move)(struct backend *backend, struct backend_table *table, const uint32_t *row, uint64_t count, void *packed, int write);

    /* A snapshot lets one thread, the reader, read a table's rows, in rising order, as they were when the snapshot began, while calls continue to
     * change the table: before a call changes a row that the reader has not read yet, the backend copies it. A table has at most one snapshot.
     *
     * snapshot_begin() waits for all stages and requests. most: limit of the bytes of copies; a call that would exceed it waits for the reader.
     * snapshot_stop(), from any thread, says that the reader is done, so that calls neither copy rows nor wait. snapshot_end() frees the snapshot,
     * if there is one; only the thread that makes the backend's other calls may call it. */
    int (*snapshot_begin)(struct backend *backend, struct backend_table *table, uint64_t most);
    int (*snapshot_read)(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
    void (*snapshot_stop)(struct backend_table *table);
    void (*snapshot_end)(struct backend *backend, struct backend_table *table);

    int (*source)(struct backend *backend, const struct example_source *source); /* called once, before the first make_batch() */
    /* Returns 0; -1 after fail(); BATCH_STOPPED, without a batch, if a signal or the caller asks to stop (interrupt.h). Only the CPU backend
     * stops, only in batches for training (held_out = 0), and only with one rank. */
    int (*make_batch)(struct backend *backend, unsigned stage, const struct batch_request *request);
    int (*set_batch)(struct backend *backend, unsigned stage, const struct batch_view *view);
    int (*batch_view)(struct backend *backend, unsigned stage, struct batch_view *view); /* the view is valid until the stage's next batch is made */
    /* Trains the batch in the stage: copies its rows to where they are trained, and back. */
    int (*step)(struct backend *backend, unsigned stage, const struct step_request *request);
    int (*result)(struct backend *backend, unsigned stage, struct step_result *result);
    int (*drain)(struct backend *backend); /* waits until all stages are done and all rows in host memory are up to date */

    /* For a request with ids on the host: sets *ids to memory for its `count` ids, which the caller writes. It is valid until that request
     * returns. */
    int (*rows_ids)(struct backend *backend, uint64_t count, uint32_t **ids);
    int (*rows_fetch)(struct backend *backend, const struct rows_request *request);
    int (*rows_prefetch)(struct backend *backend, const struct rows_request *request); /* does not read request->values */
    int (*rows_update)(struct backend *backend, const struct rows_request *request);
    int (*rows_store)(struct backend *backend, const struct rows_request *request);
    int (*rows_wait)(struct backend *backend); /* waits until all requests are done; returns -1 after fail() if an id on the GPU was not a row */
    /* Returns where `field`, one of the table's layout, is for the rows in host memory. */
    struct rows_view (*rows_view)(struct backend *backend, const struct backend_table *table, const struct record_field *field);

    /* For rows that processes share; NULL without a GPU. host_pin() makes the GPU address host memory until host_unpin(). host_copy() copies from the
     * GPU's memory to the host's in the order of `stream`, and waits. rows_send() copies the values of the request, which are on the GPU: row i of
     * them to row places[i] of home [.. x dim], which is pinned; UINT32_MAX: not. It waits. */
    int (*host_pin)(struct backend *backend, void *memory, uint64_t bytes);
    void (*host_unpin)(struct backend *backend, void *memory, uint64_t bytes);
    int (*host_copy)(struct backend *backend, void *to, const void *from, uint64_t bytes, void *stream);
    int (*rows_send)(struct backend *backend, const struct rows_request *request, const uint32_t *places, float *home);

    /* An index of keys on the GPU, beside that of the host (rows/keys.h); NULL without a GPU. Return 0, or -1 after fail().
     * keys_open: *index is NULL if the GPU has no space for it. keys_set: makes the index anew from the rows that the host has. keys_counts: copies
     * the rows to the host, whose counts and numbers of calls are older. keys_find: finds the keys of a call, in memory of the host or the GPU, and
     * waits; marks the rows that have them with the number `plan`, unless it is 0. keys_victims: chooses the keys that leave, the first to leave
     * first; rows that are marked with `plan` stay. highest: no rank is above it. keys_commit: makes the call's change. */
    int (*keys_open)(struct backend *backend, uint64_t capacity, uint64_t secret, enum keys_evict evict, struct key_index **index);
    void (*keys_close)(struct backend *backend, struct key_index *index);
    int (*keys_set)(struct backend *backend, struct key_index *index, const struct key_row *rows, uint64_t used, uint64_t keys);
    int (*keys_counts)(struct backend *backend, const struct key_index *index, struct key_row *rows);
    int (*keys_find)(struct backend *backend, struct key_index *index, const uint64_t *keys, uint64_t count, uint64_t plan, void *stream,
                     struct key_finding *found);
    int (*keys_victims)(struct backend *backend, struct key_index *index, uint64_t wanted, uint64_t plan, uint64_t highest, uint32_t *rows);
    int (*keys_commit)(struct backend *backend, struct key_index *index, const struct key_change *change, void *stream);

    /* For tokens on the GPU; NULL without a GPU. rows: on the GPU: the rows that their n-grams name (ngram_row() in draws.h). */
    int (*ngrams)(struct backend *backend, const struct ngram_law *law, const struct ngram_tokens *of, int64_t *rows, void *stream);

    /* Writes to rows[..] which rows table_spec.gpu_cache keeps on the GPU now, in any order, at most `most`; *count: how many. */
    int (*rows_cached)(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count);

    /* Draws walks first .. first + count - 1 of an epoch over the source's graph. ids: [count x length] on the host; NULL: they stay in the
     * backend's memory, to measure the time. Returns when all are drawn. */
    int (*draw_walks)(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

    int (*hogwild)(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
    int (*topk)(struct backend *backend, const struct topk_request *request);
    /* Spreads rows over a graph (finished.h). Returns 1, without a change, if the GPU has not enough free memory. */
    int (*filter)(struct backend *backend, const struct filter_request *request);

    /* Solver for rows of new lists (finished.h). fold_open() copies the problem's arrays; it returns 1, and opens nothing, if the GPU has not
     * enough free memory. */
    int (*fold_open)(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
    int (*fold_solve)(struct backend_fold *fold, const struct fold_lists *lists);
    void (*fold_close)(struct backend_fold *fold);

    /* Copies of one table on several GPUs (hogwild.h); NULL for a backend without a GPU. tables[i] belongs to backends[i]; all have the same spec.
     * copies_open() copies the rows of tables[0] to the others; it returns 1, and opens nothing, if some rows are not on the GPUs or the GPUs
     * cannot address each other's memory. No other call on these backends may run at the same time. */
    int (*copies_open)(struct backend *const *backends, struct backend_table *const *tables, unsigned count, struct backend_copies **copies);
    int (*copies_merge)(struct backend_copies *copies);
    void (*copies_close)(struct backend_copies *copies); /* NULL: does nothing */

    /* Measuring (below); NULL without a GPU. */
    int (*bench_transfer)(struct backend *backend, const struct bench_request *request, struct bench_times *times);
    int (*bench_limits)(struct backend *backend, struct bench_limits *limits);
};

extern const struct backend_ops backend_cpu, backend_cuda;

/* Rows that a batch touches, and its blocks: means over a few batches from all parts of an epoch, found by host_count_rows(). */
struct touched_rows {
    double all, cold;               /* all: rows, counted once for each occurrence; cold: those with ids of at least `hot` */
    double distinct, distinct_cold; /* rows, each once */
};
struct batch_rows {
    double blocks, pairs, terms; /* means of a batch; the block of negatives that a batch shares is not counted; terms: as in example_sizes */
    struct touched_rows targets, contexts;
};
/* Counts the rows of batches of source->batch examples; held-out examples are counted, too. Returns 0, or -1 after fail(). */
int host_count_rows(const struct example_source *source, uint64_t hot, struct batch_rows *mean);

/* ---- all backends (backends.c) ---- */

extern const struct backend_ops *const backends[]; /* best first, ends with NULL; any machine can open the last one */

const struct backend_ops *backend_named(const char *name); /* NULL if no backend has this name */
const struct backend_ops *backend_best(void);              /* returns the first of these that this machine can open */
const struct backend_ops *backend_without_gpu(void);       /* the first that needs no GPU */

/* ==== stores ====
 *
 * How a table's records are laid out in memory, for backends and plans. Weights and state share a record if they are in the same place; otherwise
 * there are two stores with the same row numbers (drawn at table_spec). */

/* Alignment of records, in bytes. Memory delivers a line of 128 bytes at a time, so records begin on lines, unless that would add more than half
 * of a record. Then they begin at multiples of 32: a record of 136 bytes occupies 160. */
enum { STORE_LINE = 128, STORE_SHORT = 32 };

FN uint64_t store_stride(uint64_t record) {
    uint64_t lines = (record + STORE_LINE - 1) / STORE_LINE * STORE_LINE;
    return record >= STORE_LINE && (lines - record) * 2 <= record ? lines : (record + STORE_SHORT - 1) / STORE_SHORT * STORE_SHORT;
}

struct store_shape {
    enum place place;
    uint64_t stride;   /* bytes of a record, with padding */
    uint64_t gpu_rows; /* rows below this number are on the GPU: with place gpu all rows, otherwise the hot rows */
    uint64_t on_gpu, on_host; /* number of rows on the GPU; on the host */
};

struct table_shape {
    unsigned stores;  /* 1: weights and state share a record; 2: the state is in store[1] */
    uint64_t weights; /* bytes of the weights; in a shared record, the state follows them */
    uint64_t state;   /* bytes of the state; 0: records have no state */
    struct store_shape store[2];
};

FN struct store_shape store_shape(const struct table_spec *spec, enum place place, uint64_t record, int gpu) {
    struct store_shape shape;
    uint64_t hot = spec->hot_rows < spec->rows ? spec->hot_rows : spec->rows;
    if (hot < spec->first_row || !gpu) hot = spec->first_row;
    shape.place = place;
    shape.stride = store_stride(record);
    shape.gpu_rows = gpu && place == PLACE_GPU ? spec->rows : hot;
    shape.on_gpu = shape.gpu_rows - spec->first_row;
    shape.on_host = spec->rows - shape.gpu_rows;
    return shape;
}

/* Returns the shape of a table's stores. gpu: 1 if the backend has a GPU; without one, the places pinned and gpu are both plain host memory, and
 * no row is hot. */
FN struct table_shape table_shape(const struct table_spec *spec, int gpu) {
    struct table_shape shape;
    const struct record_layout *layout = &spec->layout;
    enum place weights = spec->weights, state = spec->state;
    if (!gpu && weights == PLACE_GPU) weights = PLACE_PINNED;
    if (!gpu && state == PLACE_GPU) state = PLACE_PINNED;
    shape.weights = record_weights_bytes(layout);
    shape.state = record_state_bytes(layout);
    shape.stores = shape.state && weights != state ? 2 : 1;
    shape.store[0] = store_shape(spec, weights, shape.weights + (shape.stores == 1 ? shape.state : 0), gpu);
    shape.store[1] = store_shape(spec, state, shape.state, gpu);
    return shape;
}

/* ==== measuring ====
 *
 * Calls for measuring, of a backend with a GPU (bench_transfer and bench_limits of backend_ops). One copies rows between a table and an array on the
 * GPU; the other makes plain copies, which are the upper limit of its speed.
 *
 * Times are medians of BENCH_REPEATS copies, after BENCH_WARM that are not counted: from the call to the last byte, including sending ids from the
 * host.
 */

enum { BENCH_REPEATS = 11, BENCH_WARM = 3 };

/* Order of the ids: random; sorted; or random, and sorted by the GPU as part of the measured time. */
enum bench_order { BENCH_RANDOM, BENCH_SORTED, BENCH_SORTING };

struct bench_request {
    struct backend_table *table; /* in any place; without state */
    uint64_t rows;               /* number of distinct rows that are copied, drawn at random */
    enum bench_order order;
};
struct bench_times {
    double to, from; /* seconds from the table to the array; from the array to the table */
    double both;     /* seconds for both directions at once, with two arrays; 0 for tables in files, whose rows the host's threads copy */
};

/* Bytes a second of plain copies: from host to GPU; from GPU to host; both at once, added; within the GPU, where each byte is counted as read and
 * as written. */
struct bench_limits {
    double to, from, both, device;
};

/* ==== for backends: the host's threads ====
 *
 * Work of the host's threads for backends: zeroing memory, packing and unpacking rows, copying rows to and from a mapped file. Plain C, which C++
 * files can include. */

struct pool; /* src/base/pool.h */

/* Zeroes memory by all threads, so that every page is allocated. */
int host_zero(struct pool *pool, void *memory, uint64_t bytes);

/* Returns 0 if the table has rows first .. first + count - 1; -1 after fail(). */
int host_check_rows(const struct table_spec *spec, uint64_t first, uint64_t count);

/* Records in memory, padded with zeros to the layout's span. weights: address of the first row's weights; state: of its first slot; strides: bytes
 * from row to row. host_pack() copies these to packed records (pool = NULL: by the calling thread only), host_unpack() does the reverse. */
struct host_records {
    char *weights, *state;
    uint64_t weights_stride, state_stride;
    const uint32_t *row; /* NULL: record i is the i-th one at `weights` and `state`. Otherwise [count]: record i is the row[i]-th one there */
    char *hot[2];        /* [weights, state] if `row` is given: if row[i] is below hot_rows, record i is the i-th one at `hot` instead */
    uint64_t hot_rows[2];
};
int host_pack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count, void *packed);
int host_unpack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count, const void *packed);

/* For rows of `stride` bytes: host_gather() copies row ids[i] of `home` to row i of `rows`, host_scatter() copies row i of `rows` to row ids[i] of
 * `home`. */
int host_gather(struct pool *pool, char *rows, const char *home, const uint32_t *ids, uint64_t count, uint64_t stride);
int host_scatter(struct pool *pool, char *home, const char *rows, const uint32_t *ids, uint64_t count, uint64_t stride);

/* Opens a pool of threads (0: one for each core); for files that cannot include src/base/pool.h. */
struct pool *host_pool_open(unsigned threads);
void host_pool_close(struct pool *pool);
unsigned host_pool_threads(const struct pool *pool);

#endif
