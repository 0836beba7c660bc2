/* planner: computes, before tables are allocated, how many bytes and rows a run needs and how fast it can be. It chooses batch, places and hot rows,
 * says whether the run fits and what to change if not, and prints the plan as lines or JSON. host_count_rows() counts the rows of a batch; the
 * backend itself computes the bytes that it will allocate (`estimate` in backend.h). */
#ifndef SPTX_PLANNER_H
#define SPTX_PLANNER_H

#include "config/defaults_by_size.h"
#include "examples.h"
#include "kernels/backend.h"
#include "rows/table.h"

enum { BESIDE_BYTES = 64 << 10 }; /* bytes of a checkpoint besides its tables: headers, state.ini, config.ini, metrics.jsonl, and the file system's
                                   * rounding */

/* The machine for which a plan is made: this one or any other, with or without a GPU. */
struct planner_machine {
    const struct backend_ops *ops; /* backend that says what memory it will need; it need not be open */
    struct backend_info info;
    unsigned local; /* number of ranks that share this host's memory; 0 or 1: only this process */
    uint64_t host_available;   /* bytes of host memory that all its ranks together can still allocate; 0: unknown */
    uint64_t disk_free;        /* free bytes of the disk of run.dir; 0 or UINT64_MAX: unknown */
    uint64_t disk_older;       /* bytes of checkpoints already in run.dir, which a new run may replace */
    struct bench_limits rates; /* measured speeds of plain copies, in bytes a second; zeros: unknown */
};

/* The plan of a run: its sizes, the chosen batch, places and hot rows, and whether it fits. */
struct plan {
    uint64_t rows, items; /* rows of the target table; of the context table (items). The target table's other rows are lists or n-grams */
    uint64_t blank_rows;   /* number of rows at the end of the target table that need no memory */
    uint64_t first_target; /* id of the target table's first row: 0, or the first list if items are never targets */
    uint64_t tokens, sentences;
    uint32_t dim;
    unsigned ranks; /* number of ranks that divide the columns among them; 1: this process has all columns. All numbers below are for the rank with
                     * the most columns */
    uint32_t columns;
    struct record_layout layout, whole; /* of a record: `layout` has `columns` columns, `whole` all columns */
    uint64_t target_bytes, target_state_bytes, context_bytes, context_state_bytes; /* bytes of weights and of optimizer state; 0 for a state that
                                                                                    * is in the same records as the weights */
    int one_record_target, one_record_context;
    enum place target, target_state, context, context_state; /* chosen places; with the CPU backend, gpu is stored as pinned */
    uint64_t gpu_bytes, pinned_bytes, plain_bytes, file_bytes; /* bytes of the tables in each place, without hot rows */
    uint64_t hot_bytes;  /* bytes of hot rows, which are only on the GPU and not in the table's place on the host */
    uint64_t halved_bytes, by_row_bytes; /* bytes of both tables in bfloat16; bytes if Adagrad kept one number for each row. 0: that saves nothing
                                          * or is impossible, or all rows are on the GPU */
    uint64_t work_bytes; /* bytes of batches in flight and scratch: on the GPU, or without one on the host */
    uint64_t snapshot_bytes; /* most bytes of copies of rows that change while a checkpoint is written; 0: training waits for it */
    uint64_t evaluate_bytes; /* for train.evaluate; 0: it is not set */
    uint64_t vocab_bytes, draw_bytes, stream_bytes; /* stream_bytes: of the mapped file; host_needed contains them only if they are pinned */
    int graph;                        /* 1: the corpus is a graph, whose walks are the sentences; stream_* are the graph's bytes */
    uint64_t stream_gpu;              /* bytes of the stream that are on the GPU: all, or 0 if the GPU reads it over the link */
    uint64_t stream_pinned;           /* bytes of the stream in pinned memory: all if a GPU reads it over the link, otherwise 0 */
    uint64_t host_needed, gpu_needed; /* bytes that the run needs; it fits if they are at most host_available and gpu_available */
    uint64_t host_available, gpu_available; /* host_available = 0: unknown, taken as enough */
    uint64_t checkpoint_bytes;        /* bytes of a checkpoint, with all its files */
    uint64_t disk_needed;             /* bytes of a checkpoint and of the tables' working files on the disk */
    uint64_t disk_free, disk_older;   /* as in struct planner_machine */
    uint64_t hot_rows;
    double hot_hits;           /* share of all touches of target rows that are of hot rows */
    uint64_t batch;            /* settled train.batch */
    struct example_sizes capacity; /* sizes of the largest batch; zeros if the number of examples alone limits them */
    double batch_blocks, batch_targets, batch_contexts, batch_pairs; /* expected numbers of a step; targets and contexts are distinct rows */
    double link_bytes, memory_bytes;                                 /* bytes that a step is expected to move over the link, and in memory */
    double floor_pairs;            /* pairs a second at which the link or the memory becomes the limit; 0: unknown */
    int floor_link;                /* 1: the link is the limit; 0: the memory */
    int fits_host, fits_gpu, fits; /* fits: 1: host and GPU have enough memory, and training can reach every table where it is */
    int fits_disk;                 /* 1: the disk of run.dir has space for a checkpoint, now or after the older run in run.dir is removed */
    char defaults[DEFAULTS_TEXT];  /* text: keys whose defaults depend on the size of the data, with their values; "": none */
    char advice[HOGWILD_WHY];      /* text: what to change if the plan does not fit; "": it fits */
};

/* Returns the bytes of both tables with their state, in all places. */
static inline uint64_t plan_table_bytes(const struct plan *plan) {
    return plan->target_bytes + plan->target_state_bytes + plan->context_bytes + plan->context_state_bytes;
}

/* Chooses train.batch, places and hot rows for this machine. Returns 0 even if the plan does not fit (see plan->fits), or -1 after fail(). */
int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab, const struct examples *examples,
                 const struct planner_machine *machine);

/* Computes floor_pairs and floor_link from these rates. */
void planner_set_floor(struct plan *plan, const struct bench_limits *rates);

void planner_print(const struct plan *plan, const struct config *config, int to_stdout);
/* Prints the plan's numbers as one line of JSON on stdout. */
void planner_print_json(const struct plan *plan);

#endif
