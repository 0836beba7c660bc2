/* planner: computes bytes, rows and expected speed before anything is allocated; tells whether a run fits, and what to change if
 * not.
 *
 *   planner.c  settles batch, places and hot rows, adds up bytes  advice.c      what to change if a plan does not fit
 *   expected_rows.c  which rows a batch touches                   plan_print.c  prints a plan as lines or as JSON
 *
 * The backend itself estimates what it will allocate (`estimate` in backend.h).
 */
#ifndef SPTX_PLANNER_H
#define SPTX_PLANNER_H

#include "examples.h"
#include "config/defaults_by_size.h"
#include "kernels/bench.h"
#include "rows/table.h"

/* The machine that a plan is made for. It may be imagined: a plan for a GPU needs no GPU. */
struct planner_machine {
    const struct backend_ops *ops; /* says what memory it will need; need not be open */
    struct backend_info info;
    unsigned local; /* number of ranks that share this host's memory; 0 or 1: this process has it alone */
    uint64_t host_available;   /* bytes of host memory that all its ranks together can still allocate; 0: not known */
    struct bench_limits rates; /* measured rates of plain copies, in bytes a second; zeros: not known */
};

/* The plan of a run: its sizes, its settled batch, places and hot rows, and whether it fits. */
struct plan {
    uint64_t rows, items; /* rows: of the target table; items: of the context table. The difference is lists or n-grams */
    uint64_t blank_rows;   /* number of last rows of the target table that take no memory */
    uint64_t first_target; /* id of the target table's first row: 0, or the first list if no item is a target */
    uint64_t tokens, sentences;
    uint32_t dim;
    unsigned ranks; /* number of ranks that share out the columns; 1: this process has all. All numbers below are for the rank
                     * with the most columns */
    uint32_t columns;
    struct record_layout layout; /* record of a row with `columns` columns */
    uint64_t target_bytes, target_state_bytes, context_bytes, context_state_bytes; /* bytes of weights and of optimizer state;
                                                                                    * state is 0 if it is in the same records as
                                                                                    * the weights */
    int one_record_target, one_record_context;
    enum place target, target_state, context, context_state;   /* settled places; on the CPU backend, gpu is stored as pinned */
    uint64_t gpu_bytes, pinned_bytes, plain_bytes, file_bytes; /* bytes of the tables by place, without hot rows */
    uint64_t hot_bytes;  /* bytes of hot rows, which are on the GPU only and not in their table's pinned or file place */
    uint64_t work_bytes; /* bytes of batches in flight and scratch memory, on the GPU, or on the host without a GPU */
    uint64_t vocab_bytes, draw_bytes, stream_bytes; /* stream: mapped from a file, so it is not part of host_needed unless it is
                                                     * pinned */
    int graph;                        /* 1: the corpus is a graph, whose walks serve as sentences; stream_* then count the
                                       * graph's bytes */
    uint64_t stream_gpu;              /* bytes of the stream on the GPU: all, or 0 if examples are read over the link */
    uint64_t stream_pinned;           /* bytes of the stream in pinned host memory: all if a GPU reads examples over the link,
                                       * otherwise 0 */
    uint64_t host_needed, gpu_needed; /* bytes that the run needs; must not exceed the bytes available below */
    uint64_t host_available, gpu_available; /* host: 0 if not known, which counts as enough */
    uint64_t hot_rows;
    double hot_hits;           /* share of target touches that are to a hot row */
    uint64_t batch;            /* settled train.batch */
    struct example_sizes capacity; /* size of the largest batch; zeros if the number of its examples bounds the size, so that
                                    * stages need not be told */
    double batch_blocks, batch_targets, batch_contexts, batch_pairs; /* expected in a step; targets and contexts are distinct
                                                                      * rows */
    double link_bytes, memory_bytes;                                 /* bytes expected to be moved in a step */
    double floor_pairs;            /* pairs a second at which the link or the memory is saturated; 0 if not known */
    int floor_link;                /* 1: the link is the bottleneck; 0: the memory is */
    int fits_host, fits_gpu, fits; /* fits: host and GPU are large enough, and training can reach every table where it is placed */
    char defaults[DEFAULTS_TEXT];  /* text: the keys whose default was changed to fit the data's size, with their values; or "" */
    char advice[HOGWILD_WHY];      /* what to change if the plan does not fit; "" otherwise */
};

/* Settles train.batch, places and hot rows for this machine, from counts alone. Returns 0 even if the plan does not fit
 * (plan->fits), or -1 after fail(). */
int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab, const struct examples *examples,
                 const struct planner_machine *machine);

/* Computes floor_pairs and floor_link from these rates. */
void planner_set_floor(struct plan *plan, const struct bench_limits *rates);

void planner_print(const struct plan *plan, const struct config *config, int to_stdout);
/* Prints the same numbers as one line of JSON on stdout. */
void planner_print_json(const struct plan *plan);

#endif
