/* cpu: shared by the files of the CPU backend. The pinned and gpu places are plain memory here, so no row has to be copied: a step
 * changes the tables themselves.
 *
 *   examples  (epoch, example) -> blocks          step, update   a batch's blocks -> gradients -> new rows, exact
 *   batch     examples -> a stage's arrays        hogwild        blocks -> rows at once, lock-free
 *   step_shared   a batch's blocks with the negatives that they share
 *   by_id     rows for a library's caller         frozen         leaves out of a batch what frozen rows make useless
 *   snapshot  a table's rows as they were at one moment, read while calls change the table
 *   estimate  all arrays by name: how large they will be, making them so, how large they are
 */
#ifndef SPTX_CPU_H
#define SPTX_CPU_H

#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "rows.h"

/* ---- tables ---- */

struct cpu_store {
    char *memory;    /* [rows of the table x stride] its own mapping, aligned to pages */
    uintptr_t base;  /* row r is at base + r x stride; a number, since C has no pointer to a place before an array (first_row may be above 0) */
    uint64_t stride; /* bytes of a record, with padding (store_stride()) */
    uint64_t bytes;  /* bytes of `memory` */
    int in_file, given; /* given: 1: `memory` is the caller's (table_spec.given) */
};

/* State of a table's snapshot, which each call reads before it changes a row (by_id.c). */
struct cpu_snapshot_seen {
    uint64_t first;   /* the table's first row */
    uint64_t taken;   /* rows below this number have been read, and may change. Atomic */
    uint32_t *copied; /* bit map of copied rows; bit 0 is the table's first row. Atomic */
};
struct cpu_snapshot; /* begins with a struct cpu_snapshot_seen */

struct backend_table {
    struct table_spec spec;
    struct cpu_snapshot *snapshot; /* NULL: the table has none */
    struct cpu_store weights, state; /* state: all zeros if the state is in the weights' records, or if the rule has no state */
    uintptr_t state_base;            /* the state of row r is at state_base + r x state_stride */
    uint64_t state_stride;
    struct backend_table *next;
};

/* Return where a row's weights, and one of its slots, begin. Fields that are not float32 are read and written only by
 * cpu_read_row(), cpu_combine_rows(), cpu_apply_rule() and by_id.c; codes only by the last two. */
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
/* Returns a row's weights as floats: a pointer to the row itself if it is float32, otherwise a copy in spare[span]. */
FN const float *cpu_read_row(const struct cpu_rows *rows, const struct backend_table *t, uint32_t row, float *spare) {
    if (!cpu_halves(t)) return (const float *)cpu_weights(t, row);
    rows->widen((const uint16_t *)cpu_weights(t, row), t->spec.layout.span, spare);
    return spare;
}
/* Computes sum[dim] += factors[i x stride] x the weights of rows[i], for i in rising order. */
FN void cpu_combine_rows(const struct cpu_rows *rows, int halves, float *sum, const float *factors, uint64_t stride,
                         const void *const *weights, uint64_t count, uint32_t dim) {
    if (halves)
        rows->combine_kept(sum, factors, stride, (const uint16_t *const *)weights, count, dim);
    else
        rows->combine(sum, factors, stride, (const float *const *)weights, count, dim);
}
/* Returns the address of the row's count of updates. layout.counted must be 1. */
FN uint32_t *cpu_updates(const struct backend_table *t, uint32_t row) {
    return (uint32_t *)(t->state_base + row * t->state_stride + record_updates(&t->spec.layout)->offset);
}

/* ---- snapshots ---- */

/* Returns 1 if the snapshot needs a copy of the row before it changes. */
FN int cpu_snapshot_wants(const struct cpu_snapshot_seen *seen, uint32_t row) {
    uint64_t number = row - seen->first;
    return row >= __atomic_load_n(&seen->taken, __ATOMIC_ACQUIRE) &&
           !(__atomic_load_n(&seen->copied[number / 32], __ATOMIC_ACQUIRE) >> number % 32 & 1);
}
void cpu_keep_row(const struct backend_table *table, uint32_t row); /* copies the row for the table's snapshot */
/* Must be called, in any thread, before a row's weights or state change. */
FN void cpu_before_change(const struct backend_table *table, uint32_t row) {
    const struct cpu_snapshot_seen *seen = (const struct cpu_snapshot_seen *)(const void *)table->snapshot;
    if (__builtin_expect(seen != NULL, 0) && cpu_snapshot_wants(seen, row)) cpu_keep_row(table, row);
}
int cpu_snapshot_begin(struct backend *backend, struct backend_table *table, uint64_t most);
int cpu_snapshot_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
void cpu_snapshot_stop(struct backend_table *table);
void cpu_snapshot_end(struct backend *backend, struct backend_table *table);
struct host_records cpu_records_from(const struct backend_table *table, uint64_t first); /* returns the records from row `first` on */

