/* cpu: shared by the files of the CPU backend. The pinned and gpu places are plain memory here, so no row has to be copied: a step
 * changes the tables themselves.
 *
 *   examples  (epoch, example) -> blocks          step, update   a batch's blocks -> gradients -> new rows, exact
 *   batch     examples -> a stage's arrays        hogwild        blocks -> rows at once, lock-free
 *   step_shared   a batch's blocks with the negatives that they share
 *   by_id     rows for a library's caller         frozen         leaves out of a batch what frozen rows make useless
 *   estimate  all arrays by name: how large they will be, making them so, how large they are
 */
#ifndef SPTX_CPU_H
#define SPTX_CPU_H

#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "kernels/stores.h"
#include "rows.h"

/* ---- tables ---- */

struct cpu_store {
    char *memory;    /* [rows of the table x stride], page-aligned, a separate mapping */
    uintptr_t base;  /* row r is at base + r x stride. A number, since C has no pointer to before an array (first_row may be
                      * above 0) */
    uint64_t stride; /* bytes, by store_stride() */
    uint64_t bytes;  /* size of `memory` */
    int in_file;
};

struct backend_table {
    struct table_spec spec;
    struct cpu_store weights, state; /* state: all zeros if the state shares the record or there is no state */
    uintptr_t state_base;            /* the state of row r is at state_base + r x state_stride, in whichever store */
    uint64_t state_stride;
    struct backend_table *next;
};

/* Return a row's weights, or a slot: floats. Fields of bfloat16 are read and written only by cpu_read_row(), cpu_combine_rows(),
 * cpu_apply_rule() and by_id.c. */
FN void *cpu_weights(const struct backend_table *t, uint32_t row) {
    return (void *)(t->weights.base + row * t->weights.stride);
}
FN void *cpu_slot(const struct backend_table *t, uint32_t row, uint32_t slot) {
    return (void *)(t->state_base + row * t->state_stride + record_slot(&t->spec.layout, slot)->offset);
}
/* Returns 1 if the weights are bfloat16. */
FN int cpu_halves(const struct backend_table *t) {
    return t->spec.layout.field[RECORD_WEIGHTS].type == VALUE_BFLOAT16;
}
/* Returns a row's weights as floats: the row itself, or its copy in spare[span]. */
FN const float *cpu_read_row(const struct cpu_rows *rows, const struct backend_table *t, uint32_t row, float *spare) {
    if (!cpu_halves(t)) return (const float *)cpu_weights(t, row);
    rows->widen((const uint16_t *)cpu_weights(t, row), t->spec.layout.span, spare);
    return spare;
}
/* Computes sum[dim] += factors[i x stride] x the weights of rows[i], for rising i. */
FN void cpu_combine_rows(const struct cpu_rows *rows, int halves, float *sum, const float *factors, uint64_t stride,
                         const void *const *weights, uint64_t count, uint32_t dim) {
    if (halves)
        rows->combine_kept(sum, factors, stride, (const uint16_t *const *)weights, count, dim);
    else
        rows->combine(sum, factors, stride, (const float *const *)weights, count, dim);
}
/* Returns the row's count of updates; only if layout.counted. */
FN uint32_t *cpu_updates(const struct backend_table *t, uint32_t row) {
    return (uint32_t *)(t->state_base + row * t->state_stride + record_updates(&t->spec.layout)->offset);
}

/* ---- blocks ---- */

struct cpu_block {
    uint64_t targets, contexts; /* index of its first target and context in the arrays of ids */
    uint32_t t, c, positives;   /* T, C, P */
    uint32_t predicted;         /* words that its targets predict: P, except with paths in a tree (example_paths) */
    uint32_t example;           /* the block's example, numbered among the examples that were built together */
};

/* Blocks in example order, with their ids. The arrays grow while blocks are built, and are reused. */
struct cpu_blocks {
    struct cpu_block *block;
    uint32_t *target, *context;
    float *weight; /* [contexts] weights of positives, which are a block's first contexts; NULL: all weigh 1 */
    uint64_t count, targets, contexts;
    uint64_t block_capacity, target_capacity, context_capacity, weight_capacity;
    uint64_t logits; /* the sum of T x C over the blocks; of C if targets are pooled */
};
void cpu_blocks_clear(struct cpu_blocks *blocks);
void cpu_blocks_release(struct cpu_blocks *blocks);

