/* planner: bytes, rows and floors before anything is allocated; says whether a run fits and what to change if not. */
#ifndef SPTX_PLANNER_H
#define SPTX_PLANNER_H

#include "examples.h"
#include "rows/table.h"

struct plan {
    uint64_t rows, tokens, sentences;
    uint32_t dim;
    struct record_layout layout;
    uint64_t target_bytes, target_state_bytes, context_bytes, context_state_bytes; /* state 0 where it shares a record */
    int one_record_target, one_record_context;
    enum place target, target_state, context, context_state; /* settled; on the CPU backend gpu is said as pinned */
    uint64_t gpu_bytes, pinned_bytes, plain_bytes, file_bytes; /* tables by place, without their hot rows */
    uint64_t hot_bytes; /* hot rows of pinned and file places, on the GPU and nowhere else */
    uint64_t stage_bytes;      /* batches in flight and workers' scratch */
    uint64_t vocab_bytes, draw_bytes, stream_bytes; /* stream: mapped, not counted as needed unless it is pinned */
    uint64_t stream_gpu;    /* of it on the GPU: all, or 0 where examples are read over the link */
    uint64_t stream_pinned; /* of it pinned on the host, then: all */
    uint64_t host_needed, gpu_needed;               /* sums that must fit */
    uint64_t host_available, gpu_available;
    uint64_t hot_rows;
    double hot_hits;           /* share of target touches that hot rows catch */
    uint64_t batch;            /* settled */
    struct example_sizes room; /* for the largest batch, where stages must be told; zeros where its examples bound it */
    double batch_blocks, batch_targets, batch_contexts, batch_pairs; /* expected a step: distinct rows */
    double link_bytes, memory_bytes;                                 /* expected a step */
    double floor_pairs;        /* pairs/s at which link or memory is full; 0 where unknown */
    int fits_host, fits_gpu, fits; /* fits: both */
    char advice[512];          /* what to change where it does not fit; "" otherwise */
};

/* Settles train.batch, places and hot rows for this backend from counts alone. 0 also where it does not fit. */
int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab, const struct examples *examples,
                 const struct backend_info *machine, int cuda);
void planner_print(const struct plan *plan, const struct config *config, int to_stdout);
/* The same numbers as one line of JSON on stdout, for machines. */
void planner_print_json(const struct plan *plan);

#endif
