/* arrays: the sizes of all arrays that the CUDA backend keeps. The CUDA files allocate arrays of these sizes; estimate.c adds
 * the sizes up, even on a machine without a GPU. No CUDA header is included here. */
#ifndef SPTX_CUDA_ARRAYS_H
#define SPTX_CUDA_ARRAYS_H

#include "kernels/backend.h"

#define PINNED_PAGE    ((uint64_t)2 << 20)  /* bytes: rows in host memory take whole huge pages */
#define TRANSFER_BYTES ((uint64_t)16 << 20) /* bytes that table_read and table_write transfer at a time: hundreds of the widest
                                             * records */

enum {
    GPU_ARRAY_ALIGN = 256, /* bytes: the sizes of growing arrays are rounded up to a multiple of it */
    UPDATE_PIECE = 32,     /* most occurrences that one piece of an update sums */
    CORRECTIONS = 4096     /* number of update counts for which bias corrections are stored */
};

static inline uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* ---- elements of arrays ---- */

/* A piece of the update's work: sum the gradients of `count` places of the row set's order, from `first` on. Then update
 * distinct row `row`; or, unless partial is DRAW_NONE, write the sum to row `partial` of the partial sums. */
struct item {
    uint32_t row, first, count, partial;
};

/* Counts that only the GPU needs and writes: the host never waits for them. */
struct batch_counts {
    uint32_t distinct[2], cold_first[2], items[2], partials[2], longs[2], forwarded[2];
    uint32_t blocks, targets, contexts, terms; /* the batch's exact sizes; batch_sizes has upper bounds */
    uint32_t too_long;                         /* number of positives of an example that does not fit into a block; 0: all fit */
    uint32_t begun;                            /* number of thread blocks that have begun, if they wait for other ranks
                                                * (step_dots.cuh) */
    unsigned long long pairs;
    unsigned long long empty_terms; /* terms of slots that were left out */
};

/* The description of a batch for the kernels that make examples. */
struct example_request {
    struct example_source source; /* its pointers are valid on the GPU */
    struct shuffle order;         /* the order of the epoch's examples, if the source shuffles */
    uint64_t first, count;
    uint32_t epoch;
    int held_out;
};

/* The sizes of one example. */
struct need {
    uint32_t blocks, targets;
    uint64_t contexts, terms;
};

/* A batch's exact sizes, if the host must wait for them. */
struct counted_sizes {
    struct need total;
    uint32_t too_long;
};

/* ---- bytes of each array ---- */

/* Bytes of the arrays of a row set of n ids. */
struct row_set_bytes {
    uint64_t ids, distinct, distinct_ids, distinct_starts, order, items, longs; /* distinct_ids: of each of its copies */
};
static inline struct row_set_bytes row_set_bytes(uint64_t n) {
    struct row_set_bytes bytes;
    bytes.ids = bytes.distinct = bytes.distinct_ids = bytes.order = n * sizeof(uint32_t);
    bytes.distinct_starts = (n + 1) * sizeof(uint32_t);
    bytes.items = n * sizeof(struct item);
    bytes.longs = (n / UPDATE_PIECE + 1) * sizeof(struct item);
    return bytes;
}

/* Returns the bytes of the array that holds the block of each id, for n ids of a side. */
static inline uint64_t block_of_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}

/* Returns the bytes of an array of weights for this number of contexts. */
static inline uint64_t weight_bytes(uint64_t contexts, int weighted) {
    return weighted ? contexts * sizeof(float) : 0;
}

/* Bytes of a batch's arrays that depend on its blocks. */
struct batch_bytes {
    uint64_t target_starts, context_starts, term_starts, positives, block_slot, block_example, coefficients, losses;
};
static inline struct batch_bytes batch_bytes(uint64_t blocks, uint64_t targets, uint64_t terms) {
    struct batch_bytes bytes;
    bytes.target_starts = bytes.context_starts = bytes.term_starts = (blocks + 1) * sizeof(uint32_t);
    bytes.positives = bytes.block_slot = (blocks + 1) * sizeof(uint32_t);
    bytes.block_example = (blocks + 1) * sizeof(uint64_t);
    bytes.coefficients = terms * sizeof(float);
    bytes.losses = (targets > blocks ? targets : blocks) * sizeof(double);
    return bytes;
}

/* Returns the bytes of the forwarding slots of up to `rows` cold rows. */
static inline uint64_t forward_bytes(uint64_t rows) {
    return rows * sizeof(uint32_t);
}
/* Returns the bytes of the host's copy of a set's ids, if the host's threads move the rows. */
static inline uint64_t host_ids_bytes(uint64_t occurrences) {
    return occurrences * sizeof(uint32_t);
}