/* Scratch of one worker for building windows: some consecutive positions of one sentence, with the kept words around them. */
struct cpu_piece {
    uint32_t *id;     /* [count] kept ids */
    uint64_t *at;     /* [count] their corpus positions */
    uint64_t count, capacity, at_capacity;
    uint64_t first, end; /* the kept words at the wanted positions: id[first] .. id[end - 1] */
    uint32_t *walk;      /* [walks x length] if sentences are walks: the nodes of those that contain the wanted positions */
    uint64_t *start;     /* [walks + 1] the first position of each of these walks */
    uint64_t walk_capacity, start_capacity;
};
void cpu_piece_release(struct cpu_piece *piece);

/* Appends the blocks of examples [first, first + count) in the epoch's order; held_out as in batch_request. */
int cpu_build(const struct example_source *source, struct cpu_piece *piece, struct cpu_blocks *blocks, uint32_t epoch,
              uint64_t first, uint64_t count, int held_out);

/* Appends the block of negatives that a batch shares; `first`: the batch's first place in the epoch. Does nothing if negatives
 * are not shared. */
int cpu_build_shared(const struct example_source *source, struct cpu_blocks *blocks, uint32_t epoch, uint64_t first);

/* ---- a batch in its stage ---- */

enum {
    CPU_GRAIN = 128,             /* examples in a chunk, the unit in which workers build a batch */
    CPU_PIECE = 256,             /* most examples in a piece, the unit in which a lock-free worker builds blocks */
    CPU_PIECE_CONTEXTS = 1 << 18 /* most contexts that the examples of a piece could have together */
};

/* A batch, between make_batch() and step(). */
struct cpu_stage {
    struct cpu_blocks all;
    struct example_pool pool;
    struct shared_negatives shared;
    int weighted; /* 1: all.weight contains weights */
    uint64_t *target_starts, *context_starts; /* [blocks + 1], for batch_view */
    uint32_t *positives;
    uint64_t view_capacity;
    uint64_t *logit_starts;                 /* [blocks] index of a block's first coefficient */
    uint64_t *target_block, *context_block; /* [targets], [contexts] which block each occurrence belongs to */
    uint64_t logit_start_capacity, target_block_capacity, context_block_capacity;
    uint64_t words;
    struct step_result result;
};

/* Blocks that were built together, and where they begin in the batch's arrays. */
struct cpu_chunk {
    struct cpu_blocks blocks;
    uint64_t first_block, first_target, first_context;
};

/* Arrays in which batches are made and stepped. All stages use the same ones, since a call is done when it returns. */
struct cpu_shared {
    struct cpu_chunk *chunk; /* [chunk_capacity] */
    float *coefficients;     /* [logits]; with cosines then [targets + contexts]: a place's squares, later its row's factor in
                              * its own gradient */
    float *target_gradient;  /* [targets x span] */
    float *pooled;           /* [blocks x span] the vectors of pooled targets */
    double *losses;          /* [blocks] */
    float *shared_scores, *shared_rows, *context_gradient; /* only with shared negatives: step_shared.c gives their shapes */
    float *squares;          /* [2 x places of a side] only if ranks share the columns and the rule bounds a norm */
    uint64_t *keys, *spare;  /* [targets or contexts, the larger] row << 32 | occurrence, to be sorted; each worker uses a part */
    uint64_t chunk_capacity, coefficient_capacity, gradient_capacity, pooled_capacity, loss_capacity, key_capacity,
        spare_capacity, square_capacity, shared_score_capacity, shared_row_capacity, context_gradient_capacity;
};