/* ---- blocks ---- */

struct cpu_block {
    uint64_t targets, contexts; /* indices of the block's first target and first context in the arrays of ids */
    uint32_t t, c, positives;   /* numbers of its targets, contexts and positives */
    uint32_t predicted;         /* number of words that its targets predict: same as `positives`, except with paths in a tree (example_paths) */
    uint32_t example;           /* number of the block's example among the examples that were built together */
};

/* Blocks in the order of their examples, and their ids. The arrays grow while blocks are built, and are reused. */
struct cpu_blocks {
    struct cpu_block *block;
    uint32_t *target, *context;
    float *weight; /* [contexts] weights of the positives, which are the first contexts of each block; NULL: all are 1 */
    uint64_t count, targets, contexts;
    uint64_t block_capacity, target_capacity, context_capacity, weight_capacity;
    uint64_t logits; /* number of logits: t x c for each block, or c if targets are pooled */
    uint64_t words;  /* number of positions of text or walks, without those after a walk's end; 0 for lists and triples */
};
void cpu_blocks_clear(struct cpu_blocks *blocks);
void cpu_blocks_release(struct cpu_blocks *blocks);

/* A worker's scratch for building windows: the kept words at consecutive positions of one sentence, and the kept words around these. */
struct cpu_piece {
    uint32_t *id;     /* [count] ids of the words that subsampling kept */
    uint64_t *at;     /* [count] corpus positions of these words */
    uint64_t count, capacity, at_capacity;
    uint64_t first, end; /* id[first] .. id[end - 1] are at the positions whose windows are built; the others are around these */
    uint32_t *walk;      /* if sentences are walks: [walks x length] ids of the walks that contain the positions */
    uint64_t *start;     /* [walks + 1] first position of each of these walks */
    uint64_t walk_capacity, start_capacity;
};
void cpu_piece_release(struct cpu_piece *piece);

/* Appends the blocks of the examples at places first .. first + count - 1 in the epoch's order. held_out: as in batch_request. */
int cpu_build(const struct example_source *source, struct cpu_piece *piece, struct cpu_blocks *blocks, uint32_t epoch,
              uint64_t first, uint64_t count, int held_out);

/* Appends the block of negatives that a batch shares; does nothing if there are none. first: the batch's first place in the epoch's order. */
int cpu_build_shared(const struct example_source *source, struct cpu_blocks *blocks, uint32_t epoch, uint64_t first);

/* ---- a batch in its stage ---- */

enum {
    CPU_GRAIN = 128,             /* examples of a chunk; workers build a batch chunk by chunk */
    CPU_PIECE = 256,             /* most examples of a piece; in lock-free training workers build blocks piece by piece */
    CPU_PIECE_CONTEXTS = 1 << 18 /* most contexts of all examples of a piece together */
};

/* A batch, from make_batch() to step(). */
struct cpu_stage {
    struct cpu_blocks all;
    struct example_pool pool;
    struct shared_negatives shared;
    int weighted; /* 1: all.weight has the weights of positives */
    uint64_t *target_starts, *context_starts; /* [blocks + 1] used only by batch_view() */
    uint32_t *positives;
    uint64_t view_capacity;
    uint64_t *logit_starts;                 /* [blocks] index of each block's first coefficient */
    uint64_t *target_block, *context_block; /* [targets], [contexts] number of each occurrence's block */
    uint64_t logit_start_capacity, target_block_capacity, context_block_capacity;
    uint64_t words;
    struct step_result result;
};

/* Blocks that one worker has built, and where they belong in the batch's arrays. */
struct cpu_chunk {
    struct cpu_blocks blocks;
    uint64_t first_block, first_target, first_context;
};

/* Arrays for making and stepping batches, used by all stages, since every call has done its work when it returns. */
struct cpu_shared {
    struct cpu_chunk *chunk; /* [chunk_capacity] */
    float *coefficients;     /* [logits] coefficients. With cosines also [targets + contexts]: squares of each place's row, later the row's factor
                              * in its own gradient */
    float *target_gradient;  /* [targets x span] */
    float *pooled;           /* [blocks x span] vectors of pooled targets */
    double *losses;          /* [blocks] */
    float *shared_scores, *shared_rows, *context_gradient; /* only with shared negatives; their sizes are in step.c */
    float *squares;          /* [2 x places of a side] used only if ranks share the columns and the rule clips gradients */
    uint64_t *keys, *spare;  /* [targets or contexts, whichever are more] row << 32 | occurrence, for sorting; each worker uses a part */
    uint64_t chunk_capacity, coefficient_capacity, gradient_capacity, pooled_capacity, loss_capacity, key_capacity,
        spare_capacity, square_capacity, shared_score_capacity, shared_row_capacity, context_gradient_capacity;
};

