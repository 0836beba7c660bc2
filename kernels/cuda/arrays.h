/* arrays: the sizes of all arrays that the CUDA backend keeps, for both compilers. The CUDA files allocate by these
 * sizes, and estimate.c adds them up where there may be no GPU. No CUDA header is included here. */
#ifndef SPTX_CUDA_ARRAYS_H
#define SPTX_CUDA_ARRAYS_H

#include "kernels/backend.h"

#define PINNED_PAGE    ((uint64_t)2 << 20)  /* bytes: rows in host memory take whole huge pages */
#define TRANSFER_BYTES ((uint64_t)16 << 20) /* bytes that table_read and table_write transfer at a time: hundreds of the widest
                                             * records */

enum {
    GPU_ARRAY_ALIGN = 256, /* bytes: arrays that grow are rounded up to it */
    UPDATE_PIECE = 32,     /* occurrences that one piece of an update sums, at most */
    CORRECTIONS = 4096     /* bias corrections are stored for this number of update counts */
};

static inline uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* ---- elements of arrays ---- */

/* A piece of the update's work: sum `count` rows of the order from `first` on. Then update distinct row `row`, or,
 * unless partial is DRAW_NONE, leave the sum in row `partial` of the partial sums. */
struct item {
    uint32_t row, first, count, partial;
};

/* Counts that only the GPU needs and writes: the host goes on without them. */
struct batch_counts {
    uint32_t distinct[2], cold_first[2], items[2], partials[2], longs[2], forwarded[2];
    uint32_t blocks, targets, contexts, terms; /* the batch's own counts; batch_sizes has upper bounds */
    uint32_t too_long;                         /* positives of an example that does not fit a block, or 0 */
    uint32_t begun;                            /* thread blocks that have begun, where they wait for other ranks (step_dots.cuh) */
    unsigned long long pairs;
    unsigned long long empty_terms; /* terms of slots that were left out */
};

/* The description of a batch for the kernels that make examples. */
struct example_request {
    struct example_source source; /* its pointers are the GPU's */
    struct shuffle order;         /* the order of the epoch's examples, where the source shuffles */
    uint64_t first, count;
    uint32_t epoch;
    int held_out;
};

/* The counts of one example. */
struct need {
    uint32_t blocks, targets;
    uint64_t contexts, terms;
};

/* A batch's sizes, for a host that must wait for them. */
struct counted_sizes {
    struct need total;
    uint32_t too_long;
};

/* ---- bytes of each array ---- */

/* The arrays of a row set of n ids. */
struct row_set_bytes {
    uint64_t ids, distinct, distinct_ids, distinct_starts, order, items, longs; /* distinct_ids: bytes of each of its copies */
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

/* The arrays of a batch, by its blocks. */
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
/* Returns the bytes of a set's ids where the host's threads move rows. */
static inline uint64_t host_ids_bytes(uint64_t occurrences) {
    return occurrences * sizeof(uint32_t);
}

/* The arrays of a step's sums, for rows of `span` floats. */
struct sum_bytes {
    uint64_t gradients, partials, context_gradients;
};
/* Returns a bound for the number of pieces of rows that have several pieces: at most twice the number that fills them. */
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

/* The arrays of the passes of step_learn.cuh: a score a term; with cosines a length a place; pooled targets' vectors, one a
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

/* The arrays of step_shared.cu for these numbers of targets and negatives: unit rows; a score of each pair; 1 / length of each
 * row, and a score of each target's positive. */
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

/* Returns the slots that ranks exchange in a step: one a term, for norms one a row, and behind them, where scores are
 * cosines, the lengths of all places. */
static inline uint64_t exchange_slots(uint64_t targets, uint64_t contexts, uint64_t terms, int lengths) {
    return terms + (lengths ? 2 : 1) * (targets + contexts);
}
/* Returns the bytes of the mailboxes of `ranks` on one machine: two that take turns, with a word of 8 bytes for each
 * slot and rank. */
static inline uint64_t exchange_box_bytes(uint64_t slots, uint64_t ranks) {
    return 2 * ranks * slots * sizeof(uint64_t);
}
/* Returns the bytes of the summed gradients of rows, which are kept while their squares are summed over the ranks. */
static inline uint64_t row_sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span) {
    return (targets + contexts) * span * sizeof(float);
}

/* The corrections of a rule by a row's number of updates: four floats each, behind the options that they are for. */
#define CORRECTIONS_BYTES ((sizeof(struct rule_options) + sizeof(double) + 15) / 16 * 16 + CORRECTIONS * 4 * sizeof(float))

/* Returns the bytes of one bit a row, for frozen or known rows. */
static inline uint64_t known_bytes(uint64_t rows) {
    return table_frozen_words(rows) * sizeof(uint32_t);
}

/* Returns the bytes for making batches of `examples`: the counts of each example, its beginnings, and a bound for what
 * scanning takes. */
static inline uint64_t need_bytes(uint64_t examples) {
    return (examples + 1) * sizeof(struct need);
}
static inline uint64_t scan_bytes(uint64_t examples) {
    return examples / 2 + 8192;
}

/* A position of a window batch: its word (DRAW_NONE where it is dropped), and the lower half of its sentence's
 * number. */