/* Bytes of the arrays for a step's sums, with rows of `span` floats. */
struct sum_bytes {
    uint64_t gradients, partials, context_gradients;
};
/* Returns an upper bound for the pieces of all rows that have several pieces: twice the number of full pieces. */
static inline uint64_t most_partials(uint64_t occurrences) {
    return 2 * occurrences / UPDATE_PIECE + 2;
}
static inline struct sum_bytes sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span, int one_vector) {
    uint64_t row = span * sizeof(float);
    struct sum_bytes bytes;
    bytes.gradients = targets * row;
    bytes.partials = (most_partials(targets) + most_partials(contexts)) * row;
    bytes.context_gradients = one_vector ? 0 : contexts * row;
    return bytes;
}

/* Bytes of the arrays for step_learn.cuh: one score a term; with cosines one length a place; with pooled targets one vector a
 * block. */
struct learn_bytes {
    uint64_t scores, lengths, pooled;
};
static inline struct learn_bytes learn_bytes(uint64_t blocks, uint64_t places, uint64_t terms, uint64_t span, int cosines,
                                             int pooled) {
    struct learn_bytes bytes;
    bytes.scores = terms * sizeof(float);
    bytes.lengths = cosines ? places * sizeof(float) : 0;
    bytes.pooled = pooled ? blocks * span * sizeof(float) : 0;
    return bytes;
}

/* Bytes of the arrays of step_shared.cu, for a number of targets and of negatives: unit rows; a score of each pair; 1 / length
 * of each row, and each target's score with its positive. */
struct shared_bytes {
    uint64_t rows, scores, lengths;
};
static inline struct shared_bytes shared_bytes(uint64_t targets, uint64_t negatives, uint64_t span) {
    struct shared_bytes bytes;
    bytes.rows = (targets + negatives) * span * sizeof(float);
    bytes.scores = targets * negatives * sizeof(float);
    bytes.lengths = (4 * targets + negatives) * sizeof(float);
    return bytes;
}

/* Returns how many slots ranks exchange in a step: one a term, one a row (for norms), and with cosines one a place behind them. */
static inline uint64_t exchange_slots(uint64_t targets, uint64_t contexts, uint64_t terms, int lengths) {
    return terms + (lengths ? 2 : 1) * (targets + contexts);
}
/* Returns the bytes of the mailbox of each of `ranks` on one machine: two boxes, used in turn, with 8 bytes for each slot and
 * rank. */
static inline uint64_t exchange_box_bytes(uint64_t slots, uint64_t ranks) {
    return 2 * ranks * slots * sizeof(uint64_t);
}
/* Returns the bytes of the rows' summed gradients, which are kept until their squares have been summed over the ranks. */
static inline uint64_t row_sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span) {
    return (targets + contexts) * span * sizeof(float);
}

/* Bytes of a rule's constants by a row's number of updates: four floats for each number, behind the options that they belong to. */
#define CORRECTIONS_BYTES ((sizeof(struct rule_options) + sizeof(double) + 15) / 16 * 16 + CORRECTIONS * 4 * sizeof(float))

/* Returns the bytes of a bit map of rows, such as frozen or known rows. */
static inline uint64_t known_bytes(uint64_t rows) {
    return table_frozen_words(rows) * sizeof(uint32_t);
}

/* Returns the bytes of an array with one struct need for each of `examples` and one for the total. The next function bounds the
 * scratch for summing them. */
static inline uint64_t need_bytes(uint64_t examples) {
    return (examples + 1) * sizeof(struct need);
}
static inline uint64_t scan_bytes(uint64_t examples) {
    return examples / 2 + 8192;
}

/* A position of a batch of windows: its word (DRAW_NONE if it is dropped), and the lower 32 bits of its sentence's number. */
struct kept_word {
    uint32_t id, sentence;
};
enum { KEPT_BESIDE = 128 }; /* positions before and behind the batch that windows may reach, unless many words are dropped */
static inline uint64_t kept_bytes(const struct example_source *s, uint64_t examples) {
    return s->mode == EXAMPLE_WINDOW && !s->shuffle ? (examples + 2 * KEPT_BESIDE) * sizeof(struct kept_word) : 0;
}

/* Bytes of walks that are drawn for a number of positions. */
struct walks_bytes {
    uint64_t ids, starts;
};
static inline struct walks_bytes walks_bytes(const struct walks *w, uint64_t positions) {
    struct walks_bytes bytes = {0, 0};
    if (!w->length) return bytes;
    bytes.ids = walks_at_most(w, positions) * w->length * sizeof(uint32_t);
    bytes.starts = (walks_at_most(w, positions) + 1) * sizeof(uint64_t);
    return bytes;
}
/* Positions of lock-free training whose walks are drawn together: enough to fill a GPU several times. */
enum { WALKED_AT_ONCE = 1 << 25 };

/* Returns how many batches are made at the same time, each by a builder with its own scratch. A batch is made by a chain of
 * short kernels, which takes longer than the step of a small batch; so with small batches each stage has a builder. Large
 * batches keep the GPU busy with two builders, whose scratch is large. */
enum { SMALL_BATCH = 1 << 18 }; /* most contexts of a small batch */
static inline unsigned batch_builders(const struct example_source *s, unsigned depth) {
    unsigned large = depth < 2 ? depth : 2;
    int known = s->batch && (s->mode == EXAMPLE_WINDOW || s->positives || s->longest); /* 1: there is a bound for the number of a
                                                                                        * batch's contexts */
    return known && example_most(s).contexts <= SMALL_BATCH / s->batch ? depth : large;
}