/* Scratch of one worker; it grows as needed. */
struct cpu_scratch {
    struct cpu_piece piece;
    struct cpu_blocks blocks;   /* used only by lock-free training */
    float *gradient;            /* [at least span] the gradient of a row; in lock-free training its sums */
    uint64_t gradient_capacity;
    float *rule_scratch; /* [span] takes the place of slots that the rule does not have; then [4 x span]: a row's bfloat16 fields as floats */
    uint64_t rule_scratch_capacity;
    float *wide; /* if weights are bfloat16: [rows of a block x span] copies of the rows, followed in lock-free training by their gradients */
    uint64_t wide_capacity;
    float *logits; /* lock-free: a block's logits. Exact steps with losses other than word2vec's: [logits of a block] cosines, and [2 x C] scratch */
    uint64_t logit_capacity;
    void **rows; /* pointers to rows, as arguments of cpu_rows */
    uint64_t row_capacity;
    struct hogwild_result part;
};

/* Upper bounds of the sizes of batches and examples that a source makes. */
struct cpu_sizes {
    struct example_sizes batch;   /* sizes of a whole batch; zeros: unknown before the batch is made */
    struct example_sizes example; /* sizes of one example */
    uint32_t shared, relations;   /* numbers of negatives and of relations with which all examples of a batch are compared */
    int weighted;                 /* 1: positives have weights */
    int alike;                    /* 1: most examples are nearly as large as the largest; 0: an example's size depends on the length of its list */
    uint64_t chunks;              /* number of chunks of a batch */
    uint64_t piece;               /* number of examples that a lock-free worker builds together */
    uint64_t beside;              /* most kept words before and after the positions of a cpu_piece; 0: examples are not windows */
    struct walks walks;           /* only the sizes of walks are set; length 0: no graph */
};

struct backend {
    const struct backend_ops *ops;
    struct pool *pool;
    const struct cpu_rows *rows;
    struct ranks *ranks; /* the processes that divide the columns among them; owned by the caller; NULL: this process has all columns */
    struct example_source source;
    struct cpu_sizes sizes; /* sizes for the backend's source */
    struct cpu_stage stage[BACKEND_STAGES];
    struct cpu_shared shared;
    struct cpu_scratch *scratch; /* [threads] */
    struct backend_table *tables;
    uint32_t *ids; /* memory for the ids of a rows_request, which the caller writes */
    uint64_t id_capacity;
};

int cpu_make_batch(struct backend *backend, unsigned stage, const struct batch_request *request);
int cpu_set_batch(struct backend *backend, unsigned stage, const struct batch_view *view);
int cpu_batch_view(struct backend *backend, unsigned stage, struct batch_view *view);
int cpu_index_batch(struct cpu_stage *stage); /* computes the index of a batch that step() needs */

/* batch.c: if rows are frozen, removes the pairs that change no row from a batch. The result of a step is the same as with them. */
int cpu_leave_out_frozen(struct cpu_stage *stage, const struct step_request *request);

/* estimate.c. Arrays whose size is known are allocated before their first use; the others grow. */
struct cpu_sizes cpu_sizes(const struct example_source *source);
int cpu_reserve_batch(struct backend *backend, struct cpu_stage *stage);
struct cpu_step_needs {
    uint64_t span;
    uint32_t dim;
    struct loss_options loss;
    struct example_pool pool;
    int loss_only;
    int norms;  /* 1: squared norms of gradients are summed over ranks */
    int halves; /* 1: weights are bfloat16 */
};
int cpu_reserve_step(struct backend *backend, const struct cpu_step_needs *needs);
int cpu_reserve_hogwild(struct backend *backend, uint64_t span, int halves);
/* Returns the floats of a row's copy, and of its gradient, in lock-free training. */
FN uint64_t cpu_lock_free_span(const struct record_layout *layout) {
    return layout->halves ? (layout->span + CPU_APART - 1) / CPU_APART * CPU_APART : layout->span;
}
/* Sizes of step.c's arrays, in floats. They suffice for the largest number of examples and candidates (negatives, or relations) of a batch. */
struct cpu_shared_needs {
    uint64_t scores, rows, of_worker;
};
struct cpu_shared_needs cpu_shared_needs(uint64_t examples, uint64_t candidates, uint32_t dim);
/* Returns 1 if the targets of each block are added to one vector. */
FN int cpu_adds_targets(const struct example_pool *pool) {
    return pool->on && !pool->product;
}
uint64_t cpu_allocated(struct backend *backend); /* returns the bytes of all memory of the backend except tables */
void cpu_release_arrays(struct backend *backend);
void cpu_estimate(const struct estimate_request *request, struct estimate *estimate);

