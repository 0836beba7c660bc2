/* planner: bytes, rows and floors before anything is allocated; says whether a run fits and what to change if not.
 *
 *   planner.c  settles batch, places and hot rows, and adds up    advice.c      what to change where it does not fit
 *   expected_rows.c  which rows a batch touches                   plan_print.c  for people and for machines
 *
 * What a backend allocates the backend says (estimate in backend.h).
 */
#ifndef SPTX_PLANNER_H
#define SPTX_PLANNER_H

#include "examples.h"
#include "config/defaults_by_size.h"
#include "kernels/bench.h"
#include "rows/table.h"

/* The machine that a plan is made for: a machine that is here, or one that is imagined. */
struct planner_machine {
    const struct backend_ops *ops; /* says what it will allocate; need not be open */
    struct backend_info info;
    unsigned local; /* ranks that share this host; 0 or 1: it is this process's */
    uint64_t host_available;   /* bytes of the host that its ranks can have beside what they have; 0: not known */
    struct bench_limits rates; /* of plain copies, bytes a second, where they were measured; zeros: not known */
};

struct plan {
    uint64_t rows, items; /* items: of the rows, those of the context table; the others are lists or n-grams */
    uint64_t blank_rows;   /* so many last rows of the target table take no memory */
    uint64_t first_target; /* the target table's first row: 0, or the first list where no item is a target */
    uint64_t tokens, sentences;
    uint32_t dim;
    unsigned ranks; /* that share out the columns; 1: this process has all. All below is of the rank that has the most */
    uint32_t columns;
    struct record_layout layout; /* of those columns */
    uint64_t target_bytes, target_state_bytes, context_bytes, context_state_bytes; /* state 0 where it shares a record */
    int one_record_target, one_record_context;
    enum place target, target_state, context, context_state;   /* settled; on the CPU backend gpu is said as pinned */
    uint64_t gpu_bytes, pinned_bytes, plain_bytes, file_bytes; /* tables by place, without their hot rows */
    uint64_t hot_bytes;  /* hot rows of pinned and file places, on the GPU and nowhere else */
    uint64_t work_bytes; /* batches in flight and scratch: of the GPU, or of the host where there is none */
    uint64_t vocab_bytes, draw_bytes, stream_bytes; /* stream: mapped, not counted as needed unless it is pinned */
    int graph;                        /* 1: the corpus is a graph, whose walks are the sentences; stream_* are its bytes */
    uint64_t stream_gpu;              /* of it on the GPU: all, or 0 where examples are read over the link */
    uint64_t stream_pinned;           /* of it pinned on the host, then: all */
    uint64_t host_needed, gpu_needed; /* sums that must fit */
    uint64_t host_available, gpu_available; /* host: 0 where it is not known, which fits */
    uint64_t hot_rows;
    double hot_hits;           /* share of target touches that hot rows catch */
    uint64_t batch;            /* settled */
    struct example_sizes capacity; /* for the largest batch, where stages must be told; zeros where its examples bound it */
    double batch_blocks, batch_targets, batch_contexts, batch_pairs; /* expected a step: distinct rows */
    double link_bytes, memory_bytes;                                 /* expected a step */
    double floor_pairs;            /* pairs/s at which link or memory is full; 0 where unknown */
    int floor_link;                /* it is the link that is full first */
    int fits_host, fits_gpu, fits; /* fits: both, and no table lies where it cannot */
    char defaults[DEFAULTS_TEXT];  /* text: the keys whose default was changed to fit the data's size, with their values; or "" */
    char advice[HOGWILD_WHY];      /* what to change where it does not fit; "" otherwise */
};

/* Settles train.batch, places and hot rows for this machine from counts alone. 0 also where it does not fit. */
int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab, const struct examples *examples,
                 const struct planner_machine *machine);

/* floor_pairs and floor_link by these rates. */
void planner_set_floor(struct plan *plan, const struct bench_limits *rates);

void planner_print(const struct plan *plan, const struct config *config, int to_stdout);
/* Prints the same numbers as one line of JSON on stdout, for machines. */
void planner_print_json(const struct plan *plan);

#endif