/* Scratch of one worker; it grows as needed. */
struct cpu_scratch {
    struct cpu_piece piece;
    struct cpu_blocks blocks;   /* only for lock-free training */
    float *gradient;            /* [span] or more: lock-free training keeps its sums here */
    uint64_t gradient_capacity;
    float *
        rule_scratch; /* [span] for slot arguments that a rule does not use; then [4 x span]: a row's bfloat16 fields as floats */
    uint64_t rule_scratch_capacity;
    float *wide; /* [rows of a block x span] if weights are bfloat16: copies of the rows; in lock-free training then their
                  * gradients */
    uint64_t wide_capacity;
    float *logits; /* for lock-free training; in exact steps for losses other than word2vec's: cosines [logits of a block], spare
                    * [2 x C] */
    uint64_t logit_capacity;
    void **rows; /* pointers to rows, as arguments of cpu_rows */
    uint64_t row_capacity;
    struct hogwild_result part;
};

/* Upper bounds for the batches and examples of a source. */
struct cpu_sizes {
    struct example_sizes batch;   /* of a whole batch; zeros if not known before the batch is made */
    struct example_sizes example; /* of one example */
    uint32_t shared;              /* negatives that a batch's examples share */
    int weighted;                 /* 1: positives have weights */
    int alike;                    /* 1: most examples have nearly the largest size; 0: their sizes follow the lengths of their
                                   * lists */
    uint64_t chunks;              /* chunks in a batch */
    uint64_t piece;               /* examples that a lock-free worker builds together */
    uint64_t window;              /* kept words on each side of a cpu_piece; 0 if examples are not windows */
    struct walks walks;           /* only the sizes of walks; length 0: there is no graph */
};

struct backend {
    const struct backend_ops *ops;
    struct pool *pool;
    const struct cpu_rows *rows;
    struct ranks *ranks; /* the processes that share the columns; the caller's. NULL: this process has all columns */
    struct example_source source;
    struct cpu_sizes sizes; /* for the source */
    struct cpu_stage stage[BACKEND_STAGES];
    struct cpu_shared shared;
    struct cpu_scratch *scratch; /* [threads] */
    struct backend_table *tables;
    uint32_t *ids; /* the ids of a rows_request, written by the caller */
    uint64_t id_capacity;
};

int cpu_make_batch(struct backend *backend, unsigned stage, const struct batch_request *request);
int cpu_set_batch(struct backend *backend, unsigned stage, const struct batch_view *view);
int cpu_batch_view(struct backend *backend, unsigned stage, struct batch_view *view);
int cpu_index_batch(struct cpu_stage *stage); /* builds the index of a batch that a step needs */

/* frozen.c: leaves out of a batch what changes no row, if a table has frozen rows. All other rows get the same bytes as without
 * that. */
int cpu_leave_out_frozen(struct cpu_stage *stage, const struct step_request *request);

/* estimate.c. Arrays of known size get it before their first use; the others grow. */
struct cpu_sizes cpu_sizes(const struct example_source *source);
int cpu_reserve_batch(struct backend *backend, struct cpu_stage *stage);
struct cpu_step_needs {
    uint64_t span;
    uint32_t dim;
    struct loss_options loss;
    struct example_pool pool;
    int loss_only;
    int norms;  /* 1: squares of norms are summed over ranks */
    int halves; /* 1: weights are bfloat16 */
};
int cpu_reserve_step(struct backend *backend, const struct cpu_step_needs *needs);
int cpu_reserve_hogwild(struct backend *backend, uint64_t span, int halves);
/* Returns how many floats a row's copy, or its gradient, has in lock-free training. */
FN uint64_t cpu_lock_free_span(const struct record_layout *layout) {
    return layout->halves ? (layout->span + CPU_APART - 1) / CPU_APART * CPU_APART : layout->span;
}
/* step_shared.c: floats of its arrays, for a largest number of examples and of negatives. */
struct cpu_shared_needs {
    uint64_t scores, rows, context_gradient, of_worker;
};
struct cpu_shared_needs cpu_shared_needs(uint64_t examples, uint64_t negatives, uint32_t dim, uint64_t span);
uint64_t cpu_allocated(struct backend *backend); /* bytes of everything except tables */
void cpu_release_arrays(struct backend *backend);
void cpu_estimate(const struct estimate_request *request, struct estimate *estimate);