struct kept_word {
    uint32_t id, sentence;
};
enum { KEPT_BESIDE = 128 }; /* positions on each side of the batch that windows may reach, unless many words are dropped */
static inline uint64_t kept_bytes(const struct example_source *s, uint64_t examples) {
    return s->mode == EXAMPLE_WINDOW && !s->shuffle ? (examples + 2 * KEPT_BESIDE) * sizeof(struct kept_word) : 0;
}

/* Walks that have been drawn for this number of positions. */
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
/* Positions of lock-free training whose walks are drawn at once: enough to fill a GPU several times over. */
enum { WALKED_AT_ONCE = 1 << 25 };

/* Returns how many batches are made at once, each by a builder with scratch of its own. Making a batch is a chain of
 * short kernels, which takes longer than the step of a small batch: each stage then has a builder. Large batches keep
 * the GPU busy with two builders, whose scratch is large. */
enum { SMALL_BATCH = 1 << 18 }; /* contexts of a small batch, at most */
static inline unsigned batch_builders(const struct example_source *s, unsigned depth) {
    unsigned large = depth < 2 ? depth : 2;
    int known = s->batch && (s->mode == EXAMPLE_WINDOW || s->positives || s->longest); /* the number of its contexts is bounded */
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
    HOGWILD_WIDEST = 32,          /* the widest window of the kernel of windows */
    HOGWILD_LARGEST_ROW = 512,    /* columns that its registers hold, at most */
    HOGWILD_CONTEXTS = 8,         /* contexts of a block that the general kernel works on at once */
    HOGWILD_PROCESSOR_WARPS = 32, /* warps of the general kernel on each of the GPU's multiprocessors */
    /* Rows of a table for each warp, at least. Rows that many warps touch at once move by differences of the same old
     * row and overshoot, so small vocabularies train on few warps. */
    HOGWILD_WARP_ROWS = 48,
    HOGWILD_LEAST_WARPS = 32,
    HOGWILD_TREE_WARPS = 256 /* at most, where words are predicted along paths in a tree (hogwild.h) */
};
#define HOGWILD_SCRATCH_BYTES ((uint64_t)256 << 20) /* of all warps together, unless a single one needs more */

struct hogwild_totals {
    unsigned long long next; /* runs of positions that warps have taken so far */
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    double loss;
};

/* Returns 1 where examples are windows that the kernel of windows trains in registers. `linear`: the result of
 * hogwild_is_linear(). */
static inline int hogwild_in_registers(const struct example_source *s, uint64_t span, int linear) {
    return s->mode == EXAMPLE_WINDOW && s->window <= HOGWILD_WIDEST && !s->distinct && linear && span <= HOGWILD_LARGEST_ROW;
}

/* The scratch of a warp of the general kernel. */
struct hogwild_scratch {
    uint64_t contexts, targets; /* bounds for one block */
    uint64_t vectors;           /* that a block sets against its contexts: as many as its targets, or one where they are pooled */
    uint64_t window_targets;    /* a bound for all blocks of one window */
    uint64_t words;             /* 32-bit words of all this, rounded up so that the next warp's gradients are aligned */
};
static inline struct hogwild_scratch hogwild_scratch(const struct example_source *s) {
    struct example_sizes most = example_most(s);
    struct hogwild_scratch scratch;
    scratch.contexts = most.contexts / most.blocks;
    if (example_predicts_window(s)) scratch.contexts += 2 * (uint64_t)s->window; /* words wait here for what predicts them */
    scratch.targets = most.targets / most.blocks;
    scratch.vectors = example_vectors(&s->pool, (uint32_t)scratch.targets);
    scratch.window_targets = most.targets;
    uint64_t gradients = 128 * (scratch.vectors + HOGWILD_CONTEXTS), factors = scratch.vectors * scratch.contexts;
    uint64_t words = gradients + factors + scratch.targets + 2 * scratch.contexts + scratch.window_targets;
    scratch.words = round_up(words, 4);
    return scratch;
}

/* Rows that n-grams share do not count: they are many, and most are seldom met. The frequent ones are met by more positions at once
 * than any word is: half of the warps are as fast there, and with all of them training was near diverging. */
static inline uint64_t hogwild_wanted_warps(const struct example_source *s) {
    uint64_t warps = (s->subwords.starts ? s->subwords.words / 2 : s->rows) / HOGWILD_WARP_ROWS;
    if (s->paths.starts && warps > HOGWILD_TREE_WARPS) warps = HOGWILD_TREE_WARPS;
    return warps > HOGWILD_LEAST_WARPS ? warps : HOGWILD_LEAST_WARPS;
}

/* Returns the warps of the general kernel: as many of the wanted ones as multiprocessors and scratch allow, at least
 * one. processors: 0 where their number is not known. */
static inline uint64_t hogwild_warps(uint64_t wanted, uint64_t processors, const struct hogwild_scratch *scratch) {
    uint64_t most = HOGWILD_SCRATCH_BYTES / (scratch->words * sizeof(uint32_t)), held = processors * HOGWILD_PROCESSOR_WARPS;
    if (processors && held < wanted) wanted = held;
    if (most < wanted) wanted = most;
    return wanted ? wanted : 1;
}

/* estimate.c, which is compiled with CUDA and without. */
void cuda_estimate(const struct estimate_request *request, struct estimate *estimate);

#endif