/* Returns the bytes for sorting n occurrences: keys, and ranks or 0, 1, 2 ..; and a bound for what sorting and ranking
 * work in: a copy of keys and one of places, and a kilobyte of look-back for each few thousand. */
static inline uint64_t sorted_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}
static inline uint64_t sort_bytes(uint64_t n) {
    return 2 * n * sizeof(uint32_t) + n / 4 + (64 << 10);
}

/* ---- lock-free training ---- */

enum {
    HOGWILD_WIDEST = 32,          /* widest window that the kernel of windows can train */
    HOGWILD_LARGEST_ROW = 512,    /* most columns of a row that its registers can hold */
    HOGWILD_CONTEXTS = 8,         /* contexts of a block that the general kernel trains together */
    HOGWILD_PROCESSOR_WARPS = 32, /* warps of the general kernel on each of the GPU's multiprocessors */
    /* Least number of a table's rows for each warp. If many warps change a row at once, each by a gradient of the same old row,
     * they overshoot; so small vocabularies are trained by few warps. */
    HOGWILD_WARP_ROWS = 48,
    HOGWILD_LEAST_WARPS = 32,
    HOGWILD_TREE_WARPS = 512 /* most warps if words are predicted along paths in a tree (hogwild.h) */
};
#define HOGWILD_SCRATCH_BYTES ((uint64_t)256 << 20) /* most scratch of all warps together, unless a single warp needs more */

struct hogwild_totals {
    unsigned long long next; /* number of pieces of positions that warps have taken so far */
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    double loss;
};

/* Returns 1 if examples are windows that the kernel of windows can train in registers. `linear`: the result of
 * hogwild_is_linear(). */
static inline int hogwild_in_registers(const struct example_source *s, uint64_t span, int linear) {
    return s->mode == EXAMPLE_WINDOW && s->window <= HOGWILD_WIDEST && !s->distinct && linear && span <= HOGWILD_LARGEST_ROW;
}

/* Sizes of the scratch of one warp of the general kernel. */
struct hogwild_scratch {
    uint64_t contexts, targets; /* bounds for one block */
    uint64_t vectors;           /* vectors of a block: one for each target, or one if targets are pooled */
    uint64_t window_targets;    /* a bound for the targets of all blocks of one window */
    uint64_t words;             /* size in 32-bit words, rounded up so that the next warp's gradients are aligned */
};
static inline struct hogwild_scratch hogwild_scratch(const struct example_source *s) {
    struct example_sizes most = example_most(s);
    struct hogwild_scratch scratch;
    scratch.contexts = most.contexts / most.blocks;
    if (example_predicts_window(s)) scratch.contexts += 2 * (uint64_t)s->window; /* words are stored here until the contexts that
                                                                                  * predict them are known */
    scratch.targets = most.targets / most.blocks;
    scratch.vectors = example_vectors(&s->pool, (uint32_t)scratch.targets);
    scratch.window_targets = most.targets;
    uint64_t gradients = 128 * (scratch.vectors + HOGWILD_CONTEXTS), factors = scratch.vectors * scratch.contexts;
    uint64_t words = gradients + factors + scratch.targets + 2 * scratch.contexts + scratch.window_targets;
    scratch.words = round_up(words, 4);
    return scratch;
}

/* Returns how many warps a source wants. Rows of documents are not counted, as all warps change rows of words. Rows that n-grams share are not counted: there are many, and most are rare. But
 * frequent ones occur at more positions than any word: with half of the warps training is as fast there, and with all of them it
 * nearly diverged. */
static inline uint64_t hogwild_wanted_warps(const struct example_source *s) {
    uint64_t words = s->documents ? s->rows - s->target_only : s->rows;
    uint64_t warps = (s->subwords.starts ? s->subwords.words / 2 : words) / HOGWILD_WARP_ROWS;
    if (s->paths.starts && warps > HOGWILD_TREE_WARPS) warps = HOGWILD_TREE_WARPS;
    return warps > HOGWILD_LEAST_WARPS ? warps : HOGWILD_LEAST_WARPS;
}

/* Returns the number of warps of the general kernel: the wanted ones, limited by multiprocessors and scratch, but at least one.
 * processors: 0 if unknown. */
static inline uint64_t hogwild_warps(uint64_t wanted, uint64_t processors, const struct hogwild_scratch *scratch) {
    uint64_t most = HOGWILD_SCRATCH_BYTES / (scratch->words * sizeof(uint32_t)), held = processors * HOGWILD_PROCESSOR_WARPS;
    if (processors && held < wanted) wanted = held;
    if (most < wanted) wanted = most;
    return wanted ? wanted : 1;
}

/* estimate.c, which is compiled both with nvcc and without it. */
void cuda_estimate(const struct estimate_request *request, struct estimate *estimate);

#endif