/* walks.c. cpu_draw() draws walks into ids [count x length], in the caller's thread. */
void cpu_draw(const struct example_source *source, uint64_t first, uint64_t count, uint32_t epoch, uint32_t *ids);
int cpu_draw_walks(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

int cpu_step(struct backend *backend, unsigned stage, const struct step_request *request);
int cpu_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
int cpu_filter(struct backend *backend, const struct filter_request *request);

/* fold_in.c */
int cpu_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
int cpu_fold_solve(struct backend_fold *fold, const struct fold_lists *lists);
void cpu_fold_close(struct backend_fold *fold);

/* ---- updates of rows (update.c) ---- */

enum { CPU_FIELDS = 2 + RULE_SLOTS }; /* rows of rule_scratch: a slot that the rule does not have, the weights, the slots */

/* Applies the rule to one row, unless it is frozen; bfloat16 fields are rounded with the draws of the global step. `memo` caches
 * prepared constants by update count, within a step. */
struct cpu_memo {
    uint64_t updates[64]; /* the update count + 1; 0: this entry is empty */
    struct rule_step step[64];
};
void cpu_apply_rule(const struct cpu_rows *rows, const struct rule_options *rule, double lr, uint64_t global_step,
                    struct backend_table *table, uint32_t row, const float *gradient, float *rule_scratch,
                    struct cpu_memo *memo);

/* cpu_squares() returns the sum of the squares of a gradient's columns. cpu_shorten() bounds the gradient of a row that occurs
 * at `places` places and has this sum of squares. */
float cpu_squares(uint32_t dim, const float *gradient);
void cpu_shorten(const struct rule_step *constants, uint32_t dim, float *gradient, uint64_t places, float squares);

/* One worker's rows of one side of a batch, or of a call by id: those with row % workers == worker, sorted, each with the places
 * at which its id occurs. */
struct cpu_row_set {
    const uint64_t *key; /* [count] row << 32 | place, ordered by row, then by place */
    uint64_t count;
};
int cpu_grow_keys(struct cpu_shared *shared, uint64_t ids); /* makes space for all workers; call it before any of them sorts */
struct cpu_row_set cpu_row_set(const struct cpu_shared *shared, const uint32_t *ids, uint64_t count, unsigned worker,
                               unsigned workers, uint64_t rows);

/* A row of a set, with its places. */
struct cpu_named_row {
    uint32_t row;
    const uint64_t *key; /* [places] the lower halves are the row's places, in the order of the ids */
    uint64_t places;
};
/* Reads the set's next row at key *at, and moves *at behind it. Returns 0 if there are no more rows. */
int cpu_next_row(const struct cpu_row_set *set, uint64_t *at, struct cpu_named_row *row);
/* Writes to sum[dim] the gradients of the row's places, added in order. A place's gradient is at gradients + place x stride. */
void cpu_sum_places(const struct cpu_named_row *row, const float *gradients, uint64_t stride, uint32_t dim, float *sum);

/* Grows scratch->gradient to `span` floats, and scratch->rule_scratch to CPU_FIELDS x span. */
int cpu_grow_gradient(struct cpu_scratch *scratch, uint64_t span);

/* Grows scratch->wide to `rows` copies of `span` floats, and returns the first copy, aligned to a cache line because a vector
 * may fill one. NULL after fail(). If rows is 0 it does nothing. */
enum { CPU_WIDE_SPARE = 16 }; /* floats to spare for the alignment */
float *cpu_grow_wide(struct cpu_scratch *scratch, uint64_t rows, uint64_t span);

/* ---- rows by id (by_id.c) ---- */

int cpu_rows_ids(struct backend *backend, uint64_t count, uint32_t **ids);
int cpu_rows_fetch(struct backend *backend, const struct rows_request *request);
int cpu_rows_update(struct backend *backend, const struct rows_request *request);
int cpu_rows_store(struct backend *backend, const struct rows_request *request);
int cpu_rows_cached(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count);
struct rows_view cpu_rows_view(struct backend *backend, const struct backend_table *table,
                               const struct record_field *field);

#endif
