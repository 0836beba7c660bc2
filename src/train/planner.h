/* planner: computes, before anything is allocated, how many bytes and rows a run needs and how fast it will be. It says whether the
 * run fits and, if it does not, what to change.
 *
 * It settles batch, places and hot rows, adds up bytes, says what to change if a plan does not fit, and prints a plan as lines or as
 * JSON. host_count_rows() counts which rows a batch touches. The backend itself computes the bytes that it will allocate (`estimate` in
 * backend.h).
 */
#ifndef SPTX_PLANNER_H
#define SPTX_PLANNER_H

#include "config/defaults_by_size.h"
#include "examples.h"
#include "kernels/backend.h"
#include "rows/table.h"

enum { BESIDE_BYTES = 64 << 10 }; /* bytes of a checkpoint beside its tables: headers, state.ini, config.ini, metrics.jsonl, and
                                   * rounding by the file system */

/* The machine for which a plan is made. It need not exist: a plan for a GPU needs no GPU. */
struct planner_machine {
    const struct backend_ops *ops; /* says what memory it will need; need not be open */
    struct backend_info info;
    unsigned local; /* number of ranks that share this host's memory; 0 or 1: this process shares it with no other rank */
    uint64_t host_available;   /* bytes of host memory that all its ranks together can still allocate; 0: unknown */
    uint64_t disk_free;        /* free bytes of the disk of run.dir; 0 or UINT64_MAX: unknown */
    uint64_t disk_older;       /* bytes of the checkpoints that are in run.dir now, which a new run may replace */
    struct bench_limits rates; /* measured rates of plain copies, in bytes a second; zeros: unknown */
};

/* The plan of a run: its sizes, its settled batch, places and hot rows, and whether it fits. */
struct plan {
    uint64_t rows, items; /* rows: of the target table; items: of the context table. The other rows of the target table are lists
                           * or n-grams */
    uint64_t blank_rows;   /* number of rows at the end of the target table that need no memory */
    uint64_t first_target; /* id of the target table's first row: 0, or the first list if no item is a target */
    uint64_t tokens, sentences;
    uint32_t dim;
    unsigned ranks; /* number of ranks that share out the columns; 1: this process has all columns. The numbers below are for the
                     * rank that has most columns */
    uint32_t columns;
    struct record_layout layout; /* layout of a record of `columns` columns */
    uint64_t target_bytes, target_state_bytes, context_bytes, context_state_bytes; /* bytes of the weights and of the optimizer
                                                                                    * state; the state's are 0 if weights and
                                                                                    * state are in the same records */
    int one_record_target, one_record_context;
    enum place target, target_state, context, context_state; /* settled; with the CPU backend, gpu is recorded as pinned */
    uint64_t gpu_bytes, pinned_bytes, plain_bytes, file_bytes; /* bytes of the tables in each place, without hot rows */
    uint64_t hot_bytes;  /* bytes of hot rows; these are only on the GPU, not in their table's place on the host */
    uint64_t halved_bytes, by_row_bytes; /* bytes of both tables if they were bfloat16, and if Adagrad kept one number a row. Each is 0 if
                                          * that saves nothing or cannot be chosen, or if all rows are on the GPU */
    uint64_t work_bytes; /* bytes of batches in flight and of scratch; on the GPU or, without a GPU, on the host */
    uint64_t snapshot_bytes; /* most bytes of copies of rows that change while a checkpoint is written; 0: training waits then */
    uint64_t vocab_bytes, draw_bytes, stream_bytes; /* stream_bytes: the stream is mapped from a file, so host_needed contains it
                                                     * only if it is pinned */
    int graph;                        /* 1: the corpus is a graph, whose walks are the sentences; stream_* are then the graph's
                                       * bytes */
    uint64_t stream_gpu;              /* bytes of the stream on the GPU: all of them; or 0 if the GPU reads it over the link */
    uint64_t stream_pinned;           /* bytes of the stream in pinned host memory: all of them if a GPU reads it over the link;
                                       * otherwise 0 */
    uint64_t host_needed, gpu_needed; /* bytes that the run needs; they must not exceed host_available and gpu_available */
    uint64_t host_available, gpu_available; /* host_available = 0: unknown, and counts as enough */
    uint64_t checkpoint_bytes;        /* bytes of a checkpoint with the files beside it */
    uint64_t disk_needed;             /* bytes of a checkpoint and of the tables' working files */
    uint64_t disk_free, disk_older;   /* as in struct planner_machine */
    uint64_t hot_rows;
    double hot_hits;           /* of all touches of targets: the share whose row is hot */
    uint64_t batch;            /* settled train.batch */
    struct example_sizes capacity; /* sizes of the largest batch; zeros if the number of its examples bounds its sizes, so that
                                    * stages need no other bound */
    double batch_blocks, batch_targets, batch_contexts, batch_pairs; /* expected numbers of a step; targets and contexts count
                                                                      * distinct rows */
    double link_bytes, memory_bytes;                                 /* bytes that a step is expected to move over the link, and
                                                                      * in memory */
    double floor_pairs;            /* pairs per second at which the link or the memory is saturated; 0: unknown */
    int floor_link;                /* 1: the link limits the speed; 0: the memory does */
    int fits_host, fits_gpu, fits; /* fits: 1: host and GPU have enough memory, and training can reach every table in its place */
    int fits_disk;                 /* 1: the disk of run.dir has space for a checkpoint, at least if what an older run has there goes */
    char defaults[DEFAULTS_TEXT];  /* text: each key whose default was chosen by the size of the data, with its value; "" if
                                    * there is no such key */
    char advice[HOGWILD_WHY];      /* text: what to change if the plan does not fit; otherwise "" */
};

/* Returns the bytes of both tables with their state, wherever they are. */
static inline uint64_t plan_table_bytes(const struct plan *plan) {
    return plan->target_bytes + plan->target_state_bytes + plan->context_bytes + plan->context_state_bytes;
}

/* Settles train.batch, places and hot rows for this machine. Returns 0 even if the plan does not fit
 * (plan->fits), or -1 after fail(). */
int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab, const struct examples *examples,
                 const struct planner_machine *machine);

/* Computes floor_pairs and floor_link from these rates. */
void planner_set_floor(struct plan *plan, const struct bench_limits *rates);

void planner_print(const struct plan *plan, const struct config *config, int to_stdout);
/* Prints the same numbers as one line of JSON on stdout. */
void planner_print_json(const struct plan *plan);

#endif