int cpu_draw_walks(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

int cpu_step(struct backend *backend, unsigned stage, const struct step_request *request);
int cpu_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
int cpu_filter(struct backend *backend, const struct filter_request *request);

/* search.c. cpu_topk() answers a topk_request. If fewer than k rows are found, the last answers are DRAW_NONE with -infinity. Rows whose score is
 * NaN are neither found nor counted. */
int cpu_topk(struct pool *pool, const struct topk_request *request);
int cpu_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
int cpu_fold_solve(struct backend_fold *fold, const struct fold_lists *lists);
void cpu_fold_close(struct backend_fold *fold);

/* ---- updates of rows (update.c) ---- */

enum { CPU_FIELDS = 2 + RULE_SLOTS }; /* number of rows of rule_scratch: a slot that the rule does not have, the weights, the slots */

/* Updates one row by the rule, unless it is frozen. bfloat16 fields are rounded with the draws of the global step. `memo` keeps, during a step,
 * the constants that were computed for each number of updates. */
struct cpu_memo {
    uint64_t updates[64]; /* number of updates for which the entry is, plus 1; 0: the entry is empty */
    struct rule_step step[64];
};
void cpu_apply_rule(const struct cpu_rows *rows, const struct rule_options *rule, double lr, uint64_t global_step, struct backend_table *table,
                    uint32_t row, const float *gradient, float *rule_scratch, struct cpu_memo *memo);

/* cpu_squares() returns the squared norm of a gradient. cpu_shorten() clips the gradient of a row that occurs in `places` places; `squares` is its
 * squared norm. */
float cpu_squares(uint32_t dim, const float *gradient);
void cpu_shorten(const struct rule_step *constants, uint32_t dim, float *gradient, uint64_t places, float squares);

/* A worker's part of the rows of one side of a batch, or of a call by id: rows with row % workers == worker, sorted, each with the places of its
 * id. */
struct cpu_row_set {
    const uint64_t *key; /* [count] row << 32 | place, sorted */
    uint64_t count;
};
int cpu_grow_keys(struct cpu_shared *shared, uint64_t ids); /* allocates the arrays of all workers; must be called before any worker sorts */
struct cpu_row_set cpu_row_set(const struct cpu_shared *shared, const uint32_t *ids, uint64_t count, unsigned worker,
                               unsigned workers, uint64_t rows);

/* A row of a set, and the places where it occurs. */
struct cpu_named_row {
    uint32_t row;
    const uint64_t *key; /* [places] row << 32 | place, for each place of the row in the list of ids, rising */
    uint64_t places;
};
/* Reads the row whose first key is *at, and moves *at to the first key of the next row. Returns 0 at the end. */
int cpu_next_row(const struct cpu_row_set *set, uint64_t *at, struct cpu_named_row *row);
/* Writes to sum[dim] the gradients of the row's places, added in order. A place's gradient is at gradients + place x stride. */
void cpu_sum_places(const struct cpu_named_row *row, const float *gradients, uint64_t stride, uint32_t dim, float *sum);

/* Enlarges scratch->gradient to `span` floats, and scratch->rule_scratch to CPU_FIELDS x span. */
int cpu_grow_gradient(struct cpu_scratch *scratch, uint64_t span);

/* Enlarges scratch->wide to `rows` copies of `span` floats (nothing if rows is 0), and returns the first copy, aligned to a cache line, since a
 * vector may be as long. NULL after fail(). */
enum { CPU_WIDE_SPARE = 16 }; /* number of additional floats, for the alignment */
float *cpu_grow_wide(struct cpu_scratch *scratch, uint64_t rows, uint64_t span);

/* ---- rows by id (by_id.c) ---- */

int cpu_rows_ids(struct backend *backend, uint64_t count, uint32_t **ids);
int cpu_rows_fetch(struct backend *backend, const struct rows_request *request);
int cpu_rows_update(struct backend *backend, const struct rows_request *request);
int cpu_rows_store(struct backend *backend, const struct rows_request *request);
int cpu_rows_cached(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count);
struct rows_view cpu_rows_view(struct backend *backend, const struct backend_table *table, const struct record_field *field);

#endif
